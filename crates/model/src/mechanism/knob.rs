//! A knob of the reference router.

use crate::binding::Binding;
use crate::document::Reading;
use crate::factor::written;
use crate::kind::LabKind;
use crate::knob::Knob;
use crate::schema_parts::words;

use super::{Binder, Description, Given, Levels, Mechanism};

pub(super) const KNOB: Description = Description {
    key: "knob",
    what: "a knob of the reference router",
    levels: Levels::Values,
    kinds: &[LabKind::Router],
    takes_values: false,
    table: None,
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

/// A knob of the reference router.
#[derive(Debug)]
struct RouterKnob(Knob);

impl Mechanism for RouterKnob {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        let knob = self.0;
        binder.refuse_levels(
            |level| knob.number(level).is_none(),
            |level| format!("the knob {} has no level {}", knob.name(), written(level)),
            &format!("it can be {}", knob.levels()),
        );
        Binding::Knob { knob }
    }

    fn sets(&self, _: Option<[&str; 2]>) -> Vec<String> {
        vec![format!("knob {}", self.0.name())]
    }
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let knob = reading.word(given.value, given.what, &names());
    Some(Box::new(RouterKnob(knob?)))
}
