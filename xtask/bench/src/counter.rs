//! Counters read against the clock.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a load may take until its first frame is counted: trafgen compiles its configuration.
const FIRST_FRAME_MS_MAX: u64 = 10_000;

/// A reading whose moment is not known to this precision is read again, a few times.
const READING_US_MAX: u64 = 20;
const READINGS_MAX: u32 = 10;

/// What a counter said, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    pub(crate) frames: u64,
}

impl Reading {
    /// Reads a counter between two looks at the clock, again where this thread was interrupted.
    pub(crate) fn of(frames: &dyn Fn() -> Result<u64>) -> Result<Self> {
        let mut best: Option<(Duration, Self)> = None;
        for _ in 0..READINGS_MAX {
            let before = Instant::now();
            let frames = frames()?;
            let took = before.elapsed();
            if best.is_none_or(|(shortest, _)| took < shortest) {
                let at = before + took / 2;
                best = Some((took, Self { at, frames }));
            }
            if took <= Duration::from_micros(READING_US_MAX) {
                break;
            }
        }
        best.map(|(_, reading)| reading)
            .context("a counter is read at least once")
    }

    /// Frames per second from an earlier reading to this one.
    pub(crate) fn rate_pps_since(self, earlier: Self) -> f64 {
        as_f64(self.frames - earlier.frames) / (self.at - earlier.at).as_secs_f64()
    }
}

/// When to look at a counter of frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// After the first frame, before the count.
    pub(crate) settle: Duration,
    pub(crate) length: Duration,
}

impl Window {
    /// Frames per second inside the window of a load that was just started.
    ///
    /// # Errors
    /// No frame comes, or the counter cannot be read.
    pub(crate) fn rate_pps(self, frames: &dyn Fn() -> Result<u64>) -> Result<f64> {
        let frames_before = frames()?;
        let deadline = Instant::now() + Duration::from_millis(FIRST_FRAME_MS_MAX);
        while frames()? == frames_before {
            if Instant::now() > deadline {
                bail!("no frame arrived within {FIRST_FRAME_MS_MAX} ms");
            }
            sleep(Duration::from_millis(1));
        }
        sleep(self.settle);
        let start = Reading::of(frames)?;
        sleep(self.length);
        Ok(Reading::of(frames)?.rate_pps_since(start))
    }
}

/// Time that the hypervisor took from a CPU since boot, in the kernel's ticks of 10 ms.
pub(crate) fn steal_ticks(cpu: u32) -> Result<u64> {
    let stat = fs::read_to_string("/proc/stat").context("/proc/stat")?;
    parse_steal(&stat, cpu).with_context(|| format!("/proc/stat: no steal of CPU {cpu}"))
}

fn parse_steal(stat: &str, cpu: u32) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let mut fields = stat
        .lines()
        .map(str::split_ascii_whitespace)
        .find_map(|mut fields| (fields.next()? == name).then_some(fields))?;
    fields.nth(7)?.parse().ok()
}

/// Ticks of `/proc/stat` in seconds.
pub(crate) fn seconds(ticks: u64) -> f64 {
    as_f64(ticks) / 100.0
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of frames and ticks stay far below 2^53"
)]
pub(crate) fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number_of_the_cpu() {
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu1 0 0 0 0 0 0 0 42 0 0\ncpu11 0 0 0 0 0 0 0 7\n";
        assert_eq!(parse_steal(stat, 1), Some(42));
        assert_eq!(parse_steal(stat, 11), Some(7));
        assert_eq!(parse_steal(stat, 2), None);
    }

    #[test]
    fn a_rate_is_frames_over_time() {
        let at = Instant::now();
        let earlier = Reading { at, frames: 100 };
        let later = Reading {
            at: at + Duration::from_millis(500),
            frames: 1100,
        };
        assert!((later.rate_pps_since(earlier) - 2000.0).abs() < 1e-9);
    }
}
