//! The JSON Schemas take what the parser takes, and what is shipped.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fwdlab_model::{load, schema};
use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};

const EXPERIMENT: &str = include_str!("everything/experiment.toml");
const LAB: &str = include_str!("everything/lab.toml");
const KNOBS: &str = include_str!("everything/knobs.toml");
const ROUTER: &str = include_str!("everything/router.toml");
const FREEBSD: &str = include_str!("everything/freebsd.toml");
const LINUX: &str = include_str!("everything/linux.toml");
const TRAFFICS: &str = "question = \"q\"\n[[factor]]\nname = \"f\"\nlevels = [0]\n\
    [[traffic]]\nname = \"few\"\nsources = 1\n[[traffic]]\nname = \"imix\"\n";

/// The schema of experiment files, with what it refers to in its places.
fn experiment_schema() -> Value {
    let mut schema = schema::experiment();
    let definitions = schema.as_object_mut().unwrap().remove("$defs").unwrap();
    put_in_place(&mut schema, &definitions);
    schema
}

/// Puts what each `$ref` names in its place.
fn put_in_place(schema: &mut Value, definitions: &Value) {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let name = reference.map(|reference| reference.strip_prefix("#/$defs/").unwrap());
    if let Some(definition) = name.map(|name| definitions[name].clone()) {
        *schema = definition;
    }
    match schema {
        Value::Object(entries) => {
            for entry in entries.values_mut() {
                put_in_place(entry, definitions);
            }
        }
        Value::Array(items) => {
            for item in items {
                put_in_place(item, definitions);
            }
        }
        _ => {}
    }
}

/// What a schema finds wrong with a value, each with its place.
///
/// It knows the keywords that the two schemas use and no others.
fn problems(schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, expected) in schema.as_object().unwrap() {
        let holds = match keyword.as_str() {
            "$schema" | "title" | "description" | "examples" => true,
            "type" => is_of_type(expected, value),
            "const" => value == expected,
            "enum" => expected.as_array().unwrap().contains(value),
            "minimum" => value
                .as_f64()
                .is_none_or(|number| number >= expected.as_f64().unwrap()),
            "maximum" => value
                .as_f64()
                .is_none_or(|number| number <= expected.as_f64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| {
                let pattern = Regex::new(expected.as_str().unwrap()).unwrap();
                pattern.is_match(text)
            }),
            "minItems" => items(value).is_none_or(|items| items.len() >= count(expected)),
            "maxItems" => items(value).is_none_or(|items| items.len() <= count(expected)),
            "uniqueItems" => items(value).is_none_or(|items| {
                let mut places = (1..items.len()).map(|place| items.split_at(place));
                places.all(|(before, from)| !before.contains(&from[0]))
            }),
            "items" => {
                for (index, item) in items(value).into_iter().flatten().enumerate() {
                    found.extend(problems(expected, item, &format!("{place}/{index}")));
                }
                true
            }
            "if" => {
                let branch = match problems(expected, value, place).is_empty() {
                    true => "then",
                    false => "else",
                };
                found.extend(problems(&schema[branch], value, place));
                true
            }
            "then" | "else" => schema.get("if").is_some(),
            "minProperties" => keys(value).is_none_or(|keys| keys.len() >= count(expected)),
            "maxProperties" => keys(value).is_none_or(|keys| keys.len() <= count(expected)),
            "required" => keys(value).is_none_or(|keys| {
                let mut required = expected.as_array().unwrap().iter();
                required.all(|key| keys.contains_key(key.as_str().unwrap()))
            }),
            "properties" => {
                for (key, value) in keys(value).into_iter().flatten() {
                    if let Some(schema) = expected.get(key) {
                        found.extend(problems(schema, value, &format!("{place}/{key}")));
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = schema.get("properties").unwrap_or(&Value::Null);
                let others = keys(value).into_iter().flatten();
                for (key, value) in others.filter(|(key, _)| known.get(key).is_none()) {
                    let place = format!("{place}/{key}");
                    if expected == &json!(false) {
                        found.push(format!("{place}: no such key"));
                    } else {
                        found.extend(problems(expected, value, &place));
                    }
                }
                true
            }
            "anyOf" => fitting(expected, value) > 0,
            "oneOf" => fitting(expected, value) == 1,
            other => panic!("no such keyword is known here: {other}"),
        };
        if !holds {
            found.push(format!("{place}: {value} against {keyword} {expected}"));
        }
    }
    found
}

fn is_of_type(expected: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("no such type is known here: {other}"),
    };
    match expected {
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    }
}

fn items(value: &Value) -> Option<&Vec<Value>> {
    value.as_array()
}

fn keys(value: &Value) -> Option<&serde_json::Map<String, Value>> {
    value.as_object()
}

fn count(expected: &Value) -> usize {
    usize::try_from(expected.as_u64().unwrap()).unwrap()
}

fn fitting(schemas: &Value, value: &Value) -> usize {
    let schemas = schemas.as_array().unwrap().iter();
    schemas
        .filter(|schema| problems(schema, value, "").is_empty())
        .count()
}

/// A TOML file as JSON; none where it holds what JSON cannot.
fn as_json(text: &str) -> Option<Value> {
    toml::from_str(text).ok()
}

fn toml_files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let mut folders = vec![root];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                files.push(path);
            }
        }
    }
    files
}

#[test]
fn what_is_shipped_fits_its_schema() {
    for (folder, schema) in [
        ("experiments", experiment_schema()),
        ("labs", schema::lab()),
    ] {
        let files = toml_files(folder);
        assert!(!files.is_empty());
        for path in files {
            let value = as_json(&fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(problems(&schema, &value, ""), [""; 0], "{}", path.display());
        }
    }
}

#[test]
fn every_key_fits_its_schema() {
    for (text, schema) in [
        (EXPERIMENT, experiment_schema()),
        (KNOBS, experiment_schema()),
        (LAB, schema::lab()),
        (ROUTER, schema::lab()),
        (FREEBSD, schema::lab()),
        (LINUX, schema::lab()),
        (TRAFFICS, experiment_schema()),
    ] {
        assert_eq!(problems(&schema, &as_json(text).unwrap(), ""), [""; 0]);
    }
}

#[test]
fn what_is_wrong_does_not_fit() {
    for (text, from, to, place) in [
        (
            EXPERIMENT,
            "question =",
            "questoin =",
            "/questoin: no such key",
        ),
        (EXPERIMENT, "blocks = 8", "blocks = 1", "/design/blocks: 1"),
        (EXPERIMENT, "share = 3", "share = 0", "/traffic/frame_size"),
        (
            EXPERIMENT,
            "direction = \"both\"",
            "direction = \"back\"",
            "/traffic/direction",
        ),
        (
            EXPERIMENT,
            "load = { line_rate_percent = 12.5 }",
            "load = {}",
            "/traffic/load",
        ),
        (
            EXPERIMENT,
            "levels = { rp_filter = \"strict\", \"forwarding path\" = \"XDP\" }",
            "levels = {}",
            "/exclude/0/levels",
        ),
        (TRAFFICS, "\"imix\"", "\"I mix\"", "/traffic/1/name"),
        (TRAFFICS, "sources = 1", "sources = 0", "/traffic/0/sources"),
        (LAB, "kind = \"netns\"", "", "against required"),
        (
            LAB,
            "routes = true",
            "routes = true\nxdp = {}",
            "/bind/routes",
        ),
        (
            LAB,
            "[\"dut-in\"]",
            "[\"eth0\"]",
            "/bind/threaded NAPI/sysfs/interfaces/0",
        ),
        (EXPERIMENT, "MTU = 1500", "MTU = 1.5", "/settings/MTU"),
        (ROUTER, "queues = 2", "queues = 0", "/router/queues"),
        (
            ROUTER,
            "knob = \"l2_prepend\"",
            "knob = \"l3_prepend\"",
            "/bind/l2_prepend/knob",
        ),
        (
            FREEBSD,
            "\"n277567\"",
            "277567",
            "/bind/l2_prepend/kernel/0",
        ),
        (LINUX, "cpu = 3", "cpu = -3", "/tester/cpu"),
        (LINUX, "in = \"eth2\"", "on = \"eth2\"", "/tester"),
    ] {
        assert!(text.contains(from), "{from}");
        let schema = if [EXPERIMENT, TRAFFICS].contains(&text) {
            experiment_schema()
        } else {
            schema::lab()
        };
        let value = as_json(&text.replacen(from, to, 1)).unwrap();
        let problems = problems(&schema, &value, "");
        assert!(
            problems.iter().any(|problem| problem.contains(place)),
            "{to}: {problems:?}"
        );
    }
}

/// A text with one stretch of it replaced.
fn spliced(text: &str, at: usize, length: usize, with: &str) -> String {
    let start = text.floor_char_boundary(at % (text.len() + 1));
    let end = text.floor_char_boundary((start + length).min(text.len()));
    [&text[..start], with, &text[end..]].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// An editor never marks what a run would take.
    #[test]
    fn what_the_parser_takes_fits_the_schema(
        of_kind in 0..4_usize,
        in_lab in any::<bool>(),
        at in any::<usize>(),
        length in 0..12_usize,
        with in "([\\[\\]{}=\"'., 0-9-]|imix|levels|true|lab){0,3}",
    ) {
        let (experiment, lab) = [
            (EXPERIMENT, LAB),
            (KNOBS, ROUTER),
            (KNOBS, FREEBSD),
            (KNOBS, LINUX),
        ][of_kind];
        let (mut experiment, mut lab) = (experiment.to_owned(), lab.to_owned());
        let changed = if in_lab { &mut lab } else { &mut experiment };
        *changed = spliced(changed, at, length, &with);
        let files: BTreeMap<&Path, &str> = [
            (Path::new("experiment.toml"), experiment.as_str()),
            (Path::new("lab.toml"), lab.as_str()),
            (Path::new("rules.nft"), "table inet t { }\n"),
            (Path::new("old.pps"), "1000000\n1200000.5\n"),
        ]
        .into();
        let read = |path: &Path| {
            let text = files.get(path).map(|text| (*text).to_owned());
            text.ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        if load(Path::new("experiment.toml"), Some(Path::new("lab.toml")), &read, 1).is_ok() {
            for (text, schema) in [(&experiment, experiment_schema()), (&lab, schema::lab())] {
                if let Some(value) = as_json(text) {
                    prop_assert_eq!(problems(&schema, &value, ""), [""; 0], "{}", text);
                }
            }
        }
    }
}
