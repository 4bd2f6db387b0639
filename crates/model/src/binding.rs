//! How a factor is set on the DUT, as a record has it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::forwarder::Forwarder;
use crate::knob::Knob;
use crate::placeholder::{LEVEL, fill, fill_words, of_interfaces};
use crate::words::Level;

/// How a factor is set on the DUT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// A sysctl, set to the level's value.
    Sysctl {
        /// Its name, as the lab file has it. Of this machine's kernel: a key under `net.`, in which
        /// `{dut-in}` and `{dut-out}` stand for the DUT's interfaces. Of FreeBSD: any, in which
        /// `{0,1}` stands for several devices.
        key: String,
        /// The value of each level.
        values: Values,
        /// As what a value reads back that the kernel rounds, clamps or masks; as it was written where this says nothing.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        reads_back: BTreeMap<String, String>,
    },
    /// The text of an nftables ruleset for each level, in which `{dut-in}` and `{dut-out}` stand for the DUT's
    /// interfaces; empty text is no ruleset.
    Nft(BTreeMap<String, String>),
    /// The text of a ruleset of one of FreeBSD's packet filters for each level, as of nftables; empty text is none.
    Ruleset {
        /// Which of them.
        filter: PacketFilter,
        /// The texts.
        texts: BTreeMap<String, String>,
    },
    /// The XDP program on the DUT's interfaces for each level.
    Xdp(BTreeMap<String, XdpProgram>),
    /// The tc program on the DUT's interfaces for each level; none is no program.
    Tc(BTreeMap<String, Option<OwnTcProgram>>),
    /// The forwarder in user space for each level; none is the kernel.
    Forwarder(BTreeMap<String, Option<Forwarder>>),
    /// A feature as `ethtool -k` names it, of one of the DUT's interfaces or both; the level is
    /// `true` or `false`.
    Ethtool {
        /// The feature.
        feature: String,
        /// Which interfaces.
        interfaces: Vec<DutInterface>,
    },
    /// A file below `/sys/class/net/<interface>/`, set to the level's value.
    Sysfs {
        /// Path below the interface's directory.
        file: String,
        /// Which interfaces.
        interfaces: Vec<DutInterface>,
        /// The value of each level.
        values: Values,
    },
    /// A parameter of a kernel module, set to the level's value on the kernel's command line at the next boot.
    Module {
        /// The module, as below `/sys/module`.
        module: String,
        /// Its parameter.
        parameter: String,
        /// The value of each level.
        values: Values,
    },
    /// The level is the number of routes in the DUT's table, those of the lab included.
    Routes,
    /// The user's own programs, run on the DUT; `{level}` in an argument stands for the level, `{dut-in}` and `{dut-out}`
    /// for the DUT's interfaces.
    Command(CommandBinding),
    /// A knob of the reference router, set to the level's [number](Knob::number).
    Knob {
        /// The knob.
        knob: Knob,
    },
    /// A tunable of FreeBSD's loader, set to the level's value at the next boot.
    Loader {
        /// Its name; `{0,1}` in it stands for several devices.
        tunable: String,
        /// The value of each level.
        values: Values,
    },
    /// What is added to the kernel's command line for each level, from the next boot on; may be empty.
    CommandLine(BTreeMap<String, String>),
    /// The kernel, by its release on Linux, or the boot environment that is booted for each level.
    Kernel(BTreeMap<String, String>),
    /// The folder of files that are copied to the DUT before it boots, for each level.
    Configs(BTreeMap<String, Upload>),
    /// The image of nanobsd that is written to the DUT's other slice and booted, for each level; none is the
    /// owner's system.
    Image(BTreeMap<String, Option<Upload>>),
}

impl Binding {
    /// Whether another level takes effect only when the DUT boots.
    #[must_use]
    pub const fn needs_reboot(&self) -> bool {
        matches!(
            self,
            Self::Module { .. }
                | Self::Loader { .. }
                | Self::CommandLine(_)
                | Self::Kernel(_)
                | Self::Configs(_)
                | Self::Image(_)
        )
    }

    /// Whether a level is a forwarder in user space.
    #[must_use]
    pub fn has_forwarder(&self) -> bool {
        matches!(self, Self::Forwarder(levels) if levels.values().any(Option::is_some))
    }

    /// The same with the names of the DUT's interfaces in the place of `{dut-in}` and `{dut-out}`, in rulesets and in the
    /// arguments of programs.
    #[must_use]
    pub fn with_interfaces(&self, interface_in: &str, interface_out: &str) -> Self {
        let places = of_interfaces(interface_in, interface_out);
        let named = |texts: &BTreeMap<String, String>| {
            let texts = texts.iter();
            let named = texts.map(|(level, text)| (level.clone(), fill(text, &places)));
            named.collect()
        };
        match self {
            Self::Nft(texts) => Self::Nft(named(texts)),
            Self::Ruleset { filter, texts } => Self::Ruleset {
                filter: *filter,
                texts: named(texts),
            },
            Self::Command(programs) => {
                Self::Command(programs.with_interfaces(interface_in, interface_out))
            }
            other => other.clone(),
        }
    }
}

/// What is brought to the DUT for a level: a folder of files, an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// Its path, as the lab file has it.
    pub path: String,
    /// SHA-256 of all that is in it: what is brought is part of the experiment, and stands in no record.
    pub sha256: String,
    /// Where this machine finds it.
    #[serde(skip)]
    pub found: PathBuf,
}

/// An eBPF program of the owner's, with what is set in its object before the kernel loads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EbpfProgram {
    /// The object file.
    pub object: Upload,
    /// The name of the program's function in it; its only one without.
    pub program: Option<String>,
    /// The values of global variables, by name; the others keep those of the object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub globals: BTreeMap<String, GlobalValue>,
    /// How many entries maps have room for, by the map's name; the others have the room that the object says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_entries: BTreeMap<String, u32>,
    /// The files of maps' contents, by the map's name; the others begin empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub maps: BTreeMap<String, Upload>,
    /// The functions that tail calls go to, by the name of the program array, from its index 0 on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tail_calls: BTreeMap<String, Vec<String>>,
}

/// The value of a global variable of an eBPF object; its size is the variable's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GlobalValue {
    /// A truth value.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Whole numbers of an array, as many as it has.
    Array(Vec<i64>),
}

/// What is written for each level where the level's own text is not it, by that text; empty where
/// the levels are the values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Values(pub BTreeMap<String, String>);

impl Values {
    /// What is written for a level; a truth value is 1 or 0.
    #[must_use]
    pub fn value(&self, level: &Level) -> String {
        self.0
            .get(&level.to_string())
            .cloned()
            .unwrap_or_else(|| match level {
                Level::Boolean(value) => u8::from(*value).to_string(),
                Level::Integer(_) | Level::Text(_) => level.to_string(),
            })
    }
}

/// The packet filters of FreeBSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketFilter {
    /// OpenBSD's.
    Pf,
    /// FreeBSD's own.
    Ipfw,
    /// IP Filter.
    Ipf,
}

/// An interface of the DUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DutInterface {
    /// The one that faces the generator.
    DutIn,
    /// The one that faces the sink.
    DutOut,
}

/// Programs that set a factor, each an argument vector that no shell sees. `{level}` in an argument stands for the level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandBinding {
    /// Sets the level.
    #[serde(rename = "do")]
    pub apply: Apply,
    /// Takes the level back.
    pub undo: Vec<String>,
    /// Prints something that holds the level, where there is such a program.
    pub check: Option<Vec<String>>,
}

/// The program that sets a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Apply {
    /// The same for all levels but for `{level}`.
    Template(Vec<String>),
    /// One for each level.
    ByLevel(BTreeMap<String, Vec<String>>),
}

impl CommandBinding {
    /// The program that sets a level, with its arguments.
    ///
    /// Shape: a level of the factor that is bound; of any other the program is missing.
    #[must_use]
    pub fn apply(&self, level: &Level) -> Vec<String> {
        let level = level.to_string();
        let words = match &self.apply {
            Apply::Template(words) => Some(words),
            Apply::ByLevel(programs) => programs.get(&level),
        };
        words.map_or_else(Vec::new, |words| of_level(words, &level))
    }

    /// The program that takes a level back, with its arguments.
    #[must_use]
    pub fn undo(&self, level: &Level) -> Vec<String> {
        of_level(&self.undo, &level.to_string())
    }

    /// The program that prints something that holds the level, with its arguments, where there is one.
    #[must_use]
    pub fn check(&self, level: &Level) -> Option<Vec<String>> {
        let words = self.check.as_ref()?;
        Some(of_level(words, &level.to_string()))
    }

    /// The programs' names or paths.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        let apply: Vec<&Vec<String>> = match &self.apply {
            Apply::Template(words) => vec![words],
            Apply::ByLevel(programs) => programs.values().collect(),
        };
        let others = std::iter::once(&self.undo).chain(&self.check);
        let all = apply.into_iter().chain(others);
        all.filter_map(|words| words.first().map(String::as_str))
    }

    /// The same with the names of the DUT's interfaces in the place of `{dut-in}` and `{dut-out}`.
    #[must_use]
    pub fn with_interfaces(&self, interface_in: &str, interface_out: &str) -> Self {
        let places = of_interfaces(interface_in, interface_out);
        let named = |words: &Vec<String>| fill_words(words, &places);
        Self {
            apply: match &self.apply {
                Apply::Template(words) => Apply::Template(named(words)),
                Apply::ByLevel(programs) => Apply::ByLevel(
                    programs
                        .iter()
                        .map(|(level, words)| (level.clone(), named(words)))
                        .collect(),
                ),
            },
            undo: named(&self.undo),
            check: self.check.as_ref().map(named),
        }
    }
}

/// A program's arguments for a level.
fn of_level(template: &[String], level: &str) -> Vec<String> {
    fill_words(template, &[(LEVEL, level)])
}

/// What a DUT has on its interfaces at the XDP hook.
#[expect(clippy::large_enum_variant, reason = "a lab has one a level")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpProgram {
    /// None: the kernel's stack forwards.
    Off,
    /// `bpf_fib_lookup` for every packet, then redirect.
    Fib,
    /// One of the owner's.
    Own(OwnXdpProgram),
}

/// An XDP program of the owner's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnXdpProgram {
    /// The program.
    #[serde(flatten)]
    pub program: EbpfProgram,
    /// Where the kernel runs it.
    #[serde(default)]
    pub mode: XdpMode,
    /// The DUT's interfaces that have it; without, the lab's choice: those that receive in a namespace, both on a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Vec<DutInterface>>,
}

/// A tc program of the owner's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTcProgram {
    /// The program.
    #[serde(flatten)]
    pub program: EbpfProgram,
    /// Which frames it is run for.
    #[serde(default)]
    pub hook: TcHook,
    /// What it is attached by.
    #[serde(default)]
    pub attach: TcAttach,
}

/// Which frames of an interface a tc program is run for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TcHook {
    /// Those that come in: of the interfaces that receive the load.
    #[default]
    Ingress,
    /// Those that go out: of the interfaces that forward it.
    Egress,
}

/// What a tc program is attached by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TcAttach {
    /// A filter of the queueing discipline `clsact`, which every kernel has.
    #[default]
    Clsact,
    /// A tcx link, without a queueing discipline: from Linux 6.6 on.
    Tcx,
}

/// Where the kernel runs an XDP program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// In the driver.
    #[default]
    Native,
    /// In the kernel's stack, behind the driver.
    Generic,
}
