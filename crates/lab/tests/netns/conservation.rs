//! Every frame that was offered is found again: at the sink, or under the reason of its drop.

use std::time::Duration;

use fwdlab_lab::{LabError, LabEvent};
use fwdlab_model::{
    AddressFamily, Binding, InvalidReason, PortRange, Stratum, Traffic, XdpProgram,
};
use fwdlab_traffic::{Pace, Receiver as _};

use crate::rig::{
    FAMILIES, FORWARDERS, Rig, dut_namespace, evidence_against, experiment, forward_chain, imix,
    measure, rulesets, run, sysctl, wait_until,
};

#[test]
fn without_drops_every_frame_arrives_whatever_the_pace() {
    testkit::require_root!();
    for family in FAMILIES {
        for forwarder in FORWARDERS {
            for pace in [Pace::SelfClocked, Pace::even(100_000)] {
                let mut rig = Rig::new(family, forwarder);
                let running = rig.start(pace);
                std::thread::sleep(Duration::from_millis(250));
                let offered = running.stop().unwrap().offered_frames().unwrap();
                wait_until("all frames arrive", || rig.forwarded_frames() >= offered);
                assert_eq!(rig.forwarded_frames(), offered);
                assert!(offered > 0);
                assert_eq!(rig.wrong_frames(), []);
            }
        }
    }
}

#[test]
fn without_drops_every_frame_of_every_size_and_flow_arrives_evenly_or_in_bursts() {
    testkit::require_root!();
    let many_flows = Traffic {
        sources: 64,
        destinations: 64,
        source_ports: PortRange { first: 1, last: 4 },
        destination_ports: PortRange { first: 0, last: 3 },
        ..imix()
    };
    assert_eq!(many_flows.flows(), 65_536);
    let bursts = Pace::Paced {
        pps: 100_000,
        burst_frames: 100,
    };
    for family in FAMILIES {
        for forwarder in FORWARDERS {
            for (traffic, pace) in [(imix(), Pace::SelfClocked), (many_flows.clone(), bursts)] {
                let mut rig = Rig::with_traffic(&traffic, family, forwarder);
                let frames = rig.frames.probe_frames();
                rig.sink.reset_to_check_all().unwrap();
                rig.generator.as_mut().unwrap().send(frames).unwrap();
                wait_until("all frames arrive", || {
                    rig.forwarded_frames() >= frames.into()
                });
                assert_eq!(rig.sink.flows_seen().unwrap(), traffic.flows());
                assert!(rig.sink.all_sizes_seen().unwrap());
                assert_eq!(rig.wrong_frames(), []);

                let running = rig.start(pace);
                std::thread::sleep(Duration::from_millis(250));
                let offered = running.stop().unwrap().offered_frames().unwrap();
                wait_until("all frames arrive", || rig.forwarded_frames() >= offered);
                assert_eq!(rig.forwarded_frames(), offered);
                assert!(offered > 0);
                assert_eq!(rig.wrong_frames(), []);
            }
        }
    }
}

/// Changes the DUT's routes to the destinations after the first slice and puts them back after the
/// second.
pub(crate) fn with_route_changed<'a>(
    family: AddressFamily,
    change: &'a [&'a str],
    back: &'a [&'a str],
) -> impl FnMut(LabEvent<'_>) + 'a {
    let mut slices = 0;
    let protocol = match family {
        AddressFamily::Inet => "-4",
        AddressFamily::Inet6 => "-6",
    };
    move |event| {
        if let LabEvent::Slice(_) = event {
            slices += 1;
            let change = match slices {
                1 => change,
                2 => back,
                _ => return,
            };
            let dut = dut_namespace();
            run(&[&["ip", protocol, "-n", &dut, "route"], change].concat());
        }
    }
}

#[test]
fn a_route_that_goes_inside_a_block_is_a_counted_drop_and_a_result() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for (family, prefix, gateway, reason) in [
        (
            AddressFamily::Inet,
            "198.19.0.0/16",
            "198.19.0.1",
            "IpExt.InNoRoutes",
        ),
        (
            AddressFamily::Inet6,
            "2001:2:0:8010::/64",
            "2001:2:0:8000::1",
            "Ip6InNoRoutes",
        ),
    ] {
        let resolved = experiment(&[family], rulesets(&[("a", ""), ("b", "")]), &["a", "b"]);
        let outcome = measure(
            &resolved,
            &mut with_route_changed(family, &["del", prefix], &["add", prefix, "via", gateway]),
        )
        .unwrap();
        let conservation = &outcome.block.conservation[&Stratum::from(family)];
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
        assert!(conservation.drops[reason] > 0, "{conservation:?}");
        // The second and the third slice belong to b.
        assert_eq!(outcome.slices[1].forwarded_frames, 0);
        let [a, b] = &outcome.trials[..] else {
            panic!("{:?}", outcome.trials);
        };
        assert_eq!(a.dut.drops.get(reason), None);
        assert!(b.dut.drops[reason] >= outcome.slices[1].offered_frames);
        for trial in [a, b] {
            assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
        }
    }
}

#[test]
fn frames_that_nobody_counts_make_all_trials_invalid() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    // The kernel counts nothing where a route says "blackhole".
    for (family, blackhole) in [
        (AddressFamily::Inet, "198.19.10.0/24"),
        (AddressFamily::Inet6, "2001:2:0:8010::/96"),
    ] {
        let resolved = experiment(&[family], rulesets(&[("a", ""), ("b", "")]), &["a", "b"]);
        let outcome = measure(
            &resolved,
            &mut with_route_changed(
                family,
                &["add", "blackhole", blackhole],
                &["del", "blackhole", blackhole],
            ),
        )
        .unwrap();
        let lost = outcome.block.conservation[&Stratum::from(family)].unaccounted_frames;
        assert!(lost > 0);
        assert_eq!(outcome.trials.len(), 2);
        for trial in &outcome.trials {
            assert_eq!(
                evidence_against(trial),
                [&InvalidReason::Unaccounted { frames: lost }]
            );
        }
    }
}

#[test]
fn a_variant_that_drops_one_flow_in_a_hundred_is_refused_before_it_is_measured() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let drops_one = forward_chain("ip daddr 198.19.10.42 drop");
    let levels = [("none", ""), ("one dropped", drops_one.as_str())];
    let resolved = experiment(
        &[AddressFamily::Inet],
        rulesets(&levels),
        &["none", "one dropped"],
    );
    let mut slices = 0;
    let error = measure(&resolved, &mut |event| {
        slices += u32::from(matches!(event, LabEvent::Slice(_)));
    })
    .unwrap_err();
    assert!(
        matches!(
            &error,
            LabError::Probe { variant, sent: 2000, forwarded: 1980, wrong: 0, .. }
                if variant == "one dropped"
        ),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "variant \"one dropped\" (inet): of 2000 probe frames the sink got 1980, 0 of them wrong; \
         the DUT does not forward as planned (the DUT's kernel dropped 20 as NETFILTER_DROP), so \
         nothing was measured; the ruleset must accept the lab's frames: IPv4 UDP from 198.18.10.1 to 198.18.10.20, \
         port 2000, to 198.19.10.1 to 198.19.10.100, port 2000, in at {dut-in}, out at {dut-out}; a rule names these \
         interfaces so, in braces (docs/two-rulesets.md)"
    );
    assert_eq!(slices, 0);
}

#[test]
fn a_variant_that_changes_frames_is_refused_with_the_bytes_that_it_changed() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    // The byte behind the IP version, and so the header's checksum.
    let marks = forward_chain("ip dscp set cs1");
    let levels = [("none", ""), ("marked", marks.as_str())];
    let resolved = experiment(
        &[AddressFamily::Inet],
        rulesets(&levels),
        &["none", "marked"],
    );
    let error = measure(&resolved, &mut |_| ()).unwrap_err().to_string();
    assert!(
        error.contains(
            "2000 of them wrong (checksum or content, from byte 15 on expected 00 00 2e "
        ),
        "{error}"
    );
    assert!(error.contains(", saw 20 00 2e "), "{error}");
}

#[test]
fn a_frame_that_finds_a_ring_full_is_counted_once() {
    testkit::require_root!();
    testkit::require_tool!("ip", "taskset", "chrt");
    // A thread that hardly ever gets the load CPU empties one ring.
    for (namespace, interface, path, reason) in [
        ("dut", "dut-in", "kernel", "between tester-out and dut-in"),
        ("dut", "dut-in", "fib", "between tester-out and dut-in"),
        (
            "tester",
            "tester-in",
            "kernel",
            "between dut-out and tester-in",
        ),
        (
            "tester",
            "tester-in",
            "fib",
            "between dut-out and tester-in",
        ),
    ] {
        let programs = [
            ("kernel".to_owned(), XdpProgram::Off),
            ("fib".to_owned(), XdpProgram::Fib),
        ];
        let binding = Binding::Xdp(programs.into_iter().collect());
        let resolved = experiment(&[AddressFamily::Inet], binding, &[path]);
        let schedule = |policy: &str| {
            let script = format!(
                "echo 1 > /sys/class/net/{interface}/threaded
                cd /proc
                for pid in $(grep -l '^napi/{interface}' [0-9]*/comm | cut -d/ -f1); do
                    taskset -p 1 $pid && chrt --{policy} -p 0 $pid
                done"
            );
            let name = dut_namespace().replace("-dut", &format!("-{namespace}"));
            run(&["ip", "netns", "exec", &name, "sh", "-c", &script]);
        };
        let mut slices = 0;
        let outcome = measure(&resolved, &mut |event| {
            if matches!(event, LabEvent::Slice(_)) {
                slices += 1;
                match slices {
                    1 => schedule("idle"),
                    // Where something else runs, an idle thread would never empty its ring.
                    _ => schedule("other"),
                }
            }
        })
        .unwrap();
        let conservation = &outcome.block.conservation[&Stratum::INET];
        let reasons: Vec<_> = conservation.drops.keys().collect();
        assert_eq!(reasons, [reason, "drop-at-ingress control"]);
        // The ring may also have been full for one of the DUT's own frames (neighbour discovery, MLD).
        assert!(
            (-9..=0).contains(&conservation.unaccounted_frames) && conservation.drops[reason] > 9,
            "{conservation:?}"
        );
    }
}

#[test]
fn what_the_reverse_path_filter_drops_is_counted() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let binding = sysctl("net.ipv4.conf.all.rp_filter");
    let resolved = experiment(&[AddressFamily::Inet], binding, &["1"]);
    // The way back to the sources leads elsewhere.
    let elsewhere = ["replace", "198.18.0.0/16", "via", "198.19.0.1"];
    let back = ["replace", "198.18.0.0/16", "via", "198.18.0.1"];
    let outcome = measure(
        &resolved,
        &mut with_route_changed(AddressFamily::Inet, &elsewhere, &back),
    )
    .unwrap();
    let conservation = &outcome.block.conservation[&Stratum::INET];
    assert!(conservation.drops["TcpExt.IPReversePathFilter"] > 0);
    assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
}
