//! How far a run is: a live view on a terminal, a line a block elsewhere.

use std::time::{Duration, Instant};

use fwdlab_archive::Loaded;
use fwdlab_lab::{BlockOutcome, LabEvent};
use fwdlab_model::{BlockRecord, Resolved, TrialRecord};
use fwdlab_plan::{BlockRequest, Estimate, PlanRun};
use fwdlab_report::format::duration;
use fwdlab_report::{BlockUnderWay, LiveView, Moment, Reader, RunState, block_outcome};

use crate::output;
use crate::screen::Screen;

/// An estimate with what the blocks of a run have taken so far.
pub(crate) fn learnt(estimate: Estimate, loaded: &Loaded) -> Estimate {
    let records = loaded.attempts.iter().map(|attempt| &attempt.record);
    estimate.learnt(&loaded.resolved, &loaded.plan, records)
}

/// What became of a block, of so many, in a line.
pub(crate) fn block_line(block: &BlockRecord, planned: usize, trials: &[TrialRecord]) -> String {
    let again = match block.attempt {
        1 => String::new(),
        number => format!(" (attempt {number})"),
    };
    let (number, outcome) = (block.block, block_outcome(trials));
    format!("block {number} of {planned}{again}: {outcome}")
}

/// How long the view stays as it is inside a block.
const REDRAW: Duration = Duration::from_millis(300);

/// Tells how far a run is.
///
/// A block is measured on the same machine, so nothing is reckoned while it is: effects and intervals
/// are made anew between blocks, and inside one only the line of its progress changes, a few times a
/// second and from the thread that controls the block, between two of its slices.
pub(crate) struct Progress {
    screen: Option<Screen>,
    /// Whether a line is told for every block.
    lines: bool,
    /// Made between blocks.
    view: Option<LiveView>,
    resolved: Resolved,
    blocks: usize,
    /// The estimate before any block of this run was measured.
    before: Estimate,
    estimate: Estimate,
    started: Instant,
    block_started: Instant,
    drawn: Option<Instant>,
    /// How long the blocks after the one under way take.
    behind_block_s: f64,
    /// The block under way, how often it was begun, and how long it takes.
    block: Option<(u32, u32, f64)>,
}

impl Progress {
    /// `before` is the estimate by earlier runs, or [`Estimate::first`].
    pub(crate) fn new(quiet: bool, before: Estimate, loaded: &Loaded, run: &PlanRun) -> Self {
        let screen = if quiet { None } else { Screen::on_stderr() };
        let now = Instant::now();
        let mut progress = Self {
            lines: !quiet && screen.is_none(),
            screen,
            view: None,
            resolved: loaded.resolved.clone(),
            blocks: run.plan().blocks.len(),
            before,
            estimate: learnt(before, loaded),
            started: now,
            block_started: now,
            drawn: None,
            behind_block_s: 0.0,
            block: None,
        };
        progress.look(loaded);
        progress
    }

    /// How long the open blocks will take, in words.
    pub(crate) fn left(&self, run: &PlanRun) -> String {
        match self.estimate.known() {
            Some(overheads) => {
                let left_s = overheads.left_s(run, &self.resolved, 0.0);
                format!("about {}", duration(left_s))
            }
            None => "time not known".to_owned(),
        }
    }

    pub(crate) fn block_starts(&mut self, request: &BlockRequest, run: &PlanRun) {
        self.block_started = Instant::now();
        let overheads = self.estimate.overheads();
        let block_s = overheads.block_s(&request.block, &self.resolved);
        self.behind_block_s = overheads.left_s(run, &self.resolved, block_s);
        self.block = Some((request.block.number, request.attempt, block_s));
        self.draw("setting up");
    }

    pub(crate) fn event(&mut self, event: &LabEvent<'_>) {
        match event {
            LabEvent::Again { why } => self.say(&format!("{why}; repeating this block")),
            LabEvent::NotSentBy { better, why } => self.say(&format!(
                "the tester does not send by {}: {why}",
                better.sender()
            )),
            LabEvent::Unseen { why } => self.say(why),
            LabEvent::Boot { into } => self.draw(&format!("booting {into}")),
            LabEvent::FindsLoad | LabEvent::SetUp => {}
            _ if self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) => {}
            LabEvent::Ready { .. } => self.draw("every variant forwards its probe frames"),
            LabEvent::Slice(slice) => {
                let phase = format!("round {} of {}", slice.round, self.resolved.design.rounds);
                self.draw(&phase);
            }
            LabEvent::Profile(variant) => self.draw(&format!("sampling the stacks of {variant}")),
        }
    }

    pub(crate) fn block_ends(&mut self, outcome: &BlockOutcome, run: &PlanRun, loaded: &Loaded) {
        self.estimate = learnt(self.before, loaded);
        if self.lines {
            output::tell(&format!(
                "{}, {:.1} s, {} left",
                block_line(&outcome.block, self.blocks, &outcome.trials),
                self.block_started.elapsed().as_secs_f64(),
                self.left(run),
            ));
        }
        self.look(loaded);
    }

    /// Reckons what the blocks say so far.
    fn look(&mut self, loaded: &Loaded) {
        if self.screen.is_some() {
            // A picture that cannot be made stops no run; its report says why.
            self.view = LiveView::build(loaded).ok();
        }
    }

    /// A line above the view.
    pub(crate) fn say(&self, text: &str) {
        if self.lines {
            output::tell(text);
        } else if let Some(screen) = &self.screen {
            screen.say(text);
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(screen) = &self.screen {
            screen.clear();
        }
    }

    fn draw(&mut self, phase: &str) {
        let (Some(screen), Some(view)) = (&self.screen, &self.view) else {
            return;
        };
        let in_block_s = self.block_started.elapsed().as_secs_f64();
        let block_s = self.block.map_or(0.0, |(_, _, block_s)| block_s);
        let block = self.block.map(|(number, attempt, block_s)| BlockUnderWay {
            number,
            attempt,
            phase: phase.to_owned(),
            part: (in_block_s / block_s.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0),
        });
        let moment = Moment {
            state: RunState::Running,
            block,
            elapsed_s: Some(self.started.elapsed().as_secs_f64()),
            left_s: (self.estimate.known())
                .map(|_| (block_s - in_block_s).max(0.0) + self.behind_block_s),
        };
        screen.draw(&view.lines(&moment, &screen.frame(Reader::Run)));
        self.drawn = Some(Instant::now());
    }
}
