//! Folders of files that a FreeBSD host has while it boots.

use toml::Spanned;

use crate::binding::Binding;
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::schema_parts::{by_level, line};

use super::{Binder, ByLevel, Description, Given, Levels, Meanings, Mechanism, levels};

pub(super) const CONFIGS: Description = Description {
    key: "configs",
    what: "folders of files for the DUT",
    levels: Levels::Files,
    kinds: &[LabKind::Ssh(System::Freebsd)],
    takes_values: false,
    table: None,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    by_level(
        "The folder of each level, whose files are copied to the DUT before it boots. Needs a reboot.",
        line("A folder, relative to this file."),
    )
}

/// For each level a folder of files that are copied to the DUT, relative to the lab file.
fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let folders = levels(reading, given.value, given.what, |reading, value, what| {
        reading.line(value, what)
    });
    Some(Box::new(ByLevel {
        meanings: folders,
        bind,
        sets: &["the set of configuration files"],
    }))
}

fn bind(binder: &mut Binder<'_, '_>, folders: &Meanings<Spanned<String>>) -> Binding {
    let folders = binder.levels(folders).into_iter();
    let folders = folders.filter_map(|(level, folder)| Some((level, binder.upload(folder)?)));
    Binding::Configs(folders.collect())
}
