//! The rules on published results against the part of the public archive that lies in the shared data, and
//! against the seeds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fwdlab_archive::lint::{Finding, Severity};
use fwdlab_model::imported::DatasetOrigin;
use fwdlab_netbenches::lint::lint_tree;
use fwdlab_netbenches::{ArchiveTree, FileKind, Outcome};

/// A finding's code, and where it is.
fn code_and_place(root: &Path, finding: &Finding) -> String {
    let place = finding.evidence.first().map_or_else(
        || finding.directory.display().to_string(),
        |evidence| {
            let path = evidence.path.strip_prefix(root).unwrap_or(&evidence.path);
            let line = evidence
                .line
                .map_or(String::new(), |line| format!(":{line}"));
            format!("{}{line}", path.display())
        },
    );
    format!("{} {place}", finding.rule.code)
}

fn counts(findings: &[Finding]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.rule.code).or_default() += 1;
    }
    let lines = counts.iter().map(|(code, count)| format!("{code} {count}"));
    lines.collect()
}

#[test]
fn what_is_found_in_the_archive_is_what_was_judged() {
    let root = testkit::require_shared!("corpus/netbenches");
    let tree = ArchiveTree::read(&root).unwrap();
    let findings = lint_tree(&tree);
    let mut errors: Vec<String> = findings
        .iter()
        .filter(|finding| finding.rule.severity == Severity::Error)
        .map(|finding| format!("{}: {}", code_and_place(&root, finding), finding.sentence))
        .collect();
    errors.sort();
    assert_eq!(errors, ERRORS);
    assert_eq!(counts(&findings), COUNTS);
}

/// Codes, and how often each is found. L301, L304, L306 and L208 were looked at one by one, but for those in
/// Atom_C2758_8Cores/Chelsio_T540-CR/{wireguard,firewalls} and Atom_C2558_4Cores/Intel_i350/wireguard.
const COUNTS: [&str; 24] = [
    "L102 4", "L103 2", "L111 10", "L112 4", "L114 6", "L115 1", "L116 1", "L201 2", "L202 4",
    "L208 12", "L301 12", "L303 1", "L304 60", "L305 3", "L306 23", "L402 2", "L403 7", "L405 18",
    "L407 14", "L408 10", "L409 7", "L501 16", "L502 7", "L602 13",
];

/// Each was held against what lies in its folder without these readers: all are true.
const ERRORS: [&str; 29] = [
    "L102 Atom_C2558_4Cores/Intel_i350/LROTSO/results/fbsd11.1-yandex/enabled-default.pps: enabled-default.pps leaves out the run whose log gives 502561: 42 % of the others' median",
    "L102 Atom_C2558_4Cores/Intel_i350/hw.intr_storm_threshold/results/fbsd11.1-yandex/9000.pps: 9000.pps leaves out the run whose log gives 853109: 70 % of the others' median",
    "L102 Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd.2017/311703.pps: 311703.pps leaves out the run whose log gives 1: 0 % of the others' median",
    "L102 Xeon_E5-2650v4_2x12Cores/Intel_82599ES/hw.ix.num_queues/results/fbsd11.1-yandex/16.pps: 16.pps leaves out the run whose log gives 4270198: 44 % of the others' median",
    "L103 Atom_C2558_4Cores/Intel_i350/ipf-stateless-rules/results/fbsd11.1-yandex/1.pps:1: 1.pps has 556543 where the log gives 280020",
    "L103 Atom_C2758_8Cores/Intel_82599/firewalls/results/fbsd11.1-yandex/forwarding.inet6.pps:3: forwarding.inet6.pps has 3422432 where the log gives 2082911",
    "L111 AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib/311848.pps:1: 311848.pps has 622368.5 where the log gives 481515, and that run was profiled: it took the place of another",
    "L111 AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib/311849.pps:1: 311849.pps has 465402 where the log gives 362502, and that run was profiled: it took the place of another",
    "L111 AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib/312904.pps:1: 312904.pps has 570701.5 where the log gives 438497, and that run was profiled: it took the place of another",
    "L111 AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib/312905.pps:1: 312905.pps has 586193 where the log gives 409874, and that run was profiled: it took the place of another",
    "L111 AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib/313448.pps:1: 313448.pps has 502255 where the log gives 372740, and that run was profiled: it took the place of another",
    "L111 Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd12-head.iflib/311848.pps:1: 311848.pps has 936368.5 where the log gives 868746.5, and that run was profiled: it took the place of another",
    "L111 Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd12-head.iflib/311849.pps:1: 311849.pps has 834713 where the log gives 244519, and that run was profiled: it took the place of another",
    "L111 Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd12-head.iflib/312904.pps:1: 312904.pps has 823657 where the log gives 760891.5, and that run was profiled: it took the place of another",
    "L111 Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd12-head.iflib/312905.pps:1: 312905.pps has 856763.5 where the log gives 739480, and that run was profiled: it took the place of another",
    "L111 Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd12-head.iflib/313448.pps:1: 313448.pps has 862947.5 where the log gives 779906, and that run was profiled: it took the place of another",
    "L114 Atom_C2558_4Cores/Intel_i350/LROTSO/results/fbsd11.1-yandex/gnuplot.data:3: gnuplot.data has for enabled-default figures that are not those of enabled-default.pps",
    "L114 Atom_C2558_4Cores/Intel_i350/hw.intr_storm_threshold/results/fbsd11.1-yandex/gnuplot.data:3: gnuplot.data has for 9000 figures that are not those of 9000.pps",
    "L114 Atom_C2758_8Cores/Intel_82599/firewalls/results/fbsd11.1-yandex/gnuplot.data:3: gnuplot.data has for forwarding.inet6 figures that are not those of forwarding.inet6.pps",
    "L114 Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd.2017/gnuplot.data:3: gnuplot.data has for 311703 figures that are not those of 311703.pps",
    "L114 Xeon_E5-2650v4_2x12Cores/Intel_82599ES/hw.ix.num_queues/results/fbsd11.1-yandex/gnuplot.data:17: gnuplot.data has for 16 figures that are not those of 16.pps",
    "L114 Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/main-vs-stable13/STABLE13.data:2: STABLE13.data has for STABLE13.forwarding.inet4 figures that are not those of STABLE13.forwarding.inet4.pps",
    "L115 Atom_C2558_4Cores/Intel_i350/hw.igb.num_queues/results/fbsd11-routing.r287531/README.md:27: pps.1 does not give the row of \"pps.1\"",
    "L201 AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd.2016/ipfw.data:2: ipfw.data has for 293069 the figures of RAW/293069.pf-statefull.pps, not of RAW/293069.ipfw-statefull.pps, and so in 55 rows",
    "L201 Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd12-head.r317849.VIMAGE/ipfw.data:2: ipfw.data has for 317849 the figures of 317849.pf-statefull.pps, not of 317849.ipfw-statefull.pps, and so in 2 rows",
    "L202 AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/icmp_drop_redirect/results/fbsd15-n302145/off_default.inet4.pps: off_default.inet4.pps holds what the logs of on_default.inet4 give: its name says off, theirs on",
    "L202 AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/icmp_drop_redirect/results/fbsd15-n302145/off_default.inet6.pps: off_default.inet6.pps holds what the logs of on_default.inet6 give: its name says off, theirs on",
    "L202 AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/icmp_drop_redirect/results/fbsd15-n302145/on.inet4.pps: on.inet4.pps holds what the logs of off.inet4 give: its name says on, theirs off",
    "L202 AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/icmp_drop_redirect/results/fbsd15-n302145/on.inet6.pps: on.inet6.pps holds what the logs of off.inet6 give: its name says on, theirs off",
];

#[test]
fn every_file_of_the_archive_is_of_a_known_kind_and_read() {
    let root = testkit::require_shared!("corpus/netbenches");
    let tree = ArchiveTree::read(&root).unwrap();
    for file in &tree.files {
        assert!(!matches!(file.outcome, Outcome::Failed(_)), "{file:?}");
        assert_ne!(file.kind, FileKind::Unnamed, "{file:?}");
    }
}

#[test]
fn every_dataset_that_its_logs_do_not_give_is_found() {
    let root = testkit::require_shared!("corpus/netbenches");
    let tree = ArchiveTree::read(&root).unwrap();
    let findings = lint_tree(&tree);
    let mut altered = 0;
    for folder in &tree.folders {
        for dataset in &folder.datasets {
            if dataset.origin != DatasetOrigin::Altered {
                continue;
            }
            altered += 1;
            let path = root.join(&tree.files[dataset.file].path);
            let is_of_it = |finding: &&Finding| {
                finding.rule.code.starts_with("L1")
                    && finding.rule.severity == Severity::Error
                    && finding
                        .evidence
                        .first()
                        .is_some_and(|evidence| evidence.path == path)
            };
            assert!(
                findings.iter().any(|finding| is_of_it(&finding)),
                "{path:?}"
            );
        }
    }
    assert_eq!(altered, 16);
}

/// Where the archive has the seeds, in their order.
const SEEDS: [&str; 5] = [
    "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/hyperthreading/results/fbsd15-n302145",
    "Atom_C2758_8Cores/Intel_82599/iflib.tx_reclaim_thresh/results/fbsd15-n302145simplecache",
    "Atom_C2758_8Cores/Intel_82599/iflib.simple_tx/results/fbsd15-n302145simplecache",
    "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/results/fbsd15-n302145",
    "Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-n277567-D33658",
];

#[test]
fn the_seeds_beside_their_data_are_found_to_be_what_they_are() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut seeds: Vec<_> = fs::read_dir(testkit::require_shared!("seeds"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    seeds.sort();
    assert_eq!(seeds.len(), SEEDS.len());
    let folder = tempfile::tempdir().unwrap();
    for (seed, place) in seeds.iter().zip(SEEDS) {
        testkit::copy_folder(&archive.join(place), &folder.path().join(place));
        fs::write(
            folder.path().join(place).join("README.md"),
            fs::read(seed).unwrap(),
        )
        .unwrap();
    }
    let tree = ArchiveTree::read(folder.path()).unwrap();
    let findings = lint_tree(&tree);
    let mut found: Vec<String> = findings
        .iter()
        .map(|finding| {
            let of = SEEDS
                .iter()
                .position(|place| finding.directory == folder.path().join(place))
                .unwrap();
            let path = folder.path().join(SEEDS[of]);
            format!("00{of} {}", code_and_place(&path, finding))
        })
        .collect();
    found.sort();
    assert_eq!(found, FOUND_IN_SEEDS);
}

const FOUND_IN_SEEDS: [&str; 15] = [
    "000 L206 README.md:1",
    "000 L306 README.md:7",
    "000 L407 RAW/bench.ht_on_intr_off_iflib_use_logical_cores.5.sender",
    "000 L602 README.md:44",
    "000 L602 README.md:49",
    "001 L208 README.md:42",
    "001 L208 README.md:43",
    "001 L306 README.md:7",
    "002 L306 README.md:7",
    "003 L305 README.md:25",
    "003 L305 README.md:25",
    "003 L305 README.md:25",
    "003 L306 README.md:7",
    "003 L403 README.md:53",
    "003 L407 RAW/bench.4479.inet4.3.sender",
];
