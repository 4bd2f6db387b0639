//! What sets a DUT on a host to variants: what its mechanisms ask and do, carried out over its connection, as much as can be
//! by one errand.

use std::collections::BTreeSet;

use fwdlab_model::{Resolved, Variant};

use super::dut::OnHost;
use super::own_programs::OwnPrograms;
use crate::counters::Drops;
use crate::journal::Journal;
use crate::mechanism::ethtool::{feature_of, features_of, on_or_off, switch};
use crate::mechanism::program::{Attachment, Hook};
use crate::mechanism::step::{Action, Answers, BootChoice, Errand, Question, Step};
use crate::mechanism::{Mechanism, unbound_level};
use crate::{Asks, LabError};

/// Longer input is sent on the command's standard input instead of inside the script.
const INPUT_IN_SCRIPT_MAX: usize = 1 << 20;

/// What a host can do besides running commands, by its system.
pub(super) trait Abilities {
    /// Why a program cannot be attached; none where it can.
    ///
    /// # Errors
    /// Those of the connection.
    fn not_attachable(
        &mut self,
        _host: &OnHost,
        _attachment: &Attachment,
        _asks: Asks,
    ) -> Result<Option<String>, LabError> {
        Ok(Some("no program can be attached there".to_owned()))
    }

    /// Attaches a program in the place of another one, or none; whether that changed anything.
    ///
    /// # Errors
    /// `Host` where the DUT does not take it, and those of the connection.
    fn attach(&mut self, host: &OnHost, _attachment: &Attachment) -> Result<bool, LabError> {
        Err(host.wrong("no program can be attached there"))
    }

    /// The kernel's number of what was attached at a hook; none for no program.
    ///
    /// # Errors
    /// Those of the connection.
    fn attached(&mut self, _hook: Hook) -> Result<Option<u32>, LabError> {
        Ok(None)
    }

    /// Frames that attached programs have dropped, by reason.
    ///
    /// # Errors
    /// Those of the connection.
    fn drops(&mut self) -> Result<Drops, LabError> {
        Ok(Drops::new())
    }

    /// Lets go of what is there only as long as somebody holds it, and stands in no journal.
    ///
    /// # Errors
    /// Those of the connection.
    fn release(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    /// Nothing is attached any more, as after a boot.
    fn forget(&mut self) {}

    /// Why no image can be written; none where one can.
    ///
    /// # Errors
    /// Those of the connection.
    fn no_image_writer(&self, _host: &OnHost) -> Result<Option<String>, LabError> {
        Ok(Some("no image can be written there".to_owned()))
    }
}

/// What sets a DUT to variants.
pub(super) struct Settings {
    /// In the order in which they set a variant.
    mechanisms: Vec<Box<dyn Mechanism>>,
    pub(super) abilities: Box<dyn Abilities>,
    own: OwnPrograms,
    factors: BTreeSet<String>,
}

impl Settings {
    /// Of a host that nothing is set on yet.
    pub(super) fn new(
        resolved: &Resolved,
        mechanisms: Vec<Box<dyn Mechanism>>,
        abilities: Box<dyn Abilities>,
    ) -> Self {
        Self {
            mechanisms,
            abilities,
            own: OwnPrograms::default(),
            factors: resolved.lab.bindings.keys().cloned().collect(),
        }
    }

    /// What a variant has the host boot.
    ///
    /// # Errors
    /// `Unbound` for a level that no binding knows.
    pub(super) fn boot_choice(&self, variant: &Variant) -> Result<BootChoice, LabError> {
        self.prove_bound(variant)?;
        let mut choice = BootChoice::default();
        for mechanism in &self.mechanisms {
            mechanism.boot(variant, &mut choice)?;
        }
        Ok(choice)
    }

    /// Why the host cannot have a variant; none where it can.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn unavailable(
        &mut self,
        host: &OnHost,
        variant: &Variant,
        asks: Asks,
    ) -> Result<Option<String>, LabError> {
        self.prove_bound(variant)?;
        let mut questions = Vec::new();
        for mechanism in &self.mechanisms {
            questions.extend(mechanism.needs(variant)?);
        }
        let answers = self.ask(host, &questions, asks)?;
        for mechanism in &self.mechanisms {
            if let Some(reason) = mechanism.lacking(variant, &answers)? {
                let host = host.connection.host();
                return Ok(Some(format!("host {host}: {reason}")));
            }
        }
        Ok(None)
    }

    /// What has to be known before anything is changed.
    pub(super) fn looks(&self) -> Vec<Vec<String>> {
        let mechanisms = self.mechanisms.iter();
        let questions = mechanisms.flat_map(|mechanism| mechanism.looks());
        questions.filter_map(command).collect()
    }

    /// How everything is that variants may set, with what puts it back. Nothing stands yet of what they set.
    ///
    /// # Errors
    /// `Host` for what the host does not tell, or could not be put back.
    pub(super) fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        self.own.forget();
        let mut steps = Vec::new();
        for mechanism in &mut self.mechanisms {
            steps.extend(mechanism.keep(answers)?);
        }
        Ok(steps)
    }

    /// Takes note of another boot.
    pub(super) fn forget(&mut self) {
        self.own.forget();
        self.abilities.forget();
        for mechanism in &mut self.mechanisms {
            mechanism.forget();
        }
    }

    /// Sets all levels of a variant but what takes a boot. Returns whether a port may have been restarted by it.
    ///
    /// # Errors
    /// What the host refuses.
    pub(super) fn apply(
        &mut self,
        host: &OnHost,
        journal: &mut Journal,
        variant: &Variant,
    ) -> Result<bool, LabError> {
        self.prove_bound(variant)?;
        let mut actions = Vec::new();
        for mechanism in &mut self.mechanisms {
            actions.extend(mechanism.actions(variant)?);
        }
        let features = names(&actions);
        let mut listed: Option<Answers> = None;
        let mut may_restart = false;
        let mut errands = Errands::default();
        for action in actions {
            match action {
                Action::Run(errand) => errands.add(host, errand)?,
                Action::Feature {
                    interface,
                    feature,
                    is_on,
                } => {
                    let listed = match &listed {
                        Some(listed) => listed,
                        None => listed.insert(host.connection.ask(features.clone())?),
                    };
                    let seen = listed.get(&features_of(&interface)).unwrap_or_default();
                    let seen = feature_of(seen, &feature).unwrap_or_default();
                    let word = on_or_off(is_on);
                    if seen.split(' ').next() != Some(word) {
                        errands.add(host, switch(&interface, &feature, word))?;
                        may_restart = true;
                    }
                }
                Action::Attach(attachment) => {
                    errands.run(host)?;
                    may_restart |= self.abilities.attach(host, &attachment)?;
                }
                Action::Own {
                    factor,
                    level,
                    programs,
                } => {
                    errands.run(host)?;
                    let connection = &host.connection;
                    may_restart |=
                        (self.own).apply(connection, journal, &factor, &level, &programs)?;
                }
            }
        }
        errands.run(host)?;
        Ok(may_restart)
    }

    /// What reads back as something else than the variant's; none where all is as asked.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn moved(
        &mut self,
        host: &OnHost,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        self.prove_bound(variant)?;
        let mut questions = Vec::new();
        for mechanism in &self.mechanisms {
            questions.extend(mechanism.reads(variant)?);
        }
        let answers = self.ask(host, &questions, Asks::Run)?;
        for mechanism in &mut self.mechanisms {
            let moved = mechanism.moved(variant, &answers)?;
            if moved.is_some() {
                return Ok(moved);
            }
        }
        Ok(None)
    }

    /// What tells how many frames were dropped by what variants may set.
    pub(super) fn counters(&self) -> Vec<Vec<String>> {
        let mechanisms = self.mechanisms.iter();
        mechanisms
            .flat_map(|mechanism| mechanism.counters())
            .collect()
    }

    /// Those frames so far, by reason, from the answers of the counters.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn drops(&mut self, answers: &Answers) -> Result<Drops, LabError> {
        let mut drops = self.abilities.drops()?;
        for mechanism in &self.mechanisms {
            drops.extend(mechanism.drops(answers));
        }
        Ok(drops)
    }

    fn ask(
        &mut self,
        host: &OnHost,
        questions: &[Question],
        asks: Asks,
    ) -> Result<Answers, LabError> {
        let commands: BTreeSet<_> = questions.iter().cloned().filter_map(command).collect();
        let mut answers = host.connection.ask(commands.into_iter().collect())?;
        for question in questions {
            match question {
                // By itself it says why.
                Question::Needed(words) if answers.get(words).is_none() => {
                    host.run(words)?;
                }
                Question::Needed(_) | Question::Maybe(_) => {}
                Question::Complaint(errand) => {
                    let complaint = host.connection.complaint(errand)?;
                    answers.complaints.insert(errand.clone(), complaint);
                }
                Question::Attachable(attachment) => {
                    let why = self.abilities.not_attachable(host, attachment, asks)?;
                    let why = why.map(|why| (attachment.hook, why));
                    answers.not_attachable.extend(why);
                }
                Question::Attached(hook) => {
                    let number = self.abilities.attached(*hook)?;
                    answers
                        .attached
                        .extend(number.map(|number| (*hook, number)));
                }
                Question::ImageWriter => {
                    answers.no_image_writer = self.abilities.no_image_writer(host)?;
                }
            }
        }
        Ok(answers)
    }

    /// Fails where nothing says how a factor is set.
    fn prove_bound(&self, variant: &Variant) -> Result<(), LabError> {
        let mut levels = variant.levels.iter();
        let unbound = levels.find(|(factor, _)| !self.factors.contains(*factor));
        unbound.map_or(Ok(()), |(factor, level)| Err(unbound_level(factor, level)))
    }
}

/// The command of a question that is one.
fn command(question: Question) -> Option<Vec<String>> {
    match question {
        Question::Needed(words) | Question::Maybe(words) => Some(words),
        Question::Complaint(_)
        | Question::Attachable(_)
        | Question::Attached(_)
        | Question::ImageWriter => None,
    }
}

/// What lists the features that actions may switch.
fn names(actions: &[Action]) -> Vec<Vec<String>> {
    let names = actions.iter().filter_map(|action| match action {
        Action::Feature { interface, .. } => Some(interface.as_str()),
        _ => None,
    });
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().map(features_of).collect()
}

/// Commands that wait for others to go with.
#[derive(Default)]
struct Errands(Vec<Errand>);

impl Errands {
    fn add(&mut self, host: &OnHost, errand: Errand) -> Result<(), LabError> {
        if errand.input.len() > INPUT_IN_SCRIPT_MAX {
            self.run(host)?;
            return host
                .connection
                .run(&errand.words, &errand.input)
                .map(|_| ());
        }
        self.0.push(errand);
        Ok(())
    }

    fn run(&mut self, host: &OnHost) -> Result<(), LabError> {
        host.connection.run_in_order(&std::mem::take(&mut self.0))
    }
}
