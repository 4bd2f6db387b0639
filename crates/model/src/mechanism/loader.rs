//! A tunable of FreeBSD's loader.

use crate::document::Reading;
use crate::kind::LabKind;
use crate::schema_parts::line;

use super::name::is_freebsd_name;
use super::{Description, Given, Levels, Mechanism};

pub(super) const LOADER: Description = Description {
    key: "loader",
    what: "a tunable of FreeBSD's loader",
    levels: Levels::Values,
    kinds: &[LabKind::FreebsdSsh],
    takes_values: true,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    line("A loader tunable of FreeBSD; {0,1} stands for several devices. Needs a reboot.")
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Mechanism> {
    let tunable = reading.line(given.value, given.what)?;
    is_freebsd_name(reading, tunable.span(), tunable.get_ref(), "loader tunable")
        .then_some(Mechanism::Loader(tunable.into_inner(), given.values))
}
