//! Which functions a CPU runs when it has nothing to do.

/// Functions of FreeBSD's idle thread, of all processors.
///
/// The thread itself, what it calls to sleep, and what that calls on x86: by `hlt`, by `mwait`, by
/// polling, or by a state of ACPI. A name that merely contains one of these may be work:
/// `cpu_idle_wakeup` is called by whoever wakes another CPU.
const IDLE: &[&str] = &[
    "acpi_cpu_c1",
    "acpi_cpu_idle",
    "acpi_cpu_idle_mwait",
    "cpu_idle",
    "cpu_idle_acpi",
    "cpu_idle_hlt",
    "cpu_idle_mwait",
    "cpu_idle_spin",
    "sched_idletd",
];

/// Whether a frame says that its CPU had nothing to do; with its object before a backquote or without.
///
/// FreeBSD's names. An interrupt is no part of the stack of the thread it interrupted there, so a
/// sample with such a frame anywhere on its stack is an idle one.
///
/// # Source
/// FreeBSD: `sys/kern/sched_ule.c`, `sys/kern/sched_4bsd.c`, `sys/x86/x86/cpu_machdep.c`,
/// `sys/dev/acpica/acpi_cpu.c`.
#[must_use]
pub fn is_idle(frame: &str) -> bool {
    let symbol = frame.rsplit('`').next().unwrap_or(frame);
    IDLE.contains(&symbol)
}

/// Functions in which Linux sleeps, on x86 and ARM.
const SLEEPING: &[&str] = &[
    "acpi_idle_do_entry",
    "acpi_processor_ffh_cstate_enter",
    "acpi_safe_halt",
    "arch_cpu_idle",
    "cpu_do_idle",
    "cpu_idle_poll",
    "cpuidle_enter",
    "cpuidle_enter_state",
    "default_idle",
    "default_idle_call",
    "do_idle",
    "haltpoll_enter_idle",
    "intel_idle",
    "intel_idle_irq",
    "intel_idle_s2idle",
    "mwait_idle",
    "mwait_idle_with_hints",
    "native_halt",
    "native_safe_halt",
    "poll_idle",
    "pv_native_safe_halt",
];

/// Whether a sample that was taken in this function says that its CPU had nothing to do.
///
/// Linux's names. An interrupt's stack stands on that of the thread it interrupted there, and much is forwarded
/// in interrupts: so the function itself counts, not what called it.
///
/// # Source
/// Linux: `kernel/sched/idle.c`, `drivers/cpuidle`, `drivers/idle/intel_idle.c`, `arch/x86/kernel/process.c`.
#[must_use]
pub fn is_sleeping(leaf: &str) -> bool {
    let symbol = leaf.rsplit('`').next().unwrap_or(leaf);
    SLEEPING.contains(&symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_sleeps_in_the_function_itself() {
        assert!(is_sleeping("pv_native_safe_halt") && is_sleeping("[kernel.kallsyms]`intel_idle"));
        assert!(!is_sleeping("net_rx_action"));
    }

    #[test]
    fn idle_is_who_sleeps_and_not_who_wakes() {
        for idle in ["sched_idletd", "kernel`cpu_idle", "acpi_cpu_c1"] {
            assert!(is_idle(idle), "{idle}");
        }
        for busy in [
            "cpu_idle_wakeup",
            "mp_ring_is_idle",
            "kernel`sleepq_wait",
            "",
        ] {
            assert!(!is_idle(busy), "{busy}");
        }
    }
}
