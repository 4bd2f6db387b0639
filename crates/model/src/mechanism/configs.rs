//! Folders of files that a FreeBSD host has while it boots.

use std::collections::BTreeMap;

use toml::Spanned;

use crate::binding::Binding;
use crate::document::{Reading, Value};
use crate::kind::{LabKind, System};
use crate::schema_parts::{by_level, line};

use super::{Binder, Description, Given, Levels, Mechanism, levels};

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
#[derive(Debug)]
struct Configs(BTreeMap<String, Spanned<String>>);

impl Mechanism for Configs {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        let folders = binder.levels(&self.0).into_iter();
        let folders = folders.filter_map(|(level, folder)| Some((level, binder.upload(folder)?)));
        Binding::Configs(folders.collect())
    }

    fn sets(&self, _: Option<[&str; 2]>) -> Vec<String> {
        vec!["the set of configuration files".to_owned()]
    }
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let folder =
        |reading: &mut Reading<'_>, value: &Value<'_>, what: &str| reading.line(value, what);
    let folders = levels(reading, given.value, given.what, folder);
    Some(Box::new(Configs(folders)))
}
