//! What DTrace prints of stacks that it counted, folded while it is read.

use std::borrow::Cow;
use std::io::BufRead;
use std::str;

use crate::stacks::Stacks;
use crate::text::{PrintedError, each_line, quoted, readable};
use crate::{Folded, FrameNames};

/// Whose text it is, for an error.
const PROGRAM: &str = "dtrace";

/// Samples that `dtrace -n 'profile-997 { @[stack()] = count(); }'` counted by their stacks, folded.
///
/// A stack is a line for each function, from the one in which the samples were taken to the root, and below
/// them their count:
///
/// ```text
/// CPU     ID                    FUNCTION:NAME
///   0  64091                        :tick-60s
///
///
///               kernel`ip_input+0x12c
///               kernel`netisr_dispatch_src+0xb9
///               kernel`0xffffffff810a35ae
///                 5
/// ```
///
/// A stack may have an empty line in it, where one of the kernel and one of a process were counted as a pair
/// (`@[stack(), ustack()]`). What else was counted by, in the line above a stack or in front of its count, is
/// its root: `iperf3` of `@[execname, stack()]`, `3` of `@[cpu, stack()]`. What is held grows with the
/// distinct stacks and addresses, not with the length of the text.
///
/// Frames are called as `stackcollapse.pl` calls them, with their objects or without: no offset, no arguments of
/// C++. That script also cuts names at any plus, such as that of `libstdc++.so.6`, takes what else was counted by
/// for functions, and never reads the first three lines. Neither is done here. Samples without a stack are
/// those of `[unknown]`.
///
/// # Source
/// github.com/brendangregg/FlameGraph, `stackcollapse.pl`; illumos, `lib/libdtrace/common/dt_consume.c`, for how
/// stacks, keys and counts are printed.
///
/// # Examples
/// ```
/// use fwdlab_profile::{Dtrace, FrameNames};
/// let text = "\n              kernel`ip_input+0x12c\n              kernel`netisr_dispatch_src+0xb9\n                5\n";
/// let dtrace = Dtrace::read(text.as_bytes(), FrameNames::ObjectsAndSymbols)?;
/// assert_eq!(dtrace.folded.to_string(), "kernel`netisr_dispatch_src;kernel`ip_input 5\n");
/// # Ok::<(), fwdlab_profile::PrintedError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dtrace {
    /// Each stack once, in the order of its names.
    pub folded: Folded<'static>,
    /// How many samples were lost, as far as the text tells: where dtrace's messages are among it.
    pub lost_samples: u64,
}

impl Dtrace {
    /// Whether a text that begins so is one: a heading of dtrace's, or an indented function.
    #[must_use]
    pub fn is_begun_by(text: &[u8]) -> bool {
        readable(text).is_ok_and(|text| {
            text.split(|&byte| byte == b'\n').any(|line| {
                is_heading(line) || (indentation(line) > 0 && is_certain_frame(line.trim_ascii()))
            })
        })
    }

    /// Reads to the end.
    ///
    /// Shape: line ends of either kind, any indentation; headings, messages of dtrace and titles are passed
    /// over.
    ///
    /// # Errors
    /// [`PrintedError`].
    pub fn read(text: impl BufRead, names: FrameNames) -> Result<Self, PrintedError> {
        let mut reader = Reader {
            names,
            stacks: Stacks::default(),
            held: Vec::new(),
            key: None,
            frames_indentation: 0,
            last: (0, String::new()),
            lost_samples: 0,
        };
        let is_torn = each_line(PROGRAM, text, |number, line| reader.take(number, line))?;
        reader.finish(is_torn)
    }
}

/// What was read so far.
struct Reader {
    names: FrameNames,
    stacks: Stacks,
    /// Lines of one indentation that may be above a stack or begin it, until the next line tells.
    held: Vec<Held>,
    /// What else the stack that is being read was counted by.
    key: Option<String>,
    frames_indentation: usize,
    /// The last line with something in it, for an error at the end.
    last: (u64, String),
    lost_samples: u64,
}

/// A line: what else a stack was counted by, a function of no certain form as Java's are, a count without a
/// stack, or a title.
struct Held {
    line: u64,
    indentation: usize,
    text: String,
    /// The bytes of this text and those above.
    bytes: usize,
}

impl Reader {
    fn take(&mut self, number: u64, line: &[u8]) -> Result<(), PrintedError> {
        self.take_line(number, line)?;
        let waiting = self.held.last().map_or(0, |held| held.bytes);
        let key = self.key.as_ref().map_or(0, String::len);
        self.stacks.check(number, waiting + key)
    }

    fn take_line(&mut self, number: u64, line: &[u8]) -> Result<(), PrintedError> {
        let indentation = indentation(line);
        let text = line.trim_ascii();
        if text.is_empty() {
            return self.pass_held();
        }
        self.last = (number, quoted(&String::from_utf8_lossy(text)));
        if is_heading(line) {
            return self.pass_held();
        }
        if let Some(message) = text.strip_prefix(b"dtrace: ") {
            let lost = lost_samples(message);
            self.lost_samples = self.lost_samples.saturating_add(lost);
            return Ok(());
        }
        if text == b"^C" {
            return Ok(());
        }
        if is_distribution(text) {
            return Err(wrong(number, "a count, not a distribution", text));
        }
        if is_separated_number(text) {
            return Err(wrong(number, "a count of digits alone", text));
        }
        if is_number(text) {
            self.take_number(number, indentation, text)
        } else if self.stacks.is_empty() && self.key.is_none() {
            self.take_first(number, indentation, text)
        } else {
            self.take_next(number, indentation, text)
        }
    }

    fn take_number(
        &mut self,
        number: u64,
        indentation: usize,
        text: &[u8],
    ) -> Result<(), PrintedError> {
        if !self.stacks.is_empty() {
            return self.end(number, text);
        }
        if self.held.is_empty() {
            self.hold(number, indentation, text);
            return Ok(());
        }
        match self.take_key() {
            Some(key) => self.key = Some(key),
            None => self.push_held(),
        }
        self.end(number, text)
    }

    /// A line while no stack is being read: its first function, or something above it.
    fn take_first(
        &mut self,
        number: u64,
        indentation: usize,
        text: &[u8],
    ) -> Result<(), PrintedError> {
        let above = self.held.last().map(|held| held.indentation);
        if above.is_some_and(|above| above < indentation)
            && let Some(key) = self.take_key()
        {
            self.key = Some(key);
            self.push(indentation, text);
        } else if above.is_none_or(|above| above == indentation) && is_certain_frame(text) {
            self.push_held();
            self.push(indentation, text);
        } else {
            if above != Some(indentation) {
                self.pass_held()?;
            }
            self.hold(number, indentation, text);
        }
        Ok(())
    }

    /// A line below a function: the next one, or a count with something else in front of it.
    fn take_next(
        &mut self,
        number: u64,
        indentation: usize,
        text: &[u8],
    ) -> Result<(), PrintedError> {
        if indentation >= self.frames_indentation || is_certain_frame(text) {
            self.push(indentation, text);
            return Ok(());
        }
        let space = text.iter().rposition(|byte| byte.is_ascii_whitespace());
        let (key, count) = text.split_at(space.unwrap_or(0));
        if !is_number(count.trim_ascii()) {
            return Err(wrong(number, "a function or a count", text));
        }
        let key = words(key);
        self.key = Some(match self.key.take() {
            Some(above) => format!("{above} {key}"),
            None => key,
        });
        self.end(number, count.trim_ascii())
    }

    fn hold(&mut self, line: u64, indentation: usize, text: &[u8]) {
        let text = words(text);
        let above = self.held.last().map_or(0, |held| held.bytes);
        self.held.push(Held {
            line,
            indentation,
            bytes: above + size_of::<Held>() + text.len(),
            text,
        });
    }

    /// The line held, if it is one.
    fn take_key(&mut self) -> Option<String> {
        match self.held.len() {
            1 => self.held.pop().map(|held| held.text),
            _ => None,
        }
    }

    fn push_held(&mut self) {
        for held in std::mem::take(&mut self.held) {
            self.push(held.indentation, held.text.as_bytes());
        }
    }

    /// What to make of lines that no stack stands right below.
    fn pass_held(&mut self) -> Result<(), PrintedError> {
        for held in std::mem::take(&mut self.held) {
            let text = held.text.as_bytes();
            if is_number(text) {
                self.end(held.line, text)?;
            } else if held.indentation > 0 {
                return Err(wrong(held.line, "a stack below it", text));
            }
        }
        Ok(())
    }

    fn push(&mut self, indentation: usize, text: &[u8]) {
        if self.stacks.is_empty() {
            self.frames_indentation = indentation;
        }
        let names = self.names;
        let name = self.stacks.name(text, |text| frame_name(text, names));
        self.stacks.push(name);
    }

    fn end(&mut self, line: u64, count: &[u8]) -> Result<(), PrintedError> {
        let samples = str::from_utf8(count)
            .ok()
            .and_then(|text| text.parse().ok());
        let samples = samples
            .filter(|samples| *samples <= self.stacks.room())
            .ok_or_else(|| wrong(line, "counts below 2^64 in all", count))?;
        if let Some(key) = self.key.take() {
            self.stacks.push_named(key);
        } else if self.stacks.is_empty() {
            self.stacks.push_named(String::new());
        }
        self.stacks.end(samples);
        Ok(())
    }

    fn finish(mut self, is_torn: bool) -> Result<Dtrace, PrintedError> {
        let (line, found) = std::mem::take(&mut self.last);
        let wrong = |expected| PrintedError::Line {
            line,
            expected,
            found,
            program: PROGRAM,
        };
        if is_torn {
            return Err(wrong("an end of the last line, whose number may be cut"));
        }
        if !self.stacks.is_empty() || self.key.is_some() {
            return Err(wrong("a count below the last stack"));
        }
        self.pass_held()?;
        Ok(Dtrace {
            folded: self.stacks.finish(),
            lost_samples: self.lost_samples,
        })
    }
}

fn wrong(line: u64, expected: &'static str, found: &[u8]) -> PrintedError {
    PrintedError::of_line(PROGRAM, line, expected, found)
}

fn indentation(line: &[u8]) -> usize {
    line.len() - line.trim_ascii_start().len()
}

/// A text with one space between its words.
fn words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// `1,234`, which neither a function nor dtrace's counts look like.
fn is_separated_number(text: &[u8]) -> bool {
    let mut groups = text.split(|byte| matches!(byte, b',' | b'\'' | b'_'));
    groups.next().is_some_and(is_number)
        && groups.clone().next().is_some()
        && groups.all(|group| group.len() == 3 && is_number(group))
}

/// `CPU     ID                    FUNCTION:NAME`, and the lines of the probes that it stands above.
fn is_heading(line: &[u8]) -> bool {
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let words = [words.next(), words.next(), words.next(), words.next()];
    match words {
        [Some(b"CPU"), Some(b"ID"), Some(b"FUNCTION:NAME"), None] => true,
        [Some(cpu), Some(id), Some(probe), None] => {
            is_number(cpu) && is_number(id) && probe.contains(&b':') && !probe.contains(&b'`')
        }
        _ => false,
    }
}

/// The heading of `quantize` and its like.
fn is_distribution(text: &[u8]) -> bool {
    text.starts_with(b"value") && text.windows(14).any(|part| part == b" Distribution ")
}

/// Whether a line can be nothing but a function: ``kernel`ip_input+0x12c``, or an address.
fn is_certain_frame(text: &[u8]) -> bool {
    let object = text.iter().position(|&byte| byte == b'`');
    let has_object =
        object.is_some_and(|end| end > 0 && !text[..end].iter().any(u8::is_ascii_whitespace));
    has_object || is_address(text)
}

fn is_address(text: &[u8]) -> bool {
    text.strip_prefix(b"0x").is_some_and(is_hexadecimal)
}

fn is_hexadecimal(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_hexdigit)
}

/// ``kernel`ip_input`` of ``kernel`ip_input+0x12c``, or `ip_input`.
///
/// A function without a symbol is called by its object, where that is known: `[kernel]`.
fn frame_name(text: &str, names: FrameNames) -> Cow<'_, str> {
    let name = match text.rsplit_once("+0x") {
        Some((name, offset)) if is_hexadecimal(offset.as_bytes()) => name,
        _ => text,
    };
    let name = without_arguments(name);
    match (names, name.split_once('`')) {
        _ if name.is_empty() => "-".into(),
        (FrameNames::Symbols, Some((object, symbol)))
            if symbol.is_empty() || is_address(symbol.as_bytes()) =>
        {
            format!("[{object}]").into()
        }
        (FrameNames::Symbols, Some((_, symbol))) => symbol.into(),
        _ => name.into(),
    }
}

/// `Foo::bar` of `Foo::bar(int)`: up to the last parenthesis or bracket that opens behind the first `::`.
fn without_arguments(name: &str) -> &str {
    let scoped = name.find("::").map_or(name.len(), |scope| scope + 2);
    let opened = name[scoped..].rfind(['(', '<']);
    &name[..opened.map_or(name.len(), |opened| scoped + opened)]
}

/// The samples that a message tells of: `7 aggregation drops on CPU 0`.
///
/// Other drops, of dynamic variables or of speculations, lose no sample of an aggregation.
fn lost_samples(message: &[u8]) -> u64 {
    let message = String::from_utf8_lossy(message);
    let mut words = message.split_ascii_whitespace();
    let count = words.next().and_then(|word| word.parse().ok());
    let kind = words.next().unwrap_or_default();
    let kind = if kind == "aggregation" {
        words.next().unwrap_or_default()
    } else {
        kind
    };
    count
        .filter(|_| matches!(kind, "drop" | "drops"))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, names: FrameNames) -> Dtrace {
        Dtrace::read(text.as_bytes(), names).unwrap()
    }

    fn fold(text: &str) -> String {
        read(text, FrameNames::ObjectsAndSymbols).folded.to_string()
    }

    const TEXT: &str = "CPU     ID                    FUNCTION:NAME\n  0  64091                        :tick-60s \n\n\n\
        \x20             kernel`ip_input+0x12c\n\
        \x20             if_ix.ko`ixgbe_rxd+0x31\n\
        \x20             kernel`fork_exit+0x80\n\
        \x20             kernel`0xffffffff810a35ae\n\
        \x20               5\n\n\
        \x20             0x104d08831\n\
        \x20             libjvm.so`JavaCalls::call(JavaValue*, Handle<int>)+0x6ae\n\
        \x20             libstdc++.so.6`0x7f01\n\
        \x20             a.out`Node::get<T>(int)\n\
        \x20             a.out`operator+=\n\
        \x20               3\n\
        \n\
        \x20             kernel`ip_input+0x130\n\
        \x20             if_ix.ko`ixgbe_rxd+0x31\n\
        \x20             kernel`fork_exit+0x80\n\
        \x20             kernel`0xffffffff810a35ae\n\
        \x20               2\n";

    #[test]
    fn stacks_are_folded_by_objects_and_functions_or_functions_alone() {
        assert_eq!(
            fold(TEXT),
            "a.out`operator+=;a.out`Node::get<T>;libstdc++.so.6`0x7f01;libjvm.so`JavaCalls::call(JavaValue*, Handle;\
             0x104d08831 3\n\
             kernel`0xffffffff810a35ae;kernel`fork_exit;if_ix.ko`ixgbe_rxd;kernel`ip_input 7\n"
        );
        assert_eq!(
            read(TEXT, FrameNames::Symbols).folded.to_string(),
            "[kernel];fork_exit;ixgbe_rxd;ip_input 7\n\
             operator+=;Node::get<T>;[libstdc++.so.6];JavaCalls::call(JavaValue*, Handle;0x104d08831 3\n"
        );
    }

    /// What FlameGraph's script made of the same text: `perl stackcollapse.pl`.
    #[test]
    fn stacks_of_a_kernel_and_pairs_of_two_fold_as_the_script_does() {
        let stacks = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        for (text, of_script) in [
            (
                include_str!("../tests/dtrace/forwarding.txt"),
                include_str!("../tests/dtrace/forwarding.stacks"),
            ),
            (
                include_str!("../tests/dtrace/pairs.txt"),
                include_str!("../tests/dtrace/pairs.stacks"),
            ),
        ] {
            assert!(Dtrace::is_begun_by(text.as_bytes()));
            assert_eq!(stacks(&fold(text)), stacks(of_script));
        }
    }

    #[test]
    fn what_else_was_counted_by_is_the_root() {
        for (text, expected) in [
            // @[execname, stack()] with a stack and, in user mode, without one
            (
                "\n  Web Content                                       \n              k`a+0x1\n              k`b\n    4\n\
                 \x20 nc                                               \n                1\n",
                "Web Content;k`b;k`a 4\nnc 1\n",
            ),
            // @[cpu, stack()]
            (
                "        3\n              k`a+0x1\n                4\n        0\n              k`a\n                2\n",
                "0;k`a 2\n3;k`a 4\n",
            ),
            // @[stack(), ustack(), execname, pid]
            (
                "\n              k`a+0x1\n\n              l`b\n  nc                             77                4\n",
                "nc 77;l`b;k`a 4\n",
            ),
            // @[stack()] in user mode, and another aggregation
            (
                "\n                9\n\n\n              k`a+0x1\n                4\n  1  12          :END \n\n\
                 \n              k`a+0x1\n                1\n",
                "[unknown] 9\nk`a 5\n",
            ),
            // printf and printa
            (
                "Sampling stacks...\nTop 20 kernel stacks:\n\nnc\n              k`a+0x1\n4\n",
                "nc;k`a 4\n",
            ),
            // Functions of a virtual machine
            (
                "\n              Foo.run()V\n              Bar.run()V\n              l`c+0x1\n              Baz.run()V\n                4\n",
                "Baz.run()V;l`c;Bar.run()V;Foo.run()V 4\n",
            ),
        ] {
            assert_eq!(fold(text), expected, "{text}");
            assert!(Dtrace::is_begun_by(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn lost_samples_are_those_that_dtrace_tells_of() {
        let text = "dtrace: description 'profile-997 ' matched 1 probe\ndtrace: 7 aggregation drops on CPU 0\n\
            dtrace: 1 drop on CPU 1\ndtrace: 5 dynamic variable drops\n^C\n\n              k`a\n                1\n";
        let dtrace = read(text, FrameNames::Symbols);
        assert_eq!(dtrace.lost_samples, 8);
        assert_eq!(dtrace.folded.to_string(), "a 1\n");
    }

    #[test]
    fn what_is_something_else_is_said_with_its_line() {
        for (text, expected) in [
            (
                "\n  nc                 5\n  ssh                6\n",
                "line 2: expected a stack below it (\"nc 5\"); give what dtrace prints",
            ),
            (
                "\n           value  ------------- Distribution ------------- count\n",
                "line 2: expected a count, not a distribution",
            ),
            (
                "\n              k`a\n",
                "line 2: expected a count below the last stack (\"k`a\")",
            ),
            (
                "\n              k`a\n                12",
                "line 3: expected an end of the last line, whose number may be cut (\"12\")",
            ),
            (
                "\n              k`a\n  nc\n              l`a\n",
                "line 3: expected a function or a count",
            ),
            (
                "\n              k`a\n                18446744073709551616\n",
                "line 3: expected counts below 2^64 in all",
            ),
        ] {
            let error = Dtrace::read(text.as_bytes(), FrameNames::Symbols).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        for text in [
            "",
            "a;k`b 1\n",
            "nc 7 1.0: c: \n\tffff x`y (z)\n",
            "@ x [1 samples]\n",
        ] {
            assert!(!Dtrace::is_begun_by(text.as_bytes()), "{text}");
        }
        assert_eq!(fold(""), "");
        assert_eq!(fold(" "), "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_folded_or_refused_with_one_of_their_lines(text in "[ 0-9a-z`\\n:+.]{0,60}") {
            if let Err(PrintedError::Line { line, .. }) =
                Dtrace::read(text.as_bytes(), FrameNames::Symbols)
            {
                let lines = text.split('\n').count() as u64;
                prop_assert!((1..=lines).contains(&line), "{line} {text:?}");
            }
        }

        #[test]
        fn what_is_printed_is_folded_whole(
            stacks in prop::collection::vec((prop::collection::vec("[a-z_]{1,6}", 1..5), 1_u32..1000), 0..30),
        ) {
            let text: String = stacks
                .iter()
                .map(|(stack, count)| {
                    let frames: String = stack
                        .iter()
                        .map(|frame| format!("              kernel`{frame}+0x1f\n"))
                        .collect();
                    format!("\n{frames} {count:>16}\n")
                })
                .collect();
            let mut expected = Folded::new();
            for (stack, count) in &stacks {
                let names = stack.iter().rev().map(|name| format!("kernel`{name}"));
                expected.push(names, u64::from(*count));
            }
            prop_assert_eq!(fold(&text), expected.merged().to_string());
        }
    }
}
