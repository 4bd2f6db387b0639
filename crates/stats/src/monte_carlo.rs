//! P-values by drawing from the distribution that holds where there is nothing to find.

use crate::error::StatsError;

/// After so many draws as extreme as what was observed no more are drawn: the p-value is then above
/// the level for certain.
const EXTREME_MAX: u32 = 20;

/// How many draws a p-value of `level` takes at the most, plus one.
///
/// # Errors
/// [`StatsError::Level`].
pub(crate) fn draws_and_one(level: f64) -> Result<u32, StatsError> {
    let count = f64::from(EXTREME_MAX) / level;
    if !(level > 0.0 && level < 1.0 && count < 2e9 + 1.0) {
        return Err(StatsError::Level { value: level });
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a positive number that fits, rounded up; 0.01 is no more than its next double"
    )]
    let draws = (count - 1e-6).ceil() as u32;
    Ok(draws)
}

/// The p-value of an observation of which `is_as_extreme` draws another and says whether that one is
/// as extreme.
///
/// At most `draws_and_one` - 1 are drawn, and no more than the level needs: where nothing is to be
/// found a few dozen do. Either way the p-value is at most alpha with a probability of at most alpha,
/// for every alpha.
///
/// # Source
/// Besag & Clifford 1991, "Sequential Monte Carlo p-values".
pub(crate) fn drawn_p(draws_and_one: u32, mut is_as_extreme: impl FnMut() -> bool) -> f64 {
    let mut extreme = 0;
    for drawn in 1..draws_and_one {
        if is_as_extreme() {
            extreme += 1;
            if extreme == EXTREME_MAX {
                return f64::from(extreme) / f64::from(drawn);
            }
        }
    }
    f64::from(extreme + 1) / f64::from(draws_and_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Generator;

    #[test]
    fn draws_end_where_the_level_is_out_of_reach() {
        assert_eq!(draws_and_one(0.01), Ok(2000));
        assert_eq!(draws_and_one(0.0025), Ok(8000));
        let p_after = |every: u32| {
            let mut drawn = 0;
            let p = drawn_p(2000, || {
                drawn += 1;
                drawn % every == 0
            });
            (p, drawn)
        };
        assert_eq!(p_after(1), (1.0, 20));
        assert_eq!(p_after(99), (20.0 / 1980.0, 1980));
        // 19 of 1999 draws are still within the level.
        assert_eq!(p_after(100), (0.01, 1999));
        assert_eq!(p_after(3000), (1.0 / 2000.0, 1999));
    }

    #[test]
    fn a_level_that_is_none_is_refused() {
        for level in [0.0, 1.0, -0.1, f64::NAN, 1e-12] {
            assert!(draws_and_one(level).is_err(), "{level}");
        }
    }

    #[test]
    fn a_level_is_kept() {
        let mut generator = Generator::new(3);
        // The observed one and the draws are of the same uniform distribution.
        let rejected = (0..2000)
            .filter(|_| {
                let observed = generator.below(1 << 24);
                drawn_p(400, || generator.below(1 << 24) >= observed) <= 0.05
            })
            .count();
        // 5 % of 2000, and four standard errors.
        assert!((61..=139).contains(&rejected), "{rejected}");
    }
}
