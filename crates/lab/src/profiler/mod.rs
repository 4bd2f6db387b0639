//! Profiles of the variants: stacks sampled under the load, in slices that are no part of any trial.

mod judge;
mod symbols;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fwdlab_model::{
    AddressFamily, CpuSamples, LoadRegime, ProfileEvery, ProfileRecord, ProfileStacks, Profiling,
    VariantName,
};
use fwdlab_profile::Folded;
use fwdlab_sys::{Sampled, SamplerSwitch, StackSampler, SysError, monotonic_ns};

use self::judge::faults;
use self::symbols::Symbols;
use crate::LabError;
use crate::block::as_f64;
use crate::watch::Watch;

/// How often a profile is taken until it shows the load.
const ATTEMPTS_MAX: u32 = 3;

/// Takes the profiles of a block.
pub(crate) struct Profiler {
    profiling: Profiling,
    regime: LoadRegime,
    symbols: Symbols,
    taken: BTreeMap<(AddressFamily, VariantName), Taken>,
}

/// What was sampled of a trial so far.
#[derive(Debug, Default)]
struct Taken {
    stacks: Folded<'static>,
    record: Option<ProfileRecord>,
}

/// Where forwarding is sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The CPU.
    pub(crate) cpu: u32,
    /// The thread of this process that forwards there, where it is one.
    pub(crate) thread: Option<u32>,
}

/// The samplers of a slice, by CPU.
pub(crate) struct Samplers {
    samplers: Vec<(u32, StackSampler)>,
    pub(crate) window: Window,
}

/// When samplers are on: from one edge of a slice to the other.
#[derive(Debug, Default)]
pub(crate) struct Window {
    switches: Vec<SamplerSwitch>,
    start_ns: AtomicU64,
    end_ns: AtomicU64,
}

impl Window {
    /// Switches the samplers on at the first edge, and off at the second.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn at_edge(&self) -> Result<(), LabError> {
        if self.start_ns.load(Ordering::Acquire) == 0 {
            self.start_ns.store(monotonic_ns(), Ordering::Release);
            for switch in &self.switches {
                switch.on()?;
            }
        } else {
            for switch in &self.switches {
                switch.off()?;
            }
            self.end_ns.store(monotonic_ns(), Ordering::Release);
        }
        Ok(())
    }
}

impl Profiler {
    /// Of a block in which profiles are asked for.
    pub(crate) fn new(profiling: Profiling, regime: LoadRegime) -> Self {
        Self {
            profiling,
            regime,
            symbols: Symbols::new(),
            taken: BTreeMap::new(),
        }
    }

    /// Where in a block profiles are asked for.
    pub(crate) fn every(&self) -> ProfileEvery {
        self.profiling.every
    }

    /// How long stacks are sampled at a time.
    pub(crate) fn slice(&self) -> Duration {
        Duration::from_millis(self.profiling.slice_ms.into())
    }

    /// Samplers of a slice, switched off.
    ///
    /// # Errors
    /// Where this process may not sample there.
    pub(crate) fn samplers(&self, places: &[Place]) -> Result<Samplers, LabError> {
        let samplers = places
            .iter()
            .map(|&place| Ok((place.cpu, open(place, self.profiling.frequency_hz)?)))
            .collect::<Result<Vec<_>, LabError>>()?;
        let switches = samplers
            .iter()
            .map(|(_, sampler)| sampler.switch())
            .collect();
        Ok(Samplers {
            samplers,
            window: Window {
                switches,
                ..Window::default()
            },
        })
    }

    /// Adds what was sampled in a slice to the profile of its trial, and says whether it is to be taken again,
    /// because it does not show the load.
    pub(crate) fn add<E>(
        &mut self,
        family: AddressFamily,
        variant: &VariantName,
        samplers: Samplers,
        watch: &Watch<E>,
    ) -> bool {
        let window = samplers.window;
        let window_ns = window.start_ns.into_inner()..=window.end_ns.into_inner();
        let (first, last) = (watch.samples[0], watch.samples[watch.samples.len() - 1]);
        let time_s = (last.at - first.at).as_secs_f64();
        let forwarded_frames = last.forwarded_frames - first.forwarded_frames;
        let mut record = ProfileRecord {
            event: String::new(),
            frequency_hz: self.profiling.frequency_hz,
            has_kernel: samplers
                .samplers
                .iter()
                .all(|(_, sampler)| sampler.has_kernel()),
            time_s,
            pooled_pps: as_f64(forwarded_frames) / time_s,
            samples: 0,
            idle_samples: 0,
            samples_by_cpu: Vec::new(),
            foreign_samples: 0,
            harness_samples: 0,
            lost_samples: 0,
            outside_samples: 0,
            attempts: 1,
            faults: Vec::new(),
        };
        let mut stacks = Folded::new();
        self.symbols.begin_slice();
        for (cpu, mut sampler) in samplers.samplers {
            sampler.event().as_str().clone_into(&mut record.event);
            let taken = sampler.take();
            record.lost_samples += taken.lost;
            let mut of_cpu = CpuSamples { cpu, samples: 0 };
            for sample in taken.samples {
                if sample.thread == watch.thread {
                    record.harness_samples += 1;
                } else if !window_ns.contains(&sample.at_ns) {
                    record.outside_samples += 1;
                } else {
                    of_cpu.samples += 1;
                    let named = self.symbols.name(&sample);
                    if named.is_foreign {
                        record.foreign_samples += 1;
                    } else {
                        stacks.push(named.frames, 1);
                    }
                }
            }
            record.samples_by_cpu.push(of_cpu);
        }
        record.samples = stacks.samples();
        record.idle_samples = stacks.idle_samples();
        record.faults = faults(&record, &stacks, self.regime);
        let is_good = record.faults.is_empty();
        let taken = self.taken.entry((family, variant.clone())).or_default();
        match &mut taken.record {
            None => {
                taken.record = Some(record);
                taken.stacks = stacks;
            }
            // What did not show the load is no part of what does.
            Some(before) if !before.faults.is_empty() => {
                record.attempts += before.attempts;
                *before = record;
                taken.stacks = stacks;
            }
            Some(before) if is_good => {
                join(before, &record);
                for stack in stacks.stacks() {
                    taken
                        .stacks
                        .push(stack.frames().map(str::to_owned), stack.samples);
                }
            }
            Some(before) => before.attempts += 1,
        }
        let attempts = taken.record.as_ref().map_or(0, |record| record.attempts);
        !is_good && attempts < ATTEMPTS_MAX
    }

    /// The profiles of all trials of the block, their stacks in text.
    pub(crate) fn finish(
        self,
    ) -> (
        BTreeMap<(AddressFamily, VariantName), ProfileRecord>,
        Vec<ProfileStacks>,
    ) {
        let mut records = BTreeMap::new();
        let mut profiles = Vec::new();
        for ((family, variant), taken) in self.taken {
            profiles.push(ProfileStacks {
                variant: variant.clone(),
                family,
                folded: taken.stacks.merged().to_string(),
            });
            records.extend(taken.record.map(|record| ((family, variant), record)));
        }
        (records, profiles)
    }
}

/// Two slices of one trial become one profile.
fn join(one: &mut ProfileRecord, other: &ProfileRecord) {
    let time_s = one.time_s + other.time_s;
    let frames = |record: &ProfileRecord| record.pooled_pps * record.time_s;
    one.pooled_pps = (frames(one) + frames(other)) / time_s;
    one.time_s = time_s;
    one.samples += other.samples;
    one.idle_samples += other.idle_samples;
    for (one, other) in one.samples_by_cpu.iter_mut().zip(&other.samples_by_cpu) {
        one.samples += other.samples;
    }
    one.foreign_samples += other.foreign_samples;
    one.harness_samples += other.harness_samples;
    one.lost_samples += other.lost_samples;
    one.outside_samples += other.outside_samples;
}

/// Why this process can take no profiles there, and what to do; none where it can.
pub(crate) fn unavailable(place: Place) -> Option<String> {
    let error = open(place, 100).err()?;
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    Some(match paranoid.unwrap_or_default().trim() {
        "" => error.to_string(),
        level => format!("{error} (kernel.perf_event_paranoid is {level})"),
    })
}

/// A sampler of all that runs on a CPU, or where that is not allowed, of the thread that forwards there.
fn open(place: Place, frequency_hz: u32) -> Result<StackSampler, SysError> {
    let of_cpu = StackSampler::open(Sampled::Cpu(place.cpu), frequency_hz);
    match (of_cpu, place.thread) {
        (Err(_), Some(thread)) => StackSampler::open(Sampled::Thread(thread), frequency_hz),
        (of_cpu, _) => of_cpu,
    }
}
