//! Configuration sets: what a bench copies to the DUT, and to the far end of a tunnel, before it runs.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::assignments::{AssignmentError, Assignments, Dialect, Expansion, Operator};
use super::secret::Secret;

/// The files of a configuration set: `configs/<set>/…`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigSet {
    files: BTreeMap<String, ConfigFile>,
}

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
    rest: Fingerprint,
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
    /// What of the value is not text but was to be replaced.
    pub expansion: Option<Expansion>,
}

/// What a setting is set to.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// The text, quotes taken off.
    Text(String),
    /// A key or password: only whether two of them are the same can be told.
    Secret(Fingerprint),
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
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    fn of(text: impl Hash) -> Self {
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
                expansion: read.expansion,
            });
        }
        let mut unread = file.unread.iter().map(|error| error.line()).peekable();
        let is_unread = |(index, line): (usize, _)| unread.next_if_eq(&(index + 1)).map(|_| line);
        file.rest = Fingerprint::of(lines.enumerate().filter_map(is_unread).collect::<Vec<_>>());
        file
    }
}

/// Which setting of which machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingKey<'a> {
    /// The part of the path that says whose it is: nothing, `dut`, `refendpoint`, a jail's folder.
    pub machine: &'a str,
    /// Who reads it.
    pub kind: ConfigKind,
    /// Its name.
    pub name: &'a str,
}

/// What a setting is in the end, with the place that has the last word.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective<'a> {
    /// The file, from the set's folder.
    pub path: &'a str,
    /// The line, from 1.
    pub line: usize,
    /// The value.
    pub value: SettingValue,
}

/// What is different between two configuration sets.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference<'a> {
    /// A setting, where it is set.
    Setting {
        /// Which one.
        key: SettingKey<'a>,
        /// What it is in the first set.
        first: Option<Effective<'a>>,
        /// What it is in the second set.
        second: Option<Effective<'a>>,
    },
    /// What a file holds beside settings and comments.
    File {
        /// The file, from the set's folder.
        path: &'a str,
        /// What it configures.
        kind: ConfigKind,
        /// Whether the first set has it.
        in_first: bool,
        /// Whether the second set has it.
        in_second: bool,
    },
}

impl ConfigSet {
    /// Reads a file of the set into it.
    ///
    /// Shape: as for [`ConfigFile::parse`].
    pub fn read(&mut self, path: &str, content: &[u8]) {
        self.files
            .insert(path.to_owned(), ConfigFile::parse(path, content));
    }

    /// Its files, by their path from the set's folder.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, ConfigFile> {
        &self.files
    }

    /// What is set in the end: of several settings of one name the last one counts, `loader.conf.local`
    /// after `loader.conf`, `rc.conf` after `rc.conf.misc` and the defaults.
    #[must_use]
    pub fn settings(&self) -> BTreeMap<SettingKey<'_>, Effective<'_>> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(path, _)| rank(path));
        let mut settings: BTreeMap<SettingKey<'_>, Effective<'_>> = BTreeMap::new();
        for (path, file) in files {
            for setting in &file.settings {
                let key = SettingKey {
                    machine: machine(path),
                    kind: file.kind,
                    name: &setting.name,
                };
                let before = settings.get(&key).map(|before| &before.value);
                let value = match (setting.operator, before) {
                    (Operator::Default, Some(_)) => continue,
                    (Operator::Append, Some(before)) => appended(before, &setting.value),
                    _ => setting.value.clone(),
                };
                let line = setting.line;
                settings.insert(key, Effective { path, line, value });
            }
        }
        settings
    }
}

/// What is different between two sets, in the order of machines and files; comments never are.
///
/// # Examples
/// ```
/// use fwdlab_archive::netbenches::{ConfigSet, Difference, differences};
/// let (mut off, mut on) = (ConfigSet::default(), ConfigSet::default());
/// off.read("boot/loader.conf.local", b"hw.ix.enable_aim=\"0\"\nif_ix_load=YES");
/// on.read("boot/loader.conf.local", b"if_ix_load=\"YES\" # a driver\nhw.ix.enable_aim=1\n");
/// let differences = differences(&off, &on);
/// assert!(matches!(&*differences, [Difference::Setting { key, .. }] if key.name == "hw.ix.enable_aim"));
/// ```
#[must_use]
pub fn differences<'a>(first: &'a ConfigSet, second: &'a ConfigSet) -> Vec<Difference<'a>> {
    let settings = pairs(first.settings(), second.settings());
    let settings = settings.filter_map(|(key, first, second)| {
        let value =
            |setting: &Option<Effective<'_>>| setting.as_ref().map(|setting| setting.value.clone());
        (value(&first) != value(&second)).then_some(Difference::Setting { key, first, second })
    });
    let files = pairs(first.files.iter().collect(), second.files.iter().collect());
    let files = files.filter_map(|(path, first, second)| {
        let kind = first.or(second)?.kind;
        let has_settings = kind.dialect().is_some();
        // A file of settings without any is no difference.
        let rest = |file: Option<&ConfigFile>| match file {
            None if has_settings => Some(Fingerprint::of(Vec::<&[u8]>::new())),
            file => file.map(|file| file.rest),
        };
        (rest(first) != rest(second)).then_some(Difference::File {
            path,
            kind,
            in_first: first.is_some(),
            in_second: second.is_some(),
        })
    });
    settings.chain(files).collect()
}

/// The values of two maps side by side, for every key of either.
fn pairs<K: Ord + Copy, V>(
    first: BTreeMap<K, V>,
    second: BTreeMap<K, V>,
) -> impl Iterator<Item = (K, Option<V>, Option<V>)> {
    let mut pairs: BTreeMap<K, (Option<V>, Option<V>)> = BTreeMap::new();
    for (key, value) in first {
        pairs.entry(key).or_insert((None, None)).0 = Some(value);
    }
    for (key, value) in second {
        pairs.entry(key).or_insert((None, None)).1 = Some(value);
    }
    pairs
        .into_iter()
        .map(|(key, (first, second))| (key, first, second))
}

fn appended(before: &SettingValue, value: &SettingValue) -> SettingValue {
    match (before, value) {
        (SettingValue::Text(before), SettingValue::Text(value)) => {
            SettingValue::Text(format!("{before}{value}"))
        }
        _ => SettingValue::Secret(Fingerprint::of([
            before.fingerprint().0,
            value.fingerprint().0,
        ])),
    }
}

impl SettingValue {
    fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Text(text) => Fingerprint::of(text),
            Self::Secret(fingerprint) => *fingerprint,
        }
    }
}

/// When a file is read, among those of its kind: the later one has the last word.
fn rank(path: &str) -> usize {
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.contains("defaults/") {
        0
    } else if name.ends_with(".misc") {
        1
    } else if name.ends_with(".local") || path.contains(".conf.d/") {
        3
    } else {
        2
    }
}

/// The part of a path that says whose file it is.
fn machine(path: &str) -> &str {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut machine = folder;
    for inner in ["defaults", "rc.conf.d", "loader.conf.d", "etc", "boot"] {
        machine = match machine.strip_suffix(inner) {
            Some("") => "",
            Some(outer) => outer.strip_suffix('/').unwrap_or(machine),
            None => machine,
        };
    }
    machine
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(files: &[(&str, &str)]) -> ConfigSet {
        let mut set = ConfigSet::default();
        for (path, content) in files {
            set.read(path, content.as_bytes());
        }
        set
    }

    /// Settings as `machine name=value (path:line)`.
    fn settings(set: &ConfigSet) -> Vec<String> {
        let shown = set.settings().into_iter().map(|(key, setting)| {
            let Effective { path, line, value } = setting;
            format!("{} {}={value} ({path}:{line})", key.machine, key.name)
        });
        shown.collect()
    }

    /// Differences as `machine name: first, second` and `path: in first, in second`.
    fn shown(first: &ConfigSet, second: &ConfigSet) -> Vec<String> {
        let shown = differences(first, second)
            .into_iter()
            .map(|difference| match difference {
                Difference::Setting { key, first, second } => {
                    let value = |setting: Option<Effective<'_>>| {
                        setting.map_or("-".to_owned(), |setting| setting.value.to_string())
                    };
                    format!(
                        "{} {}: {}, {}",
                        key.machine,
                        key.name,
                        value(first),
                        value(second)
                    )
                }
                Difference::File {
                    path,
                    in_first,
                    in_second,
                    ..
                } => format!("{path}: {in_first}, {in_second}"),
            });
        shown.collect()
    }

    #[test]
    fn the_last_word_is_with_the_file_that_is_read_last() {
        let set = set(&[
            (
                "etc/rc.conf",
                "dumpdev=\"igb0\" # here\nhostname=a hostname=b\n",
            ),
            ("etc/rc.conf.misc", "dumpdev=NO\nblanktime=NO"),
            ("etc/defaults/vendor.conf", "blanktime=YES\nkld_list=\"a\""),
            ("etc/rc.conf.local", "kld_list+=' b'\n: ${hostname:=c}"),
            ("boot/loader.conf", "net.fibs=\"2\""),
            ("boot/loader.conf.local", "net.fibs = 16"),
            ("dut/etc/sysctl.conf", "net.fibs=1"),
            ("etc/jails/j/rc.conf", "hostname=j"),
        ]);
        assert_eq!(
            settings(&set),
            [
                " net.fibs=16 (boot/loader.conf.local:1)",
                " blanktime=NO (etc/rc.conf.misc:2)",
                " dumpdev=igb0 (etc/rc.conf:1)",
                " hostname=b (etc/rc.conf:2)",
                " kld_list=a b (etc/rc.conf.local:1)",
                "dut net.fibs=1 (dut/etc/sysctl.conf:1)",
                "etc/jails/j hostname=j (etc/jails/j/rc.conf:1)",
            ]
        );
    }

    #[test]
    fn only_what_takes_effect_is_different() {
        let first = set(&[
            ("boot/loader.conf.local", "# one\na=1\nb=2\n"),
            ("etc/rc.conf", "x=1\n. /etc/more\n"),
            ("etc/pf.conf", "# rules\npass all\n"),
            ("etc/ipf.rules", "block in all\n"),
            ("etc/sysctl.conf", "# nothing\n"),
        ]);
        let second = set(&[
            ("boot/loader.conf.local", "b=\"2\"\nc=3\n\na=2"),
            ("etc/rc.conf", "x=1\n. /etc/less\n"),
            ("etc/pf.conf", "pass  all\n\n"),
            ("etc/rc.conf.misc", "x=0"),
        ]);
        assert_eq!(
            shown(&first, &second),
            [
                " a: 1, 2",
                " c: -, 3",
                "etc/ipf.rules: true, false",
                "etc/pf.conf: true, true",
                "etc/rc.conf: true, true",
            ]
        );
        assert_eq!(shown(&first, &first), [""; 0]);
        assert_eq!(
            first.files()["etc/rc.conf"].unread,
            [AssignmentError::Other { line: 2 }]
        );
    }

    #[test]
    fn keys_are_told_apart_and_never_shown() {
        let one = set(&[
            (
                "dut/etc/rc.conf",
                "create_args_wg0=\"private-key SESAME peer x\"",
            ),
            ("dut/etc/local/openvpn/dut.key", "SESAME"),
        ]);
        let other = set(&[
            (
                "dut/etc/rc.conf",
                "create_args_wg0=\"private-key OPEN peer x\"",
            ),
            ("dut/etc/local/openvpn/dut.key", "OPEN"),
        ]);
        assert_eq!(
            shown(&one, &other),
            [
                "dut create_args_wg0: (secret), (secret)",
                "dut/etc/local/openvpn/dut.key: true, true"
            ]
        );
        let secrets = one.files().values().map(|file| file.secret);
        assert!(secrets.eq([Some(Secret::PrivateKey); 2]));
        assert!(!format!("{one:?} {:?}", differences(&one, &other)).contains("SESAME"));
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
        fn any_bytes_are_read(path in "(dut/)?(etc|boot)/(rc|loader|sysctl|pf)[.]conf([.]local|[.]misc)?", one: Vec<u8>, other: Vec<u8>) {
            let (mut first, mut second) = (ConfigSet::default(), ConfigSet::default());
            first.read(&path, &one);
            second.read(&path, &other);
            prop_assert_eq!(differences(&first, &first), []);
            prop_assert_eq!(differences(&first, &second).len(), differences(&second, &first).len());
        }

        #[test]
        fn written_settings_are_read_back(values in prop::collection::btree_map("[a-z]{1,4}[.][a-z0-9_.]{1,9}", "[a-zA-Z0-9 ,/:-]{0,9}", 0..9)) {
            let mut set = ConfigSet::default();
            let text: String = values.iter().map(|(name, value)| format!("{name}=\"{value}\"\t# {value}\n")).collect();
            set.read("boot/loader.conf", text.as_bytes());
            let read: BTreeMap<_, _> = set.settings().into_iter().map(|(key, setting)| (key.name.to_owned(), setting.value)).collect();
            // A name may say that the value is a password.
            let written = values.into_iter().map(|(name, value)| {
                let value = match Secret::of_setting(&name, &value) {
                    Some(_) => SettingValue::Secret(Fingerprint::of(&value)),
                    None => SettingValue::Text(value),
                };
                (name, value)
            });
            prop_assert_eq!(read, written.collect::<BTreeMap<_, _>>());
        }
    }
}
