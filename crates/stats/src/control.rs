//! The A/A control: the baseline entered twice under another name.

use serde::Serialize;

use crate::error::{StatsError, significance};
use crate::format::percent;
use crate::hodges_lehmann::Interval;
use crate::shift_test::ShiftTest as _;
use crate::signed_rank::{SignedRank, minimum_blocks};
use crate::warning::Warning;

/// The confidence of the control's interval; 1 minus it is the level of its test.
pub const CONTROL_CONFIDENCE: f64 = 0.99;

/// What the A/A control showed.
///
/// Outside the comparison family: a failure marks the report and deletes nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ControlVerdict {
    /// The effects, as log ratios, in block order.
    pub block_effects: Vec<f64>,
    /// The Hodges-Lehmann estimate, as a log ratio.
    pub estimate: f64,
    /// The 99 % interval; with too few blocks for it the widest there is, which says its lower
    /// confidence. `None` for one block.
    pub interval: Option<Interval>,
    /// The two-sided signed-rank p-value against no effect.
    pub p: f64,
    /// Whether `p` is at most 1 %. It can be from 8 blocks on.
    pub failed: bool,
}

impl ControlVerdict {
    /// Half the interval's length: effects smaller than this are flagged.
    ///
    /// Both are compared in percent, as they are printed: a loss of 17.8 % is -0.196 as a log ratio, and so
    /// would not be below the half-width of an interval from -18 to +19 %.
    ///
    /// Units: percent.
    pub fn half_width_percent(&self) -> Option<f64> {
        self.interval
            .map(|interval| (percent(interval.upper) - percent(interval.lower)) / 2.0)
    }

    /// Whether its interval is wider than a practical threshold on both sides of no effect, so that it does not
    /// bound what the lab may show falsely: that no difference is seen then says nothing. So it is without an
    /// interval.
    ///
    /// Units: `practical_threshold` is a ratio, 0.01 for 1 %.
    pub fn is_wider_than(&self, practical_threshold: f64) -> bool {
        self.half_width_percent()
            .is_none_or(|half_width| half_width > practical_threshold * 100.0)
    }

    /// W103 and W104, where they apply.
    pub fn warnings(&self) -> Vec<Warning> {
        let need = minimum_blocks(1, CONTROL_CONFIDENCE)
            .expect("the control's confidence is between 0.5 and 1");
        let have = self.block_effects.len();
        let mut warnings = Vec::new();
        if have < need {
            warnings.push(Warning::ControlTooFewBlocks { need, have });
        }
        if self.failed {
            warnings.push(Warning::ControlFailed {
                estimate: self.estimate,
                interval: self.interval,
                p: self.p,
            });
        }
        warnings
    }
}

/// Judges the A/A control by its block effects.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`].
///
/// # Examples
/// ```
/// use fwdlab_stats::control_verdict;
/// let control = control_verdict(&[0.01, -0.02, 0.0, 0.013, -0.004, 0.02, -0.011, 0.007])?;
/// assert!(!control.failed);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn control_verdict(block_effects: &[f64]) -> Result<ControlVerdict, StatsError> {
    let test = SignedRank::new(block_effects)?;
    let p = test.p_two_sided(0.0);
    Ok(ControlVerdict {
        block_effects: block_effects.to_vec(),
        estimate: test.estimate(),
        interval: test.interval_or_widest(CONTROL_CONFIDENCE)?,
        p,
        failed: p <= significance(CONTROL_CONFIDENCE)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_blocks_on_one_side_fail() {
        let effects = [0.01, 0.02, 0.03, 0.01, 0.02, 0.03, 0.01, 0.02];
        let control = control_verdict(&effects).unwrap();
        assert!(control.failed);
        let codes: Vec<&str> = control.warnings().iter().map(Warning::code).collect();
        assert_eq!(codes, ["W104"]);
        let half_width = (0.03_f64.exp_m1() - 0.01_f64.exp_m1()) * 50.0;
        assert!((control.half_width_percent().unwrap() - half_width).abs() < 1e-12);
    }

    #[test]
    fn seven_blocks_cannot_fail_and_say_so() {
        let control = control_verdict(&[0.01; 7]).unwrap();
        assert!(!control.failed);
        let codes: Vec<&str> = control.warnings().iter().map(Warning::code).collect();
        assert_eq!(codes, ["W103"]);
        let interval = control.interval.unwrap();
        assert!(interval.attained_confidence < 0.99);
    }

    #[test]
    fn a_wide_control_shows_nothing_at_a_threshold_that_it_does_not_bound() {
        let noise = [-0.16, 0.38, 0.02, -0.05, 0.11, -0.09, 0.21, 0.03];
        let wide = control_verdict(&noise).unwrap();
        assert!(!wide.failed && wide.is_wider_than(0.01) && !wide.is_wider_than(0.5));
        let narrow = control_verdict(&noise.map(|effect| effect / 100.0)).unwrap();
        assert!(!narrow.failed && !narrow.is_wider_than(0.01));
        assert!(control_verdict(&[0.0]).unwrap().is_wider_than(0.01));
    }

    #[test]
    fn one_block_bounds_nothing() {
        let control = control_verdict(&[0.5]).unwrap();
        assert_eq!(control.half_width_percent(), None);
        assert!(control_verdict(&[]).is_err());
        assert!(control_verdict(&[f64::NAN]).is_err());
    }
}
