//! Results held against the conditions of `--fail-on`.

use std::path::Path;

use fwdlab_archive::Loaded;
use fwdlab_archive::lint::{Finding, NOT_FINISHED, Severity, lint_directory};
use fwdlab_report::{Gate, GateResult, Report};

use crate::exit::{Code, DONE, GOAL_MISSED};
use crate::output::tell;

/// Holds a run against conditions; for those with a threshold of their own its verdicts are made again.
pub(crate) fn hold(
    gates: &[Gate],
    loaded: &mut Loaded,
    report: &Report,
) -> anyhow::Result<Vec<GateResult>> {
    let mut results = Vec::new();
    for gate in gates {
        let judged_at = *gate.threshold_of(&mut loaded.resolved.design);
        results.push(match other_threshold(gate, judged_at) {
            None => gate.of_report(report),
            Some(threshold) => {
                *gate.threshold_of(&mut loaded.resolved.design) = threshold;
                let judged = Report::build(loaded);
                *gate.threshold_of(&mut loaded.resolved.design) = judged_at;
                gate.of_report(&judged?)
            }
        });
    }
    Ok(results)
}

/// What speaks against any verdict on a directory.
pub(crate) struct Objection {
    /// Whether records contradict each other; else the run is not finished.
    pub(crate) is_grave: bool,
    pub(crate) text: String,
}

/// What speaks against any verdict on a directory, if something does. A check that passes on records that were changed,
/// or half copied, says nothing.
pub(crate) fn objection(directory: &Path) -> Option<Objection> {
    let findings = lint_directory(directory).findings;
    let is_grave = |finding: &&Finding| finding.rule.severity == Severity::Error;
    let finding = findings.iter().find(is_grave);
    // Without its end, nothing shows what is gone of it.
    let has_no_end = |finding: &&Finding| finding.rule.code == NOT_FINISHED.code;
    let finding = finding.or_else(|| findings.iter().find(has_no_end))?;
    let is_grave = is_grave(&finding);
    let (says, published) = if is_grave {
        (
            "the records contradict each other",
            "nothing was published of them; ",
        )
    } else {
        ("the run is not finished", "")
    };
    let text = format!(
        "{says}: {} ({}); {published}see `fwdlab lint {}`",
        finding.sentence,
        finding.rule.code,
        directory.display()
    );
    Some(Objection { is_grave, text })
}

/// The threshold that verdicts have to be made again for, where it is not theirs.
pub(crate) fn other_threshold(gate: &Gate, verdicts_percent: f64) -> Option<f64> {
    let asked = gate.threshold_percent();
    asked.filter(|asked| asked.total_cmp(&verdicts_percent).is_ne())
}

/// Says what became of the conditions, and gives the exit code of what went well but for them.
pub(crate) fn conclude(results: &[GateResult]) -> Code {
    for result in results {
        if !result.failed {
            tell(&format!("passes {}", result.condition));
        }
        for failure in &result.failures {
            tell(&format!("fails on {}: {failure}", result.condition));
        }
    }
    for caution in fwdlab_report::cautions(results) {
        tell(&format!("note: {caution}"));
    }
    if results.iter().any(|result| result.failed) {
        GOAL_MISSED
    } else {
        DONE
    }
}
