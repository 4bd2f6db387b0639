//! The lab file: where is measured, and how each factor is set there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use toml::Spanned;

use crate::diagnostic::{Diagnostics, Source, Span};
use crate::document::{Reading, Table, Value};
use crate::resolved::{LabKind, XdpProgram};

pub(crate) const FILE_KEYS: &[&str] = &["kind", "description", "placement", "bind"];
pub(crate) const PLACEMENT_KEYS: &[&str] = &["load_cpu", "control_cpu"];
pub(crate) const MECHANISM_KEYS: &[&str] = &["sysctl", "nft", "xdp"];

const KINDS: &[(&str, LabKind)] = &[("netns", LabKind::Netns)];
const XDP_PROGRAMS: &[(&str, XdpProgram)] = &[("off", XdpProgram::Off), ("fib", XdpProgram::Fib)];
/// Linux numbers at most 8192 CPUs (`CONFIG_NR_CPUS`).
const CPU: RangeInclusive<u32> = 0..=8191;
/// What stands for the DUT's interfaces in a sysctl's key.
const INTERFACES: &[&str] = &["{dut-in}", "{dut-out}"];

/// A lab file, read.
#[derive(Debug)]
pub(crate) struct LabFile {
    pub(crate) source: Arc<Source>,
    pub(crate) description: Option<String>,
    pub(crate) kind: LabKind,
    pub(crate) load_cpu: Option<u32>,
    pub(crate) control_cpu: Option<u32>,
    /// By the factor's name; none only where that is already an error.
    pub(crate) bindings: BTreeMap<String, Option<Mechanism>>,
}

/// How a factor is set, before its rulesets are read.
#[derive(Debug)]
pub(crate) enum Mechanism {
    /// The level is the value of this key.
    Sysctl(Spanned<String>),
    /// For each level the ruleset's file, relative to the lab file; empty is no ruleset.
    Nft(BTreeMap<String, Spanned<String>>),
    /// For each level the program.
    Xdp(BTreeMap<String, XdpProgram>),
}

impl LabFile {
    /// Reads the file, notes every error in it and goes on; none only where the syntax is broken.
    pub(crate) fn parse(source: &Arc<Source>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let reading = &mut Reading {
            source,
            diagnostics,
        };
        let document = reading.parse()?;
        let file = Table::open(reading, &document, 0..0, "", FILE_KEYS);
        let kind = file
            .required(reading, "kind")
            .and_then(|value| reading.word(value, "`kind`", KINDS));
        let description = file.line(reading, "description").map(Spanned::into_inner);
        let placement = file.table(reading, "placement", PLACEMENT_KEYS);
        let mut cpu = |key| placement.as_ref()?.integer(reading, key, CPU);
        let (load_cpu, control_cpu) = (cpu("load_cpu"), cpu("control_cpu"));
        let mut bindings = BTreeMap::new();
        if let Some(value) = file.value("bind") {
            for (factor, value) in reading.entries(value, "`bind`") {
                let mechanism = mechanism(reading, factor.get_ref(), value);
                bindings.insert((*factor.get_ref()).to_owned(), mechanism);
            }
        }
        Some(Self {
            source: Arc::clone(source),
            description,
            kind: kind.unwrap_or(LabKind::Netns),
            load_cpu,
            control_cpu,
            bindings,
        })
    }
}

fn mechanism(reading: &mut Reading<'_>, factor: &str, value: &Value<'_>) -> Option<Mechanism> {
    let name = format!("[bind.{factor:?}]");
    let table = reading.table(value, &name, MECHANISM_KEYS)?;
    let given: Vec<&str> = MECHANISM_KEYS
        .iter()
        .copied()
        .filter(|key| table.value(key).is_some())
        .collect();
    if given.is_empty() && MECHANISM_KEYS.iter().any(|key| table.is_misspelt(key)) {
        return None;
    }
    let &[key] = given.as_slice() else {
        let message = if given.is_empty() {
            format!("{name} has no mechanism")
        } else {
            format!("{name} has more than one mechanism ({})", given.join(", "))
        };
        reading
            .error(table.span, message)
            .with_help(format!("give one of: {}", MECHANISM_KEYS.join(", ")));
        return None;
    };
    let what = table.what(key);
    let value = table.value(key)?;
    match key {
        "sysctl" => {
            let sysctl = reading.line(value, &what)?;
            check_sysctl(reading, sysctl.span(), sysctl.get_ref())
                .then_some(Mechanism::Sysctl(sysctl))
        }
        "nft" => Some(Mechanism::Nft(levels(
            reading,
            value,
            &what,
            |reading, value, what| {
                // Empty text means no ruleset, so this is not the text of one line.
                match value.get_ref().as_str() {
                    Some("") => Some(Spanned::new(value.span(), String::new())),
                    _ => reading.line(value, what),
                }
            },
        ))),
        _ => Some(Mechanism::Xdp(levels(
            reading,
            value,
            &what,
            |reading, value, what| reading.word(value, what, XDP_PROGRAMS),
        ))),
    }
}

/// A table from levels to what each of them means to a mechanism.
fn levels<T>(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
    mut read: impl FnMut(&mut Reading<'_>, &Value<'_>, &str) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut levels = BTreeMap::new();
    for (level, value) in reading.entries(value, what) {
        let level = *level.get_ref();
        if let Some(meaning) = read(reading, value, &format!("level {level:?}")) {
            levels.insert(level.to_owned(), meaning);
        }
    }
    levels
}

/// Whether a key names a file under `/proc/sys/net` and can name nothing else.
fn check_sysctl(reading: &mut Reading<'_>, span: Span, key: &str) -> bool {
    let parts: Vec<&str> = key.split('.').collect();
    let wrong = if parts[0] != "net" || parts.len() < 2 {
        Some("only keys under `net.` belong to the DUT's own namespace".to_owned())
    } else {
        parts.iter().find(|part| !is_sysctl_part(part)).map(|part| {
            format!(
                "{part:?} is not made of letters, digits, `_` and `-`, nor one of {}",
                INTERFACES.join(", ")
            )
        })
    };
    if let Some(wrong) = &wrong {
        reading
            .error(span, format!("{key:?} is not a sysctl that a lab may set"))
            .with_help(wrong);
    }
    wrong.is_none()
}

fn is_sysctl_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    INTERFACES.contains(&part) || (!part.is_empty() && part.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysctl_cannot_leave_the_network_part_of_the_tree() {
        for (key, allowed) in [
            ("net.ipv4.conf.all.rp_filter", true),
            ("net.ipv4.conf.{dut-in}.rp_filter", true),
            ("net.ipv6.conf.{dut-out}.forwarding", true),
            ("net", false),
            ("net.", false),
            ("network.x", false),
            ("kernel.panic", false),
            ("net...kernel.panic", false),
            ("net.../kernel/panic", false),
            ("net/ipv4/ip_forward", false),
            ("net.ipv4.{other}.x", false),
            ("net.ipv4.conf.a b", false),
        ] {
            let source = Arc::new(Source {
                path: "x.toml".into(),
                text: format!("kind = \"netns\"\n[bind.f]\nsysctl = {key:?}\n"),
            });
            let mut diagnostics = Diagnostics::default();
            LabFile::parse(&source, &mut diagnostics);
            assert_eq!(diagnostics.is_empty(), allowed, "{key}\n{diagnostics}");
        }
    }
}
