//! Ranges of addresses that flows come from and go to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::words::AddressFamily;

/// Consecutive addresses of one family, at least one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    count: u32,
}

/// Why there is no such range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// It holds no address.
    #[error("no addresses from {first}")]
    Empty {
        /// Where the range would begin.
        first: IpAddr,
    },
    /// It runs past the end of its address space.
    #[error("{count} addresses from {first} run past the last one there is")]
    End {
        /// Where the range begins.
        first: IpAddr,
        /// How many addresses were asked for.
        count: u32,
    },
}

/// Frames from or to an address of a range end where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no router forwards {address}{}: it is {what}", among(*address, range))]
pub struct NeverForwarded {
    /// The first such address.
    pub address: IpAddr,
    /// What it is.
    pub what: &'static str,
    /// The range that holds it.
    pub range: AddressRange,
}

/// How a range is named beside an address that it does not begin with.
fn among(address: IpAddr, range: &AddressRange) -> String {
    if address == range.first {
        return String::new();
    }
    format!(
        ", one of the {} addresses from {}",
        range.count, range.first
    )
}

/// The first and the last address of each block that no router forwards from or to, and what its addresses are.
///
/// Blocks for documentation are forwarded as any other, although RFC 6890 calls them not forwardable: routers know nothing
/// of them, and labs use them.
///
/// # Source
/// IPv4: RFC 1122, 3.2.1.3; RFC 3927, 2.7; RFC 1812, 5.3.7. IPv6: RFC 4291, 2.5.2, 2.5.3, 2.5.6 and 2.7; RFC 6890, 2.2.3,
/// for IPv4-mapped addresses, whose frames FreeBSD (`ip6_input`) and, by their source, Linux (`ip6_rcv_core`) drop.
const NEVER_FORWARDED: [(IpAddr, IpAddr, &str); 10] = [
    (
        inet(0),
        inet(0x00ff_ffff),
        "an address of this network (0.0.0.0/8)",
    ),
    (
        inet(0x7f00_0000),
        inet(0x7fff_ffff),
        "a loopback address (127.0.0.0/8)",
    ),
    (
        inet(0xa9fe_0000),
        inet(0xa9fe_ffff),
        "a link-local address (169.254.0.0/16)",
    ),
    (
        inet(0xe000_0000),
        inet(0xefff_ffff),
        "a multicast address (224.0.0.0/4)",
    ),
    (
        inet(0xf000_0000),
        inet(0xffff_ffff),
        "a reserved address (240.0.0.0/4)",
    ),
    (inet6(0), inet6(0), "the unspecified address"),
    (inet6(1), inet6(1), "the loopback address"),
    (
        inet6(0xffff_0000_0000),
        inet6(0xffff_ffff_ffff),
        "an IPv4-mapped address (::ffff:0:0/96)",
    ),
    (
        inet6(0xfe80 << 112),
        inet6((0xfec0 << 112) - 1),
        "a link-local address (fe80::/10)",
    ),
    (
        inet6(0xff00 << 112),
        inet6(u128::MAX),
        "a multicast address (ff00::/8)",
    ),
];

const fn inet(bits: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(bits))
}

const fn inet6(bits: u128) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(bits))
}

impl AddressRange {
    /// The range of `count` addresses that begins with `first`.
    ///
    /// # Errors
    /// `Empty`, `End`.
    pub fn new(first: IpAddr, count: u32) -> Result<Self, RangeError> {
        let last_index = count.checked_sub(1).ok_or(RangeError::Empty { first })?;
        match address_after(first, last_index) {
            Some(_) => Ok(Self { first, count }),
            None => Err(RangeError::End { first, count }),
        }
    }

    /// The first address.
    #[must_use]
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// The last address.
    #[must_use]
    pub fn last(&self) -> IpAddr {
        address_after(self.first, self.count - 1).expect("`new` refuses ranges without an end")
    }

    /// How many addresses there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The family of all its addresses.
    #[must_use]
    pub fn family(&self) -> AddressFamily {
        match self.first {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        }
    }

    /// The address at `index`, if the range reaches that far.
    #[must_use]
    pub fn address(&self, index: u32) -> Option<IpAddr> {
        (index < self.count)
            .then(|| address_after(self.first, index))
            .flatten()
    }

    /// The index of `address`, if the range holds it.
    #[must_use]
    pub fn index(&self, address: IpAddr) -> Option<u32> {
        let distance = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                address.to_bits().checked_sub(first.to_bits())?
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                u32::try_from(address.to_bits().checked_sub(first.to_bits())?).ok()?
            }
            _ => return None,
        };
        (distance < self.count).then_some(distance)
    }

    /// Whether some address is in both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last() && other.first <= self.last()
    }

    /// Checks that a router forwards frames from and to all its addresses.
    ///
    /// # Errors
    /// `NeverForwarded`, with the first address for which that is not so.
    pub fn check_forwarded(&self) -> Result<(), NeverForwarded> {
        let last = self.last();
        // Of two families all addresses of one are below all of the other, so that none is in a block of the other.
        let in_blocks = NEVER_FORWARDED.iter().filter_map(|&(begin, end, what)| {
            let address = self.first.max(begin);
            (address <= last.min(end)).then_some((address, what))
        });
        match in_blocks.min() {
            None => Ok(()),
            Some((address, what)) => Err(NeverForwarded {
                address,
                what,
                range: *self,
            }),
        }
    }
}

/// Its ends, or the one address that it has.
impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        if self.count > 1 {
            write!(f, " to {}", self.last())?;
        }
        Ok(())
    }
}

fn address_after(first: IpAddr, distance: u32) -> Option<IpAddr> {
    match first {
        IpAddr::V4(first) => first.to_bits().checked_add(distance).map(inet),
        IpAddr::V6(first) => first.to_bits().checked_add(distance.into()).map(inet6),
    }
}

/// The first bits of an address; the others are 0.
///
/// Shape: `length` in bits; more than the address has are all of them.
#[must_use]
pub fn masked(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(address) => {
            let host_bits = 32_u32.saturating_sub(length);
            let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let host_bits = 128_u32.saturating_sub(length);
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_bits_of_an_address_are_kept() {
        for (address, length, first) in [
            ("198.18.10.77", 24, "198.18.10.0"),
            ("198.18.10.77", 0, "0.0.0.0"),
            ("198.18.10.77", 128, "198.18.10.77"),
            ("2001:db8:1:2::7", 48, "2001:db8:1::"),
            ("2001:db8::7", 0, "::"),
            ("2001:db8::7", 200, "2001:db8::7"),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(masked(address, length).to_string(), first);
        }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn range(first: &str, count: u32) -> AddressRange {
        AddressRange::new(address(first), count).unwrap()
    }

    #[test]
    fn a_range_ends_with_its_address_space() {
        assert!(AddressRange::new(address("255.255.255.254"), 2).is_ok());
        for first in ["255.255.255.254", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"] {
            let first = address(first);
            assert_eq!(
                AddressRange::new(first, 3),
                Err(RangeError::End { first, count: 3 })
            );
            assert_eq!(
                AddressRange::new(first, 0),
                Err(RangeError::Empty { first })
            );
        }
    }

    #[test]
    fn the_first_address_that_no_router_forwards_is_named() {
        let mapped = "an IPv4-mapped address (::ffff:0:0/96)";
        for (first, count, refused) in [
            ("0.0.0.0", 1, Some(("0.0.0.0", "this network"))),
            ("0.255.255.255", 1, Some(("0.255.255.255", "this network"))),
            ("1.0.0.0", 65_536, None),
            ("10.0.0.0", 65_536, None),
            ("126.255.255.252", 4, None),
            ("126.255.255.254", 4, Some(("127.0.0.0", "loopback"))),
            ("127.255.255.255", 2, Some(("127.255.255.255", "loopback"))),
            ("128.0.0.0", 2, None),
            ("169.253.255.255", 1, None),
            (
                "169.253.255.255",
                100_000,
                Some(("169.254.0.0", "link-local")),
            ),
            (
                "169.254.255.255",
                2,
                Some(("169.254.255.255", "link-local")),
            ),
            ("169.255.0.0", 65_536, None),
            ("192.0.2.0", 256, None),
            ("223.255.255.250", 6, None),
            ("223.255.255.250", 20, Some(("224.0.0.0", "multicast"))),
            ("239.255.255.255", 2, Some(("239.255.255.255", "multicast"))),
            ("240.0.0.0", 1, Some(("240.0.0.0", "reserved"))),
            ("255.255.255.255", 1, Some(("255.255.255.255", "reserved"))),
            // More than one block: the first of them.
            ("126.0.0.0", u32::MAX / 2, Some(("127.0.0.0", "loopback"))),
            ("::", 1, Some(("::", "unspecified"))),
            ("::1", 5, Some(("::1", "the loopback"))),
            ("::2", 65_536, None),
            ("::fffe:ffff:fff0", 16, None),
            ("::fffe:ffff:fff0", 17, Some(("::ffff:0:0", mapped))),
            ("::ffff:198.18.0.1", 1, Some(("::ffff:198.18.0.1", mapped))),
            ("::1:0:0:0", 1, None),
            ("2001:db8::", 65_536, None),
            ("fe7f:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 2, None),
            (
                "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:fffe",
                3,
                Some(("fe80::", "link-local")),
            ),
            (
                "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                2,
                Some(("febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local")),
            ),
            ("fec0::", 65_536, None),
            (
                "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                2,
                Some(("ff00::", "multicast")),
            ),
            ("ff02::1", 1, Some(("ff02::1", "multicast"))),
        ] {
            let found = range(first, count).check_forwarded().err();
            let found = found.map(|refusal| (refusal.address, refusal.what));
            match (found, refused) {
                (None, None) => {}
                (Some((at, what)), Some((expected, word))) => {
                    assert_eq!(at, address(expected), "{count} from {first}");
                    assert!(what.contains(word), "{count} from {first}: {what}");
                }
                _ => panic!("{count} from {first}: {found:?} instead of {refused:?}"),
            }
        }
    }

    #[test]
    fn a_refusal_names_address_range_and_block() {
        let text = |first, count| {
            range(first, count)
                .check_forwarded()
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            text("223.255.255.250", 20),
            "no router forwards 224.0.0.0, one of the 20 addresses from 223.255.255.250: it is a multicast address \
             (224.0.0.0/4)"
        );
        assert_eq!(
            text("::1", 5),
            "no router forwards ::1: it is the loopback address"
        );
    }

    /// What the standard library and RFCs say of one address.
    fn is_special(address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => {
                address.octets()[0] == 0
                    || address.octets()[0] >= 240
                    || address.is_loopback()
                    || address.is_link_local()
                    || address.is_multicast()
            }
            IpAddr::V6(address) => {
                address.is_unspecified()
                    || address.is_loopback()
                    || address.is_multicast()
                    || address.is_unicast_link_local()
                    || address.to_ipv4_mapped().is_some()
            }
        }
    }

    /// Any address, and often one near a block's edge.
    fn any_first() -> impl Strategy<Value = IpAddr> {
        let edges = NEVER_FORWARDED
            .iter()
            .flat_map(|(first, last, _)| [*first, *last]);
        let near = (prop::sample::select(edges.collect::<Vec<_>>()), -600..600).prop_map(
            |(edge, distance): (_, i32)| match edge {
                IpAddr::V4(edge) => inet(edge.to_bits().wrapping_add_signed(distance)),
                IpAddr::V6(edge) => inet6(edge.to_bits().wrapping_add_signed(distance.into())),
            },
        );
        prop_oneof![
            2 => near,
            1 => any::<u32>().prop_map(inet),
            1 => any::<u128>().prop_map(inet6),
        ]
    }

    proptest! {
        #[test]
        fn a_range_is_refused_for_its_first_special_address_or_has_none(
            first in any_first(), count in 1_u32..1000,
        ) {
            match AddressRange::new(first, count) {
                Err(error) => prop_assert_eq!(error, RangeError::End { first, count }),
                Ok(range) => {
                    let mut all = (0..count).map(|index| range.address(index).unwrap());
                    let special = all.find(|&address| is_special(address));
                    let refused = range.check_forwarded().err().map(|refusal| refusal.address);
                    prop_assert_eq!(refused, special);
                    prop_assert_eq!(range.address(count - 1), Some(range.last()));
                }
            }
        }

        #[test]
        fn ranges_overlap_where_an_address_is_in_both(
            first in any_first(), distance in 0_u32..100, count in 1_u32..100, other in 1_u32..100,
        ) {
            let behind = address_after(first, distance);
            let other = behind.and_then(|behind| AddressRange::new(behind, other).ok());
            if let (Ok(one), Some(other)) = (AddressRange::new(first, count), other) {
                let in_both = (0..count).any(|index| other.index(one.address(index).unwrap()).is_some());
                prop_assert_eq!(one.overlaps(&other), in_both);
                prop_assert_eq!(other.overlaps(&one), in_both);
            }
        }
    }
}
