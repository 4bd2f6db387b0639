//! How hosts are reached: by ports that must not take a load.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fwdlab_traffic::{Network, PUBLIC_ADDRESSES, TcpConnection, ssh_connection};

use super::ssh::Connection;
use crate::LabError;
use crate::cabling::Port;

/// Prints the ssh connection that the command came over.
pub(super) const SESSION: [&str; 3] = ["sh", "-c", "echo \"$SSH_CONNECTION\""];

/// Refuses ports of a host through which its default routes or its ssh clients come, this connection among them; what
/// shares a device with a port counts as the port.
///
/// Shape: the places between which the lab file should name interfaces, for the message.
///
/// # Errors
/// `Host` where one is needed.
pub(super) fn refuse_needed(
    connection: &Connection,
    network: &Network,
    ports: &[&str],
    between: &str,
) -> Result<(), LabError> {
    for port in ports {
        let Some(needed) = network.needed(port) else {
            continue;
        };
        let reached = needed.told_of(port);
        let why = if needed.is_by_ssh() {
            format!(
                "{reached}, and a load would cut it off; reach it through an admin network of its own"
            )
        } else {
            format!(
                "{reached}, which a load could cut off; name the interfaces between {between} in the lab file"
            )
        };
        return Err(connection.wrong(why));
    }
    Ok(())
}

/// Notes why a port is not set down: a run refuses it, or its owner uses it.
///
/// Addresses of a link alone are no use: a port has them by itself.
pub(super) fn kept(port: &mut Port, network: &Network, addresses: &[(String, IpAddr)]) {
    let name = &port.name;
    port.refused = network.needed(name).map(|needed| needed.told_of(name));
    let address = addresses.iter().find(|(device, address)| {
        let is_of_link = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        device == name && !is_of_link
    });
    let address = address.map(|(_, address)| format!("it has the address {address}"));
    let route = || {
        let has_route = network.has_route(name);
        has_route.then(|| "a route leads through it".to_owned())
    };
    let own = address.or_else(route).or_else(|| port.kept.take());
    port.kept = port.refused.clone().or(own);
}

/// The address that stands for all of a family.
pub(super) fn any(is_inet6: bool) -> IpAddr {
    if is_inet6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

/// What is to be looked up in a host's routes: each ssh client, and what is public.
pub(super) struct Destinations {
    clients: Vec<TcpConnection>,
}

impl Destinations {
    /// Those of a host with these ssh connections, besides the one that is told by `SSH_CONNECTION`. Devices on which a
    /// client reaches an address are noted at once.
    pub(super) fn new(
        mut clients: Vec<TcpConnection>,
        session: &str,
        addresses: &[(String, IpAddr)],
        network: &mut Network,
    ) -> Self {
        clients.extend(ssh_connection(session));
        Self {
            clients: network.add_clients(clients, addresses),
        }
    }

    /// The commands that look them up, by one that does it for a destination and, if there is one, a source.
    pub(super) fn questions(
        &self,
        lookup: impl Fn(IpAddr, Option<IpAddr>) -> Vec<String>,
    ) -> Vec<Vec<String>> {
        let clients = self.clients.iter();
        let clients = clients.map(|client| lookup(client.peer, Some(client.local)));
        let public = PUBLIC_ADDRESSES
            .iter()
            .map(|address| lookup(*address, None));
        clients.chain(public).collect()
    }

    /// Notes the devices that the answers name, in the order of the questions. Each answer is taken apart into its
    /// devices, and whether they are connected to the destination directly.
    pub(super) fn note(
        &self,
        answers: &[Option<String>],
        devices: impl Fn(&str) -> Vec<(String, bool)>,
        network: &mut Network,
    ) {
        let (of_clients, of_public) = answers.split_at(self.clients.len().min(answers.len()));
        let found = |answer: &Option<String>| devices(answer.as_deref().unwrap_or_default());
        for (client, answer) in self.clients.iter().zip(of_clients) {
            for (device, _) in found(answer) {
                network.add_client(&device, client.peer);
            }
        }
        for (address, answer) in PUBLIC_ADDRESSES.iter().zip(of_public) {
            for (device, is_connected) in found(answer) {
                if !is_connected {
                    network.add_public(&device, *address);
                }
            }
        }
    }
}
