//! One change and what it is measured under, as the text of an experiment and of a binding: what `fwdlab ab` writes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use toml::de::DeTable;

use crate::load::Load;
use crate::mechanism::{Levels, MECHANISMS, described};
use crate::placeholder::LEVEL;
use crate::toml_text::quoted;
use crate::traffic::{FLOWS_MAX, IMIX_WORD, LoadChoice, imix};
use crate::traffic_text::FrameSizes;
use crate::words::{AddressFamily, Level, safe_name};
use crate::zipf::Zipf;

/// The word for no ruleset, no program and no image.
const NONE: &str = "none";
/// What else is read as that word: the one that XDP has, and what a lab file has.
const ALSO_NONE: [&str; 2] = ["off", ""];
/// The DUT's interfaces.
const INTERFACES: [&str; 2] = ["dut-in", "dut-out"];
/// Sources of the flows at most, as an experiment has by itself.
const SOURCES_MAX: u32 = 20;

/// A mechanism as an option of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeOption {
    /// Its name, as in a lab file.
    pub mechanism: &'static str,
    /// What each of its words is.
    pub word: &'static str,
    /// What it sets, in a few words.
    pub what: &'static str,
}

/// Every mechanism whose levels are words, as an option of a command line.
pub fn change_options() -> impl Iterator<Item = ChangeOption> {
    MECHANISMS.iter().filter_map(|mechanism| {
        let word = match mechanism.levels {
            Levels::Values | Levels::ValuesOf(_) => "NAME=VALUE",
            Levels::SwitchOf(_) => "NAME=on|off",
            Levels::Files => "FILE",
            Levels::FilesOr(_) => "FILE|WORD",
            Levels::Words => "WORD",
            Levels::Numbers => "NUMBER",
            Levels::Programs => "COMMAND",
            Levels::Tables => return None,
        };
        Some(ChangeOption {
            mechanism: mechanism.key,
            word,
            what: mechanism.what,
        })
    })
}

/// What of a command line cannot be made into an experiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// A word without a name or without a value.
    #[error("--{mechanism}: {word:?} is not NAME=VALUE")]
    NoValue {
        /// The mechanism.
        mechanism: &'static str,
        /// What was given.
        word: String,
    },
    /// Two names.
    #[error(
        "--{mechanism}: {one:?} and {other:?} are two different settings; give one of them with its values, or write \
         an experiment \
         with two factors (docs/experiment-file.md)"
    )]
    TwoNames {
        /// The mechanism.
        mechanism: &'static str,
        /// The first name.
        one: String,
        /// Another one.
        other: String,
    },
    /// A state that is neither on nor off.
    #[error("--{mechanism}: {state:?} is neither on nor off")]
    NoState {
        /// The mechanism.
        mechanism: &'static str,
        /// What was given.
        state: String,
    },
    /// Not a number.
    #[error("--{mechanism}: {word:?} is not a whole number")]
    NoNumber {
        /// The mechanism.
        mechanism: &'static str,
        /// What was given.
        word: String,
    },
    /// Two levels that are one.
    #[error("--{mechanism}: {word:?} is given twice; give variants that differ")]
    Twice {
        /// The mechanism.
        mechanism: &'static str,
        /// What was given.
        word: String,
    },
    /// Programs without one that takes the level back, or that of another mechanism.
    #[error("--command and --undo must be given together: fwdlab undoes what it changes")]
    Undo,
    /// A check that no text can pass.
    #[error(
        "--check: {whole:?} has no word that the other commands lack, so the check has nothing to look for; leave \
         --check out"
    )]
    NothingToFind {
        /// The shorter command.
        whole: String,
    },
}

/// One level of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    /// Its variant's name for readers.
    label: String,
    level: Level,
    /// What the mechanism makes of the level, as TOML; none where that is the level itself.
    meaning: Option<String>,
}

impl Side {
    /// That of a word which the mechanism knows.
    fn of_word(mechanism: &str, word: &str) -> Self {
        Self {
            label: format!("{mechanism} {word}"),
            level: Level::Text(word.to_owned()),
            meaning: Some(quoted(word)),
        }
    }
}

/// A program with its arguments, and the text that they were split from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandText {
    /// As it was given.
    pub text: String,
    /// Its words.
    pub words: Vec<String>,
}

/// What is compared: one factor with two levels or more, the first one the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    mechanism: &'static str,
    /// The factor's name.
    factor: String,
    sides: Vec<Side>,
    /// What follows the mechanism's key in the binding, but for a table of the sides' meanings.
    binding: Option<String>,
}

impl Change {
    /// A change by any mechanism but `command`, of the words that were given for it.
    ///
    /// Shape: two words or more. `file` makes the path of a file one that is relative to the lab file.
    ///
    /// # Errors
    /// Words that do not fit the mechanism, or each other.
    pub fn of_words(
        mechanism: &'static str,
        words: &[String],
        file: impl Fn(&str) -> String,
    ) -> Result<Self, ChangeError> {
        let levels = described(mechanism).map_or(Levels::Values, |described| described.levels);
        let mut factor = mechanism.to_owned();
        let mut binding = None;
        let mut sides = Vec::new();
        match levels {
            Levels::Values | Levels::ValuesOf(_) | Levels::SwitchOf(_) => {
                let mut names = Vec::new();
                for word in words {
                    let (name, value) = word
                        .split_once('=')
                        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
                        .ok_or_else(|| ChangeError::NoValue {
                            mechanism,
                            word: word.clone(),
                        })?;
                    names.push(name);
                    let level = match levels {
                        Levels::SwitchOf(_) => Level::Boolean(state(mechanism, value)?),
                        _ => value_level(value),
                    };
                    sides.push(Side {
                        label: word.clone(),
                        level,
                        meaning: None,
                    });
                }
                if let Some(other) = names.iter().find(|name| **name != names[0]) {
                    return Err(ChangeError::TwoNames {
                        mechanism,
                        one: names[0].to_owned(),
                        other: (*other).to_owned(),
                    });
                }
                names[0].clone_into(&mut factor);
                binding = Some(match levels {
                    Levels::ValuesOf(key) | Levels::SwitchOf(key) => {
                        let (interfaces, name) = of_interface(names[0]);
                        format!("{{ {key} = {}{interfaces} }}", quoted(name))
                    }
                    _ => quoted(names[0]),
                });
            }
            Levels::Files | Levels::FilesOr(_) => {
                for (word, label) in words.iter().zip(file_labels(words)) {
                    let own = match levels {
                        Levels::FilesOr(own) => own,
                        _ => &[],
                    };
                    let is_none = word == NONE || ALSO_NONE.contains(&word.as_str());
                    if let Some((none, _)) = own.split_first().filter(|_| is_none) {
                        sides.push(Side::of_word(mechanism, none));
                        continue;
                    }
                    if own.contains(&word.as_str()) {
                        sides.push(Side::of_word(mechanism, word));
                        continue;
                    }
                    let (label, path) = if is_none {
                        (NONE.to_owned(), String::new())
                    } else {
                        (label, file(word))
                    };
                    sides.push(Side {
                        level: Level::Text(label.clone()),
                        label,
                        meaning: Some(quoted(&path)),
                    });
                }
            }
            Levels::Words => {
                for word in words {
                    sides.push(Side::of_word(mechanism, word));
                }
            }
            Levels::Numbers | Levels::Programs | Levels::Tables => {
                for word in words {
                    let number = word.parse().map_err(|_| ChangeError::NoNumber {
                        mechanism,
                        word: word.clone(),
                    })?;
                    sides.push(Side {
                        label: format!("{number} {mechanism}"),
                        level: Level::Integer(number),
                        meaning: None,
                    });
                }
                binding = Some("true".to_owned());
            }
        }
        Self {
            mechanism,
            factor,
            sides,
            binding,
        }
        .checked()
    }

    /// A change by programs, each of which sets one variant.
    ///
    /// A level is what tells its command from the others: the words between those that all begin with and those
    /// that all end in.
    ///
    /// Shape: two commands or more; none is without words.
    ///
    /// # Errors
    /// [`ChangeError::Undo`], [`ChangeError::Twice`] and [`ChangeError::NothingToFind`].
    pub fn of_commands(
        commands: &[CommandText],
        undo: Option<&CommandText>,
        check: Option<&CommandText>,
    ) -> Result<Self, ChangeError> {
        let undo = undo.ok_or(ChangeError::Undo)?;
        let (same, same_behind) = common(commands);
        let own =
            |command: &CommandText| command.words[same..command.words.len() - same_behind].to_vec();
        let nothing_own = commands.iter().find(|command| own(command).is_empty());
        if let (Some(command), Some(_)) = (nothing_own, check) {
            return Err(ChangeError::NothingToFind {
                whole: command.text.clone(),
            });
        }
        // A level takes its place after the interfaces have: in a level, a placeholder would stay one.
        let is_level = |words: &[String]| matches!(words, [word] if !word.contains('{'));
        let is_one_word = same > 0 && commands.iter().all(|command| is_level(&own(command)));
        let list = |words: &[String]| {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            format!("[{}]", words.join(", "))
        };
        let factor = commands[0].words[0].clone();
        let mut sides = Vec::new();
        for command in commands {
            let level = match nothing_own {
                Some(_) => command.text.clone(),
                None => own(command).join(" "),
            };
            sides.push(Side {
                label: match nothing_own {
                    Some(_) => level.clone(),
                    None => format!("{factor} {level}"),
                },
                level: Level::Text(level),
                meaning: (!is_one_word).then(|| list(&command.words)),
            });
        }
        let apply = if is_one_word {
            let mut words = commands[0].words.clone();
            LEVEL.clone_into(&mut words[same]);
            list(&words)
        } else {
            table(&sides)
        };
        let check = check.map_or_else(String::new, |check| {
            format!(", check = {}", list(&check.words))
        });
        let undo = list(&undo.words);
        Self {
            mechanism: "command",
            factor,
            sides,
            binding: Some(format!("{{ do = {apply}, undo = {undo}{check} }}")),
        }
        .checked()
    }

    /// Refuses levels that read the same, and those that are the same file or command.
    fn checked(self) -> Result<Self, ChangeError> {
        let (mut seen, mut meant) = (BTreeSet::new(), BTreeSet::new());
        for side in &self.sides {
            let is_meant_twice = side.meaning.iter().any(|meaning| !meant.insert(meaning));
            if is_meant_twice || !seen.insert(side.level.to_string()) {
                return Err(ChangeError::Twice {
                    mechanism: self.mechanism,
                    word: side.label.clone(),
                });
            }
        }
        Ok(self)
    }

    /// A name for the experiment: what is changed, and to what.
    #[must_use]
    pub fn name(&self) -> String {
        let levels: Vec<String> = self
            .sides
            .iter()
            .map(|side| match side.level {
                Level::Boolean(true) => "on".to_owned(),
                Level::Boolean(false) => "off".to_owned(),
                _ => side.level.to_string(),
            })
            .collect();
        let text = format!("{} {}", self.factor, levels.join(" "));
        safe_name(&text).unwrap_or_else(|| self.mechanism.to_owned())
    }

    /// Variants that are compared with the baseline.
    #[must_use]
    pub fn compared(&self) -> usize {
        self.sides.len() - 1
    }

    /// The lab file: that of a lab with the change's binding behind it.
    ///
    /// The factor gets another name where the lab binds one of its name.
    #[must_use]
    pub fn lab_text(&mut self, lab: &str) -> String {
        let document = DeTable::parse(lab).ok();
        let bound = document
            .as_ref()
            .and_then(|document| document.get_ref().get("bind")?.get_ref().as_table());
        let is_bound = |name: &str| bound.is_some_and(|bound| bound.contains_key(name));
        let name = self.factor.clone();
        let mut number = 1;
        while is_bound(&self.factor) {
            number += 1;
            self.factor = format!("{name} ({number})");
        }
        let meanings = || table(&self.sides);
        format!(
            "{}\n\n[bind.{}]\n{} = {}\n",
            lab.trim_end(),
            quoted(&self.factor),
            self.mechanism,
            self.binding.clone().unwrap_or_else(meanings)
        )
    }

    /// The experiment file, for a lab file relative to it.
    #[must_use]
    pub fn experiment_text(&self, lab: &str, conditions: &Conditions) -> String {
        let factor = quoted(&self.factor);
        let labels: Vec<&str> = self.sides.iter().map(|side| side.label.as_str()).collect();
        let protocols: Vec<&str> = conditions
            .families
            .iter()
            .map(|family| family.protocol())
            .collect();
        let question = format!(
            "Effect of replacing {} with {} on {} forwarding",
            labels[0],
            labels[1..].join(" or "),
            protocols.join(" and ")
        );
        let levels: Vec<String> = self.sides.iter().map(|side| level(&side.level)).collect();
        let mut text = String::new();
        text += "# Made by `fwdlab ab`; what else may be said here: docs/experiment-file.md.\n";
        let _ = writeln!(text, "question = {}", quoted(&question));
        let _ = writeln!(text, "lab = {}\n", quoted(lab));
        let _ = writeln!(
            text,
            "[[factor]]\nname = {factor}\nlevels = [{}]",
            levels.join(", ")
        );
        for (number, (side, level)) in self.sides.iter().zip(&levels).enumerate() {
            let _ = writeln!(text, "\n[[variant]]\nlabel = {}", quoted(&side.label));
            // The first level is the default.
            if number > 0 {
                let _ = writeln!(text, "levels = {{ {factor} = {level} }}");
            }
        }
        text.push('\n');
        text += &conditions.text();
        text
    }
}

/// The end of the binding's table, and the name alone, where it is that of one interface: `dut-in:threaded`.
fn of_interface(name: &str) -> (String, &str) {
    let interface = name
        .split_once(':')
        .filter(|(interface, name)| INTERFACES.contains(interface) && !name.is_empty());
    match interface {
        Some((interface, name)) => (format!(", interfaces = [{}]", quoted(interface)), name),
        None => (String::new(), name),
    }
}

/// What is measured under, and how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// Address families, one or both.
    pub families: Vec<AddressFamily>,
    /// The frames' sizes.
    pub frame_sizes: FrameSizes,
    /// How many flows, of which [`flows`] has made sources and destinations; each number is a traffic of its own.
    pub flows: Vec<(u32, u32)>,
    /// How heavy flows are, where they are not sent in turn.
    pub zipf: Option<Zipf>,
    /// The VLAN whose tag every frame has.
    pub vlan: Option<u16>,
    /// What is asked of the generator.
    pub load: LoadChoice,
    /// Blocks.
    pub blocks: u32,
    /// Rounds a block.
    pub rounds: u32,
}

impl Conditions {
    fn text(&self) -> String {
        let families: Vec<String> = self
            .families
            .iter()
            .map(|family| quoted(family.as_str()))
            .collect();
        let load = match self.load {
            LoadChoice::Lab => "\"lab\"".to_owned(),
            LoadChoice::Load(Load::Paced { pps }) => format!("{{ pps = {pps} }}"),
            LoadChoice::Load(load) => quoted(&load.regime().to_string()),
            LoadChoice::LineRatePercent(percent) => format!("{{ line_rate_percent = {percent} }}"),
        };
        let families = families.join(", ");
        let frame_size = sizes_text(&self.frame_sizes);
        let zipf = self.zipf.map(|zipf| format!("zipf = {zipf}\n"));
        let zipf = zipf.unwrap_or_default();
        let vlan = self.vlan.map(|vlan| format!("vlan = {vlan}\n"));
        let vlan = vlan.unwrap_or_default();
        let traffics = self.flows.iter().map(|(sources, destinations)| {
            let header = match self.flows.len() {
                1 => "[traffic]".to_owned(),
                _ => format!("[[traffic]]\nname = \"flows-{}\"", sources * destinations),
            };
            format!(
                "{header}\nfamilies = [{families}]\nframe_size = {frame_size}\nsources = {sources}\ndestinations = \
                 {destinations}\n{zipf}{vlan}load = {load}\n\n"
            )
        });
        format!(
            "{}[design]\nblocks = {}\nrounds = {}\n\n[profile]\nevery = \"block\"\n",
            traffics.collect::<String>(),
            self.blocks,
            self.rounds
        )
    }
}

/// Sources and destinations of so many flows; none where there are none or too many.
#[must_use]
pub fn flows(flows: u32) -> Option<(u32, u32)> {
    if !(1..=FLOWS_MAX).contains(&flows) {
        return None;
    }
    let sources = (1..=SOURCES_MAX)
        .rev()
        .find(|sources| flows.is_multiple_of(*sources))?;
    Some((sources, flows / sources))
}

fn sizes_text(sizes: &FrameSizes) -> String {
    match sizes.0.as_slice() {
        [size] => size.bytes.to_string(),
        several if several == imix() => quoted(IMIX_WORD),
        several => {
            let sizes: Vec<String> = several
                .iter()
                .map(|size| format!("{{ bytes = {}, share = {} }}", size.bytes, size.share))
                .collect();
            format!("[{}]", sizes.join(", "))
        }
    }
}

/// A level as TOML.
fn level(level: &Level) -> String {
    match level {
        Level::Text(text) => quoted(text),
        Level::Boolean(_) | Level::Integer(_) => level.to_string(),
    }
}

/// What each level means, as a table of one line.
fn table(sides: &[Side]) -> String {
    let entries: Vec<String> = sides
        .iter()
        .map(|side| {
            let level = side.level.to_string();
            let meaning = side.meaning.clone().unwrap_or_else(|| quoted(&level));
            format!("{} = {meaning}", quoted(&level))
        })
        .collect();
    format!("{{ {} }}", entries.join(", "))
}

/// A value as a level: a whole number where it is written as one.
fn value_level(value: &str) -> Level {
    match value.parse::<i64>() {
        Ok(number) if number.to_string() == value => Level::Integer(number),
        _ => Level::Text(value.to_owned()),
    }
}

fn state(mechanism: &'static str, word: &str) -> Result<bool, ChangeError> {
    match word {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(ChangeError::NoState {
            mechanism,
            state: word.to_owned(),
        }),
    }
}

/// Names of files, or the whole paths where two files share theirs.
fn file_labels(paths: &[String]) -> Vec<String> {
    let name = |path: &String| {
        let name = path.trim_end_matches('/').rsplit('/').next();
        name.unwrap_or(path).to_owned()
    };
    let names: Vec<String> = paths.iter().map(name).collect();
    let different: BTreeSet<&String> = names.iter().collect();
    if different.len() == names.len() {
        names
    } else {
        paths.to_vec()
    }
}

/// How many words all commands begin with, and how many of the others all end in.
fn common(commands: &[CommandText]) -> (usize, usize) {
    let shortest = commands
        .iter()
        .map(|command| command.words.len())
        .min()
        .unwrap_or(0);
    let first = &commands[0].words;
    let is_same = |at: &usize| {
        commands
            .iter()
            .all(|command| command.words[*at] == first[*at])
    };
    let same = (0..shortest).take_while(is_same).count();
    let from_behind = |words: &[String], at: usize| words[words.len() - 1 - at].clone();
    let is_same = |at: &usize| {
        let last = from_behind(first, *at);
        commands
            .iter()
            .all(|command| from_behind(&command.words, *at) == last)
    };
    let behind = (0..shortest - same).take_while(is_same).count();
    (same, behind)
}
