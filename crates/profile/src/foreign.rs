//! Forms that no reader here reads, and what to do about each.

use crate::perf_line::is_of_other_fields;
use crate::text::without_byte_order_mark;

/// How many lines are looked at.
const LINES_MAX: usize = 40;

/// A form that is known by how it begins, and is no profile's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignForm {
    /// Two bytes a character.
    #[error("it is text in UTF-16; give it in UTF-8: iconv -f UTF-16 -t UTF-8 FILE")]
    Utf16,
    /// What `perf record` writes.
    #[error("it is a recording of perf record; give what perf script -i FILE prints")]
    PerfData,
    /// Compressed text, or a file for pprof.
    #[error(
        "it is compressed by gzip; give what zcat FILE prints. A file for pprof (.pb.gz) is written here, \
         not read: fold it by go tool pprof -raw FILE | stackcollapse-go.pl"
    )]
    Gzip,
    /// Compressed text.
    #[error("it is compressed by {0}; give what {0} -dc FILE prints")]
    Compressed(&'static str),
    /// Data, of a profiler of browsers or programs.
    #[error(
        "it is JSON; give folded stacks, which most profilers export as \"collapsed\" or \"folded\""
    )]
    Json,
    /// `@[` and stacks.
    #[error(
        "it is a map of bpftrace's; give folded stacks, as stackcollapse-bpftrace.pl FILE prints"
    )]
    Bpftrace,
    /// Stacks and counts without a form that a script reads.
    #[error("it is what a tool of bcc printed; give what the same tool prints with -f (folded)")]
    Bcc,
    /// Percentages, of `-g folded` as well.
    #[error("it is what perf report printed; give what perf script prints")]
    PerfReport,
    /// Lines of `perf script` that lack what a sample is known by.
    #[error(
        "it is what perf script -F printed, without a field that is needed; \
         give what perf script -F comm,tid,time,event,ip,sym,dso prints"
    )]
    PerfFields,
    /// Folded stacks with a count of each of two profiles.
    #[error(
        "each of its lines ends in two counts, as difffolded.pl prints them; give one of its two inputs, or both to \
         fwdlab flame diff"
    )]
    FoldedDifference,
}

impl ForeignForm {
    /// The form of bytes that are no text in UTF-8, if it is a known one.
    #[must_use]
    pub fn of_bytes(begin: &[u8]) -> Option<Self> {
        match begin {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(Self::Utf16),
            [1..=255, 0, 1..=255, 0, ..] | [0, 1..=255, 0, 1..=255, ..] => Some(Self::Utf16),
            [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..]
            | [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => Some(Self::PerfData),
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Compressed("zstd")),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Compressed("xz")),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Compressed("bzip2")),
            _ => None,
        }
    }

    /// The form of a text that is none of a reader's.
    pub(crate) fn of_text(text: &[u8]) -> Option<Self> {
        let text = without_byte_order_mark(text);
        let is_json = match text.trim_ascii_start() {
            [b'{', rest @ ..] => matches!(rest.trim_ascii_start(), [b'"' | b'}', ..]),
            [b'[', rest @ ..] => matches!(rest.trim_ascii_start(), [b'{' | b']', ..]),
            _ => false,
        };
        if is_json {
            return Some(Self::Json);
        }
        let lines = text.split(|&byte| byte == b'\n').take(LINES_MAX);
        lines.into_iter().find_map(Self::of_line)
    }

    /// The form that a line is of and nothing else.
    fn of_line(line: &[u8]) -> Option<Self> {
        let has = |part: &[u8]| memchr::memmem::find(line, part).is_some();
        let is_attached = line.starts_with(b"Attaching ") || line.starts_with(b"Attached ");
        if is_map(line) || (is_attached && has(b" probe")) {
            Some(Self::Bpftrace)
        } else if has(b"Hit Ctrl-C to end") {
            Some(Self::Bcc)
        } else if is_share(line) || line.starts_with(b"# Overhead") {
            Some(Self::PerfReport)
        } else if is_of_other_fields(line) || is_of_task_alone(line) {
            Some(Self::PerfFields)
        } else {
            None
        }
    }
}

/// `@[` or `@name[`, behind which stacks follow, or `@name: 5`.
fn is_map(line: &[u8]) -> bool {
    let Some(name) = line.strip_prefix(b"@") else {
        return false;
    };
    let end = name
        .iter()
        .position(|&byte| !byte.is_ascii_alphanumeric() && byte != b'_');
    end.is_some_and(|end| matches!(name[end], b'[' | b':'))
}

/// `      sh 18409 ` or `sh 18409/18410 `: a sample's line without its event, which ends in a blank.
fn is_of_task_alone(line: &[u8]) -> bool {
    let Some(task) = line.strip_suffix(b" ") else {
        return false;
    };
    let ids = task.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    let is_id = |id: &[u8]| !id.is_empty() && id.iter().all(u8::is_ascii_digit);
    ids.len() < task.trim_ascii().len() && ids.splitn(2, |&byte| byte == b'/').all(is_id)
}

/// `  20.45%  sh  libc.so.6  [.] read`, or `6.82% read`; a frame of pmcstat has its samples in brackets there.
fn is_share(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let end = line
        .iter()
        .position(|byte| !byte.is_ascii_digit() && *byte != b'.');
    end.is_some_and(|end| {
        end > 0 && line[end] == b'%' && !line[end + 1..].trim_ascii_start().starts_with(b"[")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_others_are_known_by_how_they_begin() {
        for (begin, expected) in [
            (&b"\xff\xfen\0c\0"[..], ForeignForm::Utf16),
            (b"\xfe\xff\0n\0c", ForeignForm::Utf16),
            (b"n\0c\0 \0", ForeignForm::Utf16),
            (b"\0n\0c\0 ", ForeignForm::Utf16),
            (b"PERFILE2\x68\0\0\0", ForeignForm::PerfData),
            (b"\x1f\x8b\x08\0", ForeignForm::Gzip),
            (b"\x28\xb5\x2f\xfd\x04", ForeignForm::Compressed("zstd")),
        ] {
            assert_eq!(ForeignForm::of_bytes(begin), Some(expected), "{begin:?}");
        }
        for (text, expected) in [
            ("{\n  \"nodes\": []}", ForeignForm::Json),
            ("\u{feff}[{\"ph\": \"X\"}]", ForeignForm::Json),
            ("\u{feff}@[\n    ip_rcv+1\n]: 5\n", ForeignForm::Bpftrace),
            (
                "Attaching 1 probe...\n\n\n@stacks[nc, \n    ip_rcv+1\n]: 5\n",
                ForeignForm::Bpftrace,
            ),
            ("@: 7\n", ForeignForm::Bpftrace),
            (
                "Sampling at 49 Hertz of all threads by user + kernel stack... Hit Ctrl-C to end.\n\
                 \x20   ip_rcv\n    -                iperf3 (7)\n        5\n",
                ForeignForm::Bcc,
            ),
            (
                "# To display the perf.data header info, please use ...\n#\n    20.45%  sh  libc.so.6  [.] read\n",
                ForeignForm::PerfReport,
            ),
            ("6.82% main;read\n", ForeignForm::PerfReport),
            (
                "nc 12.5: 1000 cycles: \n\tffffffff81 ip_rcv+0x1 ([k])\n",
                ForeignForm::PerfFields,
            ),
            ("\n\tffffffff81775a2a ip_rcv\n\n", ForeignForm::PerfFields),
            (
                "      sh 18409      page-faults: \n      sh 18409      page-faults: \n",
                ForeignForm::PerfFields,
            ),
            (
                "      sh 18409 \n      ls 18410 \n",
                ForeignForm::PerfFields,
            ),
            ("my app 18409/18410 \n\thot\n", ForeignForm::PerfFields),
        ] {
            assert_eq!(
                ForeignForm::of_text(text.as_bytes()),
                Some(expected),
                "{text}"
            );
        }
        for text in [
            "",
            "@ cycles [2 samples]\n\n100.0%  [2]        ip_input @ /boot/kernel/kernel\n",
            "[unknown];a 1\n",
            "{main};b 1\n",
            "prose, 20 % of it\n",
        ] {
            assert_eq!(ForeignForm::of_text(text.as_bytes()), None, "{text}");
            assert_eq!(ForeignForm::of_bytes(text.as_bytes()), None, "{text}");
        }
    }
}
