//! Which functions a CPU runs when it has nothing to do.

/// Functions of FreeBSD's idle thread, of all processors and versions from 9 to 16.
///
/// The thread itself (since 16 each scheduler has its own), what it calls to sleep, and what that calls on x86: by
/// `hlt`, by `mwait`, by polling, or by a state of ACPI; on ARM and RISC-V `cpu_idle` waits itself. A name that merely
/// contains one of these may be work: `cpu_idle_wakeup` is called by whoever wakes another CPU. Nor is `fork_exit`
/// here: every thread of the kernel begins with it.
const IDLE: &[&str] = &[
    "acpi_cpu_c1",
    "acpi_cpu_idle",
    "acpi_cpu_idle_mwait",
    "armv7_cpu_sleep",
    "cpu_idle",
    "cpu_idle_60x",
    "cpu_idle_acpi",
    "cpu_idle_booke",
    "cpu_idle_e500mc",
    "cpu_idle_hlt",
    "cpu_idle_mwait",
    "cpu_idle_spin",
    "sched_4bsd_idletd",
    "sched_idletd",
    "sched_ule_idletd",
];

/// Whether a frame says that its CPU had nothing to do; with its object before a backquote or without.
///
/// FreeBSD's names. An interrupt is no part of the stack of the thread it interrupted there, so a
/// sample with such a frame anywhere on its stack is an idle one.
///
/// # Source
/// FreeBSD: `sys/kern/sched_ule.c`, `sys/kern/sched_4bsd.c`, `sys/x86/x86/cpu_machdep.c`,
/// `sys/dev/acpica/acpi_cpu.c`, `sys/{arm,arm64,riscv,powerpc}/*/machdep.c`, `sys/arm/arm/cpu_asm-v6.S`.
#[must_use]
pub fn is_idle(frame: &str) -> bool {
    IDLE.contains(&symbol(frame))
}

/// Functions in which Linux sleeps, on x86, ARM and RISC-V.
const SLEEPING: &[&str] = &[
    "__cpu_do_idle",
    "acpi_idle_do_entry",
    "acpi_idle_enter",
    "acpi_idle_enter_bm",
    "acpi_processor_ffh_cstate_enter",
    "acpi_safe_halt",
    "amd_e400_idle",
    "arch_cpu_idle",
    "call_cpuidle",
    "cpu_do_idle",
    "cpu_idle_poll",
    "cpuidle_enter",
    "cpuidle_enter_s2idle",
    "cpuidle_enter_state",
    "cpuidle_idle_call",
    "default_enter_idle",
    "default_idle",
    "default_idle_call",
    "do_idle",
    "haltpoll_enter_idle",
    "intel_idle",
    "intel_idle_hlt",
    "intel_idle_hlt_irq_on",
    "intel_idle_ibrs",
    "intel_idle_irq",
    "intel_idle_s2idle",
    "intel_idle_xstate",
    "mwait_idle",
    "mwait_idle_with_hints",
    "native_halt",
    "native_safe_halt",
    "poll_idle",
    "psci_enter_domain_idle_state",
    "psci_enter_idle_state",
    "pv_native_safe_halt",
    "sbi_cpuidle_enter_state",
    "tdx_halt",
    "tdx_safe_halt",
    "xen_safe_halt",
];

/// Whether a sample that was taken in this function says that its CPU had nothing to do.
///
/// Linux's names. An interrupt's stack stands on that of the thread it interrupted there, and much is forwarded
/// in interrupts: so the function itself counts, not what called it.
///
/// # Source
/// Linux: `kernel/sched/idle.c`, `drivers/cpuidle`, `drivers/idle/intel_idle.c`, `drivers/acpi/processor_idle.c`,
/// `arch/x86/kernel/process.c`, `arch/x86/coco/tdx/tdx.c`, `arch/arm64/kernel/idle.c`, `arch/riscv/kernel/process.c`.
#[must_use]
pub fn is_sleeping(leaf: &str) -> bool {
    SLEEPING.contains(&symbol(leaf))
}

/// Words of which names of idle functions are made, on any system, and names of others hardly.
const IDLE_WORDS: &[&str] = &[
    "cstate", "halt", "haltpoll", "hlt", "idle", "idletd", "mwait", "snooze", "wfe", "wfi",
];

/// Functions with such a word in their names that are work: they wake an idle CPU, ask whether there is one, or
/// give a rest to what is no CPU.
const AT_WORK: &[&str] = &[
    "available_idle_cpu",
    "cpu_idle_wakeup",
    "idle_cpu",
    "mp_ring_is_idle",
    "sched_idle_cpu",
    "select_idle_sibling",
    "wake_idle_cpu",
    "wake_up_idle_cpu",
];

/// Whether a function is none that is known, neither as idle nor as work, and has a name as idle functions have.
///
/// That is a question and no answer: the lists above are of the systems that their authors read, and another version
/// or processor has other functions. Whoever finds most samples of a profile in one has to look it up.
#[must_use]
pub fn may_be_idle(leaf: &str) -> bool {
    let symbol = symbol(leaf);
    let mut words = symbol.split(|character: char| !character.is_ascii_alphanumeric());
    words.any(|word| IDLE_WORDS.contains(&word))
        && !IDLE.contains(&symbol)
        && !SLEEPING.contains(&symbol)
        && !AT_WORK.contains(&symbol)
}

/// A frame without its object.
fn symbol(frame: &str) -> &str {
    frame.rsplit('`').next().unwrap_or(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_sleeps_in_the_function_itself() {
        assert!(is_sleeping("pv_native_safe_halt") && is_sleeping("[kernel.kallsyms]`intel_idle"));
        assert!(is_sleeping("intel_idle_ibrs") && is_sleeping("cpu_do_idle"));
        assert!(!is_sleeping("net_rx_action"));
    }

    #[test]
    fn idle_is_who_sleeps_and_not_who_wakes() {
        for idle in [
            "sched_idletd",
            "sched_ule_idletd",
            "kernel`sched_4bsd_idletd",
            "kernel`cpu_idle",
            "acpi_cpu_c1",
        ] {
            assert!(is_idle(idle), "{idle}");
        }
        for busy in [
            "cpu_idle_wakeup",
            "mp_ring_is_idle",
            "fork_exit",
            "kernel`sleepq_wait",
            "",
        ] {
            assert!(!is_idle(busy), "{busy}");
        }
    }

    #[test]
    fn a_function_that_is_not_known_and_is_named_for_idling_is_a_question() {
        for asked in [
            "kernel`cpu_idle_wfi",
            "sched_eevdf_idletd",
            "powernv_idle_hook",
            "amd_mwait",
        ] {
            assert!(may_be_idle(asked), "{asked}");
        }
        for known in [
            "sched_ule_idletd",
            "intel_idle",
            "cpu_idle_wakeup",
            "mp_ring_is_idle",
        ] {
            assert!(!may_be_idle(known), "{known}");
        }
        for other in [
            "idleness",
            "ip_input",
            "_sleep",
            "lock_delay",
            "default",
            "",
        ] {
            assert!(!may_be_idle(other), "{other}");
        }
    }
}
