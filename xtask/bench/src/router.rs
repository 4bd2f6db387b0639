//! The router beside testpmd, one address family beside the other, many routes beside few, and where
//! the time of a packet goes.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use fwdlab_model::AddressFamily;
use fwdlab_router::Stage;
use serde_json::json;

use crate::bench::Bench;
use crate::counter::Window;
use crate::figure::{Figure, Outcome, mpps};
use crate::inline::{Prefixes, Scene};
use crate::noise;
use crate::pairs::{Pairs, median};
use crate::testpmd::Testpmd;

const TESTPMD_RATIO_MIN: f64 = 1.0;
const INET6_RATIO_MIN: f64 = 0.8;
const MILLION_RATIO_MIN: f64 = 0.3;

/// The experiment that the program runs, from the root of the repository.
const EXPERIMENT: &str = "xtask/bench/router.toml";

/// Pairs of a whole run and a window.
const PROGRAM_PAIRS: u32 = 8;

/// Routes of a large table.
const ROUTES: usize = 1_000_000;

/// How often and how long to measure; the defaults take about five minutes.
#[derive(Args)]
pub(crate) struct Settings {
    /// Pairs of a window of each of the two things that are compared
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Length of a window in milliseconds
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..))]
    window_ms: u64,
}

impl Settings {
    fn window(&self) -> Window {
        Window {
            settle: Duration::from_millis(100),
            length: Duration::from_millis(self.window_ms),
        }
    }

    /// Measures two things in pairs, and says what their ratio is.
    fn compare(
        &self,
        bench: &Bench,
        what: &str,
        goal: f64,
        mut first: impl FnMut() -> Result<f64>,
        mut second: impl FnMut() -> Result<f64>,
    ) -> Result<Figure> {
        let pairs = Pairs::measure(
            self.pairs,
            || {
                bench.stop_if_asked()?;
                first()
            },
            || {
                bench.stop_if_asked()?;
                second()
            },
            |pair, first, second| {
                let (ours, theirs, ratio) = (mpps(first), mpps(second), first / second);
                let all = self.pairs;
                eprintln!("{what}, pair {pair} of {all}: {ours} and {theirs}: {ratio:.3}");
            },
        )?;
        let ratio = pairs.ratio()?;
        let (ours, theirs) = pairs.medians();
        Ok(Figure {
            what: what.into(),
            goal: format!("at least {goal}"),
            measured: ratio.written(3, ""),
            beside: format!("{} and {}", mpps(ours), mpps(theirs)),
            outcome: ratio.at_least(goal),
            observations: json!({ "rates_pps": pairs, "ratio": ratio }),
        })
    }
}

/// Measures all figures of the router.
pub(crate) fn run(bench: &Bench, settings: &Settings) -> Result<Vec<Figure>> {
    bench.leave_load_cpu()?;
    let window = settings.window();
    let inet = Scene::usual(AddressFamily::Inet)?;
    let inet6 = Scene::usual(AddressFamily::Inet6)?;
    let mut figures = vec![
        settings.compare(
            bench,
            "router, IPv4 / testpmd, MAC forwarding",
            TESTPMD_RATIO_MIN,
            || inet.rate_pps(bench, window),
            || Testpmd::start(bench)?.rate_pps(window),
        )?,
        settings.compare(
            bench,
            "router, IPv6 / IPv4",
            INET6_RATIO_MIN,
            || inet6.rate_pps(bench, window),
            || inet.rate_pps(bench, window),
        )?,
    ];
    for (family, name, usual) in [
        (AddressFamily::Inet, "IPv4", &inet),
        (AddressFamily::Inet6, "IPv6", &inet6),
    ] {
        let prefixes = Prefixes::new(family, ROUTES);
        let many = Scene::scattered(family, prefixes.routes(), &prefixes)?;
        let few = Scene::scattered(family, &Prefixes::two(family), &prefixes)?;
        for (what, few) in [("2 routes, 2000 flows", usual), ("2 routes", &few)] {
            figures.push(settings.compare(
                bench,
                &format!("router, {name}, {ROUTES} routes / {what}"),
                MILLION_RATIO_MIN,
                || many.rate_pps(bench, window),
                || few.rate_pps(bench, window),
            )?);
        }
    }
    figures.push(in_the_program(bench, settings, &inet)?);
    figures.extend(stages(bench, settings, [&inet, &inet6])?);
    Ok(figures)
}

/// The router in a `fwdlab run`, in turns with its tester, beside the same in the loop of this bench.
///
/// Both begin with the same code; that neither loop costs more than the other is what this is for.
fn in_the_program(bench: &Bench, settings: &Settings, scene: &Scene) -> Result<Figure> {
    let program = noise::build()?;
    let results = tempfile::tempdir()?;
    let pairs = Pairs::measure(
        PROGRAM_PAIRS,
        || {
            let report = noise::measure(bench, &program, EXPERIMENT, results.path())?;
            let cost_ns = report["comparisons"][0]["rows"][0]["cost_ns"].as_f64();
            Ok(1e9 / cost_ns.context("report: the baseline has no cost")?)
        },
        || scene.rate_pps(bench, settings.window()),
        |pair, program, here| {
            let (ours, theirs, ratio) = (mpps(program), mpps(here), program / here);
            eprintln!(
                "fwdlab run, pair {pair} of {PROGRAM_PAIRS}: {ours} and {theirs}: {ratio:.3}"
            );
        },
    )?;
    let ratio = pairs.ratio()?;
    let (program, here) = pairs.medians();
    Ok(Figure {
        what: "router, IPv4: `fwdlab run`, self-clocked / the loop of this bench".into(),
        goal: "none".into(),
        measured: ratio.written(3, ""),
        beside: format!("{} and {}", mpps(program), mpps(here)),
        outcome: Outcome::NoGoal,
        observations: json!({ "rates_pps": pairs, "ratio": ratio }),
    })
}

/// Where the time of a packet goes, beside the time that it takes when nobody notes it.
fn stages(bench: &Bench, settings: &Settings, scenes: [&Scene; 2]) -> Result<Vec<Figure>> {
    let window = settings.window();
    let names = ["generator", "sink"]
        .into_iter()
        .chain(Stage::ALL.iter().map(|stage| stage.name()));
    let mut stages_ns: Vec<[Vec<f64>; 2]> = names.clone().map(|_| Default::default()).collect();
    let mut sums: [Pairs; 2] = Default::default();
    for (family, scene) in scenes.iter().enumerate() {
        sums[family] = Pairs::measure(
            settings.pairs,
            || {
                bench.stop_if_asked()?;
                let of_stages = scene.stages_ns(bench, window)?;
                for (stage, &ns) in stages_ns.iter_mut().zip(&of_stages) {
                    stage[family].push(ns);
                }
                Ok(of_stages.iter().sum())
            },
            || Ok(1e9 / scene.rate_pps(bench, window)?),
            |_, _, _| (),
        )?;
    }
    let mut figures: Vec<Figure> = names
        .zip(&stages_ns)
        .map(|(name, [inet, inet6])| Figure {
            what: format!("a packet's time, IPv4 and IPv6: {name}"),
            goal: "none".into(),
            measured: format!("{:.2} ns", median(inet)),
            beside: format!("IPv6: {:.2} ns", median(inet6)),
            outcome: Outcome::NoGoal,
            observations: json!({ "inet_ns": inet, "inet6_ns": inet6 }),
        })
        .collect();
    for (pairs, name) in sums.iter().zip(["IPv4", "IPv6"]) {
        let ratio = pairs.ratio()?;
        let (sum, whole) = pairs.medians();
        figures.push(Figure {
            what: format!("all stages, noted / a packet's whole time, {name}"),
            goal: "none".into(),
            measured: ratio.written(3, ""),
            beside: format!("{sum:.2} ns and {whole:.2} ns"),
            outcome: Outcome::NoGoal,
            observations: json!({ "ns": pairs, "ratio": ratio }),
        });
    }
    Ok(figures)
}
