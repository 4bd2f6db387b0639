//! What a single line of a log is.

use crate::{Command, Role, Sample, SampleDetails, Summary};

/// What is known to stand in logs and says nothing about rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Noise {
    /// `waiting for initial packets`: a second without any, while the link comes up.
    WaitingForPackets,
    /// `poll error/timeout`: no room to send for seconds.
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
            Self::Ping | Self::ShellTrace | Self::Terminal | Self::ScreenTitle
        )
    }
}

/// The rates in the end: over the whole time, from the first to the last packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Packets per second; three digits or so where pkt-gen chose the unit.
    pub packets_per_second: f64,
    /// Bits per second, without frame check sequence and gap.
    pub bits_per_second: f64,
    /// Bits per second with them, where pkt-gen adds them.
    pub raw_bits_per_second: f64,
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
    Sample(Stamp, Sample),
    Summary(Role, Summary),
    Speed(Speed),
    Terminated,
    Noise(Noise, Option<Role>),
    Unknown,
}

/// What pkt-gen puts in front of its messages.
pub(crate) struct Stamp {
    /// Seconds modulo 1000, in microseconds.
    pub(crate) time_us: i64,
}

/// How messages about set-up and take-down begin.
const SETUP: &[&str] = &[
    "interface is ",
    "using default burst size",
    "running on ",
    "range is ",
    "mapped ",
    "overriding ",
    "do not mmap, inherit from parent",
    "--- SPECIAL OPTIONS:",
    "Sending ",
    "Wait ",
    "Ready...",
    "reading from ",
    "start, fd ",
    "frags ",
    "flush tail ",
    "pending tx tail ",
];

/// How messages that are noise begin.
const NOISE: &[(&str, Noise)] = &[
    ("waiting for initial packets", Noise::WaitingForPackets),
    ("poll error/timeout", Noise::PollTimeout),
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
        speed(text).map_or(Self::Unknown, Self::Speed)
    }

    fn of_message(stamp: Stamp, function: &str, message: &str) -> Self {
        let role = match function {
            "sender_body" => Some(Role::Sender),
            "receiver_body" => Some(Role::Receiver),
            _ => None,
        };
        if let Some((_, noise)) = found(NOISE, message) {
            return Self::Noise(*noise, role);
        }
        if function == "main_thread"
            && let Some(sample) = sample(message)
        {
            return Self::Sample(stamp, sample);
        }
        if SETUP.iter().any(|begin| message.starts_with(begin)) {
            return Self::Setup(role);
        }
        Self::Unknown
    }
}

fn found<'a>(table: &'a [(&str, Noise)], text: &str) -> Option<&'a (&'a str, Noise)> {
    table.iter().find(|(begin, _)| text.starts_with(begin))
}

/// A line without the escape sequences that set a title (`ESC k … ESC \`), and how many there were.
pub(crate) fn without_screen_titles(text: &str) -> (String, usize) {
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
    (kept, titles)
}

/// `290.703575 main_thread [1441] message`, in its parts.
fn stamped(text: &str) -> Option<(Stamp, &str, &str)> {
    let (time, rest) = text.split_once(' ')?;
    let (function, rest) = rest.split_once(" [")?;
    let (source_line, message) = rest.split_once(']')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_stamp = !source_line.is_empty()
        && source_line.bytes().all(|byte| byte.is_ascii_digit())
        && !function.is_empty()
        && function.bytes().all(is_name);
    let time_us = is_stamp.then(|| time_us(time))??;
    Some((Stamp { time_us }, function, message.trim_start()))
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
    let time_us = is_time.then(|| format!("{seconds}{microseconds}").parse::<i64>())?;
    Some(sign * time_us.ok()?)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `198.18.10.1:2000-198.18.10.20 -> 198.19.10.1:2000-198.19.10.100 (00:… -> 00:…)`
fn is_between_addresses(text: &str) -> bool {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    matches!(words[..], [_, "->", _, from, "->", to] if from.starts_with('(') && to.ends_with(')'))
}

/// `729113 pps (730571 pkts in 1002000 usec)`, and with `… bps`, `… avg_batch`, `… min_space`.
fn sample(message: &str) -> Option<Sample> {
    let mut words = words(message).peekable();
    let printed_pps = whole(&mut words, "pps")?;
    let packets = whole(&mut words, "pkts")?;
    let bits_per_second = match words.next_if_eq(&"in") {
        Some(_) => None,
        None => {
            let bits_per_second = whole(&mut words, "bps")?;
            expect(&mut words, "in")?;
            Some(bits_per_second)
        }
    };
    let interval_us = words.next()?.parse().ok()?;
    expect(&mut words, "usec")?;
    let details = match bits_per_second {
        None => None,
        Some(bits_per_second) => {
            let average_batch = finite(words.next()?)?;
            expect(&mut words, "avg_batch")?;
            Some(SampleDetails {
                bits_per_second,
                average_batch,
                free_slots_min: whole(&mut words, "min_space")?,
            })
        }
    };
    words.next().is_none().then_some(Sample {
        line: 0,
        end_us: 0,
        packets,
        interval_us,
        printed_pps,
        details,
    })
}

/// `Sent 80000000 packets, 60 bytes each, in 53.76 seconds.`, and with `… bytes … events` in between.
fn summary(text: &str) -> Option<(Role, Summary)> {
    let mut words = words(text).peekable();
    let role = match words.next()? {
        "Sent" => Role::Sender,
        "Received" => Role::Receiver,
        _ => return None,
    };
    let packets = whole(&mut words, "packets")?;
    let mut packet_size_bytes = whole(&mut words, "bytes")?;
    let (mut bytes, mut events) = (None, None);
    if words.next_if_eq(&"each").is_none() {
        bytes = Some(packet_size_bytes);
        events = Some(whole(&mut words, "events")?);
        packet_size_bytes = whole(&mut words, "bytes")?;
        expect(&mut words, "each")?;
    }
    expect(&mut words, "in")?;
    let duration_s = finite(words.next()?)?;
    expect(&mut words, "seconds.")?;
    let summary = Summary {
        packets,
        bytes,
        events,
        packet_size_bytes,
        duration_s,
        speed: None,
    };
    words.next().is_none().then_some((role, summary))
}

/// `Speed: 1.49 Mpps Bandwidth: 714.28 Mbps (raw 1.00 Gbps)`, and with `Average batch: 2.37 pkts`.
fn speed(text: &str) -> Option<Speed> {
    let mut words = words(text).filter(|word| *word != ".").peekable();
    expect(&mut words, "Speed:")?;
    let packets_per_second = rate(&mut words, "pps")?;
    expect(&mut words, "Bandwidth:")?;
    let bits_per_second = rate(&mut words, "bps")?;
    expect(&mut words, "raw")?;
    let raw_bits_per_second = rate(&mut words, "bps")?;
    let average_batch = match words.next_if_eq(&"Average") {
        None => None,
        Some(_) => {
            expect(&mut words, "batch:")?;
            Some(rate(&mut words, "pkts")?)
        }
    };
    words.next().is_none().then_some(Speed {
        packets_per_second,
        bits_per_second,
        raw_bits_per_second,
        average_batch,
    })
}

/// Words between white space, commas and parentheses.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |letter: char| letter.is_ascii_whitespace() || ",()".contains(letter);
    text.split(is_between).filter(|word| !word.is_empty())
}

fn expect<'a>(words: &mut impl Iterator<Item = &'a str>, word: &str) -> Option<()> {
    (words.next()? == word).then_some(())
}

/// A whole number of a unit: `729113 pps`, `14.881 Mpps`.
fn whole<'a>(words: &mut impl Iterator<Item = &'a str>, unit: &str) -> Option<u64> {
    let number = words.next()?;
    let zeros = decimal_places(words.next()?, unit)?;
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = !integer.is_empty() && is_digits(integer) && is_digits(fraction);
    // What is printed of a unit is exact to its last digit, and so is this.
    (is_number && fraction.len() <= zeros)
        .then(|| format!("{integer}{fraction:0<zeros$}").parse().ok())?
}

/// A number of a unit that may have a fraction or a sign: `1.49 Mpps`, `-0 pps`.
fn rate<'a>(words: &mut impl Iterator<Item = &'a str>, unit: &str) -> Option<f64> {
    let number = finite(words.next()?)?;
    let zeros = decimal_places(words.next()?, unit)?;
    Some(number * 10_f64.powi(i32::try_from(zeros).ok()?))
}

/// How many zeros the prefix in front of a unit stands for.
fn decimal_places(word: &str, unit: &str) -> Option<usize> {
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
