//! The experiments that repeat published ones, in the lab where they can be run and in the published one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_model::{AddressFamily, Binding, Knob, LabKind, Load, Resolved, System, load, load_lab};

const INET: &[AddressFamily] = &[AddressFamily::Inet];
const BOTH: &[AddressFamily] = &[AddressFamily::Inet, AddressFamily::Inet6];

/// What the published page has.
struct Published {
    experiment: &'static str,
    lab: &'static str,
    /// How many variants each comparison has beside its baseline.
    compared: &'static [usize],
    variants: usize,
    families: &'static [AddressFamily],
    /// The levels of the first comparison's baseline.
    baseline: &'static [(&'static str, i64)],
    held: &'static [(&'static str, i64)],
    rebooting: &'static [&'static str],
}

const IX_HELD: &[(&str, i64)] = &[
    ("iflib.tx_abdicate", 1),
    ("iflib.override_ntxds", 1024),
    ("iflib.override_nrxds", 1024),
    ("kern.random.harvest.mask", 351),
    ("net.inet.ip.redirect", 0),
    ("net.inet6.ip6.redirect", 0),
];
/// The published configurations switch prefetching off too, which the text does not say.
const IX_HELD_WITHOUT_PREFETCH: &[(&str, i64)] = &[
    ("iflib.tx_abdicate", 1),
    ("iflib.override_ntxds", 1024),
    ("iflib.override_nrxds", 1024),
    ("kern.random.harvest.mask", 351),
    ("net.inet.ip.redirect", 0),
    ("net.inet6.ip6.redirect", 0),
    ("iflib.prefetch", 0),
];

const PUBLISHED: [Published; 5] = [
    Published {
        experiment: "hyperthreading",
        lab: "aoostar-x710",
        compared: &[4, 1, 1],
        variants: 5,
        families: INET,
        baseline: &[
            ("machdep.hyperthreading_allowed", 0),
            ("machdep.hyperthreading_intr_allowed", 0),
            ("iflib.use_logical_cores", 0),
        ],
        held: &[
            ("iflib.tx_abdicate", 1),
            ("kern.random.harvest.mask", 351),
            ("net.inet.ip.redirect", 0),
            ("net.inet6.ip6.redirect", 0),
        ],
        rebooting: &[
            "machdep.hyperthreading_allowed",
            "machdep.hyperthreading_intr_allowed",
            "iflib.use_logical_cores",
        ],
    },
    Published {
        experiment: "tx_reclaim_thresh",
        lab: "atom-c2758-82599",
        compared: &[5],
        variants: 6,
        families: INET,
        baseline: &[("iflib.simple_tx", 0), ("iflib.tx_reclaim_thresh", 0)],
        held: IX_HELD_WITHOUT_PREFETCH,
        rebooting: &["iflib.simple_tx"],
    },
    Published {
        experiment: "simple_tx-prefetch",
        lab: "atom-c2758-82599",
        compared: &[3],
        variants: 4,
        families: INET,
        baseline: &[("iflib.simple_tx", 0), ("iflib.prefetch", 0)],
        held: IX_HELD,
        rebooting: &["iflib.simple_tx", "iflib.prefetch"],
    },
    Published {
        experiment: "harvest-mask",
        lab: "aoostar-x710",
        compared: &[1],
        variants: 2,
        families: BOTH,
        baseline: &[("kern.random.harvest.mask", 135_647)],
        held: &[("net.inet.ip.redirect", 0), ("net.inet6.ip6.redirect", 0)],
        rebooting: &[],
    },
    Published {
        experiment: "l2-prepend",
        lab: "atom-c2758-t540",
        compared: &[1],
        variants: 2,
        families: BOTH,
        baseline: &[("l2_prepend", 0)],
        held: &[
            ("kern.random.harvest.mask", 351),
            ("net.inet.ip.redirect", 0),
            ("net.inet6.ip6.redirect", 0),
        ],
        rebooting: &["l2_prepend"],
    },
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn resolved(experiment: &str, lab: Option<&str>) -> Resolved {
    let experiment = repository().join(format!("experiments/seeds/{experiment}.toml"));
    let lab = lab.map(|lab| repository().join(format!("labs/{lab}.toml")));
    let read = |path: &Path| fs::read_to_string(path);
    match load(&experiment, lab.as_deref(), &read, 7) {
        Ok(loaded) => {
            assert_eq!(loaded.warnings.render(false), "");
            loaded.resolved
        }
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn names(resolved: &Resolved, is_varied: bool) -> BTreeSet<&str> {
    let factors = resolved.factors.iter();
    factors
        .filter(|factor| factor.is_varied() == is_varied)
        .map(|factor| factor.name.as_str())
        .collect()
}

#[test]
fn each_is_what_was_published_in_either_lab() {
    for published in &PUBLISHED {
        let name = published.experiment;
        let here = resolved(name, None);
        let there = resolved(name, Some(published.lab));
        assert_eq!(
            (here.lab.kind, there.lab.kind),
            (LabKind::Router, LabKind::Ssh(System::Freebsd))
        );
        for resolved in [&here, &there] {
            let compared: Vec<usize> = resolved
                .comparisons
                .iter()
                .map(|comparison| comparison.variants.len())
                .collect();
            assert_eq!(compared, published.compared, "{name}");
            // And the A/A control.
            assert_eq!(resolved.variants.len(), published.variants + 1, "{name}");
            assert_eq!(resolved.traffics[0].families, published.families, "{name}");
            assert_eq!(resolved.traffics[0].flows(), 2000);
            assert_eq!(
                (
                    resolved.traffics[0].sources,
                    resolved.traffics[0].destinations
                ),
                (20, 100)
            );
            let [size] = resolved.traffics[0].frame_sizes.as_slice() else {
                panic!("{name}: {:?}", resolved.traffics[0].frame_sizes);
            };
            assert_eq!(size.bytes, 64);
            assert_eq!(resolved.traffics[0].load, Load::Overload, "{name}");
            assert!(resolved.question.starts_with("Impact of "), "{name}");
            assert!(
                resolved.question.ends_with(" on forwarding performance"),
                "{name}"
            );

            let baseline = resolved.variant(&resolved.comparisons[0].baseline).unwrap();
            let expected: BTreeSet<_> = published
                .baseline
                .iter()
                .chain(published.held)
                .copied()
                .collect();
            let levels: BTreeSet<(&str, i64)> = baseline
                .levels
                .iter()
                .map(|(factor, level)| (factor.as_str(), level.to_string().parse().unwrap()))
                .collect();
            assert_eq!(levels, expected, "{name}");
            assert_eq!(
                names(resolved, false),
                published.held.iter().map(|(name, _)| *name).collect(),
                "{name}"
            );
            // Where a variant does not say, it is as the baseline.
            for factor in &resolved.factors {
                assert_eq!(baseline.levels[&factor.name], factor.default, "{name}");
            }
        }
        assert_eq!(here.design.rounds, 10);
        let rebooting: Vec<&str> = there
            .rebooting_factors()
            .iter()
            .map(|factor| factor.name.as_str())
            .collect();
        assert_eq!(rebooting, published.rebooting, "{name}");
    }
}

#[test]
fn there_are_no_others() {
    let entries = fs::read_dir(repository().join("experiments/seeds")).unwrap();
    let mut files: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut published = PUBLISHED.map(|published| format!("{}.toml", published.experiment));
    published.sort();
    assert_eq!(files, published);
}

#[test]
fn the_routers_lab_has_every_knob_under_its_name() {
    for knob in Knob::ALL {
        let text = format!(
            "question = \"q\"\n[[factor]]\nname = {:?}\nlevels = [{}]\n",
            knob.name(),
            knob.default_level()
        );
        let lab = repository().join("labs/router.toml");
        let read = |path: &Path| {
            if path == Path::new("x.toml") {
                Ok(text.clone())
            } else {
                fs::read_to_string(path)
            }
        };
        let resolved = load(Path::new("x.toml"), Some(&lab), &read, 7)
            .unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
            .resolved;
        assert_eq!(resolved.lab.bindings[knob.name()], Binding::Knob { knob });
    }
}

#[test]
fn labs_of_published_experiments_say_what_they_are_made_of() {
    for (lab, parts) in [
        ("atom-c2758-82599", ["Atom C2758", "82599", "n302145"]),
        ("aoostar-x710", ["Ryzen 7 PRO 8845HS", "X710", "n302145"]),
        ("atom-c2758-t540", ["Atom C2758", "T540-CR", "n277567"]),
    ] {
        let path = repository().join(format!("labs/{lab}.toml"));
        let (lab, load) = load_lab(&path, &|path: &Path| fs::read_to_string(path)).unwrap();
        let description = lab.description.unwrap();
        for part in parts {
            assert!(description.contains(part), "{description}");
        }
        assert_eq!(lab.link_gbps, Some(10.0));
        assert_eq!(load, Load::Overload);
    }
}
