//! The hosts of the ssh lab answer, fail as they are told to, and leave nothing behind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use testkit::{Host, SshLab, succeed, text, wait_until};

/// Set for the process that a test starts to be killed.
const TO_BE_KILLED: &str = "TESTKIT_TO_BE_KILLED";

macro_rules! require_lab {
    () => {
        testkit::require_root!();
        testkit::require_sshd!();
        testkit::require_tool!("ip", "ssh", "ssh-keygen", "ethtool", "nft");
    };
}

fn ssh(lab: &SshLab, host: Host) -> Command {
    let mut command = lab.controller("ssh");
    command
        .arg("-F")
        .arg(lab.ssh_config())
        .args(["-o", "ConnectTimeout=30", host.ssh_name()])
        .stdin(Stdio::null());
    command
}

fn answer(lab: &SshLab, host: Host, command: &str) -> String {
    String::from_utf8(succeed(ssh(lab, host).arg(command)).stdout).unwrap()
}

/// A session that repeats what it is told, once it is known to run.
fn echo(lab: &SshLab, host: Host) -> (Child, impl BufRead + use<>) {
    let mut session = ssh(lab, host)
        .arg("echo ready; cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(session.stdout.take().unwrap());
    assert_eq!(line(&mut said), "ready\n");
    (session, said)
}

fn line(said: &mut impl BufRead) -> String {
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    line
}

fn namespace_path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

/// The inode of a namespace, by a file that stands for it.
fn inode(namespace: &Path) -> Option<u64> {
    Some(fs::metadata(namespace).ok()?.ino())
}

/// The folders in `/proc` of what runs in a namespace.
fn processes_in(namespace: &Path) -> Vec<PathBuf> {
    let wanted = inode(namespace);
    assert!(wanted.is_some(), "no {}", namespace.display());
    fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|process| inode(&process.join("ns/net")) == wanted)
        .collect()
}

/// Whether a process goes on; one that has ended has no namespace, also while nobody has waited for it.
fn is_running(process: &Path) -> bool {
    inode(&process.join("ns/net")).is_some()
}

fn assert_refused(output: &Output, because: &[&str]) {
    let said = text(output);
    assert_eq!(output.status.code(), Some(255), "{said}");
    assert!(because.iter().any(|reason| said.contains(reason)), "{said}");
}

#[test]
fn each_host_answers_from_its_own_namespace() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    for host in Host::ALL {
        let over_ssh = answer(&lab, host, "readlink /proc/self/ns/net");
        assert_eq!(
            over_ssh,
            lab.inside(host, &["readlink", "/proc/self/ns/net"])
        );
        let links = answer(&lab, host, "ip -brief link; ls /sys/class/net");
        for interface in ["admin", "eth1", "eth2"] {
            let mut mentions = links.lines().filter(|line| line.starts_with(interface));
            let link = mentions.next().unwrap_or_else(|| panic!("{links}"));
            assert!(link.contains("UP"), "{links}");
            assert_eq!(mentions.next(), Some(interface), "{links}");
        }
        let default = lab.inside(host, &["ip", "route", "show", "default"]);
        assert!(default.contains("dev admin"), "{default}");
        assert!(lab.log(host).contains("Accepted publickey for root"));
    }
    assert_ne!(
        lab.inside(Host::Dut, &["readlink", "/proc/self/ns/net"]),
        lab.inside(Host::Tester, &["readlink", "/proc/self/ns/net"])
    );
    for (host, interface) in [(Host::Dut, "eth1"), (Host::Tester, "eth2")] {
        let features = lab.inside(host, &["ethtool", "-k", interface]);
        assert!(
            features.contains("generic-receive-offload: on"),
            "{features}"
        );
    }
    for cable in ["eth1", "eth2"] {
        let addresses = lab.inside(Host::Tester, &["ip", "-6", "address", "show", "dev", cable]);
        assert_eq!(addresses, "");
    }
}

#[test]
fn a_session_is_given_its_input() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    let mut session = ssh(&lab, Host::Tester)
        .arg("wc -c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = session.stdin.take().unwrap();
    input.write_all(&vec![0x55; 3_000_000]).unwrap();
    drop(input);
    let output = session.wait_with_output().unwrap();
    assert_eq!(text(&output), "exit status: 0\n3000000\n");
}

#[test]
fn a_cut_ends_sessions_and_leaves_the_server() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    let (mut cut, mut said) = echo(&lab, Host::Dut);
    let (mut other, mut others) = echo(&lab, Host::Tester);
    lab.cut(Host::Dut);
    assert_eq!(line(&mut said), "");
    assert_eq!(cut.wait().unwrap().code(), Some(255));
    assert_eq!(answer(&lab, Host::Dut, "echo again"), "again\n");

    writeln!(other.stdin.as_mut().unwrap(), "untouched").unwrap();
    assert_eq!(line(&mut others), "untouched\n");
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
}

#[test]
fn a_changed_host_key_is_refused() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    lab.change_host_key(Host::Tester);
    assert_refused(
        &ssh(&lab, Host::Tester).arg("true").output().unwrap(),
        &[
            "Host key verification failed",
            "REMOTE HOST IDENTIFICATION HAS CHANGED",
        ],
    );
    assert_eq!(answer(&lab, Host::Dut, "echo same"), "same\n");
}

#[test]
fn a_stopped_server_refuses_until_it_is_started_again() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    let (mut session, _) = echo(&lab, Host::Dut);
    lab.stop(Host::Dut);
    assert_eq!(session.wait().unwrap().code(), Some(255));
    assert_refused(
        &ssh(&lab, Host::Dut).arg("true").output().unwrap(),
        &["Connection refused"],
    );
    lab.start_again(Host::Dut);
    assert_eq!(answer(&lab, Host::Dut, "echo again"), "again\n");
}

#[test]
fn a_silenced_host_times_out_and_heals_with_its_connections() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    let (mut session, mut said) = echo(&lab, Host::Dut);
    let rules = lab.inside(Host::Dut, &["nft", "list", "ruleset"]);
    lab.silence(Host::Dut, true);
    assert_eq!(lab.inside(Host::Dut, &["nft", "list", "ruleset"]), rules);
    writeln!(session.stdin.as_mut().unwrap(), "late").unwrap();
    let timed_out = lab
        .controller("ssh")
        .arg("-F")
        .arg(lab.ssh_config())
        .args(["-o", "ConnectTimeout=2", "router", "true"])
        .output()
        .unwrap();
    assert_refused(&timed_out, &["timed out"]);
    assert_eq!(answer(&lab, Host::Tester, "echo other"), "other\n");
    lab.silence(Host::Dut, false);
    assert_eq!(line(&mut said), "late\n");
    assert_eq!(answer(&lab, Host::Dut, "echo healed"), "healed\n");
    drop(session.stdin.take());
    assert!(session.wait().unwrap().success());
}

#[test]
fn a_panic_leaves_nothing_behind() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    let folder = lab.folder().to_owned();
    let namespaces: Vec<_> = [lab.controller_namespace()]
        .into_iter()
        .chain(Host::ALL.map(|host| lab.namespace(host)))
        .map(|name| namespace_path(&name))
        .collect();
    // One that does not end with its session, and one that has left the namespace.
    answer(
        &lab,
        Host::Dut,
        "setsid sleep 600 > /dev/null 2>&1 < /dev/null &",
    );
    let (mut session, _) = echo(&lab, Host::Tester);
    let mut elsewhere = ssh(&lab, Host::Tester)
        .arg("exec unshare --net sh -c 'echo $$; exec sleep 600'")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let its_process = line(&mut BufReader::new(elsewhere.stdout.take().unwrap()));
    let its_process = Path::new("/proc").join(its_process.trim_end());
    assert!(is_running(&its_process));
    let mut processes = vec![its_process];
    for namespace in &namespaces {
        let inside = processes_in(namespace);
        assert!(!inside.is_empty(), "{}", namespace.display());
        assert!(!inside.contains(&processes[0]));
        processes.extend(inside);
    }

    let panicked = std::panic::catch_unwind(move || {
        let _lab = lab;
        panic!("as a test does that fails");
    });
    assert!(panicked.is_err());
    session.wait().unwrap();
    elsewhere.wait().unwrap();
    assert!(!folder.exists());
    assert!(!namespaces.iter().any(|namespace| namespace.exists()));
    wait_until("the killed processes end", || {
        !processes.iter().any(|process| is_running(process))
    });
}

#[test]
fn a_killed_test_process_leaves_nothing_behind() {
    require_lab!();
    if env::var_os(TO_BE_KILLED).is_some() {
        let lab = SshLab::start().unwrap();
        println!("folder={}", lab.folder().display());
        println!("namespace={}", lab.namespace(Host::Dut));
        sleep(Duration::from_secs(600));
    }
    let mut process = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "--nocapture",
            "a_killed_test_process_leaves_nothing_behind",
        ])
        .env(TO_BE_KILLED, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(process.stdout.take().unwrap());
    let mut told = |name: &str| loop {
        let line = line(&mut said);
        assert!(!line.is_empty(), "no {name}");
        if let Some((_, value)) = line.trim_end().split_once(name) {
            break value.to_owned();
        }
    };
    let folder = PathBuf::from(told("folder="));
    let namespace = namespace_path(&told("namespace="));
    let processes = processes_in(&namespace);
    assert_eq!(processes.len(), 1);
    process.kill().unwrap();
    process.wait().unwrap();
    wait_until("namespace and folder are removed", || {
        !namespace.exists() && !folder.exists()
    });
    assert!(!processes.iter().any(|process| is_running(process)));
}
