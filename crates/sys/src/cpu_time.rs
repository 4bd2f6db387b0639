//! CPU time of threads and processes, as fine as the scheduler counts it, and readable by everybody.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// From the kernel's `include/linux/posix-timers_types.h`: the scheduler's count, and of one thread.
const SCHEDULED: i32 = 2;
const OF_THREAD: i32 = 4;

/// How long a thread of any process has run; none where there is none such, or the kernel does not count it
/// (`CONFIG_SCHED_INFO`).
#[must_use]
pub fn run_time(process: u32, thread: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    let ran_ns = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ran_ns))
}

/// Whether a thread of any process runs, or waits for its CPU.
#[must_use]
pub fn is_runnable(process: u32, thread: u32) -> bool {
    let stat = fs::read(format!("/proc/{process}/task/{thread}/stat"));
    stat.is_ok_and(|stat| is_state_runnable(&String::from_utf8_lossy(&stat)))
}

/// By the third field of `/proc/PID/stat`, behind a name in parentheses that may hold anything.
fn is_state_runnable(stat: &str) -> bool {
    let state = stat.rsplit_once(')').map(|(_, after)| after.trim_start());
    state.is_some_and(|state| state.starts_with('R'))
}

/// The CPU on which a thread of any process ran last; none where there is none such.
#[must_use]
pub fn last_cpu(process: u32, thread: u32) -> Option<u32> {
    name_and_cpu(&format!("/proc/{process}/task/{thread}/stat")).map(|(_, cpu)| cpu)
}

/// The threads of a process; none where it has ended.
#[must_use]
pub fn threads_of(process: u32) -> Vec<u32> {
    numbers_in(&format!("/proc/{process}/task")).collect()
}

/// CPU time of a thread of this process; none where there is none such.
#[must_use]
pub fn thread_cpu_time(thread: u32) -> Option<Duration> {
    cpu_time(thread, SCHEDULED | OF_THREAD)
}

/// CPU time of all threads of a process, those that have ended included; none where there is none such.
#[must_use]
pub fn process_cpu_time(process: u32) -> Option<Duration> {
    cpu_time(process, SCHEDULED)
}

fn cpu_time(number: u32, kind: i32) -> Option<Duration> {
    let number = i32::try_from(number).ok()?;
    // The number's complement in the upper bits, as `clock_getcpuclockid` of the C library makes it.
    let clock = ClockId::from_raw((!number).wrapping_shl(3) | kind);
    Some(clock_gettime(clock).ok()?.into())
}

/// How long a thread has waited for a CPU while it could have run.
#[derive(Debug)]
pub struct RunDelay(File);

impl RunDelay {
    /// That of a thread of this process; none where the kernel does not count it (`CONFIG_SCHED_INFO`).
    #[must_use]
    pub fn of_thread(thread: u32) -> Option<Self> {
        let file = File::open(format!("/proc/self/task/{thread}/schedstat")).ok()?;
        let delay = Self(file);
        delay.read()?;
        Some(delay)
    }

    /// The sum of all waits that have ended; none where the thread has ended.
    #[must_use]
    pub fn read(&self) -> Option<Duration> {
        let mut text = [0; 80];
        let length = self.0.read_at(&mut text, 0).ok()?;
        parse_schedstat(str::from_utf8(&text[..length]).ok()?)
    }
}

/// The second number; three zeros are what kernels print that do not count.
fn parse_schedstat(text: &str) -> Option<Duration> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (_ran_ns, waited_ns, turns) = (next()?, next()?, next()?);
    (turns > 0).then(|| Duration::from_nanos(waited_ns))
}

/// The threads of this process that may run on one CPU only.
#[must_use]
pub fn threads_kept_on(cpu: u32) -> Vec<u32> {
    let is_kept = |thread: &u32| {
        let Ok(allowed) = sched_getaffinity(Pid::from_raw(thread.cast_signed())) else {
            return false;
        };
        let mut cpus = (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap_or(false));
        cpus.next() == Some(cpu as usize) && cpus.next().is_none()
    };
    numbers_in("/proc/self/task").filter(is_kept).collect()
}

/// The processes that can be seen, those of the kernel included.
#[must_use]
pub fn process_ids() -> Vec<u32> {
    numbers_in("/proc").collect()
}

fn numbers_in(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What a process calls itself, and on which CPUs its threads ran last, the first of them; none where there is none
/// such.
#[must_use]
pub fn process_name_and_cpus(process: u32) -> Option<(String, BTreeSet<u32>)> {
    const THREADS_MAX: usize = 64;
    let (name, cpu) = name_and_cpu(&format!("/proc/{process}/stat"))?;
    let tasks = format!("/proc/{process}/task");
    let cpus = numbers_in(&tasks)
        .take(THREADS_MAX)
        .filter_map(|thread| Some(name_and_cpu(&format!("{tasks}/{thread}/stat"))?.1));
    Some((name, cpus.chain([cpu]).collect()))
}

fn name_and_cpu(path: &str) -> Option<(String, u32)> {
    parse_stat(&String::from_utf8_lossy(&fs::read(path).ok()?))
}

/// The second and the 39th field of `/proc/PID/stat`; the second, in parentheses, may hold anything.
fn parse_stat(stat: &str) -> Option<(String, u32)> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let cpu = after.split_ascii_whitespace().nth(36)?.parse().ok()?;
    Some((name, cpu))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;
    use crate::{pin_this_thread, this_thread};

    #[test]
    fn a_thread_that_works_uses_cpu_time_and_so_does_its_process() {
        let this = std::process::id();
        let before = process_cpu_time(this).unwrap();
        let used = std::thread::spawn(|| {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
            thread_cpu_time(this_thread()).unwrap()
        });
        let used = used.join().unwrap();
        assert!(
            used > Duration::ZERO && used < Duration::from_secs(10),
            "{used:?}"
        );
        assert!(process_cpu_time(this).unwrap() - before >= used);
        assert_eq!(thread_cpu_time(u32::MAX), None);
        assert_eq!(process_cpu_time(u32::MAX), None);
    }

    #[test]
    fn a_thread_that_is_kept_on_a_cpu_is_found_there() {
        let cpu = *crate::online_cpus().unwrap().last().unwrap();
        std::thread::spawn(move || {
            pin_this_thread(cpu).unwrap();
            assert!(threads_kept_on(cpu).contains(&this_thread()));
            assert!(threads_kept_on(1000).is_empty());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_process_is_found_with_its_name() {
        let this = std::process::id();
        assert!(process_ids().contains(&this));
        let (name, cpus) = process_name_and_cpus(this).unwrap();
        assert!(!cpus.is_empty());
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(name, own.trim());
        assert_eq!(process_name_and_cpus(u32::MAX), None);
    }

    #[test]
    fn a_thread_that_runs_is_runnable_where_it_runs() {
        let cpu = *crate::online_cpus().unwrap().last().unwrap();
        std::thread::spawn(move || {
            pin_this_thread(cpu).unwrap();
            let (process, thread) = (std::process::id(), this_thread());
            assert!(is_runnable(process, thread));
            assert_eq!(last_cpu(process, thread), Some(cpu));
        })
        .join()
        .unwrap();
        assert!(!is_runnable(u32::MAX, u32::MAX));
        assert_eq!(last_cpu(u32::MAX, u32::MAX), None);
        assert!(is_state_runnable("12 (a) S) R 1"));
        assert!(!is_state_runnable("12 (a) R) S 1"));
    }

    #[test]
    fn waiting_is_the_second_number() {
        let waited = |text| parse_schedstat(text).map(|waited| waited.as_nanos());
        assert_eq!(waited("12 345 6\n"), Some(345));
        assert_eq!(waited("0 0 0\n"), None);
        assert_eq!(waited("12 345"), None);
        // This thread has run, or it would not ask.
        assert!(RunDelay::of_thread(this_thread()).is_some());
        assert!(RunDelay::of_thread(u32::MAX).is_none());
    }

    #[test]
    fn a_name_may_hold_anything() {
        let fields = "S 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 13 14 15 16 17 18 19 20 21 0 0 0 0 0 0 0 17 5 0 0";
        let (name, cpu) = parse_stat(&format!("12 (a ) (b) {fields}")).unwrap();
        assert_eq!((name.as_str(), cpu), ("a ) (b", 5));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            parse_stat(&text);
            is_state_runnable(&text);
            parse_schedstat(&text);
            parse_stat(&format!("1 (x) {text}"));
        }
    }
}
