//! What the tests of the command share: starting it, what it leaves on the host and in its results
//! directory, and going through many cases.
#![allow(dead_code, reason = "every test program uses a part of it")]
#![allow(
    clippy::print_stdout,
    reason = "a storm tells how far it is, as tests tell what they did"
)]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use testkit::{succeed, text};

pub(crate) const FWDLAB: &str = env!("CARGO_BIN_EXE_fwdlab");

pub(crate) const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Who is nobody in particular, on every system.
pub(crate) const NOBODY: u32 = 65534;

/// The program with a journal folder of the tests' own and nothing to read.
pub(crate) fn fwdlab(arguments: &[&str]) -> Command {
    let mut command = Command::new(FWDLAB);
    command
        .args(arguments)
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The path of one of the tests' own experiments, or of another of their files.
pub(crate) fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs one of the tests' own experiments.
pub(crate) fn run_command(experiment: &str, results: &Path) -> Command {
    let mut command = fwdlab(&["run", &data(&format!("{experiment}.toml")), "--results"]);
    command.arg(results);
    command
}

pub(crate) fn finish(child: Child) -> Output {
    child.wait_with_output().expect("the child was started")
}

/// Waits until something holds of what a child does, which has to live that long.
pub(crate) fn wait_for_child(what: &str, mut child: Child, holds: impl Fn() -> bool) -> Child {
    let mut has_held = false;
    testkit::wait_until(what, || {
        let has_ended = child.try_wait().is_ok_and(|status| status.is_some());
        has_held = !has_ended && holds();
        has_ended || has_held
    });
    assert!(
        has_held,
        "it ended before: {what}: {}",
        text(&finish(child))
    );
    child
}

/// The results directories of an experiment, sorted; those that are being made have no name yet.
pub(crate) fn directories(results: &Path, experiment: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(results.join(experiment));
    let mut directories: Vec<_> = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("the folder reads").path())
        .filter(|path| path.is_dir())
        .filter(|path| !file_name(path).starts_with('.'))
        .collect();
    directories.sort();
    directories
}

/// The whole lines of `trials.jsonl` so far.
pub(crate) fn records(directory: &Path) -> String {
    let text = fs::read_to_string(directory.join("trials.jsonl")).unwrap_or_default();
    let end = text.rfind('\n').map_or(0, |newline| newline + 1);
    text[..end].to_owned()
}

/// Whether the experiment's first directory has the records of a block.
pub(crate) fn has_a_block(results: &Path, experiment: &str) -> bool {
    directories(results, experiment)
        .first()
        .is_some_and(|directory| !records(directory).is_empty())
}

/// Those records that are block records, in order.
pub(crate) fn block_records(records: &str) -> Vec<serde_json::Value> {
    records_of("block", records)
}

/// Those records that are trial records, in order.
pub(crate) fn trial_records(records: &str) -> Vec<serde_json::Value> {
    records_of("trial", records)
}

fn records_of(kind: &str, records: &str) -> Vec<serde_json::Value> {
    records
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .filter(|record: &serde_json::Value| record["record"] == kind)
        .collect()
}

/// What speaks against the trials that are invalid.
pub(crate) fn invalid_reasons(records: &str) -> Vec<serde_json::Value> {
    records
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .filter(|record: &serde_json::Value| record["record"] == "trial")
        .flat_map(|trial| trial["invalid"].as_array().cloned().unwrap_or_default())
        .collect()
}

/// Proves that every block of so many was measured and counts, each once, and was reported.
pub(crate) fn assert_complete(directory: &Path, blocks: usize, moment: &str) {
    let records = records(directory);
    let mut measured: Vec<_> = block_records(&records)
        .iter()
        .map(|record| record["block"].as_u64().expect("a number"))
        .collect();
    measured.sort_unstable();
    measured.dedup();
    let planned: Vec<_> = (1..=blocks as u64).collect();
    assert_eq!(measured, planned, "{moment}: {records}");
    let mut observed = 0;
    for entry in fs::read_dir(directory).expect("it is there") {
        let path = entry.expect("the folder reads").path();
        if path.extension().is_some_and(|ending| ending == "pps") {
            let observations = fs::read_to_string(&path).expect("text");
            assert_eq!(observations.lines().count(), blocks, "{moment}: {path:?}");
            observed += 1;
        }
    }
    // Both of the tests' own experiments have two variants and one address family.
    assert_eq!(observed, 2, "{moment}");
    for name in ["finished.json", "README.md"] {
        assert!(directory.join(name).is_file(), "{moment}: no {name}");
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().expect("it has a name");
    name.to_string_lossy().into_owned()
}

/// The process in the name of one of fwdlab's network namespaces.
fn process_of(namespace: &str) -> Option<&str> {
    namespace.strip_prefix("fwdlab-")?.split('-').next()
}

fn namespaces() -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The network namespaces of one process.
pub(crate) fn namespaces_of(pid: u32) -> Vec<String> {
    let pid = pid.to_string();
    let mut names = namespaces();
    names.retain(|name| process_of(name) == Some(&pid));
    names
}

/// The network namespaces of runs that are gone; others may be measuring on this machine.
pub(crate) fn leftovers() -> Vec<String> {
    let mut names = namespaces();
    names.retain(|name| process_of(name).is_some_and(|pid| !Path::new("/proc").join(pid).exists()));
    names
}

/// What of the host a run could leave changed: its sysctls, links, rulesets, network namespaces and the
/// mounts that keep namespaces alive; each by its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Host(BTreeMap<String, String>);

/// What the kernel counts, and nobody sets.
const COUNTED: &[&str] = &["/proc/sys/net/netfilter/nf_conntrack_count"];

impl Host {
    pub(crate) fn now() -> Self {
        let mut seen = BTreeMap::new();
        sysctls(Path::new("/proc/sys/net"), &mut seen);
        for command in [
            &["ip", "-details", "-oneline", "link", "show"][..],
            &["nft", "--stateless", "list", "ruleset"],
        ] {
            let output = succeed(Command::new(command[0]).args(&command[1..]));
            seen.insert(
                command.join(" "),
                String::from_utf8_lossy(&output.stdout).into_owned(),
            );
        }
        let mut own: Vec<_> = namespaces();
        own.retain(|name| process_of(name).is_none());
        seen.insert("network namespaces".into(), own.join(" "));
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("procfs is mounted");
        let of_namespaces = mounts
            .lines()
            .filter(|line| line.contains(" - nsfs ") && !line.contains("/fwdlab-"));
        seen.insert(
            "mounts of namespaces".into(),
            of_namespaces.collect::<Vec<_>>().join("\n"),
        );
        Self(seen)
    }

    /// Proves that the host is as it was; what a module that was loaded meanwhile brings is new, not
    /// changed.
    pub(crate) fn assert_unchanged(&self, moment: &str) {
        let now = Self::now();
        let changed: Vec<_> = self
            .0
            .iter()
            .filter(|(name, was)| now.0.get(*name) != Some(was))
            .map(|(name, was)| format!("{name}: was {was:?} and is {:?}", now.0.get(name)))
            .collect();
        assert_eq!(changed, Vec::<String>::new(), "{moment}");
    }

    /// How many sysctls are compared.
    pub(crate) fn sysctls(&self) -> usize {
        self.0.keys().filter(|name| name.starts_with('/')).count()
    }
}

/// Every sysctl below a folder that has a value to read.
fn sysctls(folder: &Path, seen: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if path.is_dir() {
            sysctls(&path, seen);
        } else if !COUNTED.contains(&name.as_str())
            && let Ok(value) = fs::read_to_string(&path)
        {
            seen.insert(name, value);
        }
    }
}

/// A library of the tests' own, to be put before the system's in a run.
pub(crate) struct Preload {
    folder: tempfile::TempDir,
}

impl Preload {
    /// Builds `tests/data/<name>.c`.
    pub(crate) fn build(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-o"]);
        compiler.arg(folder.path().join("preload.so"));
        succeed(compiler.arg(data(&format!("{name}.c"))));
        Self { folder }
    }

    /// A file beside the library.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn put_before<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("LD_PRELOAD", self.folder.path().join("preload.so"))
    }
}

/// Goes through all cases, also past those that fail, and tells how far it is; a case returns what kind
/// it was.
pub(crate) fn storm(what: &str, cases: &[usize], mut case: impl FnMut(usize) -> String) {
    let mut course = Course::of(what, cases.len());
    for &number in cases {
        course.note(number, catch_unwind(AssertUnwindSafe(|| case(number))));
    }
    course.end();
}

/// Goes through all cases as [`storm`] does, some at a time: each lane has what it needs for itself.
pub(crate) fn storm_in_lanes<L>(
    what: &str,
    cases: &[usize],
    lanes: usize,
    lane: impl Fn() -> L + Sync,
    case: impl Fn(&L, usize) -> String + Sync,
) {
    let course = Mutex::new(Course::of(what, cases.len()));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..lanes.min(cases.len()) {
            scope.spawn(|| {
                let own = lane();
                while let Some(&number) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let told = catch_unwind(AssertUnwindSafe(|| case(&own, number)));
                    course
                        .lock()
                        .expect("nobody panics with it")
                        .note(number, told);
                }
            });
        }
    });
    course.into_inner().expect("nobody panics with it").end();
}

/// How far a storm is.
struct Course<'a> {
    what: &'a str,
    start: Instant,
    all: usize,
    done: usize,
    kinds: BTreeMap<String, usize>,
    failed: Vec<usize>,
}

impl<'a> Course<'a> {
    fn of(what: &'a str, all: usize) -> Self {
        Self {
            what,
            start: Instant::now(),
            all,
            done: 0,
            kinds: BTreeMap::new(),
            failed: Vec::new(),
        }
    }

    /// Takes note of what kind a case was, unless it failed.
    fn note(&mut self, number: usize, told: thread::Result<String>) {
        let told = if let Ok(kind) = told {
            *self.kinds.entry(kind.clone()).or_default() += 1;
            kind
        } else {
            self.failed.push(number);
            "FAILED".to_owned()
        };
        self.done += 1;
        let seconds = self.start.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "some hundred cases")]
        let left_min = seconds / self.done as f64 * (self.all - self.done) as f64 / 60.0;
        println!(
            "{} of {}: {} {number}: {told}; {} failed, about {left_min:.0} min left",
            self.done,
            self.all,
            self.what,
            self.failed.len()
        );
    }

    /// Tells what kinds there were.
    fn end(self) {
        println!(
            "{} x {} in {:.1} min, {} failed:",
            self.all,
            self.what,
            self.start.elapsed().as_secs_f64() / 60.0,
            self.failed.len()
        );
        for (kind, number) in self.kinds {
            println!("  {number:4} {kind}");
        }
        assert_eq!(self.failed, Vec::<usize>::new(), "these failed");
    }
}
