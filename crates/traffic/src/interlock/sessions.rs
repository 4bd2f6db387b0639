//! Which TCP connections there are, and which of them are of ssh.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where sshd listens unless somebody has told it otherwise.
pub const SSH_PORT: u16 = 22;

/// The state of an established connection in the kernel's tables.
const ESTABLISHED: &str = "01";

/// An established connection, seen from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TcpConnection {
    /// The machine's address.
    pub local: IpAddr,
    /// The machine's port.
    pub local_port: u16,
    /// The other end.
    pub peer: IpAddr,
    /// The kernel's number of its socket.
    pub inode: u64,
}

impl TcpConnection {
    /// Whether routes tell where the other end is: they do not of an address that holds on one link only, whichever it is.
    #[must_use]
    pub fn is_routed(&self) -> bool {
        match self.peer {
            IpAddr::V4(peer) => !peer.is_link_local(),
            IpAddr::V6(peer) => !peer.is_unicast_link_local(),
        }
    }
}

/// Reads the established connections in the text of Linux's `/proc/net/tcp` or `/proc/net/tcp6`.
///
/// # Errors
/// The line that is none of the kernel's.
pub fn established(table: &str) -> Result<Vec<TcpConnection>, String> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    let mut connections = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        // The first line names the columns; the tables of both families may follow each other.
        if words[0] == "sl" {
            continue;
        }
        let read = || -> Option<Option<TcpConnection>> {
            let [_, local, peer, state, _, _, _, _, _, inode, ..] = words.as_slice() else {
                return None;
            };
            let (local, local_port) = endpoint(local)?;
            let (peer, _) = endpoint(peer)?;
            let connection = TcpConnection {
                local,
                local_port,
                peer,
                inode: inode.parse().ok()?,
            };
            Some((*state == ESTABLISHED).then_some(connection))
        };
        let connection =
            read().ok_or_else(|| format!("not a line of the kernel's ({line:?} seen)"))?;
        connections.extend(connection);
    }
    Ok(connections)
}

/// An address and a port: `0100007F:0016`. The address is in words of the machine's byte order.
fn endpoint(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| {
        let digits = address.get(8 * at..8 * at + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let address = match address.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            // A server that listens for IPv6 may be talking IPv4.
            IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

/// The connection that a session of ssh came over, as `SSH_CONNECTION` tells it: client, port, server, port.
///
/// Shape: the kernel's number of the socket is not known, and 0.
#[must_use]
pub fn ssh_connection(session: &str) -> Option<TcpConnection> {
    let words: Vec<&str> = session.split_whitespace().collect();
    let [client, _, server, port] = words.as_slice() else {
        return None;
    };
    // An address that holds on one interface only has that behind a percent sign.
    let address = |text: &str| {
        let address: IpAddr = text.split('%').next()?.parse().ok()?;
        Some(address.to_canonical())
    };
    Some(TcpConnection {
        local: address(server)?,
        local_port: port.parse().ok()?,
        peer: address(client)?,
        inode: 0,
    })
}

/// Whether a process of this name answers ssh clients.
#[must_use]
pub fn is_ssh_server(command: &str) -> bool {
    // OpenSSH 9.8 has split it: sshd, sshd-session, sshd-auth.
    command.starts_with("sshd") || command == "dropbear"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What Linux 6.18 showed; words of addresses in the byte order of most machines.
    const TABLES: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     \n   \
0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1180 1 0000000000000000 100 0 0 10 0                      \n   \
1: 020200C0:0016 070200C0:C350 01 00000000:00000000 02:000A7D8C 00000000     0        0 24590 4 0000000000000000 20 4 31 10 -1                    \n  \
sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
0: 0000000000000000FFFF0000020200C0:08AE 0000000000000000FFFF0000080200C0:C351 01 00000000:00000000 00:00000000 00000000     0        0 24591 1 0000000000000000 20 0 0 10 -1\n   \
1: B80D0120000000000000000001000000:0016 B80D0120000000000000000002000000:C352 01 00000000:00000000 00:00000000 00000000     0        0 24592 1 0000000000000000 20 0 0 10 -1\n";

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn established_connections_are_read() {
        let connection = |local, local_port, peer, inode| TcpConnection {
            local: address(local),
            local_port,
            peer: address(peer),
            inode,
        };
        assert_eq!(
            established(TABLES).unwrap(),
            [
                connection("192.0.2.2", 22, "192.0.2.7", 24590),
                connection("192.0.2.2", 2222, "192.0.2.8", 24591),
                connection("2001:db8::1", 22, "2001:db8::2", 24592),
            ]
        );
        assert_eq!(established(""), Ok(Vec::new()));
    }

    #[test]
    fn what_the_kernel_would_not_say_is_refused() {
        for line in ["0: x", "0: 1:1 2:2 01 0 0 0 0 0 7", "\u{1f600}\u{1f600}:1"] {
            let error = established(line).unwrap_err();
            assert!(error.starts_with("not a line of the kernel's"), "{error}");
        }
    }

    #[test]
    fn a_session_tells_its_connection() {
        for (session, expected) in [
            (
                "192.0.2.1 50000 192.0.2.2 2222",
                Some(("192.0.2.2", 2222, "192.0.2.1")),
            ),
            (
                "fe80::1%eth1 50000 fe80::2%eth1 22",
                Some(("fe80::2", 22, "fe80::1")),
            ),
            ("", None),
            ("192.0.2.1 50000", None),
            ("a b c d", None),
        ] {
            let expected = expected.map(|(local, local_port, peer)| TcpConnection {
                local: address(local),
                local_port,
                peer: address(peer),
                inode: 0,
            });
            assert_eq!(ssh_connection(session), expected, "{session}");
        }
        assert!(is_ssh_server("sshd-session") && !is_ssh_server("ssh"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String, words in "([0-9A-F:]{0,40} ?){0,16}") {
            let _ = (established(&text), established(&words), ssh_connection(&text));
        }

        #[test]
        fn a_connection_is_read_back(
            local: [u8; 16],
            peer: [u8; 4],
            local_port: u16,
            inode: u64,
            number: usize,
        ) {
            let hex = |bytes: &[u8]| -> String {
                let words = bytes.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap()));
                words.map(|word| format!("{word:08X}")).collect()
            };
            let local_hex = hex(&local);
            let mapped = Ipv4Addr::from(peer).to_ipv6_mapped().octets();
            for peer_hex in [hex(&peer), hex(&mapped)] {
                let line = format!(
                    "{number}: {local_hex}:{local_port:04X} {peer_hex}:0001 01 0:0 0:0 0 0 0 {inode} 1"
                );
                let expected = TcpConnection {
                    local: IpAddr::from(local).to_canonical(),
                    local_port,
                    peer: peer.into(),
                    inode,
                };
                prop_assert_eq!(established(&line), Ok(vec![expected]));
                prop_assert_eq!(established(&line.replacen(" 01 ", " 06 ", 1)), Ok(vec![]));
            }
        }
    }
}
