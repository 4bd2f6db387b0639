//! How fast the load's CPUs were clocked, and whether they were throttled, where the machine says.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;

use fwdlab_model::CpuSpeed;

/// Files of a CPU that count how often it was slowed down because something was too hot.
const THROTTLED: [&str; 2] = [
    "thermal_throttle/core_throttle_count",
    "thermal_throttle/package_throttle_count",
];

const FREQUENCY: &str = "cpufreq/scaling_cur_freq";

/// What was seen of some CPUs since it was opened.
pub(crate) struct SpeedLog {
    of: BTreeMap<u32, Seen>,
}

#[derive(Default)]
struct Seen {
    khz: Option<RangeInclusive<u64>>,
    throttled_before: u64,
    throttled: u64,
}

impl SpeedLog {
    /// From now on.
    pub(crate) fn start(cpus: &[u32]) -> Self {
        Self::start_by(cpus, read)
    }

    fn start_by(cpus: &[u32], read: impl Fn(&str) -> Option<String>) -> Self {
        let of = cpus.iter().map(|&cpu| {
            let seen = Seen {
                throttled_before: throttled(cpu, &read),
                ..Seen::default()
            };
            (cpu, seen)
        });
        Self { of: of.collect() }
    }

    /// Looks, while the CPUs are under load.
    pub(crate) fn look(&mut self) {
        self.look_by(read);
    }

    fn look_by(&mut self, read: impl Fn(&str) -> Option<String>) {
        for (&cpu, seen) in &mut self.of {
            seen.throttled = throttled(cpu, &read).saturating_sub(seen.throttled_before);
            if let Some(khz) = number(&read, cpu, FREQUENCY) {
                let (low, high) = seen
                    .khz
                    .take()
                    .map_or((khz, khz), RangeInclusive::into_inner);
                seen.khz = Some(low.min(khz)..=high.max(khz));
            }
        }
    }

    /// For a record; nothing of CPUs of which the machine says nothing.
    pub(crate) fn finish(self) -> Vec<CpuSpeed> {
        let told = self.of.into_iter().filter_map(|(cpu, seen)| {
            let khz = seen.khz.map(RangeInclusive::into_inner);
            (khz.is_some() || seen.throttled > 0).then_some(CpuSpeed {
                cpu,
                lowest_khz: khz.map(|khz| khz.0),
                highest_khz: khz.map(|khz| khz.1),
                throttled: seen.throttled,
            })
        });
        told.collect()
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn throttled(cpu: u32, read: &impl Fn(&str) -> Option<String>) -> u64 {
    THROTTLED
        .iter()
        .filter_map(|file| number(read, cpu, file))
        .sum()
}

fn number(read: &impl Fn(&str) -> Option<String>, cpu: u32, file: &str) -> Option<u64> {
    read(&format!("/sys/devices/system/cpu/cpu{cpu}/{file}"))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine as the kernel's `Documentation/admin-guide/pm/cpufreq.rst` and
    /// `Documentation/ABI/testing/sysfs-devices-system-cpu` describe its files.
    fn machine(khz: u64, throttled: u64) -> impl Fn(&str) -> Option<String> {
        move |path| {
            let file = path.strip_prefix("/sys/devices/system/cpu/cpu2/")?;
            match file {
                "cpufreq/scaling_cur_freq" => Some(format!("{khz}\n")),
                "thermal_throttle/core_throttle_count" => Some(format!("{throttled}\n")),
                "thermal_throttle/package_throttle_count" => Some("5\n".to_owned()),
                _ => None,
            }
        }
    }

    #[test]
    fn a_cpu_that_was_slowed_down_is_told() {
        let mut log = SpeedLog::start_by(&[1, 2], machine(3_400_000, 7));
        log.look_by(machine(3_400_000, 7));
        log.look_by(machine(1_200_000, 19));
        log.look_by(machine(2_000_000, 19));
        let expected = CpuSpeed {
            cpu: 2,
            lowest_khz: Some(1_200_000),
            highest_khz: Some(3_400_000),
            throttled: 12,
        };
        // CPU 1 says nothing.
        assert_eq!(log.finish(), [expected]);
    }

    #[test]
    fn where_nothing_is_told_nothing_is_recorded() {
        let mut log = SpeedLog::start_by(&[0], |_| None);
        log.look_by(|_| Some("none".to_owned()));
        assert_eq!(log.finish(), []);
    }
}
