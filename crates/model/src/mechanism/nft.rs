//! Rulesets of nftables.

use serde_json::json;

use crate::document::Reading;
use crate::kind::LabKind;
use crate::schema_parts::by_level;

use super::{Description, Given, Levels, Mechanism, file_or_none, levels};

pub(super) const NFT: Description = Description {
    key: "nft",
    what: "rulesets of nftables",
    levels: Levels::Files,
    kinds: &[LabKind::Netns, LabKind::LinuxSsh],
    takes_values: false,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    by_level(
        "The ruleset's file of each level; \"\" is none.",
        json!({ "type": "string" }),
    )
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Mechanism> {
    let files = levels(reading, given.value, given.what, file_or_none);
    Some(Mechanism::Nft(files))
}
