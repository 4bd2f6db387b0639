//! The account for whom the scheduler tells nothing: what the clocks of threads and processes say, which everybody may
//! read.
//!
//! Time on a load's CPU in which none of the load's threads ran was somebody else's. Whose it was can only be guessed:
//! that of processes that used CPU time and have a thread which ran on the load's CPU last.

use std::collections::BTreeMap;
use std::time::Duration;

use fwdlab_sys::{
    BootTime, kernel_threads, process_cpu_time, process_ids, process_name_and_cpus, this_thread,
    thread_cpu_time, threads_kept_on,
};

use super::{Taken, printable};

/// Threads of the kernel that serve frames where the load's own do not.
const SERVING: [&str; 2] = ["ksoftirqd/", "napi/"];

/// CPU time of each process.
pub(crate) type ProcessTimes = BTreeMap<u32, Duration>;

/// Clocks of threads and processes.
pub(crate) struct Clocks {
    cpus: Vec<u32>,
    /// Whether time in which the load does not run is somebody else's.
    keeps_busy: bool,
    opened: BootTime,
    own_threads: Vec<u32>,
    serving: Vec<u32>,
}

impl Clocks {
    pub(super) fn open(cpus: &[u32], keeps_busy: bool) -> Self {
        Self {
            cpus: cpus.to_vec(),
            keeps_busy,
            opened: BootTime::now(),
            own_threads: Vec::new(),
            serving: Vec::new(),
        }
    }

    pub(super) fn prepare(&mut self, cpus: &[u32]) {
        self.cpus = cpus.to_vec();
        let cpus = self.cpus.iter();
        self.own_threads = cpus.flat_map(|&cpu| threads_kept_on(cpu)).collect();
        // In a container they cannot be seen: then what they take counts as somebody else's.
        let found = |prefix: &&str| kernel_threads(prefix).unwrap_or_default();
        self.serving = SERVING.iter().flat_map(found).collect();
    }

    /// Called on a load's CPU, by a thread that is not one of the load's.
    pub(super) fn taken(&self) -> Duration {
        if !self.keeps_busy {
            return Duration::ZERO;
        }
        let this = this_thread();
        let others = self.own_threads.iter().filter(|&&thread| thread != this);
        let own: Duration = others
            .chain([&this])
            .filter_map(|&thread| thread_cpu_time(thread))
            .sum();
        let serving: Duration = self
            .serving
            .iter()
            .filter_map(|&process| process_cpu_time(process))
            .sum();
        let cpus = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        // Threads may be older than this account: so much earlier than its opening is time counted from.
        const BEFORE: Duration = Duration::from_secs(1 << 32);
        (BEFORE + self.opened.elapsed() * cpus).saturating_sub(own + serving)
    }

    pub(super) fn processes(&self) -> ProcessTimes {
        let this = std::process::id();
        process_ids()
            .into_iter()
            .filter(|process| *process != this && !self.serving.contains(process))
            .filter_map(|process| Some((process, process_cpu_time(process)?)))
            .collect()
    }

    pub(super) fn taken_since(&self, before: &ProcessTimes) -> Taken {
        let mut taken = Taken::new();
        for (process, time) in self.processes() {
            // One that is new has used all of its time since.
            let time = time.saturating_sub(before.get(&process).copied().unwrap_or_default());
            if time.is_zero() {
                continue;
            }
            let Some((name, cpus)) = process_name_and_cpus(process) else {
                continue;
            };
            if let Some(&cpu) = self.cpus.iter().find(|cpu| cpus.contains(cpu)) {
                *taken.entry((cpu, printable(&name))).or_default() += time;
            }
        }
        taken
    }
}
