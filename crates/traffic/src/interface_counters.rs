//! What an interface has counted, asked for over rtnetlink in a few microseconds.

use std::io;
use std::sync::{Mutex, PoisonError};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

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
    asker: Mutex<Asker>,
}

struct Asker {
    socket: Socket,
    sequence_number: u32,
}

impl InterfaceCounters {
    /// Opens rtnetlink for an interface of the calling thread's namespace; the counters may then be
    /// read from any.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open(interface_index: u32) -> Result<Self, TrafficError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        Ok(Self {
            interface_index,
            asker: Mutex::new(Asker {
                socket: open().map_err(|source| failed(interface_index, source))?,
                sequence_number: 0,
            }),
        })
    }

    /// What the interface has counted.
    ///
    /// # Errors
    /// When it is gone, or the kernel is older than 5.19, which counts no frames for other stations.
    pub fn read(&self) -> Result<InterfaceCounts, TrafficError> {
        // Whoever panicked while asking left an answer behind at most, which is skipped.
        let mut asker = self.asker.lock().unwrap_or_else(PoisonError::into_inner);
        asker
            .ask(self.interface_index)
            .map_err(|source| failed(self.interface_index, source))
    }
}

fn failed(interface_index: u32, source: io::Error) -> TrafficError {
    TrafficError::Counters {
        interface_index,
        source,
    }
}

impl Asker {
    fn ask(&mut self, interface_index: u32) -> io::Result<InterfaceCounts> {
        self.sequence_number = self.sequence_number.wrapping_add(1);
        let request = request(interface_index, self.sequence_number);
        self.socket.send(&request, 0)?;
        let mut answer = [0; 1024];
        loop {
            let length = self.socket.recv(&mut &mut answer[..], 0)?;
            // An answer to an earlier, interrupted request may still be in the socket.
            if let Some(counts) = counts_in(&answer[..length], self.sequence_number) {
                return counts;
            }
        }
    }
}

const HEADER_SIZE: usize = 16;
/// `struct if_stats_msg`, between a message's header and its attributes.
const STATS_HEADER_SIZE: usize = 12;
const RTM_NEWSTATS: u16 = 92;
const RTM_GETSTATS: u16 = 94;
const IFLA_STATS_LINK_64: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;

/// Places in `struct rtnl_link_stats64`, in words of 64 bits.
const RX_PACKETS: usize = 0;
const TX_PACKETS: usize = 1;
const TX_DROPPED: usize = 7;
const RX_OTHERHOST_DROPPED: usize = 24;

/// The request `RTM_GETSTATS` for the counters of 64 bits.
fn request(interface_index: u32, sequence_number: u32) -> [u8; HEADER_SIZE + STATS_HEADER_SIZE] {
    let mut message = [0; HEADER_SIZE + STATS_HEADER_SIZE];
    let length = u32::try_from(message.len()).expect("it is 28");
    message[0..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&RTM_GETSTATS.to_ne_bytes());
    message[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    message[8..12].copy_from_slice(&sequence_number.to_ne_bytes());
    message[20..24].copy_from_slice(&interface_index.to_ne_bytes());
    let filter = 1_u32 << (IFLA_STATS_LINK_64 - 1);
    message[24..28].copy_from_slice(&filter.to_ne_bytes());
    message
}

/// The counters in an answer, or the kernel's refusal; nothing where it answers another request.
fn counts_in(answer: &[u8], sequence_number: u32) -> Option<io::Result<InterfaceCounts>> {
    let damaged = || Some(Err(io::ErrorKind::InvalidData.into()));
    let half = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| answer.get(at..at + 4)?.try_into().ok();
    let (Some(kind), Some(sequence)) = (half(4), word(8)) else {
        return damaged();
    };
    if u32::from_ne_bytes(sequence) != sequence_number {
        return None;
    }
    if kind == NLMSG_ERROR {
        let Some(code) = word(HEADER_SIZE) else {
            return damaged();
        };
        let errno = i32::from_ne_bytes(code).saturating_neg();
        return Some(Err(io::Error::from_raw_os_error(errno)));
    }
    if kind != RTM_NEWSTATS {
        return damaged();
    }
    let mut at = HEADER_SIZE + STATS_HEADER_SIZE;
    while let (Some(length), Some(kind)) = (half(at), half(at + 2)) {
        if kind == IFLA_STATS_LINK_64 {
            let end = at + usize::from(length);
            let counter = |place: usize| {
                let start = at + 4 + place * 8;
                let bytes = answer.get(start..start + 8).filter(|_| start + 8 <= end)?;
                Some(u64::from_ne_bytes(bytes.try_into().ok()?))
            };
            let counts = || {
                Some(InterfaceCounts {
                    received_frames: counter(RX_PACKETS)?,
                    sent_frames: counter(TX_PACKETS)?,
                    send_dropped_frames: counter(TX_DROPPED)?,
                    other_station_frames: counter(RX_OTHERHOST_DROPPED)?,
                })
            };
            return Some(counts().ok_or_else(|| io::ErrorKind::Unsupported.into()));
        }
        // Attributes begin at multiples of four; one shorter than its header would never end.
        at += usize::from(length.max(4)).next_multiple_of(4);
    }
    damaged()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer of the form that the kernel gives, with as many counters as it knows.
    fn answer(sequence_number: u32, counters: u16) -> Vec<u8> {
        let mut message = request(3, sequence_number).to_vec();
        message[4..6].copy_from_slice(&RTM_NEWSTATS.to_ne_bytes());
        // An empty attribute aligns the counters to 8 bytes.
        message.extend([4, 0, 0, 0]);
        message.extend((4 + counters * 8).to_ne_bytes());
        message.extend(IFLA_STATS_LINK_64.to_ne_bytes());
        message.extend((0..u64::from(counters)).flat_map(|place| (100 + place).to_ne_bytes()));
        message
    }

    #[test]
    fn counters_are_found_at_their_places() {
        let counts = counts_in(&answer(7, 25), 7).unwrap().unwrap();
        let expected = InterfaceCounts {
            received_frames: 100,
            sent_frames: 101,
            send_dropped_frames: 107,
            other_station_frames: 124,
        };
        assert_eq!(counts, expected);
        assert!(counts_in(&answer(7, 25), 8).is_none());
    }

    #[test]
    fn a_kernel_that_counts_too_little_is_told_from_a_damaged_answer() {
        let error = counts_in(&answer(7, 24), 7).unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        let error = counts_in(&answer(7, 25)[..30], 7).unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(bytes: Vec<u8>, sequence_number: u32) {
            let _ = counts_in(&bytes, sequence_number);
            let mut own = answer(sequence_number, 0);
            own.truncate(HEADER_SIZE + STATS_HEADER_SIZE);
            own.extend(bytes);
            let _ = counts_in(&own, sequence_number);
        }
    }
}
