//! Values that a kernel holds by name: read, set and put back.

use std::collections::BTreeMap;

use fwdlab_model::{Values, Variant};

use super::question::{Answers, Look, Question};
use super::reading::{Form, Reading};
use super::step::{Action, Step};
use super::{Mechanism, file, sysctl};
use crate::LabError;

/// What a kernel holds values in.
pub(super) enum Holder {
    /// Linux: files, by their paths.
    Files(Form),
    /// FreeBSD: sysctls.
    Sysctls,
}

impl Holder {
    fn look(&self, name: &str) -> Look {
        match self {
            Self::Files(_) => Look::File(name.to_owned()),
            Self::Sysctls => Look::Command(sysctl::shown(name)),
        }
    }

    fn set(&self, name: &str, value: &str) -> Action {
        match self {
            Self::Files(_) => Action::Write {
                path: name.to_owned(),
                value: value.to_owned(),
            },
            Self::Sysctls => Action::Run(sysctl::set(name, value)),
        }
    }

    fn kept(&self, name: &str, value: &str) -> Step {
        match self {
            Self::Files(_) => file::kept(name, value),
            Self::Sysctls => sysctl::kept(name, value),
        }
    }

    fn form(&self) -> Form {
        match self {
            Self::Files(form) => form.clone(),
            Self::Sysctls => Form::Words,
        }
    }

    /// Why there is no such value; none where there is.
    fn lacking(&self, name: &str, answers: &Answers) -> Option<String> {
        let is_there = answers.get(&self.look(name).words()).is_some();
        match self {
            Self::Files(_) if !file::is_plain(name) => Some(format!(
                "{name:?} is not a path below the directory of its kind"
            )),
            _ if is_there => None,
            Self::Files(_) => {
                let why = answers.reasons.get(&self.look(name).words()).cloned();
                Some(why.unwrap_or_else(|| format!("it has no readable {name}")))
            }
            Self::Sysctls => Some(format!("its kernel has no readable sysctl {name}")),
        }
    }
}

/// Some that are to hold the level's value.
pub(super) struct Held {
    factor: String,
    names: Vec<String>,
    values: Values,
    holder: Holder,
    /// As what a value reads back where it is not as it was written.
    reads_back: BTreeMap<String, String>,
}

impl Held {
    pub(super) fn new(factor: &str, names: Vec<String>, values: &Values, holder: Holder) -> Self {
        Self {
            factor: factor.to_owned(),
            names,
            values: values.clone(),
            holder,
            reads_back: BTreeMap::new(),
        }
    }

    /// The same with values that the kernel changes.
    pub(super) fn reading_back(self, reads_back: &BTreeMap<String, String>) -> Self {
        let reads_back = reads_back.clone();
        Self { reads_back, ..self }
    }

    /// What they are to hold for the variant, where it says.
    pub(super) fn value(&self, variant: &Variant) -> Option<String> {
        let level = variant.levels.get(&self.factor)?;
        Some(self.values.value(level))
    }

    /// Each name with that.
    fn asked(&self, variant: &Variant) -> impl Iterator<Item = (&String, String)> {
        let value = self.value(variant);
        let names = self.names.iter();
        names.filter_map(move |name| Some((name, value.clone()?)))
    }
}

impl Mechanism for Held {
    fn needs(&self, _: &Variant) -> Result<Vec<Question>, LabError> {
        Ok(self.looks())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let mut asked = self.asked(variant);
        Ok(asked.find_map(|(name, _)| self.holder.lacking(name, answers)))
    }

    fn looks(&self) -> Vec<Question> {
        let looks = self.names.iter().map(|name| self.holder.look(name));
        looks.map(Question::Maybe).collect()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let steps = self.names.iter().map(|name| {
            let value = answers.needed(&self.holder.look(name).words())?;
            Ok(self.holder.kept(name, value))
        });
        steps.collect()
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let asked = self.asked(variant);
        Ok(asked
            .map(|(name, value)| self.holder.set(name, &value))
            .collect())
    }

    fn readings(&self, variant: &Variant) -> Result<Vec<Reading>, LabError> {
        let readings = self.asked(variant).map(|(name, asked)| Reading {
            setting: name.clone(),
            look: self.holder.look(name),
            asked: self.reads_back.get(&asked).cloned().unwrap_or(asked),
            form: self.holder.form(),
        });
        Ok(readings.collect())
    }
}
