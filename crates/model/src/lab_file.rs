//! The lab file: where is measured, and how each factor is set there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use toml::Spanned;

use crate::diagnostic::{Diagnostics, Source, Span};
use crate::document::{Reading, Table};
use crate::files::short_name;
use crate::hosts::hosts;
use crate::kind::{LabKind, System};
use crate::load::Load;
use crate::mechanism::{self, Mechanism, arguments};
use crate::resolved::{Lab, Notify, RouterLab, RouterTester};

pub(crate) const FILE_KEYS: &[&str] = &[
    "kind",
    "description",
    "regime",
    "link_gbps",
    "placement",
    "router",
    "notify",
    "ssh",
    "dut",
    "tester",
    "receiver",
    "generator",
    "bind",
];
pub(crate) const PLACEMENT_KEYS: &[&str] = &["load_cpu", "dut_cpu", "control_cpu"];

pub(crate) const ROUTER_KEYS: &[&str] = &["queues", "tester", "overload_ratio"];

pub(crate) const NOTIFY_KEYS: &[&str] = &["command", "webhook"];

pub(crate) const ROUTER_TESTERS: &[(&str, RouterTester)] = &[
    ("auto", RouterTester::Auto),
    ("inline", RouterTester::Inline),
    ("threaded", RouterTester::Threaded),
];
/// A paced load has a number, which is the experiment's to give.
pub(crate) const REGIMES: &[(&str, Load)] = &[
    ("self-clocked", Load::SelfClocked),
    ("overload", Load::Overload),
];
/// From a serial line to the fastest Ethernet there is a standard for (IEEE 802.3df and 802.3dj).
pub(crate) const LINK_GBPS: RangeInclusive<f64> = 0.001..=1600.0;
/// Linux numbers at most 8192 CPUs (`CONFIG_NR_CPUS`).
pub(crate) const CPU: RangeInclusive<u32> = 0..=8191;
/// More queues than most machines have CPUs to serve them.
pub(crate) const QUEUES: RangeInclusive<u32> = 1..=64;
/// At less than a hundredth above the capacity, its own noise would leave the DUT unloaded at times.
pub(crate) const OVERLOAD_RATIO: RangeInclusive<f64> = 1.01..=10.0;

/// A lab file, read.
#[derive(Debug)]
pub(crate) struct LabFile {
    pub(crate) source: Arc<Source>,
    /// None only where that is already an error.
    pub(crate) kind: Option<LabKind>,
    /// Without bindings, which take an experiment's factors. A lab of hosts has none where that is already an error.
    pub(crate) lab: Lab,
    /// How the load relates to what the DUT can forward, unless the experiment says.
    pub(crate) load: Load,
    /// By the factor's name; none only where that is already an error.
    pub(crate) mechanisms: BTreeMap<String, Option<Box<dyn Mechanism>>>,
}

/// The kinds of lab by their words.
pub(crate) fn kinds() -> [(&'static str, LabKind); 4] {
    LabKind::ALL.map(|kind| (kind.as_str(), kind))
}

impl LabFile {
    /// Reads the file, notes every error in it and goes on; none only where the syntax is broken.
    pub(crate) fn parse(source: &Arc<Source>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let reading = &mut Reading {
            source,
            diagnostics,
        };
        let document = reading.parse()?;
        let has = |key| document.contains_key(key);
        if (has("question") || has("factor")) && !(has("kind") || has("bind")) {
            reading
                .error(0..0, "this is an experiment, not a lab file")
                .with_help("lab files have a `kind` and a table `bind`; labs/netns.toml is one");
            return None;
        }
        let file = Table::open(reading, &document, 0..0, "", FILE_KEYS);
        let kind = file
            .required(reading, "kind")
            .and_then(|value| reading.word(value, "`kind`", &kinds()));
        let description = file.line(reading, "description").map(Spanned::into_inner);
        let load = load(reading, &file, kind);
        let link_gbps = file.number(reading, "link_gbps", LINK_GBPS);
        let placement = file.table(reading, "placement", PLACEMENT_KEYS);
        if let (Some(placement), Some(kind)) = (&placement, kind)
            && kind.is_remote()
        {
            let diagnostic = reading
                .error(
                    placement.span.clone(),
                    format!("a lab of kind {kind} has no [placement]"),
                )
                .with_help("its keys are CPUs of this machine, which forwards nothing there");
            if kind == LabKind::Ssh(System::Linux) {
                diagnostic.with_help("the CPU that sends is `cpu` in [tester]");
            }
        }
        let router = router(reading, &file, kind);
        let notify = notify(reading, &file);
        let hosts = hosts(reading, &file, kind);
        let mut cpu = |key| placement.as_ref()?.integer(reading, key, CPU);
        let lab = Lab {
            name: short_name(&source.path, "lab"),
            description,
            kind: kind.unwrap_or(LabKind::Netns),
            load_cpu: cpu("load_cpu"),
            dut_cpu: cpu("dut_cpu"),
            control_cpu: cpu("control_cpu"),
            link_gbps,
            router,
            hosts,
            notify,
            bindings: BTreeMap::new(),
        };
        let mut mechanisms = BTreeMap::new();
        if let Some(value) = file.value("bind") {
            for (factor, value) in reading.entries(value, "`bind`") {
                let mechanism = mechanism::read(reading, kind, factor.get_ref(), value);
                mechanisms.insert((*factor.get_ref()).to_owned(), mechanism);
            }
        }
        Some(Self {
            source: Arc::clone(source),
            kind,
            lab,
            load,
            mechanisms,
        })
    }
}

/// Self-clocked, but where tester and DUT are hosts of their own and cannot take turns.
fn load(reading: &mut Reading<'_>, file: &Table<'_>, kind: Option<LabKind>) -> Load {
    let is_remote = kind.is_some_and(LabKind::is_remote);
    let default = if is_remote {
        Load::Overload
    } else {
        Load::SelfClocked
    };
    let Some(value) = file.value("regime") else {
        return default;
    };
    let load = reading.word(value, "`regime`", REGIMES);
    if is_remote && load == Some(Load::SelfClocked) {
        no_turns(reading, value.span());
        return default;
    }
    load.unwrap_or(default)
}

/// Says why a load cannot be self-clocked where tester and DUT are hosts of their own.
pub(crate) fn no_turns(reading: &mut Reading<'_>, span: Span) {
    reading
        .error(
            span,
            "tester and DUT are separate hosts and cannot take turns on one core",
        )
        .with_help("ask for \"overload\", or for a paced load");
}

/// The `[router]` of a lab of that kind, which may go without; in any other it is an error.
fn router(reading: &mut Reading<'_>, file: &Table<'_>, kind: Option<LabKind>) -> Option<RouterLab> {
    let table = file.table(reading, "router", ROUTER_KEYS);
    let mut router = RouterLab::default();
    if let Some(table) = table {
        if let Some(other) = kind.filter(|kind| *kind != LabKind::Router) {
            reading
                .error(
                    table.span.clone(),
                    format!("a lab of kind {other} has no [router]"),
                )
                .with_help("labs of kind \"router\" have one");
        }
        if let Some(queues) = table.integer(reading, "queues", QUEUES) {
            router.queues = queues;
        }
        if let Some(value) = table.value("tester")
            && let Some(tester) = reading.word(value, &table.what("tester"), ROUTER_TESTERS)
        {
            router.tester = tester;
        }
        if let Some(ratio) = table.number(reading, "overload_ratio", OVERLOAD_RATIO) {
            router.overload_ratio = ratio;
        }
    }
    (kind == Some(LabKind::Router)).then_some(router)
}

fn notify(reading: &mut Reading<'_>, file: &Table<'_>) -> Notify {
    let Some(table) = file.table(reading, "notify", NOTIFY_KEYS) else {
        return Notify::default();
    };
    let command = table.value("command").and_then(|value| {
        let what = table.what("command");
        arguments(reading, value, &what)
    });
    let webhook = table.line(reading, "webhook").filter(|webhook| {
        let url = webhook.get_ref();
        let is_url = ["http://", "https://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
            && !url.contains(['"', '\\', ' ']);
        if !is_url {
            reading
                .error(webhook.span(), "the webhook is no address of a web server")
                .with_help("write http://… or https://…, without blanks and quotes");
        }
        is_url
    });
    Notify {
        command,
        webhook: webhook.map(Spanned::into_inner),
    }
}
