//! What carries out what mechanisms ask and do: a namespace of this machine, or a host over ssh.

use super::question::{Answers, Question};
use super::step::Action;
use crate::Moved;
use crate::counters::Drops;
use crate::journal::Journal;
use crate::{Asks, LabError};

/// The way to a DUT.
pub(crate) trait Transport {
    /// Asks, as much as can be at once.
    ///
    /// # Errors
    /// Where what is needed is not there, and those of the way.
    fn ask(&mut self, questions: &[Question], asks: Asks) -> Result<Answers, LabError>;

    /// Does all of it in this order. What outlives a killed run is announced to the journal first. Returns whether a port may
    /// have been restarted by it.
    ///
    /// # Errors
    /// What the DUT refuses, and those of the way.
    fn carry_out(&mut self, journal: &mut Journal, actions: Vec<Action>) -> Result<bool, LabError>;

    /// Frames that attached programs have dropped, by reason.
    ///
    /// # Errors
    /// Those of the way.
    fn drops(&mut self) -> Result<Drops, LabError>;

    /// Notices from now on whether something is changed, where it can.
    ///
    /// # Errors
    /// Those of the way.
    fn watch(&mut self, _watch: &Watch) -> Result<(), LabError> {
        Ok(())
    }

    /// What was noticed since.
    ///
    /// # Errors
    /// Those of the way.
    fn noticed(&mut self, _watch: &Watch) -> Result<Noticed, LabError> {
        Ok(Noticed::NotWatched)
    }
}

/// What can be watched: asking whether it has changed costs microseconds, reading it back milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) of: Watched,
    /// What messages call it.
    pub(crate) setting: String,
}

/// What of a DUT is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// The number that the kernel gives the nft ruleset with every change.
    Generation,
    /// The static routes of the family whose frames are forwarded.
    Routes,
}

/// What a watch has noticed.
#[derive(Debug)]
pub(crate) enum Noticed {
    NotWatched,
    NoChange,
    /// It counts as moved even where it was moved back.
    Change(Moved),
}
