use super::{FibError, Ipv4Prefix, NextHopId, prefetch, sorted};

/// Marks an entry of the first table that leads to the second; the other bits number a group.
const LONGER: u16 = 0x8000;

/// Addresses that share one entry of the first table: those of a /24.
const GROUP: usize = 1 << 8;

/// Entries of the first table: one for every /24.
const FIRST: usize = 1 << 24;

/// Every /9 has as many /24 as there are numbers without the mark.
const BASES: usize = 1 << 9;

/// The forwarding table of IPv4: one memory access for a prefix of up to 24 bits, two beyond.
///
/// Both tables have entries of 16 bits. So that 15 of them can number any group of the second, groups
/// are counted from the first of their /9: at most 2^15 of its /24 have longer prefixes. Memory: 32 MiB,
/// of which only what a route covers is ever touched, and 512 bytes for each /24 with longer prefixes.
///
/// # Source
/// DIR-24-8: Gupta, Lin and McKeown, "Routing lookups in hardware at memory access speeds", 1998.
#[derive(Clone, Debug)]
pub struct InetFib {
    first: Box<[u16; FIRST]>,
    bases: Box<[u32; BASES]>,
    second: Vec<[u16; GROUP]>,
}

impl InetFib {
    /// The table of these routes, in any order.
    ///
    /// # Errors
    /// `DuplicatePrefix`, `NoNextHop`, `TooManyRoutes`.
    pub fn build(routes: &[(Ipv4Prefix, NextHopId)]) -> Result<Self, FibError> {
        let (mut first, mut bases) = (zeros::<u16, FIRST>(), zeros::<u32, BASES>());
        let mut second: Vec<[u16; GROUP]> = Vec::new();
        let mut base_of = None;
        // In this order a prefix comes after all that hold it, and may overwrite what they left.
        for (prefix, next_hop) in sorted(routes)? {
            let (slot, length) = (slot(&prefix), prefix.length());
            if length <= 24 {
                first[slot..slot + (1 << (24 - length))].fill(next_hop.0);
                continue;
            }
            let base = &mut bases[slot >> 15];
            if first[slot] & LONGER == 0 {
                let groups = u32::try_from(second.len()).expect("at most one for each /24");
                if base_of.replace(slot >> 15) != Some(slot >> 15) {
                    *base = groups;
                }
                second.push([first[slot]; GROUP]);
                first[slot] = LONGER | u16::try_from(groups - *base).expect("2^15 /24 in a /9");
            }
            let group = &mut second[*base as usize + usize::from(first[slot] & !LONGER)];
            let start = usize::from(prefix.address().octets()[3]);
            group[start..start + (1 << (32 - length))].fill(next_hop.0);
        }
        Ok(Self {
            first,
            bases,
            second,
        })
    }

    /// The next hop of the longest prefix that holds the address; [`NextHopId::NONE`] without one.
    #[inline]
    #[must_use]
    pub fn lookup(&self, destination: u32) -> NextHopId {
        let entry = self.first[(destination >> 8) as usize];
        if entry & LONGER == 0 {
            return NextHopId(entry);
        }
        let base = self.bases[(destination >> 23) as usize] as usize;
        let group = &self.second[base + usize::from(entry & !LONGER)];
        NextHopId(group[(destination & 0xff) as usize])
    }

    /// Asks for what [`Self::lookup`] will read first.
    #[inline]
    pub fn prefetch(&self, destination: u32) {
        prefetch(&self.first[(destination >> 8) as usize]);
    }

    /// The next hops of many addresses.
    ///
    /// # Panics
    /// If `into` is shorter than `destinations`.
    #[inline]
    pub fn lookup_vector(&self, destinations: &[u32], into: &mut [NextHopId]) {
        let into = &mut into[..destinations.len()];
        for (next_hop, &destination) in into.iter_mut().zip(destinations) {
            *next_hop = self.lookup(destination);
        }
    }

    /// Bytes of both tables.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of_val(&*self.first) + size_of_val(&*self.bases) + size_of_val(&*self.second)
    }
}

/// The entry of the first table for the /24 that holds the prefix, or begins it.
fn slot(prefix: &Ipv4Prefix) -> usize {
    (prefix.address().to_bits() >> 8) as usize
}

/// Zeros that the allocator takes from the kernel untouched, where there are many.
pub(super) fn zeros<T: Copy + Default, const LENGTH: usize>() -> Box<[T; LENGTH]> {
    match vec![T::default(); LENGTH].into_boxed_slice().try_into() {
        Ok(zeros) => zeros,
        Err(_) => unreachable!("the slice has this length"),
    }
}
