//! What the catalogue takes of a results directory, whoever measured it.

use std::collections::BTreeMap;

use fwdlab_archive::Loaded;
use fwdlab_model::Stratum;
use jiff::civil::DateTime;

/// The results of one experiment under one label.
///
/// Texts are as they were found; none where nothing says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Who measured: `own` of fwdlab, `imported` of others whose results it read.
    pub(crate) kind: &'static str,
    /// The experiment's name, or the topic that the results are filed under.
    pub(crate) topic: String,
    /// The name of this run among those of its topic.
    pub(crate) label: String,
    /// The title of the report.
    pub(crate) question: Option<String>,
    /// The CPU of the device under test, or what the results call their hardware.
    pub(crate) platform: Option<String>,
    /// Vendor and product of the machine.
    pub(crate) machine: Option<String>,
    /// The network interface controller.
    pub(crate) nic: Option<String>,
    /// Release of the kernel, or revision of the operating system.
    pub(crate) os: Option<String>,
    /// When it was measured, UTC, as far as it is known: `2016`, `2016-08`, `2016-08-03` or
    /// `2016-08-03T12:00:00Z`.
    pub(crate) date: Option<String>,
    /// Short name of the lab.
    pub(crate) lab: Option<String>,
    /// What kind of lab.
    pub(crate) lab_kind: Option<String>,
    /// How the load related to what the device could forward.
    pub(crate) regime: Option<String>,
    /// Blocks that count, or runs of the variant that has most.
    pub(crate) blocks: u32,
    /// Whether nothing more will be measured.
    pub(crate) is_finished: bool,
    /// What the report concludes, in a few words.
    pub(crate) verdict: Option<String>,
    /// The variants, in the experiment's order.
    pub(crate) variants: Vec<EntryVariant>,
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EntryVariant {
    /// Its name in files.
    pub(crate) name: String,
    /// Its name for readers.
    pub(crate) label: String,
    /// Whether it is the baseline a second time.
    pub(crate) is_control: bool,
    /// The level of every factor, by the factor's name.
    pub(crate) levels: BTreeMap<String, String>,
    /// What was measured of it, a stratum after the other, each in order of time.
    pub(crate) observations: Vec<EntryObservation>,
}

/// What one block, or one run, says of a variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EntryObservation {
    /// The stratum; none where nothing says.
    pub(crate) stratum: Option<Stratum>,
    /// Number of the block or of the run.
    pub(crate) position: u32,
    /// The uninterrupted stretch that it belongs to.
    pub(crate) session: Option<u32>,
    /// The observation, in frames per second; finite.
    pub(crate) forwarding_rate_pps: f64,
    /// What was sent meanwhile, in frames per second.
    pub(crate) offered_load_pps: Option<f64>,
}

impl Entry {
    /// What the catalogue takes of a run of fwdlab's: the blocks that count.
    pub(crate) fn of_run(run: &Loaded) -> Self {
        let resolved = &run.resolved;
        let environment = run.sessions.last().map(|session| &session.environment);
        let stated = |text: &String| (!text.is_empty()).then(|| text.clone());
        let label = run.dir.canonicalize().unwrap_or_else(|_| run.dir.clone());
        let label = label.file_name().map(|name| name.to_string_lossy());
        let accepted = run.accepted();
        let variants = resolved.variants.iter().map(|variant| {
            let mut observations: Vec<EntryObservation> = accepted
                .iter()
                .flat_map(|attempt| &attempt.trials)
                .filter(|trial| trial.variant == variant.name)
                .map(|trial| EntryObservation {
                    stratum: Some(trial.stratum),
                    position: trial.block,
                    session: Some(trial.session),
                    forwarding_rate_pps: trial.observation_pps,
                    offered_load_pps: (trial.measured_s > 0.0)
                        .then(|| trial.tester.offered_frames as f64 / trial.measured_s),
                })
                .collect();
            observations.sort_by_key(|observation| (observation.stratum, observation.position));
            EntryVariant {
                name: variant.name.to_string(),
                label: variant.label.clone(),
                is_control: variant.control_of.is_some(),
                levels: variant
                    .levels
                    .iter()
                    .map(|(factor, level)| (factor.clone(), level.to_string()))
                    .collect(),
                observations,
            }
        });
        Self {
            kind: "own",
            topic: resolved.name.clone(),
            label: label.unwrap_or_default().into_owned(),
            question: stated(&resolved.question),
            platform: environment.and_then(|environment| stated(&environment.cpu_model)),
            machine: environment.and_then(|environment| environment.machine.clone()),
            nic: None,
            os: stated(&run.kernel),
            date: stated(&run.started).map(|started| extended_time(&started)),
            lab: stated(&resolved.lab.name),
            lab_kind: Some(resolved.lab.kind.to_string()),
            regime: Some(run.regime().to_string()),
            blocks: u32::try_from(accepted.len()).unwrap_or(u32::MAX),
            is_finished: run.finished.is_some(),
            verdict: None,
            variants: variants.collect(),
        }
    }
}

/// `20261121T084253Z` as `2026-11-21T08:42:53Z`; another text as it is.
fn extended_time(text: &str) -> String {
    DateTime::strptime("%Y%m%dT%H%M%SZ", text)
        .map_or_else(|_| text.to_owned(), |time| format!("{time}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_becomes_a_date_that_is_read_and_sorted() {
        for (started, date) in [
            ("20261121T084253Z", "2026-11-21T08:42:53Z"),
            ("2026-11-21T08:42:53Z", "2026-11-21T08:42:53Z"),
            ("20261121T0842ééZ", "20261121T0842ééZ"),
            ("yesterday", "yesterday"),
        ] {
            assert_eq!(extended_time(started), date);
        }
    }
}
