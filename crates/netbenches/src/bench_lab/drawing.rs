//! What the drawing in a configuration's comments shows: the ports of the boxes, with their addresses.

use std::net::Ipv4Addr;

/// A port stands in so many lines at most with its IPv6 address and its MAC address.
const LINES_OF_PORT: usize = 3;

/// What the drawing calls the machine that is measured.
const DUT: &str = "device under test";

/// A drawing of boxes, made of `|`, `-` and `+`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Drawing {
    ports: Vec<Port>,
    /// What the DUT's box calls the machine, where that is one line.
    pub(super) machine: Option<String>,
}

/// A port: `ix0: 198.18.0.46/24`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) interface: String,
    pub(super) address: Ipv4Addr,
    /// As it stands.
    mac: Option<String>,
    /// The line, from 1.
    pub(super) line: usize,
    /// Where its box begins.
    column: usize,
}

/// A part of a line between the borders of boxes.
#[derive(Clone, Copy)]
struct Cell<'a> {
    /// Where it begins.
    column: usize,
    text: &'a str,
}

impl Drawing {
    /// Reads the comments of a file; whatever they are, they are read.
    pub(super) fn parse(text: &str) -> Self {
        let lines: Vec<Vec<Cell<'_>>> = text.lines().map(cells).collect();
        let mut ports: Vec<Port> = Vec::new();
        for (index, cells) in lines.iter().enumerate() {
            for cell in cells {
                if let Some((interface, address)) = port(cell.text) {
                    ports.push(Port {
                        interface,
                        address,
                        mac: None,
                        line: index + 1,
                        column: cell.column,
                    });
                }
                if let Some(mac) = mac(cell.text) {
                    let above = ports.iter_mut().rev().find(|port| {
                        port.column == cell.column && index + 1 - port.line < LINES_OF_PORT
                    });
                    if let Some(port) = above {
                        port.mac.get_or_insert_with(|| mac.to_owned());
                    }
                }
            }
        }
        Self {
            ports,
            machine: machine(&lines),
        }
    }

    /// The port with a MAC address.
    pub(super) fn port_of(&self, mac: &str) -> Option<&Port> {
        let is_its = |port: &&Port| {
            port.mac
                .as_deref()
                .is_some_and(|of| of.eq_ignore_ascii_case(mac))
        };
        self.ports.iter().find(is_its)
    }

    /// The only other port in the box of a port.
    pub(super) fn other(&self, port: &Port) -> Option<&Port> {
        let mut others = self
            .ports
            .iter()
            .filter(|other| other.column == port.column && other.interface != port.interface);
        others.next().filter(|_| others.next().is_none())
    }
}

fn cells(line: &str) -> Vec<Cell<'_>> {
    let Some(comment) = line.strip_prefix('#') else {
        return Vec::new();
    };
    let mut column = 0;
    let parts = comment.split('|').map(|text| {
        let cell = Cell { column, text };
        column += text.chars().count() + 1;
        cell
    });
    // What stands in front of the first border is in no box.
    parts.skip(1).collect()
}

/// `ix0: 198.18.0.46/24`, with whatever stands around it.
fn port(text: &str) -> Option<(String, Ipv4Addr)> {
    let (before, behind) = text.split_once(':')?;
    let interface = before.split_whitespace().next_back()?;
    let is_interface = interface.starts_with(|first: char| first.is_ascii_alphabetic())
        && interface.ends_with(|last: char| last.is_ascii_digit())
        && interface.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let address = behind.split_whitespace().next()?;
    let address = address.split('/').next()?.parse().ok()?;
    is_interface.then(|| (interface.to_owned(), address))
}

fn mac(text: &str) -> Option<&str> {
    let mut words = text.split(|letter: char| !(letter == ':' || letter.is_ascii_hexdigit()));
    words.find(|word| {
        let mut parts = word.split(':');
        word.len() == 17 && parts.clone().count() == 6 && parts.all(|part| part.len() == 2)
    })
}

/// What stands beside `Device under Test` in its box, where that is one line; a line in parentheses
/// belongs to the one above it.
fn machine(lines: &[Vec<Cell<'_>>]) -> Option<String> {
    let is_dut = |cell: &Cell<'_>| cell.text.to_ascii_lowercase().contains(DUT);
    let (at, column) = lines.iter().enumerate().find_map(|(at, cells)| {
        let cell = cells.iter().find(|cell| is_dut(cell))?;
        Some((at, cell.column))
    })?;
    let in_box = |cells: &Vec<Cell<'_>>| {
        let cell = cells.iter().find(|cell| cell.column == column)?;
        let text = cell.text.trim();
        (!text.is_empty() && !text.contains(':')).then(|| text.to_owned())
    };
    let mut names: Vec<String> = lines[..at].iter().rev().map_while(in_box).collect();
    names.reverse();
    names.extend(lines[at + 1..].iter().map_while(in_box));
    let mut joined: Vec<String> = Vec::new();
    for name in names {
        match joined.last_mut() {
            Some(above) if name.starts_with('(') => *above += &format!(" {name}"),
            _ => joined.push(name),
        }
    }
    let [machine] = joined.as_slice() else {
        return None;
    };
    Some(machine.clone())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DRAWING: &str = "\
#!/bin/sh
#   ------admin network: 192.168.100.0/24 (ssh)------
#              | .46                          | .2
#+---------------------------+ +-------+ +-----------------------------+
#|      PC Engines APU2      | |switch | |           bigone            |
#|          (apu24)          | |       | | Packet generator & receiver |
#|    Device under test      | |       | |                             |
#|                           | |       | |                             |
#|  ix0: 198.18.0.46/24      |=|   <   |=| ix0: 198.18.0.2/24          |
#|        2001:2::46/64      | |       | |        2001:2::2/64         |
#|       (90:E2:ba:84:20:38) | |       | |        (00:25:90:91:14:0a)  |
#|                           | |       | |                             |
#|  ix1: 198.19.0.46/24      |=|   >   |=| ix1: 198.19.0.2/24          |
#|       (90:e2:ba:84:20:39) | +-------+ |        (00:25:90:91:14:0b)  |
#|                           |           |                             |
#|   static arp and ndp      |           |                             |
#| 198.18.0.2 => 00:25:90:91:14:0a       |                             |
#+---------------------------+           +-----------------------------+
DUT_ADMIN=sm2
";

    #[test]
    fn ports_have_the_addresses_below_them_in_their_box() {
        let drawing = Drawing::parse(DRAWING);
        assert_eq!(drawing.ports.len(), 4);
        let port = drawing.port_of("90:e2:ba:84:20:38").unwrap();
        assert_eq!((port.interface.as_str(), port.line), ("ix0", 9));
        assert_eq!(port.address, Ipv4Addr::new(198, 18, 0, 46));
        assert_eq!(drawing.other(port).unwrap().interface, "ix1");
        let sink = drawing.port_of("00:25:90:91:14:0b").unwrap();
        assert_eq!((sink.interface.as_str(), sink.line), ("ix1", 13));
        assert_eq!(drawing.port_of("00:00:00:00:00:00"), None);
        assert_eq!(drawing.machine.as_deref(), Some("PC Engines APU2 (apu24)"));
    }

    #[test]
    fn a_box_with_several_names_has_none() {
        let two = DRAWING.replace("(apu24)", " apu24 ");
        assert_eq!(Drawing::parse(&two).machine, None);
        assert_eq!(
            Drawing::parse("# a comment\nDUT_ADMIN=x\n"),
            Drawing::default()
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "([#|+: \n]|ix[01]: |198[.]18[.]0[.]1|00:25:90:91:14:0a|device under test|é){0,60}", mac: String) {
            let drawing = Drawing::parse(&text);
            for port in &drawing.ports {
                drawing.other(port);
            }
            drawing.port_of(&mac);
        }
    }
}
