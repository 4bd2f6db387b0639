//! Labels against the datasets that back their rows.

use std::collections::BTreeSet;

use super::super::{BlockBacking, DatasetIndex, ReadmeBlock, TextLine, plain_spaces};
use super::words::{
    Contradiction, ContradictionKind, Level, contradiction, family, has_negation, patches, telling,
    tokens,
};

/// A row whose label and dataset cannot both be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelContradiction {
    /// Which row of the block, from 0.
    pub row: usize,
    /// The line of the label, or of the heading or caption that says it for all rows.
    pub line: usize,
    /// What the label, the heading or the caption says.
    pub label: String,
    /// The dataset that backs the row, by its position in the index.
    pub dataset: usize,
    /// What they disagree about.
    pub contradiction: Contradiction,
}

/// A row that has a label and a dataset.
struct Row<'a> {
    row: usize,
    line: usize,
    label: String,
    position: usize,
    name: &'a str,
}

/// Rows of a block whose label names another thing than the dataset that backs them.
///
/// Silent on rows that nothing or several datasets back.
///
/// Shape: `backing` is what `index` gave for the block at `place`.
pub fn label_contradictions(
    block: &ReadmeBlock,
    backing: &BlockBacking,
    index: &DatasetIndex,
    place: &str,
) -> Vec<LabelContradiction> {
    let rows = labelled_rows(block, backing, index);
    let announced = announced_family(block).filter(|_| has_one_family(&rows));
    let mut found: Vec<LabelContradiction> = exchanged(&rows, place);
    for row in &rows {
        if found.iter().any(|known| known.row == row.row) {
            continue;
        }
        let about_row = |line, label: &str, contradiction| LabelContradiction {
            row: row.row,
            line,
            label: label.to_owned(),
            dataset: row.position,
            contradiction,
        };
        if let Some(contradiction) = names_another(row, index, place) {
            found.push(about_row(row.line, &row.label, contradiction));
        } else if let Some(contradiction) = contradiction(&row.label, row.name) {
            found.push(about_row(row.line, &row.label, contradiction));
        } else if family(&row.label).is_none()
            && let Some(said) = &announced
            && let Some(contradiction) = contradiction(&said.text, row.name)
            && contradiction.kind == ContradictionKind::AddressFamily
        {
            found.push(about_row(said.line, &said.text, contradiction));
        }
    }
    found.sort_by_key(|found| found.row);
    found
}

fn labelled_rows<'a>(
    block: &ReadmeBlock,
    backing: &BlockBacking,
    index: &'a DatasetIndex,
) -> Vec<Row<'a>> {
    let rows = block.block.rows.iter().zip(&backing.rows).enumerate();
    rows.filter_map(|(row, (published, backing))| {
        let position = backing.only()?;
        Some(Row {
            row,
            line: published.label_line.unwrap_or(published.line),
            label: plain_spaces(published.label.as_deref().unwrap_or_default()).into_owned(),
            position,
            name: index.candidate(position)?.name,
        })
    })
    .collect()
}

/// Whether the rows are all of one address family; where they are not, none is announced for them.
fn has_one_family(rows: &[Row<'_>]) -> bool {
    let mut families = rows.iter().filter_map(|row| family(row.name));
    let first = families.next();
    families.all(|other| Some(other) == first)
}

/// The caption or the innermost heading, where it names an address family for the whole block.
fn announced_family(block: &ReadmeBlock) -> Option<TextLine> {
    let announces = |text: &str| text.ends_with(':') && family(text).is_some();
    if let Some(caption) = &block.caption
        && announces(caption.text.trim_end())
    {
        return Some(caption.clone());
    }
    let heading = block.headings.last()?;
    (block.caption.is_none() && family(&heading.text).is_some()).then(|| TextLine {
        line: heading.line,
        text: heading.text.clone(),
    })
}

/// Whether the label is the name of a dataset with other values.
fn names_another(row: &Row, index: &DatasetIndex, place: &str) -> Option<Contradiction> {
    let label = row.label.trim();
    // What is on where the drop of it is off is no contradiction.
    if let Some(Level::Switch(_)) = Level::of(&label.to_lowercase()) {
        return None;
    }
    let named = index.named(label, place)?;
    let (named, backing) = (index.candidate(named)?, index.candidate(row.position)?);
    (named.values != backing.values).then(|| Contradiction {
        kind: ContradictionKind::NamesAnother,
        text_says: row.label.clone(),
        name_says: row.name.to_owned(),
    })
}

/// Pairs of rows of which each label names what the other's dataset does.
fn exchanged(rows: &[Row], place: &str) -> Vec<LabelContradiction> {
    let mut found: Vec<LabelContradiction> = Vec::new();
    for (index, one) in rows.iter().enumerate() {
        for other in &rows[index + 1..] {
            let [a, b] = [one, other].map(|row| (row.label.as_str(), row.name));
            if one.name != other.name
                && let Some([word, other_word]) = exchanged_words(a, b, place)
            {
                let both = [(one, &word, &other_word), (other, &other_word, &word)];
                for (row, says, should_say) in both {
                    found.push(LabelContradiction {
                        row: row.row,
                        line: row.line,
                        label: row.label.clone(),
                        dataset: row.position,
                        contradiction: Contradiction {
                            kind: ContradictionKind::Exchanged,
                            text_says: says.clone(),
                            name_says: should_say.clone(),
                        },
                    });
                }
            }
        }
    }
    found.dedup_by_key(|found| found.row);
    found
}

/// Of two texts, each with a name, where either says what the other's name says: a word that the first
/// says and the second's name has, and the same the other way round.
pub(super) fn exchanged_words(
    one: (&str, &str),
    other: (&str, &str),
    place: &str,
) -> Option<[String; 2]> {
    let ((one_text, one_name), (other_text, other_name)) = (one, other);
    let texts = [one_text, other_text, one_name, other_name, place];
    // A patch that one label names and the other row's dataset has.
    let [label, other_label, name, other_name, _] = texts.map(patches);
    if label != other_label {
        let is_exchanged = label != name && (&label, &other_label) == (&other_name, &name);
        let listed = |patches: BTreeSet<String>| match patches.is_empty() {
            true => "nothing of a patch".to_owned(),
            false => patches.into_iter().collect::<Vec<_>>().join(", "),
        };
        return is_exchanged.then(|| [label, other_label].map(listed));
    }
    let [label, other_label, name, other_name, _] = texts.map(telling);
    let [label, other_label] = apart(label, other_label);
    let [name, other_name] = apart(name, other_name);
    if !label.is_disjoint(&name) || !other_label.is_disjoint(&other_name) {
        return None;
    }
    let cross: Vec<&String> = label.intersection(&other_name).collect();
    let cross_other: Vec<&String> = other_label.intersection(&name).collect();
    let words = [*cross.first()?, *cross_other.first()?].map(Clone::clone);
    // What is on where the drop of it is off is no contradiction.
    let is_switch = |token: &&String| {
        matches!(Level::of(token), Some(Level::Switch(_))) || *token == "0" || *token == "1"
    };
    let only_switches = cross
        .into_iter()
        .chain(cross_other)
        .all(|token| is_switch(&token));
    let may_be_negated = texts.iter().any(|text| {
        let without_levels: Vec<String> = tokens(text)
            .into_iter()
            .filter(|token| Level::of(token).is_none())
            .collect();
        has_negation(&without_levels)
    });
    (!(only_switches && may_be_negated)).then_some(words)
}

/// What each of two sets has and the other has not.
fn apart(one: BTreeSet<String>, other: BTreeSet<String>) -> [BTreeSet<String>; 2] {
    [&one - &other, &other - &one]
}

#[cfg(test)]
mod tests {
    use super::super::super::{Candidate, PublishedReadme};
    use super::*;

    const LOW: [f64; 3] = [1.0, 3.0, 2.0];
    const HIGH: [f64; 3] = [5.0, 6.0, 7.0];

    /// What contradicts in a block of two rows under a text, backed by datasets of these names.
    fn found(
        above: &str,
        labels: [&str; 2],
        names: [&str; 2],
    ) -> Vec<(usize, usize, ContradictionKind)> {
        found_at("nic/topic/results/label", above, labels, names)
    }

    fn found_at(
        place: &str,
        above: &str,
        [low, high]: [&str; 2],
        [low_name, high_name]: [&str; 2],
    ) -> Vec<(usize, usize, ContradictionKind)> {
        let text = format!("{above}\n```\nx {low}\n+ {high}\nx 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n```\n");
        let readme = PublishedReadme::parse(text.as_bytes());
        let index = DatasetIndex::new([
            Candidate {
                place,
                name: low_name,
                values: &LOW,
            },
            Candidate {
                place,
                name: high_name,
                values: &HIGH,
            },
        ]);
        let block = &readme.blocks[0];
        let backing = index.back(&block.block, place);
        let found = label_contradictions(block, &backing, &index, place).into_iter();
        found
            .map(|found| (found.row, found.line, found.contradiction.kind))
            .collect()
    }

    #[test]
    fn a_label_that_names_the_other_rows_dataset_is_exchanged() {
        use ContradictionKind::Exchanged;
        let both = [(0, 3, Exchanged), (1, 4, Exchanged)];
        for (labels, names) in [
            (["off", "on"], ["on.pps", "off.pps"]),
            (
                ["disabled", "enabled (default)"],
                ["on_default.pps", "off.pps"],
            ),
            (["4 queues", "8 queues"], ["q8.8.pps", "q4.4.pps"]),
            (["r1", "r1 with D27401"], ["r1D27401.pps", "r1.pps"]),
            (["pf", "ipfw"], ["ipfw.pps", "pf.pps"]),
        ] {
            assert_eq!(found("", labels, names), both, "{labels:?}");
        }
    }

    #[test]
    fn a_label_that_names_its_dataset_or_none_is_right() {
        for (labels, names) in [
            (["off", "on"], ["off.pps", "on.pps"]),
            (["off.pps", "on.pps"], ["off.pps", "on.pps"]),
            (
                ["redirect on", "redirect off"],
                ["drop_redirect_off", "drop_redirect_on"],
            ),
            (["without x", "with x"], ["x_on", "x_off"]),
            (["first", "second"], ["a", "b"]),
            (["r1", "r1 with D27401"], ["r1.pps", "r1D27401.pps"]),
            (["pf on", "pf off"], ["a", "b"]),
        ] {
            assert_eq!(found("", labels, names), [], "{labels:?}");
        }
        let place = "nic/icmp_drop_redirect/results/label";
        assert_eq!(found_at(place, "", ["on", "off"], ["off", "on"]), []);
    }

    #[test]
    fn a_label_may_name_another_dataset_of_the_folder() {
        use ContradictionKind::NamesAnother;
        assert_eq!(
            found("", ["b.pps", "something"], ["a.pps", "b.pps"]),
            [(0, 3, NamesAnother)]
        );
        assert_eq!(found("", ["c.pps", "b.pps"], ["a.pps", "b.pps"]), []);
    }

    #[test]
    fn headings_and_captions_speak_for_labels_that_are_silent() {
        use ContradictionKind::AddressFamily;
        let names = ["a.inet4", "b.inet4"];
        let labels = ["a", "b"];
        let both = |line| [(0, line, AddressFamily), (1, line, AddressFamily)];
        assert_eq!(found("### IPv6\n", labels, names), both(1));
        assert_eq!(found("IPv6:\n", labels, names), both(1));
        for above in [
            "### IPv4",
            "# IPv6\n## other",
            "IPv6 is faster than IPv4:",
            "see IPv6",
            "## IPv6\nhere:",
        ] {
            assert_eq!(found(above, labels, names), [], "{above}");
        }
    }
}
