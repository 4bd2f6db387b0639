//! Files by which a Linux kernel is set, on a host: read, written and put back.

use fwdlab_model::{Values, Variant};

use super::Mechanism;
use super::reading::{Form, Reading};
use super::step::{Action, Answers, Errand, Question, Step, owned};
use crate::LabError;

/// What reads a file.
pub(crate) fn cat(path: &str) -> Vec<String> {
    owned(&["cat", path])
}

/// What writes a file.
pub(crate) fn write(path: &str, value: &str) -> Errand {
    Errand::reading(&["tee", path], value)
}

/// A file that is put back as it was.
pub(crate) fn kept(path: &str, value: &str) -> Step {
    // One that is gone, with a module or a boot, has nothing to be put back.
    let undo = Errand::reading(&["sh", "-c", "[ ! -e \"$0\" ] || tee \"$0\"", path], value);
    Step::kept(format!("{path} ({value})"), undo)
}

/// Files that hold the level's value.
pub(super) struct Files {
    factor: String,
    paths: Vec<String>,
    values: Values,
    form: Form,
}

impl Files {
    pub(super) fn new(factor: &str, paths: Vec<String>, values: &Values, form: Form) -> Self {
        Self {
            factor: factor.to_owned(),
            paths,
            values: values.clone(),
            form,
        }
    }

    /// What the variant has in the files, where it says.
    pub(super) fn value(&self, variant: &Variant) -> Option<String> {
        let level = variant.levels.get(&self.factor)?;
        Some(self.values.value(level))
    }
}

impl Mechanism for Files {
    fn needs(&self, _: &Variant) -> Result<Vec<Question>, LabError> {
        Ok(self.looks())
    }

    fn lacking(&self, _: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let mut paths = self.paths.iter();
        let missing = paths.find(|path| answers.get(&cat(path)).is_none());
        Ok(missing.map(|path| format!("it has no readable {path}")))
    }

    fn looks(&self) -> Vec<Question> {
        let paths = self.paths.iter();
        paths.map(|path| Question::Maybe(cat(path))).collect()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let paths = self.paths.iter();
        let steps = paths.map(|path| Ok(kept(path, answers.needed(&cat(path))?)));
        steps.collect()
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let Some(value) = self.value(variant) else {
            return Ok(Vec::new());
        };
        let paths = self.paths.iter();
        Ok(paths.map(|path| Action::Run(write(path, &value))).collect())
    }

    fn readings(&self, variant: &Variant) -> Result<Vec<Reading>, LabError> {
        let Some(value) = self.value(variant) else {
            return Ok(Vec::new());
        };
        let paths = self.paths.iter();
        let readings = paths.map(|path| Reading {
            setting: path.clone(),
            question: cat(path),
            asked: value.clone(),
            form: self.form.clone(),
        });
        Ok(readings.collect())
    }
}
