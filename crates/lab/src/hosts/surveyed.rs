//! A host that is looked at to find its cables: what it is, its links, and its ports set down and up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use fwdlab_model::{AddressFamily, System, Tester, Traffic};

use super::freebsd;
use super::journal_copy::{JournalCopy, journal_folder};
use super::linux;
use super::process::AgentProcess;
use super::protocol::{Answer, Ask, Load};
use super::ssh::Connection;
use crate::LabError;
use crate::cabling::{HostFacts, Port, Side};
use crate::journal::{ChangeId, Destination, Journal, controller, host_journal};
use crate::mechanism::step::{Errand, owned};
use crate::mechanism::tools::Tool;

/// Programs that a lab may ask for, and `ip`, which it needs.
const LINUX_PROGRAMS: [&str; 6] = ["ip", "nft", "ethtool", "tc", "pkt-gen", "grub-reboot"];
const FREEBSD_PROGRAMS: [&str; 6] = ["pkt-gen", "pfctl", "ipfw", "ipfstat", "bectl", "pmcstat"];
/// Names those that are there.
const THERE: &str =
    "for program; do command -v \"$program\" >/dev/null 2>&1 && echo \"$program\"; done; :";

/// Frames a second: few, so that none is lost for want of time.
const PROBE_PPS: u64 = 20_000;
/// A load whose search is silent for so long ends by itself.
const DEAD_MAN_S: u64 = 30;

/// A host over a connection.
pub(crate) struct SurveyedHost {
    pub(crate) connection: Rc<Connection>,
    pub(crate) facts: HostFacts,
    journal: Journal,
    /// What sends frames there, once it was asked to.
    agent: Option<AgentProcess>,
}

impl SurveyedHost {
    /// Logs in, and looks.
    ///
    /// # Errors
    /// `Host` where it is none that a lab can be made of, and those of the connection and the journal.
    pub(crate) fn open(
        destination: Destination,
        side: Side,
        state_directory: &Path,
    ) -> Result<Self, LabError> {
        let anywhere = Rc::new(destination.clone());
        let connection = Rc::new(Connection::open(destination)?);
        let facts = look(&connection, side)?;
        let mut journal = Journal::open(state_directory, &host_journal(&facts.host), anywhere)?;
        if side == Side::Dut {
            // That another controller sees that the DUT is in use.
            let folder = journal_folder(facts.system);
            let of = controller(state_directory);
            let copy = |name| JournalCopy::new(&connection, folder, &of, name);
            if copy("try").unavailable()?.is_none() {
                journal.keep_copy(Box::new(copy("changes")));
            }
        }
        Ok(Self {
            connection,
            facts,
            journal,
            agent: None,
        })
    }

    /// Which of its ports have a link now.
    ///
    /// # Errors
    /// Those of the connection.
    pub(crate) fn linked(&self) -> Result<BTreeSet<String>, LabError> {
        let ports: Vec<&str> = self.facts.ports.iter().map(|port| &*port.name).collect();
        let mut linked: BTreeSet<String> = match self.facts.system {
            System::Freebsd => freebsd::linked(&self.connection.run(&["ifconfig"], "")?),
            System::Linux => {
                let named = self.connection.run(&linux::linked(&ports), "")?;
                named.lines().map(str::to_owned).collect()
            }
        };
        linked.retain(|port| ports.contains(&&**port));
        Ok(linked)
    }

    /// Its ports, looked at again.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub(crate) fn ports(&self) -> Result<Vec<Port>, LabError> {
        ports(self.facts.system, &self.connection)
    }

    /// Sets a port down, or up; what puts it back is in the journal first.
    ///
    /// # Errors
    /// Those of the journal and the connection.
    pub(crate) fn set(&mut self, port: &str, is_up: bool) -> Result<ChangeId, LabError> {
        let word = |is_up| if is_up { "up" } else { "down" };
        let set = |is_up| match self.facts.system {
            System::Freebsd => owned(&["ifconfig", port, word(is_up)]),
            System::Linux => owned(&["ip", "link", "set", "dev", port, word(is_up)]),
        };
        let undo = self.connection.undo_by(Errand::of(&set(!is_up)));
        let (change, set) = (format!("{port} ({})", word(!is_up)), set(is_up));
        self.journal.enter_dut(self.connection.clone());
        if is_up && self.facts.system == System::Freebsd {
            let before = self.connection.run(&["ifconfig", port], "")?;
            if let Some(step) = freebsd::comes_with(port, &before) {
                let undo = self.connection.undo_by(step.undo);
                self.journal.announce(step.what, undo)?;
            }
        }
        let id = self.journal.announce(change, undo)?;
        self.connection.run(&set, "")?;
        Ok(id)
    }

    /// Puts a port back.
    ///
    /// # Errors
    /// Where that cannot be done; it stays in the journal then.
    pub(crate) fn put_back(&mut self, change: &ChangeId) -> Result<(), LabError> {
        self.journal.undo(change)
    }

    /// Puts back all that was changed, and lets go of what sends.
    ///
    /// # Errors
    /// As of [`put_back`](Self::put_back).
    pub(crate) fn put_all_back(&mut self) -> Result<(), LabError> {
        self.agent = None;
        self.journal.undo_all()
    }

    /// Whether something is not as it was.
    pub(crate) fn has_changes(&self) -> bool {
        self.journal.has_open_changes()
    }

    /// Sends a frame of each of some flows from a port to a station, by fwdlab's own program, and tells how many were
    /// transmitted.
    ///
    /// # Errors
    /// `Host` where the program does not run there, and those of the connection and the port.
    pub(crate) fn send(&mut self, port: &str, mac: &str) -> Result<u64, LabError> {
        let sent = self.send_by_agent(port, mac);
        if sent.is_err() {
            // Another process begins afresh.
            self.agent = None;
        }
        sent
    }

    fn send_by_agent(&mut self, port: &str, mac: &str) -> Result<u64, LabError> {
        const WHAT: &str = "sending frames that are looked for";
        let agent = match &mut self.agent {
            Some(agent) => agent,
            none => none.insert(AgentProcess::start(&self.connection, None)?),
        };
        let load = Ask::Send(Load {
            interface: port.to_owned(),
            destination: mac.to_owned(),
            family: AddressFamily::Inet,
            traffic: Traffic::default(),
            is_reversed: false,
            cpus: vec![agent.hello.cpus.last().copied().unwrap_or(0)],
            pps: Some(PROBE_PPS),
            burst_frames: 1,
            // One that attaches nothing to the port: that would take many a card's link down.
            sender: Some(Tester::Sendmmsg),
            dead_man_s: DEAD_MAN_S,
        });
        match agent.ask(WHAT, &load)? {
            Answer::Sending { .. } => {}
            other => return Err(agent.unexpected(WHAT, &other)),
        }
        agent.done(WHAT, &Ask::SendProbe)?;
        match agent.ask(WHAT, &Ask::Stop)? {
            Answer::Stopped(sent) => Ok(sent.transmitted_frames),
            other => Err(agent.unexpected(WHAT, &other)),
        }
    }

    /// How many frames its ports have received so far.
    ///
    /// # Errors
    /// Those of the connection.
    pub(crate) fn received(&self) -> Result<BTreeMap<String, u64>, LabError> {
        let names: Vec<&str> = self.facts.ports.iter().map(|port| &*port.name).collect();
        received(&self.connection, self.facts.system, &names)
    }
}

/// Frames that ports of a host have received so far.
///
/// # Errors
/// Those of the connection.
pub(super) fn received(
    connection: &Connection,
    system: System,
    ports: &[&str],
) -> Result<BTreeMap<String, u64>, LabError> {
    let questions = ports.iter().map(|name| match system {
        System::Freebsd => owned(&["netstat", "-i", "-b", "-n", "-d", "-W", "-I", name]),
        System::Linux => {
            let counter = format!("/sys/class/net/{name}/statistics/rx_packets");
            owned(&["cat", &counter])
        }
    });
    let answers = connection.run_all(&questions.collect::<Vec<_>>())?;
    let counted = ports.iter().zip(answers).filter_map(|(name, answer)| {
        let answer = answer?;
        let frames = match system {
            System::Freebsd => freebsd::received(&answer),
            System::Linux => answer.trim().parse().ok(),
        };
        Some(((*name).to_owned(), frames?))
    });
    Ok(counted.collect())
}

/// The system of a host by what its `uname -sr` prints; none where no lab can have it.
pub(super) fn system_of(release: &str) -> Option<System> {
    match release.split(' ').next() {
        Some("Linux") => Some(System::Linux),
        Some("FreeBSD") => Some(System::Freebsd),
        _ => None,
    }
}

/// What a host is.
fn look(connection: &Connection, side: Side) -> Result<HostFacts, LabError> {
    let questions = [
        &["uname", "-sr"][..],
        &["id", "-u"],
        // BusyBox has none.
        &[
            "sh",
            "-c",
            "getconf _NPROCESSORS_ONLN 2>/dev/null || grep -c '^cpu[0-9]' /proc/stat",
        ],
    ];
    let mut asked = questions.map(owned).to_vec();
    asked.extend(Tool::ALL.map(Tool::probe));
    let answers = connection.ask(asked)?;
    let release = answers.needed(&owned(questions[0]))?;
    let system = system_of(release).ok_or_else(|| {
        let why = format!("it runs {release}; a lab's hosts run Linux or FreeBSD");
        connection.wrong(why)
    })?;
    let user = answers.needed(&owned(questions[1]))?;
    if user != "0" {
        return Err(connection.wrong(format!(
            "it lets us in as user {user}, who may not set ports down; write {}, or `User root` into your ssh \
             configuration",
            as_root(connection.host())
        )));
    }
    let known: &[&str] = match system {
        System::Freebsd => &FREEBSD_PROGRAMS,
        System::Linux => &LINUX_PROGRAMS,
    };
    let programs = connection.run(&[&["sh", "-c", THERE, "sh"][..], known].concat(), "")?;
    let mut programs: Vec<String> = programs.lines().map(str::to_owned).collect();
    let mut unset = Vec::new();
    if system == System::Linux {
        let lacking = |tool: &Tool| Some((*tool, tool.lacking(&answers)?));
        for (tool, why) in Tool::ALL.iter().filter_map(lacking) {
            // BusyBox has a `tc` that shows no filters.
            if tool == Tool::Tc {
                programs.retain(|program| program != "tc");
            }
            let bound = tool.bound_by().iter();
            unset.extend(bound.map(|binding| ((*binding).to_owned(), why.clone())));
        }
    }
    if system == System::Linux && !programs.iter().any(|program| program == "ip") {
        return Err(connection.wrong("its PATH has no `ip`; install iproute2 there"));
    }
    let mut ports = ports(system, connection)?;
    ports.sort_by_key(|port| crate::cabling::natural(&port.name));
    let cpus = answers.get(&owned(questions[2]));
    let facts = HostFacts {
        host: connection.host().to_owned(),
        system,
        release: release.to_owned(),
        cpus: cpus.and_then(|cpus| cpus.parse().ok()).unwrap_or(1),
        programs,
        unset,
        ports,
    };
    if facts.ports.is_empty() {
        return Err(connection.wrong(format!(
            "it has no port of Ethernet; the {side} of a lab needs two"
        )));
    }
    Ok(facts)
}

/// A destination with root for its user: `root@host`, `ssh://root@host:2222`.
fn as_root(destination: &str) -> String {
    let (scheme, host) = match destination.strip_prefix("ssh://") {
        Some(host) => ("ssh://", host),
        None => ("", destination),
    };
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}root@{host}")
}

fn ports(system: System, connection: &Connection) -> Result<Vec<Port>, LabError> {
    match system {
        System::Freebsd => freebsd::ports(connection),
        System::Linux => linux::ports(connection),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_keeps_its_form_with_another_user() {
        for (destination, expected) in [
            ("dut", "root@dut"),
            ("me@dut", "root@dut"),
            ("ssh://dut:2222", "ssh://root@dut:2222"),
            ("ssh://me@dut:2222", "ssh://root@dut:2222"),
        ] {
            assert_eq!(as_root(destination), expected);
        }
    }
}
