//! An emulated machine, and what it says on its console.

use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::command::command;

/// A machine that is about to boot.
pub(super) struct Machine {
    pub(super) kernel: PathBuf,
    pub(super) initramfs: PathBuf,
    pub(super) cpus: u32,
    pub(super) plays: &'static str,
    /// Where its console goes.
    pub(super) log: PathBuf,
}

/// What became of it.
pub(super) enum Outcome {
    Lived,
    Died {
        /// What it said last that tells why.
        last: String,
    },
}

impl Machine {
    /// Boots it and waits until it is off, for a bounded time; what it tells meanwhile is printed behind its name.
    pub(super) fn boot(&self, time_max: Duration, name: &str) -> Result<Outcome> {
        // One thread for all CPUs: with one each, this emulator lets a CPU run instructions that another
        // has replaced, and so ends kernels that patch their own code.
        let accelerator = "tcg,thread=single";
        // On a busy machine the emulated timer's first ticks come late, which the kernel takes for a broken one.
        let console = format!(
            "console=ttyS0 quiet panic=-1 no_timer_check init=/init fwdlab.plays={}",
            self.plays
        );
        let mut emulator = command(
            "qemu-system-x86_64",
            [
                "-machine",
                "q35",
                "-cpu",
                "max",
                "-accel",
                accelerator,
                "-m",
                "1024",
            ],
        )
        .args(["-smp", &self.cpus.to_string()])
        .arg("-kernel")
        .arg(&self.kernel)
        .arg("-initrd")
        .arg(&self.initramfs)
        .args(["-append", &console])
        .args(["-no-reboot", "-display", "none", "-nic", "none"])
        .args(["-serial", "stdio", "-monitor", "none"])
        .stdout(Stdio::piped())
        .spawn()
        .context("kernels: qemu-system-x86_64 cannot be started; run `cargo xtask setup`")?;
        let output = emulator.stdout.take().context("its console is piped")?;
        let (lines, said) = channel();
        let reader = std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                if lines.send(text).is_err() {
                    break;
                }
                line.clear();
            }
        });
        let mut log = File::create(&self.log)?;
        let deadline = Instant::now() + time_max;
        let mut last = "it said nothing".to_owned();
        let mut lived = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match said.recv_timeout(left) {
                Ok(line) => {
                    writeln!(log, "{line}")?;
                    if let Some(event) = line.strip_prefix("guest: ") {
                        println!("{name}: {event}");
                        lived = event == "all lived";
                        last = event.to_owned();
                    } else if tells_why(&line) {
                        last = line;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    last = format!("not done after {} s", time_max.as_secs());
                    emulator.kill()?;
                    break;
                }
            }
        }
        emulator.wait()?;
        // It ends with the emulator's output.
        let _ = reader.join();
        Ok(if lived {
            Outcome::Lived
        } else {
            Outcome::Died { last }
        })
    }
}

/// Whether a kernel's line says why it ends.
fn tells_why(line: &str) -> bool {
    ["BUG:", "Oops", "RIP: 0010:", "detected stalls"]
        .iter()
        .any(|sign| line.contains(sign))
}
