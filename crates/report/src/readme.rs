//! `README.md` of a run, in the form in which such results are published.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::iter;

use fwdlab_model::{Conservation, LabKind, LoadRegime, Stratum, System, Tester, VariantName};

use crate::format;
use crate::profile_sections::{CostSection, ProfileDifference, ProfilesSection};
use crate::profiles;
use crate::report::{
    ComparisonSection, CpusSection, EventsSection, NoiseSection, OrderEffectSection, ReferenceRow,
    Report, Row, VerdictSection, Warning,
};
use crate::sentences;
use crate::text;
use crate::totals::ConservationTotals;
use crate::traffic_effects;

/// `README.md`; `plots` is the folder of the plots as seen from it: `""` or `"derived/"`.
#[must_use]
pub fn readme(report: &Report, plots: &str) -> String {
    let mut page = Page {
        report,
        plots,
        text: String::new(),
    };
    page.opening();
    page.lab();
    page.testing();
    page.results();
    page.traffic_effects();
    page.losses();
    page.dut_events();
    page.dut_cpus();
    page.profiles();
    page.offered_load();
    page.ministat();
    page.control();
    page.order();
    page.trials();
    page.warnings();
    page.conservation();
    page.disturbance();
    page.invalid();
    page.differing_facts();
    page.environment();
    page.limits();
    page.again();
    page.text
}

struct Page<'a> {
    report: &'a Report,
    plots: &'a str,
    text: String,
}

impl Page<'_> {
    /// A line, or several, and their end.
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn paragraph(&mut self, lines: &str) {
        self.line(lines);
        self.line("");
    }

    /// Where in `report.json` the figures stand that are above it, up to the last such line or heading:
    /// JSON pointers (RFC 6901).
    fn source<P: Borrow<str>>(&mut self, pointers: &[P]) {
        let pointers = pointers.join(", ");
        let plots = self.plots;
        self.paragraph(&format!(
            "<sub>[report.json]({plots}report.json): {pointers}</sub>"
        ));
    }

    /// The same of a comparison's parts.
    fn source_in(&mut self, comparison: usize, parts: &[&str]) {
        let pointers = parts
            .iter()
            .map(|part| format!("/comparisons/{comparison}/{part}"));
        self.source(&pointers.collect::<Vec<_>>());
    }

    /// The same of a comparison's rows, and of its control's where it has one.
    fn source_of_rows(&mut self, index: usize, comparison: &ComparisonSection) {
        let control = comparison.control.as_ref().map(|_| "control/row");
        let parts: Vec<&str> = iter::once("rows").chain(control).collect();
        self.source_in(index, &parts);
    }

    /// The same of one part of the comparisons that have it.
    fn source_in_those(&mut self, part: &str, have: impl Fn(&ComparisonSection) -> bool) {
        let comparisons = self.report.comparisons.iter().enumerate();
        let pointers = comparisons
            .filter(|(_, comparison)| have(comparison))
            .map(|(index, _)| format!("/comparisons/{index}/{part}"));
        self.source(&pointers.collect::<Vec<_>>());
    }

    fn item(&mut self, item: &str) {
        let _ = writeln!(self.text, "  - {item}");
    }

    /// A table; `header` has its columns as Markdown has them, with ` | ` between them.
    fn table(&mut self, header: &str, rows: impl IntoIterator<Item = Vec<String>>) {
        self.line(&text::table(header, rows));
    }

    /// The header of a table with a column for each variant, of one stratum.
    fn header<'v>(
        &self,
        stratum: Stratum,
        variants: impl Iterator<Item = &'v VariantName>,
    ) -> String {
        let labels = variants.map(|variant| text::markdown(self.report.label(variant)));
        let cells: Vec<String> = iter::once(stratum.label()).chain(labels).collect();
        cells.join(" | ")
    }

    fn label(&self, row: &Row) -> String {
        text::markdown(self.report.label(&row.variant))
    }

    fn opening(&mut self) {
        self.paragraph(&format!("# {}", text::markdown(&self.report.question)));
        if let Some(unfinished) = sentences::unfinished(self.report) {
            self.paragraph(&format!("**{unfinished}**"));
            self.source(&["/progress"]);
        }
    }

    fn lab(&mut self) {
        let report = self.report;
        let lab = &report.lab;
        self.paragraph("Lab:");
        if let Some(description) = &lab.description {
            self.item(&text::markdown(description));
        }
        self.item(match lab.kind {
            LabKind::Netns => {
                "This machine's kernel between two veth pairs: tester and DUT in network \
                 namespaces of their own"
            }
            LabKind::Router => "The reference router, with the tester's frames in memory",
            LabKind::Ssh(System::Freebsd) => {
                "A FreeBSD host between the two ports of a tester, both reached by ssh"
            }
            LabKind::Ssh(System::Linux) => {
                "A Linux host between the two ports of a tester, both reached by ssh"
            }
        });
        self.item(&text::markdown(&sentences::machine(lab)));
        self.item(&text::markdown(&sentences::kernel(lab.kind, &lab.kernel)));
        for sentence in sentences::traffics(&report.traffics) {
            self.item(&sentence);
        }
        self.item(&format!("Tester: {}", lab.tester));
        self.item(&load(report));
        for sentence in report.load.iter().flat_map(sentences::settled_load) {
            self.item(&text::markdown(&sentence));
        }
        if report.regime() == LoadRegime::SelfClocked {
            let costs = sentences::generator_costs(report);
            self.item(&costs.map_or_else(
                || "Generator's own cost: not measured".to_owned(),
                |costs| {
                    format!(
                        "Generator's own cost: {costs}, from the drop-at-ingress control; it is \
                         part of every ns/packet below"
                    )
                },
            ));
        }
        self.item(&sentences::design(report));
        if let Some(disturbed) = sentences::disturbed_time(report) {
            self.item(&disturbed);
        }
        let seed = sentences::seed(&report.design);
        self.item(&format!("Seed of all orders: {seed}"));
        let sessions = match lab.sessions {
            0 | 1 => String::new(),
            sessions => format!(", in {sessions} sessions"),
        };
        self.item(&text::markdown(&format!(
            "fwdlab {}, {}{sessions}",
            lab.fwdlab, lab.start
        )));
        self.line("");
        let mut pointers = vec!["/lab", "/traffic", "/flows", "/design", "/progress"];
        if report.load.is_some() {
            pointers.extend(["/load", "/load_ratios"]);
        }
        if !report.disturbance.is_empty() {
            pointers.push("/disturbance");
        }
        self.source(&pointers);
    }

    fn testing(&mut self) {
        let report = self.report;
        self.paragraph("Testing:");
        let (varied, constant): (Vec<_>, Vec<_>) = report
            .factors
            .iter()
            .partition(|factor| factor.levels.len() > 1);
        for factor in &varied {
            let levels: Vec<String> = factor
                .levels
                .iter()
                .map(|level| {
                    let mark = if *level == factor.default {
                        " (default)"
                    } else {
                        ""
                    };
                    format!("{}{mark}", code_or_none(level))
                })
                .collect();
            let description = factor
                .description
                .as_ref()
                .map_or_else(String::new, |words| {
                    format!(": {}", text::markdown(words.trim_end_matches('.')))
                });
            let name = text::code(&factor.name);
            self.item(&format!(
                "{name}{description}. Levels: {}",
                levels.join(", ")
            ));
        }
        if !constant.is_empty() {
            let constant: Vec<String> = constant
                .iter()
                .map(|factor| format!("{}={}", factor.name, factor.default))
                .map(|setting| text::code(&setting))
                .collect();
            self.item(&format!("Held constant: {}", constant.join(", ")));
        }
        self.line("");
        self.source(&["/factors"]);
        let mut header = "variant | ".to_owned();
        for factor in &varied {
            header += &format!("{} | ", text::markdown(&factor.name));
        }
        header += "remark";
        let rows = report.variants.iter().map(|variant| {
            let mut cells = vec![text::markdown(&variant.label)];
            cells.extend(varied.iter().map(|factor| {
                let level = variant.levels.get(&factor.name).unwrap_or(&factor.default);
                code_or_none(level)
            }));
            cells.push(match (&variant.control_of, &variant.unavailable) {
                (_, Some(reason)) => format!("not run: {}", text::markdown(reason)),
                (Some(of), None) => {
                    format!("A/A control: {} again", text::markdown(report.label(of)))
                }
                (None, None) => String::new(),
            });
            cells
        });
        self.table(&header, rows);
        self.source(&["/variants"]);
        if let Some(background) = &report.background {
            self.paragraph(&text::markdown_lines(background));
            self.source(&["/background"]);
        }
    }

    fn results(&mut self) {
        self.paragraph("# Results");
        let report = self.report;
        for (index, comparison) in report.comparisons.iter().enumerate() {
            if let Some(heading) = sentences::heading(report, comparison) {
                self.paragraph(&format!("## {}", text::markdown(&heading)));
            }
            self.findings(index, comparison);
            self.results_table(&comparison.rows, &comparison.references);
            self.earlier_sessions(&comparison.references);
            if comparison.references.is_empty() {
                self.source_in(index, &["rows"]);
            } else {
                self.source_in(index, &["rows", "references"]);
            }
            let alternative = text::markdown(&format!(
                "Effects with their intervals, {}",
                comparison.stratum.label()
            ));
            self.paragraph(&format!(
                "![{alternative}]({}{})",
                self.plots, comparison.plot
            ));
            self.source_of_rows(index, comparison);
            self.factorial(index, comparison);
            self.details(index, comparison);
        }
        if report.comparisons.is_empty() {
            self.paragraph("Nothing was compared.");
        }
    }

    /// The effects under each traffic beside each other, and how they change with it.
    fn traffic_effects(&mut self) {
        let report = self.report;
        for (number, section) in report.traffic_effects.iter().enumerate() {
            let heading = sentences::traffic_heading(section);
            self.paragraph(&format!("## {}", text::markdown(&heading)));
            let header = iter::once("variant".to_owned())
                .chain(section.traffics.iter().map(ToString::to_string))
                .collect::<Vec<_>>()
                .join(" | ");
            let rows = traffic_effects::variants(report, section).map(|variant| {
                let effects = traffic_effects::rows(report, section, variant).map(|(row, _)| {
                    let said = row.effect.as_ref().zip(row.verdict.as_ref());
                    said.map_or_else(String::new, |(effect, verdict)| {
                        format!("{}, {}", format::effect(effect), verdict.said())
                    })
                });
                let label = text::markdown(report.label(variant));
                iter::once(label).chain(effects).collect()
            });
            self.table(&header, rows);
            let pointers = section.comparisons.iter();
            let pointers = pointers.map(|index| format!("/comparisons/{index}/rows"));
            self.source(&pointers.collect::<Vec<_>>());
            let plots = self.plots;
            let alternative = text::markdown(&heading);
            self.paragraph(&format!("![{alternative}]({plots}{})", section.plot));
            if section.changes.is_empty() {
                continue;
            }
            let rows = section.changes.iter().map(|change| {
                vec![
                    text::markdown(report.label(&change.variant)),
                    change.traffic.to_string(),
                    format::effect(&change.effect),
                    change.verdict.said(),
                    format::p(change.effect.p).replace('<', "\\<"),
                ]
            });
            self.table("variant | traffic | change | verdict | p", rows);
            self.paragraph(&sentences::traffic_reading(section));
            self.source(&[
                format!("/traffic_effects/{number}/changes"),
                format!("/traffic_effects/{number}/traffics"),
            ]);
        }
    }

    /// Main effects and interactions, where factors were combined.
    fn factorial(&mut self, index: usize, comparison: &ComparisonSection) {
        let Some(factorial) = &comparison.factorial else {
            return;
        };
        self.paragraph("**What each factor does**");
        for (what, rows, part) in [
            (
                "main effect",
                &factorial.main_effects,
                "factorial/main_effects",
            ),
            (
                "interaction",
                &factorial.interactions,
                "factorial/interactions",
            ),
        ] {
            if rows.is_empty() {
                continue;
            }
            let cells = rows.iter().map(|row| {
                vec![
                    text::markdown(&row.label),
                    format::effect(&row.effect),
                    row.verdict.said(),
                    format::p(row.effect.p).replace('<', "\\<"),
                ]
            });
            self.table(&format!("{what} | effect | verdict | p"), cells);
            self.source_in(index, &[part]);
        }
        self.paragraph(&sentences::factorial_reading(factorial));
        self.source_in(index, &["factorial"]);
    }

    fn losses(&mut self) {
        let report = self.report;
        if report.losses.is_empty() {
            return;
        }
        self.paragraph("## Frames lost");
        self.paragraph(&sentences::losses(report));
        let rows = report.losses.iter().map(|loss| {
            vec![
                text::markdown(report.label(&loss.variant)),
                loss.stratum.label(),
                format::count(loss.offered_frames),
                format::count(loss.forwarded_frames),
                format::count(loss.dropped_frames),
                format::or_dash(loss.dropped_percent.map(format::part)),
                sentences::by_reason(&loss.drops, text::markdown),
            ]
        });
        self.table(
            &format!(
                "variant | {} | offered | forwarded | lost | frame loss rate | where",
                report.strata_heading()
            ),
            rows,
        );
        self.source(&["/losses"]);
        self.kernel_drop_reasons();
    }

    /// What the kernel said to the losses, where it had a say in them.
    fn kernel_drop_reasons(&mut self) {
        let report = self.report;
        let items: Vec<String> = report
            .losses
            .iter()
            .filter(|loss| !loss.kernel_drop_reasons.is_empty())
            .map(|loss| {
                let label = text::markdown(report.label(&loss.variant));
                let reasons = sentences::by_reason(&loss.kernel_drop_reasons, text::markdown);
                format!("- {label}, {}: {reasons}", loss.stratum.label())
            })
            .collect();
        if items.is_empty() {
            return;
        }
        self.paragraph(
            "What the DUT's kernel gave as its own reason (`kfree_skb`) for frames that it dropped in \
             short samples after the slices of variants that had lost some:",
        );
        self.paragraph(&items.join("\n"));
        self.source(&["/losses"]);
    }

    /// What the mechanisms that variants change have done, so that an effect can be checked against it.
    fn dut_events(&mut self) {
        let report = self.report;
        if report.dut_events.is_empty() {
            return;
        }
        self.paragraph("## What the DUT did");
        self.paragraph(sentences::DUT_EVENTS);
        for stratum in report.strata() {
            let of_stratum = report.dut_events.iter().filter(|of| of.stratum == stratum);
            let sections: Vec<&EventsSection> = of_stratum.collect();
            let mut happened = BTreeSet::new();
            for section in &sections {
                let events = section.events.iter().filter(|(_, times)| **times > 0);
                happened.extend(events.map(|(event, _)| event.as_str()));
            }
            happened.remove(EventsSection::RECEIVED);
            if happened.is_empty() {
                continue;
            }
            let header = self.header(stratum, sections.iter().map(|section| &section.variant));
            let rows = happened.into_iter().map(|event| {
                let rates = sections.iter().map(|section| {
                    // An event that a variant does not count never happened.
                    let rate = section.per_packet.get(event).copied().unwrap_or(0.0);
                    let is_known = !section.per_packet.is_empty();
                    format::or_dash(is_known.then(|| format::per_packet(rate)))
                });
                iter::once(text::markdown(event)).chain(rates).collect()
            });
            self.table(&header, rows);
            self.source(&["/dut_events"]);
        }
    }

    /// How busy the DUT's CPUs were: whether they are what limits it.
    fn dut_cpus(&mut self) {
        let report = self.report;
        if report.dut_cpus.is_empty() {
            return;
        }
        self.paragraph("## How busy the DUT was");
        self.paragraph(sentences::DUT_CPUS);
        for stratum in report.strata() {
            let of_stratum = report.dut_cpus.iter().filter(|of| of.stratum == stratum);
            let sections: Vec<&CpusSection> = of_stratum.collect();
            let all = sections.iter().flat_map(|section| &section.cpus);
            let numbers: BTreeSet<u32> = all.map(|cpu| cpu.cpu).collect();
            if numbers.is_empty() {
                continue;
            }
            let header = self.header(stratum, sections.iter().map(|section| &section.variant));
            let of_cpu = |number: u32, section: &CpusSection| {
                let cpu = section.cpus.iter().find(|cpu| cpu.cpu == number);
                format::or_dash(cpu.map(|cpu| {
                    format!(
                        "{:.0} % (interrupts {:.0} %)",
                        cpu.busy_percent, cpu.interrupts_percent
                    )
                }))
            };
            let rows = numbers.into_iter().map(|number| {
                let cells = sections.iter().map(|section| of_cpu(number, section));
                iter::once(format!("CPU {number}")).chain(cells).collect()
            });
            self.table(&header, rows);
            self.source(&["/dut_cpus"]);
        }
        if let Some(idle) = sentences::dut_has_time(report) {
            self.paragraph(&idle);
            self.source(&["/dut_cpus"]);
        }
    }

    /// Why rates differ, and the flame graphs that show it.
    fn profiles(&mut self) {
        let report = self.report;
        let Some(section) = &report.profiles else {
            return;
        };
        self.paragraph("## Why");
        for difference in &section.differences {
            let label = text::markdown(report.label(&difference.variant));
            let stratum = match report.has_several_strata() {
                false => String::new(),
                true => format!(", {}", difference.stratum.label()),
            };
            self.line(&format!("- **{label}**{stratum}: {}", difference.sentence));
        }
        if let Some(unused) = &section.unused {
            self.paragraph(&format!("- {unused}"));
            self.source(&["/profiles/unused"]);
        } else {
            self.line("");
            self.source(&["/profiles/differences"]);
        }
        self.paragraph(&profiles::taken(section));
        if let Some(overhead) = &section.overhead {
            self.paragraph(&profiles::overhead(overhead, &report.design));
            self.source(&[
                "/profiles/frequency_hz",
                "/profiles/overhead",
                "/design/threshold_percent",
            ]);
        } else {
            self.source(&["/profiles/frequency_hz"]);
        }
        for (index, difference) in section.differences.iter().enumerate() {
            self.frames(index, difference);
        }
        self.flame_graphs(section);
    }

    /// The functions in which two variants differ.
    fn frames(&mut self, index: usize, difference: &ProfileDifference) {
        if difference.frames.is_empty() {
            return;
        }
        let report = self.report;
        let heading = format!(
            "{} against {}, {}",
            report.label(&difference.variant),
            report.label(&difference.baseline),
            difference.stratum.label()
        );
        self.paragraph(&format!("**{}**", text::markdown(&heading)));
        let cell = |cost: &CostSection| {
            let mark = if cost.is_significant { "**" } else { "" };
            format!("{mark}{}{mark}", profiles::signed(cost))
        };
        let rows: Vec<Vec<String>> = difference
            .frames
            .iter()
            .map(|frame| {
                vec![
                    text::code(&frame.frame),
                    format::short(frame.itself.baseline_ns, 1),
                    format::short(frame.itself.variant_ns, 1),
                    cell(&frame.itself),
                    cell(&frame.with_callees),
                ]
            })
            .collect();
        self.table(
            "function (ns/packet) | baseline | variant | itself | with what it calls",
            rows,
        );
        if let Some(reading) = &difference.reading {
            self.paragraph(reading);
        }
        self.source(&[format!("/profiles/differences/{index}")]);
    }

    /// In the form in which such results are published.
    fn flame_graphs(&mut self, section: &ProfilesSection) {
        let report = self.report;
        self.paragraph("## flamegraphs");
        for stratum in report.strata() {
            if report.has_several_strata() {
                self.paragraph(&format!("### {stratum}"));
            }
            for variant in section.variants.iter().filter(|of| of.stratum == stratum) {
                let label = text::markdown(report.label(&variant.variant));
                self.item(&format!("[{label}]({}{})", self.plots, variant.flame_graph));
            }
            for difference in section
                .differences
                .iter()
                .filter(|of| of.stratum == stratum)
            {
                let label = text::markdown(report.label(&difference.variant));
                let baseline = text::markdown(report.label(&difference.baseline));
                self.item(&format!(
                    "[{label} against {baseline}]({}{})",
                    self.plots, difference.flame_graph
                ));
            }
            self.line("");
            self.source(&["/profiles/variants", "/profiles/differences"]);
        }
    }

    /// What was offered to each variant, and the effects at equal offered load.
    fn offered_load(&mut self) {
        let report = self.report;
        let mut items = Vec::new();
        for comparison in &report.comparisons {
            let heading = sentences::heading(report, comparison);
            for row in &comparison.offered_load {
                let label = report.label(&row.variant);
                let name = heading
                    .as_ref()
                    .map_or_else(|| label.to_owned(), |heading| format!("{heading}, {label}"));
                items.push(format!("- **{}**: {}", text::markdown(&name), row.sentence));
            }
        }
        if items.is_empty() {
            return;
        }
        self.paragraph("## Offered load");
        self.paragraph(sentences::OFFERED_LOAD);
        self.paragraph(&items.join("\n"));
        self.source_in_those("offered_load", |of| !of.offered_load.is_empty());
    }

    fn findings(&mut self, index: usize, comparison: &ComparisonSection) {
        let report = self.report;
        let mut any = false;
        for row in comparison.rows.iter().skip(1) {
            if let Some(verdict) = &row.verdict {
                let label = self.label(row);
                self.line(&format!("- **{label}**: {}", verdict.sentence));
                any = true;
            }
        }
        if !any {
            self.line("No verdict: no block holds a valid trial of both baseline and variant.");
        }
        self.line("");
        if any {
            self.paragraph(&sentences::reading(report, comparison));
            let of_comparison = ["rows", "family_size"];
            let [rows, family_size] =
                of_comparison.map(|part| format!("/comparisons/{index}/{part}"));
            self.source(&[
                &rows,
                &family_size,
                "/design/threshold_percent",
                "/design/confidence_percent",
            ]);
        }
        for (outcome, rows) in comparison.outcomes.measured() {
            for row in rows {
                let label = text::markdown(report.label(&row.variant));
                self.line(&format!("- {label}: {}", outcome.sentence(row)));
            }
            self.line("");
            self.paragraph(&outcome.reading(&report.design));
            let key = outcome.key;
            self.source(&[&format!("/comparisons/{index}/{key}"), outcome.threshold]);
        }
    }

    fn results_table(&mut self, rows: &[Row], references: &[ReferenceRow]) {
        let has_costs = rows.iter().any(|row| row.cost_ns.is_some());
        let earlier = references.iter().map(|row| {
            vec![
                text::markdown(&row.label),
                format::or_dash(None),
                "earlier session".to_owned(),
                format::rate_digits(row.forwarding_rate_pps),
                format::or_dash(row.cost_ns.map(format::cost)),
            ]
        });
        let cells: Vec<Vec<String>> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| {
                let verdict = row.verdict.as_ref().map(VerdictSection::said);
                let baseline = (index == 0).then(|| "baseline".to_owned());
                vec![
                    self.label(row),
                    format::or_dash(row.effect.as_ref().map(format::effect)),
                    format::or_dash(verdict.or(baseline)),
                    format::or_dash(row.forwarding_rate_pps.map(format::rate_digits)),
                    format::or_dash(row.cost_ns.map(format::cost)),
                ]
            })
            .chain(earlier)
            .map(|mut cells| {
                if !has_costs {
                    cells.pop();
                }
                cells
            })
            .collect();
        let cost = if has_costs { " | ns/packet" } else { "" };
        self.table(
            &format!("variant | effect | verdict | forwarding rate (pps){cost}"),
            cells,
        );
    }

    /// Where the rows of earlier sessions come from, and why they have no verdict.
    fn earlier_sessions(&mut self, references: &[ReferenceRow]) {
        if references.is_empty() {
            return;
        }
        let files: Vec<String> = references
            .iter()
            .map(|row| {
                format!(
                    "{}: median of {} in {} (SHA-256 {})",
                    text::markdown(&row.label),
                    format::counted(row.observations.into(), "observation"),
                    text::code(&row.path),
                    text::code(&row.sha256),
                )
            })
            .collect();
        self.paragraph(&format!(
            "An earlier session was not measured in these blocks: the machine may have been another, \
             or in another state, so nothing is concluded from it. {}.",
            files.join("; ")
        ));
    }

    /// What a sceptic asks next, folded away.
    fn details(&mut self, index: usize, comparison: &ComparisonSection) {
        let rows: Vec<&Row> = comparison
            .rows
            .iter()
            .skip(1)
            .chain(comparison.control.iter().map(|control| &control.row))
            .collect();
        let cells: Vec<Vec<String>> = rows
            .iter()
            .filter_map(|row| {
                let effect = row.effect.as_ref()?;
                let noise = |part: fn(&NoiseSection) -> f64| {
                    let part = effect.noise.as_ref().map(part);
                    format::or_dash(part.map(format::deviation))
                };
                let size = effect.size_interval.map(|size| {
                    let decimals = format::effect_decimals(effect.half_width_percent());
                    let ends = format::interval(Some(size), decimals);
                    let confidence = format::short(size.confidence_percent, 1);
                    format!("{ends} ({confidence} %)")
                });
                Some(vec![
                    self.label(row),
                    effect.blocks.len().to_string(),
                    format::or_dash(size),
                    format::p(effect.p).replace('<', "\\<"),
                    format!("{} %", format::signed(effect.mean_percent, 1)),
                    noise(|noise| noise.between_blocks_percent),
                    noise(|noise| noise.between_rounds_percent),
                ])
            })
            .collect();
        if cells.is_empty() {
            return;
        }
        self.paragraph("<details><summary>Size, chance and noise</summary>");
        self.table(
            "variant | blocks | interval of the size | p of the direction | mean | SD between blocks | SD between rounds",
            cells,
        );
        self.source_of_rows(index, comparison);
        self.paragraph(
            "The p is corrected for the comparisons made at once (the control's is its own). The \
             effect is the Hodges-Lehmann estimate over the blocks' effects, the mean stands \
             beside it. The SD between blocks is what set-ups add to the noise of their rounds: it is not \
             distinguishable from 0 where the rounds alone make block effects differ as much as they do.",
        );
        self.paragraph(sentences::METHODS);
        let rows: Vec<Vec<String>> = comparison
            .rows
            .iter()
            .flat_map(|row| row.methods.iter().map(move |method| (row, method)))
            .map(|(row, method)| {
                let cells = sentences::method_cells(method).map(|cell| cell.replace('<', "\\<"));
                iter::once(self.label(row)).chain(cells).collect()
            })
            .collect();
        self.table("variant | method | effect | p | corrected p", rows);
        self.source_in(index, &["rows"]);
        self.paragraph("</details>");
    }

    fn ministat(&mut self) {
        let report = self.report;
        self.paragraph("## ministat");
        self.paragraph("Unit: packets-per-second forwarded");
        for (index, comparison) in report.comparisons.iter().enumerate() {
            if let Some(heading) = sentences::heading(report, comparison) {
                self.paragraph(&format!("### {}", text::markdown(&heading)));
            }
            if comparison.ministat.is_empty() {
                self.paragraph("Fewer than three blocks: ministat has nothing to say yet.");
            }
            for block in &comparison.ministat {
                self.line(&text::fenced(block));
            }
            if let Some(note) = &comparison.ministat_note {
                self.paragraph(&text::markdown(note));
                self.source_in(index, &["ministat", "ministat_note"]);
            } else if !comparison.ministat.is_empty() {
                self.source_in(index, &["ministat"]);
            }
        }
    }

    fn control(&mut self) {
        let report = self.report;
        let controls: Vec<String> = report
            .comparisons
            .iter()
            .filter_map(|comparison| {
                let control = comparison.control.as_ref()?;
                let mut name = report.label(&control.row.variant).to_owned();
                if let Some(heading) = sentences::heading(report, comparison) {
                    name = format!("{name}, {heading}");
                }
                Some(format!(
                    "- **{}**: {}.",
                    text::markdown(&name),
                    control.sentence
                ))
            })
            .collect();
        if controls.is_empty() {
            return;
        }
        self.paragraph("## A/A control");
        self.paragraph(&controls.join("\n"));
        self.source_in_those("control", |of| of.control.is_some());
    }

    /// Whether what ran before, and the place in the round, show in the slices.
    fn order(&mut self) {
        let report = self.report;
        if report.slices.is_empty() {
            return;
        }
        self.paragraph("## Order of the slices");
        self.paragraph(&sentences::order_checks(self.report));
        let rows = report.slices.iter().map(|(stratum, slices)| {
            let effect = |found: &OrderEffectSection| {
                let p = fwdlab_stats::format_p(found.p).replace('<', "\\<");
                format!("{} % (p {p})", format::signed(found.effect_percent, 2))
            };
            let predecessor = slices.predecessor.as_ref().map(|(after, found)| {
                let after = text::markdown(report.label(after));
                format!("{after}: {}", effect(found))
            });
            let place = slices
                .place
                .as_ref()
                .map(|(place, found)| format!("{place} of {}: {}", slices.places, effect(found)));
            let correlation = slices.lag_1_autocorrelation;
            vec![
                stratum.label(),
                format::or_dash(predecessor),
                format::or_dash(place),
                format::or_dash(correlation.map(|number| format::signed(number, 2))),
            ]
        });
        self.table(
            " | right after | place in the round | autocorrelation",
            rows,
        );
        self.source(&["/slices"]);
        let noise: Vec<String> = report
            .slices
            .iter()
            .filter_map(|(stratum, slices)| {
                let noise = slices.rate_noise?;
                Some(format!(
                    "- {}: {} between blocks, {} between rounds, {} of a slice",
                    stratum.label(),
                    format::deviation(noise.between_blocks_percent),
                    format::deviation(noise.between_rounds_percent),
                    format::deviation(noise.between_slices_percent),
                ))
            })
            .collect();
        if !noise.is_empty() {
            self.paragraph(sentences::RATE_NOISE);
            self.paragraph(&noise.join("\n"));
            self.source(&["/slices"]);
        }
    }

    fn trials(&mut self) {
        self.paragraph("## Trials in time order");
        let plots = self.plots;
        self.paragraph(&format!("![Every trial in time order]({plots}trials.svg)"));
        self.source(&["/trials"]);
        self.paragraph("## Distribution of the trials");
        self.paragraph(sentences::DISTRIBUTIONS);
        self.paragraph(&format!(
            "![Every trial, quartiles and median of each variant]({plots}distributions.svg)"
        ));
        self.source(&["/trials"]);
    }

    fn warnings(&mut self) {
        let report = self.report;
        if report.warnings.is_empty() {
            return;
        }
        self.paragraph("## Warnings");
        let lines: Vec<String> = report.warnings.iter().map(warning_item).collect();
        self.paragraph(&lines.join("\n"));
        self.source(&["/warnings"]);
    }

    fn conservation(&mut self) {
        let report = self.report;
        if report.conservation.is_empty() {
            return;
        }
        self.paragraph("## Where the frames went");
        self.paragraph(&sentences::conservation(report));
        let rows = report.conservation.iter().map(|(stratum, frames)| {
            let totals = report.conservation_totals.get(stratum);
            conservation_row(
                *stratum,
                frames,
                totals.copied().unwrap_or_default(),
                report.flows_of(*stratum),
            )
        });
        self.table(
            " | offered | forwarded | dropped | unaccounted | verified | wrong | flows seen | foreign",
            rows,
        );
        self.source(&["/conservation", "/conservation_totals", "/flows"]);
        self.paragraph(
            "Verified frames are checked completely by the sink. Foreign frames are not the \
             tester's: neighbour and router discovery, MLD.",
        );
    }

    /// The same effects with nothing left out, for whoever does not trust what was.
    fn disturbance(&mut self) {
        let report = self.report;
        let Some(disturbed) = sentences::disturbed(report) else {
            return;
        };
        let is_kept = sentences::nothing_left_out(report);
        self.paragraph("## Disturbed time");
        self.paragraph(&format!(
            "A short calibration loop is timed on the load CPU throughout every slice. Where it \
             takes longer than undisturbed, something else had a part of the core: {disturbed} of the \
             slices' time. In every forwarding rate above, that time is {}{}",
            sentences::left_out(report),
            if is_kept {
                "."
            } else {
                "; what was forwarded in it plays no part in that. With nothing left out:"
            }
        ));
        self.source(&["/disturbance"]);
        if is_kept {
            return;
        }
        let mut rows = Vec::new();
        for comparison in &report.comparisons {
            let heading = sentences::heading(report, comparison);
            let control = comparison.control.as_ref().map(|control| &control.row);
            let counted = comparison.rows.iter().chain(control);
            for (row, over_all_time) in counted.zip(&comparison.rows_over_all_time).skip(1) {
                let label = self.label(row);
                let effect = |row: &Row| format::or_dash(row.effect.as_ref().map(format::effect));
                rows.push(vec![
                    heading.as_ref().map_or(label.clone(), |heading| {
                        format!("{}, {label}", text::markdown(heading))
                    }),
                    effect(row),
                    effect(over_all_time),
                    format::or_dash(over_all_time.verdict.as_ref().map(VerdictSection::said)),
                ]);
            }
        }
        self.table(
            "variant | effect, undisturbed | over all of the time | its verdict",
            rows,
        );
        let comparisons = report.comparisons.iter().enumerate();
        let pointers: Vec<String> = comparisons
            .flat_map(|(index, comparison)| {
                let control = comparison.control.as_ref().map(|_| "control/row");
                ["rows", "rows_over_all_time"]
                    .into_iter()
                    .chain(control)
                    .map(move |part| format!("/comparisons/{index}/{part}"))
            })
            .collect();
        self.source(&pointers);
    }

    fn invalid(&mut self) {
        let report = self.report;
        let Some(invalid) = &report.invalid else {
            return;
        };
        self.paragraph("## Invalid trials");
        self.paragraph(sentences::INVALID);
        let rows = invalid.rows.iter().map(|row| {
            let reasons: Vec<String> = row
                .reasons
                .iter()
                .map(|reason| text::markdown(reason))
                .collect();
            vec![
                text::markdown(report.label(&row.variant)),
                row.stratum.label(),
                format!("{} of {}", row.invalid, row.trials),
                reasons.join("; "),
            ]
        });
        let header = format!("variant | {} | invalid | why", report.strata_heading());
        self.table(&header, rows);
        self.source(&["/invalid"]);
        for (index, comparison) in report.comparisons.iter().enumerate() {
            if comparison.rows_with_all_trials.is_empty() {
                continue;
            }
            let of = sentences::heading(report, comparison).map_or_else(String::new, |heading| {
                format!(", {}", text::markdown(&heading))
            });
            self.paragraph(&format!("With all trials in{of}:"));
            self.results_table(&comparison.rows_with_all_trials, &[]);
            self.source_in(index, &["rows_with_all_trials"]);
        }
    }

    /// What differs between the variants on the DUT, and nothing else does.
    fn differing_facts(&mut self) {
        let report = self.report;
        if report.differing_facts.is_empty() {
            return;
        }
        self.paragraph("## What differs");
        self.paragraph(&sentences::differing_facts(report));
        for (fact, values) in &report.differing_facts {
            let each = values.iter().map(|(variant, value)| {
                let label = text::markdown(report.label(variant));
                format!("{label}: {}", sentences::fact(value))
            });
            let values = match sentences::common(values) {
                Some(value) => sentences::fact(value),
                None => each.collect::<Vec<_>>().join("; "),
            };
            self.line(&format!("- {}: {values}", text::markdown(fact)));
        }
        self.line("");
        self.source(&["/differing_facts"]);
    }

    fn environment(&mut self) {
        let report = self.report;
        if report.lab.facts.is_empty() {
            return;
        }
        self.paragraph("## Environment");
        let rows = report
            .lab
            .facts
            .iter()
            .map(|(name, value)| vec![text::markdown(name), text::markdown(value)]);
        self.table("fact | value", rows);
        self.source(&["/lab/facts"]);
    }

    fn limits(&mut self) {
        self.paragraph("## What this lab is not");
        self.paragraph(&sentences::limits(self.report).join(" "));
    }

    fn again(&mut self) {
        let report = self.report;
        self.paragraph("## Run it again");
        self.line(&text::fenced(&report.again.command));
        let hash = text::code(&report.again.experiment_hash);
        self.paragraph(&format!(
            "`experiment.toml` is a copy of the experiment file; `resolved.json` is the experiment and \
             its lab ({}) with every default filled in (SHA-256 {hash}).",
            text::markdown(&report.lab.name)
        ));
        self.source(&["/again", "/lab/name"]);
        self.line(
            "The raw data stand beside this file: `trials.jsonl` (one line a trial), \
             `blocks/*.csv` (every slice), `sessions/*.json` (the environment), and one \
             `<variant>.<family>.pps` for ministat, whose rows are blocks and pair across files. The small lines \
             above say, as JSON pointers, where in report.json the figures of a table, a list or a picture stand.",
        );
    }
}

fn code_or_none(level: &str) -> String {
    match text::code(level) {
        code if code.is_empty() => "(empty)".to_owned(),
        code => code.replace('|', "\\|"),
    }
}

/// A warning as an item of a list.
pub(crate) fn warning_item(warning: &Warning) -> String {
    let subject = match warning.subjects.join("; ") {
        subjects if subjects.is_empty() => String::new(),
        subjects => format!(" {}:", text::markdown(&subjects)),
    };
    let remedy = warning.remedy.as_ref().map_or_else(String::new, |remedy| {
        format!("; {}", text::markdown(remedy))
    });
    format!(
        "- **{}**{subject} {}{remedy}",
        text::markdown(&warning.code),
        text::markdown(&warning.text)
    )
}

fn conservation_row(
    stratum: Stratum,
    frames: &Conservation,
    totals: ConservationTotals,
    flows: u32,
) -> Vec<String> {
    vec![
        stratum.label(),
        format::count(frames.offered_frames),
        format::count(frames.forwarded_frames),
        sentences::with_reasons(totals.dropped_frames, &frames.drops, text::markdown),
        format::signed_count(frames.unaccounted_frames),
        format::count(frames.verification.checked_frames),
        sentences::with_reasons(
            totals.wrong_frames,
            &frames.verification.wrong_frames,
            text::markdown,
        ),
        match frames.verification.checked_frames {
            0 => "not checked".to_owned(),
            _ => format!("{} of {flows}", frames.verification.flows_seen),
        },
        format::count(frames.foreign_frames),
    ]
}

pub(crate) fn load(report: &Report) -> String {
    let lab = &report.lab;
    match report.regime() {
        LoadRegime::SelfClocked => format!(
            "Load: self-clocked: generator, DUT and sink take turns on CPU {}; the harness runs \
             on CPU {}",
            lab.load_cpu, lab.control_cpu
        ),
        // The CPUs of hosts are in the environment, port by port.
        LoadRegime::Paced if lab.kind.is_remote() => {
            format!("Load: {}", sentences::paces(&report.traffics))
        }
        LoadRegime::Paced => format!(
            "Load: {}; the generator is on CPU {}{}",
            sentences::paces(&report.traffics),
            lab.load_cpu,
            own_cpu(report)
        ),
        LoadRegime::Overload if lab.kind.is_remote() => {
            "Load: overload: the tester offers more than the DUT forwards".to_owned()
        }
        LoadRegime::Overload => format!(
            "Load: overload: the generator on CPU {} offers more than the DUT forwards{}",
            lab.load_cpu,
            own_cpu(report)
        ),
    }
}

/// Where the DUT forwards, if on a CPU of its own.
fn own_cpu(report: &Report) -> String {
    let lab = &report.lab;
    lab.dut_cpu.map_or_else(String::new, |dut_cpu| {
        let control_cpu = lab.control_cpu;
        if lab.tester == Tester::MemoryThreaded {
            format!("; the DUT is on CPU {dut_cpu}, sink and harness on CPU {control_cpu}")
        } else {
            format!("; DUT and sink are on CPU {dut_cpu}, the harness on CPU {control_cpu}")
        }
    })
}
