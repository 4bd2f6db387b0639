//! The sink: an XDP program that counts all frames and checks some completely.

use aya::maps::{Array, MapData, PerCpuArray, PerCpuValues};
use aya::programs::xdp::XdpMode;
use fwdlab_model::{AddressFamily, Forwards, Verification};
use std::collections::BTreeMap;
use std::iter::Sum;
use std::net::IpAddr;

use crate::frames::{Head, REST_SIZE, Size};
use crate::{Frames, Receiver, TrafficError, XdpProgram, object_bytes};

const ETH_P_IP: u32 = 0x0800;
const ETH_P_IPV6: u32 = 0x86dd;

/// `enum wrong` of the eBPF program, in its order.
pub(crate) const WRONG: [&str; 5] = [
    "flow",
    "length",
    "MAC address",
    "TTL",
    "checksum or content",
];

/// `struct sink` of the eBPF program, in words.
type State = [u64; 9];

/// `struct plan` of the eBPF program, in words.
type Plan = [u32; 9];

/// A sink, counting since it was loaded or reset.
pub struct Sink {
    xdp: XdpProgram,
    state: PerCpuArray<MapData, State>,
    expected: Array<MapData, Head>,
    forwards: Forwards,
    plan: Array<MapData, Plan>,
    checked_flows: Array<MapData, u32>,
    checked_sizes: Array<MapData, u32>,
    flows: u32,
    lengths: Vec<u32>,
    check_every: u32,
    words: Plan,
}

/// What a sink has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkCounts {
    /// Frames of the tester.
    pub forwarded_frames: u64,
    /// All other frames.
    pub foreign_frames: u64,
    /// Frames of the tester that were compared with what was expected.
    pub checked_frames: u64,
    /// Those that differed, in the order of what is looked at first.
    pub(crate) wrong_frames: [u64; WRONG.len()],
}

impl Sum for SinkCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |mut sum, counts| {
            sum.forwarded_frames += counts.forwarded_frames;
            sum.foreign_frames += counts.foreign_frames;
            sum.checked_frames += counts.checked_frames;
            for (sum, wrong) in sum.wrong_frames.iter_mut().zip(counts.wrong_frames) {
                *sum += wrong;
            }
            sum
        })
    }
}

impl SinkCounts {
    /// Frames that differed from what was expected, whatever it was.
    #[must_use]
    pub fn wrong_frames(&self) -> u64 {
        self.wrong_frames.iter().sum()
    }

    /// What differed, with how many frames, where there are any.
    pub fn wrong_frames_by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> {
        WRONG
            .into_iter()
            .zip(self.wrong_frames)
            .filter(|&(_, frames)| frames > 0)
    }

    /// What differed since the sink had counted so much, with how many frames.
    #[must_use]
    pub fn wrong_frames_since(&self, before: &Self) -> BTreeMap<String, u64> {
        let mut since = self.clone();
        for (frames, before) in since.wrong_frames.iter_mut().zip(before.wrong_frames) {
            *frames = frames.saturating_sub(before);
        }
        let by_kind = since.wrong_frames_by_kind();
        by_kind
            .map(|(kind, frames)| (kind.to_owned(), frames))
            .collect()
    }

    /// The outcome of the check, for the records.
    pub(crate) fn verification(&self, flows_seen: u32) -> Verification {
        Verification {
            checked_frames: self.checked_frames,
            wrong_frames: self
                .wrong_frames_by_kind()
                .map(|(kind, frames)| (kind.to_owned(), frames))
                .collect(),
            flows_seen,
        }
    }
}

impl Sink {
    /// Loads the program with the frames it is to expect.
    ///
    /// # Errors
    /// Without the privilege.
    pub fn load(frames: &Frames) -> Result<Self, TrafficError> {
        let flows = frames.flows();
        let mut xdp = XdpProgram::load_with(
            object_bytes!("../bpf/sink.bpf.o"),
            "fwdlab_count",
            &[
                ("expected", flows.count()),
                ("checked_flows", flows.count()),
            ],
            &[("tag", frames.tag_word())],
        )?;
        let mut expected: Array<MapData, Head> = xdp.take_map("expected");
        expect(&mut expected, frames)?;
        let mut sizes: Array<MapData, Size> = xdp.take_map("sizes");
        for size in frames.sizes_in_turn() {
            let [length, ..] = size;
            sizes.set(length.into(), size, 0).map_err(sink_error)?;
        }
        let mut rest: Array<MapData, [u8; REST_SIZE]> = xdp.take_map("rest");
        rest.set(0, frames.rest(), 0).map_err(sink_error)?;
        let lengths = frames.lengths().into_iter().map(u32::try_from);
        let lengths = lengths.collect::<Result<_, _>>();
        let mut sink = Self {
            state: xdp.take_map("sink"),
            expected,
            forwards: frames.forwards(),
            plan: xdp.take_map("plan"),
            checked_flows: xdp.take_map("checked_flows"),
            checked_sizes: xdp.take_map("checked_sizes"),
            flows: flows.count(),
            lengths: lengths.expect("a frame is no longer than 64 kB"),
            check_every: frames.check_every(),
            words: plan(frames),
            xdp,
        };
        sink.reset()?;
        Ok(sink)
    }

    /// Attaches to an interface of the calling thread's namespace whose driver need not know XDP;
    /// whether it does. Where not, each frame costs more.
    ///
    /// # Errors
    /// When there is no such interface, or it has a program already.
    pub fn attach_anywhere(&mut self, interface: &str) -> Result<bool, TrafficError> {
        if self.xdp.attach(interface).is_ok() {
            return Ok(true);
        }
        // Some drivers refuse for other reasons, such as the MTU.
        self.xdp.attach_with(interface, XdpMode::Skb)?;
        Ok(false)
    }

    /// How often each flow was among the checked frames, in the order of [`Frames::flows`].
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn checked_frames_by_flow(&self) -> Result<Vec<u32>, TrafficError> {
        let frames = |flow| self.checked_flows.get(&flow, 0).map_err(sink_error);
        (0..self.flows).map(frames).collect()
    }

    fn restart(&mut self, check_every: u32) -> Result<(), TrafficError> {
        *self.words.last_mut().expect("there are nine") = check_every;
        self.plan.set(0, self.words, 0).map_err(sink_error)?;
        let cpus = aya::util::nr_cpus().map_err(|(_, error)| sink_error(error))?;
        let zeros = PerCpuValues::try_from(vec![State::default(); cpus]).map_err(sink_error)?;
        self.state.set(0, zeros, 0).map_err(sink_error)?;
        for flow in 0..self.flows {
            self.checked_flows.set(flow, 0, 0).map_err(sink_error)?;
        }
        for &length in &self.lengths {
            self.checked_sizes.set(length, 0, 0).map_err(sink_error)?;
        }
        Ok(())
    }
}

fn expect(expected: &mut Array<MapData, Head>, frames: &Frames) -> Result<(), TrafficError> {
    for (flow, head) in (0..).zip(frames.expected_heads()) {
        expected.set(flow, head, 0).map_err(sink_error)?;
    }
    Ok(())
}

impl Receiver for Sink {
    /// The interface is one that fwdlab made; the sink stays there until [`detach`](Receiver::detach) or the
    /// interface's end.
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        self.xdp.attach_to_stay(interface)
    }

    fn detach(&mut self) -> Result<(), TrafficError> {
        self.xdp.detach()
    }

    fn reset(&mut self) -> Result<(), TrafficError> {
        self.restart(self.check_every)
    }

    fn expect(&mut self, frames: &Frames) -> Result<(), TrafficError> {
        if self.forwards != frames.forwards() {
            expect(&mut self.expected, frames)?;
            self.forwards = frames.forwards();
        }
        Ok(())
    }

    fn reset_to_check_all(&mut self) -> Result<(), TrafficError> {
        self.restart(1)
    }

    /// Over all CPUs.
    fn counts(&self) -> Result<SinkCounts, TrafficError> {
        let mut counts = SinkCounts::default();
        for state in self.state.get(&0, 0).map_err(sink_error)?.iter() {
            counts.forwarded_frames += state[0];
            counts.foreign_frames += state[1];
            counts.checked_frames += state[2];
            for (sum, wrong) in counts.wrong_frames.iter_mut().zip(&state[3..]) {
                *sum += wrong;
            }
        }
        Ok(counts)
    }

    fn flows_seen(&self) -> Result<u32, TrafficError> {
        let frames = self.checked_frames_by_flow()?;
        let seen = frames.into_iter().filter(|&frames| frames > 0).count();
        Ok(u32::try_from(seen).expect("flows are counted in 32 bits"))
    }

    fn all_sizes_seen(&self) -> Result<bool, TrafficError> {
        for length in &self.lengths {
            if self.checked_sizes.get(length, 0).map_err(sink_error)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn sink_error(error: impl std::error::Error + Send + Sync + 'static) -> TrafficError {
    TrafficError::bpf("sink: using its maps", error)
}

/// What the program has to know of the frames; how often it checks comes last, and later.
fn plan(frames: &Frames) -> Plan {
    let flows = frames.flows();
    let mut ports = [0; 4];
    ports[..2].copy_from_slice(&flows.source_ports().first.to_ne_bytes());
    ports[2..].copy_from_slice(&flows.destination_ports().first.to_ne_bytes());
    [
        match frames.family() {
            AddressFamily::Inet => ETH_P_IP,
            AddressFamily::Inet6 => ETH_P_IPV6,
        },
        flows.sources().count(),
        flows.destinations().count(),
        flows.source_ports().count(),
        flows.destination_ports().count(),
        last_word(flows.sources().first()),
        last_word(flows.destinations().first()),
        u32::from_ne_bytes(ports),
        0,
    ]
}

/// The last four bytes of an address as a number.
fn last_word(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => {
            let octets = address.octets();
            u32::from_be_bytes([octets[12], octets[13], octets[14], octets[15]])
        }
    }
}

#[cfg(test)]
mod tests {
    use aya::programs::{TestRun, TestRunOptions};
    use fwdlab_model::{FrameSize, PortRange, Traffic};
    use fwdlab_packet::MacAddress;

    use super::*;
    use crate::Link;

    const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];
    const VLANS: [Option<u16>; 2] = [None, Some(2730)];

    fn frames(family: AddressFamily, sizes: &[u16]) -> Frames {
        frames_of(family, sizes, None)
    }

    fn frames_of(family: AddressFamily, sizes: &[u16], vlan: Option<u16>) -> Frames {
        let ports = |first| PortRange {
            first,
            last: first + 4,
        };
        let traffic = Traffic {
            vlan,
            sources: 2,
            destinations: 3,
            source_ports: ports(65_531),
            destination_ports: ports(0),
            frame_sizes: sizes
                .iter()
                .map(|&bytes| FrameSize { bytes, share: 1 })
                .collect(),
            ..Traffic::default()
        };
        let link = |last| Link {
            source: MacAddress([2, 0, 0, 0, last, 1]),
            destination: MacAddress([2, 0, 0, 0, last, 2]),
        };
        Frames::new(family, &traffic, link(1), link(2)).unwrap()
    }

    /// Hands a frame to the program, on no interface.
    fn receive(sink: &Sink, frame: &[u8]) {
        let mut out = vec![0; frame.len()];
        let outcome = sink.xdp.program().test_run(TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ..TestRunOptions::default()
        });
        assert_eq!(outcome.unwrap().return_value, 1, "XDP_DROP");
    }

    #[test]
    fn every_frame_of_every_size_is_right() {
        testkit::require_root!();
        for (family, vlan) in FAMILIES
            .into_iter()
            .flat_map(|family| VLANS.map(|vlan| (family, vlan)))
        {
            let frames = frames_of(family, &[64, 66, 69, 70, 127, 594, 1517, 1518], vlan);
            let mut sink = Sink::load(&frames).unwrap();
            sink.reset_to_check_all().unwrap();
            assert!(!sink.all_sizes_seen().unwrap());
            for number in 0..150 * 8 {
                receive(&sink, &frames.expected(number));
            }
            let counts = sink.counts().unwrap();
            assert_eq!(counts.forwarded_frames, 1200);
            assert_eq!(counts.checked_frames, 1200);
            assert_eq!(counts.wrong_frames(), 0, "{counts:?}");
            assert_eq!(sink.flows_seen().unwrap(), 150);
            assert!(sink.all_sizes_seen().unwrap());
        }
    }

    #[test]
    fn every_flipped_bit_of_every_byte_is_found() {
        testkit::require_root!();
        for (family, vlan) in FAMILIES
            .into_iter()
            .flat_map(|family| VLANS.map(|vlan| (family, vlan)))
        {
            for size in [64, 70, 127, 1518] {
                let frames = frames_of(family, &[size], vlan);
                let mut sink = Sink::load(&frames).unwrap();
                sink.reset_to_check_all().unwrap();
                let right = frames.expected(7);
                for byte in 0..right.len() {
                    let mut wrong = right.clone();
                    wrong[byte] ^= 1 << (byte % 8);
                    receive(&sink, &wrong);
                    let counts = sink.counts().unwrap();
                    let found = counts.wrong_frames() + counts.foreign_frames;
                    assert_eq!(
                        found,
                        byte as u64 + 1,
                        "{family}, {size} bytes: byte {byte}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_frame_without_its_tag_or_with_another_is_the_testers_and_wrong() {
        testkit::require_root!();
        for family in FAMILIES {
            let frames = frames_of(family, &[64, 128], Some(100));
            let mut sink = Sink::load(&frames).unwrap();
            sink.reset_to_check_all().unwrap();
            let right = frames.expected(7);
            receive(&sink, &[&right[..12], &right[16..]].concat());
            let mut other = right.clone();
            other[15] += 1;
            receive(&sink, &other);
            receive(&sink, &right[..14]);
            let counts = sink.counts().unwrap();
            assert_eq!((counts.forwarded_frames, counts.foreign_frames), (2, 1));
            let wrong: Vec<_> = counts.wrong_frames_by_kind().collect();
            assert_eq!(wrong, [("length", 1), ("checksum or content", 1)]);
        }
    }

    #[test]
    fn a_planned_length_of_another_frame_is_wrong_all_the_same() {
        testkit::require_root!();
        for family in FAMILIES {
            let frames = frames(family, &[1000, 1500]);
            let mut sink = Sink::load(&frames).unwrap();
            sink.reset_to_check_all().unwrap();
            let larger = frames.expected(1);
            assert_eq!(larger.len(), 1496);
            receive(&sink, &larger[..996]);
            receive(&sink, &larger[..997]);
            let counts = sink.counts().unwrap();
            let wrong: Vec<_> = counts.wrong_frames_by_kind().collect();
            assert_eq!(wrong, [("length", 1), ("checksum or content", 1)]);
        }
    }

    #[test]
    fn ports_outside_the_ranges_are_foreign() {
        testkit::require_root!();
        for (family, udp) in [(AddressFamily::Inet, 34), (AddressFamily::Inet6, 54)] {
            let frames = frames(family, &[64]);
            let sink = Sink::load(&frames).unwrap();
            let right = frames.expected(0);
            for (at, port) in [(0, 65_530_u16), (0, 0), (2, 5), (2, 65_535)] {
                let mut wrong = right.clone();
                wrong[udp + at..udp + at + 2].copy_from_slice(&port.to_be_bytes());
                receive(&sink, &wrong);
            }
            let counts = sink.counts().unwrap();
            assert_eq!((counts.foreign_frames, counts.forwarded_frames), (4, 0));
        }
    }
}
