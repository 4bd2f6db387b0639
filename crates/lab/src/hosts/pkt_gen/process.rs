//! A pkt-gen on a host, started and watched over ssh.

use std::collections::VecDeque;
use std::io::{BufRead as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::{Duration, Instant};

use fwdlab_pkt_gen::{LogReader, Noise, Summary};

use super::curve::Curve;
use crate::LabError;
use crate::hosts::ssh::{Connection, killed};
use crate::program::{bounded, unread};

/// Takes the place of a shell as pkt-gen, beside which it leaves a dead man's switch: where its input ends, nothing
/// comes there for half a minute, or more came than it is told first, pkt-gen is interrupted, and killed where that
/// is not enough. One line, without what a C shell would act on: that may be what ssh hands it to.
const SCRIPT: &str = "beats=$1; shift; exec 3<&0; \
    ( while [ \"$beats\" -gt 0 ] && [ -n \"$(timeout 30 head -n 1 <&3)\" ]; do beats=$((beats - 1)); done; \
    kill -INT $$; for second in 1 2 3 4 5; do sleep 1; kill -0 $$ || exit 0; done; kill -KILL $$ ) \
    >/dev/null 2>&1 & \
    exec \"$@\" </dev/null 2>&1 3<&-";

/// How often something is said to the dead man's switch.
const BEAT: Duration = Duration::from_secs(5);
/// How many lines may wait to be read: those of hours.
const LINES_MAX: usize = 1 << 16;
/// How many lines of a pkt-gen are told where it fails.
const LAST_LINES: usize = 4;
/// How long it may take to end once it was interrupted: it is killed before.
const END_TIME_MAX: Duration = Duration::from_secs(20);
/// How long it is waited for where nobody needs to know how it ended.
const LETTING_GO_TIME_MAX: Duration = Duration::from_secs(7);

/// A pkt-gen that runs, or has ended.
pub(super) struct PktGenProcess {
    // What talks to the process goes over it.
    connection: Rc<Connection>,
    child: Child,
    /// Interrupts it when it goes.
    beat: Option<Sender<()>>,
    lines: Receiver<(Instant, String)>,
    reader: LogReader,
    pub(super) curve: Curve,
    last_lines: VecDeque<String>,
    is_over: bool,
}

impl PktGenProcess {
    /// Starts it; it goes on for at most about so long, whatever becomes of this process.
    ///
    /// # Errors
    /// Where ssh cannot be started.
    pub(super) fn start(
        connection: &Rc<Connection>,
        command: &[String],
        length_max: Duration,
    ) -> Result<Self, LabError> {
        let beats = (length_max.as_secs() / BEAT.as_secs()).max(1);
        let mut words: Vec<String> = ["sh", "-c", SCRIPT, "sh"].map(str::to_owned).into();
        words.push(beats.to_string());
        words.extend_from_slice(command);
        let mut child = connection.start(&words)?;
        let beat = keep_alive(child.stdin.take().expect("it was asked for"))?;
        let lines = read(child.stdout.take().expect("it was asked for"))?;
        Ok(Self {
            connection: Rc::clone(connection),
            child,
            beat: Some(beat),
            lines,
            reader: LogReader::default(),
            curve: Curve::default(),
            last_lines: VecDeque::new(),
            is_over: false,
        })
    }

    /// Whether its port is open and its link has had its time.
    pub(super) fn has_begun(&self) -> bool {
        self.reader.has_begun()
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// What it said of all its packets in the end.
    pub(super) fn summary(&self) -> Option<&Summary> {
        self.reader.summary()
    }

    /// Whether it says that it cannot go on.
    pub(super) fn has_failed(&self) -> bool {
        self.reader.noise(Noise::ThreadFailed) > 0
    }

    /// Waits until something holds of it while it runs.
    ///
    /// # Errors
    /// `RemoteProcess` where it fails, ends or takes too long before that, with what it said.
    pub(super) fn wait(
        &mut self,
        what: &str,
        patience: Duration,
        mut holds: impl FnMut(&Self) -> bool,
    ) -> Result<(), LabError> {
        let deadline = Instant::now() + patience;
        self.take_what_is_there();
        loop {
            if self.has_failed() {
                return Err(self.failed(what, "a thread of pkt-gen failed"));
            }
            if holds(self) {
                return Ok(());
            }
            if self.is_over {
                return Err(self.failed(what, "pkt-gen has ended"));
            }
            if !self.take_a_line(deadline) {
                let why = format!("that did not come in {} s", patience.as_secs());
                return Err(self.failed(what, &why));
            }
        }
    }

    /// Reads all that it has said until now.
    pub(super) fn take_what_is_there(&mut self) {
        while !self.is_over && self.take_a_line(Instant::now()) {}
    }

    /// Whether there was a line, or the end of all.
    fn take_a_line(&mut self, deadline: Instant) -> bool {
        let patience = deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(patience) {
            Ok((at, line)) => self.take(&line, at),
            Err(RecvTimeoutError::Disconnected) => self.is_over = true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
        true
    }

    fn take(&mut self, line: &str, at: Instant) {
        let before = self.reader.samples().len();
        // What it says that is not of pkt-gen is among its last lines.
        let _ = self.reader.read(line);
        if let Some(sample) = self.reader.samples().get(before) {
            self.curve.add(sample, at);
        }
        if line.trim().is_empty() {
            return;
        }
        self.last_lines.push_back(line.trim().to_owned());
        if self.last_lines.len() > LAST_LINES {
            self.last_lines.pop_front();
        }
    }

    /// Has it interrupted.
    pub(super) fn interrupt(&mut self) {
        self.beat = None;
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// `RemoteProcess` where it does not.
    pub(super) fn wait_for_its_end(
        &mut self,
        what: &str,
        patience: Duration,
    ) -> Result<(), LabError> {
        let deadline = Instant::now() + patience + END_TIME_MAX;
        while !self.is_over {
            if !self.take_a_line(deadline) {
                return Err(self.failed(what, "pkt-gen does not end"));
            }
        }
        let _ = self.child.wait();
        Ok(())
    }

    /// What it said last, with what ssh says where that has ended.
    pub(super) fn last_words(&mut self) -> String {
        let mut said: Vec<String> = self.last_lines.iter().cloned().collect();
        if self.is_over {
            said.extend(Some(killed(&mut self.child)).filter(|said| !said.is_empty()));
        }
        match said.is_empty() {
            true => "it said nothing".to_owned(),
            false => format!("it said last: {}", said.join(" | ")),
        }
    }

    pub(super) fn failed(&mut self, what: &str, why: &str) -> LabError {
        LabError::RemoteProcess {
            host: self.connection.host().to_owned(),
            what: what.to_owned(),
            why: format!("{why}; {}", self.last_words()),
        }
    }
}

impl Drop for PktGenProcess {
    fn drop(&mut self) {
        // Whoever takes its place needs its port. Where it is out of reach, its input ends with ssh, and it with its
        // input.
        self.interrupt();
        let deadline = Instant::now() + LETTING_GO_TIME_MAX;
        while !self.is_over && self.take_a_line(deadline) {}
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says that somebody is there until what is given back goes.
fn keep_alive(mut input: ChildStdin) -> Result<Sender<()>, LabError> {
    let (sender, end) = channel();
    fwdlab_sys::start_thread(move || {
        loop {
            if input.write_all(b"on\n").is_err() {
                return;
            }
            if end.recv_timeout(BEAT) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    })?;
    Ok(sender)
}

/// Reads line by line, and notes when each came.
fn read(output: ChildStdout) -> Result<Receiver<(Instant, String)>, LabError> {
    let (sender, lines) = sync_channel(LINES_MAX);
    fwdlab_sys::start_thread(move || {
        let mut output = bounded(output);
        let mut line = Vec::new();
        loop {
            match output.read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => {
                    // It ends where nobody reads what it says.
                    let _ = sender.send((Instant::now(), unread(&error)));
                    return;
                }
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']).to_owned();
            if sender.send((Instant::now(), text)).is_err() {
                return;
            }
            line.clear();
        }
    })?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read as _, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    /// What the script does with a command, whose input is closed when told.
    fn started(beats: &str, command: &str) -> Child {
        Command::new("sh")
            .args(["-c", SCRIPT, "sh", beats])
            // What runs the tests may ignore the signal, which a shell could not change.
            .args(["env", "--default-signal=INT", "sh", "-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    #[test]
    fn the_script_is_one_line_that_a_c_shell_takes_as_it_is() {
        assert!(!SCRIPT.contains(['\n', '!', '\'']), "{SCRIPT}");
    }

    #[test]
    fn what_is_started_ends_with_its_input() {
        let mut child = started(
            "9",
            "trap 'echo interrupted; exit' INT; echo on; while :; do sleep 0.1; done",
        );
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        output.read_line(&mut said).unwrap();
        child.stdin.as_mut().unwrap().write_all(b"on\n").unwrap();
        drop(child.stdin.take());
        output.read_to_string(&mut said).unwrap();
        assert_eq!(said, "on\ninterrupted\n");
        child.wait().unwrap();
    }

    #[test]
    fn what_is_started_ends_when_it_has_lasted_too_long() {
        let mut child = started(
            "1",
            "trap 'exit 7' INT; echo on; while :; do sleep 0.1; done",
        );
        let mut said = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        // Its input stays open: waiting closes what the child still has.
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"on\n").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(7));
        drop(input);
    }
}
