//! Files that could not be read, and names that act.

use std::collections::BTreeSet;
use std::path::Path;

use crate::lint::files::acts;
use crate::lint::{Evidence, Finding, HOSTILE_NAME, NOT_OF_ITS_FORM, UNKNOWN_FILE, UNREADABLE};
use crate::netbenches::{ArchiveFile, ArchiveTree, FileKind, Outcome, Problem};

pub(super) fn lint_files(tree: &ArchiveTree, findings: &mut Vec<Finding>) {
    let mut hostile = BTreeSet::new();
    for file in &tree.files {
        if let Outcome::Failed(problem) = &file.outcome {
            findings.push(failed(tree, file, problem));
        }
        // A folder's name is one finding, however much lies in it.
        let names = file.path.ancestors().filter(|path| has_hostile_name(path));
        hostile.extend(names);
    }
    for path in hostile {
        let path = tree.root.join(path);
        let says = format!("{:?}", path.file_name().unwrap_or_default());
        let sentence = format!("the name {says} is not one to be shown as it is");
        let directory = path.parent().unwrap_or(&tree.root);
        let evidence = Evidence::published(&path, None, says);
        findings.push(Finding::new(&HOSTILE_NAME, directory, sentence).with(evidence));
    }
}

fn failed(tree: &ArchiveTree, file: &ArchiveFile, problem: &Problem) -> Finding {
    let path = tree.root.join(&file.path);
    let directory = path.parent().unwrap_or(&tree.root);
    let name = file.path.display();
    let message = &problem.message;
    let (rule, sentence) = match file.kind {
        _ if problem.is_unreadable => (&UNREADABLE, format!("{name} {message}")),
        // Its name promises nothing.
        FileKind::Unnamed => (&UNKNOWN_FILE, format!("{name} is {message}")),
        kind => (
            &NOT_OF_ITS_FORM,
            format!("{name} is no {}: {message}", kind.as_str()),
        ),
    };
    let evidence = Evidence::published(&path, problem.line, message);
    Finding::new(rule, directory, sentence).with(evidence)
}

fn has_hostile_name(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_str().is_none_or(|name| name.chars().any(acts)))
}
