//! The kinds of lab: what system forwards, and how it is reached.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The systems that a host forwards with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Linux,
    /// FreeBSD.
    Freebsd,
}

/// The kinds of lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabKind {
    /// This machine's Linux, between two pairs of veth interfaces in namespaces of their own.
    Netns,
    /// The reference router, inside this process.
    Router,
    /// A host of a system between a tester's two ports, both reached by ssh.
    Ssh(System),
}

impl LabKind {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Netns,
        Self::Router,
        Self::Ssh(System::Freebsd),
        Self::Ssh(System::Linux),
    ];

    /// The word used in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Netns => "netns",
            Self::Router => "router",
            Self::Ssh(System::Freebsd) => "freebsd-ssh",
            Self::Ssh(System::Linux) => "linux-ssh",
        }
    }

    /// Whether tester and DUT are hosts of their own, none of which is this machine.
    #[must_use]
    pub const fn is_remote(self) -> bool {
        match self {
            Self::Netns | Self::Router => false,
            Self::Ssh(_) => true,
        }
    }
}

impl fmt::Display for LabKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for LabKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for LabKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let kind = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        kind.ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str);
            D::Error::custom(format!(
                "unknown variant `{word}`, expected one of `{}`",
                words.join("`, `")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_by_its_word() {
        for kind in LabKind::ALL {
            let word = serde_json::to_string(&kind).unwrap();
            assert_eq!(word, format!("{:?}", kind.as_str()));
            assert_eq!(serde_json::from_str::<LabKind>(&word).unwrap(), kind);
        }
        let error = serde_json::from_str::<LabKind>("\"ssh\"").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("one of `netns`, `router`, `freebsd-ssh`, `linux-ssh`")
        );
    }
}
