//! What is published in a part, as far as planting a defect needs it; read without lint's own readers, of
//! which a fault would otherwise hide itself.

use std::path::{Path, PathBuf};

use fwdlab_pkt_gen::{PublishedMedian, published_observation};

use crate::part::Part;

/// A file of numbers.
#[derive(Clone)]
pub(crate) struct Dataset {
    pub(crate) path: PathBuf,
    pub(crate) values: Vec<f64>,
}

impl Dataset {
    /// The datasets of a part, of three values or more.
    pub(crate) fn all(part: &Part) -> Vec<Self> {
        let is_dataset = |name: &str| name.ends_with(".pps") || !name.contains('.');
        let mut datasets = Vec::new();
        for path in part.ending("") {
            let is_of_results = path.iter().any(|name| name == "results");
            if !is_of_results || !is_dataset(&name(path)) {
                continue;
            }
            let Some(text) = part.text(path) else {
                continue;
            };
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let values: Option<Vec<f64>> = lines.map(|line| line.parse().ok()).collect();
            datasets.extend(
                values
                    .filter(|values| values.len() >= 3)
                    .map(|values| Self {
                        path: path.to_owned(),
                        values,
                    }),
            );
        }
        datasets
    }

    /// The name without `.pps`.
    pub(crate) fn stem(&self) -> String {
        name(&self.path).trim_end_matches(".pps").to_owned()
    }

    /// Its figures as ministat prints them: number, minimum, maximum, median, mean, standard deviation.
    pub(crate) fn figures(&self, median: PublishedMedian) -> [f64; 6] {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        [
            n,
            sorted[0],
            sorted[sorted.len() - 1],
            middle(&sorted, median),
            mean,
            (squares / (n - 1.0)).sqrt(),
        ]
    }

    /// Whether figures are its own, to the digits that are printed.
    pub(crate) fn gives(&self, figures: &[f64]) -> bool {
        [PublishedMedian::Averaged, PublishedMedian::Upper]
            .iter()
            .any(|&median| {
                let own = self.figures(median);
                own.iter()
                    .zip(figures)
                    .all(|(&own, &printed)| is_same(own, printed))
            })
    }
}

fn middle(sorted: &[f64], median: PublishedMedian) -> f64 {
    let upper = sorted[sorted.len() / 2];
    match median {
        PublishedMedian::Averaged if sorted.len().is_multiple_of(2) => {
            f64::midpoint(upper, sorted[sorted.len() / 2 - 1])
        }
        _ => upper,
    }
}

/// Whether a number is another to eight digits.
pub(crate) fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= one.abs() * 6e-8
}

/// A dataset that the logs beside it give, and these logs with what each gives.
pub(crate) struct Logged {
    pub(crate) dataset: Dataset,
    pub(crate) receivers: Vec<PathBuf>,
}

impl Logged {
    pub(crate) fn all(part: &Part) -> Vec<Self> {
        let receivers = part.ending(".receiver");
        if receivers.is_empty() {
            return Vec::new();
        }
        let datasets = part.datasets().iter().cloned();
        datasets
            .filter_map(|dataset| {
                let folder = dataset.path.parent().unwrap();
                let begin = format!("bench.{}.", dataset.stem());
                let is_run = |path: &Path| {
                    let name = name(path);
                    let run = name.strip_prefix(&begin);
                    let run = run.and_then(|rest| rest.strip_suffix(".receiver"));
                    run.is_some_and(|run| run.parse::<u32>().is_ok())
                };
                let logs = receivers.iter().copied();
                let logs = logs.filter(|path| path.starts_with(folder) && is_run(path));
                let receivers: Vec<PathBuf> = logs.map(Path::to_owned).collect();
                let is_one_folder = receivers
                    .iter()
                    .all(|path| path.parent() == receivers[0].parent());
                let is_given = [PublishedMedian::Averaged, PublishedMedian::Upper]
                    .iter()
                    .any(|&median| {
                        let of_log = |path: &PathBuf| {
                            published_observation(&part.bytes(path), median)?
                                .parse()
                                .ok()
                        };
                        let values: Option<Vec<f64>> = receivers.iter().map(of_log).collect();
                        values == Some(dataset.values.clone())
                    });
                (is_one_folder && is_given).then_some(Self { dataset, receivers })
            })
            .collect()
    }
}

/// A block of ministat in a text; lines are counted from 0.
#[derive(Default)]
pub(crate) struct Block {
    pub(crate) legends: Vec<Legend>,
    pub(crate) rows: Vec<Row>,
    /// Lines that say how two rows differ, and whether each is the verdict.
    pub(crate) comparisons: Vec<(usize, bool)>,
}

pub(crate) struct Legend {
    pub(crate) line: usize,
    pub(crate) symbol: char,
    pub(crate) label: String,
}

#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) line: usize,
    pub(crate) symbol: char,
    pub(crate) figures: Vec<f64>,
}

impl Block {
    pub(crate) fn all(text: &str) -> Vec<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let is_head = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words == ["N", "Min", "Max", "Median", "Avg", "Stddev"]
        };
        let heads = (0..lines.len()).filter(|&at| is_head(lines[at]));
        heads.map(|at| Self::around(&lines, at)).collect()
    }

    fn around(lines: &[&str], head: usize) -> Self {
        let mut block = Self::default();
        for line in (0..head)
            .rev()
            .take_while(|&at| !lines[at].starts_with("```"))
        {
            let mut characters = lines[line].chars();
            let (symbol, gap) = (characters.next(), characters.next());
            if let (Some(symbol @ ('x' | '+' | '*' | '%' | '#' | '@' | 'O')), Some(' ')) =
                (symbol, gap)
            {
                let label = lines[line][2..].trim().to_owned();
                block.legends.push(Legend {
                    line,
                    symbol,
                    label,
                });
            }
        }
        block.legends.reverse();
        for (line, text) in lines.iter().enumerate().skip(head + 1) {
            let words: Vec<&str> = text.split_whitespace().collect();
            let is_comparison = ["ifference", "+/-", "pooled"]
                .iter()
                .any(|word| text.contains(word));
            let figures: Option<Vec<f64>> =
                words.iter().skip(1).map(|word| word.parse().ok()).collect();
            match figures {
                _ if is_comparison => block.comparisons.push((line, text.contains("confidence"))),
                Some(figures) if figures.len() == 6 && words[0].chars().count() == 1 => {
                    let symbol = words[0].chars().next().unwrap();
                    block.rows.push(Row {
                        line,
                        symbol,
                        figures,
                    });
                }
                _ => break,
            }
        }
        block
    }

    /// Whether a line is one of its own, also where no fence is around it.
    fn has(&self, line: usize) -> bool {
        let legends = self.legends.iter().map(|legend| legend.line);
        let rows = self.rows.iter().map(|row| row.line);
        let comparisons = self.comparisons.iter().map(|(line, _)| *line);
        legends
            .chain(rows)
            .chain(comparisons)
            .any(|own| own == line)
    }

    /// The label of a row.
    pub(crate) fn legend(&self, row: &Row) -> Option<&Legend> {
        self.legends
            .iter()
            .find(|legend| legend.symbol == row.symbol)
    }
}

/// A link on a line.
pub(crate) struct Link<'a> {
    pub(crate) text: &'a str,
    pub(crate) target: &'a str,
}

pub(crate) fn links(line: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once("](") {
        let Some((target, after)) = behind.split_once(')') else {
            break;
        };
        let text = before.rsplit_once('[').map_or(before, |(_, text)| text);
        links.push(Link { text, target });
        rest = after;
    }
    links
}

/// The lines of a text that are prose: outside fences and blocks of ministat, no tables, no pictures and no links, each with its number from 0.
pub(crate) fn prose_lines(text: &str) -> Vec<(usize, &str)> {
    let blocks = Block::all(text);
    let is_of_block = |number| blocks.iter().any(|block| block.has(number));
    let mut is_fenced = false;
    let mut prose = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if is_of_block(number) {
            continue;
        }
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && !line.contains("](") && !line.trim_start().starts_with('|') {
            prose.push((number, line));
        }
    }
    prose
}

/// The words of a label or a name, in small letters.
pub(crate) fn words(text: &str) -> Vec<String> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}
