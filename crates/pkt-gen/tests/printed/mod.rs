//! What pkt-gen prints at its intervals, by a model of its own functions, and what the reader makes of it.

use fwdlab_pkt_gen::{PktGenLog, Sample};

/// How many rates `-A` looks back at.
const STATS_WIN: usize = 15;
const USUAL_INTERVAL_US: u64 = 1_000_000;

/// The versions by what they add to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    /// The rate, and no time in front of it.
    Rate,
    Time,
    Packets,
    Batch,
    Space,
}

/// Packets that went by, and in how many microseconds.
#[derive(Clone, Copy, Debug)]
struct Interval {
    packets: u64,
    us: u64,
}

impl Interval {
    /// The rate as `main_thread` calculates it.
    fn pps(self) -> u64 {
        (self.packets * 1_000_000 + self.us / 2) / self.us
    }
}

/// A run of pkt-gen: its version, its options and what it counts.
#[derive(Debug)]
pub(crate) struct Run {
    version: Version,
    /// Without `-N`, from the version on that has it.
    normalizes: bool,
    /// `-A`.
    has_statistics: bool,
    has_carriage_returns: bool,
    intervals: Vec<Interval>,
}

impl Run {
    /// Whatever the bytes, a run: rates from 0.001 pps to 200 Mpps and stalls, intervals from 10 ms to 2000 s.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let (options, bytes) = bytes.split_first().unwrap_or((&0, &[]));
        let versions = [
            Version::Rate,
            Version::Time,
            Version::Packets,
            Version::Batch,
            Version::Space,
        ];
        let version = versions[usize::from(options % 8).min(versions.len() - 1)];
        let interval = |chunk: &[u8; 5]| {
            let [stall, rate_high, rate_low, us_high, us_low] = *chunk;
            // About even on a scale of logarithms.
            let times = |min: u64, high: u8, low: u8| (min * (256 + u64::from(low))) << high >> 8;
            // What is not printed has to follow from the clock, which shows seconds modulo 1000.
            let us = match version {
                Version::Rate => USUAL_INTERVAL_US,
                Version::Time => times(10_000, us_high % 16, us_low).min(400_000_000),
                _ => times(10_000, us_high % 18, us_low).min(2_000_000_000),
            };
            let thousandths = times(1, rate_high % 38, rate_low).min(200_000_000_000);
            let packets = u128::from(thousandths) * u128::from(us) / 1_000_000_000;
            let packets = u64::try_from(packets).expect("as many as go by in 2000 s");
            Interval {
                packets: if stall == 0 { 0 } else { packets },
                us,
            }
        };
        Self {
            version,
            normalizes: version >= Version::Batch && options & 8 == 0,
            has_statistics: version >= Version::Space && options & 16 == 0,
            has_carriage_returns: options & 32 != 0,
            intervals: bytes.as_chunks().0.iter().map(interval).collect(),
        }
    }

    /// Prints the run and reads it back: no report is lost, and each is right to the digits that are printed.
    pub(crate) fn is_read_back(&self) {
        let text = self.text();
        let log = PktGenLog::parse(text.as_bytes()).expect("a log");
        assert_eq!(log.unknown, [], "{text}");
        assert_eq!(log.samples.len(), self.intervals.len(), "{text}");
        let mut end_us = 0;
        for (index, (sample, interval)) in log.samples.iter().zip(&self.intervals).enumerate() {
            end_us += if index > 0 { interval.us } else { 0 };
            let line = text.lines().nth(sample.line - 1).expect("its line");
            self.is_right(sample, *interval, index == 0, line);
            assert_eq!(sample.end_us, end_us, "{line}");
        }
    }

    fn is_right(&self, sample: &Sample, interval: Interval, is_first: bool, line: &str) {
        // Half of the last digit that is printed.
        let printed = |value: u64| match value {
            _ if !self.normalizes => 0,
            0..1_000 => 0,
            1_000..1_000_000 => 1,
            1_000_000..1_000_000_000 => 500,
            1_000_000_000..1_000_000_000_000 => 500_000,
            _ => 500_000_000,
        };
        let is_near = |read: u64, value: u64| {
            let apart = read.abs_diff(value);
            assert!(apart <= printed(value), "{read}, {value}: {line}");
        };
        is_near(sample.printed_pps, interval.pps());
        if self.version < Version::Packets {
            let us = if is_first {
                USUAL_INTERVAL_US
            } else {
                interval.us
            };
            assert_eq!(sample.interval_us, us, "{line}");
            let packets = (interval.pps() * us + 500_000) / 1_000_000;
            assert_eq!(sample.packets, packets, "{line}");
            return;
        }
        assert_eq!(sample.interval_us, interval.us, "{line}");
        is_near(sample.packets, interval.packets);
        let details = sample.details.filter(|_| self.version >= Version::Batch);
        assert_eq!(details, sample.details, "{line}");
        if let Some(details) = details {
            is_near(details.bits_per_second, interval.packets * 480);
            assert_eq!(
                details.free_slots_min.is_some(),
                self.version >= Version::Space
            );
        }
    }

    fn text(&self) -> String {
        let end = if self.has_carriage_returns {
            "\r\n"
        } else {
            "\n"
        };
        let mut text = format!("CMD: pkt-gen -f rx -i ix0{end}");
        let (mut window, mut now_us) = ([0; STATS_WIN], 999_000_000);
        for (index, interval) in self.intervals.iter().enumerate() {
            now_us += interval.us;
            window[index % STATS_WIN] = interval.pps();
            if self.version >= Version::Time {
                text += &format!(
                    "{:03}.{:06} ",
                    now_us / 1_000_000 % 1000,
                    now_us % 1_000_000
                );
            }
            text += "main_thread [2786] ";
            text += &self.report(*interval, &window);
            text += end;
        }
        text
    }

    fn report(&self, interval: Interval, window: &[u64]) -> String {
        let norm = |value: f64| norm(value, self.normalizes);
        let (pps, packets) = (interval.pps(), interval.packets);
        match self.version {
            Version::Rate | Version::Time => return format!("{pps} pps"),
            Version::Packets => {
                return format!("{pps} pps ({packets} pkts in {} usec)", interval.us);
            }
            Version::Batch | Version::Space => {}
        }
        let mut statistics = String::new();
        if self.has_statistics {
            let rates = window.iter().filter(|rate| **rate > 0);
            let count = rates.clone().count() as f64;
            let mean = rates.clone().sum::<u64>() as f64 / count;
            let squares: f64 = rates.map(|&rate| (rate as f64 - mean).powi(2)).sum();
            let deviation = (squares / count).sqrt();
            statistics = format!("[avg/std {}/{} pps]", norm(mean), norm(deviation));
        }
        let mut text = format!(
            "{}pps {statistics}({}pkts {}bps in {} usec) {:.2} avg_batch",
            norm(pps as f64),
            norm(packets as f64),
            norm(packets as f64 * 480.0),
            interval.us,
            2.95
        );
        if self.version >= Version::Space {
            text += " 99999 min_space";
        }
        text
    }
}

/// `norm()` and `norm2()` of pkt-gen.
fn norm(mut value: f64, normalizes: bool) -> String {
    if value.is_nan() {
        return "-nan ".to_owned();
    }
    if !normalizes {
        return format!("{value:.0} ");
    }
    let (units, mut unit) = (["", "K", "M", "G", "T"], 0);
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.3} {}", units[unit])
}
