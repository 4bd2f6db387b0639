//! The machine as something that one run at a time has to itself.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::LabError;

const LOCK: &str = "/run/fwdlab.lock";

/// The right to load this machine, until the value or its process goes.
///
/// Two runs at once would measure each other.
#[derive(Debug)]
pub struct MachineClaim {
    // The lock goes with the descriptor.
    _file: File,
}

impl MachineClaim {
    /// Claims the machine for this process.
    ///
    /// # Errors
    /// `MachineTaken` where another process has it.
    pub fn acquire() -> Result<Self, LabError> {
        Self::acquire_at(Path::new(LOCK))
    }

    fn acquire_at(path: &Path) -> Result<Self, LabError> {
        let failed = |source| LabError::File {
            what: "locking",
            path: PathBuf::from(path),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // Whoever holds it may not have written its number yet.
                let _ = file.read_to_string(&mut pid);
                return Err(LabError::MachineTaken {
                    pid: pid.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(failed)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_claim_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let claim = MachineClaim::acquire_at(&path).unwrap();
        let refused = MachineClaim::acquire_at(&path).unwrap_err();
        let pid = std::process::id();
        assert!(matches!(refused, LabError::MachineTaken { pid: Some(seen) } if seen == pid));
        assert!(refused.to_string().contains(&pid.to_string()));
        drop(claim);
        MachineClaim::acquire_at(&path).unwrap();
    }
}
