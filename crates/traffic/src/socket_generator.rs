//! The generator that needs no eBPF: a thread that sends through a socket.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use fwdlab_model::Tester;
use fwdlab_sys::{PacketSocket, SysError, TransmitRing, XdpSocket};

use crate::interface_counters::InterfaceCounters;
use crate::pacer::Pacer;
use crate::running::{Alarm, Generates, Outcome, Running};
use crate::turn::Order;
use crate::{Frames, Pace, TrafficError};

/// Frames that are handed over at once.
const BATCH_SIZE: usize = 64;

/// Frames for a station that is not there.
const MISADDRESSED_FRAMES: usize = 4096;

/// Times in a row that a socket may have no room before it is given up: the DUT takes its turn inside
/// the call that sends, so a few are enough.
const REFUSALS_MAX: u32 = 1_000_000;

/// A socket on the interface to send to, shared by the generators of all families: a queue of an
/// interface has room for one AF_XDP socket.
#[derive(Clone)]
pub struct SocketPort {
    transmitter: Arc<Mutex<Transmitter>>,
    counters: Arc<InterfaceCounters>,
}

/// A generator that stands still.
pub struct SocketGenerator {
    port: SocketPort,
    frames: Arc<FrameStore>,
    /// What the interface had counted when the generator was started.
    offered_before: u64,
    /// The number of the frame that is sent next, counted from 0.
    next: u64,
    /// Frames that the socket has taken since the last start.
    taken_frames: Arc<AtomicU64>,
}

/// The frames, each once: every flow in every size.
struct FrameStore {
    /// By flow and size.
    planned: Vec<Vec<u8>>,
    /// The first of them, to a station that is not there, whose flows nobody looks at.
    misaddressed: Vec<Vec<u8>>,
    sizes: usize,
    /// The size of each slot of a turn.
    turn: Vec<usize>,
    order: Order,
}

impl FrameStore {
    fn new(frames: &Frames) -> Self {
        let planned: Vec<_> = frames.each_flow_in_each_size().collect();
        let mut misaddressed = planned.clone();
        misaddressed.truncate(MISADDRESSED_FRAMES);
        for frame in &mut misaddressed {
            // The last byte of the destination's MAC address: still one station, another one.
            frame[5] ^= 0x80;
        }
        Self {
            planned,
            misaddressed,
            sizes: frames.sizes(),
            turn: frames.turn().to_vec(),
            order: frames.order(),
        }
    }

    /// Gathers the frames that are sent next, counted from 0.
    fn batch<'a>(&'a self, batch: &mut Vec<&'a [u8]>, first: u64, length: usize, misaddress: bool) {
        batch.clear();
        for number in (first..).take(length) {
            let (flow, slot) = self.order.at(number);
            let place = flow as usize * self.sizes + self.turn[slot as usize];
            batch.push(if misaddress {
                &self.misaddressed[place % self.misaddressed.len()]
            } else {
                &self.planned[place]
            });
        }
    }
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
        Self::open_queue(tester, interface_index, 0)
    }

    /// Opens one of several sockets on an interface, each for a queue with another number.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and for AF_XDP where the interface has no such queue.
    ///
    /// # Source
    /// Through which queue frames go: of AF_XDP the one that the socket is bound to (Linux, `__xsk_generic_xmit` in
    /// `net/xdp/xsk.c`); of packet sockets one that the CPU that sends chooses (`packet_pick_tx_queue` in
    /// `net/packet/af_packet.c`), which needs no option.
    pub(crate) fn open_queue(
        tester: Tester,
        interface_index: u32,
        queue: u32,
    ) -> Result<Self, TrafficError> {
        let transmitter = match tester {
            Tester::AfXdp => Transmitter::AfXdp(XdpSocket::open(interface_index, queue)?),
            Tester::TxRing => Transmitter::TxRing(TransmitRing::open(interface_index)?),
            _ => Transmitter::Sendmmsg(PacketSocket::open(interface_index)?),
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
        Ok(Self {
            port: port.clone(),
            frames: Arc::new(FrameStore::new(frames)),
            offered_before: port.offered_frames()?,
            next: 0,
            taken_frames: Arc::default(),
        })
    }

    /// Sends that many frames, from the first flow on, and returns when they are sent.
    ///
    /// # Errors
    /// When the interface takes no frames.
    pub fn send(&mut self, frames: u32) -> Result<(), TrafficError> {
        self.prepare()?;
        self.send_more(frames)
    }

    /// Sends that many frames more, from the flow after the last one on, and returns when they are
    /// sent.
    ///
    /// # Errors
    /// When the interface takes no frames.
    pub fn send_more(&mut self, frames: u32) -> Result<(), TrafficError> {
        let mut batch = Vec::with_capacity(BATCH_SIZE);
        let mut left = frames as usize;
        let mut refusals = 0;
        let mut transmitter = self.port.transmitter();
        while left > 0 {
            self.frames
                .batch(&mut batch, self.next, left.min(BATCH_SIZE), false);
            let taken = transmitter.send(&batch)?;
            refusals = refused(taken, refusals)?;
            self.next += taken as u64;
            left -= taken;
        }
        Ok(())
    }

    /// Starts sending on a CPU, as soon as no other generator of the port sends; the count of offered
    /// frames begins at 0.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn start(self, cpu: u32, pace: Pace) -> Result<RunningSocketGenerator, TrafficError> {
        self.start_beside(cpu, pace, Alarm::default())
    }

    /// Starts sending beside others, and ends where one of them fails.
    pub(crate) fn start_beside(
        mut self,
        cpu: u32,
        pace: Pace,
        others: Alarm,
    ) -> Result<RunningSocketGenerator, TrafficError> {
        self.prepare()?;
        let wishes = Arc::new(Wishes::default());
        let thread = {
            let (port, frames) = (self.port.clone(), Arc::clone(&self.frames));
            let (wishes, taken_frames) = (Arc::clone(&wishes), Arc::clone(&self.taken_frames));
            let send = move |others: &Alarm| {
                fwdlab_sys::pin_this_thread(cpu)?;
                let mut transmitter = port.transmitter();
                let goes_on = || !wishes.stop.load(Ordering::Relaxed) && !others.is_raised();
                transmit(
                    &mut transmitter,
                    &frames,
                    goes_on,
                    &wishes,
                    &taken_frames,
                    pace,
                )
            };
            fwdlab_sys::start_thread(move || others.raised_by(|| send(&others)))?
        };
        Ok(Running::new(self, thread, wishes))
    }

    /// Frames offered since the last start: those that the interface sent, and those that it dropped.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn offered_frames(&self) -> Result<u64, TrafficError> {
        Ok(self.port.offered_frames()? - self.offered_before)
    }

    /// Frames that the socket has taken since the last start; unlike the offered ones, which the
    /// interface counts, none of others are among them.
    #[must_use]
    pub fn taken_frames(&self) -> u64 {
        self.taken_frames.load(Ordering::Relaxed)
    }

    fn prepare(&mut self) -> Result<(), TrafficError> {
        self.next = 0;
        self.taken_frames.store(0, Ordering::Relaxed);
        self.offered_before = self.port.offered_frames()?;
        Ok(())
    }
}

/// What is asked of a thread that sends.
#[derive(Default)]
pub struct Wishes {
    stop: AtomicBool,
    misaddress: AtomicBool,
    /// Whether there is another pace.
    has_pace: AtomicBool,
    pace: Mutex<Option<Pace>>,
}

impl Wishes {
    /// The new pace, if one was set since the last call.
    fn another_pace(&self) -> Option<Pace> {
        // Taking the lock for every batch would slow sending down.
        if !self.has_pace.load(Ordering::Acquire) {
            return None;
        }
        self.has_pace.store(false, Ordering::Relaxed);
        let pace = self.pace.lock();
        pace.unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A generator that sends until it is stopped or its value goes.
pub type RunningSocketGenerator = Running<SocketGenerator>;

impl Generates for SocketGenerator {
    type Requests = Wishes;

    fn offered_frames(&self) -> Result<u64, TrafficError> {
        Self::offered_frames(self)
    }

    fn ask_to_end(wishes: &Wishes) {
        // The thread looks at them after every batch.
        wishes.stop.store(true, Ordering::Relaxed);
    }

    fn join(&self, thread: JoinHandle<Outcome>) -> std::thread::Result<Outcome> {
        thread.join()
    }
}

impl RunningSocketGenerator {
    /// Frames that the socket has taken since the start.
    #[must_use]
    pub fn taken_frames(&self) -> u64 {
        self.generator().taken_frames()
    }

    /// Has it send at another pace from now on; nothing where it has that pace.
    pub fn set_pace(&self, pace: Pace) {
        let wishes = &self.requests;
        *wishes.pace.lock().unwrap_or_else(PoisonError::into_inner) = Some(pace);
        wishes.has_pace.store(true, Ordering::Release);
    }

    /// Addresses all further frames to a station that is not there, or again to the DUT.
    pub fn misaddress(&self, misaddress: bool) {
        let wishes = &self.requests;
        wishes.misaddress.store(misaddress, Ordering::Relaxed);
    }
}

/// Sends as long as it goes on.
fn transmit(
    transmitter: &mut Transmitter,
    frames: &FrameStore,
    goes_on: impl Fn() -> bool,
    wishes: &Wishes,
    taken_frames: &AtomicU64,
    pace: Pace,
) -> Result<(), TrafficError> {
    let start = Instant::now();
    let mut pacer = Pacer::new(pace, start.elapsed());
    let mut batch = Vec::with_capacity(BATCH_SIZE);
    let mut next = 0;
    let mut refusals = 0;
    while goes_on() {
        if let Some(pace) = wishes.another_pace() {
            pacer.set_pace(pace, start.elapsed());
        }
        let due = pacer.due_frames(start.elapsed());
        if due == 0 {
            std::hint::spin_loop();
            continue;
        }
        let length = usize::try_from(due).map_or(BATCH_SIZE, |due| due.min(BATCH_SIZE));
        let misaddress = wishes.misaddress.load(Ordering::Relaxed);
        frames.batch(&mut batch, next, length, misaddress);
        let taken = transmitter.send(&batch)?;
        refusals = refused(taken, refusals)?;
        pacer.sent(taken as u64);
        next += taken as u64;
        taken_frames.store(next, Ordering::Relaxed);
    }
    Ok(())
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
    use fwdlab_model::{AddressFamily, FrameSize, Traffic};
    use fwdlab_packet::MacAddress;

    use super::*;
    use crate::Link;

    #[test]
    fn frames_are_sent_in_the_order_that_is_planned() {
        let link = |last| Link {
            source: MacAddress([2, 0, 0, 0, last, 1]),
            destination: MacAddress([2, 0, 0, 0, last, 2]),
        };
        let traffic = Traffic {
            sources: 2,
            destinations: 9,
            frame_sizes: [(64, 7), (594, 4), (1518, 1)]
                .map(|(bytes, share)| FrameSize { bytes, share })
                .to_vec(),
            ..Traffic::default()
        };
        let frames = Frames::new(AddressFamily::Inet6, &traffic, link(1), link(2)).unwrap();
        assert_sends_what_is_planned(&frames, 18 * 3);
        let shares = frames.shared_out(4).unwrap();
        for (share, flows) in shares.iter().zip([5, 5, 4, 4]) {
            assert_sends_what_is_planned(share, flows * 3);
        }
        let heavy = Traffic {
            zipf: Some("1.1".parse().unwrap()),
            ..traffic
        };
        let frames = Frames::new(AddressFamily::Inet6, &heavy, link(1), link(2)).unwrap();
        assert_sends_what_is_planned(&frames, 18 * 3);
    }

    fn assert_sends_what_is_planned(frames: &Frames, distinct: usize) {
        let store = FrameStore::new(frames);
        assert_eq!(store.planned.len(), distinct);
        let mut batch = Vec::new();
        for first in [0, 1, 17, 35, 36, 215, 216, 1000] {
            store.batch(&mut batch, first, BATCH_SIZE, false);
            for (number, frame) in (first..).zip(&batch) {
                assert_eq!(*frame, frames.sent(number));
            }
            store.batch(&mut batch, first, BATCH_SIZE, true);
            for (number, frame) in (first..).zip(&batch) {
                let planned = frames.sent(number);
                assert_eq!(frame[..5], planned[..5]);
                assert_eq!(frame[5], planned[5] ^ 0x80);
                assert_eq!(frame[6..], planned[6..]);
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
