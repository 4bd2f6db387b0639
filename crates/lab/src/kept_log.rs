//! What a program or the kernel said that is too long for a message: its last lines go there, all of it into a file in the folder of
//! the journals.

use std::fs;
use std::io;
use std::path::PathBuf;

use fwdlab_model::sha256;
use fwdlab_sys::durable::write_private;

use crate::journal::state_directory;

/// The message with the file of that name that has all lines, where it can be written.
pub(crate) fn kept(message: String, name: &str, log: &str) -> String {
    match keep(name, log) {
        Some(file) => format!("{message}\n    (all of it: {})", file.display()),
        None => message,
    }
}

/// Writes the file, where it can be written.
pub(crate) fn keep(name: &str, log: &str) -> Option<PathBuf> {
    let folder = state_directory().ok()?;
    let file = folder.join(name);
    let write = || {
        fs::create_dir_all(&folder)?;
        // Programs print secrets, as what is in their environment.
        write_private(&file, log.as_bytes()).map_err(io::Error::other)
    };
    write().ok().map(|()| file)
}

/// The name of what the verifier said of a program: what two are refused for is not the same file.
pub(crate) fn of_verifier(log: &str) -> String {
    format!("verifier-{}.log", &sha256(log.as_bytes())[..8])
}
