//! The user's own programs: one sets a level, one takes it back, one may tell it.

use std::path::Path;

use fwdlab_model::{CommandBinding, Level, Variant};

use super::Mechanism;
use super::question::{Answers, Look, Question};
use super::reading::{Form, Reading};
use super::step::{Action, owned};
use crate::LabError;
use crate::program::command_line;

fn told_by(factor: &str, check: &[String]) -> String {
    format!("factor {factor:?}, as told by {}", command_line(check))
}

/// Those of one factor, on any system.
pub(super) struct OwnersPrograms {
    pub(super) factor: String,
    pub(super) binding: CommandBinding,
}

/// What finds out whether a program is installed.
pub(super) fn installed(name: &str) -> Vec<String> {
    // Some shells find a path that may not be executed.
    let look = "case $0 in */*) test -x \"$0\" && ! test -d \"$0\" && echo \"$0\";; *) command -v -- \"$0\";; esac";
    owned(&["sh", "-c", look, name])
}

/// Why a level cannot be set without a program; none where that is installed. A path is relative to `folder`, where that is
/// known.
pub(super) fn missing(
    name: &str,
    folder: Option<&Path>,
    factor: &str,
    level: &Level,
    answers: &Answers,
) -> Option<String> {
    let level = level.to_string();
    answers.get(&installed(name)).is_none().then(|| {
        if !name.contains('/') {
            return format!(
                "the program {name:?} is not installed, but factor {factor:?} at level {level:?} needs it; install it"
            );
        }
        let folder = folder.filter(|_| Path::new(name).is_relative());
        let place = folder.map_or_else(String::new, |folder| format!(" in {}", folder.display()));
        format!(
            "there is no executable file {name:?}{place}, but factor {factor:?} at level {level:?} needs it; correct the \
             path, or make the file executable (chmod +x)"
        )
    })
}

impl Mechanism for OwnersPrograms {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        if !variant.levels.contains_key(&self.factor) {
            return Ok(Vec::new());
        }
        let programs = self.binding.programs();
        Ok(programs
            .map(|name| Question::maybe(installed(name)))
            .collect())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(None);
        };
        let mut programs = self.binding.programs();
        Ok(programs.find_map(|name| missing(name, None, &self.factor, level, answers)))
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
            look: Look::OwnProgram(question),
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
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_is_on_the_path_or_an_executable_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("router"), "#!/bin/sh\n").unwrap();
        let is_found = |name: &str| {
            let words = installed(name);
            let mut look = Command::new(&words[0]);
            let look = look.args(&words[1..]).current_dir(folder.path());
            look.output().unwrap().status.success()
        };
        assert!(is_found("sh") && is_found("/bin/sh"));
        for name in ["no-such-program", "./no-router", "./router", "./", "router"] {
            assert!(!is_found(name), "{name}");
        }
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path().join("router"), executable).unwrap();
        assert!(is_found("./router"));
    }

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
