//! Relative links in Markdown that lead nowhere.

use std::path::{Component, Path, PathBuf};

use super::text::Fence;

/// Every relative link of a document whose file is missing, or whose heading is.
///
/// Shape: `path` and what `read` is asked for are from the root of the repository; `read` gives a
/// file's text, for a folder nothing, and `None` where there is neither.
pub(super) fn problems(
    path: &str,
    content: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let mut fence = Fence::default();
    let mut problems = Vec::new();
    for (index, line) in content.lines().enumerate() {
        if fence.holds(line) {
            continue;
        }
        for target in targets(&without_code(line)) {
            if !leads_somewhere(target, path, content, folder, read) {
                problems.push(format!("{path}:{}: {target} leads nowhere", index + 1));
            }
        }
    }
    problems
}

fn leads_somewhere(
    target: &str,
    path: &str,
    content: &str,
    folder: &Path,
    read: &dyn Fn(&Path) -> Option<String>,
) -> bool {
    let (file, heading) = match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (target, None),
    };
    let text = if file.is_empty() {
        Some(content.to_owned())
    } else {
        normal(&folder.join(file)).and_then(|file| read(&file))
    };
    let is_document = file.ends_with(".md") || (file.is_empty() && path.ends_with(".md"));
    match (text, heading) {
        (Some(text), Some(heading)) if is_document => {
            anchors(&text).any(|anchor| anchor == heading)
        }
        (text, _) => text.is_some(),
    }
}

/// The targets of a line's links that are not addresses: `[..](target)` and `[..]: target`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let inline = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next());
    let definition = line
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .and_then(|(_, rest)| rest.split_whitespace().next());
    inline.chain(definition).filter(|target| {
        !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")
    })
}

/// A line without what stands between backquotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// A path without `.` and `..`; nothing where it leads out of the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}

/// The anchors that a forge gives a document's headings.
fn anchors(content: &str) -> impl Iterator<Item = String> {
    let mut fence = Fence::default();
    content
        .lines()
        .filter(move |line| !fence.holds(line))
        .filter_map(|line| {
            let heading = line
                .strip_prefix('#')?
                .trim_start_matches('#')
                .strip_prefix(' ')?;
            Some(
                heading
                    .trim()
                    .to_lowercase()
                    .chars()
                    .filter(|char| char.is_alphanumeric() || " -_".contains(*char))
                    .map(|char| if char == ' ' { '-' } else { char })
                    .collect(),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_in(content: &str) -> Vec<String> {
        problems("docs/guide.md", content, &|path| match path.to_str()? {
            "README.md" => Some("# fwdlab\n\n## Try it, as root\n".into()),
            "docs/plot.svg" | "labs" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let content = "# Guide\n[a](../README.md) ![b](plot.svg) [c](https://a.example/none.md)\n\
             [d](../README.md#try-it-as-root) [e](#guide) [labs](../labs/)\n[f]: plot.svg \"title\"\n";
        assert_eq!(problems_in(content), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_named_with_their_line() {
        let content = "# Guide\n[a](README.md), [b](plot.svg), [c](../README.md#none)\n\
             [d](#none)\n[e]: gone.md\n[f](../../secret.md)\n";
        assert_eq!(
            problems_in(content),
            [
                "docs/guide.md:2: README.md leads nowhere",
                "docs/guide.md:2: ../README.md#none leads nowhere",
                "docs/guide.md:3: #none leads nowhere",
                "docs/guide.md:4: gone.md leads nowhere",
                "docs/guide.md:5: ../../secret.md leads nowhere",
            ]
        );
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(
            problems_in("`[a](b)`\n```\n[a](b)\n```\n"),
            Vec::<String>::new()
        );
    }
}
