//! What the runs of a folder are offered: loads that fell short, ceilings.

use std::collections::BTreeMap;

use fwdlab_archive::lint::{CEILING, Finding};
use fwdlab_pkt_gen::Command;
use fwdlab_stats::median;

use crate::lint::OFFERED_LOAD_SHORT;
use crate::{Run, RunGroup};

use super::{Folder, shown};

/// A device that forwards so much of what it is offered is not what holds it.
const CEILING_SHARE: f64 = 0.99;
/// The clocks of two machines, and the seconds that they begin in, are not so far apart.
pub(super) const REACHED_SHARE_MAX: f64 = 1.01;

/// A run that was offered less than this part of what it was to be is another experiment.
const SHORT_SHARE: f64 = 0.95;

/// What the runs of a folder are offered, by what makes a load the same.
pub(super) struct UsualLoads(BTreeMap<Traffic, Vec<f64>>);

/// Loads of other sizes, flows, families, numbers of senders or demands are not compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Traffic {
    senders: usize,
    size_bytes: Option<u64>,
    flows: Option<u128>,
    is_inet6: Option<bool>,
    /// What all senders were asked for together; none where one of them sends what it can.
    asked_pps: Option<u64>,
}

impl Traffic {
    fn of(folder: Folder<'_>, run: &Run) -> Option<Self> {
        let files = &folder.tree.files;
        let log = run.sent(files).next()?;
        let command = log.command.as_ref()?;
        let asked = run.sent(files).map(|log| {
            let asked = log.command.as_ref()?.intended_load_pps;
            // 0 is without a limit.
            asked.filter(|asked| *asked > 0)
        });
        let asked: Option<Vec<u64>> = asked.collect();
        Some(Self {
            senders: run.senders.len(),
            size_bytes: command.packet_size_bytes,
            flows: command.flows(),
            is_inet6: is_inet6(command),
            asked_pps: asked
                .filter(|asked| asked.len() == run.senders.len())
                .map(|asked| asked.into_iter().fold(0, u64::saturating_add)),
        })
    }

    /// The same, whatever it was asked for.
    fn unlimited(&self) -> Self {
        Self {
            asked_pps: None,
            ..self.clone()
        }
    }
}

pub(super) fn is_inet6(command: &Command) -> Option<bool> {
    let destination = command.destination.as_ref()?;
    Some(destination.first.is_ipv6())
}

/// What a run was to be offered, in packets per second.
enum Expected {
    /// By the runs of its folder.
    Usual(f64),
    /// By its senders' commands.
    Asked(f64),
}

impl UsualLoads {
    pub(super) fn of(folder: Folder<'_>) -> Self {
        let mut loads: BTreeMap<Traffic, Vec<f64>> = BTreeMap::new();
        let runs = folder.folder.groups.iter().flat_map(|group| &group.runs);
        for run in runs.filter(|run| !run.is_profiled) {
            if let (Some(traffic), Some(offered)) = (
                Traffic::of(folder, run),
                run.offered_pps(&folder.tree.files),
            ) {
                loads.entry(traffic).or_default().push(offered);
            }
        }
        Self(loads)
    }

    /// What a run was to be offered.
    ///
    /// Offered is compared with asked. More than the line or the sender can give is often asked for, so that nothing
    /// is short that is as much as the others of the same demand were offered, unless a run like it was offered more.
    fn expected(&self, traffic: &Traffic) -> Option<Expected> {
        let usual = |traffic: &Traffic| {
            let loads = self.0.get(traffic).filter(|loads| loads.len() >= 3)?;
            median(loads)
        };
        let Some(asked) = traffic.asked_pps else {
            return usual(traffic).map(Expected::Usual);
        };
        let alike = self.0.iter();
        let alike = alike.filter(|(other, _)| other.unlimited() == traffic.unlimited());
        let reached = alike.flat_map(|(_, loads)| loads).copied();
        let reached = reached.reduce(f64::max)?;
        let asked = asked as f64;
        if reached >= SHORT_SHARE * asked {
            return Some(Expected::Asked(asked));
        }
        usual(traffic).map(Expected::Usual)
    }

    pub(super) fn lint(&self, folder: Folder<'_>, group: &RunGroup, run: &Run) -> Option<Finding> {
        if run.is_profiled {
            return None;
        }
        let traffic = Traffic::of(folder, run)?;
        let offered = run.offered_pps(&folder.tree.files)?;
        let (expected, of, says) = match self.expected(&traffic)? {
            Expected::Usual(pps) => (
                pps,
                "what the runs of its folder are",
                format!("median {pps:.0} pps"),
            ),
            Expected::Asked(pps) => (
                pps,
                "what its senders were asked for",
                format!("{pps:.0} pps, -R of all senders"),
            ),
        };
        if offered >= SHORT_SHARE * expected {
            return None;
        }
        let iteration = run
            .iteration
            .map_or_else(String::new, |iteration| format!(" {iteration}"));
        let sentence = format!(
            "run{iteration} of {} was offered {offered:.0} pps, {:.0} % of {of}",
            shown(&group.key),
            offered / expected * 100.0
        );
        let mut finding = folder.finding(&OFFERED_LOAD_SHORT, sentence);
        for &sender in &run.senders {
            finding = finding.with(folder.published(sender, format!("{offered:.0} pps")));
        }
        Some(finding.derived(&folder.directory(), says))
    }
}

/// Whether the device, or what it was offered, holds the rate.
pub(super) fn lint_ceiling(folder: Folder<'_>, group: &RunGroup) -> Option<Finding> {
    let files = &folder.tree.files;
    let rates: Vec<(f64, f64)> = group
        .runs
        .iter()
        .filter(|run| !run.is_profiled)
        .filter_map(|run| Some((run.received(files)?.steady_pps()?, run.offered_pps(files)?)))
        .collect();
    let shares: Vec<f64> = rates
        .iter()
        .map(|(forwarded, offered)| forwarded / offered)
        .collect();
    // More than that is no load that was reached, but a sender's log that is missing.
    let is_reached = |share: &f64| (CEILING_SHARE..=REACHED_SHARE_MAX).contains(share);
    let share = median(&shares).filter(is_reached)?;
    let mut runs = group.runs.iter();
    let (receiver, &sender) = runs.find_map(|run| Some((run.receiver?, run.senders.first()?)))?;
    let (forwarded, offered): (Vec<f64>, Vec<f64>) = rates.into_iter().unzip();
    let middle = |rates: &[f64]| median(rates).unwrap_or_default();
    let sentence = format!(
        "{}: {:.1} % of what was offered arrived, in the median of {} runs, so that the load holds the \
         rate and not the device",
        shown(&group.key),
        share * 100.0,
        shares.len()
    );
    let finding = folder
        .finding(&CEILING, sentence)
        .with(folder.published(receiver, format!("{:.0} pps forwarded", middle(&forwarded))))
        .with(folder.derived(sender, format!("{:.0} pps offered", middle(&offered))));
    Some(finding)
}
