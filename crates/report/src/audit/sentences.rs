//! What an audit found, in sentences; the page and the terminal say the same ones.

use fwdlab_stats::Verdict;

use super::AuditReport;
use super::verdicts::VerdictsSection;
use crate::format::{count, counted, part, short, significant};

/// What is said about one question.
pub(super) struct Answer {
    pub(super) topic: Topic,
    pub(super) heading: &'static str,
    pub(super) sentences: Vec<String>,
}

/// What an answer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Verdicts,
    Noise,
    Tails,
    Within,
    Sessions,
    Order,
    Offered,
    Practice,
}

/// Everything that there is something to say about, in the order of what readers ask.
pub(super) fn answers(report: &AuditReport) -> Vec<Answer> {
    let has_blocks = report.verdicts.blocks > 0;
    let said = has_blocks.then(|| verdicts(&report.verdicts));
    let costs = "What the usual practice costs";
    let answers = [
        (Topic::Verdicts, "What was said to differ", said),
        (Topic::Noise, "Noise between runs", noise(report)),
        (Topic::Tails, "Runs far from the others", tails(report)),
        (Topic::Within, "Within a run", within(report)),
        (
            Topic::Sessions,
            "The same in another session",
            sessions(report),
        ),
        (Topic::Order, "The order of the runs", order(report)),
        (Topic::Offered, "The offered load", offered(report)),
        (Topic::Practice, costs, practice(report)),
    ];
    let answers = answers.into_iter();
    answers
        .filter_map(|(topic, heading, sentences)| {
            Some(Answer {
                topic,
                heading,
                sentences: sentences?,
            })
        })
        .collect()
}

/// What was looked at.
pub(super) fn scope(report: &AuditReport) -> String {
    format!(
        "{}, {}, {} with logs, {} of ministat in the texts.",
        counted(report.folders as u64, "results folder"),
        counted(report.datasets as u64, "dataset"),
        counted(report.runs as u64, "run"),
        counted(report.verdicts.blocks as u64, "block"),
    )
}

fn verdicts(section: &VerdictsSection) -> Vec<String> {
    let mut sentences = Vec::new();
    let said = section.words.iter().map(|tally| tally.said).sum::<usize>();
    let unsaid = section
        .words
        .iter()
        .map(|tally| tally.unsaid)
        .sum::<usize>();
    let left = section.blocks_without_data + section.blocks_without_test;
    let mut judged = format!(
        "{} of {} judged, with {}: of {} a difference is said, of {} that none is proven.",
        count((section.blocks - left) as u64),
        counted(section.blocks as u64, "block"),
        counted((said + unsaid) as u64, "comparison"),
        count(said as u64),
        count(unsaid as u64),
    );
    for (blocks, why) in [
        (section.blocks_without_data, "a row of no dataset"),
        (section.blocks_without_test, "data that allow no test"),
    ] {
        if blocks > 0 {
            judged += &format!(" {} with {why} left out.", counted(blocks as u64, "block"));
        }
    }
    sentences.push(judged);
    let words = |verdict: Verdict| section.words.iter().find(|tally| tally.verdict == verdict);
    if let (Some(different), Some(negligible)) = (
        words(Verdict::Different),
        words(Verdict::DifferentButNegligible),
    ) && said > 0
    {
        let fallen = [Verdict::Equivalent, Verdict::Undecided]
            .iter()
            .filter_map(|verdict| words(*verdict))
            .map(|tally| tally.said)
            .sum::<usize>();
        sentences.push(format!(
            "Of the {} {} are shown to be beyond 1 %, {} are shown to be below it, and {} are not shown \
             when all comparisons of their block are judged together.",
            counted(said as u64, "difference"),
            percent_of(different.said, said),
            percent_of(negligible.said, said),
            percent_of(fallen, said),
        ));
    }
    if let (Some(equivalent), Some(undecided)) =
        (words(Verdict::Equivalent), words(Verdict::Undecided))
        && unsaid > 0
    {
        sentences.push(format!(
            "Where none was proven, {} are shown to be within 1 %; {} could hide more than that.",
            percent_of(equivalent.unsaid, unsaid),
            percent_of(undecided.unsaid, unsaid),
        ));
    }
    let across = section.comparisons.iter();
    let across = across
        .filter(|comparison| comparison.across_sessions)
        .count();
    if across > 0 {
        sentences.push(format!(
            "{} of the comparisons are across two folders of results: two sessions, whose difference is in the effect.",
            count(across as u64)
        ));
    }
    sentences
}

fn noise(report: &AuditReport) -> Option<Vec<String>> {
    let noise = report.noise.as_ref()?;
    let cv = &noise.all.cv_percent;
    let mut sentences = vec![format!(
        "The standard deviation between the runs of a dataset is {} of their mean in half of {} (a tenth are below {}, a \
         tenth above {}, one in a hundred above {}).",
        part(cv.p50),
        counted(cv.count as u64, "dataset"),
        part(cv.p10),
        part(cv.p90),
        part(cv.p99),
    )];
    let needed: Vec<String> = noise
        .needed
        .iter()
        .map(|needed| {
            let runs = needed
                .runs
                .map_or_else(|| "too many".to_owned(), |runs| count(runs as u64));
            format!("{runs} at {}", part(needed.cv_percent))
        })
        .collect();
    sentences.push(format!(
        "To show a change of 1 % in four of five attempts takes so many runs of each side: {} (a quarter, half and three \
         quarters of the datasets have less noise).",
        needed.join(", ")
    ));
    Some(sentences)
}

fn tails(report: &AuditReport) -> Option<Vec<String>> {
    let tails = report.tails.as_ref()?;
    let mut sentence = format!(
        "Of {}, {} are more than 2 % off the median of the others of their dataset, {} more than 5 %, {} more than 10 %",
        counted(tails.runs as u64, "run"),
        part(tails.beyond_2_percent * 100.0),
        part(tails.beyond_5_percent * 100.0),
        part(tails.beyond_10_percent * 100.0),
    );
    if let Some(low) = tails.low_of_beyond_5_percent {
        sentence += &format!("; of those beyond 5 %, {} are too low", part(low * 100.0));
    }
    Some(vec![sentence + "."])
}

fn within(report: &AuditReport) -> Option<Vec<String>> {
    let within = report.within.as_ref()?;
    let deviation = &within.deviation_percent;
    let mut sentences = vec![format!(
        "In half of {} the seconds of the steady state deviate by less than {} of their median.",
        counted(deviation.count as u64, "run"),
        part(deviation.p50),
    )];
    if let Some(lag) = &within.autocorrelation {
        sentences.push(format!(
            "A second's rate correlates with the next one's by {} in half of the runs, by {} in one of twenty.",
            short(lag.p50, 2),
            short(lag.p95, 2),
        ));
    }
    if let Some(ratio) = &within.between_by_within {
        sentences.push(format!(
            "The variance between the runs of a dataset is {} times what independent seconds would give (half of {}): more \
             seconds buy nothing, more set-ups do.",
            significant(ratio.p50, 3),
            counted(ratio.count as u64, "dataset"),
        ));
    }
    Some(sentences)
}

fn sessions(report: &AuditReport) -> Option<Vec<String>> {
    let sessions = report.sessions.as_ref()?;
    let apart = &sessions.apart_percent;
    Some(vec![format!(
        "{} measured in more than one session, which makes {}: their medians are {} apart in half of them, {} in a tenth. \
         Nothing was changed, as far as is written down, and ministat calls {} of them a difference.",
        counted(sessions.configurations as u64, "configuration"),
        counted(apart.count as u64, "pair"),
        part(apart.p50),
        part(apart.p90),
        part(sessions.differences * 100.0),
    )])
}

fn order(report: &AuditReport) -> Option<Vec<String>> {
    let order = report.order.as_ref()?;
    Some(vec![format!(
        "{} of {} rise or fall from the first run to the last; if the order meant nothing, {} would.",
        count(order.monotone as u64),
        counted(order.datasets as u64, "dataset"),
        short(order.expected, 1),
    )])
}

fn offered(report: &AuditReport) -> Option<Vec<String>> {
    let offered = report.offered.as_ref()?;
    let cv = &offered.cv_percent;
    let mut sentences = vec![format!(
        "The standard deviation of the offered load between runs is {} of its mean in a tenth of {}, {} in one of a hundred.",
        part(cv.p90),
        counted(cv.count as u64, "dataset"),
        part(cv.p99),
    )];
    if let (Some(r), Some(correlated)) = (&offered.correlation, offered.correlated) {
        sentences.push(format!(
            "What was forwarded follows what was offered: their correlation is beyond what chance gives one in twenty in {} of \
             {}; in a tenth of them it is below {}, in a tenth above {}.",
            part(correlated * 100.0),
            counted(r.count as u64, "dataset"),
            short(r.p10, 2),
            short(r.p90, 2),
        ));
    }
    Some(sentences)
}

fn practice(report: &AuditReport) -> Option<Vec<String>> {
    let practice = report.practice.as_ref()?;
    let blocks: usize = practice.families.iter().map(|row| row.blocks).sum();
    let drifts: Vec<String> = practice
        .drifts
        .iter()
        .map(|row| {
            format!(
                "{} ({}) at {}",
                part(row.false_part * 100.0),
                part(row.interleaved_false_part * 100.0),
                short(row.deviations, 0),
            )
        })
        .collect();
    Some(vec![
        format!(
            "Simulated with {} a side, normal noise and no effect at all: {} of {} would show a difference, because a block makes \
             several comparisons.",
            counted(practice.runs as u64, "run"),
            short(practice.expected_false_blocks(), 1),
            counted(blocks as u64, "block"),
        ),
        format!(
            "Runs of one side behind those of the other show one where the machine drifts, in brackets the same in the order A B B A: {} \
             standard deviations of a run from the first to the last.",
            drifts.join(", ")
        ),
        format!(
            "Whoever adds runs until a difference shows, from {} to 20 a side, finds one in {}.",
            practice.runs,
            part(practice.until_shown * 100.0)
        ),
    ])
}

fn percent_of(count: usize, all: usize) -> String {
    part(count as f64 / all.max(1) as f64 * 100.0)
}
