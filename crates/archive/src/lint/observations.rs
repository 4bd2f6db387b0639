//! `.pps` files held against the trials whose observations they publish.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fwdlab_model::TrialRecord;
use fwdlab_sys::durable;

use crate::input::input;
use crate::layout::{self, name_in};
use crate::load::Loaded;
use crate::pps::{format_observation, published_trials};

use super::lines::Lines;
use super::{
    Evidence, Finding, LABELS_EXCHANGED, NO_SUCH_VARIANT, NOT_AS_REPORTED, NOT_OF_ITS_FORM,
    RUN_MISSING, Rule, VALUE_NOT_DERIVED, VALUE_REMOVED, VALUE_REPLACED, VALUES_MISSING,
    VALUES_OF_ANOTHER, VALUES_REORDERED, counted,
};

/// The values of every file of observations that is there; none of one that does not read.
type Published = BTreeMap<PathBuf, Option<Vec<Value>>>;

pub(super) fn lint_observations(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let measured = published_trials(loaded);
    let mut published: Published = BTreeMap::new();
    let there = durable::entries(&loaded.dir).unwrap_or_default();
    for path in there.into_iter().filter(|path| is_observations(path)) {
        let values = match read_values(&loaded.dir, &path) {
            Ok((bytes, values)) => {
                findings.extend(other_lines(&loaded.dir, &path, &bytes, &values));
                Some(values)
            }
            Err(finding) => {
                findings.push(finding);
                None
            }
        };
        published.insert(path, values);
    }
    for (path, trials) in &measured {
        match published.get(path) {
            Some(Some(values)) => Dataset {
                loaded,
                path,
                values,
                trials,
            }
            .lint(&measured, &published, findings),
            // Which is a finding already.
            Some(None) => {}
            None if is_being_written(loaded, trials.len(), 0) => {}
            None => {
                let name = name_in(&loaded.dir, path);
                let sentence = format!("{name} is missing, with {} observations", trials.len());
                findings.push(
                    Finding::new(&VALUES_MISSING, &loaded.dir, sentence)
                        .published(path, "is not there")
                        .derived(
                            &loaded.dir.join(layout::TRIALS),
                            format!("{} accepted trials", trials.len()),
                        ),
                );
            }
        }
    }
    for path in published
        .keys()
        .filter(|path| !measured.contains_key(*path))
    {
        let name = name_in(&loaded.dir, path);
        let sentence = format!("{name} is named after no variant that was measured");
        let finding = Finding::new(&NO_SUCH_VARIANT, &loaded.dir, sentence);
        findings.push(finding.published(path, "is there"));
    }
}

/// A killed run may leave the files one block behind the records; the next start writes them again.
fn is_being_written(loaded: &Loaded, measured: usize, published: usize) -> bool {
    loaded.finished.is_none() && measured == published + 1
}

/// Whether a file of that name holds observations.
#[must_use]
pub fn is_observations(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    !name.starts_with(b".") && name.ends_with(layout::OBSERVATIONS.as_bytes())
}

/// A published value and its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The line, from 1.
    pub line: usize,
    /// As the file has it.
    pub text: String,
    /// In packets per second.
    pub pps: f64,
}

/// What a file of observations holds, and its values.
///
/// # Errors
/// What is found where it has none.
pub fn read_values(directory: &Path, path: &Path) -> Result<(Vec<u8>, Vec<Value>), Finding> {
    let bytes = input(directory, path)
        .bytes()
        .map_err(|error| Finding::unreadable(directory, path, &error))?;
    let values = values(&bytes).map_err(|(line, says)| {
        let sentence = format!("{}, line {line} is not a number", name_in(directory, path));
        Finding::new(&NOT_OF_ITS_FORM, directory, sentence).published_at(path, line, says)
    })?;
    Ok((bytes, values))
}

/// The values of a file, blank lines passed over, or the first line that is none.
pub(super) fn values(bytes: &[u8]) -> Result<Vec<Value>, (usize, String)> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(index, text)| {
            let text = text.trim();
            let pps = text.parse().ok().filter(|pps: &f64| pps.is_finite());
            pps.map(|pps| Value {
                line: index + 1,
                text: text.to_owned(),
                pps,
            })
            .ok_or_else(|| (index + 1, text.chars().take(40).collect()))
        })
        .collect()
}

/// What is said of a file whose values are read whatever is around them, and whose lines are not as they are written.
fn other_lines(dir: &Path, path: &Path, bytes: &[u8], values: &[Value]) -> Option<Finding> {
    let lines: String = values
        .iter()
        .map(|value| format!("{}\n", value.text))
        .collect();
    (bytes != lines.as_bytes()).then(|| {
        let name = name_in(dir, path);
        let sentence =
            format!("{name} holds more than a value on each line: blanks, or other ends of lines");
        let finding = Finding::new(&NOT_AS_REPORTED, dir, sentence);
        finding.published(path, "other bytes than are written")
    })
}

fn agrees(value: &Value, trial: &TrialRecord) -> bool {
    // The digits that are published, whatever their notation.
    let published = format_observation(trial.observation_pps).parse();
    published.is_ok_and(|published: f64| value.pps.total_cmp(&published).is_eq())
}

fn all_agree(values: &[Value], trials: &[&TrialRecord]) -> bool {
    values.len() == trials.len()
        && values
            .iter()
            .zip(trials)
            .all(|(value, trial)| agrees(value, trial))
}

/// One file of observations beside the trials that it publishes.
struct Dataset<'a> {
    loaded: &'a Loaded,
    path: &'a Path,
    values: &'a [Value],
    trials: &'a [&'a TrialRecord],
}

impl Dataset<'_> {
    fn lint(
        &self,
        measured: &BTreeMap<PathBuf, Vec<&TrialRecord>>,
        published: &Published,
        findings: &mut Vec<Finding>,
    ) {
        let (values, trials) = (self.values, self.trials);
        let lags = is_being_written(self.loaded, trials.len(), values.len())
            && all_agree(values, &trials[..values.len()]);
        if lags || all_agree(values, trials) {
            return;
        }
        let name = name_in(&self.loaded.dir, self.path);
        let of_another = measured
            .iter()
            .find(|(path, others)| path.as_path() != self.path && all_agree(values, others));
        if let Some((other, _)) = of_another {
            let other_name = name_in(&self.loaded.dir, other);
            let others = published.get(other).and_then(Option::as_ref);
            let are_exchanged = others.is_some_and(|others| all_agree(others, trials));
            if are_exchanged && other.as_path() < self.path {
                return; // Said of the other one.
            }
            let (rule, sentence): (&'static Rule, String) = if are_exchanged {
                (
                    &LABELS_EXCHANGED,
                    format!("{name} holds what {other_name} should, and the other way round"),
                )
            } else {
                (
                    &VALUES_OF_ANOTHER,
                    format!("{name} holds the observations of {other_name}"),
                )
            };
            findings.push(self.compared(rule, sentence, 0, 0));
        } else if self.is_reordered() {
            let row = self.first_difference();
            let sentence =
                format!("{name} holds its observations in another order than the blocks");
            findings.push(self.compared(&VALUES_REORDERED, sentence, row, row));
        } else if values.len() == trials.len() {
            self.lint_replaced(&name, findings);
        } else {
            self.lint_left_out(&name, findings);
        }
    }

    /// As many values as trials: those that differ were replaced, unless hardly any agrees.
    fn lint_replaced(&self, name: &str, findings: &mut Vec<Finding>) {
        let differ: Vec<usize> = (0..self.values.len())
            .filter(|&row| !agrees(&self.values[row], self.trials[row]))
            .collect();
        if differ.len() * 2 > self.values.len() {
            let sentence = format!(
                "{name} holds {} values of {} that are not those of its trials",
                differ.len(),
                self.values.len()
            );
            findings.push(self.compared(&VALUE_NOT_DERIVED, sentence, differ[0], differ[0]));
            return;
        }
        for row in differ {
            let sentence = format!(
                "{name} holds {} in block {}, which measured {}",
                self.values[row].text,
                self.trials[row].block,
                format_observation(self.trials[row].observation_pps)
            );
            findings.push(self.compared(&VALUE_REPLACED, sentence, row, row));
        }
    }

    /// Another number of values: trials that are left out, or values without a trial, where the others
    /// agree in their order.
    fn lint_left_out(&self, name: &str, findings: &mut Vec<Finding>) {
        let (mut value, mut trial) = (0, 0);
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        while value < self.values.len() || trial < self.trials.len() {
            let is_pair = value < self.values.len()
                && trial < self.trials.len()
                && agrees(&self.values[value], self.trials[trial]);
            if is_pair {
                (value, trial) = (value + 1, trial + 1);
            } else if self.values.len() < self.trials.len() && trial < self.trials.len()
                || value == self.values.len()
            {
                removed.push(trial);
                trial += 1;
            } else {
                added.push(value);
                value += 1;
            }
        }
        if !removed.is_empty() && !added.is_empty() {
            let sentence = format!(
                "{name} holds {}, and its {} give others",
                counted(self.values.len(), "value"),
                counted(self.trials.len(), "trial")
            );
            findings.push(self.compared(&VALUE_NOT_DERIVED, sentence, added[0], removed[0]));
        } else {
            for row in removed {
                let sentence = format!(
                    "{name} leaves out block {}, which measured {}",
                    self.trials[row].block,
                    format_observation(self.trials[row].observation_pps)
                );
                let says = counted(self.values.len(), "value");
                let finding = Finding::new(&VALUE_REMOVED, &self.loaded.dir, sentence);
                findings.push(finding.published(self.path, says).with(self.derived(row)));
            }
            for row in added {
                let sentence = format!(
                    "{name} holds {}, of which no trial is there",
                    self.values[row].text
                );
                let says = format!("{} accepted trials", self.trials.len());
                let trials = self.loaded.dir.join(layout::TRIALS);
                let finding = Finding::new(&RUN_MISSING, &self.loaded.dir, sentence);
                findings.push(finding.with(self.published(row)).derived(&trials, says));
            }
        }
    }

    fn is_reordered(&self) -> bool {
        let mut values: Vec<&Value> = self.values.iter().collect();
        let mut trials = self.trials.to_vec();
        values.sort_by(|one, other| one.pps.total_cmp(&other.pps));
        trials.sort_by(|one, other| one.observation_pps.total_cmp(&other.observation_pps));
        values.len() == trials.len()
            && values
                .iter()
                .zip(trials)
                .all(|(value, trial)| agrees(value, trial))
    }

    fn first_difference(&self) -> usize {
        let mut rows = self.values.iter().zip(self.trials);
        rows.position(|(value, trial)| !agrees(value, trial))
            .unwrap_or(0)
    }

    fn compared(
        &self,
        rule: &'static Rule,
        sentence: String,
        value: usize,
        trial: usize,
    ) -> Finding {
        Finding::new(rule, &self.loaded.dir, sentence)
            .with(self.published(value))
            .with(self.derived(trial))
    }

    fn published(&self, row: usize) -> Evidence {
        let value = &self.values[row];
        Evidence::published(self.path, Some(value.line), value.text.as_str())
    }

    fn derived(&self, row: usize) -> Evidence {
        let trial = self.trials[row];
        Evidence::derived(
            &self.loaded.dir.join(layout::TRIALS),
            Lines::of(self.loaded).trial(trial),
            format!("\"observation_pps\":{}", trial.observation_pps),
        )
    }
}
