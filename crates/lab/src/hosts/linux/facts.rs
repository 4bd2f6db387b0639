//! What is so on a Linux DUT.

use std::collections::BTreeSet;

use fwdlab_model::AddressFamily;

use super::ports::PROXIES;
use crate::LabError;
use crate::addresses::addresses;
use crate::hosts::facts::Facts;
use crate::hosts::ssh::Connection;
use crate::mechanism::routes::{self, PROTOCOL as ROUTES};
use crate::mechanism::step::{owned, words_of};
use crate::mechanism::tools::Tool;

/// Which boot a host is in: no fact of how it forwards, but another one is another host.
pub(super) const BOOT_ID: &str = "boot id";

/// What changes by itself: clocks, counters, random numbers, what a process made last.
const RESTLESS: &[&str] = &[
    "fs/aio-nr",
    "fs/dentry-state",
    "fs/file-nr",
    "fs/inode-nr",
    "fs/inode-state",
    "fs/quota/",
    "kernel/ns_last_pid",
    "kernel/perf_",
    "kernel/pty/nr",
    "kernel/random/",
    "kernel/sched_domain/",
    "kernel/tainted",
    "net/netfilter/nf_conntrack_count",
    "vm/stat_refresh",
];

/// Lists files of the interface `$1` that set how its queues are served. Drivers make queues, and say which CPU uses
/// which, when an interface goes up.
const PORT_FILES: &str = r#"
read -r flags < "/sys/class/net/$1/flags" && [ $((flags & 1)) = 1 ] || exit 0
cd "/sys/class/net/$1" && grep -Hs '' "$PWD"/threaded "$PWD"/gro_flush_timeout "$PWD"/napi_defer_hard_irqs \
    "$PWD"/queues/rx-*/rps_cpus "$PWD"/queues/rx-*/rps_flow_cnt \
    "$PWD"/queues/tx-*/xps_cpus "$PWD"/queues/tx-*/xps_rxqs || :
"#;

/// Lists the CPUs that the interrupts of the interface `$1` go to. They are counted: their numbers are others when a
/// driver has made them anew. Where irqbalance runs they are no settings: it moves them as it likes.
const INTERRUPTS: &str = r#"
! grep -qsx irqbalance /proc/[0-9]*/comm || exit 0
folder=/sys/class/net/$1/device/msi_irqs
# Of a virtual machine's port they are the bus's.
[ -d "$folder" ] || folder=/sys/class/net/$1/device/../msi_irqs
at=0
for number in $(ls "$folder" 2>/dev/null | sort -n); do
    read -r cpus 2>/dev/null < "/proc/irq/$number/smp_affinity_list" || continue
    echo "$1/$at:$cpus"
    at=$((at + 1))
done
"#;

/// Tells over which queues the interface `$1` spreads flows, but for the key of its hash, which is another after each
/// boot.
const RECEIVE_HASH: &str = r#"
ethtool -x "$1" | grep -v -e '^RSS hash key:' -e '^\([0-9a-f][0-9a-f]:\)\{4\}' || :
"#;

/// Lists the tc filters at the ingress of the interface `$1`. A program has another number each time it is loaded; its tag
/// stays.
const TC_FILTERS: &str = r#"
tc filter show dev "$1" ingress 2>/dev/null | sed 's/ id [0-9]*//'
"#;

/// Lists the neighbours that stay, but for those of the addresses given, which are the lab's; BusyBox tells when each was used
/// last.
const NEIGHBOURS: &str = r#"
ip neigh show nud permanent | sed 's/ used .* probes [0-9]*//; s/ *$//' | while read -r address rest; do
    case " $* " in *" $address "*) ;; *) echo "$address $rest" ;; esac
done
"#;

const SYSCTL: &str = "sysctl";
const FIND_SYSCTLS: &str = "find /proc/sys -type f -perm /222 -print0 | xargs -0 grep -Hs '' || :";

/// How the output of a command is read.
enum Form {
    /// All of it is one fact of this name.
    Whole(String),
    /// All of it is one fact, in which the order of the lines says nothing.
    Sorted(&'static str),
    /// Lines of a path, a colon and a value.
    Files {
        what: &'static str,
        folder: &'static str,
    },
    /// As ethtool lists things; this stands in front of each name.
    Listed(String),
    /// The first word of each line.
    Names(&'static str),
    /// An interface, and its XDP program.
    Link(String),
}

/// Reads all facts of a DUT with these two interfaces, which may lack programs.
///
/// # Errors
/// `Host` where it lists no settings of its kernel, and those of the connection; what a host has no program for is no fact
/// of it.
pub(super) fn facts(
    dut: &Connection,
    interfaces: [&str; 2],
    missing: &BTreeSet<Tool>,
) -> Result<Facts, LabError> {
    let mut questions = questions(interfaces);
    // A script that ends well without its program, or BusyBox's, would tell an empty fact.
    questions.retain(|(_, words)| !tool_of(words).is_some_and(|tool| missing.contains(&tool)));
    let (forms, commands): (Vec<Form>, Vec<Vec<String>>) = questions.into_iter().unzip();
    let mut facts = Facts::new();
    for (form, text) in forms.into_iter().zip(dut.run_all(&commands)?) {
        let Some(text) = text else { continue };
        match form {
            Form::Whole(name) => {
                // An address that is being probed for duplicates is not another one.
                let text = text.replace(" tentative", "");
                facts.insert(name, without_numbers(&text));
            }
            Form::Sorted(name) => {
                // Not without a link for a moment either.
                let text = text.replace(" linkdown", "").replace(" dead", "");
                let lines: BTreeSet<&str> = text.lines().map(str::trim).collect();
                let lines = lines.into_iter().collect::<Vec<_>>().join("\n");
                facts.insert(name.to_owned(), lines.trim().to_owned());
            }
            Form::Files { what, folder } => {
                let count = facts.len();
                add_files(&mut facts, what, folder, &text);
                // BusyBox's programs may be built without what they are asked with.
                if what == SYSCTL && facts.len() == count {
                    return Err(dut.wrong(format!(
                        "`{FIND_SYSCTLS}` lists nothing; install a find that knows -perm and -print0, and an xargs that \
                         knows -0 (findutils)"
                    )));
                }
            }
            Form::Listed(what) => add_listed(&mut facts, &what, &text),
            Form::Link(interface) => {
                let (link, program) = link_and_program(&without_numbers(&text));
                facts.insert(format!("link {interface}"), link);
                // BusyBox's ip shows none.
                if !missing.contains(&Tool::Iproute2) {
                    facts.insert(format!("XDP program {interface}"), program);
                }
            }
            Form::Names(name) => {
                let names = text.lines().filter_map(|line| line.split(' ').next());
                let names: BTreeSet<&str> = names.collect();
                let names = names.into_iter().collect::<Vec<_>>().join(" ");
                facts.insert(name.to_owned(), names);
            }
        }
    }
    Ok(facts)
}

/// The program without which a command tells nothing.
fn tool_of(words: &[String]) -> Option<Tool> {
    match (&*words[0], words.get(2).map(String::as_str)) {
        ("ethtool", _) | (_, Some(RECEIVE_HASH)) => Some(Tool::Ethtool),
        ("nft", _) => Some(Tool::Nft),
        (_, Some(TC_FILTERS)) => Some(Tool::Tc),
        _ => None,
    }
}

/// What is asked, and how the answer is read.
fn questions(interfaces: [&str; 2]) -> Vec<(Form, Vec<String>)> {
    let script = |line: &str| owned(&["sh", "-c", line]);
    let whole = |name: &str, line: &str| (Form::Whole(name.to_owned()), words_of(line));
    let mut questions = vec![
        whole(BOOT_ID, "cat /proc/sys/kernel/random/boot_id"),
        whole("kernel", "uname -srv"),
        whole("kernel command line", "cat /proc/cmdline"),
        // What can be written is a setting; the rest is status. Some can never be read, and then grep fails.
        (
            Form::Files {
                what: SYSCTL,
                folder: "/proc/sys/",
            },
            script(FIND_SYSCTLS),
        ),
        (
            Form::Files {
                what: "module",
                folder: "/sys/module/",
            },
            script(
                "find /sys/module -path '*/parameters/*' -type f -perm /222 -print0 | xargs -0 grep -Hs '' || :",
            ),
        ),
        (Form::Names("modules"), words_of("cat /proc/modules")),
        whole("nft ruleset", "nft --stateless list ruleset"),
        whole("rules", "ip rule show"),
        whole("rules inet6", "ip -6 rule show"),
        // Of the experiment's own there may be a million, which are told by their number.
        (
            Form::Sorted("routes"),
            script(&format!(
                "ip route show table all | grep -v -e ' proto {ROUTES} ' -e ' proto {ROUTES}$' || :"
            )),
        ),
    ];
    let mut neighbours = owned(&["sh", "-c", NEIGHBOURS, "sh"]);
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let name = format!("routes of the experiment {family}");
        questions.push((Form::Whole(name), routes::count(family)));
        let own = addresses(family);
        neighbours.extend([own.generator, own.sink].map(|address| address.to_string()));
    }
    questions.push((Form::Sorted("neighbours"), neighbours));
    questions.push((Form::Sorted("neighbour proxies"), owned(&PROXIES)));
    for interface in interfaces {
        for (name, option) in [
            ("offload", "-k"),
            ("pause", "-a"),
            ("ring", "-g"),
            ("coalescing", "-c"),
            ("channels", "-l"),
            ("driver", "-i"),
            ("private flag", "--show-priv-flags"),
        ] {
            let listed = Form::Listed(format!("{name} {interface}"));
            questions.push((listed, words_of(&format!("ethtool {option} {interface}"))));
        }
        // Over which queues flows are spread.
        questions.push(whole(
            &format!("flow rules {interface}"),
            &format!("ethtool -n {interface}"),
        ));
        let of_interface = |script: &str| owned(&["sh", "-c", script, "of", interface]);
        for (name, script) in [("receive hash", RECEIVE_HASH), ("tc filters", TC_FILTERS)] {
            let name = format!("{name} {interface}");
            questions.push((Form::Whole(name), of_interface(script)));
        }
        for (what, folder, script) in [
            ("port", "/sys/class/net/", PORT_FILES),
            ("interrupt", "", INTERRUPTS),
        ] {
            questions.push((Form::Files { what, folder }, of_interface(script)));
        }
        questions.push((
            Form::Link(interface.to_owned()),
            words_of(&format!("ip -o link show dev {interface}")),
        ));
        questions.push(whole(
            &format!("address {interface}"),
            &format!("ip -o address show dev {interface}"),
        ));
    }
    questions
}

/// What `ip` tells without what it numbers anew each time: where the other end of a veth is, and XDP programs, which have
/// a tag besides that is always the same.
fn without_numbers(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut words = text.trim().split(' ');
    while let Some(word) = words.next() {
        let is_of_program = kept.last().is_some_and(|last| last.contains("prog/xdp"));
        if word == "link-netnsid" || is_of_program && word == "id" {
            words.next();
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// What `ip` tells of an interface, and of the XDP program on it: `mtu 1500 xdp qdisc … prog/xdp name forward tag … jited`.
fn link_and_program(text: &str) -> (String, String) {
    let (link, program) = match text.split_once("prog/xdp") {
        Some((link, program)) => (link, program.trim()),
        None => (text, "none"),
    };
    let link = settings_of_link(link);
    let words: Vec<&str> = program.split_whitespace().collect();
    let program = match words.as_slice() {
        ["name", name, "tag", tag, ..] => format!("{name} (tag {tag})"),
        _ => program.to_owned(),
    };
    (link, program)
}

/// What is set of an interface, without how it fares: whether it has a link comes and goes with the tester's ports. An
/// interface that is down has the queueing disciplines that it was last up with, or none yet.
fn settings_of_link(shown: &str) -> String {
    const STATUS: [&str; 4] = ["LOWER_UP", "NO-CARRIER", "DORMANT", "RUNNING"];
    let mut is_up = true;
    let mut kept: Vec<String> = Vec::new();
    let mut words = shown.split_whitespace();
    while let Some(word) = words.next() {
        let flags = word
            .strip_prefix('<')
            .and_then(|word| word.strip_suffix('>'));
        if let Some(flags) = flags {
            let flags: Vec<&str> = flags.split(',').collect();
            is_up = flags.contains(&"UP");
            let settled = flags.into_iter().filter(|flag| !STATUS.contains(flag));
            kept.push(format!("<{}>", settled.collect::<Vec<_>>().join(",")));
        } else if word == "state" || word == "qdisc" && !is_up {
            words.next();
        } else if !word.starts_with("xdp") {
            kept.push(word.to_owned());
        }
    }
    let kept = kept.join(" ");
    kept.trim_end_matches(['\\', ' ']).to_owned()
}

/// Lines of `path:value`; several of one path are one fact.
fn add_files(facts: &mut Facts, what: &str, folder: &str, text: &str) {
    for line in text.lines() {
        let Some((path, value)) = line
            .strip_prefix(folder)
            .and_then(|line| line.split_once(':'))
        else {
            continue;
        };
        if RESTLESS.iter().any(|restless| path.starts_with(restless)) {
            continue;
        }
        let fact = facts.entry(format!("{what} {}", path.replace('/', ".")));
        let fact = fact.or_default();
        if !fact.is_empty() {
            fact.push('\n');
        }
        fact.push_str(value);
    }
}

/// Lines of `name: value`, as ethtool lists them; a heading has no value, and what stands below it its name in
/// front.
fn add_listed(facts: &mut Facts, what: &str, text: &str) {
    let mut heading = String::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        if value.is_empty() {
            heading = format!("{name} ");
            continue;
        }
        // What two ports have agreed on is known while there is a link.
        if name.ends_with("negotiated") {
            continue;
        }
        // The features of `-k` are one list.
        let heading = if name.contains('-') {
            ""
        } else {
            heading.as_str()
        };
        facts.insert(format!("{what} {heading}{name}"), value.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_are_facts_but_for_what_never_rests() {
        let mut facts = Facts::new();
        let text = "/proc/sys/net/ipv4/ip_forward:1\n/proc/sys/kernel/random/uuid:x\n\
                    /proc/sys/net/ipv4/tcp_mem:1 2\n/proc/sys/net/ipv4/tcp_mem:3\ngrep: no\n";
        add_files(&mut facts, "sysctl", "/proc/sys/", text);
        let expected = [
            ("sysctl net.ipv4.ip_forward", "1"),
            ("sysctl net.ipv4.tcp_mem", "1 2\n3"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(facts, Facts::from(expected));
    }

    #[test]
    fn what_serves_an_interfaces_queues_is_listed_and_what_it_lacks_is_none() {
        for (_, words) in questions(["lo", "no-such"]) {
            let is_script = [PORT_FILES, INTERRUPTS, RECEIVE_HASH]
                .contains(&words.get(2).map_or("", String::as_str));
            if !is_script {
                continue;
            }
            let output = std::process::Command::new(&words[0])
                .args(&words[1..])
                .output()
                .unwrap();
            assert!(output.status.success(), "{words:?} {output:?}");
            let text = String::from_utf8(output.stdout).unwrap();
            let mut facts = Facts::new();
            add_files(&mut facts, "port", "/sys/class/net/", &text);
            let has_files = words[2] == PORT_FILES && words[4] == "lo";
            assert_eq!(
                facts.contains_key("port lo.gro_flush_timeout"),
                has_files,
                "{text}"
            );
        }
    }

    #[test]
    fn applets_of_busybox_show_the_same_facts() {
        testkit::require_tool!("busybox", "ip");
        let folder = tempfile::tempdir().unwrap();
        testkit::install_applets(folder.path());
        let asked = questions(["lo", "no-such"]);
        let asked = asked.iter().filter(|(_, words)| tool_of(words).is_none());
        let mut count = 0;
        for (form, words) in asked {
            let facts = |path: &std::ffi::OsStr| {
                let mut command = std::process::Command::new(&words[0]);
                let output = command.args(&words[1..]).env("PATH", path).output();
                let output = output.unwrap();
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                // Values may change meanwhile.
                let mut facts = Facts::new();
                if let Form::Files { what, folder } = form {
                    add_files(&mut facts, what, folder, &text);
                }
                // Other tests make interfaces.
                let mut names = facts.into_keys().collect::<BTreeSet<String>>();
                names.retain(|name| !name.starts_with("sysctl net."));
                (output.status.success(), text.lines().count() > 0, names)
            };
            let usual = facts(&std::env::var_os("PATH").unwrap());
            assert_eq!(facts(folder.path().as_os_str()), usual, "{words:?}");
            count += usual.2.len();
        }
        assert!(count > 100, "{count}");
    }

    #[test]
    fn what_a_program_alone_shows_is_not_asked_without_it() {
        let of = |tool| {
            let questions = questions(["eth1", "eth2"]).into_iter();
            questions.filter(move |(_, words)| tool_of(words) == Some(tool))
        };
        // Eight lists, and a script, of each port.
        assert_eq!(of(Tool::Ethtool).count(), 2 * 9);
        assert_eq!(of(Tool::Nft).count(), 1);
        assert_eq!(of(Tool::Tc).count(), 2);
        assert_eq!(of(Tool::Iproute2).count(), 0);
    }

    #[test]
    fn a_program_is_a_fact_beside_its_interface() {
        let with = "3: eth1@if2: <UP> mtu 1500 xdp qdisc noqueue state UP \\    link/ether 02:00:00:00:01:02 brd \
                    ff:ff:ff:ff:ff:ff link-netnsid 0 \\    prog/xdp id 34 name forward tag 3b185187f1855c4c jited ";
        let without = "3: eth1@if2: <UP> mtu 1500 qdisc noqueue state UP \\    link/ether 02:00:00:00:01:02 brd \
                       ff:ff:ff:ff:ff:ff link-netnsid 7";
        let (link, program) = link_and_program(&without_numbers(with));
        assert_eq!(program, "forward (tag 3b185187f1855c4c)");
        let none = "none".to_owned();
        assert_eq!(link_and_program(&without_numbers(without)), (link, none));
        let of = |flags: &str, rest: &str| {
            settings_of_link(&format!("3: eth1: {flags} mtu 1500 {rest}"))
        };
        let is_up = of("<BROADCAST,UP,LOWER_UP>", "qdisc mq state UP");
        assert_eq!(is_up, "3: eth1: <BROADCAST,UP> mtu 1500 qdisc mq");
        assert_eq!(
            of("<NO-CARRIER,BROADCAST,UP>", "qdisc mq state DOWN"),
            is_up
        );
        assert_ne!(of("<BROADCAST,UP,LOWER_UP>", "qdisc fq state UP"), is_up);
        let is_down = of("<BROADCAST>", "qdisc noop state DOWN");
        assert_eq!(of("<BROADCAST>", "qdisc mq state DOWN"), is_down);
        assert_ne!(is_down, is_up);
        let unnamed = link_and_program("3: eth1: <UP> mtu 1500 prog/xdp tag 3b18").1;
        assert_eq!(unnamed, "tag 3b18");
    }

    #[test]
    fn what_ethtool_lists_is_distinguished_by_its_headings() {
        let mut facts = Facts::new();
        let rings = "Ring parameters for eth1:\nPre-set maximums:\nRX:\t\t4096\n\
                     Current hardware settings:\nRX:\t\t512\n";
        add_listed(&mut facts, "ring eth1", rings);
        let features = "Features for eth1:\nrx-checksumming: on\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n";
        add_listed(&mut facts, "offload eth1", features);
        assert_eq!(facts["ring eth1 Current hardware settings RX"], "512");
        assert_eq!(facts["ring eth1 Pre-set maximums RX"], "4096");
        assert_eq!(facts["offload eth1 tx-checksum-ipv4"], "off [fixed]");
    }

    proptest! {
        #[test]
        fn any_text_of_a_host_is_read(text: String) {
            let mut facts = Facts::new();
            add_files(&mut facts, "sysctl", "/", &text);
            add_listed(&mut facts, "ring", &text);
        }
    }
}
