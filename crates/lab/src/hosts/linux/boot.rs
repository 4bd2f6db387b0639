//! Booting a Linux DUT into what a variant asks for: another kernel, more parameters on its command line.
//!
//! GRUB is asked for an entry of fwdlab's own, for one boot.

use std::time::Duration;

use super::grub::{self, ENTRY};
use crate::LabError;
use crate::hosts::boot::{Boot, BootId, BootLoader, NextBoot};
use crate::hosts::dut::unless_refused;
use crate::hosts::ssh::{Connection, whole_file};
use crate::journal::{Journal, Until};
use crate::mechanism::step::{BootChoice, Errand, words_of};

/// Where GRUB keeps its configuration, and the program that chooses what boots next.
const GRUBS: [(&str, &str); 2] = [
    ("/boot/grub", "grub-reboot"),
    ("/boot/grub2", "grub2-reboot"),
];

/// Has GRUB boot nothing else once, by `$0`.
const UNCHOOSE: &str = "program=${0%reboot}editenv; ! command -v \"$program\" >/dev/null || \"$program\" - unset next_entry";

/// What boots a Linux host.
pub(in crate::hosts) struct Grub;

impl BootLoader for Grub {
    fn look(&self, connection: &Connection) -> Result<Boot, LabError> {
        boot(connection)
    }

    fn choose(
        &mut self,
        connection: &Connection,
        journal: &mut Journal,
        choice: &BootChoice,
        by_itself: Option<&Boot>,
        time_max: Duration,
    ) -> Result<NextBoot, LabError> {
        if choice.is_as_by_itself() {
            return Ok(NextBoot::Choice);
        }
        let site = Site {
            connection,
            by_itself: by_itself.expect("it was booted by itself before"),
            time_max,
        };
        site.write_entry(journal, choice)?;
        Ok(NextBoot::Choice)
    }

    fn ask_for_reboot(&self, connection: &Connection) -> bool {
        // It may be gone before it has answered. What boots, or does not, shows.
        connection.run_and_let_go(&["sh", "-c", "sync; systemctl reboot || shutdown -r now"])
    }

    fn differs(
        &self,
        _connection: &Connection,
        booted: &Boot,
        choice: &BootChoice,
        by_itself: &Boot,
    ) -> Result<Option<String>, LabError> {
        let differs = differs(booted, choice, by_itself);
        Ok(differs.map(|how| {
            format!(
                "{how}; see whether its boot loader is GRUB, and whether `grub-editenv list` there shows what \
                 grub-reboot writes"
            )
        }))
    }
}

/// Asks a host in which boot it is.
pub(super) fn boot(connection: &Connection) -> Result<Boot, LabError> {
    let commands = [
        "cat /proc/sys/kernel/random/boot_id",
        "cat /proc/cmdline",
        "uname -r",
    ];
    let answers = connection.run_all(&commands.map(words_of))?;
    let answers: Vec<&str> = answers
        .iter()
        .map(|answer| answer.as_deref().unwrap_or_default().trim())
        .collect();
    let &[id, command_line, kernel] = answers.as_slice() else {
        unreachable!("every command has an answer");
    };
    if id.is_empty() {
        return Err(connection.wrong(
            "it does not tell its boot id (/proc/sys/kernel/random/boot_id); is it Linux?",
        ));
    }
    let words = command_line.split_whitespace();
    Ok(Boot {
        id: BootId::Named(id.to_owned()),
        kernel: kernel.to_owned(),
        command_line: words
            .filter(|word| !word.starts_with("BOOT_IMAGE="))
            .map(str::to_owned)
            .collect(),
    })
}

/// What of a boot is not as a choice has it, where the host boots like `by_itself` unless told otherwise.
fn differs(booted: &Boot, choice: &BootChoice, by_itself: &Boot) -> Option<String> {
    let kernel = choice.kernel.as_ref().unwrap_or(&by_itself.kernel);
    if booted.kernel != *kernel {
        return Some(format!("its kernel is {}, not {kernel}", booted.kernel));
    }
    let expected: Vec<&String> = by_itself
        .command_line
        .iter()
        .chain(&choice.parameters)
        .collect();
    (booted.command_line.iter().collect::<Vec<_>>() != expected).then(|| {
        let expected: Vec<&str> = expected.into_iter().map(String::as_str).collect();
        format!(
            "its command line is {:?}, not {:?}",
            booted.command_line.join(" "),
            expected.join(" ")
        )
    })
}

/// A host while its next boot is chosen.
struct Site<'a> {
    connection: &'a Connection,
    by_itself: &'a Boot,
    time_max: Duration,
}

impl Site<'_> {
    /// Writes fwdlab's entry and has GRUB boot it once.
    fn write_entry(&self, journal: &mut Journal, choice: &BootChoice) -> Result<(), LabError> {
        let (folder, chooser, configuration) = find_grub(self.connection)?;
        let release = choice.kernel.as_ref().unwrap_or(&self.by_itself.kernel);
        let entry = grub::entry(&configuration, release, &choice.parameters)
            .map_err(|why| self.connection.wrong(format!("{folder}/grub.cfg: {why}")))?;
        let path = format!("{folder}/custom.cfg");
        let there = unless_refused(self.connection.run(&["cat", &path], ""))?.ok();
        let owners = there.as_deref().map(grub::owners);
        if !journal.has_open_changes() {
            // A file of nothing but an entry that was left there is none of the owner's.
            let is_file = owners != Some("") || there.as_deref() == Some("");
            self.announce(journal, chooser, &path, owners.filter(|_| is_file))?;
        }
        let text = owners.unwrap_or_default().to_owned() + &entry;
        self.connection.write_file(&path, &text)?;
        if self.connection.run(&["cat", &path], "")? != text {
            return Err(self
                .connection
                .wrong(format!("{path} does not read back as it was written")));
        }
        self.connection.run(&[chooser, ENTRY], "")?;
        self.connection.run(&["sync"], "").map(|_| ())
    }

    /// What undoes all that is changed here: the file goes, and the host boots as by itself.
    fn announce(
        &self,
        journal: &mut Journal,
        chooser: &str,
        path: &str,
        owners: Option<&str>,
    ) -> Result<(), LabError> {
        let by_itself = Until::Kernel {
            kernel: self.by_itself.kernel.clone(),
            command_line: self.by_itself.command_line.clone(),
        };
        let booted = self.connection.undo_by_boot(by_itself, self.time_max);
        let owners_file = match owners {
            Some(text) => Errand::reading(&whole_file(path), text),
            None => Errand::of(&["rm", "-f", path]),
        };
        // An entry that is gone is not to be chosen; where GRUB has booted it, the choice is gone already.
        let unchosen = Errand::of(&["sh", "-c", UNCHOOSE, chooser]);
        let changes = [
            (
                format!("what host {} has booted", self.connection.host()),
                booted,
            ),
            (
                format!("the entry {ENTRY:?} of GRUB"),
                self.connection.undo_by(owners_file),
            ),
            (
                format!("that GRUB boots {ENTRY:?} once"),
                self.connection.undo_by(unchosen),
            ),
        ];
        journal.announce_all(changes).map(|_| ())
    }
}

/// Where GRUB is on a host, what chooses, and what it was configured with.
///
/// # Errors
/// `Host` where there is none that can be told what to boot once.
pub(in crate::hosts) fn find_grub(
    connection: &Connection,
) -> Result<(&'static str, &'static str, String), LabError> {
    for (folder, chooser) in GRUBS {
        let path = format!("{folder}/grub.cfg");
        let Ok(text) = unless_refused(connection.run(&["cat", &path], ""))? else {
            continue;
        };
        for needed in ["next_entry", "custom.cfg"] {
            if !text.contains(needed) {
                return Err(connection.wrong(format!(
                    "{path} knows no {needed}; make it anew with update-grub or grub2-mkconfig"
                )));
            }
        }
        if !grub::has_kernels(&text) {
            return Err(connection.wrong(format!(
                "{path} has no entry that loads a kernel{}",
                if text.contains("blscfg") {
                    ": they are files of their own (BLS), which are not read; set GRUB_ENABLE_BLSCFG=false in \
                     /etc/default/grub and make it anew with grub2-mkconfig"
                } else {
                    "; make it anew with update-grub or grub2-mkconfig"
                }
            )));
        }
        return Ok((folder, chooser, text));
    }
    Err(connection.wrong(
        "kernels and their parameters are chosen by GRUB, and it has neither /boot/grub/grub.cfg nor \
         /boot/grub2/grub.cfg",
    ))
}
