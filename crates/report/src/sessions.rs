//! Results directories compared, session by session: between two sessions a machine may change by more than it does
//! within one, so that one session a side gives a difference and no verdict.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_archive::Loaded;
use fwdlab_model::imported::{ImportedResults, ImportedRun};
use fwdlab_model::{LoadRegime, Stratum, TrialRecord, VariantName};
use fwdlab_netbenches::{imported_observations, imported_start};
use fwdlab_stats::{
    ComparedSessions, ComparisonVerdict, IndependentObservations, Method, RerunNoise, SESSIONS_MIN,
    StatsError, independent_methods, median, minimum_sessions, percent, rerun_verdicts,
    session_verdicts, smallest_rank_p, within_sessions,
};
use serde::Serialize;

use crate::compare::{
    Basis, CompareGroup, CompareReport, CompareRow, CompareSettings, Observations,
};
use crate::compare::{
    error, independent, ministat, modes, report, row, split, stats_warnings, units,
};
use crate::error::ReportError;
use crate::evidence::{self, Scope};
use crate::offered_load;
use crate::report::{Effect, Warning};
use crate::sections::{DRAWS, verdict_section};
use crate::text::one_line;

/// So many of the variants that are left out are named.
const LEFT_OUT_SHOWN_MAX: usize = 10;

/// An uninterrupted stretch of measurements, as it is compared with others.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The results directory, as it was given.
    pub directory: String,
    /// Its number in that directory; none where others measured it.
    pub number: Option<u32>,
    /// When it began, UTC, in a form that sorts; none where nothing says.
    pub start: Option<String>,
    /// What tells the sessions of one configuration from those of others: experiment and kernel; none where nothing says.
    pub configuration: Option<[String; 2]>,
    /// What was measured in it.
    pub variants: Vec<SessionVariant>,
}

/// The observations of a variant in a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionVariant {
    /// Its name in files, by which sessions are compared.
    pub name: VariantName,
    /// Its name for readers.
    pub label: String,
    /// The stratum; none where nothing says.
    pub stratum: Option<Stratum>,
    /// One or more, in the order of measuring.
    pub values_pps: Vec<f64>,
    /// What was offered, one number an observation; none where it is not known, or follows from what was forwarded.
    pub offered_pps: Option<Vec<f64>>,
    /// Whether all that was offered came through in every trial: the rates are then those of the load. Never under a
    /// self-clocked load.
    pub is_carried_whole: bool,
}

impl Session {
    /// The sessions of a run that have an accepted block, in order; `directory` is where it lies.
    #[must_use]
    pub fn of_run(directory: &str, loaded: &Loaded) -> Vec<Self> {
        let attempts = evidence::attempts(loaded, Scope::Accepted);
        let numbers: BTreeSet<u32> = attempts
            .iter()
            .map(|attempt| attempt.record.session)
            .collect();
        let session = |number: u32| {
            let mut variants = Vec::new();
            for stratum in loaded.resolved.strata() {
                let compared = loaded.resolved.variants.iter();
                for variant in compared.filter(|variant| variant.control_of.is_none()) {
                    let trials: Vec<&TrialRecord> = attempts
                        .iter()
                        .filter(|attempt| attempt.record.session == number)
                        .filter_map(|attempt| evidence::trial(attempt, &variant.name, stratum))
                        .collect();
                    if trials.is_empty() {
                        continue;
                    }
                    let (values_pps, offered_pps): (Vec<f64>, Vec<f64>) = trials
                        .iter()
                        .map(|trial| (trial.observation_pps, offered_load::offered_pps(trial)))
                        .unzip();
                    let is_own_outcome = loaded.regime() == LoadRegime::SelfClocked;
                    let is_known = !is_own_outcome && offered_pps.iter().all(|pps| *pps > 0.0);
                    variants.push(SessionVariant {
                        name: variant.name.clone(),
                        label: variant.label.clone(),
                        stratum: Some(stratum),
                        values_pps,
                        offered_pps: is_known.then_some(offered_pps),
                        is_carried_whole: !is_own_outcome
                            && trials.iter().all(|trial| offered_load::is_carried(trial)),
                    });
                }
            }
            let mut records = loaded.sessions.iter();
            Self {
                directory: directory.to_owned(),
                number: Some(number),
                start: records
                    .find(|record| record.session == number)
                    .map(|record| record.start.clone()),
                configuration: Some([loaded.hash.clone(), loaded.kernel.clone()]),
                variants,
            }
        };
        numbers.into_iter().map(session).collect()
    }

    /// A folder of imported results, as one session: the runs of a folder were made one after the other. None where
    /// it has no observation.
    #[must_use]
    pub fn of_import(
        directory: &str,
        results: &ImportedResults,
        runs: &[ImportedRun],
    ) -> Option<Self> {
        let variants = results.variants.iter().filter_map(|variant| {
            let (values_pps, offered_pps): (Vec<f64>, Vec<Option<f64>>) =
                imported_observations(variant, runs)
                    .into_iter()
                    .map(|one| (one.pps, one.offered_pps))
                    .unzip();
            let offered_pps: Option<Vec<f64>> = offered_pps.into_iter().collect();
            (!values_pps.is_empty()).then(|| SessionVariant {
                name: variant.name.clone(),
                label: variant.key.clone(),
                stratum: variant.family.map(Stratum::from),
                values_pps,
                offered_pps: offered_pps.filter(|pps| pps.iter().all(|pps| *pps > 0.0)),
                is_carried_whole: false,
            })
        });
        let variants: Vec<SessionVariant> = variants.collect();
        (!variants.is_empty()).then(|| Self {
            directory: directory.to_owned(),
            number: None,
            start: results.variants.iter().filter_map(imported_start).min(),
            configuration: None,
            variants,
        })
    }

    /// Whether both are of the very same measurement, as a copy of a directory has it, or one that was copied while the
    /// run went on: for each variant that both have, the one's observations begin as the other's do. Values that are all
    /// the same say nothing: a line's rate is often measured twice.
    #[must_use]
    pub fn is_copy_of(&self, other: &Self) -> bool {
        let mut in_common = Vec::new();
        for variant in &self.variants {
            let key = Key::of(variant);
            let Some(of_other) = other.variant(&key) else {
                continue;
            };
            let (one, other) = (&variant.values_pps, &of_other.values_pps);
            let fewer = one.len().min(other.len());
            if one[..fewer] != other[..fewer] {
                return false;
            }
            in_common.extend_from_slice(&one[..fewer]);
        }
        in_common
            .iter()
            .any(|value| value.total_cmp(&in_common[0]).is_ne())
    }

    fn variant(&self, key: &Key) -> Option<&SessionVariant> {
        let mut variants = self.variants.iter();
        variants.find(|variant| Key::of(variant) == *key)
    }
}

/// A session that was compared, or that the noise between sessions is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionSection {
    /// The results directory, as it was given.
    pub directory: String,
    /// Its number in that directory; none of imported results.
    pub session: Option<u32>,
    /// When it began, UTC; none where nothing says.
    pub start: Option<String>,
}

impl From<&Session> for SessionSection {
    fn from(session: &Session) -> Self {
        Self {
            directory: session.directory.clone(),
            session: session.number,
            start: session.start.clone(),
        }
    }
}

/// The noise between sessions, as reruns of one configuration show it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RerunsSection {
    /// How many sessions.
    pub sessions: usize,
    /// Standard deviation of their medians, in percent.
    pub standard_deviation_percent: f64,
    /// Degrees of freedom of that, and of the t of the verdict.
    pub degrees_of_freedom: f64,
}

/// What sessions are compared by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    stratum: Option<Stratum>,
    name: VariantName,
}

impl Key {
    fn of(variant: &SessionVariant) -> Self {
        Self {
            stratum: variant.stratum,
            name: variant.name.clone(),
        }
    }
}

/// Compares the variants that all sessions have, the sessions of each side with those of the first, the baseline.
///
/// With one session a side, and no reruns, there are differences and no verdict. With [`SESSIONS_MIN`] sessions a side
/// or more, the session is the unit. `reruns` are other sessions, all of one configuration: from them is taken how far
/// sessions differ where a side has fewer.
///
/// Shape: two sides or more, each of one session or more; no session twice.
///
/// # Errors
/// [`ReportError::NothingShared`], [`ReportError::TooFewSessions`], [`ReportError::TooFewReruns`],
/// [`ReportError::NeedlessReruns`], [`ReportError::NothingTested`], [`ReportError::NotPositive`], and what the statistics
/// refuse.
pub fn compare_sessions(
    sides: &[Vec<Session>],
    reruns: &[Session],
    settings: CompareSettings,
) -> Result<CompareReport, ReportError> {
    let comparison = SessionComparison {
        sides,
        reruns,
        settings,
        basis: basis(sides, reruns, settings)?,
    };
    if settings.with_methods && comparison.basis != Basis::Sessions {
        return Err(ReportError::NothingTested);
    }
    let (shared, left_out) = comparison.variants();
    if shared.is_empty() {
        return Err(ReportError::NothingShared);
    }
    comparison.require_positive(&shared)?;
    let mut warnings = comparison.warnings(left_out);
    let mut strata: Vec<Option<Stratum>> = Vec::new();
    for (key, _) in &shared {
        if !strata.contains(&key.stratum) {
            strata.push(key.stratum);
        }
    }
    let mut groups = Vec::new();
    for stratum in strata {
        // The variants of a stratum are one family of comparisons.
        let of_stratum = shared.iter().filter(|(key, _)| key.stratum == stratum);
        let of_stratum: Vec<Sets> = of_stratum
            .map(|(key, label)| comparison.sets(key, label))
            .collect();
        let judged = comparison.judge(&of_stratum, &mut warnings)?;
        for (sets, judged) in of_stratum.iter().zip(judged) {
            groups.push(comparison.group(sets, judged, shared.len(), &mut warnings)?);
        }
    }
    let mut compared = report(comparison.basis, settings, groups, warnings);
    compared.no_verdict = (comparison.basis == Basis::WithinSessions).then(no_verdict);
    compared.sides = sides
        .iter()
        .map(|side| side.iter().map(SessionSection::from).collect())
        .collect();
    compared.reruns = reruns.iter().map(SessionSection::from).collect();
    Ok(compared)
}

/// Why one session a side gets no verdict, and what would give one.
fn no_verdict() -> String {
    format!(
        "with one session a side, the difference is that between these sessions only: nothing here measures how far \
         another session would be from them; name reruns of one configuration with --sessions, or give {SESSIONS_MIN} or more \
         sessions of each side with --with"
    )
}

fn basis(
    sides: &[Vec<Session>],
    reruns: &[Session],
    settings: CompareSettings,
) -> Result<Basis, ReportError> {
    let confidence = settings.confidence_percent / 100.0;
    let refused = |source| ReportError::Statistics {
        comparison: label(&sides[0]),
        source,
    };
    let need = minimum_sessions(1, confidence).map_err(refused)?;
    let baseline = sides[0].len();
    let reaches = |side: &&Vec<Session>| {
        side.len().min(baseline) >= SESSIONS_MIN
            && smallest_rank_p(side.len(), baseline) <= 1.0 - confidence + 1e-12
    };
    let short = sides[1..].iter().find(|side| !reaches(side));
    if !reruns.is_empty() {
        if short.is_none() {
            return Err(ReportError::NeedlessReruns { need });
        }
        if reruns.len() < SESSIONS_MIN {
            return Err(ReportError::TooFewReruns {
                have: reruns.len(),
                need: SESSIONS_MIN,
            });
        }
        return Ok(Basis::Reruns);
    }
    if sides.iter().all(|side| side.len() == 1) {
        return Ok(Basis::WithinSessions);
    }
    match short {
        None => Ok(Basis::Sessions),
        Some(side) => Err(ReportError::TooFewSessions {
            baseline: label(&sides[0]),
            baseline_sessions: baseline,
            other: label(side),
            other_sessions: side.len(),
            smallest_p: smallest_rank_p(side.len(), baseline),
            need,
        }),
    }
}

/// The directories of some sessions, each once, with how many of them it holds.
fn directories(sessions: &[Session]) -> Vec<(&str, usize)> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for session in sessions {
        match found
            .iter_mut()
            .find(|(directory, _)| *directory == session.directory)
        {
            Some((_, sessions)) => *sessions += 1,
            None => found.push((&session.directory, 1)),
        }
    }
    found
}

/// A side's name for readers: its directory, or the first one and how many more.
fn label(side: &[Session]) -> String {
    let directories = directories(side);
    let first = directories
        .first()
        .map_or_else(String::new, |(directory, _)| one_line(directory));
    match directories.len() {
        0 | 1 => first,
        number => format!("{first} and {} more", number - 1),
    }
}

/// What the sessions of a side have of a variant.
fn of_variant<'a>(side: &'a [Session], key: &Key) -> Vec<&'a SessionVariant> {
    let variants = side.iter().filter_map(|session| session.variant(key));
    variants.collect()
}

/// A variant of all sides, the baseline first.
struct Sets {
    title: String,
    /// What the rows show: observations of the one session, or a median for each of several.
    shown: Vec<Observations>,
    /// The observations of each side, session by session.
    sessions: Vec<Vec<Vec<f64>>>,
    /// The observations of each rerun.
    reruns: Vec<Vec<f64>>,
    /// Of which sides the rates are those of the load.
    is_carried_whole: Vec<bool>,
}

/// What is made of one side against the baseline.
enum Judged {
    /// A difference, of which nothing is concluded.
    Within(Effect),
    Verdict(Box<ComparisonVerdict>),
}

struct SessionComparison<'a> {
    sides: &'a [Vec<Session>],
    reruns: &'a [Session],
    settings: CompareSettings,
    basis: Basis,
}

impl SessionComparison<'_> {
    fn all_sessions(&self) -> impl Iterator<Item = &Session> {
        self.sides.iter().flatten().chain(self.reruns)
    }

    /// The variants that all sessions have, with their labels, in the first one's order; and the labels of those that
    /// some have.
    fn variants(&self) -> (Vec<(Key, String)>, BTreeSet<String>) {
        let mut shared = Vec::new();
        let mut left_out = BTreeMap::new();
        let variants = self.all_sessions().flat_map(|session| &session.variants);
        for variant in variants {
            let key = Key::of(variant);
            let label = one_line(&variant.label);
            if self
                .all_sessions()
                .any(|session| session.variant(&key).is_none())
            {
                left_out.entry(key).or_insert(label);
            } else if shared.iter().all(|(known, _)| *known != key) {
                shared.push((key, label));
            }
        }
        (shared, left_out.into_values().collect())
    }

    fn sets(&self, key: &Key, label_of_variant: &str) -> Sets {
        let title = match key.stratum {
            Some(stratum) => format!("{label_of_variant}, {}", stratum.label()),
            None => label_of_variant.to_owned(),
        };
        let is_one_a_side = self.sides.iter().all(|side| side.len() == 1);
        let values = |side: &[Session]| -> Vec<Vec<f64>> {
            let variants = of_variant(side, key).into_iter();
            variants.map(|of| of.values_pps.clone()).collect()
        };
        let in_one = |sessions: Vec<&[f64]>| -> Vec<f64> {
            if is_one_a_side {
                sessions.concat()
            } else {
                sessions.into_iter().filter_map(median).collect()
            }
        };
        let shown = |side: &Vec<Session>| {
            let variants = of_variant(side, key);
            let values = variants.iter().map(|of| of.values_pps.as_slice()).collect();
            let offered = variants.iter().map(|of| of.offered_pps.as_deref());
            Observations {
                label: label(side),
                path: format!("{}: {title}", label(side)),
                values_pps: in_one(values),
                offered_pps: offered.collect::<Option<Vec<_>>>().map(in_one),
            }
        };
        let is_carried_whole =
            |side: &Vec<Session>| of_variant(side, key).iter().all(|of| of.is_carried_whole);
        Sets {
            shown: self.sides.iter().map(shown).collect(),
            sessions: self.sides.iter().map(|side| values(side)).collect(),
            reruns: values(self.reruns),
            is_carried_whole: self.sides.iter().map(is_carried_whole).collect(),
            title,
        }
    }

    /// Refuses an observation that has no logarithm, by where it is from.
    fn require_positive(&self, shared: &[(Key, String)]) -> Result<(), ReportError> {
        for session in self.all_sessions() {
            for variant in shared.iter().filter_map(|(key, _)| session.variant(key)) {
                let mut values = (1..).zip(&variant.values_pps);
                if let Some((observation, value)) = values.find(|(_, value)| **value <= 0.0) {
                    return Err(ReportError::NotPositive {
                        directory: session.directory.clone(),
                        session: session.number,
                        variant: one_line(&variant.label),
                        observation,
                        value: *value,
                    });
                }
            }
        }
        Ok(())
    }

    /// What becomes of a stratum, variant by variant, each side against the baseline.
    fn judge(
        &self,
        family: &[Sets],
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<Vec<Judged>>, ReportError> {
        let settings = self.settings.verdicts();
        let refused = |source| error(&family[0].shown[0], source);
        let mut compared = Vec::new();
        for sets in family {
            for (shown, sessions) in sets.shown.iter().zip(&sets.sessions).skip(1) {
                compared.push(ComparedSessions {
                    name: one_line(&shown.path),
                    baseline: sets.sessions[0].clone(),
                    variant: sessions.clone(),
                });
            }
        }
        let others = self.sides.len() - 1;
        let verdicts = match self.basis {
            Basis::Reruns => {
                let mut with_noise = Vec::with_capacity(compared.len());
                for (sets, compared) in family.iter().zip(compared.chunks(others)) {
                    let noise = self.noise(sets)?;
                    with_noise.extend(compared.iter().map(|compared| (compared.clone(), noise)));
                }
                rerun_verdicts(&with_noise, &settings)
            }
            Basis::Sessions => session_verdicts(&compared, &settings),
            _ => {
                let mut judged = Vec::with_capacity(compared.len());
                for (number, compared) in compared.iter().enumerate() {
                    let baseline = row(&family[number / others].shown[0]);
                    let within = within_sessions(compared, settings.confidence).map_err(refused)?;
                    judged.push(Judged::Within(Effect::of_ratio(
                        within.estimate,
                        within.interval,
                        Some(&baseline.row),
                    )));
                }
                return Ok(in_groups(judged, others));
            }
        };
        let verdicts = verdicts.map_err(refused)?;
        warnings.extend(stats_warnings(&verdicts));
        let judged = verdicts.comparisons.into_iter();
        let judged = judged.map(|verdict| Judged::Verdict(Box::new(verdict)));
        Ok(in_groups(judged.collect(), others))
    }

    fn noise(&self, sets: &Sets) -> Result<RerunNoise, ReportError> {
        let subject = format!("--sessions, {}", sets.title);
        RerunNoise::new(&subject, &sets.reruns).map_err(|source| error(&sets.shown[0], source))
    }

    fn group(
        &self,
        sets: &Sets,
        judged: Vec<Judged>,
        variants: usize,
        warnings: &mut Vec<Warning>,
    ) -> Result<CompareGroup, ReportError> {
        let (baseline, others) = split(&sets.shown);
        let baseline_row = row(baseline);
        let mut family_size = 0;
        let mut rows: Vec<CompareRow> = vec![baseline_row.clone()];
        for (number, (set, judged)) in (1..).zip(others.iter().zip(judged)) {
            let is_of_load = sets.is_carried_whole[0] && sets.is_carried_whole[number];
            let mut row = row(set);
            row.row.effect = Some(match judged {
                Judged::Within(effect) => effect,
                Judged::Verdict(verdict) => {
                    let verdict = match is_of_load {
                        true => verdict.not_limited_by_dut(),
                        false => *verdict,
                    };
                    family_size = verdict.family_size;
                    let effect = Effect::of_verdict(&verdict, Some(&baseline_row.row));
                    row.row.verdict = Some(verdict_section(&verdict, &effect));
                    effect
                }
            });
            rows.push(row);
        }
        let mut group = CompareGroup {
            title: Some(sets.title.clone()),
            rows,
            family_size,
            reruns: None,
            factorial: None,
            offered_load: Vec::new(),
            ministat: match self.settings.ministat {
                Some(dialect) => {
                    ministat(baseline, others, self.settings.confidence_percent, dialect)?
                }
                None => Vec::new(),
            },
        };
        if self.basis == Basis::Reruns {
            let noise = self.noise(sets)?;
            group.reruns = Some(RerunsSection {
                sessions: noise.sessions,
                standard_deviation_percent: percent(noise.standard_deviation),
                degrees_of_freedom: noise.degrees_of_freedom(),
            });
        }
        if self.settings.with_methods {
            group.add_methods(
                self.methods(sets)
                    .map_err(|source| error(baseline, source))?,
            );
        }
        let in_title = |warning: Warning| Warning {
            subjects: vec![format!("{}, {}", sets.title, warning.subjects.join(", "))],
            ..warning
        };
        let found = others.iter().filter_map(|set| units(baseline, set));
        warnings.extend(found.map(in_title));
        let found = group.add_offered_loads(
            &sets.shown,
            self.settings,
            offered_load::row_of_observations,
        )?;
        warnings.extend(found.into_iter().map(in_title));
        let found = modes(&sets.shown, variants * self.sides.len(), self.settings);
        let found = found.map_err(|source| error(baseline, source))?;
        warnings.extend(found.into_iter().map(in_title));
        Ok(group)
    }

    /// What every method makes of the sessions' medians, the verdict's first.
    fn methods(&self, sets: &Sets) -> Result<Vec<Vec<fwdlab_stats::MethodResult>>, StatsError> {
        let (baseline, others) = split(&sets.shown);
        let family: Vec<IndependentObservations> = others
            .iter()
            .map(|set| independent(&set.path, baseline, set))
            .collect();
        let confidence = self.settings.verdicts().confidence;
        let mut methods = independent_methods(&family, confidence, DRAWS)?;
        for results in &mut methods {
            results.sort_by_key(|result| result.method != Method::MannWhitney);
        }
        Ok(methods)
    }

    fn warnings(&self, left_out: BTreeSet<String>) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for sessions in self.sides.iter().map(Vec::as_slice).chain([self.reruns]) {
            let resumed = directories(sessions);
            for (directory, number) in resumed.into_iter().filter(|(_, number)| *number > 1) {
                warnings.push(Warning::new(
                    "W202",
                    vec![one_line(directory)],
                    format!(
                        "holds {number} sessions, because its run was interrupted and resumed; each counts as a \
                         session of its own"
                    ),
                    "measure each session as a separate, new run",
                ));
            }
            let configurations: BTreeSet<&[String; 2]> = sessions
                .iter()
                .filter_map(|session| session.configuration.as_ref())
                .collect();
            if configurations.len() > 1 {
                warnings.push(Warning::new(
                    "W222",
                    vec![label(sessions)],
                    "these sessions are treated as one configuration but come from several experiments or kernels: \
                     what differs between those counts as noise between sessions",
                    "give sessions of one experiment on one kernel",
                ));
            }
        }
        if !left_out.is_empty() {
            let number = left_out.len();
            let mut labels: Vec<String> = left_out.into_iter().take(LEFT_OUT_SHOWN_MAX).collect();
            if number > labels.len() {
                labels.push(format!("{} more", number - labels.len()));
            }
            warnings.push(Warning::new(
                "W221",
                labels,
                "not measured in every session that was given, and left out",
                "give sessions that have the same variants",
            ));
        }
        warnings.extend(self.order());
        warnings
    }

    /// W215, unless the sides' sessions took turns.
    fn order(&self) -> Option<Warning> {
        let text = match self.basis {
            Basis::Sessions => {
                let mut texts = self.sides[1..]
                    .iter()
                    .filter_map(|side| one_after_the_other(&self.sides[0], side));
                texts.next()?
            }
            Basis::Reruns => {
                "these were measured in different sessions: where they lie further apart in time than the reruns do, \
                 the machine may have changed by more than the reruns show"
            }
            _ => {
                "these were measured in different sessions, between which the machine may have changed: that is part \
                 of every difference"
            }
        };
        Some(Warning::new(
            "W215",
            None,
            text,
            "measure both sides as variants of one experiment, or alternate their sessions",
        ))
    }
}

/// What to beware of where no session of one side lies between those of the other.
fn one_after_the_other(baseline: &[Session], side: &[Session]) -> Option<&'static str> {
    let starts = |side: &[Session]| -> Option<(String, String)> {
        let starts: Option<Vec<&String>> =
            side.iter().map(|session| session.start.as_ref()).collect();
        let starts = starts?;
        Some((
            starts.iter().min()?.to_string(),
            starts.iter().max()?.to_string(),
        ))
    };
    let (Some(one), Some(other)) = (starts(baseline), starts(side)) else {
        return Some(
            "nothing says in what order these sessions were measured: what changed between the sides reads as an effect",
        );
    };
    (one.1 < other.0 || other.1 < one.0).then_some(
        "all sessions of one side were measured before those of the other: what changed in between reads as an effect",
    )
}

fn in_groups(judged: Vec<Judged>, others: usize) -> Vec<Vec<Judged>> {
    let mut groups = Vec::new();
    let mut judged = judged.into_iter();
    loop {
        let group: Vec<Judged> = judged.by_ref().take(others).collect();
        if group.is_empty() {
            return groups;
        }
        groups.push(group);
    }
}
