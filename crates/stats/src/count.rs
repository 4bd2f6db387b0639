//! Counts as numbers.

/// A count of frames, samples or nanoseconds as a number: exact below 2^53, which none of them reaches.
#[must_use]
pub const fn as_f64(count: u64) -> f64 {
    count as f64
}

/// A number without its fraction as a count; 0 for one below it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, and no sample is that large"
)]
#[must_use]
pub const fn whole(number: f64) -> usize {
    number as usize
}
