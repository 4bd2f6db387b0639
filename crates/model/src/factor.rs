//! A factor as an experiment file has it.

use toml::Spanned;

use crate::words::Level;

/// A `[[factor]]`, or a line of `[settings]`.
#[derive(Debug)]
pub(crate) struct FactorEntry {
    pub(crate) name: Spanned<String>,
    pub(crate) description: Option<String>,
    /// No two of them read the same. Empty only where that is already an error.
    pub(crate) levels: Vec<Spanned<Level>>,
    pub(crate) default: Level,
}

/// A level as the file has it.
pub(crate) fn written(level: &Level) -> String {
    match level {
        Level::Text(text) => format!("{text:?}"),
        Level::Boolean(_) | Level::Integer(_) => level.to_string(),
    }
}
