//! How what stands in files is had.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Diagnostics, Source, Span};
use crate::digest::sha256;
use crate::words::safe_name;

/// What stands in files.
pub type Read<'r> = &'r dyn Files;

/// Files: those of a disk, or in tests of memory.
pub trait Files {
    /// The text of a file.
    ///
    /// # Errors
    /// Where there is no such text.
    fn text(&self, path: &Path) -> io::Result<String>;

    /// SHA-256 of all that is in a file or a folder, in hexadecimal.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn sha256(&self, path: &Path) -> io::Result<String>;

    /// Whether messages may quote a file that another one names: who wrote that may not be who reads the messages, and
    /// the file another's secret.
    fn is_quotable(&self, _path: &Path, _named_by: &Path) -> bool {
        true
    }
}

/// Of what knows texts only, the content is the text.
impl<F: Fn(&Path) -> io::Result<String>> Files for F {
    fn text(&self, path: &Path) -> io::Result<String> {
        self(path)
    }

    fn sha256(&self, path: &Path) -> io::Result<String> {
        Ok(sha256(self(path)?.as_bytes()))
    }
}

/// Reads a file; the place is where it is named.
pub(crate) fn open(
    path: &Path,
    read: Read<'_>,
    place: Option<(&Arc<Source>, Span)>,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<Source>> {
    let text = read.text(path);
    let named_by = place.as_ref().map(|(by, _)| Arc::clone(by));
    let text = read_or_said(path, text, place, diagnostics)?;
    Some(Arc::new(Source {
        path: path.to_owned(),
        text,
        is_quotable: named_by.is_none_or(|by| read.is_quotable(path, &by.path)),
    }))
}

/// What was read; says why where it was not.
pub(crate) fn read_or_said<T>(
    path: &Path,
    read: io::Result<T>,
    place: Option<(&Arc<Source>, Span)>,
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    match read {
        Ok(content) => Some(content),
        Err(error) => {
            diagnostics.error(place, format!("cannot read {}: {error}", shown(path)));
            None
        }
    }
}

/// A path that a file names, relative to that file.
pub(crate) fn beside(file: &Path, named: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(named)
}

/// A path as messages show it: without the folders that it goes into and out of again.
pub(crate) fn shown(path: &Path) -> String {
    let mut shown = PathBuf::new();
    for part in path.components() {
        let before = shown.components().next_back();
        let goes_back = part == Component::ParentDir;
        if goes_back && matches!(before, Some(Component::Normal(_))) {
            shown.pop();
        } else {
            shown.push(part);
        }
    }
    shown.display().to_string()
}

/// The name under which the results of a file are kept.
pub(crate) fn short_name(path: &Path, otherwise: &str) -> String {
    path.file_stem()
        .and_then(|stem| safe_name(&stem.to_string_lossy()))
        .unwrap_or_else(|| otherwise.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_without_detours() {
        for (path, expected) in [
            ("experiments/../labs/netns.toml", "labs/netns.toml"),
            (
                "tests/data/../../../../labs/netns.toml",
                "../../labs/netns.toml",
            ),
            ("../labs/netns.toml", "../labs/netns.toml"),
            ("./a.toml", "./a.toml"),
            ("/a/b/../c.toml", "/a/c.toml"),
        ] {
            assert_eq!(shown(Path::new(path)), expected);
        }
    }
}
