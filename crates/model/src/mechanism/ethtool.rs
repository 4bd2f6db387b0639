//! A feature of interfaces, as ethtool names it.

use serde_json::json;

use crate::binding::{Binding, DutInterface};
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::schema_parts::{line, table};
use crate::words::Level;

use super::{Binder, Description, Given, Levels, Mechanism, interfaces};

const KEYS: &[&str] = &["feature", "interfaces"];

pub(super) const ETHTOOL: Description = Description {
    key: "ethtool",
    what: "a feature of the interfaces",
    levels: Levels::SwitchOf("feature"),
    kinds: &[LabKind::Netns, LabKind::Ssh(System::Linux)],
    takes_values: false,
    table: Some((KEYS, "")),
    read,
    schema,
};

fn schema() -> serde_json::Value {
    table(json!({
        "description": "A feature of interfaces, on or off.",
        "required": ["feature"],
        "properties": { "feature": line("As `ethtool -k` names it."), "interfaces": interfaces::schema() },
    }))
}

/// A feature of interfaces.
#[derive(Debug)]
struct Ethtool {
    feature: String,
    interfaces: Vec<DutInterface>,
}

impl Mechanism for Ethtool {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        binder.refuse_levels(
            |level| !matches!(level, Level::Boolean(_)),
            |_| "a feature of an interface is on or off".to_owned(),
            "write true or false",
        );
        Binding::Ethtool {
            feature: self.feature.clone(),
            interfaces: self.interfaces.clone(),
        }
    }

    fn sets(&self, _: Option<[&str; 2]>) -> Vec<String> {
        let feature = &self.feature;
        let interfaces = self.interfaces.iter();
        interfaces
            .map(|interface| format!("feature {feature} of {interface:?}"))
            .collect()
    }
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let table = reading.table(given.value, given.what, given.keys)?;
    let interfaces = interfaces::interfaces(reading, &table);
    let feature = table.required_line(reading, "feature")?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let name = feature.get_ref();
    if name.starts_with('-') || !name.bytes().all(is_plain) {
        reading
            .error(
                feature.span(),
                format!("{name:?} is no feature of an interface"),
            )
            .with_help(
                "features are named as `ethtool -k` lists them, for example \"rx-gro-list\"",
            );
        return None;
    }
    Some(Box::new(Ethtool {
        feature: feature.into_inner(),
        interfaces: interfaces?,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::errors;

    #[test]
    fn a_feature_cannot_be_an_option() {
        for (feature, allowed) in [
            ("gro", true),
            ("rx-udp-gro-forwarding", true),
            ("--help", false),
            ("gro off", false),
            ("GRO", false),
        ] {
            let errors = errors(&format!("ethtool = {{ feature = {feature:?} }}"));
            assert_eq!(errors.is_empty(), allowed, "{feature}\n{errors}");
        }
    }
}
