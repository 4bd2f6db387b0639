//! Variants that were sent other frames than those that they stand beside: of another size, or of other flows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fwdlab_archive::lint::Finding;
use fwdlab_pkt_gen::Command;

use crate::RunGroup;
use crate::lint::OTHER_FRAMES;

use super::loads::is_inet6;
use super::{Folder, shown};

/// In what frames of the same family differ.
#[derive(Clone, Copy, Debug)]
enum Property {
    Size,
    Flows,
}

impl Property {
    fn of(self, command: &Command) -> Option<u128> {
        match self {
            Self::Size => command.packet_size_bytes.map(u128::from),
            Self::Flows => command.flows(),
        }
    }

    fn text(self, value: u128) -> String {
        match self {
            Self::Size => format!("frames of {value} bytes"),
            Self::Flows if value == 1 => "1 flow".to_owned(),
            Self::Flows => format!("{value} flows"),
        }
    }

    /// What the log says of it.
    fn evidence(self, value: u128) -> String {
        match self {
            Self::Size => format!("-l {value}"),
            Self::Flows => self.text(value),
        }
    }

    /// The words of a name that say that it is what the variants differ in.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Size => &[
                "size", "sizes", "frame", "frames", "imix", "mtu", "jumbo", "bytes", "length",
            ],
            Self::Flows => &[
                "flow", "flows", "session", "sessions", "source", "sources", "host", "hosts",
                "state", "states",
            ],
        }
    }

    /// The numbers by which names call a value.
    fn numbers(self, value: u128) -> impl Iterator<Item = u128> {
        let other = match self {
            // `-l` leaves the frame check sequence out, and a packet is less by its Ethernet header.
            Self::Size => [value.checked_add(4), value.checked_sub(14)],
            Self::Flows => {
                [1_000, 1_000_000].map(|unit| value.is_multiple_of(unit).then_some(value / unit))
            }
        };
        [Some(value)].into_iter().chain(other).flatten()
    }
}

/// What the senders of a variant were asked for, with the first log of each.
struct Sent<'a> {
    group: &'a RunGroup,
    values: BTreeMap<u128, usize>,
}

/// Variants whose frames are others than those that they stand beside, where no name says that they are.
pub(super) fn lint_frames(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    for property in [Property::Size, Property::Flows] {
        let mut alike: BTreeMap<(&Path, Option<bool>), Vec<Sent<'_>>> = BTreeMap::new();
        for group in &folder.folder.groups {
            for (family, values) in by_family(folder, group, property) {
                let of_family = alike.entry((&group.folder, family)).or_default();
                of_family.push(Sent { group, values });
            }
        }
        for variants in alike.into_values() {
            lint_property(folder, property, &variants, findings);
        }
    }
}

fn by_family(
    folder: Folder<'_>,
    group: &RunGroup,
    property: Property,
) -> BTreeMap<Option<bool>, BTreeMap<u128, usize>> {
    let mut by_family: BTreeMap<Option<bool>, BTreeMap<u128, usize>> = BTreeMap::new();
    for run in &group.runs {
        for (index, log) in run.senders.iter().zip(run.sent(&folder.tree.files)) {
            let command = log.command.as_ref();
            if let Some((command, value)) =
                command.and_then(|command| Some((command, property.of(command)?)))
            {
                let values = by_family.entry(is_inet6(command)).or_default();
                values.entry(value).or_insert(*index);
            }
        }
    }
    by_family
}

fn lint_property(
    folder: Folder<'_>,
    property: Property,
    variants: &[Sent<'_>],
    findings: &mut Vec<Finding>,
) {
    let mut count_of: BTreeMap<u128, usize> = BTreeMap::new();
    for value in variants.iter().flat_map(|variant| variant.values.keys()) {
        *count_of.entry(*value).or_default() += 1;
    }
    // Three are a sweep.
    if count_of.len() != 2 || is_named(folder, property, variants, count_of.keys().copied()) {
        return;
    }
    let usual = match property {
        // Of as many the smaller: most benches send the smallest frames.
        Property::Size => count_of.iter().rev().max_by_key(|(_, count)| **count),
        // Most send thousands of flows.
        Property::Flows => count_of.iter().max_by_key(|(_, count)| **count),
    };
    let Some((&usual, &most)) = usual else {
        return;
    };
    let Some(usual_log) = variants
        .iter()
        .find_map(|variant| variant.values.get(&usual))
    else {
        return;
    };
    let odd: Vec<&Sent<'_>> = variants
        .iter()
        .filter(|variant| variant.values.keys().any(|value| *value != usual))
        .collect();
    // Where both are those of many, the runs were planned so.
    if odd.len() > 1 && odd.len() * 2 >= most {
        return;
    }
    for variant in odd {
        let mut values = variant.values.iter();
        let Some((&value, &sender)) = values.find(|(value, _)| **value != usual) else {
            continue;
        };
        let sentence = format!(
            "{} was sent {}, and the variants beside it {}",
            shown(&variant.group.key),
            property.text(value),
            property.text(usual)
        );
        let finding = folder
            .finding(&OTHER_FRAMES, sentence)
            .with(folder.published(sender, property.evidence(value)))
            .with(folder.derived(*usual_log, property.evidence(usual)));
        findings.push(finding);
    }
}

/// Whether names say that it is what differs: those of the variants, or that of the folder.
fn is_named(
    folder: Folder<'_>,
    property: Property,
    variants: &[Sent<'_>],
    values: impl Iterator<Item = u128>,
) -> bool {
    let numbers: BTreeSet<u128> = values.flat_map(|value| property.numbers(value)).collect();
    let says = |name: &str| {
        let name = name.to_lowercase();
        let mut words = name.split(|character: char| !character.is_ascii_alphanumeric());
        words.any(|word| {
            let number = word.trim_end_matches(|character: char| !character.is_ascii_digit());
            property.words().contains(&word)
                || number.parse().is_ok_and(|number| numbers.contains(&number))
        })
    };
    let path = folder.directory();
    variants.iter().any(|variant| says(&variant.group.key))
        || path
            .iter()
            .rev()
            .take(3)
            .any(|name| says(&name.to_string_lossy()))
}
