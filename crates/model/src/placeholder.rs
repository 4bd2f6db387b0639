//! Placeholders: words in braces in a ruleset or a command, which stand for what the lab or the level gives; filled here.

use std::iter::repeat_n;
use std::ops::Range;

use crate::diagnostic::{Diagnostic, nearest, suggest};

/// It stands for the level in an argument of a command.
pub(crate) const LEVEL: &str = "{level}";
/// They stand for the DUT's interfaces.
pub(crate) const OF_INTERFACES: &[&str] = &["{dut-in}", "{dut-out}"];
/// Those in a command.
pub(crate) const OF_COMMANDS: &[&str] = &[LEVEL, "{dut-in}", "{dut-out}"];

/// Those in the programs of a forwarder.
pub(crate) const OF_FORWARDERS: &[&str] = &[
    "{dut-in}",
    "{dut-out}",
    "{dut-in-peer}",
    "{dut-out-peer}",
    "{dut-cpu}",
    "{load-cpu}",
];

/// What placeholders stand for.
const MEANINGS: [(&[&str], &str); 3] = [
    (
        OF_COMMANDS,
        "{level} stands for the level, {dut-in} and {dut-out} for the DUT's interfaces",
    ),
    (
        OF_FORWARDERS,
        "{dut-in} and {dut-out} stand for the DUT's interfaces, {dut-in-peer} and {dut-out-peer} for the MAC addresses at \
         the other ends of their cables, {dut-cpu} for the CPU that forwards, {load-cpu} for the generator's",
    ),
    (
        OF_INTERFACES,
        "{dut-in} and {dut-out} stand for the DUT's interfaces",
    ),
];

/// What the placeholders of the DUT's interfaces stand for.
pub(crate) const fn of_interfaces<'i>(
    interface_in: &'i str,
    interface_out: &'i str,
) -> [(&'static str, &'i str); 2] {
    [
        (OF_INTERFACES[0], interface_in),
        (OF_INTERFACES[1], interface_out),
    ]
}

/// A text with each placeholder replaced by what it stands for, in this order.
pub(crate) fn fill(text: &str, places: &[(&str, impl AsRef<str>)]) -> String {
    let mut filled = text.to_owned();
    for (placeholder, meaning) in places {
        filled = filled.replace(placeholder, meaning.as_ref());
    }
    filled
}

/// The words of a program, each with its placeholders replaced.
pub(crate) fn fill_words(words: &[String], places: &[(&str, impl AsRef<str>)]) -> Vec<String> {
    words.iter().map(|word| fill(word, places)).collect()
}

/// A text with the names of the DUT's interfaces in the place of `{dut-in}` and `{dut-out}`.
#[must_use]
pub fn with_interfaces(text: &str, interface_in: &str, interface_out: &str) -> String {
    fill(text, &of_interfaces(interface_in, interface_out))
}

/// Placeholders that do not exist, by their places in a text: what stands in braces without a blank, and either begins
/// with `dut-` or is a slip away from one of `known`. Everything else in braces is the text's own, like a set of nft.
pub(crate) fn unknown<'t>(
    text: &'t str,
    known: &'t [&'t str],
) -> impl Iterator<Item = Range<usize>> {
    text.match_indices('{').filter_map(move |(start, _)| {
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let inside = &text[start + 1..];
        let end = inside.find(|c| !is_of_word(c))?;
        if !inside[end..].starts_with('}') {
            return None;
        }
        let word = &inside[..end];
        let place = start..start + end + 2;
        let is_known = known.contains(&&text[place.clone()]);
        let words = known.iter().map(|known| known.trim_matches(['{', '}']));
        let is_meant = word.to_lowercase().starts_with("dut-") || nearest(word, words).is_some();
        (!is_known && is_meant).then_some(place)
    })
}

/// The text of a ruleset with its comments blanked out, so that every place stays what it is. Text in quotes may go over
/// several lines, and has no comments.
pub(crate) fn without_comments(text: &str) -> String {
    let (mut is_quoted, mut is_comment) = (false, false);
    let mut blanked = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => is_comment = false,
            '"' if !is_comment => is_quoted = !is_quoted,
            '#' if !is_quoted => is_comment = true,
            _ => {}
        }
        if is_comment {
            blanked.extend(repeat_n(' ', character.len_utf8()));
        } else {
            blanked.push(character);
        }
    }
    blanked
}

/// Says what may stand in the place of a placeholder that does not exist.
pub(crate) fn explain(diagnostic: &mut Diagnostic, written: &str, known: &[&str]) {
    suggest(diagnostic, nearest(written, known.iter().copied()));
    let meaning = MEANINGS.iter().find(|(of, _)| *of == known);
    if let Some((_, meaning)) = meaning {
        diagnostic.with_help(*meaning);
    }
    let word = written.trim_matches(['{', '}']);
    diagnostic.with_help(format!(
        "braces of another meaning take blanks: {{ {word} }}"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(text: &'t str, known: &'t [&'t str]) -> Vec<&'t str> {
        unknown(text, known).map(|place| &text[place]).collect()
    }

    #[test]
    fn a_slip_in_a_placeholder_is_found_and_the_braces_of_others_are_left_alone() {
        for (text, slips) in [
            ("iifname \"{dut-inn}\" drop", &["{dut-inn}"][..]),
            (
                "{dut_in} {dutout} {DUT-IN} {dut-x}",
                &["{dut_in}", "{dutout}", "{DUT-IN}", "{dut-x}"],
            ),
            ("devices = { {dut-in}, {dut-ouut} }", &["{dut-ouut}"]),
            ("{{dut-inn}}", &["{dut-inn}"]),
            ("{dut-in} {dut-out}", &[]),
            (
                "ip saddr { 1.2.3.4, dut-x } tcp dport {80,443} ct state {established}",
                &[],
            ),
            ("chain forward {\n}\n{ dut-x } {dut-x , a} {} {dut-", &[]),
            ("{level} {leve}", &[]),
        ] {
            assert_eq!(found(text, OF_INTERFACES), slips, "{text}");
        }
        assert_eq!(
            found("{print $1} {level} {levl} {dut-in}", OF_COMMANDS),
            ["{levl}"]
        );
    }

    #[test]
    fn each_placeholder_becomes_what_it_stands_for_and_other_braces_stay() {
        for (text, filled) in [
            (
                "iif {dut-in} oif {dut-out} # {dut-in}",
                "iif a0 oif b1 # a0",
            ),
            (
                "{ dut-in } {dut-in-peer} {level}",
                "{ dut-in } {dut-in-peer} {level}",
            ),
            ("", ""),
        ] {
            assert_eq!(with_interfaces(text, "a0", "b1"), filled);
        }
        let words = ["set".to_owned(), "x={level},{dut-in}".to_owned()];
        // What a level says is its own text: its braces are not filled after it.
        let places = [
            ("{dut-in}", "a0".to_owned()),
            (LEVEL, "{dut-in}".to_owned()),
        ];
        assert_eq!(fill_words(&words, &places), ["set", "x={dut-in},a0"]);
    }

    #[test]
    fn comments_are_blanked_out_where_they_stand() {
        let text = "a # {dut-x} é\n\"\n#\" {dut-y} # \"\n";
        let blanked = without_comments(text);
        assert_eq!(blanked.len(), text.len());
        assert_eq!(found(&blanked, OF_INTERFACES), ["{dut-y}"]);
        assert_eq!(blanked.find("{dut-y}"), text.find("{dut-y}"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_its_places(text: String) {
            for place in unknown(&without_comments(&text), OF_COMMANDS) {
                assert!(text[place].starts_with('{'));
            }
        }
    }
}
