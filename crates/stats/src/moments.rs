//! Mean and sum of squared deviations, exact to the last digits however large the mean.

/// The first two moments of a sample, seen from an origin near it.
///
/// With a mean of 1e7 and a million values of deviation 1, a plain sum is off by as much as the
/// standard error; so every sum is one of deviations from the origin, and compensated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    pub(crate) count: f64,
    /// The mean less the origin.
    pub(crate) offset: f64,
    /// The sum of squared deviations from the mean.
    pub(crate) squares: f64,
}

impl Moments {
    /// The moments of `values`, not empty, from `origin`.
    pub(crate) fn around(origin: f64, values: &[f64]) -> Self {
        let count = values.len() as f64;
        let offset = sum(values.iter().map(|value| value - origin)) / count;
        let deviations = values.iter().map(|value| (value - origin) - offset);
        // Deviations sum to zero but for the rounding of the offset, which that sum corrects.
        let residual = sum(deviations.clone());
        let squares = sum(deviations.map(|deviation| deviation * deviation));
        let squares = squares - residual * residual / count;
        Self {
            count,
            offset: offset + residual / count,
            // What is not a number, by overflow, stays none.
            squares: if squares < 0.0 { 0.0 } else { squares },
        }
    }

    /// The variance of the mean, with n - 1.
    pub(crate) fn variance_of_mean(&self) -> f64 {
        self.squares / (self.count - 1.0) / self.count
    }
}

/// The compensated sum.
///
/// # Source
/// Neumaier 1974.
pub(crate) fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut lost) = (0.0_f64, 0.0);
    for term in terms {
        let next = total + term;
        lost += if total.abs() >= term.abs() {
            (total - next) + term
        } else {
            (term - next) + total
        };
        total = next;
    }
    total + lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_terms_survive_large_ones() {
        assert_eq!(sum([1.0, 1e100, 1.0, -1e100].into_iter()), 2.0);
        assert_eq!(sum(std::iter::empty()), 0.0);
    }

    #[test]
    fn a_million_values_around_a_large_mean() {
        let values: Vec<f64> = (0..1_000_000)
            .map(|i| 1e7 + f64::from(i % 1000) / 1024.0)
            .collect();
        let moments = Moments::around(1e7, &values);
        assert_eq!(moments.offset, 499.5 / 1024.0);
        // (1000^2 - 1) / 12 for each thousand.
        let expected = 1e6 * (999_999.0 / 12.0) / (1024.0 * 1024.0);
        assert!((moments.squares / expected - 1.0).abs() < 1e-14);
    }
}
