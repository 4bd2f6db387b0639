//! `bench.….info`: what a bench ran on.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::assignments::{Assignment, AssignmentError, Assignments, Dialect};
use crate::time::PrintedTime;
use crate::uname::Uname;

/// What a bench's script wrote down about a group of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BenchInfo {
    /// Which of the two forms the file has.
    pub form: InfoForm,
    /// The image of the system that was installed: a name, in the old form a path.
    pub image: Option<String>,
    /// The configuration set: a name, in the old form a path.
    pub configuration: Option<String>,
    /// The configuration of the traffic.
    pub pktgen: Option<String>,
    /// The system, as `uname -a` prints it; `None` where it could not be asked.
    pub uname: Option<Uname>,
    /// When the runs began.
    pub start: Option<PrintedTime>,
    /// When they ended.
    pub end: Option<PrintedTime>,
    /// Variables of other names, and a system that `uname` does not print so.
    pub others: Vec<Assignment>,
}

/// How an `.info` is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InfoForm {
    /// `IMAGE="" CFG="" PKTGEN="" UNAME=""`: the archive's scripts let a shell read it.
    #[default]
    Variables,
    /// `Image: …`, `CFG: …`, the system, `Start time: …`, `End time: …`: until 2016.
    Lines,
}

/// Why a text is no `.info`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InfoError {
    /// There is nothing in it.
    #[error("no line at all; give the .info of a bench")]
    Empty,
    /// A line is no plain assignment.
    #[error(transparent)]
    Assignment(#[from] AssignmentError),
    /// A line is none of those of the old form.
    #[error("line {line}: neither a variable, nor a system, nor an entry of an .info")]
    Unknown {
        /// The line, from 1.
        line: usize,
    },
    /// Something is said again.
    #[error("line {line}: {name} is said before; leave one of them")]
    Again {
        /// The line, from 1.
        line: usize,
        /// What it is about.
        name: &'static str,
    },
}

impl BenchInfo {
    /// Reads a file of either form, and never runs it.
    ///
    /// Shape: the bytes of the file; the newline in the end may be missing.
    ///
    /// # Errors
    /// [`InfoError`] for whatever the archive's scripts do not write.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::BenchInfo;
    /// let info = BenchInfo::parse(
    ///     b"IMAGE=\"\"\nCFG=\"off\"\nPKTGEN=\"inet4\"\n\
    ///       UNAME=\"FreeBSD hp 12.0-CURRENT FreeBSD 12.0-CURRENT r335286M  amd64\"",
    /// )?;
    /// assert_eq!((info.image.as_deref(), info.configuration.as_deref()), (None, Some("off")));
    /// let revision = info.uname.and_then(|uname| uname.revision);
    /// assert_eq!(revision.and_then(|revision| revision.number), Some(335_286));
    /// # Ok::<(), fwdlab_netbenches::InfoError>(())
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, InfoError> {
        let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines
            .find(|line| !line.is_empty() && !line.starts_with(b"#"))
            .ok_or(InfoError::Empty)?;
        let name_end = first
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        match name_end.map(|end| first[end]) {
            Some(b'=') => Self::of_variables(text),
            _ => Self::of_lines(text),
        }
    }

    fn of_variables(text: &[u8]) -> Result<Self, InfoError> {
        let mut info = Self::default();
        for assignment in Assignments::plain(text, Dialect::Shell)? {
            let value = &assignment.value;
            match assignment.name.as_str() {
                "IMAGE" => info.image = named(value),
                "CFG" => info.configuration = named(value),
                "PKTGEN" => info.pktgen = named(value),
                "UNAME" if value.is_empty() => {}
                "UNAME" => match Uname::parse(value) {
                    Some(uname) => info.uname = Some(uname),
                    None => info.others.push(assignment),
                },
                _ => info.others.push(assignment),
            }
        }
        Ok(info)
    }

    fn of_lines(text: &[u8]) -> Result<Self, InfoError> {
        let mut info = Self {
            form: InfoForm::Lines,
            ..Self::default()
        };
        let mut seen = [None; 5];
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let text = String::from_utf8_lossy(line);
            let (line, text) = (index + 1, text.trim());
            if text.is_empty() {
                continue;
            }
            let entry = |name: &str| text.strip_prefix(name).map(str::trim);
            let (place, name) = if let Some(image) = entry("Image:") {
                info.image = named(image);
                (0, "the image")
            } else if let Some(configuration) = entry("CFG:") {
                info.configuration = named(configuration);
                (1, "the configuration")
            } else if let Some(time) = entry("Start time:") {
                info.start = PrintedTime::parse(time);
                (2, "the start")
            } else if let Some(time) = entry("End time:") {
                info.end = PrintedTime::parse(time);
                (3, "the end")
            } else if let Some(uname) = Uname::parse(text) {
                info.uname = Some(uname);
                (4, "the system")
            } else {
                return Err(InfoError::Unknown { line });
            };
            if seen[place].replace(line).is_some() {
                return Err(InfoError::Again { line, name });
            }
        }
        Ok(info)
    }

    /// The name of the configuration set: the last part of its path.
    #[must_use]
    pub fn configuration_name(&self) -> Option<&str> {
        let path = self.configuration.as_deref()?;
        path.rsplit('/').find(|part| !part.is_empty())
    }

    /// When the runs were made, or where only that is known, when their kernel was built.
    #[must_use]
    pub fn year(&self) -> Option<i16> {
        let started = self.start.as_ref().and_then(|start| start.epoch_s);
        let second = started.or_else(|| self.uname.as_ref()?.built_s())?;
        let time = Timestamp::from_second(second).ok()?;
        Some(time.to_zoned(TimeZone::UTC).year())
    }
}

/// A name, unless it says that there is none.
fn named(text: &str) -> Option<String> {
    (!text.is_empty() && text != "none").then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINES: &str = "\
Image: /home/benchs/images.2015//BSDRP-280829-upgrade-amd64-serial.img.xz
CFG: fastforwarding-pf-ipfw/configs//ipfw-statefull
FreeBSD hp 11.0-CURRENT FreeBSD 11.0-CURRENT #0 r280829: Mon Jan 25 19:51:14 CET 2016     root@lame4:/usr/obj/amd64  amd64
Start time: January 29, 2016 at 08:25:47 PM CET
End time: January 29, 2016 at 08:52:57 PM CET
";

    fn refusal(text: &str) -> String {
        BenchInfo::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn the_old_form_has_times_and_paths() {
        let info = BenchInfo::parse(LINES.as_bytes()).unwrap();
        assert_eq!(info.form, InfoForm::Lines);
        assert_eq!(info.configuration_name(), Some("ipfw-statefull"));
        assert_eq!(info.pktgen, None);
        assert_eq!(info.uname.as_ref().unwrap().host, "hp");
        let seconds = |time: &Option<PrintedTime>| time.as_ref().unwrap().epoch_s.unwrap();
        assert_eq!(seconds(&info.end) - seconds(&info.start), 27 * 60 + 10);
        // Interrupted, and on a machine that did not answer.
        let short = BenchInfo::parse(b"Image: none\r\nCFG: \r\nStart time: soon\r\n").unwrap();
        assert_eq!(
            (short.image, short.configuration, short.end),
            (None, None, None)
        );
        assert_eq!(
            short.start.map(|start| (start.text, start.epoch_s)),
            Some(("soon".to_owned(), None))
        );
    }

    #[test]
    fn the_form_with_variables_may_stand_in_one_line() {
        let info = BenchInfo::parse(b"IMAGE=\"309881\" CFG=\"off\" PKTGEN=\"\" UNAME=\"?\" NODE=x")
            .unwrap();
        assert_eq!(info.form, InfoForm::Variables);
        assert_eq!(
            (info.image.as_deref(), info.configuration_name()),
            (Some("309881"), Some("off"))
        );
        assert_eq!((info.pktgen, info.uname), (None, None));
        let others: Vec<_> = info
            .others
            .iter()
            .map(|other| other.name.as_str())
            .collect();
        assert_eq!(others, ["UNAME", "NODE"]);
    }

    #[test]
    fn what_a_shell_would_run_is_refused_with_its_line() {
        let command = "a command stands in the value, and nothing here is run; give plain text";
        let other = "no plain assignment; give one like NAME=\"value\"";
        for (text, message) in [
            (
                "IMAGE=\"\"\nCFG=\"$(touch x)\"",
                format!("line 2: {command}"),
            ),
            ("IMAGE=`touch x`", format!("line 1: {command}")),
            ("IMAGE=\"\"; touch x", format!("line 1: {other}")),
            ("IMAGE=\"\"\ntouch x\n", format!("line 2: {other}")),
            ("IMAGE=\"\" touch x\n", format!("line 1: {other}")),
            (
                "touch x",
                "line 1: neither a variable, nor a system, nor an entry of an .info".to_owned(),
            ),
            (
                "Image: x\n\nImage: y",
                "line 3: the image is said before; leave one of them".to_owned(),
            ),
            (
                "\n#\n",
                "no line at all; give the .info of a bench".to_owned(),
            ),
        ] {
            assert_eq!(refusal(text), message, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, start: bool) {
            let text = if start { [b"Start time: ".as_slice(), &bytes].concat() } else { bytes };
            let _ = BenchInfo::parse(&text);
        }

        #[test]
        fn written_values_are_read_back(image in "[^\"\\\\$`]*", configuration in "[^\"\\\\$`]*") {
            let text = format!("IMAGE=\"{image}\"\nCFG=\"{configuration}\"");
            let info = BenchInfo::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(info.image, named(&image));
            prop_assert_eq!(info.configuration, named(&configuration));
        }
    }
}
