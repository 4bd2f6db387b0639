//! Features of the DUT's interfaces, as `ethtool -k` names them.

use fwdlab_model::{Direction, DutHost, DutInterface, Level, Variant};

use super::reading::{Form, Reading};
use super::step::{Action, Answers, Errand, Question, Step, owned};
use super::{InNamespace, Mechanism, Site, moved, names, unbound_level};
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

/// One of the DUT's namespace.
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

impl InNamespace for Ethtool {
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
                    "{interface} has no ethtool feature {feature}"
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
        for interface in &self.interfaces {
            let state = self.state(site.topology, interface)?;
            if let Some((name, is_on)) = state.changeable.iter().find(|(_, is_on)| *is_on != wanted)
            {
                let setting = format!("ethtool feature {name} of {interface}");
                return Err(moved(setting, on_or_off(wanted), on_or_off(*is_on)));
            }
        }
        Ok(())
    }
}

/// One of a Linux host, as its `ethtool` knows it.
pub(super) struct LinuxFeature {
    factor: String,
    feature: String,
    interfaces: Vec<String>,
}

impl LinuxFeature {
    pub(super) fn new(
        factor: &str,
        feature: &str,
        interfaces: &[DutInterface],
        of: &DutHost,
    ) -> Self {
        let interfaces = interfaces.iter();
        let names = interfaces.map(|&interface| of.interface(interface).to_owned());
        Self {
            factor: factor.to_owned(),
            feature: feature.to_owned(),
            interfaces: names.collect(),
        }
    }

    /// Whether the variant wants the feature on, where it says.
    fn wanted(&self, variant: &Variant) -> Option<bool> {
        let level = variant.levels.get(&self.factor)?;
        Some(*level == Level::Boolean(true))
    }
}

/// What lists an interface's features.
pub(crate) fn features_of(interface: &str) -> Vec<String> {
    owned(&["ethtool", "-k", interface])
}

/// `on` or `off`, with `[fixed]` behind it where it cannot be changed; none where there is no such feature.
pub(crate) fn feature_of<'a>(listed: &'a str, feature: &str) -> Option<&'a str> {
    listed.lines().find_map(|line| {
        let (name, value) = line.trim().split_once(": ")?;
        (name == feature).then_some(value)
    })
}

/// What switches a feature.
pub(crate) fn switch(interface: &str, feature: &str, word: &str) -> Errand {
    Errand::of(&["ethtool", "-K", interface, feature, word])
}

/// The word for a truth value.
pub(crate) const fn on_or_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

impl Mechanism for LinuxFeature {
    fn needs(&self, _: &Variant) -> Result<Vec<Question>, LabError> {
        Ok(self.looks())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let Some(wanted) = self.wanted(variant) else {
            return Ok(None);
        };
        let feature = &self.feature;
        let lacking = self.interfaces.iter().find_map(|name| {
            let listed = answers.get(&features_of(name)).unwrap_or_default();
            let Some(seen) = feature_of(listed, feature) else {
                return Some(match listed {
                    "" => format!("`ethtool -k {name}` fails; install ethtool"),
                    _ => format!("{name} has no ethtool feature {feature}"),
                });
            };
            let is_stuck = seen.contains("[fixed]") && !seen.starts_with(on_or_off(wanted));
            let fixed = on_or_off(!wanted);
            is_stuck.then(|| format!("ethtool feature {feature} of {name} is fixed to {fixed}"))
        });
        Ok(lacking)
    }

    fn looks(&self) -> Vec<Question> {
        let names = self.interfaces.iter();
        names
            .map(|name| Question::Maybe(features_of(name)))
            .collect()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let feature = &self.feature;
        let steps = self.interfaces.iter().filter_map(|name| {
            let listed = answers.get(&features_of(name)).unwrap_or_default();
            let value = feature_of(listed, feature)?.split(' ').next()?;
            let what = format!("{feature} of {name} ({value})");
            Some(Step::kept(what, switch(name, feature, value)))
        });
        Ok(steps.collect())
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let Some(is_on) = self.wanted(variant) else {
            return Ok(Vec::new());
        };
        let names = self.interfaces.iter();
        let actions = names.map(|name| Action::Feature {
            interface: name.clone(),
            feature: self.feature.clone(),
            is_on,
        });
        Ok(actions.collect())
    }

    fn readings(&self, variant: &Variant) -> Result<Vec<Reading>, LabError> {
        let Some(wanted) = self.wanted(variant) else {
            return Ok(Vec::new());
        };
        let names = self.interfaces.iter();
        let readings = names.map(|name| Reading {
            setting: format!("ethtool feature {} of {name}", self.feature),
            question: features_of(name),
            asked: on_or_off(wanted).to_owned(),
            form: Form::Feature(self.feature.clone()),
        });
        Ok(readings.collect())
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
