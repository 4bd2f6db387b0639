//! FreeBSD's packet filters: pf, ipfw and IP Filter, each set to a ruleset as a whole, and switched off where a
//! level has none.

use std::collections::BTreeMap;

use fwdlab_model::{PacketFilter, Variant};

use super::by_level::Rulesets;
use super::question::{Answers, Question};
use super::step::{Action, Errand, Step, owned, words_of};
use super::{Mechanism, sysctl};
use crate::{LabError, Moved};

/// What switches ipfw, for both families.
const IPFW_SWITCHES: [&str; 2] = ["net.inet.ip.fw.enable", "net.inet6.ip6.fw.enable"];

/// The rule that ipfw always has, and that nobody can add.
const IPFW_LAST_RULE: &str = "65535";

/// With what a line of ipfw begins that is no rule without its `add` (FreeBSD, `sbin/ipfw/main.c`, `ipfw_main`).
const IPFW_COMMANDS: [&str; 12] = [
    "add", "delete", "disable", "enable", "flush", "internal", "list", "print", "resetlog", "show",
    "table", "zero",
];
/// With what such a line begins, and a rule too: `pipe 1 config bw 1Gbit/s`, and `pipe 1 ip from any to any`.
const IPFW_OBJECTS: [&str; 10] = [
    "flowset",
    "nat",
    "nat64clat",
    "nat64lsn",
    "nat64stl",
    "nptv6",
    "pipe",
    "queue",
    "sched",
    "set",
];
/// What stands behind an object, or behind its name, where the line is no rule.
const IPFW_VERBS: [&str; 15] = [
    "config", "create", "delete", "destroy", "disable", "enable", "flush", "list", "move", "print",
    "resetlog", "show", "stats", "swap", "zero",
];

/// Whether ipfw lets through what no rule is about.
const IPFW_DEFAULT: &str = "net.inet.ip.fw.default_to_accept";

/// What a packet filter does on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    is_enabled: bool,
    /// The rules, as its program lists them and takes them again.
    rules: String,
}

/// A packet filter's name.
const fn name(filter: PacketFilter) -> &'static str {
    match filter {
        PacketFilter::Pf => "pf",
        PacketFilter::Ipfw => "ipfw",
        PacketFilter::Ipf => "ipf",
    }
}

/// What has to be asked to find out what a filter does: the first of it fails where the filter is not loaded.
fn questions(filter: PacketFilter) -> Vec<Vec<String>> {
    let questions: &[&str] = match filter {
        PacketFilter::Pf => &["pfctl -s info", "pfctl -s nat", "pfctl -s rules"],
        PacketFilter::Ipfw => &["sysctl -n net.inet.ip.fw.enable", "ipfw -S list"],
        PacketFilter::Ipf => &["ipf -V", "ipfstat -io"],
    };
    questions.iter().map(|line| words_of(line)).collect()
}

/// What a filter does; none where it is not loaded.
fn state(filter: PacketFilter, answers: &Answers) -> Option<State> {
    let questions = questions(filter);
    let about = answers.get(&questions[0])?;
    // White space around an answer is gone, and with it the end of its last line.
    let listed = questions[1..].iter().map(|question| {
        let text = answers.get(question).unwrap_or_default();
        let end = if text.is_empty() { "" } else { "\n" };
        format!("{text}{end}")
    });
    Some(State {
        is_enabled: is_enabled(filter, about),
        rules: rules(filter, &listed.collect::<String>()),
    })
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

/// Why a filter cannot have a ruleset that is not empty; none where it can.
fn lacking(filter: PacketFilter, text: &str, answers: &Answers) -> Option<String> {
    if state(filter, answers).is_none() {
        let module = match filter {
            PacketFilter::Ipf => "ipl",
            other => name(other),
        };
        return Some(format!(
            "{} is not loaded there; `kldload {module}` does it{}",
            name(filter),
            if filter == PacketFilter::Ipfw {
                ", with net.inet.ip.fw.default_to_accept=1 in its kenv, or it cuts the host off"
            } else {
                ""
            }
        ));
    }
    if filter == PacketFilter::Pf && text.lines().any(|line| begins_with(line, "set")) {
        return Some(
            "it sets options of pf (`set …`), which are not loaded with a level: pf does not list them, and nobody \
             could put them back; have them in the host's own pf.conf"
                .to_owned(),
        );
    }
    if filter == PacketFilter::Pf && text.lines().any(|line| begins_with(line, "ether")) {
        return Some(
            "it has rules of Ethernet (`ether …`), which are not loaded with a level: fwdlab keeps the host's own; have \
             them in the host's pf.conf"
                .to_owned(),
        );
    }
    if filter == PacketFilter::Pf && system_rule(text).is_some() {
        return Some(
            "it has rules for operating systems (`os …`), which would match nothing: pfctl reads fingerprints only when it \
             loads options, and fwdlab keeps the host's own; leave `os` out of the level"
                .to_owned(),
        );
    }
    let allows_by_default = answers.get(&sysctl::shown(IPFW_DEFAULT)) == Some("1");
    if filter == PacketFilter::Ipfw && !allows_by_default && !lets_ssh_through(text) {
        return Some(
            "its ipfw denies what no rule allows, and no rule of the level allows ssh: it would cut this \
             connection; add `allow tcp from any to me 22` and `allow tcp from me 22 to any`"
                .to_owned(),
        );
    }
    None
}

/// Whether a word is the first of a line of a ruleset.
fn begins_with(line: &str, word: &str) -> bool {
    line.split_whitespace().next() == Some(word)
}

/// A line of pf's that asks for an operating system, `from any os "Windows"`, or defines a macro that does; none where none
/// does.
///
/// # Source
/// FreeBSD, `sbin/pfctl/parse.y`: `yylex` for what ends a word (`allowed_in_string`), `expand_rule` for the rule, which
/// is loaded also where its system is not known; `sbin/pfctl/pfctl.c`, `main`, reads the systems with
/// `PFCTL_FLAG_OPTION` alone.
fn system_rule(text: &str) -> Option<&str> {
    let ends_word = |sign: char| sign.is_whitespace() || "(){}<>!=/,\"'\\".contains(sign);
    text.lines().find(|line| {
        let rule = line.split('#').next().unwrap_or_default();
        rule.split(ends_word).any(|word| word == "os")
    })
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
            let rules = rules.map(|rule| match is_ipfw_command(rule) {
                true => format!("{rule}\n"),
                false => format!("add {rule}\n"),
            });
            std::iter::once("-f flush\n".to_owned())
                .chain(rules)
                .collect()
        }
    }
}

/// Whether ipfw takes a line as it is; else it is a rule without `add`.
fn is_ipfw_command(line: &str) -> bool {
    let mut words = line.split_whitespace().peekable();
    // `100 add …` is `add 100 …` to it.
    words.next_if(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    words.next().is_some_and(|first| {
        first.starts_with('-')
            || IPFW_COMMANDS.contains(&first)
            || IPFW_OBJECTS.contains(&first) && words.take(2).any(|word| IPFW_VERBS.contains(&word))
    })
}

/// The command that sets a filter to rules on its standard input, and switches it on or off; doing it twice is the
/// same as doing it once.
fn command(filter: PacketFilter, is_enabled: bool) -> Vec<String> {
    // A filter that is off cannot cut the connection while its rules are replaced. pf's are replaced at once, ipfw's and
    // IP Filter's one by one. With `-A -N -R -T load` pf gets queues, translation, rules and tables, and keeps
    // its options and its rules of Ethernet, which the rules that it lists are without; `-m` would keep neither SYN cookies
    // nor keepcounters (FreeBSD, `sbin/pfctl/pfctl.c`: `pfctl_load_options`, `pfctl_rules`). Newer ones refuse `-T` without
    // a table's name, which `load` does not look at (`main` there). With `-o none` it keeps the
    // rules as they are written: else it takes out doubles, sorts them, and folds six that differ in an address into one
    // with a table of a random name (`sbin/pfctl/pfctl_optimize.c`). IP Filter takes rules only while it is on, and has none
    // while it is off (`sys/netpfil/ipfilter/netinet/ip_fil_freebsd.c`, `ipfioctl`, `ipfdetach`).
    let script = match (filter, is_enabled) {
        (PacketFilter::Pf, true) => {
            "pfctl -q -A -N -R -T load -t fwdlab -o none -f - && { pfctl -q -e || pfctl -s info | grep -q '^Status: Enabled'; }"
        }
        (PacketFilter::Pf, false) => {
            "{ pfctl -q -d || pfctl -s info | grep -q '^Status: Disabled'; } && pfctl -q -A -N -R -T load -t fwdlab -o none -f -"
        }
        (PacketFilter::Ipfw, true) => {
            "sysctl \"$0=0\" \"$1=0\" && ipfw -q /dev/stdin && sysctl \"$0=1\" \"$1=1\""
        }
        (PacketFilter::Ipfw, false) => "sysctl \"$0=0\" \"$1=0\" && ipfw -q /dev/stdin",
        (PacketFilter::Ipf, true) => {
            "{ ipf -V | grep -q 'Running: yes' || ipf -E; } && ipf -Fa -f -"
        }
        (PacketFilter::Ipf, false) => "cat >/dev/null; ipf -V | grep -q 'Running: no' || ipf -D",
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

const PF_TABLES: [&str; 3] = ["pfctl", "-s", "Tables"];
const PF_ANCHORS: [&str; 3] = ["pfctl", "-s", "Anchors"];
const PF_INTERFACES: [&str; 4] = ["pfctl", "-v", "-s", "Interfaces"];

/// Fails where pf holds what its rules do not show, or what no load brings back.
fn prove_that_rules_are_all(rules: &str, answers: &Answers) -> Result<(), LabError> {
    if let Some(rule) = system_rule(rules) {
        return Err(answers.wrong(format!(
            "its pf has a rule for an operating system, which would match nothing once it is put back, because pfctl reads \
             fingerprints only when it loads options: {rule}; see `pfctl -s rules`, and take such rules out before the run"
        )));
    }
    for (what, words) in [("tables", PF_TABLES), ("anchors", PF_ANCHORS)] {
        if !answers.needed(&owned(&words))?.is_empty() {
            return Err(answers.wrong(format!(
                "its pf has {what} of its own, which could not be put back; take them out with \
                 `pfctl -F all`, or measure with a pf that has none (a table __automatic_... is made by pfctl, \
                 of alike rules that are loaded without its `-o none`)"
            )));
        }
    }
    if answers.needed(&owned(&PF_INTERFACES))?.contains("(skip)") {
        return Err(answers.wrong(
            "its pf skips interfaces (`set skip`): a level's rules would not see their frames; write `pass quick on \
             lo0` or the like in their place"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Fails where the owner's rules of ipfw would not come back: those of a set that is off, and those of set 31, which no
/// `flush` takes away (FreeBSD, `sbin/ipfw/ipfw2.c`, `show_static_rule`; `sys/netinet/ip_fw.h`, `RESVD_SET`).
fn prove_that_sets_come_back(rules: &str, answers: &Answers) -> Result<(), LabError> {
    let stays_away = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.first() == Some(&"#") || words.get(1..3) == Some(&["set", "31"])
    };
    rules.lines().find(stays_away).map_or(Ok(()), |line| {
        Err(answers.wrong(format!(
            "its ipfw has a rule that could not be put back, of a set that is off or of set 31: {line}; see \
             `ipfw -S list`, and take such rules out before the run"
        )))
    })
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

/// One filter of a FreeBSD host.
pub(super) struct Filter {
    filter: PacketFilter,
    rulesets: Rulesets,
    /// What each ruleset is listed as, by its text: a filter lists rules in its own words.
    listed: BTreeMap<String, State>,
    /// What is not loaded filters nothing, and need not be switched off.
    is_loaded: bool,
}

impl Filter {
    pub(super) fn new(filter: PacketFilter, rulesets: Rulesets) -> Self {
        Self {
            filter,
            rulesets,
            listed: BTreeMap::new(),
            is_loaded: true,
        }
    }

    fn state(&self) -> impl Iterator<Item = Question> {
        questions(self.filter).into_iter().map(Question::maybe)
    }
}

impl Mechanism for Filter {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        if self.rulesets.with_rules(variant)?.is_none() {
            return Ok(Vec::new());
        }
        let mut questions: Vec<Question> = self.state().collect();
        if self.filter == PacketFilter::Ipfw {
            questions.push(Question::maybe(sysctl::shown(IPFW_DEFAULT)));
        }
        Ok(questions)
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let ruleset = self.rulesets.with_rules(variant)?;
        Ok(ruleset.and_then(|text| lacking(self.filter, &text, answers)))
    }

    fn looks(&self) -> Vec<Question> {
        let mut questions: Vec<Question> = self.state().collect();
        if self.filter == PacketFilter::Pf {
            let besides = [&PF_TABLES[..], &PF_ANCHORS, &PF_INTERFACES];
            questions.extend(besides.map(|words| Question::maybe(owned(words))));
        }
        questions
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let filter = self.filter;
        let state = state(filter, answers);
        self.is_loaded = state.is_some();
        let Some(state) = state else {
            return Ok(Vec::new());
        };
        match filter {
            PacketFilter::Pf => prove_that_rules_are_all(&state.rules, answers)?,
            PacketFilter::Ipfw => prove_that_sets_come_back(&state.rules, answers)?,
            PacketFilter::Ipf => {}
        }
        let rules = script(filter, &in_order(filter, &state.rules));
        let undo = Errand::reading(&command(filter, state.is_enabled), &rules);
        let what = format!("the rules of {}", name(filter));
        Ok(vec![Step::kept(what, undo)])
    }

    fn forget(&mut self) {
        self.listed.clear();
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let ruleset = self.rulesets.whole(variant)?;
        let set = ruleset.filter(|text| self.is_loaded || !text.trim().is_empty());
        let actions = set.into_iter().map(|text| {
            let command = command(self.filter, !text.trim().is_empty());
            Action::Run(Errand::reading(&command, &script(self.filter, &text)))
        });
        Ok(actions.collect())
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let ruleset = self.rulesets.whole(variant)?;
        Ok(ruleset.into_iter().flat_map(|_| self.state()).collect())
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        let Some(text) = self.rulesets.whole(variant)? else {
            return Ok(None);
        };
        let is_none = text.trim().is_empty();
        let now = state(self.filter, answers).unwrap_or_default();
        let first = self.listed.entry(text).or_insert_with(|| now.clone());
        let is_whole = *first == now
            && now.is_enabled != is_none
            && (self.filter == PacketFilter::Ipf || now.rules.trim().is_empty() == is_none);
        let asked = State {
            is_enabled: !is_none,
            rules: first.rules.clone(),
        };
        let setting = format!("the rules of {}", name(self.filter));
        Ok((!is_whole).then(|| Moved::of(setting, asked.shown(), now.shown())))
    }
}

impl State {
    fn shown(&self) -> String {
        let switch = if self.is_enabled { "on" } else { "off" };
        format!("{switch} {}", self.rules)
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

    // FreeBSD, `sbin/ipfw/main.c`, `ipfw_main`: the words that it compares the first of a line with.
    #[test]
    fn ipfw_gets_its_commands_as_they_are() {
        for command in [
            "-q add 100 allow ip from any to any",
            "100 add allow ip from any to any",
            "table 1 add 198.18.0.0/16",
            "nat 1 config if ix0",
            "nat64lsn NAT64 create prefix4 192.0.2.0/24",
            "pipe 1 config bw 1Gbit/s",
            "pipe config 1 bw 1Gbit/s",
            "queue 2 config pipe 1",
            "sched flush",
            "set disable 5",
            "set 5 delete",
            "disable one_pass",
            "delete 100",
        ] {
            let expected = format!("-f flush\n{command}\n");
            assert_eq!(script(PacketFilter::Ipfw, command), expected);
        }
        for rule in [
            "allow ip from any to any",
            "100 pipe 1 ip from any to any",
            "nat 1 ip from any to any",
            "nptv6 NPT ip6 from any to any",
            "queue 2 ip from any to any",
            "set 5 allow ip from any to any",
            "check-state",
        ] {
            let expected = format!("-f flush\nadd {rule}\n");
            assert_eq!(script(PacketFilter::Ipfw, rule), expected);
        }
    }

    #[test]
    fn pf_takes_back_what_it_lists_and_no_options() {
        let listed = "nat on ix0 inet all -> (ix0)\nscrub in all fragment reassemble\npass all flags S/SA keep state\n";
        assert_eq!(
            in_order(PacketFilter::Pf, listed),
            "scrub in all fragment reassemble\nnat on ix0 inet all -> (ix0)\npass all flags S/SA keep state\n"
        );
        assert_eq!(in_order(PacketFilter::Ipf, listed), listed);
        let loaded = Answers::of(
            "router",
            [(owned(&["pfctl", "-s", "info"]), "Status: Enabled")],
        );
        for (text, lacks) in [
            ("  set skip on lo0\npass all", Some("sets options of pf")),
            ("ether block in\npass all", Some("rules of Ethernet")),
            (
                "block in proto tcp from any os \"Windows\"",
                Some("rules for operating systems"),
            ),
            (
                "block in from any os{ Windows, unknown } to any",
                Some("rules for operating systems"),
            ),
            (
                "old = \"os Windows\"\nblock in from any $old",
                Some("rules for operating systems"),
            ),
            ("pass in on os0 from <os1> label os-x", None),
            ("pass all # set ether os", None),
        ] {
            let lacking = lacking(PacketFilter::Pf, text, &loaded);
            let is_as_expected = match (&lacking, lacks) {
                (Some(why), Some(expected)) => why.contains(expected),
                (why, expected) => why.is_none() && expected.is_none(),
            };
            assert!(is_as_expected, "{text}: {lacking:?}");
        }
    }

    // FreeBSD, `sbin/pfctl/pfctl_parser.c`, `print_fromto`.
    #[test]
    fn rules_of_pf_for_operating_systems_are_refused() {
        let answers = || {
            let listed = [owned(&PF_TABLES), owned(&PF_ANCHORS), owned(&PF_INTERFACES)];
            Answers::of("router", listed.map(|words| (words, "")))
        };
        let proved = |rules: &str| prove_that_rules_are_all(rules, &answers());
        assert!(proved("block drop in quick all\n").is_ok());
        let rule = "block drop in proto tcp from any os \"Windows XP\" to any";
        let why = proved(&format!("pass all flags S/SA keep state\n{rule}\n"));
        let why = why.unwrap_err().to_string();
        assert!(why.contains(rule), "{why}");
    }

    // FreeBSD, `sbin/ipfw/ipfw2.c`, `show_static_rule`: `-S` says each rule's set, and which are off.
    #[test]
    fn rules_of_ipfw_that_no_load_brings_back_are_refused() {
        for (listed, is_refused) in [
            ("00100 set 0 allow ip from any to any", false),
            (
                "00100 set 3 allow ip from any to any\n00200 set 0 count ip from any to any",
                false,
            ),
            (
                "00100 set 0 allow ip from any to any\n# DISABLED 00200 set 4 deny ip from any to any",
                true,
            ),
            ("00100 set 31 allow ip from any to any", true),
            ("00100 set 0 allow tcp from any to any 31", false),
        ] {
            let rules = rules(
                PacketFilter::Ipfw,
                &format!("{listed}\n65535 set 31 deny ip from any to any\n"),
            );
            let answers = Answers::of("router", []);
            assert_eq!(
                prove_that_sets_come_back(&rules, &answers).is_err(),
                is_refused,
                "{listed}"
            );
            let script = script(PacketFilter::Ipfw, &rules);
            assert!(
                is_refused || script.contains("\nadd 00100 set "),
                "{script}"
            );
        }
    }

    // FreeBSD 14, `sbin/pfctl/pfctl.c`: `pfctl_load_options` resets SYN cookies and keepcounters with `-m` too, and does
    // nothing without PFCTL_FLAG_OPTION; `pfctl_ruleset_trans` replaces what the flags of `main` name: with none, Ethernet too.
    #[test]
    fn loads_of_pf_are_of_rules_and_tables_alone() {
        for is_enabled in [true, false] {
            let [_, _, script] = &*command(PacketFilter::Pf, is_enabled) else {
                panic!("not one script");
            };
            let load = script.split("pfctl ").find(|part| part.contains("-f -"));
            let load = load.unwrap_or_default();
            assert!(
                load.starts_with("-q -A -N -R -T load -t fwdlab -o none -f -"),
                "{load}"
            );
        }
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
