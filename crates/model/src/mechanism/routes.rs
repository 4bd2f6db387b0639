//! The number of routes in the DUT's table.

use serde_json::json;

use crate::document::Reading;
use crate::kind::LabKind;

use super::{Description, Given, Levels, Mechanism};

pub(super) const ROUTES: Description = Description {
    key: "routes",
    what: "the number of routes",
    levels: Levels::Numbers,
    kinds: &[LabKind::Netns, LabKind::Router, LabKind::LinuxSsh],
    takes_values: false,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    json!({ "description": "The level is the number of routes.", "const": true })
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Mechanism> {
    if given.value.get_ref().as_bool() == Some(true) {
        return Some(Mechanism::Routes);
    }
    reading
        .expected(given.value, given.what, "true")
        .with_help("the level is the number of routes");
    None
}
