//! Words that say which of two is faster.

use std::collections::BTreeSet;

use fwdlab_stats::ministat::PublishedComparison;

use super::super::{Claim, PublishedReadme, Quantity, ReadmeBlock};
use super::figures::{ROUNDING, lines_beside_blocks};
use super::words::tokens;

/// A word that says which of two is faster, beside a block that says the contrary.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnedWord {
    /// Where it stands.
    pub line: usize,
    /// The word.
    pub word: String,
    /// By how much the second row is from the first, in percent.
    pub change: f64,
}

/// Words that say that something is faster, and those that say that it is slower.
const FASTER: &[&str] = &[
    "faster",
    "improve",
    "improved",
    "improvement",
    "improvements",
    "improves",
    "increase",
    "increased",
    "increases",
    "gain",
    "gains",
    "higher",
    "better",
    "best",
    "benefit",
];
const SLOWER: &[&str] = &[
    "slower",
    "regression",
    "regressions",
    "decrease",
    "decreased",
    "decreases",
    "degradation",
    "degraded",
    "degrades",
    "drop",
    "drops",
    "lower",
    "reduce",
    "reduced",
    "reduces",
    "reduction",
    "worse",
    "worst",
];
/// Those that a row is, and not a change from one to the other.
const OF_A_ROW: &[&str] = &["better", "faster", "higher", "lower", "slower", "worse"];
/// With one of these a line may mean the contrary.
const CONTRARY: &[&str] = &[
    "cost", "impact", "no", "not", "overhead", "penalty", "without",
];

/// Words beside a block of one comparison that say the contrary of it.
///
/// A line counts that has words of one direction, and says which row it is about: by a percentage with a sign, by one that
/// is that of the comparison one way round alone, or by a word that only that row's label has, in front of one like *faster*.
pub fn turned_words(readme: &PublishedReadme) -> Vec<TurnedWord> {
    let beside = lines_beside_blocks(readme);
    let mut found = Vec::new();
    for text in readme.sections.iter().flat_map(|section| &section.prose) {
        let block = beside.get(&text.line);
        let block = block.and_then(|&block| readme.blocks.get(block));
        let Some((block, change)) = block.and_then(|block| Some((block, change_of_second(block)?)))
        else {
            continue;
        };
        let words = tokens(&text.text);
        let Some((word, is_faster)) = direction(&words) else {
            continue;
        };
        let claims = readme.claims.iter().filter(|claim| {
            claim.line == text.line && claim.quantity == Quantity::Percent && !claim.is_half_width
        });
        let claims: Vec<&Claim> = claims.collect();
        let Some(is_of_second) = is_of_second(&claims, change).or_else(|| {
            let is_of_block = claims
                .iter()
                .all(|claim| is_near(claim, change) || is_near(claim, back(change)));
            let at = words.iter().position(|said| said == word)?;
            let is_of_a_row = is_of_block && OF_A_ROW.contains(&word);
            is_named_second(block, &words[..at]).filter(|_| is_of_a_row)
        }) else {
            continue;
        };
        let is_more = (change > 0.0) == is_of_second;
        if is_faster != is_more {
            found.push(TurnedWord {
                line: text.line,
                word: word.to_owned(),
                change,
            });
        }
    }
    found
}

/// The word of a line that says which is faster, and whether it says so; none where words do not agree.
fn direction(words: &[String]) -> Option<(&str, bool)> {
    let is_setting = |at: usize| {
        // A setting is increased from one value to another.
        let next = words.get(at + 1).map(String::as_str);
        matches!(next, Some("from" | "to"))
    };
    let said = |known: &[&str]| {
        let mut numbered = words.iter().enumerate();
        let word = numbered.find(|(at, word)| known.contains(&word.as_str()) && !is_setting(*at));
        word.map(|(_, word)| word.as_str())
    };
    match (said(FASTER), said(SLOWER), said(CONTRARY)) {
        (Some(word), None, None) => Some((word, true)),
        (None, Some(word), None) => Some((word, false)),
        _ => None,
    }
}

fn is_near(claim: &Claim, figure: f64) -> bool {
    let slack = claim.resolution * ROUNDING;
    let figures = claim.low.abs().min(claim.high.abs())..=claim.low.abs().max(claim.high.abs());
    (figures.start() - slack..=figures.end() + slack).contains(&figure.abs())
}

/// The change of the first row from the second.
fn back(change: f64) -> f64 {
    -100.0 * change / (100.0 + change)
}

/// Whether a percentage is the change of the second row from the first, rather than the other way round.
fn is_of_second(claims: &[&Claim], change: f64) -> Option<bool> {
    let [claim] = claims else {
        return None;
    };
    match (is_near(claim, change), is_near(claim, back(change))) {
        (true, _) if claim.is_signed => ((claim.high < 0.0) == (change < 0.0)).then_some(true),
        (true, false) => Some(true),
        (false, true) => (!claim.is_signed).then_some(false),
        _ => None,
    }
}

/// Whether the first word that only one row's label has is the second's.
fn is_named_second(block: &ReadmeBlock, words: &[String]) -> Option<bool> {
    // An address family has several names.
    let plain = |word: &str| match word {
        "inet" | "ipv4" => "inet4".to_owned(),
        "ipv6" => "inet6".to_owned(),
        word => word.to_owned(),
    };
    let of_row = |row: usize| -> Option<BTreeSet<String>> {
        let label = block.block.rows.get(row)?.label.as_ref()?;
        Some(tokens(label).iter().map(|word| plain(word)).collect())
    };
    let (first, second) = (of_row(0)?, of_row(1)?);
    words.iter().map(|word| plain(word)).find_map(|word| {
        match (first.contains(&word), second.contains(&word)) {
            (true, false) => Some(false),
            (false, true) => Some(true),
            _ => None,
        }
    })
}

/// By how much the second row of a block of one comparison is from the first, in percent.
fn change_of_second(block: &ReadmeBlock) -> Option<f64> {
    let [_, second] = &*block.block.rows else {
        return None;
    };
    match second.comparison.as_ref()? {
        PublishedComparison::Difference { percent, .. } => percent[0].parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::BLOCK;
    use super::*;

    #[test]
    fn a_word_that_says_the_contrary_of_the_block_is_found() {
        let found = |text: &str| -> Vec<String> {
            let readme = PublishedReadme::parse(text.replace("BLOCK", BLOCK).as_bytes());
            let found = turned_words(&readme).into_iter();
            found.map(|found| found.word).collect()
        };
        for (text, expected) in [
            ("It is 12.3% slower:\nBLOCK", "slower"),
            ("A regression (+12.3%):\nBLOCK", "regression"),
            ("Even worse if increased to 512K (+12.3%):\nBLOCK", "worse"),
            ("BLOCK\n=> old is 10.98% faster\n", "faster"),
            // The rows are called old and new.
            (
                "The new one is a little slower than the old:\nBLOCK",
                "slower",
            ),
            ("BLOCK\n=> the old one is faster, by 11-13%\n", "faster"),
        ] {
            assert_eq!(found(text), [expected], "{text}");
        }
        for text in [
            "It is 12.3% faster:\nBLOCK",
            "BLOCK\n=> old is 10.98% slower\n",
            "Performance increased (+12.3%):\nBLOCK",
            "The old one is a little slower than the new:\nBLOCK",
            "It is a little slower than the new:\nBLOCK",
            "From old to new an improvement:\nBLOCK",
            "Faster, with the limit reduced from 8 to 4 (+12.3%):\nBLOCK",
            // Of another figure, or not clear.
            "It is 40% slower:\nBLOCK",
            "The new one is 40% slower:\nBLOCK",
            "It is slower:\nBLOCK",
            "Better by 12.3% with a lower limit:\nBLOCK",
            "No regression, 12.3%:\nBLOCK",
            "Without it, 12.3% slower:\nBLOCK",
            "It is 12.3% slower.\n\nMore:\nBLOCK",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
