//! Generator and sink on an interface that the user names, outside any lab.

use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, Tester, Traffic};
use fwdlab_packet::MacAddress;
use fwdlab_sys::{Interface, interface};

use crate::interlock::refuse_needed;
use crate::senders::Senders;
use crate::{
    Frames, InterfaceCounters, Link, Pace, Receiver as _, RunningSender, Sink, SinkCounts,
    TrafficError, XdpProgram, pass_program,
};

/// Frames of the generator's that an interface has to transmit to be known to: more than it is likely
/// to send of its own meanwhile.
const PROOF_FRAMES: u64 = 8;

/// How long it may take until an interface counts what it has transmitted: some drivers tell their
/// counters once a second.
const COUNTERS_TIME_MAX: Duration = Duration::from_millis(1500);

/// How long a generator may take to send anything at all, on a machine that is busy with something else.
const FIRST_FRAME_TIME_MAX: Duration = Duration::from_secs(10);

/// How long it may take until an interface whose other end was just set up says so: the kernel tells
/// such things once a second.
const CARRIER_TIME_MAX: Duration = Duration::from_secs(2);

/// How long a card's link may take to come back when a program was attached to its port.
const LINK_BACK_TIME_MAX: Duration = Duration::from_secs(30);

/// `ENODEV` of `errno.h`, which has no kind of its own in Rust.
const NO_SUCH_DEVICE: i32 = 19;

/// What is sent from an interface, and how.
#[derive(Clone, Debug)]
pub struct InterfaceLoad<'t> {
    /// The station that the frames are addressed to: the next hop.
    pub destination: MacAddress,
    /// The family of the traffic that is sent.
    pub family: AddressFamily,
    /// The flows and sizes.
    pub traffic: &'t Traffic,
    /// Whether the flows are those that answer: from the destinations to the sources.
    pub is_reversed: bool,
    /// The CPUs that send, at least one and each once: every flow is sent by one of them, and by all where some are heavy.
    pub cpus: &'t [u32],
    /// How fast, all CPUs together.
    pub pace: Pace,
}

/// A generator that sends on an interface of the user's until it is stopped or its value goes.
pub struct InterfaceGenerator {
    senders: Senders,
    sender: Tester,
    refused: Vec<(Tester, TrafficError)>,
    /// What the interface was given to send what is redirected to it.
    pass: Option<XdpProgram>,
    counted: Counted,
    started: Instant,
    /// What had been sent before `started`.
    sent_before: SentFrames,
}

/// What was sent on an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentFrames {
    /// Frames that the generator handed to the interface.
    pub offered: u64,
    /// Frames that the interface says it transmitted in that time, those of others included.
    pub transmitted: u64,
}

impl InterfaceGenerator {
    /// Sends a load from an interface of the calling thread's namespace with the best sender that
    /// works on it: one that the interface is seen to transmit the frames of, from every CPU.
    ///
    /// # Errors
    /// `Needed`; `TooManyCpus`, `TooSlowForCpus`; `NoSuchInterface`, `NoEthernet`, `InterfaceDown`, `NoCarrier`, `ToItself`; those of
    /// [`Frames::new`]; when no sender works, why the best of them does not.
    pub fn start(name: &str, load: &InterfaceLoad<'_>) -> Result<Self, TrafficError> {
        let all: Vec<Tester> = [Tester::Ebpf].into_iter().chain(Tester::SOCKETS).collect();
        Self::start_among(name, load, &all)
    }

    /// Sends a load with the first of some senders that works, as [`start`](Self::start) does.
    ///
    /// A network card whose driver does not send what is redirected to it gets a program that lets all frames through,
    /// which makes many drivers send; [`take_program`](Self::take_program) keeps it there.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    ///
    /// # Panics
    /// Where no sender is named.
    pub fn start_among(
        name: &str,
        load: &InterfaceLoad<'_>,
        senders: &[Tester],
    ) -> Result<Self, TrafficError> {
        let (interface, frames) = prepare(name, load, CARRIER_TIME_MAX)?;
        let mut refused: Vec<(Tester, TrafficError)> = Vec::new();
        for &sender in senders {
            let tried = Self::prove(&interface, &frames, load, sender).or_else(|error| match error
                .on_any_cpu()
            {
                TrafficError::NotTransmitted { .. }
                    if sender == Tester::Ebpf && is_card(&interface.name) =>
                {
                    // Where it takes no program, or has one, what went wrong first says more.
                    Self::start_with_program(name, load).unwrap_or(Err(error))
                }
                _ => Err(error),
            });
            match tried {
                Ok(running) => return Ok(Self { refused, ..running }),
                Err(error) => refused.push((sender, error)),
            }
        }
        let (_, error) = refused.swap_remove(0);
        Err(error)
    }

    /// Sends by eBPF when the interface has got a program; none where it does not take one.
    fn start_with_program(
        name: &str,
        load: &InterfaceLoad<'_>,
    ) -> Option<Result<Self, TrafficError>> {
        let mut pass = pass_program().ok()?;
        pass.attach(name).ok()?;
        let prepared = prepare(name, load, LINK_BACK_TIME_MAX);
        let tried = prepared
            .and_then(|(interface, frames)| Self::prove(&interface, &frames, load, Tester::Ebpf));
        match tried {
            Ok(running) => Some(Ok(Self {
                pass: Some(pass),
                ..running
            })),
            Err(error) => {
                drop(pass);
                // The next sender needs the link, and says so where it stays away.
                let _ = prepare(name, load, LINK_BACK_TIME_MAX);
                Some(Err(error))
            }
        }
    }

    /// Sends a load from an interface of the calling thread's namespace with one sender, whether the
    /// interface transmits its frames or not.
    ///
    /// # Errors
    /// Those of [`start`](Self::start), and why this sender does not work.
    pub fn start_with(
        name: &str,
        load: &InterfaceLoad<'_>,
        sender: Tester,
    ) -> Result<Self, TrafficError> {
        let (interface, frames) = prepare(name, load, CARRIER_TIME_MAX)?;
        let mut generator = Self::load(&interface, &frames, load, sender)?;
        while generator.senders.start_next()?.is_some() {}
        Ok(generator)
    }

    /// Sends a load when every CPU was seen to send: a driver may transmit what is redirected to it by one CPU, and
    /// nothing of another. Sockets are not held meanwhile: their frames take the driver's ordinary way, whatever the CPU.
    fn prove(
        interface: &Interface,
        frames: &Frames,
        load: &InterfaceLoad<'_>,
        sender: Tester,
    ) -> Result<Self, TrafficError> {
        let mut generator = Self::load(interface, frames, load, sender)?;
        for number in 0..load.cpus.len() {
            if number > 0 {
                // Their frames would be taken for those of the next one, and so would frames that are counted late.
                generator.senders.hold()?;
            }
            let before = generator
                .counted
                .transmitted_of(generator.senders.own_frames()?)?;
            let Some(running) = generator.senders.start_next()? else {
                break;
            };
            if let Err(error) = generator.counted.prove(running, sender, before) {
                let error = generator.senders.on_last(error);
                // An error of the sender's own says more.
                return Err(generator.senders.stop().err().unwrap_or(error));
            }
        }
        if load.cpus.len() > 1 {
            generator.senders.release();
            generator.sent_before = generator.sent()?;
            generator.started = Instant::now();
        }
        Ok(generator)
    }

    /// Prepares all; nothing is sent.
    fn load(
        interface: &Interface,
        frames: &Frames,
        load: &InterfaceLoad<'_>,
        sender: Tester,
    ) -> Result<Self, TrafficError> {
        Ok(Self {
            senders: Senders::load(sender, interface, frames, load.cpus, load.pace)?,
            sender,
            refused: Vec::new(),
            pass: None,
            counted: Counted::new(interface)?,
            started: Instant::now(),
            sent_before: SentFrames::default(),
        })
    }

    /// What sends.
    #[must_use]
    pub fn sender(&self) -> Tester {
        self.sender
    }

    /// What would have been better, and why it does not work on this interface.
    #[must_use]
    pub fn refused(&self) -> &[(Tester, TrafficError)] {
        &self.refused
    }

    /// Takes the program that the interface was given, where it needed one to send: it stays there until the value goes,
    /// beyond the generator.
    pub fn take_program(&mut self) -> Option<XdpProgram> {
        self.pass.take()
    }

    /// When it began to send, from all CPUs.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// What had been sent when it began to send from all CPUs: of several, each was seen to send first.
    #[must_use]
    pub fn sent_before(&self) -> SentFrames {
        self.sent_before
    }

    /// The interface's own MAC address, which the frames come from.
    #[must_use]
    pub fn source(&self) -> MacAddress {
        self.counted.mac
    }

    /// What was sent since the start.
    ///
    /// # Errors
    /// `InterfaceGone`; when the kernel does not say.
    pub fn sent(&self) -> Result<SentFrames, TrafficError> {
        // In this order: what is transmitted was offered before.
        let transmitted = self.counted.transmitted()?;
        Ok(SentFrames {
            offered: self.senders.own_frames()?,
            transmitted,
        })
    }

    /// Whether every flow and every size was sent at least once, where flows are sent in turn.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn has_probed(&self) -> Result<bool, TrafficError> {
        self.senders.have_probed()
    }

    /// Whether it still sends, from all CPUs; it ends by itself only on an error, which [`stop`](Self::stop) tells.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.senders.are_running()
    }

    /// Stops sending.
    ///
    /// # Errors
    /// Why it had stopped before; `InterfaceGone`; `NotTransmitted` when the interface let none of the
    /// frames out.
    pub fn stop(self) -> Result<SentFrames, TrafficError> {
        let offered = match self.senders.stop() {
            Ok(offered) => offered,
            // That the interface has gone explains whatever a socket says of it.
            Err(error) => return Err(self.counted.transmitted().err().unwrap_or(error)),
        };
        let transmitted = self.counted.transmitted_of(offered)?;
        if offered > 0 && transmitted == 0 {
            return Err(TrafficError::NotTransmitted {
                interface: self.counted.interface,
                sender: self.sender,
                offered,
            });
        }
        Ok(SentFrames {
            offered,
            transmitted,
        })
    }
}

/// Whether an interface of the calling process's namespace is a card's port.
#[must_use]
pub fn is_card(name: &str) -> bool {
    let interface = Path::new("/sys/class/net").join(name);
    interface.join("device").exists()
}

/// The interface, once it has a link, and the frames to be sent from it.
fn prepare(
    name: &str,
    load: &InterfaceLoad<'_>,
    carrier_time_max: Duration,
) -> Result<(Interface, Frames), TrafficError> {
    let start = Instant::now();
    let mut interface = usable(name)?;
    while !interface.has_carrier {
        if start.elapsed() > carrier_time_max {
            return Err(TrafficError::NoCarrier {
                interface: interface.name,
            });
        }
        sleep(Duration::from_millis(20));
        interface = look_up(name)?;
    }
    let link = link(name, MacAddress(interface.mac), load.destination)?;
    let mut frames = Frames::unrouted(load.family, load.traffic, link)?;
    if load.is_reversed {
        // What becomes of them behind the link plays no part here.
        frames = frames.reversed(link, link);
    }
    Ok((interface, frames))
}

/// The link between an interface and another station.
fn link(name: &str, source: MacAddress, destination: MacAddress) -> Result<Link, TrafficError> {
    if source == destination {
        return Err(TrafficError::ToItself {
            interface: name.to_owned(),
            station: source,
        });
    }
    Ok(Link {
        source,
        destination,
    })
}

/// The interface of that name, if it may be used and is up.
fn usable(name: &str) -> Result<Interface, TrafficError> {
    let interface = look_up(name)?;
    refuse_needed(name)?;
    Ok(interface)
}

/// The interface of that name, if it is up.
fn look_up(name: &str) -> Result<Interface, TrafficError> {
    let named = || name.to_owned();
    let interface = interface(name).map_err(|error| match error.source.kind() {
        io::ErrorKind::NotFound => TrafficError::NoSuchInterface { interface: named() },
        io::ErrorKind::Unsupported => TrafficError::NoEthernet { interface: named() },
        _ => error.into(),
    })?;
    if !interface.is_up {
        return Err(TrafficError::InterfaceDown { interface: named() });
    }
    Ok(interface)
}

/// An interface's counters, from when it was first looked at.
struct Counted {
    interface: String,
    mac: MacAddress,
    counters: InterfaceCounters,
    sent_before: u64,
}

impl Counted {
    fn new(interface: &Interface) -> Result<Self, TrafficError> {
        let counters = InterfaceCounters::open(interface.index)?;
        let mut counted = Self {
            interface: interface.name.clone(),
            mac: MacAddress(interface.mac),
            counters,
            sent_before: 0,
        };
        counted.sent_before = counted.transmitted()?;
        Ok(counted)
    }

    /// Waits until the interface was seen to transmit the frames of a sender, beyond those that it had transmitted
    /// before.
    fn prove(
        &self,
        running: &RunningSender,
        sender: Tester,
        before: u64,
    ) -> Result<(), TrafficError> {
        let started = Instant::now();
        let mut first_seen = None;
        loop {
            // In this order: what is transmitted was offered before.
            let transmitted = self.transmitted()?.saturating_sub(before);
            let offered = running.own_frames()?;
            if offered > 0 && transmitted >= PROOF_FRAMES.min(offered) {
                return Ok(());
            }
            if offered > 0 && first_seen.is_none() {
                first_seen = Some(Instant::now());
            }
            let is_refused = first_seen.is_some_and(|seen| seen.elapsed() > COUNTERS_TIME_MAX);
            let is_silent = started.elapsed() > FIRST_FRAME_TIME_MAX;
            if is_refused || is_silent || !running.is_running() {
                return Err(TrafficError::NotTransmitted {
                    interface: self.interface.clone(),
                    sender,
                    offered,
                });
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Frames that the interface has transmitted since, once it has counted as many as were offered, or for long no more:
    /// a virtual interface counts what its peer has taken, a moment later.
    fn transmitted_of(&self, offered: u64) -> Result<u64, TrafficError> {
        let start = Instant::now();
        loop {
            let transmitted = self.transmitted()?;
            if transmitted >= offered || start.elapsed() > COUNTERS_TIME_MAX {
                return Ok(transmitted);
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Frames that the interface has transmitted since.
    fn transmitted(&self) -> Result<u64, TrafficError> {
        match self.counters.read() {
            Ok(counts) => Ok(counts.sent_frames.saturating_sub(self.sent_before)),
            Err(TrafficError::Counters { source, .. })
                if source.raw_os_error() == Some(NO_SUCH_DEVICE) =>
            {
                Err(TrafficError::InterfaceGone {
                    interface: self.interface.clone(),
                })
            }
            Err(error) => Err(error),
        }
    }
}

/// What a sink on an interface is to expect.
#[derive(Clone, Debug)]
pub struct InterfaceExpectation<'t> {
    /// The station that the frames come from: the generator, or the last router's port.
    pub source: MacAddress,
    /// The family of the traffic that is expected.
    pub family: AddressFamily,
    /// The flows and sizes.
    pub traffic: &'t Traffic,
    /// Through what they come.
    pub way: Way,
}

/// Through what frames come to a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Over a cable, as they were sent.
    Cable,
    /// Through a router, which takes one off the TTL.
    Router,
    /// Through a router, against the direction of the traffic's flows: from the destinations to the sources.
    RouterReversed,
}

/// A sink on an interface of the user's, until its value goes.
///
/// It takes every frame away from the interface, those of others included.
pub struct InterfaceSink {
    sink: Sink,
    counted: Counted,
    in_driver: bool,
}

impl InterfaceSink {
    /// Counts what comes in at an interface of the calling thread's namespace, from now on, and checks
    /// every n-th frame.
    ///
    /// # Errors
    /// `Needed`; `NoSuchInterface`, `NoEthernet`, `InterfaceDown`, `ToItself`; those of [`Frames::new`],
    /// [`Sink::load`] and [`Sink::attach_anywhere`].
    pub fn attach(
        name: &str,
        expectation: &InterfaceExpectation<'_>,
    ) -> Result<Self, TrafficError> {
        let interface = usable(name)?;
        let InterfaceExpectation {
            source,
            family,
            traffic,
            way,
        } = *expectation;
        let link = link(name, source, MacAddress(interface.mac))?;
        // On which link a router got them plays no part here.
        let frames = match way {
            Way::Cable => Frames::unrouted(family, traffic, link)?,
            Way::Router => Frames::new(family, traffic, link, link)?,
            Way::RouterReversed => Frames::new(family, traffic, link, link)?.reversed(link, link),
        };
        let mut sink = Sink::load(&frames)?;
        let counted = Counted::new(&interface)?;
        let in_driver = sink.attach_anywhere(name)?;
        Ok(Self {
            sink,
            counted,
            in_driver,
        })
    }

    /// Whether it counts in the driver; otherwise a little later, at a higher cost a frame.
    #[must_use]
    pub fn is_in_driver(&self) -> bool {
        self.in_driver
    }

    /// The interface's own MAC address, which the frames are to be addressed to.
    #[must_use]
    pub fn destination(&self) -> MacAddress {
        self.counted.mac
    }

    /// Counts from 0 again; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn reset(&mut self) -> Result<(), TrafficError> {
        self.sink.reset()
    }

    /// Counts from 0 again and checks every frame; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn reset_to_check_all(&mut self) -> Result<(), TrafficError> {
        self.sink.reset_to_check_all()
    }

    /// What was counted so far.
    ///
    /// # Errors
    /// `InterfaceGone`; when the kernel does not say.
    pub fn counts(&self) -> Result<SinkCounts, TrafficError> {
        self.counted.transmitted()?;
        self.sink.counts()
    }

    /// Distinct flows among the checked frames.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn flows_seen(&self) -> Result<u32, TrafficError> {
        self.sink.flows_seen()
    }
}
