//! What Linux's `perf script` prints, folded while it is read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead, Read as _};

use crate::text::quoted;
use crate::{Folded, FrameNames};

/// No line of `perf script` is nearly as long; whatever is, is read no further.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// What a function without a symbol is called.
const UNKNOWN: &str = "[unknown]";

/// Samples of `perf script`, folded.
///
/// A sample is a line that tells the process, and a line for each function, from the one in which the sample
/// was taken to the root:
///
/// ```text
/// iperf3 18768 [000]  6635.283748:    2004008 cpu-clock:
///         ffffffff81c4e8d0 ip_forward+0x40 ([kernel.kallsyms])
///         ffffffff81c4c2f1 ip_rcv+0x31 ([kernel.kallsyms])
/// ```
///
/// The process's name is the root of its stacks. What is held grows with the distinct stacks and addresses, not
/// with the length of the text.
///
/// # Source
/// Linux, `tools/perf/builtin-script.c`.
///
/// # Examples
/// ```
/// use fwdlab_profile::{FrameNames, PerfScript};
/// let text = "nc 7 [001] 12.5: 1000 cycles: \n\
///             \tffffffff81 ip_forward+0x40 ([kernel.kallsyms])\n\
///             \tffffffff80 ip_rcv+0x31 ([kernel.kallsyms])\n\n";
/// let script = PerfScript::read(text.as_bytes(), FrameNames::Symbols)?;
/// assert_eq!(script.folded.to_string(), "nc;ip_rcv;ip_forward 1\n");
/// # Ok::<(), fwdlab_profile::PerfScriptError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PerfScript {
    /// Each stack once, in the order of its names.
    pub folded: Folded<'static>,
    /// How many samples were lost, as far as the text tells: `perf script --show-lost-events`.
    pub lost_samples: u64,
}

/// Why a text is not what `perf script` prints.
#[derive(Debug, thiserror::Error)]
pub enum PerfScriptError {
    /// A line is neither of a process nor of a function.
    #[error("line {line}: expected {expected} ({found:?}); give what perf script prints")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What should stand there.
        expected: &'static str,
        /// How it begins.
        found: String,
    },
    /// A line goes on for ever.
    #[error("line {line}: longer than 1 MiB; give what perf script prints")]
    TooLong {
        /// The line, from 1.
        line: u64,
    },
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl PerfScript {
    /// Whether a text that begins so is one: a process, and below it a function.
    #[must_use]
    pub fn is_begun_by(text: &[u8]) -> bool {
        let mut lines = text
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        let process = lines.next().and_then(process_name);
        let function = lines.next().map(|line| line.first());
        process.is_some() && matches!(function, None | Some(Some(b' ' | b'\t')))
    }

    /// Reads to the end.
    ///
    /// Shape: line ends of either kind; comments begin with `#`. The last sample may have no empty line behind
    /// it.
    ///
    /// # Errors
    /// [`PerfScriptError`].
    pub fn read(mut text: impl BufRead, names: FrameNames) -> Result<Self, PerfScriptError> {
        let mut reader = Reader::new(names);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = text
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            reader.line += 1;
            if read as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
                return Err(PerfScriptError::TooLong { line: reader.line });
            }
            reader.take(&line)?;
        }
        reader.end_sample();
        Ok(reader.finish())
    }
}

/// What was read so far.
struct Reader {
    line: u64,
    names: FrameNames,
    /// Names of frames, each once.
    frames: Vec<String>,
    by_name: HashMap<String, u32>,
    /// The same by what their lines hold behind the address, so that a line is taken apart once.
    by_text: HashMap<Box<[u8]>, u32>,
    processes: HashMap<Box<[u8]>, u32>,
    /// The stack that is being read, from the function to the root.
    open: Vec<u32>,
    process: Option<u32>,
    samples: HashMap<Box<[u32]>, u64>,
    lost_samples: u64,
}

impl Reader {
    fn new(names: FrameNames) -> Self {
        Self {
            line: 0,
            names,
            frames: Vec::new(),
            by_name: HashMap::new(),
            by_text: HashMap::new(),
            processes: HashMap::new(),
            open: Vec::new(),
            process: None,
            samples: HashMap::new(),
            lost_samples: 0,
        }
    }

    fn take(&mut self, line: &[u8]) -> Result<(), PerfScriptError> {
        let line = line.trim_ascii_end();
        match line.first() {
            None => self.end_sample(),
            Some(b'#') => {}
            Some(b' ' | b'\t') => {
                let function = function(line)
                    .filter(|_| self.process.is_some())
                    .ok_or_else(|| self.wrong("an address and a function below a process", line))?;
                let frame = match self.by_text.get(function) {
                    Some(&frame) => frame,
                    None => self.new_frame(function),
                };
                self.open.push(frame);
            }
            Some(_) => {
                // perf leaves no line between samples without functions.
                self.end_sample();
                if let Some(lost) = lost_samples(line) {
                    self.lost_samples = self.lost_samples.saturating_add(lost);
                    return Ok(());
                }
                let name = process_name(line)
                    .ok_or_else(|| self.wrong("a process, its number and an event", line))?;
                let process = match self.processes.get(name) {
                    Some(&process) => process,
                    None => {
                        let process = self.named(&String::from_utf8_lossy(name));
                        self.processes.insert(name.into(), process);
                        process
                    }
                };
                self.process = Some(process);
            }
        }
        Ok(())
    }

    fn wrong(&self, expected: &'static str, line: &[u8]) -> PerfScriptError {
        PerfScriptError::Line {
            line: self.line,
            expected,
            found: quoted(&String::from_utf8_lossy(line)),
        }
    }

    fn end_sample(&mut self) {
        let Some(process) = self.process.take() else {
            return;
        };
        self.open.push(process);
        match self.samples.get_mut(self.open.as_slice()) {
            Some(samples) => *samples += 1,
            None => {
                self.samples.insert(self.open.as_slice().into(), 1);
            }
        }
        self.open.clear();
    }

    fn new_frame(&mut self, function: &[u8]) -> u32 {
        let frame = self.named(&frame_name(&String::from_utf8_lossy(function), self.names));
        self.by_text.insert(function.into(), frame);
        frame
    }

    fn named(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let index = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        self.frames.push(name.to_owned());
        self.by_name.insert(name.to_owned(), index);
        index
    }

    fn finish(self) -> PerfScript {
        let mut folded = Folded::new();
        for (stack, samples) in &self.samples {
            let names = stack.iter().rev();
            folded.push(
                names.map(|&frame| self.frames[frame as usize].clone()),
                *samples,
            );
        }
        PerfScript {
            folded: folded.merged(),
            lost_samples: self.lost_samples,
        }
    }
}

/// The name of a process, which may have spaces in it: what stands before its number.
fn process_name(line: &[u8]) -> Option<&[u8]> {
    if matches!(line.first()?, b' ' | b'\t') || !line.contains(&b':') {
        return None;
    }
    let mut from = 0;
    loop {
        let space = from + line[from..].iter().position(|&byte| byte == b' ')?;
        let word = line[space..].trim_ascii_start();
        let number = word
            .iter()
            .position(|byte| !byte.is_ascii_digit() && *byte != b'/')?;
        let is_number = number > 0 && word[0].is_ascii_digit() && word[number] == b' ';
        if is_number && space > 0 {
            return Some(&line[..space]);
        }
        // On behind the spaces.
        from = line.len() - word.len();
        if from <= space {
            return None;
        }
    }
}

/// What stands behind the address of a line of a function.
fn function(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    let rest = line[end..].strip_prefix(b" ")?;
    (end > 0 && !rest.is_empty()).then_some(rest)
}

/// `ip_forward` of `ip_forward+0x40 ([kernel.kallsyms])`.
///
/// A function without a symbol is called by its object, where that is known: `[libc.so.6]`.
fn frame_name(function: &str, names: FrameNames) -> Cow<'_, str> {
    let (symbol, object) = function
        .strip_suffix(')')
        .and_then(|function| function.rsplit_once(" ("))
        .unwrap_or((function, ""));
    let symbol = match symbol.rsplit_once("+0x") {
        Some((symbol, offset))
            if !symbol.is_empty() && offset.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            symbol
        }
        _ => symbol,
    };
    let object = object.rsplit('/').next().unwrap_or(object);
    let is_known = !object.is_empty() && object != UNKNOWN;
    match names {
        FrameNames::Symbols if symbol == UNKNOWN && is_known => {
            format!("[{}]", object.trim_matches(['[', ']'])).into()
        }
        FrameNames::ObjectsAndSymbols if is_known => format!("{object}`{symbol}").into(),
        _ => symbol.into(),
    }
}

/// The count of a line of `--show-lost-events`.
fn lost_samples(line: &[u8]) -> Option<u64> {
    let line = str::from_utf8(line).ok()?;
    let (_, rest) = line.split_once("PERF_RECORD_LOST")?;
    rest.split_ascii_whitespace()
        .find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fold(text: &str, names: FrameNames) -> String {
        let script = PerfScript::read(text.as_bytes(), names).unwrap();
        script.folded.to_string()
    }

    const TEXT: &str = "# captured on a machine\n\
        Web Content 18768/3 [000]  6635.283748:    2004008 cpu-clock:u: \n\
        \t          153594 memset+0x114 (/usr/lib/libc.so.6)\n\
        \t           3bc0c [unknown] (/usr/lib/libc.so.6)\n\
        \n\
        ksoftirqd/0    14 [000]  6635.3: cycles: \n\
        \tffffffff81000010 ip_forward+0x40 ([kernel.kallsyms])\n\
        \tffffffff81000020 operator+0x (int) [clone .cold]+0x3 ([nf_tables])\n\
        \t               0 [unknown] ([unknown])\r\n\
        \n\
        ksoftirqd/0    14 [000]  6635.4: cycles: \n\
        \tffffffff81000018 ip_forward+0x48 ([kernel.kallsyms])\n\
        \tffffffff81000020 operator+0x (int) [clone .cold]+0x3 ([nf_tables])\n\
        \t               0 [unknown] ([unknown])\n\
        swapper     0 [001]  7.1: PERF_RECORD_LOST lost 7\n\
        swapper     0 [001]  7.2: cycles: \n";

    #[test]
    fn samples_are_folded_by_process_and_functions() {
        assert_eq!(
            fold(TEXT, FrameNames::Symbols),
            "Web Content;[libc.so.6];memset 1\n\
             ksoftirqd/0;[unknown];operator+0x (int) [clone .cold];ip_forward 2\n\
             swapper 1\n"
        );
        assert_eq!(
            fold(TEXT, FrameNames::ObjectsAndSymbols),
            "Web Content;libc.so.6`[unknown];libc.so.6`memset 1\n\
             ksoftirqd/0;[unknown];[nf_tables]`operator+0x (int) [clone .cold];[kernel.kallsyms]`ip_forward 2\n\
             swapper 1\n"
        );
        let script = PerfScript::read(TEXT.as_bytes(), FrameNames::Symbols).unwrap();
        assert_eq!(script.lost_samples, 7);
        assert!(PerfScript::is_begun_by(TEXT.as_bytes()));
    }

    #[test]
    fn what_is_something_else_is_said_with_its_line() {
        for (text, expected) in [
            (
                "prose\n",
                "line 1: expected a process, its number and an event",
            ),
            ("a;b 1\n", "line 1: expected a process"),
            (
                "\tffff x (y)\n",
                "line 1: expected an address and a function below a process",
            ),
            ("nc 7 1.0: c: \n\tno hex\n", "line 2: expected an address"),
        ] {
            let error = PerfScript::read(text.as_bytes(), FrameNames::Symbols).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert!(!PerfScript::is_begun_by(text.as_bytes()) || text.starts_with("nc"));
        }
        let endless = vec![b'x'; 3 << 20];
        let error = PerfScript::read(endless.as_slice(), FrameNames::Symbols).unwrap_err();
        assert!(
            matches!(error, PerfScriptError::TooLong { line: 1 }),
            "{error}"
        );
        assert_eq!(fold("", FrameNames::Symbols), "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_folded_or_refused_with_one_of_their_lines(bytes: Vec<u8>) {
            if let Err(PerfScriptError::Line { line, .. }) =
                PerfScript::read(bytes.as_slice(), FrameNames::Symbols)
            {
                let lines = bytes.split(|&byte| byte == b'\n').count() as u64;
                prop_assert!((1..=lines).contains(&line));
            }
        }

        #[test]
        fn every_sample_is_counted_once(
            samples in prop::collection::vec(prop::collection::vec("[a-z_]{1,6}", 0..5), 0..30),
        ) {
            let text: String = samples
                .iter()
                .map(|stack| {
                    let frames: String = stack
                        .iter()
                        .map(|frame| format!("\tffff {frame}+0x1 ([k])\n"))
                        .collect();
                    format!("nc 7 [000] 1.0: 1 cycles: \n{frames}\n")
                })
                .collect();
            let script = PerfScript::read(text.as_bytes(), FrameNames::Symbols).unwrap();
            prop_assert_eq!(script.folded.samples(), samples.len() as u64);
        }
    }
}
