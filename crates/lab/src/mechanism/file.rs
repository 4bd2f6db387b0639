//! Files by which a Linux kernel is set: read, written and put back.

use fwdlab_model::{Values, Variant};

use super::Mechanism;
use super::question::{Answers, Look, Question};
use super::reading::{Form, Reading};
use super::step::{Action, Errand, Step, owned};
use crate::LabError;

/// Whether each part of an absolute path goes further down.
fn is_plain(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    parts.all(|part| !["", ".", ".."].contains(&part))
}

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

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let is_set = variant.levels.contains_key(&self.factor);
        let reason = self.paths.iter().filter(|_| is_set).find_map(|path| {
            if !is_plain(path) {
                return Some(format!(
                    "{path:?} is not a path below the directory of its kind"
                ));
            }
            if answers.get(&cat(path)).is_some() {
                return None;
            }
            let why = answers.unreadable.get(path).cloned();
            Some(why.unwrap_or_else(|| format!("it has no readable {path}")))
        });
        Ok(reason)
    }

    fn looks(&self) -> Vec<Question> {
        let paths = self.paths.iter();
        let looks = paths.map(|path| Look::File(path.clone()));
        looks.map(Question::Maybe).collect()
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
        let actions = paths.map(|path| Action::Write {
            path: path.clone(),
            value: value.clone(),
        });
        Ok(actions.collect())
    }

    fn readings(&self, variant: &Variant) -> Result<Vec<Reading>, LabError> {
        let Some(value) = self.value(variant) else {
            return Ok(Vec::new());
        };
        let paths = self.paths.iter();
        let readings = paths.map(|path| Reading {
            setting: path.clone(),
            look: Look::File(path.clone()),
            asked: value.clone(),
            form: self.form.clone(),
        });
        Ok(readings.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_only_goes_down() {
        assert!(is_plain("/sys/class/net/eth0.10/queues/rx-0/rps_cpus"));
        for path in [
            "/sys/class/net/eth0/../lo/mtu",
            "/sys/class/net/eth0//etc",
            "/sys/./mtu",
            "/sys/",
        ] {
            assert!(!is_plain(path), "{path}");
        }
    }
}
