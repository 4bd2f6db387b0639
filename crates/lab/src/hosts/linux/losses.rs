//! What Linux drops of an owner's without a word when a lab's ports are set up and put back: nobody could tell it afterwards,
//! so a DUT that has any of it is refused before anything is changed.
//!
//! # Source
//! Linux. A port that goes down loses its neighbours and their proxies (`neigh_ifdown` in `net/core/neighbour.c`), its routes
//! (`fib_netdev_event` in `net/ipv4/fib_frontend.c`) and its addresses of IPv6 (`addrconf_ifdown` in `net/ipv6/addrconf.c`).
//! One whose last IPv4 address goes loses what there is of IPv4 (`fib_inetaddr_event`), but for routes by next-hop objects
//! (`fib_sync_down_dev` in `net/ipv4/fib_semantics.c`). Those objects go, with all routes by them, when a port loses its link
//! (`nh_netdev_event` in `net/ipv4/nexthop.c`), as many a card does when a program is attached at either end of its cable. An
//! IPv6 address takes the first route to its network along that has neither a gateway nor such an object
//! (`cleanup_prefix_route`, `addrconf_get_prefix_route`).

use std::net::IpAddr;

use fwdlab_model::{AddressFamily, masked};

use super::ports::{
    NEIGHBOURS, NEXT_HOPS, PROXIES, address_in, addresses_of, flags_of, has_address, is_of, is_up,
    owners_neighbours, shown, values, words_of,
};
use super::reached::own_networks;
use crate::LabError;
use crate::addresses::{Prefix, addresses};
use crate::mechanism::question::Answers;
use crate::mechanism::routes::option;
use crate::mechanism::step::owned;

/// Lists the routes of IPv4 that lead through the ports `$0` and `$1`, and some more.
const ROUTES: &str = "ip -o -4 route show table all | grep -F -e \" dev $0\" -e \" dev $1\" || :";
/// Names what is on top of the port `$0`.
const UPPER: &str = "for it in /sys/class/net/\"$0\"/upper_*; do [ ! -e \"$it\" ] || echo \"${it##*/upper_}\"; done";

/// Which of two routes to a network is taken, where nothing else is asked for, and which is that of an address.
const METRIC_OF_INET6: u32 = 1024;
const METRIC_OF_ADDRESS: u32 = 256;

/// What has to be known of the ports.
pub(super) fn questions(ports: [&str; 2], families: &[AddressFamily]) -> Vec<Vec<String>> {
    let mut questions = [&NEIGHBOURS[..], &PROXIES, &NEXT_HOPS].map(owned).to_vec();
    questions.push(routes_of(ports));
    for interface in ports {
        questions.push(flags_of(interface));
        questions.push(addresses_of(interface));
        questions.push(upper_of(interface));
    }
    for &family in families {
        let own = addresses(family);
        for network in [own.sources, own.destinations] {
            questions.push(routes_to(family, network));
        }
        if family == AddressFamily::Inet6 {
            questions.extend([own.dut_in, own.dut_out].map(|of| routes_to(family, of)));
        }
    }
    questions
}

/// Refuses a DUT that would lose something of its owner's.
///
/// # Errors
/// `Host` where it would, and for what the DUT does not tell.
pub(super) fn refuse_losses(
    ports: [&str; 2],
    families: &[AddressFamily],
    answers: &Answers,
) -> Result<(), LabError> {
    for &family in families {
        refuse_another_run(family, answers)?;
    }
    for interface in ports {
        let port = Port::new(interface, answers)?;
        port.refuse_next_hops(answers)?;
        port.refuse_to_set_down(answers)?;
    }
    let [of_in, of_out] = ports;
    for &family in families {
        let own = addresses(family);
        for (interface, address, neighbour, network) in [
            (of_in, own.dut_in, own.generator, own.sources),
            (of_out, own.dut_out, own.sink, own.destinations),
        ] {
            let port = Port::new(interface, answers)?;
            port.refuse_address(family, address, ports, answers)?;
            port.refuse_neighbour(neighbour, answers)?;
            refuse_route(family, network, neighbour, answers)?;
        }
    }
    Ok(())
}

fn is_of_family(family: AddressFamily, line: &str) -> bool {
    let address = words_of(line).first().map(|address| address.parse());
    match family {
        AddressFamily::Inet => matches!(address, Some(Ok(IpAddr::V4(_)))),
        AddressFamily::Inet6 => matches!(address, Some(Ok(IpAddr::V6(_)))),
    }
}

fn routes_of([of_in, of_out]: [&str; 2]) -> Vec<String> {
    owned(&["sh", "-c", ROUTES, of_in, of_out])
}

fn upper_of(interface: &str) -> Vec<String> {
    owned(&["sh", "-c", UPPER, interface])
}

fn routes_to(family: AddressFamily, network: Prefix) -> Vec<String> {
    let network = text_of_network(network);
    owned(&["ip", "-o", option(family), "route", "show", &network])
}

fn text_of_network((address, length): Prefix) -> String {
    format!("{}/{length}", masked(address, length))
}

fn metric(line: &str, by_default: u32) -> u32 {
    let metric = values(&words_of(line), "metric").next();
    let metric = metric.and_then(|metric| metric.parse().ok());
    metric.unwrap_or(by_default)
}

/// Whether fwdlab has added a route.
fn is_of_a_lab(line: &str) -> bool {
    values(&words_of(line), "proto").any(|by| by == super::set_up::ROUTE_PROTOCOL)
}

/// Whether a route has a next-hop object.
fn has_next_hop(line: &str) -> bool {
    values(&words_of(line), "nhid").next().is_some()
}

/// What to do about a route that is not to be there during a run. That of an address comes back with the address alone.
fn deletion_of(route: &str) -> String {
    let words = words_of(route);
    let value = |name| values(&words, name).next();
    let device = value("dev").unwrap_or("its device");
    match (value("proto"), value("src"), value("via")) {
        (Some("kernel"), Some(address), _) => {
            format!(
                "delete the address {address} of {device} for the run, which has brought that route"
            )
        }
        (Some("kernel"), None, _) => {
            format!("delete the address of {device} for the run that has brought that route")
        }
        // BusyBox does not show who made a route.
        (None, Some(address), None) => format!(
            "delete that route for the run, or, if the address {address} of {device} has brought it, that address"
        ),
        _ => "delete that route for the run".to_owned(),
    }
}

/// A port, as it is before anything is changed.
struct Port<'a> {
    interface: &'a str,
    addresses: &'a str,
    /// Set by its owner, its proxies among them.
    neighbours: Vec<&'a str>,
}

impl<'a> Port<'a> {
    fn new(interface: &'a str, answers: &'a Answers) -> Result<Self, LabError> {
        let neighbours = answers.needed(&owned(&NEIGHBOURS))?;
        // A host that does not know any has none.
        let proxies = answers.get(&owned(&PROXIES)).unwrap_or_default();
        let own = owners_neighbours(neighbours, proxies);
        Ok(Self {
            interface,
            addresses: answers.needed(&addresses_of(interface))?,
            neighbours: own.filter(|line| is_of(interface, line)).collect(),
        })
    }

    /// Refuses what a port would lose with its link.
    fn refuse_next_hops(&self, answers: &Answers) -> Result<(), LabError> {
        let interface = self.interface;
        // A host that does not know any has none.
        let listed = answers.get(&owned(&NEXT_HOPS)).unwrap_or_default();
        let Some(line) = listed.lines().find(|line| is_of(interface, line)) else {
            return Ok(());
        };
        let id = values(&words_of(line), "id").next().unwrap_or("ID");
        Err(answers.wrong(format!(
            "it has the next hop {:?}, and Linux drops that, with all routes by it, when {interface} loses its link; delete \
             them for the run with `ip nexthop delete id {id}`",
            shown(line)
        )))
    }

    /// Refuses what a port would lose that is set up, and down again after a block.
    fn refuse_to_set_down(&self, answers: &Answers) -> Result<(), LabError> {
        let interface = self.interface;
        if is_up(answers.needed(&flags_of(interface))?) {
            return Ok(());
        }
        let upper = answers.get(&upper_of(interface)).unwrap_or_default();
        let upper = upper.lines().next();
        let mut of_inet6 = self
            .addresses
            .lines()
            .filter(|line| line.contains(" inet6 "));
        let lost = self.neighbours.first().copied().or(of_inet6.next());
        let what = match (lost, upper) {
            (Some(line), _) => format!("{:?} of it", shown(line)),
            (None, Some(upper)) => format!("what {upper} on top of it has"),
            (None, None) => return Ok(()),
        };
        Err(answers.wrong(format!(
            "{interface} is down, and when the lab sets it down again after a block, Linux drops {what}; set it up \
             before the run with `ip link set dev {interface} up`"
        )))
    }

    /// Refuses what a port would lose when the lab's address goes, where that is added.
    fn refuse_address(
        &self,
        family: AddressFamily,
        address: Prefix,
        ports: [&str; 2],
        answers: &Answers,
    ) -> Result<(), LabError> {
        if has_address(self.addresses, address) {
            return Ok(());
        }
        let interface = self.interface;
        let own = address.0.to_string();
        let other = self.addresses.lines().find(|line| {
            address_in(line).is_some_and(|(_, there)| there.split('/').next() == Some(&*own))
        });
        if let Some(line) = other {
            return Err(answers.wrong(format!(
                "{interface} has {:?}, and the lab needs {own}/{}; delete that address for the run, because Linux \
                 would drop both when the lab deletes its own",
                shown(line),
                address.1
            )));
        }
        let lost = match family {
            AddressFamily::Inet => self.lost_with_inet(answers.needed(&routes_of(ports))?),
            AddressFamily::Inet6 => self.lost_with_network(address, answers),
        };
        let Some(line) = lost else {
            return Ok(());
        };
        let what = format!("{own}/{}", address.1);
        let (line, deletion) = (shown(line), deletion_of(line));
        Err(answers.wrong(match family {
            AddressFamily::Inet => format!(
                "{interface} has no IPv4 address, and when the lab takes its own, {what}, away after a block, Linux \
                 drops {line:?}; give {interface} an IPv4 address, or delete that for the run"
            ),
            AddressFamily::Inet6 => format!(
                "when the lab takes its address {what} of {interface} away after a block, Linux drops {line:?}; \
                 {deletion}, or give the route a metric above {METRIC_OF_ADDRESS}"
            ),
        }))
    }

    /// What of IPv4 goes with a port's last address.
    fn lost_with_inet(&self, routes: &'a str) -> Option<&'a str> {
        if self.addresses.contains(" inet ") {
            return None;
        }
        let mut neighbours = self.neighbours.iter().copied();
        let neighbour = neighbours.find(|line| is_of_family(AddressFamily::Inet, line));
        let mut routes = routes.lines();
        neighbour.or_else(|| routes.find(|line| is_of(self.interface, line) && !has_next_hop(line)))
    }

    /// The owner's route that goes with an address of IPv6.
    fn lost_with_network(
        &self,
        (address, length): Prefix,
        answers: &'a Answers,
    ) -> Option<&'a str> {
        let network = (masked(address, length), length);
        if own_networks(self.addresses).contains(&(self.interface, network)) {
            return None;
        }
        let routes = answers.get(&routes_to(AddressFamily::Inet6, network));
        let mut routes = routes.unwrap_or_default().lines();
        routes.find(|line| {
            is_of(self.interface, line)
                && metric(line, METRIC_OF_INET6) <= METRIC_OF_ADDRESS
                && values(&words_of(line), "via").next().is_none()
                && !has_next_hop(line)
        })
    }

    /// Refuses a neighbour that the lab would replace.
    fn refuse_neighbour(&self, neighbour: IpAddr, answers: &Answers) -> Result<(), LabError> {
        let neighbour = neighbour.to_string();
        let is_same =
            |line: &&&str| words_of(line).first() == Some(&&*neighbour) && !line.contains(" proxy");
        match self.neighbours.iter().find(is_same) {
            None => Ok(()),
            Some(line) => Err(answers.wrong(format!(
                "it has the neighbour {:?} already, which the lab would replace by its tester; delete it for the run \
                 with `ip neigh delete {neighbour} dev {}`",
                shown(line),
                self.interface
            ))),
        }
    }
}

/// Refuses a DUT with routes of a lab: this run has added none yet, and has put back what this controller left.
fn refuse_another_run(family: AddressFamily, answers: &Answers) -> Result<(), LabError> {
    let own = addresses(family);
    for network in [own.sources, own.destinations] {
        let routes = answers.get(&routes_to(family, network));
        let mut routes = routes.unwrap_or_default().lines();
        if let Some(line) = routes.find(|line| is_of_a_lab(line)) {
            return Err(answers.wrong(format!(
                "it has the route {:?}, which fwdlab adds for a run: another run may be measuring there; wait until it has \
                 ended, or, if it was killed, run `fwdlab restore` on its controller. Only where `fwdlab restore --list LAB` \
                 lists nothing, `ip {} route flush proto {}` deletes it",
                shown(line),
                option(family),
                super::set_up::ROUTE_PROTOCOL
            )));
        }
    }
    Ok(())
}

/// Refuses a route that is in the way of the lab's to the same network.
fn refuse_route(
    family: AddressFamily,
    network: Prefix,
    gateway: IpAddr,
    answers: &Answers,
) -> Result<(), LabError> {
    let by_default = match family {
        AddressFamily::Inet => 0,
        AddressFamily::Inet6 => METRIC_OF_INET6,
    };
    let routes = answers.get(&routes_to(family, network)).unwrap_or_default();
    let mut routes = routes.lines();
    match routes.find(|line| metric(line, by_default) <= by_default) {
        None => Ok(()),
        Some(line) => Err(answers.wrong(format!(
            "it has the route {:?} already, and the lab needs {} through {gateway}; {}, or give the route a metric above \
             {by_default}",
            shown(line),
            text_of_network(network),
            deletion_of(line)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: [&str; 2] = ["eth1", "eth2"];

    /// Why a DUT is refused whose ports are up, but for those that are named, and that lists this besides.
    fn why(down: &[&str], listed: &[(Vec<String>, &str)]) -> Option<String> {
        let families = [AddressFamily::Inet, AddressFamily::Inet6];
        let mut answers = Answers::of("router", []);
        for question in questions(PORTS, &families) {
            answers.printed.insert(question, Some(String::new()));
        }
        for interface in PORTS {
            let flags = if down.contains(&interface) {
                "0x1002"
            } else {
                "0x1003"
            };
            let flags = Some(flags.to_owned());
            answers.printed.insert(flags_of(interface), flags);
        }
        for (question, answer) in listed {
            let answer = Some((*answer).to_owned());
            assert!(
                answers.printed.insert(question.clone(), answer).is_some(),
                "{question:?}"
            );
        }
        let refused = refuse_losses(PORTS, &families, &answers);
        refused.err().map(|error| error.to_string())
    }

    const ADDRESS: &str = "3: eth1    inet 192.0.2.7/24 scope global eth1";

    // What `ip` of iproute2 6.1 and BusyBox's print, tried with Linux 6.12: each is gone after the lab's changes were undone.
    #[test]
    fn what_linux_would_drop_is_refused_with_its_line() {
        let (inet, inet6) = (AddressFamily::Inet, AddressFamily::Inet6);
        let network = |text: &str, length| (text.parse().unwrap(), length);
        let sources = || routes_to(inet, network("198.18.0.0", 16));
        for (down, question, line, expected) in [
            (
                &[][..],
                owned(&NEIGHBOURS),
                "192.0.2.9 dev eth1 lladdr 02:00:00:00:00:09 PERMANENT",
                "eth1 has no IPv4 address, and when the lab takes its own, 198.18.0.2/24, away after a block, Linux \
                 drops \"192.0.2.9 dev eth1 lladdr 02:00:00:00:00:09 PERMANENT\"; give eth1 an IPv4 address",
            ),
            (
                &[],
                owned(&PROXIES),
                "192.0.2.9 dev eth2 proxy",
                "eth2 has no IPv4 address",
            ),
            (
                &[],
                routes_of(PORTS),
                "10.2.0.0/16 dev eth2 scope link",
                "eth2 has no IPv4 address",
            ),
            (
                &[],
                routes_of(PORTS),
                "10.77.0.0/16 \\\tnexthop dev eth1 weight 1 \\\tnexthop dev lo weight 1",
                "drops \"10.77.0.0/16 nexthop dev eth1 weight 1 nexthop dev lo weight 1\"",
            ),
            (
                &["eth2"],
                owned(&NEIGHBOURS),
                "2001:db8::9 dev eth2 lladdr 02:00:00:00:00:09 used 0/0/0 probes 0 PERMANENT",
                "eth2 is down, and when the lab sets it down again after a block, Linux drops \"2001:db8::9 dev eth2",
            ),
            (
                &["eth2"],
                owned(&PROXIES),
                "2001:db8::9 dev eth2 proxy",
                "eth2 is down",
            ),
            (
                &["eth1"],
                addresses_of("eth1"),
                "3: eth1    inet6 2001:db8::9/64 scope global tentative",
                "Linux drops \"3: eth1 inet6 2001:db8::9/64 scope global tentative\" of it; set it up before the run \
                 with `ip link set dev eth1 up`",
            ),
            (
                &["eth1"],
                upper_of("eth1"),
                "eth1.10",
                "what eth1.10 on top of it has",
            ),
            (
                &[],
                addresses_of("eth1"),
                "3: eth1    inet 198.18.0.2/16 scope global eth1\\       valid_lft forever preferred_lft forever",
                "eth1 has \"3: eth1 inet 198.18.0.2/16 scope global eth1\", and the lab needs 198.18.0.2/24",
            ),
            (
                &[],
                addresses_of("eth1"),
                "3: eth1    inet 198.18.0.2 peer 192.0.2.9/24 scope global eth1",
                "and the lab needs 198.18.0.2/24",
            ),
            (
                &[],
                routes_to(inet6, network("2001:2::", 64)),
                "2001:2::/64 dev eth1 proto static metric 256 pref medium",
                "when the lab takes its address 2001:2::2/64 of eth1 away after a block, Linux drops \"2001:2::/64 dev eth1 \
                 proto static metric 256 pref medium\"; delete that route for the run, or give the route a metric above 256",
            ),
            (
                &[],
                owned(&NEIGHBOURS),
                "2001:2::1 dev eth1 lladdr 02:00:00:00:00:09 managed NOARP",
                "the neighbour \"2001:2::1 dev eth1 lladdr 02:00:00:00:00:09 managed NOARP\" already",
            ),
            (
                &[],
                sources(),
                "198.18.0.0/16 dev eth0 proto kernel scope link src 198.18.0.9",
                "it has the route \"198.18.0.0/16 dev eth0 proto kernel scope link src 198.18.0.9\" already, and the \
                 lab needs 198.18.0.0/16 through 198.18.0.1; delete the address 198.18.0.9 of eth0 for the run, which has \
                 brought that route, or give the route a metric above 0",
            ),
            (
                &[],
                sources(),
                "198.18.0.0/16 dev eth0 scope link  src 198.18.0.9 ",
                "delete that route for the run, or, if the address 198.18.0.9 of eth0 has brought it, that address, or",
            ),
            (
                &[],
                sources(),
                "198.18.0.0/16 nhid 10 via 10.99.1.1 dev admin proto static",
                "through 198.18.0.1; delete that route for the run, or give the route a metric above 0",
            ),
            (
                &[],
                sources(),
                "198.18.0.0/16 via 198.18.0.1 dev eth1 proto 196",
                "another run may be measuring there; wait until it has ended",
            ),
            (
                &[],
                owned(&NEXT_HOPS),
                "id 9 via 192.0.2.1 dev eth10 scope link\nid 10 via 192.0.2.1 dev eth1 scope link",
                "it has the next hop \"id 10 via 192.0.2.1 dev eth1 scope link\", and Linux drops that, with all routes by it, \
                 when eth1 loses its link; delete them for the run with `ip nexthop delete id 10`",
            ),
            (
                &[],
                routes_to(inet6, network("2001:2::", 64)),
                "2001:2::/64 dev eth1 proto kernel metric 256 pref medium",
                "delete the address of eth1 for the run that has brought that route, or give the route a metric above 256",
            ),
            (
                &[],
                sources(),
                "blackhole 198.18.0.0/16",
                "\"blackhole 198.18.0.0/16\" already",
            ),
        ] {
            let why = why(down, &[(question, line)]).unwrap_or_default();
            assert!(why.contains(expected), "{line}: {why}");
        }
    }

    #[test]
    fn what_linux_keeps_is_none_of_the_labs_business() {
        let (inet, inet6) = (AddressFamily::Inet, AddressFamily::Inet6);
        let network = |text: &str, length| (text.parse().unwrap(), length);
        let neighbour = "192.0.2.9 dev eth1 lladdr 02:00:00:00:00:09 PERMANENT";
        for (down, listed) in [
            (&[][..], vec![]),
            (&["eth1", "eth2"], vec![]),
            (
                &[],
                vec![
                    (addresses_of("eth1"), ADDRESS),
                    (owned(&NEIGHBOURS), neighbour),
                ],
            ),
            (&["eth1"], vec![(addresses_of("eth1"), ADDRESS)]),
            (
                &["eth2"],
                vec![(
                    owned(&NEIGHBOURS),
                    "192.0.2.9 dev eth0 lladdr 02:00:00:00:00:09 PERMANENT\n\
                     192.0.2.9 dev eth2 lladdr 02:00:00:00:00:09 STALE\n\
                     ff02::16 dev eth2 lladdr 33:33:00:00:00:16 NOARP\n192.0.2.8 dev eth2 FAILED",
                )],
            ),
            (
                &[],
                vec![(routes_of(PORTS), "10.2.0.0/16 dev eth10 scope link")],
            ),
            (&[], vec![(owned(&PROXIES), "2001:db8::9 dev eth1 proxy")]),
            (
                &[],
                vec![(
                    routes_to(inet, network("198.18.0.0", 16)),
                    "198.18.0.0/16 via 192.0.2.1 dev eth0 metric 50",
                )],
            ),
            (
                &[],
                vec![(
                    routes_to(inet6, network("2001:2::", 64)),
                    "2001:2::/64 dev eth1 proto static metric 300 pref medium",
                )],
            ),
            (
                &[],
                vec![(
                    routes_to(inet6, network("2001:2::", 64)),
                    "2001:2::/64 via fe80::9 dev eth1 metric 256 pref medium\n\
                     2001:2::/64 nhid 12 dev eth1 metric 256 pref medium",
                )],
            ),
            (
                &[],
                vec![
                    (
                        routes_of(PORTS),
                        "10.77.0.0/16 nhid 10 via 192.0.2.2 dev eth1 proto static",
                    ),
                    (
                        owned(&NEXT_HOPS),
                        "id 10 via 192.0.2.2 dev eth10 scope link",
                    ),
                ],
            ),
            (
                &[],
                vec![
                    (
                        routes_to(inet6, network("2001:2::", 64)),
                        "2001:2::/64 dev eth1 proto kernel metric 256",
                    ),
                    (
                        addresses_of("eth1"),
                        "3: eth1    inet6 2001:2::5/64 scope global",
                    ),
                ],
            ),
        ] {
            assert_eq!(why(down, &listed), None, "{listed:?}");
        }
    }
}
