//! Generator, router and sink taking turns on one thread, as in `fwdlab run` with the inline tester.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fwdlab_model::{AddressFamily, Traffic};
use fwdlab_packet::{AddressPair, Flow, MacAddress, UdpFrame};
use fwdlab_router::{
    BUFFER_BYTES, Descriptor, Knobs, Layout, NeighbourConfig, Network, NetworkConfig, PortConfig,
    PortDevice, RouteConfig, Router, Stage, StageTicks, Worker,
};
use fwdlab_stats::Generator;
use fwdlab_sys::{DeviceRing, cycle_counter};
use fwdlab_traffic::{Frames, Link, MemoryGenerator, MemorySink, WRITE_BACK};
use nix::time::ClockId;

use crate::bench::Bench;
use crate::counter::{Window, as_f64};

/// Turns between two looks at the clock.
const TURNS: u32 = 64;

/// A turn that took longer was interrupted, and does not count for the stages.
const TURN_NS_MAX: f64 = 20_000.0;

/// Gateways on the link that all packets leave through.
const GATEWAYS: u8 = 16;

/// One frame of so many is verified.
const CHECK_EVERY: u32 = 64;

const TESTER: Link = Link {
    source: MacAddress([2, 0, 0, 0, 0, 1]),
    destination: MacAddress([2, 0, 0, 0, 0, 2]),
};
const SINK: Link = Link {
    source: MacAddress([2, 0, 0, 0, 1, 1]),
    destination: MacAddress([2, 0, 0, 0, 1, 2]),
};

/// A router's network, and what is sent through it.
pub(crate) struct Scene {
    family: AddressFamily,
    network: Arc<Network>,
    frames: Frames,
    /// What differs from frame to frame, for each of them in turn; none where the tester's flows are sent.
    scattered: Option<Arc<Vec<Varying>>>,
}

/// The part of a frame from [`varying_at`] on: what follows from its destination.
type Varying = [u8; 24];

/// Where the part of a frame begins that differs: IPv4 from the header's checksum on, IPv6 from the
/// destination on, both up to the UDP checksum or beyond.
fn varying_at(family: AddressFamily) -> usize {
    match family {
        AddressFamily::Inet => 24,
        AddressFamily::Inet6 => 38,
    }
}

/// Prefixes that share no address, and a destination in each.
pub(crate) struct Prefixes {
    routes: Vec<(IpAddr, u8)>,
    destinations: Vec<IpAddr>,
}

impl Prefixes {
    /// That many at random: /24 over all of IPv4 but what is not forwarded or set aside, or /48 over
    /// 2000::/3.
    pub(crate) fn new(family: AddressFamily, count: usize) -> Self {
        let mut random = Generator::new(1);
        let mut seen = std::collections::HashSet::new();
        let mut prefixes = Self {
            routes: Vec::with_capacity(count),
            destinations: Vec::with_capacity(count),
        };
        while prefixes.routes.len() < count {
            let (first, second) = (random.below(1 << 24), random.below(1 << 24));
            let host = random.below(1 << 8);
            let (route, destination): ((IpAddr, u8), IpAddr) = match family {
                AddressFamily::Inet => {
                    let bits = first << 8;
                    if !matches!(bits >> 24, 1..=126 | 128..=168 | 170..=197 | 199..=223) {
                        continue;
                    }
                    let address = |bits| IpAddr::V4(std::net::Ipv4Addr::from_bits(bits));
                    ((address(bits), 24), address(bits | host))
                }
                AddressFamily::Inet6 => {
                    let network = u128::from(first) << 24 | u128::from(second);
                    let bits = (0b001 << 45 | network & ((1 << 45) - 1)) << 80;
                    let address = |bits| IpAddr::V6(std::net::Ipv6Addr::from_bits(bits));
                    ((address(bits), 48), address(bits | u128::from(host)))
                }
            };
            if seen.insert(route.0) {
                prefixes.routes.push(route);
                prefixes.destinations.push(destination);
            }
        }
        prefixes
    }

    /// Two prefixes that hold all destinations.
    pub(crate) fn two(family: AddressFamily) -> Vec<(IpAddr, u8)> {
        let routes = match family {
            AddressFamily::Inet => ["0.0.0.0/1", "128.0.0.0/1"],
            AddressFamily::Inet6 => ["2000::/4", "3000::/4"],
        };
        let prefix = |text: &str| {
            let (address, length) = text.split_once('/')?;
            Some((address.parse().ok()?, length.parse().ok()?))
        };
        routes.into_iter().filter_map(prefix).collect()
    }

    pub(crate) fn routes(&self) -> &[(IpAddr, u8)] {
        &self.routes
    }
}

impl Scene {
    /// 2000 flows of the smallest frames, and two routes: to their sources and to their destinations.
    pub(crate) fn usual(family: AddressFamily) -> Result<Self> {
        let frames = Frames::new(family, &Traffic::default(), TESTER, SINK)?;
        let flows = frames.flows();
        let (sources, destinations, length) = match family {
            AddressFamily::Inet => ("198.18.10.0", "198.19.10.0", 24),
            AddressFamily::Inet6 => ("2001:2:0:10::", "2001:2:0:8010::", 64),
        };
        ensure!(flows.count() == 2000, "the usual traffic has 2000 flows");
        let gateways = gateways(family);
        let routes = [sources, destinations]
            .into_iter()
            .zip(gateways)
            .map(|(prefix, gateway)| {
                Ok(RouteConfig {
                    prefix: (prefix.parse()?, length),
                    gateway,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            family,
            network: network(family, routes)?,
            frames,
            scattered: None,
        })
    }

    /// Frames to each of these destinations in turn, through these routes.
    pub(crate) fn scattered(
        family: AddressFamily,
        routes: &[(IpAddr, u8)],
        prefixes: &Prefixes,
    ) -> Result<Self> {
        let frames = Frames::new(family, &Traffic::default(), TESTER, SINK)?;
        let gateways = gateways(family);
        let routes = routes
            .iter()
            .zip(gateways[1..].iter().cycle())
            .map(|(&prefix, &gateway)| RouteConfig { prefix, gateway })
            .collect();
        let sent = frames.sent(0);
        let at = varying_at(family);
        let varying = prefixes.destinations.iter().map(|&destination| {
            let mut frame = fwdlab_packet::parse(&sent)?;
            let addresses = AddressPair::new(frame.flow.addresses.source(), destination)?;
            frame.flow = Flow {
                addresses,
                ..frame.flow
            };
            let bytes = UdpFrame { ..frame }.emit();
            let varying = bytes[at..].first_chunk().context("a frame is longer")?;
            Ok(*varying)
        });
        Ok(Self {
            family,
            network: network(family, routes)?,
            scattered: Some(Arc::new(varying.collect::<Result<_>>()?)),
            frames,
        })
    }

    /// Frames that go through the router in a second of the load CPU's time.
    pub(crate) fn rate_pps(&self, bench: &Bench, window: Window) -> Result<f64> {
        self.on_load_cpu(bench, |tester, worker| rate_pps(tester, worker, window))
    }

    /// How long a packet takes in every stage: the tester's two, then those of the worker.
    ///
    /// Units: nanoseconds.
    pub(crate) fn stages_ns(&self, bench: &Bench, window: Window) -> Result<Vec<f64>> {
        self.on_load_cpu(bench, |tester, worker| stages_ns(tester, worker, window))
    }

    /// Puts a router together, and lets a thread of the load CPU work with it.
    fn on_load_cpu<T: Send>(
        &self,
        bench: &Bench,
        work: impl FnOnce(&mut dyn Tester, &mut Worker) -> Result<T> + Send,
    ) -> Result<T> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                fwdlab_sys::pin_this_thread(bench.load_cpu)?;
                let knobs = Knobs::default();
                let (router, _) =
                    Router::assemble(&self.network, &knobs, &Layout::single(), Vec::new())?;
                let Router { workers, ports, .. } = router;
                let ([mut worker], [tester, sink]) = (
                    <[Worker; 1]>::try_from(workers)
                        .ok()
                        .context("one worker")?,
                    <[PortDevice; 2]>::try_from(ports)
                        .ok()
                        .context("two ports")?,
                );
                let mut tester: Box<dyn Tester> = match &self.scattered {
                    None => Box::new(Usual {
                        generator: MemoryGenerator::new(&self.frames, tester.receive)?,
                        sink: MemorySink::new(&self.frames, sink.transmit, CHECK_EVERY),
                    }),
                    Some(varying) => Box::new(Scattered::new(self, varying, tester, sink)?),
                };
                let measured = work(&mut *tester, &mut worker)?;
                let counters = worker.counters();
                ensure!(
                    counters.all_drops() == 0,
                    "the router dropped packets: {counters:?}"
                );
                tester.check()?;
                Ok(measured)
            });
            let panicked = |_| anyhow::anyhow!("the load's thread panicked");
            thread.join().map_err(panicked)?
        })
    }
}

/// The routers beyond both links, the one beyond the tester's link first.
fn gateways(family: AddressFamily) -> Vec<IpAddr> {
    let of_sink = (0..GATEWAYS).map(|number| 2 + u16::from(number));
    match family {
        AddressFamily::Inet => {
            let address = |link, host: u16| {
                IpAddr::from([198, link, 0, u8::try_from(host).unwrap_or_default()])
            };
            std::iter::once(address(18, 1))
                .chain(of_sink.map(|host| address(19, host)))
                .collect()
        }
        AddressFamily::Inet6 => {
            let address = |link, host| IpAddr::from([0x2001, 2, 0, link, 0, 0, 0, host]);
            std::iter::once(address(1, 1))
                .chain(of_sink.map(|host| address(2, host)))
                .collect()
        }
    }
}

/// A router between two links, both routers' neighbours permanent.
fn network(family: AddressFamily, routes: Vec<RouteConfig>) -> Result<Arc<Network>> {
    let port = |mac, inet: &str, inet6: &str| -> Result<PortConfig> {
        Ok(PortConfig {
            mac,
            addresses: vec![(inet.parse()?, 24), (inet6.parse()?, 64)],
            mtu: 1500,
        })
    };
    let neighbours = gateways(family)
        .into_iter()
        .enumerate()
        .map(|(number, address)| {
            let (port, mac) = match number {
                0 => (0, TESTER.source),
                _ => (1, SINK.destination),
            };
            NeighbourConfig { port, address, mac }
        });
    let config = NetworkConfig {
        ports: vec![
            port(TESTER.destination, "198.18.0.2", "2001:2:0:1::2")?,
            port(SINK.source, "198.19.0.1", "2001:2:0:2::1")?,
        ],
        routes,
        neighbours: neighbours.collect(),
    };
    Ok(Arc::new(Network::build(&config)?))
}

/// Both ends of a load.
trait Tester {
    /// Fills the receive ring.
    fn fill(&mut self);
    /// Empties the transmit ring, and says how many frames were in it.
    fn drain(&mut self) -> usize;
    /// Whether the frames that were verified are right.
    fn check(&self) -> Result<()>;
}

/// fwdlab's own.
struct Usual {
    generator: MemoryGenerator,
    sink: MemorySink,
}

impl Tester for Usual {
    fn fill(&mut self) {
        self.generator.fill();
    }

    fn drain(&mut self) -> usize {
        self.sink.drain()
    }

    fn check(&self) -> Result<()> {
        let verification = self.sink.counts().verification();
        ensure!(
            verification.checked_frames > 0 && verification.wrong_frames.is_empty(),
            "frames came out wrong: {verification:?}"
        );
        Ok(())
    }
}

/// Frames to far more destinations than flows can have.
struct Scattered {
    receive: DeviceRing<Descriptor>,
    transmit: DeviceRing<Descriptor>,
    template: [u8; 64],
    length: usize,
    varying_at: usize,
    varying: Arc<Vec<Varying>>,
    next: usize,
    wire: Box<[u8; BUFFER_BYTES]>,
    until_check: u32,
    wrong: Option<String>,
    checked: u64,
}

impl Scattered {
    fn new(
        scene: &Scene,
        varying: &Arc<Vec<Varying>>,
        tester: PortDevice,
        sink: PortDevice,
    ) -> Result<Self> {
        let sent = scene.frames.sent(0);
        let mut template = [0; 64];
        template
            .get_mut(..sent.len())
            .context("the smallest frame fits a cache line")?
            .copy_from_slice(&sent);
        let first = |rings: Vec<_>| rings.into_iter().next().context("a port has a ring");
        Ok(Self {
            receive: first(tester.receive)?,
            transmit: first(sink.transmit)?,
            template,
            length: sent.len(),
            varying_at: varying_at(scene.family),
            varying: Arc::clone(varying),
            next: 0,
            wire: Box::new([0; BUFFER_BYTES]),
            until_check: CHECK_EVERY,
            wrong: None,
            checked: 0,
        })
    }

    /// Verifies a frame that came out, checksums and all.
    fn verify(&mut self) {
        self.checked += 1;
        let wrong = match fwdlab_packet::parse(&self.wire[..self.length]) {
            Err(error) => error.to_string(),
            Ok(frame)
                if (frame.source_mac, frame.destination_mac, frame.hop_limit)
                    == (SINK.source, SINK.destination, 63) =>
            {
                return;
            }
            Ok(frame) => format!("{frame:?}"),
        };
        self.wrong.get_or_insert(wrong);
    }
}

impl Tester for Scattered {
    fn fill(&mut self) {
        let mut left = self.receive.available_for(WRITE_BACK).min(WRITE_BACK);
        while left > 0 {
            let varying = &self.varying[self.next..];
            let run = self.receive.run(left.min(varying.len()));
            let count = run.len();
            for (descriptor, varying) in run.iter_mut().zip(varying) {
                let Some(buffer) = &mut descriptor.buffer else {
                    continue;
                };
                let head = buffer.head_mut();
                *head = self.template;
                head[self.varying_at..][..varying.len()].copy_from_slice(varying);
                descriptor.length = u16::try_from(self.length).unwrap_or_default();
            }
            self.receive.complete(count);
            left -= count;
            self.next = (self.next + count) % self.varying.len();
        }
        self.receive.write_back();
    }

    fn drain(&mut self) -> usize {
        let available = self.transmit.available();
        for _ in 0..available {
            if let [
                Descriptor {
                    buffer: Some(buffer),
                    ..
                },
            ] = self.transmit.run(1)
            {
                self.wire[..64].copy_from_slice(buffer.head());
            }
            self.transmit.complete(1);
            self.until_check -= 1;
            if self.until_check == 0 {
                self.until_check = CHECK_EVERY;
                self.verify();
            }
        }
        self.transmit.write_back();
        std::hint::black_box(&self.wire);
        available
    }

    fn check(&self) -> Result<()> {
        match &self.wrong {
            Some(wrong) => bail!("a frame came out wrong: {wrong}"),
            None if self.checked == 0 => bail!("no frame was verified"),
            None => Ok(()),
        }
    }
}

/// Takes turns for a while; `turn` says how many frames came out.
fn run_for(length: Duration, mut turn: impl FnMut() -> usize) -> usize {
    let deadline = Instant::now() + length;
    let mut frames = 0;
    while Instant::now() < deadline {
        for _ in 0..TURNS {
            frames += turn();
        }
    }
    frames
}

fn cpu_time() -> Result<Duration> {
    Ok(ClockId::CLOCK_THREAD_CPUTIME_ID.now()?.into())
}

fn rate_pps(tester: &mut dyn Tester, worker: &mut Worker, window: Window) -> Result<f64> {
    let mut turn = || {
        tester.fill();
        worker.poll(0);
        tester.drain()
    };
    run_for(window.settle, &mut turn);
    let start = cpu_time()?;
    let frames = run_for(window.length, &mut turn);
    Ok(as_f64(frames as u64) / (cpu_time()? - start).as_secs_f64())
}

fn stages_ns(tester: &mut dyn Tester, worker: &mut Worker, window: Window) -> Result<Vec<f64>> {
    let mut sums = vec![0; 2 + Stage::ALL.len()];
    let mut frames = 0;
    let ticks_per_ns = ticks_per_ns();
    let mut turn = || {
        let before = cycle_counter();
        tester.fill();
        let filled = cycle_counter();
        let mut ticks = StageTicks::start();
        worker.poll_timed(0, &mut ticks);
        let polled = cycle_counter();
        let drained = tester.drain();
        let after = cycle_counter();
        if as_f64(after - before) < TURN_NS_MAX * ticks_per_ns {
            sums[0] += filled - before;
            sums[1] += after - polled;
            for (sum, &stage) in sums[2..].iter_mut().zip(Stage::ALL) {
                *sum += ticks.of(stage);
            }
            frames += drained;
        }
        drained
    };
    run_for(window.settle + window.length, &mut turn);
    let of_packet = |&ticks: &u64| as_f64(ticks) / ticks_per_ns / as_f64(frames as u64);
    Ok(sums.iter().map(of_packet).collect())
}

/// How fast the cycle counter goes.
fn ticks_per_ns() -> f64 {
    let (start, ticks) = (Instant::now(), cycle_counter());
    std::thread::sleep(Duration::from_millis(20));
    as_f64(cycle_counter() - ticks) / (start.elapsed().as_secs_f64() * 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in((network, length): (IpAddr, u8), address: IpAddr) -> bool {
        let bits = |address| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        (bits(network) ^ bits(address)) >> (128 - length) == 0
    }

    #[test]
    fn every_destination_is_in_its_own_prefix_and_in_one_of_two() {
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let prefixes = Prefixes::new(family, 1000);
            let two = Prefixes::two(family);
            assert_eq!(two.len(), 2);
            for (&route, &destination) in prefixes.routes.iter().zip(&prefixes.destinations) {
                assert!(is_in(route, destination), "{route:?} {destination}");
                let of_two = two.iter().filter(|&&route| is_in(route, destination));
                assert_eq!(of_two.count(), 1, "{destination}");
                let of_all = prefixes
                    .routes
                    .iter()
                    .filter(|&&route| is_in(route, destination));
                assert_eq!(of_all.count(), 1, "{destination}");
            }
        }
    }

    #[test]
    fn every_scattered_frame_is_whole_and_comes_out_as_a_router_makes_it() {
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let prefixes = Prefixes::new(family, 500);
            let scene = Scene::scattered(family, prefixes.routes(), &prefixes).unwrap();
            let (router, _) = Router::assemble(
                &scene.network,
                &Knobs::default(),
                &Layout::single(),
                Vec::new(),
            )
            .unwrap();
            let Router {
                mut workers,
                mut ports,
                ..
            } = router;
            let (sink, tester) = (ports.remove(1), ports.remove(0));
            let varying = scene.scattered.as_ref().unwrap();
            let mut tester = Scattered::new(&scene, varying, tester, sink).unwrap();
            let mut frames = 0;
            for _ in 0..100 {
                tester.fill();
                workers[0].poll(0);
                frames += tester.drain();
            }
            assert_eq!(frames, 6400, "{:?}", workers[0].counters());
            assert_eq!(tester.checked, 100);
            tester.check().unwrap();
        }
    }
}
