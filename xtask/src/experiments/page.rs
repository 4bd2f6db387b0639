//! The page: what stands by hand stays, and between its marks one section for each experiment.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use super::figures::{digits, per_packet};

/// What stands between the page's own marks: the table of contents.
const CONTENTS: &str = "contents";

/// What the page says of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Section {
    name: String,
    /// Its row in the table of contents.
    row: String,
    /// The section itself, without its marks.
    pub(super) text: String,
}

impl Section {
    /// What a page says of an experiment already; none where it does not.
    pub(super) fn of(page: &str, name: &str) -> Option<Self> {
        let text = between(page, &format!("experiment {name}"))?;
        let link = format!("| [{name}](#");
        let row = between(page, CONTENTS)?
            .lines()
            .find(|line| line.starts_with(&link))?;
        Some(Self {
            name: name.to_owned(),
            row: row.to_owned(),
            text: text.to_owned(),
        })
    }

    fn new(name: &str, question: &str, answer: &str, text: String) -> Self {
        // Headings are names of files, of which a forge makes the same anchors.
        let row = format!(
            "| [{name}](#{name}) | {} | {} |",
            cell(question),
            cell(answer)
        );
        Self {
            name: name.to_owned(),
            row,
            text,
        }
    }
}

/// The experiments that a page has sections for, in its order.
#[cfg(test)]
pub(super) fn names(page: &str) -> Vec<String> {
    let marks = page.lines().filter_map(|line| {
        let name = line.strip_prefix("<!-- experiment ")?;
        name.strip_suffix(" -->")
    });
    marks.map(str::to_owned).collect()
}

/// A page whose contents and sections are these; everything before the contents is kept.
///
/// # Errors
/// It has no marks for the contents.
pub(super) fn draw_up(page: &str, sections: &[Section]) -> Result<String> {
    let (begin, end) = marks(CONTENTS);
    let introduction = page.split_once(&begin).map(|(before, _)| before);
    let introduction = introduction
        .with_context(|| format!("no line {begin} to put the table of contents behind; add it"))?;
    let mut text = format!(
        "{introduction}{begin}\n| experiment | question | what came out |\n|---|---|---|\n"
    );
    for section in sections {
        let _ = writeln!(text, "{}", section.row);
    }
    text += &format!("{end}\n");
    for section in sections {
        let (begin, end) = marks(&format!("experiment {}", section.name));
        let _ = write!(
            text,
            "\n{begin}\n{}{end}\n",
            section.text.trim_start_matches('\n')
        );
    }
    Ok(text)
}

/// The lines that something stands between.
fn marks(what: &str) -> (String, String) {
    (
        format!("<!-- {what} -->"),
        format!("<!-- end of {what} -->"),
    )
}

fn between<'a>(page: &'a str, what: &str) -> Option<&'a str> {
    let (begin, end) = marks(what);
    let (_, rest) = page.split_once(&begin)?;
    Some(rest.split_once(&end)?.0)
}

/// The section of an experiment of which there is no result yet.
///
/// Shape: `experiment` is the text of its file.
pub(super) fn unmeasured(name: &str, source: &str, experiment: &str) -> Section {
    let words = "not measured yet";
    let mut lines = experiment.lines();
    let question = lines.find_map(|line| line.strip_prefix("question = \"")?.strip_suffix('"'));
    let text = format!(
        "## {name}\n\n[{source}](../{source}) is {words}: `cargo xtask experiments {name}`.\n"
    );
    Section::new(name, question.unwrap_or_default(), words, text)
}

/// The section of an experiment that was measured.
///
/// Shape: `source` is its file from the root of the repository, `copies` the folder of its report and
/// plots as seen from the page, `report` its `report.json`, `bindings` those of its `resolved.json`.
pub(super) fn measured(
    name: &str,
    source: &str,
    copies: &str,
    report: &Value,
    bindings: &Value,
) -> Section {
    let question = text(&report["question"]);
    let mut page = format!("## {name}\n\n**{question}**\n\n");
    if let Some(background) = report["background"].as_str() {
        let _ = writeln!(page, "{}\n", background.trim());
    }
    page += &factors(report, bindings);
    let _ = writeln!(
        page,
        "```console\n{} cargo run --release -- run {source}\n```\n\n{}\n",
        if report["lab"]["kind"] == "router" {
            "$"
        } else {
            "#"
        },
        conditions(report)
    );
    page += &results(name, copies, report);
    page += &why(copies, report);
    page += &losses(report);
    page += &dut_events(report);
    page += &unavailable(report);
    page += &warnings(report);
    let _ = writeln!(
        page,
        "[The experiment file](../{source}), [the whole report]({copies}/README.md)."
    );
    Section::new(name, question, &answer(report), page)
}

/// What is varied, and how this lab does it.
fn factors(report: &Value, bindings: &Value) -> String {
    let mut table = String::from("| varied | levels | set by |\n|---|---|---|\n");
    for factor in list(&report["factors"]) {
        let name = text(&factor["name"]);
        let levels: Vec<String> = list(&factor["levels"])
            .iter()
            .map(|level| format!("`{}`", text(level)))
            .collect();
        let description = factor["description"].as_str();
        let description = description.map_or_else(String::new, |words| format!(": {words}"));
        let _ = writeln!(
            table,
            "| **{}**{} | {} | {} |",
            cell(name),
            cell(&description),
            cell(&levels.join(", ")),
            cell(&binding(&bindings[name]))
        );
    }
    table + "\n"
}

/// How a factor is set, in words.
fn binding(binding: &Value) -> String {
    let on = |names: &Value| {
        let names: Vec<&str> = list(names).iter().map(text).collect();
        names.join(" and ")
    };
    let line = |words: &Value| {
        let words: Vec<&str> = list(words).iter().map(text).collect();
        format!("`{}`", words.join(" "))
    };
    if binding == "routes" {
        return "routes added and deleted".to_owned();
    }
    let Some((mechanism, how)) = binding
        .as_object()
        .and_then(|binding| binding.iter().next())
    else {
        return String::new();
    };
    match mechanism.as_str() {
        "sysctl" => format!("sysctl `{}`", text(&how["key"])),
        "nft" => "a ruleset of nftables".to_owned(),
        "xdp" => "an XDP program on dut-in".to_owned(),
        "ethtool" => format!(
            "ethtool feature `{}` of {}",
            text(&how["feature"]),
            on(&how["interfaces"])
        ),
        "sysfs" => format!(
            "`{}` of {} in sysfs",
            text(&how["file"]),
            on(&how["interfaces"])
        ),
        "knob" => format!("knob `{}` of the router", text(&how["knob"])),
        "command" => {
            let check = match &how["check"] {
                Value::Null => String::new(),
                check => format!(", read back by {}", line(check)),
            };
            format!(
                "{}, undone by {}{check}",
                line(&how["do"]),
                line(&how["undo"])
            )
        }
        other => other.to_owned(),
    }
}

/// Under which load, on what and when it was measured.
fn conditions(report: &Value) -> String {
    let (lab, design, progress) = (&report["lab"], &report["design"], &report["progress"]);
    let traffic = &report["traffic"];
    let sizes: Vec<String> = list(&traffic["frame_sizes"])
        .iter()
        .map(|size| text_of_number(&size["bytes"]))
        .collect();
    let load = match traffic["intended_load_pps"].as_u64() {
        Some(pps) => format!("paced at {} pps", grouped(pps)),
        None => text(&traffic["regime"]).to_owned(),
    };
    let dut_cpu = lab["dut_cpu"].as_u64();
    let dut_cpu = dut_cpu.map_or_else(String::new, |cpu| format!(", the DUT on CPU {cpu}"));
    let kernel = text(&lab["kernel"]).split(' ').next().unwrap_or_default();
    let day = text(&lab["start"]).split('T').next().unwrap_or_default();
    format!(
        "{load}{dut_cpu}; frames of {} bytes; {} blocks of {} rounds; {} x {}, Linux {kernel}, {day}",
        sizes.join(", "),
        progress["measured_blocks"],
        design["rounds"],
        lab["cpus"],
        text(&lab["cpu_model"]),
    )
}

/// The verdicts and the plot of every comparison.
fn results(name: &str, copies: &str, report: &Value) -> String {
    let mut page = String::new();
    for comparison in list(&report["comparisons"]) {
        if let Some(heading) = heading(report, comparison) {
            let _ = writeln!(page, "### {name}: {heading}\n");
        }
        let rows = list(&comparison["rows"]);
        if let Some(baseline) = rows.first() {
            let ns = baseline["cost_ns"].as_f64();
            let ns = ns.map_or_else(String::new, |ns| format!(", {ns:.1} ns/packet"));
            let _ = writeln!(page, "- *{}*: the baseline{ns}", label(report, baseline));
        }
        for row in rows.iter().skip(1) {
            if let Some(sentence) = row["verdict"]["sentence"].as_str() {
                let _ = writeln!(page, "- **{}**: {sentence}", label(report, row));
            }
        }
        if let Some(control) = comparison["control"]["sentence"].as_str() {
            let _ = writeln!(page, "- A/A control: {control}");
        }
        let _ = writeln!(
            page,
            "\n![Effects with their intervals]({copies}/{})\n",
            text(&comparison["plot"])
        );
    }
    page
}

/// What the profiles say of each effect, with the flame graphs of both variants.
fn why(copies: &str, report: &Value) -> String {
    let differences = list(&report["profiles"]["differences"]);
    if differences.is_empty() {
        return String::new();
    }
    let several = list(&report["traffic"]["families"]).len() > 1;
    let mut page = String::from("Why, by [profiles](profiles.md):\n\n");
    for difference in differences {
        let family = if several {
            format!(", {}", protocol(&difference["family"]))
        } else {
            String::new()
        };
        let _ = writeln!(
            page,
            "- [{}{family}]({copies}/{}): {}",
            label(report, difference),
            text(&difference["flame_graph"]),
            text(&difference["sentence"])
        );
    }
    page.push('\n');
    page
}

/// What tells a comparison from the others; none for the only one.
fn heading(report: &Value, comparison: &Value) -> Option<String> {
    let families = list(&report["traffic"]["families"]);
    let family = (families.len() > 1).then(|| protocol(&comparison["family"]));
    match (comparison["title"].as_str(), family) {
        (Some(title), Some(family)) => Some(format!("{title}: {family}")),
        (Some(title), None) => Some(title.to_owned()),
        (None, family) => family.map(str::to_owned),
    }
}

/// What was lost, and where, while each variant was measured.
fn losses(report: &Value) -> String {
    let losses = list(&report["losses"]);
    if losses.is_empty() {
        return String::new();
    }
    let mut table =
        String::from("| frames | offered | forwarded | lost | where |\n|---|---|---|---|---|\n");
    let several = list(&report["traffic"]["families"]).len() > 1;
    for loss in losses {
        let drops = loss["drops"].as_object();
        let drops: Vec<(&String, u64)> = drops
            .into_iter()
            .flatten()
            .filter_map(|(reason, frames)| Some((reason, frames.as_u64().filter(|&n| n > 0)?)))
            .collect();
        let lost: u64 = drops.iter().map(|(_, frames)| frames).sum();
        let reasons: Vec<String> = drops
            .iter()
            .map(|(reason, frames)| format!("{reason} {}", grouped(*frames)))
            .collect();
        let mut variant = label(report, loss).to_owned();
        if several {
            variant += &format!(", {}", protocol(&loss["family"]));
        }
        let offered = loss["offered_frames"].as_u64().unwrap_or(0);
        let forwarded = loss["forwarded_frames"].as_u64().unwrap_or(0);
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} |",
            cell(&variant),
            grouped(offered),
            grouped(forwarded),
            part(lost, offered),
            cell(&reasons.join(", "))
        );
    }
    table + "\n"
}

/// What the DUT's mechanisms did for a packet, as far as variants differ in it.
fn dut_events(report: &Value) -> String {
    let mut page = String::new();
    for family in list(&report["traffic"]["families"]) {
        let is_control = |section: &Value| {
            variant(report, section).is_some_and(|of| !of["control_of"].is_null())
        };
        let sections: Vec<&Value> = list(&report["dut_events"])
            .iter()
            .filter(|section| &section["family"] == family && !is_control(section))
            .collect();
        let events: BTreeSet<&String> = sections
            .iter()
            .filter_map(|section| section["events"].as_object())
            .flat_map(|events| events.keys())
            .collect();
        let mut rows = String::new();
        for event in events {
            let rates: Vec<f64> = sections.iter().map(|of| per_packet(of, event)).collect();
            let largest = rates.iter().copied().fold(0.0, f64::max);
            let smallest = rates.iter().copied().fold(f64::INFINITY, f64::min);
            // Counters are read under load, so that equal ones differ a little.
            if largest - smallest > 0.05 * largest {
                let cells: Vec<String> = rates.iter().map(|rate| digits(*rate)).collect();
                let _ = writeln!(rows, "| {} | {} |", cell(event), cells.join(" | "));
            }
        }
        if rows.is_empty() {
            continue;
        }
        let labels: Vec<String> = sections.iter().map(|of| cell(label(report, of))).collect();
        let _ = writeln!(
            page,
            "What differed in the router for each packet ({}):\n\n| | {} |\n|---{}|\n{rows}",
            protocol(family),
            labels.join(" | "),
            "|---".repeat(labels.len())
        );
    }
    page
}

/// The variants that were not run, with the reason.
fn unavailable(report: &Value) -> String {
    let mut page = String::new();
    for variant in list(&report["variants"]) {
        if let Some(reason) = variant["unavailable"].as_str() {
            let _ = writeln!(
                page,
                "- Not run here: **{}**: {reason}",
                text(&variant["label"])
            );
        }
    }
    if page.is_empty() { page } else { page + "\n" }
}

/// What limits the results; what is not available stands on its own.
fn warnings(report: &Value) -> String {
    let mut page = String::new();
    for warning in list(&report["warnings"]) {
        if warning["code"] == "W204" {
            continue;
        }
        let subjects: Vec<&str> = list(&warning["subjects"]).iter().map(text).collect();
        let subjects = match subjects.join("; ") {
            subjects if subjects.is_empty() => subjects,
            subjects => format!("{subjects}: "),
        };
        let _ = writeln!(
            page,
            "- [{}](warnings.md) {subjects}{}",
            text(&warning["code"]),
            text(&warning["text"])
        );
    }
    if page.is_empty() { page } else { page + "\n" }
}

/// The verdicts in one line, for the table of contents: those of the first comparison.
fn answer(report: &Value) -> String {
    let comparisons = list(&report["comparisons"]);
    let title = comparisons.first().map(|comparison| &comparison["title"]);
    let mut answers = Vec::new();
    for comparison in comparisons
        .iter()
        .filter(|other| Some(&other["title"]) == title)
    {
        let family = list(&report["traffic"]["families"]).len() > 1;
        let verdicts: Vec<String> = list(&comparison["rows"])
            .iter()
            .skip(1)
            .map(|row| {
                let words = text(&row["verdict"]["words"]);
                let verdict = match row["effect"]["estimate_percent"].as_f64() {
                    Some(estimate) if words == "different" => format!("{estimate:+.1} %"),
                    Some(_) => words.to_owned(),
                    None if is_unavailable(report, row) => "not run here".to_owned(),
                    None => "without a valid block".to_owned(),
                };
                format!("{}: {verdict}", label(report, row))
            })
            .collect();
        let verdicts = verdicts.join("; ");
        answers.push(if family {
            format!("{}, {verdicts}", protocol(&comparison["family"]))
        } else {
            verdicts
        });
    }
    answers.join("; ")
}

/// A variant's name for readers.
pub(super) fn label<'a>(report: &'a Value, of: &'a Value) -> &'a str {
    variant(report, of).map_or_else(|| text(&of["variant"]), |variant| text(&variant["label"]))
}

fn is_unavailable(report: &Value, of: &Value) -> bool {
    variant(report, of).is_some_and(|variant| variant["unavailable"].is_string())
}

/// The variant that a row is about.
fn variant<'a>(report: &'a Value, of: &Value) -> Option<&'a Value> {
    let mut variants = list(&report["variants"]).iter();
    variants.find(|variant| variant["name"] == of["variant"])
}

fn protocol(family: &Value) -> &'static str {
    if family == "inet6" { "IPv6" } else { "IPv4" }
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn text_of_number(value: &Value) -> String {
    value
        .as_u64()
        .map_or_else(String::new, |number| number.to_string())
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text that does not end its table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A count in groups of three digits, where it has more than four.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// A part of a count in percent.
fn part(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "a percentage for readers")]
    let percent = part as f64 / whole as f64 * 100.0;
    if percent < 0.01 {
        "< 0.01 %".to_owned()
    } else {
        format!("{percent:.2} %")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Value {
        json!({
            "question": "Impact of a | b",
            "background": "Words.\n",
            "factors": [{"name": "f", "description": "a thing", "levels": ["0", "1"], "default": "0"}],
            "variants": [
                {"name": "a", "label": "plain", "unavailable": null},
                {"name": "b", "label": "with", "unavailable": null},
                {"name": "c", "label": "gone", "unavailable": "no such thing"},
            ],
            "traffic": {"families": ["inet"], "frame_sizes": [{"bytes": 64}], "regime": "paced",
                        "intended_load_pps": 400_000},
            "design": {"rounds": 6},
            "progress": {"measured_blocks": 8},
            "lab": {"cpus": 2, "cpu_model": "Some CPU", "kernel": "6.18.5 #1", "dut_cpu": 1,
                    "start": "2026-11-21T08:42:53Z"},
            "comparisons": [{
                "title": null, "family": "inet", "plot": "effects.svg",
                "rows": [
                    {"variant": "a", "cost_ns": 950.3},
                    {"variant": "b", "effect": {"estimate_percent": -24.58},
                     "verdict": {"words": "different", "sentence": "different (slower): -24.58 %"}},
                    {"variant": "c", "effect": null, "verdict": null},
                ],
                "control": {"sentence": "no difference"},
            }],
            "profiles": {"differences": [
                {"variant": "b", "family": "inet", "sentence": "+9 ns/packet in `f`",
                 "flame_graph": "difference-a-b-inet.svg"},
            ]},
            "losses": [
                {"variant": "a", "family": "inet", "offered_frames": 1000, "forwarded_frames": 1000,
                 "drops": {}},
                {"variant": "b", "family": "inet", "offered_frames": 2_000_000,
                 "forwarded_frames": 1_500_000, "drops": {"a full ring": 500_000, "other": 0}},
            ],
            "warnings": [
                {"code": "W203", "subjects": ["lab"], "text": "busy"},
                {"code": "W204", "subjects": ["gone"], "text": "not run"},
            ],
        })
    }

    #[test]
    fn a_section_says_what_was_asked_how_and_what_came_out() {
        let bindings = json!({"f": {"sysctl": {"key": "net.x", "values": {}}}});
        let section = measured(
            "x",
            "experiments/x.toml",
            "experiments/x",
            &report(),
            &bindings,
        );
        assert_eq!(
            section.row,
            "| [x](#x) | Impact of a \\| b | with: -24.6 %; gone: not run here |"
        );
        assert_eq!(
            section.text,
            "\
## x

**Impact of a | b**

Words.

| varied | levels | set by |
|---|---|---|
| **f**: a thing | `0`, `1` | sysctl `net.x` |

```console
# cargo run --release -- run experiments/x.toml
```

paced at 400\u{202f}000 pps, the DUT on CPU 1; frames of 64 bytes; 8 blocks of 6 rounds; 2 x Some CPU, \
Linux 6.18.5, 2026-11-21

- *plain*: the baseline, 950.3 ns/packet
- **with**: different (slower): -24.58 %
- A/A control: no difference

![Effects with their intervals](experiments/x/effects.svg)

Why, by [profiles](profiles.md):

- [with](experiments/x/difference-a-b-inet.svg): +9 ns/packet in `f`

| frames | offered | forwarded | lost | where |
|---|---|---|---|---|
| plain | 1000 | 1000 | 0 % |  |
| with | 2\u{202f}000\u{202f}000 | 1\u{202f}500\u{202f}000 | 25.00 % | a full ring 500\u{202f}000 |

- Not run here: **gone**: no such thing

- [W203](warnings.md) lab: busy

[The experiment file](../experiments/x.toml), [the whole report](experiments/x/README.md).
"
        );
    }

    #[test]
    fn every_mechanism_has_words() {
        for (bound, words) in [
            (json!("routes"), "routes added and deleted"),
            (json!({"nft": {"none": ""}}), "a ruleset of nftables"),
            (
                json!({"xdp": {"kernel": "off"}}),
                "an XDP program on dut-in",
            ),
            (
                json!({"ethtool": {"feature": "gro", "interfaces": ["dut-in", "dut-out"]}}),
                "ethtool feature `gro` of dut-in and dut-out",
            ),
            (
                json!({"sysfs": {"file": "threaded", "interfaces": ["dut-in"], "values": {}}}),
                "`threaded` of dut-in in sysfs",
            ),
            (
                json!({"command": {"do": ["tc", "{level}"], "undo": ["tc", "no"], "check": null}}),
                "`tc {level}`, undone by `tc no`",
            ),
            (
                json!({"command": {"do": ["a"], "undo": ["b"], "check": ["c", "d"]}}),
                "`a`, undone by `b`, read back by `c d`",
            ),
        ] {
            assert_eq!(binding(&bound), words);
        }
    }

    #[test]
    fn what_the_router_did_shows_where_variants_differ() {
        let mut report = report();
        report["lab"]["kind"] = json!("router");
        let event = |variant: &str, reclaims: u64| {
            json!({"variant": variant, "family": "inet", "events": {
                "received": 10_000, "forwarded": 9990, "reclaims": reclaims,
            }})
        };
        assert_eq!(dut_events(&report), "");
        report["dut_events"] = json!([event("a", 313), event("b", 39)]);
        let table = dut_events(&report);
        assert!(
            table.contains("| reclaims | 0.0313 | 0.0039 |\n"),
            "{table}"
        );
        assert!(!table.contains("forwarded"), "{table}");
        let section = measured("x", "experiments/x.toml", "seeds/x", &report, &json!({}));
        assert!(section.text.contains("$ cargo run"), "{}", section.text);
        assert!(
            section.text.contains("(seeds/x/README.md)"),
            "{}",
            section.text
        );
    }

    #[test]
    fn what_has_no_new_result_stays_and_what_is_gone_goes() {
        let empty = "# By hand\n\n<!-- contents -->\n<!-- end of contents -->\n";
        let (bindings, source) = (json!({}), "experiments/x.toml");
        let both = [
            measured("x", source, "experiments/x", &report(), &bindings),
            unmeasured("y", "experiments/y.toml", "question = \"Why?\"\n"),
        ];
        let page = draw_up(empty, &both).unwrap();
        assert!(
            page.starts_with("# By hand\n\n<!-- contents -->\n| experiment |"),
            "{page}"
        );
        assert_eq!(names(&page), ["x", "y"]);
        assert!(
            page.contains("| [y](#y) | Why? | not measured yet |\n"),
            "{page}"
        );
        let kept = ["x", "y"].map(|name| Section::of(&page, name).unwrap());
        assert_eq!(draw_up(&page, &kept).unwrap(), page);
        assert_eq!(names(&draw_up(&page, &kept[..1]).unwrap()), ["x"]);
        assert_eq!(Section::of(&page, "z"), None);
        assert!(draw_up("# By hand\n", &kept).is_err());
    }

    #[test]
    fn counts_are_grouped_and_parts_never_rounded_to_nothing() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(9999), "9999");
        assert_eq!(grouped(10_000), "10\u{202f}000");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(part(0, 5), "0 %");
        assert_eq!(part(1, 1_000_000), "< 0.01 %");
        assert_eq!(part(1, 3), "33.33 %");
    }
}
