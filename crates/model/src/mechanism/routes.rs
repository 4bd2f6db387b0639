//! The number of routes in the DUT's table.

use serde_json::json;

use std::ops::RangeInclusive;

use crate::binding::Binding;
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::words::Level;

use super::{Binder, Description, Given, Levels, Mechanism};

/// The lab's own routes at the least; at the most about what the Internet's table holds.
const COUNTS: RangeInclusive<i64> = 2..=1_000_000;

pub(super) const ROUTES: Description = Description {
    key: "routes",
    what: "the number of routes",
    levels: Levels::Numbers,
    kinds: &[LabKind::Netns, LabKind::Router, LabKind::Ssh(System::Linux)],
    takes_values: false,
    table: None,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    json!({ "description": "The level is the number of routes.", "const": true })
}

/// The level is a number of routes.
#[derive(Debug)]
struct Routes;

impl Mechanism for Routes {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        let (fewest, most) = (COUNTS.start(), COUNTS.end());
        binder.refuse_levels(
            |level| !matches!(level, Level::Integer(count) if COUNTS.contains(count)),
            |_| "this is not a number of routes".to_owned(),
            &format!("write a whole number from {fewest} to {most}"),
        );
        Binding::Routes
    }

    fn sets(&self, _: Option<[&str; 2]>) -> Vec<String> {
        vec!["the number of routes".to_owned()]
    }
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    if given.value.get_ref().as_bool() == Some(true) {
        return Some(Box::new(Routes));
    }
    reading
        .expected(given.value, given.what, "true")
        .with_help("the level is the number of routes");
    None
}
