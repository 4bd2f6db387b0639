use std::fmt;
use std::str::FromStr;

use crate::PacketError;

/// An Ethernet address, written `02:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Whether more than one station may listen to it: multicast or broadcast.
    ///
    /// # Source
    /// IEEE 802: the group bit is the least significant of the first octet.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Reads the address of one station: what is sent to a group reaches all of a network, and what is sent to zeroes nobody.
    ///
    /// # Errors
    /// `MacAddress`, `NoStation`.
    pub fn of_station(text: &str) -> Result<Self, PacketError> {
        let address: Self = text.parse()?;
        let whose = if address.is_group() {
            "a group"
        } else if address.0 == [0; 6] {
            "no station"
        } else {
            return Ok(address);
        };
        Err(PacketError::NoStation { address, whose })
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddress {
    type Err = PacketError;

    fn from_str(text: &str) -> Result<Self, PacketError> {
        octets(text)
            .map(Self)
            .ok_or_else(|| PacketError::MacAddress {
                text: text.to_owned(),
            })
    }
}

/// Six groups of exactly two hexadecimal digits, with colons between them.
fn octets(text: &str) -> Option<[u8; 6]> {
    let mut groups = text.split(':');
    let mut octets = [0; 6];
    for octet in &mut octets {
        let group = groups.next()?;
        // `from_str_radix` alone would take a sign and any number of digits.
        if group.len() != 2 || !group.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *octet = u8::from_str_radix(group, 16).ok()?;
    }
    groups.next().is_none().then_some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_lower_case_with_colons() {
        let address = MacAddress([0x02, 0x00, 0x5e, 0xAB, 0xCD, 0x0f]);
        assert_eq!(address.to_string(), "02:00:5e:ab:cd:0f");
        assert_eq!("02:00:5E:AB:CD:0F".parse(), Ok(address));
    }

    #[test]
    fn the_group_bit_tells_multicast_and_broadcast() {
        for (text, is_group) in [
            ("ff:ff:ff:ff:ff:ff", true),
            ("01:00:5e:00:00:01", true),
            ("33:33:00:00:00:01", true),
            ("02:00:00:00:00:01", false),
            ("fe:ff:ff:ff:ff:ff", false),
        ] {
            assert_eq!(
                text.parse::<MacAddress>().unwrap().is_group(),
                is_group,
                "{text}"
            );
        }
    }

    #[test]
    fn a_station_is_neither_a_group_nor_nobody() {
        for (text, whose) in [
            ("ff:ff:ff:ff:ff:ff", "a group"),
            ("01:00:5e:00:00:01", "a group"),
            ("33:33:00:00:00:01", "a group"),
            ("01:00:00:00:00:00", "a group"),
            ("00:00:00:00:00:00", "no station"),
        ] {
            let address = text.parse().unwrap();
            assert_eq!(
                MacAddress::of_station(text),
                Err(PacketError::NoStation { address, whose })
            );
        }
        for text in [
            "00:00:00:00:00:01",
            "02:00:00:00:00:00",
            "fe:ff:ff:ff:ff:ff",
        ] {
            assert_eq!(MacAddress::of_station(text), text.parse());
        }
    }

    #[test]
    fn other_text_is_refused_with_the_text() {
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:",
            "02:00:00:00:00:01:02",
            "2:0:0:0:0:1",
            "02-00-00-00-00-01",
            "+2:00:00:00:00:01",
            "02:00:00:00:00:0g",
            "02:00:00:00:00:é",
        ] {
            let refusal = Err(PacketError::MacAddress {
                text: text.to_owned(),
            });
            assert_eq!(text.parse::<MacAddress>(), refusal);
            assert_eq!(MacAddress::of_station(text), refusal);
        }
    }

    proptest! {
        #[test]
        fn text_reads_back(octets: [u8; 6]) {
            let address = MacAddress(octets);
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }
    }
}
