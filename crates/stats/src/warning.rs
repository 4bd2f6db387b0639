//! What a reader must know before believing a verdict.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::format::{
    decimals_for, format_confidence, format_effect, format_p, format_rate, format_shift,
    format_size,
};
use crate::hodges_lehmann::Interval;
use crate::modes::TwoModes;
use crate::trend::Trend;

/// A warning about a verdict: a stable code, whom it concerns, and what to do, in numbers.
///
/// Serialised as `{code, subject, text}`. Codes W101 to W199 are this crate's; a code never
/// changes its meaning.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// W101: too few blocks to show any difference or to bound the effect at all.
    ///
    /// The exact test's smallest p-value is 2^(1-n). Remedy: at least `need` blocks.
    TooFewBlocks {
        /// The comparison.
        comparison: String,
        /// The confidence out of reach.
        confidence: f64,
        /// Blocks from which on it can be reached.
        need: usize,
        /// Blocks there are.
        have: usize,
    },
    /// W102: enough blocks for a single comparison, too few for this many at once.
    ///
    /// Under Holm's correction the smallest p-value must be as small as (1 - confidence) /
    /// comparisons. Remedy: at least `need` blocks, or fewer comparisons.
    TooFewBlocksForFamily {
        /// The comparison.
        comparison: String,
        /// How many are made at once.
        comparisons: usize,
        /// Blocks from which on each of them can be shown.
        need: usize,
        /// Blocks there are.
        have: usize,
    },
    /// W103: the A/A control cannot fail, because it has too few blocks for its 1 % test.
    ControlTooFewBlocks {
        /// Blocks from which on it can fail.
        need: usize,
        /// Blocks there are.
        have: usize,
    },
    /// W104: the baseline differs from itself.
    ///
    /// One A/A control in a hundred does so by chance; otherwise the lab treats variants
    /// differently by their name, place or order. Nothing is deleted for it.
    ControlFailed {
        /// The control's estimate, as a log ratio.
        estimate: f64,
        /// Its interval.
        interval: Option<Interval>,
        /// Its p-value.
        p: f64,
    },
    /// W105: an effect was shown that is smaller than the A/A control can exclude for no
    /// effect at all.
    ///
    /// Remedy: about `blocks` blocks would bring the control's half-width down to the effect.
    EffectBelowControl {
        /// The comparison.
        comparison: String,
        /// Its estimate, as a log ratio.
        estimate: f64,
        /// The control's half-width, in percent.
        half_width_percent: f64,
        /// Blocks at which the half-width would be the size of the estimate.
        blocks: u64,
    },
    /// W106: one block lies far from the others. It is kept.
    OutlyingBlock {
        /// The comparison.
        comparison: String,
        /// Number of the block: its position among the effects, from 1, unless the caller numbers them otherwise.
        block: u32,
        /// Its effect, as a log ratio.
        effect: f64,
        /// The estimate with it, as a log ratio.
        estimate: f64,
        /// The estimate without it, as a log ratio.
        estimate_without: f64,
    },
    /// W107: a limit that several variants share holds this one, the line rate or the offered load.
    ///
    /// Remedy: more offered load, smaller frames or a faster line, until the device under test is the
    /// limit.
    Ceiling {
        /// The variant.
        variant: String,
        /// The largest observation of all, in frames per second.
        limit_pps: f64,
        /// How many of its observations are there.
        at_limit: usize,
        /// How many it has.
        have: usize,
    },
    /// W108: slices depend on what ran before them.
    ///
    /// Remedy: a settle window longer by a slice, which leaves out what lingers for as long.
    CarryOver {
        /// The variant after which slices differ most clearly.
        predecessor: String,
        /// By how much slices after it are faster than those after the others, as a log ratio.
        effect: f64,
        /// The probability of such a predecessor by chance.
        p: f64,
        /// By how much effects can be off for it, as a log ratio.
        largest_bias: f64,
        /// The settle window there is.
        settle_ms: u32,
        /// The length of a slice.
        slice_ms: u32,
    },
    /// W109: slices depend on their place in the round.
    ///
    /// Remedy: a round of another length.
    PlaceInRound {
        /// The place whose slices differ most clearly, from 1.
        place: usize,
        /// How many places a round has.
        places: usize,
        /// By how much slices there are faster than the others, as a log ratio.
        effect: f64,
        /// The probability of such a place by chance.
        p: f64,
        /// By how much effects can be off for it, as a log ratio.
        largest_bias: f64,
        /// The length of a round.
        round_ms: u32,
    },
    /// W110: values lie in two groups, so that what is typical of them is typical of none.
    ///
    /// Remedy: a look at what differs between the groups, and so many values that the rarer comes ten
    /// times.
    TwoModes {
        /// The variant or the set of observations.
        variant: String,
        /// What lies in two groups.
        values: ModalValues,
        /// The groups, in the units of the values.
        modes: TwoModes,
        /// The median rates of the variant in the lower and the upper group, in frames per second,
        /// where they are known.
        rates_pps: Option<(f64, f64)>,
        /// Whether other programs are known to have run beside the values of one group, and not beside the other's.
        other_programs: bool,
    },
    /// W111: observations rise or fall in the order in which they stand.
    ///
    /// Remedy: measuring in turns.
    Trend {
        /// The set of observations.
        observations: String,
        /// How many there are.
        have: usize,
        /// The median of their first third.
        first: f64,
        /// The median of their last third.
        last: f64,
        /// The test's.
        trend: Trend,
    },
    /// W112: enough sessions for one comparison, too few for this many at once under Holm's correction.
    TooFewSessionsForFamily {
        /// The comparison.
        comparison: String,
        /// How many are made at once.
        comparisons: usize,
        /// Sessions of each side from which on each of them can be shown.
        need: usize,
        /// Sessions of the side that has fewer.
        have: usize,
    },
}

/// Whose two groups [`Warning::TwoModes`] speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModalValues {
    /// Block effects against the baseline, as log ratios.
    BlockEffects,
    /// Observations, in frames per second.
    Observations,
    /// Slices against the others of their variant and block, as log ratios.
    Slices,
}

/// So often should the rarer of two modes come, to tell how rare it is.
const RARER_MODE_COUNT: f64 = 10.0;

impl Warning {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooFewBlocks { .. } => "W101",
            Self::TooFewBlocksForFamily { .. } => "W102",
            Self::ControlTooFewBlocks { .. } => "W103",
            Self::ControlFailed { .. } => "W104",
            Self::EffectBelowControl { .. } => "W105",
            Self::OutlyingBlock { .. } => "W106",
            Self::Ceiling { .. } => "W107",
            Self::CarryOver { .. } => "W108",
            Self::PlaceInRound { .. } => "W109",
            Self::TwoModes { .. } => "W110",
            Self::Trend { .. } => "W111",
            Self::TooFewSessionsForFamily { .. } => "W112",
        }
    }

    /// Whom it concerns: the name of the comparison, the variant or the observations, `A/A control`, or
    /// `order`.
    pub fn subject(&self) -> &str {
        match self {
            Self::TooFewBlocks { comparison, .. }
            | Self::TooFewBlocksForFamily { comparison, .. }
            | Self::TooFewSessionsForFamily { comparison, .. }
            | Self::EffectBelowControl { comparison, .. }
            | Self::OutlyingBlock { comparison, .. } => comparison,
            Self::Ceiling { variant, .. } | Self::TwoModes { variant, .. } => variant,
            Self::CarryOver { predecessor, .. } => predecessor,
            Self::Trend { observations, .. } => observations,
            Self::PlaceInRound { .. } => "order",
            Self::ControlTooFewBlocks { .. } | Self::ControlFailed { .. } => "A/A control",
        }
    }

    /// How much it comes to, as a log ratio, where one figure says so: the effect that was found, how far a block
    /// moves its estimate, or what effects can be off by.
    pub fn size(&self) -> Option<f64> {
        match self {
            Self::ControlFailed { estimate, .. } | Self::EffectBelowControl { estimate, .. } => {
                Some(*estimate)
            }
            Self::OutlyingBlock {
                estimate,
                estimate_without,
                ..
            } => Some(estimate - estimate_without),
            Self::CarryOver { largest_bias, .. } | Self::PlaceInRound { largest_bias, .. } => {
                Some(*largest_bias)
            }
            _ => None,
        }
    }

    /// What is the matter and what to do, in numbers.
    pub fn text(&self) -> String {
        match self {
            Self::TooFewBlocks {
                confidence,
                need,
                have,
                ..
            } => format!(
                "need >= {need} blocks for a {} interval, have {have}",
                format_confidence(*confidence)
            ),
            Self::TooFewBlocksForFamily {
                comparisons,
                need,
                have,
                ..
            } => format!(
                "need >= {need} blocks to show a difference in any of {comparisons} comparisons, have {have}"
            ),
            Self::ControlTooFewBlocks { need, have } => {
                format!("need >= {need} blocks for the control to be able to fail, have {have}")
            }
            Self::ControlFailed {
                estimate,
                interval,
                p,
            } => format!(
                "the baseline differs from its own copy by {}, p = {}; this lab can show such an effect where there is none (1 control in 100 does so by chance)",
                format_effect(*estimate, interval.as_ref()),
                format_p(*p)
            ),
            Self::EffectBelowControl {
                estimate,
                half_width_percent,
                blocks,
                ..
            } => format!(
                "the effect ({}) is smaller than the half-width of the A/A control ({half_width_percent:.*} %); about {blocks} blocks would bring it down to that",
                format_effect(*estimate, None),
                decimals_for(*half_width_percent)
            ),
            Self::OutlyingBlock {
                block,
                effect,
                estimate,
                estimate_without,
                ..
            } => format!(
                "block effect {block} ({}) lies far from the others and is kept: the estimate is {}, without it {}",
                format_effect(*effect, None),
                format_effect(*estimate, None),
                format_effect(*estimate_without, None)
            ),
            Self::Ceiling {
                limit_pps,
                at_limit,
                have,
                ..
            } => format!(
                "{at_limit} of {have} observations lie within 0.02 % of {limit_pps:.0} pps, as those of another variant do: what it could do beyond that limit does not show; offer more load, or use smaller frames or a faster line"
            ),
            Self::CarryOver {
                effect,
                p,
                largest_bias,
                settle_ms,
                slice_ms,
                ..
            } => format!(
                "slices right after it are {} off those after the others ({}; in at most 1 report of 100 by chance), which moves effects by up to {}; settle for {} ms in place of {settle_ms} ms, which leaves out what lingers for up to a slice, and for twice as long where the warning stays",
                format_shift(*effect),
                p_text(*p),
                format_size(*largest_bias),
                settle_ms + slice_ms
            ),
            Self::PlaceInRound {
                place,
                places,
                effect,
                p,
                largest_bias,
                round_ms,
            } => format!(
                "slices at place {place} of {places} in a round are {} off the others ({}; in at most 1 report of 100 by chance), which moves effects by up to {} only, as every variant has every place; something keeps step with rounds of about {round_ms} ms: choose slices of another length",
                format_shift(*effect),
                p_text(*p),
                format_size(*largest_bias)
            ),
            Self::TwoModes {
                values,
                modes,
                rates_pps,
                other_programs,
                ..
            } => two_modes_text(*values, modes, *rates_pps, *other_programs),
            Self::Trend {
                have,
                first,
                last,
                trend,
                ..
            } => format!(
                "its {have} observations {} in the order in which they stand, from about {} to {} ({}; in 1 set of 50 by chance): what drifted is part of every effect; measure in turns, as the blocks of one experiment do, or once the rate stays",
                if trend.tau > 0.0 { "rise" } else { "fall" },
                format_rate(*first),
                format_rate(*last),
                p_text(trend.p)
            ),
            Self::TooFewSessionsForFamily {
                comparisons,
                need,
                have,
                ..
            } => format!(
                "need >= {need} sessions of each side to show a difference in any of {comparisons} comparisons, have {have}"
            ),
        }
    }
}

/// `p = 0.017`, `p < 0.001`.
fn p_text(p: f64) -> String {
    let number = format_p(p);
    if number.starts_with('<') {
        format!("p {number}")
    } else {
        format!("p = {number}")
    }
}

fn two_modes_text(
    values: ModalValues,
    modes: &TwoModes,
    rates_pps: Option<(f64, f64)>,
    other_programs: bool,
) -> String {
    let of_group = |value: f64, rate_pps: Option<f64>| {
        let rate = rate_pps.map_or_else(String::new, |rate| format!(" ({})", format_rate(rate)));
        format!("about {}{rate}", format_shift(value))
    };
    let (what, lower, upper) = match values {
        ModalValues::Observations => (
            "observations",
            format!(
                "about {}, {:.1} % lower",
                format_rate(modes.lower),
                (1.0 - modes.lower / modes.upper) * 100.0
            ),
            format!("about {}", format_rate(modes.upper)),
        ),
        ModalValues::BlockEffects => (
            "block effects",
            of_group(modes.lower, rates_pps.map(|rates| rates.0)),
            of_group(modes.upper, rates_pps.map(|rates| rates.1)),
        ),
        ModalValues::Slices => (
            "slices, against the middle one of their block,",
            of_group(modes.lower, None),
            of_group(modes.upper, None),
        ),
    };
    let told = modes.p.map_or_else(
        || "a gap three times as wide as either".to_owned(),
        |p| format!("dip test, {}", p_text(p)),
    );
    let remedy = if values == ModalValues::Slices {
        "something switches while it is measured: look at what changes inside a block (interrupts, power states, queues)"
            .to_owned()
    } else if other_programs {
        "other programs took CPU time in the blocks of one group and hardly in those of the other (W220): stop them, and measure again"
            .to_owned()
    } else {
        let count = modes.lower_count + modes.upper_count;
        let rarer = modes.lower_count.min(modes.upper_count);
        let need = (RARER_MODE_COUNT * count as f64 / rarer as f64).ceil();
        format!(
            "look at what differs between the set-ups of the two (placement, hash seeds, a setting that does not always take), and measure {need} or more, to see the rarer one {RARER_MODE_COUNT} times"
        )
    };
    format!(
        "its {what} lie in two groups, {} {upper} and {} {lower}: {told}; one number stands for neither; {remedy}",
        modes.upper_count, modes.lower_count
    )
}

/// `W101 none: need >= 6 blocks for a 95 % interval, have 4`.
impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.code(), self.subject(), self.text())
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Warning", 3)?;
        fields.serialize_field("code", self.code())?;
        fields.serialize_field("subject", self.subject())?;
        fields.serialize_field("text", &self.text())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_of_each() -> Vec<Warning> {
        let comparison = "nft-conntrack".to_owned();
        vec![
            Warning::TooFewBlocks {
                comparison: comparison.clone(),
                confidence: 0.95,
                need: 6,
                have: 4,
            },
            Warning::TooFewBlocksForFamily {
                comparison: comparison.clone(),
                comparisons: 3,
                need: 7,
                have: 6,
            },
            Warning::ControlTooFewBlocks { need: 8, have: 6 },
            Warning::ControlFailed {
                estimate: 0.008,
                interval: Some(Interval {
                    lower: 0.002,
                    upper: 0.013,
                    nominal_confidence: 0.99,
                    attained_confidence: 0.992,
                }),
                p: 0.0078,
            },
            Warning::EffectBelowControl {
                comparison: comparison.clone(),
                estimate: -0.004,
                half_width_percent: 0.65,
                blocks: 22,
            },
            Warning::OutlyingBlock {
                comparison,
                block: 3,
                effect: -0.3,
                estimate: -0.02,
                estimate_without: -0.018,
            },
            Warning::Ceiling {
                variant: "nft-conntrack".to_owned(),
                limit_pps: 1_488_095.2,
                at_limit: 7,
                have: 8,
            },
            Warning::CarryOver {
                predecessor: "nft-conntrack".to_owned(),
                effect: -0.005,
                p: 0.0005,
                largest_bias: 0.0012,
                settle_ms: 50,
                slice_ms: 100,
            },
            Warning::PlaceInRound {
                place: 1,
                places: 5,
                effect: 0.0008,
                p: 0.0045,
                largest_bias: 0.00003,
                round_ms: 750,
            },
            Warning::TwoModes {
                variant: "nft-conntrack".to_owned(),
                values: ModalValues::BlockEffects,
                modes: TwoModes {
                    lower: -0.81,
                    upper: -0.01,
                    upper_from: -0.02,
                    lower_count: 3,
                    upper_count: 5,
                    p: None,
                },
                rates_pps: Some((4.31e6, 9.71e6)),
                other_programs: false,
            },
            Warning::Trend {
                observations: "before.pps".to_owned(),
                have: 5,
                first: 5_213_000.0,
                last: 5_498_000.0,
                trend: Trend {
                    tau: 1.0,
                    p: 1.0 / 60.0,
                },
            },
            Warning::TooFewSessionsForFamily {
                comparison: "nft-conntrack".to_owned(),
                comparisons: 3,
                need: 5,
                have: 4,
            },
        ]
    }

    #[test]
    fn texts() {
        let lines: Vec<String> = one_of_each().iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
W101 nft-conntrack: need >= 6 blocks for a 95 % interval, have 4
W102 nft-conntrack: need >= 7 blocks to show a difference in any of 3 comparisons, have 6
W103 A/A control: need >= 8 blocks for the control to be able to fail, have 6
W104 A/A control: the baseline differs from its own copy by +0.80 % [+0.20, +1.31], p = 0.008; this lab can show such an effect where there is none (1 control in 100 does so by chance)
W105 nft-conntrack: the effect (-0.4 %) is smaller than the half-width of the A/A control (0.65 %); about 22 blocks would bring it down to that
W106 nft-conntrack: block effect 3 (-25.9 %) lies far from the others and is kept: the estimate is -2.0 %, without it -1.8 %
W107 nft-conntrack: 7 of 8 observations lie within 0.02 % of 1488095 pps, as those of another variant do: what it could do beyond that limit does not show; offer more load, or use smaller frames or a faster line
W108 nft-conntrack: slices right after it are -0.50 % off those after the others (p < 0.001; in at most 1 report of 100 by chance), which moves effects by up to 0.12 %; settle for 150 ms in place of 50 ms, which leaves out what lingers for up to a slice, and for twice as long where the warning stays
W109 order: slices at place 1 of 5 in a round are +0.080 % off the others (p = 0.004; in at most 1 report of 100 by chance), which moves effects by up to 0.003 % only, as every variant has every place; something keeps step with rounds of about 750 ms: choose slices of another length
W110 nft-conntrack: its block effects lie in two groups, 5 about -1.0 % (9.710 Mpps) and 3 about -55.5 % (4.310 Mpps): a gap three times as wide as either; one number stands for neither; look at what differs between the set-ups of the two (placement, hash seeds, a setting that does not always take), and measure 27 or more, to see the rarer one 10 times
W111 before.pps: its 5 observations rise in the order in which they stand, from about 5.213 Mpps to 5.498 Mpps (p = 0.017; in 1 set of 50 by chance): what drifted is part of every effect; measure in turns, as the blocks of one experiment do, or once the rate stays
W112 nft-conntrack: need >= 5 sessions of each side to show a difference in any of 3 comparisons, have 4
"#);
    }

    #[test]
    fn codes_are_distinct() {
        let mut codes: Vec<&str> = one_of_each().iter().map(Warning::code).collect();
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }

    #[test]
    fn travels_as_code_subject_text() {
        let json = serde_json::to_value(&one_of_each()[0]).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "code": "W101",
                "subject": "nft-conntrack",
                "text": "need >= 6 blocks for a 95 % interval, have 4",
            })
        );
    }
}
