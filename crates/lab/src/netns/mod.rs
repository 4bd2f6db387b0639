//! The `netns` lab: this machine's kernel forwards between two veth pairs, self-clocked, paced or
//! overloaded.

mod dut;
mod dut_settings;
mod forwarder;
mod in_process;
mod losses;
mod measurement;
mod probe;
mod quiet;
mod undo;

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use fwdlab_model::{Direction, Lab, Resolved, Tester};
use fwdlab_stats::as_f64;
use fwdlab_sys::Interrupts;
use fwdlab_traffic::TrafficError;

pub(crate) use self::undo::ThisMachine;

use self::dut::Dut;
use self::measurement::{Measurement, Prepared};
use crate::block::{BlockOutcome, BlockRun, LabEvent};
use crate::cpu_account::CpuAccount;
use crate::journal::Journal;
use crate::placement::{load_unavailable, placement};
use crate::profiler::{Place, unavailable};
use crate::sequence::{Sequence, stop_if_asked};
use crate::tester::TesterChoice;
use crate::topology::counting;
use crate::validity::AskedLoad;
use crate::watch::{prove_cpu_is_free, watch};
use crate::{Choices, LabError, Topology};

/// The name of the journal of what is changed on this machine.
const JOURNAL: &str = "netns";

/// How finely [`NetnsLab::settling`] looks.
pub const SETTLING_STEP: Duration = Duration::from_millis(10);

/// How often a block is begun.
const ATTEMPTS: u32 = 3;

/// How many such intervals after a switch.
const SETTLING_STEPS: u32 = 20;

/// A lab out of this machine's kernel.
pub struct NetnsLab {
    /// What it works with; a test may have it measure with another tester than the best that works.
    pub choices: Choices,
    resolved: Resolved,
    interrupts: Interrupts,
    journal: Journal,
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

    /// Opens the lab: chooses the CPUs, and the best tester that works.
    ///
    /// # Errors
    /// `Cpu`, or what the kernel refuses.
    pub fn open(
        resolved: &Resolved,
        state_directory: &Path,
        interrupts: Interrupts,
    ) -> Result<Self, LabError> {
        let journal = Journal::open(state_directory, JOURNAL, Rc::new(ThisMachine))?;
        let placement = placement(resolved, &fwdlab_sys::online_cpus()?)?;
        prove_cpu_is_free(placement.load_cpu)?;
        prove_cpu_is_free(placement.forwarding_cpu())?;
        let mut resolved = resolved.clone();
        let cpu = placement.forwarding_cpu();
        let profiles_unavailable = resolved.profiling.and_then(|_| {
            if resolved.has_forwarder() {
                let why = "a forwarder in user space spends its time outside the kernel, whose stacks alone are sampled";
                return Some(why.to_owned());
            }
            unavailable(Place { cpu, thread: None })
        });
        if profiles_unavailable.is_some() {
            resolved.profiling = None;
        }
        Ok(Self {
            choices: Choices {
                placement,
                tester: TesterChoice::probe()?,
                profiles_unavailable,
            },
            resolved,
            interrupts,
            journal,
        })
    }

    /// Why this machine cannot have a variant, for each variant of the experiment.
    ///
    /// # Errors
    /// When the lab cannot be made at all.
    pub fn unavailable(&self) -> Result<Vec<Option<String>>, LabError> {
        let Choices {
            placement, tester, ..
        } = &self.choices;
        let needs_root = (placement.dut_cpu.is_some() && !fwdlab_sys::is_root()).then(|| {
            "only root can give the DUT a CPU of its own (dut_cpu); run fwdlab as root (sudo)"
                .into()
        });
        let is_bidirectional = self.resolved.direction() == Direction::Both;
        let lacks_ebpf = tester.tester != Tester::Ebpf;
        let needs_ebpf = (is_bidirectional && lacks_ebpf).then(|| {
            "frames in both directions are made by eBPF programs, which this process may not load; \
             run fwdlab as root (sudo), or ask for direction = \"forward\""
                .into()
        });
        let holds_back = (self.resolved.has_forwarder() && lacks_ebpf).then(|| {
            "an eBPF program keeps the frames from the kernel that a forwarder in user space takes, and this process may not \
             load it; run fwdlab as root (sudo)"
                .into()
        });
        let unavailable = load_unavailable(&self.resolved, placement);
        if let Some(reason) = unavailable.or(needs_root).or(needs_ebpf).or(holds_back) {
            return Ok(vec![Some(reason); self.resolved.variants.len()]);
        }
        let mut topology = Topology::build()?;
        let mut dut = Dut::new(&self.resolved, placement, tester.tester, &topology)?;
        self.resolved
            .variants
            .iter()
            .map(|variant| dut.unavailable(&mut topology, variant))
            .collect()
    }

    /// Measures one block on a fresh set-up. Where others take the CPUs for so long that the load cannot be held, the
    /// block is begun anew, some times.
    ///
    /// # Errors
    /// When the lab cannot be set up, a variant does not forward its probe frames, the kernel
    /// refuses something, or the user asks to stop now. Nothing of the set-up remains.
    pub fn measure(&mut self, run: &mut BlockRun<'_>) -> Result<BlockOutcome, LabError> {
        for _ in 1..ATTEMPTS {
            let outcome = self.measure_once(run);
            let Some(why) = outcome.as_ref().err().and_then(why_not_held) else {
                return outcome;
            };
            (run.on_event)(LabEvent::Again { why });
        }
        self.measure_once(run)
    }

    fn measure_once(&mut self, run: &mut BlockRun<'_>) -> Result<BlockOutcome, LabError> {
        let _pinned = fwdlab_sys::PinnedThread::to_cpu(self.choices.placement.control_cpu)?;
        let planned = run.planned;
        let regime = self.resolved.regime();
        let mut sequence = Sequence::begin(&self.resolved, regime, self.interrupts, run)?;
        let mut measurement = Measurement::start(
            &self.resolved,
            &self.choices.placement,
            self.choices.tester.tester,
            &mut self.journal,
            self.interrupts,
        )?;
        let mut strata = Vec::new();
        for order in &planned.strata {
            strata.push(measurement.prepare(order.stratum, order.variants())?);
        }
        sequence.is_ready();

        for (order, prepared) in planned.strata.iter().zip(strata) {
            measurement.measure_stratum(prepared, order, &mut sequence)?;
        }
        let Measurement { log, changes, .. } = measurement;
        changes.0.undo_all()?;
        drop(changes);
        Ok(sequence.outcome(log, &AskedLoad::of(&self.resolved)))
    }

    /// How the forwarding rate settles after each of some switches from one variant to the next.
    ///
    /// Shape: one entry a switch, with the rate in each of the following intervals of
    /// [`SETTLING_STEP`], in frames per second.
    ///
    /// # Errors
    /// Those of [`measure`](Self::measure).
    pub fn settling(&mut self, switches: u32) -> Result<Vec<Vec<f64>>, LabError> {
        let _pinned = fwdlab_sys::PinnedThread::to_cpu(self.choices.placement.control_cpu)?;
        let variants: Vec<_> = self
            .resolved
            .variants
            .iter()
            .filter(|variant| variant.unavailable.is_none())
            .map(|variant| variant.name.clone())
            .collect();
        let mut measurement = Measurement::start(
            &self.resolved,
            &self.choices.placement,
            self.choices.tester.tester,
            &mut self.journal,
            self.interrupts,
        )?;
        let mut strata = self.resolved.strata();
        let stratum = strata.next().expect("an experiment has a stratum");
        let Prepared {
            generator,
            mut sink,
            ..
        } = measurement.prepare(stratum, &variants)?;
        sink.reset()?;
        let tester = measurement.topology.tester();
        tester.run(|| sink.attach(counting(self.resolved.direction())))??;
        let mut load = measurement.start_load(stratum, generator)?;
        load.sender.release();
        let asked = self.resolved.traffic(stratum).load;
        let mut settlings = Vec::new();
        for name in variants.iter().cycle().take(switches as usize) {
            stop_if_asked(self.interrupts)?;
            measurement.switch_under_load(name, (stratum, asked), &mut load, &mut sink)?;
            let forwarded = || Ok(sink.forwarded_frames()?);
            let mut rates_pps = Vec::new();
            for _ in 0..SETTLING_STEPS {
                let samples = watch(
                    self.choices.placement.load_cpu,
                    SETTLING_STEP,
                    &CpuAccount::None,
                    forwarded,
                    forwarded,
                )?
                .samples;
                let (start, end) = (samples[0], samples[samples.len() - 1]);
                let frames = end.forwarded_frames - start.forwarded_frames;
                rates_pps.push(as_f64(frames) / (end.at - start.at).as_secs_f64());
            }
            settlings.push(rates_pps);
        }
        load.sender.finish().1?;
        Ok(settlings)
    }
}

/// Why a load was not held, which passes by itself; none for other errors.
fn why_not_held(error: &LabError) -> Option<String> {
    let what = match error {
        LabError::Traffic(TrafficError::NotHeld { seconds }) => {
            format!("the generator still sent {seconds} s after fwdlab held it")
        }
        LabError::UnderWay { frames, seconds } => {
            format!("{frames} frames had not arrived {seconds} s after the last one was sent")
        }
        _ => return None,
    };
    Some(format!("others took the CPU of the load: {what}"))
}
