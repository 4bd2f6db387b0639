//! When a run says that its parts were measured.

use std::path::{Path, PathBuf};

use fwdlab_model::TrialRecord;
use jiff::Timestamp;

use crate::layout;
use crate::load::{Attempt, Loaded};

use super::lines::Lines;
use super::{Evidence, Finding, NOT_A_TIME, TIMES_OUT_OF_ORDER};

/// A time and where it is written.
struct Time<'a> {
    /// What began or ended then, as the subject of a sentence.
    what: String,
    path: PathBuf,
    line: Option<usize>,
    key: &'static str,
    text: &'a str,
}

impl Time<'_> {
    /// Whole seconds, as some are written without their parts; none where it is no time in UTC.
    fn seconds(&self) -> Option<i64> {
        let time: Timestamp = self.text.strip_suffix('Z').and(self.text.parse().ok())?;
        Some(time.as_second())
    }

    fn says(&self) -> String {
        format!("\"{}\":\"{}\"", self.key, self.text)
    }
}

/// Every time of a run is one in UTC, and none is earlier than that before it.
///
/// The clock of a host may be set back while it measures: an order that is not kept is a warning.
pub(super) fn lint_times(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let lines = Lines::of(loaded);
    let mut order = Order {
        dir: &loaded.dir,
        last: None,
        findings,
    };
    order.follow(Time {
        what: "the run".into(),
        path: loaded.dir.join(layout::RESOLVED),
        line: None,
        key: "started",
        text: &loaded.started,
    });
    let mut sessions = loaded.sessions.iter().peekable();
    for attempt in &loaded.attempts {
        while let Some(session) =
            sessions.next_if(|session| session.session <= attempt.record.session)
        {
            order.follow(of_session(&loaded.dir, session.session, &session.start));
        }
        order.attempt(loaded, attempt, &lines);
    }
    for session in sessions {
        order.follow(of_session(&loaded.dir, session.session, &session.start));
    }
    if let Some(finished) = &loaded.finished {
        order.follow(Time {
            what: "the end of the run".into(),
            path: loaded.dir.join(layout::FINISHED),
            line: None,
            key: "finished",
            text: &finished.finished,
        });
    }
}

fn of_session<'a>(dir: &Path, session: u32, start: &'a str) -> Time<'a> {
    Time {
        what: format!("session {session}"),
        path: layout::session(dir, session),
        line: None,
        key: "start",
        text: start,
    }
}

/// Times in the order in which they were written.
struct Order<'a> {
    dir: &'a Path,
    last: Option<(i64, Time<'a>)>,
    findings: &'a mut Vec<Finding>,
}

impl<'a> Order<'a> {
    /// The start of a block, then those of its trials in the order in which they were measured.
    fn attempt(&mut self, loaded: &'a Loaded, attempt: &'a Attempt, lines: &Lines) {
        let record = &attempt.record;
        let path = loaded.dir.join(layout::TRIALS);
        let title = format!("block {}, attempt {}", record.block, record.attempt);
        self.follow(Time {
            what: title.clone(),
            path: path.clone(),
            line: lines.block(record),
            key: "start",
            text: &record.start,
        });
        let mut trials: Vec<&TrialRecord> = attempt.trials.iter().collect();
        trials.sort_by_key(|trial| &trial.start);
        for trial in trials {
            self.follow(Time {
                what: format!("{title}: {} {}", trial.variant, trial.stratum),
                path: path.clone(),
                line: lines.trial(trial),
                key: "start",
                text: &trial.start,
            });
        }
    }

    fn follow(&mut self, time: Time<'a>) {
        let evidence = Evidence::published(&time.path, time.line, time.says());
        let Some(seconds) = time.seconds() else {
            let sentence = format!("{}: {:?} is not a time in UTC", time.what, time.text);
            let finding = Finding::new(&NOT_A_TIME, self.dir, sentence);
            self.findings.push(finding.with(evidence));
            return;
        };
        if let Some((_, before)) = self.last.as_ref().filter(|(last, _)| seconds < *last) {
            let sentence = format!(
                "{} is dated earlier than {}, which came before",
                time.what, before.what
            );
            let derived = Evidence::derived(&before.path, before.line, before.says());
            let finding = Finding::new(&TIMES_OUT_OF_ORDER, self.dir, sentence);
            self.findings.push(finding.with(evidence).with(derived));
        }
        self.last = Some((seconds, time));
    }
}
