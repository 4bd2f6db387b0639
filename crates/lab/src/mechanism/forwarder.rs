//! Forwarders in user space, in a namespace: while one stands, a tc program keeps the frames that it takes from the kernel's
//! stack, where packet sockets leave the original.

use std::collections::BTreeMap;
use std::env;

use fwdlab_model::{Direction, Forwarder, Variant};
use fwdlab_traffic::{TrafficError, object_bytes};

use super::by_level::ByLevel;
use super::command::{installed, missing};
use super::object::{Kind, OwnObject};
use super::program::{Attachment, Hook, Program};
use super::question::{Answers, Question};
use super::step::Action;
use super::tc::OwnTc;
use super::{DutPlace, Mechanism};
use crate::LabError;

/// Loads the program that keeps frames from the kernel's stack.
///
/// # Errors
/// Without the privilege.
pub(super) fn hold_back() -> Result<OwnTc, TrafficError> {
    let object = object_bytes!("../../bpf/hold_back.bpf.o");
    let object = OwnObject::ours(Kind::Tc, object, "fwdlab_hold");
    OwnTc::load(&object, Default::default(), Default::default())
}

/// Those of one factor.
pub(super) struct Forwarders {
    factor: String,
    levels: ByLevel<Option<Forwarder>>,
    /// Where frames come in.
    ports: Vec<String>,
}

impl Forwarders {
    pub(super) fn new(
        factor: &str,
        levels: &BTreeMap<String, Option<Forwarder>>,
        direction: Direction,
        place: &DutPlace,
    ) -> Self {
        Self {
            factor: factor.to_owned(),
            levels: ByLevel::of_factor(factor, levels),
            ports: place.receiving(direction),
        }
    }

    /// What keeps frames from the kernel's stack; nothing where that forwards.
    fn held_back(&self, forwarder: Option<&Forwarder>) -> Attachment {
        Attachment {
            hook: Hook::TcIngress,
            ports: self.ports.clone(),
            program: forwarder.map(|_| Program::HoldBack),
        }
    }
}

impl Mechanism for Forwarders {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let Some(Some(forwarder)) = self.levels.get(variant)? else {
            return Ok(Vec::new());
        };
        let programs = forwarder.programs();
        let installed = programs.map(|name| Question::maybe(installed(name)));
        let held_back = Question::Attachable(self.held_back(Some(forwarder)));
        Ok(installed.chain([held_back]).collect())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let parts = self.levels.parts(variant)?;
        let Some((_, level, Some(forwarder))) = parts.first() else {
            return Ok(None);
        };
        let mut programs = forwarder.programs();
        let folder = env::current_dir().ok();
        let missing = programs
            .find_map(|name| missing(name, folder.as_deref(), &self.factor, level, answers));
        Ok(missing.or_else(|| answers.not_attachable.get(&Hook::TcIngress).cloned()))
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let parts = self.levels.parts(variant)?;
        let actions = parts.into_iter().flat_map(|(_, level, forwarder)| {
            [
                Action::Attach(self.held_back(forwarder.as_ref())),
                Action::Forward {
                    level: level.to_string(),
                    forwarder: forwarder.clone(),
                },
            ]
        });
        Ok(actions.collect())
    }
}
