//! The text of a first lab file.

use std::fmt::Write as _;
use std::path::Path;

use fwdlab_model::{System, quoted};

use super::facts::{HostFacts, Port, Side};
use super::layout::Layout;

/// What factors are bound by on a DUT of each system.
const LINUX: &str = include_str!("../../../../labs/linux-hosts.toml");
const FREEBSD: &str = include_str!("../../../../labs/freebsd-hosts.toml");
/// The devices of the latter.
const DEVICES: &str = "dev.ix.{0,1}";

/// A lab file of two hosts, as far as their cables are known; what is not known is a comment.
#[must_use]
pub fn lab_file(
    dut: &HostFacts,
    tester: &HostFacts,
    layout: &Layout,
    ssh_config: Option<&Path>,
) -> String {
    let kind = match dut.system {
        System::Freebsd => "freebsd-ssh",
        System::Linux => "linux-ssh",
    };
    let mut text = format!(
        "# Written by `fwdlab lab new {} {}`, which looked at both hosts. What else can be written is in docs/labs.md.\n\
         kind = \"{kind}\"\n\
         description = {}\n\
         regime = \"overload\"\n",
        dut.host,
        tester.host,
        quoted(&format!(
            "a {} router between the ports of a {} tester",
            dut.release, tester.release
        )),
    );
    match layout.speed_mbps(dut, tester) {
        Some(mbps) => _ = writeln!(text, "link_gbps = {}", mbps as f64 / 1000.0),
        None => {
            text += "# No port tells how fast its link is; loads in percent of the line rate need that.\n# link_gbps = 10\n";
        }
    }
    if let Some(config) = ssh_config {
        let config = quoted(&config.to_string_lossy());
        _ = write!(text, "\n[ssh]\nconfig = {config}\n");
    }
    text += &table(dut, Side::Dut, layout);
    text += &table(tester, Side::Tester, layout);
    text + &bindings(dut, layout)
}

/// The table of a host.
fn table(host: &HostFacts, side: Side, layout: &Layout) -> String {
    let (table, keys) = match side {
        Side::Dut => ("dut", ["in", "out"]),
        Side::Tester => ("tester", ["out", "in"]),
    };
    let mut text = format!("\n# {}, {} CPUs.\n", host.release, host.cpus);
    let ports = layout.ports(side);
    let known = ports.iter().flatten().filter_map(|name| host.port(name));
    for port in known {
        _ = writeln!(text, "# {}", described(port));
    }
    _ = write!(text, "[{table}]\nhost = {}\n", quoted(&host.host));
    if side == Side::Tester {
        let uses = match host.system {
            System::Freebsd => "pkt-gen",
            System::Linux => "fwdlab",
        };
        _ = writeln!(text, "uses = \"{uses}\"");
    }
    for (key, port) in keys.into_iter().zip(ports) {
        match port {
            Some(port) => _ = writeln!(text, "{key} = {}", quoted(port)),
            None => {
                let is_free = |port: &&Port| {
                    port.refused.is_none() && !ports.contains(&Some(port.name.as_str()))
                };
                let free: Vec<&str> = host
                    .ports
                    .iter()
                    .filter(is_free)
                    .map(|port| &*port.name)
                    .collect();
                let choices = match free.as_slice() {
                    [] => "no port is left".to_owned(),
                    [port] => format!("{port} is left"),
                    ports => format!("one of {}", ports.join(", ")),
                };
                let example = quoted(free.first().unwrap_or(&"PORT"));
                _ = write!(text, "# Not found: {choices}.\n# {key} = {example}\n");
            }
        }
    }
    if side == Side::Tester
        && let Some(near) = ports[0].and_then(|name| host.port(name)?.cpus_near.as_deref())
        && let Some(cpu) = last_cpu(near)
    {
        _ = write!(
            text,
            "# The last of the CPUs near the port that sends.\ncpu = {cpu}\n"
        );
    }
    text
}

/// `eth1: ixgbe, 10 Gbit/s, near CPUs 0-7`.
fn described(port: &Port) -> String {
    let mut parts = Vec::from_iter(port.driver.clone());
    parts.extend(port.speed_mbps.map(speed));
    parts.extend(
        port.cpus_near
            .as_ref()
            .map(|cpus| format!("near CPUs {cpus}")),
    );
    parts.push(port.mac.clone());
    format!("{}: {}", port.name, parts.join(", "))
}

/// `10 Gbit/s`.
#[must_use]
pub fn speed(mbps: u64) -> String {
    if mbps < 1000 {
        format!("{mbps} Mbit/s")
    } else {
        format!("{} Gbit/s", mbps as f64 / 1000.0)
    }
}

/// The last of `0-7,16-23`.
fn last_cpu(list: &str) -> Option<u32> {
    list.rsplit([',', '-']).next()?.trim().parse().ok()
}

/// What factors are bound by, as in the lab files that are ready, but for what needs a file beside them. What the DUT
/// cannot set is a comment, with why.
fn bindings(dut: &HostFacts, layout: &Layout) -> String {
    let source = match dut.system {
        System::Freebsd => FREEBSD,
        System::Linux => LINUX,
    };
    let parts = source.split("\n\n");
    let parts = parts.skip_while(|part| !part.starts_with("[bind"));
    let parts = parts.filter(|part| !part.contains("rulesets/"));
    let mut text = String::new();
    if dut.system == System::Linux {
        let why = unset(dut, ".nft]").map_or(String::new(), |why| format!(" The DUT: {why}."));
        text +=
            "\n# Rulesets of nftables are files beside this one: labs/linux-hosts.toml binds some.";
        text += &why;
        text.push('\n');
    }
    let devices = devices(layout.ports(Side::Dut));
    for part in parts {
        text.push('\n');
        let why = unset(dut, part);
        if let Some(why) = why {
            _ = writeln!(text, "# The DUT cannot set this: {why}.");
        }
        for line in part.lines() {
            let line = match &devices {
                Some(devices) => line.replace(DEVICES, devices),
                None if line.contains(DEVICES) => continue,
                None => line.to_owned(),
            };
            let is_comment = why.is_some() && !line.starts_with('#');
            text += if is_comment { "# " } else { "" };
            text += &line;
            text.push('\n');
        }
    }
    text
}

/// Why a DUT cannot set what a part of a lab file binds; none where it can.
fn unset<'a>(dut: &'a HostFacts, part: &str) -> Option<&'a str> {
    let is_bound_by = |(binding, _): &&(String, String)| {
        let forms = [
            format!("\n{binding} = "),
            format!(".{binding}]"),
            format!("[\"{binding}\","),
        ];
        forms.iter().any(|form| part.contains(form))
    };
    let (_, why) = dut.unset.iter().find(is_bound_by)?;
    Some(why)
}

/// `dev.ix.{0,1}`, of two ports of one driver.
fn devices(ports: [Option<&str>; 2]) -> Option<String> {
    let split = |name: &str| {
        let driver = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let unit = name[driver.len()..].to_owned();
        (!unit.is_empty()).then(|| (driver.to_owned(), unit))
    };
    let [Some((driver, one)), Some((other_driver, other))] = ports.map(|name| split(name?)) else {
        return None;
    };
    (driver == other_driver).then(|| format!("dev.{driver}.{{{one},{other}}}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use fwdlab_model::{HostTesterKind, LabKind, load_lab};

    use super::*;
    use crate::cabling::search::{Cable, Cabling, Proof};

    fn host(name: &str, system: System, ports: &[&str]) -> HostFacts {
        let port = |name: &&str| Port {
            name: (*name).to_owned(),
            mac: "02:00:00:00:00:01".to_owned(),
            driver: Some("ixgbe".to_owned()),
            is_up: true,
            has_link: true,
            speed_mbps: Some(10_000),
            cpus_near: Some("0-3,8-11".to_owned()),
            ..Port::default()
        };
        HostFacts {
            host: name.to_owned(),
            system,
            release: "Linux 6.12.30".to_owned(),
            cpus: 16,
            programs: Vec::new(),
            unset: Vec::new(),
            ports: ports.iter().map(port).collect(),
        }
    }

    fn cabled(cables: &[(&str, &str)]) -> Cabling {
        let cables = cables.iter().map(|(dut, tester)| Cable {
            dut: (*dut).to_owned(),
            tester: (*tester).to_owned(),
            by: Proof::Link,
        });
        Cabling {
            cables: cables.collect(),
            ..Cabling::default()
        }
    }

    /// A lab file as the program reads it, or what is wrong with it.
    fn read(text: &str) -> Result<fwdlab_model::Lab, String> {
        struct Texts;
        impl fwdlab_model::Files for Texts {
            fn text(&self, path: &Path) -> std::io::Result<String> {
                fs::read_to_string(path)
            }
            fn sha256(&self, _: &Path) -> std::io::Result<String> {
                Err(std::io::ErrorKind::NotFound.into())
            }
            fn is_quotable(&self, _: &Path, _: &Path) -> bool {
                true
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab.toml");
        fs::write(&path, text).unwrap();
        let lab = load_lab(&path, &Texts).map(|(lab, _)| lab);
        lab.map_err(|errors| errors.render(false))
    }

    #[test]
    fn two_cables_make_a_lab_file_that_is_read_as_it_is() {
        for system in [System::Linux, System::Freebsd] {
            let dut = host("root@dut", system, &["ix2", "ix10"]);
            let tester = host("root@tester", System::Linux, &["eth1", "eth2"]);
            let cabling = cabled(&[("ix10", "eth1"), ("ix2", "eth2")]);
            let layout = Layout::of(&dut, &tester, &cabling);
            let config = Path::new("/etc/a \"b\"");
            let text = lab_file(&dut, &tester, &layout, Some(config));
            let lab = read(&text).unwrap_or_else(|errors| panic!("{errors}{text}"));
            assert_eq!(lab.kind, LabKind::Ssh(system));
            assert_eq!(lab.link_gbps, Some(10.0));
            let hosts = lab.hosts.unwrap();
            assert_eq!(hosts.ssh_config.as_deref(), Some(config));
            assert_eq!(hosts.dut.interface_in, "ix2");
            assert_eq!(hosts.dut.interface_out, "ix10");
            assert_eq!(hosts.tester.interface_out, "eth2");
            assert_eq!(hosts.tester.interface_in, "eth1");
            assert_eq!(hosts.tester.uses, HostTesterKind::Fwdlab);
            assert_eq!(hosts.tester.cpus, [11]);
            let binding = match system {
                System::Linux => "[bind.\"rp_filter\"]\nsysctl = ",
                System::Freebsd => {
                    "\"iflib.simple_tx\" = { loader = \"dev.ix.{2,10}.iflib.simple_tx\" }"
                }
            };
            assert!(text.contains(binding), "{text}");
        }
    }

    #[test]
    fn what_a_dut_cannot_set_is_a_comment_with_why() {
        let dut = host("root@dut", System::Linux, &["eth1", "eth2"]);
        let mut lacking = dut.clone();
        let tester = host("root@tester", System::Linux, &["eth1", "eth2"]);
        let layout = Layout::of(
            &dut,
            &tester,
            &cabled(&[("eth1", "eth1"), ("eth2", "eth2")]),
        );
        let bound = |dut: &HostFacts| -> Vec<String> {
            let text = lab_file(dut, &tester, &layout, None);
            let lab = read(&text).unwrap_or_else(|errors| panic!("{errors}{text}"));
            lab.bindings.into_keys().collect()
        };
        let all = bound(&dut);
        for (binding, factors) in [
            ("xdp", &["forwarding path"][..]),
            ("routes", &["routes"]),
            (
                "ethtool",
                &[
                    "GRO",
                    "GRO by lists",
                    "UDP GRO forwarding",
                    "transmit checksums",
                ],
            ),
            ("tc", &["queueing discipline"]),
        ] {
            lacking.unset = vec![(
                binding.to_owned(),
                "it is not installed; install it".to_owned(),
            )];
            let mut left = all.clone();
            left.retain(|name| !factors.contains(&&**name));
            assert_eq!(bound(&lacking), left, "{binding}");
            let text = lab_file(&lacking, &tester, &layout, None);
            let why = "# The DUT cannot set this: it is not installed; install it.\n";
            assert_eq!(text.matches(why).count(), factors.len(), "{text}");
        }
    }

    #[test]
    fn what_was_not_found_is_a_comment_with_the_choices() {
        let dut = host("root@dut", System::Freebsd, &["ix0", "ix1", "ix2"]);
        let tester = host("root@tester", System::Freebsd, &["ix0", "ix1"]);
        let layout = Layout::of(&dut, &tester, &cabled(&[("ix1", "ix1")]));
        assert!(!layout.is_whole());
        let text = lab_file(&dut, &tester, &layout, None);
        for expected in [
            "in = \"ix1\"\n# Not found: one of ix0, ix2.\n# out = \"ix0\"\n",
            "uses = \"pkt-gen\"\nout = \"ix1\"\n# Not found: ix0 is left.\n# in = \"ix0\"\n",
        ] {
            assert!(text.contains(expected), "{expected}{text}");
        }
        assert!(!text.contains("dev."), "{text}");
        let errors = read(&text).unwrap_err();
        assert!(errors.contains("out"), "{errors}");
    }

    #[test]
    fn what_has_to_be_known_of_a_search_is_said() {
        let mut dut = host("root@dut", System::Linux, &["eth1", "eth2", "eth3", "eth4"]);
        let mut tester = host(
            "root@tester",
            System::Linux,
            &["eth1", "eth2", "eth3", "eth4"],
        );
        dut.ports[0].refused = Some("a default route leads through eth1".to_owned());
        tester.ports[1].is_up = false;
        tester.ports[2].speed_mbps = Some(1000);
        let all = ["eth1", "eth2", "eth3", "eth4"].map(|port| (port, port));
        let layout = Layout::of(&dut, &tester, &cabled(&all));
        assert_eq!(layout.to_dut.unwrap().dut, "eth2");
        assert_eq!(layout.from_dut.unwrap().dut, "eth3");
        assert_eq!(
            layout.remarks,
            [
                "DUT's eth1 to tester's eth1 is left out: a default route leads through eth1",
                "the direction is free: frames go in by the first of the DUT's ports, in the order of their names",
                "3 cables were found, and a lab takes two; left over: DUT's eth4 to tester's eth4",
                "the links are not equally fast; the slowest is in the file",
                "eth2 was down on root@tester, and is down again; before a run, set it up: ip link set dev eth2 up",
            ]
        );
    }
}
