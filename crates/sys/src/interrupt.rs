//! Signals: the user's wish to stop, and waking a thread out of a long system call.

use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::SysError;

static REQUESTS: AtomicU32 = AtomicU32::new(0);

/// How often the user asked this process to stop.
#[derive(Clone, Copy, Debug)]
pub struct Interrupts(());

impl Interrupts {
    /// Requests so far: 1 asks to finish what is running, more to stop now.
    #[must_use]
    pub fn requests(self) -> u32 {
        REQUESTS.load(Ordering::Relaxed)
    }
}

extern "C" fn count_request(_: i32) {
    REQUESTS.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn do_nothing(_: i32) {}

/// Counts `SIGINT`, `SIGTERM` and `SIGHUP` instead of ending at once, so that what was changed can
/// be put back.
///
/// # Errors
/// When the kernel refuses the handlers.
pub fn watch_interrupts() -> Result<Interrupts, SysError> {
    let action = SigAction::new(
        SigHandler::Handler(count_request),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only adds to an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }
            .map_err(|errno| SysError::new(format!("watching for {signal}"), errno))?;
    }
    Ok(Interrupts(()))
}

/// The signal that wakes a thread; Rust's runtime and the libraries in use leave it alone.
const WAKE_UP: Signal = Signal::SIGUSR2;

/// Proof that threads may be woken without ending the process.
#[derive(Clone, Copy, Debug)]
pub struct WakeUp(());

/// Prepares this process for [`WakeUp::until_finished`].
///
/// # Errors
/// When the kernel refuses the handler.
pub fn enable_wake_ups() -> Result<WakeUp, SysError> {
    // No SA_RESTART: the interrupted system call is to return.
    let action = SigAction::new(
        SigHandler::Handler(do_nothing),
        SaFlags::empty(),
        SigSet::empty(),
    );
    // SAFETY: the handler does nothing.
    unsafe { sigaction(WAKE_UP, &action) }
        .map_err(|errno| SysError::new("preparing to wake threads", errno))?;
    Ok(WakeUp(()))
}

impl WakeUp {
    /// Wakes a thread out of its system calls until it ends, and returns what it returned.
    ///
    /// The thread is expected to have been told to end by other means; a signal that comes just
    /// before its system call is lost, so it is sent until it is no longer needed.
    ///
    /// # Errors
    /// The thread's panic.
    pub fn until_finished<T>(self, thread: JoinHandle<T>) -> std::thread::Result<T> {
        while !thread.is_finished() {
            // The handle has not been joined, so its id is valid even if the thread just ended.
            let _ = nix::sys::pthread::pthread_kill(thread.as_pthread_t(), WAKE_UP);
            std::thread::sleep(Duration::from_micros(500));
        }
        thread.join()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_sleeping_thread_is_woken() {
        let wake_up = enable_wake_ups().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut sleeps = 0;
            while !stopped.load(Ordering::Relaxed) {
                // SAFETY: poll with no descriptors only sleeps; unlike std's sleep it returns when
                // it is interrupted.
                unsafe { libc::poll(std::ptr::null_mut(), 0, 3_600_000) };
                sleeps += 1;
            }
            sleeps
        });
        stop.store(true, Ordering::Relaxed);
        assert!(wake_up.until_finished(thread).unwrap() >= 0);
    }

    #[test]
    fn an_interrupt_is_counted_and_survived() {
        let interrupts = watch_interrupts().unwrap();
        let before = interrupts.requests();
        nix::sys::signal::raise(Signal::SIGTERM).unwrap();
        assert_eq!(interrupts.requests(), before + 1);
    }
}
