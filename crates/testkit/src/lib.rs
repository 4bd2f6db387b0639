#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use std::any::type_name_of_val;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use mutation::{Mutation, change_a_file};
pub use random::Random;
pub use soak::{cases, is_soak};
pub use ssh_lab::{Host, Reboots, SshLab};

pub mod burner;
mod mutation;
mod random;
mod soak;
pub mod ssh_lab;

/// No wait in a test may take longer than this, whatever else the machine does.
const WAIT_S_MAX: u64 = 120;

/// The environment variable that names the file to which skipped tests are appended.
pub const SKIPPED_LOG: &str = "FWDLAB_SKIPPED_LOG";

/// Ends the test that calls it as skipped, with a reason in the form of `format!`.
///
/// The test may return `()` or a `Result` whose `Ok` is `()`.
///
/// # Panics
/// Where `CI=true`: nothing may be skipped there.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)+) => {{
        fn here() {}
        $crate::record_skip($crate::enclosing_test(&here), &::std::format!($($reason)+));
        return $crate::Skipped::skipped();
    }};
}

/// Skips the test unless it runs as root.
#[macro_export]
macro_rules! require_root {
    () => {
        if !$crate::is_root() {
            $crate::skip!("not root");
        }
    };
}

/// Skips the test unless every program named is on the `PATH`.
#[macro_export]
macro_rules! require_tool {
    ($($program:expr),+ $(,)?) => {
        $(if $crate::tool($program).is_none() {
            $crate::skip!("{} is not installed; `cargo xtask setup` installs it", $program);
        })+
    };
}

/// Skips the test unless maps can be pinned.
#[macro_export]
macro_rules! require_bpf_file_system {
    () => {
        if !$crate::is_mounted("bpf", "/sys/fs/bpf") {
            $crate::skip!(
                "no BPF file system is mounted at /sys/fs/bpf; `cargo xtask setup` mounts it"
            );
        }
    };
}

/// Skips the test unless an OpenSSH server is installed, on the `PATH` or not.
#[macro_export]
macro_rules! require_sshd {
    () => {
        if $crate::sshd().is_none() {
            $crate::skip!("sshd is not installed; `cargo xtask setup` installs it");
        }
    };
}

/// The path of a file or folder of the shared data; skips the test where it is missing.
#[macro_export]
macro_rules! require_shared {
    ($path:expr) => {
        match $crate::shared_dir().map(|shared| shared.join($path)) {
            Some(path) if path.exists() => path,
            _ => $crate::skip!("no shared/{} beside the repository", $path),
        }
    };
}

/// The folder `shared` beside the repository, with data that is too large or not ours to commit.
#[must_use]
pub fn shared_dir() -> Option<PathBuf> {
    // crates/testkit -> the repository -> what it lies in.
    let beside_repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3)?;
    Some(beside_repository.join("shared")).filter(|shared| shared.is_dir())
}

/// Whether a file system of that type is mounted at a place.
#[must_use]
pub fn is_mounted(file_system: &str, place: &str) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|mount| {
        let mut words = mount.split(' ').skip(1);
        words.next() == Some(place) && words.next() == Some(file_system)
    })
}

/// Where a program lies, looked up as a shell would.
#[must_use]
pub fn tool(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Puts BusyBox's applets into a folder, by their names.
///
/// # Panics
/// Where there is no `busybox`, or the folder cannot be written to.
pub fn install_applets(folder: &Path) {
    succeed(
        Command::new("busybox")
            .args(["--install", "-s"])
            .arg(folder),
    );
}

/// Where the OpenSSH server lies, which is seldom on a user's `PATH`.
#[must_use]
pub fn sshd() -> Option<PathBuf> {
    // It starts itself anew for each connection, for which it wants its whole path.
    tool("sshd")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from("/usr/sbin/sshd")).filter(|path| path.is_file()))
}

/// Whether the effective user is root.
#[must_use]
pub fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| effective_user(&status) == Some(0))
}

fn effective_user(proc_status: &str) -> Option<u32> {
    let users = proc_status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until something holds.
///
/// # Panics
/// Where it does not come to that within two minutes.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(WAIT_S_MAX);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(1));
    }
}

/// Every file below a folder: those of a folder by name, its folders' where these stand among them.
///
/// # Panics
/// Where a folder cannot be listed.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    let below = |entry: PathBuf| {
        if entry.is_dir() {
            files_below(&entry)
        } else {
            vec![entry]
        }
    };
    entries.into_iter().flat_map(below).collect()
}

/// Copies a folder with all that is below it into one that is made where it is missing.
///
/// # Panics
/// Where one cannot be read or written.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder can be made");
    for entry in fs::read_dir(from).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a file can be copied");
        }
    }
}

/// Runs a command that has to work.
///
/// # Panics
/// Where it cannot be started or fails, with what it said.
pub fn succeed(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    output
}

/// Sends a signal (`-INT`) to a process that lives, by the shell: not every machine has the program `kill`.
///
/// # Panics
/// Where there is no such process.
pub fn signal(pid: u32, signal: &str) {
    let script = "kill \"$0\" \"$1\"";
    succeed(Command::new("sh").args(["-c", script, signal, &pid.to_string()]));
}

/// What a command said and how it ended, for messages.
#[must_use]
pub fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{}\n{stdout}{stderr}", output.status)
}

/// Waits for the machine to be this test's alone, against tests of the same program and of others, which
/// want the same CPU; it is until the file is dropped.
///
/// # Panics
/// Where there is no room for the file.
#[must_use]
pub fn own_the_machine() -> File {
    let path = env::temp_dir().join("fwdlab-tests-own-the-machine");
    let file = File::create(path).expect("the folder for temporary files can be written");
    file.lock().expect("the file can be locked");
    file
}

/// What a skipped test returns.
pub trait Skipped {
    /// The value of a test that has nothing to complain about.
    fn skipped() -> Self;
}

impl Skipped for () {
    fn skipped() {}
}

impl<E> Skipped for Result<(), E> {
    fn skipped() -> Self {
        Ok(())
    }
}

/// The path of the function in which `skip!` stands, from the type of a function declared there.
///
/// The thread's name would not do: with one test thread the tests run on the main one.
#[doc(hidden)]
#[must_use]
pub fn enclosing_test<F>(declared_inside: &F) -> &'static str {
    let path = type_name_of_val(declared_inside);
    let path = path.rsplit_once("::").map_or(path, |(outside, _)| outside);
    path.split("::{{closure}}").next().unwrap_or(path)
}

#[doc(hidden)]
pub fn record_skip(test: &str, reason: &str) {
    let ci = env::var_os("CI").is_some_and(|value| value == "true" || value == "1");
    record(
        test,
        reason,
        ci,
        env::var_os(SKIPPED_LOG).as_deref().map(Path::new),
    );
}

#[allow(
    clippy::print_stdout,
    reason = "a test's output is where its reason is looked for"
)]
fn record(test: &str, reason: &str, ci: bool, log: Option<&Path>) {
    println!("skipped: {test}: {reason}");
    assert!(
        !ci,
        "{test}: skipped with CI=true ({reason}); everything has to run there"
    );
    if let Some(log) = log {
        // One write a line, so that tests running at the same time do not mix theirs.
        let line = format!("{test}\t{}\n", reason.replace(['\n', '\t'], " "));
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("{}: {error}", log.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_user_is_the_second_of_the_four() {
        assert_eq!(
            effective_user("Name:\tx\nUid:\t1000\t0\t1000\t1000\n"),
            Some(0)
        );
        assert_eq!(effective_user("Uid:\t0\t65534\t0\t0\n"), Some(65534));
        assert_eq!(effective_user("Gid:\t0\t0\t0\t0\n"), None);
    }

    #[test]
    fn the_enclosing_test_is_named_with_its_path() {
        fn here() {}
        assert_eq!(
            enclosing_test(&here),
            "testkit::tests::the_enclosing_test_is_named_with_its_path"
        );
        let in_closure = || {
            fn here() {}
            enclosing_test(&here)
        };
        assert_eq!(
            in_closure(),
            "testkit::tests::the_enclosing_test_is_named_with_its_path"
        );
    }

    #[test]
    fn tools_are_found_on_the_path_only() {
        assert!(tool("cargo").is_some());
        assert_eq!(tool("no-such-program"), None);
    }

    #[test]
    fn what_a_command_said_is_told_where_it_fails() {
        let output = succeed(Command::new("sh").args(["-c", "echo here"]));
        assert_eq!(text(&output), "exit status: 0\nhere\n");
        let failure = std::panic::catch_unwind(|| {
            succeed(Command::new("sh").args(["-c", "echo no >&2; exit 3"]));
        });
        let message = *failure.unwrap_err().downcast::<String>().unwrap();
        assert!(message.ends_with("exit status: 3\nno\n"), "{message}");
    }

    #[test]
    fn a_wait_ends_when_it_holds() {
        let mut looks = 0;
        wait_until("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }

    #[test]
    fn skips_are_appended_one_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("skipped");
        record("a::b", "no\ttool", false, Some(&log));
        record("c", "not root", false, Some(&log));
        assert_eq!(
            fs::read_to_string(log).unwrap(),
            "a::b\tno tool\nc\tnot root\n"
        );
    }

    #[test]
    #[should_panic(expected = "a::b: skipped with CI=true (not root)")]
    fn in_ci_a_skip_is_a_failure() {
        record("a::b", "not root", true, None);
    }

    #[test]
    fn requirements_that_are_met_let_the_test_go_on() {
        fn reaches_its_end() -> Result<bool, String> {
            require_tools()?;
            Ok(true)
        }
        fn require_tools() -> Result<(), String> {
            require_tool!("cargo", "rustc");
            Ok(())
        }
        assert_eq!(reaches_its_end(), Ok(true));
    }
}
