//! The ports of a FreeBSD DUT: that it can do without them, and what they need for the tester's frames.

use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, masked};

use super::look::NAMES;
use super::reached::network;
use super::text::{
    Interface, ListedNeighbour, ListedRoute, interface, listed_routes, route_interface,
    static_neighbours,
};
use crate::LabError;
use crate::addresses::{Prefix, addresses};
use crate::hosts::dut::{OnHost, PORTS_TIME_MAX, no_interface, unless_refused};
use crate::hosts::protocol::Station;
use crate::hosts::reached::refuse_needed;
use crate::mechanism::question::Answers;
use crate::mechanism::routes::option;
use crate::mechanism::step::{Errand, Step, owned};

/// What takes something back that may be gone already; what is left all the same shows in the facts.
const QUIETLY: [&str; 4] = ["sh", "-c", "\"$@\" >/dev/null 2>&1 || :", "sh"];

/// The ports of a host.
pub(super) struct Ports<'a>(pub(super) &'a OnHost);

impl Ports<'_> {
    /// The interface of a name.
    ///
    /// # Errors
    /// `Host` where there is none.
    pub(super) fn interface(&self, name: &str) -> Result<Interface, LabError> {
        let shown = unless_refused(self.run(&["ifconfig", name]))?;
        let shown = shown.map(|text| interface(&text));
        shown.map_err(|_| no_interface(&self.0.connection, name, &NAMES))
    }

    /// The station of an interface.
    ///
    /// # Errors
    /// `Host` where it is none of Ethernet.
    pub(super) fn mac(&self, name: &str) -> Result<String, LabError> {
        let mac = self.interface(name)?.mac;
        mac.ok_or_else(|| {
            self.0
                .connection
                .wrong(format!("{name} is no Ethernet interface"))
        })
    }

    /// Refuses ports that lead to the controller, or to the world: they take no load.
    ///
    /// # Errors
    /// `Host` where one does.
    pub(super) fn refuse_if_needed_elsewhere(&self) -> Result<(), LabError> {
        for name in self.0.ports() {
            self.interface(name)?;
        }
        let network = network(&self.0.connection)?;
        refuse_needed(
            &self.0.connection,
            &network,
            &self.0.ports(),
            "the tester's ports",
        )
    }

    /// Waits until those that are up have a link, and addresses that are proved to be the only ones.
    pub(super) fn await_link(&self) -> Result<(), LabError> {
        let start = Instant::now();
        loop {
            let questions = self.0.ports().map(shown).to_vec();
            let answers = self.0.connection.ask(questions)?;
            let is_ready = |name: &&str| {
                let now = interface(answers.get(&shown(name)).unwrap_or_default());
                // Not every driver tells.
                let is_linked = !now.is_up || now.status.is_none_or(|status| status == "active");
                is_linked && !now.is_tentative
            };
            let Some(name) = self.0.ports().into_iter().find(|name| !is_ready(name)) else {
                return Ok(());
            };
            if start.elapsed() > PORTS_TIME_MAX {
                return Err(self.0.connection.wrong(format!(
                    "{name} has no link; check its cable, and whether the tester's port is set up: a killed `fwdlab lab \
                     new` leaves ports down, which `fwdlab restore` on its controller sets up"
                )));
            }
            sleep(Duration::from_millis(200));
        }
    }

    /// What has to be known before the ports are set up for frames of some families.
    pub(super) fn questions(&self, families: &[AddressFamily]) -> Vec<Vec<String>> {
        let mut questions = self.0.ports().map(shown).to_vec();
        for &family in families {
            questions.extend([routes_of(family), neighbours_of(family)]);
        }
        questions
    }

    /// Brings both up where their owner has left them down.
    ///
    /// # Errors
    /// `Host` for what the DUT does not tell.
    pub(super) fn bring_up(&self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let mut steps = Vec::new();
        for name in self.0.ports() {
            let before = answers.needed(&shown(name))?;
            if interface(before).is_up {
                continue;
            }
            steps.extend(comes_with(name, before));
            steps.push(Step::change(
                format!("{name} (down)"),
                Errand::of(&["ifconfig", name, "down"]),
                vec![Errand::of(&["ifconfig", name, "up"])],
            ));
        }
        Ok(steps)
    }

    /// Gives a family addresses, neighbours and routes.
    ///
    /// # Errors
    /// `Host` where a route leads elsewhere already, where its owner would lose a neighbour, and for what the DUT does not
    /// tell.
    pub(super) fn family(
        &self,
        answers: &Answers,
        family: AddressFamily,
        [generator, sink]: [&Station; 2],
    ) -> Result<Vec<Step>, LabError> {
        let own = addresses(family);
        let [name_in, name_out] = self.0.ports();
        let mut steps = Vec::new();
        for (name, address, neighbour, station, network) in [
            (name_in, own.dut_in, own.generator, generator, own.sources),
            (name_out, own.dut_out, own.sink, sink, own.destinations),
        ] {
            let before = interface(answers.needed(&shown(name))?);
            let has_address =
                has_address(name, &before, address).map_err(|why| answers.wrong(why))?;
            let there = answers.needed(&neighbours_of(family))?;
            let is_lost = |it: &ListedNeighbour<'_>| {
                let mut own = before.addresses.iter();
                // `arp` lists all ports with their own addresses.
                let is_own = it.interface != name || own.any(|(own, _)| it.is_of(*own));
                !is_own && is_lost_with(it, neighbour, address, has_address)
            };
            if let Some(lost) = static_neighbours(there).iter().find(|it| is_lost(it)) {
                let (program, _) = neighbour_program(family);
                // Only fwdlab, or an owner with the same addresses, sets that one.
                let another_run = match lost.is_of(neighbour) {
                    true => "wait if another run of fwdlab is measuring there; otherwise ",
                    false => "",
                };
                return Err(answers.wrong(format!(
                    "`{program} -an` lists the permanent entry {lost}, which FreeBSD drops with the lab's address {} and \
                     neighbour {neighbour} of {name} when they are taken away after a block; {another_run}delete it for the \
                     run with `{program} -d {}`",
                    address.0, lost.address
                )));
            }
            if !has_address {
                if family == AddressFamily::Inet6 && before.is_inet6_off {
                    steps.extend(inet6_step(name, &before));
                }
                steps.push(address_step(family, name, address));
            }
            steps.push(neighbour_step(family, name, neighbour, &station.mac));
            let routes = listed_routes(answers.needed(&routes_of(family))?);
            let network = format!("{}/{}", network.0, network.1);
            let gateway = neighbour.to_string();
            let owners = routes.iter().find(|route| route.destination == network);
            match owners {
                None => steps.push(route_step(family, &network, &gateway)),
                // It is the owner's, and stays.
                Some(owners) if owners.gateway == gateway => {}
                Some(owners) => return Err(answers.wrong(in_the_way(owners, &gateway))),
            }
        }
        Ok(steps)
    }

    /// Proves that the stations are permanent neighbours. `arp -S` ends well where it finds no port for an address.
    ///
    /// # Source
    /// FreeBSD: `set_nl` in `usr.sbin/arp/arp_netlink.c`, from 14 on.
    ///
    /// # Errors
    /// `Host` where one is none.
    pub(super) fn prove_neighbours(
        &self,
        families: &[AddressFamily],
        [generator, sink]: [&Station; 2],
    ) -> Result<(), LabError> {
        let [name_in, name_out] = self.0.ports();
        for &family in families {
            let (program, _) = neighbour_program(family);
            let there = self.run(&[program, "-an"])?;
            let there = static_neighbours(&there);
            let own = addresses(family);
            for (name, neighbour, station) in [
                (name_in, own.generator, generator),
                (name_out, own.sink, sink),
            ] {
                let expected = format!("{neighbour} {} {name}", station.mac);
                if !there
                    .iter()
                    .any(|it| it.to_string().eq_ignore_ascii_case(&expected))
                {
                    return Err(self.0.connection.wrong(format!(
                        "`{program} -an` lists no permanent entry {expected}, which was set; see whether {neighbour} is the \
                         address of another station on that cable, or something else there changes neighbours"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Proves that a set of configuration files routes a family's destinations out of the right port.
    ///
    /// # Errors
    /// `Host` where it does not.
    pub(super) fn prove_routed(&self, family: AddressFamily) -> Result<(), LabError> {
        let (network, _) = addresses(family).destinations;
        let inside = match network {
            IpAddr::V4(network) => IpAddr::from((u32::from(network) + 0x101).to_be_bytes()),
            IpAddr::V6(network) => IpAddr::from((u128::from(network) + 1).to_be_bytes()),
        };
        let (option, inside) = (option(family), inside.to_string());
        let text = unless_refused(self.run(&["route", "-n", option, "get", &inside]))?;
        let text = text.unwrap_or_default();
        let leads = route_interface(&text).unwrap_or("nowhere");
        if leads == self.0.of.interface_out {
            return Ok(());
        }
        Err(self.0.connection.wrong(format!(
            "with its set of configuration files {inside} is routed to {leads}, not to {}; give the set's rc.conf \
             the routes to the destinations, which are {network} and on",
            self.0.of.interface_out
        )))
    }

    fn run(&self, words: &[&str]) -> Result<String, LabError> {
        self.0.connection.run(words, "")
    }
}

/// Takes back what comes by itself with a port's first address of IPv6, or when a port is brought up that has IPv6: the
/// family is on, and the port has a link-local address with its routes and its neighbour entry. None where nothing comes.
/// Addresses go before the family is off again: those that are left stay tentative.
///
/// # Source
/// FreeBSD: `in6_control` in `sys/netinet6/in6.c` (a new address clears `IFDISABLED`), `nd6_ioctl` in
/// `sys/netinet6/nd6.c` (`SIOCSIFINFO_FLAGS`), `in6_ifattach` in `sys/netinet6/in6_ifattach.c` (the address, where there is
/// none of its kind).
fn inet6_step(name: &str, before: &Interface) -> Option<Step> {
    const DELETE: &str = "for address in $(ifconfig \"$0\" inet6 | sed -n 's/.*inet6 \\(fe80:[^ ]*\\).*/\\1/p'); \
                          do ifconfig \"$0\" inet6 \"$address\" -alias; done";
    const SWITCH_OFF: &str = "ifconfig \"$0\" inet6 ifdisabled";
    let is_link_local =
        |(own, _): &_| matches!(own, IpAddr::V6(own) if own.is_unicast_link_local());
    let has_link_local = before.addresses.iter().any(is_link_local);
    let script = match (has_link_local, before.is_inet6_off) {
        (false, false) => DELETE.to_owned(),
        (false, true) => format!("{DELETE}; {SWITCH_OFF}"),
        (true, true) => SWITCH_OFF.to_owned(),
        (true, false) => return None,
    };
    let undo = Errand::of(&["sh", "-c", &script, name]);
    Some(Step::kept(format!("IPv6 of {name}"), undo))
}

/// How IPv6 is of a port that is set up, where an address comes with that; `before` is what `ifconfig` shows of the port.
pub(in crate::hosts) fn comes_with(name: &str, before: &str) -> Option<Step> {
    let before = interface(before);
    if before.is_inet6_off {
        return None;
    }
    inet6_step(name, &before)
}

/// Whether a port has an address of the lab's, or why it may not have it as it has.
///
/// # Source
/// FreeBSD: `in_aifaddr_ioctl` in `sys/netinet/in.c` deletes an address that is set with another length.
fn has_address(name: &str, before: &Interface, (address, length): Prefix) -> Result<bool, String> {
    let mut own = before.addresses.iter();
    match own.find(|(own, _)| *own == address) {
        Some((_, Some(other))) if *other != length => Err(format!(
            "{name} has the address {address}/{other}, and the lab needs {address}/{length}; delete that address for the run \
             with `ifconfig {name} {} {address} -alias`",
            if address.is_ipv4() { "inet" } else { "inet6" }
        )),
        own => Ok(own.is_some()),
    }
}

/// What is wrong with a route to a network that the lab needs through a gateway.
fn in_the_way(route: &ListedRoute<'_>, gateway: &str) -> String {
    let (network, interface) = (route.destination, route.interface);
    if route.is_connected() {
        return format!(
            "{interface} has an address of the network {network}, which the lab needs through {gateway}; delete that address \
             for the run, or leave the routes to a set of configuration files"
        );
    }
    format!(
        "it has a route to {network} through {} already, which the lab needs through {gateway}; delete it, or leave the routes \
         to a set of configuration files",
        route.gateway
    )
}

fn address_step(family: AddressFamily, name: &str, (address, length): Prefix) -> Step {
    let address = address.to_string();
    let with_length = format!("{address}/{length}");
    let set = ["ifconfig", name, family.as_str()];
    Step {
        what: format!("address {with_length} of {name}"),
        undo: quietly(&[&set[..], &[&address, "-alias"]].concat()),
        errands: vec![Errand::of(&[&set[..], &[&with_length, "alias"]].concat())],
        rehearsal: None,
    }
}

/// What sets neighbours of a family, and by which option.
const fn neighbour_program(family: AddressFamily) -> (&'static str, &'static str) {
    match family {
        AddressFamily::Inet => ("arp", "-S"),
        AddressFamily::Inet6 => ("ndp", "-s"),
    }
}

/// Whether a permanent neighbour is gone when the lab's own neighbour and its address are taken away, where the address is the
/// lab's: with the last address of a network go all neighbours in it.
///
/// # Source
/// FreeBSD: `in_scrubprefix` in `sys/netinet/in.c`, `nd6_rem_ifa_lle` in `sys/netinet6/nd6.c`, which free static entries too.
fn is_lost_with(
    there: &ListedNeighbour<'_>,
    neighbour: IpAddr,
    (address, length): Prefix,
    has_address: bool,
) -> bool {
    let Ok(there) = there.address.parse::<IpAddr>() else {
        return false;
    };
    let is_inside = masked(there, length) == masked(address, length);
    there == neighbour || !has_address && is_inside
}

fn neighbours_of(family: AddressFamily) -> Vec<String> {
    let (program, _) = neighbour_program(family);
    owned(&[program, "-an"])
}

fn neighbour_step(family: AddressFamily, name: &str, neighbour: IpAddr, mac: &str) -> Step {
    let neighbour = neighbour.to_string();
    let (program, set) = neighbour_program(family);
    Step::change(
        format!("neighbour {neighbour} of {name}"),
        quietly(&[program, "-d", &neighbour]),
        vec![Errand::of(&[program, set, &neighbour, mac])],
    )
}

fn route_step(family: AddressFamily, network: &str, gateway: &str) -> Step {
    let route = |what| {
        [
            "route",
            "-q",
            option(family),
            what,
            "-net",
            network,
            gateway,
        ]
    };
    let delete = quietly(&route("delete"));
    Step::change(
        format!("route to {network}"),
        delete.clone(),
        // Deleted first, so that it may be done twice: one that is there is refused.
        vec![delete, Errand::of(&route("add"))],
    )
}

/// What takes something back that may be gone already.
fn quietly(words: &[&str]) -> Errand {
    Errand::of(&[&QUIETLY[..], words].concat())
}

fn shown(name: &str) -> Vec<String> {
    owned(&["ifconfig", name])
}

fn routes_of(family: AddressFamily) -> Vec<String> {
    owned(&["netstat", "-rn", "-f", family.as_str()])
}

#[cfg(test)]
mod tests {
    use super::*;

    // FreeBSD, `sys/netinet6/in6.c`, `in6_control`; `sys/netinet6/in6_ifattach.c`, `in6_ifattach`: IFDISABLED goes, and a
    // link-local address comes where there is none.
    #[test]
    fn what_comes_with_ipv6_is_taken_back_and_nothing_else() {
        let script = |text: &str| {
            let step = inet6_step("ix0", &interface(text))?;
            Some(step.undo.words[2].clone())
        };
        let off = "\tnd6 options=9<PERFORMNUD,IFDISABLED>\n";
        let owners = "\tinet6 fe80::1%ix0 prefixlen 64 tentative scopeid 0x1\n";
        let (delete, switch) = ("-alias", "inet6 ifdisabled");
        let both = script(off).unwrap();
        assert!(both.contains(delete) && both.ends_with(switch), "{both}");
        assert!(!script("").unwrap().contains(switch));
        let both_there = script(&format!("{owners}{off}")).unwrap();
        assert!(!both_there.contains(delete) && both_there.ends_with(switch));
        assert_eq!(script(owners), None);
    }

    #[test]
    fn an_address_counts_with_its_length() {
        let has = |line: &str| {
            has_address(
                "ix0",
                &interface(line),
                addresses(AddressFamily::Inet).dut_in,
            )
        };
        assert_eq!(
            has("inet 198.18.0.2 netmask 0xffffff00 broadcast 198.18.0.255"),
            Ok(true)
        );
        assert_eq!(
            has("inet 198.18.0.9 netmask 0xffffff00 broadcast 198.18.0.255"),
            Ok(false)
        );
        assert_eq!(
            has("inet 198.18.0.2 netmask 0xffff0000 broadcast 198.18.255.255").unwrap_err(),
            "ix0 has the address 198.18.0.2/16, and the lab needs 198.18.0.2/24; delete that address for the run with \
             `ifconfig ix0 inet 198.18.0.2 -alias`"
        );
    }

    #[test]
    fn a_route_of_an_address_goes_with_the_address() {
        let text = "Internet:\nDestination        Gateway            Flags     Netif Expire\n\
                    198.18.0.0/16      link#1             U           ix0\n\
                    198.19.0.0/16      192.0.2.1          UG1         igb0\n";
        let why: Vec<String> = listed_routes(text)
            .iter()
            .map(|route| in_the_way(route, "198.18.0.1"))
            .collect();
        assert!(
            why[0].starts_with("ix0 has an address of the network 198.18.0.0/16, which"),
            "{why:?}"
        );
        assert!(
            why[0].contains("delete that address for the run"),
            "{why:?}"
        );
        assert!(
            why[1].contains("a route to 198.19.0.0/16 through 192.0.2.1 already"),
            "{why:?}"
        );
    }

    #[test]
    fn neighbours_go_with_their_network_and_with_the_labs_own() {
        let text = "? (198.18.0.1) at 00:1b:21:c4:95:7a on ix0 permanent published [ethernet]\n\
                    ? (198.18.0.77) at 00:1b:21:c4:95:7a on ix0 permanent [ethernet]\n\
                    ? (192.0.2.1) at 00:1b:21:c4:95:7a on ix0 permanent [ethernet]\n";
        let own = addresses(AddressFamily::Inet);
        let lost = |has_address| {
            let there = static_neighbours(text).into_iter();
            let lost = there.filter(|it| is_lost_with(it, own.generator, own.dut_in, has_address));
            lost.map(|it| it.address).collect::<Vec<_>>()
        };
        assert_eq!(lost(false), ["198.18.0.1", "198.18.0.77"]);
        assert_eq!(lost(true), ["198.18.0.1"]);
    }
}
