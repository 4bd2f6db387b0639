//! Files that could not be read, and names that act.

use std::collections::BTreeSet;
use std::iter;
use std::path::Path;

use fwdlab_archive::lint::{
    Evidence, Finding, HOSTILE_NAME, NOT_OF_ITS_FORM, UNKNOWN_FILE, UNREADABLE, acts,
};

use crate::lint::LINES_NOT_UNDERSTOOD;
use crate::{ArchiveFile, ArchiveTree, Content, FileKind, Outcome, Problem};

/// Of the lines that are not understood so many are evidence.
const LINES_SHOWN: usize = 3;

pub(super) fn lint_files(tree: &ArchiveTree, findings: &mut Vec<Finding>) {
    let published = published(tree);
    let mut hostile = BTreeSet::new();
    let mut folder = None;
    for (index, file) in tree.files.iter().enumerate() {
        if let Outcome::Failed(problem) = &file.outcome
            && (names_its_form(file, problem) || published.contains(&index))
        {
            findings.push(failed(tree, file, problem));
        }
        findings.extend(not_understood(tree, file));
        // What lies in one folder stands together, and a folder's name is one finding, however much lies in it.
        let of_file = file.path.parent();
        let folders = (of_file != folder).then(|| of_file.into_iter().flat_map(Path::ancestors));
        let names = iter::once(file.path.as_path()).chain(folders.into_iter().flatten());
        hostile.extend(names.filter(|path| has_hostile_name(path)));
        folder = of_file;
    }
    for path in hostile {
        let path = tree.root.join(path);
        let says = format!("{:?}", path.file_name().unwrap_or_default());
        let sentence = format!("the name {says} is not one to be shown as it is");
        let directory = path.parent().unwrap_or(&tree.root);
        let finding = Finding::new(&HOSTILE_NAME, directory, sentence);
        findings.push(finding.published(&path, says));
    }
}

/// The files in folders that the archive's form tells from any other folder: by their place, or by runs in them.
fn published(tree: &ArchiveTree) -> BTreeSet<usize> {
    let folders = tree.folders.iter();
    let published =
        folders.filter(|folder| folder.place.label.is_some() || !folder.groups.is_empty());
    let members = published.flat_map(|folder| folder.members.iter().copied());
    members.collect()
}

/// Whether a file promises something wherever it lies.
fn names_its_form(file: &ArchiveFile, problem: &Problem) -> bool {
    problem.is_unreadable || file.kind != FileKind::Unnamed
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
    let evidence = Evidence::of_line(&path, problem.line, message);
    Finding::new(rule, directory, sentence).with(evidence)
}

/// The lines of a log that are in no number.
fn not_understood(tree: &ArchiveTree, file: &ArchiveFile) -> Option<Finding> {
    let problem = file.left_out()?;
    let Outcome::Read(Content::Log(log)) = &file.outcome else {
        return None;
    };
    let path = tree.root.join(&file.path);
    let directory = path.parent().unwrap_or(&tree.root);
    let sentence = format!("{} has {}", file.path.display(), problem.message);
    let finding = Finding::new(&LINES_NOT_UNDERSTOOD, directory, sentence);
    let lines = log.unknown.iter().take(LINES_SHOWN);
    Some(lines.fold(finding, |finding, unknown| {
        finding.with(Evidence::published(
            &path,
            Some(unknown.line),
            unknown.text.as_str(),
        ))
    }))
}

fn has_hostile_name(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_str().is_none_or(|name| name.chars().any(acts)))
}
