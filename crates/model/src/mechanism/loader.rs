//! A tunable of FreeBSD's loader.

use crate::binding::{Binding, Values};
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::schema_parts::line;

use super::name::is_freebsd_name;
use super::sysctl::kernel_variables;
use super::{Binder, Description, Given, Levels, Meanings, Mechanism, without_errors};

pub(super) const LOADER: Description = Description {
    key: "loader",
    what: "a tunable of FreeBSD's loader",
    levels: Levels::Values,
    kinds: &[LabKind::Ssh(System::Freebsd)],
    takes_values: true,
    table: None,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    line("A loader tunable of FreeBSD; {0,1} stands for several devices. Needs a reboot.")
}

/// A tunable, and the value of each level where the levels are not the values.
#[derive(Debug)]
struct Tunable {
    name: String,
    values: Option<Meanings<String>>,
}

impl Mechanism for Tunable {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        Binding::Loader {
            tunable: self.name.clone(),
            values: binder.values(self.values.as_ref(), "a loader tunable"),
        }
    }

    fn bind_any_level(&self) -> Option<Binding> {
        Some(Binding::Loader {
            tunable: self.name.clone(),
            values: Values(without_errors(self.values.clone().unwrap_or_default())),
        })
    }

    /// A tunable is a sysctl once the kernel has booted.
    fn sets(&self, ports: Option<[&str; 2]>) -> Vec<String> {
        kernel_variables(&self.name, ports)
    }
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let tunable = reading.line(given.value, given.what)?;
    is_freebsd_name(reading, tunable.span(), tunable.get_ref(), "loader tunable").then(
        || -> Box<dyn Mechanism> {
            Box::new(Tunable {
                name: tunable.into_inner(),
                values: given.values,
            })
        },
    )
}
