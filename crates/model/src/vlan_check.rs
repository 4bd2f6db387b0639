//! Variants that no frame with a VLAN tag passes.

use std::collections::BTreeMap;

use crate::binding::{Binding, XdpProgram};
use crate::diagnostic::list;
use crate::document::Reading;
use crate::resolved::Variant;
use crate::traffic::TrafficEntry;

/// Refuses frames with a VLAN tag where the DUT's kernel is all that forwards them: the lab has no VLAN interfaces.
pub(crate) fn check(
    reading: &mut Reading<'_>,
    traffics: &[TrafficEntry],
    variants: &[Variant],
    bindings: &BTreeMap<String, Binding>,
) {
    let of_kernel = variants
        .iter()
        .filter(|variant| !may_pass_tags(variant, bindings));
    let labels: Vec<&str> = of_kernel.map(|variant| variant.label.as_str()).collect();
    if labels.is_empty() {
        return;
    }
    for span in traffics.iter().filter_map(TrafficEntry::vlan_span) {
        let message = format!(
            "the DUT's kernel drops frames with a VLAN tag, and nothing else forwards them in {}",
            list(labels.iter().copied())
        );
        reading
            .error(span, message)
            .with_help(
                "give each variant an XDP or tc program of your own or a forwarder in user space, or exclude it \
                 ([[exclude]])",
            )
            .with_help(
                "every variant is measured under every traffic: measure the kernel without `vlan` in another experiment",
            );
    }
}

/// Whether something of a variant may forward such frames. What a command does, its probe frames show.
fn may_pass_tags(variant: &Variant, bindings: &BTreeMap<String, Binding>) -> bool {
    variant.levels.iter().any(|(factor, level)| {
        let level = level.to_string();
        match bindings.get(factor) {
            // What is not bound has an error already, as has a level that is not.
            None | Some(Binding::Command(_)) => true,
            Some(Binding::Xdp(programs)) => !matches!(
                programs.get(&level),
                Some(XdpProgram::Off | XdpProgram::Fib)
            ),
            Some(Binding::Tc(programs)) => programs.get(&level).is_none_or(Option::is_some),
            Some(Binding::Forwarder(levels)) => levels.get(&level).is_none_or(Option::is_some),
            // A ruleset may send frames on at an interface's ingress.
            Some(Binding::Nft(texts)) => {
                texts.get(&level).is_none_or(|text| text.contains("netdev"))
            }
            Some(_) => false,
        }
    })
}
