//! The internet checksum, in full and incrementally.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A ones' complement sum of 16-bit words, from which the checksum is taken.
///
/// Shape: what is added is a sequence of big-endian words; a last odd byte is
/// completed with a zero, so only the last part may have an odd length.
///
/// # Source
/// RFC 1071.
///
/// # Examples
/// ```
/// use fwdlab_packet::checksum::Sum;
///
/// // The worked example of RFC 1071, section 3.
/// let sum = Sum::default().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
/// assert_eq!(sum.checksum(), !0xddf2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u16);

impl Sum {
    /// The IPv4 pseudo header that an upper-layer checksum covers.
    ///
    /// # Source
    /// RFC 768.
    #[must_use]
    pub fn pseudo_header_v4(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        length: u16,
    ) -> Self {
        Self::default()
            .bytes(&source.octets())
            .bytes(&destination.octets())
            .word(protocol.into())
            .word(length)
    }

    /// The IPv6 pseudo header that an upper-layer checksum covers.
    ///
    /// # Source
    /// RFC 8200, section 8.1.
    #[must_use]
    pub fn pseudo_header_v6(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        next_header: u8,
        length: u32,
    ) -> Self {
        Self::default()
            .bytes(&source.octets())
            .bytes(&destination.octets())
            .bytes(&length.to_be_bytes())
            .word(next_header.into())
    }

    /// The sum with one more word.
    #[must_use]
    pub const fn word(self, word: u16) -> Self {
        let (sum, carry) = self.0.overflowing_add(word);
        // After an overflow the sum is at most 0xfffe, so this cannot overflow.
        Self(sum + carry as u16)
    }

    /// The sum with the words of `bytes`.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let (words, odd) = bytes.as_chunks();
        let sum = words
            .iter()
            .fold(self, |sum, word| sum.word(u16::from_be_bytes(*word)));
        match odd {
            [last] => sum.word(u16::from_be_bytes([*last, 0])),
            _ => sum,
        }
    }

    /// The checksum: the complement of the sum.
    ///
    /// It is zero when what was added includes its own, right checksum.
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !self.0
    }
}

/// The checksum after one of the words it covers changed from `old` to `new`.
///
/// The same as summing anew, as long as not all words are zero then: an IPv4
/// header never is.
///
/// # Source
/// RFC 1624, equation 3.
///
/// # Examples
/// ```
/// use fwdlab_packet::checksum::updated;
///
/// // The example of RFC 1624, section 4, where RFC 1141 gives 0xffff.
/// assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
/// ```
#[must_use]
pub const fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    Sum(!checksum).word(!old).word(new).checksum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 as it is written: add wide, fold at the end.
    fn sum_folded_at_the_end(bytes: &[u8]) -> u64 {
        let mut sum: u64 = bytes
            .chunks(2)
            .map(|pair| u64::from(pair[0]) * 256 + pair.get(1).copied().map_or(0, u64::from))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    #[test]
    fn nothing_sums_to_zero() {
        assert_eq!(Sum::default().checksum(), 0xffff);
        assert_eq!(Sum::default().bytes(&[]), Sum::default());
    }

    #[test]
    fn an_ipv4_header_from_the_wire() {
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(Sum::default().bytes(&header).checksum(), 0);
        let without = Sum::default().bytes(&header[..10]).bytes(&header[12..]);
        assert_eq!(without.checksum(), 0xb861);
    }

    proptest! {
        #[test]
        fn carries_may_be_added_at_once_or_at_the_end(bytes: Vec<u8>) {
            let expected = sum_folded_at_the_end(&bytes);
            prop_assert_eq!(u64::from(Sum::default().bytes(&bytes).0), expected);
        }

        #[test]
        fn parts_sum_to_the_whole(bytes: Vec<u8>, at: prop::sample::Index) {
            let even = at.index(bytes.len() + 1) & !1;
            let (first, last) = bytes.split_at(even);
            prop_assert_eq!(
                Sum::default().bytes(first).bytes(last),
                Sum::default().bytes(&bytes)
            );
        }

        #[test]
        fn incremental_is_full(
            mut words in prop::collection::vec(any::<u16>(), 1..40),
            at: prop::sample::Index,
            new: u16,
        ) {
            let full = |words: &[u16]| {
                words.iter().fold(Sum::default(), |sum, word| sum.word(*word)).checksum()
            };
            // As in an IPv4 header, one word is never zero.
            words.push(0x4500);
            let before = full(&words);
            let changed = at.index(words.len() - 1);
            let old = std::mem::replace(&mut words[changed], new);
            prop_assert_eq!(updated(before, old, new), full(&words));
        }

        #[test]
        fn pseudo_headers_are_their_bytes(
            source: u128, destination: u128, protocol: u8, length: u16,
        ) {
            let (source, destination) = (Ipv6Addr::from(source), Ipv6Addr::from(destination));
            let mut bytes = [source.octets(), destination.octets()].concat();
            bytes.extend([0, 0]);
            bytes.extend(length.to_be_bytes());
            bytes.extend([0, 0, 0, protocol]);
            prop_assert_eq!(
                Sum::pseudo_header_v6(source, destination, protocol, length.into()),
                Sum::default().bytes(&bytes)
            );
        }
    }
}
