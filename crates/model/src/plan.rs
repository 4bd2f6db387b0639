//! The plan of a run: every block with the order of its slices.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::load::Load;
use crate::record::SliceRecord;
use crate::stratum::Stratum;
use crate::words::VariantName;

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
    /// The strata in the order in which they are measured.
    #[serde(rename = "families")]
    pub strata: Vec<StratumOrder>,
}

/// The order of the slices of one stratum in one block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StratumOrder {
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// Each round is a permutation of the variants that are run.
    pub rounds: Vec<Vec<PlannedSlice>>,
}

impl StratumOrder {
    /// The variants that are run, as the first round has them.
    pub fn variants(&self) -> impl Iterator<Item = &VariantName> {
        let first = self.rounds.first().into_iter().flatten();
        first.map(|slice| &slice.variant)
    }
}

/// A variant, and the load under which it is measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "WrittenSlice")]
pub struct PlannedSlice {
    /// The variant.
    pub variant: VariantName,
    /// The load, where it is another than the traffic's.
    pub load: Option<Load>,
}

impl From<VariantName> for PlannedSlice {
    /// A slice of that variant under its traffic's load.
    fn from(variant: VariantName) -> Self {
        Self {
            variant,
            load: None,
        }
    }
}

/// A slice that is to be measured next, and its place in the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextSlice {
    /// The round, from 1.
    pub round: u32,
    /// The place in the round, from 0.
    pub position: u32,
    /// What is measured.
    pub slice: PlannedSlice,
}

/// What a lab asks between the slices of a block.
pub trait SliceSource {
    /// The next slice of a stratum after `last`, or its first where that is none; none when the stratum is finished. A lab
    /// that begins a block anew asks from the first on again.
    ///
    /// `last` is as it was read: what was disturbed of it, and whether it stalled, shows at the end of the block.
    fn next_slice(&mut self, stratum: Stratum, last: Option<&SliceRecord>) -> Option<NextSlice>;
}

impl SliceSource for PlannedBlock {
    /// The slices in their order, whatever came of them.
    fn next_slice(&mut self, stratum: Stratum, last: Option<&SliceRecord>) -> Option<NextSlice> {
        self.slice_after(stratum, last)
    }
}

impl PlannedBlock {
    /// The slice of a stratum after another one, or its first; none after its last.
    #[must_use]
    pub fn slice_after(&self, stratum: Stratum, last: Option<&SliceRecord>) -> Option<NextSlice> {
        let (round, position) =
            last.map_or((1, 0), |last| (last.round, last.position.saturating_add(1)));
        let places = [(round, position), (round.saturating_add(1), 0)];
        places.into_iter().find_map(|(round, position)| {
            let slice = self.slice_at(stratum, round, position)?.clone();
            Some(NextSlice {
                round,
                position,
                slice,
            })
        })
    }

    /// The slice of a stratum at a place, as [`NextSlice`] has it.
    fn slice_at(&self, stratum: Stratum, round: u32, position: u32) -> Option<&PlannedSlice> {
        let order = self.strata.iter().find(|of| of.stratum == stratum)?;
        let row = order.rounds.get((round as usize).checked_sub(1)?)?;
        row.get(position as usize)
    }

    /// The one rule by which slices are those that the plan asked for: every slice is at its place of the plan, once, and
    /// where they are `all` slices of an attempt, none is missing.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub fn check_slices(&self, slices: &[SliceRecord], all: bool) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for slice in slices {
            let place = (slice.stratum, slice.round, slice.position);
            let (stratum, round, position) = place;
            let asked = self.slice_at(stratum, round, position);
            if asked.is_none_or(|asked| asked.variant != slice.variant) {
                let variant = &slice.variant;
                return Err(format!(
                    "{variant} at {stratum} round {round} position {position} is not in the plan"
                ));
            }
            if !seen.insert(place) {
                return Err(format!(
                    "{stratum} round {round} position {position} has two slices"
                ));
            }
        }
        let rounds = self.strata.iter().flat_map(|order| &order.rounds);
        let asked: usize = rounds.map(Vec::len).sum();
        if all && seen.len() != asked {
            return Err(format!("{} of {asked} slices are there", seen.len()));
        }
        Ok(())
    }
}

/// A slice in files: the variant's name where there is no more to say.
#[derive(Serialize)]
#[serde(untagged)]
enum WrittenSlice {
    Variant(VariantName),
    WithLoad(SliceTable),
}

/// A slice in files, with its load.
#[derive(Serialize, Deserialize)]
struct SliceTable {
    variant: VariantName,
    load: Load,
}

impl From<PlannedSlice> for WrittenSlice {
    fn from(PlannedSlice { variant, load }: PlannedSlice) -> Self {
        match load {
            None => Self::Variant(variant),
            Some(load) => Self::WithLoad(SliceTable { variant, load }),
        }
    }
}

impl<'de> Deserialize<'de> for PlannedSlice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SliceVisitor)
    }
}

/// Reads both forms of a slice, so that an error says what is wrong with the one that is there.
struct SliceVisitor;

impl<'de> Visitor<'de> for SliceVisitor {
    type Value = PlannedSlice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a variant, or an object with a variant and its load")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<PlannedSlice, E> {
        VariantName::deserialize(name.into_deserializer()).map(PlannedSlice::from)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PlannedSlice, A::Error> {
        let SliceTable { variant, load } =
            SliceTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(PlannedSlice {
            variant,
            load: Some(load),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_written_as_its_variant_unless_its_load_is_special() {
        let plain = PlannedSlice::from(VariantName::from_label("none"));
        let slower = PlannedSlice {
            load: Some(Load::Paced { pps: 7 }),
            ..plain.clone()
        };
        for (slice, written) in [
            (plain, r#""none""#),
            (
                slower,
                r#"{"variant":"none","load":{"regime":"paced","intended_load_pps":7}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&slice).unwrap(), written);
            assert_eq!(
                serde_json::from_str::<PlannedSlice>(written).unwrap(),
                slice
            );
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_with_a_slice() {
        for (written, what) in [
            ("7", "the name of a variant, or an object"),
            (r#""../x""#, "../x"),
            (
                r#"{"load":{"regime":"self-clocked"}}"#,
                "missing field `variant`",
            ),
            (
                r#"{"variant":"none","load":{"regime":"paced","intended_load_pps":null}}"#,
                "a paced load without intended_load_pps",
            ),
        ] {
            let error = serde_json::from_str::<PlannedSlice>(written).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
