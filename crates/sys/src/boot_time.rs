//! A clock that goes on while the machine is suspended.

use std::ops::{Add, Sub};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A moment on the clock of the time since boot.
///
/// [`std::time::Instant`] stops while the machine is suspended, so that readings before and after do not show that
/// nothing ran in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(Duration);

impl BootTime {
    /// Now.
    ///
    /// # Panics
    /// Never: every kernel that this runs on has the clock.
    #[must_use]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("Linux has the clock since 2.6.39");
        Self(now.into())
    }

    /// The time since then.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Self::now() - self
    }
}

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0 + time)
    }
}

/// No time at all where the other is later.
impl Sub for BootTime {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_follow_one_another() {
        let first = BootTime::now();
        let later = first + Duration::from_millis(3);
        assert_eq!(later - first, Duration::from_millis(3));
        assert_eq!(first - later, Duration::ZERO);
        assert!(BootTime::now() >= first);
        assert!(first.elapsed() < Duration::from_secs(3600));
    }
}
