//! Labs of hosts: a DUT between the two ports of a tester, both reached by ssh.

mod agent;
mod boot;
mod both_ways;
mod cables;
mod changes;
mod cpu_watch;
mod descendants;
mod detached;
mod doctor;
mod dut;
mod errands;
mod facts;
mod freebsd;
mod journal_copy;
mod linux;
mod load;
mod measurement;
mod own_programs;
mod pkt_gen;
mod process;
mod protocol;
mod reached;
mod ssh;
mod surveyed;
mod tester;
mod transport;
mod undo;

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{
    Binding, Direction, DutHost, Environment, HostTesterKind, Hosts, Placement, Resolved, System,
};
use fwdlab_sys::Interrupts;

pub use self::agent::serve_agent;
pub(crate) use self::doctor::examine_hosts;
pub(crate) use self::journal_copy::{copies, leave_undone, note_undone, refuse_others};
pub use self::linux::{StackWatch, serve_stacks};
pub(crate) use self::ssh::Connection;
pub(crate) use self::surveyed::SurveyedHost;

use self::boot::{Booter, power_cycle};
use self::both_ways::BothWays;
use self::dut::Dut;
use self::facts::{KnownFacts, difference};
use self::journal_copy::{JournalCopy, journal_folder};
use self::measurement::{Boots, Measurement};
use self::pkt_gen::PktGenTester;
use self::tester::{HostTester, OwnTester};
use crate::journal::{Destination, Journal, boot_journal, controller, host_journal};
use crate::mechanism::step::BootChoice;
use crate::sequence::Sequence;
use crate::tester::TesterChoice;
use crate::validity::AskedLoad;
use crate::{Asks, BlockOutcome, BlockRun, Choices, LabError, LabEvent};

/// How often a block is tried, where connections break.
const ATTEMPTS: u32 = 4;

/// How long hosts may be out of reach in the middle of a run.
const AWAY_MAX: Duration = Duration::from_secs(300);
/// How long is waited before they are looked for again, the first time and at most: many a connection that broke can
/// be had again at once.
const BETWEEN_LOOKS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Frames that nobody can account for, as a part of those offered, that make a block invalid: counters of
/// network cards are read at moments of their own.
const UNACCOUNTED_RATIO_MAX: f64 = 0.001;

/// A lab out of hosts.
pub struct HostsLab {
    /// What it works with; the CPU of its placement sends, on the tester's host.
    pub choices: Choices,
    resolved: Resolved,
    hosts: Hosts,
    system: System,
    interrupts: Interrupts,
    /// Whose the copies of the journals are on the DUT.
    controller: String,
    keeps_copies: bool,
    journal: Journal,
    /// Of what the DUT has booted: that stands from block to block.
    boot_journal: Journal,
    /// Where variants need a boot.
    booter: Option<Booter>,
    link: Link,
    environment: Environment,
    known: KnownFacts,
    /// Whether the user knows that lost links may not be seen.
    has_said_unseen: bool,
}

/// Connections and what answers at their ends.
struct Link {
    dut_connection: Rc<Connection>,
    system: System,
    dut: Dut,
    tester: Box<dyn HostTester>,
    /// Whether the DUT's CPUs can be watched under the load.
    watches_cpus: bool,
}

impl Link {
    fn open(
        hosts: &Hosts,
        system: System,
        resolved: &Resolved,
        dut_connection: Rc<Connection>,
    ) -> Result<Self, LabError> {
        let mut connect = |host: &str| {
            let destination = Destination {
                host: host.to_owned(),
                config: hosts.ssh_config.clone(),
            };
            Connection::open(destination).map(Rc::new)
        };
        let dut = open_dut(&dut_connection, &hosts.dut, system, resolved)?;
        dut.system.prove_counters(&dut.host)?;
        let mut tester = open_tester(hosts, resolved, &mut connect)?;
        // Refuses ports that the machine needs.
        tester.stations()?;
        Ok(Self {
            dut_connection,
            system,
            dut,
            tester,
            watches_cpus: true,
        })
    }
}

/// The DUT, by the system of its host.
fn open_dut(
    connection: &Rc<Connection>,
    of: &DutHost,
    system: System,
    resolved: &Resolved,
) -> Result<Dut, LabError> {
    Ok(match system {
        System::Freebsd => freebsd::open_dut(connection, of, resolved)?,
        System::Linux => linux::open_dut(connection, of, resolved)?,
    })
}

/// Refuses an experiment that the tester cannot offer, whatever its hosts are.
///
/// # Errors
/// `Host` for one that pkt-gen cannot.
pub(crate) fn refuse_unoffered(hosts: &Hosts, resolved: &Resolved) -> Result<(), LabError> {
    match hosts.tester.uses {
        HostTesterKind::Fwdlab => Ok(()),
        HostTesterKind::PktGen => pkt_gen::refuse(hosts, resolved),
    }
}

/// The tester, by what sends and counts there.
fn open_tester(
    hosts: &Hosts,
    resolved: &Resolved,
    connect: &mut dyn FnMut(&str) -> Result<Rc<Connection>, LabError>,
) -> Result<Box<dyn HostTester>, LabError> {
    Ok(match hosts.tester.uses {
        HostTesterKind::Fwdlab => match resolved.direction() {
            Direction::Forward => Box::new(OwnTester::start(hosts, connect)?),
            Direction::Both => Box::new(BothWays::start(hosts, connect)?),
        },
        HostTesterKind::PktGen => Box::new(PktGenTester::start(hosts, resolved, connect)?),
    })
}

impl HostsLab {
    /// Opens the lab over a connection to its DUT: logs in on the tester's host too, and starts its process there.
    ///
    /// # Errors
    /// `Ssh`, `Host`, `RemoteProcess`.
    pub(crate) fn open(
        resolved: &Resolved,
        hosts: Hosts,
        system: System,
        dut_connection: Rc<Connection>,
        state_directory: &Path,
        interrupts: Interrupts,
    ) -> Result<Self, LabError> {
        let dut = Rc::new(Destination::of_dut(&hosts));
        let [journal, boot_journal] = [host_journal, boot_journal]
            .map(|name| Journal::open(state_directory, &name(&hosts.dut.host), dut.clone()));
        let (journal, boot_journal) = (journal?, boot_journal?);
        let mut link = Link::open(&hosts, system, resolved, dut_connection)?;
        let mut environment = environment(&mut link)?;
        if let Some(why) = link.dut.cpu_watch_unavailable()? {
            link.watches_cpus = false;
            let facts = &mut environment.facts;
            facts.insert("DUT's CPUs".to_owned(), format!("not watched: {why}"));
        }
        let mut resolved = resolved.clone();
        let mut profiles_unavailable = None;
        if let Some(profiling) = resolved.profiling {
            profiles_unavailable = link.dut.stack_watch_unavailable(profiling.frequency_hz)?;
            resolved.profiling = resolved
                .profiling
                .filter(|_| profiles_unavailable.is_none());
        }
        let choices = Choices {
            placement: Placement {
                load_cpu: link.tester.cpus()[0],
                dut_cpu: None,
                control_cpu: 0,
                queues: BTreeMap::new(),
            },
            tester: TesterChoice {
                tester: link.tester.sender(),
                refused: Vec::new(),
            },
            profiles_unavailable,
        };
        let boots = resolved.lab.bindings.values().any(Binding::needs_reboot);
        let booter = boots.then(|| {
            let loader = link.dut.system.boot_loader();
            Booter::new(&link.dut_connection, &hosts.dut, loader)
        });
        let mut lab = Self {
            choices,
            controller: controller(state_directory),
            keeps_copies: true,
            resolved,
            hosts,
            system,
            interrupts,
            journal,
            boot_journal,
            booter,
            link,
            environment,
            known: KnownFacts::default(),
            has_said_unseen: false,
        };
        if let Some(why) = lab.journal_copy("try").unavailable()? {
            lab.keeps_copies = false;
            let facts = &mut lab.environment.facts;
            facts.insert("copy of the journal".to_owned(), format!("none: {why}"));
        }
        lab.keep_journal_copies();
        Ok(lab)
    }

    /// Has the journals keep copies on the DUT, over the connection of the moment.
    fn keep_journal_copies(&mut self) {
        if self.keeps_copies {
            let [changes, reboot] = ["changes", "reboot"].map(|name| self.journal_copy(name));
            self.journal.keep_copy(Box::new(changes));
            self.boot_journal.keep_copy(Box::new(reboot));
        }
    }

    fn journal_copy(&self, name: &str) -> JournalCopy {
        let folder = journal_folder(self.system);
        JournalCopy::new(&self.link.dut_connection, folder, &self.controller, name)
    }

    /// What the DUT's host is, and the tester's.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Why the DUT cannot have a variant, for each variant of the experiment. Before anything of it is changed or booted, it
    /// is refused where something of its owner's could not be put back. Where a connection breaks, or what stands on it ends,
    /// it is asked again over another one.
    ///
    /// # Errors
    /// `Host` for what could not, and those of the connection.
    pub fn unavailable(&mut self, asks: Asks) -> Result<Vec<Option<String>>, LabError> {
        let result = match self.unavailable_now(asks) {
            Err(error) if error.is_of_a_connection() => {
                let link = self.link_once()?;
                self.go_on_over(link);
                self.unavailable_now(asks)
            }
            result => result,
        };
        result.map_err(|error| self.explained(error))
    }

    /// What is wrong with a DUT that was at rest when the lab was opened may be of another controller's run, which has begun
    /// since, as its copy there tells.
    fn explained(&self, error: LabError) -> LabError {
        let connection = &self.link.dut_connection;
        let is_of_dut = matches!(&error, LabError::Host { host, .. } if host == connection.host());
        let others = || refuse_others(connection, &copies(connection)?, &self.controller);
        match is_of_dut.then(others) {
            Some(Err(others @ LabError::Host { .. })) => others,
            _ => error,
        }
    }

    fn unavailable_now(&mut self, asks: Asks) -> Result<Vec<Option<String>>, LabError> {
        let is_both = self.resolved.direction() == Direction::Both;
        if is_both && self.hosts.tester.uses == HostTesterKind::PktGen {
            let reason = "pkt-gen sends in one direction; ask for direction = \"forward\", or leave out \
                          uses = \"pkt-gen\"";
            return Ok(vec![Some(reason.to_owned()); self.resolved.variants.len()]);
        }
        let Self { resolved, link, .. } = self;
        let [generator, sink] = link.tester.stations()?;
        let stations = [&generator, &sink];
        let families = &resolved.families();
        // A run comes to the rest in its first block; what stands on a kernel that is yet to be booted is not seen now.
        if asks == Asks::Plan && self.booter.is_none() {
            link.dut.prove_set_up(families, stations)?;
        } else {
            let Dut { host, system, .. } = &link.dut;
            system.refuse_losses(host, families, stations)?;
        }
        let variants = resolved.variants.iter();
        variants
            .map(|variant| link.dut.unavailable(variant, asks))
            .collect()
    }

    /// Where variants need a boot, boots the DUT twice as it boots by itself: what differs then differs from boot
    /// to boot, whoever has changed nothing.
    ///
    /// # Errors
    /// `Host` where it does not come back, and those of the connection.
    pub fn get_ready(&mut self, on_event: &mut dyn FnMut(LabEvent<'_>)) -> Result<(), LabError> {
        let Some(booter) = &mut self.booter else {
            return Ok(());
        };
        let mut facts = Vec::new();
        for _ in 0..2 {
            let choice = BootChoice::default();
            on_event(LabEvent::Boot {
                into: choice.to_string(),
            });
            booter.boot(&mut self.boot_journal, &choice, self.interrupts)?;
            self.link.dut.has_booted()?;
            facts.push(self.link.dut.facts()?);
        }
        let differing = difference(&facts[0], &facts[1]);
        if !differing.is_empty() {
            let names: Vec<String> = differing.into_keys().collect();
            self.environment.facts.insert(
                "facts that change from boot to boot".to_owned(),
                names.join(", "),
            );
            self.link.dut.note_restless(names.into_iter().collect());
        }
        Ok(())
    }

    /// Has the DUT boot as it boots by itself, where it has booted something else.
    ///
    /// # Errors
    /// Where that cannot be done; it stays in the journal then.
    pub fn close(&mut self, on_event: &mut dyn FnMut(LabEvent<'_>)) -> Result<(), LabError> {
        if self.boot_journal.has_open_changes() {
            on_event(LabEvent::Boot {
                into: BootChoice::default().to_string(),
            });
        }
        self.boot_journal
            .enter_dut(self.link.dut_connection.clone());
        self.boot_journal.undo_all()
    }

    /// Measures one block on a fresh set-up. Where a connection breaks, what was changed is put back and the
    /// block begun anew, some times.
    ///
    /// # Errors
    /// When a host is not to be reached for good, the lab cannot be set up, a variant does not forward its probe
    /// frames, or the user asks to stop now.
    pub fn measure(&mut self, run: &mut BlockRun<'_>) -> Result<BlockOutcome, LabError> {
        let mut tries = 1;
        loop {
            let error = match self.measure_once(run) {
                Err(error) if error.is_of_a_connection() && tries < ATTEMPTS => error,
                result => return result.map_err(|error| self.explained(error)),
            };
            tries += 1;
            (run.on_event)(LabEvent::Again {
                why: error.to_string(),
            });
            let link = self.link_again(run.on_event)?;
            self.go_on_over(link);
        }
    }

    fn go_on_over(&mut self, link: Link) {
        self.link = link;
        self.keep_journal_copies();
        if let Some(booter) = &mut self.booter {
            booter.go_on(&self.link.dut_connection);
        }
    }

    /// Logs in again, and waits for hosts that are not to be reached at once. A DUT that stays away has its
    /// power cut, once, where the lab file says how.
    fn link_again(&self, on_event: &mut dyn FnMut(LabEvent<'_>)) -> Result<Link, LabError> {
        let away_max = AWAY_MAX.max(Duration::from_secs(self.hosts.dut.reboot_s_max.into()));
        let mut start = Instant::now();
        let mut power_switch = self.hosts.dut.power_cycle.as_ref();
        let [mut pause, pause_max] = BETWEEN_LOOKS;
        loop {
            let error = match self.link_once() {
                Err(error) if error.is_of_a_connection() && self.interrupts.requests() == 0 => {
                    error
                }
                result => return result,
            };
            if start.elapsed() > away_max {
                let is_of_dut = error.host() == Some(self.hosts.dut.host.as_str());
                let Some(command) = power_switch.take().filter(|_| is_of_dut) else {
                    return Err(error);
                };
                on_event(LabEvent::Again {
                    why: format!("{error}; its power is cut"),
                });
                power_cycle(command)?;
                start = Instant::now();
            }
            sleep(pause);
            pause = (pause * 2).min(pause_max);
        }
    }

    /// Logs in, and lets a DUT come to rest that has booted meanwhile.
    fn link_once(&self) -> Result<Link, LabError> {
        let before = &self.link.dut;
        let connection = Connection::open_again(Destination::of_dut(&self.hosts))?;
        let mut link = Link::open(
            &self.hosts,
            self.system,
            &self.resolved,
            Rc::new(connection),
        )?;
        link.watches_cpus = self.link.watches_cpus;
        link.dut.note_restless(before.restless().clone());
        if !link.dut.host.boot_id.is(&before.host.boot_id) {
            link.dut.has_booted()?;
        }
        Ok(link)
    }

    fn measure_once(&mut self, run: &mut BlockRun<'_>) -> Result<BlockOutcome, LabError> {
        let outcome = self.attempt(run);
        let counts = outcome.as_ref().is_ok_and(|outcome| {
            let mut trials = outcome.trials.iter();
            trials.all(|trial| trial.invalid.is_empty())
        });
        self.known.end_attempt(counts);
        outcome
    }

    fn attempt(&mut self, run: &mut BlockRun<'_>) -> Result<BlockOutcome, LabError> {
        let planned = run.planned;
        let regime = self.resolved.regime();
        let mut sequence = Sequence::begin(&self.resolved, regime, self.interrupts, run)?;
        let mut measurement = Measurement::start(
            &self.resolved,
            &mut self.link,
            &mut self.journal,
            self.interrupts,
            &mut self.known,
            self.booter.as_mut().map(|booter| Boots {
                booter,
                journal: &mut self.boot_journal,
                every_trial: !self.resolved.rebooting_factors().is_empty(),
            }),
            sequence.on_event,
        )?;
        measurement.prove(planned)?;
        sequence.is_ready();
        let refused = measurement.refused();
        if self.choices.tester.refused != refused {
            refused.clone_into(&mut self.choices.tester.refused);
            for (better, why) in refused {
                (sequence.on_event)(LabEvent::NotSentBy {
                    better: *better,
                    why,
                });
            }
        }
        for order in &planned.strata {
            measurement.measure_stratum(order, &mut sequence)?;
        }
        if let Some(why) = measurement.links_unseen().filter(|_| !self.has_said_unseen) {
            self.has_said_unseen = true;
            (sequence.on_event)(LabEvent::Unseen { why });
        }
        let (log, differing_facts) = measurement.finish()?;
        let mut asked = AskedLoad::of(&self.resolved);
        asked.unaccounted_ratio_max = UNACCOUNTED_RATIO_MAX;
        asked.counts_at_once = false;
        let mut outcome = sequence.outcome(log, &asked);
        outcome.block.differing_facts = differing_facts;
        outcome.block.tester = Some(self.link.tester.sender());
        self.choices.tester.tester = self.link.tester.sender();
        Ok(outcome)
    }
}

impl Drop for HostsLab {
    fn drop(&mut self) {
        // What cannot be undone now stands in the journal, where the next run finds it.
        let _ = self.close(&mut |_| {});
    }
}

/// The DUT's host as an environment, with what is to be known of the tester's.
fn environment(link: &mut Link) -> Result<Environment, LabError> {
    let mut environment = link.dut.system.environment(&link.dut.host)?;
    environment.facts.extend(link.tester.described());
    let restless = link.dut.look_for_restless_facts()?;
    if !restless.is_empty() {
        let names: Vec<&str> = restless.iter().map(String::as_str).collect();
        environment.facts.insert(
            "facts that change by themselves".to_owned(),
            names.join(", "),
        );
    }
    Ok(environment)
}
