//! How long a plan takes.

use fwdlab_model::{Design, PlannedBlock};

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
    pub fn block_s(&self, block: &PlannedBlock, design: &Design) -> f64 {
        let slice_s =
            self.switch_s + f64::from(design.settle_ms) / 1e3 + f64::from(design.slice_ms) / 1e3;
        let families_s: f64 = block
            .families
            .iter()
            .map(|family| {
                let slices: usize = family.rounds.iter().map(Vec::len).sum();
                self.family_s + f64::from(design.warm_up_ms) / 1e3 + slices as f64 * slice_s
            })
            .sum();
        self.set_up_s + families_s
    }

    /// How long some blocks take together, in seconds.
    #[must_use]
    pub fn blocks_s<'a>(
        &self,
        blocks: impl IntoIterator<Item = &'a PlannedBlock>,
        design: &Design,
    ) -> f64 {
        blocks
            .into_iter()
            .map(|block| self.block_s(block, design))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::build;
    use crate::build::tests::experiment;

    #[test]
    fn the_quickstart_takes_about_a_minute_and_a_half() {
        let resolved = experiment(5, 8, 10);
        let plan = build(&resolved).unwrap();
        let overheads = Overheads {
            set_up_s: 2.0,
            switch_s: 0.02,
            family_s: 0.5,
        };
        // 2 s + 0.5 s + 1 s + 50 slices of 20 + 50 + 100 ms.
        let block_s = overheads.block_s(&plan.blocks[0], &resolved.design);
        assert!((block_s - 12.0).abs() < 1e-9, "{block_s}");
        let run_s = overheads.blocks_s(&plan.blocks, &resolved.design);
        assert!((run_s - 96.0).abs() < 1e-9, "{run_s}");
        assert!(overheads.blocks_s([], &resolved.design) < f64::MIN_POSITIVE);
    }
}
