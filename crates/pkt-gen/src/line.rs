//! What a single line of a log is.

use crate::{Command, Role, SampleDetails, Summary};
use std::borrow::Cow;

/// What is known to stand in logs and says nothing about rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Noise {
    /// `waiting for initial packets`: a second without any, while the link comes up.
    WaitingForPackets,
    /// `poll error/timeout`, `poll error on queue 0: timeout`: no room to send for seconds.
    PollTimeout,
    /// `poll err`: the interface went away; the thread ends.
    PollError,
    /// `ouch, thread 0 exited with error`.
    ThreadFailed,
    /// `failed to install ^C handler`.
    InterruptHandler,
    /// `Unable to get virtio-net header length`.
    VirtioHeader,
    /// `truncating packet, no room for frags`.
    TruncatedPacket,
    /// What `-f rxseq` says of packets that are missing, or come in another order.
    Sequence,
    /// The bytes of a packet, as `-X` prints them.
    PacketDump,
    /// Anything else that pkt-gen could not do.
    Complaint,
    /// A message of the kernel.
    Kernel,
    /// What ssh says of a connection.
    Ssh,
    /// What `ping` or `ping6` complains of.
    Ping,
    /// A shell's trace (`sh -x`) of how pkt-gen was started.
    ShellTrace,
    /// A complaint about a terminal that is none.
    Terminal,
    /// An escape sequence that sets a window's title.
    ScreenTitle,
}

impl Noise {
    /// Whether pkt-gen itself prints it.
    pub(crate) fn is_of_pkt_gen(self) -> bool {
        !matches!(
            self,
            Self::Kernel
                | Self::Ssh
                | Self::Ping
                | Self::ShellTrace
                | Self::Terminal
                | Self::ScreenTitle
        )
    }
}

/// The rates in the end: over the whole time, from the first to the last packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Packets per second; three digits or so where pkt-gen chose the unit.
    pub packets_per_second: f64,
    /// Bits per second, without frame check sequence and gap; the first receivers print none.
    pub bits_per_second: Option<f64>,
    /// Bits per second with them, where pkt-gen adds them; the first versions print none.
    pub raw_bits_per_second: Option<f64>,
    /// Packets that were handled at once; later versions print it.
    pub average_batch: Option<f64>,
}

/// A line by its kind.
pub(crate) enum Line {
    Command(Command),
    /// A line of `equilibrium`.
    Equilibrium,
    /// About set-up or take-down, with the role it gives away.
    Setup(Option<Role>),
    Blank,
    Report(Option<Stamp>, Report),
    Summary(Role, Summary),
    Speed(Speed),
    Terminated,
    Noise(Noise, Option<Role>),
    Unknown,
}

/// What pkt-gen puts in front of its messages; the first version prints no time.
pub(crate) struct Stamp {
    /// Seconds modulo 1000, in microseconds.
    pub(crate) time_us: i64,
}

/// What is printed at an interval.
pub(crate) struct Report {
    /// Packets per second, rounded to a whole number.
    pub(crate) printed_pps: u64,
    /// Packets, and microseconds; the first versions print the rate alone.
    pub(crate) counted: Option<(u64, u64)>,
    pub(crate) details: Option<SampleDetails>,
}

/// The most packets per second that a port carries: frames of 64 bytes with preamble and gap at 800 Gbit/s.
const PPS_MAX: u64 = 800_000_000_000 / (8 * (64 + 20));
/// No report comes as late as a day after the one before.
pub(crate) const INTERVAL_US_MAX: u64 = 24 * 3600 * 1_000_000;

impl Report {
    /// Whether a port can have carried that, and the rate is that of the packets, to the digits that units leave.
    pub(crate) fn is_possible(&self) -> bool {
        let Some((packets, interval_us)) = self.counted else {
            return self.printed_pps <= PPS_MAX;
        };
        let counted = u128::from(packets) * 1_000_000;
        let most = u128::from(PPS_MAX) * u128::from(interval_us);
        let printed = u128::from(self.printed_pps) * u128::from(interval_us);
        counted <= most
            && interval_us <= INTERVAL_US_MAX
            && counted.abs_diff(printed) <= u128::from(interval_us) + counted / 500
    }
}

/// How messages about set-up and take-down begin.
const SETUP: &[&str] = &[
    "interface is ",
    "using default burst size",
    "running on ",
    "range is ",
    "mapped ",
    "map size is ",
    "mapping ",
    "mmapping ",
    "overriding ",
    "do not mmap, inherit from parent",
    "--- SPECIAL OPTIONS:",
    "special options:",
    "Sending ",
    "Wait ",
    "Ready...",
    "reading from ",
    "writing to file desc ",
    "start",
    "drop copy",
    "frags ",
    "flush tail ",
    "pending tx tail ",
    "received control-C",
    "Cancelling thread ",
    // What -v adds.
    "extract IP range from ",
    "extract MAC range from ",
    "source hwaddr ",
    "nifp at offset ",
    "TX",
    "RX",
    // Other ports than those of netmap, and options.
    "using pcap ",
    "using a dummy send routine",
    "want to use tap ",
    "new name is ",
    "txr ",
    "Port requires virtio-net header",
    "-t deprecated",
    "-r deprecated",
    "WARNING: the 'C' option is deprecated",
    "Ignoring -n argument",
];

/// What else stands in messages about set-up.
const SETUP_WITHIN: &[&str] = &[" starts at ", " open successful"];

/// How messages that are noise begin.
const NOISE: &[(&str, Noise)] = &[
    ("waiting for initial packets", Noise::WaitingForPackets),
    ("poll error/timeout", Noise::PollTimeout),
    ("poll error on queue ", Noise::PollTimeout),
    ("poll err", Noise::PollError),
    ("ouch, thread ", Noise::ThreadFailed),
    ("failed to install ^C handler", Noise::InterruptHandler),
    (
        "Unable to get virtio-net header length",
        Noise::VirtioHeader,
    ),
    (
        "truncating packet, no room for frags",
        Noise::TruncatedPacket,
    ),
    ("Sequence ", Noise::Sequence),
    ("Received packets with ", Noise::Sequence),
    ("rxseq_body: packet too small", Noise::Sequence),
    ("Unable to ", Noise::Complaint),
    ("failed to ", Noise::Complaint),
    ("cannot ", Noise::Complaint),
    ("can only ", Noise::Complaint),
    ("bad ", Noise::Complaint),
    ("invalid ", Noise::Complaint),
    ("Invalid name ", Noise::Complaint),
    ("poll() error", Noise::Complaint),
    ("ioctl", Noise::Complaint),
    ("fd error", Noise::Complaint),
    ("getifaddrs ", Noise::Complaint),
    ("pkt_size (", Noise::Complaint),
    ("ignored config: ", Noise::Complaint),
    ("missing ifname", Noise::Complaint),
    ("ifname too long ", Noise::Complaint),
    ("unrecognised function ", Noise::Complaint),
    ("out of memory", Noise::Complaint),
    ("aborting", Noise::Complaint),
];

/// How lines of a shell, a terminal or another program begin.
const NOISE_OF_OTHERS: &[(&str, Noise)] = &[
    ("+ ", Noise::ShellTrace),
    ("ping: ", Noise::Ping),
    ("ping6: ", Noise::Ping),
    ("Warning: no access to tty", Noise::Terminal),
    ("Thus no job control in this shell", Noise::Terminal),
    ("Pseudo-terminal will not be allocated", Noise::Terminal),
    ("stty: ", Noise::Terminal),
    ("tset: ", Noise::Terminal),
    ("tput: ", Noise::Terminal),
    ("Warning: Permanently added ", Noise::Ssh),
    ("Connection to ", Noise::Ssh),
    ("Shared connection to ", Noise::Ssh),
    ("ring 0x", Noise::PacketDump),
];

impl Line {
    /// The kind of a line without white space around it.
    pub(crate) fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self::Blank;
        }
        if let Some((stamp, function, message)) = stamped(text) {
            return Self::of_message(stamp, function, message);
        }
        if text.starts_with("CMD") {
            return match Command::of_line(text) {
                Some(command) => Self::Command(command),
                None if text.contains(": equilibrium") => Self::Equilibrium,
                None => Self::Unknown,
            };
        }
        if text == "Terminated" {
            return Self::Terminated;
        }
        if let Some((_, noise)) = found(NOISE_OF_OTHERS, text) {
            return Self::Noise(*noise, None);
        }
        if text.starts_with("Sending on ") {
            return Self::Setup(Some(Role::Sender));
        }
        if text.starts_with("Receiving from ") {
            return Self::Setup(Some(Role::Receiver));
        }
        if is_between_addresses(text) {
            return Self::Setup(None);
        }
        if text == "Benchmark tool using equilibrium throughput method" {
            return Self::Equilibrium;
        }
        if let Some((role, summary)) = summary(text) {
            return Self::Summary(role, summary);
        }
        if let Some(speed) = speed(text) {
            return Self::Speed(speed);
        }
        if is_of_kernel(text) {
            return Self::Noise(Noise::Kernel, None);
        }
        if is_of_packet_dump(text) {
            return Self::Noise(Noise::PacketDump, None);
        }
        Self::Unknown
    }

    fn of_message(stamp: Option<Stamp>, function: &str, message: &str) -> Self {
        // The first versions have no function for it.
        if matches!(function, "main_thread" | "main")
            && message.starts_with(|first: char| first.is_ascii_digit())
            && let Some(report) = report(message)
        {
            return Self::Report(stamp, report);
        }
        let role = match function {
            "sender_body" | "txseq_body" => Some(Role::Sender),
            "receiver_body" | "rxseq_body" => Some(Role::Receiver),
            _ => None,
        };
        if let Some((_, noise)) = found(NOISE, message) {
            return Self::Noise(*noise, role);
        }
        if SETUP.iter().any(|begin| message.starts_with(begin))
            || SETUP_WITHIN.iter().any(|part| message.contains(part))
        {
            return Self::Setup(role);
        }
        Self::Unknown
    }
}

fn found<'a>(table: &'a [(&str, Noise)], text: &str) -> Option<&'a (&'a str, Noise)> {
    table.iter().find(|(begin, _)| text.starts_with(begin))
}

/// A line without the escape sequences that set a title (`ESC k … ESC \`), and how many there were.
pub(crate) fn without_screen_titles(text: &str) -> (Cow<'_, str>, usize) {
    // Hardly any line has one, and one byte is found faster than two.
    if !text.contains('\x1b') {
        return (Cow::Borrowed(text), 0);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    let mut titles = 0;
    while let Some((before, title)) = rest.split_once("\x1bk") {
        kept.push_str(before);
        titles += 1;
        // What is torn before its end goes on to the end of the line.
        rest = title.split_once("\x1b\\").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    (Cow::Owned(kept), titles)
}

/// `290.703575 main_thread [1441] message`, in its parts; the first version prints no time.
fn stamped(text: &str) -> Option<(Option<Stamp>, &str, &str)> {
    let (first, after) = text.split_once(' ')?;
    let stamp = time_us(first).map(|time_us| Stamp { time_us });
    let rest = if stamp.is_some() { after } else { text };
    let (function, rest) = rest.split_once(" [")?;
    let (source_line, message) = rest.split_once(']')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_stamp = !source_line.is_empty()
        && is_digits(source_line)
        && !function.is_empty()
        && function.bytes().all(is_name);
    is_stamp.then(|| (stamp, function, message.trim_start()))
}

/// `290.703575` seconds in microseconds.
fn time_us(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (seconds, microseconds) = digits.split_once('.')?;
    let is_time = microseconds.len() == 6
        && (1..=9).contains(&seconds.len())
        && [seconds, microseconds].iter().all(|part| is_digits(part));
    let whole = |part: &str| part.parse::<i64>().ok();
    let time_us = is_time.then(|| Some(whole(seconds)? * 1_000_000 + whole(microseconds)?))??;
    Some(sign * time_us)
}

/// `[ 1234.567890] text` of Linux, `ix0: text` of FreeBSD, `290.703575 [ 835] function text` of netmap, and what syslog
/// makes of them.
fn is_of_kernel(text: &str) -> bool {
    let is_seconds = |text: &str| {
        let (seconds, fraction) = text.split_once('.').unwrap_or_default();
        !seconds.is_empty() && is_digits(seconds) && is_digits(fraction)
    };
    let begins = match text.split_once(' ') {
        Some((time, rest)) if time_us(time).is_some() => rest.starts_with('['),
        Some((device, _)) if device.ends_with(':') => {
            let driver = device.trim_end_matches(':');
            let driver = driver.trim_end_matches(|last: char| last.is_ascii_digit());
            driver.len() + 1 < device.len()
                && !driver.is_empty()
                && driver.bytes().all(|byte| byte.is_ascii_lowercase())
        }
        _ => text
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .is_some_and(|(seconds, _)| is_seconds(seconds.trim_start())),
    };
    begins || text.contains(" kernel: ")
}

/// `16: ff ff ff ff ...`
fn is_of_packet_dump(text: &str) -> bool {
    let Some((offset, bytes)) = text.split_once(": ") else {
        return false;
    };
    let first = bytes.split(' ').next().unwrap_or_default();
    let is_byte = first.len() == 2 && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    !offset.is_empty() && is_digits(offset) && is_byte
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `198.18.10.1:2000-198.18.10.20 -> 198.19.10.1:2000-198.19.10.100 (00:… -> 00:…)`
fn is_between_addresses(text: &str) -> bool {
    let words: Vec<&str> = text.split_ascii_whitespace().take(7).collect();
    matches!(words[..], [_, "->", _, from, "->", to] if from.starts_with('(') && to.ends_with(')'))
}

/// `729113 pps`, of later versions with `(730571 pkts in 1002000 usec)`, then with `… bps` in the parentheses and
/// `… avg_batch` after them, then with `… min_space`; with -A, `[avg/std 729.113 K/1.234 K pps]` before them.
fn report(message: &str) -> Option<Report> {
    let mut words = words(message).peekable();
    let printed_pps = rounded(&mut words, "pps")?;
    let mut report = Report {
        printed_pps,
        counted: None,
        details: None,
    };
    if words.peek().is_none() {
        return Some(report);
    }
    if words.next_if_eq(&"[avg/std").is_some() && !words.by_ref().take(4).any(|word| word == "pps]")
    {
        return None;
    }
    let packets = whole(&mut words, "pkts")?;
    let bits_per_second = match words.next_if_eq(&"in") {
        Some(_) => None,
        None => {
            let bits_per_second = rounded(&mut words, "bps")?;
            expect(&mut words, "in")?;
            Some(bits_per_second)
        }
    };
    report.counted = Some((packets, words.next()?.parse().ok()?));
    expect(&mut words, "usec")?;
    if let Some(bits_per_second) = bits_per_second {
        let average_batch = finite(words.next()?)?;
        expect(&mut words, "avg_batch")?;
        report.details = Some(SampleDetails {
            bits_per_second,
            average_batch,
            free_slots_min: match words.peek() {
                Some(_) => Some(whole(&mut words, "min_space")?),
                None => None,
            },
        });
    }
    words.next().is_none().then_some(report)
}

/// `Sent 80000000 packets, 60 bytes each, in 53.76 seconds.`, of later versions with `… bytes … events` in between; of
/// the first receivers without a size; `Sent nothing.`
fn summary(text: &str) -> Option<(Role, Summary)> {
    let mut words = words(text).peekable();
    let role = match words.next()? {
        "Sent" => Role::Sender,
        "Received" => Role::Receiver,
        _ => return None,
    };
    let mut summary = Summary::default();
    if words.next_if_eq(&"nothing.").is_none() {
        summary.packets = whole(&mut words, "packets")?;
        if words.next_if_eq(&"in").is_none() {
            let mut size_bytes = whole(&mut words, "bytes")?;
            if words.next_if_eq(&"each").is_none() {
                summary.bytes = Some(size_bytes);
                summary.events = Some(whole(&mut words, "events")?);
                size_bytes = whole(&mut words, "bytes")?;
                expect(&mut words, "each")?;
            }
            summary.packet_size_bytes = Some(size_bytes);
            expect(&mut words, "in")?;
        }
        summary.duration_s = Some(finite(words.next()?)?);
        expect(&mut words, "seconds.")?;
    }
    words.next().is_none().then_some((role, summary))
}

/// `Speed: 1.49 Mpps Bandwidth: 714.28 Mbps (raw 1.00 Gbps)`, and with `Average batch: 2.37 pkts`; of the first versions
/// `Speed: 1.49Mpps. Bandwidth: 714.28Mbps.`, and of receivers the rate alone.
fn speed(text: &str) -> Option<Speed> {
    let mut words = words(text).filter(|word| *word != ".").peekable();
    expect(&mut words, "Speed:")?;
    let mut speed = Speed {
        packets_per_second: rate(&mut words, "pps")?,
        bits_per_second: None,
        raw_bits_per_second: None,
        average_batch: None,
    };
    if words.next_if_eq(&"Bandwidth:").is_some() {
        speed.bits_per_second = Some(rate(&mut words, "bps")?);
    }
    if words.next_if_eq(&"raw").is_some() {
        speed.raw_bits_per_second = Some(rate(&mut words, "bps")?);
    }
    if words.next_if_eq(&"Average").is_some() {
        expect(&mut words, "batch:")?;
        speed.average_batch = Some(rate(&mut words, "pkts")?);
    }
    words.next().is_none().then_some(speed)
}

/// Words between white space, commas and parentheses. The first version prints NUL for no prefix of a unit.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |letter: char| letter.is_ascii_whitespace() || ",()\0".contains(letter);
    text.split(is_between).filter(|word| !word.is_empty())
}

fn expect<'a>(words: &mut impl Iterator<Item = &'a str>, word: &str) -> Option<()> {
    (words.next()? == word).then_some(())
}

/// A number of a unit that is whole: `729113 pkts`, `14.881 Mpkts`, `33.000 pkts`.
fn whole<'a>(words: &mut impl Iterator<Item = &'a str>, unit: &str) -> Option<u64> {
    let (whole, beyond) = decimal(words, unit)?;
    beyond.bytes().all(|digit| digit == b'0').then_some(whole)
}

/// A number of a unit, to the nearest whole one: `959.041 bps`.
fn rounded<'a>(words: &mut impl Iterator<Item = &'a str>, unit: &str) -> Option<u64> {
    let (whole, beyond) = decimal(words, unit)?;
    whole.checked_add(u64::from(beyond.starts_with(['5', '6', '7', '8', '9'])))
}

/// A number of a unit: what of it is whole, and the digits beyond. What is printed of a unit is exact to its last digit,
/// and so is this.
fn decimal<'a>(words: &mut impl Iterator<Item = &'a str>, unit: &str) -> Option<(u64, &'a str)> {
    let number = words.next()?;
    let zeros = decimal_places(words.next()?, unit)?;
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = !integer.is_empty() && is_digits(integer) && is_digits(fraction);
    let (kept, beyond) = is_number.then(|| fraction.split_at(fraction.len().min(zeros)))?;
    let whole = match zeros {
        0 => integer.parse(),
        _ => format!("{integer}{kept:0<zeros$}").parse(),
    };
    Some((whole.ok()?, beyond))
}

/// A number of a unit that may have a fraction or a sign: `1.49 Mpps`, `-0 pps`, `1.49Mpps.`
fn rate<'a>(words: &mut impl Iterator<Item = &'a str>, unit: &str) -> Option<f64> {
    let word = words.next()?;
    let (number, prefixed) = match word.find(|letter: char| letter.is_ascii_alphabetic()) {
        Some(at) => word.split_at(at),
        None => (word, words.next()?),
    };
    let zeros = decimal_places(prefixed.trim_end_matches('.'), unit)?;
    finite(&format!("{number}e{zeros}"))
}

/// How many zeros the prefix in front of a unit stands for.
pub(crate) fn decimal_places(word: &str, unit: &str) -> Option<usize> {
    match word.strip_suffix(unit)? {
        "" => Some(0),
        "K" => Some(3),
        "M" => Some(6),
        "G" => Some(9),
        "T" => Some(12),
        _ => None,
    }
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}
