//! What a calibration ends with: the tables, and whether the methods hold what is asked of them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use statrs::distribution::{Beta, ContinuousCDF as _};

use crate::setting::{Asked, Setting};
use crate::tally::{BESIDE, DRAWS, Family, MethodTally, Tally, VARIANTS};

/// The largest share of families with a false positive, of the default method.
const FALSE_POSITIVES_MAX: f64 = 0.055;
/// The smallest share of intervals that hold the true effect, of the default method.
const COVERAGE_MIN: f64 = 0.94;
/// What ministat's practice has to err by where the machine drifts by 3 SD: otherwise the drift is too
/// small to test anything.
const MINISTAT_UNDER_DRIFT_MIN: f64 = 0.4;
/// The largest share of families with a warning of what is not there, for each of the checks.
const FALSE_WARNINGS_MAX: f64 = 0.011;
/// The smallest share of families with a carry-over that are warned of it.
const CARRY_OVER_FOUND_MIN: f64 = 0.9;
/// The confidence of each bound.
const BOUND_CONFIDENCE: f64 = 0.99;

/// The lines that the tables stand between.
const BEGIN: &str = "<!-- calibrate -->";
const END: &str = "<!-- end of calibrate -->";

/// Everything that was counted in one setting.
pub(crate) struct Row {
    pub(crate) setting: &'static Setting,
    pub(crate) null: Tally,
    pub(crate) graded: Tally,
    pub(crate) threshold: Tally,
}

/// The upper bound of a share, by Clopper and Pearson.
fn upper_bound(hits: u64, replicates: u64) -> f64 {
    if hits == replicates {
        return 1.0;
    }
    Beta::new((hits + 1) as f64, (replicates - hits) as f64)
        .expect("both counts are positive")
        .inverse_cdf(BOUND_CONFIDENCE)
}

/// The lower bound of a share, by Clopper and Pearson.
fn lower_bound(hits: u64, replicates: u64) -> f64 {
    1.0 - upper_bound(replicates - hits, replicates)
}

/// What does not hold, each with its setting and its figures.
pub(crate) fn failures(rows: &[Row]) -> Vec<String> {
    rows.iter().flat_map(failures_of).collect()
}

fn failures_of(row: &Row) -> Vec<String> {
    let setting = row.setting;
    let mut failures = Vec::new();
    let mut at_most = |what: &str, hits: u64, replicates: u64| {
        let bound = upper_bound(hits, replicates);
        if bound > FALSE_POSITIVES_MAX {
            failures.push(format!(
                "{}: {what} in {} % of {replicates} families; the upper bound, {} %, is above {} %",
                setting.name,
                percent(hits, replicates),
                percent_of(bound),
                percent_of(FALSE_POSITIVES_MAX),
            ));
        }
    };
    if setting.asked >= Asked::Direction {
        for tally in [&row.null, &row.graded] {
            at_most(
                "the default calls a variant different that is not",
                tally.signed_rank.false_positives,
                tally.replicates,
            );
        }
    }
    if setting.asked >= Asked::Size {
        for tally in [&row.graded, &row.threshold] {
            at_most(
                "the default calls an effect larger than the threshold that is not",
                tally.wrong_beyond,
                tally.replicates,
            );
            at_most(
                "the default calls an effect smaller than the threshold that is not",
                tally.wrong_inside,
                tally.replicates,
            );
        }
    }
    if setting.asked >= Asked::Coverage {
        let replicates = row.graded.replicates;
        let effects = Family::Graded.effects_percent();
        for (effect, covered) in effects.iter().zip(row.graded.signed_rank.covered) {
            let bound = lower_bound(covered, replicates);
            if bound < COVERAGE_MIN {
                failures.push(format!(
                    "{}: the default's interval holds an effect of {effect} % in {} % of {replicates} families; the \
                     lower bound, {} %, is below {} %",
                    setting.name,
                    percent(covered, replicates),
                    percent_of(bound),
                    percent_of(COVERAGE_MIN),
                ));
            }
        }
    }
    failures.extend(failures_of_checks(row));
    let ministat = row.null.ministat.false_positives as f64 / row.null.replicates as f64;
    if setting.drift_deviations >= 3.0
        && setting.asked >= Asked::Size
        && ministat < MINISTAT_UNDER_DRIFT_MIN
    {
        failures.push(format!(
            "{}: ministat's practice errs in {} % of the families only, so that this drift tests nothing",
            setting.name,
            percent_of(ministat)
        ));
    }
    failures
}

/// What the checks beside the verdicts do not hold.
fn failures_of_checks(row: &Row) -> Vec<String> {
    let (setting, null) = (row.setting, &row.null);
    let carries_over = setting.carry_over > 0.0;
    // A drift is an effect of the place, though a small one.
    let drifts = setting.drift_deviations > 0.0;
    let mut failures = Vec::new();
    let checked = null.checked_replicates;
    for (code, warnings, replicates, is_false) in [
        ("W108", null.carry_over_warnings, checked, !carries_over),
        ("W109", null.place_warnings, checked, !drifts),
        ("W110", null.modes_warnings, null.replicates, true),
    ] {
        let bound = upper_bound(warnings, replicates);
        if is_false && bound > FALSE_WARNINGS_MAX {
            failures.push(format!(
                "{}: {code} warns of {} % of {} families without reason; the upper bound, {} %, is above {} %",
                setting.name,
                percent(warnings, replicates),
                replicates,
                percent_of(bound),
                percent_of(FALSE_WARNINGS_MAX),
            ));
        }
    }
    let bound = lower_bound(null.carry_over_warnings, checked);
    if carries_over && bound < CARRY_OVER_FOUND_MIN {
        failures.push(format!(
            "{}: W108 warns of {} % of {} families with a carry-over; the lower bound, {} %, is below {} %",
            setting.name,
            percent(null.carry_over_warnings, checked),
            checked,
            percent_of(bound),
            percent_of(CARRY_OVER_FOUND_MIN),
        ));
    }
    failures
}

/// The tables, then what does not hold.
pub(crate) fn markdown(rows: &[Row], failures: &[String]) -> String {
    let mut text = String::new();
    table(
        &mut text,
        "Families of four variants without any effect in which one or more is called different, in percent. \
         In brackets how many it may be: the upper 99 % bound.",
        &[
            "setting",
            "what is special",
            "fwdlab's default",
            "block t",
            "sign-flip",
            "ministat's practice",
        ],
        rows.iter().map(|row| {
            let share = |method: &MethodTally| percent(method.false_positives, row.null.replicates);
            let bound = upper_bound(row.null.signed_rank.false_positives, row.null.replicates);
            vec![
                row.setting.words.to_owned(),
                format!(
                    "{} (to {})",
                    share(&row.null.signed_rank),
                    percent_of(bound)
                ),
                share(&row.null.student),
                share(&row.null.sign_flip),
                share(&row.null.ministat),
            ]
        }),
        rows,
    );
    table(
        &mut text,
        "Intervals for 95 % that hold the true effect, in percent: variants without an effect, and 0.5, 1 and \
         5 % slower.",
        &[
            "setting",
            "fwdlab's default",
            "block t",
            "ministat's practice",
        ],
        rows.iter().map(|row| {
            let shares = |method: &MethodTally| each(method.covered, row.graded.replicates, 0);
            vec![
                shares(&row.graded.signed_rank),
                shares(&row.graded.student),
                shares(&row.graded.ministat),
            ]
        }),
        rows,
    );
    table(
        &mut text,
        "Power: variants that are 0.5, 1 and 5 % slower and are called different, in percent, all in one \
         family.",
        &[
            "setting",
            "fwdlab's default",
            "block t",
            "sign-flip",
            "ministat's practice",
        ],
        rows.iter().map(|row| {
            let shares = |method: &MethodTally| each(method.shown, row.graded.replicates, 1);
            vec![
                shares(&row.graded.signed_rank),
                shares(&row.graded.student),
                shares(&row.graded.sign_flip),
                shares(&row.graded.ministat),
            ]
        }),
        rows,
    );
    table(
        &mut text,
        "The other words of the default, in percent of the families: one or more called different that is not, \
         or in the wrong direction, beside others that are; an effect called larger, or smaller, than the \
         threshold of 1 % that is not, where all four have an effect of exactly that. And how often W107 warns \
         of a ceiling, in families without effects and with four.",
        &[
            "setting",
            "wrongly different",
            "wrongly larger",
            "wrongly smaller",
            "W107",
        ],
        rows.iter().map(|row| {
            vec![
                percent(
                    row.graded.signed_rank.false_positives,
                    row.graded.replicates,
                ),
                percent(row.threshold.wrong_beyond, row.threshold.replicates),
                percent(row.threshold.wrong_inside, row.threshold.replicates),
                format!(
                    "{} / {}",
                    percent(row.null.ceiling_warnings, row.null.replicates),
                    percent(row.graded.ceiling_warnings, row.graded.replicates)
                ),
            ]
        }),
        rows,
    );
    beside(&mut text, rows);
    table(
        &mut text,
        &format!(
            "The checks beside the verdicts: families without any effect in which W108 warns of what a predecessor \
             leaves behind, W109 of the place in the round (both in {} sessions) and W110 of effects in two groups, \
             in percent.",
            rows.first().map_or(0, |row| row.null.checked_replicates)
        ),
        &["setting", "W108", "W109", "W110"],
        rows.iter().map(|row| {
            let of_order = |hits: u64| percent(hits, row.null.checked_replicates);
            vec![
                of_order(row.null.carry_over_warnings),
                of_order(row.null.place_warnings),
                percent(row.null.modes_warnings, row.null.replicates),
            ]
        }),
        rows,
    );
    let replicates = rows.first().map_or(0, |row| row.null.replicates);
    let _ = writeln!(
        text,
        "`cargo xtask calibrate --replicates {replicates}`: {replicates} sessions of each kind for every family in \
         every setting."
    );
    if failures.is_empty() {
        text.push_str("Everything that is asked of fwdlab's default holds.\n");
    } else {
        text.push_str("What does not hold:\n\n");
        for failure in failures {
            let _ = writeln!(text, "- {failure}");
        }
    }
    text
}

/// The tables of the methods that stand beside the verdicts.
fn beside(text: &mut String, rows: &[Row]) {
    let replicates = rows.first().map_or(0, |row| row.null.beside_replicates);
    let names: Vec<String> = BESIDE
        .iter()
        .map(|beside| {
            let of = if beside.is_of_blocks {
                "blocks"
            } else {
                "runs"
            };
            format!("{} of {of}", beside.method.words())
        })
        .collect();
    let mut head = vec!["setting"];
    head.extend(names.iter().map(String::as_str));
    table(
        text,
        &format!(
            "Methods that stand beside the verdicts, in {replicates} sessions of each kind, with {} draws where they \
             resample: families without any effect in which one or more is called different, in percent. \
             *Of blocks* are the default's data, *of runs* those of ministat's practice. All are corrected for \
             four comparisons but the bootstrap, which has an interval for each alone.",
            DRAWS.count
        ),
        &head,
        rows.iter().map(|row| {
            let of_methods = row.null.beside.iter();
            of_methods
                .map(|method| percent(method.false_positives, row.null.beside_replicates))
                .collect()
        }),
        rows,
    );
    let with_interval: Vec<usize> = (0..BESIDE.len())
        .filter(|at| {
            rows.iter()
                .any(|row| row.graded.beside[*at].covered != [0; VARIANTS])
        })
        .collect();
    let mut head = vec!["setting"];
    head.extend(with_interval.iter().map(|at| names[*at].as_str()));
    table(
        text,
        "Their intervals for 95 % that hold the true effect, in percent: variants without an effect, and 0.5, 1 \
         and 5 % slower. Dunnett's hold all four together.",
        &head,
        rows.iter().map(|row| {
            let of = |at: &usize| {
                each(
                    row.graded.beside[*at].covered,
                    row.graded.beside_replicates,
                    0,
                )
            };
            with_interval.iter().map(of).collect()
        }),
        rows,
    );
    let mut head = vec!["setting"];
    head.extend(names.iter().map(String::as_str));
    table(
        text,
        "And their power: variants that are 0.5, 1 and 5 % slower and are called different, in percent.",
        &head,
        rows.iter().map(|row| {
            let of_methods = row.graded.beside.iter();
            of_methods
                .map(|method| each(method.shown, row.graded.beside_replicates, 1))
                .collect()
        }),
        rows,
    );
}

fn table(
    text: &mut String,
    says: &str,
    head: &[&str],
    cells: impl Iterator<Item = Vec<String>>,
    rows: &[Row],
) {
    let _ = writeln!(text, "{says}\n\n| {} |", head.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(head.len()));
    for (row, cells) in rows.iter().zip(cells) {
        let _ = writeln!(text, "| {} | {} |", row.setting.name, cells.join(" | "));
    }
    text.push('\n');
}

fn each(hits: [u64; VARIANTS], replicates: u64, from: usize) -> String {
    let shares: Vec<String> = hits[from..]
        .iter()
        .map(|hits| percent(*hits, replicates))
        .collect();
    shares.join(" / ")
}

fn percent(hits: u64, replicates: u64) -> String {
    percent_of(hits as f64 / replicates as f64)
}

fn percent_of(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// Puts the tables between their marks in a document.
///
/// # Errors
/// It has no such marks, or cannot be read or written.
pub(crate) fn put_into(document: &Path, tables: &str) -> Result<()> {
    let shown = document.display();
    let text = fs::read_to_string(document).with_context(|| shown.to_string())?;
    let replaced = between_marks(&text, tables).with_context(|| {
        format!("{shown}: no lines {BEGIN} and {END} to put the tables between; add them")
    })?;
    fs::write(document, replaced).with_context(|| shown.to_string())
}

fn between_marks(text: &str, tables: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{tables}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::SETTINGS;

    /// A row of 1000 replicates in which everything went well.
    fn good(name: &str) -> Row {
        let setting = SETTINGS
            .iter()
            .find(|setting| setting.name == name)
            .unwrap();
        let mut tally = Tally {
            replicates: 1000,
            checked_replicates: 1000,
            ..Tally::default()
        };
        tally.signed_rank.false_positives = 25;
        tally.signed_rank.covered = [965; VARIANTS];
        tally.ministat.false_positives = 900;
        Row {
            setting,
            null: tally,
            graded: tally,
            threshold: tally,
        }
    }

    #[test]
    fn bounds_are_those_of_clopper_and_pearson() {
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        // Without a hit the bound is where (1 - p)^n is 1 %.
        close(upper_bound(0, 100), 1.0 - 0.01_f64.powf(0.01));
        close(lower_bound(100, 100), 0.01_f64.powf(0.01));
        close(upper_bound(7, 7), 1.0);
        close(lower_bound(0, 7), 0.0);
        // SciPy: beta.ppf(0.99, 51, 950).
        close(upper_bound(50, 1000), 0.068_404_893_695_630_96);
    }

    #[test]
    fn what_does_not_hold_is_named() {
        assert_eq!(failures(&[good("typical"), good("drift-3")]), [""; 0]);
        let mut row = good("drift-3");
        row.null.signed_rank.false_positives = 60;
        row.graded.signed_rank.covered[1] = 940;
        row.threshold.wrong_beyond = 100;
        row.null.ministat.false_positives = 399;
        row.null.modes_warnings = 10;
        assert_eq!(
            failures(&[good("typical"), row]).join("\n"),
            "\
drift-3: the default calls a variant different that is not in 6.0 % of 1000 families; the upper bound, 8.0 %, is above 5.5 %
drift-3: the default calls an effect larger than the threshold that is not in 10.0 % of 1000 families; the upper bound, 12.4 %, is above 5.5 %
drift-3: the default's interval holds an effect of -0.5 % in 94.0 % of 1000 families; the lower bound, 92.0 %, is below 94.0 %
drift-3: W110 warns of 1.0 % of 1000 families without reason; the upper bound, 2.0 %, is above 1.1 %
drift-3: ministat's practice errs in 39.9 % of the families only, so that this drift tests nothing"
        );
    }

    #[test]
    fn a_carry_over_has_to_be_found() {
        let mut row = good("carry-over");
        row.null.carry_over_warnings = 990;
        assert_eq!(failures(&[row]), [""; 0]);
        assert_eq!(
            failures(&[good("carry-over")]).join("\n"),
            "carry-over: W108 warns of 0.0 % of 1000 families with a carry-over; the lower bound, 0.0 %, is below 90.0 %"
        );
    }

    #[test]
    fn nothing_is_asked_that_a_setting_rules_out() {
        let mut row = good("ceiling");
        row.graded.signed_rank.covered = [500; VARIANTS];
        row.threshold.wrong_inside = 500;
        assert_eq!(failures(&[row]), [""; 0]);
    }

    #[test]
    fn the_page_shows_every_setting() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/calibration.md");
        let page = fs::read_to_string(page).unwrap();
        for setting in SETTINGS {
            let row = format!("| {} | {} |", setting.name, setting.words);
            assert!(
                page.contains(&row),
                "{row}: run cargo xtask calibrate --into docs/calibration.md"
            );
        }
        assert!(between_marks(&page, "").is_some());
    }

    #[test]
    fn tables_take_the_place_of_those_before_them() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let once = between_marks(&text, "new\n").unwrap();
        assert_eq!(once, text.replace("old", "new"));
        assert_eq!(between_marks("a", "new\n"), None);
    }
}
