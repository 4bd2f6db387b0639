//! What the logs of a folder say about its runs: devices that stood still, logs that are cut or missing.

use fwdlab_archive::lint::Finding;
use fwdlab_pkt_gen::Ending;

use crate::lint::{
    LOG_CUT, LOG_MISSING, NO_FRAMES, OTHER_FRAMES, RECEIVER_FAILED, SENDER_STOPPED_EARLY,
    STALLS_LEFT_OUT,
};
use crate::{Load, LogFacts, Run, RunGroup};

use super::{Folder, loads, shown};

/// A sender that sent less than this part of what it was asked for did not stop for having sent it.
const SENT_SHARE: f64 = 0.999;

/// The two sides of a run begin and end within a few seconds of each other: what a receiver's log does not cover of
/// its load was lost where it is more than that.
const COVERED_S: f64 = 5.0;
/// A load that arrived in less than this part of its time did not arrive.
const ARRIVED_SHARE: f64 = 0.1;
/// What is left of a load's packets where nothing but the neighbours' own chatter arrived.
const ARRIVED_PACKETS_SHARE: f64 = 0.001;

pub(super) fn lint_logs(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let usual = loads::UsualLoads::of(folder);
    for group in &folder.folder.groups {
        if group.is_of_profiles() {
            continue;
        }
        for run in &group.runs {
            lint_run(folder, group, run, findings);
            findings.extend(usual.lint(folder, group, run));
        }
        findings.extend(loads::lint_ceiling(folder, group));
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
    let sent = Sent::of(folder, run);
    if let Some((sentence, says)) = nothing_arrived(log, sent.as_ref()) {
        found(&NO_FRAMES, format!("{name}: {sentence}"), None, says);
    } else if let Some(stall) = Stall::of(log, sent.as_ref()).filter(|_| value.is_some()) {
        let rate = log.steady_pps().map_or(String::new(), |pps| {
            format!("; over all of its time the rate is {pps:.0} pps")
        });
        found(
            &STALLS_LEFT_OUT,
            format!(
                "{name}: {} are left out, so that the archive's script {observation}{rate}",
                stall.what
            ),
            stall.line,
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
        Ending::Cut if log.samples.all > 0 => {
            let lost = match sent.as_ref().and_then(|sent| sent.lost_s(log)) {
                Some(lost) if lost <= COVERED_S => None,
                Some(lost) => Some(format!(", {lost:.0} s before the load")),
                None => Some(String::new()),
            };
            if let Some(lost) = lost {
                found(
                    &LOG_CUT,
                    format!(
                        "{name} ends without a word on how{lost}, and the archive's script {observation}"
                    ),
                    Some(log.lines),
                    "(the log ends here)".into(),
                );
            }
        }
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
        findings.extend(lint_asked_size(folder, index, log));
    }
    findings.extend(lint_together(folder, run));
    findings.extend(lint_sum(folder, run));
}

/// A sender that ended while others went on: the offered load was theirs alone from then on.
fn lint_together(folder: Folder<'_>, run: &Run) -> Option<Finding> {
    let (index, blast_us, longest_us) = run.ended_early(&folder.tree.files)?;
    let [blast_s, longest_s] = [blast_us, longest_us].map(|us| us as f64 / 1e6);
    let sentence = format!(
        "{} is of a load of {blast_s:.0} s, and another sender's lasted {longest_s:.0} s: what they offered \
         together is known of a part alone",
        folder.name(index)
    );
    let finding = folder.finding(&SENDER_STOPPED_EARLY, sentence);
    Some(finding.with(folder.published(index, format!("{blast_s:.0} s of load"))))
}

/// More than was offered cannot arrive.
fn lint_sum(folder: Folder<'_>, run: &Run) -> Option<Finding> {
    let files = &folder.tree.files;
    let (receiver, &sender) = (run.receiver?, run.senders.first()?);
    let (forwarded, offered) = (run.received(files)?.steady_pps()?, run.offered_pps(files)?);
    if forwarded <= loads::REACHED_SHARE_MAX * offered {
        return None;
    }
    let sentence = format!(
        "{}: {forwarded:.0} pps arrived and {offered:.0} pps were offered: a sender's log is missing, or one is of \
         another run",
        folder.name(receiver)
    );
    let finding = folder
        .finding(&LOG_MISSING, sentence)
        .with(folder.published(receiver, format!("{forwarded:.0} pps forwarded")));
    Some(finding.with(folder.derived(sender, format!("{offered:.0} pps offered"))))
}

/// What all senders of a run sent, where that is known of each.
struct Sent {
    duration_s: f64,
    packets: u64,
}

impl Sent {
    fn of(folder: Folder<'_>, run: &Run) -> Option<Self> {
        let mut sent = Self {
            duration_s: 0.0,
            packets: 0,
        };
        let mut logs = 0;
        for log in run.sent(&folder.tree.files) {
            // One that failed or is cut itself says less than was sent.
            if !matches!(log.ending, Ending::Finished | Ending::Terminated) {
                return None;
            }
            let load = log.load?;
            sent.duration_s = sent.duration_s.max(load.duration_s());
            sent.packets = sent.packets.saturating_add(load.packets);
            logs += 1;
        }
        let is_all = logs > 0 && logs == run.senders.len() && !run.misses_sender;
        is_all.then_some(sent)
    }

    /// How much of the load's time a receiver's log does not cover; none where the load is not in it at all.
    fn lost_s(&self, log: &LogFacts) -> Option<f64> {
        Some(self.duration_s - log.load?.covered_s())
    }
}

/// What a log says in which the load did not arrive: the sentence, and the evidence.
fn nothing_arrived(log: &LogFacts, sent: Option<&Sent>) -> Option<(String, String)> {
    let samples = log.samples;
    let Some(load) = log.load else {
        let sentence = format!("no frame arrived in {} samples", samples.all);
        return (samples.all > 0).then(|| (sentence, format!("{} samples of 0 pps", samples.all)));
    };
    if let Some(sent) = sent
        && (load.packets as f64) < ARRIVED_PACKETS_SHARE * sent.packets as f64
        // Of a log that is cut the rest is not known.
        && log.ending != Ending::Cut
    {
        let sentence = format!(
            "{} frames arrived of the {} that were sent",
            load.packets, sent.packets
        );
        return Some((sentence, format!("{} frames", load.packets)));
    }
    let with_packets = samples.all - samples.empty;
    let is_silent = match sent {
        Some(sent) => {
            let with_packets_s = load.with_packets_us as f64 / 1e6;
            with_packets_s < ARRIVED_SHARE * sent.duration_s && samples.empty > with_packets
        }
        None => (with_packets as f64) < ARRIVED_SHARE * samples.all as f64,
    };
    let sentence = format!(
        "frames arrived in no more than {with_packets} of {} samples",
        samples.all
    );
    is_silent.then(|| (sentence, format!("{} samples of 0 pps", samples.empty)))
}

/// Silence in the time of the load that the archive's script leaves out.
struct Stall {
    what: String,
    line: Option<usize>,
}

impl Stall {
    fn of(log: &LogFacts, sent: Option<&Sent>) -> Option<Self> {
        let inside = log.samples.empty_inside;
        if inside > 0 {
            return Some(Self {
                what: format!("{inside} samples without a frame stand between others and"),
                line: log.samples.first_empty_inside,
            });
        }
        // The log went on, the load, too, and nothing arrived any more.
        let (load, sent): (Load, &Sent) = (log.load?, sent?);
        let silent_s = sent.duration_s.min(load.covered_s()) - load.duration_s();
        (silent_s > COVERED_S && log.samples.empty > 0).then(|| Self {
            what: format!("the last {silent_s:.0} s of the load, in which no frame arrived,"),
            line: None,
        })
    }
}

/// A sender that says of its frames another size than it was asked for.
fn lint_asked_size(folder: Folder<'_>, index: usize, log: &LogFacts) -> Option<Finding> {
    let command = log.command.as_ref()?;
    let asked = command.packet_size_bytes?;
    let sent = log.summary.as_ref()?.packet_size_bytes?;
    // Sizes of a mix are several.
    let sizes = command
        .arguments
        .iter()
        .filter(|word| word.starts_with("-l"));
    if asked == sent || sizes.count() != 1 {
        return None;
    }
    let name = folder.name(index);
    let sentence =
        format!("{name}: frames of {asked} bytes were asked for, and sent were some of {sent}");
    let says = format!("-l {asked}, {sent} bytes each");
    let finding = folder.finding(&OTHER_FRAMES, sentence);
    Some(finding.with(folder.published(index, says)))
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
