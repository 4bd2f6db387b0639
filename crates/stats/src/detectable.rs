//! What an experiment could show, reckoned before it is run.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal};

use crate::error::{StatsError, significance};

/// How probable it is that an effect of the size reckoned with is shown.
pub const DETECTION_POWER: f64 = 0.8;

/// How far the blocks of earlier runs scattered, pooled.
///
/// Units: those of the effects, log ratios as a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PooledSpread {
    /// The standard deviation of a block effect.
    pub standard_deviation: f64,
    /// How many independent deviations it rests on.
    pub degrees_of_freedom: usize,
}

impl PooledSpread {
    /// Pools runs, each of which has the block effects of one variant or more.
    ///
    /// Variants of a run share its blocks and their baseline, so that their deviations are not
    /// independent: a run of n blocks gives n - 1 degrees of freedom however many variants it has,
    /// and its variance is the mean over them. Where variants have different numbers of blocks the
    /// fewest count. `None` where no variant has two blocks.
    ///
    /// Shape: for each run, for each variant, one finite effect a block.
    ///
    /// # Errors
    /// [`StatsError::NotFinite`].
    pub fn of_runs(runs: &[Vec<Vec<f64>>]) -> Result<Option<Self>, StatsError> {
        let mut weighted = 0.0;
        let mut degrees_of_freedom = 0;
        for run in runs {
            let mut variances = Vec::new();
            let mut fewest = usize::MAX;
            for effects in run.iter().filter(|effects| effects.len() > 1) {
                let sample = crate::StudentSample::new(effects)?;
                let deviation = sample
                    .standard_deviation
                    .expect("two values or more have a standard deviation");
                variances.push(deviation * deviation);
                fewest = fewest.min(effects.len());
            }
            if variances.is_empty() {
                continue;
            }
            let variance = variances.iter().sum::<f64>() / variances.len() as f64;
            weighted += variance * (fewest - 1) as f64;
            degrees_of_freedom += fewest - 1;
        }
        Ok((degrees_of_freedom > 0).then(|| Self {
            standard_deviation: (weighted / degrees_of_freedom as f64).sqrt(),
            degrees_of_freedom,
        }))
    }

    /// The upper bound of the true standard deviation at that one-sided confidence.
    ///
    /// # Errors
    /// [`StatsError::Confidence`].
    ///
    /// # Source
    /// The sum of squares over the true variance has a chi-squared distribution, for normal
    /// effects.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_stats::PooledSpread;
    /// let spread = PooledSpread { standard_deviation: 0.01, degrees_of_freedom: 7 };
    /// // The 20 % quantile of chi-squared with 7 degrees of freedom is 3.8223.
    /// let expected = 0.01 * (7.0_f64 / 3.8223).sqrt();
    /// assert!((spread.upper_bound(0.8)? - expected).abs() < 1e-6);
    /// # Ok::<(), fwdlab_stats::StatsError>(())
    /// ```
    pub fn upper_bound(&self, confidence: f64) -> Result<f64, StatsError> {
        let tail = significance(confidence)?;
        let freedom = self.degrees_of_freedom as f64;
        Ok(self.standard_deviation * (freedom / chi_squared_quantile(tail, freedom)).sqrt())
    }
}

/// The smallest effect that so many blocks show, one way or the other, with a probability of
/// [`DETECTION_POWER`], if block effects scatter with that standard deviation.
///
/// `compared` variants share the error probability, each at Holm's first step. This is the normal
/// approximation: for one comparison at 95 % the exact test needs about a quarter more with 8
/// blocks, a tenth more with 16.
///
/// Units: those of the standard deviation.
///
/// # Errors
/// [`StatsError::Confidence`].
pub fn smallest_effect(
    standard_deviation: f64,
    blocks: usize,
    compared: usize,
    confidence: f64,
) -> Result<f64, StatsError> {
    Ok(deviations_to_show(compared, confidence)? * standard_deviation / (blocks as f64).sqrt())
}

/// How many blocks show an effect of that size, with a probability of [`DETECTION_POWER`]; the
/// other half of [`smallest_effect`].
///
/// Units: `effect` and the standard deviation in the same; `None` for no effect.
///
/// # Errors
/// [`StatsError::Confidence`].
pub fn blocks_to_show(
    effect: f64,
    standard_deviation: f64,
    compared: usize,
    confidence: f64,
) -> Result<Option<f64>, StatsError> {
    let deviations = deviations_to_show(compared, confidence)?;
    let blocks = (deviations * standard_deviation / effect).powi(2).ceil();
    Ok(blocks.is_finite().then_some(blocks))
}

/// How many standard errors an effect has to be away from none.
fn deviations_to_show(compared: usize, confidence: f64) -> Result<f64, StatsError> {
    let alpha = significance(confidence)? / compared.max(1) as f64;
    let normal = Normal::standard();
    Ok(normal.inverse_cdf(DETECTION_POWER) - normal.inverse_cdf(alpha / 2.0))
}

fn chi_squared_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    ChiSquared::new(degrees_of_freedom)
        .expect("a pooled spread has degrees of freedom")
        .inverse_cdf(probability)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_of_chi_squared_are_those_of_the_tables() {
        let oracle: serde_json::Value =
            serde_json::from_str(include_str!("../oracle/chi_squared.json")).unwrap();
        let cases = oracle["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 10);
        for case in cases {
            let number = |key: &str| case[key].as_f64().unwrap();
            let quantile = number("quantile");
            let found = chi_squared_quantile(number("probability"), number("degrees_of_freedom"));
            assert!((found / quantile - 1.0).abs() < 1e-9, "{case}: {found}");
        }
    }

    #[test]
    fn variants_of_a_run_do_not_add_degrees_of_freedom() {
        let one = vec![vec![0.0, 2.0, 4.0]];
        let spread = PooledSpread::of_runs(&[one]).unwrap().unwrap();
        assert_eq!(spread.degrees_of_freedom, 2);
        assert!((spread.standard_deviation - 2.0).abs() < 1e-12);

        let twice = vec![vec![0.0, 2.0, 4.0], vec![9.0, 11.0, 13.0], vec![5.0]];
        assert_eq!(PooledSpread::of_runs(&[twice]).unwrap(), Some(spread));

        // Variances 4 and 16 with 2 and 1 degrees of freedom: (4 x 2 + 16 x 1) / 3.
        let other = vec![vec![0.0, 32.0_f64.sqrt()]];
        let both = vec![vec![vec![0.0, 2.0, 4.0]], other];
        let spread = PooledSpread::of_runs(&both).unwrap().unwrap();
        assert_eq!(spread.degrees_of_freedom, 3);
        assert!((spread.standard_deviation - 8.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_block_has_no_spread() {
        assert_eq!(PooledSpread::of_runs(&[]).unwrap(), None);
        assert_eq!(
            PooledSpread::of_runs(&[vec![vec![1.0]], vec![]]).unwrap(),
            None
        );
        assert!(PooledSpread::of_runs(&[vec![vec![1.0, f64::NAN]]]).is_err());
    }

    #[test]
    fn eight_blocks_show_one_standard_deviation() {
        // (1.959964 + 0.841621) / sqrt(8)
        let effect = smallest_effect(0.01, 8, 1, 0.95).unwrap();
        assert!((effect - 0.009_905_1).abs() < 1e-6, "{effect}");
        let stricter = smallest_effect(0.01, 8, 3, 0.95).unwrap();
        assert!(stricter > effect);
        assert_eq!(blocks_to_show(0.01, 0.01, 1, 0.95).unwrap(), Some(8.0));
        assert_eq!(blocks_to_show(0.0, 0.01, 1, 0.95).unwrap(), None);
        assert!(smallest_effect(0.01, 8, 1, 1.0).is_err());
    }

    /// How often an effect of that size is shown by the test that will be used.
    #[test]
    fn the_effect_is_shown_about_as_often_as_promised() {
        use rand_core::{Rng as _, SeedableRng as _};

        use crate::ShiftTest as _;
        const RUNS: u32 = 4000;
        const BLOCKS: usize = 16;
        let effect = smallest_effect(1.0, BLOCKS, 1, 0.95).unwrap();
        let mut random = rand_pcg::Pcg64::seed_from_u64(11);
        let mut normal = || {
            let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            Normal::standard().inverse_cdf(uniform.clamp(1e-15, 1.0 - 1e-15))
        };
        let mut shown = 0;
        for _ in 0..RUNS {
            let effects: Vec<f64> = (0..BLOCKS).map(|_| effect + normal()).collect();
            let p = crate::SignedRank::new(&effects).unwrap().p_two_sided(0.0);
            shown += u32::from(p <= 0.05);
        }
        let power = f64::from(shown) / f64::from(RUNS);
        // The exact test is a little weaker than the normal approximation: 0.71 by SciPy's.
        assert!((0.67..0.76).contains(&power), "{power}");
    }

    proptest! {
        #[test]
        fn the_bound_is_above_what_was_seen_and_nears_it(
            standard_deviation in 1e-6..1.0_f64,
            degrees_of_freedom in 3_usize..500,
        ) {
            let bound = |degrees_of_freedom| {
                PooledSpread { standard_deviation, degrees_of_freedom }.upper_bound(0.8).unwrap()
            };
            prop_assert!(bound(degrees_of_freedom) > standard_deviation);
            prop_assert!(bound(degrees_of_freedom + 1) < bound(degrees_of_freedom));
        }

        #[test]
        fn the_blocks_reckoned_show_the_effect_and_one_fewer_does_not(
            effect in 0.001..0.1_f64,
            standard_deviation in 0.001..0.1_f64,
            compared in 1_usize..10,
        ) {
            let blocks = blocks_to_show(effect, standard_deviation, compared, 0.95).unwrap().unwrap();
            let shown = |blocks: f64| {
                let deviations = deviations_to_show(compared, 0.95).unwrap();
                deviations * standard_deviation / blocks.sqrt()
            };
            prop_assert!(shown(blocks) <= effect * (1.0 + 1e-9));
            prop_assert!(blocks < 2.0 || shown(blocks - 1.0) > effect);
        }
    }
}
