//! Which observations of published results count: decided here, for reports, audits, the catalogue and lint alike.
//!
//! What a run's log gives counts, whether it was published or not. A run that is known to be profiled never does: the
//! profiler slowed it. Where another value was published in the place of such a run, its log was overwritten by the
//! profiled run's, and the published value counts. What was published counts where no log gives anything.

/// A run, as far as it decides that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    /// What its log gives as the archive reckons it, in packets per second.
    pub(crate) pps: Option<f64>,
    /// What it was offered, in packets per second.
    pub(crate) offered_pps: Option<f64>,
    /// Whether it is known to be profiled.
    pub(crate) is_profiled: bool,
}

/// An observation that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// The observation, in packets per second.
    pub pps: f64,
    /// What was offered meanwhile, in packets per second; none where nothing says it.
    pub offered_pps: Option<f64>,
    /// The place of the run whose log gives it, among the runs of its variant; none where it is as it was published.
    pub run: Option<usize>,
}

impl Counted {
    fn published(pps: f64) -> Self {
        Self {
            pps,
            offered_pps: None,
            run: None,
        }
    }
}

/// What was offered while each was made; none where nothing says it of one.
pub(crate) fn offered_pps(counted: &[Counted]) -> Option<Vec<f64>> {
    let offered: Option<Vec<f64>> = counted.iter().map(|one| one.offered_pps).collect();
    offered.filter(|offered| !offered.is_empty())
}

/// The observations of a variant that count, in the order of its runs.
pub(crate) fn counted(published: &[f64], runs: &[Measured]) -> Vec<Counted> {
    if runs.iter().all(|run| run.pps.is_none()) {
        return published.iter().copied().map(Counted::published).collect();
    }
    let places = places(published, runs);
    let numbered = runs.iter().enumerate();
    let of_run = |(index, run): (usize, &Measured)| {
        if run.is_profiled {
            let place = in_its_place(index, published, runs, &places)?;
            return Some(Counted::published(published[place]));
        }
        Some(Counted {
            pps: run.pps?,
            offered_pps: run.offered_pps,
            run: Some(index),
        })
    };
    numbered.filter_map(of_run).collect()
}

/// The place of each run's value among the published ones; none where it is not published. No value is two runs'.
pub(crate) fn places(published: &[f64], runs: &[Measured]) -> Vec<Option<usize>> {
    let mut next = 0;
    let of_run = |run: &Measured| {
        let place = next + place_of(run.pps?, &published[next..])?;
        next = place + 1;
        Some(place)
    };
    runs.iter().map(of_run).collect()
}

fn place_of(pps: f64, published: &[f64]) -> Option<usize> {
    let mut values = published.iter();
    values.position(|value| value.total_cmp(&pps).is_eq())
}

/// The place of what was published of a run whose own value is not: between those of the runs around it there are as
/// many values as runs, and it is no run's.
fn in_its_place(
    run: usize,
    published: &[f64],
    runs: &[Measured],
    places: &[Option<usize>],
) -> Option<usize> {
    let is_placed = |place: &Option<usize>| place.is_some();
    if is_placed(&places[run]) {
        return None;
    }
    let (before, after) = places.split_at(run);
    let first_run = before.iter().rposition(is_placed).map_or(0, |at| at + 1);
    let first = before.iter().rev().flatten().next().map_or(0, |at| at + 1);
    let end_run = after
        .iter()
        .position(is_placed)
        .map_or(runs.len(), |at| run + at);
    let end = after
        .iter()
        .flatten()
        .next()
        .copied()
        .unwrap_or(published.len());
    let place = first + run - first_run;
    let is_of_a_run = || {
        let mut values = runs.iter().filter_map(|run| run.pps);
        values.any(|pps| pps.total_cmp(&published[place]).is_eq())
    };
    (end - first == end_run - first_run && !is_of_a_run()).then_some(place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROFILED: bool = true;

    fn runs(runs: &[(f64, bool)]) -> Vec<Measured> {
        let runs = runs.iter().map(|&(pps, is_profiled)| Measured {
            pps: (pps > 0.0).then_some(pps),
            offered_pps: Some(9.0),
            is_profiled,
        });
        runs.collect()
    }

    /// What counts, and of which run it is.
    fn found(published: &[f64], of_runs: &[(f64, bool)]) -> Vec<(f64, Option<usize>)> {
        let found = counted(published, &runs(of_runs)).into_iter();
        found.map(|found| (found.pps, found.run)).collect()
    }

    #[test]
    fn what_logs_give_counts_and_a_profiled_run_does_not() {
        let [one, two, three] = [(1.0, false), (2.0, false), (3.0, false)];
        let of_logs = vec![(1.0, Some(0)), (2.0, Some(1)), (3.0, Some(2))];
        // Published or not, changed or left out.
        for published in [&[1.0, 2.0, 3.0][..], &[1.0, 3.0], &[1.0, 7.0, 3.0], &[]] {
            assert_eq!(found(published, &[one, two, three]), of_logs);
        }
        let profiled = (2.0, PROFILED);
        let without = vec![(1.0, Some(0)), (3.0, Some(2))];
        for published in [&[1.0, 2.0, 3.0][..], &[1.0, 3.0], &[]] {
            assert_eq!(found(published, &[one, profiled, three]), without);
        }
        assert_eq!(found(&[2.0], &[profiled]), []);
    }

    #[test]
    fn what_was_published_in_the_place_of_a_profiled_run_counts() {
        let (first, second) = ((0.7, PROFILED), (0.8, PROFILED));
        let others = [(2.0, false), (3.0, false)];
        let [two, three] = [(2.0, Some(1)), (3.0, Some(2))];
        let of = |runs: &[(f64, bool)]| found(&[1.0, 2.0, 3.0], runs);
        assert_eq!(
            of(&[first, others[0], others[1]]),
            [(1.0, None), two, three]
        );
        // Its log may be cut.
        let cut = (0.0, PROFILED);
        assert_eq!(of(&[cut, others[0], others[1]]), [(1.0, None), two, three]);
        assert_eq!(
            found(&[1.0, 1.1, 3.0], &[first, second, others[1]]),
            [(1.0, None), (1.1, None), three]
        );
        // Which of two values it would be is not known, nor whether it is another run's.
        assert_eq!(
            found(&[1.0, 1.1, 2.0], &[first, others[0]]),
            [(2.0, Some(1))]
        );
        assert_eq!(
            found(&[3.0, 2.0], &[first, others[0], others[1]]),
            [two, three]
        );
    }

    #[test]
    fn what_was_published_counts_where_no_log_gives_anything() {
        let published = vec![(4.0, None), (5.0, None)];
        assert_eq!(found(&[4.0, 5.0], &[]), published);
        assert_eq!(found(&[4.0, 5.0], &[(0.0, false)]), published);
    }

    proptest! {
        #[test]
        fn no_value_of_a_profiled_run_counts(
            published in prop::collection::vec(1..9_u8, 0..7),
            of_runs in prop::collection::vec((0..9_u8, any::<bool>()), 0..7),
        ) {
            let published: Vec<f64> = published.into_iter().map(f64::from).collect();
            // Values of runs are told from each other.
            let of_runs: Vec<(f64, bool)> = (0_u8..)
                .zip(of_runs)
                .map(|(run, (pps, is_profiled))| (f64::from(pps) * f64::from(run % 2), is_profiled))
                .collect();
            let measured = runs(&of_runs);
            let is_of_logs = measured.iter().any(|run| run.pps.is_some());
            for found in counted(&published, &measured) {
                let Some(run) = found.run else {
                    let is_of_a_run = measured.iter().any(|run| run.pps == Some(found.pps));
                    prop_assert!(!is_of_logs || !is_of_a_run);
                    continue;
                };
                prop_assert!(!measured[run].is_profiled);
                prop_assert_eq!(measured[run].pps, Some(found.pps));
            }
        }
    }
}
