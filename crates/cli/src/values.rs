//! How the values of options are read.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fwdlab_model::{
    AddressFamily, BURST_FRAMES, CONFIDENCE_PERCENT, FLOWS_MAX, PPS_MAX, THRESHOLD_PERCENT, Tester,
    VLAN,
};
use fwdlab_report::rules;
use fwdlab_stats::ministat::Dialect;

/// A year.
const TIME_S_MAX: f64 = 31_536_000.0;

pub(crate) fn minutes(text: &str) -> Result<f64, String> {
    let minutes: Option<f64> = text.parse().ok();
    let is_time = |minutes: &f64| *minutes > 0.0 && *minutes * 60.0 <= TIME_S_MAX;
    minutes
        .filter(is_time)
        .ok_or_else(|| "expected a number of minutes, more than 0 and at most a year".to_owned())
}

pub(crate) fn flows(text: &str) -> Result<(u32, u32), String> {
    let flows = text.parse().ok().and_then(fwdlab_model::change::flows);
    flows.ok_or_else(|| format!("expected a number of flows from 1 to {FLOWS_MAX}"))
}

pub(crate) fn threshold(text: &str) -> Result<f64, String> {
    percent(text, THRESHOLD_PERCENT)
}

pub(crate) fn confidence(text: &str) -> Result<f64, String> {
    percent(text, CONFIDENCE_PERCENT)
}

fn percent(text: &str, allowed: RangeInclusive<f64>) -> Result<f64, String> {
    let percent = text
        .parse()
        .ok()
        .filter(|percent| allowed.contains(percent));
    percent.ok_or_else(|| {
        format!(
            "expected percent, from {} to {}",
            allowed.start(),
            allowed.end()
        )
    })
}

/// A rule's code, or how some begin, in capitals.
pub(crate) fn rule_codes(text: &str) -> Result<String, String> {
    let code = text.to_ascii_uppercase();
    let rules = rules();
    let is_one = !code.is_empty() && rules.iter().any(|rule| rule.code.starts_with(&code));
    if is_one {
        return Ok(code);
    }
    let codes: Vec<&str> = rules.iter().map(|rule| rule.code).collect();
    Err(format!("no such rule; there are {}", codes.join(", ")))
}

pub(crate) fn addresses() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=i64::from(FLOWS_MAX))
}

pub(crate) fn vlan(text: &str) -> Result<u16, String> {
    let vlan = text.parse().ok().filter(|vlan| VLAN.contains(vlan));
    vlan.ok_or_else(|| {
        format!(
            "expected the number of a VLAN from {} to {}; without one, frames have no tag",
            VLAN.start(),
            VLAN.end()
        )
    })
}

pub(crate) fn burst(text: &str) -> Result<u32, String> {
    let (first, last) = (BURST_FRAMES.start(), BURST_FRAMES.end());
    let frames = text.parse().ok().filter(|n| BURST_FRAMES.contains(n));
    frames.ok_or_else(|| format!("expected a number from {first} to {last}"))
}

/// Also as `1e6`, as far as it is whole.
pub(crate) fn frames_a_second(text: &str) -> Result<u64, String> {
    let whole = || text.parse::<f64>().ok()?.to_string().parse().ok();
    let frames = text.parse().ok().or_else(whole);
    frames
        .filter(|frames| (1..=PPS_MAX).contains(frames))
        .ok_or_else(|| format!("expected a whole number from 1 to {PPS_MAX}, as 1000000 or 1e6"))
}

pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let seconds = seconds.filter(|seconds| (0.1..=TIME_S_MAX).contains(seconds));
    let time = seconds.map(Duration::from_secs_f64);
    time.ok_or_else(|| format!("expected seconds, from 0.1 to {TIME_S_MAX}"))
}

pub(crate) fn family() -> impl TypedValueParser<Value = AddressFamily> {
    let families = [AddressFamily::Inet, AddressFamily::Inet6];
    one_of(families, |family| family.as_str())
}

pub(crate) fn dialect() -> impl TypedValueParser<Value = Dialect> {
    one_of(Dialect::ALL, Dialect::as_str)
}

pub(crate) fn sender() -> impl TypedValueParser<Value = Tester> {
    let senders = [
        Tester::Ebpf,
        Tester::AfXdp,
        Tester::TxRing,
        Tester::Sendmmsg,
    ];
    one_of(senders, Tester::as_str)
}

/// One of some values, by the word for it.
fn one_of<T, const N: usize>(
    values: [T; N],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(values.map(word)).map(move |text| {
        let value = values.into_iter().find(|value| word(*value) == text);
        value.expect("other words are refused")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_whole_numbers_in_either_form() {
        for (text, frames) in [("1000000", 1_000_000), ("1e6", 1_000_000), ("1.5e3", 1500)] {
            assert_eq!(frames_a_second(text), Ok(frames));
        }
        for text in ["0", "1.5", "1e99", "-1", "1M", "nan", ""] {
            let error = "expected a whole number from 1 to 1000000000, as 1000000 or 1e6";
            assert_eq!(frames_a_second(text), Err(error.to_owned()), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_word_is_read_or_refused(text: String) {
            let _ = burst(&text);
            if let Ok(time) = parse_time(&text) {
                assert!(time >= Duration::from_millis(100));
            }
        }
    }
}
