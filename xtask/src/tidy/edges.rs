//! Which crate may import which.

use super::workspace::{Package, Workspace};

/// Beyond `model` and `sys`, which all but these two and `stats` may import: the edges allowed.
///
/// The table of `ARCHITECTURE.md`; who changes one changes the other.
const EDGES: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("stats", &[]),
    ("sys", &["model"]),
    ("packet", &["model", "sys"]),
    ("profile", &["model", "sys", "stats"]),
    ("pkt-gen", &["model", "sys", "stats"]),
    ("plan", &["model", "sys", "stats"]),
    ("router", &["model", "sys", "packet"]),
    ("traffic", &["model", "sys", "stats", "packet", "router"]),
    (
        "lab",
        &[
            "model", "sys", "stats", "packet", "router", "traffic", "profile", "pkt-gen",
        ],
    ),
    ("archive", &["model", "sys", "stats", "profile"]),
    (
        "netbenches",
        &["model", "sys", "stats", "profile", "pkt-gen", "archive"],
    ),
    (
        "catalogue",
        &["model", "sys", "stats", "archive", "netbenches"],
    ),
    (
        "report",
        &[
            "model",
            "sys",
            "stats",
            "profile",
            "archive",
            "netbenches",
            "catalogue",
        ],
    ),
    (
        "cli",
        &[
            "model",
            "sys",
            "stats",
            "packet",
            "profile",
            "plan",
            "router",
            "traffic",
            "lab",
            "archive",
            "netbenches",
            "catalogue",
            "report",
        ],
    ),
];

/// What tests share; nothing that ships may import it.
const TESTS_ONLY: &str = "testkit";

/// Every edge that is not allowed.
pub(super) fn problems(workspace: &Workspace) -> Vec<String> {
    let ours: Vec<_> = workspace
        .packages
        .iter()
        .filter_map(|package| Some((package, crate_name(package)?)))
        .collect();
    let mut problems = Vec::new();
    for (package, name) in &ours {
        let allowed = match EDGES.iter().find(|(from, _)| from == name) {
            Some((_, allowed)) => *allowed,
            None if *name == TESTS_ONLY => &[],
            None => {
                problems.push(format!(
                    "crates/{name}: not among the edges allowed; \
                     add it to ARCHITECTURE.md and to xtask/src/tidy/edges.rs"
                ));
                continue;
            }
        };
        for (_, imported) in ours
            .iter()
            .filter(|(other, _)| package.imports.contains(&other.name))
        {
            if *imported == TESTS_ONLY {
                problems.push(format!(
                    "crates/{name}: imports {imported}, a dev-dependency only"
                ));
            } else if !allowed.contains(imported) {
                problems.push(format!(
                    "crates/{name}: imports {imported}, an edge that ARCHITECTURE.md does not allow"
                ));
            }
        }
    }
    problems
}

/// The name of a crate in this architecture: that of its folder under `crates/`.
fn crate_name(package: &Package) -> Option<&str> {
    package.folder.strip_prefix("crates").ok()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, name: &str, imports: &[&str]) -> Package {
        Package {
            name: name.into(),
            folder: folder.into(),
            roots: Vec::new(),
            imports: imports.iter().map(|import| (*import).into()).collect(),
        }
    }

    fn workspace(plan_imports: &[&str], stats_imports: &[&str]) -> Workspace {
        Workspace {
            packages: vec![
                package("crates/model", "fwdlab-model", &["serde"]),
                package("crates/stats", "fwdlab-stats", stats_imports),
                package("crates/lab", "fwdlab-lab", &["fwdlab-model"]),
                package("crates/plan", "fwdlab-plan", plan_imports),
                package("crates/testkit", "testkit", &[]),
                package("xtask", "xtask", &["fwdlab-lab"]),
            ],
        }
    }

    #[test]
    fn allowed_edges_and_other_peoples_crates_are_fine() {
        let fine = workspace(
            &["fwdlab-model", "fwdlab-stats", "rand_pcg"],
            &["thiserror"],
        );
        assert_eq!(problems(&fine), Vec::<String>::new());
    }

    #[test]
    fn each_edge_outside_the_table_is_named() {
        assert_eq!(
            problems(&workspace(&["fwdlab-lab", "testkit"], &["fwdlab-model"])),
            [
                "crates/stats: imports model, an edge that ARCHITECTURE.md does not allow",
                "crates/plan: imports lab, an edge that ARCHITECTURE.md does not allow",
                "crates/plan: imports testkit, a dev-dependency only",
            ]
        );
    }

    #[test]
    fn a_crate_without_a_row_is_named() {
        let new = Workspace {
            packages: vec![package("crates/gui", "fwdlab-gui", &[])],
        };
        assert!(problems(&new)[0].starts_with("crates/gui: not among the edges allowed"));
    }

    #[test]
    fn the_table_has_no_cycle() {
        for (row, (from, to)) in EDGES.iter().enumerate() {
            for target in *to {
                assert!(
                    EDGES[..row].iter().any(|(above, _)| above == target),
                    "{from} -> {target}: a crate imports only crates above it in the table"
                );
            }
        }
    }
}
