//! Stacks of this machine, sampled from one edge of a slice to the other.

use std::sync::atomic::{AtomicU64, Ordering};

use fwdlab_model::{CpuSamples, ProfileRecord};
use fwdlab_profile::{Folded, is_forwarding};
use fwdlab_stats::as_f64;
use fwdlab_sys::{Sampled, SamplerSwitch, StackSampler, SysError, monotonic_ns};

use super::symbols::{Named, Symbols};
use crate::LabError;

/// A CPU that forwards has this part, at least, of the samples in functions that forward which the one with most of
/// them has.
const FORWARDING_RATIO_MIN: f64 = 0.1;

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
    frequency_hz: u32,
    pub(crate) window: Window,
}

/// When samplers are on: from one edge of a slice to the other.
#[derive(Debug, Default)]
pub(crate) struct Window {
    switches: Vec<SamplerSwitch>,
    start_ns: AtomicU64,
    end_ns: AtomicU64,
}

/// What was seen of the load while the samplers were on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledLoad {
    /// The thread that watched it.
    pub(crate) thread: u32,
    pub(crate) time_s: f64,
    pub(crate) forwarded_frames: u64,
}

/// Which of the sampled CPUs are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfCpus {
    All,
    /// Where it is not known before which will forward.
    ThatForward,
}

/// What was sampled in a slice.
#[derive(Clone, Debug)]
pub(crate) struct ProfileSlice {
    pub(crate) record: ProfileRecord,
    pub(crate) stacks: Folded<'static>,
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

impl Samplers {
    /// Samplers of a slice, switched off.
    ///
    /// # Errors
    /// Where this process may not sample there.
    pub(crate) fn open(places: &[Place], frequency_hz: u32) -> Result<Self, LabError> {
        let samplers = places
            .iter()
            .map(|&place| Ok((place.cpu, open(place, frequency_hz)?)))
            .collect::<Result<Vec<_>, LabError>>()?;
        let switches = samplers
            .iter()
            .map(|(_, sampler)| sampler.switch())
            .collect();
        Ok(Self {
            samplers,
            frequency_hz,
            window: Window {
                switches,
                ..Window::default()
            },
        })
    }

    /// What they have taken, not judged yet.
    pub(crate) fn take(
        self,
        symbols: &mut Symbols,
        load: SampledLoad,
        of_cpus: OfCpus,
    ) -> ProfileSlice {
        let window = self.window;
        let window_ns = window.start_ns.into_inner()..=window.end_ns.into_inner();
        let mut record = ProfileRecord {
            has_kernel: self
                .samplers
                .iter()
                .all(|(_, sampler)| sampler.has_kernel()),
            time_s: load.time_s,
            pooled_pps: as_f64(load.forwarded_frames) / load.time_s,
            ..nothing_sampled(self.frequency_hz)
        };
        symbols.begin_slice();
        let mut all = Vec::new();
        for (cpu, mut sampler) in self.samplers {
            sampler.event().as_str().clone_into(&mut record.event);
            let taken = sampler.take();
            let mut of_cpu = OfCpu {
                cpu,
                lost_samples: taken.lost,
                ..OfCpu::default()
            };
            for sample in &taken.samples {
                if sample.thread == load.thread {
                    of_cpu.harness_samples += 1;
                } else if window_ns.contains(&sample.at_ns) {
                    of_cpu.samples.push(symbols.name(sample));
                } else {
                    of_cpu.outside_samples += 1;
                }
            }
            all.push(of_cpu);
        }
        if of_cpus == OfCpus::ThatForward {
            leave_out_bystanders(&mut all, OfCpu::forwarding_samples);
        }
        let mut stacks = Folded::new();
        for of_cpu in all {
            record.lost_samples += of_cpu.lost_samples;
            record.harness_samples += of_cpu.harness_samples;
            record.outside_samples += of_cpu.outside_samples;
            record.samples_by_cpu.push(CpuSamples {
                cpu: of_cpu.cpu,
                samples: of_cpu.samples.len() as u64,
            });
            for named in of_cpu.samples {
                if named.is_foreign {
                    record.foreign_samples += 1;
                } else {
                    stacks.push(named.frames, 1);
                }
            }
        }
        record.samples = stacks.samples();
        record.idle_samples = stacks.idle_samples();
        ProfileSlice { record, stacks }
    }
}

/// The record of a slice in which nothing was sampled.
pub(crate) fn nothing_sampled(frequency_hz: u32) -> ProfileRecord {
    ProfileRecord {
        frequency_hz,
        has_kernel: true,
        attempts: 1,
        ..ProfileRecord::default()
    }
}

/// What was sampled on a CPU.
#[derive(Default)]
struct OfCpu {
    cpu: u32,
    samples: Vec<Named>,
    harness_samples: u64,
    lost_samples: u64,
    outside_samples: u64,
}

impl OfCpu {
    fn forwarding_samples(&self) -> u64 {
        let forwards = |named: &&Named| named.frames.iter().any(|frame| is_forwarding(frame));
        self.samples.iter().filter(forwards).count() as u64
    }
}

/// Leaves only the CPUs that forward, by how many of a CPU's samples are in functions that do; all where none does, so
/// that it shows.
pub(crate) fn leave_out_bystanders<T>(all: &mut Vec<T>, forwarding_samples: impl Fn(&T) -> u64) {
    let most = all.iter().map(&forwarding_samples).max().unwrap_or(0);
    if most > 0 {
        let at_least = as_f64(most) * FORWARDING_RATIO_MIN;
        all.retain(|of_cpu| as_f64(forwarding_samples(of_cpu)) >= at_least);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of_cpu(cpu: u32, leaves: &[(&str, usize)]) -> OfCpu {
        let samples = leaves.iter().flat_map(|&(leaf, samples)| {
            std::iter::repeat_with(|| Named {
                frames: vec!["thread".to_owned(), leaf.to_owned()],
                is_foreign: false,
            })
            .take(samples)
        });
        OfCpu {
            cpu,
            samples: samples.collect(),
            ..OfCpu::default()
        }
    }

    #[test]
    fn cpus_that_forward_next_to_nothing_are_left_out() {
        let left = |mut all: Vec<OfCpu>| -> Vec<u32> {
            leave_out_bystanders(&mut all, OfCpu::forwarding_samples);
            all.iter().map(|of_cpu| of_cpu.cpu).collect()
        };
        assert_eq!(
            left(vec![
                of_cpu(0, &[("ip_forward", 50), ("default_idle", 50)]),
                of_cpu(1, &[("ip_forward", 4), ("default_idle", 96)]),
                of_cpu(2, &[("ip_forward", 5), ("main", 95)]),
                of_cpu(3, &[("main", 100)]),
            ]),
            [0, 2]
        );
        let idle = || of_cpu(7, &[("default_idle", 3)]);
        assert_eq!(left(vec![idle(), idle()]), [7, 7]);
    }
}
