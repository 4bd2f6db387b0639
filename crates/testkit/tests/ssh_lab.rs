//! The hosts of the ssh lab answer, fail as they are told to, and leave nothing behind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use testkit::ssh_lab::SECOND_KERNEL;
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

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

fn boot_id(lab: &SshLab, host: Host) -> String {
    answer(lab, host, &format!("cat {BOOT_ID}"))
}

/// An attempt to log in that is not patient.
fn knock(lab: &SshLab, host: Host) -> Output {
    let mut command = lab.controller("ssh");
    command.arg("-F").arg(lab.ssh_config()).args([
        "-o",
        "ConnectTimeout=1",
        host.ssh_name(),
        "true",
    ]);
    command.output().unwrap()
}

/// What a boot makes anew of a host, once its links are known to be up.
fn network(lab: &SshLab, host: Host) -> Vec<String> {
    wait_until("the links are up", || {
        !lab.inside(host, &["ip", "link"]).contains("NO-CARRIER")
    });
    [
        ["ip", "link"].as_slice(),
        &["ip", "-4", "address"],
        &["ip", "route", "show", "table", "all", "proto", "boot"],
        &["ip", "neigh", "show", "nud", "permanent"],
        &["nft", "list", "ruleset"],
        &["ethtool", "-k", "eth1"],
        &["ethtool", "-k", "eth2"],
        &["grep", "-r", "", "/proc/sys/net/ipv4/conf"],
        &["cat", "/sys/class/net/eth2/queues/rx-0/rps_cpus"],
    ]
    .map(|command| lab.inside(host, command))
    .to_vec()
}

fn assert_same(before: &[String], now: &[String]) {
    for (before, now) in before.iter().zip(now) {
        let (was, is): (Vec<_>, Vec<_>) = (before.lines().collect(), now.lines().collect());
        let gone = was.iter().filter(|line| !is.contains(line));
        let new = is.iter().filter(|line| !was.contains(line));
        assert_eq!(before, now, "{:#?}", gone.chain(new).collect::<Vec<_>>());
    }
}

#[test]
fn a_reboot_makes_a_host_what_it_was_and_leaves_the_other_alone() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    for (host, other) in [(Host::Dut, Host::Tester), (Host::Tester, Host::Dut)] {
        let first_boot = boot_id(&lab, host);
        let (before, others) = (network(&lab, host), network(&lab, other));
        let (mut session, _) = echo(&lab, other);
        let elsewhere = answer(
            &lab,
            host,
            "set -e
            sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.eth1.rp_filter=2
            ip address add 198.18.0.1/24 dev eth1
            ip route add 198.19.0.0/24 dev eth2
            ip neigh add 198.18.0.2 lladdr 02:00:00:00:00:01 dev eth1
            nft add table inet here
            ethtool -K eth1 gro off tso off
            ethtool -K eth2 gso off rx-gro-list on
            ip link set eth2 mtu 1400 address 02:00:00:00:00:02
            echo 1 > /sys/class/net/eth2/queues/rx-0/rps_cpus
            touch ~/kept /tmp/lost /run/lost
            setsid sleep 600 > /dev/null 2>&1 < /dev/null &
            setsid unshare --net sleep 600 > /dev/null 2>&1 < /dev/null &
            echo $!",
        );
        let after = network(&lab, host);
        for (before, after) in before.iter().zip(&after) {
            assert_ne!(before, after);
        }
        let mut running = processes_in(&namespace_path(&lab.namespace(host)));
        running.push(Path::new("/proc").join(elsewhere.trim_end()));
        assert!(running.iter().all(|process| is_running(process)));

        lab.reboot(host);
        assert!(!running.iter().any(|process| is_running(process)));
        assert_ne!(boot_id(&lab, host), first_boot);
        assert_same(&before, &network(&lab, host));
        assert_same(&others, &network(&lab, other));
        let files = answer(&lab, host, "ls ~ /tmp /run; cat /proc/uptime");
        assert!(files.contains("kept") && !files.contains("lost"), "{files}");
        assert_eq!(lab.reboots(host), 1);
        drop(session.stdin.take());
        assert!(session.wait().unwrap().success());
    }
}

#[test]
fn a_host_that_hangs_answers_nobody_until_it_is_rebooted() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    let (mut session, _) = echo(&lab, Host::Dut);
    lab.hang(Host::Dut);
    assert_refused(&knock(&lab, Host::Dut), &["timed out", "No route to host"]);
    // Nobody has told it.
    assert!(session.try_wait().unwrap().is_none());
    assert_eq!(answer(&lab, Host::Tester, "echo other"), "other\n");
    lab.reboot(Host::Dut);
    assert_eq!(answer(&lab, Host::Dut, "echo again"), "again\n");
    // The new boot knows nothing of its connection.
    writeln!(session.stdin.as_mut().unwrap(), "anybody?").unwrap();
    assert_eq!(session.wait().unwrap().code(), Some(255));
}

#[test]
fn hosts_that_ask_are_rebooted_once_while_that_is_served() {
    require_lab!();
    let lab = Arc::new(SshLab::start().unwrap());
    let first_boot = boot_id(&lab, Host::Dut);
    answer(&lab, Host::Dut, "systemctl reboot");

    let serving = lab.serve_reboots(Some(Duration::from_millis(100)));
    assert_eq!(boot_id(&lab, Host::Dut), first_boot);
    let (mut session, _) = echo(&lab, Host::Dut);
    for (number, command) in ["systemctl reboot", "reboot & reboot", "shutdown -r now"]
        .into_iter()
        .enumerate()
    {
        let before = boot_id(&lab, Host::Dut);
        // It may be gone before it could tell how the command ended.
        let asked = ssh(&lab, Host::Dut).arg(command).output().unwrap();
        let code = asked.status.code();
        assert!([Some(0), Some(255)].contains(&code), "{}", text(&asked));
        wait_until("it has rebooted", || lab.reboots(Host::Dut) > number);
        assert_ne!(boot_id(&lab, Host::Dut), before);
    }
    assert_eq!(session.wait().unwrap().code(), Some(255));
    drop(serving);
    assert_eq!(lab.reboots(Host::Dut), 3);
    assert_eq!(lab.reboots(Host::Tester), 0);

    let serving = lab.serve_reboots(None);
    let _ = ssh(&lab, Host::Tester).arg("reboot").output().unwrap();
    wait_until("it is down", || !knock(&lab, Host::Tester).status.success());
    drop(serving);
    assert!(!knock(&lab, Host::Tester).status.success());
    lab.reboot(Host::Tester);
    assert_eq!(answer(&lab, Host::Tester, "echo again"), "again\n");
}

#[test]
fn the_boot_menu_decides_the_kernel_and_its_command_line_once() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    let look = || answer(&lab, Host::Dut, "uname -r; cat /proc/cmdline; uname -sm");
    let machines = succeed(Command::new("uname").arg("-r")).stdout;
    let machines = String::from_utf8(machines).unwrap();
    let machines = machines.trim_end();
    let default = look();
    let image = format!("{machines}\nBOOT_IMAGE=/boot/vmlinuz-{machines} root=UUID=");
    assert!(default.starts_with(&image), "{default}");
    assert!(default.contains(" ro quiet\nLinux "), "{default}");
    assert_eq!(
        answer(&lab, Host::Dut, "ls /boot/vmlinuz-*")
            .lines()
            .count(),
        2
    );

    let entry = format!(
        "menuentry 'One of ours' --id ours {{\n\tlinux /boot/vmlinuz-{machines} ro nosmt\n}}\n"
    );
    fs::write(lab.grub(Host::Dut).join("custom.cfg"), entry).unwrap();
    answer(
        &lab,
        Host::Dut,
        "grub-reboot ours; grub-editenv - set kept=1",
    );
    let block = answer(&lab, Host::Dut, "cat /boot/grub/grubenv");
    let start = "# GRUB Environment Block\nnext_entry=ours\nkept=1\n##";
    assert!(block.starts_with(start) && block.len() == 1024, "{block}");
    assert_eq!(look(), default);
    lab.reboot(Host::Dut);
    let ours = format!("{machines}\nBOOT_IMAGE=/boot/vmlinuz-{machines} ro nosmt\n");
    assert!(look().starts_with(&ours), "{}", look());
    let left = answer(&lab, Host::Dut, "grub-editenv /boot/grub/grubenv list");
    assert_eq!(left, "kept=1\n");
    lab.reboot(Host::Dut);
    assert_eq!(look(), default);

    for unknown in ["no such entry", "gnulinux-elsewhere>0"] {
        answer(&lab, Host::Dut, &format!("grub-reboot '{unknown}'"));
        lab.reboot(Host::Dut);
        assert_eq!(look(), default);
    }
    answer(&lab, Host::Dut, "grub-reboot '1>2'");
    lab.reboot(Host::Dut);
    assert!(look().starts_with(SECOND_KERNEL), "{}", look());
    let whole = answer(&lab, Host::Dut, "uname -srv");
    assert!(
        whole.starts_with(&format!("Linux {SECOND_KERNEL} #")),
        "{whole}"
    );
}

#[test]
fn a_host_has_files_of_its_own_and_cannot_reboot_the_machine() {
    require_lab!();
    let machines = || {
        let boot = testkit::files_below(Path::new("/boot"));
        let read = |path| fs::read_to_string(path).unwrap();
        (boot, read(BOOT_ID), read("/proc/cmdline"))
    };
    let before = machines();
    let lab = SshLab::start().unwrap();
    lab.reboot(Host::Dut);
    for host in Host::ALL {
        answer(&lab, host, "touch /boot/here /tmp/here /run/here");
        assert_ne!(boot_id(&lab, host), before.1);
        // 22 is CAP_SYS_BOOT.
        let allowed = answer(&lab, host, "sed -n 's/^CapBnd:.//p' /proc/self/status");
        let allowed = u64::from_str_radix(allowed.trim_end(), 16).unwrap();
        assert_eq!(allowed >> 22 & 1, 0);
        assert_eq!(
            answer(&lab, host, "command -v reboot"),
            "/run/testlab/bin/reboot\n"
        );
        let systemd = answer(
            &lab,
            host,
            "ls -d /run/systemd /run/dbus /run/initctl 2>&1 || :",
        );
        assert_eq!(systemd.matches("No such file").count(), 3, "{systemd}");
    }
    assert_ne!(boot_id(&lab, Host::Dut), boot_id(&lab, Host::Tester));
    assert_eq!(machines(), before);
    assert!(!Path::new("/tmp/here").exists() && !Path::new("/run/here").exists());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let of_the_lab = |mount: &&str| mount.contains("testlab") && !mount.contains("/run/netns/");
    assert_eq!(mounts.lines().find(of_the_lab), None);
}

#[test]
fn nothing_can_be_written_to_a_full_disk() {
    require_lab!();
    let lab = SshLab::start().unwrap();
    let write = |host, place: &str| {
        let write = format!("head -c 65536 /dev/zero > {place}");
        ssh(&lab, host).arg(write).output().unwrap()
    };
    let places = ["~/a", "/tmp/a", "/boot/grub/custom.cfg"];
    lab.fill_disk(Host::Dut, true);
    for place in places {
        let refused = text(&write(Host::Dut, place));
        assert!(refused.contains("No space left on device"), "{refused}");
        assert!(write(Host::Tester, place).status.success());
    }
    lab.fill_disk(Host::Dut, false);
    for place in places {
        assert!(write(Host::Dut, place).status.success());
    }
    answer(&lab, Host::Dut, "rm /tmp/a /boot/grub/custom.cfg");
    lab.fill_disk(Host::Dut, true);
    lab.reboot(Host::Dut);
    let refused = text(&write(Host::Dut, "~/b"));
    assert!(refused.contains("No space left on device"), "{refused}");
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
        // What is there now was made at another time than the rest.
        lab.reboot(Host::Dut);
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
