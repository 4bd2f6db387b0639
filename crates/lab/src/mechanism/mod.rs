//! What a mechanism becomes on a DUT: how a factor's level is set, and read back. A mechanism is a file.
//!
//! On a host it is questions, and from their answers what is done and undone, as data ([`Mechanism`]): a connection carries
//! out those of all mechanisms at once. In a namespace of this machine it does all of that itself ([`InNamespace`]): what
//! it changes there goes with the namespace, and what outlives that is announced to the journal before it is done.

mod boot;
mod by_level;
mod command;
pub(crate) mod configs;
pub(crate) mod ethtool;
pub(crate) mod file;
mod filters;
mod image;
pub(crate) mod kernel;
mod namespace;
mod nft;
pub(crate) mod program;
mod reading;
pub(crate) mod routes;
pub(crate) mod step;
pub(crate) mod sysctl;
mod sysfs;
mod tc;
pub(crate) mod xdp;

use std::collections::BTreeMap;
use std::path::PathBuf;

use fwdlab_model::{
    Binding, DutHost, DutInterface, Lab, Level, PacketFilter, Placement, Resolved, Variant,
};

pub(crate) use self::namespace::{Dut, Site};
pub(crate) use self::nft::is_installed as nft_is_installed;
pub use self::xdp::fib_forwarder;

use self::by_level::Rulesets;
use self::configs::ConfigSet;
use self::namespace::{InNamespace, moved};
use self::reading::Reading;
use self::step::{Action, Answers, BootChoice, Question, Step};
use crate::LabError;
use crate::counters::Drops;
use crate::topology::{DUT_IN, DUT_OUT};

/// What a mechanism becomes on a host, without any way there: what it asks, and what follows from the answers.
///
/// A variant that says nothing of it asks for nothing.
pub(crate) trait Mechanism {
    /// What is asked to find out whether the host can have a variant.
    fn needs(&self, _variant: &Variant) -> Result<Vec<Question>, LabError> {
        Ok(Vec::new())
    }

    /// Why a host that answers so cannot have the variant; none where it can.
    fn lacking(&self, _variant: &Variant, _answers: &Answers) -> Result<Option<String>, LabError> {
        Ok(None)
    }

    /// What the host has to boot for the variant.
    fn boot(&self, _variant: &Variant, _choice: &mut BootChoice) -> Result<(), LabError> {
        Ok(())
    }

    /// What is asked before anything is changed, so that it can be put back.
    fn looks(&self) -> Vec<Question> {
        Vec::new()
    }

    /// What variants may change on a host that answers so, with what puts it back.
    fn keep(&mut self, _answers: &Answers) -> Result<Vec<Step>, LabError> {
        Ok(Vec::new())
    }

    /// Nothing stands any more of what was set, as after a boot.
    fn forget(&mut self) {}

    /// What sets the variant's level, in this order.
    fn actions(&mut self, _variant: &Variant) -> Result<Vec<Action>, LabError> {
        Ok(Vec::new())
    }

    /// What tells how many frames were dropped by what a variant may set, beside the kernel's own counters.
    fn counters(&self) -> Vec<Vec<String>> {
        Vec::new()
    }

    /// Those frames so far, by reason.
    fn drops(&self, _answers: &Answers) -> Drops {
        Drops::new()
    }

    /// What reads it back, where a setting is an answer.
    fn readings(&self, _variant: &Variant) -> Result<Vec<Reading>, LabError> {
        Ok(Vec::new())
    }

    /// What is asked to read it back.
    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let readings = self.readings(variant)?.into_iter();
        Ok(readings
            .map(|reading| Question::Needed(reading.question))
            .collect())
    }

    /// What reads back as something else than the variant's; none where all is as asked.
    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let readings = self.readings(variant)?;
        Ok(readings.iter().find_map(|reading| reading.moved(answers)))
    }
}

/// The mechanisms of a lab's factors in a namespace of this machine, but XDP, in the order in which they set a variant.
///
/// # Errors
/// `File` where what is to be loaded cannot be read.
fn in_namespace(
    resolved: &Resolved,
    placement: &Placement,
) -> Result<Vec<Box<dyn InNamespace>>, LabError> {
    let mut mechanisms: Vec<Box<dyn InNamespace>> = Vec::new();
    let mut commands: Vec<Box<dyn InNamespace>> = Vec::new();
    for (factor, binding) in &resolved.lab.bindings {
        let factor = factor.clone();
        match binding {
            Binding::Sysctl { key, values } => {
                mechanisms.push(Box::new(sysctl::Sysctl::new(factor, key, values.clone())));
            }
            Binding::Ethtool {
                feature,
                interfaces,
            } => mechanisms.push(Box::new(ethtool::Ethtool::new(
                factor,
                feature.clone(),
                interfaces,
                resolved.traffic.direction,
            ))),
            Binding::Sysfs {
                file,
                interfaces,
                values,
            } => mechanisms.push(Box::new(sysfs::Sysfs::new(
                factor,
                file.clone(),
                interfaces,
                values.clone(),
                placement,
                resolved.traffic.direction,
            ))),
            Binding::Routes => mechanisms.push(Box::new(routes::Routes::new(factor))),
            Binding::Command(programs) => {
                let programs = programs.with_interfaces(DUT_IN, DUT_OUT);
                commands.push(Box::new(command::Programs::new(factor, programs)));
            }
            // One ruleset, and one program a hook, for all factors together.
            Binding::Nft(_) | Binding::Xdp(_) | Binding::Tc(_) => {}
            // Of other kinds of lab.
            Binding::Knob { .. }
            | Binding::Ruleset { .. }
            | Binding::Configs(_)
            | Binding::Image(_)
            | Binding::Module { .. }
            | Binding::Loader { .. }
            | Binding::CommandLine(_)
            | Binding::Kernel(_) => {}
        }
    }
    let tc = tc::Tc::new(&resolved.lab, resolved.traffic.direction)?;
    mechanisms.extend(tc.map(|tc| Box::new(tc) as Box<dyn InNamespace>));
    mechanisms
        .extend(nft::Nft::new(&resolved.lab).map(|nft| Box::new(nft) as Box<dyn InNamespace>));
    mechanisms.extend(commands);
    Ok(mechanisms)
}

/// The mechanisms of a lab's factors on a Linux host, in the order in which they set a variant.
///
/// # Errors
/// `File` where what is brought to the host cannot be read.
pub(crate) fn on_linux(
    resolved: &Resolved,
    of: &DutHost,
) -> Result<Vec<Box<dyn Mechanism>>, LabError> {
    let mut mechanisms: Vec<Box<dyn Mechanism>> = Vec::new();
    // Behind the files: a kernel that is told to forward switches LRO off.
    let mut features: Vec<Box<dyn Mechanism>> = Vec::new();
    let mut routes: Vec<Box<dyn Mechanism>> = Vec::new();
    let mut commands: Vec<Box<dyn Mechanism>> = Vec::new();
    // First: a driver that takes a program may change its port's features.
    if let Some(programs) = xdp::programs(&resolved.lab) {
        mechanisms.push(Box::new(xdp::LinuxXdp::new(programs, of)));
    }
    if let Some(tc) = tc::LinuxTc::new(&resolved.lab, resolved.traffic.direction, of)? {
        mechanisms.push(Box::new(tc));
    }
    for (factor, binding) in &resolved.lab.bindings {
        match binding {
            Binding::Sysctl { key, values } => {
                mechanisms.push(Box::new(sysctl::on_linux(factor, key, values, of)));
            }
            Binding::Sysfs {
                file,
                interfaces,
                values,
            } => {
                let files = sysfs::on_linux(factor, file, interfaces, values, of);
                mechanisms.push(Box::new(files));
            }
            Binding::Ethtool {
                feature,
                interfaces,
            } => {
                let feature = ethtool::LinuxFeature::new(factor, feature, interfaces, of);
                features.push(Box::new(feature));
            }
            Binding::Module {
                module,
                parameter,
                values,
            } => {
                let module = boot::Module::new(factor, module, parameter, values);
                mechanisms.push(Box::new(module));
            }
            Binding::CommandLine(parameters) => {
                mechanisms.push(Box::new(boot::CommandLine::new(factor, parameters)));
            }
            Binding::Kernel(releases) => {
                mechanisms.push(Box::new(kernel::LinuxKernel::new(factor, releases)));
            }
            Binding::Routes => {
                let families = &resolved.traffic.families;
                routes.push(Box::new(routes::LinuxRoutes::new(factor, of, families)));
            }
            Binding::Command(programs) => commands.push(own_programs(factor, programs, of)),
            // One ruleset, and one program a hook, for all factors together.
            Binding::Nft(_) | Binding::Xdp(_) | Binding::Tc(_) => {}
            // Of other kinds of lab.
            Binding::Ruleset { .. }
            | Binding::Knob { .. }
            | Binding::Loader { .. }
            | Binding::Configs(_)
            | Binding::Image(_) => mechanisms.push(Box::new(OfAnotherSystem {
                factor: factor.clone(),
                system: "Linux",
            })),
        }
    }
    mechanisms.extend(features);
    let texts = |binding: Binding| match binding {
        Binding::Nft(texts) => Some(texts),
        _ => None,
    };
    if let Some(rulesets) = rulesets(&resolved.lab, of, texts) {
        mechanisms.push(Box::new(nft::LinuxNft::new(rulesets)));
    }
    mechanisms.extend(routes);
    mechanisms.extend(commands);
    Ok(mechanisms)
}

/// The same on a FreeBSD host, which may get these sets of configuration files.
pub(crate) fn on_freebsd(
    resolved: &Resolved,
    of: &DutHost,
    sets: &BTreeMap<PathBuf, ConfigSet>,
) -> Vec<Box<dyn Mechanism>> {
    let bindings = &resolved.lab.bindings;
    let mut mechanisms: Vec<Box<dyn Mechanism>> = Vec::new();
    let mut commands: Vec<Box<dyn Mechanism>> = Vec::new();
    let writes_files = bindings
        .values()
        .any(|binding| matches!(binding, Binding::Loader { .. } | Binding::Configs(_)));
    for (factor, binding) in bindings {
        match binding {
            Binding::Sysctl { key, values } => {
                mechanisms.push(Box::new(sysctl::FreebsdSysctl::new(factor, key, values)));
            }
            Binding::Loader { tunable, values } => {
                mechanisms.push(Box::new(boot::Loader::new(factor, tunable, values)));
            }
            Binding::Kernel(kernels) => {
                let kernel = kernel::FreebsdKernel::new(factor, kernels, writes_files);
                mechanisms.push(Box::new(kernel));
            }
            Binding::Configs(folders) => {
                mechanisms.push(Box::new(configs::Configs::new(factor, folders, sets)));
            }
            Binding::Image(images) => mechanisms.push(Box::new(image::Image::new(factor, images))),
            Binding::Command(programs) => commands.push(own_programs(factor, programs, of)),
            // One ruleset of a filter for all factors together.
            Binding::Ruleset { .. } => {}
            // Of other kinds of lab.
            Binding::Nft(_)
            | Binding::Xdp(_)
            | Binding::Tc(_)
            | Binding::Ethtool { .. }
            | Binding::Sysfs { .. }
            | Binding::Module { .. }
            | Binding::Routes
            | Binding::Knob { .. }
            | Binding::CommandLine(_) => mechanisms.push(Box::new(OfAnotherSystem {
                factor: factor.clone(),
                system: "FreeBSD",
            })),
        }
    }
    for filter in [PacketFilter::Pf, PacketFilter::Ipfw, PacketFilter::Ipf] {
        let texts = |binding: Binding| match binding {
            Binding::Ruleset { filter: of, texts } if of == filter => Some(texts),
            _ => None,
        };
        if let Some(rulesets) = rulesets(&resolved.lab, of, texts) {
            mechanisms.push(Box::new(filters::Filter::new(filter, rulesets)));
        }
    }
    mechanisms.extend(commands);
    mechanisms
}

/// The owner's programs come last, so that they find the rest in place.
fn own_programs(
    factor: &str,
    programs: &fwdlab_model::CommandBinding,
    of: &DutHost,
) -> Box<dyn Mechanism> {
    let programs = programs.with_interfaces(&of.interface_in, &of.interface_out);
    Box::new(command::HostPrograms::new(factor, programs))
}

/// The rulesets of a host, with the names of its ports.
fn rulesets(
    lab: &Lab,
    of: &DutHost,
    texts: impl Fn(Binding) -> Option<BTreeMap<String, String>>,
) -> Option<Rulesets> {
    let named =
        |binding: &Binding| texts(binding.with_interfaces(&of.interface_in, &of.interface_out));
    Rulesets::of(bound(lab, named))
}

/// A factor that is set in no way that the system of the host has.
struct OfAnotherSystem {
    factor: String,
    system: &'static str,
}

impl Mechanism for OfAnotherSystem {
    fn lacking(&self, variant: &Variant, _: &Answers) -> Result<Option<String>, LabError> {
        let is_set = variant.levels.contains_key(&self.factor);
        Ok(is_set.then(|| format!("it is set in no way that a {} host has", self.system)))
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let level = variant.levels.get(&self.factor);
        level.map_or(Ok(Vec::new()), |level| {
            Err(unbound_level(&self.factor, level))
        })
    }
}

pub(crate) fn unbound_level(factor: &str, level: &Level) -> LabError {
    LabError::Unbound {
        factor: factor.to_owned(),
        level: level.to_string(),
    }
}

/// The names of interfaces of the DUT.
fn names(interfaces: &[DutInterface]) -> Vec<&'static str> {
    interfaces
        .iter()
        .map(|interface| match interface {
            DutInterface::DutIn => DUT_IN,
            DutInterface::DutOut => DUT_OUT,
        })
        .collect()
}

/// All factors of a lab that are bound to one kind of mechanism.
fn bound<'a, T>(
    lab: &'a Lab,
    pick: impl Fn(&'a Binding) -> Option<T>,
) -> impl Iterator<Item = (String, T)> {
    lab.bindings
        .iter()
        .filter_map(move |(factor, binding)| Some((factor.clone(), pick(binding)?)))
}
