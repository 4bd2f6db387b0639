//! A file of interfaces in sysfs.

use serde_json::json;

use crate::binding::{Binding, DutInterface};
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::schema_parts::{line, table};

use super::name::is_path_part;
use super::{Binder, Description, Given, Levels, Meanings, Mechanism, interfaces};

const KEYS: &[&str] = &["file", "interfaces"];

pub(super) const SYSFS: Description = Description {
    key: "sysfs",
    what: "a file of the interfaces in sysfs",
    levels: Levels::ValuesOf("file"),
    kinds: &[LabKind::Netns, LabKind::Ssh(System::Linux)],
    takes_values: true,
    table: Some((KEYS, "")),
    read,
    schema,
};

fn schema() -> serde_json::Value {
    table(json!({
        "description": "A file below /sys/class/net/<interface>/.",
        "required": ["file"],
        "properties": { "file": line("Path below the interface's directory."), "interfaces": interfaces::schema() },
    }))
}

/// A file below interfaces' directories, and the value of each level where the levels are not the values.
#[derive(Debug)]
struct Sysfs {
    file: String,
    interfaces: Vec<DutInterface>,
    values: Option<Meanings<String>>,
}

impl Mechanism for Sysfs {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        Binding::Sysfs {
            file: self.file.clone(),
            interfaces: self.interfaces.clone(),
            values: binder.values(self.values.as_ref(), "a file in sysfs"),
        }
    }

    fn sets(&self, _: Option<[&str; 2]>) -> Vec<String> {
        let file = &self.file;
        let interfaces = self.interfaces.iter();
        interfaces
            .map(|interface| format!("file {file} of {interface:?}"))
            .collect()
    }
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let table = reading.table(given.value, given.what, given.keys)?;
    let interfaces = interfaces::interfaces(reading, &table);
    let file = table.required_line(reading, "file")?;
    if !file.get_ref().split('/').all(is_path_part) {
        reading
            .error(
                file.span(),
                format!("{:?} is not below an interface's directory", file.get_ref()),
            )
            .with_help("give a path like \"threaded\" or \"queues/rx-0/rps_cpus\", without `..`");
        return None;
    }
    Some(Box::new(Sysfs {
        file: file.into_inner(),
        interfaces: interfaces?,
        values: given.values,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::errors;

    #[test]
    fn a_file_cannot_leave_the_directory_of_its_interface() {
        for (file, allowed) in [
            ("threaded", true),
            ("queues/rx-0/rps_cpus", true),
            ("..", false),
            ("../eth0/threaded", false),
            ("queues/../../eth0/threaded", false),
            ("/sys/class/net/eth0/threaded", false),
            ("queues//rps_cpus", false),
            ("queues/", false),
            (".hidden", false),
            ("a b", false),
        ] {
            let errors = errors(&format!("sysfs = {{ file = {file:?} }}"));
            assert_eq!(errors.is_empty(), allowed, "{file}\n{errors}");
        }
    }
}
