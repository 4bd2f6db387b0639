//! Trees that were damaged, or made to do harm: whatever is in them is a finding, and nothing stops the others.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::lint::tree::sample::{OFF, OFFERED_PPS, Sample, receiver, sender};

/// A file of every form that is read.
const FORMS: [&str; 10] = [
    "RAW/bench.off.3.receiver",
    "RAW/bench.off.3.sender",
    "RAW/bench.off.info",
    "PMC/bench.off.pmc.graph",
    "PMC/bench.off.pmc.stack",
    "PMC/bench.off.pmc.log",
    "off.pps",
    "off.equilibrium",
    "gnuplot.data",
    "README.md",
];

#[test]
fn a_log_that_is_cut_anywhere_is_found() {
    let sample = Sample::sound();
    let (log, offered) = (receiver(&[OFF[2]; 30]), sender(OFFERED_PPS));
    // From the summary on it may be whole.
    let end = log.find("Received").unwrap();
    for cut in 0..=end {
        sample.write(&format!("RAW/bench.cut.{cut}.receiver"), &log[..cut]);
        sample.write(&format!("RAW/bench.cut.{cut}.sender"), &offered);
    }
    let findings = sample.lint();
    let first_sample = log.find("min_space").unwrap() + "min_space".len();
    // Behind 24 of 30 samples no more than 5 s are missing, and the last of them may be torn.
    let nearly_whole = log.find("126.000000").unwrap();
    let whole_from = log.find("125.000000").unwrap();
    for cut in 0..=end {
        let path = sample.path(&format!("RAW/bench.cut.{cut}.receiver"));
        let mut codes: Vec<&str> = findings
            .iter()
            .filter(|finding| finding.evidence[0].path == path)
            .map(|finding| finding.rule.code)
            .collect();
        // The last line may be cut as well.
        codes.retain(|code| !["L405", "L412"].contains(code));
        match cut {
            _ if cut >= nearly_whole => assert_eq!(codes, [""; 0], "{cut}"),
            _ if cut >= whole_from => assert!(codes.is_empty() || codes == ["L404"], "{cut}"),
            _ if cut >= first_sample => assert_eq!(codes, ["L404"], "{cut}"),
            0..4 => assert_eq!(codes, ["L902"], "{cut}"),
            // A report that is cut may be one of an earlier version.
            _ => assert!(
                codes.is_empty() || codes == ["L902"] || codes == ["L404"],
                "{cut}: {codes:?}"
            ),
        }
    }
}

#[test]
fn damage_in_any_file_stops_nothing() {
    let sample = Sample::sound();
    let graph = "@ cycles [12 samples]\n\n100.0%  [12]       ip_input @ /boot/kernel/kernel\n\n";
    sample.write("PMC/bench.off.pmc.graph", graph);
    sample.write("PMC/bench.off.pmc.stack", "ip_input 12\n");
    sample.write(
        "PMC/bench.off.pmc.log",
        "CONVERSION STATISTICS:\n #samples/total 12\n",
    );
    sample.write("off.equilibrium", "1\n");
    assert_eq!(sample.found(), [""; 0]);
    let damage = (
        select(&FORMS[..]),
        any::<Index>(),
        any::<Vec<u8>>(),
        0..100_usize,
    );
    proptest!(ProptestConfig::with_cases(128), |((name, at, bytes, left_out) in damage)| {
        let sound = fs::read(sample.path(name)).unwrap();
        let at = at.index(sound.len() + 1);
        let mut damaged = sound[..at].to_vec();
        damaged.extend(bytes);
        damaged.extend(sound.iter().skip(at + left_out));
        sample.write(name, damaged);
        let findings = sample.lint();
        sample.write(name, sound);
        for finding in findings {
            prop_assert!(!finding.evidence.is_empty(), "{}", finding.sentence);
        }
    });
}

#[test]
fn files_of_nothing_but_nul_are_findings() {
    for name in FORMS {
        let sample = Sample::sound();
        sample.write(name, [0; 4096]);
        let codes: Vec<&str> = sample
            .lint()
            .iter()
            .map(|finding| finding.rule.code)
            .collect();
        match name {
            // A text may say anything, and nothing.
            "README.md" => assert!(codes.is_empty(), "{codes:?}"),
            // To ministat, a line that begins with NUL is blank.
            "off.pps" => assert_eq!(codes, ["L112", "L115"]),
            _ => assert!(codes.contains(&"L902"), "{name}: {codes:?}"),
        }
    }
}

#[test]
fn a_file_that_is_far_too_large_is_not_read() {
    let sample = Sample::sound();
    let file = File::create(sample.path("large.pps")).unwrap();
    file.set_len(65 << 20).unwrap();
    assert_eq!(
        sample.found(),
        ["L902\n\
          published large.pps: larger than 64 MiB, so no file of the archive's"]
    );
}

#[test]
fn symbolic_links_lead_nowhere() {
    let sample = Sample::sound();
    symlink("..", sample.path("loop")).unwrap();
    symlink("on.pps", sample.path("other.pps")).unwrap();
    symlink("/dev/zero", sample.path("RAW/bench.off.6.receiver")).unwrap();
    symlink("nowhere", sample.path("nowhere.pps")).unwrap();
    assert_eq!(sample.found(), [""; 0]);
}
