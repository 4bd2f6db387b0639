//! Folded stacks as pprof reads them.

use std::collections::HashMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;

use crate::Folded;

impl Folded<'_> {
    /// The stacks as `go tool pprof` reads them: a `profile.proto`, compressed.
    ///
    /// A frame with an object, ``kernel`ip_input``, is a function in the mapping of that file. There are no
    /// addresses and no times, so that the same stacks are the same bytes whenever they are written.
    ///
    /// # Panics
    /// Never: there is nothing about writing to memory that fails.
    ///
    /// # Source
    /// github.com/google/pprof, `proto/profile.proto`.
    #[must_use]
    pub fn pprof(&self) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder
            .write_all(&profile(self).encode_to_vec())
            .and_then(|()| encoder.finish())
            .expect("memory can be written to")
    }
}

fn profile(folded: &Folded) -> Profile {
    let mut tables = Tables::default();
    // The first text has to be the empty one.
    tables.text("");
    let sample_type = ValueType {
        r#type: tables.text("samples"),
        unit: tables.text("count"),
    };
    tables.profile.sample_type.push(sample_type);
    for stack in folded.stacks() {
        let locations = stack.frames().rev().map(|frame| tables.location(frame));
        let sample = Sample {
            location_id: locations.collect(),
            value: vec![i64::try_from(stack.samples).unwrap_or(i64::MAX)],
        };
        tables.profile.sample.push(sample);
    }
    tables.profile
}

/// A profile while it is put together, and what is in its tables already.
#[derive(Default)]
struct Tables<'f> {
    profile: Profile,
    texts: HashMap<&'f str, i64>,
    mappings: HashMap<&'f str, u64>,
    /// By the names of frames: each has one location and one function, of the same id.
    locations: HashMap<&'f str, u64>,
}

impl<'f> Tables<'f> {
    fn location(&mut self, frame: &'f str) -> u64 {
        if let Some(&known) = self.locations.get(frame) {
            return known;
        }
        let id = self.profile.location.len() as u64 + 1;
        let (mapping_id, symbol) = match frame.split_once('`') {
            Some((object, symbol)) => (self.mapping(object), symbol),
            None => (0, frame),
        };
        let name = self.text(symbol);
        self.profile.function.push(Function { id, name });
        self.profile.location.push(Location {
            id,
            mapping_id,
            line: vec![Line { function_id: id }],
        });
        self.locations.insert(frame, id);
        id
    }

    fn mapping(&mut self, object: &'f str) -> u64 {
        if let Some(&known) = self.mappings.get(object) {
            return known;
        }
        let id = self.profile.mapping.len() as u64 + 1;
        let filename = self.text(object);
        self.profile.mapping.push(Mapping {
            id,
            filename,
            // Else pprof looks for the file, to find symbols in it.
            has_functions: true,
        });
        self.mappings.insert(object, id);
        id
    }

    fn text(&mut self, text: &'f str) -> i64 {
        let texts = &mut self.profile.string_table;
        *self.texts.entry(text).or_insert_with(|| {
            texts.push(text.to_owned());
            i64::try_from(texts.len() - 1).unwrap_or(i64::MAX)
        })
    }
}

/// A `perftools.profiles.Profile`; fields that are not written are left out, here and below.
#[derive(Clone, PartialEq, prost::Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sample {
    /// From the leaf to the root.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8]) -> Profile {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut GzDecoder::new(bytes), &mut text).unwrap();
        Profile::decode(text.as_slice()).unwrap()
    }

    /// The stacks that a profile holds, with their objects.
    fn unfolded(profile: &Profile) -> Folded<'_> {
        let text = |index: i64| profile.string_table[usize::try_from(index).unwrap()].as_str();
        let entry = |id: u64| usize::try_from(id).unwrap() - 1;
        let mut folded = Folded::new();
        for sample in &profile.sample {
            let frames = sample.location_id.iter().rev().map(|&id| {
                let location = &profile.location[entry(id)];
                let function = &profile.function[entry(location.line[0].function_id)];
                let symbol = text(function.name);
                match location.mapping_id {
                    0 => symbol.to_owned(),
                    id => format!("{}`{symbol}", text(profile.mapping[entry(id)].filename)),
                }
            });
            folded.push(frames, sample.value[0].unsigned_abs());
        }
        folded
    }

    #[test]
    fn objects_are_mappings_and_names_are_held_once() {
        let folded = Folded::parse(b"nc;kernel`ip_input;if_ix.ko`rxd 5\nnc;kernel`ip_input 2\n");
        let profile = decoded(&folded.unwrap().pprof());
        let texts = [
            "", "samples", "count", "rxd", "if_ix.ko", "ip_input", "kernel", "nc",
        ];
        let mut found = profile.string_table.clone();
        found.sort_unstable();
        assert_eq!(profile.string_table[0], "");
        assert_eq!(found.len(), texts.len());
        assert!(texts.iter().all(|text| found.contains(&(*text).to_owned())));
        assert_eq!((profile.mapping.len(), profile.location.len()), (2, 3));
        assert_eq!(profile.sample[0].value, [5]);
    }

    proptest! {
        #[test]
        fn every_stack_is_there_with_its_samples(
            stacks in prop::collection::vec((prop::collection::vec("([ab]`)?[a-c]{1,2}", 1..5), 0..=i64::MAX), 0..20),
        ) {
            let mut folded = Folded::new();
            for (stack, samples) in &stacks {
                folded.push(stack.iter().map(String::as_str), samples.unsigned_abs());
            }
            let profile = decoded(&folded.pprof());
            prop_assert_eq!(unfolded(&profile), folded);
        }
    }
}
