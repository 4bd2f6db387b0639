//! One configuration's rates in a row.

use std::cmp::Ordering;

use super::natural;
use super::rows::RateRow;

/// Along what the rates of a configuration stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The date.
    Time,
    /// The release of the kernel, or the revision of the operating system.
    Os,
}

/// The same variant of the same topic, measured the same way on the same hardware.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The experiment's name, or the topic.
    pub topic: String,
    /// The CPU, or what the results call their hardware.
    pub platform: Option<String>,
    /// The network interface controller.
    pub nic: Option<String>,
    /// Short name of the lab.
    pub lab: Option<String>,
    /// How the load related to what the device could forward.
    pub regime: Option<String>,
    /// The variant's name in files.
    pub variant: String,
    /// The address family.
    pub family: String,
    /// Its rates, in order; one or more.
    pub rates: Vec<RateRow>,
}

/// Rates put together by configuration, in the order of its names; each configuration's in order, those
/// of which it is not known last.
#[must_use]
pub fn series(rates: Vec<RateRow>, over: Over) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let mut rates = rates;
    rates.sort_by(|one, other| {
        (configuration(one).cmp(&configuration(other)))
            .then_with(|| in_row(one, other, over))
            .then_with(|| one.path.cmp(&other.path))
    });
    for rate in rates {
        match all.last_mut() {
            Some(series) if configuration(&series.rates[0]) == configuration(&rate) => {
                series.rates.push(rate);
            }
            _ => all.push(Series {
                topic: rate.topic.clone(),
                platform: rate.platform.clone(),
                nic: rate.nic.clone(),
                lab: rate.lab.clone(),
                regime: rate.regime.clone(),
                variant: rate.variant.clone(),
                family: rate.family.clone(),
                rates: vec![rate],
            }),
        }
    }
    all
}

/// The revisions of the operating system in the series, each once, in order.
#[must_use]
pub fn revisions(all: &[Series]) -> Vec<String> {
    let mut revisions: Vec<String> = all
        .iter()
        .flat_map(|series| &series.rates)
        .filter_map(|rate| rate.os.clone())
        .collect();
    revisions.sort_by(|one, other| natural::compare(one, other));
    revisions.dedup();
    revisions
}

/// What has to agree for rates to be comparable at all.
fn configuration(rate: &RateRow) -> impl Ord + '_ {
    (
        &rate.topic,
        &rate.platform,
        &rate.nic,
        (&rate.lab, &rate.regime),
        &rate.variant,
        &rate.family,
    )
}

fn in_row(one: &RateRow, other: &RateRow, over: Over) -> Ordering {
    let known_first = |one: &Option<String>, other: &Option<String>| match (one, other) {
        (Some(one), Some(other)) => natural::compare(one, other),
        (one, other) => one.is_none().cmp(&other.is_none()),
    };
    let dates = known_first(&one.date, &other.date);
    let revisions = known_first(&one.os, &other.os);
    match over {
        Over::Time => dates.then(revisions),
        Over::Os => revisions.then(dates),
    }
}
