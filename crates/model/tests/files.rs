//! Experiment and lab files as their author sees them: what they become, and what their errors say.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fwdlab_model::{Binding, Diagnostics, Level, LoadRegime, Loaded, Resolved, load};
use insta::assert_snapshot;
use proptest::prelude::*;

const EXPERIMENT: &str = "experiments/quickstart.toml";
/// The lab as the quickstart names it.
const LAB: &str = "experiments/../labs/netns.toml";
const TEN_RULES: &str = "experiments/../labs/rulesets/ten-stateless-rules.nft";
const CONNTRACK: &str = "experiments/../labs/rulesets/conntrack.nft";

/// Files in memory, by path.
#[derive(Clone)]
struct Files(BTreeMap<PathBuf, String>);

impl Files {
    /// The committed quickstart.
    fn quickstart() -> Self {
        let files = [
            (
                EXPERIMENT,
                include_str!("../../../experiments/quickstart.toml"),
            ),
            (LAB, include_str!("../../../labs/netns.toml")),
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

fn labels(resolved: &Resolved) -> Vec<&str> {
    let variants = resolved.variants.iter();
    variants.map(|variant| variant.label.as_str()).collect()
}

fn names(resolved: &Resolved) -> Vec<&str> {
    let variants = resolved.variants.iter();
    variants.map(|variant| variant.name.as_str()).collect()
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
    assert_eq!(resolved.traffic.flows(), 2000);
    assert_eq!(resolved.traffic.regime, LoadRegime::SelfClocked);

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
    let [experiment, lab] = blocks.as_slice() else {
        panic!("{} blocks", blocks.len());
    };
    let files = Files(BTreeMap::new())
        .with(EXPERIMENT, *experiment)
        .with(LAB, *lab);
    assert_eq!(
        labels(&files.resolved()),
        [
            "rp_filter=0",
            "rp_filter=1",
            "rp_filter=2",
            "rp_filter=0 (A/A control)"
        ]
    );
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
        .traffic;
    assert_eq!(traffic.regime, LoadRegime::Paced);
    assert_eq!(traffic.intended_load_pps, Some(100_000));
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
             [traffic]\nfamilies = \"inet\"\nload = \"overload\"\n\
             [design]\nrounds = 10.0\ncontrol = \"yes\"\n"
        )
        .errors()
    );
}

#[test]
fn out_of_range() {
    assert_snapshot!(
        small(
            "[traffic]\nframe_size = 9000\nsources = 100\ndestinations = 100\nload = { pps = 5 }\n\
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
