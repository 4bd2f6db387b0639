//! What a mechanism becomes on a DUT: how a factor's level is set, and read back. A mechanism is a file.
//!
//! It is questions, and from their answers what is done and undone, as data ([`Mechanism`]): a [`Transport`] carries out those
//! of all mechanisms at once, whether the DUT is a namespace of this machine or a host.

pub(crate) mod boot;
mod by_level;
mod command;
pub(crate) mod configs;
pub(crate) mod ethtool;
pub(crate) mod file;
mod filters;
mod forwarder;
mod harvest_mask;
mod held;
pub(crate) mod iflib;
mod image;
pub(crate) mod kernel;
pub(crate) mod nft;
pub(crate) mod object;
pub(crate) mod program;
pub(crate) mod question;
mod reading;
pub(crate) mod routes;
pub(crate) mod settings;
pub(crate) mod step;
pub(crate) mod sysctl;
pub(crate) mod sysfs;
mod tc;
pub(crate) mod tools;
pub(crate) mod transport;
pub(crate) mod xdp;

use std::collections::BTreeMap;
use std::path::PathBuf;

use fwdlab_model::{
    AddressFamily, Binding, CommandBinding, Direction, DutHost, DutInterface, Lab, Level,
    PacketFilter, Resolved, Values, Variant,
};

pub use self::xdp::fib_forwarder;

use self::by_level::{ByLevel, Rulesets};
use self::configs::ConfigSet;
use self::question::{Answers, Question};
use self::reading::Reading;
use self::step::{Action, BootChoice, Step};
use self::transport::Watch;
use crate::counters::Drops;
use crate::topology::{DUT_IN, DUT_OUT};
use crate::{LabError, Moved};

/// What a mechanism becomes on a DUT, without any way there: what it asks, and what follows from the answers.
///
/// A variant that says nothing of it asks for nothing.
pub(crate) trait Mechanism {
    /// What is asked to find out whether the DUT can have a variant.
    fn needs(&self, _variant: &Variant) -> Result<Vec<Question>, LabError> {
        Ok(Vec::new())
    }

    /// Why a DUT that answers so cannot have the variant; none where it can.
    fn lacking(&self, _variant: &Variant, _answers: &Answers) -> Result<Option<String>, LabError> {
        Ok(None)
    }

    /// What the DUT has to boot for the variant.
    fn boot(&self, _variant: &Variant, _choice: &mut BootChoice) -> Result<(), LabError> {
        Ok(())
    }

    /// What is asked before anything is changed, so that it can be put back.
    fn looks(&self) -> Vec<Question> {
        Vec::new()
    }

    /// What variants may change on a DUT that answers so, with what puts it back. Not called for a namespace.
    fn keep(&mut self, _answers: &Answers) -> Result<Vec<Step>, LabError> {
        Ok(Vec::new())
    }

    /// Nothing stands any more of what was set, as after a boot.
    fn forget(&mut self) {}

    /// Only frames of this family are forwarded from now on.
    fn set_family(&mut self, _family: AddressFamily) {}

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
            .map(|reading| Question::Needed(reading.look))
            .collect())
    }

    /// What reads back as something else than the variant's; none where all is as asked.
    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        let readings = self.readings(variant)?;
        Ok(readings.iter().find_map(|reading| reading.moved(answers)))
    }

    /// What notices that it has moved since it was read back, where a transport can.
    fn watch(&self, _variant: &Variant) -> Result<Option<Watch>, LabError> {
        Ok(None)
    }
}

/// Where the mechanisms of a Linux DUT act.
#[derive(Clone, Debug)]
pub(crate) struct DutPlace {
    /// What messages call the DUT's machine.
    host: String,
    interface_in: String,
    interface_out: String,
    /// Whether it is a namespace that the lab has made: nothing of an owner's is there.
    is_namespace: bool,
    /// Whether it may have an nft ruleset, as far as is known before it is asked.
    has_nftables: bool,
}

impl DutPlace {
    /// A namespace of this machine.
    pub(crate) fn in_namespace(has_nftables: bool) -> Self {
        Self {
            host: "this machine".to_owned(),
            interface_in: DUT_IN.to_owned(),
            interface_out: DUT_OUT.to_owned(),
            is_namespace: true,
            has_nftables,
        }
    }

    /// A host.
    pub(crate) fn on_host(of: &DutHost) -> Self {
        Self {
            host: of.host.clone(),
            interface_in: of.interface_in.clone(),
            interface_out: of.interface_out.clone(),
            is_namespace: false,
            has_nftables: true,
        }
    }

    fn ports(&self) -> [&str; 2] {
        [&self.interface_in, &self.interface_out]
    }

    fn port(&self, interface: DutInterface) -> &str {
        match interface {
            DutInterface::DutIn => &self.interface_in,
            DutInterface::DutOut => &self.interface_out,
        }
    }

    /// The ports where the generators' frames come in.
    fn receiving(&self, direction: Direction) -> Vec<String> {
        match direction {
            Direction::Forward => vec![self.interface_in.clone()],
            Direction::Both => self.ports().map(str::to_owned).to_vec(),
        }
    }

    /// The ports where they go out.
    fn forwarding(&self, direction: Direction) -> Vec<String> {
        match direction {
            Direction::Forward => vec![self.interface_out.clone()],
            Direction::Both => self.ports().map(str::to_owned).to_vec(),
        }
    }
}

/// The mechanisms of a lab's factors of a Linux DUT, in the order in which they set a variant.
///
/// # Errors
/// `File` where what is to be loaded cannot be read.
pub(crate) fn on_linux(
    resolved: &Resolved,
    place: &DutPlace,
) -> Result<Vec<Box<dyn Mechanism>>, LabError> {
    let ports = place.ports();
    let mut mechanisms: Vec<Box<dyn Mechanism>> = Vec::new();
    // Behind the files: a kernel that is told to forward switches LRO off.
    let mut features: Vec<Box<dyn Mechanism>> = Vec::new();
    let mut routes: Vec<Box<dyn Mechanism>> = Vec::new();
    let mut commands: Vec<Box<dyn Mechanism>> = Vec::new();
    // Last: what the owner's programs set may be what one starts with.
    let mut forwarders: Vec<Box<dyn Mechanism>> = Vec::new();
    // First: a driver that takes a program may change its port's features.
    if let Some(xdp) = xdp::LinuxXdp::new(&resolved.lab, resolved.direction(), place)? {
        mechanisms.push(Box::new(xdp));
    }
    if let Some(tc) = tc::LinuxTc::new(&resolved.lab, resolved.direction(), place)? {
        mechanisms.push(Box::new(tc));
    }
    for (factor, binding) in &resolved.lab.bindings {
        match binding {
            Binding::Sysctl {
                key,
                values,
                reads_back,
            } => {
                let sysctl = sysctl::on_linux(factor, key, values, place);
                mechanisms.push(Box::new(sysctl.reading_back(reads_back)));
            }
            Binding::Sysfs {
                file,
                interfaces,
                values,
            } => {
                let files = sysfs::on_linux(factor, file, interfaces, values, place);
                mechanisms.push(Box::new(files));
            }
            Binding::Ethtool {
                feature,
                interfaces,
            } => {
                let feature = ethtool::LinuxFeature::new(factor, feature, interfaces, place);
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
                let parameters = ByLevel::of_factor(factor, parameters);
                mechanisms.push(Box::new(boot::CommandLine(parameters)));
            }
            Binding::Kernel(releases) => {
                let releases = ByLevel::of_factor(factor, releases);
                mechanisms.push(Box::new(kernel::LinuxKernel(releases)));
            }
            Binding::Routes => {
                let families = resolved.families();
                routes.push(Box::new(routes::LinuxRoutes::new(factor, place, &families)));
            }
            Binding::Forwarder(levels) if place.is_namespace => forwarders.push(Box::new(
                forwarder::Forwarders::new(factor, levels, resolved.direction(), place),
            )),
            Binding::Command(programs) => commands.push(own_programs(factor, programs, ports)),
            // One ruleset, and one program a hook, for all factors together.
            Binding::Nft(_) | Binding::Xdp(_) | Binding::Tc(_) => {}
            // Of other kinds of lab.
            Binding::Ruleset { .. }
            | Binding::Forwarder(_)
            | Binding::Knob { .. }
            | Binding::Loader { .. }
            | Binding::Configs(_)
            | Binding::Image(_) => mechanisms.push(Box::new(CannotBeSet {
                factor: factor.clone(),
                why: "it is set in no way that a Linux host has".to_owned(),
            })),
        }
    }
    mechanisms.extend(features);
    let texts = |binding: Binding| match binding {
        Binding::Nft(texts) => Some(texts),
        _ => None,
    };
    if let Some(rulesets) = rulesets(&resolved.lab, ports, texts) {
        mechanisms.push(Box::new(nft::LinuxNft::new(rulesets, place)));
    }
    mechanisms.extend(routes);
    mechanisms.extend(commands);
    mechanisms.extend(forwarders);
    Ok(mechanisms)
}

/// The same on a FreeBSD host, which may get these sets of configuration files.
pub(crate) fn on_freebsd(
    resolved: &Resolved,
    of: &DutHost,
    sets: &BTreeMap<PathBuf, ConfigSet>,
) -> Vec<Box<dyn Mechanism>> {
    let bindings = &resolved.lab.bindings;
    let ports = [&*of.interface_in, &*of.interface_out];
    let mut mechanisms: Vec<Box<dyn Mechanism>> = Vec::new();
    let mut commands: Vec<Box<dyn Mechanism>> = Vec::new();
    let writes_files = bindings
        .values()
        .any(|binding| matches!(binding, Binding::Loader { .. } | Binding::Configs(_)));
    for (factor, binding) in bindings {
        match binding {
            Binding::Sysctl {
                key,
                values,
                reads_back,
            } if key == harvest_mask::NAME && reads_back.is_empty() => {
                let of_levels = values_of_levels(resolved, factor, values);
                let mask = harvest_mask::HarvestMask::new(factor, values, of_levels);
                mechanisms.push(Box::new(mask));
            }
            Binding::Sysctl { key, .. } if iflib::is_read_at_attach(key) => {
                mechanisms.push(Box::new(CannotBeSet {
                    factor: factor.clone(),
                    why: format!(
                        "a driver reads {key} when it attaches, and only then, though `sysctl` sets and shows it at any \
                         time; bind it by `loader`"
                    ),
                }));
            }
            Binding::Sysctl {
                key,
                values,
                reads_back,
            } => {
                let sysctl = sysctl::on_freebsd(factor, key, values);
                mechanisms.push(Box::new(sysctl.reading_back(reads_back)));
            }
            Binding::Loader { tunable, values } => {
                let of_levels = values_of_levels(resolved, factor, values);
                let loader = boot::Loader::new(factor, tunable, values, of_levels);
                mechanisms.push(Box::new(loader));
            }
            Binding::Kernel(kernels) => {
                mechanisms.push(Box::new(kernel::FreebsdKernel {
                    kernels: ByLevel::of_factor(factor, kernels),
                    writes_files,
                }));
            }
            Binding::Configs(folders) => {
                mechanisms.push(Box::new(configs::Configs::new(factor, folders, sets)));
            }
            Binding::Image(images) => {
                mechanisms.push(Box::new(image::Image(ByLevel::of_factor(factor, images))));
            }
            Binding::Command(programs) => commands.push(own_programs(factor, programs, ports)),
            // One ruleset of a filter for all factors together.
            Binding::Ruleset { .. } => {}
            // Of other kinds of lab.
            Binding::Nft(_)
            | Binding::Xdp(_)
            | Binding::Tc(_)
            | Binding::Forwarder(_)
            | Binding::Ethtool { .. }
            | Binding::Sysfs { .. }
            | Binding::Module { .. }
            | Binding::Routes
            | Binding::Knob { .. }
            | Binding::CommandLine(_) => mechanisms.push(Box::new(CannotBeSet {
                factor: factor.clone(),
                why: "it is set in no way that a FreeBSD host has".to_owned(),
            })),
        }
    }
    for filter in [PacketFilter::Pf, PacketFilter::Ipfw, PacketFilter::Ipf] {
        let texts = |binding: Binding| match binding {
            Binding::Ruleset { filter: of, texts } if of == filter => Some(texts),
            _ => None,
        };
        if let Some(rulesets) = rulesets(&resolved.lab, ports, texts) {
            mechanisms.push(Box::new(filters::Filter::new(filter, rulesets)));
        }
    }
    mechanisms.extend(commands);
    mechanisms
}

/// The owner's programs come last, so that they find the rest in place.
fn own_programs(
    factor: &str,
    programs: &CommandBinding,
    [interface_in, interface_out]: [&str; 2],
) -> Box<dyn Mechanism> {
    Box::new(command::OwnersPrograms {
        factor: factor.to_owned(),
        binding: programs.with_interfaces(interface_in, interface_out),
    })
}

/// The rulesets of a DUT, with the names of its ports.
fn rulesets(
    lab: &Lab,
    [interface_in, interface_out]: [&str; 2],
    texts: impl Fn(Binding) -> Option<BTreeMap<String, String>>,
) -> Option<Rulesets> {
    let named = |binding: &Binding| texts(binding.with_interfaces(interface_in, interface_out));
    Rulesets::of(bound(lab, named))
}

/// The values of all levels of a factor; none where it is no factor of the experiment.
fn values_of_levels(resolved: &Resolved, factor: &str, values: &Values) -> Vec<String> {
    let mut factors = resolved.factors.iter();
    let levels = factors.find(|it| it.name == factor).map(|it| &it.levels);
    let levels = levels.into_iter().flatten();
    levels.map(|level| values.value(level)).collect()
}

/// A factor that is bound to what a host cannot set.
struct CannotBeSet {
    factor: String,
    why: String,
}

impl Mechanism for CannotBeSet {
    fn lacking(&self, variant: &Variant, _: &Answers) -> Result<Option<String>, LabError> {
        let is_set = variant.levels.contains_key(&self.factor);
        Ok(is_set.then(|| self.why.clone()))
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

/// All factors of a lab that are bound to one kind of mechanism.
fn bound<'a, T>(
    lab: &'a Lab,
    pick: impl Fn(&'a Binding) -> Option<T>,
) -> impl Iterator<Item = (String, T)> {
    lab.bindings
        .iter()
        .filter_map(move |(factor, binding)| Some((factor.clone(), pick(binding)?)))
}
