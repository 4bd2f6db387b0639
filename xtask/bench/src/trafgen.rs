//! trafgen of netsniff-ng, the generator that ours is compared with.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fwdlab_lab::{TESTER_OUT, Topology};
use fwdlab_traffic::Frames;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

/// However this process ends, trafgen does not send for longer.
const TIME_S_MAX: u32 = 60;

/// How long it may take to end when it is asked to.
const END_MS_MAX: u64 = 2000;

/// trafgen with the very frames that our generator sends.
pub(crate) struct Trafgen {
    folder: TempDir,
}

impl Trafgen {
    /// Writes the configuration: one static packet a flow.
    ///
    /// # Errors
    /// trafgen is not installed, or the file cannot be written.
    pub(crate) fn new(frames: &Frames) -> Result<Self> {
        if Command::new("trafgen").arg("--version").output().is_err() {
            bail!(
                "bench gen: trafgen, with which the generator is compared, is not installed; \
                 `cargo xtask setup` installs it (Debian: apt-get install netsniff-ng)"
            );
        }
        let folder = tempfile::tempdir()?;
        fs::write(
            folder.path().join("packets.cfg"),
            configuration(&frames_of_a_pass(frames)),
        )?;
        Ok(Self { folder })
    }

    /// Starts sending from the tester's interface, on one CPU.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(&self, topology: &Topology, cpu: u32) -> Result<RunningTrafgen> {
        let log = File::create(self.folder.path().join("log"))?;
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=1", &TIME_S_MAX.to_string()])
            .args([
                "trafgen",
                "--dev",
                TESTER_OUT,
                "--cpus",
                "1",
                "--notouch-irq",
            ])
            .arg("--conf")
            .arg(self.folder.path().join("packets.cfg"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        // A child is born into the namespace and onto the CPU of the thread that starts it.
        let child = topology.tester().run(|| -> Result<Child> {
            fwdlab_sys::pin_this_thread(cpu)?;
            command.spawn().context("starting trafgen")
        })??;
        Ok(RunningTrafgen(child))
    }

    /// What it said last, for errors.
    pub(crate) fn log(&self) -> String {
        let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).trim().to_owned()
    }
}

/// A trafgen that sends until this value goes.
pub(crate) struct RunningTrafgen(Child);

impl RunningTrafgen {
    /// Asks all of trafgen's processes to end, and waits; whether they did.
    fn ended_when_asked(&mut self, group: Pid) -> bool {
        let _ = killpg(group, Signal::SIGINT);
        let deadline = Instant::now() + Duration::from_millis(END_MS_MAX);
        while Instant::now() < deadline {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return true;
            }
            sleep(Duration::from_millis(2));
        }
        false
    }
}

impl Drop for RunningTrafgen {
    fn drop(&mut self) {
        // The child has not been waited for, so the group is still its own.
        let Ok(group) = i32::try_from(self.0.id()).map(Pid::from_raw) else {
            return;
        };
        // Each parent waits for its child, so that nothing is left to disturb what comes next.
        if !self.ended_when_asked(group) {
            let _ = killpg(group, Signal::SIGKILL);
            let _ = self.0.wait();
        }
    }
}

/// The first frame of every flow.
fn frames_of_a_pass(frames: &Frames) -> Vec<Vec<u8>> {
    (0..frames.flows().count().into())
        .map(|number| frames.sent(number))
        .collect()
}

/// Packets in trafgen's language: one a line, every byte written out.
fn configuration(frames: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for frame in frames {
        let bytes: Vec<_> = frame.iter().map(|byte| format!("{byte:#04x}")).collect();
        let _ = writeln!(text, "{{ {} }}", bytes.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_written_out() {
        assert_eq!(
            configuration(&[vec![0, 0xab], vec![255]]),
            "{ 0x00, 0xab }\n{ 0xff }\n"
        );
    }
}
