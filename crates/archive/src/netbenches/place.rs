//! Where in the archive something is: platform, NIC, topic, label.

use std::path::{Component, Path};

/// How the archive files results: `<platform>/<nic>/<topic>/results/<label>`.
///
/// What a path does not say is none: a tree may be any part of the archive, or lie under folders of
/// its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchivePlace {
    /// The DUT: `Atom_C2758_8Cores`.
    pub platform: Option<String>,
    /// Its network interface card: `Intel_82599`.
    pub nic: Option<String>,
    /// What was asked: `firewalls`, `iflib.simple_tx`.
    pub topic: Option<String>,
    /// What was measured: `fbsd15-n302145`.
    pub label: Option<String>,
}

/// Names of the folder above labels; one topic of the archive has the second.
const RESULTS: &[&str] = &["results", "result"];

impl ArchivePlace {
    /// What a path says of itself; `path` should be absolute, so that a tree's root tells, too.
    ///
    /// Shape: a results folder or anything in it, or a folder beside `results`.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let names = names(path);
        let Some(at) = results_at(&names) else {
            return Self::default();
        };
        let above = |by: usize| at.checked_sub(by).map(|at| names[at].clone());
        Self {
            platform: above(3),
            nic: above(2),
            topic: above(1),
            label: names.get(at + 1).cloned(),
        }
    }
}

/// How many components of a path there are up to its label, the label included; none where it is in
/// no label's folder.
pub(super) fn label_depth(path: &Path) -> Option<usize> {
    let names = names(path);
    results_at(&names)
        .map(|at| at + 2)
        .filter(|&depth| depth <= names.len())
}

/// The last folder named `results` is the one that counts: whoever keeps a copy may keep it in another.
fn results_at(names: &[String]) -> Option<usize> {
    names
        .iter()
        .rposition(|name| RESULTS.contains(&name.as_str()))
}

fn names(path: &Path) -> Vec<String> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_it_can() {
        for (path, expected) in [
            ("/x/P/N/T/results/L", ["P", "N", "T", "L"]),
            ("P/N/T/results/L/RAW", ["P", "N", "T", "L"]),
            ("N/T/result/L", ["-", "N", "T", "L"]),
            ("/home/results/P/N/T/results/L", ["P", "N", "T", "L"]),
            ("/P/N/T/results", ["P", "N", "T", "-"]),
            ("results/L", ["-", "-", "-", "L"]),
            ("P/N/T/configs/c", ["-", "-", "-", "-"]),
        ] {
            let place = ArchivePlace::of(Path::new(path));
            let parts = [place.platform, place.nic, place.topic, place.label];
            assert_eq!(
                parts.map(|part| part.unwrap_or_else(|| "-".into())),
                expected,
                "{path}"
            );
        }
        assert_eq!(label_depth(Path::new("T/results/L/RAW/x")), Some(3));
        assert_eq!(label_depth(Path::new("T/results")), None);
        assert_eq!(label_depth(Path::new("T/x")), None);
    }
}
