//! The plan of a run: every block with the order of its slices.

use serde::{Deserialize, Serialize};

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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "WrittenSlice", from = "WrittenSlice")]
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
    /// The slice of a family after another one, or its first; none behind its last.
    #[must_use]
    pub fn slice_after(
        &self,
        family: AddressFamily,
        last: Option<&SliceRecord>,
    ) -> Option<NextSlice> {
        let order = self.families.iter().find(|of| of.family == family)?;
        let mut places = (1..).zip(&order.rounds).flat_map(|(round, row)| {
            let slices = (0..).zip(row);
            slices.map(move |(position, slice)| NextSlice {
                round,
                position,
                slice: slice.clone(),
            })
        });
        match last {
            None => places.next(),
            Some(last) => places.find(|of| (of.round, of.position) > (last.round, last.position)),
        }
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
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenSlice {
    Variant(VariantName),
    WithTraffic {
        variant: VariantName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        traffic: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        load: Option<Load>,
    },
}

impl From<PlannedSlice> for WrittenSlice {
    fn from(slice: PlannedSlice) -> Self {
        let PlannedSlice { variant, traffic } = slice;
        match traffic {
            SliceTraffic {
                name: None,
                load: None,
            } => Self::Variant(variant),
            SliceTraffic { name, load } => Self::WithTraffic {
                variant,
                traffic: name,
                load,
            },
        }
    }
}

impl From<WrittenSlice> for PlannedSlice {
    fn from(written: WrittenSlice) -> Self {
        match written {
            WrittenSlice::Variant(variant) => variant.into(),
            WrittenSlice::WithTraffic {
                variant,
                traffic: name,
                load,
            } => Self {
                variant,
                traffic: SliceTraffic { name, load },
            },
        }
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
}
