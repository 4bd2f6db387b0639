//! The names of a bench's files: `bench[.<image>][.<configuration>][.<pktgen>][.<iteration>].<role>`.

use std::collections::BTreeSet;

/// What a file of a bench is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// `.info`: which image, configuration and traffic; one for all iterations.
    Info,
    /// The receiver's log.
    Receiver,
    /// The log of a sender; the archive has up to four: `sender`, `sender_2`, `sender_gen2`,
    /// `sender_gen2_2`.
    Sender(u8),
    /// `pmc.graph`.
    CallGraph,
    /// `pmc.stack`, `pmc.folded`.
    FoldedStacks,
    /// `pmc.log`.
    ProfileLog,
    /// `pmc.out`: samples in pmcstat's own form.
    ProfileSamples,
    /// `pmc.svg`, or a picture of another kind.
    Picture,
    /// `stats.data`, `stats.log`, `before`, `during`, `after`: counters of the DUT.
    DutCounters,
}

/// Endings and their roles; the longest that fits counts.
const ENDINGS: &[(&str, Role)] = &[
    ("info", Role::Info),
    ("receiver", Role::Receiver),
    ("sender", Role::Sender(0)),
    ("sender_2", Role::Sender(1)),
    ("sender_gen2", Role::Sender(2)),
    ("sender_gen2_2", Role::Sender(3)),
    ("pmc.graph", Role::CallGraph),
    ("pmc.stack", Role::FoldedStacks),
    ("pmc.folded", Role::FoldedStacks),
    ("pmc.folded.txt", Role::FoldedStacks),
    ("pmc.log", Role::ProfileLog),
    ("pmc.out", Role::ProfileSamples),
    ("pmc.svg", Role::Picture),
    ("graph", Role::CallGraph),
    ("stack", Role::FoldedStacks),
    ("folded", Role::FoldedStacks),
    ("folded.txt", Role::FoldedStacks),
    ("svg", Role::Picture),
    ("png", Role::Picture),
    ("stats.data", Role::DutCounters),
    ("stats.log", Role::DutCounters),
    ("before", Role::DutCounters),
    ("during", Role::DutCounters),
    ("after", Role::DutCounters),
];

/// A name taken apart as far as it can be alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchName<'a> {
    /// What stands between `bench.` and the role: the key, and mostly an iteration.
    pub stem: &'a str,
    /// What the file is.
    pub role: Role,
}

impl<'a> BenchName<'a> {
    /// `None` where it is no name of a bench's file.
    #[must_use]
    pub fn parse(name: &'a str) -> Option<Self> {
        let rest = name.strip_prefix("bench.")?;
        let endings = ENDINGS.iter().filter_map(|&(ending, role)| {
            let stem = rest.strip_suffix(ending)?;
            let stem = stem.strip_suffix('.').or(stem.is_empty().then_some(""))?;
            Some(Self { stem, role })
        });
        endings.min_by_key(|name| name.stem.len())
    }

    /// The key and the iteration, given the keys that `.info` files name.
    ///
    /// Keys hold dots and numbers: `8.2` may be the second iteration of `8` or a key of its own
    /// whose iteration was left out, as is often done with profiles. Where a `.info` names only the
    /// one of the two, that decides; else a number at the end is an iteration.
    #[must_use]
    pub fn split(self, keys: &BTreeSet<&str>) -> (&'a str, Option<u32>) {
        let whole = (self.stem, None);
        if self.role == Role::Info {
            return whole;
        }
        let (key, iteration) = match self.stem.rsplit_once('.') {
            Some((key, iteration)) => (key, iteration),
            // A bench of one variant needs no key.
            None => ("", self.stem),
        };
        let is_number =
            !iteration.is_empty() && iteration.bytes().all(|byte| byte.is_ascii_digit());
        let Some(iteration) = iteration.parse().ok().filter(|_| is_number) else {
            return whole;
        };
        if keys.contains(self.stem) && !keys.contains(key) {
            return whole;
        }
        (key, Some(iteration))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split<'a>(name: &'a str, keys: &[&str]) -> Option<(&'a str, Option<u32>, Role)> {
        let name = BenchName::parse(name)?;
        let (key, iteration) = name.split(&keys.iter().copied().collect());
        Some((key, iteration, name.role))
    }

    #[test]
    fn names_come_apart_with_dots_in_every_part() {
        let cases = [
            ("bench.ht_off.1.receiver", "ht_off", Some(1), Role::Receiver),
            (
                "bench.11.0.ipf-stateless.inet6.10.sender_gen2_2",
                "11.0.ipf-stateless.inet6",
                Some(10),
                Role::Sender(3),
            ),
            ("bench.4479.inet4.info", "4479.inet4", None, Role::Info),
            ("bench.off.pmc.graph", "off", None, Role::CallGraph),
            ("bench.off.1.pmc.log", "off", Some(1), Role::ProfileLog),
            ("bench.8.1.receiver", "8", Some(1), Role::Receiver),
            ("bench.1.receiver", "", Some(1), Role::Receiver),
            ("bench.x.stats.data", "x", None, Role::DutCounters),
        ];
        for (name, key, iteration, role) in cases {
            assert_eq!(split(name, &[]), Some((key, iteration, role)), "{name}");
        }
        for name in ["gnuplot.data", "bench.x", "benchx.receiver", "bench."] {
            assert_eq!(split(name, &[]), None, "{name}");
        }
    }

    #[test]
    fn an_info_says_whether_a_number_is_an_iteration() {
        let of = |name, keys: &[&str]| {
            let (key, iteration, _) = split(name, keys).unwrap();
            (key, iteration)
        };
        assert_eq!(of("bench.pf.16.receiver", &["pf"]), ("pf", Some(16)));
        assert_eq!(of("bench.pf.16.receiver", &["pf.16"]), ("pf.16", None));
        assert_eq!(
            of("bench.pf.16.receiver", &["pf", "pf.16"]),
            ("pf", Some(16))
        );
        assert_eq!(of("bench.16.pmc.graph", &["16"]), ("16", None));
        assert_eq!(of("bench.99999999999.receiver", &[]), ("99999999999", None));
    }

    proptest! {
        #[test]
        fn a_name_that_is_put_together_comes_apart(
            key in "[a-z0-9.-]{0,12}[a-z]",
            iteration in 1..100_u32,
            ending in 0..ENDINGS.len(),
        ) {
            let (ending, role) = ENDINGS[ending];
            let name = format!("bench.{key}.{iteration}.{ending}");
            let expected = if role == Role::Info {
                (format!("{key}.{iteration}"), None)
            } else {
                (key, Some(iteration))
            };
            // `x.pmc` and `graph` are `x` and `pmc.graph`.
            prop_assume!(!expected.0.ends_with(".pmc") && !expected.0.ends_with(".stats"));
            let found = split(&name, &[]);
            prop_assert_eq!(found, Some((expected.0.as_str(), expected.1, role)));
        }

        #[test]
        fn any_name_is_one_or_none(name: String) {
            if let Some(found) = BenchName::parse(&name) {
                let _ = found.split(&BTreeSet::new());
            }
        }
    }
}
