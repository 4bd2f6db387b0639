//! What was read of a DUT while it was measured.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What was read of a DUT in a slice, or in all slices of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DutReading {
    /// Frames dropped, by reason; reasons exclude each other.
    pub drops: BTreeMap<String, u64>,
    /// What the DUT's mechanisms did, by counter, where they count: a reference router's own.
    #[serde(
        rename = "dut_events",
        default,
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub events: BTreeMap<String, u64>,
    /// What the DUT's CPUs did, by CPU, where that was watched: where the DUT is a host.
    #[serde(
        rename = "dut_cpus",
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "as_list",
        deserialize_with = "from_list"
    )]
    pub cpus: BTreeMap<u32, CpuTimes>,
}

impl DutReading {
    /// Frames dropped, all reasons.
    #[must_use]
    pub fn dropped_frames(&self) -> u64 {
        self.drops.values().sum()
    }
}

impl AddAssign for DutReading {
    fn add_assign(&mut self, other: Self) {
        for (reason, frames) in other.drops {
            *self.drops.entry(reason).or_default() += frames;
        }
        for (event, times) in other.events {
            *self.events.entry(event).or_default() += times;
        }
        for (cpu, times) in other.cpus {
            *self.cpus.entry(cpu).or_default() += times;
        }
    }
}

/// What a CPU did while it was watched: a part of the slices, from the first frames of a load on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// How long it was watched, in seconds.
    pub watched_s: f64,
    /// How long of that it was busy, interrupts included, in seconds.
    pub busy_s: f64,
    /// How long of that it was in interrupts, those of software included, in seconds.
    pub interrupts_s: f64,
    /// How long of that the hypervisor took it away, in seconds.
    pub stolen_s: f64,
}

impl AddAssign for CpuTimes {
    fn add_assign(&mut self, other: Self) {
        self.watched_s += other.watched_s;
        self.busy_s += other.busy_s;
        self.interrupts_s += other.interrupts_s;
        self.stolen_s += other.stolen_s;
    }
}

/// A CPU and its times, as records list them.
#[derive(Serialize, Deserialize)]
struct CpuUse {
    cpu: u32,
    #[serde(flatten)]
    times: CpuTimes,
}

fn as_list<S: Serializer>(
    cpus: &BTreeMap<u32, CpuTimes>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cpus.iter().map(|(&cpu, &times)| CpuUse { cpu, times }))
}

fn from_list<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<u32, CpuTimes>, D::Error> {
    let list = Vec::<CpuUse>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|of| (of.cpu, of.times)).collect())
}
