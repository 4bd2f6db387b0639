//! Which cases of a storm are gone through.

use std::env;

/// Which cases of a storm are gone through instead of the ordinary tests' sample: `A..B`, both
/// included, or `A..` for all from A on (`cargo xtask soak`).
const SOAK: &str = "FWDLAB_SOAK";

/// The cases to go through: what a soak asks for, or a sample of the ordinary tests' size that is the
/// same in every run, the first and the last among them.
///
/// # Panics
/// The soak asks for what is no range.
#[must_use]
pub fn cases(all: usize, sample: usize) -> Vec<usize> {
    let Ok(asked) = env::var(SOAK) else {
        let sample = sample.min(all).max(2);
        return (0..sample)
            .map(|place| 1 + place * (all - 1) / (sample - 1))
            .collect();
    };
    let (first, last) = asked.split_once("..").expect("FWDLAB_SOAK is A..B or A..");
    let first: usize = first.parse().expect("FWDLAB_SOAK begins with a number");
    let last = match last {
        "" => all,
        last => last.parse().expect("FWDLAB_SOAK ends with a number"),
    };
    (first.max(1)..=last.min(all)).collect()
}

/// Whether a soak asks for its cases, and not the ordinary tests.
#[must_use]
pub fn is_soak() -> bool {
    env::var_os(SOAK).is_some()
}
