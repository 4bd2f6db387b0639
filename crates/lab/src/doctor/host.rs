//! What the machine tells without a measurement under load.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use fwdlab_model::{Environment, Lab, Load, LoadRecord, Placement};
use fwdlab_sys::Interrupts;

use super::finding::Finding;
use super::noise::control_experiment;
use crate::cpu_account::CpuAccount;
use crate::environment::{cpu_ticks, text};
use crate::placement::{load_unavailable, placement};
use crate::router::RouterLab;
use crate::watch::{self, prove_cpu_is_free};
use crate::{LabError, Topology, mechanism};

/// Blocks of the control experiment, whose placement is looked at.
const BLOCKS: u32 = 8;

/// How long counters are watched.
const WATCH: Duration = Duration::from_secs(1);

/// More interrupts a second than this on the load CPU, the timer's and those of other CPUs left out.
const INTERRUPTS_MAX: u64 = 100;

/// More of the load CPU than this taken by other work while nothing is measured.
const BUSY_RATIO_MAX: f64 = 0.02;

/// More of the time than this disturbed costs precision.
const DISTURBED_RATIO_MAX: f64 = 0.05;

/// The one-minute load average above which others want the CPUs.
const LOAD_AVERAGE_MAX: f64 = 0.5;

/// Looks at this machine as a lab of its kernel.
///
/// # Errors
/// `Cpu` where the lab file names a CPU that is not there.
pub(crate) fn examine_netns(
    lab: &Lab,
    load: Load,
    environment: &Environment,
    prepared: &Result<(), LabError>,
) -> Result<Vec<Finding>, LabError> {
    let resolved = control_experiment(lab, load, BLOCKS, false);
    let placement = placement(&resolved, &fwdlab_sys::online_cpus()?)?;
    let mut findings = vec![privilege(prepared)];
    findings.extend(kernel_features());
    findings.push(match load_unavailable(&resolved, &placement) {
        Some(reason) => Finding::fatal("placement", reason, TWO_CPUS),
        None => placing(&placement),
    });
    findings.extend(cpu_settings(&environment.facts, &|path| text(path)));
    findings.push(jit(&environment.facts));
    findings.extend(disturbers(&placement)?);
    findings.push(Finding::fine(
        "offloads and pause frames",
        "veth pairs have neither rings nor pause frames; the lab sets GRO itself",
    ));
    Ok(findings)
}

/// Looks at this machine as a lab of the reference router. Only the CPUs matter to one inside this process: it needs
/// nothing of the kernel.
///
/// # Errors
/// As of [`examine_netns`], and `Interrupted`.
pub(crate) fn examine_router(
    lab: &Lab,
    load: Load,
    environment: &Environment,
    interrupts: Interrupts,
) -> Result<Vec<Finding>, LabError> {
    let resolved = control_experiment(lab, load, BLOCKS, false);
    let mut router_lab = match RouterLab::open(&resolved, interrupts) {
        Ok(lab) => lab,
        Err(error @ LabError::Oversubscribed { .. }) => {
            return Ok(vec![Finding::fatal("load", error.to_string(), TWO_CPUS)]);
        }
        Err(error) => return Err(error),
    };
    router_lab.settle_load(None)?;
    let load = load_offered(router_lab.load());
    let mut findings = vec![load, placing(&router_lab.choices.placement), cores()];
    findings.extend(cpu_settings(&environment.facts, &|path| text(path)));
    findings.extend(disturbers(&router_lab.choices.placement)?);
    Ok(findings)
}

/// Under which load the router is measured here, and why not under the one that was asked for.
fn load_offered(load: &LoadRecord) -> Finding {
    const CHECK: &str = "load";
    let regime = load.regime;
    if let Some(asked) = load.instead_of {
        let why = load.why.as_deref().unwrap_or("the lab does not allow it");
        return Finding::warning(
            CHECK,
            format!("{regime} instead of {asked}, because {why}"),
            format!(
                "a machine with more or faster CPUs, or regime = \"{regime}\" in the lab file, which \
                 says what is measured"
            ),
        );
    }
    let offered = load.strata.iter().filter_map(|(stratum, load)| {
        let mega = |pps: f64| pps / 1e6;
        Some(format!(
            "{:.1} Mpps of {stratum}, of {:.1} that the tester can send and count",
            mega(load.intended_pps?),
            mega(load.tester_ceiling_pps?)
        ))
    });
    let offered: Vec<String> = offered.collect();
    Finding::fine(
        CHECK,
        if offered.is_empty() {
            regime.to_string()
        } else {
            format!("{regime}: {}", offered.join("; "))
        },
    )
}

/// Whether the machine says which CPUs share a core, on which some knobs' levels rest.
fn cores() -> Finding {
    const CHECK: &str = "cores";
    match fwdlab_router::Topology::read(|path| fs::read_to_string(path).ok()) {
        Ok(topology) => Finding::fine(CHECK, format!("of {} CPUs known", topology.cpus().len())),
        Err(error) => Finding::warning(
            CHECK,
            error.to_string(),
            "a machine that says so in /sys/devices/system/cpu, for experiments on where queues are served",
        ),
    }
}

/// What happens on the CPUs under load while nobody measures.
fn disturbers(placement: &Placement) -> Result<Vec<Finding>, LabError> {
    let mut findings = Vec::new();
    for cpu in loaded_cpus(placement) {
        findings.extend(watched(cpu)?);
        findings.push(disturbance(cpu)?);
    }
    Ok(findings)
}

/// The CPUs that the tester and the DUT keep busy.
fn loaded_cpus(placement: &Placement) -> BTreeSet<u32> {
    let queues = placement.queues.values().flatten();
    let mut cpus: BTreeSet<u32> = queues
        .flat_map(|queue| [queue.rx_cpu, queue.tx_cpu])
        .collect();
    cpus.insert(placement.load_cpu);
    cpus.extend(placement.dut_cpu);
    cpus
}

fn privilege(prepared: &Result<(), LabError>) -> Finding {
    const REMEDY: &str =
        "run as root (sudo) for eBPF live frames, XDP variants and real-time sampling";
    match prepared {
        Ok(()) if fwdlab_sys::is_root() => Finding::fine("privilege", "root"),
        Ok(()) => Finding::warning("privilege", "root of a user namespace only", REMEDY),
        Err(error) => Finding::fatal("privilege", error.to_string(), REMEDY),
    }
}

/// Tries what the lab is made of, on the real thing.
fn kernel_features() -> Vec<Finding> {
    let tried = |check, seen: &str, result: Result<(), LabError>, remedy: &str| match result {
        Ok(()) => Finding::fine(check, seen),
        Err(error) => Finding::fatal(check, error.to_string(), remedy),
    };
    let nft = if mechanism::nft::is_installed() {
        Finding::fine("nft", "installed")
    } else {
        Finding::warning(
            "nft",
            "not installed",
            "install nftables for variants with a packet filter (apt-get install nftables)",
        )
    };
    vec![
        tried(
            "namespaces, veth and routes",
            "made and removed",
            Topology::build().map(drop),
            "needs CAP_NET_ADMIN and CAP_SYS_ADMIN, and a kernel with CONFIG_NET_NS and CONFIG_VETH",
        ),
        ebpf_programs(),
        nft,
    ]
}

/// Without them the lab measures with sockets, so they are no condition.
fn ebpf_programs() -> Finding {
    const CHECK: &str = "eBPF programs";
    match fwdlab_traffic::ebpf_refusal() {
        None => Finding::fine(CHECK, "loaded"),
        Some(refusal) => Finding::warning(
            CHECK,
            refusal.to_string(),
            "they need Linux 5.18 or newer, CAP_BPF and CAP_NET_ADMIN; without them frames come from a \
             socket, and no variant has an XDP program",
        ),
    }
}

const TWO_CPUS: &str =
    "use a machine with more CPUs, or give others in [placement] of the lab file";

fn placing(placement: &Placement) -> Finding {
    placing_on(placement, &|cpu| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        cpu_list(&text(&path).unwrap_or_default())
    })
}

/// Shape: `siblings` are the CPUs of a CPU's core.
fn placing_on(placement: &Placement, siblings: &dyn Fn(u32) -> Vec<u32>) -> Finding {
    const CHECK: &str = "placement";
    let Placement {
        load_cpu,
        dut_cpu,
        control_cpu,
        ..
    } = placement;
    // A generator whose DUT is elsewhere has time to spare for the harness.
    if dut_cpu.is_none() && load_cpu == control_cpu {
        return Finding::warning(
            CHECK,
            format!("load and harness share CPU {load_cpu}"),
            TWO_CPUS,
        );
    }
    let mut used = loaded_cpus(placement);
    used.insert(*control_cpu);
    for &cpu in &used {
        let siblings = siblings(cpu);
        let other = used
            .iter()
            .find(|other| **other > cpu && siblings.contains(other));
        if let Some(other) = other {
            return Finding::warning(
                CHECK,
                format!("CPUs {cpu} and {other} are threads of one core"),
                "give CPUs of other cores in [placement] of the lab file",
            );
        }
    }
    let dut = dut_cpu.map_or_else(String::new, |cpu| format!(", DUT on CPU {cpu}"));
    Finding::fine(
        CHECK,
        format!("load on CPU {load_cpu}{dut}, harness on CPU {control_cpu}"),
    )
}

/// Settings of the CPUs that the kernel tells.
/// What of a machine's CPUs adds noise; `text` reads its files.
pub(crate) fn cpu_settings(
    facts: &BTreeMap<String, String>,
    text: &dyn Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let fact = |name: &str| facts.get(name).map(String::as_str);
    let smt = match fact("SMT active") {
        Some("1") => Finding::warning(
            "SMT",
            "on: a core's other thread slows the load",
            "echo off > /sys/devices/system/cpu/smt/control, or keep the sibling idle",
        ),
        Some(_) => Finding::fine("SMT", "off"),
        None => Finding::fine("SMT", "the kernel does not tell"),
    };
    let governor = match fact("frequency governor") {
        Some("performance") => Finding::fine("frequency governor", "performance"),
        Some(other) => Finding::warning(
            "frequency governor",
            other,
            "cpupower frequency-set --governor performance",
        ),
        None => Finding::fine(
            "frequency governor",
            "none: the frequency is not Linux's to set",
        ),
    };
    let turbo = match (
        text("/sys/devices/system/cpu/intel_pstate/no_turbo").as_deref(),
        text("/sys/devices/system/cpu/cpufreq/boost").as_deref(),
    ) {
        (Some("0"), _) => Finding::warning(
            "turbo",
            "on: the clock depends on temperature and on other cores",
            "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo",
        ),
        (_, Some("1")) => Finding::warning(
            "turbo",
            "on: the clock depends on temperature and on other cores",
            "echo 0 > /sys/devices/system/cpu/cpufreq/boost",
        ),
        (None, None) => Finding::fine("turbo", "the kernel does not tell"),
        _ => Finding::fine("turbo", "off"),
    };
    let clock = match fact("clock source") {
        Some(clock @ ("tsc" | "arch_sys_counter")) => Finding::fine("clock", clock),
        Some(other) => Finding::warning(
            "clock",
            format!("{other}: reading it is slow"),
            "boot with clocksource=tsc where the TSC is stable",
        ),
        None => Finding::fine("clock", "the kernel does not tell"),
    };
    let hypervisor = match fact("hypervisor") {
        Some(_) => Finding::warning(
            "hypervisor",
            "this is a virtual machine: other guests share its cores, caches and memory",
            "rely on the intervals and on leaving out disturbed time, or use a machine of one's own",
        ),
        None => Finding::fine("hypervisor", "none"),
    };
    let mut findings = vec![hypervisor, smt, governor, turbo, clock];
    findings.extend(fact("load average").and_then(load_average));
    findings
}

/// Whether others want the CPUs; none where the kernel's text does not read.
fn load_average(text: &str) -> Option<Finding> {
    const CHECK: &str = "load average";
    let average: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    let seen = format!("{average:.2} over the last minute");
    Some(if average > LOAD_AVERAGE_MAX {
        let remedy = "see with top what runs, and stop it or wait for it";
        Finding::warning(CHECK, seen, remedy)
    } else {
        Finding::fine(CHECK, seen)
    })
}

fn jit(facts: &BTreeMap<String, String>) -> Finding {
    const CHECK: &str = "BPF JIT";
    match facts.get(CHECK).map(String::as_str) {
        Some("0") => Finding::warning(
            CHECK,
            "off: eBPF programs are interpreted",
            "sysctl -w net.core.bpf_jit_enable=1",
        ),
        _ => Finding::fine(CHECK, "on"),
    }
}

/// What happens on the load CPU while nobody measures.
fn watched(cpu: u32) -> Result<Vec<Finding>, LabError> {
    prove_cpu_is_free(cpu)?;
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (stat, interrupts) = (read("/proc/stat"), read("/proc/interrupts"));
    sleep(WATCH);
    let (stat_after, interrupts_after) = (read("/proc/stat"), read("/proc/interrupts"));
    let share = share_of_cpu(&stat, &stat_after, cpu).unwrap_or_default();
    let percent = |ratio: f64| format!("{:.1} % of CPU {cpu}", ratio * 100.0);
    let load = if share.busy > BUSY_RATIO_MAX {
        Finding::warning(
            "other load",
            percent(share.busy),
            "stop it, or choose another load_cpu in the lab file",
        )
    } else {
        Finding::fine("other load", percent(share.busy))
    };
    let steal = if share.steal > 0.0 {
        Finding::warning(
            "steal",
            format!("the hypervisor took {}", percent(share.steal)),
            "ask for dedicated CPUs, or measure at a quieter time",
        )
    } else {
        Finding::fine("steal", "none")
    };
    let before = interrupts_of_cpu(&interrupts, cpu);
    let mut busiest: Vec<(u64, String)> = interrupts_of_cpu(&interrupts_after, cpu)
        .into_iter()
        .map(|(name, count)| {
            (
                count - before.get(&name).copied().unwrap_or(0).min(count),
                name,
            )
        })
        .collect();
    busiest.sort();
    let total: u64 = busiest.iter().map(|(count, _)| count).sum();
    let irqs = match busiest.last() {
        Some((count, name)) if total > INTERRUPTS_MAX => Finding::warning(
            "interrupts",
            format!("{total} a second on CPU {cpu}, most of them {name} ({count})"),
            "move them: echo CPUS > /proc/irq/N/smp_affinity_list (and stop irqbalance)",
        ),
        _ => Finding::fine("interrupts", format!("{total} a second on CPU {cpu}")),
    };
    Ok(vec![load, steal, irqs])
}

/// How much of the load CPU's core something else has while nothing is measured.
fn disturbance(cpu: u32) -> Result<Finding, LabError> {
    let none = || Ok(0);
    let samples = watch::watch(cpu, WATCH, &CpuAccount::None, none, none)?.samples;
    let loops_ns: Vec<u64> = samples.iter().map(|sample| sample.loop_ns).collect();
    let undisturbed_ns = fwdlab_stats::undisturbed_loop_ns(&loops_ns).unwrap_or_default();
    let slow = |ns: &&u64| **ns as f64 > undisturbed_ns * fwdlab_stats::DISTURBED_RATIO;
    let ratio = loops_ns.iter().filter(slow).count() as f64 / loops_ns.len().max(1) as f64;
    let seen = format!("{:.0} % of the time on CPU {cpu}", ratio * 100.0);
    Ok(if ratio > DISTURBED_RATIO_MAX {
        Finding::warning(
            "neighbours on the core",
            seen,
            "a quieter time or another load_cpu; what is disturbed is left out, and costs precision",
        )
    } else {
        Finding::fine("neighbours on the core", seen)
    })
}

/// Parts of a CPU's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CpuShare {
    busy: f64,
    steal: f64,
}

/// What became of a CPU's time between two readings of `/proc/stat`.
fn share_of_cpu(before: &str, after: &str, cpu: u32) -> Option<CpuShare> {
    let (before, after) = (cpu_ticks(before, cpu)?, cpu_ticks(after, cpu)?);
    let ticks: Vec<f64> = after
        .iter()
        .zip(&before)
        .map(|(after, before)| after.saturating_sub(*before) as f64)
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is in user already.
    let total: f64 = ticks.iter().take(8).sum();
    let part = |places: &[usize]| {
        let sum: f64 = places.iter().filter_map(|&place| ticks.get(place)).sum();
        if total > 0.0 { sum / total } else { 0.0 }
    };
    Some(CpuShare {
        busy: part(&[0, 1, 2, 5, 6]),
        steal: part(&[7]),
    })
}

/// Interrupts of devices on one CPU so far, by their name in `/proc/interrupts`; the kernel's own,
/// whose names are words (timer, calls of other CPUs), are left out.
fn interrupts_of_cpu(interrupts: &str, cpu: u32) -> BTreeMap<String, u64> {
    let mut lines = interrupts.lines();
    let column = lines.next().and_then(|header| {
        header
            .split_ascii_whitespace()
            .position(|name| name == format!("CPU{cpu}"))
    });
    let Some(column) = column else {
        return BTreeMap::new();
    };
    lines
        .filter_map(|line| {
            let (name, rest) = line.trim_start().split_once(':')?;
            name.parse::<u32>().ok()?;
            let mut fields = rest.split_ascii_whitespace();
            let count = fields.nth(column)?.parse().ok()?;
            let device = fields.next_back().unwrap_or_default();
            Some((format!("{name} {device}"), count))
        })
        .collect()
}

/// CPUs in the kernel's notation: `0-3,8`.
fn cpu_list(text: &str) -> Vec<u32> {
    text.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
        })
        .flat_map(|range: std::ops::RangeInclusive<u32>| range.take(8192))
        .collect()
}

#[cfg(test)]
mod tests {
    use fwdlab_model::{LoadRegime, Stratum, StratumLoad};
    use proptest::prelude::*;

    use super::super::finding::State;
    use super::*;

    #[test]
    fn a_cpus_time_is_told_apart() {
        let before = "cpu  0\ncpu0 100 0 50 1000 0 0 10 5 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n";
        let after = "cpu  0\ncpu0 110 0 60 1070 0 0 10 15 0 0\ncpu1 0 0 0 9 0 0 0 0 0 0\n";
        let share = share_of_cpu(before, after, 0).unwrap();
        assert!((share.busy - 0.2).abs() < 1e-9, "{share:?}");
        assert!((share.steal - 0.1).abs() < 1e-9, "{share:?}");
        assert_eq!(share_of_cpu(before, after, 1), Some(CpuShare::default()));
        assert_eq!(share_of_cpu(before, after, 7), None);
    }

    #[test]
    fn only_interrupts_of_devices_count() {
        let text = "            CPU0       CPU1       \n\
                      24:        17          3   PCI-MSI 512000-edge      eth0-rx\n\
                     LOC:     99999      88888   Local timer interrupts\n";
        let counts = interrupts_of_cpu(text, 1);
        assert_eq!(counts.len(), 1);
        assert_eq!(counts["24 eth0-rx"], 3);
        assert!(interrupts_of_cpu(text, 2).is_empty());
    }

    #[test]
    fn lists_of_cpus_are_the_kernels() {
        assert_eq!(cpu_list("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(cpu_list("3"), [3]);
        assert!(cpu_list("").is_empty());
    }

    #[test]
    fn what_spoils_a_measurement_has_a_remedy() {
        let facts = [
            ("SMT active", "1"),
            ("frequency governor", "powersave"),
            ("clock source", "hpet"),
            ("BPF JIT", "0"),
            ("hypervisor", "kvm"),
            ("load average", "1.92 0.80 0.31 2/240 1021"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let facts = facts.into_iter().collect();
        let mut findings = cpu_settings(&facts, &|path| text(path));
        findings.push(jit(&facts));
        assert_eq!(findings.len(), 7);
        for finding in findings.iter().filter(|finding| finding.check != "turbo") {
            assert_eq!(finding.state, State::Warning, "{finding:?}");
            assert!(finding.remedy.is_some(), "{finding:?}");
        }
        let quiet = cpu_settings(&BTreeMap::new(), &|path| text(path));
        let others = quiet.iter().filter(|finding| finding.check != "turbo");
        assert!(
            others
                .into_iter()
                .all(|finding| finding.state == State::Fine)
        );
        let idle = load_average("0.50 0.80 0.31 1/240 1021").unwrap();
        assert_eq!(idle.state, State::Fine);
        assert_eq!(load_average(""), None);
    }

    #[test]
    fn load_and_harness_are_on_cores_of_their_own() {
        let seen = |load_cpu, dut_cpu, control_cpu| {
            let placement = Placement {
                load_cpu,
                dut_cpu,
                control_cpu,
                queues: BTreeMap::new(),
            };
            // Two threads a core: 0 and 1, 2 and 3.
            let finding = placing_on(&placement, &|cpu| vec![cpu & !1, cpu | 1]);
            (finding.state, finding.seen)
        };
        let fine = |text: &str| (State::Fine, text.to_owned());
        let warning = |text: &str| (State::Warning, text.to_owned());
        assert_eq!(seen(0, None, 2), fine("load on CPU 0, harness on CPU 2"));
        assert_eq!(seen(0, None, 0), warning("load and harness share CPU 0"));
        assert_eq!(
            seen(0, Some(2), 0),
            fine("load on CPU 0, DUT on CPU 2, harness on CPU 0")
        );
        assert_eq!(
            seen(0, Some(3), 2),
            warning("CPUs 2 and 3 are threads of one core")
        );
        assert_eq!(
            seen(1, None, 0),
            warning("CPUs 0 and 1 are threads of one core")
        );
    }

    #[test]
    fn a_load_that_the_machine_does_not_allow_is_a_warning_with_its_reason() {
        let mut load = LoadRecord {
            regime: LoadRegime::SelfClocked,
            instead_of: None,
            why: None,
            strata: BTreeMap::new(),
        };
        assert_eq!(load_offered(&load), Finding::fine("load", "self-clocked"));
        load.instead_of = Some(LoadRegime::Overload);
        load.why = Some("there are too few CPUs".to_owned());
        let finding = load_offered(&load);
        assert_eq!(finding.state, State::Warning);
        assert_eq!(
            finding.seen,
            "self-clocked instead of overload, because there are too few CPUs"
        );
        load.instead_of = None;
        load.regime = LoadRegime::Overload;
        let load_of_inet = StratumLoad {
            baseline_capacity_pps: Some(8e6),
            tester_ceiling_pps: Some(2e7),
            intended_pps: Some(1e7),
        };
        load.strata = BTreeMap::from([(Stratum::INET, load_of_inet)]);
        assert_eq!(
            load_offered(&load),
            Finding::fine(
                "load",
                "overload: 10.0 Mpps of inet, of 20.0 that the tester can send and count"
            )
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, cpu: u32) {
            let _ = share_of_cpu(&text, &text, cpu);
            let _ = interrupts_of_cpu(&text, cpu);
            let _ = cpu_list(&text);
        }
    }
}
