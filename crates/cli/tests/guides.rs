//! The guide's commands, run as they are written there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use shared::{FWDLAB, REPOSITORY};
use testkit::text;

/// A folder to work in, and programs for it: the one under test, and a `sudo` for whom root is already.
struct Desk {
    folder: tempfile::TempDir,
    programs: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let programs = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(FWDLAB, programs.path().join("fwdlab")).unwrap();
        let sudo = programs.path().join("sudo");
        fs::write(&sudo, "#!/bin/sh\nexec \"$@\"\n").unwrap();
        fs::set_permissions(&sudo, fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            programs,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, script: &str, variables: &[(&str, &str)]) -> Output {
        let path = env::var("PATH").unwrap();
        let found_first = format!("{}:{path}", self.programs.path().display());
        Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", script])
            .current_dir(self.path())
            .env("PATH", found_first)
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

fn guide(name: &str) -> String {
    let path: PathBuf = [REPOSITORY, "docs", name].iter().collect();
    fs::read_to_string(path).unwrap()
}

/// The commands in a page's blocks of a console, each without its prompt.
fn commands(page: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")) {
                Some(command) => commands.push(command.to_owned()),
                None => {
                    let last = commands.last_mut().unwrap();
                    *last += "\n";
                    *last += line;
                }
            }
        }
    }
    commands
}

#[test]
fn two_rulesets_of_my_own() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let _machine = testkit::own_the_machine();
    let desk = Desk::new();
    let commands = commands(&guide("two-rulesets.md"));
    assert_eq!(commands.len(), 8);
    let mut said = String::new();
    for command in &commands {
        let output = desk.run(command, &[]);
        said += &text(&output);
        assert!(output.status.success(), "{command}\n{said}");
    }
    let measured = "Effect of replacing old.nft with new.nft on IPv4 forwarding";
    assert!(said.contains(measured), "{said}");
}

/// The script of the workflow's step that measures.
fn measuring_step(page: &str) -> String {
    let step = page
        .split("- name: Measure\n        run: |\n")
        .nth(1)
        .unwrap();
    let lines = step
        .lines()
        .take_while(|line| line.starts_with("          "));
    lines
        .map(|line| format!("{}\n", line.trim_start()))
        .collect()
}

#[test]
fn a_pull_request_that_changes_nothing_passes_and_one_that_costs_packets_fails() {
    testkit::require_root!();
    testkit::require_tool!("nft", "git");
    let _machine = testkit::own_the_machine();
    let desk = Desk::new();
    let script = measuring_step(&guide("ci.md"));
    // As long as a test may take.
    let script = script.replace("--minutes 5", "--minutes 0.5");
    assert!(script.contains("--minutes 0.5"), "{script}");
    let rules = |rules: &str| {
        format!(
            "table inet f {{\n\tchain forward {{\n\t\ttype filter hook forward priority filter; policy accept;\n\
             {rules}\t}}\n}}\n"
        )
    };
    let commit = |ruleset: &str| {
        fs::write(desk.path().join("firewall.nft"), ruleset).unwrap();
        // The checkout begins with an empty folder: `--minutes` may make other files of the same name.
        let script = "git add firewall.nft; git clean -ffdxq; \
                      git -c user.name=a -c user.email=a@b.c commit -q -m rules";
        let output = desk.run(script, &[]);
        assert!(output.status.success(), "{}", text(&output));
    };
    let output = desk.run("git init -q -b main .", &[]);
    assert!(output.status.success(), "{}", text(&output));
    commit(&rules("\t\tudp dport 53 accept\n"));
    desk.run("git update-ref refs/remotes/origin/main HEAD", &[]);

    commit(&rules("\t\tudp dport 53 accept comment \"names\"\n"));
    let harmless = desk.run(
        &script,
        &[("GITHUB_BASE_REF", "main"), ("GITHUB_SHA", "harmless")],
    );
    let said = text(&harmless);
    assert!(said.contains("passes worse:2%"), "{said}");
    let comment = fs::read_to_string(desk.path().join("comment.md")).unwrap();
    assert!(comment.contains("firewall.nft"), "{comment}");

    // A rule for each of many ports, none of them the frames'.
    let many: String = (1..300)
        .map(|port| format!("\t\tudp dport {port} drop\n"))
        .collect();
    commit(&rules(&many));
    let costly = desk.run(
        &script,
        &[("GITHUB_BASE_REF", "main"), ("GITHUB_SHA", "costly")],
    );
    let said = text(&costly);
    assert_eq!(costly.status.code(), Some(1), "{said}");
    assert!(
        said.contains("fails on worse:2%: firewall.nft: different (slower): -"),
        "{said}"
    );
    let comment = fs::read_to_string(desk.path().join("comment.md")).unwrap();
    assert!(comment.contains("different"), "{comment}");
}

#[test]
fn an_xdp_program_v1_against_v2() {
    testkit::require_root!();
    testkit::require_tool!("clang", "git");
    let _machine = testkit::own_the_machine();
    let desk = Desk::new();
    let page = guide("xdp-program.md");
    let commands = commands(&page);
    assert_eq!(commands.len(), 5);
    let output = desk.run(&commands[..3].join("\n"), &[]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("Effect of replacing v1.o with v2.o on IPv4 forwarding"),
        "{said}"
    );

    // As many rounds as a test may take.
    let by_traffic = commands[3..].join("\n").replace("rounds = 4", "rounds = 1");
    let output = desk.run(&by_traffic, &[]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("Change of each effect against its effect under one-flow"),
        "{said}"
    );

    let flags = "-O2 -g -target bpf";
    let measure = measuring_step(&page).replace("--minutes 5", "--minutes 0.5");
    assert!(measure.contains(flags), "{measure}");
    let prepare = "git init -q -b main . && git add router.bpf.c && \
                   git -c user.name=a -c user.email=a@b.c commit -q -m v1 && \
                   git update-ref refs/remotes/origin/main HEAD && \
                   sed -i '/^#ifdef/i #define COUNT_SOURCES' router.bpf.c";
    let output = desk.run(prepare, &[]);
    assert!(output.status.success(), "{}", text(&output));
    let pull_request = [("GITHUB_BASE_REF", "main"), ("GITHUB_SHA", "counts")];
    let output = desk.run(&measure, &pull_request);
    let said = text(&output);
    // A busy machine may leave it undecided whether the lookup costs more than 2 %.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let comment = fs::read_to_string(desk.path().join("comment.md")).unwrap();
    assert!(comment.contains("head.o"), "{comment}");
}
