//! The seam between a lab and whatever sends and counts its frames: eBPF programs, or sockets and
//! interface counters.

use fwdlab_model::{Tester, Verification};

use crate::running::Alarm;
use crate::{
    Frames, Generator, Pace, RunningGenerator, RunningSocketGenerator, SinkCounts, SocketGenerator,
    SocketPort, TrafficError, drop_control,
};

/// Where frames are sent: an interface, and what the tester needs on it.
pub enum SenderPort {
    /// The index of an interface, which eBPF programs redirect to.
    Ebpf(u32),
    /// A socket.
    Socket(SocketPort),
}

/// A generator of either kind that stands still.
#[expect(
    clippy::large_enum_variant,
    reason = "there are one or two of them, and they are rarely moved"
)]
pub enum Sender {
    /// An eBPF program on live frames.
    Ebpf(Generator),
    /// A thread with a socket.
    Socket(SocketGenerator),
}

/// A generator of either kind that sends until it is stopped or its value goes.
#[expect(
    clippy::large_enum_variant,
    reason = "there are one or two of them, and they are rarely moved"
)]
pub enum RunningSender {
    /// An eBPF program on live frames.
    Ebpf(RunningGenerator),
    /// A thread with a socket.
    Socket(RunningSocketGenerator),
}

/// A sink of either kind, counting since it was loaded or reset: an XDP program, or interface counters and a packet
/// socket.
pub trait Receiver: Send + Sync {
    /// Counts what comes in at an interface of the calling thread's namespace, from now on.
    ///
    /// # Errors
    /// Without the privilege in that namespace, or when there is no such interface.
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError>;

    /// Takes the sink off its interface.
    ///
    /// # Errors
    /// When the kernel refuses, or does not say what was counted last.
    fn detach(&mut self) -> Result<(), TrafficError>;

    /// Counts from 0 again and checks one of so many frames; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn reset(&mut self) -> Result<(), TrafficError>;

    /// Counts from 0 again and checks every frame; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn reset_to_check_all(&mut self) -> Result<(), TrafficError>;

    /// Frames of the tester so far, at the least cost for the load.
    ///
    /// # Errors
    /// When the kernel does not say.
    fn forwarded_frames(&self) -> Result<u64, TrafficError> {
        Ok(self.counts()?.forwarded_frames)
    }

    /// What was counted so far; frames that wait to be checked are checked now, so it is to be called
    /// some times a second.
    ///
    /// # Errors
    /// When the kernel does not say.
    fn counts(&self) -> Result<SinkCounts, TrafficError>;

    /// Expects the same frames as another DUT makes of them; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn expect(&mut self, frames: &Frames) -> Result<(), TrafficError>;

    /// Distinct flows among the checked frames.
    ///
    /// # Errors
    /// When the kernel does not say.
    fn flows_seen(&self) -> Result<u32, TrafficError>;

    /// Whether every planned size was among the checked frames.
    ///
    /// # Errors
    /// When the kernel does not say.
    fn all_sizes_seen(&self) -> Result<bool, TrafficError>;

    /// The outcome of the check, for the records.
    ///
    /// # Errors
    /// When the kernel does not say.
    fn verification(&self) -> Result<Verification, TrafficError> {
        Ok(self.counts()?.verification(self.flows_seen()?))
    }
}

/// Why this process cannot load eBPF programs; nothing where it can.
#[must_use]
pub fn ebpf_refusal() -> Option<TrafficError> {
    drop_control().err()
}

impl SenderPort {
    /// Opens what the tester needs on an interface of the calling thread's namespace.
    ///
    /// # Errors
    /// Without the privilege that this tester needs, or when there is no such interface.
    pub fn open(tester: Tester, interface_index: u32) -> Result<Self, TrafficError> {
        Self::open_queue(tester, interface_index, 0)
    }

    /// The same for one of several senders of an interface, each with another number; where the tester can choose a
    /// queue of the interface, it is the one with that number.
    pub(crate) fn open_queue(
        tester: Tester,
        interface_index: u32,
        queue: u32,
    ) -> Result<Self, TrafficError> {
        Ok(match tester {
            Tester::Ebpf => Self::Ebpf(interface_index),
            tester => Self::Socket(SocketPort::open_queue(tester, interface_index, queue)?),
        })
    }
}

impl Sender {
    /// Prepares to send frames through a port, on a thread in the port's namespace; it may then be run
    /// in any.
    ///
    /// # Errors
    /// Without the privilege that this tester needs.
    pub fn load(port: &SenderPort, frames: &Frames) -> Result<Self, TrafficError> {
        Ok(match port {
            SenderPort::Ebpf(index) => Self::Ebpf(Generator::load(frames, *index)?),
            SenderPort::Socket(port) => Self::Socket(SocketGenerator::load(port, frames)?),
        })
    }

    /// Sends that many frames, from the first flow on, and returns when they are sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn send(&mut self, frames: u32) -> Result<(), TrafficError> {
        match self {
            Self::Ebpf(generator) => generator.send(frames),
            Self::Socket(generator) => generator.send(frames),
        }
    }

    /// Sends that many frames more, from the flow after the last one on, and returns when they are
    /// sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn send_more(&mut self, frames: u32) -> Result<(), TrafficError> {
        match self {
            Self::Ebpf(generator) => generator.send_more(frames),
            Self::Socket(generator) => generator.send_more(frames),
        }
    }

    /// Starts on a CPU, with the count of offered frames at 0, and makes no frame until it is [released](RunningSender::release).
    /// One with sockets sends at once.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn start_held(self, cpu: u32, pace: Pace) -> Result<RunningSender, TrafficError> {
        Ok(match self {
            Self::Ebpf(generator) => RunningSender::Ebpf(generator.start_held(cpu, pace)?),
            Self::Socket(generator) => RunningSender::Socket(generator.start(cpu, pace)?),
        })
    }

    /// Starts sending beside others, and ends where one of them fails.
    pub(crate) fn start_beside(
        self,
        cpu: u32,
        pace: Pace,
        others: Alarm,
    ) -> Result<RunningSender, TrafficError> {
        Ok(match self {
            Self::Ebpf(generator) => {
                RunningSender::Ebpf(generator.start_beside(cpu, pace, others)?)
            }
            Self::Socket(generator) => {
                RunningSender::Socket(generator.start_beside(cpu, pace, others)?)
            }
        })
    }

    /// Frames offered since the last start.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn offered_frames(&self) -> Result<u64, TrafficError> {
        match self {
            Self::Ebpf(generator) => generator.offered_frames(),
            Self::Socket(generator) => generator.offered_frames(),
        }
    }

    /// Frames handed to the interface since the last start, and none of others on the same interface.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn own_frames(&self) -> Result<u64, TrafficError> {
        match self {
            Self::Ebpf(generator) => generator.offered_frames(),
            Self::Socket(generator) => Ok(generator.taken_frames()),
        }
    }
}

impl RunningSender {
    /// Frames offered since the start.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn offered_frames(&self) -> Result<u64, TrafficError> {
        match self {
            Self::Ebpf(running) => running.offered_frames(),
            Self::Socket(running) => running.offered_frames(),
        }
    }

    /// Frames handed to the interface since the start, and none of others on the same interface.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn own_frames(&self) -> Result<u64, TrafficError> {
        match self {
            Self::Ebpf(running) => running.offered_frames(),
            Self::Socket(running) => Ok(running.taken_frames()),
        }
    }

    /// Has it send at another pace from now on, where it is another; counts and the order of flows go on.
    ///
    /// # Errors
    /// `NotHeld`, and when the kernel refuses.
    pub fn set_pace(&mut self, pace: Pace) -> Result<(), TrafficError> {
        match self {
            Self::Ebpf(running) => running.set_pace(pace),
            Self::Socket(running) => {
                running.set_pace(pace);
                Ok(())
            }
        }
    }

    /// Has it make no more frames until [`release`](Self::release), and returns when the last one was
    /// handed to its interface. One with sockets sends on: no XDP program can be where it works.
    ///
    /// # Errors
    /// `NotHeld`.
    pub fn hold(&self) -> Result<(), TrafficError> {
        match self {
            Self::Ebpf(running) => running.hold(),
            Self::Socket(_) => Ok(()),
        }
    }

    /// Has a held one go on.
    pub fn release(&self) {
        match self {
            Self::Ebpf(running) => running.release(),
            Self::Socket(_) => {}
        }
    }

    /// Whether it still sends; it ends by itself only on an error, which [`finish`](Self::finish)
    /// tells.
    #[must_use]
    pub fn is_running(&self) -> bool {
        match self {
            Self::Ebpf(running) => running.is_running(),
            Self::Socket(running) => running.is_running(),
        }
    }

    /// Asks it to stop sending, and does not wait until it has.
    pub(crate) fn ask_to_end(&self) {
        match self {
            Self::Ebpf(running) => running.ask_to_end(),
            Self::Socket(running) => running.ask_to_end(),
        }
    }

    /// Stops sending; beside the sender, why it had stopped before where it had.
    pub fn finish(self) -> (Sender, Result<(), TrafficError>) {
        match self {
            Self::Ebpf(running) => {
                let (generator, outcome) = running.finish();
                (Sender::Ebpf(generator), outcome)
            }
            Self::Socket(running) => {
                let (generator, outcome) = running.finish();
                (Sender::Socket(generator), outcome)
            }
        }
    }
}
