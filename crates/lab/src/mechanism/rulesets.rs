//! The rulesets of several factors, which a DUT gets as one.

use std::collections::BTreeMap;

use fwdlab_model::{Level, Variant};

use super::unbound_level;
use crate::LabError;

/// A factor, its level, and the level's ruleset.
pub(super) type Part<'a> = (&'a String, &'a Level, &'a String);

/// The text of each level, by factor.
#[derive(Clone, Debug, Default)]
pub(super) struct Rulesets(BTreeMap<String, BTreeMap<String, String>>);

impl Rulesets {
    /// None where no factor has any.
    pub(super) fn of(
        texts: impl Iterator<Item = (String, BTreeMap<String, String>)>,
    ) -> Option<Self> {
        let rulesets: BTreeMap<_, _> = texts.collect();
        (!rulesets.is_empty()).then_some(Self(rulesets))
    }

    /// The rulesets of a variant, each with its factor and its level.
    ///
    /// # Errors
    /// `Unbound` for a level that has none.
    pub(super) fn parts<'a>(&'a self, variant: &'a Variant) -> Result<Vec<Part<'a>>, LabError> {
        let mut parts = Vec::new();
        for (factor, rulesets) in &self.0 {
            if let Some(level) = variant.levels.get(factor) {
                let ruleset = rulesets.get(&level.to_string());
                let ruleset = ruleset.ok_or_else(|| unbound_level(factor, level))?;
                parts.push((factor, level, ruleset));
            }
        }
        Ok(parts)
    }

    /// The variant's whole ruleset, where any factor sets one.
    ///
    /// # Errors
    /// As of [`parts`](Self::parts).
    pub(super) fn whole(&self, variant: &Variant) -> Result<Option<String>, LabError> {
        let mut all: Option<String> = None;
        for (_, _, ruleset) in self.parts(variant)? {
            let all = all.get_or_insert_default();
            all.push_str(ruleset);
            // The last line of a file need not end as one; the next ruleset starts its own.
            all.push('\n');
        }
        Ok(all)
    }
}
