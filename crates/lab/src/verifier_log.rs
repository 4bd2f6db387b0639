//! What a kernel's verifier said of a program that it refused: its last lines go into a message, all of it into a file in the folder of
//! the journals.

use std::fs;
use std::io;

use fwdlab_model::sha256;
use fwdlab_sys::durable::write_atomically;

use crate::journal::state_directory;

/// The message with the file that has all lines, where it can be written.
pub(crate) fn kept(message: String, log: &str) -> String {
    let Ok(folder) = state_directory() else {
        return message;
    };
    // What two programs are refused for is not the same file.
    let file = folder.join(format!("verifier-{}.log", &sha256(log.as_bytes())[..8]));
    let write = || {
        fs::create_dir_all(&folder)?;
        write_atomically(&file, log.as_bytes()).map_err(io::Error::other)
    };
    match write() {
        Ok(()) => format!("{message}\n    (all of it: {})", file.display()),
        Err(_) => message,
    }
}
