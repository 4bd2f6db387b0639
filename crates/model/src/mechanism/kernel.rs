//! The kernel that a host boots.

use crate::binding::Binding;
use crate::document::{Reading, Value};
use crate::kind::{LabKind, System};
use crate::schema_parts::{by_level, line};

use super::name::is_path_part;
use super::{ByLevel, Description, Given, Levels, Mechanism, levels};

pub(super) const KERNEL: Description = Description {
    key: "kernel",
    what: "the kernel",
    levels: Levels::Words,
    kinds: &[LabKind::Ssh(System::Freebsd), LabKind::Ssh(System::Linux)],
    takes_values: false,
    table: None,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    by_level(
        "The kernel of each level, on Linux by its release, on FreeBSD also a boot environment. \
         Needs a reboot.",
        line("Its name."),
    )
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let kernels = levels(reading, given.value, given.what, kernel);
    Some(Box::new(ByLevel {
        meanings: kernels,
        bind: |binder, kernels| Binding::Kernel(binder.meanings(kernels)),
        sets: &["the kernel"],
    }))
}

/// The name of a kernel or boot environment: no path, and nothing that a program takes for an option.
fn kernel(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<String> {
    let name = reading.line(value, what)?;
    // Releases of kernels that were built by hand often end in a plus.
    if !name.get_ref().starts_with('-') && is_path_part(&name.get_ref().replace('+', "")) {
        return Some(name.into_inner());
    }
    reading
        .error(
            name.span(),
            format!("{:?} is no name of a kernel", name.get_ref()),
        )
        .with_help(
            "names are made of letters, digits, `.`, `_`, `+` and `-`, the first neither `.` nor `-`",
        );
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::errors_in;

    #[test]
    fn a_kernel_is_no_path_and_no_option() {
        for (name, allowed) in [
            ("n277567D33658", true),
            ("15.0-RELEASE_p1", true),
            ("", false),
            ("-r", false),
            ("..", false),
            ("/boot/kernel", false),
            ("a b", false),
        ] {
            let errors = errors_in("freebsd-ssh", &format!("kernel = {{ 0 = {name:?} }}"));
            assert_eq!(errors.is_empty(), allowed, "{name}\n{errors}");
        }
    }
}
