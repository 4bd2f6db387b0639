//! Conditions that a check fails on: `worse:1%`.

use std::fmt;
use std::str::FromStr;

use fwdlab_model::Design;
use fwdlab_stats::Verdict;
use serde::Serialize;

use crate::compare::CompareReport;
use crate::format;
use crate::report::{Effect, Progress, Report, VerdictSection, Warning};
use crate::sentences;
use crate::text::one_line;

/// A condition that a check fails on.
///
/// Its text is a word, and behind a colon the change that matters, in percent, where it is not that of the
/// experiment: `worse`, `worse:1%`, `maybe-worse:2.5`. It is judged by the verdicts at that threshold, and so
/// with their confidence for all variants together.
///
/// # Errors
/// Another word, or a change that no verdict can be asked for.
///
/// # Examples
/// ```
/// use fwdlab_report::Gate;
/// let gate: Gate = "worse:1%".parse()?;
/// assert_eq!(gate.threshold_percent(), Some(1.0));
/// assert_eq!(gate.to_string(), "worse:1%");
/// assert!("slower".parse::<Gate>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    kind: GateKind,
    threshold_percent: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateKind {
    /// Shown to forward less, by more than the threshold.
    Worse,
    /// Not shown to forward at least as much, but for the threshold.
    MaybeWorse,
    /// Shown to forward less or more, by more than the threshold.
    Different,
    /// Shown to take more CPU time a packet, by more than its threshold.
    CpuWorse,
}

/// Every condition with its word.
const KINDS: [(GateKind, &str); 4] = [
    (GateKind::Worse, "worse"),
    (GateKind::MaybeWorse, "maybe-worse"),
    (GateKind::Different, "different"),
    (GateKind::CpuWorse, "cpu-worse"),
];

/// What became of a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateResult {
    /// Its text.
    pub condition: String,
    /// Whether the check fails on it.
    pub failed: bool,
    /// On what, a sentence each.
    pub failures: Vec<GateFailure>,
    /// A/A controls that put the outcome in doubt, a sentence each.
    pub cautions: Vec<String>,
}

/// What a check fails on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateFailure {
    /// The variant, and in which comparison where there are several; none where there is nothing to judge.
    pub subject: Option<String>,
    /// What is said of it.
    pub sentence: String,
}

impl GateResult {
    /// Fails it for a reason that goes for all of it.
    pub fn fail(&mut self, sentence: String) {
        self.failed = true;
        self.failures.push(GateFailure {
            subject: None,
            sentence,
        });
    }
}

impl Gate {
    /// The change that matters; none where it is the experiment's.
    #[must_use]
    pub fn threshold_percent(&self) -> Option<f64> {
        self.threshold_percent
    }

    /// The threshold of a design that this condition sets: that of rates, or of CPU time.
    #[must_use]
    pub fn threshold_of<'d>(&self, design: &'d mut Design) -> &'d mut f64 {
        match self.kind {
            GateKind::CpuWorse => &mut design.cpu_threshold_percent,
            GateKind::Worse | GateKind::MaybeWorse | GateKind::Different => {
                &mut design.threshold_percent
            }
        }
    }

    /// Judges a run by its verdicts; one of which blocks are missing fails, whatever the others show.
    ///
    /// Shape: they were made with [`Self::threshold_percent`], where there is one.
    #[must_use]
    pub fn of_report(&self, report: &Report) -> GateResult {
        if let Some(sentence) = missing_blocks(&report.progress) {
            return self.of_failures(vec![GateFailure {
                subject: None,
                sentence,
            }]);
        }
        let unable = unable(&report.warnings);
        if !unable.is_empty() {
            return self.of_failures(unable);
        }
        let mut outcomes = Vec::new();
        let mut cautions = Vec::new();
        for comparison in &report.comparisons {
            let heading = sentences::heading(report, comparison);
            let named = |variant| subject(report.label(variant), heading.as_deref());
            if self.kind == GateKind::CpuWorse {
                let others = comparison.outcomes.cpu_time.iter().skip(1);
                outcomes.extend(others.map(|row| {
                    (
                        named(&row.variant),
                        row.effect.as_ref(),
                        row.verdict.as_ref(),
                    )
                }));
            } else {
                let others = comparison.rows.iter().skip(1);
                outcomes.extend(others.map(|row| {
                    (
                        named(&row.variant),
                        row.effect.as_ref(),
                        row.verdict.as_ref(),
                    )
                }));
                // The control is of forwarding rates.
                let control = comparison.control.as_ref();
                let doubt = control.and_then(|control| {
                    sentences::control_in_doubt(control, report.design.threshold_percent)
                });
                let of = heading.map_or_else(String::new, |of| format!(" ({})", one_line(&of)));
                cautions.extend(doubt.map(|doubt| format!("the A/A control{of} {doubt}")));
            }
        }
        GateResult {
            cautions,
            ..self.of_outcomes(outcomes)
        }
    }

    /// Holds the verdicts of a comparison against it, as [`Self::of_report`]; one without any fails.
    #[must_use]
    pub fn of_comparison(&self, report: &CompareReport) -> GateResult {
        if let Some(why) = &report.no_verdict {
            return self.of_failures(vec![GateFailure {
                subject: None,
                sentence: format!("no verdict: {why}"),
            }]);
        }
        let unable = unable(&report.warnings);
        if !unable.is_empty() {
            return self.of_failures(unable);
        }
        let rows = report.groups.iter().flat_map(|group| {
            let others = group.rows.iter().skip(1);
            others.map(|row| {
                let subject = subject(&row.label, group.title.as_deref());
                (subject, row.row.effect.as_ref(), row.row.verdict.as_ref())
            })
        });
        match self.kind {
            // Observations are of rates.
            GateKind::CpuWorse => self.of_outcomes(Vec::new()),
            _ => self.of_outcomes(rows.collect()),
        }
    }

    fn of_outcomes(&self, outcomes: Vec<Outcome<'_>>) -> GateResult {
        let mut failures = Vec::new();
        let judged = outcomes
            .iter()
            .filter(|(_, _, verdict)| verdict.is_some())
            .count();
        for (subject, effect, verdict) in outcomes {
            failures.extend(self.failure(effect, verdict).map(|sentence| GateFailure {
                subject: Some(subject),
                sentence,
            }));
        }
        // Nothing measured is nothing shown to be good.
        if judged == 0 && failures.is_empty() {
            let sentence = match self.kind {
                GateKind::CpuWorse => "CPU time was not measured: that takes a lab of hosts",
                _ => "nothing was compared",
            };
            failures.push(GateFailure {
                subject: None,
                sentence: sentence.to_owned(),
            });
        }
        self.of_failures(failures)
    }

    fn of_failures(&self, failures: Vec<GateFailure>) -> GateResult {
        GateResult {
            condition: self.to_string(),
            failed: !failures.is_empty(),
            failures,
            cautions: Vec::new(),
        }
    }

    /// Why a variant fails it.
    fn failure(&self, effect: Option<&Effect>, verdict: Option<&VerdictSection>) -> Option<String> {
        let (Some(effect), Some(verdict)) = (effect, verdict) else {
            let is_asked_for = self.kind == GateKind::MaybeWorse;
            return is_asked_for.then(|| "no effect measured".to_owned());
        };
        let is = |of: Verdict| verdict.words == of.words();
        if is(Verdict::NotLimitedByDut) {
            return Some(format!(
                "{}: every variant forwarded all that was offered, so no rate says whether one is worse; offer more \
                 (load in [traffic]), or gate the CPU time of a host (cpu-worse)",
                verdict.words
            ));
        }
        let is_less = effect.estimate_percent < 0.0;
        let fails = match self.kind {
            GateKind::Worse => is(Verdict::Different) && is_less,
            GateKind::Different => is(Verdict::Different),
            GateKind::CpuWorse => is(Verdict::Different) && !is_less,
            GateKind::MaybeWorse => {
                let is_inside = is(Verdict::Equivalent) || is(Verdict::DifferentButNegligible);
                let is_better = verdict.shows_difference && !is_less;
                !is_inside && !is_better
            }
        };
        fails.then(|| format!("{}: {}", verdict.said(), format::effect(effect)))
    }
}

/// Why a run is no ground for a judgement; none where all its blocks were measured.
fn missing_blocks(progress: &Progress) -> Option<String> {
    let (measured, planned) = (progress.measured_blocks, progress.planned_blocks);
    let of = format!("{measured} of {planned} blocks were measured");
    (measured < planned).then(|| {
        if progress.is_finished {
            format!("only {of}; the others stayed invalid, or their records are missing")
        } else {
            format!("the run is not finished: {of}; `fwdlab run` goes on from there")
        }
    })
}

/// Comparisons that are of too few blocks or sessions to show any difference: whatever is worse in them, no condition
/// would find it.
fn unable(warnings: &[Warning]) -> Vec<GateFailure> {
    const TOO_FEW: [&str; 3] = ["W101", "W102", "W112"];
    let mut failures: Vec<GateFailure> = Vec::new();
    for warning in warnings {
        let subject = warning.subjects.first().cloned();
        let is_known = failures.iter().any(|failure| failure.subject == subject);
        if TOO_FEW.contains(&warning.code.as_str()) && !is_known {
            failures.push(GateFailure {
                subject,
                sentence: warning.text.clone(),
            });
        }
    }
    failures
}

/// A variant's name for readers, its effect, and what is concluded from it.
type Outcome<'a> = (String, Option<&'a Effect>, Option<&'a VerdictSection>);

/// What is in doubt whatever became of the conditions, each once.
pub fn cautions(results: &[GateResult]) -> Vec<&str> {
    let mut cautions: Vec<&str> = Vec::new();
    for caution in results.iter().flat_map(|result| &result.cautions) {
        if !cautions.contains(&caution.as_str()) {
            cautions.push(caution);
        }
    }
    cautions
}

fn subject(label: &str, heading: Option<&str>) -> String {
    let label = one_line(label);
    match heading {
        Some(heading) => format!("{label} ({})", one_line(heading)),
        None => label,
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (word, threshold) = match text.split_once(':') {
            Some((word, threshold)) => (word, Some(threshold)),
            None => (text, None),
        };
        let kind = KINDS.iter().find(|(_, of)| *of == word);
        let Some((kind, _)) = kind else {
            let words = KINDS.map(|(_, word)| word).join(", ");
            return Err(format!("{word:?} is none of {words}"));
        };
        let percent = |text: &str| {
            let text = text.strip_suffix('%').unwrap_or(text);
            let percent: f64 = text.trim_end().parse().ok()?;
            fwdlab_model::THRESHOLD_PERCENT
                .contains(&percent)
                .then_some(percent)
        };
        let threshold_percent = match threshold {
            None => None,
            Some(text) => Some(percent(text).ok_or_else(|| {
                let allowed = fwdlab_model::THRESHOLD_PERCENT;
                format!(
                    "{text:?} is no change in percent from {} to {}",
                    allowed.start(),
                    allowed.end()
                )
            })?),
        };
        Ok(Self {
            kind: *kind,
            threshold_percent,
        })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = KINDS.iter().find(|(kind, _)| *kind == self.kind);
        f.write_str(word.map_or("", |(_, word)| word))?;
        match self.threshold_percent {
            Some(percent) => write!(f, ":{percent}%"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for GateFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Some(subject) => write!(f, "{subject}: {}", self.sentence),
            None => f.write_str(&self.sentence),
        }
    }
}
