//! What a statistic refuses to work on.

/// An input from which the asked statistic cannot be computed.
///
/// `subject` is the caller's name of the data: a comparison, the control, a statistic.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// There is nothing to compute on.
    #[error("{subject}: no values (0 given); give at least one")]
    Empty {
        /// Whose values are missing.
        subject: String,
    },
    /// A value is NaN or infinite.
    #[error("{subject}: value {index} is not finite ({value}); give finite numbers only")]
    NotFinite {
        /// Whose value it is.
        subject: String,
        /// Its position, from 0.
        index: usize,
        /// NaN, inf or -inf.
        value: f64,
    },
    /// The statistic needs more values than there are.
    #[error("{subject}: too few values ({have}); give at least {need}")]
    TooFew {
        /// Whose values they are.
        subject: String,
        /// The smallest number that works.
        need: usize,
        /// The number given.
        have: usize,
    },
    /// The statistic measures in units of the spread, and there is none.
    #[error("{subject}: the values do not vary (0 spread); give values that do, or a rank test")]
    NoSpread {
        /// Whose values they are.
        subject: String,
    },
    /// Squares or differences of the values exceed what a double holds.
    #[error("{subject}: values too large to reckon with; give them in a larger unit")]
    TooLarge {
        /// Whose values they are.
        subject: String,
    },
    /// A value has no logarithm.
    #[error("{subject}: value {index} has no logarithm ({value}); give positive numbers only")]
    NotPositive {
        /// Whose value it is.
        subject: String,
        /// Its position, from 0.
        index: usize,
        /// Zero or a negative number.
        value: f64,
    },
    /// Two lists that belong together differ in length.
    #[error("{subject}: {have} values where {need} are needed; give one for each")]
    UnequalLengths {
        /// Whose values they are.
        subject: String,
        /// The number that the other list has.
        need: usize,
        /// The number given.
        have: usize,
    },
    /// A covariate that is the same everywhere has no slope.
    #[error(
        "{subject}: it does not vary (0 spread), so that it has no slope; leave the adjustment out"
    )]
    ConstantCovariate {
        /// Whose covariate it is.
        subject: String,
    },
    /// The design cannot tell an effect from the others.
    #[error(
        "{subject}: not told from the other effects by these data (a level or a combination was never measured); measure it or leave it out"
    )]
    NotEstimable {
        /// The factor, the interaction or the blocks.
        subject: String,
    },
    /// A confidence level is not strictly between 0.5 and 1.
    #[error("confidence: not between 0.5 and 1 ({value}); give for example 0.95")]
    Confidence {
        /// The level given.
        value: f64,
    },
    /// A standard deviation is negative, infinite or no number.
    #[error("standard deviation: not a number from 0 on ({value}); give for example 0.01")]
    StandardDeviation {
        /// What was given.
        value: f64,
    },
    /// Nothing reckons the power of a method.
    #[error("{}: its power cannot be reckoned; ask for that of a test", method.words())]
    PowerUnknown {
        /// The method.
        method: crate::Method,
    },
    /// A level of a test is not strictly between 0 and 1, or so small that no draws would reach it.
    #[error("level: not between 0.00000001 and 1 ({value}); give for example 0.01")]
    Level {
        /// The level given.
        value: f64,
    },
    /// A practical threshold is not strictly between 0 and 1.
    #[error(
        "practical threshold: not between 0 and 1 ({value}); give a ratio, for example 0.01 for 1 %"
    )]
    Threshold {
        /// The threshold given.
        value: f64,
    },
    /// A p-value is outside 0..=1.
    #[error("p-values: value {index} is not a probability ({value}); give numbers from 0 to 1")]
    NotAProbability {
        /// Its position, from 0.
        index: usize,
        /// The number given.
        value: f64,
    },
    /// A slice did not last.
    #[error(
        "round {round}: slice duration is negative or not a number ({duration_s} s); leave invalid slices out"
    )]
    SliceDuration {
        /// The round of the slice.
        round: u32,
        /// The duration given.
        duration_s: f64,
    },
    /// One variant has two slices in the same round.
    #[error("round {round}: more than one slice of a variant (2 seen); give one a round")]
    DuplicateRound {
        /// The round seen twice.
        round: u32,
    },
    /// A round does not hold every variant once.
    #[error(
        "block {block}, round {round}: not one slice of every variant (counted from 0); leave the block out"
    )]
    NotARound {
        /// The block's position, from 0.
        block: usize,
        /// The round's position in it, from 0.
        round: usize,
    },
    /// Variant and baseline have no round in common.
    #[error(
        "block: no round holds a slice of both (variant {variant_slices} slices, baseline {baseline_slices}); leave the block out"
    )]
    NoCommonRound {
        /// Slices of the variant.
        variant_slices: usize,
        /// Slices of the baseline.
        baseline_slices: usize,
    },
    /// Neither side of a block forwarded a frame.
    #[error("block: neither side forwarded a frame; leave the block out")]
    NothingForwarded,
    /// Two measurements have no ratio with a finite logarithm.
    #[error("{variant} and {baseline} have no ratio; give measurements above 0")]
    NoRatio {
        /// The variant's.
        variant: f64,
        /// The baseline's.
        baseline: f64,
    },
}

/// Refuses a list of nothing.
pub(crate) fn require_any(subject: &str, have: usize) -> Result<(), StatsError> {
    if have > 0 {
        return Ok(());
    }
    Err(StatsError::Empty {
        subject: subject.to_owned(),
    })
}

/// Refuses fewer than `need`.
pub(crate) fn require_count(subject: &str, need: usize, have: usize) -> Result<(), StatsError> {
    if have >= need {
        return Ok(());
    }
    Err(StatsError::TooFew {
        subject: subject.to_owned(),
        need,
        have,
    })
}

/// Refuses a list of another length than the one that it belongs to.
pub(crate) fn require_length(subject: &str, need: usize, have: usize) -> Result<(), StatsError> {
    if have == need {
        return Ok(());
    }
    Err(StatsError::UnequalLengths {
        subject: subject.to_owned(),
        need,
        have,
    })
}

/// Refuses results that doubles do not hold.
pub(crate) fn require_held(subject: &str, is_held: bool) -> Result<(), StatsError> {
    if is_held {
        return Ok(());
    }
    Err(StatsError::TooLarge {
        subject: subject.to_owned(),
    })
}

/// Refuses values that do not vary.
pub(crate) fn require_spread(subject: &str, do_vary: bool) -> Result<(), StatsError> {
    if do_vary {
        return Ok(());
    }
    Err(StatsError::NoSpread {
        subject: subject.to_owned(),
    })
}

/// Refuses an empty sample and the first value that is not finite.
pub(crate) fn require_finite(subject: &str, values: &[f64]) -> Result<(), StatsError> {
    require_any(subject, values.len())?;
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => Err(StatsError::NotFinite {
            subject: subject.to_owned(),
            index,
            value: values[index],
        }),
    }
}

/// Refuses fewer values than `need` and the first that is not finite.
pub(crate) fn require_sample(subject: &str, need: usize, values: &[f64]) -> Result<(), StatsError> {
    require_finite(subject, values)?;
    require_count(subject, need, values.len())
}

/// The error probability 1 - `confidence`, freed of the subtraction's rounding (0.05, not
/// 0.05000000000000004), so that a p-value equal to it counts as reaching it.
pub(crate) fn significance(confidence: f64) -> Result<f64, StatsError> {
    if confidence > 0.5 && confidence < 1.0 {
        Ok(((1.0 - confidence) * 1e12).round() / 1e12)
    } else {
        Err(StatsError::Confidence { value: confidence })
    }
}
