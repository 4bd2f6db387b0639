//! Slices as the cells of blocks, rounds and variants, and what labels of them explain beside these.

use std::collections::BTreeMap;

use crate::least_squares::Factored;
use crate::spread::robust_deviation;

/// A cell further from what is fitted to it than so many robust standard deviations counts as if it were no further.
const DEVIATIONS_MAX: f64 = 3.0;

/// How often outlying cells are drawn in.
const WINSORISE_TIMES: usize = 10;

/// How often means are taken out in turn: with whole rounds once is enough.
const SWEEPS_MAX: usize = 1000;

/// The part of a label's squares that has to be left when rounds and variants are taken out.
const LEFT_MIN: f64 = 1e-6;

/// A round or variant of which a smaller part is left by those before it is made of them.
const INDEPENDENT_PART: f64 = 1e-9;

/// Differences of log rates are not known better, in parts of the log rate.
pub(crate) const ROUNDING: f64 = 1e-12;

/// Where a cell is: its block, round and variant, each from 0.
pub(crate) type Place = (usize, usize, usize);

/// Slices that count, each in a round and of a variant of a block.
pub(crate) struct Cells {
    /// Those of a block together.
    places: Vec<Place>,
    log_rates: Vec<f64>,
    /// The number of each slice's block and round, and of its block and variant.
    groups: [Vec<usize>; 2],
    /// How many slices each of these has.
    sizes: [Vec<f64>; 2],
    /// What is smaller is rounding.
    rounding: f64,
}

/// What was fitted to the cells beside their rounds and variants, outlying cells drawn in.
pub(crate) struct RobustFit {
    /// Of each label; they add up to nothing.
    pub(crate) effects: Vec<f64>,
    /// What nothing explains, by cell.
    pub(crate) residuals: Vec<f64>,
}

/// A label of each cell, and what the labels have in common once rounds and variants are taken out.
struct Labels<'a> {
    of_cells: &'a [usize],
    count: usize,
    /// The products of the labels but the last, each less the last.
    products: Factored,
}

impl Cells {
    pub(crate) fn new(places: Vec<Place>, log_rates: Vec<f64>) -> Self {
        let largest = log_rates
            .iter()
            .fold(0.0_f64, |most, rate| most.max(rate.abs()));
        let grouped = |of: fn(&(usize, usize, usize)) -> (usize, usize)| {
            let mut numbers = BTreeMap::new();
            let mut sizes = Vec::new();
            let groups: Vec<usize> = places
                .iter()
                .map(|place| {
                    let next = numbers.len();
                    let number = *numbers.entry(of(place)).or_insert(next);
                    if number == sizes.len() {
                        sizes.push(0.0);
                    }
                    sizes[number] += 1.0;
                    number
                })
                .collect();
            (groups, sizes)
        };
        let (rounds, round_sizes) = grouped(|&(block, round, _)| (block, round));
        let (variants, variant_sizes) = grouped(|&(block, _, variant)| (block, variant));
        Self {
            places,
            log_rates,
            groups: [rounds, variants],
            sizes: [round_sizes, variant_sizes],
            rounding: largest * ROUNDING,
        }
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// The values with the means of rounds and variants taken out, block by block.
    fn centred(&self, values: &[f64]) -> Vec<f64> {
        let mut values = values.to_vec();
        let scale = values
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()));
        for _ in 0..SWEEPS_MAX {
            let mut largest = 0.0_f64;
            for (groups, sizes) in self.groups.iter().zip(&self.sizes) {
                let mut means = vec![0.0; sizes.len()];
                for (value, group) in values.iter().zip(groups) {
                    means[*group] += value / sizes[*group];
                }
                for (value, group) in values.iter_mut().zip(groups) {
                    *value -= means[*group];
                }
                largest = means
                    .iter()
                    .fold(largest, |most, mean| most.max(mean.abs()));
            }
            if largest <= 1e-13 * scale {
                break;
            }
        }
        values
    }

    /// Fits nothing but rounds and variants.
    pub(crate) fn fit(&self) -> RobustFit {
        self.robust_fit(None)
    }

    /// Fits labels from 0 beside rounds and variants; none where they depend on these or on each other.
    ///
    /// Shape: `of_cells` holds the label of each cell, below `count`.
    pub(crate) fn fit_labels(&self, of_cells: &[usize], count: usize) -> Option<RobustFit> {
        let left = self.products(of_cells, count);
        let last = count.checked_sub(1)?;
        let mut sizes = vec![0.0; count];
        for label in of_cells {
            sizes[*label] += 1.0;
        }
        // Effects add up to nothing: the last is less all others.
        let columns: Vec<Vec<f64>> = (0..last)
            .map(|column| {
                let row = 0..last;
                row.map(|row| {
                    left[row][column] - left[row][last] - left[last][column] + left[last][last]
                })
                .collect()
            })
            .collect();
        let is_left = |(number, column): (usize, &Vec<f64>)| {
            column[number] > LEFT_MIN * (sizes[number] + sizes[last])
        };
        if !columns.iter().enumerate().all(is_left) {
            return None;
        }
        let labels = Labels {
            of_cells,
            count,
            products: Factored::new(columns).ok()?,
        };
        Some(self.robust_fit(Some(&labels)))
    }

    /// The products of the labels' columns, of 1 in their cells and 0 elsewhere, once rounds and variants are taken out.
    ///
    /// Few numbers for many cells: what they explain is taken out of the sums of products, block by block, the larger
    /// number of groups (mostly the variants) one by one, each alone in its cells, then the smaller by elimination.
    fn products(&self, of_cells: &[usize], count: usize) -> Vec<Vec<f64>> {
        let mut products = vec![vec![0.0; count]; count];
        let mut labels = of_cells;
        for cells in self.places.chunk_by(|one, other| one.0 == other.0) {
            let (own, others) = labels.split_at(cells.len());
            labels = others;
            add_products(cells, own, &mut products);
        }
        products
    }

    fn robust_fit(&self, labels: Option<&Labels<'_>>) -> RobustFit {
        let mut drawn_in = self.log_rates.clone();
        let mut fit = self.fit_values(labels, &drawn_in);
        for _ in 0..WINSORISE_TIMES {
            // What the fit leaves of the log rates themselves.
            let residuals: Vec<f64> = self
                .log_rates
                .iter()
                .zip(&drawn_in)
                .zip(&fit.residuals)
                .map(|((value, drawn_in), residual)| value - drawn_in + residual)
                .collect();
            let bound = DEVIATIONS_MAX * robust_deviation(&residuals).unwrap_or(0.0);
            if bound <= self.rounding || residuals.iter().all(|residual| residual.abs() <= bound) {
                break;
            }
            for ((drawn_in, value), residual) in
                drawn_in.iter_mut().zip(&self.log_rates).zip(&residuals)
            {
                *drawn_in = value - residual + residual.clamp(-bound, bound);
            }
            fit = self.fit_values(labels, &drawn_in);
        }
        fit
    }

    fn fit_values(&self, labels: Option<&Labels<'_>>, values: &[f64]) -> RobustFit {
        let mut residuals = self.centred(values);
        let mut effects = Vec::new();
        if let Some(labels) = labels {
            effects = labels.effects(&residuals);
            for (residual, label) in residuals.iter_mut().zip(labels.of_cells) {
                *residual -= effects[*label];
            }
            residuals = self.centred(&residuals);
        }
        for residual in &mut residuals {
            if residual.abs() <= self.rounding {
                *residual = 0.0;
            }
        }
        RobustFit { effects, residuals }
    }
}

impl Labels<'_> {
    /// The effect of each label on values of which rounds and variants are taken out.
    fn effects(&self, centred: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        for (value, label) in centred.iter().zip(self.of_cells) {
            sums[*label] += value;
        }
        let last = sums.pop().unwrap_or_default();
        let less_last = sums.iter().map(|sum| sum - last);
        let mut effects = self.products.coefficients(less_last.collect());
        effects.push(-effects.iter().sum::<f64>());
        effects
    }
}

/// Adds what the cells of one block are to the labels' products.
fn add_products(cells: &[Place], labels: &[usize], products: &mut [Vec<f64>]) {
    let rounds = cells.iter().map(|cell| cell.1 + 1).max().unwrap_or(0);
    let variants = cells.iter().map(|cell| cell.2 + 1).max().unwrap_or(0);
    let groups = |&(_, round, variant): &Place| {
        if rounds <= variants {
            (round, variant)
        } else {
            (variant, round)
        }
    };
    let few = rounds.min(variants);
    // A row and a column for each of the few groups, then for each label.
    let mut sums = vec![vec![0.0; few + products.len()]; few + products.len()];
    let mut sizes = vec![0.0; few];
    let mut of_many: Vec<Vec<usize>> = vec![Vec::new(); rounds.max(variants)];
    for (cell, label) in cells.iter().zip(labels) {
        let (one_of_few, one_of_many) = groups(cell);
        sizes[one_of_few] += 1.0;
        let columns = [one_of_few, few + label];
        for (row, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            sums[columns[row]][columns[column]] += 1.0;
        }
        of_many[one_of_many].extend(columns);
    }
    for columns in of_many {
        // Two of each cell.
        let part = 2.0 / columns.len() as f64;
        for row in &columns {
            for column in &columns {
                sums[*row][*column] -= part;
            }
        }
    }
    for (place, size) in sizes.into_iter().enumerate() {
        let (before, after) = sums.split_at_mut(place + 1);
        let pivot_row = &before[place];
        let pivot = pivot_row[place];
        if pivot <= INDEPENDENT_PART * size {
            continue;
        }
        for row in after {
            let part = row[place] / pivot;
            for (value, of_pivot) in row.iter_mut().zip(pivot_row) {
                *value -= part * of_pivot;
            }
        }
    }
    for (product, sums) in products.iter_mut().zip(&sums[few..]) {
        for (value, sum) in product.iter_mut().zip(&sums[few..]) {
            *value += sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Cells of up to three blocks, some of them missing, with a label each of up to four.
    fn labelled() -> impl Strategy<Value = (Vec<Place>, Vec<usize>)> {
        let cell = |place: Place| {
            prop::option::weighted(0.8, 0..4_usize)
                .prop_map(move |label| label.map(|label| (place, label)))
        };
        let block = |number: usize| {
            (1..5_usize, 1..6_usize).prop_flat_map(move |(rounds, variants)| {
                let places = (0..rounds)
                    .flat_map(|round| (0..variants).map(move |variant| (number, round, variant)));
                places.map(cell).collect::<Vec<_>>()
            })
        };
        (block(0), block(1), block(2))
            .prop_map(|(one, two, three)| one.into_iter().chain(two).chain(three).flatten().unzip())
    }

    proptest! {
        /// What is taken out of the sums is what means taken out of every column in turn leave.
        #[test]
        fn products_are_those_of_centred_columns((places, labels) in labelled()) {
            let cells = Cells::new(places.clone(), vec![0.0; places.len()]);
            let products = cells.products(&labels, 4);
            for (column, of_column) in products.iter().enumerate() {
                let indicator: Vec<f64> =
                    labels.iter().map(|label| f64::from(u8::from(*label == column))).collect();
                let centred = cells.centred(&indicator);
                for (row, found) in of_column.iter().enumerate() {
                    let of_row = centred.iter().zip(&labels).filter(|(_, label)| **label == row);
                    let expected: f64 = of_row.map(|(value, _)| value).sum();
                    prop_assert!((found - expected).abs() < 1e-6, "{row} {column}: {found} {expected}");
                }
            }
        }
    }
}
