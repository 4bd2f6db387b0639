//! Everything that a program starts, and that these start, so that it can be ended as a whole.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::SysError;
use crate::cpu_time::process_ids;
use crate::detached_mount::descriptor;

/// The variable of the environment that marks descendants.
pub const STARTED_MARK: &str = "FWDLAB_STARTED";

/// How long processes may take to end once they are killed: one that waits for a disk ends when that answers.
const ENDING_MAX: Duration = Duration::from_secs(5);

/// The descendants of a program: those in a control group of their own, where there can be one, and those whose
/// environment has their mark.
///
/// Out of a control group only root's programs come. A mark is inherited by whatever does not clear its environment, those
/// included that leave their session (`setsid`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendants {
    mark: String,
    group: Option<PathBuf>,
}

impl Descendants {
    /// Those of a program that is to be started, under a mark that nothing else has on this machine. Nothing is made yet,
    /// so that both can be written down first.
    #[must_use]
    pub fn marked(mark: &str) -> Self {
        Self {
            mark: mark.to_owned(),
            group: own_group().map(|own| own.join(mark)),
        }
    }

    /// Those that were written down.
    #[must_use]
    pub fn written_down(mark: &str, group: Option<&Path>) -> Self {
        Self {
            mark: mark.to_owned(),
            group: group.map(Path::to_owned),
        }
    }

    /// Their mark.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// The folder of their control group.
    #[must_use]
    pub fn group(&self) -> Option<&Path> {
        self.group.as_deref()
    }

    /// Has a command start as the first of them.
    ///
    /// The command is started by a fork of this whole process, which takes longer the more memory it has.
    pub fn begin_with(&self, command: &mut Command) {
        command.env(STARTED_MARK, &self.mark);
        let Some(group) = &self.group else {
            return;
        };
        // Without the right to make or to join it, the mark is all there is.
        let joined = fs::create_dir(group).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        });
        let members = joined.and_then(|()| {
            let members = group.join("cgroup.procs");
            OpenOptions::new().write(true).open(members)
        });
        let Ok(members) = members else {
            return;
        };
        // SAFETY: between fork and exec it makes one system call on a descriptor that it owns, and touches no memory but
        // its own.
        unsafe {
            command.pre_exec(move || {
                // 0 is whoever writes; where that is refused, the mark is all there is.
                libc::write(members.as_raw_fd(), c"0".as_ptr().cast(), 1);
                Ok(())
            });
        }
    }

    /// The processes among them that can be seen now.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let mut found: Vec<u32> = self.group.as_deref().map_or_else(Vec::new, members);
        let wanted = self.entry();
        for process in others() {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            if !found.contains(&process) && has_entry(&environment, &wanted) {
                found.push(process);
            }
        }
        found
    }

    /// The entry of the environment that marks them.
    fn entry(&self) -> Vec<u8> {
        format!("{STARTED_MARK}={}", self.mark).into_bytes()
    }

    /// Ends all of them, and returns once they are gone; none is no error.
    ///
    /// # Errors
    /// Where some do not end, or may not be ended.
    pub fn end(&self) -> Result<(), SysError> {
        let failed = |error| SysError::new(format!("ending what {} started", self.mark), error);
        if let Some(group) = self.group.as_deref().filter(|group| group.is_dir()) {
            end_group(group).map_err(failed)?;
        }
        // Those that could not join the group, or were moved to another one.
        let deadline = Instant::now() + ENDING_MAX;
        loop {
            let found = self.end_marked(deadline).map_err(failed)?;
            let is_late = Instant::now() > deadline;
            match found {
                Marked::Some if is_late => return Err(failed(io::ErrorKind::TimedOut.into())),
                Marked::None => return Ok(()),
                // Nothing is in exec(2) for that long: it has unmapped a part of its environment.
                Marked::Unread if is_late => return Ok(()),
                Marked::Some | Marked::Unread => sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Kills those that have the mark now and waits until they are gone; what there was.
    fn end_marked(&self, deadline: Instant) -> io::Result<Marked> {
        let wanted = self.entry();
        let (mut killed, mut found) = (Vec::new(), Marked::None);
        for process in others() {
            // By its descriptor, because its number may be another's by the time it is killed.
            let Ok(held) = hold(process) else {
                continue;
            };
            // Of another user's process it cannot be read, and so none of these is.
            let Ok(environment) = fs::read(format!("/proc/{process}/environ")) else {
                continue;
            };
            if has_entry(&environment, &wanted) {
                kill(&held)?;
                killed.push(held);
                found = Marked::Some;
            } else if found == Marked::None && !is_whole(process, environment.len()) {
                found = Marked::Unread;
            }
        }
        for held in killed {
            await_end(&held, deadline)?;
        }
        Ok(found)
    }
}

/// All processes but this one.
fn others() -> impl Iterator<Item = u32> {
    let this = std::process::id();
    process_ids()
        .into_iter()
        .filter(move |&process| process != this)
}

fn has_entry(environment: &[u8], wanted: &[u8]) -> bool {
    let mut entries = environment.split(|&byte| byte == 0);
    entries.any(|entry| entry == wanted)
}

/// What one look for processes with a mark has found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marked {
    Some,
    /// None, and a process whose environment could not be read whole.
    Unread,
    None,
}

/// Whether what was read of an environment, in bytes, was all of it.
///
/// It is not while the process is in exec(2): the old one goes between two reads, and the new one comes later.
fn is_whole(process: u32, length: usize) -> bool {
    let stat = fs::read(format!("/proc/{process}/stat")).unwrap_or_default();
    let memory = Memory::of_stat(&String::from_utf8_lossy(&stat));
    memory.is_none_or(|memory| memory.has_environment_of(length))
}

/// What proc(5) says of the memory of a process.
#[derive(Debug, PartialEq, Eq)]
struct Memory {
    /// Virtual memory in bytes; kernel threads and processes that have ended have none.
    size: u64,
    /// The address where the code begins; 0 until a new program is complete.
    code: u64,
    /// The addresses where the environment begins and ends, of which the second grows while a new program is given it.
    environment: (u64, u64),
}

impl Memory {
    /// The 23rd, 26th, 50th and 51st field of `/proc/PID/stat`.
    fn of_stat(stat: &str) -> Option<Self> {
        let (_, after) = stat.rsplit_once(')')?;
        let mut fields = after.split_ascii_whitespace().skip(20);
        let mut next = |skipped| fields.nth(skipped)?.parse().ok();
        Some(Self {
            size: next(0)?,
            code: next(2)?,
            environment: (next(23)?, next(0)?),
        })
    }

    /// Whether the environment has a length in bytes; without memory there is none, which has any.
    fn has_environment_of(&self, length: usize) -> bool {
        let (start, end) = self.environment;
        let is_length = end.checked_sub(start) == u64::try_from(length).ok();
        self.size == 0 || (is_length && (length > 0 || self.code > 0))
    }
}

/// Waits until a process has ended: one that was killed loses its memory first, its open files afterwards.
fn await_end(held: &OwnedFd, deadline: Instant) -> io::Result<()> {
    let mut watched = libc::pollfd {
        fd: held.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: a plain system call on one record that outlives it.
        let ready = unsafe { libc::poll(&raw mut watched, 1, left) };
        match Errno::result(ready) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
        }
    }
}

/// Holds on to a process.
fn hold(process: u32) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call, which returns a new descriptor.
    descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) })
}

fn kill(held: &OwnedFd) -> io::Result<()> {
    let none: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: a plain system call on a descriptor that is open; without further information about the signal.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            held.as_raw_fd(),
            libc::SIGKILL,
            none,
            0,
        )
    };
    match Errno::result(result) {
        // Where there is none, it has ended by itself.
        Ok(_) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Kills all members of a control group and of those below it, waits until they are gone, and removes it.
fn end_group(group: &Path) -> io::Result<()> {
    let deadline = Instant::now() + ENDING_MAX;
    let kill_all = OpenOptions::new()
        .write(true)
        .open(group.join("cgroup.kill"));
    // Kernels before 5.14 have no such file.
    let kills_all = match kill_all.and_then(|mut file| file.write_all(b"1")) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    loop {
        if !kills_all {
            kill_members(group)?;
        }
        match remove_group(group) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Some are not yet gone.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                if Instant::now() > deadline {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
        sleep(Duration::from_millis(1));
    }
}

/// The processes of a control group and of those below it; none where there is no such group.
fn members(group: &Path) -> Vec<u32> {
    let own = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let own = own.lines().filter_map(|line| line.parse().ok());
    let below = groups_below(group);
    own.chain(below.iter().flat_map(|below| members(below)))
        .collect()
}

fn kill_members(group: &Path) -> io::Result<()> {
    for process in members(group) {
        if let Ok(held) = hold(process) {
            kill(&held)?;
        }
    }
    Ok(())
}

fn remove_group(group: &Path) -> io::Result<()> {
    for below in groups_below(group) {
        match remove_group(&below) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(group)
}

fn groups_below(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// The folder of the control group (version 2) that this process is in; none where the machine shows none.
fn own_group() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    group_of(&mounts, &groups)
}

fn group_of(mounts: &str, groups: &str) -> Option<PathBuf> {
    let own = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        if after.split(' ').next()? != "cgroup2" {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        // What is mounted may be a part of the tree, and this process somewhere else in it.
        Some(Path::new(at).join(own.strip_prefix(root).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};
    use std::process::Stdio;

    use proptest::prelude::*;

    use super::*;

    /// Starts a shell that starts, out of its session too, programs that would run for an hour; tells their numbers.
    fn start(descendants: &Descendants) -> Vec<u32> {
        let script =
            "sleep 3600 & echo $!; setsid sleep 3600 & echo $!; (sleep 3600 & echo $!) & wait $!";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        descendants.begin_with(&mut command);
        // A pipe would stay open as long as they run.
        let mut output = crate::memory_file().unwrap();
        command.stdout(output.try_clone().unwrap());
        assert!(command.status().unwrap().success());
        let mut text = String::new();
        output.rewind().unwrap();
        output.read_to_string(&mut text).unwrap();
        let started: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(started.len(), 3, "{text}");
        started
    }

    fn is_alive(process: u32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
        state.is_some_and(|state| state != "Z" && state != "X")
    }

    fn prove_ended(descendants: &Descendants) {
        let started = start(descendants);
        assert!(
            started.iter().all(|&process| is_alive(process)),
            "{started:?}"
        );
        descendants.end().unwrap();
        assert!(
            !started.iter().any(|&process| is_alive(process)),
            "{started:?}"
        );
        // Once more is as good as once.
        descendants.end().unwrap();
    }

    #[test]
    fn descendants_end_as_a_whole_by_their_mark() {
        testkit::require_tool!("sleep", "setsid");
        let mark = format!("fwdlab-test-{}-mark", std::process::id());
        let others = Descendants::written_down(&format!("{mark}-other"), None);
        let untouched = start(&others);
        prove_ended(&Descendants::written_down(&mark, None));
        assert!(untouched.iter().all(|&process| is_alive(process)));
        others.end().unwrap();
    }

    #[test]
    fn descendants_end_as_a_whole_with_their_group() {
        testkit::require_tool!("sleep", "setsid");
        let descendants = Descendants::marked(&format!("fwdlab-test-{}-group", std::process::id()));
        prove_ended(&descendants);
        // Where there is no right to make a group, the mark has done it.
        assert!(descendants.group().is_none_or(|group| !group.exists()));
    }

    #[test]
    fn a_group_ends_member_by_member_on_older_kernels() {
        testkit::require_tool!("sleep", "setsid");
        let descendants = Descendants::marked(&format!("fwdlab-test-{}-older", std::process::id()));
        let started = start(&descendants);
        let Some(group) = descendants.group().filter(|group| group.is_dir()) else {
            return descendants.end().unwrap();
        };
        while started.iter().any(|&process| is_alive(process)) {
            kill_members(group).unwrap();
        }
        descendants.end().unwrap();
    }

    #[test]
    fn an_environment_is_read_whole_or_known_not_to_be() {
        // The fields of proc(5) from the third on.
        let memory = |size: u64, code: u64, start: u64, end: u64| {
            let mut fields = vec!["7".to_owned(); 50];
            (fields[20], fields[23]) = (size.to_string(), code.to_string());
            (fields[47], fields[48]) = (start.to_string(), end.to_string());
            Memory::of_stat(&format!("12 (a) b) {}", fields.join(" "))).unwrap()
        };
        let (size, code, environment) = (9, 8, (64, 81));
        let read = Memory {
            size,
            code,
            environment,
        };
        assert_eq!(memory(9, 8, 64, 81), read);
        assert_eq!(Memory::of_stat("12 (a) S 1"), None);
        assert!(read.has_environment_of(17));
        assert!(!read.has_environment_of(0));
        assert!(!memory(9, 8, 81, 64).has_environment_of(0));
        // While the new program is given its own.
        assert!(!memory(9, 0, 0, 0).has_environment_of(0));
        assert!(!memory(9, 0, 64, 64).has_environment_of(0));
        assert!(!memory(9, 0, 64, 81).has_environment_of(0));
        // Started with none; without memory.
        assert!(memory(9, 8, 64, 64).has_environment_of(0));
        assert!(memory(0, 0, 0, 0).has_environment_of(0));
        let this = std::process::id();
        let own = fs::read("/proc/self/environ").unwrap();
        assert!(is_whole(this, own.len()));
        assert!(!is_whole(this, own.len() + 1));
        // The kernel's own have no memory, if any are shown here.
        let kernel = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
        assert!(!kernel || is_whole(2, 0));
    }

    #[test]
    fn what_is_in_exec_time_and_again_is_ended() {
        testkit::require_tool!("sh");
        for case in 0..20 {
            let mark = format!("fwdlab-test-{}-exec-{case}", std::process::id());
            let descendants = Descendants::written_down(&mark, None);
            let mut command = Command::new("sh");
            command.args(["-c", "exec sh -c \"$0\" \"$0\"", "exec sh -c \"$0\" \"$0\""]);
            descendants.begin_with(&mut command);
            let mut child = command.spawn().unwrap();
            let until = Instant::now() + Duration::from_micros(700 * case);
            while Instant::now() < until {}
            descendants.end().unwrap();
            // It would go on for ever.
            let ended = child.try_wait().unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(ended.is_some(), "case {case}");
        }
    }

    #[test]
    fn the_group_is_found_where_it_is_mounted() {
        let mounts = "22 1 0:21 / /proc rw,nosuid - proc proc rw\n\
                      30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let of = |mounts, groups| group_of(mounts, groups);
        let group = of(mounts, "12:cpu:/x\n0::/user.slice/session-1.scope\n");
        let expected = "/sys/fs/cgroup/user.slice/session-1.scope";
        assert_eq!(group.as_deref(), Some(Path::new(expected)));
        assert_eq!(
            of(mounts, "0::/\n").as_deref(),
            Some(Path::new("/sys/fs/cgroup/"))
        );
        let part = "30 22 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(
            of(part, "0::/docker/1/a\n").as_deref(),
            Some(Path::new("/sys/fs/cgroup/a"))
        );
        assert_eq!(of(part, "0::/elsewhere\n"), None);
        assert_eq!(of("", "0::/\n"), None);
        assert_eq!(of(mounts, "1:cpu:/x\n"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_memory_or_none(text: String) {
            Memory::of_stat(&text);
            Memory::of_stat(&format!("1 (x) {text}"));
        }

        #[test]
        fn any_text_has_a_group_or_none(mounts: String, groups: String) {
            group_of(&mounts, &groups);
            group_of(&format!("1 2 3 / /x - cgroup2 {mounts}"), &format!("0::{groups}"));
        }
    }
}
