//! Before a run on hosts: whether each can be reached and used, whether every command does what it is to do there,
//! and what would spoil a measurement.

use std::rc::Rc;
use std::time::Instant;

use fwdlab_model::{
    Binding, DutHost, HostTesterKind, Hosts, Lab, LabKind, Load, System, devices, with_interfaces,
};

use super::dut::{Dut, is_refused};
use super::freebsd::{self, doubtful_tunables, image_writer};
use super::linux::{self, Attachments, BALANCER, find_grub};
use super::ssh::Connection;
use super::surveyed::system_of;
use super::{open_dut, open_tester};
use crate::LabError;
use crate::doctor::{Finding, cpu_settings};
use crate::environment::environment_by;
use crate::journal::Destination;
use crate::mechanism::program::Program;
use crate::mechanism::tools::Tool;

/// Prints where the small programs are, and fails where one is missing.
const PROGRAMS: &str = "for program in cat tee find xargs grep sed sort tr wc ls cp mv rm mkdir sync sleep uname id; do \
                        command -v $program || { echo \"no $program\" >&2; exit 1; }; done";

/// What is lost without the most of what a DUT is asked with.
const NEEDED: &str = "nothing can be measured";

/// Commands that a DUT of Linux is asked with, and what is lost without each; nothing of it changes anything.
const LINUX_COMMANDS: &[(&str, &str)] = &[
    ("ip -o address show dev {dut-in}", NEEDED),
    ("ip -o address show dev {dut-out}", NEEDED),
    ("ip -4 route show table all", NEEDED),
    ("ip neigh show nud permanent", NEEDED),
    ("cat /proc/net/snmp /proc/net/netstat", NEEDED),
    ("ip -6 route show table main", "inet6 cannot be measured"),
];

/// The same of FreeBSD.
const FREEBSD_COMMANDS: &[(&str, &str)] = &[
    ("ifconfig {dut-in}", NEEDED),
    ("ifconfig {dut-out}", NEEDED),
    ("netstat -rnW", NEEDED),
    ("sockstat -46cw -P tcp", NEEDED),
    ("netstat -s -p ip", NEEDED),
    ("sysctl -n kern.boottime", NEEDED),
    ("arp -an", NEEDED),
    (
        "sysctl -aeW",
        "its settings are read from a list of subtrees, not all of them",
    ),
    ("ndp -an", "inet6 cannot be measured"),
    ("kldstat", "its modules are not looked at"),
    ("kenv", "its loader's tunables are not looked at"),
    (
        "netstat -Q",
        "frames that find netisr's queues full are not told apart",
    ),
    (
        "pfctl -s info",
        "factors bound by pf cannot be set; kldload pf loads it",
    ),
    (
        "ipfw -S list",
        "factors bound by ipfw cannot be set; kldload ipfw loads it",
    ),
    (
        "ipfstat -io",
        "factors bound by ipf cannot be set; kldload ipl loads it",
    ),
    ("bectl list -H", "boot environments cannot be chosen"),
];

/// What nobody has tried on the real thing yet.
fn unproven(check: String, what: &str) -> Finding {
    Finding::warning(
        check,
        format!("unproven on hardware: {what}"),
        "look twice at the first run, and send this report along with what came of it",
    )
}

const SEE_SSH: &str = "see what ssh says";

/// How often stacks are sampled to see whether they can be.
const PROFILE_FREQUENCY_HZ: u32 = 997;

/// What only factors that boot the DUT need.
const FOR_BOOTS: &str = "factors bound by cmdline, module or kernel cannot be set";

/// Of the experiment by which the hosts are looked at; none of it is measured.
const BLOCKS: u32 = 8;

/// Looks at every host of a lab.
///
/// Shape: findings; the first that is fatal of a host ends what is looked at there.
///
/// # Errors
/// `NoHosts` where the lab names none.
pub(crate) fn examine_hosts(
    system: System,
    lab: &Lab,
    load: Load,
) -> Result<Vec<Finding>, LabError> {
    let Some(hosts) = &lab.hosts else {
        return Err(LabError::NoHosts {
            lab: lab.name.clone(),
        });
    };
    let mut findings = examine_dut(system, lab, hosts, load);
    findings.extend(examine_tester(lab, hosts, load));
    Ok(findings.into_iter().map(without_second_host).collect())
}

/// A finding whose check names the host already.
fn without_second_host(mut finding: Finding) -> Finding {
    let host = finding.check.split_once(": ").map(|(host, _)| host);
    let lead = host.map(|host| format!("host {host}: "));
    if let Some(seen) = lead.and_then(|lead| finding.seen.strip_prefix(&lead)) {
        finding.seen = seen.to_owned();
    }
    finding
}

fn log_in(hosts: &Hosts, host: &str, findings: &mut Vec<Finding>) -> Option<Rc<Connection>> {
    let check = format!("{host}: ssh");
    let start = Instant::now();
    let destination = Destination {
        host: host.to_owned(),
        config: hosts.ssh_config.clone(),
    };
    match Connection::open(destination) {
        Err(error) => {
            let (seen, remedy) = match error {
                LabError::Ssh {
                    what,
                    stderr,
                    trial,
                    ..
                } => (
                    format!("{what}: {stderr}"),
                    format!(
                        "make `{trial}` work; fwdlab answers no questions of ssh and takes no unknown host keys"
                    ),
                ),
                error => (error.to_string(), SEE_SSH.to_owned()),
            };
            findings.push(Finding::fatal(check, seen, remedy));
            None
        }
        Ok(connection) => {
            let in_s = start.elapsed().as_secs_f64();
            let asked = Instant::now();
            let answered = connection.run(&["true"], "");
            let errand_ms = asked.elapsed().as_secs_f64() * 1e3;
            if let Err(error) = answered {
                let remedy = "give it a POSIX shell that prints nothing at login";
                findings.push(Finding::fatal(check, error.to_string(), remedy));
                return None;
            }
            let found = format!("let in after {in_s:.2} s; a command takes {errand_ms:.0} ms");
            findings.push(Finding::fine(check, found));
            Some(Rc::new(connection))
        }
    }
}

fn examine_dut(system: System, lab: &Lab, hosts: &Hosts, load: Load) -> Vec<Finding> {
    let of = &hosts.dut;
    let mut findings = Vec::new();
    let Some(connection) = log_in(hosts, &of.host, &mut findings) else {
        return findings;
    };
    let named = |what: &str| format!("{}: {what}", of.host);
    let release = connection.run(&["uname", "-sr"], "").unwrap_or_default();
    if let Some(finding) = of_other_system(release.trim(), system, named("system")) {
        findings.push(finding);
        return findings;
    }
    if system == System::Freebsd {
        let what = "this driver was written from FreeBSD's manual pages and sources";
        findings.push(unproven(named("FreeBSD"), what));
    }
    let programs = ["sh", "-c", PROGRAMS];
    findings.push(tried(&connection, named("programs"), &programs, NEEDED));
    let (commands, names) = match system {
        System::Freebsd => (FREEBSD_COMMANDS, freebsd::NAMES),
        System::Linux => (LINUX_COMMANDS, linux::NAMES),
    };
    let listed = connection.run(&names, "").unwrap_or_default();
    // That a port is missing is found once, with those that are there.
    let has_ports_of = |command: &str| {
        let ports = [of.interface_in.as_str(), of.interface_out.as_str()];
        !names_missing_port(command, ports, &listed)
    };
    let commands = commands.iter();
    for (command, lost) in commands.filter(|(command, _)| has_ports_of(command)) {
        let command = with_interfaces(command, &of.interface_in, &of.interface_out);
        let words: Vec<&str> = command.split(' ').collect();
        findings.push(tried(&connection, named(&command), &words, lost));
    }
    if system == System::Linux {
        let tools = Tool::ALL.into_iter();
        let tools = tools.filter(|tool| has_ports_of(tool.trial()));
        findings.extend(tools.map(|tool| try_tool(&connection, of, tool)));
    }
    let mut resolved = crate::doctor::control_experiment(lab, load, BLOCKS, false);
    // Counters, and the program that lists them, are looked at by themselves.
    if let Some(hosts) = &mut resolved.lab.hosts {
        hosts.dut.drop_counters.clear();
    }
    let mut dut = match open_dut(&connection, of, system, &resolved) {
        Ok(dut) => dut,
        Err(error) => {
            let remedy = "correct what the error names, or name other interfaces in the lab file";
            findings.push(Finding::fatal(named("ports"), error.to_string(), remedy));
            return findings;
        }
    };
    findings.push(Finding::fine(
        named("ports"),
        format!(
            "{} ({}) and {} ({}); the host is reached by neither",
            of.interface_in, dut.host.macs[0], of.interface_out, dut.host.macs[1]
        ),
    ));
    if !of.drop_counters.is_empty() {
        findings.push(match dut.system.prove_counters(&dut.host) {
            Ok(()) => Finding::fine(named("counters"), of.drop_counters.join(", ")),
            Err(error) => Finding::fatal(
                named("counters"),
                error.to_string(),
                "correct drop_counters in [dut], or leave it out",
            ),
        });
    }
    let start = Instant::now();
    findings.push(match dut.facts() {
        Ok(facts) => Finding::fine(
            named("facts"),
            format!(
                "{} settings, rulesets and routes read in {:.1} s",
                facts.len(),
                start.elapsed().as_secs_f64()
            ),
        ),
        Err(error) => Finding::fatal(
            named("facts"),
            error.to_string(),
            "see what the command says",
        ),
    });
    findings.push(match dut.cpu_watch_unavailable() {
        Ok(None) => Finding::fine(named("CPUs"), "can be watched under the load"),
        Ok(Some(why)) => Finding::warning(
            named("CPUs"),
            why,
            "see what it says; until then reports do not say how busy the DUT was",
        ),
        Err(error) => Finding::fatal(named("CPUs"), error.to_string(), SEE_SSH),
    });
    findings.push(match dut.stack_watch_unavailable(PROFILE_FREQUENCY_HZ) {
        Ok(None) => Finding::fine(named("profiles"), "its kernel's stacks can be sampled"),
        Ok(Some(why)) => Finding::warning(
            named("profiles"),
            why,
            "see what it says; until then no report says why rates differ",
        ),
        Err(error) => Finding::fatal(named("profiles"), error.to_string(), SEE_SSH),
    });
    if system == System::Freebsd {
        findings.push(boots_of_freebsd(&connection, of, &dut));
        findings.extend(tunables(&connection, lab, &named("tunables")));
        if of.overwrite_other_slice {
            findings.extend(images(&connection, named("images")));
        }
        return findings;
    }
    for interface in [&of.interface_in, &of.interface_out] {
        findings.extend(port(&connection, of, interface));
    }
    findings.push(forwarder(&connection, of, named("XDP")));
    findings.push(boots_of_linux(&connection, of, &dut));
    let read = |path: &str| -> Option<String> {
        let text = connection.run(&["cat", path], "").ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    findings.extend(balancer(&connection, named("interrupts")));
    let environment = environment_by(read, 1, None);
    let settings = cpu_settings(&environment.facts, &read);
    findings.extend(settings.into_iter().map(|finding| Finding {
        check: named(&finding.check),
        ..finding
    }));
    findings
}

/// That a host runs another system than its lab's; none where it does not, or does not say which.
fn of_other_system(release: &str, system: System, check: String) -> Option<Finding> {
    let found = system_of(release).filter(|found| *found != system)?;
    let [kind, of_found] = [system, found].map(LabKind::Ssh);
    Some(Finding::fatal(
        check,
        format!("it runs {release}, and the lab is of kind {kind}"),
        format!("write kind = \"{of_found}\" into the lab file, or name another host in [dut]"),
    ))
}

/// Whether a command is about one of the DUT's ports that is not among those listed; a host that lists none has not said.
fn names_missing_port(command: &str, [port_in, port_out]: [&str; 2], listed: &str) -> bool {
    let there: Vec<&str> = listed.split_whitespace().collect();
    let placed = [("{dut-in}", port_in), ("{dut-out}", port_out)];
    let mut missing = placed.iter().filter(|(_, port)| !there.contains(port));
    !there.is_empty() && missing.any(|(placeholder, _)| command.contains(placeholder))
}

/// Whether the DUT has a program that not every host of Linux has.
fn try_tool(connection: &Connection, of: &DutHost, tool: Tool) -> Finding {
    let command = with_interfaces(tool.trial(), &of.interface_in, &of.interface_out);
    let words: Vec<&str> = command.split(' ').collect();
    let check = format!("{}: {command}", of.host);
    let lost = tool.lost();
    match is_refused(connection, &tool.probe()) {
        Ok(false) => tried(connection, check, &words, &lost),
        Err(error) => Finding::fatal(check, error.to_string(), SEE_SSH),
        Ok(true) => {
            let remedy = format!("{}; until then {lost}", tool.remedy());
            Finding::warning(check, format!("{} is not installed", tool.name()), remedy)
        }
    }
}

/// Whether a program moves interrupts between CPUs, while it is measured too; none where that is not known.
fn balancer(connection: &Connection, check: String) -> Option<Finding> {
    let found = connection.run(&BALANCER, "").ok()?;
    Some(if found.trim().is_empty() {
        Finding::fine(check, "irqbalance does not run")
    } else {
        Finding::warning(
            check,
            "irqbalance runs: it moves interrupts from CPU to CPU, and rates change with them",
            "systemctl stop irqbalance while it is measured",
        )
    })
}

/// Whether the DUT's kernel takes the XDP forwarder. Whether the drivers of its ports do, only putting it there would
/// tell.
fn forwarder(connection: &Rc<Connection>, of: &DutHost, check: String) -> Finding {
    let why = match Attachments::default().load(connection, of, Program::FibForwarder) {
        Ok(()) => {
            return Finding::fine(
                check,
                "its kernel takes the forwarder; whether its ports' drivers do is tried when a run begins",
            );
        }
        Err(error) => error.to_string(),
    };
    Finding::warning(
        check,
        why,
        "see what it says; until then variants that forward by XDP are not measured",
    )
}

/// Whether a command works on the real thing.
fn tried(connection: &Connection, check: String, words: &[&str], lost: &str) -> Finding {
    match connection.run(words, "") {
        Ok(output) => Finding::fine(check, printed(output.lines().count())),
        Err(LabError::OnHost { status, stderr, .. }) => {
            let seen = match stderr.lines().next() {
                Some(line) => format!("{status}: {line}"),
                None => status,
            };
            if lost.starts_with("nothing") {
                Finding::fatal(check, seen, "install it, or see what it says")
            } else {
                Finding::warning(check, seen, format!("install it; until then {lost}"))
            }
        }
        Err(error) => Finding::fatal(check, error.to_string(), SEE_SSH),
    }
}

/// What a command that works has printed.
fn printed(lines: usize) -> String {
    match lines {
        0 => "works, prints nothing".to_owned(),
        1 => "works, 1 line".to_owned(),
        lines => format!("works, {lines} lines"),
    }
}

/// The link and the pause frames of a port.
fn port(connection: &Connection, of: &DutHost, interface: &str) -> Vec<Finding> {
    let named = |what: &str| format!("{}: {what} of {interface}", of.host);
    let read = |file: &str| {
        let path = format!("/sys/class/net/{interface}/{file}");
        let text = connection.run(&["cat", &path], "").ok()?;
        Some(text.trim().to_owned())
    };
    let mut findings = Vec::new();
    findings.push(match (read("carrier").as_deref(), read("speed")) {
        (Some("1"), speed) => {
            let speed = speed.filter(|speed| !speed.starts_with('-'));
            let speed = speed.map_or("speed unknown".to_owned(), |speed| {
                format!("{speed} Mbit/s")
            });
            Finding::fine(named("link"), format!("up, {speed}"))
        }
        _ => Finding::warning(
            named("link"),
            "down",
            "check its cable; a port that is only not set up is brought up by a run",
        ),
    });
    if let Ok(pause) = connection.run(&["ethtool", "-a", interface], "") {
        let is_on = pause
            .lines()
            .any(|line| matches!(line.split_once(':'), Some(("RX" | "TX", value)) if value.trim() == "on"));
        findings.push(if is_on {
            Finding::warning(
                named("pause frames"),
                "on: the DUT can slow the tester down, so that less is offered than it could drop",
                format!("ethtool -A {interface} autoneg off rx off tx off"),
            )
        } else {
            Finding::fine(named("pause frames"), "off")
        });
    }
    findings
}

/// In which boot the DUT is.
fn boots_of_freebsd(connection: &Connection, of: &DutHost, dut: &Dut) -> Finding {
    let check = format!("{}: boot", of.host);
    match dut.system.boot_loader().look(connection) {
        Ok(boot) => Finding::fine(check, format!("kernel {}", boot.kernel) + &waited_for(of)),
        Err(error) => Finding::fatal(check, error.to_string(), "see what the command says"),
    }
}

/// What nobody would know of the tunables that a lab binds.
fn tunables(connection: &Connection, lab: &Lab, check: &str) -> Vec<Finding> {
    let tunables = lab.bindings.values().filter_map(|binding| match binding {
        Binding::Loader { tunable, .. } => Some(devices(tunable)),
        _ => None,
    });
    match doubtful_tunables(connection, &tunables.flatten().collect::<Vec<_>>()) {
        Ok(doubts) => {
            let remedy = "an experiment that sets one says so in its report";
            let doubts = doubts.into_iter();
            doubts
                .map(|doubt| Finding::warning(check.to_owned(), doubt, remedy))
                .collect()
        }
        Err(error) => vec![Finding::fatal(check.to_owned(), error.to_string(), SEE_SSH)],
    }
}

/// Where images would be written.
fn images(connection: &Connection, check: String) -> Vec<Finding> {
    let what = "no image has been written to a disk by it";
    let seen = match image_writer(connection) {
        Ok(found) => Finding::fine(check.clone(), found),
        Err(error) => Finding::warning(
            check.clone(),
            error.to_string(),
            "take overwrite_other_slice out of [dut]; factors bound by image cannot be set",
        ),
    };
    vec![unproven(check, what), seen]
}

/// Whether the DUT can be told what to boot.
fn boots_of_linux(connection: &Connection, of: &DutHost, dut: &Dut) -> Finding {
    let check = format!("{}: boot loader", of.host);
    let boot = match dut.system.boot_loader().look(connection) {
        Ok(boot) => boot,
        Err(error) => return Finding::warning(check, error.to_string(), FOR_BOOTS),
    };
    let (folder, chooser, _) = match find_grub(connection) {
        Ok(found) => found,
        Err(error) => return Finding::warning(check, error.to_string(), FOR_BOOTS),
    };
    let writable = format!("test -w {folder}/grubenv && command -v {chooser}");
    match connection.run(&["sh", "-c", &writable], "") {
        Ok(_) => Finding::fine(
            check,
            format!(
                "GRUB in {folder}; kernel {} with {:?}",
                boot.kernel,
                boot.command_line.join(" ")
            ) + &waited_for(of),
        ),
        Err(_) => Finding::warning(
            check,
            format!("{folder}/grubenv cannot be written, or {chooser} is missing"),
            format!("install it; until then {FOR_BOOTS}"),
        ),
    }
}

/// How long a boot is waited for, and what then.
fn waited_for(of: &DutHost) -> String {
    let then = if of.power_cycle.is_some() {
        ", then its power is cut"
    } else {
        ""
    };
    format!("; a boot is waited for {} s{then}", of.reboot_s_max)
}

fn examine_tester(lab: &Lab, hosts: &Hosts, load: Load) -> Vec<Finding> {
    let mut findings = Vec::new();
    let tester = &hosts.tester;
    let receiver = tester.receiver.iter().map(|receiver| &receiver.host);
    let generators = hosts.generators.iter().map(|generator| &generator.host);
    let mut names: Vec<&String> = std::iter::once(&tester.host)
        .chain(receiver)
        .chain(generators)
        .collect();
    names.sort();
    names.dedup();
    let mut all = true;
    for name in names {
        all &= log_in(hosts, name, &mut findings).is_some();
    }
    if !all {
        return findings;
    }
    let check = "tester".to_owned();
    let mut connect = |host: &str| {
        let destination = Destination {
            host: host.to_owned(),
            config: hosts.ssh_config.clone(),
        };
        Connection::open(destination).map(Rc::new)
    };
    if hosts.tester.uses == HostTesterKind::PktGen {
        let what = "pkt-gen was driven from recordings and by a stand-in only";
        findings.push(unproven("tester: pkt-gen".to_owned(), what));
    }
    let resolved = crate::doctor::control_experiment(lab, load, BLOCKS, false);
    let started = open_tester(hosts, &resolved, &mut connect)
        .and_then(|mut started| started.stations().map(|stations| (started, stations)));
    findings.push(match started {
        Err(error) => Finding::fatal(
            check,
            error.to_string(),
            "correct what the error names, or change [tester]",
        ),
        Ok((started, [generator, sink])) => {
            let hosts: Vec<String> = started
                .described()
                .into_iter()
                .map(|(part, what)| format!("{part}: {what}"))
                .collect();
            Finding::fine(
                check,
                format!(
                    "its program runs there; it sends from {} and counts at {}; {}",
                    generator.mac,
                    sink.mac,
                    hosts.join("; ")
                ),
            )
        }
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_another_system_is_named_with_the_kind_that_it_needs() {
        let found = |release: &str| {
            let check = "router: system".to_owned();
            of_other_system(release, System::Freebsd, check)
        };
        let finding = found("Linux 6.1.0-28-amd64").unwrap();
        assert_eq!(
            finding.seen,
            "it runs Linux 6.1.0-28-amd64, and the lab is of kind freebsd-ssh"
        );
        assert!(
            finding
                .remedy
                .unwrap()
                .starts_with("write kind = \"linux-ssh\"")
        );
        for release in ["FreeBSD 15.0-CURRENT", "SunOS 5.11", ""] {
            assert_eq!(found(release), None);
        }
    }

    #[test]
    fn commands_on_ports_that_are_not_there_are_not_tried() {
        let is_missing =
            |command: &str, listed: &str| names_missing_port(command, ["eth1", "eth7"], listed);
        assert!(is_missing("ifconfig {dut-out}", "lo eth0 eth1"));
        assert!(!is_missing("ifconfig {dut-in}", "lo eth0 eth1"));
        assert!(!is_missing("netstat -s", "lo eth0 eth1"));
        assert!(!is_missing("ifconfig {dut-out}", ""));
    }

    #[test]
    fn a_finding_names_its_host_once() {
        let seen = |check: &str| {
            without_second_host(Finding::warning(check, "host root@dut: no GRUB", "see")).seen
        };
        assert_eq!(seen("root@dut: boot loader"), "no GRUB");
        assert_eq!(seen("tester: boot loader"), "host root@dut: no GRUB");
        assert_eq!(seen("tester"), "host root@dut: no GRUB");
    }

    #[test]
    fn lines_are_counted_as_they_are_said() {
        let said = [0, 1, 2].map(printed);
        assert_eq!(
            said,
            ["works, prints nothing", "works, 1 line", "works, 2 lines"]
        );
    }
}
