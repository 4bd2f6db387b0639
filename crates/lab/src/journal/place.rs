//! Where journals are, what they are called, and whose they are.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::LabError;

/// The folder of the journals: `$XDG_STATE_HOME/fwdlab`; without that `/var/lib/fwdlab` for root, and
/// `~/.local/state/fwdlab` for everybody else.
///
/// # Errors
/// When a user who is not root has no home.
pub fn state_directory() -> Result<PathBuf, LabError> {
    state_directory_of(
        fwdlab_sys::is_root(),
        env::var_os("XDG_STATE_HOME"),
        env::var_os("HOME"),
    )
    .ok_or(LabError::NoStateDirectory)
}

fn state_directory_of(
    is_root: bool,
    xdg_state_home: Option<OsString>,
    home: Option<OsString>,
) -> Option<PathBuf> {
    // The XDG specification has relative paths ignored.
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    if let Some(directory) = xdg_state_home.and_then(absolute) {
        return Some(directory.join("fwdlab"));
    }
    if is_root {
        return Some("/var/lib/fwdlab".into());
    }
    Some(home.and_then(absolute)?.join(".local/state/fwdlab"))
}

/// What the names of hosts' journals begin with.
pub(crate) const HOST_JOURNAL: &str = "host-";

/// The name of a host's journal: the host's own as far as that is harmless, and its hash.
pub(crate) fn host_journal(host: &str) -> String {
    let harmless = |character: char| {
        if character.is_ascii_alphanumeric() || character == '-' {
            character
        } else {
            '_'
        }
    };
    let name: String = host.chars().take(40).map(harmless).collect();
    let hash = fwdlab_model::sha256(host.as_bytes());
    format!("{HOST_JOURNAL}{name}-{}", &hash[..8])
}

/// The name of the journal of what a host has booted. It is read behind the other: what booting takes back is
/// undone before.
pub(crate) fn boot_journal(host: &str) -> String {
    format!("{}.reboot", host_journal(host))
}

/// Who changes hosts from here: this machine's name, and what tells it and the folder of its journals from others.
pub(crate) fn controller(state_directory: &Path) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let name: String = read("/proc/sys/kernel/hostname")
        .trim()
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || *character == '-')
        .take(40)
        .collect();
    let machine = read("/etc/machine-id");
    let hash = fwdlab_model::sha256(format!("{machine} {}", state_directory.display()).as_bytes());
    format!("{name}.{}", &hash[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_where_the_user_keeps_state() {
        let directory = |is_root, xdg: Option<&str>, home: Option<&str>| {
            state_directory_of(is_root, xdg.map(Into::into), home.map(Into::into))
        };
        assert_eq!(directory(true, Some("/s"), None), Some("/s/fwdlab".into()));
        assert_eq!(
            directory(true, Some("relative"), Some("/root")),
            Some("/var/lib/fwdlab".into())
        );
        assert_eq!(
            directory(false, None, Some("/home/a")),
            Some("/home/a/.local/state/fwdlab".into())
        );
        assert_eq!(directory(false, Some(""), None), None);
    }

    #[test]
    fn two_folders_of_journals_are_two_controllers() {
        let of = |folder: &str| controller(Path::new(folder));
        assert_eq!(of("/a"), of("/a"));
        assert_ne!(of("/a"), of("/b"));
        assert_eq!(of("/a").matches('.').count(), 1, "{}", of("/a"));
    }
}
