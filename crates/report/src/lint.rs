//! What was published of a run, compared with what its records give.
//!
//! Figures and verdicts are compared, not bytes: another version may word a report otherwise, and whoever
//! publishes one may write into it. A line that is the same but for its figures was not worded otherwise.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fwdlab_archive::lint::{
    CEILING, Evidence, FIGURE_CHANGED, Finding, NOT_AS_REPORTED, NOT_OF_ITS_FORM,
    OFFERED_LOAD_MOVED, OTHER_TITLE, OTHER_VERDICT, Rule, UNKNOWN_FILE, VERDICT_FLIPS,
};
use fwdlab_archive::{Attempt, Loaded};
use fwdlab_model::imported::{ImportedResults, ImportedRun};
use fwdlab_stats::Verdict;

use crate::compare::CompareSettings;
use crate::error::ReportError;
use crate::evidence::{Scope, attempts};
use crate::imported::ImportedReport;
use crate::render;
use crate::report::{Direction, Report};

/// So many lines of a file are shown of those that differ.
const SHOWN_MAX: usize = 3;

/// Files of `derived/` that no report is made of: what `fwdlab doctor` measured.
const OTHERS: &[&str] = &["derived/noise.json"];

/// Holds README.md and what `derived/` holds, by their paths in the directory, against the records; and
/// says what the report warns of where it concerns whether a verdict can be believed.
///
/// Shape: none of the files need be there.
#[must_use]
pub fn lint_report(loaded: &Loaded, published: &BTreeMap<String, Vec<u8>>) -> Vec<Finding> {
    let with_profiles = with_all_profiles_or_none(loaded);
    let (loaded, are_profiles_left_out) = (&*with_profiles, matches!(with_profiles, Cow::Owned(_)));
    let made =
        match Report::build(loaded).and_then(|report| Ok((made_files(&report, loaded)?, report))) {
            Ok(made) => made,
            // Nothing was measured, and nothing is published.
            Err(ReportError::NoSession) if published.is_empty() => return Vec::new(),
            Err(error) => {
                let sentence = format!("no report can be made of the records: {error}");
                let finding = Finding::new(&NOT_OF_ITS_FORM, &loaded.dir, sentence);
                let evidence = Evidence::published(&records(loaded), None, error.to_string());
                return vec![finding.with(evidence)];
            }
        };
    let (files, report) = made;
    let sources = Sources {
        directory: &loaded.dir,
        title: "resolved.json",
        records: loaded.dir.clone(),
    };
    let mut findings = warned(loaded, &report);
    let mut others = OTHERS.to_vec();
    if are_profiles_left_out {
        let names = published.keys().map(String::as_str);
        others.extend(names.filter(|name| is_flame_graph(name)));
    }
    findings.extend(compare_all(
        &sources,
        published,
        &files,
        &others,
        loaded.finished.is_some(),
    ));
    findings
}

/// Holds README.md and what `derived/` holds in a folder of imported results, by their paths in it, against its
/// records.
///
/// Shape: none of the files need be there.
#[must_use]
pub fn lint_imported_report(
    directory: &Path,
    results: &ImportedResults,
    runs: &[ImportedRun],
    published: &BTreeMap<String, Vec<u8>>,
) -> Vec<Finding> {
    if published.is_empty() {
        return Vec::new();
    }
    let report = ImportedReport::build(results, runs, CompareSettings::default());
    let plots = report.plots().into_iter();
    let mut files: BTreeMap<String, String> = plots
        .map(|(name, text)| (format!("derived/{name}"), text))
        .collect();
    files.insert("README.md".to_owned(), report.readme());
    let sources = Sources {
        directory,
        title: "imported.json",
        records: directory.join("imported.json"),
    };
    compare_all(&sources, published, &files, &[], true)
}

/// Compares published files with those that are made of the records; strangers among them are findings, but for
/// `others`. The figures of a run that is not finished may be those of fewer blocks.
fn compare_all(
    sources: &Sources<'_>,
    published: &BTreeMap<String, Vec<u8>>,
    files: &BTreeMap<String, String>,
    others: &[&str],
    is_finished: bool,
) -> Vec<Finding> {
    let directory = sources.directory;
    let mut findings = Vec::new();
    let mut worded_otherwise = Vec::new();
    for (name, bytes) in published {
        match files.get(name) {
            Some(made) if made.as_bytes() == bytes => {}
            Some(made) => {
                let before = findings.len();
                if is_finished {
                    let text = String::from_utf8_lossy(bytes);
                    compare(sources, name, &text, made, &mut findings);
                }
                if findings.len() == before {
                    worded_otherwise.push(name);
                }
            }
            None if others.contains(&name.as_str()) => {}
            None => findings.push(none_of_the_reports(directory, name)),
        }
    }
    findings.extend(not_as_reported(directory, &worded_otherwise));
    findings
}

fn none_of_the_reports(directory: &Path, name: &str) -> Finding {
    let sentence = format!("{name} is not one of the report's files");
    let evidence = Evidence::published(&directory.join(name), None, "is there");
    Finding::new(&UNKNOWN_FILE, directory, sentence).with(evidence)
}

/// Files that are worded otherwise.
fn not_as_reported(directory: &Path, others: &[&String]) -> Option<Finding> {
    if others.is_empty() {
        return None;
    }
    let names: Vec<&str> = others.iter().map(|name| name.as_str()).collect();
    let sentence = format!(
        "not what this fwdlab makes of the records: {}",
        names.join(", ")
    );
    let finding = Finding::new(&NOT_AS_REPORTED, directory, sentence);
    Some(
        others
            .iter()
            .take(SHOWN_MAX)
            .fold(finding, |finding, name| {
                finding.published(&directory.join(name), "differs")
            }),
    )
}

/// A run whose profiles are all there, or are all left out: those of some blocks have other means than those of all blocks.
fn with_all_profiles_or_none(loaded: &Loaded) -> Cow<'_, Loaded> {
    let is_missing = |attempt: &Attempt| {
        let mut profiled = attempt.trials.iter().filter(|trial| {
            trial
                .profile
                .as_ref()
                .is_some_and(|record| record.faults.is_empty())
        });
        profiled.any(|trial| attempt.stacks(trial).is_none())
    };
    if !attempts(loaded, Scope::Accepted)
        .into_iter()
        .any(is_missing)
    {
        return Cow::Borrowed(loaded);
    }
    let mut loaded = loaded.clone();
    for attempt in &mut loaded.attempts {
        attempt.profiles.clear();
    }
    Cow::Owned(loaded)
}

/// Whether a published file is a flame graph, by its name: of profiles that are gone none is made.
fn is_flame_graph(name: &str) -> bool {
    let starts = ["derived/flame-", "derived/difference-"];
    name.ends_with(".svg") && starts.iter().any(|start| name.starts_with(start))
}

/// The report's files by their paths in the directory.
fn made_files(report: &Report, loaded: &Loaded) -> Result<BTreeMap<String, String>, ReportError> {
    let derived = render::derived_files(report, loaded)?.into_iter();
    let mut files: BTreeMap<String, String> = derived
        .map(|(name, text)| (format!("derived/{name}"), text))
        .collect();
    files.insert("README.md".to_owned(), render::readme(report, "derived/"));
    Ok(files)
}

fn records(loaded: &Loaded) -> PathBuf {
    loaded.dir.join("trials.jsonl")
}

/// What the report warns of, as findings: those warnings that say that a verdict may not be one of the DUT.
fn warned(loaded: &Loaded, report: &Report) -> Vec<Finding> {
    let rule = |code: &str| -> Option<&'static Rule> {
        match code {
            "W107" | "W218" => Some(&CEILING),
            "W217" => Some(&OFFERED_LOAD_MOVED),
            "W206" | "W210" => Some(&VERDICT_FLIPS),
            _ => None,
        }
    };
    report
        .warnings
        .iter()
        .filter_map(|warning| {
            let rule = rule(&warning.code)?;
            let sentence = format!("{}: {}", warning.subjects.join(", "), warning.text);
            let evidence = Evidence::published(&records(loaded), None, warning.code.as_str());
            Some(Finding::new(rule, &loaded.dir, sentence).with(evidence))
        })
        .collect()
}

/// A line, what is left of it without its figures and verdicts, and its verdicts.
struct Line<'a> {
    number: usize,
    text: &'a str,
    shape: String,
    verdicts: Vec<Said>,
}

/// A verdict of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    words: &'static str,
    /// Which way, where that is said; earlier versions did not say it everywhere.
    direction: Option<Direction>,
}

impl Said {
    /// That with which a text begins, and how long it is in bytes.
    fn at_start(text: &str) -> Option<(Self, usize)> {
        let words = VERDICTS.iter().map(|verdict| verdict.words());
        if let Some(words) = words
            .into_iter()
            .find(|words| starts_with_words(text, words))
        {
            let ways = [Direction::Faster, Direction::Slower]
                .map(|way| (way, format!(" ({})", way.word())));
            let way = ways
                .iter()
                .find(|(_, said)| text[words.len()..].starts_with(said));
            let direction = way.map(|(direction, _)| *direction);
            return Some((
                Self { words, direction },
                words.len() + way.map_or(0, |(_, said)| said.len()),
            ));
        }
        let words = FINDINGS
            .into_iter()
            .find(|words| starts_with_words(text, words))?;
        Some((
            Self {
                words,
                direction: None,
            },
            words.len(),
        ))
    }

    /// Whether both say the same, as far as both say it.
    fn agrees_with(self, other: Self) -> bool {
        let is_same_way = self.direction == other.direction
            || self.direction.is_none()
            || other.direction.is_none();
        self.words == other.words && is_same_way
    }
}

fn agree(published: &[Said], made: &[Said]) -> bool {
    let mut pairs = published.iter().zip(made);
    published.len() == made.len() && pairs.all(|(one, other)| one.agrees_with(*other))
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let numbered = text.lines().enumerate();
    numbered
        .map(|(index, text)| {
            let (shape, verdicts) = shape(text);
            Line {
                number: index + 1,
                text,
                shape,
                verdicts,
            }
        })
        .collect()
}

/// Where what a report says is from.
struct Sources<'a> {
    directory: &'a Path,
    /// The file with its title.
    title: &'a str,
    /// Where its figures are from: a file, or the directory where they are from several.
    records: PathBuf,
}

/// Lines that differ in figures or verdicts alone, and the title of a README.
fn compare(
    sources: &Sources<'_>,
    name: &str,
    published: &str,
    made: &str,
    findings: &mut Vec<Finding>,
) {
    let directory = sources.directory;
    let path = directory.join(name);
    let is_readme = name.ends_with(".md");
    // A plot has other figures in every version that draws it otherwise.
    if !is_readme && !name.ends_with(".json") {
        return;
    }
    // What is so much longer is another file, and would take long to be compared line by line.
    if published.len() > 4 * made.len() + (1 << 20) {
        return;
    }
    let (published, made) = (lines(published), lines(made));
    if is_readme && let (Some(title), Some(question)) = (published.first(), made.first()) {
        let is_title = title.text.starts_with("# ");
        if is_title && title.text.trim_end() != question.text {
            let sentence = format!("the title of {name} is not the question of the experiment");
            findings.push(
                Finding::new(&OTHER_TITLE, directory, sentence)
                    .published_at(&path, 1, title.text)
                    .derived(&directory.join(sources.title), question.text),
            );
        }
    }
    let pairs = differing(
        &published[1.min(published.len())..],
        &made[1.min(made.len())..],
    );
    let (verdicts, figures): (Vec<_>, Vec<_>) = (pairs.into_iter())
        .partition(|(published, made)| !agree(&published.verdicts, &made.verdicts));
    for (rule, pairs, what) in [
        (&OTHER_VERDICT, verdicts, "verdicts"),
        (&FIGURE_CHANGED, figures, "figures"),
    ] {
        if pairs.is_empty() {
            continue;
        }
        let (count, lines) = (pairs.len(), if pairs.len() == 1 { "line" } else { "lines" });
        let sentence = format!("{name}: {count} {lines} with {what} that the records do not give");
        let finding = Finding::new(rule, directory, sentence);
        let shown = pairs.iter().take(SHOWN_MAX);
        findings.push(shown.fold(finding, |finding, (published, made)| {
            let line = Some(published.number);
            finding
                .published_at(&path, line, published.text.trim())
                .derived(&sources.records, made.text.trim())
        }));
    }
}

/// Lines of one shape that are not the same in both, each with the one in whose place it stands.
fn differing<'l, 't>(
    published: &'l [Line<'t>],
    made: &'l [Line<'t>],
) -> Vec<(&'l Line<'t>, &'l Line<'t>)> {
    let mut by_shape: BTreeMap<&str, [Vec<&Line<'_>>; 2]> = BTreeMap::new();
    for (side, lines) in [published, made].into_iter().enumerate() {
        for line in lines {
            by_shape.entry(&line.shape).or_default()[side].push(line);
        }
    }
    let mut pairs = Vec::new();
    for [published, made] in by_shape.into_values() {
        let alone = |own: &[&'l Line<'t>], others: &[&Line<'_>]| {
            let mut others: Vec<String> = others.iter().map(|line| plain(line.text)).collect();
            others.sort_unstable();
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for other in &others {
                *counts.entry(other).or_default() += 1;
            }
            let mut alone = Vec::new();
            for line in own {
                match counts.get_mut(plain(line.text).as_str()) {
                    Some(count) if *count > 0 => *count -= 1,
                    _ => alone.push(*line),
                }
            }
            alone
        };
        let (one, other) = (alone(&published, &made), alone(&made, &published));
        let pairs_of_shape = one.into_iter().zip(other);
        pairs
            .extend(pairs_of_shape.filter(|(one, other)| !is_same_but_for_a_direction(one, other)));
    }
    pairs.sort_by_key(|(published, _)| published.number);
    pairs
}

/// Whether lines differ in nothing but that one of them says which way.
fn is_same_but_for_a_direction(one: &Line<'_>, other: &Line<'_>) -> bool {
    let without = |line: &Line<'_>| {
        let mut text = plain(line.text);
        for said in &line.verdicts {
            if let Some(direction) = said.direction {
                let long = format!("{} ({})", said.words, direction.word());
                text = text.replace(&long, said.words);
            }
        }
        text
    };
    agree(&one.verdicts, &other.verdicts) && without(one) == without(other)
}

/// A line with single spaces, as columns are as wide as their figures, with figures to the digits that every way to compute
/// them gives, and without which way a variant differs: earlier versions leave that to the sign.
fn plain(line: &str) -> String {
    const DIGITS_OF_ALL: usize = 13;
    let words = line.split_ascii_whitespace().map(|word| {
        let number = word.trim_end_matches(',');
        let value = (number.len() > DIGITS_OF_ALL).then(|| number.parse::<f64>().ok());
        match value.flatten() {
            Some(value) => format!("{value:.9e}"),
            None => word.to_owned(),
        }
    });
    words.collect::<Vec<String>>().join(" ")
}

/// The words of verdicts, those that hold others in them first.
const VERDICTS: [Verdict; 6] = [
    Verdict::DifferentButNegligible,
    Verdict::DifferentSizeUndecided,
    Verdict::Different,
    Verdict::Equivalent,
    Verdict::Undecided,
    Verdict::NotLimitedByDut,
];

/// What else says what was found: the two directions, and ministat's sentences, as it and as nobody says them.
const FINDINGS: [&str; 5] = [
    "faster",
    "slower",
    "No difference proven",
    "Difference proven",
    "Difference",
];

/// A line with `#` for each figure and `@` for each verdict; and the verdicts.
fn shape(line: &str) -> (String, Vec<Said>) {
    let mut shape = String::with_capacity(line.len());
    let mut verdicts = Vec::new();
    let line = plain(line);
    let mut rest = line.as_str();
    let mut before = None;
    while let Some(character) = rest.chars().next() {
        let is_word_start = !before.is_some_and(char::is_alphanumeric);
        let said = Said::at_start(rest).filter(|_| is_word_start);
        let figure = figure_length(rest);
        let length = if let Some((said, length)) = said {
            verdicts.push(said);
            shape.push('@');
            length
        } else if figure > 0 {
            shape.push('#');
            figure
        } else {
            shape.push(character);
            character.len_utf8()
        };
        before = rest[..length].chars().next_back();
        rest = &rest[length..];
    }
    (shape, verdicts)
}

fn starts_with_words(text: &str, words: &str) -> bool {
    text.strip_prefix(words)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Length in bytes of the figure that a text begins with, its sign included; 0 where there is none.
fn figure_length(text: &str) -> usize {
    let unsigned = text.trim_start_matches(['+', '-', '\u{2212}']);
    let sign = text.len() - unsigned.len();
    if !unsigned.starts_with(|character: char| character.is_ascii_digit()) {
        return 0;
    }
    let mut length = 0;
    let mut characters = unsigned.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let is_digit = |character: Option<char>| character.is_some_and(|c| c.is_ascii_digit());
        let goes_on = match character {
            '.' | ',' | '\u{202f}' | '\u{a0}' => is_digit(next),
            'e' | 'E' => {
                let exponent = unsigned[at + 1..].trim_start_matches(['+', '-']);
                is_digit(exponent.chars().next())
            }
            '+' | '-' => unsigned[..at].ends_with(['e', 'E']) && is_digit(next),
            _ => character.is_ascii_digit(),
        };
        if !goes_on {
            break;
        }
        length = at + character.len_utf8();
    }
    sign + length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_digits_of_a_figure_are_not_compared() {
        let line = |figure: &str| plain(&format!("    \"effect_percent\": {figure},"));
        assert_eq!(line("0.22231522256590497"), line("0.22231522256591824"));
        assert_ne!(line("0.22231522256590497"), line("0.22231622256590497"));
        assert_ne!(line("0.2223"), line("0.2224"));
    }

    #[test]
    fn a_shape_is_a_line_without_its_figures_and_verdicts() {
        for (line, expected, verdicts) in [
            (
                "| a | 1\u{202f}019\u{202f}000 | -24.4 % | different |",
                "| a | # | # % | @ |",
                &["different"][..],
            ),
            ("+   8     593576.28  1.90609e+06", "+ # # #", &[]),
            (
                "\"words\": \"different but negligible\",",
                "\"words\": \"@\",",
                &["different but negligible"],
            ),
            (
                "rates of indifferent kinds, 3 of 4.",
                "rates of indifferent kinds, # of #.",
                &[],
            ),
            (
                "different, size undecided (slower): -0.9 %",
                "@: # %",
                &["different, size undecided"],
            ),
            ("undecided: 1.5e", "@: #e", &["undecided"]),
            ("[-26.0, -23.5]", "[#, #]", &[]),
            (
                "\"direction\": \"slower\",",
                "\"direction\": \"@\",",
                &["slower"],
            ),
            (
                "No difference proven at 95.0% confidence",
                "@ at #% confidence",
                &["No difference proven"],
            ),
        ] {
            let (shape, found) = shape(line);
            let found: Vec<_> = found.iter().map(|said| said.words).collect();
            assert_eq!((shape.as_str(), found.as_slice()), (expected, verdicts));
        }
    }

    #[test]
    fn a_changed_line_is_paired_with_the_one_in_whose_place_it_stands() {
        let made = lines("| a | 1 |\n| a | 2 |\n| a | 3 |\nother 4\n");
        let published = lines("| a | 1 |\nan own remark\n| a | 7 |\n| a | 3 |\nother words 4\n");
        let pairs = differing(&published, &made);
        let [(published, made)] = &pairs[..] else {
            panic!("{}", pairs.len())
        };
        assert_eq!(
            (published.text, made.text, published.number),
            ("| a | 7 |", "| a | 2 |", 3)
        );
    }

    #[test]
    fn another_direction_is_another_verdict_and_none_is_not() {
        let differs = |published: &str, made: &str| {
            let (published, made) = (lines(published), lines(made));
            let pairs = differing(&published, &made);
            pairs
                .first()
                .map(|(published, made)| agree(&published.verdicts, &made.verdicts))
        };
        let made = "| a | -2.0 % | different (slower) |\n";
        assert_eq!(differs(made, made), None);
        assert_eq!(differs("| a | -2.0 % | different |\n", made), None);
        assert_eq!(differs("| a | -2.1 % | different |\n", made), Some(true));
        for published in [
            "| a | -2.0 % | different (faster) |\n",
            "| a | -2.0 % | undecided |\n",
            "| a | -2.0 % | faster |\n",
        ] {
            assert_eq!(differs(published, made), Some(false), "{published}");
        }
        let made = "No difference proven at 95.0% confidence\n";
        assert_eq!(
            differs("Difference proven at 95.0% confidence\n", made),
            Some(false)
        );
    }

    proptest! {
        #[test]
        fn any_line_has_a_shape_that_holds_no_figure(line: String) {
            let (shape, _) = shape(&line);
            prop_assert!(!shape.contains(|c: char| c.is_ascii_digit()));
        }
    }
}
