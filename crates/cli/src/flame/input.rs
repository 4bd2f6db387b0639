//! Profiles of any form, read.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use fwdlab_profile::{
    CallGraph, Dtrace, EventSamples, Folded, ForeignForm, FrameNames, PerfScript, is_same_event,
    named_events, without_byte_order_mark,
};
use fwdlab_report::format::count;
use fwdlab_report::one_line;
use fwdlab_sys::{Bounded, Input};

use crate::exit::WrongArguments;
use crate::output::tell;

/// How much is read at once.
const BUFFER_BYTES: usize = 1 << 18;
/// How much of the beginning tells the form.
const HEAD_BYTES: u64 = 1 << 18;

/// More than any profile has.
const BYTES_MAX: u64 = 16 << 30;
/// More than any profile has of the forms that are read as a whole; the others are folded line by line.
const WHOLE_BYTES_MAX: u64 = 512 << 20;

/// A profile that is idle for longer than this does not show the load.
const IDLE_SHARE: f64 = 0.5;

/// What is read of a profile.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) names: FrameNames,
    /// Of a call graph every sample, not what FlameGraph's script gives.
    pub(super) is_whole: bool,
    /// The event that is taken, where a profile names several.
    pub(super) event: Option<&'a str>,
}

impl<'a> Reading<'a> {
    /// Every sample of an event, with the objects of frames where these were asked for.
    pub(super) fn whole(has_objects: bool, event: Option<&'a str>) -> Self {
        Self {
            names: if has_objects {
                FrameNames::ObjectsAndSymbols
            } else {
                FrameNames::Symbols
            },
            is_whole: true,
            event,
        }
    }
}

/// A profile, folded.
pub(super) struct Profile {
    pub(super) folded: Folded<'static>,
    /// The event of its samples, where it names one.
    pub(super) event: Option<String>,
    /// The samples of other events.
    pub(super) left_out: Vec<EventSamples>,
    /// What is known to be missing, in a sentence.
    pub(super) missing: Option<String>,
}

impl Profile {
    /// Reads profiles that are taken together, so of one event. Says on standard error what is missing or left out of
    /// each, and whether it is mostly idle; an error names the input.
    pub(super) fn read_each(
        paths: &[impl AsRef<Path>],
        reading: Reading<'_>,
    ) -> Result<Vec<Self>, WrongArguments> {
        let mut profiles: Vec<Self> = Vec::new();
        for path in paths {
            let shown = shown(path.as_ref());
            let profile = Self::read(path.as_ref(), reading)
                .map_err(|why| WrongArguments(format!("{shown}: {why}")))?;
            profile.tell(&shown);
            let before = profiles
                .iter()
                .zip(paths)
                .find_map(|(profile, path)| Some((profile.event.as_ref()?, path)));
            if let (Some(event), Some((other, path))) = (&profile.event, before)
                && !is_same_event(event, other)
            {
                return Err(WrongArguments(format!(
                    "{shown}: samples of {}, but those of {} are of {}; give profiles of one event, or choose one that \
                     all have by --event",
                    one_line(event),
                    self::shown(path.as_ref()),
                    one_line(other)
                )));
            }
            profiles.push(profile);
        }
        Ok(profiles)
    }

    fn tell(&self, shown: &str) {
        if let Some(missing) = &self.missing {
            tell(&format!("{shown}: {missing}"));
        }
        if let Some(event) = self.event.as_ref().filter(|_| !self.left_out.is_empty()) {
            tell(&format!(
                "{shown}: samples of {} alone; left out: {}; --event chooses another",
                one_line(event),
                named_events(&self.left_out)
            ));
        }
        if let Some(idle) = self.folded.idle_share().filter(|idle| *idle > IDLE_SHARE) {
            tell(&format!(
                "{shown}: its CPUs were idle in {:.0} % of the samples; profile under load",
                idle * 100.0
            ));
        }
    }

    /// Every sample of all inputs once, equal stacks as one; what is missing of any of them.
    pub(super) fn read_all(
        paths: &[PathBuf],
        reading: Reading<'_>,
    ) -> Result<Self, WrongArguments> {
        let mut together = Self::of_no_event(Folded::new(), None);
        for (index, profile) in Self::read_each(paths, reading)?.into_iter().enumerate() {
            for stack in profile.folded.stacks() {
                together
                    .folded
                    .push(stack.frames().map(str::to_owned), stack.samples);
            }
            together.missing = together.missing.or(profile.missing);
            together.event = profile
                .event
                .filter(|event| index == 0 || together.event.as_ref() == Some(event));
        }
        together.folded = together.folded.merged();
        Ok(together)
    }

    /// Its samples, and of which event they are where it is one that has a name: `1,234 samples of cycles`.
    pub(super) fn samples(&self) -> String {
        let samples = format!("{} samples", count(self.folded.samples()));
        match &self.event {
            Some(event) => format!("{samples} of {}", one_line(event)),
            None => samples,
        }
    }

    /// Reads a file of any form, or standard input; how it begins tells which.
    fn read(path: &Path, reading: Reading<'_>) -> Result<Self, String> {
        let input: Box<dyn Read> = if path == Path::new("-") {
            Box::new(Bounded::new(io::stdin().lock(), BYTES_MAX))
        } else {
            let input = Input::file_or_stream(path, BYTES_MAX).open();
            Box::new(input.map_err(|error| error.to_string())?)
        };
        let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
        let mut head = Vec::new();
        let mut beginning = input.by_ref().take(HEAD_BYTES);
        beginning
            .read_to_end(&mut head)
            .map_err(|error| error.to_string())?;
        if let Some(form) = ForeignForm::of_bytes(&head) {
            return Err(form.to_string());
        }
        let input = head.as_slice().chain(input);
        // DTrace's first: its messages look like a process of perf script's.
        if Dtrace::is_begun_by(&head) {
            return Self::of_dtrace(input, reading);
        }
        if PerfScript::is_begun_by(&head) {
            return Self::of_perf_script(input, reading);
        }
        let mut text = Vec::new();
        Bounded::new(input, WHOLE_BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(|error| error.to_string())?;
        if without_byte_order_mark(&text).trim_ascii().is_empty() {
            let forms = "perf script, dtrace or pmcstat -G printed, or folded stacks";
            return Err(format!("it is empty; give what {forms}"));
        }
        if CallGraph::is_begun_by(&text) {
            Self::of_call_graph(&text, reading)
        } else {
            Self::of_folded(&text, reading)
        }
    }

    fn of_no_event(folded: Folded<'static>, missing: Option<String>) -> Self {
        Self {
            folded,
            event: None,
            left_out: Vec::new(),
            missing,
        }
    }

    fn of_perf_script(input: impl BufRead, reading: Reading<'_>) -> Result<Self, String> {
        let script = PerfScript::read(input, reading.names, reading.event)
            .map_err(|error| error.to_string())?;
        let others = script.left_out.iter().map(|event| event.samples).sum();
        let remedy = "sample less often, or give perf record larger buffers (-m)";
        Ok(Self {
            missing: lost(script.lost_samples, &script.folded, others, remedy),
            folded: script.folded,
            event: script.event,
            left_out: script.left_out,
        })
    }

    fn of_dtrace(input: impl BufRead, reading: Reading<'_>) -> Result<Self, String> {
        refuse_event(reading)?;
        let names = if reading.is_whole {
            reading.names
        } else {
            FrameNames::ObjectsAndSymbols
        };
        let dtrace = Dtrace::read(input, names).map_err(|error| error.to_string())?;
        let remedy = "sample less often, or give dtrace larger buffers (-x aggsize, -b)";
        let missing = lost(dtrace.lost_samples, &dtrace.folded, 0, remedy);
        Ok(Self::of_no_event(dtrace.folded, missing))
    }

    fn of_call_graph(text: &[u8], reading: Reading<'_>) -> Result<Self, String> {
        let graph = CallGraph::parse(text).map_err(|error| error.to_string())?;
        let (graph, left_out) = graph
            .of_event(reading.event)
            .map_err(|error| error.to_string())?;
        let missing = graph.truncation(None).map(|truncation| {
            let what = if truncation.missing_share() > 0.0 {
                format!(
                    "{:.1} % of its samples are missing, and what is left is what has most of them",
                    truncation.missing_share() * 100.0
                )
            } else {
                "its last line has no end, so a name may be cut and others be missing".to_owned()
            };
            format!("truncated: {what}; profile again, or fetch the file when pmcstat has ended")
        });
        let event = graph.sections().first().map(|section| section.event);
        let event = event.map(str::to_owned);
        let folded = if reading.is_whole {
            graph.fold(reading.names)
        } else {
            graph.stackcollapse()
        };
        Ok(Self {
            folded: folded.into_owned(),
            event,
            left_out,
            missing,
        })
    }

    fn of_folded(text: &[u8], reading: Reading<'_>) -> Result<Self, String> {
        let folded = Folded::parse(text).map_err(|error| error.to_string())?;
        let folded = folded.of_one_profile().map_err(|error| error.to_string())?;
        refuse_event(reading)?;
        let folded = if reading.is_whole {
            folded.merged()
        } else {
            folded
        };
        Ok(Self::of_no_event(folded.into_owned(), None))
    }
}

/// An event cannot be chosen where none has a name.
fn refuse_event(reading: Reading<'_>) -> Result<(), String> {
    match reading.event {
        Some(event) => Err(format!(
            "its form names no events, so none is {event:?}; leave --event out"
        )),
        None => Ok(()),
    }
}

/// What is said of samples that were lost; those of other events, `others`, are part of all.
fn lost(samples: u64, folded: &Folded, others: u64, remedy: &str) -> Option<String> {
    let all = [folded.samples(), others]
        .into_iter()
        .fold(samples, u64::saturating_add);
    (samples > 0).then(|| format!("{} of {all} samples were lost; {remedy}", count(samples)))
}

/// What an input is called in what is said of it.
pub(super) fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".to_owned();
    }
    one_line(&path.display().to_string())
}
