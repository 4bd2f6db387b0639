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
