//! The experiment file: what its author wrote, typed, each name with its place.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use toml::Spanned;

use crate::diagnostic::{Diagnostics, Source, Span, listed};
use crate::document::{Reading, Table, Value};
use crate::factor::{FactorEntry, written};
use crate::profile::{PROFILE_KEYS, Profiling, profiling};
use crate::resolved::{Design, Order};
use crate::traffic::{TrafficEntry, traffics};
use crate::words::{AddressFamily, Level};

pub(crate) const FILE_KEYS: &[&str] = &[
    "question",
    "background",
    "lab",
    "factor",
    "settings",
    "variant",
    "exclude",
    "comparison",
    "traffic",
    "design",
    "profile",
    "reference",
];
pub(crate) const FACTOR_KEYS: &[&str] = &["name", "description", "levels", "default"];
pub(crate) const VARIANT_KEYS: &[&str] = &["label", "levels"];
pub(crate) const EXCLUDE_KEYS: &[&str] = &["levels"];
pub(crate) const COMPARISON_KEYS: &[&str] = &["title", "baseline", "variants"];
pub(crate) const REFERENCE_KEYS: &[&str] = &["label", "pps", "traffic"];
pub(crate) const REFERENCE_PPS_KEYS: &[&str] = &["inet", "inet6"];
pub(crate) const DESIGN_KEYS: &[&str] = &[
    "blocks",
    "rounds",
    "slice_ms",
    "settle_ms",
    "warm_up_ms",
    "order",
    "seed",
    "threshold_percent",
    "cpu_threshold_percent",
    "confidence_percent",
    "control",
];

pub(crate) const BLOCKS: RangeInclusive<u32> = 2..=1000;
pub(crate) const ROUNDS: RangeInclusive<u32> = 1..=1000;
/// In less, a slow path forwards too few frames to be measured by.
pub(crate) const SLICE_MS: RangeInclusive<u32> = 10..=60_000;
pub(crate) const SETTLE_MS: RangeInclusive<u32> = 0..=60_000;
pub(crate) const WARM_UP_MS: RangeInclusive<u32> = 0..=60_000;
/// Practical thresholds, in percent: one of nothing would make every verdict undecided in size.
pub const THRESHOLD_PERCENT: RangeInclusive<f64> = 0.001..=50.0;
/// Confidences, in percent: the statistics ask for more than one half.
pub const CONFIDENCE_PERCENT: RangeInclusive<f64> = 50.1..=99.9;
pub(crate) const ORDERS: &[(&str, Order)] = &[
    ("random", Order::Random),
    ("in-sequence", Order::InSequence),
];

/// An experiment file, read.
#[derive(Debug)]
pub(crate) struct ExperimentFile {
    pub(crate) source: Arc<Source>,
    pub(crate) question: String,
    pub(crate) background: Option<String>,
    /// The lab file, relative to this one.
    pub(crate) lab: Option<Spanned<String>>,
    pub(crate) factors: Vec<FactorEntry>,
    /// What is held constant: each has one level.
    pub(crate) settings: Vec<FactorEntry>,
    /// None: all combinations of the levels.
    pub(crate) variants: Vec<VariantEntry>,
    /// Which of the combinations are not made.
    pub(crate) excludes: Vec<ExcludeEntry>,
    /// None: the usual baseline against all others.
    pub(crate) comparisons: Vec<ComparisonEntry>,
    /// One without a name, or several with names.
    pub(crate) traffics: Vec<TrafficEntry>,
    /// Its seed is 0 where none is given.
    pub(crate) design: Design,
    /// Where it says how many rounds a block has.
    pub(crate) rounds: Option<Span>,
    /// Whether the first baseline is measured a second time.
    pub(crate) control: bool,
    pub(crate) profiling: Option<Profiling>,
    pub(crate) references: Vec<ReferenceEntry>,
}

/// A `[[variant]]`.
#[derive(Debug)]
pub(crate) struct VariantEntry {
    pub(crate) label: Spanned<String>,
    pub(crate) levels: NamedLevels,
}

/// Levels by the names of their factors, in the order of the file.
pub(crate) type NamedLevels = Vec<(Spanned<String>, Spanned<Level>)>;

/// An `[[exclude]]`: combinations that have all of these levels.
#[derive(Debug)]
pub(crate) struct ExcludeEntry {
    pub(crate) span: Span,
    /// Empty only where that is already an error.
    pub(crate) levels: NamedLevels,
}

/// A `[[reference]]`.
#[derive(Debug)]
pub(crate) struct ReferenceEntry {
    pub(crate) label: Spanned<String>,
    /// The traffic under which they were measured, where the experiment has several.
    pub(crate) traffic: Option<Spanned<String>>,
    /// Files of observations, relative to the experiment.
    pub(crate) files: Vec<(AddressFamily, Spanned<String>)>,
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
        let has = |key| document.contains_key(key);
        if (has("kind") || has("bind")) && !(has("question") || has("factor")) {
            reading
                .error(0..0, "this is a lab file, not an experiment")
                .with_help("name an experiment here, and this file with `--lab FILE`");
            return None;
        }
        let file = Table::open(reading, &document, 0..0, "", FILE_KEYS);
        let factors = file.each(reading, "factor", FACTOR_KEYS, factor);
        file.required(reading, "factor");
        let settings = match file.value("settings") {
            Some(value) => settings(reading, value),
            None => Vec::new(),
        };
        let variants = file.each(reading, "variant", VARIANT_KEYS, variant);
        let excludes = file.each(reading, "exclude", EXCLUDE_KEYS, exclude);
        let references = file.each(reading, "reference", REFERENCE_KEYS, reference);
        let comparisons = file.each(reading, "comparison", COMPARISON_KEYS, comparison);
        let design = file.table(reading, "design", DESIGN_KEYS);
        let control = design
            .as_ref()
            .and_then(|table| table.boolean(reading, "control"));
        let rounds = design.as_ref().and_then(|table| table.value("rounds"));
        let rounds = rounds.map(Spanned::span);
        let design = design_of(reading, design.as_ref());
        let profiling = file
            .table(reading, "profile", PROFILE_KEYS)
            .and_then(|table| profiling(reading, &table));
        Some(Self {
            source: Arc::clone(source),
            question: file
                .required_line(reading, "question")
                .map(Spanned::into_inner)
                .unwrap_or_default(),
            background: file.text(reading, "background"),
            lab: file.line(reading, "lab"),
            factors,
            settings,
            variants,
            excludes,
            comparisons,
            traffics: traffics(reading, &file),
            design,
            rounds,
            control: control.unwrap_or(true),
            profiling,
            references,
        })
    }
}

/// An error about a level that is not one of those that there are: what was probably meant, and all of them.
pub(crate) fn no_such_level(
    reading: &mut Reading<'_>,
    wrong: &Spanned<Level>,
    levels: &[Spanned<Level>],
    message: String,
) {
    let texts: Vec<String> = levels
        .iter()
        .map(|level| level.get_ref().to_string())
        .collect();
    let text = wrong.get_ref().to_string();
    let meant = reading.nearest(&text, texts.iter().map(String::as_str));
    let position = meant.and_then(|meant| texts.iter().position(|text| text == meant));
    let diagnostic = reading.error(wrong.span(), message);
    if let Some(position) = position {
        let suggestion = written(levels[position].get_ref());
        diagnostic.with_label(format!("did you mean {suggestion}?"));
    }
    let all = listed(levels.iter().map(|level| written(level.get_ref())));
    diagnostic.with_help(format!("levels: {all}"));
}

fn factor(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<FactorEntry> {
    let name = table.required_line(reading, "name");
    let description = table.text(reading, "description");
    let mut levels: Vec<Spanned<Level>> = Vec::new();
    let mut texts = BTreeSet::new();
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
            if !texts.insert(text.clone()) {
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
        let default = written(given.get_ref());
        let message = format!("default {default} is not one of the levels");
        no_such_level(reading, given, &levels, message);
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

/// The `[settings]`: factors of one level each.
fn settings(reading: &mut Reading<'_>, value: &Value<'_>) -> Vec<FactorEntry> {
    let mut settings = Vec::new();
    for (name, level) in named_levels(reading, value, "[settings]") {
        let is_line =
            !name.get_ref().trim().is_empty() && !name.get_ref().chars().any(char::is_control);
        if !is_line {
            let message = format!("{:?} is no name of a setting", name.get_ref());
            reading.error(name.span(), message);
            continue;
        }
        settings.push(FactorEntry {
            name,
            description: None,
            default: level.get_ref().clone(),
            levels: vec![level],
        });
    }
    settings
}

fn variant(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<VariantEntry> {
    let label = table.required_line(reading, "label");
    let levels = match table.value("levels") {
        Some(value) => named_levels(reading, value, &table.what("levels")),
        None => Vec::new(),
    };
    Some(VariantEntry {
        label: label?,
        levels,
    })
}

fn named_levels(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> NamedLevels {
    let mut levels = Vec::new();
    for (factor, value) in reading.entries(value, what) {
        let what = format!("the level of {:?}", factor.get_ref());
        if let Some(level) = reading.level(value, &what) {
            let factor = Spanned::new(factor.span(), (*factor.get_ref()).to_owned());
            levels.push((factor, level));
        }
    }
    levels
}

fn exclude(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<ExcludeEntry> {
    let mut levels = Vec::new();
    if let Some(value) = table.required(reading, "levels") {
        let what = table.what("levels");
        levels = named_levels(reading, value, &what);
        if value
            .get_ref()
            .as_table()
            .is_some_and(|table| table.is_empty())
        {
            reading
                .error(value.span(), format!("{what} is empty"))
                .with_help("that would exclude every combination");
        }
    }
    Some(ExcludeEntry {
        span: table.span.clone(),
        levels,
    })
}

fn reference(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<ReferenceEntry> {
    let label = table.required_line(reading, "label");
    let mut files = Vec::new();
    if let Some(value) = table.required(reading, "pps") {
        let what = table.what("pps");
        let named = reading.table(value, &what, REFERENCE_PPS_KEYS);
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let file = named
                .as_ref()
                .and_then(|named| named.line(reading, family.as_str()));
            files.extend(file.map(|file| (family, file)));
        }
        if value
            .get_ref()
            .as_table()
            .is_some_and(|table| table.is_empty())
        {
            reading
                .error(value.span(), format!("{what} names no file"))
                .with_help("for example pps = { inet = \"earlier.inet.pps\" }");
        }
    }
    let traffic = table.line(reading, "traffic");
    Some(ReferenceEntry {
        label: label?,
        traffic,
        files,
    })
}

fn comparison(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<ComparisonEntry> {
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
    Some(ComparisonEntry {
        span: table.span.clone(),
        title: table.line(reading, "title"),
        baseline: table.required_line(reading, "baseline"),
        variants,
    })
}

fn design_of(reading: &mut Reading<'_>, table: Option<&Table<'_>>) -> Design {
    let mut design = Design::default();
    for (key, bounds, number) in [
        ("blocks", BLOCKS, &mut design.blocks),
        ("rounds", ROUNDS, &mut design.rounds),
        ("slice_ms", SLICE_MS, &mut design.slice_ms),
        ("settle_ms", SETTLE_MS, &mut design.settle_ms),
        ("warm_up_ms", WARM_UP_MS, &mut design.warm_up_ms),
    ] {
        let given = table.and_then(|table| table.integer(reading, key, bounds));
        *number = given.unwrap_or(*number);
    }
    let order = table.and_then(|table| {
        let value = table.value("order")?;
        let order = reading.word(value, &table.what("order"), ORDERS)?;
        if order == Order::InSequence {
            reading
                .warning(value.span(), "the order of the slices is not random")
                .with_help(
                    "what drifts inside a round, or lingers from one variant to the next, falls on \
                     the same variant every time and reads as its effect",
                )
                .with_help(
                    "the verdicts take the order to be random; order = \"random\" makes it so",
                );
        }
        Some(order)
    });
    let seed = table.and_then(|table| table.integer(reading, "seed", 0..=u64::MAX));
    for (key, bounds, percent) in [
        (
            "threshold_percent",
            THRESHOLD_PERCENT,
            &mut design.threshold_percent,
        ),
        (
            "cpu_threshold_percent",
            THRESHOLD_PERCENT,
            &mut design.cpu_threshold_percent,
        ),
        (
            "confidence_percent",
            CONFIDENCE_PERCENT,
            &mut design.confidence_percent,
        ),
    ] {
        let given = table.and_then(|table| table.number(reading, key, bounds));
        *percent = given.unwrap_or(*percent);
    }
    Design {
        order: order.unwrap_or_default(),
        seed: seed.unwrap_or_default(),
        seed_was_drawn: seed.is_none(),
        ..design
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
    fn the_guide_names_the_bounds_that_hold() {
        let guide = include_str!("../../../docs/experiment-file.md");
        for (key, below, above) in [
            ("blocks", 2, 1000),
            ("rounds", 1, 1000),
            ("slice_ms", 10, 60_000),
            ("settle_ms", 0, 60_000),
            ("warm_up_ms", 0, 60_000),
            ("burst", 1, 1024),
            ("sources", 1, 65_536),
            ("destinations", 1, 65_536),
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
                    "burst" => "load = { pps = 1000 }",
                    _ => "",
                };
                let source = Arc::new(Source {
                    path: "x.toml".into(),
                    text: format!(
                        "question = \"q\"\n[[factor]]\nname = \"f\"\nlevels = [0]\n\
                         [{table}]\n{key} = {value}\n{other}\n"
                    ),
                    is_quotable: true,
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
