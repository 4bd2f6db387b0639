//! What `fwdlab import` prints and leaves, for archives of every kind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use shared::{FWDLAB, NOBODY, fwdlab};
use testkit::text;

const RESULTS: &str = "P/N/T/results/L";

/// Forty seconds at one rate.
fn receiver(rate_pps: u32) -> String {
    let mut log = "CMD: pkt-gen -f rx -i ix1\n".to_owned();
    for second in 0..40 {
        log += &format!(
            "{second:03}.000000 main_thread [1441] {rate_pps} pps ({rate_pps} pkts in 1000000 usec)\n"
        );
    }
    log
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Two variants of two runs each, one of them published as something else, and files that are left.
fn archive(root: &Path) {
    for (run, rate) in [("x.1", 100), ("x.2", 200), ("y.1", 300), ("y.2", 400)] {
        let log = receiver(rate);
        write(root, &format!("{RESULTS}/bench.{run}.receiver"), &log);
    }
    write(root, &format!("{RESULTS}/x.pps"), "100\n200\n");
    write(root, &format!("{RESULTS}/y.pps"), "300\n401\n");
    write(root, &format!("{RESULTS}/x.png"), "");
    write(root, "P/N/T/configs/x/etc/dut.key", "hidden");
}

fn import(root: &Path, out: &Path, options: &[&str]) -> Output {
    let (root, out) = (root.to_str().unwrap(), out.to_str().unwrap());
    let arguments = [&["import", "netbenches", root, "--results", out], options].concat();
    fwdlab(&arguments).output().unwrap()
}

fn printed(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn the_summary_says_what_was_read_and_what_was_not() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    write(&root, &format!("{RESULTS}/bench.z.1.receiver"), "no log\n");
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let expected = format!(
        "\
9 files: 6 read, 0 read in part, 2 left, 1 wrong
  left 1: a key or certificate: never read further, never copied
  left 1: a picture
  wrong: {RESULTS}/bench.z.1.receiver:1: no log of pkt-gen (\"no log\"); give the log of a sender or receiver
4 runs in 1 results folder
1 dataset that logs give digit for digit, 0 of them under another name; 1 that logs do not give; 0 without logs
written to {}
what was altered: fwdlab lint {}
",
        out.display(),
        root.display()
    );
    assert_eq!(printed(&output), expected);
    let files = fs::read_to_string(out.join("files.jsonl")).unwrap();
    assert_eq!(files.lines().count(), 9);
    let written = fs::read_to_string(out.join("results").join(RESULTS).join("y.pps")).unwrap();
    assert_eq!(written, "300\n400\n");
}

/// A log of a minute in pkt-gen's own units, with five seconds of silence and a line that is torn.
fn receiver_in_part() -> String {
    let mut log = "CMD: pkt-gen -f rx -i ix1\n".to_owned();
    for second in 0..60 {
        let report = match second {
            30..35 => "0.000 pps (0.000 pkts 0.000 bps in 1000000 usec) 0.00 avg_batch 9 min_space",
            _ => {
                "900.000 Kpps (900.000 Kpkts 432.000 Mbps in 1000000 usec) 2.95 avg_batch 9 min_space"
            }
        };
        log += &format!("{second:03}.000000 main_thread [2786] {report}\n");
    }
    log + "060.000000 main_thread [2786] 900.000 Kp\nTerminated\n"
}

#[test]
fn a_log_in_pkt_gens_own_units_counts_whole_and_what_is_torn_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    let log = format!("{RESULTS}/bench.x.1.receiver");
    write(&root, &log, &receiver_in_part());
    write(&root, &format!("{RESULTS}/x.pps"), "900\n");
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let torn = "a line that fwdlab does not understand or that cannot be: \"060.000000 main_thread [2786] 900.000 Kp\"";
    let said = printed(&output);
    let expected =
        format!("2 files: 1 read, 1 read in part, 0 left, 0 wrong\n  in part: {log}:62: {torn}\n");
    assert!(said.starts_with(&expected), "{said}");

    let results = out.join("results").join(RESULTS);
    let run = fs::read_to_string(results.join("runs.jsonl")).unwrap();
    let run: Value = serde_json::from_str(&run).unwrap();
    assert_eq!(
        (&run["archive_pps"], &run["stalls"]),
        (&json!(900_000.0), &json!(5))
    );
    let mean_pps = run["forwarded_pps"].as_f64().unwrap();
    assert!((mean_pps - 818_181.818_18).abs() < 1e-4, "{mean_pps}");
    assert_eq!(
        fs::read_to_string(results.join("x.pps")).unwrap(),
        "900000\n"
    );
    let files = fs::read_to_string(out.join("files.jsonl")).unwrap();
    let file: Value = serde_json::from_str(files.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&file["outcome"], &file["line"]),
        (&json!("read-in-part"), &json!(62))
    );

    // In the tree, and in what was imported of it.
    for directory in [&root, &out] {
        let lint = [
            "lint",
            directory.to_str().unwrap(),
            "--only",
            "L412,L103,L101",
        ];
        let output = fwdlab(&lint).output().unwrap();
        let said = text(&output);
        let words: Vec<&str> = said.split_whitespace().collect();
        assert!(words.join(" ").contains(torn), "{said}");
        assert!(said.contains("L412") && said.contains("L10"), "{said}");
    }
}

#[test]
fn the_summary_is_for_programs_as_well() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    let output = import(&root, &out, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "schema": 2,
        "root": root,
        "files": { "read": 6, "read_in_part": 0, "skipped": 2, "failed": 0 },
        "folders": 1,
        "runs": 4,
        "kinds": {
            "configuration of a DUT": 1,
            "dataset": 2,
            "picture": 1,
            "receiver's log": 4,
        },
        "skipped": {
            "a key or certificate: never read further, never copied": 1,
            "a picture": 1,
        },
        "datasets": { "from_logs": 1, "renamed": 0, "altered": 1, "without_logs": 0 },
    });
    assert_eq!(summary, expected);
    let account = fs::read(out.join("import.json")).unwrap();
    let account: Value = serde_json::from_slice(&account).unwrap();
    assert_eq!(account["files"], summary["files"]);
}

#[test]
fn an_archive_without_results_is_an_answer_of_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    fs::create_dir(&root).unwrap();
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let said = printed(&output);
    assert!(said.starts_with("0 files: 0 read"), "{said}");
    assert!(
        said.contains("there is no folder of results in it"),
        "{said}"
    );
}

#[test]
fn names_cannot_speak_to_the_terminal() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    let hostile = "\u{1b}]0;owned\u{7}\n9 files: 9 read";
    write(
        &root,
        &format!("{RESULTS}/bench.{hostile}.1.receiver"),
        "no log\n",
    );
    write(&root, &format!("{hostile}/results/L/x.pps"), "1\n");
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = printed(&output);
    let is_harmless = |letter: char| letter == '\n' || !letter.is_control();
    assert!(said.chars().all(is_harmless), "{said:?}");
    assert!(!said.contains("\n9 files"), "{said}");
    let folders: Vec<String> = fs::read_dir(out.join("results"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        folders
            .iter()
            .flat_map(|name| name.chars())
            .all(is_harmless)
    );
}

#[test]
fn links_do_not_lead_out_of_the_archive() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    write(scratch.path(), "elsewhere/x.pps", "77\n");
    let link = |name: &str| symlink(scratch.path().join("elsewhere"), root.join(name));
    link("P/N/T/results/M").unwrap();
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = printed(&output);
    assert!(
        said.contains("left 1: a symbolic link: not followed"),
        "{said}"
    );
    assert!(!out.join("results/P/N/T/results/M").exists());
}

#[test]
fn what_is_no_earlier_import_stays_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    write(&out, "results/quickstart/README.md", "mine");
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let said = text(&output);
    assert!(
        said.contains("no earlier import; give a folder that is new or empty"),
        "{said}"
    );
    let kept = fs::read_to_string(out.join("results/quickstart/README.md")).unwrap();
    assert_eq!(kept, "mine");
}

#[test]
fn an_import_into_the_archive_itself_is_refused_wherever_it_is_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    archive(scratch.path());
    let output = fwdlab(&["import", "netbenches", ".", "--results", "new"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(!scratch.path().join("new").exists());
}

#[test]
fn where_nothing_may_be_written_the_earlier_import_stays() {
    testkit::require_root!();
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("fwdlab");
    fs::copy(FWDLAB, &program).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    assert_eq!(import(&root, &out, &[]).status.code(), Some(0));
    let y = out.join("results").join(RESULTS).join("y.pps");
    let (earlier, account) = (fs::read(&y).unwrap(), out.join("import.json"));
    let before = fs::read(&account).unwrap();
    write(
        &root,
        &format!("{RESULTS}/bench.y.2.receiver"),
        &receiver(500),
    );
    let output = Command::new(&program)
        .args(["import", "netbenches", "archive", "--results", "out"])
        .current_dir(scratch.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("Permission denied"),
        "{}",
        text(&output)
    );
    assert_eq!(fs::read(&y).unwrap(), earlier);
    assert_eq!(fs::read(&account).unwrap(), before);
}

/// Wherever a key stands, it is in no file of the import and in no message.
#[test]
fn keys_are_neither_kept_nor_quoted() {
    const KEY: &str = "kKJh8sBqJtq2PUK1yYcXQ0vTn3kTf5Z3j0b8f9pV2lM=";
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    let assigned = format!("PrivateKey = {KEY}\n");
    let association = format!("add 1.2.3.4 1.2.3.5 esp 0x1000 -E aes-cbc \"{KEY}\";\n");
    for (path, text) in [
        ("README.md", format!("# Impact of x\n\n{assigned}")),
        ("notes.md", association),
        ("bench.k.1.receiver", assigned.clone()),
        ("bench.k.1.pmc.graph", assigned.clone()),
        ("bench.k.equilibrium", assigned.clone()),
        ("bench.k.info", assigned),
        (
            "../../configs/x/etc/rc.conf",
            format!(
                "ifconfig_em0_alias0=\"inet vhid 1 advskew 100 pass {KEY} alias 192.168.1.1/32\"\n"
            ),
        ),
        (
            "../../configs/y/etc/sysctl.conf",
            format!("net.inet.tcp.md5_key={KEY}\n"),
        ),
    ] {
        write(&root, &format!("{RESULTS}/{path}"), &text);
    }
    let output = import(&root, &out, &[]);
    let mut all = [output.stdout, output.stderr].concat();
    for file in testkit::files_below(&out) {
        all.extend(fs::read(file).unwrap());
    }
    for arguments in [&["lint"][..], &["lint", "--json"]] {
        let output = fwdlab(&[arguments, &[root.to_str().unwrap()]].concat())
            .output()
            .unwrap();
        all.extend([output.stdout, output.stderr].concat());
    }
    assert!(!String::from_utf8_lossy(&all).contains(&KEY[..20]));
}

/// A lab with its configuration sets and its sets of pkt-gen.
fn lab(root: &Path) {
    let config = "\
DUT_ADMIN=dut
SENDER_ADMIN=tester
RECEIVER_ADMIN=${SENDER_ADMIN}
SENDER_LAB_IP=198.18.0.2
RECEIVER_LAB_IP=198.19.0.2
SENDER_LAB_IF=ix0
RECEIVER_LAB_IF=ix1
REBOOT_TIMEOUT=120
: ${PMC_EVENT:=cycles}
SENDER_START_CMD=\"touch executed; $(touch executed)\"
";
    write(root, "bench-lab.config", config);
    let rc_conf = "ifconfig_ix0=\"inet 198.18.0.1/24\"\nifconfig_ix1=\"inet 198.19.0.1/24\"\n";
    for (set, mask) in [("351", "351"), ("511-default", "511")] {
        write(root, &format!("mask/configs/{set}/etc/rc.conf"), rc_conf);
        let sysctl = format!("kern.random.harvest.mask={mask}\n");
        write(
            root,
            &format!("mask/configs/{set}/etc/sysctl.conf"),
            &sysctl,
        );
    }
    for (name, family, net) in [
        (
            "inet4",
            4,
            [
                "198.18.10.1:2000-198.18.10.20",
                "198.19.10.1:2000-198.19.10.100",
            ],
        ),
        (
            "inet6",
            6,
            [
                "[2001:2:0:10::1]-[2001:2:0:10::14]",
                "[2001:2:0:8010::1]-[2001:2:0:8010::64]",
            ],
        ),
    ] {
        let size = if family == 4 { 60 } else { 62 };
        let [from, to] = net;
        let text = format!(
            "PKT_SIZE={size}\nAF={family}\nSENDER_LAB_NET='{from}'\nRECEIVER_LAB_NET='{to}'\n"
        );
        write(root, &format!("dualstack/{name}"), &text);
    }
}

fn import_lab(root: &Path, options: &[&str]) -> Output {
    let arguments = ["import", "bench-lab", "bench-lab.config"];
    fwdlab(&[&arguments[..], options].concat())
        .current_dir(root)
        .output()
        .unwrap()
}

#[test]
fn a_lab_of_the_archives_scripts_can_be_planned() {
    let scratch = tempfile::tempdir().unwrap();
    lab(scratch.path());
    let options = [
        "--configs",
        "mask/configs",
        "--pktgen",
        "dualstack",
        "--to",
        "out",
    ];
    let output = import_lab(scratch.path(), &options);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(
        printed(&output),
        "\
lab: out/mask-lab.toml
experiment: out/mask.toml

used of bench-lab.config:
  1: DUT_ADMIN: host of [dut]
  2: SENDER_ADMIN: host of [tester]
  3: RECEIVER_ADMIN: host of [tester]
  4: SENDER_LAB_IP: in of [dut]: the port in its net
  5: RECEIVER_LAB_IP: out of [dut]: the port in its net
  6: SENDER_LAB_IF: out of [tester]
  7: RECEIVER_LAB_IF: in of [tester]
  8: REBOOT_TIMEOUT: reboot_s_max of [dut]: 600 s, 5 s each

used of dualstack/inet4:
  1: PKT_SIZE: frame_size of [traffic]: 64 with the check sequence
  2: AF: families of [traffic]: inet
  3: SENDER_LAB_NET: sources and source_ports of [traffic]
  4: RECEIVER_LAB_NET: destinations and destination_ports of [traffic]

used of dualstack/inet6:
  1: PKT_SIZE: frame_size of [traffic]: 64, the smallest, which is 66 over IPv6
  2: AF: families of [traffic]: inet6
  3: SENDER_LAB_NET: sources and source_ports of [traffic]
  4: RECEIVER_LAB_NET: destinations and destination_ports of [traffic]

not used of bench-lab.config:
  9: PMC_EVENT: stacks are sampled as [profile] of an experiment says
  10: SENDER_START_CMD: no command of it is run

to know:
  bench-lab.config:10: SENDER_START_CMD: holds a command, and nothing here is run; it stays as it stands
  inet4 and inet6 differ in their family alone: mask.toml measures both
  bench-lab.config:10: SENDER_START_CMD: no pkt-gen; the lab sends by pkt-gen

next: fwdlab plan out/mask.toml
"
    );
    assert!(!scratch.path().join("executed").exists());
    let read = |name: &str| fs::read_to_string(scratch.path().join("out").join(name)).unwrap();
    insta::assert_snapshot!("a_lab_of_the_archives_scripts", read("mask-lab.toml"));
    insta::assert_snapshot!("an_experiment_of_the_archives_scripts", read("mask.toml"));
    let plan = fwdlab(&["plan", "out/mask.toml"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan));

    // Once more is no harm, and another text is not written over it.
    assert_eq!(import_lab(scratch.path(), &options).status.code(), Some(0));
    write(scratch.path(), "out/mask.toml", "mine");
    let output = import_lab(scratch.path(), &options);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output).contains(
            "error: out/mask.toml: is there already and something else, and nothing is overwritten; choose \
             another --name, or another folder with --to"
        ),
        "{}",
        text(&output)
    );
    let named = [&options[..], &["--name", "../other one", "--json"]].concat();
    let output = import_lab(scratch.path(), &named);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["lab"], "out/other-one-lab.toml");
    assert_eq!(summary["experiments"], json!(["out/other-one.toml"]));
    assert_eq!(summary["is_ready"], true);
    let used = json!({
        "variable": "DUT_ADMIN", "file": "bench-lab.config", "line": 1, "purpose": "host of [dut]",
    });
    assert_eq!(summary["used"][0], used);
}

#[test]
fn a_lab_with_something_to_fill_in_says_what() {
    let scratch = tempfile::tempdir().unwrap();
    lab(scratch.path());
    let output = import_lab(scratch.path(), &["--to", "out"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let expected = "\
to fill in, 2 keys; nothing can be planned before:
  [dut] in: the DUT's interface in the net of 198.18.0.2; `ifconfig` there lists it (neither a set nor the drawing tells it)
  [dut] out: the DUT's interface in the net of 198.19.0.2; `ifconfig` there lists it (neither a set nor the drawing tells it)
";
    assert!(printed(&output).ends_with(expected), "{}", printed(&output));
    assert!(scratch.path().join("out/bench-lab-lab.toml").is_file());
}

#[test]
fn a_lab_whose_values_no_lab_can_have_says_why() {
    let scratch = tempfile::tempdir().unwrap();
    lab(scratch.path());
    let config = fs::read_to_string(scratch.path().join("bench-lab.config")).unwrap();
    let hostile = config.replace("=tester", "=\"-oProxyCommand=x \u{1b}[2J\"");
    write(scratch.path(), "bench-lab.config", &hostile);
    let output = import_lab(
        scratch.path(),
        &["--configs", "mask/configs", "--to", "out"],
    );
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let said = printed(&output);
    assert!(
        said.contains("to put right; nothing can be planned before:"),
        "{said}"
    );
    assert!(
        said.contains("`host` in [tester] must be one line of text"),
        "{said}"
    );
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn every_lab_of_the_corpus_can_be_planned() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let scratch = tempfile::tempdir().unwrap();
    let (mut labs, mut unrouted) = (0, 0);
    for config in testkit::files_below(&archive) {
        let is_lab = config
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("bench-lab"));
        if !is_lab {
            continue;
        }
        let nic = config.parent().unwrap();
        let mut topics: Vec<_> = fs::read_dir(nic)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        topics.sort();
        let configs = topics
            .iter()
            .map(|topic| topic.join("configs"))
            .find(|configs| configs.is_dir());
        labs += 1;
        let to = scratch.path().join(labs.to_string());
        let output = Command::new(FWDLAB)
            .args(["import", "bench-lab"])
            .arg(&config)
            .arg("--configs")
            .arg(configs.unwrap())
            .arg("--to")
            .arg(&to)
            .args(["--name", "x"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        // Without ssh nobody's hosts are asked, which elsewhere may have the addresses of these.
        let plan = fwdlab(&["plan", to.join("x.toml").to_str().unwrap()])
            .current_dir(scratch.path())
            .env("PATH", scratch.path())
            .output()
            .unwrap();
        // The sets of one send to addresses of the cables' own networks, which no run would forward.
        let said = text(&plan);
        if plan.status.code() == Some(3) && said.contains("the lab routes 198.19.0.0/16 except") {
            unrouted += 1;
            continue;
        }
        assert_eq!(plan.status.code(), Some(0), "{said}");
    }
    assert_eq!((labs, unrouted), (17, 1));
}
