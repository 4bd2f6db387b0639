//! Processes, told apart even where a number is used again.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::SysError;

/// A process of this boot: its number, and when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_time: u64,
}

impl Process {
    /// The one that calls.
    ///
    /// # Errors
    /// When `/proc` does not say.
    pub fn this() -> Result<Self, SysError> {
        let pid = std::process::id();
        let start_time = start_time(pid)
            .ok_or_else(|| SysError::new("reading /proc/self/stat", io::ErrorKind::NotFound))?;
        Ok(Self { pid, start_time })
    }

    /// Whether it still lives.
    #[must_use]
    pub fn is_alive(self) -> bool {
        start_time(self.pid) == Some(self.start_time)
    }
}

/// When a process started, in clock ticks since boot; none where there is none, or only what its
/// parent has not yet been told of.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the command in parentheses, may hold anything; the 22nd is wanted.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then_some(())?;
    fields.nth(18)?.parse().ok()
}

/// The kernel's threads whose name begins so, in ascending order.
///
/// # Errors
/// When `/proc` cannot be listed.
pub fn kernel_threads(name_prefix: &str) -> Result<Vec<u32>, SysError> {
    let entries = fs::read_dir("/proc").map_err(|source| SysError::new("listing /proc", source))?;
    let mut threads: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            // One that ends meanwhile is none.
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.starts_with(name_prefix))
                && is_of_the_kernel(*pid)
        })
        .collect();
    threads.sort_unstable();
    Ok(threads)
}

/// Whether a process is a thread of the kernel's: a program may call itself what it likes.
fn is_of_the_kernel(pid: u32) -> bool {
    /// From the kernel's `include/linux/sched.h`.
    const PF_KTHREAD: u64 = 0x0020_0000;
    let flags = || -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        fields.nth(6)?.parse().ok()
    };
    flags().is_some_and(|flags| flags & PF_KTHREAD != 0)
}

/// Lets a thread, of the kernel's or of a program, run on one CPU only.
///
/// # Errors
/// When there is no such thread or CPU, or it may not be moved.
pub fn pin_thread(thread: u32, cpu: u32) -> Result<(), SysError> {
    let what = || format!("moving thread {thread} to CPU {cpu}");
    let set = only(cpu).map_err(|errno| SysError::new(what(), errno))?;
    sched_setaffinity(Pid::from_raw(thread.cast_signed()), &set)
        .map_err(|errno| SysError::new(what(), errno))
}

/// Whether a thread may run on a CPU; a thread that has ended may not.
#[must_use]
pub fn may_run_on(thread: u32, cpu: u32) -> bool {
    let allowed = sched_getaffinity(Pid::from_raw(thread.cast_signed()));
    allowed.is_ok_and(|allowed| allowed.is_set(cpu as usize).unwrap_or(false))
}

fn only(cpu: u32) -> nix::Result<CpuSet> {
    let mut set = CpuSet::new();
    set.set(cpu as usize)?;
    Ok(set)
}

/// Prepares a command to run on one CPU only, as long as it does not choose others itself.
///
/// # Errors
/// When no CPU has such a number.
pub fn start_on(command: &mut Command, cpu: u32) -> Result<(), SysError> {
    let what = || format!("starting a program on CPU {cpu}");
    let set = only(cpu).map_err(|errno| SysError::new(what(), errno))?;
    // SAFETY: between fork and exec it makes one system call, and touches no memory but its own.
    unsafe {
        command.pre_exec(move || Ok(sched_setaffinity(Pid::from_raw(0), &set)?));
    }
    Ok(())
}

/// Prepares a command to be ended by the kernel when the thread that started it ends first.
///
/// What the command itself starts and leaves behind stays. Such a command is started by a fork of
/// this whole process, which takes longer the more memory it has.
pub fn bind_to_this_thread(command: &mut Command) {
    // SAFETY: between fork and exec it makes one system call, and touches no memory but its own.
    unsafe {
        command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?));
    }
}

/// Ends all processes of a process group at once; one that is gone is no error.
///
/// # Errors
/// When they may not be ended.
pub fn kill_process_group(leader: u32) -> Result<(), SysError> {
    signal_process_group(leader, Signal::SIGKILL)
}

/// Asks all processes of a process group to end (`SIGTERM`); one that is gone is no error.
///
/// # Errors
/// When they may not be asked.
pub fn terminate_process_group(leader: u32) -> Result<(), SysError> {
    signal_process_group(leader, Signal::SIGTERM)
}

fn signal_process_group(leader: u32, signal: Signal) -> Result<(), SysError> {
    match killpg(Pid::from_raw(leader.cast_signed()), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(SysError::new(
            format!("ending process group {leader}"),
            errno,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_started_once_and_lives() {
        let this = Process::this().unwrap();
        assert_eq!(this, Process::this().unwrap());
        assert!(this.is_alive());
        let earlier = Process {
            start_time: this.start_time - 1,
            ..this
        };
        assert!(!earlier.is_alive());
        assert_eq!(start_time(u32::MAX), None);
    }

    #[test]
    fn only_the_kernels_threads_are_found() {
        let own_name = fs::read_to_string("/proc/self/comm").unwrap();
        assert!(
            !kernel_threads(own_name.trim())
                .unwrap()
                .contains(&std::process::id())
        );
        assert!(kernel_threads("no such name").unwrap().is_empty());
    }
}
