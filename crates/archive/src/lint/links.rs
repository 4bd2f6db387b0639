//! Links of a README to files beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use crate::layout;

use super::{BROKEN_LINK, Finding};

/// Links of README.md to files of the same directory that are not there.
pub(super) fn lint_links(
    directory: &Path,
    published: &BTreeMap<String, Vec<u8>>,
    findings: &mut Vec<Finding>,
) {
    let Some(readme) = published.get(layout::README) else {
        return;
    };
    let path = directory.join(layout::README);
    let has_derived = fs::metadata(directory.join(layout::DERIVED)).is_ok();
    // Where the whole folder is gone, that is one finding.
    let mut is_said = false;
    for (index, line) in String::from_utf8_lossy(readme).lines().enumerate() {
        for target in targets(line) {
            let inside = target.split('#').next().unwrap_or_default();
            if is_inside(inside) && fs::metadata(directory.join(inside)).is_err() {
                let sentence = if !has_derived && Path::new(inside).starts_with(layout::DERIVED) {
                    if std::mem::replace(&mut is_said, true) {
                        continue;
                    }
                    "README.md shows files of derived/, which is not there".to_owned()
                } else {
                    format!("README.md shows {inside}, which is not there")
                };
                let finding = Finding::new(&BROKEN_LINK, directory, sentence);
                findings.push(finding.published_at(&path, index + 1, target));
            }
        }
    }
}

/// What the links and pictures in a line of Markdown lead to, those in code left out.
fn targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for (index, part) in line.split('`').enumerate() {
        let is_code = index % 2 == 1;
        for (at, _) in part.match_indices("](").filter(|_| !is_code) {
            let is_escaped = part[..at].ends_with('\\');
            let target = part[at + 2..].split([')', ' ']).next();
            targets.extend(target.filter(|_| !is_escaped));
        }
    }
    targets
}

/// Whether a link leads to a file of the same directory: no address, and no way out.
fn is_inside(target: &str) -> bool {
    let is_address = target.contains(':');
    let mut parts = Path::new(target).components();
    !target.is_empty() && !is_address && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_where_markdown_shows_them() {
        for (line, expected) in [
            (
                "![All trials](derived/trials.svg)",
                &["derived/trials.svg"][..],
            ),
            ("[a](b) and [c](d#e \"title\")", &["b", "d#e"]),
            ("code `[a](b)` and [c](d)", &["d"]),
            (r"a label: \[x\](y)", &[]),
            ("no link (at all)", &[]),
        ] {
            assert_eq!(targets(line), expected, "{line}");
        }
        for (target, expected) in [
            ("derived/trials.svg", true),
            ("https://example.org/x", false),
            ("../other/README.md", false),
            ("/etc/passwd", false),
            ("", false),
        ] {
            assert_eq!(is_inside(target), expected, "{target}");
        }
    }
}
