//! Booting a DUT into what a variant asks for, and waiting until it is back; how a kernel is chosen is its
//! system's affair.
//!
//! What is chosen is chosen for one boot. What boots by itself stays the owner's: a host whose power is cut comes
//! back as it was.

use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::DutHost;
use fwdlab_sys::Interrupts;

use super::ssh::Connection;
use crate::journal::Journal;
use crate::mechanism::step::BootChoice;
use crate::{LabError, program};

/// How often a host that is booting is looked for.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// How long a host may answer from the boot that it was to leave until it is asked again, where nothing told that
/// it heard.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(10);
/// How long a power switch may take.
const POWER_CYCLE_TIME_MAX: Duration = Duration::from_secs(120);
/// By how much the moment of one boot may seem to move, in seconds: a clock that is set moves it too.
const BOOT_TIME_S_TOLERANCE: i64 = 2;

/// Which boot a host is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BootId {
    /// As Linux names each.
    Named(String),
    /// By the moment when it began, in seconds, as FreeBSD's clock has it now.
    BeganAt(i64),
}

impl BootId {
    /// Whether both are one boot.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BeganAt(one), Self::BeganAt(other)) => {
                one.abs_diff(*other) <= BOOT_TIME_S_TOLERANCE.unsigned_abs()
            }
            (one, other) => one == other,
        }
    }
}

/// A boot, as the host tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Boot {
    /// Another one for every boot.
    pub(super) id: BootId,
    /// The kernel: its release on Linux, its file on FreeBSD.
    pub(super) kernel: String,
    /// The kernel's command line, without the kernel's own path; none of FreeBSD.
    pub(super) command_line: Vec<String>,
}

/// What a host that has been told what to boot comes to with its next boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextBoot {
    /// What was chosen.
    Choice,
    /// A step on the way: there it has to be told again.
    Step,
}

/// What chooses what a host boots, by its system.
pub(super) trait BootLoader {
    /// Which boot a host is in, and of which kernel.
    ///
    /// # Errors
    /// Those of the connection, and `Host` where it does not tell.
    fn look(&self, connection: &Connection) -> Result<Boot, LabError>;

    /// Has the host boot into a choice the next time, or come nearer to it. What is changed is announced first.
    ///
    /// # Errors
    /// `Host` where its system cannot be told so, and those of the connection.
    fn choose(
        &mut self,
        connection: &Connection,
        journal: &mut Journal,
        choice: &BootChoice,
        by_itself: Option<&Boot>,
        time_max: Duration,
    ) -> Result<NextBoot, LabError>;

    /// Asks for a reboot. Returns whether the host said that it heard: one that did may be gone before it says so.
    fn ask_for_reboot(&self, connection: &Connection) -> bool;

    /// What of a boot is not as a choice has it, where the host boots like `by_itself` unless told otherwise, and
    /// what to look at then.
    ///
    /// # Errors
    /// Those of the connection.
    fn differs(
        &self,
        connection: &Connection,
        booted: &Boot,
        choice: &BootChoice,
        by_itself: &Boot,
    ) -> Result<Option<String>, LabError>;
}

/// A host that is booted again and again.
pub(super) struct Booter {
    connection: Rc<Connection>,
    loader: Box<dyn BootLoader>,
    time_max: Duration,
    power_cycle: Option<Vec<String>>,
    /// How it boots by itself; known once it has.
    by_itself: Option<Boot>,
    /// What it booted last, and the id of that boot.
    standing: Option<(BootChoice, BootId)>,
}

impl Booter {
    pub(super) fn new(
        connection: &Rc<Connection>,
        of: &DutHost,
        loader: Box<dyn BootLoader>,
    ) -> Self {
        Self {
            connection: Rc::clone(connection),
            loader,
            time_max: Duration::from_secs(of.reboot_s_max.into()),
            power_cycle: of.power_cycle.clone(),
            by_itself: None,
            standing: None,
        }
    }

    /// Whether a boot is one into a choice.
    pub(super) fn stands(&self, choice: &BootChoice, boot_id: &BootId) -> bool {
        let standing = self.standing.as_ref();
        standing.is_some_and(|(stands, id)| stands == choice && id.is(boot_id))
    }

    /// Goes on with a connection that was opened anew.
    pub(super) fn go_on(&mut self, connection: &Rc<Connection>) {
        self.connection = Rc::clone(connection);
    }

    /// Boots the host into a choice, and proves that it is what has booted.
    ///
    /// # Errors
    /// `Host` where it does not come back in time or comes back as something else, those of the connection, and
    /// the wish to stop.
    pub(super) fn boot(
        &mut self,
        journal: &mut Journal,
        choice: &BootChoice,
        interrupts: Interrupts,
    ) -> Result<(), LabError> {
        let interrupts = Some(interrupts);
        let booted = loop {
            let next = self.loader.choose(
                &self.connection,
                journal,
                choice,
                self.by_itself.as_ref(),
                self.time_max,
            )?;
            let before = self.loader.look(&self.connection)?.id;
            let booted = reboot_within(
                &self.connection,
                &*self.loader,
                &before,
                self.time_max,
                interrupts,
            )?;
            let booted = match booted {
                Some(booted) => booted,
                None => self.power_cycled(&before, interrupts)?,
            };
            if next == NextBoot::Choice {
                break booted;
            }
        };
        if choice.is_as_by_itself() && self.by_itself.is_none() {
            self.by_itself = Some(booted.clone());
        }
        let by_itself = self.by_itself.as_ref().unwrap_or(&booted);
        let differs = self
            .loader
            .differs(&self.connection, &booted, choice, by_itself)?;
        match differs {
            None => {
                self.standing = Some((choice.clone(), booted.id));
                Ok(())
            }
            Some(how) => Err(self
                .connection
                .wrong(format!("it was to boot {choice}, and {how}"))),
        }
    }

    fn power_cycled(
        &self,
        before: &BootId,
        interrupts: Option<Interrupts>,
    ) -> Result<Boot, LabError> {
        let time_s = self.time_max.as_secs();
        let Some(command) = &self.power_cycle else {
            return Err(self.connection.wrong(format!(
                "it did not come back from a reboot in {time_s} s; give [dut] a longer reboot_s_max, or a \
                 power_cycle command for when it hangs"
            )));
        };
        power_cycle(command)?;
        let booted = await_boot(
            &self.connection,
            &*self.loader,
            before,
            self.time_max,
            interrupts,
            &mut || {},
        )?;
        booted.ok_or_else(|| {
            self.connection.wrong(format!(
                "it came back neither from a reboot nor from a power cycle, in {time_s} s each"
            ))
        })
    }
}

/// Reboots a host that is in some boot, and waits until it answers from another.
///
/// # Errors
/// `Host` where it does not come back in time, and those of the connection.
pub(super) fn reboot(
    connection: &Connection,
    loader: &dyn BootLoader,
    before: &BootId,
    time_max: Duration,
) -> Result<(), LabError> {
    match reboot_within(connection, loader, before, time_max, None)? {
        Some(_) => Ok(()),
        None => Err(connection.wrong(format!(
            "it did not come back from a reboot in {} s",
            time_max.as_secs()
        ))),
    }
}

/// Cuts a host's power and gives it back, by the user's own program on this machine.
///
/// # Errors
/// Where the program fails.
pub(super) fn power_cycle(command: &[String]) -> Result<(), LabError> {
    let output = program::run_for(POWER_CYCLE_TIME_MAX, command, "")?;
    output.succeeded(command).map(|_| ())
}

/// Asks a host for a reboot, and waits until it answers after it; none where it does not in time. Where a connection
/// broke before the host heard, it is asked again.
fn reboot_within(
    connection: &Connection,
    loader: &dyn BootLoader,
    before: &BootId,
    time_max: Duration,
    interrupts: Option<Interrupts>,
) -> Result<Option<Boot>, LabError> {
    let mut has_heard = loader.ask_for_reboot(connection);
    let mut asked = Instant::now();
    let mut ask_again = || {
        if !has_heard && asked.elapsed() > BETWEEN_REQUESTS {
            has_heard = loader.ask_for_reboot(connection);
            asked = Instant::now();
        }
    };
    await_boot(
        connection,
        loader,
        before,
        time_max,
        interrupts,
        &mut ask_again,
    )
}

/// Waits until a host answers after another boot; none where it does not in time. Whenever it still answers from the
/// one before, `is_still_there` is called.
fn await_boot(
    connection: &Connection,
    loader: &dyn BootLoader,
    before: &BootId,
    time_max: Duration,
    interrupts: Option<Interrupts>,
    is_still_there: &mut dyn FnMut(),
) -> Result<Option<Boot>, LabError> {
    let start = Instant::now();
    loop {
        match connection.log_in().and_then(|()| loader.look(connection)) {
            Ok(boot) if !boot.id.is(before) => return Ok(Some(boot)),
            // It is still going down, or does not know that it should.
            Ok(_) => is_still_there(),
            Err(error) if error.is_of_a_connection() => {}
            // What a host is asked while it goes down may fail in any way.
            Err(LabError::OnHost { .. } | LabError::Host { .. }) => {}
            Err(error) => return Err(error),
        }
        if interrupts.is_some_and(|interrupts| interrupts.requests() > 1) {
            return Err(LabError::Interrupted);
        }
        if start.elapsed() > time_max {
            return Ok(None);
        }
        sleep(BETWEEN_LOOKS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_a_little_makes_no_other_boot() {
        let began = |s| BootId::BeganAt(s);
        assert!(began(1_732_448_000).is(&began(1_732_448_002)));
        assert!(!began(1_732_448_000).is(&began(1_732_448_003)));
        assert!(!BootId::Named("a".into()).is(&BootId::Named("b".into())));
    }

    #[test]
    fn what_boots_is_named_with_all_its_options() {
        let choice = BootChoice {
            kernel: Some("n277567".into()),
            parameters: vec!["a=1".into(), "b=2".into()],
            configs: Some("configs/on".into()),
            image: None,
        };
        assert_eq!(
            choice.to_string(),
            "kernel n277567 with a=1 b=2 and the files of configs/on"
        );
        let choice = BootChoice {
            image: Some("upgrade.img.xz".into()),
            ..BootChoice::default()
        };
        assert_eq!(choice.to_string(), "image upgrade.img.xz");
        assert_eq!(BootChoice::default().to_string(), "its own kernel");
    }
}
