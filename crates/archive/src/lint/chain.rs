//! The chain of a run held against its files: the first block that is not as it was written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use fwdlab_model::sha256;
use fwdlab_sys::durable;
use serde::Deserialize;

use crate::chain::{FileLines, FinishedFile, Link, Seal, is_whole, sha256_of_file};
use crate::error::{ArchiveError, ArchiveWarning, Place, READ_FILE};
use crate::input::input;
use crate::layout::{self, name_in};
use crate::load::{parse_json, read_json};

use super::directory::is_held;
use super::{
    BLOCK_CHANGED, BLOCK_UNRECORDED, CHAIN_BROKEN, Evidence, FINISHED_RUN_CHANGED, Finding, Rule,
};

/// So many parts of a block are named; a run that lost a folder differs in hundreds.
const NAMED_MAX: usize = 4;

/// What is no longer as it was written in a directory, by its chain alone.
#[must_use]
pub fn lint_changes(directory: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    lint_chain(directory, is_held(directory), &mut findings);
    findings
}

/// Holds a directory against its chain; one that an earlier version has written has none, which is no fault.
///
/// Files are read one after the other, and of `trials.jsonl` the lines of a block. What is being measured is looked at as
/// far as it is written.
pub(super) fn lint_chain(directory: &Path, is_being_measured: bool, findings: &mut Vec<Finding>) {
    // Written last of all, and so read first.
    let end = End::read(directory);
    let path = directory.join(layout::CHAIN);
    if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        let is_promised = end.as_ref().is_some_and(|end| end.seal != Seal::Missing)
            || read_json(directory, &directory.join(layout::RESOLVED))
                .is_ok_and(|Promise { chain }: Promise| chain);
        if is_promised {
            let sentence = "chain.jsonl is missing, and the run was started with it";
            let finding = Finding::new(&CHAIN_BROKEN, directory, sentence);
            findings.push(finding.published(&path, "is not there"));
        }
        return;
    }
    let mut walk = Walk {
        directory,
        chain: &path,
        is_being_measured,
        end: end.as_ref(),
        hashes: BTreeMap::new(),
        named: BTreeSet::new(),
        findings,
    };
    let is_sound = match walk.blocks() {
        Ok(is_sound) => is_sound,
        Err(error) => {
            let finding = Finding::of_error(directory, &error);
            walk.findings.push(finding);
            false
        }
    };
    if let Some(end) = &end {
        walk.end(end, is_sound);
    }
}

/// What `resolved.json` says of the chain.
#[derive(Deserialize)]
struct Promise {
    #[serde(default)]
    chain: bool,
}

/// What `finished.json` says of the chain.
struct End {
    seal: Seal,
    /// None where it does not read, or its seal is not intact.
    file: Option<FinishedFile>,
}

impl End {
    fn read(directory: &Path) -> Option<Self> {
        let path = directory.join(layout::FINISHED);
        if fs::symlink_metadata(&path).is_err() {
            return None;
        }
        let text = input(directory, &path).text().unwrap_or_default();
        let seal = Seal::of(&text);
        let file = serde_json::from_str(&text).ok();
        Some(Self {
            seal,
            file: file.filter(|_| seal == Seal::Intact),
        })
    }
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Sha256(String),
    Missing,
    Unreadable,
}

/// A part of what was written that is not as it was.
struct Part {
    name: String,
    published: Evidence,
    derived: Evidence,
}

struct Walk<'a> {
    directory: &'a Path,
    chain: &'a Path,
    is_being_measured: bool,
    end: Option<&'a End>,
    /// What became of the files that many blocks rest on, and of those that do not read.
    hashes: BTreeMap<String, Content>,
    /// The files that the chain names.
    named: BTreeSet<String>,
    findings: &'a mut Vec<Finding>,
}

impl Walk<'_> {
    /// Holds one block after the other against its line, up to the first that differs; whether none does.
    fn blocks(&mut self) -> Result<bool, ArchiveError> {
        let failed = |path| ArchiveError::io(path, READ_FILE);
        let trials = self.directory.join(layout::TRIALS);
        let mut lines = FileLines::open(self.directory, self.chain).map_err(failed(self.chain))?;
        let mut blocks = Blocks::open(self.directory, &trials).map_err(failed(&trials))?;
        let mut last = None;
        let mut number = 0;
        let mut next = lines.next().map_err(failed(self.chain))?;
        while let Some(line) = next {
            number += 1;
            next = lines.next().map_err(failed(self.chain))?;
            if !is_whole(&line) {
                if self.end.is_some() {
                    self.broken(number, "the last line of chain.jsonl was cut short");
                    return Ok(false);
                }
                self.torn(number, line.len());
                break;
            }
            let link: Link = parse_json(&Place::line(self.chain, number), &line)?;
            let hash = sha256(&line);
            let before = last.replace(hash);
            if let Some(why) = self.contradiction(number, &link, before, &last, next.as_deref()) {
                self.broken(number, why);
                return Ok(false);
            }
            let Some(block) = blocks.next().map_err(failed(&trials))? else {
                return Ok(self.without_records(number, &link, next.is_none()));
            };
            let parts = self.differing(number, &link, &block, &trials)?;
            if !parts.is_empty() {
                let title = link.title();
                let sentence = format!(
                    "{title}, is not as it was written; what differs: {}",
                    named(&parts)
                );
                self.push(&BLOCK_CHANGED, sentence, parts);
                return Ok(false);
            }
            self.named.extend(link.files.into_keys());
        }
        if self.is_being_measured {
            return Ok(true);
        }
        if let Some(block) = blocks.next().map_err(failed(&trials))? {
            let why = format!("chain.jsonl has no line for {}", block.title());
            self.broken(number, why);
            return Ok(false);
        }
        let end = self.end.and_then(|end| end.file.as_ref());
        if number == 0 && end.is_some_and(|file| file.last_link.is_some()) {
            let why = "chain.jsonl has no line, and finished.json names its last one";
            self.broken(number, why);
            return Ok(false);
        }
        Ok(true)
    }

    /// Why a line cannot be that of this place in the chain, by the line before and what comes behind it.
    fn contradiction(
        &self,
        number: usize,
        link: &Link,
        before: Option<String>,
        hash: &Option<String>,
        next: Option<&[u8]>,
    ) -> Option<String> {
        if link.before != before {
            return Some("the first line of chain.jsonl names one before it".to_owned());
        }
        match next {
            Some(next) => {
                // What does not read is said when its turn comes.
                let next: Link = serde_json::from_slice(next).ok()?;
                (next.before != *hash).then(|| {
                    format!(
                        "lines {number} and {} of chain.jsonl do not belong together: one of them was changed, or \
                         lines were taken out between them",
                        number + 1
                    )
                })
            }
            None => {
                let end = self.end?.file.as_ref()?;
                (end.last_link != *hash).then(|| {
                    "the last line of chain.jsonl is not the one that finished.json names: it was changed, or lines \
                     behind it were taken out"
                        .to_owned()
                })
            }
        }
    }

    /// The parts of a block that are not as its line has them.
    fn differing(
        &mut self,
        number: usize,
        link: &Link,
        block: &Block,
        trials: &Path,
    ) -> Result<Vec<Part>, ArchiveError> {
        let chain = self.chain.to_owned();
        let derived = |key: &str, value: &str| {
            Evidence::derived(&chain, Some(number), format!("\"{key}\":\"{value}\""))
        };
        let lines = format!("lines {} to {} of trials.jsonl", block.first, block.last);
        if (block.session, block.block, block.attempt) != (link.session, link.block, link.attempt) {
            return Ok(vec![Part {
                name: format!("{lines}, which are of {}", block.title()),
                published: Evidence::published(trials, Some(block.last), block.title()),
                derived: Evidence::derived(&chain, Some(number), link.title()),
            }]);
        }
        let mut parts = Vec::new();
        if block.records != link.records {
            parts.push(Part {
                name: lines,
                published: Evidence::published(
                    trials,
                    Some(block.first),
                    sha256_text(&block.records),
                ),
                derived: derived("records", &link.records),
            });
        }
        for required in self.required(link) {
            if !link.files.contains_key(&required) {
                let place = Place::line(&chain, number);
                let what = format!("it does not name {required}");
                return Err(ArchiveError::damaged(place, what));
            }
        }
        for (name, hash) in &link.files {
            if !is_of_run(name) {
                let place = Place::line(&chain, number);
                let what = format!("{name:?} is no file of a run");
                return Err(ArchiveError::damaged(place, what));
            }
            parts.extend(self.differing_file(name, hash, derived(name, hash)));
        }
        Ok(parts)
    }

    fn required(&self, link: &Link) -> Vec<String> {
        let session = layout::session(self.directory, link.session);
        let slices = layout::slices(self.directory, link.block, link.attempt);
        let names = [layout::EXPERIMENT, layout::RESOLVED, layout::PLAN].map(str::to_owned);
        let own = [session, slices].map(|path| name_in(self.directory, &path));
        names.into_iter().chain(own).collect()
    }

    fn differing_file(&mut self, name: &str, hash: &str, derived: Evidence) -> Option<Part> {
        let path = self.directory.join(name);
        let (name, says) = match self.content(name, &path) {
            Content::Sha256(found) if found == hash => return None,
            Content::Sha256(found) => (name.to_owned(), sha256_text(&found)),
            // A run may be published without its profiles.
            Content::Missing if name.starts_with(layout::PROFILES) => return None,
            Content::Missing => (format!("{name} (not there)"), "is not there".to_owned()),
            // Which is a finding already.
            Content::Unreadable => return None,
        };
        Some(Part {
            name,
            published: Evidence::published(&path, None, says),
            derived,
        })
    }

    fn content(&mut self, name: &str, path: &Path) -> Content {
        if let Some(content) = self.hashes.get(name) {
            return content.clone();
        }
        let content = match sha256_of_file(self.directory, path) {
            Ok(hash) => Content::Sha256(hash),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Content::Missing,
            Err(error) => {
                let finding = Finding::unreadable(self.directory, path, &error);
                self.findings.push(finding);
                Content::Unreadable
            }
        };
        let is_of_one_block = layout::attempt_of(name.rsplit('/').next().unwrap_or(name)).is_some();
        if !is_of_one_block || content == Content::Unreadable {
            self.hashes.insert(name.to_owned(), content.clone());
        }
        content
    }

    /// A line whose block has no records, which is sound where a run was killed between both.
    fn without_records(&mut self, number: usize, link: &Link, is_last: bool) -> bool {
        if self.is_being_measured {
            return true;
        }
        let is_of_a_kill = is_last && self.end.is_none();
        let rule = if is_of_a_kill {
            &BLOCK_UNRECORDED
        } else {
            &BLOCK_CHANGED
        };
        let sentence = format!(
            "{}, has a line in chain.jsonl, and trials.jsonl does not have its records",
            link.title()
        );
        let trials = self.directory.join(layout::TRIALS);
        let part = Part {
            name: String::new(),
            published: Evidence::published(&trials, None, "no record of it"),
            derived: Evidence::derived(self.chain, Some(number), link.title()),
        };
        self.push(rule, sentence, vec![part]);
        is_of_a_kill
    }

    /// Holds a finished run against what it was finished with; its blocks are, where the chain is sound.
    fn end(&mut self, end: &End, is_sound: bool) {
        let path = self.directory.join(layout::FINISHED);
        let Some(file) = &end.file else {
            let why = match end.seal {
                Seal::Missing => "has no seal",
                Seal::Intact | Seal::Broken => "is not as it was written",
            };
            let sentence = format!("finished.json {why}");
            let finding = Finding::new(&FINISHED_RUN_CHANGED, self.directory, sentence);
            let says = "the text before the seal has another SHA-256 than the seal";
            self.findings.push(finding.published(&path, says));
            return;
        };
        if !is_sound {
            return;
        }
        let mut parts = Vec::new();
        for (name, hash) in &file.files {
            if is_of_run(name) || name == layout::TRIALS {
                let derived = Evidence::derived(&path, None, format!("\"{name}\": \"{hash}\""));
                parts.extend(self.differing_file(name, hash, derived));
            }
        }
        if !parts.is_empty() {
            let sentence = format!(
                "the run is not as it was finished; what differs: {}",
                named(&parts)
            );
            self.push(&FINISHED_RUN_CHANGED, sentence, parts);
        }
        self.named.extend(file.files.keys().cloned());
        let added = self.added();
        if !added.is_empty() {
            let sentence = format!("the run was finished without {}", named(&added));
            self.push(&FINISHED_RUN_CHANGED, sentence, added);
        }
    }

    /// Sessions and profiles that nothing of the run names; slices that nothing names have a rule of their own.
    fn added(&self) -> Vec<Part> {
        let mut added = Vec::new();
        for folder in [layout::SESSIONS, layout::PROFILES] {
            let there = durable::entries(&self.directory.join(folder)).unwrap_or_default();
            for path in there {
                let name = name_in(self.directory, &path);
                if is_of_run(&name) && !self.named.contains(&name) {
                    added.push(Part {
                        published: Evidence::published(&path, None, "is there"),
                        derived: Evidence::derived(self.chain, None, "does not name it"),
                        name,
                    });
                }
            }
        }
        added
    }

    fn broken(&mut self, number: usize, sentence: impl Into<String>) {
        let line = (number > 0).then_some(number);
        let evidence = Evidence::of_line(self.chain, line, "no line");
        let finding = Finding::new(&CHAIN_BROKEN, self.directory, sentence);
        self.findings.push(finding.with(evidence));
    }

    fn torn(&mut self, number: usize, bytes: usize) {
        if self.is_being_measured {
            return;
        }
        let place = Place::line(self.chain, number);
        let warning = ArchiveWarning::TornLine { place, bytes };
        self.findings
            .extend(Finding::of_warning(self.directory, &warning));
    }

    fn push(&mut self, rule: &'static Rule, sentence: String, parts: Vec<Part>) {
        let finding = Finding::new(rule, self.directory, sentence);
        let shown = parts.into_iter().take(NAMED_MAX);
        self.findings.push(shown.fold(finding, |finding, part| {
            finding.with(part.published).with(part.derived)
        }));
    }
}

/// The names of parts, as far as there are not too many.
fn named(parts: &[Part]) -> String {
    let shown = parts.iter().take(NAMED_MAX);
    let shown: Vec<&str> = shown.map(|part| part.name.as_str()).collect();
    let shown = shown.join(", ");
    match parts.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn sha256_text(hash: &str) -> String {
    format!("SHA-256 {hash}")
}

/// Whether a line of the chain may name a file: no other is ever opened.
fn is_of_run(name: &str) -> bool {
    match name.split_once('/') {
        None => [layout::EXPERIMENT, layout::RESOLVED, layout::PLAN].contains(&name),
        Some((layout::SESSIONS, file)) => layout::is_session(file),
        Some((layout::BLOCKS, file)) => layout::is_slices(file),
        Some((layout::PROFILES, file)) => !file.contains('/') && layout::is_profile(file),
        Some(_) => false,
    }
}

/// The lines of an attempt in `trials.jsonl`.
struct Block {
    session: u32,
    block: u32,
    attempt: u32,
    /// Its first line and its last, from 1.
    first: usize,
    last: usize,
    /// SHA-256 of all of them.
    records: String,
}

impl Block {
    fn title(&self) -> String {
        format!("block {}, attempt {}", self.block, self.attempt)
    }
}

/// The attempts in `trials.jsonl`, one after the other; only the lines of one are held.
struct Blocks {
    lines: FileLines,
    number: usize,
}

impl Blocks {
    fn open(dir: &Path, path: &Path) -> io::Result<Self> {
        let lines = FileLines::open(dir, path)?;
        Ok(Self { lines, number: 0 })
    }

    fn next(&mut self) -> io::Result<Option<Block>> {
        /// What a line says of itself; what else is in it may be damaged.
        #[derive(Deserialize)]
        struct Mark {
            record: String,
            session: u32,
            block: u32,
            attempt: u32,
        }
        let first = self.number + 1;
        let mut bytes = Vec::new();
        while let Some(line) = self.lines.next()?.filter(|line| is_whole(line)) {
            self.number += 1;
            bytes.extend_from_slice(&line);
            let mark = serde_json::from_slice(&line).ok();
            if let Some(mark) = mark.filter(|mark: &Mark| mark.record == "block") {
                return Ok(Some(Block {
                    session: mark.session,
                    block: mark.block,
                    attempt: mark.attempt,
                    first,
                    last: self.number,
                    records: sha256(&bytes),
                }));
            }
        }
        Ok(None)
    }
}
