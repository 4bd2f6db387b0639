use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::FibError;

/// An address that prefixes are made of: [`Ipv4Addr`] or [`Ipv6Addr`].
pub trait Address: sealed::Address {}

impl Address for Ipv4Addr {}
impl Address for Ipv6Addr {}

pub(super) mod sealed {
    use super::{FromStr, IpAddr, Ipv4Addr, Ipv6Addr, fmt};

    pub trait Address: Copy + Ord + fmt::Display + FromStr + Into<IpAddr> {
        /// Bits of an address.
        const BITS: u8;

        /// The address as a number.
        fn number(self) -> u128;

        /// The address of that number.
        ///
        /// Shape: no more than [`Self::BITS`].
        fn numbered(number: u128) -> Self;
    }

    impl Address for Ipv4Addr {
        const BITS: u8 = 32;

        fn number(self) -> u128 {
            self.to_bits().into()
        }

        fn numbered(number: u128) -> Self {
            Self::from_bits(u32::try_from(number).expect("32 bits"))
        }
    }

    impl Address for Ipv6Addr {
        const BITS: u8 = 128;

        fn number(self) -> u128 {
            self.to_bits()
        }

        fn numbered(number: u128) -> Self {
            Self::from_bits(number)
        }
    }
}

/// The addresses that begin with the same bits, written `198.18.0.0/15`.
///
/// In the order of address and, where these are equal, of length: what holds others comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    address: A,
    length: u8,
}

/// A prefix of IPv4.
pub type Ipv4Prefix = Prefix<Ipv4Addr>;

/// A prefix of IPv6.
pub type Ipv6Prefix = Prefix<Ipv6Addr>;

impl<A: Address> Prefix<A> {
    /// The addresses that share the first `length` bits of `address`.
    ///
    /// # Errors
    /// `PrefixLength`; `HostBits` where other bits of the address are set.
    pub fn new(address: A, length: u8) -> Result<Self, FibError> {
        if length > A::BITS {
            return Err(FibError::PrefixLength {
                address: address.into(),
                length,
                maximum: A::BITS,
            });
        }
        let number = address.number();
        let network = number & !host_mask::<A>(length);
        if number != network {
            return Err(FibError::HostBits {
                address: address.into(),
                length,
                network: A::numbered(network).into(),
            });
        }
        Ok(Self { address, length })
    }

    /// The first address.
    #[must_use]
    pub const fn address(&self) -> A {
        self.address
    }

    /// How many bits all addresses share.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// The first address, as a number.
    pub(super) fn first(&self) -> u128 {
        self.address.number()
    }

    /// The last address, as a number.
    pub(super) fn last(&self) -> u128 {
        self.first() | host_mask::<A>(self.length)
    }
}

/// The bits of an address that do not belong to a prefix of that length.
fn host_mask<A: Address>(length: u8) -> u128 {
    // Two shifts, because one by all 128 bits would overflow.
    (u128::MAX >> (128 - A::BITS)) >> (length / 2) >> (length - length / 2)
}

impl<A: Address> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl<A: Address> FromStr for Prefix<A> {
    type Err = FibError;

    fn from_str(text: &str) -> Result<Self, FibError> {
        let (address, length) = text
            .split_once('/')
            .and_then(|(address, length)| Some((address.parse().ok()?, prefix_length(length)?)))
            .ok_or_else(|| FibError::PrefixText {
                text: text.to_owned(),
            })?;
        Self::new(address, length)
    }
}

/// One to three decimal digits, up to 255.
fn prefix_length(text: &str) -> Option<u8> {
    // `parse` alone would take a sign and any number of zeros.
    let is_number = text.len() <= 3 && text.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_that_is_no_prefix_is_refused_with_the_text() {
        for text in [
            "",
            "/",
            "198.18.0.0",
            "198.18.0.0/",
            "198.18.0.0/+15",
            "198.18.0.0/-1",
            "198.18.0.0/0015",
            "198.18.0.0/256",
            "198.18.0.0/15/15",
            "198.18.0/15",
            "2001:db8::/32",
        ] {
            assert_eq!(
                text.parse::<Ipv4Prefix>(),
                Err(FibError::PrefixText {
                    text: text.to_owned()
                })
            );
        }
    }

    #[test]
    fn bits_behind_the_prefix_are_refused_and_named() {
        let message = |text: &str| text.parse::<Ipv4Prefix>().unwrap_err().to_string();
        assert_eq!(
            message("198.19.0.1/15"),
            "prefix 198.19.0.1/15: bits behind the prefix are set; write 198.18.0.0/15"
        );
        assert_eq!(
            message("198.18.0.0/33"),
            "prefix 198.18.0.0/33: longer than the address (32 bits); shorten it"
        );
        assert!("::1/127".parse::<Ipv6Prefix>().is_err());
        assert!("::/129".parse::<Ipv6Prefix>().is_err());
    }

    #[test]
    fn the_shortest_and_the_longest_prefix_hold_what_they_should() {
        let all = "0.0.0.0/0".parse::<Ipv4Prefix>().unwrap();
        assert_eq!((all.first(), all.last()), (0, 0xffff_ffff));
        let all = "::/0".parse::<Ipv6Prefix>().unwrap();
        assert_eq!((all.first(), all.last()), (0, u128::MAX));
        let one = "::7/128".parse::<Ipv6Prefix>().unwrap();
        assert_eq!((one.first(), one.last()), (7, 7));
        let two = "198.18.0.0/31".parse::<Ipv4Prefix>().unwrap();
        assert_eq!(two.last() - two.first(), 1);
    }

    proptest! {
        #[test]
        fn text_reads_back(number: u128, length in 0_u8..=128) {
            let number = number & !host_mask::<Ipv6Addr>(length);
            let prefix = Prefix::new(Ipv6Addr::from_bits(number), length).unwrap();
            prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
        }

        #[test]
        fn ipv4_text_reads_back(number: u32, length in 0_u8..=32) {
            let number = u128::from(number) & !host_mask::<Ipv4Addr>(length);
            let prefix = Prefix::new(sealed::Address::numbered(number), length).unwrap();
            prop_assert_eq!(prefix.to_string().parse::<Ipv4Prefix>(), Ok(prefix));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<Ipv4Prefix>();
            let _ = text.parse::<Ipv6Prefix>();
        }
    }
}
