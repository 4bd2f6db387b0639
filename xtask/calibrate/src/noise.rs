//! Random numbers of the distributions that noise is made of, which follow from a seed.

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// A stream of random numbers.
pub(crate) struct Noise {
    generator: Pcg64,
    /// Normal numbers are made in pairs.
    spare: Option<f64>,
}

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            generator: Pcg64::seed_from_u64(seed),
            spare: None,
        }
    }

    /// 64 random bits, as a seed for another generator.
    pub(crate) fn seed(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform in (0, 1].
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.generator.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Normal with mean 0 and standard deviation 1.
    ///
    /// # Source
    /// Marsaglia & Bray 1964, the polar method.
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (a, b) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = a * a + b * b;
            if square > 0.0 && square < 1.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(b * scale);
                return a * scale;
            }
        }
    }

    /// Student's t with 3 degrees of freedom; its standard deviation is the square root of 3.
    pub(crate) fn t3(&mut self) -> f64 {
        let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / (squares / 3.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    /// The share of draws beyond `bound`, either way, is `expected` but for five standard errors.
    fn assert_share_beyond(mut draw: impl FnMut() -> f64, bound: f64, expected: f64) {
        let beyond = (0..DRAWS).filter(|_| draw().abs() > bound).count();
        let share = beyond as f64 / DRAWS as f64;
        let standard_error = (expected * (1.0 - expected) / DRAWS as f64).sqrt();
        assert!(
            (share - expected).abs() < 5.0 * standard_error,
            "{share} beyond {bound}, expected {expected}"
        );
    }

    #[test]
    fn tails_are_those_of_their_distributions() {
        let mut noise = Noise::new(1);
        assert_share_beyond(|| noise.uniform(), 0.75, 0.25);
        assert_share_beyond(|| noise.normal(), 0.674_490, 0.5);
        assert_share_beyond(|| noise.normal(), 1.959_964, 0.05);
        assert_share_beyond(|| noise.t3(), 0.764_892, 0.5);
        assert_share_beyond(|| noise.t3(), 3.182_446, 0.05);
    }

    #[test]
    fn a_seed_is_a_stream() {
        let draws = |seed| -> Vec<f64> {
            let mut noise = Noise::new(seed);
            (0..5).map(|_| noise.normal()).collect()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
    }
}
