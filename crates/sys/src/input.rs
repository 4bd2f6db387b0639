//! The one way in which a file is opened that somebody names: in an argument, in an experiment, in a results directory.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A file to be read: a regular one of a bounded size, unless streams are taken as well.
///
/// Opening it never waits for a writer, and never touches a device.
///
/// # Examples
/// ```
/// use fwdlab_sys::{Input, Refusal};
/// let error = Input::file("/dev/zero".as_ref(), 1 << 20).bytes().unwrap_err();
/// assert!(matches!(Refusal::of(&error), Some(Refusal::NoFile { .. })));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    path: &'a Path,
    bytes_max: u64,
    tree: Option<&'a Path>,
    takes_streams: bool,
}

/// What keeps something from being read, though the system would allow it. The payload of an [`io::Error`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is no regular file.
    #[error("it is {kind}; give a regular file")]
    NoFile {
        /// What it is, with an article.
        kind: &'static str,
    },
    /// It holds more than can be meant.
    #[error("it is larger than {}, the most that is read of such a file; give a smaller one", Size(*.bytes_max))]
    TooLarge {
        /// The most that is read.
        bytes_max: u64,
    },
    /// It lies elsewhere than its name says.
    #[error(
        "it leads to {}, outside of {}; put what it leads to in its place", target.display(), tree.display()
    )]
    Outside {
        /// Where the links in its path lead.
        target: PathBuf,
        /// The folder that it is to lie in.
        tree: PathBuf,
    },
}

impl Refusal {
    /// The refusal that an error carries; none where the system refused.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::NoFile { kind: FOLDER } => io::ErrorKind::IsADirectory,
            Refusal::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            Refusal::NoFile { .. } | Refusal::Outside { .. } => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, refusal)
    }
}

const FOLDER: &str = "a folder";

impl<'a> Input<'a> {
    /// A regular file; links to one are followed.
    #[must_use]
    pub const fn file(path: &'a Path, bytes_max: u64) -> Self {
        Self {
            path,
            bytes_max,
            tree: None,
            takes_streams: false,
        }
    }

    /// A regular file, or a pipe, a terminal or another device of characters. Whoever names a pipe waits for its
    /// writer.
    #[must_use]
    pub const fn file_or_stream(path: &'a Path, bytes_max: u64) -> Self {
        Self {
            takes_streams: true,
            ..Self::file(path, bytes_max)
        }
    }

    /// The same, refused where links lead out of a folder.
    #[must_use]
    pub const fn inside(self, tree: &'a Path) -> Self {
        Self {
            tree: Some(tree),
            ..self
        }
    }

    /// Opens it; reading more than the bound is an error.
    ///
    /// # Errors
    /// What the system says, and a [`Refusal`].
    pub fn open(&self) -> io::Result<Bounded<File>> {
        Ok(Bounded::new(self.open_file()?, self.bytes_max))
    }

    /// Opens it for who needs the file itself. A regular file was not larger than the bound.
    ///
    /// # Errors
    /// What the system says, and a [`Refusal`].
    pub fn open_file(&self) -> io::Result<File> {
        if let Some(tree) = self.tree {
            check_inside(self.path, tree)?;
        }
        // Before it is opened, because to open a device may do something.
        if self.is_stream(&fs::metadata(self.path)?)? {
            return File::open(self.path);
        }
        // Another thing may have come in its place. What is a file to the kernel and blocks all the same, as
        // /proc/kmsg does, says that there is nothing to read.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(self.path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(no_file(&metadata).into());
        }
        if metadata.len() > self.bytes_max {
            return Err(self.too_large().into());
        }
        Ok(file)
    }

    /// All that it holds.
    ///
    /// # Errors
    /// What the system says, and a [`Refusal`].
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut input = self.open()?;
        let expected = input.inner.metadata().map_or(0, |metadata| metadata.len());
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(expected).unwrap_or(0))?;
        input.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// All that it holds, as text.
    ///
    /// # Errors
    /// What the system says, a [`Refusal`], and [`io::ErrorKind::InvalidData`] for what is no UTF-8.
    pub fn text(&self) -> io::Result<String> {
        String::from_utf8(self.bytes()?).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let what = format!("it is not text: byte {} is not UTF-8", at + 1);
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    fn is_stream(&self, metadata: &fs::Metadata) -> io::Result<bool> {
        let kind = metadata.file_type();
        if kind.is_file() {
            return Ok(false);
        }
        if self.takes_streams && (kind.is_fifo() || kind.is_char_device()) {
            return Ok(true);
        }
        Err(no_file(metadata).into())
    }

    const fn too_large(&self) -> Refusal {
        Refusal::TooLarge {
            bytes_max: self.bytes_max,
        }
    }
}

/// Refuses a path that leads out of a folder; both exist.
///
/// # Errors
/// What the system says, and [`Refusal::Outside`].
pub fn check_inside(path: &Path, tree: &Path) -> io::Result<()> {
    let target = fs::canonicalize(path)?;
    if target.starts_with(fs::canonicalize(tree)?) {
        return Ok(());
    }
    Err(Refusal::Outside {
        target,
        tree: tree.to_owned(),
    }
    .into())
}

fn no_file(metadata: &fs::Metadata) -> Refusal {
    let kind = metadata.file_type();
    Refusal::NoFile {
        kind: if kind.is_dir() {
            FOLDER
        } else if kind.is_fifo() {
            "a pipe"
        } else if kind.is_socket() {
            "a socket"
        } else {
            "a device"
        },
    }
}

/// A reader that fails once it has given more than a number of bytes.
#[derive(Debug)]
pub struct Bounded<R> {
    inner: R,
    bytes_max: u64,
    left: u64,
}

impl<R: Read> Bounded<R> {
    /// Bounds a reader.
    pub const fn new(inner: R, bytes_max: u64) -> Self {
        Self {
            inner,
            bytes_max,
            left: bytes_max,
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        let Some(left) = self.left.checked_sub(bytes as u64) else {
            self.left = 0;
            let bytes_max = self.bytes_max;
            return Err(Refusal::TooLarge { bytes_max }.into());
        };
        self.left = left;
        Ok(bytes)
    }
}

/// A number of bytes as people read it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{} {unit}", self.0 >> shift);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::thread;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    fn refusal(error: &io::Error) -> Refusal {
        Refusal::of(error)
            .unwrap_or_else(|| panic!("{error}"))
            .clone()
    }

    fn said(input: Input<'_>) -> String {
        refusal(&input.bytes().unwrap_err()).to_string()
    }

    #[test]
    fn a_regular_file_is_read_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(Input::file(&path, 5).bytes().unwrap(), b"12345");
        assert_eq!(Input::file(&path, 5).text().unwrap(), "12345");
        assert_eq!(
            said(Input::file(&path, 4)),
            "it is larger than 4 bytes, the most that is read of such a file; give a smaller one"
        );
        fs::write(&path, b"ab\xff").unwrap();
        let error = Input::file(&path, 5).text().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "it is not text: byte 3 is not UTF-8");
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/zero", at("link")).unwrap();
        for (path, kind) in [
            (at("pipe"), "a pipe"),
            (at("socket"), "a socket"),
            (at("link"), "a device"),
            (folder.path().to_owned(), "a folder"),
        ] {
            let error = Input::file(&path, 9).bytes().unwrap_err();
            assert_eq!(refusal(&error), Refusal::NoFile { kind });
        }
        let folder = Input::file_or_stream(folder.path(), 9).bytes().unwrap_err();
        assert_eq!(folder.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_file_without_a_size_is_bounded_while_it_is_read() {
        // The kernel says 0 bytes of it.
        let path = Path::new("/proc/self/stat");
        assert_eq!(fs::metadata(path).unwrap().len(), 0);
        assert!(Input::file(path, 1 << 20).bytes().unwrap().len() > 20);
        let error = Input::file(path, 20).bytes().unwrap_err();
        assert_eq!(refusal(&error), Refusal::TooLarge { bytes_max: 20 });
    }

    #[test]
    fn a_large_file_is_refused_unread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(
            said(Input::file(&path, 1 << 30)),
            "it is larger than 1 GiB, the most that is read of such a file; give a smaller one"
        );
    }

    #[test]
    fn a_pipe_is_read_where_streams_are_taken_and_bounded_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        let write = |bytes: usize| {
            let path = path.clone();
            thread::spawn(move || {
                // Who stops reading before the end breaks the pipe.
                let _ = File::options()
                    .write(true)
                    .open(path)
                    .unwrap()
                    .write_all(&vec![b'1'; bytes]);
            })
        };
        let writer = write(5);
        let input = Input::file_or_stream(&path, 5);
        assert_eq!(input.bytes().unwrap(), b"11111");
        writer.join().unwrap();
        let writer = write(1 << 20);
        assert!(said(input).contains("larger than 5 bytes"));
        writer.join().unwrap();
        assert!(said(Input::file_or_stream(Path::new("/dev/zero"), 1 << 16)).contains("64 KiB"));
    }

    #[test]
    fn links_may_lead_anywhere_in_the_tree_and_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
        fs::create_dir_all(tree.join("a")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(tree.join("a/file"), "in").unwrap();
        fs::write(outside.join("file"), "out").unwrap();
        symlink("a/file", tree.join("within")).unwrap();
        symlink("../outside/file", tree.join("without")).unwrap();
        symlink("../outside", tree.join("folder")).unwrap();
        symlink(&tree, root.path().join("again")).unwrap();
        let read = |path: &Path, tree: &Path| Input::file(path, 9).inside(tree).bytes();
        assert_eq!(read(&tree.join("a/file"), &tree).unwrap(), b"in");
        assert_eq!(read(&tree.join("within"), &tree).unwrap(), b"in");
        let again = root.path().join("again");
        assert_eq!(read(&again.join("within"), &again).unwrap(), b"in");
        for name in ["without", "folder/file", "a/../../outside/file"] {
            let error = read(&tree.join(name), &tree).unwrap_err();
            let target = fs::canonicalize(outside.join("file")).unwrap();
            let tree = tree.clone();
            assert_eq!(refusal(&error), Refusal::Outside { target, tree });
        }
        let none = read(&tree.join("none"), &tree).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }
}
