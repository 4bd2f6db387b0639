//! Generator and sink on an interface that the user names, outside any lab.

use std::thread::sleep;
use std::time::Duration;

use fwdlab_model::{AddressFamily, Traffic};
use fwdlab_packet::MacAddress;
use fwdlab_sys::{Interface, interface};

use crate::default_route::refuse_default_route;
use crate::{
    Frames, Generator, InterfaceCounters, Link, Pace, RunningGenerator, Sink, TrafficError,
};

/// A generator that sends on an interface of the user's until it is stopped or its value goes.
pub struct InterfaceGenerator {
    running: RunningGenerator,
    interface: Interface,
    counters: InterfaceCounters,
    sent_before: u64,
}

/// What was sent on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentFrames {
    /// Frames that the generator handed to the interface.
    pub offered: u64,
    /// Frames that the interface says it transmitted in that time, those of others included.
    pub transmitted: u64,
}

impl InterfaceGenerator {
    /// Sends a family of the traffic from an interface of the calling thread's namespace to a MAC
    /// address, on a CPU.
    ///
    /// # Errors
    /// `DefaultRoute`; when there is no such interface; those of [`Frames::new`] and
    /// [`Generator::load`].
    pub fn start(
        name: &str,
        destination: MacAddress,
        family: AddressFamily,
        traffic: &Traffic,
        cpu: u32,
        pace: Pace,
    ) -> Result<Self, TrafficError> {
        refuse_default_route(name)?;
        let interface = interface(name)?;
        let link = Link {
            source: MacAddress(interface.mac),
            destination,
        };
        let frames = Frames::unrouted(family, traffic, link)?;
        let generator = Generator::load(&frames, interface.index)?;
        let counters = InterfaceCounters::open(interface.index)?;
        let sent_before = counters.read()?.sent_frames;
        Ok(Self {
            running: generator.start(cpu, pace)?,
            interface,
            counters,
            sent_before,
        })
    }

    /// Frames handed to the interface since the start.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn offered_frames(&self) -> Result<u64, TrafficError> {
        self.running.offered_frames()
    }

    /// Whether it still sends; it ends by itself only on an error, which [`stop`](Self::stop) tells.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running.is_running()
    }

    /// Stops sending.
    ///
    /// # Errors
    /// Why it had stopped before; `NotTransmitted` when the interface let none of the frames out.
    pub fn stop(self) -> Result<SentFrames, TrafficError> {
        let offered = self.running.stop()?.offered_frames()?;
        // A virtual interface counts what its peer has taken, a moment later.
        let mut transmitted = 0;
        for _ in 0..20 {
            transmitted = self
                .counters
                .read()?
                .sent_frames
                .saturating_sub(self.sent_before);
            if transmitted >= offered {
                break;
            }
            sleep(Duration::from_millis(5));
        }
        if offered > 0 && transmitted == 0 {
            return Err(TrafficError::NotTransmitted {
                interface: self.interface.name,
                offered,
            });
        }
        Ok(SentFrames {
            offered,
            transmitted,
        })
    }
}

/// A sink on an interface of the calling thread's namespace, for frames that come from a MAC address.
///
/// It takes every frame away from the interface, those of others included.
///
/// # Errors
/// `DefaultRoute`; when there is no such interface; those of [`Frames::new`], [`Sink::load`] and
/// [`Sink::attach_anywhere`].
pub fn count_on(
    name: &str,
    from: MacAddress,
    family: AddressFamily,
    traffic: &Traffic,
    is_routed: bool,
) -> Result<Sink, TrafficError> {
    refuse_default_route(name)?;
    let interface = interface(name)?;
    let link = Link {
        source: from,
        destination: MacAddress(interface.mac),
    };
    let frames = if is_routed {
        // On which link the router got them plays no part here.
        Frames::new(family, traffic, link, link)?
    } else {
        Frames::unrouted(family, traffic, link)?
    };
    let mut sink = Sink::load(&frames)?;
    sink.attach_anywhere(name)?;
    Ok(sink)
}
