//! `report.html`: a run as one page that needs nothing but itself.
//!
//! What is said stands in the document as it is written here, so that it can be read, printed and searched
//! without a script. The script (`page/src`) adds what takes a pointer or a keyboard: sorting, filtering, the
//! plots of every trial and slice, and flame graphs that can be zoomed.

mod data;
mod effects;
mod figures;
mod sections;

use fwdlab_archive::Loaded;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::error::ReportError;
use crate::profiles::FlameGraph;
use crate::report::Report;
use crate::sentences;
use crate::text;

/// What `npm run build` makes of `page/src`; CI builds it again and compares.
const SCRIPT: &str = include_str!("../../page/dist/page.js");
const STYLE: &str = include_str!("../../page/dist/page.css");
/// The one script and the one style that a browser may use, by their hashes.
const POLICY: &str = include_str!("../../page/dist/policy.txt");

/// Draws up the page; `loaded` is what the report was built from, `flame_graphs` those of it.
pub(crate) fn page(
    report: &Report,
    loaded: &Loaded,
    flame_graphs: &[FlameGraph],
) -> Result<String, ReportError> {
    let blocks = data::of_blocks(loaded)?;
    let graphs = data::of_flame_graphs(flame_graphs)?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY.trim_end());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="generator" content={ "fwdlab " (report.lab.fwdlab) };
                title { (report.question) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(report, !flame_graphs.is_empty()))
                main {
                    (sections::findings(report))
                    (effects::section(report))
                    (sections::traffic_effects(report))
                    (sections::factorial(report))
                    (sections::trials(report))
                    (sections::dut_cpus(report))
                    (sections::why(report, flame_graphs))
                    (sections::environment(report))
                    (sections::variants(report))
                    (sections::warnings(report))
                    (sections::frames(report))
                    (sections::again(report))
                }
                (embedded("report", &data::escaped(report)?))
                @for (id, json) in blocks.iter().chain(&graphs) {
                    (embedded(id, json))
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    // Names and texts of others are in all of it, and in no place may they act.
    Ok(text::inert(&page.into_string(), false).into_owned() + "\n")
}

/// Data for the script; `json` holds no `<`, so that nothing in it can end the element.
fn embedded(id: &str, json: &str) -> Markup {
    html! { script type="application/json" id=(id) { (PreEscaped(json)) } }
}

fn header(report: &Report, has_flame_graphs: bool) -> Markup {
    let lab = &report.lab;
    html! {
        header {
            p.product { "fwdlab" }
            h1 { (report.question) }
            p.muted {
                (sentences::blocks(report)) ", " (lab.start) ", " (lab.machine.as_deref().unwrap_or(&lab.cpu_model))
                ", Linux " (lab.kernel.split(' ').next().unwrap_or_default())
            }
            @if let Some(unfinished) = sentences::unfinished(report) {
                p.notice { (unfinished) }
            }
            nav aria-label="Sections" {
                a href="#findings" { "Verdicts" }
                a href="#effects" { "Effects" }
                @if !report.traffic_effects.is_empty() {
                    a href="#traffic" { "By traffic" }
                }
                @if report.comparisons.iter().any(|comparison| comparison.factorial.is_some()) {
                    a href="#factors" { "Factors" }
                }
                a href="#trials" { "Trials" }
                @if has_flame_graphs {
                    a href="#why" { "Why" }
                }
                a href="#environment" { "Environment" }
                a href="#variants" { "Variants" }
                @if !report.warnings.is_empty() {
                    a href="#warnings" { "Warnings (" (report.warnings.len()) ")" }
                }
                a href="#again" { "Run it again" }
            }
        }
    }
}
