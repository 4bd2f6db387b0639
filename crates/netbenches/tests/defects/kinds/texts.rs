//! Texts that say something else than what lies beside them.

use std::path::Path;

use testkit::Random;

use super::other_digit;
use crate::part::{Change, Defect, Part};
use crate::published::{Block, links, name, prose_lines, words};

type Text<'a> = (&'a Path, String);

/// A place in one of a part's texts, and the line as it is then.
struct Place<'a> {
    text: &'a Text<'a>,
    line: usize,
    becomes: String,
}

fn planted(places: &[Place<'_>], random: &mut Random) -> Option<Defect> {
    let place = random.pick(places)?;
    Some(Defect::of_line(
        place.text.0,
        &place.text.1,
        place.line,
        &place.becomes,
    ))
}

/// Whether one text has a word of its subject that the other text has not.
fn tells_apart(subject: &str, own: &str, other: &str) -> bool {
    let (subject, own, other) = (words(subject), words(own), words(other));
    own.iter()
        .any(|word| subject.contains(word) && !other.contains(word))
}

/// Two labels of a block that both have a word of their datasets' names which the other's name has not.
pub(super) fn labels_exchanged(part: &Part, random: &mut Random) -> Option<Defect> {
    let texts = part.texts();
    let mut pairs = Vec::new();
    for text in &texts {
        for block in Block::all(&text.1) {
            let mut rows = Vec::new();
            for row in &block.rows {
                if let (Some(dataset), Some(legend)) = (part.dataset_of(row), block.legend(row)) {
                    rows.push((legend.line, legend.label.clone(), dataset.stem()));
                }
            }
            for (at, one) in rows.iter().enumerate() {
                for other in &rows[at + 1..] {
                    if tells_apart(&one.1, &one.2, &other.2)
                        && tells_apart(&other.1, &other.2, &one.2)
                    {
                        pairs.push((text, one.clone(), other.clone()));
                    }
                }
            }
        }
    }
    let (text, one, other) = random.pick(&pairs)?;
    let relabelled = |from: &str, to: &str, line: usize| {
        let line = text.1.lines().nth(line).unwrap();
        line.replacen(from, to, 1)
    };
    let first = Defect::of_line(text.0, &text.1, one.0, &relabelled(&one.1, &other.1, one.0));
    let half = String::from_utf8(first.changes[0].1.clone()).ok()?;
    let second = Defect::of_line(
        text.0,
        &half,
        other.0,
        &relabelled(&other.1, &one.1, other.0),
    );
    Some(Defect::new(
        second.changes,
        &format!("labels {:?} and {:?} exchanged", one.1, other.1),
    ))
}

/// Two links of a text to files that are there, of which each says what the other's target is not.
pub(super) fn links_exchanged(part: &Part, random: &mut Random) -> Option<Defect> {
    let texts = part.texts();
    let pictures = part.pictures();
    let mut pairs = Vec::new();
    for text in &texts {
        let is_there = |target: &str| {
            let file = text.0.parent().unwrap().join(target);
            part.has(&file) || pictures.contains(&file)
        };
        let links: Vec<_> = (text.1.lines().flat_map(links))
            .filter(|link| is_there(link.target) && text.1.matches(link.target).count() == 1)
            .collect();
        for (at, one) in links.iter().enumerate() {
            for other in &links[at + 1..] {
                if tells_apart(one.text, one.target, other.target)
                    && tells_apart(other.text, other.target, one.target)
                {
                    pairs.push((text, one.target.to_owned(), other.target.to_owned()));
                }
            }
        }
    }
    let (text, one, other) = random.pick(&pairs)?;
    let changed = text.1.replacen(one.as_str(), "\0", 1);
    let changed = changed
        .replacen(other.as_str(), one, 1)
        .replacen('\0', other, 1);
    let what = format!("links to {one} and {other} exchanged");
    Some(Defect::new(
        vec![(text.0.to_owned(), changed.into_bytes())],
        &what,
    ))
}

pub(super) fn broken_link(part: &Part, random: &mut Random) -> Option<Defect> {
    let texts = part.texts();
    let pictures = part.pictures();
    let mut places = Vec::new();
    for text in &texts {
        for (line, words) in text.1.lines().enumerate() {
            for link in links(words) {
                let file = text.0.parent().unwrap().join(link.target);
                if part.has(&file) || pictures.contains(&file) {
                    let target =
                        link.target
                            .replacen(&name(&file), &format!("x{}", name(&file)), 1);
                    let becomes =
                        words.replacen(&format!("]({})", link.target), &format!("]({target})"), 1);
                    places.push(Place {
                        text,
                        line,
                        becomes,
                    });
                }
            }
        }
    }
    planted(&places, random)
}

pub(super) fn verdict(part: &Part, random: &mut Random) -> Option<Defect> {
    let (difference, none) = ("Difference at", "No difference proven at");
    let texts = part.texts();
    let mut places = Vec::new();
    for text in &texts {
        let blocks = part.backed_blocks(&text.1).into_iter();
        for (line, _) in blocks.flat_map(|block| block.comparisons) {
            let words = text.1.lines().nth(line).unwrap();
            let turned = (words.strip_prefix(none))
                .map(|rest| format!("{difference}{rest}"))
                .or_else(|| Some(format!("{none}{}", words.strip_prefix(difference)?)));
            places.extend(turned.map(|becomes| Place {
                text,
                line,
                becomes,
            }));
        }
    }
    planted(&places, random)
}

const OPPOSITES: [(&str, &str); 8] = [
    ("better", "worse"),
    ("faster", "slower"),
    ("higher", "lower"),
    ("improve", "reduce"),
    ("improvement", "regression"),
    ("improves", "reduces"),
    ("increase", "decrease"),
    ("increased", "decreased"),
];

/// A word of prose in a text with blocks of ministat.
pub(super) fn verdict_word(part: &Part, random: &mut Random) -> Option<Defect> {
    let texts = part.texts();
    let mut places = Vec::new();
    for text in texts.iter().filter(|text| !Block::all(&text.1).is_empty()) {
        for (line, words) in prose_lines(&text.1) {
            for (one, other) in OPPOSITES {
                for (from, to) in [(one, other), (other, one)] {
                    // Titles of patches say what was hoped for, not what was found.
                    if line > 0 && words.split_whitespace().any(|word| word == from) {
                        let becomes = words.replacen(from, to, 1);
                        places.push(Place {
                            text,
                            line,
                            becomes,
                        });
                    }
                }
            }
        }
    }
    planted(&places, random)
}

const TOPICS: [&str; 7] = [
    "kern.random.harvest.mask",
    "iflib.tx_abdicate",
    "hyperthreading",
    "net.pf.states_hashsize",
    "hw.ix.num_queues",
    "net.inet.ip.fastforwarding",
    "LRO and TSO",
];

pub(super) fn title(part: &Part, random: &mut Random) -> Option<Defect> {
    let texts = part.texts();
    let topic = words(&name(&part.topic));
    let others: Vec<&str> = (TOPICS.iter().copied())
        .filter(|other| !words(other).iter().any(|word| topic.contains(word)))
        .collect();
    let other = random.pick(&others)?;
    let mut places = Vec::new();
    for text in &texts {
        let first = text.1.lines().next().unwrap_or_default();
        // A title that names the topic, as a name of the system's; of others nobody can say what they are about.
        if name(&part.topic).contains(['.', '_']) && tells_apart(first, &name(&part.topic), "") {
            let mark = if first.starts_with('#') { "# " } else { "" };
            let becomes = format!("{mark}Impact of {other} on forwarding performance");
            places.push(Place {
                text,
                line: 0,
                becomes,
            });
        }
    }
    planted(&places, random)
}

const MASKS: [&str; 4] = ["511", "2047", "4607", "65887"];

/// A mask that a configuration of the part sets.
pub(super) fn harvest_mask(part: &Part, random: &mut Random) -> Option<Defect> {
    let configurations: String = (part.ending("rc.conf").into_iter())
        .filter_map(|path| part.text(path))
        .collect();
    let is_set = |mask: &str| configurations.contains(&format!("harvest_mask=\"{mask}\""));
    let others: Vec<&&str> = MASKS.iter().filter(|mask| !is_set(mask)).collect();
    let other = random.pick(&others)?;
    let texts = part.texts();
    let mut places = Vec::new();
    for text in &texts {
        for (line, words) in prose_lines(&text.1) {
            let Some((before, behind)) = words.split_once("harvest.mask=") else {
                continue;
            };
            let mask: String = behind.chars().take_while(char::is_ascii_digit).collect();
            if is_set(&mask) {
                let becomes = format!("{before}harvest.mask={other}{}", &behind[mask.len()..]);
                places.push(Place {
                    text,
                    line,
                    becomes,
                });
            }
        }
    }
    planted(&places, random)
}

const CARDS: [&str; 6] = ["i350", "82599", "T540-CR", "X710", "ConnectX-4", "T580"];

/// The card that the path names, in the words of a text.
pub(super) fn card(part: &Part, random: &mut Random) -> Option<Defect> {
    let folder = name(part.topic.parent()?);
    let (_, own) = folder.split_once('_')?;
    let others: Vec<&&str> = CARDS.iter().filter(|card| !own.contains(**card)).collect();
    let other = random.pick(&others)?;
    let texts = part.texts();
    let mut places = Vec::new();
    for text in &texts {
        for (line, words) in prose_lines(&text.1) {
            if words.contains(own) {
                let becomes = words.replacen(own, other, 1);
                places.push(Place {
                    text,
                    line,
                    becomes,
                });
            }
        }
    }
    planted(&places, random)
}

/// A revision that the folder's name has, in the words of the lab or the title.
pub(super) fn revision(part: &Part, random: &mut Random) -> Option<Defect> {
    let texts = part.texts();
    let mut places = Vec::new();
    for text in &texts {
        let folder = text.0.parent()?.to_string_lossy().to_lowercase();
        for (line, all) in prose_lines(&text.1) {
            for word in words(all) {
                let is_revision = word.len() == 7
                    && word.starts_with(['r', 'n'])
                    && word[1..].bytes().all(|byte| byte.is_ascii_digit());
                if is_revision && folder.contains(&word) && all.contains(&word) {
                    let changed = format!("{}{}", &word[..1], other_digit(&word[1..], random)?);
                    let becomes = all.replacen(&word, &changed, 1);
                    places.push(Place {
                        text,
                        line,
                        becomes,
                    });
                }
            }
        }
    }
    planted(&places, random)
}

/// What is no defect: pictures beside datasets that are called as runs of them are.
pub(super) fn pictures(part: &Part, random: &mut Random) -> Option<Defect> {
    let folder = random.pick(part.datasets())?.path.parent()?;
    let end = *random.pick(&[".svg", ".1.svg", ".1.pmc.svg", ".png"])?;
    let of_folder = part.datasets().iter();
    let of_folder = of_folder.filter(|dataset| dataset.path.parent() == Some(folder));
    let pictures: Vec<Change> = of_folder
        .map(|dataset| folder.join(format!("bench.{}{end}", dataset.stem())))
        .filter(|picture| !part.pictures().contains(picture))
        .map(|picture| (picture, b"<svg/>\n".to_vec()))
        .collect();
    (!pictures.is_empty()).then(|| Defect::new(pictures, "put there"))
}
