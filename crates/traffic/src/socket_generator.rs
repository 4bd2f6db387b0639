//! The generator that needs no eBPF: a thread that sends through a socket.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use fwdlab_model::Tester;
use fwdlab_sys::{PacketSocket, SysError, TransmitRing, XdpSocket};

use crate::interface_counters::InterfaceCounters;
use crate::pacer::Pacer;
use crate::{Frames, Pace, TrafficError};

/// Frames that are handed over at once.
const BATCH_SIZE: usize = 64;

/// Times in a row that a socket may have no room before it is given up: the DUT takes its turn inside
/// the call that sends, so a few are enough.
const REFUSALS_MAX: u32 = 1_000_000;

/// A socket on the interface to send to, shared by the generators of all families: an interface has
/// room for one AF_XDP socket.
#[derive(Clone)]
pub struct SocketPort {
    transmitter: Arc<Mutex<Transmitter>>,
    counters: Arc<InterfaceCounters>,
}

/// A generator that stands still.
pub struct SocketGenerator {
    port: SocketPort,
    frames: Arc<Sequence>,
    /// What the interface had counted when the generator was started.
    offered_before: u64,
}

/// The frames in the order in which they are sent.
struct Sequence {
    planned: Vec<Vec<u8>>,
    /// The same, to a station that is not there.
    misaddressed: Vec<Vec<u8>>,
}

/// The ways to hand frames over.
enum Transmitter {
    AfXdp(XdpSocket),
    TxRing(TransmitRing),
    Sendmmsg(PacketSocket),
}

impl SocketPort {
    /// Opens the tester's socket on an interface of the calling thread's namespace; it may send from
    /// any.
    ///
    /// # Errors
    /// Without the privilege in that namespace, or where the kernel has no such socket.
    pub fn open(tester: Tester, interface_index: u32) -> Result<Self, TrafficError> {
        let transmitter = match tester {
            Tester::AfXdp => Transmitter::AfXdp(XdpSocket::open(interface_index)?),
            Tester::TxRing => Transmitter::TxRing(TransmitRing::open(interface_index)?),
            Tester::Sendmmsg | Tester::Ebpf => {
                Transmitter::Sendmmsg(PacketSocket::open(interface_index)?)
            }
        };
        Ok(Self {
            transmitter: Arc::new(Mutex::new(transmitter)),
            counters: Arc::new(InterfaceCounters::open(interface_index)?),
        })
    }

    /// The socket, once no other generator sends through it.
    fn transmitter(&self) -> MutexGuard<'_, Transmitter> {
        // Whoever panicked between two batches left it as good as it was.
        self.transmitter
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The tester's interfaces send nothing but the generator's frames, so what they count is exact.
    fn offered_frames(&self) -> Result<u64, TrafficError> {
        let counts = self.counters.read()?;
        Ok(counts.sent_frames + counts.send_dropped_frames)
    }
}

impl Transmitter {
    /// How many of the frames were taken.
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SysError> {
        match self {
            Self::AfXdp(socket) => socket.send(frames),
            Self::TxRing(ring) => ring.send(frames),
            Self::Sendmmsg(socket) => socket.send(frames),
        }
    }
}

impl SocketGenerator {
    /// Prepares to send frames through a port.
    ///
    /// # Errors
    /// When the kernel does not say what the interface has counted.
    pub fn load(port: &SocketPort, frames: &Frames) -> Result<Self, TrafficError> {
        let planned = frames.sent().to_vec();
        let mut misaddressed = planned.clone();
        for frame in &mut misaddressed {
            // The last byte of the destination's MAC address: still one station, another one.
            frame[5] ^= 0x80;
        }
        Ok(Self {
            port: port.clone(),
            frames: Arc::new(Sequence {
                planned,
                misaddressed,
            }),
            offered_before: port.offered_frames()?,
        })
    }

    /// Sends that many frames, from the first flow on, and returns when they are sent.
    ///
    /// # Errors
    /// When the interface takes no frames.
    pub fn send(&mut self, frames: u32) -> Result<(), TrafficError> {
        self.prepare()?;
        let list = batches(&self.frames.planned);
        let mut next = 0;
        let mut left = frames as usize;
        let mut refusals = 0;
        let mut transmitter = self.port.transmitter();
        while left > 0 {
            let batch = &list[next..next + left.min(BATCH_SIZE)];
            let taken = transmitter.send(batch)?;
            refusals = refused(taken, refusals)?;
            next = (next + taken) % self.frames.planned.len();
            left -= taken;
        }
        Ok(())
    }

    /// Starts sending on a CPU, as soon as no other generator of the port sends; the count of offered
    /// frames begins at 0.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn start(mut self, cpu: u32, pace: Pace) -> Result<RunningSocketGenerator, TrafficError> {
        self.prepare()?;
        let wishes = Arc::new(Wishes::default());
        let thread = {
            let (port, frames) = (self.port.clone(), Arc::clone(&self.frames));
            let wishes = Arc::clone(&wishes);
            std::thread::spawn(move || {
                fwdlab_sys::pin_this_thread(cpu)?;
                transmit(&mut port.transmitter(), &frames, &wishes, pace)
            })
        };
        Ok(RunningSocketGenerator {
            generator: Some(self),
            thread: Some(thread),
            wishes,
        })
    }

    /// Frames offered since the last start: those that the interface sent, and those that it dropped.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn offered_frames(&self) -> Result<u64, TrafficError> {
        Ok(self.port.offered_frames()? - self.offered_before)
    }

    fn prepare(&mut self) -> Result<(), TrafficError> {
        self.offered_before = self.port.offered_frames()?;
        Ok(())
    }
}

/// What is asked of a thread that sends.
#[derive(Default)]
struct Wishes {
    stop: AtomicBool,
    misaddress: AtomicBool,
}

/// A generator that sends until it is stopped or its value goes.
pub struct RunningSocketGenerator {
    // Both are there until `stop` takes them.
    generator: Option<SocketGenerator>,
    thread: Option<JoinHandle<Result<(), TrafficError>>>,
    wishes: Arc<Wishes>,
}

impl RunningSocketGenerator {
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

    /// Addresses all further frames to a station that is not there, or again to the DUT.
    pub fn misaddress(&self, misaddress: bool) {
        self.wishes.misaddress.store(misaddress, Ordering::Relaxed);
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
    pub fn stop(mut self) -> Result<SocketGenerator, TrafficError> {
        match self.end() {
            Some((generator, Ok(Ok(())))) => Ok(generator),
            Some((_, Ok(Err(error)))) => Err(TrafficError::GeneratorStopped {
                what: error.to_string(),
            }),
            Some((_, Err(panic))) => std::panic::resume_unwind(panic),
            None => unreachable!("only `stop` ends it, and the value with it"),
        }
    }

    /// Ends the thread, once; it looks at its wishes after every batch.
    fn end(
        &mut self,
    ) -> Option<(
        SocketGenerator,
        std::thread::Result<Result<(), TrafficError>>,
    )> {
        let (generator, thread) = (self.generator.take()?, self.thread.take()?);
        self.wishes.stop.store(true, Ordering::Relaxed);
        Some((generator, thread.join()))
    }
}

impl Drop for RunningSocketGenerator {
    fn drop(&mut self) {
        // Whoever gives up in the middle of a block must not leave the load running.
        self.end();
    }
}

/// Sends until it is asked to stop.
fn transmit(
    transmitter: &mut Transmitter,
    frames: &Sequence,
    wishes: &Wishes,
    pace: Pace,
) -> Result<(), TrafficError> {
    let (planned, misaddressed) = (batches(&frames.planned), batches(&frames.misaddressed));
    let start = Instant::now();
    let mut pacer = Pacer::new(pace, start.elapsed());
    let mut next = 0;
    let mut refusals = 0;
    while !wishes.stop.load(Ordering::Relaxed) {
        let due = pacer.due_frames(start.elapsed());
        if due == 0 {
            std::hint::spin_loop();
            continue;
        }
        let list = if wishes.misaddress.load(Ordering::Relaxed) {
            &misaddressed
        } else {
            &planned
        };
        let batch = usize::try_from(due).map_or(BATCH_SIZE, |due| due.min(BATCH_SIZE));
        let taken = transmitter.send(&list[next..next + batch])?;
        refusals = refused(taken, refusals)?;
        pacer.sent(taken as u64);
        next = (next + taken) % frames.planned.len();
    }
    Ok(())
}

/// The frames, then as many of them again as a batch that begins with the last one needs.
fn batches(frames: &[Vec<u8>]) -> Vec<&[u8]> {
    let again = frames.iter().cycle().take(frames.len() + BATCH_SIZE);
    again.map(Vec::as_slice).collect()
}

/// Counts the times in a row that nothing was taken.
fn refused(taken: usize, refusals: u32) -> Result<u32, TrafficError> {
    match (taken, refusals) {
        (1.., _) => Ok(0),
        (0, REFUSALS_MAX..) => Err(TrafficError::GeneratorStopped {
            what: "the socket takes no more frames".into(),
        }),
        (0, _) => Ok(refusals + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_may_begin_at_any_frame() {
        let frames: Vec<Vec<u8>> = (0..3).map(|byte| vec![byte]).collect();
        let list = batches(&frames);
        for start in 0..3_usize {
            let batch = &list[start..start + BATCH_SIZE];
            for (place, frame) in batch.iter().enumerate() {
                assert_eq!(usize::from(frame[0]), (start + place) % 3);
            }
        }
    }

    #[test]
    fn a_socket_that_never_takes_anything_is_given_up() {
        assert_eq!(refused(1, 5).unwrap(), 0);
        assert_eq!(refused(0, 5).unwrap(), 6);
        assert!(refused(0, REFUSALS_MAX).is_err());
    }
}
