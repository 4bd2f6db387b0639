//! What an experiment says that means nothing to a forwarder in user space.

use std::collections::BTreeMap;

use crate::binding::Binding;
use crate::document::Reading;
use crate::experiment::ExperimentFile;
use crate::resolved::{Variant, forwarder_of};

/// Where the sysctls are that act on the kernel's own forwarding.
const OF_THE_KERNEL: [&str; 3] = ["net.ipv4.", "net.ipv6.", "net.netfilter."];

/// Warns of what is said in vain where a forwarder in user space is bound.
pub(crate) fn check(
    reading: &mut Reading<'_>,
    file: &ExperimentFile,
    variants: &[Variant],
    bindings: &BTreeMap<String, Binding>,
) {
    for factor in &file.factors {
        let name = factor.name.get_ref();
        if let Some(Binding::Forwarder(levels)) = bindings.get(name)
            && levels.values().filter(|level| level.is_none()).count() > 1
        {
            let message =
                format!("several levels of {name:?} are the kernel, so that they do not differ");
            reading
                .warning(factor.name.span(), message)
                .with_help("an empty table is the kernel; give all levels but one a `start`, or leave them out");
        }
    }
    if !bindings.values().any(Binding::has_forwarder) {
        return;
    }
    if let Some(span) = file.rounds.clone().filter(|_| file.design.rounds > 1) {
        reading
            .warning(span, "each block has one round, whatever `rounds` says")
            .with_help(
                "a forwarder in user space is started for each measurement, which is too long for a slice; for more \
                 measurements give more `blocks`",
            );
    }
    let has_forwarder = |variant: &&Variant| forwarder_of(bindings, variant).is_some();
    let mut with_forwarder = variants.iter().filter(has_forwarder);
    let Some(first) = with_forwarder.next() else {
        return;
    };
    let others: Vec<&Variant> = with_forwarder.collect();
    for factor in &file.factors {
        let name = factor.name.get_ref();
        let differs = |other: &&&Variant| other.levels.get(name) != first.levels.get(name);
        let other = others.iter().find(differs);
        if let Some(other) = other.filter(|_| bindings.get(name).is_some_and(is_of_the_kernel)) {
            let message = format!(
                "{name:?} differs between {:?} and {:?}, whose forwarders in user space it does not act on",
                first.label, other.label
            );
            reading
                .warning(factor.name.span(), message)
                .with_help(
                    "it acts on the kernel's forwarding, so that a variant is measured twice; leave such variants out \
                     (`[[exclude]]`), unless the forwarder reads it from the kernel",
                );
        }
    }
}

/// Whether a binding acts on the kernel's own forwarding alone.
fn is_of_the_kernel(binding: &Binding) -> bool {
    match binding {
        Binding::Nft(_) | Binding::Routes => true,
        Binding::Sysctl { key, .. } => {
            let key = key.replace('/', ".");
            OF_THE_KERNEL.iter().any(|place| key.starts_with(place))
        }
        _ => false,
    }
}
