//! Frames with a VLAN tag: through XDP programs, tc programs and forwarders in user space, as the bytes show.

use fwdlab_lab::LabError;
use fwdlab_model::{AddressFamily, InvalidReason, Load, OwnTcProgram, Resolved, Traffic, XdpMode};

use crate::forwarders::{PacketRouter, forwarders, testpmd};
use crate::own_tc::{tc, tc_program};
use crate::own_xdp::{own, router, xdp};
use crate::rig::{FAMILIES, evidence_against, experiment, imix, measure};

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

/// A test program for tc that forwards.
fn forwards(program: &str) -> OwnTcProgram {
    tc_program("tc_router.bpf.o", Some(program))
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
    let plain = |mode| own(router("plain"), mode);
    let levels = [
        ("native", plain(XdpMode::Native)),
        ("generic", plain(XdpMode::Generic)),
    ];
    let mut of_xdp = experiment(&FAMILIES, xdp(levels), &["native", "generic"]);
    tagged(&mut of_xdp);
    assert_all_is_right(&of_xdp);

    let mut of_tc = experiment(
        &FAMILIES,
        tc([("routes", Some(forwards("routes")))]),
        &["routes"],
    );
    tagged(&mut of_tc);
    assert_all_is_right(&of_tc);
}

#[test]
fn forwarders_in_user_space_forward_tagged_frames() {
    testkit::require_root!();
    testkit::require_tool!("cc", "dpdk-testpmd", "stdbuf", "ip");
    let packet_router = PacketRouter::build();
    let devices = [
        "--vdev=net_af_packet0,iface={dut-in}",
        "--vdev=net_af_packet1,iface={dut-out},qdisc_bypass=1",
    ];
    let levels = [
        ("packet router", Some(packet_router.forwarder(&["spin"]))),
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
    let message = |program: Option<&str>| {
        let inet = [AddressFamily::Inet];
        let levels = [("level", program.map(forwards))];
        let mut resolved = experiment(&inet, tc(levels), &["level"]);
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
