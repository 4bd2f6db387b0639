//! testpmd of DPDK, the forwarder that the router is compared with.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

use crate::bench::Bench;
use crate::counter::{Window, as_f64};

/// Ports in memory: a frame of 64 bytes is copied when it is received, and again when it is sent.
const ENVIRONMENT: &[&str] = &[
    "--no-huge",
    "-m",
    "512",
    "--no-pci",
    "--no-shconf",
    "--no-telemetry",
    "--vdev=net_null0,copy=1",
    "--vdev=net_null1,copy=1",
];

/// As many buffers as fit into the memory.
const BUFFERS: &str = "--total-num-mbufs=16384";

/// A testpmd that forwards until this value goes.
pub(crate) struct Testpmd {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    clock: ClockId,
}

/// What it has received so far, and how long it has run for that.
struct Reading {
    frames: u64,
    cpu_time: Duration,
}

impl Testpmd {
    /// Starts forwarding on the load CPU; the thread that takes commands is on the other.
    ///
    /// # Errors
    /// It is not installed, or the machine has one CPU.
    pub(crate) fn start(bench: &Bench) -> Result<Self> {
        let (load, control) = (bench.load_cpu, bench.control_cpu);
        if load == control {
            bail!(
                "bench router: testpmd takes a CPU to forward and one for commands; there is one"
            );
        }
        let mut process = Command::new("stdbuf")
            // Its answers should come when they are asked for.
            .args(["--output=L", "dpdk-testpmd"])
            .args(ENVIRONMENT)
            .arg(format!("--lcores={control},{load}"))
            .arg(format!("--main-lcore={control}"))
            .args(["--", "--interactive", "--auto-start", "--forward-mode=mac"])
            .arg(BUFFERS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting testpmd")?;
        let streams = process.stdin.take().zip(process.stdout.take());
        let (commands, answers) = streams.context("both are piped")?;
        let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(process.id())?))?;
        Ok(Self {
            process,
            commands,
            answers: BufReader::new(answers),
            clock,
        })
    }

    /// Frames that it receives from both ports in a second of its CPU time.
    ///
    /// # Errors
    /// It ended, as it does where it is not installed.
    pub(crate) fn rate_pps(&mut self, window: Window) -> Result<f64> {
        self.read()?;
        sleep(window.settle);
        let start = self.read()?;
        sleep(window.length);
        let end = self.read()?;
        let cpu_time = end.cpu_time - start.cpu_time;
        Ok(as_f64(end.frames - start.frames) / cpu_time.as_secs_f64())
    }

    fn read(&mut self) -> Result<Reading> {
        let cpu_time = Duration::from(self.clock.now()?);
        writeln!(self.commands, "show port stats all").context("testpmd ended")?;
        let mut frames = 0;
        for _ in 0..2 {
            frames += self.received_of_a_port()?;
        }
        let later = Duration::from(self.clock.now()?);
        Ok(Reading {
            frames,
            cpu_time: (cpu_time + later) / 2,
        })
    }

    fn received_of_a_port(&mut self) -> Result<u64> {
        let mut said = String::new();
        loop {
            let before = said.len();
            if self.answers.read_line(&mut said)? == 0 {
                let last = said.trim_end().lines().next_back().unwrap_or_default();
                bail!(
                    "testpmd, with which the router is compared, ended ({last:?}); `cargo xtask \
                     setup` installs it (Debian: apt-get install dpdk-dev)"
                );
            }
            if let Some(frames) = parse_received(&said[before..]) {
                return Ok(frames);
            }
        }
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The frames in `  RX-packets: 16742912   RX-missed: 0          RX-bytes:  0`.
fn parse_received(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    words.find(|&word| word == "RX-packets:")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_port_received_is_read() {
        let line = "  RX-packets: 16742912   RX-missed: 0          RX-bytes:  0\n";
        assert_eq!(parse_received(line), Some(16_742_912));
        assert_eq!(parse_received("  TX-packets: 5   TX-errors: 0\n"), None);
    }
}
