//! The plan of a run: every block with the order of its slices.

use serde::{Deserialize, Serialize};

use crate::words::{AddressFamily, VariantName};

/// Every block of a run, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The seed from which all orders follow.
    pub seed: u64,
    /// The blocks, numbered from 1.
    pub blocks: Vec<PlannedBlock>,
}

/// One fresh set-up and the order in which it measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedBlock {
    /// Number in the plan, from 1.
    pub number: u32,
    /// The families in the order in which they are measured.
    pub families: Vec<FamilyOrder>,
}

/// The order of the slices of one family in one block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilyOrder {
    /// The family.
    pub family: AddressFamily,
    /// Each round is a permutation of the variants that are run.
    pub rounds: Vec<Vec<VariantName>>,
}
