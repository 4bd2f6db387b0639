//! Labs of hosts whose DUT boots for its levels: kernels, parameters of modules and of the command line.

use std::fs;
use std::time::Duration;

use crate::rig::{BLOCKS, Rig, assert_as_before, vary_the_command_line};
use crate::shared::{self, block_records, finish, records};
use testkit::ssh_lab::SECOND_KERNEL;
use testkit::{Host, text};

/// Has the experiment vary the kernel and a parameter of a module too, all of it at once.
fn vary_kernel_and_module(rig: &Rig) {
    rig.change(
        "hosts.toml",
        "[settings]",
        "[[factor]]\nname = \"kernel\"\nlevels = [\"own\", \"second\"]\n\n\
         [[factor]]\nname = \"timestamps\"\nlevels = [1, 0]\n\n\
         [[variant]]\nlabel = \"own\"\n\
         levels = { kernel = \"own\", mitigations = \"on\", timestamps = 1 }\n\n\
         [[variant]]\nlabel = \"second\"\n\
         levels = { kernel = \"second\", mitigations = \"off\", timestamps = 0 }\n\n[settings]",
    );
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    rig.change(
        "hosts-lab.toml",
        "[bind.\"rp_filter\"]",
        &format!(
            "[bind]\nkernel = {{ kernel = {{ own = {:?}, second = {SECOND_KERNEL:?} }} }}\n\
             timestamps = {{ module = \"printk.time\" }}\n\n[bind.\"rp_filter\"]",
            release.trim()
        ),
    );
    // The machine's kernel was booted without it.
    let cat = "#!/bin/sh\nPATH=/usr/bin:/bin\ncase $1 in\n\
               */printk/parameters/time) sed -n 's/.* printk.time=//p' /proc/cmdline | grep . || echo Y ;;\n\
               *) exec cat \"$@\" ;;\nesac\n";
    rig.lab.install(Host::Dut, "cat", cat);
}

#[test]
fn a_dut_boots_for_every_trial_and_as_by_itself_in_the_end() {
    require_rig!();
    let rig = Rig::start();
    vary_the_command_line(&rig);
    vary_kernel_and_module(&rig);
    // When it hangs in a boot, its power is cut: the test sees one file, presses the button, and makes the other.
    let (pressed, released) = (rig.path("pressed"), rig.path("released"));
    let press = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.1; done",
        pressed.display(),
        released.display()
    );
    rig.change(
        "hosts-lab.toml",
        "host = \"router\"\n",
        &format!(
            "host = \"router\"\nreboot_s_max = 10\npower_cycle = [\"sh\", \"-c\", {press:?}]\n"
        ),
    );
    let custom = rig.lab.grub(Host::Dut).join("custom.cfg");
    fs::write(&custom, "# the owner's\n").unwrap();
    let before = rig.dut();
    // What a boot would take as well is looked for before the first one.
    let neighbour = |change: &str| {
        let set =
            format!("ip neigh {change} 192.0.2.9 lladdr 02:00:00:00:00:09 dev eth1 nud permanent");
        rig.lab.inside(Host::Dut, &["sh", "-c", &set])
    };
    neighbour("add");
    let output = rig.run().output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let why = "Linux drops \"192.0.2.9 dev eth1";
    assert!(text(&output).contains(why), "{}", text(&output));
    assert_eq!(rig.lab.reboots(Host::Dut), 0);
    neighbour("delete");
    let mut child = rig.run().spawn().unwrap();
    {
        let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
        child = shared::wait_for_child("a boot for a trial", child, || {
            rig.lab.reboots(Host::Dut) >= 3
        });
    }
    child = shared::wait_for_child("its power is cut", child, || pressed.exists());
    rig.lab.reboot(Host::Dut);
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
    fs::write(released, "").unwrap();
    let output = finish(child);
    rig.assert_measured(&output, BLOCKS);
    let directory = rig.directory();
    // Twice to see what differs from boot to boot, for every trial, and in the end where the last was another.
    let boots = rig.lab.reboots(Host::Dut);
    let trials = 2 * rig.blocks();
    assert!(
        (trials + 2..=trials + 3).contains(&boots),
        "{boots}: {}",
        text(&output)
    );
    assert_as_before(&rig, &before);
    assert_eq!(fs::read_to_string(custom).unwrap(), "# the owner's\n");
    for block in block_records(&records(&directory)) {
        let facts = &block["differing_facts"]["second"];
        let names: Vec<&String> = facts.as_object().unwrap().keys().collect();
        assert_eq!(names, ["kernel", "kernel command line"], "{facts}");
        let line = facts["kernel command line"].as_str().unwrap();
        let added = " mitigations=off nosmt printk.time=0";
        assert!(line.trim_end().ends_with(added), "{line}");
        let kernel = facts["kernel"].as_str().unwrap();
        assert!(kernel.contains(SECOND_KERNEL), "{kernel}");
    }
    let lint = rig.fwdlab(&["lint"]).arg(&directory).output().unwrap();
    assert_eq!(lint.status.code(), Some(0), "{}", text(&lint));
}

#[test]
fn a_killed_run_that_had_booted_the_dut_is_put_back() {
    require_rig!();
    let rig = Rig::start();
    vary_the_command_line(&rig);
    let before = rig.dut();
    let command_line = || {
        let line = rig.ssh(Host::Dut, "cat /proc/cmdline");
        line.trim().to_owned()
    };
    let by_itself = command_line();
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
    let mut child = rig.begin("a boot that is not as by itself", || {
        rig.lab.reboots(Host::Dut) >= 3 && command_line() != by_itself
    });
    child.kill().unwrap();
    child.wait().unwrap();
    // A host that does not hear when it is asked to reboot is asked again.
    let deaf = "#!/bin/sh\n[ ! -e /tmp/asked ] || exec /run/testlab/bin/reboot\ntouch /tmp/asked\nexit 1\n";
    rig.lab.install(Host::Dut, "systemctl", deaf);
    rig.lab
        .install(Host::Dut, "shutdown", "#!/bin/sh\nexit 1\n");
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert_eq!(command_line(), by_itself, "{}", text(&restored));
    assert_as_before(&rig, &before);
    let custom = rig.lab.grub(Host::Dut).join("custom.cfg");
    assert!(!custom.exists(), "{}", text(&restored));
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    require_rig!();
    let rig = Rig::start();
    vary_the_command_line(&rig);
    let before = rig.dut();
    let custom = rig.lab.grub(Host::Dut).join("custom.cfg");
    fs::write(&custom, "# the owner's\n").unwrap();
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
    // The tester's program is brought there before anything is done on the DUT.
    for host in [Host::Tester, Host::Dut] {
        rig.lab.fill_disk(host, true);
        let output = rig.run().output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{host:?}: {}", text(&output));
        let said = text(&output);
        assert!(said.contains("No space left on device"), "{host:?}: {said}");
        assert!(
            said.contains(&format!("host {}", host.ssh_name())),
            "{said}"
        );
        // Nothing of a program is left there that was not brought as a whole.
        let programs = rig.ssh(host, "ls $HOME/.cache/fwdlab");
        assert!(!programs.contains("part"), "{host:?}: {programs}");
        rig.lab.fill_disk(host, false);
    }
    assert_as_before(&rig, &before);
    assert_eq!(fs::read_to_string(custom).unwrap(), "# the owner's\n");
}
