//! How much is offered: by the load regime, and by what this machine can do.

use std::collections::BTreeMap;
use std::time::Duration;

use fwdlab_model::{Load, LoadRecord, LoadRegime, Resolved, RouterTester, Stratum, StratumLoad};
use fwdlab_stats::as_f64;
use fwdlab_sys::{Interrupts, PinnedThread};

use super::engine::{Arrangements, Measurement};
use super::threads::Offer;
use crate::LabError;
use crate::validity::AskedLoad;

/// How often the baseline's capacity and the tester's ceiling are measured, each.
const WINDOWS: usize = 8;

/// How long, each time.
const WINDOW: Duration = Duration::from_millis(100);

/// Where threads are and what is offered, and what was measured to settle it.
#[derive(Clone, Debug)]
pub(super) struct SettledLoad {
    pub(super) arrangements: Arrangements,
    pub(super) record: LoadRecord,
}

impl SettledLoad {
    /// Tester and router take turns.
    pub(super) fn in_turns(arrangements: Arrangements) -> Self {
        Self {
            arrangements,
            record: LoadRecord {
                regime: LoadRegime::SelfClocked,
                instead_of: None,
                why: None,
                strata: BTreeMap::new(),
            },
        }
    }

    /// Settles the load of a session.
    ///
    /// Under overload it is held at a fixed ratio above what the baseline forwards at most, where there
    /// is a CPU for the tester and it can offer that much; else tester and router take turns, and the
    /// record says why. All sessions of a run have the load of its `first`.
    pub(super) fn settle(
        resolved: &Resolved,
        in_turns: Arrangements,
        beside: Result<Arrangements, String>,
        first: Option<&LoadRecord>,
        interrupts: Interrupts,
    ) -> Result<Self, LabError> {
        let options = resolved.lab.router.unwrap_or_default();
        let asked = resolved.regime();
        let inline = |why: Option<String>| {
            let mut load = Self::in_turns(in_turns);
            load.record.instead_of = (asked != LoadRegime::SelfClocked).then_some(asked);
            load.record.why = why;
            load
        };
        let wants_threads =
            asked != LoadRegime::SelfClocked || options.tester == RouterTester::Threaded;
        if !wants_threads {
            return Ok(inline(None));
        }
        if options.tester == RouterTester::Inline {
            return Ok(inline(Some(
                "the lab file asks for an inline tester".to_owned(),
            )));
        }
        let arrangements = match beside {
            Ok(arrangements) => arrangements,
            Err(why) => return Ok(inline(Some(why))),
        };
        if asked != LoadRegime::Overload {
            let strata = intended(resolved);
            return Ok(Self {
                arrangements,
                record: LoadRecord {
                    regime: asked,
                    instead_of: None,
                    why: None,
                    strata,
                },
            });
        }
        if let Some(first) = first {
            if first.regime == LoadRegime::SelfClocked {
                let mut load = inline(first.why.clone());
                load.record.strata.clone_from(&first.strata);
                return Ok(load);
            }
            let record = first.clone();
            return Ok(Self {
                arrangements,
                record,
            });
        }
        let strata = measured(resolved, &arrangements, interrupts, options.overload_ratio)?;
        if let Some(why) = shortfall(&strata, options.overload_ratio) {
            let mut load = inline(Some(why));
            load.record.strata = strata;
            return Ok(load);
        }
        Ok(Self {
            arrangements,
            record: LoadRecord {
                regime: LoadRegime::Overload,
                instead_of: None,
                why: None,
                strata,
            },
        })
    }

    /// The load that trials are judged by.
    pub(super) fn asked(&self) -> AskedLoad {
        AskedLoad {
            regime: self.record.regime,
            unaccounted_ratio_max: 0.0,
            counts_at_once: true,
        }
    }

    /// What is offered of a stratum where that load is asked for; overload is as much as was settled.
    pub(super) fn offer(&self, stratum: Stratum, asked: Load) -> Offer {
        if self.record.regime == LoadRegime::SelfClocked {
            return Offer::Taken;
        }
        let intended_pps = match asked {
            Load::Paced { pps } => Some(as_f64(pps)),
            Load::Overload | Load::SelfClocked => {
                let settled = self.record.strata.get(&stratum);
                settled.and_then(|load| load.intended_pps)
            }
        };
        intended_pps.map_or(Offer::Taken, Offer::PerSecond)
    }
}

/// The load that the experiment itself asks for.
fn intended(resolved: &Resolved) -> BTreeMap<Stratum, StratumLoad> {
    #[expect(clippy::cast_precision_loss, reason = "loads stay far below 2^53")]
    let load = |stratum| StratumLoad {
        intended_pps: (resolved.traffic(stratum).load.intended_pps()).map(|pps| pps as f64),
        ..StratumLoad::default()
    };
    let strata = resolved.strata();
    strata.map(|stratum| (stratum, load(stratum))).collect()
}

/// What is offered of a stratum under overload, from what was measured.
fn overload(capacity_pps: f64, ceiling_pps: f64, overload_ratio: f64) -> StratumLoad {
    StratumLoad {
        baseline_capacity_pps: Some(capacity_pps),
        tester_ceiling_pps: Some(ceiling_pps),
        intended_pps: Some(capacity_pps * overload_ratio),
    }
}

/// Why the tester cannot offer what it should; none where its ceiling is high enough for every stratum.
fn shortfall(strata: &BTreeMap<Stratum, StratumLoad>, overload_ratio: f64) -> Option<String> {
    let (stratum, load) = strata.iter().find(|(_, load)| {
        load.tester_ceiling_pps
            .is_some_and(|ceiling| load.intended_pps.is_some_and(|wanted| ceiling < wanted))
    })?;
    let mega = |pps: Option<f64>| pps.unwrap_or_default() / 1e6;
    Some(format!(
        "the tester can send and count {:.1} Mpps of {stratum} at most, and {overload_ratio} times the \
         baseline's {:.1} Mpps would be {:.1}",
        mega(load.tester_ceiling_pps),
        mega(load.baseline_capacity_pps),
        mega(load.intended_pps),
    ))
}

/// What the baseline forwards at most, what the tester can do at most, and what follows from it.
fn measured(
    resolved: &Resolved,
    arrangements: &Arrangements,
    interrupts: Interrupts,
    overload_ratio: f64,
) -> Result<BTreeMap<Stratum, StratumLoad>, LabError> {
    let available = |name: &fwdlab_model::VariantName| {
        resolved
            .variant(name)
            .is_some_and(|variant| variant.unavailable.is_none())
    };
    let mut baselines = resolved
        .comparisons
        .iter()
        .map(|comparison| &comparison.baseline);
    let Some(baseline) = baselines.find(|name| available(name)) else {
        return Ok(BTreeMap::new());
    };
    let arrangement = &arrangements[baseline];
    let _pinned = PinnedThread::to_cpu(arrangement.place.tester_cpu())?;
    let mut measurement =
        Measurement::start(resolved, arrangements, resolved.regime(), interrupts)?;
    let mut strata = BTreeMap::new();
    for stratum in resolved.strata() {
        let prepared = measurement.prepare(stratum, [baseline])?;
        let rates_pps = measurement.forwarding_rates_pps(
            &prepared,
            baseline,
            Offer::Unbounded,
            &[WINDOW; WINDOWS],
        )?;
        // What disturbs takes time away: the best is what it forwards at most.
        let capacity_pps = rates_pps.into_iter().fold(0.0, f64::max);
        let ceilings_pps =
            measurement.tester_ceilings_pps(&prepared, arrangement, &[WINDOW; WINDOWS])?;
        // What can be offered most of the time.
        let ceiling_pps = fwdlab_stats::median(&ceilings_pps).unwrap_or_default();
        strata.insert(stratum, overload(capacity_pps, ceiling_pps, overload_ratio));
    }
    Ok(strata)
}

#[cfg(test)]
mod tests {
    use fwdlab_model::AddressFamily;

    use super::*;

    #[test]
    fn a_ceiling_below_the_ratio_times_the_capacity_is_a_shortfall() {
        let why = |inet, inet6| {
            let strata = [(AddressFamily::Inet, inet), (AddressFamily::Inet6, inet6)];
            let load = |ceiling_pps| overload(8e6, ceiling_pps, 1.25);
            shortfall(
                &strata
                    .map(|(family, ceiling)| (family.into(), load(ceiling)))
                    .into(),
                1.25,
            )
        };
        assert_eq!(overload(8e6, 2e7, 1.25).intended_pps, Some(1e7));
        // Just enough is enough.
        assert_eq!(why(1e7, 1e7), None);
        assert_eq!(why(3e7, 1.1e7), None);
        assert_eq!(
            why(9.9e6, 1e7).unwrap(),
            "the tester can send and count 9.9 Mpps of inet at most, and 1.25 times the baseline's 8.0 Mpps \
             would be 10.0"
        );
        // One family is enough to take turns: both are measured alike.
        assert!(why(3e7, 9.9e6).unwrap().contains("9.9 Mpps of inet6"));
    }

    #[test]
    fn what_is_settled_is_offered_and_in_turns_whatever_is_taken() {
        let inet = Stratum::INET;
        let strata = BTreeMap::from([(inet, overload(8e6, 2e7, 1.25))]);
        let mut load = SettledLoad::in_turns(Arrangements::new());
        load.record.strata = strata;
        let offer = |load: &SettledLoad, stratum| load.offer(stratum, Load::Overload);
        assert_eq!(offer(&load, inet), Offer::Taken);
        load.record.regime = LoadRegime::Overload;
        assert_eq!(offer(&load, inet), Offer::PerSecond(1e7));
        assert_eq!(offer(&load, Stratum::INET6), Offer::Taken);
        // A slice may have another pace than the experiment.
        load.record.regime = LoadRegime::Paced;
        let paced = Load::Paced { pps: 5_000_000 };
        assert_eq!(load.offer(inet, paced), Offer::PerSecond(5e6));
    }
}
