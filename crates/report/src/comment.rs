//! A comment for a pull request: the verdicts in a table, and the rest folded away.

use std::fmt::Write as _;

use crate::causes;
use crate::compare::CompareReport;
use crate::format;
use crate::gate::{GateResult, cautions};
use crate::readme::warning_item;
use crate::report::{Report, Row};
use crate::sentences;
use crate::text;

/// As much of a warning's cause as is read in a folded list.
const CAUSE_COLUMNS: usize = 160;

/// A comment on a run for a pull request, in Markdown, with what became of its gates.
#[must_use]
pub fn comment(report: &Report, conditions: &[GateResult]) -> String {
    let mut comment = Comment::new(&text::markdown(&report.question), conditions);
    if let Some(unfinished) = sentences::unfinished(report) {
        comment.paragraph(&format!("**{unfinished}**"));
    }
    for comparison in &report.comparisons {
        if let Some(heading) = sentences::heading(report, comparison) {
            comment.paragraph(&format!("**{}**", text::markdown(&heading)));
        }
        let rows = comparison.rows.iter();
        comment.table(rows.map(|row| (report.label(&row.variant), row)));
        for row in &comparison.rows {
            if let Some(why) = report.why(comparison, &row.variant) {
                let label = text::markdown(report.label(&row.variant));
                comment.line(&format!("- **{label}**: {why}"));
            }
        }
        if let Some(control) = &comparison.control {
            comment.line(&format!("- A/A control: {}", control.sentence));
        }
        comment.line("");
    }
    if let Some(unused) = report.no_profile_used() {
        comment.paragraph(&format!("Why: {unused}"));
    }
    let lab = &report.lab;
    let mut conditions = vec![
        format!(
            "{} x {}, Linux {}, {}",
            lab.cpus, lab.cpu_model, lab.kernel, lab.start
        ),
        format!(
            "{} of {}, {}; lab: {} ({}); seed {}; fwdlab {}",
            sentences::blocks(report),
            format::counted(report.design.rounds.into(), "round"),
            report.regime(),
            sentences::lab_kind(lab.kind),
            lab.name,
            report.design.seed,
            lab.fwdlab
        ),
        verdicts(
            report.design.threshold_percent,
            report.design.confidence_percent,
        ),
    ];
    conditions.extend(sentences::disturbed_time(report));
    let mut warnings: Vec<String> = causes::causes(report)
        .iter()
        .map(|cause| {
            let line = cause.line(report.profiles.as_ref(), CAUSE_COLUMNS);
            let (code, text) = (text::markdown(cause.code), text::markdown(&line.text));
            format!("- **{code}** {text}")
        })
        .collect();
    if !warnings.is_empty() {
        warnings.push(
            "- In full: the README.md of the results, or `fwdlab show DIR --warnings`".to_owned(),
        );
    }
    comment.folded(&conditions, report.warnings.len(), &warnings);
    comment.text
}

/// A comment on a comparison, likewise.
#[must_use]
pub fn compared_comment(report: &CompareReport, conditions: &[GateResult]) -> String {
    let mut comment = Comment::new("Comparison of forwarding rates", conditions);
    if let Some(why) = &report.no_verdict {
        comment.paragraph(&format!("**No verdict**: {}", text::markdown(why)));
    }
    for group in &report.groups {
        if let Some(title) = &group.title {
            comment.paragraph(&format!("**{}**", text::markdown(title)));
        }
        let rows = group.rows.iter();
        comment.table(rows.map(|row| (row.label.as_str(), &row.row)));
        if let Some(reruns) = &group.reruns {
            comment.paragraph(&sentences::reruns(reruns));
        }
    }
    let mut conditions = vec![report.basis.sentence().to_owned()];
    if report.no_verdict.is_none() {
        conditions.push(verdicts(
            report.threshold_percent,
            report.confidence_percent,
        ));
    }
    let warnings: Vec<String> = report.warnings.iter().map(warning_item).collect();
    comment.folded(&conditions, warnings.len(), &warnings);
    comment.text
}

/// What the verdicts are asked to hold.
fn verdicts(threshold_percent: f64, confidence_percent: f64) -> String {
    format!(
        "changes below {} % are treated as irrelevant; verdicts hold at {} % confidence for all variants of a comparison \
         together",
        format::short(threshold_percent, 3),
        format::short(confidence_percent, 2)
    )
}

struct Comment {
    text: String,
}

impl Comment {
    /// Shape: `title` is Markdown.
    fn new(title: &str, conditions: &[GateResult]) -> Self {
        let mut comment = Self {
            text: String::new(),
        };
        comment.paragraph(&format!("### {title}"));
        for result in conditions {
            let condition = text::code(&result.condition);
            if !result.failed {
                comment.line(&format!("- Passes {condition}"));
            }
            for failure in &result.failures {
                let failure = text::markdown(&failure.to_string());
                comment.line(&format!("- **Fails on {condition}**: {failure}"));
            }
        }
        for caution in cautions(conditions) {
            comment.line(&format!("- **Note**: {}", text::markdown(caution)));
        }
        if !conditions.is_empty() {
            comment.line("");
        }
        comment
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    fn paragraph(&mut self, lines: &str) {
        self.line(lines);
        self.line("");
    }

    /// The rows of a comparison by their labels, the baseline first.
    fn table<'a>(&mut self, rows: impl Iterator<Item = (&'a str, &'a Row)>) {
        let rows: Vec<_> = rows.collect();
        let has_costs = rows.iter().any(|(_, row)| row.cost_ns.is_some());
        let cells = rows.into_iter().enumerate().map(|(index, (label, row))| {
            let verdict = match (&row.verdict, index) {
                (Some(verdict), _) if verdict.shows_difference => format!("**{}**", verdict.said()),
                (Some(verdict), _) => verdict.said(),
                (None, 0) => "baseline".to_owned(),
                (None, _) if row.effect.is_some() => "none: one session a side".to_owned(),
                (None, _) => format::or_dash(None),
            };
            let mut cells = vec![
                text::markdown(label),
                format::or_dash(row.effect.as_ref().map(format::effect)),
                verdict,
                format::or_dash(row.forwarding_rate_pps.map(format::rate)),
            ];
            if has_costs {
                cells.push(format::or_dash(row.cost_ns.map(format::cost)));
            }
            cells
        });
        let cost = if has_costs { " | ns/packet" } else { "" };
        let header = format!("variant | effect | verdict | forwarding rate{cost}");
        self.line(&text::table(&header, cells));
    }

    /// What a sceptic asks for: where it was measured, how, and what to beware of.
    ///
    /// Shape: `warnings` are items of a list that stand for `warning_count` warnings.
    fn folded(&mut self, conditions: &[String], warning_count: usize, warnings: &[String]) {
        let summary = match warning_count {
            0 => "How it was measured".to_owned(),
            count => format!(
                "How it was measured, and {}",
                format::counted(count as u64, "warning")
            ),
        };
        // Markdown goes on only behind an empty line.
        self.paragraph(&format!("<details><summary>{summary}</summary>"));
        for condition in conditions {
            self.line(&format!("- {}", text::markdown(condition)));
        }
        for warning in warnings {
            self.line(warning);
        }
        self.line("");
        self.line("</details>");
    }
}
