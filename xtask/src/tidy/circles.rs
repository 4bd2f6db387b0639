//! No circle of a crate's files goes through several folders, and the folders of `lab` import only what is stated.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::imports::{Imports, imports};

/// Which folders of `lab` may import which other ones. Files beside them are below or above, as they like.
///
/// The table of `crates/lab/README.md`; who changes one changes the other.
const FOLDERS_OF_LAB: &[(&str, &[&str])] = &[
    ("cabling", &[]),
    ("cpu_account", &[]),
    ("journal", &[]),
    ("profiler", &[]),
    ("mechanism", &["journal"]),
    (
        "netns",
        &["cpu_account", "mechanism", "journal", "profiler"],
    ),
    ("router", &["cpu_account", "profiler"]),
    ("doctor", &["cpu_account", "mechanism", "router"]),
    (
        "hosts",
        &["cabling", "doctor", "mechanism", "journal", "profiler"],
    ),
];

/// Every circle and every edge that is not allowed.
pub(super) fn problems(paths: &[String], read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let crates: BTreeSet<&str> = paths
        .iter()
        .filter_map(|path| path.strip_prefix("crates/")?.split_once("/src/"))
        .map(|(name, _)| name)
        .collect();
    let mut problems = Vec::new();
    for name in crates {
        let imports = imports(&format!("crates/{name}/src"), read);
        problems.extend(circles(&imports));
        if name == "lab" {
            problems.extend(unstated(&imports, FOLDERS_OF_LAB));
        }
    }
    problems
}

/// One circle for each edge between folders that lies on one.
fn circles(imports: &Imports) -> Vec<String> {
    let mut problems = Vec::new();
    for (from, to) in edges_between_folders(imports) {
        if let Some(back) = way(imports, to, from) {
            problems.push(format!(
                "{from}: imports {}, a circle of files across folders",
                back.join(", which imports ")
            ));
        }
    }
    problems
}

fn unstated(imports: &Imports, allowed: &[(&str, &[&str])]) -> Vec<String> {
    let mut problems = Vec::new();
    for (from, to) in edges_between_folders(imports) {
        let (Some(from_folder), Some(to_folder)) = (folder(from), folder(to)) else {
            continue;
        };
        let row = allowed.iter().find(|(folder, _)| *folder == from_folder);
        if from_folder != to_folder && !row.is_some_and(|(_, to)| to.contains(&to_folder)) {
            problems.push(format!(
                "{from}: imports {to}, from {from_folder} to {to_folder}: an edge that is not stated"
            ));
        }
    }
    problems
}

fn edges_between_folders(imports: &Imports) -> impl Iterator<Item = (&str, &str)> {
    let edges = imports
        .iter()
        .flat_map(|(from, all)| all.iter().map(move |to| (&**from, &**to)));
    edges.filter(|(from, to)| parent(from) != parent(to))
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The folder below the crate's that a file is in; none of those beside them.
fn folder(file: &str) -> Option<&str> {
    let (_, path) = file.split_once("/src/")?;
    path.split_once('/').map(|(folder, _)| folder)
}

/// The shortest way from one file to another along imports, both included.
fn way<'a>(imports: &'a Imports, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let mut before = BTreeMap::new();
    let mut next = VecDeque::from([from]);
    while let Some(file) = next.pop_front() {
        if file == to {
            let ways = std::iter::successors(Some(file), |file| before.get(file).copied());
            let mut way: Vec<&str> = ways.collect();
            way.reverse();
            return Some(way);
        }
        for imported in &imports[file] {
            if imported != from && !before.contains_key(&**imported) {
                before.insert(&**imported, file);
                next.push_back(imported);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<const N: usize>(sources: [(&str, &str); N]) -> Vec<String> {
        let paths = sources.map(|(path, _)| path.to_owned());
        let read = |path: &str| {
            let source = sources.iter().find(|(other, _)| *other == path);
            source.map(|(_, source)| (*source).to_owned())
        };
        problems(&paths, &read)
    }

    #[test]
    fn a_circle_through_several_folders_is_found() {
        let circle = found([
            ("crates/a/src/lib.rs", "mod b; mod c; pub use c::C;"),
            ("crates/a/src/b/mod.rs", "mod d; pub use d::D;"),
            ("crates/a/src/b/d.rs", "use crate::C; pub struct D;"),
            ("crates/a/src/c.rs", "use super::b::D as E; pub struct C;"),
        ]);
        assert_eq!(
            circle,
            [
                "crates/a/src/b/d.rs: imports crates/a/src/c.rs, which imports crates/a/src/b/d.rs, a circle of files \
                 across folders",
                "crates/a/src/c.rs: imports crates/a/src/b/d.rs, which imports crates/a/src/c.rs, a circle of files \
                 across folders",
            ]
        );
    }

    #[test]
    fn what_a_file_hands_on_it_imports() {
        let circle = found([
            ("crates/a/src/lib.rs", "mod b;"),
            (
                "crates/a/src/b/mod.rs",
                "mod c; pub use c::f; pub struct B;",
            ),
            ("crates/a/src/b/c/mod.rs", "pub fn f() -> crate::b::B {}"),
        ]);
        assert_eq!(circle.len(), 2, "{circle:?}");
    }

    #[test]
    fn a_circle_in_one_folder_is_none_across_folders() {
        let none = found([
            ("crates/a/src/lib.rs", "mod b; mod e;"),
            ("crates/a/src/b/mod.rs", "mod d; use d::D; pub fn f() {}"),
            ("crates/a/src/b/d.rs", "use super::f; pub struct D;"),
            ("crates/a/src/e.rs", "use crate::b::d::D;"),
        ]);
        assert_eq!(none, Vec::<String>::new());
    }

    #[test]
    fn folders_of_the_lab_import_what_is_stated() {
        let edges = found([
            (
                "crates/lab/src/lib.rs",
                "mod hosts; mod journal; mod mechanism; mod restore;",
            ),
            (
                "crates/lab/src/mechanism/mod.rs",
                "use crate::journal::Journal;",
            ),
            ("crates/lab/src/hosts/mod.rs", "use crate::mechanism::Dut;"),
            (
                "crates/lab/src/journal/mod.rs",
                "use crate::mechanism::apply;",
            ),
            ("crates/lab/src/restore.rs", "use crate::hosts::Host;"),
        ]);
        assert!(
            edges.contains(
                &"crates/lab/src/journal/mod.rs: imports crates/lab/src/mechanism/mod.rs, from journal to mechanism: an edge that is \
                  not stated"
                    .to_owned()
            ),
            "{edges:?}"
        );
    }

    #[test]
    fn the_stated_edges_have_no_circle() {
        for (row, (from, to)) in FOLDERS_OF_LAB.iter().enumerate() {
            for target in *to {
                assert!(
                    FOLDERS_OF_LAB[..row]
                        .iter()
                        .any(|(above, _)| above == target),
                    "{from} -> {target}: a folder imports only folders above it in the table"
                );
            }
        }
    }
}
