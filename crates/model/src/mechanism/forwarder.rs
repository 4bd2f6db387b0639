//! Forwarders in user space.

use serde_json::json;

use crate::binding::Binding;
use crate::document::{Reading, Value};
use crate::forwarder::{Forwarder, Forwards, Ready};
use crate::kind::LabKind;
use crate::placeholder::{self, LEVEL};
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
    let start = table
        .required(reading, "start")
        .and_then(|value| words_of(reading, value, &table.what("start")));
    let ready = table
        .required(reading, "ready")
        .and_then(|value| ready(reading, value, &table.what("ready")));
    let stop = match table.value("stop") {
        None => Some(None),
        Some(value) => words_of(reading, value, &table.what("stop")).map(Some),
    };
    let forwards = table.word_or_default(reading, "forwards", FORWARDS);
    Some(Some(Forwarder {
        start: start?,
        ready: ready?,
        stop: stop?,
        forwards: forwards?,
    }))
}

/// One of its programs, with its arguments.
fn words_of(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Vec<String>> {
    let example = r#"["./my-router", "{dut-in}", "{dut-out}"]"#;
    let words = command::words(reading, value, what, example)?;
    if words.first().is_none_or(String::is_empty) {
        reading
            .error(value.span(), format!("{what} names no program"))
            .with_help(format!(
                "the program comes first, its arguments follow: {example}"
            ));
        return None;
    }
    // Each level has words of its own, so that nothing stands for the level.
    let items = value.get_ref().as_array().into_iter().flatten();
    for (_, item) in words
        .iter()
        .zip(items)
        .filter(|(word, _)| word.contains(LEVEL))
    {
        let diagnostic = reading.error(item.span(), format!("unknown placeholder {LEVEL}"));
        placeholder::explain(diagnostic, LEVEL, placeholder::OF_FORWARDERS);
    }
    command::check_placeholders(reading, value, &words, placeholder::OF_FORWARDERS);
    Some(words)
}

/// How fwdlab knows that it forwards: a line of text, or a list.
fn ready(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Ready> {
    if value.get_ref().is_array() {
        return words_of(reading, value, what).map(Ready::Succeeds);
    }
    let is_line = |text: &&str| !text.trim().is_empty() && !text.chars().any(char::is_control);
    let Some(text) = value.get_ref().as_str().filter(is_line) else {
        let expected = "one line of text that it prints, or a list of a program that succeeds and its arguments";
        reading.expected(value, what, expected);
        return None;
    };
    Some(Ready::Prints(text.to_owned()))
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
            (
                "{ start = [\"a\"], ready = \"\" }",
                Some("or a list of a program that succeeds"),
            ),
            (
                "{ start = \"a b\", ready = \"on\" }",
                Some(
                    "no shell takes it apart: write [\"./my-router\", \"{dut-in}\", \"{dut-out}\"]",
                ),
            ),
            (
                "{ start = [], ready = \"on\" }",
                Some("the program comes first, its arguments follow"),
            ),
            (
                "{ start = [\"a\", \"{level}\"], ready = \"on\" }",
                Some("unknown placeholder {level}"),
            ),
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
