//! Names that others chose, made inert for each place where they are shown.

use std::borrow::Cow;
use std::iter;
use std::path::Path;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One line without anything that acts instead of being read.
///
/// White space becomes one space; controls (terminal escapes among them), marks that turn the
/// writing direction and characters that XML cannot hold become U+FFFD.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().map(visible));
    }
    line
}

/// A text of any lines in which nothing acts that others wrote: characters that would are shown as `\x1b`, or as JSON has
/// them. Line ends and tabs stay, and where colours are shown the sequences of fwdlab's own that set one, or
/// end it.
#[must_use]
pub fn inert(text: &str, colours: bool) -> Cow<'_, str> {
    let is_kept = |character| matches!(character, '\n' | '\t') || !acts(character);
    if text.chars().all(is_kept) {
        return text.into();
    }
    let mut inert = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = match colour(rest).filter(|_| colours) {
            Some(sequence) => {
                inert += sequence;
                sequence.len()
            }
            None if is_kept(character) => {
                inert.push(character);
                character.len_utf8()
            }
            None => {
                inert += &match u32::from(character) {
                    code @ ..0x20 => format!("\\x{code:02x}"),
                    code => format!("\\u{code:04x}"),
                };
                character.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    inert.into()
}

/// What the sequences of fwdlab's own output set, one each: a weight, a colour of text, or the end of them. Others, as those
/// that set the colour of the ground, may hide text.
const COLOURS: [&str; 12] = [
    "", "0", "1", "2", "31", "32", "33", "36", "91", "92", "94", "96",
];

/// The sequence at a text's beginning, where it is one that fwdlab's own output has.
fn colour(text: &str) -> Option<&str> {
    let codes = text.strip_prefix("\x1b[")?;
    let length = codes.bytes().take_while(u8::is_ascii_digit).count();
    let is_own = codes[length..].starts_with('m') && COLOURS.contains(&&codes[..length]);
    is_own.then(|| &text[.."\x1b[m".len() + length])
}

/// A path as people read it.
pub(crate) fn shown(path: &Path) -> String {
    one_line(&path.display().to_string())
}

/// The character, or U+FFFD where it acts.
pub(crate) fn visible(character: char) -> char {
    if acts(character) {
        '\u{fffd}'
    } else {
        character
    }
}

/// Whether a character acts instead of being read, or XML cannot hold it.
pub(crate) fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}')
        || matches!(character, '\u{fffe}' | '\u{ffff}')
}

/// One line of Markdown that shows exactly this text, also inside a table's cell.
///
/// An underscore between letters is left alone, so that `iflib.simple_tx` stays readable.
pub(crate) fn markdown(text: &str) -> String {
    let line = one_line(text);
    let characters: Vec<char> = line.chars().collect();
    let mut escaped = String::new();
    for (index, &character) in characters.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| characters[index]);
        let after = characters.get(index + 1).copied();
        let joined = |neighbour: Option<char>| neighbour.is_some_and(char::is_alphanumeric);
        let acts = match character {
            '\\' | '`' | '*' | '[' | ']' | '<' | '|' | '~' | '$' => true,
            '_' => !(joined(before) && joined(after)),
            '&' => after.is_some_and(|after| after.is_ascii_alphabetic() || after == '#'),
            // Only at the start of a line do these make a heading, a list, a quote or a rule.
            '#' | '+' | '-' | '>' | '=' => before.is_none(),
            '.' | ')' => {
                after.is_none_or(char::is_whitespace)
                    && index > 0
                    && characters[..index].iter().all(char::is_ascii_digit)
            }
            _ => false,
        };
        if acts {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Several lines of Markdown that show exactly this text, its paragraphs kept.
pub(crate) fn markdown_lines(text: &str) -> String {
    text.trim()
        .lines()
        .map(markdown)
        .collect::<Vec<_>>()
        .join("\n")
}

/// A fenced block: its fence is longer than any run of backticks inside.
pub(crate) fn fenced(text: &str) -> String {
    let fence = "`".repeat((longest_fence(text) + 1).max(3));
    format!("{fence}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// A code span that shows exactly this text on one line.
pub(crate) fn code(text: &str) -> String {
    let line = one_line(text);
    if line.is_empty() {
        return String::new();
    }
    let longest = longest_fence(&line);
    let fence = "`".repeat(longest + 1);
    if longest > 0 {
        format!("{fence} {line} {fence}")
    } else {
        format!("{fence}{line}{fence}")
    }
}

/// How many backticks the longest run of them has.
fn longest_fence(text: &str) -> usize {
    let runs = text.split(|character| character != '`');
    runs.map(str::len).max().unwrap_or(0)
}

/// A table; `header` has its columns as Markdown has them, with ` | ` between them.
pub(crate) fn table(header: &str, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = format!("| {header} |\n|");
    table += &"---|".repeat(header.split(" | ").count());
    table.push('\n');
    for row in rows {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        table += &format!("| {} |\n", cells.join(" | "));
    }
    table
}

/// Markdown for a cell of a table: bars, which end it even in a code span, escaped where they are not yet.
fn cell(markdown: &str) -> String {
    let mut cell = String::with_capacity(markdown.len());
    let mut is_escaped = false;
    for character in markdown.chars() {
        if character == '|' && !is_escaped {
            cell.push('\\');
        }
        cell.push(character);
        is_escaped = character == '\\' && !is_escaped;
    }
    cell
}

/// The text for an XML attribute or element.
pub(crate) fn xml(text: &str) -> String {
    let mut escaped = String::new();
    for character in one_line(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            character => escaped.push(character),
        }
    }
    escaped
}

/// Columns that the text takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The longest beginning of a text that is at most so many columns wide.
///
/// It is measured as a whole each time, because characters can join or widen those before them.
pub(crate) fn beginning(text: &str, columns_max: usize) -> &str {
    let mut end = 0;
    for (start, character) in text.char_indices() {
        let next = start + character.len_utf8();
        if columns(&text[..next]) > columns_max {
            break;
        }
        end = next;
    }
    &text[..end]
}

/// The text in lines of at most that many columns; a longer word is broken.
pub(crate) fn wrap_to_columns(text: &str, columns_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // Only the breaking space separates words: groups of digits stay together.
    let words = text.split(' ').filter(|word| !word.is_empty());
    for word in words.flat_map(|word| broken(word, columns_max)) {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(&word) <= columns_max => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// With fewer columns beside it, a lead is shortened.
const ROOM_MIN: usize = 20;

/// The text in lines of at most that many columns, each behind its lead: the first behind `lead`, the others indented
/// as far. Where a word would not fit beside it, or hardly any, the lead loses blanks.
pub(crate) fn hanging(
    lead: &str,
    text: &str,
    columns_max: usize,
) -> impl Iterator<Item = (Cow<'static, str>, String)> + use<> {
    let room = |lead: &str| columns_max.saturating_sub(columns(lead)).max(1);
    let short = match lead.trim() {
        "" => " ".repeat(columns(lead).div_ceil(2).min(3)),
        mark => format!("{mark} "),
    };
    let longest = text.split(' ').map(columns).max().unwrap_or(0);
    let is_torn = room(lead) < longest && longest <= room(&short);
    let lead = if room(lead) < ROOM_MIN || is_torn {
        short
    } else {
        lead.to_owned()
    };
    let room = room(&lead);
    let indent = " ".repeat(columns(&lead));
    iter::once(lead.into())
        .chain(iter::repeat(indent.into()))
        .zip(wrap_to_columns(text, room))
}

/// Rows under headings as sentences, for where their columns do not fit: `first cell: heading cell, heading cell`.
///
/// Shape: the first row is the headings.
pub(crate) fn in_sentences<R: AsRef<[String]>>(rows: &[R]) -> Vec<String> {
    let Some((headings, rows)) = rows.split_first() else {
        return Vec::new();
    };
    let sentence = |row: &R| {
        let cells = headings.as_ref().iter().zip(row.as_ref()).skip(1);
        let cells: Vec<String> = cells
            .map(|(heading, cell)| format!("{heading} {cell}"))
            .collect();
        format!("{}: {}", row.as_ref()[0], cells.join(", "))
    };
    rows.iter().map(sentence).collect()
}

/// Rows as lines, their cells in columns with two spaces between them; columns for which `is_right` holds are
/// right-aligned.
///
/// Shape: all rows have as many cells as the first.
pub(crate) fn in_columns<R: AsRef<[String]>>(
    rows: &[R],
    is_right: impl Fn(usize) -> bool,
) -> Vec<String> {
    let count = rows.first().map_or(0, |row| row.as_ref().len());
    let width = |column: usize| {
        let cells = rows.iter().map(|row| columns(&row.as_ref()[column]));
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &R| {
        let cells = row.as_ref().iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| {
            let air = " ".repeat(width - columns(cell));
            if is_right(column) {
                air + cell
            } else {
                format!("{cell}{air}")
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn broken(word: &str, columns_max: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for character in word.chars() {
        let width = character.width().unwrap_or(0);
        match pieces.last_mut() {
            Some(piece) if columns(piece) + width <= columns_max => piece.push(character),
            _ => pieces.push(character.to_string()),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::terminal::Style;

    #[test]
    fn what_others_wrote_cannot_act_on_a_terminal() {
        for (text, shown) in [
            ("a\n\tb\u{fc}", "a\n\tb\u{fc}"),
            ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
            ("\x1b[2J\r\u{9b}1m\u{202e}", r"\x1b[2J\x0d\u009b1m\u202e"),
            ("\x1b[31mred", r"\x1b[31mred"),
        ] {
            assert_eq!(inert(text, false), shown);
        }
        for (text, shown) in [
            ("\x1b[8mhidden", r"\x1b[8mhidden"),
            ("\x1b[2Jm", r"\x1b[2Jm"),
            ("\x1b[30;40mhidden", r"\x1b[30;40mhidden"),
            ("\x1b[1;38;5;9mred", r"\x1b[1;38;5;9mred"),
            ("\x1b[1", r"\x1b[1"),
        ] {
            assert_eq!(inert(text, true), shown);
        }
    }

    #[test]
    fn colours_of_our_own_output_are_shown() {
        use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

        let snippet = || {
            let annotation = AnnotationKind::Primary.span(0..1).label("label");
            let context = AnnotationKind::Context.span(1..2).label("label");
            Snippet::source("text")
                .path("path")
                .annotation(annotation)
                .annotation(context)
        };
        let levels = [
            Level::ERROR,
            Level::WARNING,
            Level::NOTE,
            Level::INFO,
            Level::HELP,
        ];
        for level in levels {
            let group = level
                .clone()
                .primary_title("title")
                .id("L000")
                .element(snippet());
            let group = group.element(level.message("message"));
            let text = Renderer::styled().render(&[group]);
            assert!(text.contains("\x1b["), "{text}");
            assert_eq!(inert(&text, true), text);
        }
        let styles = Style::ALL.map(|style| format!("\x1b[{}mtext\x1b[0m", style.code()));
        for text in styles {
            assert_eq!(inert(&text, true), text);
        }
    }

    proptest! {
        #[test]
        fn nothing_acts_but_our_own_colours(
            text in "(\x1b(\\[[0-9;:?]{0,8}[mJHKh]?)?|\u{9b}|\r|[a-z\n\t]|\\PC|\\PC|.){0,40}"
        ) {
            let acts = |text: &str| {
                text.chars().any(|character| acts(character) && !matches!(character, '\n' | '\t'))
            };
            prop_assert!(!acts(&inert(&text, false)));
            let mut shown = inert(&text, true).into_owned();
            for code in COLOURS {
                shown = shown.replace(&format!("\x1b[{code}m"), "");
            }
            prop_assert!(!acts(&shown), "{shown:?}");
        }

        #[test]
        fn text_between_our_own_colours_stays(pieces in prop::collection::vec((0..COLOURS.len(), "[a-z;0-9 ]{0,6}"), 0..9)) {
            let pieces = pieces.iter().map(|(code, text)| format!("\x1b[{}m{text}", COLOURS[*code]));
            let text: String = pieces.collect();
            prop_assert_eq!(&*inert(&text, true), &*text);
        }
    }

    #[test]
    fn markdown_shows_what_was_written() {
        for (text, expected) in [
            ("iflib.simple_tx=0 and x", "iflib.simple_tx=0 and x"),
            ("a|b", "a\\|b"),
            ("`x` <img src=x>", "\\`x\\` \\<img src=x>"),
            ("*bold* _it_", "\\*bold\\* \\_it\\_"),
            ("# title\n\n- item", "\\# title - item"),
            ("1. one", "1\\. one"),
            ("[x](http://y)", "\\[x\\](http://y)"),
            ("AT&T &amp;", "AT\\&T \\&amp;"),
            ("-21", "\\-21"),
            ("a\u{1b}[31m", "a\u{fffd}\\[31m"),
            ("\u{202e}evil", "\u{fffd}evil"),
        ] {
            assert_eq!(markdown(text), expected);
        }
    }

    #[test]
    fn a_fence_cannot_be_closed_from_inside() {
        assert_eq!(fenced("x a\n"), "```\nx a\n```\n");
        assert_eq!(fenced("```\nx\n````"), "`````\n```\nx\n````\n`````\n");
        assert_eq!(code("a`b``c"), "``` a`b``c ```");
        assert_eq!(code("a b"), "`a b`");
    }

    #[test]
    fn a_lead_is_shortened_where_a_word_would_be_torn() {
        let lines = |lead, text, columns| {
            let lines = hanging(lead, text, columns);
            lines
                .map(|(lead, line)| format!("{lead}{line}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(lines("   1  ", "aa bb", 26), ["   1  aa bb"]);
        assert_eq!(lines("   1  ", "aa bb", 25), ["1 aa bb"]);
        assert_eq!(
            lines("        ", "measurements of rates", 20),
            ["   measurements of", "   rates"]
        );
        let word = "a".repeat(25);
        assert_eq!(lines("    ", &word, 28), [format!("  {word}")]);
        assert_eq!(
            lines("    ", &word, 24),
            [format!("    {}", &word[..20]), "    aaaaa".to_owned()]
        );
    }

    #[test]
    fn a_table_becomes_sentences() {
        let rows = [["method", "p", "corrected"], ["max-T", "0.01", "0.02"]];
        let rows = rows.map(|row| row.map(str::to_owned));
        assert_eq!(in_sentences(&rows), ["max-T: p 0.01, corrected 0.02"]);
        assert!(in_sentences::<[String; 1]>(&[]).is_empty());
    }

    #[test]
    fn terminal_text_is_wrapped_by_columns() {
        assert_eq!(wrap_to_columns("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap_to_columns("aa bbbbbbb c", 5), ["aa", "bbbbb", "bb c"]);
        assert_eq!(
            wrap_to_columns("1\u{202f}000 pps", 5),
            ["1\u{202f}000", "pps"]
        );
    }
}
