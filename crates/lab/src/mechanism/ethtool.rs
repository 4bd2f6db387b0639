//! Features of the DUT's interfaces, as `ethtool -k` names them.

use std::fmt::Write as _;

use fwdlab_model::{DutInterface, Level, Variant};
use fwdlab_sys::Feature;

use super::question::{Answers, Look, Question};
use super::reading::{Form, Reading};
use super::step::{Action, Errand, Step, owned};
use super::tools::Tool;
use super::{DutPlace, Mechanism, unbound_level};
use crate::LabError;

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

/// One of a Linux kernel.
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
        place: &DutPlace,
    ) -> Self {
        let interfaces = interfaces.iter();
        let names = interfaces.map(|&interface| place.port(interface).to_owned());
        Self {
            factor: factor.to_owned(),
            feature: feature.to_owned(),
            interfaces: names.collect(),
        }
    }

    /// Whether the variant wants the feature on, where it says.
    ///
    /// # Errors
    /// `Unbound` for a level that is neither on nor off.
    fn wanted(&self, variant: &Variant) -> Result<Option<bool>, LabError> {
        let level = variant.levels.get(&self.factor);
        let wanted =
            level.map(|level| is_on(level).ok_or_else(|| unbound_level(&self.factor, level)));
        wanted.transpose()
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
        let mut needs = self.looks();
        needs.push(Tool::Ethtool.question());
        Ok(needs)
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let Some(wanted) = self.wanted(variant)? else {
            return Ok(None);
        };
        let feature = &self.feature;
        let lacking = self.interfaces.iter().find_map(|name| {
            let listed = answers.get(&features_of(name)).unwrap_or_default();
            let Some(seen) = feature_of(listed, feature) else {
                return Some(match listed {
                    "" => {
                        let why = answers.reasons.get(&features_of(name)).cloned();
                        let why = why.or_else(|| Tool::Ethtool.lacking(answers));
                        why.unwrap_or_else(|| format!("`ethtool -k {name}` fails"))
                    }
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
            .map(|name| Question::Maybe(Look::Features(name.clone())))
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
        let Some(is_on) = self.wanted(variant)? else {
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
        let Some(wanted) = self.wanted(variant)? else {
            return Ok(Vec::new());
        };
        let names = self.interfaces.iter();
        let readings = names.map(|name| Reading {
            setting: format!("ethtool feature {} of {name}", self.feature),
            look: Look::Features(name.clone()),
            asked: on_or_off(wanted).to_owned(),
            form: Form::Feature(self.feature.clone()),
        });
        Ok(readings.collect())
    }
}

/// An interface's features as `ethtool -k` lists them, with the kernel's names, too.
pub(crate) fn listed(features: &[Feature]) -> String {
    let mut text = String::new();
    for feature in features {
        let _ = writeln!(text, "{}: {}", feature.name, state(&[feature]));
    }
    for (long, short, names) in GROUPS {
        let of_group = features
            .iter()
            .filter(|feature| names.contains(&feature.name.as_str()));
        let of_group: Vec<_> = of_group.collect();
        for name in [long, short].into_iter().filter(|_| !of_group.is_empty()) {
            let _ = writeln!(text, "{name}: {}", state(&of_group));
        }
    }
    text
}

/// Whether all that can be changed of some features is on; where nothing can be, whether any is.
fn state(features: &[&Feature]) -> &'static str {
    let changeable = features.iter().filter(|feature| feature.is_changeable);
    let mut changeable = changeable.map(|feature| feature.is_on).peekable();
    match changeable.peek().copied() {
        None if features.iter().any(|feature| feature.is_on) => "on [fixed]",
        None => "off [fixed]",
        Some(first) if changeable.any(|is_on| is_on != first) => "partly on",
        Some(first) => on_or_off(first),
    }
}

/// The kernel's names of a feature as ethtool knows it.
pub(crate) fn kernel_features(feature: &str) -> Vec<&str> {
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
    fn a_group_is_listed_by_what_can_be_changed_of_it() {
        let feature = |name: &str, is_changeable, is_on| Feature {
            name: name.to_owned(),
            is_changeable,
            is_on,
        };
        let features = [
            feature("rx-gro", true, true),
            feature("tx-tcp-segmentation", true, true),
            feature("tx-tcp6-segmentation", true, false),
            feature("tx-scatter-gather", true, false),
            feature("tx-scatter-gather-fraglist", false, true),
            feature("rx-lro", false, false),
        ];
        let text = listed(&features);
        for (name, state) in [
            ("rx-gro", Some("on")),
            ("generic-receive-offload", Some("on")),
            ("gro", Some("on")),
            ("tso", Some("partly on")),
            ("sg", Some("off")),
            ("tx-scatter-gather-fraglist", Some("on [fixed]")),
            ("large-receive-offload", Some("off [fixed]")),
            ("receive-hashing", None),
        ] {
            assert_eq!(feature_of(&text, name), state, "{name}");
        }
    }

    #[test]
    fn levels_are_on_or_off() {
        assert_eq!(is_on(&Level::Boolean(true)), Some(true));
        assert_eq!(is_on(&Level::Text("off".into())), Some(false));
        assert_eq!(is_on(&Level::Integer(2)), None);
        assert_eq!(is_on(&Level::Text("yes".into())), None);
    }
}
