//! Who asks a lab for its variants.

/// Who asks which variants a lab can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// A plan, for which no host is changed.
    Plan,
    /// A run, for which is tried what only trying tells.
    Run,
}
