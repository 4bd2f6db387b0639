//! What a run leaves behind of its sessions: the machine, who runs where, the load, and how frames are sent; and what
//! the doctor finds of a lab.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::stratum::{self, Stratum};
use crate::words::{LoadRegime, VariantName};

/// `sessions/<n>.json`: an uninterrupted stretch of blocks on an untouched lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION) of the writer.
    pub schema: u32,
    /// Number, from 1.
    pub session: u32,
    /// Start, UTC.
    pub start: String,
    /// Version of fwdlab.
    pub fwdlab: String,
    /// Path of the experiment file, as it was given.
    pub experiment_path: String,
    /// Path of the lab file, where one was given beside the experiment.
    pub lab_path: Option<String>,
    /// What was found on the machine.
    pub environment: Environment,
    /// Who runs where.
    pub placement: Placement,
    /// The load as the machine allows it, where the lab has to find that out; of any other lab it is the
    /// experiment's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
}

/// The load of a session whose lab measured what the machine can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// The regime in which it was measured.
    pub regime: LoadRegime,
    /// The regime that was asked for, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<LoadRegime>,
    /// Why it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What was measured and settled for each stratum.
    #[serde(
        rename = "families",
        default,
        with = "stratum::keys",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub strata: BTreeMap<Stratum, StratumLoad>,
}

/// What a stratum's load was settled by, in frames per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StratumLoad {
    /// What the first comparison's baseline forwarded while more than that was offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_capacity_pps: Option<f64>,
    /// What the tester sent and counted at most, with a wire in the DUT's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tester_ceiling_pps: Option<f64>,
    /// What was to be offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_pps: Option<f64>,
}

/// What was found on the machine before the first block of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Kernel release and version, as `uname -rv` prints them.
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// Logical CPUs online.
    pub cpus: u32,
    /// Machine's vendor and product where it says.
    pub machine: Option<String>,
    /// Everything else, by name: SMT, frequency governor, hypervisor, clock source, versions.
    pub facts: BTreeMap<String, String>,
    /// What is known to spoil measurements, in sentences.
    pub noise_sources: Vec<String>,
    /// How frames are sent and counted; records that do not say are of eBPF programs.
    #[serde(default)]
    pub tester: Tester,
}

/// How frames are sent and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tester {
    /// eBPF programs: live frames, and a sink at the driver.
    #[default]
    Ebpf,
    /// An AF_XDP socket in copy mode, and interface counters.
    AfXdp,
    /// A packet socket with a transmit ring, and interface counters.
    TxRing,
    /// A packet socket with a system call for each batch, and interface counters.
    Sendmmsg,
    /// Frames that are made and counted in memory, in turns with the reference router.
    MemoryInline,
    /// Frames that are made and counted in memory, on CPUs of their own.
    MemoryThreaded,
    /// netmap's pkt-gen, at both ends.
    PktGen,
}

impl Tester {
    /// Those that need no eBPF, the best first.
    pub const SOCKETS: [Self; 3] = [Self::AfXdp, Self::TxRing, Self::Sendmmsg];

    /// The word used in files and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ebpf => "ebpf",
            Self::AfXdp => "af-xdp",
            Self::TxRing => "tx-ring",
            Self::Sendmmsg => "sendmmsg",
            Self::MemoryInline => "memory-inline",
            Self::MemoryThreaded => "memory-threaded",
            Self::PktGen => "pkt-gen",
        }
    }

    /// What sends.
    #[must_use]
    pub fn sender(self) -> &'static str {
        match self {
            Self::Ebpf => "eBPF live frames",
            Self::AfXdp => "an AF_XDP socket in copy mode",
            Self::TxRing => "a packet socket with a transmit ring (PACKET_TX_RING)",
            Self::Sendmmsg => "a packet socket (sendmmsg)",
            Self::MemoryInline => "a generator in memory, in the router's own thread",
            Self::MemoryThreaded => "a generator in memory, on a CPU of its own",
            Self::PktGen => "netmap's pkt-gen",
        }
    }

    /// What counts.
    #[must_use]
    pub fn sink(self) -> &'static str {
        match self {
            Self::Ebpf => "an XDP program",
            Self::AfXdp | Self::TxRing | Self::Sendmmsg => {
                "interface counters, with a packet socket that checks frames drawn at random"
            }
            Self::MemoryInline => "a sink in memory, in the same thread",
            Self::MemoryThreaded => "a sink in memory, beside the generator",
            Self::PktGen => "netmap's pkt-gen",
        }
    }

    /// What is lost against the best tester of the same kind of lab, in sentences; nothing where it is
    /// that one.
    #[must_use]
    pub fn losses(self) -> &'static [&'static str] {
        match self {
            Self::Ebpf | Self::MemoryInline | Self::MemoryThreaded => &[],
            Self::AfXdp | Self::TxRing | Self::Sendmmsg => &[
                "Variants with an XDP program are not available.",
                "Frames are socket buffers from the start, sent one system call a batch: the \
                 sender's own cost is another and larger one, and part of every ns/packet.",
                "The sink lets frames come up to the first look of the tester's IP stack, which \
                 costs more than an XDP program; it checks frames drawn at random.",
                "The generator's own cost is that of frames which the DUT's IP stack drops at its \
                 first look, because they are addressed to another station.",
                "The calibration loop has no real-time priority: it takes its turns with the load, \
                 so that short disturbances are seen later or not at all.",
            ],
            Self::PktGen => &[
                "Frames are counted and not looked at: what is in them, which flow they are of, and \
                 their order are not checked.",
                "The sink counts every frame that comes in: those of others count as foreign only \
                 where more came in than was sent.",
                "Counts come once a second, so that a slice begins and ends with a report, and what \
                 was offered in it is reckoned from the generators' own reports.",
            ],
        }
    }
}

impl std::fmt::Display for Tester {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, counted by {}", self.sender(), self.sink())
    }
}

impl Environment {
    /// Whether blocks measured in the other environment may stand beside those of this one; the
    /// first difference where not.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        let pairs = [
            ("kernel", self.kernel.as_str(), other.kernel.as_str()),
            ("CPU", &self.cpu_model, &other.cpu_model),
            ("tester", self.tester.sender(), other.tester.sender()),
        ];
        for (what, mine, theirs) in pairs {
            if mine != theirs {
                return Some(format!("{what} was {theirs:?} and is {mine:?}"));
            }
        }
        (self.cpus != other.cpus)
            .then(|| format!("there were {} CPUs and are {}", other.cpus, self.cpus))
    }
}

/// What `fwdlab doctor` measured of a lab, for plans to rest on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabNoise {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION) of the writer.
    pub schema: u32,
    /// The lab's name.
    pub lab: String,
    /// When, UTC.
    pub measured: String,
    /// Kernel release and version.
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// Rounds in each block.
    pub rounds: u32,
    /// Length of a slice.
    pub slice_ms: u32,
    /// A/A effects of the first address family, one a block, as log ratios.
    pub block_effects: Vec<f64>,
    /// The part of the measured time in which the load CPU was disturbed.
    pub disturbed_ratio: f64,
    /// Median length of a set-up, in seconds.
    pub set_up_s: f64,
    /// Median time of a switch, in seconds.
    pub switch_s: f64,
    /// The longest switch, in seconds.
    pub switch_s_max: f64,
    /// From a switch until the forwarding rate stays, in milliseconds; none where it was not seen to
    /// settle.
    pub settle_ms: Option<u32>,
    /// The generator's own cost, from the drop-at-ingress control, in ns/packet; none where it is another host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_cost_ns: Option<f64>,
    /// What the generator sends where every frame is dropped as it comes in, in frames per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_ceiling_pps: Option<f64>,
}

/// Who runs where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// CPU of the generator, and of DUT and sink too where they have none of their own. Of a reference
    /// router: of its whole tester.
    pub load_cpu: u32,
    /// CPU of DUT and sink, where that is another one. Of a reference router: of its first queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dut_cpu: Option<u32>,
    /// CPU of the harness.
    pub control_cpu: u32,
    /// Of a reference router: whose work is where, for each of its queues. By variant, because that may
    /// be what is varied; empty of any other lab.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<VariantName, Vec<QueuePlacement>>,
}

/// Where the work of one queue of a reference router is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePlacement {
    /// CPU that takes its packets in and forwards them.
    pub rx_cpu: u32,
    /// CPU that drains its transmit ring, where that is handed over.
    pub tx_cpu: u32,
}

impl Placement {
    /// CPU on which the DUT forwards.
    #[must_use]
    pub fn forwarding_cpu(&self) -> u32 {
        self.dut_cpu.unwrap_or(self.load_cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_says_where_queues_are_where_there_are_any() {
        let old = r#"{"load_cpu":0,"control_cpu":1}"#;
        let mut placement: Placement = serde_json::from_str(old).unwrap();
        assert!(placement.queues.is_empty());
        assert_eq!(serde_json::to_string(&placement).unwrap(), old);
        let queues = vec![QueuePlacement {
            rx_cpu: 1,
            tx_cpu: 9,
        }];
        let name = VariantName::from_label("logical cores");
        placement.queues.insert(name, queues);
        let json = serde_json::to_string(&placement).unwrap();
        assert_eq!(
            json,
            r#"{"load_cpu":0,"control_cpu":1,"queues":{"logical-cores":[{"rx_cpu":1,"tx_cpu":9}]}}"#
        );
        assert_eq!(serde_json::from_str::<Placement>(&json).unwrap(), placement);
    }

    #[test]
    fn every_tester_has_a_word_of_its_own() {
        for (tester, word) in [
            (Tester::Ebpf, "ebpf"),
            (Tester::MemoryInline, "memory-inline"),
            (Tester::MemoryThreaded, "memory-threaded"),
        ] {
            assert_eq!(tester.as_str(), word);
            let json = serde_json::to_string(&tester).unwrap();
            assert_eq!(json, format!("{word:?}"));
            assert!(tester.losses().is_empty());
        }
        assert_eq!(
            Tester::MemoryInline.to_string(),
            "a generator in memory, in the router's own thread, counted by a sink in memory, in the \
             same thread"
        );
    }
}
