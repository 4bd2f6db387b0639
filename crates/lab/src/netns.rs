//! The `netns` lab: this machine's kernel forwards between two veth pairs, self-clocked, paced or
//! overloaded.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{
    AddressFamily, BlockRecord, Conservation, Direction, Lab, LoadRegime, Placement, PlannedBlock,
    Resolved, SCHEMA_VERSION, SliceRecord, Tester, Traffic, TrialRecord, Variant, VariantName,
};
use fwdlab_sys::{Interrupts, NetworkNamespace};
use fwdlab_traffic::{
    Frames, Generator, Pace, Receivers, RunningSender, Sender, SenderPort, SinkCounts, TrafficError,
};

use crate::counters::{Drops, difference, drops};
use crate::drop_reasons::DropReasons;
use crate::dut::{Dut, FORWARDER_DROPPED, Site};
use crate::environment::steal_s;
use crate::interference::{counted, rate_basis, tell_undisturbed};
use crate::journal::{Journal, Undo};
use crate::placement::{load_unavailable, placement};
use crate::restore::{Leftover, LeftoverState, OnFailure, restore};
use crate::tester::{IngressControl, TesterChoice};
use crate::topology::counting;
use crate::validity::{self, TrialEvidence};
use crate::watch::{Sample, Watch, prove_cpu_is_free, watch};
use crate::{LabError, Topology};

/// How long frames may be under way after the generator has stopped.
const DRAIN_MS_MAX: u64 = 200;

/// Length of the drop-at-ingress control, after a settle window of the experiment's.
const CONTROL_MS: u64 = 100;

/// How long the kernel is listened to for its reasons to drop frames.
const DROP_REASONS_MS: u64 = 50;

/// The name of the journal of what is changed on this machine.
const JOURNAL: &str = "netns";

/// How finely [`NetnsLab::settling`] looks.
pub const SETTLING_STEP: Duration = Duration::from_millis(10);

/// How many such intervals after a switch.
const SETTLING_STEPS: u32 = 20;

/// Probe frames under way at once: what a veth ring holds even where another CPU empties it.
const PROBE_BATCH: u32 = 128;

/// A lab out of this machine's kernel.
pub struct NetnsLab {
    resolved: Resolved,
    placement: Placement,
    interrupts: Interrupts,
    journal: Journal,
    leftovers: Vec<Leftover>,
    choice: TesterChoice,
}

/// What a block left behind.
#[derive(Clone, Debug)]
pub struct BlockOutcome {
    /// One a variant and family.
    pub trials: Vec<TrialRecord>,
    /// What holds for all of them.
    pub block: BlockRecord,
    /// One a slice.
    pub slices: Vec<SliceRecord>,
}

/// What a lab tells while it works.
#[derive(Clone, Debug)]
pub enum LabEvent<'a> {
    /// A block's set-up has begun.
    SetUp,
    /// The set-up is done and every variant's probe frames were forwarded.
    Ready {
        /// Length of the set-up.
        set_up: Duration,
    },
    /// A slice was measured; what was disturbed of it shows at the end of the block.
    Slice(&'a SliceRecord),
}

impl NetnsLab {
    /// Gives an ordinary user's process what the lab needs: a user namespace of its own.
    ///
    /// To be called before any thread is started; root's process needs nothing.
    ///
    /// # Errors
    /// `NoUserNamespace`.
    pub fn prepare_process(lab: &Lab) -> Result<(), LabError> {
        let uid = fwdlab_sys::user_id();
        if uid == 0 {
            return Ok(());
        }
        fwdlab_sys::enter_user_namespace().map_err(|source| LabError::NoUserNamespace {
            lab: lab.name.clone(),
            uid,
            source,
        })
    }

    /// Opens the lab: puts back what killed runs left, chooses the CPUs, and the best tester that works.
    ///
    /// # Errors
    /// `Cpu`, `NotRestored`, or what the kernel refuses.
    pub fn open(
        resolved: &Resolved,
        state_directory: &Path,
        interrupts: Interrupts,
    ) -> Result<Self, LabError> {
        let journal = Journal::open(state_directory, JOURNAL)?;
        let leftovers = restore(state_directory, OnFailure::Keep)?;
        let failed = |leftover: &&Leftover| matches!(leftover.state, LeftoverState::Failed { .. });
        if let Some(leftover) = leftovers.iter().find(failed) {
            return Err(LabError::NotRestored {
                leftover: leftover.to_string(),
            });
        }
        let placement = placement(resolved, &fwdlab_sys::online_cpus()?)?;
        prove_cpu_is_free(placement.load_cpu)?;
        prove_cpu_is_free(placement.forwarding_cpu())?;
        Ok(Self {
            resolved: resolved.clone(),
            placement,
            interrupts,
            journal,
            leftovers,
            choice: TesterChoice::probe()?,
        })
    }

    /// How frames are sent and counted, and why not in a better way.
    #[must_use]
    pub fn tester(&self) -> &TesterChoice {
        &self.choice
    }

    /// Measures with another tester than the best that works, to see what that changes.
    pub fn use_tester(&mut self, tester: Tester) {
        self.choice = TesterChoice {
            tester,
            refused: Vec::new(),
        };
    }

    /// What killed runs had left, and was put back.
    #[must_use]
    pub fn leftovers(&self) -> &[Leftover] {
        &self.leftovers
    }

    /// Who runs where.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Why this machine cannot have a variant, for each variant of the experiment.
    ///
    /// # Errors
    /// When the lab cannot be made at all.
    pub fn unavailable(&self) -> Result<Vec<Option<String>>, LabError> {
        let needs_root = (self.placement.dut_cpu.is_some() && !fwdlab_sys::is_root()).then(|| {
            "only root can give the DUT a CPU of its own (dut_cpu); run fwdlab as root (sudo)"
                .into()
        });
        let is_bidirectional = self.resolved.traffic.direction == Direction::Both;
        let needs_ebpf = (is_bidirectional && self.choice.tester != Tester::Ebpf).then(|| {
            "frames in both directions are made by eBPF programs, which this process may not load; \
             run fwdlab as root (sudo), or ask for direction = \"forward\""
                .into()
        });
        let unavailable = load_unavailable(&self.resolved, &self.placement);
        if let Some(reason) = unavailable.or(needs_root).or(needs_ebpf) {
            return Ok(vec![Some(reason); self.resolved.variants.len()]);
        }
        let mut topology = Topology::build()?;
        let mut dut = Dut::new(&self.resolved, &self.placement, self.choice.tester)?;
        self.resolved
            .variants
            .iter()
            .map(|variant| dut.unavailable(&mut topology, variant))
            .collect()
    }

    /// Measures one block on a fresh set-up.
    ///
    /// # Errors
    /// When the lab cannot be set up, a variant does not forward its probe frames, the kernel
    /// refuses something, or the user asks to stop now. Nothing of the set-up remains.
    pub fn measure(
        &mut self,
        planned: &PlannedBlock,
        session: u32,
        attempt: u32,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<BlockOutcome, LabError> {
        let _pinned = fwdlab_sys::PinnedThread::to_cpu(self.placement.control_cpu)?;
        on_event(LabEvent::SetUp);
        let started = Instant::now();
        let start = now_utc();
        let mut measurement = Measurement::start(
            &self.resolved,
            &self.placement,
            self.choice.tester,
            &mut self.journal,
            self.interrupts,
        )?;
        let mut families = Vec::new();
        for order in &planned.families {
            families.push(measurement.set_up_family(order.family, &order.rounds[0])?);
        }
        let set_up = started.elapsed();
        on_event(LabEvent::Ready { set_up });

        let mut conservation = BTreeMap::new();
        let mut generator_cost_ns = BTreeMap::new();
        for (order, family) in planned.families.iter().zip(families) {
            let outcome = measurement.measure_family(family, &order.rounds, on_event)?;
            conservation.insert(order.family, outcome.conservation);
            generator_cost_ns.insert(order.family, outcome.generator_cost_ns);
        }
        let Measurement {
            mut slices,
            samples,
            evidence,
            generator_stopped,
            changes,
            ..
        } = measurement;
        changes.0.undo_all()?;
        drop(changes);
        let undisturbed_loop_ns = tell_undisturbed(&mut slices, &samples);

        let block = BlockRecord {
            schema: SCHEMA_VERSION,
            session,
            block: planned.number,
            attempt,
            start,
            set_up_s: set_up.as_secs_f64(),
            switch_s: median(slices.iter().map(|slice| slice.switch_s)),
            conservation,
            generator_cost_ns,
            undisturbed_loop_ns,
            rate_basis: rate_basis(planned, &slices),
        };
        let trials = trials(
            &self.resolved,
            planned,
            &block,
            &slices,
            evidence,
            &generator_stopped,
        );
        Ok(BlockOutcome {
            trials,
            block,
            slices,
        })
    }

    /// How the forwarding rate settles after each of some switches from one variant to the next.
    ///
    /// Shape: one entry a switch, with the rate in each of the following intervals of
    /// [`SETTLING_STEP`], in frames per second.
    ///
    /// # Errors
    /// Those of [`measure`](Self::measure).
    pub fn settling(&mut self, switches: u32) -> Result<Vec<Vec<f64>>, LabError> {
        let _pinned = fwdlab_sys::PinnedThread::to_cpu(self.placement.control_cpu)?;
        let variants: Vec<_> = self
            .resolved
            .variants
            .iter()
            .filter(|variant| variant.unavailable.is_none())
            .map(|variant| variant.name.clone())
            .collect();
        let mut measurement = Measurement::start(
            &self.resolved,
            &self.placement,
            self.choice.tester,
            &mut self.journal,
            self.interrupts,
        )?;
        let family = self.resolved.traffic.families[0];
        let Family {
            generator,
            mut sink,
            ..
        } = measurement.set_up_family(family, &variants)?;
        sink.reset()?;
        let tester = measurement.topology.tester();
        tester.run(|| sink.attach(counting(self.resolved.traffic.direction)))??;
        let running = generator.start(self.placement.load_cpu, measurement.pace())?;
        let mut settlings = Vec::new();
        for name in variants.iter().cycle().take(switches as usize) {
            measurement.stop_if_asked()?;
            measurement.switch(family, name)?;
            let forwarded = || Ok(sink.forwarded_frames()?);
            let mut rates_pps = Vec::new();
            for _ in 0..SETTLING_STEPS {
                let samples =
                    watch(self.placement.load_cpu, SETTLING_STEP, forwarded, forwarded)?.samples;
                let (start, end) = (samples[0], samples[samples.len() - 1]);
                let frames = end.forwarded_frames - start.forwarded_frames;
                rates_pps.push(as_f64(frames) / (end.at - start.at).as_secs_f64());
            }
            settlings.push(rates_pps);
        }
        running.finish().1?;
        Ok(settlings)
    }
}

/// What a block changes beyond its own lifetime, undone at the latest when the value goes.
struct Changes<'a>(&'a mut Journal);

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        // What cannot be undone now stands in the journal, where the next run finds it.
        let _ = self.0.undo_all();
    }
}

/// Everything that lives as long as a block.
struct Measurement<'a> {
    resolved: &'a Resolved,
    placement: &'a Placement,
    interrupts: Interrupts,
    started: Instant,
    // Before the topology, so that it goes first: programs that undo something run inside the DUT.
    changes: Changes<'a>,
    topology: Topology,
    tester: Tester,
    port: SenderPort,
    dut: Dut,
    control: IngressControl,
    slices: Vec<SliceRecord>,
    /// Those of each slice.
    samples: Vec<Vec<Sample>>,
    evidence: BTreeMap<(AddressFamily, VariantName), TrialEvidence>,
    /// Why the generator of a family stopped by itself.
    generator_stopped: BTreeMap<AddressFamily, String>,
}

/// Generator and sink of one family, ready to measure.
struct Family {
    family: AddressFamily,
    generator: Sender,
    sink: Receivers,
    /// So many frames hold every flow and every size of every direction.
    probe_frames: u32,
}

struct FamilyOutcome {
    conservation: Conservation,
    generator_cost_ns: f64,
}

impl<'a> Measurement<'a> {
    /// Sets the block's cables up.
    fn start(
        resolved: &'a Resolved,
        placement: &'a Placement,
        tester: Tester,
        journal: &'a mut Journal,
        interrupts: Interrupts,
    ) -> Result<Self, LabError> {
        let started = Instant::now();
        let changes = Changes(journal);
        for role in ["tester", "dut"] {
            let name = NetworkNamespace::name_of(role)?;
            let what = format!("network namespace {name}");
            changes.0.announce(what, Undo::RemoveNamespace { name })?;
        }
        let topology = Topology::build()?;
        changes.0.enter_dut(topology.dut().entrance()?);
        let interface = topology.generator_interface();
        if tester != Tester::Ebpf {
            topology.take_frames_of_sockets_in_polls()?;
        }
        if resolved.traffic.direction == Direction::Both {
            topology.carry_both_directions()?;
        }
        let port = topology
            .tester()
            .run(|| SenderPort::open(tester, interface))??;
        let mut measurement = Self {
            resolved,
            placement,
            interrupts,
            started,
            changes,
            topology,
            tester,
            port,
            dut: Dut::new(resolved, placement, tester)?,
            control: IngressControl::new(tester)?,
            slices: Vec::new(),
            samples: Vec::new(),
            evidence: BTreeMap::new(),
            generator_stopped: BTreeMap::new(),
        };
        if let Some(cpu) = placement.dut_cpu {
            let direction = resolved.traffic.direction;
            measurement.topology.forward_on(cpu, direction)?;
        }
        Ok(measurement)
    }

    /// Loads generator and sink, and proves every variant with probe frames of every flow and size.
    fn set_up_family(
        &mut self,
        family: AddressFamily,
        variants: &[VariantName],
    ) -> Result<Family, LabError> {
        let there = self.topology.frames(family, &self.resolved.traffic)?;
        let back = match self.resolved.traffic.direction {
            Direction::Forward => None,
            Direction::Both => Some(self.topology.frames_back(&there)),
        };
        let (topology, port) = (&self.topology, &self.port);
        let tester = topology.tester();
        let generator = tester.run(|| load_sender(topology, port, &there, back.as_ref()))??;
        let sink = Receivers::load(self.tester, std::iter::once(&there).chain(&back))?;
        let mut family = Family {
            family,
            generator,
            sink,
            probe_frames: there.probe_frames() + back.map_or(0, |back| back.probe_frames()),
        };
        let interfaces = self.counting();
        tester.run(|| family.sink.attach(interfaces))??;
        for name in variants {
            self.stop_if_asked()?;
            let variant = self.variant(name);
            let (dut, mut site) = self.dut_at_site(family.family);
            dut.apply(&mut site, variant)?;
            dut.read_back(&mut site, variant)?;
            self.probe(&mut family, variant)?;
        }
        // Another family's sink is to take its place.
        family.sink.detach()?;
        Ok(family)
    }

    /// Where the DUT's frames come out.
    fn counting(&self) -> &'static [&'static str] {
        counting(self.resolved.traffic.direction)
    }

    /// Proves that the DUT forwards a frame of every flow and size as it should.
    fn probe(&self, family: &mut Family, variant: &Variant) -> Result<(), LabError> {
        if send_probe(family, &self.resolved.traffic)?.is_right {
            return Ok(());
        }
        // Once more, with an ear to the kernel's reasons.
        let reasons = DropReasons::listen(self.topology.dut());
        let outcome = send_probe(family, &self.resolved.traffic)?;
        if outcome.is_right {
            return Ok(());
        }
        let reasons = reasons.map(|reasons| reasons.frames()).unwrap_or_default();
        let in_brackets = |list: String| match list.as_str() {
            "" => list,
            list => format!(" ({list})"),
        };
        let mut kinds: Vec<_> = outcome
            .counts
            .wrong_frames_by_kind()
            .map(|(kind, _)| kind.to_string())
            .collect();
        kinds.extend(outcome.missing);
        let reasons: Vec<_> = reasons
            .iter()
            .map(|(reason, frames)| format!("the DUT's kernel dropped {frames} as {reason}"))
            .collect();
        Err(LabError::Probe {
            variant: variant.label.clone(),
            family: family.family.to_string(),
            sent: family.probe_frames.into(),
            forwarded: outcome.counts.forwarded_frames,
            wrong: outcome.counts.wrong_frames(),
            kinds: in_brackets(kinds.join(", ")),
            reasons: in_brackets(reasons.join(", ")),
        })
    }

    /// The generator runs through all rounds; only what happens inside slices is measured.
    fn measure_family(
        &mut self,
        family: Family,
        rounds: &[Vec<VariantName>],
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<FamilyOutcome, LabError> {
        let Family {
            family,
            generator,
            mut sink,
            probe_frames: _,
        } = family;
        let design = &self.resolved.design;
        let settle = Duration::from_millis(design.settle_ms.into());
        sink.reset()?;
        let interfaces = self.counting();
        self.topology.tester().run(|| sink.attach(interfaces))??;
        self.switch(family, &rounds[0][0])?;
        let drops_before = self.drops(family)?;
        let running = generator.start(self.placement.load_cpu, self.pace())?;

        let generator_cost_ns = self.generator_cost_ns(&running, settle)?;
        sleep(Duration::from_millis(design.warm_up_ms.into()));

        for (round, order) in (1..).zip(rounds) {
            for (position, name) in (0..).zip(order) {
                self.stop_if_asked()?;
                let slice = self.slice(family, &running, &sink, name, round, position, settle)?;
                on_event(LabEvent::Slice(&slice));
                self.slices.push(slice);
            }
        }

        for name in &rounds[0] {
            self.sample_drop_reasons(family, name)?;
        }

        let (generator, outcome) = running.finish();
        if let Err(error) = outcome {
            let what = match error {
                TrafficError::GeneratorStopped { what } => what,
                error => error.to_string(),
            };
            self.generator_stopped.insert(family, what);
        }
        let offered_frames = generator.offered_frames()?;
        let mut drops = Drops::new();
        let (counts, dropped) = settled(
            || {
                drops = difference(&drops_before, &self.drops(family)?);
                Ok((sink.counts()?, drops.values().sum::<u64>()))
            },
            |(counts, dropped)| counts.forwarded_frames + dropped >= offered_frames,
        )?;
        Ok(FamilyOutcome {
            conservation: Conservation {
                offered_frames,
                forwarded_frames: counts.forwarded_frames,
                unaccounted_frames: offered_frames.cast_signed()
                    - counts.forwarded_frames.cast_signed()
                    - dropped.cast_signed(),
                drops,
                foreign_frames: counts.foreign_frames,
                verification: sink.verification()?,
            },
            generator_cost_ns,
        })
    }

    /// Has a variant that lost frames in its slices lose some more, and asks the kernel for the reasons.
    fn sample_drop_reasons(
        &mut self,
        family: AddressFamily,
        name: &VariantName,
    ) -> Result<(), LabError> {
        let key = (family, name.clone());
        let has_drops = |evidence: &TrialEvidence| !evidence.drops.is_empty();
        if !self.evidence.get(&key).is_some_and(has_drops) {
            return Ok(());
        }
        self.stop_if_asked()?;
        self.switch(family, name)?;
        if let Some(reasons) = DropReasons::listen(self.topology.dut()) {
            sleep(Duration::from_millis(DROP_REASONS_MS));
            let evidence = self.evidence.entry(key).or_default();
            evidence.kernel_drop_reasons = reasons.frames();
        }
        Ok(())
    }

    /// What a frame costs when the DUT drops it as it comes in.
    fn generator_cost_ns(
        &mut self,
        running: &RunningSender,
        settle: Duration,
    ) -> Result<f64, LabError> {
        self.dut.detach_forwarder();
        let direction = self.resolved.traffic.direction;
        self.control.begin(&self.topology, direction, running)?;
        sleep(settle);
        let start = Instant::now();
        let frames_before = running.offered_frames()?;
        sleep(Duration::from_millis(CONTROL_MS));
        let frames = running.offered_frames()? - frames_before;
        let time_ns = start.elapsed().as_secs_f64() * 1e9;
        self.control.end(running);
        Ok(time_ns / as_f64(frames.max(1)))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a slice is described by all of them"
    )]
    fn slice(
        &mut self,
        family: AddressFamily,
        running: &RunningSender,
        sink: &Receivers,
        name: &VariantName,
        round: u32,
        position: u32,
        settle: Duration,
    ) -> Result<SliceRecord, LabError> {
        let switching = Instant::now();
        let start_utc = now_utc();
        self.switch(family, name)?;
        let switched = Instant::now();
        let variant = self.variant(name);
        let (dut, mut site) = self.dut_at_site(family);
        let moved = moved(dut.read_back(&mut site, variant))?;
        sleep_until(switched + settle);
        let drops_before = self.drops(family)?;
        let cpu = self.placement.forwarding_cpu();
        let steal_before_s = steal_s(cpu);

        let length = Duration::from_millis(self.resolved.design.slice_ms.into());
        let Watch {
            samples,
            offered_frames,
        } = watch(
            cpu,
            length,
            || Ok(sink.forwarded_frames()?),
            || Ok(running.offered_frames()?),
        )?;
        let (start, end) = (samples[0], samples[samples.len() - 1]);

        let steal_s = steal_s(cpu) - steal_before_s;
        // What waits to be checked has only so much room.
        sink.counts()?;
        let dropped = difference(&drops_before, &self.drops(family)?);
        // At the slice's end, so that what was changed inside it is seen too.
        let moved = match moved {
            None => {
                let (dut, mut site) = self.dut_at_site(family);
                self::moved(dut.prove_unmoved(&mut site, variant))?
            }
            moved => moved,
        };
        let time_s = (end.at - start.at).as_secs_f64();
        let forwarded_frames = end.forwarded_frames - start.forwarded_frames;
        let slice = SliceRecord {
            family,
            round,
            position,
            variant: name.clone(),
            start_s: (start.at - self.started).as_secs_f64(),
            time_s,
            offered_frames,
            forwarded_frames,
            undisturbed_s: time_s,
            undisturbed_frames: forwarded_frames,
            dropped_frames: dropped.values().sum(),
            calibration_ns: samples
                .iter()
                .map(|sample| sample.loop_ns)
                .min()
                .unwrap_or_default(),
            steal_s,
            switch_s: (switched - switching).as_secs_f64(),
        };
        let evidence = self
            .evidence
            .entry((family, name.clone()))
            .or_insert_with(|| TrialEvidence {
                start: start_utc,
                ..TrialEvidence::default()
            });
        for (reason, frames) in dropped {
            *evidence.drops.entry(reason).or_default() += frames;
        }
        evidence.settings_moved = evidence.settings_moved.take().or(moved);
        self.samples.push(samples);
        Ok(slice)
    }

    fn switch(&mut self, family: AddressFamily, name: &VariantName) -> Result<(), LabError> {
        let variant = self.variant(name);
        let (dut, mut site) = self.dut_at_site(family);
        dut.apply(&mut site, variant)
    }

    /// What sets the DUT, and what it is set in, for one family's frames.
    fn dut_at_site(&mut self, family: AddressFamily) -> (&mut Dut, Site<'_>) {
        let site = Site {
            topology: &mut self.topology,
            journal: self.changes.0,
            family,
        };
        (&mut self.dut, site)
    }

    fn variant(&self, name: &VariantName) -> &'a Variant {
        self.resolved
            .variant(name)
            .expect("plans are made of the experiment's variants")
    }

    fn drops(&mut self, family: AddressFamily) -> Result<Drops, LabError> {
        let forwarder = self.dut.forwarder();
        let programs: Vec<_> = forwarder
            .map(|program| ("XDP forwarder", program, FORWARDER_DROPPED))
            .into_iter()
            .collect();
        let direction = self.resolved.traffic.direction;
        drops(
            &mut self.topology,
            family,
            direction,
            &self.control,
            &programs,
        )
    }

    fn pace(&self) -> Pace {
        match (
            self.resolved.traffic.regime,
            self.resolved.traffic.intended_load_pps,
        ) {
            (LoadRegime::Paced, Some(pps)) => Pace::Paced {
                pps,
                burst_frames: self.resolved.traffic.burst_frames,
            },
            _ => Pace::SelfClocked,
        }
    }

    fn stop_if_asked(&self) -> Result<(), LabError> {
        if self.interrupts.requests() > 1 {
            Err(LabError::Interrupted)
        } else {
            Ok(())
        }
    }
}

/// What became of a variant's probe frames.
struct ProbeOutcome {
    counts: SinkCounts,
    /// What never came, where as many frames came as were sent.
    missing: Option<String>,
    /// Whether all came, of every flow and size, and as they should.
    is_right: bool,
}

/// Sends a frame of every flow and every size, and waits for them.
fn send_probe(family: &mut Family, traffic: &Traffic) -> Result<ProbeOutcome, LabError> {
    let sent = family.probe_frames;
    family.sink.reset_to_check_all()?;
    let mut sent_so_far = 0;
    let mut is_lossless = true;
    while sent_so_far < sent {
        let batch = PROBE_BATCH.min(sent - sent_so_far);
        if sent_so_far == 0 {
            family.generator.send(batch)?;
        } else {
            family.generator.send_more(batch)?;
        }
        sent_so_far += batch;
        // Once a frame is lost, waiting for the others would only take its time each time.
        if is_lossless {
            let arrived = settled(
                || Ok(family.sink.counts()?.forwarded_frames),
                |&arrived| arrived >= u64::from(sent_so_far),
            )?;
            is_lossless = arrived >= u64::from(sent_so_far);
        }
    }
    let counts = settled(
        || Ok(family.sink.counts()?),
        |counts| counts.forwarded_frames >= u64::from(sent),
    )?;
    let flows = traffic.flows_in_all_directions();
    let flows_seen = family.sink.flows_seen()?;
    let are_complete = counts.forwarded_frames == u64::from(sent);
    let missing = if !are_complete {
        None
    } else if flows_seen != flows {
        Some(format!("of {flows} flows it saw {flows_seen}"))
    } else if !family.sink.all_sizes_seen()? {
        Some("not every size of frame came".to_owned())
    } else {
        None
    };
    Ok(ProbeOutcome {
        is_right: are_complete && counts.wrong_frames() == 0 && missing.is_none(),
        missing,
        counts,
    })
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

/// The records of a block's trials.
fn trials(
    resolved: &Resolved,
    planned: &PlannedBlock,
    block: &BlockRecord,
    slices: &[SliceRecord],
    mut evidence: BTreeMap<(AddressFamily, VariantName), TrialEvidence>,
    generator_stopped: &BTreeMap<AddressFamily, String>,
) -> Vec<TrialRecord> {
    let usual_calibration_ns = median(slices.iter().map(|slice| as_f64(slice.calibration_ns)));
    let mut trials = Vec::new();
    for order in &planned.families {
        let traffic = &resolved.traffic;
        let of_family = validity::of_family(
            &block.conservation[&order.family],
            traffic.flows_in_all_directions(),
            generator_stopped.get(&order.family),
        );
        for (position, name) in (0..).zip(&order.rounds[0]) {
            let own: Vec<_> = slices
                .iter()
                .filter(|slice| slice.family == order.family && &slice.variant == name)
                .collect();
            let evidence = evidence
                .remove(&(order.family, name.clone()))
                .unwrap_or_default();
            let measured_s: f64 = own.iter().map(|slice| slice.time_s).sum();
            let forwarded_frames: u64 = own.iter().map(|slice| slice.forwarded_frames).sum();
            let basis = block.rate_basis[&order.family];
            let mut trial = TrialRecord {
                schema: SCHEMA_VERSION,
                session: block.session,
                block: block.block,
                attempt: block.attempt,
                order: position,
                variant: name.clone(),
                family: order.family,
                start: evidence.start.clone(),
                measured_s,
                offered_frames: own.iter().map(|slice| slice.offered_frames).sum(),
                forwarded_frames,
                drops: evidence.drops.clone(),
                kernel_drop_reasons: evidence.kernel_drop_reasons.clone(),
                undisturbed_s: own.iter().map(|slice| slice.undisturbed_s).sum(),
                observation_pps: fwdlab_stats::observation(
                    &counted(slices, order.family, name, basis),
                    resolved.design.shortest_counted_s(),
                )
                .map_or(f64::NAN, |observation| {
                    observation.median_forwarding_rate_pps
                }),
                pooled_pps: as_f64(forwarded_frames) / measured_s,
                steal_s: own.iter().map(|slice| slice.steal_s).sum(),
                calibration_ns: median(own.iter().map(|slice| as_f64(slice.calibration_ns))),
                invalid: of_family.clone(),
            };
            trial.invalid.extend(validity::of_trial(
                &trial,
                &evidence,
                usual_calibration_ns,
                traffic,
            ));
            trials.push(trial);
        }
    }
    trials
}

/// What was read back where it was not the variant's.
fn moved(read_back: Result<(), LabError>) -> Result<Option<String>, LabError> {
    match read_back {
        Ok(()) => Ok(None),
        Err(error @ LabError::ReadBack { .. }) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Reads until it is enough, for a bounded time.
fn settled<T>(
    mut read: impl FnMut() -> Result<T, LabError>,
    is_enough: impl Fn(&T) -> bool,
) -> Result<T, LabError> {
    const STEP_MS: u64 = 5;
    let mut last = read()?;
    for _ in 0..DRAIN_MS_MAX / STEP_MS {
        if is_enough(&last) {
            break;
        }
        sleep(Duration::from_millis(STEP_MS));
        last = read()?;
    }
    Ok(last)
}

fn sleep_until(deadline: Instant) {
    sleep(deadline.saturating_duration_since(Instant::now()));
}

fn now_utc() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    fwdlab_stats::median(&values.collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of frames stay far below 2^53"
)]
fn as_f64(count: u64) -> f64 {
    count as f64
}
