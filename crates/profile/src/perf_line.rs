//! What a single line of `perf script` is.

/// What a function without a symbol is called, and an event without a name.
pub(crate) const UNKNOWN: &str = "[unknown]";
/// How what is no sample begins: a mapping, a new name of a process, samples that were lost.
const RECORD: &[u8] = b"PERF_RECORD_";
/// Longer than any process's name, of which the kernel keeps 15 bytes.
const PROCESS_BYTES_MAX: usize = 64;
/// How wide perf prints the number of a process at least, and the number of events.
const NUMBER_WIDTH: usize = 5;
const PERIOD_WIDTH: usize = 10;
/// Digits of the largest number of a process that Linux gives, 4194304.
const NUMBER_DIGITS_MAX: usize = 7;
/// Where perf ends the address of a function that stands beside the event: a space to divide fields, one for the lack of
/// callers, and 16 digits. Whatever other field is printed in its place ends elsewhere.
const ADDRESS_END: usize = 18;

pub(crate) fn is_indented(line: &[u8]) -> bool {
    matches!(line, [b' ' | b'\t', ..])
}

/// Whether a line is perf script's, of other fields than a sample is known by: a function, or a process and its event
/// in columns.
pub(crate) fn is_of_other_fields(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let address = line.trim_ascii_start();
    let digits = address.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let is_function = is_indented(line) && function(line).is_some() && digits.count() >= 6;
    let is_column = memchr::memmem::find(line, b"  ").is_some();
    let is_process = matches!(Beginning::of(line), Some(Beginning::Sample(sample)) if sample.rest.trim_ascii().is_empty());
    is_function || (is_column && is_process)
}

/// The first line of a sample or of another record.
pub(crate) enum Beginning<'l> {
    Sample(Sample<'l>),
    /// The record, from `PERF_RECORD_` on.
    Record(&'l [u8]),
}

/// `iperf3 18768/18770 [000]  6635.283748:    2004008 cpu-clock:u: `, of which `-F` may leave out the CPU, the time, the
/// number of events, and where there is a time the event.
pub(crate) struct Sample<'l> {
    pub(crate) process: &'l [u8],
    pub(crate) event: &'l [u8],
    /// What is behind the event, from its first space on: a function, or what a tracepoint says.
    pub(crate) rest: &'l [u8],
    /// Whether there is a time or a CPU, so that it is nothing else.
    pub(crate) is_certain: bool,
}

impl<'l> Beginning<'l> {
    /// The name of a process may have anything in it, also what looks like its number. So of all numbers behind which all
    /// is as perf prints it, the process's is the one with a time or a CPU behind it, else the one that stands in perf's
    /// columns; `None` where that leaves several.
    pub(crate) fn of(line: &'l [u8]) -> Option<Self> {
        let line = line.trim_ascii();
        if line.starts_with(RECORD) {
            return Some(Self::Record(line));
        }
        let (mut best, mut best_rank, mut is_only) = (None, (false, false), false);
        for at in 1..line.len().min(PROCESS_BYTES_MAX) {
            let last = line[at - 1];
            if line[at] != b' ' || last == b' ' {
                continue;
            }
            let Some(found) = Self::behind_process(&line[..at], &line[at..]) else {
                continue;
            };
            // Behind a CPU or a time the number is that of events.
            if !found.is_certain() && matches!(last, b']' | b':') {
                continue;
            }
            let rank = (found.is_certain(), is_in_columns(&line[at..]));
            if best.is_none() || rank > best_rank {
                (best, best_rank, is_only) = (Some(found), rank, true);
            } else if rank == best_rank {
                is_only = false;
            }
        }
        best.filter(|_| is_only)
    }

    fn behind_process(process: &'l [u8], rest: &'l [u8]) -> Option<Self> {
        let rest = past_number(rest.trim_ascii_start())?;
        let behind_cpu = past_cpu(rest);
        let behind_time = past_time(behind_cpu.unwrap_or(rest));
        let rest = behind_time.or(behind_cpu).unwrap_or(rest);
        let text = rest.trim_ascii_start();
        if text.starts_with(RECORD) {
            return Some(Self::Record(text));
        }
        let behind_period = past_period(rest);
        let (event, rest) = match event(behind_period.trim_ascii_start(), behind_time.is_some()) {
            Some(found) => found,
            None if behind_time.is_some() && is_function_or_empty(behind_period) => {
                (UNKNOWN.as_bytes(), behind_period)
            }
            None => return None,
        };
        Some(Self::Sample(Sample {
            process,
            event,
            rest,
            is_certain: behind_cpu.is_some() || behind_time.is_some(),
        }))
    }

    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Self::Sample(sample) => sample.is_certain,
            Self::Record(_) => true,
        }
    }
}

/// What follows the first bytes of a kind, which are one or more.
fn past(text: &[u8], is_of_kind: impl Fn(&u8) -> bool) -> Option<&[u8]> {
    let length = text
        .iter()
        .position(|byte| !is_of_kind(byte))
        .unwrap_or(text.len());
    (length > 0).then(|| &text[length..])
}

/// What follows `18768`, `18768/18770` or `-1/0`, from the space on.
fn past_number(text: &[u8]) -> Option<&[u8]> {
    let number = |text: &'_ [u8]| text.strip_prefix(b"-").map_or(0, |_| 1);
    let mut rest = past(&text[number(text)..], u8::is_ascii_digit)?;
    if let Some(thread) = rest.strip_prefix(b"/") {
        rest = past(&thread[number(thread)..], u8::is_ascii_digit)?;
    }
    rest.starts_with(b" ").then_some(rest)
}

/// Whether what follows a process's name has its number, and the number of events if that is next, as wide as perf prints
/// them.
fn is_in_columns(text: &[u8]) -> bool {
    let number = text.trim_ascii_start();
    let digits = number
        .iter()
        .take_while(|&&byte| byte != b' ' && byte != b'/');
    let digits = digits.count();
    let width = text.len() - number.len() + digits - 1;
    let is_number = digits <= NUMBER_DIGITS_MAX && width == digits.max(NUMBER_WIDTH);
    let behind = past_number(number).unwrap_or_default();
    let period = behind.trim_ascii_start();
    let is_period = past_period(behind).len() == behind.len() || {
        let digits = period
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        behind.len() - period.len() + digits - 1 == digits.max(PERIOD_WIDTH)
    };
    is_number && is_period
}

/// What follows `[003] `, from the space on.
fn past_cpu(text: &[u8]) -> Option<&[u8]> {
    let digits = text.trim_ascii_start().strip_prefix(b"[")?;
    let rest = past(digits, |byte| byte.is_ascii_digit() || *byte == b'-')?;
    rest.strip_prefix(b"]")
}

/// What follows ` 6635.283748: `, from the space on. Letters may precede: those of `-F +misc`.
fn past_time(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    let text = past(text, u8::is_ascii_alphabetic).map_or(text, <[u8]>::trim_ascii_start);
    let fraction = past(text, u8::is_ascii_digit)?.strip_prefix(b".")?;
    let rest = past(fraction, u8::is_ascii_digit)?.strip_prefix(b":")?;
    matches!(rest, [] | [b' ', ..]).then_some(rest)
}

/// What follows `2004008 `, if it is there, from the space on.
fn past_period(text: &[u8]) -> &[u8] {
    match past(text.trim_ascii_start(), u8::is_ascii_digit) {
        Some(rest @ ([b' ', ..] | [])) => rest,
        _ => text,
    }
}

/// An event, which may have colons in it (`sched:sched_switch`, `cycles:u`) and ends with one, and what follows, from the
/// space on.
fn event(text: &[u8], may_have_spaces: bool) -> Option<(&[u8], &[u8])> {
    let colons = memchr::memchr_iter(b':', text);
    let mut ends = colons.filter(|&at| matches!(text.get(at + 1), None | Some(b' ')));
    let (event, rest) = text.split_at(ends.next()?);
    let is_one = event.first().is_some_and(|byte| !byte.is_ascii_digit())
        && (may_have_spaces || !event.contains(&b' '));
    is_one.then(|| (event, &rest[1..]))
}

/// What stands behind the address of a line of a function, from the space on: no process's name begins so.
pub(crate) fn function(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    let rest = &line[end..];
    (end > 0 && rest[0] == b' ' && rest.len() > 1).then_some(rest)
}

/// The same in the line of a sample, where what a tracepoint says may stand instead; whether it is where perf prints
/// that of the sample, not the address of data (`-F +addr`) or a weight.
pub(crate) fn function_beside_event(rest: &[u8]) -> Option<(&[u8], bool)> {
    let function = function(rest).filter(|function| function.ends_with(b")"))?;
    Some((function, rest.len() - function.len() == ADDRESS_END))
}

fn is_function_or_empty(rest: &[u8]) -> bool {
    rest.trim_ascii().is_empty() || function_beside_event(rest).is_some()
}

/// The count of a record of `--show-lost-events`: `PERF_RECORD_LOST lost 7`.
pub(crate) fn lost_samples(record: &[u8]) -> u64 {
    let mut words = record
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let (kind, lost, count) = (words.next(), words.next(), words.next());
    let is_lost = matches!(
        kind,
        Some(b"PERF_RECORD_LOST" | b"PERF_RECORD_LOST_SAMPLES")
    );
    if !is_lost || lost != Some(b"lost") {
        return 0;
    }
    let count = count.and_then(|count| str::from_utf8(count).ok()?.parse().ok());
    count.unwrap_or(0)
}
