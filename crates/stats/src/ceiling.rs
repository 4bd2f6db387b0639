//! Whether variants have met the same upper limit: a line rate, or all that was offered.

use crate::count::whole;
use crate::error::{StatsError, require_finite};
use crate::warning::Warning;

/// How far apart two measurements of the same line rate may be, as a ratio.
///
/// Ethernet's clocks keep to 100 parts in a million (IEEE 802.3), so that two of them differ by at most
/// twice that.
const SAME_LIMIT_RATIO: f64 = 0.0002;

/// The part of a variant's observations at the limit from which on the variant counts as held by it.
const HELD_RATIO: f64 = 0.25;

/// The fewest observations of a variant at the limit: the largest of all is always there.
const HELD_MIN: usize = 2;

/// One variant's observations, one a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantObservations {
    /// The caller's name for it.
    pub name: String,
    /// Forwarding rates in frames per second, in any order.
    pub observations_pps: Vec<f64>,
}

/// W107 for every variant that a common upper limit holds, where it holds two or more.
///
/// A free forwarding rate differs from set-up to set-up and from variant to variant by far more than
/// 0.02 %. Where a quarter of a variant's observations, and a quarter of another's, lie that close below
/// the largest of all, something else than the device under test decides: the line rate, or the offered
/// load. Differences beyond the limit then do not show, and the interval of a difference at the limit is
/// of something else than its effect on the device.
///
/// Shape: any number of variants, the baseline among them, each with any number of observations.
///
/// # Errors
/// [`StatsError::NotFinite`] with the variant as its subject.
///
/// # Examples
/// ```
/// use fwdlab_stats::{VariantObservations, ceiling_warnings};
/// let variant = |name: &str, observations_pps: [f64; 4]| VariantObservations {
///     name: name.to_owned(),
///     observations_pps: observations_pps.into(),
/// };
/// let warnings = ceiling_warnings(&[
///     variant("none", [1_488_090.0, 1_488_094.0, 1_488_095.0, 1_488_093.0]),
///     variant("ten rules", [1_488_092.0, 1_471_400.0, 1_488_095.0, 1_480_210.0]),
///     variant("conntrack", [902_110.0, 899_870.0, 905_320.0, 901_440.0]),
/// ])?;
/// let held: Vec<&str> = warnings.iter().map(|warning| warning.subject()).collect();
/// assert_eq!(held, ["none", "ten rules"]);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn ceiling_warnings(variants: &[VariantObservations]) -> Result<Vec<Warning>, StatsError> {
    let mut limit_pps = 0.0_f64;
    for variant in variants {
        require_finite_or_none(variant)?;
        limit_pps = variant
            .observations_pps
            .iter()
            .fold(limit_pps, |limit, rate| limit.max(*rate));
    }
    if limit_pps == 0.0 {
        return Ok(Vec::new());
    }
    let warnings: Vec<Warning> = variants
        .iter()
        .filter_map(|variant| {
            let rates_pps = &variant.observations_pps;
            let lowest_pps = limit_pps * (1.0 - SAME_LIMIT_RATIO);
            let at_limit = rates_pps.iter().filter(|rate| **rate >= lowest_pps).count();
            let enough = HELD_MIN.max(whole((HELD_RATIO * rates_pps.len() as f64).ceil()));
            (at_limit >= enough).then(|| Warning::Ceiling {
                variant: variant.name.clone(),
                limit_pps,
                at_limit,
                have: rates_pps.len(),
            })
        })
        .collect();
    Ok(if warnings.len() > 1 {
        warnings
    } else {
        Vec::new()
    })
}

fn require_finite_or_none(variant: &VariantObservations) -> Result<(), StatsError> {
    if variant.observations_pps.is_empty() {
        return Ok(());
    }
    require_finite(&variant.name, &variant.observations_pps)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn held(variants: &[&[f64]]) -> Vec<String> {
        let variants: Vec<VariantObservations> = variants
            .iter()
            .enumerate()
            .map(|(index, rates_pps)| VariantObservations {
                name: index.to_string(),
                observations_pps: rates_pps.to_vec(),
            })
            .collect();
        ceiling_warnings(&variants)
            .unwrap()
            .iter()
            .map(|warning| warning.subject().to_owned())
            .collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_limit_holds_those_with_a_quarter_of_their_observations_at_it() {
        let at = 1_488_095.0;
        let eight_with_two = [at, at - 200.0, 1.4e6, 1.3e6, 1.2e6, 1.1e6, 1.0e6, 0.9e6];
        assert_eq!(held(&[&[at; 8], &eight_with_two]), ["0", "1"]);
        let nine_with_two = [&eight_with_two[..], &[0.8e6]].concat();
        assert_eq!(held(&[&[at; 8], &nine_with_two]), NONE);
        assert_eq!(held(&[&[at; 8], &[at; 8], &nine_with_two]), ["0", "1"]);
        // 0.0202 % below.
        assert_eq!(held(&[&[at; 8], &[at - 301.0; 8]]), NONE);
    }

    #[test]
    fn one_variant_or_one_observation_tells_of_no_common_limit() {
        assert_eq!(held(&[]), NONE);
        assert_eq!(held(&[&[], &[]]), NONE);
        assert_eq!(held(&[&[1e6; 8]]), NONE);
        assert_eq!(held(&[&[1e6; 8], &[]]), NONE);
        assert_eq!(held(&[&[1e6], &[1e6]]), NONE);
        assert_eq!(held(&[&[0.0; 8], &[0.0; 8]]), NONE);
    }

    #[test]
    fn what_is_no_number_is_refused_by_name() {
        let variant = VariantObservations {
            name: "conntrack".to_owned(),
            observations_pps: vec![1.0, f64::NAN],
        };
        let error = ceiling_warnings(&[variant]).unwrap_err().to_string();
        assert!(error.starts_with("conntrack: value 1"), "{error}");
    }

    proptest! {
        #[test]
        fn units_and_order_do_not_matter(
            rates in prop::collection::vec(prop::collection::vec(9990_u32..10_000, 0..9), 0..5),
            power in -20_i32..20,
        ) {
            let scaled = |reversed: bool, factor: f64| -> Vec<Vec<f64>> {
                rates.iter().map(|rates| {
                    let mut rates: Vec<f64> =
                        rates.iter().map(|rate| f64::from(*rate) * factor).collect();
                    if reversed {
                        rates.reverse();
                    }
                    rates
                }).collect()
            };
            let held_in = |rates: &[Vec<f64>]| {
                held(&rates.iter().map(Vec::as_slice).collect::<Vec<_>>())
            };
            // Powers of two scale without rounding.
            let other = held_in(&scaled(true, 2.0_f64.powi(power)));
            prop_assert_eq!(held_in(&scaled(false, 1.0)), other);
        }
    }
}
