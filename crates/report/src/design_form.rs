//! A design as `report.json` has it: without its blocks, which are in the run's progress.

use fwdlab_model::Design;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};
use serde_json::{Map, Value};

/// The keys, in the order of the file.
const KEYS: [&str; 10] = [
    "rounds",
    "slice_ms",
    "settle_ms",
    "warm_up_ms",
    "order",
    "seed",
    "seed_was_drawn",
    "threshold_percent",
    "cpu_threshold_percent",
    "confidence_percent",
];

pub(crate) fn serialize<S: Serializer>(design: &Design, to: S) -> Result<S::Ok, S::Error> {
    let mut form = serde_json::to_value(design).map_err(S::Error::custom)?;
    // An experiment leaves out what is usual, a report says it.
    form["cpu_threshold_percent"] = design.cpu_threshold_percent.into();
    to.collect_map(KEYS.map(|key| (key, &form[key])))
}

/// Reads a design of which the number of blocks is not known, and is 0.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Design, D::Error> {
    let mut form = Map::<String, Value>::deserialize(from)?;
    form.insert("blocks".to_owned(), 0.into());
    serde_json::from_value(form.into()).map_err(D::Error::custom)
}
