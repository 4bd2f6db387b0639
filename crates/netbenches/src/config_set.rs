//! Configuration sets: what a bench copies to the DUT, and to the far end of a tunnel, before it runs.

use std::collections::BTreeMap;

use crate::assignments::Operator;
use crate::config_file::{ConfigFile, ConfigKind, Fingerprint, SettingValue};

/// The files of a configuration set: `configs/<set>/…`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigSet {
    files: BTreeMap<String, ConfigFile>,
}

/// Which setting of which machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

    /// Puts a file that was read into the set.
    pub(super) fn insert(&mut self, path: &str, file: ConfigFile) {
        self.files.insert(path.to_owned(), file);
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
                    (Operator::Append, Some(before)) => before.with(&setting.value),
                    _ => setting.value.clone(),
                };
                let line = setting.line;
                settings.insert(key, Effective { path, line, value });
            }
        }
        settings
    }

    /// The same for sets that [`differences`] finds none between.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let settings = self.settings().into_iter();
        let settings: Vec<_> = settings
            .map(|(key, setting)| (key, setting.value))
            .collect();
        let nothing = Fingerprint::of(Vec::<&[u8]>::new());
        let rests: Vec<_> = self
            .files
            .iter()
            .filter(|(_, file)| file.kind.dialect().is_none() || file.rest != nothing)
            .map(|(path, file)| (path, file.rest))
            .collect();
        Fingerprint::of((settings, rests))
    }
}

/// What is different between two sets, in the order of machines and files; comments never are.
///
/// # Examples
/// ```
/// use fwdlab_netbenches::{ConfigSet, Difference, differences};
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
pub(super) fn machine(path: &str) -> &str {
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
    use crate::assignments::AssignmentError;
    use crate::secret::Secret;

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
