//! What became of every variable, and what a reader should know.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_archive::Place;

use super::expand::{Environment, Value};
use super::{Note, VariableUse};
use crate::LabVariable;

/// A variable where it is set, so that sets and experiments may use one twice.
type Variable = (Place, String);

/// What is noted while files are made.
#[derive(Default)]
pub(super) struct Account {
    uses: BTreeMap<Variable, BTreeSet<String>>,
    refused: BTreeMap<Variable, String>,
    pub(super) missing: Vec<String>,
    pub(super) notes: Vec<Note>,
}

impl Account {
    pub(super) fn uses(&mut self, name: &str, value: &Value, purpose: impl Into<String>) {
        let uses = self.uses.entry(variable(name, value)).or_default();
        uses.insert(purpose.into());
    }

    /// Notes a value that cannot be taken; several sets may run into the same one.
    pub(super) fn refuses(&mut self, name: &str, value: &Value, why: &str) {
        let shown: String = value.text.chars().take(80).collect();
        let text = format!("{name} is {:?}: {why}", shown);
        let before = self.refused.insert(variable(name, value), why.to_owned());
        if before.is_none() {
            self.notes.push(Note::at(value.place.clone(), text));
        }
    }
}

fn variable(name: &str, value: &Value) -> Variable {
    (value.place.clone(), name.to_owned())
}

/// Variables with what they are for, and those that are for nothing, in the order of their lines.
pub(super) fn uses(
    environment: &Environment,
    account: &Account,
) -> (Vec<VariableUse>, Vec<VariableUse>) {
    let entry = |name: &str, place: &Place, purpose: String| VariableUse {
        variable: name.to_owned(),
        file: place.path.display().to_string(),
        line: place.line.unwrap_or(1),
        purpose,
    };
    let used = account.uses.iter().map(|((place, name), purposes)| {
        let purposes: Vec<&str> = purposes.iter().map(String::as_str).collect();
        entry(name, place, purposes.join("; "))
    });
    let mut unused: Vec<(&str, &Value)> = environment
        .values()
        .filter(|(name, value)| !account.uses.contains_key(&variable(name, value)))
        .collect();
    unused.sort_by_key(|(_, value)| value.place.line);
    let unused = unused.into_iter().map(|(name, value)| {
        let refused = account.refused.get(&variable(name, value));
        let why = refused.map_or_else(|| why_unused(name), String::as_str);
        entry(name, &value.place, why.to_owned())
    });
    (used.collect(), unused.collect())
}

fn why_unused(name: &str) -> &'static str {
    match name {
        "PMC_EVENT" => "stacks are sampled as [profile] of an experiment says",
        "PKT_TO_SEND" => "a trial lasts as long as [design] says",
        "PKT_SIZE" | "AF" | "SENDER_LAB_NET" | "RECEIVER_LAB_NET" => {
            "the sets of pkt-gen say it, or there is no experiment"
        }
        "REF_ADMIN" => "a lab has no far end of a tunnel",
        "IS_DUT_ONLINE_TARGET" => "a lab asks the DUT itself",
        _ => match LabVariable::of(name) {
            LabVariable::Command => "no command of it is run",
            LabVariable::Mac => "interfaces are known by their names",
            _ => "neither a lab nor an experiment has it",
        },
    }
}
