//! Threads that may fail to start.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::SysError;

/// Starts a thread. Where the machine has no room for one, that is an error; the standard library's `spawn` panics.
///
/// # Errors
/// What the system says.
pub fn start_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, SysError> {
    Builder::new().spawn(work).map_err(not_started)
}

/// The same, of a scope.
///
/// # Errors
/// What the system says.
pub fn start_thread_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, SysError> {
    Builder::new()
        .spawn_scoped(scope, work)
        .map_err(not_started)
}

fn not_started(source: io::Error) -> SysError {
    SysError::new(
        "starting a thread (see `ulimit -u` and the pids.max of its cgroup)",
        source,
    )
}
