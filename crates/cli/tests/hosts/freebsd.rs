//! Labs of FreeBSD hosts, whose DUT is a namespace with stand-ins for FreeBSD's programs: which commands are asked,
//! in which order, and that all is put back. Nothing of it proves that FreeBSD takes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::rig::{BLOCKS, Rig, assert_as_before};
use crate::shared::{self, block_records, data, records, trial_records};
use testkit::{Host, text};

/// The programs of FreeBSD that a run asks.
const PROGRAMS: [&str; 28] = [
    "arp", "bectl", "boot0cfg", "config", "cpuset", "dmesg", "glabel", "gpart", "ifconfig", "ipf",
    "ipfstat", "ipfw", "kenv", "kldstat", "mount", "ndp", "netstat", "nextboot", "pfctl",
    "pmcstat", "route", "sha256", "shutdown", "sockstat", "sysctl", "uname", "updatep2", "upgrade",
];

/// A rig whose DUT answers as FreeBSD does.
pub(crate) fn start() -> Rig {
    start_with("freebsd")
}

/// The same, with an experiment and a lab of its own.
pub(crate) fn start_with(experiment: &str) -> Rig {
    let rig = Rig::start();
    let programs = fs::read_to_string(data("freebsd-programs.sh")).unwrap();
    for program in PROGRAMS {
        rig.lab.install(Host::Dut, program, &programs);
    }
    for (from, to) in [("", "hosts.toml"), ("-lab", "hosts-lab.toml")] {
        let from = data(&format!("{experiment}{from}.toml"));
        fs::copy(from, rig.path(to)).unwrap();
    }
    rig.send_from_the_next_cpu();
    rig
}

/// Has the experiment vary what needs no boot.
fn without_boots(rig: &Rig) {
    rig.change(
        "hosts-lab.toml",
        "{ loader = \"dev.eth.{1,2}.iflib.simple_tx\" }",
        "{ sysctl = \"kern.random.harvest.mask\", values = { 0 = 351, 1 = 479 } }",
    );
    let tunable = "\"a tunable that is no sysctl\" = 1\n";
    let settings = format!("[settings]\n{tunable}\"kern.random.harvest.mask\" = 351\n");
    rig.change("hosts.toml", &settings, "");
}

/// The facts in which the last variant differs from the first, by name.
fn differing_facts(block: &serde_json::Value) -> Vec<String> {
    let variants = block["differing_facts"].as_object().unwrap();
    assert_eq!(variants.len(), 2, "{variants:?}");
    let facts = variants.values().next_back().unwrap().as_object().unwrap();
    facts.keys().cloned().collect()
}

/// What was changed, up to the boot of that number, without stations and names of temporary files.
fn changes_until(rig: &Rig, boot: usize) -> String {
    let mut boots = 0;
    let changes = written(rig, "changes");
    let changes = changes.lines().take_while(|line| {
        let is_before = boots < boot;
        boots += usize::from(*line == "shutdown -r now");
        is_before
    });
    let without_stations = |line: &str| {
        let words = line.split(' ');
        let is_mac = |word: &&str| word.len() == 17 && word.matches(':').count() == 5;
        let words = words.map(|word| match word {
            word if is_mac(&word) => "MAC",
            word if word.starts_with("/tmp/fwdlab.") => "LOG",
            word => word,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    changes.map(without_stations).collect::<Vec<_>>().join("\n")
}

/// A file that the stand-ins have written.
pub(crate) fn written(rig: &Rig, name: &str) -> String {
    fs::read_to_string(rig.lab.home(Host::Dut).join(name)).unwrap_or_default()
}

pub(crate) fn loader_configuration(rig: &Rig) -> PathBuf {
    let grub = rig.lab.grub(Host::Dut);
    grub.parent().unwrap().join("loader.conf.local")
}

#[test]
fn a_freebsd_dut_boots_for_every_trial_and_is_put_back() {
    require_rig!();
    let rig = start();
    let owners = "# the owner's\nhw.usb.no_pf=\"1\"\n";
    fs::write(loader_configuration(&rig), owners).unwrap();
    rig.watch_for_longer();
    let before = rig.dut();
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert_as_before(&rig, &before);
    assert_eq!(
        fs::read_to_string(loader_configuration(&rig)).unwrap(),
        owners
    );
    let directory = rig.directory();
    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    for expected in [
        "A FreeBSD host between the two ports of a tester, both reached by ssh",
        "stand-ins for FreeBSD's programs",
        "FreeBSD 15.0-CURRENT #0 main-n277567",
        "Atom(TM)",
        "- **W203** lab: the kernel of router has no sysctl by the name of these tunables: hint.eth.0.disabled; ",
        // 351 with the bit of RDRAND, which the kernel keeps.
        "- sysctl kern.random.harvest.mask: `131423`",
    ] {
        assert!(readme.contains(expected), "{expected}: {readme}");
    }
    for block in block_records(&records(&directory)) {
        assert_eq!(block["conservation"]["inet"]["unaccounted_frames"], 0);
        assert_eq!(
            differing_facts(&block),
            [
                "kenv dev.eth.1.iflib.simple_tx",
                "kenv dev.eth.2.iflib.simple_tx",
                "sysctl dev.eth.1.iflib.simple_tx",
                "sysctl dev.eth.2.iflib.simple_tx",
                "sysctl kern.random.harvest.mask",
            ]
        );
    }
    // Both looked for the load themselves: what they saw came with it.
    let trials = trial_records(&records(&directory));
    assert!(
        trials.iter().any(|trial| trial["dut_cpus"].is_array()),
        "{trials:?}"
    );
    for trial in trials {
        let profile = &trial["profile"];
        assert_eq!(profile["samples"], 300, "{trial}");
        assert_eq!(profile["idle_samples"], 30, "{trial}");
        let of_cpus = [1, 3].map(|cpu| serde_json::json!({ "cpu": cpu, "samples": 150 }));
        assert_eq!(
            profile["samples_by_cpu"],
            serde_json::json!(of_cpus),
            "{trial}"
        );
        assert_eq!(profile["faults"], serde_json::json!([]), "{trial}");
        assert!(profile["pooled_pps"].as_f64() > Some(0.0), "{trial}");
    }
    // Two boots as by itself, two for trials, and what is put back before the second of them.
    insta::assert_snapshot!("freebsd_changes", changes_until(&rig, 4));
    let questions = written(&rig, "questions");
    let questions: BTreeSet<&str> = questions.lines().collect();
    let questions: Vec<&str> = questions.into_iter().collect();
    insta::assert_snapshot!("freebsd_questions", questions.join("\n"));
}

#[test]
fn a_killed_run_on_a_freebsd_dut_is_put_back() {
    require_rig!();
    let rig = start();
    let owners = "# the owner's\n";
    fs::write(loader_configuration(&rig), owners).unwrap();
    let before = rig.dut();
    let tunables = || fs::read_to_string(loader_configuration(&rig)).unwrap();
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
    let mut child = rig.begin("a boot with a tunable", || {
        rig.lab.reboots(Host::Dut) >= 3 && tunables() != owners
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert_eq!(tunables(), owners, "{}", text(&restored));
    assert_as_before(&rig, &before);
    let last = written(&rig, "changes");
    assert_eq!(last.lines().last(), Some("shutdown -r now"), "{last}");
}

#[test]
fn images_and_sets_are_booted_one_after_the_other_and_the_owners_system_comes_back() {
    require_rig!();
    testkit::require_tool!("xz");
    let rig = start_with("freebsd-image");
    let home = rig.lab.home(Host::Dut);
    let at = |name: &str| home.join("nanobsd").join(name);
    fs::create_dir_all(at("cfg")).unwrap();
    fs::write(at("active"), "1\n").unwrap();
    fs::write(at("gpt"), "").unwrap();
    let owners = "# the owner's\n";
    fs::write(loader_configuration(&rig), owners).unwrap();
    let mac = |port: &str| {
        let path = format!("/sys/class/net/{port}/address");
        rig.lab
            .inside(Host::Tester, &["cat", &path])
            .trim()
            .to_owned()
    };
    let set = rig.path("tuned");
    fs::create_dir_all(set.join("etc")).unwrap();
    fs::create_dir_all(set.join("boot")).unwrap();
    fs::write(set.join("boot/loader.conf.local"), "hw.tuned=\"1\"\n").unwrap();
    fs::write(
        set.join("etc/rc.conf"),
        format!(
            "gateway_enable=YES\nifconfig_eth1=\"inet 198.18.0.2/24\"\nifconfig_eth2=\"inet 198.19.0.2/24\"\n\
             static_arp_pairs=\"generator sink\"\nstatic_arp_generator=\"198.18.0.1 {}\"\n\
             static_arp_sink=\"198.19.0.1 {}\"\nstatic_routes=\"sources destinations\"\n\
             route_sources=\"-net 198.18.0.0/16 198.18.0.1\"\n\
             route_destinations=\"-net 198.19.0.0/16 198.19.0.1\"\n",
            mac("eth1"),
            mac("eth2")
        ),
    )
    .unwrap();
    let image = rig.path("upgrade.img");
    fs::write(&image, "main-n302145").unwrap();
    testkit::succeed(Command::new("xz").arg(&image));
    let before = rig.dut();
    let mut doctor = rig.fwdlab(&["doctor", "--quick"]);
    let doctor = doctor.arg(rig.path("hosts-lab.toml")).output().unwrap();
    for expected in [
        "router: images: unproven on hardware",
        "its system is on ada0p3; images are written to ada0p4 by /usr/local/sbin/upgrade",
        // The lab names no event, and the default is none of an Atom.
        "pmc_event of [dut] may be one of: cpu_clk_unhalted.core_p",
    ] {
        assert!(text(&doctor).contains(expected), "{}", text(&doctor));
    }
    // What it tries changes nothing, though it may look so to a stand-in.
    let _ = fs::remove_file(home.join("changes"));
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
    let child = rig.begin("a block", || rig.blocks() > 0);
    // In the middle of whatever comes next, but with the image active.
    let is_active = || fs::read_to_string(at("active")).is_ok_and(|active| active.trim() == "2");
    let mut child = shared::wait_for_child("an image is active", child, is_active);
    child.kill().unwrap();
    child.wait().unwrap();
    let blocks = block_records(&records(&rig.directory()));
    assert_eq!(
        differing_facts(&blocks[0]),
        ["kenv vfs.root.mountfrom", "kernel"]
    );
    insta::assert_snapshot!("freebsd_image_changes", changes_until(&rig, 6));
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    let tunables = fs::read_to_string(loader_configuration(&rig)).unwrap();
    assert_eq!(tunables, owners, "{}", text(&restored));
    assert!(!is_active(), "{}", text(&restored));
    assert!(!at("cfg/rc.conf").exists(), "{}", text(&restored));
    assert_as_before(&rig, &before);
    let changes = written(&rig, "changes");
    assert!(!changes.contains("its fstab is"), "{changes}");
    assert_eq!(changes.lines().last(), Some("shutdown -r now"), "{changes}");

    // nanobsd itself, on a disk with an MBR, which keeps nothing of a set.
    let settings = "[settings]\n\"configuration\" = \"tuned\"\n";
    rig.change("hosts.toml", settings, "");
    fs::remove_file(at("gpt")).unwrap();
    fs::remove_dir_all(at("cfg")).unwrap();
    fs::create_dir(at("cfg")).unwrap();
    fs::write(at("stock"), "").unwrap();
    fs::write(home.join("updatep2"), "exec /run/testlab/bin/updatep2\n").unwrap();
    rig.lab.reboot(Host::Dut);
    let before = rig.dut();
    let changes_before = written(&rig, "changes");
    let mut child = rig.begin("an image is active", is_active);
    child.kill().unwrap();
    child.wait().unwrap();
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert!(!is_active(), "{}", text(&restored));
    assert_as_before(&rig, &before);
    let changes = written(&rig, "changes");
    let changes = changes.strip_prefix(&changes_before).unwrap();
    for expected in ["updatep2", "gpart set -a active -i 1 ada0", "boot0cfg -s 1"] {
        assert!(changes.contains(expected), "{expected}: {changes}");
    }
    assert!(!changes.contains("its fstab is"), "{changes}");
}

#[test]
fn kernels_and_packet_filters_are_set_and_put_back_on_an_older_system() {
    require_rig!();
    let rig = start_with("freebsd-kernel");
    let home = rig.lab.home(Host::Dut);
    for mark in ["filters", "older"] {
        fs::write(home.join(mark), "").unwrap();
    }
    let kernel = loader_configuration(&rig).with_file_name("n302145");
    fs::create_dir(&kernel).unwrap();
    fs::write(kernel.join("kernel"), "").unwrap();
    for (file, rules) in [
        ("pf.conf", "pass quick all\n"),
        (
            "ipfw.rules",
            "# all\ntable 1 create or-flush\nadd 100 allow ip from any to any\n",
        ),
        ("ipf.rules", "pass in quick all\n"),
    ] {
        fs::write(rig.path(file), rules).unwrap();
    }
    let before = rig.dut();
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
    let child = rig.begin("a block begins", || rig.lab.reboots(Host::Dut) > 2);
    testkit::signal(child.id(), "-INT");
    let output = shared::finish(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert_as_before(&rig, &before);
    let blocks = block_records(&records(&rig.directory()));
    assert_eq!(blocks.len(), 1, "{}", text(&output));
    assert_eq!(blocks[0]["conservation"]["inet6"]["unaccounted_frames"], 0);
    assert_eq!(
        differing_facts(&blocks[0]),
        [
            "ipf rules",
            "ipfw rules",
            "kernel",
            "pf is enabled",
            "pf rules",
            "sysctl net.inet.ip.fw.enable",
            "sysctl net.inet6.ip6.fw.enable",
        ]
    );
    insta::assert_snapshot!("freebsd_kernel_changes", changes_until(&rig, 5));
}

// FreeBSD, `sys/netinet6/nd6.c`, `nd6_ifattach`: IPv6 is off; `sys/netinet6/in6.c`, `in6_control`: an address puts it on.
#[test]
fn ports_without_ipv6_are_without_it_again_after_each_block() {
    require_rig!();
    let rig = start();
    without_boots(&rig);
    rig.change(
        "hosts.toml",
        "families = [\"inet\"]",
        "families = [\"inet6\"]",
    );
    let script = "ifconfig eth1; ifconfig eth2; netstat -rn -f inet6; ndp -an";
    let before = rig.ssh(Host::Dut, script);
    assert_eq!(before.matches("IFDISABLED").count(), 2, "{before}");
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert_eq!(rig.ssh(Host::Dut, script), before);
    let changes = written(&rig, "changes");
    let of_a_port = changes
        .lines()
        .filter_map(|line| line.strip_prefix("ifconfig eth1 "));
    assert_eq!(
        of_a_port.take(4).collect::<Vec<_>>(),
        [
            "inet6 2001:2::2/64 alias",
            "inet6 2001:2::2 -alias",
            "inet6 fe80::1%eth1 -alias",
            "inet6 ifdisabled",
        ]
    );
}

// FreeBSD, `usr.sbin/arp/arp_netlink.c`, `set_nl`: an address to which no port leads is said to be missing, and the exit
// code is 0.
#[test]
fn a_neighbour_that_was_not_set_or_was_replaced_is_seen() {
    require_rig!();
    let rig = start();
    without_boots(&rig);
    let programs = fs::read_to_string(data("freebsd-programs.sh")).unwrap();
    let set =
        "ip neigh replace \"$2\" lladdr \"$3\" dev \"$(interface_to \"$2\")\" nud permanent ;;";
    let without_effect = programs.replace(set, "echo \"arp: delete: cannot locate $2\" >&2 ;;");
    assert_ne!(programs, without_effect);
    rig.lab.install(Host::Dut, "arp", &without_effect);
    let refused = |output: &std::process::Output| {
        assert_eq!(output.status.code(), Some(3), "{}", text(output));
        let why = "`arp -an` lists no permanent entry 198.18.0.1 ";
        assert!(text(output).contains(why), "{}", text(output));
    };
    let before = rig.dut();
    refused(&rig.run().output().unwrap());
    assert_as_before(&rig, &before);
    // An owner's would be gone with the lab's.
    for (owners, why) in [
        (
            "neigh CHANGE 198.18.0.77 lladdr 02:00:00:00:00:77 dev eth1 nud permanent",
            "`arp -an` lists the permanent entry 198.18.0.77 02:00:00:00:00:77 eth1, which FreeBSD drops",
        ),
        (
            "address CHANGE 198.18.0.2/16 dev eth1",
            "eth1 has the address 198.18.0.2/16, and the lab needs 198.18.0.2/24; delete that address for the run",
        ),
    ] {
        let change = |word| {
            let words = owners.replace("CHANGE", word);
            rig.lab
                .inside(Host::Dut, &["sh", "-c", &format!("ip {words}")])
        };
        change("add");
        let before = rig.dut();
        let output = rig.run().output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        assert!(text(&output).contains(why), "{}", text(&output));
        assert_as_before(&rig, &before);
        change("delete");
    }
    // What a reply makes of the entry lasts for some minutes only.
    rig.lab.install(Host::Dut, "arp", &programs);
    let replace = "ip neigh change 198.18.0.1 dev eth1 lladdr 02:00:00:00:00:99 nud reachable 2>&1 || echo none";
    let child = rig.begin("frames are sent", || rig.sent_frames() > 1000);
    let child = shared::wait_for_child("a reply comes", child, || {
        rig.ssh(Host::Dut, replace).is_empty()
    });
    refused(&shared::finish(child));
}

#[test]
fn a_kernel_that_starves_its_queues_and_ports_that_lead_away_are_refused() {
    require_rig!();
    let rig = start();
    let refused = |why: &str| {
        let output = rig.run().output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        assert!(text(&output).contains(why), "{why}: {}", text(&output));
    };
    rig.change(
        "hosts-lab.toml",
        "host = \"router\"\nin = \"eth1\"",
        "host = \"router\"\nin = \"admin\"",
    );
    refused("a default route leads through admin");
    rig.change("hosts-lab.toml", "in = \"admin\"", "in = \"eth7\"");
    refused("it has no interface eth7; `ifconfig -l` lists those it has");
    rig.change("hosts-lab.toml", "in = \"eth7\"", "in = \"eth1\"");
    without_boots(&rig);
    let programs = fs::read_to_string(data("freebsd-programs.sh")).unwrap();
    for (from, to) in [
        ("options\\tINET\\n", "options\\tRSS\\n"),
        // Its kernel keeps no configuration.
        ("kern.conftxt) printf", "net.inet.rss.buckets) printf"),
    ] {
        let with_rss = programs.replace(from, to);
        assert_ne!(programs, with_rss);
        rig.lab.install(Host::Dut, "sysctl", &with_rss);
        refused(
            "its kernel has `options RSS`, with net.isr.maxthreads=1 and net.isr.bindthreads=1",
        );
    }
}
