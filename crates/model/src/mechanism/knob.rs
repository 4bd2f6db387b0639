//! A knob of the reference router.

use crate::document::Reading;
use crate::kind::LabKind;
use crate::knob::Knob;
use crate::schema_parts::words;

use super::{Description, Given, Levels, Mechanism};

pub(super) const KNOB: Description = Description {
    key: "knob",
    what: "a knob of the reference router",
    levels: Levels::Values,
    kinds: &[LabKind::Router],
    takes_values: false,
    read,
    schema,
};

fn names() -> Vec<(&'static str, Knob)> {
    Knob::ALL.map(|knob| (knob.name(), knob)).into()
}

fn schema() -> serde_json::Value {
    words(
        "A knob of the reference router, by FreeBSD's name for it.",
        &names(),
    )
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Mechanism> {
    let knob = reading.word(given.value, given.what, &names());
    knob.map(Mechanism::Knob)
}
