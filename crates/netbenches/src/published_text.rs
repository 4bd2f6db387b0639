//! A published text with its numbers made again.

use std::path::Path;

use fwdlab_model::imported::{BlockOutcome, ImportedBlock, ImportedRow, ImportedText};
use fwdlab_stats::ministat::{Dialect, PublishedBlock};

use crate::counted::offered_pps;
use crate::datasets::TreeDataset;
use crate::file::ArchiveFile;
use crate::readme::{BlockBacking, DatasetIndex, PublishedReadme, RowBacking, printed};

/// Where a text is, and what it may have been made of.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) files: &'a [ArchiveFile],
    pub(super) datasets: &'a [TreeDataset<'a>],
    /// Numbers the same datasets.
    pub(super) index: &'a DatasetIndex<'a>,
}

/// The text of a file with every block printed again from what the logs give.
///
/// Shape: `readme` is what was read of `text`; `place` is the folder that it lies in, with `/` between.
pub(super) fn made_again(
    path: &Path,
    place: &str,
    text: &str,
    readme: &PublishedReadme,
    sources: Sources<'_>,
) -> ImportedText {
    let mut lines: Vec<Option<String>> = text.lines().map(|line| Some(line.to_owned())).collect();
    let mut blocks = Vec::new();
    for published in &readme.blocks {
        let block = &published.block;
        let backing = sources.index.back(block, place);
        let rows: Vec<ImportedRow> = block
            .rows
            .iter()
            .zip(&backing.rows)
            .map(|(row, backed)| imported_row(row.label.as_deref(), backed, sources))
            .collect();
        let printed = print(block, &backing, sources);
        let outcome = match &printed {
            Some(printed) if *printed == block.text => BlockOutcome::Same,
            Some(printed) => {
                replace(&mut lines, block, printed);
                BlockOutcome::MadeAgain
            }
            None => BlockOutcome::NotDerived,
        };
        blocks.push(ImportedBlock {
            heading: published
                .headings
                .last()
                .map(|heading| heading.text.clone()),
            line: block.line,
            outcome,
            rows,
        });
    }
    let lines = lines.into_iter().flatten();
    ImportedText {
        path: path.to_string_lossy().into_owned(),
        text: lines.map(|line| line + "\n").collect(),
        blocks,
    }
}

fn imported_row(label: Option<&str>, backed: &RowBacking, sources: Sources<'_>) -> ImportedRow {
    let known = backed.chosen().map(|position| &sources.datasets[position]);
    let counted = known.map_or_else(Vec::new, |known| known.counted(sources.files));
    ImportedRow {
        label: label
            .or(known.map(|known| known.name.as_str()))
            .unwrap_or_default()
            .to_owned(),
        dataset: known.map(|known| known.path.to_string_lossy().into_owned()),
        is_of_another_folder: matches!(backed, RowBacking::Elsewhere(_)),
        is_of_logs: counted.iter().any(|one| one.run.is_some()),
        profiled_runs: known.map_or(0, TreeDataset::profiled_runs),
        offered_pps: offered_pps(&counted),
        observations_pps: counted.iter().map(|one| one.pps).collect(),
    }
}

/// The block as ministat prints it of its datasets, what the logs give in the place of what they do not; none where a row
/// has too few observations.
fn print(block: &PublishedBlock, backing: &BlockBacking, sources: Sources<'_>) -> Option<String> {
    let today = Dialect::default();
    let dialect = match backing.dialects.as_slice() {
        dialects if dialects.is_empty() || dialects.contains(&today) => today,
        [oldest, ..] => *oldest,
        [] => today,
    };
    let observations = backing.rows.iter().map(|backed| {
        let chosen = backed.chosen();
        chosen.map_or_else(Vec::new, |position| {
            sources.datasets[position].corrected(sources.files)
        })
    });
    printed(block, &observations.collect::<Vec<_>>(), dialect)
}

/// Puts a block in the place of another; lines that are the same keep the indentation of the text.
fn replace(lines: &mut [Option<String>], block: &PublishedBlock, printed: &str) {
    let published: Vec<&str> = block.text.lines().collect();
    let printed: Vec<&str> = printed.lines().collect();
    let is_line_by_line = published.len() == printed.len();
    for (index, &source) in block.source_lines.iter().enumerate() {
        let Some(line) = lines.get_mut(source.wrapping_sub(1)) else {
            continue;
        };
        if is_line_by_line {
            if published[index] != printed[index] {
                *line = Some(printed[index].to_owned());
            }
        } else {
            // All of it in the place of the first line.
            *line = (index == 0).then(|| printed.join("\n"));
        }
    }
}
