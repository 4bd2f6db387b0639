//! Generator and sink at the two ends of one cable, with no router between them: every frame arrives
//! as it was sent, so what the sink finds wrong is known beforehand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cable;

use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use cable::{Cable, FAMILIES, FAR_END, FLOWS, NEAR_END, frames, ip, link};
use fwdlab_model::{AddressFamily, FrameSize, SCHEDULE_FRAMES, Tester, Traffic, Zipf};
use fwdlab_packet::MacAddress;
use fwdlab_traffic::{
    Frames, Generator, InterfaceExpectation, InterfaceGenerator, InterfaceLoad, InterfaceSink,
    Link, Pace, Receiver as _, SentFrames, Sink, SinkCounts, TrafficError, Way, drop_control,
    refuse_needed,
};
use testkit::wait_until;

impl Cable {
    /// A cable whose far end takes frames from live programs, as it does with GRO.
    fn new() -> Self {
        Self::with_queues(1)
    }

    fn with_queues(queues: usize) -> Self {
        let cable = Self::lay(Some(testkit::own_the_machine()), queues);
        let enable = || fwdlab_sys::enable_gro(FAR_END);
        cable.namespace.run(enable).unwrap().unwrap();
        cable
    }

    fn generator(&self, frames: &Frames) -> Generator {
        self.namespace
            .run(|| Generator::load(frames, self.near_index))
            .unwrap()
            .unwrap()
    }

    fn sink(&self, frames: &Frames) -> Sink {
        let mut sink = Sink::load(frames).unwrap();
        self.namespace
            .run(|| sink.attach(FAR_END))
            .unwrap()
            .unwrap();
        sink
    }
}

fn wait_for(sink: &Sink, frames: u64) {
    wait_until("the frames arrive", || {
        sink.counts().unwrap().forwarded_frames >= frames
    });
}

#[test]
fn as_many_frames_as_asked_arrive_from_all_flows_in_turn() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for family in FAMILIES {
        let cable = Cable::new();
        let frames = frames(family, link(1));
        let mut generator = cable.generator(&frames);
        let mut sink = cable.sink(&frames);
        for (sent, flows) in [(1, 1), (100, 100), (2000, 2000), (5000, 2000)] {
            sink.reset_to_check_all().unwrap();
            generator.send(sent).unwrap();
            wait_for(&sink, sent.into());
            let counts = sink.counts().unwrap();
            assert_eq!(counts.forwarded_frames, u64::from(sent));
            assert_eq!(counts.checked_frames, u64::from(sent));
            assert_eq!(counts.foreign_frames, 0);
            assert_eq!(sink.flows_seen().unwrap(), flows);
            assert_eq!(generator.offered_frames().unwrap(), u64::from(sent));
        }
    }
}

/// Exactly as often as the distribution says, however the frames are made and of whatever sizes they are.
#[test]
fn heavy_flows_have_their_shares_of_the_frames_that_arrive() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let size = |bytes, share| FrameSize { bytes, share };
    let zipf: Zipf = "1.1".parse().unwrap();
    for (family, frame_sizes) in [
        (AddressFamily::Inet, vec![size(64, 1)]),
        (AddressFamily::Inet6, vec![size(64, 3), size(128, 1)]),
    ] {
        let traffic = Traffic {
            zipf: Some(zipf),
            frame_sizes,
            ..Traffic::default()
        };
        let frames = Frames::unrouted(family, &traffic, link(1)).unwrap();
        let cable = Cable::new();
        let mut generator = cable.generator(&frames);
        let mut sink = cable.sink(&frames);
        sink.reset_to_check_all().unwrap();
        generator.send(SCHEDULE_FRAMES).unwrap();
        wait_for(&sink, SCHEDULE_FRAMES.into());
        let counts = sink.counts().unwrap();
        assert_eq!(counts.checked_frames, u64::from(SCHEDULE_FRAMES));
        assert_eq!(counts.wrong_frames(), 0, "{counts:?}");
        let mut of_flows = sink.checked_frames_by_flow().unwrap();
        assert!(!of_flows.is_sorted_by(|one, other| one >= other));
        of_flows.sort_unstable();
        let mut planned = zipf.frames_by_rank(FLOWS);
        planned.sort_unstable();
        assert_eq!(of_flows, planned, "{family}");
    }
}

#[test]
fn every_nth_frame_is_checked_and_every_flow_gets_its_turn() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let frames = frames(AddressFamily::Inet, link(1));
    let every = frames.check_every();
    let mut generator = cable.generator(&frames);
    let sink = cable.sink(&frames);
    // The batches of one call are all taken by the CPU that runs it: each CPU counts for itself.
    generator.send(FLOWS * every).unwrap();
    wait_for(&sink, u64::from(FLOWS * every));
    let verification = sink.verification().unwrap();
    assert_eq!(verification.checked_frames, u64::from(FLOWS));
    assert_eq!(verification.flows_seen, FLOWS);
}

#[test]
fn what_is_wrong_is_named_in_the_order_in_which_it_is_looked_for() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let other_source = Link {
        source: MacAddress([2, 0, 0, 0, 1, 9]),
        ..link(1)
    };
    let other_destination = Link {
        destination: MacAddress([2, 0, 0, 0, 9, 2]),
        ..link(1)
    };
    for family in FAMILIES {
        let cable = Cable::new();
        let mut generator = cable.generator(&frames(family, link(1)));
        // Nobody took one off the TTL; that is looked at behind the MAC addresses.
        for (expected, kind) in [
            (link(1), "TTL"),
            (link(2), "MAC address"),
            (other_source, "MAC address"),
            (other_destination, "MAC address"),
        ] {
            let mut sink = cable.sink(&frames(family, expected));
            sink.reset_to_check_all().unwrap();
            generator.send(FLOWS).unwrap();
            wait_for(&sink, FLOWS.into());
            let counts = sink.counts().unwrap();
            let wrong: Vec<_> = counts.wrong_frames_by_kind().collect();
            assert_eq!(wrong, [(kind, u64::from(FLOWS))], "{family}");
            assert_eq!(counts.wrong_frames(), u64::from(FLOWS));
            sink.detach().unwrap();
        }
        let traffic = Traffic {
            sources: 3,
            destinations: 7,
            ..Traffic::default()
        };
        let fewer = Frames::new(family, &traffic, link(1), link(1)).unwrap();
        let mut sink = cable.sink(&fewer);
        sink.reset_to_check_all().unwrap();
        generator.send(FLOWS).unwrap();
        wait_for(&sink, FLOWS.into());
        let counts = sink.counts().unwrap();
        let wrong: Vec<_> = counts.wrong_frames_by_kind().collect();
        assert_eq!(wrong, [("flow", u64::from(FLOWS) - 21), ("TTL", 21)]);
    }
}

#[test]
fn a_held_generator_sends_nothing_until_it_is_released() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let frames = frames(AddressFamily::Inet, link(1));
    let sink = cable.sink(&frames);
    for pace in [Pace::SelfClocked, Pace::even(100_000)] {
        let generator = cable.generator(&frames);
        let running = generator.start_held(0, pace).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(running.offered_frames().unwrap(), 0);
        running.release();
        for _ in 0..20 {
            let before = running.offered_frames().unwrap();
            wait_until("it sends", || running.offered_frames().unwrap() > before);
            running.hold().unwrap();
            let held_at = running.offered_frames().unwrap();
            let arrived = || sink.counts().unwrap().forwarded_frames;
            std::thread::sleep(Duration::from_millis(2));
            let arrived_at = arrived();
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(running.offered_frames().unwrap(), held_at);
            assert_eq!(arrived(), arrived_at);
            assert!(running.is_running());
            running.release();
        }
        running.hold().unwrap();
        // One that is held can be stopped.
        running.stop().unwrap();
    }
}

#[test]
fn a_program_that_is_to_stay_outlives_its_value() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let attach = |program: &mut fwdlab_traffic::XdpProgram| {
        let inside = || program.attach_to_stay(FAR_END);
        cable.namespace.run(inside).unwrap()
    };
    let mut control = drop_control().unwrap();
    attach(&mut control.xdp).unwrap();
    assert!(attach(&mut drop_control().unwrap().xdp).is_err());
    // Another one takes the place only where this one was taken off, not where its value went.
    control.xdp.detach().unwrap();
    let mut second = drop_control().unwrap();
    attach(&mut second.xdp).unwrap();
    drop(second);
    let error = attach(&mut control.xdp).unwrap_err().to_string();
    assert!(error.contains("busy"), "{error}");
}

#[test]
fn the_other_family_is_foreign() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for (sent, expected) in [(FAMILIES[0], FAMILIES[1]), (FAMILIES[1], FAMILIES[0])] {
        let cable = Cable::new();
        let mut generator = cable.generator(&frames(sent, link(1)));
        let sink = cable.sink(&frames(expected, link(1)));
        generator.send(FLOWS).unwrap();
        wait_until("the frames arrive", || {
            sink.counts().unwrap().foreign_frames >= FLOWS.into()
        });
        let counts = sink.counts().unwrap();
        assert_eq!((counts.forwarded_frames, counts.checked_frames), (0, 0));
        assert_eq!(counts.foreign_frames, u64::from(FLOWS));
    }
}

#[test]
fn the_drop_control_counts_every_frame_and_lets_none_through() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let mut generator = cable.generator(&frames(AddressFamily::Inet, link(1)));
    let mut control = drop_control().unwrap();
    let attach = || control.xdp.attach(FAR_END);
    cable.namespace.run(attach).unwrap().unwrap();
    assert!(control.xdp.is_attached());
    generator.send(3000).unwrap();
    wait_until("the frames are dropped", || {
        control.frames(0).unwrap() >= 3000
    });
    assert_eq!(control.frames(0).unwrap(), 3000);
    // One program at a time: the other is told, and comes on when the first has gone.
    let attach = || drop_control().unwrap().xdp.attach(FAR_END);
    let error = cable.namespace.run(attach).unwrap().unwrap_err();
    assert!(error.to_string().starts_with("attaching drop to far: "));
    control.xdp.detach().unwrap();
    assert!(!control.xdp.is_attached());
    cable.namespace.run(attach).unwrap().unwrap();
}

#[test]
fn a_signal_does_not_change_what_is_sent() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    const FRAMES: u32 = 5000;
    let cable = Cable::new();
    let frames = frames(AddressFamily::Inet6, link(1));
    let mut generator = cable.generator(&frames);
    let sink = cable.sink(&frames);
    let wake_up = fwdlab_sys::enable_wake_ups().unwrap();
    let thread = std::thread::spawn(move || {
        generator.send(FRAMES).unwrap();
        generator.offered_frames().unwrap()
    });
    // Signals come twice a millisecond until it has sent all: a batch or two between each.
    assert_eq!(wake_up.until_finished(thread).unwrap(), u64::from(FRAMES));
    wait_for(&sink, FRAMES.into());
    assert_eq!(sink.counts().unwrap().forwarded_frames, u64::from(FRAMES));
}

#[test]
fn a_generator_sends_until_it_is_stopped_and_can_start_again() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let frames = frames(AddressFamily::Inet, link(1));
    let mut generator = cable.generator(&frames);
    let mut sink = cable.sink(&frames);
    let load_cpu = fwdlab_sys::online_cpus().unwrap()[0];
    for pace in [Pace::SelfClocked, Pace::even(50_000)] {
        sink.reset().unwrap();
        let running = generator.start(load_cpu, pace).unwrap();
        wait_until("it sends", || running.offered_frames().unwrap() > 5000);
        assert!(running.is_running());
        generator = running.stop().unwrap();
        let offered = generator.offered_frames().unwrap();
        wait_for(&sink, offered);
        assert_eq!(sink.counts().unwrap().forwarded_frames, offered);
        assert_eq!(generator.offered_frames().unwrap(), offered);
    }
}

#[test]
fn a_running_generator_takes_another_pace_and_its_flows_go_on() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let generator = cable.generator(&frames(AddressFamily::Inet, link(1)));
    let load_cpu = fwdlab_sys::online_cpus().unwrap()[0];
    let mut running = generator.start(load_cpu, Pace::even(1_000)).unwrap();
    wait_until("it sends", || running.offered_frames().unwrap() > 10);
    let before = running.offered_frames().unwrap();
    running.set_pace(Pace::SelfClocked).unwrap();
    wait_until("it sends all it can", || {
        running.offered_frames().unwrap() > before + 100_000
    });
    let start = Instant::now();
    running.set_pace(Pace::even(30_000)).unwrap();
    let before = running.offered_frames().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let offered = running.offered_frames().unwrap() - before;
    let most = start.elapsed().as_micros() * 30_000 / 1_000_000 + 1;
    assert!(
        offered > 0 && u128::from(offered) <= most,
        "{offered} of {most}"
    );
    running.stop().unwrap();
}

#[test]
fn a_paced_generator_is_never_ahead_of_its_time() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let mut generator = cable.generator(&frames(AddressFamily::Inet, link(1)));
    let load_cpu = fwdlab_sys::online_cpus().unwrap()[0];
    for burst_frames in [1, 250] {
        let pace = Pace::Paced {
            pps: 30_000,
            burst_frames,
        };
        let start = Instant::now();
        let running = generator.start(load_cpu, pace).unwrap();
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(20));
            let offered = running.offered_frames().unwrap();
            let even = start.elapsed().as_micros() * 30_000 / 1_000_000;
            let most = even + u128::from(burst_frames);
            assert!(u128::from(offered) <= most, "{offered} of {most}");
        }
        generator = running.stop().unwrap();
        assert!(generator.offered_frames().unwrap() >= burst_frames.into());
    }
}

#[test]
fn a_generator_that_is_dropped_stops() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let frames = frames(AddressFamily::Inet, link(1));
    let generator = cable.generator(&frames);
    let sink = cable.sink(&frames);
    let load_cpu = fwdlab_sys::online_cpus().unwrap()[0];
    let running = generator.start(load_cpu, Pace::SelfClocked).unwrap();
    wait_for(&sink, 1000);
    drop(running);
    // The last batch was sent before the thread ended, and nothing is sent without it.
    let last = sink.counts().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(sink.counts().unwrap(), last);
}

const NOBODY: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// The CPUs that the tests of this file may send from.
static CPUS: LazyLock<Vec<u32>> = LazyLock::new(|| fwdlab_sys::online_cpus().unwrap());

/// A load from a named interface, on the CPU that the tests of this file send from.
fn load(traffic: &Traffic, family: AddressFamily, destination: MacAddress) -> InterfaceLoad<'_> {
    InterfaceLoad {
        destination,
        family,
        traffic,
        is_reversed: false,
        cpus: &CPUS[..1],
        pace: Pace::even(100_000),
    }
}

/// Sends from one end of the cable, and counts at the other, as a user does who names interfaces.
fn over_named_interfaces(
    traffic: &Traffic,
    family: AddressFamily,
    sender: Option<Tester>,
    cpus: &[u32],
) -> (SentFrames, SinkCounts, u32) {
    let cable = Cable::with_queues(cpus.len());
    let run = || {
        let mac = |name| MacAddress(fwdlab_sys::interface(name).unwrap().mac);
        let expectation = InterfaceExpectation {
            source: mac(NEAR_END),
            family,
            traffic,
            way: Way::Cable,
        };
        let mut sink = InterfaceSink::attach(FAR_END, &expectation).unwrap();
        assert!(sink.is_in_driver());
        sink.reset_to_check_all().unwrap();
        let load = InterfaceLoad {
            cpus,
            ..load(traffic, family, mac(FAR_END))
        };
        let running = match sender {
            Some(sender) => InterfaceGenerator::start_with(NEAR_END, &load, sender).unwrap(),
            None => InterfaceGenerator::start(NEAR_END, &load).unwrap(),
        };
        assert_eq!(running.sender(), sender.unwrap_or(Tester::Ebpf));
        wait_until("it sends", || {
            running.has_probed().unwrap() && running.sent().unwrap().offered > 5000
        });
        assert!(running.is_running());
        let sent = running.stop().unwrap();
        wait_until("the frames arrive", || {
            sink.counts().unwrap().forwarded_frames >= sent.offered
        });
        let counted = (sent, sink.counts().unwrap(), sink.flows_seen().unwrap());
        if cpus.len() > 1 {
            let queues = testkit::succeed(Command::new("ethtool").args(["-S", FAR_END]));
            let queues = String::from_utf8(queues.stdout).unwrap();
            for queue in 0..cpus.len() {
                let count = format!("rx_queue_{queue}_xdp_packets: ");
                assert!(queues.contains(&count), "{queues}");
                assert!(!queues.contains(&format!("{count}0\n")), "{queues}");
            }
        }
        counted
    };
    cable.namespace.run(run).unwrap()
}

#[test]
fn named_interfaces_send_and_count_every_frame_from_one_cpu_or_two() {
    testkit::require_root!();
    testkit::require_tool!("ip", "ethtool");
    let size = |bytes| FrameSize { bytes, share: 1 };
    let senders = [None].into_iter().chain(Tester::SOCKETS.map(Some));
    for (sender, family) in senders.flat_map(|sender| FAMILIES.map(|family| (sender, family))) {
        // Tagged ones are 4 bytes longer than any other.
        for (cpus, vlan) in [(&CPUS[..1], None), (&CPUS[..CPUS.len().min(2)], Some(100))] {
            let traffic = Traffic {
                vlan,
                frame_sizes: vec![size(64), size(1518)],
                ..Traffic::default()
            };
            let (sent, counts, flows) = over_named_interfaces(&traffic, family, sender, cpus);
            let what = format!("{sender:?} on {cpus:?}, VLAN {vlan:?}");
            assert_eq!(sent.transmitted, sent.offered, "{what}");
            assert_eq!(counts.forwarded_frames, sent.offered, "{what}");
            assert_eq!(counts.checked_frames, sent.offered, "{what}");
            assert_eq!((counts.foreign_frames, counts.wrong_frames()), (0, 0));
            assert_eq!(flows, FLOWS, "{what}");
        }
    }
}

/// An exponent of 3 leaves all but some hundred of the 2000 flows out.
#[test]
fn heavy_flows_are_sent_by_every_sender_from_one_cpu_or_two() {
    testkit::require_root!();
    testkit::require_tool!("ip", "ethtool");
    let traffic = Traffic {
        zipf: Some("3".parse().unwrap()),
        ..Traffic::default()
    };
    let flows_sent = traffic.flow_shares().unwrap().flows_sent;
    assert!(flows_sent < 200);
    for sender in [Tester::Ebpf].into_iter().chain(Tester::SOCKETS) {
        for cpus in [&CPUS[..1], &CPUS[..CPUS.len().min(2)]] {
            let inet = AddressFamily::Inet;
            let (sent, counts, flows) = over_named_interfaces(&traffic, inet, Some(sender), cpus);
            let what = format!("{sender:?} on {cpus:?}");
            assert_eq!(counts.checked_frames, sent.offered, "{what}");
            assert_eq!((counts.foreign_frames, counts.wrong_frames()), (0, 0));
            assert!((1..=flows_sent).contains(&flows), "{what}: {flows}");
        }
    }
}

/// Has a test's work done on two CPUs that send over a cable of two queues; nothing on a machine that has one.
fn on_two_cpus(pace: Pace, work: impl Fn(&InterfaceLoad<'_>) + Sync) {
    let Some(cpus) = CPUS.get(..2) else { return };
    let cable = Cable::with_queues(2);
    let traffic = Traffic::default();
    let load = InterfaceLoad {
        cpus,
        pace,
        ..load(&traffic, AddressFamily::Inet, NOBODY)
    };
    cable.namespace.run(|| work(&load)).unwrap();
}

#[test]
fn two_cpus_keep_one_pace() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for burst_frames in [1, 8] {
        let pps = 20_001;
        let pace = Pace::Paced { pps, burst_frames };
        on_two_cpus(pace, |load| {
            for sender in [Tester::Ebpf].into_iter().chain(Tester::SOCKETS) {
                let start = Instant::now();
                let running = InterfaceGenerator::start_with(NEAR_END, load, sender).unwrap();
                let offered = || running.sent().unwrap().offered;
                // A window in which nobody took one of the CPUs away for longer than a pacer makes up for.
                wait_until("the pace is kept", || {
                    let (begun, before) = (Instant::now(), offered());
                    std::thread::sleep(Duration::from_millis(250));
                    let frames = u128::from(offered() - before) * 1_000_000;
                    let even = begun.elapsed().as_micros() * u128::from(pps);
                    frames.abs_diff(even) < even / 100
                });
                let most = start.elapsed().as_micros() * u128::from(pps) / 1_000_000;
                let offered = u128::from(running.stop().unwrap().offered);
                let ahead = 2 * u128::from(burst_frames) + 2;
                assert!(offered <= most + ahead, "{offered} of {most}");
            }
        });
    }
}

#[test]
fn one_cpu_that_fails_stops_the_other() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    on_two_cpus(Pace::even(10_000), |load| {
        for sender in [Tester::Ebpf].into_iter().chain(Tester::SOCKETS) {
            let load = InterfaceLoad {
                cpus: &[load.cpus[0], 1000],
                ..load.clone()
            };
            let running = InterfaceGenerator::start_with(NEAR_END, &load, sender).unwrap();
            wait_until("it ends", || !running.is_running());
            let start = "CPU 1000: the generator stopped by itself: moving a thread to CPU 1000: ";
            // The other one sends no more, before anybody asks it to stop.
            wait_until("the other ends", || {
                let before = running.sent().unwrap().offered;
                std::thread::sleep(Duration::from_millis(50));
                running.sent().unwrap().offered == before
            });
            let error = running.stop().unwrap_err();
            assert!(error.to_string().starts_with(start), "{error}");
            let error = InterfaceGenerator::start_among(NEAR_END, &load, &[sender]).err();
            let error = error.unwrap();
            assert!(error.to_string().starts_with(start), "{error}");
        }
    });
}

#[test]
fn af_xdp_needs_a_queue_for_each_cpu() {
    testkit::require_root!();
    testkit::require_tool!("ip", "ethtool");
    on_two_cpus(Pace::even(10_000), |load| {
        // More that receive are of no use.
        let channels = ["-L", NEAR_END, "rx", "2", "tx", "1"];
        testkit::succeed(Command::new("ethtool").args(channels));
        let error = InterfaceGenerator::start_with(NEAR_END, load, Tester::AfXdp).err();
        let error = error.unwrap();
        let is_said = matches!(
            &error,
            TrafficError::TooFewQueues {
                queues: 1,
                cpus: 2,
                ..
            }
        );
        assert!(is_said, "{error}");
        assert!(error.to_string().contains("ethtool -L near"), "{error}");
        let running = InterfaceGenerator::start_with(NEAR_END, load, Tester::TxRing).unwrap();
        wait_until("it sends", || running.has_probed().unwrap());
        running.stop().unwrap();
    });
}

#[test]
fn the_interface_of_a_default_route_is_refused() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for (address, gateway, protocol) in [
        ("198.18.0.1/24", "198.18.0.2", "-4"),
        ("2001:2::1/64", "2001:2::2", "-6"),
    ] {
        let cable = Cable::new();
        let traffic = Traffic::default();
        let expectation = InterfaceExpectation {
            source: NOBODY,
            family: AddressFamily::Inet,
            traffic: &traffic,
            way: Way::Router,
        };
        let load = load(&traffic, AddressFamily::Inet, NOBODY);
        cable
            .namespace
            .run(|| {
                refuse_needed(FAR_END).unwrap();
                ip(&["address", "add", address, "dev", FAR_END, "nodad"]);
                refuse_needed(FAR_END).unwrap();
                ip(&[protocol, "route", "add", "default", "via", gateway]);
                let other_end = refuse_needed(NEAR_END).unwrap_err().to_string();
                let start = "near: a default route leads through far";
                assert!(other_end.starts_with(start), "{other_end}");
                let refused = [
                    refuse_needed(FAR_END).err(),
                    InterfaceSink::attach(FAR_END, &expectation).err(),
                    InterfaceGenerator::start(FAR_END, &load).err(),
                    InterfaceGenerator::start_with(FAR_END, &load, Tester::Sendmmsg).err(),
                ];
                for error in refused {
                    let text = error.unwrap().to_string();
                    let start = "far: a default route leads through it";
                    assert!(text.starts_with(start), "{text}");
                }
            })
            .unwrap();
    }
}

#[test]
fn an_interface_that_transmits_nothing_is_not_taken_for_one_that_does() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let run = || {
        // The other end of this pair does not poll.
        let pair = ["type", "veth", "peer", "name", "right"];
        ip(&[&["link", "add", "left"], &pair[..]].concat());
        for end in ["left", "right"] {
            ip(&["link", "set", end, "addrgenmode", "none", "up"]);
        }
        let traffic = Traffic::default();
        let load = load(&traffic, AddressFamily::Inet, NOBODY);
        let running = InterfaceGenerator::start_with("left", &load, Tester::Ebpf).unwrap();
        wait_until("it sends", || running.sent().unwrap().offered > 100);
        let error = running.stop().unwrap_err();
        assert!(
            matches!(&error, TrafficError::NotTransmitted { interface, .. } if interface == "left"),
            "{error}"
        );
        // Whoever leaves the choice gets the next best, and the reason.
        let running = InterfaceGenerator::start("left", &load).unwrap();
        assert_eq!(running.sender(), Tester::AfXdp);
        let [(refused, why)] = running.refused() else {
            panic!("one was refused");
        };
        assert_eq!(*refused, Tester::Ebpf);
        assert!(matches!(why, TrafficError::NotTransmitted { .. }), "{why}");
        running.stop().unwrap()
    };
    let sent = cable.namespace.run(run).unwrap();
    assert!(sent.transmitted > 0);
}

#[test]
fn an_interface_that_cannot_be_used_is_refused_with_the_reason() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let run = || {
        ip(&["tuntap", "add", "tunnel", "mode", "tun"]);
        let traffic = Traffic::default();
        let load = load(&traffic, AddressFamily::Inet, NOBODY);
        let error = |name| InterfaceGenerator::start(name, &load).err().unwrap();
        assert!(matches!(
            error("nowhere"),
            TrafficError::NoSuchInterface { .. }
        ));
        assert!(matches!(error("tunnel"), TrafficError::NoEthernet { .. }));
        ip(&["link", "set", FAR_END, "down"]);
        // The kernel says so a while later.
        wait_until("its carrier goes", || {
            ip(&["link", "show", NEAR_END]).contains("NO-CARRIER")
        });
        assert!(matches!(error(NEAR_END), TrafficError::NoCarrier { .. }));
        assert!(matches!(error(FAR_END), TrafficError::InterfaceDown { .. }));
    };
    cable.namespace.run(run).unwrap();
}

#[test]
fn an_interface_that_goes_is_missed_by_sender_and_sink() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for sender in [Tester::Ebpf].into_iter().chain(Tester::SOCKETS) {
        let cable = Cable::new();
        let run = || {
            let traffic = Traffic::default();
            let expectation = InterfaceExpectation {
                source: NOBODY,
                family: AddressFamily::Inet,
                traffic: &traffic,
                way: Way::Cable,
            };
            let sink = InterfaceSink::attach(FAR_END, &expectation).unwrap();
            let load = load(&traffic, AddressFamily::Inet, NOBODY);
            let running = InterfaceGenerator::start_with(NEAR_END, &load, sender).unwrap();
            wait_until("it sends", || running.sent().unwrap().transmitted > 1000);
            ip(&["link", "delete", NEAR_END]);
            for error in [
                sink.counts().unwrap_err(),
                running.sent().unwrap_err(),
                running.stop().unwrap_err(),
            ] {
                let is_gone = matches!(error, TrafficError::InterfaceGone { .. });
                assert!(is_gone, "{sender:?}: {error}");
            }
        };
        cable.namespace.run(run).unwrap();
    }
}

#[test]
fn a_generator_that_cannot_run_says_why() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let frames = frames(AddressFamily::Inet, link(1));
    let running = cable
        .generator(&frames)
        .start(1000, Pace::SelfClocked)
        .unwrap();
    wait_until("it has ended", || !running.is_running());
    let Err(error) = running.stop() else {
        panic!("there is no CPU 1000");
    };
    assert!(matches!(error, TrafficError::GeneratorStopped { .. }));
    assert!(
        error
            .to_string()
            .starts_with("the generator stopped by itself: moving a thread to CPU 1000: "),
        "{error}"
    );

    let load = || Generator::load(&frames, 1_000_000);
    let Err(error) = cable.namespace.run(load).unwrap() else {
        panic!("there is no such interface");
    };
    assert!(
        error
            .to_string()
            .starts_with("generator: naming the interface: "),
        "{error}"
    );
    let mut sink = Sink::load(&frames).unwrap();
    let attach = || sink.attach("nowhere");
    let error = cable.namespace.run(attach).unwrap().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("attaching fwdlab_count to nowhere: "),
        "{error}"
    );
}
