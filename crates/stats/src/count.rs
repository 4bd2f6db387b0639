//! Counts as numbers.

/// A count of frames, samples or nanoseconds as a number: exact below 2^53, which none of them reaches.
#[must_use]
pub const fn as_f64(count: u64) -> f64 {
    count as f64
}
