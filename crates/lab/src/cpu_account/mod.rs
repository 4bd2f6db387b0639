//! Who else had the CPUs of the load, and for how long: other programs, threads of the kernel that do not serve frames,
//! other devices' interrupts.
//!
//! The calibration loop does not see them, as the thread that runs it goes before them.

mod clocks;
mod scheduler;

use std::collections::BTreeMap;
use std::time::Duration;

use fwdlab_model::{AccountSource, Competitor};

use self::clocks::{Clocks, ProcessTimes};
use self::scheduler::Scheduler;
use crate::sample::Sample;

/// A trial names so many competitors of each of its CPUs.
const NAMED_MAX: usize = 8;

/// One that took a smaller part of a trial's time is not named.
const NAMED_RATIO_MIN: f64 = 0.001;

/// Time that others took, by CPU and by what they are called.
pub(crate) type Taken = BTreeMap<(u32, String), Duration>;

/// The account of some CPUs.
pub(crate) enum CpuAccount {
    /// The kernel's scheduler tells each switch.
    Scheduler(Box<Scheduler>),
    /// The clocks of processes tell what each of them used.
    Clocks(Clocks),
    /// There is none.
    None,
}

/// What each competitor had taken at a moment.
pub(crate) enum Reading {
    Scheduler(Taken),
    Clocks(ProcessTimes),
    None,
}

impl CpuAccount {
    /// The best account that this process may have of these CPUs.
    pub(crate) fn open(cpus: &[u32]) -> Self {
        match Scheduler::open(cpus) {
            Some(scheduler) => Self::Scheduler(Box::new(scheduler)),
            None => Self::Clocks(Clocks::open(cpus)),
        }
    }

    /// The load never rests on a CPU: what is idle there is taken from it. To be said before its first slice.
    ///
    /// The clocks of processes need not be told: a thread that may run and does not is one that waits.
    pub(crate) fn is_never_idle(&mut self, cpu: u32) {
        if let Self::Scheduler(scheduler) = self {
            scheduler.is_never_idle(cpu);
        }
    }

    /// Where it is from; none where there is none.
    pub(crate) fn source(&self) -> Option<AccountSource> {
        match self {
            Self::Scheduler(_) => Some(AccountSource::Scheduler),
            Self::Clocks(_) => Some(AccountSource::Clocks),
            Self::None => None,
        }
    }

    /// Prepares for a slice in which the load is on some of the CPUs. Programs in these network namespaces, by their
    /// numbers, work for it, and so do threads that have come with its variant.
    pub(crate) fn prepare(&mut self, cpus: &[u32], namespaces: [u64; 2]) {
        match self {
            Self::Scheduler(scheduler) => scheduler.prepare(cpus, namespaces),
            Self::Clocks(clocks) => clocks.prepare(cpus),
            Self::None => {}
        }
    }

    /// Time that others took of the load's CPUs so far, on average of these; only differences within a slice mean anything.
    pub(crate) fn taken(&self) -> Duration {
        match self {
            Self::Scheduler(scheduler) => scheduler.taken(),
            Self::Clocks(clocks) => clocks.taken(),
            Self::None => Duration::ZERO,
        }
    }

    /// Whether it is known how much others take.
    pub(crate) fn knows(&self) -> bool {
        match self {
            Self::Scheduler(_) => true,
            Self::Clocks(clocks) => clocks.knows(),
            Self::None => false,
        }
    }

    /// Puts what was taken between samples where it was, as far as that is told late, and bounds what is a guess.
    ///
    /// Shape: all samples of a watch, and who took time meanwhile.
    pub(crate) fn settle(&self, samples: &mut [Sample], takers: &mut Taken) {
        if let (Self::Clocks(_), [first, .., last]) = (self, &*samples) {
            clocks::bound(takers, last.taken.saturating_sub(first.taken));
            clocks::spread_back(samples);
        }
    }

    /// What each took so far, which takes up to some milliseconds to read.
    pub(crate) fn read(&self) -> Reading {
        match self {
            Self::Scheduler(scheduler) => Reading::Scheduler(scheduler.by_name()),
            Self::Clocks(clocks) => Reading::Clocks(clocks.processes()),
            Self::None => Reading::None,
        }
    }

    /// Who took how much since a reading.
    ///
    /// Shape: the reading is of this account.
    pub(crate) fn taken_since(&self, before: &Reading) -> Taken {
        match (self, before) {
            (Self::Scheduler(scheduler), Reading::Scheduler(before)) => {
                taken_between(before, &scheduler.by_name())
            }
            (Self::Clocks(clocks), Reading::Clocks(before)) => clocks.taken_since(before),
            _ => Taken::new(),
        }
    }
}

/// What was taken between two sums.
fn taken_between(before: &Taken, after: &Taken) -> Taken {
    let since = |(who, &time): (&(u32, String), &Duration)| {
        let time = time.saturating_sub(before.get(who).copied().unwrap_or_default());
        (!time.is_zero()).then(|| (who.clone(), time))
    };
    after.iter().filter_map(since).collect()
}

/// Those who took most of a time, for a record: by CPU, the greatest first, without the small ones.
pub(crate) fn competitors(taken: &Taken, measured_s: f64) -> Vec<Competitor> {
    let mut by_cpu: BTreeMap<u32, Vec<Competitor>> = BTreeMap::new();
    for ((cpu, name), time) in taken {
        let time_s = time.as_secs_f64();
        if time_s >= measured_s * NAMED_RATIO_MIN {
            by_cpu.entry(*cpu).or_default().push(Competitor {
                cpu: *cpu,
                name: name.clone(),
                // Microseconds are more than any clock here is good for.
                time_s: (time_s * 1e6).round() / 1e6,
            });
        }
    }
    for all in by_cpu.values_mut() {
        all.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
        all.truncate(NAMED_MAX);
    }
    by_cpu.into_values().flatten().collect()
}

/// A program's name for records and terminals: a program may call itself anything.
fn printable(name: &str) -> String {
    let shown = |character: char| {
        if character.is_control() {
            '?'
        } else {
            character
        }
    };
    name.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use fwdlab_sys::{Sampled, SampledEvent, StackSampler};
    use testkit::burner::{Burn, Burner};

    use super::*;

    fn taken(of: &[(u32, &str, u64)]) -> Taken {
        let times = of.iter();
        times
            .map(|&(cpu, name, ms)| ((cpu, name.to_owned()), Duration::from_millis(ms)))
            .collect()
    }

    #[test]
    fn what_was_taken_is_the_difference_of_two_sums() {
        let before = taken(&[(0, "cargo", 10), (0, "sshd", 3)]);
        let after = taken(&[(0, "cargo", 25), (0, "sshd", 3), (1, "cargo", 7)]);
        assert_eq!(
            taken_between(&before, &after),
            taken(&[(0, "cargo", 15), (1, "cargo", 7)])
        );
        assert_eq!(taken_between(&after, &before), Taken::new());
    }

    #[test]
    fn the_greatest_competitors_of_each_cpu_are_named() {
        let mut of = vec![(0, "cargo", 150), (1, "rustc", 400), (0, "sshd", 200)];
        let many: Vec<String> = (10..30).map(|number| format!("program {number}")).collect();
        of.extend(many.iter().map(|name| (1, name.as_str(), 5)));
        of.push((0, "too small", 0));
        let competitors = competitors(&taken(&of), 1.0);
        let named: Vec<_> = competitors
            .iter()
            .map(|one| (one.cpu, one.name.as_str(), one.time_s))
            .collect();
        assert_eq!(
            named[..3],
            [(0, "sshd", 0.2), (0, "cargo", 0.15), (1, "rustc", 0.4)]
        );
        assert_eq!(named.len(), 2 + NAMED_MAX);
    }

    #[test]
    fn names_are_fit_to_be_printed() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a?[2Jb?");
    }

    const TURN: Duration = Duration::from_millis(10);
    const TURNS: u32 = 60;

    fn burn_if_asked() -> bool {
        testkit::burner::burn_if_asked(
            |cpu| fwdlab_sys::pin_this_thread(cpu).unwrap(),
            || fwdlab_sys::thread_cpu_time(fwdlab_sys::this_thread()).unwrap(),
        )
    }

    /// What an account says of a burner beside a busy thread of this process, beside what it says itself.
    ///
    /// Shape: of several tests at a time each has a name of its own for them.
    fn account_for_burners(test: &str, name: &str, open: impl Fn(u32) -> CpuAccount) {
        let cpu = *fwdlab_sys::online_cpus().unwrap().last().unwrap();
        let folder = tempfile::tempdir().unwrap();
        for part in [0.1, 0.3, 0.6] {
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    fwdlab_sys::pin_this_thread(cpu).unwrap();
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
                let burn = Burn::Part(part, TURN, TURNS);
                let mut burner = Burner::start(&folder.path().join(name), test, cpu, burn);
                let mut account = open(cpu);
                account.prepare(&[cpu], [0, 0]);
                let (before, start) = (account.read(), Instant::now());
                burner.go();
                let used_s = burner.used().as_secs_f64();
                let (takers, window_s) = (account.taken_since(&before), start.elapsed());
                stop.store(true, Ordering::Relaxed);
                let own = fs::read_to_string("/proc/self/comm").unwrap();
                // A fork of this process for another test has its name until it becomes another program.
                let own = takers.get(&(cpu, own.trim().to_owned())).copied();
                assert!(own.unwrap_or_default() < TURN, "{takers:?}");
                let told = takers.get(&(cpu, name.to_owned())).copied();
                let told_s = told.unwrap_or_default().as_secs_f64();
                let difference = (told_s - used_s) / window_s.as_secs_f64();
                assert!(
                    difference.abs() < 0.03,
                    "{part}: {used_s} s used, {takers:?}"
                );
            });
        }
    }

    #[test]
    fn the_scheduler_tells_how_long_a_program_had_the_cpu() {
        if burn_if_asked() {
            return;
        }
        let test = "cpu_account::tests::the_scheduler_tells_how_long_a_program_had_the_cpu";
        if Scheduler::open(&[0]).is_none() {
            testkit::skip!("this process may not ask the kernel's scheduler");
        }
        account_for_burners(test, "burner-a", |cpu| CpuAccount::open(&[cpu]));
    }

    #[test]
    fn the_timers_of_a_profiler_are_told_and_the_tick_is_not() {
        const FREQUENCY_HZ: u32 = 20_000;
        let cpu = *fwdlab_sys::online_cpus().unwrap().last().unwrap();
        let Some(scheduler) = Scheduler::open(&[cpu]) else {
            testkit::skip!("this process may not ask the kernel's scheduler");
        };
        let Ok(sampler) = StackSampler::open(Sampled::Cpu(cpu), FREQUENCY_HZ) else {
            testkit::skip!("this process may not sample a CPU");
        };
        if sampler.event() != SampledEvent::CpuClock {
            testkit::skip!("this machine samples by a counter of its hardware");
        }
        let mut account = CpuAccount::Scheduler(Box::new(scheduler));
        account.prepare(&[cpu], [0, 0]);
        let stop = AtomicBool::new(false);
        let of_timers = |taken: &Taken| -> BTreeMap<String, Duration> {
            let timers = taken
                .iter()
                .filter(|((_, name), _)| name.starts_with("timers of "));
            timers
                .map(|((_, name), time)| (name.clone(), *time))
                .collect()
        };
        let (quiet, sampled) = std::thread::scope(|scope| {
            scope.spawn(|| {
                fwdlab_sys::pin_this_thread(cpu).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let watch = || {
                let before = account.read();
                std::thread::sleep(Duration::from_millis(300));
                of_timers(&account.taken_since(&before))
            };
            let quiet = watch();
            sampler.switch().on().unwrap();
            let sampled = watch();
            stop.store(true, Ordering::Relaxed);
            (quiet, sampled)
        });
        let of_perf = sampled.get("timers of perf_swevent_hrtimer");
        assert!(of_perf > Some(&Duration::from_millis(1)), "{sampled:?}");
        let of_tick = |name: &String| name.contains("tick");
        assert!(
            !quiet.keys().chain(sampled.keys()).any(of_tick),
            "{quiet:?} {sampled:?}"
        );
    }

    #[test]
    fn idle_time_is_taken_from_a_load_that_never_rests() {
        let cpu = *fwdlab_sys::online_cpus().unwrap().last().unwrap();
        if Scheduler::open(&[cpu]).is_none() {
            testkit::skip!("this process may not ask the kernel's scheduler");
        }
        for never_idle in [true, false] {
            let mut account = CpuAccount::open(&[cpu]);
            if never_idle {
                account.is_never_idle(cpu);
            }
            account.prepare(&[cpu], [0, 0]);
            let _pinned = fwdlab_sys::PinnedThread::to_cpu(cpu).unwrap();
            let (before, start) = (account.read(), Instant::now());
            std::thread::sleep(Duration::from_millis(300));
            let (taken, elapsed) = (account.taken_since(&before), start.elapsed());
            let nobody = (
                cpu,
                "nobody, while the load was kept from running".to_owned(),
            );
            assert!(never_idle || !taken.contains_key(&nobody), "{taken:?}");
            // This process rested all the time: it was idle, or somebody else's.
            let all: Duration = taken.values().sum();
            assert!(
                !never_idle || all > elapsed * 9 / 10,
                "{all:?} of {elapsed:?}: {taken:?}"
            );
        }
    }

    #[test]
    fn the_clocks_tell_how_long_a_program_had_the_cpu() {
        if burn_if_asked() {
            return;
        }
        let test = "cpu_account::tests::the_clocks_tell_how_long_a_program_had_the_cpu";
        account_for_burners(test, "burner-b", |cpu| {
            CpuAccount::Clocks(Clocks::open(&[cpu]))
        });
    }
}
