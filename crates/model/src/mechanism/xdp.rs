//! XDP programs.

use serde_json::json;

use crate::binding::{Binding, DutInterface, OwnXdpProgram, XdpMode, XdpProgram};
use crate::diagnostic::list;
use crate::document::{Reading, Value};
use crate::kind::{LabKind, System};
use crate::schema_parts::{by_level, table, words};

use super::ebpf::{self, Named};
use super::{Binder, ByLevel, Description, Given, Levels, Meanings, Mechanism, interfaces, levels};

/// What needs no object.
const WORDS: [&str; 2] = ["off", "fib"];
const PROGRAMS: &[(&str, Built)] = &[(WORDS[0], Built::Off), (WORDS[1], Built::Fib)];

const MODES: &[(&str, XdpMode)] = &[("native", XdpMode::Native), ("generic", XdpMode::Generic)];

const KEYS: &[&str] = &ebpf::keys_and(["mode", "interfaces"]);

/// What a binding of this mechanism sets.
pub(super) const SETS: &str = "the XDP program";

pub(super) const XDP: Description = Description {
    key: "xdp",
    what: "the XDP program: off, fib, or one of your own",
    levels: Levels::FilesOr(&WORDS),
    kinds: &[LabKind::Netns, LabKind::Ssh(System::Linux)],
    takes_values: false,
    table: Some((KEYS, "/additionalProperties/anyOf/1")),
    read,
    schema,
};

#[derive(Clone, Copy, Debug)]
enum Built {
    Off,
    Fib,
}

/// What a level names.
#[derive(Debug)]
enum Level {
    Built(Built),
    Own {
        program: Named,
        mode: XdpMode,
        interfaces: Option<Vec<DutInterface>>,
    },
}

fn schema() -> serde_json::Value {
    let mut properties = ebpf::properties();
    properties["mode"] = words("Where the kernel runs it; native by default.", MODES);
    properties["interfaces"] = interfaces::schema();
    properties["interfaces"]["description"] = json!(
        "Which of the DUT's interfaces have it; by default those that receive in a lab of kind netns, both on a host."
    );
    let own = table(json!({ "required": ["object"], "properties": properties }));
    by_level(
        "The XDP program of each level: off, fib (which asks the kernel's FIB for every packet), or the eBPF object file of \
         one of your own, relative to this file; a table says more of it.",
        json!({ "anyOf": [{ "type": "string", "pattern": OBJECT_OR_WORD }, own] }),
    )
}

/// As a JSON Schema has it.
const OBJECT_OR_WORD: &str = r"^(off|fib)$|[./]";

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let level = |reading: &mut Reading<'_>, value: &Value<'_>, what: &str| {
        level(reading, value, what, given.keys)
    };
    Some(Box::new(ByLevel {
        meanings: levels(reading, given.value, given.what, level),
        bind,
        sets: &[SETS],
    }))
}

fn bind(binder: &mut Binder<'_, '_>, levels: &Meanings<Level>) -> Binding {
    let levels = binder.levels(levels).into_iter();
    let programs = levels.filter_map(|(name, level)| {
        let program = match level {
            Level::Built(Built::Off) => XdpProgram::Off,
            Level::Built(Built::Fib) => XdpProgram::Fib,
            Level::Own {
                program,
                mode,
                interfaces,
            } => XdpProgram::Own(OwnXdpProgram {
                program: ebpf::bind(binder, program)?,
                mode: *mode,
                interfaces: interfaces.clone(),
            }),
        };
        Some((name, program))
    });
    Binding::Xdp(programs.collect())
}

/// What a level names: a word, an object, or a table about one. No word has a dot or a slash, and an object's path has one.
fn level(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
    keys: &'static [&'static str],
) -> Option<Level> {
    if value.get_ref().is_table() {
        let table = reading.table(value, what, keys)?;
        let program = ebpf::read(reading, &table);
        let mode = table.word_or_default(reading, "mode", MODES);
        let interfaces = match table.value("interfaces") {
            None => Some(None),
            Some(_) => interfaces::interfaces(reading, &table).map(Some),
        };
        return Some(Level::Own {
            program: program?,
            mode: mode?,
            interfaces: interfaces?,
        });
    }
    let text = value.get_ref().as_str().unwrap_or_default();
    if let Some((_, built)) = PROGRAMS.iter().find(|(word, _)| *word == text) {
        return Some(Level::Built(*built));
    }
    if text.contains(['.', '/']) {
        return Some(Level::Own {
            program: ebpf::object(reading, value, what)?,
            mode: XdpMode::default(),
            interfaces: None,
        });
    }
    let names = || PROGRAMS.iter().map(|(word, _)| *word);
    let suggestion = reading.nearest(text, names());
    let expected = format!(
        "one of {}, an object file (\"v1.o\"), or a table",
        list(names())
    );
    let diagnostic = reading.expected(value, what, &expected);
    crate::diagnostic::suggest(diagnostic, suggestion);
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::errors;

    #[test]
    fn a_level_is_a_word_or_an_object() {
        for (level, allowed) in [
            ("\"off\"", true),
            ("\"fib\"", true),
            ("\"fob\"", false),
            ("\"v1.o\"", true),
            ("\"build/v1\"", true),
            ("\"\"", false),
            ("1", false),
            ("{ object = \"v1.o\" }", true),
            ("{ program = \"forward\" }", false),
            (
                "{ object = \"v1.o\", program = \"forward\", mode = \"generic\", interfaces = [\"dut-in\"] }",
                true,
            ),
            ("{ object = \"v1.o\", mode = \"skb\" }", false),
            ("{ object = \"v1.o\", interfaces = [] }", false),
            (
                "{ object = \"v1.o\", globals = { limit = 7, on = true, ports = [1, 2] } }",
                true,
            ),
            ("{ object = \"v1.o\", globals = { limit = \"7\" } }", false),
            (
                "{ object = \"v1.o\", maps = { routes = \"r.json\" } }",
                true,
            ),
            ("{ object = \"v1.o\", maps = { routes = 1 } }", false),
            (
                "{ object = \"v1.o\", max_entries = { routes = 1000 } }",
                true,
            ),
            ("{ object = \"v1.o\", max_entries = { routes = 0 } }", false),
            (
                "{ object = \"v1.o\", tail_calls = { jump = [\"one\", \"two\"] } }",
                true,
            ),
            (
                "{ object = \"v1.o\", tail_calls = { jump = \"one\" } }",
                false,
            ),
        ] {
            let errors = errors(&format!("xdp = {{ v1 = {level} }}"));
            assert_eq!(errors.is_empty(), allowed, "{level}\n{errors}");
        }
    }
}
