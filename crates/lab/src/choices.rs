//! What is known of every kind of lab once it is open.

use fwdlab_model::Placement;

use crate::TesterChoice;

/// What a lab works with, and what it has to do without.
#[derive(Clone, Debug)]
pub struct Choices {
    /// Who runs where.
    pub placement: Placement,
    /// How frames are sent and counted, and why not in a better way.
    pub tester: TesterChoice,
    /// Why the profiles that the experiment asks for cannot be taken; none where they can, or none are asked for.
    pub profiles_unavailable: Option<String>,
}
