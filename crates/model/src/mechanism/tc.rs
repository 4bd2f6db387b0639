//! The owner's tc programs.

use std::collections::BTreeMap;

use serde_json::json;
use toml::Spanned;

use crate::binding::{Binding, TcProgram};
use crate::document::{Reading, Value};
use crate::kind::{LabKind, System};
use crate::schema_parts::{by_level, line, table};

use super::name::is_path_part;
use super::{Binder, ByLevel, Description, Given, Levels, Mechanism, levels};

const KEYS: &[&str] = &["object", "program"];

pub(super) const TC: Description = Description {
    key: "tc",
    what: "tc programs of your own",
    levels: Levels::Files,
    kinds: &[LabKind::Netns, LabKind::Ssh(System::Linux)],
    takes_values: false,
    table: Some((KEYS, "/additionalProperties/anyOf/1")),
    read,
    schema,
};

fn schema() -> serde_json::Value {
    let program = table(json!({
        "required": KEYS,
        "properties": {
            "object": line("The eBPF object file, relative to this file."),
            "program": line("Which of its programs, by the name of its function."),
        },
    }));
    by_level(
        "The eBPF object file of each level, relative to this file, whose tc program is attached to the ingress of the \
         DUT's receiving interface; a table names one of several programs; \"\" is none.",
        json!({ "anyOf": [{ "type": "string" }, program] }),
    )
}

/// An object file, relative to the lab file, and which of its programs, where it has several.
#[derive(Debug)]
struct Named {
    object: Spanned<String>,
    program: Option<String>,
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let program = |reading: &mut Reading<'_>, value: &Value<'_>, what: &str| {
        program(reading, value, what, given.keys)
    };
    Some(Box::new(ByLevel {
        meanings: levels(reading, given.value, given.what, program),
        bind,
        sets: Some("the tc program"),
    }))
}

fn bind(binder: &mut Binder<'_, '_>, programs: &BTreeMap<String, Option<Named>>) -> Binding {
    let programs = binder.levels(programs).into_iter();
    let programs = programs.filter_map(|(level, named)| {
        let program = match named {
            Some(named) => Some(TcProgram {
                object: binder.upload(&named.object)?,
                program: named.program.clone(),
            }),
            None => None,
        };
        Some((level, program))
    });
    Binding::Tc(programs.collect())
}

/// What a level names; empty text is no program.
fn program(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
    keys: &'static [&'static str],
) -> Option<Option<Named>> {
    if value.get_ref().as_str() == Some("") {
        return Some(None);
    }
    if !value.get_ref().is_table() {
        let object = reading.line(value, what)?;
        return Some(Some(Named {
            object,
            program: None,
        }));
    }
    let table = reading.table(value, what, keys)?;
    let object = table.required_line(reading, "object");
    let program = table.required_line(reading, "program")?;
    if !is_path_part(program.get_ref()) {
        reading
            .error(
                program.span(),
                format!("{:?} is no name of a program", program.get_ref()),
            )
            .with_help("give the name of its function in C");
        return None;
    }
    Some(Some(Named {
        object: object?,
        program: Some(program.into_inner()),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::errors;

    #[test]
    fn a_level_is_an_object_or_one_of_its_programs_or_none() {
        for (level, allowed) in [
            ("\"\"", true),
            ("{ object = \"a.o\", program = \"classify\" }", true),
            ("{ object = \"a.o\" }", false),
            ("{ object = \"a.o\", program = \"a/b\" }", false),
            (
                "{ object = \"a.o\", program = \"a\", section = \"b\" }",
                false,
            ),
            ("\"a.o\"", true),
            ("1", false),
        ] {
            let errors = errors(&format!("tc = {{ v1 = {level} }}"));
            assert_eq!(errors.is_empty(), allowed, "{level}\n{errors}");
        }
    }
}
