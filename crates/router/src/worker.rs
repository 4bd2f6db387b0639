//! One thread's share of the router: the receive queues it polls and the transmit tasks it runs.

use std::sync::Arc;

use fwdlab_model::Knob;

use crate::buffer::{Buffer, BufferPool, Depot, Packet};
use crate::counters::{Counters, Drop, Event, PublishedCounters};
use crate::harvest::{HarvestMask, Harvester, INTERRUPT, NET_ETHER};
use crate::knobs::Knobs;
use crate::network::Network;
use crate::nodes::{
    Fate, VECTOR_MAX, Vector, inet_lookup, inet_rewrite, inet6_lookup, inet6_rewrite, input,
};
use crate::receive::{ReceiveQueue, receive};
use crate::slow_path::{Site, SlowPath};
use crate::stages::{Laps, Stage, StageTicks};
use crate::transmit::{Own, TransmitQueue, queue_of};

/// Free buffers that a worker keeps for itself when others run short: some vectors' worth.
const KEEPS_MIN: usize = 2 * VECTOR_MAX;

/// What all workers of a router share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) network: Arc<Network>,
    pub(crate) harvester: Arc<Harvester>,
    pub(crate) depot: Arc<Depot>,
    /// Those of each port.
    pub(crate) transmit: Vec<Vec<TransmitQueue>>,
}

/// Which of the paths through the nodes is taken, from the knobs.
#[derive(Clone, Copy, Debug)]
struct Paths {
    prefetch: bool,
    harvest_ether: bool,
    harvest_interrupt: bool,
    l2_prepend: bool,
    inet_redirect: bool,
    inet6_redirect: bool,
    abdicate: bool,
}

impl Paths {
    fn of(knobs: &Knobs) -> Self {
        let mask = HarvestMask(knobs.level(Knob::HarvestMask));
        Self {
            prefetch: knobs.is_on(Knob::Prefetch),
            harvest_ether: mask.has(NET_ETHER),
            harvest_interrupt: mask.has(INTERRUPT),
            l2_prepend: knobs.is_on(Knob::L2Prepend),
            inet_redirect: knobs.is_on(Knob::Ipv4Redirect),
            inet6_redirect: knobs.is_on(Knob::Ipv6Redirect),
            abdicate: knobs.is_on(Knob::TxAbdicate),
        }
    }
}

/// One thread's share of a router.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    paths: Paths,
    receive: Vec<ReceiveQueue>,
    /// The transmit queues whose tasks run here: port and queue.
    tasks: Vec<(usize, usize)>,
    /// Of each port and queue, what of the current vector leaves through it.
    leaving: Vec<Vec<Vec<Packet>>>,
    vector: Vector,
    slow_path: SlowPath,
    pool: BufferPool,
    counters: Counters,
    published: Arc<PublishedCounters>,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        knobs: &Knobs,
        receive: Vec<ReceiveQueue>,
        tasks: Vec<(usize, usize)>,
        pool: BufferPool,
    ) -> Self {
        let leaving = shared
            .transmit
            .iter()
            .map(|queues| {
                let list = || Vec::with_capacity(2 * VECTOR_MAX);
                queues.iter().map(|_| list()).collect()
            })
            .collect();
        Self {
            paths: Paths::of(knobs),
            receive,
            tasks,
            leaving,
            vector: Vector::new(),
            slow_path: SlowPath::default(),
            pool,
            counters: Counters::default(),
            published: Arc::default(),
            shared,
        }
    }

    /// Takes at most a vector of packets from each of its receive queues through the router, runs its
    /// transmit tasks, and returns how many packets it took.
    ///
    /// Units: the time is in nanoseconds from any moment; only the rate limit of ICMP errors reads it.
    pub fn poll(&mut self, now_ns: u64) -> usize {
        self.poll_noting(now_ns, &mut ())
    }

    /// The same, noting how long each stage takes.
    pub fn poll_timed(&mut self, now_ns: u64, ticks: &mut StageTicks) -> usize {
        self.poll_noting(now_ns, ticks)
    }

    #[inline(always)]
    fn poll_noting<L: Laps>(&mut self, now_ns: u64, laps: &mut L) -> usize {
        let mut received = 0;
        for queue in 0..self.receive.len() {
            received += self.receive_vector(queue, now_ns, laps);
        }
        let mut own = Own {
            pool: &mut self.pool,
            counters: &mut self.counters,
            laps,
        };
        for &(port, queue) in &self.tasks {
            self.shared.transmit[port][queue].run_task(&mut own);
        }
        self.pool.share(KEEPS_MIN);
        self.published.publish(&self.counters);
        laps.lap(Stage::Rest);
        received
    }

    /// Whether packets wait in a transmit queue whose task it runs.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        let mut tasks = self.tasks.iter();
        tasks.any(|&(port, queue)| self.shared.transmit[port][queue].has_waiting())
    }

    /// What it counted, for other threads to read.
    #[must_use]
    pub fn published(&self) -> Arc<PublishedCounters> {
        Arc::clone(&self.published)
    }

    /// What it counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn receive_vector<L: Laps>(&mut self, queue: usize, now_ns: u64, laps: &mut L) -> usize {
        let queue = &mut self.receive[queue];
        let packets = &mut self.vector.packets;
        let receive = receive(self.paths.prefetch);
        let arrival = receive(queue, VECTOR_MAX, &mut self.pool, packets);
        if arrival.packets == 0 {
            return 0;
        }
        self.vector.ingress = queue.port;
        self.counters.add(Event::Received, arrival.packets);
        self.counters.add(Event::Prefetches, arrival.prefetches);
        if arrival.was_interrupt {
            self.interrupt();
        }
        laps.lap(Stage::Receive);
        self.run_nodes(laps);
        self.finish_vector(now_ns, laps);
        laps.lap(Stage::Transmit);
        arrival.packets
    }

    fn interrupt(&mut self) {
        self.counters.add(Event::Interrupts, 1);
        if self.paths.harvest_interrupt {
            self.counters.add(Event::Harvests, 1);
            let what = [
                u64::from(self.vector.ingress),
                self.counters.events(Event::Interrupts),
            ];
            let [port, number] = what.map(u64::to_ne_bytes);
            let mut entropy = [0; 16];
            entropy[..8].copy_from_slice(&port);
            entropy[8..].copy_from_slice(&number);
            self.shared.harvester.harvest(INTERRUPT, &entropy);
        }
    }

    fn run_nodes<L: Laps>(&mut self, laps: &mut L) {
        let Self {
            shared,
            paths,
            vector,
            counters,
            ..
        } = self;
        let network = &*shared.network;
        let input = input((paths.prefetch, paths.harvest_ether));
        input(vector, network, &shared.harvester, counters);
        laps.lap(Stage::Input);
        if !vector.inet.is_empty() {
            inet_lookup(&mut vector.inet, &network.inet);
            laps.lap(Stage::Lookup);
            let rewrite = match (paths.l2_prepend, paths.inet_redirect) {
                (true, true) => inet_rewrite::<true, true>,
                (true, false) => inet_rewrite::<true, false>,
                (false, true) => inet_rewrite::<false, true>,
                (false, false) => inet_rewrite::<false, false>,
            };
            rewrite(vector, network, counters);
            laps.lap(Stage::Rewrite);
        }
        if !vector.inet6.is_empty() {
            let lookup = inet6_lookup(paths.prefetch);
            lookup(&mut vector.inet6, &network.inet6, counters);
            laps.lap(Stage::Lookup);
            let rewrite = match (paths.l2_prepend, paths.inet6_redirect) {
                (true, true) => inet6_rewrite::<true, true>,
                (true, false) => inet6_rewrite::<true, false>,
                (false, true) => inet6_rewrite::<false, true>,
                (false, false) => inet6_rewrite::<false, false>,
            };
            rewrite(vector, network, counters);
            laps.lap(Stage::Rewrite);
        }
    }

    /// Every packet meets its fate.
    fn finish_vector<L: Laps>(&mut self, now_ns: u64, laps: &mut L) {
        // As good as always all of them leave alike, and need not be sorted.
        if let Some(port) = self.vector.leaving.port()
            && let [queue] = &self.shared.transmit[usize::from(port)][..]
        {
            let mut own = Own {
                pool: &mut self.pool,
                counters: &mut self.counters,
                laps,
            };
            let packets = &mut self.vector.packets;
            let accepted = transmit(queue, packets, self.paths.abdicate, &mut own);
            own.counters.add(Event::Forwarded, accepted.forwarded);
            return;
        }
        self.sort_by_fate(now_ns, laps);
    }

    fn sort_by_fate<L: Laps>(&mut self, now_ns: u64, laps: &mut L) {
        for (packet, fate) in self.vector.packets.drain(..).zip(&self.vector.fates) {
            match *fate {
                Fate::Transmit(port) => {
                    let queues = &mut self.leaving[usize::from(port)];
                    let queue = queue_of(packet.flow_hash, queues.len());
                    queues[queue].push(packet);
                }
                Fate::Drop(reason) => {
                    self.counters.drop_one(reason);
                    self.pool.put(packet.buffer);
                }
                Fate::Slow(why) => self.slow_path.take(packet, why),
            }
        }
        if self.slow_path.has_work() {
            self.slow_path.run(&mut Site {
                network: &self.shared.network,
                ingress: self.vector.ingress,
                now_ns,
                l2_prepend: self.paths.l2_prepend,
                pool: &mut self.pool,
                counters: &mut self.counters,
                leaving: &mut self.leaving,
            });
        }
        laps.lap(Stage::Rest);
        let mut own = Own {
            pool: &mut self.pool,
            counters: &mut self.counters,
            laps,
        };
        for (port, queues) in self.leaving.iter_mut().enumerate() {
            for (queue, packets) in queues.iter_mut().enumerate() {
                if !packets.is_empty() {
                    let queue = &self.shared.transmit[port][queue];
                    let own_packets = packets.iter().filter(|packet| packet.is_own).count();
                    let accepted = transmit(queue, packets, self.paths.abdicate, &mut own);
                    let forwarded = accepted.forwarded + accepted.own_lost - own_packets;
                    own.counters.add(Event::Forwarded, forwarded);
                }
            }
        }
    }

    /// Takes the worker apart.
    pub(crate) fn into_parts(self) -> (Arc<Shared>, Vec<ReceiveQueue>, Vec<Box<Buffer>>) {
        (
            self.shared,
            self.receive,
            self.pool.into_buffers().collect(),
        )
    }
}

/// What a transmit queue made of packets.
struct Accepted {
    /// Packets that it took; the router's own count here too.
    forwarded: usize,
    /// The router's own among those that it refused.
    own_lost: usize,
}

/// Puts packets into a transmit queue; what it refuses is dropped.
#[inline]
fn transmit<L: Laps>(
    queue: &TransmitQueue,
    packets: &mut Vec<Packet>,
    abdicate: bool,
    own: &mut Own<'_, L>,
) -> Accepted {
    let offered = packets.len();
    queue.transmit(packets, abdicate, own);
    let mut accepted = Accepted {
        forwarded: offered - packets.len(),
        own_lost: 0,
    };
    for packet in packets.drain(..) {
        if packet.is_own {
            accepted.own_lost += 1;
            own.counters.add(Event::OwnLost, 1);
        } else {
            own.counters.drop_one(Drop::TxFull);
        }
        own.pool.put(packet.buffer);
    }
    accepted
}
