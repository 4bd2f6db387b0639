//! A DUT whose programs are BusyBox's applets, as on OpenWrt and small appliances: what can be measured there is, and what
//! it lacks is named before anything is changed.

use std::fs;

use crate::rig::{BLOCKS, Rig, assert_as_before, small_experiment};
use crate::shared::{block_records, records};
use testkit::{Host, text};

/// An experiment that the applets are enough for.
const EXPERIMENT: &str = r#"
question = "Impact of reverse path filtering on a host of applets"
lab = "hosts-lab.toml"
"#;

/// A setting, for a test that wants one.
const MARKED: &str = "\n[settings]\n\"marker\" = \"a\"\n";

/// A rig whose DUT has nothing but applets.
fn rig_of_applets() -> Rig {
    let rig = Rig::start();
    rig.lab.leave_applets_alone(Host::Dut);
    rig
}

#[test]
fn a_host_of_applets_is_measured_and_left_as_it_was() {
    require_rig!();
    testkit::require_tool!("busybox");
    let rig = rig_of_applets();
    assert!(rig.ssh(Host::Dut, "ip 2>&1").starts_with("BusyBox"));
    let experiment = small_experiment(&[EXPERIMENT, MARKED].concat());
    fs::write(rig.path("hosts.toml"), experiment).unwrap();
    // An owner's, which BusyBox's `ip route flush ... proto` and `ip address flush` would take with fwdlab's own.
    for words in [
        "address add 198.18.0.5/24 dev eth1",
        "address add 192.0.2.7/24 dev eth2",
        "route add 198.19.0.0/16 via 192.0.2.9 dev eth2 proto static metric 50",
        "route add 203.0.113.0/24 via 192.0.2.9 dev eth2 proto 197",
    ] {
        let words: Vec<&str> = ["ip"].into_iter().chain(words.split(' ')).collect();
        rig.lab.inside(Host::Dut, &words);
    }
    let before = rig.dut();
    let has_own_route = || {
        let routes = ["ip", "route", "show", "proto", "196"];
        !rig.lab.inside(Host::Dut, &routes).is_empty()
    };
    let mut child = rig.begin("a block, and the next one's set-up", || {
        rig.blocks() > 0 && has_own_route()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    // What is put back twice is put back all the same.
    for _ in 0..2 {
        let restored = rig.fwdlab(&["restore"]).output().unwrap();
        assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
        assert_as_before(&rig, &before);
    }
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert_as_before(&rig, &before);
    let directory = rig.directory();
    for block in block_records(&records(&directory)) {
        let family = &block["conservation"]["inet"];
        assert_eq!(family["unaccounted_frames"], 0, "{family}");
        assert_eq!(family["offered_frames"], family["forwarded_frames"]);
        let facts = block["differing_facts"].as_object().unwrap();
        let facts = facts.values().next().unwrap().as_object().unwrap();
        let names: Vec<&String> = facts.keys().collect();
        assert_eq!(names, ["sysctl net.ipv4.conf.eth1.rp_filter"]);
    }
    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    for expected in [
        "facts that are not compared",
        "offloads",
        "no ethtool",
        "no nft",
    ] {
        assert!(readme.contains(expected), "{expected}: {readme}");
    }
    for lost in ["not watched", "copy of the journal"] {
        assert!(!readme.contains(lost), "{lost}: {readme}");
    }
}

#[test]
fn a_lab_whose_dut_is_a_host_of_applets_is_found() {
    require_rig!();
    testkit::require_tool!("busybox");
    let rig = rig_of_applets();
    let before = rig.dut();
    let found = rig.path("found.toml");
    let mut command = rig.fwdlab(&["lab", "new", "router", "tester", "--yes", "--ssh-config"]);
    command.arg(rig.lab.ssh_config()).arg("-o").arg(&found);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(!text(&output).contains("ip, tc"), "{}", text(&output));
    assert_as_before(&rig, &before);
    let lab = fs::read_to_string(&found).unwrap();
    for expected in [
        "cannot set this: iproute2's tc is not installed; install iproute2's tc (apt-get install iproute2; the package \
         tc-full of OpenWrt).\n# Without one of its own, a port has the kernel's default.\n# [bind.\"queueing discipline\"]\n",
        "# [bind.\"GRO\"]\n",
        "\n[bind.\"rp_filter\"]\n",
    ] {
        assert!(lab.contains(expected), "{expected}: {lab}");
    }
    fs::write(rig.path("hosts.toml"), small_experiment(EXPERIMENT)).unwrap();
    let plan = rig
        .fwdlab(&["plan", "--lab"])
        .arg(&found)
        .arg(rig.path("hosts.toml"))
        .output();
    let plan = plan.unwrap();
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan));
    assert!(!text(&plan).contains("not checked"), "{}", text(&plan));
}

#[test]
fn what_a_host_of_applets_lacks_is_named_before_anything_is_changed() {
    require_rig!();
    testkit::require_tool!("busybox");
    let rig = rig_of_applets();
    let before = rig.dut();
    let doctor = rig
        .fwdlab(&["doctor", "--quick"])
        .arg(rig.path("hosts-lab.toml"))
        .output()
        .unwrap();
    assert_eq!(doctor.status.code(), Some(0), "{}", text(&doctor));
    let said = text(&doctor);
    let from = said.find("warn router: ip -batch").unwrap();
    let to = said.find("ok   router: ports").unwrap();
    insta::assert_snapshot!(&said[from..to]);
    let experiment = rig.path("hosts.toml");
    let plan = || {
        let output = rig.fwdlab(&["plan"]).arg(&experiment).output().unwrap();
        let said = text(&output);
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let run = |code: i32, expected: &str| {
        let output = rig.run().output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        let said = text(&output);
        assert!(said.contains(expected), "{expected}: {said}");
    };
    // The rig's own experiment holds an offload, and varies a ruleset.
    run(
        1,
        "host router: ethtool is not installed, but factor \"GRO\" at level \"true\" needs it; install ethtool (apt-get \
         install ethtool; the package ethtool-full of OpenWrt); nft is not installed, but factor \"packet filter\"",
    );
    rig.change("hosts.toml", "\"GRO\" = true\n", "");
    let variants = "[[factor]]\nname = \"marker\"\nlevels = [\"a\", \"b\"]\n\n\
                    [[variant]]\nlabel = \"plain\"\n\n\
                    [[variant]]\nlabel = \"tracked\"\nlevels = { \"packet filter\" = \"conntrack\" }\n\n\
                    [[variant]]\nlabel = \"marked\"\nlevels = { marker = \"b\" }\n\n[settings]\n";
    rig.change("hosts.toml", "[settings]\n", variants);
    rig.change("hosts.toml", "blocks = 3", "blocks = 4");
    let planned = plan();
    for expected in [
        "the DUT needs nft for factor \"packet filter\"",
        "not run: host router: nft is not installed, but factor \"packet filter\" at level \"conntrack\" needs it; install \
         nft (apt-get install nftables; the package nftables",
    ] {
        assert!(planned.contains(expected), "{expected}: {planned}");
    }
    for (file, from, to, why) in [
        (
            "hosts-lab.toml",
            "[dut]\n",
            "[dut]\ndrop_counters = [\"rx_drops\"]\n",
            "ethtool is not installed, but drop_counters of [dut] needs it; install ethtool",
        ),
        (
            "hosts.toml",
            "families = [\"inet\"]",
            "families = [\"inet\", \"inet6\"]",
            "iproute2's ip is not installed, but inet6 needs it; install iproute2's ip (apt-get install iproute2; the package \
             ip-full of OpenWrt); nft is not installed, but factor \"packet filter\" needs it",
        ),
    ] {
        rig.change(file, from, to);
        run(3, why);
        let planned = plan();
        assert!(planned.contains(why), "{why}: {planned}");
        rig.change(file, to, from);
    }
    // Whether it is reached by a port is not known where the devices of a route are not.
    let hops = "route add 203.0.113.0/24 nexthop via 10.99.1.1 nexthop dev lo";
    let words = |change: &str| {
        let words: Vec<String> = ["ip".to_owned()]
            .into_iter()
            .chain(hops.replace("add", change).split(' ').map(str::to_owned))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        rig.lab.inside(Host::Dut, &words)
    };
    words("add");
    run(3, "lists \"203.0.113.0/24");
    words("delete");
    rig.change("hosts-lab.toml", "in = \"eth1\"", "in = \"admin\"");
    run(3, "a default route leads through admin");
    rig.lab
        .inside(Host::Dut, &["ip", "route", "delete", "default"]);
    run(3, "ssh from 10.99.1.1 comes through admin");
    rig.lab.inside(
        Host::Dut,
        &["ip", "route", "add", "default", "via", "10.99.1.1"],
    );
    assert_as_before(&rig, &before);
}
