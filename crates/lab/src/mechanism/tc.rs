//! The owner's tc program at the ingress of the DUT's receiving interface: of a namespace, or of a Linux host.

use std::collections::BTreeMap;

use fwdlab_model::{Binding, Direction, DutHost, Lab, Variant};
use fwdlab_sys::Input;
use fwdlab_traffic::TrafficError;

use super::program::{Attachment, Hook, Loaded, Program, load};
use super::reading::said;
use super::step::{Action, Answers, Errand, Question, Step, owned};
use super::tc_filter::TcFilter;
use super::{InNamespace, Mechanism, Site, bound, moved, unbound_level};
use crate::counters::Drops;
use crate::topology::receiving;
use crate::{LabError, Topology, program};

/// More is no object of one program.
const OBJECT_BYTES_MAX: u64 = 16 << 20;

/// Has the kernel take a program of an object.
///
/// # Errors
/// Without the privilege, and where the kernel does not take it.
pub(super) fn loaded(object: &[u8], name: Option<&str>) -> Result<Box<dyn Loaded>, LabError> {
    Ok(Box::new(TcFilter::load(object, name)?))
}

impl Loaded for TcFilter {
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        Self::attach(self, interface)
    }

    fn detach(&mut self) -> Result<(), TrafficError> {
        Self::detach(self)
    }

    fn id(&self) -> Result<u32, TrafficError> {
        Self::id(self)
    }

    /// What it drops, the queueing discipline counts.
    fn drops(&self) -> Result<Drops, TrafficError> {
        Ok(Drops::new())
    }
}

/// The program of each level, by factor.
struct Programs(BTreeMap<String, BTreeMap<String, Option<Program>>>);

impl Programs {
    /// Those of a lab; none where no factor has any.
    fn of(lab: &Lab) -> Result<Option<Self>, LabError> {
        let mut all = BTreeMap::new();
        let factors = bound(lab, |binding| match binding {
            Binding::Tc(programs) => Some(programs),
            _ => None,
        });
        for (factor, levels) in factors {
            let mut programs = BTreeMap::new();
            for (level, program) in levels {
                let program = program.as_ref().map(object).transpose()?;
                programs.insert(level.clone(), program);
            }
            all.insert(factor, programs);
        }
        Ok((!all.is_empty()).then_some(Self(all)))
    }

    /// The variant's program or none, where any factor says.
    fn wanted(&self, variant: &Variant) -> Result<Option<Option<&Program>>, LabError> {
        for (factor, programs) in &self.0 {
            if let Some(level) = variant.levels.get(factor) {
                let program = programs.get(&level.to_string());
                let program = program.ok_or_else(|| unbound_level(factor, level))?;
                return Ok(Some(program.as_ref()));
            }
        }
        Ok(None)
    }
}

/// An object file's program.
fn object(of: &fwdlab_model::binding::TcProgram) -> Result<Program, LabError> {
    let path = &of.object.found;
    let failed = |source| LabError::File {
        what: "reading",
        path: path.clone(),
        source,
    };
    let bytes = Input::file(path, OBJECT_BYTES_MAX)
        .bytes()
        .map_err(failed)?;
    if fwdlab_model::sha256(&bytes) != of.object.sha256 {
        let changed = "it has changed since the experiment was read; run the command again";
        return Err(failed(std::io::Error::other(changed)));
    }
    Ok(Program::Tc {
        object: bytes,
        name: of.program.clone(),
    })
}

/// What shows the filters at the ingress of an interface.
fn filters(interface: &str) -> Vec<String> {
    owned(&["tc", "filter", "show", "dev", interface, "ingress"])
}

/// What shows the queueing disciplines of an interface with what they have dropped.
fn disciplines(interface: &str) -> Vec<String> {
    owned(&["tc", "-s", "qdisc", "show", "dev", interface])
}

/// The number of the program of an interface's filter, as `tc filter` shows it.
fn program_of(filters: &str) -> Option<u32> {
    let mut words = filters.split_whitespace();
    words.find(|word| *word == "id")?;
    words.next()?.parse().ok()
}

/// What `clsact` has dropped, as `tc -s qdisc` shows it.
fn dropped(disciplines: &str) -> Option<u64> {
    let (_, of_clsact) = disciplines.split_once("qdisc clsact ")?;
    let (_, behind) = of_clsact.split_once("(dropped ")?;
    behind.split(',').next()?.parse().ok()
}

fn reason(interface: &str) -> String {
    format!("tc ingress of {interface}")
}

fn setting(interface: &str) -> String {
    format!("the tc program of {interface}")
}

fn number(of: Option<u32>) -> String {
    of.map_or("none".to_owned(), |id| id.to_string())
}

/// That of the DUT's namespace.
pub(super) struct Tc {
    programs: Programs,
    interfaces: &'static [&'static str],
    /// What stands, with the program that it was loaded from.
    standing: Option<(Program, Box<dyn Loaded>)>,
}

impl Tc {
    /// None where the lab binds no factor to tc programs.
    pub(super) fn new(lab: &Lab, direction: Direction) -> Result<Option<Self>, LabError> {
        let programs = Programs::of(lab)?;
        Ok(programs.map(|programs| Self {
            programs,
            interfaces: receiving(direction),
            standing: None,
        }))
    }
}

impl InNamespace for Tc {
    fn unavailable(
        &self,
        _topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        let Some(wanted) = self.programs.wanted(variant)? else {
            return Ok(None);
        };
        if !program::is_installed("tc") {
            let missing = "tc is not installed; install it (apt-get install iproute2)";
            return Ok(Some(missing.to_owned()));
        }
        let loaded = wanted.map(load);
        Ok(loaded.and_then(|loaded| loaded.err().map(|error| error.to_string())))
    }

    fn drops(&mut self, topology: &Topology) -> Result<Drops, LabError> {
        let mut drops = Drops::new();
        for interface in self.interfaces {
            let show = || program::run(&disciplines(interface), "");
            let frames = dropped(&topology.dut().run(show)??);
            drops.extend(frames.map(|frames| (reason(interface), frames)));
        }
        Ok(drops)
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(wanted) = self.programs.wanted(variant)? else {
            return Ok(());
        };
        if self.standing.as_ref().map(|(program, _)| program) == wanted {
            return Ok(());
        }
        if let Some((_, mut loaded)) = self.standing.take() {
            site.topology.dut().run(|| loaded.detach())??;
        }
        if let Some(program) = wanted {
            let mut loaded = load(program)?;
            for interface in self.interfaces {
                site.topology.dut().run(|| loaded.attach(interface))??;
            }
            self.standing = Some((program.clone(), loaded));
        }
        Ok(())
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        if self.programs.wanted(variant)?.is_none() {
            return Ok(());
        }
        let standing = self.standing.as_ref().map(|(_, loaded)| loaded.id());
        let asked = standing.transpose()?;
        for interface in self.interfaces {
            let show = || program::run(&filters(interface), "");
            let seen = program_of(&site.topology.dut().run(show)??);
            if seen != asked {
                return Err(moved(setting(interface), number(asked), number(seen)));
            }
        }
        Ok(())
    }
}

/// That of a Linux host.
pub(super) struct LinuxTc {
    programs: Programs,
    ports: Vec<String>,
}

impl LinuxTc {
    /// None where the lab binds no factor to tc programs.
    pub(super) fn new(
        lab: &Lab,
        direction: Direction,
        of: &DutHost,
    ) -> Result<Option<Self>, LabError> {
        let ports = match direction {
            Direction::Forward => vec![of.interface_in.clone()],
            Direction::Both => vec![of.interface_in.clone(), of.interface_out.clone()],
        };
        let programs = Programs::of(lab)?;
        Ok(programs.map(|programs| Self { programs, ports }))
    }

    fn attachment(&self, variant: &Variant) -> Result<Option<Attachment>, LabError> {
        let wanted = self.programs.wanted(variant)?;
        Ok(wanted.map(|wanted| Attachment {
            hook: Hook::TcIngress,
            ports: self.ports.clone(),
            program: wanted.cloned(),
        }))
    }
}

impl Mechanism for LinuxTc {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let Some(attachment) = self.attachment(variant)? else {
            return Ok(Vec::new());
        };
        let ports = self.ports.iter();
        let mut questions: Vec<_> = ports.map(|port| Question::Maybe(filters(port))).collect();
        if attachment.program.is_some() {
            questions.push(Question::Attachable(attachment));
        }
        Ok(questions)
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        if self.programs.wanted(variant)?.is_none() {
            return Ok(None);
        }
        let lacks_tc = |port: &String| answers.get(&filters(port)).is_none();
        if self.ports.iter().any(lacks_tc) {
            return Ok(Some("tc is not installed there".to_owned()));
        }
        Ok(answers.not_attachable.get(&Hook::TcIngress).cloned())
    }

    fn looks(&self) -> Vec<Question> {
        let ports = self.ports.iter();
        let questions = ports.flat_map(|port| [filters(port), disciplines(port)]);
        questions.map(Question::Maybe).collect()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let mut steps = Vec::new();
        for port in &self.ports {
            if !answers.needed(&filters(port))?.is_empty() {
                return Err(answers.wrong(format!(
                    "{port} has filters at its ingress, which `tc filter show dev {port} ingress` lists; have them \
                     taken away while it is measured"
                )));
            }
            let has_clsact = answers
                .needed(&disciplines(port))?
                .contains("qdisc clsact ");
            // What is gone already, with a module or a boot, needs no undo.
            let undo = if has_clsact {
                "! tc filter show dev \"$0\" ingress | grep -q . || tc filter del dev \"$0\" ingress"
            } else {
                "! tc qdisc show dev \"$0\" | grep -q clsact || tc qdisc del dev \"$0\" clsact"
            };
            let what = format!("tc programs of {port}");
            steps.push(Step::kept(what, Errand::of(&["sh", "-c", undo, port])));
        }
        Ok(steps)
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let attachment = self.attachment(variant)?;
        Ok(attachment.into_iter().map(Action::Attach).collect())
    }

    fn counters(&self) -> Vec<Vec<String>> {
        self.ports.iter().map(|port| disciplines(port)).collect()
    }

    fn drops(&self, answers: &Answers) -> Drops {
        let drops = self.ports.iter().filter_map(|port| {
            let frames = dropped(answers.get(&disciplines(port))?)?;
            Some((reason(port), frames))
        });
        drops.collect()
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let Some(attachment) = self.attachment(variant)? else {
            return Ok(Vec::new());
        };
        let ports = self.ports.iter();
        let mut questions: Vec<_> = ports.map(|port| Question::Needed(filters(port))).collect();
        questions.extend(
            attachment
                .program
                .map(|_| Question::Attached(Hook::TcIngress)),
        );
        Ok(questions)
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        if self.programs.wanted(variant)?.is_none() {
            return Ok(None);
        }
        let asked = answers.attached.get(&Hook::TcIngress).copied();
        let moved = self.ports.iter().find_map(|port| {
            let seen = program_of(answers.get(&filters(port)).unwrap_or_default());
            (seen != asked).then(|| said(&setting(port), &number(asked), &number(seen)))
        });
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_tc_shows_is_read() {
        let listed = "filter protocol all pref 1 bpf chain 0 \n\
             filter protocol all pref 1 bpf chain 0 handle 0x1 classify direct-action not_in_hw id 89 name classify \
             tag 3b185187f1855c4c jited \n";
        assert_eq!(program_of(listed), Some(89));
        assert_eq!(program_of(""), None);
        let disciplines = "qdisc noqueue 0: root refcnt 2 \n Sent 0 bytes 0 pkt (dropped 3, overlimits 0 requeues 0) \n\
             qdisc clsact ffff: parent ffff:fff1 \n Sent 600 bytes 10 pkt (dropped 7, overlimits 0 requeues 0) \n";
        assert_eq!(dropped(disciplines), Some(7));
        assert_eq!(
            dropped("qdisc noqueue 0: root refcnt 2 \n Sent 0 bytes 0 pkt (dropped 3, "),
            None
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "((qdisc|clsact|id|\\(dropped|filter|[0-9]{0,12})[ ,\n]|\\PC){0,40}") {
            let _ = (program_of(&text), dropped(&text));
        }
    }
}
