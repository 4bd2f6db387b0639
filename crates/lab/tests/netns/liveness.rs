//! The DUT's routes change under load, and its output with them.

use fwdlab_model::AddressFamily;
use fwdlab_traffic::{Pace, RunningGenerator};

use crate::rig::{FORWARDERS, Forwarder, Rig, wait_until};

/// More frames than can be under way: what is sent after so many meets only what is set now.
const FRAMES_UNDER_WAY_MAX: u64 = 2_000;

/// Enough frames for the sink's check, of every 63rd, to have seen some.
const FRAMES_TO_CHECK: u64 = 20_000;

fn wait_for_offered(running: &RunningGenerator, more: u64) {
    let enough = running.offered_frames().unwrap() + more;
    wait_until("the generator sends", || {
        running.offered_frames().unwrap() >= enough
    });
}

fn wait_for_forwarded(rig: &Rig, more: u64) {
    let enough = rig.forwarded_frames() + more;
    wait_until("the sink counts", || rig.forwarded_frames() >= enough);
}

fn prove_that_routes_count(family: AddressFamily, forwarder: Forwarder) {
    let mut rig = Rig::new(family, forwarder);
    let running = rig.start(Pace::SelfClocked);
    wait_for_forwarded(&rig, FRAMES_TO_CHECK);
    assert_eq!(rig.wrong_frames(), []);
    assert_eq!(rig.frames_without_route(), 0);

    rig.topology.delete_route(family).unwrap();
    wait_for_offered(&running, FRAMES_UNDER_WAY_MAX);
    let forwarded = rig.forwarded_frames();
    wait_for_offered(&running, FRAMES_TO_CHECK);
    assert_eq!(rig.forwarded_frames(), forwarded);
    assert!(rig.frames_without_route() >= FRAMES_TO_CHECK);

    rig.topology.restore_route(family).unwrap();
    wait_for_forwarded(&rig, FRAMES_TO_CHECK);
    assert_eq!(rig.wrong_frames(), []);

    rig.topology.move_route(family).unwrap();
    wait_for_forwarded(&rig, FRAMES_TO_CHECK);
    let [("MAC address", _)] = rig.wrong_frames()[..] else {
        panic!("{:?}", rig.wrong_frames());
    };

    rig.topology.restore_route(family).unwrap();
    wait_for_offered(&running, FRAMES_UNDER_WAY_MAX);
    let wrong = rig.wrong_frames();
    wait_for_forwarded(&rig, FRAMES_TO_CHECK);
    assert_eq!(rig.wrong_frames(), wrong);

    let offered = running.stop().unwrap().offered_frames().unwrap();
    wait_until("the last frame arrives or is dropped", || {
        rig.forwarded_frames() + rig.frames_without_route() >= offered
    });
    assert_eq!(
        rig.forwarded_frames() + rig.frames_without_route(),
        offered,
        "every frame was forwarded or had no route, and none both"
    );
    let outcomes = [0, 1, 2].map(|outcome| rig.forwarder.frames(outcome).unwrap());
    match forwarder {
        Forwarder::Kernel => assert_eq!(outcomes, [0, 0, 0]),
        Forwarder::Xdp => {
            // It redirects what the FIB answers and leaves the rest to the kernel, which may find a
            // route that came in the same moment.
            let [redirected, passed, dropped] = outcomes;
            assert!(redirected <= rig.forwarded_frames(), "{outcomes:?}");
            assert!(passed >= rig.frames_without_route(), "{outcomes:?}");
            assert_eq!((redirected + passed, dropped), (offered, 0));
        }
    }
}

#[test]
fn a_route_that_changes_under_load_changes_the_output_over_inet() {
    testkit::require_root!();
    for forwarder in FORWARDERS {
        prove_that_routes_count(AddressFamily::Inet, forwarder);
    }
}

#[test]
fn a_route_that_changes_under_load_changes_the_output_over_inet6() {
    testkit::require_root!();
    for forwarder in FORWARDERS {
        prove_that_routes_count(AddressFamily::Inet6, forwarder);
    }
}
