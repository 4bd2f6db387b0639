//! A clock that goes on while the machine is suspended, and whether another was set meanwhile.

use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime};

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

/// A moment on the clock of the time since boot and on the wall clock, which may be set.
#[derive(Clone, Copy, Debug)]
pub struct BothClocks {
    boot_time: BootTime,
    wall_clock: SystemTime,
}

impl BothClocks {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self {
            boot_time: BootTime::now(),
            wall_clock: SystemTime::now(),
        }
    }

    /// The time since then.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.boot_time.elapsed()
    }

    /// By how much the wall clock was set since then, in seconds, to the millisecond, forward where positive; none where
    /// it went on like the other, but for what keeps it right.
    #[must_use]
    pub fn step_s(self) -> Option<f64> {
        const SLEWED_MAX_S: f64 = 0.5;
        let passed_s = match self.wall_clock.elapsed() {
            Ok(forward) => forward.as_secs_f64(),
            Err(backward) => -backward.duration().as_secs_f64(),
        };
        let step_s = passed_s - self.elapsed().as_secs_f64();
        (step_s.abs() > SLEWED_MAX_S).then(|| (step_s * 1e3).round() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_told() {
        let hour = Duration::from_secs(3600);
        let now = BothClocks::now();
        assert_eq!(now.step_s(), None);
        let at = |wall_clock| BothClocks { wall_clock, ..now };
        let forward = at(now.wall_clock - hour).step_s().unwrap();
        assert!((forward - 3600.0).abs() < 1.0, "{forward}");
        let backward = at(now.wall_clock + hour).step_s().unwrap();
        assert!((backward + 3600.0).abs() < 1.0, "{backward}");
    }

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
