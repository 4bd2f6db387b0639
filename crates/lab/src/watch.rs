//! Watches the load from its own CPU: frames so far, and how fast that core is at the moment.

use std::hint::black_box;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_sys::BootTime;

use crate::LabError;
use crate::cpu_account::{CpuAccount, Taken};
use crate::sample::Sample;

/// Time from one sample to the next. What disturbs a core on a shared host comes and goes within some
/// milliseconds; a sample, with all that a change of threads brings, costs the load about 25
/// microseconds.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_millis(2);

/// Steps of the calibration loop: about two microseconds, long enough that a clock which counts tens of
/// nanoseconds tells a hundredth of it.
const LOOP_STEPS: u64 = 2000;

/// How long the load CPU may be kept from this process before it gives up: what runs there goes
/// before every thread that it may start, and would never let go.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was seen of the load for a while.
pub(crate) struct Watch<E> {
    /// At least two; the first and the last are the edges of the time.
    pub(crate) samples: Vec<Sample>,
    /// What was read at the edges.
    pub(crate) edges: [E; 2],
    /// Who took time of the load's CPUs between them.
    pub(crate) takers: Taken,
    /// The thread that looked.
    pub(crate) thread: u32,
}

/// Makes sure that threads of this process get the CPU at all.
///
/// # Errors
/// `CpuTaken` where they do not, or `Sys` where there is no such CPU.
pub(crate) fn prove_cpu_is_free(cpu: u32) -> Result<(), LabError> {
    let (sender, answer) = sync_channel(1);
    fwdlab_sys::start_thread(move || {
        let pinned = fwdlab_sys::pin_this_thread(cpu);
        let _ = fwdlab_sys::prefer_this_thread();
        // Nobody listens any more where it took too long.
        let _ = sender.send(pinned);
    })?;
    match answer.recv_timeout(PATIENCE) {
        Ok(pinned) => Ok(pinned?),
        Err(RecvTimeoutError::Timeout) => Err(LabError::CpuTaken {
            cpu,
            seconds: PATIENCE.as_secs(),
        }),
        Err(RecvTimeoutError::Disconnected) => unreachable!("the thread answers before it ends"),
    }
}

/// Samples the load for a while.
///
/// The samples are taken by a thread on the load CPU that goes, where it may, before every ordinary
/// thread: the load stands still meanwhile, so that the loop's time is that of the loop alone, and
/// what keeps the load from its CPU keeps the samples from it too, but for programs before which the
/// thread goes: of those, `account` tells.
///
/// # Errors
/// Those of `forwarded_frames`, which tells how many there were so far, and of `edge`, which reads what else
/// is counted, at the first sample and at the last.
pub(crate) fn watch<E: Send>(
    cpu: u32,
    length: Duration,
    account: &CpuAccount,
    forwarded_frames: impl Fn() -> Result<u64, LabError> + Send,
    edge: impl Fn() -> Result<E, LabError> + Send,
) -> Result<Watch<E>, LabError> {
    let read = || account.read();
    let (mut watch, before) = watch_after(read, cpu, length, account, forwarded_frames, edge)?;
    watch.takers = account.taken_since(&before);
    account.settle(&mut watch.samples, &mut watch.takers);
    Ok(watch)
}

/// Samples the load after something was done, which must not keep the load from its CPU: what waits there meanwhile
/// would come out behind the first sample, and make the load look faster than it is. It is done by the calling
/// thread, and only when the sampling thread has its CPU, which others may have had for long before.
fn watch_after<R, E: Send>(
    work: impl FnOnce() -> R,
    cpu: u32,
    length: Duration,
    account: &CpuAccount,
    forwarded_frames: impl Fn() -> Result<u64, LabError> + Send,
    edge: impl Fn() -> Result<E, LabError> + Send,
) -> Result<(Watch<E>, R), LabError> {
    std::thread::scope(|scope| {
        let (has_cpu, has_cpu_now) = sync_channel(1);
        let (begin, may_begin) = sync_channel(1);
        let watching = fwdlab_sys::start_thread_in(scope, move || -> Result<_, LabError> {
            fwdlab_sys::pin_this_thread(cpu)?;
            // Where it may not, it takes its turn with the load.
            let _ = fwdlab_sys::prefer_this_thread();
            // Both fail only where the other thread panics.
            let _ = has_cpu.send(());
            let _ = may_begin.recv();
            let mut samples = Vec::new();
            let first = sample(account, &forwarded_frames)?;
            let before = edge()?;
            let (start, end) = (first.at, first.at + length);
            let mut last = first.at;
            samples.push(first);
            while last < end {
                // A sample that comes late does not make the next one late.
                let due = start + SAMPLE_EVERY * ticks(last - start).saturating_add(1);
                sleep(due.min(end) - BootTime::now());
                let sample = sample(account, &forwarded_frames)?;
                last = sample.at;
                samples.push(sample);
            }
            Ok(Watch {
                samples,
                edges: [before, edge()?],
                takers: Taken::new(),
                thread: fwdlab_sys::this_thread(),
            })
        })?;
        // Where the thread has ended before, its error says why.
        let _ = has_cpu_now.recv();
        let done = work();
        let _ = begin.send(());
        let watch = watching
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((watch, done))
    })
}

/// Whole sample times in a time.
fn ticks(time: Duration) -> u32 {
    u32::try_from(time.as_nanos() / SAMPLE_EVERY.as_nanos()).unwrap_or(u32::MAX)
}

/// The clock is read on both sides of the counter, so that a pause of this thread in between moves the
/// sample by half of it only.
fn sample(
    account: &CpuAccount,
    frames: impl Fn() -> Result<u64, LabError>,
) -> Result<Sample, LabError> {
    let before = BootTime::now();
    let forwarded_frames = frames()?;
    let after = BootTime::now();
    Ok(Sample {
        at: before + (after - before) / 2,
        forwarded_frames,
        taken: account.taken(),
        loop_ns: loop_ns(),
    })
}

/// How long the calibration loop takes now: several chains of dependent steps side by side, enough to
/// keep the core's arithmetic units busy, so that whoever shares the core makes it slower.
fn loop_ns() -> u64 {
    // Once without the clock, so that fetching the code is no part of the time.
    black_box(chains(LOOP_STEPS / 10));
    let start = Instant::now();
    black_box(chains(LOOP_STEPS));
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[inline(never)]
fn chains(steps: u64) -> u64 {
    let [mut a, mut b, mut c, mut d, mut e, mut f] = black_box([1_u64, 2, 3, 4, 5, 6]);
    for step in 0..steps {
        a = black_box(a.rotate_left(5) ^ step);
        b = b.rotate_left(7).wrapping_add(step);
        c = (c ^ step).wrapping_add(13);
        d = d.rotate_left(11) ^ step;
        e = e.wrapping_add(step) ^ 77;
        f = f.rotate_left(3).wrapping_sub(step);
    }
    a ^ b ^ c ^ d ^ e ^ f
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn the_first_and_the_last_sample_are_the_edges() {
        let cpu = fwdlab_sys::online_cpus().unwrap()[0];
        let frames = AtomicU64::new(0);
        let length = Duration::from_millis(20);
        let watch = watch(
            cpu,
            length,
            &CpuAccount::None,
            || Ok(frames.fetch_add(1, Ordering::Relaxed)),
            || Ok(frames.load(Ordering::Relaxed)),
        )
        .unwrap();
        let samples = watch.samples;
        assert_eq!(watch.edges, [1, samples.len() as u64]);
        let (first, last) = (samples[0], samples[samples.len() - 1]);
        assert!(last.at - first.at >= length);
        assert!(
            samples.len() >= 2 && samples.len() <= 12,
            "{}",
            samples.len()
        );
        assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
        for (number, sample) in (0..).zip(&samples) {
            assert_eq!(sample.forwarded_frames, number);
            assert!(sample.loop_ns > 0);
        }
    }

    #[test]
    fn what_is_done_before_the_first_sample_is_done_elsewhere() {
        let cpu = fwdlab_sys::online_cpus().unwrap()[0];
        let frames = AtomicU64::new(0);
        let read = || frames.load(Ordering::Relaxed);
        let (watch, (frames_before, thread)) = watch_after(
            || (read(), fwdlab_sys::this_thread()),
            cpu,
            Duration::from_millis(5),
            &CpuAccount::None,
            || Ok(frames.fetch_add(1, Ordering::Relaxed)),
            || Ok(()),
        )
        .unwrap();
        assert_eq!(frames_before, 0);
        assert_eq!(watch.samples[0].forwarded_frames, 0);
        assert_ne!(thread, watch.thread);
    }

    #[test]
    fn an_error_ends_the_watch() {
        let cpu = fwdlab_sys::online_cpus().unwrap()[0];
        let stop = || Err(LabError::Interrupted);
        let result = watch(
            cpu,
            Duration::from_secs(3600),
            &CpuAccount::None,
            stop,
            stop,
        );
        assert!(matches!(result, Err(LabError::Interrupted)));
        let nothing = || Ok(0);
        let length = Duration::from_millis(1);
        let result = watch(100_000, length, &CpuAccount::None, nothing, nothing);
        assert!(result.is_err());
    }

    #[test]
    fn a_cpu_that_is_free_is_found_free() {
        prove_cpu_is_free(fwdlab_sys::online_cpus().unwrap()[0]).unwrap();
        assert!(prove_cpu_is_free(100_000).is_err());
    }
}
