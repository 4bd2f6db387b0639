//! The generator: one long run of an eBPF program on live frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use aya::maps::{Array, DevMap, MapData};
use aya::programs::{ProgramError, TestRun, TestRunAttrs, TestRunOptions};
use fwdlab_sys::WakeUp;

use crate::frames::head;
use crate::{Frames, TrafficError, XdpProgram, object_bytes};

/// Frames that the kernel runs through the program between two looks at its softirqs. A veth ring
/// holds 256, so a batch never overruns the DUT that takes its turn after it.
const BATCH_SIZE: u32 = 64;

/// Runs of the program in one system call; a signal ends it sooner.
const RUNS_A_CALL: u32 = 1 << 30;

/// How fast the generator sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as generator and DUT can take turns.
    SelfClocked,
    /// An intended load in frames per second.
    Pps(u64),
}

/// `struct generator` of the eBPF program, in words.
type State = [u64; 5];

/// A generator that stands still.
pub struct Generator {
    program: Arc<XdpProgram>,
    state: Array<MapData, State>,
    // Closing the map's descriptor is left to the end: the program redirects through it.
    _interface: DevMap<MapData>,
    seed_frame: Vec<u8>,
    flows: u32,
    wake_up: WakeUp,
}

impl Generator {
    /// Loads the program, the frames of all flows, and the interface to send them to.
    ///
    /// To be called on a thread in the interface's namespace; it may run in any.
    ///
    /// # Errors
    /// Without the privilege, or when there is no such interface.
    pub fn load(frames: &Frames, interface_index: u32) -> Result<Self, TrafficError> {
        Self::load_program(frames, interface_index, "generate")
    }

    /// Loads the yardstick of the generator's own cost: the same loop over one constant frame. It
    /// does not count what it sends.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub fn load_constant(frames: &Frames, interface_index: u32) -> Result<Self, TrafficError> {
        Self::load_program(frames, interface_index, "redirect_constant")
    }

    fn load_program(
        frames: &Frames,
        interface_index: u32,
        name: &'static str,
    ) -> Result<Self, TrafficError> {
        let wake_up = fwdlab_sys::enable_wake_ups()?;
        let mut program = XdpProgram::load(object_bytes!("../bpf/generator.bpf.o"), name)?;
        let mut templates: Array<MapData, [u64; 8]> = program.take_map("templates");
        for (flow, frame) in (0..).zip(frames.sent()) {
            templates
                .set(flow, head(frame), 0)
                .map_err(|error| TrafficError::bpf("generator: writing the frames", error))?;
        }
        let mut interface: DevMap<MapData> = program.take_map("interface");
        interface
            .set(0, interface_index, None, 0)
            .map_err(|error| TrafficError::bpf("generator: naming the interface", error))?;
        let state = program.take_map("generator");
        Ok(Self {
            program: Arc::new(program),
            state,
            _interface: interface,
            seed_frame: frames.sent()[0].clone(),
            flows: frames.flows().count(),
            wake_up,
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
        let goal = self.offered_frames()? + u64::from(frames);
        let mut left = frames;
        while left > 0 {
            match run(&self.program, &self.seed_frame, left) {
                Ok(()) => break,
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
    pub fn start(mut self, cpu: u32, pace: Pace) -> Result<RunningGenerator, TrafficError> {
        self.prepare(pace)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let program = Arc::clone(&self.program);
        let seed_frame = self.seed_frame.clone();
        let thread = std::thread::spawn(move || {
            fwdlab_sys::pin_this_thread(cpu)?;
            while !stopped.load(Ordering::Relaxed) {
                match run(&program, &seed_frame, RUNS_A_CALL) {
                    Ok(()) => {}
                    Err(error) if is_interrupted(&error) => {}
                    Err(error) => return Err(TrafficError::bpf("running the generator", error)),
                }
            }
            Ok(())
        });
        Ok(RunningGenerator {
            generator: Some(self),
            thread: Some(thread),
            stop,
        })
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
        let (gap_ns, gap_fraction) = match pace {
            Pace::SelfClocked => (0, 0),
            Pace::Pps(pps) => gap(pps),
        };
        let flows = u64::from_ne_bytes(two_words(self.flows, 0));
        let fractions = u64::from_ne_bytes(two_words(gap_fraction, 0));
        self.state
            .set(0, [0, gap_ns, 0, fractions, flows], 0)
            .map_err(|error| TrafficError::bpf("setting the generator", error))
    }
}

/// A generator that sends until it is stopped or its value goes.
pub struct RunningGenerator {
    // Both are there until `stop` takes them.
    generator: Option<Generator>,
    thread: Option<JoinHandle<Result<(), TrafficError>>>,
    stop: Arc<AtomicBool>,
}

impl RunningGenerator {
    /// Frames offered since the start.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn offered_frames(&self) -> Result<u64, TrafficError> {
        self.generator
            .as_ref()
            .expect("only `stop` takes it, and the value with it")
            .offered_frames()
    }

    /// Whether it still sends; it ends by itself only on an error, which [`stop`](Self::stop) tells.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    /// Stops sending.
    ///
    /// # Errors
    /// Why it had stopped before.
    pub fn stop(mut self) -> Result<Generator, TrafficError> {
        match self.end() {
            Some((generator, Ok(Ok(())))) => Ok(generator),
            Some((_, Ok(Err(error)))) => Err(TrafficError::GeneratorStopped {
                what: error.to_string(),
            }),
            Some((_, Err(panic))) => std::panic::resume_unwind(panic),
            None => unreachable!("only `stop` ends it, and the value with it"),
        }
    }

    /// Ends the thread, once.
    fn end(&mut self) -> Option<(Generator, std::thread::Result<Result<(), TrafficError>>)> {
        let (generator, thread) = (self.generator.take()?, self.thread.take()?);
        self.stop.store(true, Ordering::Relaxed);
        let result = generator.wake_up.until_finished(thread);
        Some((generator, result))
    }
}

impl Drop for RunningGenerator {
    fn drop(&mut self) {
        // Whoever gives up in the middle of a block must not leave the load running.
        self.end();
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

/// The time between two frames, in ns and 2^-32 ns.
fn gap(pps: u64) -> (u64, u32) {
    let gap = (1_000_000_000_u128 << 32) / u128::from(pps.max(1));
    let whole = u64::try_from(gap >> 32).expect("at most a second");
    let fraction = u32::try_from(gap & 0xffff_ffff).expect("32 bits are left");
    // A gap of 0 would mean "as fast as it goes".
    (whole.max(1), fraction)
}

/// Two 32-bit fields as they lie in memory.
fn two_words(first: u32, second: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_exact_to_a_part_in_a_billion() {
        for pps in [1, 3, 100_000, 999_983, 1_000_000, 3_000_000, 14_880_952] {
            let (gap_ns, fraction) = gap(pps);
            #[expect(clippy::cast_precision_loss, reason = "a test of nine digits")]
            let sum = (gap_ns as f64 + f64::from(fraction) / 4_294_967_296.0) * pps as f64 / 1e9;
            assert!((sum - 1.0).abs() < 1e-9, "{pps}: {sum}");
        }
    }
}
