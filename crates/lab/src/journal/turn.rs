//! Turns at a journal: runs that share one write to it one after the other.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{
    Change, ChangeId, Line, boot, damaged, failed, leave_the_living, open_changes, text_of,
};
use crate::LabError;

/// How long a run waits for its turn at a journal.
const TURN_MAX: Duration = Duration::from_secs(120);

/// A process's turn at a journal: nobody else reads or writes it until the value goes.
#[derive(Debug)]
pub(crate) struct Turn {
    path: PathBuf,
    file: File,
}

impl Turn {
    /// Waits for a turn, and cuts a torn last line.
    pub(crate) fn wait(path: &Path) -> Result<Self, LabError> {
        let failed = |source| failed("opening", path)(source);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            // Files of hosts stand in it, which may hold keys.
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) if start.elapsed() > TURN_MAX => {
                    return Err(LabError::JournalTaken {
                        path: path.to_owned(),
                        seconds: TURN_MAX.as_secs(),
                    });
                }
                Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(5)),
            }
        }
        let mut turn = Self {
            path: path.to_owned(),
            file,
        };
        turn.cut_torn_line()?;
        Ok(turn)
    }

    fn cut_torn_line(&mut self) -> Result<(), LabError> {
        let mut last = [b'\n'];
        let looked = self
            .file
            .seek(SeekFrom::End(-1))
            .and_then(|_| self.file.read_exact(&mut last));
        // An empty file has no last byte to look at.
        if looked.is_err() || last == *b"\n" {
            return Ok(());
        }
        let text = self.text()?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.file
            .set_len(whole as u64)
            .and_then(|()| self.file.sync_all())
            .map_err(failed("cutting the torn line of", &self.path))
    }

    fn text(&mut self) -> Result<String, LabError> {
        let mut bytes = Vec::new();
        self.file
            .rewind()
            .and_then(|()| self.file.read_to_end(&mut bytes))
            .map_err(failed("reading", &self.path))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn open_changes(&mut self) -> Result<Vec<Change>, LabError> {
        let text = self.text()?;
        open_changes(&text).map_err(damaged(&self.path))
    }

    /// Changes of processes that are gone, the latest first.
    pub(crate) fn left_changes(&mut self) -> Result<Vec<Change>, LabError> {
        let mut changes = self.open_changes()?;
        leave_the_living(&mut changes, &boot()?);
        Ok(changes)
    }

    /// Writes down that changes are undone. A journal in which nothing is open is started afresh.
    pub(crate) fn close(
        &mut self,
        done: impl IntoIterator<Item = ChangeId>,
    ) -> Result<(), LabError> {
        let lines: Vec<_> = done.into_iter().map(|id| Line::Undone { id }).collect();
        self.append(&lines)?;
        if self.open_changes()?.is_empty() {
            self.file
                .set_len(0)
                .and_then(|()| self.file.sync_all())
                .map_err(failed("emptying", &self.path))?;
        }
        Ok(())
    }

    /// Appends lines; they are durable when this returns.
    pub(super) fn append(&mut self, lines: &[Line]) -> Result<(), LabError> {
        self.file
            .write_all(text_of(lines).as_bytes())
            .and_then(|()| self.file.sync_all())
            .map_err(failed("appending to", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::removal;
    use super::*;

    #[test]
    fn a_torn_line_is_cut_before_the_next_one_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dut.jsonl");
        fs::write(&path, text_of(&[Line::Change(removal(1))]) + "{\"reco").unwrap();
        Turn::wait(&path)
            .unwrap()
            .append(&[Line::Change(removal(2))])
            .unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(open_changes(&written).unwrap(), [removal(1), removal(2)]);
        fs::write(&path, "torn from the start").unwrap();
        Turn::wait(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }
}
