//! How hosts are reached: by ports that must not take a load.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fwdlab_model::check_interface;
use fwdlab_traffic::{Network, PUBLIC_ADDRESSES, TcpConnection, ssh_connection};

use super::ssh::Connection;
use crate::LabError;
use crate::cabling::Port;

/// Prints the ssh connection that the command came over.
pub(super) const SESSION: [&str; 3] = ["sh", "-c", "echo \"$SSH_CONNECTION\""];

/// Refuses ports of a host through which its default routes or its ssh clients come, this connection among them; what
/// shares a device with a port counts as the port. Nor may another device take a port's frames.
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
        let why = match (network.needed(port), network.master(port)) {
            (None, None) => continue,
            (None, Some(master)) => taken_by(port, master),
            (Some(needed), _) if needed.is_by_ssh() => format!(
                "{}, and a load would cut it off; reach it through an admin network of its own",
                needed.told_of(port)
            ),
            (Some(needed), _) => format!(
                "{}, which a load could cut off; name the interfaces between {between} in the lab file",
                needed.told_of(port)
            ),
        };
        return Err(connection.wrong(why));
    }
    Ok(())
}

/// What is wrong with a port whose frames another device takes, and what to do.
pub(super) fn taken_by(port: &str, master: &str) -> String {
    format!(
        "{port} is a port of {master}, which takes the frames that come in there; take it out for the measurement (`ip link set \
         dev {port} nomaster`, on FreeBSD `ifconfig {master} deletem {port}`, of a lagg `-laggport {port}`), or use another \
         port"
    )
}

/// Notes why a port is not set down: a run refuses it, or its owner uses it.
///
/// Addresses of a link alone are no use: a port has them by itself.
pub(super) fn kept(port: &mut Port, network: &Network, addresses: &[(String, IpAddr)]) {
    let name = &port.name;
    let master = || Some(taken_by(name, network.master(name)?));
    let unnamed = || {
        let rule = check_interface(name).err()?;
        Some(format!(
            "a lab file cannot name {name:?}: {rule}; rename it, or use another port"
        ))
    };
    let needed = network.needed(name).map(|needed| needed.told_of(name));
    port.refused = needed.or_else(master).or_else(unnamed);
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

#[cfg(test)]
mod tests {
    use fwdlab_traffic::Route;

    use super::*;

    /// Why a port is refused, and why it is not set down.
    fn why(network: &Network, name: &str, on_top: Option<&str>) -> [Option<String>; 2] {
        let mut port = Port {
            name: name.to_owned(),
            kept: on_top.map(|upper| format!("{upper} is on top of it")),
            ..Port::default()
        };
        kept(&mut port, network, &[]);
        [port.refused, port.kept]
    }

    #[test]
    fn ports_that_no_run_takes_are_left_out_with_why() {
        let mut network = Network::default();
        for (upper, lower) in [("br0", "eth0"), ("br1", "eth1"), ("eth2.10", "eth2")] {
            network.add_stacked(upper, lower);
        }
        network.add_master("br0", "eth0");
        network.add_master("br1", "eth1");
        let destination = (any(false), 0);
        let table = None;
        network.add_route("br0", Route { destination, table });
        for (name, on_top, expected) in [
            (
                "eth0",
                Some("br0"),
                "a default route leads through br0 on top of eth0",
            ),
            ("eth1", Some("br1"), "eth1 is a port of br1, which takes"),
            (
                "eth3@lan",
                None,
                "a lab file cannot name \"eth3@lan\": names are made of",
            ),
        ] {
            let [refused, kept] = why(&network, name, on_top);
            assert_eq!(refused, kept);
            let refused = refused.unwrap_or_default();
            assert!(refused.starts_with(expected), "{refused}");
        }
        let on_top = "eth2.10 is on top of it".to_owned();
        let seen = why(&network, "eth2", Some("eth2.10"));
        assert_eq!(seen, [None, Some(on_top)]);
        assert_eq!(why(&network, "eth4", None), [None, None]);
    }
}
