//! What a run and fwdlab's own process on another host say to each other, a tester's or the DUT's: a JSON object a line,
//! each request answered by one line.

use std::io::{self, BufRead, Read as _};
use std::time::Duration;

use fwdlab_model::{AddressFamily, Tester, Traffic};
use serde::{Deserialize, Serialize};

use crate::counters::Drops;
use crate::mechanism::program::{Hook, Program};

/// Changes with every change of what is said.
pub(crate) const PROTOCOL: u32 = 7;

/// How often a run tells its processes that it lives, by a line without anything, which has no answer.
pub(crate) const BETWEEN_SIGNS_OF_LIFE: Duration = Duration::from_secs(10);

/// How long nothing may be heard of a run, not even that it lives: longer than its connection lasts without an answer,
/// and not much, because its next connection needs what this process holds.
pub(crate) const UNHEARD_MAX: Duration = Duration::from_secs(130);
/// How long a process before this one may hold an interface that nobody has heard of any more.
pub(crate) const HELD_MAX: Duration = Duration::from_secs(30);

/// More than any line has: the samples of a day, and many times the largest program.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// The lines that are said, up to the end or the first that cannot be read.
pub(crate) fn lines(mut input: impl BufRead) -> impl Iterator<Item = io::Result<String>> {
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let line = line(&mut input).transpose()?;
        is_over = line.is_err();
        Some(line)
    })
}

/// The next line without its end; none where there is no more.
fn line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    // By one more than there may be.
    input.take(LINE_BYTES_MAX + 1).read_line(&mut line)?;
    if line.len() as u64 > LINE_BYTES_MAX {
        let mebibytes = LINE_BYTES_MAX >> 20;
        let why = format!("a line of more than {mebibytes} MiB");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let is_there = !line.is_empty();
    if line.ends_with('\n') {
        line.pop();
    }
    Ok(is_there.then_some(line))
}

/// The first line of such a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    /// Version of fwdlab there.
    pub(crate) fwdlab: String,
    /// Kernel release and version there.
    pub(crate) kernel: String,
    /// CPU model there.
    pub(crate) cpu_model: String,
    /// Logical CPUs online there.
    pub(crate) cpus: Vec<u32>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// Which station an interface is, and whether it may be used: `Station`.
    Station { interface: String },
    /// Counts and checks what comes in at an interface, from now on: `Done`.
    Expect {
        expected: Expected,
        /// Whether every frame is checked.
        every_frame: bool,
    },
    /// Begins to send; ends by itself where nothing is asked for `dead_man_s` seconds: `Sending`.
    Send(Load),
    /// Waits until every flow and size was sent once: `Done`.
    SendProbe,
    /// Counts for a while, by the clock there: `Measured`.
    Measure {
        settle_ms: u32,
        slice_ms: u32,
        sample_ms: u32,
    },
    /// Stops sending, and waits until nothing is under way any more: `Stopped`.
    Stop,
    /// What the sink has counted since it was told what to expect: `Counted`.
    Count,
    /// Lets go of the sink's interface: `Done`.
    Release,
    /// Attaches a program to interfaces, in the place of the one that was there before; only loads it where there are none:
    /// `Done`.
    Attach {
        program: Program,
        interfaces: Vec<String>,
    },
    /// Takes a hook's program off all interfaces: `Done`.
    Detach { hook: Hook },
    /// Which program was loaded for a hook, and what it has done: `Attached`.
    Attached { hook: Hook },
}

/// A load that a generator sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) interface: String,
    /// The station that the frames go to.
    pub(crate) destination: String,
    pub(crate) family: AddressFamily,
    pub(crate) traffic: Traffic,
    /// Whether the flows are those that answer.
    pub(crate) is_reversed: bool,
    /// Each sends its part of the flows.
    pub(crate) cpus: Vec<u32>,
    /// Frames a second of all; as fast as it goes without.
    pub(crate) pps: Option<u64>,
    pub(crate) burst_frames: u32,
    /// What sends; the best that works without.
    pub(crate) sender: Option<Tester>,
    pub(crate) dead_man_s: u64,
}

/// What comes in at a sink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Expected {
    pub(crate) interface: String,
    /// The station that the frames come from.
    pub(crate) source: String,
    pub(crate) family: AddressFamily,
    pub(crate) traffic: Traffic,
    /// Whether the flows are those that answer.
    pub(crate) is_reversed: bool,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(crate) enum Answer {
    Done,
    Station(Station),
    Sending {
        sender: Tester,
        /// What would have been better, and why it does not work there.
        refused: Vec<(Tester, String)>,
    },
    Measured {
        /// At least two; the first and the last are the edges of the time.
        samples: Vec<Counted>,
        /// Frames offered from the first to the last.
        offered_frames: u64,
    },
    Stopped(Sent),
    Counted(SinkState),
    Attached {
        /// The kernel's number for the program; none where it is gone from an interface.
        program: Option<u32>,
        /// Frames that it dropped, by reason.
        drops: Drops,
    },
    Failed {
        why: String,
        /// All that the kernel's verifier said, where it refused a program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verifier_log: Option<String>,
    },
}

/// A port of the tester.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Station {
    pub(crate) mac: String,
    pub(crate) is_virtual: bool,
}

/// What was sent from start to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) offered_frames: u64,
    pub(crate) transmitted_frames: u64,
    /// Why a generator had stopped by itself.
    pub(crate) failed: Option<String>,
}

impl Sent {
    pub(crate) fn add(&mut self, other: Self) {
        self.offered_frames += other.offered_frames;
        self.transmitted_frames += other.transmitted_frames;
        self.failed = self.failed.take().or(other.failed);
    }
}

/// Frames at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Seconds since the first.
    pub(crate) at_s: f64,
    pub(crate) forwarded_frames: u64,
}

/// What a sink has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SinkState {
    pub(crate) forwarded_frames: u64,
    pub(crate) foreign_frames: u64,
    pub(crate) checked_frames: u64,
    pub(crate) wrong_frames: std::collections::BTreeMap<String, u64>,
    pub(crate) flows_seen: u32,
}

impl SinkState {
    /// Adds what was counted after it had been told anew what to expect.
    pub(crate) fn add(&mut self, other: Self) {
        self.forwarded_frames += other.forwarded_frames;
        self.foreign_frames += other.foreign_frames;
        self.checked_frames += other.checked_frames;
        for (kind, frames) in other.wrong_frames {
            *self.wrong_frames.entry(kind).or_default() += frames;
        }
        self.flows_seen = self.flows_seen.max(other.flows_seen);
    }

    /// Adds what another sink has counted, of other flows.
    pub(crate) fn add_other_flows(&mut self, other: Self) {
        let flows_seen = self.flows_seen + other.flows_seen;
        self.add(other);
        self.flows_seen = flows_seen;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, repeat};

    use super::*;

    #[test]
    fn lines_have_an_end() {
        let said = b"a\n\nlast".as_slice();
        let said: Vec<String> = lines(said).map(Result::unwrap).collect();
        assert_eq!(said, ["a", "", "last"]);
        let said: Vec<_> = lines(BufReader::new(repeat(b'a'))).collect();
        let [Err(error)] = &said[..] else {
            panic!("{} lines", said.len());
        };
        assert_eq!(error.to_string(), "a line of more than 64 MiB");
    }
}
