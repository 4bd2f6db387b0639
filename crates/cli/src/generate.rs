//! `fwdlab gen`: frames of many flows from an interface that the user names.

use std::time::{Duration, Instant};

use fwdlab_model::{Tester, Traffic, WIRE_OVERHEAD_BYTES};
use fwdlab_report::format::rate;
use fwdlab_traffic::{InterfaceGenerator, InterfaceLoad, Pace, SentFrames, TrafficError};
use serde_json::json;

use crate::args::GenArguments;
use crate::exit::{Code, INTERRUPTED, WrongArguments};
use crate::output::{self, tell};
use crate::traffic::{End, Rates, Seconds, described};

/// What is offered may be so much less than was intended before it is said.
const SHORTFALL_RATIO: f64 = 0.01;

pub(crate) fn generate(arguments: &GenArguments) -> anyhow::Result<Code> {
    let traffic = arguments.end.traffic.traffic()?;
    let cpus = cpus(arguments)?;
    let load = InterfaceLoad {
        destination: arguments.to,
        family: arguments.end.traffic.family,
        traffic: &traffic,
        is_reversed: false,
        cpus: &cpus,
        pace: arguments.pps.map_or(Pace::SelfClocked, |pps| Pace::Paced {
            pps,
            burst_frames: arguments.burst,
        }),
    };
    let interrupts = fwdlab_sys::watch_interrupts()?;
    let running = match arguments.sender {
        Some(sender) => InterfaceGenerator::start_with(&arguments.interface, &load, sender)
            .map_err(or_through_a_socket)?,
        None => InterfaceGenerator::start(&arguments.interface, &load)?,
    };
    if !arguments.end.quiet {
        introduce(arguments, &load, &running);
    }
    let sender = running.sender();
    let start = running.started();
    let mut seconds = Seconds::new(start, arguments.time, interrupts);
    let mut rates = Rates::default();
    let sent_before = running.sent_before();
    let mut before = (start, sent_before);
    let goes_on = || running.is_running();
    let end = seconds.tell(arguments.end.quiet, goes_on, |second| {
        let now = (Instant::now(), running.sent()?);
        let interval = Interval::between(before, now, &traffic);
        before = now;
        rates.add(interval.offered_load_pps);
        Ok(if arguments.end.json {
            interval.json(second)
        } else {
            interval.text(second)
        })
    })?;
    let summary = Summary {
        duration: start.elapsed(),
        sent: running.stop().map_err(or_through_a_socket)?,
        offered_before: sent_before.offered,
        sender,
        rates,
    };
    let code = output::print(&if arguments.end.json {
        summary.json(arguments, &traffic)
    } else {
        summary.text(arguments)
    })?;
    Ok(match end {
        // Ctrl-C is how a load without an end is ended.
        End::Stopped if arguments.time.is_some() => INTERRUPTED,
        _ => code,
    })
}

/// With the option that helps where an interface transmits no XDP frames.
fn or_through_a_socket(error: TrafficError) -> anyhow::Error {
    let of_xdp = matches!(
        error.on_any_cpu(),
        TrafficError::NotTransmitted {
            sender: Tester::Ebpf,
            ..
        }
    );
    if !of_xdp {
        return error.into();
    }
    let text = format!("{error}; or send through a socket: --sender tx-ring");
    anyhow::Error::from(error).context(text)
}

/// The CPUs that are asked for, or the last: device interrupts are often at the first.
fn cpus(arguments: &GenArguments) -> anyhow::Result<Vec<u32>> {
    let online = fwdlab_sys::online_cpus()?;
    let (option, asked) = match arguments.cpu {
        Some(cpu) => ("--cpu", vec![cpu]),
        None => ("--cpus", arguments.cpus.clone()),
    };
    for (number, cpu) in asked.iter().enumerate() {
        if !online.contains(cpu) {
            return Err(WrongArguments(format!(
                "{option} {cpu}: there is no such CPU online; give one of {}",
                listed(&online)
            ))
            .into());
        }
        if asked[..number].contains(cpu) {
            return Err(WrongArguments(format!(
                "{option}: CPU {cpu} is named twice; leave one out"
            ))
            .into());
        }
    }
    if asked.is_empty() {
        return Ok(vec![online.last().copied().unwrap_or(0)]);
    }
    Ok(asked)
}

fn listed(cpus: &[u32]) -> String {
    let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
    cpus.join(", ")
}

/// Says on standard error what is sent and how.
fn introduce(arguments: &GenArguments, load: &InterfaceLoad<'_>, running: &InterfaceGenerator) {
    for (better, why) in running.refused() {
        tell(&format!("not {}: {why}", better.sender()));
    }
    let pace = match load.pace {
        Pace::SelfClocked => "as fast as it goes".to_owned(),
        Pace::Paced {
            pps,
            burst_frames: 1,
        } => format!("{pps} a second"),
        Pace::Paced { pps, burst_frames } => {
            format!("{pps} a second in bursts of {burst_frames}")
        }
    };
    let cpus = match load.cpus {
        [cpu] => format!("CPU {cpu}"),
        cpus => format!("CPUs {}", listed(cpus)),
    };
    tell(&format!(
        "sending {}, {pace}, from {} ({}) to {}, by {} on {cpus}; Ctrl-C ends it",
        described(load.traffic, load.family),
        arguments.interface,
        running.source(),
        load.destination,
        running.sender().sender(),
    ));
}

/// What was sent in one second.
struct Interval {
    sent: SentFrames,
    offered_load_pps: f64,
    transmitted_pps: f64,
    layer_1_mbps: f64,
    layer_2_mbps: f64,
}

impl Interval {
    fn between(
        before: (Instant, SentFrames),
        now: (Instant, SentFrames),
        traffic: &Traffic,
    ) -> Self {
        let interval_s = now.0.duration_since(before.0).as_secs_f64();
        let sent = SentFrames {
            offered: now.1.offered - before.1.offered,
            transmitted: now.1.transmitted.saturating_sub(before.1.transmitted),
        };
        let offered_load_pps = sent.offered as f64 / interval_s;
        let mbps = |bytes: f64| offered_load_pps * bytes * 8.0 / 1e6;
        let bytes = traffic.mean_frame_bytes();
        Self {
            sent,
            offered_load_pps,
            transmitted_pps: sent.transmitted as f64 / interval_s,
            layer_1_mbps: mbps(bytes + WIRE_OVERHEAD_BYTES),
            layer_2_mbps: mbps(bytes),
        }
    }

    fn text(&self, second: u64) -> String {
        format!(
            "{second:>4} s  offered {:>9}, {:.1} Mbit/s (layer 1: {:.1}), transmitted {}",
            rate(self.offered_load_pps),
            self.layer_2_mbps,
            self.layer_1_mbps,
            rate(self.transmitted_pps),
        )
    }

    fn json(&self, second: u64) -> String {
        json!({
            "record": "second",
            "second": second,
            "offered_frames": self.sent.offered,
            "transmitted_frames": self.sent.transmitted,
            "offered_load_pps": self.offered_load_pps,
            "transmitted_pps": self.transmitted_pps,
            "layer_1_mbps": self.layer_1_mbps,
            "layer_2_mbps": self.layer_2_mbps,
        })
        .to_string()
    }
}

struct Summary {
    duration: Duration,
    sent: SentFrames,
    /// Of them, what was offered before the duration began.
    offered_before: u64,
    sender: Tester,
    rates: Rates,
}

impl Summary {
    fn duration_s(&self) -> f64 {
        self.duration.as_secs_f64()
    }

    fn offered_load_pps(&self) -> f64 {
        (self.sent.offered - self.offered_before) as f64 / self.duration_s()
    }

    fn not_transmitted(&self) -> u64 {
        self.sent.offered.saturating_sub(self.sent.transmitted)
    }

    fn text(&self, arguments: &GenArguments) -> String {
        let SentFrames {
            offered,
            transmitted,
        } = self.sent;
        let interface = &arguments.interface;
        let mut text = format!(
            "offered {offered} frames in {:.1} s: {} in the mean",
            self.duration_s(),
            rate(self.offered_load_pps()),
        );
        if let (Some(min), Some(max)) = (self.rates.min(), self.rates.max()) {
            text += &format!(", {} to {} in whole seconds", rate(min), rate(max));
        }
        text += &format!("\ntransmitted {transmitted} frames, as {interface} counts\n");
        if self.not_transmitted() > 0 {
            let frames = self.not_transmitted();
            let percent = frames as f64 / offered as f64 * 100.0;
            text += &format!(
                "NOT TRANSMITTED: {frames} frames ({percent:.3} %); ip -s -s link show dev {interface} \
                 may say why\n"
            );
        }
        if transmitted > offered {
            let frames = transmitted - offered;
            text += &format!("{frames} of the frames transmitted are not the generator's\n");
        }
        if let Some(pps) = arguments.pps {
            let missing = 1.0 - self.offered_load_pps() / pps as f64;
            if missing > SHORTFALL_RATIO {
                text += &format!(
                    "{:.1} % LESS THAN INTENDED: something else is busy on a CPU that sends, or the interface \
                     takes no more\n",
                    missing * 100.0
                );
            }
        }
        text
    }

    fn json(&self, arguments: &GenArguments, traffic: &Traffic) -> String {
        let summary = json!({
            "record": "summary",
            "interface": arguments.interface,
            "family": arguments.end.traffic.family,
            "flows": traffic.flows(),
            "vlan": traffic.vlan,
            "sender": self.sender,
            "duration_s": self.duration_s(),
            "intended_load_pps": arguments.pps,
            "offered_frames": self.sent.offered,
            "transmitted_frames": self.sent.transmitted,
            "not_transmitted_frames": self.not_transmitted(),
            "offered_load_pps": self.offered_load_pps(),
            "offered_load_pps_min": self.rates.min(),
            "offered_load_pps_max": self.rates.max(),
        });
        format!("{summary}\n")
    }
}
