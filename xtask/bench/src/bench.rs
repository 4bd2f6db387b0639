//! What every bench has: the CPUs it may use, and the user's wish to stop.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use fwdlab_model::Environment;
use fwdlab_sys::Interrupts;

use crate::counter::{seconds, steal_ticks};

/// An open bench.
pub(crate) struct Bench {
    /// Where tester and DUT take turns.
    pub(crate) load_cpu: u32,
    /// Where whatever watches them runs.
    pub(crate) control_cpu: u32,
    pub(crate) interrupts: Interrupts,
    /// When it was opened.
    pub(crate) started: Instant,
    /// The machine as it was before the bench made a load of its own.
    pub(crate) environment: Environment,
    /// The load CPU's steal when it was opened.
    steal_ticks_before: u64,
}

impl Bench {
    /// Checks the privilege and removes what killed runs left.
    pub(crate) fn open() -> Result<Self> {
        if !fwdlab_sys::is_root() {
            bail!(
                "bench: it needs root to make namespaces and load eBPF programs, and this process \
                 has user id {}; run it with sudo",
                fwdlab_sys::user_id()
            );
        }
        let interrupts = fwdlab_sys::watch_interrupts()?;
        fwdlab_sys::remove_leftovers()?;
        let cpus = fwdlab_sys::online_cpus()?;
        let environment = fwdlab_lab::environment();
        // As the lab does: the load on the first CPU, whatever watches it on the last.
        let (&load_cpu, &control_cpu) = cpus
            .first()
            .zip(cpus.last())
            .context("bench: this process may use no CPU")?;
        Ok(Self {
            load_cpu,
            control_cpu,
            interrupts,
            environment,
            started: Instant::now(),
            steal_ticks_before: steal_ticks(load_cpu)?,
        })
    }

    /// Keeps this thread off the load CPU from now on.
    pub(crate) fn leave_load_cpu(&self) -> Result<()> {
        Ok(fwdlab_sys::pin_this_thread(self.control_cpu)?)
    }

    /// To be asked between measurements, so that everything is put back after Ctrl-C.
    pub(crate) fn stop_if_asked(&self) -> Result<()> {
        if self.interrupts.requests() > 0 {
            bail!("stopped on request");
        }
        Ok(())
    }

    /// Part of the load CPU's time that the hypervisor took since the bench was opened.
    pub(crate) fn steal_ratio(&self) -> Option<f64> {
        let ticks = steal_ticks(self.load_cpu).ok()? - self.steal_ticks_before;
        Some(seconds(ticks) / self.started.elapsed().as_secs_f64())
    }
}
