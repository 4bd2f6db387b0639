//! What is given in the place of a plain file of a plain size is refused at once, quoted to nobody, and never written
//! through.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use shared::{FWDLAB, data, fwdlab};
use tempfile::TempDir;
use testkit::{copy_folder, signal, succeed, text};

/// What every case here is done in, on a machine however busy; without bounds they take minutes, or for ever.
const SECONDS_MAX: &str = "30";

/// No process has this number.
const NO_PROCESS: &str = "99999999";

/// The program, killed where it takes too long.
fn bounded(arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["--signal=KILL", SECONDS_MAX, FWDLAB])
        .args(arguments)
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Refuses, in time, with these words and in not many.
fn assert_refused(command: &mut Command, words: &[&str]) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code();
    assert_eq!(code, Some(2), "{command:?}: {}", said(&output));
    for word in words {
        assert!(stderr.contains(word), "{word:?}: {command:?}: {stderr}");
    }
    assert!(
        stderr.len() < 100_000,
        "{command:?}: {} bytes",
        stderr.len()
    );
    stderr
}

fn said(output: &Output) -> String {
    text(output).chars().take(2000).collect()
}

const EXPERIMENT: &str = "question = \"q\"\nlab = \"lab.toml\"\n";
const FACTOR: &str = "[[factor]]\nname = \"f\"\nlevels = [0, 1]\n";
const LAB: &str = "kind = \"netns\"\n[bind]\nf = { sysctl = \"net.ipv4.ip_forward\" }\n";

/// A folder with a lab file in it.
fn folder_with_a_lab() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lab.toml"), LAB).unwrap();
    folder
}

fn mkfifo(path: &Path) {
    succeed(Command::new("mkfifo").arg(path));
}

/// Things that are no plain file of a plain size, by what is said of them.
struct Hostile {
    folder: TempDir,
    _listener: UnixListener,
}

impl Hostile {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        mkfifo(&at("pipe"));
        let listener = UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        File::create(at("sparse"))
            .unwrap()
            .set_len(1 << 30)
            .unwrap();
        Self {
            folder,
            _listener: listener,
        }
    }

    fn all(&self) -> Vec<(PathBuf, &'static str)> {
        let at = |name: &str| self.folder.path().join(name);
        vec![
            (at("pipe"), "it is a pipe; give a regular file"),
            (at("socket"), "it is a socket; give a regular file"),
            (at("zero"), "it is a device; give a regular file"),
            (at("folder"), "it is a folder; give a regular file"),
            (at("sparse"), "it is larger than "),
            // A file to the kernel, and yet who reads it waits.
            ("/dev/full".into(), "it is a device"),
        ]
    }
}

#[test]
fn what_files_hold_does_not_act_on_the_terminal() {
    let folder = folder_with_a_lab();
    let experiment = folder.path().join("experiment.toml");
    fs::write(&experiment, "question = \"\x1b]0;title\x07\u{9b}2J\"\n").unwrap();
    let stderr = assert_refused(
        &mut bounded(&["plan", path(&experiment)]),
        &["experiment.toml"],
    );
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!stderr.contains(acts), "{stderr:?}");
}

#[test]
fn experiments_labs_and_what_they_name_are_plain_files() {
    let folder = folder_with_a_lab();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("plain.toml"), format!("{EXPERIMENT}{FACTOR}")).unwrap();
    let hostile = Hostile::new();
    for (given, says) in hostile.all() {
        let given = path(&given);
        assert_refused(&mut bounded(&["plan", given]), &["cannot read", says]);
        let plain = at("plain.toml");
        assert_refused(
            &mut bounded(&["plan", path(&plain), "--lab", given]),
            &[says],
        );
        assert_refused(&mut bounded(&["doctor", given]), &[says]);

        let named = format!("question = \"q\"\nlab = {given:?}\n{FACTOR}");
        fs::write(at("named.toml"), named).unwrap();
        assert_refused(
            &mut bounded(&["plan", path(&at("named.toml"))]),
            &[says, "named.toml:2"],
        );

        let reference = format!("[[reference]]\nlabel = \"r\"\npps.inet = {given:?}\n");
        fs::write(
            at("earlier.toml"),
            format!("{EXPERIMENT}{FACTOR}{reference}"),
        )
        .unwrap();
        assert_refused(&mut bounded(&["plan", path(&at("earlier.toml"))]), &[says]);

        let lab = format!("kind = \"netns\"\n[bind.f]\nnft = {{ 0 = {given:?}, 1 = {given:?} }}\n");
        fs::write(at("rules.toml"), lab).unwrap();
        let rules = at("rules.toml");
        assert_refused(
            &mut bounded(&["plan", path(&plain), "--lab", path(&rules)]),
            &[says],
        );
    }
    let large = format!("{EXPERIMENT}{FACTOR}# {}\n", "x".repeat(2 << 20));
    fs::write(at("large.toml"), large).unwrap();
    assert_refused(
        &mut bounded(&["plan", path(&at("large.toml"))]),
        &["larger than 1 MiB"],
    );
}

#[test]
fn very_many_keys_levels_and_tables_are_refused_in_time() {
    const MANY: usize = 10_000;
    let folder = folder_with_a_lab();
    let many = |of: &dyn Fn(usize) -> String| (0..MANY).map(of).collect::<String>();
    let numbers = many(&|number| format!("{number}, "));
    for (name, text, says) in [
        (
            "keys",
            many(&|number| format!("key{number} = 1\n")) + EXPERIMENT + FACTOR,
            "10000 errors in all; the first 20 are shown",
        ),
        (
            "levels",
            format!("{EXPERIMENT}[[factor]]\nname = \"f\"\nlevels = [{numbers}]\n"),
            "10000 entries, more than 500",
        ),
        (
            "equal levels",
            format!(
                "{EXPERIMENT}[[factor]]\nname = \"f\"\nlevels = [{}]\n",
                "1, ".repeat(MANY)
            ),
            "level \"1\" is listed twice",
        ),
        (
            "factors",
            format!(
                "{EXPERIMENT}{}",
                many(&|number| FACTOR.replace("\"f\"", &format!("\"f{number}\"")))
            ),
            "[[factor]] has 10000 entries",
        ),
        (
            "variants",
            format!(
                "{EXPERIMENT}{FACTOR}{}",
                many(&|number| format!("[[variant]]\nlabel = \"v{number}\"\n"))
            ),
            "[[variant]] has 10000 entries",
        ),
        (
            "excludes",
            format!(
                "{EXPERIMENT}{FACTOR}{}",
                many(&|number| format!("[[exclude]]\nlevels = {{ g{number} = 1 }}\n"))
            ),
            "[[exclude]] has 10000 entries",
        ),
        (
            "unknown factors",
            format!("{EXPERIMENT}{FACTOR}[[variant]]\nlabel = \"v\"\n[variant.levels]\n")
                + &many(&|number| format!("g{number} = 1\n")),
            "10000 entries, more than 500",
        ),
        (
            "settings",
            format!(
                "{EXPERIMENT}{FACTOR}[settings]\n{}",
                many(&|number| format!("s{number} = 1\n"))
            ),
            "[settings] has 10000 entries",
        ),
        (
            "references",
            format!(
                "{EXPERIMENT}{FACTOR}{}",
                many(&|number| format!(
                    "[[reference]]\nlabel = \"r{number}\"\npps.inet = \"none\"\n"
                ))
            ),
            "[[reference]] has 10000 entries",
        ),
        (
            "comparisons",
            format!(
                "{EXPERIMENT}{FACTOR}{}",
                many(&|number| format!("[[comparison]]\nbaseline = \"z{number}\"\n"))
            ),
            "[[comparison]] has 10000 entries",
        ),
        (
            "errors of syntax",
            many(&|number| format!("key{number} = = 1\n")),
            "errors in all; the first 20 are shown",
        ),
        (
            "deep lists",
            format!(
                "{EXPERIMENT}{FACTOR}deep = {}{}\n",
                "[".repeat(100_000),
                "]".repeat(100_000)
            ),
            "this is not TOML",
        ),
        (
            "deep tables",
            format!("{}a = 1\n{EXPERIMENT}{FACTOR}", "a.".repeat(100_000)),
            "this is not TOML",
        ),
    ] {
        let file = folder.path().join("many.toml");
        fs::write(&file, text).unwrap();
        let stderr = assert_refused(&mut bounded(&["plan", path(&file)]), &[says]);
        assert!(stderr.matches("\nerror").count() <= 21, "{name}: {stderr}");
    }
    let plain = folder.path().join("plain.toml");
    fs::write(&plain, format!("{EXPERIMENT}{FACTOR}")).unwrap();
    let bindings = many(&|number| format!("f{number} = {{ sysctll = \"net.ipv4.ip_forward\" }}\n"));
    let lab = folder.path().join("many.toml");
    fs::write(&lab, format!("kind = \"netns\"\n[bind]\n{bindings}")).unwrap();
    let mut planned = bounded(&["plan", path(&plain), "--lab", path(&lab)]);
    assert_refused(&mut planned, &["`bind` has 10000 entries, more than 500"]);
}

#[test]
fn a_plan_that_no_memory_holds_is_refused() {
    let folder = folder_with_a_lab();
    let levels: Vec<String> = (0..250).map(|level| level.to_string()).collect();
    let factor = format!(
        "[[factor]]\nname = \"f\"\nlevels = [{}]\n",
        levels.join(", ")
    );
    let file = folder.path().join("large.toml");
    fs::write(
        &file,
        format!("{EXPERIMENT}{factor}[design]\nblocks = 1000\nrounds = 1000\n"),
    )
    .unwrap();
    let says = "the plan has 251000000 slices, more than 2000000";
    assert_refused(&mut bounded(&["plan", path(&file)]), &[says]);
}

#[test]
fn where_no_thread_can_be_started_work_goes_on_in_one_or_ends_with_an_error() {
    testkit::require_root!();
    testkit::require_tool!("prlimit");
    let (root, directory) = results();
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    let state = root.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o777)).unwrap();
    // Of nobody's processes there may be no more: to root the bound does not apply.
    let as_nobody = |arguments: &[&str]| {
        let mut command = Command::new("prlimit");
        command
            .args(["--nproc=1", FWDLAB])
            .args(arguments)
            .env("XDG_STATE_HOME", &state)
            .uid(shared::NOBODY)
            .gid(shared::NOBODY);
        command.output().unwrap()
    };
    let lint = as_nobody(&["lint", path(root.path())]);
    let plain = bounded(&["lint", path(root.path())]).output().unwrap();
    assert_eq!(lint.stdout, plain.stdout, "{}", said(&lint));
    let results = state.join("results");
    let short = data("router.toml");
    let run = as_nobody(&["run", &short, "--results", path(&results)]);
    assert_eq!(run.status.code(), Some(3), "{}", said(&run));
    assert!(said(&run).contains("starting a thread"), "{}", said(&run));
    assert!(!said(&run).contains("panicked"), "{}", said(&run));
    drop(directory);
}

#[test]
fn what_others_may_not_read_is_not_quoted_where_a_file_names_it() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("experiments")).unwrap();
    let experiment = at("experiments/one.toml");
    let secret = at("secret");
    fs::write(
        &secret,
        "root:S3CRET:1:2\nkind = S3CRET\nhost = \"S3CRET\"\n",
    )
    .unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    symlink(&secret, at("experiments/link")).unwrap();
    let write = |lab: &str, more: &str| {
        let text = format!("question = \"q\"\nlab = {lab:?}\n{FACTOR}{more}");
        fs::write(&experiment, text).unwrap();
    };
    let plan = || bounded(&["plan", path(&experiment)]);
    // By its path, from beside, and by a link that lies where it should.
    for name in [path(&secret), "../secret", "link"] {
        write(name, "");
        let stderr = assert_refused(&mut plan(), &["this is not TOML", "secret:1:1"][..1]);
        assert!(!stderr.contains("S3CRET"), "{stderr}");
    }
    fs::write(&secret, "kind = \"S3CRET\"\nlink_gbps = \"S3CRET\"\n").unwrap();
    write("../secret", "");
    let stderr = assert_refused(&mut plan(), &["secret:1:8", "secret:2:13"]);
    assert!(!stderr.contains("S3CRET"), "{stderr}");
    // Of what everybody may read the line is shown, and of what lies beside, and of what the user names.
    fs::set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
    assert!(assert_refused(&mut plan(), &[]).contains("S3CRET"));
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let mut named = bounded(&["plan", path(&experiment), "--lab", path(&secret)]);
    assert!(assert_refused(&mut named, &[]).contains("S3CRET"));
    fs::copy(&secret, at("experiments/beside")).unwrap();
    write("beside", "");
    assert!(assert_refused(&mut plan(), &[]).contains("S3CRET"));
    // Of earlier data nothing ever is.
    fs::write(at("experiments/lab.toml"), LAB).unwrap();
    fs::write(&secret, "root:S3CRET:1:2\n").unwrap();
    write(
        "lab.toml",
        "[[reference]]\nlabel = \"r\"\npps.inet = \"../secret\"\n",
    );
    let stderr = assert_refused(
        &mut plan(),
        &["secret:1: the line does not begin with a forwarding rate"],
    );
    assert!(!stderr.contains("S3CRET"), "{stderr}");
}

/// A results directory, in a folder of its own.
fn results() -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("results/router/spring");
    copy_folder(Path::new(&data("results/router/spring")), &directory);
    (root, directory)
}

#[test]
fn nothing_is_read_out_of_a_results_directory_through_a_link_or_from_a_device() {
    let hostile = Hostile::new();
    let outside = hostile.folder.path().join("outside");
    fs::copy(data("results/router/spring/trials.jsonl"), &outside).unwrap();
    let mut cases = hostile.all();
    cases.push((outside, "outside of"));
    for (target, says) in cases {
        for file in [
            "trials.jsonl",
            "plan.json",
            "blocks/1.csv",
            "sessions/1.json",
        ] {
            let (_root, directory) = results();
            let replaced = directory.join(file);
            fs::remove_file(&replaced).unwrap();
            symlink(&target, &replaced).unwrap();
            // Where links lead is seen first.
            let says = if says.starts_with("it is") {
                "outside of"
            } else {
                says
            };
            let given = path(&directory);
            assert_refused(&mut bounded(&["report", given]), &[file, says]);
            assert_refused(&mut bounded(&["show", given]), &[file, says]);
            let lint = bounded(&["lint", given, "--github"]).output().unwrap();
            assert_eq!(lint.status.code(), Some(1), "{}", said(&lint));
            assert!(said(&lint).contains("cannot be read"), "{}", said(&lint));
        }
    }
    // What a chain names may lie anywhere; nothing of it is shown, nor its hash.
    let secret = hostile.folder.path().join("secret");
    fs::write(&secret, "a secret").unwrap();
    let link = |name: &str| {
        format!(
            "{{\"schema\":1,\"session\":1,\"block\":1,\"attempt\":1,\"records\":\"0\",\"files\":{{\"{name}\":\"0\"}},\"before\":null}}\n"
        )
    };
    for chain in [
        None,
        Some(link(path(&secret))),
        Some(link("../../../../../../etc/passwd")),
    ] {
        let (_root, directory) = results();
        let file = directory.join("chain.jsonl");
        match chain {
            None => symlink(&secret, &file).unwrap(),
            Some(text) => fs::write(&file, text).unwrap(),
        }
        let lint = bounded(&["lint", path(&directory)]).output().unwrap();
        assert!(!said(&lint).contains("a secret"), "{}", said(&lint));
        let hash = fwdlab_model::sha256(&fs::read("/etc/passwd").unwrap());
        assert!(!said(&lint).contains(&hash), "{}", said(&lint));
    }
    for file in ["trials.jsonl", "derived/report.json", "README.md", "lock"] {
        let (_root, directory) = results();
        let replaced = directory.join(file);
        let _ = fs::remove_file(&replaced);
        fs::create_dir_all(replaced.parent().unwrap()).unwrap();
        mkfifo(&replaced);
        for command in ["show", "lint", "ls"] {
            let output = bounded(&[command, path(&directory)]).output().unwrap();
            let code = output.status.code();
            assert!(
                code.is_some_and(|code| code < 3),
                "{command} {file}: {}",
                said(&output)
            );
        }
    }
    let (root, directory) = results();
    File::options()
        .write(true)
        .open(directory.join("trials.jsonl"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    assert_refused(
        &mut bounded(&["report", path(&directory)]),
        &["trials.jsonl", "larger than 512 MiB"],
    );
    // The directory itself may be given by a link.
    let (_other, whole) = results();
    let link = root.path().join("link");
    symlink(&whole, &link).unwrap();
    succeed(&mut bounded(&["report", path(&link)]));
}

#[test]
fn a_report_is_not_written_out_of_its_directory() {
    let (root, directory) = results();
    let outside = root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let _ = fs::remove_dir_all(directory.join("derived"));
    symlink(&outside, directory.join("derived")).unwrap();
    assert_refused(
        &mut bounded(&["report", path(&directory)]),
        &["derived", "outside of"],
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);

    fs::remove_file(directory.join("derived")).unwrap();
    let theirs = outside.join("theirs");
    fs::write(&theirs, "theirs").unwrap();
    let readme = directory.join("README.md");
    let _ = fs::remove_file(&readme);
    symlink(&theirs, &readme).unwrap();
    succeed(&mut bounded(&["report", path(&directory)]));
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
    assert!(fs::symlink_metadata(&readme).unwrap().is_file());
}

#[test]
fn a_report_removes_what_killed_reports_left_and_nothing_of_living_ones() {
    let (_root, directory) = results();
    let derived = directory.join("derived");
    fs::create_dir_all(&derived).unwrap();
    let gone = [
        directory.join(format!(".README.md.{NO_PROCESS}.tmp")),
        derived.join(format!(".report.json.{NO_PROCESS}.tmp")),
    ];
    let living = derived.join(format!(".report.json.{}.tmp", std::process::id()));
    for path in gone.iter().chain([&living]) {
        fs::write(path, "half").unwrap();
    }
    succeed(&mut bounded(&["report", path(&directory)]));
    assert_eq!(gone.map(|path| path.exists()), [false, false]);
    assert!(living.exists());
}

#[test]
fn a_report_for_which_the_disk_has_no_room_gets_one_piece_of_advice() {
    testkit::require_root!();
    testkit::require_tool!("unshare", "mount");
    let (_root, directory) = results();
    let _ = fs::remove_dir_all(directory.join("derived"));
    // The mount goes with the namespace.
    let script = "mount -t tmpfs -o size=256k tmpfs /mnt && cp -r \"$1\" /mnt/run && \
                  { dd if=/dev/zero of=/mnt/rest bs=4096 2> /dev/null; exec timeout 30 \"$0\" report /mnt/run; }";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script, FWDLAB, path(&directory)])
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let stderr = assert_refused(
        &mut command,
        &["the disk is full: make room, then `fwdlab report /mnt/run` writes the report"],
    );
    assert!(!stderr.contains("run the same command"), "{stderr}");
    assert_eq!(stderr.matches("fwdlab report").count(), 1, "{stderr}");
}

#[test]
fn observations_and_profiles_are_read_from_pipes() {
    let folder = tempfile::tempdir().unwrap();
    // Comparisons name a set by its file.
    let pipe = folder.path().join("a.txt");
    mkfifo(&pipe);
    let file = data("b.txt");
    let numbers = fs::read(data("a.txt")).unwrap();
    let feed = |bytes: Vec<u8>| {
        let pipe = pipe.clone();
        thread::spawn(move || drop(fs::write(pipe, bytes)))
    };
    let read = |arguments: &[&str], bytes: &[u8]| {
        let writer = feed(bytes.to_vec());
        let output = succeed(&mut bounded(arguments));
        writer.join().unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .replace(path(&pipe), "A")
    };
    let given = path(&pipe);
    for command in ["compare", "ministat"] {
        let plain = succeed(&mut bounded(&[command, &data("a.txt"), &file]));
        let plain = String::from_utf8(plain.stdout).unwrap();
        let piped = read(&[command, given, &file], &numbers);
        assert_eq!(piped, plain.replace(&data("a.txt"), "A"), "{command}");
    }
    assert!(read(&["flame", "fold", given], b"a;b 3\n").contains("a;b 3"));
    // What is given as standard input is a pipe too.
    let mut child = bounded(&["compare", "/dev/stdin", &file])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &numbers).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn observations_and_profiles_are_bounded() {
    let hostile = Hostile::new();
    let at = |name: &str| hostile.folder.path().join(name);
    let file = data("b.txt");
    for (name, says) in [
        ("socket", "it is a socket"),
        ("sparse", "it is larger than 64 MiB"),
        ("zero", "it is larger than 64 MiB"),
    ] {
        let given = at(name);
        assert_refused(
            &mut bounded(&["compare", path(&given), &file]),
            &[path(&given), says],
        );
    }
    assert_refused(
        &mut bounded(&["flame", "fold", path(&at("folder"))]),
        &["it is a folder"],
    );
    assert_refused(
        &mut bounded(&["flame", "fold", path(&at("zero"))]),
        &["it is larger than 512 MiB"],
    );
}

#[test]
fn results_are_not_looked_for_on_the_whole_machine() {
    assert_refused(&mut bounded(&["show", "/"]), &["/: no results directory"]);
}

fn ignores_interrupts() -> bool {
    const INTERRUPT: u64 = 1 << 1;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    ignored.unwrap_or_default() & INTERRUPT != 0
}

#[test]
fn a_question_in_sql_ends_in_time_and_when_it_is_interrupted() {
    const ENDLESS: &str =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let (root, _) = results();
    let folder = root.path().join("results");
    let mut late = bounded(&[
        "query",
        path(&folder),
        "--sql",
        ENDLESS,
        "--time-limit",
        "1",
    ]);
    assert_refused(&mut late, &["--sql: no answer within 1 s", "--time-limit"]);
    let child = fwdlab(&[
        "query",
        path(&folder),
        "--sql",
        ENDLESS,
        "--time-limit",
        "30",
    ])
    .spawn()
    .unwrap();
    thread::sleep(Duration::from_secs(1));
    // Whoever starts the tests in the background may have them ignore an interrupt, and so their children do.
    let (name, number) = if ignores_interrupts() {
        ("-TERM", 15)
    } else {
        ("-INT", 2)
    };
    signal(child.id(), name);
    let output = child.wait_with_output().unwrap();
    let interrupted = output.status.signal() == Some(number) || output.status.code() == Some(130);
    assert!(interrupted, "{:?}: {}", output.status, said(&output));
}

/// What the readers of numbers make of a text: how many observations and their median, or the refusal.
type Reading = Result<(u64, f64), &'static str>;

/// A text, and what `compare` makes of it as CSV and as lines of numbers, and `ministat`.
type Nasty = (&'static str, String, [Reading; 3]);

#[test]
fn odd_texts_of_numbers_are_read_right_or_refused_with_the_line() {
    let three = Ok((3, 1010.0));
    let invalid = Err("ministat: Invalid data on line 1 in ");
    let headings = ["1000", "1010", "1020"].map(|value| format!("{value}\t").repeat(1_000_000));
    let names: String = (1..=1_000_000)
        .map(|number| format!("c{number}\t"))
        .collect();
    let utf_16: String = "1000\n1010\n1020\n"
        .chars()
        .map(|c| format!("{c}\0"))
        .collect();
    let rows = |rows: [&str; 3]| rows.map(|row| row.to_owned() + "\n").concat();
    let nasty: Vec<Nasty> = vec![
        ("lines", rows(["1000", "1010", "1020"]), [three; 3]),
        ("CRLF", rows(["1000\r", "1010\r", "1020\r"]), [three; 3]),
        ("no end", "1000\n1010\n1020".to_owned(), [three; 3]),
        ("blanks", rows([" 1000 ", "\t1010", "1020 \t"]), [three; 3]),
        ("columns", headings.join("\n"), [three; 3]),
        (
            "mark",
            rows(["\u{feff}1000", "1010", "1020"]),
            [three, three, invalid],
        ),
        (
            "heading",
            rows(["pps", "1000", "1010"]) + "1020\n",
            [three, Err("line 1, column 1: \"pps\" is no plain"), invalid],
        ),
        (
            "headings",
            names + "\n" + &headings.join("\n"),
            [three, Err("line 1, column 1: \"c1\" is no plain"), invalid],
        ),
        (
            "quotes",
            rows(["\"1000\"", "\"1010\"", "\"1020\""]),
            [three, Err("line 1, column 1: \"\\\"1000"), invalid],
        ),
        (
            "a quote",
            rows(["\"1000", "1010", "1020"]),
            [
                Err("line 1: a quoted cell goes on beyond its line"),
                Err("line 1, column 1: "),
                invalid,
            ],
        ),
        (
            "UTF-16",
            utf_16,
            [
                Err("line 1: a NUL byte"),
                Err("line 1: a NUL byte"),
                // To ministat a NUL ends its line, and all lines but the first begin with one.
                Err("must contain at least 3 data points"),
            ],
        ),
        (
            "NUL",
            rows(["1000", "1010\0", "1020"]),
            [Err("line 2: a NUL byte"), Err("line 2: a NUL byte"), three],
        ),
        (
            "nothing",
            String::new(),
            [
                Err("no number in it"),
                Err("no number in it"),
                Err("must contain at least 3 data points"),
            ],
        ),
        (
            "one",
            "1000\n".to_owned(),
            [
                Err("too few values (1)"),
                Err("too few values (1)"),
                Err("must contain at least 3 data points"),
            ],
        ),
        (
            "parentheses",
            rows(["(1000)", "(1010)", "(1020)"]),
            [
                Err("line 1, column 1: \"(1000)\" is no plain"),
                Err("line 1, column 1: \"(1000)\" is no plain"),
                invalid,
            ],
        ),
        (
            "fractions",
            rows(["1000,5", "1010,5", "1020,5"]),
            [
                Err("line 1: \"1000,5\" may be one number"),
                Err("line 1, column 1: \"1000,5\" is no plain"),
                invalid,
            ],
        ),
        (
            "both",
            rows(["950,12;1", "951,40;1", "952,13;1"]),
            [
                Err("line 1: commas and semicolons outside of quotes"),
                Err("line 1, column 1: \"950,12;1\" is no plain"),
                invalid,
            ],
        ),
        (
            "thousands",
            rows(["1,020,033", "1,020,034", "1,020,035"]),
            [
                Err("line 1: \"1,020,033\" may be one number"),
                Err("line 1, column 1: \"1,020,033\" is no plain"),
                invalid,
            ],
        ),
        (
            "blanks in numbers",
            rows(["1 020 033", "1 020 034", "2 020 035"]),
            [
                Err("line 1, column 1: \"1 020 033\" is no plain"),
                Err("line 1: \"1 020 033\" may be one number"),
                Ok((3, 1.0)),
            ],
        ),
        (
            "units",
            rows(["100pps", "101pps", "102pps"]),
            [
                Err("line 1, column 1: \"100pps\" is no plain"),
                Err("line 1, column 1: \"100pps\" is no plain"),
                invalid,
            ],
        ),
        (
            "no number",
            rows(["nan", "1010", "1020"]),
            [
                Err("line 1, column 1: nan is no rate above 0"),
                Err("line 1, column 1: nan is no rate above 0"),
                invalid,
            ],
        ),
        (
            "zero",
            rows(["1000", "0", "1020"]),
            [
                Err("line 2, column 1: 0 is no rate above 0"),
                Err("line 2, column 1: 0 is no rate above 0"),
                Ok((3, 1000.0)),
            ],
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let baseline = at("baseline.txt");
    fs::write(&baseline, "990\n1005\n1000\n").unwrap();
    let baseline = path(&baseline);
    for (name, text, readings) in nasty {
        for (file, reading) in ["nasty.csv", "nasty.txt"].into_iter().zip(readings) {
            fs::write(at(file), &text).unwrap();
            let nasty = at(file);
            let mut compare = bounded(&["compare", "--json", baseline, path(&nasty)]);
            match reading {
                Ok((count, median)) => {
                    let output = compare.output().unwrap();
                    assert!(output.status.success(), "{name}, {file}: {}", said(&output));
                    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
                    let row = &report["groups"][0]["rows"][1];
                    assert_eq!(row["trials"], count, "{name}, {file}");
                    assert_eq!(row["forwarding_rate_pps"], median, "{name}, {file}");
                }
                Err(why) => {
                    let stderr = assert_refused(&mut compare, &[why]);
                    assert!(stderr.len() < 1000, "{name}, {file}: {stderr}");
                }
            }
        }
        let nasty = at("nasty.txt");
        let mut ministat = bounded(&["ministat", "-nq", path(&nasty)]);
        match readings[2] {
            Ok((count, median)) => {
                let output = ministat.output().unwrap();
                let row = String::from_utf8_lossy(&output.stdout).into_owned();
                let figures: Vec<&str> = row.split_whitespace().collect();
                assert!(output.status.success(), "{name}: {}", said(&output));
                assert_eq!(figures[1], count.to_string(), "{name}: {row}");
                assert_eq!(figures[4], median.to_string(), "{name}: {row}");
            }
            Err(why) => drop(assert_refused(&mut ministat, &[why])),
        }
        // None of them is a table of files, and their paths are in what says so.
        let design = at("nasty.csv");
        assert_refused(
            &mut bounded(&["compare", "--design", path(&design)]),
            &[path(&design)],
        );
    }
}

#[test]
fn lines_that_do_not_belong_together_are_not_paired() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let whole = write("whole.txt", "# as measured\n1\n2\n4\n8\n");
    let killed = write("killed.txt", "3\n\n6\n12\n24\n");
    let (whole, killed) = (path(&whole), path(&killed));
    let said =
        format!("{whole}, line 3, and {killed}, line 3: observation 2 stands in another line");
    assert_refused(
        &mut bounded(&["compare", "--paired", whole, killed]),
        &[&said],
    );
    let offered = ["compare", whole, killed, "--offered", killed, whole];
    assert_refused(&mut bounded(&offered), &[&said]);
    assert!(
        bounded(&["compare", whole, killed])
            .status()
            .unwrap()
            .success()
    );

    let table = write(
        "both.csv",
        "name;old;new\nr1;150;152\nr2;;151\nr3;149;153\n",
    );
    let table = path(&table);
    let empty = format!("{table}: line 3, column 2: an empty cell");
    let arguments = ["compare", "--paired", "--column", "old", table, whole];
    assert_refused(&mut bounded(&arguments), &[&empty]);
    let separators = ["compare", "--delimiters", ";,", table, whole];
    assert_refused(
        &mut bounded(&separators),
        &["one ASCII character separates the cells"],
    );
}
