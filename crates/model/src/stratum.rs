//! What is measured and reported apart: each address family of each traffic.

use std::fmt;
use std::str::FromStr;

use arrayvec::ArrayString;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::words::AddressFamily;

/// Characters of a traffic's name at most.
pub(crate) const TRAFFIC_NAME_MAX: usize = 24;

/// The name of a traffic: lower-case letters, digits and `-`, at most 24 of them, a letter or a digit first.
///
/// It is a part of file names, as a variant's name is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrafficName(ArrayString<TRAFFIC_NAME_MAX>);

impl TrafficName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that is no name of a traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name of a traffic has 1 to {TRAFFIC_NAME_MAX} lower-case letters, digits and hyphens, and begins with a letter or \
     a digit"
)]
pub struct TrafficNameError;

impl FromStr for TrafficName {
    type Err = TrafficNameError;

    fn from_str(text: &str) -> Result<Self, TrafficNameError> {
        let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_name = text.as_bytes().first().is_some_and(is_plain)
            && text.bytes().all(|byte| is_plain(&byte) || byte == b'-');
        let name = ArrayString::from(text).ok().filter(|_| is_name);
        name.map(Self).ok_or(TrafficNameError)
    }
}

impl fmt::Display for TrafficName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for TrafficName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for TrafficName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for TrafficName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|error| de::Error::custom(format!("{text:?}: {error}")))
    }
}

/// An address family of a traffic: measured by itself in every block, judged and reported apart.
///
/// In files it is two keys, `family` and, where the traffic has a name, `traffic`. As a key of a map, and in names of
/// files, it is one word: `inet`, or `inet-imix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stratum {
    /// The traffic; none where the experiment has one, without a name. Strata are in the order of their traffics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficName>,
    /// The address family.
    pub family: AddressFamily,
}

impl Stratum {
    /// IPv4 of an experiment's only traffic.
    pub const INET: Self = Self::of(AddressFamily::Inet);
    /// IPv6 of it.
    pub const INET6: Self = Self::of(AddressFamily::Inet6);

    const fn of(family: AddressFamily) -> Self {
        Self {
            family,
            traffic: None,
        }
    }

    /// What tables and sentences call it: `IPv4`, or `IPv4, imix`.
    #[must_use]
    pub fn label(self) -> String {
        let protocol = self.family.protocol();
        match self.traffic {
            Some(traffic) => format!("{protocol}, {traffic}"),
            None => protocol.to_owned(),
        }
    }
}

impl From<AddressFamily> for Stratum {
    /// That family of an experiment's only traffic.
    fn from(family: AddressFamily) -> Self {
        Self::of(family)
    }
}

impl fmt::Display for Stratum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.traffic {
            Some(traffic) => write!(f, "{}-{traffic}", self.family),
            None => fmt::Display::fmt(&self.family, f),
        }
    }
}

impl FromStr for Stratum {
    type Err = String;

    /// What [`Stratum`]'s `Display` writes.
    fn from_str(text: &str) -> Result<Self, String> {
        let (family, traffic) = match text.split_once('-') {
            Some((family, traffic)) => (family, Some(traffic)),
            None => (text, None),
        };
        let families = [AddressFamily::Inet, AddressFamily::Inet6];
        let family = families.into_iter().find(|of| of.as_str() == family);
        Ok(Self {
            family: family.ok_or_else(|| format!("{text:?} does not begin with inet or inet6"))?,
            traffic: traffic
                .map(str::parse)
                .transpose()
                .map_err(|error| format!("{text:?}: {error}"))?,
        })
    }
}

/// Maps whose keys are strata, each key one word.
pub mod keys {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::Stratum;

    /// Writes such a map.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn serialize<V: Serialize, S: Serializer>(
        map: &BTreeMap<Stratum, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            map.iter()
                .map(|(stratum, value)| (stratum.to_string(), value)),
        )
    }

    /// Reads such a map.
    ///
    /// # Errors
    /// A key that is no stratum.
    pub fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Stratum, V>, D::Error> {
        let map = BTreeMap::<String, V>::deserialize(deserializer)?;
        let strata = map.into_iter().map(|(key, value)| {
            let stratum = key.parse().map_err(de::Error::custom)?;
            Ok((stratum, value))
        });
        strata.collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stratum_is_a_family_and_the_name_of_its_traffic_where_it_has_one() {
        let plain = Stratum::INET;
        let imix = Stratum {
            traffic: Some("imix".parse().unwrap()),
            family: AddressFamily::Inet6,
        };
        for (stratum, word, label, written) in [
            (plain, "inet", "IPv4", r#"{"family":"inet"}"#),
            (
                imix,
                "inet6-imix",
                "IPv6, imix",
                r#"{"traffic":"imix","family":"inet6"}"#,
            ),
        ] {
            assert_eq!(stratum.to_string(), word);
            assert_eq!(word.parse(), Ok(stratum));
            assert_eq!(stratum.label(), label);
            assert_eq!(serde_json::to_string(&stratum).unwrap(), written);
            assert_eq!(serde_json::from_str::<Stratum>(written).unwrap(), stratum);
        }
        for wrong in ["", "ipv4", "inet-", "inet-Imix", "-imix", "inet-a.b"] {
            assert!(wrong.parse::<Stratum>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_name_that_is_taken_is_a_part_of_a_file_name(text in "[a-z0-9A-Z./ -]{0,30}") {
            if let Ok(name) = text.parse::<TrafficName>() {
                let stratum = Stratum { traffic: Some(name), family: AddressFamily::Inet };
                prop_assert_eq!(stratum.to_string().parse(), Ok(stratum));
                prop_assert!(!text.contains(['.', '/', ' ']));
            }
        }
    }
}
