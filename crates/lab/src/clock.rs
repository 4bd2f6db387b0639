//! The time of day, and waiting for a bounded time.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::LabError;

/// How long frames may be under way after the generator has stopped.
const DRAIN_MS_MAX: u64 = 200;

/// A moment in UTC, as records have it.
pub(crate) fn utc(moment: jiff::Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

pub(crate) fn sleep_until(deadline: Instant) {
    sleep(deadline.saturating_duration_since(Instant::now()));
}

/// Sleeps until a time has passed since a moment.
///
/// Where this process slept for longer, it may have been stopped, and what was to settle in that time with it: it sleeps
/// anew then, some times.
pub(crate) fn settle(since: Instant, length: Duration) {
    const ATTEMPTS: u32 = 3;
    const LATE_MAX: Duration = Duration::from_millis(20);
    let mut end = since + length;
    for _ in 0..ATTEMPTS {
        sleep_until(end);
        let now = Instant::now();
        if now.saturating_duration_since(end) <= LATE_MAX {
            break;
        }
        end = now + length;
    }
}

/// Reads until it is enough, for a bounded time.
pub(crate) fn settled<T>(
    mut read: impl FnMut() -> Result<T, LabError>,
    is_enough: impl Fn(&T) -> bool,
) -> Result<T, LabError> {
    const STEP_MS: u64 = 5;
    let mut last = read()?;
    for _ in 0..DRAIN_MS_MAX / STEP_MS {
        if is_enough(&last) {
            break;
        }
        sleep(Duration::from_millis(STEP_MS));
        last = read()?;
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_passed_while_nobody_looked_is_slept_anew() {
        let length = Duration::from_millis(30);
        let stopped = Instant::now().checked_sub(Duration::from_secs(5)).unwrap();
        let start = Instant::now();
        settle(stopped, length);
        assert!(start.elapsed() >= length);
        let start = Instant::now();
        settle(start, length);
        assert!(start.elapsed() >= length);
    }
}
