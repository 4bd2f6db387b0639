//! Commands, and what they take.

use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::Bench;

/// The root of the repository.
pub(crate) const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The cargo that runs this.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(REPOSITORY);
    cargo
}

/// How long a command takes from its start to its end.
pub(crate) fn seconds(bench: &Bench, mut command: Command) -> Result<f64> {
    bench.stop_if_asked()?;
    let start = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("{command:?}"))?;
    let elapsed = start.elapsed();
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(elapsed.as_secs_f64())
}

/// The most memory that a command had at a time, asked for every millisecond while it runs.
pub(crate) fn peak_bytes(bench: &Bench, mut command: Command) -> Result<f64> {
    bench.stop_if_asked()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0;
    let ended = loop {
        // A process that has ended has no memory, and says nothing.
        let text = fs::read_to_string(&status).unwrap_or_default();
        peak = peak_of_status(&text).unwrap_or(peak);
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        thread::sleep(Duration::from_millis(1));
    };
    if !ended.success() {
        bail!("{command:?}: {ended}");
    }
    Ok(peak)
}

/// `VmHWM: 123456 kB`.
fn peak_of_status(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_read_where_there_is_one() {
        let status = "Name:\tfwdlab\nVmPeak:\t  90000 kB\nVmHWM:\t   2048 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(peak_of_status(status), Some(2048.0 * 1024.0));
        assert_eq!(peak_of_status("Name:\tfwdlab\nState:\tZ (zombie)\n"), None);
        let own = fs::read_to_string("/proc/self/status").unwrap();
        assert!(peak_of_status(&own).is_some_and(|bytes| bytes > 1e5));
    }
}
