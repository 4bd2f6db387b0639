//! Features of the DUT's interfaces, as `ethtool -k` names them.

use fwdlab_model::{Direction, DutInterface, Level, Variant};

use super::{Mechanism, Site, moved, names, unbound_level};
use crate::topology::receiving;
use crate::{LabError, Topology};

/// What `ethtool -k` calls by a name of its own, and `-K` by a short one: the kernel's features behind
/// it.
const GROUPS: [(&str, &str, &[&str]); 10] = [
    ("rx-checksumming", "rx", &["rx-checksum"]),
    (
        "tx-checksumming",
        "tx",
        &[
            "tx-checksum-ipv4",
            "tx-checksum-ip-generic",
            "tx-checksum-ipv6",
            "tx-checksum-fcoe-crc",
            "tx-checksum-sctp",
        ],
    ),
    (
        "scatter-gather",
        "sg",
        &["tx-scatter-gather", "tx-scatter-gather-fraglist"],
    ),
    (
        "tcp-segmentation-offload",
        "tso",
        &[
            "tx-tcp-segmentation",
            "tx-tcp-ecn-segmentation",
            "tx-tcp-mangleid-segmentation",
            "tx-tcp6-segmentation",
        ],
    ),
    (
        "generic-segmentation-offload",
        "gso",
        &["tx-generic-segmentation"],
    ),
    ("generic-receive-offload", "gro", &["rx-gro"]),
    ("large-receive-offload", "lro", &["rx-lro"]),
    ("rx-vlan-offload", "rxvlan", &["rx-vlan-hw-parse"]),
    ("tx-vlan-offload", "txvlan", &["tx-vlan-hw-insert"]),
    ("receive-hashing", "rxhash", &["rx-hashing"]),
];

pub(super) struct Ethtool {
    factor: String,
    feature: String,
    interfaces: Vec<&'static str>,
    direction: Direction,
}

impl Ethtool {
    pub(super) fn new(
        factor: String,
        feature: String,
        interfaces: &[DutInterface],
        direction: Direction,
    ) -> Self {
        Self {
            factor,
            feature,
            interfaces: names(interfaces),
            direction,
        }
    }

    /// Whether the variant wants the feature on, where it says.
    fn wanted(&self, variant: &Variant) -> Result<Option<bool>, LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(None);
        };
        is_on(level)
            .map(Some)
            .ok_or_else(|| unbound_level(&self.factor, level))
    }

    /// What of the feature an interface has: the kernel's features that can be changed, and which of
    /// all of them are on.
    fn state(&self, topology: &Topology, interface: &'static str) -> Result<State, LabError> {
        let features = topology.dut().run(|| fwdlab_sys::features(interface))??;
        let wanted = kernel_features(&self.feature);
        let mut state = State::default();
        for feature in features {
            if wanted.contains(&feature.name.as_str()) {
                state.is_known = true;
                if feature.is_changeable {
                    state.changeable.push((feature.name, feature.is_on));
                } else {
                    state.fixed.push(feature.is_on);
                }
            }
        }
        Ok(state)
    }

    /// Whether a veth without the feature still takes the generator's frames.
    fn is_needed(&self, interface: &str) -> bool {
        let takes_frames = receiving(self.direction).contains(&interface);
        takes_frames && kernel_features(&self.feature).contains(&"rx-gro")
    }
}

#[derive(Default)]
struct State {
    is_known: bool,
    changeable: Vec<(String, bool)>,
    fixed: Vec<bool>,
}

impl Mechanism for Ethtool {
    fn unavailable(
        &self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        let Some(wanted) = self.wanted(variant)? else {
            return Ok(None);
        };
        let feature = &self.feature;
        for interface in &self.interfaces {
            if !wanted && self.is_needed(interface) {
                return Ok(Some(format!(
                    "a veth polls only with {feature}, and takes no generated frames without, so it \
                     stays on for {interface}"
                )));
            }
            let state = self.state(topology, interface)?;
            if !state.is_known {
                return Ok(Some(format!(
                    "this kernel has no ethtool feature {feature}"
                )));
            }
            // Where nothing can be changed, it may still be what is wanted.
            let is_so = state.fixed.iter().any(|&is_on| is_on) == wanted;
            if state.changeable.is_empty() && !is_so {
                let fixed = if wanted { "off" } else { "on" };
                return Ok(Some(format!(
                    "ethtool feature {feature} of {interface} is fixed to {fixed}"
                )));
            }
        }
        Ok(None)
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(wanted) = self.wanted(variant)? else {
            return Ok(());
        };
        for interface in &self.interfaces {
            let state = self.state(site.topology, interface)?;
            let changed: Vec<_> = state
                .changeable
                .iter()
                .filter(|(_, is_on)| *is_on != wanted)
                .map(|(name, _)| name.as_str())
                .collect();
            if !changed.is_empty() {
                let change = || fwdlab_sys::set_features(interface, &changed, wanted);
                site.topology.dut().run(change)??;
            }
        }
        Ok(())
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(wanted) = self.wanted(variant)? else {
            return Ok(());
        };
        let word = |is_on: bool| if is_on { "on" } else { "off" };
        for interface in &self.interfaces {
            let state = self.state(site.topology, interface)?;
            if let Some((name, is_on)) = state.changeable.iter().find(|(_, is_on)| *is_on != wanted)
            {
                let setting = format!("ethtool feature {name} of {interface}");
                return Err(moved(setting, word(wanted), word(*is_on)));
            }
        }
        Ok(())
    }
}

/// The kernel's names of a feature as ethtool knows it.
fn kernel_features(feature: &str) -> Vec<&str> {
    GROUPS
        .iter()
        .find(|(long, short, _)| *long == feature || *short == feature)
        .map_or_else(|| vec![feature], |(_, _, names)| names.to_vec())
}

fn is_on(level: &Level) -> Option<bool> {
    match level {
        Level::Boolean(is_on) => Some(*is_on),
        Level::Integer(0) => Some(false),
        Level::Integer(1) => Some(true),
        Level::Integer(_) => None,
        Level::Text(word) => match word.as_str() {
            "on" | "true" => Some(true),
            "off" | "false" => Some(false),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_known_by_all_its_names() {
        for name in ["gro", "generic-receive-offload", "rx-gro"] {
            assert_eq!(kernel_features(name), ["rx-gro"]);
        }
        assert!(kernel_features("tx").contains(&"tx-checksum-ip-generic"));
        assert_eq!(
            kernel_features("rx-udp-gro-forwarding"),
            ["rx-udp-gro-forwarding"]
        );
    }

    #[test]
    fn levels_are_on_or_off() {
        assert_eq!(is_on(&Level::Boolean(true)), Some(true));
        assert_eq!(is_on(&Level::Text("off".into())), Some(false));
        assert_eq!(is_on(&Level::Integer(2)), None);
        assert_eq!(is_on(&Level::Text("yes".into())), None);
    }
}
