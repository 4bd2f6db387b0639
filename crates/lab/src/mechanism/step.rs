//! What is done to a DUT, as data: a transport carries it out, for many mechanisms at once.

use std::path::PathBuf;

use fwdlab_model::{AddressFamily, CommandBinding, Forwarder, Level};

use super::program::Attachment;
use crate::addresses::Prefix;
use crate::netlink::RouteChange;

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

/// Words of a command as they stand in a line, none of which holds a blank.
pub(crate) fn words_of(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
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
    /// A value is written to a file of a Linux kernel.
    Write { path: String, value: String },
    /// Routes of the experiment come or go.
    Routes {
        family: AddressFamily,
        change: RouteChange,
        prefixes: Vec<Prefix>,
    },
    /// A feature of an interface, switched where it is otherwise: many a driver takes its port down for it.
    Feature {
        interface: String,
        feature: String,
        is_on: bool,
    },
    /// A program in the place of another one, or of none.
    Attach(Attachment),
    /// A forwarder in user space takes the place of the kernel, or the kernel its own.
    Forward {
        level: String,
        forwarder: Option<Forwarder>,
    },
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
