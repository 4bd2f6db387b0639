//! Profiles for made-up runs.

use fwdlab_archive::Loaded;
use fwdlab_model::{CpuSamples, ProfileEvery, ProfileRecord, ProfileStacks, Profiling};

/// The run with a profile of every trial, each with the stacks that `folded` gives for its variant and block.
pub(crate) fn profiled(mut loaded: Loaded, folded: impl Fn(&str, u32) -> String) -> Loaded {
    loaded.resolved.profiling = Some(Profiling {
        every: ProfileEvery::Block,
        slice_ms: 250,
        frequency_hz: 1999,
    });
    for attempt in &mut loaded.attempts {
        for trial in &mut attempt.trials {
            let folded = folded(trial.variant.as_str(), trial.block);
            let samples = folded
                .lines()
                .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
                .sum();
            trial.profile = Some(Box::new(ProfileRecord {
                event: "cpu-clock".into(),
                frequency_hz: 1999,
                has_kernel: true,
                time_s: 0.25,
                pooled_pps: trial.pooled_pps * 0.95,
                samples,
                idle_samples: 0,
                samples_by_cpu: vec![CpuSamples { cpu: 0, samples }],
                foreign_samples: 0,
                harness_samples: 0,
                lost_samples: 0,
                outside_samples: 0,
                attempts: 1,
                faults: Vec::new(),
            }));
            attempt.profiles.push(ProfileStacks {
                variant: trial.variant.clone(),
                stratum: trial.stratum,
                folded,
            });
        }
    }
    loaded
}

/// Rules cost a fifth of the packet in one function; blocks vary.
pub(crate) fn with_rules(variant: &str, block: u32) -> String {
    let noise = block % 3;
    let rules = if variant.contains("rules") {
        100 + noise
    } else {
        0
    };
    let mut stacks = format!(
        "fwdlab;ip_forward;fib_lookup {}\nfwdlab;ip_forward {}\n",
        300 + noise,
        100 + block % 2
    );
    if rules > 0 {
        stacks += &format!("fwdlab;ip_forward;nft_do_chain {rules}\n");
    }
    stacks
}
