//! What the page's script reads: the report, the slices of every block, and the flame graphs.
//!
//! Slices and flame graphs are columns of numbers and indices, each block and graph an element of its own: the
//! script reads one when somebody asks for it, so that a page of many opens as fast as one of few.

use std::collections::BTreeMap;

use fwdlab_archive::{Attempt, Loaded};
use fwdlab_model::SliceRecord;
use fwdlab_profile::Color;
use serde::Serialize;

use crate::error::ReportError;
use crate::profiles::FlameGraph;
use crate::text;

/// A value as JSON that can stand in an HTML element.
pub(super) fn escaped(value: &impl Serialize) -> Result<String, ReportError> {
    let json = serde_json::to_string(value).map_err(|source| ReportError::Json { source })?;
    Ok(json.replace('<', "\\u003c"))
}

/// The slices of an attempt at a block, a column each.
#[derive(Serialize)]
struct BlockSlices<'a> {
    session: u32,
    block: u32,
    attempt: u32,
    /// The names that `variant` counts from 0.
    variants: Vec<&'a str>,
    /// The labels that `stratum` counts from 0.
    #[serde(rename = "families")]
    strata: Vec<String>,
    variant: Vec<usize>,
    #[serde(rename = "family")]
    stratum: Vec<usize>,
    round: Vec<u32>,
    /// From 0.
    position: Vec<u32>,
    start_ms: Vec<f64>,
    time_ms: Vec<f64>,
    offered_frames: Vec<u64>,
    forwarded_frames: Vec<u64>,
    dropped_frames: Vec<u64>,
    undisturbed_ms: Vec<f64>,
    undisturbed_frames: Vec<u64>,
    calibration_ns: Vec<u64>,
    steal_ms: Vec<f64>,
}

/// The slices of every whole attempt, by the id of their element.
pub(super) fn of_blocks(loaded: &Loaded) -> Result<Vec<(String, String)>, ReportError> {
    let attempts = loaded.attempts.iter();
    attempts
        .filter(|attempt| !attempt.slices.is_empty())
        .map(|attempt| {
            let record = &attempt.record;
            let id = format!(
                "slices-{}-{}-{}",
                record.session, record.block, record.attempt
            );
            Ok((id, escaped(&BlockSlices::of(attempt))?))
        })
        .collect()
}

impl<'a> BlockSlices<'a> {
    fn of(attempt: &'a Attempt) -> Self {
        let mut slices: Vec<&SliceRecord> = attempt.slices.iter().collect();
        slices.sort_by(|one, other| one.start_s.total_cmp(&other.start_s));
        let mut variants = Numbered::default();
        let mut strata = Numbered::default();
        let variant = slices
            .iter()
            .map(|slice| variants.number(slice.variant.as_str()));
        let variant = variant.collect();
        let stratum = slices
            .iter()
            .map(|slice| strata.number(slice.stratum.label()));
        let stratum = stratum.collect();
        // A millionth of a second is less than a slice's edge is known to.
        let milliseconds = |seconds: fn(&SliceRecord) -> f64| -> Vec<f64> {
            let rounded = slices
                .iter()
                .map(|slice| (seconds(slice) * 1e6).round() / 1e3);
            rounded.collect()
        };
        let frames = |of: fn(&SliceRecord) -> u64| slices.iter().map(|slice| of(slice)).collect();
        Self {
            session: attempt.record.session,
            block: attempt.record.block,
            attempt: attempt.record.attempt,
            variants: variants.items,
            strata: strata.items,
            variant,
            stratum,
            round: slices.iter().map(|slice| slice.round).collect(),
            position: slices.iter().map(|slice| slice.position).collect(),
            start_ms: milliseconds(|slice| slice.start_s),
            time_ms: milliseconds(|slice| slice.time_s),
            offered_frames: frames(|slice| slice.offered_frames),
            forwarded_frames: frames(|slice| slice.forwarded_frames),
            dropped_frames: frames(|slice| slice.dropped_frames),
            undisturbed_ms: milliseconds(|slice| slice.undisturbed_s),
            undisturbed_frames: frames(|slice| slice.undisturbed_frames),
            calibration_ns: frames(|slice| slice.calibration_ns),
            steal_ms: milliseconds(|slice| slice.steal_s),
        }
    }
}

/// A flame graph's boxes: callers before what they call.
#[derive(Serialize)]
struct Boxes<'a> {
    title: &'a str,
    subtitle: &'a str,
    /// Why its ns/packet are not those of the verdicts.
    basis: &'a str,
    unit: &'a str,
    legend: &'a str,
    width: f64,
    frames: Vec<String>,
    /// What stands before the name of each of these: `+`, `-` or nothing.
    signs: Vec<String>,
    colours: Vec<String>,
    notes: Vec<&'a str>,
    /// How many boxes are below, and which of the lists above the box has.
    depth: Vec<usize>,
    frame: Vec<usize>,
    colour: Vec<usize>,
    note: Vec<usize>,
    /// In thousandths of the unit.
    width_thousandths: Vec<f64>,
}

/// Boxes below this part of the whole are in the files beside the page alone: even where their caller fills it,
/// few of them are seen.
const WIDTH_MIN: f64 = 1e-4;

/// The flame graphs, by the id of their element.
pub(super) fn of_flame_graphs(graphs: &[FlameGraph]) -> Result<Vec<(String, String)>, ReportError> {
    graphs
        .iter()
        .enumerate()
        .map(|(index, graph)| Ok((flame_id(index), escaped(&Boxes::of(graph))?)))
        .collect()
}

pub(super) fn flame_id(index: usize) -> String {
    format!("flame-{index}")
}

impl<'a> Boxes<'a> {
    fn of(graph: &'a FlameGraph) -> Self {
        let boxes = &graph.boxes;
        let smallest = boxes.width * WIDTH_MIN;
        let shown = boxes.boxes.iter().filter(|shown| shown.width >= smallest);
        let shown: Vec<_> = shown.collect();
        let mut frames = Numbered::default();
        let mut colours = Numbered::default();
        let mut notes = Numbered::default();
        let frame = (shown.iter())
            .map(|shown| frames.number((shown.frame.as_str(), shown.sign)))
            .collect();
        let colour = (shown.iter())
            .map(|shown| {
                let Color { r, g, b } = shown.colour;
                colours.number((r, g, b))
            })
            .collect();
        let note = (shown.iter())
            .map(|shown| notes.number(shown.note.as_str()))
            .collect();
        let (names, signs) = frames
            .items
            .into_iter()
            .map(|(name, sign)| {
                let sign = sign.map(String::from).unwrap_or_default();
                (text::one_line(name), sign)
            })
            .unzip();
        let colours = colours.items.into_iter();
        Self {
            title: &graph.title,
            subtitle: &graph.subtitle,
            basis: &graph.basis,
            unit: &boxes.unit,
            legend: &boxes.legend,
            width: boxes.width,
            frames: names,
            signs,
            colours: colours
                .map(|(r, g, b)| format!("#{r:02x}{g:02x}{b:02x}"))
                .collect(),
            notes: notes.items,
            depth: shown.iter().map(|shown| shown.depth).collect(),
            frame,
            colour,
            note,
            width_thousandths: (shown.iter())
                .map(|shown| (shown.width * 1e3).round())
                .collect(),
        }
    }
}

/// Items, each once, by the order in which they came.
#[derive(Default)]
struct Numbered<T> {
    items: Vec<T>,
    numbers: BTreeMap<T, usize>,
}

impl<T: Clone + Ord> Numbered<T> {
    fn number(&mut self, item: T) -> usize {
        *self.numbers.entry(item.clone()).or_insert_with(|| {
            self.items.push(item);
            self.items.len() - 1
        })
    }
}
