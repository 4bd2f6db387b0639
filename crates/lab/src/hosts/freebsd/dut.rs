//! A FreeBSD DUT on its host: made ready, set to a variant, read back, and put back as it was.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use fwdlab_model::{
    AddressFamily, Binding, DutHost, Environment, Level, PacketFilter, Resolved, Tester, Upload,
    Variant, devices,
};

use super::boot::{KernelChoice, Loader, boot, kernel_choice};
use super::facts::facts;
use super::files::{ConfigSet, read_set};
use super::filters::{self, Filters};
use super::ports::Ports;
use super::slices::image_writer;
use super::text::{has_rss, interface_counters, queue_drops, stack_drops};
use super::watch;
use crate::counters::Drops;
use crate::dut::{holds, unbound_level};
use crate::environment::noise_sources;
use crate::hosts::boot::{BootChoice, BootId, BootLoader};
use crate::hosts::cpu_watch::CpuWatch;
use crate::hosts::detached::Window;
use crate::hosts::dut::{
    Answers, Dut, NOT_ROOT, OnHost, Step, await_rest, change_all, meaning, missing_program,
    ports_of_the_load, said,
};
use crate::hosts::facts::Facts;
use crate::hosts::ssh::{Connection, Errand};
use crate::hosts::tester::Station;
use crate::journal::Journal;
use crate::profiler::ProfileSlice;
use crate::{Asks, LabError};

const FILTERS: [PacketFilter; 3] = [PacketFilter::Pf, PacketFilter::Ipfw, PacketFilter::Ipf];

/// A FreeBSD DUT on its host.
pub(in crate::hosts) struct FreebsdDut {
    host: OnHost,
    sets: BTreeMap<PathBuf, ConfigSet>,
    filters: Filters,
}

impl FreebsdDut {
    /// Looks whether the host is one that can be measured on without cutting it off, and reads the sets of
    /// configuration files that it may get.
    ///
    /// # Errors
    /// `Host` where it is not, `File` where a set cannot be read, and those of the connection.
    pub(in crate::hosts) fn open(
        connection: &Rc<Connection>,
        of: &DutHost,
        resolved: &Resolved,
    ) -> Result<Self, LabError> {
        let host = OnHost::new(connection, of, resolved, boot(connection)?.id);
        let mut sets = BTreeMap::new();
        for binding in host.bindings.values() {
            if let Binding::Configs(folders) = binding {
                for Upload { found, .. } in folders.values() {
                    sets.insert(found.clone(), read_set(found)?);
                }
            }
        }
        let mut dut = Self {
            host,
            sets,
            filters: Filters::default(),
        };
        if dut.host.run(&["id", "-u"])?.trim() != "0" {
            return Err(dut.host.wrong(NOT_ROOT));
        }
        dut.look_at_ports()?;
        Ok(dut)
    }

    fn ports(&self) -> Ports<'_> {
        Ports {
            connection: &self.host.connection,
            of: &self.host.of,
        }
    }

    /// Which stations its ports are, and that the host can do without them.
    fn look_at_ports(&mut self) -> Result<(), LabError> {
        let mac_in = self.ports().mac(&self.host.of.interface_in)?;
        let mac_out = self.ports().mac(&self.host.of.interface_out)?;
        (self.host.mac_in, self.host.mac_out) = (mac_in, mac_out);
        self.ports().refuse_if_needed_elsewhere()
    }

    /// Whether addresses, routes and neighbours are a set's of configuration files.
    fn has_sets(&self) -> bool {
        !self.sets.is_empty()
    }

    /// Has the DUT forward, unless it does already.
    fn forward(&self, answers: &Answers, family: AddressFamily) -> Result<Option<Step>, LabError> {
        let key = forwarding(family);
        let seen = answers.needed(&sysctl(key))?;
        if seen == "1" {
            return Ok(None);
        }
        if self.has_sets() {
            let variable = match family {
                AddressFamily::Inet => "gateway_enable",
                AddressFamily::Inet6 => "ipv6_gateway_enable",
            };
            return Err(self.host.wrong(&format!(
                "its set of configuration files does not have it forward ({key} is not 1); give the set's \
                 rc.conf {variable}=\"YES\""
            )));
        }
        Ok(Some(Step {
            errands: vec![Errand::of(&["sysctl", &format!("{key}=1")])],
            ..kept_sysctl(key, seen)
        }))
    }

    /// A kernel with RSS hands packets to as many threads as it has queues for; with fewer threads almost all are
    /// dropped.
    ///
    /// # Source
    /// `netisr_start` in FreeBSD's sys/net/netisr.c: -1 becomes the number of CPUs at boot.
    fn refuse_starved_rss(&self) -> Result<(), LabError> {
        let names = [
            "kern.conftxt",
            "net.isr.maxthreads",
            "hw.ncpu",
            "net.isr.bindthreads",
        ];
        let commands = names.map(|name| ["sysctl", "-n", name].map(str::to_owned).to_vec());
        let answers = self.host.connection.run_all(&commands)?;
        let answer = |place: usize| answers[place].as_deref().unwrap_or_default().trim();
        if !has_rss(answer(0)) {
            return Ok(());
        }
        let has_all_threads = answer(1) == "-1" || answer(1) == answer(2);
        if has_all_threads && answer(3) == "1" {
            return Ok(());
        }
        Err(self.host.wrong(&format!(
            "its kernel has `options RSS`, with net.isr.maxthreads={} and net.isr.bindthreads={}: it would drop \
             almost everything; set net.isr.maxthreads=\"-1\" and net.isr.bindthreads=\"1\" in its loader.conf",
            answer(1),
            answer(3)
        )))
    }

    fn sysctl(&self, key: &str) -> Result<String, LabError> {
        Ok(self.host.run(&sysctl(key))?.trim().to_owned())
    }

    /// A tunable as it stands after a boot: as a sysctl, where the kernel shows it so, or else as the loader has
    /// handed it on.
    fn tunable(&self, name: &str) -> Result<String, LabError> {
        let commands = [["sysctl", "-n", name], ["kenv", "-q", name]];
        let commands = commands.map(|command| command.map(str::to_owned).to_vec());
        let answers = self.host.connection.run_all(&commands)?;
        let text = answers.into_iter().flatten().next().unwrap_or_default();
        Ok(text.trim().to_owned())
    }

    /// The rulesets of a variant, by filter; those of several factors are one.
    fn rulesets(&self, variant: &Variant) -> Result<Vec<(PacketFilter, String)>, LabError> {
        let mut rulesets = Vec::new();
        for filter in FILTERS {
            let all = self.host.ruleset(variant, |binding| match binding {
                Binding::Ruleset { filter: of, texts } if *of == filter => Some(texts),
                _ => None,
            })?;
            rulesets.extend(all.map(|text| (filter, text)));
        }
        Ok(rulesets)
    }

    /// The files of a set that have another content on the host.
    fn moved_file(&self, set: &ConfigSet) -> Result<Option<String>, LabError> {
        // The loader's has tunables behind it.
        let files = set
            .iter()
            .filter(|(path, _)| *path != super::files::LOADER_CONFIGURATION);
        let files: Vec<_> = files.collect();
        let commands: Vec<Vec<String>> = files
            .iter()
            .map(|(path, _)| ["sha256", "-q", path].map(str::to_owned).to_vec())
            .collect();
        let hashes = self.host.connection.run_all(&commands)?;
        let moved = files.iter().zip(hashes).find(|((_, file), hash)| {
            let asked = fwdlab_model::sha256(file.text.as_bytes());
            hash.as_deref().map(str::trim) != Some(&asked)
        });
        Ok(moved
            .map(|((path, _), _)| format!("{path} is not that of its set of configuration files")))
    }

    fn unavailable_level(&self, factor: &str, level: &Level) -> Result<Option<String>, LabError> {
        Ok(match self.host.binding(factor, level)? {
            Binding::Sysctl { key, .. } => {
                for name in devices(key) {
                    if self.host.is_refused(&["sysctl", "-n", &name])? {
                        return Ok(Some(format!("its kernel has no readable sysctl {name}")));
                    }
                }
                None
            }
            Binding::Ruleset { filter, texts } => {
                let text = meaning(texts, factor, level)?;
                filters::unavailable(&self.host.connection, *filter, text)?
            }
            Binding::Loader { tunable, values } => {
                let value = values.value(level);
                let is_plain = !value.contains(['"', '\\']);
                (!is_plain).then(|| {
                    format!("the value {value:?} of {tunable} holds a quote, which its loader would misread")
                })
            }
            Binding::Kernel(kernels) => {
                let name = meaning(kernels, factor, level)?;
                self.unavailable_kernel(name)?
            }
            Binding::Command(programs) => missing_program(&self.host.connection, programs)?,
            // Its set was read when the lab was opened.
            Binding::Configs(_) => None,
            Binding::Image(images) => match meaning(images, factor, level)? {
                Some(_) => self.unavailable_images()?,
                None => None,
            },
            _ => Some("it is set in no way that a FreeBSD host has".to_owned()),
        })
    }

    fn unavailable_images(&self) -> Result<Option<String>, LabError> {
        match image_writer(&self.host.connection) {
            Ok(_) => Ok(None),
            Err(LabError::Host { why, .. }) => Ok(Some(why)),
            Err(error) => Err(error),
        }
    }

    fn unavailable_kernel(&self, name: &str) -> Result<Option<String>, LabError> {
        let writes_files = self
            .host
            .bindings
            .values()
            .any(|binding| matches!(binding, Binding::Loader { .. } | Binding::Configs(_)));
        Ok(match kernel_choice(&self.host.connection, name)? {
            Some(KernelChoice::Folder) => None,
            Some(KernelChoice::BootEnvironment) => writes_files.then(|| {
                format!(
                    "{name} is a boot environment, in which files and tunables of this one do not count; put its \
                     kernel into a folder below /boot"
                )
            }),
            None => {
                let there = self.host.run(&[
                    "sh",
                    "-c",
                    "ls -d /boot/*/kernel; bectl list -H 2>/dev/null | cut -f 1",
                ]);
                let there = there.unwrap_or_default();
                let there: Vec<&str> = there.split_whitespace().collect();
                Some(format!(
                    "it has neither /boot/{name}/kernel nor a boot environment {name}; it has {}",
                    there.join(", ")
                ))
            }
        })
    }
}

impl Dut for FreebsdDut {
    fn host(&self) -> &OnHost {
        &self.host
    }

    fn host_mut(&mut self) -> &mut OnHost {
        &mut self.host
    }

    fn boot_and_facts(&self) -> Result<(Option<BootId>, Facts), LabError> {
        facts(&self.host.connection, self.ports().names())
    }

    fn boot_loader(&self) -> Box<dyn BootLoader> {
        let has_images = self.host.bindings.values().any(|binding| match binding {
            Binding::Image(images) => images.values().any(Option::is_some),
            _ => false,
        });
        Box::new(Loader::new(self.sets.clone(), has_images))
    }

    fn environment(&self) -> Result<Environment, LabError> {
        let questions = [
            "uname -v",
            "sysctl -n hw.model",
            "sysctl -n hw.ncpu",
            "kenv -q smbios.system.maker",
            "kenv -q smbios.system.product",
            "sysctl -n kern.vm_guest",
            "sysctl -n machdep.hyperthreading_allowed",
            "sysctl -n kern.timecounter.hardware",
            "sysctl -n vm.loadavg",
        ];
        let commands = questions.map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let answers = self.host.connection.run_all(&commands)?;
        let answer = |place: usize| {
            let text = answers[place].as_deref().unwrap_or_default();
            text.trim().trim_matches(['{', '}', ' ']).to_owned()
        };
        let named = [
            ("hypervisor", 5),
            ("hyperthreading allowed", 6),
            ("clock source", 7),
            ("load average", 8),
        ];
        let facts = named.map(|(name, place)| (name.to_owned(), answer(place)));
        let is_told = |(name, value): &(String, String)| {
            !value.is_empty() && (name != "hypervisor" || value != "none")
        };
        let facts: BTreeMap<String, String> = facts.into_iter().filter(is_told).collect();
        let machine = [answer(3), answer(4)].join(" ");
        Ok(Environment {
            kernel: answer(0),
            cpu_model: answer(1),
            cpus: answer(2).parse().unwrap_or(1),
            machine: Some(machine.trim().to_owned()).filter(|machine| !machine.is_empty()),
            noise_sources: noise_sources(&facts),
            facts,
            tester: Tester::default(),
        })
    }

    fn has_booted(&mut self) -> Result<(), LabError> {
        self.host.boot_id = boot(&self.host.connection)?.id;
        self.host.programs.forget();
        self.filters.forget();
        self.host
            .await_ports(|interface| ["ifconfig", interface].map(str::to_owned).to_vec())?;
        self.look_at_ports()?;
        await_rest(self.host.connection.host(), || {
            let ports = self.ports();
            let mut is_under_way = false;
            for name in ports.names() {
                is_under_way |= ports.interface(name)?.is_tentative;
            }
            Ok((self.facts()?, is_under_way))
        })
    }

    fn boot_choice(&self, variant: &Variant) -> Result<BootChoice, LabError> {
        let mut choice = BootChoice::default();
        for (factor, level) in &variant.levels {
            match self.host.binding(factor, level)? {
                Binding::Loader { tunable, values } => {
                    let value = values.value(level);
                    let tunables = devices(tunable).into_iter();
                    let tunables = tunables.map(|name| format!("{name}={value}"));
                    choice.parameters.extend(tunables);
                }
                Binding::Kernel(kernels) => {
                    choice.kernel = Some(meaning(kernels, factor, level)?.clone());
                }
                Binding::Configs(folders) => {
                    choice.configs = Some(meaning(folders, factor, level)?.found.clone());
                }
                Binding::Image(images) => {
                    let image = meaning(images, factor, level)?.as_ref();
                    choice.image = image.map(|image| image.found.clone());
                }
                _ => {}
            }
        }
        Ok(choice)
    }

    fn unavailable(&mut self, variant: &Variant, _: Asks) -> Result<Option<String>, LabError> {
        for (factor, level) in &variant.levels {
            if let Some(reason) = self.unavailable_level(factor, level)? {
                return Ok(Some(format!(
                    "host {}: {reason}",
                    self.host.connection.host()
                )));
            }
        }
        Ok(None)
    }

    fn set_up(
        &mut self,
        journal: &mut Journal,
        families: &[AddressFamily],
        stations: [&Station; 2],
    ) -> Result<(), LabError> {
        self.host.programs.forget();
        self.refuse_starved_rss()?;
        let ports = self.ports();
        let bound = self
            .host
            .bindings
            .values()
            .flat_map(|binding| match binding {
                Binding::Sysctl { key, .. } => devices(key),
                _ => Vec::new(),
            });
        let bound: Vec<String> = bound.collect();
        let mut questions = ports.questions(families);
        questions.extend(families.iter().map(|&family| sysctl(forwarding(family))));
        questions.extend(bound.iter().map(|name| sysctl(name)));
        let answers = Answers::ask(&self.host.connection, questions)?;
        let mut steps = ports.bring_up(&answers)?;
        for &family in families {
            steps.extend(self.forward(&answers, family)?);
            if self.has_sets() {
                ports.prove_routed(family)?;
            } else {
                steps.extend(ports.family(&answers, family, stations)?);
            }
        }
        for name in &bound {
            steps.push(kept_sysctl(name, answers.needed(&sysctl(name))?));
        }
        change_all(&self.host.connection, journal, steps)?;
        ports.await_link()?;
        let mut kept = Vec::new();
        for binding in self.host.bindings.values() {
            if let Binding::Ruleset { filter, .. } = binding
                && !kept.contains(filter)
            {
                filters::keep(&self.host.connection, journal, *filter)?;
                kept.push(*filter);
            }
        }
        Ok(())
    }

    fn await_link(&self) -> Result<(), LabError> {
        self.ports().await_link()
    }

    fn apply(&mut self, journal: &mut Journal, variant: &Variant) -> Result<(), LabError> {
        for (factor, level) in &variant.levels {
            match self.host.binding(factor, level)? {
                Binding::Sysctl { key, values } => {
                    let value = values.value(level);
                    for name in devices(key) {
                        self.host.run(&["sysctl", &format!("{name}={value}")])?;
                    }
                }
                // One ruleset for all factors together, and one boot; the owner's programs come last.
                Binding::Ruleset { .. }
                | Binding::Loader { .. }
                | Binding::Kernel(_)
                | Binding::Configs(_)
                | Binding::Image(_)
                | Binding::Command(_) => {}
                _ => return Err(unbound_level(factor, level)),
            }
        }
        for (filter, text) in self.rulesets(variant)? {
            self.filters.apply(&self.host.connection, filter, &text)?;
        }
        // The owner's programs come last, so that they find the rest in place.
        let may_restart = self.host.apply_programs(journal, variant)?;
        // Many a driver restarts its port for a change, and the link is gone for seconds.
        if may_restart {
            self.await_link()?;
        }
        Ok(())
    }

    fn moved(&mut self, variant: &Variant) -> Result<Option<String>, LabError> {
        for (factor, level) in &variant.levels {
            let mut seen_and_asked = Vec::new();
            match self.host.binding(factor, level)? {
                Binding::Sysctl { key, values } => {
                    for name in devices(key) {
                        let seen = self.sysctl(&name)?;
                        seen_and_asked.push((name, seen, values.value(level)));
                    }
                }
                Binding::Loader { tunable, values } => {
                    for name in devices(tunable) {
                        let seen = self.tunable(&name)?;
                        seen_and_asked.push((name, seen, values.value(level)));
                    }
                }
                Binding::Configs(folders) => {
                    let set = self.sets.get(&meaning(folders, factor, level)?.found);
                    if let Some(moved) = set.map(|set| self.moved_file(set)).transpose()?.flatten()
                    {
                        return Ok(Some(moved));
                    }
                }
                // All factors together have one ruleset; kernel and image were looked at when it had booted.
                Binding::Ruleset { .. } | Binding::Kernel(_) | Binding::Image(_) => {}
                Binding::Command(programs) => {
                    if let Some(check) = programs.check(level) {
                        let seen = self.host.run(&check)?;
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
        for (filter, text) in self.rulesets(variant)? {
            if let Some((asked, seen)) = self.filters.moved(&self.host.connection, filter, &text)? {
                let setting = format!("the rules of {}", filters::name(filter));
                return Ok(Some(said(&setting, &asked, &seen)));
            }
        }
        Ok(None)
    }

    fn drops(&mut self, family: AddressFamily) -> Result<Drops, LabError> {
        let protocol = match family {
            AddressFamily::Inet => "ip",
            AddressFamily::Inet6 => "ip6",
        };
        let (name_in, name_out) = (&self.host.of.interface_in, &self.host.of.interface_out);
        let commands = [
            format!("netstat -s -p {protocol}"),
            "netstat -Q".to_owned(),
            format!("netstat -i -b -n -d -W -I {name_in}"),
            format!("netstat -i -b -n -d -W -I {name_out}"),
        ];
        let commands = commands.map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let texts = self.host.connection.run_all(&commands)?;
        let text = |place: usize| texts[place].as_deref().unwrap_or_default();
        let mut drops = stack_drops(family == AddressFamily::Inet6, text(0));
        let queues = queue_drops(protocol, text(1));
        drops.insert(format!("netisr {protocol} QDrops"), queues);
        let of_ports = [(name_in, text(2)), (name_out, text(3))];
        let [receiving, sending] = ports_of_the_load(&self.host.of, self.host.direction);
        let received = ["Idrop", "Ierrs"];
        let sent = ["Drop", "Oerrs"];
        for (interfaces, counters) in [(receiving, received), (sending, sent)] {
            for (name, text) in of_ports {
                if !interfaces.contains(&name.as_str()) {
                    continue;
                }
                let all = interface_counters(text);
                for counter in counters {
                    let frames = all.get(counter).copied().unwrap_or(0);
                    drops.insert(format!("{name} {counter}"), frames);
                }
            }
        }
        Ok(drops)
    }

    fn received_and_dropped(&self) -> Vec<String> {
        let [receiving, _] = ports_of_the_load(&self.host.of, self.host.direction);
        let reasons = receiving.into_iter();
        reasons
            .map(|interface| format!("{interface} Idrop"))
            .collect()
    }

    fn cpu_watch(&self, window: Window, load_frames_min: u32) -> Vec<String> {
        watch::words(self.ports().names(), window, load_frames_min)
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
        if self.host.is_refused(&["kldstat", "-q", "-m", "hwpmc"])? {
            return Err(self
                .host
                .wrong("hwpmc is not loaded, which samples stacks; `kldload hwpmc` loads it"));
        }
        Ok(watch::sampling_words(
            &self.host.of.interface_in,
            &self.host.of.pmc_event,
            frequency_hz,
            window,
            load_frames_min,
        ))
    }

    fn sampled_stacks(
        &self,
        text: &str,
        frequency_hz: u32,
        window: Window,
    ) -> Result<ProfileSlice, String> {
        watch::sampled(text, frequency_hz, window.length)
    }
}

/// What has a kernel forward a family.
const fn forwarding(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Inet => "net.inet.ip.forwarding",
        AddressFamily::Inet6 => "net.inet6.ip6.forwarding",
    }
}

/// What reads a sysctl.
fn sysctl(name: &str) -> Vec<String> {
    ["sysctl", "-n", name].map(str::to_owned).to_vec()
}

fn kept_sysctl(name: &str, value: &str) -> Step {
    Step {
        what: format!("sysctl {name} ({value})"),
        undo: Errand::of(&["sysctl", &format!("{name}={value}")]),
        errands: Vec::new(),
    }
}
