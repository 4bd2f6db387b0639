//! A file below `/sys/class/net/<interface>/`: of the DUT's namespace, or of a Linux host.

use std::path::{Component, Path};

use fwdlab_model::{Direction, DutHost, DutInterface, Placement, Values, Variant};

use super::file::Files;
use super::reading::Form;
use super::{InNamespace, Site, moved, names};
use crate::topology::receiving;
use crate::{LabError, Topology};

/// The file that moves an interface's polling into a thread.
const THREADED: &str = "threaded";

/// One of the DUT's namespace.
pub(super) struct Sysfs {
    factor: String,
    /// Path below the interface's directory.
    file: String,
    interfaces: Vec<&'static str>,
    values: Values,
    forwarding_cpu: u32,
    /// Where the lab itself has the DUT forward in a thread.
    lab_s: &'static [&'static str],
}

impl Sysfs {
    pub(super) fn new(
        factor: String,
        file: String,
        interfaces: &[DutInterface],
        values: Values,
        placement: &Placement,
        direction: Direction,
    ) -> Self {
        let lab_s: &[&str] = match placement.dut_cpu {
            Some(_) => receiving(direction),
            None => &[],
        };
        Self {
            factor,
            file,
            interfaces: names(interfaces),
            values,
            forwarding_cpu: placement.forwarding_cpu(),
            lab_s,
        }
    }

    fn path(&self, interface: &str) -> String {
        format!("/sys/class/net/{interface}/{}", self.file)
    }
}

impl InNamespace for Sysfs {
    fn unavailable(
        &self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(None);
        };
        if !is_below(&self.file) {
            return Ok(Some(format!(
                "sysfs file {:?} is not a path below the interface's directory",
                self.file
            )));
        }
        for interface in &self.interfaces {
            let is_lab_s = self.file == THREADED && self.lab_s.contains(interface);
            if is_lab_s && self.values.value(level) != "1" {
                return Ok(Some(format!(
                    "with a CPU of its own the DUT forwards in a thread, which {} = {} would end",
                    self.path(interface),
                    self.values.value(level)
                )));
            }
            let Ok(value) = topology.read_dut_sysfs(interface, &self.file) else {
                return Ok(Some(format!(
                    "this kernel has no readable {}",
                    self.path(interface)
                )));
            };
            // Some files are root's even where the interface is not, and so are the kernel's threads.
            let written = topology.write_dut_sysfs(interface, &self.file, value.trim());
            let is_refused = written.is_err() || self.file == THREADED;
            if is_refused && !fwdlab_sys::is_root() {
                return Ok(Some(format!(
                    "{} is for root to set; run fwdlab as root (sudo)",
                    self.path(interface)
                )));
            }
        }
        Ok(None)
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(());
        };
        let value = self.values.value(level);
        for interface in &self.interfaces {
            let written = site.topology.write_dut_sysfs(interface, &self.file, &value);
            written.map_err(|error| match error {
                LabError::File { path, source, .. } => LabError::SysfsValue {
                    path,
                    value: value.clone(),
                    source,
                },
                error => error,
            })?;
        }
        if self.file == THREADED && value == "1" {
            // Left to the scheduler, the threads would forward where they happen to wake up.
            site.topology.pin_polling_threads(self.forwarding_cpu)?;
        }
        Ok(())
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(());
        };
        let asked = self.values.value(level);
        for interface in &self.interfaces {
            let seen = site.topology.read_dut_sysfs(interface, &self.file)?;
            if !is_same(&asked, &seen) {
                return Err(moved(self.path(interface), asked, seen.trim()));
            }
        }
        Ok(())
    }
}

/// One of a Linux host.
pub(super) fn on_linux(
    factor: &str,
    file: &str,
    interfaces: &[DutInterface],
    values: &Values,
    of: &DutHost,
) -> Files {
    let interfaces = interfaces.iter();
    let paths =
        interfaces.map(|&interface| format!("/sys/class/net/{}/{file}", of.interface(interface)));
    Files::new(factor, paths.collect(), values, Form::TextOrMask)
}

/// Whether a path stays below the directory where it begins.
fn is_below(file: &str) -> bool {
    let mut parts = Path::new(file).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Whether two values are the same for the kernel: as text, or as masks of CPUs, which it shows with
/// zeros in front and a comma every 32 bits.
pub(crate) fn is_same(asked: &str, seen: &str) -> bool {
    let mask = |text: &str| -> Option<String> {
        let digits = text.trim().replace(',', "");
        let is_mask = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_mask.then(|| digits.trim_start_matches('0').to_ascii_lowercase())
    };
    asked.trim() == seen.trim() || mask(asked).is_some_and(|asked| mask(seen) == Some(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_interface_count() {
        assert!(is_below("threaded") && is_below("queues/rx-0/rps_cpus"));
        for file in ["", "/etc/passwd", "../lo/mtu", "queues/../../lo/mtu", "."] {
            assert!(!is_below(file), "{file}");
        }
    }

    #[test]
    fn masks_are_the_same_however_they_are_shown() {
        assert!(is_same("1", "1\n"));
        assert!(is_same("3", "00000003"));
        assert!(is_same("A,00000001", "0000000a,00000001\n"));
        assert!(is_same("0", "00000000,00000000"));
        assert!(!is_same("1", "3") && !is_same("", "1") && !is_same("mq", "noqueue"));
    }
}
