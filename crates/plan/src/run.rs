//! What to do next: which block is measured, measured again, or given up.

use std::collections::BTreeMap;
use std::mem::{discriminant, take};

use fwdlab_model::record::{Fate, fates};
use fwdlab_model::{
    BlockRecord, InvalidReason, NextSlice, Plan, PlannedBlock, Record, SliceRecord, SliceSource,
    Stratum, TrialRecord,
};

/// How often a block is measured at most.
pub const ATTEMPTS_MAX: u32 = 3;

/// How often blocks may be repeated in a run of that many blocks, so that a lab that spoils
/// everything is not run for ever.
const fn repeats_max(blocks: usize) -> usize {
    blocks / 2 + 2
}

/// A block that is to be measured now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// The block with its orders; they are the same in every attempt.
    pub block: PlannedBlock,
    /// The number of this attempt, from 1, to be written into its records.
    pub attempt: u32,
}

/// Where a block stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockState {
    /// It is to be measured, for the first time or again.
    Open,
    /// Its last attempt stands for it.
    Accepted,
    /// Every attempt at it was invalid, and it is not tried again.
    GivenUp,
}

/// What came of the blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Blocks with an accepted attempt.
    pub accepted: Vec<u32>,
    /// Blocks that were given up.
    pub given_up: Vec<u32>,
    /// Blocks still to be measured.
    pub open: Vec<u32>,
}

/// A plan and how far it has been carried out.
///
/// ```
/// # use fwdlab_plan::PlanRun;
/// # let (plan, records) = (fwdlab_model::Plan { seed: 1, blocks: vec![] }, vec![]);
/// # let measure = |_| -> (Vec<fwdlab_model::TrialRecord>, fwdlab_model::BlockRecord) { unreachable!("no blocks") };
/// let mut run = PlanRun::resume(plan, &records);
/// while let Some(request) = run.poll_block() {
///     let (trials, block) = measure(request);
///     run.handle_outcome(&trials, &block);
/// }
/// assert!(run.summary().open.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRun {
    plan: Plan,
    progress: BTreeMap<u32, Progress>,
    repeats: usize,
    start: Start,
}

/// How a run began.
#[derive(Clone, Debug, PartialEq)]
enum Start {
    /// A block was valid.
    Good,
    /// No attempt was valid so far.
    Bad {
        attempts: u32,
        /// What speaks against every one of them, and does not pass by itself: as the last attempt has it.
        reasons: Vec<InvalidReason>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Progress {
    state: BlockState,
    /// Whole attempts, all invalid unless the block is accepted.
    attempts: u32,
    /// The highest attempt number in any record, whole or not.
    last_number: u32,
}

impl PlanRun {
    /// A plan that was carried out as far as its records tell.
    ///
    /// Shape: the records in the order in which they were written; none for a new run. Records of
    /// blocks that are not in the plan are ignored.
    #[must_use]
    pub fn resume(plan: Plan, records: &[Record]) -> Self {
        let progress = plan
            .blocks
            .iter()
            .map(|block| {
                let progress = Progress {
                    state: BlockState::Open,
                    attempts: 0,
                    last_number: 0,
                };
                (block.number, progress)
            })
            .collect();
        let mut run = Self {
            plan,
            progress,
            repeats: 0,
            start: Start::Bad {
                attempts: 0,
                reasons: Vec::new(),
            },
        };
        let mut reasons = Vec::new();
        let mut attempt = (0, 0);
        for (record, fate) in records.iter().zip(fates(records)) {
            match record {
                Record::Trial(trial) => {
                    run.note_attempt(trial.block, trial.attempt);
                    // Of an attempt that was cut short, nothing counts.
                    if attempt != (trial.block, trial.attempt) {
                        attempt = (trial.block, trial.attempt);
                        reasons.clear();
                    }
                    reasons.extend(trial.invalid.iter().cloned());
                }
                Record::Block(block) => {
                    run.note_whole(block, fate != Fate::Invalid, take(&mut reasons));
                }
            }
        }
        run
    }

    /// The block to measure now; none where the plan is carried out.
    #[must_use]
    pub fn poll_block(&self) -> Option<BlockRequest> {
        let block = self.open_blocks().next()?;
        Some(BlockRequest {
            block: block.clone(),
            attempt: self.progress[&block.number].last_number + 1,
        })
    }

    /// Takes in a block that was measured to its end.
    pub fn handle_outcome(&mut self, trials: &[TrialRecord], block: &BlockRecord) {
        let valid = !trials.is_empty() && trials.iter().all(|trial| trial.invalid.is_empty());
        let reasons = trials
            .iter()
            .flat_map(|trial| trial.invalid.iter().cloned());
        self.note_whole(block, valid, reasons.collect());
    }

    /// Why it is of no use to go on: all attempts at the first block were invalid for this reason, which
    /// does not pass by itself. What does (a neighbour takes the CPU) ends no run.
    #[must_use]
    pub fn hopeless(&self) -> Option<&InvalidReason> {
        match &self.start {
            Start::Bad { attempts, reasons } if *attempts >= ATTEMPTS_MAX => reasons.first(),
            _ => None,
        }
    }

    fn note_attempt(&mut self, block: u32, attempt: u32) {
        if let Some(progress) = self.progress.get_mut(&block) {
            progress.last_number = progress.last_number.max(attempt);
        }
    }

    fn note_whole(&mut self, block: &BlockRecord, valid: bool, reasons: Vec<InvalidReason>) {
        self.note_attempt(block.block, block.attempt);
        self.start.note(valid, reasons);
        let repeats_left = self.repeats < repeats_max(self.plan.blocks.len());
        let Some(progress) = self.progress.get_mut(&block.block) else {
            return;
        };
        if progress.state != BlockState::Open {
            return;
        }
        progress.attempts += 1;
        if valid {
            progress.state = BlockState::Accepted;
        } else if progress.attempts < ATTEMPTS_MAX && repeats_left {
            self.repeats += 1;
        } else {
            progress.state = BlockState::GivenUp;
        }
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where the block of that number stands; none where the plan has no such block.
    fn state(&self, block: u32) -> Option<BlockState> {
        self.progress.get(&block).map(|progress| progress.state)
    }

    /// The blocks still to be measured, in order; what is left of a run's time follows from them.
    pub fn open_blocks(&self) -> impl Iterator<Item = &PlannedBlock> {
        self.plan
            .blocks
            .iter()
            .filter(|block| self.state(block.number) == Some(BlockState::Open))
    }

    /// How often blocks of this plan may be measured again, all of them together.
    #[must_use]
    pub const fn repeats_max(&self) -> usize {
        repeats_max(self.plan.blocks.len())
    }

    /// What came of the blocks so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for (&block, progress) in &self.progress {
            let blocks = match progress.state {
                BlockState::Open => &mut summary.open,
                BlockState::Accepted => &mut summary.accepted,
                BlockState::GivenUp => &mut summary.given_up,
            };
            blocks.push(block);
        }
        summary
    }
}

impl SliceSource for PlanRun {
    /// The slices of the block that [`poll_block`](Self::poll_block) asks for.
    fn next_slice(&mut self, stratum: Stratum, last: Option<&SliceRecord>) -> Option<NextSlice> {
        self.open_blocks().next()?.slice_after(stratum, last)
    }
}

impl Start {
    fn note(&mut self, valid: bool, reasons: Vec<InvalidReason>) {
        let Self::Bad {
            attempts,
            reasons: common,
        } = self
        else {
            return;
        };
        if valid {
            *self = Self::Good;
            return;
        }
        let is_common = |reason: &InvalidReason| {
            let kind = discriminant(reason);
            *attempts == 0 || common.iter().any(|other| discriminant(other) == kind)
        };
        let passes = |reason: &InvalidReason| {
            matches!(
                reason,
                InvalidReason::Stolen { .. }
                    | InvalidReason::Calibration { .. }
                    | InvalidReason::Stalled { .. }
                    | InvalidReason::Competition { .. }
            )
        };
        let mut reasons = reasons;
        reasons.retain(|reason| !passes(reason) && is_common(reason));
        *common = reasons;
        *attempts += 1;
    }
}

#[cfg(test)]
mod tests {
    use fwdlab_model::{
        DutReading, InvalidReason, PlannedSlice, SCHEMA_VERSION, TesterReading, VariantName,
    };
    use proptest::prelude::*;

    use super::*;
    use crate::build::build;
    use crate::build::tests::experiment;

    fn plan(blocks: u32) -> Plan {
        build(&experiment(2, blocks, 1)).unwrap()
    }

    /// What the lab would hand back.
    fn outcome(
        request: &BlockRequest,
        session: u32,
        valid: bool,
    ) -> (Vec<TrialRecord>, BlockRecord) {
        let trials = request.block.strata[0]
            .variants()
            .map(|variant| trial(request, session, variant, valid))
            .collect();
        let block = BlockRecord {
            schema: SCHEMA_VERSION,
            session,
            block: request.block.number,
            attempt: request.attempt,
            start: String::new(),
            set_up_s: 1.0,
            took_s: None,
            clock_step_s: None,
            switch_s: 0.0,
            conservation: BTreeMap::new(),
            generator_cost_ns: BTreeMap::new(),
            undisturbed_loop_ns: 1.0,
            cpu_account: None,
            cpu_speeds: Vec::new(),
            rate_basis: BTreeMap::new(),
            differing_facts: BTreeMap::new(),
            tester: None,
        };
        (trials, block)
    }

    fn trial(
        request: &BlockRequest,
        session: u32,
        variant: &VariantName,
        valid: bool,
    ) -> TrialRecord {
        TrialRecord {
            schema: SCHEMA_VERSION,
            session,
            block: request.block.number,
            attempt: request.attempt,
            order: 0,
            variant: variant.clone(),
            stratum: Stratum::INET,
            start: String::new(),
            measured_s: 1.0,
            tester: TesterReading::default(),
            dut: DutReading::default(),
            kernel_drop_reasons: BTreeMap::new(),
            undisturbed_s: 1.0,
            observation_pps: 1.0,
            pooled_pps: 1.0,
            competing_s: None,
            competitors: Vec::new(),
            steal_s: 0.0,
            calibration_ns: 1.0,
            profile: None,
            invalid: (!valid)
                .then_some(InvalidReason::Unaccounted { frames: 1 })
                .into_iter()
                .collect(),
        }
    }

    /// Runs to the end; `valid` says what the lab measures.
    fn carry_out(
        run: &mut PlanRun,
        records: &mut Vec<Record>,
        mut valid: impl FnMut(&BlockRequest) -> bool,
    ) -> Vec<(u32, u32)> {
        let mut measured = vec![];
        while let Some(request) = run.poll_block() {
            let (trials, block) = outcome(&request, 1, valid(&request));
            measured.push((block.block, block.attempt));
            run.handle_outcome(&trials, &block);
            records.extend(trials.into_iter().map(Record::Trial));
            records.push(Record::Block(block));
        }
        measured
    }

    #[test]
    fn valid_blocks_are_measured_once_in_order() {
        let mut run = PlanRun::resume(plan(6), &[]);
        let measured = carry_out(&mut run, &mut vec![], |_| true);
        assert!(measured.into_iter().eq((1..=6).map(|block| (block, 1))));
        let summary = run.summary();
        assert_eq!(summary.accepted, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_slices_of_the_open_block_follow_one_another() {
        let mut run = PlanRun::resume(build(&experiment(2, 6, 3)).unwrap(), &[]);
        let stratum = Stratum::INET;
        for _ in 0..2 {
            let request = run.poll_block().unwrap();
            let mut last: Option<SliceRecord> = None;
            let mut rounds: Vec<Vec<PlannedSlice>> = Vec::new();
            while let Some(next) = run.next_slice(stratum, last.as_ref()) {
                if next.position == 0 {
                    rounds.push(Vec::new());
                }
                assert_eq!(next.round as usize, rounds.len());
                let round = rounds.last_mut().unwrap();
                assert_eq!(next.position as usize, round.len());
                last = Some(measured(stratum, &next));
                round.push(next.slice);
            }
            assert_eq!(rounds, request.block.strata[0].rounds);
            assert_eq!(run.next_slice(Stratum::INET6, None), None);
            let (trials, block) = outcome(&request, 1, true);
            run.handle_outcome(&trials, &block);
        }
    }

    fn measured(stratum: Stratum, next: &NextSlice) -> SliceRecord {
        let variant = next.slice.variant.clone();
        SliceRecord::at(stratum, next.round, next.position, variant)
    }

    #[test]
    fn an_invalid_block_is_repeated_and_then_given_up() {
        let mut run = PlanRun::resume(plan(6), &[]);
        let measured = carry_out(&mut run, &mut vec![], |request| {
            match request.block.number {
                2 => request.attempt == 2,
                4 => false,
                _ => true,
            }
        });
        let expected = [
            (1, 1),
            (2, 1),
            (2, 2),
            (3, 1),
            (4, 1),
            (4, 2),
            (4, 3),
            (5, 1),
            (6, 1),
        ];
        assert_eq!(measured, expected);
        for (block, state, attempts) in [(2, BlockState::Accepted, 2), (4, BlockState::GivenUp, 3)]
        {
            let progress = &run.progress[&block];
            assert_eq!((progress.state, progress.attempts), (state, attempts));
        }
        assert_eq!(run.state(7), None);
        let summary = run.summary();
        assert_eq!(summary.accepted, [1, 2, 3, 5, 6]);
        assert_eq!(summary.given_up, [4]);
    }

    #[test]
    fn a_lab_that_spoils_everything_is_not_run_for_ever() {
        let mut run = PlanRun::resume(plan(8), &[]);
        let mut records = vec![];
        let measured = carry_out(&mut run, &mut records, |_| false);
        // Eight blocks and 8/2 + 2 repeats.
        assert_eq!(measured.len(), 14);
        assert_eq!(run.summary().given_up.len(), 8);
        let reason = InvalidReason::Unaccounted { frames: 1 };
        assert_eq!(run.hopeless(), Some(&reason));
        assert_eq!(PlanRun::resume(plan(8), &records), run);
    }

    /// Why a run is hopeless after three attempts that were invalid for these reasons.
    fn hopeless_after(reasons: [&[InvalidReason]; 3]) -> Option<InvalidReason> {
        let mut run = PlanRun::resume(plan(8), &[]);
        for reasons in reasons {
            let request = run.poll_block().unwrap();
            let (mut trials, block) = outcome(&request, 1, true);
            trials[0].invalid = reasons.to_vec();
            run.handle_outcome(&trials, &block);
        }
        run.hopeless().cloned()
    }

    #[test]
    fn only_a_reason_that_all_attempts_share_and_that_stays_makes_a_run_hopeless() {
        let lost = |frames| InvalidReason::Unaccounted { frames };
        let short = |ratio| InvalidReason::LoadShort { ratio, bound: 0.99 };
        let stolen = InvalidReason::Stolen {
            ratio: 0.5,
            bound: 0.25,
        };
        let ends = hopeless_after([
            &[short(0.5), lost(1)],
            &[short(0.6)],
            &[lost(2), short(0.7)],
        ]);
        assert_eq!(ends, Some(short(0.7)));
        assert_eq!(
            hopeless_after([&[short(0.5)], &[lost(1)], &[short(0.5)]]),
            None
        );
        let competition = InvalidReason::Competition {
            alone_ratio: 0.01,
            bound: 0.05,
            by: "cargo".to_owned(),
        };
        for passes in [stolen, competition] {
            let passes = [passes];
            assert_eq!(hopeless_after([&passes, &passes, &passes]), None);
        }
    }

    #[test]
    fn one_invalid_trial_spoils_its_block() {
        let mut run = PlanRun::resume(plan(6), &[]);
        let request = run.poll_block().unwrap();
        let (mut trials, block) = outcome(&request, 1, true);
        trials[1].invalid = vec![InvalidReason::Unaccounted { frames: -1 }];
        run.handle_outcome(&trials, &block);
        assert_eq!(run.state(1), Some(BlockState::Open));
        assert_eq!(run.poll_block().unwrap().attempt, 2);
    }

    #[test]
    fn a_block_cut_short_is_redone_under_the_next_number_and_counts_as_no_attempt() {
        let fresh = PlanRun::resume(plan(6), &[]);
        let request = fresh.poll_block().unwrap();
        let (mut trials, _) = outcome(&request, 1, true);
        let cut_short = [Record::Trial(trials.remove(0))];
        let mut run = PlanRun::resume(plan(6), &cut_short);
        let mut attempts = vec![];
        while let Some(request) = run.poll_block().filter(|request| request.block.number == 1) {
            let (trials, block) = outcome(&request, 2, false);
            attempts.push(request.attempt);
            run.handle_outcome(&trials, &block);
        }
        assert_eq!(attempts, [2, 3, 4]);
    }

    proptest! {
        #[test]
        fn resuming_anywhere_goes_on_as_if_nothing_had_happened(
            blocks in 6..12_u32,
            outcomes in prop::collection::vec(any::<bool>(), 40),
            cut: prop::sample::Index,
        ) {
            let valid = |request: &BlockRequest| {
                outcomes[(request.block.number * ATTEMPTS_MAX + request.attempt) as usize
                    % outcomes.len()]
            };
            let mut whole = PlanRun::resume(plan(blocks), &[]);
            let mut records = vec![];
            let measured = carry_out(&mut whole, &mut records, valid);
            prop_assert!(measured.len() <= blocks as usize + repeats_max(blocks as usize));
            prop_assert_eq!(&PlanRun::resume(plan(blocks), &records), &whole);

            // Cut at the end of any block.
            let ends: Vec<usize> = (0..=records.len())
                .filter(|&end| end == 0 || matches!(records[end - 1], Record::Block(_)))
                .collect();
            let mut kept = records[..*cut.get(&ends)].to_vec();
            let mut resumed = PlanRun::resume(plan(blocks), &kept);
            carry_out(&mut resumed, &mut kept, valid);
            prop_assert_eq!(kept, records);
            prop_assert_eq!(resumed, whole);
        }
    }
}
