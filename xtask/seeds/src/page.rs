//! The tables in their page, each between its marks.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// How the line begins that a table stands below.
const MARK: &str = "<!-- seeds: ";

/// A table and where it stands.
pub(crate) struct Table {
    /// The name in its marks.
    pub(crate) name: &'static str,
    /// Markdown without a line end behind it.
    pub(crate) text: String,
}

/// Puts every table between its marks.
///
/// # Errors
/// A mark is missing, or the page cannot be read or written.
pub(crate) fn put_into(document: &Path, tables: &[Table]) -> Result<()> {
    let shown = document.display().to_string();
    let text = fs::read_to_string(document).with_context(|| shown.clone())?;
    fs::write(document, filled(&text, tables)?).with_context(|| shown)
}

/// Fails where the page shows other tables.
///
/// # Errors
/// It does, or cannot be read.
pub(crate) fn check(document: &Path, tables: &[Table]) -> Result<()> {
    let shown = document.display().to_string();
    let text = fs::read_to_string(document).with_context(|| shown.clone())?;
    for table in tables {
        if filled(&text, std::slice::from_ref(table))? != text {
            bail!(
                "{shown}: {}: another table than the data give; run cargo xtask seeds",
                table.name
            );
        }
    }
    // Between marks of another name a table of long ago would stand for ever.
    let marks = text.matches(MARK).count();
    if marks != tables.len() {
        bail!(
            "{shown}: {marks} tables, not {}; remove what is not made any more",
            tables.len()
        );
    }
    Ok(())
}

fn filled(text: &str, tables: &[Table]) -> Result<String> {
    let mut text = text.to_owned();
    for Table { name, text: table } in tables {
        let (begin, end) = (
            format!("{MARK}{name} -->\n"),
            format!("<!-- end of {name} -->"),
        );
        let parts = text
            .split_once(&begin)
            .and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
        let (before, after) = parts.with_context(|| {
            format!("no lines {begin} and {end} to put a table between; add them")
        })?;
        text = format!("{before}{begin}{table}\n{end}{after}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_one_before_it() {
        let table = |text: &str| Table {
            name: "a",
            text: text.to_owned(),
        };
        let page = "x\n<!-- seeds: a -->\n| old |\n<!-- end of a -->\ny\n";
        let page = filled(page, &[table("| new |")]).unwrap();
        assert_eq!(
            page,
            "x\n<!-- seeds: a -->\n| new |\n<!-- end of a -->\ny\n"
        );
        assert_eq!(filled(&page, &[table("| new |")]).unwrap(), page);
        assert!(filled("x", &[table("")]).is_err());
    }

    #[test]
    fn the_page_shows_what_the_data_give() {
        let folder = testkit::require_shared!("corpus/netbenches");
        let tables = crate::seeds::tables(&crate::archive::Archive::new(&folder)).unwrap();
        check(&crate::repository().join("docs/statistics.md"), &tables).unwrap();
    }
}
