//! The experiment file: what its author wrote, typed, each name with its place.

use std::ops::RangeInclusive;
use std::sync::Arc;

use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostic::{Diagnostics, Source, Span, list, nearest};
use crate::document::{Reading, Table, Value};
use crate::resolved::{Design, Traffic};
use crate::words::{AddressFamily, Level, LoadRegime};

const FILE_KEYS: &[&str] = &[
    "question",
    "background",
    "lab",
    "factor",
    "variant",
    "comparison",
    "traffic",
    "design",
];
const FACTOR_KEYS: &[&str] = &["name", "description", "levels", "default"];
const VARIANT_KEYS: &[&str] = &["label", "levels"];
const COMPARISON_KEYS: &[&str] = &["title", "baseline", "variants"];
const TRAFFIC_KEYS: &[&str] = &["families", "frame_size", "sources", "destinations", "load"];
const LOAD_KEYS: &[&str] = &["pps"];
const DESIGN_KEYS: &[&str] = &[
    "blocks",
    "rounds",
    "slice_ms",
    "settle_ms",
    "warm_up_ms",
    "seed",
    "threshold_percent",
    "confidence_percent",
    "control",
];

/// The smallest Ethernet frame, FCS included (IEEE 802.3): the only one that the generator sends.
const FRAME_SIZE: RangeInclusive<u16> = 64..=64;
/// What the generator's map of templates holds: one for each flow.
const FLOWS_MAX: u32 = 2048;
/// At less, a short slice holds too few frames to be a measurement.
const INTENDED_LOAD_PPS: RangeInclusive<u64> = 1_000..=100_000_000;

/// An experiment file, read.
#[derive(Debug)]
pub(crate) struct ExperimentFile {
    pub(crate) source: Arc<Source>,
    pub(crate) question: String,
    pub(crate) background: Option<String>,
    /// The lab file, relative to this one.
    pub(crate) lab: Option<Spanned<String>>,
    pub(crate) factors: Vec<FactorEntry>,
    /// None: all combinations of the levels.
    pub(crate) variants: Vec<VariantEntry>,
    /// None: the usual baseline against all others.
    pub(crate) comparisons: Vec<ComparisonEntry>,
    pub(crate) traffic: Traffic,
    /// Its seed is 0 where none is given.
    pub(crate) design: Design,
    /// Whether the first baseline is measured a second time.
    pub(crate) control: bool,
}

/// A `[[factor]]`.
#[derive(Debug)]
pub(crate) struct FactorEntry {
    pub(crate) name: Spanned<String>,
    pub(crate) description: Option<String>,
    /// No two of them read the same. Empty only where that is already an error.
    pub(crate) levels: Vec<Spanned<Level>>,
    pub(crate) default: Level,
}

/// A `[[variant]]`.
#[derive(Debug)]
pub(crate) struct VariantEntry {
    pub(crate) label: Spanned<String>,
    pub(crate) levels: Vec<(Spanned<String>, Spanned<Level>)>,
}

/// A `[[comparison]]`.
#[derive(Debug)]
pub(crate) struct ComparisonEntry {
    pub(crate) span: Span,
    pub(crate) title: Option<Spanned<String>>,
    /// The label of a variant; none only where that is already an error.
    pub(crate) baseline: Option<Spanned<String>>,
    /// Labels of variants; none is all others.
    pub(crate) variants: Option<Vec<Spanned<String>>>,
}

impl ExperimentFile {
    /// Reads the file, notes every error in it and goes on with defaults in its place; none only
    /// where the syntax is broken.
    pub(crate) fn parse(source: &Arc<Source>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let reading = &mut Reading {
            source,
            diagnostics,
        };
        let document = reading.parse()?;
        let file = Table::open(reading, &document, 0..0, "", FILE_KEYS);
        let factors = file.tables(reading, "factor", FACTOR_KEYS);
        file.required(reading, "factor");
        let factors = factors
            .iter()
            .filter_map(|table| factor(reading, table))
            .collect();
        let variants = file
            .tables(reading, "variant", VARIANT_KEYS)
            .iter()
            .filter_map(|table| variant(reading, table))
            .collect();
        let comparisons = file
            .tables(reading, "comparison", COMPARISON_KEYS)
            .iter()
            .map(|table| comparison(reading, table))
            .collect();
        let traffic = file.table(reading, "traffic", TRAFFIC_KEYS);
        let design = file.table(reading, "design", DESIGN_KEYS);
        Some(Self {
            source: Arc::clone(source),
            question: file
                .required_line(reading, "question")
                .map(Spanned::into_inner)
                .unwrap_or_default(),
            background: file.text(reading, "background"),
            lab: file.line(reading, "lab"),
            factors,
            variants,
            comparisons,
            traffic: traffic_of(reading, traffic.as_ref()),
            design: design_of(reading, design.as_ref()),
            control: design
                .and_then(|table| table.boolean(reading, "control"))
                .unwrap_or(true),
        })
    }
}

/// A level as the file has it.
pub(crate) fn written(level: &Level) -> String {
    match level {
        Level::Text(text) => format!("{text:?}"),
        Level::Boolean(_) | Level::Integer(_) => level.to_string(),
    }
}

/// Levels as a sentence lists them.
pub(crate) fn written_all(levels: &[Spanned<Level>]) -> String {
    let levels: Vec<String> = levels
        .iter()
        .map(|level| written(level.get_ref()))
        .collect();
    levels.join(", ")
}

/// The level that was probably meant.
pub(crate) fn nearest_level(wrong: &Level, levels: &[Spanned<Level>]) -> Option<String> {
    let texts: Vec<String> = levels
        .iter()
        .map(|level| level.get_ref().to_string())
        .collect();
    let meant = nearest(&wrong.to_string(), texts.iter().map(String::as_str))?;
    let position = texts.iter().position(|text| text == meant)?;
    Some(written(levels[position].get_ref()))
}

fn factor(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<FactorEntry> {
    let name = table.required_line(reading, "name");
    let description = table.text(reading, "description");
    let mut levels: Vec<Spanned<Level>> = Vec::new();
    if let Some(value) = table.required(reading, "levels") {
        let what = table.what("levels");
        let items = reading.list(value, &what);
        if items.is_some_and(<[_]>::is_empty) {
            reading.error(value.span(), format!("{what} is empty"));
        }
        for item in items.unwrap_or_default() {
            let Some(level) = reading.level(item, &format!("a level of {what}")) else {
                continue;
            };
            // A lab file knows levels by their text alone.
            let text = level.get_ref().to_string();
            if levels
                .iter()
                .any(|other| other.get_ref().to_string() == text)
            {
                reading.error(level.span(), format!("level {text:?} is listed twice"));
            } else {
                levels.push(level);
            }
        }
    }
    let given = table
        .value("default")
        .and_then(|value| reading.level(value, &table.what("default")));
    if let Some(given) = &given
        && !levels.is_empty()
        && !levels
            .iter()
            .any(|level| level.get_ref() == given.get_ref())
    {
        let default = given.get_ref();
        let diagnostic = reading.error(
            given.span(),
            format!("default {} is not one of the levels", written(default)),
        );
        if let Some(suggestion) = nearest_level(default, &levels) {
            diagnostic.with_label(format!("did you mean {suggestion}?"));
        }
        diagnostic.with_help(format!("levels: {}", written_all(&levels)));
    }
    let default = given
        .or_else(|| levels.first().cloned())
        .map_or(Level::Boolean(false), Spanned::into_inner);
    Some(FactorEntry {
        name: name?,
        description,
        levels,
        default,
    })
}

fn variant(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<VariantEntry> {
    let label = table.required_line(reading, "label");
    let mut levels = Vec::new();
    if let Some(value) = table.value("levels") {
        for (factor, value) in reading.entries(value, &table.what("levels")) {
            let what = format!("the level of {:?}", factor.get_ref());
            if let Some(level) = reading.level(value, &what) {
                let factor = Spanned::new(factor.span(), (*factor.get_ref()).to_owned());
                levels.push((factor, level));
            }
        }
    }
    Some(VariantEntry {
        label: label?,
        levels,
    })
}

fn comparison(reading: &mut Reading<'_>, table: &Table<'_>) -> ComparisonEntry {
    let what = table.what("variants");
    let variants = table.value("variants").and_then(|value| {
        let items = reading.list(value, &what)?;
        if items.is_empty() {
            reading
                .error(value.span(), format!("{what} is empty"))
                .with_help("leave it out to compare all other variants with the baseline");
        }
        Some(
            items
                .iter()
                .filter_map(|item| reading.line(item, &format!("a label of {what}")))
                .collect(),
        )
    });
    ComparisonEntry {
        span: table.span.clone(),
        title: table.line(reading, "title"),
        baseline: table.required_line(reading, "baseline"),
        variants,
    }
}

fn traffic_of(reading: &mut Reading<'_>, table: Option<&Table<'_>>) -> Traffic {
    let mut traffic = Traffic::default();
    let Some(table) = table else { return traffic };
    if let Some(families) = table
        .value("families")
        .and_then(|value| families(reading, value, &table.what("families")))
    {
        traffic.families = families;
    }
    let mut integer = |key, bounds, default| table.integer(reading, key, bounds).unwrap_or(default);
    traffic.frame_sizes[0].bytes = integer("frame_size", FRAME_SIZE, *FRAME_SIZE.start());
    let mut count = |key, default| {
        table
            .integer(reading, key, 1..=FLOWS_MAX)
            .unwrap_or(default)
    };
    traffic.sources = count("sources", traffic.sources);
    traffic.destinations = count("destinations", traffic.destinations);
    if traffic.flows() > FLOWS_MAX {
        let span = table
            .value("destinations")
            .or_else(|| table.value("sources"))
            .map_or(table.span.clone(), Spanned::span);
        reading
            .error(
                span,
                format!(
                    "{} sources x {} destinations are {} flows",
                    traffic.sources,
                    traffic.destinations,
                    traffic.flows()
                ),
            )
            .with_help(format!("the generator holds at most {FLOWS_MAX} flows"));
    }
    if let Some(value) = table.value("load") {
        let what = table.what("load");
        match value.get_ref() {
            DeValue::String(word) if word == "self-clocked" => {}
            DeValue::Table(_) => {
                traffic.regime = LoadRegime::Paced;
                if let Some(load) = reading.table(value, "`load`", LOAD_KEYS)
                    && load.required(reading, "pps").is_some()
                {
                    traffic.intended_load_pps = load.integer(reading, "pps", INTENDED_LOAD_PPS);
                }
            }
            _ => {
                reading
                    .expected(value, &what, "\"self-clocked\" or { pps = NUMBER }")
                    .with_help("\"self-clocked\" measures the cost of a packet")
                    .with_help("{ pps = 100000 } asks for 100000 frames per second");
            }
        }
    }
    traffic
}

fn families(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
) -> Option<Vec<AddressFamily>> {
    let words = [AddressFamily::Inet, AddressFamily::Inet6].map(|family| (family.as_str(), family));
    let allowed = || list(words.iter().map(|(word, _)| *word));
    let items = reading.list(value, what)?;
    if items.is_empty() {
        reading
            .error(value.span(), format!("{what} is empty"))
            .with_help(format!("allowed: {}", allowed()));
    }
    let mut families = Vec::new();
    for item in items {
        let Some(family) = reading.word(item, &format!("a word of {what}"), &words) else {
            continue;
        };
        if families.contains(&family) {
            reading.error(
                item.span(),
                format!("{:?} is listed twice", family.as_str()),
            );
        } else {
            families.push(family);
        }
    }
    Some(families)
}

fn design_of(reading: &mut Reading<'_>, table: Option<&Table<'_>>) -> Design {
    let mut integer = |key, bounds, default| {
        table
            .and_then(|table| table.integer(reading, key, bounds))
            .unwrap_or(default)
    };
    let blocks = integer("blocks", 2..=1000, 8);
    let rounds = integer("rounds", 1..=1000, 10);
    let slice_ms = integer("slice_ms", 10..=60_000, 100);
    let settle_ms = integer("settle_ms", 0..=60_000, 50);
    let warm_up_ms = integer("warm_up_ms", 0..=60_000, 200);
    let seed = table.and_then(|table| table.integer(reading, "seed", 0..=u64::MAX));
    let mut percent = |key, bounds, default| {
        table
            .and_then(|table| table.number(reading, key, bounds))
            .unwrap_or(default)
    };
    Design {
        blocks,
        rounds,
        slice_ms,
        settle_ms,
        warm_up_ms,
        seed: seed.unwrap_or(0),
        seed_was_drawn: seed.is_none(),
        threshold_percent: percent("threshold_percent", 0.0..=50.0, 1.0),
        confidence_percent: percent("confidence_percent", 50.0..=99.9, 95.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `docs/experiment-file.md` says of a key, from its row.
    fn documented<'d>(guide: &'d str, key: &str) -> Option<&'d str> {
        let start = format!("| `{key}` |");
        guide.lines().find(|line| line.starts_with(&start))
    }

    #[test]
    fn the_guide_has_a_row_for_every_key() {
        let guide = include_str!("../../../docs/experiment-file.md");
        let tables = [
            FILE_KEYS,
            FACTOR_KEYS,
            VARIANT_KEYS,
            COMPARISON_KEYS,
            TRAFFIC_KEYS,
            DESIGN_KEYS,
            crate::lab_file::FILE_KEYS,
            crate::lab_file::PLACEMENT_KEYS,
            crate::lab_file::MECHANISM_KEYS,
        ];
        for key in tables.into_iter().flatten() {
            assert!(documented(guide, key).is_some(), "no row for `{key}`");
        }
    }

    #[test]
    fn the_guide_names_the_bounds_that_hold() {
        let guide = include_str!("../../../docs/experiment-file.md");
        for (key, below, above) in [
            ("blocks", 2, 1000),
            ("rounds", 1, 1000),
            ("slice_ms", 10, 60_000),
            ("settle_ms", 0, 60_000),
            ("warm_up_ms", 0, 60_000),
            ("sources", 1, 2048),
            ("destinations", 1, 2048),
        ] {
            let row = documented(guide, key).expect("the other test looks for it");
            assert!(row.contains(&format!("{below} to {above}")), "{row}");
            for (value, allowed) in [
                (below - 1, false),
                (below, true),
                (above, true),
                (above + 1, false),
            ] {
                let table = if DESIGN_KEYS.contains(&key) {
                    "design"
                } else {
                    "traffic"
                };
                let other = match key {
                    "sources" => "destinations = 1",
                    "destinations" => "sources = 1",
                    _ => "",
                };
                let source = Arc::new(Source {
                    path: "x.toml".into(),
                    text: format!(
                        "question = \"q\"\n[[factor]]\nname = \"f\"\nlevels = [0]\n\
                         [{table}]\n{key} = {value}\n{other}\n"
                    ),
                });
                let mut diagnostics = Diagnostics::default();
                ExperimentFile::parse(&source, &mut diagnostics);
                assert_eq!(
                    diagnostics.is_empty(),
                    allowed,
                    "{key} = {value}\n{diagnostics}"
                );
            }
        }
    }
}
