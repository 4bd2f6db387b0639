//! The generator: an eBPF program that the kernel runs on live frames, in one call after another.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aya::maps::{Array, DevMap, MapData};
use aya::programs::{ProgramError, TestRun, TestRunAttrs, TestRunOptions};
use fwdlab_model::AddressFamily;
use fwdlab_sys::WakeUp;

use crate::frames::{Head, REST_SIZE, Size};
use crate::running::{Alarm, Generates, Outcome, Running};
use crate::turn::Sequence;
use crate::{Frames, TrafficError, XdpProgram, object_bytes};

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

/// `struct generator` of the eBPF program, in words.
type State = [u64; 11];

/// A generator that stands still.
pub struct Generator {
    program: Arc<XdpProgram>,
    call_time: Duration,
    state: Array<MapData, State>,
    // Closing the map's descriptor is left to the end: the program redirects through it.
    _interfaces: DevMap<MapData>,
    seed_frame: Vec<u8>,
    sequence: Sequence,
    family: AddressFamily,
    is_bidirectional: bool,
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
            sequence: frames.sequence(),
            family: frames.family(),
            is_bidirectional: directions.len() > 1,
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

    /// Starts sending beside others, and ends where one of them fails.
    ///
    /// # Source
    /// Through which of the interface's queues frames go is the driver's choice, by the CPU that redirects them: Linux,
    /// `veth_select_rxq` in `drivers/net/veth.c`, `i40e_xdp_xmit` and `ice_xdp_xmit` in `drivers/net/ethernet/intel`
    /// begin with `smp_processor_id()`. The latter two send nothing from a CPU whose number is not below that of the
    /// queues.
    pub(crate) fn start_beside(
        mut self,
        cpu: u32,
        pace: Pace,
        others: Alarm,
    ) -> Result<RunningGenerator, TrafficError> {
        self.prepare(pace)?;
        let gate = Arc::new(Gate::default());
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
        let state = state(self.sequence, self.family, self.is_bidirectional, pace);
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

/// The program that makes frames of these sizes: what several sizes cost more, the smallest need not
/// pay.
fn program_for(frames: &Frames) -> &'static str {
    if frames.are_smallest() {
        "fwdlab_generate"
    } else {
        "fwdlab_generate_sizes"
    }
}

/// Loads the program with what it needs to know of each direction's frames.
fn load(directions: &[&Frames], name: &'static str) -> Result<XdpProgram, TrafficError> {
    let frames = directions[0];
    let flows = directions
        .iter()
        .map(|frames| frames.sequence().flows())
        .sum();
    let slots = frames.sequence().slots();
    let mut program = XdpProgram::load_with_room(
        object_bytes!("../bpf/generator.bpf.o"),
        name,
        &[("heads", flows), ("turn", slots)],
    )?;
    let failed = |error| TrafficError::bpf("generator: writing the frames", error);
    let mut heads: Array<MapData, Head> = program.take_map("heads");
    let sent_heads = directions.iter().flat_map(|frames| frames.sent_heads());
    for (flow, head) in (0..).zip(sent_heads) {
        heads.set(flow, head, 0).map_err(failed)?;
    }
    let mut turn: Array<MapData, Size> = program.take_map("turn");
    for (slot, size) in (0..).zip(frames.sizes_in_turn()) {
        turn.set(slot, size, 0).map_err(failed)?;
    }
    let mut rest: Array<MapData, [u8; REST_SIZE]> = program.take_map("rest");
    rest.set(0, frames.rest(), 0).map_err(failed)?;
    Ok(program)
}

/// The state of a generator that is about to send its first frame.
fn state(sequence: Sequence, family: AddressFamily, is_bidirectional: bool, pace: Pace) -> State {
    let is_inet6 = u32::from(family == AddressFamily::Inet6);
    let stretch = sequence.stretch();
    let mut state = [
        0,
        0,
        0,
        0,
        two_words(sequence.flows(), 0),
        0,
        two_words(sequence.slots(), 0),
        two_words(stretch, stretch),
        two_words(sequence.stretches(), 0),
        two_words(is_inet6, 0),
        two_words(is_bidirectional.into(), 0),
    ];
    pace_of(&mut state, pace);
    state
}

/// Sets what says when frames are due; the next one is due at once.
fn pace_of(state: &mut State, pace: Pace) {
    let (gap_ns, gap_fraction, burst_frames) = match pace {
        Pace::SelfClocked => (0, 0, 1),
        Pace::Paced { pps, burst_frames } => {
            let burst_frames = burst_frames.max(1);
            let (gap_ns, gap_fraction) = gap(pps, burst_frames);
            (gap_ns, gap_fraction, burst_frames)
        }
    };
    (state[1], state[2]) = (gap_ns, 0);
    state[3] = two_words(gap_fraction, 0);
    state[5] = two_words(burst_frames, 0);
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

/// The time between two bursts, in ns and 2^-32 ns.
fn gap(pps: u64, burst_frames: u32) -> (u64, u32) {
    let gap = ((u128::from(burst_frames) * 1_000_000_000) << 32) / u128::from(pps.max(1));
    let whole = u64::try_from(gap >> 32).expect("at most 2^32 seconds");
    let fraction = u32::try_from(gap & 0xffff_ffff).expect("32 bits are left");
    // A gap of 0 would mean "as fast as it goes".
    (whole.max(1), fraction)
}

/// Two 32-bit fields as they lie in memory.
fn two_words(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use fwdlab_model::{FrameSize, PortRange, Traffic};
    use fwdlab_packet::MacAddress;

    use super::*;
    use crate::Link;

    const XDP_DROP: u32 = 1;
    const XDP_REDIRECT: u32 = 4;

    #[test]
    fn gaps_are_exact_to_a_part_in_a_billion() {
        for pps in [1, 3, 100_000, 999_983, 1_000_000, 3_000_000, 14_880_952] {
            for burst_frames in [1, 2, 3, 64, 1000, u32::MAX] {
                let (gap_ns, fraction) = gap(pps, burst_frames);
                #[expect(clippy::cast_precision_loss, reason = "a test of nine digits")]
                let sum =
                    (gap_ns as f64 + f64::from(fraction) / 4_294_967_296.0) * pps as f64 / 1e9;
                let off = sum / f64::from(burst_frames) - 1.0;
                assert!(off.abs() < 1e-9, "{pps}, {burst_frames}: {off}");
            }
        }
    }

    fn frames(family: AddressFamily, sizes: &[(u16, u16)]) -> Frames {
        let traffic = Traffic {
            sources: 3,
            destinations: 2,
            source_ports: PortRange {
                first: 65_534,
                last: 65_535,
            },
            frame_sizes: sizes
                .iter()
                .map(|&(bytes, share)| FrameSize { bytes, share })
                .collect(),
            ..Traffic::default()
        };
        Frames::new(family, &traffic, link(1), link(2)).unwrap()
    }

    fn link(last: u8) -> Link {
        Link {
            source: MacAddress([2, 0, 0, 0, last, 1]),
            destination: MacAddress([2, 0, 0, 0, last, 2]),
        }
    }

    /// What the program makes of a frame that somebody else has left.
    fn made_by(program: &XdpProgram, left: &[u8]) -> Vec<u8> {
        let mut made = vec![0; left.len()];
        let outcome = program.program().test_run(TestRunOptions {
            data_in: Some(left),
            data_out: Some(&mut made),
            ..TestRunOptions::default()
        });
        let outcome = outcome.unwrap();
        assert_eq!(outcome.return_value, XDP_REDIRECT);
        made.truncate(outcome.data_size_out as usize);
        made
    }

    /// A program that is about to make its first frame, and its state.
    fn ready(
        directions: &[&Frames],
        name: &'static str,
        pace: Pace,
    ) -> (XdpProgram, Array<MapData, State>) {
        let mut program = load(directions, name).unwrap();
        let mut map: Array<MapData, State> = program.take_map("generator");
        // The run is a dry one, but the map has to name interfaces: the loopback is always there.
        let mut interfaces: DevMap<MapData> = program.take_map("interfaces");
        for direction in [0, 1] {
            interfaces.set(direction, 1, None, 0).unwrap();
        }
        let frames = directions[0];
        let is_bidirectional = directions.len() > 1;
        let start = state(frames.sequence(), frames.family(), is_bidirectional, pace);
        map.set(0, start, 0).unwrap();
        (program, map)
    }

    /// Every frame of more than a period is, byte for byte, the one that was planned.
    fn assert_makes_what_is_planned(frames: &Frames, name: &'static str) {
        let (program, _map) = ready(&[frames], name, Pace::SelfClocked);
        let left = vec![0xaa; frames.largest().len()];
        for number in 0..frames.sequence().period() * 2 + 5 {
            let made = made_by(&program, &left);
            assert_eq!(made, frames.sent(number), "frame {number}");
        }
        let back = frames.reversed(link(3), link(4));
        let (program, _map) = ready(&[frames, &back], name, Pace::SelfClocked);
        for number in 0..frames.sequence().period() * 2 + 5 {
            assert_eq!(made_by(&program, &left), frames.sent(number), "{number}");
            assert_eq!(made_by(&program, &left), back.sent(number), "{number} back");
        }
    }

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
    fn a_burst_is_sent_at_once_and_the_next_one_later() {
        testkit::require_root!();
        let frames = frames(AddressFamily::Inet, &[(64, 1)]);
        // The second burst is due hours later.
        for burst_frames in [10_001, 100_000] {
            let pace = Pace::Paced {
                pps: 1,
                burst_frames,
            };
            let (program, map) = ready(&[&frames], "fwdlab_generate", pace);
            let offered = || map.get(&0, 0).unwrap()[0];
            assert_eq!(last_outcome(&program, burst_frames), XDP_REDIRECT);
            assert_eq!(offered(), u64::from(burst_frames));
            assert_eq!(last_outcome(&program, 100), XDP_DROP);
            assert_eq!(offered(), u64::from(burst_frames));
        }
    }

    /// Runs the program so many times, and says what it wants with the last frame.
    fn last_outcome(program: &XdpProgram, times: u32) -> u32 {
        let frame = [0; 60];
        let outcome = program.program().test_run(TestRunOptions {
            data_in: Some(&frame),
            repeat: times,
            ..TestRunOptions::default()
        });
        outcome.unwrap().return_value
    }

    #[test]
    fn the_program_makes_every_frame_as_planned() {
        testkit::require_root!();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            assert_makes_what_is_planned(&frames(family, &[(64, 1)]), "fwdlab_generate");
            for sizes in [
                &[(64, 7), (594, 4), (1518, 1)][..],
                &[(1518, 1)],
                &[
                    (64, 1),
                    (66, 1),
                    (68, 1),
                    (69, 1),
                    (70, 1),
                    (71, 1),
                    (1517, 1),
                ],
            ] {
                assert_makes_what_is_planned(&frames(family, sizes), "fwdlab_generate_sizes");
            }
        }
        let odd = frames(AddressFamily::Inet, &[(65, 1), (67, 2)]);
        assert_makes_what_is_planned(&odd, "fwdlab_generate_sizes");
        for share in odd.shared_out(5).unwrap() {
            assert_makes_what_is_planned(&share, "fwdlab_generate_sizes");
        }
    }
}
