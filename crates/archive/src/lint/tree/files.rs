//! Files that could not be read, and names that act.

use std::path::Path;

use crate::lint::files::acts;
use crate::lint::{Evidence, Finding, HOSTILE_NAME, NOT_OF_ITS_FORM, UNREADABLE};
use crate::netbenches::{ArchiveTree, Outcome};

pub(super) fn lint_files(tree: &ArchiveTree, findings: &mut Vec<Finding>) {
    for file in &tree.files {
        let path = tree.root.join(&file.path);
        let directory = path.parent().unwrap_or(&tree.root);
        let name = file.path.display();
        if let Outcome::Failed(problem) = &file.outcome {
            let rule = if problem.is_unreadable {
                &UNREADABLE
            } else {
                &NOT_OF_ITS_FORM
            };
            let sentence = format!("{name} is no {}: {}", file.kind.as_str(), problem.message);
            let evidence = Evidence::published(&path, problem.line, &problem.message);
            findings.push(Finding::new(rule, directory, sentence).with(evidence));
        }
        if has_hostile_name(&file.path) {
            let says = format!("{:?}", file.path.file_name().unwrap_or_default());
            let sentence = format!("the name {says} is not one to be shown as it is");
            let evidence = Evidence::published(&path, None, says);
            findings.push(Finding::new(&HOSTILE_NAME, directory, sentence).with(evidence));
        }
    }
}

fn has_hostile_name(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_str().is_none_or(|name| name.chars().any(acts)))
}
