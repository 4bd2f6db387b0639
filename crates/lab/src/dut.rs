//! The DUT's settings: each factor's level applied through its mechanism, and read back.

use std::collections::BTreeMap;

use fwdlab_model::{Binding, Lab, Level, Tester, Variant, VariantName, XdpProgram};
use fwdlab_traffic::{CountingProgram, object_bytes};

use crate::nftables::{self, Generation, nft};
use crate::topology::{DUT_IN, DUT_OUT};
use crate::{LabError, Topology};

/// Outcomes of the XDP forwarder, in the order of its `enum outcome`.
pub(crate) const FORWARDER_DROPPED: u32 = 2;

/// Loads the XDP forwarder that asks the kernel's FIB for every packet.
///
/// # Errors
/// Without the privilege.
pub fn fib_forwarder() -> Result<CountingProgram, LabError> {
    let object = object_bytes!("../bpf/fib_forwarder.bpf.o");
    Ok(CountingProgram::load(object, "forward", "outcomes")?)
}

/// What sets the DUT, and what it has found when reading back.
pub(crate) struct Dut<'a> {
    lab: &'a Lab,
    /// The XDP forwarder, where eBPF programs can be loaded.
    pub(crate) forwarder: Option<CountingProgram>,
    /// Each variant's ruleset as nft listed it when it was first applied.
    rulesets: BTreeMap<VariantName, String>,
    /// Of the ruleset that was read back last; opened when a variant first has one.
    generation: Option<Generation>,
}

impl<'a> Dut<'a> {
    pub(crate) fn new(lab: &'a Lab, tester: Tester) -> Result<Self, LabError> {
        let forwarder = match tester {
            Tester::Ebpf => Some(fib_forwarder()?),
            _ => None,
        };
        Ok(Self {
            lab,
            forwarder,
            rulesets: BTreeMap::new(),
            generation: None,
        })
    }

    /// Applies all levels of a variant.
    pub(crate) fn apply(
        &mut self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<(), LabError> {
        let settings = Settings::of(self.lab, variant)?;
        for (setting, value) in &settings.sysctls {
            topology.write_dut_setting(setting, value)?;
        }
        if let Some(ruleset) = &settings.ruleset {
            nft(topology, &["-f", "-"], &format!("flush ruleset\n{ruleset}"))?;
        }
        match (settings.xdp, &mut self.forwarder) {
            (Some(XdpProgram::Fib), Some(forwarder)) if !forwarder.xdp.is_attached() => {
                topology.dut().run(|| forwarder.xdp.attach(DUT_IN))??;
            }
            (Some(XdpProgram::Off), _) => self.detach_forwarder(),
            (Some(XdpProgram::Fib) | None, _) => {}
        }
        Ok(())
    }

    /// Takes the XDP forwarder off the DUT's interface, if it is on it.
    pub(crate) fn detach_forwarder(&mut self) {
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.xdp.detach();
        }
    }

    /// Reads all levels of a variant back.
    ///
    /// nft lists a ruleset in its own words, so what it lists first is what it must list ever after.
    pub(crate) fn read_back(
        &mut self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<(), LabError> {
        let settings = Settings::of(self.lab, variant)?;
        if let Some(ruleset) = &settings.ruleset {
            // Noted before the ruleset is listed: what changes after this is seen by `prove_unmoved`.
            match &mut self.generation {
                Some(generation) => generation.note()?,
                none => *none = Some(Generation::open(topology.dut())?),
            }
            self.read_ruleset_back(topology, variant, ruleset)?;
        }
        self.read_plain_settings_back(topology, &settings)
    }

    /// Fails where any level of a variant is another one than when it was read back; a ruleset counts
    /// as moved even where it was moved back.
    ///
    /// Fast enough to be asked after every slice.
    pub(crate) fn prove_unmoved(
        &mut self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<(), LabError> {
        let settings = Settings::of(self.lab, variant)?;
        if let (Some(ruleset), Some(generation)) = (&settings.ruleset, &mut self.generation) {
            let noted = generation.noted();
            let seen = generation.ask()?;
            if seen != noted {
                // Says what it is now, where it is another one.
                self.read_ruleset_back(topology, variant, ruleset)?;
                return Err(LabError::ReadBack {
                    setting: "the generation of the nft ruleset".into(),
                    asked: noted.to_string(),
                    seen: seen.to_string(),
                });
            }
        }
        self.read_plain_settings_back(topology, &settings)
    }

    fn read_ruleset_back(
        &mut self,
        topology: &Topology,
        variant: &Variant,
        ruleset: &str,
    ) -> Result<(), LabError> {
        let seen = nft(topology, &["--stateless", "list", "ruleset"], "")?;
        let known = self
            .rulesets
            .entry(variant.name.clone())
            .or_insert_with(|| seen.clone());
        let listed = !seen.trim().is_empty();
        if *known == seen && listed != ruleset.trim().is_empty() {
            return Ok(());
        }
        let asked = if known.trim().is_empty() {
            ruleset.to_owned()
        } else {
            known.clone()
        };
        Err(LabError::ReadBack {
            setting: "the nft ruleset".into(),
            asked,
            seen,
        })
    }

    /// All that is read by looking at it: sysctls and the XDP program.
    fn read_plain_settings_back(
        &self,
        topology: &mut Topology,
        settings: &Settings,
    ) -> Result<(), LabError> {
        for (setting, asked) in &settings.sysctls {
            let seen = topology.read_dut_setting(setting)?;
            if !seen.split_whitespace().eq(asked.split_whitespace()) {
                return Err(LabError::ReadBack {
                    setting: setting.clone(),
                    asked: asked.clone(),
                    seen: seen.trim().into(),
                });
            }
        }
        if let Some(program) = settings.xdp {
            let asked = match (program, &self.forwarder) {
                (XdpProgram::Off, _) => Some(0),
                (XdpProgram::Fib, Some(forwarder)) => Some(forwarder.xdp.id()?),
                (XdpProgram::Fib, None) => None,
            };
            let seen = topology.dut_xdp_program()?;
            if asked != Some(seen) {
                return Err(LabError::ReadBack {
                    setting: format!("the XDP program on {DUT_IN}"),
                    asked: asked.map_or_else(|| "loaded".into(), |id| id.to_string()),
                    seen: seen.to_string(),
                });
            }
        }
        Ok(())
    }
}

/// Why this machine cannot have a variant.
pub(crate) fn unavailable(
    lab: &Lab,
    variant: &Variant,
    topology: &Topology,
    tester: Tester,
) -> Result<Option<String>, LabError> {
    let settings = Settings::of(lab, variant)?;
    if settings.xdp == Some(XdpProgram::Fib) && tester != Tester::Ebpf {
        return Ok(Some(
            "this process may load no XDP program; run fwdlab as root (sudo)".into(),
        ));
    }
    if settings
        .ruleset
        .is_some_and(|ruleset| !ruleset.trim().is_empty())
        && !nftables::is_installed()
    {
        return Ok(Some(
            "nft is not installed; install it (apt-get install nftables)".into(),
        ));
    }
    for setting in settings.sysctls.keys() {
        if topology.read_dut_setting(setting).is_err() {
            return Ok(Some(format!(
                "this kernel has no readable sysctl {setting}"
            )));
        }
    }
    Ok(None)
}

/// What a variant means on this DUT.
struct Settings {
    /// Path under `/proc/sys`, value.
    sysctls: BTreeMap<String, String>,
    /// The whole nftables ruleset, where any factor sets one.
    ruleset: Option<String>,
    /// The XDP program, where any factor sets one.
    xdp: Option<XdpProgram>,
}

impl Settings {
    fn of(lab: &Lab, variant: &Variant) -> Result<Self, LabError> {
        let mut settings = Self {
            sysctls: BTreeMap::new(),
            ruleset: None,
            xdp: None,
        };
        for (factor, level) in &variant.levels {
            let unbound = || LabError::Unbound {
                factor: factor.clone(),
                level: level.to_string(),
            };
            match lab.bindings.get(factor).ok_or_else(unbound)? {
                Binding::Sysctl(key) => {
                    settings
                        .sysctls
                        .insert(sysctl_path(key), sysctl_value(level));
                }
                Binding::Nft(rulesets) => {
                    let ruleset = rulesets.get(&level.to_string()).ok_or_else(unbound)?;
                    let all = settings.ruleset.get_or_insert_default();
                    all.push_str(ruleset);
                    // The last line of a file need not end as one; the next ruleset starts its own.
                    all.push('\n');
                }
                Binding::Ethtool { .. }
                | Binding::Sysfs { .. }
                | Binding::Routes
                | Binding::Command(_) => return Err(unbound()),
                Binding::Xdp(programs) => {
                    settings.xdp = Some(*programs.get(&level.to_string()).ok_or_else(unbound)?);
                }
            }
        }
        Ok(settings)
    }
}

/// The file of a sysctl: dots become slashes, placeholders the DUT's interfaces.
fn sysctl_path(key: &str) -> String {
    key.split('.')
        .map(|part| match part {
            "{dut-in}" => DUT_IN,
            "{dut-out}" => DUT_OUT,
            part => part,
        })
        .collect::<Vec<_>>()
        .join("/")
}

fn sysctl_value(level: &Level) -> String {
    match level {
        Level::Boolean(value) => u8::from(*value).to_string(),
        Level::Integer(value) => value.to_string(),
        Level::Text(value) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctl_keys_name_files_and_interfaces() {
        assert_eq!(
            sysctl_path("net.ipv4.conf.{dut-in}.rp_filter"),
            "net/ipv4/conf/dut-in/rp_filter"
        );
        assert_eq!(sysctl_value(&Level::Boolean(true)), "1");
        assert_eq!(sysctl_value(&Level::Integer(2)), "2");
    }
}
