//! What the router counts: every packet's end, and what its mechanisms did.

use std::sync::atomic::{AtomicU64, Ordering};

/// Names a counter and says it in a sentence, once.
macro_rules! counters {
    ($(#[$about:meta])* $name:ident { $($variant:ident $text:literal $sentence:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $sentence] $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
            const COUNT: usize = Self::ALL.len();

            /// Its name in records.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

counters! {
    /// Why a packet was not forwarded.
    Drop {
        NotOurs "ethernet: not to this port" "The frame's destination is another station.",
        EthernetShort "ethernet: too short" "The frame is shorter than its headers.",
        EtherType "ethernet: other protocol" "The frame carries neither IPv4 nor IPv6.",
        Arp "ethernet: ARP" "The frame is ARP, which a router with permanent neighbours leaves unanswered.",
        InetVersion "inet: version" "The packet in an IPv4 frame is of another version.",
        InetHeaderLength "inet: header length" "The IPv4 header is shorter than 20 bytes or longer than the packet.",
        InetLength "inet: total length" "The IPv4 packet says it is longer than its frame, or shorter than its header.",
        InetChecksum "inet: checksum" "The IPv4 header's checksum is wrong.",
        InetMartianSource "inet: martian source" "The IPv4 source can be nobody's address (RFC 1812, 5.3.7).",
        InetMartianDestination "inet: martian destination" "The IPv4 destination is not to be forwarded to (RFC 1812, 5.3.7).",
        InetOptions "inet: refused options" "The IPv4 options ask for a source route, or are malformed.",
        InetTtl "inet: TTL expired" "The IPv4 time to live is used up.",
        InetNoRoute "inet: no route" "No IPv4 route leads to the destination.",
        InetTooBig "inet: too big" "The IPv4 packet is longer than the next link takes, and must not be fragmented.",
        InetNeighbour "inet: no neighbour" "The next hop's link address is not known.",
        InetLocal "inet: for this router" "The IPv4 packet is for the router itself, which has no services.",
        Inet6Version "inet6: version" "The packet in an IPv6 frame is of another version.",
        Inet6Length "inet6: payload length" "The IPv6 packet says it is longer than its frame.",
        Inet6MartianSource "inet6: martian source" "The IPv6 source can be nobody's address off its link (RFC 4291).",
        Inet6MartianDestination "inet6: martian destination" "The IPv6 destination is not to be forwarded to (RFC 4291).",
        Inet6Options "inet6: refused options" "A hop-by-hop option is not known and asks to be refused, or is malformed.",
        Inet6HopLimit "inet6: hop limit expired" "The IPv6 hop limit is used up.",
        Inet6NoRoute "inet6: no route" "No IPv6 route leads to the destination.",
        Inet6TooBig "inet6: too big" "The IPv6 packet is longer than the next link takes.",
        Inet6Neighbour "inet6: no neighbour" "The next hop's link address is not known.",
        Inet6Local "inet6: for this router" "The IPv6 packet is for the router itself, which has no services.",
        TxFull "tx: ring full" "The transmit ring takes no more.",
        NoBuffer "no buffer" "No free buffer was left for what the router had to say.",
    }
}

counters! {
    /// What the router's mechanisms did.
    Event {
        Received "received" "Packets taken from receive rings.",
        Forwarded "forwarded" "Packets received and put into transmit rings as they are.",
        Originated "originated" "Packets of the router's own: ICMP errors and redirects.",
        OwnLost "own packets lost" "Fragments and packets of the router's own that a full transmit ring refused.",
        Fragments "fragments" "Fragments sent instead of packets that were too long.",
        Fragmented "fragmented" "Packets received and put into transmit rings as fragments.",
        Interrupts "interrupts" "Times that a receive ring was found filled after it had been empty.",
        Prefetches "prefetches" "Headers of packets that were prefetched, first steps of lookups, and IPv6 lookups whose further steps were.",
        NeighbourLookups "neighbour lookups" "Link addresses looked up in the neighbour table.",
        Harvests "harvest events" "Events that entropy was harvested from.",
        Enqueues "enqueues" "Times that packets were put into a transmit ring of many producers.",
        Drains "drains" "Times that a transmit ring of many producers was drained.",
        TaskDrains "task drains" "Drains by the queue's own task.",
        Locks "locks" "Times that a transmit queue's lock was taken.",
        Doorbells "doorbells" "Times that a port was told of new descriptors to send.",
        ReclaimChecks "reclaim checks" "Times that the threshold was asked whether sent buffers should be taken back.",
        Reclaims "reclaims" "Times that sent buffers were taken back.",
        Reclaimed "reclaimed" "Buffers taken back after they were sent.",
        RedirectTests "redirect tests" "Packets tested for leaving where they came in.",
        ErrorsSuppressed "errors suppressed" "ICMP errors that were not sent: over the rate limit, or not to be answered.",
    }
}

/// Counts of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    drops: [u64; Drop::COUNT],
    events: [u64; Event::COUNT],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            drops: [0; Drop::COUNT],
            events: [0; Event::COUNT],
        }
    }
}

impl Counters {
    /// Packets dropped for a reason.
    #[must_use]
    pub fn drops(&self, reason: Drop) -> u64 {
        self.drops[reason as usize]
    }

    /// Packets dropped for any reason.
    #[must_use]
    pub fn all_drops(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// How often something happened.
    #[must_use]
    pub fn events(&self, event: Event) -> u64 {
        self.events[event as usize]
    }

    #[inline]
    pub(crate) fn drop_one(&mut self, reason: Drop) {
        self.drops[reason as usize] += 1;
    }

    #[inline]
    pub(crate) fn add(&mut self, event: Event, count: usize) {
        self.events[event as usize] += count as u64;
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (sum, count) in self.drops.iter_mut().zip(other.drops) {
            *sum += count;
        }
        for (sum, count) in self.events.iter_mut().zip(other.events) {
            *sum += count;
        }
        self
    }
}

/// A worker's counts as other threads see them, as of its last poll.
#[derive(Debug)]
#[repr(align(128))]
pub struct PublishedCounters {
    drops: [AtomicU64; Drop::COUNT],
    events: [AtomicU64; Event::COUNT],
}

impl Default for PublishedCounters {
    fn default() -> Self {
        Self {
            drops: [const { AtomicU64::new(0) }; Drop::COUNT],
            events: [const { AtomicU64::new(0) }; Event::COUNT],
        }
    }
}

impl PublishedCounters {
    /// The counts; each of them right, all of them not of one moment.
    #[must_use]
    pub fn read(&self) -> Counters {
        Counters {
            drops: std::array::from_fn(|index| self.drops[index].load(Ordering::Relaxed)),
            events: std::array::from_fn(|index| self.events[index].load(Ordering::Relaxed)),
        }
    }

    /// Plain stores: there is one writer.
    pub(crate) fn publish(&self, counters: &Counters) {
        for (shared, count) in self.drops.iter().zip(counters.drops) {
            shared.store(count, Ordering::Relaxed);
        }
        for (shared, count) in self.events.iter().zip(counters.events) {
            shared.store(count, Ordering::Relaxed);
        }
    }
}
