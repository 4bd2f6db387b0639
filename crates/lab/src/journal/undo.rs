//! What takes a change back, as plain data, and what whoever can carry it out has to do.

use std::fmt;
use std::path::{Path, PathBuf};

use fwdlab_sys::Descendants;
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::program::command_line;

/// A program that does nothing, where all that has to be done is to end what was started.
pub(crate) const NOTHING: [&str; 1] = ["true"];

/// How a host is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// What ssh is told.
    pub host: String,
    /// The file for `ssh -F`; the user's own without.
    #[serde(
        rename = "ssh_config",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub config: Option<PathBuf>,
}

/// What takes a change back. Doing it twice has to be the same as doing it once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Undo {
    /// Removes a network namespace of fwdlab's, with all that is in it.
    RemoveNamespace {
        /// Its name.
        name: String,
    },
    /// Runs a program.
    Run {
        /// The network namespace to run it in; an empty one where that is gone, so that it never
        /// touches another's network.
        namespace: String,
        /// Program and arguments.
        arguments: Vec<String>,
        /// What the program that made the change has started, and is ended before. Older journals do not know it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started: Option<Started>,
    },
    /// Writes a sysctl of this machine.
    WriteSysctl {
        /// Path under `/proc/sys`.
        setting: String,
        /// What it was.
        value: String,
    },
    /// Runs a program on a host that is reached by ssh.
    OnHost {
        /// The host.
        #[serde(flatten)]
        at: Destination,
        /// Program and arguments.
        arguments: Vec<String>,
        /// What it reads on its standard input.
        input: String,
    },
    /// Boots a host that is reached by ssh. Older journals have a word for each system.
    #[serde(
        alias = "reboot",
        alias = "reboot-freebsd",
        alias = "reboot-from-slice"
    )]
    Boot(BootUntil),
}

/// A boot of a host, unless it has booted into that already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootUntil {
    /// The host.
    #[serde(flatten)]
    pub at: Destination,
    /// What it is to have booted into.
    #[serde(flatten)]
    pub until: Until,
    /// How long it may take, in seconds.
    pub time_s_max: u64,
}

/// What a host is to have booted into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Until {
    /// A kernel of Linux, as it boots by itself.
    Kernel {
        /// Its release.
        kernel: String,
        /// Its command line, without the kernel's own path.
        command_line: Vec<String>,
    },
    /// FreeBSD as it boots by itself: the boot in which it was found, or any other, now that its files are the owner's.
    Itself {
        /// When the boot began in which it was found, in seconds since 1970.
        boot_time_s: i64,
    },
    /// FreeBSD with its root on a slice of its disk.
    Slice {
        /// The slice, as the host names it.
        slice: String,
    },
}

/// How to find what a program has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The mark of the descendants.
    mark: String,
    /// The folder of their control group, where they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<PathBuf>,
}

impl Started {
    /// Those descendants, for the journal.
    pub(crate) fn of(descendants: &Descendants) -> Self {
        Self {
            mark: descendants.mark().to_owned(),
            group: descendants.group().map(Path::to_owned),
        }
    }

    /// Those that were written down.
    pub(crate) fn descendants(&self) -> Descendants {
        Descendants::written_down(&self.mark, self.group.as_deref())
    }
}

impl Undo {
    /// The same on a host that is reached in another way.
    pub(crate) fn at(mut self, destination: &Destination) -> Self {
        if let Self::OnHost { at, .. } | Self::Boot(BootUntil { at, .. }) = &mut self {
            at.clone_from(destination);
        }
        self
    }

    /// The host that it is carried out on; none where that is this machine.
    pub(crate) fn destination(&self) -> Option<&Destination> {
        match self {
            Self::OnHost { at, .. } | Self::Boot(BootUntil { at, .. }) => Some(at),
            Self::RemoveNamespace { .. } | Self::Run { .. } | Self::WriteSysctl { .. } => None,
        }
    }
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RemoveNamespace { name } => write!(f, "remove namespace {name}"),
            Self::Run {
                arguments,
                started: None,
                ..
            } => write!(f, "run {}", command_line(arguments)),
            Self::Run { arguments, .. } if *arguments == NOTHING => {
                f.write_str("end what it started")
            }
            Self::Run { arguments, .. } => write!(
                f,
                "end what it started, and run {}",
                command_line(arguments)
            ),
            Self::WriteSysctl { setting, value } => {
                write!(f, "set sysctl {setting} to {:?}", value.trim())
            }
            Self::OnHost { at, arguments, .. } => {
                write!(f, "run {} on host {}", command_line(arguments), at.host)
            }
            Self::Boot(BootUntil { at, until, .. }) => match until {
                Until::Kernel { .. } | Until::Itself { .. } => {
                    write!(f, "boot host {} as it boots by itself", at.host)
                }
                Until::Slice { slice } => {
                    write!(f, "boot host {} from its slice {slice}", at.host)
                }
            },
        }
    }
}

/// What can take changes back, because it reaches what was changed.
pub(crate) trait CarryOut: fmt::Debug {
    /// Takes a change back.
    ///
    /// # Errors
    /// Where that cannot be done, or nothing of the kind is within its reach.
    fn carry_out(&self, undo: &Undo) -> Result<(), LabError>;

    /// Takes some changes back at once, in that order: as many of the first as it can. Tells for each of those whether it
    /// is taken back; whoever takes back the others one by one learns why not.
    fn carry_out_at_once(&self, _: &[&Undo]) -> Vec<bool> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_are_read_as_older_journals_have_them() {
        let kernel = Until::Kernel {
            kernel: "6.12.1".to_owned(),
            command_line: vec!["quiet".to_owned()],
        };
        let slice = "ada0s1".to_owned();
        for (older, until) in [
            (
                r#"{"kind":"reboot","host":"r","ssh_config":"/c","kernel":"6.12.1","command_line":["quiet"],"time_s_max":60}"#,
                kernel,
            ),
            (
                r#"{"kind":"reboot-freebsd","host":"r","ssh_config":"/c","boot_time_s":7,"time_s_max":60}"#,
                Until::Itself { boot_time_s: 7 },
            ),
            (
                r#"{"kind":"reboot-from-slice","host":"r","ssh_config":"/c","slice":"ada0s1","time_s_max":60}"#,
                Until::Slice { slice },
            ),
        ] {
            let undo = Undo::Boot(BootUntil {
                at: Destination {
                    host: "r".to_owned(),
                    config: Some("/c".into()),
                },
                until,
                time_s_max: 60,
            });
            assert_eq!(serde_json::from_str::<Undo>(older).unwrap(), undo);
            let written = serde_json::to_string(&undo).unwrap();
            assert!(
                written.starts_with(r#"{"kind":"boot","host":"r""#),
                "{written}"
            );
            assert_eq!(serde_json::from_str::<Undo>(&written).unwrap(), undo);
        }
    }
}
