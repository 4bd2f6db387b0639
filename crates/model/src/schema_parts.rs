//! What JSON Schemas of the files are put together from.

use serde_json::{Value, json};

/// A table of fixed keys, which `schema` lists as its properties.
pub(crate) fn table(mut schema: Value) -> Value {
    schema["type"] = json!("object");
    schema["additionalProperties"] = json!(false);
    schema
}

/// One line of text.
pub(crate) fn line(description: &str) -> Value {
    json!({ "description": description, "type": "string", "pattern": r"\S" })
}

/// One of some words.
pub(crate) fn words<T>(description: &str, words: &[(&str, T)]) -> Value {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    json!({ "description": description, "enum": words })
}

/// A table from levels to what each of them means.
pub(crate) fn by_level(what: &str, meaning: Value) -> Value {
    json!({ "description": what, "type": "object", "additionalProperties": meaning })
}

/// A program and its arguments.
pub(crate) fn program(what: &str) -> Value {
    json!({
        "description": what,
        "type": "array",
        "items": { "type": "string" },
        "minItems": 1,
    })
}
