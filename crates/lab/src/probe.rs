//! What a probe that failed says: of which variant, what became of its frames, and what to do.

use fwdlab_model::{AddressFamily, Direction, PortRange, Resolved, Stratum, Traffic, Variant};

use crate::LabError;
use crate::addresses::frames;

/// In the kernel's name of the reason for a frame that a ruleset has dropped.
const NETFILTER: &str = "NETFILTER";

/// The frames of a probe, and what became of them.
pub(crate) struct FailedProbe {
    pub(crate) sent: u64,
    pub(crate) forwarded: u64,
    /// Of those, how many were not as expected.
    pub(crate) wrong: u64,
    /// What was wrong with them.
    pub(crate) kinds: Vec<String>,
    /// Why the DUT dropped the others, where it says.
    pub(crate) reasons: Vec<String>,
    /// What else is known of them, with what to do.
    pub(crate) advice: Option<String>,
}

impl FailedProbe {
    /// The error of a variant that does not forward as planned.
    pub(crate) fn of(self, resolved: &Resolved, stratum: Stratum, variant: &Variant) -> LabError {
        let in_brackets = |texts: &[String]| match texts {
            [] => String::new(),
            texts => format!(" ({})", texts.join(", ")),
        };
        let is_netfilters = self.reasons.iter().any(|reason| reason.contains(NETFILTER));
        let rules = is_netfilters.then(|| accepted(stratum.family, resolved.traffic(stratum)));
        let advice = rules.or(self.advice);
        let mut kinds = self.kinds;
        if self.forwarded > self.sent {
            kinds.push("more than were sent: frames came twice, or late".to_owned());
        }
        LabError::Probe {
            variant: label(resolved, variant).to_owned(),
            stratum: Box::new(stratum),
            sent: self.sent,
            forwarded: self.forwarded,
            wrong: self.wrong,
            kinds: in_brackets(&kinds),
            reasons: in_brackets(&self.reasons),
            advice: advice.unwrap_or_default().into(),
        }
    }
}

/// The label of a variant that its user knows: the A/A control is the baseline under another name.
fn label<'r>(resolved: &'r Resolved, variant: &'r Variant) -> &'r str {
    let baseline = variant.control_of.as_ref().and_then(|baseline| {
        let mut variants = resolved.variants.iter();
        variants.find(|variant| variant.name == *baseline)
    });
    &baseline.unwrap_or(variant).label
}

/// What a ruleset has to accept.
fn accepted(family: AddressFamily, traffic: &Traffic) -> String {
    // Traffic that cannot be sent is refused long before.
    let Ok(frames) = frames(family, traffic) else {
        return String::new();
    };
    let flows = frames.flows();
    let ports = |PortRange { first, last }| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    };
    let back = match traffic.direction {
        Direction::Forward => "",
        Direction::Both => ", and the same frames the other way",
    };
    format!(
        "; the ruleset must accept the lab's frames: {} UDP from {}, port {}, to {}, port {}, in at {{dut-in}}, out at \
         {{dut-out}}{back}; a rule names these interfaces so, in braces (docs/two-rulesets.md)",
        family.protocol(),
        flows.sources(),
        ports(traffic.source_ports),
        flows.destinations(),
        ports(traffic.destination_ports)
    )
}

#[cfg(test)]
mod tests {
    use fwdlab_model::{Lab, Load};

    use super::*;
    use crate::doctor::control_experiment;

    #[test]
    fn more_probe_frames_than_were_sent_came_twice_or_late() {
        let load = Load::Paced { pps: 1000 };
        let resolved = control_experiment(&Lab::netns("here"), load, 1, false);
        let text = |forwarded| {
            let failed = FailedProbe {
                sent: 2000,
                forwarded,
                wrong: 0,
                kinds: Vec::new(),
                reasons: Vec::new(),
                advice: None,
            };
            let error = failed.of(&resolved, Stratum::INET, &resolved.variants[0]);
            error.to_string()
        };
        let why = "(more than were sent: frames came twice, or late)";
        assert!(text(2112).contains(why), "{}", text(2112));
        assert!(!text(1888).contains("twice"), "{}", text(1888));
    }
}
