//! What the logs of a folder say about its runs: loads that fell short, devices that stood still, ceilings.

use std::collections::BTreeMap;

use fwdlab_archive::lint::{CEILING, Finding};
use fwdlab_pkt_gen::Ending;
use fwdlab_stats::median;

use crate::lint::{
    LOG_CUT, LOG_MISSING, NO_FRAMES, OFFERED_LOAD_SHORT, RECEIVER_FAILED, SENDER_STOPPED_EARLY,
    STALLS_LEFT_OUT,
};
use crate::{LogFacts, Run, RunGroup};

use super::Folder;

/// A device that forwards so much of what it is offered is not what holds it.
const CEILING_SHARE: f64 = 0.99;
/// The clocks of two machines, and the seconds that they begin in, are not so far apart.
const REACHED_SHARE_MAX: f64 = 1.01;

/// A run that was offered less than this part of what the others of its folder were is another experiment.
const SHORT_SHARE: f64 = 0.95;

/// A sender that sent less than this part of what it was asked for did not stop for having sent it.
const SENT_SHARE: f64 = 0.999;

pub(super) fn lint_logs(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let usual = UsualLoads::of(folder);
    for group in &folder.folder.groups {
        if group.is_of_profiles() {
            continue;
        }
        for run in &group.runs {
            lint_run(folder, group, run, findings);
            findings.extend(usual.lint(folder, group, run));
        }
        findings.extend(lint_ceiling(folder, group));
    }
}

fn lint_run(folder: Folder<'_>, group: &RunGroup, run: &Run, findings: &mut Vec<Finding>) {
    let (Some(receiver), Some(log)) = (run.receiver, run.received(&folder.tree.files)) else {
        return;
    };
    let name = folder.name(receiver);
    let value = log.published.averaged.as_deref();
    let observation = value.map_or("makes nothing of it".into(), |pps| {
        format!("makes {pps} of it")
    });
    let mut found = |rule, sentence: String, line, says: String| {
        let finding = folder.finding(rule, sentence);
        findings.push(finding.with(folder.published_at(receiver, line, says)));
    };
    if log.samples.all > 0 && log.samples.empty == log.samples.all {
        found(
            &NO_FRAMES,
            format!("{name}: no frame arrived in {} samples", log.samples.all),
            None,
            format!("{} samples of 0 pps", log.samples.all),
        );
    } else if log.samples.empty_inside > 0 && value.is_some() {
        let rate = log.steady_pps().map_or(String::new(), |pps| {
            format!("; over all of its time the rate is {pps:.0} pps")
        });
        found(
            &STALLS_LEFT_OUT,
            format!(
                "{name}: {} samples without a frame stand between others and are left out, so that the \
                 archive's script {observation}{rate}",
                log.samples.empty_inside
            ),
            log.samples.first_empty_inside,
            "0 pps".into(),
        );
    }
    match log.ending {
        Ending::Failed => found(
            &RECEIVER_FAILED,
            format!("{name}: the receiver failed, and the archive's script {observation}"),
            None,
            "a thread of pkt-gen exited with an error".into(),
        ),
        Ending::Cut if log.samples.all > 0 => found(
            &LOG_CUT,
            format!("{name} ends without a word on how, and the archive's script {observation}"),
            Some(log.lines),
            "(the log ends here)".into(),
        ),
        _ => {}
    }
    if run.senders.is_empty() {
        found(
            &LOG_MISSING,
            format!(
                "{name}: there is no log of a sender that can be read, so that nothing says what was offered"
            ),
            None,
            format!("run of {}", shown(&group.key)),
        );
    }
    for (&index, log) in run.senders.iter().zip(run.sent(&folder.tree.files)) {
        findings.extend(lint_sender(folder, index, log));
    }
}

fn lint_sender(folder: Folder<'_>, index: usize, log: &LogFacts) -> Option<Finding> {
    let asked = log.command.as_ref()?.packet_count?;
    let sent = log.summary.as_ref()?.packets;
    // 0 is without end, and one of the last packets may still have been under way.
    let is_less = (sent as f64) < SENT_SHARE * asked as f64;
    if asked == 0 || !is_less || log.ending != Ending::Finished {
        return None;
    }
    let name = folder.name(index);
    let sentence = format!("{name}: {sent} packets were sent of the {asked} asked for");
    let says = format!("Sent {sent} packets, -n {asked}");
    let finding = folder.finding(&SENDER_STOPPED_EARLY, sentence);
    Some(finding.with(folder.published(index, says)))
}

/// What the runs of a folder are offered in the median, by what makes a load the same.
struct UsualLoads(BTreeMap<Traffic, f64>);

/// Loads of other sizes, flows, families or numbers of senders are not compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Traffic {
    senders: usize,
    size_bytes: Option<u64>,
    flows: Option<u128>,
    is_inet6: Option<bool>,
}

impl Traffic {
    fn of(folder: Folder<'_>, run: &Run) -> Option<Self> {
        let log = run.sent(&folder.tree.files).next()?;
        let command = log.command.as_ref()?;
        Some(Self {
            senders: run.senders.len(),
            size_bytes: command.packet_size_bytes,
            flows: command.flows(),
            is_inet6: command
                .destination
                .as_ref()
                .map(|range| range.first.is_ipv6()),
        })
    }
}

impl UsualLoads {
    fn of(folder: Folder<'_>) -> Self {
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
        let usual = loads
            .into_iter()
            .filter(|(_, loads)| loads.len() >= 3)
            .filter_map(|(traffic, loads)| Some((traffic, median(&loads)?)));
        Self(usual.collect())
    }

    fn lint(&self, folder: Folder<'_>, group: &RunGroup, run: &Run) -> Option<Finding> {
        let usual = *self.0.get(&Traffic::of(folder, run)?)?;
        let offered = run.offered_pps(&folder.tree.files)?;
        if offered >= SHORT_SHARE * usual {
            return None;
        }
        let iteration = run
            .iteration
            .map_or_else(String::new, |iteration| format!(" {iteration}"));
        let sentence = format!(
            "run{iteration} of {} was offered {offered:.0} pps, {:.0} % of what the runs of its folder are",
            shown(&group.key),
            offered / usual * 100.0
        );
        let mut finding = folder.finding(&OFFERED_LOAD_SHORT, sentence);
        for &sender in &run.senders {
            finding = finding.with(folder.published(sender, format!("{offered:.0} pps")));
        }
        let usual = format!("median {usual:.0} pps");
        Some(finding.derived(&folder.directory(), usual))
    }
}

/// Whether the device, or what it was offered, holds the rate.
fn lint_ceiling(folder: Folder<'_>, group: &RunGroup) -> Option<Finding> {
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

/// A bench of one variant has no key.
fn shown(key: &str) -> &str {
    if key.is_empty() { "the bench" } else { key }
}
