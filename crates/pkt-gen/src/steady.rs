//! The rate of a log while nothing starts and nothing ends.

use fwdlab_stats::{Spread, lag_1_autocorrelation, median};

use crate::{PktGenLog, Sample};

/// What is left out at the beginning of a blast: queues and caches fill, a link may still settle.
const MARGIN_BEGIN_US: u64 = 3_000_000;
/// What is left out at its end.
const MARGIN_END_US: u64 = 2_000_000;

/// The core of a blast: what was sent or received while nothing started and nothing ended.
///
/// Of a receiver it is the forwarding rate, of a sender the offered load, each over the core of the
/// log's own blast: the two run on clocks that need not agree, so that the one cannot be cut to the
/// other's seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// When the first sample of the core begins, since the first sample of the log ended.
    pub start_us: i64,
    /// How long its blast lasted, from the end of its first sample to that of its last.
    pub blast_us: u64,
    /// How many samples are in it, one or more.
    pub samples: usize,
    /// Their time.
    pub duration_us: u64,
    /// Their packets.
    pub packets: u64,
    /// The median of their rates, in packets per second; stalls hardly move it.
    pub median_pps: f64,
    /// The standard deviation of their rates, in packets per second; 0 for one sample.
    pub deviation_pps: f64,
    /// The correlation of each rate with the next one; none where they are few, or do not vary.
    pub autocorrelation: Option<f64>,
    /// How many of them are below half the rate of the blast.
    pub stalls: usize,
}

impl SteadyState {
    /// Packets over time, in packets per second; a stall counts.
    #[must_use]
    pub fn mean_pps(&self) -> f64 {
        self.packets as f64 * 1e6 / self.duration_us as f64
    }
}

/// The steady state of a log; `None` where its blast is too short to have a core, or its sums pass 2^64.
///
/// The blast reaches from the first to the last sample of at least half the median rate of the samples
/// that carried packets at all: what trickles in while a link comes up, and the second in which
/// the load ends, are outside. Of the blast 3 s at the beginning and 2 s at the end are left out, and
/// with them every sample that reaches into these. All others count, empty ones too: that a device
/// stood still in the middle is part of its rate.
#[must_use]
pub fn steady_state(log: &PktGenLog) -> Option<SteadyState> {
    let rates: Vec<f64> = log
        .samples
        .iter()
        .filter(|sample| sample.packets > 0 && sample.interval_us > 0)
        .map(Sample::rate_pps)
        .collect();
    let half = median(&rates)? / 2.0;
    let is_full = |sample: &Sample| sample.rate_pps() >= half && sample.packets > 0;
    let first = log.samples.iter().position(is_full)?;
    let last = log.samples.iter().rposition(is_full)?;
    let blast = &log.samples[first..=last];
    let from_us = blast[0].start_us().saturating_add_unsigned(MARGIN_BEGIN_US);
    let to_us = blast[blast.len() - 1].end_us.checked_sub(MARGIN_END_US)?;
    let core: Vec<&Sample> = blast
        .iter()
        .filter(|sample| sample.start_us() >= from_us && sample.end_us <= to_us)
        .filter(|sample| sample.interval_us > 0)
        .collect();
    let rates: Vec<f64> = core.iter().map(|sample| sample.rate_pps()).collect();
    let sum = |of: fn(&Sample) -> u64| core.iter().copied().map(of).try_fold(0, u64::checked_add);
    Some(SteadyState {
        start_us: core.first()?.start_us(),
        samples: core.len(),
        blast_us: blast[blast.len() - 1]
            .end_us
            .saturating_sub(blast[0].end_us),
        duration_us: sum(|sample| sample.interval_us)?,
        packets: sum(|sample| sample.packets)?,
        median_pps: median(&rates)?,
        deviation_pps: Spread::new(&rates)
            .ok()?
            .map_or(0.0, |spread| spread.standard_deviation),
        autocorrelation: lag_1_autocorrelation(&[rates.iter().copied().map(Some).collect()])
            .ok()?,
        stalls: rates.iter().filter(|rate| **rate < half).count(),
    })
}
