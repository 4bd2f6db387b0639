//! Router and tester at work: in one thread in turns, or each on CPUs of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use fwdlab_router::{PortDevice, Worker};
use fwdlab_stats::whole;
use fwdlab_sys::start_thread;
use fwdlab_traffic::{MemoryGenerator, MemorySink, WRITE_BACK};

use crate::LabError;

/// Turns between two looks at the clock and at whether to stop.
const TURNS: usize = 16;

/// Frames that a generator which was kept from its CPU makes up for at most: more would be a burst that
/// nobody asked for.
const BACKLOG_FRAMES_MAX: u64 = 4096;

/// How fast frames are offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Offer {
    /// Whenever there is a descriptor for each of them: what is measured is the cost of a frame.
    Taken,
    /// As fast as the generator can.
    Unbounded,
    /// So many a second, whether or not the router takes them.
    PerSecond(f64),
}

impl Offer {
    /// Frames a second, where so many are asked for.
    pub(super) fn intended_pps(self) -> Option<f64> {
        match self {
            Self::PerSecond(pps) => Some(pps),
            Self::Taken | Self::Unbounded => None,
        }
    }
}

/// Who is where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Tester and router take turns.
    Inline { cpu: u32 },
    /// The tester has a CPU, and so has each worker.
    Beside { tester: u32, workers: Vec<u32> },
}

/// The generators and sinks of a router's ports: a sink on each, a generator where frames come in.
#[derive(Debug)]
pub(super) struct Tester {
    pub(super) generators: Vec<MemoryGenerator>,
    pub(super) sinks: Vec<MemorySink>,
}

impl Tester {
    /// Takes the ports' rings: the first generators' receive rings and all sinks' transmit rings.
    ///
    /// Returns the receive rings of ports without a generator.
    pub(super) fn plug_in(&mut self, ports: Vec<PortDevice>) -> Vec<PortDevice> {
        let mut generators = self.generators.iter_mut();
        let mut sinks = self.sinks.iter_mut();
        ports
            .into_iter()
            .map(|mut port| {
                if let Some(generator) = generators.next() {
                    generator.exchange_rings(std::mem::take(&mut port.receive));
                }
                if let Some(sink) = sinks.next() {
                    sink.exchange_rings(std::mem::take(&mut port.transmit));
                }
                port
            })
            .collect()
    }

    /// Gives the rings back to the ports that [`plug_in`](Self::plug_in) left.
    pub(super) fn unplug(&mut self, ports: Vec<PortDevice>) -> Vec<PortDevice> {
        let mut generators = self.generators.iter_mut();
        let mut sinks = self.sinks.iter_mut();
        ports
            .into_iter()
            .map(|mut port| {
                if let Some(generator) = generators.next() {
                    port.receive = generator.exchange_rings(Vec::new());
                }
                if let Some(sink) = sinks.next() {
                    port.transmit = sink.exchange_rings(Vec::new());
                }
                port
            })
            .collect()
    }

    fn fill(&mut self) {
        for generator in &mut self.generators {
            generator.fill();
        }
    }

    fn drain(&mut self) -> usize {
        self.sinks.iter_mut().map(MemorySink::drain).sum()
    }
}

/// What forwards: the router's workers, or something else with their shape.
pub(super) trait Poll: Send + 'static {
    /// Does a turn of work; returns how many frames it took.
    fn poll(&mut self, now_ns: u64) -> usize;
    /// Whether it holds frames that it has taken.
    fn has_waiting(&self) -> bool {
        false
    }
}

impl Poll for Worker {
    fn poll(&mut self, now_ns: u64) -> usize {
        Self::poll(self, now_ns)
    }

    fn has_waiting(&self) -> bool {
        Self::has_waiting(self)
    }
}

/// What the tester's thread gives back: in turns with the router, the workers too.
type Ended<W> = Result<(Tester, Vec<W>), LabError>;

/// Threads at work.
pub(super) struct Running<W> {
    stop: Arc<AtomicBool>,
    tester: Option<JoinHandle<Ended<W>>>,
    workers: Vec<JoinHandle<Result<W, LabError>>>,
    router_threads: Vec<u32>,
}

/// How threads tell who they are, in the order in which they are started.
struct Introductions {
    sender: Sender<(usize, u32)>,
    receiver: Receiver<(usize, u32)>,
    count: usize,
}

/// What a thread introduces itself with.
struct Introduction(Sender<(usize, u32)>, usize);

impl Introduction {
    fn this_thread(self) {
        // Who starts the threads listens until all have.
        let _ = self.0.send((self.1, fwdlab_sys::this_thread()));
    }
}

impl Introductions {
    fn new() -> Self {
        let (sender, receiver) = channel();
        Self {
            sender,
            receiver,
            count: 0,
        }
    }

    fn next(&mut self) -> Introduction {
        self.count += 1;
        Introduction(self.sender.clone(), self.count)
    }

    /// The threads that were started, once each has told.
    fn all(self) -> Vec<u32> {
        drop(self.sender);
        let mut threads: Vec<_> = self.receiver.iter().collect();
        threads.sort_unstable();
        threads.into_iter().map(|(_, thread)| thread).collect()
    }
}

/// What the threads tell each other while they end.
#[derive(Default)]
struct Ending {
    /// Nothing is offered any more.
    generator_ended: AtomicBool,
    /// Workers that found their receive rings empty after that.
    idle_workers: AtomicUsize,
    /// Workers that have ended, with nothing left in them.
    ended_workers: AtomicUsize,
    /// A thread is gone that the others would wait for.
    is_broken: AtomicBool,
}

impl Ending {
    fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }
}

/// Tells the other threads if this one ends before its work is done: without its CPU, or by a panic.
struct Attendance {
    ending: Arc<Ending>,
    is_done: bool,
}

impl Attendance {
    fn new(ending: &Arc<Ending>) -> Self {
        Self {
            ending: Arc::clone(ending),
            is_done: false,
        }
    }

    fn end(mut self) {
        self.is_done = true;
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        if !self.is_done {
            self.ending.is_broken.store(true, Ordering::Release);
        }
    }
}

impl<W: Poll> Running<W> {
    /// Starts the threads.
    ///
    /// # Errors
    /// Where one cannot be started; those that were end.
    pub(super) fn start(
        place: &Place,
        offer: Offer,
        tester: Tester,
        workers: Vec<W>,
    ) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut introductions = Introductions::new();
        match place {
            Place::Inline { cpu } => {
                let (cpu, stopped) = (*cpu, Arc::clone(&stop));
                let introduce = introductions.next();
                let thread = move || {
                    introduce.this_thread();
                    fwdlab_sys::pin_this_thread(cpu)?;
                    Ok(take_turns(&stopped, tester, workers))
                };
                Ok(Self {
                    stop,
                    tester: Some(start_thread(thread)?),
                    workers: Vec::new(),
                    router_threads: introductions.all(),
                })
            }
            Place::Beside {
                tester: tester_cpu,
                workers: cpus,
            } => {
                let ending = Arc::new(Ending::default());
                // Those that were started do not wait for one that cannot be.
                let all_started = Attendance::new(&ending);
                let count = workers.len();
                let workers = workers
                    .into_iter()
                    .zip(cpus.iter().copied())
                    .map(|(worker, cpu)| {
                        let ending = Arc::clone(&ending);
                        let introduce = introductions.next();
                        start_thread(move || {
                            introduce.this_thread();
                            let attendance = Attendance::new(&ending);
                            fwdlab_sys::pin_this_thread(cpu)?;
                            let worker = work(&ending, count, worker);
                            attendance.end();
                            Ok(worker)
                        })
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                let (cpu, stopped) = (*tester_cpu, Arc::clone(&stop));
                let thread = move || {
                    let attendance = Attendance::new(&ending);
                    fwdlab_sys::pin_this_thread(cpu)?;
                    let tester = test(&stopped, &ending, count, offer, tester);
                    attendance.end();
                    Ok((tester, Vec::new()))
                };
                let tester = start_thread(thread)?;
                all_started.end();
                Ok(Self {
                    stop,
                    tester: Some(tester),
                    workers,
                    router_threads: introductions.all(),
                })
            }
        }
    }

    /// The threads that forward, as the system numbers them, in the order of their CPUs.
    pub(super) fn router_threads(&self) -> &[u32] {
        &self.router_threads
    }

    /// Ends the threads once nothing is under way any more, and gives back what they worked with.
    ///
    /// # Errors
    /// Where a thread could not go to its CPU.
    pub(super) fn stop(mut self) -> Result<(Tester, Vec<W>), LabError> {
        self.stop.store(true, Ordering::Release);
        let tester = self.tester.take().expect("it is taken only here");
        let tester = joined(tester);
        let others: Vec<_> = std::mem::take(&mut self.workers)
            .into_iter()
            .map(joined)
            .collect();
        let (tester, mut workers) = tester?;
        for worker in others {
            workers.push(worker?);
        }
        Ok((tester, workers))
    }
}

impl<W> Drop for Running<W> {
    fn drop(&mut self) {
        // Threads that nobody waits for end all the same.
        self.stop.store(true, Ordering::Release);
    }
}

pub(super) fn joined<T>(thread: JoinHandle<T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn take_turns<W: Poll>(
    stop: &AtomicBool,
    mut tester: Tester,
    mut workers: Vec<W>,
) -> (Tester, Vec<W>) {
    let start = Instant::now();
    while !stop.load(Ordering::Acquire) {
        let now_ns = ns_since(start);
        for _ in 0..TURNS {
            tester.fill();
            for worker in &mut workers {
                worker.poll(now_ns);
            }
            tester.drain();
        }
    }
    loop {
        let now_ns = ns_since(start);
        let taken: usize = workers.iter_mut().map(|worker| worker.poll(now_ns)).sum();
        let drained = tester.drain();
        let waiting = workers.iter().any(Poll::has_waiting);
        if taken == 0 && drained == 0 && !waiting {
            return (tester, workers);
        }
    }
}

fn work<W: Poll>(ending: &Ending, workers: usize, mut worker: W) -> W {
    let start = Instant::now();
    let mut was_idle = false;
    loop {
        let now_ns = ns_since(start);
        // Asked before the rings are: what was offered until then is seen in them.
        let is_over = ending.generator_ended.load(Ordering::Acquire);
        let mut taken = 0;
        for _ in 0..TURNS {
            taken += worker.poll(now_ns);
        }
        if taken == 0 && !was_idle && is_over {
            was_idle = true;
            ending.idle_workers.fetch_add(1, Ordering::AcqRel);
        }
        if ending.is_broken() {
            return worker;
        }
        // Only when nobody takes frames any more can none be put into this worker's transmit queues.
        let all_idle = was_idle && ending.idle_workers.load(Ordering::Acquire) == workers;
        if all_idle && taken == 0 && worker.poll(now_ns) == 0 && !worker.has_waiting() {
            ending.ended_workers.fetch_add(1, Ordering::AcqRel);
            return worker;
        }
    }
}

fn test(
    stop: &AtomicBool,
    ending: &Ending,
    workers: usize,
    offer: Offer,
    mut tester: Tester,
) -> Tester {
    let mut pacer = Pacer::new(offer);
    while !stop.load(Ordering::Acquire) {
        for generator in &mut tester.generators {
            match pacer.due() {
                Some(count) => generator.offer(count),
                None => {
                    generator.fill();
                }
            }
        }
        tester.drain();
    }
    ending.generator_ended.store(true, Ordering::Release);
    while ending.ended_workers.load(Ordering::Acquire) < workers && !ending.is_broken() {
        tester.drain();
    }
    while tester.drain() > 0 {}
    tester
}

/// How many frames are to be offered now.
struct Pacer {
    offer: Offer,
    start: Instant,
    offered: u64,
}

impl Pacer {
    fn new(offer: Offer) -> Self {
        Self {
            offer,
            start: Instant::now(),
            offered: 0,
        }
    }

    /// None where that is up to the router.
    #[inline]
    fn due(&mut self) -> Option<usize> {
        match self.offer {
            Offer::Taken => None,
            Offer::Unbounded => Some(WRITE_BACK),
            Offer::PerSecond(pps) => {
                let planned = whole(self.start.elapsed().as_secs_f64() * pps) as u64;
                self.offered = self.offered.max(planned.saturating_sub(BACKLOG_FRAMES_MAX));
                let due = (planned - self.offered.min(planned)).min(WRITE_BACK as u64);
                self.offered += due;
                usize::try_from(due).ok()
            }
        }
    }
}

fn ns_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_generator_makes_up_for_a_bounded_backlog_only() {
        let mut pacer = Pacer::new(Offer::PerSecond(1e9));
        std::thread::sleep(std::time::Duration::from_millis(2));
        // Two million frames were due meanwhile.
        let mut made_up = 0;
        pacer.offer = Offer::PerSecond(0.0);
        pacer.offered = 0;
        for _ in 0..1000 {
            made_up += pacer.due().unwrap();
        }
        assert_eq!(made_up, 0);
        assert_eq!(Pacer::new(Offer::Unbounded).due(), Some(WRITE_BACK));
        assert_eq!(Pacer::new(Offer::Taken).due(), None);
        let mut pacer = Pacer::new(Offer::PerSecond(1e9));
        pacer.start -= std::time::Duration::from_secs(1);
        assert_eq!(pacer.due(), Some(WRITE_BACK));
        assert!(pacer.offered >= 1_000_000_000 - BACKLOG_FRAMES_MAX);
    }

    /// A worker whose last frame comes in just after it has looked, and just before the generator ends.
    struct Late {
        ending: Arc<Ending>,
        polls: usize,
        waiting: usize,
        idle_workers_at_frame: Option<usize>,
    }

    impl Poll for Late {
        fn poll(&mut self, _now_ns: u64) -> usize {
            let taken = std::mem::take(&mut self.waiting);
            if taken > 0 {
                let idle = self.ending.idle_workers.load(Ordering::Acquire);
                self.idle_workers_at_frame = Some(idle);
            }
            self.polls += 1;
            if self.polls == TURNS {
                self.waiting = 1;
                self.ending.generator_ended.store(true, Ordering::Release);
            }
            taken
        }

        fn has_waiting(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_worker_is_idle_only_when_it_takes_no_frames_any_more() {
        // Else another worker could end, into whose transmit queue the frame then goes.
        let ending = Arc::new(Ending::default());
        let late = Late {
            ending: Arc::clone(&ending),
            polls: 0,
            waiting: 0,
            idle_workers_at_frame: None,
        };
        let late = work(&ending, 1, late);
        assert_eq!(late.idle_workers_at_frame, Some(0));
        assert_eq!(ending.ended_workers.load(Ordering::Acquire), 1);
    }

    /// A worker that has nothing to do, or panics.
    struct Idle {
        panics: bool,
    }

    impl Poll for Idle {
        fn poll(&mut self, _now_ns: u64) -> usize {
            assert!(!self.panics, "as the test wants it");
            0
        }

        fn has_waiting(&self) -> bool {
            false
        }
    }

    #[test]
    fn nobody_waits_for_a_thread_that_is_gone() {
        let cpu = fwdlab_sys::online_cpus().unwrap()[0];
        let nowhere = 100_000;
        let start = |tester, workers: [u32; 2], panics| {
            let place = Place::Beside {
                tester,
                workers: workers.into(),
            };
            let nothing = Tester {
                generators: Vec::new(),
                sinks: Vec::new(),
            };
            let workers = vec![Idle { panics: false }, Idle { panics }];
            Running::start(&place, Offer::Unbounded, nothing, workers).unwrap()
        };
        let (_, workers) = start(cpu, [cpu; 2], false).stop().unwrap();
        assert_eq!(workers.len(), 2);
        assert!(start(cpu, [cpu, nowhere], false).stop().is_err());
        assert!(start(nowhere, [cpu; 2], false).stop().is_err());
        let panicking = start(cpu, [cpu; 2], true);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| panicking.stop()));
        assert!(panic.is_err());
    }
}
