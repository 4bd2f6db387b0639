//! One session: an uninterrupted stretch of blocks, recorded in a results directory, on a machine that is
//! this process's alone.

use std::path::Path;

use anyhow::Context as _;
use fwdlab_archive::{Choice, NewRun, Results};
use fwdlab_lab::{BlockRun, Lab, LabError, MachineClaim};
use fwdlab_model::{
    Environment, InvalidReason, LabKind, Plan, Resolved, SCHEMA_VERSION, SessionRecord,
};
use fwdlab_plan::PlanRun;
use fwdlab_sys::{BothClocks, Interrupts};

use crate::output::tell;
use crate::progress::Progress;

/// What is measured, and where it comes from.
pub(crate) struct Subject<'a> {
    pub(crate) resolved: &'a Resolved,
    pub(crate) plan: &'a Plan,
    /// The experiment file's text, and its path as the user gave it.
    pub(crate) experiment_source: &'a str,
    pub(crate) experiment_path: String,
    pub(crate) lab_path: Option<&'a Path>,
    pub(crate) environment: Environment,
}

/// A session that has begun.
pub(crate) struct Session {
    pub(crate) results: Results,
    record: SessionRecord,
    claim: MachineClaim,
    /// Whether it was of no use to measure the blocks that are left.
    is_given_up: bool,
}

impl Session {
    /// Opens the results directory, on a machine that is claimed.
    pub(crate) fn begin(
        root: &Path,
        choice: &Choice<'_>,
        subject: Subject<'_>,
        lab: &Lab,
        claim: MachineClaim,
    ) -> anyhow::Result<Self> {
        let now = jiff::Timestamp::now();
        let environment = subject.environment;
        let new_run = NewRun {
            resolved: subject.resolved,
            plan: subject.plan,
            experiment_source: subject.experiment_source.as_bytes(),
            kernel: environment.kernel.split(' ').next().unwrap_or_default(),
            started: &now.strftime("%Y%m%dT%H%M%SZ").to_string(),
        };
        let results = Results::open_or_create(root, &new_run, choice)?;
        for warning in &results.loaded().warnings {
            tell(&format!("warning: {warning}"));
        }
        let record = SessionRecord {
            schema: SCHEMA_VERSION,
            session: results.next_session(),
            start: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            fwdlab: env!("CARGO_PKG_VERSION").to_owned(),
            experiment_path: subject.experiment_path,
            lab_path: subject.lab_path.map(|path| path.display().to_string()),
            environment,
            placement: lab.choices().placement.clone(),
            load: None,
        };
        Ok(Self {
            results,
            record,
            claim,
            is_given_up: false,
        })
    }

    /// Gets the lab ready, settles how much is offered, and records where and with what is measured.
    pub(crate) fn settle(&mut self, lab: &mut Lab, quiet: bool) -> anyhow::Result<()> {
        let first = self.results.loaded().sessions.first();
        let first = first.and_then(|session| session.load.as_ref());
        let load = lab.get_ready(first, &mut |event| tell_preparation(&event, quiet))?;
        if !quiet {
            for sentence in load.iter().flat_map(fwdlab_report::settled_load) {
                tell(&sentence);
            }
        }
        self.record.environment = lab.environment();
        self.record.environment.tester = lab.choices().tester.tester;
        self.record.placement = lab.choices().placement.clone();
        self.record.load = load;
        self.results.begin_session(self.record.clone())?;
        Ok(())
    }

    /// Measures until the plan is carried out, or it is of no use to go on; whether it came to that.
    pub(crate) fn measure(
        &mut self,
        lab: &mut Lab,
        plan_run: &mut PlanRun,
        progress: &mut Progress,
        interrupts: Interrupts,
    ) -> anyhow::Result<bool> {
        let mut ended = BothClocks::now();
        while let Some(request) = plan_run.poll_block() {
            let kind = self.results.loaded().resolved.lab.kind;
            if reason_to_end_early(plan_run, kind).is_some() {
                self.is_given_up = true;
                return Ok(true);
            }
            if interrupts.requests() > 0 {
                return Ok(false);
            }
            progress.block_starts(&request, plan_run);
            let mut was_told = false;
            let mut on_event = |event: fwdlab_lab::LabEvent<'_>| {
                if interrupts.requests() > 0 && !was_told {
                    was_told = true;
                    progress.say("finishing this block; Ctrl-C once more stops now");
                }
                progress.event(&event);
            };
            let outcome = lab.measure(&mut BlockRun {
                planned: &request.block,
                slices: plan_run,
                session: self.record.session,
                attempt: request.attempt,
                on_event: &mut on_event,
            });
            let mut outcome = match outcome {
                Err(LabError::Interrupted) => return Ok(false),
                outcome => outcome.with_context(|| format!("block {}", request.block.number))?,
            };
            outcome.block.took_s = Some(ended.elapsed().as_secs_f64());
            outcome.block.clock_step_s = ended.step_s();
            ended = BothClocks::now();
            self.results.append_block(
                &outcome.trials,
                &outcome.block,
                &outcome.slices,
                &outcome.profiles,
            )?;
            plan_run.handle_outcome(&outcome.trials, &outcome.block);
            progress.block_ends(&outcome, plan_run, self.results.loaded());
        }
        Ok(true)
    }

    /// Marks the run as finished: everything is measured, or given up. The machine stays claimed until the answer goes.
    pub(crate) fn finish(self) -> anyhow::Result<MachineClaim> {
        let now = jiff::Timestamp::now().to_string();
        if self.is_given_up {
            self.results.give_up(&now)?;
        } else {
            self.results.finish(&now)?;
        }
        Ok(self.claim)
    }
}

/// Why it is of no use to measure the blocks that are left: what spoils every attempt on this machine does not
/// pass by itself. Hosts have owners, who may mend theirs during the run.
pub(crate) fn reason_to_end_early(plan_run: &PlanRun, kind: LabKind) -> Option<&InvalidReason> {
    let has_blocks_left = plan_run.open_blocks().next().is_some();
    plan_run
        .hopeless()
        .filter(|_| !kind.is_remote() && has_blocks_left)
}

/// Outside a block, boots and measuring the load take a while in which nothing else is to be seen.
pub(crate) fn tell_preparation(event: &fwdlab_lab::LabEvent<'_>, quiet: bool) {
    use fwdlab_lab::LabEvent;

    match event {
        _ if quiet => {}
        LabEvent::FindsLoad => tell("finding out how much the baseline forwards at most"),
        LabEvent::Boot { into } => tell(&format!("the DUT boots {into}")),
        _ => {}
    }
}
