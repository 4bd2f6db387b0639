//! What a label and the name of a file say about the same thing.

use std::collections::BTreeSet;

use super::super::plain_spaces;

/// A text and a name that cannot both be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// About what.
    pub kind: ContradictionKind,
    /// What the text says of it.
    pub text_says: String,
    /// What the name says of it.
    pub name_says: String,
}

/// What a text and a name disagree about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContradictionKind {
    /// The address family: `inet6` against `inet4`.
    AddressFamily,
    /// The revision of the system: `r368287` against `r368606`.
    Revision,
    /// The patch under review: `D27401` against `D26162`.
    Patch,
    /// The level of a factor that both name: `simple_tx=1` against `simple_tx_off`.
    Level,
    /// A level as a share: `(25%)` against `50p`.
    Share,
    /// A word: `stateless` against `stateful`.
    Word,
    /// The text is the name of another dataset in the folder.
    NamesAnother,
    /// Two rows have each other's label.
    Exchanged,
}

/// Where what a text says and a file's name contradict each other, the first thing of all.
///
/// Silent where either says nothing of the kind or says it in more than one way.
///
/// # Examples
/// ```
/// use fwdlab_netbenches::readme::facts::{ContradictionKind, contradiction};
/// let found = contradiction("r368287: inet4", "bench.r368606.inet4.pmc.svg").unwrap();
/// assert_eq!(found.kind, ContradictionKind::Revision);
/// assert_eq!((found.text_says.as_str(), found.name_says.as_str()), ("368287", "368606"));
/// assert_eq!(contradiction("iflib.simple_tx=1", "simple_tx_on.pps"), None);
/// ```
pub fn contradiction(text: &str, name: &str) -> Option<Contradiction> {
    let text = plain_spaces(text);
    let found = |kind, text_says: String, name_says: String| {
        Some(Contradiction {
            kind,
            text_says,
            name_says,
        })
    };
    if let (Some(said), Some(named)) = (family(&text), family(name))
        && said != named
    {
        return found(
            ContradictionKind::AddressFamily,
            said.to_owned(),
            named.to_owned(),
        );
    }
    let listed = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
    for (kind, said, named) in [
        (
            ContradictionKind::Revision,
            revisions(&text, true),
            revisions(name, false),
        ),
        (ContradictionKind::Patch, patches(&text), patches(name)),
    ] {
        if !said.is_empty() && !named.is_empty() && said.is_disjoint(&named) {
            return found(kind, listed(&said), listed(&named));
        }
    }
    let named = tokens(name);
    let said_tokens = tokens(&text);
    for setting in settings(&text) {
        if let Some(value) = value_in(&named, &setting.key)
            && !said_tokens.contains(value)
            && let (Some(one), Some(other)) = (Level::of(&setting.value), Level::of(value))
            && one.excludes(other)
        {
            let key = setting.key.join("_");
            return found(
                ContradictionKind::Level,
                format!("{key}={}", setting.value),
                format!("{key} {value}"),
            );
        }
    }
    for (one, other) in [(true, false), (false, true)] {
        if says_state(&said_tokens, one)
            && !says_state(&said_tokens, other)
            && says_state(&named, other)
            && !says_state(&named, one)
        {
            let word = |is_stateful| if is_stateful { "stateful" } else { "stateless" };
            return found(
                ContradictionKind::Word,
                word(one).into(),
                word(other).into(),
            );
        }
    }
    if let Some((key, said, says)) = switched(&said_tokens, &named) {
        return found(
            ContradictionKind::Level,
            format!("{key} {said}"),
            format!("{key} {says}"),
        );
    }
    let mut shares = named.iter().filter_map(|token| share(token));
    if let (Some(said), Some(named), None) = (only_percentage(&text), shares.next(), shares.next())
        && said != named
    {
        return found(
            ContradictionKind::Share,
            format!("{said}%"),
            format!("{named}p"),
        );
    }
    None
}

/// Whether one of the words is that of a firewall's rules that keep states, or of those that keep none.
fn says_state(words: &[String], is_stateful: bool) -> bool {
    words.iter().any(|word| match word.as_str() {
        "stateful" | "statefull" => is_stateful,
        "stateless" => !is_stateful,
        _ => false,
    })
}

/// A word that is behind by one position of a switch in the text and by the other in the name.
fn switched<'a>(text: &'a [String], name: &'a [String]) -> Option<(&'a str, &'a str, &'a str)> {
    if has_negation(&without_switches(text)) || has_negation(&without_switches(name)) {
        return None;
    }
    text.windows(2).find_map(|pair| {
        let [key, said] = pair else { return None };
        let is_key = key.len() >= KEY_LETTERS_MIN && Level::of(key).is_none();
        let said_level = Level::of(said).filter(|level| matches!(level, Level::Switch(_)))?;
        let says = value_in(name, std::slice::from_ref(key))?;
        let is_other = is_key
            && matches!(Level::of(says), Some(Level::Switch(_)))
            && value_in(text, std::slice::from_ref(key)) == Some(said)
            && Level::of(says).is_some_and(|level| level.excludes(said_level));
        is_other.then_some((key.as_str(), said.as_str(), says.as_str()))
    })
}

fn without_switches(words: &[String]) -> Vec<String> {
    let words = words.iter().filter(|word| Level::of(word).is_none());
    words.cloned().collect()
}

/// The words of a text that the name of a file may be called after, with one word for each address family.
pub(super) fn said_words(text: &str) -> BTreeSet<String> {
    let words = tokens(text).into_iter().map(|word| match word.as_str() {
        "inet" | "ipv4" => "inet4".to_owned(),
        "ipv6" => "inet6".to_owned(),
        "statefull" => "stateful".to_owned(),
        _ => word,
    });
    let is_telling = |word: &String| match word.bytes().all(|byte| byte.is_ascii_digit()) {
        true => word.len() > 2,
        false => word.len() > 1,
    };
    words.filter(is_telling).collect()
}

/// Whether a word is one of a name's; long ones may be parts of one.
pub(super) fn names_word(name: &BTreeSet<String>, word: &str) -> bool {
    let may_be_part = word.len() >= KEY_LETTERS_MIN;
    name.contains(word) || may_be_part && name.iter().any(|named| named.contains(word))
}

/// The words of a text in lower case: runs of letters and digits.
pub(super) fn tokens(text: &str) -> Vec<String> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|token| !token.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// The address family that a text names, if it names one only. Settings name sysctls, not families.
pub(super) fn family(text: &str) -> Option<&'static str> {
    let (mut inet, mut inet6) = (false, false);
    for word in text.split_whitespace().filter(|word| !word.contains('=')) {
        for token in tokens(word) {
            match token.as_str() {
                "inet" | "inet4" | "ipv4" => inet = true,
                "inet6" | "ipv6" => inet6 = true,
                _ => {}
            }
        }
    }
    match (inet, inet6) {
        (true, false) => Some("inet4"),
        (false, true) => Some("inet6"),
        _ => None,
    }
}

/// The revisions in a text: `r287531`, `n302145`, `c255761`; bare numbers only in names, where they
/// are no round ones, as levels are.
fn revisions(text: &str, needs_prefix: bool) -> BTreeSet<String> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric());
    let revision = |word: &str| {
        let digits = word.strip_prefix(['r', 'n', 'c']).unwrap_or(word);
        let has_prefix = digits.len() < word.len();
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        let behind = &digits.as_bytes()[length..];
        // What goes on in hexadecimal is the hash of a commit.
        let is_hexadecimal = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_hash = !behind.is_empty() && behind.iter().all(is_hexadecimal);
        let number: u32 = digits[..length].parse().ok()?;
        let is_revision = match has_prefix {
            true => (5..=6).contains(&length) && !is_hash,
            false => {
                !needs_prefix
                    && length == 6
                    && !is_hash
                    && !number.is_multiple_of(1000)
                    && !number.is_power_of_two()
            }
        };
        is_revision.then(|| number.to_string())
    };
    words.filter_map(revision).collect()
}

/// The patches in a text: `D27401`.
pub(super) fn patches(text: &str) -> BTreeSet<String> {
    let mut patches = BTreeSet::new();
    for (start, _) in text.match_indices('D') {
        let is_inside = text[..start].ends_with(|before: char| before.is_alphabetic());
        let rest = &text[start + 1..];
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if (4..=6).contains(&length) && !is_inside {
            patches.insert(text[start..start + 1 + length].to_owned());
        }
    }
    patches
}

/// `a.b_c=value` in a text.
pub(super) struct Setting {
    /// The words of the key's last part: `b`, `c`.
    pub(super) key: Vec<String>,
    pub(super) value: String,
}

/// Shorter keys say too little to be recognised.
const KEY_LETTERS_MIN: usize = 4;

/// The settings in a text.
pub(super) fn settings(text: &str) -> Vec<Setting> {
    let quotes = |character: char| "\"'(),;:".contains(character);
    let setting = |word: &str| {
        let (key, value) = word.trim_matches(quotes).split_once('=')?;
        let last = key.rsplit('.').next()?;
        let is_plain =
            |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
        let key = tokens(last);
        let letters: usize = key.iter().map(String::len).sum();
        (last.chars().all(is_plain) && letters >= KEY_LETTERS_MIN).then(|| Setting {
            key,
            value: value.trim_matches(quotes).to_lowercase(),
        })
    };
    text.split_whitespace().filter_map(setting).collect()
}

/// Words that turn the meaning of what follows round.
const NEGATIONS: &[&str] = &[
    "block", "deny", "disable", "disabled", "drop", "no", "not", "reject", "skip", "without",
];

/// Whether something in a text turns the meaning of a level round.
pub(super) fn has_negation(tokens: &[String]) -> bool {
    tokens
        .iter()
        .any(|token| NEGATIONS.contains(&token.as_str()))
}

/// The word behind the only place where a name holds the key.
fn value_in<'a>(name: &'a [String], key: &[String]) -> Option<&'a String> {
    let mut places = name
        .windows(key.len())
        .enumerate()
        .filter(|(_, words)| *words == key);
    let (start, _) = places.next()?;
    let is_negated = start > 0 && has_negation(&name[start - 1..start]);
    if places.next().is_some() || is_negated {
        return None;
    }
    name.get(start + key.len())
}

/// A level as a text or a name writes it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Level {
    Switch(bool),
    Number(f64),
}

impl Level {
    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            "on" | "enabled" | "enable" | "yes" | "true" => Some(Self::Switch(true)),
            "off" | "disabled" | "disable" | "no" | "false" => Some(Self::Switch(false)),
            _ if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                word.parse().ok().map(Self::Number)
            }
            _ => None,
        }
    }

    fn excludes(self, other: Self) -> bool {
        #[expect(
            clippy::float_cmp,
            reason = "numbers as written, of at most a few digits"
        )]
        match (self, other) {
            (Self::Switch(one), Self::Switch(other)) => one != other,
            (Self::Number(one), Self::Number(other)) => one != other,
            (Self::Switch(switch), Self::Number(number))
            | (Self::Number(number), Self::Switch(switch)) => {
                // Of what is no switch, a number says more than on or off.
                (number == 0.0 || number == 1.0) && (number == 1.0) != switch
            }
        }
    }
}

/// `25p` or `25pct`.
fn share(token: &str) -> Option<u32> {
    let number = token.strip_suffix("pct").or(token.strip_suffix('p'))?;
    number.parse().ok().filter(|percent| *percent <= 100)
}

/// The only whole percentage in a text.
fn only_percentage(text: &str) -> Option<u32> {
    let mut percentages = text.match_indices('%').filter_map(|(end, _)| {
        let before = &text[..end];
        let digits = before.trim_end_matches(|character: char| character.is_ascii_digit());
        let number = before[digits.len()..].parse().ok();
        number.filter(|_| !digits.ends_with(['.', ',']))
    });
    let first = percentages.next()?;
    percentages.next().is_none().then_some(first)
}

/// Whether a text has a word that the label of one place has, and that of the other has not.
pub fn names_place(text: &str, place: &str, other: &str) -> bool {
    let words = said_words(text);
    let label = |place: &str| said_words(place.rsplit('/').next().unwrap_or_default());
    let other = label(other);
    let mut telling = label(place)
        .into_iter()
        .filter(|word| !names_word(&other, word));
    telling.any(|word| names_word(&words, &word))
}

/// The words that tell a text from another, with one word for each level of a switch.
pub(super) fn telling(text: &str) -> BTreeSet<String> {
    let one_word = |token: String| match Level::of(&token) {
        Some(Level::Switch(true)) => "on".to_owned(),
        Some(Level::Switch(false)) => "off".to_owned(),
        _ => token,
    };
    tokens(text).into_iter().map(one_word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContradictionKind::{AddressFamily, Level as Factor, Patch, Revision, Share, Word};

    fn kind(text: &str, name: &str) -> Option<ContradictionKind> {
        contradiction(text, name).map(|found| found.kind)
    }

    #[test]
    fn what_excludes_each_other_is_found() {
        for (text, name, expected) in [
            ("r368606: inet6 pps", "r368606.inet4.pps", AddressFamily),
            ("IPv4", "bench.n277567.inet6.pmc.svg", AddressFamily),
            ("r368287: inet4", "r368606.inet4.pps", Revision),
            ("n302145", "bench.n302146.1.svg", Revision),
            ("r318516 with x", "318517current.pps", Revision),
            ("head with D15789", "head.D15788", Patch),
            ("iflib.simple_tx=0 and x=1", "simple_tx_on_x_off", Factor),
            (
                "simple_tx=1, reclaim=256",
                "simple_tx_off_reclaim_25p",
                Factor,
            ),
            ("hw.igb.num_queues=4", "num_queues.8.pps", Factor),
            (
                "tx_reclaim_thresh=256 (25%)",
                "tx_reclaim_thresh_50p",
                Share,
            ),
            ("pf-statefull: inet", "pf-stateless.inet4", Word),
            ("simple_tx and prefetch off", "prefetch_on.pps", Factor),
        ] {
            assert_eq!(kind(text, name), Some(expected), "{text} {name}");
        }
    }

    #[test]
    fn a_place_is_named_by_a_word_that_only_its_label_has() {
        let (here, there) = (
            "t/results/fbsd13-r368606.D27401",
            "t/results/fbsd13-r368287.D27401",
        );
        assert!(names_place("r368287: inet4", there, here));
        assert!(!names_place("D27401: inet4", there, here));
        assert!(!names_place(
            "fbsd11.1",
            "t/results/fbsd11.1",
            "t/results/fbsd11.1-yandex"
        ));
    }

    #[test]
    fn what_may_be_right_is_not_found() {
        for (text, name) in [
            (
                "net.inet6.ip6.redirect=0: inet4 pps",
                "redirect_off.inet4.pps",
            ),
            ("inet4 and inet6", "inet6.pps"),
            (
                "r368606 with D27401 (Diff 80654)",
                "r368606D27401v3.inet4.pps",
            ),
            ("c255749 (9a47ae044b48)", "9a47ae044b48.pps"),
            ("r340244: 16000 descriptors", "16000-default.pps"),
            ("r340244", "262144.pps"),
            ("r340244", "256000.pps"),
            ("iflib.simple_tx=0", "simple_tx_off.pps"),
            ("iflib.prefetch=1", "disable_prefetch_off.pps"),
            ("redirect=0", "drop_redirect_on.pps"),
            ("maxthreads=-1", "maxthreads.4"),
            ("num_queues=4 (of 8)", "num_queues.8"),
            ("ix.rxd=32K", "rxd.32768"),
            ("thresh=256 (25%)", "thresh_25p"),
            ("stateless and stateful", "stateful"),
            ("prefetch off", "disable_prefetch_on"),
            ("without prefetch on", "prefetch_off"),
            ("better by 25% or 50%", "thresh_50p"),
            ("off", "on"),
            ("Unit:\u{202f}pps", ""),
            ("", "inet6"),
        ] {
            assert_eq!(contradiction(text, name), None, "{text} {name}");
        }
    }
}
