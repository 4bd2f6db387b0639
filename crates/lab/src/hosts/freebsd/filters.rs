//! FreeBSD's packet filters: pf, ipfw and IP Filter, each set to a ruleset as a whole, and switched off where a
//! level has none.

use std::collections::BTreeMap;

use fwdlab_model::PacketFilter;

use crate::LabError;
use crate::hosts::dut::announce;
use crate::hosts::ssh::Connection;
use crate::journal::Journal;

/// What switches ipfw, for both families.
const IPFW_SWITCHES: [&str; 2] = ["net.inet.ip.fw.enable", "net.inet6.ip6.fw.enable"];

/// The rule that ipfw always has, and that nobody can add.
const IPFW_LAST_RULE: &str = "65535";

/// What a packet filter does on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) is_enabled: bool,
    /// The rules, as its program lists them and takes them again.
    pub(super) rules: String,
}

/// A packet filter's name.
pub(super) const fn name(filter: PacketFilter) -> &'static str {
    match filter {
        PacketFilter::Pf => "pf",
        PacketFilter::Ipfw => "ipfw",
        PacketFilter::Ipf => "ipf",
    }
}

/// What a filter does; none where it is not loaded.
///
/// # Errors
/// Those of the connection.
pub(super) fn state(
    connection: &Connection,
    filter: PacketFilter,
) -> Result<Option<State>, LabError> {
    let questions: &[&str] = match filter {
        PacketFilter::Pf => &["pfctl -s info", "pfctl -s nat", "pfctl -s rules"],
        PacketFilter::Ipfw => &["sysctl -n net.inet.ip.fw.enable", "ipfw list"],
        PacketFilter::Ipf => &["ipf -V", "ipfstat -io"],
    };
    let commands: Vec<Vec<String>> = questions
        .iter()
        .map(|question| question.split(' ').map(str::to_owned).collect())
        .collect();
    let answers = connection.run_all(&commands)?;
    let mut answers = answers.into_iter();
    let Some(about) = answers.next().flatten() else {
        return Ok(None);
    };
    let texts: Vec<String> = answers.map(Option::unwrap_or_default).collect();
    Ok(Some(State {
        is_enabled: is_enabled(filter, &about),
        rules: rules(filter, &texts.concat()),
    }))
}

fn is_enabled(filter: PacketFilter, about: &str) -> bool {
    match filter {
        PacketFilter::Pf => about.trim_start().starts_with("Status: Enabled"),
        PacketFilter::Ipfw => about.trim() == "1",
        PacketFilter::Ipf => about
            .lines()
            .any(|line| line.trim().starts_with("Running: yes")),
    }
}

/// What a filter lists, as it takes it again.
fn rules(filter: PacketFilter, listed: &str) -> String {
    let lines = listed.lines().filter(|line| match filter {
        PacketFilter::Pf => true,
        PacketFilter::Ipfw => !line.trim_start().starts_with(IPFW_LAST_RULE),
        PacketFilter::Ipf => !line.starts_with("empty list"),
    });
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Why a ruleset cannot be had; none where it can.
///
/// # Errors
/// Those of the connection.
pub(super) fn unavailable(
    connection: &Connection,
    filter: PacketFilter,
    text: &str,
) -> Result<Option<String>, LabError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    if state(connection, filter)?.is_none() {
        let module = match filter {
            PacketFilter::Ipf => "ipl",
            other => name(other),
        };
        return Ok(Some(format!(
            "{} is not loaded there; `kldload {module}` does it{}",
            name(filter),
            if filter == PacketFilter::Ipfw {
                ", with net.inet.ip.fw.default_to_accept=1 in its kenv, or it cuts the host off"
            } else {
                ""
            }
        )));
    }
    if filter == PacketFilter::Pf && text.lines().any(is_option) {
        return Ok(Some(
            "it sets options of pf (`set …`), which pf does not list and nobody could put back; have them in the \
             host's own pf.conf"
                .to_owned(),
        ));
    }
    if filter == PacketFilter::Ipfw {
        let by_default =
            connection.run(&["sysctl", "-n", "net.inet.ip.fw.default_to_accept"], "")?;
        if by_default.trim() != "1" && !lets_ssh_through(text) {
            return Ok(Some(
                "its ipfw denies what no rule allows, and no rule of the level allows ssh: it would cut this \
                 connection; add `allow tcp from any to me 22` and `allow tcp from me 22 to any`"
                    .to_owned(),
            ));
        }
    }
    Ok(None)
}

/// Whether a line of a ruleset sets an option of pf.
fn is_option(line: &str) -> bool {
    line.split_whitespace().next() == Some("set")
}

/// Whether some rule of ipfw allows what comes in for ssh, without a look at those before it.
fn lets_ssh_through(text: &str) -> bool {
    text.lines().any(|line| {
        let words: Vec<&str> = line
            .split_whitespace()
            .take_while(|word| !word.starts_with('#'))
            .collect();
        let Some(place) = words
            .iter()
            .position(|word| ["allow", "accept", "pass", "permit"].contains(word))
        else {
            return false;
        };
        match &words[place + 1..] {
            [protocol, "from", "any", "to", "any" | "me"] => {
                ["all", "ip", "ip4", "tcp"].contains(protocol)
            }
            ["tcp", "from", "any", "to", "any" | "me", port, ..] => {
                port.split(',').any(|port| port == "22" || port == "ssh")
            }
            _ => false,
        }
    })
}

/// A ruleset as a filter's program reads it.
fn script(filter: PacketFilter, text: &str) -> String {
    match filter {
        PacketFilter::Pf | PacketFilter::Ipf => text.to_owned(),
        PacketFilter::Ipfw => {
            let lines = text.lines().map(str::trim);
            let rules = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
            let rules = rules.map(|rule| match rule.strip_prefix("add ") {
                Some(_) => format!("{rule}\n"),
                None => format!("add {rule}\n"),
            });
            std::iter::once("-f flush\n".to_owned())
                .chain(rules)
                .collect()
        }
    }
}

/// The command that sets a filter to rules on its standard input, and switches it on or off; doing it twice is the
/// same as doing it once.
fn command(filter: PacketFilter, is_enabled: bool) -> Vec<String> {
    // A filter that is off cannot cut the connection while its rules are replaced. pf's and IP Filter's are
    // replaced at once, ipfw's one by one. With `-m` pf keeps its options, but for skipped interfaces: they are not among the rules that it lists.
    let script = match (filter, is_enabled) {
        (PacketFilter::Pf, true) => {
            "pfctl -q -m -f - && { pfctl -q -e || pfctl -s info | grep -q '^Status: Enabled'; }"
        }
        (PacketFilter::Pf, false) => {
            "{ pfctl -q -d || pfctl -s info | grep -q '^Status: Disabled'; } && pfctl -q -m -f -"
        }
        (PacketFilter::Ipfw, true) => {
            "sysctl \"$0=0\" \"$1=0\" && ipfw -q /dev/stdin && sysctl \"$0=1\" \"$1=1\""
        }
        (PacketFilter::Ipfw, false) => "sysctl \"$0=0\" \"$1=0\" && ipfw -q /dev/stdin",
        (PacketFilter::Ipf, true) => {
            "ipf -Fa -f - && { ipf -V | grep -q 'Running: yes' || ipf -E; }"
        }
        (PacketFilter::Ipf, false) => {
            "ipf -Fa -f - && { ipf -V | grep -q 'Running: no' || ipf -D; }"
        }
    };
    let switches: &[&str] = match filter {
        PacketFilter::Ipfw => &IPFW_SWITCHES,
        PacketFilter::Pf | PacketFilter::Ipf => &[],
    };
    let words = ["sh", "-c", script].into_iter();
    words
        .chain(switches.iter().copied())
        .map(str::to_owned)
        .collect()
}

/// Announces what a filter does now, so that it is put back.
///
/// # Errors
/// `Host` where pf holds what its rules do not show, and those of the connection.
pub(super) fn keep(
    connection: &Connection,
    journal: &mut Journal,
    filter: PacketFilter,
) -> Result<(), LabError> {
    let Some(state) = state(connection, filter)? else {
        return Ok(());
    };
    if filter == PacketFilter::Pf {
        for what in ["Tables", "Anchors"] {
            let listed = connection.run(&["pfctl", "-s", what], "")?;
            if !listed.trim().is_empty() {
                return Err(LabError::Host {
                    host: connection.host().to_owned(),
                    why: format!(
                        "its pf has {} of its own, which could not be put back; take them out with \
                         `pfctl -F all`, or measure with a pf that has none",
                        what.to_lowercase()
                    ),
                });
            }
        }
        let interfaces = connection.run(&["pfctl", "-v", "-s", "Interfaces"], "")?;
        if interfaces.contains("(skip)") {
            return Err(LabError::Host {
                host: connection.host().to_owned(),
                why: "its pf skips interfaces (`set skip`), which every load of rules forgets and pf does not list among \
                      them; write `pass quick on lo0` or the like in their place"
                    .to_owned(),
            });
        }
    }
    let undo = command(filter, state.is_enabled);
    let rules = script(filter, &in_order(filter, &state.rules));
    let what = format!("the rules of {}", name(filter));
    announce(connection, journal, what, &undo, &rules).map(|_| ())
}

/// Rules as a filter takes them back: pf wants what normalises in front of what translates, and lists it behind.
fn in_order(filter: PacketFilter, listed: &str) -> String {
    if filter != PacketFilter::Pf {
        return listed.to_owned();
    }
    let normalises = |line: &&str| {
        let words = line.split_whitespace();
        words.take(2).any(|word| word == "scrub")
    };
    let (first, rest): (Vec<&str>, Vec<&str>) = listed.lines().partition(normalises);
    let lines = first.into_iter().chain(rest);
    lines.map(|line| format!("{line}\n")).collect()
}

/// The filters of a host, with what each ruleset is listed as.
#[derive(Debug, Default)]
pub(super) struct Filters {
    /// By filter and text: a filter lists rules in its own words.
    listed: BTreeMap<(&'static str, String), State>,
}

impl Filters {
    /// Nothing is known of what is listed.
    pub(super) fn forget(&mut self) {
        self.listed.clear();
    }

    /// Sets a filter to a ruleset; an empty one switches it off.
    ///
    /// # Errors
    /// What the filter says of the ruleset, and those of the connection.
    pub(super) fn apply(
        &self,
        connection: &Connection,
        filter: PacketFilter,
        text: &str,
    ) -> Result<(), LabError> {
        let is_none = text.trim().is_empty();
        // What is not loaded filters nothing.
        if is_none && state(connection, filter)?.is_none() {
            return Ok(());
        }
        let command = command(filter, !is_none);
        connection.run(&command, &script(filter, text)).map(|_| ())
    }

    /// What a filter was when its ruleset was first read back, and is now, where that differs.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn moved(
        &mut self,
        connection: &Connection,
        filter: PacketFilter,
        text: &str,
    ) -> Result<Option<(String, String)>, LabError> {
        let is_none = text.trim().is_empty();
        let now = state(connection, filter)?.unwrap_or(State {
            is_enabled: false,
            rules: String::new(),
        });
        let key = (name(filter), text.to_owned());
        let first = self.listed.entry(key).or_insert_with(|| now.clone());
        let is_whole = *first == now
            && now.is_enabled != is_none
            && (filter == PacketFilter::Ipf || now.rules.trim().is_empty() == is_none);
        let shown = |state: &State| {
            let switch = if state.is_enabled { "on" } else { "off" };
            format!("{switch} {}", state.rules)
        };
        let asked = State {
            is_enabled: !is_none,
            rules: first.rules.clone(),
        };
        Ok((!is_whole).then(|| (shown(&asked), shown(&now))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_filter_does_is_read() {
        let pf = "Status: Enabled for 0 days 00:00:05           Debug: Urgent\n\nState Table\n";
        assert!(is_enabled(PacketFilter::Pf, pf));
        assert!(!is_enabled(
            PacketFilter::Pf,
            "Status: Disabled for 0 days\n"
        ));
        let ipf =
            "ipf: IP Filter: v5.1.2 (576)\nKernel: IP Filter: v5.1.2\nRunning: yes\nLog Flags: 0\n";
        assert!(is_enabled(PacketFilter::Ipf, ipf));
        let ipfw = "00100 allow ip from any to any via lo0\n65535 deny ip from any to any\n";
        assert_eq!(
            rules(PacketFilter::Ipfw, ipfw),
            "00100 allow ip from any to any via lo0\n"
        );
        let none = "empty list for ipfilter(out)\nempty list for ipfilter(in)\n";
        assert_eq!(rules(PacketFilter::Ipf, none), "");
    }

    #[test]
    fn ipfw_gets_its_rules_one_by_one_behind_a_flush() {
        let text = "# rules\nadd 100 allow ip from any to any\n\n200 deny udp from any to any\n";
        assert_eq!(
            script(PacketFilter::Ipfw, text),
            "-f flush\nadd 100 allow ip from any to any\nadd 200 deny udp from any to any\n"
        );
        assert_eq!(script(PacketFilter::Ipfw, ""), "-f flush\n");
        assert_eq!(script(PacketFilter::Pf, text), text);
    }

    #[test]
    fn pf_takes_back_what_it_lists_and_no_options() {
        let listed = "nat on ix0 inet all -> (ix0)\nscrub in all fragment reassemble\npass all flags S/SA keep state\n";
        assert_eq!(
            in_order(PacketFilter::Pf, listed),
            "scrub in all fragment reassemble\nnat on ix0 inet all -> (ix0)\npass all flags S/SA keep state\n"
        );
        assert_eq!(in_order(PacketFilter::Ipf, listed), listed);
        assert!(is_option("  set skip on lo0") && !is_option("pass all # set") && !is_option(""));
    }

    #[test]
    fn rules_that_cut_ssh_are_seen() {
        for (text, lets_through) in [
            ("allow ip from any to any", true),
            ("add 3000 allow all from any to any\n", true),
            ("allow tcp from any to me 22 setup keep-state", true),
            ("allow ip from any to any via ix0", false),
            ("allow udp from any to any", false),
            ("deny ip from any to any", false),
            ("allow # tcp from any to any", false),
            ("", false),
        ] {
            assert_eq!(lets_ssh_through(text), lets_through, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_list_is_read(text in "([a-z0-9 #]{0,20}\n|\\PC){0,20}") {
            for filter in [PacketFilter::Pf, PacketFilter::Ipfw, PacketFilter::Ipf] {
                let rules = rules(filter, &text);
                prop_assert_eq!(super::rules(filter, &rules), rules.clone());
                let _ = (is_enabled(filter, &text), script(filter, &text), lets_ssh_through(&text));
            }
        }
    }
}
