//! Releases of operating systems, in the order in which they came.

use std::cmp::Ordering;

use fwdlab_netbenches::{CommitCount, OsRevision};

/// Compares the releases of two kernels: by system, by the numbers of the version, by the stage of the
/// release, then by the revision of its source. `FreeBSD 9.3`, `FreeBSD 10.1-RELEASE`,
/// `FreeBSD 11.0-CURRENT r284000` and `FreeBSD 11.0-CURRENT r290000` are in order; so are `6.9`,
/// `6.18.0-rc3`, `6.18.0` and `6.18.44`.
///
/// Revisions that are a bare hash come after those that are counted, and are equal among themselves: only
/// a date tells which of them came first.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    Release::parse(one).cmp(&Release::parse(other))
}

/// What the order rests on; the fields are in order of their weight.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release {
    /// The text before the revision, with a [`Part::End`] behind it.
    parts: Vec<Part>,
    revision: Option<Revision>,
    is_modified: bool,
}

/// A part of a version: what comes earlier is smaller.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A stage before the release: `6.18.0-rc3` comes before `6.18.0`.
    Before(Before),
    End,
    /// The release, and the branch that goes on from it.
    Release,
    Stable,
    /// Its digits without leading zeros, shorter ones first.
    Number(usize, String),
    /// In small letters.
    Word(String),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Before {
    Current,
    Prerelease,
    Alpha,
    Beta,
    Candidate,
}

/// How the source is numbered, in the order in which FreeBSD took these up, and its number.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Revision {
    Subversion(Option<u64>),
    AllCommits(Option<u64>),
    FirstParents(Option<u64>),
    Hash,
}

impl Release {
    fn parse(text: &str) -> Self {
        let text = text.trim();
        let last_word = text.rsplit_once(char::is_whitespace);
        let revision =
            last_word.and_then(|(rest, word)| Some((rest.trim_end(), OsRevision::parse(word)?)));
        let (version, revision) = match revision {
            Some((version, revision)) => (version, Some(revision)),
            None => (text, None),
        };
        Self {
            parts: parts(version),
            is_modified: revision
                .as_ref()
                .is_some_and(|revision| revision.is_modified),
            revision: revision.map(|revision| match revision.count {
                Some(CommitCount::Subversion) => Revision::Subversion(revision.number),
                Some(CommitCount::All) => Revision::AllCommits(revision.number),
                Some(CommitCount::FirstParents) => Revision::FirstParents(revision.number),
                None => Revision::Hash,
            }),
        }
    }
}

/// The numbers and words of a version; what is between them does not count.
fn parts(version: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = version;
    while let Some(first) = rest.chars().next() {
        let is_alike = |character: char| {
            if first.is_ascii_digit() {
                character.is_ascii_digit()
            } else {
                character.is_alphabetic() && first.is_alphabetic()
            }
        };
        let length = rest
            .find(|character| !is_alike(character))
            .unwrap_or(rest.len());
        if length == 0 {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (part, behind) = rest.split_at(length);
        rest = behind;
        parts.push(if first.is_ascii_digit() {
            let digits = part.trim_start_matches('0');
            Part::Number(digits.len(), digits.to_owned())
        } else {
            word(part.to_lowercase())
        });
    }
    parts.push(Part::End);
    parts
}

fn word(word: String) -> Part {
    match word.as_str() {
        "current" => Part::Before(Before::Current),
        "prerelease" => Part::Before(Before::Prerelease),
        "alpha" => Part::Before(Before::Alpha),
        "beta" => Part::Before(Before::Beta),
        "rc" => Part::Before(Before::Candidate),
        "release" => Part::Release,
        "stable" => Part::Stable,
        _ => Part::Word(word),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the catalogue names the systems of the public archive, and some that FreeBSD released besides.
    const FREEBSD: [&str; 31] = [
        "FreeBSD 9.3",
        "FreeBSD 10.0",
        "FreeBSD 10.1-RELEASE",
        "FreeBSD 10.2-RELEASE-p8 r291856M",
        "FreeBSD 10.3-RELEASE r297492M",
        "FreeBSD 10.3-RELEASE-p2 r299108M",
        "FreeBSD 11.0-CURRENT",
        "FreeBSD 11.0-CURRENT r284000",
        "FreeBSD 11.0-CURRENT r287478M",
        "FreeBSD 11.0-CURRENT r290000",
        "FreeBSD 11.0-ALPHA1 r300974",
        "FreeBSD 11.0-ALPHA6 r302331",
        "FreeBSD 11.0-BETA3",
        "FreeBSD 11.0-RC1",
        "FreeBSD 11.0-RELEASE-p1 r306450M",
        "FreeBSD 11.0-RELEASE-p6 r310736M",
        "FreeBSD 11.0-RELEASE-p10 r319985",
        "FreeBSD 11.0-STABLE r312663M",
        "FreeBSD 11.1-PRERELEASE r318516",
        "FreeBSD 11.1-BETA1 r319985",
        "FreeBSD 11.1-RELEASE-p1 r322489",
        "FreeBSD 11.1-RELEASE-p1 r322489M",
        "FreeBSD 11.1-STABLE r327668M",
        "FreeBSD 11.1-STABLE 6694007(master)-dirty",
        "FreeBSD 12.0-CURRENT r302532",
        "FreeBSD 12.0-CURRENT r336223M",
        "FreeBSD 12.0-CURRENT e30bf1a(master)-dirty",
        "FreeBSD 12.2-STABLE n233755-910a898f172-dirty",
        "FreeBSD 13.0-CURRENT r368606M",
        "FreeBSD 13.0-CURRENT c255412",
        "FreeBSD 13.0-CURRENT n245104-0aa2700123e2-dirty",
    ];

    const LINUX: [&str; 12] = [
        "4.19.0",
        "5.10.0-25-amd64",
        "6.1.0-9-amd64",
        "6.1.0-25-amd64",
        "6.9",
        "6.9.12",
        "6.17.0-rc3",
        "6.17.0-rc10",
        "6.17.0",
        "6.18-rc1",
        "6.18",
        "6.18.44",
    ];

    #[test]
    fn releases_and_revisions_are_in_order() {
        for in_order in [&FREEBSD[..], &LINUX[..]] {
            for (place, one) in in_order.iter().enumerate() {
                for other in &in_order[place + 1..] {
                    assert_eq!(compare(one, other), Ordering::Less, "{one} and {other}");
                    assert_eq!(compare(other, one), Ordering::Greater, "{other} and {one}");
                }
            }
        }
    }

    #[test]
    fn a_bare_hash_says_nothing_of_when_it_was() {
        let hashes = [
            "FreeBSD 12.0-CURRENT f1e5c15(master)-dirty",
            "FreeBSD 12.0-CURRENT e30bf1a(master)-dirty",
        ];
        assert_eq!(compare(hashes[0], hashes[1]), Ordering::Equal);
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            prop::sample::select(FREEBSD.to_vec()).prop_map(str::to_owned),
            prop::sample::select(LINUX.to_vec()).prop_map(str::to_owned),
            "[0-9rncRELASE. -]{0,12}",
            any::<String>(),
        ]
    }

    proptest! {
        #[test]
        fn it_is_an_order(mut texts in prop::collection::vec(text(), 3)) {
            texts.sort_by(|one, other| compare(one, other));
            prop_assert_ne!(compare(&texts[0], &texts[1]), Ordering::Greater);
            prop_assert_ne!(compare(&texts[1], &texts[2]), Ordering::Greater);
            prop_assert_ne!(compare(&texts[0], &texts[2]), Ordering::Greater);
            prop_assert_eq!(compare(&texts[0], &texts[0]), Ordering::Equal);
            prop_assert_eq!(compare(&texts[1], &texts[0]), compare(&texts[0], &texts[1]).reverse());
        }

        #[test]
        fn a_version_of_larger_numbers_comes_later(
            numbers in prop::collection::vec(0_u32..2000, 1..4),
            place in 0_usize..3,
            more in 1_u32..2000,
        ) {
            let version = |numbers: &[u32]| {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                format!("FreeBSD {}-RELEASE", numbers.join("."))
            };
            let mut later = numbers.clone();
            later[place % numbers.len()] += more;
            prop_assert_eq!(compare(&version(&numbers), &version(&later)), Ordering::Less);
        }
    }
}
