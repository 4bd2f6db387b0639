//! What of a block was left undisturbed, and whether its forwarding rates can rest on that.

use std::collections::BTreeMap;
use std::time::Duration;

use fwdlab_model::record::{ALONE_RATIO_MIN, UNDISTURBED_RATIO_MIN};
use fwdlab_model::{LoadRegime, PlannedBlock, RateBasis, SliceRecord, Stratum, VariantName};
use fwdlab_stats::as_f64;

use crate::LabError;
use crate::cpu_account::CpuAccount;
use crate::sample::{Sample, gaps, usual_gap};
use crate::watch::watch;

/// Writes into a block's slices what was left undisturbed of them, and in what the load had its CPUs to itself; tells the
/// calibration loop's undisturbed time.
///
/// A load with a pace makes up for what is delayed, so that leaving out that time would leave out time without frames, and
/// the frames of it would make the rest look faster than the pace: there nothing is left out.
///
/// Shape: the samples of each slice, in the slices' order.
pub(crate) fn tell_undisturbed(
    slices: &mut [SliceRecord],
    samples: &[Vec<Sample>],
    regime: LoadRegime,
) -> f64 {
    let loops_ns: Vec<u64> = samples
        .iter()
        .flatten()
        .map(|sample| sample.loop_ns)
        .collect();
    let undisturbed_loop_ns = fwdlab_stats::undisturbed_loop_ns(&loops_ns).unwrap_or_default();
    let usual = usual_gap(samples);
    for (slice, samples) in slices.iter_mut().zip(samples) {
        let mut samples = with_what_was_taken(samples, usual);
        if regime == LoadRegime::Paced {
            for sample in &mut samples {
                (sample.competing_s, sample.loop_ns) = (0.0, 0);
            }
        }
        let part = fwdlab_stats::undisturbed(&samples, undisturbed_loop_ns);
        slice.undisturbed_s = part.duration_s;
        slice.undisturbed_frames = part.forwarded_frames;
        if let Some(contention) = &mut slice.contention {
            let alone = fwdlab_stats::alone(&samples);
            contention.alone_s = alone.duration_s;
            contention.alone_frames = alone.forwarded_frames;
        }
    }
    undisturbed_loop_ns
}

/// How long a frame takes, in nanoseconds, by what is counted for about `length` while the load has its CPUs to itself;
/// none where that is too short a time. Measured again where it was.
///
/// # Errors
/// Those of `frames`, which tells how many there were so far.
pub(crate) fn cost_ns(
    cpu: u32,
    length: Duration,
    account: &CpuAccount,
    frames: impl Fn() -> Result<u64, LabError> + Send + Sync,
) -> Result<Option<f64>, LabError> {
    const ATTEMPTS_MAX: u32 = 3;
    // A few frames say how long others had the CPU, not what a frame costs.
    const FRAMES_MIN: u64 = 100;
    for _ in 0..ATTEMPTS_MAX {
        let samples = watch(cpu, length, account, &frames, || Ok(()))?.samples;
        let usual = usual_gap(std::slice::from_ref(&samples));
        let alone = fwdlab_stats::alone(&with_what_was_taken(&samples, usual));
        let is_enough = alone.duration_s >= length.as_secs_f64() * UNDISTURBED_RATIO_MIN;
        if is_enough && alone.forwarded_frames >= FRAMES_MIN {
            return Ok(Some(
                alone.duration_s * 1e9 / as_f64(alone.forwarded_frames),
            ));
        }
    }
    Ok(None)
}

/// Samples as the statistics take them, each with what others took of the load's CPUs up to it.
fn with_what_was_taken(samples: &[Sample], usual: Duration) -> Vec<fwdlab_stats::Sample> {
    let late = late(samples, usual);
    let samples_and_late = samples.iter().zip(late);
    samples_and_late
        .map(|(sample, late)| fwdlab_stats::Sample {
            at_s: (sample.at - samples[0].at).as_secs_f64(),
            forwarded_frames: sample.forwarded_frames,
            loop_ns: sample.loop_ns,
            competing_s: (sample.taken + late).as_secs_f64(),
        })
        .collect()
}

/// For each sample, how much later those up to it came than they usually do, where that is more than twice as late: who is
/// not let run, as in a control group whose quota is used up, does not look either.
fn late(samples: &[Sample], usual: Duration) -> Vec<Duration> {
    const LATE_FACTOR: u32 = 3;
    let mut sum = Duration::ZERO;
    let late = gaps(samples).map(|gap| {
        if gap > usual * LATE_FACTOR {
            sum += gap - usual;
        }
        sum
    });
    std::iter::once(Duration::ZERO).chain(late).collect()
}

/// On what each stratum's rates rest: on what was left undisturbed, where every trial has enough of it; else on the time
/// in which the load had its CPUs to itself, where that is known.
pub(crate) fn rate_basis(
    planned: &PlannedBlock,
    slices: &[SliceRecord],
) -> BTreeMap<Stratum, RateBasis> {
    let has_enough = |stratum, name: &VariantName, basis| {
        let (mut counted_s, mut time_s) = (0.0, 0.0);
        for slice in slices_of(slices, stratum, name) {
            counted_s += slice.counted(basis).1;
            time_s += slice.time_s;
        }
        let ratio_min = match basis {
            RateBasis::Alone => ALONE_RATIO_MIN,
            RateBasis::Undisturbed | RateBasis::AllTime => UNDISTURBED_RATIO_MIN,
        };
        counted_s > 0.0 && counted_s >= time_s * ratio_min
    };
    let is_known = slices.iter().all(|slice| slice.contention.is_some());
    planned
        .strata
        .iter()
        .map(|order| {
            let all_have_enough = |basis| {
                let mut variants = order.variants();
                variants.all(|name| has_enough(order.stratum, name, basis))
            };
            let basis = if all_have_enough(RateBasis::Undisturbed) {
                RateBasis::Undisturbed
            } else if is_known && all_have_enough(RateBasis::Alone) {
                RateBasis::Alone
            } else {
                RateBasis::AllTime
            };
            (order.stratum, basis)
        })
        .collect()
}

/// The slices of one trial, as the statistics take them: what their forwarding rates rest on.
pub(crate) fn counted(
    slices: &[SliceRecord],
    stratum: Stratum,
    name: &VariantName,
    basis: RateBasis,
) -> Vec<fwdlab_stats::Slice> {
    slices_of(slices, stratum, name)
        .map(|slice| fwdlab_stats::Slice::of(slice.round, slice.counted(basis)))
        .collect()
}

pub(crate) fn slices_of<'a>(
    slices: &'a [SliceRecord],
    stratum: Stratum,
    name: &VariantName,
) -> impl Iterator<Item = &'a SliceRecord> {
    slices
        .iter()
        .filter(move |slice| slice.stratum == stratum && &slice.variant == name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fwdlab_model::{Contention, StratumOrder};
    use fwdlab_sys::BootTime;

    use super::*;

    const STRATUM: Stratum = Stratum::INET;

    fn slice(variant: &str, round: u32) -> SliceRecord {
        SliceRecord {
            time_s: 0.1,
            undisturbed_s: 0.1,
            calibration_ns: 700,
            ..SliceRecord::at(STRATUM, round, 0, VariantName::from_label(variant))
        }
    }

    #[test]
    fn the_reference_is_that_of_the_whole_block() {
        let start = BootTime::now();
        let samples = |loops_ns: [u64; 4]| -> Vec<Sample> {
            (0_u32..)
                .zip(loops_ns)
                .map(|(number, loop_ns)| Sample {
                    at: start + Duration::from_millis(50) * number,
                    forwarded_frames: u64::from(number) * 7,
                    loop_ns,
                    taken: Duration::ZERO,
                })
                .collect()
        };
        let mut slices = [slice("a", 1), slice("b", 1)];
        let samples = [samples([700, 710, 710, 1100]), samples([1100; 4])];
        let loop_ns = tell_undisturbed(&mut slices, &samples, LoadRegime::SelfClocked);
        assert!((loop_ns - 700.0).abs() < f64::EPSILON);
        assert_eq!(slices[0].undisturbed_frames, 7);
        assert!((slices[0].undisturbed_s - 0.05).abs() < 1e-9);
        assert_eq!(slices[1].undisturbed_frames, 0);

        // Under a pace, what was delayed in disturbed time was sent in the rest.
        tell_undisturbed(&mut slices, &samples, LoadRegime::Paced);
        for slice in slices {
            assert_eq!(slice.undisturbed_frames, 21);
            assert!((slice.undisturbed_s - 0.15).abs() < 1e-9);
        }
    }

    #[test]
    fn time_without_a_look_is_nobodys_own() {
        let start = BootTime::now();
        let samples: Vec<Sample> = [0, 2, 4, 30, 32, 34]
            .map(|at_ms| Sample {
                at: start + Duration::from_millis(at_ms),
                forwarded_frames: at_ms,
                loop_ns: 700,
                taken: Duration::ZERO,
            })
            .into();
        let mut slices = [slice("a", 1)];
        slices[0].contention = Some(Contention::default());
        tell_undisturbed(&mut slices, &[samples], LoadRegime::SelfClocked);
        assert_eq!(slices[0].undisturbed_frames, 8);
        let alone = slices[0].contention.unwrap();
        assert!((alone.alone_s - 0.008).abs() < 1e-9, "{alone:?}");
    }

    #[test]
    fn one_trial_without_undisturbed_time_decides_for_its_family() {
        let names = ["a", "b"].map(VariantName::from_label);
        let planned = PlannedBlock {
            number: 1,
            strata: vec![StratumOrder {
                stratum: STRATUM,
                rounds: vec![names.map(Into::into).to_vec(); 3],
            }],
        };
        let mut slices = ["a", "b"]
            .iter()
            .flat_map(|name| [1, 2, 3].map(|round| slice(name, round)))
            .collect::<Vec<_>>();
        assert_eq!(
            rate_basis(&planned, &slices)[&STRATUM],
            RateBasis::Undisturbed
        );
        // A twentieth of three slices of 100 ms is 15 ms, wherever they lie.
        slices[3].undisturbed_s = 0.0;
        slices[4].undisturbed_s = 0.0;
        slices[5].undisturbed_s = 0.016;
        assert_eq!(
            rate_basis(&planned, &slices)[&STRATUM],
            RateBasis::Undisturbed
        );
        slices[5].undisturbed_s = 0.014;
        assert_eq!(rate_basis(&planned, &slices)[&STRATUM], RateBasis::AllTime);
        // Where it is known who else had the CPUs, their time is left out all the same.
        for slice in &mut slices {
            slice.contention = Some(Contention {
                competing_s: 0.05,
                alone_s: 0.05,
                alone_frames: 0,
            });
        }
        assert_eq!(rate_basis(&planned, &slices)[&STRATUM], RateBasis::Alone);
        for slice in &mut slices[..3] {
            slice.contention = Some(Contention::default());
        }
        assert_eq!(rate_basis(&planned, &slices)[&STRATUM], RateBasis::AllTime);
    }
}
