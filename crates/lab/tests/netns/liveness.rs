//! The DUT's routes change under load, and its output with them.

use fwdlab_lab::DUT_OUT;
use fwdlab_model::AddressFamily;
use fwdlab_traffic::{Pace, RunningGenerator};

use crate::rig::{FORWARDERS, Forwarder, Rig, run_in, wait_until};

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

/// Changes the DUT's routes and neighbours, by these words of `ip`.
fn change_route(rig: &Rig, family: AddressFamily, words: &[&str]) {
    let option = match family {
        AddressFamily::Inet => "-4",
        AddressFamily::Inet6 => "-6",
    };
    run_in(rig.topology.dut(), &[&["ip", option], words].concat());
}

fn prove_that_routes_count(family: AddressFamily, forwarder: Forwarder) {
    let (prefix, sink, other) = match family {
        AddressFamily::Inet => ("198.19.0.0/16", "198.19.0.1", "198.19.0.3"),
        AddressFamily::Inet6 => ("2001:2:0:8010::/64", "2001:2:0:8000::1", "2001:2:0:8000::3"),
    };
    let to_sink = ["route", "replace", prefix, "via", sink];
    let mut rig = Rig::new(family, forwarder);
    let mac = "02:00:00:00:02:03";
    let neighbour = ["neigh", "add", other, "lladdr", mac, "dev", DUT_OUT];
    change_route(&rig, family, &neighbour);
    let running = rig.start(Pace::SelfClocked);
    wait_for_forwarded(&rig, FRAMES_TO_CHECK);
    assert_eq!(rig.wrong_frames(), []);
    assert_eq!(rig.frames_without_route(), 0);

    change_route(&rig, family, &["route", "del", prefix]);
    wait_for_offered(&running, FRAMES_UNDER_WAY_MAX);
    let forwarded = rig.forwarded_frames();
    wait_for_offered(&running, FRAMES_TO_CHECK);
    assert_eq!(rig.forwarded_frames(), forwarded);
    assert!(rig.frames_without_route() >= FRAMES_TO_CHECK);

    change_route(&rig, family, &to_sink);
    wait_for_forwarded(&rig, FRAMES_TO_CHECK);
    assert_eq!(rig.wrong_frames(), []);

    change_route(&rig, family, &["route", "replace", prefix, "via", other]);
    wait_for_forwarded(&rig, FRAMES_TO_CHECK);
    let [("MAC address", _)] = rig.wrong_frames()[..] else {
        panic!("{:?}", rig.wrong_frames());
    };

    change_route(&rig, family, &to_sink);
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
    testkit::require_tool!("ip");
    for forwarder in FORWARDERS {
        prove_that_routes_count(AddressFamily::Inet, forwarder);
    }
}

#[test]
fn a_route_that_changes_under_load_changes_the_output_over_inet6() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for forwarder in FORWARDERS {
        prove_that_routes_count(AddressFamily::Inet6, forwarder);
    }
}
