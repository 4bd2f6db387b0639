//! What a line on the laboratory says that logs and configurations say as well.

use super::super::{Quantity, TextLine, claims, plain_spaces};

/// Something that a line on the laboratory says.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// How many flows were sent.
    Flows(f64),
    /// How much was offered, in packets per second.
    OfferedPps(f64),
    /// The revision of the system, as Subversion counted them: `r317849`. How many commits git counts depends on
    /// the clone.
    Revision(u64),
    /// The revision as git counts: `n302145`, `c255412`. What the author wrote elsewhere is of the same clone.
    Commit(String),
    /// A variable of the system and its value: `harvest.mask` and `351`. A part `X` or `*` is any number.
    Setting(String, String),
    /// The driver of the ports: `igb`.
    Driver(String),
}

/// Words of lines on what did not work or was only meant.
const DOUBTS: &[&str] = &["bug", "max", "up to", "vs", "from", "each"];

/// Drivers of network interface cards, with the names that ports and variables of one driver have.
const DRIVERS: &[&[&str]] = &[
    &["igb", "em", "e1000"],
    &["ix", "ixgbe"],
    &["ixl"],
    &["igc"],
    &["ice"],
    &["cxgbe", "cxl", "cxgb", "cc", "t5nex", "t6nex"],
    &["mce", "mlx5en", "mlx5"],
    &["bce"],
    &["bxe"],
    &["re"],
    &["oce"],
];

/// The names of a driver; none of what is none.
pub fn driver_names(driver: &str) -> Option<&'static [&'static str]> {
    DRIVERS
        .iter()
        .copied()
        .find(|names| names.contains(&driver))
}

/// A network interface card, or several of one controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// How it is named, in small letters.
    names: &'static [&'static str],
    /// Its driver, by any of its names.
    pub driver: &'static str,
}

const fn card(names: &'static [&'static str], driver: &'static str) -> Card {
    Card { names, driver }
}

/// Cards as the archive and their makers name them, each with FreeBSD's driver.
///
/// # Source
/// FreeBSD: the manual pages em(4), igc(4), ix(4), ixl(4), ice(4), cxgbe(4), mlx5en(4).
const CARDS: &[Card] = &[
    card(&["82574"], "em"),
    card(&["82576"], "igb"),
    card(&["82580"], "igb"),
    card(&["i210", "i211"], "igb"),
    card(&["i350"], "igb"),
    card(&["i225", "i226"], "igc"),
    card(&["82598"], "ix"),
    card(&["82599", "x520"], "ix"),
    card(&["x540"], "ix"),
    card(&["x550", "x552", "x553"], "ix"),
    card(&["x710", "xl710", "xxv710"], "ixl"),
    card(&["x722"], "ixl"),
    card(&["e810"], "ice"),
    card(&["t420"], "cxgbe"),
    card(&["t520"], "cxgbe"),
    card(&["t540"], "cxgbe"),
    card(&["t580"], "cxgbe"),
    card(&["t6225"], "cxgbe"),
    card(&["t62100"], "cxgbe"),
    card(&["connectx-4"], "mce"),
    card(&["connectx-5"], "mce"),
    card(&["connectx-6"], "mce"),
    card(&["connectx-7"], "mce"),
];

/// The cards that a text or a folder's name speaks of: `82599ES`, `T540-CR`, `Intel_i210AT`.
pub fn cards(text: &str) -> Vec<(&str, Card)> {
    let is_between = |character: char| character.is_whitespace() || "_(),;:/".contains(character);
    let named = |word: &str| {
        let word = word.to_ascii_lowercase();
        let is_name = |name: &&str| {
            let rest = word.strip_prefix(*name);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        };
        let mut cards = CARDS.iter();
        cards.find(|card| card.names.iter().any(is_name))
    };
    let words = text.split(is_between);
    words
        .filter_map(|word| Some((word, *named(word)?)))
        .collect()
}

/// The commits of git that a text or a folder's name has: `n302145` of `fbsd15-n302145simplecache`.
pub fn commits(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words = text.split(|character: char| !character.is_alphanumeric());
    let commit = |word: &str| {
        let digits = word.strip_prefix(['n', 'c'])?;
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        (count == 6).then(|| word[..7].to_owned())
    };
    words.filter_map(commit).collect()
}

/// What a line on the laboratory says; nothing where it speaks of several things of a kind.
pub fn statements(line: &TextLine) -> Vec<Statement> {
    let text = plain_spaces(&line.text).to_lowercase();
    let mut stated: Vec<Statement> = text.split_whitespace().filter_map(setting).collect();
    let drivers = stated.iter().filter_map(|stated| match stated {
        Statement::Setting(key, _) => driver_of_key(key),
        _ => None,
    });
    let mut drivers: Vec<&str> = drivers.chain(named_driver(&text)).collect();
    drivers.dedup();
    let drivers: Vec<Statement> = drivers
        .into_iter()
        .map(|driver| Statement::Driver(driver.to_owned()))
        .collect();
    stated.extend(drivers);
    let words: Vec<&str> = text
        .split(|character: char| !character.is_alphanumeric())
        .collect();
    let is_doubtful = DOUBTS.iter().any(|doubt| match doubt.contains(' ') {
        true => text.contains(doubt),
        false => words.contains(doubt),
    });
    if !is_doubtful {
        stated.extend(flows(&text));
        stated.extend(offered(line));
    }
    if words.contains(&"freebsd") {
        let mut revisions = words.iter().filter_map(|word| revision(word));
        if let (Some(only), None) = (revisions.next(), revisions.next()) {
            stated.push(only);
        }
        if let [only] = &commits(&text)[..] {
            stated.push(Statement::Commit(only.clone()));
        }
    }
    stated
}

/// `harvest.mask=351`: keys of one word are too short to be looked for.
fn setting(word: &str) -> Option<Statement> {
    let (key, value) = word.split_once('=')?;
    let is_key = |character: char| character.is_ascii_alphanumeric() || "._*%".contains(character);
    let value = value.trim_matches(|character: char| "\"',;:()".contains(character));
    let is_value = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let is_setting = key.contains(['.', '_'])
        && key.chars().all(is_key)
        && !value.is_empty()
        && value.chars().all(is_value);
    is_setting.then(|| Statement::Setting(key.to_owned(), value.to_owned()))
}

/// The driver in `dev.igb.X.…` and `hw.igb.…`.
fn driver_of_key(key: &str) -> Option<&str> {
    let mut parts = key.split('.');
    let is_of_device = matches!(parts.next(), Some("dev" | "hw"));
    parts
        .next()
        .filter(|driver| is_of_device && driver_names(driver).is_some())
}

/// The driver in `igb driver`.
fn named_driver(text: &str) -> Option<&str> {
    let words: Vec<&str> = text
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).find_map(|pair| {
        let is_named = matches!(pair[1], "driver" | "drivers");
        Some(pair[0]).filter(|driver| is_named && driver_names(driver).is_some())
    })
}

/// How many words may be between a number and the flows that it counts.
const WORDS_BETWEEN: usize = 2;

/// The number in `2000 flows`, `5000 unidirectional UDP flows`, `50K flows`.
fn flows(text: &str) -> Option<Statement> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "flows")?;
    let numbers = words[at.saturating_sub(WORDS_BETWEEN + 1)..at]
        .iter()
        .filter_map(|word| {
            let (digits, factor) = match word.strip_suffix(['k', 'm']) {
                Some(digits) if word.ends_with('k') => (digits, 1e3),
                Some(digits) => (digits, 1e6),
                None => (*word, 1.0),
            };
            let number: f64 = digits.replace(',', "").parse().ok()?;
            number.is_finite().then_some(number * factor)
        });
    let mut numbers = numbers.filter(|number| *number > 0.0);
    let first = numbers.next()?;
    numbers.next().is_none().then_some(Statement::Flows(first))
}

fn offered(line: &TextLine) -> Option<Statement> {
    let mut found = Vec::new();
    claims::read(line, &mut found);
    let mut rates = found
        .iter()
        .filter(|claim| claim.quantity == Quantity::PacketsPerSecond);
    let only = rates
        .next()
        .filter(|claim| !claim.is_approximate && claim.low > 0.0)?;
    let is_only = rates.next().is_none() && only.low >= only.high;
    is_only.then_some(Statement::OfferedPps(only.high))
}

fn revision(word: &str) -> Option<Statement> {
    let digits = word.strip_prefix('r')?;
    let is_number =
        (5..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number)?;
    Some(Statement::Revision(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(text: &str) -> Vec<Statement> {
        let text = text.to_owned();
        statements(&TextLine { line: 1, text })
    }

    #[test]
    fn cards_are_known_by_what_their_makers_call_them() {
        let named = |text| -> Vec<(&str, &str)> {
            let cards = cards(text).into_iter();
            cards.map(|(name, card)| (name, card.driver)).collect()
        };
        for (text, expected) in [
            (
                "Dual port Intel X520 82599ES",
                vec![("X520", "ix"), ("82599ES", "ix")],
            ),
            (
                "Quad port Chelsio 10-Gigabit T540-CR.",
                vec![("T540-CR.", "cxgbe")],
            ),
            ("Mellanox_ConnectX-4", vec![("ConnectX-4", "mce")]),
            ("3 Intel i210AT ports", vec![("i210AT", "igb")]),
            ("Intel Xeon E5-2650 v4, 82599100, PT540", vec![]),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
        assert_eq!(cards("X520")[0].1, cards("82599")[0].1);
    }

    #[test]
    fn lines_on_the_laboratory_say_what_data_says_too() {
        use Statement::{Driver, Flows, OfferedPps, Revision, Setting};
        let setting = |key: &str, value: &str| Setting(key.into(), value.into());
        for (text, expected) in [
            ("2000 flows of smallest UDP packets", vec![Flows(2e3)]),
            ("50K unidirection flows", vec![Flows(5e4)]),
            ("Traffic load at 14.88 Mpps", vec![OfferedPps(14.88e6)]),
            ("FreeBSD 12-head r317849 (x)", vec![Revision(317_849)]),
            ("harvest.mask=351", vec![setting("harvest.mask", "351")]),
            (
                "dev.ixl.X.iflib.tx_abdicate=1",
                vec![
                    setting("dev.ixl.x.iflib.tx_abdicate", "1"),
                    Driver("ixl".into()),
                ],
            ),
            ("Intel i350: e1000 / igb driver", vec![Driver("igb".into())]),
            ("BUG: 200 flows only", vec![]),
            ("n flows", vec![]),
            (
                "FreeBSD 14-head n277989 (e69573bc2be)",
                vec![Statement::Commit("n277989".into())],
            ),
            (
                "FreeBSD 14 n277989, n2779890 or c12",
                vec![Statement::Commit("n277989".into())],
            ),
            ("FreeBSD 14 from n277989 to n277990", vec![]),
            ("FreeBSD 11 r368287 vs r368606", vec![]),
            ("No drivers tuning, a=1", vec![]),
        ] {
            assert_eq!(stated(text), expected, "{text}");
        }
    }
}
