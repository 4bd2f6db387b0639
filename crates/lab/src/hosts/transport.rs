//! How a host carries out what mechanisms ask and do.

use std::collections::BTreeSet;

use super::dut::OnHost;
use super::own_programs::OwnPrograms;
use crate::counters::Drops;
use crate::journal::Journal;
use crate::mechanism::ethtool::{feature_of, features_of, on_or_off, switch};
use crate::mechanism::file::write;
use crate::mechanism::program::{Attachment, Hook};
use crate::mechanism::question::{Answers, Look, Question};
use crate::mechanism::routes::batch;
use crate::mechanism::step::{Action, Errand};
use crate::mechanism::transport::Transport;
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
        Err(host.connection.wrong("no program can be attached there"))
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

/// The way to a DUT on its host: as many commands by one errand as can be.
pub(super) struct OverSsh<'a> {
    pub(super) host: &'a OnHost,
    pub(super) abilities: &'a mut dyn Abilities,
    pub(super) own: &'a mut OwnPrograms,
}

impl Transport for OverSsh<'_> {
    fn ask(&mut self, questions: &[Question], asks: Asks) -> Result<Answers, LabError> {
        let host = self.host;
        let commands: BTreeSet<_> = questions.iter().filter_map(words).collect();
        let mut answers = host.connection.ask(commands.into_iter().collect())?;
        for question in questions {
            match question {
                // By itself it says why.
                Question::Needed(look) if answers.get(&look.words()).is_none() => {
                    host.run(&look.words())?;
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

    fn carry_out(&mut self, journal: &mut Journal, actions: Vec<Action>) -> Result<bool, LabError> {
        let host = self.host;
        let features = names(&actions);
        let mut listed: Option<Answers> = None;
        let mut may_restart = false;
        let mut errands = Errands::default();
        for action in actions {
            match action {
                Action::Run(errand) => errands.add(host, errand)?,
                Action::Write { path, value } => errands.add(host, write(&path, &value))?,
                Action::Routes {
                    family,
                    change,
                    prefixes,
                } => {
                    let errand = batch(family, change, &prefixes, &host.of.interface_out);
                    errands.add(host, errand)?;
                }
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
                Action::Forward { .. } => {
                    unreachable!("no mechanism of a host starts a forwarder in user space")
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

    fn drops(&mut self) -> Result<Drops, LabError> {
        self.abilities.drops()
    }
}

/// The command of a question that is one.
pub(super) fn words(question: &Question) -> Option<Vec<String>> {
    question.look().map(Look::words)
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
