//! A program on the DUT that watches the load by itself: started before there is one, it waits for its frames, looks,
//! and is only asked for what it saw when the load has ended. Under a load the DUT may have no time for ssh.

use std::io::{self, BufRead as _, Read as _};
use std::process::{Child, ChildStdout, ExitStatus};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::ssh::{Connection, SSH_FAILED, ended};
use crate::LabError;
use crate::program::{bounded, command_line, unread};

/// What such a program prints when it looks for the load.
pub(super) const READY: &str = "ready";
/// How long it may take until it does, and how much longer than asked what it saw may take.
const PATIENCE: Duration = Duration::from_secs(150);
/// Frames from which on a load has come: a port may get some from neighbours.
pub(super) const LOAD_FRAMES_MIN: u32 = 50;
/// How long it waits for the load.
pub(super) const LOAD_AWAY_MAX: Duration = Duration::from_secs(60);

/// When a program looks, counted from the first frames of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) settle: Duration,
    pub(super) length: Duration,
}

/// A program at work on a host.
pub(super) struct Detached {
    // What it prints comes over it.
    connection: Rc<Connection>,
    command: String,
    child: Child,
    output: Receiver<Part>,
    length: Duration,
}

/// What was read of its output.
enum Part {
    Ready,
    /// What it printed behind that, up to its end; why that cannot be had.
    Rest(Result<String, String>),
}

impl Detached {
    /// Starts a program and waits until it looks for the load.
    ///
    /// # Errors
    /// `OnHost` where it ends before, and those of the connection.
    pub(super) fn start(
        connection: &Rc<Connection>,
        words: &[impl AsRef<str>],
        window: Window,
    ) -> Result<Self, LabError> {
        let mut child = connection.start(words)?;
        let output = read(child.stdout.take().expect("it was asked for"))?;
        let mut detached = Self {
            connection: Rc::clone(connection),
            command: command_line(words),
            child,
            output,
            length: LOAD_AWAY_MAX + window.settle + window.length,
        };
        match detached.output.recv_timeout(PATIENCE) {
            Ok(Part::Ready) => Ok(detached),
            Ok(Part::Rest(_)) | Err(RecvTimeoutError::Disconnected) => {
                let end = ended(&mut detached.child);
                Err(detached.failed(end))
            }
            Err(RecvTimeoutError::Timeout) => Err(detached.late()),
        }
    }

    /// What it has printed, once it has seen the load.
    ///
    /// # Errors
    /// `OnHost` where it failed, or saw no load, and those of the connection.
    pub(super) fn collect(mut self) -> Result<String, LabError> {
        match self.output.recv_timeout(PATIENCE + self.length) {
            Ok(Part::Rest(Err(why))) => {
                let _ = self.child.kill();
                Err(self.on_host(why, String::new()))
            }
            Ok(Part::Rest(Ok(text))) => match ended(&mut self.child) {
                Ok((Some(status), _)) if status.success() => Ok(text),
                end => Err(self.failed(end)),
            },
            Ok(Part::Ready) | Err(RecvTimeoutError::Disconnected) => {
                let end = ended(&mut self.child);
                Err(self.failed(end))
            }
            Err(RecvTimeoutError::Timeout) => Err(self.late()),
        }
    }

    fn late(&self) -> LabError {
        let seconds = (PATIENCE + self.length).as_secs();
        self.on_host(format!("no answer in {seconds} s"), String::new())
    }

    /// Why it ended.
    fn failed(&self, end: io::Result<(Option<ExitStatus>, String)>) -> LabError {
        match end {
            Ok((Some(status), stderr)) if status.code() == Some(SSH_FAILED) => {
                let destination = self.connection.destination();
                destination.refused(&self.command, &stderr)
            }
            Ok((Some(status), stderr)) => self.on_host(status.to_string(), stderr),
            Ok((None, stderr)) => self.on_host("its ssh did not end".to_owned(), stderr),
            Err(error) => self.on_host(error.to_string(), String::new()),
        }
    }

    fn on_host(&self, status: String, stderr: String) -> LabError {
        LabError::OnHost {
            host: self.connection.host().to_owned(),
            command: self.command.clone(),
            status,
            stderr,
        }
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        // What it still runs there ends by itself, at the latest when no load comes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what a program prints, so that it can be waited for only so long.
fn read(output: ChildStdout) -> Result<Receiver<Part>, LabError> {
    let (sender, parts) = channel();
    fwdlab_sys::start_thread(move || {
        let mut output = bounded(output);
        let mut said = Vec::new();
        let mut read = output.read_until(b'\n', &mut said);
        if said.trim_ascii_end() == READY.as_bytes() {
            // Nobody listens any more where it took too long.
            let _ = sender.send(Part::Ready);
            said.clear();
        }
        if read.is_ok() {
            read = output.read_to_end(&mut said);
        }
        let text = read.map(|_| String::from_utf8_lossy(&said).into_owned());
        let _ = sender.send(Part::Rest(text.map_err(|error| unread(&error))));
    })?;
    Ok(parts)
}
