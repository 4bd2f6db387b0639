//! The ports of a FreeBSD DUT: that it can do without them, and what they need for the tester's frames.

use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, DutHost};

use super::text::{Interface, interface, route_interface, static_routes};
use crate::LabError;
use crate::addresses::{Prefix, addresses};
use crate::hosts::dut::{PORTS_TIME_MAX, announce};
use crate::hosts::ssh::Connection;
use crate::hosts::tester::Station;
use crate::journal::Journal;

/// What takes something back that may be gone already; what is left all the same shows in the facts.
const QUIETLY: [&str; 4] = ["sh", "-c", "\"$@\" >/dev/null 2>&1 || :", "sh"];

/// The ports of a host.
pub(super) struct Ports<'a> {
    pub(super) connection: &'a Connection,
    pub(super) of: &'a DutHost,
}

impl Ports<'_> {
    pub(super) fn names(&self) -> [&str; 2] {
        [&self.of.interface_in, &self.of.interface_out]
    }

    /// The interface of a name.
    ///
    /// # Errors
    /// `Host` where there is none.
    pub(super) fn interface(&self, name: &str) -> Result<Interface, LabError> {
        match self.run(&["ifconfig", name]) {
            Ok(text) => Ok(interface(&text)),
            Err(LabError::OnHost { .. }) => Err(self.wrong(format!(
                "it has no interface {name}; `ifconfig -l` lists them"
            ))),
            Err(error) => Err(error),
        }
    }

    /// The station of an interface.
    ///
    /// # Errors
    /// `Host` where it is none of Ethernet.
    pub(super) fn mac(&self, name: &str) -> Result<String, LabError> {
        let mac = self.interface(name)?.mac;
        mac.ok_or_else(|| self.wrong(format!("{name} is no Ethernet interface")))
    }

    /// Refuses ports that lead to the controller, or to the world: they take no load.
    ///
    /// # Errors
    /// `Host` where one does.
    pub(super) fn refuse_if_needed_elsewhere(&self) -> Result<(), LabError> {
        let mut leading = Vec::new();
        for family in ["-4", "-6"] {
            match self.run(&["route", "-n", family, "get", "default"]) {
                Ok(text) => leading.extend(route_interface(&text).map(str::to_owned)),
                // There is no default route.
                Err(LabError::OnHost { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // Client, port, server, port.
        let session = self.run(&["sh", "-c", "echo $SSH_CONNECTION"])?;
        let own = session.split_whitespace().nth(2);
        let own: Option<IpAddr> = own.and_then(|own| own.parse().ok());
        for name in self.names() {
            if leading.iter().any(|leading| leading == name) {
                return Err(self.wrong(format!(
                    "a default route leads through {name}, which a load could cut off; name the interfaces \
                     between the tester's ports in the lab file"
                )));
            }
            let addresses = self.interface(name)?.addresses;
            let mut addresses = addresses.iter().filter_map(|address| address.parse().ok());
            if own.is_some_and(|own| addresses.any(|address: IpAddr| address == own)) {
                return Err(self.wrong(format!(
                    "this connection to it comes in at {name}, and a load would cut it off; reach it through \
                     an admin network of its own"
                )));
            }
        }
        Ok(())
    }

    /// Brings both up where their owner has left them down.
    pub(super) fn bring_up(&self, journal: &mut Journal) -> Result<(), LabError> {
        for name in self.names() {
            if self.interface(name)?.is_up {
                continue;
            }
            let undo = ["ifconfig", name, "down"];
            announce(
                self.connection,
                journal,
                format!("{name} (down)"),
                &undo,
                "",
            )?;
            self.run(&["ifconfig", name, "up"])?;
        }
        Ok(())
    }

    /// Waits until both have a link, and addresses that are proved to be the only ones.
    pub(super) fn await_link(&self) -> Result<(), LabError> {
        let start = Instant::now();
        for name in self.names() {
            loop {
                let now = self.interface(name)?;
                // Not every driver tells.
                let is_linked = now.status.is_none_or(|status| status == "active");
                if is_linked && !now.is_tentative {
                    break;
                }
                if start.elapsed() > PORTS_TIME_MAX {
                    return Err(self.wrong(format!(
                        "{name} has no link; see to its cable and to the tester's port"
                    )));
                }
                sleep(Duration::from_millis(200));
            }
        }
        Ok(())
    }

    /// Gives a family addresses, neighbours and routes.
    pub(super) fn set_up_family(
        &self,
        journal: &mut Journal,
        family: AddressFamily,
        [generator, sink]: [&Station; 2],
    ) -> Result<(), LabError> {
        let own = addresses(family);
        let [name_in, name_out] = self.names();
        let sides = [
            (name_in, own.dut_in, own.generator, generator, own.sources),
            (name_out, own.dut_out, own.sink, sink, own.destinations),
        ];
        for (name, address, neighbour, station, network) in sides {
            self.add_address(journal, family, name, address)?;
            self.add_neighbour(journal, family, name, neighbour, &station.mac)?;
            self.add_route(journal, family, network, neighbour)?;
        }
        Ok(())
    }

    fn add_address(
        &self,
        journal: &mut Journal,
        family: AddressFamily,
        name: &str,
        (address, length): Prefix,
    ) -> Result<(), LabError> {
        let address = address.to_string();
        if self.interface(name)?.addresses.contains(&address) {
            return Ok(());
        }
        let family = word(family);
        let undo = [
            &QUIETLY[..],
            &["ifconfig", name, family, &address, "-alias"],
        ]
        .concat();
        let with_length = format!("{address}/{length}");
        let what = format!("address {with_length} of {name}");
        announce(self.connection, journal, what, &undo, "")?;
        self.run(&["ifconfig", name, family, &with_length, "alias"])
            .map(|_| ())
    }

    fn add_neighbour(
        &self,
        journal: &mut Journal,
        family: AddressFamily,
        name: &str,
        neighbour: IpAddr,
        mac: &str,
    ) -> Result<(), LabError> {
        let neighbour = neighbour.to_string();
        let (program, set) = match family {
            AddressFamily::Inet => ("arp", "-S"),
            AddressFamily::Inet6 => ("ndp", "-s"),
        };
        let undo = [&QUIETLY[..], &[program, "-d", &neighbour]].concat();
        let what = format!("neighbour {neighbour} of {name}");
        announce(self.connection, journal, what, &undo, "")?;
        self.run(&[program, set, &neighbour, mac]).map(|_| ())
    }

    fn add_route(
        &self,
        journal: &mut Journal,
        family: AddressFamily,
        (network, length): Prefix,
        gateway: IpAddr,
    ) -> Result<(), LabError> {
        let (network, gateway) = (format!("{network}/{length}"), gateway.to_string());
        let there = |listed: &str| {
            let mut routes = static_routes(listed).into_iter();
            routes.find(|route| route.destination == network)
        };
        let list = ["netstat", "-rn", "-f", word(family)];
        if let Some(owners) = there(&self.run(&list)?) {
            // It is the owner's, and stays.
            if owners.gateway == gateway {
                return Ok(());
            }
            return Err(self.wrong(format!(
                "it has a route to {network} through {} already, which the lab needs through {gateway}; delete \
                 it, or leave the routes to a set of configuration files",
                owners.gateway
            )));
        }
        let option = match family {
            AddressFamily::Inet => "-4",
            AddressFamily::Inet6 => "-6",
        };
        let route = ["-net", &network, &gateway];
        let undo = [&QUIETLY[..], &["route", "-q", option, "delete"], &route].concat();
        let what = format!("route to {network}");
        announce(self.connection, journal, what, &undo, "")?;
        let add = [&["route", "-q", option, "add"][..], &route].concat();
        let added = self.run(&add);
        // One that is run twice, because the connection broke behind it, finds its route there.
        if let Err(LabError::OnHost { .. }) = added
            && there(&self.run(&list)?).is_some_and(|route| route.gateway == gateway)
        {
            return Ok(());
        }
        added.map(|_| ())
    }

    /// Proves that a set of configuration files routes a family's destinations out of the right port.
    ///
    /// # Errors
    /// `Host` where it does not.
    pub(super) fn prove_routed(&self, family: AddressFamily) -> Result<(), LabError> {
        let (network, _) = addresses(family).destinations;
        let (option, inside) = match network {
            IpAddr::V4(network) => (
                "-4",
                IpAddr::from((u32::from(network) + 0x101).to_be_bytes()),
            ),
            IpAddr::V6(network) => ("-6", IpAddr::from((u128::from(network) + 1).to_be_bytes())),
        };
        let inside = inside.to_string();
        let text = match self.run(&["route", "-n", option, "get", &inside]) {
            Ok(text) => text,
            Err(LabError::OnHost { .. }) => String::new(),
            Err(error) => return Err(error),
        };
        let leads = route_interface(&text).unwrap_or("nowhere");
        if leads == self.of.interface_out {
            return Ok(());
        }
        Err(self.wrong(format!(
            "with its set of configuration files {inside} is routed to {leads}, not to {}; give the set's rc.conf \
             the routes to the destinations, which are {network} and on",
            self.of.interface_out
        )))
    }

    fn run(&self, words: &[&str]) -> Result<String, LabError> {
        self.connection.run(words, "")
    }

    fn wrong(&self, why: String) -> LabError {
        LabError::Host {
            host: self.connection.host().to_owned(),
            why,
        }
    }
}

/// A family's name to FreeBSD's programs.
const fn word(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Inet => "inet",
        AddressFamily::Inet6 => "inet6",
    }
}
