//! The DUT's interfaces, which some mechanisms name.

use serde_json::json;

use crate::binding::DutInterface;
use crate::document::{Reading, Table};
use crate::schema_parts::words;

pub(crate) const INTERFACES: &[(&str, DutInterface)] = &[
    ("dut-in", DutInterface::DutIn),
    ("dut-out", DutInterface::DutOut),
];

/// What a JSON Schema says of them.
pub(super) fn schema() -> serde_json::Value {
    json!({
        "description": "Which of the DUT's interfaces; both by default.",
        "type": "array",
        "items": words("An interface.", INTERFACES),
        "minItems": 1,
        "uniqueItems": true,
    })
}

/// Some of the DUT's interfaces; all where none are named.
pub(super) fn interfaces(
    reading: &mut Reading<'_>,
    table: &Table<'_>,
) -> Option<Vec<DutInterface>> {
    let Some(value) = table.value("interfaces") else {
        return Some(INTERFACES.iter().map(|(_, interface)| *interface).collect());
    };
    let what = table.what("interfaces");
    let items = reading.list(value, &what)?;
    if items.is_empty() {
        reading
            .error(value.span(), format!("{what} is empty"))
            .with_help("leave it out to set both of the DUT's interfaces");
        return None;
    }
    let mut interfaces = Vec::new();
    for item in items {
        let Some(interface) = reading.word(item, &format!("a word of {what}"), INTERFACES) else {
            continue;
        };
        if interfaces.contains(&interface) {
            reading.error(item.span(), format!("{what} names one twice"));
        } else {
            interfaces.push(interface);
        }
    }
    Some(interfaces)
}
