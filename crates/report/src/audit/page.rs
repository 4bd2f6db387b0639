//! README.md of an audit.

use std::fmt::Write as _;

use super::noise::{NoiseRow, NoiseSection};
use super::plot;
use super::sentences::{Answer, Topic, answers, scope};
use super::verdicts::{AuditComparison, CONFIDENCE};
use super::{AuditReport, PracticeSection, VerdictsSection};
use crate::format::{count, interval, part, short, signed};
use crate::text::markdown;

/// Comparisons whose words do not stand that are listed; all of them are in audit.json.
const FALLEN_SHOWN: usize = 40;

pub(super) fn readme(report: &AuditReport) -> String {
    let mut page = format!(
        "# Published results, judged again\n\n{}: {}\n\n",
        markdown(&report.source),
        scope(report)
    );
    for answer in answers(report) {
        write_answer(&mut page, report, &answer);
    }
    page += "## How this was reckoned\n\n\
        - A dataset is a published file of observations, one a run. Runs are those of its logs, without profiled ones.\n\
        - Methods work on the logarithms of the rates. *Alone* is each comparison for itself, *corrected* all comparisons of a \
          block together, at 95 % for all of them. fwdlab's words follow Welch's t, corrected by Holm; a change of less than \
          1 % does not matter.\n\
        - Which side was measured first, and when, is seldom written down: a drift between the sides shows as an effect in every \
          method.\n\
        - The steady state of a log is its blast without 3 s at the beginning and 2 s at the end; the archive's own observation is \
          the median of what its script leaves.\n\
        - Two datasets are of the same configuration where platform, card, `uname -a`, image, settings and traffic are the \
          same, as far as they are written down; a kernel that was patched by hand may be called the same. Pairs of identical \
          numbers are copies and left out.\n\
        - Datasets of fewer than 5 runs are left out of the noise between runs, and groups of fewer than 10 datasets are not shown \
          on their own.\n\n\
        Every figure and every comparison: [audit.json](audit.json).\n";
    page
}

fn write_answer(page: &mut String, report: &AuditReport, answer: &Answer) {
    let _ = write!(page, "## {}\n\n", answer.heading);
    for sentence in &answer.sentences {
        *page += sentence;
        page.push('\n');
    }
    page.push('\n');
    match answer.topic {
        Topic::Verdicts => write_verdicts(page, &report.verdicts),
        Topic::Noise => {
            if let Some(noise) = &report.noise {
                write_noise(page, noise);
            }
        }
        Topic::Sessions if plot::has_apart(report) => {
            let _ = write!(
                page,
                "![How far apart things are that should be the same](plots/{})\n\n",
                plot::APART
            );
        }
        Topic::Practice => {
            if let Some(practice) = &report.practice {
                write_practice(page, practice);
            }
        }
        _ => {}
    }
}

fn write_verdicts(page: &mut String, section: &VerdictsSection) {
    if section.comparisons.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "![Published comparisons, judged by every method](plots/{})\n\n",
        plot::VERDICTS
    );
    *page += "| method | for | differences that it finds, too | differences that it finds where none was proven |\n\
              |---|---|---:|---:|\n";
    for tally in &section.methods {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} |",
            tally.method,
            if tally.is_corrected {
                "the block"
            } else {
                "the comparison"
            },
            of(tally.said_kept, tally.said),
            of(tally.unsaid_found, tally.unsaid),
        );
    }
    *page +=
        "\n| fwdlab says | where a difference is said | where none is proven |\n|---|---:|---:|\n";
    for tally in &section.words {
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            tally.verdict, tally.said, tally.unsaid
        );
    }
    page.push('\n');
    let does_not_stand = |comparison: &&AuditComparison| {
        comparison
            .says_difference
            .is_some_and(|says| says != comparison.verdict.shows_difference())
    };
    let fallen: Vec<&AuditComparison> = section.comparisons.iter().filter(does_not_stand).collect();
    if fallen.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<details><summary>Comparisons whose words do not stand: {}</summary>\n\n\
         | text | row | said | change, % | p, corrected | fwdlab says |\n|---|---|---|---:|---:|---|\n",
        fallen.len()
    );
    for comparison in fallen.iter().take(FALLEN_SHOWN) {
        let said = match comparison.says_difference {
            Some(true) => "a difference",
            _ => "none proven",
        };
        let _ = writeln!(
            page,
            "| {}:{} | {} | {said} | {} | {} | {} |",
            markdown(&comparison.text),
            comparison.line,
            markdown(&comparison.label),
            change(comparison),
            corrected_p(comparison),
            comparison.verdict,
        );
    }
    if fallen.len() > FALLEN_SHOWN {
        let _ = write!(
            page,
            "\nAnd {} more, in audit.json.\n",
            fallen.len() - FALLEN_SHOWN
        );
    }
    *page += "\n</details>\n\n";
}

fn of(some: usize, all: usize) -> String {
    if all == 0 {
        return "none to decide on".to_owned();
    }
    format!(
        "{} of {} ({})",
        count(some as u64),
        count(all as u64),
        part(some as f64 / all as f64 * 100.0)
    )
}

fn change(comparison: &AuditComparison) -> String {
    let decimals = 2;
    let estimate = signed(comparison.effect_percent, decimals);
    format!("{estimate} {}", interval(comparison.interval, decimals))
}

/// By the method that the words follow.
fn corrected_p(comparison: &AuditComparison) -> String {
    let p = comparison
        .methods
        .first()
        .and_then(|method| method.adjusted_p);
    p.map_or_else(String::new, fwdlab_stats::format_p)
}

fn write_noise(page: &mut String, noise: &NoiseSection) {
    let _ = write!(
        page,
        "![Coefficient of variation between runs, by group](plots/{})\n\n",
        plot::NOISE
    );
    let header = "| | datasets | runs | 10 % | 25 % | median | 75 % | 90 % | 95 % | 99 % |\n\
                  |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    *page += header;
    write_row(page, &noise.all);
    page.push('\n');
    for (what, rows) in [
        ("platform", &noise.platforms),
        ("network interface card", &noise.nics),
        ("topic", &noise.topics),
        ("year", &noise.years),
    ] {
        if rows.is_empty() {
            continue;
        }
        let _ = write!(page, "<details><summary>By {what}</summary>\n\n{header}");
        for row in rows {
            write_row(page, row);
        }
        *page += "\n</details>\n\n";
    }
}

fn write_row(page: &mut String, row: &NoiseRow) {
    let cv = &row.cv_percent;
    let figures = [cv.p10, cv.p25, cv.p50, cv.p75, cv.p90, cv.p95, cv.p99];
    let figures = figures.map(|figure| short(figure, 2));
    let _ = writeln!(
        page,
        "| {} | {} | {} | {} |",
        markdown(&row.name),
        count(cv.count as u64),
        count(row.runs as u64),
        figures.join(" | ")
    );
}

fn write_practice(page: &mut String, practice: &PracticeSection) {
    let _ = write!(
        page,
        "| comparisons of a block | blocks | a difference where there is none |\n|---:|---:|---:|\n"
    );
    for row in &practice.families {
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            row.comparisons,
            row.blocks,
            part(row.false_part * 100.0)
        );
    }
    let _ = write!(
        page,
        "\nThe pooled t test at {} %, {} draws each, so that a share of 20 % has a standard error of 0.4 %.\n\n",
        short(CONFIDENCE * 100.0, 1),
        count(u64::from(practice.draws))
    );
}
