//! A key under `net.` in the DUT's namespace.

use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_model::{Values, Variant, nearest};

use super::{Mechanism, Site, moved};
use crate::topology::{DUT_IN, DUT_OUT};
use crate::{LabError, Topology};

const PROC_SYS: &str = "/proc/sys";

pub(super) struct Sysctl {
    factor: String,
    key: String,
    /// Path under `/proc/sys`.
    setting: String,
    values: Values,
}

impl Sysctl {
    pub(super) fn new(factor: String, key: &str, values: Values) -> Self {
        Self {
            factor,
            key: key.to_owned(),
            setting: path(key),
            values,
        }
    }
}

impl Mechanism for Sysctl {
    fn unavailable(
        &self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        let is_missing = variant.levels.contains_key(&self.factor)
            && topology.read_dut_setting(&self.setting).is_err();
        if !is_missing {
            return Ok(None);
        }
        let key = &self.key;
        if Path::new(PROC_SYS).join(&self.setting).exists() {
            return Ok(Some(format!(
                "sysctl {key} exists only in the machine's own network namespace, not in the DUT's; measure it on a \
                 host (docs/labs.md)"
            )));
        }
        let meant = topology.dut().run(|| nearest_setting(&self.setting))?;
        let meant = meant.map(|setting| format!("; did you mean {}?", key_of(&setting)));
        Ok(Some(format!(
            "this kernel has no readable sysctl {key}{}",
            meant.unwrap_or_default()
        )))
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(());
        };
        site.topology
            .write_dut_setting(&self.setting, &self.values.value(level))
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(());
        };
        let asked = self.values.value(level);
        let seen = site.topology.read_dut_setting(&self.setting)?;
        if seen.split_whitespace().eq(asked.split_whitespace()) {
            Ok(())
        } else {
            Err(moved(&self.setting, asked, seen.trim()))
        }
    }
}

/// The file of a sysctl: dots become slashes, placeholders the DUT's interfaces.
fn path(key: &str) -> String {
    key.split('.')
        .map(|part| match part {
            "{dut-in}" => DUT_IN,
            "{dut-out}" => DUT_OUT,
            part => part,
        })
        .collect::<Vec<_>>()
        .join("/")
}

/// The setting below `/proc/sys` that was probably meant: at every step the entry that is there, or the nearest one.
fn nearest_setting(setting: &str) -> Option<String> {
    let mut found = PathBuf::new();
    for part in setting.split('/') {
        let folder = Path::new(PROC_SYS).join(&found);
        if folder.join(part).exists() {
            found.push(part);
            continue;
        }
        let entries = fs::read_dir(folder).ok()?.flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        found.push(nearest(part, names.iter().map(String::as_str))?);
    }
    let is_setting = Path::new(PROC_SYS).join(&found).is_file();
    is_setting.then(|| found.to_string_lossy().into_owned())
}

/// The key of a setting, as a lab file has it.
fn key_of(setting: &str) -> String {
    let parts = setting.split('/').map(|part| match part {
        DUT_IN => "{dut-in}",
        DUT_OUT => "{dut-out}",
        part => part,
    });
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_in_a_key_is_seen_in_every_part() {
        let meant = |key: &str| nearest_setting(&path(key)).map(|setting| key_of(&setting));
        let rp_filter = Some("net.ipv4.conf.all.rp_filter".to_owned());
        assert_eq!(meant("net.ipv4.conf.all.rp_filer"), rp_filter);
        assert_eq!(meant("net.ipv4.cnf.all.rpfilter"), rp_filter);
        assert_eq!(meant("net.ipv4.conf.all.something_else"), None);
        assert_eq!(meant("net.ipv4.conf"), None);
    }

    #[test]
    fn sysctl_keys_name_files_and_interfaces() {
        assert_eq!(
            path("net.ipv4.conf.{dut-in}.rp_filter"),
            "net/ipv4/conf/dut-in/rp_filter"
        );
    }
}
