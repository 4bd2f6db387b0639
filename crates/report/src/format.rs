//! The one place where numbers become text.

use crate::report::{Effect, IntervalSection};

/// Narrow no-break space between groups of three digits.
const GROUP: char = '\u{202f}';

/// A forwarding rate for sentences: three significant digits and the unit, `2.41 Mpps`.
#[must_use]
pub fn rate(pps: f64) -> String {
    for (unit, name) in [(1e9, "Gpps"), (1e6, "Mpps"), (1e3, "kpps")] {
        // Compared after rounding, so that 999 950 does not become "1000 kpps".
        if pps >= unit * 0.9995 {
            return format!("{} {name}", significant(pps / unit, 3));
        }
    }
    format!("{} pps", significant(pps, 3))
}

/// A difference of forwarding rates for sentences, signed: `-368 kpps`.
#[must_use]
pub fn rate_difference(pps: f64) -> String {
    let sign = if pps < 0.0 { '-' } else { '+' };
    format!("{sign}{}", rate(pps.abs()))
}

/// A forwarding rate for tables: four significant digits, grouped, without the unit: `2 412 000`.
#[must_use]
pub fn rate_digits(pps: f64) -> String {
    let step = 10_f64.powf((pps.abs().max(1.0).log10().floor() - 3.0).max(0.0));
    grouped_float((pps / step).round() * step)
}

/// The cost of a packet, without the unit: one decimal below 1000, none above.
#[must_use]
pub fn cost(ns_per_packet: f64) -> String {
    if ns_per_packet.abs() < 999.95 {
        unsigned_zero(format!("{ns_per_packet:.1}"))
    } else {
        grouped_float(ns_per_packet)
    }
}

/// A difference in the cost of a packet, signed, without the unit: whole above 10, one decimal
/// above 1, two below.
#[must_use]
pub fn cost_difference(ns_per_packet: f64) -> String {
    let decimals = match ns_per_packet.abs() {
        size if size >= 9999.5 => {
            let sign = if ns_per_packet < 0.0 { '-' } else { '+' };
            return format!("{sign}{}", grouped_float(size));
        }
        size if size >= 9.95 => 0,
        size if size >= 0.995 => 1,
        _ => 2,
    };
    signed(ns_per_packet, decimals)
}

/// How many decimals an effect in percent deserves when its interval has this half-width.
///
/// Two significant digits of the half-width, at least one decimal and at most three.
#[must_use]
pub fn effect_decimals(half_width_percent: Option<f64>) -> usize {
    match half_width_percent {
        Some(half_width) if half_width < 0.02 => 3,
        Some(half_width) if half_width < 0.2 => 2,
        _ => 1,
    }
}

/// A number with its sign, `+1.5`; a zero has none.
#[must_use]
pub fn signed(value: f64, decimals: usize) -> String {
    let text = unsigned_zero(format!("{value:+.decimals$}"));
    match text.strip_prefix('+') {
        Some(digits) if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')) => digits.into(),
        _ => text,
    }
}

/// A standard deviation in percent, of which another may have been subtracted: what is left may be nothing.
#[must_use]
pub fn deviation(percent: f64) -> String {
    if percent < 0.005 {
        "not distinguishable from 0".to_owned()
    } else {
        format!("{} %", short(percent, 2))
    }
}

/// A part of a whole in percent: three significant digits, `0.0123 %`; nothing of it is `0 %`.
#[must_use]
pub fn part(percent: f64) -> String {
    if percent > 0.0 {
        format!("{} %", significant(percent, 3))
    } else {
        "0 %".to_owned()
    }
}

/// How often something happened per packet: three digits behind the first that is not 0, `0.0312`, and no
/// zeros behind them: `1`.
#[must_use]
pub fn per_packet(rate: f64) -> String {
    let leading = if rate > 0.0 && rate < 1.0 {
        let mut zeros = 0;
        let mut scaled = rate * 10.0;
        while scaled < 1.0 && zeros < 9 {
            scaled *= 10.0;
            zeros += 1;
        }
        zeros
    } else {
        0
    };
    short(rate, leading + 3)
}

/// The ends of an interval in brackets: `[-22.0, -20.9]`.
#[must_use]
pub fn ends(low: f64, high: f64, decimals: usize) -> String {
    format!("[{}, {}]", signed(low, decimals), signed(high, decimals))
}

/// An interval in brackets; one without ends holds everything: `[-∞, +∞]`.
#[must_use]
pub fn interval(interval: Option<IntervalSection>, decimals: usize) -> String {
    interval.map_or_else(
        || "[-∞, +∞]".to_owned(),
        |of| ends(of.low_percent, of.high_percent, decimals),
    )
}

/// A change in percent, to as many decimals as its interval deserves: `-21.4 %`.
#[must_use]
pub fn change(percent: f64, interval: Option<IntervalSection>) -> String {
    let decimals = effect_decimals(interval.map(IntervalSection::half_width_percent));
    format!("{} %", signed(percent, decimals))
}

/// A change in percent with its interval: `-21.4 % [-22.0, -20.9]`.
#[must_use]
pub fn change_with_interval(percent: f64, of: Option<IntervalSection>) -> String {
    let decimals = effect_decimals(of.map(IntervalSection::half_width_percent));
    format!("{} {}", change(percent, of), interval(of, decimals))
}

/// An effect with its interval, likewise; the interval of the size is shown with its confidence: `+0.3 % [-0.4, +0.9] (93.8 %)`.
#[must_use]
pub fn effect(effect: &Effect) -> String {
    let shown = change_with_interval(effect.estimate_percent, effect.shown_interval());
    match (effect.interval, effect.size_interval) {
        (None, Some(size)) => format!("{shown} ({} %)", short(size.confidence_percent, 1)),
        _ => shown,
    }
}

/// What there is, or a dash where there is nothing.
#[must_use]
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// A p-value, or a dash where nothing was tested.
#[must_use]
pub fn p(p: Option<f64>) -> String {
    or_dash(p.map(fwdlab_stats::format_p))
}

/// A number with as many decimals as it needs and no more than given: `95`, `96.1`.
#[must_use]
pub fn short(value: f64, decimals_max: usize) -> String {
    let text = format!("{value:.decimals_max$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    unsigned_zero(text)
}

/// A number rounded to that many significant digits: `2.41`, `24.1`, `241`.
#[must_use]
pub fn significant(value: f64, digits: usize) -> String {
    let mut decimals = digits.saturating_sub(1);
    let mut limit = 10.0;
    // The half unit keeps 9.996 from becoming "10.00".
    while decimals > 0 && value.abs() >= limit - 0.5 * 10_f64.powi(-decimals_as_i32(decimals)) {
        decimals -= 1;
        limit *= 10.0;
    }
    unsigned_zero(format!("{value:.decimals$}"))
}

/// A count in groups of three digits: `3 421 000`.
#[must_use]
pub fn count(value: u64) -> String {
    group_digits(&value.to_string())
}

/// A signed count in groups of three digits.
#[must_use]
pub fn signed_count(value: i64) -> String {
    let digits = group_digits(&value.unsigned_abs().to_string());
    if value < 0 {
        format!("-{digits}")
    } else {
        digits
    }
}

/// A count and its noun, in the plural where it is not one: `1 block`, `8 blocks`.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// A duration as people say it.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if seconds < 90.0 {
        // An empty sum of floats is -0.
        format!("{:.0} s", seconds.max(0.0))
    } else if seconds < 5400.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

fn decimals_as_i32(decimals: usize) -> i32 {
    i32::try_from(decimals).unwrap_or(i32::MAX)
}

pub(crate) fn grouped_float(value: f64) -> String {
    let text = unsigned_zero(format!("{value:.0}"));
    match text.strip_prefix('-') {
        Some(digits) => format!("-{}", group_digits(digits)),
        None => group_digits(&text),
    }
}

/// Four digits stand together (`1500`), more are grouped from the right.
fn group_digits(digits: &str) -> String {
    if digits.len() <= 4 {
        return digits.to_owned();
    }
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(GROUP);
        }
        text.push(digit);
    }
    text
}

/// `-0.0` is `0.0`.
fn unsigned_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_owned(),
        _ => text,
    }
}

/// The smallest and the largest of some percentages; the one where they read alike.
pub(crate) fn percent_range(percents: impl Iterator<Item = f64>, with_sign: bool) -> String {
    let (low, high) = percents.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(low, high), percent| (low.min(percent), high.max(percent)),
    );
    if low > high {
        return "an unknown amount".to_owned();
    }
    let decimals = match low.abs().max(high.abs()) {
        size if size >= 9.95 => 0,
        size if size >= 0.995 => 1,
        size if size >= 0.0995 => 2,
        _ => 3,
    };
    let text = |percent: f64| {
        if with_sign {
            signed(percent, decimals)
        } else {
            format!("{percent:.decimals$}")
        }
    };
    let (low, high) = (text(low), text(high));
    if low == high {
        format!("{low} %")
    } else {
        format!("{low} to {high} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_of_nothing_is_not_said_to_be_zero() {
        assert_eq!(deviation(0.0), "not distinguishable from 0");
        assert_eq!(deviation(0.0049), "not distinguishable from 0");
        assert_eq!(deviation(0.3), "0.3 %");
    }

    #[test]
    fn a_range_has_as_many_decimals_as_its_size_deserves() {
        let of = |percents: &[f64], with_sign| percent_range(percents.iter().copied(), with_sign);
        assert_eq!(of(&[20.4, 53.9, 31.0], false), "20 to 54 %");
        assert_eq!(of(&[0.31, 0.9], false), "0.31 to 0.90 %");
        assert_eq!(of(&[1.26, 1.31], false), "1.3 %");
        assert!(of(&[-1.2, 0.8], true).ends_with("to +0.8 %"));
        assert_eq!(of(&[], false), "an unknown amount");
    }

    #[test]
    fn rates_have_three_digits_and_the_right_unit() {
        for (pps, text) in [
            (3_421_000.0, "3.42 Mpps"),
            (11_911_258.0, "11.9 Mpps"),
            (148_800_000.0, "149 Mpps"),
            (999_960.0, "1.00 Mpps"),
            (999_400.0, "999 kpps"),
            (9_996_000.0, "10.0 Mpps"),
            (512.4, "512 pps"),
            (0.0, "0.00 pps"),
        ] {
            assert_eq!(rate(pps), text);
        }
    }

    #[test]
    fn tables_keep_four_digits_of_a_rate() {
        for (pps, text) in [
            (3_421_499.0, "3\u{202f}421\u{202f}000"),
            (11_911_258.0, "11\u{202f}910\u{202f}000"),
            (98_765.4, "98\u{202f}770"),
            (512.4, "512"),
            (0.0, "0"),
        ] {
            assert_eq!(rate_digits(pps), text);
        }
    }

    #[test]
    fn costs_have_one_decimal_below_a_thousand() {
        assert_eq!(cost(415.03), "415.0");
        assert_eq!(cost(999.96), "1000");
        assert_eq!(cost(12_345.6), "12\u{202f}346");
        assert_eq!(cost(-0.04), "0.0");
        assert_eq!(cost_difference(82.4), "+82");
        assert_eq!(cost_difference(-13_235.7), "-13\u{202f}236");
        assert_eq!(cost_difference(-9.96), "-10");
        assert_eq!(cost_difference(-9.94), "-9.9");
        assert_eq!(cost_difference(0.123), "+0.12");
    }

    #[test]
    fn a_zero_has_no_sign() {
        assert_eq!(signed(-0.04, 1), "0.0");
        assert_eq!(signed(0.04, 1), "0.0");
        assert_eq!(signed(-0.06, 1), "-0.1");
        assert_eq!(signed(143.0, 0), "+143");
        assert_eq!(short(-0.001, 1), "0");
    }

    #[test]
    fn an_effect_is_as_precise_as_its_interval() {
        assert_eq!(effect_decimals(Some(4.6)), 1);
        assert_eq!(effect_decimals(Some(0.08)), 2);
        assert_eq!(effect_decimals(Some(0.004)), 3);
        assert_eq!(effect_decimals(None), 1);
        assert_eq!(ends(-22.04, -20.9, 1), "[-22.0, -20.9]");
        assert_eq!(interval(None, 1), "[-∞, +∞]");
    }

    #[test]
    fn short_numbers_drop_what_says_nothing() {
        assert_eq!(short(95.0, 1), "95");
        assert_eq!(short(96.09375, 1), "96.1");
        assert_eq!(short(100.0, 0), "100");
        assert_eq!(short(0.5, 2), "0.5");
        assert_eq!(counted(1, "block"), "1 block");
        assert_eq!(counted(12_000, "frame"), "12\u{202f}000 frames");
        assert_eq!(signed_count(-12_000), "-12\u{202f}000");
    }
}
