//! Forwarding tables: from a destination to its next hop, by the longest prefix that matches.

mod inet;
mod inet6;
mod prefix;

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use fwdlab_sys::prefetch_read as prefetch;

pub use inet::InetFib;
pub use inet6::Inet6Fib;
pub use prefix::{Address, Ipv4Prefix, Ipv6Prefix, Prefix};

/// The most routes that a table takes.
///
/// Sixteen times the Internet's IPv4 table; it keeps every index within 30 bits.
pub const ROUTES_MAX: usize = 1 << 24;

/// Which next hop a route leads to.
///
/// 0 is no next hop, so that what a lookup gives can index an array whose first element stands for
/// packets without a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHopId(u16);

impl NextHopId {
    /// No route.
    pub const NONE: Self = Self(0);

    /// The largest.
    pub const MAX: Self = Self(0x7fff);

    /// Next hop 1 to 32767; none for other numbers.
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        if number == Self::NONE.0 || number > Self::MAX.0 {
            return None;
        }
        Some(Self(number))
    }

    /// Where it stands in an array of next hops; 0 without a route.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether there is no route.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == Self::NONE.0
    }
}

/// What can be wrong with a prefix or a set of routes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FibError {
    /// The text is not a prefix.
    #[error("prefix: cannot be read ({text:?} seen); write it like 198.18.0.0/15 or 2001:db8::/32")]
    PrefixText {
        /// The text.
        text: String,
    },
    /// A prefix is longer than an address.
    #[error("prefix {address}/{length}: longer than the address ({maximum} bits); shorten it")]
    PrefixLength {
        /// The address.
        address: IpAddr,
        /// The length.
        length: u8,
        /// Bits of an address.
        maximum: u8,
    },
    /// Bits behind the prefix are not zero.
    #[error("prefix {address}/{length}: bits behind the prefix are set; write {network}/{length}")]
    HostBits {
        /// The address.
        address: IpAddr,
        /// The length.
        length: u8,
        /// The address without these bits.
        network: IpAddr,
    },
    /// Two routes have the same prefix.
    #[error("route {address}/{length}: given more than once; keep one")]
    DuplicatePrefix {
        /// The address of the prefix.
        address: IpAddr,
        /// The length of the prefix.
        length: u8,
    },
    /// A route leads nowhere.
    #[error("route {address}/{length}: has no next hop; give one from 1 to 32767, or leave it out")]
    NoNextHop {
        /// The address of the prefix.
        address: IpAddr,
        /// The length of the prefix.
        length: u8,
    },
    /// There are more routes than a table takes.
    #[error(
        "routes: too many ({routes} seen, {} at most); leave some out",
        ROUTES_MAX
    )]
    TooManyRoutes {
        /// How many there are.
        routes: usize,
    },
}

/// The routes in the order of address and, where these are equal, of length.
///
/// # Errors
/// `TooManyRoutes`, `DuplicatePrefix`, `NoNextHop`.
fn sorted<A: Address>(
    routes: &[(Prefix<A>, NextHopId)],
) -> Result<Vec<(Prefix<A>, NextHopId)>, FibError> {
    if routes.len() > ROUTES_MAX {
        return Err(FibError::TooManyRoutes {
            routes: routes.len(),
        });
    }
    if let Some((prefix, _)) = routes.iter().find(|(_, next_hop)| next_hop.is_none()) {
        return Err(FibError::NoNextHop {
            address: prefix.address().into(),
            length: prefix.length(),
        });
    }
    let mut routes = routes.to_vec();
    routes.sort_unstable_by_key(|(prefix, _)| *prefix);
    match routes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(FibError::DuplicatePrefix {
            address: pair[0].0.address().into(),
            length: pair[0].0.length(),
        }),
        None => Ok(routes),
    }
}
