//! A tree of published results, read whole.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::{Bound, Range};
use std::path::{Component, Path, PathBuf};

use fwdlab_sys::parallel::{FEW, MANY, both, parallel};

use crate::config_file::{ConfigFile, SettingValue};
use crate::config_set::ConfigSet;
use crate::file::{ArchiveFile, Content, Outcome, read};
use crate::folder::{ResultsFolder, RunGroup, is_raw};
use crate::import::Settings;
use crate::info::BenchInfo;
use crate::kind::{FileKind, is_configurations};
use crate::place::{ArchivePlace, label_depth};
use crate::walk::walk;

/// The archive, or any part of it.
#[derive(Debug)]
pub struct ArchiveTree {
    /// Where it is.
    pub root: PathBuf,
    /// The same from the file system's root on, whose folders may say which part of the archive it is.
    absolute: PathBuf,
    /// Every file, by its path.
    pub files: Vec<ArchiveFile>,
    /// Every folder of results, by its path.
    pub folders: Vec<ResultsFolder>,
    /// The files of every configuration set, by its folder.
    sets: BTreeMap<PathBuf, Vec<usize>>,
}

impl ArchiveTree {
    /// Reads everything below `root`, on all processors.
    ///
    /// # Errors
    /// What the system says where `root` itself cannot be listed. Whatever is wrong further down is an
    /// [`Outcome::Failed`].
    pub fn read(root: &Path) -> io::Result<Self> {
        Self::read_without(root, &[])
    }

    /// The same without what lies in the folders `apart`: results of another form.
    ///
    /// Shape: folders as they are reached from `root`, which they begin with.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_without(root: &Path, apart: &[PathBuf]) -> io::Result<Self> {
        let found = walk(root, apart)?;
        let mut files: Vec<ArchiveFile> = parallel(&found.files, MANY, |path| {
            let (kind, outcome) = read(root, path, FileKind::of(path));
            ArchiveFile {
                path: path.clone(),
                kind,
                outcome,
            }
        });
        if !found.others.is_empty() {
            let others = found.others.into_iter();
            files.extend(others.map(|(path, outcome)| ArchiveFile {
                path,
                kind: FileKind::Unnamed,
                outcome,
            }));
            files.sort_by(|a, b| a.path.cmp(&b.path));
        }
        let absolute = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let (members, sets) = both(|| by_folder(&absolute, &files), || sets(&files));
        let members: Vec<_> = members.into_iter().collect();
        let folders = parallel(&members, FEW, |(path, members)| {
            let place = ArchivePlace::of(&absolute.join(path));
            ResultsFolder::new(path.clone(), place, members.clone(), &files)
        });
        Ok(Self {
            root: root.to_owned(),
            absolute,
            folders,
            sets,
            files,
        })
    }

    /// What the path of something in the tree says of it.
    ///
    /// Shape: `path` is below the root.
    #[must_use]
    pub fn place(&self, path: &Path) -> ArchivePlace {
        ArchivePlace::of(&self.absolute.join(path))
    }

    /// The configuration set of a group of runs: `configs/<set>` beside the results, where its `.info`
    /// names one, or else one has the name that its runs have.
    #[must_use]
    pub fn configuration(&self, folder: &ResultsFolder, group: &RunGroup) -> Option<ConfigSet> {
        let mut set = ConfigSet::default();
        for (path, file) in self.configuration_files(folder, group)? {
            set.insert(&path, file.clone());
        }
        Some(set)
    }

    /// What the configuration set of a group of runs says, without secrets.
    pub(super) fn settings(&self, folder: &ResultsFolder, group: &RunGroup) -> Settings {
        let files = self.configuration_files(folder, group);
        let settings_of = |file: &ConfigFile| -> BTreeMap<String, String> {
            let texts = file.settings.iter().filter_map(|setting| {
                let SettingValue::Text(value) = &setting.value else {
                    return None;
                };
                Some((setting.name.clone(), value.clone()))
            });
            texts.collect()
        };
        files
            .into_iter()
            .flatten()
            .map(|(path, file)| (path.into_owned(), settings_of(file)))
            .filter(|(_, settings)| !settings.is_empty())
            .collect()
    }

    /// The files of a group's configuration set, with their paths from the set's folder.
    fn configuration_files(
        &self,
        folder: &ResultsFolder,
        group: &RunGroup,
    ) -> Option<impl Iterator<Item = (Cow<'_, str>, &ConfigFile)>> {
        let topic = folder.path.parent()?.parent()?;
        let info = group.description(&self.files);
        let name = info.and_then(BenchInfo::configuration_name);
        let name = name.filter(|name| !name.is_empty()).unwrap_or(&group.key);
        // What lies below a folder stands right behind it.
        let below = self
            .sets
            .range::<Path, _>((Bound::Included(topic), Bound::Unbounded));
        let mut named = below
            .take_while(|(path, _)| path.starts_with(topic))
            .filter(|(path, _)| {
                path.file_name().is_some_and(|set| set == name)
                    && path.parent().and_then(Path::parent) == Some(topic)
            });
        // The first is that in `configs`, where others lie in `configs.…`, too.
        let (set, members) = named.next()?;
        Some(members.iter().filter_map(move |&index| {
            let file = &self.files[index];
            let Outcome::Read(Content::Configuration(content)) = &file.outcome else {
                return None;
            };
            let within = file.path.strip_prefix(set).unwrap_or(&file.path);
            Some((within.to_string_lossy(), &**content))
        }))
    }
}

/// Which files belong to which folder of results, by its path below the root.
fn by_folder(root: &Path, files: &[ArchiveFile]) -> BTreeMap<PathBuf, Vec<usize>> {
    let mut next = 0;
    // Files that lie together belong together. Paths of one walk are compared as they are written, which is faster
    // than component by component.
    let lying_together =
        files.chunk_by(|one, other| written_folder(&one.path) == written_folder(&other.path));
    let mut folders = gathered(lying_together.map(|files| {
        let indexes = next..next + files.len();
        next = indexes.end;
        (results_folder(root, &files[0].path), indexes)
    }));
    folders.retain(|path, members| {
        let has_label = label_depth(&root.join(path)).is_some();
        members
            .iter()
            .any(|&index| is_of_results(&files[index], has_label))
    });
    folders
}

/// The folder of a file as its path is written.
fn written_folder(file: &Path) -> &[u8] {
    let path = file.as_os_str().as_encoded_bytes();
    let name = path.iter().rposition(|&byte| byte == b'/');
    &path[..name.unwrap_or(0)]
}

/// The folder of results that a file belongs to, if to any: that of its label, or where there are no labels,
/// as in a folder on its own, the one that it lies in.
fn results_folder(root: &Path, file: &Path) -> PathBuf {
    let parent = file.parent().unwrap_or(Path::new(""));
    let depth = root.components().filter(is_name).count();
    if let Some(label) = label_depth(&root.join(parent)) {
        return parent
            .components()
            .take(label.saturating_sub(depth))
            .collect();
    }
    let mut folder = parent;
    while is_raw(folder) {
        folder = folder.parent().unwrap_or(Path::new(""));
    }
    folder.to_owned()
}

/// Which files belong to which configuration set, by its folder.
fn sets(files: &[ArchiveFile]) -> BTreeMap<PathBuf, Vec<usize>> {
    let is_above =
        |component: Component<'_>| is_configurations(&component.as_os_str().to_string_lossy());
    gathered(files.iter().enumerate().filter_map(|(index, file)| {
        if file.kind != FileKind::Configuration {
            return None;
        }
        let depth = file.path.components().position(is_above)?;
        let set = file.path.components().take(depth + 2).collect();
        Some((set, index..index + 1))
    }))
}

/// What belongs to each folder.
///
/// What belongs to one mostly comes in a row, so that folders, whose paths are long, are seldom searched for.
fn gathered(
    belongings: impl Iterator<Item = (PathBuf, Range<usize>)>,
) -> BTreeMap<PathBuf, Vec<usize>> {
    let mut rows: Vec<(PathBuf, Vec<usize>)> = Vec::new();
    for (folder, indexes) in belongings {
        match rows.last_mut() {
            Some((last, members)) if last.as_os_str() == folder => members.extend(indexes),
            _ => rows.push((folder, indexes.collect())),
        }
    }
    let mut folders: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    for (folder, members) in rows {
        folders.entry(folder).or_default().extend(members);
    }
    folders
}

fn is_name(component: &Component<'_>) -> bool {
    matches!(component, Component::Normal(_))
}

/// Whether a file says that its folder is one of results. Tables, texts and numbers without a name that says what they
/// are do so where results are due.
fn is_of_results(file: &ArchiveFile, has_label: bool) -> bool {
    let Outcome::Read(content) = &file.outcome else {
        return false;
    };
    match content {
        Content::Dataset(_) => has_label || FileKind::of(&file.path) == FileKind::Dataset,
        Content::Table(table) => has_label && !table.rows.is_empty(),
        Content::Readme(text) => has_label && !(text.blocks.is_empty() && text.tables.is_empty()),
        Content::Log(_)
        | Content::EquilibriumLog(_)
        | Content::EquilibriumValues(_)
        | Content::Info(_)
        | Content::CallGraph(_)
        | Content::FoldedStacks(_)
        | Content::ProfileLog(Some(_)) => true,
        _ => false,
    }
}
