//! Rulesets of nftables.

use std::collections::BTreeMap;

use serde_json::json;
use toml::Spanned;

use crate::binding::Binding;
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::schema_parts::by_level;

use super::{Binder, Description, Given, Levels, Mechanism, file_or_none, levels, rulesets};

pub(super) const NFT: Description = Description {
    key: "nft",
    what: "rulesets of nftables",
    levels: Levels::Files,
    kinds: &[LabKind::Netns, LabKind::Ssh(System::Linux)],
    takes_values: false,
    table: None,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    by_level(
        "The ruleset's file of each level; \"\" is none.",
        json!({ "type": "string" }),
    )
}

/// For each level the ruleset's file, relative to the lab file; empty is no ruleset.
#[derive(Debug)]
struct Nft(BTreeMap<String, Spanned<String>>);

impl Mechanism for Nft {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        Binding::Nft(rulesets::texts(binder, &self.0))
    }

    fn ruleset(&self, level: &str) -> Option<&Spanned<String>> {
        self.0.get(level)
    }
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let files = levels(reading, given.value, given.what, file_or_none);
    Some(Box::new(Nft(files)))
}
