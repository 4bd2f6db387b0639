//! The sink: an XDP program that counts all frames and checks some completely.

use aya::maps::{Array, MapData, PerCpuArray, PerCpuValues};
use fwdlab_model::{AddressFamily, Verification};
use std::net::IpAddr;

use crate::frames::head;
use crate::{Frames, TrafficError, XdpProgram, object_bytes};

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

/// A sink, counting since it was loaded or reset.
pub struct Sink {
    xdp: XdpProgram,
    state: PerCpuArray<MapData, State>,
    plan: Array<MapData, [u32; 8]>,
    checked_flows: Array<MapData, u32>,
    // The program compares with it; closing it is left to the end.
    _expected: Array<MapData, [u64; 8]>,
    flows: u32,
    check_every: u32,
    words: [u32; 8],
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
        let mut xdp = XdpProgram::load(object_bytes!("../bpf/sink.bpf.o"), "count")?;
        let mut expected: Array<MapData, [u64; 8]> = xdp.take_map("expected");
        for (flow, frame) in (0..).zip(frames.expected()) {
            expected.set(flow, head(frame), 0).map_err(sink_error)?;
        }
        let flows = frames.flows();
        let port = frames.port();
        let mut ports = [0; 4];
        ports[..2].copy_from_slice(&port.to_ne_bytes());
        ports[2..].copy_from_slice(&port.to_ne_bytes());
        let words = [
            match frames.family() {
                AddressFamily::Inet => ETH_P_IP,
                AddressFamily::Inet6 => ETH_P_IPV6,
            },
            u32::try_from(frames.length()).expect("a frame is no longer than 64 kB"),
            flows.sources().count(),
            flows.destinations().count(),
            last_word(flows.sources().first()),
            last_word(flows.destinations().first()),
            u32::from_ne_bytes(ports),
            0,
        ];
        let mut sink = Self {
            state: xdp.take_map("sink"),
            plan: xdp.take_map("plan"),
            checked_flows: xdp.take_map("checked_flows"),
            _expected: expected,
            flows: flows.count(),
            check_every: frames.check_every(),
            words,
            xdp,
        };
        sink.reset()?;
        Ok(sink)
    }

    /// Attaches to an interface of the calling thread's namespace.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        self.xdp.attach(interface)
    }

    /// Takes the sink off its interface.
    pub fn detach(&mut self) {
        self.xdp.detach();
    }

    /// Counts from 0 again and checks every n-th frame; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn reset(&mut self) -> Result<(), TrafficError> {
        let every = self.check_every;
        self.restart(every)
    }

    /// Counts from 0 again and checks every frame; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn reset_to_check_all(&mut self) -> Result<(), TrafficError> {
        self.restart(1)
    }

    fn restart(&mut self, check_every: u32) -> Result<(), TrafficError> {
        self.words[7] = check_every;
        self.plan.set(0, self.words, 0).map_err(sink_error)?;
        let cpus = aya::util::nr_cpus().map_err(|(_, error)| sink_error(error))?;
        let zeros = PerCpuValues::try_from(vec![State::default(); cpus]).map_err(sink_error)?;
        self.state.set(0, zeros, 0).map_err(sink_error)?;
        for flow in 0..self.flows {
            self.checked_flows.set(flow, 0, 0).map_err(sink_error)?;
        }
        Ok(())
    }

    /// What was counted so far, over all CPUs.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn counts(&self) -> Result<SinkCounts, TrafficError> {
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

    /// Distinct flows among the checked frames.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn flows_seen(&self) -> Result<u32, TrafficError> {
        let mut seen = 0;
        for flow in 0..self.flows {
            seen += u32::from(self.checked_flows.get(&flow, 0).map_err(sink_error)? > 0);
        }
        Ok(seen)
    }

    /// The outcome of the check, for the records.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn verification(&self) -> Result<Verification, TrafficError> {
        Ok(self.counts()?.verification(self.flows_seen()?))
    }
}

fn sink_error(error: impl std::error::Error + Send + Sync + 'static) -> TrafficError {
    TrafficError::bpf("sink: using its maps", error)
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
