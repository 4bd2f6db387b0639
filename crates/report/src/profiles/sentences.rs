//! What profiles say, in words.

use super::{CostSection, FrameSection, OverheadSection, ProfileDifference, ProfilesSection};
use crate::format;
use crate::report::DesignSection;
use crate::text;

/// So many functions are named; the others stand in the table.
const NAMED_MAX: usize = 3;

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
pub(crate) fn overhead(overhead: &OverheadSection, design: &DesignSection) -> String {
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
pub(super) fn difference(found: &ProfileDifference) -> String {
    if found.blocks < found.blocks_needed {
        return format!(
            "{} cannot show which functions differ, {} can",
            format::counted(found.blocks.into(), "block"),
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
    let mut unit = " ns/packet";
    let named: Vec<String> = by_themselves
        .iter()
        .take(NAMED_MAX)
        .map(|frame| {
            let unit = std::mem::take(&mut unit);
            let cost = signed(&frame.itself);
            format!("{cost}{unit} in {}", text::code(&frame.frame))
        })
        .collect();
    let others = by_themselves.len().saturating_sub(NAMED_MAX);
    let others = match others {
        0 => String::new(),
        others => format!(" and {} more", format::counted(others as u64, "function")),
    };
    format!("{}{others}", named.join(", "))
}

/// What the table of a comparison leaves out, and how it is to be read.
pub(super) fn others(found: &ProfileDifference, confidence_percent: f64) -> String {
    let more = u64::from(found.frames_different).saturating_sub(found.frames.len() as u64);
    let left_out = match more {
        0 => String::new(),
        more => format!(
            "{} more differ by less. ",
            format::counted(more, "function")
        ),
    };
    let others = u64::from(found.frames_sampled.saturating_sub(found.frames_different));
    format!(
        "{left_out}Of the other {} that were sampled none is shown to differ. Bold is what differs with {} % \
         confidence for all functions of the comparison together.",
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
