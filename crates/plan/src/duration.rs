//! How long a plan takes.

use fwdlab_model::{PlannedBlock, ProfileEvery, Resolved};

/// What a block takes besides its slices.
///
/// Units: seconds. Before a run they are assumptions; while it runs, the medians of what was
/// measured so far serve better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overheads {
    /// Set-up of a block, and taking it down again.
    pub set_up_s: f64,
    /// Switch from one variant to the next, before the settle window.
    pub switch_s: f64,
    /// Once for each address family: start of the generator, its own cost's control, conservation.
    pub family_s: f64,
}

impl Overheads {
    /// How long one block takes, in seconds.
    #[must_use]
    pub fn block_s(&self, block: &PlannedBlock, resolved: &Resolved) -> f64 {
        let design = &resolved.design;
        let switch_s = self.switch_s + f64::from(design.settle_ms) / 1e3;
        let slice_s = switch_s + f64::from(design.slice_ms) / 1e3;
        let families_s: f64 = block
            .families
            .iter()
            .map(|family| {
                let slices: usize = family.rounds.iter().map(Vec::len).sum();
                let variants = family.rounds.first().map_or(0, Vec::len);
                let profiles_s = resolved.profiling.map_or(0.0, |profiling| {
                    let profile_s = f64::from(profiling.slice_ms) / 1e3;
                    match profiling.every {
                        ProfileEvery::Block => variants as f64 * (switch_s + profile_s),
                        ProfileEvery::Trial => slices as f64 * profile_s,
                    }
                });
                let warm_up_s = f64::from(design.warm_up_ms) / 1e3;
                self.family_s + warm_up_s + slices as f64 * slice_s + profiles_s
            })
            .sum();
        self.set_up_s + families_s
    }

    /// How long some blocks take together, in seconds.
    #[must_use]
    pub fn blocks_s<'a>(
        &self,
        blocks: impl IntoIterator<Item = &'a PlannedBlock>,
        resolved: &Resolved,
    ) -> f64 {
        blocks
            .into_iter()
            .map(|block| self.block_s(block, resolved))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use fwdlab_model::Profiling;

    use super::*;
    use crate::build::build;
    use crate::build::tests::experiment;

    #[test]
    fn the_quickstart_takes_about_a_minute_and_a_half() {
        let mut resolved = experiment(5, 8, 10);
        let plan = build(&resolved).unwrap();
        let overheads = Overheads {
            set_up_s: 2.0,
            switch_s: 0.02,
            family_s: 0.5,
        };
        // 2 s + 0.5 s + 1 s + 50 slices of 20 + 50 + 100 ms.
        let block_s = overheads.block_s(&plan.blocks[0], &resolved);
        assert!((block_s - 12.0).abs() < 1e-9, "{block_s}");
        let run_s = overheads.blocks_s(&plan.blocks, &resolved);
        assert!((run_s - 96.0).abs() < 1e-9, "{run_s}");
        assert!(overheads.blocks_s([], &resolved) < f64::MIN_POSITIVE);

        // One more round, and a slice more behind each.
        for (every, more_s) in [
            (ProfileEvery::Block, 5.0 * (0.07 + 0.2)),
            (ProfileEvery::Trial, 50.0 * 0.2),
        ] {
            resolved.profiling = Some(Profiling {
                every,
                slice_ms: 200,
                frequency_hz: 4999,
            });
            let profiled_s = overheads.block_s(&plan.blocks[0], &resolved);
            assert!((profiled_s - block_s - more_s).abs() < 1e-9, "{profiled_s}");
        }
    }
}
