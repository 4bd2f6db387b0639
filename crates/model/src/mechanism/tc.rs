//! The owner's tc programs.

use serde_json::json;

use crate::binding::{Binding, OwnTcProgram, TcAttach, TcHook};
use crate::document::{Reading, Value};
use crate::kind::{LabKind, System};
use crate::schema_parts::{by_level, table, words};

use super::ebpf::{self, Named};
use super::{Binder, ByLevel, Description, Given, Levels, Meanings, Mechanism, levels};

const HOOKS: &[(&str, TcHook)] = &[("ingress", TcHook::Ingress), ("egress", TcHook::Egress)];

const ATTACHES: &[(&str, TcAttach)] = &[("clsact", TcAttach::Clsact), ("tcx", TcAttach::Tcx)];

/// What a binding of this mechanism sets.
pub(super) const SETS: &str = "the tc program";

const KEYS: &[&str] = &ebpf::keys_and(["hook", "attach"]);

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

/// What a level names.
#[derive(Debug)]
struct Level {
    program: Named,
    hook: TcHook,
    attach: TcAttach,
}

fn schema() -> serde_json::Value {
    let mut properties = ebpf::properties();
    properties["hook"] = words(
        "Which frames it is run for: those that come in at the DUT's receiving interface, by default, or those that go out at \
         the one that forwards.",
        HOOKS,
    );
    properties["attach"] = words(
        "What it is attached by: a filter of clsact, by default, or a tcx link (from Linux 6.6 on).",
        ATTACHES,
    );
    let program = table(json!({ "required": ["object"], "properties": properties }));
    by_level(
        "The eBPF object file of each level, relative to this file, whose tc program is attached to the ingress of the \
         DUT's receiving interface; a table says more of it; \"\" is none.",
        json!({ "anyOf": [{ "type": "string" }, program] }),
    )
}

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

fn bind(binder: &mut Binder<'_, '_>, levels: &Meanings<Option<Level>>) -> Binding {
    let levels = binder.levels(levels).into_iter();
    let programs = levels.filter_map(|(name, level)| match level {
        Some(level) => {
            let program = OwnTcProgram {
                program: ebpf::bind(binder, &level.program)?,
                hook: level.hook,
                attach: level.attach,
            };
            Some((name, Some(program)))
        }
        None => Some((name, None)),
    });
    Binding::Tc(programs.collect())
}

/// What a level names; empty text is no program.
fn level(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
    keys: &'static [&'static str],
) -> Option<Option<Level>> {
    if value.get_ref().as_str() == Some("") {
        return Some(None);
    }
    if !value.get_ref().is_table() {
        return Some(Some(Level {
            program: ebpf::object(reading, value, what)?,
            hook: TcHook::default(),
            attach: TcAttach::default(),
        }));
    }
    let table = reading.table(value, what, keys)?;
    let program = ebpf::read(reading, &table);
    let hook = table.word_or_default(reading, "hook", HOOKS);
    let attach = table.word_or_default(reading, "attach", ATTACHES);
    Some(Some(Level {
        program: program?,
        hook: hook?,
        attach: attach?,
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
            ("{ object = \"a.o\" }", true),
            ("{ object = \"a.o\", program = \"a/b\" }", false),
            (
                "{ object = \"a.o\", program = \"a\", section = \"b\" }",
                false,
            ),
            ("\"a.o\"", true),
            ("1", false),
            (
                "{ object = \"a.o\", hook = \"egress\", attach = \"tcx\" }",
                true,
            ),
            ("{ object = \"a.o\", hook = \"out\" }", false),
            ("{ object = \"a.o\", attach = \"netlink\" }", false),
        ] {
            let errors = errors(&format!("tc = {{ v1 = {level} }}"));
            assert_eq!(errors.is_empty(), allowed, "{level}\n{errors}");
        }
    }
}
