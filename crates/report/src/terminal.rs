//! What a run prints at its end.

use std::fmt::Write as _;
use std::iter;
use std::path::Path;

use fwdlab_stats::percent;

use crate::build::shell_word;
use crate::causes;
use crate::colours::Tone;
use crate::compare::{CompareGroup, CompareReport};
use crate::effect_axis::{logarithm, span};
use crate::factorial::FactorialSection;
use crate::format;
use crate::imported::{ImportedReport, VariantSummary};
use crate::labels::shortened;
use crate::offered_load::OfferedLoadRow;
use crate::report::{
    ComparisonSection, ControlSection, Effect, ReferenceRow, Report, Row, VerdictSection, Warning,
};
use crate::sentences;
use crate::text::{columns, hanging, in_columns, in_sentences, one_line};
use crate::traffic_effects::TrafficSection;

/// Narrower than this nothing can be laid out; text then sticks out.
const WIDTH_MIN: usize = 20;
const LABEL_MAX: usize = 28;
/// With less room for its labels a plot is left out; it shows nothing that its sentences do not say.
const LABEL_MIN: usize = 8;
const PLOT_MIN: usize = 16;

/// What a run prints at its end, for a terminal of `width` columns, with colours where it shows them; `readme` is where
/// the README was written, if it was: then warnings are summed up, a line for each cause.
#[must_use]
pub fn terminal(report: &Report, readme: Option<&Path>, width: usize, colour: bool) -> String {
    let mut screen = Screen::new(width, colour);
    screen.wrapped("", &report.question, Style::Bold);
    if let Some(unfinished) = sentences::unfinished(report) {
        screen.wrapped("", &unfinished, Style::Yellow);
    }
    for comparison in &report.comparisons {
        screen.line("");
        screen.comparison(&Shown::of_report(report, comparison));
    }
    for section in report
        .traffic_effects
        .iter()
        .filter(|of| !of.changes.is_empty())
    {
        screen.line("");
        screen.traffic_changes(report, section);
    }
    if let Some(unused) = report.no_profile_used() {
        screen.line("");
        screen.wrapped("", &format!("Why: {unused}"), Style::Dim);
    }
    if let Some(disturbed) = sentences::disturbed_time(report) {
        screen.line("");
        screen.wrapped("", &disturbed, Style::Dim);
    }
    match readme.and_then(Path::parent) {
        Some(directory) => screen.causes(report, directory),
        None => screen.warnings(&report.warnings),
    }
    if let Some(readme) = readme {
        screen.line("");
        let readme = one_line(&readme.display().to_string());
        screen.line(&format!("Report: {readme}"));
        if let Some(directory) = readme.strip_suffix("README.md") {
            screen.line(&format!("In a browser: {directory}derived/report.html"));
        }
    }
    screen.text
}

/// What `fwdlab show --warnings` prints, for a terminal of `width` columns: every warning of a run, in full.
#[must_use]
pub fn warnings(report: &Report, width: usize, colour: bool) -> String {
    let mut screen = Screen::new(width, colour);
    if report.warnings.is_empty() {
        screen.line("no warnings");
    }
    for warning in &report.warnings {
        screen.warning(&warning.code, &causes::in_full(warning));
    }
    screen.text
}

/// What every method makes of the blocks of a run, for a terminal of `width` columns.
#[must_use]
pub fn methods(report: &Report, width: usize, colour: bool) -> String {
    let mut screen = Screen::new(width, colour);
    for comparison in &report.comparisons {
        let shown = Shown::of_report(report, comparison);
        screen.line("");
        if let Some(heading) = &shown.heading {
            screen.wrapped("", heading, Style::Bold);
        }
        screen.methods(&shown);
    }
    screen.text
}

/// What `fwdlab compare` prints, for a terminal of `width` columns, with colours where it shows them.
#[must_use]
pub fn compared(report: &CompareReport, width: usize, colour: bool) -> String {
    let mut screen = Screen::new(width, colour);
    screen.wrapped("", report.basis.sentence(), Style::Dim);
    for group in &report.groups {
        screen.line("");
        let shown = Shown::of_group(report, group);
        screen.comparison(&shown);
        if let Some(reruns) = &group.reruns {
            screen.line("");
            screen.wrapped("", &sentences::reruns(reruns), Style::Dim);
        }
        screen.methods_asked_for(&shown);
    }
    if let Some(why) = &report.no_verdict {
        screen.line("");
        screen.wrapped("", &format!("No verdict: {why}"), Style::Yellow);
    }
    screen.warnings(&report.warnings);
    screen.text
}

/// What `fwdlab show` and `fwdlab analyze` print of imported results, for a terminal of `width` columns, with colours
/// where it shows them.
#[must_use]
pub fn imported(report: &ImportedReport, width: usize, colour: bool) -> String {
    let mut screen = Screen::new(width, colour);
    screen.wrapped("", &one_line(&report.title), Style::Bold);
    let source = format!("Published by others: {}", one_line(&report.source));
    screen.wrapped("", &source, Style::Dim);
    let (with_runs, without): (Vec<&VariantSummary>, Vec<&VariantSummary>) =
        report.variants.iter().partition(|variant| variant.runs > 0);
    if !with_runs.is_empty() {
        screen.line("");
        let rate = |pps: Option<f64>| pps.map_or_else(|| "unknown".to_owned(), format::rate);
        let cells: Vec<[String; 5]> = with_runs
            .iter()
            .map(|variant| {
                [
                    one_line(&variant.key),
                    variant.runs.to_string(),
                    rate(variant.archive_pps),
                    rate(variant.forwarded_pps),
                    rate(variant.offered_pps),
                ]
            })
            .collect();
        let headings = [
            "measured",
            "runs",
            "archive's observation",
            "forwarding rate",
            "offered load",
        ];
        screen.table(headings, &cells);
    }
    if !without.is_empty() {
        let keys: Vec<String> = without.iter().map(|of| one_line(&of.key)).collect();
        let words = format!("Published without logs: {}", keys.join(", "));
        screen.line("");
        screen.wrapped("", &words, Style::Dim);
    }
    let mut warnings: Vec<Warning> = Vec::new();
    for block in &report.blocks {
        screen.line("");
        let heading = block.heading.as_deref().unwrap_or("Block");
        let heading = format!("{}, line {}", one_line(heading), block.line);
        screen.wrapped("", &heading, Style::Bold);
        if let Some(why) = &block.not_judged {
            screen.wrapped("  ", &format!("not judged: {why}"), Style::Dim);
        }
        let Some(judged) = &block.judged else {
            continue;
        };
        for group in &judged.groups {
            let shown = Shown::of_group(judged, group);
            screen.comparison(&shown);
            screen.methods_asked_for(&shown);
        }
        for warning in &judged.warnings {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
    }
    screen.warnings(&warnings);
    screen.text
}

/// A comparison as it is shown.
struct Shown<'a> {
    heading: Option<String>,
    /// The baseline first.
    rows: Vec<ShownRow<'a>>,
    references: &'a [ReferenceRow],
    control: Option<(&'a str, &'a ControlSection)>,
    factorial: Option<&'a FactorialSection>,
    threshold_percent: f64,
    ministat: &'a [String],
    ministat_note: Option<&'a str>,
    offered_load: &'a [OfferedLoadRow],
}

struct ShownRow<'a> {
    label: &'a str,
    row: &'a Row,
    /// What came out beside its rate.
    outcomes: Vec<String>,
    /// What profiles say of it, where any were taken.
    why: Option<&'a str>,
}

impl<'a> Shown<'a> {
    fn of_report(report: &'a Report, comparison: &'a ComparisonSection) -> Self {
        let control = comparison.control.as_ref();
        let rows = comparison.rows.iter().map(|row| {
            let outcomes = comparison.outcomes.of(&row.variant);
            ShownRow {
                label: report.label(&row.variant),
                row,
                outcomes: outcomes.map(|(outcome, of)| outcome.sentence(of)).collect(),
                why: report.why(comparison, &row.variant),
            }
        });
        Self {
            heading: sentences::heading(report, comparison),
            rows: rows.collect(),
            references: &comparison.references,
            control: control.map(|control| (report.label(&control.row.variant), control)),
            factorial: comparison.factorial.as_ref(),
            threshold_percent: report.design.threshold_percent,
            ministat: &comparison.ministat,
            ministat_note: comparison.ministat_note.as_deref(),
            offered_load: &comparison.offered_load,
        }
    }

    fn of_group(report: &'a CompareReport, group: &'a CompareGroup) -> Self {
        let rows = group.rows.iter().map(|row| ShownRow {
            label: &row.label,
            row: &row.row,
            outcomes: Vec::new(),
            why: None,
        });
        Self {
            heading: group.title.clone(),
            rows: rows.collect(),
            references: &[],
            control: None,
            factorial: group.factorial.as_ref(),
            threshold_percent: report.threshold_percent,
            ministat: &group.ministat,
            ministat_note: report
                .basis
                .is_of_few_sessions()
                .then_some(sentences::MINISTAT_OF_SESSIONS)
                .filter(|_| !group.ministat.is_empty()),
            offered_load: &group.offered_load,
        }
    }
}

/// How a piece of text looks where there are colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    #[default]
    Plain,
    Bold,
    Dim,
    Green,
    Yellow,
    Cyan,
    Red,
}

impl Style {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 7] = [
        Self::Plain,
        Self::Bold,
        Self::Dim,
        Self::Green,
        Self::Yellow,
        Self::Cyan,
        Self::Red,
    ];

    /// Of a verdict: the terminal's own blue-green and orange-red, which follow its theme.
    pub(crate) fn of(verdict: &VerdictSection) -> Self {
        match Tone::of(verdict) {
            Tone::Better => Self::Cyan,
            Tone::Worse => Self::Red,
            Tone::Open => Self::Yellow,
            Tone::Same => Self::Plain,
        }
    }

    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
            Self::Cyan => "36",
        }
    }
}

struct Screen {
    width: usize,
    colour: bool,
    text: String,
}

impl Screen {
    fn new(width: usize, colour: bool) -> Self {
        Self {
            width: width.max(WIDTH_MIN),
            colour,
            text: String::new(),
        }
    }

    fn styled(&self, text: &str, style: Style) -> String {
        if self.colour && style != Style::Plain {
            format!("\x1b[{}m{text}\x1b[0m", style.code())
        } else {
            text.to_owned()
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A text in lines, the first behind `lead`, the others indented as far.
    fn wrapped(&mut self, lead: &str, text: &str, style: Style) {
        for (lead, line) in hanging(lead, text, self.width) {
            let line = self.styled(&line, style);
            self.line(&format!("{lead}{line}"));
        }
    }

    fn comparison(&mut self, shown: &Shown<'_>) {
        if let Some(heading) = &shown.heading {
            self.wrapped("", heading, Style::Bold);
        }
        if let Some(ShownRow { label, row, .. }) = shown.rows.first() {
            let rates = sentences::rates(row).unwrap_or_else(|| "not measured".to_owned());
            self.wrapped("", &format!("Baseline {label}: {rates}"), Style::Plain);
        }
        for ShownRow {
            label,
            row,
            outcomes,
            why,
        } in shown.rows.iter().skip(1)
        {
            match (&row.verdict, &row.effect) {
                (Some(verdict), _) => self.finding(label, verdict),
                (None, Some(effect)) => {
                    self.wrapped("  ", label, Style::Bold);
                    let sentence = sentences::finding(sentences::WITHIN_SESSIONS, effect, &[]);
                    self.wrapped("    ", &sentence, Style::Plain);
                }
                (None, None) => {
                    self.wrapped("  ", &format!("{label}: no effect measured"), Style::Dim);
                    continue;
                }
            }
            for outcome in outcomes {
                self.wrapped("    ", outcome, Style::Plain);
            }
            if let Some(why) = why {
                let sentence = format!("why: {}", why.replace('`', ""));
                self.wrapped("    ", &sentence, Style::Dim);
            }
            let offered_load = shown.offered_load.iter();
            for offered in
                offered_load.filter(|offered| offered.differs && offered.variant == row.variant)
            {
                self.wrapped("    ", &offered.sentence, Style::Dim);
            }
        }
        for reference in shown.references {
            let label = &reference.label;
            let rate = format::rate(reference.forwarding_rate_pps);
            let words = format!("{label}: {rate} (earlier session, nothing is concluded from it)");
            self.wrapped("  ", &words, Style::Dim);
        }
        if let Some((_, control)) = &shown.control {
            let style = if control.passed == Some(false) {
                Style::Yellow
            } else {
                Style::Dim
            };
            let sentence = format!("A/A control: {}", control.sentence);
            self.wrapped("  ", &sentence, style);
        }
        self.plot(shown);
        if let Some(factorial) = shown.factorial {
            self.factorial(factorial);
        }
        for block in shown.ministat {
            self.line("");
            // ministat's text is what it is, also on a narrower terminal.
            for line in block.lines() {
                let _ = writeln!(self.text, "{line}");
            }
        }
        if let Some(note) = shown.ministat_note {
            self.wrapped("", note, Style::Dim);
        }
    }

    fn finding(&mut self, label: &str, verdict: &VerdictSection) {
        self.wrapped("  ", label, Style::Bold);
        self.wrapped("    ", &verdict.sentence, Style::of(verdict));
    }

    fn factorial(&mut self, factorial: &FactorialSection) {
        for (heading, rows) in [
            (
                "Main effects, averaged over the levels of the other factors",
                &factorial.main_effects,
            ),
            (
                "Interactions: what both together do beyond the effects of each alone",
                &factorial.interactions,
            ),
        ] {
            if rows.is_empty() {
                continue;
            }
            self.line("");
            self.wrapped("", heading, Style::Plain);
            for row in rows {
                self.finding(&row.label, &row.verdict);
            }
        }
    }

    /// How effects change with the traffic.
    fn traffic_changes(&mut self, report: &Report, section: &TrafficSection) {
        let heading = sentences::traffic_heading(section);
        self.wrapped("", &heading, Style::Bold);
        let first = section.traffics.first().map(ToString::to_string);
        let what = format!(
            "Change of each effect against its effect under {}",
            first.unwrap_or_default()
        );
        self.wrapped("", &what, Style::Plain);
        for change in &section.changes {
            let label = format!("{}, {}", report.label(&change.variant), change.traffic);
            self.finding(&label, &change.verdict);
        }
    }

    /// The intervals of a comparison, one line a variant, over one axis.
    fn plot(&mut self, shown: &Shown<'_>) {
        let control = shown
            .control
            .iter()
            .map(|(label, control)| (*label, &control.row));
        let variants = shown.rows.iter().skip(1).map(|of| (of.label, of.row));
        let (labels, effects): (Vec<&str>, Vec<&Effect>) = variants
            .chain(control)
            .filter_map(|(label, row)| Some((label, row.effect.as_ref()?)))
            .unzip();
        if effects.is_empty() {
            return;
        }
        let estimates: Vec<String> = effects
            .iter()
            .map(|effect| format::change(effect.estimate_percent, effect.interval))
            .collect();
        let widest = |texts: &[String]| texts.iter().map(|text| columns(text)).max().unwrap_or(0);
        let estimate_width = widest(&estimates);
        let room = self.width.saturating_sub(estimate_width + 6 + PLOT_MIN);
        if room < LABEL_MIN {
            return;
        }
        let labels = shortened(&labels, &|label| columns(label) <= room.min(LABEL_MAX));
        let label_width = widest(&labels);
        let plot_width = self.width - (label_width + estimate_width + 6);
        let axis = Axis::new(&effects, shown.threshold_percent, plot_width);
        self.line("");
        for ((effect, label), estimate) in effects.iter().zip(&labels).zip(&estimates) {
            let pad = " ".repeat(label_width - columns(label));
            let gap = " ".repeat(estimate_width - columns(estimate));
            let bar = axis.bar(effect);
            self.line(&format!("  {label}{pad}  {bar}  {gap}{estimate}"));
        }
        let indent = " ".repeat(label_width + 4);
        let line = format!("{indent}{}", axis.labels());
        let line = self.styled(&line, Style::Dim);
        self.line(&line);
    }

    /// What every method makes of each variant's effect, in a table.
    fn methods(&mut self, shown: &Shown<'_>) {
        self.wrapped("", sentences::METHODS, Style::Plain);
        for ShownRow { label, row, .. } in &shown.rows {
            if row.methods.is_empty() {
                continue;
            }
            self.wrapped("  ", label, Style::Bold);
            let cells: Vec<[String; 4]> = row.methods.iter().map(sentences::method_cells).collect();
            self.table(["method", "effect", "p", "corrected"], &cells);
        }
        let terms = shown
            .factorial
            .map(|factorial| &factorial.analysis_of_variance);
        if let Some(terms) = terms.filter(|terms| !terms.is_empty()) {
            self.line("");
            let words =
                "Analysis of variance of the logarithms (type III); each p is for its term alone";
            self.wrapped("", words, Style::Plain);
            let cells: Vec<[String; 4]> = terms
                .iter()
                .map(|term| {
                    let (of_term, left_over) = term.degrees_of_freedom;
                    [
                        term.term.clone(),
                        format!("{of_term}, {left_over}"),
                        format!("{:.2}", term.f),
                        fwdlab_stats::format_p(term.p),
                    ]
                })
                .collect();
            self.table(["term", "degrees of freedom", "F", "p"], &cells);
        }
    }

    /// What every method makes of the effects, where that was asked for.
    fn methods_asked_for(&mut self, shown: &Shown<'_>) {
        if shown.rows.iter().any(|of| !of.row.methods.is_empty()) {
            self.line("");
            self.methods(shown);
        }
    }

    /// Cells in columns, under their headings.
    fn table<const N: usize>(&mut self, headings: [&str; N], cells: &[[String; N]]) {
        let mut rows = vec![headings.map(str::to_owned)];
        rows.extend_from_slice(cells);
        let lines = in_columns(&rows, |_| false);
        if lines.iter().any(|line| columns(line) + 4 > self.width) {
            for sentence in in_sentences(&rows) {
                self.wrapped("    ", &sentence, Style::Plain);
            }
            return;
        }
        let styles = iter::once(Style::Dim).chain(iter::repeat(Style::Plain));
        for (line, style) in lines.iter().zip(styles) {
            let line = self.styled(line, style);
            self.line(&format!("    {line}"));
        }
    }

    fn warnings(&mut self, warnings: &[Warning]) {
        if warnings.is_empty() {
            return;
        }
        self.line("");
        for warning in warnings {
            self.warning(&warning.code, &causes::in_full(warning));
        }
    }

    fn warning(&mut self, code: &str, text: &str) {
        self.wrapped(&format!("{code}  "), text, Style::Yellow);
    }

    /// The warnings of a run that is in `directory`, a line for each cause.
    fn causes(&mut self, report: &Report, directory: &Path) {
        let causes = causes::causes(report);
        if causes.is_empty() {
            return;
        }
        self.line("");
        let mut is_whole = true;
        for cause in causes {
            let room = self.width.saturating_sub(cause.code.len() + 2);
            let line = cause.line(report.profiles.as_ref(), room);
            self.warning(cause.code, &line.text);
            is_whole &= line.is_whole;
        }
        if !is_whole {
            let directory = shell_word(&directory.display().to_string());
            let words = format!("In full: fwdlab show {directory} --warnings");
            self.line(&self.styled(&words, Style::Dim));
        }
    }
}

/// Effects on a logarithmic axis of characters.
struct Axis {
    low: f64,
    high: f64,
    width: usize,
    threshold_percent: f64,
}

impl Axis {
    fn new(effects: &[&Effect], threshold_percent: f64, width: usize) -> Self {
        let (low, high) = span(threshold_percent, effects);
        Self {
            low,
            high,
            width,
            threshold_percent,
        }
    }

    fn column(&self, percent: f64) -> usize {
        let span = (self.high - self.low).max(f64::MIN_POSITIVE);
        let part = ((logarithm(percent) - self.low) / span).clamp(0.0, 1.0);
        let last = self.width - 1;
        // Counted instead of cast: a plot is a few dozen columns wide.
        (0..last)
            .find(|column| part * last as f64 - 0.5 < *column as f64)
            .unwrap_or(last)
    }

    fn bar(&self, effect: &Effect) -> String {
        let mut cells = vec![' '; self.width];
        let band = self.column(-self.threshold_percent)..=self.column(self.threshold_percent);
        for column in band {
            cells[column] = '░';
        }
        cells[self.column(0.0)] = '│';
        let (from, to, ends) = match effect.shown_interval() {
            Some(ends) => (
                self.column(ends.low_percent),
                self.column(ends.high_percent),
                ['├', '┤'],
            ),
            None => (0, self.width - 1, ['◄', '►']),
        };
        if from < to {
            for cell in &mut cells[from..=to] {
                *cell = '─';
            }
            cells[from] = ends[0];
            cells[to] = ends[1];
        }
        cells[self.column(effect.estimate_percent)] = '●';
        cells.into_iter().collect()
    }

    /// The ends of the axis and zero, each under its column where there is room.
    fn labels(&self) -> String {
        let decimals = if self.high - self.low < 0.05 { 1 } else { 0 };
        let label = |value: f64| format!("{} %", format::signed(percent(value), decimals));
        let mut cells = vec![' '; self.width];
        let mut taken = vec![false; self.width];
        let mut place = |text: &str, middle: usize| {
            let length = columns(text);
            let start = middle
                .saturating_sub(length / 2)
                .min(self.width.saturating_sub(length));
            let end = (start + length).min(self.width);
            let near = start.saturating_sub(1)..(end + 1).min(self.width);
            if taken[near].iter().any(|taken| *taken) {
                return;
            }
            for (cell, character) in cells[start..end].iter_mut().zip(text.chars()) {
                *cell = character;
            }
            taken[start..end].fill(true);
        };
        place("0", self.column(0.0));
        place(&label(self.low), 0);
        place(&label(self.high), self.width - 1);
        cells.into_iter().collect()
    }
}
