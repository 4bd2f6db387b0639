//! The title against what the results are about.

use std::collections::BTreeSet;

use super::super::{PublishedReadme, TextLine, plain_spaces};
use super::words::{settings, tokens};

/// A title that names a factor of which nothing else knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleContradiction {
    /// The title.
    pub title: TextLine,
    /// The factors that it names.
    pub factors: Vec<String>,
    /// What is varied according to the labels and the folder, or according to the folder alone.
    pub varied: Vec<String>,
}

/// Words that are shorter stand in names of every kind.
const WORD_LETTERS_MIN: usize = 4;

/// A title naming a factor that stands in no label, dataset name or folder, while these name another.
///
/// Silent on titles that name no variable of the system (`a.b`, `a_b`), and where what is varied is
/// not known: neither do labels set what the topic's folder is called after, nor is that folder called
/// like a sysctl.
///
/// Shape: `place` is the README's folder; `dataset_names` those that back its rows or lie in it.
pub fn title_contradiction(
    readme: &PublishedReadme,
    place: &str,
    dataset_names: &[&str],
) -> Option<TitleContradiction> {
    let title = readme.title.as_ref()?;
    let factors: Vec<&str> = title.text.split_whitespace().filter_map(variable).collect();
    if factors.is_empty() {
        return None;
    }
    let rows = readme.blocks.iter().flat_map(|block| &block.block.rows);
    let labels: Vec<String> = rows
        .filter_map(|row| row.label.as_deref())
        .map(|label| plain_spaces(label).to_lowercase())
        .collect();
    let folder = place.to_lowercase();
    let names = dataset_names.iter().map(|name| name.to_lowercase());
    let elsewhere: Vec<String> = names
        .chain(labels.iter().cloned())
        .chain([folder.clone()])
        .collect();
    // Written apart or together, a name is the same.
    let plain = |text: &str| text.replace(['_', '.', '-', ' '], "");
    let elsewhere_plain: Vec<String> = elsewhere.iter().map(|text| plain(text)).collect();
    let elsewhere_tokens: BTreeSet<String> =
        elsewhere.iter().flat_map(|text| tokens(text)).collect();
    let is_known = |factor: &&str| {
        let words = tokens(factor);
        let mut long = words
            .iter()
            .filter(|word| word.len() >= WORD_LETTERS_MIN)
            .peekable();
        let last = factor.rsplit('.').next().unwrap_or_default().to_lowercase();
        // A factor of short words only is not looked for.
        long.peek().is_none()
            || long.any(|word| elsewhere_tokens.contains(word))
            || elsewhere_plain
                .iter()
                .any(|text| text.contains(&plain(&last)))
    };
    if factors.iter().any(is_known) {
        return None;
    }
    let title_tokens = tokens(&title.text);
    // `queue number` is about `num_queues`.
    let is_in_title = |word: &str| title_tokens.iter().any(|said| is_same_word(said, word));
    let topic = topic(&folder);
    let mut varied = BTreeSet::new();
    for setting in labels.iter().flat_map(|label| settings(label)) {
        let is_of_folder = setting
            .key
            .iter()
            .any(|word| word.len() >= WORD_LETTERS_MIN && topic.contains(word));
        let is_said = setting
            .key
            .iter()
            .any(|word| word.len() >= WORD_LETTERS_MIN && is_in_title(word));
        if is_of_folder && !is_said {
            varied.insert(setting.key.join("_"));
        }
    }
    if varied.is_empty()
        && variable(topic) == Some(topic)
        && !tokens(topic).iter().any(|word| is_in_title(word))
    {
        varied.insert(topic.to_owned());
    }
    (!varied.is_empty()).then(|| TitleContradiction {
        title: title.clone(),
        factors: factors.into_iter().map(str::to_owned).collect(),
        varied: varied.into_iter().collect(),
    })
}

/// Whether two words are one, or the one begins with the other: `queue` and `queues`.
fn is_same_word(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    short == long || short.len() >= WORD_LETTERS_MIN && long.starts_with(short)
}

/// The folder of the topic: the one that holds the results' folder, or the last.
fn topic(place: &str) -> &str {
    let mut folders = place.split('/');
    let is_results = |folder: &str| matches!(folder, "results" | "result");
    let mut topic = folders.next().unwrap_or_default();
    for folder in folders {
        if is_results(folder) {
            return topic;
        }
        topic = folder;
    }
    topic
}

/// A variable of the system, `a.b` or `a_b`; neither a version nor a file.
fn variable(word: &str) -> Option<&str> {
    let word = word.trim_matches(|character: char| !character.is_alphanumeric());
    let parts: Vec<&str> = word.split(['.', '_']).collect();
    let is_name = |part: &&str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || character == '-')
    };
    (parts.len() > 1 && parts.iter().all(is_name)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: [&str; 2] = ["hyperthreading_allowed=0", "hyperthreading_allowed=1"];

    fn found(
        title: &str,
        labels: [&str; 2],
        topic: &str,
        names: &[&str],
    ) -> Option<TitleContradiction> {
        let [one, other] = labels;
        let text = format!(
            "# {title}\n\nLab:\n  - iflib.tx_abdicate=1\n\n```\nx {one}\n+ {other}\nx 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n```\n"
        );
        let readme = PublishedReadme::parse(text.as_bytes());
        title_contradiction(&readme, &format!("cpu/nic/{topic}/results/fbsd15"), names)
    }

    #[test]
    fn a_factor_that_nothing_else_knows_is_found() {
        let title = "Impact of thriflib.tx_abdicate on forwarding performance";
        let found = found(title, LABELS, "hyperthreading", &["ht_off.pps"]).unwrap();
        assert_eq!(found.title.line, 1);
        assert_eq!(found.factors, ["thriflib.tx_abdicate"]);
        assert_eq!(found.varied, ["hyperthreading_allowed"]);
    }

    #[test]
    fn a_folder_called_like_a_sysctl_says_what_is_varied() {
        let title = "Impact of iflib.tx_abdicate";
        let found = found(title, ["1.pps", "4.pps"], "hw.igb.num_queues", &["1.pps"]).unwrap();
        assert_eq!(found.varied, ["hw.igb.num_queues"]);
    }

    #[test]
    fn a_title_that_anything_confirms_is_right() {
        let abdicate = "Impact of iflib.tx_abdicate on forwarding";
        for (title, labels, topic, names) in [
            (abdicate, LABELS, "txabdicate", "a"),
            (abdicate, LABELS, "hyperthreading", "abdicate_on.pps"),
            (
                abdicate,
                ["tx_abdicate=0", "tx_abdicate=1"],
                "hyperthreading",
                "a",
            ),
            // What is varied does not stand in the folder's name.
            (abdicate, LABELS, "other", "a"),
            (abdicate, ["off", "on"], "hyperthreading", "a"),
            (abdicate, ["off", "on"], "iflib.simple_tx", "a"),
            (abdicate, ["off", "on"], "firewalls", "a"),
            // No variable.
            (
                "Impact of tuning on FreeBSD 11.1 (see a.1_b)",
                LABELS,
                "hyperthreading",
                "a",
            ),
            (
                "Impact of machdep.hyperthreading_allowed",
                LABELS,
                "hyperthreading",
                "a",
            ),
            // In other words.
            (
                "Impact of the queue number (with iflib.tx_abdicate)",
                ["1.pps", "4.pps"],
                "hw.igb.num_queues",
                "1.pps",
            ),
            // Both are named.
            (
                "hyperthreading with xyz.tx_abdicate",
                LABELS,
                "hyperthreading",
                "a",
            ),
        ] {
            assert_eq!(
                found(title, labels, topic, &[names]),
                None,
                "{title} {topic} {names}"
            );
        }
    }
}
