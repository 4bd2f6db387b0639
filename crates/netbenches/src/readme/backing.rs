//! Which dataset each row of a block was made of.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use fwdlab_stats::ministat::{Dialect, PublishedBlock, PublishedRow, general};

use super::plain_spaces;
use super::printing::{self, Printing};

/// A dataset that a row may have been made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<'a> {
    /// The folder it lies in, from the archive's root, with `/` between.
    pub place: &'a str,
    /// The file's name.
    pub name: &'a str,
    /// Its observations, in their order.
    pub values: &'a [f64],
}

/// Datasets by what a row prints of them.
#[derive(Clone, Debug, Default)]
pub struct DatasetIndex<'a> {
    candidates: Vec<Candidate<'a>>,
    /// The folders that they lie in.
    places: HashSet<&'a str>,
    /// Their positions, by what every dialect prints alike: count, minimum and maximum.
    by_range: HashMap<(usize, String, String), Vec<usize>>,
    /// Their positions, by each figure that a row may print of them as their minimum, maximum or median.
    /// Made when a row is looked for that none gives.
    by_figure: OnceLock<HashMap<String, Vec<usize>>>,
    /// Their positions, by their path without `.pps`.
    by_path: HashMap<String, usize>,
}

/// The dataset of a row that has another figure or two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearRow {
    /// Its position, as of [`DatasetIndex::candidate`].
    pub position: usize,
    /// The five figures that it gives.
    pub figures: [String; 5],
}

/// So many of a row's five figures make it a dataset's.
const COMMON_FIGURES_MIN: usize = 3;
/// Figures of fewer digits are those of many datasets by chance.
const DIGITS_MIN: usize = 4;

/// What a row was made of; positions are those of [`DatasetIndex::candidate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowBacking {
    /// This dataset in the README's own folder, and no other there.
    SameFolder(usize),
    /// This dataset in another folder; those farther away are not considered.
    Elsewhere(usize),
    /// Any of these: nothing tells them apart. The first is taken.
    Ambiguous(Vec<usize>),
    /// None of the datasets.
    None,
}

impl RowBacking {
    /// The dataset; the first, where several are as good.
    pub fn chosen(&self) -> Option<usize> {
        match self {
            Self::SameFolder(position) | Self::Elsewhere(position) => Some(*position),
            Self::Ambiguous(positions) => positions.first().copied(),
            Self::None => None,
        }
    }

    /// The dataset, where it is the only one.
    pub fn only(&self) -> Option<usize> {
        match self {
            Self::SameFolder(position) | Self::Elsewhere(position) => Some(*position),
            Self::Ambiguous(_) | Self::None => None,
        }
    }
}

/// What a block was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockBacking {
    /// Of each row, in order.
    pub rows: Vec<RowBacking>,
    /// The dialects in which the datasets give all rows and comparisons; none where a row has none.
    pub dialects: Vec<Dialect>,
}

impl BlockBacking {
    /// The dataset of each row; none where a row has none.
    fn chosen(&self) -> Option<Vec<usize>> {
        self.rows.iter().map(RowBacking::chosen).collect()
    }
}

impl<'a> DatasetIndex<'a> {
    /// An index over datasets; those of fewer than three observations back no row.
    pub fn new(candidates: impl IntoIterator<Item = Candidate<'a>>) -> Self {
        let mut index = Self::default();
        for candidate in candidates {
            let position = index.candidates.len();
            index.candidates.push(candidate);
            index.places.insert(candidate.place);
            let path = format!("{}/{}", candidate.place, stem(candidate.name));
            index.by_path.entry(path).or_insert(position);
            let values = candidate.values;
            if values.len() >= 3 {
                let minimum = values.iter().copied().fold(f64::INFINITY, f64::min);
                let maximum = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let printed = |value| general(value, 8).to_string();
                let key = (values.len(), printed(minimum), printed(maximum));
                index.by_range.entry(key).or_default().push(position);
            }
        }
        index
    }

    /// The dataset of that position: the order they were given in.
    pub fn candidate(&self, position: usize) -> Option<&Candidate<'a>> {
        self.candidates.get(position)
    }

    /// Whether a dataset lies in a folder, not below it.
    pub fn has_place(&self, place: &str) -> bool {
        self.places.contains(place)
    }

    /// The dataset that a label is the path of, as seen from the README's folder; with or without
    /// `.pps`.
    pub fn named(&self, label: &str, place: &str) -> Option<usize> {
        let (folders, name) = label.rsplit_once('/').unwrap_or(("", label));
        let mut path: Vec<&str> = folders_of(place).collect();
        for folder in folders.split('/') {
            match folder {
                "" | "." => {}
                ".." => {
                    path.pop();
                }
                folder => path.push(folder),
            }
        }
        let path = format!("{}/{}", path.join("/"), stem(name));
        self.by_path.get(&path).copied()
    }

    /// Finds what the rows of a block were made of.
    ///
    /// A dataset backs a row when the row's count and five figures come out of it in some dialect. Of
    /// several, the one that the label names wins, then one in the README's folder, then the one with
    /// most of its path in common.
    ///
    /// Shape: `place` is the README's folder, written as [`Candidate::place`] is.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::readme::{Candidate, DatasetIndex, Printing, RowBacking};
    /// use fwdlab_stats::ministat::published_blocks;
    /// let block = &published_blocks("x 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n")[0];
    /// let (off, on) = ([1.0, 3.0, 2.0], [5.0, 6.0, 7.0]);
    /// let index = DatasetIndex::new([
    ///     Candidate { place: "nic/a/results/1", name: "off.pps", values: &off },
    ///     Candidate { place: "nic/b/results/1", name: "on.pps", values: &on },
    /// ]);
    /// let backing = index.back(block, "nic/a/results/1");
    /// assert_eq!(backing.rows, [RowBacking::SameFolder(0), RowBacking::Elsewhere(1)]);
    /// ```
    pub fn back(&self, block: &PublishedBlock, place: &str) -> BlockBacking {
        let rows: Vec<RowBacking> = block
            .rows
            .iter()
            .map(|row| self.back_row(row, place))
            .collect();
        let mut backing = BlockBacking {
            rows,
            dialects: Vec::new(),
        };
        if let Some(chosen) = backing.chosen() {
            backing.dialects = block.dialects(&self.values(&chosen));
        }
        backing
    }

    /// Whether ministat prints a block again from what its rows were made of; none where a row was made of none.
    ///
    /// Shape: `backing` is that of this block, by this index.
    pub fn printing(&self, block: &PublishedBlock, backing: &BlockBacking) -> Option<Printing> {
        let values = self.values(&backing.chosen()?);
        Some(printing::print_again(block, &values, &backing.dialects))
    }

    /// The dataset that gives at least three of the figures of a row that none gives whole.
    ///
    /// Silent where several datasets of other values fit as well, and on figures of few digits.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::readme::{Candidate, DatasetIndex};
    /// use fwdlab_stats::ministat::published_blocks;
    /// let row = &published_blocks("x 3 1001 1003 1009 1002 1\n")[0].rows[0];
    /// let index = DatasetIndex::new([
    ///     Candidate { place: "a", name: "off.pps", values: &[1001.0, 1003.0, 1002.0] },
    ///     Candidate { place: "a", name: "on.pps", values: &[1001.0, 1009.0, 1008.0] },
    /// ]);
    /// let near = index.near(row, "a").unwrap();
    /// assert_eq!((near.position, near.figures[2].as_str()), (0, "1002"));
    /// ```
    pub fn near(&self, row: &PublishedRow, place: &str) -> Option<NearRow> {
        let [minimum, maximum, median, ..] = &row.figures;
        let levels = [minimum, maximum, median];
        let by_figure = self.by_figure.get_or_init(|| self.figures());
        let known = levels.iter().filter_map(|figure| by_figure.get(*figure));
        let mut positions: Vec<usize> = known.flatten().copied().collect();
        positions.sort_unstable();
        positions.dedup();
        let is_telling = levels.iter().all(|figure| figure.len() >= DIGITS_MIN);
        let near = |position: usize| {
            let candidate = &self.candidates[position];
            let figures = row.figures_of(candidate.values)?;
            let common = row.common_figures(&figures);
            let is_near = common >= COMMON_FIGURES_MIN && is_telling;
            is_near.then(|| {
                let rank = (common, self.rank(position, row, place));
                (rank, NearRow { position, figures })
            })
        };
        let mut found: Vec<_> = positions.into_iter().filter_map(near).collect();
        found.sort_by_key(|(rank, _)| Reverse(*rank));
        let mut found = found.into_iter();
        let (rank, best) = found.next()?;
        let values = |near: &NearRow| self.candidates[near.position].values;
        let is_alone = found
            .take_while(|(other, _)| *other == rank)
            .all(|(_, other)| values(&other) == values(&best));
        is_alone.then_some(best)
    }

    fn figures(&self) -> HashMap<String, Vec<usize>> {
        let mut by_figure: HashMap<String, Vec<usize>> = HashMap::new();
        for ((_, minimum, maximum), positions) in &self.by_range {
            for &position in positions {
                let medians = medians(self.candidates[position].values);
                let medians = medians.into_iter().flatten();
                let mut figures: Vec<String> = medians
                    .map(|median| general(median, 8).to_string())
                    .collect();
                figures.extend([minimum.clone(), maximum.clone()]);
                figures.sort_unstable();
                figures.dedup();
                for figure in figures {
                    by_figure.entry(figure).or_default().push(position);
                }
            }
        }
        by_figure
    }

    /// How near a dataset is to a row by its name and place: the larger, the nearer.
    fn rank(&self, position: usize, row: &PublishedRow, place: &str) -> (bool, bool, usize) {
        let label = row.label.as_deref().map(plain_spaces);
        let named = label.and_then(|label| self.named(label.trim(), place));
        let candidate = &self.candidates[position];
        let is_here = candidate.place == place;
        let shared = shared_folders(candidate.place, place);
        (named == Some(position), is_here, shared)
    }

    fn values(&self, positions: &[usize]) -> Vec<Vec<f64>> {
        let of_position = |position: &usize| self.candidates[*position].values.to_vec();
        positions.iter().map(of_position).collect()
    }

    fn back_row(&self, row: &PublishedRow, place: &str) -> RowBacking {
        let [minimum, maximum, ..] = &row.figures;
        let key = (row.count, minimum.clone(), maximum.clone());
        let Some(positions) = self.by_range.get(&key) else {
            return RowBacking::None;
        };
        let mut ranked: Vec<_> = positions
            .iter()
            .map(|&position| (self.rank(position, row, place), position))
            .collect();
        ranked.sort_by_key(|&(rank, _)| Reverse(rank));
        // Of many copies those farther away are not even looked at.
        let backs = |position: usize| row.is_of(self.candidates[position].values);
        let mut equals = ranked.chunk_by(|(one, _), (other, _)| one == other);
        let nearest = equals.find_map(|equals| {
            let positions = equals.iter().map(|&(_, position)| position);
            let backing: Vec<usize> = positions.filter(|&position| backs(position)).collect();
            (!backing.is_empty()).then_some((equals[0].0, backing))
        });
        let Some((best, nearest)) = nearest else {
            return RowBacking::None;
        };
        match nearest.as_slice() {
            [position] if best.1 => RowBacking::SameFolder(*position),
            [position] => RowBacking::Elsewhere(*position),
            _ => RowBacking::Ambiguous(nearest),
        }
    }
}

/// The medians of ministat's dialects: the mean of the two values in the middle, and the upper one of them.
///
/// Shape: finite values; none of no value.
pub(crate) fn medians(values: &[f64]) -> Option<[f64; 2]> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some([f64::midpoint(lower, upper), upper])
}

/// The name without `.pps`.
fn stem(name: &str) -> &str {
    name.strip_suffix(".pps").unwrap_or(name)
}

fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|folder| !folder.is_empty())
}

/// How many folders two paths have in common from the root on.
fn shared_folders(one: &str, other: &str) -> usize {
    let pairs = folders_of(one).zip(folders_of(other));
    pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_stats::ministat::published_blocks;

    const LOW: [f64; 3] = [1.0, 3.0, 2.0];
    const HIGH: [f64; 3] = [5.0, 6.0, 7.0];

    fn candidate<'a>(path: &'a str, values: &'a [f64]) -> Candidate<'a> {
        let (place, name) = path.rsplit_once('/').unwrap();
        Candidate {
            place,
            name,
            values,
        }
    }

    fn rows(labels: &str, candidates: &[Candidate]) -> Vec<RowBacking> {
        let block = format!("{labels}x 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n");
        let index = DatasetIndex::new(candidates.iter().copied());
        index
            .back(&published_blocks(&block)[0], "cpu/nic/topic/1")
            .rows
    }

    #[test]
    fn the_nearest_dataset_is_taken() {
        let far = candidate("cpu/nic/other/1/a", &LOW);
        let near = candidate("cpu/nic/topic/2/a", &LOW);
        let here = candidate("cpu/nic/topic/1/a", &LOW);
        let high = candidate("cpu/nic/topic/1/b", &HIGH);
        assert_eq!(
            rows("", &[far, near, here, high]),
            [RowBacking::SameFolder(2), RowBacking::SameFolder(3)]
        );
        assert_eq!(rows("", &[far, near, high])[0], RowBacking::Elsewhere(1));
        assert_eq!(rows("", &[high])[0], RowBacking::None);
    }

    #[test]
    fn a_label_that_names_a_dataset_chooses_it() {
        let one = candidate("cpu/nic/topic/1/a.pps", &LOW);
        let other = candidate("cpu/nic/topic/1/b.pps", &LOW);
        let elsewhere = candidate("cpu/nic/topic/2/a.pps", &LOW);
        let all = [one, other, elsewhere];
        let first = |labels: &str| rows(labels, &all)[0].clone();
        assert_eq!(first(""), RowBacking::Ambiguous(vec![0, 1]));
        assert_eq!(first("x b.pps\n"), RowBacking::SameFolder(1));
        assert_eq!(first("x a\n"), RowBacking::SameFolder(0));
        assert_eq!(first("x ../2/a.pps\n"), RowBacking::Elsewhere(2));
        assert_eq!(
            first("x ../../../../../../a.pps\n"),
            RowBacking::Ambiguous(vec![0, 1])
        );
    }

    #[test]
    fn a_dataset_backs_a_row_only_with_all_its_figures() {
        let others = [
            &[1.0, 3.0, 2.5][..],
            &[1.0, 3.0][..],
            &[1.0, 2.0, 2.0, 3.0][..],
            &[1.0, 3.0, f64::NAN][..],
        ];
        for other in others {
            let other = candidate("cpu/nic/topic/1/a", other);
            assert_eq!(rows("", &[other])[0], RowBacking::None, "{other:?}");
        }
    }

    #[test]
    fn a_block_is_printed_again_only_when_all_its_rows_are_backed() {
        let block = "x 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n";
        let block = &published_blocks(block)[0];
        let low = candidate("a/b", &LOW);
        let high = candidate("a/c", &HIGH);
        let index = DatasetIndex::new([low]);
        let partly = index.back(block, "a");
        assert_eq!(partly.dialects, []);
        assert_eq!(index.printing(block, &partly), None);
        let index = DatasetIndex::new([low, high]);
        let whole = index.back(block, "a");
        assert_eq!(whole.dialects, Dialect::ALL);
        assert!(
            matches!(index.printing(block, &whole), Some(Printing::Departs(_))),
            "the columns are not ministat's"
        );
    }
}
