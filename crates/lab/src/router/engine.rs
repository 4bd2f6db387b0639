//! One block on the reference router, from its first probe frame to its last slice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use fwdlab_model::{
    Direction, DutReading, LoadRegime, Resolved, Stratum, StratumOrder, Tester as TesterKind,
    TesterReading, Variant, VariantName,
};
use fwdlab_router::{
    Buffer, Counters, Drop as RouterDrop, Event as RouterEvent, Layout, Network, PortDevice,
    PublishedCounters, Router, Worker,
};
use fwdlab_sys::Interrupts;
use fwdlab_traffic::MemorySink;

use super::load::SettledLoad;
use super::network::network;
use super::setting::setting;
use super::tester::{Dropping, Passing, Prepared, TesterCounts, rates_pps, wire};
use super::threads::{Offer, Place, Running, Tester, joined};
use crate::LabError;
use crate::addresses::{TESTER_IN_MAC, frames, frames_back};
use crate::block::{Asked, BlockLog, LabEvent, MeasuredSlice, conservation};
use crate::clock::settle;
use crate::counters::{Drops, difference};
use crate::cpu_account::CpuAccount;
use crate::cpu_speed::SpeedLog;
use crate::environment::steal_s;
use crate::interference::cost_ns;
use crate::probe::FailedProbe;
use crate::profiler;
use crate::sequence::{Sequence, UnderLoad, stop_at_once_if_asked, stop_if_asked};
use crate::watch::watch;

/// Length of the drop-at-ingress control, after a settle window of the experiment's.
const CONTROL: Duration = Duration::from_millis(100);

/// Under which frames are counted that found no descriptor ready.
const NO_DESCRIPTOR: &str = "rx: no descriptor";

/// How often entropy is fed to its pool while frames pass, as FreeBSD's thread does it.
const FEED_POOL_EVERY: Duration = Duration::from_millis(100);

/// Where a variant's work is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrangement {
    pub(super) place: Place,
    pub(super) layout: Layout,
}

/// The arrangement of every variant that is measured.
pub(super) type Arrangements = BTreeMap<VariantName, Arrangement>;

/// Everything that lives as long as a block.
pub(super) struct Measurement<'a> {
    resolved: &'a Resolved,
    interrupts: Interrupts,
    arrangements: &'a Arrangements,
    /// Of each number of routes.
    networks: BTreeMap<u32, Arc<Network>>,
    /// Those that no router uses.
    #[expect(
        clippy::vec_box,
        reason = "a buffer changes hands by its box, and never moves"
    )]
    buffers: Vec<Box<Buffer>>,
    account: CpuAccount,
    pub(super) log: BlockLog,
}

/// All CPUs on which tester and router work for any variant.
fn load_cpus(arrangements: &Arrangements) -> Vec<u32> {
    let places = arrangements.values().map(|arrangement| &arrangement.place);
    let cpus: BTreeSet<u32> = places.flat_map(Place::cpus).collect();
    cpus.into_iter().collect()
}

/// A router at work for one variant.
struct AtWork {
    /// When it began to work.
    switched: Instant,
    running: Running<Worker>,
    ports: Vec<PortDevice>,
    counters: Vec<Arc<PublishedCounters>>,
    harvester: Arc<fwdlab_router::harvest::Harvester>,
}

impl AtWork {
    /// What all workers counted so far.
    fn counters(&self) -> Counters {
        self.counters
            .iter()
            .fold(Counters::default(), |sum, counters| {
                sum.plus(&counters.read())
            })
    }
}

/// What is counted at the edge of a slice.
struct Edge {
    offered_frames: u64,
    missed_frames: u64,
    counters: Counters,
}

impl Edge {
    fn read(counts: &TesterCounts, at_work: &AtWork) -> Self {
        Self {
            offered_frames: counts.offered_frames(),
            missed_frames: counts.missed_frames(),
            counters: at_work.counters(),
        }
    }

    fn drops(&self) -> Drops {
        let mut drops = drops_of(&self.counters);
        drops.insert(NO_DESCRIPTOR.to_owned(), self.missed_frames);
        drops
    }
}

impl<'a> Measurement<'a> {
    /// Builds the tables and buffers of a block.
    ///
    /// # Errors
    /// What the router refuses.
    pub(super) fn start(
        resolved: &'a Resolved,
        arrangements: &'a Arrangements,
        regime: LoadRegime,
        interrupts: Interrupts,
    ) -> Result<Self, LabError> {
        let mut log = BlockLog::new(resolved, regime);
        let cpus = load_cpus(arrangements);
        let account = CpuAccount::open(&cpus);
        log.cpu_account = account.source();
        log.cpu_speeds = Some(SpeedLog::start(&cpus));
        let mut networks = BTreeMap::new();
        for variant in &resolved.variants {
            if variant.unavailable.is_none() {
                let routes = setting(resolved, variant)?.routes;
                if let std::collections::btree_map::Entry::Vacant(entry) = networks.entry(routes) {
                    entry.insert(Arc::new(Network::build(&network(routes))?));
                }
            }
        }
        Ok(Self {
            resolved,
            interrupts,
            arrangements,
            networks,
            buffers: Vec::new(),
            account,
            log,
        })
    }

    /// Makes the frames of a stratum, and proves every variant with a frame of every flow and size.
    ///
    /// # Errors
    /// `Probe` where one does not come out as it should, and what traffic and router refuse.
    pub(super) fn prepare<'v>(
        &mut self,
        stratum: Stratum,
        variants: impl IntoIterator<Item = &'v VariantName>,
    ) -> Result<Prepared, LabError> {
        let traffic = self.resolved.traffic(stratum);
        let there = frames(stratum.family, traffic)?;
        let back = match traffic.direction {
            Direction::Forward => None,
            Direction::Both => Some(frames_back(&there, TESTER_IN_MAC)),
        };
        let prepared = Prepared {
            stratum,
            there,
            back,
        };
        for name in variants {
            stop_if_asked(self.interrupts)?;
            self.probe(&prepared, self.variant(name))?;
        }
        Ok(prepared)
    }

    /// Takes a frame of every flow and size through a variant's router, in turns on this thread.
    fn probe(&mut self, prepared: &Prepared, variant: &Variant) -> Result<(), LabError> {
        let setting = setting(self.resolved, variant)?;
        let layout = &self.arrangements[&variant.name].layout;
        let mut tester = prepared.in_turn().tester(layout.receive_queues, 1)?;
        let buffers = std::mem::take(&mut self.buffers);
        let network = &self.networks[&setting.routes];
        let (router, spare) = Router::assemble(network, &setting.knobs, layout, buffers)?;
        self.buffers = spare;
        let rest = tester.plug_in(router.ports);
        let mut workers = router.workers;
        let counts = TesterCounts::of(&tester);
        let wanted = u64::from(prepared.there.probe_frames());
        // Whatever waits in the router comes out within some turns.
        let mut idle_turns = 0;
        while idle_turns < 4 {
            let mut filled = 0;
            for (generator, counts) in tester.generators.iter_mut().zip(&counts.generators) {
                if counts.offered_frames() < wanted {
                    // No more than the rings take: none is to be missed.
                    filled += generator.fill();
                }
            }
            let taken: usize = workers.iter_mut().map(|worker| worker.poll(0)).sum();
            let drained: usize = tester.sinks.iter_mut().map(MemorySink::drain).sum();
            idle_turns = if taken + drained + filled == 0 {
                idle_turns + 1
            } else {
                0
            };
        }
        let ports = tester.unplug(rest);
        self.take_back(workers, ports)?;
        let (mut wrong, mut kinds, mut complete) = (0, Vec::new(), true);
        let generators = counts.generators.iter().zip(prepared.frames());
        for (sink, (generator, frames)) in counts.sinks.iter().rev().zip(generators) {
            let seen = sink.counts();
            wrong += seen.wrong_frames();
            kinds.extend(seen.wrong_frames_by_kind().map(|(kind, _)| kind.to_owned()));
            kinds.extend(sink.difference());
            complete &= seen.forwarded_frames == generator.offered_frames();
            complete &= generator.offered_frames() >= wanted;
            complete &= sink.flows_seen() == frames.flows().count();
        }
        if complete && wrong == 0 {
            return Ok(());
        }
        let failed = FailedProbe {
            sent: counts.offered_frames(),
            forwarded: counts.forwarded_frames(),
            wrong,
            kinds,
            reasons: Vec::new(),
            advice: None,
        };
        Err(failed.of(self.resolved, prepared.stratum, variant))
    }

    /// The tester offers frames through all rounds; only what happens inside slices is measured.
    ///
    /// # Errors
    /// What the router refuses, or the wish to stop now.
    pub(super) fn measure_stratum(
        &mut self,
        prepared: &Prepared,
        order: &StratumOrder,
        load: &SettledLoad,
        sequence: &mut Sequence<'_>,
    ) -> Result<(), LabError> {
        let first = order.variants().next();
        let first = first.expect("plans have no strata without variants");
        let first = &self.arrangements[first];
        let generator_cost_ns = self.generator_cost_ns(prepared, first)?;
        let tester = prepared.tester(first.layout.receive_queues, prepared.there.check_every())?;
        let mut under_load = StratumUnderLoad {
            measurement: self,
            load,
            counts: TesterCounts::of(&tester),
            tester: Some(tester),
            past: Counters::default(),
            is_warm: false,
        };
        sequence.measure_stratum(&mut under_load, order)?;
        let StratumUnderLoad { counts, past, .. } = under_load;
        let mut all = drops_of(&past);
        all.insert(NO_DESCRIPTOR.to_owned(), counts.missed_frames());
        all.retain(|_, frames| *frames > 0);
        let mut foreign_frames = 0;
        let mut verification = fwdlab_model::Verification::default();
        for sink in &counts.sinks {
            foreign_frames += sink.counts().foreign_frames;
            let of_one = sink.verification();
            verification.checked_frames += of_one.checked_frames;
            verification.flows_seen += of_one.flows_seen;
            for (what, frames) in of_one.wrong_frames {
                *verification.wrong_frames.entry(what).or_default() += frames;
            }
        }
        let conservation = conservation(
            counts.offered_frames(),
            counts.forwarded_frames(),
            0,
            all,
            foreign_frames,
            verification,
        );
        self.log
            .end_stratum(prepared.stratum, conservation, generator_cost_ns);
        Ok(())
    }

    /// Frames a second that come out where so many are offered to a variant's router, in each window.
    ///
    /// # Errors
    /// Those of a slice.
    pub(super) fn forwarding_rates_pps(
        &mut self,
        prepared: &Prepared,
        name: &VariantName,
        offer: Offer,
        windows: &[Duration],
    ) -> Result<Vec<f64>, LabError> {
        let queues = self.arrangements[name].layout.receive_queues;
        let tester = prepared.tester(queues, prepared.there.check_every())?;
        let counts = TesterCounts::of(&tester);
        let at_work = self.put_to_work(name, offer, tester)?;
        let rates_pps = rates_pps(&counts, windows, || stop_at_once_if_asked(self.interrupts));
        self.take_off_work(at_work)?;
        rates_pps
    }

    /// Frames a second that tester and rings can do at most, in each window: a wire takes the router's
    /// place.
    ///
    /// # Errors
    /// Where a thread cannot go to its CPU.
    pub(super) fn tester_ceilings_pps(
        &self,
        prepared: &Prepared,
        arrangement: &Arrangement,
        windows: &[Duration],
    ) -> Result<Vec<f64>, LabError> {
        let Arrangement { place, layout } = arrangement;
        let (wire, ports) = wire(layout.receive_queues);
        let mut tester = prepared.tester(layout.receive_queues, u32::MAX)?;
        let _rest = tester.plug_in(ports);
        let counts = TesterCounts::of(&tester);
        let running = Running::start(place, Offer::Unbounded, tester, vec![Passing(wire)])?;
        let rates_pps = rates_pps(&counts, windows, || stop_at_once_if_asked(self.interrupts));
        running.stop()?;
        rates_pps
    }

    /// What a frame costs where it is dropped as it comes in; none where others left too little time to tell.
    fn generator_cost_ns(
        &mut self,
        prepared: &Prepared,
        arrangement: &Arrangement,
    ) -> Result<Option<f64>, LabError> {
        let Arrangement { place, layout } = arrangement;
        let (wire, ports) = wire(layout.receive_queues);
        let mut tester = prepared.tester(layout.receive_queues, u32::MAX)?;
        let _rest = tester.plug_in(ports);
        let counts = TesterCounts::of(&tester);
        let running = Running::start(place, Offer::Taken, tester, vec![Dropping(wire)])?;
        sleep(Duration::from_millis(self.resolved.design.settle_ms.into()));
        self.account.prepare(&place.cpus(), [0, 0]);
        let cost_ns = cost_ns(place.watched_cpu(), CONTROL, &self.account, || {
            Ok(counts.offered_frames())
        })?;
        running.stop()?;
        Ok(cost_ns)
    }

    fn put_to_work(
        &mut self,
        name: &VariantName,
        offer: Offer,
        mut tester: Tester,
    ) -> Result<AtWork, LabError> {
        let setting = setting(self.resolved, self.variant(name))?;
        let Arrangement { place, layout } = &self.arrangements[name];
        let buffers = std::mem::take(&mut self.buffers);
        let network = &self.networks[&setting.routes];
        let (router, spare) = Router::assemble(network, &setting.knobs, layout, buffers)?;
        self.buffers = spare;
        let ports = tester.plug_in(router.ports);
        let counters = router.workers.iter().map(Worker::published).collect();
        let running = Running::start(place, offer, tester, router.workers)?;
        Ok(AtWork {
            switched: Instant::now(),
            running,
            ports,
            counters,
            harvester: router.harvester,
        })
    }

    /// Lets the load settle where a router has just begun to work.
    fn settle(&self, at_work: &AtWork) {
        let settle_ms = self.resolved.design.settle_ms;
        settle(at_work.switched, Duration::from_millis(settle_ms.into()));
    }

    fn take_off_work(&mut self, at_work: AtWork) -> Result<(Tester, Counters), LabError> {
        let (mut tester, workers) = at_work.running.stop()?;
        let counters = workers.iter().fold(Counters::default(), |sum, worker| {
            sum.plus(worker.counters())
        });
        let ports = tester.unplug(at_work.ports);
        self.take_back(workers, ports)?;
        Ok((tester, counters))
    }

    /// Takes a router apart and keeps its buffers for the next one.
    fn take_back(&mut self, workers: Vec<Worker>, ports: Vec<PortDevice>) -> Result<(), LabError> {
        self.buffers.extend(Router::disassemble(workers, ports)?);
        // In one order whatever the ring sizes, so that a router finds its buffers where they were.
        self.buffers
            .sort_by_key(|buffer| std::ptr::from_ref::<Buffer>(buffer).addr());
        Ok(())
    }

    fn variant(&self, name: &VariantName) -> &'a Variant {
        self.resolved
            .variant(name)
            .expect("plans are made of the experiment's variants")
    }
}

/// A stratum's frames, offered to one router after the other.
struct StratumUnderLoad<'m, 'a> {
    measurement: &'m mut Measurement<'a>,
    load: &'m SettledLoad,
    /// None while it is at a router.
    tester: Option<Tester>,
    counts: TesterCounts,
    /// What routers counted that are off work.
    past: Counters,
    is_warm: bool,
}

impl UnderLoad for StratumUnderLoad<'_, '_> {
    type Running = AtWork;

    fn log(&mut self) -> &mut BlockLog {
        &mut self.measurement.log
    }

    fn begin(
        &mut self,
        slice: &Asked<'_>,
        _: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<AtWork, LabError> {
        let tester = self.tester.take();
        let tester = tester.expect("a slice ends before the next one begins");
        let offer = self.load.offer(slice.stratum, slice.load);
        self.measurement
            .put_to_work(&slice.variant.name, offer, tester)
    }

    fn measure(&mut self, at_work: &AtWork, slice: &Asked<'_>) -> Result<MeasuredSlice, LabError> {
        let Self {
            measurement,
            counts,
            ..
        } = self;
        let design = &measurement.resolved.design;
        if !self.is_warm {
            sleep(Duration::from_millis(design.warm_up_ms.into()));
            self.is_warm = true;
        }
        measurement.settle(at_work);
        let place = &measurement.arrangements[&slice.variant.name].place;
        let cpu = place.watched_cpu();
        let steal_before_s = steal_s(cpu);
        measurement.account.prepare(&place.cpus(), [0, 0]);
        let watch = {
            let length = Duration::from_millis(design.slice_ms.into());
            let feeding = feed_pool(&at_work.harvester, length)?;
            let watch = watch(
                cpu,
                length,
                &measurement.account,
                || Ok(counts.forwarded_frames()),
                || Ok(Edge::read(counts, at_work)),
            )?;
            joined(feeding);
            watch
        };
        let speeds = &mut measurement.log.cpu_speeds;
        speeds.iter_mut().for_each(SpeedLog::look);
        let [before, after] = &watch.edges;
        let events = |edge: &Edge| events_of(&edge.counters);
        let offered_frames = after.offered_frames - before.offered_frames;
        Ok(MeasuredSlice {
            switch: at_work.switched - slice.begin,
            samples: watch.samples,
            tester: TesterReading {
                offered_frames,
                ..TesterReading::default()
            },
            intended_pps: self.load.offer(slice.stratum, slice.load).intended_pps(),
            taken_frames: offered_frames,
            steal_s: steal_s(cpu) - steal_before_s,
            dut: DutReading {
                drops: difference(&before.drops(), &after.drops()),
                events: difference(&events(before), &events(after)),
                cpus: BTreeMap::new(),
            },
            settings_moved: None,
            forwarder_ended: None,
            links_lost: BTreeSet::new(),
            takers: measurement.account.knows().then_some(watch.takers),
        })
    }

    fn profile(&mut self, at_work: &AtWork, slice: &Asked<'_>) -> Result<(), LabError> {
        let measurement = &mut *self.measurement;
        measurement.settle(at_work);
        let Some(profiler) = &mut measurement.log.profiler else {
            return Ok(());
        };
        let name = &slice.variant.name;
        let place = &measurement.arrangements[name].place;
        let threads = at_work.running.router_threads().iter().copied();
        let places: Vec<_> = std::iter::zip(place.router_cpus(), threads)
            .map(|(cpu, thread)| profiler::Place {
                cpu,
                thread: Some(thread),
            })
            .collect();
        loop {
            let samplers = profiler.samplers(&places)?;
            let window = &samplers.window;
            let feeding = feed_pool(&at_work.harvester, profiler.slice())?;
            let watch = watch(
                place.watched_cpu(),
                profiler.slice(),
                &CpuAccount::None,
                || Ok(self.counts.forwarded_frames()),
                || window.at_edge(),
            )?;
            joined(feeding);
            if !profiler.add_watched(slice.stratum, name, samplers, &watch) {
                return Ok(());
            }
        }
    }

    fn end(&mut self, at_work: AtWork) -> Result<(), LabError> {
        let (tester, more) = self.measurement.take_off_work(at_work)?;
        self.tester = Some(tester);
        self.past = std::mem::take(&mut self.past).plus(&more);
        Ok(())
    }
}

/// Feeds the entropy pool while a slice is measured.
fn feed_pool(
    harvester: &Arc<fwdlab_router::harvest::Harvester>,
    length: Duration,
) -> Result<JoinHandle<()>, LabError> {
    let harvester = Arc::clone(harvester);
    let end = Instant::now() + length;
    let thread = fwdlab_sys::start_thread(move || {
        while Instant::now() + FEED_POOL_EVERY <= end {
            sleep(FEED_POOL_EVERY);
            harvester.feed_pool();
        }
        harvester.feed_pool();
    });
    Ok(thread?)
}

fn drops_of(counters: &Counters) -> Drops {
    RouterDrop::ALL
        .iter()
        .map(|&reason| (reason.name().to_owned(), counters.drops(reason)))
        .collect()
}

fn events_of(counters: &Counters) -> BTreeMap<String, u64> {
    RouterEvent::ALL
        .iter()
        .map(|&event| (event.name().to_owned(), counters.events(event)))
        .collect()
}

impl Place {
    /// The CPU whose time is measured: the router's.
    pub(super) fn watched_cpu(&self) -> u32 {
        match self {
            Self::Inline { cpu } => *cpu,
            Self::Beside { workers, .. } => workers[0],
        }
    }

    /// The CPUs of the router.
    pub(super) fn router_cpus(&self) -> Vec<u32> {
        match self {
            Self::Inline { cpu } => vec![*cpu],
            Self::Beside { workers, .. } => workers.clone(),
        }
    }

    /// All of its CPUs.
    pub(super) fn cpus(&self) -> Vec<u32> {
        match self {
            Self::Inline { cpu } => vec![*cpu],
            Self::Beside { tester, workers } => {
                std::iter::once(tester).chain(workers).copied().collect()
            }
        }
    }

    /// The CPU of generator and sink.
    pub(super) fn tester_cpu(&self) -> u32 {
        match self {
            Self::Inline { cpu } => *cpu,
            Self::Beside { tester, .. } => *tester,
        }
    }
}

/// The tester's kind, as records name it.
pub(super) fn tester_kind(place: &Place) -> TesterKind {
    match place {
        Place::Inline { .. } => TesterKind::MemoryInline,
        Place::Beside { .. } => TesterKind::MemoryThreaded,
    }
}
