//! How what a command prints is compared with what was asked for.

use super::command::holds;
use super::ethtool::feature_of;
use super::question::{Answers, Look};
use super::sysfs::is_same;
use crate::Moved;

/// A setting that can be read back.
pub(crate) struct Reading {
    pub(crate) setting: String,
    pub(crate) look: Look,
    pub(crate) asked: String,
    pub(crate) form: Form,
}

/// How an answer is read.
#[derive(Clone)]
pub(crate) enum Form {
    /// Its words are what was asked for.
    Words,
    /// It is what was asked for, as text or as a mask of CPUs.
    TextOrMask,
    /// A feature of this name is, as ethtool lists them.
    Feature(String),
    /// A truth value of a module, which has several spellings.
    Truth,
    /// It holds what was asked for.
    Holds,
}

impl Reading {
    /// What is not as asked; none where it is. A command that fails has answered nothing.
    pub(crate) fn moved(&self, answers: &Answers) -> Option<Moved> {
        let answer = answers.get(&self.look.words()).unwrap_or_default();
        let (seen, is_as_asked) = match &self.form {
            Form::Holds => (answer.to_owned(), holds(answer, &self.asked)),
            Form::TextOrMask => (answer.to_owned(), is_same(&self.asked, answer)),
            form => {
                let seen = form.seen(answer);
                let asked = match form {
                    Form::Truth => as_shown(&self.asked),
                    _ => self.asked.clone(),
                };
                let is_same = is_same_words(&seen, &asked);
                (seen, is_same)
            }
        };
        (!is_as_asked).then(|| Moved::of(&self.setting, &self.asked, seen))
    }
}

impl Form {
    fn seen(&self, answer: &str) -> String {
        match self {
            Self::Words | Self::TextOrMask | Self::Holds => answer.to_owned(),
            Self::Truth => as_shown(answer),
            Self::Feature(name) => {
                let value = feature_of(answer, name).unwrap_or_default();
                let word = value.split(' ').next();
                word.unwrap_or_default().to_owned()
            }
        }
    }
}

/// Whether two texts are of the same words.
pub(super) fn is_same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// A module's parameter as the kernel shows it: truth values have several spellings.
fn as_shown(value: &str) -> String {
    match value.trim() {
        "1" | "y" | "Y" | "on" | "true" => "Y".to_owned(),
        "0" | "n" | "N" | "off" | "false" => "N".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_held_against_what_was_asked_for() {
        let features =
            "Features for eth1:\n\trx-gro-list: off [fixed]\ngeneric-receive-offload: on";
        for (form, asked, answer, is_as_asked) in [
            (Form::Words, "1 2", "1\t2", true),
            (Form::Words, "1", "2", false),
            (Form::Words, "1", "", false),
            // What a DUT of more than 32 CPUs says.
            (Form::TextOrMask, "2", "00000000,00000002", true),
            (Form::TextOrMask, "2", "00000000,00000003", false),
            (Form::TextOrMask, "mq", "mq", true),
            (Form::TextOrMask, "0", "", false),
            (Form::Feature("rx-gro-list".into()), "off", features, true),
            (Form::Feature("rx-gro-list".into()), "on", features, false),
            (Form::Feature("no-such".into()), "off", features, false),
            (Form::Truth, "true", "Y", true),
            (Form::Truth, "0", "Y", false),
            (Form::Holds, "fast", "mode: fast.", true),
            (Form::Holds, "fast", "breakfast", false),
        ] {
            let reading = Reading {
                setting: "a setting".into(),
                look: Look::Command(vec!["cat".into()]),
                asked: asked.into(),
                form,
            };
            let answers = Answers::of("router", [(vec!["cat".to_owned()], answer)]);
            let moved = reading.moved(&answers);
            assert_eq!(
                moved.is_none(),
                is_as_asked,
                "{asked:?} {answer:?} {moved:?}"
            );
        }
    }
}
