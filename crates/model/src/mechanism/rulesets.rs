//! Files of rulesets, of any packet filter.

use std::collections::BTreeMap;

use toml::Spanned;

use crate::files::{beside, open, shown};
use crate::placeholder;

use super::Meanings;
use super::bind::Binder;

/// The text of each level's file; empty where no file is named.
pub(super) fn texts(
    binder: &mut Binder<'_, '_>,
    files: &Meanings<Spanned<String>>,
) -> BTreeMap<String, String> {
    let files = binder.levels(files).into_iter();
    files
        .map(|(level, file)| (level, text(binder, file).unwrap_or_default()))
        .collect()
}

/// The first line, from 1, of a ruleset on which nft's word `include` stands, wherever a statement may begin: outside
/// of quotes and comments.
fn line_that_includes(ruleset: &str) -> Option<usize> {
    let is_of_word = |character: char| character.is_alphanumeric() || "_-./".contains(character);
    line_of_nft(ruleset, |line| {
        line.split(|character| !is_of_word(character))
            .any(|word| word == "include")
    })
}

/// The first line, from 1, of a ruleset with an nft command that removes what is there already. A rule may begin with
/// `delete`, too, which then names a set of addresses: `delete @set { … }`.
pub(crate) fn line_that_removes(ruleset: &str) -> Option<usize> {
    line_of_nft(ruleset, |line| {
        line.split([';', '{', '}']).any(|statement| {
            let mut words = statement.split_whitespace();
            let removes = matches!(words.next(), Some("flush" | "delete" | "destroy"));
            removes && words.next().is_some_and(|word| !word.starts_with('@'))
        })
    })
}

/// The first line, from 1, of a ruleset that is so outside of quotes and comments.
fn line_of_nft(ruleset: &str, is_so: impl Fn(&str) -> bool) -> Option<usize> {
    let mut line = 1;
    for (number, piece) in placeholder::without_comments(ruleset)
        .split('"')
        .enumerate()
    {
        let is_quoted = number % 2 == 1;
        if !is_quoted && let Some(behind) = piece.split('\n').position(&is_so) {
            return Some(line + behind);
        }
        line += piece.matches('\n').count();
    }
    None
}

/// The text of a ruleset's file, which is all of the ruleset.
fn text(binder: &mut Binder<'_, '_>, file: &Spanned<String>) -> Option<String> {
    if file.get_ref().is_empty() {
        return Some(String::new());
    }
    let path = beside(&binder.lab.path, file.get_ref());
    let place = || Some((binder.lab, file.span()));
    let diagnostics = &mut *binder.reading.diagnostics;
    let source = open(&path, binder.read, place(), diagnostics)?;
    if let Some(line) = line_that_includes(&source.text) {
        let message = format!("{}:{line}: includes another file", shown(&path));
        diagnostics
            .error(place(), message)
            .with_help("what an include brings would not be in the record; write it into the file");
    }
    let rules = placeholder::without_comments(&source.text);
    for span in placeholder::unknown(&rules, placeholder::OF_INTERFACES) {
        let written = &rules[span.clone()];
        let diagnostic = diagnostics.error(
            Some((&source, span)),
            format!("unknown placeholder {written}"),
        );
        placeholder::explain(diagnostic, written, placeholder::OF_INTERFACES);
    }
    Some(source.text.clone())
}

#[cfg(test)]
mod tests {
    use super::{line_that_includes, line_that_removes};

    #[test]
    fn a_command_that_removes_is_found() {
        for (ruleset, line) in [
            ("flush ruleset\n", 1),
            ("#!/usr/sbin/nft -f\n\nflush ruleset\ntable ip a { }\n", 3),
            ("table ip a { }; delete table ip a\n", 1),
            ("table ip a {\n}\n  destroy table ip a", 3),
        ] {
            assert_eq!(line_that_removes(ruleset), Some(line), "{ruleset:?}");
        }
        for ruleset in [
            "",
            "# flush ruleset\n",
            "table ip a {\n\tchain c {\n\t\tdelete @seen { ip saddr }\n\t\tip saddr 1.2.3.4 delete @seen { ip saddr }\n\t}\n}\n",
            "table ip flush { chain delete { } }\n",
            "udp dport 1 drop comment \"flush ruleset\"\n",
        ] {
            assert_eq!(line_that_removes(ruleset), None, "{ruleset:?}");
        }
    }

    #[test]
    fn an_include_is_found_wherever_a_statement_may_begin() {
        for (ruleset, line) in [
            ("include \"a.nft\"\n", 1),
            ("table inet f {\n\tinclude \"a.nft\"\n}\n", 2),
            ("table inet f { include \"a.nft\" }", 1),
            ("define x = 1; include\t'a.nft'", 1),
            ("udp dport 1 drop;include\"a.nft\"", 1),
            ("# one\n\n\"\n\" include", 4),
            ("comment \"a\n#b\"; include \"a.nft\"", 2),
            ("include", 1),
        ] {
            assert_eq!(line_that_includes(ruleset), Some(line), "{ruleset:?}");
        }
    }

    #[test]
    fn what_only_reads_like_an_include_is_none() {
        for ruleset in [
            "",
            "# include \"a.nft\"\n",
            "udp dport 1 drop comment \"include nothing\"\n",
            "chain include_all { }\nchain not-include { }\nchain includes { }\n",
        ] {
            assert_eq!(line_that_includes(ruleset), None, "{ruleset:?}");
        }
    }
}
