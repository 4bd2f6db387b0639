//! A folder of imported results, held against its own records: what was read of the logs is in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fwdlab_archive::format_observation;
use fwdlab_archive::layout::{self, name_in};
use fwdlab_archive::lint::{
    Evidence, Finding, Linted, NO_SUCH_VARIANT, NOT_OF_ITS_FORM, RUN_MISSING, Rule, UNKNOWN_FILE,
    VALUE_NOT_DERIVED, VALUE_REMOVED, VALUE_REPLACED, VALUES_MISSING, VALUES_REORDERED, Value,
    counted, is_observations, published, read_values,
};
use fwdlab_model::VariantName;
use fwdlab_model::imported::{
    DatasetOrigin, FileOutcome, ImportedFile, ImportedResults, ImportedRun, ImportedVariant,
};
use fwdlab_sys::durable;

use crate::error::NetbenchesError;
use crate::imported::{RUNS, imported_observations, load_imported};
use crate::lint::{LINES_NOT_UNDERSTOOD, NO_RAW_DATA};

/// Holds every file in a folder of imported results against its records, and what was published against what its logs
/// gave when it was imported. The archive itself is not needed.
///
/// What reports say is not looked at: they are handed back.
#[must_use]
pub fn lint_imported(directory: &Path) -> Linted<(ImportedResults, Vec<ImportedRun>)> {
    let mut findings = Vec::new();
    let published = published(directory, &mut findings);
    let loaded = match load_imported(directory) {
        Ok((results, runs)) => {
            let import = Import {
                directory,
                runs: &runs,
            };
            import.lint_files(&results, &mut findings);
            import.lint_parts(&results, &mut findings);
            for variant in &results.variants {
                import.lint_variant(variant, &mut findings);
            }
            Some((results, runs))
        }
        Err(error) => {
            findings.push(of_error(directory, &error));
            None
        }
    };
    Linted {
        loaded,
        published,
        findings,
    }
}

/// An observation that the records give, and the line of its run in `runs.jsonl`; none where it is as it was published.
struct Given {
    line: Option<usize>,
    pps: f64,
}

struct Import<'a> {
    directory: &'a Path,
    runs: &'a [ImportedRun],
}

impl Import<'_> {
    /// What the logs of a variant's runs gave.
    fn of_logs(&self, variant: &VariantName) -> Vec<Given> {
        let of_variant = self.lines(variant).into_iter();
        of_variant
            .filter_map(|line| {
                let pps = self.runs[line - 1].archive_pps?;
                Some(Given {
                    line: Some(line),
                    pps,
                })
            })
            .collect()
    }

    /// What stands in a variant's file: what was published where the logs give it, else what counts.
    fn given(&self, variant: &ImportedVariant) -> Vec<Given> {
        let dataset = variant.dataset.as_ref();
        if dataset.is_some_and(|dataset| dataset.origin.is_given_by_logs()) {
            return self.of_logs(&variant.name);
        }
        let lines = self.lines(&variant.name);
        let counted = imported_observations(variant, self.runs);
        if counted.iter().all(|one| one.run.is_none()) {
            return Vec::new();
        }
        let given = counted.into_iter().map(|one| Given {
            line: one.run.map(|run| lines[run]),
            pps: one.pps,
        });
        given.collect()
    }

    /// The lines of a variant's runs in `runs.jsonl`.
    fn lines(&self, variant: &VariantName) -> Vec<usize> {
        let numbered = (1..).zip(self.runs);
        let of_variant = numbered.filter(|(_, run)| run.variant == *variant);
        of_variant.map(|(line, _)| line).collect()
    }

    fn file_of(&self, variant: &VariantName) -> PathBuf {
        let name = format!("{variant}{}", layout::OBSERVATIONS);
        self.directory.join(name)
    }

    /// Files that no import writes, and those named after no variant.
    fn lint_files(&self, results: &ImportedResults, findings: &mut Vec<Finding>) {
        let names = results.variants.iter().map(|variant| &variant.name);
        let of_variants: BTreeSet<PathBuf> = names.map(|name| self.file_of(name)).collect();
        let known = [layout::IMPORTED, RUNS, layout::README].map(|name| self.directory.join(name));
        let there = durable::entries(self.directory).unwrap_or_default();
        // Another folder of results may lie in this one.
        for path in there.into_iter().filter(|path| !path.is_dir()) {
            let (rule, what): (&'static Rule, _) = if is_observations(&path) {
                (&NO_SUCH_VARIANT, "is named after no variant of the import")
            } else {
                (&UNKNOWN_FILE, "is none of an import's files")
            };
            if !known.contains(&path) && !of_variants.contains(&path) {
                let sentence = format!("{} {what}", name_in(self.directory, &path));
                let finding = Finding::new(rule, self.directory, sentence);
                findings.push(finding.published(&path, "is there"));
            }
        }
    }

    /// Logs that were read in part.
    fn lint_parts(&self, results: &ImportedResults, findings: &mut Vec<Finding>) {
        let records = self.directory.join(layout::IMPORTED);
        let is_part = |file: &&ImportedFile| file.outcome == FileOutcome::ReadInPart;
        for file in results.files.iter().filter(is_part) {
            let line = file
                .line
                .map_or_else(String::new, |line| format!(":{line}"));
            let reason = file.reason.as_deref().unwrap_or_default();
            let sentence = format!("{}{line} has {reason}", file.path);
            let finding = Finding::new(&LINES_NOT_UNDERSTOOD, self.directory, sentence);
            findings.push(finding.published(&records, "\"outcome\":\"read-in-part\""));
        }
    }

    fn lint_variant(&self, variant: &ImportedVariant, findings: &mut Vec<Finding>) {
        self.lint_values(variant, &self.given(variant), findings);
        let Some(dataset) = &variant.dataset else {
            return;
        };
        let records = self.directory.join(layout::IMPORTED);
        let published = |says: String| Evidence::published(&records, None, says);
        match dataset.origin {
            DatasetOrigin::Logs | DatasetOrigin::OtherLogs => {}
            // A folder without any log is published as most of the archive is.
            DatasetOrigin::NoLogs if self.runs.is_empty() => {}
            DatasetOrigin::NoLogs => {
                let sentence = format!(
                    "{} was published with {} and no log, while others of its folder have theirs",
                    dataset.path,
                    counted(dataset.published_pps.len(), "value")
                );
                let finding = Finding::new(&NO_RAW_DATA, self.directory, sentence);
                findings.push(finding.with(published("\"origin\":\"no-logs\"".to_owned())));
            }
            DatasetOrigin::Altered => {
                let sentence = format!(
                    "{} was published with values that its logs do not give",
                    dataset.path
                );
                let finding = Finding::new(&VALUE_NOT_DERIVED, self.directory, sentence);
                let given = self.of_logs(&variant.name);
                let mut rows = dataset.published_pps.iter().zip(&given);
                let differing = rows.find(|(pps, given)| !same(**pps, given.pps));
                findings.push(match differing {
                    Some((pps, given)) => finding
                        .with(published(format_observation(*pps)))
                        .with(self.derived(given)),
                    None => finding
                        .with(published(counted(dataset.published_pps.len(), "value")))
                        .derived(
                            &self.directory.join(RUNS),
                            format!("{} with a value", counted(given.len(), "run")),
                        ),
                });
            }
        }
    }

    /// The file of a variant against its runs, line by line.
    fn lint_values(&self, variant: &ImportedVariant, given: &[Given], findings: &mut Vec<Finding>) {
        let path = self.file_of(&variant.name);
        let name = name_in(self.directory, &path);
        let of =
            |rule: &'static Rule, sentence: String| Finding::new(rule, self.directory, sentence);
        if !path.exists() {
            if !given.is_empty() {
                let sentence = format!("{name} is missing, with {} observations", given.len());
                findings.push(
                    of(&VALUES_MISSING, sentence)
                        .published(&path, "is not there")
                        .with(self.derived(&given[0])),
                );
            }
            return;
        }
        let values = match read_values(self.directory, &path) {
            Ok((_, values)) => values,
            Err(finding) => {
                findings.push(finding);
                return;
            }
        };
        let shown =
            |value: &Value| Evidence::published(&path, Some(value.line), value.text.as_str());
        if values.len() != given.len() {
            let rule: &'static Rule = if values.len() < given.len() {
                &VALUE_REMOVED
            } else {
                &RUN_MISSING
            };
            let sentence = format!(
                "{name} holds {}, for {} with a value",
                counted(values.len(), "value"),
                counted(given.len(), "run")
            );
            let runs = format!("{} with a value", counted(given.len(), "run"));
            findings.push(
                of(rule, sentence)
                    .published(&path, counted(values.len(), "value"))
                    .derived(&self.directory.join(RUNS), runs),
            );
            return;
        }
        let differing: Vec<(&Value, &Given)> = values
            .iter()
            .zip(given)
            .filter(|(value, given)| !same(value.pps, given.pps))
            .collect();
        let sorted = |mut pps: Vec<f64>| {
            pps.sort_by(f64::total_cmp);
            pps
        };
        let is_reordered = sorted(values.iter().map(|value| value.pps).collect())
            .iter()
            .zip(sorted(given.iter().map(|given| given.pps).collect()))
            .all(|(value, given)| same(*value, given));
        if let (Some((value, given)), true) = (differing.first(), is_reordered) {
            let sentence = format!("{name} holds its observations in another order than the runs");
            findings.push(
                of(&VALUES_REORDERED, sentence)
                    .with(shown(value))
                    .with(self.derived(given)),
            );
            return;
        }
        for (value, given) in differing {
            let sentence = format!(
                "{name} holds {} where its run gives {}",
                value.text,
                format_observation(given.pps)
            );
            findings.push(
                of(&VALUE_REPLACED, sentence)
                    .with(shown(value))
                    .with(self.derived(given)),
            );
        }
    }

    fn derived(&self, given: &Given) -> Evidence {
        let (name, key) = match given.line {
            Some(_) => (RUNS, "archive_pps"),
            None => (layout::IMPORTED, "published_pps"),
        };
        let says = format!("\"{key}\":{}", given.pps);
        Evidence::derived(&self.directory.join(name), given.line, says)
    }
}

/// What keeps an import from being read.
fn of_error(directory: &Path, error: &NetbenchesError) -> Finding {
    if let NetbenchesError::Archive(error) = error {
        return Finding::of_error(directory, error);
    }
    let sentence = format!("{} is not of its form: {error}", directory.display());
    Finding::new(&NOT_OF_ITS_FORM, directory, sentence).published(directory, error.to_string())
}

/// Both were read of the same text.
fn same(one: f64, other: f64) -> bool {
    one.total_cmp(&other).is_eq()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder of two variants with logs, one of which was published as something else, and one without.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let variant = |name: &str, dataset: &str| {
            format!(
                r#"{{"name":"{name}","key":"{name}","family":null,"description":null,"dataset":{dataset},
                "flows":null,"frame_size_bytes":null,"settings":{{}}}}"#
            )
        };
        let dataset = |name: &str, origin: &str, values: &str| {
            format!(r#"{{"path":"L/{name}.pps","origin":"{origin}","published_pps":[{values}]}}"#)
        };
        let results = format!(
            r#"{{"schema":1,"source":"L","platform":null,"nic":null,"topic":null,"label":null,"title":null,"lab":[],
            "files":[],"variants":[{},{},{}]}}"#,
            variant("x", &dataset("x", "logs", "100,200,300")),
            variant("y", &dataset("y", "altered", "400,501")),
            variant("z", &dataset("z", "no-logs", "7,8")),
        );
        let run = |variant: &str, pps: u32| {
            format!(
                r#"{{"schema":1,"variant":"{variant}","iteration":null,"receiver":null,"senders":[],"archive_pps":{pps}.0,"forwarded_pps":null,"forwarded_median_pps":null,"offered_pps":null,"published_pps":null,"ending":null,"stalls":0,"is_profiled":false}}
"#
            )
        };
        let runs = [("x", 100), ("x", 200), ("x", 300), ("y", 400), ("y", 500)];
        let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        write(layout::IMPORTED, results);
        write(RUNS, runs.map(|(variant, pps)| run(variant, pps)).concat());
        write("x.pps", "100\n200\n300\n".to_owned());
        write("y.pps", "400\n500\n".to_owned());
        folder
    }

    /// Codes and sentences, in order.
    fn found(folder: &Path) -> Vec<(&'static str, String)> {
        let mut found: Vec<(&str, String)> = lint_imported(folder)
            .findings
            .into_iter()
            .map(|finding| (finding.rule.code, finding.sentence))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn what_was_published_is_held_against_what_its_logs_gave() {
        let folder = folder();
        let altered = "L/y.pps was published with values that its logs do not give".to_owned();
        let unlogged =
            "L/z.pps was published with 2 values and no log, while others of its folder have theirs"
                .to_owned();
        assert_eq!(
            found(folder.path()),
            [("L101", altered), ("L113", unlogged)]
        );
        let linted = lint_imported(folder.path());
        let of_altered = linted.findings.iter().find(|of| of.rule.code == "L101");
        let says: Vec<&str> = of_altered
            .unwrap()
            .evidence
            .iter()
            .map(|evidence| evidence.says.as_str())
            .collect();
        assert_eq!(says, ["501", "\"archive_pps\":500"]);
        assert_eq!(linted.loaded.unwrap().1.len(), 5);
    }

    #[test]
    fn a_log_that_was_imported_in_part_is_found() {
        let folder = folder();
        let path = folder.path().join(layout::IMPORTED);
        let text = fs::read_to_string(&path).unwrap();
        let file = r#""files":[{"path":"L/bench.x.1.receiver","kind":"receiver's log","outcome":"read-in-part",
            "reason":"a line that fwdlab does not understand: \"x\"","line":7}]"#;
        fs::write(&path, text.replace(r#""files":[]"#, file)).unwrap();
        let sentence =
            "L/bench.x.1.receiver:7 has a line that fwdlab does not understand: \"x\"".to_owned();
        assert!(found(folder.path()).contains(&("L412", sentence)));
    }

    #[test]
    fn what_an_import_writes_beside_profiled_runs_and_blank_lines_is_sound() {
        let receiver = |pps: u64| {
            let sample = |second| {
                format!(
                    "{second:03}.000000 main_thread [1441] {pps} pps ({pps} pkts in 1000000 usec)\n"
                )
            };
            let samples: String = (0..40).map(sample).collect();
            format!("CMD: pkt-gen -f rx -i ix1\n{samples}")
        };
        let archive = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(archive.path().join(name), text).unwrap();
        for key in ["x", "y", "z"] {
            for (run, pps) in [(1, 600), (2, 900), (3, 902)] {
                write(&format!("bench.{key}.{run}.receiver"), &receiver(pps));
            }
            write(&format!("bench.{key}.1.pmc.folded"), "ip_input 7\n");
        }
        write("x.pps", "901\n900\n902\n");
        write("y.pps", "600\n\n900\n902\n");
        write("empty.pps", "");
        let cut = receiver(900);
        let lines: Vec<&str> = cut.split_inclusive('\n').take(2).collect();
        write("bench.empty.1.receiver", &lines.concat());
        let tree = crate::ArchiveTree::read(archive.path()).unwrap();
        let out = tempfile::tempdir().unwrap();
        crate::write_import(out.path(), &tree).unwrap();
        let folder = out.path().join("results");
        let texts = ["empty", "x", "y", "z"]
            .map(|name| fs::read_to_string(folder.join(format!("{name}.pps"))).unwrap());
        assert_eq!(
            texts,
            ["", "901\n900\n902\n", "600\n\n900\n902\n", "900\n902\n"]
        );
        let altered = "x.pps was published with values that its logs do not give".to_owned();
        assert_eq!(found(&folder), [("L101", altered)]);
        fs::write(folder.join("x.pps"), "905\n900\n902\n").unwrap();
        assert_eq!(
            found(&folder)[1],
            ("L103", "x.pps holds 905 where its run gives 901".to_owned())
        );
    }

    #[test]
    fn every_change_to_a_file_is_found() {
        for (text, code, sentence) in [
            (
                "100\n201\n300\n",
                "L103",
                "x.pps holds 201 where its run gives 200",
            ),
            (
                "200\n100\n300\n",
                "L105",
                "x.pps holds its observations in another order than the runs",
            ),
            (
                "100\n200\n",
                "L102",
                "x.pps holds 2 values, for 3 runs with a value",
            ),
            (
                "100\n200\n300\n4\n",
                "L104",
                "x.pps holds 4 values, for 3 runs with a value",
            ),
            ("100\nno\n300\n", "L902", "x.pps, line 2 is not a number"),
        ] {
            let folder = folder();
            fs::write(folder.path().join("x.pps"), text).unwrap();
            let found = found(folder.path());
            assert!(found.contains(&(code, sentence.to_owned())), "{found:?}");
            assert_eq!(found.len(), 3, "{found:?}");
        }
        let folder = folder();
        fs::remove_file(folder.path().join("x.pps")).unwrap();
        fs::write(folder.path().join("w.pps"), "1\n").unwrap();
        fs::write(folder.path().join("notes"), "mine").unwrap();
        let codes: Vec<&str> = found(folder.path()).iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, ["L101", "L110", "L113", "L203", "L906"]);
        fs::write(folder.path().join(RUNS), "{").unwrap();
        let found = found(folder.path());
        assert_eq!(found[0].0, "L902", "{found:?}");
    }
}
