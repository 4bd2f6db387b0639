//! Generator and sink on an interface that the user names, outside any lab.

use std::fs;

use fwdlab_model::{AddressFamily, Traffic};
use fwdlab_packet::MacAddress;
use fwdlab_sys::{Interface, interface};

use crate::default_route::refuse_default_route;
use crate::{Frames, Generator, Link, Pace, RunningGenerator, Sink, TrafficError};

const COUNTERS: &str = "/proc/thread-self/net/dev";

/// A generator that sends on an interface of the user's until it is stopped or its value goes.
pub struct InterfaceGenerator {
    running: RunningGenerator,
    interface: Interface,
    transmitted_before: u64,
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
        let transmitted_before = transmitted_frames(name)?;
        Ok(Self {
            running: generator.start(cpu, pace)?,
            interface,
            transmitted_before,
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

    /// Stops sending; to be called on a thread in the interface's namespace.
    ///
    /// # Errors
    /// Why it had stopped before; `NotTransmitted` when the interface let none of the frames out.
    pub fn stop(self) -> Result<SentFrames, TrafficError> {
        let offered = self.running.stop()?.offered_frames()?;
        let name = self.interface.name;
        // A virtual interface counts what its peer has taken, a moment later.
        let mut transmitted = 0;
        for _ in 0..20 {
            transmitted = transmitted_frames(&name)?.saturating_sub(self.transmitted_before);
            if transmitted >= offered {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if offered > 0 && transmitted == 0 {
            return Err(TrafficError::NotTransmitted {
                interface: name,
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

fn transmitted_frames(interface: &str) -> Result<u64, TrafficError> {
    let failed = |why: String| TrafficError::InterfaceCounters {
        interface: interface.to_owned(),
        why,
    };
    let text = fs::read_to_string(COUNTERS).map_err(|error| failed(error.to_string()))?;
    parse_transmitted(&text, interface)
        .ok_or_else(|| failed(format!("{COUNTERS} has no such line")))
}

/// The tenth number of an interface's line in `/proc/net/dev`: frames transmitted.
fn parse_transmitted(text: &str, interface: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, counters) = line.split_once(':')?;
        let frames = counters.split_whitespace().nth(9)?;
        (name.trim() == interface)
            .then(|| frames.parse().ok())
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLE: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       1       2    3    4    5     6          7         8        9      10    0    0    0     0       0          0
  eth0:11 12 13 14 15 16 17 18 19 20 0 0 0 0 0 0
";

    #[test]
    fn transmitted_frames_are_read() {
        assert_eq!(parse_transmitted(TABLE, "lo"), Some(10));
        assert_eq!(parse_transmitted(TABLE, "eth0"), Some(20));
        for other in ["eth", "eth1", "", " face |bytes"] {
            assert_eq!(parse_transmitted(TABLE, other), None);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String, name: String) {
            let _ = parse_transmitted(&text, &name);
        }
    }
}
