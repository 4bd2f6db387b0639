//! The mechanisms of the DUT but eBPF programs, on this machine's kernel: what a level does, that it is read back, that
//! moving it is seen, and what this machine cannot have.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use fwdlab_lab::{BlockOutcome, LabError, LabEvent, NetnsLab};
use fwdlab_model::{
    AddressFamily, Apply, Binding, CommandBinding, DutInterface, InvalidReason, Level, Resolved,
    Stratum, Values,
};

use crate::rig::{
    FAMILIES, dut_namespace, evidence_against, experiment, measure, own_namespaces,
    own_the_machine, run, sysctl,
};

pub(crate) const FAMILY: [AddressFamily; 1] = [AddressFamily::Inet];
const DUT_IN: [DutInterface; 1] = [DutInterface::DutIn];

/// Measures a block, and in each slice asks the DUT from outside; the answers by variant.
pub(crate) fn observe(
    resolved: &Resolved,
    question: &[&str],
) -> (BlockOutcome, Vec<(String, String)>) {
    let mut seen = Vec::new();
    let outcome = measure(resolved, &mut |event| {
        if let LabEvent::Slice(slice) = event {
            let dut = dut_namespace();
            let command = [&["ip", "netns", "exec", &dut], question].concat();
            seen.push((slice.variant.as_str().to_owned(), run(&command)));
        }
    })
    .unwrap();
    (outcome, seen)
}

/// Measures a block and changes the DUT from outside between its second and its third slice.
fn disturb(resolved: &Resolved, change: &[&str]) -> BlockOutcome {
    let mut slices = 0;
    measure(resolved, &mut |event| {
        if let LabEvent::Slice(_) = event {
            slices += 1;
            if slices == 2 {
                let dut = dut_namespace();
                run(&[&["ip", "netns", "exec", &dut], change].concat());
            }
        }
    })
    .unwrap()
}

pub(crate) fn unavailable(resolved: &Resolved) -> Vec<Option<String>> {
    let _machine = own_the_machine();
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let state = tempfile::tempdir().unwrap();
    let lab = NetnsLab::open(resolved, state.path(), interrupts).unwrap();
    lab.unavailable().unwrap()
}

pub(crate) fn assert_sound(outcome: &BlockOutcome) {
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
        assert!(trial.tester.forwarded_frames > 0, "{trial:?}");
    }
}

fn ethtool(feature: &str, interface: DutInterface) -> Binding {
    Binding::Ethtool {
        feature: feature.into(),
        interfaces: vec![interface],
    }
}

#[test]
fn a_feature_is_switched_under_load() {
    testkit::require_root!();
    let binding = ethtool("tx-checksumming", DutInterface::DutOut);
    let mut seen = Vec::new();
    let outcome = measure(
        &experiment(&FAMILY, binding, &["on", "off"]),
        &mut |event| {
            if let LabEvent::Slice(slice) = event {
                let features = || fwdlab_sys::features("dut-out").unwrap();
                let features = fwdlab_sys::run_in_namespace(&dut_namespace(), features);
                let features = features.unwrap().unwrap();
                let feature = features.iter().find(|f| f.name == "tx-checksum-ip-generic");
                seen.push((slice.variant.as_str().to_owned(), feature.unwrap().is_on));
            }
        },
    )
    .unwrap();
    assert_sound(&outcome);
    let is_on = |variant: &str| (variant.to_owned(), variant == "on");
    assert_eq!(seen, ["on", "off", "off", "on"].map(is_on));
}

#[test]
fn features_of_an_interface_are_what_they_were_set_to() {
    testkit::require_root!();
    let namespace = fwdlab_sys::NetworkNamespace::create("features").unwrap();
    let state = |name: &str| {
        let features = namespace
            .run(|| fwdlab_sys::features("lo"))
            .unwrap()
            .unwrap();
        features.into_iter().find(|f| f.name == name).unwrap().is_on
    };
    for is_on in [false, true, false] {
        namespace
            .run(|| fwdlab_sys::set_features("lo", &["rx-gro"], is_on))
            .unwrap()
            .unwrap();
        assert_eq!(state("rx-gro"), is_on);
    }
    let error = namespace
        .run(|| fwdlab_sys::set_features("lo", &["loopback"], false))
        .unwrap()
        .unwrap_err();
    assert!(
        error.to_string().contains("turning loopback off"),
        "{error}"
    );
}

#[test]
fn features_that_this_machine_cannot_have_are_unavailable_with_the_reason() {
    testkit::require_root!();
    for (feature, interface, level, reason) in [
        (
            "gro",
            DutInterface::DutIn,
            "off",
            Some("polls only with gro"),
        ),
        ("gro", DutInterface::DutIn, "on", None),
        ("gro", DutInterface::DutOut, "off", None),
        (
            "rx-gro-warp",
            DutInterface::DutOut,
            "on",
            Some("no ethtool feature rx-gro-warp"),
        ),
        (
            "loopback",
            DutInterface::DutOut,
            "on",
            Some("is fixed to off"),
        ),
        ("loopback", DutInterface::DutOut, "off", None),
    ] {
        let seen = unavailable(&experiment(&FAMILY, ethtool(feature, interface), &[level]));
        match (&seen[0], reason) {
            (None, None) => {}
            (Some(seen), Some(reason)) if seen.contains(reason) => {}
            other => panic!("{feature} {level}: {other:?}"),
        }
    }
}

#[test]
fn a_file_of_an_interface_is_switched_under_load() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let binding = Binding::Sysfs {
        file: "tx_queue_len".into(),
        interfaces: vec![DutInterface::DutIn, DutInterface::DutOut],
        values: Values::default(),
    };
    let question = [
        "sh",
        "-c",
        "cat /sys/class/net/dut-*/tx_queue_len | tr '\\n' ' '",
    ];
    let (outcome, seen) = observe(&experiment(&FAMILY, binding, &["500", "1500"]), &question);
    assert_sound(&outcome);
    let told: Vec<_> = seen.iter().map(|(v, s)| (v.as_str(), s.trim())).collect();
    assert_eq!(
        told,
        [
            ("500", "500 500"),
            ("1500", "1500 1500"),
            ("1500", "1500 1500"),
            ("500", "500 500")
        ]
    );
}

#[test]
fn receive_packet_steering_is_a_file_of_a_queue() {
    testkit::require_root!();
    let binding = Binding::Sysfs {
        file: "queues/rx-0/rps_cpus".into(),
        interfaces: DUT_IN.to_vec(),
        values: Values::default(),
    };
    let outcome = measure(&experiment(&FAMILY, binding, &["0", "1"]), &mut |_| ()).unwrap();
    assert_sound(&outcome);
    let conservation = &outcome.block.conservation[&Stratum::INET];
    assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
}

#[test]
fn polling_in_a_thread_leaves_no_frame_unaccounted_for() {
    testkit::require_root!();
    let binding = Binding::Sysfs {
        file: "threaded".into(),
        interfaces: DUT_IN.to_vec(),
        values: Values::default(),
    };
    let outcome = measure(&experiment(&FAMILIES, binding, &["0", "1"]), &mut |_| ()).unwrap();
    assert_sound(&outcome);
    for conservation in outcome.block.conservation.values() {
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
    }
}

#[test]
fn files_that_are_not_there_are_unavailable_and_others_out_of_reach() {
    testkit::require_root!();
    for (file, reason) in [
        (
            "no_such_file",
            "no readable /sys/class/net/dut-in/no_such_file",
        ),
        ("../lo/mtu", "not a path below"),
        ("/etc/hostname", "not a path below"),
    ] {
        let binding = Binding::Sysfs {
            file: file.into(),
            interfaces: DUT_IN.to_vec(),
            values: Values::default(),
        };
        let seen = unavailable(&experiment(&FAMILY, binding, &["1"]));
        assert!(seen[0].as_ref().unwrap().contains(reason), "{seen:?}");
    }
}

#[test]
fn a_file_that_another_process_writes_makes_its_trials_invalid() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let binding = Binding::Sysfs {
        file: "gro_flush_timeout".into(),
        interfaces: DUT_IN.to_vec(),
        values: Values::default(),
    };
    let mut resolved = experiment(&FAMILY, binding, &["0"]);
    resolved.design.slice_ms = 300;
    // Written under the slice, from another process, over and over.
    let outcome = std::thread::scope(|scope| {
        measure(&resolved, &mut |event| {
            if let LabEvent::Ready { .. } = event {
                let dut = dut_namespace();
                scope.spawn(move || {
                    let write = "for i in $(seq 40); do \
                                 echo 1000 > /sys/class/net/dut-in/gro_flush_timeout; \
                                 sleep 0.02; done";
                    // Fails only where the block has just ended.
                    let _ = Command::new("ip")
                        .args(["netns", "exec", &dut, "sh", "-c", write])
                        .output();
                });
            }
        })
    })
    .unwrap();
    let [InvalidReason::SettingsMoved { what }] = evidence_against(&outcome.trials[0])[..] else {
        panic!("{:?}", outcome.trials[0].invalid);
    };
    assert_eq!(
        what,
        "/sys/class/net/dut-in/gro_flush_timeout was set to \"0\" and reads back as \"1000\""
    );
}

fn routes(levels: &[&str], families: &[AddressFamily]) -> Resolved {
    let mut resolved = experiment(families, Binding::Routes, levels);
    for variant in &mut resolved.variants {
        let count = variant.label.parse().unwrap();
        variant
            .levels
            .insert("factor".into(), Level::Integer(count));
    }
    resolved
}

#[test]
fn the_table_grows_and_shrinks_under_load_for_both_families() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for (family, protocol) in [(FAMILIES[0], "-4"), (FAMILIES[1], "-6")] {
        let list = format!("ip {protocol} route show table main proto static | wc -l");
        let resolved = routes(&["2", "3000", "17"], &[family]);
        let (outcome, seen) = observe(&resolved, &["sh", "-c", &list]);
        assert_sound(&outcome);
        assert_eq!(
            outcome.block.conservation[&Stratum::from(family)].unaccounted_frames,
            0
        );
        assert_eq!(seen.len(), 6);
        for (variant, count) in seen {
            assert_eq!(variant, count.trim());
        }
    }
}

#[test]
fn a_route_that_another_process_adds_makes_its_trials_invalid() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for (family, prefix) in [(FAMILIES[0], "203.0.113.0/24"), (FAMILIES[1], "3fff::/64")] {
        let change = [
            "ip", "route", "add", prefix, "dev", "dut-out", "proto", "static",
        ];
        // The third slice's table is read back with one route too many.
        let outcome = disturb(&routes(&["5", "9"], &[family]), &change);
        let moved: Vec<_> = outcome
            .trials
            .iter()
            .map(|trial| match evidence_against(trial)[..] {
                [InvalidReason::SettingsMoved { what }] => what.as_str(),
                _ => panic!("{:?}", trial.invalid),
            })
            .collect();
        assert_eq!(
            moved,
            [
                format!("the number of {family} routes was set to \"5\" and reads back as \"6\""),
                format!("the number of {family} routes was set to \"9\" and reads back as \"10\""),
            ]
        );
    }
}

#[test]
fn too_few_and_too_many_routes_are_unavailable() {
    testkit::require_root!();
    let seen = unavailable(&routes(&["1", "2", "1000000", "1000001"], &FAMILY));
    assert!(
        seen[0].as_ref().unwrap().contains("needs 2 routes"),
        "{seen:?}"
    );
    assert_eq!(seen[1..3], [None, None]);
    assert!(
        seen[3].as_ref().unwrap().contains("at most 1000000"),
        "{seen:?}"
    );
}

fn command(apply: &[&str], undo: &[&str], check: Option<&[&str]>) -> Binding {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Binding::Command(CommandBinding {
        apply: Apply::Template(owned(apply)),
        undo: owned(undo),
        check: check.map(owned),
    })
}

#[test]
fn the_users_programs_run_inside_the_dut_and_are_undone() {
    testkit::require_root!();
    testkit::require_tool!("sysctl", "touch", "rm", "ls");
    let scratch = tempfile::tempdir().unwrap();
    let mark = scratch.path().join("level {level}");
    let mark = mark.to_str().unwrap();
    // Its effect is on the host, so that it is seen from outside, and outlives the DUT.
    let binding = command(
        &["touch", mark],
        &["rm", mark],
        Some(&["ls", scratch.path().to_str().unwrap()]),
    );
    let files = || {
        let mut names: Vec<String> = fs::read_dir(scratch.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let resolved = experiment(&FAMILY, binding, &["1", "two words; $(x)"]);
    let mut seen = Vec::new();
    let outcome = measure(&resolved, &mut |event| {
        if let LabEvent::Slice(slice) = event {
            seen.push((slice.variant.as_str().to_owned(), files()));
        }
    })
    .unwrap();
    assert_sound(&outcome);
    let one = |variant: &str, file: &str| (variant.to_owned(), vec![file.to_owned()]);
    assert_eq!(
        seen,
        [
            one("1", "level 1"),
            one("two-words-x", "level two words; $(x)"),
            one("two-words-x", "level two words; $(x)"),
            one("1", "level 1"),
        ]
    );
    assert_eq!(files(), Vec::<String>::new());

    let inside = command(
        &["sysctl", "-q", "-w", "net.ipv4.ip_default_ttl={level}"],
        &["sysctl", "-q", "-w", "net.ipv4.ip_default_ttl=64"],
        Some(&["sysctl", "net.ipv4.ip_default_ttl"]),
    );
    let before = fs::read("/proc/sys/net/ipv4/ip_default_ttl").unwrap();
    assert_sound(&measure(&experiment(&FAMILY, inside, &["65", "66"]), &mut |_| ()).unwrap());
    assert_eq!(
        fs::read("/proc/sys/net/ipv4/ip_default_ttl").unwrap(),
        before
    );
}

#[test]
fn a_program_that_fails_ends_the_block_and_what_it_began_is_undone() {
    testkit::require_root!();
    testkit::require_tool!("sh", "rm");
    let scratch = tempfile::tempdir().unwrap();
    let mark = scratch.path().join("half done");
    let mark = mark.to_str().unwrap();
    let script = "touch \"$0\"; echo it went wrong >&2; exit 3";
    let binding = command(&["sh", "-c", script, mark], &["rm", mark], None);
    let error = measure(&experiment(&FAMILY, binding, &["1"]), &mut |_| ()).unwrap_err();
    let LabError::Command { status, stderr, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(
        (status.as_str(), stderr.as_str()),
        ("exit status: 3", "it went wrong")
    );
    assert!(!Path::new(mark).exists());
    assert_eq!(own_namespaces(std::process::id()), Vec::<String>::new());
}

#[test]
fn levels_set_by_a_program_that_is_not_there_are_unavailable() {
    testkit::require_root!();
    let missing = "no-such-program";
    for (binding, is_there) in [
        (command(&["true"], &["true"], Some(&["true"])), true),
        (command(&[missing], &["true"], None), false),
        (command(&["true"], &["true"], Some(&[missing])), false),
    ] {
        let seen = unavailable(&experiment(&FAMILY, binding, &["1"]));
        let [reason] = &seen[..] else {
            panic!("{seen:?}");
        };
        let why = format!("the program {missing:?} is not installed, but factor ");
        assert_eq!(reason.is_none(), is_there);
        assert!(
            reason.iter().all(|reason| reason.starts_with(&why)),
            "{reason:?}"
        );
    }
}

#[test]
fn rulesets_that_this_kernel_refuses_are_unavailable() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    // nft understands that translation before connection tracking; no kernel can do it.
    let refused = "table inet t {\n chain c {\n type nat hook prerouting priority -400;\n }\n}";
    let rulesets = [("fine", "table inet t {\n}"), ("refused", refused)];
    let rulesets = rulesets.map(|(level, text)| (level.to_owned(), text.to_owned()));
    let binding = Binding::Nft(rulesets.into());
    let seen = unavailable(&experiment(&FAMILY, binding, &["fine", "refused"]));
    let [None, Some(reason)] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert!(
        reason.starts_with("this kernel refuses `chain c {` in the nft ruleset: "),
        "{reason}"
    );
}

#[test]
fn a_check_that_tells_another_level_is_believed() {
    testkit::require_root!();
    let binding = command(&["true"], &["true"], Some(&["echo", "level", "10"]));
    let error = measure(&experiment(&FAMILY, binding, &["1"]), &mut |_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "factor \"factor\", as told by echo level 10 was set to \"1\" and reads back as \"level 10\""
    );
}

#[test]
fn all_mechanisms_can_be_used_together() {
    testkit::require_root!();
    let mut resolved = experiment(&FAMILIES, Binding::Routes, &["100"]);
    let others = [
        (
            "sysctl",
            sysctl("net.ipv4.conf.all.rp_filter"),
            Level::Boolean(true),
        ),
        (
            "feature",
            ethtool("sg", DutInterface::DutOut),
            Level::Boolean(false),
        ),
        (
            "file",
            Binding::Sysfs {
                file: "tx_queue_len".into(),
                interfaces: DUT_IN.to_vec(),
                values: Values::default(),
            },
            Level::Integer(10),
        ),
        (
            "program",
            command(&["true"], &["true"], None),
            Level::Integer(1),
        ),
    ];
    for (factor, binding, level) in others {
        resolved.lab.bindings.insert(factor.into(), binding);
        resolved.variants[0].levels.insert(factor.into(), level);
    }
    let levels: BTreeMap<_, _> = resolved.variants[0].levels.clone();
    assert_eq!(levels.len(), 5);
    assert_sound(&measure(&resolved, &mut |_| ()).unwrap());
}
