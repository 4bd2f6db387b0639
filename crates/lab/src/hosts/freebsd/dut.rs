//! A FreeBSD DUT on its host: made ready, set to a variant, read back, and put back as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use fwdlab_model::{
    AddressFamily, Binding, DutHost, Environment, Resolved, Tester, Upload, devices,
};

use super::boot::{Loader, boot};
use super::facts::facts;
use super::ports::Ports;
use super::slices::image_writer;
use super::text::{has_rss, interface, interface_counters, queue_drops, stack_drops};
use super::watch;
use crate::LabError;
use crate::counters::Drops;
use crate::environment::noise_sources;
use crate::hosts::boot::{BootId, BootLoader};
use crate::hosts::cpu_watch::CpuWatch;
use crate::hosts::detached::Window;
use crate::hosts::dut::{Dut, DutSystem, LinkSince, NOT_ROOT, OnHost, PortLink};
use crate::hosts::facts::Facts;
use crate::hosts::protocol::Station;
use crate::hosts::ssh::Connection;
use crate::hosts::transport::Abilities;
use crate::mechanism;
use crate::mechanism::boot::{doubts, questions};
use crate::mechanism::configs::{ConfigSet, read_set};
use crate::mechanism::question::Answers;
use crate::mechanism::settings::Settings;
use crate::mechanism::step::{Errand, Step, owned, words_of};
use crate::mechanism::sysctl::{kept, shown};
use crate::profiler::ProfileSlice;

/// Shows the port `$0`, and behind a line what the kernel noted of its link, and the last it noted of anything. It notes each
/// link that comes or goes, unless `net.link.log_link_state_change` is 0.
///
/// # Source
/// FreeBSD: `do_link_state_change` in `sys/net/if.c`; `sbin/dmesg/dmesg.c`, which prints a ring from its oldest line on.
const LINK: &str = "ifconfig \"$0\" && { noted=$(dmesg); echo \"--- noted\"; \
                    printf \"%s\\n\" \"$noted\" | grep -E \"^(\\[[0-9.]+\\] )?$0: link state changed to \"; \
                    echo \"--- last\"; printf \"%s\\n\" \"$noted\" | tail -n 100; }";
const NOTED: &str = "\n--- noted\n";
const LAST: &str = "--- last";
/// How many lines these last ones are, where there are so many.
const LAST_MAX: usize = 100;

const LINKS_NOT_NOTED: &str = "net.link.log_link_state_change of the DUT is 0, so that a link that is lost under the load is not \
                               seen; set it to 1";

/// A FreeBSD DUT on its host.
struct FreebsdDut {
    abilities: WritesImages,
    sets: BTreeMap<PathBuf, ConfigSet>,
    boots_images: bool,
    /// Whether it boots with other files than its owner's: those of a set, an image or a boot environment.
    boots_other_files: bool,
    /// The tunables that the experiment sets.
    tunables: Vec<String>,
}

/// Looks whether the host is one that can be measured on without cutting it off, and reads the sets of configuration files
/// that it may get.
///
/// # Errors
/// `Host` where it is not, `File` where a set cannot be read, and those of the connection.
pub(in crate::hosts) fn open_dut(
    connection: &Rc<Connection>,
    of: &DutHost,
    resolved: &Resolved,
) -> Result<Dut, LabError> {
    let host = OnHost::new(connection, of, resolved, boot(connection)?.id);
    let mut sets = BTreeMap::new();
    let mut boots_images = false;
    let mut boots_other_files = false;
    let mut tunables = Vec::new();
    for binding in resolved.lab.bindings.values() {
        boots_other_files |= matches!(
            binding,
            Binding::Configs(_) | Binding::Image(_) | Binding::Kernel(_)
        );
        match binding {
            Binding::Loader { tunable, .. } => tunables.extend(devices(tunable)),
            Binding::Configs(folders) => {
                for Upload { found, .. } in folders.values() {
                    sets.insert(found.clone(), read_set(found)?);
                }
            }
            Binding::Image(images) => boots_images |= images.values().any(Option::is_some),
            _ => {}
        }
    }
    let settings = Settings::new(resolved, mechanism::on_freebsd(resolved, of, &sets));
    if host.run(&["id", "-u"])?.trim() != "0" {
        return Err(host.connection.wrong(NOT_ROOT));
    }
    let system = FreebsdDut {
        abilities: WritesImages,
        sets,
        boots_images,
        boots_other_files,
        tunables,
    };
    Dut::new(host, Box::new(system), settings)
}

impl FreebsdDut {
    /// Whether addresses, routes and neighbours are a set's of configuration files.
    fn has_sets(&self) -> bool {
        !self.sets.is_empty()
    }

    /// Has the DUT forward, unless it does already.
    fn forward(
        &self,
        host: &OnHost,
        answers: &Answers,
        family: AddressFamily,
    ) -> Result<Option<Step>, LabError> {
        let key = forwarding(family);
        let seen = answers.needed(&shown(key))?;
        if seen == "1" {
            return Ok(None);
        }
        if self.has_sets() {
            let variable = match family {
                AddressFamily::Inet => "gateway_enable",
                AddressFamily::Inet6 => "ipv6_gateway_enable",
            };
            return Err(host.connection.wrong(format!(
                "its set of configuration files does not have it forward ({key} is not 1); give the set's \
                 rc.conf {variable}=\"YES\""
            )));
        }
        Ok(Some(Step {
            errands: vec![Errand::of(&["sysctl", &format!("{key}=1")])],
            ..kept(key, seen)
        }))
    }
}

/// Why it would not be known whether the kernel has read tunables, in sentences.
///
/// # Errors
/// Those of the connection.
pub(in crate::hosts) fn doubtful_tunables(
    connection: &Connection,
    names: &[String],
) -> Result<Vec<String>, LabError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let questions: BTreeSet<_> = names.iter().flat_map(|name| questions(name)).collect();
    Ok(doubts(
        names,
        &connection.ask(questions.into_iter().collect())?,
    ))
}

/// A kernel with RSS hands packets to as many threads as it has queues for; with fewer threads almost all are
/// dropped.
///
/// # Source
/// `netisr_init` in FreeBSD's sys/net/netisr.c: -1 becomes the number of CPUs at boot. `kern.conftxt` is there with
/// `options INCLUDE_CONFIG_FILE` alone (sys/kern/kern_mib.c), `net.inet.rss` with `options RSS` (sys/net/rss_config.c).
fn refuse_starved_rss(host: &OnHost) -> Result<(), LabError> {
    let names = [
        "kern.conftxt",
        "net.isr.maxthreads",
        "hw.ncpu",
        "net.isr.bindthreads",
        "net.inet.rss.buckets",
    ];
    let answers = host.connection.run_all(&names.map(shown))?;
    let answer = |place: usize| answers[place].as_deref().unwrap_or_default().trim();
    if !has_rss(answer(0)) && answers[4].is_none() {
        return Ok(());
    }
    let has_all_threads = answer(1) == "-1" || answer(1) == answer(2);
    if has_all_threads && answer(3) == "1" {
        return Ok(());
    }
    Err(host.connection.wrong(format!(
        "its kernel has `options RSS`, with net.isr.maxthreads={} and net.isr.bindthreads={}: it would drop \
         almost everything; set net.isr.maxthreads=\"-1\" and net.isr.bindthreads=\"1\" in its loader.conf",
        answer(1),
        answer(3)
    )))
}

impl DutSystem for FreebsdDut {
    fn abilities(&mut self) -> &mut dyn Abilities {
        &mut self.abilities
    }

    fn boot_and_facts(&self, host: &OnHost) -> Result<(Option<BootId>, Facts), LabError> {
        facts(&host.connection, host.ports())
    }

    fn boot_loader(&self) -> Box<dyn BootLoader> {
        Box::new(Loader::new(self.sets.clone(), self.boots_images))
    }

    fn environment(&self, host: &OnHost) -> Result<Environment, LabError> {
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
            "sysctl -n net.link.log_link_state_change",
        ];
        let answers = host.connection.run_all(&questions.map(words_of))?;
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
        let mut noise_sources = noise_sources(&facts);
        if answer(9) == "0" {
            noise_sources.push(LINKS_NOT_NOTED.to_owned());
        }
        noise_sources.extend(doubtful_tunables(&host.connection, &self.tunables)?);
        Ok(Environment {
            kernel: answer(0),
            cpu_model: answer(1),
            cpus: answer(2).parse().unwrap_or(1),
            machine: Some(machine.trim().to_owned()).filter(|machine| !machine.is_empty()),
            noise_sources,
            facts,
            tester: Tester::default(),
        })
    }

    fn look_at_ports(&self, host: &OnHost) -> Result<[String; 2], LabError> {
        let ports = Ports(host);
        let [name_in, name_out] = host.ports();
        let macs = [ports.mac(name_in)?, ports.mac(name_out)?];
        ports.refuse_if_needed_elsewhere()?;
        Ok(macs)
    }

    fn question_of_port(&self, interface: &str) -> Vec<String> {
        owned(&["ifconfig", interface])
    }

    fn has_tentative_addresses(&self, host: &OnHost) -> Result<bool, LabError> {
        let mut is_under_way = false;
        for name in host.ports() {
            is_under_way |= Ports(host).interface(name)?.is_tentative;
        }
        Ok(is_under_way)
    }

    fn refuse_losses(
        &self,
        host: &OnHost,
        families: &[AddressFamily],
        stations: [&Station; 2],
    ) -> Result<(), LabError> {
        // What its owner's files set is not there then.
        if self.boots_other_files {
            return Ok(());
        }
        let ports = Ports(host);
        let answers = host.connection.ask(ports.questions(families))?;
        for &family in families {
            ports.family(&answers, family, stations)?;
        }
        Ok(())
    }

    fn set_up(
        &self,
        host: &OnHost,
        families: &[AddressFamily],
        stations: [&Station; 2],
        looks: Vec<Vec<String>>,
    ) -> Result<(Vec<Step>, Answers), LabError> {
        refuse_starved_rss(host)?;
        let ports = Ports(host);
        let mut questions = ports.questions(families);
        questions.extend(families.iter().map(|&family| shown(forwarding(family))));
        questions.extend(looks);
        let answers = host.connection.ask(questions)?;
        let mut steps = ports.bring_up(&answers)?;
        for &family in families {
            steps.extend(self.forward(host, &answers, family)?);
            if self.has_sets() {
                ports.prove_routed(family)?;
            } else {
                steps.extend(ports.family(&answers, family, stations)?);
            }
        }
        Ok((steps, answers))
    }

    fn await_link(&self, host: &OnHost) -> Result<(), LabError> {
        Ports(host).await_link()
    }

    fn prove_neighbours(
        &self,
        host: &OnHost,
        families: &[AddressFamily],
        stations: [&Station; 2],
    ) -> Result<(), LabError> {
        if self.has_sets() {
            return Ok(());
        }
        Ports(host).prove_neighbours(families, stations)
    }

    fn drops(
        &self,
        host: &OnHost,
        family: AddressFamily,
        more: Vec<Vec<String>>,
    ) -> Result<(Drops, Answers), LabError> {
        let protocol = match family {
            AddressFamily::Inet => "ip",
            AddressFamily::Inet6 => "ip6",
        };
        let [name_in, name_out] = host.ports();
        let commands = [
            format!("netstat -s -p {protocol}"),
            "netstat -Q".to_owned(),
            format!("netstat -i -b -n -d -W -I {name_in}"),
            format!("netstat -i -b -n -d -W -I {name_out}"),
        ];
        let texts = (host.connection).run_all(&commands.map(|line| words_of(&line)))?;
        let text = |place: usize| texts[place].as_deref().unwrap_or_default();
        let mut drops = stack_drops(family == AddressFamily::Inet6, text(0));
        let queues = queue_drops(protocol, text(1));
        drops.insert(format!("netisr {protocol} QDrops"), queues);
        let of_ports = [(name_in, text(2)), (name_out, text(3))];
        let [receiving, sending] = host.ports_of_the_load();
        let received = ["Idrop", "Ierrs"];
        let sent = ["Drop", "Oerrs"];
        for (interfaces, counters) in [(receiving, received), (sending, sent)] {
            for (name, text) in of_ports {
                if !interfaces.contains(&name) {
                    continue;
                }
                let all = interface_counters(text);
                for counter in counters {
                    let frames = all.get(counter).copied().unwrap_or(0);
                    drops.insert(format!("{name} {counter}"), frames);
                }
            }
        }
        Ok((drops, host.connection.ask(more)?))
    }

    fn question_of_link(&self, interface: &str) -> Vec<String> {
        owned(&["sh", "-c", LINK, interface])
    }

    fn link(&self, shown: &str) -> PortLink {
        link(shown)
    }

    fn link_since(&self, before: &str, now: &str) -> LinkSince {
        link_since(before, now)
    }

    fn received_and_dropped(&self) -> &'static str {
        "Idrop"
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
        if host.is_refused(&["kldstat", "-q", "-m", "hwpmc"])? {
            return Err(host
                .connection
                .wrong("hwpmc is not loaded, which samples stacks; `kldload hwpmc` loads it"));
        }
        Ok(watch::sampling_words(
            &host.of.interface_in,
            &host.of.pmc_event,
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

fn link(shown: &str) -> PortLink {
    let (shown, history) = shown.split_once(NOTED).unwrap_or((shown, ""));
    PortLink {
        is_up: interface(shown).is_up,
        history: history.to_owned(),
    }
}

/// What became of a link from one history to the next, which are both what a ring held then: it forgets what is oldest.
fn link_since(before: &str, now: &str) -> LinkSince {
    let [(noted_before, last_before), (noted, last)] =
        [before, now].map(|history| history.split_once(LAST).unwrap_or((history, "")));
    if !noted_before.ends_with(noted) {
        return LinkSince::Lost;
    }
    // What is newer than a line that was there before has not been forgotten.
    if !noted.is_empty() || is_continued(last_before, last) {
        LinkSince::Kept
    } else {
        LinkSince::Unknown
    }
}

/// Whether no line can have been forgotten between two ends of what was noted.
fn is_continued(before: &str, now: &str) -> bool {
    let [before, now] = [before, now].map(|text| text.trim().lines().collect::<Vec<_>>());
    let known = (0..before.len())
        .map(|from| &before[from..])
        .find(|known| now.starts_with(known));
    match known {
        // A line that is noted again and again may be another one.
        Some(known) => before.len() < LAST_MAX || known.iter().any(|line| *line != known[0]),
        None => before.is_empty() && now.len() < LAST_MAX,
    }
}

/// What has a kernel forward a family.
const fn forwarding(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Inet => "net.inet.ip.forwarding",
        AddressFamily::Inet6 => "net.inet6.ip6.forwarding",
    }
}

/// Images can be written there.
struct WritesImages;

impl Abilities for WritesImages {
    fn no_image_writer(&self, host: &OnHost) -> Result<Option<String>, LabError> {
        match image_writer(&host.connection) {
            Err(LabError::Host { why, .. }) => Ok(Some(why)),
            written => written.map(|_| None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // FreeBSD, `sys/net/if.c`, `do_link_state_change`.
    #[test]
    fn a_link_that_went_is_seen_in_what_the_kernel_noted() {
        let shown = |noted: &[&str], last: &[String]| {
            let lines = |lines: &[String]| {
                lines
                    .iter()
                    .map(|line| format!("{line}\n"))
                    .collect::<String>()
            };
            let noted = noted
                .iter()
                .map(|to| format!("ix0: link state changed to {to}"));
            let link = link(&format!(
                "ix0: flags=1008843<UP,BROADCAST,RUNNING> metric 0 mtu 1500\n\tstatus: active\n--- noted\n{}--- last\n{}",
                lines(&noted.collect::<Vec<_>>()),
                lines(last).trim()
            ));
            assert!(link.is_up);
            link.history
        };
        let numbers = |range: std::ops::Range<u32>| {
            range
                .map(|number| format!("line {number}"))
                .collect::<Vec<_>>()
        };
        let (few, window) = (numbers(0..5), numbers(0..100));
        let flapped = ["DOWN", "UP"];
        for (before, now, expected) in [
            (
                shown(&flapped, &few),
                shown(&flapped, &few),
                LinkSince::Kept,
            ),
            (
                shown(&flapped, &few),
                shown(&["DOWN", "UP", "DOWN", "UP"], &few),
                LinkSince::Lost,
            ),
            (shown(&[], &few), shown(&flapped, &few), LinkSince::Lost),
            // What was noted first is forgotten.
            (
                shown(&["DOWN", "UP", "DOWN", "UP"], &window),
                shown(&flapped, &numbers(900..1000)),
                LinkSince::Kept,
            ),
            (shown(&[], &[]), shown(&[], &[]), LinkSince::Kept),
            (
                shown(&[], &few),
                shown(&[], &numbers(0..40)),
                LinkSince::Kept,
            ),
            (shown(&[], &window), shown(&[], &window), LinkSince::Kept),
            (
                shown(&[], &window),
                shown(&[], &numbers(30..130)),
                LinkSince::Kept,
            ),
            // All that was there before is forgotten, and what came in between may be, too.
            (
                shown(&flapped, &window),
                shown(&[], &numbers(900..1000)),
                LinkSince::Unknown,
            ),
            (
                shown(&[], &window),
                shown(&[], &numbers(100..200)),
                LinkSince::Unknown,
            ),
            (shown(&[], &[]), shown(&[], &window), LinkSince::Unknown),
            (
                shown(&[], &vec!["again".to_owned(); 100]),
                shown(&[], &vec!["again".to_owned(); 100]),
                LinkSince::Unknown,
            ),
        ] {
            assert_eq!(link_since(&before, &now), expected, "{before:?} {now:?}");
        }
        assert!(!link("ix0: flags=8802<BROADCAST> metric 0 mtu 1500").is_up);
    }
}
