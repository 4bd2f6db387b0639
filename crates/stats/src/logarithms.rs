//! Logarithms of rates, so that differences become ratios.

use crate::error::{StatsError, require_finite};

/// The natural logarithms of positive values: differences of theirs are log ratios, as
/// [`crate::format_effect`] prints them in percent.
///
/// `subject` names the values in errors.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::NotPositive`].
///
/// # Examples
/// ```
/// use fwdlab_stats::{TwoSampleT, format_effect, logarithms};
/// let base = logarithms("base", &[5436053.0, 5489556.5, 5523675.0, 5412642.0, 5620939.0])?;
/// let fast = logarithms("fast", &[6130165.0, 6136242.0, 6132932.0, 6256993.5, 6215498.0])?;
/// let welch = TwoSampleT::welch(&fast, &base)?;
/// let interval = welch.interval(0.95)?;
/// assert_eq!(format_effect(welch.difference, Some(&interval)), "+12.3 % [+10.2, +14.5]");
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn logarithms(subject: &str, values: &[f64]) -> Result<Vec<f64>, StatsError> {
    require_finite(subject, values)?;
    match values.iter().position(|value| *value <= 0.0) {
        None => Ok(values.iter().map(|value| value.ln()).collect()),
        Some(index) => Err(StatsError::NotPositive {
            subject: subject.to_owned(),
            index,
            value: values[index],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_nothing_has_none() {
        let refusal = logarithms("nft", &[1.0, 0.0]).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "nft: value 1 has no logarithm (0); give positive numbers only"
        );
        assert!(logarithms("nft", &[]).is_err());
        assert!(logarithms("nft", &[f64::NAN]).is_err());
    }
}
