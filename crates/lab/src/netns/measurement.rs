//! One block in the `netns` lab, from its set-up to its last slice.

mod forwarders;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{
    Direction, DutReading, Forwards, Load, LoadRegime, Placement, Resolved, Stratum, StratumOrder,
    Tester, TesterReading, Variant, VariantName,
};
use fwdlab_stats::as_f64;
use fwdlab_sys::{Interrupts, NetworkNamespace};
use fwdlab_traffic::{
    Frames, Generator, Pace, Receivers, Scrutiny, Sender, SenderPort, SinkCounts, TrafficError,
};

use super::dut::Dut;
use super::forwarder::RunningForwarder;
use super::losses::{LOST_IN_FORWARDER, Losses, PartOfLoad};
use super::probe::{LATE_MAX, await_late_frames, send_probe, show_probe, tagged_frames_advice};
use super::quiet::RunningLoad;
use super::undo::WithDut;
use crate::block::{Asked, BlockLog, LabEvent, MeasuredSlice, conservation};
use crate::clock::settled;
use crate::counters::{Drops, ThroughDut, difference, drops};
use crate::cpu_account::CpuAccount;
use crate::cpu_speed::SpeedLog;
use crate::drop_reasons::DropReasons;
use crate::environment::steal_s;
use crate::interference::cost_ns;
use crate::journal::{Changes, Journal, Undo};
use crate::probe::FailedProbe;
use crate::profiler::Place;
use crate::sequence::{Sequence, UnderLoad, stop_if_asked};
use crate::tester::IngressControl;
use crate::topology::counting;
use crate::watch::watch;
use crate::{LabError, Topology};

/// Length of the drop-at-ingress control, after a settle window of the experiment's.
const CONTROL_MS: u64 = 100;

/// How long the kernel is listened to for its reasons to drop frames.
const DROP_REASONS_MS: u64 = 50;

/// The CPUs on which frames are sent and forwarded.
fn load_cpus(placement: &Placement) -> Vec<u32> {
    let cpus = [Some(placement.load_cpu), placement.dut_cpu];
    cpus.into_iter().flatten().collect()
}

/// Everything that lives as long as a block.
pub(super) struct Measurement<'a> {
    resolved: &'a Resolved,
    placement: &'a Placement,
    interrupts: Interrupts,
    // Before the topology, so that it goes first: programs that undo something run inside the DUT.
    pub(super) changes: Changes<'a>,
    pub(super) topology: Topology,
    tester: Tester,
    port: SenderPort,
    dut: Dut,
    losses: Losses,
    control: IngressControl,
    account: CpuAccount,
    pub(super) log: BlockLog,
}

/// Generator and sink of one stratum, ready to measure.
pub(super) struct Prepared {
    pub(super) stratum: Stratum,
    pub(super) generator: Sender,
    pub(super) sink: Receivers,
    /// So many frames hold every flow and every size of every direction.
    pub(super) probe_frames: u32,
}

impl<'a> Measurement<'a> {
    /// Sets the block's cables up.
    pub(super) fn start(
        resolved: &'a Resolved,
        placement: &'a Placement,
        tester: Tester,
        journal: &'a mut Journal,
        interrupts: Interrupts,
    ) -> Result<Self, LabError> {
        let mut log = BlockLog::new(resolved, resolved.regime());
        let mut account = CpuAccount::open(&load_cpus(placement));
        let is_self_clocked = resolved.regime() == LoadRegime::SelfClocked;
        if tester == Tester::Ebpf && is_self_clocked && placement.dut_cpu.is_none() {
            account.is_never_idle(placement.load_cpu);
        }
        log.cpu_account = account.source();
        log.cpu_speeds = Some(SpeedLog::start(&load_cpus(placement)));
        let changes = Changes(journal);
        for role in ["tester", "dut"] {
            let name = NetworkNamespace::name_of(role)?;
            let what = format!("network namespace {name}");
            changes.0.announce(what, Undo::RemoveNamespace { name })?;
        }
        let topology = Topology::build()?;
        let dut = WithDut(topology.dut().entrance()?);
        changes.0.enter_dut(Rc::new(dut));
        let interface = topology.generator_interface();
        if tester != Tester::Ebpf {
            topology.take_frames_of_sockets_in_polls()?;
        }
        if resolved.direction() == Direction::Both {
            topology.carry_both_directions()?;
        }
        let port = topology
            .tester()
            .run(|| SenderPort::open(tester, interface))??;
        let set_dut = Dut::new(resolved, placement, tester, &topology)?;
        let mut measurement = Self {
            resolved,
            placement,
            interrupts,
            changes,
            topology,
            tester,
            port,
            dut: set_dut,
            losses: Losses::default(),
            control: IngressControl::new(tester)?,
            account,
            log,
        };
        if let Some(cpu) = placement.dut_cpu {
            let direction = resolved.direction();
            measurement.topology.forward_on(cpu, direction)?;
        }
        Ok(measurement)
    }

    /// Loads generator and sink, and proves every variant with probe frames of every flow and size.
    pub(super) fn prepare<'v>(
        &mut self,
        stratum: Stratum,
        variants: impl IntoIterator<Item = &'v VariantName>,
    ) -> Result<Prepared, LabError> {
        let (there, back) = self.frames(stratum, Forwards::default())?;
        let back_in_turn = back.as_ref().map(Frames::in_turn);
        let generator = self.sender(&there.in_turn(), back_in_turn.as_ref())?;
        let sink = Receivers::load(self.tester, std::iter::once(&there).chain(&back))?;
        let mut prepared = Prepared {
            stratum,
            generator,
            sink,
            probe_frames: there.probe_frames() + back.as_ref().map_or(0, Frames::probe_frames),
        };
        let interfaces = self.counting();
        let tester = self.topology.tester();
        tester.run(|| prepared.sink.attach(interfaces))??;
        for name in variants {
            stop_if_asked(self.interrupts)?;
            let variant = self.variant(name);
            self.dut.set_family(stratum.family);
            self.expect(&mut prepared.sink, stratum, variant)?;
            self.switch(variant)?;
            if let Some(moved) = self.dut.moved(&mut self.topology, variant)? {
                return Err(moved.into());
            }
            self.probe(&mut prepared, variant)?;
        }
        // What it may still send is in nobody's account.
        self.dut.end_forwarder(&mut self.topology, self.changes.0)?;
        // Another stratum's sink is to take its place.
        prepared.sink.detach()?;
        if self.resolved.traffic(stratum).zipf.is_some() {
            prepared.generator = self.sender(&there, back.as_ref())?;
        }
        Ok(prepared)
    }

    /// Loads a generator of the frames of each direction.
    fn sender(&self, there: &Frames, back: Option<&Frames>) -> Result<Sender, LabError> {
        let (topology, port) = (&self.topology, &self.port);
        let tester = topology.tester();
        tester.run(|| load_sender(topology, port, there, back))?
    }

    /// Where the DUT's frames come out.
    fn counting(&self) -> &'static [&'static str] {
        counting(self.resolved.direction())
    }

    /// Proves that the DUT forwards a frame of every flow and size as it should.
    fn probe(&mut self, prepared: &mut Prepared, variant: &Variant) -> Result<(), LabError> {
        let stratum = prepared.stratum;
        let traffic = self.resolved.traffic(stratum);
        if send_probe(prepared, traffic, Duration::ZERO)?.is_right {
            return Ok(());
        }
        if let Some(forwarder) = self.dut.forwarder() {
            forwarder.prove_that_it_runs()?;
        }
        // Once more, with an ear to the kernel's reasons, and without what comes late of the first.
        await_late_frames(prepared, LATE_MAX)?;
        let reasons = DropReasons::listen(self.topology.dut());
        let outcome = send_probe(prepared, traffic, LATE_MAX)?;
        if outcome.is_right {
            return Ok(());
        }
        let reasons = reasons.map(|reasons| reasons.frames()).unwrap_or_default();
        let mut kinds: Vec<_> = outcome
            .counts
            .wrong_frames_by_kind()
            .map(|(kind, _)| kind.to_string())
            .collect();
        kinds.extend(outcome.missing);
        if outcome.counts.wrong_frames() > 0 {
            kinds.extend(self.difference(prepared, self.resolved.forwards(variant))?);
        }
        let reasons: Vec<_> = reasons
            .iter()
            .map(|(reason, frames)| format!("the DUT's kernel dropped {frames} as {reason}"))
            .collect();
        let failed = FailedProbe {
            sent: prepared.probe_frames.into(),
            forwarded: outcome.counts.forwarded_frames,
            wrong: outcome.counts.wrong_frames(),
            kinds,
            reasons,
            advice: tagged_frames_advice(traffic, &outcome.counts),
        };
        Err(failed.of(self.resolved, stratum, variant))
    }

    /// In what a probe frame differs from what was expected; none where one sent again does not. The sink is off its
    /// interfaces afterwards.
    fn difference(
        &self,
        prepared: &mut Prepared,
        forwards: Forwards,
    ) -> Result<Option<String>, LabError> {
        let (there, back) = self.frames(prepared.stratum, forwards)?;
        let tester = self.topology.tester();
        tester.run(|| prepared.sink.detach())??;
        let directions = std::iter::once(&there).chain(&back);
        let directions = directions.zip(self.counting().iter().copied());
        let mut scrutiny = tester.run(|| Scrutiny::open(directions))??;
        show_probe(prepared, || scrutiny.difference())
    }

    /// Has a sink expect what comes out of the DUT with a variant; to be called when nothing is sent.
    fn expect(
        &self,
        sink: &mut Receivers,
        stratum: Stratum,
        variant: &Variant,
    ) -> Result<(), LabError> {
        if !self.resolved.has_forwarder() {
            // All variants route, as the sink was loaded to expect.
            return Ok(());
        }
        let (there, back) = self.frames(stratum, self.resolved.forwards(variant))?;
        Ok(sink.expect(std::iter::once(&there).chain(&back))?)
    }

    /// The frames of each direction.
    fn frames(
        &self,
        stratum: Stratum,
        forwards: Forwards,
    ) -> Result<(Frames, Option<Frames>), LabError> {
        let traffic = self.resolved.traffic(stratum);
        let there = self
            .topology
            .frames(stratum.family, traffic)?
            .passing(forwards);
        let back = match traffic.direction {
            Direction::Forward => None,
            Direction::Both => Some(self.topology.frames_back(&there)),
        };
        Ok((there, back))
    }

    /// The generator runs through all rounds; only what happens inside slices is measured.
    pub(super) fn measure_stratum(
        &mut self,
        prepared: Prepared,
        order: &StratumOrder,
        sequence: &mut Sequence<'_>,
    ) -> Result<(), LabError> {
        let Prepared {
            stratum,
            generator,
            mut sink,
            probe_frames: _,
        } = prepared;
        let design = &self.resolved.design;
        sink.reset()?;
        let interfaces = self.counting();
        self.topology.tester().run(|| sink.attach(interfaces))??;
        self.dut.set_family(stratum.family);
        // Where it is set once, it is so for its own measurement.
        let sets_once = self.resolved.takes_whole_measurements();
        let first = order.variants().next().filter(|_| !sets_once);
        if let Some(name) = first {
            self.switch(self.variant(name))?;
        }
        let drops_before = self.drops(stratum)?;
        let direction = self.resolved.direction();
        let dut_before = self.topology.dut_packets(direction)?;
        let load = self.start_load(stratum, generator)?;

        let settle = Duration::from_millis(design.settle_ms.into());
        let generator_cost_ns = self.generator_cost_ns(&load, &sink, settle)?;
        let warm_up = Duration::from_millis(design.warm_up_ms.into());
        // What starts for each measurement is cold each time.
        let settle = if sets_once { settle + warm_up } else { settle };
        if let Some(name) = first {
            // The control has taken its programs off. Frames that only a program forwards, as those with a tag, would be
            // dropped by the kernel without one.
            self.switch(self.variant(name))?;
            load.sender.release();
            sleep(warm_up);
        }

        let mut under_load = StratumUnderLoad {
            measurement: self,
            load,
            sink,
            settle,
            offered_before: 0,
            counts_before: None,
        };
        let lossy = sequence.measure_stratum(&mut under_load, order)?;
        if !sets_once {
            for slice in lossy {
                under_load.sample_drop_reasons(&slice)?;
            }
        }
        let StratumUnderLoad { load, mut sink, .. } = under_load;
        self.end_forwarder(&load, &sink)?;

        let (generator, outcome) = load.sender.finish();
        if let Err(error) = outcome {
            let what = match error {
                TrafficError::GeneratorStopped { what } => what,
                error => error.to_string(),
            };
            self.log.note_generator_stopped(stratum, what);
        }
        let offered_frames = generator.offered_frames()?;
        let mut drops = Drops::new();
        let (counts, _) = settled(
            || {
                drops = difference(&drops_before, &self.drops(stratum)?);
                Ok((sink.counts()?, drops.values().sum::<u64>()))
            },
            |(counts, dropped)| counts.forwarded_frames + dropped >= offered_frames,
        )?;
        if let Some(reason) = self.dut.uncounted_drops() {
            let dut = self.topology.dut_packets(direction)?;
            let through = ThroughDut {
                offered_frames,
                entered_frames: dut[0] - dut_before[0],
                left_frames: dut[1] - dut_before[1],
                forwarded_frames: counts.forwarded_frames,
            };
            drops.extend(through.lost(&drops).map(|frames| (reason, frames)));
        }
        let conservation = conservation(
            offered_frames,
            counts.forwarded_frames,
            0,
            drops,
            counts.foreign_frames,
            sink.verification()?,
        );
        // The next stratum's sink takes its place.
        sink.detach()?;
        self.log
            .end_stratum(stratum, conservation, generator_cost_ns);
        Ok(())
    }

    /// What a frame costs when the DUT drops it as it comes in; none where others left too little time to tell.
    ///
    /// Shape: the load has just been started, held, so that none of its frames go to a variant that was only probed; it is held
    /// afterwards, so that none go to a DUT without a variant.
    fn generator_cost_ns(
        &mut self,
        load: &RunningLoad,
        sink: &Receivers,
        settle: Duration,
    ) -> Result<Option<f64>, LabError> {
        let direction = self.resolved.direction();
        self.dut.clear_ingress(&mut self.topology, self.changes.0)?;
        self.control
            .begin(&self.topology, direction, &load.sender)?;
        load.sender.release();
        sleep(settle);
        self.prepare_account()?;
        let cost_ns = cost_ns(
            self.placement.forwarding_cpu(),
            Duration::from_millis(CONTROL_MS),
            &self.account,
            || Ok(load.sender.offered_frames()?),
        )?;
        load.hold(&mut self.topology, sink)?;
        self.control.end(&load.sender)?;
        Ok(cost_ns)
    }

    /// Has the account know who works for the load now.
    fn prepare_account(&mut self) -> Result<(), LabError> {
        let namespaces = [self.topology.tester(), self.topology.dut()];
        let [tester, dut] = namespaces.map(NetworkNamespace::number);
        self.account
            .prepare(&load_cpus(self.placement), [tester?, dut?]);
        Ok(())
    }

    /// Starts the load, held, with the counts of the frames that it offers from 0.
    pub(super) fn start_load(
        &mut self,
        stratum: Stratum,
        generator: Sender,
    ) -> Result<RunningLoad, LabError> {
        let cpu = self.placement.load_cpu;
        let pace = self.pace(stratum, self.resolved.traffic(stratum).load);
        let direction = self.resolved.direction();
        let still_looks = if self.resolved.has_forwarder() { 20 } else { 1 };
        RunningLoad::start(&mut self.topology, direction, still_looks, || {
            Ok(generator.start_held(cpu, pace)?)
        })
    }

    /// Applies a variant while the load goes on, but for as long as XDP programs change, and then changes the pace: the
    /// variant before never has the pace of this one. Tells what the sink had counted before the variant's first frame,
    /// where the load was held.
    pub(super) fn switch_under_load(
        &mut self,
        name: &VariantName,
        (stratum, asked): (Stratum, Load),
        load: &mut RunningLoad,
        sink: &mut Receivers,
    ) -> Result<Option<SinkCounts>, LabError> {
        let variant = self.variant(name);
        let actions = self.dut.actions(variant)?;
        let is_held = self.dut.may_change_program(&actions);
        let mut counts = None;
        if is_held {
            load.hold(&mut self.topology, sink)?;
            self.end_forwarder(load, sink)?;
            self.expect(sink, stratum, variant)?;
            counts = Some(sink.counts()?);
        }
        let switched = self.dut.set(&mut self.topology, self.changes.0, actions);
        let switched = switched.and_then(|()| self.begin_losses(sink));
        let paced = load.sender.set_pace(self.pace(stratum, asked));
        if is_held {
            load.sender.release();
        }
        switched?;
        paced?;
        Ok(counts)
    }

    fn switch(&mut self, variant: &Variant) -> Result<(), LabError> {
        let actions = self.dut.actions(variant)?;
        self.dut.set(&mut self.topology, self.changes.0, actions)
    }

    fn variant(&self, name: &VariantName) -> &'a Variant {
        self.resolved
            .variant(name)
            .expect("plans are made of the experiment's variants")
    }

    fn drops(&mut self, stratum: Stratum) -> Result<Drops, LabError> {
        let direction = self.resolved.direction();
        let mut drops = drops(&mut self.topology, stratum.family, direction, &self.control)?;
        drops.extend(self.dut.drops(&mut self.topology)?);
        drops.insert(LOST_IN_FORWARDER.to_owned(), self.losses.frames());
        Ok(drops)
    }

    fn pace(&self, stratum: Stratum, load: Load) -> Pace {
        match load {
            Load::Paced { pps } => Pace::Paced {
                pps,
                burst_frames: self.resolved.traffic(stratum).burst_frames,
            },
            Load::SelfClocked | Load::Overload => Pace::SelfClocked,
        }
    }
}

/// A stratum's frames under way.
struct StratumUnderLoad<'m, 'a> {
    measurement: &'m mut Measurement<'a>,
    load: RunningLoad,
    sink: Receivers,
    /// How long it settles after a switch.
    settle: Duration,
    /// Frames that were offered before the last switch.
    offered_before: u64,
    /// What the sink had counted then, where no frame was under way.
    counts_before: Option<SinkCounts>,
}

impl StratumUnderLoad<'_, '_> {
    /// Has a variant that lost frames lose some more under the same load, and asks the kernel for the reasons.
    fn sample_drop_reasons(&mut self, slice: &Asked<'_>) -> Result<(), LabError> {
        stop_if_asked(self.measurement.interrupts)?;
        self.begin(slice, &mut |_| ())?;
        let Measurement { topology, log, .. } = &mut *self.measurement;
        if let Some(reasons) = DropReasons::listen(topology.dut()) {
            sleep(Duration::from_millis(DROP_REASONS_MS));
            let evidence = log.evidence_of(slice.stratum, &slice.variant.name);
            evidence.kernel_drop_reasons = reasons.frames();
        }
        Ok(())
    }
}

impl UnderLoad for StratumUnderLoad<'_, '_> {
    /// When the DUT was switched: the load goes on from slice to slice.
    type Running = Instant;

    fn log(&mut self) -> &mut BlockLog {
        &mut self.measurement.log
    }

    fn sets_once(&self) -> bool {
        self.measurement.resolved.takes_whole_measurements()
    }

    fn begin(
        &mut self,
        slice: &Asked<'_>,
        _: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<Instant, LabError> {
        let name = &slice.variant.name;
        self.counts_before = self.measurement.switch_under_load(
            name,
            (slice.stratum, slice.load),
            &mut self.load,
            &mut self.sink,
        )?;
        self.offered_before = self.load.sender.offered_frames()?;
        Ok(Instant::now())
    }

    fn measure(
        &mut self,
        switched: &Instant,
        slice: &Asked<'_>,
    ) -> Result<MeasuredSlice, LabError> {
        let (stratum, variant) = (slice.stratum, slice.variant);
        let Self {
            measurement: block,
            load,
            sink,
            settle,
            offered_before,
            counts_before,
        } = self;
        let moved = block.dut.moved(&mut block.topology, variant)?;
        crate::clock::settle(*switched, *settle);
        let cpu = block.placement.forwarding_cpu();
        if let Some(forwarder) = block.dut.forwarder() {
            forwarder.keep_cpu_to_one_thread(cpu, block.placement.load_cpu)?;
        }
        // Frames of the variant before have long come out.
        let counts_before = match counts_before.take() {
            Some(counts) => counts,
            None => sink.counts()?,
        };
        let drops_before = block.drops(stratum)?;
        let steal_before_s = steal_s(cpu);
        block.prepare_account()?;

        let length = Duration::from_millis(block.resolved.design.slice_ms.into());
        let watch = watch(
            cpu,
            length,
            &block.account,
            || Ok(sink.forwarded_frames()?),
            || Ok(load.sender.offered_frames()?),
        )?;
        let offered_frames = watch.edges[1] - watch.edges[0];
        let steal_s = steal_s(cpu) - steal_before_s;
        block.log.cpu_speeds.iter_mut().for_each(SpeedLog::look);
        // Now, too, because what waits to be checked has only so much room.
        let mut counts = sink.counts()?;
        let forwarder_ended = block.dut.forwarder().and_then(RunningForwarder::crashed);
        if block.losses.are_looked_for() {
            // Held until the next one has started.
            load.hold(&mut block.topology, sink)?;
            block.look_for_losses(sink)?;
            block.await_starved_forwarder(load, sink)?;
            counts = sink.counts()?;
        }
        let evidence = block.log.evidence_of(stratum, &variant.name);
        for (kind, frames) in counts.wrong_frames_since(&counts_before) {
            *evidence.wrong_frames.entry(kind).or_default() += frames;
        }
        let mut drops = difference(&drops_before, &block.drops(stratum)?);
        let part = PartOfLoad {
            offered_frames,
            window_frames: load.sender.offered_frames()? - *offered_before,
        };
        part.share_losses(&mut drops);
        block.losses.end_slice(stratum, &variant.name, part);
        let dut = DutReading {
            drops,
            ..DutReading::default()
        };
        // At the slice's end, so that what was changed inside it is seen too.
        let moved = match moved {
            None => block.dut.moved_since(&mut block.topology, variant)?,
            moved => moved,
        };
        Ok(MeasuredSlice {
            switch: *switched - slice.begin,
            samples: watch.samples,
            tester: TesterReading {
                offered_frames,
                ..TesterReading::default()
            },
            intended_pps: slice.load.intended_pps().map(as_f64),
            taken_frames: offered_frames,
            steal_s,
            dut,
            settings_moved: moved.map(|moved| moved.to_string()),
            // They are of this machine's memory.
            links_lost: BTreeSet::new(),
            forwarder_ended,
            takers: block.account.knows().then_some(watch.takers),
        })
    }

    fn profile(&mut self, switched: &Instant, slice: &Asked<'_>) -> Result<(), LabError> {
        let block = &mut *self.measurement;
        crate::clock::settle(*switched, self.settle);
        let Some(profiler) = &mut block.log.profiler else {
            return Ok(());
        };
        let cpu = block.placement.forwarding_cpu();
        loop {
            let samplers = profiler.samplers(&[Place { cpu, thread: None }])?;
            let window = &samplers.window;
            let watch = watch(
                cpu,
                profiler.slice(),
                &CpuAccount::None,
                || Ok(self.sink.forwarded_frames()?),
                || window.at_edge(),
            )?;
            // What waits to be checked has only so much room.
            self.sink.counts()?;
            if !profiler.add_watched(slice.stratum, &slice.variant.name, samplers, &watch) {
                return Ok(());
            }
        }
    }

    fn end(&mut self, _: Instant) -> Result<(), LabError> {
        Ok(())
    }
}

/// The generator of the frames that go there, and of those that go back, where there are any.
fn load_sender(
    topology: &Topology,
    port: &SenderPort,
    there: &Frames,
    back: Option<&Frames>,
) -> Result<Sender, LabError> {
    let Some(back) = back else {
        return Ok(Sender::load(port, there)?);
    };
    Ok(Sender::Ebpf(Generator::load_bidirectional(
        (there, topology.generator_interface()),
        (back, topology.generator_interface_back()),
    )?))
}
