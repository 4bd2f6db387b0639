//! Senders and sink that need no eBPF, at the two ends of one cable: as root, and as an ordinary user
//! in a user namespace.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cable;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use cable::{Cable, FAMILIES, FAR_END, FLOWS, frames, ip, link};
use fwdlab_model::{AddressFamily, Tester, Traffic};
use fwdlab_packet::MacAddress;
use fwdlab_traffic::{
    CounterSink, Frames, InterfaceCounters, Link, Pace, Receiver as _, RunningSocketGenerator,
    SocketGenerator, SocketPort,
};
use testkit::{own_the_machine, wait_until};

/// Set for the tests' own program when it runs once more, as an ordinary user; its value is the file
/// to write to that it has come to its end.
const WITHOUT_ROOT: &str = "FWDLAB_TEST_WITHOUT_ROOT";

impl Cable {
    fn new() -> Self {
        // An ordinary user's program runs inside a test that owns the machine already.
        let is_alone = std::env::var_os(WITHOUT_ROOT).is_none();
        Self::lay(is_alone.then(own_the_machine), 1)
    }

    fn generator(&self, tester: Tester, frames: &Frames) -> SocketGenerator {
        let open = || SocketPort::open(tester, self.near_index);
        let port = self.namespace.run(open).unwrap().unwrap();
        SocketGenerator::load(&port, frames).unwrap()
    }

    fn sink(&self, frames: &Frames) -> CounterSink {
        let mut sink = CounterSink::new(frames);
        let attach = || sink.attach(FAR_END);
        self.namespace.run(attach).unwrap().unwrap();
        sink
    }

    fn far_counters(&self) -> InterfaceCounters {
        let open = || InterfaceCounters::open(fwdlab_sys::interface_index(FAR_END).unwrap());
        self.namespace.run(open).unwrap().unwrap()
    }
}

fn wait_for(sink: &CounterSink, frames: u64) {
    wait_until("the frames arrive", || {
        sink.forwarded_frames().unwrap() >= frames
    });
}

/// Every sender, in both families, sends exactly what it was asked to, and the sink sees every byte.
fn prove_that_all_frames_arrive() {
    for tester in Tester::SOCKETS {
        for family in FAMILIES {
            let cable = Cable::new();
            let frames = frames(family, link(1));
            let mut generator = cable.generator(tester, &frames);
            let mut sink = cable.sink(&frames);
            for (sent, flows) in [(1, 1), (100, 100), (2000, 2000), (5000, 2000)] {
                sink.reset_to_check_all().unwrap();
                generator.send(sent).unwrap();
                wait_for(&sink, sent.into());
                let counts = sink.counts().unwrap();
                let what = format!("{tester}, {family}, {sent} frames");
                assert_eq!(counts.forwarded_frames, u64::from(sent), "{what}");
                assert_eq!(counts.checked_frames, u64::from(sent), "{what}");
                assert_eq!(counts.foreign_frames, 0, "{what}");
                // Nobody took one off the TTL, and that is all that is wrong.
                let wrong: Vec<_> = counts.wrong_frames_by_kind().collect();
                assert_eq!(wrong, [("TTL", u64::from(sent))], "{what}");
                assert_eq!(sink.flows_seen().unwrap(), flows, "{what}");
                assert_eq!(
                    generator.offered_frames().unwrap(),
                    u64::from(sent),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn every_sender_sends_what_it_is_asked_to_as_root() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    prove_that_all_frames_arrive();
}

#[test]
fn every_sender_sends_what_it_is_asked_to_without_root() {
    testkit::require_root!();
    testkit::require_tool!("ip", "setpriv", "unshare");
    if let Some(end) = std::env::var_os(WITHOUT_ROOT) {
        assert!(fwdlab_sys::is_in_user_namespace());
        assert!(fwdlab_traffic::ebpf_refusal().is_some());
        prove_that_all_frames_arrive();
        fs::write(end, "reached").unwrap();
        return;
    }
    let _machine = own_the_machine();
    // Where an ordinary user may run and write, wherever this was built.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let end = folder.path().join("end");
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args(["unshare", "--user", "--map-root-user"])
        .arg(&program)
        .args([
            "--exact",
            "every_sender_sends_what_it_is_asked_to_without_root",
        ])
        .env(WITHOUT_ROOT, &end)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{stderr}");
    assert_eq!(
        fs::read_to_string(end).unwrap(),
        "reached",
        "{stdout}{stderr}"
    );
}

#[test]
fn a_sample_shows_every_flow() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let frames = frames(AddressFamily::Inet, link(1));
    let mut generator = cable.generator(Tester::Sendmmsg, &frames);
    let mut sink = cable.sink(&frames);
    sink.reset().unwrap();
    // Each flow would stay out of twenty times as many checks as there are flows once in e^20.
    let batch = FLOWS * 20;
    for _ in 0..frames.check_every() {
        generator.send(batch).unwrap();
        sink.counts().unwrap();
    }
    let sent = u64::from(batch * frames.check_every());
    wait_for(&sink, sent);
    let verification = sink.verification().unwrap();
    assert_eq!(sink.counts().unwrap().forwarded_frames, sent);
    assert_eq!(verification.flows_seen, FLOWS);
    // Drawn at random: 40000 are expected, and 1000 are five standard deviations.
    let checked = verification.checked_frames;
    assert!((39_000..41_000).contains(&checked), "{checked}");
}

#[test]
fn what_is_wrong_is_named() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    for family in FAMILIES {
        let mut generator = cable.generator(Tester::AfXdp, &frames(family, link(1)));
        let mut sink = cable.sink(&frames(family, link(2)));
        sink.reset_to_check_all().unwrap();
        generator.send(FLOWS).unwrap();
        wait_for(&sink, FLOWS.into());
        let wrong: Vec<_> = sink.counts().unwrap().wrong_frames_by_kind().collect();
        assert_eq!(wrong, [("MAC address", u64::from(FLOWS))], "{family}");

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
        let wrong: Vec<_> = sink.counts().unwrap().wrong_frames_by_kind().collect();
        assert_eq!(wrong, [("flow", u64::from(FLOWS) - 21), ("TTL", 21)]);
    }
}

#[test]
fn frames_that_are_not_the_testers_are_counted_apart() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let to_all = Link {
        destination: MacAddress([0xff; 6]),
        ..link(1)
    };
    let broadcast = Frames::new(AddressFamily::Inet, &Traffic::default(), to_all, link(1));
    let mut generator = cable.generator(Tester::TxRing, &broadcast.unwrap());
    let sink = cable.sink(&frames(AddressFamily::Inet, link(1)));
    generator.send(50).unwrap();
    wait_until("the frames arrive", || {
        sink.counts().unwrap().foreign_frames >= 50
    });
    let counts = sink.counts().unwrap();
    assert_eq!((counts.forwarded_frames, counts.checked_frames), (0, 0));
    assert_eq!(counts.foreign_frames, 50);
}

fn stop(running: RunningSocketGenerator) -> SocketGenerator {
    assert!(running.is_running());
    running.stop().unwrap()
}

#[test]
fn a_sender_sends_until_it_is_stopped_and_can_start_again() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let load_cpu = fwdlab_sys::online_cpus().unwrap()[0];
    for tester in Tester::SOCKETS {
        let cable = Cable::new();
        let frames = frames(AddressFamily::Inet, link(1));
        let mut generator = cable.generator(tester, &frames);
        let mut sink = cable.sink(&frames);
        for pace in [Pace::SelfClocked, Pace::even(50_000)] {
            sink.reset().unwrap();
            let running = generator.start(load_cpu, pace).unwrap();
            wait_until("it sends", || running.offered_frames().unwrap() > 5000);
            generator = stop(running);
            let offered = generator.offered_frames().unwrap();
            wait_for(&sink, offered);
            assert_eq!(sink.counts().unwrap().forwarded_frames, offered, "{tester}");
            assert_eq!(generator.offered_frames().unwrap(), offered, "{tester}");
        }
    }
}

#[test]
fn the_generators_of_one_port_take_turns() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for tester in Tester::SOCKETS {
        let cable = Cable::new();
        let open = || SocketPort::open(tester, cable.near_index);
        let port = cable.namespace.run(open).unwrap().unwrap();
        let both = FAMILIES.map(|family| {
            let frames = frames(family, link(1));
            (SocketGenerator::load(&port, &frames).unwrap(), frames)
        });
        for (mut generator, frames) in both {
            let mut sink = cable.sink(&frames);
            sink.reset_to_check_all().unwrap();
            generator.send(FLOWS).unwrap();
            wait_for(&sink, FLOWS.into());
            assert_eq!(sink.flows_seen().unwrap(), FLOWS, "{tester}");
        }
    }
}

#[test]
fn a_paced_sender_is_never_ahead_of_its_time() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let load_cpu = fwdlab_sys::online_cpus().unwrap()[0];
    for tester in Tester::SOCKETS {
        let cable = Cable::new();
        let generator = cable.generator(tester, &frames(AddressFamily::Inet, link(1)));
        let start = Instant::now();
        let running = generator.start(load_cpu, Pace::even(30_000)).unwrap();
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(20));
            let offered = running.offered_frames().unwrap();
            let most = start.elapsed().as_micros() * 30_000 / 1_000_000 + 1;
            assert!(u128::from(offered) <= most, "{tester}: {offered} of {most}");
        }
        let before = running.offered_frames().unwrap();
        running.set_pace(Pace::SelfClocked);
        wait_until("it sends all it can", || {
            running.offered_frames().unwrap() > before + 20_000
        });
        assert!(stop(running).offered_frames().unwrap() > 0);
    }
}

#[test]
fn misaddressed_frames_go_to_another_station() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let load_cpu = fwdlab_sys::online_cpus().unwrap()[0];
    for tester in Tester::SOCKETS {
        let cable = Cable::new();
        cable
            .namespace
            .run(|| ip(&["link", "set", FAR_END, "address", "02:00:00:00:01:02"]))
            .unwrap();
        let frames = frames(AddressFamily::Inet, link(1));
        let counters = cable.far_counters();
        let running = cable
            .generator(tester, &frames)
            .start(load_cpu, Pace::SelfClocked)
            .unwrap();
        wait_until("it sends", || running.offered_frames().unwrap() > 1000);
        // The far end is who they are for.
        assert_eq!(counters.read().unwrap().other_station_frames, 0, "{tester}");
        running.misaddress(true);
        wait_until("they are for somebody else", || {
            counters.read().unwrap().other_station_frames > 1000
        });
        running.misaddress(false);
        let generator = stop(running);
        let offered = generator.offered_frames().unwrap();
        wait_until("all have arrived", || {
            counters.read().unwrap().received_frames == offered
        });
        let for_others = counters.read().unwrap().other_station_frames;
        assert!(for_others < offered, "{tester}: {for_others} of {offered}");
    }
}

#[test]
fn what_the_interface_drops_was_offered_and_is_not_lost_sight_of() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let load_cpu = fwdlab_sys::online_cpus().unwrap()[0];
    for tester in Tester::SOCKETS {
        let cable = Cable::new();
        let frames = frames(AddressFamily::Inet, link(1));
        let mut sink = cable.sink(&frames);
        let open = || InterfaceCounters::open(cable.near_index);
        let near = cable.namespace.run(open).unwrap().unwrap();
        sink.reset().unwrap();
        let running = cable
            .generator(tester, &frames)
            .start(load_cpu, Pace::SelfClocked)
            .unwrap();
        wait_until("it sends", || running.offered_frames().unwrap() > 1000);
        let set = |state| cable.namespace.run(|| ip(&["link", "set", FAR_END, state]));
        set("down").unwrap();
        wait_until("frames are dropped", || {
            near.read().unwrap().send_dropped_frames > 1000
        });
        set("up").unwrap();
        let forwarded = sink.forwarded_frames().unwrap();
        wait_until("it sends again", || {
            sink.forwarded_frames().unwrap() > forwarded + 1000
        });
        let offered = stop(running).offered_frames().unwrap();
        let dropped = near.read().unwrap().send_dropped_frames;
        let all_found = || sink.forwarded_frames().unwrap() + dropped == offered;
        wait_until("offered = forwarded + dropped", all_found);
    }
}

#[test]
fn a_sender_that_cannot_be_opened_says_why() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let cable = Cable::new();
    let frames = frames(AddressFamily::Inet, link(1));
    for tester in Tester::SOCKETS {
        let open = || SocketPort::open(tester, 1_000_000);
        let Err(error) = cable.namespace.run(open).unwrap() else {
            panic!("there is no such interface");
        };
        let text = error.to_string();
        assert!(text.starts_with("opening a"), "{text}");
        assert!(text.contains("on interface 1000000"), "{text}");
    }
    let running = cable
        .generator(Tester::AfXdp, &frames)
        .start(1000, Pace::SelfClocked)
        .unwrap();
    wait_until("it has ended", || !running.is_running());
    let Err(error) = running.stop() else {
        panic!("there is no CPU 1000");
    };
    assert!(error.to_string().contains("CPU 1000"), "{error}");
}
