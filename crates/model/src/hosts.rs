//! The hosts of a lab whose tester and DUT are machines of their own, reached by ssh.
//!
//! A lab of FreeBSD hosts may name none: it is planned then, and not run.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::binding::DutInterface;
use crate::destination::check_destination;
use crate::diagnostic::Span;
use crate::document::{Reading, Table};
use crate::files::beside;
use crate::kind::{LabKind, System};
use crate::lab_file::CPU;
use crate::mechanism::arguments;

pub(crate) const SSH_KEYS: &[&str] = &["config"];
pub(crate) const DUT_KEYS: &[&str] = &[
    "host",
    "in",
    "out",
    "reboot_s_max",
    "power_cycle",
    "program",
    "pmc_event",
    "overwrite_other_slice",
    "drop_counters",
];
pub(crate) const TESTER_KEYS: &[&str] = &["host", "out", "in", "uses", "cpu", "cpus", "program"];
pub(crate) const RECEIVER_KEYS: &[&str] = &["host", "in", "program"];
pub(crate) const GENERATOR_KEYS: &[&str] = &["host", "out", "cpu", "cpus", "program"];
pub(crate) const USES: &[(&str, HostTesterKind)] = &[
    ("fwdlab", HostTesterKind::Fwdlab),
    ("pkt-gen", HostTesterKind::PktGen),
];
/// How long a DUT may be given to boot, in seconds: from what a virtual machine needs to what servers take that
/// test all of their memory first.
pub const REBOOT_S_MAX: RangeInclusive<u32> = 5..=7200;
const REBOOT_S_MAX_DEFAULT: u32 = 600;
/// An alias for the cycles in which a CPU does not sleep (FreeBSD, `lib/libpmc/libpmc_pmu_util.c`): on Intel's CPUs of
/// `cpu_clk_unhalted.thread_p_any` (13) or `.thread` (15), on AMD's of `ls_not_halted_cyc`. A CPU without that event
/// refuses it.
const PMC_EVENT_DEFAULT: &str = "unhalted-cycles";

/// Names of interfaces have at most so many bytes, on Linux and on FreeBSD (`IFNAMSIZ`, less the end mark).
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
    /// What else sends the same frames, at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorHost>,
}

/// What sends and counts on the hosts of a tester.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostTesterKind {
    /// fwdlab's own generator and sink, on Linux.
    #[default]
    Fwdlab,
    /// netmap's pkt-gen.
    PktGen,
}

/// A sink on a host of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverHost {
    /// The destination for ssh.
    pub host: String,
    /// The fwdlab program for that host, where this machine finds it; the running one without.
    #[serde(skip)]
    pub program: Option<PathBuf>,
}

/// One more generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorHost {
    /// The destination for ssh.
    pub host: String,
    /// Where it sends.
    pub interface_out: String,
    /// The CPUs that send and share the flows; empty: the last CPU of the host.
    #[serde(default, rename = "cpu", with = "one_or_several")]
    pub cpus: Vec<u32>,
    /// The fwdlab program for that host, where this machine finds it; the running one without.
    #[serde(skip)]
    pub program: Option<PathBuf>,
}

/// A DUT on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DutHost {
    /// The destination for ssh.
    pub host: String,
    /// Its interface that faces the generator.
    pub interface_in: String,
    /// Its interface that faces the sink.
    pub interface_out: String,
    /// How long it may take to boot, in seconds, until it answers again.
    #[serde(default = "reboot_s_max_default")]
    pub reboot_s_max: u32,
    /// What cuts its power and gives it back, run on this machine; no shell sees it.
    #[serde(skip)]
    pub power_cycle: Option<Vec<String>>,
    /// The fwdlab program for that host, where this machine finds it, which samples a Linux kernel's stacks there; the
    /// running one without.
    #[serde(skip)]
    pub program: Option<PathBuf>,
    /// After what event `pmcstat` samples a FreeBSD kernel's stacks.
    #[serde(
        default = "pmc_event_default",
        skip_serializing_if = "is_pmc_event_default"
    )]
    pub pmc_event: String,
    /// Whether images may be written to the slice of its disk that its system is not on.
    #[serde(skip)]
    pub overwrite_other_slice: bool,
    /// Of Linux: counters of `ethtool -S` under which its ports count frames that they drop, and nowhere else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop_counters: Vec<String>,
}

fn pmc_event_default() -> String {
    PMC_EVENT_DEFAULT.to_owned()
}

fn is_pmc_event_default(event: &str) -> bool {
    event == PMC_EVENT_DEFAULT
}

fn reboot_s_max_default() -> u32 {
    REBOOT_S_MAX_DEFAULT
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
    /// The destination for ssh.
    pub host: String,
    /// Where the generator sends.
    pub interface_out: String,
    /// Where the sink counts, at the receiver's host where there is one.
    pub interface_in: String,
    /// What sends and counts.
    #[serde(default)]
    pub uses: HostTesterKind,
    /// The host of the sink, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<ReceiverHost>,
    /// The CPUs that send and share the flows; empty: the last CPU of the host.
    #[serde(default, rename = "cpu", with = "one_or_several")]
    pub cpus: Vec<u32>,
    /// The fwdlab program for that host, where this machine finds it; the running one without.
    #[serde(skip)]
    pub program: Option<PathBuf>,
}

impl Hosts {
    /// All hosts as ssh knows them, each once: the DUT first.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let receiver = self.tester.receiver.iter().map(|of| &of.host);
        let generators = self.generators.iter().map(|of| &of.host);
        let of_tester = [&self.dut.host, &self.tester.host].into_iter();
        let mut names: Vec<&str> = Vec::new();
        for name in of_tester.chain(receiver).chain(generators) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// The most CPUs that send from one port.
    pub(crate) fn cpus_a_port_max(&self) -> usize {
        let others = self.generators.iter().map(|of| of.cpus.len());
        others.fold(self.tester.cpus.len(), usize::max)
    }
}

/// The CPUs of a port as results name them: none as nothing, one as a number, and several as a list.
mod one_or_several {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Cpus {
        One(u32),
        Several(Vec<u32>),
    }

    pub(super) fn serialize<S: Serializer>(cpus: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
        let cpus = match *cpus {
            [] => None,
            [cpu] => Some(Cpus::One(cpu)),
            _ => Some(Cpus::Several(cpus.to_vec())),
        };
        cpus.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(of: D) -> Result<Vec<u32>, D::Error> {
        Ok(match Option::deserialize(of)? {
            None => Vec::new(),
            Some(Cpus::One(cpu)) => vec![cpu],
            Some(Cpus::Several(cpus)) => cpus,
        })
    }
}

/// Reads the tables of a lab of hosts; none where that is an error, of any other kind, and where a lab of FreeBSD
/// hosts names none.
pub(crate) fn hosts(
    reading: &mut Reading<'_>,
    file: &Table<'_>,
    kind: Option<LabKind>,
) -> Option<Hosts> {
    let ssh = file.table(reading, "ssh", SSH_KEYS);
    let dut = file.table(reading, "dut", DUT_KEYS);
    let tester = file.table(reading, "tester", TESTER_KEYS);
    let receiver = file.table(reading, "receiver", RECEIVER_KEYS);
    let generators = file.tables(reading, "generator", GENERATOR_KEYS);
    if let Some(other) = kind.filter(|kind| !kind.is_remote()) {
        let tables = [
            ("ssh", &ssh),
            ("dut", &dut),
            ("tester", &tester),
            ("receiver", &receiver),
        ];
        let named = tables
            .into_iter()
            .filter_map(|(name, table)| table.as_ref().map(|table| (name, table)));
        let generators = generators.iter().map(|table| ("generator", table));
        for (name, table) in named.chain(generators) {
            reading
                .error(
                    table.span.clone(),
                    format!("a lab of kind {other} has no [{name}]"),
                )
                .with_help("labs of hosts have one: \"linux-ssh\" and \"freebsd-ssh\"");
        }
        return None;
    }
    let kind = kind?;
    let names_none = dut.is_none() && tester.is_none();
    if kind == LabKind::Ssh(System::Freebsd) && names_none {
        return None;
    }
    file.required(reading, "dut");
    file.required(reading, "tester");
    let path = |reading: &mut Reading<'_>, table: &Table<'_>, key: &str| {
        let named = table.line(reading, key)?;
        Some(beside(&reading.source.path, named.get_ref()))
    };
    let ssh_config = ssh.and_then(|ssh| path(reading, &ssh, "config"));
    let span = |table: &Option<Table<'_>>| table.as_ref().map(|table| table.span.clone());
    let (dut_span, tester_span, receiver_span) = (span(&dut), span(&tester), span(&receiver));
    let dut = dut.and_then(|table| {
        let host = host(reading, &table);
        let [interface_in, interface_out] = ports(reading, &table, kind);
        let reboot_s_max = table.integer(reading, "reboot_s_max", REBOOT_S_MAX);
        let power_cycle = table.value("power_cycle").and_then(|value| {
            let what = table.what("power_cycle");
            arguments(reading, value, &what)
        });
        let program = path(reading, &table, "program");
        let pmc_event = pmc_event(reading, &table);
        for (key, other) in [("program", LabKind::Ssh(System::Freebsd)), ("pmc_event", LabKind::Ssh(System::Linux))] {
            if kind == other
                && let Some(value) = table.value(key)
            {
                reading
                    .error(value.span(), format!("a DUT of kind {other} has no `{key}`"))
                    .with_help("`program` samples the stacks of Linux, `pmc_event` is what pmcstat samples FreeBSD's after");
            }
        }
        let overwrite_other_slice = overwrite_other_slice(reading, &table, kind);
        let drop_counters = drop_counters(reading, &table, kind);
        Some(DutHost {
            host: host?,
            interface_in: interface_in?,
            interface_out: interface_out?,
            reboot_s_max: reboot_s_max.unwrap_or(REBOOT_S_MAX_DEFAULT),
            power_cycle,
            program,
            pmc_event: pmc_event.unwrap_or_else(pmc_event_default),
            overwrite_other_slice,
            drop_counters,
        })
    });
    let receiver = receiver.map(|table| {
        let host = host(reading, &table);
        let interface = port(reading, &table, "in");
        let program = path(reading, &table, "program");
        Some((
            ReceiverHost {
                host: host?,
                program,
            },
            interface?,
        ))
    });
    let tester = tester.and_then(|table| {
        let host = host(reading, &table);
        let uses = table
            .value("uses")
            .and_then(|value| reading.word(value, &table.what("uses"), USES));
        let by_kind = match kind {
            LabKind::Ssh(System::Freebsd) => HostTesterKind::PktGen,
            _ => HostTesterKind::Fwdlab,
        };
        let uses = uses.unwrap_or(by_kind);
        let cpus = cpus(reading, &table, uses);
        let program = path(reading, &table, "program");
        let (interface_out, interface_in, receiver) = match receiver {
            None => {
                let [interface_in, interface_out] = ports(reading, &table, kind);
                (interface_out?, interface_in?, None)
            }
            Some(receiver) => {
                if let Some(value) = table.value("in") {
                    let message = "the sink is on the host of [receiver], and its port too";
                    reading
                        .error(value.span(), message)
                        .with_help("leave `in` out of [tester]");
                }
                let interface_out = port(reading, &table, "out");
                let (receiver, interface_in) = receiver?;
                (interface_out?, interface_in, Some(receiver))
            }
        };
        Some(TesterHost {
            host: host?,
            interface_out,
            interface_in,
            uses,
            receiver,
            cpus,
            program,
        })
    });
    let generators = generators.iter().filter_map(|table| {
        let host = host(reading, table);
        let interface_out = port(reading, table, "out");
        let uses = tester.as_ref().map(|tester| tester.uses);
        let cpus = cpus(reading, table, uses.unwrap_or_default());
        let program = path(reading, table, "program");
        let generator = GeneratorHost {
            host: host?,
            interface_out: interface_out?,
            cpus,
            program,
        };
        Some((table.span.clone(), generator))
    });
    let (generator_spans, generators): (Vec<Span>, Vec<GeneratorHost>) = generators.unzip();
    let hosts = Hosts {
        ssh_config,
        dut: dut?,
        tester: tester?,
        generators,
    };
    let tester_span = tester_span?;
    let spans = PortSpans {
        dut: dut_span?,
        sink: receiver_span.unwrap_or_else(|| tester_span.clone()),
        tester: tester_span,
        generators: generator_spans,
    };
    refuse_shared_ports(reading, &hosts, &spans);
    Some(hosts)
}

/// Where the tables stand that name ports.
struct PortSpans {
    dut: Span,
    tester: Span,
    sink: Span,
    generators: Vec<Span>,
}

/// Refuses a port that two tables name: a port of the DUT neither sends nor counts, and one that sends does so once.
fn refuse_shared_ports(reading: &mut Reading<'_>, hosts: &Hosts, spans: &PortSpans) {
    const TESTER: &str = "[tester]";
    let (dut, tester) = (&hosts.dut, &hosts.tester);
    let sink = match &tester.receiver {
        Some(receiver) => ("[receiver]", &receiver.host),
        None => (TESTER, &tester.host),
    };
    let mut others = vec![
        (TESTER, &tester.host, &tester.interface_out, &spans.tester),
        (sink.0, sink.1, &tester.interface_in, &spans.sink),
    ];
    let generators = hosts.generators.iter().zip(&spans.generators);
    others
        .extend(generators.map(|(of, span)| ("[[generator]]", &of.host, &of.interface_out, span)));
    for (index, (table, host, port, span)) in others.iter().enumerate() {
        if **host == dut.host && [&dut.interface_in, &dut.interface_out].contains(port) {
            let message = format!("{port} of {host} is a port of [dut] and of {table}");
            reading.error(spans.dut.clone(), message).with_help(
                "frames go over a cable from a port that sends to one of the DUT's, and back to a port that counts; name other \
                 ports, or another host",
            );
        }
        let mut before = others[..index].iter();
        let earlier = before.find(|of| (of.1, of.2) == (*host, *port));
        // That both ports of [tester] are one is an error of that table.
        let earlier = earlier.map(|of| of.0);
        if let Some(earlier) = earlier.filter(|earlier| [*earlier, *table] != [TESTER; 2]) {
            let message = format!("{port} of {host} is a port of {earlier} and of {table}");
            reading.error((*span).clone(), message).with_help(
                "name another port in one of them; where one port is to send more, give it several `cpus`",
            );
        }
    }
}

/// The CPUs that send from a port, by `cpu` or `cpus`; none where the file names none.
fn cpus(reading: &mut Reading<'_>, table: &Table<'_>, uses: HostTesterKind) -> Vec<u32> {
    const KEY: &str = "cpus";
    let one = table.integer(reading, "cpu", CPU);
    let Some(value) = table.value(KEY) else {
        return one.into_iter().collect();
    };
    let what = table.what(KEY);
    if table.value("cpu").is_some() {
        reading
            .error(value.span(), format!("{what} and `cpu` are both given"))
            .with_help("both name the CPUs that send; leave one of them out");
    }
    let items = reading.list(value, &what);
    if items.is_some_and(<[_]>::is_empty) {
        reading
            .error(value.span(), format!("{what} names no CPU"))
            .with_help("name the CPUs that send, as [2, 3]; without the key the last CPU sends");
    }
    let mut cpus = Vec::new();
    for item in items.unwrap_or_default() {
        let Some(cpu) = reading.integer(item, &format!("a CPU of {what}"), CPU) else {
            continue;
        };
        if cpus.contains(&cpu) {
            reading
                .error(item.span(), format!("CPU {cpu} is named twice"))
                .with_help("each CPU sends one share of the flows; leave one out");
            continue;
        }
        cpus.push(cpu);
    }
    // netmap's pkt-gen.c: `start_threads` and `sender_body`.
    if uses == HostTesterKind::PktGen && cpus.len() > 1 {
        reading
            .error(value.span(), "pkt-gen sends from one CPU of each port")
            .with_help(
                "each of its threads (-p) would send all flows at the whole pace; write one `cpu`, and add a [[generator]] \
                 on another port",
            );
    }
    cpus
}

/// An event as pmcstat names them: nothing that it takes for an option.
fn pmc_event(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<String> {
    let event = table.line(reading, "pmc_event")?;
    let text = event.get_ref();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-,=:".contains(&byte);
    if text.starts_with(|char: char| char.is_ascii_alphanumeric()) && text.bytes().all(is_part) {
        return Some(event.into_inner());
    }
    reading
        .error(event.span(), format!("{text:?} is no event of pmcstat"))
        .with_help("`pmcstat -L` lists them there; it is \"cpu_clk_unhalted.core_p\" on an Atom");
    None
}

/// Whether images may be written there; systems of nanobsd have a slice to write them to.
fn overwrite_other_slice(reading: &mut Reading<'_>, table: &Table<'_>, kind: LabKind) -> bool {
    const KEY: &str = "overwrite_other_slice";
    if let Some(value) = table
        .value(KEY)
        .filter(|_| kind != LabKind::Ssh(System::Freebsd))
    {
        let message = format!("a DUT of kind {kind} has no other slice");
        reading
            .error(value.span(), message)
            .with_help("images of nanobsd are written there, in labs of kind \"freebsd-ssh\"");
    }
    table.boolean(reading, KEY).unwrap_or(false)
}

/// Names of counters, each once.
fn drop_counters(reading: &mut Reading<'_>, table: &Table<'_>, kind: LabKind) -> Vec<String> {
    const KEY: &str = "drop_counters";
    let Some(value) = table.value(KEY) else {
        return Vec::new();
    };
    if kind != LabKind::Ssh(System::Linux) {
        reading
            .error(value.span(), format!("a DUT of kind {kind} has no `{KEY}`"))
            .with_help(
                "they are counters of `ethtool -S`; of FreeBSD netstat tells what ports drop",
            );
    }
    let what = table.what(KEY);
    let mut names = Vec::new();
    for item in reading.list(value, &what).unwrap_or_default() {
        let Some(name) = reading.line(item, &format!("a counter of {what}")) else {
            continue;
        };
        if names.contains(name.get_ref()) {
            let message = format!("the counter {:?} is named twice", name.get_ref());
            reading
                .error(name.span(), message)
                .with_help("frames would be counted twice; leave one out");
            continue;
        }
        names.push(name.into_inner());
    }
    names
}

/// A destination for ssh.
fn host(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<String> {
    let host = table.required_line(reading, "host")?;
    let text = host.get_ref();
    let Err(fault) = check_destination(text) else {
        return Some(host.into_inner());
    };
    let message = format!("{text:?} is not a valid destination for ssh: {fault}");
    reading
        .error(host.span(), message)
        .with_help("write a host of your ssh configuration, or user@host; options belong there");
    None
}

/// `in` and `out`, which are two.
fn ports(reading: &mut Reading<'_>, table: &Table<'_>, kind: LabKind) -> [Option<String>; 2] {
    let [ingress, egress] = ["in", "out"].map(|key| {
        let name = table.required_line(reading, key)?;
        is_interface(reading, &name, kind).then_some(name)
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

/// A port of a host that has one.
fn port(reading: &mut Reading<'_>, table: &Table<'_>, key: &str) -> Option<String> {
    let name = table.required_line(reading, key)?;
    is_interface(reading, &name, LabKind::Ssh(System::Linux)).then(|| name.into_inner())
}

/// Checks that a lab file takes a text for the name of an interface.
///
/// # Errors
/// What names are made of.
pub fn check_interface(text: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = text.len() <= INTERFACE_BYTES_MAX
        && !text.starts_with(['-', '.'])
        && text.bytes().all(is_plain);
    if is_name {
        return Ok(());
    }
    Err(format!(
        "names are made of at most {INTERFACE_BYTES_MAX} letters, digits, `.`, `_` and `-`, the first neither `.` nor `-`"
    ))
}

fn is_interface(reading: &mut Reading<'_>, name: &Spanned<String>, kind: LabKind) -> bool {
    let text = name.get_ref();
    let Err(rule) = check_interface(text) else {
        return true;
    };
    let list = if kind == LabKind::Ssh(System::Freebsd) {
        "`ifconfig -l`"
    } else {
        "`ip link`"
    };
    reading
        .error(
            name.span(),
            format!("{text:?} is not a valid name of an interface"),
        )
        .with_help(format!("{rule}; {list} lists them"));
    false
}
