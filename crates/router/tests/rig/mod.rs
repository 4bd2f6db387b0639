//! A router with two ports on one thread, frames in, frames out.
#![allow(dead_code, reason = "each test takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(
    clippy::vec_box,
    reason = "a buffer changes hands by its box, and never moves"
)]

pub(crate) mod packets;
pub(crate) mod scenario;
pub(crate) mod verify;

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use fwdlab_packet::MacAddress;
use fwdlab_packet::toeplitz::{HashedPorts, MICROSOFT_KEY, RssHash};
use fwdlab_router::{
    Counters, Event, Knobs, Layout, NeighbourConfig, Network, NetworkConfig, PortConfig,
    PortDevice, RouteConfig, Router, Worker,
};

/// The stations: tester and router on the link of each port.
pub(crate) const TESTER: [MacAddress; 2] = [
    MacAddress([2, 0, 0, 0, 0, 1]),
    MacAddress([2, 0, 0, 0, 1, 1]),
];
pub(crate) const ROUTER: [MacAddress; 2] = [
    MacAddress([2, 0, 0, 0, 0, 2]),
    MacAddress([2, 0, 0, 0, 1, 2]),
];

/// Two links, a network behind each, in both families.
pub(crate) fn network() -> NetworkConfig {
    let address = |text: &str| text.parse().unwrap();
    let port = |number: usize, inet: &str, inet6: &str, link_local: &str| PortConfig {
        mac: ROUTER[number],
        addresses: vec![
            (address(inet), 24),
            (address(inet6), 64),
            (address(link_local), 64),
        ],
        mtu: 1500,
    };
    let route = |prefix: &str, length, gateway: &str| RouteConfig {
        prefix: (address(prefix), length),
        gateway: address(gateway),
    };
    let neighbour = |port: u16, text: &str| NeighbourConfig {
        port,
        address: address(text),
        mac: TESTER[usize::from(port)],
    };
    NetworkConfig {
        ports: vec![
            port(0, "198.18.0.2", "2001:2:0:1::2", "fe80::2"),
            port(1, "198.19.0.2", "2001:2:0:2::2", "fe80::2"),
        ],
        routes: vec![
            route("198.18.10.0", 24, "198.18.0.1"),
            route("198.19.10.0", 24, "198.19.0.1"),
            route("2001:2:0:10::", 64, "2001:2:0:1::1"),
            route("2001:2:0:8010::", 64, "2001:2:0:2::1"),
        ],
        neighbours: vec![
            neighbour(0, "198.18.0.1"),
            neighbour(1, "198.19.0.1"),
            neighbour(0, "2001:2:0:1::1"),
            neighbour(1, "2001:2:0:2::1"),
        ],
    }
}

/// The same where port 1's link takes so many bytes: only IPv4, if it is too narrow for IPv6.
pub(crate) fn with_mtu(network: &NetworkConfig, mtu: u16) -> NetworkConfig {
    let mut network = network.clone();
    network.ports[1].mtu = mtu;
    if mtu < 1280 {
        network.ports[1]
            .addresses
            .retain(|(address, _)| address.is_ipv4());
        let is_left = |route: &RouteConfig| {
            route.gateway.is_ipv4()
                || network.ports[0]
                    .addresses
                    .iter()
                    .any(|(address, _)| is_same_link(*address, route.gateway))
        };
        network.routes.retain(is_left);
    }
    network
}

fn is_same_link(address: IpAddr, other: IpAddr) -> bool {
    match (address, other) {
        (IpAddr::V6(address), IpAddr::V6(other)) => {
            address.segments()[..4] == other.segments()[..4]
        }
        _ => false,
    }
}

/// The hash of both ports.
static RSS: LazyLock<RssHash> =
    LazyLock::new(|| RssHash::new(&MICROSOFT_KEY, HashedPorts::default()));

pub(crate) struct Rig {
    pub(crate) workers: Vec<Worker>,
    pub(crate) ports: Vec<PortDevice>,
    pub(crate) now_ns: u64,
}

impl Rig {
    pub(crate) fn new(network: &NetworkConfig, knobs: &Knobs) -> Self {
        Self::with_layout(network, knobs, &Layout::single())
    }

    pub(crate) fn with_layout(network: &NetworkConfig, knobs: &Knobs, layout: &Layout) -> Self {
        let network = Arc::new(Network::build(network).unwrap());
        let (router, _) = Router::assemble(&network, knobs, layout, Vec::new()).unwrap();
        Self::of(router)
    }

    pub(crate) fn of(router: Router) -> Self {
        Self {
            workers: router.workers,
            ports: router.ports,
            now_ns: 0,
        }
    }

    /// Hands frames to a port; the router is not polled.
    pub(crate) fn receive(&mut self, port: usize, frames: &[Vec<u8>]) {
        for frame in frames {
            let hash = RSS.hash(frame).unwrap_or_default();
            let queue = fwdlab_router::queue_of(hash, self.ports[port].receive.len());
            let ring = &mut self.ports[port].receive[queue];
            assert!(ring.available() > 0, "no descriptor for a frame");
            let slot = &mut ring.run(1)[0];
            let buffer = slot.buffer.as_mut().unwrap();
            buffer.bytes_mut()[..frame.len()].copy_from_slice(frame);
            slot.length = u16::try_from(frame.len()).unwrap();
            slot.flow_hash = hash;
            ring.complete(1);
            ring.write_back();
        }
    }

    /// Polls every worker once; how many packets they took.
    pub(crate) fn poll(&mut self) -> usize {
        self.workers
            .iter_mut()
            .map(|worker| worker.poll(self.now_ns))
            .sum()
    }

    /// What a port has sent.
    pub(crate) fn sent(&mut self, port: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        for ring in &mut self.ports[port].transmit {
            while ring.available() > 0 {
                let run = ring.run(usize::MAX);
                let count = run.len();
                frames.extend(run.iter().map(|slot| {
                    let buffer = slot.buffer.as_ref().unwrap();
                    buffer.bytes()[..usize::from(slot.length)].to_vec()
                }));
                ring.complete(count);
                ring.write_back();
            }
        }
        frames
    }

    /// Takes frames through the router, and returns what each port sent.
    pub(crate) fn exchange(&mut self, port: usize, frames: &[Vec<u8>]) -> [Vec<Vec<u8>>; 2] {
        let mut out = [Vec::new(), Vec::new()];
        for burst in frames.chunks(64) {
            self.receive(port, burst);
            while self.poll() > 0 {}
            for (port, out) in out.iter_mut().enumerate() {
                out.extend(self.sent(port));
            }
        }
        out
    }

    /// Hands a frame in and takes out what comes of it.
    pub(crate) fn pass(&mut self, port: usize, frame: &[u8]) -> [Vec<Vec<u8>>; 2] {
        self.exchange(port, &[frame.to_vec()])
    }

    /// Every packet that was received met one end.
    pub(crate) fn assert_conservation(&self) {
        let counters = self.counters();
        assert_eq!(
            counters.events(Event::Received),
            counters.events(Event::Forwarded)
                + counters.events(Event::Fragmented)
                + counters.all_drops(),
            "{counters:?}"
        );
    }

    pub(crate) fn counters(&self) -> Counters {
        self.workers
            .iter()
            .fold(Counters::default(), |sum, worker| {
                sum.plus(worker.counters())
            })
    }
}
