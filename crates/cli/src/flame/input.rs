//! Profiles of any form, read.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use fwdlab_profile::{CallGraph, Dtrace, Folded, FrameNames, PerfScript};
use fwdlab_report::format::count;
use fwdlab_report::one_line;
use fwdlab_sys::{Bounded, Input};

use crate::exit::WrongArguments;
use crate::output::tell;

/// What is read at once; its beginning tells the form.
const BUFFER_BYTES: usize = 1 << 18;

/// More than any profile has.
const BYTES_MAX: u64 = 16 << 30;
/// More than any profile has of the forms that are read as a whole; the others are folded line by line.
const WHOLE_BYTES_MAX: u64 = 512 << 20;

/// A profile that is idle for longer than this does not show the load.
const IDLE_SHARE: f64 = 0.5;

/// A profile, folded.
pub(super) struct Profile {
    pub(super) folded: Folded<'static>,
    /// What is known to be missing, in a sentence.
    pub(super) missing: Option<String>,
}

impl Profile {
    /// The same as [`Profile::read`]; what is missing is told, and when it is mostly idle, and an error names the
    /// input.
    pub(super) fn read_telling(
        path: &Path,
        names: FrameNames,
        is_whole: bool,
    ) -> Result<Self, WrongArguments> {
        let profile = Self::read(path, names, is_whole)
            .map_err(|why| WrongArguments(format!("{}: {why}", shown(path))))?;
        if let Some(missing) = &profile.missing {
            tell(&format!("{}: {missing}", shown(path)));
        }
        if let Some(idle) = profile
            .folded
            .idle_share()
            .filter(|idle| *idle > IDLE_SHARE)
        {
            tell(&format!(
                "{}: its CPUs were idle in {:.0} % of the samples; profile under load",
                shown(path),
                idle * 100.0
            ));
        }
        Ok(profile)
    }

    /// Every sample of all inputs once, equal stacks as one, and whether something is missing, which is told.
    pub(super) fn read_all(
        paths: &[PathBuf],
        names: FrameNames,
    ) -> Result<(Folded<'static>, bool), WrongArguments> {
        let mut together = Folded::new();
        let mut is_partial = false;
        for path in paths {
            let profile = Self::read_telling(path, names, true)?;
            is_partial |= profile.missing.is_some();
            for stack in profile.folded.stacks() {
                together.push(stack.frames().map(str::to_owned), stack.samples);
            }
        }
        Ok((together.merged(), is_partial))
    }

    /// Reads a file of any form, or standard input; how it begins tells which.
    ///
    /// Shape: `is_whole` of a call graph gives every sample, not what FlameGraph's script does.
    pub(super) fn read(path: &Path, names: FrameNames, is_whole: bool) -> Result<Self, String> {
        let input: Box<dyn Read> = if path == Path::new("-") {
            Box::new(Bounded::new(io::stdin().lock(), BYTES_MAX))
        } else {
            let input = Input::file_or_stream(path, BYTES_MAX).open();
            Box::new(input.map_err(|error| error.to_string())?)
        };
        let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
        let begin = input.fill_buf().map_err(|error| error.to_string())?;
        // DTrace's first: its messages look like a process of perf script's.
        if Dtrace::is_begun_by(begin) {
            return Self::of_dtrace(input, names, is_whole);
        }
        if PerfScript::is_begun_by(begin) {
            return Self::of_perf_script(input, names);
        }
        let mut text = Vec::new();
        Bounded::new(input, WHOLE_BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(|error| error.to_string())?;
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        match first {
            // No stack begins with the mark of a section.
            Some(b'@') => Self::of_call_graph(&text, names, is_whole),
            Some(_) => Self::of_folded(&text, is_whole),
            None => Err(
                "it is empty; give what perf script, dtrace or pmcstat -G printed, or folded stacks".into(),
            ),
        }
    }

    fn of_perf_script(input: impl BufRead, names: FrameNames) -> Result<Self, String> {
        let script = PerfScript::read(input, names).map_err(|error| error.to_string())?;
        let remedy = "sample less often, or give perf record larger buffers (-m)";
        Ok(Self {
            missing: lost(script.lost_samples, &script.folded, remedy),
            folded: script.folded,
        })
    }

    fn of_dtrace(input: impl BufRead, names: FrameNames, is_whole: bool) -> Result<Self, String> {
        let names = if is_whole {
            names
        } else {
            FrameNames::ObjectsAndSymbols
        };
        let dtrace = Dtrace::read(input, names).map_err(|error| error.to_string())?;
        let remedy = "sample less often, or give dtrace larger buffers (-x aggsize, -b)";
        Ok(Self {
            missing: lost(dtrace.lost_samples, &dtrace.folded, remedy),
            folded: dtrace.folded,
        })
    }

    fn of_call_graph(text: &[u8], names: FrameNames, is_whole: bool) -> Result<Self, String> {
        let graph = CallGraph::parse(text).map_err(|error| error.to_string())?;
        let missing = graph.truncation(None).map(|truncation| {
            format!(
                "truncated: {:.1} % of its samples are missing, and what is left is what has most of them; profile \
                 again, or fetch the file when pmcstat has ended",
                truncation.missing_share() * 100.0
            )
        });
        let folded = if is_whole {
            graph.fold(names)
        } else {
            graph.stackcollapse()
        };
        Ok(Self {
            folded: folded.into_owned(),
            missing,
        })
    }

    fn of_folded(text: &[u8], is_whole: bool) -> Result<Self, String> {
        let folded = Folded::parse(text).map_err(|error| error.to_string())?;
        let folded = if is_whole { folded.merged() } else { folded };
        Ok(Self {
            folded: folded.into_owned(),
            missing: None,
        })
    }
}

/// Frames with the objects that they are in, where these were asked for.
pub(super) fn frame_names(has_objects: bool) -> FrameNames {
    if has_objects {
        FrameNames::ObjectsAndSymbols
    } else {
        FrameNames::Symbols
    }
}

/// What is said of samples that were lost.
fn lost(samples: u64, folded: &Folded, remedy: &str) -> Option<String> {
    let all = folded.samples().saturating_add(samples);
    (samples > 0).then(|| format!("{} of {all} samples were lost; {remedy}", count(samples)))
}

/// What an input is called in what is said of it.
pub(super) fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".to_owned();
    }
    one_line(&path.display().to_string())
}
