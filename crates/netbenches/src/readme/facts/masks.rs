//! The mask of entropy sources, which FreeBSD prints in three ways, in one README.

use std::collections::{BTreeSet, HashMap};

use super::super::{PublishedReadme, TextLine, plain_spaces};
use super::words::settings;

/// Ways of printing a mask that do not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskContradiction {
    /// Which.
    pub problem: MaskProblem,
    /// The variable.
    pub key: String,
    /// Where the mask is printed as a number, or first.
    pub line: usize,
    /// What is printed there.
    pub text: String,
    /// Where the other stands.
    pub other_line: usize,
    /// What is printed there.
    pub other_text: String,
}

/// How they disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MaskProblem {
    /// The number has other bits than `mask_bin`.
    Bits,
    /// The number has other bits than `mask_symbolic`, where `[X]` is a source that is off.
    Symbols,
    /// Different numbers have the same bits in `mask_bin`.
    SameBits,
    /// The labels name numbers of which the text prints none.
    Labels,
}

impl MaskProblem {
    /// The sentence for it, without the mask.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bits => "the number has other bits than those printed beside it",
            Self::Symbols => "the number has other bits than the sources named beside it",
            Self::SameBits => "different numbers are printed beside the same bits",
            Self::Labels => "the rows are of other numbers than are printed",
        }
    }
}

/// The three lines that `sysctl` prints of a mask; the number closes a group.
#[derive(Default)]
struct Group {
    key: String,
    number: Option<(usize, u64)>,
    bits: Option<(usize, String)>,
    symbols: Option<(usize, String)>,
}

/// Masks of entropy sources (`….mask`, `….mask_bin`, `….mask_symbolic`) that disagree.
///
/// Silent on what is printed in one way only.
///
/// # Source
/// `random(4)`: sources stand in `mask_symbolic` from the highest bit to bit 0; those of the
/// environment, up to `CALLOUT` or `UMA`, are all there, each at the bit of its position.
pub fn mask_contradictions(readme: &PublishedReadme) -> Vec<MaskContradiction> {
    let prose = readme.sections.iter().flat_map(|section| &section.prose);
    let mut lines: Vec<&TextLine> = readme.code.iter().chain(prose).collect();
    lines.sort_by_key(|line| line.line);
    let groups = groups(&lines);
    let mut found = Vec::new();
    for group in &groups {
        compare_ways(group, &mut found);
    }
    // The first number printed of the same bits.
    let mut first_of = HashMap::new();
    for group in &groups {
        let bits = group.bits.as_ref().and_then(|(_, bits)| value_of(bits));
        let (Some(bits), Some((line, number))) = (bits, group.number) else {
            continue;
        };
        let (other_line, other) = *first_of.entry((&group.key, bits)).or_insert((line, number));
        if other != number {
            found.push(MaskContradiction {
                problem: MaskProblem::SameBits,
                key: group.key.clone(),
                line: other_line,
                text: other.to_string(),
                other_line: line,
                other_text: number.to_string(),
            });
        }
    }
    compare_labels(readme, &groups, &mut found);
    found
}

fn groups(lines: &[&TextLine]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut open = Group::default();
    let mut last_line = 0;
    for text in lines {
        let Some((key, way, value)) = way(&text.text) else {
            continue;
        };
        // What does not stand right below belongs to another output.
        let is_other = key != open.key || text.line != last_line + 1;
        let is_repeated = match way {
            Way::Number => open.number.is_some(),
            Way::Bits => open.bits.is_some(),
            Way::Symbols => open.symbols.is_some(),
        };
        if is_other || is_repeated {
            groups.push(std::mem::take(&mut open));
            open.key = key.to_owned();
        }
        last_line = text.line;
        match way {
            Way::Number => open.number = value.parse().ok().map(|number| (text.line, number)),
            Way::Bits => open.bits = Some((text.line, value.to_owned())),
            Way::Symbols => open.symbols = Some((text.line, value.to_owned())),
        }
    }
    groups.push(open);
    groups.retain(|group| !group.key.is_empty());
    groups
}

enum Way {
    Number,
    Bits,
    Symbols,
}

/// The variable, the way and the value of a line of `sysctl`.
fn way(line: &str) -> Option<(&str, Way, &str)> {
    let (key, value) = line.trim().split_once([':', '='])?;
    let (key, value) = (key.trim(), value.trim());
    for (end, way) in [("_bin", Way::Bits), ("_symbolic", Way::Symbols)] {
        if let Some(key) = key.strip_suffix(end) {
            return key.ends_with("harvest.mask").then_some((key, way, value));
        }
    }
    key.ends_with("harvest.mask")
        .then_some((key, Way::Number, value))
}

/// The number of a text of bits; none where it is no such text.
fn value_of(bits: &str) -> Option<u64> {
    u64::from_str_radix(bits, 2).ok()
}

fn compare_ways(group: &Group, found: &mut Vec<MaskContradiction>) {
    let Some((line, number)) = group.number else {
        return;
    };
    let contradiction = |problem, other_line, other_text: &str| MaskContradiction {
        problem,
        key: group.key.clone(),
        line,
        text: number.to_string(),
        other_line,
        other_text: other_text.to_owned(),
    };
    if let Some((other_line, bits)) = &group.bits
        && value_of(bits).is_some_and(|value| value != number)
    {
        found.push(contradiction(MaskProblem::Bits, *other_line, bits));
    }
    if let Some((other_line, symbols)) = &group.symbols
        && disagrees(symbols, number)
    {
        found.push(contradiction(MaskProblem::Symbols, *other_line, symbols));
    }
}

/// How the sources of the environment are called, from bit 0.
const SOURCES: [&str; 12] = [
    "CACHED",
    "ATTACH",
    "KEYBOARD",
    "MOUSE",
    "NET_TUN",
    "NET_ETHER",
    "NET_NG",
    "INTERRUPT",
    "SWI",
    "FS_ATIME",
    "UMA",
    "CALLOUT",
];

/// Whether a source is said to be on whose bit is off, or the other way round.
fn disagrees(symbols: &str, number: u64) -> bool {
    let sources = symbols.rsplit(',').map(str::trim).zip(SOURCES);
    sources.enumerate().any(|(bit, (said, source))| {
        let is_on = number >> bit & 1 == 1;
        let off = said
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        // Of sources under other names nothing is known.
        off.unwrap_or(said) == source && off.is_none() != is_on
    })
}

/// Labels that set the variable to numbers of which the text prints none, though it prints several.
fn compare_labels(readme: &PublishedReadme, groups: &[Group], found: &mut Vec<MaskContradiction>) {
    let Some(first) = groups.iter().find(|group| group.number.is_some()) else {
        return;
    };
    let numbers: BTreeSet<u64> = groups
        .iter()
        .filter(|group| group.key == first.key)
        .filter_map(|group| group.number.map(|(_, number)| number))
        .collect();
    let rows = readme.blocks.iter().flat_map(|block| &block.block.rows);
    let mut named: Vec<(usize, u64)> = Vec::new();
    for row in rows {
        let label = plain_spaces(row.label.as_deref().unwrap_or_default());
        let settings = settings(&label).into_iter();
        let masks =
            settings.filter(|setting| setting.key == ["mask"] && label.contains(&first.key));
        let numbers = masks.filter_map(|setting| setting.value.parse().ok());
        named.extend(numbers.map(|number| (row.label_line.unwrap_or(row.line), number)));
    }
    let distinct: BTreeSet<u64> = named.iter().map(|(_, number)| *number).collect();
    if let (Some((line, number)), Some((other_line, other))) = (first.number, named.first())
        && numbers.len() > 1
        && distinct.len() > 1
        && numbers.is_disjoint(&distinct)
    {
        found.push(MaskContradiction {
            problem: MaskProblem::Labels,
            key: first.key.clone(),
            line,
            text: number.to_string(),
            other_line: *other_line,
            other_text: other.to_string(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "PURE_RDRAND,RANDOMDEV,[CALLOUT],[UMA],[FS_ATIME],SWI,INTERRUPT,NET_NG,[NET_ETHER],NET_TUN,MOUSE,KEYBOARD,ATTACH,CACHED";

    /// What `sysctl` prints of a mask in its three ways.
    fn printed(symbols: &str, bits: u64, number: u64) -> String {
        let key = "kern.random.harvest.mask";
        format!("```\n{key}_symbolic: {symbols}\n{key}_bin: {bits:029b}\n{key}: {number}\n```\n")
    }

    fn found(text: &str) -> Vec<(MaskProblem, usize, usize)> {
        let readme = PublishedReadme::parse(text.as_bytes());
        let found = mask_contradictions(&readme).into_iter();
        found
            .map(|found| (found.problem, found.line, found.other_line))
            .collect()
    }

    #[test]
    fn three_ways_of_one_mask_agree() {
        let without = SYMBOLS.replace("INTERRUPT", "[INTERRUPT]");
        let text = printed(SYMBOLS, 135_647, 135_647) + &printed(&without, 135_519, 135_519);
        assert_eq!(found(&text), []);
        let old =
            "[UMA],[FS_ATIME],SWI,INTERRUPT,NET_NG,NET_ETHER,NET_TUN,MOUSE,KEYBOARD,ATTACH,CACHED";
        assert_eq!(found(&printed(old, 511, 511)), []);
        assert_eq!(found(&printed("[A],B,something", 0, 0)), []);
        assert_eq!(
            found("harvest.mask=351\n\nkern.random.harvest.mask: 511\n"),
            []
        );
    }

    #[test]
    fn each_disagreement_has_its_kind_and_lines() {
        assert_eq!(
            found(&printed(SYMBOLS, 135_519, 135_647)),
            [(MaskProblem::Bits, 4, 3)]
        );
        let without = SYMBOLS.replace("INTERRUPT", "[INTERRUPT]");
        assert_eq!(
            found(&printed(&without, 135_647, 135_647)),
            [(MaskProblem::Symbols, 4, 2)]
        );
        let text = printed(SYMBOLS, 135_519, 135_647) + &printed(&without, 135_519, 135_519);
        assert_eq!(
            found(&text),
            [(MaskProblem::Bits, 4, 3), (MaskProblem::SameBits, 4, 9)]
        );
    }

    #[test]
    fn labels_name_the_masks_that_the_text_prints() {
        let without = SYMBOLS.replace("INTERRUPT", "[INTERRUPT]");
        let text = printed(SYMBOLS, 135_647, 135_647) + &printed(&without, 135_519, 135_519);
        let block = |one, other| {
            format!(
                "{text}```\nx kern.random.harvest.mask={one} (default)\n+ kern.random.harvest.mask={other}\n\
                 x 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n```\n"
            )
        };
        assert_eq!(found(&block(135_647, 135_519)), []);
        assert_eq!(found(&block(4607, 4479)), [(MaskProblem::Labels, 4, 12)]);
        assert_eq!(found(&block(4607, 135_519)), []);
        assert_eq!(found(&block(4607, 4607)), []);
    }
}
