//! What is asked of a DUT, and what it answers, as data: a transport asks, for many mechanisms at once.

use std::collections::BTreeMap;

use fwdlab_model::AddressFamily;

use super::program::{Attachment, Hook};
use super::step::Errand;
use super::{ethtool, file, routes, xdp};
use crate::LabError;
use crate::program::command_line;

/// What can be looked at on a DUT without changing it. The answer is what a command prints; where a transport finds it out
/// without one, the answer has the same form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Look {
    /// What a command prints.
    Command(Vec<String>),
    /// What a program of the owner's prints, which may not end by itself.
    OwnProgram(Vec<String>),
    /// A file of a Linux kernel.
    File(String),
    /// The features of an interface.
    Features(String),
    /// An interface with its XDP program.
    Link(String),
    /// How many routes an experiment has in a family's table.
    Routes(AddressFamily),
}

impl Look {
    /// The command on a host.
    pub(crate) fn words(&self) -> Vec<String> {
        match self {
            Self::Command(words) | Self::OwnProgram(words) => words.clone(),
            Self::File(path) => file::cat(path),
            Self::Features(interface) => ethtool::features_of(interface),
            Self::Link(interface) => xdp::link_of(interface),
            Self::Routes(family) => routes::count(*family),
        }
    }
}

/// What is asked of a DUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// What has to be there.
    Needed(Look),
    /// What may be missing.
    Maybe(Look),
    /// What a command complains of.
    Complaint(Errand),
    /// Why a program cannot be attached.
    Attachable(Attachment),
    /// The kernel's number of the program that was attached there.
    Attached(Hook),
    /// Why no image can be written.
    ImageWriter,
}

impl Question {
    /// What a command prints that may fail.
    pub(crate) fn maybe(words: Vec<String>) -> Self {
        Self::Maybe(Look::Command(words))
    }

    /// What is looked at.
    pub(crate) fn look(&self) -> Option<&Look> {
        match self {
            Self::Needed(look) | Self::Maybe(look) => Some(look),
            Self::Complaint(_) | Self::Attachable(_) | Self::Attached(_) | Self::ImageWriter => {
                None
            }
        }
    }
}

/// What a DUT answered, without the white space around it.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) host: String,
    /// Of commands, by their words; none of those that failed.
    pub(crate) printed: BTreeMap<Vec<String>, Option<String>>,
    /// Why a look failed, by the words of its command, where more is known of it.
    pub(crate) reasons: BTreeMap<Vec<String>, String>,
    /// Of commands that may complain; none of those that did not.
    pub(crate) complaints: BTreeMap<Errand, Option<String>>,
    /// Why the program of a hook cannot be attached.
    pub(crate) not_attachable: BTreeMap<Hook, String>,
    /// The numbers of what was attached.
    pub(crate) attached: BTreeMap<Hook, u32>,
    /// Why no image can be written.
    pub(crate) no_image_writer: Option<String>,
}

impl Answers {
    /// Of a host that answered so.
    #[cfg(test)]
    pub(crate) fn of<const N: usize>(host: &str, answers: [(Vec<String>, &str); N]) -> Self {
        let answers = answers.into_iter();
        let answers = answers.map(|(question, answer)| (question, Some(answer.to_owned())));
        Self {
            host: host.to_owned(),
            printed: answers.collect(),
            ..Self::default()
        }
    }

    /// What a command printed; none where it failed.
    pub(crate) fn get(&self, question: &[String]) -> Option<&str> {
        self.printed.get(question)?.as_deref()
    }

    /// What a command printed.
    ///
    /// # Errors
    /// `Host` where it failed.
    pub(crate) fn needed(&self, question: &[String]) -> Result<&str, LabError> {
        self.get(question)
            .ok_or_else(|| self.wrong(format!("`{}` fails there", command_line(question))))
    }

    /// What a command complained of; none where it succeeded.
    pub(crate) fn complaint(&self, of: &Errand) -> Option<&str> {
        self.complaints.get(of)?.as_deref()
    }

    /// What is wrong with the host that answered.
    pub(crate) fn wrong(&self, why: String) -> LabError {
        let host = self.host.clone();
        LabError::Host { host, why }
    }
}
