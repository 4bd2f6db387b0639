//! The sink tells what is wrong with a frame, and which frames are not the tester's.

use std::net::UdpSocket;

use fwdlab_lab::{DUT_OUT, TESTER_IN, TESTER_OUT};
use fwdlab_model::AddressFamily;
use fwdlab_packet::MacAddress;
use fwdlab_sys::NetworkNamespace;
use fwdlab_traffic::{Generator, Link, Pace, Receiver as _, Sink};

use crate::rig::{
    FAMILIES, FLOWS, FORWARDERS, Forwarder, Rig, forward_chain, imix, run_in, traffic, wait_until,
};

fn every_flow_arrives(rig: &mut Rig) {
    rig.send_every_flow();
    wait_until("all frames arrive", || {
        rig.forwarded_frames() >= FLOWS.into()
    });
}

#[test]
fn nothing_is_wrong_with_what_a_router_forwards() {
    testkit::require_root!();
    for family in FAMILIES {
        for forwarder in FORWARDERS {
            let mut rig = Rig::new(family, forwarder);
            every_flow_arrives(&mut rig);
            let verification = rig.sink.verification().unwrap();
            assert_eq!(verification.checked_frames, u64::from(FLOWS));
            assert_eq!(verification.flows_seen, FLOWS);
            assert_eq!(rig.wrong_frames(), []);
        }
    }
}

#[test]
fn what_a_ruleset_changes_in_a_frame_is_named() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    for family in FAMILIES {
        let mut rig = Rig::new(family, Forwarder::Kernel);
        let another_ttl = match family {
            AddressFamily::Inet => "ip ttl set 9",
            AddressFamily::Inet6 => "ip6 hoplimit set 9",
        };
        for (rule, wrong) in [
            (another_ttl, ("TTL", u64::from(FLOWS))),
            // The UDP checksum.
            (
                "@th,48,16 set 0xbeef",
                ("checksum or content", u64::from(FLOWS)),
            ),
        ] {
            rig.load_ruleset(&forward_chain(rule));
            every_flow_arrives(&mut rig);
            assert_eq!(rig.wrong_frames(), [wrong], "{family} {rule}");
        }
        // Only one flow's frames: one in 2000 is not missed where all are checked.
        let one_flow = match family {
            AddressFamily::Inet => {
                "ip saddr 198.18.10.7 ip daddr 198.19.10.70 @th,48,16 set 0xbeef"
            }
            AddressFamily::Inet6 => {
                "ip6 saddr 2001:2:0:10::7 ip6 daddr 2001:2:0:8010::46 @th,48,16 set 0xbeef"
            }
        };
        rig.load_ruleset(&forward_chain(one_flow));
        every_flow_arrives(&mut rig);
        assert_eq!(rig.wrong_frames(), [("checksum or content", 1)]);
    }
}

#[test]
fn a_payload_that_a_ruleset_changes_is_found_and_spoils_nothing_afterwards() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    for family in FAMILIES {
        let mut rig = Rig::with_traffic(&imix(), family, Forwarder::Kernel);
        // Two bytes far behind the headers; the smallest frames end before them.
        rig.load_ruleset(&forward_chain("@th,1600,16 set 0xbeef"));
        rig.sink.reset_to_check_all().unwrap();
        rig.generator.as_mut().unwrap().send(12_000).unwrap();
        wait_until("all frames arrive", || rig.forwarded_frames() >= 12_000);
        assert_eq!(rig.wrong_frames(), [("checksum or content", 5_000)]);

        // The generator gets the pages of its frames back as the DUT left them.
        let running = rig.start(Pace::even(50_000));
        wait_until("changed payloads are found", || {
            rig.sink.counts().unwrap().wrong_frames() > 100
        });
        rig.load_ruleset("");
        let unchanged_from = running.offered_frames().unwrap();
        wait_until("what was under way arrives", || {
            rig.forwarded_frames() > unchanged_from + 1_000
        });
        let wrong = rig.wrong_frames();
        let forwarded = rig.forwarded_frames();
        wait_until("more frames arrive", || {
            rig.forwarded_frames() > forwarded + 50_000
        });
        assert_eq!(rig.wrong_frames(), wrong, "{family}");
    }
}

/// An interface's number in a namespace.
fn index(namespace: &NetworkNamespace, interface: &str) -> u32 {
    let line = run_in(namespace, &["ip", "-o", "link", "show", interface]);
    line.split(':').next().unwrap().parse().unwrap()
}

#[test]
fn the_answers_of_all_flows_go_the_other_way() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for family in FAMILIES {
        let rig = Rig::with_traffic(&imix(), family, Forwarder::Kernel);
        let mac = |last| MacAddress([2, 0, 0, 0, last, 1]);
        let other_end = |last| MacAddress([2, 0, 0, 0, last, 2]);
        // What was the receiving end of each cable is now the sending one.
        let tester_to_dut = Link {
            source: other_end(2),
            destination: mac(2),
        };
        let dut_to_sink = Link {
            source: other_end(1),
            destination: mac(1),
        };
        let frames = rig.frames.reversed(tester_to_dut, dut_to_sink);
        let (tester, dut) = (rig.topology.tester(), rig.topology.dut());
        let enable = |interface| move || fwdlab_sys::enable_gro(interface);
        dut.run(enable(DUT_OUT)).unwrap().unwrap();
        tester.run(enable(TESTER_OUT)).unwrap().unwrap();
        let interface = index(tester, TESTER_IN);
        let load = || Generator::load(&frames, interface);
        let mut generator = tester.run(load).unwrap().unwrap();
        let mut sink = Sink::load(&frames).unwrap();
        tester.run(|| sink.attach(TESTER_OUT)).unwrap().unwrap();
        sink.reset_to_check_all().unwrap();
        generator.send(24_000).unwrap();
        wait_until("all frames arrive", || {
            sink.counts().unwrap().forwarded_frames >= 24_000
        });
        let verification = sink.verification().unwrap();
        assert_eq!(verification.checked_frames, 24_000);
        assert_eq!(verification.flows_seen, FLOWS);
        assert!(verification.wrong_frames.is_empty(), "{verification:?}");
        assert!(sink.all_sizes_seen().unwrap());
    }
}

#[test]
fn a_flow_that_is_not_planned_is_named() {
    testkit::require_root!();
    for family in FAMILIES {
        let mut rig = Rig::new(family, Forwarder::Xdp);
        let mut fewer = traffic(&[family]);
        fewer.sources = 19;
        fewer.destinations = 90;
        let frames = rig.topology.frames(family, &fewer).unwrap();
        rig.sink.detach().unwrap();
        rig.sink = Sink::load(&frames).unwrap();
        let tester = rig.topology.tester();
        tester.run(|| rig.sink.attach(TESTER_IN)).unwrap().unwrap();
        every_flow_arrives(&mut rig);
        assert_eq!(rig.wrong_frames(), [("flow", 2000 - 19 * 90)]);
        assert_eq!(rig.sink.flows_seen().unwrap(), 19 * 90);
    }
}

/// Sends a datagram from one port to the same, out of the DUT's own stack.
fn send_from_dut(rig: &Rig, source: &str, destination: &str, port: u16, payload: &[u8]) {
    let send = || {
        let socket = UdpSocket::bind((source, port))?;
        socket.send_to(payload, (destination, port))
    };
    rig.topology.dut().run(send).unwrap().unwrap();
}

#[test]
fn a_frame_of_another_length_is_named() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for family in FAMILIES {
        let mut rig = Rig::new(family, Forwarder::Kernel);
        rig.sink.reset_to_check_all().unwrap();
        // The DUT takes the address of a source, and sends what could be of a planned flow.
        let (source, length, destination) = match family {
            AddressFamily::Inet => ("198.18.10.1", "32", "198.19.10.1"),
            AddressFamily::Inet6 => ("2001:2:0:10::1", "128", "2001:2:0:8010::1"),
        };
        let prefix = format!("{source}/{length}");
        let add = ["ip", "address", "add", &prefix, "dev", "dut-in", "nodad"];
        run_in(rig.topology.dut(), &add);
        send_from_dut(&rig, source, destination, 2000, &[0; 40]);
        wait_until("the datagram arrives", || rig.forwarded_frames() > 0);
        assert_eq!(rig.wrong_frames(), [("length", 1)], "{family}");
    }
}

#[test]
fn frames_of_others_are_counted_apart() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for family in FAMILIES {
        let mut rig = Rig::new(family, Forwarder::Kernel);
        let running = rig.start(Pace::even(50_000));
        let (any, destination, nobody) = match family {
            AddressFamily::Inet => ("0.0.0.0", "198.19.10.1", "198.19.0.99"),
            AddressFamily::Inet6 => ("::", "2001:2:0:8010::1", "2001:2:0:8000::99"),
        };
        for _ in 0..10 {
            send_from_dut(&rig, any, destination, 2001, &[0; 18]);
        }
        // A neighbour that is not there is asked for: ARP or neighbour discovery.
        send_from_dut(&rig, any, nobody, 2000, &[0; 18]);
        wait_until("they arrive", || {
            rig.sink.counts().unwrap().foreign_frames >= 11
        });
        let offered = running.stop().unwrap().offered_frames().unwrap();
        wait_until("all frames arrive", || rig.forwarded_frames() >= offered);
        assert_eq!(rig.forwarded_frames(), offered);
        assert_eq!(rig.wrong_frames(), []);
    }
}
