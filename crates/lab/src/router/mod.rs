//! The `router` lab: the reference router inside this process, frames in memory, no privilege needed.

mod arrangement;
mod engine;
mod load;
mod network;
mod setting;
mod tester;
mod threads;

use fwdlab_model::{Environment, LoadRecord, LoadRegime, Resolved, RouterTester};
use fwdlab_sys::{Interrupts, PinnedThread};

use self::arrangement::Machine;
use self::engine::Measurement;
use self::load::SettledLoad;
use crate::profiler;
use crate::sequence::Sequence;
use crate::watch::prove_cpu_is_free;
use crate::{BlockOutcome, BlockRun, Choices, LabError};

/// A lab out of the reference router.
pub struct RouterLab {
    /// What it works with; the load that is settled chooses anew.
    pub choices: Choices,
    resolved: Resolved,
    machine: Machine,
    interrupts: Interrupts,
    load: SettledLoad,
    /// As it was before anything was sent; none until the load is settled.
    environment: Option<Environment>,
    /// Of each variant of the experiment.
    unavailable: Vec<Option<String>>,
}

impl RouterLab {
    /// Opens the lab: finds out which variants this machine can have.
    ///
    /// # Errors
    /// `Cpu` where the lab file names one that this process may not use, `Oversubscribed` where it asks
    /// for threads that have no CPU.
    pub fn open(resolved: &Resolved, interrupts: Interrupts) -> Result<Self, LabError> {
        let machine = Machine::look(resolved)?;
        let mut resolved = resolved.clone();
        let unavailable = machine.unavailable(&resolved)?;
        for (variant, reason) in resolved.variants.iter_mut().zip(&unavailable) {
            variant.unavailable.clone_from(reason);
        }
        let own = profiler::Place {
            cpu: machine.in_turns_cpu(),
            thread: Some(fwdlab_sys::this_thread()),
        };
        let profiles_unavailable = resolved.profiling.and_then(|_| profiler::unavailable(own));
        if profiles_unavailable.is_some() {
            resolved.profiling = None;
        }
        let options = resolved.lab.router.unwrap_or_default();
        if options.tester == RouterTester::Threaded && machine.beside(&resolved)?.is_none() {
            return Err(LabError::Oversubscribed {
                queues: options.queues,
                cpus: machine.cpus(),
            });
        }
        let load = SettledLoad::in_turns(machine.in_turns(&resolved));
        let (placement, tester) = machine.settled(&load);
        Ok(Self {
            choices: Choices {
                placement,
                tester,
                profiles_unavailable,
            },
            resolved,
            machine,
            interrupts,
            load,
            environment: None,
            unavailable,
        })
    }

    /// Settles where threads go and how much is offered; under overload it measures for some two seconds
    /// a stratum how much the baseline forwards at most and whether the tester can offer more. Where a
    /// run goes on, it is the load of its first session.
    ///
    /// # Errors
    /// What the router refuses, or the wish to stop now.
    pub fn settle_load(&mut self, first: Option<&LoadRecord>) -> Result<(), LabError> {
        self.environment = Some(crate::environment());
        let in_turns = self.machine.in_turns(&self.resolved);
        let beside = self.machine.beside(&self.resolved)?;
        let (queues, cpus) = (self.queues(), self.machine.cpus());
        let beside = beside.ok_or_else(|| {
            format!(
                "{queues} queues with a worker each and a tester need {} CPUs, and there are {cpus}",
                queues + 1
            )
        });
        self.load = SettledLoad::settle(&self.resolved, in_turns, beside, first, self.interrupts)?;
        (self.choices.placement, self.choices.tester) = self.machine.settled(&self.load);
        prove_cpu_is_free(self.choices.placement.load_cpu)?;
        prove_cpu_is_free(self.choices.placement.forwarding_cpu())
    }

    /// Whether the load is to be found out by measuring.
    #[must_use]
    pub fn measures_load(&self) -> bool {
        let options = self.resolved.lab.router.unwrap_or_default();
        self.resolved.regime() == LoadRegime::Overload && options.tester != RouterTester::Inline
    }

    fn queues(&self) -> u32 {
        self.resolved.lab.router.unwrap_or_default().queues
    }

    /// The load regime that this machine allows, and what was measured to settle it.
    #[must_use]
    pub fn load(&self) -> &LoadRecord {
        &self.load.record
    }

    /// What the machine is that forwards.
    #[must_use]
    pub fn environment(&self) -> Environment {
        self.environment.clone().unwrap_or_else(crate::environment)
    }

    /// Why this machine cannot have a variant, for each variant of the experiment.
    #[must_use]
    pub fn unavailable(&self) -> Vec<Option<String>> {
        self.unavailable.clone()
    }

    /// Measures one block on a fresh set-up.
    ///
    /// # Errors
    /// When a variant does not forward its probe frames, the router refuses something, or the user asks
    /// to stop now. Nothing of the set-up remains.
    pub fn measure(&mut self, run: &mut BlockRun<'_>) -> Result<BlockOutcome, LabError> {
        let _pinned = PinnedThread::to_cpu(self.choices.placement.control_cpu)?;
        let planned = run.planned;
        let regime = self.load.record.regime;
        let mut sequence = Sequence::begin(&self.resolved, regime, self.interrupts, run)?;
        let mut measurement = Measurement::start(
            &self.resolved,
            &self.load.arrangements,
            regime,
            self.interrupts,
        )?;
        let mut strata = Vec::new();
        for order in &planned.strata {
            strata.push(measurement.prepare(order.stratum, order.variants())?);
        }
        sequence.is_ready();
        for (order, prepared) in planned.strata.iter().zip(&strata) {
            measurement.measure_stratum(prepared, order, &self.load, &mut sequence)?;
        }
        Ok(sequence.outcome(measurement.log, &self.load.asked()))
    }
}
