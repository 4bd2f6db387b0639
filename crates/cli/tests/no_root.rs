//! The main job for an ordinary user: in a user namespace, and what is said where there is none.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use shared::{FWDLAB, NOBODY, REPOSITORY, assert_complete, data, finish, records, wait_for_child};
use testkit::{text, wait_until};

/// The program and the files that it needs, where an ordinary user may read them, whatever user has
/// built it and wherever.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        fs::copy(FWDLAB, path.join("fwdlab")).unwrap();
        let status = Command::new("cp")
            .args(["--recursive", "experiments", "labs"])
            .arg(path)
            .current_dir(REPOSITORY)
            .status()
            .unwrap();
        assert!(status.success());
        Self(folder)
    }

    /// The quickstart with as little to do as can be; every line that is to change has to be there.
    fn cut_quickstart(&self) {
        let path = self.0.path().join("experiments/quickstart.toml");
        let mut text = fs::read_to_string(&path).unwrap();
        for (long, short) in [
            ("rounds = 8", "rounds = 3"),
            ("settle_ms = 40", "settle_ms = 20"),
        ] {
            assert!(text.contains(long), "{long:?} is not in {text}");
            text = text.replace(long, short);
        }
        fs::write(path, text).unwrap();
    }

    fn results(&self, experiment: &str) -> PathBuf {
        self.0.path().join("results").join(experiment).join("test")
    }

    /// The command line that runs an experiment, to be put behind those of other programs.
    fn run_arguments(&self, experiment: &str) -> Vec<String> {
        let program = self.0.path().join("fwdlab");
        let mut arguments = vec![program.to_str().unwrap().to_owned()];
        let rest = format!("run experiments/{experiment}.toml --label test --seed 1");
        arguments.extend(rest.split(' ').map(str::to_owned));
        arguments
    }

    /// An experiment whose variants both root and an ordinary user can have.
    fn add_short_experiment(&self) {
        self.add_experiment("short");
    }

    /// One of the tests' own experiments.
    fn add_experiment(&self, name: &str) {
        let text = fs::read_to_string(data(&format!("{name}.toml"))).unwrap();
        let (here, there) = ("../../../../labs/", "../labs/");
        assert!(text.contains(here), "{text}");
        let path = self.0.path().join(format!("experiments/{name}.toml"));
        fs::write(path, text.replace(here, there)).unwrap();
    }

    /// Has an experiment take profiles.
    fn ask_for_profiles(&self, experiment: &str) {
        let path = self.0.path().join(format!("experiments/{experiment}.toml"));
        let mut text = fs::read_to_string(&path).unwrap();
        text += "\n[profile]\nevery = \"block\"\n";
        fs::write(path, text).unwrap();
    }

    /// A command that an ordinary user gives, with the `PATH` that such users have.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.0.path())
            .env_clear()
            .env("HOME", self.0.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null());
        command
    }
}

/// Becomes an ordinary user.
fn nobody() -> [String; 5] {
    let id = NOBODY.to_string();
    let words = ["--reuid", &id, "--regid", &id, "--clear-groups"];
    words.map(str::to_owned)
}

/// The router's functions stand in the profiles by their names, and none of the kernel's does; where the kernel
/// lets ordinary users sample nothing, the report says that there are no profiles.
fn assert_own_functions_are_sampled(results: &Path) {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if paranoid.trim().parse::<i32>().unwrap() > 2 {
        let readme = fs::read_to_string(results.join("README.md")).unwrap();
        assert!(readme.contains("W219"), "{readme}");
        return;
    }
    let report = fs::read(results.join("derived/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["profiles"]["has_kernel"], false, "{report}");
    let folded = fs::read_dir(results.join("profiles")).unwrap();
    let folded: String = folded
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    assert!(folded.contains(";fwdlab_router::"), "{folded}");
    assert!(!folded.contains("entry_SYSCALL_64"), "{folded}");
}

/// Gives a folder and everything in it to another user: inside its user namespace an ordinary user's run
/// is root, whom the permission bits of that user's own files do not hold up.
fn give(folder: &Path, user: u32) {
    let mut chown = Command::new("chown");
    testkit::succeed(chown.arg("--recursive").arg(user.to_string()).arg(folder));
}

#[test]
fn the_quickstart_measures_without_root_and_says_what_is_lost() {
    testkit::require_root!();
    testkit::require_tool!("nft", "setpriv");
    let home = Home::new();
    home.cut_quickstart();
    let output = home
        .command("setpriv")
        .args(nobody())
        .args(home.run_arguments("quickstart"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));

    // Before anything is measured: with what, why not better, and what is lost.
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    for expected in [
        "without eBPF programs, measuring with an AF_XDP socket in copy mode",
        "not eBPF live frames: ",
        "what is lost by that:",
        "Frames are socket buffers from the start",
        "not available here, and not run: XDP fib forwarding: ",
        "run fwdlab as root (sudo)",
    ] {
        assert!(stderr.contains(expected), "{expected:?} is not in {stderr}");
    }
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    for expected in [
        "nftables, conntrack",
        "1000 routes",
        "pps",
        "ns/packet",
        "W213",
        "the same effect is a smaller part",
    ] {
        assert!(stdout.contains(expected), "{expected:?} is not in {stdout}");
    }

    // The README says it too.
    let readme = fs::read_to_string(home.results("quickstart").join("README.md")).unwrap();
    for expected in [
        "Tester: an AF_XDP socket in copy mode, counted by interface counters",
        "Variants with an XDP program are not available.",
        "The calibration loop has no real-time priority",
        "self-clocked",
    ] {
        assert!(readme.contains(expected), "{expected:?} is not in {readme}");
    }
    let session = fs::read_to_string(home.results("quickstart").join("sessions/1.json")).unwrap();
    assert!(session.contains("\"tester\": \"af-xdp\""), "{session}");

    // Every frame is accounted for, and every flow was among those that were checked.
    let records = fs::read_to_string(home.results("quickstart").join("trials.jsonl")).unwrap();
    let blocks: Vec<_> = records
        .lines()
        .filter(|line| line.contains(r#""record":"block""#))
        .collect();
    assert!(blocks.len() >= 8, "{records}");
    for block in blocks {
        assert!(block.contains(r#""unaccounted_frames":0"#), "{block}");
        assert!(block.contains(r#""wrong_frames":{}"#), "{block}");
        assert!(block.contains(r#""drop-at-ingress control":"#), "{block}");
        assert!(!block.contains(r#""checked_frames":0,"#), "{block}");
    }

    // It all belongs to whoever ran it.
    for file in [
        home.results("quickstart"),
        home.results("quickstart").join("trials.jsonl"),
    ] {
        assert_eq!(fs::metadata(&file).unwrap().uid(), NOBODY, "{file:?}");
    }
}

#[test]
fn the_reference_router_needs_no_privilege_at_all() {
    testkit::require_root!();
    testkit::require_tool!("setpriv");
    let home = Home::new();
    home.add_experiment("router");
    home.ask_for_profiles("router");
    // Without any namespace of its own either.
    let output = home
        .command("setpriv")
        .args(nobody())
        .args(["--no-new-privs", "--bounding-set", "-all"])
        .args(home.run_arguments("router"))
        .output()
        .unwrap();
    let results = home.results("router");
    // Where something else has the tester's CPU, it falls short of what it is to offer, and says so.
    if output.status.code() == Some(1) && text(&output).contains("of the intended load") {
        eprintln!("the tester's CPU was taken: {}", text(&output));
    } else {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert_complete(&results, 6, "a run on the router");
        assert_own_functions_are_sampled(&results);
    }
    for block in shared::block_records(&records(&results)) {
        let frames = &block["conservation"]["inet"];
        assert_eq!(frames["unaccounted_frames"], 0, "{block}");
        assert_eq!(frames["foreign_frames"], 0, "{block}");
        assert_ne!(frames["verification"]["checked_frames"], 0, "{block}");
        let wrong = frames["verification"]["wrong_frames"].as_object();
        assert!(wrong.unwrap().is_empty(), "{block}");
    }
    let session = fs::read_to_string(results.join("sessions/1.json")).unwrap();
    let session: serde_json::Value = serde_json::from_str(&session).unwrap();
    // Which of the two it is depends on the machine; that it is said, does not.
    let tester = session["environment"]["tester"].as_str().unwrap();
    let readme = fs::read_to_string(results.join("README.md")).unwrap();
    let expected = match tester {
        "memory-threaded" => "1.25 times",
        "memory-inline" => "self-clocked instead of overload, because",
        other => panic!("{other}"),
    };
    assert!(readme.contains(expected), "{expected:?} is not in {readme}");
}

#[test]
fn the_doctor_does_not_call_a_lab_unusable_that_measures_without_root() {
    testkit::require_root!();
    testkit::require_tool!("nft", "setpriv");
    let home = Home::new();
    let program = home.0.path().join("fwdlab");
    let output = home
        .command("setpriv")
        .args(nobody())
        .arg(program)
        .args(["doctor", "--quick"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let stdout = String::from_utf8_lossy(&output.stdout);
    for expected in [
        "warn privilege: root of a user",
        "warn eBPF programs: ",
        "from a socket",
    ] {
        assert!(stdout.contains(expected), "{expected:?} is not in {stdout}");
    }
}

#[test]
fn the_doctor_of_a_router_looks_at_what_concerns_a_router_and_plans_rest_on_its_measurement() {
    testkit::require_root!();
    testkit::require_tool!("setpriv");
    let home = Home::new();
    home.add_experiment("router");
    // In turns, nothing that others do on this machine makes a block invalid.
    let lab = home.0.path().join("labs/router.toml");
    let in_turns = fs::read_to_string(&lab)
        .unwrap()
        .replace("regime = \"overload\"", "regime = \"self-clocked\"");
    fs::write(lab, in_turns).unwrap();
    let program = home.0.path().join("fwdlab");
    let run = |arguments: &[&str]| {
        let mut command = home.command("setpriv");
        command.args(nobody()).arg(&program).args(arguments);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let printed = run(&["doctor", "labs/router.toml"]);
    for expected in [
        " load: ",
        " placement: ",
        " load average: ",
        " clock: ",
        "Noise of lab router, 8 blocks of 10 rounds",
    ] {
        assert!(
            printed.contains(expected),
            "{expected:?} is not in {printed}"
        );
    }
    let of_kernels = [
        "privilege",
        "namespaces",
        "eBPF",
        "BPF",
        "nft",
        "veth",
        "settle after",
        "run as root",
    ];
    for unexpected in of_kernels {
        assert!(
            !printed.contains(unexpected),
            "{unexpected:?} is in {printed}"
        );
    }
    let folders: Vec<_> = fs::read_dir(home.0.path().join("results/doctor"))
        .unwrap()
        .collect();
    assert_eq!(folders.len(), 1);
    let folder = folders[0].as_ref().unwrap().path();
    let session = fs::read_to_string(folder.join("sessions/1.json")).unwrap();
    assert!(session.contains("\"tester\": \"memory-"), "{session}");

    let plan = run(&["plan", "experiments/router.toml", "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let runs = &plan["detectable"][0]["reckoned"]["runs"];
    let label = folder.file_name().unwrap().to_str().unwrap();
    assert_eq!(
        runs,
        &serde_json::json!([format!("doctor/{label}")]),
        "{plan:#}"
    );
}

#[test]
fn root_does_not_go_on_where_an_ordinary_user_began() {
    testkit::require_root!();
    testkit::require_tool!("nft", "setpriv");
    let home = Home::new();
    home.add_short_experiment();
    let child = home
        .command("setpriv")
        .args(nobody())
        .args(home.run_arguments("short"))
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut child = wait_for_child("a block is measured", child, || {
        !records(&home.results("short")).is_empty()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let run = |program: &str, arguments: &[String]| {
        let path = std::env::var_os("PATH").unwrap();
        let mut command = home.command(program);
        command.args(arguments).env("PATH", path).output().unwrap()
    };
    let arguments = home.run_arguments("short");
    let output = run(&arguments[0], &arguments[1..]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let expected = r#"tester was "an AF_XDP socket in copy mode" and is "eBPF live frames""#;
    assert!(text(&output).contains(expected), "{}", text(&output));

    // Whoever began can go on.
    let arguments = [nobody().to_vec(), arguments].concat();
    let output = run("setpriv", &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn a_folder_that_is_not_the_users_to_write_is_told_before_and_inside_a_run() {
    testkit::require_root!();
    testkit::require_tool!("nft", "setpriv", "chown");
    let home = Home::new();
    home.add_short_experiment();
    let run = || {
        let mut command = home.command("setpriv");
        command
            .args(nobody())
            .args(home.run_arguments("short"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let results = home.0.path().join("results");
    fs::create_dir(&results).unwrap();
    let output = run().output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    for expected in [
        "/short: cannot create the folder (Permission denied",
        "is yours to use",
    ] {
        assert!(text(&output).contains(expected), "{}", text(&output));
    }
    assert!(!text(&output).contains("block 1 of"), "{}", text(&output));

    fs::set_permissions(&results, Permissions::from_mode(0o777)).unwrap();
    let directory = home.results("short");
    let child = wait_for_child("a block is measured", run().spawn().unwrap(), || {
        !records(&directory).is_empty()
    });
    give(&directory, 0);
    let output = finish(child);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    // Records are written to a file, reports replace one.
    let told = ["cannot write the file", "cannot rename the new file"]
        .map(|what| format!("{what} (Permission denied"));
    assert!(
        told.iter().any(|told| text(&output).contains(told)),
        "{}",
        text(&output)
    );

    give(&directory, NOBODY);
    let records_before = records(&directory);
    let output = run().output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(records(&directory).starts_with(&records_before));
    assert_complete(&directory, 6, "after it could not be written");
}

/// A user namespace in which root may do what it likes, and which holds no other.
struct BarrenNamespace(Child);

impl BarrenNamespace {
    fn new() -> Self {
        let holder = Command::new("unshare")
            .args(["--user", "sleep", "600"])
            .spawn()
            .unwrap();
        let holder = Self(holder);
        let process = PathBuf::from(format!("/proc/{}", holder.0.id()));
        let own = fs::read_link("/proc/self/ns/user").unwrap();
        wait_until("unshare unshares", || {
            fs::read_link(process.join("ns/user")).is_ok_and(|namespace| namespace != own)
        });
        for map in ["uid_map", "gid_map"] {
            fs::write(process.join(map), "0 0 65536").unwrap();
        }
        let forbid = "echo 0 > /proc/sys/user/max_user_namespaces";
        let status = holder.command(&["sh", "-c", forbid]).status().unwrap();
        assert!(status.success());
        holder
    }

    /// A command that root gives in there.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--user", "--target", &self.0.id().to_string()])
            .args(words);
        command
    }
}

impl Drop for BarrenNamespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn where_user_namespaces_are_forbidden_it_says_how_to_allow_them() {
    testkit::require_root!();
    testkit::require_tool!("setpriv", "unshare", "nsenter");
    let host = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap();
    let home = Home::new();
    let barren = BarrenNamespace::new();
    let output = barren
        .command(&["setpriv"])
        .args(nobody())
        .args(home.run_arguments("quickstart"))
        .current_dir(home.0.path())
        .env("HOME", home.0.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    for expected in [
        "lab netns: without root (this process has user id 65534) it needs a user namespace",
        "No space left on device",
        "user.max_user_namespaces is 0: allow it with `sudo sysctl -w user.max_user_namespaces=10000`",
        "or run fwdlab as root (sudo)",
    ] {
        assert!(stderr.contains(expected), "{expected:?} is not in {stderr}");
    }
    // Nothing was begun, and the host's own setting is as it was.
    assert!(!home.results("quickstart").exists());
    let host_after = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap();
    assert_eq!(host, host_after);
}
