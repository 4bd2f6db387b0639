//! The shared folder beside the repository, which a clone may be without.

use std::path::PathBuf;

/// A path below the shared folder; `None`, with a note, where there is none.
///
/// # Panics
/// Where continuous integration runs without the shared folder.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if folder.is_dir() {
        return Some(folder.join(path));
    }
    assert!(
        std::env::var_os("CI").is_none_or(|value| value != "true"),
        "{} is missing",
        folder.display()
    );
    println!("skipped: no {}", folder.display());
    None
}
