//! Results of others: their text with its numbers made again, and what fwdlab makes of them.

use std::fmt::Write as _;

use fwdlab_model::imported::{
    BlockOutcome, ImportedBlock, ImportedResults, ImportedRow, ImportedRun, ImportedVariant,
};
use fwdlab_netbenches::imported_observations;
use fwdlab_stats::median;
use serde::Serialize;

use crate::compare::{CompareReport, CompareSettings, Observations, compare_independent};
use crate::effects_plot::compared_plot;
use crate::format;
use crate::text::{code, markdown, one_line};

/// The version of what [`ImportedReport`] is as JSON.
pub const IMPORTED_REPORT_SCHEMA_VERSION: u32 = 1;

/// What is said about imported results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImportedReport {
    /// [`IMPORTED_REPORT_SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The folder, below the root of what was imported.
    pub source: String,
    /// The blocks of ministat of the published text, judged.
    pub blocks: Vec<JudgedBlock>,
    /// What was measured, by variant.
    pub variants: Vec<VariantSummary>,
    /// The published text with its numbers made again; none where nothing was published.
    #[serde(skip)]
    text: Option<String>,
    /// The title of the published text, or what the folder's path says.
    #[serde(skip)]
    pub(crate) title: String,
}

/// A block of ministat of a published text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedBlock {
    /// The heading that it stands under.
    pub heading: Option<String>,
    /// The line of the published text that it begins on, from 1.
    pub line: usize,
    /// What became of it.
    pub outcome: BlockOutcome,
    /// Where its rows are from.
    pub rows: Vec<ImportedRow>,
    /// What fwdlab makes of it; none where it holds no comparison, or a row has no observations.
    pub judged: Option<CompareReport>,
    /// Why it was not judged.
    pub not_judged: Option<String>,
}

/// The runs of a variant, without those that were profiled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantSummary {
    /// What its files are called.
    pub key: String,
    /// How many runs there are.
    pub runs: usize,
    /// The median of the observations as the archive reckons them, in packets per second.
    pub archive_pps: Option<f64>,
    /// The median of the forwarding rates over steady states, in packets per second.
    pub forwarded_pps: Option<f64>,
    /// The median of the offered loads over steady states, in packets per second.
    pub offered_pps: Option<f64>,
    /// How many flows the sender was asked for.
    pub flows: Option<u64>,
    /// Seconds or so without any packet in the middle of runs.
    pub stalls: usize,
}

impl ImportedReport {
    /// What is said about a folder of imported results.
    #[must_use]
    pub fn build(
        results: &ImportedResults,
        runs: &[ImportedRun],
        settings: CompareSettings,
    ) -> Self {
        let blocks = results.text.iter().flat_map(|text| &text.blocks);
        Self {
            schema: IMPORTED_REPORT_SCHEMA_VERSION,
            source: results.source.clone(),
            blocks: blocks.map(|block| judge(block, settings)).collect(),
            variants: results
                .variants
                .iter()
                .map(|variant| summary(variant, runs))
                .collect(),
            text: results.text.as_ref().map(|text| text.text.clone()),
            title: results
                .title
                .clone()
                .or_else(|| Some(format!("Impact of {}", results.topic.as_ref()?)))
                .unwrap_or_else(|| results.source.clone()),
        }
    }

    /// The plots of `derived/` by their names: the effects of every block that was judged.
    #[must_use]
    pub fn plots(&self) -> Vec<(String, String)> {
        self.blocks
            .iter()
            .filter_map(|block| {
                let judged = block.judged.as_ref()?;
                let group = judged.groups.first()?;
                let heading = block.heading.as_deref().unwrap_or(&self.title);
                let plot = compared_plot(judged, group, one_line(heading));
                Some((block.plot(), plot))
            })
            .collect()
    }

    /// `README.md`: the published text, its numbers made again, and behind it what fwdlab makes of them.
    #[must_use]
    pub fn readme(&self) -> String {
        let mut page = match &self.text {
            Some(text) => text.clone(),
            None => format!("# {}\n", markdown(&self.title)),
        };
        page.push('\n');
        self.judgement(&mut page);
        self.runs(&mut page);
        page
    }

    fn judgement(&self, page: &mut String) {
        if self.blocks.is_empty() {
            return;
        }
        *page += "# Judged by fwdlab\n\n\
            The blocks above are printed from the observations that the logs give. Below, the comparisons of a block are \
            judged together, without runs that were profiled: Welch's t of the logarithms, corrected for their number; a \
            change of less than 1 % does not matter. Nothing says in which order the runs were made, so a drift between \
            them would show as an effect.\n\n";
        for block in &self.blocks {
            block.write(page);
        }
    }

    fn runs(&self, page: &mut String) {
        let with_runs: Vec<&VariantSummary> = self
            .variants
            .iter()
            .filter(|variant| variant.runs > 0)
            .collect();
        if with_runs.is_empty() {
            return;
        }
        *page += "## Runs\n\n\
            The archive's observation is the median of the seconds that its script keeps; the forwarding rate is all packets \
            over all time of a run's steady state. Medians over the runs.\n\n\
            | measured | runs | archive's observation | forwarding rate | offered load | flows asked for | stalls |\n\
            |---|---|---|---|---|---|---|\n";
        let rate = |pps: Option<f64>| pps.map_or_else(|| "unknown".into(), format::rate);
        for variant in with_runs {
            let flows = variant
                .flows
                .map_or_else(|| "unknown".into(), format::count);
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} | {flows} | {} |",
                markdown(&variant.key),
                variant.runs,
                rate(variant.archive_pps),
                rate(variant.forwarded_pps),
                rate(variant.offered_pps),
                variant.stalls
            );
        }
        page.push('\n');
    }
}

impl JudgedBlock {
    /// The name of its plot.
    fn plot(&self) -> String {
        format!("effects-{}.svg", self.line)
    }

    fn write(&self, page: &mut String) {
        let heading = self.heading.as_deref().unwrap_or("Block");
        let _ = writeln!(page, "## {}, line {}\n", markdown(heading), self.line);
        match self.outcome {
            BlockOutcome::Same => {}
            BlockOutcome::MadeAgain => {
                *page += "The logs give other figures than were published: the block above has those of the logs.\n\n";
            }
            BlockOutcome::NotDerived => {
                *page += "A row of this block has no observations that count; the block stands above as it was published.\n\n";
            }
        }
        self.origins(page);
        if let Some(why) = &self.not_judged {
            let _ = writeln!(page, "Not judged: {}.\n", markdown(why));
        }
        let Some(judged) = &self.judged else {
            return;
        };
        let _ = writeln!(
            page,
            "![Effects with their intervals](derived/{})\n",
            self.plot()
        );
        for group in &judged.groups {
            for row in group.rows.iter().skip(1) {
                if let Some(verdict) = &row.row.verdict {
                    let _ = writeln!(page, "- **{}**: {}", markdown(&row.label), verdict.sentence);
                }
            }
            page.push('\n');
            for offered in group.offered_load.iter().filter(|offered| offered.differs) {
                let _ = writeln!(page, "{}\n", offered.sentence);
            }
        }
    }

    /// What a reader would not expect of the rows.
    fn origins(&self, page: &mut String) {
        for row in &self.rows {
            let label = markdown(&row.label);
            if let Some(dataset) = row.dataset.as_ref().filter(|_| row.is_of_another_folder) {
                let dataset = code(dataset);
                let _ = writeln!(
                    page,
                    "{label} is of another folder, so of another session: {dataset}.\n"
                );
            }
            if !row.is_of_logs && row.dataset.is_some() {
                let _ = writeln!(
                    page,
                    "{label} is as it was published: there are no logs of it.\n"
                );
            }
            if row.profiled_runs > 0 {
                let runs = format::counted(row.profiled_runs as u64, "run");
                let _ = writeln!(
                    page,
                    "{label} is judged without the logs of {runs} made beside a profiler; a value that was published in the \
                     place of such a log, and that it does not give, counts.\n"
                );
            }
        }
    }
}

fn judge(block: &ImportedBlock, settings: CompareSettings) -> JudgedBlock {
    let sets: Vec<Observations> = block
        .rows
        .iter()
        .map(|row| Observations {
            label: row.label.clone(),
            path: row.dataset.clone().unwrap_or_default(),
            values_pps: row.observations_pps.clone(),
            offered_pps: row.offered_pps.clone(),
        })
        .collect();
    let (judged, not_judged) = if sets.len() < 2 {
        (None, None)
    } else if sets.iter().any(|set| set.values_pps.len() < 2) {
        (None, Some("a row has no observations".to_owned()))
    } else {
        match compare_independent(&sets, None, settings) {
            Ok(judged) => (Some(judged), None),
            Err(error) => (None, Some(error.to_string())),
        }
    };
    JudgedBlock {
        heading: block.heading.clone(),
        line: block.line,
        outcome: block.outcome,
        rows: block.rows.clone(),
        judged,
        not_judged,
    }
}

fn summary(variant: &ImportedVariant, runs: &[ImportedRun]) -> VariantSummary {
    let counted: Vec<f64> = imported_observations(variant, runs)
        .into_iter()
        .filter(|one| one.run.is_some())
        .map(|one| one.pps)
        .collect();
    let runs: Vec<&ImportedRun> = runs
        .iter()
        .filter(|run| run.variant == variant.name && !run.is_profiled)
        .collect();
    let middle = |of: fn(&ImportedRun) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
        median(&values)
    };
    VariantSummary {
        key: variant.key.clone(),
        runs: runs.len(),
        archive_pps: median(&counted),
        forwarded_pps: middle(|run| run.forwarded_pps),
        offered_pps: middle(|run| run.offered_pps),
        flows: variant.flows,
        stalls: runs.iter().map(|run| run.stalls).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_of_which_rows_runs_were_profiled_and_counts_them_nowhere() {
        let rows = [("off", 1, "[1001,1004,1003]"), ("on", 0, "[1101,1104,1103]")].map(
            |(label, profiled, values)| {
                format!(
                    r#"{{"label":"{label}","dataset":"{label}.pps","is_of_another_folder":false,"is_of_logs":true,
                    "profiled_runs":{profiled},"observations_pps":{values},"offered_pps":null}}"#
                )
            },
        );
        let results: ImportedResults = serde_json::from_str(&format!(
            r#"{{"schema":1,"source":"s","platform":"p","nic":"n","topic":"t","label":"l","title":null,"lab":[],
            "text":{{"path":"README.md","text":"","blocks":[{{"heading":null,"line":3,"outcome":"same","rows":[{}]}}]}},
            "variants":[{{"name":"off","key":"off","family":null,"description":null,"dataset":{{"path":"off.pps",
              "origin":"altered","published_pps":[1001,1004,1003]}},"flows":null,"frame_size_bytes":null,
              "settings":{{}}}}],"files":[]}}"#,
            rows.join(",")
        ))
        .unwrap();
        let run = |iteration: u32, pps: f64| ImportedRun {
            schema: 1,
            variant: results.variants[0].name.clone(),
            iteration: Some(iteration),
            receiver: None,
            senders: vec![],
            archive_pps: Some(pps),
            forwarded_pps: Some(pps),
            forwarded_median_pps: None,
            offered_pps: None,
            published_pps: None,
            ending: None,
            stalls: usize::from(iteration == 1),
            is_profiled: iteration == 1,
        };
        let runs = [run(1, 400.0), run(2, 1004.0), run(3, 1003.0)];
        let report = ImportedReport::build(&results, &runs, CompareSettings::default());
        let summary = &report.variants[0];
        assert_eq!((summary.runs, summary.stalls), (2, 0));
        assert_eq!(summary.archive_pps, Some(1003.5));
        assert_eq!(summary.forwarded_pps, Some(1003.5));
        let page = report.readme();
        assert!(
            page.contains("off is judged without the logs of 1 run made beside a profiler"),
            "{page}"
        );
        assert!(!page.contains("on is judged without"), "{page}");
        assert!(page.contains("- **on**: different (faster)"), "{page}");
    }
}
