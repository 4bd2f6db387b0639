//! Figures of reports in what stands by hand on a page: marked, and made again with the page.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use super::page::{label, list, text};

/// Marks a figure of a report in what stands by hand: the experiment, the family, the row of the
/// comparison from 0, and the event where it is not the effect that is meant.
const FIGURE: &str = "<!-- figure ";
const END_OF_FIGURE: &str = "<!-- end of figure -->";

/// A page whose marked figures are those of a report; marks of other experiments stay.
pub(super) fn with_figures(page: &str, name: &str, report: &Value) -> Result<String> {
    let mut parts = page.split(FIGURE);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (what, rest) = part
            .split_once(" -->")
            .with_context(|| format!("a line with {FIGURE}has no end"))?;
        let (old, rest) = rest
            .split_once(END_OF_FIGURE)
            .with_context(|| format!("{FIGURE}{what}: there is no {END_OF_FIGURE} behind it"))?;
        let new = match what.strip_prefix(name).and_then(|of| of.strip_prefix(' ')) {
            Some(of) => figure(report, of).with_context(|| format!("no figure {what:?}"))?,
            None => old.to_owned(),
        };
        let _ = write!(text, "{FIGURE}{what} -->{new}{END_OF_FIGURE}{rest}");
    }
    Ok(text)
}

/// What is meant by a family, a row and perhaps an event.
fn figure(report: &Value, what: &str) -> Option<String> {
    let mut words = what.splitn(3, ' ');
    let (family, row) = (words.next()?, words.next()?.parse::<usize>().ok()?);
    let mut comparisons = list(&report["comparisons"]).iter();
    let comparison = comparisons.find(|comparison| comparison["family"] == family)?;
    let row = list(&comparison["rows"]).get(row)?;
    let Some(event) = words.next() else {
        let effect = &row["effect"];
        let percent = |value: &Value| Some(format!("{:+.1}", value.as_f64()?));
        let interval = &effect["interval"];
        let at_least = if is_held(report, family, row) {
            "at least "
        } else {
            ""
        };
        return Some(format!(
            "{}: {at_least}{} % [{}, {}]",
            text(&row["verdict"]["words"]),
            percent(&effect["estimate_percent"])?,
            percent(&interval["low_percent"])?,
            percent(&interval["high_percent"])?,
        ));
    };
    let mut sections = list(&report["dut_events"]).iter();
    let section = sections
        .find(|section| section["family"] == family && section["variant"] == row["variant"])?;
    Some(digits(per_packet(section, event)))
}

/// Whether a variant forwarded all that was offered to it, so that its effect is a lower bound: W218.
fn is_held(report: &Value, family: &str, row: &Value) -> bool {
    let several = list(&report["traffic"]["families"]).len() > 1;
    let mut subject = label(report, row).to_owned();
    if several {
        subject += if family == "inet6" {
            ", IPv6"
        } else {
            ", IPv4"
        };
    }
    let mut warnings = list(&report["warnings"]).iter();
    warnings.any(|warning| {
        warning["code"] == "W218"
            && list(&warning["subjects"])
                .iter()
                .any(|of| text(of) == subject)
    })
}

/// How often an event happened for each packet that the DUT received.
pub(super) fn per_packet(section: &Value, event: &str) -> f64 {
    let times = |event: &str| section["events"][event].as_f64().unwrap_or(0.0);
    times(event) / times("received").max(1.0)
}

/// A number with three digits that count.
pub(super) fn digits(rate: f64) -> String {
    let mut decimals = 2;
    let mut scaled = rate;
    while scaled > 0.0 && scaled < 1.0 && decimals < 9 {
        scaled *= 10.0;
        decimals += 1;
    }
    let text = format!("{rate:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_in_what_stands_by_hand_are_those_of_the_report() {
        let effect = json!({
            "estimate_percent": -3.25,
            "interval": {"low_percent": -4.0, "high_percent": 0.04},
        });
        let verdict = json!({"words": "different"});
        let report = json!({
            "comparisons": [{"family": "inet", "rows": [
                {"variant": "a"}, {"variant": "b", "effect": effect, "verdict": verdict},
            ]}],
            "dut_events": [
                {"variant": "b", "family": "inet", "events": {"received": 1000, "full drains": 5}},
            ],
        });
        let page = "a <!-- figure x inet 1 full drains -->1<!-- end of figure -->, \
                    <!-- figure y inet 1 -->kept<!-- end of figure -->.";
        assert_eq!(
            with_figures(page, "x", &report).unwrap(),
            page.replace("-->1<", "-->0.005<")
        );
        let effect = "<!-- figure x inet 1 --><!-- end of figure -->";
        let mut held = report.clone();
        held["warnings"] = json!([{"code": "W218", "subjects": ["a", "b"]}]);
        let at_least = with_figures(effect, "x", &held).unwrap();
        assert!(at_least.contains(": at least -3.2 %"), "{at_least}");
        let filled = with_figures(effect, "x", &report).unwrap();
        assert!(filled.contains(": -3.2 % [-4.0, +0.0]<"), "{filled}");
        assert_eq!(with_figures(&filled, "x", &report).unwrap(), filled);
        for wrong in [
            "<!-- figure x inet 9 -->1<!-- end of figure -->",
            "<!-- figure x inet6 1 -->1<!-- end of figure -->",
            "<!-- figure x inet 1 -->1",
            "<!-- figure x inet 1",
        ] {
            assert!(with_figures(wrong, "x", &report).is_err(), "{wrong}");
        }
    }
}
