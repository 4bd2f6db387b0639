//! Where each record stands in `trials.jsonl`.

use std::collections::HashMap;

use fwdlab_model::{BlockRecord, Record, Stratum, TrialRecord, VariantName};

use crate::load::Loaded;

/// Session, block and attempt.
type Place = (u32, u32, u32);

/// The lines of the records, from 1.
pub(super) struct Lines<'a> {
    trials: HashMap<(Place, &'a VariantName, Stratum), usize>,
    blocks: HashMap<Place, usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(loaded: &'a Loaded) -> Self {
        let mut lines = Self {
            trials: HashMap::new(),
            blocks: HashMap::new(),
        };
        for (index, record) in loaded.records.iter().enumerate() {
            match record {
                Record::Trial(trial) => {
                    let place = (trial.session, trial.block, trial.attempt);
                    let key = (place, &trial.variant, trial.stratum);
                    lines.trials.insert(key, index + 1);
                }
                Record::Block(block) => {
                    let place = (block.session, block.block, block.attempt);
                    lines.blocks.insert(place, index + 1);
                }
            }
        }
        lines
    }

    pub(super) fn trial(&self, trial: &TrialRecord) -> Option<usize> {
        let place = (trial.session, trial.block, trial.attempt);
        let key = (place, &trial.variant, trial.stratum);
        self.trials.get(&key).copied()
    }

    pub(super) fn block(&self, block: &BlockRecord) -> Option<usize> {
        let place = (block.session, block.block, block.attempt);
        self.blocks.get(&place).copied()
    }
}
