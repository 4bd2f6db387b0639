//! Texts against the datasets that their blocks of ministat show, and against themselves.

use std::collections::HashSet;
use std::path::Path;

use fwdlab_archive::lint::{
    BROKEN_LINK, Evidence, Finding, OFFERED_LOAD_MOVED, OTHER_TITLE, Rule, VERDICT_FLIPS,
};
use fwdlab_stats::ministat::{PublishedRow, general};
use fwdlab_stats::{IndependentObservations, VerdictSettings, independent_verdicts, median};
use fwdlab_sys::parallel::{FEW, parallel};

use crate::counted::offered_pps;
use crate::datasets::place;
use crate::lint::{
    BLOCK_ALTERED, LABEL_OF_ANOTHER, LINK_OF_ANOTHER, MASKS_DISAGREE, ROW_NOT_DERIVED,
    ROW_NOT_FOUND, ROW_OF_ANOTHER_FOLDER, TEXT_NOT_OF_DATA, TEXT_NOT_OF_TABLE,
};
use crate::readme::facts::{
    ContradictionKind, TabledDataset, label_contradictions, link_contradictions,
    mask_contradictions, misprinted_cells, names_place, table_contradictions, title_contradiction,
    turned_words, unsupported_claims,
};
use crate::readme::{
    BlockBacking, Claim, DatasetIndex, Departure, DepartureKind, Printing, PublishedReadme,
    Quantity, ReadmeBlock, RowBacking, medians, plain_spaces,
};
use crate::{ArchiveTree, Content, Outcome, TreeDataset};

use super::lab::{Contradicted, contradicted};
use super::links::{LinkTargets, linked_places};

/// Offered loads of two arms that lie further apart than this may be what their effect is of.
const OFFERED_APART: f64 = 0.01;

pub(super) fn lint_texts(tree: &ArchiveTree) -> Vec<Finding> {
    let datasets = TreeDataset::all(tree);
    let index = DatasetIndex::new(datasets.iter().map(TreeDataset::candidate));
    let targets = LinkTargets::new(tree);
    let texts = tree.files.iter().filter_map(|file| match &file.outcome {
        Outcome::Read(Content::Readme(readme)) => Some(Text {
            tree,
            datasets: &datasets,
            index: &index,
            targets: &targets,
            path: &file.path,
            place: place(file.path.parent().unwrap_or(Path::new(""))),
            readme,
        }),
        _ => None,
    });
    let texts: Vec<Text<'_>> = texts.collect();
    let findings = parallel(&texts, FEW, Text::lint);
    findings.into_iter().flatten().collect()
}

/// A text in its tree.
struct Text<'a> {
    tree: &'a ArchiveTree,
    datasets: &'a [TreeDataset<'a>],
    index: &'a DatasetIndex<'a>,
    targets: &'a LinkTargets<'a>,
    path: &'a Path,
    place: String,
    readme: &'a PublishedReadme,
}

impl Text<'_> {
    fn lint(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut names = Vec::new();
        for block in &self.readme.blocks {
            let mut backing = self.index.back(&block.block, &self.place);
            let altered = self.complete(block, &mut backing, &mut findings);
            names.extend(backing.rows.iter().filter_map(RowBacking::chosen));
            self.rows(block, &backing, &mut findings);
            findings.extend(self.labels(block, &backing));
            findings.extend(self.printing(block, &backing, &altered));
            self.verdicts(block, &backing, &mut findings);
        }
        let names: Vec<&str> = names
            .into_iter()
            .map(|position| self.datasets[position].name.as_str())
            .collect();
        findings.extend(self.title(&names));
        findings.extend(self.broken_links());
        findings.extend(self.links());
        findings.extend(self.masks());
        findings.extend(self.lab());
        findings.extend(self.claims());
        findings.extend(self.turned_words());
        findings.extend(self.cells());
        findings.extend(self.tables());
        findings
    }

    fn finding(&self, rule: &'static Rule, sentence: impl Into<String>) -> Finding {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        Finding::new(rule, &self.tree.root.join(folder), sentence)
    }

    fn says(&self, line: usize, says: impl Into<String>) -> Evidence {
        Evidence::published(&self.tree.root.join(self.path), Some(line), says)
    }

    fn also_says(&self, line: usize, says: impl Into<String>) -> Evidence {
        Evidence::derived(&self.tree.root.join(self.path), Some(line), says)
    }

    /// What the same text says, in no line of its own.
    fn elsewhere(&self, says: impl Into<String>) -> Evidence {
        Evidence::derived(&self.tree.root.join(self.path), None, says)
    }

    /// What the files of the text's folder say together.
    fn of_data(&self, says: impl Into<String>) -> Evidence {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        Evidence::derived(&self.tree.root.join(folder), None, says)
    }

    fn dataset(&self, position: usize, says: impl Into<String>) -> Evidence {
        let path = self.tree.root.join(self.datasets[position].path);
        Evidence::derived(&path, None, says)
    }

    /// Gives each row that has other figures than its dataset that dataset, so that the other rules look at the
    /// block as at any; the lines of these rows.
    fn complete(
        &self,
        block: &ReadmeBlock,
        backing: &mut BlockBacking,
        findings: &mut Vec<Finding>,
    ) -> Vec<usize> {
        let mut altered = Vec::new();
        for (row, backed) in block.block.rows.iter().zip(&mut backing.rows) {
            if *backed != RowBacking::None {
                continue;
            }
            let Some(near) = self.index.near(row, &self.place) else {
                continue;
            };
            let known = &self.datasets[near.position];
            let is_here = known.place == self.place;
            *backed = if is_here {
                RowBacking::SameFolder(near.position)
            } else {
                RowBacking::Elsewhere(near.position)
            };
            altered.push(row.line);
            let names = ["minimum", "maximum", "median", "average", "deviation"];
            let pairs = row.figures.iter().zip(&near.figures).zip(names);
            let differs = pairs.filter(|((published, given), _)| published != given);
            let differs: Vec<String> = differs
                .map(|((published, given), name)| format!("{name} {published} is {given}"))
                .collect();
            let differs = match &*differs {
                [] => format!("N {} is {}", row.count, known.values.len()),
                differs => differs.join(", "),
            };
            let sentence = format!(
                "the row of {} is that of {}, but for its figures: {differs}",
                shown(row),
                known.name
            );
            let finding = self
                .finding(&ROW_NOT_DERIVED, sentence)
                .with(self.says(row.line, row.figures.join(" ")))
                .with(self.dataset(near.position, near.figures.join(" ")));
            findings.push(finding);
        }
        altered
    }

    /// What its rows were made of.
    fn rows(&self, block: &ReadmeBlock, backing: &BlockBacking, findings: &mut Vec<Finding>) {
        let has_datasets = self.index.has_place(&self.place);
        for (row, backed) in block.block.rows.iter().zip(&backing.rows) {
            let shown = shown(row);
            match backed {
                RowBacking::None if has_datasets => {
                    let says = self.says(row.line, row.figures.join(" "));
                    findings.push(match self.named_here(row) {
                        Some(named) => {
                            let name = &self.datasets[named].name;
                            let sentence = format!("{name} does not give the row of {shown}");
                            let finding = self.finding(&ROW_NOT_DERIVED, sentence);
                            finding.with(says).with(self.dataset(named, name))
                        }
                        None => {
                            let sentence =
                                format!("no dataset that was looked at gives the row of {shown}");
                            self.finding(&ROW_NOT_FOUND, sentence).with(says)
                        }
                    });
                }
                RowBacking::Elsewhere(position) if !self.is_named(block, row, *position) => {
                    let known = &self.datasets[*position];
                    let whose = if self.is_of_this_machine(known) {
                        "another session"
                    } else {
                        "another machine"
                    };
                    let sentence = format!(
                        "the row of {shown} is of {}/{}: {whose}",
                        known.place, known.name
                    );
                    let finding = self
                        .finding(&ROW_OF_ANOTHER_FOLDER, sentence)
                        .with(self.says(row.line, row.figures.join(" ")))
                        .with(self.dataset(*position, &known.name));
                    findings.push(finding);
                }
                _ => {}
            }
        }
    }

    /// Whether a row says that its dataset lies in another folder: by a path in its label, or by a word of that
    /// folder's label that the own has not.
    fn is_named(&self, block: &ReadmeBlock, row: &PublishedRow, position: usize) -> bool {
        let label = plain_spaces(row.label.as_deref().unwrap_or_default());
        let caption = block.caption.iter().map(|caption| caption.text.as_str());
        let texts: Vec<&str> = caption.chain([label.as_ref()]).collect();
        let known = &self.datasets[position];
        label.contains('/')
            || texts
                .iter()
                .any(|text| names_place(text, &known.place, &self.place))
    }

    /// The dataset of the text's own folder that a row's label is the name of.
    fn named_here(&self, row: &PublishedRow) -> Option<usize> {
        let label = plain_spaces(row.label.as_deref()?);
        let named = self.index.named(label.trim(), &self.place)?;
        (self.datasets[named].place == self.place).then_some(named)
    }

    fn is_of_this_machine(&self, known: &TreeDataset<'_>) -> bool {
        let own = self.tree.place(self.path);
        let place = &known.folder().place;
        (&own.platform, &own.nic) == (&place.platform, &place.nic)
    }

    fn labels(&self, block: &ReadmeBlock, backing: &BlockBacking) -> impl Iterator<Item = Finding> {
        let found = label_contradictions(block, backing, self.index, &self.place);
        found.into_iter().map(|found| {
            let known = &self.datasets[found.dataset];
            let sentence = match found.contradiction.kind {
                ContradictionKind::NamesAnother => format!(
                    "the label {:?} is the name of another dataset; the figures are those of {}",
                    found.label, known.name
                ),
                _ => format!(
                    "the label {:?} says {}, but the figures are those of {}, which says {}",
                    found.label,
                    found.contradiction.text_says,
                    known.name,
                    found.contradiction.name_says
                ),
            };
            self.finding(&LABEL_OF_ANOTHER, sentence)
                .with(self.says(found.line, &found.label))
                .with(self.dataset(found.dataset, &known.name))
        })
    }

    /// What was changed in a block after ministat printed it, beside the rows in the lines `known`; what was only left
    /// out is no fault.
    fn printing(
        &self,
        block: &ReadmeBlock,
        backing: &BlockBacking,
        known: &[usize],
    ) -> Option<Finding> {
        let Printing::Departs(departures) = self.index.printing(&block.block, backing)? else {
            return None;
        };
        let is_altered = |departure: &&Departure| {
            matches!(
                departure.kind,
                DepartureKind::PlotAltered
                    | DepartureKind::Glued
                    | DepartureKind::FiguresAltered
                    | DepartureKind::Other
            ) && !known.contains(&departure.line)
        };
        let altered: Vec<&Departure> = departures.iter().filter(is_altered).collect();
        let departure = *altered.first()?;
        let text = |line: &Option<String>| line.clone().unwrap_or_else(|| "(nothing)".into());
        // More than one line may be what another version of ministat prints.
        let (rule, sentence) = match &*altered {
            [only] if only.kind == DepartureKind::FiguresAltered => (
                &ROW_NOT_DERIVED,
                "a comparison has other figures than its datasets give".to_owned(),
            ),
            _ => (
                &BLOCK_ALTERED,
                format!(
                    "a block is not as ministat prints it from its datasets: {}",
                    departure.kind.as_str()
                ),
            ),
        };
        let finding = self
            .finding(rule, sentence)
            .with(self.says(departure.line, text(&departure.published)))
            .with(self.also_says(departure.line, text(&departure.printed)));
        Some(finding)
    }

    /// Whether the words of a block stand when all its comparisons are judged together.
    fn verdicts(&self, block: &ReadmeBlock, backing: &BlockBacking, findings: &mut Vec<Finding>) {
        let chosen: Option<Vec<usize>> = backing.rows.iter().map(RowBacking::chosen).collect();
        let Some((&baseline, others)) = chosen.as_deref().and_then(<[usize]>::split_first) else {
            return;
        };
        let values = |position: usize| -> Vec<f64> {
            let counted = self.datasets[position].counted(&self.tree.files);
            counted.iter().map(|one| one.pps).collect()
        };
        let comparisons: Vec<IndependentObservations> = others
            .iter()
            .map(|&position| IndependentObservations {
                name: self.datasets[position].name.clone(),
                baseline: values(baseline),
                variant: values(position),
            })
            .collect();
        let Ok(family) = independent_verdicts(&comparisons, &VerdictSettings::default()) else {
            return;
        };
        let rows = block.block.rows.iter().skip(1).zip(&family.comparisons);
        for ((row, verdict), &position) in rows.zip(others) {
            let is_shown = verdict.verdict.shows_difference();
            let Some(comparison) = &row.comparison else {
                continue;
            };
            if comparison.says_difference() && !is_shown {
                let is_as_published = [baseline, position]
                    .iter()
                    .all(|&position| values(position) == self.datasets[position].values);
                let of_which = if is_as_published {
                    ""
                } else {
                    ", with the runs that count and were not published,"
                };
                let sentence = format!(
                    "a difference is said of {}, which is {}{of_which} when the {} comparisons of its block are \
                     judged together by Welch's t of their logarithms (p {:.3})",
                    shown(row),
                    verdict.verdict,
                    verdict.family_size,
                    verdict.adjusted_p.direction
                );
                let finding = self
                    .finding(&VERDICT_FLIPS, sentence)
                    .with(self.says(row.line, "Difference"))
                    .with(self.dataset(position, verdict.verdict.to_string()));
                findings.push(finding);
            }
            findings.extend(self.offered(row, baseline, position));
        }
    }

    /// Whether two arms were offered the same.
    fn offered(&self, row: &PublishedRow, baseline: usize, position: usize) -> Option<Finding> {
        let offered = |position: usize| {
            let loads = offered_pps(&self.datasets[position].counted(&self.tree.files));
            loads.filter(|loads| loads.len() >= 3)
        };
        let (first, second) = (offered(baseline)?, offered(position)?);
        let (of_first, of_second) = (median(&first)?, median(&second)?);
        // Apart beyond what the runs of either arm are.
        let range = |loads: &[f64]| {
            let low = loads.iter().copied().fold(f64::INFINITY, f64::min);
            low..=loads.iter().copied().fold(0.0, f64::max)
        };
        let is_apart = !range(&first).contains(&of_second) && !range(&second).contains(&of_first);
        let change = of_second / of_first - 1.0;
        let sentence = format!(
            "{} was offered {:+.1} % against the first row, which is part of what it is compared by",
            shown(row),
            change * 100.0
        );
        let finding = self
            .finding(&OFFERED_LOAD_MOVED, sentence)
            .with(self.says(row.line, format!("{of_second:.0} pps offered")))
            .with(self.dataset(baseline, format!("{of_first:.0} pps offered")));
        (is_apart && change.abs() > OFFERED_APART).then_some(finding)
    }

    fn title(&self, names: &[&str]) -> Option<Finding> {
        let found = title_contradiction(self.readme, &self.place, names)?;
        let varied = found.varied.join(", ");
        let sentence = format!(
            "the title is about {}, the results about {varied}",
            found.factors.join(", ")
        );
        let finding = self
            .finding(&OTHER_TITLE, sentence)
            .with(self.says(found.title.line, &found.title.text))
            .with(self.elsewhere(varied));
        Some(finding)
    }

    fn broken_links(&self) -> Vec<Finding> {
        let mut said = HashSet::new();
        let links = self.readme.links.iter();
        let broken = links.filter_map(|link| {
            let broken = self.targets.broken(&self.place, link)?;
            if !said.insert(&link.target) {
                return None;
            }
            let there = broken
                .alike
                .map_or_else(String::new, |path| format!("; there is {}", path.display()));
            let sentence = format!("a link leads to {}, which is not there{there}", link.target);
            let finding = self
                .finding(&BROKEN_LINK, sentence)
                .with(self.says(link.line, &link.target));
            Some(match broken.alike {
                Some(path) => {
                    let says = path.display().to_string();
                    finding.with(Evidence::derived(&self.tree.root.join(path), None, says))
                }
                None => finding,
            })
        });
        broken.collect()
    }

    fn links(&self) -> impl Iterator<Item = Finding> {
        let has_links = self.readme.links.iter().any(|link| !link.is_image);
        let datasets = self.datasets.iter().filter(|_| has_links);
        let files = datasets.filter(|known| known.place == self.place);
        let files: Vec<&str> = files.map(|known| known.name.as_str()).collect();
        let found = link_contradictions(self.readme, &files);
        found.into_iter().map(|found| {
            let link = &found.link;
            let sentence = format!(
                "the link {:?} leads to {}: the one says {}, the other {}",
                link.text,
                link.target,
                found.contradiction.text_says,
                found.contradiction.name_says
            );
            self.finding(&LINK_OF_ANOTHER, sentence)
                .with(self.says(link.line, &link.text))
                .with(self.also_says(link.line, &link.target))
        })
    }

    fn masks(&self) -> impl Iterator<Item = Finding> {
        let found = mask_contradictions(self.readme);
        found.into_iter().map(|found| {
            let sentence = format!("{}: {}", found.key, found.problem.as_str());
            self.finding(&MASKS_DISAGREE, sentence)
                .with(self.says(found.line, &found.text))
                .with(self.also_says(found.other_line, &found.other_text))
        })
    }

    /// What is said of the laboratory, in the text that lies in a folder of results.
    fn lab(&self) -> Vec<Finding> {
        let folders = &self.tree.folders;
        let parent = self.path.parent().unwrap_or(Path::new(""));
        let own = folders.binary_search_by(|folder| folder.path.as_path().cmp(parent));
        let Ok(own) = own else {
            return Vec::new();
        };
        let folder = &folders[own];
        let found = contradicted(self.tree, folder, self.readme).into_iter();
        let finding = |found: Contradicted<'_>| {
            let sentence = format!("the text says {}, the data {}", found.says, found.data_says);
            self.finding(&TEXT_NOT_OF_DATA, sentence)
                .with(self.says(found.line.line, &found.line.text))
                .with(self.of_data(found.data_says))
        };
        found.map(finding).collect()
    }

    fn claims(&self) -> impl Iterator<Item = Finding> {
        let found = unsupported_claims(self.readme).into_iter();
        // What a text says of a single run is in no block.
        let found = found.filter(|found| !self.is_observed(&found.claim));
        found.map(|found| {
            let (rule, what) = if found.is_misprint {
                (&ROW_NOT_DERIVED, "differs in one digit from")
            } else {
                (
                    &TEXT_NOT_OF_TABLE,
                    "is given by no row and no comparison; the nearest figure is",
                )
            };
            let nearest = general(found.nearest, 6);
            let sentence = format!("{:?} {what} {nearest}", found.claim.text);
            self.finding(rule, sentence)
                .with(self.says(found.claim.line, &found.claim.text))
                .with(self.elsewhere(nearest.to_string()))
        })
    }

    /// Whether a rate is one of the observations of the text's folder.
    fn is_observed(&self, claim: &Claim) -> bool {
        let is_near = |pps: &f64| (pps - claim.high).abs() < claim.resolution;
        let known = self.datasets.iter();
        let mut known = known.filter(|known| known.place == self.place);
        claim.quantity == Quantity::PacketsPerSecond
            && known.any(|known| known.values.iter().any(is_near))
    }

    fn turned_words(&self) -> impl Iterator<Item = Finding> {
        let found = turned_words(self.readme);
        found.into_iter().map(|found| {
            let sentence = format!(
                "the text says {:?} beside a difference of {:+} %",
                found.word, found.change
            );
            self.finding(&TEXT_NOT_OF_TABLE, sentence)
                .with(self.says(found.line, found.word))
                .with(self.elsewhere(format!("{:+} %", found.change)))
        })
    }

    fn tables(&self) -> impl Iterator<Item = Finding> {
        let found = table_contradictions(self.readme);
        found.into_iter().map(|found| {
            let sentence = format!(
                "two tables do not agree about {} of {}",
                found.column, found.row
            );
            self.finding(&TEXT_NOT_OF_TABLE, sentence)
                .with(self.says(found.line, &found.text))
                .with(self.also_says(found.other_line, &found.other_text))
        })
    }

    /// Numbers in tables against the datasets of the text's folder, and of those that it links to.
    fn cells(&self) -> Vec<Finding> {
        if self.readme.tables.is_empty() {
            return Vec::new();
        }
        let mut places = linked_places(&self.place, &self.readme.links);
        places.insert(self.place.clone());
        let of_places = self
            .datasets
            .iter()
            .filter(|known| places.contains(&known.place));
        let tabled = of_places.map(|known| TabledDataset {
            name: (known.place == self.place).then(|| known.key()),
            levels: levels(known.values),
            values: known.values,
        });
        let tabled: Vec<TabledDataset<'_>> = tabled.collect();
        let found = misprinted_cells(self.readme, &tabled).into_iter();
        found
            .map(|found| {
                let sentence = format!(
                    "a table has {:?} where the data gives {}",
                    found.text, found.figure
                );
                self.finding(&ROW_NOT_DERIVED, sentence)
                    .with(self.says(found.line, &found.text))
                    .with(self.of_data(found.figure.to_string()))
            })
            .collect()
    }
}

/// The medians of ministat's dialects, and the average.
fn levels(values: &[f64]) -> Vec<f64> {
    let average = values.iter().sum::<f64>() / values.len() as f64;
    let medians = medians(values).into_iter().flatten();
    medians.chain([average]).collect()
}

fn shown(row: &PublishedRow) -> String {
    match &row.label {
        Some(label) => format!("{label:?}"),
        None => format!("median {}", row.figures[2]),
    }
}
