//! The readers of the archive's small files against the part of the archive in the shared data.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_netbenches::{
    BenchInfo, ConfigSet, Difference, Effective, Estimate, LabConfig, LabVariable, PktGenConfig,
    Secret, Table, differences, parse_rates_mbps,
};

/// Every file below a folder, in order, with its path from there.
fn files(archive: &Path) -> Vec<(String, PathBuf)> {
    let (mut folders, mut found) = (vec![archive.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let shown = path.strip_prefix(archive).expect("it is below the folder");
                found.push((shown.display().to_string(), path.clone()));
            }
        }
    }
    found.sort();
    found
}

fn named(archive: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, Vec<u8>)> {
    let wanted = files(archive)
        .into_iter()
        .filter(|(shown, _)| is_wanted(shown));
    wanted
        .map(|(shown, path)| (shown, fs::read(path).expect("the file can be read")))
        .collect()
}

#[derive(Default)]
struct Tally(BTreeMap<String, usize>);

impl Tally {
    fn add(&mut self, what: impl Into<String>) {
        self.add_many(what, 1);
    }

    fn add_many(&mut self, what: impl Into<String>, count: usize) {
        *self.0.entry(what.into()).or_default() += count;
    }

    /// What was counted, a line each.
    fn lines(&self) -> String {
        self.0
            .iter()
            .map(|(what, count)| format!("{count} {what}\n"))
            .collect()
    }
}

#[test]
fn every_info_is_read() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut tally = Tally::default();
    for (shown, text) in named(&archive, |path| path.ends_with(".info")) {
        let info = BenchInfo::parse(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let form = format!("{:?}", info.form);
        assert_eq!(info.others, [], "{shown}");
        for (what, is_there) in [
            ("files", true),
            ("image", info.image.is_some()),
            ("configuration", info.configuration.is_some()),
            ("pktgen", info.pktgen.is_some()),
            ("start", info.start.is_some()),
            ("end", info.end.is_some()),
            ("system", info.uname.is_some()),
        ] {
            tally.add_many(format!("{form}: {what}"), usize::from(is_there));
        }
        if let Some(uname) = info.uname {
            tally.add(format!("{} {}", uname.operating_system, uname.architecture));
            let revision = uname.revision.map(|revision| revision.count);
            tally.add(format!("revision {revision:?}"));
        }
        let times = [info.start, info.end].map(|time| time.map(|time| time.epoch_s.unwrap()));
        if let [Some(start_s), Some(end_s)] = times {
            // A group of runs takes minutes to hours.
            assert!((60..100_000).contains(&(end_s - start_s)), "{shown}");
        }
    }
    assert_eq!(
        tally.lines(),
        "\
3096 FreeBSD amd64
461 Lines: configuration
452 Lines: end
461 Lines: files
370 Lines: image
0 Lines: pktgen
461 Lines: start
452 Lines: system
2282 Variables: configuration
0 Variables: end
2644 Variables: files
1112 Variables: image
1217 Variables: pktgen
0 Variables: start
2644 Variables: system
306 revision None
127 revision Some(None)
106 revision Some(Some(FirstParents))
2557 revision Some(Some(Subversion))
"
    );
}

#[test]
fn every_table_is_read() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut tally = Tally::default();
    let is_table = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        path.ends_with(".data") || name.contains(".data.")
    };
    for (shown, text) in named(&archive, is_table) {
        let table = Table::parse(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
        tally.add("tables");
        tally.add_many("tables without a row", usize::from(table.rows.is_empty()));
        tally.add_many("comments", table.comments.len());
        for row in &table.rows {
            let (keys, inherited) = (row.keys.len(), row.inherited_keys);
            tally.add(format!(
                "rows: {keys} keys, {inherited} of them from above, {} numbers",
                row.numbers.len()
            ));
            if let [median, minimum, maximum] = *row.numbers {
                assert!(
                    minimum <= median && median <= maximum,
                    "{shown}:{}",
                    row.line
                );
            }
        }
    }
    assert_eq!(
        tally.lines(),
        "\
1 comments
10 rows: 0 keys, 0 of them from above, 1 numbers
91 rows: 0 keys, 0 of them from above, 3 numbers
4467 rows: 1 keys, 0 of them from above, 3 numbers
33 rows: 2 keys, 0 of them from above, 3 numbers
315 rows: 2 keys, 1 of them from above, 3 numbers
738 tables
83 tables without a row
"
    );
}

#[test]
fn the_values_of_equilibrium_are_those_of_its_logs() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut tally = Tally::default();
    // Equilibrium and maximum by results folder and key; the runs in the order of `ls`.
    let mut found: BTreeMap<(String, String), Vec<[u64; 2]>> = BTreeMap::new();
    for (shown, text) in named(&archive, |path| path.ends_with(".sender")) {
        if !text.windows(11).any(|window| window == b"equilibrium") {
            continue;
        }
        tally.add("logs");
        let estimate = Estimate::of_log(&text).unwrap_or_else(|| panic!("{shown}: no estimate"));
        let (folder, name) = shown.rsplit_once('/').unwrap();
        let folder = folder.strip_suffix("/RAW").unwrap_or(folder);
        let name = name
            .strip_prefix("bench.")
            .unwrap()
            .strip_suffix(".sender")
            .unwrap();
        let key = name.rsplit_once('.').map_or("", |(key, _)| key);
        let values = found
            .entry((folder.to_owned(), key.to_owned()))
            .or_default();
        values.push([estimate.equilibrium_mbps, estimate.maximum_mbps]);
    }
    let is_value = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        (name.ends_with(".equilibrium") || name.ends_with(".max")) && !name.contains(".data.")
    };
    let mut exceptions = String::new();
    for (shown, text) in named(&archive, is_value) {
        let rates = parse_rates_mbps(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let (folder, name) = shown.rsplit_once('/').unwrap();
        let (stem, which) = match name.strip_suffix(".max") {
            Some(stem) => (stem, 1),
            None => (name, 0),
        };
        let key = stem.strip_suffix(".equilibrium").unwrap_or(stem);
        let made = found.get(&(folder.to_owned(), key.to_owned()));
        let made = made.map(|values| {
            values
                .iter()
                .map(|value| value[which] as f64)
                .collect::<Vec<_>>()
        });
        tally.add("files of values");
        match made {
            Some(made) if made == rates => tally.add("files of values that are those of the logs"),
            Some(made) => exceptions += &format!("{shown}: {rates:?}, logs {made:?}\n"),
            None => tally.add("files of values without logs"),
        }
    }
    assert_eq!(
        tally.lines(),
        "\
230 files of values
122 files of values that are those of the logs
108 files of values without logs
310 logs
"
    );
    assert_eq!(exceptions, "");
}

/// The path of a configuration set, and the path from there; `None` for what is in none.
fn in_set(path: &str) -> Option<(&str, &str)> {
    let mut end = 0;
    for folder in path.split_inclusive('/') {
        end += folder.len();
        if folder == "configs/" || folder.starts_with("configs.") {
            let (set, _) = path[end..].split_once('/')?;
            return Some((&path[..end + set.len()], &path[end + set.len() + 1..]));
        }
    }
    None
}

fn sets(archive: &Path) -> BTreeMap<String, ConfigSet> {
    let mut sets: BTreeMap<String, ConfigSet> = BTreeMap::new();
    for (shown, content) in named(archive, |path| in_set(path).is_some()) {
        let (set, path) = in_set(&shown).expect("it is in a set");
        sets.entry(set.to_owned()).or_default().read(path, &content);
    }
    sets
}

#[test]
fn every_configuration_set_is_read() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let sets = sets(&archive);
    let mut tally = Tally::default();
    let mut secrets = Vec::new();
    for (name, set) in &sets {
        tally.add("sets");
        for (path, file) in set.files() {
            tally.add(format!("files: {:?}", file.kind));
            tally.add_many("settings", file.settings.len());
            assert_eq!(file.unread, [], "{name}/{path}");
            if let Some(secret) = file.secret {
                secrets.push(secret);
            }
        }
    }
    assert_eq!(
        tally.lines(),
        "\
26 files: IpFilter
9 files: Jail
604 files: Loader
62 files: Pf
998 files: Rc
2 files: Routing
606 files: Sysctl
524 sets
28830 settings
"
    );
    // The keys of WireGuard in the kernel, which stand in rc.conf.
    assert_eq!(secrets, [Secret::PrivateKey; 6]);
}

#[test]
fn sets_of_a_topic_differ_by_their_factor() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let sets = sets(&archive);
    let between = |first: &str, second: &str| {
        let value = |side: Option<Effective<'_>>| {
            side.map_or("not set".to_owned(), |side| side.value.to_string())
        };
        let differences = differences(&sets[first], &sets[second]).into_iter();
        let shown = differences.map(|difference| match difference {
            Difference::Setting { key, first, second } => {
                format!("{}: {}, {}\n", key.name, value(first), value(second))
            }
            Difference::File { path, .. } => format!("{path}\n"),
        });
        shown.collect::<String>()
    };
    let ryzen = "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710";
    let simple_tx = "Atom_C2758_8Cores/Intel_82599/iflib.simple_tx/configs.special/simple_tx";
    for (first, second, expected) in [
        (
            format!("{simple_tx}_off_prefetch_on"),
            format!("{simple_tx}_on_prefetch_on"),
            "dev.ix.0.iflib.simple_tx: 0, 1\ndev.ix.1.iflib.simple_tx: 0, 1\n",
        ),
        (
            format!("{ryzen}/harvest_mask/configs/4607_default"),
            format!("{ryzen}/harvest_mask/configs/4479"),
            "harvest_mask: not set, 4479\n",
        ),
        (
            format!("{ryzen}/hyperthreading/configs/ht_off"),
            format!("{ryzen}/hyperthreading/configs/ht_on_intr_on"),
            "machdep.hyperthreading_allowed: 0, 1\nmachdep.hyperthreading_intr_allowed: 0, 1\n",
        ),
    ] {
        assert_eq!(between(&first, &second), expected, "{first} and {second}");
    }
    // A key is told to be another one, and not shown.
    let wireguard = "Atom_C2758_8Cores/Chelsio_T540-CR/wireguard/configs";
    let differences = between(
        &format!("{wireguard}/kernel"),
        &format!("{wireguard}/userland"),
    );
    let of_keys = differences.lines().filter(|line| line.contains("(secret)"));
    assert!(of_keys.eq(["create_args_wg0: (secret), not set"; 2]));
}

#[test]
fn every_configuration_of_traffic_and_of_labs_is_read() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut tally = Tally::default();
    for (shown, text) in named(&archive, |path| path.starts_with("pktgen.configs/")) {
        let config = PktGenConfig::parse(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
        tally.add("configurations of traffic");
        for (what, is_there) in [
            ("packet size", config.packet_size_bytes.is_some()),
            ("address family", config.address_family.is_some()),
            ("flows", config.flows().is_some()),
        ] {
            tally.add_many(format!("with {what}"), usize::from(is_there));
        }
    }
    for (shown, text) in named(&archive, |path| path.ends_with(".config")) {
        let lab = LabConfig::parse(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
        tally.add("labs");
        assert!(
            lab.value("DUT_ADMIN").is_some() && lab.value("SENDER_START_CMD").is_some(),
            "{shown}"
        );
        for variable in &lab.variables {
            tally.add(format!("variables: {:?}", LabVariable::of(&variable.name)));
        }
    }
    assert_eq!(
        tally.lines(),
        "\
25 configurations of traffic
19 labs
43 variables: Address
84 variables: Command
31 variables: Flows
79 variables: Host
43 variables: Interface
61 variables: Mac
103 variables: Other
9 with address family
18 with flows
16 with packet size
"
    );
}
