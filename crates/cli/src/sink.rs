//! `fwdlab sink`: counts and verifies the frames that come in at an interface that the user names.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fwdlab_model::Traffic;
use fwdlab_report::format::rate;
use fwdlab_traffic::{InterfaceExpectation, InterfaceSink, SinkCounts, Way};
use serde_json::json;

use crate::args::SinkArguments;
use crate::exit::{Code, GOAL_MISSED, INTERRUPTED};
use crate::output::{self, tell};
use crate::traffic::{End, InnerRates, Seconds, described};

pub(crate) fn sink(arguments: &SinkArguments) -> anyhow::Result<Code> {
    let traffic = arguments.end.traffic.traffic()?;
    let expectation = InterfaceExpectation {
        source: arguments.from,
        family: arguments.end.traffic.family,
        traffic: &traffic,
        way: if arguments.routed {
            Way::Router
        } else {
            Way::Cable
        },
    };
    let interrupts = fwdlab_sys::watch_interrupts()?;
    let sink = InterfaceSink::attach(&arguments.interface, &expectation)?;
    let start = Instant::now();
    if !arguments.end.quiet {
        introduce(arguments, &expectation, &sink);
    }
    let mut seconds = Seconds::new(start, arguments.time, interrupts);
    let mut rates = InnerRates::default();
    let mut flows_seen = 0;
    let mut before = (start, SinkCounts::default());
    let end = seconds.tell(
        arguments.end.quiet,
        || true,
        |second| {
            let now = (Instant::now(), sink.counts()?);
            // Once all were seen there is nothing to look for, one flow after the other.
            if flows_seen < traffic.flows() {
                flows_seen = sink.flows_seen()?;
            }
            let interval = Interval::between(&before, &now, flows_seen);
            before = now;
            rates.add(interval.forwarding_rate_pps);
            Ok(if arguments.end.json {
                interval.json(second)
            } else {
                interval.text(second, &traffic)
            })
        },
    )?;
    let summary = Summary {
        duration: start.elapsed(),
        counts: sink.counts()?,
        flows_seen: sink.flows_seen()?,
        rates,
    };
    drop(sink);
    let code = output::print(&if arguments.end.json {
        summary.json(arguments, &traffic)
    } else {
        summary.text(arguments, &traffic)
    })?;
    Ok(match end {
        End::NobodyReads => code,
        // What was never seen is not verified.
        _ if summary.counts.wrong_frames() > 0 || summary.counts.forwarded_frames == 0 => {
            GOAL_MISSED
        }
        // Ctrl-C is how a sink without an end is ended.
        End::Stopped if arguments.time.is_some() => INTERRUPTED,
        _ => code,
    })
}

/// Says on standard error what is expected, and what becomes of other frames.
fn introduce(
    arguments: &SinkArguments,
    expectation: &InterfaceExpectation<'_>,
    sink: &InterfaceSink,
) {
    let place = if sink.is_in_driver() {
        "in the driver"
    } else {
        "by generic XDP, at a higher cost a frame, because the driver takes no program"
    };
    let way = if expectation.way == Way::Router {
        " through a router"
    } else {
        ""
    };
    tell(&format!(
        "expecting {}, from {}{way} to {} ({}), counted {place}; Ctrl-C ends it",
        described(expectation.traffic, expectation.family),
        expectation.source,
        arguments.interface,
        sink.destination(),
    ));
    tell(&format!(
        "{} gets no other frame until then: all that comes in ends here",
        arguments.interface
    ));
}

/// Wrong frames by what is wrong with them.
fn by_kind(counts: &SinkCounts) -> BTreeMap<&'static str, u64> {
    counts.wrong_frames_by_kind().collect()
}

/// `0 wrong`, or how many of which kind.
fn wrong_text(wrong: &BTreeMap<&'static str, u64>) -> String {
    let all: u64 = wrong.values().sum();
    if all == 0 {
        return "0 wrong".to_owned();
    }
    let kinds: Vec<_> = wrong
        .iter()
        .map(|(kind, frames)| format!("{kind}: {frames}"))
        .collect();
    format!("{all} WRONG ({})", kinds.join(", "))
}

/// What came in in one second.
struct Interval {
    forwarded_frames: u64,
    forwarding_rate_pps: f64,
    foreign_frames: u64,
    checked_frames: u64,
    wrong_frames: BTreeMap<&'static str, u64>,
    flows_seen: u32,
}

impl Interval {
    fn between(
        (then, before): &(Instant, SinkCounts),
        (at, now): &(Instant, SinkCounts),
        flows_seen: u32,
    ) -> Self {
        let interval_s = at.duration_since(*then).as_secs_f64();
        let wrong_before = by_kind(before);
        let wrong_frames = by_kind(now).into_iter().filter_map(|(kind, frames)| {
            let frames = frames - wrong_before.get(kind).copied().unwrap_or(0);
            (frames > 0).then_some((kind, frames))
        });
        let forwarded_frames = now.forwarded_frames - before.forwarded_frames;
        Self {
            forwarded_frames,
            forwarding_rate_pps: forwarded_frames as f64 / interval_s,
            foreign_frames: now.foreign_frames - before.foreign_frames,
            checked_frames: now.checked_frames - before.checked_frames,
            wrong_frames: wrong_frames.collect(),
            flows_seen,
        }
    }

    fn text(&self, second: u64, traffic: &Traffic) -> String {
        format!(
            "{second:>4} s  forwarded {:>9}, {} foreign, {} checked, {}, {} of {} flows seen",
            rate(self.forwarding_rate_pps),
            self.foreign_frames,
            self.checked_frames,
            wrong_text(&self.wrong_frames),
            self.flows_seen,
            traffic.flows(),
        )
    }

    fn json(&self, second: u64) -> String {
        json!({
            "record": "second",
            "second": second,
            "forwarded_frames": self.forwarded_frames,
            "forwarding_rate_pps": self.forwarding_rate_pps,
            "foreign_frames": self.foreign_frames,
            "checked_frames": self.checked_frames,
            "wrong_frames": self.wrong_frames,
            "flows_seen": self.flows_seen,
        })
        .to_string()
    }
}

struct Summary {
    duration: Duration,
    counts: SinkCounts,
    flows_seen: u32,
    rates: InnerRates,
}

impl Summary {
    fn text(&self, arguments: &SinkArguments, traffic: &Traffic) -> String {
        let SinkCounts {
            forwarded_frames,
            foreign_frames,
            checked_frames,
            ..
        } = self.counts;
        let mut text = format!(
            "forwarded {forwarded_frames} frames in {:.1} s",
            self.duration.as_secs_f64()
        );
        let rates = self.rates.rates();
        if let (Some(mean), Some(min), Some(max)) = (rates.mean(), rates.min(), rates.max()) {
            text += &format!(
                ": {} in the mean, {} to {} in whole seconds of the load",
                rate(mean),
                rate(min),
                rate(max)
            );
        }
        let wrong = by_kind(&self.counts);
        text += &format!(
            "\nchecked {checked_frames} of them, from {} of {} flows: {}\n",
            self.flows_seen,
            traffic.flows(),
            wrong_text(&wrong),
        );
        for kind in wrong.keys() {
            text += &format!("  {kind}: {}\n", hint(kind, arguments, traffic));
        }
        if foreign_frames > 0 {
            text += &format!(
                "ended {foreign_frames} foreign frames: of another protocol, family or port{}\n",
                match traffic.vlan {
                    None if forwarded_frames == 0 => {
                        ", or with a VLAN tag; give both ends the same --vlan"
                    }
                    _ => "",
                }
            );
        }
        if forwarded_frames == 0 {
            text += "NOTHING VERIFIED: no frame of this traffic came in; give both ends the same \
                     options, and see that frames are addressed to this interface\n";
        }
        text
    }

    fn json(&self, arguments: &SinkArguments, traffic: &Traffic) -> String {
        let rates = self.rates.rates();
        let summary = json!({
            "record": "summary",
            "interface": arguments.interface,
            "family": arguments.end.traffic.family,
            "flows": traffic.flows(),
            "vlan": traffic.vlan,
            "duration_s": self.duration.as_secs_f64(),
            "forwarded_frames": self.counts.forwarded_frames,
            "foreign_frames": self.counts.foreign_frames,
            "checked_frames": self.counts.checked_frames,
            "wrong_frames": by_kind(&self.counts),
            "flows_seen": self.flows_seen,
            "forwarding_rate_pps": rates.mean(),
            "forwarding_rate_pps_min": rates.min(),
            "forwarding_rate_pps_max": rates.max(),
        });
        format!("{summary}\n")
    }
}

/// What to look at where frames are wrong in some way.
fn hint(kind: &str, arguments: &SinkArguments, traffic: &Traffic) -> String {
    match kind {
        "flow" => {
            "other addresses than expected; give both ends the same traffic options".to_owned()
        }
        "length" => {
            "another size than expected; give both ends the same --frame-size and --vlan".to_owned()
        }
        "MAC address" => format!(
            "not from {} to the address of {}; --from is that of the port that sends last",
            arguments.from, arguments.interface
        ),
        "TTL" if arguments.routed => {
            "not one less than sent; is there exactly one router in between?".to_owned()
        }
        "TTL" => "not as sent; if a router lies in between, say --routed".to_owned(),
        _ => match traffic.vlan {
            Some(vlan) => format!(
                "the frames were changed on their way, or have the tag of another VLAN than {vlan}; give both ends the same \
                 --vlan"
            ),
            None => "the frames were changed on their way".to_owned(),
        },
    }
}
