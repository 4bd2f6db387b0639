//! Which part of a slice was left undisturbed, as a calibration loop on the load CPU tells.
//!
//! A neighbour that the load knows nothing of, on the other thread of its core or elsewhere on the
//! host, takes part of the core away for milliseconds at a time. A short loop that keeps the core's
//! arithmetic units busy then takes longer, by a half and more. The loop knows nothing of the frames,
//! so that leaving out what it calls disturbed favours no forwarding rate.
//!
//! Where another program has the load CPU, the loop runs at full speed, as the thread that runs it goes
//! before both. Time that others took is told by the scheduler, which knows no frames either.

/// The undisturbed time of the loop is the one that one of so many loops undercuts: not the very
/// fastest, which a clock's error may have shortened.
const LOOPS_PER_FASTER_ONE: usize = 100;

/// A loop that takes longer than this times its undisturbed time was disturbed.
pub const DISTURBED_RATIO: f64 = 1.02;

/// Others that took more of the time between two samples than this part of it disturbed the load.
pub const COMPETING_RATIO: f64 = 0.01;

/// A disturbed sample speaks against this many samples on both its sides: what disturbs comes in bursts
/// that may fall between two samples, and leaves cold caches behind.
const GUARD_SAMPLES: usize = 1;

/// One look at the load, taken on the load CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// When.
    ///
    /// Units: seconds since any fixed moment.
    pub at_s: f64,
    /// Frames that had reached the sink.
    pub forwarded_frames: u64,
    /// How long the calibration loop took then.
    pub loop_ns: u64,
    /// Time that others took of the load's CPUs.
    ///
    /// Units: seconds since any fixed moment; 0 in all samples where nobody could tell.
    pub competing_s: f64,
}

/// A part of a slice: what was left undisturbed of it, for example.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SlicePart {
    /// Frames that reached the sink in it.
    pub forwarded_frames: u64,
    /// How long it was.
    pub duration_s: f64,
}

/// The calibration loop's time where nothing disturbs it, from the loops of a whole block.
///
/// Shape: any order. `None` without loops.
#[must_use]
pub fn undisturbed_loop_ns(loops_ns: &[u64]) -> Option<f64> {
    let mut sorted = loops_ns.to_vec();
    sorted.sort_unstable();
    sorted
        .get(sorted.len() / LOOPS_PER_FASTER_ONE)
        .map(|&time| time as f64)
}

/// The part of a slice that lies between samples that were undisturbed, as were those next to them, and in which nobody
/// else had the load's CPUs.
///
/// Shape: samples in the order of their time, the first and the last at the slice's edges.
#[must_use]
pub fn undisturbed(samples: &[Sample], undisturbed_loop_ns: f64) -> SlicePart {
    let longest_ns = undisturbed_loop_ns * DISTURBED_RATIO;
    let mut sum = SlicePart::default();
    for end in 1..samples.len() {
        let first = end.saturating_sub(1 + GUARD_SAMPLES);
        let around = &samples[first..samples.len().min(end + 1 + GUARD_SAMPLES)];
        let (start, end) = (samples[end - 1], samples[end]);
        if is_alone(start, end)
            && around
                .iter()
                .all(|sample| sample.loop_ns as f64 <= longest_ns)
        {
            sum.forwarded_frames += end.forwarded_frames - start.forwarded_frames;
            sum.duration_s += end.at_s - start.at_s;
        }
    }
    sum
}

/// The part of a slice in which nobody else had the load's CPUs.
///
/// Shape: samples in the order of their time, the first and the last at the slice's edges.
#[must_use]
pub fn alone(samples: &[Sample]) -> SlicePart {
    let mut sum = SlicePart::default();
    for pair in samples.windows(2).filter(|pair| is_alone(pair[0], pair[1])) {
        sum.forwarded_frames += pair[1].forwarded_frames - pair[0].forwarded_frames;
        sum.duration_s += pair[1].at_s - pair[0].at_s;
    }
    sum
}

fn is_alone(start: Sample, end: Sample) -> bool {
    end.competing_s - start.competing_s <= (end.at_s - start.at_s) * COMPETING_RATIO
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn samples(loops_ns: &[u64]) -> Vec<Sample> {
        (0_u32..)
            .zip(loops_ns)
            .map(|(number, &loop_ns)| Sample {
                at_s: f64::from(number),
                forwarded_frames: u64::from(number) * 1000,
                loop_ns,
                competing_s: 0.0,
            })
            .collect()
    }

    #[test]
    fn the_undisturbed_loop_is_among_the_fastest() {
        assert_eq!(undisturbed_loop_ns(&[]), None);
        assert_eq!(undisturbed_loop_ns(&[700]), Some(700.0));
        let mut loops_ns = vec![1100; 900];
        loops_ns.extend([690; 99]);
        // One that a clock's error shortened.
        loops_ns.push(10);
        assert_eq!(undisturbed_loop_ns(&loops_ns), Some(690.0));
    }

    #[test]
    fn a_disturbed_sample_takes_what_lies_around_it() {
        let frames = |loops_ns: &[u64]| {
            let part = undisturbed(&samples(loops_ns), 1000.0);
            assert_eq!(part.forwarded_frames as f64, part.duration_s * 1000.0);
            part.forwarded_frames / 1000
        };
        assert_eq!(frames(&[1000, 1020, 1000, 1000]), 3);
        assert_eq!(frames(&[1000, 1000, 1000, 1021]), 1);
        assert_eq!(
            frames(&[1000, 1000, 1000, 1000, 1500, 1000, 1000, 1000, 1000]),
            4
        );
        assert_eq!(frames(&[1000, 1500, 1000]), 0);
        assert_eq!(frames(&[1000]), 0);
        assert_eq!(frames(&[]), 0);
    }

    #[test]
    fn time_that_others_took_is_left_out() {
        let mut samples = samples(&[1000; 6]);
        for (sample, competing_s) in samples.iter_mut().zip([0.0, 0.0, 0.5, 0.505, 0.53, 0.53]) {
            sample.competing_s = competing_s;
        }
        // From 1 to 2 half of the time, from 3 to 4 two hundredths of it.
        let part = undisturbed(&samples, 1000.0);
        assert_eq!((part.forwarded_frames, part.duration_s), (3000, 3.0));
        assert_eq!(alone(&samples), part);
        // The loop does not decide who else was there.
        samples[5].loop_ns = 1500;
        assert_eq!(alone(&samples), part);
        assert_eq!(undisturbed(&samples, 1000.0).forwarded_frames, 2000);
    }

    proptest! {
        #[test]
        fn parts_are_never_more_than_the_whole(
            loops_ns in prop::collection::vec(600_u64..1500, 2..200),
        ) {
            let samples = samples(&loops_ns);
            let reference_ns = undisturbed_loop_ns(&loops_ns).unwrap();
            let part = undisturbed(&samples, reference_ns);
            let last = samples.last().unwrap();
            prop_assert!(part.duration_s <= last.at_s);
            prop_assert!(part.forwarded_frames <= last.forwarded_frames);
            // Nothing is disturbed by a reference that no loop exceeds.
            let all = undisturbed(&samples, 1500.0);
            prop_assert_eq!(all.forwarded_frames, last.forwarded_frames);
        }
    }
}
