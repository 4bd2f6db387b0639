//! Images of nanobsd, written to the other slice of a FreeBSD host.

use serde_json::json;

use crate::document::Reading;
use crate::kind::LabKind;
use crate::schema_parts::by_level;

use super::{Description, Given, Levels, Mechanism, file_or_none, levels};

pub(super) const IMAGE: Description = Description {
    key: "image",
    what: "images of nanobsd",
    levels: Levels::Files,
    kinds: &[LabKind::FreebsdSsh],
    takes_values: false,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    by_level(
        "The file of nanobsd's image of each level, relative to this file, which is written to the \
         DUT's other slice; \"\" is the system that it boots by itself. Needs a reboot.",
        json!({ "type": "string" }),
    )
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Mechanism> {
    let images = levels(reading, given.value, given.what, file_or_none);
    Some(Mechanism::Image(images))
}
