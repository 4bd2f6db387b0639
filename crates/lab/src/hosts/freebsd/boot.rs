//! Booting a FreeBSD DUT into what a variant asks for: tunables of its loader, another kernel or boot environment,
//! another set of configuration files, another image.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use super::files::{
    remove_file, run_with_writable_root, save_configuration, with_tunables, without_tunables,
    write_file,
};
use super::slices::Slices;
use super::text::boot_time_s;
use crate::LabError;
use crate::hosts::boot::{Boot, BootId, BootLoader, NextBoot};
use crate::hosts::changes::announce;
use crate::hosts::dut::is_refused;
use crate::hosts::ssh::Connection;
use crate::journal::{Journal, Undo, Until};
use crate::mechanism::configs::{ConfigSet, LOADER_CONFIGURATION};
use crate::mechanism::file::cat;
use crate::mechanism::kernel::{KernelChoice, boot_environments};
use crate::mechanism::step::{BootChoice, Errand, owned};
use crate::mechanism::sysctl::shown;

/// The mode of a file that neither owner nor set has: the loader's configuration.
const MODE: u32 = 0o644;
/// What `nextboot` writes. Its own `-D` only removes it, and fails in some releases where it is not there
/// (`sbin/reboot/reboot.c`, `main`).
const NEXTBOOT: &str = "/boot/nextboot.conf";

/// What boots a FreeBSD host.
pub(in crate::hosts) struct Loader {
    /// The sets of the experiment, by their folders.
    pub(super) sets: BTreeMap<PathBuf, ConfigSet>,
    /// Whether images are booted.
    has_images: bool,
    /// Where those are written, once that is known.
    slices: Option<Slices>,
    /// The owner's files that may be replaced, as they were before; none where there was none.
    owners: Option<BTreeMap<String, Option<String>>>,
    /// What stands there now, as far as that is known.
    standing: BTreeMap<String, Option<String>>,
    /// The kernels whose next boot stands in the journal.
    announced: BTreeSet<String>,
}

impl Loader {
    /// One that chooses nothing: a host boots with the files that are there.
    pub(in crate::hosts) fn by_itself() -> Self {
        Self::new(BTreeMap::new(), false)
    }

    pub(super) fn new(sets: BTreeMap<PathBuf, ConfigSet>, has_images: bool) -> Self {
        Self {
            sets,
            has_images,
            slices: None,
            owners: None,
            standing: BTreeMap::new(),
            announced: BTreeSet::new(),
        }
    }

    /// All files that a boot of the experiment may need another content of.
    fn paths(&self) -> BTreeSet<String> {
        let of_sets = self.sets.values().flat_map(ConfigSet::keys).cloned();
        of_sets.chain([LOADER_CONFIGURATION.to_owned()]).collect()
    }

    fn read_owners(
        &self,
        connection: &Connection,
    ) -> Result<BTreeMap<String, Option<String>>, LabError> {
        let paths = self.paths();
        let commands: Vec<Vec<String>> = paths.iter().map(|path| cat(path)).collect();
        let texts = connection.run_all(&commands)?;
        let mut owners = BTreeMap::new();
        for (path, text) in paths.into_iter().zip(texts) {
            // What is no text could not be put back.
            if text.as_ref().is_some_and(|text| text.contains('\u{fffd}')) {
                return Err(connection.wrong(format!(
                    "{path} there is no text in UTF-8, and so not replaced; leave it out of the sets"
                )));
            }
            if text.is_none() && !is_refused(connection, &["test", "-e", &path])? {
                return Err(
                    connection.wrong(format!("{path} there cannot be read, and so not put back"))
                );
            }
            let text = text.map(|text| match path.as_str() {
                LOADER_CONFIGURATION => without_tunables(&text),
                _ => text,
            });
            owners.insert(path, text);
        }
        Ok(owners)
    }

    /// What each file is to hold for a choice, and its mode.
    fn wanted(
        &self,
        choice: &BootChoice,
        owners: &BTreeMap<String, Option<String>>,
    ) -> BTreeMap<String, (Option<String>, u32)> {
        let set = choice
            .configs
            .as_ref()
            .and_then(|folder| self.sets.get(folder));
        let mut wanted = BTreeMap::new();
        for (path, owners) in owners {
            let of_set = set.and_then(|set| set.get(path));
            let mode = of_set.map_or(MODE, |file| file.mode);
            let mut text = of_set.map(|file| file.text.clone()).or(owners.clone());
            if path == LOADER_CONFIGURATION && !choice.parameters.is_empty() {
                let base = text.unwrap_or_default();
                text = Some(with_tunables(&base, &choice.parameters));
            }
            wanted.insert(path.clone(), (text, mode));
        }
        wanted
    }

    /// Has the host boot a kernel the next time only.
    fn choose_kernel(
        &mut self,
        connection: &Connection,
        journal: &mut Journal,
        name: &str,
    ) -> Result<(), LabError> {
        let (command, undo) = match kernel_choice(connection, name)? {
            Some(KernelChoice::Folder) => (
                run_with_writable_root(&["nextboot", "-k", name]),
                remove_file(NEXTBOOT),
            ),
            Some(KernelChoice::BootEnvironment) => {
                // What was activated for one boot is gone once that has begun.
                let undo = ["sh", "-c", "bectl activate -T \"$0\" || :", name];
                (owned(&["bectl", "activate", "-t", name]), owned(&undo))
            }
            None => {
                return Err(connection.wrong(format!(
                    "it has neither /boot/{name}/kernel nor a boot environment {name}"
                )));
            }
        };
        if !self.announced.contains(name) {
            let what = format!("the next boot of kernel {name}");
            announce(connection, journal, what, &undo, "")?;
            self.announced.insert(name.to_owned());
        }
        connection.run(&command, "").map(|_| ())
    }
}

impl BootLoader for Loader {
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
        if choice.is_as_by_itself() && self.owners.is_none() {
            return Ok(NextBoot::Choice);
        }
        let owners = match &self.owners {
            Some(owners) => owners.clone(),
            None => {
                let owners = self.read_owners(connection)?;
                self.standing.clone_from(&owners);
                if self.has_images {
                    self.slices = Some(Slices::find(connection)?);
                }
                self.owners = Some(owners.clone());
                owners
            }
        };
        if !journal.has_open_changes() {
            let by_itself = by_itself.expect("it was booted by itself before");
            let mut changes = boot_changes(connection, by_itself, &owners, time_max);
            if let Some(slices) = &self.slices {
                // Undone first: the owner's files are those of the owner's slice.
                changes.extend(slices.changes(connection, time_max));
            }
            journal.announce_all(changes)?;
            self.announced.clear();
        }
        if let Some(slices) = &mut self.slices
            && slices.step(connection, choice.image.as_deref())?
        {
            // Of the other slice's files nothing is known.
            self.standing.clear();
            return Ok(NextBoot::Step);
        }
        let mut has_written = false;
        for (path, (text, mode)) in self.wanted(choice, &owners) {
            if self.standing.get(&path) == Some(&text) {
                continue;
            }
            // What stands there is not known if this breaks off.
            self.standing.remove(&path);
            match &text {
                Some(text) => connection.run(&write_file(&path, mode), text)?,
                None => connection.run(&remove_file(&path), "")?,
            };
            self.standing.insert(path, text);
            has_written = true;
        }
        if has_written {
            connection.run(&save_configuration(), "")?;
        }
        if let Some(name) = &choice.kernel {
            self.choose_kernel(connection, journal, name)?;
        }
        Ok(NextBoot::Choice)
    }

    fn ask_for_reboot(&self, connection: &Connection) -> bool {
        // It may be gone before it has answered. What boots, or does not, shows.
        connection.run_and_let_go(&["sh", "-c", "sync; shutdown -r now"])
    }

    fn differs(
        &self,
        connection: &Connection,
        booted: &Boot,
        choice: &BootChoice,
        by_itself: &Boot,
    ) -> Result<Option<String>, LabError> {
        if let Some(slices) = &self.slices
            && let Some(how) = slices.differs(connection, choice.image.as_deref())?
        {
            return Ok(Some(how));
        }
        let Some(name) = &choice.kernel else {
            // An image has its own, wherever that is.
            let is_own = choice.image.is_some() || booted.kernel == by_itself.kernel;
            return Ok((!is_own).then(|| {
                format!(
                    "its kernel is {}, not {}; check {NEXTBOOT} there",
                    booted.kernel, by_itself.kernel
                )
            }));
        };
        Ok(match kernel_choice(connection, name)? {
            Some(KernelChoice::Folder) => {
                let kernel = format!("/boot/{name}/kernel");
                (booted.kernel != kernel).then(|| {
                    format!(
                        "its kernel is {}, not {kernel}; see whether its loader reads what nextboot writes \
                         ({NEXTBOOT})",
                        booted.kernel
                    )
                })
            }
            Some(KernelChoice::BootEnvironment) => {
                let listed = connection.run(&["bectl", "list", "-H"], "")?;
                let is_now = boot_environments(&listed)
                    .get(name)
                    .is_some_and(|active| active.contains('N'));
                (!is_now).then(|| {
                    format!("its boot environment is not {name}; see what `bectl list` tells there")
                })
            }
            None => Some(format!("it has no {name} any more")),
        })
    }
}

/// How a kernel of this name is chosen; none where the host has none.
///
/// # Errors
/// Those of the connection.
fn kernel_choice(connection: &Connection, name: &str) -> Result<Option<KernelChoice>, LabError> {
    let answers = connection.ask(KernelChoice::questions(name).to_vec())?;
    Ok(KernelChoice::of(name, &answers))
}

/// What a boot changes, with what undoes it: files as the owner had them, and a boot with them.
fn boot_changes(
    connection: &Connection,
    by_itself: &Boot,
    owners: &BTreeMap<String, Option<String>>,
    time_max: Duration,
) -> Vec<(String, Undo)> {
    let BootId::BeganAt(boot_time_s) = by_itself.id else {
        unreachable!("boots of FreeBSD are told by when they began");
    };
    // The latest is undone first.
    let mut changes = vec![
        (
            format!("what host {} has booted", connection.host()),
            connection.undo_by_boot(Until::Itself { boot_time_s }, time_max),
        ),
        (
            "what the host keeps of /etc".to_owned(),
            connection.undo_by(Errand::of(&save_configuration())),
        ),
    ];
    for (path, text) in owners {
        let errand = match text {
            Some(text) => Errand::reading(&write_file(path, MODE), text),
            None => Errand::of(&remove_file(path)),
        };
        changes.push((format!("the file {path}"), connection.undo_by(errand)));
    }
    changes
}

/// Asks a host in which boot it is.
pub(super) fn boot(connection: &Connection) -> Result<Boot, LabError> {
    let answers = connection.run_all(&["kern.boottime", "kern.bootfile"].map(shown))?;
    let answer = |place: usize| answers[place].as_deref().unwrap_or_default().trim();
    let Some(began_at) = boot_time_s(answer(0)) else {
        return Err(connection
            .wrong("it does not tell when it has booted (sysctl kern.boottime); is it FreeBSD?"));
    };
    Ok(Boot {
        id: BootId::BeganAt(began_at),
        kernel: answer(1).to_owned(),
        command_line: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::configs::SetFile;

    #[test]
    fn files_are_a_sets_or_else_the_owners_and_tunables_stand_behind() {
        let file = |text: &str| SetFile {
            text: text.to_owned(),
            mode: 0o755,
        };
        let set = ConfigSet::from([("/etc/rc.conf".to_owned(), file("set\n"))]);
        let loader = Loader::new(BTreeMap::from([(PathBuf::from("on"), set)]), false);
        let owners = BTreeMap::from([
            ("/etc/rc.conf".to_owned(), Some("owner\n".to_owned())),
            (LOADER_CONFIGURATION.to_owned(), None),
        ]);
        let by_itself = loader.wanted(&BootChoice::default(), &owners);
        assert_eq!(by_itself["/etc/rc.conf"].0.as_deref(), Some("owner\n"));
        assert_eq!(by_itself[LOADER_CONFIGURATION].0, None);
        let choice = BootChoice {
            parameters: vec!["a.b=1".to_owned()],
            configs: Some("on".into()),
            ..BootChoice::default()
        };
        let wanted = loader.wanted(&choice, &owners);
        assert_eq!(wanted["/etc/rc.conf"], (Some("set\n".to_owned()), 0o755));
        let tunables = wanted[LOADER_CONFIGURATION].0.as_deref().unwrap();
        assert!(tunables.contains("a.b=\"1\"\n"), "{tunables}");
        let paths: Vec<String> = loader.paths().into_iter().collect();
        assert_eq!(paths, [LOADER_CONFIGURATION, "/etc/rc.conf"]);
    }
}
