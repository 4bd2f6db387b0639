//! Answers to the usual questions.

use fwdlab_stats::{median, quartiles};
use rusqlite::params_from_iter;

use crate::Catalogue;
use crate::error::CatalogueError;
use crate::filter::Filter;

/// A results directory.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultsRow {
    /// When it was measured, UTC, as far as it is known.
    pub date: Option<String>,
    /// The experiment's name, or the topic.
    pub topic: String,
    /// The name of this run among those of its topic.
    pub label: String,
    /// The title of the report.
    pub question: Option<String>,
    /// The CPU, or what the results call their hardware.
    pub platform: Option<String>,
    /// Vendor and product of the machine.
    pub machine: Option<String>,
    /// The network interface controller.
    pub nic: Option<String>,
    /// Release of the kernel, or revision of the operating system.
    pub os: Option<String>,
    /// Short name of the lab.
    pub lab: Option<String>,
    /// What kind of lab.
    pub lab_kind: Option<String>,
    /// How the load related to what the device could forward.
    pub regime: Option<String>,
    /// Blocks that count, or runs of the variant that has most.
    pub blocks: u32,
    /// Whether nothing more will be measured.
    pub finished: bool,
    /// What the report concludes.
    pub verdict: Option<String>,
    /// `own` or `imported`.
    pub kind: String,
    /// The directory.
    pub path: String,
}

/// A directory that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The directory.
    pub path: String,
    /// Why, and what to do.
    pub problem: String,
}

/// What one variant forwarded in one address family of one results directory.
///
/// Units: frames per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateRow {
    /// When it was measured, UTC, as far as it is known.
    pub date: Option<String>,
    /// The experiment's name, or the topic.
    pub topic: String,
    /// The name of this run among those of its topic.
    pub label: String,
    /// The CPU, or what the results call their hardware.
    pub platform: Option<String>,
    /// The network interface controller.
    pub nic: Option<String>,
    /// Release of the kernel, or revision of the operating system.
    pub os: Option<String>,
    /// Short name of the lab.
    pub lab: Option<String>,
    /// How the load related to what the device could forward.
    pub regime: Option<String>,
    /// The variant's name in files.
    pub variant: String,
    /// Its name for readers.
    pub variant_label: String,
    /// Whether it is the baseline a second time, as the A/A control.
    pub control: bool,
    /// The stratum: the address family, with the name of the traffic where it has one.
    pub family: String,
    /// How many observations there are; one or more.
    pub observations: usize,
    /// Their median.
    pub median_pps: f64,
    /// The smallest.
    pub min_pps: f64,
    /// A quarter of them is below.
    pub first_quartile_pps: f64,
    /// A quarter of them is above.
    pub third_quartile_pps: f64,
    /// The largest.
    pub max_pps: f64,
    /// From the first to the third quartile.
    pub iqr_pps: f64,
    /// Median of what was offered; none where it is not known of all of them.
    pub offered_load_pps: Option<f64>,
    /// `own` or `imported`.
    pub kind: String,
    /// The results directory.
    pub path: String,
}

impl Catalogue {
    /// The results directories, by date.
    ///
    /// # Errors
    /// [`CatalogueError::Index`].
    pub fn results(&self, filter: &Filter) -> Result<Vec<ResultsRow>, CatalogueError> {
        let conditions = filter.conditions(false);
        let mut statement = self.connection.prepare(&format!(
            "SELECT date, topic, label, question, platform, machine, nic, os, lab, lab_kind, regime, blocks,
                finished, verdict, kind, path
             FROM results WHERE {} ORDER BY date IS NULL, date, path, topic, label",
            conditions.sql
        ))?;
        let rows = statement.query_map(params_from_iter(conditions.parameters), |row| {
            Ok(ResultsRow {
                date: row.get(0)?,
                topic: row.get(1)?,
                label: row.get(2)?,
                question: row.get(3)?,
                platform: row.get(4)?,
                machine: row.get(5)?,
                nic: row.get(6)?,
                os: row.get(7)?,
                lab: row.get(8)?,
                lab_kind: row.get(9)?,
                regime: row.get(10)?,
                blocks: row.get(11)?,
                finished: row.get(12)?,
                verdict: row.get(13)?,
                kind: row.get(14)?,
                path: row.get(15)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// How many results directories a filter would choose if it named no date: nothing says when they were measured.
    ///
    /// # Errors
    /// [`CatalogueError::Index`].
    pub fn undated(&self, filter: &Filter, of_variants: bool) -> Result<u32, CatalogueError> {
        if filter.since.is_none() && filter.until.is_none() {
            return Ok(0);
        }
        let conditions = filter.without_dates().conditions(of_variants);
        let joined = if of_variants {
            "JOIN variants ON variants.results = results.id JOIN observations ON observations.variant = variants.id"
        } else {
            ""
        };
        let mut statement = self.connection.prepare(&format!(
            "SELECT count(DISTINCT path) FROM results {joined} WHERE date IS NULL AND ({})",
            conditions.sql
        ))?;
        Ok(statement.query_row(params_from_iter(conditions.parameters), |row| row.get(0))?)
    }

    /// What could not be read, by path.
    ///
    /// # Errors
    /// [`CatalogueError::Index`].
    pub fn problems(&self) -> Result<Vec<Problem>, CatalogueError> {
        let mut statement = self.connection.prepare(
            "SELECT path, problem FROM sources WHERE problem IS NOT NULL ORDER BY path, problem",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(Problem {
                path: row.get(0)?,
                problem: row.get(1)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// What each variant forwarded in each address family of each results directory, by date.
    ///
    /// # Errors
    /// [`CatalogueError::Index`].
    pub fn rates(&self, filter: &Filter) -> Result<Vec<RateRow>, CatalogueError> {
        let conditions = filter.conditions(true);
        let mut statement = self.connection.prepare(&format!(
            "SELECT variants.id, family, forwarding_rate_pps, offered_load_pps, date, topic, results.label,
                platform, nic, os, lab, regime, variants.name, variants.label, kind, path,
                control
             FROM observations
             JOIN variants ON variants.id = observations.variant
             JOIN results ON results.id = variants.results
             WHERE {}
             ORDER BY date IS NULL, date, path, topic, results.label, results.id, place, family, position",
            conditions.sql
        ))?;
        let mut found = statement.query(params_from_iter(conditions.parameters))?;
        let mut rows: Vec<RateRow> = Vec::new();
        let mut group: Option<(i64, String)> = None;
        let (mut rates, mut loads): (Vec<f64>, Vec<Option<f64>>) = (vec![], vec![]);
        while let Some(row) = found.next()? {
            let of: (i64, String) = (row.get(0)?, row.get(1)?);
            if group.as_ref() != Some(&of) {
                summarize(rows.last_mut(), &mut rates, &mut loads);
                rows.push(RateRow {
                    date: row.get(4)?,
                    topic: row.get(5)?,
                    label: row.get(6)?,
                    platform: row.get(7)?,
                    nic: row.get(8)?,
                    os: row.get(9)?,
                    lab: row.get(10)?,
                    regime: row.get(11)?,
                    variant: row.get(12)?,
                    variant_label: row.get(13)?,
                    control: row.get(16)?,
                    family: of.1.clone(),
                    kind: row.get(14)?,
                    path: row.get(15)?,
                    ..RateRow::default()
                });
                group = Some(of);
            }
            rates.push(row.get(2)?);
            loads.push(row.get(3)?);
        }
        summarize(rows.last_mut(), &mut rates, &mut loads);
        Ok(rows)
    }
}

/// Fills a row's figures in from its observations, and takes them.
fn summarize(row: Option<&mut RateRow>, rates: &mut Vec<f64>, loads: &mut Vec<Option<f64>>) {
    let rates = std::mem::take(rates);
    let loads: Option<Vec<f64>> = std::mem::take(loads).into_iter().collect();
    let (Some(row), Some(median_pps), Some((first, third))) =
        (row, median(&rates), quartiles(&rates))
    else {
        return;
    };
    row.observations = rates.len();
    row.median_pps = median_pps;
    row.min_pps = rates.iter().copied().fold(f64::INFINITY, f64::min);
    row.max_pps = rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.first_quartile_pps = first;
    row.third_quartile_pps = third;
    row.iqr_pps = third - first;
    row.offered_load_pps = loads.and_then(|loads| median(&loads));
}
