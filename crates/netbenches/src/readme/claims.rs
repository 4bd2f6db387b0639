//! Rates and percentages in prose.

use super::TextLine;
use super::links::without_targets;

/// A number with a unit that a text states.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Where it stands.
    pub line: usize,
    /// The number and its unit as written.
    pub text: String,
    /// Of what it is a number.
    pub quantity: Quantity,
    /// The number, or the smaller one of a range; in percent, packets or bits per second.
    pub low: f64,
    /// The number, or the larger one of a range.
    pub high: f64,
    /// What one more in the last digit written is worth, in the same unit.
    pub resolution: f64,
    /// Whether a sign stands in front; a minus is in the numbers.
    pub is_signed: bool,
    /// Whether the text says that it is not exact: `about`, `~`, `up to`.
    pub is_approximate: bool,
    /// Whether it is the half-width of an interval: `+/-` stands in front.
    pub is_half_width: bool,
}

/// Of what a number is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Percent of something.
    Percent,
    /// Packets per second.
    PacketsPerSecond,
    /// Bits per second.
    BitsPerSecond,
}

/// Units as written, the longer before what they begin with, in lower case but for the factor.
const UNITS: &[(&str, Quantity)] = &[
    ("packets-per-second", Quantity::PacketsPerSecond),
    ("packets per second", Quantity::PacketsPerSecond),
    ("paquets-per-second", Quantity::PacketsPerSecond),
    ("packets/s", Quantity::PacketsPerSecond),
    ("pkts/s", Quantity::PacketsPerSecond),
    ("pkt/s", Quantity::PacketsPerSecond),
    ("pps", Quantity::PacketsPerSecond),
    ("bits/s", Quantity::BitsPerSecond),
    ("bit/s", Quantity::BitsPerSecond),
    ("bps", Quantity::BitsPerSecond),
    ("b/s", Quantity::BitsPerSecond),
];

/// What stands in front of a number that is not exact.
const APPROXIMATE: &[&str] = &[
    "about",
    "almost",
    "approximately",
    "around",
    "below",
    "circa",
    "least",
    "less",
    "more",
    "most",
    "near",
    "nearly",
    "over",
    "roughly",
    "some",
    "than",
    "under",
];

/// Longer than any of them and the word before it.
const LOOK_BEHIND_BYTES: usize = 32;

/// Appends the claims of a line, in their order.
pub(super) fn read(line: &TextLine, claims: &mut Vec<Claim>) {
    let has_unit = |unit: &str| line.text.contains(unit);
    if !["%", "ps", "/s", "er second", "er-second", "PS"]
        .into_iter()
        .any(has_unit)
    {
        return;
    }
    let text = without_targets(&line.text);
    let mut next = 0;
    while let Some(offset) = text[next..].find(|character: char| character.is_ascii_digit()) {
        let start = next + offset;
        let Some(number) = Number::at(&text, start) else {
            next = start + number_length(&text[start..]);
            continue;
        };
        next = number.end;
        if let Some((claim, end)) = claim(line.line, &text, number) {
            next = next.max(end);
            claims.push(claim);
        }
    }
}

/// A claim and where the line goes on behind it.
fn claim(line: usize, text: &str, first: Number) -> Option<(Claim, usize)> {
    let mut last = None;
    let mut behind = &text[first.end..];
    if let Some(rest) = behind.strip_prefix(['-', '–'])
        && rest.starts_with(|character: char| character.is_ascii_digit())
    {
        let second = Number::at(text, text.len() - rest.len())?;
        behind = &text[second.end..];
        last = Some(second);
    }
    let (unit_length, quantity, factor) = unit(behind)?;
    let before = &text[..first.start];
    let sign_length = sign_length(before);
    let start = first.start - sign_length;
    let end = text.len() - behind.len() + unit_length;
    let is_negative = sign_length > 0 && !before.ends_with('+');
    let signed = |number: &Number| {
        if is_negative {
            -number.value
        } else {
            number.value
        }
    };
    let resolution = last.as_ref().unwrap_or(&first).resolution * factor;
    let (one, other) = (signed(&first), signed(last.as_ref().unwrap_or(&first)));
    let words_before = text[..start].trim_end();
    let is_half_width =
        words_before.ends_with("+/-") || words_before.ends_with('±') || before.ends_with("+/-");
    let (low, high) = (one.min(other) * factor, one.max(other) * factor);
    let claim = Claim {
        line,
        text: text[start..end].to_owned(),
        quantity,
        low,
        high,
        resolution,
        is_signed: sign_length > 0 && !is_half_width,
        is_approximate: is_approximate(words_before),
        is_half_width,
    };
    high.is_finite().then_some((claim, end))
}

/// How many bytes of sign stand at the end of `before`. A minus behind a word is a hyphen.
fn sign_length(before: &str) -> usize {
    let Some(sign) = before.chars().next_back() else {
        return 0;
    };
    let rest = &before[..before.len() - sign.len_utf8()];
    let is_sign = matches!(sign, '-' | '+' | '−')
        && !rest
            .ends_with(|character: char| character.is_alphanumeric() || "/%)".contains(character));
    if is_sign { sign.len_utf8() } else { 0 }
}

fn is_approximate(words_before: &str) -> bool {
    // The words looked for are short, and lines may be long.
    let start = words_before.len().saturating_sub(LOOK_BEHIND_BYTES);
    let words_before = &words_before[words_before.floor_char_boundary(start)..];
    let mut words = words_before.rsplit([' ', '\t', '(']);
    let word = words.next().unwrap_or_default().to_lowercase();
    // "from 1 to 2" is exact; "up to 2" is not.
    if word == "to" {
        return words.next().is_some_and(|up| up.eq_ignore_ascii_case("up"));
    }
    // An arrow compares nothing.
    if word.ends_with("=>") || word.ends_with("->") {
        return false;
    }
    APPROXIMATE.contains(&word.as_str()) || word.ends_with(['~', '≈', '<', '>', '≥', '≤'])
}

/// The unit that a text begins with: how long it is with the space before it, and its factor.
fn unit(text: &str) -> Option<(usize, Quantity, f64)> {
    let rest = text.strip_prefix(' ').unwrap_or(text);
    let skipped = text.len() - rest.len();
    if rest.starts_with('%') {
        return Some((skipped + 1, Quantity::Percent, 1.0));
    }
    let (factor, unit) = match rest.as_bytes().first()? {
        b'K' | b'k' => (1e3, &rest[1..]),
        b'M' => (1e6, &rest[1..]),
        b'G' => (1e9, &rest[1..]),
        _ => (1.0, rest),
    };
    let begins_with = |known: &&(&str, Quantity)| {
        let begin = unit.get(..known.0.len());
        let end = unit.get(known.0.len()..).and_then(|end| end.chars().next());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(known.0))
            && !end.is_some_and(char::is_alphanumeric)
    };
    let (known, quantity) = UNITS.iter().find(begins_with)?;
    let length = skipped + rest.len() - unit.len() + known.len();
    Some((length, *quantity, factor))
}

/// How many bytes of digits and marks a text begins with.
fn number_length(text: &str) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',');
    text.bytes().take_while(|byte| is_part(byte)).count()
}

/// A decimal number without its sign.
struct Number {
    start: usize,
    end: usize,
    value: f64,
    resolution: f64,
}

impl Number {
    /// The number that begins at `start`; none if it is a part of a word or of an address.
    fn at(text: &str, start: usize) -> Option<Self> {
        let before = text[..start].chars().next_back();
        let is_inside =
            before.is_some_and(|before| before.is_alphanumeric() || "._".contains(before));
        let length = number_length(&text[start..]);
        let digits = text[start..start + length].trim_end_matches(['.', ',']);
        let end = start + digits.len();
        // Three digits behind each comma make it a mark of thousands, else it is a decimal one.
        let groups: Vec<&str> = digits.split(',').collect();
        let is_grouped = groups.len() > 1
            && groups[0].len() <= 3
            && groups[1..]
                .iter()
                .all(|group| group.split('.').next().unwrap_or("").len() == 3);
        let plain = if is_grouped {
            digits.replace(',', "")
        } else {
            digits.replacen(',', ".", 1)
        };
        let value: f64 = plain.parse().ok()?;
        let decimals = plain
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len());
        let decimals = i32::try_from(decimals).ok()?;
        (!is_inside).then_some(Self {
            start,
            end,
            value,
            resolution: 10_f64.powi(-decimals),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(text: &str) -> Vec<Claim> {
        let mut claims = Vec::new();
        let text = text.to_owned();
        read(&TextLine { line: 7, text }, &mut claims);
        claims
    }

    /// What is claimed, in short.
    fn short(text: &str) -> Vec<(String, f64, f64)> {
        let claims = claims(text).into_iter();
        claims
            .map(|claim| (claim.text, claim.low, claim.high))
            .collect()
    }

    fn one(text: &str, value: f64) -> (String, f64, f64) {
        (text.to_owned(), value, value)
    }

    #[test]
    fn rates_have_units_of_many_spellings() {
        assert_eq!(
            short(
                "from 6.1Mpps to 5.9 Mpps, 32Kpps, 1,448,000 pps; 1,45 Mpps, 2 packets-per-second"
            ),
            [
                one("6.1Mpps", 6.1e6),
                one("5.9 Mpps", 5.9e6),
                one("32Kpps", 32e3),
                one("1,448,000 pps", 1_448_000.0),
                one("1,45 Mpps", 1.45e6),
                one("2 packets-per-second", 2.0),
            ]
        );
        assert_eq!(
            short("55 Mb/s 1Gbps"),
            [one("55 Mb/s", 55e6), one("1Gbps", 1e9)]
        );
    }

    #[test]
    fn percentages_have_signs_and_half_widths() {
        let found =
            claims("reduced by -9% (+/- 1%), ~15-20%, about 130 % and (+45% inet4), 95-96%.");
        let short: Vec<_> = found
            .iter()
            .map(|claim| {
                let marks = [claim.is_signed, claim.is_approximate, claim.is_half_width];
                (claim.low, claim.high, marks)
            })
            .collect();
        assert_eq!(
            short,
            [
                (-9.0, -9.0, [true, false, false]),
                (1.0, 1.0, [false, false, true]),
                (15.0, 20.0, [false, true, false]),
                (130.0, 130.0, [false, true, false]),
                (45.0, 45.0, [true, false, false]),
                (95.0, 96.0, [false, false, false]),
            ]
        );
        assert!(
            found
                .iter()
                .all(|claim| claim.quantity == Quantity::Percent && claim.line == 7)
        );
    }

    #[test]
    fn the_last_digit_says_how_exact_a_number_is() {
        let found = claims("26.84 Mpps, 8.68367%, 12%");
        let resolutions: Vec<String> = found
            .iter()
            .map(|claim| claim.resolution.to_string())
            .collect();
        assert_eq!(resolutions, ["10000", "0.00001", "1"]);
    }

    #[test]
    fn only_numbers_with_such_units_are_claims() {
        for text in [
            "2000 flows at 2.4GHz",
            "D27401% v2pps",
            "[a](b%20c%2f/5%) 14.8Mppsx",
            "10.0.0.1 pps 1.2.3%",
            "pps % Mpps",
            "2 MHz, 5 kpp",
        ] {
            assert_eq!(claims(text), [], "{text}");
        }
    }

    #[test]
    fn from_one_to_another_is_exact_and_up_to_one_is_not() {
        let approximate = |text: &str| claims(text)[0].is_approximate;
        for text in ["grew to 5 Mpps", "=> 5%", "a -> 5%"] {
            assert!(!approximate(text), "{text}");
        }
        for text in [
            "up to 5 Mpps",
            "~5%",
            "more than 5%",
            "< 5%",
            "Around 5%",
            "(~96%)",
        ] {
            assert!(approximate(text), "{text}");
        }
    }
}
