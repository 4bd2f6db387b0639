//! What neither the compiler nor clippy checks.

mod circles;
mod edges;
mod imports;
mod links;
mod text;
mod workspace;

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::command::{self, cargo, command, repository};
use workspace::Workspace;

/// A file above this belongs beside the repository, not into it.
const FILE_SIZE_MAX: usize = 300_000;

/// Finds and prints everything untidy.
///
/// # Errors
/// Something is.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::parse(&command::output(&mut cargo([
        "metadata",
        "--no-deps",
        "--format-version=1",
    ]))?)?;
    let mut problems = edges::problems(&workspace);
    problems.extend(crate_problems(&workspace));
    let files = files()?;
    let read = |path: &str| fs::read_to_string(repository().join(path)).ok();
    problems.extend(circles::problems(&files, &read));
    for path in files {
        // A file that is still in the index, but deleted.
        let Ok(content) = fs::read(repository().join(&path)) else {
            continue;
        };
        problems.extend(file_problems(&path, &content));
    }
    problems.sort();
    for problem in &problems {
        println!("{problem}");
    }
    if !problems.is_empty() {
        bail!("tidy: {} to put right", problems.len());
    }
    println!("tidy");
    Ok(())
}

/// Every file that is tracked, or would be with `git add --all`, as a path from the root.
fn files() -> Result<Vec<String>> {
    let listed = command::output(&mut command(
        "git",
        [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
    ))?;
    Ok(listed.split_terminator('\0').map(String::from).collect())
}

fn file_problems(path: &str, content: &[u8]) -> Vec<String> {
    let mut problems = Vec::new();
    if content.len() > FILE_SIZE_MAX {
        problems.push(format!(
            "{path}: {} kB; at most {}",
            content.len() / 1000,
            FILE_SIZE_MAX / 1000
        ));
    }
    problems.extend(text::place_problems(path, content));
    if let Ok(content) = str::from_utf8(content) {
        problems.extend(text::problems(path, content));
        if is_document(path) {
            problems.extend(links::problems(path, content, &|target| {
                fs::read(repository().join(target))
                    .ok()
                    .map(String::from_utf8)
                    .map_or_else(
                        || repository().join(target).is_dir().then(String::new),
                        |content| Some(content.unwrap_or_default()),
                    )
            }));
        }
    }
    problems
}

/// Whether the links of a file are followed: the documents at the root, in `docs/` and of crates.
fn is_document(path: &str) -> bool {
    let path = Path::new(path);
    let folder = path.parent().unwrap_or(Path::new(""));
    let of_crate = folder.parent() == Some(Path::new("crates")) && path.ends_with("README.md");
    path.extension().is_some_and(|extension| extension == "md")
        && (folder == Path::new("") || folder.starts_with("docs") || of_crate)
}

/// What each crate owes: a README, and no unsafe code but in `sys`.
fn crate_problems(workspace: &Workspace) -> Vec<String> {
    let mut problems = Vec::new();
    for package in &workspace.packages {
        if package.folder.starts_with("crates") && !exists(&package.folder.join("README.md")) {
            problems.push(format!("{}: no README.md", package.folder.display()));
        }
        if package.folder == Path::new("crates/sys") {
            continue;
        }
        for root in &package.roots {
            let source = fs::read_to_string(repository().join(root)).unwrap_or_default();
            if !source
                .lines()
                .any(|line| line.trim() == "#![forbid(unsafe_code)]")
            {
                problems.push(format!("{}: no #![forbid(unsafe_code)]", root.display()));
            }
        }
    }
    problems
}

fn exists(path: &Path) -> bool {
    repository().join(path).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_those_a_reader_is_sent_to() {
        for document in [
            "README.md",
            "docs/terms.md",
            "docs/a/b.md",
            "crates/lab/README.md",
        ] {
            assert!(is_document(document), "{document}");
        }
        for other in [
            "docs/plot.svg",
            "crates/lab/tests/golden/README.md",
            "labs/a.toml",
        ] {
            assert!(!is_document(other), "{other}");
        }
    }

    #[test]
    fn large_files_are_found() {
        assert_eq!(
            file_problems("data.bin", &vec![0; 300_000]),
            Vec::<String>::new()
        );
        assert_eq!(
            file_problems("data.bin", &vec![0; 301_000]),
            ["data.bin: 301 kB; at most 300"]
        );
    }
}
