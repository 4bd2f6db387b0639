//! What a run looks like while it is measured: how far it is, and what its blocks say so far.
//!
//! Pure: what is written so far and the moment are given, and lines come out.

mod entry;
mod line;
mod table;

use fwdlab_archive::Loaded;
use fwdlab_model::{InvalidReason, TrialRecord};
use fwdlab_stats::{CONTROL_CONFIDENCE, minimum_blocks};

use crate::build::{command, shell_word};
use crate::error::ReportError;
use crate::format::{counted, duration};
use crate::report::{Progress, Report};
use crate::sentences;
use crate::terminal::Style;
use crate::text::{columns, one_line, wrap_to_columns};
use crate::wrong_frames;
use entry::{Entries, Entry};
use line::{Line, right};

/// The part of the width that the bar takes at most.
const BAR_MAX: usize = 32;
/// Narrower terminals get no bar.
const BAR_WIDTH_MIN: usize = 50;
/// Lines that invalid trials take at most where rows are scarce.
const INVALID_LINES_MAX: usize = 4;

/// A run as far as it is written.
#[derive(Clone, Debug)]
pub struct LiveView {
    question: String,
    progress: Progress,
    sessions: usize,
    sections: Vec<Section>,
    threshold_percent: f64,
    /// Trials, and those of them that are invalid.
    trials: (u64, u64),
    /// Which trials are invalid, and why.
    invalid: Vec<String>,
    /// The command that began the run, without its options; none where no session has begun.
    command: Option<String>,
}

/// A comparison in a stratum.
#[derive(Clone, Debug)]
struct Section {
    heading: Option<String>,
    /// The baseline first.
    entries: Vec<Entry>,
}

/// How things stand with a run at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// Whether it runs.
    pub state: RunState,
    /// The block that is measured now.
    pub block: Option<BlockUnderWay>,
    /// For how long it has been measured in this session.
    pub elapsed_s: Option<f64>,
    /// How long the open blocks will take.
    pub left_s: Option<f64>,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// A process measures.
    Running,
    /// It never changes again.
    Finished,
    /// Nobody measures; it ended in order and can be continued.
    Stopped,
    /// Nobody measures, and it did not end in order; it can be continued.
    Died,
}

/// A block that is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockUnderWay {
    /// Its number.
    pub number: u32,
    /// The attempt at it, from 1.
    pub attempt: u32,
    /// What is done of it now; empty where that is not known.
    pub phase: String,
    /// The part of it that is done, from 0 to 1.
    pub part: f64,
}

/// Who looks, which decides what can be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Whoever started the run, at its terminal.
    Run,
    /// Somebody who watches it from elsewhere.
    Watch,
    /// Somebody who looks once; with the directory as given.
    Show(String),
}

/// What the lines have to fit into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Columns of the terminal.
    pub width: usize,
    /// Its rows; none where the text may scroll.
    pub rows_max: Option<usize>,
    /// Whether it shows colours.
    pub colour: bool,
    /// Who looks.
    pub reader: Reader,
}

impl LiveView {
    /// Takes in what a run has written so far.
    ///
    /// # Errors
    /// [`ReportError::Statistics`] for records that contradict themselves.
    pub fn build(loaded: &Loaded) -> Result<Self, ReportError> {
        let question = one_line(&loaded.resolved.question);
        let design = &loaded.resolved.design;
        let report = match Report::so_far(loaded) {
            Err(ReportError::NoSession) => None,
            report => Some(report?),
        };
        let Some(report) = report else {
            return Ok(Self {
                question,
                progress: Progress {
                    measured_blocks: 0,
                    planned_blocks: design.blocks,
                    is_finished: false,
                },
                sessions: 0,
                sections: Vec::new(),
                threshold_percent: design.threshold_percent,
                trials: (0, 0),
                invalid: Vec::new(),
                command: None,
            });
        };
        // A confidence that cannot be was refused with the experiment.
        let blocks_min = |confidence: f64| minimum_blocks(1, confidence).unwrap_or(usize::MAX);
        let sections = report.comparisons.iter().map(|comparison| Section {
            heading: sentences::heading(&report, comparison),
            entries: Entries {
                report: &report,
                comparison,
                blocks_min: (
                    blocks_min(design.confidence_percent / 100.0),
                    blocks_min(CONTROL_CONFIDENCE),
                ),
            }
            .all(),
        });
        Ok(Self {
            question,
            progress: report.progress,
            sessions: loaded.sessions.len(),
            sections: sections.collect(),
            threshold_percent: design.threshold_percent,
            trials: trials(&report),
            invalid: invalid(&report),
            command: loaded.sessions.last().map(command),
        })
    }

    /// The view at a moment; no line is wider than the frame, nor are there more of them than it has
    /// rows.
    #[must_use]
    pub fn lines(&self, moment: &Moment, frame: &Frame) -> Vec<String> {
        let lines = match frame.rows_max {
            None => {
                let mut lines = self.head(moment, frame.width, usize::MAX);
                let body = self.body(moment, frame.width, usize::MAX);
                lines.extend(spaced(body));
                lines.extend(spaced(self.tail(moment, frame, usize::MAX)));
                lines
            }
            Some(rows_max) => self.within(moment, frame, rows_max),
        };
        let rows_max = frame.rows_max.unwrap_or(usize::MAX);
        lines
            .iter()
            .take(rows_max)
            .map(|line| line.written(frame.width, frame.colour))
            .collect()
    }

    /// As much as so many rows hold: what is said around the variants gives way to them.
    fn within(&self, moment: &Moment, frame: &Frame, rows_max: usize) -> Vec<Line> {
        let mut lines = self.head(moment, frame.width, 1);
        let mut tail = self.tail(moment, frame, INVALID_LINES_MAX);
        let variants: usize = self
            .sections
            .iter()
            .map(|section| section.entries.len())
            .sum();
        // A blank line before the variants, and one behind.
        if lines.len() + tail.len() + 2 + variants > rows_max {
            tail = self.tail(moment, frame, 1);
        }
        let around = lines.len() + tail.len() + 2;
        let body = self.body(moment, frame.width, rows_max.saturating_sub(around));
        lines.extend(spaced(body));
        lines.extend(spaced(tail));
        lines
    }

    /// The question and how far the run is.
    fn head(&self, moment: &Moment, width: usize, question_lines_max: usize) -> Vec<Line> {
        let question = if question_lines_max == 1 {
            vec![self.question.clone()]
        } else {
            wrap_to_columns(&self.question, width)
        };
        let mut lines: Vec<Line> = question
            .into_iter()
            .map(|line| Line::of(line, Style::Bold))
            .collect();
        lines.push(self.progress_line(moment, width));
        let mut times = Vec::new();
        if moment.state == RunState::Running {
            times.extend(moment.elapsed_s.map(|s| format!("{} so far", duration(s))));
            times.extend(moment.left_s.map(|s| format!("about {} left", duration(s))));
        }
        if self.sessions > 1 {
            times.push(format!("session {}", self.sessions));
        }
        if !times.is_empty() {
            lines.push(Line::of(times.join(", "), Style::Dim));
        }
        lines
    }

    fn progress_line(&self, moment: &Moment, width: usize) -> Line {
        let Progress {
            measured_blocks,
            planned_blocks,
            ..
        } = self.progress;
        let measured = format!(
            "{measured_blocks} of {} measured",
            counted(planned_blocks.into(), "block")
        );
        let (words, style) = match (moment.state, &moment.block) {
            (RunState::Running, Some(block)) => {
                let mut words = format!("block {} of {planned_blocks}", block.number);
                if block.attempt > 1 {
                    words += &format!(" (attempt {})", block.attempt);
                }
                if !block.phase.is_empty() {
                    words += &format!(", {}", one_line(&block.phase));
                }
                (words, Style::Plain)
            }
            (RunState::Running, None) => (measured, Style::Plain),
            (RunState::Finished, _) => {
                let missing = match planned_blocks.saturating_sub(measured_blocks) {
                    0 => String::new(),
                    number => format!(", {number} given up"),
                };
                (format!("finished: {measured}{missing}"), Style::Green)
            }
            (RunState::Stopped, _) => (format!("stopped: {measured}"), Style::Yellow),
            (RunState::Died, _) => (format!("died: {measured}"), Style::Yellow),
        };
        if width < BAR_WIDTH_MIN {
            return Line::of(words, style);
        }
        let under_way = moment.block.as_ref().map_or(0.0, |block| block.part);
        let done = f64::from(measured_blocks) + under_way.clamp(0.0, 1.0);
        let part = match moment.state {
            RunState::Finished => 1.0,
            _ => (done / f64::from(planned_blocks.max(1))).clamp(0.0, 1.0),
        };
        let bar_width = (width / 3).min(BAR_MAX);
        // Counted instead of cast: a bar is a few dozen columns wide.
        let full = (1..=bar_width)
            .take_while(|&cell| cell as f64 <= part * bar_width as f64 + 1e-9)
            .count();
        Line::of("━".repeat(full), Style::Cyan)
            .and("─".repeat(bar_width - full), Style::Dim)
            .and(right(&format!("{:.0} %", part * 100.0), 7), Style::Plain)
            .and("  ", Style::Plain)
            .and(words, style)
    }

    /// The variants, by comparison, and how they are to be read.
    fn body(&self, moment: &Moment, width: usize, rows_max: usize) -> Vec<Line> {
        if self.progress.measured_blocks == 0 && self.invalid.is_empty() {
            let what = match (moment.state, self.sessions) {
                (RunState::Running, _) => "Effects show here when the first block is measured.",
                (_, 0) => "Nothing is measured: no session has begun.",
                _ => "No block is measured to its end.",
            };
            return vec![Line::of(what, Style::Dim)];
        }
        let is_over = moment.state == RunState::Finished;
        let reading: Vec<Line> = wrap_to_columns(&self.reading(is_over), width)
            .into_iter()
            .map(|line| Line::of(line, Style::Dim))
            .collect();
        let room = rows_max.saturating_sub(reading.len());
        let mut lines = table::lines(&self.sections, is_over, width, room);
        if rows_max.saturating_sub(lines.len()) >= reading.len() {
            lines.extend(reading);
        }
        lines
    }

    fn reading(&self, is_over: bool) -> String {
        let threshold = crate::format::short(self.threshold_percent, 3);
        let provisional = if is_over {
            ""
        } else {
            " The words may change with every block; a verdict takes all of them."
        };
        format!(
            "By block: effects, and the baseline's rates, oldest first, over a height of {threshold} % or \
             more. ±: half the interval in %, at first and now.{provisional}"
        )
    }

    /// What is invalid, and what can be done next.
    fn tail(&self, moment: &Moment, frame: &Frame, invalid_lines_max: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let (trials, invalid) = self.trials;
        if invalid > 0 {
            let again = match moment.state {
                RunState::Finished => "",
                _ => "; a block with one is measured again",
            };
            let text = format!("Invalid: {invalid} of {}{again}", counted(trials, "trial"));
            lines.push(Line::of(text, Style::Yellow));
            let reasons: Vec<Line> = self
                .invalid
                .iter()
                .flat_map(|reason| hanging(reason, frame.width))
                .collect();
            let shown = if reasons.len() < invalid_lines_max {
                reasons.len()
            } else {
                invalid_lines_max.saturating_sub(2)
            };
            let hidden = reasons.len() - shown;
            lines.extend(reasons.into_iter().take(shown));
            if hidden > 0 && invalid_lines_max > 1 {
                lines.push(Line::of("  … and more; the report has all", Style::Dim));
            }
        }
        for text in self.next(moment, frame) {
            let text = wrap_to_columns(&text, frame.width);
            lines.extend(text.into_iter().map(|line| Line::of(line, Style::Dim)));
        }
        lines
    }

    /// What to do next.
    fn next(&self, moment: &Moment, frame: &Frame) -> Vec<String> {
        let open = self.progress.planned_blocks - self.progress.measured_blocks;
        let go_on = || {
            let left = counted(open.into(), "block");
            match &self.command {
                Some(command) => {
                    format!("Next: `{command}` goes on, with the options that it had; {left} left.")
                }
                None => format!("Next: the same `fwdlab run` goes on; {left} left."),
            }
        };
        match (moment.state, &frame.reader) {
            (RunState::Running, Reader::Run) => {
                vec![
                    "Ctrl-C finishes this block and stops; the same `fwdlab run` goes on from there."
                        .to_owned(),
                ]
            }
            (RunState::Running, Reader::Watch) => {
                vec!["Ctrl-C ends the watching, not the run.".to_owned()]
            }
            (RunState::Running, Reader::Show(directory)) => {
                vec![format!(
                    "Next: `fwdlab watch {}` follows it.",
                    shell_word(directory)
                )]
            }
            (RunState::Finished, Reader::Show(directory)) => {
                let directory = shell_word(directory);
                vec![
                    format!("Next: `fwdlab report {directory}` prints the whole report."),
                    format!("`fwdlab show {directory} --warnings` prints every warning in full."),
                ]
            }
            (RunState::Finished, _) => Vec::new(),
            (RunState::Stopped, _) => vec![go_on()],
            (RunState::Died, _) => vec![
                "No process of this machine holds the directory, and no report was written of these \
                 blocks: it was killed, or the machine went down. Nothing is lost but the block that ran."
                    .to_owned(),
                format!(
                    "{} It first puts back what was left changed, as `fwdlab restore` does.",
                    go_on()
                ),
            ],
        }
    }
}

/// The lines behind a blank one, where there are any.
fn spaced(lines: Vec<Line>) -> Vec<Line> {
    if lines.is_empty() {
        return lines;
    }
    let mut spaced = vec![Line::default()];
    spaced.extend(lines);
    spaced
}

/// A text in lines, all indented, the first by less.
fn hanging(text: &str, width: usize) -> Vec<Line> {
    let lines = wrap_to_columns(text, width.saturating_sub(4).max(1));
    let indented = lines.into_iter().enumerate().map(|(index, line)| {
        let indent = if index == 0 { "  " } else { "    " };
        Line::of(format!("{indent}{line}"), Style::Plain)
    });
    indented.collect()
}

fn trials(report: &Report) -> (u64, u64) {
    let invalid = report
        .trials
        .iter()
        .filter(|trial| !trial.invalid.is_empty());
    (report.trials.len() as u64, invalid.count() as u64)
}

/// Which trials are invalid and why, a line a variant and reason.
fn invalid(report: &Report) -> Vec<String> {
    let several = report.has_several_strata();
    let rows = report.invalid.iter().flat_map(|invalid| &invalid.rows);
    rows.flat_map(|row| {
        let mut label = report.label(&row.variant).to_owned();
        if several {
            label += &format!(", {}", row.stratum.label());
        }
        let of_row = row.reasons.iter();
        of_row.map(move |reason| format!("{label}: {reason}"))
    })
    .collect()
}

/// What became of a block, in words: `valid`, or the first trial that is not, and why. What speaks against all trials of a
/// stratum alike says nothing of a variant, and names none.
#[must_use]
pub fn block_outcome(trials: &[TrialRecord]) -> String {
    let is_own = |trial: &TrialRecord, reason: &InvalidReason| {
        !wrong_frames::is_of_all(trials, trial, reason)
    };
    let mut invalid = trials.iter().filter(|trial| !trial.invalid.is_empty());
    let has_own = |trial: &&TrialRecord| trial.invalid.iter().any(|reason| is_own(trial, reason));
    let with_own = invalid.clone().find(has_own);
    let Some(trial) = with_own.or_else(|| invalid.next()) else {
        return "valid".to_owned();
    };
    let reasons = trial.invalid.iter();
    let (own, of_all): (Vec<_>, Vec<_>) = reasons.partition(|reason| is_own(trial, reason));
    let mut parts = Vec::new();
    for (who, reasons) in [
        (format!("{} {}", trial.variant, trial.stratum), own),
        (trial.stratum.to_string(), of_all),
    ] {
        if !reasons.is_empty() {
            let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            parts.push(format!("{who}: {}", one_line(&reasons.join("; "))));
        }
    }
    format!("invalid ({})", parts.join("; "))
}

/// The widest of some texts, in columns.
fn widest<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    texts.into_iter().map(columns).max().unwrap_or(0)
}
