//! Whether a profile shows the load.

use fwdlab_model::{CpuSamples, LoadRegime, ProfileFault, ProfileRecord};
use fwdlab_profile::{Folded, is_forwarding};
use fwdlab_stats::{as_f64, whole};

/// With so many the share of a function that takes half the time is known to a tenth of itself.
const SAMPLES_MIN: u64 = 100;

/// Part of its samples that a busy CPU gives at least. Timers of virtual machines come late, and where several are
/// due one comes.
const CPU_RATIO_MIN: f64 = 0.4;

/// Part of the samples that may be lost.
const LOST_RATIO_MAX: f64 = 0.01;

/// Part of the samples that may be idle where the load regime leaves no time for it.
const IDLE_RATIO_MAX: f64 = 0.2;

/// Part of the samples that may be of other programs: they are left out, but what they do to caches is not.
const FOREIGN_RATIO_MAX: f64 = 0.2;

/// Why a slice's profile does not show the load; none where it does.
pub(super) fn faults(
    record: &ProfileRecord,
    stacks: &Folded<'_>,
    regime: LoadRegime,
) -> Vec<ProfileFault> {
    let mut faults = Vec::new();
    let lost = as_f64(record.lost_samples) / as_f64((record.samples + record.lost_samples).max(1));
    if lost > LOST_RATIO_MAX {
        let (ratio, bound) = (lost, LOST_RATIO_MAX);
        faults.push(ProfileFault::Lost { ratio, bound });
    }
    if record.outside_samples > 0 {
        let samples = record.outside_samples;
        faults.push(ProfileFault::Outside { samples });
    }
    let expected = f64::from(record.frequency_hz) * record.time_s;
    let bound = SAMPLES_MIN.min(half(expected));
    if record.samples < bound {
        let samples = record.samples;
        faults.push(ProfileFault::FewSamples { samples, bound });
        return faults;
    }
    let all = as_f64(record.samples + record.foreign_samples);
    let foreign = as_f64(record.foreign_samples) / all;
    if foreign > FOREIGN_RATIO_MAX {
        let (ratio, bound) = (foreign, FOREIGN_RATIO_MAX);
        faults.push(ProfileFault::Foreign { ratio, bound });
    }
    if regime != LoadRegime::Paced {
        let missing = record
            .samples_by_cpu
            .iter()
            .filter_map(|&CpuSamples { cpu, samples }| {
                let ratio = as_f64(samples) / expected;
                (ratio < CPU_RATIO_MIN).then_some(ProfileFault::MissingCpu { cpu, ratio })
            });
        faults.extend(missing);
        let idle = as_f64(record.idle_samples) / as_f64(record.samples);
        if idle > IDLE_RATIO_MAX {
            let (ratio, bound) = (idle, IDLE_RATIO_MAX);
            faults.push(ProfileFault::Idle { ratio, bound });
        }
    }
    let mut leaves = stacks.leaf_samples().into_iter();
    if !leaves.any(|(frame, _)| is_forwarding(frame)) {
        faults.push(ProfileFault::NoForwarding);
    }
    faults
}

/// What a slice too short for [`SAMPLES_MIN`] gives at least.
fn half(expected: f64) -> u64 {
    whole(expected / 2.0).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiler::nothing_sampled;

    fn judged(
        regime: LoadRegime,
        stacks: &str,
        change: impl FnOnce(&mut ProfileRecord),
    ) -> Vec<String> {
        let stacks = Folded::parse(stacks.as_bytes()).unwrap();
        let mut record = ProfileRecord {
            event: "cpu-clock".into(),
            time_s: 1.0,
            pooled_pps: 1e6,
            samples: stacks.samples(),
            idle_samples: stacks.idle_samples(),
            samples_by_cpu: vec![CpuSamples {
                cpu: 0,
                samples: stacks.samples(),
            }],
            ..nothing_sampled(1000)
        };
        change(&mut record);
        faults(&record, &stacks, regime)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_busy_cpu_that_forwards_shows_the_load() {
        let busy = "fwdlab;net_rx_action;ip_forward 900\nswapper;do_idle 50\n";
        let none: [&str; 0] = [];
        for regime in [
            LoadRegime::SelfClocked,
            LoadRegime::Overload,
            LoadRegime::Paced,
        ] {
            assert_eq!(judged(regime, busy, |_| {}), none);
        }
    }

    #[test]
    fn an_idle_cpu_is_told_where_the_load_keeps_it_busy() {
        let idle = "fwdlab;ip_forward 300\nswapper;default_idle 600\n";
        assert_eq!(
            judged(LoadRegime::Overload, idle, |_| {}),
            ["67 % of the samples are of an idle CPU (bound 20 %)"]
        );
        assert!(judged(LoadRegime::Paced, idle, |_| {}).is_empty());
    }

    #[test]
    fn what_is_missing_or_strange_is_told() {
        let busy = "fwdlab;ip_forward 900\n";
        let of = |change: fn(&mut ProfileRecord)| judged(LoadRegime::SelfClocked, busy, change);
        assert_eq!(
            of(|record| record.lost_samples = 100),
            ["10.0 % of the samples were lost (bound 1.0 %)"]
        );
        assert_eq!(
            of(|record| record.outside_samples = 1),
            ["1 samples are from outside the measured slices"]
        );
        assert_eq!(
            of(|record| record
                .samples_by_cpu
                .push(CpuSamples { cpu: 1, samples: 7 })),
            ["CPU 1 gave 1 % of the samples that its time should give"]
        );
        assert_eq!(
            of(|record| record.foreign_samples = 300),
            ["25 % of the samples are of other programs (bound 20 %)"]
        );
        assert_eq!(
            of(|record| record.samples = 7),
            ["7 samples are too few (bound 100)"]
        );
        assert_eq!(
            judged(LoadRegime::Paced, "fwdlab;main 900\n", |_| {}),
            ["no sample was taken in a function that forwards"]
        );
    }
}
