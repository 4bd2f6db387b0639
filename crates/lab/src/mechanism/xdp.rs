//! The XDP program on the DUT's ports: on those that receive in a namespace, on both on a host.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_model::{Binding, Direction, Lab, Variant, XdpMode, XdpProgram};
use fwdlab_traffic::{CountingProgram, TrafficError, object_bytes};

use super::by_level::ByLevel;
use super::object::{Kind, LoadedObject, OwnObject};
use super::program::{Hook, HookPrograms, Loaded, Program};
use super::question::{Answers, Look, Question};
use super::step::{Action, Step, owned};
use super::tools::Tool;
use super::{DutPlace, Mechanism, bound};
use crate::{LabError, Moved};

/// What libxdp has on an interface to run several programs of others.
///
/// # Source
/// xdp-tools: `xdp_dispatcher` in `lib/libxdp/xdp-dispatcher.c.in`.
const DISPATCHER: &str = "xdp_dispatcher";

/// Outcomes of the XDP forwarder, in the order of its `enum outcome`.
pub(crate) const FIB_FORWARDER_DROPPED: u32 = 2;

/// Loads the XDP forwarder that asks the kernel's FIB for every packet.
///
/// # Errors
/// Without the privilege.
pub fn fib_forwarder() -> Result<CountingProgram, LabError> {
    let object = object_bytes!("../../bpf/fib_forwarder.bpf.o");
    Ok(CountingProgram::load(object, "forward", "outcomes")?)
}

/// The names of the programs that a lab sets, as the kernel shows them; none where it sets no program.
///
/// # Errors
/// `Object` where one cannot be read.
///
/// # Source
/// Linux: `BPF_OBJ_NAME_LEN` in `include/uapi/linux/bpf.h`, the byte that ends a name included.
pub(crate) fn names(lab: &Lab, place: &DutPlace) -> Result<BTreeSet<String>, LabError> {
    const LENGTH_MAX: usize = 15;
    let bindings = lab.bindings.values();
    let levels = bindings.filter_map(|binding| match binding {
        Binding::Xdp(levels) => Some(levels.values()),
        _ => None,
    });
    let mut names = BTreeSet::new();
    for level in levels.flatten() {
        if let Some(program) = of_level(level, place)? {
            let name = program.object().map_or("forward", |object| &object.name);
            names.insert(name.chars().take(LENGTH_MAX).collect());
        }
    }
    Ok(names)
}

/// Those of a Linux kernel.
pub(super) struct LinuxXdp {
    programs: HookPrograms,
    /// Whether nothing of an owner's is there.
    is_namespace: bool,
}

impl LinuxXdp {
    /// None where the lab binds no factor to XDP programs.
    ///
    /// # Errors
    /// `Object` where one cannot be read.
    pub(super) fn new(
        lab: &Lab,
        direction: Direction,
        place: &DutPlace,
    ) -> Result<Option<Self>, LabError> {
        let factors = bound(lab, |binding| match binding {
            Binding::Xdp(programs) => Some(programs),
            _ => None,
        });
        let factors = factors.map(|(factor, levels)| {
            let programs = levels.iter().map(|(level, program)| {
                let program = of_level(program, place)?;
                Ok((level.clone(), program))
            });
            Ok((factor, programs.collect::<Result<_, LabError>>()?))
        });
        let factors: Vec<(String, BTreeMap<String, Option<Program>>)> =
            factors.collect::<Result<_, LabError>>()?;
        let Some(by_level) = ByLevel::of(factors.into_iter()) else {
            return Ok(None);
        };
        let ports = if place.is_namespace {
            place.receiving(direction)
        } else {
            // Drivers of many cards send what is redirected to them only where they have a program themselves.
            place.receiving(Direction::Both)
        };
        Ok(Some(Self {
            programs: HookPrograms {
                hook: Hook::Xdp,
                ports,
                by_level,
                tool: (!place.is_namespace).then_some(Tool::Iproute2),
                shown: |port| Look::Link(port.to_owned()),
                number_in: program_of,
                setting: |port| format!("the XDP program on {port}"),
            },
            is_namespace: place.is_namespace,
        }))
    }

    /// The ports where an owner's program may be in the way of a variant.
    fn owners_ports(&self, variant: &Variant) -> Result<Vec<&String>, LabError> {
        let is_set = !self.is_namespace && self.programs.are_set(variant)?;
        let ports = self.programs.all_ports().into_iter();
        Ok(ports.filter(|_| is_set).collect())
    }
}

impl Mechanism for LinuxXdp {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let ports = self.owners_ports(variant)?.into_iter();
        let questions = ports.map(|port| Question::Maybe(Look::Link(port.clone())));
        Ok(questions.chain(self.programs.needs(variant)?).collect())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let mut ports = self.owners_ports(variant)?.into_iter();
        let in_the_way = ports.find_map(|port| {
            let link = answers.get(&link_of(port))?;
            program_of(link).map(|_| has_program(port, link))
        });
        Ok(in_the_way.or(self.programs.lacking(variant, answers)?))
    }

    fn looks(&self) -> Vec<Question> {
        self.programs.looks_for_pins().collect()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        self.programs.keep_pins(answers)
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        self.programs.actions(variant)
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        self.programs.reads(variant)
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        self.programs.moved(variant, answers)
    }
}

fn of_level(program: &XdpProgram, place: &DutPlace) -> Result<Option<Program>, LabError> {
    Ok(match program {
        XdpProgram::Off => None,
        XdpProgram::Fib => Some(Program::FibForwarder),
        XdpProgram::Own(own) => {
            let ports = own.interfaces.as_ref().map(|interfaces| {
                let names = interfaces.iter().map(|interface| place.port(*interface));
                names.map(str::to_owned).collect()
            });
            Some(Program::Xdp {
                object: OwnObject::read(Kind::Xdp, &own.program, place.ports())?,
                mode: own.mode,
                ports,
            })
        }
    })
}

/// What is in the way of a level's program on a host's port.
fn has_program(port: &str, link: &str) -> String {
    let name = name_of(link).unwrap_or("without a name");
    if name == DISPATCHER {
        format!(
            "{port} holds libxdp's dispatcher, which runs programs of others; take them off before the run: \
             `xdp-loader unload {port} --all`"
        )
    } else {
        format!(
            "{port} has an XDP program already ({name}); take it off before the run: `ip link set dev {port} xdp off`"
        )
    }
}

/// An XDP program of the owner's in the kernel.
pub(super) struct OwnXdp {
    object: LoadedObject,
    xdp: fwdlab_traffic::XdpProgram,
}

impl OwnXdp {
    /// Loads the program of an object.
    ///
    /// # Errors
    /// As of [`LoadedObject::load`].
    pub(super) fn load(object: &OwnObject, mode: XdpMode) -> Result<Self, TrafficError> {
        let (object, ebpf) = LoadedObject::load(object)?;
        let (name, has_frags) = (object.name().to_owned(), object.has_frags());
        let xdp = fwdlab_traffic::XdpProgram::of(ebpf, name, mode, has_frags);
        Ok(Self { object, xdp })
    }
}

impl Loaded for OwnXdp {
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        self.object.fill(self.xdp.ebpf())?;
        self.xdp.attach(interface)?;
        self.object.pin(self.xdp.ebpf())
    }

    fn attach_to_stay(&mut self, interface: &str) -> Result<(), TrafficError> {
        self.object.fill(self.xdp.ebpf())?;
        self.xdp.attach_to_stay(interface)?;
        self.object.pin(self.xdp.ebpf())
    }

    fn park(&mut self) -> Result<(), TrafficError> {
        self.xdp.park()
    }

    fn detach(&mut self) -> Result<(), TrafficError> {
        self.xdp.detach()?;
        self.object.unpin()
    }

    fn number(&self) -> Result<Option<u32>, TrafficError> {
        self.xdp.id().map(Some)
    }
}

/// What shows an interface with its XDP program.
pub(crate) fn link_of(interface: &str) -> Vec<String> {
    owned(&["ip", "-o", "-d", "link", "show", "dev", interface])
}

/// What shows the number of an interface's XDP program, 0 for none, in the same form.
pub(crate) fn shown(number: u32) -> String {
    match number {
        0 => String::new(),
        number => format!("prog/xdp id {number}"),
    }
}

/// The name of an interface's XDP program, as `ip -d link` shows it.
pub(crate) fn name_of(link: &str) -> Option<&str> {
    let (_, behind) = link.split_once("prog/xdp")?;
    let mut words = behind.split_whitespace();
    words.find(|word| *word == "name")?;
    words.next()
}

/// The number of an interface's XDP program, as `ip -d link` shows it.
fn program_of(link: &str) -> Option<u32> {
    let (_, behind) = link.split_once("prog/xdp")?;
    let mut words = behind.split_whitespace();
    words.find(|word| *word == "id")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_program_is_read() {
        let link = "3: eth1@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 xdp qdisc noqueue state UP qlen 1000\\    \
                    link/ether 02:00:00:00:01:02 brd ff:ff:ff:ff:ff:ff link-netnsid 0 \\    prog/xdp id 34 name forward \
                    tag 3b185187f1855c4c jited ";
        assert_eq!(program_of(link), Some(34));
        assert_eq!(name_of(link), Some("forward"));
        for without in [
            "3: eth1: <UP> mtu 1500 qdisc mq",
            "",
            "prog/xdp",
            "prog/xdp id",
        ] {
            assert_eq!(program_of(without), None, "{without}");
        }
    }
}
