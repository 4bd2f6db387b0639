//! An audit's report, on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fwdlab_archive::read_json;
use fwdlab_sys::durable::FileError;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::NetbenchesError;
use crate::replacement::{Replacement, write};

const README: &str = "README.md";
/// By which an earlier audit is known.
const MARK: &str = "audit.json";
const PLOTS: &str = "plots";

/// What an `audit.json` has, whatever else it says.
#[derive(Deserialize)]
struct Mark {
    #[serde(rename = "schema")]
    _schema: u32,
    #[serde(rename = "verdicts")]
    _verdicts: IgnoredAny,
}

/// Writes the files of an audit into a new or empty folder, or in place of an earlier audit, which stays whole
/// until the new one is.
///
/// # Errors
/// What the system refuses, and a folder that holds something else, which is left as it is.
pub fn write_audit(
    out: &Path,
    readme: &str,
    json: &str,
    plots: &BTreeMap<&str, String>,
) -> Result<(), NetbenchesError> {
    let replacement = Replacement::begin(out, &[README, PLOTS, MARK])?;
    let is_earlier = read_json::<Mark>(out, &out.join(MARK)).is_ok();
    replacement.refuse_something_else("audit", is_earlier)?;
    replacement.with(|new| {
        let folder = new.join(PLOTS);
        fs::create_dir(&folder).map_err(FileError::of(&folder, "create the folder"))?;
        for (name, text) in plots {
            write(&folder.join(name), text.as_bytes())?;
        }
        write(&new.join(README), readme.as_bytes())?;
        write(&new.join(MARK), json.as_bytes())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use fwdlab_sys::durable::entries;

    const JSON: &str = "{\"schema\":1,\"verdicts\":{}}";

    fn names(folder: &Path) -> Vec<String> {
        let paths = entries(folder).unwrap().into_iter();
        let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        paths.map(name).collect()
    }

    #[test]
    fn an_audit_takes_the_place_of_an_earlier_one() {
        let out = tempfile::tempdir().unwrap();
        let plots =
            |names: &[&'static str]| names.iter().map(|name| (*name, String::new())).collect();
        write_audit(out.path(), "first", JSON, &plots(&["a.svg", "b.svg"])).unwrap();
        fs::write(out.path().join("notes"), "mine").unwrap();
        write_audit(out.path(), "second", JSON, &plots(&["b.svg"])).unwrap();
        assert_eq!(names(out.path()), [README, MARK, "notes", PLOTS]);
        assert_eq!(names(&out.path().join(PLOTS)), ["b.svg"]);
        assert_eq!(
            fs::read_to_string(out.path().join(README)).unwrap(),
            "second"
        );
    }

    #[test]
    fn a_folder_with_something_else_in_it_is_refused_and_left_as_it_is() {
        for (name, text) in [
            (README, "mine"),
            (MARK, "{}"),
            (MARK, "no JSON"),
            (PLOTS, ""),
        ] {
            let out = tempfile::tempdir().unwrap();
            fs::write(out.path().join(name), text).unwrap();
            let refused = write_audit(out.path(), "new", JSON, &BTreeMap::new());
            assert!(matches!(
                refused,
                Err(NetbenchesError::SomethingElse { what: "audit", .. })
            ));
            assert_eq!(fs::read_to_string(out.path().join(name)).unwrap(), text);
            assert_eq!(names(out.path()), [name]);
        }
    }
}
