//! What profiles say, in words.

use std::collections::BTreeMap;

use fwdlab_model::{Design, LoadRegime, ProfileFault};

use super::NAMED_MAX;
use crate::format;
use crate::profile_sections::{
    CostSection, FrameSection, OverheadSection, ProfileDifference, ProfilesSection,
};
use crate::report::Report;
use crate::text;

/// How the profiles were taken.
pub(crate) fn taken(section: &ProfilesSection) -> String {
    let whose = if section.has_kernel {
        "the kernel's functions and fwdlab's own"
    } else {
        "fwdlab's own functions, without the kernel's"
    };
    format!(
        "Stacks of the CPUs that forward were sampled {} times a second ({}; {whose}), in slices that are no part of \
         any trial. What a function costs is its part of the samples times what a packet costs in the trial, as a mean over \
         the blocks with a profile. The verdict's ns/packet follows from the effects of all blocks instead, so the \
         functions need not add up to exactly that.",
        section.frequency_hz, section.event
    )
}

/// What sampling costs, compared with the threshold.
pub(crate) fn overhead(overhead: &OverheadSection, design: &Design) -> String {
    let interval = overhead.interval;
    let threshold = design.threshold_percent;
    let is_inside = interval.low_percent > -threshold && interval.high_percent < threshold;
    let verdict = if is_inside {
        format!("inside the threshold of {threshold} %")
    } else {
        format!("not shown to be inside the threshold of {threshold} %")
    };
    format!(
        "Sampling changes the forwarding rate by {} % ({} to {} %; {}), {verdict}.",
        format::signed(overhead.estimate_percent, 1),
        format::signed(interval.low_percent, 1),
        format::signed(interval.high_percent, 1),
        format::counted(overhead.blocks.into(), "block"),
    )
}

/// `+33.1 ± 6.0 ns/packet in nft_do_chain, -4.0 ± 1.2 in fib_lookup`: the parts alone, as the verdict has the whole.
///
/// Shape: `notable` are those that differ most by themselves, shown or not.
pub(super) fn difference(found: &ProfileDifference, notable: &[FrameSection]) -> String {
    if found.blocks < found.blocks_needed {
        let blocks = format::counted(found.blocks.into(), "block");
        let largest = match notable {
            [] => String::new(),
            frames => {
                // Where nothing is judged, half-widths are none.
                let frames: Vec<&FrameSection> = frames.iter().collect();
                format!("; the largest differences, not proven: {}", named(&frames))
            }
        };
        return format!(
            "{blocks} with profiles cannot show which functions differ, at least {} are needed{largest}",
            found.blocks_needed
        );
    }
    let by_themselves: Vec<&FrameSection> = found
        .frames
        .iter()
        .filter(|frame| frame.itself.is_significant)
        .collect();
    if by_themselves.is_empty() {
        return match found.frames.first() {
            Some(frame) => format!(
                "{} ns/packet in {} with what it calls; no function is shown to differ by itself",
                signed(&frame.with_callees),
                text::code(&frame.frame)
            ),
            None => "no function is shown to differ".to_owned(),
        };
    }
    let others = by_themselves.len().saturating_sub(NAMED_MAX);
    let others = match others {
        0 => String::new(),
        others => format!(" and {} more", format::counted(others as u64, "function")),
    };
    let shown = &by_themselves[..by_themselves.len().min(NAMED_MAX)];
    format!("{}{others}", named(shown))
}

/// `+33.1 ± 6.0 ns/packet in nft_do_chain, -4.0 ± 1.2 in fib_lookup`.
fn named(frames: &[&FrameSection]) -> String {
    let mut unit = " ns/packet";
    let named: Vec<String> = frames
        .iter()
        .map(|frame| {
            let unit = std::mem::take(&mut unit);
            let cost = signed(&frame.itself);
            format!("{cost}{unit} in {}", text::code(&frame.frame))
        })
        .collect();
    named.join(", ")
}

/// That no profiles could be compared, and why.
pub(super) fn unused(section: &ProfilesSection) -> Option<String> {
    section.differences.is_empty().then(|| {
        let left_out = left_out(section, "", usize::MAX);
        if section.variants.is_empty() {
            format!("no profile could be used: {left_out} (W220)")
        } else {
            format!("no block has a usable profile of two variants: {left_out} (W220)")
        }
    })
}

/// How many profiles are left out, and why: `12 of 24 profiles left out, 20 to 54 % other programs`. Of several
/// reasons the most frequent comes first, with ranges where they fit in `room` columns.
///
/// Shape: `noun` is what is counted, as it stands behind the number.
pub(crate) fn left_out(section: &ProfilesSection, noun: &str, room: usize) -> String {
    let mut ratios_by_reason: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
    for fault in section
        .rejected
        .iter()
        .flat_map(|rejected| &rejected.faults)
    {
        let (reason, ratio) = reason(fault);
        ratios_by_reason.entry(reason).or_default().push(ratio);
    }
    let left_out = section.rejected.len();
    let taken: usize = section
        .variants
        .iter()
        .map(|variant| variant.blocks as usize)
        .sum();
    let head = format!("{left_out} of {}{noun} left out", taken + left_out);
    let ratios = |ratios: &[Option<f64>]| {
        let ratios: Option<Vec<f64>> = ratios.iter().copied().collect();
        ratios.map(|ratios| {
            format::percent_range(ratios.into_iter().map(|ratio| ratio * 100.0), false)
        })
    };
    let mut reasons: Vec<(&str, Vec<Option<f64>>)> = ratios_by_reason.into_iter().collect();
    reasons.sort_by_key(|(_, of_reason)| std::cmp::Reverse(of_reason.len()));
    match &reasons[..] {
        [] => head,
        [(reason, of_reason)] => match ratios(of_reason) {
            Some(ratios) => format!("{head}, {ratios} {reason}"),
            None => format!("{head}: {reason}"),
        },
        reasons => {
            let text = |with_ranges: bool| {
                let counts = reasons.iter().map(|(reason, of_reason)| {
                    let range = ratios(of_reason).filter(|_| with_ranges);
                    let range = range.map_or_else(String::new, |range| format!(" ({range})"));
                    format!("{} {reason}{range}", of_reason.len())
                });
                format!("{head}: {}", counts.collect::<Vec<_>>().join(", "))
            };
            Some(text(true))
                .filter(|text| text::columns(text) <= room)
                .unwrap_or_else(|| text(false))
        }
    }
}

/// Why a profile does not show the load, in the fewest words, and how much of it.
fn reason(fault: &ProfileFault) -> (&'static str, Option<f64>) {
    match *fault {
        ProfileFault::FewSamples { .. } => ("few samples", None),
        ProfileFault::MissingCpu { .. } => ("a CPU not sampled", None),
        ProfileFault::Lost { ratio, .. } => ("lost samples", Some(ratio)),
        ProfileFault::Outside { .. } => ("not of the slices", None),
        ProfileFault::Idle { ratio, .. } => ("idle CPU", Some(ratio)),
        ProfileFault::Foreign { ratio, .. } => ("other programs", Some(ratio)),
        ProfileFault::NoForwarding => ("nothing that forwards", None),
        ProfileFault::Stalled { .. } => ("a stall", None),
        ProfileFault::NotTaken { .. } => ("not taken", None),
    }
}

/// `3 of 8 blocks`, or `all 8 blocks`.
pub(super) fn of_blocks(blocks: u32, measured: u32) -> String {
    if blocks < measured {
        format!("{blocks} of {}", format::counted(measured.into(), "block"))
    } else {
        format!("all {}", format::counted(measured.into(), "block"))
    }
}

/// Why the ns/packet of a flame graph are not those of the verdicts; `cost_ns` are the verdict table's for what it
/// is of.
pub(super) fn basis(report: &Report, blocks: u32, cost_ns: &[Option<f64>]) -> String {
    let measured = report.progress.measured_blocks;
    let costs: Option<Vec<String>> = (cost_ns.iter())
        .map(|cost| cost.map(format::cost))
        .collect();
    let costs = costs.map_or_else(String::new, |costs| format!(", {}", costs.join(" -> ")));
    let with_a_profile = if blocks < measured {
        format!("the {} with a usable profile", of_blocks(blocks, measured))
    } else {
        of_blocks(blocks, measured)
    };
    let time = match report.regime() {
        LoadRegime::SelfClocked => "",
        LoadRegime::Paced | LoadRegime::Overload => {
            ", of the time between packets instead of CPU time"
        }
    };
    format!(
        "These ns/packet are means over {with_a_profile}; those of the results table{costs}, are medians over {}{time}.",
        of_blocks(measured, measured)
    )
}

/// What the table of a comparison leaves out, and how it is to be read.
pub(super) fn others(found: &ProfileDifference, measured: u32, confidence_percent: f64) -> String {
    let more = u64::from(found.frames_different).saturating_sub(found.frames.len() as u64);
    let left_out = match more {
        0 => String::new(),
        more => format!(
            "{} more differ by less. ",
            format::counted(more, "function")
        ),
    };
    let others = u64::from(found.frames_sampled.saturating_sub(found.frames_different));
    let blocks = of_blocks(found.blocks, measured);
    format!(
        "Means over {blocks}{}. {left_out}Of the other {} that were sampled none is shown to differ. Bold is what differs with {} % \
         confidence for all functions of the comparison together.",
        if found.blocks < measured {
            " with a profile of both"
        } else {
            ""
        },
        format::counted(others, "function"),
        format::short(confidence_percent, 1)
    )
}

fn with_half_width(cost: &CostSection) -> String {
    let difference = format::short(cost.difference_ns.abs(), 1);
    match cost.half_width_ns {
        Some(half_width) => format!("{difference} ± {}", format::short(half_width, 1)),
        None => difference,
    }
}

/// `+33.1 ± 6.0`.
pub(crate) fn signed(cost: &CostSection) -> String {
    let difference = with_half_width(cost);
    let sign = match cost.difference_ns {
        // What is shown as zero has no sign.
        size if size.abs() < 0.05 => "",
        less if less < 0.0 => "-",
        _ => "+",
    };
    format!("{sign}{difference}")
}
