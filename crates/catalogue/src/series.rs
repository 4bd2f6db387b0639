//! One configuration's rates in a row.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::release;
use crate::rows::RateRow;

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
    /// The stratum: the address family, with the name of the traffic where it has one.
    pub family: String,
    /// Its rates, in order; one or more.
    pub rates: Vec<RateRow>,
}

/// Rates put together by configuration, in the order of its names; each configuration's in order, those
/// of which it is not known last.
///
/// A/A controls are left out, unless there is nothing else: they are the baseline a second time.
#[must_use]
pub fn series(rates: Vec<RateRow>, over: Over) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let mut rates = rates;
    if rates.iter().any(|rate| !rate.control) {
        rates.retain(|rate| !rate.control);
    }
    let places = Places::of(&rates);
    rates.sort_by(|one, other| {
        (configuration(one).cmp(&configuration(other)))
            .then_with(|| places.in_row(one, other, over))
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
    in_order(all.iter().flat_map(|series| &series.rates))
}

/// The revisions of the operating system, each once: by release and, where releases do not tell, by the
/// first date on which one was measured.
fn in_order<'a>(rates: impl IntoIterator<Item = &'a RateRow>) -> Vec<String> {
    let mut first_dates: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for rate in rates {
        let Some(os) = &rate.os else { continue };
        let date = rate.date.as_deref();
        let first = first_dates.entry(os).or_insert(date);
        *first = known_first(*first, date);
    }
    let mut revisions: Vec<(&str, Option<&str>)> = first_dates.into_iter().collect();
    revisions.sort_by(|(one, one_date), (other, other_date)| {
        let by_date = (one_date.is_none(), one_date).cmp(&(other_date.is_none(), other_date));
        release::compare(one, other).then(by_date)
    });
    revisions.into_iter().map(|(os, _)| os.to_owned()).collect()
}

/// The earlier of two dates, or the one that is known.
fn known_first<'a>(one: Option<&'a str>, other: Option<&'a str>) -> Option<&'a str> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
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

/// The place of each revision among all.
struct Places(BTreeMap<String, usize>);

impl Places {
    fn of(rates: &[RateRow]) -> Self {
        let revisions = in_order(rates).into_iter();
        Self(revisions.zip(0..).collect())
    }

    fn in_row(&self, one: &RateRow, other: &RateRow, over: Over) -> Ordering {
        // What is not known comes last.
        let date = |rate: &RateRow| (rate.date.is_none(), rate.date.clone());
        let place = |rate: &RateRow| {
            let place = rate.os.as_ref().and_then(|os| self.0.get(os));
            (place.is_none(), place.copied())
        };
        let dates = date(one).cmp(&date(other));
        let revisions = place(one).cmp(&place(other));
        match over {
            Over::Time => dates.then(revisions),
            Over::Os => revisions.then(dates),
        }
    }
}
