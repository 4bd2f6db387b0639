//! The variants in columns: a line each where the terminal is wide enough, two where it is not.

use std::cmp::Ordering;

use super::entry::Entry;
use super::line::{Line, left, right};
use super::{Section, widest};
use crate::labels::shortened;
use crate::terminal::Style;
use crate::text::columns;

const LABEL_MAX: usize = 34;
/// Labels shorter than this tell too little; two lines then show more of them.
const LABEL_MIN: usize = 24;
const INDENT: usize = 2;
const GAP: usize = 2;

/// The variants in at most so many lines. Where they do not all fit, those that differ most stay, with
/// their baselines.
pub(super) fn lines(
    sections: &[Section],
    is_over: bool,
    width: usize,
    rows_max: usize,
) -> Vec<Line> {
    let layout = Layout::new(sections, is_over, width);
    let ranked = ranked(sections);
    let kept = (0..=ranked.len())
        .rev()
        .find(|&kept| layout.rows(sections, &ranked[..kept], ranked.len()) <= rows_max)
        .unwrap_or(0);
    layout.lines(sections, &ranked[..kept], ranked.len() - kept)
}

/// Section and entry of every row but the baselines, those that differ most first.
fn ranked(sections: &[Section]) -> Vec<(usize, usize)> {
    let mut ranked: Vec<(usize, usize)> = sections
        .iter()
        .enumerate()
        .flat_map(|(section, rows)| (1..rows.entries.len()).map(move |entry| (section, entry)))
        .collect();
    let size = |&(section, entry): &(usize, usize)| sections[section].entries[entry].size;
    // A stable sort: among those alike the experiment's order stands.
    ranked.sort_by(|one, other| {
        let ordering = size(other).partial_cmp(&size(one));
        ordering.unwrap_or(Ordering::Equal)
    });
    ranked
}

/// A column between the label and the words.
struct Column {
    heading: &'static str,
    text: fn(&Entry) -> &str,
    is_right: bool,
    width: usize,
}

impl Column {
    fn cell(&self, text: &str) -> String {
        if self.is_right {
            right(text, self.width)
        } else {
            left(text, self.width)
        }
    }
}

/// What is shown where.
struct Layout {
    labels: Vec<Vec<String>>,
    label_width: usize,
    columns: Vec<Column>,
    /// Whether a variant takes one line.
    is_wide: bool,
    is_over: bool,
}

impl Layout {
    fn new(sections: &[Section], is_over: bool, width: usize) -> Self {
        let entries: Vec<&Entry> = sections.iter().flat_map(|rows| &rows.entries).collect();
        let measured: Vec<Column> = [
            (
                "rate",
                (|entry: &Entry| entry.forwarding_rate.as_str()) as fn(&Entry) -> &str,
                true,
            ),
            ("by block", |entry| entry.sparkline.as_str(), false),
            ("effect", |entry| entry.effect.as_str(), true),
            ("interval", |entry| entry.interval.as_str(), false),
            ("±", |entry| entry.narrowing.as_str(), false),
        ]
        .into_iter()
        .map(|(heading, text, is_right)| Column {
            heading,
            text,
            is_right,
            width: widest(entries.iter().map(|entry| text(entry))),
        })
        .filter(|column| column.width > 0)
        .collect();
        let words_width = widest(entries.iter().map(|entry| entry.words.as_str()));
        let headed = measured
            .iter()
            .map(|column| GAP + column.width.max(columns(column.heading)))
            .sum::<usize>();
        let label_room = width.saturating_sub(INDENT + headed + GAP + words_width.max(7));
        let names: Vec<&str> = entries.iter().map(|entry| entry.label.as_str()).collect();
        let longest = widest(names.iter().copied());
        let is_wide = label_room >= longest.min(LABEL_MIN);
        let room = if is_wide {
            label_room.min(LABEL_MAX)
        } else {
            // The words stand behind the label; where that leaves it too little, they are cut.
            width
                .saturating_sub(GAP + words_width + " so far".len())
                .clamp(8, LABEL_MAX)
        };
        let short = shortened(&names, &|label| columns(label) <= room);
        let label_width = widest(short.iter().map(String::as_str));
        let mut short = short.into_iter();
        let labels = sections
            .iter()
            .map(|rows| short.by_ref().take(rows.entries.len()).collect())
            .collect();
        let columns = if is_wide {
            let headed = |column: Column| Column {
                width: column.width.max(columns(column.heading)),
                ..column
            };
            measured.into_iter().map(headed).collect()
        } else {
            fitting(measured, width)
        };
        Self {
            labels,
            label_width,
            columns,
            is_wide,
            is_over,
        }
    }

    fn entry_rows(&self) -> usize {
        if self.is_wide || self.columns.is_empty() {
            1
        } else {
            2
        }
    }

    /// How many lines the kept ones take of so many.
    fn rows(&self, sections: &[Section], kept: &[(usize, usize)], all: usize) -> usize {
        let mut rows = usize::from(self.is_wide);
        for (number, section) in sections.iter().enumerate() {
            let of_section = kept.iter().filter(|(of, _)| *of == number).count();
            if of_section > 0 || all == 0 {
                let heading = usize::from(section.heading.is_some());
                rows += heading + (1 + of_section) * self.entry_rows();
            }
        }
        rows + usize::from(kept.len() < all)
    }

    fn lines(&self, sections: &[Section], kept: &[(usize, usize)], hidden: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        if self.is_wide {
            lines.push(self.headings());
        }
        for (number, section) in sections.iter().enumerate() {
            let shown: Vec<usize> = (0..section.entries.len())
                .filter(|&entry| entry == 0 || kept.contains(&(number, entry)))
                .collect();
            // A baseline alone says nothing where others are left out.
            if shown.len() == 1 && hidden > 0 {
                continue;
            }
            if let Some(heading) = &section.heading {
                lines.push(Line::of(heading, Style::Bold));
            }
            for entry in shown {
                let label = &self.labels[number][entry];
                lines.extend(self.entry(label, &section.entries[entry]));
            }
        }
        if hidden > 0 {
            let text = format!("{}… and {hidden} more", " ".repeat(INDENT));
            lines.push(Line::of(text, Style::Dim));
        }
        lines
    }

    fn headings(&self) -> Line {
        let mut text = format!("{}{}", " ".repeat(INDENT), left("", self.label_width));
        for column in &self.columns {
            text += &" ".repeat(GAP);
            text += &column.cell(column.heading);
        }
        text += &" ".repeat(GAP);
        text += if self.is_over { "verdict" } else { "so far" };
        Line::of(text, Style::Dim)
    }

    fn entry(&self, label: &str, entry: &Entry) -> Vec<Line> {
        let gap = " ".repeat(GAP);
        let style = if entry.is_verdict {
            Style::Bold
        } else {
            Style::Plain
        };
        let label = left(label, self.label_width);
        if self.is_wide {
            let line = Line::of(" ".repeat(INDENT), Style::Plain).and(label, style);
            let line = self.cells(line, entry, &gap);
            return vec![line.and(gap, Style::Plain).and(&entry.words, entry.style)];
        }
        let words = if entry.is_verdict && !self.is_over {
            format!("{} so far", entry.words)
        } else {
            entry.words.clone()
        };
        let first = Line::of(label, style)
            .and(gap.clone(), Style::Plain)
            .and(words, entry.style);
        if self.columns.is_empty() {
            return vec![first];
        }
        vec![first, self.cells(Line::default(), entry, &gap)]
    }

    fn cells(&self, line: Line, entry: &Entry, gap: &str) -> Line {
        self.columns.iter().fold(line, |line, column| {
            let style = match column.heading {
                "effect" | "interval" => entry.style,
                _ => Style::Plain,
            };
            let cell = column.cell((column.text)(entry));
            line.and(gap, Style::Plain).and(cell, style)
        })
    }
}

/// The columns that fit into a line, those that say most first.
fn fitting(columns: Vec<Column>, width: usize) -> Vec<Column> {
    let mut by_weight: Vec<&Column> = columns.iter().collect();
    let weight = |column: &&Column| {
        ["effect", "interval", "by block", "rate", "±"]
            .iter()
            .position(|heading| *heading == column.heading)
    };
    by_weight.sort_by_key(weight);
    let mut room = width;
    let mut kept = Vec::new();
    for column in by_weight {
        if GAP + column.width <= room {
            room -= GAP + column.width;
            kept.push(column.heading);
        }
    }
    columns
        .into_iter()
        .filter(|column| kept.contains(&column.heading))
        .collect()
}
