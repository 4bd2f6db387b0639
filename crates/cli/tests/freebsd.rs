//! Labs of FreeBSD hosts, whose DUT is a namespace with stand-ins for FreeBSD's programs: which commands are asked,
//! in which order, and that all is put back. Nothing of it proves that FreeBSD takes them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use shared::rig::{Rig, assert_as_before};
use shared::{block_records, data, records, trial_records};
use testkit::{Host, text};

/// The programs of FreeBSD that a run asks.
const PROGRAMS: [&str; 17] = [
    "arp", "ifconfig", "ipf", "ipfstat", "ipfw", "kenv", "kldstat", "mount", "ndp", "netstat",
    "nextboot", "pfctl", "pmcstat", "route", "shutdown", "sysctl", "uname",
];

/// A rig whose DUT answers as FreeBSD does.
fn start() -> Rig {
    let rig = Rig::start();
    let programs = fs::read_to_string(data("freebsd-programs.sh")).unwrap();
    for program in PROGRAMS {
        rig.lab.install(Host::Dut, program, &programs);
    }
    for (from, to) in [
        ("freebsd.toml", "hosts.toml"),
        ("freebsd-lab.toml", "hosts-lab.toml"),
    ] {
        fs::copy(data(from), rig.path(to)).unwrap();
    }
    rig
}

/// A file that the stand-ins have written.
fn written(rig: &Rig, name: &str) -> String {
    fs::read_to_string(rig.lab.home(Host::Dut).join(name)).unwrap_or_default()
}

fn loader_configuration(rig: &Rig) -> PathBuf {
    let grub = rig.lab.grub(Host::Dut);
    grub.parent().unwrap().join("loader.conf.local")
}

#[test]
fn a_freebsd_dut_boots_for_every_trial_and_is_put_back() {
    require_rig!();
    let rig = start();
    let owners = "# the owner's\nhw.usb.no_pf=\"1\"\n";
    fs::write(loader_configuration(&rig), owners).unwrap();
    let before = rig.dut();
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
    let output = rig.run().output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_as_before(&rig, &before);
    assert_eq!(
        fs::read_to_string(loader_configuration(&rig)).unwrap(),
        owners
    );
    let directory = rig.directory();
    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    for expected in [
        "A FreeBSD host between the two ports of a tester, both reached by ssh",
        "stand-ins for FreeBSD's programs",
        "FreeBSD 15.0-CURRENT #0 main-n277567",
        "Atom(TM)",
    ] {
        assert!(readme.contains(expected), "{expected}: {readme}");
    }
    for block in block_records(&records(&directory)) {
        assert_eq!(block["conservation"]["inet"]["unaccounted_frames"], 0);
        let variants = block["differing_facts"].as_object().unwrap();
        assert_eq!(variants.len(), 2, "{variants:?}");
        let facts = variants.values().next_back().unwrap().as_object().unwrap();
        let names: Vec<&String> = facts.keys().collect();
        assert_eq!(
            names,
            [
                "kenv dev.eth.1.iflib.simple_tx",
                "kenv dev.eth.2.iflib.simple_tx",
                "sysctl dev.eth.1.iflib.simple_tx",
                "sysctl dev.eth.2.iflib.simple_tx",
            ]
        );
    }
    // Both looked for the load themselves: what they saw came with it.
    let trials = trial_records(&records(&directory));
    assert!(
        trials.iter().any(|trial| trial["dut_cpus"].is_array()),
        "{trials:?}"
    );
    for trial in trials {
        let profile = &trial["profile"];
        assert_eq!(profile["samples"], 300, "{trial}");
        assert_eq!(profile["idle_samples"], 30, "{trial}");
        assert_eq!(profile["faults"], serde_json::json!([]), "{trial}");
        assert!(profile["pooled_pps"].as_f64() > Some(0.0), "{trial}");
    }
    let changes = written(&rig, "changes");
    // Two boots as by itself, two for trials, and what is put back before the second of them.
    let mut boots = 0;
    let first: Vec<&str> = changes
        .lines()
        .take_while(|line| {
            let is_before = boots < 4;
            boots += usize::from(*line == "shutdown -r now");
            is_before
        })
        .collect();
    let mac = |text: &str| {
        let words = text.split(' ');
        let is_mac = |word: &&str| word.len() == 17 && word.matches(':').count() == 5;
        let words = words.map(|word| match word {
            word if is_mac(&word) => "MAC",
            word if word.starts_with("/tmp/fwdlab.") => "LOG",
            word => word,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let first: Vec<String> = first.into_iter().map(mac).collect();
    insta::assert_snapshot!("freebsd_changes", first.join("\n"));
    let questions = written(&rig, "questions");
    let questions: BTreeSet<&str> = questions.lines().collect();
    let questions: Vec<&str> = questions.into_iter().collect();
    insta::assert_snapshot!("freebsd_questions", questions.join("\n"));
}

#[test]
fn a_killed_run_on_a_freebsd_dut_is_put_back() {
    require_rig!();
    let rig = start();
    let owners = "# the owner's\n";
    fs::write(loader_configuration(&rig), owners).unwrap();
    let before = rig.dut();
    let tunables = || fs::read_to_string(loader_configuration(&rig)).unwrap();
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
    let child = rig.run().spawn().unwrap();
    let mut child = shared::wait_for_child("a boot with a tunable", child, || {
        rig.lab.reboots(Host::Dut) >= 3 && tunables() != owners
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert_eq!(tunables(), owners, "{}", text(&restored));
    assert_as_before(&rig, &before);
    let last = written(&rig, "changes");
    assert_eq!(last.lines().last(), Some("shutdown -r now"), "{last}");
}

#[test]
fn a_kernel_that_starves_its_queues_and_ports_that_lead_away_are_refused() {
    require_rig!();
    let rig = start();
    let refused = |why: &str| {
        let output = rig.run().output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        assert!(text(&output).contains(why), "{why}: {}", text(&output));
    };
    rig.change(
        "hosts-lab.toml",
        "host = \"router\"\nin = \"eth1\"",
        "host = \"router\"\nin = \"admin\"",
    );
    refused("a default route leads through admin");
    rig.change("hosts-lab.toml", "in = \"admin\"", "in = \"eth7\"");
    refused("it has no interface eth7; `ifconfig -l` lists them");
    rig.change("hosts-lab.toml", "in = \"eth7\"", "in = \"eth1\"");
    // Without a factor that needs a boot.
    rig.change(
        "hosts-lab.toml",
        "{ loader = \"dev.eth.{1,2}.iflib.simple_tx\" }",
        "{ sysctl = \"kern.random.harvest.mask\" }",
    );
    rig.change(
        "hosts.toml",
        "[settings]\n\"kern.random.harvest.mask\" = 351\n",
        "",
    );
    let programs = fs::read_to_string(data("freebsd-programs.sh")).unwrap();
    let with_rss = programs.replace("options\\tINET\\n", "options\\tRSS\\n");
    assert_ne!(programs, with_rss);
    rig.lab.install(Host::Dut, "sysctl", &with_rss);
    refused("its kernel has `options RSS`, with net.isr.maxthreads=1 and net.isr.bindthreads=1");
}
