//! The number that the public archive's own script makes of a receiver's log.

use fwdlab_stats::ministat::{general, parse_points};

use crate::line::decimal_places;

/// What ministat took for the median of an even count when the number was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedMedian {
    /// The mean of the two values in the middle.
    Averaged,
    /// The upper one of them: ministat before the end of 2015.
    Upper,
}

/// The line of a `.pps` file that the public archive's script `bench-lab-ministat.sh` writes for a
/// receiver's log, digit for digit; `None` where it writes none.
///
/// The script leaves out the last 10 lines and of what remains the first 15, whatever is in them,
/// then all lines without a positive rate, and prints ministat's median of the rates as `%.8g`. So
/// with fewer lines in front of the first sample it leaves out fewer samples, a stall does not
/// count, and a log of less than 3 samples vanishes. The script takes `14.881 Mpps` for 14.881, this for 14 881 000. That is for telling whether a number was made
/// so; for a rate that means more, see [`super::steady_state`].
///
/// Shape: the log as it lies in the archive. Units: the result is in packets per second.
///
/// # Source
/// github.com/ocochard/netbenches, `scripts/bench-lab-ministat.sh`; `head` and `tail` are FreeBSD's.
#[must_use]
pub fn published_observation(log: &[u8], median: PublishedMedian) -> Option<String> {
    let lines: Vec<&[u8]> = log.split_inclusive(|&byte| byte == b'\n').collect();
    // `wc -l` counts newlines.
    let line_count = lines.iter().filter(|line| line.ends_with(b"\n")).count();
    // `head` refuses a count of none.
    let head = lines.get(..line_count.checked_sub(10).filter(|&count| count > 0)?)?;
    // `tail -n -3` is `tail -n 3`.
    let tail = &head[head.len().saturating_sub(line_count.abs_diff(25))..];
    let mut rates = Vec::new();
    for line in tail.iter().filter(|line| has_positive_rate(line)) {
        let mut columns = line.split(|&byte| byte == b' ').skip(3);
        let column = columns.next().unwrap_or_default();
        let unit = str::from_utf8(columns.next().unwrap_or_default()).ok()?;
        let scale = 10_f64.powi(i32::try_from(decimal_places(unit.trim_end(), "pps")?).ok()?);
        // ministat passes over a blank line and gives up at one that is no number.
        let points = parse_points(column, 1, b" \t").ok()?;
        rates.extend(points.into_iter().map(|rate| rate * scale));
    }
    if rates.len() < 3 {
        return None;
    }
    rates.sort_by(f64::total_cmp);
    let upper = rates[rates.len() / 2];
    let published = match median {
        PublishedMedian::Averaged if rates.len().is_multiple_of(2) => {
            (upper + rates[rates.len() / 2 - 1]) / 2.0
        }
        _ => upper,
    };
    Some(general(published, 8).to_string())
}

/// Whether `main_thread[[:space:]]\[[[:digit:]]+\][[:space:]][1-9].*pps` matches somewhere.
fn has_positive_rate(line: &[u8]) -> bool {
    const FUNCTION: &[u8] = b"main_thread";
    (0..line.len()).any(|at| {
        line[at..]
            .strip_prefix(FUNCTION)
            .and_then(matches_from_source_line)
            .is_some()
    })
}

fn matches_from_source_line(text: &[u8]) -> Option<()> {
    let is_space = |byte: u8| byte == 0x0b || byte.is_ascii_whitespace();
    let text = text.strip_prefix(&[*text.first().filter(|byte| is_space(**byte))?])?;
    let text = text.strip_prefix(b"[")?;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = text[digits..].strip_prefix(b"]").filter(|_| digits > 0)?;
    let (space, text) = text.split_first()?;
    let (digit, text) = text.split_first()?;
    let is_positive = is_space(*space) && (b'1'..=b'9').contains(digit);
    (is_positive && text.windows(3).any(|window| window == b"pps")).then_some(())
}
