//! Whichever effect of a run fails, it says so, leaves the host as it was, and the same command goes
//! on from there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const EXPERIMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/smallest.toml");
const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fail_nth.c");

/// How many of the effects fail in the ordinary tests; all of them where `FWDLAB_SOAK` is set.
const SAMPLE: usize = 25;

struct Shim {
    _folder: tempfile::TempDir,
    library: PathBuf,
    log: PathBuf,
}

impl Shim {
    fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("fail_nth.so");
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-o"])
            .arg(&library)
            .arg(SHIM)
            .status()
            .unwrap();
        assert!(status.success());
        Self {
            log: folder.path().join("log"),
            library,
            _folder: folder,
        }
    }

    /// Runs the experiment with its n-th effect failing; tells how many effects there were and which
    /// one failed.
    fn run(&self, results: &Path, nth: usize) -> (Output, usize, String) {
        let _ = fs::remove_file(&self.log);
        let output = command(results)
            .env("LD_PRELOAD", &self.library)
            .env("FAIL_NTH", nth.to_string())
            .env("FAIL_LOG", &self.log)
            .output()
            .unwrap();
        let log = fs::read_to_string(&self.log)
            .unwrap_or_else(|error| panic!("effect {nth}: {error}\n{}", text(&output)));
        let (effects, failed) = log.trim().split_once(' ').unwrap();
        (output, effects.parse().unwrap(), failed.to_owned())
    }
}

fn command(results: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fwdlab"));
    command.args(["run", EXPERIMENT, "--results"]).arg(results);
    command
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null());
    command
}

fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{}\n{stdout}{stderr}", output.status)
}

/// What of the host a run could leave changed: interfaces, namespaces, its own rulesets and sysctls.
fn host() -> BTreeMap<&'static str, String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let names = |path: &str| {
        let mut names: Vec<String> = fs::read_dir(path)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names.join(" ")
    };
    let ruleset = Command::new("nft").args(["list", "ruleset"]).output();
    BTreeMap::from([
        ("interfaces", names("/sys/class/net")),
        ("ip_forward", read("/proc/sys/net/ipv4/ip_forward")),
        ("forwarding", read("/proc/sys/net/ipv6/conf/all/forwarding")),
        (
            "ruleset",
            ruleset.map_or_else(
                |_| String::new(),
                |output| String::from_utf8_lossy(&output.stdout).into_owned(),
            ),
        ),
    ])
}

fn leftovers() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/run/netns") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            let pid = name
                .strip_prefix("fwdlab-")
                .and_then(|rest| rest.split('-').next());
            pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
        })
        .collect()
}

/// The only directory of the experiment's, if there is one.
fn directory(results: &Path) -> Option<PathBuf> {
    let mut directories: Vec<_> = fs::read_dir(results.join("smallest"))
        .ok()?
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'))
        .collect();
    assert!(directories.len() <= 1, "{directories:?}");
    directories.pop()
}

fn whole_lines(directory: &Path) -> String {
    let text = fs::read_to_string(directory.join("trials.jsonl")).unwrap_or_default();
    text[..text.rfind('\n').map_or(0, |end| end + 1)].to_owned()
}

/// A sample of 1..=count that is the same in every run, the first and the last among them.
fn sample(count: usize, size: usize) -> Vec<usize> {
    let size = size.min(count).max(2);
    (0..size)
        .map(|place| 1 + place * (count - 1) / (size - 1))
        .collect()
}

#[test]
fn whichever_effect_fails_the_run_goes_on_afterwards() {
    testkit::require_root!();
    testkit::require_tool!("nft", "cc");
    let shim = Shim::build();
    let before = host();
    let scratch = tempfile::tempdir().unwrap();
    let (output, effects, _) = shim.run(scratch.path(), 0);
    assert!(output.status.success(), "{}", text(&output));
    assert!(effects > 100, "{effects} effects were seen");

    let all = env::var_os("FWDLAB_SOAK").is_some();
    let chosen = sample(effects, if all { effects } else { SAMPLE });
    let mut outcomes: BTreeMap<(String, i32), usize> = BTreeMap::new();
    for nth in &chosen {
        let scratch = tempfile::tempdir().unwrap();
        let (output, _, failed) = shim.run(scratch.path(), *nth);
        let what = format!("effect {nth} of {effects} ({failed})");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        let code = code.unwrap_or_else(|| panic!("{what}: {}", text(&output)));
        assert!(!stderr.contains("panicked"), "{what}: {}", text(&output));
        assert!(
            code == 0 || stderr.contains("error: "),
            "{what}: {}",
            text(&output)
        );
        assert_eq!(host(), before, "{what}");

        let records = directory(scratch.path()).map(|path| whole_lines(&path));
        let plan = directory(scratch.path()).map(|path| fs::read(path.join("plan.json")).unwrap());
        let is_finished = directory(scratch.path())
            .is_some_and(|directory| directory.join("finished.json").is_file());
        if code != 0 && is_finished {
            // All is measured; what failed is the report, and the message says how to make it again.
            assert!(
                stderr.contains("fwdlab report "),
                "{what}: {}",
                text(&output)
            );
            let again = Command::new(env!("CARGO_BIN_EXE_fwdlab"))
                .arg("report")
                .arg(directory(scratch.path()).unwrap())
                .output()
                .unwrap();
            assert!(again.status.success(), "{what}, then: {}", text(&again));
        } else if code != 0 {
            let again = command(scratch.path()).output().unwrap();
            assert!(again.status.success(), "{what}, then: {}", text(&again));
        }
        // A namespace whose removal failed is removed by the next run.
        if !leftovers().is_empty() {
            let elsewhere = tempfile::tempdir().unwrap();
            let next = command(elsewhere.path()).output().unwrap();
            assert!(next.status.success(), "{what}, then: {}", text(&next));
        }
        assert_eq!(leftovers(), Vec::<String>::new(), "{what}");
        let directory = directory(scratch.path()).unwrap();
        let whole = whole_lines(&directory);
        assert!(whole.starts_with(&records.unwrap_or_default()), "{what}");
        if let Some(plan) = plan {
            assert_eq!(
                plan,
                fs::read(directory.join("plan.json")).unwrap(),
                "{what}"
            );
        }
        assert!(directory.join("finished.json").is_file(), "{what}");
        assert!(directory.join("README.md").is_file(), "{what}");
        *outcomes.entry((failed, code)).or_default() += 1;
    }
    println!("{} of {effects} effects failed one by one:", chosen.len());
    for ((failed, code), runs) in outcomes {
        println!("  {failed}: {runs} runs ended with code {code}");
    }
}
