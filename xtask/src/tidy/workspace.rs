//! The packages of the workspace and what they import, as cargo sees them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// The packages of this workspace.
pub(super) struct Workspace {
    pub(super) packages: Vec<Package>,
}

/// One package. Shape: all paths from the root of the repository.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// The first source file of its library and of each of its programs.
    pub(super) roots: Vec<PathBuf>,
    /// The packages that what it ships imports: no dev-dependencies.
    pub(super) imports: Vec<String>,
}

impl Workspace {
    /// Reads what `cargo metadata --no-deps` prints.
    ///
    /// # Errors
    /// It is not that.
    pub(super) fn parse(metadata: &str) -> Result<Self> {
        let metadata: Value = serde_json::from_str(metadata).context("cargo metadata")?;
        let root = Path::new(text(&metadata, "workspace_root")?);
        let packages = list(&metadata, "packages")?
            .iter()
            .map(|package| Package::parse(package, root))
            .collect::<Result<_>>()?;
        Ok(Self { packages })
    }
}

impl Package {
    fn parse(package: &Value, root: &Path) -> Result<Self> {
        let from_root = |path: &str| -> Result<PathBuf> {
            Ok(Path::new(path)
                .strip_prefix(root)
                .context("a package outside")?
                .to_path_buf())
        };
        let manifest = from_root(text(package, "manifest_path")?)?;
        let mut roots = Vec::new();
        for target in list(package, "targets")? {
            let kinds = list(target, "kind")?;
            if kinds.iter().any(|kind| kind == "lib" || kind == "bin") {
                roots.push(from_root(text(target, "src_path")?)?);
            }
        }
        let mut imports = Vec::new();
        for dependency in list(package, "dependencies")? {
            if dependency["kind"] != "dev" {
                imports.push(text(dependency, "name")?.to_owned());
            }
        }
        Ok(Self {
            name: text(package, "name")?.to_owned(),
            folder: manifest.parent().unwrap_or(Path::new("")).to_path_buf(),
            roots,
            imports,
        })
    }
}

fn text<'a>(object: &'a Value, key: &str) -> Result<&'a str> {
    object[key]
        .as_str()
        .with_context(|| format!("cargo metadata: no text under {key:?}"))
}

fn list<'a>(object: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    object[key]
        .as_array()
        .with_context(|| format!("cargo metadata: no list under {key:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dev_dependencies_are_no_imports_and_tests_no_roots() {
        let workspace = Workspace::parse(
            r#"{"workspace_root": "/r", "packages": [{
                "name": "fwdlab-plan", "manifest_path": "/r/crates/plan/Cargo.toml",
                "targets": [{"kind": ["lib"], "src_path": "/r/crates/plan/src/lib.rs"},
                            {"kind": ["test"], "src_path": "/r/crates/plan/tests/a.rs"}],
                "dependencies": [{"name": "fwdlab-stats", "kind": null},
                                 {"name": "cc", "kind": "build"},
                                 {"name": "proptest", "kind": "dev"}]}]}"#,
        )
        .unwrap();
        let plan = &workspace.packages[0];
        assert_eq!(plan.folder, Path::new("crates/plan"));
        assert_eq!(plan.roots, [Path::new("crates/plan/src/lib.rs")]);
        assert_eq!(plan.imports, ["fwdlab-stats", "cc"]);
    }

    #[test]
    fn other_text_is_refused() {
        assert!(Workspace::parse("{}").is_err());
        assert!(Workspace::parse("error: no such command").is_err());
    }
}
