//! What `fwdlab ab` writes is read again as what was asked.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fwdlab_model::{
    AddressFamily, Binding, Change, ChangeError, CommandText, Conditions, Files, FrameSizes, Level,
    LoadChoice, LoadRegime, Resolved, Traffic, Values, change, change_options, load,
};
use proptest::prelude::*;

const NETNS: &str = "kind = \"netns\"\n";

struct Memory(BTreeMap<PathBuf, String>);

impl Files for Memory {
    fn text(&self, path: &Path) -> io::Result<String> {
        let text = self.0.get(path).cloned();
        text.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sha256(&self, path: &Path) -> io::Result<String> {
        self.text(path)
    }
}

fn conditions() -> Conditions {
    Conditions {
        families: vec![AddressFamily::Inet],
        frame_sizes: "64".parse().unwrap(),
        flows: vec![(20, 100)],
        zipf: None,
        vlan: None,
        load: LoadChoice::Lab,
        blocks: 8,
        rounds: 10,
    }
}

/// The experiment that comes of a change in a lab, beside which some files lie.
fn written(mut change: Change, lab: &str, conditions: &Conditions, files: &[&str]) -> Resolved {
    let lab = change.lab_text(lab);
    let experiment = change.experiment_text("a.lab.toml", conditions);
    let mut memory: BTreeMap<PathBuf, String> = files
        .iter()
        .map(|file| (PathBuf::from(file), format!("# {file}")))
        .collect();
    memory.insert("a.lab.toml".into(), lab.clone());
    memory.insert("a.toml".into(), experiment.clone());
    match load(Path::new("a.toml"), None, &Memory(memory), 1) {
        Ok(loaded) => loaded.resolved,
        Err(errors) => panic!("{errors}\n{experiment}\n{lab}"),
    }
}

fn of_words(mechanism: &str, words: &[&str]) -> Result<Change, ChangeError> {
    let mut options = change_options();
    let option = options
        .find(|option| option.mechanism == mechanism)
        .unwrap();
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Change::of_words(option.mechanism, &words, str::to_owned)
}

fn command(text: &str) -> CommandText {
    CommandText {
        text: text.to_owned(),
        words: text.split(' ').map(str::to_owned).collect(),
    }
}

fn labels(resolved: &Resolved) -> Vec<&str> {
    let variants = resolved.variants.iter();
    let measured = variants.filter(|variant| variant.control_of.is_none());
    measured.map(|variant| variant.label.as_str()).collect()
}

#[test]
fn every_mechanism_of_a_lab_of_this_machine_is_written_and_read() {
    let key = "net.ipv4.conf.all.rp_filter";
    let resolved = written(
        of_words("sysctl", &[&format!("{key}=0"), &format!("{key}=1")]).unwrap(),
        NETNS,
        &conditions(),
        &[],
    );
    assert_eq!(labels(&resolved), [format!("{key}=0"), format!("{key}=1")]);
    assert_eq!(
        resolved.lab.bindings[key],
        Binding::Sysctl {
            key: key.to_owned(),
            values: Values::default(),
            reads_back: BTreeMap::new(),
        }
    );
    assert_eq!(resolved.variants[1].levels[key], Level::Integer(1));
    assert_eq!(
        resolved.question,
        format!("Effect of replacing {key}=0 with {key}=1 on IPv4 forwarding")
    );

    let change = of_words("nft", &["old/rules.nft", "new/rules.nft", "none"]).unwrap();
    let files = ["old/rules.nft", "new/rules.nft"];
    let resolved = written(change, NETNS, &conditions(), &files);
    assert_eq!(
        labels(&resolved),
        ["old/rules.nft", "new/rules.nft", "none"]
    );
    let Binding::Nft(texts) = &resolved.lab.bindings["nft"] else {
        panic!("{:?}", resolved.lab.bindings);
    };
    assert_eq!(texts["new/rules.nft"], "# new/rules.nft");
    assert_eq!(texts["none"], "");

    for none in ["none", "off", ""] {
        let change = of_words("tc", &[none, "v1.o"]).unwrap();
        let resolved = written(change, NETNS, &conditions(), &["v1.o"]);
        assert_eq!(labels(&resolved), ["none", "v1.o"], "{none:?}");
        let Binding::Tc(programs) = &resolved.lab.bindings["tc"] else {
            panic!("{:?}", resolved.lab.bindings);
        };
        assert_eq!(programs["none"], None);
    }
    let twice = of_words("tc", &["none", "off"]).unwrap_err();
    assert!(matches!(twice, ChangeError::Twice { .. }), "{twice}");

    let change = of_words("ethtool", &["gro=on", "gro=off"]).unwrap();
    assert_eq!(change.name(), "gro-on-off");
    let resolved = written(change, NETNS, &conditions(), &[]);
    assert_eq!(resolved.variants[1].levels["gro"], Level::Boolean(false));
    assert_eq!(labels(&resolved), ["gro=on", "gro=off"]);

    for (mechanism, words) in [
        ("xdp", ["off", "fib"]),
        ("xdp", ["build/v1.o", "build/v2.o"]),
        ("xdp", ["fib", "v1.o"]),
        ("xdp", ["none", "v1.o"]),
        ("routes", ["2", "1000"]),
        ("sysfs", ["threaded=0", "threaded=1"]),
    ] {
        let change = of_words(mechanism, &words).unwrap();
        let objects = words.iter().filter(|word| word.ends_with(".o"));
        let objects: Vec<&str> = objects.copied().collect();
        let resolved = written(change, NETNS, &conditions(), &objects);
        assert_eq!(resolved.variants.len(), 3, "{mechanism}, with the control");
    }
    let resolved = written(
        of_words("knob", &["iflib.tx_abdicate=0", "iflib.tx_abdicate=1"]).unwrap(),
        "kind = \"router\"",
        &conditions(),
        &[],
    );
    assert_eq!(resolved.lab.bindings.len(), 1);
}

#[test]
fn commands_become_a_template_where_they_differ_in_a_word_and_else_a_table() {
    let undo = command("tc qdisc del dev x root");
    let check = command("tc qdisc show");
    let commands = [
        command("tc qdisc replace dev x root fq"),
        command("tc qdisc replace dev x root noqueue"),
    ];
    let change = Change::of_commands(&commands, Some(&undo), Some(&check)).unwrap();
    assert_eq!(change.name(), "tc-fq-noqueue");
    let resolved = written(change, NETNS, &conditions(), &[]);
    assert_eq!(labels(&resolved), ["tc fq", "tc noqueue"]);
    let Binding::Command(programs) = &resolved.lab.bindings["tc"] else {
        panic!("{:?}", resolved.lab.bindings);
    };
    for (variant, command) in resolved.variants.iter().zip(&commands) {
        assert_eq!(programs.apply(&variant.levels["tc"]), command.words);
        assert_eq!(programs.undo(&variant.levels["tc"]), undo.words);
    }
    assert_eq!(programs.check, Some(check.words.clone()));

    // Some words more, in the middle; and another program.
    for other in ["tc qdisc replace dev x root fq limit 10", "true"] {
        let commands = [command("tc qdisc replace dev x root"), command(other)];
        let change = Change::of_commands(&commands, Some(&undo), None).unwrap();
        let resolved = written(change, NETNS, &conditions(), &[]);
        let Binding::Command(programs) = &resolved.lab.bindings["tc"] else {
            panic!("{:?}", resolved.lab.bindings);
        };
        for (variant, command) in resolved.variants.iter().zip(&commands) {
            assert_eq!(programs.apply(&variant.levels["tc"]), command.words);
        }
    }
}

#[test]
fn a_lab_keeps_what_it_has_and_a_factor_of_the_same_name() {
    let lab = "# mine\nkind = \"netns\"\nregime = \"overload\"\n\n[bind.\"xdp\"]\nroutes = true\n";
    let mut change = of_words("xdp", &["off", "fib"]).unwrap();
    let text = change.lab_text(lab);
    assert!(text.starts_with(lab.trim_end()), "{text}");
    assert!(text.contains("[bind.\"xdp (2)\"]"), "{text}");
    let change = of_words("xdp", &["off", "fib"]).unwrap();
    let resolved = written(change, lab, &conditions(), &[]);
    assert_eq!(resolved.traffics[0].load.regime(), LoadRegime::Overload);
    assert!(resolved.lab.bindings.contains_key("xdp (2)"));
}

#[test]
fn words_that_do_not_fit_are_refused() {
    let refusals = [
        of_words("sysctl", &["net.a=1", "net.b=1"]),
        of_words("sysctl", &["net.a", "net.a=1"]),
        of_words("sysctl", &["net.a=", "net.a=1"]),
        of_words("sysctl", &["net.a=1", "net.a=1"]),
        of_words("ethtool", &["gro=1", "gro=off"]),
        of_words("routes", &["many", "2"]),
        of_words("nft", &["a.nft", "a.nft"]),
        Change::of_commands(&[command("a"), command("b")], None, None),
        Change::of_commands(&[command("a"), command("a")], Some(&command("u")), None),
        Change::of_commands(
            &[command("a"), command("a b")],
            Some(&command("u")),
            Some(&command("c")),
        ),
    ];
    let refusals: Vec<String> = refusals
        .into_iter()
        .map(|refusal| refusal.unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn conditions_are_written_as_they_were_asked() {
    let asked = Conditions {
        families: vec![AddressFamily::Inet, AddressFamily::Inet6],
        frame_sizes: "imix".parse().unwrap(),
        flows: vec![change::flows(65_000).unwrap()],
        zipf: Some("1.1".parse().unwrap()),
        vlan: Some(100),
        load: "500000".parse().unwrap(),
        blocks: 9,
        rounds: 3,
    };
    let change = of_words("xdp", &["v1.o", "v2.o"]).unwrap();
    let resolved = written(change, NETNS, &asked, &["v1.o", "v2.o"]);
    let traffic = &resolved.traffics[0];
    assert_eq!(traffic.families, asked.families);
    assert_eq!(FrameSizes(traffic.frame_sizes.clone()), asked.frame_sizes);
    assert_eq!(traffic.sources * traffic.destinations, 65_000);
    assert_eq!((traffic.zipf, traffic.vlan), (asked.zipf, asked.vlan));
    assert_eq!(traffic.load.intended_pps(), Some(500_000));
    assert_eq!((resolved.design.blocks, resolved.design.rounds), (9, 3));

    let asked = Conditions {
        frame_sizes: "64:7,1518:1".parse().unwrap(),
        load: "overload".parse().unwrap(),
        ..conditions()
    };
    let change = of_words("xdp", &["off", "fib"]).unwrap();
    let resolved = written(change, NETNS, &asked, &[]);
    assert_eq!(resolved.traffics[0].load.regime(), LoadRegime::Overload);
    assert_eq!(resolved.traffics[0].frame_sizes, asked.frame_sizes.0);

    let asked = Conditions {
        flows: [1, 1000, 60_000]
            .map(|number| change::flows(number).unwrap())
            .into(),
        families: vec![AddressFamily::Inet, AddressFamily::Inet6],
        ..conditions()
    };
    let change = of_words("xdp", &["off", "fib"]).unwrap();
    let resolved = written(change, NETNS, &asked, &[]);
    let strata: Vec<String> = resolved.strata().map(|of| of.to_string()).collect();
    assert_eq!(strata.len(), 6);
    assert_eq!(strata[2..4], ["inet-flows-1000", "inet6-flows-1000"]);
    let flows: Vec<u32> = resolved.traffics.iter().map(Traffic::flows).collect();
    assert_eq!(flows, [1, 1000, 60_000]);
}

#[test]
fn commands_that_differ_in_an_interface_have_its_name_put_in() {
    let commands = [
        "ip link set {dut-in} mtu 9000",
        "ip link set {dut-out} mtu 9000",
    ]
    .map(command);
    let mut change = Change::of_commands(&commands, Some(&command("true")), None).unwrap();
    let text = change.lab_text(NETNS);
    assert!(text.contains("\"{dut-in}\", \"mtu\""), "{text}");
    assert!(!text.contains("{level}"), "{text}");
}

proptest! {
    #[test]
    fn any_words_are_refused_or_read_as_they_were_written(
        one in "[^\\x00-\\x1f\\x7f-\\u{9f}]{1,20}",
        other in "[^\\x00-\\x1f\\x7f-\\u{9f}]{1,20}",
    ) {
        let commands = [command(&format!("p {one}")), command(&format!("p {other}"))];
        if let Ok(change) = Change::of_commands(&commands, Some(&command("u")), None) {
            let mut change = change;
            let lab = change.lab_text(NETNS);
            let experiment = change.experiment_text("a.lab.toml", &conditions());
            let files = Memory([("a.lab.toml".into(), lab), ("a.toml".into(), experiment)].into());
            // Some texts are no labels; what is read has the words.
            if let Ok(loaded) = load(Path::new("a.toml"), None, &files, 1) {
                let resolved = loaded.resolved;
                let Binding::Command(programs) = &resolved.lab.bindings["p"] else {
                    panic!("{:?}", resolved.lab.bindings);
                };
                for (variant, command) in resolved.variants.iter().zip(&commands) {
                    // The level's own name may be in its words.
                    if !command.text.contains("{level}") {
                        prop_assert_eq!(programs.apply(&variant.levels["p"]), command.words.clone());
                    }
                }
            }
        }
    }

    #[test]
    fn flows_are_sources_times_destinations(flows in 1_u32..=65_536) {
        let (sources, destinations) = change::flows(flows).unwrap();
        prop_assert_eq!(sources * destinations, flows);
        prop_assert!(sources <= 20);
    }
}

#[test]
fn a_setting_of_one_interface_is_that_of_no_other() {
    for (mechanism, words, binding) in [
        (
            "sysfs",
            ["dut-in:threaded=0", "dut-in:threaded=1"],
            r#"sysfs = { file = "threaded", interfaces = ["dut-in"] }"#,
        ),
        (
            "ethtool",
            ["dut-out:tx-checksumming=on", "dut-out:tx-checksumming=off"],
            r#"ethtool = { feature = "tx-checksumming", interfaces = ["dut-out"] }"#,
        ),
        (
            "sysfs",
            ["queues/rx-0/rps_cpus=0", "queues/rx-0/rps_cpus=1"],
            r#"sysfs = { file = "queues/rx-0/rps_cpus" }"#,
        ),
    ] {
        let mut change = of_words(mechanism, &words).unwrap();
        let lab = change.lab_text(NETNS);
        assert!(lab.contains(binding), "{lab}");
        written(change, NETNS, &conditions(), &[]);
    }
}

#[test]
fn one_command_in_two_spellings_is_given_twice() {
    let command = |text: &str| CommandText {
        text: text.to_owned(),
        words: text.split_whitespace().map(str::to_owned).collect(),
    };
    let twice = Change::of_commands(
        &[command("tc qdisc  show"), command("tc qdisc show")],
        Some(&command("true")),
        None,
    );
    assert!(matches!(twice, Err(ChangeError::Twice { .. })), "{twice:?}");
}
