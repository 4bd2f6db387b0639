//! A tree of published results, read whole.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::file::{ArchiveFile, Outcome, read};
use super::folder::ResultsFolder;
use super::kind::FileKind;
use super::place::{ArchivePlace, label_depth};
use super::walk::walk;

/// The archive, or any part of it.
#[derive(Debug)]
pub struct ArchiveTree {
    /// Where it is.
    pub root: PathBuf,
    /// Every file, by its path.
    pub files: Vec<ArchiveFile>,
    /// Every folder of results, by its path.
    pub folders: Vec<ResultsFolder>,
}

impl ArchiveTree {
    /// Reads everything below `root`, on all processors.
    ///
    /// # Errors
    /// What the system says where `root` itself cannot be listed. Whatever is wrong further down is an
    /// [`Outcome::Failed`].
    pub fn read(root: &Path) -> io::Result<Self> {
        let found = walk(root)?;
        let mut files: Vec<ArchiveFile> = parallel(&found.files, |file| {
            let (kind, outcome) = read(root, &file.path, FileKind::of(&file.path), file.bytes);
            ArchiveFile {
                path: file.path.clone(),
                bytes: file.bytes,
                kind,
                outcome,
            }
        });
        files.extend(found.others.iter().map(|(path, why)| ArchiveFile {
            path: path.clone(),
            bytes: 0,
            kind: FileKind::Unnamed,
            outcome: Outcome::of_unwalked(why),
        }));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        // The root may itself be a part of the archive, whose path says which.
        let absolute = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let folders = by_folder(&absolute, &files);
        let folders = folders.into_iter().map(|(path, members)| {
            let place = ArchivePlace::of(&absolute.join(&path));
            ResultsFolder::new(path, place, members, &files)
        });
        Ok(Self {
            root: root.to_owned(),
            folders: folders.collect(),
            files,
        })
    }
}

/// Which files belong to which folder of results, by its path below the root.
fn by_folder(root: &Path, files: &[ArchiveFile]) -> BTreeMap<PathBuf, Vec<usize>> {
    let mut folders: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    for (index, file) in files.iter().enumerate() {
        let folder = results_folder(root, &file.path);
        folders.entry(folder).or_default().push(index);
    }
    folders.retain(|_, members| {
        members
            .iter()
            .any(|&index| is_of_results(files[index].kind))
    });
    folders
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
    let is_raw = parent.file_name().is_some_and(|name| {
        let name = name.to_string_lossy().to_ascii_uppercase();
        name == "PMC" || name == "RAW" || name.starts_with("RAW.")
    });
    let parent = if is_raw {
        parent.parent()
    } else {
        Some(parent)
    };
    parent.unwrap_or(Path::new("")).to_owned()
}

fn is_name(component: &Component<'_>) -> bool {
    matches!(component, Component::Normal(_))
}

fn is_of_results(kind: FileKind) -> bool {
    matches!(
        kind,
        FileKind::Bench(_) | FileKind::Dataset | FileKind::EquilibriumValues
    )
}

/// `of` of every item, in their order.
fn parallel<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    /// What one thread takes at a time: enough that they hardly meet, few enough that they end together.
    const BATCH: usize = 32;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let start = next.fetch_add(BATCH, Ordering::Relaxed);
            let Some(batch) = items.get(start..items.len().min(start + BATCH)) else {
                break;
            };
            if batch.is_empty() {
                break;
            }
            done.push((start, batch.iter().map(&of).collect::<Vec<R>>()));
        }
        done
    };
    let mut done: Vec<(usize, Vec<R>)> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(others) => done.extend(others),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(start, _)| *start);
    done.into_iter().flat_map(|(_, batch)| batch).collect()
}
