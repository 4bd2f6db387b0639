//! How often a usual practice finds a difference where there is none, simulated with normal noise and ministat's
//! test: its pooled t.

use crate::distribution::t_upper_quantile;
use crate::error::{StatsError, significance};
use crate::generator::Generator;
use crate::permutation::Draws;
use crate::two_sample_t::TwoSampleT;

/// ministat's practice: so many runs a side, at a confidence.
///
/// # Examples
/// ```
/// use fwdlab_stats::{Draws, Practice};
/// let draws = Draws { seed: 1, count: 2000 };
/// let practice = Practice::new(5, 0.95, draws)?;
/// // One comparison errs as often as it says, six with one baseline more often.
/// assert!((0.03..0.07).contains(&practice.in_a_family(1)));
/// assert!((0.15..0.25).contains(&practice.in_a_family(6)));
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Practice {
    runs: usize,
    alpha: f64,
    draws: Draws,
}

impl Practice {
    /// Shape: two runs or more; one draw or more.
    ///
    /// # Errors
    /// [`StatsError::Confidence`], [`StatsError::TooFew`].
    pub fn new(runs: usize, confidence: f64, draws: Draws) -> Result<Self, StatsError> {
        if runs < 2 || draws.count == 0 {
            return Err(StatsError::TooFew {
                subject: "practice".to_owned(),
                need: 2,
                have: runs,
            });
        }
        Ok(Self {
            runs,
            alpha: significance(confidence)?,
            draws,
        })
    }

    /// The part of families of so many comparisons with one baseline that hold a difference.
    #[must_use]
    pub fn in_a_family(&self, comparisons: usize) -> f64 {
        let test = self.test(self.runs);
        self.part(|generator| {
            let baseline = normals(generator, self.runs);
            let variants: Vec<_> = (0..comparisons)
                .map(|_| normals(generator, self.runs))
                .collect();
            variants
                .iter()
                .any(|variant| test.differ(variant, &baseline))
        })
    }

    /// The part of comparisons that show one while the machine drifts by so many standard deviations of a run
    /// from the first run to the last: with all runs of one side behind those of the other, and in the order
    /// A B B A.
    #[must_use]
    pub fn under_drift(&self, deviations: f64) -> [f64; 2] {
        let test = self.test(self.runs);
        let step = deviations / (2 * self.runs - 1) as f64;
        let with_drift = |generator: &mut Generator| -> Vec<f64> {
            let noise = normals(generator, 2 * self.runs).into_iter().enumerate();
            noise
                .map(|(place, noise)| noise + step * place as f64)
                .collect()
        };
        let behind = self.part(|generator| {
            let all = with_drift(generator);
            test.differ(&all[..self.runs], &all[self.runs..])
        });
        let interleaved = self.part(|generator| {
            let (mut one, mut other) = (Vec::new(), Vec::new());
            for (place, value) in with_drift(generator).into_iter().enumerate() {
                if matches!(place % 4, 0 | 3) {
                    one.push(value);
                } else {
                    other.push(value);
                }
            }
            test.differ(&one, &other)
        });
        [behind, interleaved]
    }

    /// The part of comparisons that show one at some time when runs are added on both sides, up to so many,
    /// until one shows.
    #[must_use]
    pub fn until_shown(&self, most: usize) -> f64 {
        let tests: Vec<(usize, Test)> = (self.runs..=most)
            .map(|runs| (runs, self.test(runs)))
            .collect();
        self.part(|generator| {
            let (one, other) = (normals(generator, most), normals(generator, most));
            let mut tests = tests.iter();
            tests.any(|(runs, test)| test.differ(&one[..*runs], &other[..*runs]))
        })
    }

    fn test(&self, runs: usize) -> Test {
        let freedom = 2.0 * (runs as f64 - 1.0);
        Test {
            critical: t_upper_quantile(self.alpha / 2.0, freedom),
        }
    }

    /// The part of draws that are so.
    fn part(&self, mut is_so: impl FnMut(&mut Generator) -> bool) -> f64 {
        let mut generator = Generator::new(self.draws.seed);
        let draws = 0..self.draws.count;
        let so = draws.filter(|_| is_so(&mut generator)).count();
        so as f64 / f64::from(self.draws.count)
    }
}

/// The test of two sides of a number of runs.
struct Test {
    critical: f64,
}

impl Test {
    fn differ(&self, one: &[f64], other: &[f64]) -> bool {
        TwoSampleT::pooled(one, other)
            .is_ok_and(|test| test.difference.abs() > self.critical * test.standard_error)
    }
}

/// # Source
/// Box & Muller 1958.
fn normals(generator: &mut Generator, count: usize) -> Vec<f64> {
    let mut uniform = || (f64::from(generator.below(u32::MAX)) + 0.5) / f64::from(u32::MAX);
    let normal = |_| (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    (0..count).map(normal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn practice() -> Practice {
        let draws = Draws {
            seed: 7,
            count: 10_000,
        };
        Practice::new(5, 0.95, draws).unwrap()
    }

    fn near(part: f64, percent: f64) {
        // Four standard errors, and what rounding left of the published figure.
        let error = 4.0 * (part.max(0.005) * (1.0 - part) / 10_000.0).sqrt() * 100.0;
        assert!(
            (part * 100.0 - percent).abs() < error + 0.5,
            "{part} against {percent} %"
        );
    }

    /// Dunnett's distribution says how often the largest of several exceeds the single level.
    #[test]
    fn families_err_as_often_as_is_published() {
        for (comparisons, percent) in [(1, 5.0), (6, 20.5)] {
            near(practice().in_a_family(comparisons), percent);
        }
    }

    #[test]
    fn drift_errs_as_often_as_is_published() {
        for (deviations, [behind, interleaved]) in [
            (0.0, [5.0, 5.0]),
            (1.0, [11.0, 4.0]),
            (2.0, [30.5, 2.0]),
            (3.0, [54.0, 0.4]),
        ] {
            let [one, other] = practice().under_drift(deviations);
            near(one, behind);
            near(other, interleaved);
        }
    }

    #[test]
    fn going_on_until_it_shows_errs_as_often_as_is_published() {
        near(practice().until_shown(20), 19.0);
        near(practice().until_shown(5), 5.0);
    }

    #[test]
    fn too_few_runs_are_refused() {
        let draws = Draws { seed: 1, count: 1 };
        assert!(Practice::new(1, 0.95, draws).is_err());
        assert!(Practice::new(5, 1.5, draws).is_err());
        assert!(Practice::new(5, 0.95, Draws { count: 0, ..draws }).is_err());
    }
}
