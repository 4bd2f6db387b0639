//! A run seen from outside: what is written of it, and whether anybody measures. Only reads.

use std::path::Path;
use std::time::SystemTime;

use fwdlab_archive::input::read_derived;
use fwdlab_archive::{Loaded, Results, Stamp};
use fwdlab_plan::{Estimate, Overheads, PlanRun};
use fwdlab_report::{BlockUnderWay, LiveView, Moment, RunState};
use jiff::Timestamp;
use serde::Deserialize;

use crate::progress::learnt;

/// A results directory as it was when it was read.
pub(crate) struct Seen {
    pub(crate) loaded: Loaded,
    pub(crate) view: LiveView,
    plan_run: PlanRun,
    stamp: Stamp,
}

impl Seen {
    pub(crate) fn read(directory: &Path) -> anyhow::Result<Self> {
        let stamp = Stamp::of(directory);
        let loaded = Results::load(directory)?;
        Ok(Self {
            view: LiveView::build(&loaded)?,
            plan_run: PlanRun::resume(loaded.plan.clone(), &loaded.records),
            loaded,
            stamp,
        })
    }

    /// Whether nothing was written since.
    pub(crate) fn is_current(&self) -> bool {
        self.stamp == Stamp::of(&self.loaded.dir)
    }

    /// Whether the run goes on, given who held the directory before it was read: a run lets go of it after
    /// it has written all that it writes.
    pub(crate) fn state(&self, holder: Option<u32>) -> RunState {
        if self.loaded.finished.is_some() {
            RunState::Finished
        } else if holder.is_some() {
            RunState::Running
        } else if self.is_published() {
            RunState::Stopped
        } else {
            RunState::Died
        }
    }

    /// Whether there is a report of the very records. A run that ends in order writes one, however far it
    /// came; one that had no session yet had nothing to report.
    fn is_published(&self) -> bool {
        #[derive(Deserialize)]
        struct Published {
            progress: PublishedProgress,
            lab: PublishedLab,
            trials: Vec<serde::de::IgnoredAny>,
        }
        #[derive(Deserialize)]
        struct PublishedProgress {
            measured_blocks: usize,
        }
        #[derive(Deserialize)]
        struct PublishedLab {
            sessions: usize,
        }
        let loaded = &self.loaded;
        if loaded.sessions.is_empty() {
            return true;
        }
        let Ok(text) = read_derived(&loaded.dir, "report.json") else {
            return false;
        };
        let published: Result<Published, _> = serde_json::from_slice(&text);
        published.is_ok_and(|published| {
            published.progress.measured_blocks == loaded.accepted().len()
                && published.lab.sessions == loaded.sessions.len()
                && published.trials.len() == loaded.trials().count()
        })
    }

    /// How things stand now.
    pub(crate) fn moment(&self, state: RunState) -> Moment {
        let mut moment = Moment {
            state,
            block: None,
            elapsed_s: None,
            left_s: None,
        };
        if state != RunState::Running {
            return moment;
        }
        let resolved = &self.loaded.resolved;
        let estimate = learnt(Estimate::first(resolved), &self.loaded);
        // The block began about when the last thing was written.
        let since = self.stamp.newest();
        let since = since.and_then(|written| SystemTime::now().duration_since(written).ok());
        let in_block_s = since.map_or(0.0, |since| since.as_secs_f64());
        moment.elapsed_s = self.elapsed_s();
        let left_s = |overheads: Overheads| overheads.left_s(&self.plan_run, resolved, in_block_s);
        moment.left_s = estimate.known().map(left_s);
        moment.block = self.plan_run.poll_block().map(|request| {
            let block_s = estimate.overheads().block_s(&request.block, resolved);
            BlockUnderWay {
                number: request.block.number,
                attempt: request.attempt,
                // What is done inside a block is written at its end.
                phase: String::new(),
                part: (in_block_s / block_s.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0),
            }
        });
        moment
    }

    fn elapsed_s(&self) -> Option<f64> {
        let start: Timestamp = self.loaded.sessions.last()?.start.parse().ok()?;
        let elapsed = Timestamp::now().duration_since(start);
        Some(elapsed.as_secs_f64().max(0.0))
    }

    /// Moves this process to the CPU that the run's own harness uses, where it does not disturb the load.
    pub(crate) fn stay_off_the_load_cpu(&self) {
        if let Some(session) = self.loaded.sessions.last() {
            // Where it cannot be moved, the run's watch sees what is disturbed.
            let _ = fwdlab_sys::pin_this_thread(session.placement.control_cpu);
        }
    }
}
