//! The text of an experiment file.

use std::fmt::Write as _;

use fwdlab_pkt_gen::AddressRange;

use super::toml::{comment, one_line, quoted};
use super::traffic::Traffic;
use super::{FACTOR, Source, SourceSet};
use crate::{Difference, Effective, SettingValue, differences};

/// A run of pkt-gen in the archive takes about a minute; most of its noise is between boots.
const SLICE_MS: u32 = 30_000;
/// netmap takes a link down for 2 to 4 s when it is opened.
const SETTLE_MS: u32 = 5_000;
/// What fwdlab itself measures where nothing is said.
const BLOCKS: u32 = 8;
/// More differences than that of a set are counted alone.
const DIFFERENCES_SHOWN: usize = 6;
/// Longer values are cut in comments.
const VALUE_CHARACTERS_SHOWN: usize = 60;

/// Blocks that a comparison of so many variants with one baseline takes at 95 % confidence: all of them saying
/// the same has to be rarer than the variants' share of the error (`docs/experiment-file.md`).
pub(super) fn fewest_blocks(variants: usize) -> u32 {
    let is_enough = |blocks: &u32| 2_f64.powi(1 - blocks.cast_signed()) * variants as f64 <= 0.05;
    (2..1000).find(is_enough).unwrap_or(1000)
}

/// The set that is the default: the only one whose name says so, or else the first.
pub(super) fn default_set(sets: &[SourceSet]) -> Option<&SourceSet> {
    let says_so = |set: &&SourceSet| {
        let name = set.name.to_ascii_lowercase();
        name.split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(|word| word == "default")
    };
    let mut named = sets.iter().filter(says_so);
    named
        .next()
        .filter(|_| named.next().is_none())
        .or(sets.first())
}

/// An experiment on the sets of a source.
pub(super) fn text(source: &Source, lab_file: &str, traffic: &Traffic, is_alone: bool) -> String {
    let topic = source.topic.as_deref().unwrap_or("the configuration");
    let mut question = format!("Impact of {} on forwarding performance", one_line(topic));
    if !is_alone {
        let _ = write!(
            question,
            ", traffic set {}",
            one_line(&traffic.sets.join(", "))
        );
    }
    let mut text = comment(&format!(
        "The configuration sets of {}, as `fwdlab import bench-lab` reads them.",
        source.configs.as_deref().unwrap_or_default()
    ));
    let _ = writeln!(text, "question = {}", quoted(&question));
    let _ = writeln!(text, "lab = {}", quoted(lab_file));

    let default = default_set(&source.sets);
    text += "\n";
    if let Some(default) = default {
        text += &against_default(&source.sets, default);
    }
    text += "[[factor]]\n";
    let _ = writeln!(text, "name = {}", quoted(FACTOR));
    text += "description = \"the files that the DUT boots with\"\n";
    let levels: Vec<String> = source.sets.iter().map(|set| quoted(&set.name)).collect();
    let width: usize = levels.iter().map(|level| level.chars().count() + 2).sum();
    if width < 90 {
        let _ = writeln!(text, "levels = [{}]", levels.join(", "));
    } else {
        text += "levels = [\n";
        for level in levels {
            let _ = writeln!(text, "    {level},");
        }
        text += "]\n";
    }
    if let Some(default) = default {
        let _ = writeln!(text, "default = {}", quoted(&default.name));
    }

    text += &traffic_table(traffic);

    let variants = source.sets.len().saturating_sub(1);
    // What is compared with nothing but itself is judged at 99 %.
    let fewest = if variants == 0 {
        BLOCKS
    } else {
        fewest_blocks(variants)
    };
    let blocks = fewest.max(BLOCKS);
    // The A/A control is a variant of its own.
    let boots = u64::from(blocks) * (source.sets.len() as u64 + 1);
    text += "\n";
    text += &comment(&format!(
        "Every switch is a boot, {boots} in all: each set once in each block, and the default a second time as A/A \
         control. {fewest} blocks are the fewest that can show an effect; more show smaller ones."
    ));
    text += "[design]\n";
    let _ = writeln!(text, "blocks = {blocks}");
    text += "rounds = 1\n";
    let _ = writeln!(text, "slice_ms = {SLICE_MS}");
    let _ = writeln!(
        text,
        "# netmap takes a link down for some seconds when it is opened."
    );
    let _ = writeln!(text, "settle_ms = {SETTLE_MS}");
    text
}

fn traffic_table(traffic: &Traffic) -> String {
    let mut text = "\n[traffic]\n".to_owned();
    let families: Vec<String> = traffic
        .families
        .keys()
        .map(|family| quoted(family.as_str()))
        .collect();
    let _ = writeln!(text, "families = [{}]", families.join(", "));
    let _ = writeln!(text, "frame_size = {}", traffic.frame_bytes);
    let ports = [
        ("source_ports", traffic.source_ports()),
        ("destination_ports", traffic.destination_ports()),
    ];
    for (key, ports) in ports {
        match ports {
            Some((first, last)) if first == last => _ = writeln!(text, "{key} = {first}"),
            Some((first, last)) => _ = writeln!(text, "{key} = \"{first}-{last}\""),
            None => {}
        }
    }
    for (family, flows) in &traffic.families {
        if flows.source.is_none() && flows.destination.is_none() {
            continue;
        }
        let _ = writeln!(text, "\n[traffic.{family}]");
        let ranges = [
            ("sources", &flows.source),
            ("destinations", &flows.destination),
        ];
        for (key, range) in ranges {
            if let Some(AddressRange { first, last, .. }) = range {
                let range = if first == last {
                    first.to_string()
                } else {
                    format!("{first}-{last}")
                };
                let _ = writeln!(text, "{key} = {}", quoted(&range));
            }
        }
    }
    text
}

/// What each set has that the default has not, as comments: whether the sets differ in one thing is what a
/// reader wants to know first.
fn against_default(sets: &[SourceSet], default: &SourceSet) -> String {
    let mut text = String::new();
    for set in sets.iter().filter(|set| set.name != default.name) {
        let mut found: Vec<String> = Vec::new();
        for difference in differences(&default.files, &set.files) {
            let line = shown(&difference, [default, set]);
            // Of a file with keys all differences are one.
            if found.last() != Some(&line) {
                found.push(line);
            }
        }
        if text.is_empty() {
            text += &comment(&format!("Against {}:", quoted(&default.name)));
        }
        if found.is_empty() {
            text += &comment(&format!("{}: the same but for comments", quoted(&set.name)));
            continue;
        }
        let _ = writeln!(text, "# {}:", one_line(&quoted(&set.name)));
        for line in found.iter().take(DIFFERENCES_SHOWN) {
            let _ = writeln!(text, "#   {}", one_line(line));
        }
        if found.len() > DIFFERENCES_SHOWN {
            let _ = writeln!(text, "#   and {} more", found.len() - DIFFERENCES_SHOWN);
        }
    }
    text
}

/// A difference in one line; nothing of a file that holds keys is quoted.
fn shown(difference: &Difference<'_>, sets: [&SourceSet; 2]) -> String {
    let path = match difference {
        Difference::Setting { first, second, .. } => {
            let setting = second.as_ref().or(first.as_ref());
            setting.map_or("", |setting| setting.path)
        }
        Difference::File { path, .. } => path,
    };
    let holds_keys = sets.iter().any(|set| {
        let file = set.files.files().get(path);
        file.is_some_and(|file| file.secret.is_some())
    });
    match difference {
        Difference::Setting { first, second, .. }
            if holds_keys || is_secret(first) || is_secret(second) =>
        {
            format!("another {path}, which holds keys")
        }
        Difference::Setting { key, first, second } => {
            let value = |setting: &Option<Effective<'_>>| {
                let Some(setting) = setting else {
                    return "not set".to_owned();
                };
                let value = setting.value.to_string();
                let cut: String = value.chars().take(VALUE_CHARACTERS_SHOWN).collect();
                let more = if cut.len() < value.len() { "…" } else { "" };
                format!("{}{more}", quoted(&cut))
            };
            let name = key.name;
            format!(
                "{name}: {} instead of {} ({path})",
                value(second),
                value(first)
            )
        }
        Difference::File {
            in_first,
            in_second,
            ..
        } => match (in_first, in_second) {
            (true, false) => format!("without {path}"),
            (false, true) => format!("with {path}"),
            _ if holds_keys => format!("another {path}, which holds keys"),
            _ => format!("another {path}"),
        },
    }
}

fn is_secret(setting: &Option<Effective<'_>>) -> bool {
    let value = setting.as_ref().map(|setting| &setting.value);
    matches!(value, Some(SettingValue::Secret(_)))
}
