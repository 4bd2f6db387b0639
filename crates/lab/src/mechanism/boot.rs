//! What takes a boot: a module's parameter and the kernel's command line of Linux, tunables of FreeBSD's loader.

use fwdlab_model::{Values, Variant, devices};

use super::by_level::ByLevel;
use super::held::{Held, Holder};
use super::question::{Answers, Question};
use super::reading::{Form, Reading, is_same_words};
use super::step::{BootChoice, owned};
use super::{Mechanism, iflib, sysctl};
use crate::program::command_line;
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
    /// The values of all levels.
    of_levels: Vec<String>,
}

impl Loader {
    /// That of a factor whose levels have these values.
    pub(super) fn new(
        factor: &str,
        tunable: &str,
        values: &Values,
        of_levels: Vec<String>,
    ) -> Self {
        Self {
            factor: factor.to_owned(),
            tunable: tunable.to_owned(),
            values: values.clone(),
            of_levels,
        }
    }

    /// What is not as asked of the tunable of one device; none where it is.
    fn moved_of(&self, name: &str, asked: &str, answers: &Answers) -> Option<Moved> {
        let questions = shown(name);
        let mut questions = questions.iter();
        let seen = questions.find_map(|question| answers.get(question));
        let seen = seen.unwrap_or_default();
        if !is_same_words(seen, asked) {
            return Some(Moved::of(name, asked, seen));
        }
        let printed = answers.get(&iflib::attached())?;
        iflib::moved(name, asked, &self.of_levels, printed)
    }
}

/// What tells a tunable after a boot: as a sysctl, where the kernel shows it so, or else as the loader has handed it on.
fn shown(name: &str) -> [Vec<String>; 2] {
    [sysctl::shown(name), owned(&["kenv", "-q", name])]
}

/// The same, with what tells what a driver has made of it.
pub(crate) fn questions(name: &str) -> Vec<Vec<String>> {
    let mut questions = shown(name).to_vec();
    questions.extend(iflib::is_read_at_attach(name).then(iflib::attached));
    questions
}

/// Why it would not be known whether a kernel that answers so has read tunables, in sentences.
pub(crate) fn doubts(names: &[String], answers: &Answers) -> Vec<String> {
    let listed = |is_doubtful: &dyn Fn(&String) -> bool| {
        let names = names.iter().filter(|name| is_doubtful(name));
        names.cloned().collect::<Vec<_>>().join(", ")
    };
    let unknown = listed(&|name| answers.get(&sysctl::shown(name)).is_none());
    let printed = answers.get(&iflib::attached()).unwrap_or_default();
    let not_told = listed(&|name| iflib::is_silent(name, printed));
    let host = &answers.host;
    let mut doubts = Vec::new();
    if !unknown.is_empty() {
        doubts.push(format!(
            "the kernel of {host} has no sysctl by the name of these tunables: {unknown}; that they read back as set says \
             that its loader handed them on, not that anything has read them: look for a slip in the name (`sysctl -aNT` \
             lists those that there are), unless it is one that is no sysctl, as hint.*"
        ));
    }
    if !not_told.is_empty() {
        doubts.push(format!(
            "{host} does not tell what drivers make of these tunables: {not_told}; `{}` prints nothing of the device, and \
             the sysctl shows what was asked for",
            command_line(&iflib::attached())
        ));
    }
    doubts
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
        let questions = names.iter().flat_map(|name| questions(name));
        Ok(questions.map(Question::maybe).collect())
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(None);
        };
        let asked = self.values.value(level);
        let mut names = devices(&self.tunable).into_iter();
        Ok(names.find_map(|name| self.moved_of(&name, &asked, answers)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fwdlab_model::{Level, VariantName};

    use super::*;

    #[test]
    fn tunables_that_nothing_need_have_read_are_named() {
        let names = [
            "dev.ix.0.iflib.simple_tx",
            "dev.ix.0.iflib.smple_tx",
            "dev.ix.0.iflib.override_ntxds",
            "dev.ix.1.iflib.override_ntxds",
        ];
        let answers = Answers::of(
            "router",
            [
                (sysctl::shown(names[0]), "0"),
                (sysctl::shown(names[2]), "0"),
                (sysctl::shown(names[3]), "0"),
                (
                    iflib::attached(),
                    "ix0: Using 2048 TX descriptors and 2048 RX descriptors",
                ),
            ],
        );
        let doubts = doubts(&names.map(str::to_owned), &answers);
        let [unknown, not_told] = &doubts[..] else {
            panic!("{doubts:?}");
        };
        assert!(unknown.contains(": dev.ix.0.iflib.smple_tx; "), "{unknown}");
        let named = ": dev.ix.1.iflib.override_ntxds; ";
        assert!(not_told.contains(named), "{not_told}");
    }

    // FreeBSD, `stand/lua/config.lua`, `processEnvVar`: `$name` and `${name}` become what the loader has under that name.
    #[test]
    fn values_that_a_loader_would_misread_are_refused() {
        let loader = Loader::new("f", "hw.x", &Values::default(), Vec::new());
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
