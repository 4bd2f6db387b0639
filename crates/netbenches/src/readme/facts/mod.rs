//! What contradicts what in a README and its datasets.
//!
//! These functions return evidence and judge nothing. Each keeps silent where a text can be read in
//! two ways: what they report is worth a look every time.

mod directions;
mod figures;
mod labels;
mod links;
mod masks;
mod statements;
mod tables;
mod title;
mod words;

pub use directions::{TurnedWord, turned_words};
pub use figures::{UnsupportedClaim, unsupported_claims};
pub use labels::{LabelContradiction, label_contradictions};
pub use links::{LinkContradiction, link_contradictions};
pub use masks::{MaskContradiction, MaskProblem, mask_contradictions};
pub use statements::{Card, Statement, cards, commits, driver_names, statements};
pub use tables::{
    MisprintedCell, TableContradiction, TabledDataset, misprinted_cells, table_contradictions,
};
pub use title::{TitleContradiction, title_contradiction};
pub use words::{Contradiction, ContradictionKind, contradiction, names_place};
