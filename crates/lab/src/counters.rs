//! Where the DUT and the cables drop frames, by reason.

use std::collections::BTreeMap;
use std::path::Path;

use fwdlab_model::{AddressFamily, Direction};

use crate::kernel_file::read;
use crate::tester::IngressControl;
use crate::topology::{DUT_IN, DUT_OUT, TESTER_IN, TESTER_OUT, cable};
use crate::{LabError, Topology};

/// Frames dropped so far, by reason; only reasons that exclude each other, so that they add up.
pub(crate) type Drops = BTreeMap<String, u64>;

/// Under which the drop-at-ingress control's frames are counted.
const CONTROL: &str = "drop-at-ingress control";

/// More frames of others, such as neighbour discovery, are on no cable.
pub(crate) const OTHERS_MAX: u64 = 200;

/// Frames of one family on their way through the DUT, from when its load began to when it had ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThroughDut {
    pub(crate) offered_frames: u64,
    /// Counted by the ports where they come in.
    pub(crate) entered_frames: u64,
    /// Counted by the ports where they go out.
    pub(crate) left_frames: u64,
    pub(crate) forwarded_frames: u64,
}

impl ThroughDut {
    /// Frames that came in and neither went out nor were counted as dropped; none where they may have been lost elsewhere.
    pub(crate) fn lost(&self, drops: &Drops) -> Option<u64> {
        let ways_in = [cable(TESTER_OUT, DUT_IN), cable(TESTER_IN, DUT_OUT)];
        let ways_in = ways_in.iter().filter_map(|way| drops.get(way));
        let came_in = self.offered_frames.checked_sub(ways_in.sum())?;
        let dropped: u64 = drops.values().sum();
        let lost = self
            .offered_frames
            .checked_sub(self.forwarded_frames + dropped)?;
        let is_in_dut = came_in.abs_diff(self.entered_frames) <= OTHERS_MAX
            && self.left_frames.abs_diff(self.forwarded_frames) <= OTHERS_MAX;
        (is_in_dut && lost > 0).then_some(lost)
    }
}

/// Drop counters of the IPv4 stack: section of `/proc/net/{snmp,netstat}`, counter.
const INET: [(&str, &str); 8] = [
    ("Ip", "InHdrErrors"),
    ("Ip", "InAddrErrors"),
    ("Ip", "InDiscards"),
    ("Ip", "OutDiscards"),
    ("Ip", "OutNoRoutes"),
    ("Ip", "FragFails"),
    ("IpExt", "InNoRoutes"),
    ("TcpExt", "IPReversePathFilter"),
];

/// Drop counters of the IPv6 stack: lines of `/proc/net/snmp6`.
const INET6: [&str; 7] = [
    "Ip6InHdrErrors",
    "Ip6InTooBigErrors",
    "Ip6InNoRoutes",
    "Ip6InAddrErrors",
    "Ip6InDiscards",
    "Ip6OutDiscards",
    "Ip6OutNoRoutes",
];

/// Reads every drop counter on the way of one family's frames.
///
/// # Errors
/// When the kernel does not say.
pub(crate) fn drops(
    topology: &mut Topology,
    family: AddressFamily,
    direction: Direction,
    control: &IngressControl,
) -> Result<Drops, LabError> {
    let mut drops = Drops::new();
    drops.extend(topology.cable_drops(direction)?);
    drops.insert(CONTROL.to_owned(), control.frames(topology)?);
    let directory = Path::new("/proc/thread-self/net");
    let files: &[&str] = match family {
        AddressFamily::Inet => &["snmp", "netstat"],
        AddressFamily::Inet6 => &["snmp6"],
    };
    let text = topology.dut().run(|| {
        let texts = files.iter().map(|file| read(&directory.join(file)));
        texts.collect::<Result<String, LabError>>()
    })??;
    drops.extend(stack_drops(family, &text));
    Ok(drops)
}

/// The drop counters of a family's stack in the text of `/proc/net/snmp`, `netstat` and `snmp6`.
pub(crate) fn stack_drops(family: AddressFamily, text: &str) -> Drops {
    let of = |name: String, frames: Option<u64>| frames.map(|frames| (name, frames));
    match family {
        AddressFamily::Inet => INET
            .iter()
            .filter_map(|(section, counter)| {
                let frames = sectioned_counter(text, section, counter);
                of(format!("{section}.{counter}"), frames)
            })
            .collect(),
        AddressFamily::Inet6 => INET6
            .iter()
            .filter_map(|counter| of((*counter).to_owned(), listed_counter(text, counter)))
            .collect(),
    }
}

/// What was dropped between two readings; reasons without drops are left out.
pub(crate) fn difference(before: &Drops, after: &Drops) -> Drops {
    after
        .iter()
        .map(|(reason, &frames)| {
            (
                reason.clone(),
                frames - before.get(reason).copied().unwrap_or(0).min(frames),
            )
        })
        .filter(|&(_, frames)| frames > 0)
        .collect()
}

/// A counter of `/proc/net/snmp`'s form: a line of names, then a line of values, both led by the
/// section.
fn sectioned_counter(text: &str, section: &str, counter: &str) -> Option<u64> {
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(section)?.strip_prefix(':'))
        .map(str::split_ascii_whitespace);
    let place = lines.next()?.position(|name| name == counter)?;
    lines.next()?.nth(place)?.parse().ok()
}

/// A counter of `/proc/net/snmp6`'s form: name and value on a line.
fn listed_counter(text: &str, counter: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        (name == counter).then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "\
Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors
Ip: 1 64 1000 7 0
Icmp: InMsgs
Icmp: 3
TcpExt: SyncookiesSent
TcpExt: 0
IpExt: InNoRoutes InTruncatedPkts
IpExt: 12 0
";

    #[test]
    fn counters_are_found_by_name() {
        assert_eq!(sectioned_counter(SNMP, "Ip", "InHdrErrors"), Some(7));
        assert_eq!(sectioned_counter(SNMP, "IpExt", "InNoRoutes"), Some(12));
        assert_eq!(sectioned_counter(SNMP, "Ip", "Missing"), None);
        assert_eq!(sectioned_counter("Ip: A B\n", "Ip", "A"), None);
        let snmp6 = "Ip6InReceives                   \t5\nIp6InNoRoutes \t9\n";
        assert_eq!(listed_counter(snmp6, "Ip6InNoRoutes"), Some(9));
        assert_eq!(listed_counter(snmp6, "Ip6In"), None);
    }

    #[test]
    fn frames_are_lost_in_the_dut_where_the_ports_of_both_sides_saw_all_others() {
        let drops = Drops::from([("between tester-out and dut-in".to_owned(), 100)]);
        let through = ThroughDut {
            offered_frames: 10_000,
            entered_frames: 9_903,
            left_frames: 8_001,
            forwarded_frames: 8_000,
        };
        assert_eq!(through.lost(&drops), Some(1_900));
        for elsewhere in [
            ThroughDut {
                entered_frames: 9_000,
                ..through
            },
            ThroughDut {
                left_frames: 9_000,
                ..through
            },
            ThroughDut {
                left_frames: 9_900,
                forwarded_frames: 9_900,
                ..through
            },
        ] {
            assert_eq!(elsewhere.lost(&drops), None);
        }
    }

    #[test]
    fn only_what_was_dropped_meanwhile_remains() {
        let drops = |pairs: &[(&str, u64)]| -> Drops {
            pairs
                .iter()
                .map(|&(reason, frames)| (reason.to_owned(), frames))
                .collect()
        };
        let before = drops(&[("a", 5), ("b", 1)]);
        let after = drops(&[("a", 5), ("b", 4), ("c", 2)]);
        assert_eq!(difference(&before, &after), drops(&[("b", 3), ("c", 2)]));
    }
}
