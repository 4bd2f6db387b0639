//! A DUT on its host, whatever its system: what a measurement needs of it, and what all systems do alike.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, Direction, DutHost, Environment, Resolved, Stratum, Variant};

use super::boot::{BootId, BootLoader};
use super::changes::change_all;
use super::cpu_watch::CpuWatch;
use super::detached::{READY, Window};
use super::facts::{Facts, difference, restless};
use super::own_programs::OwnPrograms;
use super::protocol::Station;
use super::ssh::Connection;
use super::tester::Crossing;
use super::transport::{Abilities, OverSsh, words};
use crate::counters::Drops;
use crate::journal::Journal;
use crate::mechanism::question::Answers;
use crate::mechanism::settings::Settings;
use crate::mechanism::step::{BootChoice, Step};
use crate::mechanism::transport::Transport as _;
use crate::profiler::ProfileSlice;
use crate::program::command_line;
use crate::{Asks, LabError};

/// What is wrong where ssh logs in as somebody else.
pub(super) const NOT_ROOT: &str = "fwdlab has to log in to it as root, who alone may change its settings: `host = \
                                   \"root@…\"`, or `User root` in the ssh configuration";

/// How long ports may take to be there, and to have a link, once the host answers.
pub(super) const PORTS_TIME_MAX: Duration = Duration::from_secs(120);
/// How long a host that has booted may go on changing by itself.
const REST_TIME_MAX: Duration = Duration::from_secs(300);
/// How long nothing may have changed until it counts as at rest.
const BETWEEN_LOOKS_AT_REST: Duration = Duration::from_secs(1);

/// How long it is watched to see whether it can be.
const TRIAL_WINDOW: Window = Window {
    settle: Duration::ZERO,
    length: Duration::from_millis(50),
};

/// What of a DUT on a host depends on its system.
pub(super) trait DutSystem {
    /// Attaching programs and writing images.
    fn abilities(&mut self) -> &mut dyn Abilities;

    /// All that may change how it forwards, and in which boot, where that is known.
    ///
    /// # Errors
    /// Those of the connection.
    fn boot_and_facts(&self, host: &OnHost) -> Result<(Option<BootId>, Facts), LabError>;

    /// What chooses what it boots.
    fn boot_loader(&self) -> Box<dyn BootLoader>;

    /// What the host is.
    ///
    /// # Errors
    /// Those of the connection.
    fn environment(&self, host: &OnHost) -> Result<Environment, LabError>;

    /// The stations of its ports, towards the generator and towards the sink, once it is sure that the host can do without
    /// them.
    ///
    /// # Errors
    /// `Host` where it cannot, and those of the connection.
    fn look_at_ports(&self, host: &OnHost) -> Result<[String; 2], LabError>;

    /// Proves that the counters of drops which the lab file names are there.
    ///
    /// # Errors
    /// `Host` where one is not, and those of the connection.
    fn prove_counters(&self, _host: &OnHost) -> Result<(), LabError> {
        Ok(())
    }

    /// A command that the host refuses until it has a port.
    fn question_of_port(&self, interface: &str) -> Vec<String>;

    /// Waits, after a boot, for the services that set what may change how it forwards.
    ///
    /// # Errors
    /// Those of the connection.
    fn await_services(&mut self, _host: &OnHost) -> Result<(), LabError> {
        Ok(())
    }

    /// Whether an address is still being proved to be the only one.
    ///
    /// # Errors
    /// Those of the connection.
    fn has_tentative_addresses(&self, host: &OnHost) -> Result<bool, LabError>;

    /// Refuses a host with something of its owner's that could not be put back; asks only what holds in any of its boots.
    ///
    /// # Errors
    /// `Host` where there is such, and those of the connection.
    fn refuse_losses(
        &self,
        host: &OnHost,
        families: &[AddressFamily],
        stations: [&Station; 2],
    ) -> Result<(), LabError>;

    /// What gives it addresses, neighbours and routes for the frames from the generator to the sink, and how everything was
    /// that `looks` ask for.
    ///
    /// # Errors
    /// `Host` where it cannot be made ready, and those of the connection.
    fn set_up(
        &self,
        host: &OnHost,
        families: &[AddressFamily],
        stations: [&Station; 2],
        looks: Vec<Vec<String>>,
    ) -> Result<(Vec<Step>, Answers), LabError>;

    /// Waits until those ports that are up have a link, and addresses that are proved to be the only ones.
    ///
    /// # Errors
    /// `Host` where one has none in time, and those of the connection.
    fn await_link(&self, host: &OnHost) -> Result<(), LabError>;

    /// Proves that the stations are the neighbours that they were set to be, where a system may lose them.
    ///
    /// # Errors
    /// `Host` where one is not, and those of the connection.
    fn prove_neighbours(
        &self,
        _host: &OnHost,
        _families: &[AddressFamily],
        _stations: [&Station; 2],
    ) -> Result<(), LabError> {
        Ok(())
    }

    /// Frames that the system dropped so far, by reason, and the answers to more questions.
    ///
    /// # Errors
    /// Those of the connection.
    fn drops(
        &self,
        host: &OnHost,
        family: AddressFamily,
        questions: Vec<Vec<String>>,
    ) -> Result<(Drops, Answers), LabError>;

    /// What shows whether a port is up, and what its link did so far.
    fn question_of_link(&self, interface: &str) -> Vec<String>;

    /// What was shown then.
    fn link(&self, shown: &str) -> PortLink;

    /// What became of a port's link from one history to the next; none is lost where a system keeps no history.
    fn link_since(&self, before: &str, now: &str) -> LinkSince {
        match before == now {
            true => LinkSince::Kept,
            false => LinkSince::Lost,
        }
    }

    /// The counter of an interface's received frames that it dropped, as [`drops`](Self::drops) names it.
    fn received_and_dropped(&self) -> &'static str;

    /// The command of a program that waits there for so many frames, and then tells what the CPUs do in a window.
    fn cpu_watch(&self, host: &OnHost, window: Window, load_frames_min: u32) -> Vec<String>;

    /// What such a program has printed; none where that is something else.
    fn watched_cpus(&self, text: &str) -> Option<CpuWatch>;

    /// The command of a program that waits there for so many frames, and then samples stacks in a window; brought there
    /// first, where it has to be.
    ///
    /// # Errors
    /// `Host` where it does not run there, and those of the connection.
    fn stack_watch(
        &mut self,
        host: &OnHost,
        window: Window,
        frequency_hz: u32,
        load_frames_min: u32,
    ) -> Result<Vec<String>, LabError>;

    /// What such a program has printed, by the CPUs that forward, or why that is no profile.
    fn sampled_stacks(
        &self,
        text: &str,
        frequency_hz: u32,
        window: Window,
    ) -> Result<ProfileSlice, String>;
}

/// A port of a DUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortLink {
    /// Whether it is set up.
    pub(super) is_up: bool,
    /// What its link did so far, as its system tells.
    pub(super) history: String,
}

/// What became of a port's link between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkSince {
    Kept,
    Lost,
    /// Its history does not reach back to the first look.
    Unknown,
}

/// The ports of a DUT by their names.
pub(super) type PortLinks = BTreeMap<String, PortLink>;

/// A port that a host lacks, with those that it has, which a command lists.
pub(super) fn no_interface(connection: &Connection, name: &str, list: &[&str]) -> LabError {
    let listed = connection.run(list, "").unwrap_or_default();
    let mut there: Vec<&str> = listed.split_whitespace().collect();
    there.retain(|name| !matches!(*name, "lo" | "lo0"));
    connection.wrong(match there.as_slice() {
        [] => format!(
            "it has no interface {name}; `{}` lists those it has",
            command_line(list)
        ),
        there => format!("it has no interface {name}; it has {}", there.join(", ")),
    })
}

/// A DUT on its host: made ready, set to a variant, read back, and put back as it was.
pub(super) struct Dut {
    pub(super) host: OnHost,
    pub(super) system: Box<dyn DutSystem>,
    settings: Settings,
    own: OwnPrograms,
    /// Facts that change by themselves.
    restless: BTreeSet<String>,
}

impl Dut {
    /// One whose ports have been looked at.
    ///
    /// # Errors
    /// As of [`look_at_ports`](DutSystem::look_at_ports).
    pub(super) fn new(
        mut host: OnHost,
        system: Box<dyn DutSystem>,
        settings: Settings,
    ) -> Result<Self, LabError> {
        host.macs = system.look_at_ports(&host)?;
        Ok(Self {
            host,
            system,
            settings,
            own: OwnPrograms::default(),
            restless: BTreeSet::new(),
        })
    }

    /// Frames of a stratum that cross it.
    pub(super) fn crossed_by<'a>(
        &'a self,
        resolved: &'a Resolved,
        stratum: Stratum,
    ) -> Crossing<'a> {
        let [mac_in, mac_out] = &self.host.macs;
        Crossing {
            resolved,
            stratum,
            mac_in,
            mac_out,
        }
    }

    /// Facts that change by themselves.
    pub(super) fn restless(&self) -> &BTreeSet<String> {
        &self.restless
    }

    /// Takes note of more facts that change by themselves.
    pub(super) fn note_restless(&mut self, names: BTreeSet<String>) {
        self.restless.extend(names);
    }

    /// Takes note of another boot: nothing stands of what was set in the last one.
    ///
    /// # Errors
    /// `Host` where its ports do not come up in time, or it does not come to rest.
    pub(super) fn has_booted(&mut self) -> Result<(), LabError> {
        let (host, system) = (&mut self.host, &mut self.system);
        system.await_services(host)?;
        host.boot_id = system.boot_loader().look(&host.connection)?.id;
        self.settings.forget();
        self.own.forget();
        system.abilities().forget();
        host.await_ports(|interface| system.question_of_port(interface))?;
        host.macs = system.look_at_ports(host)?;
        system.prove_counters(host)?;
        await_rest(&self.host.connection, || {
            let is_under_way = self.system.has_tentative_addresses(&self.host)?;
            Ok((self.facts()?, is_under_way))
        })
    }

    /// What sets it to variants, and the way to the host that it sets.
    fn settings(&mut self) -> (&mut Settings, OverSsh<'_>) {
        let over_ssh = OverSsh {
            host: &self.host,
            abilities: self.system.abilities(),
            own: &mut self.own,
        };
        (&mut self.settings, over_ssh)
    }

    /// What it has to boot for a variant.
    ///
    /// # Errors
    /// `Unbound` for a level that no binding knows.
    pub(super) fn boot_choice(&self, variant: &Variant) -> Result<BootChoice, LabError> {
        self.settings.boot_choice(variant)
    }

    /// All that may change how it forwards, but for what changes by itself.
    ///
    /// # Errors
    /// `Rebooted` where it is in another boot than the one in which it was set up.
    pub(super) fn facts(&self) -> Result<Facts, LabError> {
        let mut facts = self.all_facts()?;
        facts.retain(|name, _| !self.restless.contains(name));
        Ok(facts)
    }

    /// The same with what changes by itself.
    ///
    /// # Errors
    /// As of [`facts`](Self::facts).
    fn all_facts(&self) -> Result<Facts, LabError> {
        match self.system.boot_and_facts(&self.host)? {
            (Some(boot), _) if !boot.is(&self.host.boot_id) => Err(LabError::Rebooted {
                host: self.host.connection.host().to_owned(),
            }),
            (_, facts) => Ok(facts),
        }
    }

    /// Finds out which facts change by themselves, while nothing is measured.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn look_for_restless_facts(&mut self) -> Result<&BTreeSet<String>, LabError> {
        self.restless = restless(|| self.all_facts())?;
        Ok(&self.restless)
    }

    /// Why the host cannot have a variant; none where it can.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn unavailable(
        &mut self,
        variant: &Variant,
        asks: Asks,
    ) -> Result<Option<String>, LabError> {
        let (settings, mut over_ssh) = self.settings();
        let reason = settings.unavailable(&mut over_ssh, variant, asks)?;
        let host = over_ssh.host.connection.host();
        Ok(reason.map(|reason| format!("host {host}: {reason}")))
    }

    /// Proves that it can be given what frames need; changes nothing.
    ///
    /// # Errors
    /// As of [`set_up`](Self::set_up).
    pub(super) fn prove_set_up(
        &self,
        families: &[AddressFamily],
        stations: [&Station; 2],
    ) -> Result<(), LabError> {
        let set_up = self
            .system
            .set_up(&self.host, families, stations, Vec::new());
        set_up.map(drop)
    }

    /// Gives it addresses, neighbours and routes for the frames from the generator to the sink, and notes how
    /// everything was that a variant may set. What is changed is announced to the journal first.
    ///
    /// # Errors
    /// `Host` where it cannot be made ready, and those of the connection.
    pub(super) fn set_up(
        &mut self,
        journal: &mut Journal,
        families: &[AddressFamily],
        stations: [&Station; 2],
    ) -> Result<(), LabError> {
        let looks = self.settings.looks().filter_map(|look| words(&look));
        let looks = looks.collect();
        let (mut steps, answers) = self.system.set_up(&self.host, families, stations, looks)?;
        self.own.forget();
        steps.extend(self.settings.keep(&answers)?);
        change_all(&self.host.connection, journal, steps)?;
        self.await_link()?;
        self.prove_neighbours(families, stations)
    }

    /// Proves that the stations are the neighbours that they were set to be.
    ///
    /// # Errors
    /// As of [`DutSystem::prove_neighbours`].
    pub(super) fn prove_neighbours(
        &self,
        families: &[AddressFamily],
        stations: [&Station; 2],
    ) -> Result<(), LabError> {
        self.system.prove_neighbours(&self.host, families, stations)
    }

    /// Waits until those ports that are up have a link, and addresses that are proved to be the only ones.
    ///
    /// # Errors
    /// As of [`DutSystem::await_link`].
    pub(super) fn await_link(&self) -> Result<(), LabError> {
        self.system.await_link(&self.host)
    }

    /// Lets go of what is there only as long as somebody holds it, and stands in no journal.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn release(&mut self) -> Result<(), LabError> {
        self.system.abilities().release()
    }

    /// Sets all levels of a variant but what takes a boot.
    ///
    /// # Errors
    /// What the host refuses.
    pub(super) fn apply(
        &mut self,
        journal: &mut Journal,
        variant: &Variant,
    ) -> Result<(), LabError> {
        let (settings, mut over_ssh) = self.settings();
        // Many a driver restarts its port for such a change, and the link is gone for seconds.
        if over_ssh.carry_out(journal, settings.actions(variant)?)? {
            self.await_link()?;
        }
        Ok(())
    }

    /// What reads back as something else than the variant's; none where all is as asked.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn moved(&mut self, variant: &Variant) -> Result<Option<String>, LabError> {
        let (settings, mut over_ssh) = self.settings();
        let moved = settings.moved(&mut over_ssh, variant)?;
        Ok(moved.map(|moved| moved.to_string()))
    }

    /// Frames dropped so far, by reason.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn drops(&mut self, family: AddressFamily) -> Result<Drops, LabError> {
        self.drops_and_links(family).map(|(drops, _)| drops)
    }

    /// The same, and its ports, which have to be up.
    ///
    /// # Errors
    /// `Host` where one is down, and those of the connection.
    pub(super) fn drops_and_links(
        &mut self,
        family: AddressFamily,
    ) -> Result<(Drops, PortLinks), LabError> {
        let ports = self.host.ports().map(|port| {
            let question = self.system.question_of_link(port);
            (port.to_owned(), question)
        });
        let mut questions = self.settings.counters();
        questions.extend(ports.iter().map(|(_, question)| question.clone()));
        let (mut drops, answers) = self.system.drops(&self.host, family, questions)?;
        let mut links = PortLinks::new();
        for (port, question) in ports {
            let link = self.system.link(answers.needed(&question)?);
            if !link.is_up {
                // A host that has booted by itself says so, and the block is measured again.
                self.facts()?;
                return Err(self.host.connection.wrong(format!(
                    "its port {port} went down during the block; set it up (`ip link set dev {port} up`, on FreeBSD \
                     `ifconfig {port} up`), and start the run again"
                )));
            }
            links.insert(port, link);
        }
        let (settings, mut over_ssh) = self.settings();
        drops.extend(settings.drops(&mut over_ssh, &answers)?);
        Ok((drops, links))
    }

    /// The ports to whose link something happened between two looks, or may have.
    pub(super) fn links_that(
        &self,
        became: LinkSince,
        before: &PortLinks,
        now: &PortLinks,
    ) -> BTreeSet<String> {
        let is_so = |(port, now): &(&String, &PortLink)| {
            before.get(*port).is_some_and(|before| {
                (self.system).link_since(&before.history, &now.history) == became
            })
        };
        let ports = now.iter().filter(is_so);
        ports.map(|(port, _)| port.clone()).collect()
    }

    /// Under which frames are counted that its receiving interfaces dropped.
    pub(super) fn received_and_dropped(&self) -> Vec<String> {
        let [receiving, _] = self.host.ports_of_the_load();
        let counter = self.system.received_and_dropped();
        let receiving = receiving.into_iter();
        receiving
            .map(|interface| format!("{interface} {counter}"))
            .collect()
    }

    /// Why its CPUs cannot be watched under a load; none where they can.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn cpu_watch_unavailable(&self) -> Result<Option<String>, LabError> {
        let words = self.system.cpu_watch(&self.host, TRIAL_WINDOW, 0);
        Ok(match tried(&self.host.connection, &words)? {
            Ok(text) if self.system.watched_cpus(&text).is_some() => None,
            Ok(text) => Some(format!("{text:?} is not what was asked for")),
            Err(why) => Some(why),
        })
    }

    /// Why its stacks cannot be sampled; none where they can.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn stack_watch_unavailable(
        &mut self,
        frequency_hz: u32,
    ) -> Result<Option<String>, LabError> {
        let (host, system) = (&self.host, &mut self.system);
        let words = match system.stack_watch(host, TRIAL_WINDOW, frequency_hz, 0) {
            Err(error) if !error.is_of_a_connection() => return Ok(Some(error.to_string())),
            words => words?,
        };
        let printed = tried(&host.connection, &words)?;
        let sampled =
            printed.and_then(|text| system.sampled_stacks(&text, frequency_hz, TRIAL_WINDOW));
        Ok(sampled.err())
    }
}

/// What a DUT on a host is whatever its system: how it is reached, what its lab file says, and what stands there.
pub(super) struct OnHost {
    pub(super) connection: Rc<Connection>,
    pub(super) of: DutHost,
    pub(super) direction: Direction,
    pub(super) boot_id: BootId,
    /// The stations of the ports towards the generator and towards the sink.
    pub(super) macs: [String; 2],
}

impl OnHost {
    /// That of a host which is in a boot; the stations of its ports are not known yet.
    pub(super) fn new(
        connection: &Rc<Connection>,
        of: &DutHost,
        resolved: &Resolved,
        boot_id: BootId,
    ) -> Self {
        Self {
            connection: Rc::clone(connection),
            of: of.clone(),
            direction: resolved.direction(),
            boot_id,
            macs: [String::new(), String::new()],
        }
    }

    /// Its ports, towards the generator and towards the sink.
    pub(super) fn ports(&self) -> [&str; 2] {
        [&self.of.interface_in, &self.of.interface_out]
    }

    /// The ports at which it takes the tester's frames in, and those that it sends them from.
    pub(super) fn ports_of_the_load(&self) -> [Vec<&str>; 2] {
        let [receiving, sending] = self.ports();
        match self.direction {
            Direction::Forward => [vec![receiving], vec![sending]],
            Direction::Both => [self.ports().to_vec(), self.ports().to_vec()],
        }
    }

    /// What a command prints.
    ///
    /// # Errors
    /// What the host refuses, and those of the connection.
    pub(super) fn run(&self, words: &[impl AsRef<str>]) -> Result<String, LabError> {
        self.connection.run(words, "")
    }

    /// Whether the host refuses a command.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn is_refused(&self, words: &[impl AsRef<str>]) -> Result<bool, LabError> {
        is_refused(&self.connection, words)
    }

    /// Waits until both ports are there: drivers are loaded while sshd answers already. `question` is refused of one that is
    /// not.
    ///
    /// # Errors
    /// `Host` where one does not come in time, and those of the connection.
    pub(super) fn await_ports(
        &self,
        question: impl Fn(&str) -> Vec<String>,
    ) -> Result<(), LabError> {
        let start = Instant::now();
        for interface in self.ports() {
            let question = question(interface);
            while self.is_refused(&question)? {
                if start.elapsed() > PORTS_TIME_MAX {
                    return Err(self.connection.wrong(format!(
                        "it has booted, and {interface} has not come in {} s",
                        PORTS_TIME_MAX.as_secs()
                    )));
                }
                sleep(Duration::from_secs(1));
            }
        }
        Ok(())
    }
}

/// What a program prints that is to wait for a load and gets none to wait for, or why it fails.
fn tried(connection: &Connection, words: &[String]) -> Result<Result<String, String>, LabError> {
    let printed = unless_refused(connection.run(words, ""))?;
    Ok(printed.map(|text| {
        let behind = text
            .strip_prefix(READY)
            .and_then(|text| text.strip_prefix('\n'));
        behind.map(str::to_owned).unwrap_or(text)
    }))
}

/// What a host refuses ends nothing where it only adds to what is known of it: why, then.
///
/// # Errors
/// Every other.
pub(super) fn unless_refused<T>(
    result: Result<T, LabError>,
) -> Result<Result<T, String>, LabError> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error @ LabError::OnHost { .. }) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Whether a host refuses a command.
///
/// # Errors
/// Those of the connection.
pub(super) fn is_refused(
    connection: &Connection,
    words: &[impl AsRef<str>],
) -> Result<bool, LabError> {
    Ok(unless_refused(connection.run(words, ""))?.is_err())
}

/// Waits until nothing changes any more that may change how a host forwards: services that start late, routes that
/// daemons learn, addresses that are proved to be the only ones. `look` tells the facts, and whether anything is
/// under way besides.
///
/// # Errors
/// `Host` where it does not come to rest, and those of a look.
pub(super) fn await_rest(
    connection: &Connection,
    look: impl Fn() -> Result<(Facts, bool), LabError>,
) -> Result<(), LabError> {
    let start = Instant::now();
    let (mut before, _) = look()?;
    loop {
        sleep(BETWEEN_LOOKS_AT_REST);
        let (now, is_under_way) = look()?;
        let changing = difference(&before, &now);
        if changing.is_empty() && !is_under_way {
            return Ok(());
        }
        if start.elapsed() > REST_TIME_MAX {
            let names: Vec<&str> = changing.keys().take(3).map(String::as_str).collect();
            return Err(connection.wrong(format!(
                "{} s after it has booted it still changes by itself: {}",
                REST_TIME_MAX.as_secs(),
                names.join(", ")
            )));
        }
        before = now;
    }
}
