//! From the records of a run to its report.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_archive::{ArchiveWarning, Attempt, Loaded};
use fwdlab_model::record::Fate;
use fwdlab_model::{
    Conservation, DutReading, Forwards, Load, LoadRegime, Order, RateBasis, Record, Resolved,
    SessionRecord, Stratum, Tester, Traffic, TrialRecord, Variant, VariantName,
};
use fwdlab_stats::median;
use fwdlab_stats::ministat::Dialect;

use crate::causes::PART_OF_A_PACKET;
use crate::checks;
use crate::competition;
use crate::error::ReportError;
use crate::evidence::{self, Scope};
use crate::judge::judge;
use crate::profile_sections::ProfilesSection;
use crate::profiles::{self, ProfileEvidence};
use crate::report::{
    AgainSection, ComparisonSection, CpuSection, CpusSection, DisturbanceSection, EventsSection,
    FactorSection, InvalidRow, InvalidSection, LabSection, LossSection, Progress,
    REPORT_SCHEMA_VERSION, Report, SlicesSection, TrialSection, VariantSection, Warning,
};
use crate::text;
use crate::totals::{FlowsSection, conservation_totals, load_ratios};
use crate::traffic_effects;
use crate::wrong_frames;

/// Under which readers see the frames that the tester's own port did not transmit.
const NOT_TRANSMITTED: &str = "not transmitted by the tester";

/// What the slices of each stratum say.
type SliceSections = BTreeMap<Stratum, SlicesSection>;

impl Report {
    /// Builds the report of a run, finished or not.
    ///
    /// # Errors
    /// [`ReportError::NoSession`], and [`ReportError::Statistics`] for records that contradict
    /// themselves.
    pub fn build(loaded: &Loaded) -> Result<Self, ReportError> {
        Self::with_evidence(loaded, ProfileEvidence::read(loaded).as_ref())
    }

    /// The same, of profiles that were read already.
    pub(crate) fn with_evidence(
        loaded: &Loaded,
        evidence: Option<&ProfileEvidence<'_>>,
    ) -> Result<Self, ReportError> {
        let mut slices = SliceSections::new();
        let mut warnings = Vec::new();
        let resolved = &loaded.resolved;
        let all: Vec<&VariantName> = resolved.variants.iter().map(|v| &v.name).collect();
        for stratum in resolved.strata() {
            let (section, found) = checks::slices(loaded, stratum, &all)?;
            slices.extend(section.map(|section| (stratum, section)));
            warnings.extend(found);
        }
        let (profiles, of_profiles) = profiles::section(loaded, evidence);
        warnings.extend(of_profiles);
        Self::assemble(loaded, slices, profiles, warnings)
    }

    /// The report but for what takes long to reckon, the order of the slices and the profiles: what can be
    /// made again with every block.
    pub(crate) fn so_far(loaded: &Loaded) -> Result<Self, ReportError> {
        Self::assemble(loaded, SliceSections::new(), None, Vec::new())
    }

    fn assemble(
        loaded: &Loaded,
        slices: SliceSections,
        profiles: Option<ProfilesSection>,
        of_these: Vec<Warning>,
    ) -> Result<Self, ReportError> {
        let resolved = &loaded.resolved;
        let session = loaded.sessions.first().ok_or(ReportError::NoSession)?;
        let progress = progress(loaded);
        let mut warnings = run_warnings(loaded, progress);
        let mut comparisons: Vec<ComparisonSection> = Vec::new();
        let several = resolved.comparisons.len() > 1 || resolved.has_several_strata();
        for (index, comparison) in resolved.comparisons.iter().enumerate() {
            for stratum in resolved.strata() {
                let plot = if several {
                    format!("effects-{}-{stratum}.svg", index + 1)
                } else {
                    "effects.svg".to_owned()
                };
                let (section, found) =
                    judge(loaded, comparison, stratum, Dialect::default(), plot)?;
                comparisons.push(section);
                warnings.extend(found);
            }
        }
        let (traffic_effects, found) =
            traffic_effects::sections(resolved, &comparisons).map_err(|source| {
                ReportError::Statistics {
                    comparison: "effects by traffic".to_owned(),
                    source,
                }
            })?;
        warnings.extend(found);
        warnings.extend(of_these);
        let warnings = merged(warnings);
        let conservation = conservation(loaded);
        Ok(Self {
            schema: REPORT_SCHEMA_VERSION,
            name: resolved.name.clone(),
            question: text::one_line(&resolved.question),
            background: resolved.background.clone(),
            progress,
            lab: lab_section(loaded, session),
            traffics: measured_traffics(loaded),
            flows: resolved.traffics.iter().map(FlowsSection::new).collect(),
            load: session.load.clone(),
            load_ratios: load_ratios(session.load.as_ref()),
            design: resolved.design.clone(),
            factors: resolved.factors.iter().map(factor_section).collect(),
            variants: resolved.variants.iter().map(variant_section).collect(),
            differing_facts: differing_facts(&loaded.records),
            comparisons,
            traffic_effects,
            slices,
            trials: trial_sections(loaded),
            losses: losses(loaded),
            dut_events: dut_events(loaded),
            dut_cpus: dut_cpus(loaded),
            profiles,
            conservation_totals: conservation_totals(&conservation),
            conservation,
            disturbance: disturbance(loaded),
            invalid: invalid_section(loaded),
            warnings,
            again: AgainSection {
                // The same files, the same orders, another directory.
                command: format!("{} --seed {} --new", command(session), loaded.plan.seed),
                experiment_hash: loaded.hash.clone(),
            },
        })
    }
}

/// What the last block found to differ between the variants, by fact.
fn differing_facts(records: &[Record]) -> BTreeMap<String, BTreeMap<VariantName, String>> {
    let blocks = records.iter().rev().filter_map(|record| match record {
        Record::Block(block) if !block.differing_facts.is_empty() => Some(&block.differing_facts),
        _ => None,
    });
    let mut by_fact: BTreeMap<String, BTreeMap<VariantName, String>> = BTreeMap::new();
    for (variant, facts) in blocks.take(1).flatten() {
        for (fact, value) in facts {
            let values = by_fact.entry(fact.clone()).or_default();
            values.insert(variant.clone(), value.clone());
        }
    }
    by_fact
}

/// The command line that began a session, without the options that are not recorded.
pub(crate) fn command(session: &SessionRecord) -> String {
    let experiment = shell_word(&session.experiment_path);
    let lab = session.lab_path.as_ref();
    let lab = lab.map_or_else(String::new, |path| format!(" --lab {}", shell_word(path)));
    format!("fwdlab run {experiment}{lab}")
}

/// A word as a POSIX shell takes it literally.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |character: char| {
        character.is_alphanumeric() || matches!(character, '.' | '_' | '-' | '/' | '+' | ',' | '@')
    };
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", text::one_line(word).replace('\'', r"'\''"))
    }
}

fn progress(loaded: &Loaded) -> Progress {
    let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let measured_blocks = number(loaded.accepted().len());
    let planned_blocks = number(loaded.plan.blocks.len());
    Progress {
        measured_blocks,
        planned_blocks,
        is_finished: loaded.finished.is_some() || measured_blocks == planned_blocks,
    }
}

/// One warning for all subjects of which the same is to be said.
fn merged(warnings: Vec<Warning>) -> Vec<Warning> {
    let mut merged: Vec<Warning> = Vec::new();
    for warning in warnings {
        let same = |other: &&mut Warning| {
            (&other.code, &other.text, &other.remedy)
                == (&warning.code, &warning.text, &warning.remedy)
        };
        let Some(other) = merged.iter_mut().find(same) else {
            merged.push(warning);
            continue;
        };
        for subject in warning.subjects {
            if !other.subjects.contains(&subject) {
                other.subjects.push(subject);
            }
        }
    }
    merged
}

fn run_warnings(loaded: &Loaded, progress: Progress) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if !progress.is_finished {
        warnings.push(Warning::new(
            "W201",
            None,
            format!(
                "the run is not finished: {} of {} blocks are measured",
                progress.measured_blocks, progress.planned_blocks
            ),
            "run the same command again; it goes on with the next block",
        ));
    }
    let given_up = loaded.blocks_without_accepted();
    if progress.is_finished && !given_up.is_empty() {
        let blocks: Vec<String> = given_up.iter().map(ToString::to_string).collect();
        warnings.push(Warning::new(
            "W208",
            None,
            format!(
                "given up, because every attempt was invalid: block {}",
                blocks.join(", ")
            ),
            "remove what made the trials invalid and measure again",
        ));
    }
    let is_recorded = |block: &u32| {
        let mut attempts = loaded.attempts.iter();
        attempts.any(|attempt| attempt.record.block == *block)
    };
    let finished = loaded.finished.iter();
    let measured = finished.flat_map(|run| run.accepted_blocks.iter().chain(&run.given_up_blocks));
    let missing = measured.filter(|block| !is_recorded(block));
    let blocks: Vec<String> = missing.map(ToString::to_string).collect();
    if !blocks.is_empty() {
        warnings.push(Warning::new(
            "W224",
            None,
            format!(
                "the run is finished, and trials.jsonl has no record of block {}",
                blocks.join(", ")
            ),
            "bring the records back from a copy; `fwdlab lint` says what else does not agree",
        ));
    }
    for warning in &loaded.warnings {
        // Its place is a path on the machine that reads, so it is said in other words.
        if let ArchiveWarning::TornLine { bytes, .. } = warning {
            warnings.push(Warning::new(
                "W209",
                Some("trials.jsonl".to_owned()),
                format!("the last line was cut short ({bytes} bytes) and does not count"),
                "nothing is lost but the block that ran; it is measured again",
            ));
        }
    }
    if loaded.sessions.len() > 1 {
        warnings.push(Warning::new(
            "W202",
            None,
            format!(
                "the blocks come from {} sessions; forwarding rates of different sessions can \
                 differ, effects inside a block do not suffer",
                loaded.sessions.len()
            ),
            "compare effects, not forwarding rates, across sessions",
        ));
    }
    for (source, sessions) in noise(loaded) {
        let remedy = if source.contains("virtual machine") {
            "measure on bare metal, or rely on the intervals, which include this noise"
        } else if source.contains("load average") {
            "wait until it has ended and measure again: the intervals cover only what varies from block to block"
        } else if source.contains("tunables:") {
            "prove in another way that it does something (a command with a check), or an effect of nothing may be one that was \
             never there"
        } else {
            "remove it and measure again, or rely on the intervals, which include this noise"
        };
        warnings.push(Warning::new(
            "W203",
            ["lab".to_owned()],
            text::one_line(source) + &sessions,
            remedy,
        ));
    }
    if let Some(tester) = tester_of(loaded).filter(|tester| !tester.losses().is_empty()) {
        let (what, what_to_do) = if tester == Tester::PktGen {
            (
                "measured with netmap's pkt-gen: frames were counted and not checked".to_owned(),
                "have fwdlab's own tester send and check them where that matters",
            )
        } else if loaded.resolved.lab.kind.is_remote() {
            (
                format!(
                    "frames were sent by {}, because eBPF programs could not send from the tester's port: less was \
                     offered than could be",
                    tester.sender()
                ),
                "see what the run said of it, and whether the port's driver takes XDP programs",
            )
        } else {
            (
                format!(
                    "measured without eBPF programs: frames were sent by {} and counted by {}, which \
                     costs more and is {PART_OF_A_PACKET}, so that the same effect is a smaller part",
                    tester.sender(),
                    tester.sink()
                ),
                "run it as root",
            )
        };
        warnings.push(Warning::new("W213", ["lab".to_owned()], what, what_to_do));
    }
    warnings.extend(other_passage(&loaded.resolved));
    warnings.extend(wrong_frames::warnings(loaded));
    for variant in &loaded.resolved.variants {
        if let Some(reason) = &variant.unavailable {
            warnings.push(Warning::new(
                "W204",
                Some(text::one_line(&variant.label)),
                format!("not run: {}", text::one_line(reason)),
                "run it in a lab that can have this variant",
            ));
        }
    }
    for (stratum, disturbance) in disturbance(loaded) {
        let of_all_time = "disturbed time too";
        let of_time_alone = "disturbed time too, but for what other programs had";
        for (blocks, on_what) in [
            (&disturbance.blocks_over_all_time, of_all_time),
            (&disturbance.blocks_over_time_alone, of_time_alone),
        ] {
            if blocks.is_empty() {
                continue;
            }
            let blocks: Vec<String> = blocks.iter().map(ToString::to_string).collect();
            warnings.push(Warning::new(
                "W211",
                (loaded.resolved.has_several_strata()).then(|| stratum.label()),
                format!(
                    "the load CPU was disturbed for so long that the rates of some blocks rest on \
                     {on_what}: block {}",
                    blocks.join(", ")
                ),
                "measure at a quieter time, or on a machine of one's own",
            ));
        }
    }
    warnings.extend(competition::warnings(loaded));
    warnings.extend(clock_steps(loaded));
    if loaded.resolved.design.order == Order::InSequence {
        warnings.push(Warning::new(
            "W212",
            None,
            "the order of the slices was not random: what drifts inside a round, or lingers from one \
             variant to the next, falls on the same variant every time and reads as its effect, and no \
             check can tell it from that",
            "measure in random order, which the intervals and verdicts rest on",
        ));
    }
    let has_control = loaded
        .resolved
        .variants
        .iter()
        .any(|variant| variant.control_of.is_some());
    if !has_control {
        warnings.push(Warning::new(
            "W207",
            None,
            "there is no A/A control, so nothing shows how large an effect this lab finds where \
             there is none",
            "enter the baseline a second time as the control",
        ));
    }
    warnings
}

/// Sources of noise, those that differ in figures alone as one: the last in order, and what to add where there are several.
fn noise(loaded: &Loaded) -> Vec<(&String, String)> {
    let sessions = loaded.sessions.iter();
    let sources: BTreeSet<&String> = sessions
        .flat_map(|session| &session.environment.noise_sources)
        .collect();
    let mut alike: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for source in sources {
        let words = source.replace(
            |character: char| character.is_ascii_digit() || character == '.',
            "",
        );
        alike.entry(words).or_default().push(source);
    }
    let mut shown: Vec<(&String, String)> = alike
        .into_values()
        .map(|sources| {
            let more = match sources.len() - 1 {
                0 => String::new(),
                1 => "; alike in another session".to_owned(),
                others => format!("; alike in {others} other sessions"),
            };
            (sources[sources.len() - 1], more)
        })
        .collect();
    shown.sort_unstable();
    shown
}

/// The blocks in which the wall clock was set.
fn clock_steps(loaded: &Loaded) -> Option<Warning> {
    let steps = loaded.attempts.iter().filter_map(|attempt| {
        let step_s = attempt.record.clock_step_s?;
        Some(format!("{step_s:+.1} s in block {}", attempt.record.block))
    });
    let steps: Vec<String> = steps.collect();
    (!steps.is_empty()).then(|| {
        Warning::new(
            "W227",
            None,
            format!(
                "the system clock was changed during the run ({}); timestamps in the records may be out of order",
                steps.join(", ")
            ),
            "no action needed: rates and lengths of slices are from a clock that nobody sets",
        )
    })
}

/// How frames were sent and counted; the same in all sessions, or they could not go on. Between hosts it shows in the
/// blocks.
fn tester_of(loaded: &Loaded) -> Option<Tester> {
    let mut attempts = loaded.attempts.iter();
    let of_block = attempts.find_map(|attempt| attempt.record.tester);
    of_block.or_else(|| Some(loaded.sessions.first()?.environment.tester))
}

fn lab_section(loaded: &Loaded, session: &SessionRecord) -> LabSection {
    let lab = &loaded.resolved.lab;
    let environment = &session.environment;
    LabSection {
        name: lab.name.clone(),
        description: lab.description.as_deref().map(text::one_line),
        kind: lab.kind,
        machine: environment.machine.as_deref().map(text::one_line),
        cpu_model: text::one_line(&environment.cpu_model),
        cpus: environment.cpus,
        kernel: text::one_line(&environment.kernel),
        load_cpu: session.placement.load_cpu,
        dut_cpu: session.placement.dut_cpu,
        control_cpu: session.placement.control_cpu,
        tester: tester_of(loaded).unwrap_or(environment.tester),
        facts: environment.facts.clone(),
        generator_cost_ns: generator_cost(loaded),
        fwdlab: session.fwdlab.clone(),
        start: session.start.clone(),
        sessions: u32::try_from(loaded.sessions.len()).unwrap_or(u32::MAX),
    }
}

fn generator_cost(loaded: &Loaded) -> BTreeMap<Stratum, f64> {
    let mut costs: BTreeMap<Stratum, Vec<f64>> = BTreeMap::new();
    for attempt in evidence::attempts(loaded, Scope::Accepted) {
        for (stratum, cost_ns) in &attempt.record.generator_cost_ns {
            costs.entry(*stratum).or_default().push(*cost_ns);
        }
    }
    costs
        .into_iter()
        .filter_map(|(stratum, costs)| Some((stratum, median(&costs)?)))
        .collect()
}

/// The traffic with the load under which it was measured: where the lab could not offer what was asked for, DUT and
/// generator took turns.
fn measured_traffics(loaded: &Loaded) -> Vec<Traffic> {
    let mut traffics = loaded.resolved.traffics.clone();
    if loaded.regime() != loaded.resolved.regime() {
        for traffic in &mut traffics {
            traffic.load = Load::SelfClocked;
        }
    }
    traffics
}

fn factor_section(factor: &fwdlab_model::Factor) -> FactorSection {
    FactorSection {
        name: text::one_line(&factor.name),
        description: factor.description.as_deref().map(text::one_line),
        levels: factor.levels.iter().map(ToString::to_string).collect(),
        default: factor.default.to_string(),
    }
}

fn variant_section(variant: &Variant) -> VariantSection {
    VariantSection {
        name: variant.name.clone(),
        label: text::one_line(&variant.label),
        levels: variant
            .levels
            .iter()
            .map(|(factor, level)| (text::one_line(factor), level.to_string()))
            .collect(),
        control_of: variant.control_of.clone(),
        unavailable: variant.unavailable.as_deref().map(text::one_line),
    }
}

fn trial_sections(loaded: &Loaded) -> Vec<TrialSection> {
    let undisturbed_loop_ns: BTreeMap<(u32, u32, u32), f64> = loaded
        .attempts
        .iter()
        .map(|attempt| &attempt.record)
        .map(|block| {
            let of = (block.session, block.block, block.attempt);
            (of, block.undisturbed_loop_ns)
        })
        .collect();
    loaded
        .trials()
        .map(|(trial, fate)| {
            let per_second = |sum: f64| (trial.measured_s > 0.0).then(|| sum / trial.measured_s);
            let usual_ns = undisturbed_loop_ns.get(&(trial.session, trial.block, trial.attempt));
            TrialSection {
                session: trial.session,
                block: trial.block,
                attempt: trial.attempt,
                order: trial.order,
                variant: trial.variant.clone(),
                stratum: trial.stratum,
                start: text::one_line(&trial.start),
                forwarding_rate_pps: trial.observation_pps,
                offered_load_pps: per_second(trial.tester.offered_frames as f64),
                dropped_frames: trial.dut.dropped_frames() + trial.tester.not_transmitted_frames,
                steal_percent: per_second(trial.steal_s * 100.0),
                calibration_ratio: usual_ns
                    .map(|usual_ns| trial.calibration_ns / usual_ns)
                    .filter(|ratio| ratio.is_finite() && *ratio > 0.0),
                disturbed_percent: per_second((trial.measured_s - trial.undisturbed_s) * 100.0),
                counts: fate == Fate::Accepted,
                invalid: reasons(trial),
            }
        })
        .collect()
}

fn reasons(trial: &TrialRecord) -> Vec<String> {
    let texts = trial.invalid.iter().map(ToString::to_string);
    texts.map(|text| text::one_line(&text)).collect()
}

/// The trials that the verdicts rest on, by stratum and variant, where there are any.
fn trials_that_count(loaded: &Loaded) -> Vec<(Stratum, &VariantName, Vec<&TrialRecord>)> {
    let attempts = evidence::attempts(loaded, Scope::Accepted);
    let mut counted = Vec::new();
    for stratum in loaded.resolved.strata() {
        for variant in &loaded.resolved.variants {
            let trials: Vec<&TrialRecord> = attempts
                .iter()
                .filter_map(|attempt| evidence::trial(attempt, &variant.name, stratum))
                .collect();
            if !trials.is_empty() {
                counted.push((stratum, &variant.name, trials));
            }
        }
    }
    counted
}

/// What was read of the DUT in all of some trials.
fn dut_reading(trials: &[&TrialRecord]) -> DutReading {
    trials.iter().fold(DutReading::default(), |mut sum, trial| {
        sum += trial.dut.clone();
        sum
    })
}

/// Counts by names that are made inert.
fn counts<'a>(named: impl IntoIterator<Item = (&'a String, &'a u64)>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (name, count) in named {
        *counts.entry(text::one_line(name)).or_default() += count;
    }
    counts
}

/// What was lost, by variant and stratum; nothing is said where a self-clocked load lost nothing, as is
/// usual.
fn losses(loaded: &Loaded) -> Vec<LossSection> {
    let mut losses = Vec::new();
    for (stratum, variant, trials) in trials_that_count(loaded) {
        let sum = |of: fn(&TrialRecord) -> u64| trials.iter().map(|trial| of(trial)).sum::<u64>();
        let offered_frames = sum(|trial| trial.tester.offered_frames);
        let mut drops = counts(&dut_reading(&trials).drops);
        show_not_transmitted(&mut drops, sum(|trial| trial.tester.not_transmitted_frames));
        let dropped_frames: u64 = drops.values().sum();
        let dropped_percent = dropped_frames as f64 / offered_frames as f64 * 100.0;
        losses.push(LossSection {
            variant: variant.clone(),
            stratum,
            offered_frames,
            forwarded_frames: sum(|trial| trial.tester.forwarded_frames),
            dropped_frames,
            dropped_percent: (offered_frames > 0).then_some(dropped_percent),
            drops,
            kernel_drop_reasons: counts(trials.iter().flat_map(|of| &of.kernel_drop_reasons)),
        });
    }
    let is_usual = loaded.regime() == LoadRegime::SelfClocked
        && losses.iter().all(|loss| loss.dropped_frames == 0);
    if is_usual { Vec::new() } else { losses }
}

/// What the DUT's mechanisms did, by stratum and variant, where they count.
fn dut_events(loaded: &Loaded) -> Vec<EventsSection> {
    let mut sections = Vec::new();
    for (stratum, variant, trials) in trials_that_count(loaded) {
        let events = counts(&dut_reading(&trials).events);
        if !events.is_empty() {
            sections.push(EventsSection::new(variant.clone(), stratum, events));
        }
    }
    sections
}

/// W232: in each comparison, the variants that do other work than its baseline.
fn other_passage(resolved: &Resolved) -> impl Iterator<Item = Warning> {
    let measured = move |name: &VariantName| {
        let variant = resolved.variant(name);
        variant.filter(|variant| variant.unavailable.is_none())
    };
    resolved.comparisons.iter().filter_map(move |comparison| {
        let baseline = measured(&comparison.baseline)?;
        let compared = comparison.variants.iter().filter_map(measured);
        let others = compared.filter(|of| resolved.forwards(of) != resolved.forwards(baseline));
        let others: Vec<&Variant> = others.collect();
        if others.is_empty() {
            return None;
        }
        let label = |variant: &Variant| text::one_line(&variant.label);
        let work = |variant: &Variant| {
            let work = match resolved.forwards(variant) {
                Forwards::Routed => "routes",
                Forwards::Mac => "rewrites MAC addresses alone",
                Forwards::Unchanged => "passes frames on as they are",
            };
            format!("{} ({work})", label(variant))
        };
        let with: Vec<String> = others.iter().map(|variant| work(variant)).collect();
        Some(Warning::new(
            "W232",
            others.iter().map(|variant| label(variant)),
            format!(
                "compared with {}, which does other work: {}",
                work(baseline),
                with.join(", ")
            ),
            "compare it with a forwarder that does the same work, or publish the effect with the work that each does",
        ))
    })
}

/// How busy the DUT's CPUs were, by stratum and variant, where that was watched.
fn dut_cpus(loaded: &Loaded) -> Vec<CpusSection> {
    let mut sections = Vec::new();
    for (stratum, variant, trials) in trials_that_count(loaded) {
        let mut cpus = dut_reading(&trials).cpus;
        cpus.retain(|_, times| times.watched_s > 0.0);
        let cpus = cpus.into_iter().map(|(cpu, times)| CpuSection {
            cpu,
            watched_s: times.watched_s,
            busy_percent: times.busy_s / times.watched_s * 100.0,
            interrupts_percent: times.interrupts_s / times.watched_s * 100.0,
            stolen_percent: times.stolen_s / times.watched_s * 100.0,
        });
        let cpus: Vec<CpuSection> = cpus.collect();
        if !cpus.is_empty() {
            sections.push(CpusSection {
                variant: variant.clone(),
                stratum,
                cpus,
            });
        }
    }
    sections
}

fn conservation(loaded: &Loaded) -> BTreeMap<Stratum, Conservation> {
    let mut totals: BTreeMap<Stratum, Conservation> = BTreeMap::new();
    for attempt in evidence::attempts(loaded, Scope::Accepted) {
        for (stratum, frames) in &attempt.record.conservation {
            match totals.get_mut(stratum) {
                None => {
                    totals.insert(*stratum, frames.clone());
                }
                Some(total) => add(total, frames),
            }
        }
    }
    for total in totals.values_mut() {
        let frames = std::mem::take(&mut total.not_transmitted_frames);
        show_not_transmitted(&mut total.drops, frames);
    }
    totals
}

/// Readers see the frames that the tester did not transmit beside those that were dropped: they are lost as well.
fn show_not_transmitted(drops: &mut BTreeMap<String, u64>, frames: u64) {
    if frames > 0 {
        *drops.entry(NOT_TRANSMITTED.to_owned()).or_default() += frames;
    }
}

fn add(total: &mut Conservation, frames: &Conservation) {
    total.offered_frames += frames.offered_frames;
    total.forwarded_frames += frames.forwarded_frames;
    total.not_transmitted_frames += frames.not_transmitted_frames;
    total.unaccounted_frames += frames.unaccounted_frames;
    total.foreign_frames += frames.foreign_frames;
    for (reason, dropped) in &frames.drops {
        *total.drops.entry(reason.clone()).or_default() += dropped;
    }
    total.verification.checked_frames += frames.verification.checked_frames;
    for (what, wrong) in &frames.verification.wrong_frames {
        *total
            .verification
            .wrong_frames
            .entry(what.clone())
            .or_default() += wrong;
    }
    // Flows are distinct inside a block only, so the block that saw the fewest counts.
    total.verification.flows_seen = total
        .verification
        .flows_seen
        .min(frames.verification.flows_seen);
}

fn disturbance(loaded: &Loaded) -> BTreeMap<Stratum, DisturbanceSection> {
    let section = |stratum: Stratum| {
        let ratio = evidence::disturbed_ratio(loaded, stratum).filter(|ratio| *ratio > 0.0)?;
        let attempts = evidence::attempts(loaded, Scope::Accepted);
        let over = |wanted| {
            let basis = |attempt: &Attempt| evidence::basis(attempt, stratum, Scope::Accepted);
            let attempts = attempts.iter();
            let attempts = attempts.filter(|attempt| basis(attempt) == wanted);
            attempts.map(|attempt| attempt.record.block).collect()
        };
        let section = DisturbanceSection {
            percent: ratio * 100.0,
            blocks_over_all_time: over(RateBasis::AllTime),
            blocks_over_time_alone: over(RateBasis::Alone),
        };
        Some((stratum, section))
    };
    loaded.resolved.strata().filter_map(section).collect()
}

fn invalid_section(loaded: &Loaded) -> Option<InvalidSection> {
    if loaded.trials().all(|(trial, _)| trial.invalid.is_empty()) {
        return None;
    }
    let mut rows = Vec::new();
    for stratum in loaded.resolved.strata() {
        for variant in &loaded.resolved.variants {
            if let Some(row) = invalid_row(loaded, &variant.name, stratum) {
                rows.push(row);
            }
        }
    }
    Some(InvalidSection { rows })
}

fn invalid_row(loaded: &Loaded, variant: &VariantName, stratum: Stratum) -> Option<InvalidRow> {
    let trials: Vec<&TrialRecord> = loaded
        .trials()
        .map(|(trial, _)| trial)
        .filter(|trial| &trial.variant == variant && trial.stratum == stratum)
        .collect();
    let mut blocks_by_reason: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for trial in &trials {
        for reason in reasons(trial) {
            blocks_by_reason
                .entry(reason)
                .or_default()
                .insert(trial.block);
        }
    }
    let reasons = blocks_by_reason.into_iter().map(|(reason, blocks)| {
        let noun = if blocks.len() == 1 { "block" } else { "blocks" };
        let blocks: Vec<String> = blocks.iter().map(ToString::to_string).collect();
        format!("{noun} {}: {reason}", blocks.join(", "))
    });
    let invalid = trials
        .iter()
        .filter(|trial| !trial.invalid.is_empty())
        .count();
    let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    (!trials.is_empty()).then(|| InvalidRow {
        variant: variant.clone(),
        stratum,
        trials: number(trials.len()),
        invalid: number(invalid),
        reasons: reasons.collect(),
    })
}
