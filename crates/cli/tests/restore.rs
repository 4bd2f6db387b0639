//! What a killed run has changed on the host is put back: by `fwdlab restore`, and by the next run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use shared::{finish, namespaces_of, wait_for_child};
use testkit::succeed;

/// A folder with an experiment whose factor is a program that writes a file on the host.
struct Scratch {
    folder: tempfile::TempDir,
}

/// Starts, in its session and in one of their own, two programs that go on writing a second file.
const LEAVES_WRITERS: &str = "w='while :; do echo stray > \\\"$0.stray\\\"; sleep 0.02; done'; \
                              sh -c \\\"$w\\\" \\\"$0\\\" & setsid sh -c \\\"$w\\\" \\\"$0\\\" & \
                              until [ -e \\\"$0.stray\\\" ]; do sleep 0.01; done";

impl Scratch {
    fn new() -> Self {
        Self::with(":")
    }

    /// The program runs more commands before it writes its file.
    fn with(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Self { folder };
        let mark = scratch.mark().display().to_string();
        let experiment = "question = \"Impact of a file\"\nlab = \"lab.toml\"\n\
            [[factor]]\nname = \"mark\"\nlevels = [1, 2]\ndefault = 1\n\
            [traffic]\nfamilies = [\"inet\"]\n\
            [design]\nblocks = 6\nrounds = 2\nslice_ms = 60\nsettle_ms = 20\n\
            warm_up_ms = 20\ncontrol = false\n";
        let lab = format!(
            "kind = \"netns\"\n[bind.mark]\ncommand = {{ \
             do = [\"sh\", \"-c\", \"{more}; echo \\\"$1\\\" > \\\"$0\\\"\", \"{mark}\", \"{{level}}\"], \
             undo = [\"rm\", \"-f\", \"{mark}\", \"{mark}.stray\"], check = [\"cat\", \"{mark}\"] }}\n"
        );
        fs::write(scratch.path("experiment.toml"), experiment).unwrap();
        fs::write(scratch.path("lab.toml"), lab).unwrap();
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file that the factor's program writes.
    fn mark(&self) -> PathBuf {
        self.path("mark")
    }

    fn fwdlab(&self, arguments: &[&str]) -> Command {
        let mut command = shared::fwdlab(arguments);
        command
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"));
        command
    }

    /// Starts a run and kills it when the factor's program has written its file.
    fn kill_a_run(&self) -> u32 {
        let child = self.fwdlab(&["run", "experiment.toml"]).spawn().unwrap();
        let mut child = wait_for_child("it writes its file", child, || self.mark().exists());
        child.kill().unwrap();
        let pid = child.id();
        finish(child);
        assert!(self.mark().exists());
        pid
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn restore_puts_back_what_a_killed_run_changed_on_the_host() {
    testkit::require_root!();
    testkit::require_tool!("sh", "rm", "cat");
    let scratch = Scratch::new();
    let pid = scratch.kill_a_run();
    assert_eq!(namespaces_of(pid).len(), 2);

    let listed = succeed(&mut scratch.fwdlab(&["restore", "--list", "--json"]));
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let own: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|leftover| leftover["left_by"]["pid"] == pid)
        .collect();
    let kinds: Vec<_> = own
        .iter()
        .map(|leftover| &leftover["undo"]["kind"])
        .collect();
    assert_eq!(kinds, ["run", "remove-namespace", "remove-namespace"]);
    assert!(own.iter().all(|leftover| leftover["state"] == "left"));
    assert!(
        scratch.mark().exists() && namespaces_of(pid).len() == 2,
        "looking changes nothing"
    );

    let restored = stdout(&succeed(&mut scratch.fwdlab(&["restore"])));
    assert!(
        restored.contains(&format!("left by process {pid} at "))
            && restored.contains("undone by `rm -f "),
        "{restored}"
    );
    assert!(!scratch.mark().exists());
    assert_eq!(namespaces_of(pid).len(), 0);

    let again = stdout(&succeed(&mut scratch.fwdlab(&["restore"])));
    assert!(!again.contains(&pid.to_string()), "{again}");
}

/// What a program leaves running would change the host again behind the undo.
#[test]
fn what_a_program_left_running_ends_before_its_change_is_put_back() {
    testkit::require_root!();
    testkit::require_tool!("sh", "rm", "cat", "sleep", "setsid");
    let scratch = Scratch::with(LEAVES_WRITERS);
    let stray = scratch.path("mark.stray");
    let prove_ended = |when: &str| {
        assert!(!stray.exists(), "{when}");
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!stray.exists(), "{when}: somebody still writes");
    };
    scratch.kill_a_run();
    assert!(stray.exists());
    succeed(&mut scratch.fwdlab(&["restore"]));
    prove_ended("a killed run");
    succeed(&mut scratch.fwdlab(&["run", "experiment.toml"]));
    prove_ended("a run to its end");
}

/// A forwarder that has left its session would go on to take the frames of what comes after it.
#[test]
fn a_killed_runs_forwarder_ends_with_all_that_it_started() {
    testkit::require_root!();
    testkit::require_tool!("sh", "test", "sleep", "setsid");
    let scratch = Scratch::new();
    let stray = scratch.mark();
    let experiment = fs::read_to_string(scratch.path("experiment.toml")).unwrap();
    let paced = experiment.replace("[traffic]\n", "[traffic]\nload = { pps = 1000 }\n");
    fs::write(scratch.path("experiment.toml"), paced).unwrap();
    let writes = "while :; do echo stray > $0; sleep 0.02; done";
    let starts = format!(
        "setsid sh -c '{writes}' {} & exec sleep 600",
        stray.display()
    );
    // It is waited for until the run is killed.
    let lab = format!(
        "kind = \"netns\"\n[bind.mark.forwarder]\n1 = {{ start = [\"sh\", \"-c\", \"{starts}\"], \
         ready = [\"test\", \"-e\", \"/nowhere\"] }}\n2 = {{}}\n"
    );
    fs::write(scratch.path("lab.toml"), lab).unwrap();
    let pid = scratch.kill_a_run();
    let listed = stdout(&succeed(&mut scratch.fwdlab(&["restore", "--list"])));
    assert!(listed.contains("forwarder \"1\""), "{listed}");
    fs::remove_file(&stray).unwrap();
    testkit::wait_until("what it started goes on", || stray.exists());
    succeed(&mut scratch.fwdlab(&["restore"]));
    fs::remove_file(&stray).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(!stray.exists(), "somebody still writes");
    assert_eq!(namespaces_of(pid).len(), 0);
}

#[test]
fn the_next_run_puts_back_what_a_killed_one_changed_and_goes_on() {
    testkit::require_root!();
    testkit::require_tool!("sh", "rm", "cat");
    let scratch = Scratch::new();
    let pid = scratch.kill_a_run();
    let output = succeed(&mut scratch.fwdlab(&["run", "experiment.toml"]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let told = format!("put back 3 changes that process {pid} left at ");
    assert!(stderr.contains(&told), "{stderr}");
    assert!(!scratch.mark().exists());
    assert_eq!(namespaces_of(pid).len(), 0);
    let results = fs::read_dir(scratch.path("results/experiment")).unwrap();
    let directories = results
        .filter(|entry| entry.as_ref().unwrap().path().is_dir())
        .count();
    assert_eq!(directories, 1, "the same directory is continued");
}

#[test]
fn what_cannot_be_put_back_is_told_until_it_is_forgotten() {
    let state = tempfile::tempdir().unwrap();
    let journal = state.path().join("fwdlab/router.jsonl");
    fs::create_dir(journal.parent().unwrap()).unwrap();
    let line = r#"{"record":"change","id":{"boot":"another","pid":1,"start_time":2,"number":3},"time":"2026-11-21T15:00:00Z","what":"factor \"mtu\" at level \"9000\u001b[2J\"","undo":{"kind":"write-sysctl","setting":"no/such/setting","value":"1"}}"#;
    fs::write(&journal, format!("{line}\n{{\"record\":\"und")).unwrap();
    let fwdlab = |arguments: &[&str]| {
        let mut command = shared::fwdlab(arguments);
        command
            .env("XDG_STATE_HOME", state.path())
            .output()
            .unwrap()
    };
    // What a file says is shown, and does not act on the terminal.
    let what =
        "factor \"mtu\" at level \"9000\\x1b[2J\", left by process 1 at 2026-11-21T15:00:00Z: ";
    let list = fwdlab(&["restore", "--list"]);
    assert_eq!(list.status.code(), Some(0));
    let told = format!(
        "this machine, by {}:\n  {what}to be undone by setting sysctl no/such/setting to \"1\"\n",
        journal.display()
    );
    assert!(stdout(&list).contains(&told), "{}", stdout(&list));

    let failed = fwdlab(&["restore"]);
    assert_eq!(failed.status.code(), Some(3));
    let told = format!("{what}could not be undone by setting sysctl no/such/setting to \"1\": ");
    assert!(stdout(&failed).contains(&told), "{}", stdout(&failed));
    let stderr = String::from_utf8_lossy(&failed.stderr);
    assert!(stderr.contains("fwdlab restore --forget"), "{stderr}");
    assert!(journal_is(&journal, 1));

    let forgotten = fwdlab(&["restore", "--forget"]);
    assert_eq!(forgotten.status.code(), Some(0));
    assert!(stdout(&forgotten).contains(&format!("{what}forgotten; could not ")));
    assert!(journal_is(&journal, 0));
}

/// Whether a journal has so many lines.
fn journal_is(path: &Path, lines: usize) -> bool {
    fs::read_to_string(path).unwrap().lines().count() == lines
}
