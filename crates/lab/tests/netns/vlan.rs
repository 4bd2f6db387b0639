//! Frames with a VLAN tag: through XDP programs, tc programs and forwarders in user space, as the bytes show.

use std::collections::BTreeMap;

use fwdlab_lab::LabError;
use fwdlab_model::binding::OwnXdpProgram;
use fwdlab_model::{
    AddressFamily, Binding, InvalidReason, Load, OwnTcProgram, Resolved, TcAttach, TcHook, Traffic,
    XdpMode, XdpProgram,
};

use crate::forwarders::{PacketRouter, forwarders, testpmd};
use crate::rig::{
    FAMILIES, ebpf_program, evidence_against, experiment, imix, measure, test_object,
};

/// Tagged frames of each family, and of mixed sizes: the largest are 1522 bytes.
fn tagged(resolved: &mut Resolved) {
    // Without a program, what warms up would be dropped.
    resolved.design.warm_up_ms = 50;
    let traffic = &mut resolved.traffics[0];
    *traffic = Traffic {
        vlan: Some(100),
        families: FAMILIES.to_vec(),
        load: traffic.load,
        ..imix()
    };
}

fn xdp<const N: usize>(levels: [(&str, XdpMode); N]) -> Binding {
    let levels = levels.map(|(level, mode)| {
        let program = OwnXdpProgram {
            program: ebpf_program(test_object("xdp_router.bpf.o"), Some("plain")),
            mode,
            interfaces: None,
        };
        (level.to_owned(), XdpProgram::Own(program))
    });
    Binding::Xdp(levels.into())
}

fn tc<const N: usize>(levels: [(&str, Option<&str>); N]) -> Binding {
    let levels = levels.map(|(level, program)| {
        let own = program.map(|program| OwnTcProgram {
            program: ebpf_program(test_object("tc_router.bpf.o"), Some(program)),
            hook: TcHook::default(),
            attach: TcAttach::default(),
        });
        (level.to_owned(), own)
    });
    Binding::Tc(BTreeMap::from(levels))
}

fn assert_all_is_right(resolved: &Resolved) {
    let outcome = measure(resolved, &mut |_| ()).unwrap();
    for trial in &outcome.trials {
        let evidence = evidence_against(trial);
        assert_eq!(evidence, Vec::<&InvalidReason>::new(), "{trial:?}");
        assert!(trial.tester.forwarded_frames > 0, "{trial:?}");
    }
    assert_eq!(outcome.block.conservation.len(), resolved.strata().count());
    for conservation in outcome.block.conservation.values() {
        let checked = &conservation.verification;
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
        assert!(checked.checked_frames > 0, "{checked:?}");
        assert!(checked.wrong_frames.is_empty(), "{checked:?}");
    }
}

#[test]
fn programs_in_the_kernel_forward_tagged_frames() {
    testkit::require_root!();
    testkit::require_tool!("tc");
    let levels = [("native", XdpMode::Native), ("generic", XdpMode::Generic)];
    let mut of_xdp = experiment(&FAMILIES, xdp(levels), &["native", "generic"]);
    tagged(&mut of_xdp);
    assert_all_is_right(&of_xdp);

    let mut of_tc = experiment(&FAMILIES, tc([("routes", Some("routes"))]), &["routes"]);
    tagged(&mut of_tc);
    assert_all_is_right(&of_tc);
}

#[test]
fn forwarders_in_user_space_forward_tagged_frames() {
    testkit::require_root!();
    testkit::require_tool!("cc", "dpdk-testpmd", "stdbuf", "ip");
    let router = PacketRouter::build();
    let devices = [
        "--vdev=net_af_packet0,iface={dut-in}",
        "--vdev=net_af_packet1,iface={dut-out},qdisc_bypass=1",
    ];
    let levels = [
        ("packet router", Some(router.forwarder(&["spin"]))),
        ("testpmd", Some(testpmd(devices))),
    ];
    let mut resolved = forwarders(&FAMILIES, levels);
    tagged(&mut resolved);
    assert!(matches!(resolved.traffics[0].load, Load::Paced { .. }));
    // Both start anew for each traffic.
    let named = |name: &str, vlan| Traffic {
        name: Some(name.parse().unwrap()),
        vlan,
        ..resolved.traffics[0].clone()
    };
    resolved.traffics = vec![named("tagged", Some(100)), named("plain", None)];
    assert_all_is_right(&resolved);
}

#[test]
fn a_lost_tag_is_seen_and_a_kernel_without_vlan_interfaces_is_named() {
    testkit::require_root!();
    testkit::require_tool!("tc");
    let message = |program| {
        let inet = [AddressFamily::Inet];
        let mut resolved = experiment(&inet, tc([("level", program)]), &["level"]);
        tagged(&mut resolved);
        match measure(&resolved, &mut |_| ()) {
            Err(error @ LabError::Probe { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let untags = message(Some("untags"));
    let seen = "expected 64 or 594 or 1518 bytes without FCS, saw 60 without its VLAN tag";
    assert!(untags.contains(seen), "{untags}");
    assert!(!untags.contains("not every size"), "{untags}");
    assert!(!untags.contains("VLAN interfaces"), "{untags}");
    let kernel = message(None);
    let advice = "the DUT has no VLAN interfaces in this lab";
    assert!(kernel.contains(advice), "{kernel}");
}
