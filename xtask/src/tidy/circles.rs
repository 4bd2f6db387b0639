//! Which files of a crate import which: no circle goes through several folders, and the folders of `lab` import only what
//! is stated.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use syn::visit::{self, Visit};

/// Which folders of `lab` may import which other ones. Files beside them are below or above, as they like.
///
/// The table of `crates/lab/README.md`; who changes one changes the other.
const FOLDERS_OF_LAB: &[(&str, &[&str])] = &[
    ("cpu_account", &[]),
    ("journal", &[]),
    ("profiler", &[]),
    ("dut", &["journal"]),
    ("netns", &["cpu_account", "dut", "journal", "profiler"]),
    ("router", &["cpu_account", "profiler"]),
    ("doctor", &["cpu_account", "dut", "router"]),
    ("hosts", &["doctor", "dut", "journal", "profiler"]),
];

/// The path of a module from the root of its crate.
type Module = Vec<String>;

/// The files of a crate by their modules, each with those that it imports. What stands in the arguments of a macro is not
/// looked at, nor are tests; what the root hands on and paths that begin with a child's name are not followed.
struct Files {
    /// Paths from the root of the repository.
    paths: BTreeMap<Module, String>,
    imports: BTreeMap<Module, BTreeSet<Module>>,
}

/// Every circle and every edge that is not allowed.
pub(super) fn problems(paths: &[String], read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut of_crates: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in paths.iter().filter(|path| path.ends_with(".rs")) {
        if let Some((name, file)) = path
            .strip_prefix("crates/")
            .and_then(|path| path.split_once("/src/"))
        {
            of_crates.entry(name).or_default().push(file);
        }
    }
    let mut problems = Vec::new();
    for (name, files) in of_crates {
        let files = Files::read(name, &files, read);
        problems.extend(files.circles());
        if name == "lab" {
            problems.extend(files.edges(FOLDERS_OF_LAB));
        }
    }
    problems
}

impl Files {
    fn read(name: &str, files: &[&str], read: &dyn Fn(&str) -> Option<String>) -> Self {
        let at = |file: &str| format!("crates/{name}/src/{file}");
        let paths: BTreeMap<Module, String> =
            files.iter().map(|file| (module(file), at(file))).collect();
        let imports = paths.iter().map(|(module, path)| {
            // What is no Rust is the compiler's affair.
            let source = read(path).unwrap_or_default();
            let imported = syn::parse_file(&source).map(|file| imported(module, &file));
            let known = imported
                .unwrap_or_default()
                .into_iter()
                .filter_map(|path| file_of(&paths, path))
                // What is taken from the root stands elsewhere: it only hands on.
                .filter(|imported| imported != module && !imported.is_empty());
            (module.clone(), known.collect())
        });
        Self {
            imports: imports.collect(),
            paths: paths.clone(),
        }
    }

    /// One circle for each edge between folders that lies on one.
    fn circles(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (from, to) in self.edges_between_folders() {
            if let Some(back) = self.way(to, from) {
                let names: Vec<&str> = back.iter().map(|file| &*self.paths[*file]).collect();
                problems.push(format!(
                    "{}: imports {}, a circle of files across folders",
                    self.paths[from],
                    names.join(", which imports ")
                ));
            }
        }
        problems
    }

    fn edges(&self, allowed: &[(&str, &[&str])]) -> Vec<String> {
        let mut problems = BTreeSet::new();
        for (from, to) in self.edges_between_folders() {
            let [from_folder, to_folder] = [from, to].map(|file| self.folder(file));
            let (Some(from_folder), Some(to_folder)) = (from_folder, to_folder) else {
                continue;
            };
            let row = allowed.iter().find(|(folder, _)| *folder == from_folder);
            if from_folder != to_folder && !row.is_some_and(|(_, to)| to.contains(&to_folder)) {
                problems.insert(format!(
                    "{}: imports {}, from {from_folder} to {to_folder}: an edge that is not stated",
                    self.paths[from], self.paths[to]
                ));
            }
        }
        problems.into_iter().collect()
    }

    fn edges_between_folders(&self) -> impl Iterator<Item = (&Module, &Module)> {
        let edges = self
            .imports
            .iter()
            .flat_map(|(from, all)| all.iter().map(move |to| (from, to)));
        edges.filter(|(from, to)| parent(&self.paths[*from]) != parent(&self.paths[*to]))
    }

    /// The folder below the crate's that a file is in; none of those beside them.
    fn folder(&self, file: &Module) -> Option<&str> {
        let (_, path) = self.paths[file].split_once("/src/")?;
        path.split_once('/').map(|(folder, _)| folder)
    }

    /// The shortest way from one file to another along imports, both included.
    fn way<'a>(&'a self, from: &'a Module, to: &'a Module) -> Option<Vec<&'a Module>> {
        let mut before = BTreeMap::new();
        let mut next = VecDeque::from([from]);
        while let Some(file) = next.pop_front() {
            if file == to {
                let ways = std::iter::successors(Some(file), |file| before.get(*file).copied());
                let mut way: Vec<&Module> = ways.collect();
                way.reverse();
                return Some(way);
            }
            for imported in &self.imports[file] {
                if imported != from && !before.contains_key(imported) {
                    before.insert(imported, file);
                    next.push_back(imported);
                }
            }
        }
        None
    }
}

/// The module of a file, by its path from the crate's `src`.
fn module(file: &str) -> Module {
    let path = file.trim_end_matches(".rs");
    let mut names: Module = path.split('/').map(str::to_owned).collect();
    if matches!(
        names.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        names.pop();
    }
    names
}

/// The file in which what is named stands, or is handed on.
fn file_of(paths: &BTreeMap<Module, String>, mut named: Module) -> Option<Module> {
    while !paths.contains_key(&named) {
        named.pop()?;
    }
    Some(named)
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// All paths into its own crate that a file names, from the crate's root.
fn imported(module: &Module, file: &syn::File) -> Vec<Module> {
    let mut imports = Imports {
        module: module.clone(),
        found: Vec::new(),
    };
    imports.visit_file(file);
    imports.found
}

struct Imports {
    /// Where the visitor is.
    module: Module,
    found: Vec<Module>,
}

impl Imports {
    /// Takes note of a path that begins at the crate's root, here or above.
    fn name(&mut self, path: &[String]) {
        let mut at = match path.first().map(String::as_str) {
            Some("crate") => Module::new(),
            Some("self" | "super") => self.module.clone(),
            _ => return,
        };
        for name in path {
            match &**name {
                "crate" | "self" => {}
                "super" => {
                    at.pop();
                }
                name => at.push(name.to_owned()),
            }
        }
        self.found.push(at);
    }

    fn tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.name(&with(&name.ident)),
            syn::UseTree::Rename(renamed) => self.name(&with(&renamed.ident)),
            syn::UseTree::Glob(_) => self.name(before),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(before, tree);
                }
            }
        }
    }
}

impl Visit<'_> for Imports {
    fn visit_item(&mut self, item: &syn::Item) {
        let is_of_tests = matches!(item, syn::Item::Mod(module)
            if module.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")));
        if !is_of_tests {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &syn::ItemMod) {
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    // `pub(in crate::a)` imports nothing.
    fn visit_visibility(&mut self, _: &syn::Visibility) {}

    fn visit_path(&mut self, path: &syn::Path) {
        let names = path.segments.iter().map(|part| part.ident.to_string());
        self.name(&names.collect::<Vec<_>>());
        visit::visit_path(self, path);
    }
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
    fn a_circle_is_told_where_it_goes_through_several_folders() {
        let lib = ("crates/a/src/lib.rs", "mod b; mod c;");
        let circle = found([
            lib,
            ("crates/a/src/b/mod.rs", "mod d; use crate::c::{self, C};"),
            ("crates/a/src/b/d.rs", "fn f() { crate::c::g() }"),
            ("crates/a/src/c.rs", "use super::b::d::{x as y};"),
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
        // In one folder, in tests and in what says who may see something there may be one.
        let none = found([
            lib,
            ("crates/a/src/b/mod.rs", "mod d; use self::d::D;"),
            (
                "crates/a/src/b/d.rs",
                "use super::f; #[cfg(test)] mod tests { use crate::c::C; }",
            ),
            (
                "crates/a/src/c.rs",
                "use crate::b::d::D; pub(in crate::b) fn g() {}",
            ),
        ]);
        assert_eq!(none, Vec::<String>::new());
    }

    #[test]
    fn folders_of_the_lab_import_what_is_stated() {
        let edges = found([
            (
                "crates/lab/src/lib.rs",
                "mod dut; mod hosts; mod journal; mod restore;",
            ),
            ("crates/lab/src/dut/mod.rs", "use crate::journal::Journal;"),
            ("crates/lab/src/hosts/mod.rs", "use crate::dut::Dut;"),
            ("crates/lab/src/journal/mod.rs", "use crate::dut::apply;"),
            ("crates/lab/src/restore.rs", "use crate::hosts::Host;"),
        ]);
        assert!(
            edges.contains(
                &"crates/lab/src/journal/mod.rs: imports crates/lab/src/dut/mod.rs, from journal to dut: an edge that is \
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
