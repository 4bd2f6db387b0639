//! A results directory of fwdlab, held against its own records.

use std::collections::BTreeMap;
use std::fs::{self, TryLockError};
use std::path::Path;

use fwdlab_sys::durable;

use crate::input::input;
use crate::layout::{self, name_in};
use crate::load::Loaded;
use crate::results::Results;

use super::{
    BEING_MEASURED, Finding, chain, files, links, numbers, observations, profiles, run, times,
};

/// What was found in a results directory, of fwdlab or imported, and what is left for those who know how reports are
/// made.
#[derive(Debug)]
pub struct Linted<Records> {
    /// Its records; none where they cannot be read, which is a finding.
    pub loaded: Option<Records>,
    /// README.md and what `derived/` holds, by their paths in the directory.
    pub published: BTreeMap<String, Vec<u8>>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// Holds everything in a results directory against its records, and the records against each other.
///
/// What reports say is not looked at: they are handed back.
#[must_use]
pub fn lint_directory(directory: &Path) -> Linted<Loaded> {
    let mut findings = Vec::new();
    files::lint_files(directory, &mut findings);
    let is_being_measured = is_held(directory);
    if is_being_measured {
        let sentence = "a run is measuring into this directory";
        let lock = directory.join(layout::LOCK);
        let finding = Finding::new(&BEING_MEASURED, directory, sentence);
        findings.push(finding.published(&lock, "held by a live process"));
    }
    let published = published(directory, &mut findings);
    links::lint_links(directory, &published, &mut findings);
    let loaded = match Results::load(directory) {
        Ok(loaded) => {
            run::lint_run(&loaded, &mut findings);
            times::lint_times(&loaded, &mut findings);
            numbers::lint_numbers(&loaded, &mut findings);
            profiles::lint_profiles(&loaded, &mut findings);
            // A line may be half written, and what is written last lie behind what was read first.
            if !is_being_measured {
                let warnings = loaded.warnings.iter();
                let torn = warnings.filter_map(|warning| Finding::of_warning(directory, warning));
                findings.extend(torn);
                run::lint_end(&loaded, &mut findings);
                observations::lint_observations(&loaded, &mut findings);
            }
            Some(loaded)
        }
        Err(error) => {
            findings.push(Finding::of_error(directory, &error));
            None
        }
    };
    chain::lint_chain(directory, is_being_measured, &mut findings);
    Linted {
        loaded,
        published,
        findings,
    }
}

pub(super) fn is_held(directory: &Path) -> bool {
    // Where it cannot be opened nothing is known, and the rules apply.
    input(directory, &directory.join(layout::LOCK))
        .open_file()
        .is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// README.md and the files of `derived/`; a directory without a report has none, which is no fault.
pub fn published(directory: &Path, findings: &mut Vec<Finding>) -> BTreeMap<String, Vec<u8>> {
    let derived = durable::entries(&directory.join(layout::DERIVED)).unwrap_or_default();
    let readme = directory.join(layout::README);
    let paths = derived
        .into_iter()
        .chain(fs::symlink_metadata(&readme).is_ok().then_some(readme));
    let mut published = BTreeMap::new();
    for path in paths.filter(|path| !path.is_dir()) {
        match input(directory, &path).bytes() {
            Ok(bytes) => drop(published.insert(name_in(directory, &path), bytes)),
            Err(error) => findings.push(Finding::unreadable(directory, &path, &error)),
        }
    }
    published
}
