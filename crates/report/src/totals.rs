//! Sums and ratios that readers are shown, so that each of their figures stands in `report.json`.

use std::collections::BTreeMap;

use fwdlab_model::{Conservation, FlowShares, LoadRecord, Stratum, Traffic};
use serde::{Deserialize, Serialize};

/// What the traffic's ranges make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowsSection {
    /// Flows in one direction.
    pub flows: u32,
    /// Flows that the tester sends in all.
    pub in_all_directions: u32,
    /// Source ports of each pair of addresses.
    pub source_ports: u32,
    /// Destination ports of each.
    pub destination_ports: u32,
    /// What the heaviest flows have of the frames, where flows are not sent in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<FlowShares>,
}

impl FlowsSection {
    pub(crate) fn new(traffic: &Traffic) -> Self {
        Self {
            flows: traffic.flows(),
            in_all_directions: traffic.flows_in_all_directions(),
            source_ports: traffic.source_ports.count(),
            destination_ports: traffic.destination_ports.count(),
            shares: traffic.flow_shares(),
        }
    }
}

/// Sums over the reasons of a stratum's conservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConservationTotals {
    /// Frames dropped, for whatever reason.
    pub dropped_frames: u64,
    /// Checked frames that were wrong, whatever was wrong with them.
    pub wrong_frames: u64,
}

impl ConservationTotals {
    pub(crate) fn new(frames: &Conservation) -> Self {
        Self {
            dropped_frames: frames.drops.values().sum(),
            wrong_frames: frames.verification.wrong_frames.values().sum(),
        }
    }
}

pub(crate) fn conservation_totals(
    conservation: &BTreeMap<Stratum, Conservation>,
) -> BTreeMap<Stratum, ConservationTotals> {
    conservation
        .iter()
        .map(|(stratum, frames)| (*stratum, ConservationTotals::new(frames)))
        .collect()
}

/// The load that was settled over what the baseline forwarded at most.
pub(crate) fn load_ratios(load: Option<&LoadRecord>) -> BTreeMap<Stratum, f64> {
    let strata = load.iter().flat_map(|load| &load.strata);
    strata
        .filter_map(|(stratum, of)| Some((*stratum, of.intended_pps? / of.baseline_capacity_pps?)))
        .filter(|(_, ratio)| ratio.is_finite())
        .collect()
}
