//! The owner's tc programs, attached by clsact and by tcx: what they drop, what they keep between slices, and what is
//! no part of a variant.

use std::collections::BTreeSet;
use std::process::Command;

use aya::Ebpf;
use aya::programs::{SchedClassifier, TcAttachType};
use fwdlab_lab::{LabError, LabEvent};
use fwdlab_model::{Binding, InvalidReason, OwnTcProgram, TcAttach, TcHook};

use crate::mechanisms::{FAMILY, assert_sound};
use crate::rig::{FAMILIES, dut_namespace, ebpf_program, experiment, measure, run, test_object};

/// A test program for tc, attached as a level without a table has it.
pub(crate) fn tc_program(object: &str, program: Option<&str>) -> OwnTcProgram {
    OwnTcProgram {
        program: ebpf_program(test_object(object), program),
        hook: TcHook::default(),
        attach: TcAttach::default(),
    }
}

pub(crate) fn tc<const N: usize>(levels: [(&str, Option<OwnTcProgram>); N]) -> Binding {
    let levels = levels.map(|(level, program)| (level.to_owned(), program));
    Binding::Tc(levels.into())
}

/// The names of the programs that a port of the DUT has by tcx.
fn by_tcx(port: &str, hook: TcAttachType) -> Vec<String> {
    let programs = || SchedClassifier::query_tcx(port, hook).unwrap().1;
    let programs = fwdlab_sys::run_in_namespace(&dut_namespace(), programs);
    let programs = programs.unwrap().unwrap();
    let names = programs
        .iter()
        .map(|program| program.name_as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn a_tc_program_is_attached_under_load_and_what_it_drops_is_counted() {
    testkit::require_root!();
    testkit::require_tool!("tc");
    let shed = || tc_program("tc_shed.bpf.o", Some("shed"));
    let egress = OwnTcProgram {
        hook: TcHook::Egress,
        ..shed()
    };
    let mut levels = vec![
        ("none", None),
        ("only", Some(tc_program("tc_pass.bpf.o", None))),
        ("shed", Some(shed())),
        ("egress", Some(egress)),
    ];
    // From Linux 6.6 on.
    if SchedClassifier::query_tcx("lo", TcAttachType::Ingress).is_ok() {
        for (level, hook) in [("tcx", TcHook::Ingress), ("tcx egress", TcHook::Egress)] {
            let attach = TcAttach::Tcx;
            levels.push((
                level,
                Some(OwnTcProgram {
                    hook,
                    attach,
                    ..shed()
                }),
            ));
        }
    }
    let names: Vec<&str> = levels.iter().map(|(name, _)| *name).collect();
    let binding = Binding::Tc(
        levels
            .iter()
            .map(|(name, it)| ((*name).to_owned(), it.clone()))
            .collect(),
    );
    let resolved = experiment(&FAMILIES, binding, &names);
    let mut seen = Vec::new();
    let outcome = measure(&resolved, &mut |event| {
        if let LabEvent::Slice(slice) = event {
            let dut = dut_namespace();
            let filters = |port, hook| {
                let show = ["tc", "filter", "show", "dev", port, hook];
                run(&[&["ip", "netns", "exec", &dut][..], &show].concat())
            };
            let filters = [filters("dut-in", "ingress"), filters("dut-out", "egress")];
            let tcx = match levels.len() {
                4 => [vec![], vec![]],
                _ => [
                    by_tcx("dut-in", TcAttachType::Ingress),
                    by_tcx("dut-out", TcAttachType::Egress),
                ],
            };
            seen.push((slice.variant.as_str().to_owned(), filters, tcx));
        }
    })
    .unwrap();
    assert_sound(&outcome);
    for (variant, filters, tcx) in &seen {
        let has = |name: &str| {
            let name = format!(" name {name} ");
            [filters[0].contains(&name), filters[1].contains(&name)]
        };
        let expected = match variant.as_str() {
            "only" => [has("pass") == [true, false], !has("shed")[0]],
            "shed" => [has("shed") == [true, false], tcx.concat().is_empty()],
            "egress" => [has("shed") == [false, true], tcx.concat().is_empty()],
            "tcx" => [filters.concat().is_empty(), *tcx == [vec!["shed"], vec![]]],
            "tcx-egress" => [filters.concat().is_empty(), *tcx == [vec![], vec!["shed"]]],
            _ => [filters.concat().is_empty(), tcx.concat().is_empty()],
        };
        assert_eq!(expected, [true, true], "{variant}: {filters:?} {tcx:?}");
    }
    // Maps are a program's state: it is loaded again for every slice.
    let filters: Vec<String> = seen
        .iter()
        .map(|(_, filters, _)| filters.concat())
        .collect();
    let with_one: Vec<_> = filters
        .iter()
        .filter(|filters| !filters.is_empty())
        .collect();
    let programs: BTreeSet<_> = with_one.iter().collect();
    assert_eq!(programs.len(), with_one.len(), "{seen:?}");
    for trial in &outcome.trials {
        let dropped = |reason| {
            trial
                .dut
                .drops
                .get(reason)
                .is_some_and(|frames| *frames > 0)
        };
        let variant = trial.variant.as_str();
        assert_eq!(dropped("tc of dut-in"), variant == "shed", "{trial:?}");
        assert_eq!(dropped("tc of dut-out"), variant == "egress", "{trial:?}");
    }
    for conservation in outcome.block.conservation.values() {
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
        let is_lost = conservation.drops.contains_key("lost in a tc program");
        assert_eq!(is_lost, levels.len() > 4, "{conservation:?}");
    }
}

#[test]
fn a_tcx_program_of_another_is_no_part_of_a_variant() {
    testkit::require_root!();
    testkit::require_tool!("tc");
    if SchedClassifier::query_tcx("lo", TcAttachType::Ingress).is_err() {
        return;
    }
    let own = OwnTcProgram {
        attach: TcAttach::Tcx,
        ..tc_program("tc_shed.bpf.o", Some("shed"))
    };
    let resolved = experiment(
        &FAMILY,
        tc([("own", Some(own)), ("none", None)]),
        &["own", "none"],
    );
    let mut others = None;
    let refused = measure(&resolved, &mut |event| {
        if let (LabEvent::Slice(_), None) = (event, &others) {
            let attach = || {
                let mut programs = Ebpf::load_file(test_object("tc_pass.bpf.o")).unwrap();
                let pass: &mut SchedClassifier =
                    programs.program_mut("pass").unwrap().try_into().unwrap();
                pass.load().unwrap();
                pass.attach("dut-in", TcAttachType::Ingress).unwrap();
                programs
            };
            let attached = fwdlab_sys::run_in_namespace(&dut_namespace(), attach);
            others = Some(attached.unwrap().unwrap());
        }
    });
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("it has tcx programs already (pass)"),
        "{refused}"
    );
}

#[test]
fn a_tc_program_that_was_taken_away_is_seen() {
    testkit::require_root!();
    testkit::require_tool!("tc");
    let other = tc_program("tc_shed.bpf.o", Some("pass"));
    let pass = tc_program("tc_pass.bpf.o", None);
    let binding = tc([("a", Some(pass)), ("b", Some(other))]);
    let resolved = experiment(&FAMILY, binding, &["a", "b"]);
    // In the midst of slices: between two of them it is attached again.
    let often =
        "for _ in $(seq 100); do tc filter del dev dut-in ingress; sleep 0.01; done 2>/dev/null";
    let mut deleting = None;
    let outcome = measure(&resolved, &mut |event| {
        if matches!(event, LabEvent::Slice(_)) && deleting.is_none() {
            let mut command = Command::new("ip");
            let command = command.args(["netns", "exec", &dut_namespace(), "sh", "-c", often]);
            deleting = Some(command.spawn().unwrap());
        }
    });
    deleting.unwrap().wait().unwrap();
    let outcome = outcome.unwrap();
    let mut reasons = outcome.trials.iter().flat_map(|trial| &trial.invalid);
    let moved = reasons.any(|reason| {
        matches!(reason, InvalidReason::SettingsMoved { what } if what.contains("the tc program of dut-in"))
    });
    assert!(moved, "{:?}", outcome.trials);
}

#[test]
fn objects_without_the_tc_program_are_errors_that_name_the_file() {
    testkit::require_root!();
    testkit::require_tool!("tc");
    let no_object = OwnTcProgram {
        program: ebpf_program("Cargo.toml".into(), None),
        ..tc_program("tc_pass.bpf.o", None)
    };
    for (program, expected) in [
        (
            tc_program("tc_shed.bpf.o", None),
            "tc_shed.bpf.o: it has several tc programs (pass, shed); name one with `program` in the lab file",
        ),
        (
            tc_program("tc_pass.bpf.o", Some("shed")),
            "tc_pass.bpf.o: it has no tc program \"shed\"; it has: pass",
        ),
        (
            no_object,
            "Cargo.toml: it is no eBPF object that can be loaded (error parsing ELF data); compile it with `clang -O2 -g \
             -target bpf -c`, with programs in SEC(\"xdp\"), SEC(\"xdp.frags\") or SEC(\"tc\"); what cannot be loaded so, \
             a `command` may load",
        ),
    ] {
        let binding = tc([("program", Some(program)), ("none", None)]);
        let refused = measure(
            &experiment(&FAMILY, binding, &["program", "none"]),
            &mut |_| (),
        );
        let refused = refused.unwrap_err();
        assert!(matches!(refused, LabError::Object { .. }), "{refused}");
        assert!(refused.to_string().ends_with(expected), "{refused}");
    }
}
