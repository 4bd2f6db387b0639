//! The interlock: an interface by which a machine is reached is no place for a load.

mod network;
mod rtnetlink;
mod sessions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{env, fs, io};

use fwdlab_sys::Netlink;

pub use network::{Needed, Network, PUBLIC_ADDRESSES, Route};
pub use sessions::{SSH_PORT, TcpConnection, established, is_ssh_server, ssh_connection};

use crate::TrafficError;
use rtnetlink::{Hop, Link, hops, hops_to, links, next_hops};

const TCP: &str = "/proc/thread-self/net/tcp";
const TCP6: &str = "/proc/thread-self/net/tcp6";

/// Refuses an interface whose load could cut the machine off.
///
/// To be asked on a thread in the interface's namespace, of which alone it knows. An interface is refused when it, or
/// a device that shares it, carries a default route or what does the same, in whichever table; when the kernel sends
/// to public addresses through it; and when an ssh client is reached through it, or reaches an address on it.
///
/// The name is the interface's first: the kernel takes alternative names too, of which the routes say nothing.
///
/// # Errors
/// `Needed`; `NoSuchInterface`; `Unknown` where the kernel does not say, and no interface is known to be safe.
pub fn refuse_needed(interface: &str) -> Result<(), TrafficError> {
    match this_machine(interface)?.needed(interface) {
        None => Ok(()),
        Some(needed) => Err(TrafficError::Needed {
            interface: interface.to_owned(),
            needed,
        }),
    }
}

/// The device that takes the frames of an interface: a bridge, a bond, a team; none where it has them itself, also as a
/// member of a VRF. To be asked as [`refuse_needed`].
///
/// # Errors
/// As of [`refuse_needed`], but `Needed`.
pub fn master_of(interface: &str) -> Result<Option<String>, TrafficError> {
    Ok(this_machine(interface)?
        .master(interface)
        .map(str::to_owned))
}

/// The calling thread's namespace, which has an interface.
fn this_machine(interface: &str) -> Result<Network, TrafficError> {
    let unknown = |what: &str| {
        let what = what.to_owned();
        |source| TrafficError::Unknown { what, source }
    };
    let mut network = Network::default();
    let mut netlink = Netlink::route().map_err(unknown("opening rtnetlink"))?;
    let links = links(&mut netlink).map_err(unknown("listing the interfaces"))?;
    if !links.iter().any(|link| link.name == interface) {
        let interface = interface.to_owned();
        return Err(TrafficError::NoSuchInterface { interface });
    }
    let links: BTreeMap<u32, Link> = links.into_iter().map(|link| (link.index, link)).collect();
    for (upper, lower) in links.values().flat_map(|link| link.stacked(&links)) {
        network.add_stacked(upper, lower);
    }
    for link in links.values() {
        if let Some(master) = link.master(&links) {
            network.add_master(master, &link.name);
        }
        if let Some(other) = link.other_end(&links) {
            network.add_cable(&link.name, other);
        }
    }
    let mut hops = hops(&mut netlink).map_err(unknown("listing the routes"))?;
    hops.retain(|hop| !hop.is_connected);
    for_each_device(&mut netlink, &links, &hops, |device, hop| {
        let route = Route {
            destination: hop.destination,
            table: hop.table.map(|table| table.to_string().into()),
        };
        network.add_route(device, route);
    })
    .map_err(unknown("listing the next hops"))?;
    for address in PUBLIC_ADDRESSES {
        let mut hops = hops_to(&mut netlink, address, None)
            .map_err(unknown(&format!("looking up the route to {address}")))?;
        hops.retain(|hop| !hop.is_connected);
        for_each_device(&mut netlink, &links, &hops, |device, _| {
            network.add_public(device, address);
        })
        .map_err(unknown("listing the next hops"))?;
    }
    let session = env::var("SSH_CONNECTION").unwrap_or_default();
    let session = ssh_connection(&session);
    let clients = ssh_clients(session).map_err(unknown("reading the TCP connections"))?;
    let addresses = fwdlab_sys::addresses()?;
    // Of a namespace that the session did not come into, its address may be unknown here, and no route to its client is
    // to be looked up.
    let _ = network.add_clients(session.into_iter().collect(), &addresses);
    for client in network.add_clients(clients, &addresses) {
        let hops = hops_to(&mut netlink, client.peer, Some(client.local))
            .map_err(unknown(&format!("looking up the route to {}", client.peer)))?;
        for_each_device(&mut netlink, &links, &hops, |device, _| {
            network.add_client(device, client.peer);
        })
        .map_err(unknown("listing the next hops"))?;
    }
    Ok(network)
}

fn for_each_device(
    netlink: &mut Netlink,
    links: &BTreeMap<u32, Link>,
    hops: &[Hop],
    mut note: impl FnMut(&str, &Hop),
) -> io::Result<()> {
    let next_hops = next_hops(netlink, hops)?;
    for hop in hops {
        for device in next_hops.devices(hop) {
            if let Some(link) = links.get(&device) {
                note(&link.name, hop);
            }
        }
    }
    Ok(())
}

/// The established connections of ssh clients in this namespace: those that a server of ssh holds, and those at ssh's
/// port or at that of this session, because another user's server, or one outside the container, does not show.
fn ssh_clients(session: Option<TcpConnection>) -> io::Result<Vec<TcpConnection>> {
    let mut connections = connections(TCP)?;
    match self::connections(TCP6) {
        Ok(inet6) => connections.extend(inet6),
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let ports = [
        SSH_PORT,
        session.map_or(SSH_PORT, |session| session.local_port),
    ];
    let servers = if connections.is_empty() {
        BTreeSet::new()
    } else {
        ssh_sockets()
    };
    connections.retain(|connection| {
        ports.contains(&connection.local_port) || servers.contains(&connection.inode)
    });
    Ok(connections)
}

fn connections(file: &str) -> io::Result<Vec<TcpConnection>> {
    let text = fs::read_to_string(file)?;
    established(&text).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}

/// The sockets of all servers of ssh that this user may look at.
fn ssh_sockets() -> BTreeSet<u64> {
    let mut sockets = BTreeSet::new();
    for process in entries(Path::new("/proc")) {
        let command = fs::read_to_string(process.join("comm")).unwrap_or_default();
        if !is_ssh_server(command.trim_end()) {
            continue;
        }
        for descriptor in entries(&process.join("fd")) {
            let target = fs::read_link(descriptor).unwrap_or_default();
            sockets.extend(target.to_str().and_then(socket));
        }
    }
    sockets
}

fn entries(folder: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path())
}

/// The kernel's number of a socket, which a descriptor links to: `socket:[24590]`.
fn socket(target: &str) -> Option<u64> {
    let number = target.strip_prefix("socket:[")?.strip_suffix(']')?;
    number.parse().ok()
}
