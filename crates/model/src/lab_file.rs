//! The lab file: where is measured, and how each factor is set there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use toml::Spanned;

use crate::diagnostic::{Diagnostics, Source};
use crate::document::{Reading, Table};
use crate::mechanism::Mechanism;
use crate::resolved::LabKind;
use crate::words::LoadRegime;

pub(crate) const FILE_KEYS: &[&str] = &[
    "kind",
    "description",
    "regime",
    "link_gbps",
    "placement",
    "bind",
];
pub(crate) const PLACEMENT_KEYS: &[&str] = &["load_cpu", "dut_cpu", "control_cpu"];

pub(crate) const KINDS: &[(&str, LabKind)] = &[("netns", LabKind::Netns)];
/// A paced load has a number, which is the experiment's to give.
pub(crate) const REGIMES: &[(&str, LoadRegime)] = &[
    ("self-clocked", LoadRegime::SelfClocked),
    ("overload", LoadRegime::Overload),
];
/// From a serial line to the fastest Ethernet there is a standard for (IEEE 802.3df and 802.3dj).
pub(crate) const LINK_GBPS: RangeInclusive<f64> = 0.001..=1600.0;
/// Linux numbers at most 8192 CPUs (`CONFIG_NR_CPUS`).
pub(crate) const CPU: RangeInclusive<u32> = 0..=8191;

/// A lab file, read.
#[derive(Debug)]
pub(crate) struct LabFile {
    pub(crate) source: Arc<Source>,
    pub(crate) description: Option<String>,
    pub(crate) kind: LabKind,
    /// How the load relates to what the DUT can forward, unless the experiment says.
    pub(crate) regime: LoadRegime,
    pub(crate) link_gbps: Option<f64>,
    pub(crate) load_cpu: Option<u32>,
    pub(crate) dut_cpu: Option<u32>,
    pub(crate) control_cpu: Option<u32>,
    /// By the factor's name; none only where that is already an error.
    pub(crate) bindings: BTreeMap<String, Option<Mechanism>>,
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
        let regime = file
            .value("regime")
            .and_then(|value| reading.word(value, "`regime`", REGIMES));
        let link_gbps = file.number(reading, "link_gbps", LINK_GBPS);
        let placement = file.table(reading, "placement", PLACEMENT_KEYS);
        let mut cpu = |key| placement.as_ref()?.integer(reading, key, CPU);
        let (load_cpu, dut_cpu, control_cpu) =
            (cpu("load_cpu"), cpu("dut_cpu"), cpu("control_cpu"));
        let mut bindings = BTreeMap::new();
        if let Some(value) = file.value("bind") {
            for (factor, value) in reading.entries(value, "`bind`") {
                let mechanism = Mechanism::read(reading, factor.get_ref(), value);
                bindings.insert((*factor.get_ref()).to_owned(), mechanism);
            }
        }
        Some(Self {
            source: Arc::clone(source),
            description,
            kind: kind.unwrap_or(LabKind::Netns),
            regime: regime.unwrap_or(LoadRegime::SelfClocked),
            link_gbps,
            load_cpu,
            dut_cpu,
            control_cpu,
            bindings,
        })
    }
}
