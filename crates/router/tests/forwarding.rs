//! What comes out of the router for what goes in.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod rig;

use fwdlab_model::Knob;
use fwdlab_packet::{Flows, UdpFrame, forwarded};
use fwdlab_router::{Drop, Event, Knobs};

use rig::{ROUTER, Rig, TESTER, network};

/// Frames of all flows, at a tester's hop limit of 64.
fn frames(flows: &Flows) -> Vec<Vec<u8>> {
    flows
        .iter()
        .map(|flow| {
            let length = UdpFrame::payload_length(&flow.addresses, 66).unwrap();
            UdpFrame {
                source_mac: TESTER[0],
                destination_mac: ROUTER[0],
                flow,
                hop_limit: 64,
                payload: &vec![0; length],
            }
            .emit()
        })
        .collect()
}

#[test]
fn every_flow_of_both_families_comes_out_as_a_router_makes_it() {
    for knobs in [
        Knobs::default(),
        Knobs::default().with(Knob::L2Prepend, 0),
        Knobs::default().with(Knob::SimpleTx, 1),
        Knobs::default().with(Knob::TxAbdicate, 1),
        Knobs::default().with(Knob::Prefetch, 0),
        Knobs::default().with(Knob::TxReclaimThresh, 512),
        Knobs::default()
            .with(Knob::OverrideNrxds, 64)
            .with(Knob::OverrideNtxds, 64),
        Knobs::default()
            .with(Knob::Ipv4Redirect, 0)
            .with(Knob::Ipv6Redirect, 0),
    ] {
        for flows in [Flows::inet(), Flows::inet6()] {
            let mut rig = Rig::new(&network(), &knobs);
            let sent = frames(&flows);
            let expected: Vec<_> = sent
                .iter()
                .map(|frame| forwarded(frame, ROUTER[1], TESTER[1]).unwrap())
                .collect();
            let mut out = [Vec::new(), Vec::new()];
            for burst in sent.chunks(48) {
                let more = rig.exchange(0, burst);
                for (out, more) in out.iter_mut().zip(more) {
                    out.extend(more);
                }
            }
            assert_eq!(out[0], Vec::<Vec<u8>>::new());
            assert!(out[1] == expected, "{knobs:?}");
            let counters = rig.counters();
            assert_eq!(counters.events(Event::Received), 2000);
            assert_eq!(counters.events(Event::Forwarded), 2000);
            assert_eq!(counters.all_drops(), 0);
        }
    }
}

#[test]
fn what_is_not_for_the_router_is_dropped_and_counted() {
    let mut rig = Rig::new(&network(), &Knobs::default());
    let mut frame = frames(&Flows::inet()).remove(0);
    frame[5] ^= 1;
    assert_eq!(
        rig.exchange(0, &[frame]),
        [Vec::<Vec<u8>>::new(), Vec::new()]
    );
    assert_eq!(rig.counters().drops(Drop::NotOurs), 1);
}
