//! Why a forwarding rate changed: the profiles of the variants, compared.

mod evidence;
mod pictures;
mod sentences;

use std::collections::BTreeMap;

use fwdlab_archive::Loaded;
use fwdlab_model::{Stratum, VariantName};
use fwdlab_profile::{Folded, compare_profiles};
use fwdlab_stats::{StudentSample, as_f64, percent};

use crate::labels::label_of;
use crate::profile_sections::{
    FrameSection, OverheadSection, ProfileDifference, ProfileSection, ProfilesSection,
    RejectedProfile,
};
use crate::report::{IntervalSection, Warning};
use crate::text;
use evidence::Profiles;

pub(crate) use pictures::{FlameGraph, flame_graphs};
pub(crate) use sentences::{left_out, overhead, signed, taken};

/// So many functions are listed that differ; a report that lists more is not read.
const FRAMES_MAX: usize = 12;

/// So many functions are named in a sentence; the table has the others.
const NAMED_MAX: usize = 3;

/// The profiles of a run and their comparisons, read and made once for all that is said and drawn of them.
pub(crate) struct ProfileEvidence<'a> {
    profiles: Profiles<'a>,
    /// By baseline, variant and stratum; without those that cannot be compared.
    comparisons: BTreeMap<(VariantName, VariantName, Stratum), fwdlab_profile::Comparison>,
}

impl<'a> ProfileEvidence<'a> {
    /// None where no profiles were asked for.
    pub(crate) fn read(loaded: &'a Loaded) -> Option<Self> {
        let resolved = &loaded.resolved;
        resolved.profiling?;
        let profiles = Profiles::read(loaded);
        let mut comparisons = BTreeMap::new();
        let confidence = resolved.design.confidence_percent / 100.0;
        for (baseline, variant, stratum) in all_compared(loaded) {
            let pairs = profiles.pairs(baseline, variant, stratum);
            if let Ok(compared) = compare_profiles(&pairs, confidence) {
                comparisons.insert((baseline.clone(), variant.clone(), stratum), compared);
            }
        }
        Some(Self {
            profiles,
            comparisons,
        })
    }

    fn comparison(
        &self,
        baseline: &VariantName,
        variant: &VariantName,
        stratum: Stratum,
    ) -> Option<&fwdlab_profile::Comparison> {
        let key = (baseline.clone(), variant.clone(), stratum);
        self.comparisons.get(&key)
    }
}

/// What the profiles of a run say, and what is to be warned of; nothing where none were taken.
pub(crate) fn section(
    loaded: &Loaded,
    evidence: Option<&ProfileEvidence<'_>>,
) -> (Option<ProfilesSection>, Vec<Warning>) {
    let Some((profiling, evidence)) = loaded.resolved.profiling.zip(evidence) else {
        return (None, Vec::new());
    };
    let profiles = &evidence.profiles;
    let Some(first) = profiles.first_record().filter(|_| !profiles.is_empty()) else {
        return (None, vec![none_there(loaded)]);
    };
    let all_compared = all_compared(loaded);
    let differences = all_compared
        .iter()
        .filter_map(|(baseline, variant, stratum)| {
            let compared = evidence.comparison(baseline, variant, *stratum)?;
            Some(difference(
                loaded, profiles, compared, baseline, variant, *stratum,
            ))
        });
    let mut section = ProfilesSection {
        every: profiling.every,
        event: text::one_line(&first.event),
        frequency_hz: first.frequency_hz,
        has_kernel: first.has_kernel,
        overhead: sampling_overhead(loaded, profiles),
        variants: variants(loaded, profiles),
        differences: differences.collect(),
        rejected: profiles.rejected(),
        unused: None,
    };
    if !all_compared.is_empty() {
        section.unused = sentences::unused(&section);
    }
    let mut warnings = warnings(&section, loaded);
    warnings.extend(programs_without_names(profiles));
    (Some(section), warnings)
}

/// A stratum behind the names of variants in a file's name. A dot keeps the name of its traffic apart from theirs.
fn behind(stratum: Stratum) -> String {
    match stratum.traffic {
        Some(_) => format!(".{stratum}"),
        None => format!("-{stratum}"),
    }
}

/// Baselines and what is compared with them, the control behind the variants, in each stratum.
fn all_compared(loaded: &Loaded) -> Vec<(&VariantName, &VariantName, Stratum)> {
    let resolved = &loaded.resolved;
    let mut all = Vec::new();
    for stratum in resolved.strata() {
        for comparison in &resolved.comparisons {
            let baseline = &comparison.baseline;
            let variants = resolved.variants.iter();
            let controls = variants.filter(|of| of.control_of.as_ref() == Some(baseline));
            let controls = controls.map(|control| &control.name);
            let others = comparison.variants.iter().chain(controls);
            all.extend(others.map(|variant| (baseline, variant, stratum)));
        }
    }
    all
}

fn variants(loaded: &Loaded, profiles: &Profiles<'_>) -> Vec<ProfileSection> {
    let mut sections = Vec::new();
    for stratum in loaded.resolved.strata() {
        for variant in &loaded.resolved.variants {
            let taken = profiles.of(&variant.name, stratum);
            if taken.is_empty() {
                continue;
            }
            let sum = |of: fn(&evidence::Taken<'_>) -> u64| taken.values().map(of).sum::<u64>();
            let idle = sum(|taken| taken.record.idle_samples);
            let all = sum(|taken| taken.record.samples);
            sections.push(ProfileSection {
                variant: variant.name.clone(),
                stratum,
                blocks: number(taken.len()),
                samples: sum(|taken| taken.stacks.samples()),
                idle_percent: as_f64(idle) / as_f64(all.max(1)) * 100.0,
                lost_samples: sum(|taken| taken.record.lost_samples),
                cost_ns: profiles.cost_ns(&variant.name, stratum),
                flame_graph: format!("flame-{}{}.svg", variant.name, behind(stratum)),
            });
        }
    }
    sections
}

fn difference(
    loaded: &Loaded,
    profiles: &Profiles<'_>,
    compared: &fwdlab_profile::Comparison,
    baseline: &VariantName,
    variant: &VariantName,
    stratum: Stratum,
) -> ProfileDifference {
    let mut frames: Vec<FrameSection> = compared.significant().map(frame_section).collect();
    // What differs by itself explains; what calls it only passes that on.
    frames.sort_by(|one, other| {
        let key = |frame: &FrameSection| {
            let own = frame.itself;
            (own.is_significant, own.difference_ns.abs())
        };
        let (one, other) = (key(one), key(other));
        other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    let mut found = ProfileDifference {
        baseline: baseline.clone(),
        variant: variant.clone(),
        stratum,
        blocks: number(compared.blocks),
        blocks_needed: number(compared.blocks_needed),
        packet: compared.whole.into(),
        sentence: String::new(),
        frames_different: number(frames.len()),
        frames,
        frames_sampled: number(compared.frames.len()),
        reading: None,
        flame_graph: format!("difference-{baseline}-{variant}{}.svg", behind(stratum)),
    };
    let notable: Vec<FrameSection> = compared
        .notable()
        .take(NAMED_MAX)
        .map(frame_section)
        .collect();
    found.sentence = sentences::difference(&found, &notable);
    found.frames.truncate(FRAMES_MAX);
    let confidence_percent = loaded.resolved.design.confidence_percent;
    let is_shown = !found.frames.is_empty();
    let measured = profiles.measured_blocks();
    found.reading = is_shown.then(|| sentences::others(&found, measured, confidence_percent));
    found
}

fn frame_section(frame: &fwdlab_profile::FrameDifference) -> FrameSection {
    FrameSection {
        frame: text::one_line(&frame.frame),
        itself: frame.itself.into(),
        with_callees: frame.with_callees.into(),
    }
}

/// Every block gives one figure: its trials are not independent.
fn sampling_overhead(loaded: &Loaded, profiles: &Profiles<'_>) -> Option<OverheadSection> {
    let of_blocks = profiles.log_rate_ratios();
    let sample = StudentSample::new(&of_blocks).ok()?;
    let confidence_percent = loaded.resolved.design.confidence_percent;
    let interval = sample.interval(confidence_percent / 100.0).ok()?;
    let mean = of_blocks.iter().sum::<f64>() / as_f64(of_blocks.len() as u64);
    Some(OverheadSection {
        estimate_percent: percent(mean),
        interval: IntervalSection {
            low_percent: percent(interval.lower),
            high_percent: percent(interval.upper),
            confidence_percent,
        },
        blocks: number(of_blocks.len()),
    })
}

fn none_there(loaded: &Loaded) -> Warning {
    let (text, remedy) = if loaded.accepted().is_empty() {
        (
            "profiles were asked for, but there are none, because no block is valid",
            "remove what made the trials invalid and measure again",
        )
    } else if loaded.resolved.has_forwarder() {
        (
            "profiles were asked for, but there are none: a forwarder in user space spends its time outside the kernel, \
             whose stacks alone are sampled",
            "leave [profile] out of this experiment",
        )
    } else {
        (
            "profiles were asked for, but there are none: nothing says why a rate changed",
            "run as root, or where kernel.perf_event_paranoid permits sampling; keep the folder `profiles` in the results \
             directory",
        )
    };
    Warning::new("W219", None, text, remedy)
}

fn warnings(section: &ProfilesSection, loaded: &Loaded) -> Vec<Warning> {
    let warning = |rejected: &RejectedProfile| {
        let subject = format!(
            "{}, {}, block {}",
            label_of(&loaded.resolved, &rejected.variant),
            rejected.stratum.label(),
            rejected.block
        );
        Warning::new(
            "W220",
            [subject],
            format!(
                "its profile does not show the load and is left out: {}",
                rejected.reasons.join("; ")
            ),
            "measure again where nothing else runs on the CPUs that forward",
        )
    };
    section.rejected.iter().map(warning).collect()
}

/// That eBPF programs ran whose functions the profiles cannot name.
fn programs_without_names(profiles: &Profiles<'_>) -> impl Iterator<Item = Warning> {
    let hidden = profiles.stacks().any(Folded::has_hidden_programs).then(|| {
        Warning::new(
            "W230",
            None,
            "the kernel hides the names of eBPF programs: all of them are one function [bpf] in the profiles",
            "set net.core.bpf_jit_kallsyms = 1 and net.core.bpf_jit_harden = 0 where frames are forwarded, and run again",
        )
    });
    let interpreted = profiles.stacks().any(Folded::has_interpreted_programs).then(|| {
        Warning::new(
            "W231",
            None,
            "the kernel interprets eBPF programs: they cost several times what they cost compiled, and the profiles do not \
             show which function of them takes the time",
            "set net.core.bpf_jit_enable = 1 where frames are forwarded, and run again",
        )
    });
    hidden.into_iter().chain(interpreted)
}

pub(crate) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
