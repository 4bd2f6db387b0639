//! What Linux's `perf script` prints, folded while it is read.

use std::borrow::Cow;
use std::io::BufRead;

use crate::stacks::Stacks;
use crate::text::{PrintedError, each_line};
use crate::{Folded, FrameNames};

/// Whose text it is, for an error.
const PROGRAM: &str = "perf script";
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
/// # Ok::<(), fwdlab_profile::PrintedError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PerfScript {
    /// Each stack once, in the order of its names.
    pub folded: Folded<'static>,
    /// How many samples were lost, as far as the text tells: `perf script --show-lost-events`.
    pub lost_samples: u64,
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
    /// [`PrintedError`].
    pub fn read(text: impl BufRead, names: FrameNames) -> Result<Self, PrintedError> {
        let mut reader = Reader {
            names,
            process: None,
            stacks: Stacks::default(),
            lost_samples: 0,
        };
        each_line(PROGRAM, text, |number, line| reader.take(number, line))?;
        reader.end_sample();
        Ok(Self {
            folded: reader.stacks.finish(),
            lost_samples: reader.lost_samples,
        })
    }
}

/// What was read so far.
struct Reader {
    names: FrameNames,
    /// The process whose sample is being read.
    process: Option<u32>,
    stacks: Stacks,
    lost_samples: u64,
}

impl Reader {
    fn take(&mut self, number: u64, line: &[u8]) -> Result<(), PrintedError> {
        let line = line.trim_ascii_end();
        match line.first() {
            None => self.end_sample(),
            Some(b'#') => {}
            Some(b' ' | b'\t') => {
                let function = function(line)
                    .filter(|_| self.process.is_some())
                    .ok_or_else(|| {
                        wrong(number, "an address and a function below a process", line)
                    })?;
                let names = self.names;
                let frame = self
                    .stacks
                    .name(function, |function| frame_name(function, names));
                self.stacks.push(frame);
            }
            Some(_) => {
                // perf leaves no line between samples without functions.
                self.end_sample();
                if let Some(lost) = lost_samples(line) {
                    self.lost_samples = self.lost_samples.saturating_add(lost);
                    return Ok(());
                }
                let name = process_name(line)
                    .ok_or_else(|| wrong(number, "a process, its number and an event", line))?;
                self.process = Some(self.stacks.name(name, |name| name.into()));
            }
        }
        Ok(())
    }

    fn end_sample(&mut self) {
        if let Some(process) = self.process.take() {
            self.stacks.push(process);
            self.stacks.end(1);
        }
    }
}

fn wrong(line: u64, expected: &'static str, found: &[u8]) -> PrintedError {
    PrintedError::of_line(PROGRAM, line, expected, found)
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

/// What stands behind the address of a line of a function, from the space on: no process's name begins so.
fn function(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    let rest = &line[end..];
    (end > 0 && rest[0] == b' ' && rest.len() > 1).then_some(rest)
}

/// `ip_forward` of ` ip_forward+0x40 ([kernel.kallsyms])`.
///
/// A function without a symbol is called by its object, where that is known: `[libc.so.6]`.
fn frame_name(function: &str, names: FrameNames) -> Cow<'_, str> {
    let function = &function[1..];
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
            matches!(error, PrintedError::TooLong { line: 1, .. }),
            "{error}"
        );
        assert_eq!(fold("", FrameNames::Symbols), "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_folded_or_refused_with_one_of_their_lines(bytes: Vec<u8>) {
            if let Err(PrintedError::Line { line, .. }) =
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
