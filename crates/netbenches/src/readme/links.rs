//! Links and images.

use std::ops::Range;

/// A link or an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Where it stands.
    pub line: usize,
    /// What is shown for it.
    pub text: String,
    /// What it leads to, as written.
    pub target: String,
    /// Whether it is shown in place (`![`).
    pub is_image: bool,
}

impl Link {
    /// The file it leads to, relative to the README's folder; none for what leads to another site, to
    /// a place in the README itself, or to nothing.
    pub fn file(&self) -> Option<&str> {
        let target = self.target.split(['#', '?']).next()?;
        let scheme = target.split_once(':').map(|(scheme, _)| scheme);
        let has_scheme = scheme.is_some_and(|scheme| {
            scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        (!target.is_empty() && !has_scheme && !target.starts_with("//")).then_some(target)
    }

    /// The name of that file.
    pub fn file_name(&self) -> Option<&str> {
        self.file()?
            .rsplit('/')
            .next()
            .filter(|name| !name.is_empty())
    }
}

/// No address is longer: what has no end is not searched for it to the end of the line.
const TARGET_BYTES_MAX: usize = 1024;

/// `[name]: address`, on a line of its own.
pub(super) struct Reference {
    name: String,
    target: String,
}

impl Reference {
    pub(super) fn of_line(line: &str) -> Option<Self> {
        let (name, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
        let target = target.split_whitespace().next()?;
        let is_reference = !name.is_empty() && !name.contains(['[', ']']);
        is_reference.then(|| Self {
            name: name.to_lowercase(),
            target: target.trim_matches(['<', '>']).to_owned(),
        })
    }
}

/// A reference that was not looked up yet begins with this in place of an address.
const UNRESOLVED: char = '\0';

/// Appends the links of a line, in the order they begin in.
pub(super) fn read(line: usize, text: &str, links: &mut Vec<Link>) {
    let mut found: Vec<(usize, Link)> = Vec::new();
    scan(text, |start, words, target, is_image| {
        let text = text[words].trim().to_owned();
        found.push((
            start,
            Link {
                line,
                text,
                target,
                is_image,
            },
        ));
    });
    found.sort_by_key(|(start, _)| *start);
    links.extend(found.into_iter().map(|(_, link)| link));
}

/// A line without its addresses: what of it is shown, more or less.
pub(super) fn without_targets(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("](") {
        let (before, behind) = rest.split_at(start + 1);
        visible.push_str(before);
        let length = target(behind).map_or(1, |(_, length)| length);
        visible.push(' ');
        rest = &behind[length..];
    }
    visible.push_str(rest);
    visible
}

/// Puts the addresses in; links to what no line defines are none.
pub(super) fn resolve(references: &[Reference], links: &mut Vec<Link>) {
    links.retain_mut(|link| {
        let Some(name) = link.target.strip_prefix(UNRESOLVED) else {
            return true;
        };
        let reference = references.iter().find(|reference| reference.name == name);
        if let Some(reference) = reference {
            link.target.clone_from(&reference.target);
        }
        reference.is_some()
    });
}

/// Calls `found` with the start, the range of the text, the target and whether it is an image.
fn scan(text: &str, mut found: impl FnMut(usize, Range<usize>, String, bool)) {
    if !text.contains(['[', '<']) {
        return;
    }
    let bytes = text.as_bytes();
    // Open brackets: where they stand.
    let mut open: Vec<usize> = Vec::new();
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'\\' => index += 1,
            b'`' => index = code_end(bytes, index),
            b'[' => open.push(index),
            b']' => {
                if let Some(start) = open.pop()
                    && let Some((address, length)) =
                        address(&text[start + 1..index], &text[index + 1..])
                {
                    let is_image = start > 0 && bytes[start - 1] == b'!';
                    found(start, start + 1..index, address, is_image);
                    index += length;
                }
            }
            b'<' => {
                let end = text[index..].char_indices().take(TARGET_BYTES_MAX);
                let end = end.take_while(|(_, character)| !character.is_whitespace());
                let end = end.into_iter().find(|(_, character)| *character == '>');
                if let Some((length, _)) = end
                    && text[index + 1..index + length].contains("://")
                {
                    let target = text[index + 1..index + length].to_owned();
                    found(index, index + 1..index + length, target, false);
                    index += length;
                }
            }
            _ => {}
        }
        index += 1;
    }
}

/// The index of the last backtick of the code that begins at `start`, or of the run that begins it.
fn code_end(bytes: &[u8], start: usize) -> usize {
    let run = |at: usize| bytes[at..].iter().take_while(|byte| **byte == b'`').count();
    let length = run(start);
    let mut index = start + length;
    // Code without an end begins nowhere; it is looked for once a line at most, near by.
    let limit = bytes.len().min(index + TARGET_BYTES_MAX);
    while index < limit {
        match run(index) {
            0 => index += 1,
            found if found == length => return index + found - 1,
            found => index += found,
        }
    }
    start + length - 1
}

/// The address behind a bracket that holds `words`, and how long its text is.
fn address(words: &str, behind: &str) -> Option<(String, usize)> {
    if let Some(found) = target(behind) {
        return Some(found);
    }
    let name = |name: &str| format!("{UNRESOLVED}{}", name.to_lowercase());
    let rest = behind.strip_prefix('[')?;
    let end = rest
        .bytes()
        .take(TARGET_BYTES_MAX)
        .position(|byte| byte == b']')?;
    let given = if end == 0 { words } else { &rest[..end] };
    Some((name(given), end + 2))
}

/// The address of `(address "title")`, and how long its text is.
fn target(behind: &str) -> Option<(String, usize)> {
    let inner = behind.strip_prefix('(')?;
    let mut depth = 0_usize;
    let end = inner
        .bytes()
        .take(TARGET_BYTES_MAX)
        .position(|byte| match byte {
            b'(' => {
                depth += 1;
                false
            }
            b')' if depth == 0 => true,
            b')' => {
                depth -= 1;
                false
            }
            _ => false,
        })?;
    let address = inner[..end].trim();
    let address = match address
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'))
    {
        Some((address, _)) => address,
        None => address.split([' ', '\t']).next().unwrap_or_default(),
    };
    Some((address.to_owned(), end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(text: &str) -> Vec<(String, String, bool)> {
        let mut links = Vec::new();
        read(1, text, &mut links);
        let plain = links.into_iter();
        plain
            .map(|link| (link.text, link.target, link.is_image))
            .collect()
    }

    fn one(text: &str, target: &str, is_image: bool) -> (String, String, bool) {
        (text.to_owned(), target.to_owned(), is_image)
    }

    #[test]
    fn links_and_images_are_told_apart() {
        assert_eq!(
            links("a [b c](d.svg) ![e](f.png) <https://g/h>"),
            [
                one("b c", "d.svg", false),
                one("e", "f.png", true),
                one("https://g/h", "https://g/h", false),
            ]
        );
        assert_eq!(
            links("[![a](b)](c)"),
            [one("![a](b)", "c", false), one("a", "b", true)]
        );
    }

    #[test]
    fn an_address_may_hold_brackets_and_be_followed_by_a_title() {
        assert_eq!(links("[a](b_(c).md \"d\")"), [one("a", "b_(c).md", false)]);
        assert_eq!(links("[a](<b c> 'd')"), [one("a", "b c", false)]);
        assert_eq!(links("[a]()"), [one("a", "", false)]);
    }

    #[test]
    fn what_only_looks_like_a_link_is_none() {
        for text in [
            "[a] (b)",
            "[a]",
            "[a](b",
            "`[a](b)`",
            "``[a](b) ` ``",
            "\\[a](b)",
            "a](b)",
            "1 < 2 > 0",
        ] {
            assert_eq!(links(text), [], "{text}");
        }
        assert_eq!(links("` [a](b)"), [one("a", "b", false)]);
    }

    #[test]
    fn references_are_looked_up() {
        let mut links = Vec::new();
        read(1, "[a][One] [two][] [three][]", &mut links);
        let references = ["[one]: x.md 'title'", "  [Two]: <y.md>"];
        let references: Vec<Reference> = references
            .iter()
            .filter_map(|line| Reference::of_line(line))
            .collect();
        resolve(&references, &mut links);
        let targets: Vec<&str> = links.iter().map(|link| link.target.as_str()).collect();
        assert_eq!(targets, ["x.md", "y.md"]);
        assert!(Reference::of_line("[a] b").is_none());
    }

    #[test]
    fn only_what_lies_in_the_archive_is_a_file() {
        let file = |target: &str| {
            let target = target.to_owned();
            let link = Link {
                target,
                ..Link::default()
            };
            link.file().map(str::to_owned)
        };
        assert_eq!(file("../a/b.svg#c").as_deref(), Some("../a/b.svg"));
        for none in ["https://a/b", "mailto:a", "//a/b", "#a", ""] {
            assert_eq!(file(none), None, "{none}");
        }
    }

    #[test]
    fn hostile_lines_take_no_longer_than_others() {
        for text in ["[", "](", "[](", "`", "<", "![[", "[a]["] {
            let text = text.repeat(50_000);
            read(1, &text, &mut Vec::new());
            without_targets(&text);
        }
    }
}
