//! What levels mean to a mechanism, of one factor or of several that set one thing together.

use std::collections::BTreeMap;

use fwdlab_model::{Level, Variant};

use super::unbound_level;
use crate::LabError;

/// The meaning of each level, by factor.
#[derive(Clone, Debug)]
pub(super) struct ByLevel<T>(BTreeMap<String, BTreeMap<String, T>>);

impl<T: Clone> ByLevel<T> {
    /// Those of one factor.
    pub(super) fn of_factor(factor: &str, meanings: &BTreeMap<String, T>) -> Self {
        Self(BTreeMap::from([(factor.to_owned(), meanings.clone())]))
    }

    /// Those of several factors; none where there is no factor.
    pub(super) fn of(factors: impl Iterator<Item = (String, BTreeMap<String, T>)>) -> Option<Self> {
        let factors: BTreeMap<_, _> = factors.collect();
        (!factors.is_empty()).then_some(Self(factors))
    }

    /// What the levels mean, of all factors.
    pub(super) fn meanings(&self) -> impl Iterator<Item = &T> {
        self.0.values().flat_map(BTreeMap::values)
    }

    /// What a variant's levels mean, each with its factor and its level.
    ///
    /// # Errors
    /// `Unbound` for a level that means nothing.
    pub(super) fn parts<'a>(
        &'a self,
        variant: &'a Variant,
    ) -> Result<Vec<(&'a String, &'a Level, &'a T)>, LabError> {
        let mut parts = Vec::new();
        for (factor, meanings) in &self.0 {
            if let Some(level) = variant.levels.get(factor) {
                let meaning = meanings.get(&level.to_string());
                let meaning = meaning.ok_or_else(|| unbound_level(factor, level))?;
                parts.push((factor, level, meaning));
            }
        }
        Ok(parts)
    }

    /// What a variant's level means where one factor sets the thing; none where the variant says nothing of it.
    ///
    /// # Errors
    /// As of [`parts`](Self::parts).
    pub(super) fn get(&self, variant: &Variant) -> Result<Option<&T>, LabError> {
        for (factor, meanings) in &self.0 {
            if let Some(level) = variant.levels.get(factor) {
                let meaning = meanings.get(&level.to_string());
                return meaning
                    .map(Some)
                    .ok_or_else(|| unbound_level(factor, level));
            }
        }
        Ok(None)
    }
}

/// Rulesets, of which a DUT gets those of all factors as one.
pub(super) type Rulesets = ByLevel<String>;

impl Rulesets {
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

    /// The same, where it has any rule.
    ///
    /// # Errors
    /// As of [`parts`](Self::parts).
    pub(super) fn with_rules(&self, variant: &Variant) -> Result<Option<String>, LabError> {
        let ruleset = self.whole(variant)?;
        Ok(ruleset.filter(|ruleset| has_rules(ruleset)))
    }
}

/// Whether a ruleset is more than comments and white space.
pub(super) fn has_rules(ruleset: &str) -> bool {
    let mut lines = ruleset.lines().map(str::trim);
    lines.any(|line| !line.is_empty() && !line.starts_with('#'))
}
