//! The DUT's settings are what was asked, or the trial says what they were.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fwdlab_lab::{BlockOutcome, LabError, LabEvent};
use fwdlab_model::{AddressFamily, InvalidReason};

use crate::rig::{
    dut_namespace, evidence_against, experiment, forward_chain, measure, own_namespaces,
    own_the_machine, rulesets, run_in, sysctl,
};

const FAMILY: [AddressFamily; 1] = [AddressFamily::Inet];

#[test]
fn a_value_that_the_kernel_refuses_is_named_with_its_file() {
    testkit::require_root!();
    let binding = sysctl("net.ipv4.ip_default_ttl");
    let error = measure(&experiment(&FAMILY, binding, &["300"]), &mut |_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "writing \"/proc/sys/net/ipv4/ip_default_ttl\": Invalid argument (os error 22)"
    );
    assert_eq!(own_namespaces(std::process::id()), Vec::<String>::new());
}

#[test]
fn a_value_that_reads_back_otherwise_is_refused() {
    testkit::require_root!();
    // The kernel takes the number, and shows it in its own way.
    let binding = sysctl("net.ipv4.conf.{dut-in}.log_martians");
    let error = measure(&experiment(&FAMILY, binding, &["0x1"]), &mut |_| ()).unwrap_err();
    assert!(matches!(error, LabError::ReadBack { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "/proc/sys/net/ipv4/conf/dut-in/log_martians was set to \"0x1\" and reads back as \"1\""
    );
}

#[test]
fn a_ruleset_that_nft_refuses_is_told_with_its_complaint() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let wrong = forward_chain("no such rule");
    let resolved = experiment(&FAMILY, rulesets(&[("wrong", &wrong)]), &["wrong"]);
    let error = measure(&resolved, &mut |_| ()).unwrap_err();
    let LabError::Command {
        command,
        status,
        stderr,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(command, "nft -f -");
    assert_eq!(status, "exit status: 1");
    assert!(stderr.contains("syntax error"), "{stderr}");
    assert_eq!(own_namespaces(std::process::id()), Vec::<String>::new());
}

#[test]
fn a_ruleset_that_another_process_flushes_makes_its_trials_invalid() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip");
    let outcome = measure_beside("flush ruleset");
    let [none, one_rule] = &outcome.trials[..] else {
        panic!("{:?}", outcome.trials);
    };
    assert_eq!(evidence_against(none), Vec::<&InvalidReason>::new());
    let [InvalidReason::SettingsMoved { what }] = evidence_against(one_rule)[..] else {
        panic!("{:?}", one_rule.invalid);
    };
    assert!(what.starts_with("the nft ruleset was set to"), "{what}");
}

#[test]
fn a_ruleset_that_another_process_moves_and_moves_back_makes_its_trials_invalid() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip");
    let outcome = measure_beside("add table ip passing\ndelete table ip passing");
    for trial in &outcome.trials {
        let [InvalidReason::SettingsMoved { what }] = evidence_against(trial)[..] else {
            panic!("{:?}", trial.invalid);
        };
        assert!(
            what.starts_with("the generation of the nft ruleset was"),
            "{what}"
        );
    }
}

/// Measures a block of two rulesets while another process, in all its slices, gives nft a script.
fn measure_beside(script: &str) -> BlockOutcome {
    let rule = forward_chain("udp dport 5001 drop");
    let levels = [("none", ""), ("one rule", rule.as_str())];
    let mut resolved = experiment(&FAMILY, rulesets(&levels), &["none", "one rule"]);
    resolved.design.slice_ms = 300;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let outcome = measure(&resolved, &mut |event| {
            if let LabEvent::Ready { .. } = event {
                let dut = dut_namespace();
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        // Fails only where the block has just ended.
                        let _ = Command::new("ip")
                            .args(["netns", "exec", &dut, "nft", script])
                            .output();
                        std::thread::sleep(Duration::from_millis(20));
                    }
                });
            }
            if let LabEvent::Slice(slice) = event {
                // The last slice; behind it the namespace goes.
                is_over.store((slice.round, slice.position) == (2, 1), Ordering::Relaxed);
            }
        });
        is_over.store(true, Ordering::Relaxed);
        outcome
    })
    .unwrap()
}

#[test]
fn the_rulesets_that_come_with_fwdlab_load() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let _machine = own_the_machine();
    let namespace = fwdlab_sys::NetworkNamespace::create("rulesets").unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/rulesets");
    let scratch = tempfile::tempdir().unwrap();
    let mut rulesets = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(path.extension().unwrap(), "nft", "{path:?}");
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text
            .replace("{dut-in}", "lo")
            .replace("{dut-out}", "dummy0");
        let ruleset = path.file_name().unwrap();
        let ruleset = scratch.path().join(ruleset);
        std::fs::write(&ruleset, text).unwrap();
        let ruleset = ruleset.to_str().unwrap();
        if path.ends_with("flowtable.nft") {
            // Kernels may be built without flow tables; nft itself has to understand it everywhere.
            let check = [
                "ip",
                "netns",
                "exec",
                namespace.name(),
                "nft",
                "-c",
                "-f",
                ruleset,
            ];
            let output = Command::new(check[0]).args(&check[1..]).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            let errors = stderr.matches("Error: ").count();
            assert_eq!(
                errors,
                stderr.matches("Error: Could not process rule: ").count(),
                "{stderr}"
            );
        } else {
            run_in(&namespace, &["nft", "-c", "-f", ruleset]);
        }
        rulesets += 1;
    }
    assert!(rulesets >= 2);
}
