//! A file of interfaces in sysfs.

use crate::document::Reading;
use crate::kind::LabKind;
use crate::schema_parts::{described, line, table};

use super::name::is_path_part;
use super::{Description, Given, Levels, Mechanism, interfaces};

pub(crate) const KEYS: &[&str] = &["file", "interfaces"];

pub(super) const SYSFS: Description = Description {
    key: "sysfs",
    what: "a file of the interfaces in sysfs",
    levels: Levels::ValuesOf("file"),
    kinds: &[LabKind::Netns, LabKind::LinuxSsh],
    takes_values: true,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    described(
        "A file below /sys/class/net/<interface>/.",
        table(
            &[
                ("file", line("Path below the interface's directory.")),
                ("interfaces", interfaces::schema()),
            ],
            &["file"],
        ),
    )
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Mechanism> {
    let table = reading.table(given.value, given.what, KEYS)?;
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
    Some(Mechanism::Sysfs(
        file.into_inner(),
        interfaces?,
        given.values,
    ))
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
