//! The experiment and its lab with every default filled in: what a run does, and what is hashed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::binding::Binding;
use crate::digest::sha256;
use crate::forwarder::{Forwarder, Forwards};
use crate::hosts::Hosts;
use crate::kind::LabKind;
use crate::load::Load;
use crate::profile::Profiling;
use crate::stratum::{self, Stratum, TrafficName};
use crate::words::{AddressFamily, Level, LoadRegime, VariantName};
use crate::zipf::Zipf;

/// An experiment whose defaults, variants, comparisons and lab are all settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolved {
    /// Short name, from the experiment file's name; the first folder under `results/`.
    pub name: String,
    /// The question as a title: "Impact of … on …".
    pub question: String,
    /// What a reader should know before the results.
    pub background: Option<String>,
    /// The things that are varied, and behind them what is held at one level.
    pub factors: Vec<Factor>,
    /// The combinations of levels that are measured, the A/A control last where there is one.
    pub variants: Vec<Variant>,
    /// What is compared with what.
    pub comparisons: Vec<Comparison>,
    /// What the tester sends: one without a name, or several with names, alike in direction and load regime.
    #[serde(rename = "traffic", with = "traffics")]
    pub traffics: Vec<Traffic>,
    /// How often, how long and in what order.
    pub design: Design,
    /// The profiles that are taken, where any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiling: Option<Profiling>,
    /// Where it is measured and how each factor is set there.
    pub lab: Lab,
    /// Earlier data that the report shows beside the results.
    pub references: Vec<Reference>,
}

impl Resolved {
    /// SHA-256 of everything that makes this experiment this experiment, in hexadecimal.
    ///
    /// A seed that was drawn, not given, is no part of it, so that two runs of one file agree.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hashed = self.clone();
        if hashed.design.seed_was_drawn {
            hashed.design.seed = 0;
        }
        let bytes = serde_json::to_vec(&hashed).expect("a resolved experiment is plain data");
        sha256(&bytes)
    }

    /// The factors that are varied by rebooting the DUT: none of its blocks can have rounds.
    #[must_use]
    pub fn rebooting_factors(&self) -> Vec<&Factor> {
        let reboots = |factor: &&Factor| {
            let binding = self.lab.bindings.get(&factor.name);
            factor.is_varied() && binding.is_some_and(Binding::needs_reboot)
        };
        self.factors.iter().filter(reboots).collect()
    }

    /// Whether each variant is set once a block and measured whole: another level takes a boot, or a forwarder in user
    /// space has to start.
    #[must_use]
    pub fn takes_whole_measurements(&self) -> bool {
        !self.rebooting_factors().is_empty() || self.has_forwarder()
    }

    /// Whether any variant may have a forwarder in user space.
    #[must_use]
    pub fn has_forwarder(&self) -> bool {
        self.lab.bindings.values().any(Binding::has_forwarder)
    }

    /// What comes out of the DUT with a variant.
    #[must_use]
    pub fn forwards(&self, variant: &Variant) -> Forwards {
        let forwarder = forwarder_of(&self.lab.bindings, variant);
        forwarder.map_or(Forwards::default(), |forwarder| forwarder.forwards)
    }

    /// What is measured and reported apart, in the order of the file: each address family of each traffic.
    pub fn strata(&self) -> impl Iterator<Item = Stratum> {
        self.traffics.iter().flat_map(Traffic::strata)
    }

    /// Whether there are several of these, so that texts have to say which one they are about.
    #[must_use]
    pub fn has_several_strata(&self) -> bool {
        self.strata().nth(1).is_some()
    }

    /// The address families that any traffic has, each once.
    #[must_use]
    pub fn families(&self) -> Vec<AddressFamily> {
        let families: BTreeSet<_> = self.strata().map(|stratum| stratum.family).collect();
        families.into_iter().collect()
    }

    /// What is sent in a stratum of this experiment.
    ///
    /// # Panics
    /// Where no traffic of this experiment has the stratum's name. Strata that come from files are compared with
    /// [`strata`](Self::strata) first.
    #[must_use]
    pub fn traffic(&self, stratum: Stratum) -> &Traffic {
        let mut traffics = self.traffics.iter();
        traffics
            .find(|traffic| traffic.name == stratum.traffic)
            .unwrap_or_else(|| panic!("no traffic of {} is that of {stratum}", self.name))
    }

    /// Through which of the DUT's ports frames come in, which is the same for all traffics.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.first_traffic().direction
    }

    /// The load regime, which is the same for all traffics.
    #[must_use]
    pub fn regime(&self) -> LoadRegime {
        self.first_traffic().load.regime()
    }

    fn first_traffic(&self) -> &Traffic {
        self.traffics.first().expect("an experiment has a traffic")
    }

    /// The variant of that name.
    #[must_use]
    pub fn variant(&self, name: &VariantName) -> Option<&Variant> {
        self.variants.iter().find(|variant| &variant.name == name)
    }
}

/// The forwarder in user space that a variant has; none where the kernel forwards.
pub(crate) fn forwarder_of<'b>(
    bindings: &'b BTreeMap<String, Binding>,
    variant: &Variant,
) -> Option<&'b Forwarder> {
    bindings.iter().find_map(|(factor, binding)| {
        let Binding::Forwarder(levels) = binding else {
            return None;
        };
        let level = variant.levels.get(factor)?;
        levels.get(&level.to_string())?.as_ref()
    })
}

/// The traffics of an experiment, which are alike in direction and load regime.
mod traffics {
    use serde::{Deserializer, de};

    use super::Traffic;
    pub(super) use crate::one_or_several::serialize;

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Traffic>, D::Error> {
        let traffics: Vec<Traffic> = crate::one_or_several::deserialize(deserializer)?;
        let Some(first) = traffics.first() else {
            return Err(de::Error::custom("an experiment without a traffic"));
        };
        let is_alike = |of: &Traffic| {
            (of.direction, of.load.regime()) == (first.direction, first.load.regime())
        };
        if !traffics.iter().all(is_alike) {
            let message = "the traffics of an experiment differ in direction or load regime";
            return Err(de::Error::custom(message));
        }
        let names = || traffics.iter().map(|traffic| traffic.name);
        let is_twice = |(next, name)| names().skip(next).any(|other| other == name);
        if (1..).zip(names()).any(is_twice) {
            return Err(de::Error::custom("two traffics have one name"));
        }
        if traffics.len() > 1 && names().any(|name| name.is_none()) {
            return Err(de::Error::custom("one of several traffics has no name"));
        }
        Ok(traffics)
    }
}

/// A thing that is varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name in the field's words.
    pub name: String,
    /// One sentence for the reader.
    pub description: Option<String>,
    /// The values it takes.
    pub levels: Vec<Level>,
    /// The value it has where a variant does not say.
    pub default: Level,
}

impl Factor {
    /// Whether it takes more than one level; what has a single one is held constant.
    #[must_use]
    pub fn is_varied(&self) -> bool {
        self.levels.len() > 1
    }
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name in files.
    pub name: VariantName,
    /// Its name for readers.
    pub label: String,
    /// The level of every factor, by the factor's name.
    pub levels: BTreeMap<String, Level>,
    /// The baseline that this variant is a second copy of: the A/A control.
    pub control_of: Option<VariantName>,
    /// Why the lab cannot have it: it is listed and not run.
    pub unavailable: Option<String>,
}

/// A baseline and the variants compared with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// Heading in the report; the only comparison of an experiment may go without.
    pub title: Option<String>,
    /// What the others are compared with.
    pub baseline: VariantName,
    /// The others, without the A/A control.
    pub variants: Vec<VariantName>,
}

/// What somebody measured earlier, elsewhere or otherwise: shown, never compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Its name for readers.
    pub label: String,
    /// Its observations, by stratum.
    #[serde(rename = "families", with = "stratum::keys")]
    pub strata: BTreeMap<Stratum, ReferenceData>,
}

/// The observations of a file of earlier data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceData {
    /// The file, as the experiment names it.
    pub path: String,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Frames per second, in the order of the file.
    pub observations_pps: Vec<f64>,
}

/// What the tester sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Its name, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<TrafficName>,
    /// The address families, measured one after the other inside a block.
    pub families: Vec<AddressFamily>,
    /// The sizes of the frames, sent in turn.
    pub frame_sizes: Vec<FrameSize>,
    /// Source addresses.
    pub sources: u32,
    /// Destination addresses.
    pub destinations: u32,
    /// Source ports of UDP.
    pub source_ports: PortRange,
    /// Destination ports of UDP.
    pub destination_ports: PortRange,
    /// How heavy flows are, where they are not sent in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zipf: Option<Zipf>,
    /// The VLAN whose tag every frame has (IEEE 802.1Q).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Where each family's addresses begin, where the experiment says; the lab chooses otherwise.
    pub first_addresses: BTreeMap<AddressFamily, FirstAddresses>,
    /// Through which of the DUT's ports the frames come in.
    pub direction: Direction,
    /// How much of it.
    #[serde(flatten)]
    pub load: Load,
    /// Frames that a paced generator sends back to back; 1 is an even spacing.
    pub burst_frames: u32,
}

impl Default for Traffic {
    /// What is sent where an experiment says nothing: 2000 IPv4 flows of the smallest frames,
    /// self-clocked.
    fn default() -> Self {
        let port = PortRange {
            first: 2000,
            last: 2000,
        };
        Self {
            name: None,
            families: vec![AddressFamily::Inet],
            frame_sizes: vec![FrameSize {
                bytes: 64,
                share: 1,
            }],
            sources: 20,
            destinations: 100,
            source_ports: port,
            destination_ports: port,
            zipf: None,
            vlan: None,
            first_addresses: BTreeMap::new(),
            direction: Direction::Forward,
            load: Load::SelfClocked,
            burst_frames: 1,
        }
    }
}

/// A size of frame and how often it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameSize {
    /// Ethernet bytes including FCS, but for a VLAN tag; 64 means the smallest valid frame of the family.
    pub bytes: u16,
    /// Frames of this size in each turn of all sizes.
    pub share: u16,
}

/// Consecutive ports of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenPorts")]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last, not below the first.
    pub last: u16,
}

#[derive(Deserialize)]
struct WrittenPorts {
    first: u16,
    last: u16,
}

impl TryFrom<WrittenPorts> for PortRange {
    type Error = String;

    fn try_from(WrittenPorts { first, last }: WrittenPorts) -> Result<Self, String> {
        if last < first {
            return Err(format!(
                "no ports: the last, {last}, is below the first, {first}"
            ));
        }
        Ok(Self { first, last })
    }
}

impl PortRange {
    /// How many ports there are.
    #[must_use]
    pub fn count(self) -> u32 {
        u32::from(self.last - self.first) + 1
    }
}

/// Where one family's ranges of addresses begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstAddresses {
    /// The first source address.
    pub source: Option<IpAddr>,
    /// The first destination address.
    pub destination: Option<IpAddr>,
}

/// Through which of the DUT's ports frames come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Through the one that faces the generator.
    Forward,
    /// Through both, each flow in both directions.
    Both,
}

impl Traffic {
    /// Its strata, one for each address family.
    pub fn strata(&self) -> impl Iterator<Item = Stratum> {
        let families = self.families.iter();
        families.map(|&family| Stratum {
            traffic: self.name,
            family,
        })
    }

    /// How many flows the tester sends in each direction.
    #[must_use]
    pub fn flows(&self) -> u32 {
        self.sources
            .saturating_mul(self.destinations)
            .saturating_mul(self.source_ports.count())
            .saturating_mul(self.destination_ports.count())
    }

    /// In how many directions it sends them.
    #[must_use]
    pub fn directions(&self) -> u32 {
        match self.direction {
            Direction::Forward => 1,
            Direction::Both => 2,
        }
    }

    /// How many flows that makes in all: a flow and the one that answers it are two.
    #[must_use]
    pub fn flows_in_all_directions(&self) -> u32 {
        self.flows().saturating_mul(self.directions())
    }
}

/// How often, how long and in what order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Fresh set-ups, each measuring every variant.
    pub blocks: u32,
    /// Rounds in a block; every variant has one slice a round. It is one where a switch needs a reboot.
    pub rounds: u32,
    /// Length of a slice.
    pub slice_ms: u32,
    /// What is discarded after each switch.
    pub settle_ms: u32,
    /// Load before the first round of a block, the same for all variants.
    pub warm_up_ms: u32,
    /// How the slices of a round follow each other.
    pub order: Order,
    /// Seed of all orders.
    pub seed: u64,
    /// Whether the seed was drawn because the file gave none.
    pub seed_was_drawn: bool,
    /// The practical threshold d, in percent: smaller effects are treated as irrelevant.
    pub threshold_percent: f64,
    /// The same of CPU time a packet, in percent.
    #[serde(
        default = "usual_cpu_threshold",
        skip_serializing_if = "is_usual_cpu_threshold"
    )]
    pub cpu_threshold_percent: f64,
    /// Confidence of the verdicts, in percent.
    pub confidence_percent: f64,
}

impl Default for Design {
    /// What an experiment file has where it does not say.
    fn default() -> Self {
        Self {
            blocks: 8,
            rounds: 10,
            slice_ms: 100,
            settle_ms: 50,
            warm_up_ms: 200,
            order: Order::default(),
            seed: 0,
            seed_was_drawn: false,
            threshold_percent: 1.0,
            cpu_threshold_percent: CPU_THRESHOLD_PERCENT,
            confidence_percent: 95.0,
        }
    }
}

/// The practical threshold of CPU time a packet where none is given, in percent.
///
/// Busy time is counted in samples of the kernel's clock, and scatters more than frames do.
pub const CPU_THRESHOLD_PERCENT: f64 = 5.0;

fn usual_cpu_threshold() -> f64 {
    CPU_THRESHOLD_PERCENT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_usual_cpu_threshold(percent: &f64) -> bool {
    percent.total_cmp(&CPU_THRESHOLD_PERCENT).is_eq()
}

/// The part of a slice that must count before its forwarding rate stands by itself.
const COUNTED_RATIO_MIN: f64 = 0.2;

impl Design {
    /// Slices that count for less are taken together with the next ones, in seconds.
    #[must_use]
    pub fn shortest_counted_s(&self) -> f64 {
        f64::from(self.slice_ms) / 1000.0 * COUNTED_RATIO_MIN
    }
}

/// How the variants of a round follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// At random, balanced for the predecessor: what the verdicts rest on.
    #[default]
    Random,
    /// As the experiment lists them, in every round of every block.
    InSequence,
}

/// Where it is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lab {
    /// Short name, from the lab file's name.
    pub name: String,
    /// One line for the reader.
    pub description: Option<String>,
    /// What kind of lab.
    pub kind: LabKind,
    /// CPU on which generator, DUT and sink take turns; the lab chooses where none is given.
    pub load_cpu: Option<u32>,
    /// CPU on which the DUT forwards, where it is another one than the generator's.
    pub dut_cpu: Option<u32>,
    /// CPU of the harness.
    pub control_cpu: Option<u32>,
    /// Speed of the links, in Gbit/s, where they have one.
    pub link_gbps: Option<f64>,
    /// What a router is besides its knobs; every lab of that kind says, and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterLab>,
    /// The hosts, where tester and DUT are such; every lab of Linux hosts says, and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Who is notified when a run has ended; no part of what is measured.
    #[serde(skip)]
    pub notify: Notify,
    /// How each factor of the experiment is set, by the factor's name.
    pub bindings: BTreeMap<String, Binding>,
}

impl Lab {
    /// A lab of this machine's kernel that leaves everything to itself.
    #[must_use]
    pub fn netns(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: None,
            kind: LabKind::Netns,
            load_cpu: None,
            dut_cpu: None,
            control_cpu: None,
            link_gbps: None,
            router: None,
            hosts: None,
            notify: Notify::default(),
            bindings: BTreeMap::new(),
        }
    }
}

/// Who is notified when a run has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notify {
    /// A program of the user's on this machine, whose standard input is the message; no shell sees it.
    pub command: Option<Vec<String>>,
    /// Where the message is posted as JSON. It may hold a secret.
    pub webhook: Option<String>,
}

/// What a reference router is besides its knobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouterLab {
    /// Pairs of a receive and a transmit queue.
    pub queues: u32,
    /// In whose thread the tester sends and counts.
    pub tester: RouterTester,
    /// Under overload, offered load / what the baseline forwards at most.
    pub overload_ratio: f64,
}

impl Default for RouterLab {
    fn default() -> Self {
        Self {
            queues: 1,
            tester: RouterTester::Auto,
            overload_ratio: 1.25,
        }
    }
}

/// In whose thread the tester of a reference router sends and counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouterTester {
    /// In its own where the load regime asks for one and the CPUs allow it, else in the router's.
    #[default]
    Auto,
    /// In the router's: both take turns.
    Inline,
    /// In its own, on CPUs of its own.
    Threaded,
}
