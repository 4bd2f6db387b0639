//! The contents of maps, in the form of `bpftool --json map dump`.

use std::collections::BTreeSet;

use aya_obj::generated::bpf_map_type;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Sizes;

/// More entries are refused.
const ENTRIES_MAX: usize = 10_000;

/// The kinds of maps that can be filled, as messages list them.
pub(super) const FILLABLE: &str = "arrays, hash maps, LPM tries, device maps and CPU maps";

pub(super) const PROGRAM_ARRAY: u32 = bpf_map_type::BPF_MAP_TYPE_PROG_ARRAY as u32;

/// Whether a map of that kind takes entries of bytes.
pub(super) fn is_fillable(kind: u32) -> bool {
    use bpf_map_type::{
        BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_CPUMAP, BPF_MAP_TYPE_DEVMAP, BPF_MAP_TYPE_DEVMAP_HASH,
        BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_LPM_TRIE, BPF_MAP_TYPE_LRU_HASH,
        BPF_MAP_TYPE_LRU_PERCPU_HASH, BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_PERCPU_HASH,
    };
    let kinds = [
        BPF_MAP_TYPE_ARRAY,
        BPF_MAP_TYPE_HASH,
        BPF_MAP_TYPE_LRU_HASH,
        BPF_MAP_TYPE_PERCPU_ARRAY,
        BPF_MAP_TYPE_PERCPU_HASH,
        BPF_MAP_TYPE_LRU_PERCPU_HASH,
        BPF_MAP_TYPE_LPM_TRIE,
        BPF_MAP_TYPE_DEVMAP,
        BPF_MAP_TYPE_DEVMAP_HASH,
        BPF_MAP_TYPE_CPUMAP,
    ];
    kinds.into_iter().any(|it| it as u32 == kind)
}

/// The entries of a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contents(pub(super) Vec<(Part, Part)>);

/// A key or a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Part {
    /// As it lies in the map.
    Bytes(Vec<u8>),
    /// The number of an interface of the DUT, which only the DUT knows, and zeros behind it.
    Interface {
        /// Its name.
        interface: String,
        /// The bytes of the whole.
        size: usize,
    },
}

impl Part {
    /// Its bytes, with the numbers of interfaces that `number` finds.
    pub(super) fn bytes<E>(
        &self,
        number: impl FnOnce(&str) -> Result<u32, E>,
    ) -> Result<Vec<u8>, E> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::Interface { interface, size } => {
                let mut bytes = number(interface)?.to_ne_bytes().to_vec();
                bytes.resize(*size, 0);
                Ok(bytes)
            }
        }
    }
}

impl Contents {
    /// The entries that a text lists: objects with a `key` and a `value`, of which each is a list of bytes, a whole number, or
    /// one of `"{dut-in}"` and `"{dut-out}"` for the number of that interface.
    ///
    /// # Errors
    /// What is wrong, with the entry's number from 1.
    pub(super) fn read(text: &str, sizes: Sizes, interfaces: [&str; 2]) -> Result<Self, String> {
        let entries: Value = serde_json::from_str(text).map_err(|error| {
            format!("it is not valid JSON: {error}; write it as `bpftool --json map dump` does")
        })?;
        let Value::Array(entries) = entries else {
            return Err(
                "it is no list of entries; write it as `bpftool --json map dump` does".to_owned(),
            );
        };
        let most = ENTRIES_MAX.min(sizes.entries);
        if entries.len() > most {
            let most = if most == ENTRIES_MAX {
                format!("fwdlab fills in at most {most}")
            } else {
                format!("the map has room for {most}")
            };
            return Err(format!("it has {} entries, and {most}", entries.len()));
        }
        let mut read = Vec::with_capacity(entries.len());
        let mut keys = BTreeSet::new();
        for (number, entry) in (1..).zip(&entries) {
            // An index of a device map that has no device.
            if entry
                .get("value")
                .is_some_and(|value| value.get("error").is_some())
            {
                continue;
            }
            if entry.get("values").is_some() {
                return Err(format!(
                    "entry {number} has `values` by CPU; give one `value`, which every CPU gets"
                ));
            }
            let part = |name: &str, size: usize| {
                let value = entry.get(name).ok_or_else(|| "it is missing".to_owned());
                value
                    .and_then(|value| part(value, size, interfaces))
                    .map_err(|why| format!("entry {number}, `{name}`: {why}"))
            };
            let key = part("key", sizes.key)?;
            if !keys.insert(key.clone()) {
                return Err(format!("entry {number}, `key`: an entry before has it"));
            }
            read.push((key, part("value", sizes.value)?));
        }
        Ok(Self(read))
    }
}

fn part(
    value: &Value,
    size: usize,
    [interface_in, interface_out]: [&str; 2],
) -> Result<Part, String> {
    match value {
        Value::Array(bytes) => {
            if bytes.len() != size {
                return Err(format!(
                    "it has {} bytes, and the map's {size}",
                    bytes.len()
                ));
            }
            let bytes = bytes.iter().map(byte);
            bytes.collect::<Result<_, _>>().map(Part::Bytes)
        }
        Value::Number(number) => {
            let number = number.as_i64().ok_or_else(|| {
                format!("{number} is no whole number of 63 bits; give a list of bytes")
            })?;
            super::integer(number, size).map(Part::Bytes)
        }
        Value::String(name) if name == "{dut-in}" || name == "{dut-out}" => {
            if size < size_of::<u32>() {
                return Err(format!(
                    "the map's {size} bytes hold no number of an interface"
                ));
            }
            let interface = if name == "{dut-in}" {
                interface_in
            } else {
                interface_out
            };
            Ok(Part::Interface {
                interface: interface.to_owned(),
                size,
            })
        }
        other => Err(format!(
            "{other} is neither a list of bytes, nor a whole number, nor \"{{dut-in}}\" or \"{{dut-out}}\""
        )),
    }
}

/// A byte: `"0x1f"`, as bpftool writes it, or a number.
fn byte(value: &Value) -> Result<u8, String> {
    let byte = match value {
        Value::Number(number) => number.as_u64().and_then(|number| number.try_into().ok()),
        Value::String(text) => match text.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
        _ => None,
    };
    byte.ok_or_else(|| format!("{value} is no byte; write \"0x1f\" or 31"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZES: Sizes = Sizes {
        key: 4,
        value: 8,
        entries: 3,
    };

    fn read(text: &str) -> Result<Contents, String> {
        Contents::read(text, SIZES, ["eth0", "eth1"])
    }

    #[test]
    fn entries_are_read_as_bpftool_writes_them_and_as_numbers() {
        let text = r#"[
            {"key":["0x01","0x00","0x00","0x00"],"value":["0xff",2,"3",0,0,0,0,0],"formatted":{"key":1,"value":1}},
            {"key":2,"value":-1},
            {"key":3,"value":"{dut-out}"}
        ]"#;
        let Contents(entries) = read(text).unwrap();
        let bytes = |part: &Part| part.bytes(|_| Ok::<_, ()>(7)).unwrap();
        let entries: Vec<_> = entries
            .iter()
            .map(|(key, value)| (bytes(key), bytes(value)))
            .collect();
        assert_eq!(
            entries[0],
            (vec![1, 0, 0, 0], vec![255, 2, 3, 0, 0, 0, 0, 0])
        );
        assert_eq!(entries[1], (vec![2, 0, 0, 0], vec![255; 8]));
        assert_eq!(entries[2].1, vec![7, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_is_no_entry_is_named() {
        for (text, expected) in [
            ("", "it is not valid JSON"),
            (
                r#"[{"key":1,"values":[{"cpu":0,"value":[0]}]}]"#,
                "entry 1 has `values` by CPU",
            ),
            ("{}", "it is no list of entries"),
            ("[1]", "entry 1, `key`: it is missing"),
            (r#"[{"key":1}]"#, "entry 1, `value`: it is missing"),
            (
                r#"[{"key":[1],"value":1}]"#,
                "entry 1, `key`: it has 1 bytes, and the map's 4",
            ),
            (
                r#"[{"key":1,"value":[0,0,0,0,0,0,0,256]}]"#,
                "entry 1, `value`: 256 is no byte",
            ),
            (
                r#"[{"key":4294967296,"value":1}]"#,
                "4294967296 does not fit into its 4 bytes",
            ),
            (
                r#"[{"key":1,"value":1},{"key":1,"value":2}]"#,
                "entry 2, `key`: an entry before has it",
            ),
            (
                r#"[{"key":1,"value":"eth0"}]"#,
                "is neither a list of bytes",
            ),
            (r#"[{"key":1.5,"value":1}]"#, "1.5 is no whole number"),
            ("[0,0,0,0]", "it has 4 entries, and the map has room for 3"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r#"(\[|\]|\{|\}|"key"|"value"|:|,|"0x[0-9a-g]{1,3}"|-?[0-9]{1,20}|\{dut-in\}){0,40}"#) {
            let _ = read(&text);
        }
    }
}
