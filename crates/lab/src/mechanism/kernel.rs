//! Which kernel is booted: of Linux by its release, of FreeBSD by its folder or as a boot environment.

use std::collections::BTreeMap;

use fwdlab_model::Variant;

use super::Mechanism;
use super::by_level::ByLevel;
use super::question::{Answers, Question};
use super::step::{BootChoice, owned};
use crate::LabError;

/// Lists the kernels and the boot environments of a FreeBSD host.
const THERE: [&str; 3] = [
    "sh",
    "-c",
    "ls -d /boot/*/kernel; bectl list -H 2>/dev/null | cut -f 1",
];

/// Lists the boot environments of a FreeBSD host.
pub(crate) const BOOT_ENVIRONMENTS: [&str; 3] = ["bectl", "list", "-H"];

/// The kernel of a Linux host. Whether GRUB has such an entry shows when it is to boot.
pub(super) struct LinuxKernel(pub(super) ByLevel<String>);

impl Mechanism for LinuxKernel {
    fn boot(&self, variant: &Variant, choice: &mut BootChoice) -> Result<(), LabError> {
        choice.kernel = self.0.get(variant)?.cloned().or(choice.kernel.take());
        Ok(())
    }
}

/// The kernel of a FreeBSD host.
pub(super) struct FreebsdKernel {
    pub(super) kernels: ByLevel<String>,
    /// Whether other factors write files, which count in one boot environment alone.
    pub(super) writes_files: bool,
}

/// How a kernel of FreeBSD is chosen for the next boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelChoice {
    /// By its folder in `/boot`.
    Folder,
    /// As a boot environment.
    BootEnvironment,
}

impl KernelChoice {
    /// What has to be asked to find out how a kernel is chosen.
    pub(crate) fn questions(name: &str) -> [Vec<String>; 2] {
        let file = format!("/boot/{name}/kernel");
        [owned(&["test", "-e", &file]), owned(&BOOT_ENVIRONMENTS)]
    }

    /// How a kernel of that name is chosen; none where there is none.
    pub(crate) fn of(name: &str, answers: &Answers) -> Option<Self> {
        let [folder, environments] = Self::questions(name);
        if answers.get(&folder).is_some() {
            return Some(Self::Folder);
        }
        let listed = answers.get(&environments)?;
        let is_there = boot_environments(listed).contains_key(name);
        is_there.then_some(Self::BootEnvironment)
    }
}

impl Mechanism for FreebsdKernel {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let Some(name) = self.kernels.get(variant)? else {
            return Ok(Vec::new());
        };
        let mut questions = KernelChoice::questions(name).map(Question::maybe).to_vec();
        questions.push(Question::maybe(owned(&THERE)));
        Ok(questions)
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let Some(name) = self.kernels.get(variant)? else {
            return Ok(None);
        };
        Ok(match KernelChoice::of(name, answers) {
            Some(KernelChoice::Folder) => None,
            Some(KernelChoice::BootEnvironment) => self.writes_files.then(|| {
                format!(
                    "{name} is a boot environment, in which files and tunables of this one do not count; put its \
                     kernel into a folder below /boot"
                )
            }),
            None => {
                let there = answers.get(&owned(&THERE)).unwrap_or_default();
                let there: Vec<&str> = there.split_whitespace().collect();
                Some(format!(
                    "it has neither /boot/{name}/kernel nor a boot environment {name}; it has {}",
                    there.join(", ")
                ))
            }
        })
    }

    fn boot(&self, variant: &Variant, choice: &mut BootChoice) -> Result<(), LabError> {
        if let Some(name) = self.kernels.get(variant)? {
            choice.kernel = Some(name.clone());
        }
        Ok(())
    }
}

/// The boot environments of `bectl list -H`, with what of them is active: `N` now, `R` on reboot.
pub(crate) fn boot_environments(text: &str) -> BTreeMap<String, String> {
    let environments = text.lines().filter_map(|line| {
        let mut words = line.split('\t');
        let name = words.next().filter(|name| !name.is_empty())?;
        Some((name.to_owned(), words.next()?.to_owned()))
    });
    environments.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn boot_environments_are_named() {
        let text = "default\tNR\t/\t1.2G\t2026-11-01 10:00\nn277567\t-\t-\t10M\t2026-11-02 10:00\n";
        let environments = boot_environments(text);
        assert_eq!(environments["default"], "NR");
        assert_eq!(environments["n277567"], "-");
    }

    proptest! {
        #[test]
        fn any_list_is_read(text in "([a-z]{0,9}[\t\n -]{0,3}|\\PC){0,60}") {
            prop_assert!(boot_environments(&text).len() <= text.lines().count());
        }
    }
}
