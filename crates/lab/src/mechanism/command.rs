//! The user's own programs: one sets a level, one takes it back, one may tell it.

use fwdlab_model::{CommandBinding, Level, Variant};
use fwdlab_sys::Descendants;

use super::reading::{Form, Reading};
use super::step::{Action, Answers, Question, owned};
use super::{InNamespace, Mechanism, Site, moved};
use crate::journal::{ChangeId, Started, Undo};
use crate::program::command_line;
use crate::{LabError, Topology, program};

/// Those of one factor, run in the DUT's namespace.
pub(super) struct Programs {
    factor: String,
    binding: CommandBinding,
    /// The level that stands, with the change that undoes it.
    standing: Option<(Level, ChangeId)>,
}

impl Programs {
    pub(super) fn new(factor: String, binding: CommandBinding) -> Self {
        Self {
            factor,
            binding,
            standing: None,
        }
    }
}

impl InNamespace for Programs {
    fn unavailable(
        &self,
        _topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        if !variant.levels.contains_key(&self.factor) {
            return Ok(None);
        }
        // Whether they can do what they are asked, only running them would tell.
        let mut programs = self.binding.programs();
        let missing = programs.find(|name| !program::is_installed(name));
        Ok(missing.map(|name| format!("the program {name:?} is not installed")))
    }

    fn may_change_program(&self, variant: &Variant) -> bool {
        let level = variant.levels.get(&self.factor);
        level.is_some_and(|level| {
            let standing = self.standing.as_ref();
            standing.is_none_or(|(standing, _)| standing != level)
        })
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(());
        };
        if let Some((standing, change)) = &self.standing {
            if standing == level {
                return Ok(());
            }
            site.journal.undo(change)?;
            self.standing = None;
        }
        let started = Descendants::marked(&site.journal.mark());
        let change = site.journal.announce(
            format!("factor {:?} at level {:?}", self.factor, level.to_string()),
            Undo::Run {
                namespace: site.topology.dut().name().to_owned(),
                arguments: self.binding.undo(level),
                started: Some(Started::of(&started)),
            },
        )?;
        self.standing = Some((level.clone(), change));
        let apply = self.binding.apply(level);
        let run = || program::run_first_of(&started, &apply);
        site.topology.dut().run(run)??;
        Ok(())
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(());
        };
        let Some(check) = self.binding.check(level) else {
            return Ok(());
        };
        let seen = site.topology.dut().run(|| program::run_bound(&check))??;
        let asked = level.to_string();
        if holds(&seen, &asked) {
            return Ok(());
        }
        Err(moved(told_by(&self.factor, &check), asked, seen.trim()))
    }
}

fn told_by(factor: &str, check: &[String]) -> String {
    format!("factor {factor:?}, as told by {}", command_line(check))
}

/// Those of one factor, on a host of any system.
pub(super) struct HostPrograms {
    factor: String,
    binding: CommandBinding,
}

impl HostPrograms {
    pub(super) fn new(factor: &str, binding: CommandBinding) -> Self {
        Self {
            factor: factor.to_owned(),
            binding,
        }
    }
}

/// What finds out whether a program is installed on a host.
fn installed(name: &str) -> Vec<String> {
    owned(&["sh", "-c", "command -v -- \"$0\"", name])
}

impl Mechanism for HostPrograms {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        if !variant.levels.contains_key(&self.factor) {
            return Ok(Vec::new());
        }
        let programs = self.binding.programs();
        Ok(programs
            .map(|name| Question::Maybe(installed(name)))
            .collect())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        if !variant.levels.contains_key(&self.factor) {
            return Ok(None);
        }
        let mut programs = self.binding.programs();
        let missing = programs.find(|name| answers.get(&installed(name)).is_none());
        Ok(missing.map(|name| format!("the program {name:?} is not installed")))
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let level = variant.levels.get(&self.factor).into_iter();
        let actions = level.map(|level| Action::Own {
            factor: self.factor.clone(),
            level: level.clone(),
            programs: self.binding.clone(),
        });
        Ok(actions.collect())
    }

    fn readings(&self, variant: &Variant) -> Result<Vec<Reading>, LabError> {
        let level = variant.levels.get(&self.factor);
        let check = level.and_then(|level| Some((level, self.binding.check(level)?)));
        let readings = check.into_iter().map(|(level, question)| Reading {
            setting: told_by(&self.factor, &question),
            question,
            asked: level.to_string(),
            form: Form::Holds,
        });
        Ok(readings.collect())
    }
}

/// Whether a text holds a level as a word of its own: `10` does not hold `1`.
pub(crate) fn holds(text: &str, level: &str) -> bool {
    let is_of_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    // A level that itself begins or ends with a sign borders on anything.
    let is_joined = |outside, inside| is_of_word(outside) && is_of_word(inside);
    if level.is_empty() {
        return text.trim().is_empty();
    }
    text.match_indices(level).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + level.len()..].chars().next();
        let (first, last) = (level.chars().next(), level.chars().next_back());
        !is_joined(before, first) && !is_joined(after, last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_found_as_a_word() {
        for (text, level) in [
            ("value = 1\n", "1"),
            ("1", "1"),
            ("10 11 1", "1"),
            ("mode=fast,", "fast"),
            ("-1", "-1"),
            ("", ""),
            ("größe 2", "2"),
        ] {
            assert!(holds(text, level), "{text:?} {level:?}");
        }
        for (text, level) in [
            ("10", "1"),
            ("breakfast", "fast"),
            ("", "1"),
            ("x", ""),
            ("v_1", "1"),
        ] {
            assert!(!holds(text, level), "{text:?} {level:?}");
        }
    }
}
