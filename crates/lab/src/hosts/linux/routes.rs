//! The experiment's routes in a Linux DUT's tables, beside those of the lab and of its owner.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use fwdlab_model::{AddressFamily, Level};

use super::readings::{Form, Reading};
use super::set_up::option;
use crate::LabError;
use crate::addresses::{Prefix, addresses, own_prefixes, spread_prefixes};
use crate::dut::{OWN_ROUTES, routes_of};
use crate::hosts::dut::{Step, change_all};
use crate::hosts::ssh::{Connection, Errand};
use crate::journal::Journal;

/// Under which they stand (`ip route show proto 197`), so that they can be told from all others.
pub(super) const PROTOCOL: &str = "197";

/// The experiment's routes that stand in the tables of a DUT.
#[derive(Debug, Default)]
pub(super) struct Routes {
    standing: BTreeMap<AddressFamily, Table>,
}

/// The routes of one family.
#[derive(Debug)]
struct Table {
    count: u32,
    /// Networks that have to be reached as before.
    avoided: Vec<Prefix>,
}

impl Routes {
    /// Nothing stands any more.
    pub(super) fn forget(&mut self) {
        self.standing.clear();
    }

    /// Takes note of the networks that the DUT needs, and announces that there will be routes.
    ///
    /// # Errors
    /// Those of the connection and of the journal.
    pub(super) fn set_up(
        &mut self,
        connection: &Connection,
        journal: &mut Journal,
        families: &[AddressFamily],
    ) -> Result<(), LabError> {
        let mut steps = Vec::new();
        // Whoever asks need not be in a network of its own: a default route leads to many.
        let session = connection.run(&["sh", "-c", "echo $SSH_CONNECTION"], "")?;
        for &family in families {
            let of_family = ["ip", option(family), "route"];
            let main = ["flush", "table", "main", "proto", PROTOCOL];
            steps.push(Step {
                what: format!("the experiment's {family} routes"),
                undo: Errand::of(&[&of_family[..], &main].concat()),
                errands: Vec::new(),
            });
            let all = ["show", "table", "all"];
            let table = connection.run(&[&of_family[..], &all].concat(), "")?;
            let mut avoided = networks(&table);
            avoided.extend(networks_of_words(&session));
            avoided.extend(own_prefixes(family));
            self.standing.insert(family, Table { count: 0, avoided });
        }
        change_all(connection, journal, steps)
    }

    /// Has the tables hold so many routes as the level says, those of the lab included.
    ///
    /// # Errors
    /// `Host` where there is no room for them, and what the DUT refuses.
    pub(super) fn apply(
        &mut self,
        connection: &Connection,
        interface_out: &str,
        factor: &str,
        level: &Level,
    ) -> Result<(), LabError> {
        let wanted = added(factor, level)?;
        for (&family, table) in &mut self.standing {
            let gateway = addresses(family).sink;
            let (from, to) = (table.count.min(wanted), table.count.max(wanted));
            let prefixes: Vec<Prefix> = spread_prefixes(family, &table.avoided)
                .skip(from as usize)
                .take((to - from) as usize)
                .collect();
            if prefixes.len() < (to - from) as usize {
                return Err(LabError::Host {
                    host: connection.host().to_owned(),
                    why: format!(
                        "beside the networks that it has routes to there is no room for {wanted} {family} routes"
                    ),
                });
            }
            let mut commands = String::new();
            for (address, length) in prefixes {
                // Done twice it is the same as done once, where a connection breaks.
                let written = if table.count < wanted {
                    writeln!(
                        commands,
                        "route replace {address}/{length} via {gateway} dev {interface_out} proto {PROTOCOL}"
                    )
                } else {
                    writeln!(commands, "route delete {address}/{length} proto {PROTOCOL}")
                };
                written.expect("a string takes all");
            }
            if !commands.is_empty() {
                let words = if table.count < wanted {
                    vec!["ip", option(family), "-batch", "-"]
                } else {
                    // One that has gone already is no error; how many are left is looked at.
                    let script = "ip $0 -force -batch - 2>/dev/null || :";
                    vec!["sh", "-c", script, option(family)]
                };
                connection.run(&words, &commands)?;
            }
            table.count = wanted;
        }
        Ok(())
    }

    /// What reads back how many there are.
    ///
    /// # Errors
    /// `Unbound` where the level is no number of routes.
    pub(super) fn readings(&self, factor: &str, level: &Level) -> Result<Vec<Reading>, LabError> {
        let asked = added(factor, level)?;
        let families = self.standing.keys();
        let readings = families.map(|&family| Reading {
            setting: format!("the number of the experiment's {family} routes"),
            question: count(family),
            asked: asked.to_string(),
            form: Form::Words,
        });
        Ok(readings.collect())
    }
}

/// The command that tells how many of the experiment's routes a family's table holds.
pub(super) fn count(family: AddressFamily) -> Vec<String> {
    let script = "ip -o $0 route show proto $1 | wc -l";
    let words = ["sh", "-c", script, option(family), PROTOCOL];
    words.map(str::to_owned).to_vec()
}

/// How many routes a level adds to those of the lab.
fn added(factor: &str, level: &Level) -> Result<u32, LabError> {
    Ok(routes_of(factor, level)?.saturating_sub(OWN_ROUTES))
}

/// The networks that a table has routes to, but for default routes and those of the experiment.
fn networks(table: &str) -> Vec<Prefix> {
    let is_experiments = |line: &&str| {
        let mut words = line.split_whitespace();
        words.any(|word| word == "proto") && words.next() == Some(PROTOCOL)
    };
    let lines = table.lines().filter(|line| !is_experiments(line));
    // Some have a type in front: local, broadcast, unreachable.
    let first = |line: &str| {
        let mut words = line.split_whitespace().take(2);
        words.find_map(network)
    };
    lines.filter_map(first).collect()
}

/// The addresses among some words.
fn networks_of_words(text: &str) -> impl Iterator<Item = Prefix> {
    text.split_whitespace().filter_map(network)
}

/// An address as it stands in a table, with a length or as that of a host.
fn network(word: &str) -> Option<Prefix> {
    let (address, length) = match word.split_once('/') {
        Some((address, length)) => (address, Some(length.parse().ok()?)),
        None => (word, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(whole);
    (length <= whole).then_some((address, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_networks_of_a_table_are_found() {
        let table = "default via 10.0.0.1 dev admin\n\
             10.0.0.0/24 dev admin proto kernel scope link src 10.0.0.7 \n\
             192.0.2.9 via 10.0.0.3 dev admin\n\
             unreachable 203.0.113.0/24 metric 1\n\
             broadcast 10.0.0.255 dev admin table local proto kernel scope link src 10.0.0.7 \n\
             1.0.0.0/24 via 198.19.0.1 dev eth2 proto 197 \n\
             2001:db8::/32 dev eth9 proto 197x metric 1024 pref medium\n\
             multicast ff00::/8 dev eth9 table local proto kernel metric 256 pref medium\n";
        let expected = [
            ("10.0.0.0", 24),
            ("192.0.2.9", 32),
            ("203.0.113.0", 24),
            ("10.0.0.255", 32),
            ("2001:db8::", 32),
            ("ff00::", 8),
        ];
        let expected = expected.map(|(address, length)| (address.parse().unwrap(), length));
        assert_eq!(networks(table), expected);
        let session = networks_of_words("10.99.1.9 41234 10.99.1.1 22\n");
        let expected = ["10.99.1.9", "10.99.1.1"].map(|word| network(word).unwrap());
        assert!(session.eq(expected));
        for wrong in ["10.0.0.0/33", "::/129", "10.0.0.0/", "/8", "41234", ""] {
            assert_eq!(network(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_table_is_read(table in "(default|proto|197|10\\.0\\.0\\.0/|[0-9a-f:./]|\n| |\\PC){0,60}") {
            prop_assert!(networks(&table).len() <= table.lines().count());
        }
    }
}
