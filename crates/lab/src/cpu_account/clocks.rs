//! The account for whom the scheduler tells nothing: what the kernel tells everybody of a thread's own waiting.
//!
//! How long the load's thread waited for its CPU while it could have run is somebody else's time there, but for what
//! fwdlab's other threads and those that serve frames took. Whose it was can only be guessed: that of processes that used
//! CPU time and have a thread which ran on the load's CPU last.

use std::collections::BTreeMap;
use std::time::Duration;

use fwdlab_sys::{
    RunDelay, kernel_threads, process_cpu_time, process_ids, process_name_and_cpus, this_thread,
    thread_cpu_time, threads_kept_on,
};

use super::{Taken, printable};
use crate::sample::Sample;

/// Threads of the kernel that serve frames where the load's own do not: one on each CPU, and those of interfaces.
const OF_CPU: &str = "ksoftirqd/";
const OF_INTERFACE: &str = "napi/";

/// CPU time of each process.
pub(crate) type ProcessTimes = BTreeMap<u32, Duration>;

/// Clocks of threads and processes.
pub(crate) struct Clocks {
    cpus: Vec<u32>,
    /// The load's threads: on each CPU the one that has used most CPU time, where the kernel tells how long it waits.
    loads: Vec<RunDelay>,
    /// Other threads of this process on these CPUs.
    own: Vec<u32>,
    serving: Vec<u32>,
}

impl Clocks {
    pub(super) fn open(cpus: &[u32]) -> Self {
        Self {
            cpus: cpus.to_vec(),
            loads: Vec::new(),
            own: Vec::new(),
            serving: Vec::new(),
        }
    }

    pub(super) fn prepare(&mut self, cpus: &[u32]) {
        self.cpus = cpus.to_vec();
        self.loads.clear();
        self.own.clear();
        for &cpu in cpus {
            let mut threads = threads_kept_on(cpu);
            // The thread that prepares is none that sends or forwards.
            threads.sort_by_key(|&thread| (thread != this_thread(), thread_cpu_time(thread)));
            let load = threads.pop_if(|thread| *thread != this_thread());
            self.loads.extend(load.and_then(RunDelay::of_thread));
            self.own.append(&mut threads);
        }
        let found = |prefix: &str| kernel_threads(prefix).unwrap_or_default();
        self.serving = found(OF_CPU);
        // In a container they may not be seen: then what they take cannot be told from what others take.
        if self.serving.is_empty() {
            self.loads.clear();
        }
        self.serving.extend(found(OF_INTERFACE));
        self.serving.retain(|&thread| {
            process_name_and_cpus(thread)
                .is_some_and(|(_, of)| cpus.iter().any(|cpu| of.contains(cpu)))
        });
    }

    /// Whether it is known how much was taken.
    pub(super) fn knows(&self) -> bool {
        self.loads.len() == self.cpus.len()
    }

    /// Called by a thread that is kept on a CPU of the load's and is none of its own.
    ///
    /// A wait shows in it when it has ended; see [`spread_back`].
    pub(super) fn taken(&self) -> Duration {
        let waited: Duration = self.loads.iter().filter_map(RunDelay::read).sum();
        let own = self.own.iter().copied().chain([this_thread()]);
        let own: Duration = own.filter_map(thread_cpu_time).sum();
        let serving = self.serving.iter().copied();
        let serving: Duration = serving.filter_map(process_cpu_time).sum();
        // Others' threads may be older than the load's: so much earlier than its start is time counted from.
        const BEFORE: Duration = Duration::from_secs(1 << 32);
        let cpus = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        (BEFORE + waited).saturating_sub(own + serving) / cpus.max(1)
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

/// Leaves of guesses no more than what was taken in all.
pub(super) fn bound(takers: &mut Taken, taken: Duration) {
    let guessed: Duration = takers.values().sum();
    if guessed > taken {
        let part = taken.as_secs_f64() / guessed.as_secs_f64();
        takers
            .values_mut()
            .for_each(|time| *time = time.mul_f64(part));
    }
}

/// Puts waiting where it was: a wait is told when it has ended, and may have begun before the sample before that.
///
/// Shape: samples in the order of their time. What is told of a wait that began before the first is left out.
pub(super) fn spread_back(samples: &mut [Sample]) {
    let mut taken: Vec<Duration> = samples
        .windows(2)
        .map(|pair| pair[1].taken.saturating_sub(pair[0].taken))
        .collect();
    let mut more = Duration::ZERO;
    for (number, taken) in taken.iter_mut().enumerate().rev() {
        let all = *taken + more;
        *taken = all.min(samples[number + 1].at - samples[number].at);
        more = all - *taken;
    }
    let mut sum = Duration::ZERO;
    let sums = std::iter::once(Duration::ZERO).chain(taken.into_iter().map(|taken| {
        sum += taken;
        sum
    }));
    for (sample, sum) in samples.iter_mut().zip(sums) {
        sample.taken = sum;
    }
}

#[cfg(test)]
mod tests {
    use fwdlab_sys::BootTime;

    use super::*;

    fn milliseconds_between(taken_ms: &[u64]) -> Vec<u64> {
        let start = BootTime::now();
        let mut sum = 1_000_000;
        let mut samples: Vec<Sample> = std::iter::once(&0)
            .chain(taken_ms)
            .zip(0_u32..)
            .map(|(taken, number)| {
                sum += taken;
                Sample {
                    at: start + Duration::from_millis(2) * number,
                    forwarded_frames: 0,
                    loop_ns: 0,
                    taken: Duration::from_millis(sum),
                }
            })
            .collect();
        spread_back(&mut samples);
        let pairs = samples.windows(2);
        pairs
            .map(|pair| u64::try_from((pair[1].taken - pair[0].taken).as_millis()).unwrap())
            .collect()
    }

    #[test]
    fn guesses_are_no_more_than_what_was_taken() {
        let ms = Duration::from_millis;
        let guessed = Taken::from([((0, "a".to_owned()), ms(30)), ((0, "b".to_owned()), ms(10))]);
        let mut bounded = guessed.clone();
        bound(&mut bounded, ms(50));
        assert_eq!(bounded, guessed);
        bound(&mut bounded, ms(20));
        assert_eq!(bounded.into_values().collect::<Vec<_>>(), [ms(15), ms(5)]);
    }

    #[test]
    fn a_wait_is_put_where_it_was() {
        assert_eq!(milliseconds_between(&[0, 1, 0, 2]), [0, 1, 0, 2]);
        assert_eq!(milliseconds_between(&[0, 0, 5, 0, 1]), [1, 2, 2, 0, 1]);
        // One that began before the first sample.
        assert_eq!(milliseconds_between(&[0, 7]), [2, 2]);
        assert!(milliseconds_between(&[]).is_empty());
    }
}
