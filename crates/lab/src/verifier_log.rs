//! What a kernel's verifier said of a program that it refused: its last lines go into a message, all of it into a file.

use std::fs;
use std::io;

use fwdlab_sys::durable::write_atomically;

use crate::journal::state_directory;

/// The file, in the folder of the journals: the last one is the one that is looked for.
const FILE: &str = "verifier.log";

/// The message with the file that has all lines, where it can be written.
pub(crate) fn kept(message: String, log: &str) -> String {
    let Ok(folder) = state_directory() else {
        return message;
    };
    let file = folder.join(FILE);
    let write = || {
        fs::create_dir_all(&folder)?;
        write_atomically(&file, log.as_bytes()).map_err(io::Error::other)
    };
    match write() {
        Ok(()) => format!("{message}\n    (all of it: {})", file.display()),
        Err(_) => message,
    }
}
