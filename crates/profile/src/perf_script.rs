//! What Linux's `perf script` prints, folded while it is read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::BufRead;

use foldhash::fast::RandomState;

use crate::events::most_first;
use crate::perf_line::{
    Beginning, UNKNOWN, function, function_beside_event, is_indented, lost_samples,
};
use crate::stacks::Stacks;
use crate::text::{PrintedError, each_line, readable};
use crate::{EventSamples, Folded, FrameNames, NoSuchEvent};

/// Whose text it is, for an error.
const PROGRAM: &str = "perf script -F comm,tid,time,event,ip,sym,dso";
/// What is printed for the object of a function that the compiler put into its caller.
const INLINED: &str = "inlined";

/// Samples of an event that `perf script` printed, folded.
///
/// A sample is a line that tells the process and the event, and a line for each function, from the one in which the
/// sample was taken to the root. Of samples that were recorded without their callers, the function is in the same line:
///
/// ```text
/// iperf3 18768 [000]  6635.283748:    2004008 cpu-clock:
///         ffffffff81c4e8d0 ip_forward+0x40 ([kernel.kallsyms])
///         ffffffff81c4c2f1 ip_rcv+0x31 ([kernel.kallsyms])
/// ```
///
/// The process's name is the root of its stacks. A function that was inlined has the object of the function that it
/// is inlined in, a file that was replaced (`/usr/sbin/nginx (deleted)`) its own name. What is held grows with the
/// distinct stacks and addresses, not with the length of the text.
///
/// # Source
/// Linux, `tools/perf/builtin-script.c` and `tools/perf/util/evsel_fprintf.c`.
///
/// # Examples
/// ```
/// use fwdlab_profile::{FrameNames, PerfScript};
/// let text = "nc 7 [001] 12.5: 1000 cycles: \n\
///             \tffffffff81 ip_forward+0x40 ([kernel.kallsyms])\n\
///             \tffffffff80 ip_rcv+0x31 ([kernel.kallsyms])\n\n";
/// let script = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None)?;
/// assert_eq!(script.folded.to_string(), "nc;ip_rcv;ip_forward 1\n");
/// assert_eq!(script.event.as_deref(), Some("cycles"));
/// # Ok::<(), fwdlab_profile::PrintedError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PerfScript {
    /// Each stack once, in the order of its names.
    pub folded: Folded<'static>,
    /// The event of these samples; `None` without samples, `[unknown]` where the text names none.
    pub event: Option<String>,
    /// The samples of other events, the most first.
    pub left_out: Vec<EventSamples>,
    /// How many samples were lost, of all events, as far as the text tells: `perf script --show-lost-events`.
    pub lost_samples: u64,
}

impl PerfScript {
    /// Whether a text that begins so is one: a process with a time or a CPU, or with a function below it, or another
    /// record of perf's.
    #[must_use]
    pub fn is_begun_by(text: &[u8]) -> bool {
        let Ok(text) = readable(text) else {
            return false;
        };
        let mut lines = text
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty() && !is_comment(line));
        match lines.next().and_then(Beginning::of) {
            None => false,
            Some(Beginning::Record(_)) => true,
            Some(Beginning::Sample(sample)) => {
                sample.is_certain || lines.next().is_none_or(is_indented)
            }
        }
    }

    /// Reads the samples of one event to the end: the one asked for, or that of the first sample.
    ///
    /// Shape: line ends of either kind; comments begin with `#`. The last sample may have no empty line behind
    /// it.
    ///
    /// # Errors
    /// [`PrintedError`], also where no sample of the event has a function.
    pub fn read(
        text: impl BufRead,
        names: FrameNames,
        event: Option<&str>,
    ) -> Result<Self, PrintedError> {
        let mut reader = Reader {
            names,
            open: Open::Nothing,
            beside: Beside::Nothing,
            inlined: String::new(),
            has_functions: false,
            last: (0, true),
            stacks: Stacks::default(),
            event: event.map(|event| event.as_bytes().into()),
            samples: HashMap::default(),
            lost_samples: 0,
        };
        let is_torn = each_line(PROGRAM, text, |number, line| reader.take(number, line))?;
        let (line, is_complete) = reader.last;
        if is_torn && !is_complete {
            let expected = "an end of the last line, which may be cut";
            return Err(wrong(line, expected, b""));
        }
        reader.finish(event)
    }
}

/// What was read so far.
struct Reader {
    names: FrameNames,
    open: Open,
    beside: Beside,
    /// Functions that wait for the one that they are inlined in, each with a newline.
    inlined: String,
    /// Whether a sample of the event has one.
    has_functions: bool,
    /// The last line, and whether it is complete as far as one can see.
    last: (u64, bool),
    stacks: Stacks,
    /// The event that is folded, once it is known.
    event: Option<Box<[u8]>>,
    samples: HashMap<Box<[u8]>, u64, RandomState>,
    lost_samples: u64,
}

/// What stands in the line of the sample that is being read, behind its event.
enum Beside {
    Nothing,
    /// The sample's function, so none can be in lines below.
    Function,
    /// What looks like a function where perf prints other fields: an error unless the functions are in lines below.
    Other(PrintedError),
}

/// What the lines of functions belong to.
enum Open {
    Nothing,
    /// A sample that is folded, of this process.
    Sample(u32),
    /// One of another event.
    LeftOut,
    /// A record of another kind, some of which go on in further lines.
    Record,
}

impl Reader {
    fn take(&mut self, number: u64, line: &[u8]) -> Result<(), PrintedError> {
        self.take_line(number, line)?;
        self.stacks.check(number, self.inlined.len())
    }

    fn take_line(&mut self, number: u64, line: &[u8]) -> Result<(), PrintedError> {
        let line = line.trim_ascii_end();
        self.last = (number, matches!(line, [.., b')' | b':']));
        match line.first() {
            None => {
                self.end_sample()?;
                self.open = Open::Nothing;
            }
            Some(b'#') if is_comment(line) => {}
            Some(b'\t') => self.take_function(number, line)?,
            // Without callers, names of processes are aligned to the right.
            Some(b' ') => match Beginning::of(line) {
                Some(begun) if begun.is_certain() => self.begin(number, begun)?,
                _ => self.take_function(number, line)?,
            },
            Some(_) => {
                let begun = Beginning::of(line);
                let expected = "a process, its number and an event, in perf's columns";
                let begun = begun.ok_or_else(|| wrong(number, expected, line))?;
                self.begin(number, begun)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, number: u64, begun: Beginning<'_>) -> Result<(), PrintedError> {
        // perf leaves no line between samples without functions.
        self.end_sample()?;
        let sample = match begun {
            Beginning::Record(record) => {
                self.lost_samples = self.lost_samples.saturating_add(lost_samples(record));
                self.open = Open::Record;
                return Ok(());
            }
            Beginning::Sample(sample) => sample,
        };
        match self.samples.get_mut(sample.event) {
            Some(samples) => *samples += 1,
            None => {
                self.stacks.keep(sample.event.len());
                self.samples.insert(sample.event.into(), 1);
            }
        }
        let event = self.event.get_or_insert_with(|| sample.event.into());
        if **event != *sample.event {
            self.open = Open::LeftOut;
            return Ok(());
        }
        self.open = Open::Sample(self.stacks.name(sample.process, |name| name.into()));
        match function_beside_event(sample.rest) {
            None => {}
            Some((function, true)) => {
                self.push(function);
                self.beside = Beside::Function;
            }
            Some((_, false)) => {
                let expected = "the function right behind the event, without fields such as addr, data_src or weight";
                self.beside = Beside::Other(wrong(number, expected, sample.rest.trim_ascii()));
            }
        }
        Ok(())
    }

    fn take_function(&mut self, number: u64, line: &[u8]) -> Result<(), PrintedError> {
        if matches!(self.open, Open::Record) {
            return Ok(());
        }
        let function = function(line)
            .filter(|_| !matches!(self.open, Open::Nothing))
            .ok_or_else(|| wrong(number, "an address and a function below a process", line))?;
        if matches!(self.open, Open::Sample(_)) {
            if matches!(self.beside, Beside::Function) {
                let expected = "no function below one beside the event";
                return Err(wrong(number, expected, line));
            }
            self.beside = Beside::Nothing;
            self.push(function);
        }
        Ok(())
    }

    fn push(&mut self, function: &[u8]) {
        self.has_functions = true;
        let names = self.names;
        let is_inlined = function.ends_with(b" (inlined)");
        if names == FrameNames::ObjectsAndSymbols && (is_inlined || !self.inlined.is_empty()) {
            let text = String::from_utf8_lossy(function);
            let Function { symbol, object } = Function::of(&text);
            if is_inlined {
                self.inlined.push_str(symbol);
                self.inlined.push('\n');
                return;
            }
            for symbol in std::mem::take(&mut self.inlined).split_terminator('\n') {
                let inlined = Function { symbol, object };
                self.stacks.push_named(inlined.name(names).into_owned());
            }
        }
        let frame = self
            .stacks
            .name(function, |function| Function::of(function).name(names));
        self.stacks.push(frame);
    }

    fn end_sample(&mut self) -> Result<(), PrintedError> {
        if let Beside::Other(error) = std::mem::replace(&mut self.beside, Beside::Nothing) {
            return Err(error);
        }
        if let Open::Sample(process) = self.open {
            for symbol in std::mem::take(&mut self.inlined).split_terminator('\n') {
                self.stacks.push_named(symbol.to_owned());
            }
            self.stacks.push(process);
            self.stacks.end(1);
        }
        Ok(())
    }

    fn finish(mut self, asked: Option<&str>) -> Result<PerfScript, PrintedError> {
        self.end_sample()?;
        let event = self.event.unwrap_or_default();
        let taken = self.samples.remove(&event);
        let name = |event: &[u8]| String::from_utf8_lossy(event).into_owned();
        let left_out = self.samples.into_iter();
        let left_out = most_first(left_out.map(|(event, samples)| (name(&event), samples)));
        if let (Some(asked), None) = (asked, taken) {
            return Err(PrintedError::Event(NoSuchEvent {
                event: asked.to_owned(),
                others: left_out,
            }));
        }
        let event = name(&event);
        if taken.is_some() && !self.has_functions {
            return Err(PrintedError::NoFunctions { event });
        }
        Ok(PerfScript {
            folded: self.stacks.finish(),
            event: taken.map(|_| event),
            left_out,
            lost_samples: self.lost_samples,
        })
    }
}

/// Whether a line is a comment: a process may have a name that begins like one.
fn is_comment(line: &[u8]) -> bool {
    line.starts_with(b"#") && !Beginning::of(line).is_some_and(|begun| begun.is_certain())
}

fn wrong(line: u64, expected: &'static str, found: &[u8]) -> PrintedError {
    PrintedError::of_line(PROGRAM, line, expected, found)
}

/// ` ip_forward+0x40 ([kernel.kallsyms])`, taken apart.
struct Function<'t> {
    symbol: &'t str,
    object: &'t str,
}

impl<'t> Function<'t> {
    fn of(text: &'t str) -> Self {
        let (symbol, object) = symbol_and_object(&text[1..]);
        let object = without_offset(object);
        let object = object.strip_suffix(" (deleted)").unwrap_or(object);
        let symbol = without_offset(symbol);
        Self {
            symbol: if symbol.is_empty() { UNKNOWN } else { symbol },
            object: object.rsplit('/').next().unwrap_or(object),
        }
    }

    /// A function without a symbol is called by its object, where that is known: `[libc.so.6]`.
    fn name(&self, names: FrameNames) -> Cow<'t, str> {
        let Self { symbol, object } = *self;
        let is_known = !matches!(object, "" | UNKNOWN | INLINED);
        match names {
            FrameNames::Symbols if symbol == UNKNOWN && is_known => {
                format!("[{}]", object.trim_matches(['[', ']'])).into()
            }
            FrameNames::ObjectsAndSymbols if is_known => format!("{object}`{symbol}").into(),
            _ => symbol.into(),
        }
    }
}

/// Both may have spaces and parentheses in them. So the symbol ends with its offset, or where none is printed, the
/// object begins with the parenthesis that the last one closes.
fn symbol_and_object(text: &str) -> (&str, &str) {
    let Some(inner) = text.strip_suffix(')') else {
        return (text, "");
    };
    let mut openings = inner.match_indices(" (").map(|(at, _)| at);
    if let Some(at) = openings.find(|&at| without_offset(&inner[..at]).len() < at) {
        return (&inner[..at], &inner[at + 2..]);
    }
    let mut depth = 1;
    for (at, byte) in inner.bytes().enumerate().rev() {
        depth += match byte {
            b')' => 1,
            b'(' => -1,
            _ => 0,
        };
        if depth == 0 {
            let before = &inner[..at];
            return match before.strip_suffix(' ') {
                Some(symbol) => (symbol, &inner[at + 1..]),
                None if before.is_empty() => ("", &inner[1..]),
                None => (text, ""),
            };
        }
    }
    (text, "")
}

/// `ip_forward` of `ip_forward+0x40`.
fn without_offset(name: &str) -> &str {
    let begin = name.trim_end_matches(|char: char| char.is_ascii_hexdigit());
    match begin.strip_suffix("+0x") {
        Some(bare) if !bare.is_empty() && begin.len() < name.len() => bare,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fold(text: &str, names: FrameNames) -> String {
        let script = PerfScript::read(text.as_bytes(), names, None).unwrap();
        script.folded.to_string()
    }

    /// What a sample with one function folds to.
    fn folded_function(function: &str, names: FrameNames) -> String {
        let text = format!("nc 7 [001] 12.5: 1000 cycles: \n\tffffffff81 {function}\n\n");
        let folded = fold(&text, names);
        let frames = folded.strip_prefix("nc;").unwrap();
        frames.strip_suffix(" 1\n").unwrap().to_owned()
    }

    const TEXT: &str = "# captured on a machine\n\
        Web Content 18768/3 [000]  6635.283748:    2004008 cycles: \n\
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
        let script = PerfScript::read(TEXT.as_bytes(), FrameNames::Symbols, None).unwrap();
        assert_eq!(script.lost_samples, 7);
        assert!(PerfScript::is_begun_by(TEXT.as_bytes()));
    }

    #[test]
    fn samples_of_one_event_are_folded_and_those_of_others_counted() {
        let sample = |event: &str, function: &str| {
            format!("sh 9 [000] 1.5:     25 {event}: \n\tffffffff81 {function}+0x1 ([k])\n\n")
        };
        let switch = "sh 9 [000] 1.5: sched:sched_switch: prev_comm=a b prev_pid=9: x ==> next_pid=0\n\
                      \tffffffff81 schedule+0x1 ([k])\n\n";
        let text = [
            &sample("cpu-clock:u", "work"),
            &sample("  cpu_core/cycles/ppp", "work"),
            &sample("page-faults", "touch"),
            switch,
            &sample("cpu-clock:u", "work"),
            &sample("probe_libc:malloc__return", "malloc"),
            &sample("raw 0x1a8", "work"),
            &sample("page-faults", "touch"),
        ]
        .concat()
        .replace("malloc__return: ", "malloc__return: (7f10 <- 55d5)");
        let read = |event| PerfScript::read(text.as_bytes(), FrameNames::Symbols, event);
        let counts = [
            ("cpu-clock:u", 2, "sh;work 2\n"),
            ("page-faults", 2, "sh;touch 2\n"),
            ("cpu_core/cycles/ppp", 1, "sh;work 1\n"),
            ("probe_libc:malloc__return", 1, "sh;malloc 1\n"),
            ("raw 0x1a8", 1, "sh;work 1\n"),
            ("sched:sched_switch", 1, "sh;schedule 1\n"),
        ];
        for (event, _, folded) in counts {
            let script = read(Some(event)).unwrap();
            assert_eq!(script.folded.to_string(), folded, "{event}");
            assert_eq!(script.event.as_deref(), Some(event));
            let others = counts.into_iter().filter(|(other, ..)| *other != event);
            let others = others.map(|(event, samples, _)| EventSamples {
                event: event.into(),
                samples,
            });
            assert_eq!(script.left_out, others.collect::<Vec<_>>(), "{event}");
        }
        assert_eq!(read(None).unwrap().event.as_deref(), Some("cpu-clock:u"));
        let error = read(Some("cpu-clock")).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "no samples of \"cpu-clock\"; it has those of cpu-clock:u (2), page-faults (2), cpu_core/cycles/ppp (1)"
            ),
            "{error}"
        );
    }

    #[test]
    fn names_of_objects_may_have_spaces_and_parentheses_and_offsets_are_no_part_of_a_name() {
        for (function, symbol, with_object) in [
            (
                "main+0x20 (/usr/sbin/nginx (deleted))",
                "main",
                "nginx`main",
            ),
            ("main (/usr/sbin/nginx (deleted))", "main", "nginx`main"),
            (
                "[unknown] (/memfd:doublemapper (deleted))",
                "[memfd:doublemapper]",
                "memfd:doublemapper`[unknown]",
            ),
            (
                "main+0x0 (/home/u/My App (x86)/a.out)",
                "main",
                "a.out`main",
            ),
            ("main (/home/u/My App (x86)/a.out)", "main", "a.out`main"),
            (
                "main+0x20 (/home/u/one (of two/a.out)",
                "main",
                "a.out`main",
            ),
            ("main+0x1f (/usr/bin/app+0x1100)", "main", "app`main"),
            (
                "main+0x1f (/usr/bin/app (deleted)+0x1100)",
                "main",
                "app`main",
            ),
            ("[unknown] (app+0x1100)", "[app]", "app`[unknown]"),
            ("main+0x1f", "main", "main"),
            ("(/usr/lib/libc.so.6)", "[libc.so.6]", "libc.so.6`[unknown]"),
            (
                " (/usr/lib/libc.so.6)",
                "[libc.so.6]",
                "libc.so.6`[unknown]",
            ),
            (
                "operator()(int) [clone .cold]+0x3 (/usr/lib/a b.so)",
                "operator()(int) [clone .cold]",
                "a b.so`operator()(int) [clone .cold]",
            ),
            (
                "std::function<void (int)>::operator()+0x3 (/a.out)",
                "std::function<void (int)>::operator()",
                "a.out`std::function<void (int)>::operator()",
            ),
            (
                "std::function<void (int)>::operator() (/a.out)",
                "std::function<void (int)>::operator()",
                "a.out`std::function<void (int)>::operator()",
            ),
            (
                "std::function<void (int)>::operator()+0x3",
                "std::function<void (int)>::operator()",
                "std::function<void (int)>::operator()",
            ),
            (
                "operator+0x (int)+0x3 ([k])",
                "operator+0x (int)",
                "[k]`operator+0x (int)",
            ),
            ("ip_rcv+0x1 ([unknown])", "ip_rcv", "ip_rcv"),
            (
                "\"a\", 'b' 1,234+0x1 (//anon)",
                "\"a\", 'b' 1,234",
                "anon`\"a\", 'b' 1,234",
            ),
        ] {
            assert_eq!(folded_function(function, FrameNames::Symbols), symbol);
            let found = folded_function(function, FrameNames::ObjectsAndSymbols);
            assert_eq!(found, with_object);
        }
    }

    #[test]
    fn a_function_that_was_inlined_has_the_object_it_is_inlined_in() {
        let text = "nc 7 1.5: cycles: \n\tff deep (inlined)\n\tff less+0x4 (inlined)\n\tff main+0x4 (/usr/bin/nc)\n\
            \tfe start (inlined)\n\n\
            nc 7 1.6: cycles: \n\tff deep (inlined)\n\tff [unknown] ([unknown])\n";
        assert_eq!(
            fold(text, FrameNames::ObjectsAndSymbols),
            "nc;[unknown];deep 1\nnc;start;nc`main;nc`less;nc`deep 1\n"
        );
        assert_eq!(
            fold(text, FrameNames::Symbols),
            "nc;[unknown];deep 1\nnc;start;main;less;deep 1\n"
        );
    }

    #[test]
    fn records_that_are_no_samples_are_passed_over_wherever_they_stand() {
        let sample = "python 7 [001] 2.5:   1 cycles: \n\tffff hot+0x1 (/usr/bin/python)\n\n";
        let records = [
            "python 7/7 [001] 1.5: PERF_RECORD_MMAP2 7/7: [0x5591(0x16000) @ 0x4000 fe:00 2 0]: r-xp /usr/bin/ls\n",
            "swapper     0     0.000000: PERF_RECORD_MMAP -1/0: [0xffff(0x12) @ 0xffff]: x [kernel.kallsyms]_text\n",
            "swapper 0 PERF_RECORD_COMM exec: python:7/7\n",
            "python 7 1.5: PERF_RECORD_EXIT(7:7):(1:1)\nsh -1/-1 1.5: PERF_RECORD_FORK(8:8):(7:7)\n",
            "python 7 [-01] 1.5: PERF_RECORD_KSYMBOL addr ffff len 1 type 1 flags 0x0 name bpf_prog_1: x\n",
            "python 7 [001] So 1.5: PERF_RECORD_SWITCH OUT          next pid/tid:     0/0\n",
            "python 7 [001] 1.5: PERF_RECORD_BPF_EVENT type 1, flags 0, id 15\n",
            "python 7 1.5: PERF_RECORD_NAMESPACES 7/7 - nr_namespaces: 7\n\t\t[0/net: 4/0xf0000075, 1/uts: 4/0xe\n\t\t 4/user: 4/0xd]\n",
            "PERF_RECORD_FINISHED_ROUND\n",
        ];
        for record in records {
            for text in [
                format!("{sample}{record}{sample}"),
                format!("{record}{sample}{record}{sample}{record}"),
            ] {
                assert!(PerfScript::is_begun_by(text.as_bytes()), "{text}");
                assert_eq!(fold(&text, FrameNames::Symbols), "python;hot 2\n", "{text}");
            }
        }
        let lost = "PERF_RECORD_LOST lost 7\nnc 7 1.5: PERF_RECORD_LOST_SAMPLES lost 2\n\
                    nc 7 1.5: PERF_RECORD_MMAP2 7/7: r-xp /tmp/PERF_RECORD_LOST lost 90\n";
        let text = format!("{lost}{sample}");
        assert!(PerfScript::is_begun_by(text.as_bytes()));
        let script = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None).unwrap();
        assert_eq!((script.lost_samples, script.folded.samples()), (9, 1));
    }

    #[test]
    fn samples_without_callers_or_without_any_function_begin_a_text_as_well() {
        // perf record without -g: perf aligns the names of processes, and prints the function beside the event.
        let text = "             cc1 7 41522.010791:    1 page-faults:  ffffffff8177539a elf_load+0x28a ([kernel.kallsyms])\n\
            \x20    Web Content 7 41522.010791:    1 page-faults:      7fb4103e8b70 main+0x0 (/usr/bin/a (deleted))\n";
        assert!(PerfScript::is_begun_by(text.as_bytes()));
        assert_eq!(
            fold(text, FrameNames::Symbols),
            "Web Content;main 1\ncc1;elf_load 1\n"
        );
        let text = "nc 7 1.5: cycles: \nnc 7 1.6: cycles: \n\tffff hot+0x1 ([k])\n\n";
        assert!(PerfScript::is_begun_by(text.as_bytes()));
        assert_eq!(fold(text, FrameNames::Symbols), "nc 1\nnc;hot 1\n");
    }

    #[test]
    fn a_process_may_have_any_name_and_fields_may_be_left_out() {
        for (line, process, event) in [
            ("worker 3 1234 12.5:  1000 cycles:", "worker 3", "cycles"),
            ("a: 7 [x] 9/9 [001] 12.5: cycles:", "a: 7 [x]", "cycles"),
            ("#x 7 [001] 12.5: cycles:", "#x", "cycles"),
            ("nc 7 cycles:", "nc", "cycles"),
            ("nc     7       1000 cycles:u:", "nc", "cycles:u"),
            ("worker 3 12345 cycles:", "worker 3", "cycles"),
            ("worker 3  1234       1000 cycles:", "worker 3", "cycles"),
            ("worker 12345 23456 cycles:", "worker 12345", "cycles"),
            ("worker 12345 1234567890 cycles:", "worker", "cycles"),
            ("worker 3     7/9     cycles:", "worker 3", "cycles"),
            (
                "a 1 2.0: x  1234 [001] 12.5: cycles:",
                "a 1 2.0: x",
                "cycles",
            ),
            ("nc 7 [001] cycles:", "nc", "cycles"),
            ("nc 7 U      12.5: cycles:", "nc", "cycles"),
            ("nc 7 12.123456789:", "nc", "[unknown]"),
        ] {
            let text = format!("{line} \n\tffff hot+0x1 ([k])\n\n");
            assert!(PerfScript::is_begun_by(text.as_bytes()), "{line}");
            let script = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None).unwrap();
            assert_eq!(script.folded.to_string(), format!("{process};hot 1\n"));
            assert_eq!(script.event.as_deref(), Some(event));
        }
    }

    #[test]
    fn a_line_with_two_numbers_out_of_columns_that_may_be_the_process_is_refused() {
        let text = "worker 3 1234 cycles: \n\tffff hot+0x1 ([k])\n\n";
        let error = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1: expected a process, its number and an event, in perf's columns (\"worker 3 1234 cycles:\"); give what \
             perf script -F comm,tid,time,event,ip,sym,dso prints"
        );
    }

    #[test]
    fn only_the_address_of_the_sample_is_its_function() {
        // perf record -d -e page-faults, with callers and without, printed with -F +addr.
        let callers = "ls 13779 53232.453277:          1 page-faults:     56494f4715c0 __progname+0x0 (/usr/bin/ls)\n\
            \tffffffff8177539a elf_load+0x28a ([kernel.kallsyms])\n\n";
        assert_eq!(fold(callers, FrameNames::Symbols), "ls;elf_load 1\n");
        let alone = "              ls 13679 53230.958328:          1 page-faults:  ffffffff8177539a elf_load+0x28a ([k])\n";
        assert_eq!(fold(alone, FrameNames::Symbols), "ls;elf_load 1\n");
        for beside in [
            "    7f3d94064110 dl_close_state.2+0x0 (/usr/lib/ld.so.2) ffffffff8177539a elf_load+0x28a ([k])",
            "    7f3d94064110 dl_close_state.2 (/usr/lib/ld.so.2)",
            "ffffffff94064110 some_data ([k])",
            "        12345678          5080144 |OP LOAD|LVL L1 hit|SNP None          30 ffffffff8177539a elf_load+0x28a ([k])",
            "              30 ffffffff8177539a elf_load+0x28a ([k])",
        ] {
            let text = format!(
                "{alone}              ls 13679 53230.958328: page-faults: {beside}\n{alone}"
            );
            let error = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None).unwrap_err();
            let error = error.to_string();
            assert!(
                error.starts_with("line 2: expected the function right behind the event, without fields such as addr"),
                "{error}"
            );
            assert!(
                error.ends_with("give what perf script -F comm,tid,time,event,ip,sym,dso prints"),
                "{error}"
            );
        }
        let both = alone.replace("ls 1", "ls 2") + "\tffffffff81 do_syscall_64+0x71 ([k])\n";
        let error = PerfScript::read(both.as_bytes(), FrameNames::Symbols, None).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("line 2: expected no function below one beside the event"),
            "{error}"
        );
        // Fields that perf prints in lines below.
        for below in [
            "               0",
            "       1234abcd",
            " ABI:2    AX:0x1",
            " 0x7f/0x8/P/-/-/1",
            "  entry.S:12",
        ] {
            let text = format!("{}{below}\n", callers.trim_end().to_owned() + "\n");
            let error = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None).unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with("line 3: expected an address and a function"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_number_of_events_is_not_taken_for_a_process() {
        for line in [
            "nc 12.5: 1000 cycles:",
            "nc [001] 12.5: 1000 cycles:",
            "nc [001] 1000 cycles:",
            "7 [001] 12.5: 1000 cycles:",
            "12.5: 1000 cycles:",
            "nc",
        ] {
            let text = format!("{line} \n\tffffffff81 hot+0x1 ([k])\n\n");
            assert!(!PerfScript::is_begun_by(text.as_bytes()), "{line}");
            let error = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None).unwrap_err();
            assert!(
                error.to_string().starts_with("line 1: expected a process"),
                "{line}"
            );
            let error = Folded::parse(text.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("perf script -F"), "{line}");
        }
    }

    #[test]
    fn a_text_without_a_function_or_with_a_cut_last_line_is_refused() {
        let error = |text: &str| {
            let read = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None);
            read.unwrap_err().to_string()
        };
        let text =
            "nc 7 1.5: sched:sched_switch: prev_pid=7\nnc 7 1.5: cycles: \n\tffff hot+0x1 ([k])\n";
        assert!(
            error(text).starts_with("no sample of \"sched:sched_switch\" has a function; record"),
            "{}",
            error(text)
        );
        let text = "nc 7 1.5: cycles: \n\tffff hot+0x1 ([k])";
        assert_eq!(fold(text, FrameNames::Symbols), "nc;hot 1\n");
        for cut in [4, 8] {
            assert!(
                error(&text[..text.len() - cut])
                    .starts_with("line 2: expected an end of the last line, which may be cut")
            );
        }
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
            let error = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert!(!PerfScript::is_begun_by(text.as_bytes()) || text.starts_with("nc"));
        }
        let endless = vec![b'x'; 3 << 20];
        let error = PerfScript::read(endless.as_slice(), FrameNames::Symbols, None).unwrap_err();
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
                PerfScript::read(bytes.as_slice(), FrameNames::Symbols, None)
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
            let text = format!("{text}nc 7 1.0: 1 cycles: \n\tffff a ([k])\n");
            let script = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None).unwrap();
            prop_assert_eq!(script.folded.samples(), samples.len() as u64 + 1);
        }
    }
}
