//! Labels shortened where there is little room, so that what tells them apart stays.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_model::{Resolved, VariantName};

use crate::text::one_line;

/// How the label of a control ends; it stays whole.
const CONTROL: &str = " (A/A control)";

/// Into how many parts what is kept is divided.
const PARTS: usize = 32;

/// A variant's name for readers; its name in files where the experiment has no such variant.
pub(crate) fn label_of(resolved: &Resolved, name: &VariantName) -> String {
    let variant = resolved.variant(name);
    variant.map_or_else(|| name.to_string(), |variant| one_line(&variant.label))
}

/// The labels, each shortened in its middle until it fits.
///
/// Labels that differ still do, whatever was left out: the same part of each is tried to be kept first,
/// then with their common beginning left out, and where both leave two alike they are numbered. Of a
/// label that ends so, ` (A/A control)` stays.
///
/// Shape: as many as `labels`, in their order, each one line. `fits` holds of an ellipsis with a number
/// behind it, `… #12`; where it does not, that is what is left.
pub(crate) fn shortened(labels: &[&str], fits: &dyn Fn(&str) -> bool) -> Vec<String> {
    let lines: Vec<String> = labels.iter().map(|label| one_line(label)).collect();
    let distinct: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
    let long = distinct.iter().copied().filter(|line| !fits(line));
    let shared = common_beginning(&long.collect::<Vec<_>>());
    let mut heads: Vec<usize> = (0..=PARTS).collect();
    heads.sort_by_key(|head| head.abs_diff(PARTS / 2));
    let splits = [0, shared]
        .into_iter()
        .flat_map(|dropped| heads.iter().map(move |&head_parts| (dropped, head_parts)));
    for (dropped, head_parts) in splits {
        let texts = distinct.iter().map(|line| {
            let short = if fits(line) {
                Some((*line).to_owned())
            } else {
                cut(line, dropped, head_parts, fits)
            };
            Some((*line, short?))
        });
        let Some(texts) = texts.collect::<Option<BTreeMap<&str, String>>>() else {
            continue;
        };
        if texts.values().collect::<BTreeSet<_>>().len() == distinct.len() {
            return lines
                .iter()
                .map(|line| texts[line.as_str()].clone())
                .collect();
        }
    }
    let texts = numbered(&distinct, fits);
    lines
        .iter()
        .map(|line| texts[line.as_str()].clone())
        .collect()
}

/// Characters that all lines begin with, up to the last that is no part of a word or number: a level is
/// told by all of its digits.
fn common_beginning(lines: &[&str]) -> usize {
    let Some((first, others)) = lines.split_first() else {
        return 0;
    };
    let is_shared = |&(index, character): &(usize, char)| {
        let mut others = others.iter();
        others.all(|other| other.chars().nth(index) == Some(character))
    };
    let shared: Vec<char> = first
        .chars()
        .enumerate()
        .take_while(is_shared)
        .map(|(_, character)| character)
        .collect();
    let boundary = shared
        .iter()
        .rposition(|character| !character.is_alphanumeric());
    boundary.map_or(0, |boundary| boundary + 1)
}

/// As much of a line as fits, with so many of its first characters dropped, and of the rest so many
/// [`PARTS`] from its beginning and the others from its end; none where hardly anything fits.
fn cut(
    line: &str,
    dropped: usize,
    head_parts: usize,
    fits: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let (body, control) = match line.strip_suffix(CONTROL) {
        Some(body) => (body, CONTROL),
        None => (line, ""),
    };
    let body: Vec<char> = body.chars().skip(dropped).collect();
    let lead = if dropped > 0 { "…" } else { "" };
    (1..=body.len()).rev().find_map(|kept| {
        let head = kept * head_parts / PARTS;
        let tail = kept - head;
        let text = |characters: &[char]| characters.iter().collect::<String>();
        let text = if kept == body.len() {
            format!("{lead}{}{control}", text(&body))
        } else {
            format!(
                "{lead}{}…{}{control}",
                text(&body[..head]).trim(),
                text(&body[body.len() - tail..]).trim()
            )
        };
        fits(&text).then_some(text)
    })
}

/// The lines that do not fit cut at their end and numbered, none like another.
fn numbered<'a>(
    lines: &BTreeSet<&'a str>,
    fits: &dyn Fn(&str) -> bool,
) -> BTreeMap<&'a str, String> {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let whole = lines.iter().copied().filter(|line| fits(line));
    texts.extend(whole.map(|line| (line, line.to_owned())));
    let mut taken: BTreeSet<String> = texts.values().cloned().collect();
    let mut number = 0;
    for &line in lines {
        if texts.contains_key(line) {
            continue;
        }
        let text = loop {
            number += 1;
            let text = with_number(line, number, fits);
            if taken.insert(text.clone()) {
                break text;
            }
        };
        texts.insert(line, text);
    }
    texts
}

fn with_number(line: &str, number: usize, fits: &dyn Fn(&str) -> bool) -> String {
    let control = if line.ends_with(CONTROL) { CONTROL } else { "" };
    let body: Vec<char> = line[..line.len() - control.len()].chars().collect();
    let end = format!("… #{number}");
    let texts = [control, ""].into_iter().flat_map(|control| {
        let (body, end) = (&body, &end);
        (0..body.len()).rev().map(move |kept| {
            let head: String = body[..kept].iter().collect();
            format!("{}{end}{control}", head.trim_end())
        })
    });
    texts.into_iter().find(|text| fits(text)).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::columns;

    const WIDTH: usize = 28;

    fn in_columns(labels: &[&str], width: usize) -> Vec<String> {
        shortened(labels, &|text| columns(text) <= width)
    }

    #[test]
    fn what_tells_labels_apart_stays() {
        assert_eq!(
            in_columns(
                &[
                    "iflib.simple_tx=0 and iflib.tx_reclaim_thresh=256 (25%)",
                    "iflib.simple_tx=1 and iflib.tx_reclaim_thresh=256 (25%)",
                    "iflib.simple_tx=1 and iflib.tx_reclaim_thresh=512 (50%)",
                    "iflib.simple_tx=0 and iflib.tx_reclaim_thresh=0 (default) (A/A control)",
                    "no packet filter",
                ],
                WIDTH
            ),
            [
                "iflib.simple_tx=0…=256 (25%)",
                "iflib.simple_tx=1…=256 (25%)",
                "iflib.simple_tx=1…=512 (50%)",
                "iflib.si…ault) (A/A control)",
                "no packet filter",
            ]
        );
    }

    #[test]
    fn what_differs_in_the_middle_alone_stays_too() {
        let labels = ["a", "b"].map(|level| {
            format!("the same very long beginning indeed {level} and the same long end of a label")
        });
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        assert_eq!(
            in_columns(&labels, WIDTH),
            [
                "…a and the sam…nd of a label",
                "…b and the sam…nd of a label"
            ]
        );
    }

    #[test]
    fn what_cannot_be_told_apart_is_numbered() {
        let labels = ["a", "b", "c"].map(|level| {
            let other = if level == "c" { "y" } else { "x" };
            format!("{other}{}{level}{}", "-".repeat(60), "-".repeat(60))
        });
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let texts = in_columns(&labels, 10);
        assert_eq!(texts, ["x-----… #1", "x-----… #2", "y-----… #3"]);
        assert!(in_columns(&[], 10).is_empty());
    }

    proptest! {
        #[test]
        fn distinct_labels_stay_distinct_and_fit(
            beginning in "[a-z=._ ]{0,40}",
            middles in prop::collection::vec("[ab01 ]{0,6}", 1..8),
            end in "[a-z=._ 漢]{0,40}",
            width in 6usize..60,
        ) {
            let mut labels: Vec<String> = middles
                .iter()
                .map(|middle| format!("{beginning}{middle}{end}"))
                .collect();
            labels.push(format!("{}{CONTROL}", labels[0]));
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            let texts = in_columns(&labels, width);
            prop_assert_eq!(texts.len(), labels.len());
            for (label, text) in labels.iter().zip(&texts) {
                prop_assert!(columns(text) <= width, "{} in {}", text, width);
                let line = one_line(label);
                prop_assert!(columns(&line) > width || *text == line);
                if width >= WIDTH && line.ends_with(CONTROL) {
                    prop_assert!(text.ends_with(CONTROL), "{}", text);
                }
                for (other, other_text) in labels.iter().zip(&texts) {
                    prop_assert_eq!(line == one_line(other), text == other_text);
                }
            }
        }

        #[test]
        fn any_text_fits(labels: Vec<String>, width in 6usize..60) {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            for text in in_columns(&labels, width) {
                prop_assert!(columns(&text) <= width, "{}", text);
            }
        }
    }
}
