//! A Linux DUT on its host: made ready, set to a variant, read back, and put back as it was.

use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, DutHost, Environment, Resolved};

use super::attachments::{Attachments, await_no_forwarder};
use super::boot::{Grub, boot};
use super::facts::{BOOT_ID, facts};
use super::reached::network;
use super::set_up::SetUp;
use super::{stacks, watch};
use crate::LabError;
use crate::counters::{Drops, stack_drops};
use crate::environment::{ENVIRONMENT_FILES, environment_by};
use crate::hosts::boot::{BootId, BootLoader};
use crate::hosts::changes::change_all;
use crate::hosts::cpu_watch::CpuWatch;
use crate::hosts::detached::Window;
use crate::hosts::dut::{Dut, NOT_ROOT, OnHost, PORTS_TIME_MAX, await_rest, ports_of_the_load};
use crate::hosts::facts::Facts;
use crate::hosts::own_programs::OwnPrograms;
use crate::hosts::process::bring;
use crate::hosts::protocol::Station;
use crate::hosts::reached::refuse_needed;
use crate::hosts::ssh::Connection;
use crate::hosts::transport::{OverSsh, words};
use crate::journal::Journal;
use crate::mechanism::file::cat;
use crate::mechanism::settings::Settings;
use crate::mechanism::step::owned;
use crate::mechanism::{self, DutPlace};
use crate::profiler::ProfileSlice;

/// Prints something where irqbalance runs.
pub(in crate::hosts) const BALANCER: [&str; 3] =
    ["sh", "-c", "grep -hsx irqbalance /proc/[0-9]*/comm || :"];

/// A Linux DUT on its host.
pub(in crate::hosts) struct LinuxDut {
    host: OnHost,
    settings: Settings,
    abilities: Attachments,
    own: OwnPrograms,
    /// Where fwdlab's own is, once it is there.
    program: Option<String>,
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
        let settings = Settings::new(
            resolved,
            mechanism::on_linux(resolved, &DutPlace::on_host(of))?,
        );
        let mut dut = Self {
            host: OnHost::new(connection, of, resolved, boot(connection)?.id),
            settings,
            abilities: Attachments::default(),
            own: OwnPrograms::default(),
            program: None,
        };
        dut.look_at_ports()?;
        if mechanism::xdp::is_bound(&resolved.lab) {
            await_no_forwarder(connection, of)?;
        }
        Ok(dut)
    }

    /// Which stations its ports are, that the host can do without them, and that it lets us change them.
    fn look_at_ports(&mut self) -> Result<(), LabError> {
        let ports = [&*self.host.of.interface_in, &*self.host.of.interface_out];
        let user = owned(&["id", "-u"]);
        let mac_of = |interface: &str| cat(&format!("/sys/class/net/{interface}/address"));
        let mut questions = vec![user.clone()];
        questions.extend(ports.map(mac_of));
        let answers = self.host.connection.ask(questions)?;
        if answers.needed(&user)? != "0" {
            return Err(self.host.connection.wrong(NOT_ROOT));
        }
        let [mac_in, mac_out] = ports.map(|interface| {
            let mac = answers.get(&mac_of(interface)).map(str::to_owned);
            mac.ok_or_else(|| {
                self.host.connection.wrong(format!(
                    "it has no interface {interface}; `ip link` lists them"
                ))
            })
        });
        let (mac_in, mac_out) = (mac_in?, mac_out?);
        let network = network(&self.host.connection)?;
        refuse_needed(
            &self.host.connection,
            &network,
            &ports,
            "the tester's ports",
        )?;
        (self.host.mac_in, self.host.mac_out) = (mac_in, mac_out);
        self.prove_that_drivers_count()
    }

    fn ports(&self) -> [&str; 2] {
        [&self.host.of.interface_in, &self.host.of.interface_out]
    }

    /// What lists the counters of the ports' drivers, where any of them count.
    fn of_drivers(&self) -> Vec<Vec<String>> {
        if self.host.of.drop_counters.is_empty() {
            return Vec::new();
        }
        let list = |interface| owned(&["ethtool", "-S", interface]);
        self.ports().map(list).to_vec()
    }

    /// Fails where neither port has a counter that the lab file names.
    fn prove_that_drivers_count(&self) -> Result<(), LabError> {
        let questions = self.of_drivers();
        if questions.is_empty() {
            return Ok(());
        }
        let answers = self.host.connection.ask(questions.clone())?;
        let listed = questions
            .iter()
            .filter_map(|question| answers.get(question));
        let listed: Vec<&str> = listed.collect();
        for name in &self.host.of.drop_counters {
            if !listed
                .iter()
                .any(|text| driver_counter(text, name).is_some())
            {
                let [of_in, of_out] = self.ports();
                return Err(self.host.connection.wrong(format!(
                    "neither {of_in} nor {of_out} has a counter {name:?}; `ethtool -S {of_in}` lists them"
                )));
            }
        }
        Ok(())
    }
}

impl Dut for LinuxDut {
    fn host(&self) -> &OnHost {
        &self.host
    }

    fn host_mut(&mut self) -> &mut OnHost {
        &mut self.host
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn settings_mut(&mut self) -> (&mut Settings, OverSsh<'_>) {
        let over_ssh = OverSsh {
            host: &self.host,
            abilities: &mut self.abilities,
            own: &mut self.own,
        };
        (&mut self.settings, over_ssh)
    }

    fn boot_and_facts(&self) -> Result<(Option<BootId>, Facts), LabError> {
        let mut facts = facts(&self.host.connection, self.ports())?;
        let boot = facts.remove(BOOT_ID).map(BootId::Named);
        Ok((boot, facts))
    }

    fn boot_loader(&self) -> Box<dyn BootLoader> {
        Box::new(Grub)
    }

    fn environment(&self) -> Result<Environment, LabError> {
        let processors = owned(&["nproc", "--all"]);
        let nft = owned(&["nft", "--version"]);
        let balancer = owned(&BALANCER);
        let mut questions = vec![processors.clone(), nft.clone(), balancer.clone()];
        questions.extend(ENVIRONMENT_FILES.map(cat));
        let answers = self.host.connection.ask(questions)?;
        let cpus = answers.needed(&processors)?.parse().unwrap_or(1);
        let nft = answers.get(&nft).map(str::to_owned);
        let read = |path: &str| {
            let text = answers.get(&cat(path)).map(str::to_owned);
            text.filter(|text| !text.is_empty())
        };
        let mut environment = environment_by(read, cpus, nft);
        if answers
            .get(&balancer)
            .is_some_and(|found| !found.is_empty())
        {
            let source = "irqbalance runs on the DUT: it moves interrupts from CPU to CPU, and rates change with them";
            environment.noise_sources.push(source.to_owned());
        }
        Ok(environment)
    }

    fn has_booted(&mut self) -> Result<(), LabError> {
        // What its services set when they start is in place before it is looked at. Not every host has systemd.
        let settled = self.host.run(&["systemctl", "is-system-running", "--wait"]);
        if let Err(error) = settled
            && error.is_of_a_connection()
        {
            return Err(error);
        }
        self.host.boot_id = boot(&self.host.connection)?.id;
        let (settings, mut over_ssh) = self.settings_mut();
        settings.forget();
        over_ssh.forget();
        // Homes may be in memory.
        self.program = None;
        self.host.await_ports(|interface| {
            let path = format!("/sys/class/net/{interface}/address");
            owned(&["test", "-e", &path])
        })?;
        self.look_at_ports()?;
        await_rest(&self.host.connection, || {
            let addresses = self.host.run(&["ip", "-o", "address", "show"])?;
            Ok((self.facts()?, addresses.contains(" tentative")))
        })
    }

    fn set_up(
        &mut self,
        journal: &mut Journal,
        families: &[AddressFamily],
        [generator, sink]: [&Station; 2],
    ) -> Result<(), LabError> {
        let set_up = SetUp {
            of: &self.host.of,
            direction: self.host.direction,
            families,
            generator,
            sink,
        };
        let mut questions = set_up.questions();
        questions.extend(self.settings.looks().filter_map(|look| words(&look)));
        let answers = self.host.connection.ask(questions)?;
        let mut steps = set_up.steps(&answers)?;
        self.own.forget();
        steps.extend(self.settings.keep(&answers)?);
        change_all(&self.host.connection, journal, steps)?;
        self.await_link()
    }

    fn await_link(&self) -> Result<(), LabError> {
        let start = Instant::now();
        let interfaces = [&self.host.of.interface_in, &self.host.of.interface_out];
        let question = |interface: &String| cat(&format!("/sys/class/net/{interface}/carrier"));
        loop {
            let questions = interfaces.map(question).to_vec();
            let answers = self.host.connection.ask(questions)?;
            let mut without = interfaces.into_iter();
            // Of one that is down there is no answer.
            let without = without.find(|interface| answers.get(&question(interface)) == Some("0"));
            let Some(interface) = without else {
                return Ok(());
            };
            if start.elapsed() > PORTS_TIME_MAX {
                return Err(self.host.connection.wrong(format!(
                    "{interface} has no link; see to its cable and to the tester's port"
                )));
            }
            sleep(Duration::from_millis(200));
        }
    }

    fn drops(&mut self, family: AddressFamily) -> Result<Drops, LabError> {
        let [receiving, sending] = ports_of_the_load(&self.host.of, self.host.direction);
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
        let drivers = self.of_drivers();
        let mut questions = stack.to_vec();
        questions.extend(counters.iter().map(|(_, question)| question.clone()));
        questions.extend(drivers.iter().cloned());
        questions.extend(self.settings.counters());
        let answers = self.host.connection.ask(questions)?;
        let answer = |question: &Vec<String>| answers.get(question).unwrap_or_default();
        // A kernel without IPv6 has no snmp6.
        let stack = stack.map(|question| format!("{}\n", answer(&question)));
        let mut drops = stack_drops(family, &stack.concat());
        for (reason, question) in &counters {
            drops.insert(reason.clone(), answer(question).parse().unwrap_or(0));
        }
        for (interface, question) in self.ports().into_iter().zip(&drivers) {
            for name in &self.host.of.drop_counters {
                let frames = driver_counter(answer(question), name);
                drops.extend(frames.map(|frames| (format!("{interface} {name}"), frames)));
            }
        }
        let (settings, mut over_ssh) = self.settings_mut();
        drops.extend(settings.drops(&mut over_ssh, &answers)?);
        Ok(drops)
    }

    fn received_and_dropped(&self) -> Vec<String> {
        let [receiving, _] = ports_of_the_load(&self.host.of, self.host.direction);
        let reasons = receiving.into_iter();
        reasons
            .map(|interface| format!("{interface} rx_dropped"))
            .collect()
    }

    fn cpu_watch(&self, window: Window, load_frames_min: u32) -> Vec<String> {
        watch::words(self.ports(), window, load_frames_min)
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
            None => self.program.insert(bring(
                &self.host.connection,
                self.host.of.program.as_deref(),
            )?),
        };
        let interface = &self.host.of.interface_in;
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
