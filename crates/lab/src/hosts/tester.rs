//! The tester on its host, as a run sees it: a process of fwdlab's own there, asked over ssh.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use fwdlab_model::{AddressFamily, Resolved, Tester, TesterHost};

use super::protocol::{Answer, Ask, Counted, Hello, PROTOCOL, SinkState};
use super::ssh::Connection;
use crate::LabError;

/// A load whose run is silent for so long ends by itself.
const DEAD_MAN_S: u64 = 30;
/// How much longer than asked for an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the load is looked at in a slice.
const SAMPLE_MS: u32 = 100;
/// Where the program is kept on a tester's host, below the home of whom we log in as.
const FOLDER: &str = ".cache/fwdlab";
/// Frames a second of a probe: few, so that none is lost for want of time.
const PROBE_PPS: u64 = 20_000;

/// A tester's process.
pub(super) struct HostTester {
    // What talks to the process goes over it.
    connection: Rc<Connection>,
    child: Child,
    requests: ChildStdin,
    answers: Receiver<Result<String, String>>,
    pub(super) hello: Hello,
    of: TesterHost,
    sender: Option<Tester>,
}

/// What was sent from start to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) offered_frames: u64,
    pub(super) transmitted_frames: u64,
    /// Why the generator had stopped by itself.
    pub(super) failed: Option<String>,
}

/// A port of the tester.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Station {
    pub(super) mac: String,
    pub(super) is_virtual: bool,
}

impl HostTester {
    /// Brings the program to the host where it is not there yet, and starts it.
    ///
    /// # Errors
    /// `Host` where the program does not run there, and those of the connection.
    pub(super) fn start(connection: &Rc<Connection>, of: &TesterHost) -> Result<Self, LabError> {
        let program = bring(connection, of.program.as_deref())?;
        let mut child = connection.start(&[&program, "tester"])?;
        let requests = child.stdin.take().expect("it was asked for");
        let answers = read(child.stdout.take().expect("it was asked for"));
        let mut tester = Self {
            connection: Rc::clone(connection),
            child,
            requests,
            answers,
            hello: Hello {
                protocol: 0,
                fwdlab: String::new(),
                kernel: String::new(),
                cpu_model: String::new(),
                cpus: Vec::new(),
            },
            of: of.clone(),
            sender: None,
        };
        let line = tester.line("its first words", PATIENCE)?;
        tester.hello = serde_json::from_str(&line)
            .map_err(|error| tester.failed("its first words", &error.to_string()))?;
        let version = env!("CARGO_PKG_VERSION");
        if tester.hello.protocol != PROTOCOL || tester.hello.fwdlab != version {
            let why = format!(
                "its fwdlab is version {} and this one {version}; give the lab file the program of this version",
                tester.hello.fwdlab
            );
            return Err(tester.failed("its version", &why));
        }
        Ok(tester)
    }

    /// The CPU that sends: the one that the lab file names, or the last, since device interrupts are often at
    /// the first.
    pub(super) fn cpu(&self) -> u32 {
        let last = || self.hello.cpus.last().copied();
        self.of.cpu.or_else(last).unwrap_or(0)
    }

    /// What sends and counts.
    pub(super) fn sender(&self) -> Tester {
        self.sender.unwrap_or_default()
    }

    /// The port that the generator sends from, and the one that the sink counts at.
    ///
    /// # Errors
    /// Where one is not there, or a default route leads through it.
    pub(super) fn stations(&mut self) -> Result<[Station; 2], LabError> {
        let out = self.station(self.of.interface_out.clone())?;
        Ok([out, self.station(self.of.interface_in.clone())?])
    }

    fn station(&mut self, interface: String) -> Result<Station, LabError> {
        const WHAT: &str = "looking at its ports";
        match self.ask(WHAT, &Ask::Station { interface }, 0)? {
            Answer::Station { mac, is_virtual } => Ok(Station { mac, is_virtual }),
            other => Err(self.unexpected(WHAT, &other)),
        }
    }

    /// Counts and checks what comes from a station, from now on.
    pub(super) fn expect(
        &mut self,
        resolved: &Resolved,
        family: AddressFamily,
        source: &str,
        every_frame: bool,
    ) -> Result<(), LabError> {
        let ask = Ask::Expect {
            interface: self.of.interface_in.clone(),
            source: source.to_owned(),
            family,
            traffic: resolved.traffic.clone(),
            every_frame,
        };
        self.done("counting", &ask)
    }

    /// Sends a frame of every flow and size at least, and tells what came of it.
    pub(super) fn probe(
        &mut self,
        resolved: &Resolved,
        family: AddressFamily,
        destination: &str,
    ) -> Result<(Sent, SinkState), LabError> {
        self.send(resolved, family, destination, Some(PROBE_PPS), 1)?;
        self.done("sending probe frames", &Ask::SendProbe)?;
        let sent = self.stop()?;
        Ok((sent, self.count()?))
    }

    /// Begins to send the load.
    pub(super) fn send(
        &mut self,
        resolved: &Resolved,
        family: AddressFamily,
        destination: &str,
        pps: Option<u64>,
        burst_frames: u32,
    ) -> Result<(), LabError> {
        let ask = Ask::Send {
            interface: self.of.interface_out.clone(),
            destination: destination.to_owned(),
            family,
            traffic: resolved.traffic.clone(),
            cpu: self.cpu(),
            pps,
            burst_frames,
            sender: self.sender,
            dead_man_s: DEAD_MAN_S,
        };
        match self.ask("sending", &ask, 0)? {
            Answer::Sending { sender, .. } => {
                // The same for all variants, whatever else would work the next time.
                self.sender = Some(sender);
                Ok(())
            }
            other => Err(self.unexpected("sending", &other)),
        }
    }

    /// Counts for a while under the load.
    pub(super) fn measure(
        &mut self,
        settle_ms: u32,
        slice_ms: u32,
    ) -> Result<(Vec<Counted>, u64), LabError> {
        let ask = Ask::Measure {
            settle_ms,
            slice_ms,
            sample_ms: SAMPLE_MS.min(slice_ms.max(2) / 2),
        };
        let length_ms = u64::from(settle_ms) + u64::from(slice_ms);
        match self.ask("measuring", &ask, length_ms)? {
            Answer::Measured {
                samples,
                offered_frames,
            } if samples.len() >= 2
                && samples.is_sorted_by_key(|sample| sample.forwarded_frames) =>
            {
                Ok((samples, offered_frames))
            }
            other => Err(self.unexpected("measuring", &other)),
        }
    }

    /// Stops the load and waits until nothing is under way.
    pub(super) fn stop(&mut self) -> Result<Sent, LabError> {
        match self.ask("stopping", &Ask::Stop, 0)? {
            Answer::Stopped {
                offered_frames,
                transmitted_frames,
                failed,
            } => Ok(Sent {
                offered_frames,
                transmitted_frames,
                failed,
            }),
            other => Err(self.unexpected("stopping", &other)),
        }
    }

    /// What the sink has counted.
    pub(super) fn count(&mut self) -> Result<SinkState, LabError> {
        match self.ask("counting", &Ask::Count, 0)? {
            Answer::Counted(state) => Ok(state),
            other => Err(self.unexpected("counting", &other)),
        }
    }

    /// Lets go of the sink's interface.
    pub(super) fn release(&mut self) -> Result<(), LabError> {
        self.done("letting go of its ports", &Ask::Release)
    }

    fn done(&mut self, what: &str, ask: &Ask) -> Result<(), LabError> {
        match self.ask(what, ask, 0)? {
            Answer::Done => Ok(()),
            other => Err(self.unexpected(what, &other)),
        }
    }

    fn ask(&mut self, what: &str, ask: &Ask, length_ms: u64) -> Result<Answer, LabError> {
        let mut line = serde_json::to_string(ask).expect("a request is plain data");
        line.push('\n');
        let written = self.requests.write_all(line.as_bytes());
        written
            .and_then(|()| self.requests.flush())
            .map_err(|error| self.ended(what, &error.to_string()))?;
        let line = self.line(what, PATIENCE + Duration::from_millis(length_ms))?;
        match serde_json::from_str(&line) {
            Ok(Answer::Failed { why }) => Err(self.failed(what, &why)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failed(what, &format!("{line:?} is no answer: {error}"))),
        }
    }

    fn line(&mut self, what: &str, patience: Duration) -> Result<String, LabError> {
        match self.answers.recv_timeout(patience) {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(error)) => Err(self.ended(what, &error)),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended(what, "it ended")),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.failed(what, &format!("no answer in {} s", patience.as_secs())))
            }
        }
    }

    /// What a process that is gone left as its last words.
    fn ended(&mut self, what: &str, why: &str) -> LabError {
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.take(4096).read_to_string(&mut said);
        }
        let why = match said.trim() {
            "" => why.to_owned(),
            said => format!("{why}: {said}"),
        };
        self.failed(what, &why)
    }

    fn failed(&self, what: &str, why: &str) -> LabError {
        LabError::RemoteTester {
            host: self.connection.host().to_owned(),
            what: what.to_owned(),
            why: why.to_owned(),
        }
    }

    fn unexpected(&self, what: &str, answer: &Answer) -> LabError {
        self.failed(what, &format!("an answer to something else: {answer:?}"))
    }
}

impl Drop for HostTester {
    fn drop(&mut self) {
        // Its input ends with ssh, and it with its input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads answers line by line, so that they can be waited for only so long.
fn read(output: ChildStdout) -> Receiver<Result<String, String>> {
    let (sender, answers) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            if sender
                .send(line.map_err(|error| error.to_string()))
                .is_err()
            {
                break;
            }
        }
    });
    answers
}

/// Brings the program to the host, where it lies under the name of its content, and tells where.
fn bring(connection: &Connection, program: Option<&Path>) -> Result<String, LabError> {
    let own = || {
        std::env::current_exe().map_err(|source| LabError::File {
            what: "looking for",
            path: PathBuf::from("/proc/self/exe"),
            source,
        })
    };
    let path = program.map_or_else(own, |path| Ok(path.to_owned()))?;
    let bytes = fs::read(&path).map_err(|source| LabError::File {
        what: "reading",
        path: path.clone(),
        source,
    })?;
    let home = connection.run(&["sh", "-c", "echo \"$HOME\""], "")?;
    let folder = format!("{}/{FOLDER}", home.trim_end());
    let place = format!("{folder}/fwdlab-{}", &fwdlab_model::sha256(&bytes)[..16]);
    let version = |place: &str| connection.run(&[place, "--version"], "");
    if connection.run(&["test", "-x", &place], "").is_err() {
        // Written beside its place and put there whole: what is there under its name is all of it.
        let part = format!("{place}.part-{}", std::process::id());
        connection.run(&["mkdir", "-p", &folder], "")?;
        // Those of other versions are not used any more, or live on until their processes end.
        let others = [
            "find", &folder, "-type", "f", "-name", "fwdlab-*", "-delete",
        ];
        connection.run(&others, "")?;
        let write = ["dd", &format!("of={part}"), "bs=65536", "status=none"];
        connection.run_with_file(&write, &path)?;
        connection.run(&["chmod", "700", &part], "")?;
        connection.run(&["mv", &part, &place], "")?;
    }
    version(&place).map_err(|error| LabError::Host {
        host: connection.host().to_owned(),
        why: format!(
            "the program {} does not run there ({error}); give the lab file's [tester] a `program` that does: \
             RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu \
             makes one that needs nothing of the host",
            path.display()
        ),
    })?;
    Ok(place)
}
