//! Looks at the load, and the times between them.

use std::time::Duration;

use fwdlab_sys::BootTime;

/// One look at the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// On a clock that goes on while this machine is suspended.
    pub(crate) at: BootTime,
    pub(crate) forwarded_frames: u64,
    pub(crate) loop_ns: u64,
    /// Time that others took of the load's CPUs so far; only differences within a watch mean anything.
    pub(crate) taken: Duration,
}

/// The longest time from one sample to the next.
///
/// Shape: at least two samples.
pub(crate) fn longest_gap(samples: &[Sample]) -> Duration {
    gaps(samples).max().unwrap_or_default()
}

/// The usual time from one sample to the next in some slices; none where there are none.
pub(crate) fn usual_gap(samples: &[Vec<Sample>]) -> Duration {
    let all = samples.iter().flat_map(|samples| gaps(samples));
    let all: Vec<f64> = all.map(|gap| gap.as_secs_f64()).collect();
    fwdlab_stats::median(&all).map_or(Duration::ZERO, Duration::from_secs_f64)
}

/// The times from each sample to the next.
pub(crate) fn gaps(samples: &[Sample]) -> impl Iterator<Item = Duration> + '_ {
    samples.windows(2).map(|pair| pair[1].at - pair[0].at)
}
