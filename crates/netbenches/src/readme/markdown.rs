//! Markdown, as far as READMEs of results use it: line by line, in one pass.

use std::borrow::Cow;
use std::collections::VecDeque;

use fwdlab_stats::ministat::{PublishedBlock, published_blocks};

use super::links::{self, Reference};
use super::{Heading, PublishedReadme, ReadmeBlock, Section, Table, TableRow, TextLine};

/// A text with plain spaces in place of no-break ones.
///
/// The narrow one (U+202F) comes from typing in French; its UTF-8 is at times taken for Windows-1252,
/// which makes three letters of it.
///
/// # Examples
/// ```
/// use fwdlab_netbenches::readme::plain_spaces;
/// assert_eq!(plain_spaces("Unit:\u{202f}pps, 5\u{a0}%, Unit:\u{e2}\u{20ac}\u{af}pps"), "Unit: pps, 5 %, Unit: pps");
/// ```
pub fn plain_spaces(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.replace("\u{e2}\u{20ac}\u{af}", " ")
            .replace(['\u{202f}', '\u{a0}'], " "),
    )
}

/// Nobody reads on: of a longer line only the beginning counts.
const LINE_BYTES_MAX: usize = 64 << 10;

/// What of a line is read, with plain spaces.
fn shown(line: &str) -> String {
    plain_spaces(&line[..line.floor_char_boundary(LINE_BYTES_MAX)]).into_owned()
}

/// Takes a README apart, all but the claims.
pub(super) fn read(text: &str) -> PublishedReadme {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut reader = Reader {
        blocks: published_blocks(text).into(),
        lines: &lines,
        ..Reader::default()
    };
    reader.readme.sections.push(Section::default());
    let mut next = 0;
    while next < lines.len() {
        next = reader.read_at(next);
    }
    reader.finish()
}

#[derive(Default)]
struct Reader<'a> {
    lines: &'a [&'a str],
    /// Those that are still to come.
    blocks: VecDeque<PublishedBlock>,
    readme: PublishedReadme,
    /// The open headings, from the outermost.
    path: Vec<Heading>,
    fence: Option<Fence>,
    /// How many lines at the end of the prose make up an open paragraph.
    paragraph_lines: usize,
    caption: Option<TextLine>,
    /// Whether nothing was read yet but empty lines.
    is_past_beginning: bool,
    lab: LabList,
    references: Vec<Reference>,
}

/// Whether the list of the laboratory is to be read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LabList {
    /// It may still come.
    #[default]
    Awaited,
    /// A list right here is the laboratory's, unless one is announced below.
    MayFollowTitle,
    /// It was announced: a list right here is the laboratory's.
    Announced,
    /// It is being read.
    Open { is_announced: bool },
    /// It was read.
    Closed,
}

impl Reader<'_> {
    /// Reads at the line of that index; gives the index of the line to go on with.
    fn read_at(&mut self, index: usize) -> usize {
        if self.next_block_line() == Some(index + 1)
            && let Some(block) = self.blocks.pop_front()
        {
            self.end_paragraph();
            self.end_lab();
            self.is_past_beginning = true;
            let end = block.source_lines.last().copied().unwrap_or(index + 1);
            self.readme.blocks.push(ReadmeBlock {
                block,
                headings: self.path.clone(),
                caption: self.caption.take(),
            });
            return end;
        }
        let (number, line) = (index + 1, self.lines[index]);
        if let Some(fence) = &self.fence {
            if fence.is_closed_by(line) {
                self.fence = None;
            } else {
                let text = shown(line);
                self.readme.code.push(TextLine { line: number, text });
            }
            return number;
        }
        if line.trim_start().is_empty() {
            self.end_paragraph();
            if matches!(self.lab, LabList::Open { .. }) {
                self.end_lab();
            }
            return number;
        }
        let is_at_beginning = !std::mem::replace(&mut self.is_past_beginning, true);
        if let Some(fence) = Fence::opened_by(line) {
            self.end_paragraph();
            self.end_lab();
            self.fence = Some(fence);
            return number;
        }
        if let Some((level, text)) = atx_heading(line) {
            self.end_paragraph();
            self.push_heading(level, number, text);
            return number;
        }
        if let Some(level) = setext_level(line)
            && self.paragraph_lines > 0
        {
            self.underline_paragraph(level);
            return number;
        }
        if self.is_table_at(index) {
            return self.read_table(index);
        }
        if let Some(reference) = Reference::of_line(line) {
            self.references.push(reference);
            return number;
        }
        self.push_prose(number, line, is_at_beginning);
        number
    }

    fn push_prose(&mut self, number: usize, line: &str, is_at_beginning: bool) {
        let item = list_item(line);
        let text = shown(item.unwrap_or(line).trim());
        links::read(number, &text, &mut self.readme.links);
        let text = TextLine { line: number, text };
        let is_indented = line.starts_with([' ', '\t']);
        self.read_lab(&text, item.is_some(), is_indented);
        let may_be_title = item.is_none() && !text.text.starts_with("![");
        if is_at_beginning && may_be_title && !announces_lab(&text.text) {
            self.readme.title = Some(text.clone());
            self.lab = LabList::MayFollowTitle;
        }
        self.caption = Some(text.clone());
        if item.is_some() {
            self.paragraph_lines = 0;
        } else {
            self.paragraph_lines += 1;
        }
        if let Some(section) = self.readme.sections.last_mut() {
            section.prose.push(text);
        }
    }

    /// Follows where the list of the laboratory begins and ends.
    fn read_lab(&mut self, text: &TextLine, is_item: bool, is_indented: bool) {
        if !is_item && announces_lab(&text.text) {
            self.announce_lab();
        } else if is_item {
            let is_announced = match self.lab {
                LabList::Announced => true,
                LabList::MayFollowTitle => false,
                LabList::Open { is_announced } => is_announced,
                LabList::Awaited | LabList::Closed => return,
            };
            self.lab = LabList::Open { is_announced };
            self.readme.lab.push(text.clone());
        } else if !is_indented {
            self.end_lab();
        }
    }

    /// What is announced counts more than what only stood below the title.
    fn announce_lab(&mut self) {
        if !matches!(self.lab, LabList::Closed) || self.readme.lab.is_empty() {
            self.readme.lab.clear();
            self.lab = LabList::Announced;
        }
    }

    fn end_lab(&mut self) {
        self.lab = match self.lab {
            LabList::Open { is_announced: true } => LabList::Closed,
            // An announced one may follow.
            LabList::Closed => LabList::Closed,
            _ => LabList::Awaited,
        };
    }

    fn end_paragraph(&mut self) {
        self.paragraph_lines = 0;
    }

    fn push_heading(&mut self, level: usize, line: usize, text: &str) {
        let text = shown(text);
        links::read(line, &text, &mut self.readme.links);
        self.end_lab();
        if announces_lab(&text) {
            self.announce_lab();
        }
        let has_prose = self
            .readme
            .sections
            .iter()
            .any(|section| section.heading.is_some() || !section.prose.is_empty());
        if self.readme.title.is_none() && !has_prose && self.readme.blocks.is_empty() {
            self.readme.title = Some(TextLine {
                line,
                text: text.clone(),
            });
            self.lab = LabList::MayFollowTitle;
        }
        self.caption = None;
        let heading = Heading { level, line, text };
        self.path.retain(|outer| outer.level < level);
        self.path.push(heading.clone());
        self.readme.sections.push(Section {
            heading: Some(heading),
            prose: Vec::new(),
        });
    }

    /// Makes a heading of the open paragraph.
    fn underline_paragraph(&mut self, level: usize) {
        let Some(section) = self.readme.sections.last_mut() else {
            return;
        };
        let first = section.prose.len() - self.paragraph_lines.min(section.prose.len());
        let lines = section.prose.split_off(first);
        self.end_paragraph();
        if let Some(TextLine { line, .. }) = lines.first() {
            let (line, count) = (*line, self.readme.links.len());
            // The links of its lines are read already.
            let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
            let title = self.readme.title.take_if(|title| title.line == line);
            self.push_heading(level, line, &text.join(" "));
            self.readme.links.truncate(count);
            if let Some(title) = title {
                self.readme.title.get_or_insert(title);
            }
        }
    }

    fn is_table_at(&self, index: usize) -> bool {
        self.lines[index].contains('|')
            && self
                .lines
                .get(index + 1)
                .is_some_and(|below| is_table_rule(below))
            && self.next_block_line().is_none_or(|line| line > index + 2)
    }

    /// The line that the next block begins on.
    fn next_block_line(&self) -> Option<usize> {
        self.blocks.front().map(|block| block.line)
    }

    fn read_table(&mut self, index: usize) -> usize {
        self.end_paragraph();
        self.end_lab();
        let end = self
            .next_block_line()
            .map_or(self.lines.len(), |line| line - 1);
        let mut rows = vec![self.table_row(index)];
        let mut next = index + 2;
        while next < end && self.lines[next].contains('|') {
            rows.push(self.table_row(next));
            next += 1;
        }
        self.readme.tables.push(Table { rows });
        next
    }

    fn table_row(&mut self, index: usize) -> TableRow {
        let text = shown(self.lines[index].trim());
        links::read(index + 1, &text, &mut self.readme.links);
        let inner = text.strip_prefix('|').unwrap_or(&text);
        let inner = inner.strip_suffix('|').unwrap_or(inner);
        TableRow {
            line: index + 1,
            cells: cells(inner),
        }
    }

    fn finish(mut self) -> PublishedReadme {
        links::resolve(&self.references, &mut self.readme.links);
        self.readme
            .sections
            .retain(|section| section.heading.is_some() || !section.prose.is_empty());
        self.readme
    }
}

/// An open fence: its character and its length.
struct Fence {
    character: char,
    length: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let character = line
            .chars()
            .next()
            .filter(|first| matches!(first, '`' | '~'))?;
        let rest = line.trim_start_matches(character);
        let length = line.len() - rest.len();
        // Otherwise it is code within a line.
        let is_fence = length >= 3 && (character == '~' || !rest.contains('`'));
        is_fence.then_some(Self { character, length })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|character| character == self.character)
    }
}

/// The level and the text of a heading that begins with `#`.
fn atx_heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches(' ');
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    let is_heading = (1..=6).contains(&level)
        && line.len() - text.len() < 4
        && (rest.is_empty() || rest.starts_with([' ', '\t']));
    if !is_heading {
        return None;
    }
    let rest = rest.trim();
    let without_end = rest.trim_end_matches('#');
    let is_closed = without_end.is_empty() || without_end.ends_with([' ', '\t']);
    Some((
        level,
        if is_closed {
            without_end.trim_end()
        } else {
            rest
        },
    ))
}

/// The level of a heading that is underlined so; a line of one character underlines nothing here.
fn setext_level(line: &str) -> Option<usize> {
    let line = line.trim();
    let underlines = |with: u8| line.len() > 1 && line.bytes().all(|byte| byte == with);
    match () {
        () if underlines(b'=') => Some(1),
        () if underlines(b'-') => Some(2),
        () => None,
    }
}

/// The text of an item of a list.
fn list_item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match line.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => &line[1..],
        b'.' | b')' if (1..10).contains(&digits) => &line[digits + 1..],
        _ => return None,
    };
    rest.starts_with([' ', '\t']).then(|| rest.trim_start())
}

/// Whether a line says that the laboratory is described below.
fn announces_lab(text: &str) -> bool {
    let words = text.trim_matches(|character: char| !character.is_alphanumeric());
    ["lab", "bench lab", "testbed"]
        .iter()
        .any(|known| words.eq_ignore_ascii_case(known))
}

/// Whether this is the rule below a table's heading.
fn is_table_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains('|')
        && line.contains('-')
        && line
            .bytes()
            .all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'))
}

/// The cells of a row without its outer bars; `\|` is no border.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut characters = row.chars().peekable();
    while let Some(character) = characters.next() {
        let last = cells.len() - 1;
        match character {
            '\\' if characters.peek() == Some(&'|') => {
                characters.next();
                cells[last].push('|');
            }
            '|' => cells.push(String::new()),
            _ => cells[last].push(character),
        }
    }
    for cell in &mut cells {
        *cell = cell.trim().to_owned();
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "x 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n";

    fn texts(lines: &[TextLine]) -> Vec<(usize, &str)> {
        let texts = lines.iter().map(|line| (line.line, line.text.as_str()));
        texts.collect()
    }

    fn title(text: &str) -> Option<(usize, String)> {
        let title = read(text).title;
        title.map(|title| (title.line, title.text))
    }

    #[test]
    fn a_title_is_a_heading_or_the_line_it_begins_with() {
        for (text, expected) in [
            ("\n# Impact of x ##\n\ntext", Some((2, "Impact of x"))),
            ("Impact of\u{202f}x\n===\n", Some((1, "Impact of x"))),
            ("Impact of x\n  - a\n# Results", Some((1, "Impact of x"))),
            ("```\nx\n```\n# Results", Some((4, "Results"))),
            ("- item\n", None),
            ("![a](b)\n", None),
            ("#hash\n", Some((1, "#hash"))),
            ("Lab:\n- a\n", None),
            (ROWS, None),
        ] {
            let expected = expected.map(|(line, text)| (line, text.to_owned()));
            assert_eq!(title(text), expected, "{text}");
        }
    }

    #[test]
    fn headings_are_marked_or_underlined() {
        let readme =
            read("# A\r\ntwo\r\nlines\r\n---\r\n### C #\r\n- item\r\n---\r\n    ####### d\r\n");
        let headings: Vec<(usize, usize, &str)> = readme
            .sections
            .iter()
            .filter_map(|section| section.heading.as_ref())
            .map(|heading| (heading.level, heading.line, heading.text.as_str()))
            .collect();
        assert_eq!(headings, [(1, 1, "A"), (2, 2, "two lines"), (3, 5, "C")]);
        let last = readme.sections.last().unwrap();
        assert_eq!(
            texts(&last.prose),
            [(6, "item"), (7, "---"), (8, "####### d")]
        );
    }

    #[test]
    fn the_laboratory_is_a_list_below_its_name_or_the_title() {
        for (text, expected) in [
            (
                "# T\n\nlab:\n\n  - a\n  - b\n\n- c\n",
                vec![(5, "a"), (6, "b")],
            ),
            (
                "Impact of x\n  - a\n    goes on\n  * b\n\n- c\n",
                vec![(2, "a"), (4, "b")],
            ),
            ("# T\n- a\n\n## Lab\n- b\n", vec![(5, "b")]),
            ("# T\ntext\n- a\n", vec![]),
            ("# T\n\nTesting:\n- a\n", vec![]),
        ] {
            assert_eq!(texts(&read(text).lab), expected, "{text}");
        }
    }

    #[test]
    fn code_ends_with_a_fence_as_long_as_that_it_began_with() {
        let readme = read("````sh\n```\n# no heading\n````\n~~~\ncode\n~~~~\n```x```\ntext\n");
        assert_eq!(
            texts(&readme.code),
            [(2, "```"), (3, "# no heading"), (6, "code")]
        );
        assert_eq!(
            texts(&readme.sections[0].prose),
            [(8, "```x```"), (9, "text")]
        );
        assert_eq!(texts(&read("```\na\n").code), [(2, "a")]);
    }

    #[test]
    fn blocks_know_their_headings_and_their_caption() {
        let text = format!(
            "# A\n## B\nb:\n```\n{ROWS}```\n```\n{ROWS}```\n## C\n### D\n```\n{ROWS}```\n# E\n{ROWS}"
        );
        let readme = read(&text);
        let found: Vec<(String, Option<usize>)> = readme
            .blocks
            .iter()
            .map(|block| {
                let path: Vec<&str> = block
                    .headings
                    .iter()
                    .map(|heading| heading.text.as_str())
                    .collect();
                (
                    path.join("/"),
                    block.caption.as_ref().map(|caption| caption.line),
                )
            })
            .collect();
        let expected = [
            ("A/B", Some(3)),
            ("A/B", None),
            ("A/C/D", None),
            ("E", None),
        ];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }

    #[test]
    fn labels_outside_of_fences_are_no_headings() {
        let readme = read(
            "x a\n+ b\n* c\n% d\n# e\nx 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n* 3 5 7 6 6 1\n% 3 5 7 6 6 1\n# 3 5 7 6 6 1\ntext\n",
        );
        assert_eq!(readme.blocks[0].block.rows[4].label.as_deref(), Some("e"));
        assert_eq!(readme.sections.len(), 1);
        assert_eq!(texts(&readme.sections[0].prose), [(11, "text")]);
    }

    #[test]
    fn tables_have_rows_of_cells() {
        let readme = read("a | [b](c)\n--|:-:\n| 1 | x \\| y |\n2\n| no | table |\n");
        let rows: Vec<(usize, Vec<&str>)> = readme.tables[0]
            .rows
            .iter()
            .map(|row| (row.line, row.cells.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(rows, [(1, vec!["a", "[b](c)"]), (3, vec!["1", "x | y"])]);
        assert_eq!((readme.tables.len(), readme.links.len()), (1, 1));
        assert_eq!(
            texts(&readme.sections[0].prose),
            [(4, "2"), (5, "| no | table |")]
        );
    }

    #[test]
    fn links_of_an_underlined_heading_are_read_once() {
        let readme = read("[a](b)\n---\n");
        assert_eq!(readme.links.len(), 1);
        assert_eq!(readme.sections[0].heading.as_ref().unwrap().level, 2);
    }
}
