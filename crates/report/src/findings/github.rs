//! Findings as workflow commands of GitHub Actions, which shows them at their lines.

use std::fmt::Write as _;

use fwdlab_archive::lint::{Finding, Severity};

use crate::text::visible;

use super::message;

/// What `fwdlab lint --github` prints: a workflow command a finding.
///
/// # Source
/// GitHub, "Workflow commands for GitHub Actions"; the escapes are those of its toolkit's `command.ts`.
#[must_use]
pub fn github(findings: &[&Finding]) -> String {
    let mut commands = String::new();
    for finding in findings {
        let command = match finding.rule.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let place = finding.evidence.first();
        let path = place.map_or(&finding.directory, |evidence| &evidence.path);
        let line = place
            .and_then(|evidence| evidence.line)
            .map_or_else(String::new, |line| format!(",line={line}"));
        let _ = writeln!(
            commands,
            "::{command} file={}{line},title={}::{}",
            property(&path.to_string_lossy()),
            property(&format!("{} {}", finding.rule.code, finding.rule.name)),
            data(&message(finding))
        );
    }
    commands
}

/// A text as the value of a property: what ends it is escaped, what acts otherwise is made visible.
fn property(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '%' => escaped += "%25",
            '\r' => escaped += "%0D",
            '\n' => escaped += "%0A",
            ':' => escaped += "%3A",
            ',' => escaped += "%2C",
            character => escaped.push(visible(character)),
        }
    }
    escaped
}

/// A text as the message, which is one line already.
fn data(line: &str) -> String {
    line.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_path_ends_the_command() {
        assert_eq!(
            property("a,b:c%d\n::error::x\r\u{1b}\u{202e}"),
            "a%2Cb%3Ac%25d%0A%3A%3Aerror%3A%3Ax%0D\u{fffd}\u{fffd}"
        );
        assert_eq!(data("50 % of it"), "50 %25 of it");
    }
}
