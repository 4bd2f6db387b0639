//! Effects, levels and p-values as text.
//!
//! Effects are computed as log ratios and read as percent; the two ends of an interval convert
//! one by one, so the printed interval is not symmetric around the estimate.

use crate::hodges_lehmann::Interval;

/// The change in percent that a log ratio stands for: ln(0.79) gives -21.
pub fn percent(log_ratio: f64) -> f64 {
    log_ratio.exp_m1() * 100.0
}

/// An effect in percent, with its interval where there is one: `-21.3 % [-22.6, -20.1]`.
///
/// As many decimals, from one to three, as give the interval's half-width two digits.
///
/// # Examples
/// ```
/// use fwdlab_stats::format_effect;
/// assert_eq!(format_effect(0.787_f64.ln(), None), "-21.3 %");
/// ```
pub fn format_effect(log_ratio: f64, interval: Option<&Interval>) -> String {
    let Some(interval) = interval else {
        return format!("{} %", signed(percent(log_ratio), 1));
    };
    let (lower, upper) = (percent(interval.lower), percent(interval.upper));
    let decimals = decimals_for((upper - lower) / 2.0);
    format!(
        "{} % [{}, {}]",
        signed(percent(log_ratio), decimals),
        signed(lower, decimals),
        signed(upper, decimals)
    )
}

/// A level of confidence with at most one decimal: `96.1 %`, `95 %`.
pub fn format_confidence(confidence: f64) -> String {
    let tenths = format!("{:.1}", confidence * 100.0);
    format!("{} %", tenths.strip_suffix(".0").unwrap_or(&tenths))
}

/// A p-value: three decimals, never rounded down to nothing: `0.023`, `< 0.001`.
pub fn format_p(p: f64) -> String {
    if p < 0.001 {
        "< 0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

/// A size without sign in percent: `0.52 %`.
pub(crate) fn format_size(log_ratio: f64) -> String {
    let size = percent(log_ratio.abs());
    format!("{size:.*} %", decimals_for(size))
}

/// A small effect in percent, with two digits or more: `-0.52 %`.
pub(crate) fn format_shift(log_ratio: f64) -> String {
    let shift = percent(log_ratio);
    format!("{} %", signed(shift, decimals_for(shift.abs())))
}

/// A rate of so many frames per second, to four digits or more: `9.714 Mpps`, `871 pps`.
pub(crate) fn format_rate(rate_pps: f64) -> String {
    if rate_pps >= 999_950.0 {
        format!("{:.3} Mpps", rate_pps / 1e6)
    } else if rate_pps >= 999.95 {
        format!("{:.1} kpps", rate_pps / 1e3)
    } else {
        format!("{rate_pps:.0} pps")
    }
}

pub(crate) fn decimals_for(half_width_percent: f64) -> usize {
    if half_width_percent >= 0.995 {
        1
    } else if half_width_percent >= 0.0995 {
        2
    } else {
        3
    }
}

/// Always with a sign, except for what rounds to zero.
fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    if text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        text
    } else {
        text[1..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(lower: f64, upper: f64) -> Interval {
        Interval {
            lower: (lower / 100.0).ln_1p(),
            upper: (upper / 100.0).ln_1p(),
            nominal_confidence: 0.95,
            attained_confidence: 0.961,
        }
    }

    #[test]
    fn effects_have_the_digits_their_interval_supports() {
        let effect = |estimate: f64, lower, upper| {
            format_effect((estimate / 100.0).ln_1p(), Some(&interval(lower, upper)))
        };
        assert_eq!(effect(-21.3, -22.6, -20.1), "-21.3 % [-22.6, -20.1]");
        assert_eq!(effect(0.5, 0.12, 0.9), "+0.50 % [+0.12, +0.90]");
        assert_eq!(effect(0.0, -0.04, 0.04), "0.000 % [-0.040, +0.040]");
        assert_eq!(effect(3.0, -40.0, 90.0), "+3.0 % [-40.0, +90.0]");
    }

    #[test]
    fn nothing_rounds_to_a_signed_zero() {
        assert_eq!(format_effect(-1e-9, None), "0.0 %");
        assert_eq!(format_effect(1e-9, None), "0.0 %");
    }

    #[test]
    fn levels_and_p_values() {
        assert_eq!(format_confidence(0.95), "95 %");
        assert_eq!(format_confidence(1.0 - 10.0 / 256.0), "96.1 %");
        assert_eq!(format_p(0.0234), "0.023");
        assert_eq!(format_p(0.0009), "< 0.001");
        assert_eq!(format_p(1.0), "1.000");
        assert_eq!(format_size(-0.0052), "0.52 %");
        assert_eq!(format_shift(-0.0052), "-0.52 %");
        assert_eq!(format_shift(0.012), "+1.2 %");
        let rates = [1e7, 999_949.0, 871.2, 0.0].map(format_rate);
        assert_eq!(rates, ["10.000 Mpps", "999.9 kpps", "871 pps", "0 pps"]);
    }
}
