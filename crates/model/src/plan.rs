//! The plan of a run: every block with the order of its slices.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::load::Load;
use crate::record::SliceRecord;
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
    pub rounds: Vec<Vec<PlannedSlice>>,
}

impl FamilyOrder {
    /// The variants that are run, as the first round has them.
    pub fn variants(&self) -> impl Iterator<Item = &VariantName> {
        let first = self.rounds.first().into_iter().flatten();
        first.map(|slice| &slice.variant)
    }
}

/// A variant, and the traffic under which it is measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "WrittenSlice")]
pub struct PlannedSlice {
    /// The variant.
    pub variant: VariantName,
    /// The traffic.
    pub traffic: SliceTraffic,
}

impl From<VariantName> for PlannedSlice {
    /// A slice of that variant under the experiment's traffic.
    fn from(variant: VariantName) -> Self {
        Self {
            variant,
            traffic: SliceTraffic::default(),
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
    /// The next slice of a family after `last`, or its first where that is none; none when the family is finished. A lab
    /// that begins a block anew asks from the first on again.
    ///
    /// `last` is as it was read: what was disturbed of it, and whether it stalled, shows at the end of the block.
    fn next_slice(
        &mut self,
        family: AddressFamily,
        last: Option<&SliceRecord>,
    ) -> Option<NextSlice>;
}

impl SliceSource for PlannedBlock {
    /// The slices in their order, whatever came of them.
    fn next_slice(
        &mut self,
        family: AddressFamily,
        last: Option<&SliceRecord>,
    ) -> Option<NextSlice> {
        self.slice_after(family, last)
    }
}

impl PlannedBlock {
    /// The slice of a family after another one, or its first; none after its last.
    #[must_use]
    pub fn slice_after(
        &self,
        family: AddressFamily,
        last: Option<&SliceRecord>,
    ) -> Option<NextSlice> {
        let (round, position) =
            last.map_or((1, 0), |last| (last.round, last.position.saturating_add(1)));
        let places = [(round, position), (round.saturating_add(1), 0)];
        places.into_iter().find_map(|(round, position)| {
            let slice = self.slice_at(family, round, position)?.clone();
            Some(NextSlice {
                round,
                position,
                slice,
            })
        })
    }

    /// The slice of a family at a place, as [`NextSlice`] has it.
    fn slice_at(&self, family: AddressFamily, round: u32, position: u32) -> Option<&PlannedSlice> {
        let order = self.families.iter().find(|of| of.family == family)?;
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
            let place = (slice.family, slice.round, slice.position);
            let (family, round, position) = place;
            let asked = self.slice_at(family, round, position);
            if asked.is_none_or(|asked| asked.variant != slice.variant) {
                let variant = &slice.variant;
                return Err(format!(
                    "{variant} at {family} round {round} position {position} is not in the plan"
                ));
            }
            if !seen.insert(place) {
                return Err(format!(
                    "{family} round {round} position {position} has two slices"
                ));
            }
        }
        let rounds = self.families.iter().flat_map(|order| &order.rounds);
        let asked: usize = rounds.map(Vec::len).sum();
        if all && seen.len() != asked {
            return Err(format!("{} of {asked} slices are there", seen.len()));
        }
        Ok(())
    }
}

/// Which frames are sent in a slice, and how many of them; by default the experiment's only traffic, as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SliceTraffic {
    /// The name of the traffic whose frames are sent; none where the experiment has one, without a name.
    pub name: Option<String>,
    /// The load, where it is another than that traffic's.
    pub load: Option<Load>,
}

/// A slice in files: the variant's name where there is no more to say.
#[derive(Serialize)]
#[serde(untagged)]
enum WrittenSlice {
    Variant(VariantName),
    WithTraffic(SliceTable),
}

/// A slice in files, with its traffic.
#[derive(Serialize, Deserialize)]
struct SliceTable {
    variant: VariantName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traffic: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    load: Option<Load>,
}

impl From<PlannedSlice> for WrittenSlice {
    fn from(PlannedSlice { variant, traffic }: PlannedSlice) -> Self {
        if traffic == SliceTraffic::default() {
            return Self::Variant(variant);
        }
        Self::WithTraffic(SliceTable {
            variant,
            traffic: traffic.name,
            load: traffic.load,
        })
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
        f.write_str("the name of a variant, or an object with a variant and its traffic")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<PlannedSlice, E> {
        VariantName::deserialize(name.into_deserializer()).map(PlannedSlice::from)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PlannedSlice, A::Error> {
        let SliceTable {
            variant,
            traffic: name,
            load,
        } = SliceTable::deserialize(MapAccessDeserializer::new(map))?;
        let traffic = SliceTraffic { name, load };
        Ok(PlannedSlice { variant, traffic })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_written_as_its_variant_unless_its_traffic_is_special() {
        let plain = PlannedSlice::from(VariantName::from_label("none"));
        let slower = PlannedSlice {
            traffic: SliceTraffic {
                name: Some("imix".to_owned()),
                load: Some(Load::Paced { pps: 7 }),
            },
            ..plain.clone()
        };
        for (slice, written) in [
            (plain, r#""none""#),
            (
                slower,
                r#"{"variant":"none","traffic":"imix","load":{"regime":"paced","intended_load_pps":7}}"#,
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
            (r#"{"traffic":"imix"}"#, "missing field `variant`"),
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
