//! Rulesets of FreeBSD's three packet filters.

use serde_json::{Value, json};

use crate::binding::PacketFilter;
use crate::document::Reading;
use crate::kind::LabKind;
use crate::schema_parts::by_level;

use super::{Description, Given, Levels, Mechanism, file_or_none, levels};

pub(super) const PF: Description = Description {
    key: "pf",
    what: "rulesets of FreeBSD's pf",
    levels: Levels::Files,
    kinds: &[LabKind::FreebsdSsh],
    takes_values: false,
    read: |reading, given| read(reading, &given, PacketFilter::Pf),
    schema: || schema("pf"),
};

pub(super) const IPFW: Description = Description {
    key: "ipfw",
    what: "rulesets of FreeBSD's ipfw",
    levels: Levels::Files,
    kinds: &[LabKind::FreebsdSsh],
    takes_values: false,
    read: |reading, given| read(reading, &given, PacketFilter::Ipfw),
    schema: || schema("ipfw"),
};

pub(super) const IPF: Description = Description {
    key: "ipf",
    what: "rulesets of FreeBSD's IP Filter",
    levels: Levels::Files,
    kinds: &[LabKind::FreebsdSsh],
    takes_values: false,
    read: |reading, given| read(reading, &given, PacketFilter::Ipf),
    schema: || schema("IP Filter"),
};

fn schema(filter: &str) -> Value {
    by_level(
        &format!("The file of {filter}'s ruleset of each level; \"\" is none."),
        json!({ "type": "string" }),
    )
}

fn read(reading: &mut Reading<'_>, given: &Given<'_>, filter: PacketFilter) -> Option<Mechanism> {
    let files = levels(reading, given.value, given.what, file_or_none);
    Some(Mechanism::Ruleset(filter, files))
}
