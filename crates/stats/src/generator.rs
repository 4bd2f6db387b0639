//! Random numbers that follow from a seed.

use rand_core::Rng as _;
use rand_pcg::Pcg32;

/// The stream of the generator: any odd number would do, as long as it never changes.
const STREAM: u64 = 0x0a02_bdbf_7bb3_c0a7;

/// Random numbers that follow from a seed and never change between versions.
///
/// The generator is PCG-XSH-RR 64/32, whose output is fixed by its paper; what is made of its
/// numbers is done here, because what other crates make of them may change.
///
/// # Source
/// O'Neill 2014, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for
/// Random Number Generation".
#[derive(Debug, Clone)]
pub struct Generator(Pcg32);

impl Generator {
    /// The generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Pcg32::new(seed, STREAM))
    }

    /// A whole number from 0 to `bound - 1`, each equally likely.
    ///
    /// # Panics
    /// Where `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "there is no number below 0");
        // Numbers past the largest multiple of the bound would favour the small remainders.
        let usable = u32::MAX - u32::MAX % bound;
        loop {
            let number = self.0.next_u32();
            if number < usable {
                return number % bound;
            }
        }
    }

    /// Puts the items into a random order, each order equally likely.
    ///
    /// # Panics
    /// Where there are more than 2^32 items.
    ///
    /// # Source
    /// Fisher & Yates, in the form of Durstenfeld 1964.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let bound = u32::try_from(last + 1).expect("orders are short");
            items.swap(last, self.below(bound) as usize);
        }
    }

    /// A number between 0 and 1, neither of them.
    pub(crate) fn unit(&mut self) -> f64 {
        (f64::from(self.0.next_u32()) + 0.5) / 4_294_967_296.0
    }

    /// True or false, equally likely.
    pub(crate) fn coin(&mut self) -> bool {
        self.0.next_u32() >> 31 == 1
    }

    /// Brings a random choice of `chosen` items to the front, each choice equally likely.
    ///
    /// # Panics
    /// Where there are more than 2^32 items, or fewer than are to be chosen.
    ///
    /// # Source
    /// Fisher & Yates, in the form of Durstenfeld 1964.
    pub(crate) fn choose<T>(&mut self, items: &mut [T], chosen: usize) {
        for place in 0..chosen {
            let bound = u32::try_from(items.len() - place).expect("samples have fewer than 2^32");
            items.swap(place, place + self.below(bound) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_generator_is_pcg_32_and_stays_it() {
        // The demonstration of the reference implementation: seed 42, stream 54.
        let mut reference = Generator(Pcg32::new(42, 54));
        let numbers: Vec<u32> = (0..3).map(|_| reference.0.next_u32()).collect();
        assert_eq!(numbers, [0xa15c_02b7, 0x7b47_f409, 0xba1d_3330]);
    }

    #[test]
    fn numbers_below_a_bound_are_equally_likely() {
        let mut generator = Generator::new(1);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[generator.below(6) as usize] += 1;
        }
        // Six standard deviations of a fair die's count.
        for count in counts {
            assert!(count.abs_diff(10_000) < 550, "{counts:?}");
        }
    }

    #[test]
    fn every_shuffle_is_equally_likely() {
        let mut generator = Generator::new(2);
        let mut counts: BTreeMap<[u8; 3], u32> = BTreeMap::new();
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            generator.shuffle(&mut items);
            *counts.entry(items).or_default() += 1;
        }
        assert_eq!(counts.len(), 6);
        for count in counts.values() {
            assert!(count.abs_diff(10_000) < 550, "{counts:?}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut generator = Generator::new(7);
        let numbers: Vec<u32> = (0..5).map(|_| generator.below(1000)).collect();
        assert_eq!(numbers, [47, 492, 922, 712, 892]);
    }

    #[test]
    fn every_choice_is_equally_likely() {
        let mut generator = Generator::new(1);
        let mut seen = [0_u32; 10];
        let mut items = [0, 1, 2, 3, 4];
        for _ in 0..10_000 {
            generator.choose(&mut items, 2);
            let (low, high) = (items[0].min(items[1]), items[0].max(items[1]));
            seen[high * (high - 1) / 2 + low] += 1;
        }
        // Five standard deviations of a count of 1000.
        assert!(
            seen.iter().all(|count| (850..1150).contains(count)),
            "{seen:?}"
        );
        let heads = (0..10_000).filter(|_| generator.coin()).count();
        assert!((4750..5250).contains(&heads), "{heads}");
    }
}
