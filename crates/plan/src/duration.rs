//! How long a plan takes.

use fwdlab_model::{BlockRecord, Plan, PlannedBlock, ProfileEvery, Resolved};
use fwdlab_stats::robust_mean;

use crate::run::PlanRun;

/// What a block takes besides its slices.
///
/// Units: seconds. Before a run they are a guess; [`Overheads::learnt`] replaces it by what blocks took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overheads {
    /// Set-up of a block, and taking it down again.
    pub set_up_s: f64,
    /// Switch from one variant to the next, before the settle window.
    pub switch_s: f64,
    /// Once for each stratum, everything else: start of the generator, its own cost's control,
    /// conservation, profiles that are taken again, what is written down.
    pub stratum_s: f64,
}

impl Overheads {
    /// How long one block takes, in seconds.
    #[must_use]
    pub fn block_s(&self, block: &PlannedBlock, resolved: &Resolved) -> f64 {
        let design = &resolved.design;
        let switch_s = self.switch_s + f64::from(design.settle_ms) / 1e3;
        let slice_s = switch_s + f64::from(design.slice_ms) / 1e3;
        let strata_s: f64 = block
            .strata
            .iter()
            .map(|stratum| {
                let slices: usize = stratum.rounds.iter().map(Vec::len).sum();
                let variants = stratum.rounds.first().map_or(0, Vec::len);
                let profiles_s = resolved.profiling.map_or(0.0, |profiling| {
                    let profile_s = f64::from(profiling.slice_ms) / 1e3;
                    match profiling.every {
                        ProfileEvery::Block => variants as f64 * (switch_s + profile_s),
                        ProfileEvery::Trial => slices as f64 * profile_s,
                    }
                });
                let warm_up_s = f64::from(design.warm_up_ms) / 1e3;
                self.stratum_s + warm_up_s + slices as f64 * slice_s + profiles_s
            })
            .sum();
        self.set_up_s + strata_s
    }

    /// The same, with this guess replaced by what blocks of a run took by the clock, whatever became of
    /// their trials.
    ///
    /// Of each part the robust mean counts; the guess still makes up a quarter of it after one block and a
    /// ninth after two. A block whose time was not clocked says nothing of what else it took.
    #[must_use]
    pub fn learnt<'a>(
        self,
        resolved: &Resolved,
        plan: &Plan,
        blocks: impl IntoIterator<Item = &'a BlockRecord>,
    ) -> Self {
        let (mut set_ups, mut switches, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for block in blocks {
            set_ups.push(block.set_up_s);
            switches.push(block.switch_s);
            let planned = plan.blocks.iter().find(|of| of.number == block.block);
            if let Some((planned, took_s)) = planned.zip(block.took_s) {
                let known = Self {
                    set_up_s: block.set_up_s,
                    switch_s: block.switch_s,
                    stratum_s: 0.0,
                };
                let strata = planned.strata.len().max(1) as f64;
                let other_s = (took_s - known.block_s(planned, resolved)) / strata;
                others.push(other_s.max(0.0));
            }
        }
        Self {
            set_up_s: mixed(self.set_up_s, &set_ups),
            switch_s: mixed(self.switch_s, &switches),
            stratum_s: mixed(self.stratum_s, &others),
        }
    }

    /// How long the rest of a run takes, in seconds, when its block under way began `in_block_s` ago. A block
    /// that takes longer than was thought takes nothing from the time of those after it.
    #[must_use]
    pub fn left_s(&self, run: &PlanRun, resolved: &Resolved, in_block_s: f64) -> f64 {
        let mut open = run.open_blocks();
        let under_way_s = open
            .next()
            .map_or(0.0, |block| self.block_s(block, resolved) - in_block_s);
        under_way_s.max(0.0) + self.blocks_s(open, resolved)
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

/// An estimate of what blocks take besides their slices, before a run and while it goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    overheads: Overheads,
    is_known: bool,
}

impl Estimate {
    /// The estimate before anything was measured in such a lab: what blocks took on a small virtual machine. How long
    /// hosts take, over ssh, with or without a boot, only a run can tell.
    #[must_use]
    pub fn first(resolved: &Resolved) -> Self {
        // A program takes far longer to start than a setting to change.
        const FORWARDER_START_S: f64 = 2.0;
        let switch_s = match resolved.has_forwarder() {
            true => FORWARDER_START_S,
            false => 0.015,
        };
        Self {
            overheads: Overheads {
                set_up_s: 0.5,
                switch_s,
                stratum_s: 0.4,
            },
            is_known: !resolved.lab.kind.is_remote(),
        }
    }

    /// The same, with what blocks of a run took ([`Overheads::learnt`]).
    #[must_use]
    pub fn learnt<'a>(
        self,
        resolved: &Resolved,
        plan: &Plan,
        blocks: impl IntoIterator<Item = &'a BlockRecord>,
    ) -> Self {
        let mut blocks = blocks.into_iter().peekable();
        Self {
            is_known: self.is_known || blocks.peek().is_some(),
            overheads: self.overheads.learnt(resolved, plan, blocks),
        }
    }

    /// What blocks take; none where only a run can tell, and none has.
    #[must_use]
    pub fn known(self) -> Option<Overheads> {
        self.is_known.then_some(self.overheads)
    }

    /// What blocks take, as a mere guess where nothing is known.
    #[must_use]
    pub const fn overheads(self) -> Overheads {
        self.overheads
    }
}

/// What was measured, with the less of the guess the more there is of it.
fn mixed(guess: f64, measured: &[f64]) -> f64 {
    let finite: Vec<f64> = measured.iter().copied().filter(|s| s.is_finite()).collect();
    let of_guess = (1.0 + finite.len() as f64).powi(-2);
    robust_mean(&finite).map_or(guess, |mean| guess * of_guess + mean * (1.0 - of_guess))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fwdlab_model::{
        Binding, Forwarder, Forwards, LabKind, Profiling, Ready, SCHEMA_VERSION, System,
    };
    use proptest::prelude::*;

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
            stratum_s: 0.5,
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

    const GUESS: Overheads = Overheads {
        set_up_s: 0.5,
        switch_s: 0.015,
        stratum_s: 0.4,
    };

    fn record(block: u32, set_up_s: f64, switch_s: f64, took_s: Option<f64>) -> BlockRecord {
        BlockRecord {
            schema: SCHEMA_VERSION,
            session: 1,
            block,
            attempt: 1,
            start: String::new(),
            set_up_s,
            took_s,
            clock_step_s: None,
            switch_s,
            conservation: BTreeMap::new(),
            generator_cost_ns: BTreeMap::new(),
            undisturbed_loop_ns: 0.0,
            cpu_account: None,
            cpu_speeds: Vec::new(),
            rate_basis: BTreeMap::new(),
            differing_facts: BTreeMap::new(),
            tester: None,
        }
    }

    /// What is left after each block, as a run that measures blocks of these lengths would say, beginning
    /// with the promise before the first.
    fn told_s(resolved: &Resolved, took_s: &[f64]) -> Vec<f64> {
        let plan = build(resolved).unwrap();
        let records: Vec<BlockRecord> = (1..)
            .zip(took_s)
            .map(|(block, &took_s)| record(block, took_s * 0.2, 0.03, Some(took_s)))
            .collect();
        (0..=took_s.len())
            .map(|measured| {
                GUESS
                    .learnt(resolved, &plan, &records[..measured])
                    .blocks_s(&plan.blocks[measured..], resolved)
            })
            .collect()
    }

    #[test]
    fn time_left_is_learnt_from_blocks_that_take_longer_than_was_guessed() {
        let mut resolved = experiment(7, 8, 5);
        resolved.profiling = Some(Profiling {
            every: ProfileEvery::Block,
            slice_ms: 200,
            frequency_hz: 4999,
        });
        // 56 s were promised once, and 101 s taken; here profiles are taken again, and set-ups take long.
        let took_s = [13.4, 12.2, 12.6, 12.5, 12.9, 12.3, 12.6, 12.7];
        let told_s = told_s(&resolved, &took_s);
        let truth_s = |measured: usize| took_s[measured..].iter().sum::<f64>();
        assert!(
            told_s[0] < 0.8 * truth_s(0),
            "promised {} of {}",
            told_s[0],
            truth_s(0)
        );
        for (measured, left_s) in told_s.iter().enumerate().take(8).skip(2) {
            let off = left_s / truth_s(measured) - 1.0;
            assert!(off.abs() < 0.06, "after {measured} blocks {off}");
        }
        // The promise is put right once, and from then on it only counts down.
        for pair in told_s[1..].windows(2) {
            assert!(pair[1] < pair[0], "{told_s:?}");
        }
    }

    #[test]
    fn a_block_that_took_far_too_long_is_soon_forgotten() {
        let resolved = experiment(5, 12, 10);
        let mut took_s = [12.0; 12];
        took_s[3] = 300.0;
        let told_s = told_s(&resolved, &took_s);
        for (measured, left_s) in told_s.iter().enumerate().take(12).skip(4) {
            let truth_s = 12.0 * (12 - measured) as f64;
            assert!((left_s / truth_s - 1.0).abs() < 0.05, "{told_s:?}");
        }
    }

    #[test]
    fn a_record_without_its_time_still_tells_set_up_and_switches() {
        let resolved = experiment(5, 8, 10);
        let plan = build(&resolved).unwrap();
        let records: Vec<BlockRecord> = (1..=8)
            .map(|block| record(block, 4.5, 0.05, None))
            .collect();
        let learnt = GUESS.learnt(&resolved, &plan, &records);
        assert!((learnt.set_up_s - 4.5).abs() < 0.06, "{learnt:?}");
        assert!((learnt.switch_s - 0.05).abs() < 0.001, "{learnt:?}");
        assert!((learnt.stratum_s - GUESS.stratum_s).abs() < f64::EPSILON);
        let nothing: [BlockRecord; 0] = [];
        assert_eq!(GUESS.learnt(&resolved, &plan, &nothing), GUESS);
    }

    #[test]
    fn a_first_estimate_knows_that_forwarders_start_and_nothing_of_hosts() {
        let mut resolved = experiment(5, 8, 10);
        let plan = build(&resolved).unwrap();
        let of_kernel = Estimate::first(&resolved);
        assert_eq!(of_kernel.known(), Some(of_kernel.overheads()));
        let program = Forwarder {
            start: vec!["forward".into()],
            ready: Ready::Prints("forwarding".into()),
            stop: None,
            forwards: Forwards::default(),
        };
        let levels = BTreeMap::from([("own".to_owned(), Some(program))]);
        let binding = Binding::Forwarder(levels);
        resolved.lab.bindings.insert("forwarder".into(), binding);
        let of_programs = Estimate::first(&resolved);
        let run_s = |of: Estimate| of.overheads().blocks_s(&plan.blocks, &resolved);
        assert!(run_s(of_programs) > 2.0 * run_s(of_kernel));

        resolved.lab.kind = LabKind::Ssh(System::Linux);
        let of_hosts = Estimate::first(&resolved);
        assert_eq!(of_hosts.known(), None);
        let measured = [record(1, 4.0, 0.5, Some(30.0))];
        let learnt = of_hosts.learnt(&resolved, &plan, &measured);
        let expected = of_hosts.overheads().learnt(&resolved, &plan, &measured);
        assert_eq!(learnt.known(), Some(expected));
    }

    #[test]
    fn a_block_that_overruns_takes_nothing_from_the_others() {
        let resolved = experiment(5, 8, 10);
        let run = PlanRun::resume(build(&resolved).unwrap(), &[]);
        let block_s = GUESS.block_s(&run.plan().blocks[0], &resolved);
        let left_s = |in_block_s| GUESS.left_s(&run, &resolved, in_block_s);
        assert!((left_s(0.0) - 8.0 * block_s).abs() < 1e-9);
        assert!((left_s(3.0) - (8.0 * block_s - 3.0)).abs() < 1e-9);
        assert!((left_s(10.0 * block_s) - 7.0 * block_s).abs() < 1e-9);
    }

    proptest! {
        /// Whatever the clock says, what is left stays between nothing and what the slowest block, or the
        /// guess, would make of it.
        #[test]
        fn what_is_left_is_never_negative_nor_beyond_the_slowest_block(
            took_s in prop::collection::vec(-5.0_f64..5000.0, 1..8),
            switch_s in 0.0_f64..2.0,
        ) {
            let resolved = experiment(5, 8, 10);
            let plan = build(&resolved).unwrap();
            let records: Vec<BlockRecord> = (1..)
                .zip(&took_s)
                .map(|(block, &took_s)| record(block, 1.0, switch_s, Some(took_s)))
                .collect();
            let at_least = Overheads { set_up_s: 1.0, switch_s: switch_s.max(GUESS.switch_s), stratum_s: 0.4 };
            let most_s = took_s
                .iter()
                .copied()
                .fold(at_least.block_s(&plan.blocks[0], &resolved), f64::max);
            for measured in 0..=records.len() {
                let learnt = GUESS.learnt(&resolved, &plan, &records[..measured]);
                let left_s = learnt.blocks_s(&plan.blocks[measured..], &resolved);
                prop_assert!(left_s >= 0.0);
                prop_assert!(left_s <= most_s * (8 - measured) as f64 * (1.0 + 1e-9), "{} {}", left_s, most_s);
            }
        }
    }
}
