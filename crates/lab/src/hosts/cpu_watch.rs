//! What the DUT's CPUs did under the load, by counters that were read there at two moments of it.

use std::collections::BTreeMap;

use fwdlab_model::CpuTimes;
use fwdlab_stats::as_f64;

/// What parts the two looks in what a watching program prints.
pub(super) const BETWEEN_LOOKS: &str = "---";
/// A load whose frames come in at less than this part of the rate at which they were offered was not there all the
/// time: counters of some ports are a second old.
const LOADED_RATIO_MIN: f64 = 0.8;

/// Counters at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Look {
    /// Since some moment, in seconds.
    pub(super) at_s: f64,
    /// Frames that came to both ports, those that they had no room for too.
    pub(super) received_frames: u64,
    /// By CPU.
    pub(super) times: BTreeMap<u32, CpuTimes>,
}

/// What happened from one look to the other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CpuWatch {
    pub(super) time_s: f64,
    pub(super) received_frames: u64,
    pub(super) cpus: BTreeMap<u32, CpuTimes>,
}

impl CpuWatch {
    /// What happened between the looks in a program's output; none where it is not two looks in that order.
    pub(super) fn read(text: &str, look: impl Fn(&str) -> Option<Look>) -> Option<Self> {
        let (first, second) = text.split_once(&format!("{BETWEEN_LOOKS}\n"))?;
        Self::between(&look(first)?, &look(second)?)
    }

    fn between(first: &Look, second: &Look) -> Option<Self> {
        let time_s = second.at_s - first.at_s;
        let cpus = second.times.iter().filter_map(|(cpu, second)| {
            let first = first.times.get(cpu)?;
            // A CPU that was taken out and put back counts from zero.
            let difference = |of: fn(&CpuTimes) -> f64| (of(second) - of(first)).max(0.0);
            let times = CpuTimes {
                watched_s: difference(|times| times.watched_s),
                busy_s: difference(|times| times.busy_s),
                interrupts_s: difference(|times| times.interrupts_s),
                stolen_s: difference(|times| times.stolen_s),
            };
            Some((*cpu, times))
        });
        Some(Self {
            time_s: Some(time_s).filter(|time_s| *time_s >= 0.0)?,
            received_frames: second.received_frames.checked_sub(first.received_frames)?,
            cpus: cpus.collect(),
        })
    }

    /// Whether a load of so many frames a second was there all the time.
    pub(super) fn was_loaded(&self, transmitted_pps: f64) -> bool {
        as_f64(self.received_frames) >= transmitted_pps * self.time_s * LOADED_RATIO_MIN
    }

    /// The largest part of a busy CPU's time that the hypervisor took.
    pub(super) fn stolen_ratio(&self) -> f64 {
        let ratios = self.cpus.values().filter(|times| times.watched_s > 0.0);
        let ratios = ratios.map(|times| times.stolen_s / times.watched_s);
        ratios.fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_s: f64, received_frames: u64, busy_s: f64) -> Look {
        let times = CpuTimes {
            watched_s: at_s,
            busy_s,
            interrupts_s: busy_s / 2.0,
            stolen_s: at_s / 10.0,
        };
        Look {
            at_s,
            received_frames,
            times: BTreeMap::from([(3, times)]),
        }
    }

    #[test]
    fn what_happened_is_the_difference_of_two_looks() {
        let watch = CpuWatch::between(&look(10.0, 1000, 4.0), &look(12.0, 5000, 5.5)).unwrap();
        assert_eq!(watch.received_frames, 4000);
        let times = watch.cpus[&3];
        let expected = CpuTimes {
            watched_s: 2.0,
            busy_s: 1.5,
            interrupts_s: 0.75,
            ..times
        };
        assert_eq!(times, expected);
        assert!((watch.stolen_ratio() - 0.1).abs() < 1e-9);
        assert!(watch.was_loaded(2000.0));
        assert!(watch.was_loaded(2400.0));
        assert!(!watch.was_loaded(2600.0));
    }

    #[test]
    fn counters_that_go_back_say_nothing() {
        assert_eq!(
            CpuWatch::between(&look(10.0, 1000, 4.0), &look(12.0, 999, 5.0)),
            None
        );
        assert_eq!(
            CpuWatch::between(&look(10.0, 0, 4.0), &look(9.0, 0, 5.0)),
            None
        );
    }
}
