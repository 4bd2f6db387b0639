//! The hosts of a lab whose tester and DUT are machines of their own, reached by ssh.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::document::{Reading, Table};
use crate::lab_file::CPU;
use crate::resolve::beside;
use crate::resolved::{DutInterface, LabKind};

pub(crate) const SSH_KEYS: &[&str] = &["config"];
pub(crate) const DUT_KEYS: &[&str] = &["host", "in", "out"];
pub(crate) const TESTER_KEYS: &[&str] = &["host", "out", "in", "cpu", "program"];

/// Linux's names of interfaces have at most so many bytes (`IFNAMSIZ`, less the end mark).
const INTERFACE_BYTES_MAX: usize = 15;

/// How the hosts of a lab are reached, and which of their ports are cabled to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hosts {
    /// The file for `ssh -F`, where this machine finds it; the user's own without.
    #[serde(skip)]
    pub ssh_config: Option<PathBuf>,
    /// The device under test.
    pub dut: DutHost,
    /// Generator and sink.
    pub tester: TesterHost,
}

/// A DUT on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DutHost {
    /// What ssh is told.
    pub host: String,
    /// Its interface that faces the generator.
    pub interface_in: String,
    /// Its interface that faces the sink.
    pub interface_out: String,
}

impl DutHost {
    /// The name of one of its interfaces.
    #[must_use]
    pub fn interface(&self, interface: DutInterface) -> &str {
        match interface {
            DutInterface::DutIn => &self.interface_in,
            DutInterface::DutOut => &self.interface_out,
        }
    }
}

/// A tester on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TesterHost {
    /// What ssh is told.
    pub host: String,
    /// Where the generator sends.
    pub interface_out: String,
    /// Where the sink counts.
    pub interface_in: String,
    /// The CPU that sends; the last without.
    pub cpu: Option<u32>,
    /// The fwdlab program for that host, where this machine finds it; the running one without.
    #[serde(skip)]
    pub program: Option<PathBuf>,
}

/// Reads `[ssh]`, `[dut]` and `[tester]`, which a lab of Linux hosts has and no other; none where that is an
/// error, or of any other kind.
pub(crate) fn hosts(
    reading: &mut Reading<'_>,
    file: &Table<'_>,
    kind: Option<LabKind>,
) -> Option<Hosts> {
    let ssh = file.table(reading, "ssh", SSH_KEYS);
    let dut = file.table(reading, "dut", DUT_KEYS);
    let tester = file.table(reading, "tester", TESTER_KEYS);
    if let Some(other) = kind.filter(|kind| *kind != LabKind::LinuxSsh) {
        for (name, table) in [("ssh", &ssh), ("dut", &dut), ("tester", &tester)] {
            if let Some(table) = table {
                reading
                    .error(
                        table.span.clone(),
                        format!("a lab of kind {other} has no [{name}]"),
                    )
                    .with_help("labs of kind \"linux-ssh\" have one");
            }
        }
        return None;
    }
    if kind != Some(LabKind::LinuxSsh) {
        return None;
    }
    file.required(reading, "dut");
    file.required(reading, "tester");
    let path = |reading: &mut Reading<'_>, table: &Option<Table<'_>>, key: &str| {
        let named = table.as_ref()?.line(reading, key)?;
        Some(beside(&reading.source.path, named.get_ref()))
    };
    let ssh_config = path(reading, &ssh, "config");
    let program = path(reading, &tester, "program");
    let dut = dut.and_then(|table| {
        let host = host(reading, &table);
        let [interface_in, interface_out] = interfaces(reading, &table);
        Some(DutHost {
            host: host?,
            interface_in: interface_in?,
            interface_out: interface_out?,
        })
    });
    let tester = tester.and_then(|table| {
        let host = host(reading, &table);
        let [interface_in, interface_out] = interfaces(reading, &table);
        let cpu = table.integer(reading, "cpu", CPU);
        Some(TesterHost {
            host: host?,
            interface_out: interface_out?,
            interface_in: interface_in?,
            cpu,
            program,
        })
    });
    Some(Hosts {
        ssh_config,
        dut: dut?,
        tester: tester?,
    })
}

/// What ssh is told: nothing that it takes for an option, or for two words.
fn host(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<String> {
    let host = table.required_line(reading, "host")?;
    let text = host.get_ref();
    if !text.starts_with('-') && !text.contains(char::is_whitespace) {
        return Some(host.into_inner());
    }
    let message = format!("{text:?} is no host that ssh could be told");
    reading
        .error(host.span(), message)
        .with_help("write a host of your ssh configuration, or user@host; options belong there");
    None
}

/// `in` and `out`, which are two.
fn interfaces(reading: &mut Reading<'_>, table: &Table<'_>) -> [Option<String>; 2] {
    let [ingress, egress] = ["in", "out"].map(|key| {
        let name = table.required_line(reading, key)?;
        is_interface(reading, &name).then_some(name)
    });
    if let (Some(ingress), Some(egress)) = (&ingress, &egress)
        && ingress.get_ref() == egress.get_ref()
    {
        let message = format!("{} and `in` are the same interface", table.what("out"));
        reading
            .error(egress.span(), message)
            .with_help("frames come in at one port and go out at another");
    }
    [ingress, egress].map(|name| name.map(Spanned::into_inner))
}

fn is_interface(reading: &mut Reading<'_>, name: &Spanned<String>) -> bool {
    let text = name.get_ref();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = text.len() <= INTERFACE_BYTES_MAX
        && !text.starts_with(['-', '.'])
        && text.bytes().all(is_plain);
    if !is_name {
        reading
            .error(name.span(), format!("{text:?} is no name of an interface"))
            .with_help(format!(
                "names are made of at most {INTERFACE_BYTES_MAX} letters, digits, `.`, `_` and `-`, the first \
                 neither `.` nor `-`; `ip link` lists them"
            ));
    }
    is_name
}
