//! Bindings: from a lab's mechanisms to how this experiment's factors are set there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::binding::Binding;
use crate::diagnostic::{list, suggest};
use crate::document::Reading;
use crate::experiment::ExperimentFile;
use crate::files::{Read, beside, shown};
use crate::lab_file::LabFile;
use crate::mechanism::{Binder, line_that_removes};

/// How the lab sets each factor and each setting, for the levels that the experiment has.
pub(crate) fn bindings(
    reading: &mut Reading<'_>,
    file: &ExperimentFile,
    lab: &LabFile,
    read: Read<'_>,
) -> BTreeMap<String, Binding> {
    let mut bindings: BTreeMap<String, Binding> = BTreeMap::new();
    let dut = lab.lab.hosts.as_ref().map(|hosts| &hosts.dut);
    let ports = dut.map(|dut| [&*dut.interface_in, &*dut.interface_out]);
    let may_overwrite = dut.is_none_or(|dut| dut.overwrite_other_slice);
    // What each factor before sets.
    let mut set: Vec<(&String, Vec<String>)> = Vec::new();
    let factors = file.factors.iter().map(|factor| ("factor", factor));
    let settings = file.settings.iter().map(|setting| ("setting", setting));
    for (what, factor) in factors.chain(settings) {
        let name = factor.name.get_ref();
        let Some(mechanism) = lab.mechanisms.get(name) else {
            // A file without even that is no lab file, or was cut off: the one error says it.
            let Some(kind) = lab.kind else {
                continue;
            };
            let bound = || lab.mechanisms.keys().map(String::as_str);
            let message = format!(
                "{what} {name:?} is not bound in {}, a lab of kind {kind}",
                shown(&lab.source.path),
            );
            let suggestion = reading.nearest(name, bound());
            let diagnostic = reading.error(factor.name.span(), message);
            suggest(diagnostic, suggestion);
            diagnostic.with_help(format!("bound there: {}", list(bound())));
            if let Some(own) = own_lab(file).filter(|own| *own != lab.source.path) {
                diagnostic.with_help(format!(
                    "the experiment is made for {}; without --lab it is measured there",
                    shown(&own)
                ));
            }
            continue;
        };
        let Some(mechanism) = mechanism else {
            continue;
        };
        let binding = mechanism.bind(&mut Binder {
            reading,
            factor,
            lab: &lab.source,
            read,
            may_overwrite,
        });
        let sets = mechanism.sets(ports);
        let shared = |(other, others): &&(&String, Vec<String>)| {
            *other != name && others.iter().any(|other| sets.contains(other))
        };
        if let Some((other, _)) = set.iter().find(shared) {
            let is_forwarder =
                |name: &String| matches!(bindings.get(name), Some(Binding::Forwarder(_)));
            let of_one = matches!(binding, Binding::Forwarder(_)) != is_forwarder(other);
            let message = if of_one {
                format!(
                    "{other:?} and {name:?} cannot be combined: a forwarder in user space may attach XDP and tc programs of \
                     its own"
                )
            } else {
                format!("{other:?} and {name:?} set the same thing")
            };
            reading
                .error(factor.name.span(), message)
                .with_help(format!("see their bindings in {}", shown(&lab.source.path)));
        }
        set.push((name, sets));
        bindings.insert(name.clone(), binding);
    }
    refuse_removals(reading, lab, &bindings);
    bindings
}

/// Rulesets of several factors are loaded as one: a command in a later one that removes tables would take those of an
/// earlier one away, whose level then is not in force.
fn refuse_removals(reading: &mut Reading<'_>, lab: &LabFile, bindings: &BTreeMap<String, Binding>) {
    let rulesets = bindings
        .iter()
        .filter_map(|(factor, binding)| match binding {
            Binding::Nft(texts) => Some((factor, texts)),
            _ => None,
        });
    let rulesets: Vec<_> = rulesets.collect();
    if rulesets.len() < 2 {
        return;
    }
    for (factor, texts) in rulesets {
        for (level, text) in texts {
            let mechanism = lab.mechanisms.get(factor).and_then(Option::as_ref);
            let file = mechanism.and_then(|mechanism| mechanism.ruleset(level));
            if let (Some(line), Some(file)) = (line_that_removes(text), file) {
                let path = beside(&lab.source.path, file.get_ref());
                let message = format!(
                    "{}:{line}: removes what the rulesets of other factors add",
                    shown(&path)
                );
                reading
                    .diagnostics
                    .error(Some((&lab.source, file.span())), message)
                    .with_help(
                        "leave the line out: fwdlab empties the ruleset before it loads those of all factors",
                    );
            }
        }
    }
}

/// The lab that an experiment names.
fn own_lab(file: &ExperimentFile) -> Option<PathBuf> {
    let lab = file.lab.as_ref()?;
    Some(beside(&file.source.path, lab.get_ref()))
}
