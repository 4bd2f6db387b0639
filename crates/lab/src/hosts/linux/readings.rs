//! What tells whether a Linux DUT is as a variant asks: commands that read, and how their answers are held against the
//! levels.

use fwdlab_model::{Binding, DutHost, Level};

use super::set_up::{cat, feature_of, features_of, sysctl_path, sysfs_path};
use crate::dut::{holds, is_same};
use crate::hosts::dut::{Answers, on_or_off, said};

/// A setting that can be read back.
pub(super) struct Reading {
    pub(super) setting: String,
    pub(super) question: Vec<String>,
    pub(super) asked: String,
    pub(super) form: Form,
}

/// How an answer is read.
pub(super) enum Form {
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
    /// The number of an interface's XDP program is, as `ip` shows it.
    Program,
}

impl Reading {
    /// What is not as asked; none where it is. A command that fails has answered nothing.
    pub(super) fn moved(&self, answers: &Answers) -> Option<String> {
        let answer = answers.get(&self.question).unwrap_or_default();
        let (seen, is_as_asked) = match &self.form {
            Form::Holds => (answer.to_owned(), holds(answer, &self.asked)),
            Form::TextOrMask => (answer.to_owned(), is_same(&self.asked, answer)),
            form => {
                let seen = form.seen(answer);
                let asked = match form {
                    Form::Truth => as_shown(&self.asked),
                    _ => self.asked.clone(),
                };
                let is_same = seen.split_whitespace().eq(asked.split_whitespace());
                (seen, is_same)
            }
        };
        (!is_as_asked).then(|| said(&self.setting, &self.asked, &seen))
    }
}

impl Form {
    fn seen(&self, answer: &str) -> String {
        match self {
            Self::Words | Self::TextOrMask | Self::Holds => answer.to_owned(),
            Self::Truth => as_shown(answer),
            Self::Program => number(program_of(answer)),
            Self::Feature(name) => {
                let value = feature_of(answer, name).unwrap_or_default();
                let word = value.split(' ').next();
                word.unwrap_or_default().to_owned()
            }
        }
    }
}

/// What reads a level back that has a command of its own for that.
pub(super) fn readings_of(
    of: &DutHost,
    factor: &str,
    binding: &Binding,
    level: &Level,
) -> Vec<Reading> {
    let file = |path: String, asked, form| Reading {
        question: cat(&path),
        setting: path,
        asked,
        form,
    };
    match binding {
        Binding::Sysctl { key, values } => {
            vec![file(sysctl_path(of, key), values.value(level), Form::Words)]
        }
        Binding::Sysfs {
            file: below,
            interfaces,
            values,
        } => {
            let paths = interfaces.iter();
            let paths = paths.map(|&interface| sysfs_path(of, interface, below));
            paths
                .map(|path| file(path, values.value(level), Form::TextOrMask))
                .collect()
        }
        Binding::Ethtool {
            feature,
            interfaces,
        } => {
            let names = interfaces.iter().map(|&interface| of.interface(interface));
            names
                .map(|name| Reading {
                    setting: format!("{feature} of {name}"),
                    question: features_of(name),
                    asked: on_or_off(level).to_owned(),
                    form: Form::Feature(feature.clone()),
                })
                .collect()
        }
        Binding::Module {
            module,
            parameter,
            values,
        } => {
            let path = format!("/sys/module/{module}/parameters/{parameter}");
            vec![file(path, values.value(level), Form::Truth)]
        }
        Binding::Command(programs) => {
            let check = programs.check(level).into_iter();
            check
                .map(|question| Reading {
                    setting: format!("factor {factor:?}"),
                    question,
                    asked: level.to_string(),
                    form: Form::Holds,
                })
                .collect()
        }
        // Read with all factors together, or when it had booted.
        _ => Vec::new(),
    }
}

/// What reads back the XDP program of a port.
pub(super) fn program_reading(interface: &str, asked: Option<u32>) -> Reading {
    Reading {
        setting: format!("the XDP program of {interface}"),
        question: link_of(interface),
        asked: number(asked),
        form: Form::Program,
    }
}

/// What shows an interface with its XDP program.
pub(super) fn link_of(interface: &str) -> Vec<String> {
    let words = ["ip", "-o", "-d", "link", "show", "dev", interface];
    words.map(str::to_owned).to_vec()
}

fn number(of_program: Option<u32>) -> String {
    of_program.map_or("none".to_owned(), |id| id.to_string())
}

/// The number of an interface's XDP program, as `ip -d link` shows it.
fn program_of(link: &str) -> Option<u32> {
    let (_, behind) = link.split_once("prog/xdp")?;
    let mut words = behind.split_whitespace();
    words.find(|word| *word == "id")?;
    words.next()?.parse().ok()
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
    fn the_number_of_a_program_is_read() {
        let link = "3: eth1@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 xdp qdisc noqueue state UP qlen 1000\\    \
                    link/ether 02:00:00:00:01:02 brd ff:ff:ff:ff:ff:ff link-netnsid 0 \\    prog/xdp id 34 name forward \
                    tag 3b185187f1855c4c jited ";
        assert_eq!(program_of(link), Some(34));
        for without in [
            "3: eth1: <UP> mtu 1500 qdisc mq",
            "",
            "prog/xdp",
            "prog/xdp id",
        ] {
            assert_eq!(program_of(without), None, "{without}");
        }
    }

    #[test]
    fn answers_are_held_against_what_was_asked_for() {
        let features =
            "Features for eth1:\n\trx-gro-list: off [fixed]\ngeneric-receive-offload: on";
        let link = "prog/xdp id 34 name forward";
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
            (Form::Program, "34", link, true),
            (Form::Program, "none", "", true),
            (Form::Program, "none", link, false),
        ] {
            let reading = Reading {
                setting: "a setting".into(),
                question: vec!["cat".into()],
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
