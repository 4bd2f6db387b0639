use crate::lint::tree::sample::{OFF, ON, Sample, sender};

#[test]
fn a_row_that_no_dataset_gives_is_found() {
    let sample = Sample::sound();
    let mut values = OFF;
    values[2] = 1_003_100;
    sample.text("", &[("off", &values), ("on", &ON)]);
    assert_eq!(
        sample.found(),
        ["L115\n\
          published README.md:13: 1001000 1005000 1003100 1003020 1581.7712\n\
          derived off.pps: off.pps"]
    );
    // A label that is none of the folder's names may be of a folder that was not looked at.
    sample.text("", &[("../r1/off", &values), ("on", &ON)]);
    assert_eq!(
        sample.found(),
        ["L117\npublished README.md:13: 1001000 1005000 1003100 1003020 1581.7712"]
    );
    // Without datasets beside it nothing is said of where its rows are from.
    for name in ["off.pps", "on.pps", "gnuplot.data"] {
        sample.remove(name);
    }
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_row_under_any_label_that_has_most_figures_of_a_dataset_is_its() {
    let sample = Sample::sound();
    sample.text("", &[("before the patch", &OFF), ("after it", &ON)]);
    assert_eq!(sample.found(), [""; 0]);
    let altered = "L115\n\
        published README.md:13: 1001000 1005000 1003000 1003000 1581.1888\n\
        derived off.pps: 1001000 1005000 1003000 1003000 1581.1388";
    // Once: the other row has the same deviation.
    sample.edit("README.md", |text| {
        text.replacen("1581.1388", "1581.1888", 1)
    });
    assert_eq!(sample.found(), [altered]);
    // How many values there were is a figure as well.
    sample.text("", &[("before the patch", &OFF), ("after it", &ON)]);
    sample.edit("README.md", |text| text.replace("+   5 ", "+   6 "));
    assert_eq!(
        sample.found(),
        ["L115\n\
          published README.md:14: 1101000 1105000 1103000 1103000 1581.1388\n\
          derived on.pps: 1101000 1105000 1103000 1103000 1581.1388"]
    );
}

#[test]
fn what_else_is_wrong_with_a_block_is_found_beside_a_row_with_a_wrong_figure() {
    let sample = Sample::sound();
    sample.text("", &[("on of it", &OFF), ("off of it", &ON)]);
    sample.edit("README.md", |text| {
        let text = text.replacen("1581.1388", "1581.1888", 1);
        text.replace("pooled s = 1581.14)", "pooled s = 1581.14)x next")
    });
    let codes: Vec<String> = sample
        .found()
        .iter()
        .map(|found| found[..4].to_owned())
        .collect();
    assert_eq!(codes, ["L115", "L209", "L209", "L116"]);
}

#[test]
fn a_row_between_two_datasets_is_of_neither() {
    let sample = Sample::sound();
    // As many figures of the row as `off` has: the count decides, then the place; here nothing does.
    let other = [1_001_000, 1_004_000, 1_003_000, 1_005_000, 1_002_001];
    let text: String = other.iter().map(|value| format!("{value}\n")).collect();
    sample.write("../fbsd14/a.pps", &text);
    sample.write("../fbsd13/b.pps", text.replace("1002001", "1002002"));
    let third = [1_001_000, 1_004_000, 1_003_000, 1_005_000, 1_002_003];
    sample.text("", &[("third", &third), ("on", &ON)]);
    sample.remove("off.pps");
    sample.edit("gnuplot.data", |text| text.replace("off", "gone"));
    let found = sample.found();
    assert!(
        found.iter().any(|found| found.starts_with("L117")),
        "{found:?}"
    );
}

#[test]
fn a_comparison_with_a_wrong_figure_is_found() {
    let sample = Sample::sound();
    sample.edit("README.md", |text| {
        text.replace("pooled s = 1581.14", "pooled s = 1581.15")
    });
    assert_eq!(
        sample.found(),
        ["L115\n\
          published README.md:18: \t(Student's t, pooled s = 1581.15)\n\
          derived README.md:18: \t(Student's t, pooled s = 1581.14)"]
    );
}

#[test]
fn a_block_that_was_changed_after_it_was_printed_is_found() {
    let sample = Sample::sound();
    sample.edit("README.md", |text| {
        text.replace("pooled s = 1581.14)", "pooled s = 1581.14)x next")
    });
    let found = sample.found();
    assert!(
        found[0].starts_with("L116\npublished README.md:18: "),
        "{found:?}"
    );
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_block_of_which_the_plot_was_left_out_is_none_that_was_changed() {
    let sample = Sample::sound();
    sample.edit("README.md", |text| {
        let is_of_plot = |line: &&str| !line.starts_with(['|', '+']) || line.starts_with("+ ");
        let lines = text
            .lines()
            .filter(is_of_plot)
            .map(|line| format!("{line}\n"));
        lines.collect()
    });
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_title_about_another_factor_is_found() {
    let sample = Sample::sound();
    sample.edit("README.md", |text| {
        text.replace("hw.igb.num_queues", "iflib.tx_abdicate")
    });
    assert_eq!(
        sample.found(),
        ["L206\n\
          published README.md:1: Impact of iflib.tx_abdicate on forwarding performance\n\
          derived README.md: hw.igb.num_queues"]
    );
    sample.edit("README.md", |text| {
        text.replace("iflib.tx_abdicate", "the number of queues")
    });
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_row_of_another_session_is_found() {
    let sample = Sample::sound();
    let other = OFF.map(|rate| rate - 200_000);
    let values: String = other.iter().map(|value| format!("{value}\n")).collect();
    sample.write("../fbsd14/old.pps", values);
    assert_eq!(sample.found(), [""; 0]);
    sample.text("", &[("old", &other), ("on", &ON)]);
    let found = sample.found();
    assert_eq!(
        found,
        ["L208\n\
          published README.md:14: 801000 805000 803000 803000 1581.1388\n\
          derived Atom/Intel/hw.igb.num_queues/results/fbsd14/old.pps: old.pps"]
    );
}

#[test]
fn a_row_whose_label_says_where_it_is_from_is_no_finding() {
    let sample = Sample::sound();
    let other = OFF.map(|rate| rate - 200_000);
    let values: String = other.iter().map(|value| format!("{value}\n")).collect();
    sample.write("../fbsd14/old.pps", values);
    for label in ["../fbsd14/old.pps", "fbsd14: inet", "old/topic/off"] {
        sample.text("", &[(label, &other), ("on", &ON)]);
        assert_eq!(sample.found(), [""; 0], "{label}");
    }
}

#[test]
fn labels_of_each_others_rows_are_found() {
    let sample = Sample::sound();
    sample.text("", &[("on", &OFF), ("off", &ON)]);
    let sentences: Vec<String> = sample
        .lint()
        .into_iter()
        .map(|found| found.sentence)
        .collect();
    assert_eq!(
        sentences,
        [
            "the label \"on\" says on, but the figures are those of off.pps, which says off",
            "the label \"off\" says off, but the figures are those of on.pps, which says on",
        ]
    );
    assert_eq!(
        sample.found(),
        [
            "L209\npublished README.md:5: on\nderived off.pps: off.pps",
            "L209\npublished README.md:6: off\nderived on.pps: on.pps",
        ]
    );
    sample.text("", &[("queues=1 (default)", &OFF), ("queues=8", &ON)]);
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_figure_that_the_block_does_not_give_is_found() {
    let sample = Sample::sound();
    sample.text("It is +37% faster:", &[("off", &OFF), ("on", &ON)]);
    let found = sample.found();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("L303\npublished README.md:3: +37%\nderived README.md: "));
    sample.text("It is +10% slower:", &[("off", &OFF), ("on", &ON)]);
    let found = sample.found();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("L303\npublished README.md:3: slower\nderived README.md: +"));
    sample.text("It is 9.37% faster:", &[("off", &OFF), ("on", &ON)]);
    let found = sample.found();
    assert!(
        found[0].starts_with("L115\npublished README.md:3: 9.37%\n"),
        "{found:?}"
    );
    sample.text("It is +10% faster:", &[("off", &OFF), ("on", &ON)]);
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_link_to_the_profile_of_another_is_found() {
    let sample = Sample::sound();
    let link = "[r368287: inet4](PMC/bench.r368606.inet4.pmc.svg)";
    sample.edit("README.md", |text| format!("{text}\n{link}\n"));
    let found = sample.found();
    assert_eq!(
        found,
        ["L304\n\
          published README.md:21: r368287: inet4\n\
          derived README.md:21: PMC/bench.r368606.inet4.pmc.svg"]
    );
    sample.edit("README.md", |text| text.replace("r368287", "r368606"));
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_link_to_nothing_is_found() {
    let sample = Sample::sound();
    sample.write("graph.png", "x");
    sample.write("RAW/thumbnail of it.png", "x");
    let links = |links: &str| {
        sample.text("", &[("off", &OFF), ("on", &ON)]);
        sample.edit("README.md", |text| format!("{text}\n{links}\n"));
        sample.found()
    };
    let there = "![a](graph.png) [b](RAW) [c](RAW/thumbnail%20of%20it.png) [d](./off.pps#x)";
    assert_eq!(links(there), [""; 0]);
    for (broken, target) in [
        ("![a](grpah.png)", "grpah.png"),
        ("[a](PMC/bench.off.1.svg)", "PMC/bench.off.1.svg"),
        ("[a](raw/../oof.pps)", "raw/../oof.pps"),
        ("[a](../fbsd15/b.pps)", "../fbsd15/b.pps"),
    ] {
        let expected = format!("L301\npublished README.md:21: {target}");
        assert_eq!(links(broken), [expected], "{broken}");
    }
    // It may have been left out: folders of results, what lies outside, and kinds of which there is no file.
    for unknown in [
        "[a](../fbsd16/README.md)",
        "[a](../../../other/results/x/a.pps)",
        "[a](../../../../../../README.md)",
        "[a](/graph.png)",
        "[a](patch.diff)",
        "<https://example.org/x.png>",
    ] {
        assert_eq!(links(unknown), [""; 0], "{unknown}");
    }
    // But for its marks it is there.
    sample.write("../fbsd16/notes.md", "x");
    assert_eq!(
        links("[a](../../results-fbsd16/notes.md)"),
        ["L301\n\
          published README.md:21: ../../results-fbsd16/notes.md\n\
          derived Atom/Intel/hw.igb.num_queues/results/fbsd16/notes.md: \
          Atom/Intel/hw.igb.num_queues/results/fbsd16/notes.md"]
    );
    // A checkout is whole.
    std::fs::create_dir(sample.root().join(".git")).unwrap();
    let broken = links("[a](../fbsd17/README.md)");
    assert_eq!(
        broken,
        ["L301\npublished README.md:21: ../fbsd17/README.md"]
    );
}

#[test]
fn a_link_to_what_another_word_of_its_text_says_is_found() {
    let sample = Sample::sound();
    let links =
        "- [ipfw-stateful](../x/b.ipfw-stateless.svg)\n- [queues off](../x/b.queues_on.svg)";
    sample.edit("README.md", |text| format!("{text}\n{links}\n"));
    assert_eq!(
        sample.found(),
        [
            "L304\npublished README.md:21: ipfw-stateful\n\
             derived README.md:21: ../x/b.ipfw-stateless.svg",
            "L304\npublished README.md:22: queues off\nderived README.md:22: ../x/b.queues_on.svg",
        ]
    );
}

#[test]
fn figures_in_a_table_are_those_of_the_datasets() {
    let sample = Sample::sound();
    let table = "| what | median | other |\n|---|--:|--:|\n| off | 1003000 | 801000 |\n| on | 1103000 | 1 |\n\
                 | both | 1101000 | 2 |\n";
    sample.edit("README.md", |text| format!("{text}\n{table}"));
    assert_eq!(sample.found(), [""; 0]);
    sample.edit("README.md", |text| text.replace("| 1103000", "| 1903000"));
    assert_eq!(
        sample.found(),
        ["L115\npublished README.md:24: 1903000\nderived : 1103000"]
    );
}

#[test]
fn what_the_text_says_of_the_laboratory_is_held_against_the_data() {
    let sample = Sample::sound();
    let info = "IMAGE=\"\" CFG=\"KEY\" PKTGEN=\"\" UNAME=\"FreeBSD hp 12.0-CURRENT FreeBSD 12.0-CURRENT r335286M  amd64\"";
    for key in ["off", "on"] {
        sample.write(&format!("RAW/bench.{key}.info"), info.replace("KEY", key));
        let set = format!("../../configs/{key}/etc");
        sample.write(
            &format!("{set}/rc.conf"),
            "ifconfig_igb0=\"inet 1.2.3.4/24\"\nharvest_mask=\"351\"\n",
        );
        sample.write(
            &format!("{set}/sysctl.conf"),
            "net.inet.ip.redirect=0\ndev.igb.0.iflib.tx_abdicate=1\n",
        );
    }
    let lab = |lines: &str| {
        sample.text("", &[("off", &OFF), ("on", &ON)]);
        sample.edit("README.md", |text| {
            text.replacen("\n\n", &format!("\n\nLab:\n{lines}\n"), 1)
        });
        let found = sample.lint().into_iter();
        found
            .map(|found| format!("{} {}", found.rule.code, found.sentence))
            .collect::<Vec<_>>()
    };
    let right = "- FreeBSD 12-head r335286\n- 2000 flows of smallest UDP packets\n- Traffic load at 3 Mpps\n\
                 - harvest.mask=351\n- net.inet.ip.redirect=0\n- dev.igb.X.iflib.tx_abdicate=1\n- e1000 / igb driver\n\
                 - hw.igb.rx_process_limit=-1";
    assert_eq!(lab(right), [""; 0]);
    for (wrong, sentence) in [
        (
            "- FreeBSD 12-head r335268",
            "the text says r335268, the data r335286, by the .info of the runs",
        ),
        (
            "- 5000 flows of UDP",
            "the text says 5000 flows, the data 2000 flows, by the senders' commands",
        ),
        (
            "- Traffic load at 1.448 Mpps",
            "the text says 1448000 pps offered, the data 3000000 to 3000000 pps, by the senders' logs",
        ),
        (
            "- harvest.mask=511",
            "the text says harvest.mask=511, the data harvest.mask=351, by all configuration sets",
        ),
        (
            "- dev.igb.X.iflib.tx_abdicate=0",
            "the text says dev.igb.x.iflib.tx_abdicate=0, the data dev.igb.x.iflib.tx_abdicate=1, by all \
             configuration sets",
        ),
        (
            "- ixl driver",
            "the text says the driver ixl, the data ports of igb, by the configuration sets",
        ),
        (
            "- Quad port Chelsio T540-CR.",
            "the text says the card T540-CR, the data ports of igb, by the configuration sets",
        ),
    ] {
        assert_eq!(lab(wrong), [format!("L306 {sentence}")], "{wrong}");
    }
    // What is varied, and what a set leaves to the system, is not held against the text.
    sample.write(
        "../../configs/on/etc/sysctl.conf",
        "net.inet.ip.redirect=1\n",
    );
    assert_eq!(
        lab("- net.inet.ip.redirect=1\n- dev.igb.X.iflib.tx_abdicate=0"),
        [""; 0]
    );
}

#[test]
fn a_mask_that_is_printed_in_two_ways_is_found() {
    let sample = Sample::sound();
    let key = "kern.random.harvest.mask";
    let mask = format!("```\n{key}_bin: 00000000000100001000101011111\n{key}: 135647\n```\n");
    sample.edit("README.md", |text| format!("{text}\n{mask}"));
    assert_eq!(
        sample.found(),
        ["L305\n\
          published README.md:23: 135647\n\
          derived README.md:22: 00000000000100001000101011111"]
    );
    sample.edit("README.md", |text| text.replace("135647", "135519"));
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_difference_that_goes_with_its_family_is_found() {
    // Each against off: p = 0.04 and 0.8, of which the first is 0.07 as the better of two.
    let [off, on, auto] = [0, 50_000, 5000]
        .map(|above| [0, 20_000, 40_000, 60_000, 80_000].map(|rate| 1_000_000 + above + rate));
    let sample = Sample::sound();
    for (name, rates) in [("off", &off), ("on", &on), ("auto", &auto)] {
        sample.measure(name, rates);
    }
    sample.publish(&[("off", &off), ("on", &on)]);
    assert_eq!(sample.found(), [""; 0]);
    sample.publish(&[("off", &off), ("on", &on), ("auto", &auto)]);
    let found = sample.found();
    assert_eq!(
        found,
        ["L602\npublished README.md:14: Difference\nderived on.pps: undecided"]
    );
}

#[test]
fn an_arm_that_was_offered_more_is_found() {
    let sample = Sample::sound();
    for run in 1..=5 {
        sample.write(&format!("RAW/bench.on.{run}.sender"), sender(3_100_000));
    }
    assert_eq!(
        sample.found(),
        ["L403\n\
          published README.md:14: 3100000 pps offered\n\
          derived off.pps: 3000000 pps offered"]
    );
    // Less than what is worth a word.
    for run in 1..=5 {
        sample.write(&format!("RAW/bench.on.{run}.sender"), sender(3_010_000));
    }
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn cards_and_commits_of_the_text_are_those_of_the_folder() {
    let sample = Sample::sound();
    let folder = "../../../../Intel_i350/x/results/fbsd15-n302145simplecache";
    let found = |lab: &str| {
        let text = format!("# Impact of x on forwarding performance\n\nLab:\n{lab}\n");
        sample.write(&format!("{folder}/README.md"), text);
        sample.write(&format!("{folder}/off.pps"), "1001000\n1004000\n1003000\n");
        let found = sample.lint().into_iter();
        found
            .map(|found| format!("{} {}", found.rule.code, found.sentence))
            .collect::<Vec<_>>()
    };
    for right in [
        "- Quad port Intel i350\n- FreeBSD 15-head n302145 (e69573bc2be)",
        "- Input NIC: Intel i350\n- Output NIC: Chelsio T580\n- FreeBSD 15 with r302154",
        "- FreeBSD n302145 and n302432",
    ] {
        assert_eq!(found(right), [""; 0], "{right}");
    }
    assert_eq!(
        found("- Quad port Intel X710\n- FreeBSD 15-head n302154"),
        [
            "L306 the text says n302154, the data n302145, by the folder that the results are in",
            "L306 the text says the card X710, the data Intel_i350, by the folder that the results are in",
        ]
    );
}

#[test]
fn what_a_text_says_of_one_run_or_of_another_box_is_right() {
    let sample = Sample::sound();
    for sentence in [
        "It is 1.103 Mpps in the third run:",
        "It is 584 Kpps per core:",
        "A packet loss of 37 %:",
    ] {
        sample.text(sentence, &[("off", &OFF), ("on", &ON)]);
        assert_eq!(sample.found(), [""; 0], "{sentence}");
    }
    sample.text("A loss of 37 %:", &[("off", &OFF), ("on", &ON)]);
    assert_eq!(sample.found().len(), 1);
}
