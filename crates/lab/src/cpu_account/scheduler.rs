//! The account as the kernel's scheduler gives it, switch by switch: exact, and for root alone.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::OnceLock;
use std::time::Duration;

use aya::maps::{Array, HashMap, MapData};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};
use fwdlab_profile::KernelSymbols;
use fwdlab_traffic::{load_patiently, object_bytes};

use super::{Taken, printable};
use crate::kernel_types::kernel_types;

/// The programs, each with the tracepoint at which it runs.
const PROGRAMS: [(&str, &str); 3] = [
    ("charge_task", "sched_switch"),
    ("begin_interrupt", "irq_handler_entry"),
    ("charge_interrupt", "irq_handler_exit"),
];

/// Those of timers. A kernel that does not have them, or hides where its functions are, tells nothing of timers.
const TIMER_PROGRAMS: [(&str, &str); 2] = [
    ("begin_timer", "hrtimer_expire_entry"),
    ("charge_timer", "hrtimer_expire_exit"),
];

/// Functions of timers that the load has as well: the tick under its names, the end of a sleep, polls of its devices and
/// queues that wait.
///
/// # Source
/// Linux: `kernel/time/tick-sched.c`, `kernel/time/hrtimer.c`, `net/core/dev.c`, `net/sched/sch_api.c`.
const OWN_TIMERS: [&str; 5] = [
    "tick_nohz_handler",
    "tick_sched_timer",
    "hrtimer_wakeup",
    "napi_watchdog",
    "qdisc_watchdog",
];

/// As many as the programs have room for.
const OWN_TIMERS_MAX: usize = 6;

/// `struct cpu`: its numbers, in order.
type Cpu = [u64; 8];

const TAKEN_NS: usize = 1;
const IS_WATCHED: usize = 4;
const IS_NEVER_IDLE: usize = 7;

/// `struct taker`: CPU and kind in four bytes each, and a name that ends with a zero byte.
type Taker = [u8; 40];

/// Programs at the scheduler's tracepoints, until the value goes.
pub(crate) struct Scheduler {
    /// Those of the load at present.
    of_load: Vec<u32>,
    cpus: Array<MapData, Cpu>,
    takers: HashMap<MapData, Taker, u64>,
    namespaces: Array<MapData, u32>,
    // The programs count as long as this lives.
    _programs: Ebpf,
}

impl Scheduler {
    /// Starts to account for these CPUs; none where this kernel does not tell, or not this process.
    pub(super) fn open(watched: &[u32]) -> Option<Self> {
        let btf = kernel_types()?;
        let processes = fs::metadata("/proc/self/ns/pid").ok()?;
        let device = kernel_device(processes.dev());
        let own_timers = own_timers();
        let mut programs = EbpfLoader::new()
            .btf(Some(btf))
            .override_global("PID_NAMESPACE_DEVICE", &device, true)
            .override_global("PID_NAMESPACE_INODE", &processes.ino(), true)
            .override_global("PROCESS", &std::process::id(), true)
            .override_global("OWN_TIMERS", &own_timers.unwrap_or_default(), true)
            .load(object_bytes!("../../bpf/cpu_account.bpf.o"))
            .ok()?;
        let mut cpus = Array::try_from(programs.take_map("cpus")?).ok()?;
        let takers = HashMap::try_from(programs.take_map("takers")?).ok()?;
        let namespaces = Array::try_from(programs.take_map("namespaces")?).ok()?;
        let mut cpu = Cpu::default();
        cpu[IS_WATCHED] = 1;
        for &number in watched {
            cpus.set(number, cpu, 0).ok()?;
        }
        for (name, tracepoint) in PROGRAMS {
            attach(&mut programs, name, tracepoint, btf)?;
        }
        if own_timers.is_some() {
            for (name, tracepoint) in TIMER_PROGRAMS {
                let _ = attach(&mut programs, name, tracepoint, btf);
            }
        }
        Some(Self {
            of_load: watched.to_vec(),
            cpus,
            takers,
            namespaces,
            _programs: programs,
        })
    }

    pub(super) fn is_never_idle(&mut self, number: u32) {
        if let Ok(mut cpu) = self.cpus.get(&number, 0) {
            cpu[IS_NEVER_IDLE] = 1;
            // Where that fails, idle time is nobody's.
            let _ = self.cpus.set(number, cpu, 0);
        }
    }

    pub(super) fn prepare(&mut self, cpus: &[u32], namespaces: [u64; 2]) {
        self.of_load = cpus.to_vec();
        for (index, number) in (0..).zip(namespaces) {
            // There are two places, and inode numbers of namespaces have 32 bits.
            let _ = (self.namespaces).set(index, u32::try_from(number).unwrap_or_default(), 0);
        }
    }

    pub(super) fn taken(&self) -> Duration {
        let of_cpu = |cpu: &u32| self.cpus.get(cpu, 0).map_or(0, |cpu| cpu[TAKEN_NS]);
        let cpus = u32::try_from(self.of_load.len()).unwrap_or(u32::MAX);
        Duration::from_nanos(self.of_load.iter().map(of_cpu).sum()) / cpus.max(1)
    }

    /// What each took so far, by CPU and name.
    pub(super) fn by_name(&self) -> Taken {
        let mut taken = Taken::new();
        for (taker, time_ns) in self.takers.iter().flatten() {
            let (cpu, name) = shown(&taker);
            if self.of_load.contains(&cpu) {
                // Several threads of the kernel have one name.
                *taken.entry((cpu, name)).or_default() += Duration::from_nanos(time_ns);
            }
        }
        taken
    }
}

/// Has a program run at a tracepoint; none where it may not, or cannot.
fn attach(programs: &mut Ebpf, name: &str, tracepoint: &str, btf: &Btf) -> Option<()> {
    let program: &mut BtfTracePoint = programs.program_mut(name)?.try_into().ok()?;
    load_patiently(|| program.load(tracepoint, btf)).ok()?;
    program.attach().map(drop).ok()
}

/// The kernel's functions; none where it hides them. They take a moment to read; what is loaded later has no name.
fn symbols() -> Option<&'static KernelSymbols> {
    static SYMBOLS: OnceLock<Option<KernelSymbols>> = OnceLock::new();
    let read = || KernelSymbols::parse(&fs::read("/proc/kallsyms").ok()?, b"").ok();
    SYMBOLS.get_or_init(read).as_ref()
}

/// Where the functions of the load's own timers are; none where the kernel hides that.
fn own_timers() -> Option<[u64; OWN_TIMERS_MAX]> {
    let symbols = symbols()?;
    let mut addresses = [0; OWN_TIMERS_MAX];
    let found = OWN_TIMERS.iter().filter_map(|name| symbols.address(name));
    for (place, address) in addresses.iter_mut().zip(found) {
        *place = address;
    }
    // Without the tick's, every tick would be somebody else's.
    let has_tick = OWN_TIMERS[..2]
        .iter()
        .any(|name| symbols.address(name).is_some());
    has_tick.then_some(addresses)
}

/// A device number as the kernel has it, where user space sees its minor number in two pieces.
const fn kernel_device(seen: u64) -> u64 {
    let (major, minor) = (
        (seen >> 8) & 0xfff,
        (seen & 0xff) | ((seen >> 12) & 0xfff00),
    );
    (major << 20) | minor
}

/// The CPU of a taker, and what readers are told of it.
fn shown(taker: &Taker) -> (u32, String) {
    let [cpu, kind] = [0, 4].map(|at| {
        let bytes = taker[at..at + 4].try_into().expect("four bytes");
        u32::from_ne_bytes(bytes)
    });
    let address = u64::from_ne_bytes(taker[8..16].try_into().expect("eight bytes"));
    let name = taker[8..].split(|&byte| byte == 0).next().unwrap_or(&[]);
    let name = printable(&String::from_utf8_lossy(name));
    let shown = match kind {
        1 => {
            let kind = name.split('/').next().unwrap_or(&name);
            format!("kernel thread {kind}")
        }
        2 => format!("interrupts of {name}"),
        3 => {
            let function = symbols().and_then(|symbols| symbols.function(address));
            function.map_or_else(
                || "timers".to_owned(),
                |function| format!("timers of {}", function.name),
            )
        }
        4 => "nobody, while the load was kept from running".to_owned(),
        _ => name,
    };
    (cpu, shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taker(cpu: u32, kind: u32, name: &str) -> Taker {
        let mut taker = [0; 40];
        taker[..4].copy_from_slice(&cpu.to_ne_bytes());
        taker[4..8].copy_from_slice(&kind.to_ne_bytes());
        taker[8..8 + name.len()].copy_from_slice(name.as_bytes());
        taker
    }

    #[test]
    fn takers_are_told_by_what_they_are() {
        let of = |kind, name| shown(&taker(3, kind, name));
        assert_eq!(of(0, "cargo"), (3, "cargo".into()));
        assert_eq!(of(1, "kworker/3:1H"), (3, "kernel thread kworker".into()));
        assert_eq!(
            of(2, "eth0-TxRx-3"),
            (3, "interrupts of eth0-TxRx-3".into())
        );
    }

    #[test]
    fn a_minor_number_in_two_pieces_is_put_together() {
        assert_eq!(kernel_device(4), 4);
        assert_eq!(kernel_device(0x0010_0004), 0x104);
        assert_eq!(kernel_device(0x0803), 0x0080_0003);
    }

    proptest! {
        #[test]
        fn any_taker_can_be_shown(bytes: [u8; 20], more: [u8; 20]) {
            let mut taker = [0; 40];
            taker[..20].copy_from_slice(&bytes);
            taker[20..].copy_from_slice(&more);
            shown(&taker);
        }
    }
}
