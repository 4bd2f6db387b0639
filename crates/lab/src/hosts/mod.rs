//! Labs of hosts: a DUT between the two ports of a tester, both reached by ssh.

mod agent;
mod dut;
mod facts;
mod measurement;
mod protocol;
mod ssh;
mod tester;

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{Direction, Environment, Hosts, Placement, PlannedBlock, Resolved, VariantName};
use fwdlab_sys::Interrupts;

pub use self::agent::serve_tester;
pub(crate) use self::ssh::{Connection, Destination};

use self::dut::HostDut;
use self::facts::Facts;
use self::measurement::Measurement;
use self::tester::HostTester;
use crate::block::BlockStart;
use crate::clock::now_utc;
use crate::environment::environment_by;
use crate::journal::Journal;
use crate::restore::{Leftover, Whose, host_journal, restore_all};
use crate::tester::TesterChoice;
use crate::validity::AskedLoad;
use crate::{BlockOutcome, LabError, LabEvent};

/// How often a block is begun anew because a connection broke.
const ATTEMPTS: u32 = 4;

/// How long hosts may be out of reach in the middle of a run.
const AWAY_MAX: Duration = Duration::from_secs(300);

/// Frames that nobody can account for, as a part of those offered, that make a block invalid: counters of
/// network cards are read at moments of their own.
const UNACCOUNTED_RATIO_MAX: f64 = 0.001;

/// A lab out of hosts.
pub struct HostsLab {
    resolved: Resolved,
    hosts: Hosts,
    interrupts: Interrupts,
    journal: Journal,
    leftovers: Vec<Leftover>,
    link: Link,
    placement: Placement,
    choice: TesterChoice,
    environment: Environment,
    /// What every variant was found to be, the first time.
    known: BTreeMap<VariantName, Facts>,
}

/// Connections and what answers at their ends.
struct Link {
    dut_connection: Rc<Connection>,
    dut: HostDut,
    tester: HostTester,
}

impl Link {
    fn open(hosts: &Hosts, resolved: &Resolved) -> Result<Self, LabError> {
        let connect = |host: &str| {
            let destination = Destination {
                host: host.to_owned(),
                config: hosts.ssh_config.clone(),
            };
            Connection::open(destination).map(Rc::new)
        };
        let dut_connection = connect(&hosts.dut.host)?;
        let tester_connection = connect(&hosts.tester.host)?;
        let dut = HostDut::open(&dut_connection, &hosts.dut, resolved)?;
        let mut tester = HostTester::start(&tester_connection, &hosts.tester)?;
        // Refuses ports that the machine needs.
        tester.stations()?;
        Ok(Self {
            dut_connection,
            dut,
            tester,
        })
    }
}

impl HostsLab {
    /// Opens the lab: puts back what killed runs left on the DUT, logs in on both hosts, and starts the tester's
    /// process.
    ///
    /// # Errors
    /// `Ssh`, `Host`, `RemoteTester`, `NotRestored`.
    pub fn open(
        resolved: &Resolved,
        state_directory: &Path,
        interrupts: Interrupts,
    ) -> Result<Self, LabError> {
        let hosts = resolved.lab.hosts.clone();
        let mut hosts = hosts.expect("a lab of hosts names them, or its file is refused");
        // The journal is read from wherever somebody restores.
        if let Some(config) = &mut hosts.ssh_config {
            *config = std::path::absolute(&*config).map_err(|source| LabError::File {
                what: "looking for",
                path: config.clone(),
                source,
            })?;
        }
        for &family in &resolved.traffic.families {
            // That all addresses of the traffic are routed.
            crate::addresses::frames(family, &resolved.traffic)?;
        }
        let journal = Journal::open(state_directory, &host_journal(&hosts.dut.host))?;
        let whose = Whose::Host(&hosts.dut.host);
        let leftovers = restore_all(state_directory, whose)?;
        let mut link = Link::open(&hosts, resolved)?;
        let environment = environment(&mut link)?;
        let choice = TesterChoice {
            tester: link.tester.sender(),
            refused: Vec::new(),
        };
        let placement = Placement {
            load_cpu: link.tester.cpu(),
            dut_cpu: None,
            control_cpu: 0,
            queues: BTreeMap::new(),
        };
        Ok(Self {
            resolved: resolved.clone(),
            hosts,
            interrupts,
            journal,
            leftovers,
            link,
            placement,
            choice,
            environment,
            known: BTreeMap::new(),
        })
    }

    /// How frames are sent and counted.
    #[must_use]
    pub fn tester(&self) -> &TesterChoice {
        &self.choice
    }

    /// What killed runs had left, and was put back.
    #[must_use]
    pub fn leftovers(&self) -> &[Leftover] {
        &self.leftovers
    }

    /// Who runs where: the CPU that sends, on the tester's host.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// What the DUT's host is, and the tester's.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Why profiles cannot be taken.
    #[must_use]
    pub fn profiles_unavailable(&self) -> Option<&str> {
        let asked = self.resolved.profiling.is_some();
        asked.then_some("stacks of another host's kernel cannot be sampled yet")
    }

    /// Why the DUT cannot have a variant, for each variant of the experiment.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn unavailable(&self) -> Result<Vec<Option<String>>, LabError> {
        if self.resolved.traffic.direction == Direction::Both {
            let reason = "hosts are measured in one direction; ask for direction = \"forward\"";
            return Ok(vec![Some(reason.to_owned()); self.resolved.variants.len()]);
        }
        let variants = self.resolved.variants.iter();
        variants
            .map(|variant| self.link.dut.unavailable(variant))
            .collect()
    }

    /// Measures one block on a fresh set-up. Where a connection breaks, what was changed is put back and the
    /// block begun anew, some times.
    ///
    /// # Errors
    /// When a host is not to be reached for good, the lab cannot be set up, a variant does not forward its probe
    /// frames, or the user asks to stop now.
    pub fn measure(
        &mut self,
        planned: &PlannedBlock,
        session: u32,
        attempt: u32,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<BlockOutcome, LabError> {
        let mut tries = 1;
        loop {
            let error = match self.measure_once(planned, session, attempt, on_event) {
                Err(error) if error.is_of_a_connection() && tries < ATTEMPTS => error,
                result => return result,
            };
            tries += 1;
            on_event(LabEvent::Again {
                why: error.to_string(),
            });
            let restless = self.link.dut.restless.clone();
            self.link = self.link_again()?;
            self.link.dut.restless = restless;
        }
    }

    /// Logs in again, and waits for hosts that are not to be reached at once.
    fn link_again(&self) -> Result<Link, LabError> {
        let start = Instant::now();
        loop {
            match Link::open(&self.hosts, &self.resolved) {
                Err(error)
                    if error.is_of_a_connection()
                        && start.elapsed() < AWAY_MAX
                        && self.interrupts.requests() == 0 =>
                {
                    sleep(Duration::from_secs(1));
                }
                result => return result,
            }
        }
    }

    fn measure_once(
        &mut self,
        planned: &PlannedBlock,
        session: u32,
        attempt: u32,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<BlockOutcome, LabError> {
        on_event(LabEvent::SetUp);
        let started = Instant::now();
        let start_utc = now_utc();
        let mut measurement = Measurement::start(
            &self.resolved,
            &mut self.link,
            &mut self.journal,
            self.interrupts,
            &mut self.known,
        )?;
        measurement.prove(planned)?;
        let set_up = started.elapsed();
        on_event(LabEvent::Ready { set_up });
        for order in &planned.families {
            measurement.measure_family(order.family, &order.rounds, on_event)?;
        }
        let (log, differing_facts) = measurement.finish()?;
        let start = BlockStart {
            session,
            attempt,
            start_utc,
            set_up,
        };
        let mut asked = AskedLoad::of(&self.resolved);
        asked.unaccounted_ratio_max = UNACCOUNTED_RATIO_MAX;
        let mut outcome = log.outcome(&self.resolved, &asked, planned, start);
        outcome.block.differing_facts = differing_facts;
        self.choice.tester = self.link.tester.sender();
        Ok(outcome)
    }
}

/// The DUT's host as an environment, with what is to be known of the tester's.
fn environment(link: &mut Link) -> Result<Environment, LabError> {
    let dut = &link.dut_connection;
    let read = |path: &str| -> Option<String> {
        let text = dut.run(&["cat", path], "").ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let cpus = dut.run(&["nproc", "--all"], "")?;
    let nft = dut.run(&["nft", "--version"], "").ok();
    let nft = nft.map(|version| version.trim().to_owned());
    let mut environment = environment_by(read, cpus.trim().parse().unwrap_or(1), nft);
    let hello = &link.tester.hello;
    let tester = format!(
        "{}, {} CPUs, Linux {}",
        hello.cpu_model,
        hello.cpus.len(),
        hello.kernel.split(' ').next().unwrap_or_default()
    );
    environment.facts.insert("tester's host".to_owned(), tester);
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
