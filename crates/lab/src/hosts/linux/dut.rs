//! A Linux DUT on its host: made ready, set to a variant, read back, and put back as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{
    AddressFamily, Binding, DutHost, DutInterface, Environment, Level, Resolved, Variant,
};

use super::boot::{Grub, boot};
use super::facts::{BOOT_ID, facts};
use super::{stacks, watch};
use crate::LabError;
use crate::addresses::addresses;
use crate::counters::{Drops, stack_drops};
use crate::dut::{arguments, holds, unbound_level};
use crate::environment::environment_by;
use crate::hosts::boot::{BootChoice, BootId, BootLoader};
use crate::hosts::cpu_watch::CpuWatch;
use crate::hosts::detached::Window;
use crate::hosts::dut::{
    Dut, OwnPrograms, PORTS_TIME_MAX, announce, await_rest, meaning, missing_program, said,
};
use crate::hosts::facts::{Facts, restless};
use crate::hosts::process::bring;
use crate::hosts::ssh::Connection;
use crate::hosts::tester::Station;
use crate::journal::Journal;
use crate::profiler::ProfileSlice;

/// Under which fwdlab's routes stand in a DUT's tables (`ip route show proto 196`), so that they can be told
/// from the owner's.
const ROUTE_PROTOCOL: &str = "196";

/// `IFF_UP` of an interface's flags.
const INTERFACE_UP: u32 = 1;

/// A Linux DUT on its host.
pub(in crate::hosts) struct LinuxDut {
    connection: Rc<Connection>,
    of: DutHost,
    bindings: BTreeMap<String, Binding>,
    /// What each nft ruleset is listed as, by its text.
    listed: BTreeMap<String, String>,
    programs: OwnPrograms,
    /// Where fwdlab's own is, once it is there.
    program: Option<String>,
    /// Facts that change by themselves.
    restless: BTreeSet<String>,
    boot_id: BootId,
    mac_out: String,
    mac_in: String,
}

impl LinuxDut {
    /// Looks whether the host is one that can be measured on without cutting it off.
    ///
    /// # Errors
    /// `Host` where it is not, and those of the connection.
    pub(in crate::hosts) fn open(
        connection: &Rc<Connection>,
        of: &DutHost,
        resolved: &Resolved,
    ) -> Result<Self, LabError> {
        let mut dut = Self {
            connection: Rc::clone(connection),
            of: of.clone(),
            bindings: resolved.lab.bindings.clone(),
            listed: BTreeMap::new(),
            programs: OwnPrograms::default(),
            restless: BTreeSet::new(),
            program: None,
            boot_id: boot(connection)?.id,
            mac_out: String::new(),
            mac_in: String::new(),
        };
        if dut.run(&["id", "-u"])?.trim() != "0" {
            return Err(
                dut.wrong("it has to be entered as root, who alone may change its settings")
            );
        }
        dut.look_at_ports()?;
        Ok(dut)
    }

    /// Which stations its ports are, and that the host can do without them.
    fn look_at_ports(&mut self) -> Result<(), LabError> {
        self.mac_in = self.mac(&self.of.interface_in)?;
        self.mac_out = self.mac(&self.of.interface_out)?;
        for interface in [&self.of.interface_in, &self.of.interface_out] {
            self.refuse_if_needed_elsewhere(interface)?;
        }
        Ok(())
    }

    /// An interface that leads to the controller, or to the world, takes no load.
    fn refuse_if_needed_elsewhere(&self, interface: &str) -> Result<(), LabError> {
        for family in ["-4", "-6"] {
            let routes = self.run(&["ip", "-o", family, "route", "show", "default"])?;
            let leads = routes.lines().any(|route| {
                let mut words = route.split_whitespace();
                words.any(|word| word == "dev") && words.next() == Some(interface)
            });
            if leads {
                return Err(self.wrong(&format!(
                    "a default route leads through {interface}, which a load could cut off; name the \
                     interfaces between the tester's ports in the lab file"
                )));
            }
        }
        // Client, port, server, port.
        let session = self.run(&["sh", "-c", "echo $SSH_CONNECTION"])?;
        let own: Option<IpAddr> = session
            .split_whitespace()
            .nth(2)
            .and_then(|own| own.parse().ok());
        let addresses = self.run(&["ip", "-o", "address", "show", "dev", interface])?;
        let is_own = addresses.split_whitespace().any(|word| {
            let address = word.split('/').next().and_then(|word| word.parse().ok());
            address.is_some() && address == own
        });
        if is_own {
            return Err(self.wrong(&format!(
                "this connection to it comes in at {interface}, and a load would cut it off; reach it through \
                 an admin network of its own"
            )));
        }
        Ok(())
    }

    fn mac(&self, interface: &str) -> Result<String, LabError> {
        let path = format!("/sys/class/net/{interface}/address");
        match self.read(&path) {
            Ok(mac) => Ok(mac),
            Err(LabError::OnHost { .. }) => Err(self.wrong(&format!(
                "it has no interface {interface}; `ip link` lists them"
            ))),
            Err(error) => Err(error),
        }
    }

    fn all_facts(&self) -> Result<Facts, LabError> {
        let interfaces = [&self.of.interface_in, &self.of.interface_out];
        let mut facts = facts(&self.connection, interfaces.map(String::as_str))?;
        match facts.remove(BOOT_ID) {
            Some(id) if BootId::Named(id.clone()) != self.boot_id => Err(LabError::Rebooted {
                host: self.connection.host().to_owned(),
            }),
            _ => Ok(facts),
        }
    }

    fn fixed_feature(
        &self,
        feature: &str,
        interfaces: &[DutInterface],
        level: &Level,
    ) -> Result<Option<String>, LabError> {
        for &interface in interfaces {
            let name = self.of.interface(interface);
            let Some(seen) = self.feature(name, feature)? else {
                return Ok(Some(format!(
                    "{name} has no feature {feature}, or ethtool is missing"
                )));
            };
            if seen.contains("[fixed]") && !seen.starts_with(on_or_off(level)) {
                return Ok(Some(format!("{feature} of {name} is fixed: {seen}")));
            }
        }
        Ok(None)
    }

    /// A port that its owner has left down.
    fn bring_up(&self, journal: &mut Journal, interface: &str) -> Result<(), LabError> {
        let flags = self.read(&format!("/sys/class/net/{interface}/flags"))?;
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16);
        if flags.is_ok_and(|flags| flags & INTERFACE_UP != 0) {
            return Ok(());
        }
        let undo = ["ip", "link", "set", "dev", interface, "down"];
        self.announce(journal, format!("{interface} (down)"), &undo, "")?;
        self.run(&["ip", "link", "set", "dev", interface, "up"])
            .map(|_| ())
    }

    /// Waits until both ports have a link.
    fn await_link(&self) -> Result<(), LabError> {
        let start = Instant::now();
        for interface in [&self.of.interface_in, &self.of.interface_out] {
            let path = format!("/sys/class/net/{interface}/carrier");
            while self.read(&path)? != "1" {
                if start.elapsed() > PORTS_TIME_MAX {
                    return Err(self.wrong(&format!(
                        "{interface} has no link; see to its cable and to the tester's port"
                    )));
                }
                sleep(Duration::from_millis(200));
            }
        }
        Ok(())
    }

    fn set_up_family(
        &self,
        journal: &mut Journal,
        family: AddressFamily,
        generator: &Station,
        sink: &Station,
    ) -> Result<(), LabError> {
        let own = addresses(family);
        let option = match family {
            AddressFamily::Inet => "-4",
            AddressFamily::Inet6 => "-6",
        };
        let sides = [
            (
                &self.of.interface_in,
                own.dut_in,
                own.generator,
                &generator.mac,
                own.sources,
            ),
            (
                &self.of.interface_out,
                own.dut_out,
                own.sink,
                &sink.mac,
                own.destinations,
            ),
        ];
        for (interface, (address, length), neighbour, mac, (network, network_length)) in sides {
            let (host, address) = (address.to_string(), format!("{address}/{length}"));
            let network = format!("{network}/{network_length}");
            let neighbour = neighbour.to_string();
            let there = self.run(&["ip", "-o", option, "address", "show", "dev", interface])?;
            if !there.split_whitespace().any(|word| word == address) {
                // With a length, every address of that network would go, the owner's too.
                let undo = [
                    "ip", option, "address", "flush", "dev", interface, "to", &host,
                ];
                self.announce(
                    journal,
                    format!("address {address} of {interface}"),
                    &undo,
                    "",
                )?;
                // An address that is still being probed for duplicates takes no frames.
                let mut add = vec![
                    "ip", option, "address", "replace", &address, "dev", interface,
                ];
                if family == AddressFamily::Inet6 {
                    add.push("nodad");
                }
                self.run(&add)?;
            }
            let undo = [
                "ip",
                option,
                "neigh",
                "flush",
                "to",
                &neighbour,
                "dev",
                interface,
                "nud",
                "permanent",
            ];
            self.announce(
                journal,
                format!("neighbour {neighbour} of {interface}"),
                &undo,
                "",
            )?;
            self.run(&[
                "ip",
                option,
                "neigh",
                "replace",
                &neighbour,
                "lladdr",
                mac,
                "dev",
                interface,
                "nud",
                "permanent",
            ])?;
            let flush = [
                "ip",
                option,
                "route",
                "flush",
                &network,
                "proto",
                ROUTE_PROTOCOL,
            ];
            self.announce(journal, format!("route to {network}"), &flush, "")?;
            // In one command, which may be run twice: a route of the owner's own is no reason to have none of ours.
            self.run(&[
                "sh",
                "-c",
                "ip $0 route flush $1 proto $4 && exec ip $0 route add $1 via $2 dev $3 proto $4",
                option,
                &network,
                &neighbour,
                interface,
                ROUTE_PROTOCOL,
            ])?;
        }
        Ok(())
    }

    /// The variant's whole ruleset, where any factor sets one.
    fn ruleset(&self, variant: &Variant) -> Result<Option<String>, LabError> {
        let mut all: Option<String> = None;
        for (factor, level) in &variant.levels {
            if let Binding::Nft(texts) = self.binding(factor, level)? {
                let all = all.get_or_insert_default();
                all.push_str(meaning(texts, factor, level)?);
                // The last line of a file need not end as one; the next ruleset starts its own.
                all.push('\n');
            }
        }
        Ok(all)
    }

    fn keep_file(&self, journal: &mut Journal, path: &str) -> Result<(), LabError> {
        let value = self.read(path)?;
        self.announce(journal, format!("{path} ({value})"), &["tee", path], &value)
    }

    fn keep_feature(
        &self,
        journal: &mut Journal,
        feature: &str,
        interface: DutInterface,
    ) -> Result<(), LabError> {
        let name = self.of.interface(interface);
        let Some(seen) = self.feature(name, feature)? else {
            return Ok(());
        };
        let value = seen.split(' ').next().unwrap_or_default();
        let undo = ["ethtool", "-K", name, feature, value];
        self.announce(journal, format!("{feature} of {name} ({value})"), &undo, "")
    }

    fn keep_ruleset(&self, journal: &mut Journal) -> Result<(), LabError> {
        let ruleset = self.run(&["nft", "list", "ruleset"])?;
        let script = format!("flush ruleset\n{ruleset}");
        self.announce(
            journal,
            "the nft ruleset".to_owned(),
            &["nft", "-f", "-"],
            &script,
        )
    }

    fn announce(
        &self,
        journal: &mut Journal,
        what: String,
        undo: &[impl AsRef<str>],
        input: &str,
    ) -> Result<(), LabError> {
        announce(&self.connection, journal, what, undo, input).map(|_| ())
    }

    fn set_feature(&self, interface: &str, feature: &str, word: &str) -> Result<(), LabError> {
        let seen = self.feature(interface, feature)?;
        if seen.is_some_and(|seen| seen.split(' ').next() == Some(word)) {
            return Ok(());
        }
        self.run(&["ethtool", "-K", interface, feature, word])
            .map(|_| ())
    }

    /// `on` or `off`, with `[fixed]` behind it where it cannot be changed; none where there is no such feature.
    fn feature(&self, interface: &str, feature: &str) -> Result<Option<String>, LabError> {
        let listed = match self.run(&["ethtool", "-k", interface]) {
            Err(LabError::OnHost { .. }) => return Ok(None),
            listed => listed?,
        };
        Ok(listed.lines().find_map(|line| {
            let (name, value) = line.trim().split_once(": ")?;
            (name == feature).then(|| value.to_owned())
        }))
    }

    fn binding(&self, factor: &str, level: &Level) -> Result<&Binding, LabError> {
        self.bindings
            .get(factor)
            .ok_or_else(|| unbound_level(factor, level))
    }

    fn sysfs_path(&self, interface: DutInterface, file: &str) -> String {
        format!("/sys/class/net/{}/{file}", self.of.interface(interface))
    }

    /// The file of a sysctl: dots become slashes, placeholders the interfaces, whose own dots stay.
    fn sysctl_path(&self, key: &str) -> String {
        let parts = key.split('.').map(|part| match part {
            "{dut-in}" => self.of.interface_in.as_str(),
            "{dut-out}" => self.of.interface_out.as_str(),
            part => part,
        });
        format!("/proc/sys/{}", parts.collect::<Vec<_>>().join("/"))
    }

    fn read(&self, path: &str) -> Result<String, LabError> {
        Ok(self.run(&["cat", path])?.trim().to_owned())
    }

    fn write(&self, path: &str, value: &str) -> Result<(), LabError> {
        self.connection.run(&["tee", path], value).map(|_| ())
    }

    fn is_refused(&self, words: &[&str]) -> Result<bool, LabError> {
        match self.run(words) {
            Ok(_) => Ok(false),
            Err(LabError::OnHost { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn run(&self, words: &[impl AsRef<str>]) -> Result<String, LabError> {
        self.connection.run(words, "")
    }

    fn wrong(&self, why: &str) -> LabError {
        LabError::Host {
            host: self.connection.host().to_owned(),
            why: why.to_owned(),
        }
    }
}

impl Dut for LinuxDut {
    fn mac_in(&self) -> &str {
        &self.mac_in
    }

    fn mac_out(&self) -> &str {
        &self.mac_out
    }

    fn boot_id(&self) -> &BootId {
        &self.boot_id
    }

    fn boot_loader(&self) -> Box<dyn BootLoader> {
        Box::new(Grub)
    }

    fn restless(&self) -> &BTreeSet<String> {
        &self.restless
    }

    fn note_restless(&mut self, names: BTreeSet<String>) {
        self.restless.extend(names);
    }

    fn environment(&self) -> Result<Environment, LabError> {
        let read = |path: &str| -> Option<String> {
            let text = self.read(path).ok()?;
            Some(text).filter(|text| !text.is_empty())
        };
        let cpus = self.run(&["nproc", "--all"])?;
        let nft = self.run(&["nft", "--version"]).ok();
        let nft = nft.map(|version| version.trim().to_owned());
        Ok(environment_by(read, cpus.trim().parse().unwrap_or(1), nft))
    }

    fn has_booted(&mut self) -> Result<(), LabError> {
        // What its services set when they start is in place before it is looked at. Not every host has systemd.
        let settled = self.run(&["systemctl", "is-system-running", "--wait"]);
        if let Err(error) = settled
            && error.is_of_a_connection()
        {
            return Err(error);
        }
        self.boot_id = boot(&self.connection)?.id;
        self.programs.forget();
        self.listed.clear();
        // Homes may be in memory.
        self.program = None;
        let start = Instant::now();
        for interface in [&self.of.interface_in, &self.of.interface_out] {
            // Drivers are loaded while sshd answers already.
            let path = format!("/sys/class/net/{interface}/address");
            while self.is_refused(&["test", "-e", &path])? {
                if start.elapsed() > PORTS_TIME_MAX {
                    return Err(self.wrong(&format!(
                        "it has booted, and {interface} has not come in {} s",
                        PORTS_TIME_MAX.as_secs()
                    )));
                }
                sleep(Duration::from_secs(1));
            }
        }
        self.look_at_ports()?;
        await_rest(self.connection.host(), || {
            let addresses = self.run(&["ip", "-o", "address", "show"])?;
            Ok((self.facts()?, addresses.contains(" tentative")))
        })
    }

    fn boot_choice(&self, variant: &Variant) -> Result<BootChoice, LabError> {
        let mut choice = BootChoice::default();
        for (factor, level) in &variant.levels {
            match self.binding(factor, level)? {
                Binding::CommandLine(parameters) => {
                    let words = meaning(parameters, factor, level)?.split_whitespace();
                    choice.parameters.extend(words.map(str::to_owned));
                }
                Binding::Module {
                    module,
                    parameter,
                    values,
                } => {
                    let value = values.value(level);
                    choice
                        .parameters
                        .push(format!("{module}.{parameter}={value}"));
                }
                Binding::Kernel(kernels) => {
                    choice.kernel = Some(meaning(kernels, factor, level)?.to_owned());
                }
                _ => {}
            }
        }
        Ok(choice)
    }

    fn facts(&self) -> Result<Facts, LabError> {
        let mut facts = self.all_facts()?;
        facts.retain(|name, _| !self.restless.contains(name));
        Ok(facts)
    }

    fn look_for_restless_facts(&mut self) -> Result<&BTreeSet<String>, LabError> {
        self.restless = restless(|| self.all_facts())?;
        Ok(&self.restless)
    }

    fn unavailable(&self, variant: &Variant) -> Result<Option<String>, LabError> {
        for (factor, level) in &variant.levels {
            let reason = match self.binding(factor, level)? {
                Binding::Sysctl { key, .. } => {
                    let missing = self.is_refused(&["cat", &self.sysctl_path(key)])?;
                    missing.then(|| format!("its kernel has no readable sysctl {key}"))
                }
                Binding::Sysfs {
                    file, interfaces, ..
                } => {
                    let path = self.sysfs_path(interfaces[0], file);
                    let missing = self.is_refused(&["cat", &path])?;
                    missing.then(|| format!("it has no readable {path}"))
                }
                Binding::Ethtool {
                    feature,
                    interfaces,
                } => self.fixed_feature(feature, interfaces, level)?,
                Binding::Nft(rulesets) => {
                    let text = meaning(rulesets, factor, level)?;
                    let missing =
                        !text.trim().is_empty() && self.is_refused(&["nft", "--version"])?;
                    missing.then(|| "nft is not installed there".to_owned())
                }
                Binding::Command(programs) => missing_program(&self.connection, programs)?,
                Binding::Module {
                    module, parameter, ..
                } => {
                    let path = format!("/sys/module/{module}/parameters/{parameter}");
                    let missing = self.is_refused(&["cat", &path])?;
                    missing.then(|| format!("it has no readable {path}"))
                }
                // Whether GRUB has such an entry shows when it is to boot.
                Binding::CommandLine(_) | Binding::Kernel(_) => None,
                _ => Some("it is set in no way that a Linux host has".to_owned()),
            };
            if let Some(reason) = reason {
                return Ok(Some(format!("host {}: {reason}", self.connection.host())));
            }
        }
        Ok(None)
    }

    fn set_up(
        &mut self,
        journal: &mut Journal,
        families: &[AddressFamily],
        [generator, sink]: [&Station; 2],
    ) -> Result<(), LabError> {
        self.programs.forget();
        for interface in [&self.of.interface_in, &self.of.interface_out] {
            self.bring_up(journal, interface)?;
        }
        let of_interface = "net.ipv4.conf.{dut-in}.rp_filter";
        for &family in families {
            let settings: &[(&str, &str)] = match family {
                AddressFamily::Inet => &[
                    ("net.ipv4.ip_forward", "1"),
                    ("net.ipv4.conf.all.rp_filter", "0"),
                    (of_interface, "0"),
                ],
                AddressFamily::Inet6 => &[("net.ipv6.conf.all.forwarding", "1")],
            };
            for (key, value) in settings {
                let path = self.sysctl_path(key);
                // Writing what is there already would set others back, too: those of every interface.
                if self.read(&path)? != *value {
                    self.keep_file(journal, &path)?;
                    self.write(&path, value)?;
                }
            }
            self.set_up_family(journal, family, generator, sink)?;
        }
        self.await_link()?;
        let bindings = self.bindings.clone();
        for binding in bindings.values() {
            match binding {
                Binding::Sysctl { key, .. } => {
                    self.keep_file(journal, &self.sysctl_path(key))?;
                }
                Binding::Sysfs {
                    file, interfaces, ..
                } => {
                    for &interface in interfaces {
                        self.keep_file(journal, &self.sysfs_path(interface, file))?;
                    }
                }
                Binding::Ethtool {
                    feature,
                    interfaces,
                } => {
                    for &interface in interfaces {
                        self.keep_feature(journal, feature, interface)?;
                    }
                }
                _ => {}
            }
        }
        if bindings
            .values()
            .any(|binding| matches!(binding, Binding::Nft(_)))
        {
            self.keep_ruleset(journal)?;
        }
        Ok(())
    }

    fn apply(&mut self, journal: &mut Journal, variant: &Variant) -> Result<(), LabError> {
        let mut commands = Vec::new();
        for (factor, level) in &variant.levels {
            match self.binding(factor, level)? {
                Binding::Sysctl { key, values } => {
                    self.write(&self.sysctl_path(key), &values.value(level))?;
                }
                Binding::Sysfs {
                    file,
                    interfaces,
                    values,
                } => {
                    for &interface in interfaces {
                        self.write(&self.sysfs_path(interface, file), &values.value(level))?;
                    }
                }
                Binding::Ethtool {
                    feature,
                    interfaces,
                } => {
                    for &interface in interfaces {
                        self.set_feature(self.of.interface(interface), feature, on_or_off(level))?;
                    }
                }
                // One ruleset for all factors together, and one boot.
                Binding::Nft(_)
                | Binding::Module { .. }
                | Binding::CommandLine(_)
                | Binding::Kernel(_) => {}
                Binding::Command(programs) => commands.push((factor, level, programs.clone())),
                _ => return Err(unbound_level(factor, level)),
            }
        }
        if let Some(text) = self.ruleset(variant)? {
            let script = format!("flush ruleset\n{text}");
            self.connection.run(&["nft", "-f", "-"], &script)?;
        }
        // The owner's programs come last, so that they find the rest in place.
        for (factor, level, programs) in commands {
            self.programs
                .apply(&self.connection, journal, factor, level, &programs)?;
        }
        Ok(())
    }

    fn moved(&mut self, variant: &Variant) -> Result<Option<String>, LabError> {
        for (factor, level) in &variant.levels {
            let mut seen_and_asked = Vec::new();
            match self.binding(factor, level)? {
                Binding::Sysctl { key, values } => {
                    let path = self.sysctl_path(key);
                    seen_and_asked.push((path.clone(), self.read(&path)?, values.value(level)));
                }
                Binding::Sysfs {
                    file,
                    interfaces,
                    values,
                } => {
                    for &interface in interfaces {
                        let path = self.sysfs_path(interface, file);
                        seen_and_asked.push((path.clone(), self.read(&path)?, values.value(level)));
                    }
                }
                Binding::Ethtool {
                    feature,
                    interfaces,
                } => {
                    for &interface in interfaces {
                        let name = self.of.interface(interface);
                        let seen = self.feature(name, feature)?.unwrap_or_default();
                        let word = seen.split(' ').next().unwrap_or_default().to_owned();
                        seen_and_asked.push((
                            format!("{feature} of {name}"),
                            word,
                            on_or_off(level).to_owned(),
                        ));
                    }
                }
                Binding::Module {
                    module,
                    parameter,
                    values,
                } => {
                    let path = format!("/sys/module/{module}/parameters/{parameter}");
                    let asked = as_shown(&values.value(level));
                    seen_and_asked.push((path.clone(), as_shown(&self.read(&path)?), asked));
                }
                // One ruleset for all factors together; what has booted was looked at when it had.
                Binding::Nft(_) | Binding::CommandLine(_) | Binding::Kernel(_) => {}
                Binding::Command(programs) => {
                    if let Some(check) = &programs.check {
                        let seen = self.run(&arguments(check, level))?;
                        if !holds(&seen, &level.to_string()) {
                            let asked = level.to_string();
                            return Ok(Some(said(&format!("factor {factor:?}"), &asked, &seen)));
                        }
                    }
                }
                _ => return Err(unbound_level(factor, level)),
            }
            for (setting, seen, asked) in seen_and_asked {
                if !seen.split_whitespace().eq(asked.split_whitespace()) {
                    return Ok(Some(said(&setting, &asked, &seen)));
                }
            }
        }
        let Some(text) = self.ruleset(variant)? else {
            return Ok(None);
        };
        let seen = self.run(&["nft", "--stateless", "list", "ruleset"])?;
        // nft lists a ruleset in its own words, so what it lists first is what it must list ever after.
        let first = self
            .listed
            .entry(text.clone())
            .or_insert_with(|| seen.clone());
        let is_whole = *first == seen && seen.trim().is_empty() == text.trim().is_empty();
        Ok((!is_whole).then(|| said("the nft ruleset", first, &seen)))
    }

    fn drops(&self, family: AddressFamily) -> Result<Drops, LabError> {
        let interfaces = [
            (&self.of.interface_in, ["rx_dropped", "rx_missed_errors"]),
            (&self.of.interface_out, ["tx_dropped", "tx_fifo_errors"]),
        ];
        let counters = interfaces.iter().flat_map(|(interface, counters)| {
            counters.iter().map(move |counter| (interface, counter))
        });
        let mut files = ["snmp", "netstat", "snmp6"]
            .map(|name| format!("/proc/net/{name}"))
            .to_vec();
        let mut reasons = Vec::new();
        for (interface, counter) in counters {
            files.push(format!("/sys/class/net/{interface}/statistics/{counter}"));
            reasons.push(format!("{interface} {counter}"));
        }
        let commands: Vec<Vec<String>> = files
            .into_iter()
            .map(|file| vec!["cat".to_owned(), file])
            .collect();
        // A kernel without IPv6 has no snmp6.
        let mut texts = self
            .connection
            .run_all(&commands)?
            .into_iter()
            .map(Option::unwrap_or_default);
        let stack: String = texts.by_ref().take(3).collect();
        let mut drops = stack_drops(family, &stack);
        for (reason, text) in reasons.into_iter().zip(texts) {
            drops.insert(reason, text.trim().parse().unwrap_or(0));
        }
        Ok(drops)
    }

    fn received_and_dropped(&self) -> String {
        format!("{} rx_dropped", self.of.interface_in)
    }

    fn cpu_watch(&self, window: Window, load_frames_min: u32) -> Vec<String> {
        let interfaces = [&self.of.interface_in, &self.of.interface_out];
        watch::words(interfaces.map(String::as_str), window, load_frames_min)
    }

    fn watched_cpus(&self, text: &str) -> Option<CpuWatch> {
        watch::watched(text)
    }

    fn stack_watch(
        &mut self,
        window: Window,
        frequency_hz: u32,
        load_frames_min: u32,
    ) -> Result<Vec<String>, LabError> {
        let program = match &self.program {
            Some(program) => program,
            None => self
                .program
                .insert(bring(&self.connection, self.of.program.as_deref())?),
        };
        let interface = &self.of.interface_in;
        Ok(stacks::words(
            program,
            interface,
            window,
            frequency_hz,
            load_frames_min,
        ))
    }

    fn sampled_stacks(&self, text: &str, _: u32, _: Window) -> Result<ProfileSlice, String> {
        stacks::sampled(text)
    }
}

fn on_or_off(level: &Level) -> &'static str {
    match level {
        Level::Boolean(true) => "on",
        _ => "off",
    }
}

/// A module's parameter as the kernel shows it: truth values have several spellings.
fn as_shown(value: &str) -> String {
    match value.trim() {
        "1" | "y" | "Y" | "on" | "true" => "Y".to_owned(),
        "0" | "n" | "N" | "off" | "false" => "N".to_owned(),
        other => other.to_owned(),
    }
}
