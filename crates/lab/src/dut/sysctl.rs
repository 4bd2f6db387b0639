//! A key under `net.` in the DUT's namespace.

use std::path::Path;

use fwdlab_model::{Values, Variant};

use super::{Mechanism, Site, moved};
use crate::topology::{DUT_IN, DUT_OUT};
use crate::{LabError, Topology};

pub(super) struct Sysctl {
    factor: String,
    /// Path under `/proc/sys`.
    setting: String,
    values: Values,
}

impl Sysctl {
    pub(super) fn new(factor: String, key: &str, values: Values) -> Self {
        Self {
            factor,
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
        let name = &self.setting;
        Ok(Some(if Path::new("/proc/sys").join(name).exists() {
            format!(
                "sysctl {name} exists only in the machine's own network namespace, not in the DUT's; measure it on a \
                 host (docs/labs.md)"
            )
        } else {
            format!("this kernel has no readable sysctl {name}")
        }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctl_keys_name_files_and_interfaces() {
        assert_eq!(
            path("net.ipv4.conf.{dut-in}.rp_filter"),
            "net/ipv4/conf/dut-in/rp_filter"
        );
    }
}
