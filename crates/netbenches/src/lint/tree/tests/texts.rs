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
fn a_block_that_was_changed_after_it_was_printed_is_found() {
    let sample = Sample::sound();
    sample.edit("README.md", |text| {
        text.replace("pooled s = 1581.14", "pooled s = 1581.15")
    });
    assert_eq!(
        sample.found(),
        ["L116\n\
          published README.md:18: \t(Student's t, pooled s = 1581.15)\n\
          derived README.md:18: \t(Student's t, pooled s = 1581.14)"]
    );
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
          derived README.md:1: hw.igb.num_queues"]
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
fn labels_of_each_others_rows_are_found() {
    let sample = Sample::sound();
    sample.text("", &[("on", &OFF), ("off", &ON)]);
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
    sample.text("It is +15% faster:", &[("off", &OFF), ("on", &ON)]);
    let found = sample.found();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("L303\npublished README.md:3: +15%\nderived README.md:3: "));
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
