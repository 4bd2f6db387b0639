//! Several workers: what they share neither loses, nor doubles, nor reorders anything.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fwdlab_model::Knob;
use fwdlab_packet::toeplitz::{HashedPorts, MICROSOFT_KEY, RssHash};
use fwdlab_router::{
    Counters, Event, Knobs, Layout, Network, PortDevice, Roles, Router, RouterError, Worker,
    queue_of,
};

use rig::packets::Inet;
use rig::verify::seen;
use rig::{Rig, network};

/// Frames of one stress run.
const FRAMES: u64 = 60_000;
/// After that a stress run ends with however many frames it has come to.
const RUN_MAX: Duration = Duration::from_millis(400);
/// What was sent has come out, or is counted, by then.
const WAIT_MAX: Duration = Duration::from_secs(60);
const FLOWS: usize = 32;
/// Where a frame has its number.
const NUMBER: usize = 14 + 20 + 8;

/// Every worker receives from a queue of its own, and all of them transmit through the same.
fn shared(workers: usize) -> Layout {
    Layout {
        receive_queues: workers,
        transmit_queues: 1,
        workers: (0..workers)
            .map(|worker| Roles {
                receive: vec![worker],
                transmit: if worker == 0 { vec![0] } else { Vec::new() },
            })
            .collect(),
    }
}

/// One worker receives, the other runs the transmit tasks.
fn split() -> Layout {
    Layout {
        receive_queues: 1,
        transmit_queues: 1,
        workers: vec![
            Roles {
                receive: vec![0],
                transmit: Vec::new(),
            },
            Roles {
                receive: Vec::new(),
                transmit: vec![0],
            },
        ],
    }
}

fn small_rings() -> Knobs {
    Knobs::default()
        .with(Knob::OverrideNrxds, 256)
        .with(Knob::OverrideNtxds, 256)
}

/// The other end of both links: sends numbered frames of flows both ways, and looks at what comes.
struct Tester {
    ports: Vec<PortDevice>,
    /// Of each port, the frames of its flows, the queue that each comes in at, and how many were sent.
    flows: [Vec<Flow>; 2],
    /// Of each port and flow, how many numbers are behind.
    seen: [[u32; FLOWS]; 2],
    sent: u64,
    received: u64,
}

struct Flow {
    frame: Vec<u8>,
    hash: u32,
    queue: usize,
    sent: u32,
}

impl Tester {
    fn new(ports: Vec<PortDevice>) -> Self {
        let rss = RssHash::new(&MICROSOFT_KEY, HashedPorts::default());
        let queues = ports[0].receive.len();
        let flows = |port: usize, from: u8, to: u8| {
            (0..u8::try_from(FLOWS).unwrap())
                .map(|flow| {
                    let packet = Inet {
                        source: [198, from, 10, 1].into(),
                        destination: [198, to, 10, 1 + flow].into(),
                        ..Inet::default()
                    };
                    let frame = packet.frame(port);
                    let hash = rss.hash(&frame).unwrap();
                    Flow {
                        queue: queue_of(hash, queues),
                        frame,
                        hash,
                        sent: 0,
                    }
                })
                .collect()
        };
        Self {
            ports,
            flows: [flows(0, 18, 19), flows(1, 19, 18)],
            seen: [[0; FLOWS]; 2],
            sent: 0,
            received: 0,
        }
    }

    /// One frame of each flow, where there is a descriptor for it.
    fn send(&mut self) {
        for (port, flows) in self.ports.iter_mut().zip(&mut self.flows) {
            for flow in flows {
                let ring = &mut port.receive[flow.queue];
                if ring.available() == 0 {
                    continue;
                }
                let slot = &mut ring.run(1)[0];
                let bytes = slot.buffer.as_mut().unwrap().bytes_mut();
                bytes[..flow.frame.len()].copy_from_slice(&flow.frame);
                bytes[NUMBER..NUMBER + 4].copy_from_slice(&flow.sent.to_be_bytes());
                slot.length = u16::try_from(flow.frame.len()).unwrap();
                slot.flow_hash = flow.hash;
                ring.complete(1);
                flow.sent += 1;
                self.sent += 1;
            }
            for ring in &mut port.receive {
                ring.write_back();
            }
        }
    }

    /// Takes what has come, and looks whether each flow's frames come in their order.
    fn receive(&mut self) {
        for (number, port) in self.ports.iter_mut().enumerate() {
            for ring in &mut port.transmit {
                while ring.available() > 0 {
                    let run = ring.run(usize::MAX);
                    let count = run.len();
                    for slot in &*run {
                        let frame = &slot.buffer.as_ref().unwrap().bytes()[..slot.length.into()];
                        let flow = usize::from(frame[33]) - 1;
                        let sequence = u32::from_be_bytes(*frame[NUMBER..].first_chunk().unwrap());
                        let next = &mut self.seen[number][flow];
                        assert!(
                            sequence >= *next,
                            "{sequence} comes after {next} of flow {flow}"
                        );
                        *next = sequence + 1;
                        if self.received.is_multiple_of(64) {
                            assert_eq!(seen(number, 1500, frame).hop_limit, 63);
                        }
                        self.received += 1;
                    }
                    ring.complete(count);
                    ring.write_back();
                }
            }
        }
    }
}

/// Tells the workers to stop, also when the tester panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Threads that poll, and one that sends and receives; every frame is accounted for. Returns what each
/// worker counted.
fn stress(layout: &Layout, knobs: &Knobs) -> Vec<Counters> {
    let network = Arc::new(Network::build(&network()).unwrap());
    let (router, left) = Router::assemble(&network, knobs, layout, Vec::new()).unwrap();
    let mut tester = Tester::new(router.ports);
    let published: Vec<_> = router.workers.iter().map(Worker::published).collect();
    let stop = AtomicBool::new(false);
    let workers: Vec<Worker> = thread::scope(|scope| {
        let poll = |mut worker: Worker| {
            while !stop.load(Ordering::Relaxed) {
                if worker.poll(0) == 0 {
                    thread::yield_now();
                }
            }
            worker
        };
        let threads: Vec<_> = router
            .workers
            .into_iter()
            .map(|worker| scope.spawn(move || poll(worker)))
            .collect();
        let stop = Stop(&stop);
        let start = Instant::now();
        while tester.sent < FRAMES && start.elapsed() < RUN_MAX {
            tester.send();
            tester.receive();
        }
        let dropped = || -> u64 {
            published
                .iter()
                .map(|counters| counters.read().all_drops())
                .sum()
        };
        while tester.received + dropped() < tester.sent {
            tester.receive();
            thread::yield_now();
            assert!(
                start.elapsed() < WAIT_MAX,
                "{layout:?}, {knobs:?}: of {} frames {} came and {} were dropped",
                tester.sent,
                tester.received,
                dropped()
            );
        }
        drop(stop);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    tester.receive();
    let counters: Vec<_> = workers
        .iter()
        .map(|worker| worker.counters().clone())
        .collect();
    let sum = counters
        .iter()
        .fold(Counters::default(), |sum, one| sum.plus(one));
    assert_eq!(sum.events(Event::Received), tester.sent);
    assert_eq!(sum.events(Event::Forwarded), tester.received);
    assert_eq!(sum.events(Event::Forwarded) + sum.all_drops(), tester.sent);
    assert!(
        tester.sent >= 1000 && tester.received > 0,
        "{} sent",
        tester.sent
    );

    let buffers = Router::disassemble(workers, tester.ports).unwrap();
    // Those left are what could not be shared evenly.
    assert_eq!(
        buffers.len() + left.len(),
        Router::buffers_needed(&network, knobs, layout)
    );
    counters
}

#[test]
fn frames_are_conserved_and_flows_keep_their_order_whoever_transmits() {
    for layout in [shared(2), shared(3), Layout::even(2), split()] {
        for (simple_tx, tx_abdicate) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let knobs = small_rings()
                .with(Knob::SimpleTx, simple_tx)
                .with(Knob::TxAbdicate, tx_abdicate);
            let counters = stress(&layout, &knobs);
            for (worker, roles) in counters.iter().zip(&layout.workers) {
                let (used, unused) = if simple_tx == 1 {
                    (Event::Locks, Event::Enqueues)
                } else {
                    (Event::Enqueues, Event::Locks)
                };
                assert_eq!(worker.events(used) > 0, !roles.receive.is_empty());
                assert_eq!(worker.events(unused), 0);
                // Whoever abdicates drains nothing; whoever has no task, nothing else.
                let abdicates = tx_abdicate == 1 && simple_tx == 0;
                if abdicates {
                    let drains = worker.events(Event::Drains);
                    assert_eq!(drains > 0, !roles.transmit.is_empty());
                }
            }
        }
    }
}

#[test]
fn a_worker_gets_back_the_buffers_that_another_sent() {
    // Every frame is received by one worker, and its buffer is reclaimed by the other.
    let knobs = Knobs::default().with(Knob::TxAbdicate, 1);
    let layout = split();
    let mut rig = Rig::with_layout(&network(), &knobs, &layout);
    let frames = vec![Inet::default().frame(0); 64];
    let rounds = 5 * Router::buffers_needed(&built(), &knobs, &layout) / 64;
    for round in 0..rounds {
        rig.receive(0, &frames);
        // Where buffers have to come from the other worker, they take a poll or two.
        let taken: usize = (0..3).map(|_| rig.poll()).sum();
        assert_eq!(taken, 64, "in round {round}");
        rig.sent(1);
    }
    let counters = rig.counters();
    assert_eq!(counters.events(Event::Forwarded), 64 * rounds as u64);
    rig.assert_conservation();
}

#[test]
fn workers_that_forward_nothing_starve_nobody() {
    // All load comes to one worker after the other.
    let layout = shared(3);
    let knobs = small_rings();
    let mut rig = Rig::with_layout(&network(), &knobs, &layout);
    let frame = Inet::default().frame(0);
    for queue in [0, 1, 2, 0, 2, 1] {
        for _ in 0..100 {
            for _ in 0..64 {
                let ring = &mut rig.ports[0].receive[queue];
                assert!(ring.available() > 0, "worker {queue} is starved");
                let slot = &mut ring.run(1)[0];
                slot.buffer.as_mut().unwrap().bytes_mut()[..frame.len()].copy_from_slice(&frame);
                slot.length = u16::try_from(frame.len()).unwrap();
                ring.complete(1);
                ring.write_back();
            }
            for _ in 0..3 {
                rig.poll();
            }
            rig.sent(1);
        }
    }
    assert_eq!(rig.counters().events(Event::Forwarded), 6 * 100 * 64);
    rig.assert_conservation();
}

fn built() -> Network {
    Network::build(&network()).unwrap()
}

#[test]
fn a_queue_without_a_worker_or_with_two_is_refused() {
    let roles = |receive: &[usize], transmit: &[usize]| Roles {
        receive: receive.to_vec(),
        transmit: transmit.to_vec(),
    };
    let layout = |receive_queues, transmit_queues, workers: &[Roles]| Layout {
        receive_queues,
        transmit_queues,
        workers: workers.to_vec(),
    };
    let network = Arc::new(built());
    let is_refused = |layout: &Layout| {
        let assembled = Router::assemble(&network, &small_rings(), layout, Vec::new());
        matches!(assembled, Err(RouterError::Layout { .. }))
    };
    assert!(!is_refused(&Layout::single()));
    assert!(!is_refused(&shared(3)));
    assert!(!is_refused(&split()));
    for layout in [
        layout(0, 0, &[]),
        layout(1, 1, &[]),
        layout(1, 0, &[roles(&[0], &[])]),
        layout(2, 1, &[roles(&[0], &[0])]),
        layout(1, 2, &[roles(&[0], &[0])]),
        layout(1, 1, &[roles(&[0], &[0]), roles(&[0], &[])]),
        layout(1, 1, &[roles(&[0], &[0]), roles(&[], &[0])]),
        layout(1, 1, &[roles(&[1], &[0])]),
    ] {
        assert!(is_refused(&layout), "{layout:?}");
    }
}
