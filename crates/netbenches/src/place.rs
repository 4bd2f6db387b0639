//! Where in the archive something is: platform, NIC, topic, label.

use std::borrow::Cow;
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
        let names: Vec<_> = names(path).collect();
        let Some(at) = results_at(&names) else {
            return Self::default();
        };
        let name = |at: usize| names.get(at).map(|name| name.clone().into_owned());
        let above = |by: usize| at.checked_sub(by).and_then(name);
        Self {
            platform: above(3),
            nic: above(2),
            topic: above(1),
            label: name(at + 1),
        }
    }
}

/// How many components of a path there are up to its label, the label included; none where it is in
/// no label's folder.
pub(super) fn label_depth(path: &Path) -> Option<usize> {
    let names: Vec<_> = names(path).collect();
    results_at(&names)
        .map(|at| at + 2)
        .filter(|&depth| depth <= names.len())
}

/// The last folder named `results` is the one that counts: whoever keeps a copy may keep it in another.
pub(super) fn results_at(names: &[Cow<'_, str>]) -> Option<usize> {
    names.iter().rposition(|name| RESULTS.contains(&&**name))
}

/// The names of the folders of a path, and of what lies in the last.
pub(super) fn names(path: &Path) -> impl Iterator<Item = Cow<'_, str>> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    })
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
