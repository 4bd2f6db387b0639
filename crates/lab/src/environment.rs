//! What machine this is, and what on it is known to spoil measurements.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use fwdlab_model::{Environment, Tester};

/// Looks at this machine; what it does not tell is left out, and the tester is the lab's affair.
#[must_use]
pub fn environment() -> Environment {
    let cpus = fwdlab_sys::online_cpus().map_or(1, |cpus| cpus.len());
    let nft = Command::new("nft").arg("--version").output().ok();
    let nft = nft.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    environment_by(text, u32::try_from(cpus).unwrap_or(u32::MAX), nft)
}

/// The files that tell it.
pub(crate) const ENVIRONMENT_FILES: [&str; 11] = [
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/loadavg",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/version",
    "/proc/sys/net/core/bpf_jit_enable",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/smt/active",
];

/// The same of a machine whose [files](ENVIRONMENT_FILES) are read in some way.
pub(crate) fn environment_by(
    text: impl Fn(&str) -> Option<String>,
    cpus: u32,
    nft: Option<String>,
) -> Environment {
    let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
    let release = text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = text("/proc/sys/kernel/version").unwrap_or_default();
    let mut facts = BTreeMap::new();
    for (name, path) in [
        ("SMT active", "/sys/devices/system/cpu/smt/active"),
        (
            "frequency governor",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        ),
        (
            "clock source",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        ("BPF JIT", "/proc/sys/net/core/bpf_jit_enable"),
        ("load average", "/proc/loadavg"),
    ] {
        if let Some(value) = text(path) {
            facts.insert(name.to_owned(), value);
        }
    }
    if let Some(parameters) = text("/proc/cmdline").and_then(|line| boot_parameters(&line)) {
        facts.insert("boot parameters".to_owned(), parameters);
    }
    if let Some(hypervisor) = hypervisor(&cpuinfo) {
        facts.insert("hypervisor".to_owned(), hypervisor);
    }
    if let Some(version) = nft {
        facts.insert("nft".to_owned(), version);
    }
    Environment {
        kernel: format!("{release} {version}"),
        cpu_model: cpu_field(&cpuinfo, "model name")
            .unwrap_or("unknown CPU")
            .to_owned(),
        cpus,
        machine: machine(&text),
        noise_sources: noise_sources(&facts),
        facts,
        tester: Tester::default(),
    }
}

/// CPU time that the hypervisor took from one CPU since boot, in seconds.
///
/// Shape: as fine as the kernel's clock ticks, a hundredth of a second.
#[must_use]
pub(crate) fn steal_s(cpu: u32) -> f64 {
    const TICK_MS: u64 = 10;
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    Duration::from_millis(steal_ticks(&stat, cpu).unwrap_or(0) * TICK_MS).as_secs_f64()
}

fn steal_ticks(stat: &str, cpu: u32) -> Option<u64> {
    cpu_ticks(stat, cpu)?.get(7).copied()
}

/// What became of a CPU's time since boot, from `/proc/stat`: user, nice, system, idle, iowait, irq,
/// softirq, steal, guest times, in clock ticks.
pub(crate) fn cpu_ticks(stat: &str, cpu: u32) -> Option<Vec<u64>> {
    let fields = stat
        .lines()
        .find_map(|line| {
            let (name, rest) = line.split_once(' ')?;
            (name.strip_prefix("cpu")? == cpu.to_string()).then_some(rest)
        })?
        .split_ascii_whitespace();
    fields.map(|field| field.parse().ok()).collect()
}

/// Boot parameters that change how fast a kernel forwards. The others stay unrecorded: a command
/// line may hold what is not for publication.
fn boot_parameters(line: &str) -> Option<String> {
    const TELLING: [&str; 9] = [
        "mitigations",
        "isolcpus",
        "nohz_full",
        "rcu_nocbs",
        "intel_pstate",
        "amd_pstate",
        "intel_idle.max_cstate",
        "processor.max_cstate",
        "idle",
    ];
    let telling: Vec<_> = line
        .split_ascii_whitespace()
        .filter(|word| TELLING.contains(&word.split('=').next().unwrap_or_default()))
        .collect();
    (!telling.is_empty()).then(|| telling.join(" "))
}

pub(crate) fn text(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}

fn cpu_field<'a>(cpuinfo: &'a str, field: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == field).then_some(value.trim())
    })
}

fn hypervisor(cpuinfo: &str) -> Option<String> {
    let runs_under_one = cpu_field(cpuinfo, "flags")?
        .split_ascii_whitespace()
        .any(|flag| flag == "hypervisor");
    runs_under_one.then(|| text("/sys/hypervisor/type").unwrap_or_else(|| "yes".into()))
}

fn machine(text: impl Fn(&str) -> Option<String>) -> Option<String> {
    let parts: Vec<_> = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|name| text(&format!("/sys/class/dmi/id/{name}")))
        .collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// What of these facts is known to spoil measurements.
pub(crate) fn noise_sources(facts: &BTreeMap<String, String>) -> Vec<String> {
    let fact = |name: &str| facts.get(name).map(String::as_str);
    let mut sources = Vec::new();
    if fact("hypervisor").is_some() {
        sources.push(
            "this is a virtual machine: other guests share its cores, caches and memory".into(),
        );
    }
    if fact("SMT active") == Some("1") {
        sources.push("SMT is on: the sibling of the load CPU shares its core".into());
    }
    if let Some(governor) = fact("frequency governor")
        && governor != "performance"
    {
        sources.push(format!(
            "the frequency governor is {governor}, not performance"
        ));
    }
    if let Some(load) = fact("load average")
        .and_then(|text| text.split(' ').next())
        .and_then(|text| text.parse::<f64>().ok())
        && load > 0.5
    {
        sources.push(format!(
            "other work was running: load average {load} before the run"
        ));
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_are_read_are_those_that_are_listed() {
        let read = std::cell::RefCell::new(std::collections::BTreeSet::new());
        environment_by(
            |path| {
                read.borrow_mut().insert(path.to_owned());
                None
            },
            1,
            None,
        );
        let listed = ENVIRONMENT_FILES.map(str::to_owned);
        assert_eq!(read.into_inner(), listed.into());
    }

    #[test]
    fn steal_is_the_eighth_field_of_the_cpu() {
        let stat =
            "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 42 0 0\ncpu10 0 0 0 0 0 0 0 7 0 0\n";
        assert_eq!(steal_ticks(stat, 0), Some(42));
        assert_eq!(steal_ticks(stat, 10), Some(7));
        assert_eq!(steal_ticks(stat, 1), None);
    }

    #[test]
    fn only_telling_boot_parameters_are_recorded() {
        let line = "root=/dev/sda1 token=secret mitigations=off isolcpus=2-3 quiet";
        assert_eq!(
            boot_parameters(line).as_deref(),
            Some("mitigations=off isolcpus=2-3")
        );
        assert_eq!(boot_parameters("quiet"), None);
    }

    #[test]
    fn noise_is_named() {
        let facts = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect()
        };
        let quiet = facts(&[
            ("frequency governor", "performance"),
            ("load average", "0.10 0 0"),
        ]);
        assert!(noise_sources(&quiet).is_empty());
        let noisy = facts(&[
            ("frequency governor", "powersave"),
            ("load average", "1.90 0 0"),
        ]);
        assert_eq!(noise_sources(&noisy).len(), 2);
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_cpu() {
        let environment = environment();
        assert!(!environment.kernel.trim().is_empty());
        assert!(environment.cpus > 0);
    }
}
