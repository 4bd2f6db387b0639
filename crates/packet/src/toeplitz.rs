//! Receive-side scaling: the Toeplitz hash over addresses and ports, and the
//! table that makes a queue of it.
//!
//! # Source
//! Microsoft, "RSS Hashing Functions" and "Verifying the RSS Hash
//! Calculation"; Krawczyk, "New Hash Functions for Message Authentication"
//! (1995).

use crate::field::word;
use crate::{ethernet, ipv4, ipv6, udp};

/// The number of TCP as IPv4 protocol and as IPv6 next header.
const TCP: u8 = 6;

/// Bytes of a key.
pub const KEY_LENGTH: usize = 40;
/// The most bytes that a key of [`KEY_LENGTH`] can hash: each bit of the input
/// takes the 32 bits of the key that begin at its place.
pub const INPUT_LENGTH_MAX: usize = KEY_LENGTH - 4;

/// The key of Microsoft's verification suite, which is FreeBSD's `rss_key`.
///
/// # Source
/// `sys/net/rss_config.c` of FreeBSD: not drawn at random at boot.
pub const MICROSOFT_KEY: [u8; KEY_LENGTH] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The Toeplitz hash under one key, a table for every byte of the input.
///
/// The hash is linear: that of an input is the exclusive or of what each of
/// its bytes contributes at its place, so 256 contributions a place replace
/// eight steps a byte by one look-up. The 12 bytes of an IPv4 flow reach 12 KiB
/// of tables, the 36 of an IPv6 flow 36 KiB.
///
/// # Examples
/// ```
/// use fwdlab_packet::toeplitz::{MICROSOFT_KEY, Toeplitz};
///
/// // The first line of the verification suite, without ports.
/// let toeplitz = Toeplitz::new(&MICROSOFT_KEY);
/// assert_eq!(toeplitz.hash(&[66, 9, 149, 187, 161, 142, 100, 80]), 0x323e_8fc2);
/// ```
#[derive(Clone, Debug)]
pub struct Toeplitz {
    contributions: Box<[[u32; 256]; INPUT_LENGTH_MAX]>,
}

impl Toeplitz {
    /// The hash under `key`.
    #[must_use]
    pub fn new(key: &[u8; KEY_LENGTH]) -> Self {
        let mut contributions = Box::new([[0; 256]; INPUT_LENGTH_MAX]);
        for (place, table) in contributions.iter_mut().enumerate() {
            for bit in 0..8 {
                let mask = 0x80 >> bit;
                let window = window(key, place * 8 + bit);
                for (byte, contribution) in table.iter_mut().enumerate() {
                    if byte & mask != 0 {
                        *contribution ^= window;
                    }
                }
            }
        }
        Self { contributions }
    }

    /// The hash of `input`: addresses, then ports, as they stand in the packet.
    ///
    /// Shape: at most [`INPUT_LENGTH_MAX`] bytes, which the compiler checks.
    #[must_use]
    pub fn hash<const N: usize>(&self, input: &[u8; N]) -> u32 {
        const { assert!(N <= INPUT_LENGTH_MAX, "the key is too short for this input") };
        input
            .iter()
            .zip(self.contributions.iter())
            .fold(0, |hash, (&byte, table)| hash ^ table[usize::from(byte)])
    }
}

/// The 32 bits of the key from bit `offset` on, at most 287.
fn window(key: &[u8; KEY_LENGTH], offset: usize) -> u32 {
    let byte = |index: usize| u64::from(key[index]);
    let first = offset / 8;
    let bits = (first..first + 5).fold(0, |bits, index| bits << 8 | byte(index));
    // Of 40 bits the wanted 32 begin `offset % 8` after the first.
    u32::try_from(bits >> (8 - offset % 8) & 0xffff_ffff).expect("32 bits are left")
}

/// Over which protocols the ports are hashed beside the addresses.
///
/// The default is FreeBSD's: TCP, but not UDP, because of a UDP datagram that
/// is fragmented only the first fragment has ports, and the others would reach
/// another queue.
///
/// # Source
/// `rss_gethashconfig` in `sys/net/rss_config.c` of FreeBSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashedPorts {
    /// The ports of TCP segments.
    pub tcp: bool,
    /// The ports of UDP datagrams.
    pub udp: bool,
}

impl Default for HashedPorts {
    fn default() -> Self {
        Self {
            tcp: true,
            udp: false,
        }
    }
}

/// The RSS hash of frames, as a network card computes it on arrival.
#[derive(Clone, Debug)]
pub struct RssHash {
    toeplitz: Toeplitz,
    ports: HashedPorts,
}

impl RssHash {
    /// The hash under `key`.
    #[must_use]
    pub fn new(key: &[u8; KEY_LENGTH], ports: HashedPorts) -> Self {
        Self {
            toeplitz: Toeplitz::new(key),
            ports,
        }
    }

    /// The hash of an Ethernet frame, or `None` if it carries no IP: a card
    /// puts that into its first queue.
    ///
    /// Nothing is verified but that the fields which are hashed are there.
    /// Ports count only in packets that are no fragments, and in IPv6 only
    /// directly behind the fixed header.
    #[must_use]
    pub fn hash(&self, frame: &[u8]) -> Option<u32> {
        let (header, packet) = frame.split_at_checked(ethernet::HEADER_LENGTH)?;
        match word(header, ethernet::HEADER_LENGTH - 2) {
            ethernet::IPV4 => self.hash_ipv4(packet),
            ethernet::IPV6 => self.hash_ipv6(packet),
            _ => None,
        }
    }

    fn hash_ipv4(&self, packet: &[u8]) -> Option<u32> {
        let header = packet.first_chunk::<{ ipv4::HEADER_LENGTH }>()?;
        let addresses: &[u8; 8] = header.last_chunk()?;
        let ports = if word(header, ipv4::FLAGS_AND_OFFSET) & ipv4::MORE_FRAGMENTS_AND_OFFSET == 0 {
            packet
                .get(ipv4::header_length(header[0])..)
                .and_then(|payload| self.ports(header[ipv4::PROTOCOL], payload))
        } else {
            None
        };
        Some(match ports {
            None => self.toeplitz.hash(addresses),
            Some(ports) => {
                let mut input = [0; 12];
                input[..8].copy_from_slice(addresses);
                input[8..].copy_from_slice(ports);
                self.toeplitz.hash(&input)
            }
        })
    }

    fn hash_ipv6(&self, packet: &[u8]) -> Option<u32> {
        let (header, payload) = packet.split_first_chunk::<{ ipv6::HEADER_LENGTH }>()?;
        let addresses: &[u8; 32] = header.last_chunk()?;
        Some(match self.ports(header[ipv6::NEXT_HEADER], payload) {
            None => self.toeplitz.hash(addresses),
            Some(ports) => {
                let mut input = [0; 36];
                input[..32].copy_from_slice(addresses);
                input[32..].copy_from_slice(ports);
                self.toeplitz.hash(&input)
            }
        })
    }

    /// The ports, if they are hashed and there.
    fn ports<'a>(&self, protocol: u8, payload: &'a [u8]) -> Option<&'a [u8; 4]> {
        let hashed = match protocol {
            TCP => self.ports.tcp,
            udp::PROTOCOL => self.ports.udp,
            _ => false,
        };
        hashed.then(|| payload.first_chunk())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddressPair, Flow, MacAddress, UdpFrame};
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    /// The definition: for every set bit of the input, from the left, the key's
    /// left-most 32 bits; after every bit the key moves left by one.
    fn bit_by_bit(key: &[u8; KEY_LENGTH], input: &[u8]) -> u32 {
        let mut key = key.to_vec();
        let mut hash = 0;
        for bit in 0..input.len() * 8 {
            if input[bit / 8] & 0x80 >> (bit % 8) != 0 {
                hash ^= u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
            }
            for index in 0..KEY_LENGTH {
                let carried = key.get(index + 1).copied().unwrap_or(0) >> 7;
                key[index] = key[index] << 1 | carried;
            }
        }
        hash
    }

    /// Microsoft's verification suite: source, destination, their ports, the
    /// hash of the addresses, the hash of addresses and ports.
    const VERIFICATION_SUITE: [(&str, &str, u16, u16, u32, u32); 8] = [
        (
            "66.9.149.187",
            "161.142.100.80",
            2794,
            1766,
            0x323e_8fc2,
            0x51cc_c178,
        ),
        (
            "199.92.111.2",
            "65.69.140.83",
            14230,
            4739,
            0xd718_262a,
            0xc626_b0ea,
        ),
        (
            "24.19.198.95",
            "12.22.207.184",
            12898,
            38024,
            0xd2d0_a5de,
            0x5c2b_394a,
        ),
        (
            "38.27.205.30",
            "209.142.163.6",
            48228,
            2217,
            0x8298_9176,
            0xafc7_327f,
        ),
        (
            "153.39.163.191",
            "202.188.127.2",
            44251,
            1303,
            0x5d18_09c5,
            0x10e8_28a2,
        ),
        (
            "3ffe:2501:200:1fff::7",
            "3ffe:2501:200:3::1",
            2794,
            1766,
            0x2cc1_8cd5,
            0x4020_7d3d,
        ),
        (
            "3ffe:501:8::260:97ff:fe40:efab",
            "ff02::1",
            14230,
            4739,
            0x0f0c_461c,
            0xdde5_1bbf,
        ),
        (
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            "fe80::200:f8ff:fe21:67cf",
            44251,
            38024,
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    fn frame(
        source: IpAddr,
        destination: IpAddr,
        source_port: u16,
        destination_port: u16,
    ) -> Vec<u8> {
        UdpFrame {
            source_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            destination_mac: MacAddress([2, 0, 0, 0, 0, 2]),
            flow: Flow {
                addresses: AddressPair::new(source, destination).unwrap(),
                source_port,
                destination_port,
            },
            hop_limit: 64,
            payload: &[],
        }
        .emit()
    }

    #[test]
    fn the_verification_suite_passes() {
        let hash = |ports| RssHash::new(&MICROSOFT_KEY, ports);
        let by_default = hash(HashedPorts::default());
        let with_udp = hash(HashedPorts {
            tcp: true,
            udp: true,
        });
        for (source, destination, source_port, destination_port, addresses, ports) in
            VERIFICATION_SUITE
        {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            let mut frame = frame(source, destination, source_port, destination_port);
            assert_eq!(by_default.hash(&frame), Some(addresses), "{source}");
            assert_eq!(with_udp.hash(&frame), Some(ports), "{source}");
            // TCP has its ports where UDP has them.
            frame[if source.is_ipv4() { 23 } else { 20 }] = TCP;
            assert_eq!(by_default.hash(&frame), Some(ports), "{source}");
        }
    }

    #[test]
    fn a_fragment_is_hashed_by_addresses() {
        let hash = RssHash::new(
            &MICROSOFT_KEY,
            HashedPorts {
                tcp: true,
                udp: true,
            },
        );
        for flags_and_offset in [0x2000, 0x0001, 0x3fff_u16] {
            let (source, destination) = ("66.9.149.187", "161.142.100.80");
            let mut frame = frame(
                source.parse().unwrap(),
                destination.parse().unwrap(),
                2794,
                1766,
            );
            frame[20..22].copy_from_slice(&flags_and_offset.to_be_bytes());
            assert_eq!(hash.hash(&frame), Some(0x323e_8fc2));
        }
    }

    #[test]
    fn ports_follow_the_options() {
        let hash = RssHash::new(
            &MICROSOFT_KEY,
            HashedPorts {
                tcp: true,
                udp: true,
            },
        );
        let (source, destination) = ("66.9.149.187", "161.142.100.80");
        let mut frame = frame(
            source.parse().unwrap(),
            destination.parse().unwrap(),
            2794,
            1766,
        );
        frame[14] = 0x47;
        frame.splice(34..34, [1; 8]);
        assert_eq!(hash.hash(&frame), Some(0x51cc_c178));
        // Without room for ports the addresses are left.
        assert_eq!(hash.hash(&frame[..45]), Some(0x323e_8fc2));
        assert_eq!(hash.hash(&frame[..34]), Some(0x323e_8fc2));
        assert_eq!(hash.hash(&frame[..33]), None);
    }

    #[test]
    fn what_is_not_ip_has_no_hash() {
        let hash = RssHash::new(&MICROSOFT_KEY, HashedPorts::default());
        let mut frame = frame(Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into(), 1, 2);
        frame[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(hash.hash(&frame), None);
        assert_eq!(hash.hash(&[]), None);
    }

    proptest! {
        #[test]
        fn tables_give_what_the_definition_gives(
            key in prop::array::uniform(any::<u8>()),
            input in prop::array::uniform(any::<u8>()),
        ) {
            let toeplitz = Toeplitz::new(&key);
            let input: [u8; INPUT_LENGTH_MAX] = input;
            prop_assert_eq!(toeplitz.hash(&input), bit_by_bit(&key, &input));
            let short: [u8; 12] = *input.first_chunk().unwrap();
            prop_assert_eq!(toeplitz.hash(&short), bit_by_bit(&key, &short));
        }

        #[test]
        fn both_families_hash_what_stands_in_the_packet(
            source: [u8; 16], destination: [u8; 16], source_port: u16, destination_port: u16,
            inet: bool, udp: bool,
        ) {
            let address = |octets: [u8; 16]| -> IpAddr {
                let [a, b, c, d, ..] = octets;
                if inet { Ipv4Addr::new(a, b, c, d).into() } else { Ipv6Addr::from(octets).into() }
            };
            let octets = |address: IpAddr| match address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            let (source, destination) = (address(source), address(destination));
            let mut input = [octets(source), octets(destination)].concat();
            if udp {
                input.extend(source_port.to_be_bytes());
                input.extend(destination_port.to_be_bytes());
            }
            let hash = RssHash::new(&MICROSOFT_KEY, HashedPorts { tcp: false, udp });
            prop_assert_eq!(
                hash.hash(&frame(source, destination, source_port, destination_port)),
                Some(bit_by_bit(&MICROSOFT_KEY, &input))
            );
        }

        #[test]
        fn hashing_anything_does_not_panic(mut frame: Vec<u8>, ether_type in 0..3_usize) {
            if frame.len() >= 14 {
                frame[12..14].copy_from_slice(&[[8, 0], [0x86, 0xdd], [8, 6]][ether_type]);
            }
            let _ = RssHash::new(&MICROSOFT_KEY, HashedPorts { tcp: true, udp: true }).hash(&frame);
        }
    }
}
