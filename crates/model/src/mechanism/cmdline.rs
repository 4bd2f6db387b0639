//! Parameters of a Linux kernel's command line.

use serde_json::json;

use crate::binding::Binding;
use crate::document::{Reading, Value};
use crate::kind::{LabKind, System};
use crate::schema_parts::by_level;

use super::{ByLevel, Description, Given, Levels, Mechanism, levels};

pub(super) const CMDLINE: Description = Description {
    key: "cmdline",
    what: "parameters of the kernel's command line",
    levels: Levels::Words,
    kinds: &[LabKind::Ssh(System::Linux)],
    takes_values: false,
    table: None,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    by_level(
        "What each level adds to the kernel's command line; may be \"\". Needs a reboot.",
        json!({ "type": "string" }),
    )
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let parameters = levels(reading, given.value, given.what, boot_parameters);
    Some(Box::new(ByLevel {
        meanings: parameters,
        bind: |binder, parameters| Binding::CommandLine(binder.meanings(parameters)),
        sets: &[],
    }))
}

/// Parameters of a kernel's command line, with blanks in between: nothing that a boot loader takes for its own.
fn boot_parameters(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<String> {
    // Empty text is no parameter more, so this is not the text of one line.
    if value.get_ref().as_str() == Some("") {
        return Some(String::new());
    }
    let line = reading.line(value, what)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-=,:/@+*^~[] ".contains(&byte);
    if line.get_ref().bytes().all(is_plain) {
        return Some(line.into_inner());
    }
    reading
        .error(
            line.span(),
            format!("{:?} are no parameters of a kernel", line.get_ref()),
        )
        .with_help(
            "parameters are made of letters, digits and `._-=,:/@+*^~[]`, with blanks in between: \
             \"mitigations=off nosmt\"",
        );
    None
}
