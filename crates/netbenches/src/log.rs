//! What a bench's log says, without its samples.

use fwdlab_pkt_gen::{
    Command, Ending, PktGenError, PktGenLog, PublishedMedian, Role, Sample, SteadyState, Summary,
    UnknownLine, published_observation, steady_state,
};
use fwdlab_stats::median;

use crate::Fingerprint;

/// A log of pkt-gen, read and reckoned.
#[derive(Clone, Debug, PartialEq)]
pub struct LogFacts {
    /// Which side it is of, by what it holds.
    pub role: Role,
    /// The line that says so.
    pub role_line: usize,
    /// Tells it from any other log.
    pub fingerprint: Fingerprint,
    /// The command, where the log holds it.
    pub command: Option<Command>,
    /// What was reported in the end.
    pub summary: Option<Summary>,
    /// How the log ends.
    pub ending: Ending,
    /// How many lines there are.
    pub lines: usize,
    /// The number that the archive's own script makes of it, as that prints it.
    pub published: Published,
    /// The rate while its load lasted; none where that was too short.
    pub steady: Option<SteadyState>,
    /// Its samples, counted.
    pub samples: SampleCounts,
    /// When its load was there; none without any packet.
    pub load: Option<Load>,
    /// The first lines of no known kind.
    pub unknown: Vec<UnknownLine>,
    /// How many of these there are.
    pub unknown_lines: usize,
}

/// What the archive's script makes of a log, in packets per second; none where it makes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// With today's median.
    pub averaged: Option<String>,
    /// With ministat's median before the end of 2015.
    pub upper: Option<String>,
}

impl Published {
    /// That of one median.
    #[must_use]
    pub fn with(&self, median: PublishedMedian) -> Option<&str> {
        match median {
            PublishedMedian::Averaged => self.averaged.as_deref(),
            PublishedMedian::Upper => self.upper.as_deref(),
        }
    }
}

/// How many samples of a log are what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// All.
    pub all: usize,
    /// Without any packet.
    pub empty: usize,
    /// Without any packet, between two that had some: a stall, which the archive's script leaves out.
    pub empty_inside: usize,
    /// The line of the first of these.
    pub first_empty_inside: Option<usize>,
}

/// When a log shows its load, and how much of it.
///
/// Times are in microseconds since the end of the first sample's interval, on the log's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Where it begins: with the first sample of at least half the median rate of those with packets, so that what
    /// trickles in beforehand is no part of it.
    pub start_us: i64,
    /// Where it ends: with the last such sample.
    pub end_us: i64,
    /// Where the log ends.
    pub log_end_us: i64,
    /// The time of the samples with packets.
    pub with_packets_us: u64,
    /// Packets in all.
    pub packets: u64,
}

impl Load {
    fn of(samples: &[Sample]) -> Option<Self> {
        let with_packets: Vec<&Sample> = samples
            .iter()
            .filter(|sample| sample.packets > 0 && sample.interval_us > 0)
            .collect();
        let rates: Vec<f64> = with_packets
            .iter()
            .map(|sample| sample.rate_pps())
            .collect();
        let half = median(&rates)? / 2.0;
        let mut full = with_packets
            .iter()
            .filter(|sample| sample.rate_pps() >= half);
        let first = full.next()?;
        let last = full.next_back().unwrap_or(first);
        let end_us = |sample: &Sample| i64::try_from(sample.end_us).unwrap_or(i64::MAX);
        let sum = |of: fn(&Sample) -> u64| {
            let mut sum: u64 = 0;
            for sample in &with_packets {
                sum = sum.saturating_add(of(sample));
            }
            sum
        };
        Some(Self {
            start_us: first.start_us(),
            end_us: end_us(last),
            log_end_us: end_us(samples.last()?),
            with_packets_us: sum(|sample| sample.interval_us),
            packets: sum(|sample| sample.packets),
        })
    }

    /// How long it lasted, in seconds.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        seconds(self.end_us.saturating_sub(self.start_us))
    }

    /// How long the log goes on from its beginning, whatever came, in seconds.
    #[must_use]
    pub fn covered_s(&self) -> f64 {
        seconds(self.log_end_us.saturating_sub(self.start_us))
    }
}

fn seconds(us: i64) -> f64 {
    us as f64 / 1e6
}

impl SampleCounts {
    fn of(samples: &[Sample]) -> Self {
        let is_empty = |sample: &&Sample| sample.packets == 0;
        let full = |sample: &Sample| sample.packets > 0;
        let inside = samples
            .iter()
            .position(full)
            .zip(samples.iter().rposition(full))
            .map_or(&samples[..0], |(first, last)| &samples[first..=last]);
        let first_empty_inside = inside.iter().find(is_empty).map(|sample| sample.line);
        Self {
            all: samples.len(),
            empty: samples.iter().filter(is_empty).count(),
            empty_inside: inside.iter().filter(is_empty).count(),
            first_empty_inside,
        }
    }
}

impl LogFacts {
    /// Reads a log and reckons what the archive publishes of it.
    ///
    /// # Errors
    /// [`PktGenError`] where it is no log of a sender or receiver.
    pub fn parse(text: &[u8]) -> Result<Self, PktGenError> {
        let log = PktGenLog::parse(text)?;
        let published = match log.role {
            Role::Receiver => Published {
                averaged: published_observation(text, PublishedMedian::Averaged),
                upper: published_observation(text, PublishedMedian::Upper),
            },
            Role::Sender => Published::default(),
        };
        Ok(Self {
            fingerprint: Fingerprint::of(text),
            published,
            load: Load::of(&log.samples),
            steady: steady_state(&log),
            samples: SampleCounts::of(&log.samples),
            role: log.role,
            role_line: log.role_line,
            command: log.command,
            summary: log.summary,
            ending: log.ending,
            lines: log.lines,
            unknown: log.unknown,
            unknown_lines: log.unknown_lines,
        })
    }

    /// The mean rate over its steady state, in packets per second.
    #[must_use]
    pub fn steady_pps(&self) -> Option<f64> {
        self.steady.as_ref().map(SteadyState::mean_pps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(rates: &[u64]) -> LogFacts {
        let mut text = "CMD: pkt-gen -f rx -i ix1\n".to_owned();
        for (second, rate) in rates.iter().enumerate() {
            text += &format!(
                "{second:03}.000000 main_thread [1441] {rate} pps ({rate} pkts in 1000000 usec)\n"
            );
        }
        LogFacts::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn stalls_inside_are_told_from_silence_before_and_after() {
        let counts = log(&[0, 0, 50, 100, 0, 100, 40, 100, 100, 3, 0]).samples;
        assert_eq!(
            counts,
            SampleCounts {
                all: 11,
                empty: 4,
                empty_inside: 1,
                first_empty_inside: Some(6),
            }
        );
        assert_eq!(log(&[0, 0]).samples.empty_inside, 0);
    }
}
