//! What two samples could show against the table that `oracle/two_sample_power.py` wrote.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

mod oracle;

use fwdlab_stats::{two_sample_observations, two_sample_power};
use oracle::{assert_relative, cases, numbers};

const TABLES: &str = include_str!("../oracle/two_sample_power.json");

#[test]
fn power_is_that_of_the_noncentral_t() {
    for case in cases(TABLES, "power") {
        let [effect, observations, compared, power] = numbers(&case)[..] else {
            panic!("{case}")
        };
        let (observations, compared) = (observations as usize, compared as usize);
        let found = two_sample_power(effect, 1.0, observations, compared, 0.95).unwrap();
        assert_relative(found, power, 1e-7);
    }
}

#[test]
fn observations_are_as_many_as_counted_up() {
    for case in cases(TABLES, "observations") {
        let [effect, compared, observations] = numbers(&case)[..] else {
            panic!("{case}")
        };
        let found = two_sample_observations(effect, 1.0, compared as usize, 0.95).unwrap();
        assert_eq!(found, Some(observations as usize), "{case}");
    }
}
