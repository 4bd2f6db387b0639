//! Reading what is to become a lab and experiments.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use fwdlab_archive::Place;
use fwdlab_archive::name::safe_name;
use fwdlab_sys::{Input, Refusal};

use super::toml::one_line;
use super::{BenchLabError, Note, Source, SourceSet, SourceTraffic};
use crate::config_set::ConfigSet;
use crate::lab_config::LabConfig;
use crate::natural;
use crate::pktgen_config::PktGenConfig;
use crate::secret::Secret;
use crate::walk::walk;

/// Larger files are no configurations; the largest of the archive, a ruleset, has 2 MB.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// An experiment has at most so many variants.
const SETS_MAX: usize = 256;
/// Files with secrets are named up to that number of a set.
const SECRETS_SHOWN: usize = 3;

const GIVE_CONFIG: &str = "give a bench-lab….config";
const GIVE_CONFIGS: &str = "give the folder that has the configuration sets in it with --configs";
const GIVE_PKTGEN: &str =
    "give a folder of sets of pkt-gen with --pktgen, like pktgen.configs/dualstack-2k";

/// Where the files are.
#[derive(Clone, Copy, Debug)]
pub struct BenchLabPaths<'a> {
    /// The lab's configuration.
    pub config: &'a Path,
    /// The folder of the configuration sets.
    pub configs: Option<&'a Path>,
    /// The folder of the sets of pkt-gen.
    pub pktgen: Option<&'a Path>,
    /// The folder that the lab file is to be in, which need not be there.
    pub to: &'a Path,
    /// What the files are to be called.
    pub name: Option<&'a str>,
}

impl Source {
    /// Reads the configuration of a lab, its configuration sets and its sets of pkt-gen.
    ///
    /// # Errors
    /// [`BenchLabError`]: one of them is not there, or not what it should be.
    pub fn read(paths: BenchLabPaths<'_>) -> Result<Self, BenchLabError> {
        let config = paths.config;
        let bytes = file(config, GIVE_CONFIG)?;
        let lab = LabConfig::parse(&bytes).map_err(|source| BenchLabError::Config {
            path: config.to_owned(),
            source,
        })?;
        let is_lab = |name: &str| lab.value(name).is_some();
        if !is_lab("DUT_ADMIN") && !is_lab("SENDER_ADMIN") {
            return Err(unfit(
                config,
                "sets neither DUT_ADMIN nor SENDER_ADMIN, so no configuration of a lab",
                GIVE_CONFIG,
            ));
        }
        let mut source = Self {
            config: config.to_owned(),
            lab,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            platform: platform(config),
            ..Self::default()
        };
        if let Some(configs) = paths.configs {
            source.read_sets(configs, paths.to)?;
        }
        if let Some(pktgen) = paths.pktgen {
            source.read_traffic(pktgen)?;
        }
        let stem = || {
            let stem = config.file_stem().unwrap_or_default().to_string_lossy();
            stem.into_owned()
        };
        let asked = paths.name.map(str::to_owned);
        source.name = safe_name(&asked.or_else(|| source.topic.clone()).unwrap_or_else(stem));
        Ok(source)
    }

    fn read_sets(&mut self, configs: &Path, to: &Path) -> Result<(), BenchLabError> {
        let real = configs
            .canonicalize()
            .map_err(unreadable(configs, GIVE_CONFIGS))?;
        let base = real_path(to).map_err(unreadable(to, "give a folder with --to"))?;
        let entries = list(configs, GIVE_CONFIGS)?;
        let is_of_set = |name: &str| ["etc", "boot", "dut"].contains(&name);
        let is_set = entries
            .iter()
            .any(|entry| entry.is_folder && is_of_set(&entry.name.to_string_lossy()));
        self.configs = Some(configs.display().to_string());
        self.topic = topic(&real);
        if is_set {
            let name = one_line(self.topic.as_deref().unwrap_or("configs"));
            let text = "a configuration set itself: the only one there is".into();
            self.notes.push(note(configs, text));
            self.read_set_at(configs, &real, &base, &name)?;
            return self.with_sets(configs);
        }
        for entry in entries {
            let path = configs.join(&entry.name);
            let mut leave = |why: &str| self.notes.push(note(&path, format!("{why}, left")));
            if !entry.is_folder {
                leave("no folder, so no configuration set");
                continue;
            }
            let name = entry
                .name
                .to_str()
                .filter(|name| !name.chars().any(char::is_control) && !name.trim().is_empty());
            let Some(name) = name else {
                leave("a name that no level can have");
                continue;
            };
            if self.sets.len() == SETS_MAX {
                leave("more sets than an experiment has variants");
                continue;
            }
            self.read_set_at(&path, &real.join(name), &base, name)?;
        }
        self.with_sets(configs)
    }

    /// Refuses a folder without sets.
    fn with_sets(&self, configs: &Path) -> Result<(), BenchLabError> {
        if self.sets.is_empty() {
            let what = "has no configuration set in it";
            return Err(unfit(configs, what, GIVE_CONFIGS));
        }
        Ok(())
    }

    /// Reads a set and adds it, unless no lab file in `base` could name it.
    fn read_set_at(
        &mut self,
        path: &Path,
        real: &Path,
        base: &Path,
        name: &str,
    ) -> Result<(), BenchLabError> {
        let mut folder = real.to_owned();
        if path.join("dut").is_dir() {
            folder.push("dut");
            let text = "dut alone is for the DUT; what else is in it stays to be set up by hand";
            self.notes.push(note(path, text.into()));
        }
        let Some(folder) = relative(base, &folder) else {
            let text = "a path that no lab file can name, left; rename its folders";
            self.notes.push(note(path, text.into()));
            return Ok(());
        };
        let files = self.read_set(path)?;
        self.sets.push(SourceSet {
            name: name.to_owned(),
            path: path.to_owned(),
            folder,
            files,
        });
        Ok(())
    }

    /// The files of a set, those of keys by their name alone.
    fn read_set(&mut self, folder: &Path) -> Result<ConfigSet, BenchLabError> {
        let mut set = ConfigSet::default();
        let mut secrets = Vec::new();
        let found = walk(folder, &[]).map_err(unreadable(folder, GIVE_CONFIGS))?;
        for path in found.files {
            let shown = path.to_string_lossy();
            let content = if Secret::of_name(&shown).is_some() {
                Vec::new()
            } else {
                file(&folder.join(&path), GIVE_CONFIGS)?
            };
            set.read(&shown, &content);
            let is_secret = set.files()[shown.as_ref()].secret.is_some();
            secrets.extend(is_secret.then(|| shown.into_owned()));
        }
        if !secrets.is_empty() {
            let shown = secrets.iter().take(SECRETS_SHOWN).cloned();
            let mut shown = shown.collect::<Vec<_>>().join(", ");
            if secrets.len() > SECRETS_SHOWN {
                shown += &format!(" and {} more", secrets.len() - SECRETS_SHOWN);
            }
            let text = format!(
                "holds keys, certificates or passwords ({shown}): only its path is written"
            );
            self.notes.push(note(folder, text));
        }
        Ok(set)
    }

    fn read_traffic(&mut self, pktgen: &Path) -> Result<(), BenchLabError> {
        for entry in list(pktgen, GIVE_PKTGEN)? {
            let path = pktgen.join(&entry.name);
            if entry.is_folder || entry.name.as_encoded_bytes().starts_with(b".") {
                self.notes
                    .push(note(&path, "no set of pkt-gen, left".into()));
                continue;
            }
            let bytes = file(&path, GIVE_PKTGEN)?;
            let config = PktGenConfig::parse(&bytes).map_err(|source| BenchLabError::PktGen {
                path: path.clone(),
                source,
            })?;
            self.traffic.push(SourceTraffic {
                name: Some(entry.name.to_string_lossy().into_owned()),
                path,
                variables: config.variables,
            });
        }
        if self.traffic.is_empty() {
            return Err(unfit(pktgen, "has no set of pkt-gen in it", GIVE_PKTGEN));
        }
        Ok(())
    }
}

fn note(path: &Path, text: String) -> Note {
    Note::at(Place::file(path), text)
}

fn unfit(path: &Path, what: &str, remedy: &'static str) -> BenchLabError {
    BenchLabError::Unfit {
        path: path.to_owned(),
        what: what.to_owned(),
        remedy,
    }
}

fn unreadable(path: &Path, remedy: &'static str) -> impl FnOnce(io::Error) -> BenchLabError {
    let path = path.to_owned();
    move |source| BenchLabError::Unreadable {
        path,
        source,
        remedy,
    }
}

/// All of a regular file.
fn file(path: &Path, remedy: &'static str) -> Result<Vec<u8>, BenchLabError> {
    let read = Input::file(path, FILE_BYTES_MAX).bytes();
    read.map_err(|error| match Refusal::of(&error) {
        Some(Refusal::NoFile { kind }) => unfit(path, &format!("is {kind}"), remedy),
        Some(Refusal::TooLarge { bytes_max }) => {
            let what = format!("is larger than {} MiB", bytes_max >> 20);
            unfit(path, &what, remedy)
        }
        _ => unreadable(path, remedy)(error),
    })
}

/// Something in a folder; links are what they lead to.
struct Entry {
    name: std::ffi::OsString,
    is_folder: bool,
}

/// What lies in a folder, by name as people number them.
fn list(folder: &Path, remedy: &'static str) -> Result<Vec<Entry>, BenchLabError> {
    let entries = fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| {
                let name = entry?.file_name();
                let is_folder = folder.join(&name).is_dir();
                Ok(Entry { name, is_folder })
            })
            .collect::<io::Result<Vec<Entry>>>()
    });
    let mut entries = entries.map_err(unreadable(folder, remedy))?;
    entries.sort_by(|one, other| {
        natural::compare(&one.name.to_string_lossy(), &other.name.to_string_lossy())
    });
    Ok(entries)
}

/// What the folders around a configuration call the DUT and its network card, where they are the archive's.
fn platform(config: &Path) -> Option<[String; 2]> {
    let real = config.canonicalize().ok()?;
    let mut names = real
        .ancestors()
        .skip(1)
        .map(|folder| folder.file_name()?.to_str());
    let (nic, platform) = (names.next()??, names.next()??);
    platform
        .ends_with("Cores")
        .then(|| [platform.to_owned(), nic.to_owned()])
}

/// What the sets in a folder are about: the folder that `configs` is in, or else its own name.
fn topic(configs: &Path) -> Option<String> {
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let own = name(configs)?;
    let is_configs = own == "configs" || own.starts_with("configs.");
    if is_configs {
        configs.parent().and_then(name)
    } else {
        Some(own)
    }
}

/// The path without links, of a folder that need not be there.
///
/// # Errors
/// Where a relative path has no folder to begin in.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    for above in absolute.ancestors() {
        if let Ok(real) = above.canonicalize() {
            let rest = absolute.strip_prefix(above).unwrap_or(Path::new(""));
            return Ok(real.join(rest));
        }
    }
    Ok(absolute)
}

/// The way from one folder to another; none where that is no text or cannot be gone.
fn relative(from: &Path, to: &Path) -> Option<String> {
    let of = |path: &Path| path.components().collect::<Vec<_>>().len();
    let shared = from
        .components()
        .zip(to.components())
        .take_while(|(one, other)| one == other)
        .count();
    let up = from.components().skip(shared);
    let is_plain = |component: Component<'_>| matches!(component, Component::Normal(_));
    if !up.clone().all(is_plain) {
        return None;
    }
    let up = std::iter::repeat_n(OsStr::new(".."), of(from) - shared);
    let path: PathBuf = up
        .chain(to.components().skip(shared).map(Component::as_os_str))
        .collect();
    let text = path.to_str()?.to_owned();
    (!text.chars().any(char::is_control) && !text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_way_to_a_folder_goes_up_and_down() {
        for (from, to, way) in [
            ("/a/b", "/a/b/c", Some("c")),
            ("/a/b", "/a/c/d", Some("../c/d")),
            ("/", "/a", Some("a")),
            ("/a/../b", "/c", None),
            ("/a", "/b\nc", None),
        ] {
            let found = relative(Path::new(from), Path::new(to));
            assert_eq!(found.as_deref(), way, "{from} {to}");
        }
    }

    #[test]
    fn sets_are_about_the_folder_that_they_are_kept_in() {
        for (configs, about) in [
            ("/x/iflib.simple_tx/configs", Some("iflib.simple_tx")),
            ("/x/firewalls/configs.8rx", Some("firewalls")),
            ("/x/sets", Some("sets")),
            ("/configs", None),
        ] {
            assert_eq!(topic(Path::new(configs)).as_deref(), about, "{configs}");
        }
    }

    proptest! {
        #[test]
        fn the_way_leads_there(from in "(/[a-c]){0,4}", to in "(/[a-c]){1,4}") {
            let from = Path::new("/r").join(from.trim_start_matches('/'));
            let to = Path::new("/r").join(to.trim_start_matches('/'));
            let Some(way) = relative(&from, &to) else {
                prop_assert!(from == to);
                return Ok(());
            };
            let mut gone = from.clone();
            for component in Path::new(&way).components() {
                if component == Component::ParentDir {
                    gone.pop();
                } else {
                    gone.push(component);
                }
            }
            prop_assert_eq!(gone, to);
        }
    }
}
