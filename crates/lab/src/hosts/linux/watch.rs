//! How the CPUs of a Linux DUT are watched under the load: a script there that reads counters twice.

use std::collections::BTreeMap;

use fwdlab_model::CpuTimes;
use fwdlab_stats::as_f64;

use crate::hosts::cpu_watch::{CpuWatch, Look};
use crate::hosts::detached::{LOAD_AWAY_MAX, Window};
use crate::mechanism::step::owned;

/// Receiving and sending interface, frames that make a load, looks for it at most, settle window and length in
/// seconds. What it does until there is a load costs some forks a second; under it, it sleeps. A BusyBox built without
/// FANCY_SLEEP sleeps for whole seconds alone, and has `usleep` for less (coreutils/sleep.c).
const SCRIPT: &str = r#"
pause() { sleep "$1" 2>/dev/null || usleep "${1%.*}${1#*.}000"; }
in=/sys/class/net/$1/statistics/rx_packets
received() { cd "/sys/class/net/$1/statistics" && cat rx_packets rx_missed_errors rx_dropped; }
look() { cat /proc/uptime && received "$1" && received "$2" && grep ^cpu /proc/stat; }
read -r first < "$in" || exit 1
echo ready
left=$4
while read -r now < "$in" && [ $((now - first)) -lt "$3" ]; do
    [ "$left" -gt 0 ] || { echo "no load has come" >&2; exit 1; }
    left=$((left - 1))
    pause 0.020 || exit 1
done
pause "$5" && look "$1" "$2" && echo --- && pause "$6" && look "$1" "$2"
"#;

/// How many looks for a load fit into a second, at most.
const LOOKS_PER_SECOND: u64 = 50;

/// How many counters of frames that came in a look has: three of each port.
const COUNTERS: usize = 6;

/// How many a second Linux counts in `/proc/stat`, whatever its timers' frequency.
const TICKS_PER_SECOND: f64 = 100.0;

/// The command that watches from so many frames on.
pub(super) fn words(interfaces: [&str; 2], window: Window, load_frames_min: u32) -> Vec<String> {
    let [interface_in, interface_out] = interfaces;
    let looks = LOAD_AWAY_MAX.as_secs() * LOOKS_PER_SECOND;
    let seconds = |length: std::time::Duration| format!("{:.3}", length.as_secs_f64());
    owned(&[
        "sh",
        "-c",
        SCRIPT,
        "watch",
        interface_in,
        interface_out,
        &load_frames_min.to_string(),
        &looks.to_string(),
        &seconds(window.settle),
        &seconds(window.length),
    ])
}

/// What was watched; none where the output is something else.
pub(super) fn watched(text: &str) -> Option<CpuWatch> {
    CpuWatch::read(text, look)
}

/// `/proc/uptime`, frames received, frames sent, and the lines of `/proc/stat` that are of CPUs.
fn look(text: &str) -> Option<Look> {
    let mut lines = text.lines();
    let at_s = lines.next()?.split(' ').next()?.parse().ok()?;
    let received = lines.by_ref().take(COUNTERS);
    let received = received.map(|line| line.trim().parse::<u64>());
    let received: Vec<u64> = received.collect::<Result<_, _>>().ok()?;
    let times: BTreeMap<u32, CpuTimes> = lines.filter_map(of_cpu).collect();
    Some(Look {
        at_s,
        received_frames: received
            .iter()
            .try_fold(0_u64, |sum, &frames| sum.checked_add(frames))?,
        times: Some(times).filter(|times| !times.is_empty())?,
    })
}

/// A line of a CPU: user, nice, system, idle, iowait, irq, softirq, steal, in ticks; guests' time is in the first two.
fn of_cpu(line: &str) -> Option<(u32, CpuTimes)> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let &[user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks.as_slice() else {
        return None;
    };
    let seconds =
        |all: &[u64]| all.iter().map(|&ticks| as_f64(ticks)).sum::<f64>() / TICKS_PER_SECOND;
    let times = CpuTimes {
        watched_s: seconds(&[user, nice, system, idle, iowait, irq, softirq, steal]),
        busy_s: seconds(&[user, nice, system, irq, softirq]),
        interrupts_s: seconds(&[irq, softirq]),
        stolen_s: seconds(&[steal]),
    };
    Some((cpu, times))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const OUTPUT: &str = "\
100.00 180.00
1000
100
0
7
0
0
cpu  100 0 100 800 0 0 0 0 0 0
cpu0 50 0 50 400 0 0 0 0 0 0
cpu1 50 0 50 400 0 0 0 0 0 0
---
101.00 180.90
41000
10000
100
7
0
0
cpu  100 0 110 890 0 0 95 5 0 0
cpu0 50 0 55 400 0 0 90 5 0 0
cpu1 50 0 55 490 0 0 5 0 0 0
";

    #[test]
    fn a_busy_cpu_is_distinguished_from_an_idle_one() {
        let watch = watched(OUTPUT).unwrap();
        assert_eq!(watch.received_frames, 50_000);
        assert!((watch.time_s - 1.0).abs() < 1e-9);
        let of = |cpu: u32| {
            let CpuTimes {
                watched_s,
                busy_s,
                interrupts_s,
                stolen_s,
            } = watch.cpus[&cpu];
            [watched_s, busy_s, interrupts_s, stolen_s]
                .map(|seconds| format!("{:.0}", seconds * 100.0))
        };
        assert_eq!(of(0), ["100", "95", "90", "5"]);
        assert_eq!(of(1), ["100", "10", "5", "0"]);
    }

    fn assert_looks_twice(programs: &OsStr) {
        let window = Window {
            settle: Duration::from_millis(1),
            length: Duration::from_millis(30),
        };
        let words = words(["lo", "lo"], window, 0);
        let output = std::process::Command::new(&words[0])
            .args(&words[1..])
            .env("PATH", programs)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let looks = text
            .strip_prefix("ready\n")
            .unwrap_or_else(|| panic!("{text:?}"));
        let watch = watched(looks).unwrap_or_else(|| panic!("{text:?}"));
        assert!(!watch.cpus.is_empty());
    }

    #[test]
    fn the_script_looks_twice_when_frames_come() {
        assert_looks_twice(&std::env::var_os("PATH").unwrap());
    }

    #[test]
    fn applets_of_busybox_look_twice_too_and_may_sleep_for_whole_seconds_alone() {
        testkit::require_tool!("busybox");
        let folder = tempfile::tempdir().unwrap();
        testkit::install_applets(folder.path());
        assert_looks_twice(folder.path().as_os_str());
        let [sleep, sh] = ["sleep", "sh"].map(|name| folder.path().join(name));
        fs::remove_file(&sleep).unwrap();
        fs::write(&sleep, "#!/bin/sh\nexit 1\n").unwrap();
        fs::set_permissions(&sleep, fs::Permissions::from_mode(0o755)).unwrap();
        // BusyBox's shell may know its own `sleep`.
        fs::remove_file(&sh).unwrap();
        symlink("/bin/sh", sh).unwrap();
        assert_looks_twice(folder.path().as_os_str());
    }

    proptest! {
        #[test]
        fn any_text_is_looks_or_none(text in "((cpu)?[0-9]{0,3} |---\\n|[0-9.]{1,5}|\\n|\\PC){0,60}") {
            let _ = watched(&text);
        }
    }
}
