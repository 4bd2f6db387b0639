//! What an interface has counted, asked for over rtnetlink in a few microseconds.

use std::io;
use std::sync::{Mutex, PoisonError};

use fwdlab_sys::{Netlink, netlink_attribute};

use crate::TrafficError;

/// Frames of one interface since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Frames that came in, whatever became of them.
    pub received_frames: u64,
    /// Frames that went out.
    pub sent_frames: u64,
    /// Frames that were to go out and were dropped.
    pub send_dropped_frames: u64,
    /// Frames that came in for another station and were dropped because of that.
    pub other_station_frames: u64,
}

/// The counters of one interface.
pub struct InterfaceCounters {
    interface_index: u32,
    // Asked from the threads that watch the load, one at a time.
    netlink: Mutex<Netlink>,
}

impl InterfaceCounters {
    /// Opens rtnetlink for an interface of the calling thread's namespace; the counters may then be
    /// read from any.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open(interface_index: u32) -> Result<Self, TrafficError> {
        let netlink = Netlink::route().map_err(|source| failed(interface_index, source))?;
        Ok(Self {
            interface_index,
            netlink: Mutex::new(netlink),
        })
    }

    /// What the interface has counted.
    ///
    /// # Errors
    /// When it is gone, or the kernel is older than 5.19, which counts no frames for other stations.
    pub fn read(&self) -> Result<InterfaceCounts, TrafficError> {
        // Whoever panicked while asking left an answer behind at most, which is skipped.
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        netlink
            .ask(RTM_GETSTATS, &request(self.interface_index), RTM_NEWSTATS)
            .and_then(|answer| counts_in(&answer))
            .map_err(|source| failed(self.interface_index, source))
    }
}

fn failed(interface_index: u32, source: io::Error) -> TrafficError {
    TrafficError::Counters {
        interface_index,
        source,
    }
}

/// `struct if_stats_msg`, between a message's header and its attributes.
const STATS_HEADER_SIZE: usize = 12;
const RTM_NEWSTATS: u16 = 92;
const RTM_GETSTATS: u16 = 94;
const IFLA_STATS_LINK_64: u16 = 1;

/// Places in `struct rtnl_link_stats64`, in words of 64 bits.
const RX_PACKETS: usize = 0;
const TX_PACKETS: usize = 1;
const TX_DROPPED: usize = 7;
const RX_OTHERHOST_DROPPED: usize = 24;

/// Asks for the counters of 64 bits.
fn request(interface_index: u32) -> [u8; STATS_HEADER_SIZE] {
    let mut request = [0; STATS_HEADER_SIZE];
    request[4..8].copy_from_slice(&interface_index.to_ne_bytes());
    let filter = 1_u32 << (IFLA_STATS_LINK_64 - 1);
    request[8..12].copy_from_slice(&filter.to_ne_bytes());
    request
}

/// The counters in an answer.
///
/// # Errors
/// `Unsupported` where the kernel knows fewer, `InvalidData` where there are none.
fn counts_in(answer: &[u8]) -> io::Result<InterfaceCounts> {
    let counters = netlink_attribute(answer, STATS_HEADER_SIZE, IFLA_STATS_LINK_64)?;
    let counter = |place: usize| {
        let bytes = counters.get(place * 8..)?.first_chunk()?;
        Some(u64::from_ne_bytes(*bytes))
    };
    let counts = || {
        Some(InterfaceCounts {
            received_frames: counter(RX_PACKETS)?,
            sent_frames: counter(TX_PACKETS)?,
            send_dropped_frames: counter(TX_DROPPED)?,
            other_station_frames: counter(RX_OTHERHOST_DROPPED)?,
        })
    };
    counts().ok_or_else(|| io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer of the form that the kernel gives, with as many counters as it knows.
    fn answer(counters: u16) -> Vec<u8> {
        let mut answer = request(3).to_vec();
        // An empty attribute aligns the counters to 8 bytes.
        answer.extend([4, 0, 0, 0]);
        answer.extend((4 + counters * 8).to_ne_bytes());
        answer.extend(IFLA_STATS_LINK_64.to_ne_bytes());
        answer.extend((0..u64::from(counters)).flat_map(|place| (100 + place).to_ne_bytes()));
        answer
    }

    #[test]
    fn counters_are_found_at_their_places() {
        let expected = InterfaceCounts {
            received_frames: 100,
            sent_frames: 101,
            send_dropped_frames: 107,
            other_station_frames: 124,
        };
        assert_eq!(counts_in(&answer(25)).unwrap(), expected);
    }

    #[test]
    fn a_kernel_that_counts_too_little_is_told_from_a_damaged_answer() {
        let error = counts_in(&answer(24)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        let error = counts_in(&answer(25)[..30]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(bytes: Vec<u8>) {
            let _ = counts_in(&bytes);
            let mut own = answer(0);
            own.truncate(STATS_HEADER_SIZE);
            own.extend(bytes);
            let _ = counts_in(&own);
        }
    }
}
