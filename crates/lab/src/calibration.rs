//! A fixed loop on the load CPU: how fast is that core right now?

use std::hint::black_box;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::LabError;

/// Steps of the loop: about a fifth of a millisecond, well inside the settle window.
const STEPS: u32 = 200_000;

/// How long the loop may be kept from its CPU: whatever runs there does so before every thread
/// that this process may start, and would never let go.
const PATIENCE: Duration = Duration::from_secs(5);

/// A thread on the load CPU that runs the loop when asked.
///
/// Where it may, it goes before every ordinary thread, so that the load stands still meanwhile and
/// the time is that of the loop alone.
pub(crate) struct Calibrator {
    requests: SyncSender<()>,
    times_ns: Receiver<u64>,
    cpu: u32,
}

impl Calibrator {
    pub(crate) fn start(cpu: u32) -> Result<Self, LabError> {
        let (requests, incoming) = sync_channel::<()>(1);
        let (outgoing, times_ns) = sync_channel(1);
        let (ready, started) = sync_channel(1);
        std::thread::spawn(move || {
            let pinned = fwdlab_sys::pin_this_thread(cpu);
            let _ = fwdlab_sys::prefer_this_thread();
            let go_on = pinned.is_ok();
            if ready.send(pinned).is_err() || !go_on {
                return;
            }
            while incoming.recv().is_ok() && outgoing.send(time_of_loop_ns()).is_ok() {}
        });
        started.recv().expect("the thread answers before it ends")?;
        Ok(Self {
            requests,
            times_ns,
            cpu,
        })
    }

    /// The loop's time now.
    ///
    /// # Errors
    /// `CpuTaken` where the load CPU is kept from it.
    pub(crate) fn time_ns(&self) -> Result<u64, LabError> {
        self.requests
            .send(())
            .expect("the thread lives as long as this value");
        match self.times_ns.recv_timeout(PATIENCE) {
            Ok(time_ns) => Ok(time_ns),
            Err(RecvTimeoutError::Timeout) => Err(LabError::CpuTaken {
                cpu: self.cpu,
                seconds: PATIENCE.as_secs(),
            }),
            Err(RecvTimeoutError::Disconnected) => {
                unreachable!("the thread answers every request")
            }
        }
    }
}

fn time_of_loop_ns() -> u64 {
    let start = Instant::now();
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..STEPS {
        // xorshift: each step waits for the one before, so only the core's clock matters.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
