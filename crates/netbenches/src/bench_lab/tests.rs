use std::fs;
use std::path::Path;

use fwdlab_model::{Binding, Resolved};
use proptest::prelude::*;

use super::*;

const CONFIG: &str = "\
#!/bin/sh
#+---------------------------+   +-----------------------------+
#|     Device under test     |   | Packet generator & receiver |
#|                           |   |                             |
#|  ix0: 198.18.0.46/24      |=<=| ix0: 198.18.0.2/24          |
#|       (90:e2:ba:84:20:38) |   |        (00:25:90:91:14:0a)  |
#|  ix1: 198.19.0.46/24      |=>=| ix1: 198.19.0.2/24          |
#|       (90:e2:ba:84:20:39) |   |        (00:25:90:91:14:0b)  |
#+---------------------------+   +-----------------------------+
SENDER_ADMIN=\"bigone\"
RECEIVER_ADMIN=${SENDER_ADMIN}
DUT_ADMIN=\"sm2\"
SENDER_LAB_IP=\"198.18.0.2\"
RECEIVER_LAB_IP=\"198.19.0.2\"
SENDER_LAB_IF=\"ix0\"
RECEIVER_LAB_IF=\"ix1\"
DUT_LAB_IF_MAC_SENDER_SIDE=\"90:e2:ba:84:20:38\"
: ${AF:=\"4\"}
: ${SENDER_LAB_NET:=\"198.18.10.1:2001-198.18.10.71\"}
: ${RECEIVER_LAB_NET:=\"198.19.10.1:2001-198.19.10.70\"}
: ${PKT_SIZE:=\"43\"}
: ${PMC_EVENT:=\"cpu_clk_unhalted.core_p\"}
REBOOT_TIMEOUT=120
RECEIVER_STOP_CMD=\"pkill pkt-gen\"
";

const RC_CONF: &str =
    "ifconfig_ixl0=\"inet 198.18.0.46/24\"\nifconfig_ixl1=\"inet 198.19.0.46/24\"\n";

/// A folder with a configuration, and what is written of it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(config: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("lab.config", config);
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn sets(&self, names: &[&str]) {
        for (number, name) in names.iter().enumerate() {
            self.write(&format!("T/configs/{name}/etc/rc.conf"), RC_CONF);
            let sysctl = format!("net.x={number}\n");
            self.write(&format!("T/configs/{name}/etc/sysctl.conf"), &sysctl);
        }
    }

    fn read(&self) -> Result<Source, BenchLabError> {
        let below = |name: &str| Some(self.path().join(name)).filter(|path| path.exists());
        Source::read(BenchLabPaths {
            config: &self.path().join("lab.config"),
            configs: below("T/configs").as_deref(),
            pktgen: below("pktgen").as_deref(),
            to: &self.path().join("out/labs"),
            name: None,
        })
    }

    fn draft(&self) -> Draft {
        Draft::of(&self.read().unwrap())
    }

    /// Writes the files and reads an experiment of them as a run does.
    fn load(&self, draft: &Draft, experiment: usize) -> Resolved {
        let to = self.path().join("out/labs");
        let paths = draft.write(&to).unwrap();
        // Of a set it is enough that it is there.
        let read = |path: &Path| match path.is_dir() {
            true => Ok(String::new()),
            false => fs::read_to_string(path),
        };
        match fwdlab_model::load(&paths[1 + experiment], None, &read, 1) {
            Ok(loaded) => loaded.resolved,
            Err(found) => panic!("{}", found.render(false)),
        }
    }

    fn refusal(&self) -> String {
        let error = self.read().unwrap_err().to_string();
        error.replace(&self.path().display().to_string(), "…")
    }
}

fn notes(draft: &Draft) -> Vec<String> {
    let without_folder = |note: &Note| {
        let text = note.to_string();
        match text.split_once("lab.config") {
            Some((_, text)) => text.to_owned(),
            None => text,
        }
    };
    draft.notes.iter().map(without_folder).collect()
}

#[test]
fn a_lab_and_an_experiment_are_read_as_they_were_meant() {
    let folder = Folder::new(CONFIG);
    folder.sets(&["10", "9-default", "a \"b\""]);
    let draft = folder.draft();
    assert_eq!(draft.missing, [""; 0]);
    assert_eq!(
        (draft.lab.name.as_str(), draft.experiments[0].name.as_str()),
        ("T-lab.toml", "T.toml")
    );
    let resolved = folder.load(&draft, 0);
    assert_eq!(resolved.question, "Impact of T on forwarding performance");
    let hosts = resolved.lab.hosts.unwrap();
    assert_eq!(
        (hosts.dut.host.as_str(), hosts.dut.reboot_s_max),
        ("sm2", 600)
    );
    // The drawing shows another card than the sets configure.
    assert_eq!(
        (
            hosts.dut.interface_in.as_str(),
            hosts.dut.interface_out.as_str()
        ),
        ("ixl0", "ixl1")
    );
    assert_eq!(
        (hosts.tester.host.as_str(), hosts.tester.receiver),
        ("bigone", None)
    );
    assert_eq!(
        (
            hosts.tester.interface_out.as_str(),
            hosts.tester.interface_in.as_str()
        ),
        ("ix0", "ix1")
    );
    let levels: Vec<String> = resolved.factors[0]
        .levels
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(levels, ["9-default", "10", "a \"b\""]);
    assert_eq!(resolved.factors[0].default.to_string(), "9-default");
    let Some(Binding::Configs(folders)) = resolved.lab.bindings.get("configuration") else {
        panic!("{:?}", resolved.lab.bindings);
    };
    for folder in folders.values() {
        let found = &folder.found;
        assert!(found.join("etc/rc.conf").is_file(), "{}", found.display());
    }
    let traffic = &resolved.traffics[0];
    assert_eq!((traffic.sources, traffic.destinations), (71, 70));
    assert_eq!(
        (traffic.source_ports.first, traffic.source_ports.last),
        (2001, 2001)
    );
    assert_eq!(traffic.frame_sizes[0].bytes, 64);
    assert_eq!((resolved.design.blocks, resolved.design.rounds), (8, 1));
    assert!(
        notes(&draft)
            .iter()
            .any(|note| note == ":5: in of [dut]: ixl0, by the sets, where the drawing has ix0"),
        "{:?}",
        draft.notes
    );
}

#[test]
fn ports_come_from_the_drawing_where_there_are_no_sets() {
    let folder = Folder::new(CONFIG);
    let draft = folder.draft();
    assert_eq!(draft.experiments, []);
    let ports = "# As the drawing in line 5 has it.\nin = \"ix0\"\n# As the drawing in line 7 has it.\nout = \"ix1\"\n";
    assert!(draft.lab.text.contains(ports), "{}", draft.lab.text);
    assert_eq!(
        notes(&draft),
        ["no experiment: nothing is varied without --configs"]
    );
    let paths = draft.write(&folder.path().join("out")).unwrap();
    // Of a set it is enough that it is there.
    let read = |path: &Path| match path.is_dir() {
        true => Ok(String::new()),
        false => fs::read_to_string(path),
    };
    assert!(fwdlab_model::load_lab(&paths[0], &read).is_ok());
}

#[test]
fn what_is_missing_is_named_and_keeps_the_lab_from_being_read() {
    let folder = Folder::new(
        "DUT_ADMIN=\"sm2\"\nSENDER_ADMIN=\"$HOST\"\nSENDER_LAB_IF=ix0\nRECEIVER_LAB_IP=198.19.0.2\nDUT_LAB_IF_MAC_SENDER_SIDE=90:e2:ba:84:20:38\n",
    );
    let draft = folder.draft();
    assert_eq!(
        draft.missing,
        [
            "[dut] in: the DUT's interface with the MAC address 90:e2:ba:84:20:38; `ifconfig` there lists it \
             (neither a set nor the drawing tells it)",
            "[dut] out: the DUT's interface in the net of 198.19.0.2; `ifconfig` there lists it \
             (neither a set nor the drawing tells it)",
            "[tester] host: what ssh is told; SENDER_ADMIN is $HOST",
            "[tester] in: the interface where the sink counts; RECEIVER_LAB_IF is not set",
        ]
    );
    let paths = draft.write(&folder.path().join("out")).unwrap();
    let found =
        fwdlab_model::load_lab(&paths[0], &|path: &Path| fs::read_to_string(path)).unwrap_err();
    assert_eq!(found.errors(), 4, "{}", found.render(false));
}

#[test]
fn sets_of_pkt_gen_that_differ_in_their_family_alone_are_one_experiment() {
    let folder = Folder::new(CONFIG);
    folder.sets(&["off", "on"]);
    folder.write("pktgen/inet4", "PKT_SIZE=60\nAF=4\nSENDER_LAB_NET=198.18.10.1:2000-198.18.10.20\nRECEIVER_LAB_NET=198.19.10.1:2000-198.19.10.100\n");
    folder.write("pktgen/inet6", "PKT_SIZE=62\nAF=6\nSENDER_LAB_NET='\"[2001:2:0:10::1]-[2001:2:0:10::14]\"'\nRECEIVER_LAB_NET='\"[2001:2:0:8010::1]-[2001:2:0:8010::64]\"'\n");
    let draft = folder.draft();
    let resolved = folder.load(&draft, 0);
    assert_eq!(draft.experiments.len(), 1);
    assert_eq!(resolved.traffics[0].families.len(), 2);
    assert_eq!(
        (
            resolved.traffics[0].sources,
            resolved.traffics[0].destinations
        ),
        (20, 100)
    );
    assert_eq!(resolved.traffics[0].source_ports.first, 2000);
    assert_eq!(resolved.traffics[0].frame_sizes[0].bytes, 64);

    // Another size is another traffic, and so are more flows than there can be.
    folder.write("pktgen/large", "PKT_SIZE=1514\n");
    folder.write(
        "pktgen/many",
        "SENDER_LAB_NET=198.18.10.1:2001-198.18.20.1\n",
    );
    folder.write("pktgen/jumbo", "PKT_SIZE=9000\n");
    folder.write(
        "pktgen/groups",
        "RECEIVER_LAB_NET=223.255.255.250:2001-224.0.0.9\n",
    );
    folder.write("pktgen/overlap", "SENDER_LAB_NET=198.19.10.5:2001\n");
    let draft = folder.draft();
    let names: Vec<&str> = draft
        .experiments
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(names, ["T-inet4-inet6.toml", "T-large.toml"]);
    let fresh = Folder(tempfile::tempdir().unwrap());
    fresh.sets(&["off", "on"]);
    assert_eq!(fresh.load(&draft, 1).traffics[0].frame_sizes[0].bytes, 1518);
    let said = notes(&draft).join("\n");
    assert!(
        said.contains("many: no experiment: 2561 sources x 70 destinations are 179270 flows"),
        "{said}"
    );
    assert!(
        said.contains("frames of 9004 bytes; fwdlab sends at most 1518"),
        "{said}"
    );
    assert!(
        said.contains(
            "groups: no experiment: no router forwards 224.0.0.0, one of the 16 addresses"
        ),
        "{said}"
    );
    assert!(
        said.contains(
            "overlap: no experiment: sources (198.19.10.5) and destinations (198.19.10.1 to 198.19.10.70) overlap"
        ),
        "{said}"
    );
    assert!(
        said.contains("inet4 and inet6 differ in their family alone"),
        "{said}"
    );
}

#[test]
fn more_hosts_and_the_ends_of_tunnels_are_seen() {
    let folder = Folder::new(
        "DUT_ADMIN=d\nSENDER_ADMIN=s\nSENDER_ADMIN_2=r\nRECEIVER_ADMIN=r\nREF_ADMIN=far\n\
         SENDER_LAB_IF=ix0\nSENDER_LAB_2_IF=ix1\nRECEIVER_LAB_IF=ix0\nREBOOT_TIMEOUT=100000\n\
         SENDER_LAB_IP=198.18.0.2\nRECEIVER_LAB_IP=198.18.1.2\nSENDER_LAB_NET_2=198.18.3.1\n\
         SENDER_START_CMD=\"sudo equilibrium -4 -l 10000\"\n",
    );
    let rc_conf = "ifconfig_ix0=\"inet 198.18.0.1/24\"\nifconfig_ix1=\"inet 198.18.1.1/24\"\n";
    folder.write("T/configs/a/dut/etc/rc.conf", rc_conf);
    folder.write(
        "T/configs/a/refendpoint/etc/rc.conf",
        "ifconfig_ix7=\"inet 198.18.1.2/24\"\n",
    );
    folder.write("T/configs/a/dut/etc/local/dut.key", "SESAME");
    let draft = folder.draft();
    let resolved = folder.load(&draft, 0);
    assert!(
        draft.lab.text.contains("\"a\" = \"../../T/configs/a/dut\""),
        "{}",
        draft.lab.text
    );
    let hosts = resolved.lab.hosts.unwrap();
    assert_eq!(hosts.dut.reboot_s_max, 7200);
    assert_eq!(hosts.tester.receiver.unwrap().host, "r");
    assert_eq!(
        (
            hosts.generators[0].host.as_str(),
            hosts.generators[0].interface_out.as_str()
        ),
        ("r", "ix1")
    );
    assert_eq!(resolved.lab.link_gbps, Some(10.0));
    let said = notes(&draft).join("\n");
    for expected in [
        "REF_ADMIN: the far end of a tunnel",
        "500000 s, of which a lab file takes 7200",
        "SENDER_LAB_NET_2: sends other flows",
        "equilibrium searches for the highest rate",
        "dut alone is for the DUT",
        "(dut/etc/local/dut.key): only its path is written",
        "no PKT_SIZE: frames of 64 bytes",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!format!("{draft:?}").contains("SESAME"));
}

#[test]
fn what_is_no_configuration_of_a_lab_is_refused() {
    let give = "give a bench-lab….config";
    for (config, message) in [
        ("", format!("…/lab.config: sets neither DUT_ADMIN nor SENDER_ADMIN, so no configuration of a lab; {give}")),
        ("\u{7f}ELF\0\0", "…/lab.config: line 1: no plain assignment; give one like NAME=\"value\"; only assignments are taken, and none of it is run".into()),
        ("DUT_ADMIN=x\nrm -rf /\n", "…/lab.config: line 2: no plain assignment; give one like NAME=\"value\"; only assignments are taken, and none of it is run".into()),
    ] {
        assert_eq!(Folder::new(config).refusal(), message);
    }
    let folder = Folder::new(CONFIG);
    fs::remove_file(folder.path().join("lab.config")).unwrap();
    assert_eq!(
        folder.refusal(),
        format!("…/lab.config: cannot be read (No such file or directory (os error 2)); {give}")
    );
    fs::create_dir(folder.path().join("lab.config")).unwrap();
    assert_eq!(
        folder.refusal(),
        format!("…/lab.config: is a folder; {give}")
    );

    let folder = Folder::new(CONFIG);
    folder.write("T/configs/README", "");
    assert!(
        folder
            .refusal()
            .contains("…/T/configs: has no configuration set in it"),
        "{}",
        folder.refusal()
    );
    folder.write("T/configs/a/etc/rc.conf", "");
    folder.write("pktgen/a/b", "");
    assert!(
        folder
            .refusal()
            .contains("…/pktgen: has no set of pkt-gen in it"),
        "{}",
        folder.refusal()
    );
    folder.write("pktgen/c", "AF=5\n");
    assert_eq!(
        folder.refusal(),
        "…/pktgen/c: line 1: AF cannot be \"5\"; give 4 or 6"
    );
}

#[test]
fn a_folder_that_is_a_set_itself_is_measured_beside_its_control() {
    let folder = Folder::new(CONFIG);
    folder.write("T/configs/etc/rc.conf", RC_CONF);
    let resolved = folder.load(&folder.draft(), 0);
    let level = resolved.factors[0].levels[0].to_string();
    assert_eq!((level.as_str(), resolved.variants.len()), ("T", 2));
}

#[test]
fn nothing_of_a_file_with_keys_is_quoted() {
    let folder = Folder::new(CONFIG);
    folder.sets(&["off", "on"]);
    let keys = "create_args_wg0=\"private-key SESAME\"\nhostname=\"OPEN\"\n";
    folder.write("T/configs/on/etc/rc.conf", &format!("{RC_CONF}{keys}"));
    folder.write(
        "T/configs/on/etc/ipsec.conf",
        "add 1.2.3.4 1.2.3.5 esp 0x1000 -E aes-cbc \"SESAME\";\n",
    );
    let draft = folder.draft();
    let text = &draft.experiments[0].text;
    let expected = "# Against \"off\":\n# \"on\":\n#   another etc/rc.conf, which holds keys\n\
                    #   net.x: \"1\" instead of \"0\" (etc/sysctl.conf)\n#   with etc/ipsec.conf\n";
    assert!(text.contains(expected), "{text}");
    let all = format!("{draft:?}");
    assert!(!all.contains("SESAME") && !all.contains("OPEN"), "{all}");
}

#[test]
fn files_that_are_there_stay_and_nothing_is_written_beside_them() {
    let folder = Folder::new(CONFIG);
    folder.sets(&["off", "on"]);
    let draft = folder.draft();
    let to = folder.path().join("out");
    folder.write("out/T.toml", "mine");
    let error = draft.write(&to).unwrap_err().to_string();
    assert!(
        error.contains("out/T.toml: is there already and something else"),
        "{error}"
    );
    assert!(!to.join("T-lab.toml").exists());
    assert_eq!(fs::read_to_string(to.join("T.toml")).unwrap(), "mine");
    fs::remove_file(to.join("T.toml")).unwrap();
    assert_eq!(draft.write(&to).unwrap(), draft.write(&to).unwrap());
    assert_eq!(fs::read_dir(&to).unwrap().count(), 2);
    fs::remove_file(to.join("T.toml")).unwrap();
    std::os::unix::fs::symlink("/nowhere", to.join("T.toml")).unwrap();
    assert!(draft.write(&to).is_err());
}

#[test]
fn so_many_variants_take_so_many_blocks() {
    for (variants, blocks) in [(1, 6), (3, 7), (6, 8), (7, 9), (12, 9), (13, 10), (255, 14)] {
        assert_eq!(
            experiment_file::fewest_blocks(variants),
            blocks,
            "{variants}"
        );
    }
}

proptest! {
    #[test]
    fn any_configuration_makes_files_or_is_refused(
        config in "(DUT_ADMIN=|SENDER_ADMIN=|SENDER_LAB_NET=|PKT_SIZE=|AF=|REBOOT_TIMEOUT=|[\"'$#|:. \n-]|198[.]18[.]1[.]1|[0-9a-f]{1,5}){0,30}",
    ) {
        let folder = Folder::new(&format!("DUT_ADMIN=d\n{config}"));
        if let Ok(source) = folder.read() {
            let draft = Draft::of(&source);
            prop_assert!(!draft.missing.is_empty());
        }
    }

    /// Whatever stands in the files, what is written is read as that and as nothing else.
    #[test]
    fn any_names_are_read_back(host in "([a-z]{1,5}@)?[A-Za-z0-9_]{1,5}(-[A-Za-z0-9_]{1,5})?([.][a-z][a-z0-9]{0,5})?", set in "[^\\p{Cc}/.][^\\p{Cc}/]{0,20}") {
        prop_assume!(!set.trim().is_empty() && !["etc", "boot", "dut"].contains(&set.as_str()));
        let folder = Folder::new(&CONFIG.replace("\"sm2\"", &format!("'{host}'")));
        folder.sets(&[&set]);
        let resolved = folder.load(&folder.draft(), 0);
        prop_assert_eq!(resolved.lab.hosts.unwrap().dut.host, host);
        prop_assert_eq!(resolved.factors[0].levels[0].to_string(), set);
    }
}
