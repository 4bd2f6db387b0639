//! A Linux DUT on its host: made ready, set to a variant, read back, and put back as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, Binding, DutHost, Environment, Resolved, Variant, XdpProgram};

use super::boot::{Grub, boot};
use super::facts::{BOOT_ID, facts};
use super::forwarder::{Forwarder, await_no_forwarder};
use super::reached::network;
use super::readings::{program_reading, readings_of};
use super::routes::Routes;
use super::set_up::{SetUp, cat, feature_of, features_of, sysctl_path, sysfs_path, write};
use super::{stacks, watch};
use crate::counters::{Drops, stack_drops};
use crate::dut::{refused_by_kernel, unbound_level};
use crate::environment::{ENVIRONMENT_FILES, environment_by};
use crate::hosts::boot::{BootChoice, BootId, BootLoader};
use crate::hosts::cpu_watch::CpuWatch;
use crate::hosts::detached::Window;
use crate::hosts::dut::{
    Answers, Dut, NOT_ROOT, OnHost, PORTS_TIME_MAX, await_rest, change_all, meaning,
    missing_program, on_or_off, ports_of_the_load, said,
};
use crate::hosts::facts::Facts;
use crate::hosts::process::bring;
use crate::hosts::reached::refuse_needed;
use crate::hosts::ssh::{Connection, Errand};
use crate::hosts::tester::Station;
use crate::journal::Journal;
use crate::profiler::ProfileSlice;
use crate::{Asks, LabError};

/// Prints something where irqbalance runs.
pub(in crate::hosts) const BALANCER: [&str; 3] =
    ["sh", "-c", "grep -hsx irqbalance /proc/[0-9]*/comm || :"];

/// A Linux DUT on its host.
pub(in crate::hosts) struct LinuxDut {
    host: OnHost,
    has_nft: bool,
    /// What each nft ruleset is listed as, by its text.
    listed: BTreeMap<String, String>,
    routes: Routes,
    forwarder: Forwarder,
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
        let mut dut = Self {
            host: OnHost::new(connection, of, resolved, boot(connection)?.id),
            has_nft: true,
            listed: BTreeMap::new(),
            routes: Routes::default(),
            forwarder: Forwarder::default(),
            program: None,
        };
        dut.look_at_ports()?;
        let mut bindings = dut.host.bindings.values();
        if bindings.any(|binding| matches!(binding, Binding::Nft(_))) {
            dut.has_nft = !dut.host.is_refused(&["nft", "--version"])?;
        }
        if dut
            .host
            .bindings
            .values()
            .any(|binding| matches!(binding, Binding::Xdp(_)))
        {
            await_no_forwarder(connection, of)?;
        }
        Ok(dut)
    }

    /// Which stations its ports are, that the host can do without them, and that it lets us change them.
    fn look_at_ports(&mut self) -> Result<(), LabError> {
        let ports = [&*self.host.of.interface_in, &*self.host.of.interface_out];
        let user = ["id", "-u"].map(str::to_owned).to_vec();
        let mac_of = |interface: &str| cat(&format!("/sys/class/net/{interface}/address"));
        let mut questions = vec![user.clone()];
        questions.extend(ports.map(mac_of));
        let answers = Answers::ask(&self.host.connection, questions)?;
        if answers.needed(&user)? != "0" {
            return Err(self.host.wrong(NOT_ROOT));
        }
        let [mac_in, mac_out] = ports.map(|interface| {
            let mac = answers.get(&mac_of(interface)).map(str::to_owned);
            mac.ok_or_else(|| {
                self.host.wrong(&format!(
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
        let list = |interface| ["ethtool", "-S", interface].map(str::to_owned).to_vec();
        self.ports().map(list).to_vec()
    }

    /// Fails where neither port has a counter that the lab file names.
    fn prove_that_drivers_count(&self) -> Result<(), LabError> {
        let questions = self.of_drivers();
        if questions.is_empty() {
            return Ok(());
        }
        let answers = Answers::ask(&self.host.connection, questions.clone())?;
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
                return Err(self.host.wrong(&format!(
                    "neither {of_in} nor {of_out} has a counter {name:?}; `ethtool -S {of_in}` lists them"
                )));
            }
        }
        Ok(())
    }

    /// The variant's whole ruleset, where any factor sets one.
    fn ruleset(&self, variant: &Variant) -> Result<Option<String>, LabError> {
        let ruleset = self.asked_ruleset(variant)?;
        // Where none can be set, there is none to be emptied either.
        Ok(ruleset.filter(|text| self.has_nft || !text.trim().is_empty()))
    }

    fn asked_ruleset(&self, variant: &Variant) -> Result<Option<String>, LabError> {
        self.host.ruleset(variant, |binding| match binding {
            Binding::Nft(texts) => Some(texts),
            _ => None,
        })
    }

    /// The variant's XDP program, where a factor sets one.
    fn xdp_program(&self, variant: &Variant) -> Result<Option<XdpProgram>, LabError> {
        for (factor, level) in &variant.levels {
            if let Binding::Xdp(programs) = self.host.binding(factor, level)? {
                return meaning(programs, factor, level).copied().map(Some);
            }
        }
        Ok(None)
    }

    /// Why the DUT cannot forward by XDP, where a variant asks for that: of the drivers only trying tells.
    fn forwarder_unavailable(
        &mut self,
        variant: &Variant,
        asks: Asks,
    ) -> Result<Option<String>, LabError> {
        if self.xdp_program(variant)? != Some(XdpProgram::Fib) {
            return Ok(None);
        }
        let (connection, of) = (&self.host.connection, &self.host.of);
        let tried = match asks {
            Asks::Plan => self.forwarder.load(connection, of),
            Asks::Run => {
                let set = self.forwarder.set(connection, of, XdpProgram::Fib);
                set.map(|_| ())
            }
        };
        match tried {
            Err(error @ LabError::Host { .. }) => Ok(Some(error.to_string())),
            tried => {
                tried?;
                self.forwarder.release()?;
                Ok(None)
            }
        }
    }

    /// What sets the features of interfaces that are otherwise: many a driver takes a port down for it.
    fn feature_errands(&self, features: &[(&str, &str, &str)]) -> Result<Vec<Errand>, LabError> {
        let names: BTreeSet<&str> = features.iter().map(|(name, ..)| *name).collect();
        let questions = names.into_iter().map(features_of).collect();
        let answers = Answers::ask(&self.host.connection, questions)?;
        let is_otherwise = |(name, feature, word): &&(&str, &str, &str)| {
            let listed = answers.get(&features_of(name)).unwrap_or_default();
            let seen = feature_of(listed, feature).unwrap_or_default();
            seen.split(' ').next() != Some(word)
        };
        let features = features.iter().filter(is_otherwise);
        let set = |(name, feature, word): &(&str, &str, &str)| {
            Errand::of(&["ethtool", "-K", name, feature, word])
        };
        Ok(features.map(set).collect())
    }

    /// What the DUT's kernel does not take of a variant's ruleset; none where it takes all of it, or where nft does not
    /// understand it, which is told when it is applied.
    fn refused_ruleset(&self, variant: &Variant) -> Result<Option<String>, LabError> {
        let ruleset = self.ruleset(variant)?;
        let Some(ruleset) = ruleset.filter(|ruleset| !ruleset.trim().is_empty()) else {
            return Ok(None);
        };
        if !self.has_nft {
            return Ok(Some("nft is not installed there".to_owned()));
        }
        let complaint = self.complaint_about(&ruleset)?;
        Ok(complaint.and_then(|stderr| refused_by_kernel(&stderr)))
    }

    /// What nft says of a ruleset that it does not load; none where it would.
    fn complaint_about(&self, ruleset: &str) -> Result<Option<String>, LabError> {
        match self
            .host
            .connection
            .run(&["nft", "--check", "-f", "-"], ruleset)
        {
            Err(LabError::OnHost { stderr, .. }) => Ok(Some(stderr)),
            checked => checked.map(|_| None),
        }
    }

    /// Fails where nft does not load again what it lists: of rules that were made by other means it shows what it cannot
    /// read.
    fn prove_that_loads(&self, ruleset: &str) -> Result<(), LabError> {
        let Some(stderr) = self.complaint_about(ruleset)? else {
            return Ok(());
        };
        Err(self.host.wrong(&format!(
            "its own ruleset could not be put back: nft does not load what `nft list ruleset` shows ({}); have the \
             rules that other programs made (iptables, Docker) taken away while it is measured, or leave rulesets out \
             of the experiment",
            stderr.lines().next().unwrap_or_default()
        )))
    }

    /// Why a variant is unavailable.
    fn because(&self, reason: &str) -> Option<String> {
        Some(format!("host {}: {reason}", self.host.connection.host()))
    }
}

impl Dut for LinuxDut {
    fn host(&self) -> &OnHost {
        &self.host
    }

    fn host_mut(&mut self) -> &mut OnHost {
        &mut self.host
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
        let processors = ["nproc", "--all"].map(str::to_owned);
        let nft = ["nft", "--version"].map(str::to_owned);
        let balancer = BALANCER.map(str::to_owned);
        let mut questions = vec![processors.to_vec(), nft.to_vec(), balancer.to_vec()];
        questions.extend(ENVIRONMENT_FILES.map(cat));
        let answers = Answers::ask(&self.host.connection, questions)?;
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
        self.forwarder.forget();
        // What its services set when they start is in place before it is looked at. Not every host has systemd.
        let settled = self.host.run(&["systemctl", "is-system-running", "--wait"]);
        if let Err(error) = settled
            && error.is_of_a_connection()
        {
            return Err(error);
        }
        self.host.boot_id = boot(&self.host.connection)?.id;
        self.host.programs.forget();
        self.listed.clear();
        // Homes may be in memory.
        self.program = None;
        self.host.await_ports(|interface| {
            let path = format!("/sys/class/net/{interface}/address");
            ["test", "-e", &path].map(str::to_owned).to_vec()
        })?;
        self.look_at_ports()?;
        await_rest(self.host.connection.host(), || {
            let addresses = self.host.run(&["ip", "-o", "address", "show"])?;
            Ok((self.facts()?, addresses.contains(" tentative")))
        })
    }

    fn boot_choice(&self, variant: &Variant) -> Result<BootChoice, LabError> {
        let mut choice = BootChoice::default();
        for (factor, level) in &variant.levels {
            match self.host.binding(factor, level)? {
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

    fn unavailable(&mut self, variant: &Variant, asks: Asks) -> Result<Option<String>, LabError> {
        if let Some(reason) = self.forwarder_unavailable(variant, asks)? {
            return Ok(Some(reason));
        }
        let mut files = Vec::new();
        let mut features = Vec::new();
        for (factor, level) in &variant.levels {
            match self.host.binding(factor, level)? {
                Binding::Sysctl { key, .. } => files.push(sysctl_path(&self.host.of, key)),
                Binding::Sysfs {
                    file, interfaces, ..
                } => {
                    let paths = interfaces.iter();
                    files
                        .extend(paths.map(|&interface| sysfs_path(&self.host.of, interface, file)));
                }
                Binding::Module {
                    module, parameter, ..
                } => files.push(format!("/sys/module/{module}/parameters/{parameter}")),
                Binding::Ethtool {
                    feature,
                    interfaces,
                } => {
                    let names = interfaces
                        .iter()
                        .map(|&interface| self.host.of.interface(interface));
                    features.extend(names.map(|name| (name, feature.as_str(), on_or_off(level))));
                }
                Binding::Command(programs) => {
                    if let Some(reason) = missing_program(&self.host.connection, programs)? {
                        return Ok(self.because(&reason));
                    }
                }
                // Whether GRUB has such an entry shows when it is to boot; rulesets are tried together.
                Binding::Nft(_)
                | Binding::CommandLine(_)
                | Binding::Kernel(_)
                | Binding::Routes
                | Binding::Xdp(_) => {}
                _ => return Ok(self.because("it is set in no way that a Linux host has")),
            }
        }
        let mut questions: Vec<_> = files.iter().map(|path| cat(path)).collect();
        questions.extend(features.iter().map(|(name, ..)| features_of(name)));
        let answers = Answers::ask(&self.host.connection, questions)?;
        let missing = files.iter().find(|path| answers.get(&cat(path)).is_none());
        if let Some(path) = missing {
            return Ok(self.because(&format!("it has no readable {path}")));
        }
        for (name, feature, word) in features {
            let listed = answers.get(&features_of(name)).unwrap_or_default();
            let Some(seen) = feature_of(listed, feature) else {
                let reason = format!("{name} has no feature {feature}, or ethtool is missing");
                return Ok(self.because(&reason));
            };
            if seen.contains("[fixed]") && !seen.starts_with(word) {
                return Ok(self.because(&format!("{feature} of {name} is fixed: {seen}")));
            }
        }
        let reason = self.refused_ruleset(variant)?;
        Ok(reason.and_then(|reason| self.because(&reason)))
    }

    fn set_up(
        &mut self,
        journal: &mut Journal,
        families: &[AddressFamily],
        [generator, sink]: [&Station; 2],
    ) -> Result<(), LabError> {
        self.host.programs.forget();
        self.routes.forget();
        // Where no ruleset can be set, the owner's is neither read nor kept.
        let mut bindings = self.host.bindings.clone();
        bindings.retain(|_, binding| self.has_nft || !matches!(binding, Binding::Nft(_)));
        let set_up = SetUp {
            of: &self.host.of,
            bindings: &bindings,
            direction: self.host.direction,
            families,
            generator,
            sink,
        };
        let answers = Answers::ask(&self.host.connection, set_up.questions())?;
        if let Some(ruleset) = set_up.kept_ruleset(&answers)? {
            self.prove_that_loads(&ruleset)?;
        }
        change_all(&self.host.connection, journal, set_up.steps(&answers)?)?;
        self.await_link()?;
        let mut bindings = self.host.bindings.values();
        if bindings.any(|binding| matches!(binding, Binding::Routes)) {
            self.routes
                .set_up(&self.host.connection, journal, families)?;
        }
        Ok(())
    }

    fn await_link(&self) -> Result<(), LabError> {
        let start = Instant::now();
        let interfaces = [&self.host.of.interface_in, &self.host.of.interface_out];
        let question = |interface: &String| cat(&format!("/sys/class/net/{interface}/carrier"));
        loop {
            let questions = interfaces.map(question).to_vec();
            let answers = Answers::ask(&self.host.connection, questions)?;
            let mut without = interfaces.into_iter();
            // Of one that is down there is no answer.
            let without = without.find(|interface| answers.get(&question(interface)) == Some("0"));
            let Some(interface) = without else {
                return Ok(());
            };
            if start.elapsed() > PORTS_TIME_MAX {
                return Err(self.host.wrong(&format!(
                    "{interface} has no link; see to its cable and to the tester's port"
                )));
            }
            sleep(Duration::from_millis(200));
        }
    }

    fn release(&mut self) -> Result<(), LabError> {
        self.forwarder.release()
    }

    fn apply(&mut self, journal: &mut Journal, variant: &Variant) -> Result<(), LabError> {
        // Many a driver restarts its port for such a change, and the link is gone for seconds.
        let mut may_restart = false;
        // First: a driver that takes a program may change its port's features.
        if let Some(program) = self.xdp_program(variant)? {
            may_restart |= self
                .forwarder
                .set(&self.host.connection, &self.host.of, program)?;
        }
        let mut errands = Vec::new();
        let mut features = Vec::new();
        let mut routes = Vec::new();
        for (factor, level) in &variant.levels {
            match self.host.binding(factor, level)? {
                Binding::Sysctl { key, values } => {
                    errands.push(write(
                        &sysctl_path(&self.host.of, key),
                        &values.value(level),
                    ));
                }
                Binding::Sysfs {
                    file,
                    interfaces,
                    values,
                } => {
                    for &interface in interfaces {
                        let path = sysfs_path(&self.host.of, interface, file);
                        errands.push(write(&path, &values.value(level)));
                    }
                }
                Binding::Ethtool {
                    feature,
                    interfaces,
                } => {
                    for &interface in interfaces {
                        let name = self.host.of.interface(interface);
                        features.push((name, feature.as_str(), on_or_off(level)));
                    }
                }
                Binding::Routes => routes.push((factor, level)),
                // One ruleset for all factors together, one boot, and one XDP program; the owner's programs come last.
                Binding::Nft(_)
                | Binding::Xdp(_)
                | Binding::Module { .. }
                | Binding::CommandLine(_)
                | Binding::Kernel(_)
                | Binding::Command(_) => {}
                _ => return Err(unbound_level(factor, level)),
            }
        }
        let features = self.feature_errands(&features)?;
        may_restart |= !features.is_empty();
        errands.extend(features);
        if let Some(text) = self.ruleset(variant)? {
            let script = format!("flush ruleset\n{text}");
            errands.push(Errand::reading(&["nft", "-f", "-"], &script));
        }
        self.host.connection.run_in_order(&errands)?;
        for (factor, level) in routes {
            let (connection, interface) = (&self.host.connection, &self.host.of.interface_out);
            self.routes.apply(connection, interface, factor, level)?;
        }
        // The owner's programs come last, so that they find the rest in place.
        may_restart |= self.host.apply_programs(journal, variant)?;
        if may_restart {
            self.await_link()?;
        }
        Ok(())
    }

    fn moved(&mut self, variant: &Variant) -> Result<Option<String>, LabError> {
        let mut readings = Vec::new();
        for (factor, level) in &variant.levels {
            match self.host.binding(factor, level)? {
                Binding::Routes => readings.extend(self.routes.readings(factor, level)?),
                binding => readings.extend(readings_of(&self.host.of, factor, binding, level)),
            }
        }
        if let Some(program) = self.xdp_program(variant)? {
            let asked = self.forwarder.number(program)?;
            readings.extend(
                self.ports()
                    .map(|interface| program_reading(interface, asked)),
            );
        }
        let ruleset = self.ruleset(variant)?;
        let listing = ["nft", "--stateless", "list", "ruleset"].map(str::to_owned);
        let mut questions: Vec<Vec<String>> = readings
            .iter()
            .map(|reading| reading.question.clone())
            .collect();
        questions.extend(ruleset.iter().map(|_| listing.to_vec()));
        let answers = Answers::ask(&self.host.connection, questions)?;
        for reading in &readings {
            // By itself it says why.
            if answers.get(&reading.question).is_none() {
                self.host.run(&reading.question)?;
            }
        }
        let moved = readings.iter().find_map(|reading| reading.moved(&answers));
        let Some(text) = ruleset.filter(|_| moved.is_none()) else {
            return Ok(moved);
        };
        let seen = answers.needed(&listing)?;
        // nft lists a ruleset in its own words, so what it lists first is what it must list ever after.
        let first = self
            .listed
            .entry(text.clone())
            .or_insert_with(|| seen.to_owned());
        let is_whole = *first == seen && seen.is_empty() == text.trim().is_empty();
        Ok((!is_whole).then(|| said("the nft ruleset", first, seen)))
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
        let commands = [commands, self.of_drivers()].concat();
        // A kernel without IPv6 has no snmp6.
        let mut texts = self
            .host
            .connection
            .run_all(&commands)?
            .into_iter()
            .map(Option::unwrap_or_default);
        let stack: String = texts.by_ref().take(3).collect();
        let mut drops = stack_drops(family, &stack);
        for (reason, text) in reasons.into_iter().zip(texts.by_ref()) {
            drops.insert(reason, text.trim().parse().unwrap_or(0));
        }
        for (interface, text) in self.ports().into_iter().zip(texts) {
            for name in &self.host.of.drop_counters {
                let frames = driver_counter(&text, name);
                drops.extend(frames.map(|frames| (format!("{interface} {name}"), frames)));
            }
        }
        let dropped = self.forwarder.dropped_frames()?;
        drops.extend(dropped.map(|frames| ("XDP forwarder".to_owned(), frames)));
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
