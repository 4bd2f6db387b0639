//! Forwarders in user space.

use serde_json::json;

use crate::binding::Binding;
use crate::document::{Reading, Value};
use crate::forwarder::{Forwarder, Forwards, Ready};
use crate::kind::LabKind;
use crate::placeholder;
use crate::schema_parts::{by_level, line, program, table, words};

use super::{ByLevel, Description, Given, Levels, Meanings, Mechanism, command, levels};

const KEYS: &[&str] = &["start", "ready", "stop", "forwards"];

const FORWARDS: &[(&str, Forwards)] = &[
    ("routed", Forwards::Routed),
    ("mac", Forwards::Mac),
    ("unchanged", Forwards::Unchanged),
];

pub(super) const FORWARDER: Description = Description {
    key: "forwarder",
    what: "a forwarder in user space",
    levels: Levels::Tables,
    kinds: &[LabKind::Netns],
    takes_values: false,
    table: Some((KEYS, "/additionalProperties")),
    read,
    schema,
};

fn schema() -> serde_json::Value {
    let ready =
        "How fwdlab knows that it forwards: a text that it prints, or a program that succeeds.";
    let level = table(json!({
        "properties": {
            "start": program("Runs until it is ended."),
            "ready": { "description": ready, "anyOf": [line("It prints this."), program("It succeeds.")] },
            "stop": program("Ends it; without, SIGTERM does."),
            "forwards": words(
                "What comes out: a routed frame, by default; the same packet with new MAC addresses; or the frame as it \
                 came in.",
                FORWARDS,
            ),
        },
    }));
    by_level(
        "The program of each level that forwards in place of the DUT's kernel; an empty table is the kernel. {dut-in} and \
         {dut-out} stand for the DUT's interfaces, {dut-in-peer} and {dut-out-peer} for the MAC addresses that frames are \
         sent to from there, {dut-cpu} for the CPU of its forwarding thread, {load-cpu} for that of its other threads.",
        level,
    )
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let level = |reading: &mut Reading<'_>, value: &Value<'_>, what: &str| {
        level(reading, value, what, given.keys)
    };
    Some(Box::new(ByLevel {
        meanings: levels(reading, given.value, given.what, level),
        bind: |binder, levels: &Meanings<Option<Forwarder>>| {
            Binding::Forwarder(binder.meanings(levels))
        },
        // Either may have its own where a forwarder has put one.
        sets: &["the forwarder", super::xdp::SETS, super::tc::SETS],
    }))
}

/// A level's forwarder; an empty table is the kernel.
fn level(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
    keys: &'static [&'static str],
) -> Option<Option<Forwarder>> {
    let table = reading.table(value, what, keys)?;
    if table.is_empty() {
        return Some(None);
    }
    let words = |reading: &mut Reading<'_>, value: &Value<'_>, what: &str| {
        command::program_with(reading, value, what, placeholder::OF_FORWARDERS)
    };
    let start = table
        .required(reading, "start")
        .and_then(|value| words(reading, value, &table.what("start")));
    let ready = table.required(reading, "ready").and_then(|value| {
        let what = table.what("ready");
        if value.get_ref().is_array() {
            return words(reading, value, &what).map(Ready::Succeeds);
        }
        let text = reading.line(value, &what)?;
        Some(Ready::Prints(text.into_inner()))
    });
    let stop = match table.value("stop") {
        None => Some(None),
        Some(value) => words(reading, value, &table.what("stop")).map(Some),
    };
    let forwards = table.word_or_default(reading, "forwards", FORWARDS);
    Some(Some(Forwarder {
        start: start?,
        ready: ready?,
        stop: stop?,
        forwards: forwards?,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors, errors_in};

    #[test]
    fn a_level_is_the_kernel_or_a_program_and_what_tells_that_it_forwards() {
        for (level, wrong) in [
            ("{}", None),
            ("{ start = [\"a\"], ready = \"on\" }", None),
            (
                "{ start = [\"a\", \"{dut-in}:{dut-out-peer}:{dut-cpu}\"], ready = [\"b\", \"{load-cpu}\"], stop = [\"c\"], \
                 forwards = \"mac\" }",
                None,
            ),
            ("{ start = [\"a\"] }", Some("ready")),
            ("{ ready = \"on\" }", Some("start")),
            ("{ start = [\"a\"], ready = \"\" }", Some("ready")),
            (
                "{ start = \"a b\", ready = \"on\" }",
                Some("no shell takes it apart"),
            ),
            ("{ start = [], ready = \"on\" }", Some("names no program")),
            (
                "{ start = [\"a\", \"{dut-cpus}\"], ready = \"on\" }",
                Some("unknown placeholder {dut-cpus}"),
            ),
            (
                "{ start = [\"a\"], ready = \"on\", forwards = \"bridged\" }",
                Some("routed"),
            ),
            (
                "{ start = [\"a\"], ready = \"on\", cpus = [1] }",
                Some("cpus"),
            ),
            ("\"a.o\"", Some("a table")),
        ] {
            let errors = errors(&format!("forwarder = {{ v1 = {level} }}"));
            match wrong {
                None => assert_eq!(errors, "", "{level}"),
                Some(wrong) => assert!(errors.contains(wrong), "{level}\n{errors}"),
            }
        }
        let of_hosts = errors_in("linux-ssh", "forwarder = { v1 = {} }");
        assert!(
            of_hosts.contains("sets nothing by `forwarder`"),
            "{of_hosts}"
        );
    }
}
