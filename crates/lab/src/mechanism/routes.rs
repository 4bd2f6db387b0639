//! The number of routes in the DUT's table.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fwdlab_model::{AddressFamily, DutHost, Level, Variant};

use super::reading::{Form, Reading};
use super::step::{Action, Answers, Errand, Question, Step, owned};
use super::{InNamespace, Mechanism, Site, moved, unbound_level};
use crate::addresses::{Prefix, addresses, own_prefixes, spread_prefixes};
use crate::netlink::{RouteChange, RouteMonitor};
use crate::{LabError, Topology};

/// Routes of the lab's own through a next hop: to the sources and to the destinations.
const OWN_ROUTES: u32 = 2;

/// More would take the kernel gigabytes.
const ROUTES_MAX: u32 = 1_000_000;

/// Those in the table of the DUT's namespace.
pub(super) struct Routes {
    factor: String,
    /// Routes that were added to the lab's own, by family.
    added: BTreeMap<AddressFamily, u32>,
    /// Tells whether a route was changed since the table was read back.
    monitor: Option<RouteMonitor>,
}

impl Routes {
    pub(super) fn new(factor: String) -> Self {
        Self {
            factor,
            added: BTreeMap::new(),
            monitor: None,
        }
    }

    /// How many routes the variant wants, where it says.
    fn wanted(&self, variant: &Variant) -> Result<Option<u32>, LabError> {
        let level = variant.levels.get(&self.factor);
        level
            .map(|level| routes_of(&self.factor, level))
            .transpose()
    }
}

/// How many routes a level is.
///
/// # Errors
/// `Unbound` where it is no number of routes.
fn routes_of(factor: &str, level: &Level) -> Result<u32, LabError> {
    let count = match level {
        Level::Integer(count) => u32::try_from(*count).ok(),
        Level::Text(word) => word.parse().ok(),
        Level::Boolean(_) => None,
    };
    count.ok_or_else(|| unbound_level(factor, level))
}

impl InNamespace for Routes {
    fn unavailable(
        &self,
        _topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        Ok(self.wanted(variant)?.and_then(|count| {
            if count < OWN_ROUTES {
                Some(format!("the lab itself needs {OWN_ROUTES} routes"))
            } else if count > ROUTES_MAX {
                Some(format!("this lab makes at most {ROUTES_MAX} routes"))
            } else {
                None
            }
        }))
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(count) = self.wanted(variant)? else {
            return Ok(());
        };
        // Its notifications would slow the change, and tell nothing.
        self.monitor = None;
        let family = site.family;
        let wanted = count.saturating_sub(OWN_ROUTES);
        let added = self.added.entry(family).or_default();
        let (change, from, to) = if wanted > *added {
            (RouteChange::Add, *added, wanted)
        } else {
            (RouteChange::Delete, wanted, *added)
        };
        let avoided = own_prefixes(family);
        let prefixes = spread_prefixes(family, &avoided)
            .skip(from as usize)
            .take((to - from) as usize);
        site.topology.change_dut_routes(family, change, prefixes)?;
        *added = wanted;
        Ok(())
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(asked) = self.wanted(variant)? else {
            return Ok(());
        };
        // Opened before the routes are counted, so that no change falls in between.
        self.monitor = Some(RouteMonitor::open(site.topology.dut(), site.family)?);
        let seen = site.topology.count_dut_routes(site.family)?;
        if seen == asked {
            return Ok(());
        }
        let setting = format!("the number of {} routes", site.family);
        Err(moved(setting, asked.to_string(), seen.to_string()))
    }

    fn prove_unmoved(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let (Some(asked), Some(monitor)) = (self.wanted(variant)?, &mut self.monitor) else {
            return Ok(());
        };
        if !monitor.saw_a_change()? {
            return Ok(());
        }
        let setting = format!("the {} table of {asked} routes", site.family);
        Err(moved(setting, "unchanged", "changed"))
    }
}

/// Under which the experiment's routes stand in a host's tables (`ip route show proto 197`), so that they can be told from
/// all others.
pub(crate) const PROTOCOL: &str = "197";

/// Those in a Linux host's tables, beside those of the lab and of its owner.
pub(super) struct LinuxRoutes {
    factor: String,
    of: DutHost,
    families: Vec<AddressFamily>,
    standing: BTreeMap<AddressFamily, Table>,
}

/// The routes of one family.
struct Table {
    count: u32,
    /// Networks that have to be reached as before.
    avoided: Vec<Prefix>,
}

impl LinuxRoutes {
    pub(super) fn new(factor: &str, of: &DutHost, families: &[AddressFamily]) -> Self {
        Self {
            factor: factor.to_owned(),
            of: of.clone(),
            families: families.to_vec(),
            standing: BTreeMap::new(),
        }
    }

    /// How many routes the variant adds to those of the lab, where it says.
    fn added(&self, variant: &Variant) -> Result<Option<u32>, LabError> {
        let level = variant.levels.get(&self.factor);
        let count = level.map(|level| routes_of(&self.factor, level));
        Ok(count
            .transpose()?
            .map(|count| count.saturating_sub(OWN_ROUTES)))
    }
}

/// The ssh client may be reachable only by the default route, so its address is avoided as well.
const SESSION: [&str; 3] = ["sh", "-c", "echo $SSH_CONNECTION"];

fn all_of(family: AddressFamily) -> Vec<String> {
    owned(&["ip", option(family), "route", "show", "table", "all"])
}

fn addresses_of(family: AddressFamily) -> Vec<String> {
    owned(&["ip", "-o", option(family), "address", "show"])
}

impl Mechanism for LinuxRoutes {
    fn looks(&self) -> Vec<Question> {
        let families = self.families.iter();
        let tables = families.flat_map(|&family| [all_of(family), addresses_of(family)]);
        let questions = tables.chain([owned(&SESSION)]);
        questions.map(Question::Maybe).collect()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let session = answers.needed(&owned(&SESSION))?;
        let mut steps = Vec::new();
        for &family in &self.families {
            let flush = [
                "ip",
                option(family),
                "route",
                "flush",
                "table",
                "main",
                "proto",
                PROTOCOL,
            ];
            let what = format!("the experiment's {family} routes");
            steps.push(Step::kept(what, Errand::of(&flush)));
            let mut avoided = networks(answers.needed(&all_of(family))?);
            avoided.extend(networks_of_words(session));
            // A port that is down has no route to its network yet.
            let own = answers.needed(&addresses_of(family))?;
            avoided.extend(networks_of_words(own));
            avoided.extend(own_prefixes(family));
            self.standing.insert(family, Table { count: 0, avoided });
        }
        Ok(steps)
    }

    fn forget(&mut self) {
        self.standing.clear();
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let Some(wanted) = self.added(variant)? else {
            return Ok(Vec::new());
        };
        let mut actions = Vec::new();
        for (&family, table) in &mut self.standing {
            let (from, to) = (table.count.min(wanted), table.count.max(wanted));
            if from == to {
                continue;
            }
            let prefixes = spread_prefixes(family, &table.avoided).skip(from as usize);
            let prefixes: Vec<Prefix> = prefixes.take((to - from) as usize).collect();
            if prefixes.len() < (to - from) as usize {
                return Err(LabError::Host {
                    host: self.of.host.clone(),
                    why: format!(
                        "beside the networks that it has routes to there is no room for {wanted} {family} routes"
                    ),
                });
            }
            let is_more = table.count < wanted;
            let commands = prefixes.into_iter().map(|(address, length)| {
                if is_more {
                    // Done twice it is the same as done once, where a connection breaks.
                    let gateway = addresses(family).sink;
                    let interface = &self.of.interface_out;
                    format!(
                        "route replace {address}/{length} via {gateway} dev {interface} proto {PROTOCOL}\n"
                    )
                } else {
                    format!("route delete {address}/{length} proto {PROTOCOL}\n")
                }
            });
            let commands: String = commands.collect();
            let words = if is_more {
                vec!["ip", option(family), "-batch", "-"]
            } else {
                // One that has gone already is no error; how many are left is looked at.
                let script = "ip $0 -force -batch - 2>/dev/null || :";
                vec!["sh", "-c", script, option(family)]
            };
            actions.push(Action::Run(Errand::reading(&words, &commands)));
            table.count = wanted;
        }
        Ok(actions)
    }

    fn readings(&self, variant: &Variant) -> Result<Vec<Reading>, LabError> {
        let Some(asked) = self.added(variant)? else {
            return Ok(Vec::new());
        };
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
pub(crate) fn count(family: AddressFamily) -> Vec<String> {
    let script = "ip -o $0 route show proto $1 | wc -l";
    owned(&["sh", "-c", script, option(family), PROTOCOL])
}

/// The option of `ip` for a family.
pub(crate) const fn option(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Inet => "-4",
        AddressFamily::Inet6 => "-6",
    }
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
