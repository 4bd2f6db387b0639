//! What a report says: every text and number that the renderers need.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use fwdlab_model::{
    Conservation, Design, LabKind, LoadRecord, LoadRegime, Stratum, Tester, Traffic, VariantName,
    one_or_several, stratum,
};
use fwdlab_stats::Method;

use crate::design_form;
use crate::factorial::FactorialSection;
use crate::offered_load::OfferedLoadRow;
use crate::outcomes::Outcomes;
use crate::profile_sections::{ProfileDifference, ProfilesSection};
use crate::totals::{ConservationTotals, FlowsSection};
use crate::traffic_effects::TrafficSection;

/// Version of `report.json`.
pub const REPORT_SCHEMA_VERSION: u32 = 1;

/// A run and what follows from it.
///
/// It is a pure function of the records: no clock, no look-up of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Short name of the experiment.
    pub name: String,
    /// The question as a title.
    pub question: String,
    /// What a reader should know before the results.
    pub background: Option<String>,
    /// How far the run is.
    pub progress: Progress,
    /// Where it was measured.
    pub lab: LabSection,
    /// What the tester sent, in the regime that the lab allowed.
    #[serde(rename = "traffic", with = "one_or_several")]
    pub traffics: Vec<Traffic>,
    /// How many flows each of them makes.
    #[serde(default, with = "one_or_several")]
    pub flows: Vec<FlowsSection>,
    /// The load that the lab settled by measuring what the machine can do, where it does so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
    /// That load over what the baseline was measured to forward at most; empty where none was settled.
    #[serde(
        with = "stratum::keys",
        default,
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub load_ratios: BTreeMap<Stratum, f64>,
    /// How often, how long and in what order. Of a report that was read back it has no blocks: `progress` has them.
    #[serde(with = "design_form")]
    pub design: Design,
    /// The things that were varied.
    pub factors: Vec<FactorSection>,
    /// The combinations of levels, in the experiment's order.
    pub variants: Vec<VariantSection>,
    /// Everything that was found to differ between the variants on the DUT, by fact and variant; empty of labs
    /// whose DUT is made anew.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub differing_facts: BTreeMap<String, BTreeMap<VariantName, String>>,
    /// What came out, one entry a comparison and stratum.
    pub comparisons: Vec<ComparisonSection>,
    /// Whether effects change with the traffic, one entry a comparison and address family; empty where there is one
    /// traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic_effects: Vec<TrafficSection>,
    /// What the slices of the blocks that stand show beside their rates; none where there are no slices.
    #[serde(with = "stratum::keys")]
    pub slices: BTreeMap<Stratum, SlicesSection>,
    /// Every trial in time order, invalid ones too.
    pub trials: Vec<TrialSection>,
    /// What was lost while each variant was measured, in the experiment's order; empty where a
    /// self-clocked load lost nothing.
    pub losses: Vec<LossSection>,
    /// What the DUT's mechanisms did while each variant was measured; empty where the DUT does not count
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dut_events: Vec<EventsSection>,
    /// How busy the DUT's CPUs were while each variant was measured; empty where that was not watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dut_cpus: Vec<CpusSection>,
    /// Why rates differ; none where no profiles were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<ProfilesSection>,
    /// Where the frames of the accepted blocks went.
    #[serde(with = "stratum::keys")]
    pub conservation: BTreeMap<Stratum, Conservation>,
    /// Sums over their reasons.
    #[serde(with = "stratum::keys", default)]
    pub conservation_totals: BTreeMap<Stratum, ConservationTotals>,
    /// Time in which the load CPU was disturbed from outside; none where it never was.
    #[serde(with = "stratum::keys")]
    pub disturbance: BTreeMap<Stratum, DisturbanceSection>,
    /// Trials that other evidence than their forwarding rate speaks against.
    pub invalid: Option<InvalidSection>,
    /// What limits the results, with remedies.
    pub warnings: Vec<Warning>,
    /// How to measure it again.
    pub again: AgainSection,
}

impl Report {
    /// What was measured and is reported apart, in the experiment's order.
    pub fn strata(&self) -> impl Iterator<Item = Stratum> {
        self.traffics.iter().flat_map(Traffic::strata)
    }

    /// Whether there are several of these, so that texts have to say which one they are about.
    pub(crate) fn has_several_strata(&self) -> bool {
        self.strata().nth(1).is_some()
    }

    /// How many flows the tester sent in all in a stratum.
    pub(crate) fn flows_of(&self, stratum: Stratum) -> u32 {
        let mut flows = self.traffics.iter().zip(&self.flows);
        let found = flows.find(|(traffic, _)| traffic.name == stratum.traffic);
        found.map_or(0, |(_, flows)| flows.in_all_directions)
    }

    /// Over a column of strata.
    pub(crate) fn strata_heading(&self) -> &'static str {
        match self.traffics.iter().any(|traffic| traffic.name.is_some()) {
            true => "traffic",
            false => "family",
        }
    }

    /// The load regime under which it was measured.
    #[must_use]
    pub fn regime(&self) -> LoadRegime {
        let first = self.traffics.first();
        first.map_or(LoadRegime::SelfClocked, |traffic| traffic.load.regime())
    }

    /// The variant of that name.
    #[must_use]
    pub fn variant(&self, name: &VariantName) -> Option<&VariantSection> {
        self.variants.iter().find(|variant| &variant.name == name)
    }

    /// A variant's name for readers; its name in files where the report has no such variant.
    #[must_use]
    pub fn label<'a>(&'a self, name: &'a VariantName) -> &'a str {
        self.variant(name)
            .map_or(name.as_str(), |variant| variant.label.as_str())
    }

    /// Whether the lab could not have a variant.
    pub(crate) fn is_unavailable(&self, name: &VariantName) -> bool {
        let variant = self.variant(name);
        variant.is_some_and(|variant| variant.unavailable.is_some())
    }

    /// What the profiles say of a variant against the baseline of a comparison; none where there are none.
    fn profile_difference(
        &self,
        comparison: &ComparisonSection,
        variant: &VariantName,
    ) -> Option<&ProfileDifference> {
        let baseline = &comparison.baseline()?.variant;
        let mut differences = self.profiles.iter().flat_map(|found| &found.differences);
        differences.find(|found| {
            found.stratum == comparison.stratum
                && &found.baseline == baseline
                && &found.variant == variant
        })
    }

    /// What the profiles say of a variant, in Markdown: which functions differ, or that no block has a profile of it
    /// and its baseline. None where no profiles were taken, and where none could be used at all.
    #[must_use]
    pub fn why(&self, comparison: &ComparisonSection, variant: &VariantName) -> Option<&str> {
        if let Some(found) = self.profile_difference(comparison, variant) {
            return Some(&found.sentence);
        }
        let is_compared = comparison
            .rows
            .iter()
            .skip(1)
            .any(|row| &row.variant == variant && row.effect.is_some());
        let has_others = self
            .profiles
            .as_ref()
            .is_some_and(|found| !found.differences.is_empty());
        (is_compared && has_others)
            .then_some("no block has a usable profile of both variants (W220)")
    }

    /// That no profile could be used, and why; none where some could, or none were taken.
    #[must_use]
    pub fn no_profile_used(&self) -> Option<&str> {
        self.profiles.as_ref()?.unused.as_deref()
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Blocks with a valid measurement.
    pub measured_blocks: u32,
    /// Blocks of the plan.
    pub planned_blocks: u32,
    /// Whether no more will be measured; some blocks may have been given up.
    pub is_finished: bool,
}

/// Where it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabSection {
    /// Short name of the lab.
    pub name: String,
    /// One line from the lab file.
    pub description: Option<String>,
    /// What kind of lab.
    pub kind: LabKind,
    /// Vendor and product, where the machine says.
    pub machine: Option<String>,
    /// CPU model.
    pub cpu_model: String,
    /// Logical CPUs online.
    pub cpus: u32,
    /// Kernel release and version.
    pub kernel: String,
    /// CPU of the generator, and of DUT and sink too where they have none of their own.
    pub load_cpu: u32,
    /// CPU of DUT and sink, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dut_cpu: Option<u32>,
    /// CPU of the harness.
    pub control_cpu: u32,
    /// How frames were sent and counted.
    pub tester: Tester,
    /// Everything else that was found, by name.
    pub facts: BTreeMap<String, String>,
    /// The generator's own cost from the drop-at-ingress control, median over the blocks.
    ///
    /// Units: nanoseconds a packet.
    #[serde(with = "stratum::keys")]
    pub generator_cost_ns: BTreeMap<Stratum, f64>,
    /// Version of fwdlab that measured.
    pub fwdlab: String,
    /// Start of the first session, UTC.
    pub start: String,
    /// How many uninterrupted stretches of blocks there were.
    pub sessions: u32,
}

/// A thing that was varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorSection {
    /// Its name in the field's words.
    pub name: String,
    /// One sentence for the reader.
    pub description: Option<String>,
    /// The values it took.
    pub levels: Vec<String>,
    /// The value it had where a variant did not say.
    pub default: String,
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantSection {
    /// Its name in files.
    pub name: VariantName,
    /// Its name for readers.
    pub label: String,
    /// The level of every factor, by the factor's name.
    pub levels: BTreeMap<String, String>,
    /// The baseline that this variant is a second copy of.
    pub control_of: Option<VariantName>,
    /// Why the lab could not have it: listed, not run.
    pub unavailable: Option<String>,
}

/// A baseline and what was compared with it, in one stratum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonSection {
    /// Heading, where the experiment gives one.
    pub title: Option<String>,
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// The baseline first, then the others, in the experiment's order, without the control.
    pub rows: Vec<Row>,
    /// Earlier data of the stratum, beside which the rows stand; nothing is compared with them.
    pub references: Vec<ReferenceRow>,
    /// The baseline under another name.
    pub control: Option<ControlSection>,
    /// How many verdicts are corrected together.
    pub family_size: usize,
    /// What the factors do; none where the variants do not combine any two in all their levels.
    pub factorial: Option<FactorialSection>,
    /// What came out beside the rates.
    #[serde(flatten)]
    pub outcomes: Outcomes,
    /// The same rows with invalid trials in; empty where all trials are valid.
    pub rows_with_all_trials: Vec<Row>,
    /// The same rows and behind them the control's, with disturbed time in; empty where nothing
    /// disturbed the load CPU.
    pub rows_over_all_time: Vec<Row>,
    /// What was offered to each variant, and what that makes of its effect; empty under a self-clocked
    /// load, of which it is the outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered_load: Vec<OfferedLoadRow>,
    /// Exact text of ministat, at most seven datasets each, the baseline first.
    pub ministat: Vec<String>,
    /// Where ministat and the verdicts differ, and what ministat ignores.
    pub ministat_note: Option<String>,
    /// File name of the plot of the effects.
    pub plot: String,
}

impl ComparisonSection {
    /// The row of the baseline.
    #[must_use]
    pub fn baseline(&self) -> Option<&Row> {
        self.rows.first()
    }

    /// Whether it is known of any variant what a packet costs.
    #[must_use]
    pub fn has_costs(&self) -> bool {
        self.rows.iter().any(|row| row.cost_ns.is_some())
    }
}

/// One variant in one comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The variant.
    pub variant: VariantName,
    /// Trials that count.
    pub trials: u32,
    /// Median over the trials' observations.
    pub forwarding_rate_pps: Option<f64>,
    /// Time of a packet at that rate, in nanoseconds.
    pub cost_ns: Option<f64>,
    /// What it changes against the baseline; none for the baseline and where nothing was measured.
    pub effect: Option<Effect>,
    /// What is concluded; none where there is no effect.
    pub verdict: Option<VerdictSection>,
    /// What every method makes of the same data, the verdict's first; empty where it was not asked
    /// for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<MethodSection>,
}

/// What one method makes of an effect, in percent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodSection {
    /// Its name.
    pub method: Method,
    /// Its estimate.
    pub estimate_percent: f64,
    /// Its interval; none where it has none, or the data cannot reach the confidence.
    pub interval: Option<IntervalSection>,
    /// For this comparison alone; none where it has none.
    pub p: Option<f64>,
    /// Corrected for the comparisons made at once; none where it has none.
    pub adjusted_p: Option<f64>,
}

/// Data of an earlier session that the experiment refers to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceRow {
    /// Its name for readers.
    pub label: String,
    /// How many observations there are.
    pub observations: u32,
    /// Their median.
    pub forwarding_rate_pps: f64,
    /// Time of a packet at that rate, in nanoseconds; none where nothing was forwarded.
    pub cost_ns: Option<f64>,
    /// The file, as the experiment names it.
    pub path: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// A difference to the baseline, in percent of its forwarding rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Hodges-Lehmann estimate over the block effects.
    pub estimate_percent: f64,
    /// The interval of the direction; none where the blocks are too few for one.
    pub interval: Option<IntervalSection>,
    /// The interval of the size, compared with the threshold; none for the control.
    pub size_interval: Option<IntervalSection>,
    /// Mean over the block effects.
    pub mean_percent: f64,
    /// Probability of effects at least as clear by chance, corrected for the comparisons made at
    /// once; none where nothing was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// Standard deviation from block to block, beyond what the rounds explain, and from round to
    /// round; none where there is nothing to tell them apart.
    pub noise: Option<NoiseSection>,
    /// What the estimate means for the baseline's forwarding rate, in frames per second.
    pub rate_difference_pps: Option<f64>,
    /// What the estimate means for the baseline's cost of a packet, in nanoseconds.
    pub cost_difference_ns: Option<f64>,
    /// The effect of every block, in block order.
    pub blocks: Vec<BlockEffectSection>,
}

impl Effect {
    /// Half the interval's length, where there is one.
    #[must_use]
    pub fn half_width_percent(&self) -> Option<f64> {
        self.interval.map(IntervalSection::half_width_percent)
    }

    /// The interval of the direction; where the blocks are too few for it, that of the size, which needs one block fewer
    /// and on which the word may rest.
    #[must_use]
    pub fn shown_interval(&self) -> Option<IntervalSection> {
        self.interval.or(self.size_interval)
    }
}

/// An interval for a single comparison, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalSection {
    /// Lower end.
    pub low_percent: f64,
    /// Upper end.
    pub high_percent: f64,
    /// The confidence that it really has.
    pub confidence_percent: f64,
}

impl IntervalSection {
    /// Half its length.
    #[must_use]
    pub fn half_width_percent(self) -> f64 {
        (self.high_percent - self.low_percent) / 2.0
    }
}

/// The two components of the noise, as standard deviations in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseSection {
    /// Between fresh set-ups.
    pub between_blocks_percent: f64,
    /// Between rounds of one set-up.
    pub between_rounds_percent: f64,
}

/// What one block says about an effect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockEffectSection {
    /// Number of the block.
    pub block: u32,
    /// Median over its rounds, in percent of the baseline's forwarding rate.
    pub percent: f64,
}

/// What is concluded from an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictSection {
    /// The exclusive words.
    pub words: String,
    /// Which way the variant differs; none where they claim no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The whole finding: the words, the effect, what it makes of the baseline, and the notes.
    pub sentence: String,
    /// Whether they claim that there is an effect.
    pub shows_difference: bool,
    /// Whether they leave something open that more blocks could decide.
    pub leaves_open: bool,
    /// What the words leave open: correction for several comparisons, blocks that would decide.
    pub notes: Vec<String>,
}

impl VerdictSection {
    /// The words, and which way: `different (slower)`.
    #[must_use]
    pub fn said(&self) -> String {
        match self.direction {
            Some(direction) => format!("{} ({})", self.words, direction.word()),
            None => self.words.clone(),
        }
    }
}

/// Which way a variant differs from its baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// It forwards more.
    Faster,
    /// It forwards less.
    Slower,
}

impl Direction {
    /// `faster` or `slower`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
        }
    }
}

/// The A/A control: the baseline entered twice under another name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlSection {
    /// The second copy, with its effect; it has no verdict.
    pub row: Row,
    /// Whether the copies agree at the control's level; none where too few blocks could tell.
    pub passed: Option<bool>,
    /// Whether its interval is wider than the practical threshold on both sides of no effect, so that copies
    /// that agree say nothing.
    #[serde(default)]
    pub is_too_wide: bool,
    /// What the control says, in a sentence.
    pub sentence: String,
}

/// What the order of the slices did to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlicesSection {
    /// How many places a round has: one for every variant.
    pub places: u32,
    /// The variant after which slices differ most clearly from the others; none where the order was not
    /// random, or it cannot be judged.
    pub predecessor: Option<(VariantName, OrderEffectSection)>,
    /// The place in the round, from 1, where they do; none as above.
    pub place: Option<(u32, OrderEffectSection)>,
    /// Correlation of a slice with the next one of its variant and block, over all of them; 0 where there
    /// is none.
    pub lag_1_autocorrelation: Option<f64>,
    /// The same for each variant.
    pub lag_1_autocorrelation_by_variant: BTreeMap<VariantName, f64>,
    /// What the variation of forwarding rates is made of; none where there is nothing to split.
    pub rate_noise: Option<RateNoiseSection>,
}

/// The three components of the noise of forwarding rates, as standard deviations in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateNoiseSection {
    /// Between fresh set-ups.
    pub between_blocks_percent: f64,
    /// Between rounds of one set-up, the same for all variants.
    pub between_rounds_percent: f64,
    /// Of a single slice.
    pub between_slices_percent: f64,
}

/// What a predecessor, or a place in the round, does to slices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrderEffectSection {
    /// Against the slices after the other variants, or at the other places, in percent.
    pub effect_percent: f64,
    /// Probability that one of them is as clear by chance.
    pub p: f64,
    /// By how much the effect of a variant can be off for it, in percent.
    pub largest_bias_percent: f64,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialSection {
    /// Its session.
    pub session: u32,
    /// Its block.
    pub block: u32,
    /// The attempt at that block.
    pub attempt: u32,
    /// Place of its first slice in the block's first round, from 0.
    pub order: u32,
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// Start of its first slice, UTC.
    pub start: String,
    /// The observation.
    pub forwarding_rate_pps: f64,
    /// What was offered while it was measured, in frames per second; none where no time was measured.
    pub offered_load_pps: Option<f64>,
    /// Frames that were dropped, for whatever reason.
    pub dropped_frames: u64,
    /// CPU time that the hypervisor took from the load CPU, in percent of the measured time; none as above.
    pub steal_percent: Option<f64>,
    /// The calibration loop's time on the load CPU, over its time where nothing disturbs it; none where it
    /// did not run.
    pub calibration_ratio: Option<f64>,
    /// The part of the measured time in which something else slowed the load CPU, in percent; none as for
    /// steal.
    pub disturbed_percent: Option<f64>,
    /// Whether the verdicts rest on it: its whole block is valid and was not cut short.
    pub counts: bool,
    /// What speaks against it; empty where it is valid.
    pub invalid: Vec<String>,
}

/// What became of the frames while one variant was measured: in the slices of all blocks that stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossSection {
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// Frames the tester sent.
    pub offered_frames: u64,
    /// Frames that reached the sink.
    pub forwarded_frames: u64,
    /// Frames dropped, for whatever reason.
    #[serde(default)]
    pub dropped_frames: u64,
    /// The part of the offered frames that was dropped; none where none was offered.
    ///
    /// The counters are read one after the other under load, so this is not quite what the forwarded
    /// frames leave.
    #[serde(default)]
    pub dropped_percent: Option<f64>,
    /// Frames dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Frames that the DUT's kernel dropped in samples outside the slices, by its own reason.
    pub kernel_drop_reasons: BTreeMap<String, u64>,
}

/// How busy the DUT's CPUs were in the slices of a variant, those that had something to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpusSection {
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// By CPU.
    pub cpus: Vec<CpuSection>,
}

/// What a CPU did with its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuSection {
    /// The CPU.
    pub cpu: u32,
    /// How long it was watched, in seconds.
    pub watched_s: f64,
    /// Its busy time, interrupts included, in percent of that.
    pub busy_percent: f64,
    /// Its time in interrupts, those of software included, in percent.
    pub interrupts_percent: f64,
    /// What the hypervisor took, in percent.
    pub stolen_percent: f64,
}

/// What the DUT's mechanisms did while one variant was measured: in the slices of all blocks that stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventsSection {
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// How often each of them happened.
    pub events: BTreeMap<String, u64>,
    /// How often each of them happened for each packet that the DUT took; empty where it took none.
    #[serde(default)]
    pub per_packet: BTreeMap<String, f64>,
}

impl EventsSection {
    /// The event that is counted for every packet which the DUT takes.
    pub const RECEIVED: &str = "received";

    pub(crate) fn new(
        variant: VariantName,
        stratum: Stratum,
        events: BTreeMap<String, u64>,
    ) -> Self {
        let packets = events.get(Self::RECEIVED).copied().unwrap_or(0);
        let rates = events.iter().filter(|_| packets > 0);
        Self {
            per_packet: rates
                .map(|(event, times)| (event.clone(), *times as f64 / packets as f64))
                .collect(),
            variant,
            stratum,
            events,
        }
    }
}

/// How much of the measured time was disturbed, as the calibration loop on the load CPU tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisturbanceSection {
    /// The disturbed part, over the blocks that stand.
    pub percent: f64,
    /// Blocks of which too little was undisturbed, so that their rates rest on all of the time.
    pub blocks_over_all_time: Vec<u32>,
    /// Blocks whose rates therefore rest on all of the time in which nobody else had the load's CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks_over_time_alone: Vec<u32>,
}

/// Trials that other evidence than their forwarding rate speaks against.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidSection {
    /// One entry a variant and stratum that was run, in the experiment's order.
    pub rows: Vec<InvalidRow>,
}

/// The invalid trials of one variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidRow {
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// All trials, retried ones too.
    pub trials: u32,
    /// Those that are invalid.
    pub invalid: u32,
    /// What speaks against them, each once, with the blocks.
    pub reasons: Vec<String>,
}

/// Something that limits the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable code.
    pub code: String,
    /// What it is about; none where it is the whole run.
    pub subjects: Vec<String>,
    /// What is the case.
    pub text: String,
    /// What can be done about it, where the text does not say.
    pub remedy: Option<String>,
    /// How much it comes to, where one figure says so: what effects can be off by, how far an estimate moves, or
    /// how large it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
}

impl Warning {
    pub(crate) fn new(
        code: &str,
        subjects: impl IntoIterator<Item = String>,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            code: code.to_owned(),
            subjects: subjects.into_iter().collect(),
            text: text.into(),
            remedy: Some(remedy.into()),
            percent: None,
        }
    }
}

/// How to measure it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgainSection {
    /// The command.
    pub command: String,
    /// SHA-256 of the resolved experiment.
    pub experiment_hash: String,
}
