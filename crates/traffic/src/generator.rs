//! The generator: an eBPF program that the kernel runs on live frames, in one call after another.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aya::maps::{Array, DevMap, MapData};
use aya::programs::{ProgramError, TestRun, TestRunAttrs, TestRunOptions};
use fwdlab_sys::WakeUp;

use crate::generator_program::{State, at_start, load, pace_of, program_for};
use crate::running::{Alarm, Generates, Outcome, Running};
use crate::{Frames, TrafficError, XdpProgram};

/// Frames that the kernel runs through the program between two looks at its softirqs. A veth ring
/// holds 256, so a batch never overruns the DUT that takes its turn after it on the same CPU.
const BATCH_SIZE: u32 = 64;

/// How long one system call is to last.
///
/// The kernel runs the program inside one RCU read-side section. Where it is preempted there, by time
/// slices rather than of its own accord (`preempt=full` or `lazy`, and all x86 kernels from 7.0 on), that
/// section never ends by itself, and everything that waits for a grace period waits with it.
const CALL_TIME: Duration = Duration::from_millis(20);

/// The same where the program could not be parked: there, each call begins and ends by waiting for all
/// CPUs.
const CALL_TIME_UNPARKED: Duration = Duration::from_millis(1000);

/// Runs of the program in the first call.
const RUNS_FIRST: u32 = 1 << 12;

/// Most runs of the program in one call; idle ones of a slow pace take some 20 ns each.
const RUNS_MAX: u32 = 1 << 26;

/// Most frames of a call that is to send a number of them.
const FRAMES_MAX: u32 = 1 << 16;

/// How long a held generator may take until it makes no more frames: a virtual machine's CPU may be
/// away for seconds.
const HOLD_TIME_MAX: Duration = Duration::from_secs(10);

/// How fast the generator sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as generator and DUT can take turns.
    SelfClocked,
    /// An intended load in frames per second, in bursts.
    Paced {
        /// Frames in a second.
        pps: u64,
        /// Frames sent back to back, after which comes the time of as many; 1 is an even spacing.
        burst_frames: u32,
    },
}

impl Pace {
    /// An intended load in frames per second, evenly spaced.
    #[must_use]
    pub const fn even(pps: u64) -> Self {
        Self::Paced {
            pps,
            burst_frames: 1,
        }
    }
}

/// A generator that stands still.
pub struct Generator {
    program: Arc<XdpProgram>,
    call_time: Duration,
    state: Array<MapData, State>,
    // Closing the map's descriptor is left to the end: the program redirects through it.
    _interfaces: DevMap<MapData>,
    seed_frame: Vec<u8>,
    /// The state in which it is about to send its first frame, but for the pace.
    at_start: State,
    wake_up: WakeUp,
    /// The current pace.
    pace: Pace,
}

impl Generator {
    /// Loads the program, the frames of all flows, and the interface to send them to.
    ///
    /// To be called on a thread in the interface's namespace; it may run in any.
    ///
    /// # Errors
    /// Without the privilege, or when there is no such interface.
    pub fn load(frames: &Frames, interface_index: u32) -> Result<Self, TrafficError> {
        Self::load_program(&[(frames, interface_index)], program_for(frames))
    }

    /// Loads the program with the frames of both directions, which differ in nothing but that, and
    /// each direction's interface. Frames of the two take turns.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub fn load_bidirectional(
        there: (&Frames, u32),
        back: (&Frames, u32),
    ) -> Result<Self, TrafficError> {
        Self::load_program(&[there, back], program_for(there.0))
    }

    /// Loads the yardstick of the generator's own cost: the same loop over one constant frame. It
    /// does not count what it sends.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub fn load_constant(frames: &Frames, interface_index: u32) -> Result<Self, TrafficError> {
        Self::load_program(&[(frames, interface_index)], "redirect_constant")
    }

    fn load_program(
        directions: &[(&Frames, u32)],
        name: &'static str,
    ) -> Result<Self, TrafficError> {
        let wake_up = fwdlab_sys::enable_wake_ups()?;
        let each: Vec<_> = directions.iter().map(|&(frames, _)| frames).collect();
        let frames = each[0];
        let mut program = load(&each, name)?;
        // Not every machine has veth; without it, a generator is started and stopped more slowly.
        let call_time = match program.park() {
            Ok(()) => CALL_TIME,
            Err(_) => CALL_TIME_UNPARKED,
        };
        let mut interfaces: DevMap<MapData> = program.take_map("interfaces");
        for (direction, &(_, interface_index)) in (0..).zip(directions) {
            interfaces
                .set(direction, interface_index, None, 0)
                .map_err(|error| TrafficError::bpf("generator: naming the interface", error))?;
        }
        let state = program.take_map("generator");
        Ok(Self {
            program: Arc::new(program),
            call_time,
            state,
            _interfaces: interfaces,
            seed_frame: frames.largest(),
            at_start: at_start(frames, directions.len() > 1),
            wake_up,
            pace: Pace::SelfClocked,
        })
    }

    /// Sends that many frames, from the first flow on, and returns when they are sent.
    ///
    /// # Errors
    /// When the kernel refuses to run the program.
    pub fn send(&mut self, frames: u32) -> Result<(), TrafficError> {
        self.prepare(Pace::SelfClocked)?;
        self.send_more(frames)
    }

    /// Sends that many frames more, from the flow after the last one on, and returns when they are
    /// sent.
    ///
    /// # Errors
    /// When the kernel refuses to run the program.
    pub fn send_more(&mut self, frames: u32) -> Result<(), TrafficError> {
        // A thread that moves to another CPU leaves the DUT's turn behind on the one that it was on,
        // where it may not come for long: batches then overrun the ring.
        let _pinned = fwdlab_sys::PinnedThread::where_it_runs()?;
        let goal = self.offered_frames()? + u64::from(frames);
        let mut left = frames;
        while left > 0 {
            let frames = left.min(FRAMES_MAX);
            match run(&self.program, &self.seed_frame, frames) {
                Ok(()) => left -= frames,
                // A signal ends the system call between two batches; the flows go on where it did.
                Err(error) if is_interrupted(&error) => {
                    let missing = goal.saturating_sub(self.offered_frames()?);
                    left = u32::try_from(missing).unwrap_or(u32::MAX);
                }
                Err(error) => return Err(TrafficError::bpf("running the generator", error)),
            }
        }
        Ok(())
    }

    /// Starts sending on a CPU; the count of offered frames begins at 0.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn start(self, cpu: u32, pace: Pace) -> Result<RunningGenerator, TrafficError> {
        self.start_beside(cpu, pace, Alarm::default())
    }

    /// Starts on a CPU and makes no frame until it is released.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn start_held(self, cpu: u32, pace: Pace) -> Result<RunningGenerator, TrafficError> {
        self.start_at(Gate::held(), cpu, pace, Alarm::default())
    }

    /// Starts sending beside others, and ends where one of them fails.
    pub(crate) fn start_beside(
        self,
        cpu: u32,
        pace: Pace,
        others: Alarm,
    ) -> Result<RunningGenerator, TrafficError> {
        self.start_at(Gate::default(), cpu, pace, others)
    }

    /// Starts calling the program as a gate lets it.
    ///
    /// # Source
    /// Through which of the interface's queues frames go is the driver's choice, by the CPU that redirects them: Linux,
    /// `veth_select_rxq` in `drivers/net/veth.c`, `i40e_xdp_xmit` and `ice_xdp_xmit` in `drivers/net/ethernet/intel`
    /// begin with `smp_processor_id()`. The latter two send nothing from a CPU whose number is not below that of the
    /// queues.
    fn start_at(
        mut self,
        gate: Gate,
        cpu: u32,
        pace: Pace,
        others: Alarm,
    ) -> Result<RunningGenerator, TrafficError> {
        self.prepare(pace)?;
        let gate = Arc::new(gate);
        let calls = Arc::clone(&gate);
        let program = Arc::clone(&self.program);
        let seed_frame = self.seed_frame.clone();
        let call_time = self.call_time;
        let send = move |others: &Alarm| {
            fwdlab_sys::pin_this_thread(cpu)?;
            let mut runs = RUNS_FIRST;
            while let Some(is_at_new_pace) = calls.begin_call() {
                if others.is_raised() {
                    calls.end_call();
                    break;
                }
                // As many runs as an idle pace needs could send for seconds at a faster one.
                if is_at_new_pace {
                    runs = RUNS_FIRST;
                }
                let start = Instant::now();
                let outcome = run(&program, &seed_frame, runs);
                calls.end_call();
                match outcome {
                    Ok(()) => runs = runs_of_next_call(runs, start.elapsed(), call_time),
                    Err(error) if is_interrupted(&error) => {}
                    Err(error) => return Err(TrafficError::bpf("running the generator", error)),
                }
            }
            Ok(())
        };
        let thread = fwdlab_sys::start_thread(move || others.raised_by(|| send(&others)))?;
        Ok(Running::new(self, thread, gate))
    }

    /// Frames offered since the last start.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn offered_frames(&self) -> Result<u64, TrafficError> {
        let state = self.state.get(&0, 0);
        state
            .map(|state| state[0])
            .map_err(|error| TrafficError::bpf("reading the generator's counter", error))
    }

    fn prepare(&mut self, pace: Pace) -> Result<(), TrafficError> {
        self.pace = pace;
        let mut state = self.at_start;
        pace_of(&mut state, pace);
        self.state
            .set(0, state, 0)
            .map_err(|error| TrafficError::bpf("setting the generator", error))
    }

    /// Sets the pace, and nothing else; to be called when no frame is made.
    fn set_pace(&mut self, pace: Pace) -> Result<(), TrafficError> {
        let failed = |error| TrafficError::bpf("setting the generator's pace", error);
        let mut state = self.state.get(&0, 0).map_err(failed)?;
        pace_of(&mut state, pace);
        self.state.set(0, state, 0).map_err(failed)?;
        self.pace = pace;
        Ok(())
    }
}

/// A generator that sends until it is stopped or its value goes.
pub type RunningGenerator = Running<Generator>;

/// What lets the generator's thread make its next call, or not.
#[derive(Default)]
pub struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    is_held: bool,
    is_stopped: bool,
    /// Whether the pace has changed since the last call.
    is_at_new_pace: bool,
    /// Whether a call is under way.
    is_calling: bool,
}

impl Gate {
    /// One that lets no call begin until it is released.
    fn held() -> Self {
        let gate = Self::default();
        gate.state().is_held = true;
        gate
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        // The flags are right at any moment, also where a thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the generator is held; then whether the pace has changed since the last call, or none when it is to end.
    fn begin_call(&self) -> Option<bool> {
        let held = |state: &mut GateState| state.is_held && !state.is_stopped;
        let waited = self.changed.wait_while(self.state(), held);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_calling = !state.is_stopped;
        let is_at_new_pace = std::mem::take(&mut state.is_at_new_pace);
        state.is_calling.then_some(is_at_new_pace)
    }

    fn change_pace(&self) {
        self.state().is_at_new_pace = true;
    }

    fn end_call(&self) {
        self.state().is_calling = false;
        self.changed.notify_all();
    }

    /// Lets no further call begin; whether none is under way any more.
    fn hold(&self) -> bool {
        let mut state = self.state();
        state.is_held = true;
        let calling = |state: &mut GateState| state.is_calling;
        let waited = self
            .changed
            .wait_timeout_while(state, HOLD_TIME_MAX, calling);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_calling
    }

    fn release(&self) {
        self.state().is_held = false;
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }
}

/// How many runs of the program the next call gets, after one took so long.
fn runs_of_next_call(runs: u32, took: Duration, wanted: Duration) -> u32 {
    let fitting = f64::from(runs) * wanted.as_secs_f64() / took.as_secs_f64().max(1e-9);
    // Not more than twice as many at once: the DUT's next variant may be slower. A cast saturates.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and bounded below"
    )]
    let fitting = fitting as u32;
    fitting.clamp(BATCH_SIZE, runs.saturating_mul(2).min(RUNS_MAX))
}

impl Generates for Generator {
    type Requests = Gate;

    fn offered_frames(&self) -> Result<u64, TrafficError> {
        Self::offered_frames(self)
    }

    fn ask_to_end(gate: &Gate) {
        gate.stop();
    }

    fn join(&self, thread: JoinHandle<Outcome>) -> std::thread::Result<Outcome> {
        self.wake_up.until_finished(thread)
    }
}

impl RunningGenerator {
    /// Has it make no more frames, and returns when the last one was handed to its interface. It goes on
    /// with [`release`](Self::release), at the next frame.
    ///
    /// # Errors
    /// `NotHeld` when it goes on all the same; then it is released.
    pub fn hold(&self) -> Result<(), TrafficError> {
        if self.requests.hold() {
            return Ok(());
        }
        self.release();
        Err(TrafficError::NotHeld {
            seconds: HOLD_TIME_MAX.as_secs(),
        })
    }

    /// Has it send at another pace from now on: it is held for a moment, and its counts and flows go on. Nothing where it
    /// has that pace.
    ///
    /// # Errors
    /// `NotHeld`, and when the state cannot be written.
    pub fn set_pace(&mut self, pace: Pace) -> Result<(), TrafficError> {
        if self.generator().pace == pace {
            return Ok(());
        }
        self.hold()?;
        let set = self.generator_mut().set_pace(pace);
        self.requests.change_pace();
        self.release();
        set
    }

    /// Has a held generator go on.
    pub fn release(&self) {
        self.requests.release();
    }
}

fn run(program: &XdpProgram, seed_frame: &[u8], frames: u32) -> Result<(), ProgramError> {
    let options = TestRunOptions {
        data_in: Some(seed_frame),
        repeat: frames,
        attrs: TestRunAttrs::new().xdp_live_frames(BATCH_SIZE),
        ..TestRunOptions::default()
    };
    program.program().test_run(options).map(|_| ())
}

fn is_interrupted(error: &ProgramError) -> bool {
    matches!(error, ProgramError::SyscallError(error)
        if error.io_error.kind() == std::io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_to_last_as_long_as_they_should() {
        // A DUT that takes 1 us a frame, then one that takes 300 ns, then idle runs of 20 ns.
        let mut runs = RUNS_FIRST;
        for ns_a_run in [1000_u32, 300, 20, 1000] {
            let took = |runs: u32| Duration::from_nanos(u64::from(runs) * u64::from(ns_a_run));
            for _ in 0..24 {
                runs = runs_of_next_call(runs, took(runs), CALL_TIME);
            }
            let off = took(runs).as_secs_f64() / CALL_TIME.as_secs_f64();
            assert!((0.99..1.01).contains(&off), "{ns_a_run} ns: {off}");
        }
        // One that a CPU was taken from, and ones that no clock can time.
        assert_eq!(
            runs_of_next_call(64, Duration::from_secs(60), CALL_TIME),
            64
        );
        assert_eq!(runs_of_next_call(64, Duration::ZERO, CALL_TIME), 128);
        let most = runs_of_next_call(u32::MAX, Duration::ZERO, CALL_TIME);
        assert_eq!(most, RUNS_MAX);
    }

    #[test]
    fn a_held_gate_lets_calls_begin_once_it_is_released() {
        let gate = Gate::held();
        assert!(gate.state().is_held);
        gate.release();
        assert_eq!(gate.begin_call(), Some(false));
        // One that is stopped keeps no thread waiting.
        let gate = Gate::held();
        gate.stop();
        assert_eq!(gate.begin_call(), None);
    }
}
