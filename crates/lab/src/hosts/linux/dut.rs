//! A Linux DUT on its host: made ready, set to a variant, read back, and put back as it was.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, DutHost, Environment, Resolved};
use fwdlab_packet::MacAddress;

use super::attachments::{Attachments, await_no_program};
use super::boot::{Grub, boot};
use super::facts::{BOOT_ID, facts};
use super::look::NAMES;
use super::ports::{ADDRESSES, addresses_of, has_tentative_address, is_up};
use super::reached::network;
use super::set_up::SetUp;
use super::{losses, stacks, watch};
use crate::LabError;
use crate::counters::{Drops, stack_drops};
use crate::environment::{ENVIRONMENT_FILES, environment_by};
use crate::hosts::boot::{BootId, BootLoader};
use crate::hosts::cpu_watch::CpuWatch;
use crate::hosts::detached::Window;
use crate::hosts::dut::{Dut, DutSystem, NOT_ROOT, OnHost, PORTS_TIME_MAX, PortLink, no_interface};
use crate::hosts::facts::Facts;
use crate::hosts::process::bring;
use crate::hosts::protocol::Station;
use crate::hosts::reached::refuse_needed;
use crate::hosts::ssh::Connection;
use crate::hosts::transport::Abilities;
use crate::mechanism::file::cat;
use crate::mechanism::question::Answers;
use crate::mechanism::settings::Settings;
use crate::mechanism::step::{Step, owned};
use crate::mechanism::tools::{self, Tool, tools_needed};
use crate::mechanism::{self, DutPlace};
use crate::profiler::ProfileSlice;

/// How long IPv6 addresses are waited for to be proved; a port that never proves them changes no more for that.
const ADDRESSES_TIME_MAX: Duration = Duration::from_secs(10);

/// Prints something where irqbalance runs.
pub(in crate::hosts) const BALANCER: [&str; 3] =
    ["sh", "-c", "grep -hsx irqbalance /proc/[0-9]*/comm || :"];

/// Counts the CPUs that may be there, as `nproc --all` does, which not every host has.
const PROCESSORS: [&str; 3] = [
    "sh",
    "-c",
    "ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l",
];

/// Prints the flags of the port `$0`, and how often its carrier has come and gone.
const LINK: &str =
    "cd \"/sys/class/net/$0\" && cat flags && { cat carrier_changes 2>/dev/null || :; }";

/// A Linux DUT on its host.
struct LinuxDut {
    /// The programs that it lacks.
    missing: BTreeSet<Tool>,
    attachments: Attachments,
    /// Where fwdlab's own is, once it is there.
    program: Option<String>,
}

/// Looks whether the host is one that can be measured on without cutting it off.
///
/// # Errors
/// `Host` where it is not, and those of the connection.
pub(in crate::hosts) fn open_dut(
    connection: &Rc<Connection>,
    of: &DutHost,
    resolved: &Resolved,
) -> Result<Dut, LabError> {
    let mechanisms = mechanism::on_linux(resolved, &DutPlace::on_host(of))?;
    let settings = Settings::new(resolved, mechanisms);
    let host = OnHost::new(connection, of, resolved, boot(connection)?.id);
    let missing = missing_tools(connection)?;
    let mut needs = tools_needed(resolved);
    needs.retain(|need| missing.contains(&need.tool));
    // A variant whose factor needs one is not measured.
    if needs.iter().any(|need| need.factor.is_none()) {
        let missing = tools::missing(&needs).unwrap_or_default();
        return Err(connection.wrong(missing));
    }
    let system = LinuxDut {
        missing,
        attachments: Attachments::default(),
        program: None,
    };
    let dut = Dut::new(host, Box::new(system), settings)?;
    let names = mechanism::xdp::names(&resolved.lab, &DutPlace::on_host(of))?;
    if !names.is_empty() {
        await_no_program(connection, of, &names)?;
    }
    Ok(dut)
}

/// The programs that a host lacks.
///
/// # Errors
/// `Host` where neither `ip` nor anything else sets a neighbour there, and those of the connection.
fn missing_tools(connection: &Connection) -> Result<BTreeSet<Tool>, LabError> {
    let ip = owned(&["sh", "-c", "ip 2>&1 || :"]);
    let arp = owned(&["sh", "-c", "command -v arp"]);
    let mut questions = Tool::ALL.map(Tool::probe).to_vec();
    questions.extend([ip.clone(), arp.clone()]);
    let answers = connection.ask(questions)?;
    let is_missing = |tool: &Tool| answers.get(&tool.probe()).is_none();
    let missing: BTreeSet<Tool> = Tool::ALL.into_iter().filter(is_missing).collect();
    let remedy = Tool::Iproute2.remedy();
    if !missing.contains(&Tool::Iproute2) {
        return Ok(missing);
    }
    if !answers.needed(&ip)?.contains("BusyBox") {
        return Err(connection.wrong(format!(
            "its `ip` is neither iproute2's nor BusyBox's; {remedy}"
        )));
    }
    if answers.get(&arp).is_none() {
        return Err(connection.wrong(format!(
            "its `ip` is BusyBox's, which sets no neighbour, and it has no `arp`; {remedy}"
        )));
    }
    Ok(missing)
}

/// What lists the counters of the ports' drivers, where any of them count.
fn of_drivers(host: &OnHost) -> Vec<Vec<String>> {
    if host.of.drop_counters.is_empty() {
        return Vec::new();
    }
    let list = |interface| owned(&["ethtool", "-S", interface]);
    host.ports().map(list).to_vec()
}

impl DutSystem for LinuxDut {
    fn abilities(&mut self) -> &mut dyn Abilities {
        &mut self.attachments
    }

    fn boot_and_facts(&self, host: &OnHost) -> Result<(Option<BootId>, Facts), LabError> {
        let mut facts = facts(&host.connection, host.ports(), &self.missing)?;
        let boot = facts.remove(BOOT_ID).map(BootId::Named);
        Ok((boot, facts))
    }

    fn boot_loader(&self) -> Box<dyn BootLoader> {
        Box::new(Grub)
    }

    fn environment(&self, host: &OnHost) -> Result<Environment, LabError> {
        let processors = owned(&PROCESSORS);
        let nft = owned(&["nft", "--version"]);
        let balancer = owned(&BALANCER);
        let mut questions = vec![processors.clone(), nft.clone(), balancer.clone()];
        questions.extend(ENVIRONMENT_FILES.map(cat));
        let answers = host.connection.ask(questions)?;
        let cpus = answers.needed(&processors)?.parse().unwrap_or(1);
        let nft = answers.get(&nft).map(str::to_owned);
        let read = |path: &str| {
            let text = answers.get(&cat(path)).map(str::to_owned);
            text.filter(|text| !text.is_empty())
        };
        let mut environment = environment_by(read, cpus, nft);
        if !self.missing.is_empty() {
            let unread = self.missing.iter();
            let unread = unread.map(|tool| format!("{} (no {})", tool.facts(), tool.name()));
            let unread = unread.collect::<Vec<_>>().join("; ");
            let facts = &mut environment.facts;
            facts.insert("facts that are not compared".to_owned(), unread);
        }
        if answers
            .get(&balancer)
            .is_some_and(|found| !found.is_empty())
        {
            let source = "irqbalance runs on the DUT: it moves interrupts from CPU to CPU, and rates change with them";
            environment.noise_sources.push(source.to_owned());
        }
        Ok(environment)
    }

    fn look_at_ports(&self, host: &OnHost) -> Result<[String; 2], LabError> {
        let user = owned(&["id", "-u"]);
        let mac_of = |interface: &str| cat(&format!("/sys/class/net/{interface}/address"));
        let mut questions = vec![user.clone()];
        questions.extend(host.ports().map(mac_of));
        let answers = host.connection.ask(questions)?;
        if answers.needed(&user)? != "0" {
            return Err(host.connection.wrong(NOT_ROOT));
        }
        let wrong = |what: String| host.connection.wrong(what);
        let station = |interface| -> Result<String, LabError> {
            let mac = answers
                .get(&mac_of(interface))
                .ok_or_else(|| no_interface(&host.connection, interface, &NAMES))?;
            MacAddress::of_station(mac).map_err(|_| {
                wrong(format!(
                    "{interface} has no Ethernet address; name a port of a network card"
                ))
            })?;
            Ok(mac.to_owned())
        };
        let [name_in, name_out] = host.ports();
        let macs = [station(name_in)?, station(name_out)?];
        let network = network(&host.connection)?;
        refuse_needed(
            &host.connection,
            &network,
            &host.ports(),
            "the tester's ports",
        )?;
        Ok(macs)
    }

    fn prove_counters(&self, host: &OnHost) -> Result<(), LabError> {
        let questions = of_drivers(host);
        if questions.is_empty() {
            return Ok(());
        }
        if self.missing.contains(&Tool::Ethtool) {
            return Err(host.connection.wrong(Tool::Ethtool.missing()));
        }
        let answers = host.connection.ask(questions.clone())?;
        let listed = questions
            .iter()
            .filter_map(|question| answers.get(question));
        let listed: Vec<&str> = listed.collect();
        for name in &host.of.drop_counters {
            if !listed
                .iter()
                .any(|text| driver_counter(text, name).is_some())
            {
                let [of_in, of_out] = host.ports();
                return Err(host.connection.wrong(format!(
                    "neither {of_in} nor {of_out} has a counter {name:?}; `ethtool -S {of_in}` lists them"
                )));
            }
        }
        Ok(())
    }

    fn question_of_port(&self, interface: &str) -> Vec<String> {
        let path = format!("/sys/class/net/{interface}/address");
        owned(&["test", "-e", &path])
    }

    fn await_services(&mut self, host: &OnHost) -> Result<(), LabError> {
        // Homes may be in memory.
        self.program = None;
        // Not every host has systemd.
        let settled = host.run(&["systemctl", "is-system-running", "--wait"]);
        match settled {
            Err(error) if error.is_of_a_connection() => Err(error),
            _ => Ok(()),
        }
    }

    fn has_tentative_addresses(&self, host: &OnHost) -> Result<bool, LabError> {
        Ok(has_tentative_address(&host.run(&ADDRESSES)?))
    }

    fn refuse_losses(
        &self,
        host: &OnHost,
        families: &[AddressFamily],
        _stations: [&Station; 2],
    ) -> Result<(), LabError> {
        let ports = host.ports();
        let answers = host.connection.ask(losses::questions(ports, families))?;
        losses::refuse_losses(ports, families, &answers)
    }

    fn set_up(
        &self,
        host: &OnHost,
        families: &[AddressFamily],
        [generator, sink]: [&Station; 2],
        looks: Vec<Vec<String>>,
    ) -> Result<(Vec<Step>, Answers), LabError> {
        let set_up = SetUp {
            host,
            families,
            generator,
            sink,
            is_of_busybox: self.missing.contains(&Tool::Iproute2),
        };
        let mut questions = set_up.questions();
        questions.extend(looks);
        let answers = host.connection.ask(questions)?;
        Ok((set_up.steps(&answers)?, answers))
    }

    fn await_link(&self, host: &OnHost) -> Result<(), LabError> {
        let start = Instant::now();
        let interfaces = host.ports();
        let carrier_of = |interface: &str| cat(&format!("/sys/class/net/{interface}/carrier"));
        loop {
            let mut questions = interfaces.map(carrier_of).to_vec();
            questions.extend(interfaces.map(addresses_of));
            let answers = host.connection.ask(questions)?;
            // Of one that is down there is no answer.
            let has_carrier =
                |interface: &str, value: &str| answers.get(&carrier_of(interface)) == Some(value);
            // An address that is proved brings a route, which facts would lack before.
            let is_proving = |interface: &str| {
                let listed = answers.get(&addresses_of(interface)).unwrap_or_default();
                has_carrier(interface, "1") && has_tentative_address(listed)
            };
            let mut without = interfaces.into_iter();
            if let Some(interface) = without.find(|interface| has_carrier(interface, "0")) {
                if start.elapsed() > PORTS_TIME_MAX {
                    return Err(host.connection.wrong(format!(
                        "{interface} has no link; check its cable, and whether the tester's port is set up: a killed \
                         `fwdlab lab new` leaves ports down, which `fwdlab restore` on its controller sets up"
                    )));
                }
            } else if start.elapsed() > ADDRESSES_TIME_MAX
                || !interfaces.into_iter().any(is_proving)
            {
                return Ok(());
            }
            sleep(Duration::from_millis(200));
        }
    }

    fn drops(
        &self,
        host: &OnHost,
        family: AddressFamily,
        more: Vec<Vec<String>>,
    ) -> Result<(Drops, Answers), LabError> {
        let [receiving, sending] = host.ports_of_the_load();
        let received = ["rx_dropped", "rx_missed_errors"];
        let sent = ["tx_dropped", "tx_fifo_errors"];
        let counters = [(receiving, received), (sending, sent)]
            .into_iter()
            .flat_map(|(interfaces, counters)| {
                let of = move |interface| counters.map(|counter| (interface, counter));
                interfaces.into_iter().flat_map(of)
            });
        let counters: Vec<(String, Vec<String>)> = counters
            .map(|(interface, counter)| {
                let path = format!("/sys/class/net/{interface}/statistics/{counter}");
                (format!("{interface} {counter}"), cat(&path))
            })
            .collect();
        let stack = ["snmp", "netstat", "snmp6"].map(|name| cat(&format!("/proc/net/{name}")));
        let drivers = of_drivers(host);
        let mut questions = stack.to_vec();
        questions.extend(counters.iter().map(|(_, question)| question.clone()));
        questions.extend(drivers.iter().cloned());
        questions.extend(more);
        let answers = host.connection.ask(questions)?;
        let answer = |question: &Vec<String>| answers.get(question).unwrap_or_default();
        // A kernel without IPv6 has no snmp6.
        let stack = stack.map(|question| format!("{}\n", answer(&question)));
        let mut drops = stack_drops(family, &stack.concat());
        for (reason, question) in &counters {
            drops.insert(reason.clone(), answer(question).parse().unwrap_or(0));
        }
        for (interface, question) in host.ports().into_iter().zip(&drivers) {
            for name in &host.of.drop_counters {
                let frames = driver_counter(answer(question), name);
                drops.extend(frames.map(|frames| (format!("{interface} {name}"), frames)));
            }
        }
        Ok((drops, answers))
    }

    fn question_of_link(&self, interface: &str) -> Vec<String> {
        owned(&["sh", "-c", LINK, interface])
    }

    fn link(&self, shown: &str) -> PortLink {
        let (flags, changes) = shown.split_once('\n').unwrap_or((shown, ""));
        PortLink {
            is_up: is_up(flags),
            history: changes.to_owned(),
        }
    }

    fn received_and_dropped(&self) -> &'static str {
        "rx_dropped"
    }

    fn cpu_watch(&self, host: &OnHost, window: Window, load_frames_min: u32) -> Vec<String> {
        watch::words(host.ports(), window, load_frames_min)
    }

    fn watched_cpus(&self, text: &str) -> Option<CpuWatch> {
        watch::watched(text)
    }

    fn stack_watch(
        &mut self,
        host: &OnHost,
        window: Window,
        frequency_hz: u32,
        load_frames_min: u32,
    ) -> Result<Vec<String>, LabError> {
        let program = match &self.program {
            Some(program) => program,
            None => {
                let program = bring(&host.connection, host.of.program.as_deref())?;
                self.program.insert(program)
            }
        };
        let interface = &host.of.interface_in;
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

/// A counter among those that `ethtool -S` lists: `     rx_discards_phy: 17`.
fn driver_counter(listed: &str, name: &str) -> Option<u64> {
    listed.lines().find_map(|line| {
        let (found, value) = line.trim().rsplit_once(": ")?;
        (found == name).then(|| value.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drivers_counter_is_read_by_its_whole_name() {
        let listed =
            "NIC statistics:\n     rx_discards_phy: 17\n     [0]: rx_drops: 3\n     odd: x\n";
        assert_eq!(driver_counter(listed, "rx_discards_phy"), Some(17));
        assert_eq!(driver_counter(listed, "[0]: rx_drops"), Some(3));
        for name in ["discards_phy", "rx_discards", "odd", ""] {
            assert_eq!(driver_counter(listed, name), None, "{name}");
        }
    }
}
