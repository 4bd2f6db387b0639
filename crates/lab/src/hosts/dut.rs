//! A DUT on its host, whatever its system: what a measurement needs of it, and what all systems do alike.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, Direction, DutHost, Environment, Resolved, Variant};

use super::boot::{BootId, BootLoader};
use super::cpu_watch::CpuWatch;
use super::detached::{READY, Window};
use super::facts::{Facts, difference, restless};
use super::protocol::Station;
use super::ssh::Connection;
use super::tester::Crossing;
use super::transport::OverSsh;
use crate::counters::Drops;
use crate::journal::Journal;
use crate::mechanism::settings::Settings;
use crate::mechanism::step::BootChoice;
use crate::mechanism::transport::Transport as _;
use crate::profiler::ProfileSlice;
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

/// A DUT on its host: made ready, set to a variant, read back, and put back as it was.
pub(super) trait Dut {
    /// What it is whatever its system.
    fn host(&self) -> &OnHost;

    /// The same, to take note of something.
    fn host_mut(&mut self) -> &mut OnHost;

    /// All that may change how it forwards, and in which boot, where that is known.
    ///
    /// # Errors
    /// Those of the connection.
    fn boot_and_facts(&self) -> Result<(Option<BootId>, Facts), LabError>;

    /// Frames of a family that cross it.
    fn crossed_by<'a>(&'a self, resolved: &'a Resolved, family: AddressFamily) -> Crossing<'a> {
        let host = self.host();
        Crossing {
            resolved,
            family,
            mac_in: &host.mac_in,
            mac_out: &host.mac_out,
        }
    }

    /// Which boot it is in.
    fn boot_id(&self) -> &BootId {
        &self.host().boot_id
    }

    /// What chooses what it boots.
    fn boot_loader(&self) -> Box<dyn BootLoader>;

    /// Facts that change by themselves.
    fn restless(&self) -> &BTreeSet<String> {
        &self.host().restless
    }

    /// Takes note of more facts that change by themselves.
    fn note_restless(&mut self, names: BTreeSet<String>) {
        self.host_mut().restless.extend(names);
    }

    /// What the host is.
    ///
    /// # Errors
    /// Those of the connection.
    fn environment(&self) -> Result<Environment, LabError>;

    /// Takes note of another boot: nothing stands of what was set in the last one.
    ///
    /// # Errors
    /// `Host` where its ports do not come up in time, or it does not come to rest.
    fn has_booted(&mut self) -> Result<(), LabError>;

    /// What sets it to variants.
    fn settings(&self) -> &Settings;

    /// It, with the way to the host that it sets.
    fn settings_mut(&mut self) -> (&mut Settings, OverSsh<'_>);

    /// What it has to boot for a variant.
    ///
    /// # Errors
    /// `Unbound` for a level that no binding knows.
    fn boot_choice(&self, variant: &Variant) -> Result<BootChoice, LabError> {
        self.settings().boot_choice(variant)
    }

    /// All that may change how it forwards, but for what changes by itself.
    ///
    /// # Errors
    /// `Rebooted` where it is in another boot than the one in which it was set up.
    fn facts(&self) -> Result<Facts, LabError> {
        let mut facts = self.all_facts()?;
        facts.retain(|name, _| !self.restless().contains(name));
        Ok(facts)
    }

    /// The same with what changes by itself.
    ///
    /// # Errors
    /// As of [`facts`](Self::facts).
    fn all_facts(&self) -> Result<Facts, LabError> {
        match self.boot_and_facts()? {
            (Some(boot), _) if !boot.is(self.boot_id()) => Err(LabError::Rebooted {
                host: self.host().connection.host().to_owned(),
            }),
            (_, facts) => Ok(facts),
        }
    }

    /// Finds out which facts change by themselves, while nothing is measured.
    ///
    /// # Errors
    /// Those of the connection.
    fn look_for_restless_facts(&mut self) -> Result<&BTreeSet<String>, LabError> {
        let restless = restless(|| self.all_facts())?;
        self.host_mut().restless = restless;
        Ok(self.restless())
    }

    /// Why the host cannot have a variant; none where it can.
    ///
    /// # Errors
    /// Those of the connection.
    fn unavailable(&mut self, variant: &Variant, asks: Asks) -> Result<Option<String>, LabError> {
        let (settings, mut over_ssh) = self.settings_mut();
        let reason = settings.unavailable(&mut over_ssh, variant, asks)?;
        let host = over_ssh.host.connection.host();
        Ok(reason.map(|reason| format!("host {host}: {reason}")))
    }

    /// Gives it addresses, neighbours and routes for the frames from the generator to the sink, and notes how
    /// everything was that a variant may set. What is changed is announced to the journal first.
    ///
    /// # Errors
    /// `Host` where it cannot be made ready, and those of the connection.
    fn set_up(
        &mut self,
        journal: &mut Journal,
        families: &[AddressFamily],
        stations: [&Station; 2],
    ) -> Result<(), LabError>;

    /// Waits until those ports that are up have a link.
    ///
    /// # Errors
    /// `Host` where one has none in time, and those of the connection.
    fn await_link(&self) -> Result<(), LabError>;

    /// Lets go of what is there only as long as somebody holds it, and stands in no journal.
    ///
    /// # Errors
    /// Those of the connection.
    fn release(&mut self) -> Result<(), LabError> {
        let (_, over_ssh) = self.settings_mut();
        over_ssh.abilities.release()
    }

    /// Sets all levels of a variant but what takes a boot.
    ///
    /// # Errors
    /// What the host refuses.
    fn apply(&mut self, journal: &mut Journal, variant: &Variant) -> Result<(), LabError> {
        let (settings, mut over_ssh) = self.settings_mut();
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
    fn moved(&mut self, variant: &Variant) -> Result<Option<String>, LabError> {
        let (settings, mut over_ssh) = self.settings_mut();
        let moved = settings.moved(&mut over_ssh, variant)?;
        Ok(moved.map(|moved| moved.to_string()))
    }

    /// Frames dropped so far, by reason.
    ///
    /// # Errors
    /// Those of the connection.
    fn drops(&mut self, family: AddressFamily) -> Result<Drops, LabError>;

    /// Under which frames are counted that its receiving interfaces dropped.
    fn received_and_dropped(&self) -> Vec<String>;

    /// The command of a program that waits there for so many frames, and then tells what the CPUs do in a window.
    fn cpu_watch(&self, window: Window, load_frames_min: u32) -> Vec<String>;

    /// What such a program has printed; none where that is something else.
    fn watched_cpus(&self, text: &str) -> Option<CpuWatch>;

    /// The command of a program that waits there for so many frames, and then samples stacks in a window; brought there
    /// first, where it has to be.
    ///
    /// # Errors
    /// `Host` where it does not run there, and those of the connection.
    fn stack_watch(
        &mut self,
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

/// What a DUT on a host is whatever its system: how it is reached, what its lab file says, and what stands there.
pub(super) struct OnHost {
    pub(super) connection: Rc<Connection>,
    pub(super) of: DutHost,
    pub(super) direction: Direction,
    pub(super) boot_id: BootId,
    pub(super) mac_in: String,
    pub(super) mac_out: String,
    /// Facts that change by themselves.
    restless: BTreeSet<String>,
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
            direction: resolved.traffic.direction,
            boot_id,
            mac_in: String::new(),
            mac_out: String::new(),
            restless: BTreeSet::new(),
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
        for interface in [&self.of.interface_in, &self.of.interface_out] {
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

/// The ports at which a DUT takes the tester's frames in, and those that it sends them from.
pub(super) fn ports_of_the_load(of: &DutHost, direction: Direction) -> [Vec<&str>; 2] {
    let (face_the_generator, face_the_sink) = (&*of.interface_in, &*of.interface_out);
    match direction {
        Direction::Forward => [vec![face_the_generator], vec![face_the_sink]],
        Direction::Both => {
            let both = vec![face_the_generator, face_the_sink];
            [both.clone(), both]
        }
    }
}

/// Why the DUT's CPUs cannot be watched under a load; none where they can.
///
/// # Errors
/// Those of the connection.
pub(super) fn cpu_watch_unavailable(
    connection: &Connection,
    dut: &dyn Dut,
) -> Result<Option<String>, LabError> {
    let printed = tried(connection, &dut.cpu_watch(TRIAL_WINDOW, 0))?;
    Ok(match printed {
        Ok(text) if dut.watched_cpus(&text).is_some() => None,
        Ok(text) => Some(format!("{text:?} is not what was asked for")),
        Err(why) => Some(why),
    })
}

/// Why the DUT's stacks cannot be sampled; none where they can.
///
/// # Errors
/// Those of the connection.
pub(super) fn stack_watch_unavailable(
    connection: &Connection,
    dut: &mut dyn Dut,
    frequency_hz: u32,
) -> Result<Option<String>, LabError> {
    let words = match dut.stack_watch(TRIAL_WINDOW, frequency_hz, 0) {
        Err(error) if !error.is_of_a_connection() => return Ok(Some(error.to_string())),
        words => words?,
    };
    let printed = tried(connection, &words)?;
    let sampled = printed.and_then(|text| dut.sampled_stacks(&text, frequency_hz, TRIAL_WINDOW));
    Ok(sampled.err())
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
