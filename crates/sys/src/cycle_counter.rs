//! A counter that is cheaper to read than any clock.

/// What the CPU's counter of time reads.
///
/// Units: ticks of the time stamp counter on x86-64 and of the virtual counter on 64-bit ARM,
/// nanoseconds elsewhere. Only differences mean anything, and only between readings close together: it
/// is read wherever the CPU's pipeline happens to be, and may differ between sockets.
#[inline]
#[must_use]
pub fn cycle_counter() -> u64 {
    counter()
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction, and the systems fwdlab runs on allow it to all.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reads one register, which the systems fwdlab runs on allow to all.
    unsafe {
        std::arch::asm!(
            "mrs {ticks}, cntvct_el0",
            ticks = out(reg) ticks,
            options(nomem, nostack, preserves_flags)
        );
    }
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> u64 {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_and_not_back() {
        let start = cycle_counter();
        let later = (0..1_000_000)
            .map(|_| cycle_counter())
            .find(|&now| now != start);
        assert!(later.is_some_and(|later| later > start));
    }
}
