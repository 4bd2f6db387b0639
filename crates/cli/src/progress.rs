//! How far a run is: a bar on a terminal, a line a block elsewhere.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use fwdlab_lab::{BlockOutcome, LabEvent};
use fwdlab_model::Resolved;
use fwdlab_plan::{BlockRequest, Overheads, PlanRun};
use fwdlab_report::format::duration;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// What set-up and switches take before any was measured: what they took on a small virtual
/// machine.
pub(crate) const FIRST_GUESS: Overheads = Overheads {
    set_up_s: 0.5,
    switch_s: 0.015,
    family_s: 0.4,
};

/// Tells how far a run is.
pub(crate) struct Progress {
    bar: ProgressBar,
    lines: bool,
    resolved: Resolved,
    blocks: usize,
    overheads: Overheads,
    started: Instant,
    block_started: Instant,
    left_at_block_start_s: f64,
    doing: String,
}

impl Progress {
    pub(crate) fn new(quiet: bool, resolved: &Resolved, run: &PlanRun) -> Self {
        let on_terminal = io::stderr().is_terminal();
        let bar = if quiet || !on_terminal {
            ProgressBar::hidden()
        } else {
            ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr())
        };
        let style = ProgressStyle::with_template("{bar:30.cyan/dim} {percent:>3} %  {wide_msg}")
            .expect("the template is fixed");
        bar.set_style(style);
        let now = Instant::now();
        Self {
            bar,
            lines: !quiet && !on_terminal,
            resolved: resolved.clone(),
            blocks: run.plan().blocks.len(),
            overheads: FIRST_GUESS,
            started: now,
            block_started: now,
            left_at_block_start_s: 0.0,
            doing: String::new(),
        }
    }

    /// How long the open blocks will take, in seconds.
    pub(crate) fn left_s(&self, run: &PlanRun) -> f64 {
        self.overheads.blocks_s(run.open_blocks(), &self.resolved)
    }

    pub(crate) fn block_starts(&mut self, request: &BlockRequest, run: &PlanRun) {
        self.block_started = Instant::now();
        self.left_at_block_start_s = self.left_s(run);
        self.doing = format!("block {} of {}", request.block.number, self.blocks);
        if request.attempt > 1 {
            self.doing += &format!(" (attempt {})", request.attempt);
        }
        self.show("setting up");
    }

    pub(crate) fn event(&self, event: &LabEvent<'_>) {
        match event {
            LabEvent::SetUp => {}
            LabEvent::Ready { .. } => self.show("every variant forwards its probe frames"),
            LabEvent::Slice(slice) => {
                self.show(&format!(
                    "round {} of {}",
                    slice.round, self.resolved.design.rounds
                ));
            }
            LabEvent::Profile(variant) => self.show(&format!("sampling the stacks of {variant}")),
        }
    }

    pub(crate) fn block_ends(&mut self, outcome: &BlockOutcome, run: &PlanRun) {
        self.overheads.set_up_s = outcome.block.set_up_s;
        self.overheads.switch_s = outcome.block.switch_s;
        let invalid: Vec<_> = outcome
            .trials
            .iter()
            .filter(|trial| !trial.invalid.is_empty())
            .collect();
        let state = match invalid.first() {
            None => "valid".to_owned(),
            Some(trial) => format!(
                "invalid ({} {}: {})",
                trial.variant,
                trial.family,
                trial
                    .invalid
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; ")
            ),
        };
        if self.lines || !invalid.is_empty() {
            self.say(&format!(
                "{}: {state}, {:.1} s, about {} left",
                self.doing,
                self.block_started.elapsed().as_secs_f64(),
                duration(self.left_s(run)),
            ));
        }
    }

    /// A line above the bar.
    pub(crate) fn say(&self, text: &str) {
        if self.lines {
            output::tell(text);
        } else {
            self.bar.println(text);
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self, what: &str) {
        let in_block_s = self.block_started.elapsed().as_secs_f64();
        let left_s = (self.left_at_block_start_s - in_block_s).max(0.0);
        let done = self.started.elapsed();
        self.bar
            .set_length(milliseconds(done + Duration::from_secs_f64(left_s)).max(1));
        self.bar.set_position(milliseconds(done));
        self.bar
            .set_message(format!("{}, {what}, {} left", self.doing, duration(left_s)));
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
