//! Where a thread runs, and how urgently.

use std::io;
use std::marker::PhantomData;

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

use crate::SysError;

/// CPUs that the calling thread may run on, in ascending order.
///
/// # Errors
/// When the kernel does not say.
pub fn online_cpus() -> Result<Vec<u32>, SysError> {
    let set = sched_getaffinity(Pid::from_raw(0))
        .map_err(|errno| SysError::new("reading the CPUs this process may use", errno))?;
    Ok((0..CpuSet::count())
        .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect())
}

/// Lets the calling thread run on one CPU only.
///
/// # Errors
/// When there is no such CPU or this process may not use it.
pub fn pin_this_thread(cpu: u32) -> Result<(), SysError> {
    let what = || format!("moving a thread to CPU {cpu}");
    let mut set = CpuSet::new();
    set.set(cpu as usize)
        .map_err(|errno| SysError::new(what(), errno))?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|errno| SysError::new(what(), errno))
}

/// Keeps the thread that made it on one CPU until the value goes.
#[derive(Debug)]
pub struct PinnedThread {
    previous: CpuSet,
    // What is put back is the affinity of the thread that drops it, so it must be the same one.
    _not_send: PhantomData<*const ()>,
}

impl PinnedThread {
    /// Keeps the calling thread on the CPU on which it runs, for now.
    ///
    /// # Errors
    /// When that CPU is taken away meanwhile.
    pub fn where_it_runs() -> Result<Self, SysError> {
        let cpu = sched_getcpu()
            .map_err(|errno| SysError::new("asking on which CPU a thread runs", errno))?;
        Self::to_cpu(u32::try_from(cpu).expect("CPUs are counted in 32 bits"))
    }

    /// Lets the calling thread run on one CPU only, for now.
    ///
    /// # Errors
    /// Those of [`pin_this_thread`].
    pub fn to_cpu(cpu: u32) -> Result<Self, SysError> {
        let previous = sched_getaffinity(Pid::from_raw(0))
            .map_err(|errno| SysError::new("reading the CPUs this thread may use", errno))?;
        pin_this_thread(cpu)?;
        Ok(Self {
            previous,
            _not_send: PhantomData,
        })
    }
}

impl Drop for PinnedThread {
    fn drop(&mut self) {
        // Fails only if these CPUs have gone meanwhile; the kernel then chooses others itself.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.previous);
    }
}

/// Lets the calling thread run before every ordinary one on its CPU; whether that was granted.
///
/// Where it was not, the thread asks for short turns, which kernels from 6.12 on give it soon after it
/// wakes. For work of well under a millisecond only: nothing else gets the CPU meanwhile.
#[must_use]
pub fn prefer_this_thread() -> bool {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread, and the kernel only reads the valid parameters.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    result == 0 || {
        debug_assert_eq!(
            io::Error::last_os_error().kind(),
            io::ErrorKind::PermissionDenied,
            "the only reason to refuse is the lack of privilege"
        );
        ask_for_short_turns();
        false
    }
}

/// Asks for the shortest turns that an ordinary thread may have; kernels before 6.12 ignore it.
fn ask_for_short_turns() {
    const TURN_NS: u64 = 100_000;
    // SAFETY: a plain system call about the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let size = size_of::<libc::sched_attr>();
    let attributes = libc::sched_attr {
        size: u32::try_from(size).expect("a few words"),
        sched_policy: libc::SCHED_OTHER.cast_unsigned(),
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: TURN_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: 0 is the calling thread, and the kernel only reads as many bytes as `size` says.
    // Where it refuses, the thread has its turns as every other.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_pinned_for_now_gets_its_cpus_back() {
        std::thread::spawn(|| {
            let cpus = online_cpus().unwrap();
            let last = *cpus.last().unwrap();
            let pinned = PinnedThread::to_cpu(last).unwrap();
            assert_eq!(online_cpus().unwrap(), [last]);
            drop(pinned);
            assert_eq!(online_cpus().unwrap(), cpus);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_stays_where_it_runs_for_now() {
        std::thread::spawn(|| {
            let cpus = online_cpus().unwrap();
            let pinned = PinnedThread::where_it_runs().unwrap();
            let [cpu] = online_cpus().unwrap()[..] else {
                panic!("it may run on several CPUs");
            };
            assert!(cpus.contains(&cpu));
            drop(pinned);
            assert_eq!(online_cpus().unwrap(), cpus);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_can_be_pinned_to_a_cpu_it_may_use_and_to_no_other() {
        std::thread::spawn(|| {
            let cpus = online_cpus().unwrap();
            let last = *cpus.last().unwrap();
            pin_this_thread(last).unwrap();
            assert_eq!(online_cpus().unwrap(), [last]);
            assert!(
                pin_this_thread(1023)
                    .unwrap_err()
                    .to_string()
                    .contains("CPU 1023")
            );
        })
        .join()
        .unwrap();
    }
}
