//! Programs that mechanisms attach to the ports of a DUT.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use fwdlab_model::{TcAttach, TcHook, Variant, XdpMode};
use fwdlab_traffic::{CountingProgram, TrafficError};
use serde::{Deserialize, Serialize};

use super::Mechanism;
use super::by_level::ByLevel;
use super::forwarder::hold_back;
use super::object::OwnObject;
use super::question::{Answers, Look, Question};
use super::step::{Action, Errand, Step, owned};
use super::tc::OwnTc;
use super::tools::Tool;
use super::xdp::{FIB_FORWARDER_DROPPED, OwnXdp, fib_forwarder};
use crate::counters::Drops;
use crate::{LabError, Moved};

/// Where a kernel runs programs on a port's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hook {
    /// In the driver, before anything of the kernel's stack.
    Xdp,
    /// Behind the driver, in front of the rest of the kernel's stack.
    TcIngress,
    /// Behind the kernel's stack, in front of the driver.
    TcEgress,
}

impl Hook {
    /// Whether only attaching a program tells whether it can be: of XDP, drivers decide.
    pub(crate) const fn is_tried(self) -> bool {
        match self {
            Self::Xdp => true,
            Self::TcIngress | Self::TcEgress => false,
        }
    }

    /// What a program there does, as messages begin.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Xdp => "an XDP program",
            Self::TcIngress | Self::TcEgress => "a tc program",
        }
    }
}

impl From<TcHook> for Hook {
    fn from(hook: TcHook) -> Self {
        match hook {
            TcHook::Ingress => Self::TcIngress,
            TcHook::Egress => Self::TcEgress,
        }
    }
}

/// A program for a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Program {
    /// By XDP: the forwarder that asks the kernel's FIB for every frame.
    FibForwarder,
    /// By XDP: one of the owner's.
    Xdp {
        /// Its object.
        object: OwnObject,
        /// Where the kernel runs it.
        mode: XdpMode,
        /// The ports that have it; those of its hook without.
        ports: Option<Vec<String>>,
    },
    /// By tc: what keeps frames from the kernel's stack that a forwarder in user space takes.
    HoldBack,
    /// By tc: one of the owner's.
    Tc {
        /// Its object.
        object: OwnObject,
        /// Which frames it is run for.
        hook: TcHook,
        /// What it is attached by.
        attach: TcAttach,
    },
}

impl Program {
    /// Where it runs.
    pub(crate) fn hook(&self) -> Hook {
        match self {
            Self::FibForwarder | Self::Xdp { .. } => Hook::Xdp,
            Self::HoldBack => Hook::TcIngress,
            Self::Tc { hook, .. } => (*hook).into(),
        }
    }

    /// The owner's object; none of ours.
    pub(crate) const fn object(&self) -> Option<&OwnObject> {
        match self {
            Self::FibForwarder | Self::HoldBack => None,
            Self::Xdp { object, .. } | Self::Tc { object, .. } => Some(object),
        }
    }

    /// Whether what shows a port's programs shows it: nothing of iproute2's shows a tcx link.
    const fn is_shown(&self) -> bool {
        !matches!(
            self,
            Self::Tc {
                attach: TcAttach::Tcx,
                ..
            }
        )
    }

    /// Whether the kernel does not count the frames that it drops.
    pub(crate) const fn drops_are_uncounted(&self) -> bool {
        match self {
            Self::FibForwarder | Self::HoldBack => false,
            Self::Xdp { mode, .. } => matches!(mode, XdpMode::Generic),
            // A filter's are counted as far as it drops them itself (TC_ACT_SHOT).
            Self::Tc { .. } => true,
        }
    }

    /// Whether it may keep a state in maps.
    const fn keeps_state(&self) -> bool {
        self.object().is_some()
    }

    /// Which ports have it, of a hook with these.
    fn ports<'p>(&'p self, of_hook: &'p [String]) -> &'p [String] {
        match self {
            Self::Xdp {
                ports: Some(ports), ..
            } => ports,
            _ => of_hook,
        }
    }
}

/// What a hook of some ports is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) hook: Hook,
    pub(crate) ports: Vec<String>,
    /// Nothing without.
    pub(crate) program: Option<Program>,
}

impl Attachment {
    /// Whether nothing is to be done where that program stands. One that may keep a state is attached anew: what it has kept
    /// of one slice is no part of the next.
    pub(crate) fn is_done(&self, standing: Option<&Program>) -> bool {
        let keeps_state = self.program.as_ref().is_some_and(Program::keeps_state);
        !keeps_state && standing == self.program.as_ref()
    }
}

/// The programs of one hook, by the levels of the factors that set it.
pub(super) struct HookPrograms {
    pub(super) hook: Hook,
    /// Where a program is that does not say it of itself.
    pub(super) ports: Vec<String>,
    /// Nothing is there at a level without one.
    pub(super) by_level: ByLevel<Option<Program>>,
    /// What such a command needs, where it is one.
    pub(super) tool: Option<Tool>,
    /// What shows the program of a port.
    pub(super) shown: fn(&str) -> Look,
    /// Its number there.
    pub(super) number_in: fn(&str) -> Option<u32>,
    /// What messages call a port's program.
    pub(super) setting: fn(&str) -> String,
}

impl HookPrograms {
    /// What the ports are to have for a variant, where it says.
    ///
    /// # Errors
    /// `Unbound` for a level that means nothing.
    fn attachment(&self, variant: &Variant) -> Result<Option<Attachment>, LabError> {
        let wanted = self.by_level.get(variant)?;
        Ok(wanted.map(|program| Attachment {
            hook: self.hook,
            ports: self.ports_of(program.as_ref()).to_vec(),
            program: program.clone(),
        }))
    }

    /// The ports that have a program.
    fn ports_of<'p>(&'p self, program: Option<&'p Program>) -> &'p [String] {
        program.map_or(&self.ports, |program| program.ports(&self.ports))
    }

    /// The programs of all levels.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Program> {
        self.by_level.meanings().filter_map(Option::as_ref)
    }

    /// The ports that any level has a program on.
    pub(super) fn all_ports(&self) -> BTreeSet<&String> {
        let of_programs = self
            .programs()
            .flat_map(|program| program.ports(&self.ports));
        self.ports.iter().chain(of_programs).collect()
    }

    /// Keeps from a host what outlives a process that is killed: files by which maps are pinned.
    ///
    /// # Errors
    /// `Host` where such a file is there already.
    pub(super) fn keep_pins(&self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let pins = self.pins().into_iter().map(|pin| {
            if answers.get(&is_there(&pin)).is_some() {
                let why = format!(
                    "{pin} is there already: another program's map; remove it before the run"
                );
                return Err(answers.wrong(why));
            }
            let undo = Errand::of(&["rm", "-f", &pin]);
            Ok(Step::kept(format!("the pinned map {pin}"), undo))
        });
        pins.collect()
    }

    /// What tells whether they are there.
    pub(super) fn looks_for_pins(&self) -> impl Iterator<Item = Question> {
        let pins = self.pins().into_iter();
        pins.map(|pin| Question::maybe(is_there(&pin)))
    }

    fn pins(&self) -> BTreeSet<String> {
        let objects = self.programs().filter_map(Program::object);
        objects.flat_map(OwnObject::pins).collect()
    }

    /// Whether a variant says what the ports are to have.
    ///
    /// # Errors
    /// As of [`attachment`](Self::attachment).
    pub(super) fn are_set(&self, variant: &Variant) -> Result<bool, LabError> {
        Ok(self.by_level.get(variant)?.is_some())
    }
}

impl Mechanism for HookPrograms {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let Some(attachment) = self.attachment(variant)? else {
            return Ok(Vec::new());
        };
        let tool = self.tool.map(Tool::question);
        let program = Some(attachment).filter(|attachment| attachment.program.is_some());
        Ok(tool
            .into_iter()
            .chain(program.map(Question::Attachable))
            .collect())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let is_set = self.are_set(variant)?;
        let tool = self.tool.filter(|_| is_set);
        let lacking = tool.and_then(|tool| tool.lacking(answers));
        Ok(lacking.or_else(|| answers.not_attachable.get(&self.hook).cloned()))
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let attachment = self.attachment(variant)?;
        Ok(attachment.into_iter().map(Action::Attach).collect())
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let Some(wanted) = self.by_level.get(variant)? else {
            return Ok(Vec::new());
        };
        let looks = self.all_ports().into_iter().map(|port| (self.shown)(port));
        let number = wanted.as_ref().map(|_| Question::Attached(self.hook));
        Ok(looks.map(Question::Needed).chain(number).collect())
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        let Some(wanted) = self.by_level.get(variant)? else {
            return Ok(None);
        };
        let number = answers.attached.get(&self.hook).copied();
        let asked = match (wanted, number) {
            // The transport has attached none, or it is gone.
            (Some(_), None) => "a program".to_owned(),
            _ => shown_number(number),
        };
        let mut with_program = self.ports_of(wanted.as_ref());
        if wanted.as_ref().is_some_and(|program| !program.is_shown()) {
            let port = with_program.first().filter(|_| number.is_none());
            if let Some(port) = port {
                return Ok(Some(Moved::of(
                    (self.setting)(port),
                    &asked,
                    shown_number(None),
                )));
            }
            with_program = &[];
        }
        Ok(self.all_ports().into_iter().find_map(|port| {
            let asked = if with_program.contains(port) {
                asked.clone()
            } else {
                shown_number(None)
            };
            let shown = answers.get(&(self.shown)(port).words());
            let seen = shown_number((self.number_in)(shown.unwrap_or_default()));
            (seen != asked).then(|| Moved::of((self.setting)(port), &asked, seen))
        }))
    }
}

/// A program that the kernel has taken.
pub(crate) trait Loaded: Send {
    /// Attaches it to one more interface in this thread's namespace. An XDP program is detached when the process ends, a tc
    /// filter is not.
    ///
    /// # Errors
    /// Where there is no such interface, or it has a program there already.
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError>;

    /// The same until it is detached or its interface ends, for interfaces that fwdlab made.
    ///
    /// # Errors
    /// As of [`attach`](Self::attach).
    fn attach_to_stay(&mut self, interface: &str) -> Result<(), TrafficError> {
        self.attach(interface)
    }

    /// Has attaching and detaching it disturb no other CPU.
    ///
    /// # Errors
    /// What the kernel refuses.
    fn park(&mut self) -> Result<(), TrafficError> {
        Ok(())
    }

    /// Takes it off all interfaces that it is on.
    ///
    /// # Errors
    /// What the kernel refuses.
    fn detach(&mut self) -> Result<(), TrafficError>;

    /// The kernel's number for it; none where it is gone from an interface, as far as it can tell from this thread's namespace.
    ///
    /// # Errors
    /// Where the kernel does not say.
    fn number(&self) -> Result<Option<u32>, TrafficError>;

    /// Frames that it has dropped, by reason, where it counts them.
    ///
    /// # Errors
    /// Where the kernel does not say.
    fn drops(&self) -> Result<Drops, TrafficError> {
        Ok(Drops::new())
    }
}

/// The programs that this process has loaded, one for a hook.
#[derive(Default)]
pub(crate) struct Programs {
    loaded: BTreeMap<Hook, (Program, Box<dyn Loaded>)>,
    /// Frames that programs had dropped whose place another one has taken.
    dropped: Drops,
}

impl Programs {
    /// A program in the kernel, in the place of another one of its hook, and on no interface. One that may keep a state is
    /// loaded each time, so that it begins without.
    ///
    /// # Errors
    /// Without the privilege, and where the kernel does not take it.
    pub(crate) fn load(&mut self, program: &Program) -> Result<&mut dyn Loaded, LabError> {
        let hook = program.hook();
        let held = match self.loaded.entry(hook) {
            Entry::Vacant(none) => none.insert((program.clone(), load(program)?)),
            Entry::Occupied(held) => {
                let held = held.into_mut();
                if held.0 != *program || program.keeps_state() {
                    let loaded = load(program)?;
                    held.1.detach()?;
                    add(&mut self.dropped, held.1.drops()?);
                    *held = (program.clone(), loaded);
                }
                held
            }
        };
        Ok(&mut *held.1)
    }

    /// That of a hook; none where none was loaded.
    pub(crate) fn of(&mut self, hook: Hook) -> Option<&mut dyn Loaded> {
        let (_, loaded) = self.loaded.get_mut(&hook)?;
        Some(&mut **loaded)
    }

    /// Frames that all of them have dropped, by reason.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub(crate) fn drops(&self) -> Result<Drops, LabError> {
        let mut drops = self.dropped.clone();
        for (_, loaded) in self.loaded.values() {
            add(&mut drops, loaded.drops()?);
        }
        Ok(drops)
    }
}

fn add(drops: &mut Drops, others: Drops) {
    for (reason, frames) in others {
        *drops.entry(reason).or_default() += frames;
    }
}

/// The kernel's number for a program, as messages show it.
fn shown_number(of: Option<u32>) -> String {
    of.map_or("none".to_owned(), |id| id.to_string())
}

/// What prints a file's name where it is there, and fails elsewhere.
fn is_there(file: &str) -> Vec<String> {
    owned(&["ls", "-d", file])
}

fn load(program: &Program) -> Result<Box<dyn Loaded>, LabError> {
    Ok(match program {
        Program::FibForwarder => Box::new(fib_forwarder()?),
        Program::Xdp { object, mode, .. } => Box::new(OwnXdp::load(object, *mode)?),
        Program::HoldBack => Box::new(hold_back()?),
        Program::Tc {
            object,
            hook,
            attach,
        } => Box::new(OwnTc::load(object, *hook, *attach)?),
    })
}

impl Loaded for CountingProgram {
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        self.xdp.attach(interface)
    }

    fn attach_to_stay(&mut self, interface: &str) -> Result<(), TrafficError> {
        self.xdp.attach_to_stay(interface)
    }

    fn park(&mut self) -> Result<(), TrafficError> {
        self.xdp.park()
    }

    fn detach(&mut self) -> Result<(), TrafficError> {
        self.xdp.detach()
    }

    fn number(&self) -> Result<Option<u32>, TrafficError> {
        self.xdp.id().map(Some)
    }

    fn drops(&self) -> Result<Drops, TrafficError> {
        let frames = self.frames(FIB_FORWARDER_DROPPED)?;
        Ok(Drops::from([("XDP forwarder".to_owned(), frames)]))
    }
}
