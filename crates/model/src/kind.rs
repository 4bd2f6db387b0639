//! The kinds of lab.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabKind {
    /// This machine's kernel, between two pairs of veth interfaces in namespaces of their own.
    Netns,
    /// The reference router, inside this process.
    Router,
    /// A FreeBSD host between a tester's two ports, both reached by ssh.
    FreebsdSsh,
    /// A Linux host between a tester's two ports, both reached by ssh.
    LinuxSsh,
}

impl LabKind {
    /// The word used in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Netns => "netns",
            Self::Router => "router",
            Self::FreebsdSsh => "freebsd-ssh",
            Self::LinuxSsh => "linux-ssh",
        }
    }

    /// Whether tester and DUT are hosts of their own, none of which is this machine.
    #[must_use]
    pub const fn is_remote(self) -> bool {
        match self {
            Self::Netns | Self::Router => false,
            Self::FreebsdSsh | Self::LinuxSsh => true,
        }
    }
}

impl fmt::Display for LabKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
