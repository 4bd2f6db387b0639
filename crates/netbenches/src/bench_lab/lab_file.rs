//! The text of the lab file.

use std::fmt::Write as _;

use super::account::Account;
use super::expand::Value;
use super::ports::Found;
use super::toml::{comment, one_line, quoted};
use super::{FACTOR, Source, SourceSet};

/// A key that somebody has to have a value for.
pub(super) enum Key {
    /// The value, and the variables it is from.
    Known(String),
    /// What to write there.
    Missing(String),
}

impl Key {
    /// What a variable says; where it says nothing, `what` is to be written.
    pub(super) fn of(value: Option<&Value>, name: &str, what: &str) -> Self {
        match value {
            Some(value) if !value.is_open => Self::Known(value.text.clone()),
            Some(value) => Self::Missing(format!("{what}; {name} is {}", one_line(&value.text))),
            None => Self::Missing(format!("{what}; {name} is not set")),
        }
    }

    pub(super) fn known(&self) -> Option<&str> {
        match self {
            Self::Known(value) => Some(value),
            Self::Missing(_) => None,
        }
    }
}

/// What stands in a lab file.
pub(super) struct LabParts {
    pub(super) description: String,
    pub(super) link_gbps: Option<String>,
    pub(super) dut: Key,
    /// The DUT's ports.
    pub(super) ports: [Found; 2],
    /// What to look for on the DUT, where a port is not known.
    pub(super) hints: [String; 2],
    pub(super) reboot_s_max: Option<u32>,
    pub(super) sender: Key,
    pub(super) sender_port: Key,
    /// The receiver's host, where it is another one.
    pub(super) receiver: Option<Key>,
    pub(super) receiver_port: Key,
    /// A second sender's host and port.
    pub(super) generator: Option<(Key, Key)>,
}

/// The lab file; what is missing is named in the account as well.
pub(super) fn text(source: &Source, parts: &LabParts, account: &mut Account) -> String {
    let mut text = comment(&format!(
        "The lab of {}, as `fwdlab import bench-lab` reads it.",
        source.config.display()
    ));
    text += "kind = \"freebsd-ssh\"\n";
    let _ = writeln!(text, "description = {}", quoted(&parts.description));
    text += "regime = \"overload\"\n";
    match &parts.link_gbps {
        Some(gbps) => _ = writeln!(text, "link_gbps = {gbps}"),
        None => {
            text += "# link_gbps = 10 would say how fast the links are, for loads in percent of the line rate.\n"
        }
    }

    text += "\n[dut]\n";
    let mut write = |text: &mut String, table: &str, key: &str, value: &Key| match value {
        Key::Known(value) => _ = writeln!(text, "{key} = {}", quoted(value)),
        Key::Missing(what) => {
            *text += &comment(&format!("{key} = \"…\": {what}"));
            account.missing.push(format!("{table} {key}: {what}"));
        }
    };
    write(&mut text, "[dut]", "host", &parts.dut);
    for ((key, port), hint) in ["in", "out"]
        .into_iter()
        .zip(&parts.ports)
        .zip(&parts.hints)
    {
        match port {
            Found::Known {
                interface,
                how,
                drawn,
            } => {
                let but = drawn.as_ref().map_or_else(String::new, |drawn| {
                    format!(
                        " The drawing in line {} has {}.",
                        drawn.line, drawn.interface
                    )
                });
                text += &comment(&format!("{how}{but}"));
                write(&mut text, "[dut]", key, &Key::Known(interface.clone()));
            }
            Found::Unknown(why) => {
                let what = Key::Missing(format!("{hint} ({why})"));
                write(&mut text, "[dut]", key, &what);
            }
        }
    }
    if let Some(seconds) = parts.reboot_s_max {
        let _ = writeln!(text, "reboot_s_max = {seconds}");
    }

    text += "\n[tester]\n";
    write(&mut text, "[tester]", "host", &parts.sender);
    write(&mut text, "[tester]", "out", &parts.sender_port);
    if let Some(receiver) = &parts.receiver {
        text += "\n[receiver]\n";
        write(&mut text, "[receiver]", "host", receiver);
        write(&mut text, "[receiver]", "in", &parts.receiver_port);
    } else {
        write(&mut text, "[tester]", "in", &parts.receiver_port);
    }
    if let Some((host, port)) = &parts.generator {
        text += "\n[[generator]]\n";
        write(&mut text, "[[generator]]", "host", host);
        write(&mut text, "[[generator]]", "out", port);
    }
    if !source.sets.is_empty() {
        text += "\n# The files of a set are copied to the DUT, which then boots: their paths are from this file.\n";
        let _ = writeln!(text, "[bind.{}.configs]", quoted(FACTOR));
        for SourceSet { name, folder, .. } in &source.sets {
            let _ = writeln!(text, "{} = {}", quoted(name), quoted(folder));
        }
    }
    text
}
