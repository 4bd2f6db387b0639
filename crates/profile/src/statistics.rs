//! What pmcstat counted while it converted a log.

use std::str;

use crate::ForeignForm;
use crate::text::{line_of, quoted, readable, whole_lines};

/// What stands above the counts.
const HEADING: &str = "CONVERSION STATISTICS:";

/// The counts that pmcstat prints when it has made a call graph, `pmc.log` in the public archive.
///
/// They tell what the graph alone does not: how many samples there were before anything was lost.
///
/// ```text
/// CONVERSION STATISTICS:
///  #samples/total                           224954
///  #samples/unknown-function                1
/// ```
///
/// # Source
/// FreeBSD, `usr.sbin/pmcstat/pmcstat_log.c`, `pmcstat_shutdown_logging`.
///
/// # Examples
/// ```
/// use fwdlab_profile::ConversionStatistics;
/// let text = b"CONVERSION STATISTICS:\n #samples/total                           5057\n";
/// assert_eq!(ConversionStatistics::parse(text)?.count("#samples/total"), 5057);
/// # Ok::<(), fwdlab_profile::StatisticsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionStatistics<'a> {
    /// What was counted, by its name in print, in order.
    pub counts: Vec<(&'a str, u64)>,
    /// Lines before the counts, by their number from 1: what pmcstat warned of.
    pub warnings: Vec<(usize, &'a str)>,
}

/// Why a text is no statistics of a conversion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatisticsError {
    /// There is nothing in it.
    #[error("no line at all: pmcstat had not ended, or said nothing; give what pmcstat -G printed")]
    Empty,
    /// There are lines, but no counts.
    #[error(
        "line {line}: no line \"CONVERSION STATISTICS:\" ({found:?}); give what pmcstat -G printed"
    )]
    NoHeading {
        /// The last line, from 1.
        line: usize,
        /// How it begins.
        found: String,
    },
    /// A line among the counts is none.
    #[error("line {line}: expected \" #NAME  COUNT\" ({found:?}); give what pmcstat -G printed")]
    Line {
        /// The line, from 1.
        line: usize,
        /// How it begins.
        found: String,
    },
    /// There are bytes that are no text.
    #[error("line {line}: bytes that are no text; give what pmcstat -G printed")]
    NotText {
        /// Where the first of them are, from 1.
        line: usize,
    },
    /// The last line does not end, so its number may be cut.
    #[error("line {line}: it does not end, its number may be cut")]
    Torn {
        /// The line, from 1.
        line: usize,
    },
    /// It is another form.
    #[error(transparent)]
    Foreign(#[from] ForeignForm),
}

impl<'a> ConversionStatistics<'a> {
    /// Reads what pmcstat printed.
    ///
    /// Shape: the bytes of the file; line ends of either kind.
    ///
    /// # Errors
    /// [`StatisticsError`].
    pub fn parse(text: &'a [u8]) -> Result<Self, StatisticsError> {
        let text = readable(text)?;
        let text = str::from_utf8(text).map_err(|error| StatisticsError::NotText {
            line: line_of(text, error),
        })?;
        let mut read = Self {
            counts: Vec::new(),
            warnings: Vec::new(),
        };
        let mut has_heading = false;
        for line in whole_lines(text) {
            let (line, text) = line.map_err(|line| StatisticsError::Torn { line })?;
            if has_heading {
                let count = parse_count(text).ok_or_else(|| StatisticsError::Line {
                    line,
                    found: quoted(text),
                })?;
                read.counts.push(count);
            } else if text == HEADING {
                has_heading = true;
            } else {
                read.warnings.push((line, text));
            }
        }
        if has_heading {
            return Ok(read);
        }
        Err(match read.warnings.last() {
            None => StatisticsError::Empty,
            Some(&(line, found)) => StatisticsError::NoHeading {
                line,
                found: quoted(found),
            },
        })
    }

    /// One of the counts, by its name in print; pmcstat leaves out what is 0.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        let found = self.counts.iter().find(|(of, _)| *of == name);
        found.map_or(0, |(_, count)| *count)
    }

    /// The samples that a call graph of the same conversion holds: all but those whose address was
    /// nobody's.
    #[must_use]
    pub fn graphed_samples(&self) -> u64 {
        let dubious = self.count("#callchain/dubious-frames");
        self.count("#samples/total").saturating_sub(dubious)
    }
}

/// ` #NAME  COUNT`; a name may hold spaces.
fn parse_count(line: &str) -> Option<(&str, u64)> {
    let line = line
        .strip_prefix(' ')
        .filter(|rest| rest.starts_with('#'))?;
    let (name, count) = line.rsplit_once(' ')?;
    let is_number = count.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((name.trim_end(), count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_are_read_by_their_names() {
        let text = b"pmcstat: WARNING: something\r\nCONVERSION STATISTICS:\n\
            \x20#exec handling errors                    1\n\
            \x20#samples/total                           123464\n\
            \x20#callchain/dubious-frames                4723\n";
        let read = ConversionStatistics::parse(text).unwrap();
        assert_eq!(read.warnings, [(1, "pmcstat: WARNING: something")]);
        assert_eq!(read.counts.len(), 3);
        assert_eq!(read.count("#exec handling errors"), 1);
        assert_eq!(read.count("#samples/unclaimed"), 0);
        assert_eq!(read.graphed_samples(), 118_741);
    }

    #[test]
    fn what_is_no_statistics_is_refused_with_its_line() {
        for (text, refusal) in [
            (
                &b""[..],
                "no line at all: pmcstat had not ended, or said nothing; give what pmcstat -G printed",
            ),
            (
                b"a\nb\n",
                "line 2: no line \"CONVERSION STATISTICS:\" (\"b\"); give what pmcstat -G printed",
            ),
            (
                b"CONVERSION STATISTICS:\n #samples/total -1\n",
                "line 2: expected \" #NAME  COUNT\" (\" #samples/total -1\"); give what pmcstat -G printed",
            ),
            (
                b"CONVERSION STATISTICS:\n\n",
                "line 2: expected \" #NAME  COUNT\" (\"\"); give what pmcstat -G printed",
            ),
            (
                b"a\n\xff\xfe",
                "line 2: bytes that are no text; give what pmcstat -G printed",
            ),
            (
                b"CONVERSION STATISTICS:\n #samples/total 12",
                "line 2: it does not end, its number may be cut",
            ),
        ] {
            let error = ConversionStatistics::parse(text).unwrap_err();
            assert_eq!(error.to_string(), refusal);
        }
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_they_are_read_or_refused(text: Vec<u8>) {
            let _ = ConversionStatistics::parse(&text);
        }

        #[test]
        fn counts_read_back(counts in prop::collection::vec(("#[a-z/ -]{1,45}[a-z]", any::<u64>()), 0..9)) {
            let lines: String = counts.iter().map(|(name, count)| format!(" {name:<40} {count}\n")).collect();
            let text = format!("{HEADING}\n{lines}");
            let read = ConversionStatistics::parse(text.as_bytes()).unwrap();
            let counts: Vec<(&str, u64)> = counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
            prop_assert_eq!(read.counts, counts);
        }
    }
}
