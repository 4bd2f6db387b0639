//! What is so on a FreeBSD DUT.

use std::collections::BTreeMap;

use super::text::{
    boot_time_s, interface, kernel_environment, modules, static_neighbours, static_routes, sysctls,
    without_random_names,
};
use crate::LabError;
use crate::hosts::boot::BootId;
use crate::hosts::facts::Facts;
use crate::hosts::ssh::Connection;
use crate::mechanism::step::words_of;

/// What changes by itself: clocks, counters, random numbers; what begins so.
const RESTLESS: &[&str] = &[
    "kern.boottime",
    "kern.cp_time",
    "kern.geom.",
    "kern.ipc.pipekva",
    "kern.lastpid",
    "kern.msgbuf",
    "kern.openfiles",
    "kern.proc.",
    "kern.random.random_sources",
    "kern.timecounter.tc.",
    "net.inet.tcp.hostcache.list",
    "net.inet.tcp.pcbcount",
    "net.inet.udp.pcblist",
    "vfs.",
    "vm.",
];
/// The same, wherever it stands in a name: the drivers' own counters.
const RESTLESS_WITHIN: &[&str] = &[
    ".mac_stats.",
    ".stats.",
    ".temperature",
    ".queue_",
    ".queue0",
    ".txq0",
    ".rxq0",
    ".cx_usage",
    ".freq",
    ".irqs",
    ".interrupts",
];

/// Below what a system is asked that cannot tell settings from status.
const SUBTREES: [&str; 4] = ["net", "hw", "kern.random", "machdep"];

/// Reads all facts of a DUT with these two interfaces, and in which boot it is.
///
/// # Errors
/// Those of the connection; what a host has no program for is no fact of it.
pub(super) fn facts(
    dut: &Connection,
    interfaces: [&str; 2],
) -> Result<(Option<BootId>, Facts), LabError> {
    let commands = [
        "sysctl -n kern.boottime",
        "uname -v",
        "sysctl -n kern.conftxt",
        "sysctl -aeW",
        "sysctl -aeT",
        "kenv",
        "kldstat",
        "netstat -rn -f inet",
        "netstat -rn -f inet6",
        "arp -an",
        "ndp -an",
        "pfctl -s info",
        "pfctl -s nat",
        "pfctl -s rules",
        "ipfw -S list",
        "ipfstat -io",
    ];
    let mut commands: Vec<Vec<String>> = commands.into_iter().map(words_of).collect();
    let ports = commands.len();
    commands.extend(interfaces.map(|interface| words_of(&format!("ifconfig {interface}"))));
    let mut answers = dut.run_all(&commands)?;
    let mut facts = Facts::new();
    for (name, text) in interfaces.into_iter().zip(answers.split_off(ports)) {
        let settings = interface(&text.unwrap_or_default()).settings;
        let named = settings.into_iter();
        facts.extend(named.map(|(setting, value)| (format!("{setting} {name}"), value)));
    }
    let mut answers = answers.into_iter();
    let mut next = || answers.next().flatten();
    let boot = next().as_deref().and_then(boot_time_s);
    if let Some(kernel) = next() {
        facts.insert("kernel".to_owned(), kernel.trim().to_owned());
    }
    if let Some(configuration) = next() {
        let hash = fwdlab_model::sha256(configuration.trim().as_bytes());
        facts.insert("kernel configuration".to_owned(), hash);
    }
    let (writable, tunable) = (next(), next());
    let settings = match writable {
        Some(text) => text + "\n" + &tunable.unwrap_or_default(),
        None => of_older_systems(dut, interfaces)?,
    };
    add_sysctls(&mut facts, &settings);
    if let Some(text) = next() {
        let named = kernel_environment(&text).into_iter();
        facts.extend(named.map(|(name, value)| (format!("kenv {name}"), value)));
    }
    if let Some(text) = next() {
        facts.insert("modules".to_owned(), modules(&text).join(" "));
    }
    for family in ["inet", "inet6"] {
        let text = next().unwrap_or_default();
        let routes = static_routes(&text).into_iter();
        let lines: Vec<String> = routes.map(|route| route.to_string()).collect();
        facts.insert(format!("routes {family}"), lines.join("\n"));
    }
    for family in ["inet", "inet6"] {
        let text = next().unwrap_or_default();
        let neighbours = static_neighbours(&text).into_iter();
        let lines: Vec<String> = neighbours.map(|it| it.to_string()).collect();
        facts.insert(format!("neighbours {family}"), lines.join("\n"));
    }
    if let Some(text) = next() {
        let status = text.lines().next().unwrap_or_default();
        let is_enabled = status.starts_with("Status: Enabled");
        facts.insert("pf is enabled".to_owned(), is_enabled.to_string());
    }
    for name in ["pf nat", "pf rules", "ipfw rules", "ipf rules"] {
        if let Some(text) = next() {
            facts.insert(name.to_owned(), without_random_names(text.trim()));
        }
    }
    Ok((boot.map(BootId::BeganAt), facts))
}

/// Settings and status of a system whose sysctl(8) knows no `-W`.
fn of_older_systems(dut: &Connection, interfaces: [&str; 2]) -> Result<String, LabError> {
    let drivers = interfaces.map(|interface| format!("dev.{}", driver(interface)));
    let subtrees = SUBTREES.map(str::to_owned).into_iter().chain(drivers);
    let commands = subtrees.map(|subtree| vec!["sysctl".to_owned(), "-e".to_owned(), subtree]);
    let answers = dut.run_all(&commands.collect::<Vec<_>>())?;
    let texts: Vec<String> = answers.into_iter().flatten().collect();
    Ok(texts.join("\n"))
}

/// The driver of an interface: its name without the number.
fn driver(interface: &str) -> &str {
    interface.trim_end_matches(|character: char| character.is_ascii_digit())
}

fn add_sysctls(facts: &mut Facts, text: &str) {
    let all: BTreeMap<String, String> = sysctls(text);
    let settled = all.into_iter().filter(|(name, _)| {
        !RESTLESS.iter().any(|begin| name.starts_with(begin))
            && !RESTLESS_WITHIN.iter().any(|within| name.contains(within))
    });
    facts.extend(settled.map(|(name, value)| (format!("sysctl {name}"), value)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctls_are_facts_but_for_what_never_rests() {
        let mut facts = Facts::new();
        let text = "net.inet.ip.forwarding=1\nvm.stats.vm.v_swtch=1234\ndev.ix.0.fc=0\n\
                    dev.ix.0.mac_stats.rx_errs=5\ndev.cpu.0.freq=2400\n";
        add_sysctls(&mut facts, text);
        let names: Vec<&String> = facts.keys().collect();
        assert_eq!(
            names,
            ["sysctl dev.ix.0.fc", "sysctl net.inet.ip.forwarding"]
        );
    }

    #[test]
    fn a_driver_is_an_interface_without_its_number() {
        assert_eq!(driver("ix0"), "ix");
        assert_eq!(driver("cxl11"), "cxl");
    }
}
