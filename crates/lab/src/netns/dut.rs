//! The DUT in its namespace: what mechanisms ask and do is carried out in this process. What it changes goes with the
//! namespace, and what outlives that is announced to the journal before it is done.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_model::{
    AddressFamily, Binding, Direction, Level, Placement, Resolved, Tester, Variant,
};

use super::dut_settings::DutSettings;
use super::forwarder::RunningForwarder;
use super::in_process::InProcess;
use crate::counters::Drops;
use crate::journal::{ChangeId, Journal};
use crate::mechanism::nft::{self, Generation};
use crate::mechanism::program::{Hook, Loaded, Program, Programs};
use crate::mechanism::question::{Look, Question};
use crate::mechanism::settings::Settings;
use crate::mechanism::step::Action;
use crate::mechanism::transport::Transport as _;
use crate::mechanism::{DutPlace, on_linux};
use crate::netlink::RouteMonitor;
use crate::topology::receiving;
use crate::{Asks, LabError, Moved, Topology};

/// Under which the frames are counted that the owner's XDP programs drop.
pub(super) const OWN_XDP: &str = "XDP program";

/// What sets the DUT to variants, and what stands there.
pub(super) struct Dut {
    settings: Settings,
    standing: Standing,
}

/// What stands in the DUT's namespace.
pub(super) struct Standing {
    pub(super) placement: Placement,
    pub(super) direction: Direction,
    /// The family whose frames are forwarded.
    pub(super) family: AddressFamily,
    /// Whether this process may load eBPF programs.
    pub(super) loads_programs: bool,
    pub(super) programs: Programs,
    pub(super) attached: BTreeMap<Hook, Program>,
    /// The files by which maps may be pinned, each announced.
    pub(super) pins: BTreeSet<String>,
    /// Frames that the owner's XDP programs have dropped that were taken off again.
    pub(super) own_xdp_drops: u64,
    /// Those that XDP programs had dropped when the owner's was attached; none where none is.
    pub(super) xdp_drops_before: Option<u64>,
    /// The hooks that had a program, since the family's load began, whose drops the kernel does not count.
    pub(super) uncounted: BTreeSet<Hook>,
    /// The levels that the owner's programs have set, by factor, with the changes that undo them.
    pub(super) own: BTreeMap<String, (Level, ChangeId)>,
    /// The forwarder in user space, where one stands.
    pub(super) forwarder: Option<RunningForwarder>,
    /// How the DUT was set when it was started, with its level.
    pub(super) before_forwarder: Option<(String, DutSettings)>,
    /// Of the ruleset that was read back last.
    pub(super) generation: Option<Generation>,
    /// Hears of changes of routes since the table was read back.
    pub(super) routes: Option<RouteMonitor>,
}

impl Dut {
    /// One that nothing is set on yet.
    ///
    /// # Errors
    /// `File` where what is to be loaded cannot be read.
    pub(super) fn new(
        resolved: &Resolved,
        placement: &Placement,
        tester: Tester,
        topology: &Topology,
    ) -> Result<Self, LabError> {
        let mut bindings = resolved.lab.bindings.values();
        let sets_rulesets = bindings.any(|binding| matches!(binding, Binding::Nft(_)));
        let has_nftables = sets_rulesets && topology.dut().run(nft::can_be_listed)?;
        let mechanisms = on_linux(resolved, &DutPlace::in_namespace(has_nftables))?;
        Ok(Self {
            settings: Settings::new(resolved, mechanisms),
            standing: Standing {
                placement: placement.clone(),
                direction: resolved.direction(),
                family: AddressFamily::Inet,
                // A process that may load the generator may load other programs.
                loads_programs: tester == Tester::Ebpf,
                programs: Programs::default(),
                attached: BTreeMap::new(),
                pins: BTreeSet::new(),
                own_xdp_drops: 0,
                xdp_drops_before: None,
                uncounted: BTreeSet::new(),
                own: BTreeMap::new(),
                forwarder: None,
                before_forwarder: None,
                generation: None,
                routes: None,
            },
        })
    }

    /// Has what is set and read back from now on be for one family's frames.
    pub(super) fn set_family(&mut self, family: AddressFamily) {
        self.standing.family = family;
        self.standing.uncounted.clear();
        self.settings.set_family(family);
    }

    /// Why this machine cannot have a variant. What it would do counts as done: a DUT that was asked is not measured.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(super) fn unavailable(
        &mut self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        let mut way = self.standing.on(topology);
        let reason = self.settings.unavailable(&mut way, variant, Asks::Run)?;
        if reason.is_some() {
            return Ok(reason);
        }
        let actions = self.settings.actions(variant)?;
        let is_program = |action: &Action| {
            matches!(
                action,
                Action::Forward {
                    forwarder: Some(_),
                    ..
                }
            )
        };
        let has_forwarder = actions.iter().any(is_program);
        for action in &actions {
            let reason = way.impossible(action, has_forwarder)?;
            if reason.is_some() {
                return Ok(reason);
            }
        }
        Ok(None)
    }

    /// What sets a variant, to be carried out by [`set`](Self::set).
    ///
    /// # Errors
    /// `Unbound` for a level that no binding knows.
    pub(super) fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        self.settings.actions(variant)
    }

    /// Whether doing this attaches or detaches an XDP program, or may, or starts or ends a forwarder in user space: then no
    /// frame may be under way meanwhile.
    pub(super) fn may_change_program(&self, actions: &[Action]) -> bool {
        actions.iter().any(|action| match action {
            // One of the owner's is attached anew even where it stands.
            Action::Attach(attachment) if attachment.hook == Hook::Xdp => {
                !attachment.is_done(self.standing.attached.get(&Hook::Xdp))
            }
            Action::Own { factor, level, .. } => !self.standing.has_set(factor, level),
            Action::Forward { .. } => true,
            _ => false,
        })
    }

    /// Sets a variant by what [`actions`](Self::actions) says of it.
    ///
    /// # Errors
    /// What the kernel or a program refuses.
    pub(super) fn set(
        &mut self,
        topology: &mut Topology,
        journal: &mut Journal,
        actions: Vec<Action>,
    ) -> Result<(), LabError> {
        let mut way = self.standing.on(topology);
        way.carry_out(journal, actions).map(|_| ())
    }

    /// What reads back as something else than the variant's; none where all is as asked.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(super) fn moved(
        &mut self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<Moved>, LabError> {
        let mut way = self.standing.on(topology);
        self.settings.moved(&mut way, variant)
    }

    /// The same once it was read back: asked after every slice, it reads as little as can be.
    ///
    /// # Errors
    /// As of [`moved`](Self::moved).
    pub(super) fn moved_since(
        &mut self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<Moved>, LabError> {
        let mut way = self.standing.on(topology);
        self.settings.moved_since(&mut way, variant)
    }

    /// Frames so far that were dropped by what variants may set, by reason.
    ///
    /// # Errors
    /// What the kernel does not say.
    pub(super) fn drops(&mut self, topology: &mut Topology) -> Result<Drops, LabError> {
        let mut way = self.standing.on(topology);
        let counters = self.settings.counters().into_iter();
        let looks = counters.map(|words| Question::Needed(Look::Command(words)));
        let answers = way.ask(&looks.collect::<Vec<_>>(), Asks::Run)?;
        self.settings.drops(&mut way, &answers)
    }

    /// Ends the forwarder in user space, where one stands.
    ///
    /// # Errors
    /// Where it does not end.
    pub(super) fn end_forwarder(
        &mut self,
        topology: &mut Topology,
        journal: &mut Journal,
    ) -> Result<(), LabError> {
        self.standing.on(topology).end_forwarder(journal)
    }

    /// The forwarder in user space, where one stands.
    pub(super) fn forwarder(&mut self) -> Option<&mut RunningForwarder> {
        self.standing.forwarder.as_mut()
    }

    /// Under which frames are counted that are lost in the DUT and may be a program's to drop; none where the kernel counts what
    /// each of the family's programs drops.
    pub(super) fn uncounted_drops(&self) -> Option<String> {
        let hooks = self.standing.uncounted.iter();
        let what: BTreeSet<_> = hooks.map(|hook| hook.what()).collect();
        let what: Vec<_> = what.into_iter().collect();
        (!what.is_empty()).then(|| format!("lost in {}", what.join(" or ")))
    }

    /// Takes every XDP program off the ports where frames come in, until the next variant is set: that of a level, that of a
    /// forwarder in user space, which is ended, and what the owner's programs have put there, with all else that they have set.
    ///
    /// # Errors
    /// `XdpStays` where a program stays when they have taken their level back, and what the kernel or they refuse.
    pub(super) fn clear_ingress(
        &mut self,
        topology: &mut Topology,
        journal: &mut Journal,
    ) -> Result<(), LabError> {
        let mut way = self.standing.on(topology);
        way.end_forwarder(journal)?;
        way.detach(Hook::Xdp)?;
        if self.standing.port_with_program(topology)?.is_none() {
            return Ok(());
        }
        let own = std::mem::take(&mut self.standing.own);
        for (_, change) in own.values().rev() {
            journal.undo(change)?;
        }
        match self.standing.port_with_program(topology)? {
            None => Ok(()),
            Some(port) => Err(LabError::XdpStays {
                port: port.to_owned(),
                factors: own.into_keys().collect(),
            }),
        }
    }
}

impl Standing {
    fn on<'a>(&'a mut self, topology: &'a mut Topology) -> InProcess<'a> {
        InProcess {
            standing: self,
            topology,
        }
    }

    /// A port where frames come in that has an XDP program.
    fn port_with_program(&self, topology: &mut Topology) -> Result<Option<&'static str>, LabError> {
        for port in receiving(self.direction) {
            if topology.dut_xdp_program(port)? != 0 {
                return Ok(Some(port));
            }
        }
        Ok(None)
    }

    /// Whether a factor's level stands that an owner's program has set.
    pub(super) fn has_set(&self, factor: &str, level: &Level) -> bool {
        let standing = self.own.get(factor);
        standing.is_some_and(|(standing, _)| standing == level)
    }

    /// A program in the kernel, which a switch only attaches.
    pub(super) fn load(&mut self, program: &Program) -> Result<&mut dyn Loaded, LabError> {
        let loaded = self.programs.load(program)?;
        loaded.park()?;
        Ok(loaded)
    }
}
