//! What goes to the terminal, and how it looks there.

use std::env;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fwdlab_archive::ArchiveError;
use fwdlab_report::inert;

use crate::exit::{Code, DONE, WrongArguments};

/// Prints a text to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<Code> {
    unless_nobody_reads(write(text).map(|()| DONE))
}

/// Prints what programs read. Where they do, it stays as it is.
pub(crate) fn data(text: &str) -> anyhow::Result<Code> {
    if stdout_is_terminal() {
        return print(text);
    }
    unless_nobody_reads(write_out(text).map(|()| DONE))
}

/// Prints a line to standard output; whether anybody still reads there.
pub(crate) fn line(text: &str) -> anyhow::Result<bool> {
    match write(&format!("{text}\n")) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        result => Ok(result.map(|()| true)?),
    }
}

/// Names in it may be of files and hosts of others, and must not act on the terminal.
fn write(text: &str) -> io::Result<()> {
    write_out(&inert(text, stdout_takes_colour()))
}

fn write_out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Refuses to write where one of the inputs is.
pub(crate) fn refuse_input(
    option: &str,
    path: &Path,
    inputs: &[impl AsRef<Path>],
) -> Result<(), WrongArguments> {
    let identity = |path: &Path| {
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some((metadata.dev(), metadata.ino()))
    };
    let output = identity(path);
    let mut inputs = inputs.iter();
    if output.is_some() && inputs.any(|input| identity(input.as_ref()) == output) {
        let text = format!(
            "{option}: {} is one of the inputs; name another file",
            path.display()
        );
        return Err(WrongArguments(text));
    }
    Ok(())
}

/// Writes or replaces, as a whole, a file that was asked for by an option; what is no file, as a pipe, is
/// written into.
pub(crate) fn write_file(option: &str, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fwdlab_sys::durable::write_file(path, bytes).map_err(|error| {
        let why = ArchiveError::from(error);
        WrongArguments(format!("{option}: {why}")).into()
    })
}

/// A reader that has seen enough (`fwdlab … | head`) is no error.
pub(crate) fn unless_nobody_reads(result: io::Result<Code>) -> anyhow::Result<Code> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(DONE),
        result => Ok(result?),
    }
}

/// Tells the user something that is not the result.
pub(crate) fn tell(text: &str) {
    let text = inert(text, stderr_takes_colour());
    // Nobody is left to be told that standard error is closed.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Columns of the terminal at standard output; where there is none those that `COLUMNS` asks for, else 80.
pub(crate) fn terminal_columns() -> usize {
    let terminal = console::Term::stdout().size_checked();
    let asked = || env::var("COLUMNS").ok()?.trim().parse().ok();
    let columns = terminal.map(|(_, columns)| columns).or_else(asked);
    columns
        .filter(|columns: &u16| *columns > 0)
        .map_or(80, usize::from)
}

/// Whether somebody reads standard output as it is written.
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether lines at standard output can be drawn again: it is a terminal that moves its cursor.
pub(crate) fn stdout_moves() -> bool {
    io::stdout().is_terminal() && terminal_moves()
}

/// Whether lines at standard error can be drawn again.
pub(crate) fn stderr_moves() -> bool {
    io::stderr().is_terminal() && terminal_moves()
}

fn terminal_moves() -> bool {
    env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Whether standard output takes colours: a terminal, and the user does not mind.
pub(crate) fn stdout_takes_colour() -> bool {
    io::stdout().is_terminal() && user_takes_colour()
}

/// Whether standard error takes colours.
pub(crate) fn stderr_takes_colour() -> bool {
    io::stderr().is_terminal() && user_takes_colour()
}

/// See <https://no-color.org>.
fn user_takes_colour() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && terminal_moves()
}
