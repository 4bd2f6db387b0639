//! The user's own programs.

use serde_json::json;

use crate::binding::{Apply, Binding, CommandBinding};
use crate::document::{Reading, Value};
use crate::kind::{LabKind, System};
use crate::placeholder::{self, LEVEL};
use crate::schema_parts::{self, by_level, table};

use super::{Binder, Description, Given, Levels, Meanings, Mechanism, levels, without_errors};

const KEYS: &[&str] = &["do", "undo", "check"];

pub(super) const COMMAND: Description = Description {
    key: "command",
    what: "a setting made by commands, each in quotes",
    levels: Levels::Programs,
    kinds: &[
        LabKind::Netns,
        LabKind::Ssh(System::Freebsd),
        LabKind::Ssh(System::Linux),
    ],
    takes_values: false,
    table: Some((KEYS, "")),
    read,
    schema,
};

fn schema() -> serde_json::Value {
    let program = schema_parts::program;
    let template = program("One for all levels: {level} in an argument stands for the level.");
    let programs = by_level("One for each level.", program("Sets this level."));
    table(json!({
        "description": "Programs with their arguments; {level} stands for the level, {dut-in} and {dut-out} for the \
                        interfaces of the DUT.",
        "required": ["do", "undo"],
        "properties": {
            "do": {
                "description": "Sets the level: one list for all levels, or a table with a list for each.",
                "oneOf": [template, programs],
            },
            "undo": program("Takes the level back."),
            "check": program("Prints something that holds the level."),
        },
    }))
}

/// The user's own programs.
#[derive(Debug)]
struct Command {
    apply: Setting,
    undo: Vec<String>,
    check: Option<Vec<String>>,
}

/// The program that sets a level, as it is read.
#[derive(Debug)]
enum Setting {
    /// The same for all levels but for `{level}`.
    Template(Vec<String>),
    /// One for each level.
    ByLevel(Meanings<Vec<String>>),
}

impl Mechanism for Command {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        let apply = match &self.apply {
            Setting::Template(words) => Apply::Template(words.clone()),
            Setting::ByLevel(programs) => {
                binder.levels(programs);
                Apply::ByLevel(without_errors(programs.clone()))
            }
        };
        Binding::Command(CommandBinding {
            apply,
            undo: self.undo.clone(),
            check: self.check.clone(),
        })
    }
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let table = reading.table(given.value, given.what, given.keys)?;
    let apply = table
        .required(reading, "do")
        .and_then(|value| apply(reading, value, &table.what("do")));
    let undo = table
        .required(reading, "undo")
        .and_then(|value| program(reading, value, &table.what("undo")));
    let check = table
        .value("check")
        .and_then(|value| program(reading, value, &table.what("check")));
    Some(Box::new(Command {
        apply: apply?,
        undo: undo?,
        check,
    }))
}

/// The program that sets a level: one for all of them, or a table with one for each.
fn apply(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Setting> {
    if value.get_ref().is_table() {
        let programs = levels(reading, value, what, program);
        return Some(Setting::ByLevel(programs));
    }
    let words = program(reading, value, what)?;
    if !words.iter().any(|word| word.contains(LEVEL)) {
        reading
            .error(
                value.span(),
                format!("{what} does the same for every level"),
            )
            .with_help(format!("`{LEVEL}` in an argument stands for the level"))
            .with_help("or write a table with a list for each level");
    }
    Some(Setting::Template(words))
}

/// One of the programs on the DUT, with its arguments.
fn program(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Vec<String>> {
    let arguments = arguments(reading, value, what)?;
    check_placeholders(reading, value, &arguments, placeholder::OF_COMMANDS);
    Some(arguments)
}

/// Refuses placeholders in a program's words that are none of those known.
pub(super) fn check_placeholders(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    arguments: &[String],
    known: &[&str],
) {
    let items = value.get_ref().as_array().into_iter().flatten();
    for (argument, item) in arguments.iter().zip(items) {
        for place in placeholder::unknown(argument, known) {
            let written = &argument[place];
            let diagnostic = reading.error(item.span(), format!("unknown placeholder {written}"));
            placeholder::explain(diagnostic, written, known);
        }
    }
}

/// A program and its arguments; no shell sees them.
pub(crate) fn arguments(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
) -> Option<Vec<String>> {
    let arguments = words(reading, value, what, r#"["ip", "link", "show"]"#)?;
    let program = arguments.first().map_or("", String::as_str);
    if program.is_empty() || program.contains(LEVEL) {
        reading
            .error(value.span(), format!("{what} names no program"))
            .with_help(format!("the program comes first, without {LEVEL} in it"));
        return None;
    }
    Some(arguments)
}

/// The words of a list, written as in an example.
pub(super) fn words(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
    example: &str,
) -> Option<Vec<String>> {
    let Some(items) = value.get_ref().as_array() else {
        reading
            .expected(value, what, "a list of a program and its arguments")
            .with_help(format!("no shell takes it apart: write {example}"));
        return None;
    };
    let mut arguments = Vec::new();
    for item in items {
        let text = item.get_ref().as_str().filter(|text| !text.contains('\0'));
        let Some(text) = text else {
            reading.expected(item, &format!("an argument of {what}"), "text");
            return None;
        };
        arguments.push(text.to_owned());
    }
    Some(arguments)
}
