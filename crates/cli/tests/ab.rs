//! `fwdlab ab`: the files that it writes, where, and for whom.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use shared::{data, fwdlab};
use testkit::{files_below, text};

const RP_FILTER: [&str; 3] = [
    "--sysctl",
    "net.ipv4.conf.all.rp_filter=0",
    "net.ipv4.conf.all.rp_filter=1",
];

fn ab(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = fwdlab(&["ab"]);
    command
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn what_is_written_can_be_planned_and_is_left_alone_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let arguments = [&RP_FILTER[..], &["--name", "rp", "--write-only"]].concat();
    let first = ab(path, &arguments);
    assert!(first.status.success(), "{}", text(&first));
    assert!(
        text(&first).contains("fwdlab run rp.toml"),
        "{}",
        text(&first)
    );
    let mut planned = fwdlab(&["plan", "rp.toml"]);
    let planned = planned.current_dir(path).output().unwrap();
    assert!(planned.status.success(), "{}", text(&planned));

    let again = ab(path, &arguments);
    assert!(
        text(&again).contains("already there: rp.toml"),
        "{}",
        text(&again)
    );
    // What its user has made of it is not written over.
    let experiment = path.join("rp.toml");
    let edited = fs::read_to_string(&experiment).unwrap() + "# mine\n";
    fs::write(&experiment, &edited).unwrap();
    let refused = ab(path, &arguments);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("--name"), "{}", text(&refused));
    assert_eq!(fs::read_to_string(&experiment).unwrap(), edited);
}

#[test]
fn what_is_there_is_gone_on_with_however_long_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let ab_in = |minutes: &str, rest: &[&str]| {
        let own = ["--name", "rp", "--write-only", "--minutes", minutes];
        ab(path, &[&RP_FILTER[..], &own, rest].concat())
    };
    let first = ab_in("10", &[]);
    assert!(first.status.success(), "{}", text(&first));
    let written = fs::read_to_string(path.join("rp.toml")).unwrap();
    let again = ab_in("0.001", &[]);
    assert!(again.status.success(), "{}", text(&again));
    assert!(
        text(&again).contains("already there: rp.toml"),
        "{}",
        text(&again)
    );
    assert_eq!(fs::read_to_string(path.join("rp.toml")).unwrap(), written);
    // Another question has to fit into its time.
    let other = ab_in("0.001", &["--flows", "7"]);
    assert_eq!(other.status.code(), Some(2), "{}", text(&other));
    assert!(text(&other).contains("is too short"), "{}", text(&other));
}

#[test]
fn a_lab_elsewhere_keeps_its_files_and_finds_the_rulesets() {
    testkit::require_tool!("nft");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir_all(path.join("bench/labs")).unwrap();
    fs::create_dir_all(path.join("rules")).unwrap();
    fs::write(
        path.join("bench/labs/mine.toml"),
        "kind = \"netns\"\n# mine\n",
    )
    .unwrap();
    // It may name a webhook, which is a secret.
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(path.join("bench/labs/mine.toml"), private).unwrap();
    fs::write(path.join("rules/a.nft"), "table inet a {}\n").unwrap();
    fs::write(path.join("rules/b.nft"), "table inet b {}\n").unwrap();
    let written = ab(
        &path.join("rules"),
        &[
            "--nft",
            "a.nft",
            "b.nft",
            "--lab",
            "../bench/labs/mine.toml",
            "--name",
            "x",
            "--write-only",
        ],
    );
    assert!(written.status.success(), "{}", text(&written));
    let lab = path.join("bench/labs/x.lab.toml");
    let mode = fs::metadata(&lab).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let lab = fs::read_to_string(lab).unwrap();
    assert!(lab.contains("# mine"), "{lab}");
    assert!(lab.contains("\"a.nft\" = \"../../rules/a.nft\""), "{lab}");
    let mut planned = fwdlab(&["plan", "x.toml"]);
    let planned = planned.current_dir(path.join("rules")).output().unwrap();
    assert!(planned.status.success(), "{}", text(&planned));
}

#[test]
fn a_lab_that_is_wrong_is_told_in_its_own_file_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let lab = folder.path().join("lab.toml");
    fs::write(&lab, "kind = \"netsn\"\n").unwrap();
    let arguments = [&RP_FILTER[..], &["--lab", "lab.toml", "--write-only"]].concat();
    let refused = ab(folder.path(), &arguments);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused).contains("lab.toml:1:8"),
        "{}",
        text(&refused)
    );
    assert_eq!(files_below(folder.path()), [lab]);
}

#[test]
fn what_sudo_measures_belongs_to_who_called_it() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let _machine = testkit::own_the_machine();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("labs")).unwrap();
    fs::write(folder.path().join("labs/mine.toml"), "kind = \"netns\"\n").unwrap();
    let (user, group) = (12_345, 23_456);
    let by_sudo = |arguments: &[&str]| {
        let mut command = fwdlab(arguments);
        command
            .env("SUDO_UID", user.to_string())
            .env("SUDO_GID", group.to_string())
            .current_dir(folder.path());
        command.output().unwrap()
    };
    let written = ["--lab", "labs/mine.toml", "--name", "x", "--write-only"];
    let written = by_sudo(&[&["ab"], &RP_FILTER[..], &written].concat());
    assert!(written.status.success(), "{}", text(&written));
    let experiment = data("smallest.toml");
    let measured = by_sudo(&[
        "run",
        &experiment,
        "--results",
        "deep/results",
        "--label",
        "x",
    ]);
    let finished = folder.path().join("deep/results/smallest/x/finished.json");
    assert!(finished.is_file(), "{}", text(&measured));
    let mut seen = 0;
    for part in ["deep", "x.toml", "labs/x.lab.toml"] {
        let mut left = vec![folder.path().join(part)];
        while let Some(path) = left.pop() {
            let metadata = fs::symlink_metadata(&path).unwrap();
            assert_eq!(
                (metadata.uid(), metadata.gid()),
                (user, group),
                "{}",
                path.display()
            );
            seen += 1;
            if metadata.is_dir() {
                left.extend(
                    fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
            }
        }
    }
    assert!(seen > 20, "{seen}");
    // What was there before is its owner's.
    let labs = fs::metadata(folder.path().join("labs")).unwrap();
    assert_eq!(labs.uid(), 0);
}

#[test]
fn a_ruleset_that_nft_does_not_understand_is_told_by_file_and_line_before_anything_is_measured() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let _machine = testkit::own_the_machine();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let good =
        "table inet f {\n\tchain forward {\n\t\ttype filter hook forward priority filter\n\t}\n}\n";
    fs::write(path.join("good.nft"), good).unwrap();
    fs::write(
        path.join("bad.nft"),
        good.replace("\t\ttype", "\t\tudp dprot 53 drop\n\t\ttype"),
    )
    .unwrap();
    let arguments = ["--nft", "good.nft", "bad.nft", "--name", "x"];
    let write_only = [&arguments[..], &["--write-only"]].concat();
    let bad = fs::read(path.join("bad.nft")).unwrap();
    let rulesets = files_below(path);
    for arguments in [&write_only[..], &arguments] {
        let refused = ab(path, arguments);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(text(&refused).contains("bad.nft:3:3"), "{}", text(&refused));
        assert_eq!(files_below(path), rulesets, "{}", text(&refused));
    }
    // What was there before stays.
    fs::write(path.join("bad.nft"), good).unwrap();
    let written = ab(path, &write_only);
    assert!(written.status.success(), "{}", text(&written));
    fs::write(path.join("bad.nft"), &bad).unwrap();
    let again = ab(path, &arguments);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
    assert!(path.join("x.toml").exists() && path.join("x.lab.toml").exists());
    for command in ["plan", "run"] {
        let output = fwdlab(&[command, "x.toml"])
            .current_dir(path)
            .output()
            .unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("bad.nft:3:3"), "{said}");
        assert!(said.contains("udp dprot 53 drop"), "{said}");
        assert!(!said.contains("/dev/stdin"), "{said}");
        assert!(!path.join("results").exists(), "{command}");
    }
}

#[test]
fn a_busy_machine_is_waited_for_where_that_is_asked_and_leaves_no_files_where_not() {
    testkit::require_root!();
    let _machine = testkit::own_the_machine();
    let address = SocketAddr::from_abstract_name("fwdlab-machine").unwrap();
    let other = UnixListener::bind_addr(&address).unwrap();
    let own = format!("process {}", std::process::id());
    let folder = tempfile::tempdir().unwrap();
    let none: [PathBuf; 0] = [];

    let refused = ab(folder.path(), &RP_FILTER);
    let said = text(&refused);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(
        said.contains(&own) && said.contains("is already measuring"),
        "{said}"
    );
    assert!(said.contains("--wait"), "{said}");
    assert_eq!(files_below(folder.path()), none, "{said}");
    // With --quiet, only the report is printed.
    let quiet = ab(folder.path(), &[&RP_FILTER[..], &["--quiet"]].concat());
    let errors = String::from_utf8(quiet.stderr).unwrap();
    assert_eq!(errors.lines().count(), 1, "{errors}");

    let waiting = |arguments: &[&str]| {
        let mut command = fwdlab(&["ab"]);
        command.args(RP_FILTER).args(arguments);
        command.current_dir(folder.path()).stderr(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let told = lines
            .find(|line| line.as_ref().unwrap().contains("waiting for"))
            .unwrap();
        (child, told.unwrap(), lines)
    };
    let (mut child, told, lines) = waiting(&["--wait"]);
    assert!(told.contains(&own), "{told}");
    testkit::signal(child.id(), "-INT");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert_eq!(files_below(folder.path()), none, "{rest:?}");

    let (mut child, _, lines) = waiting(&["--wait", "--minutes", "0.5"]);
    drop(other);
    let began = lines
        .map(Result::unwrap)
        .find(|line| line.contains("measuring into"));
    assert!(began.is_some());
    testkit::signal(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn what_the_lab_does_not_have_is_a_wrong_argument_and_the_nearest_name_is_told_once() {
    testkit::require_root!();
    let folder = tempfile::tempdir().unwrap();
    let slip = RP_FILTER.map(|word| word.replace("rp_filter", "rp_filer"));
    let refused = ab(folder.path(), &slip.each_ref().map(String::as_str));
    let said = text(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    let told =
        "no readable sysctl net.ipv4.conf.all.rp_filer; did you mean net.ipv4.conf.all.rp_filter?";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    assert_eq!(files_below(folder.path()), [] as [PathBuf; 0], "{said}");
}

#[test]
fn a_ruleset_that_drops_the_traffic_is_named_by_its_label_and_told_what_it_must_accept() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let _machine = testkit::own_the_machine();
    let folder = tempfile::tempdir().unwrap();
    for (name, verdict) in [("drops.nft", "drop"), ("accepts.nft", "accept")] {
        let ruleset = format!(
            "table inet f {{\n\tchain forward {{\n\t\ttype filter hook forward priority filter; policy {verdict};\n\t}}\n}}\n"
        );
        fs::write(folder.path().join(name), ruleset).unwrap();
    }
    let refused = ab(folder.path(), &["--nft", "drops.nft", "accepts.nft"]);
    let said = text(&refused);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("variant \"drops.nft\" (inet)"), "{said}");
    assert!(
        said.contains("must accept the lab's frames: IPv4 UDP from 198.18.10.1"),
        "{said}"
    );
    assert!(said.contains("in at {dut-in}, out at {dut-out}"), "{said}");
    assert_eq!(files_below(folder.path()).len(), 2, "{said}");
}
