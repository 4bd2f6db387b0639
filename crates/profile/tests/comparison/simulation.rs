//! Profiles whose truth is known: samples drawn from a tree of functions whose costs vary.

use fwdlab_profile::{Comparison, Folded, ProfilePair, Profiled, compare_profiles};
use fwdlab_stats::Generator;

/// Functions at the leaves of the tree, of sizes as in real profiles: a few large, many small.
const LEAVES: usize = 90;
/// What a packet costs.
const NS_PER_PACKET: f64 = 500.0;

/// How much costs vary, as a standard deviation of their logarithm.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    /// Of each function from block to block, in both variants alike.
    pub(crate) blocks: f64,
    /// Of each function from one profile to the next.
    pub(crate) profiles: f64,
}

pub(crate) struct Simulation {
    generator: Generator,
    stacks: Vec<String>,
    costs: Vec<f64>,
    pub(crate) spread: Spread,
    pub(crate) blocks: usize,
    pub(crate) samples: u32,
}

impl Simulation {
    pub(crate) fn new(seed: u64) -> Self {
        let costs: Vec<f64> = (1..=LEAVES).map(|rank| 1.0 / (rank as f64 + 2.0)).collect();
        let all: f64 = costs.iter().sum();
        Self {
            generator: Generator::new(seed),
            stacks: (0..LEAVES)
                .map(|leaf| format!("loop;rx;group_{};part_{};leaf_{leaf}", leaf % 7, leaf % 30))
                .collect(),
            costs: costs
                .iter()
                .map(|cost| cost / all * NS_PER_PACKET)
                .collect(),
            spread: Spread {
                blocks: 0.1,
                profiles: 0.05,
            },
            blocks: 8,
            samples: 500,
        }
    }

    pub(crate) fn cost(&self, leaf: usize) -> f64 {
        self.costs[leaf]
    }

    /// Between 0 and 1.
    fn unit(&mut self) -> f64 {
        (f64::from(self.generator.below(1 << 30)) + 0.5) / f64::from(1 << 30)
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// One profile of those costs, and what a packet cost in it.
    fn profile(&mut self, costs: &[f64]) -> (Folded<'static>, f64) {
        let mut sum = 0.0;
        let mut sums = Vec::with_capacity(costs.len());
        for cost in costs {
            sum += cost * (self.spread.profiles * self.normal()).exp();
            sums.push(sum);
        }
        let mut counts = vec![0; costs.len()];
        for _ in 0..self.samples {
            let at = self.unit() * sum;
            counts[sums.partition_point(|sum| *sum < at).min(costs.len() - 1)] += 1;
        }
        let mut folded = Folded::new();
        for (stack, samples) in self.stacks.iter().zip(counts) {
            if samples > 0 {
                folded.push(stack.split(';').map(str::to_owned), samples);
            }
        }
        (folded, sum)
    }

    /// The comparison of all blocks, where the variant's costs are the baseline's and `added` ones.
    pub(crate) fn compare(&mut self, added: &[(usize, f64)]) -> Comparison {
        let mut profiles = Vec::new();
        for _ in 0..self.blocks {
            let baseline: Vec<f64> = (0..self.costs.len())
                .map(|leaf| self.costs[leaf] * (self.spread.blocks * self.normal()).exp())
                .collect();
            let mut variant = baseline.clone();
            for (leaf, ns) in added {
                variant[*leaf] = (variant[*leaf] + ns).max(0.0);
            }
            profiles.push([self.profile(&baseline), self.profile(&variant)]);
        }
        let pairs: Vec<ProfilePair> = profiles
            .iter()
            .map(|[baseline, variant]| ProfilePair {
                baseline: profiled(baseline),
                variant: profiled(variant),
            })
            .collect();
        compare_profiles(&pairs, 0.95).expect("simulated profiles have samples")
    }
}

fn profiled<'a>((stacks, ns_per_packet): &'a (Folded<'static>, f64)) -> Profiled<'a> {
    Profiled {
        stacks,
        ns_per_packet: *ns_per_packet,
    }
}
