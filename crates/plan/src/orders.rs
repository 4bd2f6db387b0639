//! Orders of variants within rounds: random and balanced for the predecessor, or none.

use fwdlab_stats::Generator;

/// A Williams design: in its rows every variant comes equally often right after every other one,
/// and equally often at every place.
///
/// Shape: each row is a permutation of `0..variants`; `variants` rows where that is even (each
/// ordered pair of neighbours once), twice as many where it is odd (twice).
///
/// # Source
/// Williams 1949, "Experimental Designs Balanced for the Estimation of Residual Effects of
/// Treatments".
#[must_use]
pub fn williams_design(variants: usize) -> Vec<Vec<usize>> {
    // 0, 1, k-1, 2, k-2, …: the steps between neighbours are all different.
    let zigzag: Vec<usize> = (0..variants)
        .map(|place| match place {
            0 => 0,
            odd if odd % 2 == 1 => odd / 2 + 1,
            even => variants - even / 2,
        })
        .collect();
    let square = |first_row: &[usize]| -> Vec<Vec<usize>> {
        (0..variants)
            .map(|shift| {
                first_row
                    .iter()
                    .map(|variant| (variant + shift) % variants)
                    .collect()
            })
            .collect()
    };
    let mut rows = square(&zigzag);
    if variants % 2 == 1 && variants > 1 {
        let mirrored: Vec<usize> = zigzag.iter().rev().copied().collect();
        rows.extend(square(&mirrored));
    }
    rows
}

/// The order of `variants` variants in each of `rounds` rounds.
///
/// Whole Williams designs as far as they fit, rows of one more for the rest, every design with its
/// variants renamed at random, all rows in random order.
///
/// Shape: `rounds` rows, each a permutation of `0..variants`.
#[must_use]
pub fn rounds(variants: usize, rounds: usize, generator: &mut Generator) -> Vec<Vec<usize>> {
    if variants == 0 {
        return vec![Vec::new(); rounds];
    }
    let design = williams_design(variants);
    let mut rows: Vec<Vec<usize>> = Vec::with_capacity(rounds + design.len());
    while rows.len() < rounds {
        let mut renamed: Vec<usize> = (0..variants).collect();
        generator.shuffle(&mut renamed);
        let mut block: Vec<Vec<usize>> = design
            .iter()
            .map(|row| row.iter().map(|&variant| renamed[variant]).collect())
            .collect();
        generator.shuffle(&mut block);
        block.truncate(rounds - rows.len());
        rows.append(&mut block);
    }
    generator.shuffle(&mut rows);
    rows
}

/// The variants in their own order in each of `rounds` rounds.
///
/// Shape: `rounds` rows, each `0..variants`.
#[must_use]
pub fn in_sequence(variants: usize, rounds: usize) -> Vec<Vec<usize>> {
    vec![(0..variants).collect(); rounds]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn neighbours(rows: &[Vec<usize>]) -> BTreeMap<(usize, usize), usize> {
        let mut counts = BTreeMap::new();
        for pair in rows.iter().flat_map(|row| row.windows(2)) {
            *counts.entry((pair[0], pair[1])).or_default() += 1;
        }
        counts
    }

    fn is_permutation(row: &[usize], variants: usize) -> bool {
        let mut sorted = row.to_vec();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..variants)
    }

    #[test]
    fn a_design_has_every_ordered_pair_equally_often() {
        for variants in 2..=15 {
            let design = williams_design(variants);
            let times = if variants % 2 == 0 { 1 } else { 2 };
            assert_eq!(design.len(), times * variants);
            assert!(design.iter().all(|row| is_permutation(row, variants)));
            let counts = neighbours(&design);
            assert_eq!(counts.len(), variants * (variants - 1));
            assert!(counts.values().all(|&count| count == times));
            for place in 0..variants {
                let mut column: Vec<usize> = design.iter().map(|row| row[place]).collect();
                column.sort_unstable();
                assert!(
                    column
                        .chunks(times)
                        .enumerate()
                        .all(|(variant, chunk)| { chunk.iter().all(|&found| found == variant) })
                );
            }
        }
        assert_eq!(williams_design(1), [[0]]);
        assert!(williams_design(0).is_empty());
    }

    #[test]
    fn five_variants_in_ten_rounds_fit_exactly() {
        for seed in 0..20 {
            let rows = rounds(5, 10, &mut Generator::new(seed));
            assert!(neighbours(&rows).values().all(|&count| count == 2));
            assert_eq!(neighbours(&rows).len(), 20);
        }
    }

    #[test]
    fn the_first_round_is_any_permutation() {
        let mut counts: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        let mut generator = Generator::new(3);
        for _ in 0..12_000 {
            let mut rows = rounds(4, 6, &mut generator);
            *counts.entry(rows.swap_remove(0)).or_default() += 1;
        }
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|count| count.abs_diff(500) < 140));
    }

    /// What re-randomisation rests on (`order_effects` in `crates/stats`): whatever rows a block has, they
    /// are in random order.
    #[test]
    fn every_order_of_the_rows_is_equally_likely() {
        // A whole design of two rows and one row of another: one of the three is not like the others.
        let mut counts = [0_u32; 3];
        let mut generator = Generator::new(11);
        for _ in 0..6000 {
            let rows = rounds(2, 3, &mut generator);
            let other =
                (0..3).find(|&place| rows.iter().filter(|row| **row == rows[place]).count() == 1);
            counts[other.expect("two rows of a kind and one of the other")] += 1;
        }
        assert!(
            counts.iter().all(|count| count.abs_diff(2000) < 180),
            "{counts:?}"
        );
    }

    proptest! {
        #[test]
        fn rounds_are_permutations_and_as_balanced_as_they_can_be(
            variants in 1..9_usize,
            round_count in 0..40_usize,
            seed: u64,
        ) {
            let rows = rounds(variants, round_count, &mut Generator::new(seed));
            prop_assert_eq!(rows.len(), round_count);
            prop_assert!(rows.iter().all(|row| is_permutation(row, variants)));
            prop_assert_eq!(&rows, &rounds(variants, round_count, &mut Generator::new(seed)));

            let design_rows = williams_design(variants).len();
            let pairs_a_design = design_rows / variants;
            let whole_designs = round_count / design_rows;
            let most = (whole_designs + 1) * pairs_a_design;
            let counts = neighbours(&rows);
            for (&pair, &count) in &counts {
                prop_assert!(count <= most, "{:?} {} times", pair, count);
            }
            if whole_designs > 0 && variants > 1 {
                prop_assert_eq!(counts.len(), variants * (variants - 1));
                let least = whole_designs * pairs_a_design;
                prop_assert!(counts.values().all(|&count| count >= least));
            }
        }
    }
}
