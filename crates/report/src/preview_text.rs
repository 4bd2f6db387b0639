//! A preview as text, for a terminal.

use std::fmt::Write as _;

use fwdlab_model::{Design, LoadRegime, Order, ProfileEvery, Stratum, Traffic};
use fwdlab_stats::{DETECTION_POWER, Method, Unit};

use crate::format;
use crate::preview::{Claim, MethodPreview, Preview, Reckoned};
use crate::sentences;
use crate::text::{columns, hanging, in_columns, in_sentences, one_line};

/// Narrower than this nothing can be laid out; text then sticks out.
const WIDTH_MIN: usize = 20;

/// What `fwdlab plan` prints, for a terminal of `width` columns.
#[must_use]
pub fn text(preview: &Preview, width: usize) -> String {
    let mut page = Page {
        preview,
        width: width.max(WIDTH_MIN),
        text: String::new(),
    };
    page.opening();
    page.variants();
    page.comparisons();
    page.order();
    page.duration();
    page.detectable();
    page.text
}

struct Page<'a> {
    preview: &'a Preview,
    width: usize,
    text: String,
}

impl Page<'_> {
    /// A text in lines, the first behind `lead`, the others indented as far.
    fn wrapped(&mut self, lead: &str, text: &str) {
        for (lead, line) in hanging(lead, text, self.width) {
            let _ = writeln!(self.text, "{}", format!("{lead}{line}").trim_end());
        }
    }

    fn heading(&mut self, heading: &str) {
        self.text.push('\n');
        self.wrapped("", heading);
    }

    fn opening(&mut self) {
        let preview = self.preview;
        self.wrapped("", &one_line(&preview.question));
        self.heading("Lab and traffic");
        self.wrapped(
            "  ",
            &format!("lab {} ({})", one_line(&preview.lab), preview.kind),
        );
        if let Some(reason) = &preview.lab_not_asked {
            let unchecked = if preview.kind.is_remote() {
                "the ports, addresses and programs of the lab's hosts, and which variants they can have"
            } else {
                "which variants the lab can have"
            };
            let reason = one_line(reason);
            self.wrapped("  ", &format!("not checked: {unchecked} ({reason})"));
        }
        for needed in &preview.dut_programs {
            let purposes = one_line(&needed.purposes.join(", "));
            self.wrapped(
                "  ",
                &format!("the DUT needs {} for {purposes}", needed.program),
            );
        }
        for sentence in sentences::traffics(&preview.traffics) {
            self.wrapped("  ", &sentence);
        }
        self.wrapped("  ", &load(&preview.traffics));
    }

    fn variants(&mut self) {
        let preview = self.preview;
        self.heading("Variants");
        for variant in &preview.variants {
            let number = preview.number(&variant.name);
            self.wrapped(&format!("{number:>4}  "), &one_line(&variant.label));
            let words = match &variant.control_of {
                Some(of) => format!("{} a second time", preview.label(of)),
                None => preview.levels(variant),
            };
            // A label made of the levels has said them.
            if words != one_line(&variant.label) {
                self.wrapped("        ", &words);
            }
            if let Some(reason) = &variant.unavailable {
                // Of several lines, as a verifier's are, each stays one.
                let mut lines = reason.lines();
                let first = lines.next().unwrap_or_default();
                self.wrapped("        ", &format!("not run: {}", one_line(first)));
                for line in lines {
                    self.wrapped("          ", &one_line(line));
                }
            }
        }
        let constant: Vec<String> = preview
            .factors
            .iter()
            .filter(|factor| !factor.is_varied())
            .map(|factor| one_line(&format!("{}={}", factor.name, factor.default)))
            .collect();
        if preview.has_varied_factors() && !constant.is_empty() {
            self.wrapped("  ", &format!("in all of them: {}", constant.join(", ")));
        }
        for factor in &preview.rebooting_factors {
            self.wrapped("  ", &format!("{} needs a reboot", one_line(factor)));
        }
        for factor in &preview.forwarder_factors {
            let words = "each measurement starts the forwarder in user space again";
            self.wrapped("  ", &format!("{}: {words}", one_line(factor)));
        }
        for factor in &preview.overwriting_factors {
            let lost = "is written to the DUT's other slice, whose content is lost";
            self.wrapped("  ", &format!("{} {lost}", one_line(factor)));
        }
    }

    fn comparisons(&mut self) {
        let preview = self.preview;
        for comparison in &preview.comparisons {
            let title = comparison.title.as_deref().map(one_line);
            let compared = title.map_or_else(
                || "Compared".to_owned(),
                |title| format!("{title}: compared"),
            );
            let baseline = preview.label(&comparison.baseline);
            self.heading(&format!("{compared} with {baseline}"));
            for other in &comparison.variants {
                let number = preview.number(&other.variant);
                let differences: Vec<String> = other
                    .differences
                    .iter()
                    .map(|difference| {
                        one_line(&format!(
                            "{}: {} -> {}",
                            difference.factor, difference.baseline, difference.variant
                        ))
                    })
                    .collect();
                let words = if differences.is_empty() {
                    "nothing differs".to_owned()
                } else {
                    differences.join(", ")
                };
                self.wrapped(&format!("{number:>4}  "), &words);
            }
            if comparison.variants.is_empty() {
                self.wrapped("  ", "nothing but its own copy, where there is one");
            }
        }
        if !preview.references.is_empty() {
            self.heading("Earlier sessions, shown beside the results");
        }
        for reference in &preview.references {
            for (stratum, data) in &reference.strata {
                let observations = data.observations_pps.len() as u64;
                self.wrapped(
                    "  ",
                    &format!(
                        "{}: {} of {} from {} (SHA-256 {})",
                        one_line(&reference.label),
                        format::counted(observations, "observation"),
                        stratum.label(),
                        one_line(&data.path),
                        data.sha256
                    ),
                );
            }
        }
    }

    fn order(&mut self) {
        let preview = self.preview;
        let design = &preview.design;
        let block = &preview.first_block;
        let order = match (design.order, design.seed_was_drawn) {
            (Order::InSequence, _) => "in sequence".to_owned(),
            (Order::Random, false) => format!("at random (seed {})", design.seed),
            (Order::Random, true) => format!(
                "at random (seed {}, drawn for this plan: a run draws its own)",
                design.seed
            ),
        };
        self.heading(&format!("Order of block {}, {order}", block.number));
        for order in &block.strata {
            for (round, row) in (1..).zip(&order.rounds) {
                let numbers: Vec<String> = row
                    .iter()
                    .map(|slice| preview.number(&slice.variant).to_string())
                    .collect();
                let lead = format!("  {} round {round:>2}:  ", order.stratum.label());
                self.wrapped(&lead, &numbers.join(" "));
            }
        }
    }

    fn duration(&mut self) {
        let preview = self.preview;
        let design = &preview.design;
        self.heading("Time");
        let blocks = format::counted(design.blocks.into(), "block");
        let slices = format!(
            "{} ms after {} ms of settling, {} ms of warm-up",
            design.slice_ms, design.settle_ms, design.warm_up_ms
        );
        let words = if preview.rebooting_factors.is_empty() {
            let about = preview.duration_s.map_or_else(
                || {
                    "not known, because nothing tells how long set-ups and switches take in this lab"
                        .to_owned()
                },
                |duration_s| format!("about {}", format::duration(duration_s)),
            );
            let rounds = format::counted(design.rounds.into(), "round");
            format!("{about}: {blocks} of {rounds}, slices of {slices}")
        } else {
            format!(
                "not known: {blocks} of one round of whole measurements, each behind a boot of its own, \
                 and nothing tells how long the DUT takes to boot; a measurement is one slice of {slices}"
            )
        };
        self.wrapped("  ", &words);
        if let Some(profiling) = preview.profiling {
            let (slice_ms, hz) = (profiling.slice_ms, profiling.frequency_hz);
            let place = match profiling.every {
                ProfileEvery::Block => "one more round in every block",
                ProfileEvery::Trial => "behind every slice one more",
            };
            let words = format!(
                "profiles: {place}, {slice_ms} ms with stacks sampled {hz} times a second, which count for no trial"
            );
            self.wrapped("  ", &words);
        }
        if let Some(why) = &preview.profiles_unavailable {
            self.wrapped("  ", &format!("no profiles: {}", one_line(why)));
        }
    }

    fn detectable(&mut self) {
        let preview = self.preview;
        self.heading("Smallest effect that it could detect");
        for detectable in &preview.detectable {
            if preview.detectable.len() > 1 {
                self.wrapped("  ", &detectable.stratum.label());
            }
            let lead = "  - ";
            let Some(reckoned) = &detectable.reckoned else {
                self.wrapped(
                    lead,
                    if preview.kind.is_remote() {
                        "not known: there is no run in this lab whose blocks show how much they scatter"
                    } else {
                        "not known: there is no earlier run in this lab on this machine under this \
                         load whose blocks show how much they scatter; measure the lab with `fwdlab \
                         doctor`, or run this experiment once, and plan again"
                    },
                );
                continue;
            };
            for sentence in sentences_of(reckoned, &preview.design) {
                self.wrapped(lead, &sentence);
            }
        }
        for detectable in &preview.detectable {
            let methods = detectable.reckoned.iter().flat_map(|known| &known.methods);
            let methods: Vec<&MethodPreview> = methods.collect();
            if !methods.is_empty() {
                self.methods(detectable.stratum, &methods);
            }
        }
    }

    /// What each method would need, as a table.
    fn methods(&mut self, stratum: Stratum, methods: &[&MethodPreview]) {
        let design = &self.preview.design;
        let threshold = format::short(design.threshold_percent, 3);
        let of_stratum = if self.preview.detectable.len() > 1 {
            format!(", {}", stratum.label())
        } else {
            String::new()
        };
        self.heading(&format!(
            "How many it would take by each method{of_stratum}"
        ));
        let mut rows = vec![[
            "method".to_owned(),
            "SD of one".to_owned(),
            format!("for {threshold} %"),
            format!("smallest with {}", design.blocks),
        ]];
        rows.extend(methods.iter().map(|method| {
            let percent = |value| format!("{} %", format::significant(value, 2));
            let units = match method.unit {
                Unit::Blocks => "blocks",
                Unit::Observations | Unit::Sessions => "a side",
            };
            [
                method_words(method),
                percent(method.spread_percent),
                method.size_for_threshold.map_or_else(
                    || "out of reach".to_owned(),
                    |size| format!("{} {units}", format::count(size as u64)),
                ),
                method
                    .smallest_percent
                    .map_or_else(|| "none".to_owned(), percent),
            ]
        }));
        let lines = in_columns(&rows, |column| column > 0);
        if lines.iter().any(|line| columns(line) + 2 > self.width) {
            for sentence in in_sentences(&rows) {
                self.wrapped("  ", &sentence);
            }
        } else {
            for line in lines {
                let _ = writeln!(self.text, "  {line}");
            }
        }
        self.wrapped(
            "  ",
            "\"a side\" are observations of each side that are measured without blocks, and scatter as \
             this lab's do from block to block. Equivalence: two one-sided tests show that what does \
             not differ lies inside the threshold. The control: the baseline differs from its own copy.",
        );
    }
}

fn method_words(method: &MethodPreview) -> String {
    match method.claim {
        Claim::Difference if method.method == Method::SignedRank => {
            format!("{} (the verdicts')", method.method.words())
        }
        Claim::Difference => method.method.words().to_owned(),
        Claim::Equivalence => format!("equivalence, {}", method.method.words()),
        Claim::Control => "A/A control at 1 %".to_owned(),
    }
}

fn sentences_of(reckoned: &Reckoned, design: &Design) -> Vec<String> {
    let threshold = format::short(design.threshold_percent, 3);
    let sharing = match reckoned.compared {
        1 => String::new(),
        compared => format!(", corrected for {compared} comparisons"),
    };
    let mut sentences = vec![match reckoned.smallest_effect_percent {
        Some(smallest) => format!(
            "about {} %, up or down, with a probability of {} %, at {} % confidence{sharing}",
            format::significant(smallest, 2),
            format::short(DETECTION_POWER * 100.0, 0),
            format::short(design.confidence_percent, 2),
        ),
        None => format!(
            "none: so few blocks show nothing at {} % confidence{sharing}",
            format::short(design.confidence_percent, 2)
        ),
    }];
    let within = reckoned
        .smallest_effect_percent
        .is_some_and(|smallest| smallest <= design.threshold_percent);
    sentences.push(match reckoned.blocks_for_threshold {
        _ if within => format!("that is within the threshold of {threshold} %"),
        Some(blocks) => format!(
            "an effect of the threshold's {threshold} % would take about {} blocks",
            format::count(blocks as u64)
        ),
        None => format!("an effect of the threshold's {threshold} % is out of reach"),
    });
    let of = if reckoned.same_experiment {
        "of this experiment"
    } else {
        "of other experiments in this lab"
    };
    let runs = format::counted(reckoned.runs.len() as u64, "earlier run");
    sentences.push(format!(
        "it rests on {runs} {of} ({}): with {} % confidence block effects scatter by no more than \
         {} % (chi-squared, {} degrees of freedom)",
        one_line(&reckoned.runs.join(", ")),
        format::short(reckoned.spread_confidence_percent, 0),
        format::significant(reckoned.spread_percent, 2),
        reckoned.degrees_of_freedom
    ));
    if !reckoned.same_slices {
        sentences.push(
            "their slices were not as many or as long: fewer and shorter ones scatter more"
                .to_owned(),
        );
    }
    sentences
}

fn load(traffics: &[Traffic]) -> String {
    match traffics.first().map(|traffic| traffic.load.regime()) {
        Some(regime @ (LoadRegime::SelfClocked | LoadRegime::Overload)) => {
            format!("load: {regime}")
        }
        _ => format!("load: {}", sentences::paces(traffics)),
    }
}
