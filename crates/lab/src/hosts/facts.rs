//! What is so on a DUT: everything that may change how it forwards, by name, so that variants can be proved to
//! differ in nothing but what is varied.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::thread::sleep;
use std::time::Duration;

use fwdlab_model::VariantName;

use crate::LabError;

/// Names and values: `sysctl net.ipv4.ip_forward`, `offload eth1 generic-receive-offload`.
pub(super) type Facts = BTreeMap<String, String>;

/// How often, and how long after each other, a host is looked at to find what changes by itself.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(700);

/// The facts of a host on which nobody changes anything, as they change all the same: status that kernels show
/// where settings are.
pub(super) fn restless(
    mut facts: impl FnMut() -> Result<Facts, LabError>,
) -> Result<BTreeSet<String>, LabError> {
    let first = facts()?;
    let mut restless = BTreeSet::new();
    for _ in 1..LOOKS {
        sleep(BETWEEN_LOOKS);
        restless.extend(difference(&first, &facts()?).into_keys());
    }
    Ok(restless)
}

/// The facts that differ, with both values; an empty one where it is no fact of that side.
pub(super) fn difference(one: &Facts, other: &Facts) -> BTreeMap<String, (String, String)> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let value = |facts: &Facts, name: &str| facts.get(name).cloned().unwrap_or_default();
    names
        .into_iter()
        .filter(|name| one.get(*name) != other.get(*name))
        .map(|name| (name.clone(), (value(one, name), value(other, name))))
        .collect()
}

/// What every variant was found to be when it was first looked at, in a block that counts.
#[derive(Debug, Default)]
pub(super) struct KnownFacts {
    of: BTreeMap<VariantName, Facts>,
    /// The variants that were first looked at in the attempt that is under way.
    new: BTreeSet<VariantName>,
}

impl KnownFacts {
    /// What of a variant is another than when it was first looked at, which may be now.
    pub(super) fn another(&mut self, name: &VariantName, now: Facts) -> Option<String> {
        let Some(known) = self.of.get(name) else {
            self.of.insert(name.clone(), now);
            self.new.insert(name.clone());
            return None;
        };
        let differing = difference(known, &now);
        (!differing.is_empty()).then(|| described(&differing))
    }

    /// Whether a variant was first looked at in the attempt that is under way, so that another look has to confirm it.
    pub(super) fn is_new(&self, name: &VariantName) -> bool {
        self.new.contains(name)
    }

    /// Forgets what was first seen in an attempt that has ended, unless its block counts.
    pub(super) fn end_attempt(&mut self, counts: bool) {
        for name in std::mem::take(&mut self.new) {
            if !counts {
                self.of.remove(&name);
            }
        }
    }

    /// The facts of the variants that were looked at.
    pub(super) fn by_variant(&self) -> &BTreeMap<VariantName, Facts> {
        &self.of
    }
}

/// What is not as it was: new facts come with modules, which a rule may need and nobody takes out again.
pub(super) fn left(before: &Facts, after: &Facts) -> BTreeMap<String, (String, String)> {
    let mut left = difference(before, after);
    left.retain(|name, _| before.contains_key(name) && name != "modules");
    left
}

/// Facts that differ, then and now: what is gone and what is new of those that are lists, and both values of others. Some
/// lines, of which no fact takes those of another, how many more there are, and facts without a line.
pub(super) fn described(differing: &BTreeMap<String, (String, String)>) -> String {
    const LINES_MAX: usize = 6;
    let parts: Vec<Part> = differing
        .iter()
        .flat_map(|(name, (then, now))| parts(name, then, now, LINES_MAX))
        .collect();
    let mut shares = vec![0; parts.len()];
    let mut left = LINES_MAX;
    let mut is_shared = false;
    // A line for each in turn, until there are no more of either.
    while !is_shared {
        is_shared = true;
        for (share, part) in shares.iter_mut().zip(&parts) {
            if left > 0 && *share < part.lines.len() {
                *share += 1;
                left -= 1;
                is_shared = false;
            }
        }
    }
    let shown = parts.iter().zip(&shares);
    let lines: Vec<&str> = shown
        .flat_map(|(part, share)| &part.lines[..*share])
        .map(String::as_str)
        .collect();
    let mut text = lines.join("; ");
    let count: usize = parts.iter().map(|part| part.count).sum();
    if count > lines.len() {
        text += &format!("; and {} more", count - lines.len());
    }
    let without = parts.iter().zip(&shares).filter(|(_, share)| **share == 0);
    let mut without: Vec<&str> = without.map(|(part, _)| part.name).collect();
    without.dedup();
    if !without.is_empty() {
        let others = without.len().saturating_sub(LINES_MAX);
        without.truncate(LINES_MAX);
        text += &format!(", of {}", without.join(", "));
        if others > 0 {
            text += &format!(" and {others} other facts");
        }
    }
    text
}

/// What is gone of a fact, or what is new.
struct Part<'a> {
    name: &'a str,
    /// The first of its lines.
    lines: Vec<String>,
    count: usize,
}

/// The parts in which a fact differs, each with so many lines at most.
fn parts<'a>(name: &'a str, then: &str, now: &str, lines_max: usize) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let is_listed = [then, now].iter().any(|value| value.lines().count() != 1);
    if is_listed {
        for (word, from, other) in [("gone", then, now), ("new", now, then)] {
            // A routing table may have a million lines.
            let other: HashSet<&str> = other.lines().collect();
            let of_one = || from.lines().filter(|line| !other.contains(line));
            let lines = of_one().take(lines_max).map(|line| {
                let [line, _] = shown(line, "");
                format!("{word}: {name} {line}")
            });
            let (lines, count) = (lines.collect(), of_one().count());
            parts.push(Part { name, lines, count });
        }
        parts.retain(|part| part.count > 0);
    }
    // One value each, or the same lines in another order.
    if parts.is_empty() {
        let [then, now] = shown(then, now);
        parts.push(Part {
            name,
            lines: vec![format!("{name} was {then:?} and is {now:?}")],
            count: 1,
        });
    }
    parts
}

/// Two values of a fact, each on one line of bounded length, from shortly before where they differ.
pub(super) fn shown(one: &str, other: &str) -> [String; 2] {
    const CHARACTERS_MAX: usize = 100;
    const IN_FRONT: usize = 20;
    let words = |value: &str| value.split_whitespace().collect::<Vec<_>>().join(" ");
    let values = [words(one), words(other)];
    let alike = values[0]
        .chars()
        .zip(values[1].chars())
        .take_while(|(one, other)| one == other)
        .count();
    // A value that fits is shown whole.
    let fits = values
        .iter()
        .all(|value| value.chars().count() <= CHARACTERS_MAX);
    let skipped = if fits {
        0
    } else {
        alike.saturating_sub(IN_FRONT)
    };
    values.map(|value| {
        let mut rest = value.chars().skip(skipped);
        let mut shown: String = rest.by_ref().take(CHARACTERS_MAX).collect();
        if skipped > 0 {
            shown.insert(0, '…');
        }
        if rest.next().is_some() {
            shown.push('…');
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_seen_in_an_attempt_that_does_not_count_is_forgotten() {
        let name = VariantName::from_label("on");
        let routes = |value: &str| Facts::from([("routes".to_owned(), value.to_owned())]);
        let mut known = KnownFacts::default();
        assert_eq!(known.another(&name, routes("odd")), None);
        assert!(known.is_new(&name));
        assert!(known.another(&name, routes("usual")).is_some());
        known.end_attempt(false);
        assert_eq!(known.another(&name, routes("usual")), None);
        known.end_attempt(true);
        assert!(!known.is_new(&name));
        // What was seen before stays.
        assert!(known.another(&name, routes("odd")).is_some());
        known.end_attempt(false);
        assert_eq!(known.another(&name, routes("usual")), None);
    }

    #[test]
    fn a_difference_has_both_values() {
        let facts = |pairs: &[(&str, &str)]| -> Facts {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect()
        };
        let found = difference(
            &facts(&[("a", "1"), ("b", "2")]),
            &facts(&[("a", "1"), ("c", "3")]),
        );
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        let expected = [
            ("b".to_owned(), pair("2", "")),
            ("c".to_owned(), pair("", "3")),
        ];
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn what_differs_is_described_line_by_line() {
        let differing = |facts: &[(&str, &str, &str)]| {
            let facts = facts.iter().map(|(name, then, now)| {
                ((*name).to_owned(), ((*then).to_owned(), (*now).to_owned()))
            });
            described(&facts.collect())
        };
        assert_eq!(
            differing(&[
                (
                    "address eth1",
                    "3: eth1  inet 10.0.0.1/24\n3: eth1  inet6 fe80::1/64",
                    "3: eth1  inet6 fe80::1/64"
                ),
                ("nft ruleset", "a\nb", "b\na"),
                ("routes", "", "10.0.0.0/8 dev eth1"),
                ("sysctl x", "1", "2"),
            ]),
            "gone: address eth1 3: eth1 inet 10.0.0.1/24; nft ruleset was \"a b\" and is \"b a\"; \
             new: routes 10.0.0.0/8 dev eth1; sysctl x was \"1\" and is \"2\""
        );
        let many: Vec<String> = (0..9).map(|number| number.to_string()).collect();
        let text = differing(&[("routes", &many.join("\n"), "")]);
        assert!(
            text.starts_with("gone: routes 0; gone: routes 1; "),
            "{text}"
        );
        assert!(text.ends_with("gone: routes 5; and 3 more"), "{text}");
        let text = differing(&[
            ("address eth1", "a", "b"),
            ("routes", &many.join("\n"), "new\nones"),
            ("sysctl x", "1", "2"),
        ]);
        assert_eq!(
            text,
            "address eth1 was \"a\" and is \"b\"; gone: routes 0; gone: routes 1; new: routes new; new: routes ones; \
             sysctl x was \"1\" and is \"2\"; and 7 more"
        );
        let names: Vec<String> = (10..30).map(|number| format!("sysctl {number}")).collect();
        let all: Vec<_> = names.iter().map(|name| (&**name, "1", "2")).collect();
        let text = differing(&all);
        assert!(
            text.contains("sysctl 15 was \"1\" and is \"2\"; and 14 more, of sysctl 16, "),
            "{text}"
        );
        assert!(text.ends_with(", sysctl 21 and 8 other facts"), "{text}");
    }

    #[test]
    fn long_values_are_shown_from_where_they_differ() {
        assert_eq!(shown("a\n b", "c"), ["a b", "c"]);
        let long = |end: &str| format!("{}{end} {}", "x ".repeat(80), "y ".repeat(80));
        let [one, other] = shown(&long("up"), &long("down"));
        assert!(one.starts_with("…x x") && one.contains(" up y"), "{one}");
        assert!(other.contains(" down y") && other.ends_with('…'), "{other}");
    }

    proptest! {
        #[test]
        fn any_values_are_shown(one: String, other: String) {
            let _ = shown(&one, &other);
            let _ = described(&BTreeMap::from([(String::new(), (one, other))]));
        }
    }
}
