//! Which files of a crate import which. A name counts as imported from the file that defines it, however many modules hand
//! it on.

use std::collections::{BTreeMap, BTreeSet};

use syn::buffer::{Cursor, TokenBuffer};
use syn::visit::{self, Visit};

/// The files of a crate, each with those that it imports, as paths from the root of the repository.
pub(super) type Imports = BTreeMap<String, BTreeSet<String>>;

/// The path of a module from the root of its crate.
type Module = Vec<String>;

/// A path as source files write it, by its segments.
type Path = Vec<String>;

/// Finds what the files of a crate import, those of tests left out.
///
/// Shape: `folder` is the crate's `src`; `read` gives the content of a file, or none where there is none. A `use` inside a
/// function counts for the whole module; a path inside a string, as serde takes one, is not looked at.
pub(super) fn imports(folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Imports {
    let modules = Modules::read(folder, read);
    let mut imports = Imports::new();
    for (module, scope) in &modules.0 {
        let imported = imports.entry(scope.file.clone()).or_default();
        let named = scope.paths.iter().map(|path| (path, Last::Any));
        let globs = scope.globs.iter().map(|path| (path, Last::Module));
        for (path, last) in named.chain(globs) {
            let definer = match modules.resolve(module, path, last, &mut Asked::new()) {
                Some(Named::Item(definer)) => definer,
                // A module's name alone imports nothing: what is taken from it is a path that goes on.
                Some(Named::Module(definer)) if last == Last::Module => definer,
                _ => continue,
            };
            // A module without a file is the compiler's affair.
            if let Some(definer) = modules.0.get(&definer) {
                imported.insert(definer.file.clone());
            }
        }
        imported.remove(&scope.file);
    }
    imports
}

/// All modules of a crate that are no tests.
struct Modules(BTreeMap<Module, Scope>);

/// What a module defines and names.
#[derive(Default)]
struct Scope {
    file: String,
    children: BTreeSet<String>,
    defined: BTreeSet<String>,
    /// Whether it invokes a macro, which may define more.
    invokes_macro: bool,
    /// The names that `use` brings in, each with what it is a name of.
    uses: BTreeMap<String, Path>,
    globs: Vec<Path>,
    /// Every path that is named, those of `use` too, but for globs.
    paths: Vec<Path>,
}

/// What a path leads to.
enum Named {
    Module(Module),
    /// Something that this module defines.
    Item(Module),
    /// Something of another crate.
    Foreign,
}

/// What the last segment of a path may be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Last {
    Any,
    /// Others follow, so a module goes first.
    Module,
}

/// The questions whose answer is being looked for, so that globs of each other come to an end.
type Asked = BTreeSet<(Module, String, Last)>;

impl Modules {
    fn read(folder: &str, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut modules = Self(BTreeMap::new());
        let mut next = vec![Module::new()];
        while let Some(module) = next.pop() {
            let below = [&[folder.to_owned()], &*module].concat().join("/");
            let files = if module.is_empty() {
                [format!("{below}/lib.rs"), format!("{below}/main.rs")]
            } else {
                [format!("{below}.rs"), format!("{below}/mod.rs")]
            };
            let sources = files
                .into_iter()
                .find_map(|file| Some((read(&file)?, file)));
            let Some((source, file)) = sources else {
                continue;
            };
            let mut reader = Reader {
                modules: &mut modules,
                at: module,
                file,
                elsewhere: Vec::new(),
            };
            // What is no Rust is the compiler's affair.
            if let Ok(parsed) = syn::parse_file(&source) {
                reader.module(&parsed.items);
            }
            next.append(&mut reader.elsewhere);
        }
        modules
    }

    /// Where a path leads that a module names; none where its first name is not one of this crate.
    fn resolve(
        &self,
        from: &Module,
        path: &[String],
        last: Last,
        asked: &mut Asked,
    ) -> Option<Named> {
        let mut at = from.clone();
        for (index, name) in path.iter().enumerate() {
            match &**name {
                "crate" => at.clear(),
                "self" => {}
                "super" => {
                    at.pop();
                }
                name => {
                    let last = if index + 1 == path.len() {
                        last
                    } else {
                        Last::Module
                    };
                    match self.named(&at, name, last, asked) {
                        Some(Named::Module(module)) => at = module,
                        // The prelude's, another crate's or a variable's.
                        None if index == 0 => return None,
                        // What this does not know how to read, such as a function of C.
                        None => return Some(Named::Item(at)),
                        found => return found,
                    }
                }
            }
        }
        Some(Named::Module(at))
    }

    /// What a name is in a module; none where the module does not have it.
    fn named(&self, at: &Module, name: &str, last: Last, asked: &mut Asked) -> Option<Named> {
        let question = (at.clone(), name.to_owned(), last);
        if !asked.insert(question.clone()) {
            return None;
        }
        let scope = self.0.get(at)?;
        let item = || Named::Item(at.clone());
        let defined = scope.defined.contains(name).then(item);
        let child = || {
            let is_one = scope.children.contains(name);
            is_one.then(|| Named::Module([&**at, &[name.to_owned()]].concat()))
        };
        let used = scope.uses.get(name).map(|path| {
            let found = self.resolve(at, path, last, asked);
            found.unwrap_or(Named::Foreign)
        });
        let found = match last {
            Last::Any => defined.or(used).or_else(child),
            Last::Module => child().or(used).or(defined),
        };
        let from_globs = || {
            scope.globs.iter().find_map(|glob| {
                match self.resolve(at, glob, Last::Module, asked)? {
                    Named::Module(module) => self.named(&module, name, last, asked),
                    _ => None,
                }
            })
        };
        let found = found
            .or_else(from_globs)
            .or_else(|| scope.invokes_macro.then(item));
        asked.remove(&question);
        found
    }
}

/// Reads the modules of one file.
struct Reader<'a> {
    modules: &'a mut Modules,
    /// The module it is in.
    at: Module,
    file: String,
    /// Modules that are other files.
    elsewhere: Vec<Module>,
}

impl Reader<'_> {
    fn scope(&mut self) -> &mut Scope {
        self.modules.0.entry(self.at.clone()).or_default()
    }

    fn module(&mut self, items: &[syn::Item]) {
        self.scope().file = self.file.clone();
        for item in items {
            self.visit_item(item);
        }
    }

    fn tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (path, name) = match tree {
            syn::UseTree::Path(path) => return self.tree(&with(&path.ident), &path.tree),
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.tree(before, tree));
            }
            syn::UseTree::Glob(_) => return self.scope().globs.push(before.to_vec()),
            syn::UseTree::Name(name) if name.ident == "self" => {
                (before.to_vec(), before.last().cloned().unwrap_or_default())
            }
            syn::UseTree::Name(name) => (with(&name.ident), name.ident.to_string()),
            syn::UseTree::Rename(renamed) => (with(&renamed.ident), renamed.rename.to_string()),
        };
        self.path(path.clone());
        self.scope().uses.insert(name, path);
    }

    fn path(&mut self, path: Path) {
        self.scope().paths.push(path);
    }
}

impl Visit<'_> for Reader<'_> {
    fn visit_item(&mut self, item: &syn::Item) {
        let (attributes, name) = attributes_and_name(item);
        if is_for_tests(attributes) {
            return;
        }
        if let Some(name) = name {
            self.scope().defined.insert(name.to_string());
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &syn::ItemMod) {
        let name = module.ident.to_string();
        self.scope().children.insert(name.clone());
        self.at.push(name);
        match &module.content {
            Some((_, items)) => self.module(items),
            None => self.elsewhere.push(self.at.clone()),
        }
        self.at.pop();
    }

    fn visit_item_macro(&mut self, invoked: &syn::ItemMacro) {
        self.scope().invokes_macro |= invoked.ident.is_none();
        visit::visit_item_macro(self, invoked);
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    // `pub(in crate::a)` imports nothing.
    fn visit_visibility(&mut self, _: &syn::Visibility) {}

    fn visit_path(&mut self, path: &syn::Path) {
        let names = path.segments.iter().map(|part| part.ident.to_string());
        self.path(names.collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &syn::Macro) {
        visit::visit_macro(self, invoked);
        let tokens = TokenBuffer::new2(invoked.tokens.clone());
        paths_among(tokens.begin(), &mut |path| self.path(path));
    }

    fn visit_meta_list(&mut self, attribute: &syn::MetaList) {
        visit::visit_meta_list(self, attribute);
        let tokens = TokenBuffer::new2(attribute.tokens.clone());
        paths_among(tokens.begin(), &mut |path| self.path(path));
    }
}

/// Finds the paths among the arguments of a macro, which are no syntax tree.
fn paths_among(mut cursor: Cursor, on_path: &mut dyn FnMut(Path)) {
    // Punctuation since the last name: after a dot comes a field, after `::` a path goes on.
    let mut before = String::new();
    let mut path = Path::new();
    while !cursor.eof() {
        if let Some((name, next)) = cursor.ident() {
            if before != "::" {
                on_path(std::mem::take(&mut path));
            }
            if before != "." {
                path.push(name.to_string());
            }
            before.clear();
            cursor = next;
        } else if let Some((mark, next)) = cursor.punct() {
            before.push(mark.as_char());
            cursor = next;
        } else {
            on_path(std::mem::take(&mut path));
            before.clear();
            cursor = if let Some((inside, _, _, next)) = cursor.any_group() {
                paths_among(inside, on_path);
                next
            } else {
                // A literal or a lifetime.
                cursor
                    .token_tree()
                    .map_or(Cursor::empty(), |(_, next)| next)
            };
        }
    }
    on_path(path);
}

/// Whether something is compiled for tests only.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    })
}

/// The attributes of an item, and the name that it defines: a `mod` and a `use` are looked at apart.
fn attributes_and_name(item: &syn::Item) -> (&[syn::Attribute], Option<&syn::Ident>) {
    use syn::Item;
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Mod(item) => (&item.attrs, None),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every import among the files of a crate.
    fn found<const N: usize>(sources: [(&str, &str); N]) -> Vec<String> {
        let read = |path: &str| {
            let file = path.strip_prefix("src/")?;
            let source = sources.iter().find(|(other, _)| *other == file);
            source.map(|(_, source)| (*source).to_owned())
        };
        let imports = imports("src", &read);
        let name = |path: &str| path.trim_start_matches("src/").to_owned();
        let edges = imports.iter().flat_map(|(from, all)| {
            let to = |to: &String| format!("{} -> {}", name(from), name(to));
            all.iter().map(to).collect::<Vec<_>>()
        });
        edges.collect()
    }

    #[test]
    fn a_name_is_of_the_file_that_defines_it() {
        let edges = found([
            ("lib.rs", "mod a; mod b; mod e; pub use a::{C, D as E};"),
            (
                "a/mod.rs",
                "mod c; mod d; pub use self::c::C; pub use d::*;",
            ),
            ("a/c.rs", "pub struct C;"),
            ("a/d.rs", "pub enum D { One }"),
            ("b.rs", "use crate::C;"),
            (
                "e.rs",
                "fn f(_: super::E) { crate::a::D::One; crate::b::C }",
            ),
        ]);
        assert_eq!(
            edges,
            [
                "a/mod.rs -> a/c.rs",
                "a/mod.rs -> a/d.rs",
                "b.rs -> a/c.rs",
                "e.rs -> a/c.rs",
                "e.rs -> a/d.rs",
                "lib.rs -> a/c.rs",
                "lib.rs -> a/d.rs",
            ]
        );
    }

    #[test]
    fn globs_are_looked_through_and_may_be_of_each_other() {
        let edges = found([
            ("lib.rs", "mod a; mod d; pub use a::b::*; pub use a::c::*;"),
            ("a/mod.rs", "pub mod b; pub mod c;"),
            ("a/b.rs", "pub use super::c::*; pub fn g() {}"),
            ("a/c.rs", "pub use super::b::*; pub struct C;"),
            ("d.rs", "use crate::{C, Nothing};"),
        ]);
        assert_eq!(
            edges,
            [
                "a/b.rs -> a/c.rs",
                "a/c.rs -> a/b.rs",
                "d.rs -> a/c.rs",
                // What nobody defines is taken for the root's.
                "d.rs -> lib.rs",
                "lib.rs -> a/b.rs",
                "lib.rs -> a/c.rs",
            ]
        );
    }

    #[test]
    fn a_path_may_begin_with_what_the_module_has() {
        let edges = found([
            ("main.rs", "mod a; mod b; fn main() { a::c::f() }"),
            (
                "a/mod.rs",
                "pub mod c; pub mod d; use c::C; use crate::b; mod e { use super::d::D; }",
            ),
            (
                "a/c.rs",
                "pub struct C; pub fn f() { super::b::g(); d::h(); std::mem::take() }",
            ),
            ("a/d.rs", "pub struct D;"),
            ("b.rs", "pub fn g() {}"),
        ]);
        assert_eq!(
            edges,
            [
                "a/c.rs -> b.rs",
                "a/mod.rs -> a/c.rs",
                "a/mod.rs -> a/d.rs",
                "main.rs -> a/c.rs",
            ]
        );
    }

    #[test]
    fn a_module_and_a_function_may_have_one_name() {
        let edges = found([
            ("lib.rs", "mod a; mod b; mod c; pub use b::a;"),
            ("a.rs", "pub struct A;"),
            ("b.rs", "pub fn a() {}"),
            ("c.rs", "fn f() { crate::a(); } fn g() { crate::a::A }"),
        ]);
        assert_eq!(edges, ["c.rs -> a.rs", "c.rs -> b.rs", "lib.rs -> b.rs"]);
    }

    #[test]
    fn tests_import_nothing_and_what_is_for_some_machines_does() {
        let edges = found([
            (
                "lib.rs",
                "mod a; mod b; #[cfg(test)] mod sample; #[cfg(unix)] mod unix;",
            ),
            (
                "a.rs",
                "#[cfg(test)] use crate::b::B; #[cfg(test)] mod tests { use crate::b::B; } struct A; \
                 impl A { #[cfg(test)] fn f() { crate::b::f() } }",
            ),
            ("b.rs", "pub struct B;"),
            ("sample.rs", "use crate::b::B;"),
            ("unix.rs", "#[cfg(not(test))] use crate::b::B;"),
        ]);
        assert_eq!(edges, ["unix.rs -> b.rs"]);
    }

    #[test]
    fn arguments_of_macros_and_attributes_have_paths() {
        let source = "#[error(\"{}\", crate::b::text(.b.c))] struct A<'a>; \
                      fn f() { println!(\"{}\", [x.crate_, 'y', if 1..crate::c::END { d::e::<u8>() }]) } \
                      use crate::d;";
        let edges = found([
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", source),
            ("b.rs", ""),
            ("c.rs", ""),
            ("d.rs", ""),
        ]);
        assert_eq!(edges, ["a.rs -> b.rs", "a.rs -> c.rs", "a.rs -> d.rs"]);
    }

    #[test]
    fn what_a_macro_defines_is_of_the_file_that_invokes_it() {
        let edges = found([
            ("lib.rs", "mod a; mod b; mod c;"),
            (
                "a/mod.rs",
                "mod rules; mod other; pub use other::*; pub use rules::*;",
            ),
            (
                "a/rules.rs",
                "macro_rules! rules { () => {} } rules! { ONE }",
            ),
            ("a/other.rs", ""),
            ("b.rs", "use crate::a::ONE;"),
        ]);
        assert!(
            edges.contains(&"b.rs -> a/rules.rs".to_owned()),
            "{edges:?}"
        );
        assert!(!edges.contains(&"b.rs -> a/mod.rs".to_owned()), "{edges:?}");
    }

    #[test]
    fn names_of_other_crates_are_of_no_file() {
        let edges = found([
            (
                "lib.rs",
                "mod a; pub use other::Thing; pub use other as mine; pub(in crate::a) fn f() {}",
            ),
            ("a.rs", "use crate::{Thing, mine::Other}; use std::fmt;"),
        ]);
        assert_eq!(edges, Vec::<String>::new());
    }
}
