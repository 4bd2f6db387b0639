//! The frames that the tester sends, and those that a correct router makes of them.

use fwdlab_model::{AddressFamily, Traffic};
use fwdlab_packet::{AddressRange, Flows, MacAddress, UdpFrame, forwarded};

use crate::TrafficError;

/// What the maps of the eBPF programs hold.
pub const FLOWS_MAX: u32 = 2048;

/// Bytes of a frame that the programs write and compare.
const HEAD_SIZE: usize = 64;

/// The port of the sender and of the receiver: far from any registered service in use here.
const PORT: u16 = 2000;
const HOP_LIMIT: u8 = 64;

/// The two ends of one cable.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The sending end.
    pub source: MacAddress,
    /// The receiving end.
    pub destination: MacAddress,
}

/// All frames of one address family.
#[derive(Clone, Debug)]
pub struct Frames {
    family: AddressFamily,
    flows: Flows,
    sent: Vec<Vec<u8>>,
    expected: Vec<Vec<u8>>,
}

impl Frames {
    /// Makes the frames of the traffic's flows, from the tester to the DUT over one
    /// link and from the DUT to the sink over another.
    ///
    /// # Errors
    /// `TooManyFlows`, `FrameSize`.
    pub fn new(
        family: AddressFamily,
        traffic: &Traffic,
        tester_to_dut: Link,
        dut_to_sink: Link,
    ) -> Result<Self, TrafficError> {
        let flows = traffic.flows();
        if flows > FLOWS_MAX {
            return Err(TrafficError::TooManyFlows { flows });
        }
        let frame_size = traffic.frame_sizes[0].bytes;
        if frame_size != 64 {
            return Err(TrafficError::FrameSize { frame_size });
        }
        let usual = match family {
            AddressFamily::Inet => Flows::inet(),
            AddressFamily::Inet6 => Flows::inet6(),
        };
        let range = |usual: AddressRange, count| AddressRange::new(usual.first(), count);
        let flows = Flows::new(
            range(usual.sources(), traffic.sources)?,
            range(usual.destinations(), traffic.destinations)?,
        )?;
        let mut sent = Vec::new();
        let mut expected = Vec::new();
        for flow in flows.iter() {
            let length = UdpFrame::payload_length(&flow, usize::from(frame_size))?;
            let frame = UdpFrame {
                source_mac: tester_to_dut.source,
                destination_mac: tester_to_dut.destination,
                flow,
                source_port: PORT,
                destination_port: PORT,
                hop_limit: HOP_LIMIT,
                payload: &b"fwdlab probe frame"[..length],
            }
            .emit();
            expected.push(forwarded(
                &frame,
                dut_to_sink.source,
                dut_to_sink.destination,
            )?);
            sent.push(frame);
        }
        Ok(Self {
            family,
            flows,
            sent,
            expected,
        })
    }

    /// The flows, in the order in which they are sent.
    #[must_use]
    pub fn flows(&self) -> Flows {
        self.flows
    }

    /// The address family.
    #[must_use]
    pub fn family(&self) -> AddressFamily {
        self.family
    }

    /// The frames as they are sent, without FCS, one a flow.
    #[must_use]
    pub fn sent(&self) -> &[Vec<u8>] {
        &self.sent
    }

    /// The frames as the sink should get them, without FCS, one a flow.
    #[must_use]
    pub fn expected(&self) -> &[Vec<u8>] {
        &self.expected
    }

    /// Bytes of a frame without FCS.
    #[must_use]
    pub fn length(&self) -> usize {
        self.sent[0].len()
    }

    /// Port of the sender and of the receiver.
    #[must_use]
    pub fn port(&self) -> u16 {
        PORT
    }

    /// How many frames lie between two that the sink checks: at most 64, and without a common
    /// divisor with the number of flows, so that every flow gets its turn.
    #[must_use]
    pub fn check_every(&self) -> u32 {
        (1..=64)
            .rev()
            .find(|&every| greatest_common_divisor(every, self.flows.count()) == 1)
            .unwrap_or(1)
    }
}

/// The first bytes of a frame as a map holds them.
pub(crate) fn head(frame: &[u8]) -> [u64; HEAD_SIZE / 8] {
    let mut bytes = [0; HEAD_SIZE];
    bytes[..frame.len()].copy_from_slice(frame);
    let mut words = [0; HEAD_SIZE / 8];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(chunk.try_into().expect("a chunk of 8 has 8 bytes"));
    }
    words
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use fwdlab_model::FrameSize;

    use super::*;

    fn link(last: u8) -> Link {
        Link {
            source: MacAddress([2, 0, 0, 0, last, 1]),
            destination: MacAddress([2, 0, 0, 0, last, 2]),
        }
    }

    #[test]
    fn every_flow_has_its_frame_of_the_smallest_size() {
        for (family, length) in [(AddressFamily::Inet, 60), (AddressFamily::Inet6, 62)] {
            let frames = Frames::new(family, &Traffic::default(), link(1), link(2)).unwrap();
            assert_eq!(frames.sent().len(), 2000);
            assert!(frames.sent().iter().all(|frame| frame.len() == length));
            let mut distinct = frames.expected().to_vec();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), 2000);
        }
    }

    #[test]
    fn checked_frames_visit_every_flow() {
        for (sources, destinations) in [(20, 100), (1, 1), (1, 63), (2, 32), (16, 128), (30, 7)] {
            let traffic = Traffic {
                sources,
                destinations,
                ..Traffic::default()
            };
            let frames = Frames::new(AddressFamily::Inet, &traffic, link(1), link(2)).unwrap();
            let flows = frames.flows().count();
            let mut seen = vec![false; flows as usize];
            for check in 0..flows {
                seen[(check * frames.check_every() % flows) as usize] = true;
            }
            assert!(seen.iter().all(|&seen| seen), "{flows} flows");
            assert!(frames.check_every() <= 64);
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let frames = |sources, bytes| {
            let traffic = Traffic {
                sources,
                frame_sizes: vec![FrameSize { bytes, share: 1 }],
                ..Traffic::default()
            };
            Frames::new(AddressFamily::Inet, &traffic, link(1), link(2)).unwrap_err()
        };
        assert!(matches!(
            frames(21, 64),
            TrafficError::TooManyFlows { flows: 2100 }
        ));
        assert!(matches!(
            frames(20, 128),
            TrafficError::FrameSize { frame_size: 128 }
        ));
    }
}
