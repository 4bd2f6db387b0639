//! `fwdlab flame diff`.

use std::path::{Path, PathBuf};

use clap::Args;
use fwdlab_profile::{
    Caption, Comparison, CostDifference, CostUnit, ProfilePair, Profiled, compare_lone_profiles,
    difference_graph,
};
use fwdlab_report::format::{counted, signed};
use fwdlab_report::one_line;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::input::{Profile, Reading, shown};
use crate::exit::{Code, GOAL_MISSED, WrongArguments};
use crate::output::{self, tell};
use crate::values::confidence;

/// The form of what `--json` prints.
const SCHEMA: u32 = 1;

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The profile that the other is compared with; - for standard input
    #[arg(value_name = "A")]
    baseline: PathBuf,
    /// The other
    #[arg(value_name = "B")]
    variant: PathBuf,
    /// Draw both in one picture, for any browser
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print all frames as JSON
    #[arg(long)]
    json: bool,
    /// What a packet cost in each, so that frames have costs instead of shares: 431.5,398
    #[arg(long, value_name = "A,B", value_parser = two_costs)]
    ns_per_packet: Option<[f64; 2]>,
    /// Confidence of what is said to differ, in percent, for all frames together
    #[arg(long, value_name = "PERCENT", value_parser = confidence, default_value = "95")]
    confidence: f64,
    /// Put the object in front of each symbol: kernel`ip_input
    #[arg(long)]
    objects: bool,
    /// Take the samples of this event [default: that of the first sample]
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
}

fn two_costs(text: &str) -> Result<[f64; 2], String> {
    let cost = |text: &str| {
        let cost: f64 = text.trim().parse().ok()?;
        (cost.is_finite() && cost > 0.0).then_some(cost)
    };
    let both = text.split_once(',');
    both.and_then(|(baseline, variant)| Some([cost(baseline)?, cost(variant)?]))
        .ok_or_else(|| "expected two positive numbers, 431.5,398".to_owned())
}

pub(super) fn diff(arguments: &DiffArguments) -> anyhow::Result<Code> {
    let paths = [&arguments.baseline, &arguments.variant];
    if paths.iter().all(|path| *path == Path::new("-")) {
        let text = "standard input holds one profile; give a file for the other";
        return Err(WrongArguments(text.to_owned()).into());
    }
    if let Some(output) = &arguments.output {
        output::refuse_input("--output", output, &paths)?;
    }
    let reading = Reading::whole(arguments.objects, arguments.event.as_deref());
    let mut profiles = Profile::read_each(&paths, reading)?;
    for profile in &mut profiles {
        profile.folded = profile.folded.with_programs_by_name();
    }
    for (path, profile) in paths.iter().zip(&profiles) {
        if profile.folded.samples() == 0 {
            let text = format!(
                "{}: it has no samples; give a profile that has some",
                shown(path)
            );
            return Err(WrongArguments(text).into());
        }
    }
    let is_flat = [0, 1].map(|number| is_flat(&profiles[number]));
    if is_flat[0] != is_flat[1] {
        tell(&format!(
            "{}: no stack in it has callers, as in a recording without -g; stacks of the other profile have some, so compare \
             only what functions cost themselves",
            shown(paths[usize::from(is_flat[1])])
        ));
    }
    let unit = match arguments.ns_per_packet {
        Some(_) => CostUnit::NsPerPacket,
        None => CostUnit::Percent,
    };
    let [baseline_ns, variant_ns] = arguments.ns_per_packet.unwrap_or([100.0; 2]);
    let profiled = |number: usize, ns_per_packet| Profiled {
        stacks: &profiles[number].folded,
        ns_per_packet,
    };
    let pair = ProfilePair {
        baseline: profiled(0, baseline_ns),
        variant: profiled(1, variant_ns),
    };
    let comparison = compare_lone_profiles(pair, arguments.confidence / 100.0)?;
    let shown = paths.map(|path| shown(path));
    if let Some(path) = &arguments.output {
        let subtitle = shown.join(" -> ");
        let caption = Caption {
            title: "Where two profiles differ",
            subtitle: Some(&subtitle),
        };
        let picture = difference_graph(&[pair], &comparison, unit, caption)?;
        output::write_file("--output", path, picture.as_bytes())?;
    }
    let printed = if arguments.json {
        let data = data(&comparison, unit, &shown, &profiles);
        serde_json::to_string_pretty(&data)? + "\n"
    } else {
        table(&comparison, unit, &shown, &profiles)
    };
    let code = output::print(&printed)?;
    if !arguments.json {
        tell(
            "note: intervals are of sampling alone, adjusted for all frames; they say nothing of how profiles differ \
             from run to run",
        );
    }
    let is_partial = profiles.iter().any(|profile| profile.missing.is_some());
    Ok(if is_partial { GOAL_MISSED } else { code })
}

/// Whether stacks are functions alone, with the program that they ran in at most.
fn is_flat(profile: &Profile) -> bool {
    let mut stacks = profile.folded.stacks();
    stacks.all(|stack| stack.frames().len() <= 2)
}

/// What people read: the frames that are shown to differ, those by their own cost first.
fn table(
    comparison: &Comparison,
    unit: CostUnit,
    shown: &[String; 2],
    profiles: &[Profile],
) -> String {
    let decimals = if unit == CostUnit::Percent { 2 } else { 1 };
    let number = |value: f64| format!("{value:.decimals$}");
    let change = |cost: &CostDifference| match cost.interval {
        Some(interval) if cost.is_significant => format!(
            "{} [{}, {}]",
            signed(cost.difference_ns, decimals),
            signed(interval.lower_ns, decimals),
            signed(interval.upper_ns, decimals)
        ),
        _ => "-".to_owned(),
    };
    let mut frames: Vec<_> = comparison.significant().collect();
    frames.sort_by_key(|frame| !frame.itself.is_significant);
    let mut rows = vec![[
        "frame".to_owned(),
        "before".to_owned(),
        "after".to_owned(),
        "difference".to_owned(),
        "with callees".to_owned(),
    ]];
    rows.extend(frames.iter().map(|frame| {
        [
            one_line(&frame.frame),
            number(frame.itself.baseline_ns),
            number(frame.itself.variant_ns),
            change(&frame.itself),
            change(&frame.with_callees),
        ]
    }));
    let mut text = String::new();
    for (name, (path, profile)) in ["before", "after"].iter().zip(shown.iter().zip(profiles)) {
        text += &format!("{name}: {path}, {}\n", profile.samples());
    }
    text += &match unit {
        CostUnit::Percent => "costs in % of the samples\n\n".to_owned(),
        CostUnit::NsPerPacket => {
            let whole = &comparison.whole;
            let (before, after) = (number(whole.baseline_ns), number(whole.variant_ns));
            format!("costs in ns/packet, {before} -> {after}\n\n")
        }
    };
    if frames.is_empty() {
        text += "No frame is shown to differ.\n";
    } else {
        text += &aligned(&rows);
        text.push('\n');
    }
    text + &rest(comparison, frames.len())
}

/// What is said of the frames that are not in the table.
fn rest(comparison: &Comparison, differing: usize) -> String {
    let is_judged = |cost: &CostDifference| cost.p.is_some();
    let unjudged = comparison
        .frames
        .iter()
        .filter(|frame| !is_judged(&frame.itself) && !is_judged(&frame.with_callees))
        .count();
    let alike = comparison.frames.len() - differing - unjudged;
    format!(
        "no difference shown: {}; of too few samples to judge: {}\n",
        counted(alike as u64, "frame"),
        counted(unjudged as u64, "frame")
    )
}

/// Cells in columns; numbers to the right.
fn aligned(rows: &[[String; 5]]) -> String {
    let widths: [usize; 5] = std::array::from_fn(|place| {
        let widths = rows.iter().map(|cells| cells[place].width());
        widths.max().unwrap_or(0)
    });
    let mut text = String::new();
    for cells in rows {
        let mut line = String::new();
        for (place, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let pad = " ".repeat(width - cell.width());
            let is_number = place == 1 || place == 2;
            line += &if is_number {
                format!("{pad}{cell}  ")
            } else {
                format!("{cell}{pad}  ")
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The same as data, of all frames.
fn data(
    comparison: &Comparison,
    unit: CostUnit,
    shown: &[String; 2],
    profiles: &[Profile],
) -> Value {
    let profile = |number: usize| {
        let profile: &Profile = &profiles[number];
        let left_out = profile.left_out.iter();
        let left_out = left_out.map(|other| (other.event.clone(), other.samples.into()));
        json!({
            "path": shown[number],
            "event": profile.event,
            "samples": profile.folded.samples(),
            "left_out": left_out.collect::<serde_json::Map<_, _>>(),
            "idle_share": profile.folded.idle_share(),
            "missing": profile.missing,
        })
    };
    let cost = |cost: &CostDifference| {
        json!({
            "baseline": cost.baseline_ns,
            "variant": cost.variant_ns,
            "difference": cost.difference_ns,
            "lower": cost.interval.map(|interval| interval.lower_ns),
            "upper": cost.interval.map(|interval| interval.upper_ns),
            "p": cost.p,
            "is_significant": cost.is_significant,
        })
    };
    let frames: Vec<Value> = comparison
        .frames
        .iter()
        .map(|frame| {
            json!({
                "frame": frame.frame,
                "itself": cost(&frame.itself),
                "with_callees": cost(&frame.with_callees),
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "unit": match unit {
            CostUnit::Percent => "percent_of_samples",
            CostUnit::NsPerPacket => "ns_per_packet",
        },
        "noise": "samples",
        "confidence": comparison.confidence,
        "comparisons": comparison.family,
        "baseline": profile(0),
        "variant": profile(1),
        "whole": cost(&comparison.whole),
        "frames": frames,
    })
}
