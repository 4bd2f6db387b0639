//! What links of texts lead to, where that lies in the tree.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::kind::is_picture;
use crate::log_name::Role;
use crate::place::label_depth;
use crate::readme::Link;
use crate::{ArchiveTree, FileKind};

/// The files of a tree by what links may say of them.
pub(super) struct LinkTargets<'a> {
    tree: &'a ArchiveTree,
    /// The endings of all files, by folder of results: one may come without its pictures, or without its programs.
    endings: OnceLock<HashSet<(PathBuf, String)>>,
    /// The paths of texts and pictures by what they are with one mark in place of every other.
    alike: OnceLock<HashMap<String, &'a Path>>,
}

/// A link to what is not there.
pub(super) struct Broken<'a> {
    /// What a path leads to that differs from the link's in its marks alone.
    pub(super) alike: Option<&'a Path>,
}

impl<'a> LinkTargets<'a> {
    pub(super) fn new(tree: &'a ArchiveTree) -> Self {
        Self {
            tree,
            endings: OnceLock::new(),
            alike: OnceLock::new(),
        }
    }

    /// What is known of a link of a text in the folder `place` that leads to nothing; none where it leads to
    /// something, or where what it leads to may have been left out of this part of the archive.
    pub(super) fn broken(&self, place: &str, link: &Link) -> Option<Broken<'a>> {
        let target = link.file().filter(|target| !target.starts_with('/'))?;
        let paths = [Some(target.to_owned()), decoded(target)];
        let paths: Vec<String> = paths
            .iter()
            .flatten()
            .filter_map(|target| target_of(place, target))
            .collect();
        let is_there = |path: &String| self.is_there(Path::new(path));
        let path = Path::new(paths.first()?);
        if paths.iter().any(is_there) {
            return None;
        }
        let alike = self.alike(path);
        let is_given = || self.is_kind_there(path) && self.is_given(place, path);
        let is_given = self.is_whole() || is_given();
        (alike.is_some() || is_given).then_some(Broken { alike })
    }

    /// Whether a file or a folder is there, as far as was looked.
    fn is_there(&self, path: &Path) -> bool {
        // Nobody has looked into a folder that was left as a whole.
        let is_left = |folder: &Path| self.file_at(folder);
        self.has_below(path)
            || path.ancestors().any(is_left)
            || self.tree.root.join(path).symlink_metadata().is_ok()
    }

    fn file_at(&self, path: &Path) -> bool {
        let files = &self.tree.files;
        files
            .binary_search_by(|file| file.path.as_path().cmp(path))
            .is_ok()
    }

    fn has_below(&self, folder: &Path) -> bool {
        let files = &self.tree.files;
        let next = files.partition_point(|file| file.path.as_path() < folder);
        files
            .get(next)
            .is_some_and(|file| file.path.starts_with(folder))
    }

    /// Whether the tree is the whole archive: a checkout of it.
    fn is_whole(&self) -> bool {
        self.file_at(Path::new(".git"))
    }

    /// Whether the folder that something should lie in is there as a whole: that of a label, of the text, or one
    /// with files of its own.
    fn is_given(&self, place: &str, path: &Path) -> bool {
        let parent = path.parent().unwrap_or(Path::new(""));
        let is_of_label = self.tree.place(Path::new(place)).label.is_some();
        if is_of_label && path.starts_with(place) {
            return true;
        }
        if let Some(depth) = label_depth(parent) {
            let label: PathBuf = parent.components().take(depth).collect();
            return self.has_below(&label);
        }
        let files = &self.tree.files;
        let next = files.partition_point(|file| file.path.as_path() < parent);
        let below = files[next..]
            .iter()
            .take_while(|file| file.path.starts_with(parent));
        below
            .take(FILES_MAX)
            .any(|file| file.path.parent() == Some(parent))
    }

    /// Whether the folder of results that something should lie in has files of its kind.
    fn is_kind_there(&self, path: &Path) -> bool {
        let endings = self.endings.get_or_init(|| {
            let files = self.tree.files.iter();
            files.filter_map(|file| kind_in(&file.path)).collect()
        });
        kind_in(path).is_none_or(|kind| endings.contains(&kind))
    }

    fn alike(&self, path: &Path) -> Option<&'a Path> {
        let alike = self.alike.get_or_init(|| {
            let is_linked =
                |kind| matches!(kind, FileKind::Readme | FileKind::Bench(Role::Picture));
            let files = self.tree.files.iter().filter(|file| is_linked(file.kind));
            let paths = files.map(|file| file.path.as_path());
            paths.map(|path| (without_marks(path), path)).collect()
        });
        alike.get(&without_marks(path)).copied()
    }
}

/// A folder is not searched for a file of its own behind so many of others.
const FILES_MAX: usize = 4096;

/// The folder of results that a file lies in, and what it ends in, with one word for all pictures. No folder comes
/// without its texts.
fn kind_in(path: &Path) -> Option<(PathBuf, String)> {
    let ending = path.extension()?.to_string_lossy().to_ascii_lowercase();
    let ending = if is_picture(&ending) { "svg" } else { &ending };
    let folder = match label_depth(path) {
        _ if ending == "md" => PathBuf::new(),
        Some(depth) => path.components().take(depth).collect(),
        None => path.parent()?.to_owned(),
    };
    Some((folder, ending.to_owned()))
}

fn without_marks(path: &Path) -> String {
    let path = path.to_string_lossy().to_lowercase();
    path.replace(['/', '-', '_', ' '], "_")
}

/// A target with `%20` and the like written out; none where there is nothing of the kind.
fn decoded(target: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = target.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| first == b'%');
        let code = code.and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(bytes).ok().filter(|text| text != target)
}

/// Where a link of a text in the folder `place` leads to, from the root; none where that is outside.
pub(super) fn target_of(place: &str, target: &str) -> Option<String> {
    let mut path: Vec<&str> = place.split('/').filter(|name| !name.is_empty()).collect();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                path.pop()?;
            }
            name => path.push(name),
        }
    }
    Some(path.join("/"))
}

/// The folders of results that links of a text in the folder `place` lead to, or into.
pub(super) fn linked_places(place: &str, links: &[Link]) -> BTreeSet<String> {
    let targets = links.iter().filter_map(Link::file);
    let mut places: BTreeSet<String> = targets
        .filter_map(|target| target_of(place, target))
        .collect();
    let folders = places.iter().filter_map(|path| path.rsplit_once('/'));
    let folders: Vec<String> = folders.map(|(folder, _)| folder.to_owned()).collect();
    places.extend(folders);
    places
}
