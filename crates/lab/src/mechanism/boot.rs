//! What takes a boot: a module's parameter and the kernel's command line of Linux, tunables of FreeBSD's loader.

use fwdlab_model::{Values, Variant, devices};

use super::by_level::ByLevel;
use super::held::{Held, Holder};
use super::question::{Answers, Question};
use super::reading::{Form, Reading, is_same_words};
use super::step::{BootChoice, owned};
use super::{Mechanism, sysctl};
use crate::{LabError, Moved};

/// A parameter of a Linux module: a file that is read alone.
pub(super) struct Module {
    /// `module.parameter`, as on the kernel's command line.
    name: String,
    file: Held,
}

impl Module {
    pub(super) fn new(factor: &str, module: &str, parameter: &str, values: &Values) -> Self {
        let path = format!("/sys/module/{module}/parameters/{parameter}");
        Self {
            name: format!("{module}.{parameter}"),
            file: Held::new(factor, vec![path], values, Holder::Files(Form::Truth)),
        }
    }
}

impl Mechanism for Module {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        self.file.needs(variant)
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        self.file.lacking(variant, answers)
    }

    fn boot(&self, variant: &Variant, choice: &mut BootChoice) -> Result<(), LabError> {
        if let Some(value) = self.file.value(variant) {
            choice.parameters.push(format!("{}={value}", self.name));
        }
        Ok(())
    }

    fn readings(&self, variant: &Variant) -> Result<Vec<Reading>, LabError> {
        self.file.readings(variant)
    }
}

/// Words on the command line of a Linux kernel. Whether GRUB has such an entry shows when it is to boot.
pub(super) struct CommandLine(pub(super) ByLevel<String>);

impl Mechanism for CommandLine {
    fn boot(&self, variant: &Variant, choice: &mut BootChoice) -> Result<(), LabError> {
        if let Some(words) = self.0.get(variant)? {
            let words = words.split_whitespace().map(str::to_owned);
            choice.parameters.extend(words);
        }
        Ok(())
    }
}

/// A tunable of FreeBSD's loader.
pub(super) struct Loader {
    factor: String,
    tunable: String,
    values: Values,
}

impl Loader {
    pub(super) fn new(factor: &str, tunable: &str, values: &Values) -> Self {
        Self {
            factor: factor.to_owned(),
            tunable: tunable.to_owned(),
            values: values.clone(),
        }
    }
}

/// What tells a tunable after a boot: as a sysctl, where the kernel shows it so, or else as the loader has handed it on.
fn shown(name: &str) -> [Vec<String>; 2] {
    [sysctl::shown(name), owned(&["kenv", "-q", name])]
}

impl Mechanism for Loader {
    fn lacking(&self, variant: &Variant, _: &Answers) -> Result<Option<String>, LabError> {
        let level = variant.levels.get(&self.factor);
        let value = level.map(|level| self.values.value(level));
        let misread = value.filter(|value| value.contains(['"', '\\', '$']));
        Ok(misread.map(|value| {
            let tunable = &self.tunable;
            format!(
                "the value {value:?} of {tunable} holds a quote or `$`, which FreeBSD's loader would misread"
            )
        }))
    }

    fn boot(&self, variant: &Variant, choice: &mut BootChoice) -> Result<(), LabError> {
        if let Some(level) = variant.levels.get(&self.factor) {
            let value = self.values.value(level);
            let tunables = devices(&self.tunable).into_iter();
            let tunables = tunables.map(|name| format!("{name}={value}"));
            choice.parameters.extend(tunables);
        }
        Ok(())
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        if !variant.levels.contains_key(&self.factor) {
            return Ok(Vec::new());
        }
        let names = devices(&self.tunable);
        let questions = names.iter().flat_map(|name| shown(name));
        Ok(questions.map(Question::maybe).collect())
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(None);
        };
        let asked = self.values.value(level);
        let moved = devices(&self.tunable).into_iter().find_map(|name| {
            let mut seen = shown(&name).into_iter();
            let seen = seen.find_map(|question| answers.get(&question).map(str::to_owned));
            let seen = seen.unwrap_or_default();
            (!is_same_words(&seen, &asked)).then(|| Moved::of(name.as_str(), &asked, seen))
        });
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fwdlab_model::{Level, VariantName};

    use super::*;

    // FreeBSD, `stand/lua/config.lua`, `processEnvVar`: `$name` and `${name}` become what the loader has under that name.
    #[test]
    fn values_that_a_loader_would_misread_are_refused() {
        let loader = Loader::new("f", "hw.x", &Values::default());
        for (value, is_taken) in [("1", true), ("a\"b", false), ("${kernel}", false)] {
            let variant = Variant {
                name: VariantName::from_label("a"),
                label: "a".to_owned(),
                levels: BTreeMap::from([("f".to_owned(), Level::Text(value.to_owned()))]),
                control_of: None,
                unavailable: None,
            };
            let lacking = loader.lacking(&variant, &Answers::default()).unwrap();
            assert_eq!(lacking.is_none(), is_taken, "{value}: {lacking:?}");
        }
    }
}
