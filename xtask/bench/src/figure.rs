//! What a bench ends with: figures beside their goals, and the machine they belong to.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

use crate::bench::Bench;

/// What became of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Met,
    Missed,
    /// The measurement does not decide: the interval holds the goal.
    Open,
    /// There is none: the figure is for the reader.
    NoGoal,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Open => "open",
            Self::NoGoal => "",
        }
    }
}

/// A measured figure and its goal.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) goal: String,
    pub(crate) measured: String,
    /// Absolute figures, or what else a reader should know.
    pub(crate) beside: String,
    pub(crate) outcome: Outcome,
    /// Every observation, for whoever wants to compute something else.
    pub(crate) observations: Value,
}

/// All figures of a bench.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    figures: Vec<Figure>,
}

#[derive(Clone, Debug, Serialize)]
struct Machine {
    kernel: String,
    cpu: String,
    cpus: u32,
    date: String,
    load_cpu: u32,
    control_cpu: u32,
    duration_s: f64,
    steal_ratio: Option<f64>,
    noise_sources: Vec<String>,
}

impl Report {
    pub(crate) fn new(name: &'static str, bench: &Bench, figures: Vec<Figure>) -> Self {
        let environment = &bench.environment;
        Self {
            bench: name,
            machine: Machine {
                kernel: environment.kernel.clone(),
                cpu: environment.cpu_model.clone(),
                cpus: environment.cpus,
                date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
                load_cpu: bench.load_cpu,
                control_cpu: bench.control_cpu,
                duration_s: bench.started.elapsed().as_secs_f64(),
                steal_ratio: bench.steal_ratio(),
                noise_sources: environment.noise_sources.clone(),
            },
            figures,
        }
    }

    /// The table, then the machine in one paragraph.
    pub(crate) fn markdown(&self) -> String {
        let mut text =
            String::from("| what | goal | measured | | goal met |\n|---|---|---|---|---|\n");
        for figure in &self.figures {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                figure.what,
                figure.goal,
                figure.measured,
                figure.beside,
                figure.outcome.word()
            );
        }
        let machine = &self.machine;
        let _ = write!(
            text,
            "\n`cargo xtask bench {}` on {}, {:.0} s: {} CPUs ({}), load on CPU {}, harness on CPU \
             {}; Linux {}.",
            self.bench,
            machine.date,
            machine.duration_s,
            machine.cpus,
            machine.cpu,
            machine.load_cpu,
            machine.control_cpu,
            machine.kernel,
        );
        if let Some(ratio) = machine.steal_ratio {
            let _ = write!(
                text,
                " The hypervisor took {:.1} % of the load CPU.",
                ratio * 100.0
            );
        }
        for source in &machine.noise_sources {
            let _ = write!(text, " Noise: {source}.");
        }
        text.push('\n');
        text
    }

    /// Replaces what stands between this bench's marks in a document.
    ///
    /// # Errors
    /// It has no such marks, or cannot be read or written.
    pub(crate) fn put_into(&self, document: &Path) -> Result<()> {
        let shown = document.display();
        let text = fs::read_to_string(document).with_context(|| shown.to_string())?;
        let replaced =
            replace_between_marks(&text, self.bench, &self.markdown()).with_context(|| {
                let (begin, end) = marks(self.bench);
                format!("{shown}: no lines {begin} and {end} to put the table between; add them")
            })?;
        fs::write(document, replaced).with_context(|| shown.to_string())
    }
}

/// The lines of a document that a bench's table stands between.
fn marks(bench: &str) -> (String, String) {
    (
        format!("<!-- bench {bench} -->"),
        format!("<!-- end of bench {bench} -->"),
    )
}

fn replace_between_marks(text: &str, bench: &str, table: &str) -> Option<String> {
    let (begin, end) = marks(bench);
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{table}{end}{after}"))
}

/// Frames per second in millions, as people say it.
pub(crate) fn mpps(rate_pps: f64) -> String {
    format!("{:.3} Mpps", rate_pps / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            bench: "gen",
            machine: Machine {
                kernel: "6.18.5 #1".into(),
                cpu: "Some CPU".into(),
                cpus: 2,
                date: "2026-11-21".into(),
                load_cpu: 0,
                control_cpu: 1,
                duration_s: 179.6,
                steal_ratio: Some(0.004),
                noise_sources: vec!["this is a virtual machine".into()],
            },
            figures: vec![Figure {
                what: "rate".into(),
                goal: "at least 9".into(),
                measured: "10.0".into(),
                beside: "a, b".into(),
                outcome: Outcome::Open,
                observations: Value::Null,
            }],
        }
    }

    #[test]
    fn the_table_names_the_machine() {
        assert_eq!(
            report().markdown(),
            "\
| what | goal | measured | | goal met |
|---|---|---|---|---|
| rate | at least 9 | 10.0 | a, b | open |

`cargo xtask bench gen` on 2026-11-21, 180 s: 2 CPUs (Some CPU), load on CPU 0, harness on CPU 1; \
Linux 6.18.5 #1. The hypervisor took 0.4 % of the load CPU. Noise: this is a virtual machine.
"
        );
    }

    #[test]
    fn a_table_takes_the_place_of_the_one_before_it() {
        let text = "a\n<!-- bench gen -->\nold\n<!-- end of bench gen -->\nb\n";
        let once = replace_between_marks(text, "gen", "new\n").unwrap();
        assert_eq!(once, text.replace("old", "new"));
        assert_eq!(replace_between_marks(&once, "gen", "new\n").unwrap(), once);
        assert_eq!(replace_between_marks(text, "lab", "new\n"), None);
    }
}
