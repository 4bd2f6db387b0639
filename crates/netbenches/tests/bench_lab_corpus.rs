//! The labs of the public archive, as lab files and experiments, against the part of it in the shared data.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_netbenches::bench_lab::{BenchLabPaths, Draft, Source};

/// What lies in a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    let name = path.file_name().expect("a name");
    name.to_string_lossy().into_owned()
}

/// `<platform>/<nic>` folders with the configurations of labs in them.
fn labs(archive: &Path) -> Vec<(PathBuf, Vec<PathBuf>)> {
    let platforms = entries(archive).into_iter().filter(|path| path.is_dir());
    let nics = platforms.flat_map(|platform| entries(&platform));
    nics.filter(|nic| nic.is_dir())
        .filter_map(|nic| {
            let is_lab = |path: &PathBuf| name(path).starts_with("bench-lab");
            let labs: Vec<PathBuf> = entries(&nic).into_iter().filter(is_lab).collect();
            (!labs.is_empty()).then_some((nic, labs))
        })
        .collect()
}

fn configs(nic: &Path) -> Vec<PathBuf> {
    let topics = entries(nic).into_iter().map(|topic| topic.join("configs"));
    topics.filter(|configs| configs.is_dir()).collect()
}

/// What a pair makes, written and read by the loader; the errors where it cannot be.
fn import(paths: BenchLabPaths<'_>) -> (Draft, Vec<String>) {
    let shown = paths.config.display();
    let source = Source::read(paths).unwrap_or_else(|error| panic!("{error}"));
    let draft = Draft::of(&source);
    let written = draft
        .write(paths.to)
        .unwrap_or_else(|error| panic!("{error}"));
    // Of a set it is enough that it is there.
    let read = |path: &Path| match path.is_dir() {
        true => Ok(String::new()),
        false => fs::read_to_string(path),
    };
    let mut errors = Vec::new();
    if let Err(found) = fwdlab_model::load_lab(&written[0], &read) {
        errors.push(format!("{shown}: {}", found.render(false)));
    }
    for experiment in &written[1..] {
        match fwdlab_model::load(experiment, None, &read, 1) {
            Ok(loaded) => {
                let warnings = loaded.warnings.render(false);
                assert!(loaded.warnings.is_empty(), "{shown}: {warnings}");
            }
            Err(found) => errors.push(format!("{shown}: {}", found.render(false))),
        }
    }
    (draft, errors)
}

#[test]
fn every_lab_is_loaded_with_every_configuration_beside_it() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut labs_read, mut pairs, mut incomplete) = (0, 0, String::new());
    let mut disagreements = BTreeMap::new();
    for (nic, labs) in labs(&archive) {
        for lab in labs {
            labs_read += 1;
            for configs in configs(&nic) {
                pairs += 1;
                let paths = BenchLabPaths {
                    config: &lab,
                    configs: Some(&configs),
                    pktgen: None,
                    to: &scratch.path().join(pairs.to_string()),
                    name: None,
                };
                let (draft, errors) = import(paths);
                assert!(
                    !draft
                        .notes
                        .iter()
                        .any(|note| note.text.contains("stays as it stands"))
                );
                for note in draft
                    .notes
                    .iter()
                    .filter(|note| note.text.contains("where the drawing has"))
                {
                    *disagreements
                        .entry(format!("{}: {}", name(&nic), note.text))
                        .or_insert(0) += 1;
                }
                if draft.missing.is_empty() {
                    assert_eq!(errors, [""; 0]);
                    assert_eq!(
                        draft.experiments.len(),
                        1,
                        "{}: {:?}",
                        lab.display(),
                        draft.notes
                    );
                } else {
                    assert!(!errors.is_empty());
                    let topic = name(configs.parent().expect("a topic"));
                    let keys: Vec<&str> = draft
                        .missing
                        .iter()
                        .map(|key| key.split(':').next().unwrap_or_default())
                        .collect();
                    incomplete += &format!("{} {topic}: {}\n", name(&lab), keys.join(", "));
                }
            }
        }
    }
    assert_eq!((labs_read, pairs), (17, 241));
    assert_eq!(incomplete, "");
    let shown: String = disagreements
        .iter()
        .map(|(what, pairs)| format!("{pairs} {what}\n"))
        .collect();
    // Sets of other ports, and drawings that were copied from another lab.
    assert_eq!(
        shown,
        "\
2 Chelsio_T540-CR: in of [dut]: cxl3, by the sets, where the drawing has cxl0
2 Chelsio_T540-CR: out of [dut]: cxl2, by the sets, where the drawing has cxl1
1 Chelsio_T580: in of [dut]: cxl1, by the sets, where the drawing has cxl0
9 Chelsio_T580: out of [dut]: mce0, by the sets, where the drawing has cxl1
4 Intel_X710: in of [dut]: ixl0, by the sets, where the drawing has ix0
4 Intel_X710: out of [dut]: ixl1, by the sets, where the drawing has ix1
"
    );
}

#[test]
fn every_lab_is_loaded_by_its_drawing_alone() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let scratch = tempfile::tempdir().expect("a folder");
    let mut described = String::new();
    for (_, labs) in labs(&archive) {
        for lab in labs {
            let paths = BenchLabPaths {
                config: &lab,
                configs: None,
                pktgen: None,
                to: &scratch.path().join(described.len().to_string()),
                name: Some(&name(&lab)),
            };
            let (draft, errors) = import(paths);
            assert_eq!(errors, [""; 0]);
            let lines = draft.lab.text.lines();
            let is_told = |line: &&str| {
                let key = line.split(" = ").next().unwrap_or_default();
                ["description", "in", "out"].contains(&key)
            };
            let value = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
            let values: Vec<String> = lines.filter(is_told).map(value).collect();
            described += &format!("{}\n", values.join("; "));
        }
    }
    assert_eq!(
        described,
        "\
AMD GX-412TC 4Cores, Intel i210AT, DUT apu2-2.lab.cochard.me, tester sm1.lab.cochard.me; igb1; igb2; igb1; igb2
PC Engines APU2 (apu24), Intel i210AT, DUT 192.168.100.44, tester 192.168.100.43; igb1; igb2; igb1; igb2
PC Engines APU2, Intel i210AT, DUT 192.168.1.5, tester 192.168.1.1; igb1; igb2; igb2; igb3
AMD Ryzen7-Pro-8845HS 8Cores, Intel X710, DUT aoostar, tester bigone; ix0; ix1; ix0; ix1
Atom C2558 4Cores, Intel i350, DUT 192.168.1.9, tester 192.168.1.3; igb2; igb3; igb2; igb3
Netgate RCC-VE 4860 (AES-NI), Intel i350, DUT 192.168.1.9, tester 192.168.1.1; igb2; igb3; igb1; igb2
Atom C2758 8Cores, Chelsio T540-CR, DUT 192.168.1.8, tester 192.168.1.10; cxl0; cxl1; vcxl0; vcxl1
Atom C2758-Chelsio, Chelsio T540-CR, DUT 192.168.1.8, tester 192.168.1.2; cxl0; cxl1; vcxl0; vcxl1
Atom C2758-Chelsio, Chelsio T540-CR, DUT 192.168.1.8, tester 192.168.1.2; cxl0; cxl1; vcxl0; vcxl1
Atom C2758 8Cores, Intel 82599, DUT sm2, tester bigone; ix0; ix1; ix0; ix1
Xeon E5-2650 8Cores, Chelsio T540-CR, DUT 192.168.1.10, tester 192.168.1.2; cxl0; cxl1; vcxl0; vcxl1
HP, Chelsio T540-CR, DUT 192.168.1.10, tester 192.168.1.8; cxl0; cxl1; vcxl0; vcxl1
Xeon E5-2650v4 2x12Cores, Chelsio T520-CR, DUT 192.168.1.2, tester 192.168.1.10; cxl0; cxl1; vcxl0; vcxl1
Xeon E5-2650v4 2x12Cores, Chelsio T520-CR, DUT 192.168.1.2, tester 192.168.1.8; cxl0; cxl1; vcxl0; vcxl1
Xeon E5-2650v4 2x12Cores, Intel 82599ES, DUT 192.168.1.2, tester 192.168.1.10; ix0; ix1; vcxl0; vcxl1
Xeon E5-2697Av4 16Cores, Chelsio T580, DUT pxetest2, tester pxetest3; cxl0; cxl1; vcxl0; vcxl0; vcxl1
Xeon E5-2697Av4 16Cores, Mellanox ConnectX-4, DUT pxetest2, tester pxetest3; mce0; cxl1; vcxl0; vcxl0
"
    );
}

#[test]
fn every_set_of_pkt_gen_makes_experiments_or_says_why_not() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let scratch = tempfile::tempdir().expect("a folder");
    let nic = archive.join("Atom_C2758_8Cores/Intel_82599");
    let mut made = String::new();
    for pktgen in entries(&archive.join("pktgen.configs")) {
        let paths = BenchLabPaths {
            config: &nic.join("bench-lab-2nodes.config"),
            configs: Some(&nic.join("iflib.simple_tx/configs")),
            pktgen: Some(&pktgen),
            to: &scratch.path().join(name(&pktgen)),
            name: Some("x"),
        };
        let (draft, errors) = import(paths);
        assert_eq!(errors, [""; 0]);
        let names: Vec<&str> = draft
            .experiments
            .iter()
            .map(|file| file.name.as_str())
            .collect();
        let said = draft
            .notes
            .iter()
            .any(|note| note.text.contains("no experiment"));
        assert!(said || !names.is_empty(), "{:?}", draft.notes);
        let names = if names.is_empty() {
            "none".into()
        } else {
            names.join(" ")
        };
        made += &format!("{}: {names}\n", name(&pktgen));
    }
    assert_eq!(
        made,
        "\
RFC2544: x-64.toml x-128.toml x-256.toml x-512.toml x-1024.toml x-1280.toml x-1518.toml
dualstack-2k: x.toml
dualstack-5k: x.toml
dualstack-vpn: x-inet4-1.toml x-inet4-2K.toml x-inet6-1.toml x-inet6-2k.toml
flows-100K: none
flows-5M: none
flows-64-5M: x-1K.toml x-5K.toml x-10K.toml x-64.toml
inet6-2k: x.toml
"
    );
}
