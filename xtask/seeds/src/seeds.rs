//! The five results, and a table for each question that is asked of them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use fwdlab_stats::ministat::{Dataset, general};
use fwdlab_stats::{
    ContrastOf, Factor, MannWhitney, ShiftTest as _, TwoSampleT, VerdictSettings, format_effect,
    format_p, independent_factorial,
};

use crate::archive::{Archive, Arm, Measured};
use crate::page::Table;
use crate::table::{self, Family, logs, markdown};

const HYPERTHREADING: &str =
    "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/hyperthreading/results/fbsd15-n302145";
const RECLAIM: &str =
    "Atom_C2758_8Cores/Intel_82599/iflib.tx_reclaim_thresh/results/fbsd15-n302145simplecache";
const SIMPLE_TX: &str =
    "Atom_C2758_8Cores/Intel_82599/iflib.simple_tx/results/fbsd15-n302145simplecache";
const HARVEST_MASK: &str =
    "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/results/fbsd15-n302145";
const PREPENDS: &str = "Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-n277567-D33658";

macro_rules! arms {
    ($results:ident, $configurations:literal: $($label:literal = $key:literal $(in $configuration:literal)?),+ $(,)?) => {
        [$(Arm {
            label: $label,
            results: $results,
            key: $key,
            configuration: None$(.or(Some(concat!($configurations, "/", $configuration))))?,
        }),+]
    };
}

/// Every table of the page.
pub(crate) fn tables(archive: &Archive) -> Result<Vec<Table>> {
    let measured = |arms: &[Arm]| -> Result<Vec<Measured>> {
        arms.iter().map(|arm| archive.measured(*arm)).collect()
    };
    let hyperthreading = measured(&arms!(
        HYPERTHREADING, "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/hyperthreading/configs":
        "off" = "ht_off" in "ht_off",
        "on" = "ht_on_intr_off_default" in "ht_on_intr_off_default",
        "on, logical cores" = "ht_on_intr_off_iflib_use_logical_cores"
            in "ht_on_intr_off_iflib_use_logical_cores",
        "on, interrupts" = "ht_on_intr_on" in "ht_on_intr_on",
        "on, interrupts, logical cores" = "ht_on_intr_on_iflib_use_logical_cores"
            in "ht_on_intr_on_iflib_use_logical_cores",
    ))?;
    // In the order of the factors' levels: simple_tx 0 and 1 for each of the others.
    let simple_tx = measured(&arms!(
        SIMPLE_TX, "Atom_C2758_8Cores/Intel_82599/iflib.simple_tx/configs.special":
        "simple_tx=0 prefetch=0" = "simple_tx_off_prefetch_off" in "simple_tx_off_prefetch_off",
        "simple_tx=1 prefetch=0" = "simple_tx_on_prefetch_off" in "simple_tx_on_prefetch_off",
        "simple_tx=0 prefetch=1" = "simple_tx_off_prefetch_on" in "simple_tx_off_prefetch_on",
        "simple_tx=1 prefetch=1" = "simple_tx_on_prefetch_on" in "simple_tx_on_prefetch_on",
    ))?;
    let mut reclaim = measured(&arms!(
        SIMPLE_TX, "Atom_C2758_8Cores/Intel_82599/iflib.simple_tx/configs.special":
        "simple_tx=0 thresh=0" = "simple_tx_off_prefetch_on" in "simple_tx_off_prefetch_on",
        "simple_tx=1 thresh=0" = "simple_tx_on_prefetch_on" in "simple_tx_on_prefetch_on",
    ))?;
    reclaim.extend(measured(&arms!(
        RECLAIM, "Atom_C2758_8Cores/Intel_82599/iflib.tx_reclaim_thresh/configs":
        "simple_tx=0 thresh=25 %" = "simple_tx_off_tx_reclaim_thresh_25p"
            in "simple_tx_off_tx_reclaim_thresh_25p",
        "simple_tx=1 thresh=25 %" = "simple_tx_on_tx_reclaim_thresh_25p"
            in "simple_tx_on_tx_reclaim_thresh_25p",
        "simple_tx=0 thresh=50 %" = "simple_tx_off_tx_reclaim_thresh_50p"
            in "simple_tx_off_tx_reclaim_thresh_50p",
        "simple_tx=1 thresh=50 %" = "simple_tx_on_tx_reclaim_thresh_50p"
            in "simple_tx_on_tx_reclaim_thresh_50p",
    ))?);
    let harvest_mask = measured(&arms!(
        HARVEST_MASK, "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/configs":
        "4607, IPv4" = "4607_default.inet4" in "4607_default",
        "4479, IPv4" = "4479.inet4" in "4479",
        "4607, IPv6" = "4607_default.inet6",
        "4479, IPv6" = "4479.inet6",
    ))?;
    let prepends = measured(&arms!(
        PREPENDS, "":
        "n277567, IPv4" = "n277567.inet4",
        "D33658, IPv4" = "n277567D33658.inet4",
        "n277567, IPv6" = "n277567.inet6",
        "D33658, IPv6" = "n277567D33658.inet6",
    ))?;

    let from = |baseline: usize, others: &[usize]| Family {
        baseline: &hyperthreading[baseline],
        others: others.iter().map(|other| &hyperthreading[*other]).collect(),
    };
    let families_hyperthreading = [against_first(&hyperthreading), from(1, &[3, 2])];
    // The order in which the text compares them.
    let families_simple_tx = [Family {
        baseline: &simple_tx[0],
        others: vec![&simple_tx[2], &simple_tx[1], &simple_tx[3]],
    }];
    let [families_harvest_mask, families_prepends] = [&harvest_mask, &prepends]
        .map(|arms| [against_first(&arms[..2]), against_first(&arms[2..])]);
    let families_reclaim = [against_first(&reclaim)];

    let readme = |results: &str| archive.text(&format!("{results}/README.md"));
    let mut all = vec![
        (
            "hyperthreading-comparisons",
            table::comparisons(&families_hyperthreading, &readme(HYPERTHREADING)?)?,
        ),
        (
            "hyperthreading-settings",
            settings(archive, &hyperthreading)?,
        ),
        ("hyperthreading-offered", table::offered(&hyperthreading)?),
        ("hyperthreading-adjusted", table::adjusted(&hyperthreading)?),
        ("reclaim-reused", reused(archive, &reclaim)?),
        (
            "reclaim-comparisons",
            table::comparisons(&families_reclaim, &readme(RECLAIM)?)?,
        ),
        (
            "reclaim-factorial",
            factorial(&reclaim, "thresh", |level| {
                format!("thresh={} %", 25 * level)
            })?,
        ),
        ("simple-tx-settings", settings(archive, &simple_tx)?),
        (
            "simple-tx-comparisons",
            table::comparisons(&families_simple_tx, &readme(SIMPLE_TX)?)?,
        ),
        (
            "simple-tx-factorial",
            factorial(&simple_tx, "prefetch", |level| format!("prefetch={level}"))?,
        ),
        (
            "harvest-mask-comparisons",
            table::comparisons(&families_harvest_mask, &readme(HARVEST_MASK)?)?,
        ),
        (
            "harvest-mask-settings",
            settings(archive, &harvest_mask[..2])?,
        ),
        ("harvest-mask-masks", masks(archive)?),
        ("harvest-mask-offered", table::offered(&harvest_mask[..2])?),
        ("harvest-mask-course", course(archive, &harvest_mask[1], 3)?),
        (
            "harvest-mask-outlier",
            outlier(&harvest_mask[0], &harvest_mask[1])?,
        ),
        (
            "d33658-comparisons",
            table::comparisons(&families_prepends, &readme(PREPENDS)?)?,
        ),
    ];
    let results = [
        ("hyperthreading", &hyperthreading[..]),
        ("tx_reclaim_thresh", &reclaim[2..]),
        ("simple_tx", &simple_tx[..]),
        ("harvest mask, IPv4", &harvest_mask[..2]),
        ("harvest mask, IPv6", &harvest_mask[2..]),
        ("D33658, IPv4", &prepends[..2]),
        ("D33658, IPv6", &prepends[2..]),
    ];
    all.push(("traffic", traffic(archive, &results)?));
    let families = [
        (
            "hyperthreading",
            families_hyperthreading.into_iter().collect::<Vec<_>>(),
        ),
        ("tx_reclaim_thresh", families_reclaim.into_iter().collect()),
        ("simple_tx", families_simple_tx.into_iter().collect()),
        ("harvest mask", families_harvest_mask.into_iter().collect()),
        ("D33658", families_prepends.into_iter().collect()),
    ];
    let families: Vec<(&str, Family<'_>)> = families
        .into_iter()
        .flat_map(|(seed, families)| families.into_iter().map(move |family| (seed, family)))
        .collect();
    all.push(("power", table::power(&families)?));
    let tables = all.into_iter().map(|(name, text)| Table { name, text });
    Ok(tables.collect())
}

/// All arms against the first.
fn against_first(arms: &[Measured]) -> Family<'_> {
    let (baseline, others) = arms.split_first().expect("a result has arms");
    Family {
        baseline,
        others: others.iter().collect(),
    }
}

/// What the configurations of some arms set differently.
fn settings(archive: &Archive, arms: &[Measured]) -> Result<String> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (number, measured) in arms.iter().enumerate() {
        let configuration = measured
            .arm
            .configuration
            .context("an arm without configuration")?;
        for (name, value) in archive.settings(configuration)? {
            let row = values.entry(name).or_default();
            row.resize(arms.len(), "not set".to_owned());
            row[number] = value;
        }
    }
    values.retain(|_, row| row.iter().any(|value| *value != row[0]));
    // What is set alike on every port is one row.
    let rows: BTreeMap<(String, Vec<String>), ()> = values
        .into_iter()
        .map(|(name, row)| {
            let mut parts: Vec<&str> = name.split('.').collect();
            for part in &mut parts {
                if part.parse::<u32>().is_ok() {
                    *part = "X";
                }
            }
            ((parts.join("."), row), ())
        })
        .collect();
    let mut head = vec!["set by the configuration"];
    head.extend(arms.iter().map(|measured| measured.arm.label));
    Ok(markdown(
        &head,
        rows.into_keys().map(|(name, row)| {
            let mut cells = vec![format!("`{name}`")];
            cells.extend(row);
            cells
        }),
    ))
}

/// The rows of a README's ministat block: the figures behind their symbols.
fn published_rows(readme: &str) -> Vec<Vec<String>> {
    let rows = readme.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [symbol, figures @ ..] = &words[..] else {
            return None;
        };
        let are_figures =
            figures.len() == 6 && figures.iter().all(|word| word.parse::<f64>().is_ok());
        (symbol.len() == 1 && are_figures)
            .then(|| figures.iter().map(|word| (*word).to_owned()).collect())
    });
    rows.collect()
}

/// Of which files the rows of the README are.
fn reused(archive: &Archive, arms: &[Measured]) -> Result<String> {
    let published = published_rows(&archive.text(&format!("{RECLAIM}/README.md"))?);
    let mut rows = Vec::new();
    for (row, measured) in published.iter().zip(arms) {
        let dataset = Dataset::new(measured.arm.key, measured.observations_pps.clone())?;
        let figures = [
            dataset.minimum(),
            dataset.maximum(),
            dataset.median(),
            dataset.average(),
            dataset.standard_deviation(),
        ];
        let is_same = row[0] == dataset.len().to_string()
            && row[1..]
                .iter()
                .zip(figures)
                .all(|(text, figure)| *text == general(figure, 8).to_string());
        anyhow::ensure!(is_same, "{}: not the row of the README", measured.arm.key);
        let file = format!("{}.pps", measured.arm.key);
        let is_own = archive.exists(&format!("{RECLAIM}/{file}"));
        let offered = &measured.offered_pps;
        rows.push(vec![
            measured.arm.label.to_owned(),
            format!("`{file}`"),
            if is_own {
                "its own"
            } else {
                "that of simple_tx"
            }
            .to_owned(),
            range(offered),
        ]);
    }
    Ok(markdown(
        &["arm", "the row's numbers are", "folder", "offered, Mpps"],
        rows,
    ))
}

/// The smallest and the largest of some rates.
fn range(rates_pps: &[f64]) -> String {
    let least = rates_pps.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates_pps.iter().copied().fold(0.0, f64::max);
    format!("{:.2} to {:.2}", least / 1e6, most / 1e6)
}

/// The factorial reading of arms in the order of `simple_tx` and another factor's levels, as
/// `fwdlab compare --design` judges it.
fn factorial(arms: &[Measured], other: &str, name: impl Fn(usize) -> String) -> Result<String> {
    let factor = |name: &str, level: fn(usize) -> usize| Factor {
        name: name.to_owned(),
        levels: (0..arms.len()).map(level).collect(),
    };
    let factors = [
        factor("simple_tx", |arm| arm % 2),
        factor(other, |arm| arm / 2),
    ];
    let observations: Vec<Vec<f64>> = arms
        .iter()
        .map(|arm| arm.observations_pps.clone())
        .collect();
    let label = |of: &ContrastOf| {
        let levels = of.factors.iter().zip(&of.levels);
        let labels: Vec<String> = levels
            .map(|(factor, level)| match factor {
                0 => format!("simple_tx={level}"),
                _ => name(*level),
            })
            .collect();
        labels.join(" × ")
    };
    let settings = VerdictSettings::default();
    let verdicts = independent_factorial(&factors, &observations, &settings, label)?;
    Ok(table::factorial(&verdicts))
}

/// The masks in the text and file names, read by the names that its text gives to the bits.
fn masks(archive: &Archive) -> Result<String> {
    let readme = archive.text(&format!("{HARVEST_MASK}/README.md"))?;
    let symbolic = readme
        .lines()
        .find_map(|line| line.strip_prefix("kern.random.harvest.mask_symbolic: "))
        .context("no symbolic mask in the README")?;
    let masks: Vec<u32> = readme
        .lines()
        .filter_map(|line| {
            line.strip_prefix("kern.random.harvest.mask: ")?
                .parse()
                .ok()
        })
        .collect();
    let [default, tuned] = masks[..] else {
        anyhow::bail!("the README has {} masks, not 2", masks.len())
    };
    // Lowest bit last; the first name is of a source without a bit beside the others.
    let names: Vec<&str> = symbolic.split(',').rev().collect();
    let is_on = |mask: u32, bit: usize| mask >> bit & 1 == 1;
    for (bit, name) in names[..names.len() - 1].iter().enumerate() {
        anyhow::ensure!(
            is_on(default, bit) != name.starts_with('['),
            "{name}: bit {bit} of {default} is something else"
        );
    }
    let bit = |wanted: &str| {
        let bare = |name: &&str| name.trim_matches(['[', ']']) == wanted;
        names.iter().position(bare).context("no such source")
    };
    let (interrupt, ethernet) = (bit("INTERRUPT")?, bit("NET_ETHER")?);
    let rows = [
        (
            default,
            "the text: the default; what an arm without a setting has",
        ),
        (tuned, "the text: tuned"),
        (4607, "name of the first arm, which sets nothing"),
        (4479, "name and setting of the second arm"),
    ];
    let word = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    Ok(markdown(
        &[
            "mask",
            "where it stands",
            "INTERRUPT",
            "NET_ETHER",
            "bits that differ from the default",
        ],
        rows.map(|(mask, place)| {
            let differ: Vec<String> = (0..32)
                .filter(|bit| is_on(mask ^ default, *bit))
                .map(|bit| bit.to_string())
                .collect();
            vec![
                format!("{mask} ({mask:#x})"),
                place.to_owned(),
                word(is_on(mask, interrupt)),
                word(is_on(mask, ethernet)),
                if differ.is_empty() {
                    "none".to_owned()
                } else {
                    differ.join(", ")
                },
            ]
        }),
    ))
}

/// How a run went: what was offered and what was forwarded, in tenths of each log's steady part.
fn course(archive: &Archive, measured: &Measured, run: usize) -> Result<String> {
    const PARTS: usize = 10;
    let mut rows = Vec::new();
    for (name, role) in [("offered", "sender"), ("forwarded", "receiver")] {
        let rates = archive.course(measured.arm, run, role, PARTS)?;
        let mut row = vec![name.to_owned()];
        row.extend(rates.iter().map(|rate| format!("{:.2}", rate / 1e6)));
        rows.push(row);
    }
    let parts: Vec<String> = (1..=PARTS).map(|part| format!("{part}/{PARTS}")).collect();
    let mut head = vec!["Mpps"];
    head.extend(parts.iter().map(String::as_str));
    Ok(markdown(&head, rows))
}

/// What the run that lies far out makes of the first comparison of masks.
fn outlier(baseline: &Measured, other: &Measured) -> Result<String> {
    let (reference, all) = (logs(baseline)?, logs(other)?);
    let farthest = all
        .iter()
        .copied()
        .max_by(f64::total_cmp)
        .context("no observation")?;
    let without: Vec<f64> = all
        .iter()
        .copied()
        .filter(|value| *value < farthest)
        .collect();
    let rows = [("all 5", all), ("without the largest", without)]
        .into_iter()
        .map(|(name, sample)| {
            let welch = TwoSampleT::welch(&sample, &reference)?;
            let ranks = MannWhitney::new(&sample, &reference)?;
            Ok(vec![
                name.to_owned(),
                format_effect(welch.difference, Some(&welch.interval(0.95)?)),
                format_p(welch.p_two_sided(0.0)),
                format_p(ranks.p_two_sided(0.0)),
            ])
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(markdown(
        &["runs with 4479", "effect [95 %]", "p, Welch", "p, ranks"],
        rows,
    ))
}

/// What each text says of its traffic, and what the senders' logs say.
fn traffic(archive: &Archive, results: &[(&str, &[Measured])]) -> Result<String> {
    let mut rows = Vec::new();
    for (name, arms) in results {
        let first = arms.first().context("a result without arms")?;
        let readme = archive.text(&format!("{}/README.md", first.arm.results))?;
        let said = |word: &str| {
            let mut lines = readme
                .lines()
                .map(|line| line.trim().trim_start_matches("- "));
            lines
                .find(|line| line.contains(word))
                .unwrap_or("nothing")
                .to_owned()
        };
        let asked = |arm: &Measured| (arm.sender.flows(), arm.sender.packet_size_bytes);
        anyhow::ensure!(
            arms.iter().all(|arm| asked(arm) == asked(first)),
            "{name}: the senders were asked for different things"
        );
        let offered: Vec<f64> = arms
            .iter()
            .flat_map(|arm| arm.offered_pps.clone())
            .collect();
        let number = |number: Option<String>| number.unwrap_or_else(|| "unknown".to_owned());
        rows.push(vec![
            (*name).to_owned(),
            format!("{}; {}", said(" flows"), said("Traffic load")),
            number(first.sender.flows().map(|flows| flows.to_string())),
            number(
                first
                    .sender
                    .packet_size_bytes
                    .map(|bytes| bytes.to_string()),
            ),
            range(&offered),
        ]);
    }
    Ok(markdown(
        &[
            "result",
            "the text says",
            "flows asked for",
            "`-l`, bytes",
            "offered, Mpps",
        ],
        rows,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_block_are_its_figures() {
        let readme = "```\nx the first\n    N           Min\nx   5       1 2 3 4 5.5\nDifference at 95.0% confidence\n```\n";
        assert_eq!(published_rows(readme), [["5", "1", "2", "3", "4", "5.5"]]);
    }
}
