//! Bindings: from a lab's mechanisms to how this experiment's factors are set there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use toml::Spanned;

use crate::binding::{Apply, Binding, DutInterface, Upload, Values};
use crate::diagnostic::{Diagnostics, list, suggest};
use crate::document::Reading;
use crate::experiment::{ExperimentFile, FactorEntry, written};
use crate::hosts::Hosts;
use crate::lab_file::LabFile;
use crate::mechanism::{INTERFACES, Mechanism, devices};
use crate::placeholder;
use crate::resolve::{Read, beside, open, read_or_said};
use crate::words::Level;

/// The lab's own routes at the least; at the most about what the Internet's table holds.
const ROUTES: RangeInclusive<i64> = 2..=1_000_000;

/// How the lab sets each factor and each setting, for the levels that the experiment has.
pub(crate) fn bindings(
    reading: &mut Reading<'_>,
    file: &ExperimentFile,
    lab: &LabFile,
    read: Read<'_>,
) -> BTreeMap<String, Binding> {
    let mut bindings = BTreeMap::new();
    let factors = file.factors.iter().map(|factor| ("factor", factor));
    let settings = file.settings.iter().map(|setting| ("setting", setting));
    for (what, factor) in factors.chain(settings) {
        let name = factor.name.get_ref();
        let Some(mechanism) = lab.bindings.get(name) else {
            let bound = || lab.bindings.keys().map(String::as_str);
            let message = format!(
                "{what} {name:?} is not bound in {}, a lab of kind {}",
                lab.source.path.display(),
                lab.kind
            );
            let suggestion = reading.nearest(name, bound());
            let diagnostic = reading.error(factor.name.span(), message);
            suggest(diagnostic, suggestion);
            diagnostic.with_help(format!("bound there: {}", list(bound())));
            if let Some(own) = own_lab(file).filter(|own| *own != lab.source.path) {
                diagnostic.with_help(format!(
                    "the experiment is made for {}; without --lab it is measured there",
                    own.display()
                ));
            }
            continue;
        };
        let Some(mechanism) = mechanism else {
            continue;
        };
        let binding = binding(reading, factor, mechanism, lab, read);
        let mut others = bindings.iter().filter(|(other, _)| *other != name);
        if let Some((other, _)) =
            others.find(|(_, other)| collide(other, &binding, lab.hosts.as_ref()))
        {
            let message = format!("{other:?} and {name:?} set the same thing");
            reading
                .error(factor.name.span(), message)
                .with_help(format!(
                    "see their bindings in {}",
                    lab.source.path.display()
                ));
        }
        bindings.insert(name.clone(), binding);
    }
    bindings
}

/// The lab that an experiment names.
fn own_lab(file: &ExperimentFile) -> Option<PathBuf> {
    let lab = file.lab.as_ref()?;
    Some(beside(&file.source.path, lab.get_ref()))
}

fn binding(
    reading: &mut Reading<'_>,
    factor: &FactorEntry,
    mechanism: &Mechanism,
    lab: &LabFile,
    read: Read<'_>,
) -> Binding {
    match mechanism {
        Mechanism::Sysctl(key, values) => Binding::Sysctl {
            key: key.get_ref().clone(),
            values: bound_values(reading, factor, lab, values.as_ref(), "a sysctl"),
        },
        Mechanism::Nft(files) => {
            let files = bound_levels(reading, factor, lab, files);
            let texts = files.into_iter().map(|(level, file)| {
                let text = ruleset(file, lab, read, reading.diagnostics);
                (level, text.unwrap_or_default())
            });
            Binding::Nft(texts.collect())
        }
        Mechanism::Ruleset(filter, files) => {
            let files = bound_levels(reading, factor, lab, files);
            let texts = files.into_iter().map(|(level, file)| {
                let text = ruleset(file, lab, read, reading.diagnostics);
                (level, text.unwrap_or_default())
            });
            Binding::Ruleset {
                filter: *filter,
                texts: texts.collect(),
            }
        }
        Mechanism::Configs(folders) => {
            let folders = bound_levels(reading, factor, lab, folders);
            let folders = folders.into_iter().filter_map(|(level, folder)| {
                let upload = upload(folder, lab, read, reading.diagnostics)?;
                Some((level, upload))
            });
            Binding::Configs(folders.collect())
        }
        Mechanism::Image(files) => {
            let files = bound_levels(reading, factor, lab, files);
            let images = files
                .into_iter()
                .map(|(level, file)| (level, image(file, lab, read, reading.diagnostics)));
            Binding::Image(images.collect())
        }
        Mechanism::Xdp(programs) => {
            let programs = bound_levels(reading, factor, lab, programs);
            let programs = programs
                .into_iter()
                .map(|(level, program)| (level, *program));
            Binding::Xdp(programs.collect())
        }
        Mechanism::Ethtool(feature, interfaces) => {
            for level in &factor.levels {
                if !matches!(level.get_ref(), Level::Boolean(_)) {
                    reading
                        .error(level.span(), "a feature of an interface is on or off")
                        .with_help("write true or false");
                }
            }
            Binding::Ethtool {
                feature: feature.clone(),
                interfaces: interfaces.clone(),
            }
        }
        Mechanism::Sysfs(file, interfaces, values) => Binding::Sysfs {
            file: file.clone(),
            interfaces: interfaces.clone(),
            values: bound_values(reading, factor, lab, values.as_ref(), "a file in sysfs"),
        },
        Mechanism::Routes => {
            for level in &factor.levels {
                let is_count = match level.get_ref() {
                    Level::Integer(count) => ROUTES.contains(count),
                    Level::Boolean(_) | Level::Text(_) => false,
                };
                if !is_count {
                    reading
                        .error(level.span(), "this is not a number of routes")
                        .with_help(format!(
                            "write a whole number from {} to {}",
                            ROUTES.start(),
                            ROUTES.end()
                        ));
                }
            }
            Binding::Routes
        }
        Mechanism::Command(command) => {
            if let Apply::ByLevel(programs) = &command.apply {
                bound_levels(reading, factor, lab, programs);
            }
            Binding::Command(command.clone())
        }
        Mechanism::Knob(knob) => {
            for level in &factor.levels {
                if knob.number(level.get_ref()).is_none() {
                    let wrong = written(level.get_ref());
                    let message = format!("the knob {} has no level {wrong}", knob.name());
                    reading
                        .error(level.span(), message)
                        .with_help(format!("it can be {}", knob.levels()));
                }
            }
            Binding::Knob { knob: *knob }
        }
        Mechanism::Loader(tunable, values) => Binding::Loader {
            tunable: tunable.clone(),
            values: bound_values(reading, factor, lab, values.as_ref(), "a loader tunable"),
        },
        Mechanism::Module(module, parameter, values) => Binding::Module {
            module: module.clone(),
            parameter: parameter.clone(),
            values: bound_values(
                reading,
                factor,
                lab,
                values.as_ref(),
                "a module's parameter",
            ),
        },
        Mechanism::CommandLine(parameters) => {
            let parameters = bound_levels(reading, factor, lab, parameters);
            let parameters = parameters
                .into_iter()
                .map(|(level, parameters)| (level, parameters.clone()));
            Binding::CommandLine(parameters.collect())
        }
        Mechanism::Kernel(kernels) => {
            let kernels = bound_levels(reading, factor, lab, kernels);
            let kernels = kernels
                .into_iter()
                .map(|(level, kernel)| (level, kernel.clone()));
            Binding::Kernel(kernels.collect())
        }
    }
}

/// Whether setting one factor would undo the other.
fn collide(one: &Binding, other: &Binding, hosts: Option<&Hosts>) -> bool {
    let overlap = |one: &[DutInterface], other: &[DutInterface]| {
        one.iter().any(|interface| other.contains(interface))
    };
    if let (Some(one), Some(other)) = (kernel_variable(one), kernel_variable(other)) {
        let others = names(other, hosts);
        return names(one, hosts).iter().any(|one| others.contains(one));
    }
    match (one, other) {
        (Binding::Knob { knob: one }, Binding::Knob { knob: other }) => one == other,
        (Binding::Xdp(_), Binding::Xdp(_))
        | (Binding::Routes, Binding::Routes)
        // An image brings its kernel.
        | (
            Binding::Kernel(_) | Binding::Image(_),
            Binding::Kernel(_) | Binding::Image(_),
        )
        | (Binding::Configs(_), Binding::Configs(_)) => true,
        (
            Binding::Module {
                module: of_one,
                parameter: one,
                ..
            },
            Binding::Module {
                module: of_other,
                parameter: other,
                ..
            },
        ) => of_one == of_other && one == other,
        (
            Binding::Ethtool {
                feature: one,
                interfaces: on_one,
            },
            Binding::Ethtool {
                feature: other,
                interfaces: on_other,
            },
        )
        | (
            Binding::Sysfs {
                file: one,
                interfaces: on_one,
                ..
            },
            Binding::Sysfs {
                file: other,
                interfaces: on_other,
                ..
            },
        ) => one == other && overlap(on_one, on_other),
        _ => false,
    }
}

/// The name under which a kernel knows what a binding sets: a tunable is a sysctl once it has booted.
fn kernel_variable(binding: &Binding) -> Option<&str> {
    match binding {
        Binding::Sysctl { key, .. } => Some(key),
        Binding::Loader { tunable, .. } => Some(tunable),
        _ => None,
    }
}

/// What a kernel's variable is called on the DUT: one name for each device or interface that it stands for.
fn names(variable: &str, hosts: Option<&Hosts>) -> Vec<String> {
    let Some(hosts) = hosts else {
        return devices(variable);
    };
    let mut name = variable.to_owned();
    for (word, interface) in INTERFACES {
        name = name.replace(&format!("{{{word}}}"), hosts.dut.interface(*interface));
    }
    vec![name]
}

/// The value of each level: what the lab says, or the level itself, which then is no truth value.
fn bound_values(
    reading: &mut Reading<'_>,
    factor: &FactorEntry,
    lab: &LabFile,
    values: Option<&BTreeMap<String, String>>,
    what: &str,
) -> Values {
    if let Some(values) = values {
        let bound = bound_levels(reading, factor, lab, values);
        let bound = bound
            .into_iter()
            .map(|(level, value)| (level, value.clone()));
        return Values(bound.collect());
    }
    for level in &factor.levels {
        if matches!(level.get_ref(), Level::Boolean(_)) {
            reading
                .error(
                    level.span(),
                    format!("{what} has no level `true` or `false`"),
                )
                .with_help("write 0 or 1, or give the lab file `values`");
        }
    }
    Values::default()
}

/// What each level of a factor means to its mechanism.
fn bound_levels<'m, T>(
    reading: &mut Reading<'_>,
    factor: &FactorEntry,
    lab: &LabFile,
    meanings: &'m BTreeMap<String, T>,
) -> BTreeMap<String, &'m T> {
    let mut bound = BTreeMap::new();
    for level in &factor.levels {
        let text = level.get_ref().to_string();
        if let Some(meaning) = meanings.get(&text) {
            bound.insert(text, meaning);
            continue;
        }
        let names = || meanings.keys().map(String::as_str);
        let message = format!(
            "level {text:?} of {:?} is not bound in {}",
            factor.name.get_ref(),
            lab.source.path.display()
        );
        let suggestion = reading.nearest(&text, names());
        let diagnostic = reading.error(level.span(), message);
        suggest(diagnostic, suggestion);
        diagnostic.with_help(format!("bound there: {}", list(names())));
    }
    bound
}

/// What is brought to the DUT.
fn upload(
    named: &Spanned<String>,
    lab: &LabFile,
    read: Read<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Upload> {
    let found = beside(&lab.source.path, named.get_ref());
    let place = Some((&lab.source, named.span()));
    let sha256 = read_or_said(&found, read.sha256(&found), place, diagnostics)?;
    Some(Upload {
        path: named.get_ref().clone(),
        sha256,
        found,
    })
}

/// An image, for which something on the DUT has to give way.
fn image(
    file: &Spanned<String>,
    lab: &LabFile,
    read: Read<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Upload> {
    if file.get_ref().is_empty() {
        return None;
    }
    let is_allowed = |hosts: &Hosts| hosts.dut.overwrite_other_slice;
    if !lab.hosts.as_ref().is_none_or(is_allowed) {
        let message = "an image takes the place of what is on the DUT's other slice, for good";
        diagnostics
            .error(Some((&lab.source, file.span())), message)
            .with_help("where that may be lost, write overwrite_other_slice = true into [dut]");
    }
    upload(file, lab, read, diagnostics)
}

/// The first line, from 1, of a ruleset on which nft's word `include` stands, wherever a statement may begin: outside
/// of quotes and comments.
fn line_that_includes(ruleset: &str) -> Option<usize> {
    let is_of_word = |character: char| character.is_alphanumeric() || "_-./".contains(character);
    let includes = |line: &str| {
        line.split(|character| !is_of_word(character))
            .any(|word| word == "include")
    };
    let mut line = 1;
    for (number, piece) in placeholder::without_comments(ruleset)
        .split('"')
        .enumerate()
    {
        let is_quoted = number % 2 == 1;
        if !is_quoted && let Some(behind) = piece.split('\n').position(includes) {
            return Some(line + behind);
        }
        line += piece.matches('\n').count();
    }
    None
}

/// The text of a ruleset's file, which is all of the ruleset.
fn ruleset(
    file: &Spanned<String>,
    lab: &LabFile,
    read: Read<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<String> {
    if file.get_ref().is_empty() {
        return Some(String::new());
    }
    let path = beside(&lab.source.path, file.get_ref());
    let place = || Some((&lab.source, file.span()));
    let source = open(&path, read, place(), diagnostics)?;
    if let Some(line) = line_that_includes(&source.text) {
        let message = format!("{}:{line}: includes another file", path.display());
        diagnostics
            .error(place(), message)
            .with_help("what an include brings would not be in the record; write it into the file");
    }
    let rules = placeholder::without_comments(&source.text);
    for span in placeholder::unknown(&rules, placeholder::OF_INTERFACES) {
        let written = &rules[span.clone()];
        let diagnostic = diagnostics.error(
            Some((&source, span)),
            format!("unknown placeholder {written}"),
        );
        placeholder::explain(diagnostic, written, placeholder::OF_INTERFACES);
    }
    Some(source.text.clone())
}

#[cfg(test)]
mod tests {
    use super::line_that_includes;

    #[test]
    fn an_include_is_found_wherever_a_statement_may_begin() {
        for (ruleset, line) in [
            ("include \"a.nft\"\n", 1),
            ("table inet f {\n\tinclude \"a.nft\"\n}\n", 2),
            ("table inet f { include \"a.nft\" }", 1),
            ("define x = 1; include\t'a.nft'", 1),
            ("udp dport 1 drop;include\"a.nft\"", 1),
            ("# one\n\n\"\n\" include", 4),
            ("comment \"a\n#b\"; include \"a.nft\"", 2),
            ("include", 1),
        ] {
            assert_eq!(line_that_includes(ruleset), Some(line), "{ruleset:?}");
        }
    }

    #[test]
    fn what_only_reads_like_an_include_is_none() {
        for ruleset in [
            "",
            "# include \"a.nft\"\n",
            "udp dport 1 drop comment \"include nothing\"\n",
            "chain include_all { }\nchain not-include { }\nchain includes { }\n",
        ] {
            assert_eq!(line_that_includes(ruleset), None, "{ruleset:?}");
        }
    }
}
