//! The generator beside trafgen, beside a bare loop, and on the clock.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use fwdlab_lab::{DUT_IN, TESTER_IN, Topology};
use fwdlab_model::{AddressFamily, Traffic};
use fwdlab_traffic::{
    Frames, Generator, Pace, Receiver as _, RunningGenerator, Sink, drop_control,
};
use serde_json::json;

use crate::bench::Bench;
use crate::counter::{Reading, Window, as_f64, steal_ticks};
use crate::figure::{Figure, Outcome, mpps};
use crate::pairs::Pairs;
use crate::trafgen::Trafgen;

const DROPPING_RATIO_MIN: f64 = 9.0;
const COST_NS_MAX: f64 = 10.0;
const FORWARDING_RATIO_MIN: f64 = 2.0;
const PACES_PPS: [u64; 3] = [100_000, 500_000, 1_000_000];
const PACE_DEVIATION_MAX: f64 = 0.001;

/// A load beyond this part of what the path carries is the path's test and not the pacer's.
const PACE_SHARE_MAX: f64 = 0.9;

/// The two paths.
const DROPPING: &str = "into a dropping veth";
const FORWARDING: &str = "through kernel forwarding";

/// Load before each count. In the many short pairs of the cost it is short, so that a machine that
/// changes its speed does so between pairs.
const SETTLE_MS: u64 = 200;
const COST_SETTLE_MS: u64 = 50;

/// Before a pacer's first second.
const PACE_SETTLE_MS: u64 = 500;

/// How long and how often to measure; the defaults take about three minutes.
#[derive(Args)]
pub(crate) struct Settings {
    /// Pairs with trafgen, into a dropping veth and again through the forwarding DUT
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..))]
    trafgen_pairs: u32,
    /// Length of a measurement in these pairs, in ms
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..))]
    trafgen_window_ms: u64,
    /// Pairs with a loop that redirects one constant frame
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..))]
    cost_pairs: u32,
    /// Length of a measurement in these pairs, in ms
    #[arg(long, default_value_t = 150, value_parser = clap::value_parser!(u64).range(10..))]
    cost_window_ms: u64,
    /// Seconds at each pace
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pace_s: u32,
}

/// Measures all figures of the generator.
pub(crate) fn run(bench: &Bench, settings: &Settings) -> Result<Vec<Figure>> {
    bench.leave_load_cpu()?;
    let topology = Topology::build()?;
    let traffic = Traffic::default();
    let frames = topology.frames(AddressFamily::Inet, &traffic)?;
    let bench = GeneratorBench {
        bench,
        settings,
        trafgen: Trafgen::new(&frames)?,
        topology,
        frames,
    };

    let mut control = drop_control()?;
    bench.topology.dut().run(|| control.xdp.attach(DUT_IN))??;
    let dropped = || Ok(control.frames(0)?);
    let (into_drop, dropped_pps) = bench.beside_trafgen(DROPPING, DROPPING_RATIO_MIN, &dropped)?;
    let cost = bench.cost(&dropped)?;
    let mut paced = bench.paces(DROPPING, dropped_pps, &dropped)?;
    drop(control);

    let mut sink = Sink::load(&bench.frames)?;
    bench.topology.tester().run(|| sink.attach(TESTER_IN))??;
    let forwarded = || Ok(sink.counts()?.forwarded_frames);
    let (through, forwarded_pps) =
        bench.beside_trafgen(FORWARDING, FORWARDING_RATIO_MIN, &forwarded)?;
    paced.extend(bench.paces(FORWARDING, forwarded_pps, &forwarded)?);
    let mut figures = vec![into_drop, cost, through];
    figures.extend(paced);
    Ok(figures)
}

struct GeneratorBench<'a> {
    bench: &'a Bench,
    settings: &'a Settings,
    trafgen: Trafgen,
    topology: Topology,
    frames: Frames,
}

impl GeneratorBench<'_> {
    /// Our generator against trafgen, both counted by the same program; and its median rate.
    fn beside_trafgen(
        &self,
        what: &str,
        goal: f64,
        frames: &dyn Fn() -> Result<u64>,
    ) -> Result<(Figure, f64)> {
        let window = window(SETTLE_MS, self.settings.trafgen_window_ms);
        let pairs = Pairs::measure(
            self.settings.trafgen_pairs,
            || self.rate_pps(Generator::load, window, frames),
            || self.trafgen_rate_pps(window, frames),
            |pair, ours, trafgen| {
                eprintln!(
                    "{what}, pair {pair} of {}: {}, trafgen {}: {:.2}",
                    self.settings.trafgen_pairs,
                    mpps(ours),
                    mpps(trafgen),
                    ours / trafgen
                );
            },
        )?;
        let ratio = pairs.ratio()?;
        let (ours, trafgen) = pairs.medians();
        let figure = Figure {
            what: format!("generator / trafgen, {what}"),
            goal: format!("at least {goal}"),
            measured: ratio.written(2, ""),
            beside: format!("{} and {}", mpps(ours), mpps(trafgen)),
            outcome: ratio.at_least(goal),
            observations: json!({ "rates_pps": pairs, "ratio": ratio }),
        };
        Ok((figure, ours))
    }

    /// What a frame costs more than in a loop that redirects always the same.
    fn cost(&self, frames: &dyn Fn() -> Result<u64>) -> Result<Figure> {
        let window = window(COST_SETTLE_MS, self.settings.cost_window_ms);
        let cost_ns = |load: Load| Ok(1e9 / self.rate_pps(load, window, frames)?);
        let pairs = Pairs::measure(
            self.settings.cost_pairs,
            || cost_ns(Generator::load),
            || cost_ns(Generator::load_constant),
            |pair, ours, constant| {
                eprintln!(
                    "cost, pair {pair} of {}: {ours:.2} ns/packet, constant frame {constant:.2}: \
                     {:+.2}",
                    self.settings.cost_pairs,
                    ours - constant
                );
            },
        )?;
        let difference = pairs.difference()?;
        let (ours, constant) = pairs.medians();
        Ok(Figure {
            what: "generator - a loop that redirects one constant frame".into(),
            goal: format!("at most {COST_NS_MAX} ns/packet"),
            measured: difference.written(2, " ns/packet"),
            beside: format!("{ours:.1} and {constant:.1} ns/packet"),
            outcome: difference.at_most(COST_NS_MAX),
            observations: json!({ "costs_ns": pairs, "difference_ns": difference }),
        })
    }

    /// All paces on a path, of which it is known how much it carries.
    fn paces(
        &self,
        path: &str,
        carried_pps: f64,
        frames: &dyn Fn() -> Result<u64>,
    ) -> Result<Vec<Figure>> {
        let paces = PACES_PPS.into_iter();
        paces
            .map(|pps| {
                let mut figure = self.paced(path, pps, frames)?;
                if as_f64(pps) > PACE_SHARE_MAX * carried_pps {
                    figure.goal = format!("none: this path carries {}", mpps(carried_pps));
                    figure.outcome = Outcome::Open;
                }
                Ok(figure)
            })
            .collect()
    }

    /// What is offered and what comes out in every second at one pace.
    fn paced(&self, path: &str, pps: u64, frames: &dyn Fn() -> Result<u64>) -> Result<Figure> {
        self.bench.stop_if_asked()?;
        let generator = self.load(Generator::load)?;
        let running = generator.start(self.bench.load_cpu, Pace::even(pps))?;
        sleep(Duration::from_millis(PACE_SETTLE_MS));
        let started = Instant::now();
        let mut seconds: Vec<Second> = Vec::new();
        let mut before = self.edge(&running, frames)?;
        for second in 1..=self.settings.pace_s {
            self.bench.stop_if_asked()?;
            let end = started + Duration::from_secs(second.into());
            sleep(end.saturating_duration_since(Instant::now()));
            let after = self.edge(&running, frames)?;
            let measured = Second::between(&before, &after, pps);
            eprintln!(
                "{path}, paced {pps} pps, second {second} of {}: offered {:+.4} %, out {:+.4} %, \
                 steal {} ms",
                self.settings.pace_s,
                measured.offered * 100.0,
                measured.forwarded * 100.0,
                measured.steal_ticks * 10
            );
            seconds.push(measured);
            before = after;
        }
        running.stop()?;

        let (without, with): (Vec<&Second>, _) =
            seconds.iter().partition(|second| second.steal_ticks == 0);
        let worst = without
            .iter()
            .map(|second| second.deviation())
            .reduce(f64::max);
        Ok(Figure {
            what: format!("paced, {pps} pps, {path}: largest deviation of a second"),
            goal: format!("at most {} %", PACE_DEVIATION_MAX * 100.0),
            measured: worst.map_or_else(
                || "no second without steal".into(),
                |worst| format!("{:.4} % ({} seconds)", worst * 100.0, without.len()),
            ),
            beside: with
                .iter()
                .map(|second| second.deviation())
                .reduce(f64::max)
                .map_or_else(
                    || "no second with steal".into(),
                    |worst| format!("{} more with steal: {:.4} %", with.len(), worst * 100.0),
                ),
            outcome: worst.map_or(Outcome::Open, |worst| {
                if worst <= PACE_DEVIATION_MAX {
                    Outcome::Met
                } else {
                    Outcome::Missed
                }
            }),
            observations: serde_json::to_value(&seconds)?,
        })
    }

    fn edge(&self, running: &RunningGenerator, frames: &dyn Fn() -> Result<u64>) -> Result<Edge> {
        Ok(Edge {
            offered: Reading::of(&|| Ok(running.offered_frames()?))?,
            forwarded: Reading::of(frames)?,
            steal_ticks: steal_ticks(self.bench.load_cpu)?,
        })
    }

    /// The rate of a program of our generator's, freshly loaded.
    fn rate_pps(
        &self,
        load: Load,
        window: Window,
        frames: &dyn Fn() -> Result<u64>,
    ) -> Result<f64> {
        self.bench.stop_if_asked()?;
        let generator = self.load(load)?;
        let running = generator.start(self.bench.load_cpu, Pace::SelfClocked)?;
        let rate_pps = window.rate_pps(frames);
        running.stop()?;
        rate_pps
    }

    fn trafgen_rate_pps(&self, window: Window, frames: &dyn Fn() -> Result<u64>) -> Result<f64> {
        self.bench.stop_if_asked()?;
        let _running = self.trafgen.start(&self.topology, self.bench.load_cpu)?;
        window
            .rate_pps(frames)
            .with_context(|| format!("trafgen said: {}", self.trafgen.log()))
    }

    fn load(&self, load: Load) -> Result<Generator> {
        let interface = self.topology.generator_interface();
        Ok(self
            .topology
            .tester()
            .run(|| load(&self.frames, interface))??)
    }
}

fn window(settle_ms: u64, length_ms: u64) -> Window {
    Window {
        settle: Duration::from_millis(settle_ms),
        length: Duration::from_millis(length_ms),
    }
}

/// How a program of the generator's is loaded.
type Load = fn(&Frames, u32) -> Result<Generator, fwdlab_traffic::TrafficError>;

/// Counters at the edge of a second.
struct Edge {
    offered: Reading,
    forwarded: Reading,
    steal_ticks: u64,
}

/// Deviations from the intended load in one second, as ratios.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Second {
    offered: f64,
    forwarded: f64,
    steal_ticks: u64,
}

impl Second {
    fn between(before: &Edge, after: &Edge, pps: u64) -> Self {
        let deviation = |before, after: Reading| after.rate_pps_since(before) / as_f64(pps) - 1.0;
        Self {
            offered: deviation(before.offered, after.offered),
            forwarded: deviation(before.forwarded, after.forwarded),
            steal_ticks: after.steal_ticks - before.steal_ticks,
        }
    }

    /// The larger one.
    fn deviation(&self) -> f64 {
        self.offered.abs().max(self.forwarded.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_deviates_by_what_was_lost_too() {
        let at = Instant::now();
        let edge = |after_ms, offered, forwarded, steal_ticks| {
            let at = at + Duration::from_millis(after_ms);
            let reading = |frames| Reading { at, frames };
            Edge {
                offered: reading(offered),
                forwarded: reading(forwarded),
                steal_ticks,
            }
        };
        let second = Second::between(&edge(0, 0, 0, 5), &edge(1000, 1001, 990, 7), 1000);
        assert!((second.offered - 0.001).abs() < 1e-12);
        assert!((second.deviation() - 0.01).abs() < 1e-12);
        assert_eq!(second.steal_ticks, 2);
    }
}
