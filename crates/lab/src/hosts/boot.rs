//! Booting a Linux DUT into what a variant asks for: another kernel, more parameters on its command line.
//!
//! GRUB is asked for an entry of fwdlab's own, for one boot. What boots by itself stays the owner's: a host
//! whose power is cut comes back as it was.

use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::DutHost;
use fwdlab_sys::Interrupts;

use super::grub::{ENTRY, entry, owners};
use super::ssh::{Connection, whole_file};
use crate::journal::{Journal, Undo};
use crate::{LabError, program};

/// How often a host that is booting is looked for.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// How long a power switch may take.
const POWER_CYCLE_TIME_MAX: Duration = Duration::from_secs(120);
/// Where GRUB keeps its configuration, and the program that chooses what boots next.
const GRUBS: [(&str, &str); 2] = [
    ("/boot/grub", "grub-reboot"),
    ("/boot/grub2", "grub2-reboot"),
];

/// What a host boots into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BootChoice {
    /// The kernel, by its release; the one that boots by itself without.
    pub(super) kernel: Option<String>,
    /// Words on the kernel's command line behind those that are there by themselves.
    pub(super) parameters: Vec<String>,
}

impl BootChoice {
    fn is_as_by_itself(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for BootChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kernel {
            Some(release) => write!(f, "kernel {release}")?,
            None => f.write_str("its own kernel")?,
        }
        if !self.parameters.is_empty() {
            write!(f, " with {}", self.parameters.join(" "))?;
        }
        Ok(())
    }
}

/// A boot, as the host tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Boot {
    /// Another one for every boot.
    pub(super) id: String,
    /// Release of the kernel.
    pub(super) kernel: String,
    /// The kernel's command line, without the kernel's own path.
    pub(super) command_line: Vec<String>,
}

impl Boot {
    /// Asks the host.
    pub(super) fn of(connection: &Connection) -> Result<Self, LabError> {
        let commands = [
            ["cat", "/proc/sys/kernel/random/boot_id"],
            ["cat", "/proc/cmdline"],
            ["uname", "-r"],
        ];
        let commands = commands.map(|command| command.map(str::to_owned).to_vec());
        let answers = connection.run_all(&commands)?;
        let answers: Vec<&str> = answers
            .iter()
            .map(|answer| answer.as_deref().unwrap_or_default().trim())
            .collect();
        let &[id, command_line, kernel] = answers.as_slice() else {
            unreachable!("every command has an answer");
        };
        if id.is_empty() {
            return Err(LabError::Host {
                host: connection.host().to_owned(),
                why: "it does not tell its boot id (/proc/sys/kernel/random/boot_id)".to_owned(),
            });
        }
        let words = command_line.split_whitespace();
        Ok(Self {
            id: id.to_owned(),
            kernel: kernel.to_owned(),
            command_line: words
                .filter(|word| !word.starts_with("BOOT_IMAGE="))
                .map(str::to_owned)
                .collect(),
        })
    }

    /// What of it is not as a choice has it, where the host boots like `by_itself` unless told otherwise.
    fn differs(&self, choice: &BootChoice, by_itself: &Self) -> Option<String> {
        let kernel = choice.kernel.as_ref().unwrap_or(&by_itself.kernel);
        if self.kernel != *kernel {
            return Some(format!("its kernel is {}, not {kernel}", self.kernel));
        }
        let expected: Vec<&String> = by_itself
            .command_line
            .iter()
            .chain(&choice.parameters)
            .collect();
        (self.command_line.iter().collect::<Vec<_>>() != expected).then(|| {
            let expected: Vec<&str> = expected.into_iter().map(String::as_str).collect();
            format!(
                "its command line is {:?}, not {:?}",
                self.command_line.join(" "),
                expected.join(" ")
            )
        })
    }
}

/// A host that is booted again and again.
pub(super) struct Booter {
    connection: Rc<Connection>,
    time_max: Duration,
    power_cycle: Option<Vec<String>>,
    /// How it boots by itself; known once it has.
    by_itself: Option<Boot>,
    /// What it booted last, and the id of that boot.
    standing: Option<(BootChoice, String)>,
}

impl Booter {
    pub(super) fn new(connection: &Rc<Connection>, of: &DutHost) -> Self {
        Self {
            connection: Rc::clone(connection),
            time_max: Duration::from_secs(of.reboot_s_max.into()),
            power_cycle: of.power_cycle.clone(),
            by_itself: None,
            standing: None,
        }
    }

    /// Whether a boot is one into a choice.
    pub(super) fn stands(&self, choice: &BootChoice, boot_id: &str) -> bool {
        let standing = self.standing.as_ref();
        standing.is_some_and(|(stands, id)| stands == choice && id == boot_id)
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
        if !choice.is_as_by_itself() {
            self.choose(journal, choice)?;
        }
        let before = Boot::of(&self.connection)?;
        ask_for_reboot(&self.connection);
        let booted = match await_boot(&self.connection, &before.id, self.time_max, interrupts)? {
            Some(booted) => booted,
            None => self.power_cycled(&before.id, interrupts)?,
        };
        if choice.is_as_by_itself() && self.by_itself.is_none() {
            self.by_itself = Some(booted.clone());
        }
        let by_itself = self.by_itself.as_ref().unwrap_or(&booted);
        match booted.differs(choice, by_itself) {
            None => {
                self.standing = Some((choice.clone(), booted.id));
                Ok(())
            }
            Some(how) => Err(self.wrong(format!(
                "it was to boot {choice}, and {how}; see whether its boot loader is GRUB, and whether \
                 `grub-editenv list` there shows what grub-reboot writes"
            ))),
        }
    }

    fn power_cycled(&self, before: &str, interrupts: Option<Interrupts>) -> Result<Boot, LabError> {
        let time_s = self.time_max.as_secs();
        let Some(command) = &self.power_cycle else {
            return Err(self.wrong(format!(
                "it did not come back from a reboot in {time_s} s; give [dut] a longer reboot_s_max, or a \
                 power_cycle command for when it hangs"
            )));
        };
        power_cycle(command)?;
        let booted = await_boot(&self.connection, before, self.time_max, interrupts)?;
        booted.ok_or_else(|| {
            self.wrong(format!(
                "it came back neither from a reboot nor from a power cycle, in {time_s} s each"
            ))
        })
    }

    /// Writes fwdlab's entry and has GRUB boot it once.
    fn choose(&self, journal: &mut Journal, choice: &BootChoice) -> Result<(), LabError> {
        let (folder, chooser, configuration) = grub(&self.connection)?;
        let release = choice
            .kernel
            .as_ref()
            .or(self.by_itself.as_ref().map(|boot| &boot.kernel));
        let release = release.expect("it was booted by itself before");
        let own = entry(&configuration, release, &choice.parameters)
            .map_err(|why| self.wrong(format!("{folder}/grub.cfg: {why}")))?;
        let path = format!("{folder}/custom.cfg");
        let there = match self.connection.run(&["cat", &path], "") {
            Ok(text) => Some(text),
            Err(LabError::OnHost { .. }) => None,
            Err(error) => return Err(error),
        };
        if !journal.has_open_changes() {
            self.announce(journal, &path, there.as_deref())?;
        }
        let text = owners(there.as_deref().unwrap_or_default()).to_owned() + &own;
        self.connection.write_file(&path, &text)?;
        if self.connection.run(&["cat", &path], "")? != text {
            return Err(self.wrong(format!("{path} does not read back as it was written")));
        }
        self.connection.run(&[chooser, ENTRY], "")?;
        self.connection.run(&["sync"], "").map(|_| ())
    }

    /// What undoes all that is changed here: the file goes, and the host boots as by itself.
    fn announce(
        &self,
        journal: &mut Journal,
        path: &str,
        owners: Option<&str>,
    ) -> Result<(), LabError> {
        let destination = self.connection.destination();
        let by_itself = self.by_itself.as_ref().expect("it was booted by itself");
        journal.announce(
            format!("what host {} has booted", destination.host),
            Undo::Reboot {
                host: destination.host.clone(),
                ssh_config: destination.config.clone(),
                kernel: by_itself.kernel.clone(),
                command_line: by_itself.command_line.clone(),
                time_s_max: self.time_max.as_secs(),
            },
        )?;
        let (arguments, input) = match owners {
            Some(text) => (whole_file(path).to_vec(), text),
            None => (vec!["rm", "-f", path], ""),
        };
        let undo = Undo::OnHost {
            host: destination.host.clone(),
            ssh_config: destination.config.clone(),
            arguments: arguments.into_iter().map(str::to_owned).collect(),
            input: input.to_owned(),
        };
        journal.announce(format!("the entry {ENTRY:?} of GRUB"), undo)?;
        Ok(())
    }

    fn wrong(&self, why: String) -> LabError {
        LabError::Host {
            host: self.connection.host().to_owned(),
            why,
        }
    }
}

/// Where GRUB is on a host, what chooses, and what it was configured with.
///
/// # Errors
/// `Host` where there is none that can be told what to boot once.
pub(super) fn grub(
    connection: &Connection,
) -> Result<(&'static str, &'static str, String), LabError> {
    let wrong = |why: String| LabError::Host {
        host: connection.host().to_owned(),
        why,
    };
    for (folder, chooser) in GRUBS {
        let path = format!("{folder}/grub.cfg");
        match connection.run(&["cat", &path], "") {
            Ok(text) => {
                for needed in ["next_entry", "custom.cfg"] {
                    if !text.contains(needed) {
                        return Err(wrong(format!(
                            "{path} knows no {needed}; make it anew with update-grub or grub2-mkconfig"
                        )));
                    }
                }
                return Ok((folder, chooser, text));
            }
            Err(LabError::OnHost { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(wrong(
        "kernels and their parameters are chosen by GRUB, and it has neither /boot/grub/grub.cfg nor \
         /boot/grub2/grub.cfg"
            .to_owned(),
    ))
}

/// Boots a host as it boots by itself, unless that is what has booted there, and waits until it answers.
pub(crate) fn boot_by_itself(
    connection: &Connection,
    kernel: &str,
    command_line: &[String],
    time_max: Duration,
) -> Result<(), LabError> {
    let before = Boot::of(connection)?;
    if before.kernel == kernel && before.command_line == command_line {
        return Ok(());
    }
    ask_for_reboot(connection);
    match await_boot(connection, &before.id, time_max, None)? {
        Some(_) => Ok(()),
        None => Err(LabError::Host {
            host: connection.host().to_owned(),
            why: format!(
                "it did not come back from a reboot in {} s",
                time_max.as_secs()
            ),
        }),
    }
}

/// Cuts a host's power and gives it back, by the user's own program on this machine.
///
/// # Errors
/// Where the program fails.
pub(super) fn power_cycle(command: &[String]) -> Result<(), LabError> {
    let output = program::run_for(POWER_CYCLE_TIME_MAX, command, "")?;
    if output.status.success() {
        return Ok(());
    }
    Err(LabError::Command {
        command: program::command_line(command),
        status: output.status.to_string(),
        stderr: output.stderr,
    })
}

fn ask_for_reboot(connection: &Connection) {
    // It may be gone before it has answered. What boots, or does not, shows.
    connection.run_and_let_go(&["sh", "-c", "sync; systemctl reboot || shutdown -r now"]);
}

/// Waits until a host answers after another boot; none where it does not in time.
fn await_boot(
    connection: &Connection,
    before: &str,
    time_max: Duration,
    interrupts: Option<Interrupts>,
) -> Result<Option<Boot>, LabError> {
    let start = Instant::now();
    loop {
        match connection.log_in().and_then(|()| Boot::of(connection)) {
            Ok(boot) if boot.id != before => return Ok(Some(boot)),
            // It is still going down.
            Ok(_) => {}
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
