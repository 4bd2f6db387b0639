//! Network namespaces with names of our own, kept where `ip netns` keeps them.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::{Process, SysError, is_in_user_namespace, start_thread, start_thread_in};

const DIRECTORY: &str = "/run/netns";
const PREFIX: &str = "fwdlab";

/// A network namespace that goes when its value goes.
///
/// Its name, `fwdlab-<pid>-<start time of that process>-<role>`, says whose it is, so that what a
/// killed process left can be told from what a live one uses. `ip netns exec NAME …` can enter it,
/// unless this process is in a user namespace of its own, which has no place for names: the namespace
/// then lasts as long as the process, however that ends.
#[derive(Debug)]
pub struct NetworkNamespace {
    entrance: NamespaceEntrance,
    /// Where the name stands, where it stands anywhere.
    path: Option<PathBuf>,
}

impl NetworkNamespace {
    /// The name of the namespace that [`create`](Self::create) makes for a role.
    ///
    /// # Errors
    /// When `/proc` does not say who this process is.
    pub fn name_of(role: &str) -> Result<String, SysError> {
        let Process { pid, start_time } = Process::this()?;
        Ok(format!("{PREFIX}-{pid}-{start_time}-{role}"))
    }

    /// Makes a new, empty namespace for one role of this process's lab.
    ///
    /// # Errors
    /// Without the privilege to make one, or when the name is taken.
    pub fn create(role: &str) -> Result<Self, SysError> {
        let name = Self::name_of(role)?;
        let what = || format!("making network namespace {name}");
        if is_in_user_namespace() {
            let file = make_nameless().map_err(|source| SysError::new(what(), source))?;
            return Ok(Self {
                entrance: NamespaceEntrance { name, file },
                path: None,
            });
        }
        let path = Path::new(DIRECTORY).join(&name);
        share_directory()?;
        File::create_new(&path).map_err(|source| SysError::new(what(), source))?;
        // The thread that enters the new namespace must end in it, so it is one of its own.
        let target = path.clone();
        let made = start_thread(move || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            mount(
                Some("/proc/thread-self/ns/net"),
                &target,
                None::<&str>,
                MsFlags::MS_BIND,
                None::<&str>,
            )
        })
        .and_then(|thread| {
            let made = thread.join().expect("two system calls do not panic");
            made.map_err(|errno| SysError::new(what(), errno))
        });
        if let Err(error) = made {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        let file = File::open(&path).map_err(|source| {
            let _ = remove(&path);
            SysError::new(what(), source)
        })?;
        Ok(Self {
            entrance: NamespaceEntrance { name, file },
            path: Some(path),
        })
    }

    /// The name under which `ip netns` knows it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.entrance.name()
    }

    /// The number by which the kernel tells namespaces apart.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn number(&self) -> Result<u64, SysError> {
        let metadata = self.entrance.file.metadata().map_err(|source| {
            SysError::new(format!("asking for namespace {}", self.name()), source)
        })?;
        Ok(metadata.ino())
    }

    /// Runs a closure on a thread inside the namespace.
    ///
    /// # Errors
    /// Without the privilege to enter it.
    ///
    /// # Panics
    /// When the closure does.
    pub fn run<T: Send>(&self, closure: impl FnOnce() -> T + Send) -> Result<T, SysError> {
        self.entrance.run(closure)
    }

    /// Prepares a command to start inside the namespace.
    ///
    /// The command starts as a child of the calling thread, and not of one that ends at once, as in [`run`](Self::run).
    ///
    /// # Errors
    /// When this process may open no more files.
    pub fn start_inside(&self, command: &mut Command) -> Result<(), SysError> {
        let file = self.entrance()?.file;
        // SAFETY: between fork and exec it makes one system call on a descriptor that it owns, and touches no memory
        // but its own.
        unsafe {
            command.pre_exec(move || Ok(setns(&file, CloneFlags::CLONE_NEWNET)?));
        }
        Ok(())
    }

    /// Another way into it.
    ///
    /// # Errors
    /// When this process may open no more files.
    pub fn entrance(&self) -> Result<NamespaceEntrance, SysError> {
        let file = self.entrance.file.try_clone().map_err(|source| {
            SysError::new(format!("opening namespace {} again", self.name()), source)
        })?;
        Ok(NamespaceEntrance {
            name: self.name().to_owned(),
            file,
        })
    }
}

/// A way into a namespace, beside the value that made it; it has no say in how long the name stays.
#[derive(Debug)]
pub struct NamespaceEntrance {
    name: String,
    file: File,
}

impl NamespaceEntrance {
    /// The namespace's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a closure on a thread inside the namespace.
    ///
    /// # Errors
    /// Without the privilege to enter it.
    ///
    /// # Panics
    /// When the closure does.
    pub fn run<T: Send>(&self, closure: impl FnOnce() -> T + Send) -> Result<T, SysError> {
        run_inside(&self.file, closure)
            .map_err(|errno| SysError::new(format!("entering namespace {}", self.name), errno))
    }
}

/// Runs a closure on a thread inside the namespace behind a file.
pub(crate) fn run_inside<T: Send>(
    file: &File,
    closure: impl FnOnce() -> T + Send,
) -> nix::Result<T> {
    std::thread::scope(|scope| {
        let thread = start_thread_in(scope, || {
            setns(file, CloneFlags::CLONE_NEWNET)?;
            Ok(closure())
        });
        // The kernel's word for it, as for what the thread does.
        let thread = thread.map_err(|error| {
            let number = error.source.raw_os_error();
            number.map_or(Errno::EAGAIN, Errno::from_raw)
        })?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl AsFd for NetworkNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.entrance.file.as_fd()
    }
}

impl Drop for NetworkNamespace {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What cannot be removed now is found by the next run.
            let _ = remove(path);
        }
    }
}

/// Makes a network namespace that only its descriptor keeps.
pub(crate) fn make_nameless() -> io::Result<File> {
    // The thread that enters the new namespace must end in it, so it is one of its own.
    start_thread(|| {
        unshare(CloneFlags::CLONE_NEWNET)?;
        File::open("/proc/thread-self/ns/net")
    })
    .map_err(io::Error::other)?
    .join()
    .expect("two system calls do not panic")
}

/// Runs a closure on a thread inside a namespace that has a name, whoever made it; none where there
/// is no such namespace.
///
/// # Errors
/// Without the privilege to enter it.
///
/// # Panics
/// When the closure does.
pub fn run_in_namespace<T: Send>(
    name: &str,
    closure: impl FnOnce() -> T + Send,
) -> Result<Option<T>, SysError> {
    let what = || format!("entering namespace {name}");
    let path = Path::new(DIRECTORY).join(name);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SysError::new(what(), error)),
    };
    match run_inside(&file, closure) {
        Ok(result) => Ok(Some(result)),
        // A file without a namespace behind it: its maker was killed in between.
        Err(Errno::EINVAL) => Ok(None),
        Err(errno) => Err(SysError::new(what(), errno)),
    }
}

/// Removes a namespace of fwdlab's, whoever made it; one that is gone already is no error.
///
/// # Errors
/// When the name is not one of fwdlab's, or the kernel refuses.
pub fn remove_namespace(name: &str) -> Result<(), SysError> {
    let what = || format!("removing namespace {name}");
    if owner(name).is_none() || name.contains('/') {
        return Err(SysError::new(what(), io::ErrorKind::InvalidInput));
    }
    remove(&Path::new(DIRECTORY).join(name)).map_err(|errno| SysError::new(what(), errno))
}

/// Names of the namespaces whose processes are gone, in ascending order; none for a process in a user
/// namespace of its own, because those that have names belong to root.
///
/// # Errors
/// When they cannot be listed.
pub fn leftover_namespaces() -> Result<Vec<String>, SysError> {
    if is_in_user_namespace() {
        return Ok(Vec::new());
    }
    let entries = match fs::read_dir(DIRECTORY) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SysError::new(format!("listing {DIRECTORY}"), error)),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| owner(name).is_some_and(|owner| !owner.is_alive()))
        .collect();
    names.sort();
    Ok(names)
}

/// Removes the namespaces of processes that are gone, and names them.
///
/// # Errors
/// When one of them cannot be removed.
pub fn remove_leftovers() -> Result<Vec<String>, SysError> {
    let names = leftover_namespaces()?;
    names.iter().try_for_each(|name| remove_namespace(name))?;
    Ok(names)
}

/// The process in a name of ours; nothing for anybody else's.
fn owner(name: &str) -> Option<Process> {
    let mut parts = name.strip_prefix(PREFIX)?.strip_prefix('-')?.splitn(3, '-');
    let owner = Process {
        pid: parts.next()?.parse().ok()?,
        start_time: parts.next()?.parse().ok()?,
    };
    parts.next().filter(|role| !role.is_empty()).map(|_| owner)
}

fn remove(path: &Path) -> nix::Result<()> {
    match umount2(path, MntFlags::MNT_DETACH) {
        // Not a mount point: the process was killed between making the file and mounting it.
        Ok(()) | Err(Errno::EINVAL) => {}
        // Another run that has just started was faster.
        Err(Errno::ENOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    match nix::unistd::unlink(path) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Makes the directory what `ip netns` expects: a shared mount, so that names made here are seen in
/// every mount namespace.
fn share_directory() -> Result<(), SysError> {
    let what = || format!("preparing {DIRECTORY}");
    fs::create_dir_all(DIRECTORY).map_err(|source| SysError::new(what(), source))?;
    let share = || {
        let flags = MsFlags::MS_SHARED | MsFlags::MS_REC;
        mount(None::<&str>, DIRECTORY, None::<&str>, flags, None::<&str>)
    };
    if share().is_ok() {
        return Ok(());
    }
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(
        Some(DIRECTORY),
        DIRECTORY,
        None::<&str>,
        flags,
        None::<&str>,
    )
    .and_then(|()| share())
    .map_err(|errno| SysError::new(what(), errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_have_an_owner() {
        let owner_12 = Process {
            pid: 12,
            start_time: 345,
        };
        assert_eq!(owner("fwdlab-12-345-dut"), Some(owner_12));
        for name in [
            "fwdlab-12-345",
            "fwdlab-12-345-",
            "fwdlab-x-1-dut",
            "other-12-345-dut",
            "dut",
        ] {
            assert_eq!(owner(name), None, "{name}");
        }
    }

    #[test]
    fn nothing_but_a_namespace_of_ours_can_be_removed() {
        for name in ["dut", "fwdlab-1-2-../../x", "../fwdlab-1-2-dut"] {
            assert!(remove_namespace(name).is_err(), "{name}");
        }
        remove_namespace("fwdlab-1-2-nothing-there").unwrap();
    }
}
