//! What a reader must know before believing a verdict.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::format::{format_confidence, format_effect, format_p, format_size};
use crate::hodges_lehmann::Interval;

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
        /// The control's half-width, as a log ratio.
        half_width: f64,
        /// Blocks at which the half-width would be the size of the estimate.
        blocks: u64,
    },
    /// W106: one block lies far from the others. It is kept.
    OutlyingBlock {
        /// The comparison.
        comparison: String,
        /// Position among the block effects, from 0.
        index: usize,
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
}

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
        }
    }

    /// Whom it concerns: the name of the comparison or the variant, or `A/A control`.
    pub fn subject(&self) -> &str {
        match self {
            Self::TooFewBlocks { comparison, .. }
            | Self::TooFewBlocksForFamily { comparison, .. }
            | Self::EffectBelowControl { comparison, .. }
            | Self::OutlyingBlock { comparison, .. } => comparison,
            Self::Ceiling { variant, .. } => variant,
            Self::ControlTooFewBlocks { .. } | Self::ControlFailed { .. } => "A/A control",
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
                half_width,
                blocks,
                ..
            } => format!(
                "the effect ({}) is smaller than the half-width of the A/A control ({}); about {blocks} blocks would bring it down to that",
                format_effect(*estimate, None),
                format_size(*half_width)
            ),
            Self::OutlyingBlock {
                index,
                effect,
                estimate,
                estimate_without,
                ..
            } => format!(
                "block effect {} ({}) lies far from the others and is kept: the estimate is {}, without it {}",
                index + 1,
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
        }
    }
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
                half_width: 0.0065,
                blocks: 22,
            },
            Warning::OutlyingBlock {
                comparison,
                index: 2,
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
