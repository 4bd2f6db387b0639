//! Files of configuration sets: their settings, and of all others no more than what they configure.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::assignments::{AssignmentError, Assignments, Dialect, Operator};
use crate::secret::Secret;

/// A file of a configuration set, without what is no setting.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigFile {
    /// What it configures.
    pub kind: ConfigKind,
    /// What it gives away; then it must not be copied.
    pub secret: Option<Secret>,
    /// Its settings, in order; none where [`ConfigKind::dialect`] is `None`.
    pub settings: Vec<Setting>,
    /// What else stands between them: commands, in an `rc.conf`.
    pub unread: Vec<AssignmentError>,
    /// All of it that is no setting and no comment.
    pub(super) rest: Fingerprint,
}

/// What a file configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigKind {
    /// `loader.conf`: what the boot loader sets, and what can be set only then.
    Loader,
    /// `rc.conf`: services, addresses and routes.
    Rc,
    /// `sysctl.conf`: what is set in a running kernel.
    Sysctl,
    /// `pf.conf`.
    Pf,
    /// `ipfw.rules`.
    Ipfw,
    /// `ipf.rules`.
    IpFilter,
    /// `ipsec.conf`: policies, and often keys.
    Ipsec,
    /// OpenVPN, tinc, WireGuard and the like.
    Vpn,
    /// Jails, and what they see of devices.
    Jail,
    /// A routing daemon.
    Routing,
    /// Whatever else.
    Other,
}

impl ConfigKind {
    /// What a file's path says it configures.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_in = |wanted: &[&str]| folder.split('/').any(|folder| wanted.contains(&folder));
        let begins = |beginnings: &[&str]| beginnings.iter().any(|begin| name.starts_with(begin));
        if begins(&["loader.conf", "device.hints"]) || is_in(&["loader.conf.d"]) {
            Self::Loader
        } else if begins(&["rc.conf"]) || is_in(&["rc.conf.d", "defaults"]) {
            Self::Rc
        } else if begins(&["sysctl.conf", "sysctl.kld"]) {
            Self::Sysctl
        } else if is_in(&[
            "openvpn",
            "tinc",
            "wireguard",
            "strongswan",
            "ipsec.d",
            "racoon",
        ]) || begins(&["openvpn", "wg", "racoon", "swanctl", "strongswan"])
        {
            Self::Vpn
        } else if begins(&["pf.", "pf-", "pf_"]) {
            Self::Pf
        } else if begins(&["ipfw"]) {
            Self::Ipfw
        } else if begins(&["ipf.", "ipf6", "ipnat"]) {
            Self::IpFilter
        } else if begins(&["ipsec.", "setkey"]) {
            Self::Ipsec
        } else if begins(&["jail", "devfs", "fstab."]) {
            Self::Jail
        } else if begins(&["bird", "frr", "zebra", "bgpd", "ospfd", "quagga"]) {
            Self::Routing
        } else {
            Self::Other
        }
    }

    /// The rules its settings are written by; `None` where it is no list of settings.
    #[must_use]
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Loader | Self::Sysctl => Some(Dialect::Settings),
            Self::Rc => Some(Dialect::Shell),
            _ => None,
        }
    }
}

/// A setting of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Where it begins, from 1.
    pub line: usize,
    /// Its name, as it stands.
    pub name: String,
    /// Whether it takes the place of what was set before, or is added.
    pub operator: Operator,
    /// What it is set to.
    pub value: SettingValue,
}

/// What a setting is set to.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum SettingValue {
    /// The text, quotes taken off.
    Text(String),
    /// A key or password: only whether two of them are the same can be told.
    Secret(Fingerprint),
}

impl SettingValue {
    /// This one with another one appended.
    pub(super) fn with(&self, appended: &Self) -> Self {
        match (self, appended) {
            (Self::Text(text), Self::Text(appended)) => Self::Text(format!("{text}{appended}")),
            _ => Self::Secret(Fingerprint::of([
                self.fingerprint(),
                appended.fingerprint(),
            ])),
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Text(text) => Fingerprint::of(text),
            Self::Secret(fingerprint) => *fingerprint,
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Secret(_) => formatter.write_str("(secret)"),
        }
    }
}

/// Tells within one process whether two texts are the same, and nothing else about them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    pub(super) fn of(text: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Fingerprint")
    }
}

impl ConfigFile {
    /// Reads a file; whatever it is, it is read.
    ///
    /// Shape: `path` is from the set's folder; `content` is the whole file.
    #[must_use]
    pub fn parse(path: &str, content: &[u8]) -> Self {
        let kind = ConfigKind::of(path);
        let mut file = Self {
            kind,
            secret: Secret::of_file(path, content),
            settings: Vec::new(),
            unread: Vec::new(),
            rest: Fingerprint(0),
        };
        let lines = content.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let Some(dialect) = kind.dialect() else {
            let is_said = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
            file.rest = Fingerprint::of(lines.filter(is_said).collect::<Vec<_>>());
            return file;
        };
        for read in Assignments::new(content, dialect) {
            let read = match read {
                Ok(read) => read,
                Err(error) => {
                    file.unread.push(error);
                    continue;
                }
            };
            let value = match Secret::of_setting(&read.name, &read.value) {
                Some(_) => SettingValue::Secret(Fingerprint::of(&read.value)),
                None => SettingValue::Text(read.value),
            };
            file.settings.push(Setting {
                line: read.line,
                name: read.name,
                operator: read.operator,
                value,
            });
        }
        let mut unread = file.unread.iter().map(|error| error.line()).peekable();
        let is_unread = |(index, line): (usize, _)| unread.next_if_eq(&(index + 1)).map(|_| line);
        file.rest = Fingerprint::of(lines.enumerate().filter_map(is_unread).collect::<Vec<_>>());
        file
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_is_read_without_what_is_no_setting() {
        let text = b"# one\nx=\"1\"\n. /etc/more\nkeys_psk=SESAME\ny=$x\n";
        let file = ConfigFile::parse("etc/rc.conf", text);
        let read: Vec<_> = file
            .settings
            .iter()
            .map(|setting| format!("{} {}={}", setting.line, setting.name, setting.value))
            .collect();
        assert_eq!(read, ["2 x=1", "4 keys_psk=(secret)", "5 y=$x"]);
        assert_eq!(file.unread, [AssignmentError::Other { line: 3 }]);
        assert_eq!(file.secret, Some(Secret::SharedKey));
        let rules = ConfigFile::parse("etc/pf.conf", b"x=\"1\"\n");
        assert_eq!((rules.settings.len(), rules.secret), (0, None));
    }

    #[test]
    fn files_are_of_a_kind_by_name_and_folder() {
        for (path, kind) in [
            ("boot/loader.conf.local", ConfigKind::Loader),
            ("rc.conf.misc", ConfigKind::Rc),
            ("etc/defaults/vendor.conf", ConfigKind::Rc),
            ("refendpoint/etc/sysctl.conf", ConfigKind::Sysctl),
            ("etc/pf.conf", ConfigKind::Pf),
            ("etc/ipfw.rules", ConfigKind::Ipfw),
            ("etc/ipf.rules", ConfigKind::IpFilter),
            ("etc/ipsec.conf", ConfigKind::Ipsec),
            ("etc/local/tinc/vpn/hosts/dut", ConfigKind::Vpn),
            ("local/wireguard/wg0.conf", ConfigKind::Vpn),
            ("etc/devfs.rules", ConfigKind::Jail),
            ("local/bird.conf", ConfigKind::Routing),
            ("x", ConfigKind::Other),
        ] {
            assert_eq!(ConfigKind::of(path), kind, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(path: String, bytes: Vec<u8>) {
            for path in [path.as_str(), "rc.conf", "loader.conf", "pf.conf"] {
                let file = ConfigFile::parse(path, &bytes);
                prop_assert!(file.kind.dialect().is_some() || file.settings.is_empty());
            }
        }

        #[test]
        fn keys_are_never_kept(name in "[a-z_]{1,9}_psk", value in "[A-Z]{9,20}") {
            let file = ConfigFile::parse("etc/rc.conf", format!("{name}={value}").as_bytes());
            let kept = format!("{file:?}");
            prop_assert!(!kept.contains(&value));
        }
    }
}
