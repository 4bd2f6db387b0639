#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod command;
mod line;
mod published;
mod steady;

use std::collections::BTreeMap;

pub use command::{AddressRange, Command};
use line::{INTERVAL_US_MAX, Line, Report, Stamp};
pub use line::{Noise, Speed};
pub use published::{PublishedMedian, published_observation};
pub use steady::{SteadyState, steady_state};

/// What a log's clock counts to before it begins again.
const CLOCK_US: i64 = 1_000_000_000;
/// How often pkt-gen reports unasked.
const REPORT_INTERVAL_US: u64 = 1_000_000;
/// A file that is no log has too many lines to keep, and they may be too long.
const UNKNOWN_LINES_KEPT: usize = 20;
const UNKNOWN_LETTERS_KEPT: usize = 200;

/// A log of pkt-gen as a sender or as a receiver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PktGenLog {
    /// Which of the two.
    pub role: Role,
    /// The line that says so, from 1.
    pub role_line: usize,
    /// The command, where the log holds it.
    pub command: Option<Command>,
    /// What was reported at every interval, in order.
    pub samples: Vec<Sample>,
    /// What was reported in the end.
    pub summary: Option<Summary>,
    /// How the log ends.
    pub ending: Ending,
    /// How many lines there are, torn and empty ones included.
    pub lines: usize,
    /// How many of them tell of the set-up and the way it is taken down, or are empty.
    pub setup_lines: usize,
    /// What else is known and says nothing about rates: how often.
    ///
    /// Each is a line, but [`Noise::ScreenTitle`] also stands inside others.
    pub noise: BTreeMap<Noise, usize>,
    /// The first 20 lines of no known kind, of a log of the other role, or with a report that cannot be.
    pub unknown: Vec<UnknownLine>,
    /// How many of these there are.
    pub unknown_lines: usize,
}

/// What pkt-gen did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It sent: `-f tx`.
    Sender,
    /// It received: `-f rx`, and what it does unasked.
    #[default]
    Receiver,
}

/// What went by since the report before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The line in the log, from 1.
    pub line: usize,
    /// The end of its interval, in microseconds since the end of the first sample's.
    ///
    /// The log's clock shows seconds modulo 1000; here it goes on, and never back.
    pub end_us: u64,
    /// Packets sent or received; where the first versions print the rate alone, the rate times the interval.
    pub packets: u64,
    /// How long the interval was; where the first versions print the rate alone, the time since the sample before, and
    /// for the first sample the interval that was asked for.
    pub interval_us: u64,
    /// The rate as printed, in packets per second, rounded to a whole number.
    pub printed_pps: u64,
    /// What later versions print as well.
    pub details: Option<SampleDetails>,
}

impl Sample {
    /// The rate, in packets per second; not finite for an interval of no length.
    #[must_use]
    pub fn rate_pps(&self) -> f64 {
        self.packets as f64 * 1e6 / self.interval_us as f64
    }

    /// The beginning of its interval, as [`Sample::end_us`] counts.
    #[must_use]
    pub fn start_us(&self) -> i64 {
        i64::try_from(self.end_us)
            .unwrap_or(i64::MAX)
            .saturating_sub_unsigned(self.interval_us)
    }
}

/// What later versions of pkt-gen print of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleDetails {
    /// Bits per second, without frame check sequence and gap.
    pub bits_per_second: u64,
    /// Packets that were handled at once, on average.
    pub average_batch: f64,
    /// The fewest slots that were free in a ring, summed over threads; still later versions print it.
    pub free_slots_min: Option<u64>,
}

/// What pkt-gen says in the end. `Sent nothing.` gives no more than that there were no packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Packets in all.
    pub packets: u64,
    /// Bytes in all; later versions print them.
    pub bytes: Option<u64>,
    /// How often packets were handled at once; later versions print it.
    pub events: Option<u64>,
    /// Bytes of a packet, without its frame check sequence; the first receivers print none.
    pub packet_size_bytes: Option<u64>,
    /// From the first to the last packet; meaningless, and often negative, where a thread failed.
    pub duration_s: Option<f64>,
    /// The line of rates behind it.
    pub speed: Option<Speed>,
}

/// How a log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// With a summary: pkt-gen had done what it was to do, or was interrupted and said so.
    Finished,
    /// A thread of pkt-gen failed; a summary may follow that means nothing.
    Failed,
    /// `Terminated`: killed, as a receiver is that waits for more. No summary.
    Terminated,
    /// Neither: the log, or what wrote it, ended in the middle.
    #[default]
    Cut,
}

/// A line that is of no known kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLine {
    /// The line in the log, from 1.
    pub line: usize,
    /// What it says, up to 200 letters; bytes that are no UTF-8 are replaced.
    pub text: String,
}

/// Why a text is no log of a sender or receiver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PktGenError {
    /// There is nothing in it.
    #[error("no line at all; give the log of a pkt-gen sender or receiver")]
    Empty,
    /// It has two bytes a letter, as some shells write files.
    #[error("line 1: in UTF-16; convert the log to UTF-8")]
    Utf16,
    /// Nothing in it is of pkt-gen.
    #[error("line {line}: no log of pkt-gen ({found:?}); give the log of a sender or receiver")]
    NotPktGen {
        /// The first line that is not empty, from 1.
        line: usize,
        /// What it says.
        found: String,
    },
    /// It is the log of `equilibrium`, which searches for a throughput and has no samples.
    #[error(
        "line {line}: a log of equilibrium, not of pkt-gen; give the log of a sender or receiver"
    )]
    Equilibrium {
        /// Where that shows, from 1.
        line: usize,
    },
    /// pkt-gen neither sent nor received a load.
    #[error("line {line}: pkt-gen ran as {function:?}; give the log of one that ran as tx or rx")]
    OtherFunction {
        /// Where that shows, from 1.
        line: usize,
        /// What it ran as.
        function: String,
    },
}

impl PktGenLog {
    /// Reads a log, whatever is mixed into it.
    ///
    /// Shape: the bytes of the file; line ends of either kind, and a byte order mark of UTF-8 or none.
    ///
    /// # Errors
    /// [`PktGenError`] where it is no log of a sender or receiver at all. Whatever else is odd is in
    /// [`PktGenLog::unknown`].
    ///
    /// # Examples
    /// ```
    /// use fwdlab_pkt_gen::{Ending, PktGenLog, Role};
    /// let log = PktGenLog::parse(
    ///     b"CMD: pkt-gen -N -f rx -i igb3 -w 4\n\
    ///       999.000000 main_thread [1441] 729113 pps (730571 pkts in 1002000 usec)\n\
    ///       000.001000 main_thread [1441] 729500 pps (730230 pkts in 1001000 usec)\n\
    ///       Terminated\n",
    /// )?;
    /// assert_eq!((log.role, log.ending), (Role::Receiver, Ending::Terminated));
    /// assert_eq!(log.samples[1].end_us, 1_001_000);
    /// assert_eq!(log.samples[1].packets, 730_230);
    /// # Ok::<(), fwdlab_pkt_gen::PktGenError>(())
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, PktGenError> {
        if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
            return Err(PktGenError::Utf16);
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut reader = LogReader::default();
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line));
            reader.read(line.strip_suffix('\r').unwrap_or(&line))?;
        }
        reader.finish()
    }
}

/// A log that is read while it is written, line by line.
///
/// # Examples
/// ```
/// use fwdlab_pkt_gen::{LogReader, Noise};
/// let mut reader = LogReader::default();
/// reader.read("992.788404 main [2044] Ready...")?;
/// assert!(!reader.has_begun());
/// reader.read("992.788525 receiver_body [1282] reading from netmap:igb2 fd 4 main_fd 3")?;
/// assert!(reader.has_begun());
/// reader.read("993.790400 main_thread [1550] 739193 pps (740588 pkts in 1001887 usec)")?;
/// assert_eq!(reader.samples()[0].packets, 740_588);
/// assert_eq!(reader.noise(Noise::ThreadFailed), 0);
/// # Ok::<(), fwdlab_pkt_gen::PktGenError>(())
/// ```
#[derive(Debug, Default)]
pub struct LogReader {
    /// But for its role and its ending, which show in the end.
    log: PktGenLog,
    /// With the line that says so.
    role: Option<(Role, usize)>,
    clock: Clock,
    /// Whether the line of rates may follow.
    summary_is_open: bool,
    /// Whether its version prints more than rates.
    has_counts: bool,
    is_terminated: bool,
    is_of_pkt_gen: bool,
    has_begun: bool,
    first_words: Option<(usize, String)>,
}

impl LogReader {
    /// What was reported so far at every interval, in order.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.log.samples
    }

    /// What was reported in the end, where it has ended.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.log.summary.as_ref()
    }

    /// How often something is in it that says nothing about rates.
    #[must_use]
    pub fn noise(&self, noise: Noise) -> usize {
        self.log.noise.get(&noise).copied().unwrap_or_default()
    }

    /// Whether pkt-gen has its port open and its link has had its time: it sends, or waits for packets.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Reads the next line, without its end.
    ///
    /// # Errors
    /// As of [`PktGenLog::parse`], where that shows.
    pub fn read(&mut self, text: &str) -> Result<(), PktGenError> {
        self.log.lines += 1;
        let number = self.log.lines;
        let (text, titles) = line::without_screen_titles(text);
        if titles > 0 {
            *self.log.noise.entry(Noise::ScreenTitle).or_default() += titles;
        }
        let text = text.trim();
        if self.first_words.is_none() && !text.is_empty() {
            self.first_words = Some((number, text.chars().take(60).collect()));
        }
        let is_open = std::mem::take(&mut self.summary_is_open);
        match Line::of(text) {
            Line::Command(command) if self.log.command.is_none() => self.start(number, command)?,
            Line::Equilibrium if !self.is_of_pkt_gen => {
                return Err(PktGenError::Equilibrium { line: number });
            }
            Line::Setup(role) if self.may_be(role) => {
                self.log.setup_lines += 1;
                self.role = self.role.or(role.map(|role| (role, number)));
                self.has_begun |= role.is_some();
                self.is_of_pkt_gen = true;
            }
            Line::Blank => self.log.setup_lines += 1,
            // What another version prints is a torn line.
            Line::Report(stamp, report)
                if report.is_possible() && (report.counted.is_some() || !self.has_counts) =>
            {
                self.has_counts = report.counted.is_some();
                self.is_of_pkt_gen = true;
                self.has_begun = true;
                let sample = self.sample(number, stamp.as_ref(), &report);
                self.log.samples.push(sample);
            }
            Line::Summary(role, summary)
                if self.log.summary.is_none() && self.may_be(Some(role)) =>
            {
                self.role = self.role.or(Some((role, number)));
                self.is_of_pkt_gen = true;
                self.log.summary = Some(summary);
                self.summary_is_open = true;
            }
            Line::Speed(speed) if is_open => {
                if let Some(summary) = &mut self.log.summary {
                    summary.speed = Some(speed);
                }
            }
            Line::Terminated => {
                self.is_terminated = true;
                self.log.setup_lines += 1;
            }
            Line::Noise(noise, role) if self.may_be(role) => {
                self.is_of_pkt_gen |= noise.is_of_pkt_gen();
                self.role = self.role.or(role.map(|role| (role, number)));
                self.has_begun |= role.is_some();
                *self.log.noise.entry(noise).or_default() += 1;
                if noise == Noise::ShellTrace
                    && self.log.command.is_none()
                    && let Some(command) = Command::of_trace(text)
                {
                    self.start(number, command)?;
                }
            }
            _ => {
                self.log.unknown_lines += 1;
                if self.log.unknown.len() < UNKNOWN_LINES_KEPT {
                    self.log.unknown.push(UnknownLine {
                        line: number,
                        text: text.chars().take(UNKNOWN_LETTERS_KEPT).collect(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Whether a line of that role may be of this log: of two logs in one the other's is not known.
    fn may_be(&self, role: Option<Role>) -> bool {
        self.role
            .zip(role)
            .is_none_or(|((known, _), role)| known == role)
    }

    /// A report with its time.
    fn sample(&mut self, line: usize, stamp: Option<&Stamp>, report: &Report) -> Sample {
        let before_us = self.log.samples.last().map(|sample| sample.end_us);
        let asked_us = || {
            let asked_ms = self.log.command.as_ref()?.report_interval_ms?;
            let asked_us = asked_ms.checked_mul(1000)?;
            Some(asked_us.min(INTERVAL_US_MAX))
        };
        let usual_us = match report.counted {
            Some((_, interval_us)) => interval_us,
            None => asked_us().unwrap_or(REPORT_INTERVAL_US),
        };
        let end_us = self.clock.advance(stamp, usual_us);
        let (packets, interval_us) = report.counted.unwrap_or_else(|| {
            let passed_us = before_us.map(|before_us| end_us - before_us);
            let interval_us = passed_us.filter(|us| *us > 0).unwrap_or(usual_us);
            let packets = u128::from(report.printed_pps) * u128::from(interval_us);
            let packets = (packets + 500_000) / 1_000_000;
            (u64::try_from(packets).unwrap_or(u64::MAX), interval_us)
        });
        Sample {
            line,
            end_us,
            packets,
            interval_us,
            printed_pps: report.printed_pps,
            details: report.details,
        }
    }

    /// Takes the command down.
    fn start(&mut self, line: usize, command: Command) -> Result<(), PktGenError> {
        // Receiving is what pkt-gen does unasked.
        let role = match command.function.as_deref().unwrap_or("rx") {
            "tx" | "txseq" => Role::Sender,
            "rx" | "rxseq" => Role::Receiver,
            other => {
                let function = other.to_owned();
                return Err(PktGenError::OtherFunction { line, function });
            }
        };
        self.role = Some((role, line));
        self.log.command = Some(command);
        self.is_of_pkt_gen = true;
        Ok(())
    }

    /// The log as a whole, as [`PktGenLog::parse`] reads it.
    ///
    /// # Errors
    /// As of [`PktGenLog::parse`].
    pub fn finish(self) -> Result<PktGenLog, PktGenError> {
        let Some((line, found)) = self.first_words else {
            return Err(PktGenError::Empty);
        };
        // Without a word on what pkt-gen did it is not known what its rates are.
        let Some((role, role_line)) = self.role.filter(|_| self.is_of_pkt_gen) else {
            return Err(PktGenError::NotPktGen { line, found });
        };
        let ending = if self.log.noise.contains_key(&Noise::ThreadFailed) {
            Ending::Failed
        } else if self.log.summary.is_some() {
            Ending::Finished
        } else if self.is_terminated {
            Ending::Terminated
        } else {
            Ending::Cut
        };
        Ok(PktGenLog {
            role,
            role_line,
            ending,
            ..self.log
        })
    }
}

/// A log's clock, made to go on.
#[derive(Debug, Default)]
struct Clock {
    /// What the log showed last, and what that is here.
    last: Option<(i64, u64)>,
}

impl Clock {
    /// The time of a sample whose interval is that long.
    ///
    /// What the clock shows is known modulo 1000 s, so the sample is at the one of the possible times
    /// that its own interval fits best; where somebody set the clock back, not before the last one. Without a clock
    /// its interval is all there is.
    fn advance(&mut self, stamp: Option<&Stamp>, interval_us: u64) -> u64 {
        let shown = stamp.map(|stamp| stamp.time_us);
        let time_us = shown.unwrap_or_else(|| {
            let last = self.last.map(|(shown_us, _)| shown_us);
            last.unwrap_or(0).saturating_add_unsigned(interval_us)
        });
        let now_us = match self.last {
            None => 0,
            Some((shown_us, last_us)) => {
                let interval_us = i64::try_from(interval_us).unwrap_or(i64::MAX);
                let shown = time_us.saturating_sub(shown_us).rem_euclid(CLOCK_US);
                // Of shown, shown + 1000 s and so on the nearest to the interval.
                let beyond = interval_us.saturating_sub(shown);
                let wraps = beyond.saturating_add(CLOCK_US / 2).div_euclid(CLOCK_US);
                let step = shown.saturating_add(wraps.saturating_mul(CLOCK_US)).max(0);
                last_us.saturating_add(step.unsigned_abs())
            }
        };
        self.last = Some((time_us, now_us));
        now_us
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    const RECEIVER: &str = "\
CMD on bigone: sudo pkt-gen -N -f rx -i ix1 -w 2 -W
ping6: failed to get receiving hop limit
998.465742 main [3036] interface is ix1
998.710662 start_threads [2695] Wait 2 secs for phy reset
998.710765 receiver_body [1940] reading from netmap:ix1 fd 3 main_fd 3
999.710800 receiver_body [1940] waiting for initial packets, poll returns 0 0
999.734877 main_thread [2786] 11921022 pps (12208545 pkts 5722090499 bps in 1024119 usec) 9.97 avg_batch 0 min_space
000.798125 main_thread [2786] 11899237 pps (12651852 pkts 5711633832 bps in 1063249 usec) 9.89 avg_batch 14244 min_space
001.800000 main_thread [2786] 0 pps (0 pkts 0 bps in 1001875 usec) 0.00 avg_batch 6135 min_space
";

    fn parsed(text: &str) -> PktGenLog {
        PktGenLog::parse(text.as_bytes()).unwrap()
    }

    fn refusal(text: &str) -> String {
        PktGenLog::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_receiver_says_what_arrived() {
        let log = parsed(RECEIVER);
        assert_eq!((log.role, log.ending), (Role::Receiver, Ending::Cut));
        let ends: Vec<u64> = log.samples.iter().map(|sample| sample.end_us).collect();
        assert_eq!(ends, [0, 1_063_248, 2_065_123]);
        assert_eq!(log.samples[0].start_us(), -1_024_119);
        assert_eq!(log.samples[1].line, 8);
        let details = log.samples[1].details.unwrap();
        assert_eq!(details.bits_per_second, 5_711_633_832);
        assert_eq!(details.free_slots_min, Some(14_244));
        assert_eq!((log.lines, log.setup_lines), (9, 3));
        assert_eq!(log.noise[&Noise::Ping], 1);
        assert_eq!(log.noise[&Noise::WaitingForPackets], 1);
        assert_eq!(log.unknown, []);
    }

    #[test]
    fn a_log_ends_in_one_of_four_ways() {
        let received = "Received 22199 packets 1331940 bytes 7772 events 60 bytes each in -1505074016.06 seconds.\n\
             Speed: -0 pps Bandwidth: -0 bps (raw -0 bps). Average batch: 2.86 pkts\n";
        for (end, ending) in [
            ("", Ending::Cut),
            ("Terminated\n", Ending::Terminated),
            (received, Ending::Finished),
            (
                &format!(
                    "002.0 x\n017.058433 main_thread [2304] ouch, thread 0 exited with error\n{received}"
                ),
                Ending::Failed,
            ),
        ] {
            assert_eq!(parsed(&format!("{RECEIVER}{end}")).ending, ending);
        }
        let log = parsed(&format!("{RECEIVER}{received}"));
        assert!(log.summary.unwrap().duration_s.unwrap() < 0.0);
    }

    #[test]
    fn summaries_of_all_versions_are_read() {
        for (text, bytes, pps, raw_bps, batch) in [
            (
                "Sent 80000000 packets, 60 bytes each, in 53.76 seconds.\n\
                 Speed: 1.49 Mpps Bandwidth: 714.28 Mbps (raw 1.00 Gbps)\n",
                None,
                1.49e6,
                1e9,
                None,
            ),
            (
                "Sent 80000000 packets 4800000000 bytes 33600862 events 60 bytes each in 53.76 seconds.\n\
                 Speed: 1488130 pps Bandwidth: 714302203 bps (raw 1000023085 bps). Average batch: 2.38 pkts\n",
                Some(4_800_000_000),
                1_488_130.0,
                1_000_023_085.0,
                Some(2.38),
            ),
        ] {
            let log = parsed(&format!("CMD: pkt-gen -f tx -n 80000000\n{text}"));
            let summary = log.summary.unwrap();
            assert_eq!((summary.packets, summary.bytes), (80_000_000, bytes));
            assert_eq!(summary.packet_size_bytes, Some(60));
            let speed = summary.speed.unwrap();
            assert!((speed.packets_per_second / pps - 1.0).abs() < 1e-12);
            assert!((speed.raw_bits_per_second.unwrap() / raw_bps - 1.0).abs() < 1e-12);
            assert_eq!(speed.average_batch, batch);
            assert_eq!((log.role, log.ending), (Role::Sender, Ending::Finished));
        }
    }

    #[test]
    fn units_that_pkt_gen_chose_are_read() {
        let log = parsed(
            "1.000000 receiver_body [1] reading from netmap:ix1\n\
             2.000000 main_thread [1] 14.881 Mpps (14.896 Mpkts 7.150 Gbps in 1001000 usec) 512.00 avg_batch 99999 min_space\n\
             3.000000 main_thread [1] 950 pps (951 pkts 456.480 Kbps in 1001000 usec) 1.00 avg_batch 7 min_space\n",
        );
        let packets: Vec<u64> = log.samples.iter().map(|sample| sample.packets).collect();
        assert_eq!(packets, [14_896_000, 951]);
        assert_eq!(log.samples[1].details.unwrap().bits_per_second, 456_480);
        assert_eq!(log.command, None);
    }

    #[test]
    fn what_is_not_known_is_kept_with_its_line() {
        let mut text = RECEIVER.as_bytes().to_vec();
        text.extend(
            b"\x1bkroot@lab\x1b\\000.9 \xff torn\r\n\x1bktitle\x1b\\\nSpeed: 1 pps\n002.8 main_thr",
        );
        let log = PktGenLog::parse(&text).unwrap();
        let unknown: Vec<(usize, &str)> = log
            .unknown
            .iter()
            .map(|unknown| (unknown.line, unknown.text.as_str()))
            .collect();
        assert_eq!(
            unknown,
            [
                (10, "000.9 \u{fffd} torn"),
                (12, "Speed: 1 pps"),
                (13, "002.8 main_thr")
            ]
        );
        assert_eq!(log.noise[&Noise::ScreenTitle], 2);
        assert_eq!(log.samples.len(), 3);
    }

    #[test]
    fn what_is_no_log_of_a_sender_or_receiver_is_refused() {
        refused_as(
            &[
                "",
                " \n\n",
                "\nImage: 1\nCFG: 2\n",
                "CMD on 10.0.0.1: equilibrium -u -d 00:00 -t igb2\nIteration 1\n",
                "CMD: pkt-gen -f ping -i igb2\n",
                "1.000000 main_thread [1441] 729113 pps (730571 pkts in 1002000 usec)\n",
            ],
            &[
                "no line at all; give the log of a pkt-gen sender or receiver",
                "no line at all; give the log of a pkt-gen sender or receiver",
                "line 2: no log of pkt-gen (\"Image: 1\"); give the log of a sender or receiver",
                "line 1: a log of equilibrium, not of pkt-gen; give the log of a sender or receiver",
                "line 1: pkt-gen ran as \"ping\"; give the log of one that ran as tx or rx",
                "line 1: no log of pkt-gen (\"1.000000 main_thread [1441] 729113 pps (730571 pkts in 10020\"); give the log \
                 of a sender or receiver",
            ],
        );
    }

    fn refused_as(texts: &[&str], expected: &[&str]) {
        let refusals: Vec<String> = texts.iter().map(|text| refusal(text)).collect();
        assert_eq!(refusals, expected);
    }

    #[test]
    fn the_clock_goes_on_where_the_log_wraps_or_somebody_sets_it() {
        let ends = |shown: &[(&str, u64)]| -> Vec<u64> {
            let mut text = "CMD: pkt-gen -f rx\n".to_owned();
            for (time, interval_us) in shown {
                writeln!(
                    text,
                    "{time} main_thread [1] 0 pps (0 pkts in {interval_us} usec)"
                )
                .unwrap();
            }
            parsed(&text)
                .samples
                .iter()
                .map(|sample| sample.end_us)
                .collect()
        };
        assert_eq!(
            ends(&[("999.500000", 1), ("000.500000", 1_000_000)]),
            [0, 1_000_000]
        );
        // An interval longer than the clock's turn, and one as long as several.
        assert_eq!(
            ends(&[("001.000000", 1), ("001.500000", 1_000_500_000)]),
            [0, 1_000_500_000]
        );
        assert_eq!(
            ends(&[("001.000000", 1), ("002.000000", 3_001_000_000)]),
            [0, 3_001_000_000]
        );
        // Set back by 5 s.
        assert_eq!(
            ends(&[("007.000000", 1), ("002.000000", 1_000_000)]),
            [0, 0]
        );
        // A gap that the interval does not explain: reports were lost.
        assert_eq!(
            ends(&[("007.000000", 1), ("070.000000", 1_000_000)]),
            [0, 63_000_000]
        );
        let extremes = [
            ("-999999999.999999", INTERVAL_US_MAX),
            ("999999999.999999", INTERVAL_US_MAX),
        ];
        assert_eq!(ends(&extremes).len(), 2);
    }

    #[test]
    fn a_report_that_no_port_can_give_or_that_contradicts_itself_is_no_sample() {
        let good = "1190476190 pps (1190476190 pkts in 1000000 usec)";
        for bad in [
            "1190476191 pps (1190476191 pkts in 1000000 usec)",
            "1000000000000000 pps (1000000000000000 pkts in 1000000 usec)",
            // The counter was set back.
            "18446744073709551615 pps (18446744073708551616 pkts in 1000000 usec)",
            "1000 pps (2000 pkts in 1000000 usec)",
            "1.000 Mpps (1.010 Mpkts in 1000000 usec)",
            "5 pps (5 pkts in 0 usec)",
            "0 pps (0 pkts in 86400000001 usec)",
        ] {
            let log = parsed(&format!(
                "CMD: pkt-gen -f rx\n1.000000 main_thread [1] {good}\n2.000000 main_thread [1] {bad}\n\
                 3.000000 main_thread [1] {good}\n"
            ));
            assert_eq!(log.samples.len(), 2, "{bad}");
            assert_eq!(log.samples[1].end_us, 2_000_000);
            assert_eq!((log.unknown_lines, log.unknown[0].line), (1, 3), "{bad}");
        }
        let log = parsed("CMD: pkt-gen -f rx\nmain [9] 7 pps\nmain [9] 1190476191 pps\n");
        assert_eq!((log.samples.len(), log.unknown_lines), (1, 1));
    }

    #[test]
    fn lines_of_the_other_role_are_not_of_this_log() {
        let log = parsed(
            "CMD: pkt-gen -f rx\n1.000000 receiver_body [1] reading from netmap:ix1\n\
             1.000000 sender_body [1] start, fd 3 main_fd 3\nSent 5 packets, 60 bytes each, in 1.00 seconds.\n",
        );
        assert_eq!((log.role, log.role_line), (Role::Receiver, 1));
        assert_eq!((log.unknown_lines, log.unknown[0].line), (2, 3));
        assert_eq!(log.summary, None);
    }

    #[test]
    fn the_steady_state_is_the_core_of_the_blast() {
        let log = |rates: &[u64]| {
            let mut text = "CMD: pkt-gen -f rx\n".to_owned();
            for (second, rate) in rates.iter().enumerate() {
                writeln!(
                    text,
                    "{second:03}.000000 main_thread [1] {rate} pps ({rate} pkts in 1000000 usec)"
                )
                .unwrap();
            }
            parsed(&text)
        };
        // A trickle, the blast with a stall in it, the second it ends in, and nothing.
        let steady = steady_state(&log(&[
            0, 3, 90, 80, 70, 100, 100, 0, 102, 104, 70, 60, 20, 0,
        ]))
        .unwrap();
        assert_eq!((steady.samples, steady.packets, steady.stalls), (5, 406, 1));
        assert_eq!(
            (steady.start_us, steady.duration_us),
            (4_000_000, 5_000_000)
        );
        assert!((steady.mean_pps() - 81.2).abs() < 1e-9);
        assert!((steady.median_pps - 100.0).abs() < 1e-9);
        assert_eq!(
            steady_state(&log(&[100; 6])).map(|steady| steady.samples),
            Some(1)
        );
        for nothing in [&[100; 5][..], &[0; 20], &[]] {
            assert_eq!(steady_state(&log(nothing)), None);
        }
    }

    #[test]
    fn the_published_number_is_the_median_of_what_the_script_leaves() {
        // 15 lines, the rates, 10 lines.
        let log = |rates: &[&str]| {
            let mut text = "x\n".repeat(15);
            for rate in rates {
                writeln!(text, "1.0 main_thread [7] {rate} pps (1 pkts in 1 usec)").unwrap();
            }
            text + &"5.0 main_thread [7] 9 pps\n".repeat(10)
        };
        let published =
            |rates: &[&str], median| published_observation(log(rates).as_bytes(), median);
        for (rates, averaged, upper) in [
            (&["3", "1", "2"][..], Some("2"), Some("2")),
            (&["4", "1", "2", "3"], Some("2.5"), Some("3")),
            (&["0", "1", "2"], None, None),
            (&["0", "1", "2", "7"], Some("2"), Some("2")),
            (&["11926596", "11926597"], None, None),
            (
                &["123456789", "123456789", "123456789"],
                Some("1.2345679e+08"),
                Some("1.2345679e+08"),
            ),
            (&["1x", "1", "1"], None, None),
        ] {
            assert_eq!(
                published(rates, PublishedMedian::Averaged).as_deref(),
                averaged,
                "{rates:?}"
            );
            assert_eq!(
                published(rates, PublishedMedian::Upper).as_deref(),
                upper,
                "{rates:?}"
            );
        }
        // With 22 lines `tail` is asked for -3: of the first 12 the last 3.
        let short = |lines: usize| {
            let lines: String = (1..=lines)
                .map(|rate| format!("1.0 main_thread [7] {rate} pps\n"))
                .collect();
            published_observation(lines.as_bytes(), PublishedMedian::Averaged)
        };
        assert_eq!(short(22).as_deref(), Some("11"));
        assert_eq!((short(25), short(10), short(0)), (None, None, None));
    }

    fn sample() -> impl Strategy<Value = (u64, u64, Option<(u64, u32, u32)>)> {
        (
            0..1_u64 << 40,
            1..5_000_000_u64,
            prop::option::of((any::<u64>(), any::<u32>(), any::<u32>())),
        )
            // No port carries more.
            .prop_map(|(packets, interval_us, details)| {
                (packets % (1190 * interval_us), interval_us, details)
            })
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_they_are_read_or_refused(text: Vec<u8>) {
            if let Ok(log) = PktGenLog::parse(&text) {
                let _ = steady_state(&log);
            }
            let _ = published_observation(&text, PublishedMedian::Averaged);
        }

        #[test]
        fn samples_and_lines_are_conserved(
            samples in prop::collection::vec(sample(), 0..30),
            others in prop::collection::vec(("[ -~]{0,40}", 0_usize..40), 0..12),
            start_us in 0..1_000_000_000_u64,
        ) {
            let mut lines = Vec::new();
            let mut time_us = start_us;
            for (index, (packets, interval_us, details)) in samples.iter().enumerate() {
                time_us += if index > 0 { *interval_us } else { 0 };
                let pps = (packets * 1_000_000 + interval_us / 2) / interval_us;
                let (wire, rest) = match details {
                    None => (String::new(), String::new()),
                    Some((bits, batch, space)) => (
                        format!("{bits} bps "),
                        format!(" {batch}.25 avg_batch {space} min_space"),
                    ),
                };
                lines.push(format!(
                    "{:03}.{:06} main_thread [2786] {pps} pps ({packets} pkts {wire}in {interval_us} usec){rest}",
                    time_us / 1_000_000 % 1000,
                    time_us % 1_000_000,
                ));
            }
            for (text, place) in &others {
                lines.insert(place % (lines.len() + 1), format!("~{text}"));
            }
            lines.insert(0, "CMD: pkt-gen -f rx -i ix1".to_owned());
            let log = PktGenLog::parse(lines.join("\n").as_bytes()).unwrap();

            prop_assert_eq!(log.samples.len(), samples.len());
            let mut end_us = 0;
            for (index, (read, (packets, interval_us, details))) in log.samples.iter().zip(&samples).enumerate() {
                end_us += if index > 0 { *interval_us } else { 0 };
                prop_assert_eq!((read.packets, read.interval_us, read.end_us), (*packets, *interval_us, end_us));
                let wire = read.details.map(|details| (details.bits_per_second, details.free_slots_min));
                prop_assert_eq!(wire, details.map(|(bits, _, space)| (bits, Some(u64::from(space)))));
                prop_assert!(lines[read.line - 1].contains("main_thread"));
            }
            prop_assert_eq!((log.unknown.len(), log.unknown_lines), (others.len(), others.len()));
            prop_assert_eq!(log.lines, 1 + log.samples.len() + log.unknown.len());
        }
    }
}
