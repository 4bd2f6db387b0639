//! What a text says of its laboratory against the logs, the descriptions and the configuration sets beside it.
//!
//! Everything here is silent where the data says nothing, or several things of which the text's is one.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::import::Settings;
use crate::readme::facts::{Card, Statement, cards, commits, driver_names, statements};
use crate::readme::{PublishedReadme, TextLine};
use crate::{ArchiveTree, CommitCount, Content, Outcome, ResultsFolder};

/// Something that a text says and the data contradicts.
pub(super) struct Contradicted<'a> {
    pub(super) line: &'a TextLine,
    /// What the text says.
    pub(super) says: String,
    /// What the data says, and of what kind it is.
    pub(super) data_says: String,
}

/// Loads and numbers of flows that are nearer are the same, rounded.
const RATIO_MAX: f64 = 1.2;

/// What the text of a folder says of its laboratory and is not so.
pub(super) fn contradicted<'a>(
    tree: &ArchiveTree,
    folder: &ResultsFolder,
    readme: &'a PublishedReadme,
) -> Vec<Contradicted<'a>> {
    let lines = readme.lab.iter();
    let stated: Vec<(&TextLine, Statement)> = lines
        .flat_map(|line| {
            let statements = statements(line).into_iter();
            statements.map(move |statement| (line, statement))
        })
        .collect();
    let data = Data {
        tree,
        folder,
        sets: OnceCell::new(),
    };
    let mut found = Vec::new();
    for (line, statement) in &stated {
        // Where the lines say several things, each may be of a part of what was measured.
        let is_only = !stated.iter().any(|(_, other)| {
            std::mem::discriminant(other) == std::mem::discriminant(statement)
                && other != statement
                && is_of_one_thing(other, statement)
        });
        let contradiction = match statement {
            _ if !is_only => None,
            Statement::Flows(count) => data.flows(*count),
            Statement::OfferedPps(rate) => data.offered(*rate),
            Statement::Revision(number) => data.revision(*number),
            Statement::Commit(commit) => data.commit(commit),
            Statement::Setting(key, value) => setting(data.sets(), key, value),
            Statement::Driver(driver) => ports(data.sets(), driver),
        };
        found.extend(contradiction.map(|(says, data_says)| Contradicted {
            line,
            says,
            data_says,
        }));
    }
    found.extend(card(&data, readme));
    found
}

/// A text that speaks of cards, none of which is that of the folder's path; where the path says nothing, none that any port
/// of the sets is of. A bench has also the cards of its generator.
fn card<'a>(data: &Data<'_>, readme: &'a PublishedReadme) -> Option<Contradicted<'a>> {
    let lines = readme.lab.iter();
    let stated: Vec<(&TextLine, &str, Card)> = lines
        .flat_map(|line| {
            cards(&line.text)
                .into_iter()
                .map(move |(name, card)| (line, name, card))
        })
        .collect();
    let &(line, name, _) = stated.first()?;
    let nic = data.folder.place.nic.as_deref().unwrap_or_default();
    let filed: Vec<Card> = cards(nic).into_iter().map(|(_, card)| card).collect();
    let is_filed = |card: &Card| filed.iter().any(|filed| filed == card);
    let data_says = if filed.is_empty() {
        let apart: Option<Vec<String>> = stated
            .iter()
            .map(|(_, _, card)| Some(ports(data.sets(), card.driver)?.1))
            .collect();
        apart?.into_iter().next()?
    } else if stated.iter().any(|(_, _, card)| is_filed(card)) {
        return None;
    } else {
        format!("{nic}, by the folder that the results are in")
    };
    let name = name.trim_end_matches('.');
    Some(Contradicted {
        line,
        says: format!("the card {name}"),
        data_says,
    })
}

fn is_of_one_thing(one: &Statement, other: &Statement) -> bool {
    match (one, other) {
        (Statement::Setting(one, _), Statement::Setting(other, _)) => one == other,
        _ => true,
    }
}

/// What the text says, and what the data says.
type Sides = Option<(String, String)>;

struct Data<'a> {
    tree: &'a ArchiveTree,
    folder: &'a ResultsFolder,
    sets: OnceCell<Vec<Settings>>,
}

impl Data<'_> {
    fn sets(&self) -> &[Settings] {
        self.sets.get_or_init(|| {
            let groups = self.folder.groups.iter();
            let sets = groups.map(|group| self.tree.settings(self.folder, group));
            sets.filter(|set| !set.is_empty()).collect()
        })
    }

    fn flows(&self, said: f64) -> Sides {
        let runs = self.folder.groups.iter().flat_map(|group| &group.runs);
        let logs = runs.flat_map(|run| run.sent(&self.tree.files));
        let counts: BTreeSet<u128> = logs
            .filter_map(|log| log.command.as_ref()?.flows())
            .collect();
        let mut counts = counts.into_iter();
        let (count, others) = (counts.next()?, counts.next());
        // Where the number of flows is what was varied, the text says more than one could contradict.
        let is_other = others.is_none() && is_apart(said, count as f64);
        is_other.then(|| {
            let data = format!("{count} flows, by the senders' commands");
            (format!("{said} flows"), data)
        })
    }

    fn offered(&self, said: f64) -> Sides {
        let runs = self.folder.groups.iter().flat_map(|group| &group.runs);
        let rates: Vec<f64> = runs
            .filter_map(|run| run.offered_pps(&self.tree.files))
            .collect();
        let least = rates.iter().copied().reduce(f64::min)?;
        let most = rates.iter().copied().reduce(f64::max)?;
        let is_other = said > most * RATIO_MAX || said < least / RATIO_MAX;
        is_other.then(|| {
            let data = format!("{least:.0} to {most:.0} pps, by the senders' logs");
            (format!("{said} pps offered"), data)
        })
    }

    /// A commit against that in the name of the folder, and those that the kernels name; how many git counts depends on
    /// the clone, so that one that agrees is enough.
    fn commit(&self, said: &str) -> Sides {
        let label = self.folder.place.label.as_deref()?;
        let mut named = commits(label);
        named.retain(|named| named[..1] == said[..1]);
        let [named] = &named[..] else {
            return None;
        };
        let is_of_kernel = self.folder.groups.iter().any(|group| {
            let info = group.description(&self.tree.files);
            let uname = info.and_then(|info| info.uname.as_ref());
            uname.is_some_and(|uname| commits(&uname.text).iter().any(|commit| commit == said))
        });
        (named != said && !is_of_kernel).then(|| {
            let data = format!("{named}, by the folder that the results are in");
            (said.to_owned(), data)
        })
    }

    fn revision(&self, said: u64) -> Sides {
        let described = self.folder.groups.iter().filter_map(|group| {
            let file = &self.tree.files[group.info?];
            let Outcome::Read(Content::Info(info)) = &file.outcome else {
                return None;
            };
            let revision = info.uname.as_ref()?.revision.as_ref()?;
            let is_subversion = revision.count == Some(CommitCount::Subversion);
            revision.number.filter(|_| is_subversion)
        });
        let numbers: BTreeSet<u64> = described.collect();
        let is_other = !numbers.is_empty() && !numbers.contains(&said);
        is_other.then(|| {
            let numbers: Vec<String> = numbers.iter().map(|number| format!("r{number}")).collect();
            let data = format!("{}, by the .info of the runs", numbers.join(", "));
            (format!("r{said}"), data)
        })
    }
}

fn is_apart(one: f64, other: f64) -> bool {
    one > other * RATIO_MAX || other > one * RATIO_MAX
}

/// A setting that all sets have, and with no value that the text says.
fn setting(sets: &[Settings], key: &str, said: &str) -> Sides {
    let mut values = BTreeSet::new();
    for set in sets {
        let settings = set.values().flatten();
        let of_set: Vec<&String> = settings
            .filter(|(name, _)| is_of_key(key, name))
            .map(|(_, value)| value)
            .collect();
        // What a set leaves out has the system's default, which is not known here.
        if of_set.is_empty() {
            return None;
        }
        values.extend(of_set);
    }
    let number = |text: &str| text.parse::<f64>().ok();
    let is_same = |value: &&&String| {
        value.eq_ignore_ascii_case(said)
            || number(value).is_some_and(|value| number(said) == Some(value))
    };
    let is_other = !values.is_empty() && values.iter().find(is_same).is_none();
    is_other.then(|| {
        let values: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
        let data = format!("{key}={}, by all configuration sets", values.join(" or "));
        (format!("{key}={said}"), data)
    })
}

/// Whether a text's key is the end of a setting's name: `harvest.mask` of `kern.random.harvest.mask`.
fn is_of_key(key: &str, name: &str) -> bool {
    let name = match name {
        // `rc.conf` has a name of its own for it.
        "harvest_mask" => "kern.random.harvest.mask",
        name => name,
    };
    let mut parts = name.rsplit('.');
    key.rsplit('.').all(|part| {
        let is_number = |named: &str| named.bytes().all(|byte| byte.is_ascii_digit());
        parts.next().is_some_and(|named| match part {
            "x" | "*" | "n" => is_number(named),
            part => named.eq_ignore_ascii_case(part),
        })
    })
}

/// A driver that no port of the sets has.
fn ports(sets: &[Settings], driver: &str) -> Sides {
    let names = driver_names(driver)?;
    let settings = sets.iter().flat_map(|set| set.values().flatten());
    let ports: BTreeSet<&str> = settings
        .filter_map(|(name, _)| name.strip_prefix("ifconfig_")?.split('_').next())
        .map(|port| port.trim_end_matches(|character: char| character.is_ascii_digit()))
        .filter(|port| driver_names(port).is_some())
        .collect();
    let is_other = !ports.is_empty() && ports.iter().all(|port| !names.contains(port));
    is_other.then(|| {
        let ports: Vec<&str> = ports.into_iter().collect();
        let data = format!("ports of {}, by the configuration sets", ports.join(", "));
        (format!("the driver {driver}"), data)
    })
}
