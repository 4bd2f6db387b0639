//! Waiting until the kernel's network code has let go of what it was using.

use std::io;
use std::thread::sleep;
use std::time::Duration;

/// `MEMBARRIER_CMD_GLOBAL` of `linux/membarrier.h`: the kernel waits for an RCU grace period.
const GLOBAL: libc::c_int = 1;

/// Longer than a grace period takes on a loaded machine, where the kernel offers no way to wait for one.
const GRACE_PERIOD_MAX: Duration = Duration::from_millis(200);

/// Waits until all network polls and softirqs that are running now have ended.
///
/// Both run with softirqs disabled, and an RCU grace period does not end before such a section does.
/// A kernel with `nohz_full` CPUs refuses to wait for one; there, this sleeps for longer than one
/// takes.
///
/// # Source
/// `kernel/sched/membarrier.c`: `MEMBARRIER_CMD_GLOBAL` calls `synchronize_rcu`.
pub fn wait_for_network_polls() {
    // SAFETY: the call takes three integers and touches no memory of this process.
    let waited = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if waited != 0 {
        debug_assert_ne!(
            io::Error::last_os_error().raw_os_error(),
            Some(libc::EFAULT),
            "it is given no address"
        );
        sleep(GRACE_PERIOD_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_period_ends() {
        wait_for_network_polls();
    }
}
