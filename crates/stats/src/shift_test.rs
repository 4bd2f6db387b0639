//! What every test of a location shift offers, and the two one-sided tests made of it.

/// A test of how far one location lies from another (or from none), ready for any shift.
///
/// The two-sided interval of the same method at confidence 1 - a holds the shifts whose two-sided
/// p-value is above a; the p-value of [`ShiftTest::p_inside`] is at most a where the interval at
/// confidence 1 - 2 a lies strictly inside.
///
/// Units: shifts are in those of the values.
pub trait ShiftTest {
    /// The p-value of the claim that the true shift is greater than `shift`.
    fn p_greater(&self, shift: f64) -> f64;

    /// The p-value of the claim that the true shift is less than `shift`.
    fn p_less(&self, shift: f64) -> f64;

    /// The p-value of the claim that the true shift is not `shift`: twice the smaller one-sided
    /// one.
    fn p_two_sided(&self, shift: f64) -> f64 {
        (2.0 * self.p_greater(shift).min(self.p_less(shift))).min(1.0)
    }

    /// The p-value of the claim that the true shift lies between `lower` and `upper`: the larger
    /// of two one-sided ones.
    ///
    /// # Source
    /// Schuirmann 1987, "two one-sided tests".
    ///
    /// # Examples
    /// ```
    /// use fwdlab_stats::{ShiftTest as _, SignedRank};
    /// let effects = SignedRank::new(&[0.001, -0.002, 0.003, 0.0, -0.001, 0.002, -0.003])?;
    /// assert!(effects.p_inside(-0.01, 0.01) < 0.01);
    /// # Ok::<(), fwdlab_stats::StatsError>(())
    /// ```
    fn p_inside(&self, lower: f64, upper: f64) -> f64 {
        self.p_greater(lower).max(self.p_less(upper))
    }
}
