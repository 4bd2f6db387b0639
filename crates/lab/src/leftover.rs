//! What a killed run has left, and how that is said.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::doctor::Finding;
use crate::journal::{BootUntil, COPY, Change, NOTHING, PROCESSES_OF, Undo, Until};
use crate::program::command_line;

/// Something that a run left, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leftover {
    /// What was changed.
    pub what: String,
    /// What undoes it; in what is printed without what a program reads, which may be a file with keys.
    #[serde(serialize_with = "without_input")]
    pub undo: Undo,
    /// The process that is gone, and when it announced the change (UTC), where a journal tells.
    pub left_by: Option<LeftBy>,
    /// What became of it.
    #[serde(flatten)]
    pub state: LeftoverState,
}

fn without_input<S: serde::Serializer>(undo: &Undo, serializer: S) -> Result<S::Ok, S::Error> {
    let mut shown = undo.clone();
    if let Undo::OnHost { input, .. } = &mut shown {
        input.clear();
    }
    shown.serialize(serializer)
}

/// Who left something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftBy {
    /// The process.
    pub pid: u32,
    /// When it announced the change, UTC.
    pub time: String,
    /// The journal that tells, or its copy on a DUT.
    pub journal: PathBuf,
    /// The journal's copy on a DUT, where both were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<PathBuf>,
    /// The controller, where it is another one, whose copy tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
}

/// What became of something that was left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum LeftoverState {
    /// It is still there.
    Left,
    /// It is undone.
    PutBack,
    /// Another controller has undone it.
    PutBackByAnother,
    /// It could not be undone.
    Failed {
        /// Why.
        why: String,
    },
    /// It could not be undone, and is not to be tried again.
    Forgotten {
        /// Why.
        why: String,
    },
}

impl Leftover {
    /// A change that a journal tells of.
    pub(crate) fn journalled(journal: &Path, change: Change, state: LeftoverState) -> Self {
        Self {
            what: change.what,
            undo: change.undo,
            left_by: Some(LeftBy {
                pid: change.id.pid,
                time: change.time,
                journal: journal.to_owned(),
                copy: None,
                controller: None,
            }),
            state,
        }
    }

    /// A network namespace that no journal tells of.
    pub(crate) fn unjournalled(name: String, state: LeftoverState) -> Self {
        Self {
            what: format!("network namespace {name}"),
            undo: Undo::RemoveNamespace { name },
            left_by: None,
            state,
        }
    }

    /// Whether it could not be undone.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.state, LeftoverState::Failed { .. })
    }

    /// Whether it is that network namespace.
    pub(crate) fn is_namespace(&self, namespace: &str) -> bool {
        matches!(&self.undo, Undo::RemoveNamespace { name } if name == namespace)
    }

    /// Whether both are the same change.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let announced = |leftover: &Self| {
            let by = leftover.left_by.as_ref();
            by.map(|by| (by.pid, by.time.clone(), leftover.what.clone()))
        };
        announced(self) == announced(other)
    }

    /// The host that was changed; none where that is this machine.
    pub(crate) fn host(&self) -> Option<&str> {
        Some(&self.undo.destination()?.host)
    }

    /// What was changed where, and in which files that stands: a heading for lines of the same.
    #[must_use]
    pub fn place(&self) -> String {
        let host = self.host().unwrap_or("this machine");
        let Some(by) = &self.left_by else {
            return host.to_owned();
        };
        let journal = by.journal.display();
        match &by.copy {
            Some(copy) => format!(
                "{host}, by {journal} and its copy there, {}",
                copy.display()
            ),
            None if by.controller.is_some() => format!("{host}, by {journal} there"),
            None => format!("{host}, by {journal}"),
        }
    }

    /// What was left and what became of it, for below its [`place`](Self::place).
    #[must_use]
    pub fn line(&self) -> String {
        self.sentence("")
    }

    /// What was changed, and what puts it back, as a participle. On a host that may be a script.
    fn in_words(&self) -> (&str, String) {
        let what = &*self.what;
        let done = match &self.undo {
            Undo::OnHost { .. } if what == COPY => "removed".to_owned(),
            Undo::OnHost { .. } if what.starts_with(PROCESSES_OF) => "ended".to_owned(),
            Undo::OnHost { .. } => {
                // A value that was kept stands behind what had it.
                let kept = what.strip_suffix(')');
                if let Some((what, value)) = kept.and_then(|what| what.split_once(" (")) {
                    return (what, format!("set back to {value}"));
                }
                "undone".to_owned()
            }
            Undo::RemoveNamespace { .. } => "removed".to_owned(),
            Undo::Run {
                arguments,
                started: None,
                ..
            } => format!("undone by `{}`", command_line(arguments)),
            Undo::Run { arguments, .. } if *arguments == NOTHING => {
                "ended with all that it started".to_owned()
            }
            Undo::Run { arguments, .. } => format!(
                "ended with all that it started, and undone by `{}`",
                command_line(arguments)
            ),
            Undo::WriteSysctl { setting, value } => {
                format!("undone by setting sysctl {setting} to {:?}", value.trim())
            }
            Undo::Boot(BootUntil { until, .. }) => match until {
                Until::Kernel { .. } | Until::Itself { .. } => {
                    "undone by a boot as the host boots by itself".to_owned()
                }
                Until::Slice { slice } => format!("undone by a boot from slice {slice}"),
            },
        };
        (what, done)
    }

    fn sentence(&self, on: &str) -> String {
        let (what, done) = self.in_words();
        let by = match &self.left_by {
            Some(LeftBy { pid, time, .. }) => format!(", left by process {pid} at {time}"),
            None => ", left by a run that is gone".to_owned(),
        };
        match &self.state {
            LeftoverState::Left => format!("{what}{by}: to be {done}{on}"),
            LeftoverState::PutBack => format!("{done}{on}: {what}{by}"),
            LeftoverState::PutBackByAnother => {
                format!("{what}{by}: put back by another controller; nothing was changed{on}")
            }
            LeftoverState::Failed { why } => {
                format!("{what}{by}: could not be {done}{on}: {why}")
            }
            LeftoverState::Forgotten { why } => {
                format!("{what}{by}: forgotten; could not be {done}{on}: {why}")
            }
        }
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.host().map(|host| format!(" on {host}"));
        f.write_str(&self.sentence(&on.unwrap_or_default()))
    }
}

/// How many changes are left by how many runs, and the latest of them that is more than the copy of a journal; none where
/// nothing is left.
fn summary(leftovers: &[&Leftover]) -> Option<String> {
    let latest = leftovers.iter().find(|leftover| leftover.what != COPY);
    let (what, _) = latest.or(leftovers.first())?.in_words();
    let known = leftovers
        .iter()
        .filter_map(|leftover| leftover.left_by.as_ref());
    let runs: BTreeSet<(u32, Option<&String>)> =
        known.map(|by| (by.pid, by.controller.as_ref())).collect();
    let who = match runs.len() {
        0 | 1 => "a run has left".to_owned(),
        runs => format!("{runs} runs have left"),
    };
    Some(match leftovers.len() {
        1 => format!("{who} a change: {what}"),
        changes => format!("{who} {changes} changes, the latest: {what}"),
    })
}

/// A finding for each host and controller that has left something there.
pub(crate) fn findings_of(leftovers: &[Leftover], directory: &Path) -> Vec<Finding> {
    const CHECK: &str = "undo journal";
    let controller_of = |leftover: &Leftover| leftover.left_by.as_ref()?.controller.clone();
    let mut places: Vec<(Option<&str>, Option<String>)> = Vec::new();
    for leftover in leftovers {
        let place = (leftover.host(), controller_of(leftover));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let findings = places.into_iter().filter_map(|(host, controller)| {
        let is_here = |leftover: &&Leftover| {
            leftover.state == LeftoverState::Left
                && leftover.host() == host
                && controller_of(leftover) == controller
        };
        let here: Vec<&Leftover> = leftovers.iter().filter(is_here).collect();
        let check = host.map_or(CHECK.to_owned(), |host| format!("{host}: {CHECK}"));
        let seen = summary(&here)?;
        let in_journal = |leftover: &&Leftover| {
            let by = leftover.left_by.as_ref();
            by.is_none_or(|by| by.journal.starts_with(directory))
        };
        let (seen, remedy) = match controller {
            Some(owner) => (
                format!("{seen}; by {owner}"),
                "it may be measuring now: wait until it has ended. If it was killed, run `fwdlab restore` on that controller, as \
                 the user who started it; if that controller is gone, `fwdlab restore LAB` here puts it back",
            ),
            None if here.iter().all(in_journal) => (
                seen,
                "`fwdlab restore` puts it back, and so does the next run",
            ),
            None => (
                seen,
                "`fwdlab restore LAB` puts it back by the copy of this controller's journal there, and so does the next run",
            ),
        };
        Some(Finding::warning(check, seen, remedy))
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Destination;

    fn on_router(what: &str) -> Leftover {
        let script = ["sh", "-c", "[ ! -e \"$0\" ] || tee \"$0\"", "x"];
        Leftover {
            what: what.to_owned(),
            undo: Undo::OnHost {
                at: Destination {
                    host: "router".to_owned(),
                    config: None,
                },
                arguments: script.map(str::to_owned).into(),
                input: "0".to_owned(),
            },
            left_by: Some(LeftBy {
                pid: 7,
                time: "now".to_owned(),
                journal: "/state/host.jsonl".into(),
                copy: Some("/var/copy".into()),
                controller: None,
            }),
            state: LeftoverState::Left,
        }
    }

    #[test]
    fn what_is_left_on_a_host_is_described_in_words() {
        let mut leftover = on_router("sysctl net.ipv4.ip_forward (0)");
        assert_eq!(
            leftover.place(),
            "router, by /state/host.jsonl and its copy there, /var/copy"
        );
        assert_eq!(
            leftover.line(),
            "sysctl net.ipv4.ip_forward, left by process 7 at now: to be set back to 0"
        );
        leftover.state = LeftoverState::PutBack;
        assert_eq!(
            leftover.to_string(),
            "set back to 0 on router: sysctl net.ipv4.ip_forward, left by process 7 at now"
        );
        let put_back = |what: &str| Leftover {
            state: LeftoverState::PutBack,
            ..on_router(what)
        };
        for (what, said) in [
            (
                "route to 198.18.0.0/15",
                "undone on router: route to 198.18.0.0/15, left",
            ),
            (COPY, "removed on router: copy of the journal, left"),
            (
                "processes started by factor \"slow\" at level \"on\"",
                "ended on router: processes started by factor \"slow\" at level \"on\", left",
            ),
        ] {
            let leftover = put_back(what).to_string();
            assert!(leftover.starts_with(said), "{leftover}");
        }
        leftover.state = LeftoverState::PutBackByAnother;
        let said = leftover.to_string();
        let end = ": put back by another controller; nothing was changed on router";
        assert!(said.ends_with(end), "{said}");
    }

    #[test]
    fn a_program_that_was_started_is_ended_in_words() {
        let mut leftover = on_router("forwarder \"vpp\"");
        leftover.left_by = None;
        for (arguments, started, said) in [
            (&["true"][..], true, "to be ended with all that it started"),
            (&["rm", "x"], false, "to be undone by `rm x`"),
        ] {
            let text = format!(
                r#"{{"kind":"run","namespace":"n","arguments":{arguments:?}{}}}"#,
                if started {
                    r#","started":{"mark":"m"}"#
                } else {
                    ""
                }
            );
            leftover.undo = serde_json::from_str(&text).unwrap();
            assert_eq!(
                leftover.line(),
                format!("forwarder \"vpp\", left by a run that is gone: {said}")
            );
        }
    }

    #[test]
    fn runs_and_their_changes_are_counted() {
        let of_other = |pid| {
            let mut leftover = on_router("a route");
            leftover.left_by.as_mut().unwrap().pid = pid;
            leftover
        };
        let (copy, one, other) = (on_router(COPY), of_other(7), of_other(8));
        assert_eq!(summary(&[]), None);
        assert_eq!(
            summary(&[&one]).unwrap(),
            "a run has left a change: a route"
        );
        assert_eq!(
            summary(&[&copy, &one]).unwrap(),
            "a run has left 2 changes, the latest: a route"
        );
        assert_eq!(
            summary(&[&one, &other]).unwrap(),
            "2 runs have left 2 changes, the latest: a route"
        );
    }

    #[test]
    fn the_doctor_says_whose_the_changes_are_and_what_to_do() {
        let own = on_router("a route");
        let mut others = own.clone();
        let by = others.left_by.as_mut().unwrap();
        by.journal = "/copies/laptop.1.changes.jsonl".into();
        by.controller = Some("controller laptop.1 (journals in /home/a)".to_owned());
        let mut lost = own.clone();
        lost.left_by.as_mut().unwrap().journal = "/copies/here.1.changes.jsonl".into();
        let mut put_back = own.clone();
        put_back.state = LeftoverState::PutBackByAnother;
        let directory = Path::new("/state");
        let findings = findings_of(&[own, others, put_back.clone()], directory);
        let said: Vec<(&str, &str)> = findings
            .iter()
            .map(|finding| (&*finding.seen, finding.remedy.as_deref().unwrap()))
            .collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(findings[0].check, "router: undo journal");
        assert_eq!(said[0].0, "a run has left a change: a route");
        assert!(said[0].1.starts_with("`fwdlab restore` puts it back"));
        let owner = "; by controller laptop.1 (journals in /home/a)";
        assert!(said[1].0.ends_with(owner), "{said:?}");
        assert!(said[1].1.contains("as the user who started it"));
        assert_eq!(findings_of(&[put_back], directory), []);
        let findings = findings_of(&[lost], directory);
        let remedy = findings[0].remedy.as_deref().unwrap();
        assert!(
            remedy.starts_with("`fwdlab restore LAB` puts it back"),
            "{remedy}"
        );
    }
}
