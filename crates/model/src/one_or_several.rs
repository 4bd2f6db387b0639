//! One thing as a table, several as a list: what files had before there could be several stays as it was.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes one thing as itself, and any other number of them as a list.
///
/// # Errors
/// Those of the writer.
pub fn serialize<T: Serialize, S: Serializer>(
    things: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match things {
        [thing] => thing.serialize(serializer),
        several => several.serialize(serializer),
    }
}

/// Reads both forms, so that an error says what is wrong with the one that is there.
///
/// # Errors
/// Those of the reader.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_any(Things(PhantomData))
}

struct Things<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Things<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table, or a list of tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|thing| vec![thing])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }
}
