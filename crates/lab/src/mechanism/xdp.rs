//! The XDP program on the DUT's receiving interfaces.

use fwdlab_model::{Binding, Direction, DutHost, Lab, Tester, Variant, XdpProgram};
use fwdlab_traffic::{CountingProgram, object_bytes};

use super::by_level::ByLevel;
use super::program::{Attachment, Hook, Loaded, Program, number};
use super::reading::said;
use super::step::{Action, Answers, Question, owned};
use super::{InNamespace, Mechanism, Site, bound, moved};
use crate::counters::Drops;
use crate::topology::receiving;
use crate::{LabError, Topology};

/// Outcomes of the XDP forwarder, in the order of its `enum outcome`.
pub(crate) const FORWARDER_DROPPED: u32 = 2;

/// Loads the XDP forwarder that asks the kernel's FIB for every packet.
///
/// # Errors
/// Without the privilege.
pub fn fib_forwarder() -> Result<CountingProgram, LabError> {
    let object = object_bytes!("../../bpf/fib_forwarder.bpf.o");
    Ok(CountingProgram::load(object, "forward", "outcomes")?)
}

/// The program of each level.
pub(super) type Programs = ByLevel<XdpProgram>;

/// Those of a lab; none where it sets none.
pub(super) fn programs(lab: &Lab) -> Option<Programs> {
    ByLevel::of(bound(lab, |binding| match binding {
        Binding::Xdp(programs) => Some(programs.clone()),
        _ => None,
    }))
}

/// Whether a lab sets programs at all.
pub(crate) fn is_bound(lab: &Lab) -> bool {
    programs(lab).is_some()
}

/// That of the DUT's namespace.
pub(super) struct Xdp {
    programs: Option<Programs>,
    /// None where this process may load no eBPF program.
    forwarder: Option<CountingProgram>,
    interfaces: &'static [&'static str],
}

impl Xdp {
    pub(super) fn new(lab: &Lab, tester: Tester, direction: Direction) -> Result<Self, LabError> {
        // Whoever may load the generator may load the forwarder.
        let forwarder = match tester {
            Tester::Ebpf => {
                let mut forwarder = fib_forwarder()?;
                forwarder.xdp.park()?;
                Some(forwarder)
            }
            _ => None,
        };
        Ok(Self {
            programs: programs(lab),
            forwarder,
            interfaces: receiving(direction),
        })
    }

    /// The variant's program, where any factor sets one.
    fn wanted(&self, variant: &Variant) -> Result<Option<XdpProgram>, LabError> {
        match &self.programs {
            Some(programs) => Ok(programs.get(variant)?.copied()),
            None => Ok(None),
        }
    }

    pub(super) fn detach(&mut self) -> Result<(), LabError> {
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.xdp.detach()?;
        }
        Ok(())
    }
}

impl InNamespace for Xdp {
    fn drops(&mut self, _: &Topology) -> Result<Drops, LabError> {
        let drops = self.forwarder.as_ref().map(Loaded::drops);
        Ok(drops.transpose()?.unwrap_or_default())
    }

    fn unavailable(
        &self,
        _topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        let wants_forwarder = self.wanted(variant)? == Some(XdpProgram::Fib);
        Ok((wants_forwarder && self.forwarder.is_none())
            .then(|| "this process may load no XDP program; run fwdlab as root (sudo)".into()))
    }

    fn may_change_program(&self, variant: &Variant) -> bool {
        let is_attached = self
            .forwarder
            .as_ref()
            .is_some_and(|program| program.xdp.is_attached());
        // What is not bound is refused when it is applied.
        let wanted = self.wanted(variant).ok().flatten();
        wanted.is_some_and(|wanted| (wanted == XdpProgram::Fib) != is_attached)
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        match (self.wanted(variant)?, &mut self.forwarder) {
            (Some(XdpProgram::Fib), Some(forwarder)) if !forwarder.xdp.is_attached() => {
                for interface in self.interfaces {
                    let attach = || forwarder.xdp.attach_to_stay(interface);
                    site.topology.dut().run(attach)??;
                }
            }
            (Some(XdpProgram::Off), Some(forwarder)) => forwarder.xdp.detach()?,
            // Where it cannot be loaded, variants that want it are not run.
            (Some(_) | None, _) => {}
        }
        Ok(())
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let asked = match self.wanted(variant)? {
            None => return Ok(()),
            Some(XdpProgram::Off) => Some(0),
            Some(XdpProgram::Fib) => match &self.forwarder {
                Some(forwarder) => Some(forwarder.xdp.id()?),
                None => None,
            },
        };
        for interface in self.interfaces {
            let seen = site.topology.dut_xdp_program(interface)?;
            if asked != Some(seen) {
                let setting = format!("the XDP program on {interface}");
                let none_is_0 = |id: &u32| *id != 0;
                let [asked, seen] = [asked, Some(seen)].map(|id| number(id.filter(none_is_0)));
                return Err(moved(setting, asked, seen));
            }
        }
        Ok(())
    }
}

/// That of a Linux host. On both ports: drivers of many cards send what is redirected to them only where they have a
/// program themselves.
pub(super) struct LinuxXdp {
    programs: Programs,
    ports: [String; 2],
}

impl LinuxXdp {
    pub(super) fn new(programs: Programs, of: &DutHost) -> Self {
        Self {
            programs,
            ports: [of.interface_in.clone(), of.interface_out.clone()],
        }
    }
}

impl LinuxXdp {
    /// What the ports are to have for a variant, where it says.
    fn attachment(&self, variant: &Variant) -> Result<Option<Attachment>, LabError> {
        let wanted = self.programs.get(variant)?;
        Ok(wanted.map(|wanted| Attachment {
            hook: Hook::Xdp,
            ports: self.ports.to_vec(),
            program: match wanted {
                XdpProgram::Off => None,
                XdpProgram::Fib => Some(Program::Forwarder),
            },
        }))
    }
}

impl Mechanism for LinuxXdp {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let attachment = self.attachment(variant)?;
        let program = attachment.filter(|attachment| attachment.program.is_some());
        Ok(program.into_iter().map(Question::Attachable).collect())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let wanted = self.programs.get(variant)?;
        Ok(wanted.and_then(|_| answers.not_attachable.get(&Hook::Xdp).cloned()))
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let attachment = self.attachment(variant)?;
        Ok(attachment.into_iter().map(Action::Attach).collect())
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let Some(attachment) = self.attachment(variant)? else {
            return Ok(Vec::new());
        };
        let ports = attachment.ports.iter().map(|port| link_of(port));
        let mut questions: Vec<Question> = ports.map(Question::Needed).collect();
        questions.extend(attachment.program.map(|_| Question::Attached(Hook::Xdp)));
        Ok(questions)
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        if self.programs.get(variant)?.is_none() {
            return Ok(None);
        }
        let asked = answers.attached.get(&Hook::Xdp).copied();
        let moved = self.ports.iter().find_map(|port| {
            let seen = program_of(answers.get(&link_of(port)).unwrap_or_default());
            let setting = format!("the XDP program on {port}");
            (seen != asked).then(|| said(&setting, &number(asked), &number(seen)))
        });
        Ok(moved)
    }
}

/// What shows an interface with its XDP program.
pub(crate) fn link_of(interface: &str) -> Vec<String> {
    owned(&["ip", "-o", "-d", "link", "show", "dev", interface])
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
