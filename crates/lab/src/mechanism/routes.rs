//! The number of routes in the DUT's table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use fwdlab_model::{AddressFamily, Level, Variant};

use super::question::{Answers, Look, Question};
use super::reading::{Form, Reading};
use super::step::{Action, Errand, Step, owned};
use super::tools::Tool;
use super::transport::{Watch, Watched};
use super::{DutPlace, Mechanism, unbound_level};
use crate::LabError;
use crate::addresses::{Prefix, addresses, own_prefixes, spread_prefixes};
use crate::netlink::RouteChange;

/// Routes of the lab's own through a next hop: to the sources and to the destinations.
const OWN_ROUTES: u32 = 2;

/// More would take the kernel gigabytes.
const ROUTES_MAX: u32 = 1_000_000;

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

/// Under which the experiment's routes stand in a host's tables (`ip route show proto 197`), so that they can be told from
/// all others.
pub(crate) const PROTOCOL: &str = "197";

/// Those in a Linux kernel's tables, beside those of the lab and of its owner.
pub(super) struct LinuxRoutes {
    factor: String,
    place: DutPlace,
    /// Those whose frames are forwarded.
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
    pub(super) fn new(factor: &str, place: &DutPlace, families: &[AddressFamily]) -> Self {
        let mut routes = Self {
            factor: factor.to_owned(),
            place: place.clone(),
            families: families.to_vec(),
            standing: BTreeMap::new(),
        };
        if place.is_namespace {
            // Nothing is there beside the lab's.
            for &family in families {
                routes.add_table(family, own_prefixes(family).into());
            }
        }
        routes
    }

    fn add_table(&mut self, family: AddressFamily, avoided: Vec<Prefix>) {
        self.standing.insert(family, Table { count: 0, avoided });
    }

    /// How many routes the variant wants, those of the lab among them, where it says.
    fn wanted(&self, variant: &Variant) -> Result<Option<u32>, LabError> {
        let level = variant.levels.get(&self.factor);
        level
            .map(|level| routes_of(&self.factor, level))
            .transpose()
    }

    /// How many routes the variant adds to those of the lab, where it says.
    fn added(&self, variant: &Variant) -> Result<Option<u32>, LabError> {
        let wanted = self.wanted(variant)?;
        Ok(wanted.map(|count| count.saturating_sub(OWN_ROUTES)))
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
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let is_asked = !self.place.is_namespace && self.wanted(variant)?.is_some();
        let question = is_asked.then(|| Tool::Iproute2.question());
        Ok(question.into_iter().collect())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let wanted = self.wanted(variant)?;
        if !self.place.is_namespace {
            return Ok(wanted.and_then(|_| Tool::Iproute2.lacking(answers)));
        }
        Ok(wanted.and_then(|count| {
            if count < OWN_ROUTES {
                Some(format!("the lab itself needs {OWN_ROUTES} routes"))
            } else if count > ROUTES_MAX {
                Some(format!("this lab makes at most {ROUTES_MAX} routes"))
            } else {
                None
            }
        }))
    }

    fn set_family(&mut self, family: AddressFamily) {
        self.families = vec![family];
    }

    fn looks(&self) -> Vec<Question> {
        let families = self.families.iter();
        let tables = families.flat_map(|&family| [all_of(family), addresses_of(family)]);
        let questions = tables.chain([owned(&SESSION), Tool::Iproute2.probe()]);
        questions.map(Question::maybe).collect()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let mut steps = Vec::new();
        // Without it no route can be set, and what would take them back takes all: BusyBox flushes whatever `proto` says.
        if Tool::Iproute2.lacking(answers).is_some() {
            return Ok(steps);
        }
        let session = answers.needed(&owned(&SESSION))?;
        for family in self.families.clone() {
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
            self.add_table(family, avoided);
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
        let families = &self.families;
        let standing = self.standing.iter_mut();
        for (&family, table) in standing.filter(|(family, _)| families.contains(family)) {
            let (from, to) = (table.count.min(wanted), table.count.max(wanted));
            if from == to {
                continue;
            }
            let prefixes = spread_prefixes(family, &table.avoided).skip(from as usize);
            let prefixes: Vec<Prefix> = prefixes.take((to - from) as usize).collect();
            if prefixes.len() < (to - from) as usize {
                return Err(LabError::Host {
                    host: self.place.host.clone(),
                    why: format!(
                        "beside the networks that it has routes to there is no room for {wanted} {family} routes"
                    ),
                });
            }
            let change = if table.count < wanted {
                RouteChange::Add
            } else {
                RouteChange::Delete
            };
            actions.push(Action::Routes {
                family,
                change,
                prefixes,
            });
            table.count = wanted;
        }
        Ok(actions)
    }

    fn readings(&self, variant: &Variant) -> Result<Vec<Reading>, LabError> {
        // The table of a namespace is the experiment's as a whole.
        let (asked, whose) = if self.place.is_namespace {
            (self.wanted(variant)?, "")
        } else {
            (self.added(variant)?, "the experiment's ")
        };
        let Some(asked) = asked else {
            return Ok(Vec::new());
        };
        let standing = self.standing.keys();
        let families = standing.filter(|family| self.families.contains(family));
        let readings = families.map(|&family| Reading {
            setting: format!("the number of {whose}{family} routes"),
            look: Look::Routes(family),
            asked: asked.to_string(),
            form: Form::Words,
        });
        Ok(readings.collect())
    }

    fn watch(&self, variant: &Variant) -> Result<Option<Watch>, LabError> {
        let wanted = self.wanted(variant)?.zip(self.families.first());
        Ok(wanted.map(|(count, family)| Watch {
            of: Watched::Routes,
            setting: format!("the {family} table of {count} routes"),
        }))
    }
}

/// The command that tells how many of the experiment's routes a family's table holds.
pub(crate) fn count(family: AddressFamily) -> Vec<String> {
    // BusyBox ignores `show proto`, and does not say who made a route.
    let script = "ip -o $0 route show | grep -c -e \" proto $1 \" -e \" proto $1$\" || :";
    owned(&["sh", "-c", script, option(family), PROTOCOL])
}

/// What changes routes of a host: through the sink, by an interface.
pub(crate) fn batch(
    family: AddressFamily,
    change: RouteChange,
    prefixes: &[Prefix],
    interface: &str,
) -> Errand {
    let gateway = addresses(family).sink;
    let mut commands = String::new();
    for (address, length) in prefixes {
        let _ = match change {
            // Done twice it is the same as done once, where a connection breaks.
            RouteChange::Add => writeln!(
                commands,
                "route replace {address}/{length} via {gateway} dev {interface} proto {PROTOCOL}"
            ),
            RouteChange::Delete => {
                writeln!(commands, "route delete {address}/{length} proto {PROTOCOL}")
            }
        };
    }
    match change {
        RouteChange::Add => Errand::reading(&["ip", option(family), "-batch", "-"], &commands),
        RouteChange::Delete => {
            // One that has gone already is no error; how many are left is looked at.
            let script = "ip $0 -force -batch - 2>/dev/null || :";
            Errand::reading(&["sh", "-c", script, option(family)], &commands)
        }
    }
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
