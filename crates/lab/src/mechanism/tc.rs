//! The owner's tc program at the ingress of the ports where frames come in, or at the egress of those where they go out: of a
//! namespace, or of a Linux host.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io;

use aya::Ebpf;
use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle};
use aya::programs::{LinkOrder, ProgramError, ProgramInfo, SchedClassifier, TcAttachType, tc};
use fwdlab_model::{Binding, Direction, Lab, TcAttach, TcHook, Variant};
use fwdlab_traffic::TrafficError;

use super::by_level::ByLevel;
use super::object::{Cause, Kind, LoadedObject, OwnObject};
use super::program::{HookPrograms, Loaded, Program};
use super::question::{Answers, Look, Question};
use super::step::{Action, Errand, Step, owned};
use super::tools::Tool;
use super::{DutPlace, Mechanism, bound};
use crate::counters::Drops;
use crate::{LabError, Moved};

/// Those of a lab for one hook, where a level without one there has none; none where no factor has any.
fn by_level(
    lab: &Lab,
    place: &DutPlace,
    hook: TcHook,
) -> Result<Option<ByLevel<Option<Program>>>, LabError> {
    let factors = bound(lab, |binding| match binding {
        Binding::Tc(programs) => Some(programs),
        _ => None,
    });
    let factors = factors.map(|(factor, levels)| {
        let programs = levels.iter().map(|(level, own)| {
            let program = own.as_ref().filter(|own| own.hook == hook).map(|own| {
                Ok::<_, LabError>(Program::Tc {
                    object: OwnObject::read(Kind::Tc, &own.program, place.ports())?,
                    hook,
                    attach: own.attach,
                })
            });
            Ok((level.clone(), program.transpose()?))
        });
        Ok((factor, programs.collect::<Result<_, LabError>>()?))
    });
    let factors: Vec<(String, BTreeMap<String, Option<Program>>)> =
        factors.collect::<Result<_, LabError>>()?;
    Ok(ByLevel::of(factors.into_iter()))
}

/// As `tc` calls a hook.
const fn word(hook: TcHook) -> &'static str {
    match hook {
        TcHook::Ingress => "ingress",
        TcHook::Egress => "egress",
    }
}

/// What shows the filters at a hook of an interface.
fn filters(interface: &str, hook: TcHook) -> Vec<String> {
    owned(&["tc", "filter", "show", "dev", interface, word(hook)])
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

/// The queueing discipline to which filters belong, with all behind it, as `tc -s qdisc` shows it: an owner's may be the older
/// `ingress`.
fn discipline(disciplines: &str) -> Option<&str> {
    let kinds = ["qdisc clsact ", "qdisc ingress "];
    kinds
        .iter()
        .find_map(|kind| Some(disciplines.split_once(kind)?.1))
}

/// What it has dropped.
fn dropped(disciplines: &str) -> Option<u64> {
    let (_, behind) = discipline(disciplines)?.split_once("(dropped ")?;
    behind.split(',').next()?.parse().ok()
}

fn has_filters(port: &str, hook: TcHook) -> String {
    let word = word(hook);
    format!(
        "{port} has filters at its {word}; list them with `tc filter show dev {port} {word}`, and remove them before the run"
    )
}

/// Those of a Linux kernel.
pub(super) struct LinuxTc(Vec<(TcHook, HookPrograms)>);

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
        let mut hooks = Vec::new();
        for hook in [TcHook::Ingress, TcHook::Egress] {
            let Some(by_level) = by_level(lab, place, hook)? else {
                return Ok(None);
            };
            let programs = HookPrograms {
                hook: hook.into(),
                ports: match hook {
                    TcHook::Ingress => place.receiving(direction),
                    TcHook::Egress => place.forwarding(direction),
                },
                by_level,
                tool: Some(Tool::Tc),
                shown: match hook {
                    TcHook::Ingress => |port| Look::Command(filters(port, TcHook::Ingress)),
                    TcHook::Egress => |port| Look::Command(filters(port, TcHook::Egress)),
                },
                number_in: program_of,
                setting: |port| format!("the tc program of {port}"),
            };
            hooks.push((hook, programs));
        }
        // Where nothing is ever attached, nothing is looked at.
        let is_used = |(_, programs): &(TcHook, HookPrograms)| programs.programs().next().is_some();
        if hooks.iter().any(is_used) {
            hooks.retain(is_used);
        } else {
            hooks.truncate(1);
        }
        Ok(Some(Self(hooks)))
    }

    /// The ports that may have a program, with the hook.
    fn places(&self) -> impl Iterator<Item = (&String, TcHook)> {
        let hooks = self.0.iter();
        hooks.flat_map(|(hook, programs)| programs.ports.iter().map(|port| (port, *hook)))
    }

    fn ports(&self) -> BTreeSet<&String> {
        self.places().map(|(port, _)| port).collect()
    }

    /// Whether a variant says what the ports are to have.
    ///
    /// # Errors
    /// `Unbound` for a level that means nothing.
    fn are_set(&self, variant: &Variant) -> Result<bool, LabError> {
        let mut hooks = self.0.iter();
        hooks.try_fold(false, |any, (_, programs)| {
            Ok(any | programs.are_set(variant)?)
        })
    }
}

impl Mechanism for LinuxTc {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let is_set = self.are_set(variant)?;
        let places = self.places().filter(|_| is_set);
        let mut questions: Vec<Question> = places
            .map(|(port, hook)| Question::maybe(filters(port, hook)))
            .collect();
        for (_, programs) in &self.0 {
            questions.extend(programs.needs(variant)?);
        }
        Ok(questions)
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        for (_, programs) in &self.0 {
            let lacking = programs.lacking(variant, answers)?;
            if lacking.is_some() {
                return Ok(lacking);
            }
        }
        let is_set = self.are_set(variant)?;
        let mut places = self.places().filter(|_| is_set);
        Ok(
            places.find_map(|(port, hook)| match answers.get(&filters(port, hook)) {
                None => Some("`tc filter show` fails".to_owned()),
                Some("") => None,
                Some(_) => Some(has_filters(port, hook)),
            }),
        )
    }

    fn looks(&self) -> Vec<Question> {
        let filters = self.places().map(|(port, hook)| filters(port, hook));
        let disciplines = self.ports().into_iter().map(|port| disciplines(port));
        let questions = filters.chain(disciplines).map(Question::maybe);
        let hooks = self.0.iter();
        let pins = hooks.flat_map(|(_, programs)| programs.looks_for_pins());
        questions.chain(pins).chain([Tool::Tc.question()]).collect()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let mut steps = Vec::new();
        for (_, programs) in &self.0 {
            steps.extend(programs.keep_pins(answers)?);
        }
        // Without it no program can be set.
        let is_there = Tool::Tc.lacking(answers).is_none();
        for (port, hook) in self.places().filter(|_| is_there) {
            if !answers.needed(&filters(port, hook))?.is_empty() {
                return Err(answers.wrong(has_filters(port, hook)));
            }
            let is_there = discipline(answers.needed(&disciplines(port))?).is_some();
            // What is gone already, with a module or a boot, needs no undo.
            let undo = if is_there {
                "! tc filter show dev \"$0\" \"$1\" | grep -q . || tc filter del dev \"$0\" \"$1\""
            } else {
                "! tc qdisc show dev \"$0\" | grep -q clsact || tc qdisc del dev \"$0\" clsact"
            };
            let what = format!("tc programs of {port}");
            let undo = Errand::of(&["sh", "-c", undo, port, word(hook)]);
            steps.push(Step::kept(what, undo));
        }
        Ok(steps)
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let mut actions = Vec::new();
        for (_, programs) in &mut self.0 {
            actions.extend(programs.actions(variant)?);
        }
        Ok(actions)
    }

    fn counters(&self) -> Vec<Vec<String>> {
        let ports = self.ports().into_iter();
        ports.map(|port| disciplines(port)).collect()
    }

    fn drops(&self, answers: &Answers) -> Drops {
        let drops = self.ports().into_iter().filter_map(|port| {
            let frames = dropped(answers.get(&disciplines(port))?)?;
            Some((format!("tc of {port}"), frames))
        });
        drops.collect()
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let mut questions = Vec::new();
        for (_, programs) in &self.0 {
            questions.extend(programs.reads(variant)?);
        }
        Ok(questions)
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        for (_, programs) in &mut self.0 {
            let moved = programs.moved(variant, answers)?;
            if moved.is_some() {
                return Ok(moved);
            }
        }
        Ok(None)
    }
}

/// Where the program stands among an interface's filters.
const PRIORITY: u16 = 1;
const HANDLE: TcHandle = TcHandle::new(0, 1);

/// A loaded tc program. A filter stays until [`detach`](Loaded::detach) or the end of the interface, a tcx link until the end
/// of this value.
pub(super) struct OwnTc {
    ebpf: Ebpf,
    object: LoadedObject,
    hook: TcHook,
    attach: TcAttach,
    /// With their interfaces.
    links: Vec<(String, SchedClassifierLink)>,
}

impl OwnTc {
    /// Loads the program of an object.
    ///
    /// # Errors
    /// As of [`LoadedObject::load`], and where the kernel has nothing to attach it by.
    pub(super) fn load(
        object: &OwnObject,
        hook: TcHook,
        attach: TcAttach,
    ) -> Result<Self, TrafficError> {
        if attach == TcAttach::Tcx && with_tcx("lo", hook).is_err() {
            let what = format!("attaching {} by tcx", object.name);
            let lacks =
                "this kernel has no tcx, which is there from Linux 6.6 on; leave `attach` out";
            return Err(refused(what, io::Error::other(lacks)));
        }
        let (object, ebpf) = LoadedObject::load(object)?;
        Ok(Self {
            ebpf,
            object,
            hook,
            attach,
            links: Vec::new(),
        })
    }

    fn program_mut(&mut self) -> Option<&mut SchedClassifier> {
        self.ebpf.program_mut(self.object.name())?.try_into().ok()
    }

    /// The kernel's number for the program.
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

    fn failed(&self, what: &str, error: impl Into<Cause>) -> TrafficError {
        refused(format!("{what} {}", self.object.name()), error)
    }

    /// Links the program to an interface by what the level says.
    fn link(&mut self, interface: &str) -> Result<SchedClassifierLink, Cause> {
        // A kernel without tcx has none of others.
        let others = with_tcx(interface, self.hook).unwrap_or_default();
        if !others.is_empty() {
            let names: Vec<_> = others.iter().filter_map(ProgramInfo::name_as_str).collect();
            let why = format!(
                "it has tcx programs already ({}); take them off before the run: `bpftool net show dev {interface}` lists them",
                names.join(", ")
            );
            return Err(io::Error::other(why).into());
        }
        let options = match self.attach {
            TcAttach::Tcx => TcAttachOptions::TcxOrder(LinkOrder::default()),
            TcAttach::Clsact => {
                match tc::qdisc_add_clsact(interface) {
                    Err(error) if !is_there(&error) => return Err(error.into()),
                    _ => {}
                }
                TcAttachOptions::Netlink(NlOptions {
                    priority: PRIORITY,
                    handle: HANDLE,
                    classid: None,
                })
            }
        };
        let hook = self.hook;
        let program = self.program_mut().ok_or_else(no_program)?;
        let link = program
            .attach_with_options(interface, attach_type(hook), options)
            .and_then(|link| program.take_link(link));
        link.map_err(|error| {
            if is_there(&error) {
                let other = format!(
                    "it already has a filter with priority {PRIORITY}; list it with `tc filter show dev {interface} {}`",
                    word(hook)
                );
                return io::Error::other(other).into();
            }
            error.into()
        })
    }
}

/// What a filter drops, its queueing discipline counts; what a tcx program drops, nobody does. Neither disturbs another CPU.
impl Loaded for OwnTc {
    fn number(&self) -> Result<Option<u32>, TrafficError> {
        let id = self.id()?;
        if self.attach == TcAttach::Tcx {
            for (interface, _) in &self.links {
                let programs = with_tcx(interface, self.hook)
                    .map_err(|error| self.failed("asking after", error))?;
                if !programs.iter().map(ProgramInfo::id).eq([id]) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(id))
    }

    fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        self.object.fill(&self.ebpf)?;
        let what = format!("attaching {} to {interface}", self.object.name());
        let link = self.link(interface).map_err(|cause| refused(what, cause))?;
        self.links.push((interface.to_owned(), link));
        self.object.pin(&self.ebpf)
    }

    /// From the namespace that the interfaces are in.
    fn detach(&mut self) -> Result<(), TrafficError> {
        for (_, link) in std::mem::take(&mut self.links) {
            match aya::programs::links::Link::detach(link) {
                // Somebody else has taken it away, which reading back shows.
                Err(error) if kinds(&error).any(is_gone) => {}
                detached => detached.map_err(|error| self.failed("detaching", error))?,
            }
        }
        self.object.unpin()
    }
}

/// A filter's link finds it by the number of its interface, in the namespace of the thread that drops it: elsewhere it would
/// take another one's filter away.
impl Drop for OwnTc {
    fn drop(&mut self) {
        if self.attach == TcAttach::Clsact {
            self.links.drain(..).for_each(std::mem::forget);
        }
    }
}

const fn attach_type(hook: TcHook) -> TcAttachType {
    match hook {
        TcHook::Ingress => TcAttachType::Ingress,
        TcHook::Egress => TcAttachType::Egress,
    }
}

/// The programs that an interface of this thread's namespace has by tcx.
fn with_tcx(interface: &str, hook: TcHook) -> Result<Vec<ProgramInfo>, ProgramError> {
    let (_, programs) = SchedClassifier::query_tcx(interface, attach_type(hook))?;
    Ok(programs)
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
    use std::fs;
    use std::path::Path;

    use fwdlab_model::{EbpfProgram, Level, OwnTcProgram, Upload, VariantName};
    use proptest::prelude::*;

    use super::super::program::Hook;
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

    #[test]
    fn a_tcx_link_that_is_gone_has_moved() {
        let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/bpf/tc_pass.bpf.o");
        let program = EbpfProgram {
            object: Upload {
                path: "tc_pass.bpf.o".to_owned(),
                sha256: fwdlab_model::sha256(&fs::read(&found).unwrap()),
                found,
            },
            program: None,
            globals: BTreeMap::new(),
            max_entries: BTreeMap::new(),
            maps: BTreeMap::new(),
            tail_calls: BTreeMap::new(),
        };
        let own = OwnTcProgram {
            program,
            hook: TcHook::Egress,
            attach: TcAttach::Tcx,
        };
        let levels = BTreeMap::from([("on".to_owned(), Some(own))]);
        let lab = Lab {
            bindings: BTreeMap::from([("program".to_owned(), Binding::Tc(levels))]),
            ..Lab::netns("netns")
        };
        let place = DutPlace::in_namespace(false);
        let mut tc = LinuxTc::new(&lab, Direction::Forward, &place)
            .unwrap()
            .unwrap();
        let variant = Variant {
            name: VariantName::from_label("on"),
            label: "on".to_owned(),
            levels: BTreeMap::from([("program".to_owned(), Level::Text("on".to_owned()))]),
            control_of: None,
            unavailable: None,
        };
        let shown = filters("dut-out", TcHook::Egress);
        let reads = tc.reads(&variant).unwrap();
        let expected = [
            Question::Needed(Look::Command(shown.clone())),
            Question::Attached(Hook::TcEgress),
        ];
        assert_eq!(reads, expected);
        let mut moved = |filters: &str, number: Option<u32>| {
            let mut answers = Answers::of("this machine", [(shown.clone(), filters)]);
            let number = number.map(|number| (Hook::TcEgress, number));
            answers.attached.extend(number);
            let moved = tc.moved(&variant, &answers).unwrap();
            moved.map(|moved| moved.to_string())
        };
        assert_eq!(moved("", Some(7)), None);
        let gone = moved("", None).unwrap();
        assert!(gone.contains("the tc program of dut-out"), "{gone}");
        // A filter is another's.
        assert!(moved("filter bpf id 8", Some(7)).is_some());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "((qdisc|clsact|id|\\(dropped|filter|[0-9]{0,12})[ ,\n]|\\PC){0,40}") {
            let _ = (program_of(&text), dropped(&text));
        }
    }
}
