//! Other programs: argument vectors that no shell sees, bounded in time.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_sys::{Bounded, Descendants};

use crate::LabError;

/// How much a program may print: more than the routes of the whole Internet.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;
/// How long a program may run.
const TIME_MAX: Duration = Duration::from_secs(30);

/// What becomes of a program whose starter is killed.
#[derive(Clone, Copy)]
enum Orphan<'a> {
    /// It ends by itself. Such a program is started without a fork of this whole process, and a ruleset
    /// is switched by one under load.
    Ends,
    /// The kernel ends it too.
    IsEnded,
    /// The kernel ends it too, and whoever restores ends these.
    EndsWith(&'a Descendants),
    /// The kernel ends it too; what it has started is one of these, which outlast it.
    Among(&'a Descendants),
}

/// Runs a short program in the calling thread's namespace, with a text on its standard input, and
/// tells what it printed.
///
/// # Errors
/// `Command` where it cannot be started, takes too long or does not succeed.
pub(crate) fn run(arguments: &[impl AsRef<str>], input: &str) -> Result<String, LabError> {
    run_within(TIME_MAX, arguments, input, Orphan::Ends)
}

/// Runs a program as [`run`] does, without input; the kernel ends it if this process is killed, and what it started ends
/// with it where it takes too long.
///
/// # Errors
/// As of [`run`].
pub(crate) fn run_bound(arguments: &[impl AsRef<str>]) -> Result<String, LabError> {
    run_within(TIME_MAX, arguments, "", Orphan::IsEnded)
}

/// The same as the first of some descendants, which stay when it has ended.
///
/// # Errors
/// As of [`run`].
pub(crate) fn run_first_of(
    descendants: &Descendants,
    arguments: &[impl AsRef<str>],
) -> Result<String, LabError> {
    run_within(TIME_MAX, arguments, "", Orphan::EndsWith(descendants))
}

/// What a program that ended in time left behind.
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    /// Its last lines of complaint.
    pub(crate) stderr: String,
}

impl Output {
    /// What a command that has succeeded printed.
    ///
    /// # Errors
    /// `Command` where it has failed.
    pub(crate) fn succeeded(self, arguments: &[impl AsRef<str>]) -> Result<Self, LabError> {
        if self.status.success() {
            return Ok(self);
        }
        Err(LabError::Command {
            command: command_line(arguments),
            status: self.status.to_string(),
            stderr: self.stderr,
        })
    }
}

/// Runs a program for at most a time, whatever it exits with; the kernel ends it if this process is killed.
///
/// # Errors
/// `Command` where it cannot be started or takes longer.
pub(crate) fn run_for(
    time_max: Duration,
    arguments: &[impl AsRef<OsStr>],
    input: &str,
) -> Result<Output, LabError> {
    output_within(time_max, arguments, input, Orphan::IsEnded, &mut || true)
}

/// The same without input, as one of some descendants, which stay when it has ended.
///
/// # Errors
/// As of [`run_for`].
pub(crate) fn run_among(
    descendants: &Descendants,
    time_max: Duration,
    arguments: &[impl AsRef<OsStr>],
) -> Result<Output, LabError> {
    output_within(
        time_max,
        arguments,
        "",
        Orphan::Among(descendants),
        &mut || true,
    )
}

/// The same without input, for as long as its answer is wanted.
///
/// # Errors
/// As of [`run_for`], and where its answer was no longer wanted.
pub(crate) fn run_while(
    time_max: Duration,
    arguments: &[impl AsRef<OsStr>],
    is_wanted: &mut dyn FnMut() -> bool,
) -> Result<Output, LabError> {
    output_within(time_max, arguments, "", Orphan::IsEnded, is_wanted)
}

fn run_within(
    time_max: Duration,
    arguments: &[impl AsRef<str>],
    input: &str,
    orphan: Orphan<'_>,
) -> Result<String, LabError> {
    let words: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let output = output_within(time_max, &words, input, orphan, &mut || true)?;
    Ok(output.succeeded(arguments)?.stdout)
}

fn output_within(
    time_max: Duration,
    arguments: &[impl AsRef<OsStr>],
    input: &str,
    orphan: Orphan<'_>,
    is_wanted: &mut dyn FnMut() -> bool,
) -> Result<Output, LabError> {
    let failed = |status: String, stderr: String| {
        let words = arguments
            .iter()
            .map(|word| word.as_ref().to_string_lossy().into_owned());
        LabError::Command {
            command: command_line(&words.collect::<Vec<_>>()),
            status,
            stderr,
        }
    };
    let cannot_start =
        |error: io::Error| failed(format!("cannot be started: {error}"), String::new());
    let (program, rest) = arguments
        .split_first()
        .ok_or_else(|| cannot_start(io::ErrorKind::InvalidInput.into()))?;
    let mut stdin = fwdlab_sys::memory_file()?;
    let mut stdout = fwdlab_sys::memory_file()?;
    let mut stderr = fwdlab_sys::memory_file()?;
    stdin
        .write_all(input.as_bytes())
        .and_then(|()| stdin.rewind())
        .map_err(cannot_start)?;
    let mut command = Command::new(program.as_ref());
    command
        .args(rest.iter().map(AsRef::as_ref))
        .stdin(stdin)
        .stdout(stdout.try_clone().map_err(cannot_start)?)
        .stderr(stderr.try_clone().map_err(cannot_start)?);
    // A Ctrl-C at the terminal is for this process alone.
    command.process_group(0);
    if let Orphan::EndsWith(descendants) | Orphan::Among(descendants) = orphan {
        descendants.begin_with(&mut command);
    }
    if !matches!(orphan, Orphan::Ends) {
        fwdlab_sys::bind_to_this_thread(&mut command);
    }
    let mut child = command.spawn().map_err(cannot_start)?;
    let excess = match wait_within(time_max, &mut child, [&stdout, &stderr], is_wanted) {
        Ok(Waited::Ended(status)) if is_within(&[&stdout, &stderr]) => {
            return Ok(Output {
                status,
                stdout: text(&mut stdout),
                stderr: last_lines(&text(&mut stderr)),
            });
        }
        Ok(Waited::Ended(_)) => too_much(),
        Ok(Waited::Exceeds(what)) => {
            let ending = fwdlab_sys::kill_process_group(child.id());
            let _ = child.wait();
            ending?;
            if let Orphan::EndsWith(descendants) = orphan {
                descendants.end()?;
            }
            what
        }
        Err(error) => error.to_string(),
    };
    Err(failed(excess, last_lines(&text(&mut stderr))))
}

/// What a child has come to.
enum Waited {
    Ended(ExitStatus),
    /// It has to be ended, which this says, with what to do.
    Exceeds(String),
}

/// Waits until a child has ended, or exceeds what it may take or print.
fn wait_within(
    time_max: Duration,
    child: &mut Child,
    printed: [&File; 2],
    is_wanted: &mut dyn FnMut() -> bool,
) -> io::Result<Waited> {
    // A ruleset is switched by such a program under load: its end is to be seen at once.
    const PAUSE_MAX: Duration = Duration::from_micros(500);
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Waited::Ended(status));
        }
        if !is_within(&printed) {
            return Ok(Waited::Exceeds(too_much()));
        }
        if !is_wanted() {
            let why = "it was ended, because its answer was no longer wanted";
            return Ok(Waited::Exceeds(why.to_owned()));
        }
        if start.elapsed() > time_max {
            return Ok(Waited::Exceeds(format!(
                "it took longer than {} s and was ended; start what is to go on in the background, with its output elsewhere",
                time_max.as_secs()
            )));
        }
        sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Whether what a program printed is no more than it may.
fn is_within(printed: &[&File]) -> bool {
    let bytes = |file: &&File| file.metadata().map_or(0, |file| file.len());
    printed.iter().map(bytes).sum::<u64>() <= OUTPUT_BYTES_MAX
}

fn too_much() -> String {
    format!(
        "it printed more than {} MiB; see what is installed under that name",
        OUTPUT_BYTES_MAX >> 20
    )
}

/// What a program prints, read while it runs, up to what it may print.
pub(crate) fn bounded<R: Read>(output: R) -> BufReader<Bounded<R>> {
    BufReader::new(Bounded::new(output, OUTPUT_BYTES_MAX))
}

/// Why that could not be read to its end.
pub(crate) fn unread(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::FileTooLarge => too_much(),
        _ => error.to_string(),
    }
}

/// What was written to a file in memory, as far as it is taken; nothing where that cannot be told.
fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
    read.map_or_else(|_| String::new(), |_| lossy(bytes))
}

/// The bytes as text, copied only where they are none.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The arguments for a reader; those that could be misread stand in quotes.
pub(crate) fn command_line(arguments: &[impl AsRef<str>]) -> String {
    let is_plain = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_alphanumeric() || "-_./=:,+@%{}".contains(c))
    };
    let shown = arguments.iter().map(|argument| {
        let argument = argument.as_ref();
        if is_plain(argument) {
            argument.to_owned()
        } else {
            format!("{argument:?}")
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The end of what a program complains of: it may print as much as it likes.
pub(crate) fn last_lines(text: &str) -> String {
    const LINES_MAX: usize = 20;
    const BYTES_MAX: usize = 4000;
    let lines: Vec<_> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES_MAX)..].join("\n");
    match last.len().checked_sub(BYTES_MAX) {
        None | Some(0) => last,
        Some(behind) => format!("…{}", &last[last.ceil_char_boundary(behind)..]),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn of_a_long_complaint_the_end_is_kept() {
        assert_eq!(last_lines("a\nb\n"), "a\nb");
        let long = format!("{}ü{}", "x".repeat(10_000), "y".repeat(3_999));
        assert_eq!(last_lines(&long), format!("…{}", "y".repeat(3_999)));
    }

    #[test]
    fn a_program_gets_its_input_and_its_output_is_told() {
        assert_eq!(run(&["cat"], "level 1\n").unwrap(), "level 1\n");
    }

    #[test]
    fn a_program_that_fails_is_told_with_its_complaint() {
        let error = run(&["ls", "/no such folder"], "").unwrap_err().to_string();
        assert!(
            error.starts_with("command `ls \"/no such folder\"` failed (exit status: 2): "),
            "{error}"
        );
        assert!(error.contains("No such file"), "{error}");
        let error = run(&["no-such-program"], "").unwrap_err().to_string();
        assert!(error.contains("cannot be started: No such file"), "{error}");
        assert!(run(&[] as &[&str], "").is_err());
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_all_it_started() {
        let script = "sleep 3600 & echo waiting >&2; wait";
        let error = run_within(
            Duration::from_millis(200),
            &["sh", "-c", script],
            "",
            Orphan::IsEnded,
        )
        .unwrap_err()
        .to_string();
        assert!(
            error.contains("took longer than 0 s and was ended"),
            "{error}"
        );
        assert!(error.ends_with("waiting"), "{error}");
    }

    #[test]
    fn a_program_is_ended_when_its_answer_is_no_longer_wanted() {
        let mut looks = 0;
        let mut is_wanted = || {
            looks += 1;
            looks < 3
        };
        let outcome = run_while(TIME_MAX, &["sleep", "3600"], &mut is_wanted);
        let error = outcome.err().unwrap().to_string();
        assert!(error.contains("no longer wanted"), "{error}");
        let output = run_while(TIME_MAX, &["true"], &mut || true).unwrap();
        assert!(output.status.success());
    }

    #[test]
    fn a_program_that_prints_without_end_is_ended() {
        for script in ["exec cat /dev/zero", "exec cat /dev/zero >&2"] {
            let error = run(&["sh", "-c", script], "").unwrap_err().to_string();
            let start = error.chars().take(200).collect::<String>();
            assert!(error.contains("printed more than 256 MiB"), "{start}");
            assert!(error.len() < 10_000, "{start}");
        }
    }

    #[test]
    fn what_is_read_while_a_program_runs_has_an_end() {
        let error = io::copy(&mut bounded(io::repeat(b'a')), &mut io::sink()).unwrap_err();
        assert!(unread(&error).contains("more than 256 MiB"), "{error}");
    }

    #[test]
    fn what_a_program_leaves_running_holds_nobody_up() {
        let output = run(&["sh", "-c", "sleep 5 & echo $!"], "").unwrap();
        let pid: u32 = output.trim().parse().unwrap();
        assert!(Path::new(&format!("/proc/{pid}")).exists());
        testkit::signal(pid, "-TERM");
    }

    #[test]
    fn complaints_are_cut_to_their_end() {
        let text: String = (0..30).map(|line| format!("{line}\n")).collect();
        assert!(last_lines(&text).starts_with("10\n"));
        assert!(last_lines(&text).ends_with("29"));
    }
}
