//! What Linux drops of an owner's without a word when a lab's ports are set up and put back: nobody could tell it afterwards,
//! so a DUT that has any of it is refused before anything is changed.
//!
//! # Source
//! Linux. A port that goes down loses its neighbours and their proxies (`neigh_ifdown` in `net/core/neighbour.c`), its routes
//! (`fib_netdev_event` in `net/ipv4/fib_frontend.c`), its next hops (`nh_netdev_event` in `net/ipv4/nexthop.c`) and its
//! addresses of IPv6 (`addrconf_ifdown` in `net/ipv6/addrconf.c`). One whose last IPv4 address goes loses what there is of
//! IPv4 (`fib_inetaddr_event`). An IPv6 address takes the first route to its network along (`cleanup_prefix_route`).

use std::net::IpAddr;

use fwdlab_model::{AddressFamily, masked};

use super::reached::{own_networks, words_of};
use crate::LabError;
use crate::addresses::{Prefix, addresses};
use crate::mechanism::question::Answers;
use crate::mechanism::routes::option;
use crate::mechanism::step::owned;

pub(super) const NEIGHBOURS: [&str; 5] = ["ip", "neigh", "show", "nud", "all"];
/// Lists addresses for which a port answers. BusyBox's `ip` does not know them, the kernel's file of IPv4 has them.
pub(super) const PROXIES: [&str; 3] = [
    "sh",
    "-c",
    "case $(ip 2>&1) in BusyBox*) \
     sed -n 's/^\\([^ ]*\\) .* 0xc .* \\([^ ]*\\)$/\\1 dev \\2 proxy/p' /proc/net/arp ;; \
     *) ip neigh show proxy ;; esac",
];
/// Lists the routes of IPv4 that lead through the ports `$0` and `$1`, and some more.
const ROUTES: &str = "ip -o -4 route show table all | grep -F -e \" dev $0\" -e \" dev $1\" || :";
/// Names what is on top of the port `$0`.
const UPPER: &str = "for it in /sys/class/net/\"$0\"/upper_*; do [ ! -e \"$it\" ] || echo \"${it##*/upper_}\"; done";

/// `IFF_UP` of an interface's flags.
const INTERFACE_UP: u32 = 1;
/// Which of two routes to a network is taken, where nothing else is asked for, and which is that of an address.
const METRIC_OF_INET6: u32 = 1024;
const METRIC_OF_ADDRESS: u32 = 256;

/// What has to be known of the ports.
pub(super) fn questions(ports: [&str; 2], families: &[AddressFamily]) -> Vec<Vec<String>> {
    let mut questions = [&NEIGHBOURS[..], &PROXIES].map(owned).to_vec();
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
    for interface in ports {
        Port::new(interface, answers)?.refuse_to_set_down(answers)?;
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

/// Whether a port is up that answers so to [`flags_of`].
pub(super) fn is_up(flags: &str) -> bool {
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16);
    flags.is_ok_and(|flags| flags & INTERFACE_UP != 0)
}

pub(super) fn flags_of(interface: &str) -> Vec<String> {
    owned(&["cat", &format!("/sys/class/net/{interface}/flags")])
}

pub(super) fn addresses_of(interface: &str) -> Vec<String> {
    owned(&["ip", "-o", "address", "show", "dev", interface])
}

/// Whether a port has an address with this length among those that [`addresses_of`] lists.
pub(super) fn has_address(listed: &str, (address, length): Prefix) -> bool {
    let address = format!("{address}/{length}");
    let mut lines = listed.lines();
    lines.any(|line| local_address(line) == Some(&*address))
}

/// The neighbours and proxies of ports, by the lines of [`NEIGHBOURS`] and [`PROXIES`], that do not come back by
/// themselves.
pub(super) fn owners_neighbours<'a>(
    neighbours: &'a str,
    proxies: &'a str,
) -> impl Iterator<Item = &'a str> {
    let set = neighbours.lines().filter(|line| is_set(line));
    set.chain(proxies.lines()).map(str::trim)
}

/// Whether the words of a line name a device.
pub(super) fn is_of(interface: &str, line: &str) -> bool {
    let words = words_of(line);
    words.windows(2).any(|pair| pair == ["dev", interface])
}

/// Whether somebody has set a neighbour: the kernel resolves the others, but for groups, which it knows.
fn is_set(line: &str) -> bool {
    let words = words_of(line);
    let has = |word: &str| words.contains(&word);
    let lladdr = words.windows(2).find(|pair| pair[0] == "lladdr");
    let is_station = lladdr.is_some_and(|pair| {
        let first = pair[1].get(..2).map(|first| u8::from_str_radix(first, 16));
        matches!(first, Some(Ok(first)) if first & 1 == 0)
    });
    has("PERMANENT") || has("managed") || has("extern_learn") || has("NOARP") && is_station
}

/// `192.0.2.1/24` of `3: eth1    inet 192.0.2.1/24 scope global eth1`; without a length where there is a peer.
fn local_address(line: &str) -> Option<&str> {
    match words_of(line).as_slice() {
        [_, _, "inet" | "inet6", address, ..] => Some(address),
        _ => None,
    }
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
    let words = words_of(line);
    let metric = words.windows(2).find(|pair| pair[0] == "metric");
    let metric = metric.and_then(|pair| pair[1].parse().ok());
    metric.unwrap_or(by_default)
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
            local_address(line).is_some_and(|there| there.split('/').next() == Some(&*own))
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
        let (what, line) = (format!("{own}/{}", address.1), shown(line));
        Err(answers.wrong(match family {
            AddressFamily::Inet => format!(
                "{interface} has no IPv4 address, and when the lab takes its own, {what}, away after a block, Linux \
                 drops {line:?}; give {interface} an IPv4 address, or delete that for the run"
            ),
            AddressFamily::Inet6 => format!(
                "when the lab takes its address {what} of {interface} away after a block, Linux drops {line:?}; delete \
                 that route for the run, or give it a metric above {METRIC_OF_ADDRESS}"
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
        neighbour.or_else(|| routes.find(|line| is_of(self.interface, line)))
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
            is_of(self.interface, line) && metric(line, METRIC_OF_INET6) <= METRIC_OF_ADDRESS
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
    let own = format!(" proto {} ", super::set_up::ROUTE_PROTOCOL);
    let is_in_the_way = |line: &&str| {
        let is_own = format!("{line} ").contains(&own);
        !is_own && metric(line, by_default) <= by_default
    };
    match routes.find(is_in_the_way) {
        None => Ok(()),
        Some(line) => Err(answers.wrong(format!(
            "it has the route {:?} already, and the lab needs {} through {gateway}; delete it for the run, or give it a \
             metric above {by_default}",
            shown(line),
            text_of_network(network)
        ))),
    }
}

/// A line of `ip` as one of a message: of an address without how long it is valid.
pub(super) fn shown(line: &str) -> String {
    let mut words = words_of(line);
    let end = words.iter().position(|word| *word == "valid_lft");
    words.truncate(end.unwrap_or(words.len()));
    words.join(" ")
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
                "when the lab takes its address 2001:2::2/64 of eth1 away after a block, Linux drops \"2001:2::/64 dev",
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
                 lab needs 198.18.0.0/16 through 198.18.0.1; delete it for the run, or give it a metric above 0",
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
                    routes_to(inet, network("198.19.0.0", 16)),
                    "198.19.0.0/16 via 198.19.0.1 dev eth2 proto 196",
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
