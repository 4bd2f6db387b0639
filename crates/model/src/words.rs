//! The words that every other module uses: address family, load regime, level, variant name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A stratum of an experiment: families are measured and reported apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressFamily {
    /// IPv4.
    Inet,
    /// IPv6.
    Inet6,
}

impl AddressFamily {
    /// The word used in files and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inet => "inet",
            Self::Inet6 => "inet6",
        }
    }

    /// The word used in sentences.
    #[must_use]
    pub const fn protocol(self) -> &'static str {
        match self {
            Self::Inet => "IPv4",
            Self::Inet6 => "IPv6",
        }
    }
}

impl fmt::Display for AddressFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How the load relates to what the DUT can forward; declared by the lab or the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadRegime {
    /// Generator and DUT take turns on one core: what is measured is the cost of a packet.
    SelfClocked,
    /// Offered below what the DUT can forward.
    Paced,
    /// Offered above what the DUT can forward.
    Overload,
}

impl fmt::Display for LoadRegime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SelfClocked => "self-clocked",
            Self::Paced => "paced",
            Self::Overload => "overload",
        })
    }
}

/// One value of a factor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Level {
    /// A truth value.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A word.
    Text(String),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

/// The name of a variant in files: lower-case letters, digits, `.`, `_` and `-`, never empty,
/// and never starting with a dot.
///
/// It is made from the variant's label, so that `<variant>.<family>.pps` is always a safe file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct VariantName(String);

/// What the longest name made from a text may be, so that every file system can hold its files.
const NAME_LENGTH_MAX: usize = 80;

impl VariantName {
    /// Makes the name of a label: what a file name should not hold becomes `-`.
    #[must_use]
    pub fn from_label(label: &str) -> Self {
        Self(safe_name(label).unwrap_or_else(|| "variant".into()))
    }

    /// The same name with a number behind it, for labels that would share a name.
    #[must_use]
    pub fn numbered(&self, number: usize) -> Self {
        Self(format!("{}-{number}", self.0))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_safe(text: &str) -> bool {
        !text.is_empty()
            && text.len() <= NAME_LENGTH_MAX + 8
            && !text.starts_with('.')
            && text.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte)
            })
    }
}

/// A text as the name of a file: what such a name should not hold becomes `-`; none where nothing
/// else is left.
pub(crate) fn safe_name(text: &str) -> Option<String> {
    let mut name = String::new();
    for character in text.chars().flat_map(char::to_lowercase) {
        let safe = character.is_ascii_alphanumeric() || matches!(character, '.' | '_');
        if safe && !(name.is_empty() && character == '.') {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if name.len() >= NAME_LENGTH_MAX {
            break;
        }
    }
    let name = name.trim_end_matches(['-', '.']);
    (!name.is_empty()).then(|| name.into())
}

impl fmt::Display for VariantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for VariantName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if Self::is_safe(&text) {
            Ok(Self(text))
        } else {
            Err(serde::de::Error::custom(format!(
                "variant name {text:?} is not made of a-z, 0-9, '.', '_' and '-'"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_whatever_the_label() {
        for (label, name) in [
            ("no filter", "no-filter"),
            (
                "nftables, 10 stateless rules",
                "nftables-10-stateless-rules",
            ),
            ("../../etc/passwd", "etc-passwd"),
            ("…", "variant"),
            (".hidden", "hidden"),
            ("iflib.simple_tx=1", "iflib.simple_tx-1"),
        ] {
            assert_eq!(VariantName::from_label(label).as_str(), name);
            assert!(VariantName::is_safe(name));
        }
        let long = VariantName::from_label(&"x".repeat(500));
        assert!(VariantName::is_safe(long.as_str()));
    }

    #[test]
    fn an_unsafe_name_in_a_record_is_refused() {
        assert!(serde_json::from_str::<VariantName>("\"../x\"").is_err());
        assert!(serde_json::from_str::<VariantName>("\"a.b-c_1\"").is_ok());
    }
}
