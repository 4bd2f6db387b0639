//! XDP programs.

use crate::binding::{Binding, XdpProgram};
use crate::document::{Reading, Value};
use crate::kind::{LabKind, System};
use crate::schema_parts::{by_level, words};

use super::{ByLevel, Description, Given, Levels, Mechanism, levels};

const PROGRAMS: &[(&str, XdpProgram)] = &[("off", XdpProgram::Off), ("fib", XdpProgram::Fib)];

pub(super) const XDP: Description = Description {
    key: "xdp",
    what: "the XDP program: off or fib",
    levels: Levels::Words,
    kinds: &[LabKind::Netns, LabKind::Ssh(System::Linux)],
    takes_values: false,
    table: None,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    by_level(
        "The XDP program of each level.",
        words("A program.", PROGRAMS),
    )
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let program = |reading: &mut Reading<'_>, value: &Value<'_>, what: &str| {
        reading.word(value, what, PROGRAMS)
    };
    let programs = levels(reading, given.value, given.what, program);
    Some(Box::new(ByLevel {
        meanings: programs,
        bind: |binder, programs| Binding::Xdp(binder.meanings(programs)),
        sets: Some("the XDP program"),
    }))
}
