#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    expect(
        clippy::float_cmp,
        reason = "tests compare exact results, down to the last bit"
    )
)]

pub mod distribution;
pub mod ministat;

mod autocorrelation;
mod block_effect;
mod bootstrap;
mod ceiling;
mod cells;
mod control;
mod correlation;
mod count;
mod covariate;
mod dunnett;
mod error;
mod factorial;
mod factorial_verdicts;
mod format;
mod generator;
mod hodges_lehmann;
mod imbalance;
mod independent;
mod interference;
mod least_squares;
mod logarithms;
mod mann_whitney;
mod max_t;
mod methods;
mod moderated;
mod modes;
mod moments;
mod monte_carlo;
mod multiplicity;
mod order;
mod permutation;
mod power;
mod practice;
mod rank_null;
mod sessions;
mod shift_test;
mod sign_flip;
mod signed_rank;
mod spread;
mod student;
mod trend;
mod two_sample_t;
mod verdict;
mod warning;

pub use autocorrelation::lag_1_autocorrelation;
pub use block_effect::{
    BlockEffect, HALF_A_FRAME, Observation, Slice, block_effect, log_ratio, observation,
};
pub use bootstrap::bca_interval;
pub use ceiling::{VariantObservations, ceiling_warnings};
pub use control::{CONTROL_CONFIDENCE, ControlVerdict, control_verdict};
pub use correlation::{correlation, critical_correlation};
pub use count::{as_f64, whole};
pub use covariate::{
    AdjustedEffect, ArmsCovariate, BlocksCovariate, CovariateArm, FTest, SLOPE_INTERVAL_MAX, Slope,
    Trust, covariate_of_arms, covariate_of_blocks,
};
pub use dunnett::{DunnettComparison, dunnett};
pub use error::StatsError;
pub use factorial::{
    Factor, FactorialAnalysis, FactorialContrast, FactorialTerm, factorial_analysis,
};
pub use factorial_verdicts::{
    ContrastOf, FactorialVerdict, FactorialVerdicts, block_factorial, independent_factorial,
};
pub use format::{format_confidence, format_effect, format_p, percent};
pub use generator::Generator;
pub use hodges_lehmann::Interval;
pub use imbalance::imbalance_p;
pub use independent::{IndependentObservations, independent_verdicts};
pub use interference::{
    COMPETING_RATIO, DISTURBED_RATIO, Sample, SlicePart, alone, undisturbed, undisturbed_loop_ns,
};
pub use logarithms::logarithms;
pub use mann_whitney::{EXACT_PAIRS_MAX, MannWhitney, SidedPValues, smallest_rank_p};
pub use max_t::{max_t_permutation, max_t_sign_flip};
pub use methods::{Method, MethodResult, RESAMPLED_MAX, block_methods, independent_methods};
pub use moderated::{ModeratedDifference, ModeratedEffects, max_t_moderated};
pub use modes::{DIP_VALUES_MIN, MODES_LEVEL, TwoModes, dip, two_modes};
pub use multiplicity::holm_adjusted;
pub use order::{ORDER_LEVEL, OrderEffect, OrderEffects, OrderedSlice, order_effects};
pub use permutation::{Draws, PERMUTATION_EXACT_MAX, PermutationTest, Stratum};
pub use power::{DETECTION_POWER, METHODS_WITH_POWER, PowerAnalysis, SIZE_MAX};
pub use practice::Practice;
pub use sessions::{
    ComparedSessions, RerunNoise, SESSIONS_MIN, WithinSessions, minimum_sessions, rerun_verdicts,
    session_verdicts, within_sessions,
};
pub use shift_test::ShiftTest;
pub use sign_flip::{SIGN_FLIP_EXACT_MAX, sign_flip_p};
pub use signed_rank::{EXACT_BLOCKS_MAX, SignedRank, minimum_blocks};
pub use spread::{
    PooledSpread, RateComponents, Spread, VarianceComponents, median, quantiles, quartiles,
    rate_components, robust_mean, variance_components,
};
pub use student::StudentSample;
pub use trend::{TREND_LEVEL, Trend, trend, trend_warning};
pub use two_sample_t::TwoSampleT;
pub use verdict::{
    BlockDetails, ClaimPValues, ComparisonEffects, ComparisonVerdict, FamilyVerdicts, MoreData,
    Unit, Verdict, VerdictSettings, family_verdicts,
};
pub use warning::{ModalValues, Warning};
