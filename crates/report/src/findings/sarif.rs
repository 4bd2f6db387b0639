//! Findings as SARIF 2.1.0, which code hosts and editors show.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use fwdlab_archive::lint::{Finding, Rule};
use serde_json::{Value, json};

use crate::error::ReportError;
use crate::json::pretty;
use crate::text::{inert, one_line};

use super::baseline::Compared;
use super::excerpt;
use super::rules::rules;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// What `fwdlab lint --sarif` prints: a log of SARIF 2.1.0.
///
/// # Errors
/// [`ReportError::Json`].
///
/// # Source
/// OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0 Plus Errata 01".
pub fn sarif(findings: &[Finding], compared: Option<&Compared>) -> Result<String, ReportError> {
    let rules = rules();
    let results = findings.iter().enumerate().map(|(number, finding)| {
        let mut result = result(finding, &rules);
        if let Some(compared) = compared {
            let is_known = compared.is_known[number];
            result["baselineState"] = json!(if is_known { "unchanged" } else { "new" });
        }
        result
    });
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "fwdlab",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| descriptor(rule)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    });
    Ok(inert(&pretty(&log)?, false).into_owned())
}

fn descriptor(rule: &Rule) -> Value {
    json!({
        "id": rule.code,
        "name": rule.name,
        "shortDescription": { "text": rule.finds },
        "fullDescription": { "text": format!("{}: {}", rule.finds, rule.matters) },
        "help": { "text": rule.help },
        "defaultConfiguration": { "level": rule.severity.as_str() },
    })
}

/// The first piece of evidence is where the finding is shown, the others are related to it.
fn result(finding: &Finding, rules: &[&Rule]) -> Value {
    let place = finding.evidence.first();
    let path = place.map_or(&finding.directory, |evidence| &evidence.path);
    let location = location(path, place.and_then(|evidence| evidence.line));
    let mut result = json!({
        "ruleId": finding.rule.code,
        "ruleIndex": rules.iter().position(|rule| *rule == finding.rule),
        "level": finding.rule.severity.as_str(),
        "message": { "text": super::message(finding) },
        "locations": [location],
    });
    let related: Vec<Value> = (finding.evidence.iter().enumerate().skip(1))
        .map(|(id, evidence)| {
            let mut location = self::location(&evidence.path, evidence.line);
            location["id"] = json!(id);
            let text = format!("{}: {}", evidence.side.as_str(), excerpt(&evidence.says));
            location["message"] = json!({ "text": one_line(&text) });
            location
        })
        .collect();
    if !related.is_empty() {
        result["relatedLocations"] = Value::Array(related);
    }
    result
}

fn location(path: &Path, line: Option<usize>) -> Value {
    let mut physical = json!({ "artifactLocation": { "uri": uri(path) } });
    if let Some(line) = line {
        physical["region"] = json!({ "startLine": line });
    }
    json!({ "physicalLocation": physical })
}

/// A path as a URI reference: relative where the path is, and every byte that is not plain escaped.
fn uri(path: &Path) -> String {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::RootDir => parts.push("file://".to_owned()),
            Component::CurDir | Component::Prefix(_) => {}
            Component::ParentDir => parts.push("..".to_owned()),
            Component::Normal(name) => parts.push(encoded(name.as_bytes())),
        }
    }
    if parts.is_empty() {
        parts.push(".".to_owned());
    }
    parts.join("/")
}

fn encoded(bytes: &[u8]) -> String {
    let mut encoded = String::new();
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_uri_that_no_name_can_leave() {
        for (path, expected) in [
            ("results/a b/x.pps", "results/a%20b/x.pps"),
            ("./results/x", "results/x"),
            ("../x", "../x"),
            ("/srv/x", "file:///srv/x"),
            ("http:/x", "http%3A/x"),
            ("a\n%2e\u{202e}", "a%0A%252e%E2%80%AE"),
            (".", "."),
        ] {
            assert_eq!(uri(Path::new(path)), expected);
        }
    }
}
