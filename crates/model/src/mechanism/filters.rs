//! Rulesets of packet filters: nftables, and FreeBSD's three.

use serde_json::{Value, json};
use toml::Spanned;

use crate::binding::{Binding, PacketFilter};
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::schema_parts::by_level;

use super::{
    Binder, Description, Given, Levels, Meanings, Mechanism, file_or_none, levels, rulesets,
};

pub(super) const NFT: Description = Description {
    key: "nft",
    what: "rulesets of nftables",
    levels: Levels::Files,
    kinds: &[LabKind::Netns, LabKind::Ssh(System::Linux)],
    takes_values: false,
    table: None,
    read: |reading, given| read(reading, &given, None),
    schema: || schema("The ruleset's file of each level; \"\" is none."),
};

pub(super) const PF: Description = Description {
    key: "pf",
    what: "rulesets of FreeBSD's pf",
    levels: Levels::Files,
    kinds: &[LabKind::Ssh(System::Freebsd)],
    takes_values: false,
    table: None,
    read: |reading, given| read(reading, &given, Some(PacketFilter::Pf)),
    schema: || freebsd_schema("pf"),
};

pub(super) const IPFW: Description = Description {
    key: "ipfw",
    what: "rulesets of FreeBSD's ipfw",
    levels: Levels::Files,
    kinds: &[LabKind::Ssh(System::Freebsd)],
    takes_values: false,
    table: None,
    read: |reading, given| read(reading, &given, Some(PacketFilter::Ipfw)),
    schema: || freebsd_schema("ipfw"),
};

pub(super) const IPF: Description = Description {
    key: "ipf",
    what: "rulesets of FreeBSD's IP Filter",
    levels: Levels::Files,
    kinds: &[LabKind::Ssh(System::Freebsd)],
    takes_values: false,
    table: None,
    read: |reading, given| read(reading, &given, Some(PacketFilter::Ipf)),
    schema: || freebsd_schema("IP Filter"),
};

fn freebsd_schema(filter: &str) -> Value {
    schema(&format!(
        "The file of {filter}'s ruleset of each level; \"\" is none."
    ))
}

fn schema(what: &str) -> Value {
    by_level(what, json!({ "type": "string" }))
}

/// For each level the file of a packet filter's ruleset, relative to the lab file; empty is none.
#[derive(Debug)]
struct Filter {
    /// Which of FreeBSD's; nftables without.
    filter: Option<PacketFilter>,
    files: Meanings<Spanned<String>>,
}

impl Mechanism for Filter {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        let texts = rulesets::texts(binder, &self.files);
        match self.filter {
            Some(filter) => Binding::Ruleset { filter, texts },
            None => Binding::Nft(texts),
        }
    }

    fn ruleset(&self, level: &str) -> Option<&Spanned<String>> {
        self.files.get(level)?.as_ref()
    }
}

fn read(
    reading: &mut Reading<'_>,
    given: &Given<'_>,
    filter: Option<PacketFilter>,
) -> Option<Box<dyn Mechanism>> {
    let files = levels(reading, given.value, given.what, file_or_none);
    Some(Box::new(Filter { filter, files }))
}
