//! Which of the events that were sampled a profile is of.

use std::fmt::Write as _;

/// How many events a message names.
const NAMED_MAX: usize = 10;

/// How many samples were taken of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSamples {
    /// The event, as the profiler prints it, with its modifiers: `cycles:ppp`.
    pub event: String,
    /// Its samples.
    pub samples: u64,
}

/// An event was asked for of which there are no samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no samples of {event:?}; {}", of_others(.others))]
pub struct NoSuchEvent {
    /// What was asked for.
    pub event: String,
    /// What there is instead, the most samples first.
    pub others: Vec<EventSamples>,
}

fn of_others(others: &[EventSamples]) -> String {
    match others {
        [] => "it names no event".to_owned(),
        _ => format!("it has those of {}", named_events(others)),
    }
}

/// The samples of events, the most first and otherwise by name.
pub(crate) fn most_first(samples: impl Iterator<Item = (String, u64)>) -> Vec<EventSamples> {
    let mut events: Vec<_> = samples
        .map(|(event, samples)| EventSamples { event, samples })
        .collect();
    events.sort_unstable_by(|a, b| {
        b.samples
            .cmp(&a.samples)
            .then_with(|| a.event.cmp(&b.event))
    });
    events
}

/// `page-faults (10), context-switches (58)`.
#[must_use]
pub fn named_events(events: &[EventSamples]) -> String {
    let mut text = String::new();
    for EventSamples { event, samples } in events.iter().take(NAMED_MAX) {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{} ({samples})", event.escape_debug());
    }
    if events.len() > NAMED_MAX {
        let _ = write!(text, " and {} more", events.len() - NAMED_MAX);
    }
    text
}

/// Whether samples of two events may be compared: the names are equal, but for how precise the address of a sample is.
///
/// `cycles:ppp` is sampled as `cycles` is; `cycles:u` is not, without the kernel.
#[must_use]
pub fn is_same_event(a: &str, b: &str) -> bool {
    without_precision(a) == without_precision(b)
}

/// A name and its modifiers, those of precision left out.
fn without_precision(event: &str) -> (&str, String) {
    // `cycles:ppp`, and `cpu_core/cycles/ppp`.
    let (name, modifiers) = match event.rfind([':', '/']) {
        Some(at) => (&event[..at], &event[at + 1..]),
        None => (event, ""),
    };
    if modifiers
        .bytes()
        .all(|byte| b"ukhvHGISpPDWebR".contains(&byte))
    {
        let kept = modifiers.chars().filter(|char| !matches!(char, 'p' | 'P'));
        (name.trim_end_matches('/'), kept.collect())
    } else {
        (event, String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_but_for_their_precision() {
        for (a, b, is_same) in [
            ("cycles", "cycles:ppp", true),
            ("cycles:P", "cycles:p", true),
            ("cycles:uppp", "cycles:u", true),
            ("cpu_core/cycles/", "cpu_core/cycles/ppp", true),
            ("cpu-clock", "cpu-clock:u", false),
            ("cpu_core/cycles/", "cpu_atom/cycles/", false),
            ("sched:sched_switch", "sched:sched_wakeup", false),
            ("probe_libc:malloc", "probe_libc:malloc__return", false),
        ] {
            assert_eq!(is_same_event(a, b), is_same, "{a} {b}");
        }
    }

    #[test]
    fn a_missing_event_is_said_with_those_that_are_there() {
        let of = |event: &str, samples| EventSamples {
            event: event.into(),
            samples,
        };
        let mut missing = NoSuchEvent {
            event: "cycles".into(),
            others: vec![of("cpu-clock:u", 43), of("page-faults", 10)],
        };
        assert_eq!(
            missing.to_string(),
            "no samples of \"cycles\"; it has those of cpu-clock:u (43), page-faults (10)"
        );
        missing.others = (0..12).map(|number| of("a", number)).collect();
        assert!(missing.to_string().ends_with("a (9) and 2 more"));
        missing.others.clear();
        assert_eq!(
            missing.to_string(),
            "no samples of \"cycles\"; it names no event"
        );
    }
}
