//! The published experiments as their files are shipped, each in the lab file of the host that it was published from, on a DUT
//! that stands in for that host.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::freebsd::{loader_configuration, start, written};
use crate::rig::{BLOCKS, Rig, assert_as_before};
use crate::shared::{self, REPOSITORY, block_records, invalid_reasons, records, trial_records};
use testkit::{Host, text};

/// A published experiment on its host.
struct Seed {
    experiment: &'static str,
    lab: &'static str,
    /// The driver of its ports.
    card: &'static str,
    /// Whether every trial is a boot.
    boots: bool,
    /// Folders with kernels.
    kernels: &'static [&'static str],
    /// In what the variants of a block differ.
    differing: &'static [&'static str],
    /// What all variants have.
    settings: &'static [&'static str],
}

const SEEDS: [Seed; 5] = [
    Seed {
        experiment: "hyperthreading",
        lab: "aoostar-x710",
        card: "ixl",
        boots: true,
        kernels: &[],
        differing: &[
            "kenv dev.ixl.0.iflib.use_logical_cores",
            "kenv dev.ixl.1.iflib.use_logical_cores",
            "kenv machdep.hyperthreading_allowed",
            "kenv machdep.hyperthreading_intr_allowed",
            "sysctl dev.ixl.0.iflib.use_logical_cores",
            "sysctl dev.ixl.1.iflib.use_logical_cores",
            "sysctl kern.random.harvest.mask",
            "sysctl machdep.hyperthreading_allowed",
            "sysctl machdep.hyperthreading_intr_allowed",
        ],
        settings: &[
            "dev.ixl.0.iflib.tx_abdicate=1",
            "dev.ixl.1.iflib.tx_abdicate=1",
            "kern.random.harvest.mask=351",
        ],
    },
    Seed {
        experiment: "tx_reclaim_thresh",
        lab: "atom-c2758-82599",
        card: "ix",
        boots: true,
        kernels: &[],
        differing: &[
            "kenv dev.ix.0.iflib.simple_tx",
            "kenv dev.ix.1.iflib.simple_tx",
            "sysctl dev.ix.0.iflib.simple_tx",
            "sysctl dev.ix.0.iflib.tx_reclaim_thresh",
            "sysctl dev.ix.1.iflib.simple_tx",
            "sysctl dev.ix.1.iflib.tx_reclaim_thresh",
            "sysctl kern.random.harvest.mask",
        ],
        settings: &[
            "dev.ix.0.iflib.tx_abdicate=1",
            "dev.ix.1.iflib.tx_reclaim_thresh=512",
            "kern.random.harvest.mask=351",
        ],
    },
    Seed {
        experiment: "simple_tx-prefetch",
        lab: "atom-c2758-82599",
        card: "ix",
        boots: true,
        kernels: &[],
        differing: &[
            "kenv dev.ix.0.iflib.disable_prefetch",
            "kenv dev.ix.0.iflib.simple_tx",
            "kenv dev.ix.1.iflib.disable_prefetch",
            "kenv dev.ix.1.iflib.simple_tx",
            "sysctl dev.ix.0.iflib.disable_prefetch",
            "sysctl dev.ix.0.iflib.simple_tx",
            "sysctl dev.ix.1.iflib.disable_prefetch",
            "sysctl dev.ix.1.iflib.simple_tx",
            "sysctl kern.random.harvest.mask",
        ],
        settings: &[
            "dev.ix.0.iflib.tx_abdicate=1",
            "kern.random.harvest.mask=351",
        ],
    },
    Seed {
        experiment: "harvest-mask",
        lab: "aoostar-x710",
        card: "ixl",
        boots: false,
        kernels: &[],
        differing: &["sysctl kern.random.harvest.mask"],
        settings: &["net.inet.ip.redirect=0", "net.inet6.ip6.redirect=0"],
    },
    Seed {
        experiment: "l2-prepend",
        lab: "atom-c2758-t540",
        card: "cxl",
        boots: true,
        kernels: &["n277567", "n277567D33658"],
        differing: &["kernel", "sysctl kern.random.harvest.mask"],
        settings: &["net.inet.ip.redirect=0", "kern.random.harvest.mask=351"],
    },
];

const SHIPPED_BLOCKS: usize = 8;

/// What stands in the rig's files in place of what is shipped: the hosts, a load that a namespace forwards, and slices that
/// are short. A run that boots its DUT for every trial is asked to end in its first block; a soak measures it to the end.
const REPLACED: [(&str, &str); 4] = [
    ("../../labs/router.toml", "hosts-lab.toml"),
    (
        "frame_size = 64\n",
        "frame_size = 64\nload = { pps = 2000 }\n",
    ),
    (
        "rounds = 10\n",
        "rounds = 1\nslice_ms = 300\nsettle_ms = 50\nwarm_up_ms = 50\ncontrol = false\n",
    ),
    ("every = \"block\"\n", "every = \"block\"\nslice_ms = 100\n"),
];

/// A rig with the files of a seed, whose DUT has its card and its kernels.
fn start_with(seed: &Seed) -> Rig {
    let rig = start();
    let shipped = |path: String| fs::read_to_string(Path::new(REPOSITORY).join(path)).unwrap();
    let mut experiment = shipped(format!("experiments/seeds/{}.toml", seed.experiment));
    for (from, to) in REPLACED {
        assert!(experiment.contains(from), "{from}");
        experiment = experiment.replace(from, to);
    }
    fs::write(rig.path("hosts.toml"), experiment).unwrap();
    let mut lab = shipped(format!("labs/{}.toml", seed.lab));
    // The file says which event a `[dut]` has to name.
    let (_, event) = lab.split_once("needs pmc_event = \"").unwrap();
    let (event, _) = event.split_once('"').unwrap();
    let hosts = format!(
        "\n[ssh]\nconfig = \"ssh_config\"\n\n\
         [dut]\nhost = \"router\"\nin = \"eth1\"\nout = \"eth2\"\nreboot_s_max = 60\n\
         pmc_event = \"{event}\"\n\n\
         [tester]\nhost = \"tester\"\nuses = \"fwdlab\"\nout = \"eth1\"\nin = \"eth2\"\n"
    );
    lab += &hosts;
    fs::write(rig.path("hosts-lab.toml"), lab).unwrap();
    rig.send_from_the_next_cpu();
    fs::write(rig.lab.home(Host::Dut).join("card"), seed.card).unwrap();
    for kernel in seed.kernels {
        let folder = loader_configuration(&rig).with_file_name(kernel);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("kernel"), "").unwrap();
    }
    rig
}

/// All that a run may change of a FreeBSD DUT beside what the rig knows to look at.
const STATE: &str = "sysctl -aeW; sysctl -aeT; kenv; ifconfig eth1; ifconfig eth2; arp -an; ndp -an; \
                     netstat -rn -f inet; netstat -rn -f inet6; sysctl -n kern.bootfile; ls /boot";

/// Measures all variants.
fn measure(seed: &Seed) {
    let rig = start_with(seed);
    let (before, state) = (rig.dut(), rig.ssh(Host::Dut, STATE));
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(100)));
    let output = if testkit::is_soak() {
        let output = rig.run().output().unwrap();
        rig.assert_measured(&output, SHIPPED_BLOCKS);
        output
    } else if seed.boots {
        let child = rig.begin("a block begins", || rig.sent_frames() > 100);
        testkit::signal(child.id(), "-INT");
        let output = shared::finish(child);
        assert_eq!(output.status.code(), Some(130), "{}", text(&output));
        output
    } else {
        let shipped = format!("blocks = {SHIPPED_BLOCKS}\n");
        let blocks = format!("blocks = {BLOCKS}\nconfidence_percent = 75\n");
        rig.change("hosts.toml", &shipped, &blocks);
        let output = rig.run().output().unwrap();
        rig.assert_measured(&output, BLOCKS);
        output
    };
    let said = text(&output);
    assert_as_before(&rig, &before);
    assert_eq!(rig.ssh(Host::Dut, STATE), state, "{said}");
    let records = records(&rig.directory());
    let reasons: Vec<_> = invalid_reasons(&records)
        .into_iter()
        .filter(|invalid| !["load-short", "stalled"].contains(&invalid["reason"].as_str().unwrap()))
        .collect();
    assert!(reasons.is_empty(), "{reasons:?}: {said}");
    let block = &block_records(&records)[0];
    for (family, frames) in block["conservation"].as_object().unwrap() {
        assert_eq!(frames["unaccounted_frames"], 0, "{family}: {block}");
    }
    let differing = block["differing_facts"].as_object().unwrap().values();
    let differing: BTreeSet<&str> = differing
        .flat_map(|facts| facts.as_object().unwrap().keys().map(String::as_str))
        .collect();
    assert_eq!(Vec::from_iter(differing), seed.differing, "{said}");
    let changes = written(&rig, "changes");
    for setting in seed.settings {
        let set = format!("sysctl {setting}");
        assert!(changes.lines().any(|line| line == set), "{set}: {changes}");
    }
    let trials = trial_records(&records);
    for trial in &trials {
        assert_eq!(trial["profile"]["samples"], 300, "{trial}");
        assert_eq!(trial["profile"]["faults"], serde_json::json!([]), "{trial}");
    }
    assert!(!trials.is_empty(), "{said}");
}

#[test]
fn published_experiments_are_measured_on_their_hosts_as_their_files_are_shipped() {
    require_rig!();
    thread::scope(|scope| {
        let cases = testkit::cases(SEEDS.len(), SEEDS.len()).into_iter();
        let cases = cases.map(|case| {
            let seed = &SEEDS[case - 1];
            let case = thread::Builder::new().name(seed.experiment.to_owned());
            case.spawn_scoped(scope, || measure(seed)).unwrap()
        });
        for case in Vec::from_iter(cases) {
            case.join().unwrap();
        }
    });
}

#[test]
fn tunables_that_were_not_taken_as_they_were_asked_are_refused_and_unknown_ones_named() {
    require_rig!();
    let rig = start_with(&SEEDS[2]);
    let refused = |code: i32, arguments: &[&str], whys: &[&str]| {
        let mut command = rig.fwdlab(arguments);
        let output = command.arg(rig.path("hosts.toml")).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        for why in whys {
            assert!(text(&output).contains(why), "{why}: {}", text(&output));
        }
    };
    rig.change("hosts-lab.toml", "disable_prefetch", "disable_prefech");
    rig.change("hosts.toml", "_ntxds\" = 1024", "_ntxds\" = 8192");
    let unknown = "the kernel of router has no sysctl by the name of these tunables: dev.ix.0.iflib.disable_prefech, \
                   dev.ix.1.iflib.disable_prefech; ";
    let mut doctor = rig.fwdlab(&["doctor", "--quick"]);
    let doctor = doctor.arg(rig.path("hosts-lab.toml")).output().unwrap();
    assert!(text(&doctor).contains(unknown), "{}", text(&doctor));
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(100)));
    let results = rig.results();
    let run = ["run", "--results", results.to_str().unwrap()];
    let stands = "dev.ix.0.iflib.override_ntxds was set to \"8192\" and reads back as \"4096 TX descriptors\"";
    refused(3, &run, &[stands]);
    // What a driver has read is not changed by what stands in its sysctl.
    let loader = "{ loader = \"dev.ix.{0,1}.iflib.override_nrxds\"";
    rig.change(
        "hosts-lab.toml",
        loader,
        &loader.replace("loader", "sysctl"),
    );
    let why = "a driver reads dev.ix.{0,1}.iflib.override_nrxds when it attaches, and only then";
    refused(1, &run, &[why]);
}
