//! The owner's tc program at the ingress of the DUT's receiving interface: of a namespace, or of a Linux host.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;

use aya::Ebpf;
use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle};
use aya::programs::{SchedClassifier, TcAttachType, tc};
use fwdlab_model::{Binding, Direction, Lab, Variant};
use fwdlab_traffic::TrafficError;

use super::by_level::ByLevel;
use super::object::{Cause, Kind, LoadedObject, OwnObject};
use super::program::{Hook, HookPrograms, Loaded, Program};
use super::question::{Answers, Look, Question};
use super::step::{Action, Errand, Step, owned};
use super::tools::Tool;
use super::{DutPlace, Mechanism, bound};
use crate::counters::Drops;
use crate::{LabError, Moved};

/// Those of a lab; none where no factor has any.
fn by_level(lab: &Lab, place: &DutPlace) -> Result<Option<ByLevel<Option<Program>>>, LabError> {
    let factors = bound(lab, |binding| match binding {
        Binding::Tc(programs) => Some(programs),
        _ => None,
    });
    let factors = factors.map(|(factor, levels)| {
        let programs = levels.iter().map(|(level, program)| {
            let object = |of| OwnObject::read(Kind::Tc, of, place.ports());
            let program = program.as_ref().map(object).transpose()?;
            Ok((level.clone(), program.map(Program::Tc)))
        });
        Ok((factor, programs.collect::<Result<_, LabError>>()?))
    });
    let factors: Vec<(String, BTreeMap<String, Option<Program>>)> =
        factors.collect::<Result<_, LabError>>()?;
    Ok(ByLevel::of(factors.into_iter()))
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
    let words: Vec<&str> = filters.split_whitespace().collect();
    let ids = words.windows(2).filter(|pair| pair[0] == "id");
    ids.filter_map(|pair| pair[1].parse().ok()).next()
}

/// The queueing discipline to which filters of frames that come in belong, with all behind it, as `tc -s qdisc` shows it: an
/// owner's may be the older `ingress`.
fn ingress(disciplines: &str) -> Option<&str> {
    let kinds = ["qdisc clsact ", "qdisc ingress "];
    kinds
        .iter()
        .find_map(|kind| Some(disciplines.split_once(kind)?.1))
}

/// What it has dropped.
fn dropped(disciplines: &str) -> Option<u64> {
    let (_, behind) = ingress(disciplines)?.split_once("(dropped ")?;
    behind.split(',').next()?.parse().ok()
}

fn has_filters(port: &str) -> String {
    format!(
        "{port} has filters at its ingress; list them with `tc filter show dev {port} ingress`, and remove them before \
         the run"
    )
}

fn reason(interface: &str) -> String {
    format!("tc ingress of {interface}")
}

/// That of a Linux kernel.
pub(super) struct LinuxTc(HookPrograms);

impl LinuxTc {
    /// None where the lab binds no factor to tc programs.
    ///
    /// # Errors
    /// `File` where an object cannot be read.
    pub(super) fn new(
        lab: &Lab,
        direction: Direction,
        place: &DutPlace,
    ) -> Result<Option<Self>, LabError> {
        let programs = by_level(lab, place)?.map(|by_level| HookPrograms {
            hook: Hook::TcIngress,
            ports: place.receiving(direction),
            by_level,
            tool: Some(Tool::Tc),
            shown: |port| Look::Command(filters(port)),
            number_in: program_of,
            setting: |port| format!("the tc program of {port}"),
        });
        Ok(programs.map(Self))
    }

    fn ports(&self) -> impl Iterator<Item = &String> {
        self.0.ports.iter()
    }
}

impl Mechanism for LinuxTc {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let is_set = self.0.are_set(variant)?;
        let ports = self.ports().filter(|_| is_set);
        let questions = ports.map(|port| Question::maybe(filters(port)));
        Ok(questions.chain(self.0.needs(variant)?).collect())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let is_set = self.0.are_set(variant)?;
        let in_the_way =
            self.ports()
                .filter(|_| is_set)
                .find_map(|port| match answers.get(&filters(port)) {
                    None => Some("`tc filter show` fails".to_owned()),
                    Some("") => None,
                    Some(_) => Some(has_filters(port)),
                });
        Ok(self.0.lacking(variant, answers)?.or(in_the_way))
    }

    fn looks(&self) -> Vec<Question> {
        let questions = self
            .ports()
            .flat_map(|port| [filters(port), disciplines(port)]);
        let questions = questions.map(Question::maybe);
        let pins = self.0.looks_for_pins();
        questions.chain(pins).chain([Tool::Tc.question()]).collect()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let mut steps = self.0.keep_pins(answers)?;
        // Without it no program can be set.
        let is_there = Tool::Tc.lacking(answers).is_none();
        for port in self.ports().filter(|_| is_there) {
            if !answers.needed(&filters(port))?.is_empty() {
                return Err(answers.wrong(has_filters(port)));
            }
            let is_there = ingress(answers.needed(&disciplines(port))?).is_some();
            // What is gone already, with a module or a boot, needs no undo.
            let undo = if is_there {
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
        self.0.actions(variant)
    }

    fn counters(&self) -> Vec<Vec<String>> {
        self.ports().map(|port| disciplines(port)).collect()
    }

    fn drops(&self, answers: &Answers) -> Drops {
        let drops = self.ports().filter_map(|port| {
            let frames = dropped(answers.get(&disciplines(port))?)?;
            Some((reason(port), frames))
        });
        drops.collect()
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        self.0.reads(variant)
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        self.0.moved(variant, answers)
    }
}

/// Where the program stands among an interface's filters.
const PRIORITY: u16 = 1;
const HANDLE: TcHandle = TcHandle::new(0, 1);

/// A loaded tc program. What is attached stays until [`detach`](Self::detach) or the end of the interface.
pub(super) struct TcFilter {
    ebpf: Ebpf,
    object: LoadedObject,
    links: Vec<SchedClassifierLink>,
}

impl TcFilter {
    /// Loads the program of an object.
    ///
    /// # Errors
    /// As of [`LoadedObject::load`].
    pub(super) fn load(object: &OwnObject) -> Result<Self, TrafficError> {
        let (object, ebpf) = LoadedObject::load(object)?;
        Ok(Self {
            ebpf,
            object,
            links: Vec::new(),
        })
    }

    fn program_mut(&mut self) -> Option<&mut SchedClassifier> {
        self.ebpf.program_mut(self.object.name())?.try_into().ok()
    }

    fn failed(&self, what: &str, error: impl Into<Cause>) -> TrafficError {
        refused(format!("{what} {}", self.object.name()), error)
    }
}

/// A filter stays in any case, and disturbs no other CPU; what it drops, the queueing discipline counts.
impl Loaded for TcFilter {
    /// The kernel's number for the program, as `tc filter` shows it.
    ///
    /// # Errors
    /// When the kernel does not say.
    fn id(&self) -> Result<u32, TrafficError> {
        let program: Option<&SchedClassifier> = self
            .ebpf
            .program(self.object.name())
            .and_then(|program| program.try_into().ok());
        let info = program.map(|program| program.info());
        match info {
            Some(Ok(info)) => Ok(info.id()),
            Some(Err(error)) => Err(self.failed("asking after", error)),
            None => Err(self.failed("asking after", no_program())),
        }
    }

    /// Attaches the program to the ingress of one more interface in this thread's network namespace. Adds `clsact` if it is
    /// missing.
    ///
    /// # Errors
    /// When there is no such interface, or it has a filter of the same priority already.
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        let what = format!("attaching {} to", self.object.name());
        let failed = |cause: Cause| refused(format!("{what} {interface}"), cause);
        self.object.fill(&self.ebpf)?;
        match tc::qdisc_add_clsact(interface) {
            Err(error) if !is_there(&error) => return Err(failed(error.into())),
            _ => {}
        }
        let options = TcAttachOptions::Netlink(NlOptions {
            priority: PRIORITY,
            handle: HANDLE,
            classid: None,
        });
        let program = self
            .program_mut()
            .ok_or_else(|| failed(no_program().into()))?;
        let link = program
            .attach_with_options(interface, TcAttachType::Ingress, options)
            .and_then(|link| program.take_link(link))
            .map_err(|error| {
                if is_there(&error) {
                    let other = format!(
                        "it already has a filter with priority {PRIORITY}; list it with `tc filter show dev {interface} \
                         ingress`"
                    );
                    return failed(io::Error::other(other).into());
                }
                failed(error.into())
            })?;
        self.links.push(link);
        Ok(())
    }

    /// Takes the program off all interfaces that it is on, from the namespace that they are in.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn detach(&mut self) -> Result<(), TrafficError> {
        for link in std::mem::take(&mut self.links) {
            match aya::programs::links::Link::detach(link) {
                // Somebody else has taken it away, which reading back shows.
                Err(error) if kinds(&error).any(is_gone) => {}
                detached => detached.map_err(|error| self.failed("detaching", error))?,
            }
        }
        self.object.unpin()
    }
}

/// A link finds its filter by the number of its interface, in the namespace of the thread that drops it: elsewhere it would
/// take another one's filter away.
impl Drop for TcFilter {
    fn drop(&mut self) {
        self.links.drain(..).for_each(std::mem::forget);
    }
}

fn refused(what: String, source: impl Into<Cause>) -> TrafficError {
    TrafficError::Bpf {
        what,
        source: source.into(),
    }
}

fn no_program() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the object has no such tc program")
}

/// The kinds of an error and of its causes.
fn kinds<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = io::ErrorKind> + 'e {
    let causes = std::iter::successors(Some(error), |&error: &&'e (dyn Error + 'static)| {
        error.source()
    });
    causes.filter_map(|error| error.downcast_ref().map(io::Error::kind))
}

/// What a filter, or all below its queueing discipline, answers that is not there.
fn is_gone(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::InvalidInput)
}

/// Whether what was to be added is there already.
fn is_there(error: &(dyn Error + 'static)) -> bool {
    kinds(error).any(|kind| kind == io::ErrorKind::AlreadyExists)
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
