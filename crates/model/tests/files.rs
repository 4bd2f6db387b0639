//! Experiment and lab files as their author sees them: what they become, and what their errors say.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use fwdlab_model::{
    AddressFamily, Binding, CommandBinding, Diagnostics, Direction, DutInterface, FirstAddresses,
    FrameSize, Knob, LabKind, Level, LoadRegime, Loaded, Order, PortRange, Resolved, RouterLab,
    RouterTester, Stratum, System, Values, load,
};
use insta::assert_snapshot;
use proptest::prelude::*;

const EXPERIMENT: &str = "experiments/quickstart.toml";
/// The lab as the quickstart names it.
const LAB: &str = "experiments/../labs/netns.toml";
/// A lab of each other kind.
const ROUTER: &str = include_str!("everything/router.toml");
const FREEBSD: &str = include_str!("everything/freebsd.toml");
const TEN_RULES: &str = "experiments/../labs/rulesets/ten-stateless-rules.nft";
const CONNTRACK: &str = "experiments/../labs/rulesets/conntrack.nft";

/// Files in memory, by path.
#[derive(Clone)]
struct Files(BTreeMap<PathBuf, String>);

impl Files {
    /// An experiment and a lab as the ready ones are, kept here so that the places in these tests stay
    /// what they are when those grow.
    fn quickstart() -> Self {
        let files = [
            (EXPERIMENT, include_str!("quickstart/experiment.toml")),
            (LAB, include_str!("quickstart/lab.toml")),
            (
                TEN_RULES,
                include_str!("../../../labs/rulesets/ten-stateless-rules.nft"),
            ),
            (
                CONNTRACK,
                include_str!("../../../labs/rulesets/conntrack.nft"),
            ),
        ];
        Self(files.map(|(path, text)| (path.into(), text.into())).into())
    }

    /// An experiment and a lab that use every key.
    fn everything() -> Self {
        Self(BTreeMap::new())
            .with(EXPERIMENT, include_str!("everything/experiment.toml"))
            .with("experiments/lab.toml", include_str!("everything/lab.toml"))
            .with("experiments/rules.nft", "table inet t { }\n")
            .with("experiments/old.pps", "1000000\n1200000.5\n")
    }

    /// An experiment on knobs, and a lab of another kind that uses every key that such have.
    fn knobs(lab: &str) -> Self {
        Self(BTreeMap::new())
            .with(EXPERIMENT, include_str!("everything/knobs.toml"))
            .with("experiments/lab.toml", lab)
    }

    fn with(mut self, path: &str, text: impl Into<String>) -> Self {
        self.0.insert(path.into(), text.into());
        self
    }

    /// One passage of a file changed; it must be there.
    fn changed(self, path: &str, from: &str, to: &str) -> Self {
        let text = &self.0[Path::new(path)];
        assert!(text.contains(from), "{path} does not hold {from:?}");
        let text = text.replacen(from, to, 1);
        self.with(path, text)
    }

    fn without(mut self, path: &str) -> Self {
        self.0.remove(Path::new(path));
        self
    }

    fn load_seeded(&self, drawn_seed: u64) -> Result<Loaded, Diagnostics> {
        let read = |path: &Path| {
            let text = self.0.get(path).cloned();
            text.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
        };
        load(Path::new(EXPERIMENT), None, &read, drawn_seed)
    }

    fn resolved(&self) -> Resolved {
        match self.load_seeded(7) {
            Ok(loaded) => loaded.resolved,
            Err(diagnostics) => panic!("{diagnostics}"),
        }
    }

    fn errors(&self) -> String {
        match self.load_seeded(7) {
            Ok(_) => panic!("nothing was found wrong"),
            Err(diagnostics) => diagnostics.render(false),
        }
    }

    fn warnings(&self) -> String {
        match self.load_seeded(7) {
            Ok(loaded) => loaded.warnings.render(false),
            Err(diagnostics) => panic!("{diagnostics}"),
        }
    }
}

/// A binding of which nobody but its probe frames knows what it does.
const BY_COMMAND: &str = "command = { do = [\"set\", \"{level}\"], undo = [\"reset\"] }";

/// An experiment of one factor, bound to a sysctl, and what follows it.
fn small(rest: &str) -> Files {
    let experiment = format!(
        "question = \"q\"\nlab = \"lab.toml\"\n\
         [[factor]]\nname = \"rp_filter\"\nlevels = [0, 1]\n{rest}"
    );
    Files(BTreeMap::new()).with(EXPERIMENT, experiment).with(
        "experiments/lab.toml",
        "kind = \"netns\"\n[bind.rp_filter]\nsysctl = \"net.ipv4.conf.all.rp_filter\"\n",
    )
}

/// The small experiment with another binding of its factor.
fn bound(levels: &str, binding: &str) -> Files {
    small("")
        .changed(EXPERIMENT, "levels = [0, 1]", &format!("levels = {levels}"))
        .changed(
            "experiments/lab.toml",
            "sysctl = \"net.ipv4.conf.all.rp_filter\"",
            binding,
        )
}

fn labels(resolved: &Resolved) -> Vec<&str> {
    let variants = resolved.variants.iter();
    variants.map(|variant| variant.label.as_str()).collect()
}

fn names(resolved: &Resolved) -> Vec<&str> {
    let variants = resolved.variants.iter();
    variants.map(|variant| variant.name.as_str()).collect()
}

#[test]
fn a_file_in_the_place_of_the_other_is_said_to_be_that() {
    let quickstart = Files::quickstart();
    let text = |path: &str| quickstart.0[Path::new(path)].clone();
    let swapped = Files::quickstart().with(EXPERIMENT, text(LAB));
    assert_snapshot!(swapped.errors(), @r#"
    error: this is a lab file, not an experiment
     --> experiments/quickstart.toml:1:1
      |
    1 | kind = "netns"
      | ^
      |
      = help: name an experiment here, and this file with `--lab FILE`
    "#);
    let swapped = Files::quickstart().with(LAB, text(EXPERIMENT));
    assert!(
        swapped
            .errors()
            .contains("error: this is an experiment, not a lab file"),
        "{}",
        swapped.errors()
    );
}

#[test]
fn the_quickstart_is_what_it_says() {
    let files = Files::quickstart();
    assert_eq!(files.warnings(), "");
    let resolved = files.resolved();
    assert_eq!(resolved.name, "quickstart");
    assert_eq!(resolved.lab.name, "netns");
    assert_eq!(
        names(&resolved),
        [
            "no-packet-filter",
            "nftables-10-stateless-rules",
            "nftables-conntrack",
            "xdp-fib-forwarding",
            "no-packet-filter-again",
        ]
    );
    let control = &resolved.variants[4];
    assert_eq!(control.label, "no packet filter (A/A control)");
    assert_eq!(
        control.control_of.as_ref(),
        Some(&resolved.variants[0].name)
    );
    assert_eq!(control.levels, resolved.variants[0].levels);

    let [comparison] = resolved.comparisons.as_slice() else {
        panic!("{:?}", resolved.comparisons);
    };
    assert_eq!(comparison.baseline, resolved.variants[0].name);
    let others: Vec<_> = resolved.variants[1..4]
        .iter()
        .map(|v| v.name.clone())
        .collect();
    assert_eq!(comparison.variants, others);

    let design = &resolved.design;
    assert_eq!((design.blocks, design.rounds), (8, 10));
    assert_eq!((design.slice_ms, design.settle_ms), (100, 50));
    assert_eq!((design.seed, design.seed_was_drawn), (7, true));
    assert_eq!(resolved.traffics[0].flows(), 2000);
    assert_eq!(resolved.traffics[0].load.regime(), LoadRegime::SelfClocked);

    // A binding that the experiment does not use is no part of it.
    let bound: Vec<&str> = resolved.lab.bindings.keys().map(String::as_str).collect();
    assert_eq!(bound, ["forwarding path", "packet filter"]);
    let Binding::Nft(rulesets) = &resolved.lab.bindings["packet filter"] else {
        panic!("{:?}", resolved.lab.bindings);
    };
    assert_eq!(rulesets["none"], "");
    assert_eq!(
        rulesets["10 stateless rules"].matches(" drop\n").count(),
        10
    );
    assert!(rulesets["conntrack"].contains("ct state"));
}

#[test]
fn the_lab_that_is_passed_goes_before_the_lab_that_is_named() {
    let files = small("").with(
        "other.toml",
        "kind = \"netns\"\n[bind.rp_filter]\nsysctl = \"net.x\"\n",
    );
    let read = |path: &Path| Ok(files.0[path].clone());
    let loaded = load(
        Path::new(EXPERIMENT),
        Some(Path::new("other.toml")),
        &read,
        7,
    )
    .unwrap();
    assert_eq!(loaded.resolved.lab.name, "other");
    assert_eq!(loaded.experiment_source, files.0[Path::new(EXPERIMENT)]);
}

#[test]
fn the_examples_of_the_guide_are_an_experiment_and_its_lab() {
    let guide = include_str!("../../../docs/experiment-file.md");
    let blocks: Vec<&str> = guide
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    let [experiment, settings, traffics, lab, router, freebsd, linux] = blocks.as_slice() else {
        panic!("{} blocks", blocks.len());
    };
    let files = Files(BTreeMap::new())
        .with(EXPERIMENT, *experiment)
        .with(LAB, *lab);
    // Which lab it is, only the first example says.
    let traffics = format!("lab = \"../labs/netns.toml\"\n{traffics}");
    let by_traffic = files.clone().with(EXPERIMENT, traffics).resolved();
    assert_eq!(by_traffic.strata().count(), 4);
    assert_eq!(
        labels(&files.resolved()),
        [
            "rp_filter=0",
            "rp_filter=1",
            "rp_filter=2",
            "rp_filter=0 (A/A control)"
        ]
    );
    let of_knobs = "question = \"q\"\nlab = \"../labs/netns.toml\"\n\
                    [[factor]]\nname = \"iflib.simple_tx\"\nlevels = [0, 1]\n";
    for (lab, settings) in [
        (router, "[settings]\n\"kern.random.harvest.mask\" = 351\n"),
        (freebsd, "[settings]\n\"kern.random.harvest.mask\" = 351\n"),
        (router, ""),
    ] {
        let experiment = format!("{of_knobs}{settings}");
        let files = files.clone().with(EXPERIMENT, experiment).with(LAB, *lab);
        assert_eq!(files.resolved().variants.len(), 3);
    }
    let of_hosts = "question = \"q\"\nlab = \"../labs/netns.toml\"\n\
                    [[factor]]\nname = \"rp_filter\"\nlevels = [0, 1]\n";
    let files = files.with(EXPERIMENT, of_hosts).with(LAB, *linux);
    assert_eq!(files.resolved().variants.len(), 3);
    let ready = include_str!("../../../experiments/seeds/tx_reclaim_thresh.toml");
    for line in settings.lines() {
        assert!(ready.contains(line), "{line}");
    }
}

#[test]
fn without_a_list_all_combinations_are_measured() {
    let resolved = small(
        "default = 1\n[[factor]]\nname = \"hop limit\"\nlevels = [true, \"a b\"]\n\
         [design]\ncontrol = false\n",
    )
    .with(
        "experiments/lab.toml",
        "kind = \"netns\"\n[bind.rp_filter]\nsysctl = \"net.x\"\n\
         [bind.\"hop limit\"]\nxdp = { true = \"off\", \"a b\" = \"fib\" }\n",
    )
    .resolved();
    assert_eq!(
        labels(&resolved),
        [
            "rp_filter=0, hop limit=true",
            "rp_filter=0, hop limit=a b",
            "rp_filter=1, hop limit=true",
            "rp_filter=1, hop limit=a b",
        ]
    );
    // The baseline is the variant with all defaults, wherever it stands.
    let comparison = &resolved.comparisons[0];
    assert_eq!(comparison.baseline, resolved.variants[2].name);
    assert_eq!(comparison.variants.len(), 3);
    assert_eq!(resolved.variants[1].levels["rp_filter"], Level::Integer(0));
}

#[test]
fn labels_that_would_share_a_name_are_numbered() {
    let resolved = small(
        "[[variant]]\nlabel = \"a b\"\n[[variant]]\nlabel = \"a-b\"\nlevels = { rp_filter = 1 }\n\
         [[variant]]\nlabel = \"a b 2\"\n[[variant]]\nlabel = \"a b again\"\n",
    )
    .resolved();
    assert_eq!(
        names(&resolved),
        ["a-b", "a-b-2", "a-b-2-2", "a-b-again", "a-b-again-2"]
    );
}

#[test]
fn comparisons_name_variants_by_label() {
    let resolved = small(
        "[[comparison]]\ntitle = \"one\"\nbaseline = \"rp_filter=1\"\n\
         [[comparison]]\ntitle = \"two\"\nbaseline = \"rp_filter=0\"\nvariants = [\"rp_filter=1\"]\n",
    )
    .resolved();
    assert_eq!(resolved.comparisons.len(), 2);
    assert_eq!(
        resolved.comparisons[1].variants,
        [resolved.variants[1].name.clone()]
    );
    // The control is a copy of the first comparison's baseline.
    assert_eq!(resolved.variants[2].label, "rp_filter=1 (A/A control)");
}

#[test]
fn one_variant_and_its_control_are_an_experiment() {
    let resolved = small("[[variant]]\nlabel = \"as it is\"\n").resolved();
    assert_eq!(labels(&resolved), ["as it is", "as it is (A/A control)"]);
    assert!(resolved.comparisons[0].variants.is_empty());
}

#[test]
fn paced_load_is_an_intended_load() {
    let traffic = small("[traffic]\nload = { pps = 100_000 }\n")
        .resolved()
        .traffics
        .remove(0);
    assert_eq!(traffic.load.regime(), LoadRegime::Paced);
    assert_eq!(traffic.load.intended_pps(), Some(100_000));
}

#[test]
fn the_load_is_the_labs_unless_the_experiment_says() {
    let lab = "kind = \"netns\"\nregime = \"overload\"\nlink_gbps = 10\n\
               [placement]\ndut_cpu = 3\n[bind.rp_filter]\nsysctl = \"net.x\"\n";
    let regime = |load: &str| {
        let traffic = format!("[traffic]\n{load}\n");
        let resolved = small(&traffic).with("experiments/lab.toml", lab).resolved();
        assert_eq!(resolved.lab.dut_cpu, Some(3));
        assert_eq!(resolved.lab.link_gbps, Some(10.0));
        (
            resolved.traffics[0].load.regime(),
            resolved.traffics[0].load.intended_pps(),
        )
    };
    assert_eq!(regime(""), (LoadRegime::Overload, None));
    assert_eq!(regime("load = \"lab\""), (LoadRegime::Overload, None));
    assert_eq!(
        regime("load = \"self-clocked\""),
        (LoadRegime::SelfClocked, None)
    );
    // 10^10 bit/s / (84 bytes x 8) is the line rate that everybody knows.
    for (load, pps) in [
        ("load = { line_rate_percent = 100 }", 14_880_952),
        ("load = { line_rate_percent = 50.0 }", 7_440_476),
        (
            "direction = \"both\"\nload = { line_rate_percent = 50 }",
            14_880_952,
        ),
        // Over IPv6 the smallest frame has 66 bytes.
        (
            "families = [\"inet\", \"inet6\"]\nload = { line_rate_percent = 100 }",
            14_534_884,
        ),
        (
            "frame_size = 1518\nload = { line_rate_percent = 100 }",
            812_744,
        ),
        // (7 x 84 + 4 x 614 + 1538) / 12 bytes are 381.833 on the wire.
        (
            "frame_size = \"imix\"\nload = { line_rate_percent = 100 }",
            3_273_680,
        ),
    ] {
        assert_eq!(regime(load), (LoadRegime::Paced, Some(pps)), "{load}");
    }
    // A tag of 4 bytes; the program may forward frames with one.
    let lab = lab.replace("sysctl = \"net.x\"", BY_COMMAND);
    let tagged = "[traffic]\nvlan = 100\nload = { line_rate_percent = 100 }\n";
    let resolved = small(tagged).with("experiments/lab.toml", lab).resolved();
    assert_eq!(resolved.traffics[0].load.intended_pps(), Some(14_204_545));
}

#[test]
fn a_burst_that_is_a_large_part_of_a_slice_is_warned_of() {
    let warnings = |pps: u32, burst: u32| {
        let traffic = format!(
            "[traffic]\nload = {{ pps = {pps} }}\nburst = {burst}\n[design]\nslice_ms = 100\n"
        );
        small(&traffic).warnings()
    };
    let large = warnings(1000, 32);
    let expected = "a burst of 32 frames is more than 1 % of the 100 frames of a slice";
    assert!(large.contains(expected), "{large}");
    assert!(large.contains("burst = 32"), "{large}");
    assert_eq!(warnings(1000, 1), "");
    assert_eq!(warnings(32_000, 32), "");
    assert!(!warnings(31_999, 32).is_empty());
}

#[test]
fn the_smallest_frames_of_a_fast_link_are_a_load() {
    for (link_gbps, pps) in [(100, 148_809_524), (400, 595_238_095)] {
        let lab = format!(
            "kind = \"netns\"\nlink_gbps = {link_gbps}\n[bind.rp_filter]\nsysctl = \"net.x\"\n"
        );
        let files = small("[traffic]\nload = { line_rate_percent = 100 }\n");
        let resolved = files.with("experiments/lab.toml", &lab).resolved();
        assert_eq!(resolved.traffics[0].load.intended_pps(), Some(pps));
    }
}

#[test]
fn traffic_has_sizes_ranges_ports_and_directions() {
    let traffic = small(
        "[traffic]\nfamilies = [\"inet\", \"inet6\"]\nframe_size = \"imix\"\n\
         source_ports = \"1024 - 1033\"\ndestination_ports = 53\ndirection = \"both\"\n\
         load = { pps = 5000 }\nburst = 32\ndestinations = 3\n\
         [traffic.inet]\nsources = \"198.18.10.1-198.18.10.20\"\n\
         destinations = \"198.19.0.1-198.19.0.3\"\n\
         [traffic.inet6]\nsources = \"2001:db8::1-2001:db8::14\"\n",
    )
    .resolved()
    .traffics
    .remove(0);
    let sizes = [(64, 7), (594, 4), (1518, 1)].map(|(bytes, share)| FrameSize { bytes, share });
    assert_eq!(traffic.frame_sizes, sizes);
    let ports = |first, last| PortRange { first, last };
    assert_eq!(traffic.source_ports, ports(1024, 1033));
    assert_eq!(traffic.destination_ports, ports(53, 53));
    assert_eq!(traffic.direction, Direction::Both);
    assert_eq!(traffic.burst_frames, 32);
    assert_eq!((traffic.sources, traffic.destinations), (20, 3));
    assert_eq!(traffic.flows(), 600);
    let first = |family| &traffic.first_addresses[&family];
    assert_eq!(
        first(AddressFamily::Inet),
        &FirstAddresses {
            source: "198.18.10.1".parse().ok(),
            destination: "198.19.0.1".parse().ok(),
        }
    );
    assert_eq!(
        first(AddressFamily::Inet6),
        &FirstAddresses {
            source: "2001:db8::1".parse().ok(),
            destination: None,
        }
    );

    let listed = "[{ bytes = 128, share = 3 }, { bytes = 64, share = 1 }]";
    let traffic = small(&format!(
        "[traffic]\nframe_size = {listed}\nsources = 256\ndestinations = 256\n"
    ))
    .resolved()
    .traffics
    .remove(0);
    let sizes = [(128, 3), (64, 1)].map(|(bytes, share)| FrameSize { bytes, share });
    assert_eq!(traffic.frame_sizes, sizes);
    assert_eq!(traffic.flows(), 65_536);
}

#[test]
fn flows_are_sent_in_turn_unless_the_traffic_says_how_heavy_they_are() {
    let record = |traffic: &str| {
        let resolved = small(traffic).resolved();
        serde_json::to_string(&resolved.traffics[0]).unwrap()
    };
    // As records had it before flows could be heavy, so that their hashes stay.
    assert!(!record("[traffic]\nsources = 7\n").contains("zipf"));
    for (exponent, recorded) in [("1.1", "\"zipf\":1.1"), ("1", "\"zipf\":1.0")] {
        let record = record(&format!("[traffic]\nzipf = {exponent}\n"));
        assert!(record.contains(recorded), "{record}");
    }
}

#[test]
fn tags_are_sent_in_the_lab_whose_ports_pass_them() {
    let tagged = |kind: &str| {
        let lab = format!("kind = {kind:?}\n[bind.rp_filter]\n{BY_COMMAND}\n");
        small("[traffic]\nvlan = 100\n").with("experiments/lab.toml", &lab)
    };
    assert_eq!(tagged("netns").resolved().traffics[0].vlan, Some(100));
    let untagged = serde_json::to_string(&small("").resolved().traffics[0]).unwrap();
    assert!(!untagged.contains("vlan"), "{untagged}");
    let errors = tagged("router").errors();
    let refused = "a lab of kind router sends no frames with a VLAN tag";
    assert!(errors.contains(refused), "{errors}");
    assert!(errors.contains("vlan = 100"), "{errors}");
}

#[test]
fn a_variant_in_which_the_kernel_alone_forwards_has_no_frames_with_a_tag() {
    let forwarder = "forwarder = { kernel = {}, mine = { start = [\"mine\"], ready = \"on\" } }";
    let traffics = "[[traffic]]\nname = \"plain\"\nload = \"overload\"\n[[traffic]]\nname = \"tagged\"\nvlan = 100\n\
                    load = \"overload\"\n";
    let with = |levels: &str, binding: &str| {
        let traffics = format!("levels = {levels}\n{traffics}");
        bound(levels, binding)
            .changed(EXPERIMENT, &format!("levels = {levels}"), &traffics)
            .with("experiments/v1.o", "")
            .load_seeded(7)
    };
    for (levels, binding, of_kernel) in [
        (
            "[\"kernel\", \"mine\"]",
            forwarder,
            Some("\"rp_filter=kernel\""),
        ),
        (
            "[\"off\", \"own\"]",
            "xdp = { off = \"off\", own = \"v1.o\" }",
            Some("\"rp_filter=off\""),
        ),
        (
            "[\"none\", \"own\"]",
            "tc = { none = \"\", own = \"v1.o\" }",
            Some("\"rp_filter=none\""),
        ),
        (
            "[0, 1]",
            "sysctl = \"net.x\"",
            Some("\"rp_filter=0\", \"rp_filter=1\""),
        ),
        (
            "[\"a\", \"b\"]",
            "tc = { a = \"v1.o\", b = { object = \"v1.o\", attach = \"tcx\" } }",
            None,
        ),
        ("[0, 1]", BY_COMMAND, None),
    ] {
        let found =
            with(levels, binding).map_or_else(|errors| errors.render(false), |_| String::new());
        let Some(of_kernel) = of_kernel else {
            assert_eq!(found, "", "{binding}");
            continue;
        };
        let expected = format!(
            "the DUT's kernel drops frames with a VLAN tag, and nothing else forwards them in {of_kernel}"
        );
        assert!(found.contains(&expected), "{binding}\n{found}");
        assert!(found.contains("| vlan = 100"), "{found}");
        assert!(found.contains("[[exclude]]"), "{found}");
    }
}

#[test]
fn traffic_that_cannot_be() {
    assert_snapshot!(
        small(
            "[traffic]\nfamilies = [\"inet\", \"inet6\"]\nframe_size = 1519\nsources = 10\n\
             source_ports = \"1033-1024\"\ndestination_ports = \"http\"\n\
             direction = \"backward\"\nload = { line_rate_percent = 50 }\nburst = 0\n\
             [traffic.inet]\nsources = \"198.18.10.1-198.18.10.20\"\n\
             destinations = \"198.18.10.20-198.18.10.29\"\n\
             [traffic.inet6]\nsources = \"198.18.10.1\"\ndestinations = \"fe80::1-fe80::2\"\n\
             hosts = 3\n"
        )
        .errors()
    );
    assert_snapshot!(
        "frame_sizes_that_cannot_be",
        small(
            "[traffic]\nframe_size = [{ bytes = 63, share = 1 }, { bytes = 64, share = 0 }, \
             { bytes = 128 }, { bytes = 256, share = 1 }, { bytes = 256, share = 2 }, 512]\n"
        )
        .errors()
    );
    let errors = |traffic: &str| small(&format!("[traffic]\n{traffic}\n")).errors();
    for (traffic, error) in [
        (
            "sources = 256\ndestinations = 256\nsource_ports = \"1-2\"",
            "256 sources x 256 destinations x 2 source ports are 131072 flows",
        ),
        (
            "inet = { sources = \"10.0.0.0-10.1.0.0\" }",
            "`sources` in [traffic.inet] holds 65537 addresses",
        ),
        (
            "inet = { sources = \"10.0.0.2-10.0.0.1\" }",
            "ends before it begins",
        ),
        (
            "inet = { sources = \"127.0.0.1\" }",
            "no router forwards 127.0.0.1: it is a loopback address",
        ),
        (
            "inet = { destinations = \"223.255.255.250-224.0.0.13\" }",
            "no router forwards 224.0.0.0, one of the 20 addresses from 223.255.255.250: it is a multicast address",
        ),
        (
            "families = [\"inet6\"]\ninet6 = { sources = \"::ffff:10.0.0.1\" }",
            "no router forwards ::ffff:10.0.0.1: it is an IPv4-mapped address",
        ),
        // The addresses that the file does not give are the usual ones.
        (
            "inet = { destinations = \"198.18.10.20\" }",
            "sources (198.18.10.1 to 198.18.10.20) and destinations (198.18.10.20) overlap",
        ),
        (
            "inet = { sources = \"198.19.10.100\" }",
            "sources (198.19.10.100) and destinations (198.19.10.1 to 198.19.10.100) overlap",
        ),
        (
            "families = [\"inet\", \"inet6\"]\nframe_size = 65",
            "no UDP frame over IPv6 has 65 bytes",
        ),
        ("load = {}", "`load` has no number"),
        (
            "load = { pps = 5000, line_rate_percent = 5 }",
            "given twice, in two units",
        ),
        ("burst = 8", "needs a paced load"),
        ("frame_size = []", "lists 0 sizes"),
        ("frame_size = \"IMIX\"", "\"imix\" or a list"),
        ("source_ports = 0", "from 1 to 65535"),
        ("load = \"overlaod\"", "did you mean \"overload\"?"),
        (
            "zipf = 0",
            "`zipf` in [traffic] must be a number from 0.01 to 10",
        ),
        ("zipf = -1.1", "from 0.01 to 10"),
        ("zipf = 10.5", "from 0.01 to 10"),
        ("zipf = nan", "from 0.01 to 10"),
        ("zipf = inf", "from 0.01 to 10"),
        ("zipf = \"1.1\"", "from 0.01 to 10"),
        (
            "vlan = 0",
            "`vlan` in [traffic] must be a whole number from 1 to 4094",
        ),
        ("vlan = 4095", "from 1 to 4094"),
        ("vlan = \"100\"", "from 1 to 4094"),
    ] {
        let errors = errors(traffic);
        assert!(errors.contains(error), "{traffic}\n{errors}");
    }
    // What cannot be read is not taken for the usual addresses.
    let errors = errors("inet = { sources = \"198.18.10\", destinations = \"198.18.10.20\" }");
    assert!(!errors.contains("overlap"), "{errors}");
    let slow = small("[traffic]\nload = { line_rate_percent = 1 }\n").changed(
        "experiments/lab.toml",
        "kind",
        "link_gbps = 0.01\nkind",
    );
    assert!(slow.errors().contains("are 149 frames per second"));
}

#[test]
fn combinations_that_are_excluded_are_not_made() {
    let two_factors = "default = 1\n[[factor]]\nname = \"hop limit\"\nlevels = [true, \"a b\"]\n";
    let lab = "kind = \"netns\"\n[bind.rp_filter]\nsysctl = \"net.x\"\n\
               [bind.\"hop limit\"]\nxdp = { true = \"off\", \"a b\" = \"fib\" }\n";
    let with =
        |rest: &str| small(&format!("{two_factors}{rest}")).with("experiments/lab.toml", lab);
    let resolved = with(
        "[[exclude]]\nlevels = { \"hop limit\" = \"a b\", rp_filter = 0 }\n\
         [design]\ncontrol = false\n",
    )
    .resolved();
    assert_eq!(
        labels(&resolved),
        [
            "rp_filter=0, hop limit=true",
            "rp_filter=1, hop limit=true",
            "rp_filter=1, hop limit=a b",
        ]
    );
    let files = with("[[exclude]]\nlevels = { rp_filter = 0 }\n");
    assert!(files.warnings().contains("no variant has level 0"));

    assert_snapshot!(
        with(
            "[[exclude]]\nlevels = { rp_filter = 2 }\n\
             [[exclude]]\nlevels = { hop_limit = true }\n[[exclude]]\nlevels = {}\n[[exclude]]\n"
        )
        .errors()
    );
    assert!(
        with("[[exclude]]\nlevels = { rp_filter = 0 }\n[[exclude]]\nlevels = { rp_filter = 1 }\n")
            .errors()
            .contains("every combination is excluded")
    );
    assert!(
        with(
            "[[variant]]\nlabel = \"x\"\n[[variant]]\nlabel = \"y\"\nlevels = { rp_filter = 0 }\n\
             [[exclude]]\nlevels = { rp_filter = 0 }\n"
        )
        .errors()
        .contains("stands beside a list of variants")
    );
    // What is excluded does not count towards the most that can be measured.
    let levels: Vec<String> = (0..300).map(|level| level.to_string()).collect();
    let excludes: String = (0..100)
        .map(|level| format!("[[exclude]]\nlevels = {{ rp_filter = {level} }}\n"))
        .collect();
    let many = small(&format!("{excludes}[design]\ncontrol = false\n")).changed(
        EXPERIMENT,
        "levels = [0, 1]",
        &format!("levels = [{}]", levels.join(", ")),
    );
    assert_eq!(many.resolved().variants.len(), 200);
}

#[test]
fn an_exclude_of_levels_that_never_meet_is_an_error() {
    let errors = small(
        "[[exclude]]\nlevels = { rp_filter = 0, other = 1 }\n\
         [[factor]]\nname = \"other\"\nlevels = [1]\n[[exclude]]\nlevels = { rp_filter = 0 }\n",
    )
    .errors();
    assert!(errors.contains("factor \"other\" is not bound"), "{errors}");
    assert!(!errors.contains("excludes nothing"), "{errors}");
}

#[test]
fn an_order_that_is_not_random_says_what_is_lost() {
    let files = small("[design]\norder = \"in-sequence\"\n");
    assert_eq!(files.resolved().design.order, Order::InSequence);
    assert_snapshot!(files.warnings());
    assert_eq!(small("").resolved().design.order, Order::Random);
    let random = small("[design]\norder = \"random\"\n");
    assert_eq!(random.warnings(), "");
    assert_eq!(random.resolved().hash(), small("").resolved().hash());
}

#[test]
fn earlier_data_are_part_of_the_experiment() {
    let files = small("[[reference]]\nlabel = \"last year\"\npps = { inet = \"old/a.pps\" }\n")
        .with("experiments/old/a.pps", "# pps\n1000000\n1200000.5\n");
    let resolved = files.resolved();
    let [reference] = resolved.references.as_slice() else {
        panic!("{:?}", resolved.references);
    };
    assert_eq!(reference.label, "last year");
    let data = &reference.strata[&Stratum::INET];
    assert_eq!(data.path, "old/a.pps");
    assert_eq!(data.observations_pps, [1e6, 1_200_000.5]);
    // By sha256sum.
    assert_eq!(
        data.sha256,
        "0a1d3654adc26f1e8f411225a586f708ac720b57fcfcd89b062ab8eaed853f75"
    );
    let other = files.clone().with("experiments/old/a.pps", "1\n");
    assert_ne!(other.resolved().hash(), resolved.hash());

    assert_snapshot!(
        small(
            "[[reference]]\nlabel = \"rp_filter=0\"\npps = { inet = \"missing.pps\" }\n\
             [[reference]]\nlabel = \"x\"\npps = { inet = \"b.pps\", ipv4 = \"b.pps\" }\n\
             [[reference]]\nlabel = \"y\"\npps = {}\n[[reference]]\n"
        )
        .with("experiments/b.pps", "1\nfast\n")
        .errors()
    );
    let unmeasured = files.changed(EXPERIMENT, "inet =", "inet6 =");
    assert!(unmeasured.warnings().contains("inet6 is not measured"));
    assert!(unmeasured.resolved().references[0].strata.is_empty());
}

const SEVERAL: &str = "[[traffic]]\nname = \"few\"\nsources = 1\ndestinations = 1\n\
    [[traffic]]\nname = \"imix\"\nframe_size = \"imix\"\nfamilies = [\"inet\", \"inet6\"]\n";

#[test]
fn each_family_of_each_traffic_is_a_stratum() {
    let resolved = small(SEVERAL).resolved();
    let strata: Vec<String> = resolved.strata().map(|of| of.to_string()).collect();
    assert_eq!(strata, ["inet-few", "inet-imix", "inet6-imix"]);
    assert!(resolved.has_several_strata());
    assert!(!small("").resolved().has_several_strata());
    let imix = "inet6-imix".parse().unwrap();
    assert_eq!(resolved.traffic(imix).frame_sizes.len(), 3);
    assert_eq!(resolved.traffics[0].flows(), 1);
    // A list is read again as what it was; the only traffic without a name stays a table.
    let written = serde_json::to_value(&resolved).unwrap();
    assert_eq!(written["traffic"][1]["name"], "imix");
    assert_eq!(
        serde_json::from_value::<Resolved>(written).unwrap(),
        resolved
    );
    let one = serde_json::to_value(small("").resolved()).unwrap();
    assert!(one["traffic"].is_object());

    let reference = |traffic: &str| {
        let text = format!(
            "{SEVERAL}[[reference]]\nlabel = \"last year\"\npps = {{ inet = \"a.pps\" }}\n{traffic}\n"
        );
        small(&text).with("experiments/a.pps", "1\n")
    };
    let of_imix = reference("traffic = \"imix\"").resolved();
    let strata: Vec<String> = { &of_imix.references[0].strata }
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(strata, ["inet-imix"]);
    for (traffic, said) in [
        ("", "`traffic` is missing: the experiment has several"),
        ("traffic = \"imx\"", "no [[traffic]] has the name \"imx\""),
    ] {
        let errors = reference(traffic).errors();
        assert!(errors.contains(said), "{errors}");
    }
}

#[test]
fn traffics_that_cannot_be_measured_in_one_experiment_are_refused() {
    let few = "[[traffic]]\nname = \"few\"\n";
    assert_snapshot!(
        small(&format!(
            "{few}load = \"self-clocked\"\n[[traffic]]\nframe_size = 1518\n[[traffic]]\nname = \"few\"\n\
             direction = \"both\"\n[[traffic]]\nname = \"Full load\"\nload = {{ pps = 100000 }}\n\
             [[traffic]]\nname = \"bursts\"\nburst = 8\n"
        ))
        .errors()
    );
    let many: String = (0..17)
        .map(|number| format!("[[traffic]]\nname = \"t{number}\"\n"))
        .collect();
    let errors = small(&many).errors();
    assert!(errors.contains("there are 17 traffics"), "{errors}");
    let mut two = serde_json::to_value(small(SEVERAL).resolved()).unwrap();
    two["traffic"][1]["direction"] = "both".into();
    assert!(serde_json::from_value::<Resolved>(two).is_err());
}

#[test]
fn a_forwarder_in_user_space_is_measured_whole_and_never_self_clocked() {
    let levels = "[\"kernel\", \"mine\"]";
    let forwarder = "forwarder = { kernel = {}, mine = { start = [\"mine\"], ready = \"on\", forwards = \"mac\" } }";
    let errors = bound(levels, forwarder).errors();
    assert!(
        errors.contains("cannot be measured self-clocked"),
        "{errors}"
    );
    assert!(errors.contains("load = { pps = N }"), "{errors}");
    let factor = format!("levels = {levels}");
    let overload = format!("{factor}\n[traffic]\nload = \"overload\"\n");
    let resolved = bound(levels, forwarder)
        .changed(EXPERIMENT, &factor, &overload)
        .resolved();
    assert_eq!(resolved.design.rounds, 1);
    assert!(resolved.takes_whole_measurements());
    let forwards = resolved
        .variants
        .iter()
        .map(|variant| resolved.forwards(variant));
    let forwards: BTreeSet<String> = forwards.map(|of| format!("{of:?}")).collect();
    assert_eq!(forwards, ["Mac", "Routed"].map(str::to_owned).into());
    let rounds = |rounds: u32| {
        let design = format!("{overload}[design]\nrounds = {rounds}\n");
        let files = bound(levels, forwarder).changed(EXPERIMENT, &factor, &design);
        files.warnings()
    };
    assert!(rounds(2).contains("each block has one round, whatever `rounds` says"));
    assert_eq!(rounds(1), "");
    // The kernel alone is no forwarder in user space.
    let kernel = "forwarder = { kernel = {}, mine = {} }";
    assert!(!bound(levels, kernel).resolved().takes_whole_measurements());
    let warnings = bound(levels, kernel).warnings();
    assert!(
        warnings.contains("several levels of \"rp_filter\" are the kernel"),
        "{warnings}"
    );
}

#[test]
fn a_forwarder_in_user_space_may_have_programs_of_its_own_on_the_ports() {
    let levels = "levels = [\"kernel\", \"mine\"]";
    let forwarder = "forwarder = { kernel = {}, mine = { start = [\"mine\"], ready = \"on\" } }";
    for (other, message) in [
        (
            "xdp = { a = \"off\", b = \"fib\" }",
            "\"rp_filter\" and \"other\" cannot be combined: a forwarder in user space may attach XDP and tc programs",
        ),
        (
            "forwarder = { a = {}, b = { start = [\"b\"], ready = \"on\" } }",
            "\"rp_filter\" and \"other\" set the same thing",
        ),
    ] {
        let factors = format!("{levels}\n[[factor]]\nname = \"other\"\nlevels = [\"a\", \"b\"]");
        let errors = bound("[\"kernel\", \"mine\"]", forwarder)
            .changed(EXPERIMENT, levels, &factors)
            .changed(
                "experiments/lab.toml",
                "kind = \"netns\"\n",
                &format!("kind = \"netns\"\n[bind.other]\n{other}\n"),
            )
            .errors();
        assert!(errors.contains(message), "{errors}");
    }
}

#[test]
fn what_acts_on_the_kernel_alone_makes_no_second_variant_of_a_forwarder_in_user_space() {
    let levels = "[\"kernel\", \"mine\"]";
    let forwarder = "forwarder = { kernel = {}, mine = { start = [\"mine\"], ready = \"on\" } }";
    let warnings = |binding: &str, rest: &str| {
        let factors = format!(
            "levels = {levels}\n[[factor]]\nname = \"other\"\nlevels = [0, 1]\n[traffic]\nload = \"overload\"\n{rest}"
        );
        let files = bound(levels, forwarder)
            .changed(EXPERIMENT, &format!("levels = {levels}"), &factors)
            .changed(
                "experiments/lab.toml",
                "kind = \"netns\"\n",
                &format!("kind = \"netns\"\n[bind.other]\n{binding}\n"),
            );
        files.warnings()
    };
    let of_kernel = "sysctl = \"net.ipv4.conf.all.rp_filter\"";
    let found = warnings(of_kernel, "");
    assert!(found.contains("\"other\" differs between"), "{found}");
    assert!(found.contains("[[exclude]]"), "{found}");
    let excluded = "[[exclude]]\nlevels = { rp_filter = \"mine\", other = 1 }\n";
    assert_eq!(warnings(of_kernel, excluded), "");
    assert_eq!(warnings("sysctl = \"net.core.rmem_max\"", ""), "");
}

#[test]
fn levels_that_read_back_alike_are_refused() {
    let rounded = "sysctl = \"net.x\"\nreads_back = { 1000 = 992 }";
    let errors = bound("[1000, 992]", rounded).errors();
    let expected = "level 992 reads back as 992, as level 1000 does";
    assert!(errors.contains(expected), "{errors}");
    let errors = bound(
        "[0, 1]",
        "sysfs = { file = \"threaded\" }\nreads_back = { 0 = 1 }",
    )
    .errors();
    assert!(errors.contains("`sysfs` takes no `reads_back`"), "{errors}");
}

#[test]
fn every_mechanism_is_bound() {
    let values = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        Values(
            pairs
                .map(|(level, value)| ((*level).to_owned(), (*value).to_owned()))
                .collect(),
        )
    };
    let both = vec![DutInterface::DutIn, DutInterface::DutOut];
    for (levels, binding, expected) in [
        (
            "[\"off\", \"strict\"]",
            "sysctl = \"net.x\"\nvalues = { off = \"0\", strict = 1, loose = 2 }",
            Binding::Sysctl {
                key: "net.x".into(),
                values: values(&[("off", "0"), ("strict", "1")]),
                reads_back: BTreeMap::new(),
            },
        ),
        (
            "[1000, 1024]",
            "sysctl = \"net.x\"\nreads_back = { 1000 = 992 }",
            Binding::Sysctl {
                key: "net.x".into(),
                values: Values::default(),
                reads_back: BTreeMap::from([("1000".into(), "992".into())]),
            },
        ),
        (
            "[true, false]",
            "ethtool = { feature = \"gro\", interfaces = [\"dut-in\"] }",
            Binding::Ethtool {
                feature: "gro".into(),
                interfaces: vec![DutInterface::DutIn],
            },
        ),
        (
            "[0, 1]",
            "sysfs = { file = \"threaded\" }",
            Binding::Sysfs {
                file: "threaded".into(),
                interfaces: both.clone(),
                values: Values::default(),
            },
        ),
        (
            "[true, false]",
            "sysfs = { file = \"queues/rx-0/rps_cpus\", interfaces = [\"dut-out\"] }\n\
             values = { true = \"3\", false = \"0\" }",
            Binding::Sysfs {
                file: "queues/rx-0/rps_cpus".into(),
                interfaces: vec![DutInterface::DutOut],
                values: values(&[("false", "0"), ("true", "3")]),
            },
        ),
        ("[2, 1000000]", "routes = true", Binding::Routes),
    ] {
        let resolved = bound(levels, binding).resolved();
        assert_eq!(resolved.lab.bindings["rp_filter"], expected);
    }
    let resolved = bound(
        "[1280, 1500]",
        "command.do = [\"ip\", \"link\", \"set\", \"dut-out\", \"mtu\", \"{level}\"]\n\
         command.undo = [\"ip\", \"link\", \"set\", \"dut-out\", \"mtu\", \"1500\"]",
    )
    .resolved();
    let Binding::Command(command) = &resolved.lab.bindings["rp_filter"] else {
        panic!("{:?}", resolved.lab.bindings);
    };
    let level = Level::Integer(1280);
    assert_eq!(
        command.apply(&level),
        ["ip", "link", "set", "dut-out", "mtu", "1280"]
    );
    assert_eq!(command.undo(&level).last().unwrap(), "1500");
    assert_eq!(command.check(&level), None);

    let resolved = bound(
        "[\"fq\", \"none; {level}\"]",
        "command.do.fq = [\"tc\", \"fq\"]\n\
         command.do.\"none; {level}\" = [\"tc\", \"a {level}\", \"x={level}\"]\n\
         command.undo = [\"tc\", \"{level}{level}\", \"level\"]\n\
         command.check = [\"ls\", \"{level}\"]",
    )
    .resolved();
    let Binding::Command(command) = &resolved.lab.bindings["rp_filter"] else {
        panic!("{:?}", resolved.lab.bindings);
    };
    // A level takes its place inside arguments and makes none.
    let level = Level::Text("none; {level}".to_owned());
    assert_eq!(command.apply(&Level::Text("fq".to_owned())), ["tc", "fq"]);
    assert_eq!(command.apply(&level)[1], "a none; {level}");
    assert_eq!(command.undo(&level)[2], "level");
    assert_eq!(command.check(&level).unwrap(), ["ls", "none; {level}"]);
    let programs: Vec<&str> = command.programs().collect();
    assert_eq!(programs, ["tc", "tc", "tc", "ls"]);
    // What is recorded is read again.
    let recorded = serde_json::to_string(command).unwrap();
    assert_eq!(
        serde_json::from_str::<CommandBinding>(&recorded).unwrap(),
        *command
    );
}

#[test]
fn an_experiment_can_have_everything_in_it() {
    let files = Files::everything();
    assert_eq!(files.warnings(), "");
    let resolved = files.resolved();
    assert_eq!(resolved.lab.bindings.len(), 7);
    assert_eq!(resolved.references.len(), 1);
}

#[test]
fn a_router_is_set_by_its_knobs() {
    let resolved = Files::knobs(ROUTER).resolved();
    assert_eq!(resolved.lab.kind, LabKind::Router);
    assert_eq!(
        resolved.lab.router,
        Some(RouterLab {
            queues: 2,
            tester: RouterTester::Threaded,
            overload_ratio: 1.5,
        })
    );
    assert_eq!(resolved.traffics[0].load.regime(), LoadRegime::Overload);
    assert_eq!(
        resolved.lab.bindings["iflib.simple_tx"],
        Binding::Knob {
            knob: Knob::SimpleTx
        }
    );
    assert_eq!(resolved.lab.bindings["routes"], Binding::Routes);
    assert!(resolved.rebooting_factors().is_empty());
    assert_eq!(resolved.design.rounds, 10);

    // What a file does not say is settled all the same, and is part of the experiment.
    let said = ROUTER.split_once("[router]").unwrap();
    let unsaid = format!("{}[bind]{}", said.0, said.1.split_once("[bind]").unwrap().1);
    let defaults = Files::knobs(&unsaid).resolved();
    assert_eq!(defaults.lab.router, Some(RouterLab::default()));
    assert_ne!(defaults.hash(), resolved.hash());
    assert_eq!(small("").resolved().lab.router, None);
    let silent = Files::knobs(&ROUTER.replacen("regime = \"overload\"\n", "", 1));
    assert_eq!(silent.resolved().regime(), LoadRegime::SelfClocked);
}

#[test]
fn what_needs_a_reboot_has_no_rounds() {
    let files = Files::knobs(FREEBSD);
    let resolved = files.resolved();
    assert_eq!(resolved.lab.kind, LabKind::Ssh(System::Freebsd));
    assert_eq!(resolved.lab.router, None);
    assert_eq!(resolved.traffics[0].load.regime(), LoadRegime::Overload);
    let rebooting = resolved.rebooting_factors();
    let names: Vec<&str> = rebooting
        .iter()
        .map(|factor| factor.name.as_str())
        .collect();
    assert_eq!(names, ["iflib.simple_tx", "iflib.prefetch", "l2_prepend"]);
    assert_eq!(resolved.design.rounds, 1);
    let Binding::Loader { tunable, values } = &resolved.lab.bindings["iflib.prefetch"] else {
        panic!("{:?}", resolved.lab.bindings);
    };
    assert_eq!(tunable, "dev.ix.{0,1}.iflib.disable_prefetch");
    assert_eq!(values.value(&Level::Integer(0)), "1");
    let kernels = [("0", "n277567"), ("1", "n277567D33658")]
        .map(|(level, kernel)| (level.to_owned(), kernel.to_owned()));
    assert_eq!(
        resolved.lab.bindings["l2_prepend"],
        Binding::Kernel(kernels.into())
    );

    // What is set once at boot and then held needs no further boots.
    let held = files
        .changed(
            EXPERIMENT,
            "\"iflib.simple_tx\"\nlevels = [0, 1]",
            "\"iflib.simple_tx\"\nlevels = [0]",
        )
        .changed(
            EXPERIMENT,
            "\"iflib.prefetch\"\nlevels = [0, 1]",
            "\"iflib.prefetch\"\nlevels = [0]",
        )
        .changed(
            EXPERIMENT,
            "\"l2_prepend\"\nlevels = [0, 1]",
            "\"l2_prepend\"\nlevels = [0]",
        )
        .resolved();
    assert!(held.rebooting_factors().is_empty());
    assert_eq!(held.design.rounds, 10);
}

#[test]
fn what_is_brought_to_a_dut_is_part_of_the_experiment_and_in_no_record() {
    let hosts = |permission: &str| {
        format!(
            "[dut]\nhost = \"a\"\nin = \"ix0\"\nout = \"ix1\"\n{permission}\n\
             [tester]\nhost = \"b\"\nout = \"ix0\"\nin = \"ix1\"\n"
        )
    };
    let lab = |hosts: &str, binding: &str| {
        let lab = format!("kind = \"freebsd-ssh\"\n{hosts}[bind.rp_filter]\n{binding}\n");
        small("")
            .with("experiments/lab.toml", lab)
            .with("experiments/x", "SESAME")
            .with("experiments/y", "y")
    };
    let image = "image = { 0 = \"\", 1 = \"x\" }";
    for (hosts, binding) in [
        ("", "configs = { 0 = \"y\", 1 = \"x\" }"),
        ("", image),
        (&hosts("overwrite_other_slice = true"), image),
    ] {
        let files = lab(hosts, binding);
        let resolved = files.resolved();
        assert_eq!(resolved.rebooting_factors().len(), 1);
        let (first, brought) = match &resolved.lab.bindings["rp_filter"] {
            Binding::Configs(folders) => (folders.get("0"), &folders["1"]),
            Binding::Image(images) => (images["0"].as_ref(), images["1"].as_ref().unwrap()),
            other => panic!("{other:?}"),
        };
        assert_eq!(first.is_some(), binding.starts_with("configs"));
        assert_eq!(brought.path, "x");
        assert_eq!(brought.found, Path::new("experiments/x"));
        let record = serde_json::to_string(&resolved).unwrap();
        assert!(!record.contains("SESAME") && !record.contains("experiments/x"));
        let changed = files.with("experiments/x", "other").resolved();
        assert_ne!(changed.hash(), resolved.hash());
    }
    let missing = lab("", image).without("experiments/x").errors();
    assert!(
        missing.contains("lab.toml:3:23") && missing.contains("cannot read experiments/x"),
        "{missing}"
    );
    for (hosts, message) in [
        (hosts(""), "write overwrite_other_slice = true into [dut]"),
        (hosts("overwrite_other_slice = 1"), "must be true or false"),
    ] {
        let errors = lab(&hosts, image).errors();
        assert!(errors.contains(message), "{errors}");
    }
    let linux = hosts("overwrite_other_slice = true");
    let linux = format!("kind = \"linux-ssh\"\n{linux}[bind.rp_filter]\nsysctl = \"net.x\"\n");
    let errors = small("").with("experiments/lab.toml", linux).errors();
    assert!(
        errors.contains("a DUT of kind linux-ssh has no other slice"),
        "{errors}"
    );
    let counters = "drop_counters = [\"rx_discards_phy\", \"rx_discards_phy\"]";
    for (kind, message) in [
        (
            "linux-ssh",
            "the counter \"rx_discards_phy\" is named twice",
        ),
        (
            "freebsd-ssh",
            "a DUT of kind freebsd-ssh has no `drop_counters`",
        ),
    ] {
        let text = hosts(counters);
        let text = format!("kind = \"{kind}\"\n{text}[bind.rp_filter]\nsysctl = \"net.x\"\n");
        let errors = small("").with("experiments/lab.toml", text).errors();
        assert!(errors.contains(message), "{errors}");
    }
    // An image brings its kernel.
    let with_kernel = format!("{image}\n[bind.k]\nkernel = {{ 0 = \"n\", 1 = \"m\" }}");
    let both = lab("", &with_kernel).changed(
        EXPERIMENT,
        "[[factor]]",
        "[[factor]]\nname = \"k\"\nlevels = [0, 1]\n[[factor]]",
    );
    assert!(both.errors().contains("set the same thing"));
}

#[test]
fn a_ruleset_may_not_remove_those_of_other_factors() {
    let flushes = "# of Debian\nflush ruleset\ntable inet b { }\n";
    let files = |bindings: &str| {
        let lab = format!("kind = \"netns\"\n[bind]\n{bindings}");
        small("")
            .with("experiments/lab.toml", lab)
            .with("experiments/rules.nft", "table inet a { }\n")
            .with("experiments/flush.nft", flushes)
    };
    let flush = "{ nft = { 0 = \"\", 1 = \"flush.nft\" } }";
    let alone = files(&format!("rp_filter = {flush}\n"));
    assert!(alone.load_seeded(7).is_ok());
    let two = files(&format!(
        "rp_filter = {{ nft = {{ 0 = \"\", 1 = \"rules.nft\" }} }}\nk = {flush}\n"
    ));
    let two = two.changed(
        EXPERIMENT,
        "[[factor]]",
        "[[factor]]\nname = \"k\"\nlevels = [0, 1]\n[[factor]]",
    );
    let errors = two.errors();
    assert!(
        errors.contains("flush.nft:2: removes what the rulesets of other factors add"),
        "{errors}"
    );
}

#[test]
fn settings_are_part_of_every_variant_and_of_no_label() {
    let resolved = Files::knobs(ROUTER).resolved();
    assert_eq!(resolved.variants.len(), 17);
    for variant in &resolved.variants {
        assert!(!variant.label.contains("harvest"), "{}", variant.label);
        assert_eq!(
            variant.levels["kern.random.harvest.mask"],
            Level::Integer(351)
        );
        assert_eq!(variant.levels.len(), resolved.factors.len());
    }
    let held: Vec<&str> = resolved
        .factors
        .iter()
        .filter(|factor| !factor.is_varied())
        .map(|factor| factor.name.as_str())
        .collect();
    assert_eq!(
        held,
        ["kern.random.harvest.mask", "iflib.tx_reclaim_thresh"]
    );
    let other = Files::knobs(ROUTER).changed(EXPERIMENT, "= 351", "= 511");
    assert_ne!(other.resolved().hash(), resolved.hash());

    assert_snapshot!(
        small(
            "[[variant]]\nlabel = \"x\"\nlevels = { forwarding = 0 }\n\
             [settings]\nrp_filter = 1\nforwarding = [1]\n\"a\\nb\" = 1\nttl = 64\n"
        )
        .errors()
    );
}

#[test]
fn levels_that_a_knob_cannot_have() {
    let lab = |knob: &str| format!("kind = \"router\"\n[bind.rp_filter]\nknob = {knob:?}\n");
    let mut errors = Vec::new();
    for (levels, knob) in [
        ("[0, 2]", "iflib.simple_tx"),
        ("[\"on\", true]", "iflib.prefetch"),
        ("[1000]", "iflib.override_ntxds"),
        ("[-1]", "iflib.tx_reclaim_thresh"),
        ("[0, 1]", "iflib.simple_txx"),
    ] {
        let files = bound(levels, "sysctl = \"net.x\"").with("experiments/lab.toml", lab(knob));
        errors.push(files.errors());
    }
    assert_snapshot!(errors.join("\n\n"));
}

#[test]
fn mechanisms_of_another_kind_of_lab() {
    let mut errors = Vec::new();
    for (kind, binding) in [
        ("router", "nft = { 0 = \"\", 1 = \"rules.nft\" }"),
        ("router", "sysctl = \"net.inet.ip.redirect\""),
        ("router", "values = { 0 = 1 }"),
        ("netns", "knob = \"iflib.simple_tx\""),
        ("netns", "loader = \"dev.ix.0.iflib.simple_tx\""),
        ("freebsd-ssh", "xdp = { 0 = \"off\", 1 = \"fib\" }"),
        ("freebsd-ssh", "knob = \"iflib.simple_tx\""),
        ("freebsd-ssh", "sysctl = \"dev.ix.{0,1\""),
        ("freebsd-ssh", "loader = \"dev.{0,1}.queue.{0,1}\""),
        (
            "freebsd-ssh",
            "kernel = { 0 = \"../kernel\", 1 = \"patched\" }",
        ),
        ("freebsd-ssh", "kernel = { 0 = \"n277567\" }"),
        (
            "freebsd-ssh",
            "kernel = { 0 = \"a\", 1 = \"b\" }\nvalues = { 0 = 1 }",
        ),
    ] {
        let lab = format!("kind = {kind:?}\n[bind.rp_filter]\n{binding}\n");
        errors.push(small("").with("experiments/lab.toml", lab).errors());
    }
    assert_snapshot!(errors.join("\n\n"));
}

#[test]
fn tables_of_another_kind_of_lab() {
    let bind = "[bind.rp_filter]\nsysctl = \"net.x\"\n";
    let mut errors = Vec::new();
    for lab in [
        format!("kind = \"netns\"\n[router]\nqueues = 2\n{bind}"),
        format!(
            "kind = \"freebsd-ssh\"\nregime = \"self-clocked\"\n[router]\n\
             [placement]\nload_cpu = 1\n{bind}"
        ),
        "kind = \"router\"\n[router]\nqueues = 0\ntester = \"thraeded\"\noverload_ratio = 1\n\
         ratio = 2\n[bind.rp_filter]\nroutes = 3\n"
            .to_owned(),
    ] {
        errors.push(small("").with("experiments/lab.toml", lab).errors());
    }
    errors.push(
        small("[traffic]\nload = \"self-clocked\"\n")
            .with(
                "experiments/lab.toml",
                format!("kind = \"freebsd-ssh\"\n{bind}"),
            )
            .errors(),
    );
    assert_snapshot!(errors.join("\n\n"));
}

#[test]
fn hosts_that_cannot_be() {
    let bind = "[bind.rp_filter]\nsysctl = \"net.x\"\n";
    let dut = "[dut]\nhost = \"router\"\nin = \"eth1\"\nout = \"eth2\"\n";
    let tester = "[tester]\nhost = \"tester\"\nout = \"eth1\"\nin = \"eth2\"\n";
    let mut errors = Vec::new();
    for lab in [
        String::new(),
        format!("[ssh]\nconfig = 1\nkey = \"id\"\n{dut}"),
        format!("[dut]\nhost = \"-oProxyCommand=reboot\"\nin = \"eth1\"\nout = \"eth1\"\n{tester}"),
        format!("[dut]\nhost = \"a b\"\nin = \"../eth0\"\nout = \"-eth1\"\n{tester}"),
        format!(
            "{dut}[tester]\nhost = \"\"\nin = \"an-interface-of-a-long-name\"\ncpu = -1\nprogram = true\n"
        ),
        format!("{dut}{tester}[placement]\nload_cpu = 1\n[router]\n"),
    ] {
        let lab = format!("kind = \"linux-ssh\"\n{lab}{bind}");
        errors.push(small("").with("experiments/lab.toml", lab).errors());
    }
    let lab = format!("kind = \"netns\"\n[ssh]\n{dut}{tester}{bind}");
    errors.push(small("").with("experiments/lab.toml", lab).errors());
    assert_snapshot!(errors.join("\n\n"));
}

#[test]
fn a_port_forwards_or_sends_once_or_counts() {
    let lab = |tester: &str| {
        let lab = format!(
            "kind = \"linux-ssh\"\n[dut]\nhost = \"router\"\nin = \"eth1\"\nout = \"eth2\"\n{tester}\n\
             [bind.rp_filter]\nsysctl = \"net.ipv4.conf.all.rp_filter\"\n"
        );
        small("").with("experiments/lab.toml", lab)
    };
    let errors = |tester: &str| lab(tester).errors();
    let elsewhere = "[tester]\nhost = \"tester\"\nout = \"eth1\"\nin = \"eth2\"\n";
    for (tester, message) in [
        (
            "[tester]\nhost = \"router\"\nout = \"eth1\"\nin = \"eth3\"\n".to_owned(),
            "eth1 of router is a port of [dut] and of [tester]",
        ),
        (
            "[tester]\nhost = \"tester\"\nout = \"eth1\"\n[receiver]\nhost = \"router\"\nin = \"eth2\"\n".to_owned(),
            "eth2 of router is a port of [dut] and of [receiver]",
        ),
        (
            format!("{elsewhere}[[generator]]\nhost = \"router\"\nout = \"eth2\"\n"),
            "eth2 of router is a port of [dut] and of [[generator]]",
        ),
    ] {
        let errors = errors(&tester);
        assert!(errors.contains(message), "{message}: {errors}");
    }
    let generator = |port: &str| format!("[[generator]]\nhost = \"tester\"\nout = {port:?}\n");
    for (more, message) in [
        (
            generator("eth1"),
            Some("eth1 of tester is a port of [tester] and of [[generator]]"),
        ),
        (
            generator("eth2"),
            Some("eth2 of tester is a port of [tester] and of [[generator]]"),
        ),
        (
            [generator("eth3"), generator("eth3")].concat(),
            Some("eth3 of tester is a port of [[generator]] and of [[generator]]"),
        ),
        ([generator("eth3"), generator("eth4")].concat(), None),
    ] {
        let files = lab(&format!("{elsewhere}{more}"));
        match message {
            Some(message) => {
                let errors = files.errors();
                assert!(errors.contains(message), "{message}: {errors}");
            }
            None => assert!(files.resolved().lab.hosts.is_some()),
        }
    }
    let shared = "[tester]\nhost = \"tester\"\nout = \"eth1\"\n[receiver]\nhost = \"tester\"\nin = \"eth1\"\n";
    let message = "eth1 of tester is a port of [tester] and of [receiver]";
    assert!(errors(shared).contains(message), "{}", errors(shared));
    let lab = "kind = \"linux-ssh\"\n[dut]\nhost = \"router\"\nin = \"eth1\"\nout = \"eth2\"\n\
               [tester]\nhost = \"router\"\nout = \"eth3\"\nin = \"eth4\"\n\
               [bind.rp_filter]\nsysctl = \"net.ipv4.conf.all.rp_filter\"\n";
    let resolved = small("").with("experiments/lab.toml", lab).resolved();
    assert_eq!(resolved.lab.hosts.unwrap().tester.interface_out, "eth3");
}

#[test]
fn several_cpus_may_send_from_a_port() {
    let experiment = |cpus: &str, uses: &str, traffic: &str| {
        let lab = format!(
            "kind = \"linux-ssh\"\n[dut]\nhost = \"router\"\nin = \"eth1\"\nout = \"eth2\"\n\
             [tester]\nhost = \"tester\"\nout = \"a\"\nin = \"b\"\n{uses}\n{cpus}\n\
             [[generator]]\nhost = \"tester\"\nout = \"c\"\n{cpus}\n\
             [bind.rp_filter]\nsysctl = \"net.ipv4.conf.all.rp_filter\"\n"
        );
        small(traffic).with("experiments/lab.toml", lab)
    };
    for (written, cpus, recorded) in [
        ("cpus = [3, 2]", &[3, 2][..], "\"cpu\":[3,2]"),
        ("cpus = [3]", &[3], "\"cpu\":3"),
        ("cpu = 3", &[3], "\"cpu\":3"),
        ("", &[], "\"cpu\":null"),
    ] {
        let resolved = experiment(written, "", "").resolved();
        let hosts = resolved.lab.hosts.unwrap();
        assert_eq!(hosts.tester.cpus, cpus);
        assert_eq!(hosts.generators[0].cpus, cpus);
        assert_eq!(hosts.names(), ["router", "tester"]);
        let json = serde_json::to_string(&hosts).unwrap();
        assert_eq!(json.matches(recorded).count(), 2, "{json}");
        assert_eq!(
            serde_json::from_str::<fwdlab_model::Hosts>(&json).unwrap(),
            hosts
        );
    }
    let errors: Vec<_> = [
        ("cpu = 1\ncpus = [2]", "", ""),
        ("cpus = []", "", ""),
        ("cpus = [1, 2, 1, \"3\", 8192]", "", ""),
        ("cpus = 2", "", ""),
        ("cpus = [1, 2]", "uses = \"pkt-gen\"", ""),
        (
            "cpus = [1, 2, 3]",
            "",
            "[traffic]\nsources = 1\ndestinations = 2\n",
        ),
    ]
    .map(|(cpus, uses, traffic)| experiment(cpus, uses, traffic).errors())
    .into();
    assert_snapshot!(errors.join("\n\n"));
}

#[test]
fn hosts_are_part_of_a_lab_and_where_their_files_lie_is_not() {
    let lab = |config: &str| {
        let lab = format!(
            "kind = \"linux-ssh\"\n[ssh]\nconfig = {config:?}\n\
             [dut]\nhost = \"router\"\nin = \"eth1\"\nout = \"eth2\"\n\
             [tester]\nhost = \"tester\"\nout = \"a\"\nin = \"b\"\ncpu = 1\n\
             [bind.rp_filter]\nsysctl = \"net.ipv4.conf.all.rp_filter\"\n"
        );
        small("").with("experiments/lab.toml", lab).resolved()
    };
    let (one, other) = (lab("ssh_config"), lab("elsewhere/config"));
    let hosts = one.lab.hosts.as_ref().unwrap();
    assert_eq!(
        hosts.ssh_config.as_deref(),
        Some(Path::new("experiments/ssh_config"))
    );
    assert_eq!(hosts.tester.cpus, [1]);
    assert_eq!(one.hash(), other.hash());
    assert_eq!(one.regime().to_string(), "overload");
}

#[test]
fn what_several_factors_set_is_found_whatever_sets_it() {
    let other = "[[factor]]\nname = \"other\"\nlevels = [0, 1]\n";
    let tables = "[dut]\nhost = \"a\"\nin = \"eth1\"\nout = \"eth2\"\n\
                  [tester]\nhost = \"b\"\nout = \"eth1\"\nin = \"eth2\"\n";
    let errors = |kind: &str, one: &str, two: &str| {
        let tables = if kind == "linux-ssh" { tables } else { "" };
        let lab =
            format!("kind = {kind:?}\n{tables}[bind.rp_filter]\n{one}\n[bind.other]\n{two}\n");
        match small(other)
            .with("experiments/lab.toml", lab)
            .load_seeded(7)
        {
            Ok(_) => String::new(),
            Err(diagnostics) => diagnostics.render(false),
        }
    };
    for (kind, one, two, collide) in [
        (
            "linux-ssh",
            "sysctl = \"net.ipv4.conf.{dut-in}.rp_filter\"",
            "sysctl = \"net.ipv4.conf.eth1.rp_filter\"",
            true,
        ),
        (
            "linux-ssh",
            "sysctl = \"net.ipv4.conf.{dut-in}.rp_filter\"",
            "sysctl = \"net.ipv4.conf.{dut-out}.rp_filter\"",
            false,
        ),
        (
            "router",
            "knob = \"l2_prepend\"",
            "knob = \"l2_prepend\"",
            true,
        ),
        (
            "router",
            "knob = \"l2_prepend\"",
            "knob = \"iflib.prefetch\"",
            false,
        ),
        (
            "freebsd-ssh",
            "sysctl = \"dev.ix.{0,1}.x\"",
            "sysctl = \"dev.ix.1.x\"",
            true,
        ),
        (
            "freebsd-ssh",
            "sysctl = \"dev.ix.0.x\"",
            "sysctl = \"dev.ix.1.x\"",
            false,
        ),
        (
            "freebsd-ssh",
            "sysctl = \"dev.ix.0.x\"",
            "loader = \"dev.ix.{0,1}.x\"",
            true,
        ),
        (
            "freebsd-ssh",
            "kernel = { 0 = \"a\", 1 = \"b\" }",
            "kernel = { 0 = \"a\", 1 = \"c\" }",
            true,
        ),
    ] {
        let errors = errors(kind, one, two);
        assert_eq!(
            errors.contains("\"rp_filter\" and \"other\" set the same thing"),
            collide,
            "{one}, {two}\n{errors}"
        );
        assert_eq!(errors.is_empty(), !collide, "{errors}");
    }
}

#[test]
fn the_value_of_a_level_is_the_labs_or_its_own() {
    let words = Values([("off".to_owned(), "0".to_owned())].into());
    assert_eq!(words.value(&Level::Text("off".into())), "0");
    assert_eq!(words.value(&Level::Text("on".into())), "on");
    assert_eq!(Values::default().value(&Level::Boolean(true)), "1");
    assert_eq!(Values::default().value(&Level::Integer(-2)), "-2");
}

#[test]
fn mechanisms_that_cannot_be() {
    let mut errors = Vec::new();
    for (levels, binding) in [
        ("[0, 1]", "ethtool = { feature = \"gro\", interfaces = [] }"),
        (
            "[true]",
            "ethtool = { feature = \"--reset\", interfaces = [\"dut-in\", \"eth0\"] }",
        ),
        ("[true]", "sysfs = { file = \"../eth0/threaded\" }"),
        ("[true]", "sysfs = { path = \"threaded\" }"),
        ("[\"off\"]", "sysctl = \"net.x\"\nvalues = { on = 1.5 }"),
        ("[1, \"many\"]", "routes = true"),
        ("[10]", "routes = 10"),
        ("[1]", "xdp = { 1 = \"off\" }\nvalues = { 1 = \"x\" }"),
        ("[1]", "command = { do = \"ip link set {level}\" }"),
        (
            "[1]",
            "command = { do = [\"ip\", \"link\"], undo = [\"{level}\"], check = [] }",
        ),
        ("[1]", "command = { do = [\"ip\", 3], undo = [\"true\"] }"),
        (
            "[\"fq\", \"none\"]",
            "command = { do = { fq = [\"tc\"], non = [] }, undo = [\"true\"] }",
        ),
    ] {
        errors.push(bound(levels, binding).errors());
    }
    assert_snapshot!(errors.join("\n\n"));
}

#[test]
fn placeholders_that_do_not_exist_are_refused() {
    let ruleset = Files::quickstart().with(
        TEN_RULES,
        "# {dut-x} is no placeholder\ntable inet t {\n\tset a { elements = { 1.2.3.4, dut-x } }\n\tchain c {\n\
         \t\tiifname \"{dut-inn}\" drop\n\t\toifname \"{dut-out}\" accept\n\t}\n}\n",
    );
    let commands = bound(
        "[\"fq\", \"none\"]",
        "command.do = [\"tc\", \"dev\", \"{dut-outt}\", \"{level}\"]\n\
         command.undo = [\"tc\", \"{dut-eth}\"]\ncommand.check = [\"awk\", \"{print} {levl}\", \"{dut-in}\"]",
    );
    assert_snapshot!(format!("{}\n\n{}", ruleset.errors(), commands.errors()));
}

#[test]
fn the_resolved_experiment_survives_json() {
    let resolved = Files::quickstart().resolved();
    let json = serde_json::to_string_pretty(&resolved).unwrap();
    assert_eq!(serde_json::from_str::<Resolved>(&json).unwrap(), resolved);
}

#[test]
fn the_hash_is_of_what_makes_the_experiment() {
    let files = Files::quickstart();
    let hash = files.resolved().hash();
    assert_eq!(hash.len(), 64);
    let other_draw = files.load_seeded(8).map(|loaded| loaded.resolved.hash());
    assert_eq!(other_draw.unwrap(), hash, "a drawn seed is no part of it");

    let commented = files
        .clone()
        .changed(EXPERIMENT, "[design]", "# why\n[design]");
    assert_eq!(commented.resolved().hash(), hash, "nor is a comment");

    for changed in [
        files
            .clone()
            .changed(EXPERIMENT, "[design]", "[design]\nseed = 7"),
        files
            .clone()
            .changed(EXPERIMENT, "blocks = 8", "blocks = 9"),
        files.clone().changed(TEN_RULES, "dport 23", "dport 24"),
        files.clone().changed(LAB, "\"fib\"", "\"off\""),
    ] {
        assert_ne!(changed.resolved().hash(), hash);
    }
    let given = |seed| {
        let design = format!("[design]\nseed = {seed}");
        files
            .clone()
            .changed(EXPERIMENT, "[design]", &design)
            .resolved()
            .hash()
    };
    assert_ne!(given(7), given(8));
}

#[test]
fn syntax_errors() {
    assert_snapshot!(
        Files::quickstart()
            .changed(EXPERIMENT, "default = \"none\"", "default = none")
            .changed(EXPERIMENT, "[design]", "[design")
            .errors()
    );
}

#[test]
fn brackets_without_end_do_not_exhaust_the_stack() {
    let depth = 20_000;
    for text in [
        "a = ".to_owned() + &"[".repeat(depth),
        "{a=".repeat(depth),
        "a.".repeat(depth),
    ] {
        assert!(
            Files::quickstart()
                .with(EXPERIMENT, text)
                .load_seeded(7)
                .is_err()
        );
    }
}

#[test]
fn unknown_keys() {
    assert_snapshot!(
        Files::quickstart()
            .changed(EXPERIMENT, "frame_size", "framesize")
            .changed(EXPERIMENT, "[design]", "[design]\nrepetitions = 3")
            .changed(LAB, "nft = ", "ntf = ")
            .errors()
    );
}

#[test]
fn missing_keys() {
    assert_snapshot!(
        Files::quickstart()
            .with(
                EXPERIMENT,
                "[[factor]]\n[[variant]]\n[[comparison]]\n[traffic]\nload = {}\n"
            )
            .with(LAB, "[bind.x]\n")
            .errors()
    );
    assert_snapshot!(
        "empty_file",
        Files::quickstart().with(EXPERIMENT, "").errors()
    );
}

#[test]
fn several_errors_at_once() {
    assert_snapshot!(
        Files::quickstart()
            .changed(EXPERIMENT, "question = ", "questoin = ")
            .changed(EXPERIMENT, "blocks = 8", "blocks = \"eight\"")
            .changed(EXPERIMENT, "[\"inet\"]", "[\"ipv4\", \"inet7\"]")
            .changed(
                EXPERIMENT,
                "baseline = \"no packet filter\"",
                "baseline = \"no paket filter\""
            )
            .changed(LAB, "kind = \"netns\"", "kind = \"netsn\"")
            .without(CONNTRACK)
            .errors()
    );
}

#[test]
fn unknown_factor_and_level() {
    assert_snapshot!(
        Files::quickstart()
            .changed(
                EXPERIMENT,
                "{ \"packet filter\" = \"conntrack\" }",
                "{ \"packet filter\" = \"contrack\" }"
            )
            .changed(
                EXPERIMENT,
                "{ \"forwarding path\"",
                "{ \"forwarding paths\""
            )
            .changed(EXPERIMENT, "default = \"kernel\"", "default = \"Kernel\"")
            .errors()
    );
}

#[test]
fn an_empty_lab_file_lacks_its_kind_and_nothing_else_is_said() {
    let errors = small("").with("experiments/lab.toml", "").errors();
    assert_eq!(errors.matches("error: ").count(), 1, "{errors}");
    assert!(errors.contains("`kind` is missing"), "{errors}");
}

#[test]
fn unbound_factor_and_level() {
    assert_snapshot!(
        Files::quickstart()
            .changed(LAB, "[bind.\"packet filter\"]", "[bind.\"packet filters\"]")
            .changed(LAB, "\"kernel\" = \"off\"", "\"kernal\" = \"off\"")
            .errors()
    );
}

#[test]
fn wrong_types() {
    assert_snapshot!(
        small(
            "description = 3\ndefault = 1.5\n\
             [[variant]]\nlabel = [\"x\"]\n[[variant]]\nlabel = \"y\"\nlevels = \"rp_filter\"\n\
             [traffic]\nfamilies = \"inet\"\nload = 3\n\
             [design]\nrounds = 10.0\ncontrol = \"yes\"\n"
        )
        .errors()
    );
}

#[test]
fn out_of_range() {
    assert_snapshot!(
        small(
            "[traffic]\nframe_size = 9000\nsources = 1000\ndestinations = 1000\nload = { pps = 5 }\n\
             [design]\nblocks = 1\nslice_ms = 0\nseed = -1\nconfidence_percent = nan\n\
             threshold_percent = 100\nrounds = 99999999999999999999999999999999999999999\n"
        )
        .errors()
    );
}

#[test]
fn duplicates() {
    assert_snapshot!(
        Files::quickstart()
            .changed(
                EXPERIMENT,
                "label = \"nftables, conntrack\"",
                "label = \"no packet filter\""
            )
            .changed(
                EXPERIMENT,
                "name = \"forwarding path\"",
                "name = \"packet filter\""
            )
            .changed(EXPERIMENT, "\"10 stateless rules\", ", "\"none\", ")
            .changed(EXPERIMENT, "[\"inet\"]", "[\"inet\", \"inet\"]")
            .errors()
    );
}

#[test]
fn missing_files() {
    assert_snapshot!(
        "missing_experiment",
        Files::quickstart().without(EXPERIMENT).errors()
    );
    assert_snapshot!("missing_lab", Files::quickstart().without(LAB).errors());
    assert_snapshot!(
        "missing_ruleset",
        Files::quickstart().without(TEN_RULES).errors()
    );
    assert_snapshot!(
        "no_lab_given",
        Files::quickstart()
            .changed(EXPERIMENT, "lab = ", "# lab = ")
            .errors()
    );
}

#[test]
fn comparisons_that_compare_nothing() {
    assert_snapshot!(
        small(
            "[[comparison]]\nbaseline = \"rp_filter=0\"\nvariants = [\"rp_filter=0\", \"rp_filter=2\"]\n\
             [[comparison]]\nbaseline = \"rp_filter=1\"\nvariants = []\n"
        )
        .errors()
    );
    assert_snapshot!(
        "one_variant",
        small("[[variant]]\nlabel = \"x\"\n[design]\ncontrol = false\n").errors()
    );
}

#[test]
fn too_many_variants() {
    let levels: Vec<String> = (0..300).map(|level| level.to_string()).collect();
    let factor = format!(
        "[[factor]]\nname = \"many\"\nlevels = [{}]\n",
        levels.join(", ")
    );
    let errors = small(&factor.repeat(20)).errors();
    assert!(errors.contains("more than 256"), "{errors}");
}

#[test]
fn bindings_that_cannot_be() {
    assert_snapshot!(
        Files::quickstart()
            .changed(LAB, "xdp = {", "sysctl = \"net.x\"\nxdp = {")
            .changed(LAB, "net.ipv4.conf.all.rp_filter", "kernel.panic")
            .changed(TEN_RULES, "table", "include \"other.nft\"\ntable")
            .errors()
    );
    assert_snapshot!(
        "factors_that_collide",
        small("[[factor]]\nname = \"strict\"\nlevels = [false, true]\n")
            .changed(
                "experiments/lab.toml",
                "[bind.rp_filter]",
                "[bind.strict]\nsysctl = \"net.ipv4.conf.all.rp_filter\"\n[bind.rp_filter]"
            )
            .errors()
    );
}

#[test]
fn warnings_do_not_stop_a_run() {
    assert_snapshot!(
        Files::quickstart()
            .changed(
                EXPERIMENT,
                "{ \"packet filter\" = \"conntrack\" }",
                "{ \"packet filter\" = \"none\" }"
            )
            .warnings()
    );
}

/// Whatever a file holds, it is either an experiment or has at least one error.
fn is_judged(files: &Files) {
    match files.load_seeded(7) {
        Ok(loaded) => {
            assert_eq!(loaded.warnings.errors(), 0);
            let resolved = loaded.resolved;
            let mut names = names(&resolved);
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), resolved.variants.len());
            for comparison in &resolved.comparisons {
                assert!(resolved.variant(&comparison.baseline).is_some());
            }
            assert!((1..=65_536).contains(&resolved.traffics[0].flows()));
            assert!(!resolved.traffics[0].frame_sizes.is_empty());
            let is_paced = resolved.traffics[0].load.regime() == LoadRegime::Paced;
            assert_eq!(is_paced, resolved.traffics[0].load.intended_pps().is_some());
            let json = serde_json::to_string(&resolved).expect("plain data");
            assert_eq!(
                serde_json::from_str::<Resolved>(&json).expect("plain data"),
                resolved
            );
        }
        Err(diagnostics) => {
            assert!(diagnostics.errors() > 0);
            assert!(!diagnostics.render(true).is_empty());
        }
    }
}

/// A text with one stretch of it replaced.
fn spliced(text: &str, at: usize, length: usize, with: &str) -> String {
    let start = text.floor_char_boundary(at % (text.len() + 1));
    let end = text.floor_char_boundary((start + length).min(text.len()));
    [&text[..start], with, &text[end..]].concat()
}

proptest! {
    #[test]
    fn arbitrary_text_is_judged(text in any::<String>(), lab in any::<String>()) {
        is_judged(&Files::quickstart().with(EXPERIMENT, text.as_str()));
        is_judged(&Files::quickstart().with(LAB, lab.as_str()));
    }

    #[test]
    fn text_of_toml_letters_is_judged(text in "[a-c\\[\\]{}=\"'.,#\n 0-9\t\r]{0,60}") {
        is_judged(&Files::quickstart().with(EXPERIMENT, text));
    }

    #[test]
    fn the_quickstart_with_one_stretch_changed_is_judged(
        at in any::<usize>(),
        length in 0..40_usize,
        with in "([\\[\\]{}=\"'.,#\n 0-9é\u{0}]|none|label|levels|true|nan){0,4}",
    ) {
        for path in [EXPERIMENT, LAB] {
            let files = Files::quickstart();
            let text = spliced(&files.0[Path::new(path)], at, length, &with);
            is_judged(&files.with(path, text));
        }
    }

    #[test]
    fn an_experiment_with_everything_in_it_and_one_stretch_changed_is_judged(
        at in any::<usize>(),
        length in 0..40_usize,
        with in "([\\[\\]{}=\"'.,#\n 0-9é\u{0}-]|imix|levels|true|nan|lab|\\{level\\}|\\.\\.|65536){0,4}",
    ) {
        for path in [EXPERIMENT, "experiments/lab.toml", "experiments/old.pps"] {
            let files = Files::everything();
            let text = spliced(&files.0[Path::new(path)], at, length, &with);
            is_judged(&files.with(path, text));
        }
    }

    #[test]
    fn other_kinds_of_lab_with_one_stretch_changed_are_judged(
        at in any::<usize>(),
        length in 0..40_usize,
        with in "([\\[\\]{}=\"'.,#\n 0-9é\u{0}-]|true|values|knob|loader|router|netns){0,4}",
    ) {
        for lab in [ROUTER, FREEBSD] {
            let files = Files::knobs(lab);
            for path in [EXPERIMENT, "experiments/lab.toml"] {
                let text = spliced(&files.0[Path::new(path)], at, length, &with);
                is_judged(&files.clone().with(path, text));
            }
        }
    }

    #[test]
    fn any_range_of_addresses_or_ports_is_judged(
        text in "[0-9a-f:.\\- ]{0,40}",
        first in any::<u32>(),
        last in any::<u32>(),
        port in any::<u16>(),
        key in prop::sample::select(vec!["inet.sources", "inet6.destinations", "source_ports"]),
    ) {
        let dotted = |number: u32| std::net::Ipv4Addr::from(number);
        let ranges = [
            text,
            format!("{}-{}", dotted(first), dotted(last)),
            format!("{}-{}", dotted(first), dotted(first.saturating_add(port.into()))),
            format!("::{:x}-::{:x}", first, u64::from(first) + u64::from(port)),
            format!("{port}-{}", port.saturating_add(9)),
        ];
        for range in ranges {
            is_judged(&small(&format!("[traffic]\n{key} = {range:?}\n")));
        }
    }

    #[test]
    fn the_quickstart_with_one_line_moved_is_judged(from in any::<usize>(), to in any::<usize>()) {
        for path in [EXPERIMENT, LAB] {
            let files = Files::quickstart();
            let mut lines: Vec<&str> = files.0[Path::new(path)].lines().collect();
            let line = lines.remove(from % lines.len());
            lines.insert(to % (lines.len() + 1), line);
            let text = lines.join("\n");
            is_judged(&files.with(path, text));
        }
    }
}
