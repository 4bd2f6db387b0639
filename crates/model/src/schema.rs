//! JSON Schema of the experiment and the lab file, for editors.
//!
//! It is drawn up from the bounds and words that the parser itself uses, and a test holds its keys
//! to the parser's. What no schema can say (that a factor is bound, that a label is known) the
//! parser alone says.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::document::ENTRIES_MAX;
use crate::schema_parts::{line, program, table, words};
use crate::words::AddressFamily;
use crate::{experiment, hosts, lab_file, mechanism, profile, traffic, variants, zipf};

/// The schema of experiment files, in draft 2020-12.
#[must_use]
pub fn experiment() -> Value {
    file(json!({
        "title": "fwdlab experiment",
        "description": "What is varied and how it is measured; see docs/experiment-file.md.",
        "required": ["question", "factor"],
        "properties": {
            "question": line("Title of the report: \"Impact of … on …\"."),
            "background": text("What a reader should know before the results."),
            "lab": line("The lab file, relative to this file."),
            "factor": tables("The things that are varied.", 1, factor()),
            "settings": levels("What is held constant: the level of each, by its name.", 0),
            "variant": at_most(variants::VARIANTS_MAX, variants()),
            "exclude": tables("Combinations of levels that are not made; only without [[variant]].", 0, exclude()),
            "comparison": tables("What is compared with what.", 0, comparison()),
            "traffic": traffics(),
            "design": design(),
            "profile": profile(),
            "reference": tables("Earlier data, shown beside the results.", 0, reference()),
        },
        "$defs": { "traffic": traffic_table() },
    }))
}

/// The schema of lab files, in draft 2020-12.
#[must_use]
pub fn lab() -> Value {
    file(json!({
        "title": "fwdlab lab",
        "description": "Where is measured and how each factor is set there; see docs/experiment-file.md.",
        "required": ["kind"],
        "properties": {
            "kind": words("What kind of lab.", &lab_file::kinds()),
            "description": line("One line for the reader."),
            "regime": words(
                "How the load relates to what the DUT can forward, unless the experiment says.",
                lab_file::REGIMES,
            ),
            "link_gbps": number("Speed of the links in Gbit/s.", &lab_file::LINK_GBPS),
            "placement": placement(),
            "router": router(),
            "notify": notify(),
            "ssh": ssh(),
            "dut": dut_host(),
            "tester": tester_host(),
            "receiver": receiver_host(),
            "generator": generator_hosts(),
            "bind": {
                "description": "How each factor is set, by its name.",
                "type": "object",
                "additionalProperties": mechanism::schema(),
            },
        },
    }))
}

/// A schema as its file has it.
#[must_use]
pub fn text_of(schema: &Value) -> String {
    format!("{schema:#}\n")
}

fn factor() -> Value {
    table(json!({
        "required": ["name", "levels"],
        "properties": {
            "name": line("Its name in the field's words; the lab binds it under this name."),
            "description": text("One sentence for the reader."),
            "levels": {
                "description": "The values it takes.",
                "type": "array",
                "maxItems": ENTRIES_MAX,
                "items": level(),
                "minItems": 1,
                "uniqueItems": true,
            },
            "default": level(),
        },
    }))
}

fn variants() -> Value {
    let variant = table(json!({
        "required": ["label"],
        "properties": {
            "label": line("Its name for readers."),
            "levels": levels("The levels that are not the default.", 0),
        },
    }));
    tables(
        "The combinations of levels that are measured; all where none is listed.",
        0,
        variant,
    )
}

fn exclude() -> Value {
    table(json!({
        "required": ["levels"],
        "properties": { "levels": levels("Combinations that have all of these are not made.", 1) },
    }))
}

fn comparison() -> Value {
    table(json!({
        "required": ["baseline"],
        "properties": {
            "title": line("Heading in the report."),
            "baseline": line("Label of the variant that the others are compared with."),
            "variants": {
                "description": "Labels of what is compared with the baseline; all others by default.",
                "type": "array",
                "items": line("Label of a variant."),
                "minItems": 1,
                "uniqueItems": true,
            },
        },
    }))
}

/// By its shape, so that an editor names what is wrong in the form that is there.
fn traffics() -> Value {
    let traffic = json!({ "$ref": "#/$defs/traffic" });
    json!({
        "description": "What the tester sends: [traffic], or several [[traffic]] with names.",
        "if": { "type": "array" },
        "then": {
            "items": traffic,
            "minItems": 1,
            "maxItems": traffic::TRAFFICS_MAX,
        },
        "else": traffic,
    })
}

fn traffic_table() -> Value {
    let count = |what| integer(what, &(1..=traffic::FLOWS_MAX));
    let families = [AddressFamily::Inet, AddressFamily::Inet6].map(AddressFamily::as_str);
    table(json!({
        "description": "What the tester sends.",
        "properties": {
            "name": {
                "description": "Its name, where there are several.",
                "type": "string",
                "pattern": "^[a-z0-9][a-z0-9-]{0,23}$",
            },
            "families": {
                "description": "Address families, measured one after the other and reported apart.",
                "type": "array",
                "items": { "enum": families },
                "minItems": 1,
                "uniqueItems": true,
            },
            "frame_size": frame_size(),
            "sources": count("Source addresses."),
            "destinations": count("Destination addresses."),
            "inet": ranges("198.18.10.1-198.18.10.20"),
            "inet6": ranges("2001:2:0:10::1-2001:2:0:10::14"),
            "source_ports": ports("Source ports of UDP."),
            "destination_ports": ports("Destination ports of UDP."),
            "zipf": number(
                "Exponent of a Zipf distribution of the frames over the flows; by default every flow is sent in its turn.",
                &zipf::ZIPF_EXPONENT,
            ),
            "vlan": integer(
                "The VLAN whose tag every frame has (IEEE 802.1Q): 4 bytes more than its frame_size.",
                &traffic::VLAN,
            ),
            "direction": words("Through which of the DUT's ports the frames come in.", traffic::DIRECTIONS),
            "load": load(),
            "burst": integer("Frames that a paced generator sends back to back.", &traffic::BURST_FRAMES),
        },
    }))
}

fn frame_size() -> Value {
    let size = table(json!({
        "required": ["bytes", "share"],
        "properties": {
            "bytes": integer("Ethernet bytes, FCS included.", &traffic::FRAME_SIZE),
            "share": integer("Frames of this size in each turn.", &traffic::SHARE),
        },
    }));
    json!({
        "description": "Ethernet bytes, FCS included; \"imix\" is 7 x 64, 4 x 594, 1 x 1518.",
        "anyOf": [
            integer("One size.", &traffic::FRAME_SIZE),
            { "const": traffic::IMIX_WORD },
            {
                "type": "array",
                "items": size,
                "minItems": 1,
                "maxItems": traffic::FRAME_SIZES_MAX,
            },
        ],
    })
}

fn ranges(example: &str) -> Value {
    let range = json!({
        "description": "An address, or first-last.",
        "type": "string",
        "examples": [example],
    });
    table(json!({
        "description": "Explicit addresses of this family; all families have the same number.",
        "properties": { "sources": range, "destinations": range },
    }))
}

fn ports(what: &str) -> Value {
    json!({
        "description": what,
        "anyOf": [
            integer("One port.", &traffic::PORT),
            { "type": "string", "examples": ["1024-1033"] },
        ],
    })
}

fn load() -> Value {
    let paced = table(json!({
        "properties": {
            "pps": integer("Frames per second.", &traffic::INTENDED_LOAD_PPS),
            "line_rate_percent": number(
                "Percent of the lab's line rate; needs its link_gbps.",
                &traffic::LINE_RATE_PERCENT,
            ),
        },
        "minProperties": 1,
        "maxProperties": 1,
    }));
    json!({
        "description": "What is asked of the generator; by default what the lab declares.",
        "anyOf": [words("A regime without a number.", traffic::LOADS), paced],
    })
}

fn profile() -> Value {
    table(json!({
        "description": "Profiles: stacks sampled under the load, of every variant.",
        "required": ["every"],
        "properties": {
            "every": words("Where in a block they are taken.", profile::EVERY),
            "slice_ms": integer("Length of a slice with samples.", &experiment::SLICE_MS),
            "frequency_hz": integer("Samples a second.", &profile::FREQUENCY_HZ),
        },
    }))
}

fn design() -> Value {
    table(json!({
        "description": "How often, how long and in what order.",
        "properties": {
            "blocks": integer("Fresh set-ups.", &experiment::BLOCKS),
            "rounds": integer("Slices of every variant in a block.", &experiment::ROUNDS),
            "slice_ms": integer("Length of a slice.", &experiment::SLICE_MS),
            "settle_ms": integer("What is discarded after each switch.", &experiment::SETTLE_MS),
            "warm_up_ms": integer("Load before the first round of a block.", &experiment::WARM_UP_MS),
            "order": words("How the slices of a round follow each other.", experiment::ORDERS),
            "seed": integer("Decides all orders.", &(0..=u64::MAX)),
            "threshold_percent": number("Smaller effects are treated as irrelevant.", &experiment::THRESHOLD_PERCENT),
            "cpu_threshold_percent": number(
                "Smaller changes of CPU time per packet are treated as irrelevant.",
                &experiment::THRESHOLD_PERCENT,
            ),
            "confidence_percent": number("Confidence of the verdicts.", &experiment::CONFIDENCE_PERCENT),
            "control": {
                "description": "A/A control: the first comparison's baseline is measured twice.",
                "type": "boolean",
            },
        },
    }))
}

fn reference() -> Value {
    let file = line("File with one observation a line, relative to the experiment.");
    let files = table(json!({ "properties": { "inet": file, "inet6": file }, "minProperties": 1 }));
    table(json!({
        "required": ["label", "pps"],
        "properties": {
            "label": line("Its name for readers."),
            "pps": files,
            "traffic": line("The traffic under which they were measured, where there are several."),
        },
    }))
}

fn placement() -> Value {
    let cpu = |what| integer(what, &lab_file::CPU);
    table(json!({
        "description": "Who runs on which CPU.",
        "properties": {
            "load_cpu": cpu("CPU of the generator."),
            "dut_cpu": cpu("CPU on which the DUT forwards."),
            "control_cpu": cpu("CPU of the harness."),
        },
    }))
}

fn router() -> Value {
    table(json!({
        "description": "What a reference router is besides its knobs; only of kind \"router\".",
        "properties": {
            "queues": integer("Pairs of a receive and a transmit queue.", &lab_file::QUEUES),
            "tester": words("In whose thread the tester sends and counts.", lab_file::ROUTER_TESTERS),
            "overload_ratio": number(
                "Under overload, offered load / what the baseline forwards at most.",
                &lab_file::OVERLOAD_RATIO,
            ),
        },
    }))
}

fn notify() -> Value {
    table(json!({
        "description": "Who is notified when a run has ended.",
        "properties": {
            "command": program("What is run on this machine then; the message is its standard input."),
            "webhook": line("Where the message is posted as JSON: http:// or https://."),
        },
    }))
}

fn ssh() -> Value {
    let config = line("The file for `ssh -F`, relative to this one; the user's own without.");
    table(json!({
        "description": "How hosts are reached; only of labs of hosts.",
        "properties": { "config": config },
    }))
}

fn dut_host() -> Value {
    table(json!({
        "description": "The device under test; only of labs of hosts.",
        "required": ["host", "in", "out"],
        "properties": {
            "host": host_line(),
            "in": line("Its interface that faces the generator."),
            "out": line("Its interface that faces the sink."),
            "reboot_s_max": integer(
                "How long it may take to boot, in seconds; 600 without.",
                &hosts::REBOOT_S_MAX,
            ),
            "power_cycle": program("What cuts its power and gives it back, run on this machine."),
            "program": program_file(),
            "pmc_event": line("Of FreeBSD: after what event pmcstat samples; unhalted-cycles without, which not every CPU has."),
            "overwrite_other_slice": {
                "description": "Whether images of nanobsd may take the place of what is on the other \
                                slice of its disk, for good; only of FreeBSD.",
                "type": "boolean",
            },
            "drop_counters": {
                "description": "Counters of `ethtool -S` under which its ports count frames that they \
                                drop, and nowhere else; only of Linux.",
                "type": "array",
                "items": line("A counter's name."),
                "uniqueItems": true,
            },
        },
    }))
}

fn tester_host() -> Value {
    table(json!({
        "description": "Generator and sink; only of labs of hosts.",
        "required": ["host", "out"],
        "properties": {
            "host": host_line(),
            "out": line("Where the generator sends."),
            "in": line("Where the sink counts; not where [receiver] says it."),
            "uses": words("What sends and counts.", hosts::USES),
            "cpu": integer("The CPU that sends; the last without.", &lab_file::CPU),
            "cpus": sending_cpus(),
            "program": program_file(),
        },
    }))
}

fn receiver_host() -> Value {
    table(json!({
        "description": "The host of the sink, where that is another one than the generator's.",
        "required": ["host", "in"],
        "properties": {
            "host": host_line(),
            "in": line("Where the sink counts."),
            "program": program_file(),
        },
    }))
}

fn sending_cpus() -> Value {
    json!({
        "description": "The CPUs that send and share the flows, instead of `cpu`; not with pkt-gen.",
        "type": "array",
        "items": integer("A CPU.", &lab_file::CPU),
        "minItems": 1,
        "uniqueItems": true,
    })
}

fn generator_hosts() -> Value {
    let host = table(json!({
        "required": ["host", "out"],
        "properties": {
            "host": host_line(),
            "out": line("Where it sends."),
            "cpu": integer("The CPU that sends; the last without.", &lab_file::CPU),
            "cpus": sending_cpus(),
            "program": program_file(),
        },
    }));
    json!({
        "description": "More generators, which send the same frames at the same time.",
        "type": "array",
        "items": host,
    })
}

fn host_line() -> Value {
    line("The destination for ssh: a host of its configuration, or user@host.")
}

fn program_file() -> Value {
    line("The fwdlab program for that host, relative to this file; the running one without.")
}

fn file(schema: Value) -> Value {
    let mut file = table(schema);
    file["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    file
}

fn tables(description: &str, least: usize, table: Value) -> Value {
    let mut tables = json!({
        "description": description,
        "type": "array",
        "items": table,
        "maxItems": ENTRIES_MAX,
    });
    if least > 0 {
        tables["minItems"] = json!(least);
    }
    tables
}

fn at_most(most: usize, mut list: Value) -> Value {
    list["maxItems"] = json!(most);
    list
}

fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

fn level() -> Value {
    json!({
        "description": "A value of a factor.",
        "type": ["string", "integer", "boolean"],
    })
}

fn levels(description: &str, least: usize) -> Value {
    let mut levels = json!({
        "description": description,
        "type": "object",
        "additionalProperties": level(),
    });
    if least > 0 {
        levels["minProperties"] = json!(least);
    }
    levels
}

fn integer<T: Copy + Into<Value>>(description: &str, bounds: &RangeInclusive<T>) -> Value {
    bounded(description, "integer", bounds)
}

fn number(description: &str, bounds: &RangeInclusive<f64>) -> Value {
    bounded(description, "number", bounds)
}

fn bounded<T: Copy + Into<Value>>(
    description: &str,
    kind: &str,
    bounds: &RangeInclusive<T>,
) -> Value {
    let (minimum, maximum): (Value, Value) = ((*bounds.start()).into(), (*bounds.end()).into());
    json!({
        "description": description,
        "type": kind,
        "minimum": minimum,
        "maximum": maximum,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hosts;

    /// Every table of the parser, and where the schema has it.
    const TABLES: &[(&[&str], &str)] = &[
        (experiment::FILE_KEYS, "/experiment"),
        (
            experiment::FACTOR_KEYS,
            "/experiment/properties/factor/items",
        ),
        (
            experiment::VARIANT_KEYS,
            "/experiment/properties/variant/items",
        ),
        (
            experiment::EXCLUDE_KEYS,
            "/experiment/properties/exclude/items",
        ),
        (
            experiment::COMPARISON_KEYS,
            "/experiment/properties/comparison/items",
        ),
        (traffic::TRAFFIC_KEYS, "/experiment/$defs/traffic"),
        (
            traffic::RANGE_KEYS,
            "/experiment/$defs/traffic/properties/inet",
        ),
        (
            traffic::RANGE_KEYS,
            "/experiment/$defs/traffic/properties/inet6",
        ),
        (
            traffic::FRAME_SIZE_KEYS,
            "/experiment/$defs/traffic/properties/frame_size/anyOf/2/items",
        ),
        (
            traffic::LOAD_KEYS,
            "/experiment/$defs/traffic/properties/load/anyOf/1",
        ),
        (experiment::DESIGN_KEYS, "/experiment/properties/design"),
        (profile::PROFILE_KEYS, "/experiment/properties/profile"),
        (
            experiment::REFERENCE_KEYS,
            "/experiment/properties/reference/items",
        ),
        (
            experiment::REFERENCE_PPS_KEYS,
            "/experiment/properties/reference/items/properties/pps",
        ),
        (lab_file::FILE_KEYS, "/lab"),
        (lab_file::PLACEMENT_KEYS, "/lab/properties/placement"),
        (lab_file::ROUTER_KEYS, "/lab/properties/router"),
        (hosts::SSH_KEYS, "/lab/properties/ssh"),
        (hosts::DUT_KEYS, "/lab/properties/dut"),
        (hosts::TESTER_KEYS, "/lab/properties/tester"),
        (hosts::RECEIVER_KEYS, "/lab/properties/receiver"),
        (hosts::GENERATOR_KEYS, "/lab/properties/generator/items"),
        (lab_file::NOTIFY_KEYS, "/lab/properties/notify"),
        (
            mechanism::BINDING_KEYS,
            "/lab/properties/bind/additionalProperties",
        ),
    ];

    /// Those, and the tables of mechanisms.
    fn tables() -> Vec<(&'static [&'static str], String)> {
        let fixed = TABLES
            .iter()
            .map(|(keys, place)| (*keys, (*place).to_owned()));
        let of_mechanisms = mechanism::MECHANISMS.iter().filter_map(|mechanism| {
            let (keys, place) = mechanism.table?;
            let bound = "/lab/properties/bind/additionalProperties/properties";
            Some((keys, format!("{bound}/{}{place}", mechanism.key)))
        });
        fixed.chain(of_mechanisms).collect()
    }

    fn keys(table: &Value) -> BTreeSet<&str> {
        let properties = table["properties"]
            .as_object()
            .expect("a table of fixed keys");
        properties.keys().map(String::as_str).collect()
    }

    /// Tables of fixed keys, however deep.
    fn fixed_tables(schema: &Value) -> usize {
        let is_fixed = schema.get("properties").is_some_and(Value::is_object)
            && schema.get("additionalProperties") == Some(&json!(false));
        let inside: usize = match schema {
            Value::Object(entries) => entries.values().map(fixed_tables).sum(),
            Value::Array(items) => items.iter().map(fixed_tables).sum(),
            _ => 0,
        };
        inside + usize::from(is_fixed)
    }

    #[test]
    fn the_schemas_have_the_keys_of_the_parser_and_no_others() {
        let schemas = json!({ "experiment": experiment(), "lab": lab() });
        let tables = tables();
        for (expected, place) in &tables {
            let table = schemas.pointer(place).expect(place);
            assert_eq!(keys(table), expected.iter().copied().collect(), "{place}");
        }
        assert_eq!(
            fixed_tables(&schemas),
            tables.len(),
            "a table is not held to the parser"
        );
    }

    #[test]
    fn the_guide_has_a_row_for_every_key() {
        let guide = include_str!("../../../docs/experiment-file.md");
        for key in tables().into_iter().flat_map(|(keys, _)| keys) {
            let start = format!("| `{key}` |");
            let has_row = guide.lines().any(|line| line.starts_with(&start));
            assert!(has_row, "no row for `{key}`");
        }
    }

    #[test]
    fn the_committed_schemas_are_those_of_this_parser() {
        for (schema, committed, kind) in [
            (
                experiment(),
                include_str!("../../../docs/schema/experiment.schema.json"),
                "experiment",
            ),
            (
                lab(),
                include_str!("../../../docs/schema/lab.schema.json"),
                "lab",
            ),
        ] {
            assert!(
                text_of(&schema) == committed,
                "fwdlab schema {kind} > docs/schema/{kind}.schema.json"
            );
        }
    }
}
