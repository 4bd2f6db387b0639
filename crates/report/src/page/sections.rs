//! The page's sections but that of the effects, in the order in which people ask.

use std::collections::BTreeMap;
use std::iter;

use maud::{Markup, html};

use super::data::flame_id;
use super::figures::{
    FIGURE, NUMBER, PLAIN, TEXT, VERDICT, figure, figure_or_dash, interval, prose, table,
};
use crate::colours::Tone;
use crate::factorial::FactorialRow;
use crate::format;
use crate::profile_sections::{CostSection, ProfileDifference};
use crate::profiles::{self, FlameGraph};
use crate::readme;
use crate::report::{ComparisonSection, Report, Warning};
use crate::sentences;
use crate::text;
use crate::traffic_effects::{self, TrafficChange, TrafficSection};

/// The verdict sentences.
pub(super) fn findings(report: &Report) -> Markup {
    html! {
        section id="findings" aria-labelledby="findings-heading" {
            h2 id="findings-heading" { "Verdicts" }
            @if let Some(background) = &report.background {
                @for paragraph in background.trim().split("\n\n") {
                    p.background { (paragraph) }
                }
            }
            @for (index, comparison) in report.comparisons.iter().enumerate() {
                @if let Some(heading) = sentences::heading(report, comparison) {
                    h3 { (heading) }
                }
                (verdicts(report, index, comparison))
            }
        }
    }
}

fn verdicts(report: &Report, index: usize, comparison: &ComparisonSection) -> Markup {
    let heading =
        sentences::heading(report, comparison).unwrap_or_else(|| "all variants".to_owned());
    let judged = comparison.rows.iter().enumerate();
    let judged: Vec<_> = judged
        .filter_map(|(row, of)| Some((row, of, of.verdict.as_ref()?)))
        .collect();
    html! {
        @if judged.is_empty() {
            p { "No verdict: no block holds a valid trial of both baseline and variant." }
        }
        div.verdicts tabindex="0" role="region" aria-label={ "Verdicts: " (heading) } {
            ul {
                @for (row, of, verdict) in judged {
                    li class=(Tone::of(verdict).class()) data-variant=(of.variant) {
                        strong { (report.label(&of.variant)) } ": "
                        (figure(&format!("/comparisons/{index}/rows/{row}/verdict/sentence"), &verdict.sentence))
                        @for (outcome, row) in comparison.outcomes.of(&of.variant) {
                            span.because {
                                (figure(&format!("/comparisons/{index}/{}", outcome.key), &outcome.sentence(row)))
                            }
                        }
                        @if let Some(why) = report.why(comparison, &of.variant) {
                            span.because { (prose(why)) }
                        }
                    }
                }
                @if let Some(control) = &comparison.control {
                    li.control {
                        strong { (report.label(&control.row.variant)) } ": "
                        (figure(&format!("/comparisons/{index}/control/sentence"), &control.sentence))
                    }
                }
            }
            @if let Some(unused) = report.no_profile_used() {
                p.muted { "Why: " (figure("/profiles/unused", unused)) }
            }
        }
    }
}

/// The effects under each traffic beside each other, and how they change with it.
pub(super) fn traffic_effects(report: &Report) -> Markup {
    html! {
        @if !report.traffic_effects.is_empty() {
            section id="traffic" aria-labelledby="traffic-heading" {
                h2 id="traffic-heading" { "Effects by traffic" }
                @for (number, of) in report.traffic_effects.iter().enumerate() {
                    h3 { (sentences::traffic_heading(of)) }
                    (effects_by_traffic(report, of))
                    @if !of.changes.is_empty() {
                        h4 { "How they change with it" }
                        (changes_with_traffic(report, number, &of.changes))
                        p.muted { (sentences::traffic_reading(of)) }
                    }
                }
            }
        }
    }
}

fn effects_by_traffic(report: &Report, of: &TrafficSection) -> Markup {
    let names: Vec<String> = of.traffics.iter().map(ToString::to_string).collect();
    let columns: Vec<_> = iter::once((TEXT, "variant"))
        .chain(names.iter().map(|name| (NUMBER, name.as_str())))
        .collect();
    let body = html! {
        @for variant in traffic_effects::variants(report, of) {
            tr {
                th scope="row" { (report.label(variant)) }
                @for (row, _) in traffic_effects::rows(report, of, variant) {
                    @if let (Some(effect), Some(verdict)) = (&row.effect, &row.verdict) {
                        td class={ "number " (Tone::of(verdict).class()) } data-value=(effect.estimate_percent) {
                            (format::change(effect.estimate_percent, effect.interval)) ", " (verdict.said())
                        }
                    } @else {
                        td {}
                    }
                }
            }
        }
    };
    table("Effects by traffic", &columns, body)
}

fn changes_with_traffic(report: &Report, number: usize, changes: &[TrafficChange]) -> Markup {
    let columns = [
        (TEXT, "variant"),
        (TEXT, "traffic"),
        (NUMBER, "change"),
        (VERDICT, "verdict"),
        (FIGURE, "interval"),
        (NUMBER, "p"),
    ];
    let body = html! {
        @for (index, change) in changes.iter().enumerate() {
            @let at = format!("/traffic_effects/{number}/changes/{index}");
            @let effect = &change.effect;
            @let tone = Tone::of(&change.verdict).class();
            tr data-record=(at) {
                th scope="row" { (report.label(&change.variant)) }
                td { (change.traffic) }
                td class={ "number strong " (tone) } data-value=(effect.estimate_percent) {
                    (figure(&format!("{at}/effect/estimate_percent"), &format::change(effect.estimate_percent, effect.interval)))
                }
                td class={ "verdict " (tone) } { (change.verdict.said()) }
                td.number { (interval(&format!("{at}/effect"), effect)) }
                td.number data-value=[effect.p] { (figure(&format!("{at}/effect/p"), &format::p(effect.p))) }
            }
        }
    };
    table("Changes with the traffic", &columns, body)
}

/// Main effects and interactions.
pub(super) fn factorial(report: &Report) -> Markup {
    let sections = report.comparisons.iter().enumerate();
    let sections: Vec<_> = sections
        .filter_map(|(index, of)| Some((index, of, of.factorial.as_ref()?)))
        .collect();
    html! {
        @if !sections.is_empty() {
            section id="factors" aria-labelledby="factors-heading" {
                h2 id="factors-heading" { "What each factor does" }
                @for (index, comparison, factorial) in sections {
                    @if let Some(heading) = sentences::heading(report, comparison) {
                        h3 { (heading) }
                    }
                    @let at = format!("/comparisons/{index}/factorial");
                    (terms("main effect", &format!("{at}/main_effects"), &factorial.main_effects))
                    (terms("interaction", &format!("{at}/interactions"), &factorial.interactions))
                    p.muted { (sentences::factorial_reading(factorial)) }
                }
            }
        }
    }
}

fn terms(what: &str, at: &str, rows: &[FactorialRow]) -> Markup {
    let columns = [
        (TEXT, what),
        (NUMBER, "effect"),
        (VERDICT, "verdict"),
        (FIGURE, "interval"),
        (NUMBER, "p"),
    ];
    let body = html! {
        @for (index, row) in rows.iter().enumerate() {
            @let at = format!("{at}/{index}");
            @let effect = &row.effect;
            @let tone = Tone::of(&row.verdict).class();
            tr data-record=(at) {
                th scope="row" { (row.label) }
                td class={ "number strong " (tone) } data-value=(effect.estimate_percent) {
                    (figure(&format!("{at}/effect/estimate_percent"), &format::change(effect.estimate_percent, effect.interval)))
                }
                td class={ "verdict " (tone) } { (row.verdict.said()) }
                td.number { (interval(&format!("{at}/effect"), effect)) }
                td.number data-value=[effect.p] { (figure(&format!("{at}/effect/p"), &format::p(effect.p))) }
            }
        }
    };
    html! {
        @if !rows.is_empty() { (table(&format!("{what}s"), &columns, body)) }
    }
}

/// Where the script draws every trial, and the slices of a block.
pub(super) fn trials(report: &Report) -> Markup {
    let valid = report.trials.iter().filter(|trial| trial.counts).count();
    html! {
        section id="trials" aria-labelledby="trials-heading" {
            h2 id="trials-heading" { "Every trial over time" }
            p.muted {
                (format::counted(report.trials.len() as u64, "trial")) ", " (format::count(valid as u64))
                " of which count. Filled: counts; hollow: its block is invalid or was cut short. Drag to zoom, \
                 double-click or 0 for all; with the keyboard ← and → go from trial to trial, ↑ and ↓ within a block, + \
                 and - zoom; Enter or a click shows the slices of the block."
            }
            noscript {
                p.notice { "The plots of trials, slices and stacks need the page's script; trials.svg beside this file has the first." }
            }
            div id="trials-tools" {}
            div id="trials-plot" {}
            p id="trial-status" role="status" {}
            div id="slices" hidden {}
            @if let Some(invalid) = &report.invalid {
                h3 { "Invalid trials" }
                p.muted { (sentences::INVALID) }
                (table("Invalid trials", &[(PLAIN, "variant"), (PLAIN, report.strata_heading()), (FIGURE, "invalid"), (PLAIN, "why")], html! {
                    @for (index, row) in invalid.rows.iter().enumerate().filter(|(_, row)| row.invalid > 0) {
                        tr data-record={ "/invalid/rows/" (index) } {
                            th scope="row" { (report.label(&row.variant)) }
                            td { (row.stratum.label()) }
                            td.number {
                                (figure(&format!("/invalid/rows/{index}/invalid"), &row.invalid.to_string()))
                                " of "
                                (figure(&format!("/invalid/rows/{index}/trials"), &row.trials.to_string()))
                            }
                            td { @for reason in &row.reasons { (reason) br; } }
                        }
                    }
                }))
            }
        }
    }
}

/// How busy the CPUs of a DUT on its host were.
pub(super) fn dut_cpus(report: &Report) -> Markup {
    let columns = [
        (PLAIN, "variant"),
        (PLAIN, report.strata_heading()),
        (FIGURE, "CPU"),
        (FIGURE, "busy"),
        (FIGURE, "in interrupts"),
    ];
    let percent = |at: String, value: f64| figure(&at, &format!("{value:.0} %"));
    let rows = html! {
        @for (index, section) in report.dut_cpus.iter().enumerate() {
            @for (number, cpu) in section.cpus.iter().enumerate() {
                @let at = format!("/dut_cpus/{index}/cpus/{number}");
                tr data-variant=(section.variant) data-record=(at) {
                    th scope="row" { (report.label(&section.variant)) }
                    td { (section.stratum.label()) }
                    td.number { (cpu.cpu) }
                    td.number { (percent(format!("{at}/busy_percent"), cpu.busy_percent)) }
                    td.number { (percent(format!("{at}/interrupts_percent"), cpu.interrupts_percent)) }
                }
            }
        }
    };
    html! {
        @if !report.dut_cpus.is_empty() {
            section id="cpus" aria-labelledby="cpus-heading" {
                h2 id="cpus-heading" { "How busy the DUT was" }
                p.muted { (sentences::DUT_CPUS) }
                @if let Some(has_time) = sentences::dut_has_time(report) {
                    p { (has_time) }
                }
                (table("How busy the DUT was", &columns, rows))
            }
        }
    }
}

/// Profiles: what differs, and the flame graphs.
pub(super) fn why(report: &Report, graphs: &[FlameGraph]) -> Markup {
    html! {
        @if let Some(section) = &report.profiles {
            section id="why" aria-labelledby="why-heading" {
                h2 id="why-heading" { "Why: where a packet's time goes" }
                ul {
                    @for (index, found) in section.differences.iter().enumerate() {
                        li {
                            strong { (report.label(&found.variant)) ", " (found.stratum.label()) } ": "
                            span data-record={ "/profiles/differences/" (index) "/sentence" } { (prose(&found.sentence)) }
                        }
                    }
                }
                @if let Some(unused) = &section.unused {
                    p { (figure("/profiles/unused", unused)) }
                }
                p.muted { (profiles::taken(section)) }
                @if let Some(overhead) = &section.overhead {
                    p.muted { (profiles::overhead(overhead, &report.design)) }
                }
                @if !graphs.is_empty() {
                    div.flame {
                        div.tools {
                            label for="flame-choice" { "Flame graph" }
                            select id="flame-choice" {
                                @for (index, graph) in graphs.iter().enumerate() {
                                    option value=(flame_id(index)) {
                                        (graph.title)
                                        @if report.has_several_strata() { ", " (graph.stratum.label()) }
                                    }
                                }
                            }
                            label for="flame-search" { "Search" }
                            input id="flame-search" type="search" placeholder="function, or /regular expression/" autocomplete="off" spellcheck="false";
                            button id="flame-reset" type="button" { "Reset zoom" }
                            output id="flame-found" for="flame-search" aria-live="polite" {}
                        }
                        p id="flame-words" .muted {}
                        p id="flame-basis" .muted {}
                        div id="flame-graph" {}
                        p id="flame-status" role="status" { }
                        p.muted {
                            "Click or Enter zooms, Escape goes back; arrow keys go to callers (↓), to what they call (↑) and to their \
                             neighbours; / searches. The same as files: "
                            @for (index, graph) in graphs.iter().enumerate() {
                                @if index > 0 { ", " }
                                a href=(graph.file) { (graph.title) }
                            }
                            "."
                        }
                    }
                }
                @for (index, found) in section.differences.iter().enumerate() {
                    (functions(report, index, found))
                }
            }
        }
    }
}

/// The functions in which two variants differ.
fn functions(report: &Report, index: usize, found: &ProfileDifference) -> Markup {
    let heading = format!(
        "{} against {}, {}",
        report.label(&found.variant),
        report.label(&found.baseline),
        found.stratum.label()
    );
    let columns = [
        (TEXT, "function (ns/packet)"),
        (NUMBER, "baseline"),
        (NUMBER, "variant"),
        (NUMBER, "itself"),
        (NUMBER, "with what it calls"),
    ];
    let cost = |at: String, cost: &CostSection| {
        html! {
            td.number.significant[cost.is_significant] data-value=(cost.difference_ns) data-record=(at) { (profiles::signed(cost)) }
        }
    };
    html! {
        @if !found.frames.is_empty() {
            details {
                summary { (heading) ": " (format::counted(found.frames_different.into(), "function")) }
                (table(&heading, &columns, html! {
                    @for (row, frame) in found.frames.iter().enumerate() {
                        @let at = format!("/profiles/differences/{index}/frames/{row}");
                        tr data-record=(at) {
                            th scope="row" { code { (frame.frame) } }
                            td.number data-value=(frame.itself.baseline_ns) {
                                (figure(&format!("{at}/itself/baseline_ns"), &format::short(frame.itself.baseline_ns, 1)))
                            }
                            td.number data-value=(frame.itself.variant_ns) {
                                (figure(&format!("{at}/itself/variant_ns"), &format::short(frame.itself.variant_ns, 1)))
                            }
                            (cost(format!("{at}/itself/difference_ns"), &frame.itself))
                            (cost(format!("{at}/with_callees/difference_ns"), &frame.with_callees))
                        }
                    }
                }))
                @if let Some(reading) = &found.reading {
                    p.muted data-record=(format!("/profiles/differences/{index}/reading")) { (reading) }
                }
            }
        }
    }
}

/// Where it was measured, and how.
pub(super) fn environment(report: &Report) -> Markup {
    let lab = &report.lab;
    let cost =
        sentences::generator_costs(report).map(|costs| format!("{costs}; part of every ns/packet"));
    let (design, seed) = (sentences::design(report), sentences::seed(&report.design));
    let settled: Vec<String> = report
        .load
        .iter()
        .flat_map(sentences::settled_load)
        .collect();
    let entries: Vec<(&str, &str, Option<String>)> = vec![
        ("Lab", "/lab/description", lab.description.clone()),
        ("Machine", "/lab", Some(sentences::machine(lab))),
        (
            "Kernel",
            "/lab/kernel",
            Some(sentences::kernel(lab.kind, &lab.kernel)),
        ),
        (
            "Traffic",
            "/traffic",
            Some(sentences::traffics(&report.traffics).join("; ")),
        ),
        ("Tester", "/lab/tester", Some(lab.tester.to_string())),
        (
            "Load",
            "/traffic",
            Some(readme::load(report).replacen("Load: ", "", 1)),
        ),
        (
            "Settled",
            "/load",
            (!settled.is_empty()).then(|| settled.join("; ")),
        ),
        ("Generator's own cost", "/lab/generator_cost_ns", cost),
        ("Design", "/design", Some(format!("{design}; seed {seed}"))),
        (
            "Disturbed",
            "/disturbance",
            sentences::disturbed_time(report),
        ),
        (
            "Measured",
            "/lab",
            Some(format!(
                "{}, in {}, by fwdlab {}",
                lab.start,
                format::counted(lab.sessions.into(), "session"),
                lab.fwdlab
            )),
        ),
    ];
    html! {
        section id="environment" aria-labelledby="environment-heading" {
            h2 id="environment-heading" { "Environment" }
            dl {
                @for (name, record, value) in &entries {
                    @if let Some(value) = value {
                        dt { (name) } dd data-record=(record) { (value) }
                    }
                }
            }
            @if !lab.facts.is_empty() {
                details {
                    summary { "Machine details (" (lab.facts.len()) ")" }
                    dl {
                        @for (name, value) in &lab.facts {
                            dt { (name) } dd { (value) }
                        }
                    }
                }
            }
            h3 { "What this lab is not" }
            ul { @for limit in sentences::limits(report) { li { (limit) } } }
        }
    }
}

/// What differs between the variants.
pub(super) fn variants(report: &Report) -> Markup {
    let (varied, constant): (Vec<_>, Vec<_>) =
        (report.factors.iter()).partition(|factor| factor.levels.len() > 1);
    let mut columns = vec![(TEXT, "variant")];
    columns.extend(varied.iter().map(|factor| (TEXT, factor.name.as_str())));
    columns.push((PLAIN, "remark"));
    html! {
        section id="variants" aria-labelledby="variants-heading" {
            h2 id="variants-heading" { "What differs between the variants" }
            ul {
                @for factor in &varied {
                    li {
                        code { (factor.name) }
                        @if let Some(description) = &factor.description { ": " (description.trim_end_matches('.')) }
                        ". Default: " code { (factor.default) }
                    }
                }
            }
            (table("Variants and their levels", &columns, html! {
                @for (index, variant) in report.variants.iter().enumerate() {
                    tr data-variant=(variant.name) data-record={ "/variants/" (index) } {
                        th scope="row" { (variant.label) }
                        @for factor in &varied {
                            @let level = variant.levels.get(&factor.name).unwrap_or(&factor.default);
                            td.default[level == &factor.default] { code { (level) } }
                        }
                        td {
                            @if let Some(reason) = &variant.unavailable { "not run: " (reason) }
                            @else if let Some(of) = &variant.control_of { "A/A control: " (report.label(of)) " again" }
                        }
                    }
                }
            }))
            @if !report.differing_facts.is_empty() {
                p { (sentences::differing_facts(report)) }
                ul data-record="/differing_facts" {
                    @for (fact, values) in &report.differing_facts {
                        li {
                            (fact) ": "
                            @if let Some(value) = sentences::common(values) { (prose(&sentences::fact(value))) }
                            @else { @for (index, (variant, value)) in values.iter().enumerate() {
                                @if index > 0 { "; " }
                                (report.label(variant)) ": " (prose(&sentences::fact(value)))
                            } }
                        }
                    }
                }
            }
            @if !constant.is_empty() {
                p { "Held constant: "
                    @for (index, factor) in constant.iter().enumerate() {
                        @if index > 0 { ", " }
                        code { (factor.name) "=" (factor.default) }
                    }
                }
            }
        }
    }
}

pub(super) fn warnings(report: &Report) -> Markup {
    html! {
        @if !report.warnings.is_empty() {
            section id="warnings" aria-labelledby="warnings-heading" {
                h2 id="warnings-heading" { "Warnings" }
                ul { @for (index, warning) in report.warnings.iter().enumerate() { (warning_item(index, warning)) } }
            }
        }
    }
}

fn warning_item(index: usize, warning: &Warning) -> Markup {
    html! {
        li data-record={ "/warnings/" (index) } {
            strong { (warning.code) } " "
            @if !warning.subjects.is_empty() { (warning.subjects.join("; ")) ": " }
            (warning.text)
            @if let Some(remedy) = &warning.remedy { "; " em { (remedy) } }
        }
    }
}

/// Where the frames of the blocks went, and what was lost by whom.
pub(super) fn frames(report: &Report) -> Markup {
    html! {
        section id="frames" aria-labelledby="frames-heading" {
            h2 id="frames-heading" { "Where the frames went" }
            @if !report.conservation.is_empty() {
                p.muted { (sentences::conservation(report)) }
                (conservation(report))
            }
            @if !report.losses.is_empty() {
                p { (sentences::losses(report)) }
                (losses(report))
            }
        }
    }
}

fn conservation(report: &Report) -> Markup {
    let columns = [
        (PLAIN, report.strata_heading()),
        (FIGURE, "offered"),
        (FIGURE, "forwarded"),
        (FIGURE, "dropped"),
        (FIGURE, "unaccounted"),
        (FIGURE, "verified"),
        (FIGURE, "wrong"),
        (FIGURE, "foreign"),
    ];
    let sum =
        |of: &BTreeMap<String, u64>| sentences::with_reasons(of.values().sum(), of, text::one_line);
    let rows = html! {
        @for (stratum, frames) in &report.conservation {
            @let at = format!("/conservation/{stratum}");
            @let count = |key: &str, frames: u64| figure(&format!("{at}/{key}"), &format::count(frames));
            tr data-record=(at) {
                th scope="row" { (stratum.label()) }
                td.number { (count("offered_frames", frames.offered_frames)) }
                td.number { (count("forwarded_frames", frames.forwarded_frames)) }
                td.number data-record={ (at) "/drops" } { (sum(&frames.drops)) }
                td.number { (figure(&format!("{at}/unaccounted_frames"), &format::signed_count(frames.unaccounted_frames))) }
                td.number { (count("verification/checked_frames", frames.verification.checked_frames)) }
                td.number data-record={ (at) "/verification/wrong_frames" } { (sum(&frames.verification.wrong_frames)) }
                td.number { (count("foreign_frames", frames.foreign_frames)) }
            }
        }
    };
    table("Where the frames went", &columns, rows)
}

fn losses(report: &Report) -> Markup {
    let columns = [
        (TEXT, "variant"),
        (TEXT, report.strata_heading()),
        (NUMBER, "offered"),
        (NUMBER, "forwarded"),
        (NUMBER, "frame loss rate"),
    ];
    let rows = html! {
        @for (index, loss) in report.losses.iter().enumerate() {
            @let at = format!("/losses/{index}");
            tr data-variant=(loss.variant) data-record=(at) {
                th scope="row" { (report.label(&loss.variant)) }
                td { (loss.stratum.label()) }
                td.number data-value=(loss.offered_frames) { (figure(&format!("{at}/offered_frames"), &format::count(loss.offered_frames))) }
                td.number data-value=(loss.forwarded_frames) { (figure(&format!("{at}/forwarded_frames"), &format::count(loss.forwarded_frames))) }
                td.number data-value=[loss.dropped_percent] { (figure_or_dash(&format!("{at}/dropped_percent"), loss.dropped_percent.map(format::part))) }
            }
        }
    };
    table("Frames lost", &columns, rows)
}

pub(super) fn again(report: &Report) -> Markup {
    html! {
        section id="again" aria-labelledby="again-heading" {
            h2 id="again-heading" { "Run it again" }
            pre tabindex="0" { code data-record="/again/command" { (report.again.command) } }
            p {
                "In the results directory, " code { "experiment.toml" } " is a copy of the experiment file; "
                code { "resolved.json" } " is the experiment and its lab (" (report.lab.name)
                ") with every default filled in (SHA-256 " code data-record="/again/experiment_hash" { (report.again.experiment_hash) } "). \
                 Every figure on this page shows, when the pointer rests on it, where in "
                code { "report.json" } " it stands."
            }
        }
    }
}
