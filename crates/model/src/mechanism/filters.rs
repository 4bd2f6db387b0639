//! Rulesets of FreeBSD's three packet filters.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toml::Spanned;

use crate::binding::{Binding, PacketFilter};
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::schema_parts::by_level;

use super::{Binder, Description, Given, Levels, Mechanism, file_or_none, levels, rulesets};

pub(super) const PF: Description = Description {
    key: "pf",
    what: "rulesets of FreeBSD's pf",
    levels: Levels::Files,
    kinds: &[LabKind::Ssh(System::Freebsd)],
    takes_values: false,
    table: None,
    read: |reading, given| read(reading, &given, PacketFilter::Pf),
    schema: || schema("pf"),
};

pub(super) const IPFW: Description = Description {
    key: "ipfw",
    what: "rulesets of FreeBSD's ipfw",
    levels: Levels::Files,
    kinds: &[LabKind::Ssh(System::Freebsd)],
    takes_values: false,
    table: None,
    read: |reading, given| read(reading, &given, PacketFilter::Ipfw),
    schema: || schema("ipfw"),
};

pub(super) const IPF: Description = Description {
    key: "ipf",
    what: "rulesets of FreeBSD's IP Filter",
    levels: Levels::Files,
    kinds: &[LabKind::Ssh(System::Freebsd)],
    takes_values: false,
    table: None,
    read: |reading, given| read(reading, &given, PacketFilter::Ipf),
    schema: || schema("IP Filter"),
};

fn schema(filter: &str) -> Value {
    by_level(
        &format!("The file of {filter}'s ruleset of each level; \"\" is none."),
        json!({ "type": "string" }),
    )
}

/// For each level the file of a packet filter's ruleset, relative to the lab file; empty is none.
#[derive(Debug)]
struct Filter {
    filter: PacketFilter,
    files: BTreeMap<String, Spanned<String>>,
}

impl Mechanism for Filter {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        Binding::Ruleset {
            filter: self.filter,
            texts: rulesets::texts(binder, &self.files),
        }
    }

    fn ruleset(&self, level: &str) -> Option<&Spanned<String>> {
        self.files.get(level)
    }
}

fn read(
    reading: &mut Reading<'_>,
    given: &Given<'_>,
    filter: PacketFilter,
) -> Option<Box<dyn Mechanism>> {
    let files = levels(reading, given.value, given.what, file_or_none);
    Some(Box::new(Filter { filter, files }))
}
