//! What the mechanisms do, counted exactly for one input at every level of every knob.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod rig;

use fwdlab_model::Knob;
use fwdlab_router::harvest::{INTERRUPT, NET_ETHER};
use fwdlab_router::{Drop, Event, Knobs};

use rig::packets::{Inet, Inet6};
use rig::{Rig, network};

const VECTORS: u64 = 10;
const VECTOR: u64 = 64;
const FRAMES: u64 = VECTORS * VECTOR;
/// What a drain takes to the descriptors at a time.
const BATCH: u64 = 32;

/// Counts of what the knobs of the transmit path change, and of all else that knobs change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    enqueues: u64,
    drains: u64,
    task_drains: u64,
    locks: u64,
    doorbells: u64,
    reclaim_checks: u64,
    reclaims: u64,
    reclaimed: u64,
    prefetches: u64,
    neighbour_lookups: u64,
    harvests: u64,
    interrupts: u64,
    redirect_tests: u64,
}

/// With FreeBSD's defaults: every vector goes through the ring of many producers and is drained at once,
/// in two batches; the first of each but the first vector takes back what the vector before left. Every
/// header is prefetched when it comes in, and every lookup when its header is looked at; the further steps
/// of IPv6's lookups come on top.
const DEFAULT: Counts = Counts {
    enqueues: VECTORS,
    drains: VECTORS,
    task_drains: 0,
    locks: 0,
    doorbells: VECTORS * VECTOR / BATCH,
    reclaim_checks: VECTORS * VECTOR / BATCH,
    reclaims: VECTORS - 1,
    reclaimed: FRAMES - VECTOR,
    prefetches: 2 * FRAMES,
    neighbour_lookups: 0,
    harvests: VECTORS,
    interrupts: VECTORS,
    redirect_tests: FRAMES,
};

/// With a lock instead of the ring, and no batches.
const SIMPLE: Counts = Counts {
    enqueues: 0,
    drains: 0,
    locks: VECTORS,
    doorbells: VECTORS,
    reclaim_checks: VECTORS,
    ..DEFAULT
};

impl Counts {
    fn of(rig: &Rig) -> Self {
        let counters = rig.counters();
        let events = |event| counters.events(event);
        Self {
            enqueues: events(Event::Enqueues),
            drains: events(Event::Drains),
            task_drains: events(Event::TaskDrains),
            locks: events(Event::Locks),
            doorbells: events(Event::Doorbells),
            reclaim_checks: events(Event::ReclaimChecks),
            reclaims: events(Event::Reclaims),
            reclaimed: events(Event::Reclaimed),
            prefetches: events(Event::Prefetches),
            neighbour_lookups: events(Event::NeighbourLookups),
            harvests: events(Event::Harvests),
            interrupts: events(Event::Interrupts),
            redirect_tests: events(Event::RedirectTests),
        }
    }
}

/// The frames of one vector, each of its own flow.
fn vector(is_inet: bool) -> Vec<Vec<u8>> {
    (0..u8::try_from(VECTOR).unwrap())
        .map(|host| {
            if is_inet {
                let packet = Inet {
                    destination: [198, 19, 10, 1 + host].into(),
                    ..Inet::default()
                };
                packet.frame(0)
            } else {
                let mut packet = Inet6::default();
                packet.destination = (packet.destination.to_bits() + u128::from(host)).into();
                packet.frame(0)
            }
        })
        .collect()
}

/// Ten vectors, one after the other: each comes in, is taken in one poll, and is sent before the next;
/// a second poll finds nothing, so that the next vector comes with an interrupt.
fn counts(knobs: &Knobs, is_inet: bool) -> Counts {
    let mut rig = Rig::new(&network(), knobs);
    let frames = vector(is_inet);
    for _ in 0..VECTORS {
        rig.receive(0, &frames);
        assert_eq!(rig.poll(), frames.len());
        assert_eq!(rig.sent(1).len(), frames.len());
        assert_eq!(rig.poll(), 0);
    }
    rig.assert_conservation();
    assert_eq!(rig.counters().events(Event::Forwarded), FRAMES);
    Counts::of(&rig)
}

/// With what IPv6's lookups prefetch beyond IPv4's, which are over after one step.
fn of_family(counts: Counts, is_inet: bool) -> Counts {
    let further_steps = if is_inet || counts.prefetches == 0 {
        0
    } else {
        FRAMES
    };
    Counts {
        prefetches: counts.prefetches + further_steps,
        ..counts
    }
}

/// The same counts for both families, but for what lookups differ in.
fn assert_counts(knobs: &Knobs, expected: Counts) {
    for is_inet in [true, false] {
        assert_eq!(
            counts(knobs, is_inet),
            of_family(expected, is_inet),
            "{knobs:?}, inet: {is_inet}"
        );
    }
}

fn at(knob: Knob, level: u32) -> Knobs {
    Knobs::default().with(knob, level)
}

#[test]
fn defaults() {
    assert_counts(&Knobs::default(), DEFAULT);
}

#[test]
fn every_default_level_is_the_default() {
    for knob in Knob::ALL {
        let level = u32::try_from(knob.default_level()).unwrap();
        assert_counts(&at(knob, level), DEFAULT);
    }
}

#[test]
fn who_abdicates_leaves_every_drain_to_the_task() {
    let expected = Counts {
        task_drains: VECTORS,
        ..DEFAULT
    };
    assert_counts(&at(Knob::TxAbdicate, 1), expected);
}

#[test]
fn who_abdicates_does_so_at_every_port_that_a_vector_leaves_through() {
    for (level, drains, task_drains) in [(0, 2, 0), (1, 2, 2)] {
        let mut rig = Rig::new(&network(), &at(Knob::TxAbdicate, level));
        // One goes on, and one leaves where it came in.
        let to = |destination| Inet::between("198.18.10.7", destination).frame(0);
        rig.receive(0, &["198.19.10.1", "198.18.10.9"].map(to));
        assert_eq!(rig.poll(), 2);
        let counters = rig.counters();
        assert_eq!(counters.events(Event::Enqueues), 2);
        assert_eq!(counters.events(Event::Drains), drains);
        assert_eq!(counters.events(Event::TaskDrains), task_drains);
        assert_eq!([rig.sent(0).len(), rig.sent(1).len()], [1, 1]);
    }
}

#[test]
fn simple_tx_takes_the_lock_once_a_vector_and_knows_no_ring() {
    assert_counts(&at(Knob::SimpleTx, 1), SIMPLE);
    // There is nothing to abdicate from.
    assert_counts(&at(Knob::SimpleTx, 1).with(Knob::TxAbdicate, 1), SIMPLE);
}

#[test]
fn sent_buffers_wait_until_more_than_the_threshold_are_outstanding() {
    for (threshold, reclaims, reclaimed) in [
        // Before a vector, everything before it was sent: 64, 128, …, 576.
        (0, 9, 576),
        (63, 9, 576),
        // 128 > 64, and then 128 again with every second vector.
        (64, 4, 512),
        (256, 1, 320),
        (319, 1, 320),
        (320, 1, 384),
        (512, 1, 576),
        (575, 1, 576),
        (576, 0, 0),
    ] {
        let knobs = at(Knob::TxReclaimThresh, threshold);
        let expected = |counts| Counts {
            reclaims,
            reclaimed,
            ..counts
        };
        assert_counts(&knobs, expected(DEFAULT));
        assert_counts(&knobs.with(Knob::SimpleTx, 1), expected(SIMPLE));
    }
}

#[test]
fn a_full_ring_is_reclaimed_whatever_the_threshold() {
    let ring = |simple| {
        at(Knob::OverrideNtxds, 128)
            .with(Knob::TxReclaimThresh, 512)
            .with(Knob::SimpleTx, simple)
    };
    // Every second vector finds the ring full of what was sent: the third, fifth, seventh and ninth.
    let expected = |counts| Counts {
        reclaims: 4,
        reclaimed: 512,
        ..counts
    };
    assert_counts(&ring(0), expected(DEFAULT));
    assert_counts(&ring(1), expected(SIMPLE));
}

#[test]
fn without_prefetching_nothing_is_prefetched() {
    // That a prefetch is one is proved by the machine code.
    let expected = Counts {
        prefetches: 0,
        ..DEFAULT
    };
    assert_counts(&at(Knob::Prefetch, 0), expected);
}

#[test]
fn without_l2_prepend_every_packet_costs_a_neighbour_lookup() {
    let expected = Counts {
        neighbour_lookups: FRAMES,
        ..DEFAULT
    };
    assert_counts(&at(Knob::L2Prepend, 0), expected);
}

#[test]
fn a_station_on_the_link_is_looked_up_at_either_level() {
    for (level, expected) in [(0, 3), (1, 1)] {
        let mut rig = Rig::new(&network(), &at(Knob::L2Prepend, level));
        let to = |destination| Inet::between("198.18.10.7", destination).frame(0);
        // Two behind the gateway, and the gateway itself.
        let frames = ["198.19.10.1", "198.19.10.2", "198.19.0.1"].map(to);
        assert_eq!(rig.exchange(0, &frames)[1].len(), 3);
        let lookups = rig.counters().events(Event::NeighbourLookups);
        assert_eq!(lookups, expected, "l2_prepend = {level}");
    }
}

#[test]
fn off_the_fast_path_neighbours_are_looked_up_at_level_0_only() {
    let with_options = Inet {
        options: vec![1; 4],
        ..Inet::default()
    };
    let expired = Inet {
        ttl: 1,
        ..Inet::default()
    };
    let expired6 = Inet6 {
        hop_limit: 1,
        ..Inet6::default()
    };
    let with_options6 = Inet6::default().with_hop_by_hop_options(&[1, 0]);
    for (what, packet, back, on) in [
        ("options, forwarded", with_options.frame(0), 0, 1),
        ("options, forwarded", with_options6.frame(0), 0, 1),
        ("an error, sent by the router", expired.frame(0), 1, 0),
        ("an error, sent by the router", expired6.frame(0), 1, 0),
    ] {
        for (level, expected) in [(0, 1), (1, 0)] {
            let mut rig = Rig::new(&network(), &at(Knob::L2Prepend, level));
            let sent = rig.pass(0, &packet).map(|frames| frames.len());
            assert_eq!(sent, [back, on], "{what}");
            let lookups = rig.counters().events(Event::NeighbourLookups);
            assert_eq!(lookups, expected, "{what}: l2_prepend = {level}");
        }
    }
}

#[test]
fn the_harvest_mask_says_which_events_are_harvested() {
    let default = Knobs::default().level(Knob::HarvestMask);
    let (interrupt, ether) = (1 << INTERRUPT.bit, 1 << NET_ETHER.bit);
    for (mask, harvests) in [
        (0, 0),
        (default, VECTORS),
        (interrupt, VECTORS),
        (default & !interrupt, 0),
        (ether, FRAMES),
        (default | ether, FRAMES + VECTORS),
        (default & !interrupt | ether, FRAMES),
        (!(interrupt | ether), 0),
    ] {
        let expected = Counts {
            harvests,
            ..DEFAULT
        };
        assert_counts(&at(Knob::HarvestMask, mask), expected);
        // The receiving node has a loop of its own for each pair of levels.
        let plain = at(Knob::HarvestMask, mask).with(Knob::Prefetch, 0);
        let expected = Counts {
            prefetches: 0,
            ..expected
        };
        assert_counts(&plain, expected);
    }
}

#[test]
fn harvested_events_reach_the_pool() {
    use std::sync::Arc;

    use fwdlab_router::{Layout, Network, Router};

    let network = Arc::new(Network::build(&network()).unwrap());
    let ether = at(Knob::HarvestMask, 1 << NET_ETHER.bit | 1 << INTERRUPT.bit);
    let (router, _) = Router::assemble(&network, &ether, &Layout::single(), Vec::new()).unwrap();
    let harvester = Arc::clone(&router.harvester);
    let mut rig = Rig::of(router);
    assert_eq!(harvester.feed_pool(), 0);
    rig.exchange(0, &vector(true));
    assert_eq!(harvester.feed_pool(), 64 + 1);
}

#[test]
fn each_family_has_its_own_redirect_test() {
    for (inet, inet6) in [(1, 1), (1, 0), (0, 1), (0, 0)] {
        let knobs = at(Knob::Ipv4Redirect, inet).with(Knob::Ipv6Redirect, inet6);
        for (is_inet, level) in [(true, inet), (false, inet6)] {
            // Neither depends on how the Ethernet header is made.
            for l2_prepend in [0, 1] {
                let knobs = knobs.clone().with(Knob::L2Prepend, l2_prepend);
                let expected = Counts {
                    redirect_tests: FRAMES * u64::from(level),
                    neighbour_lookups: FRAMES * u64::from(1 - l2_prepend),
                    ..DEFAULT
                };
                let expected = of_family(expected, is_inet);
                assert_eq!(counts(&knobs, is_inet), expected, "{knobs:?}");
            }
        }
    }
}

#[test]
fn a_receive_ring_has_so_many_descriptors_but_one() {
    for nrxds in [64, 256, 1024, 4096] {
        let mut rig = Rig::new(&network(), &at(Knob::OverrideNrxds, nrxds));
        let [first, second] = &mut rig.ports[..] else {
            panic!("there are two ports");
        };
        for port in [first, second] {
            assert_eq!(port.receive[0].available(), nrxds as usize - 1);
        }
    }
}

#[test]
fn a_transmit_ring_takes_so_many_frames_and_no_more() {
    for ntxds in [64, 128, 256] {
        let knobs = at(Knob::OverrideNtxds, ntxds).with(Knob::SimpleTx, 1);
        for is_inet in [true, false] {
            let mut rig = Rig::new(&network(), &knobs);
            // Nothing is sent meanwhile.
            for _ in 0..VECTORS {
                rig.receive(0, &vector(is_inet));
                rig.poll();
            }
            let counters = rig.counters();
            assert_eq!(counters.events(Event::Forwarded), u64::from(ntxds));
            assert_eq!(counters.drops(Drop::TxFull), FRAMES - u64::from(ntxds));
            assert_eq!(rig.sent(1).len(), ntxds as usize);
            rig.assert_conservation();
        }
    }
}

#[test]
fn behind_a_full_transmit_ring_packets_wait_in_the_ring_of_many_producers() {
    for ntxds in [64, 128, 256] {
        let mut rig = Rig::new(&network(), &at(Knob::OverrideNtxds, ntxds));
        // As many as there are buffers for.
        for _ in 0..5 {
            rig.receive(0, &vector(true));
            rig.poll();
        }
        assert_eq!(rig.counters().events(Event::Forwarded), 320);
        assert_eq!(rig.counters().all_drops(), 0);
        let mut sent = rig.sent(1).len();
        assert_eq!(sent, 320.min(ntxds as usize));
        // The queue's task goes on with the rest, without anybody enqueueing.
        let drains_before = rig.counters().events(Event::TaskDrains);
        while sent < 320 {
            assert_eq!(rig.poll(), 0);
            let more = rig.sent(1).len();
            assert!(more > 0 && more <= ntxds as usize);
            sent += more;
        }
        assert_eq!(sent, 320);
        let drains = rig.counters().events(Event::TaskDrains) - drains_before;
        assert_eq!(drains, 320_u64.div_ceil(ntxds.into()) - 1);
    }
}
