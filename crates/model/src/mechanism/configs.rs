//! Folders of files that a FreeBSD host has while it boots.

use crate::document::{Reading, Value};
use crate::kind::LabKind;
use crate::schema_parts::{by_level, line};

use super::{Description, Given, Levels, Mechanism, levels};

pub(super) const CONFIGS: Description = Description {
    key: "configs",
    what: "folders of files for the DUT",
    levels: Levels::Files,
    kinds: &[LabKind::FreebsdSsh],
    takes_values: false,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    by_level(
        "The folder of each level, whose files are copied to the DUT before it boots. Needs a reboot.",
        line("A folder, relative to this file."),
    )
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Mechanism> {
    let folder =
        |reading: &mut Reading<'_>, value: &Value<'_>, what: &str| reading.line(value, what);
    let folders = levels(reading, given.value, given.what, folder);
    Some(Mechanism::Configs(folders))
}
