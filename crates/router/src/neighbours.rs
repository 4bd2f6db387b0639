//! Who is on the other end of a link: the Ethernet addresses of neighbours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError, RwLock};

use fwdlab_packet::MacAddress;

/// Buckets of a table at least, as many as FreeBSD's have.
const BUCKETS_MIN: usize = 32;

/// The most neighbours of an address family that a table can be made for.
const CAPACITY_MAX: usize = 1 << 20;

/// What is known of a neighbour's Ethernet address.
///
/// # Source
/// RFC 4861, section 7.3.2, and what is configured by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourState {
    /// It is being asked for and not known yet.
    Incomplete,
    /// It was confirmed lately.
    Reachable,
    /// It has not been confirmed for a while, and holds until it is asked for again.
    Stale,
    /// It was configured and holds for ever.
    Permanent,
}

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its Ethernet address; without a meaning as long as the state is `Incomplete`.
    pub mac: MacAddress,
    /// What is known of the address.
    pub state: NeighbourState,
}

/// What can be wrong with a neighbour.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeighbourError {
    /// The table is full.
    #[error(
        "neighbour {address} on interface {interface}: the table is full ({capacity} neighbours); make it larger"
    )]
    Full {
        /// The interface.
        interface: u32,
        /// The neighbour's protocol address.
        address: IpAddr,
        /// How many neighbours of its address family there may be.
        capacity: usize,
    },
    /// A table of that size cannot be made.
    #[error(
        "neighbours: too many for a table ({capacity} asked, {CAPACITY_MAX} at most); ask for fewer"
    )]
    Capacity {
        /// How many were asked for.
        capacity: usize,
    },
}

/// The neighbours of a router, by interface and protocol address: one table for ARP, one for ND.
///
/// A table has hash buckets, each under a lock of its own, which every lookup takes for reading and an
/// insertion for writing, as in FreeBSD's `lltable`. Workers share it.
#[derive(Debug)]
pub struct Neighbours {
    inet: Table<Ipv4Addr>,
    inet6: Table<Ipv6Addr>,
}

impl Neighbours {
    /// Nobody yet, and room for so many neighbours of each address family.
    ///
    /// # Errors
    /// `Capacity`.
    pub fn new(capacity: usize) -> Result<Self, NeighbourError> {
        if capacity > CAPACITY_MAX {
            return Err(NeighbourError::Capacity { capacity });
        }
        Ok(Self {
            inet: Table::new(capacity),
            inet6: Table::new(capacity),
        })
    }

    /// Adds a neighbour, or changes what is known of it.
    ///
    /// # Errors
    /// `Full`; what is there already can be changed nevertheless.
    pub fn insert(
        &self,
        interface: u32,
        address: IpAddr,
        neighbour: Neighbour,
    ) -> Result<(), NeighbourError> {
        let (is_in, capacity) = match address {
            IpAddr::V4(address) => (
                self.inet.insert(interface, address, neighbour),
                self.inet.capacity,
            ),
            IpAddr::V6(address) => (
                self.inet6.insert(interface, address, neighbour),
                self.inet6.capacity,
            ),
        };
        if is_in {
            return Ok(());
        }
        Err(NeighbourError::Full {
            interface,
            address,
            capacity,
        })
    }

    /// The neighbour with an IPv4 address.
    #[inline]
    #[must_use]
    pub fn lookup_inet(&self, interface: u32, address: Ipv4Addr) -> Option<Neighbour> {
        self.inet.lookup(interface, address)
    }

    /// The neighbour with an IPv6 address.
    #[inline]
    #[must_use]
    pub fn lookup_inet6(&self, interface: u32, address: Ipv6Addr) -> Option<Neighbour> {
        self.inet6.lookup(interface, address)
    }
}

/// A protocol address that a table can be keyed by.
trait Key: Copy + Eq {
    /// All its bits, folded into 64.
    fn folded(self) -> u64;
}

impl Key for Ipv4Addr {
    fn folded(self) -> u64 {
        self.to_bits().into()
    }
}

impl Key for Ipv6Addr {
    fn folded(self) -> u64 {
        let [high, low] = [0, 8].map(|at| {
            let octets = self.octets();
            u64::from_ne_bytes(std::array::from_fn(|place| octets[at + place]))
        });
        high ^ low.rotate_left(1)
    }
}

#[derive(Debug)]
struct Table<A> {
    buckets: Box<[Bucket<A>]>,
    /// How many bits of a hash do not number a bucket.
    shift: u32,
    capacity: usize,
    /// How many neighbours there are. Whoever inserts holds it before the lock of a bucket.
    neighbours: Mutex<usize>,
}

// A cache line at least, so that the locks of two buckets never share one.
#[derive(Debug)]
#[repr(align(64))]
struct Bucket<A>(RwLock<Vec<Entry<A>>>);

#[derive(Clone, Copy, Debug)]
struct Entry<A> {
    interface: u32,
    address: A,
    neighbour: Neighbour,
}

impl<A: Key> Table<A> {
    fn new(capacity: usize) -> Self {
        let buckets = capacity.next_power_of_two().max(BUCKETS_MIN);
        Self {
            buckets: (0..buckets).map(|_| Bucket(RwLock::default())).collect(),
            shift: u64::BITS - buckets.ilog2(),
            capacity,
            neighbours: Mutex::default(),
        }
    }

    /// Where a neighbour belongs.
    // The golden ratio spreads what differs in few bits over the upper ones.
    #[inline]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "what is left are the bits that number a bucket"
    )]
    fn bucket(&self, interface: u32, address: A) -> &RwLock<Vec<Entry<A>>> {
        let key = address.folded() ^ u64::from(interface).rotate_right(32);
        let hash = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.buckets[(hash >> self.shift) as usize].0
    }

    // A lock is poisoned only if a thread panicked in here, where every line leaves the table whole.
    #[inline]
    fn lookup(&self, interface: u32, address: A) -> Option<Neighbour> {
        let bucket = self.bucket(interface, address);
        let entries = bucket.read().unwrap_or_else(PoisonError::into_inner);
        let is_it = |entry: &&Entry<A>| entry.address == address && entry.interface == interface;
        entries.iter().find(is_it).map(|entry| entry.neighbour)
    }

    /// Whether there was room.
    fn insert(&self, interface: u32, address: A, neighbour: Neighbour) -> bool {
        let mut neighbours = self
            .neighbours
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let bucket = self.bucket(interface, address);
        let mut entries = bucket.write().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            |entry: &&mut Entry<A>| entry.address == address && entry.interface == interface;
        if let Some(entry) = entries.iter_mut().find(is_it) {
            entry.neighbour = neighbour;
            return true;
        }
        if *neighbours == self.capacity {
            return false;
        }
        *neighbours += 1;
        entries.push(Entry {
            interface,
            address,
            neighbour,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn neighbour(last: u8) -> Neighbour {
        Neighbour {
            mac: MacAddress([2, 0, 0, 0, 0, last]),
            state: NeighbourState::Reachable,
        }
    }

    fn lookup(neighbours: &Neighbours, interface: u32, address: IpAddr) -> Option<Neighbour> {
        match address {
            IpAddr::V4(address) => neighbours.lookup_inet(interface, address),
            IpAddr::V6(address) => neighbours.lookup_inet6(interface, address),
        }
    }

    #[test]
    fn a_neighbour_is_known_on_its_interface_only() {
        let neighbours = Neighbours::new(8).unwrap();
        for address in ["198.18.0.1", "fe80::1"] {
            let address: IpAddr = address.parse().unwrap();
            neighbours.insert(1, address, neighbour(1)).unwrap();
            neighbours.insert(2, address, neighbour(2)).unwrap();
            assert_eq!(lookup(&neighbours, 1, address), Some(neighbour(1)));
            assert_eq!(lookup(&neighbours, 2, address), Some(neighbour(2)));
            assert_eq!(lookup(&neighbours, 3, address), None);
        }
        assert_eq!(
            neighbours.lookup_inet(1, Ipv4Addr::new(198, 18, 0, 2)),
            None
        );
    }

    #[test]
    fn what_is_known_of_a_neighbour_changes() {
        let neighbours = Neighbours::new(1).unwrap();
        let address = IpAddr::from([198, 18, 0, 1]);
        let incomplete = Neighbour {
            state: NeighbourState::Incomplete,
            ..neighbour(0)
        };
        neighbours.insert(1, address, incomplete).unwrap();
        neighbours.insert(1, address, neighbour(7)).unwrap();
        assert_eq!(lookup(&neighbours, 1, address), Some(neighbour(7)));
    }

    #[test]
    fn a_full_table_says_so_and_keeps_what_it_has() {
        let neighbours = Neighbours::new(2).unwrap();
        let address = |last| IpAddr::from([198, 18, 0, last]);
        for last in [1, 2] {
            neighbours
                .insert(1, address(last), neighbour(last))
                .unwrap();
        }
        assert_eq!(
            neighbours
                .insert(1, address(3), neighbour(3))
                .unwrap_err()
                .to_string(),
            "neighbour 198.18.0.3 on interface 1: the table is full (2 neighbours); make it larger"
        );
        neighbours.insert(1, address(2), neighbour(9)).unwrap();
        assert_eq!(lookup(&neighbours, 1, address(2)), Some(neighbour(9)));
        assert_eq!(lookup(&neighbours, 1, address(3)), None);
        // Every address family has room of its own.
        neighbours
            .insert(1, "::1".parse().unwrap(), neighbour(1))
            .unwrap();
        assert!(Neighbours::new(CAPACITY_MAX + 1).is_err());
    }

    #[test]
    fn workers_look_up_while_neighbours_are_added() {
        let neighbours = Neighbours::new(512).unwrap();
        let address = |last: u32| Ipv4Addr::from_bits(0xc612_0000 + last);
        std::thread::scope(|scope| {
            for interface in 0..2 {
                let neighbours = &neighbours;
                scope.spawn(move || {
                    for last in 0..=255 {
                        let found = || neighbours.lookup_inet(interface, address(last.into()));
                        assert_eq!(found(), None);
                        let at = IpAddr::V4(address(last.into()));
                        neighbours.insert(interface, at, neighbour(last)).unwrap();
                        assert_eq!(found(), Some(neighbour(last)));
                    }
                });
            }
        });
        let found = (0..2).flat_map(|interface| (0..256).map(move |last| (interface, last)));
        let found =
            found.filter_map(|(interface, last)| neighbours.lookup_inet(interface, address(last)));
        assert_eq!(found.count(), 512);
    }

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(
            inserted in proptest::collection::vec(
                (0_u32..3, prop_oneof![
                    any::<Ipv4Addr>().prop_map(IpAddr::from),
                    (0_u32..40).prop_map(|last| Ipv4Addr::from_bits(last).into()),
                    any::<Ipv6Addr>().prop_map(IpAddr::from),
                    (0_u128..40).prop_map(|last| Ipv6Addr::from_bits(last << 60).into()),
                ], any::<u8>()),
                0..200,
            ),
        ) {
            let neighbours = Neighbours::new(200).unwrap();
            let mut map = HashMap::new();
            for &(interface, address, last) in &inserted {
                prop_assert_eq!(
                    lookup(&neighbours, interface, address),
                    map.insert((interface, address), neighbour(last))
                );
                neighbours.insert(interface, address, neighbour(last)).unwrap();
            }
            for ((interface, address), neighbour) in map {
                prop_assert_eq!(lookup(&neighbours, interface, address), Some(neighbour));
            }
        }
    }
}
