//! Questions to the kernel over netlink: those that one message each answers, in a few microseconds, and lists.

use std::io;

use netlink_packet_core::{NetlinkBuffer, NlasIterator};
use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use netlink_sys::{Socket, SocketAddr};

/// Room for an answer: an interface's counters, or a route with a hundred next hops.
const ANSWER_SIZE: usize = 4096;

/// Room for a part of a list: the kernel sends no larger ones.
const PART_SIZE: usize = 32 * 1024;

/// How often a list that changed while it was read is read again.
const READS_MAX: u32 = 10;

const HEADER_SIZE: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP_INTR: u16 = 0x10;
const NLM_F_DUMP: u16 = 0x300;

/// Netlink of the network namespace in which it was opened; it may be asked from any.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence_number: u32,
}

impl Netlink {
    /// Opens rtnetlink: interfaces and what they count.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn route() -> io::Result<Self> {
        Self::open(NETLINK_ROUTE)
    }

    /// Opens nfnetlink: nftables.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn netfilter() -> io::Result<Self> {
        Self::open(NETLINK_NETFILTER)
    }

    fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence_number: 0,
        })
    }

    /// Asks, and waits for the answer: what follows its header.
    ///
    /// Shape: the kinds of request and answer, and what follows the request's header.
    ///
    /// # Errors
    /// The kernel's refusal, or `InvalidData` of an answer that is damaged or of another kind.
    pub fn ask(&mut self, request: u16, body: &[u8], answer: u16) -> io::Result<Vec<u8>> {
        self.send(request, 0, body)?;
        self.receive(answer)
    }

    /// Tells the kernel to change something, and waits until it has.
    ///
    /// Shape: the kind of request, its flags beyond those of every request, and what follows its header.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn tell(&mut self, request: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.send(request, NLM_F_ACK | flags, body)?;
        match self.receive(NLMSG_ERROR) {
            // An acknowledgement is an error with number 0.
            Err(error) if error.raw_os_error() != Some(0) => Err(error),
            _ => Ok(()),
        }
    }

    /// Asks for a list, and reads what follows the header of each entry.
    ///
    /// Shape: the kinds of request and entry, and what follows the request's header.
    ///
    /// # Errors
    /// The kernel's refusal, `Interrupted` where the list kept changing, `InvalidData` of an entry that is damaged or of
    /// another kind, and those of `read`.
    pub fn list<T>(
        &mut self,
        request: u16,
        body: &[u8],
        entry: u16,
        read: impl Fn(&[u8]) -> io::Result<T>,
    ) -> io::Result<Vec<T>> {
        let mut reads = 1;
        loop {
            match self.list_once(request, body, entry, &read) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted && reads < READS_MAX => {
                    reads += 1;
                }
                list => return list,
            }
        }
    }

    fn list_once<T>(
        &mut self,
        request: u16,
        body: &[u8],
        entry: u16,
        read: impl Fn(&[u8]) -> io::Result<T>,
    ) -> io::Result<Vec<T>> {
        self.send(request, NLM_F_DUMP, body)?;
        let mut bytes = vec![0; PART_SIZE];
        let mut list = Vec::new();
        let mut has_changed = false;
        loop {
            let length = self.socket.recv(&mut &mut bytes[..], 0)?;
            let part = part_of(&bytes[..length], self.sequence_number, entry)?;
            has_changed |= part.has_changed;
            for body in part.bodies {
                list.push(read(body)?);
            }
            if part.is_last {
                return if has_changed {
                    Err(io::ErrorKind::Interrupted.into())
                } else {
                    Ok(list)
                };
            }
        }
    }

    fn send(&mut self, request: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence_number = self.sequence_number.wrapping_add(1);
        let message = message(request, NLM_F_REQUEST | flags, self.sequence_number, body);
        self.socket.send(&message, 0)?;
        Ok(())
    }

    fn receive(&mut self, answer: u16) -> io::Result<Vec<u8>> {
        let mut bytes = [0; ANSWER_SIZE];
        loop {
            let length = self.socket.recv(&mut &mut bytes[..], 0)?;
            // An answer to an earlier, interrupted request may still be in the socket.
            if let Some(body) = body_of(&bytes[..length], self.sequence_number, answer) {
                return body.map(<[u8]>::to_vec);
            }
        }
    }
}

/// The first attribute of a kind among those of an answer's body, which stand behind a header of
/// the answer's own.
///
/// # Errors
/// `InvalidData` where there is none, or one before it is damaged.
pub fn netlink_attribute(body: &[u8], header_size: usize, kind: u16) -> io::Result<&[u8]> {
    let attributes = body.get(header_size..).ok_or_else(damaged)?;
    for attribute in netlink_attributes(attributes) {
        let (found, value) = attribute?;
        if found == kind {
            return Ok(value);
        }
    }
    Err(damaged())
}

/// Attributes, one after the other: the kind and the value of each.
///
/// Shape: an attribute that is damaged is `InvalidData`, and the last one.
pub fn netlink_attributes(attributes: &[u8]) -> impl Iterator<Item = io::Result<(u16, &[u8])>> {
    NlasIterator::new(attributes).map(|attribute| {
        let attribute = attribute.map_err(|_| damaged())?;
        let length = usize::from(attribute.length());
        let header = length - attribute.value_length();
        let kind = attribute.kind();
        let value = attribute.into_inner().get(header..length);
        Ok((kind, value.ok_or_else(damaged)?))
    })
}

fn message(kind: u16, flags: u16, sequence_number: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_SIZE + body.len()).expect("requests are short");
    let mut message = Vec::with_capacity(HEADER_SIZE + body.len());
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence_number.to_ne_bytes());
    // From no port in particular.
    message.extend([0; 4]);
    message.extend(body);
    message
}

/// What follows the header of an answer, or the kernel's refusal; nothing where it answers another
/// request.
fn body_of(bytes: &[u8], sequence_number: u32, kind: u16) -> Option<io::Result<&[u8]>> {
    let Ok(message) = NetlinkBuffer::new_checked(bytes) else {
        return Some(Err(damaged()));
    };
    if message.sequence_number() != sequence_number {
        return None;
    }
    let body = &bytes[HEADER_SIZE..message.length() as usize];
    if message.message_type() == NLMSG_ERROR {
        let code = body.first_chunk().copied().map(i32::from_ne_bytes);
        return Some(Err(code.map_or_else(damaged, |code| {
            io::Error::from_raw_os_error(code.saturating_neg())
        })));
    }
    Some(if message.message_type() == kind {
        Ok(body)
    } else {
        Err(damaged())
    })
}

/// A part of a list.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    bodies: Vec<&'a [u8]>,
    is_last: bool,
    /// The list changed while the kernel went through it: an entry may be missing.
    has_changed: bool,
}

/// The entries in what a socket received, or the kernel's refusal. What answers another request is left out.
fn part_of(mut bytes: &[u8], sequence_number: u32, kind: u16) -> io::Result<Part<'_>> {
    let mut part = Part {
        bodies: Vec::new(),
        is_last: false,
        has_changed: false,
    };
    while !bytes.is_empty() && !part.is_last {
        let message = NetlinkBuffer::new_checked(bytes).map_err(|_| damaged())?;
        let length = message.length() as usize;
        if message.sequence_number() == sequence_number {
            part.has_changed |= message.flags() & NLM_F_DUMP_INTR != 0;
            let body = &bytes[HEADER_SIZE..length];
            let code = || body.first_chunk().copied().map_or(0, i32::from_ne_bytes);
            match message.message_type() {
                // The end may say as well that the list could not be finished.
                NLMSG_ERROR | NLMSG_DONE if code() < 0 => {
                    return Err(io::Error::from_raw_os_error(code().saturating_neg()));
                }
                NLMSG_DONE => part.is_last = true,
                found if found == kind => part.bodies.push(body),
                _ => return Err(damaged()),
            }
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(part)
}

fn damaged() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NEW_GENERATION: u16 = 10 << 8 | 15;
    const GENERATION_ID: u16 = 1;

    /// What Linux 6.18 answered to request 7 for nftables' generation: it is 1, a process and its name.
    const ANSWER: &str = "300000000f0a00000700000094370000000000010800010000000001\
                          08000200000037940c000300707974686f6e3300";

    /// What it answered to request 8, of a kind that there is not.
    const REFUSAL: &str = "28000000020000000800000094370000eaffffff14000000630a0100080000000000\
                           000000000000";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex
            .chars()
            .filter_map(|digit| digit.to_digit(16))
            .map(|digit| u8::try_from(digit).unwrap())
            .collect();
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    }

    #[test]
    fn an_attribute_is_found_behind_the_answers_own_header() {
        let answer = bytes(ANSWER);
        let body = body_of(&answer, 7, NEW_GENERATION).unwrap().unwrap();
        let attribute = |kind| netlink_attribute(body, 4, kind);
        assert_eq!(attribute(GENERATION_ID).unwrap(), [0, 0, 0, 1]);
        assert_eq!(attribute(3).unwrap(), b"python3\0");
        assert_eq!(attribute(4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(body_of(&answer, 8, NEW_GENERATION).is_none());
        assert!(body_of(&answer, 7, 92).unwrap().is_err());
    }

    #[test]
    fn a_refusal_is_the_kernels_error() {
        let refusal = bytes(REFUSAL);
        let error = body_of(&refusal, 8, NEW_GENERATION).unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn the_kernel_answers_and_refuses() {
        const RTM_GETSTATS: u16 = 94;
        const RTM_NEWSTATS: u16 = 92;
        let mut netlink = Netlink::route().unwrap();
        let of_interface = |index: u32| {
            let mut body = vec![0; 4];
            body.extend(index.to_ne_bytes());
            body.extend(1_u32.to_ne_bytes());
            body
        };
        let answer = netlink
            .ask(RTM_GETSTATS, &of_interface(1), RTM_NEWSTATS)
            .unwrap();
        assert!(netlink_attribute(&answer, 12, 1).unwrap().len() >= 23 * 8);
        let error = netlink
            .ask(RTM_GETSTATS, &of_interface(0x7fff_ffff), RTM_NEWSTATS)
            .unwrap_err();
        assert_eq!(error.raw_os_error(), Some(19));
    }

    #[test]
    fn a_list_is_read_part_by_part() {
        const ENTRY: u16 = 16;
        let mut bytes = message(ENTRY, NLM_F_DUMP_INTR, 6, &[9; 4]);
        bytes.extend(message(ENTRY, 0, 7, &[1; 4]));
        bytes.extend(message(ENTRY, 0, 7, &[2; 8]));
        let mut part = Part {
            bodies: vec![&[1; 4], &[2; 8]],
            is_last: false,
            has_changed: false,
        };
        assert_eq!(part_of(&bytes, 7, ENTRY).unwrap(), part);
        let mut ended = bytes.clone();
        ended.extend(message(NLMSG_DONE, NLM_F_DUMP_INTR, 7, &[0; 4]));
        (part.is_last, part.has_changed) = (true, true);
        assert_eq!(part_of(&ended, 7, ENTRY).unwrap(), part);
        for kind in [NLMSG_DONE, NLMSG_ERROR] {
            let refusal = message(kind, 0, 7, &(-1_i32).to_ne_bytes());
            let error = part_of(&refusal, 7, ENTRY).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
        bytes.pop();
        assert!(part_of(&bytes, 7, ENTRY).is_err());
    }

    #[test]
    fn the_kernel_lists_interfaces() {
        const RTM_GETLINK: u16 = 18;
        const RTM_NEWLINK: u16 = 16;
        let mut netlink = Netlink::route().unwrap();
        let name_of = |body: &[u8]| netlink_attribute(body, 16, 3).map(<[u8]>::to_vec);
        let names = netlink.list(RTM_GETLINK, &[0; 16], RTM_NEWLINK, name_of);
        assert!(names.unwrap().contains(&b"lo\0".to_vec()));
        let refused = netlink.list(RTM_GETLINK, &[0; 16], 4711, |_| Ok(()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn any_part_of_a_list_is_read_or_refused(
            bytes: Vec<u8>,
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
        ) {
            let _ = part_of(&bytes, 0, 0);
            let _: Vec<_> = netlink_attributes(&bytes).collect();
            let mut own = Vec::new();
            for body in &bodies {
                own.extend(message(16, 0, 5, body));
                own.resize(own.len().next_multiple_of(4), 0);
            }
            let part = part_of(&own, 5, 16).unwrap();
            prop_assert_eq!(part.bodies, bodies);
        }

        #[test]
        fn any_answer_is_read_or_refused(
            bytes: Vec<u8>,
            sequence_number: u32,
            header_size in 0_usize..40,
            kind in 0_u16..4,
        ) {
            let _ = body_of(&bytes, sequence_number, kind);
            let own = message(kind, NLM_F_REQUEST, sequence_number, &bytes);
            if kind != NLMSG_ERROR {
                prop_assert_eq!(body_of(&own, sequence_number, kind).unwrap().unwrap(), &bytes);
            }
            let _ = netlink_attribute(&bytes, header_size, kind);
        }
    }
}
