//! Stacks of a Linux DUT's kernel under the load: sampled by a process of fwdlab's own there, which a run elsewhere
//! starts before the load and asks after it.

use std::io::{self, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::ProfileRecord;
use fwdlab_profile::Folded;
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::hosts::detached::{LOAD_AWAY_MAX, READY, Window};
use crate::kernel_file::read;
use crate::mechanism::step::owned;
use crate::profiler::{OfCpus, Place, ProfileSlice, SampledLoad, Samplers, Symbols};

/// How often it is looked for the load.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// What is to be sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackWatch {
    /// The interface that the load comes in at.
    pub interface: String,
    /// How many frames there make a load.
    pub load_frames_min: u32,
    /// From the load's first frames to the first sample, in milliseconds.
    pub settle_ms: u64,
    /// From the first sample to the last, in milliseconds.
    pub length_ms: u64,
    /// Samples a second.
    pub frequency_hz: u32,
}

/// What it prints.
#[derive(Debug, Serialize, Deserialize)]
struct Stacks {
    record: ProfileRecord,
    folded: String,
}

/// Says that it is ready, waits for the load, samples all CPUs, and says what was sampled on those that forward: a JSON
/// object on a line.
///
/// # Errors
/// Where this process may not sample, no load comes within a minute, or nobody reads.
pub fn serve_stacks(of: &StackWatch, output: &mut impl Write) -> Result<(), LabError> {
    let places: Vec<Place> = fwdlab_sys::online_cpus()?
        .into_iter()
        .map(|cpu| Place { cpu, thread: None })
        .collect();
    let samplers = Samplers::open(&places, of.frequency_hz)?;
    let counter = Path::new("/sys/class/net")
        .join(&of.interface)
        .join("statistics/rx_packets");
    let first = frames(&counter)?;
    say(output, READY)?;
    let start = Instant::now();
    while frames(&counter)? < first + u64::from(of.load_frames_min) {
        if start.elapsed() > LOAD_AWAY_MAX {
            return Err(LabError::NoLoad {
                interface: of.interface.clone(),
                seconds: LOAD_AWAY_MAX.as_secs(),
            });
        }
        sleep(BETWEEN_LOOKS);
    }
    sleep(Duration::from_millis(of.settle_ms));
    let begin = Instant::now();
    samplers.window.at_edge()?;
    sleep(Duration::from_millis(of.length_ms));
    samplers.window.at_edge()?;
    let load = SampledLoad {
        thread: fwdlab_sys::this_thread(),
        time_s: begin.elapsed().as_secs_f64(),
        // The tester counts them.
        forwarded_frames: 0,
    };
    let slice = samplers.take(&mut Symbols::new(), load, OfCpus::ThatForward);
    let stacks = Stacks {
        record: slice.record,
        folded: slice.stacks.merged().to_string(),
    };
    let line = serde_json::to_string(&stacks).expect("numbers and text are JSON");
    say(output, &line)
}

/// The command that samples, where the program is.
pub(super) fn words(
    program: &str,
    interface: &str,
    window: Window,
    frequency_hz: u32,
    load_frames_min: u32,
) -> Vec<String> {
    let milliseconds = |length: Duration| length.as_millis().to_string();
    owned(&[
        program,
        "stacks",
        "--interface",
        interface,
        "--load-frames",
        &load_frames_min.to_string(),
        "--settle-ms",
        &milliseconds(window.settle),
        "--length-ms",
        &milliseconds(window.length),
        "--frequency",
        &frequency_hz.to_string(),
    ])
}

/// What was sampled.
///
/// # Errors
/// Where the output is something else.
pub(super) fn sampled(text: &str) -> Result<ProfileSlice, String> {
    let stacks: Stacks = serde_json::from_str(text.trim()).map_err(|error| error.to_string())?;
    let folded = Folded::parse(stacks.folded.as_bytes()).map_err(|error| error.to_string())?;
    Ok(ProfileSlice {
        record: stacks.record,
        stacks: folded.into_owned(),
    })
}

fn frames(counter: &Path) -> Result<u64, LabError> {
    let text = read(counter)?;
    text.trim().parse().map_err(|_| {
        let why = format!("{text:?} is no number of frames");
        LabError::file("reading", counter, io::Error::other(why))
    })
}

fn say(output: &mut impl Write, line: &str) -> Result<(), LabError> {
    let said = writeln!(output, "{line}").and_then(|()| output.flush());
    said.map_err(|source| LabError::file("writing", Path::new("/dev/stdout"), source))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn watch(interface: &str) -> StackWatch {
        StackWatch {
            interface: interface.to_owned(),
            load_frames_min: 0,
            settle_ms: 1,
            length_ms: 50,
            frequency_hz: 200,
        }
    }

    #[test]
    fn what_one_process_says_another_reads() {
        let places = [Place {
            cpu: 0,
            thread: None,
        }];
        if let Err(error) = Samplers::open(&places, 200) {
            eprintln!("skipped: {error}");
            assert!(std::env::var_os("CI").is_none(), "{error}");
            return;
        }
        let mut output = Vec::new();
        serve_stacks(&watch("lo"), &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        let stacks = text.strip_prefix("ready\n").unwrap();
        let slice = sampled(stacks).unwrap();
        assert_eq!(slice.record.samples, slice.stacks.samples());
        assert!(!slice.record.samples_by_cpu.is_empty());
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let error = serve_stacks(&watch("no-such-port"), &mut Vec::new()).unwrap_err();
        assert!(
            error.to_string().contains("no-such-port") || error.to_string().contains("sampl"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_stacks_or_an_error(text in "\\PC{0,60}") {
            let _ = sampled(&text);
        }
    }
}
