//! What is asked of a DUT and done to it, as data: a transport carries it out, for many mechanisms at once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fwdlab_model::{CommandBinding, Level};

use super::program::{Attachment, Hook};
use crate::LabError;
use crate::program::command_line;

/// A command of the DUT, and what it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Errand {
    pub(crate) words: Vec<String>,
    pub(crate) input: String,
}

impl Errand {
    /// One that reads nothing.
    pub(crate) fn of(words: &[impl AsRef<str>]) -> Self {
        Self::reading(words, "")
    }

    /// One that reads a text.
    pub(crate) fn reading(words: &[impl AsRef<str>], input: &str) -> Self {
        Self {
            words: owned(words),
            input: input.to_owned(),
        }
    }
}

/// Words of a command.
pub(crate) fn owned(words: &[impl AsRef<str>]) -> Vec<String> {
    words.iter().map(|word| word.as_ref().to_owned()).collect()
}

/// What is asked of a DUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// What a command prints that has to succeed.
    Needed(Vec<String>),
    /// What a command prints that may fail.
    Maybe(Vec<String>),
    /// What a command complains of.
    Complaint(Errand),
    /// Why a program cannot be attached.
    Attachable(Attachment),
    /// The kernel's number of the program that was attached there.
    Attached(Hook),
    /// Why no image can be written.
    ImageWriter,
}

/// What a DUT answered, without the white space around it.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) host: String,
    /// Of commands, by their words; none of those that failed.
    pub(crate) printed: BTreeMap<Vec<String>, Option<String>>,
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

/// A change of a DUT that is put back at the end of a block: what undoes it is announced before it is made.
#[derive(Debug)]
pub(crate) struct Step {
    /// For the reader.
    pub(crate) what: String,
    pub(crate) undo: Errand,
    /// Of what it consists; doing it twice has to be the same as doing it once. Nothing where it only might be changed
    /// later.
    pub(crate) errands: Vec<Errand>,
    /// Tries the undo before anything is changed, where only trying tells whether it works.
    pub(crate) rehearsal: Option<Rehearsal>,
}

/// A trial of an undo.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    pub(crate) errand: Errand,
    /// What is wrong with a host where the errand complains so.
    pub(crate) refused: fn(&str) -> String,
}

impl Step {
    /// A change that is made at once.
    pub(crate) fn change(what: String, undo: Errand, errands: Vec<Errand>) -> Self {
        Self {
            what,
            undo,
            errands,
            rehearsal: None,
        }
    }

    /// How something is that variants may change.
    pub(crate) fn kept(what: String, undo: Errand) -> Self {
        Self::change(what, undo, Vec::new())
    }
}

/// What is done to a DUT to set a level.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// A command; doing it twice has to be the same as doing it once.
    Run(Errand),
    /// A feature of an interface, switched where it is otherwise: many a driver takes its port down for it.
    Feature {
        interface: String,
        feature: String,
        is_on: bool,
    },
    /// A program in the place of another one, or of none.
    Attach(Attachment),
    /// The owner's program sets a level of a factor, once the level that it set before is taken back.
    Own {
        factor: String,
        level: Level,
        programs: CommandBinding,
    },
}

/// What a DUT boots into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BootChoice {
    /// The kernel: on Linux its release, on FreeBSD its folder or boot environment; the one that boots by itself
    /// without.
    pub(crate) kernel: Option<String>,
    /// What the kernel is told besides: on Linux words on its command line behind those that are there by
    /// themselves, on FreeBSD the loader's tunables, `name=value`.
    pub(crate) parameters: Vec<String>,
    /// The folder of files that the host has while it boots.
    pub(crate) configs: Option<PathBuf>,
    /// The image of its system; the one that it boots by itself without.
    pub(crate) image: Option<PathBuf>,
}

impl BootChoice {
    pub(crate) fn is_as_by_itself(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for BootChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.image, &self.kernel) {
            (Some(image), _) => write!(f, "image {}", image.display())?,
            (None, Some(name)) => write!(f, "kernel {name}")?,
            (None, None) => f.write_str("its own kernel")?,
        }
        if !self.parameters.is_empty() {
            write!(f, " with {}", self.parameters.join(" "))?;
        }
        if let Some(folder) = &self.configs {
            write!(f, " and the files of {}", folder.display())?;
        }
        Ok(())
    }
}
