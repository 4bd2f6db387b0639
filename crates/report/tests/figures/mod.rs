//! Figures in Markdown, and whether the values that JSON pointers lead to give them.

use std::ops::Range;

use serde_json::Value;

/// What stands above a line that names where its figures are from, down from the last such line or heading.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) text: String,
    /// None where no line follows.
    pub(crate) pointers: Vec<String>,
}

impl Block {
    /// Where the figures are, names left out.
    pub(crate) fn figures(&self) -> Vec<Range<usize>> {
        let figures = figures(&self.text);
        figures.into_iter().map(|figure| figure.digits).collect()
    }
}

/// The blocks of a README beside whose `folder` its report is.
pub(crate) fn blocks(readme: &str, folder: &str) -> Vec<Block> {
    let begin = format!("<sub>[report.json]({folder}report.json): ");
    let mut blocks = Vec::new();
    let mut text = String::new();
    let mut is_fenced = false;
    for line in readme.lines() {
        is_fenced ^= line.starts_with("```");
        let source = line.strip_prefix(begin.as_str());
        if let Some(pointers) = source.and_then(|rest| rest.strip_suffix("</sub>")) {
            blocks.push(Block {
                text: std::mem::take(&mut text),
                pointers: pointers.split(", ").map(str::to_owned).collect(),
            });
        } else if line.starts_with('#') && !is_fenced {
            blocks.push(Block {
                text: std::mem::take(&mut text),
                pointers: Vec::new(),
            });
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    let pointers = Vec::new();
    blocks.push(Block { text, pointers });
    blocks.retain(|block| !block.text.trim().is_empty());
    blocks
}

/// A number in a text.
#[derive(Clone, Debug)]
struct Figure {
    /// Its digits, with what is between them, without a sign.
    digits: Range<usize>,
    value: f64,
    /// Half of what its last digit counts.
    half_step: f64,
    /// That it is a bound: `< 0.001`.
    is_bound: bool,
    has_sign: bool,
}

/// What may be off in a value that was written with all of its digits.
const EXACT: f64 = 1e-9;

fn figures(text: &str) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find(|c: char| c.is_ascii_digit()) {
        let start = at + found;
        let end = start + length(&text[start..]);
        at = end;
        let before = &text[..start];
        let unsigned = before.trim_end_matches(['-', '+', '\u{2212}']);
        let sign = &before[unsigned.len()..];
        // Part of a word: `IPv4`, `level-3`, `6.18.5-rc1`.
        let is_in_word = |text: &str| text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_word =
            is_in_word(unsigned) || unsigned.ends_with(['\u{202f}', '.']) && sign.is_empty();
        if is_word && !unsigned.ends_with("[.") {
            continue;
        }
        let digits = &text[start..end];
        let plain: String = digits
            .chars()
            .filter(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | '+' | '-'))
            .collect();
        let Ok(value) = plain.parse::<f64>() else {
            continue;
        };
        let scale = unit(&text[end..]);
        let sign_value = if sign.contains(['-', '\u{2212}']) {
            -1.0
        } else {
            1.0
        };
        figures.push(Figure {
            digits: start..end,
            value: sign_value * value * scale,
            half_step: half_step(&plain) * scale,
            is_bound: unsigned.trim_end().ends_with('<'),
            has_sign: !sign.is_empty(),
        });
    }
    figures
}

fn length(text: &str) -> usize {
    let mut length = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let is_digit_next = next.is_some_and(|c| c.is_ascii_digit());
        let goes_on = match character {
            '.' => is_digit_next && !text[..at].contains('.'),
            '\u{202f}' => is_digit_next,
            'e' => next.is_some_and(|c| c == '+' || c == '-') && text[..at].contains('.'),
            '+' | '-' => text[..at].ends_with('e') && is_digit_next,
            _ => character.is_ascii_digit(),
        };
        if !goes_on {
            break;
        }
        length = at + character.len_utf8();
    }
    length
}

/// What the unit behind a figure multiplies it by.
fn unit(behind: &str) -> f64 {
    let units = [(" Gpps", 1e9), (" Mpps", 1e6), (" kpps", 1e3)];
    let unit = units.iter().find(|(unit, _)| behind.starts_with(unit));
    unit.map_or(1.0, |(_, scale)| *scale)
}

/// Whole numbers of more than four digits may be rounded to four.
fn half_step(plain: &str) -> f64 {
    let plain = plain.split('e').next().unwrap();
    if let Some((_, decimals)) = plain.split_once('.') {
        return 0.5 * 10_f64.powi(-i32::try_from(decimals.len()).unwrap());
    }
    let zeros = plain.len() - plain.trim_end_matches('0').len();
    let rounded = zeros.min(plain.len().saturating_sub(4));
    0.5 * 10_f64.powi(i32::try_from(rounded).unwrap())
}

/// What the values under pointers hold.
#[derive(Default)]
struct Values {
    numbers: Vec<f64>,
    /// Of strings, as they are written there.
    written: Vec<Figure>,
    p: Vec<f64>,
}

impl Values {
    /// What an item of a list says of another variant than those is left out; none leave out nothing.
    fn collect(&mut self, value: &Value, key: &str, variants: &[&str]) {
        match value {
            Value::Number(number) => {
                let number = number.as_f64().unwrap();
                self.numbers.push(number);
                if key.ends_with('p') {
                    self.p.push(number);
                }
            }
            Value::String(text) => self.written.extend(figures(text)),
            Value::Array(items) => {
                self.numbers
                    .push(f64::from(u32::try_from(items.len()).unwrap()));
                // Of the blocks of an effect only their number is shown.
                let items = if key == "blocks" { &[][..] } else { items };
                for item in items {
                    let variant = item["variant"].as_str();
                    let is_other = variant.is_some_and(|variant| !variants.contains(&variant));
                    if variants.is_empty() || !is_other {
                        self.collect(item, key, variants);
                    }
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.written.extend(figures(name));
                    self.collect(member, name, variants);
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn give(&self, figure: &Figure) -> bool {
        let is_near = |value: f64, step: f64| {
            (value - figure.value).abs() <= step * (1.0 + 1e-6) + figure.value.abs() * EXACT
        };
        if figure.is_bound {
            // No other bound is ever printed.
            let is_the_bound = (figure.value - 0.001).abs() < EXACT;
            return is_the_bound && self.p.iter().any(|p| *p < 0.001);
        }
        let mut numbers = self.numbers.iter();
        let mut written = self.written.iter();
        numbers.any(|value| is_near(*value, figure.half_step))
            || written.any(|other| is_near(other.value, 0.0) && other.has_sign == figure.has_sign)
    }
}

/// What speaks against a block: pointers that lead nowhere, and figures that the values do not give. The row or
/// the item of a variant is held against what is said of that variant alone.
pub(crate) fn unfounded(block: &Block, json: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let mut found = Vec::new();
    for pointer in &block.pointers {
        match json.pointer(pointer) {
            Some(value) => found.push(value),
            None => problems.push(format!("{pointer} leads nowhere")),
        }
    }
    let names = Names::new(json);
    for line in block.text.lines() {
        let line = line.replace('\\', "");
        let variants = names.variants_of(&line);
        let mut values = Values::default();
        for value in &found {
            values.collect(value, "", &variants);
        }
        let shown = names.without(&line);
        for figure in figures(&shown) {
            if !values.give(&figure) {
                let figure = &shown[figure.digits];
                let pointers = &block.pointers;
                problems.push(format!("{figure} in {line:?}: {pointers:?} do not give it"));
            }
        }
    }
    problems
}

/// Names that others chose: their digits are no figures.
struct Names<'a> {
    /// Label and name of each variant.
    variants: Vec<(&'a str, &'a str)>,
    /// Of variants and comparisons, the longest first.
    labels: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn new(json: &'a Value) -> Self {
        let list = |pointer: &str| json.pointer(pointer).and_then(Value::as_array).unwrap();
        let text = |item: &'a Value, key: &str| item[key].as_str();
        let variants = list("/variants").iter();
        let variants: Vec<(&str, &str)> = variants
            .filter_map(|item| Some((text(item, "label")?, text(item, "name")?)))
            .collect();
        let titles = list("/comparisons").iter();
        let titles = titles.filter_map(|item| text(item, "title"));
        let mut labels: Vec<&str> = variants.iter().map(|(label, _)| *label).collect();
        labels.extend(titles);
        labels.sort_by_key(|label| std::cmp::Reverse(label.len()));
        Self { variants, labels }
    }

    /// The variants of which a row of a table, or an item of a list, is; none where it is of no certain one.
    fn variants_of(&self, line: &str) -> Vec<&'a str> {
        let begins = |label: &str| {
            let begins = [format!("| {label} |"), format!("- **{label}**")];
            begins.iter().any(|begin| line.starts_with(begin.as_str()))
        };
        let of_line = self.variants.iter().filter(|(label, _)| begins(label));
        of_line.map(|(_, name)| *name).collect()
    }

    fn without(&self, text: &str) -> String {
        let text = text.to_owned();
        (self.labels.iter()).fold(text, |text, label| without(&text, label))
    }
}

/// The text without a name, where that is no part of a longer word.
fn without(text: &str, name: &str) -> String {
    let mut rest = String::new();
    let mut end = 0;
    for (at, _) in text.match_indices(name) {
        let is_word_before = text[..at].ends_with(char::is_alphanumeric);
        let is_word_behind = text[at + name.len()..].starts_with(char::is_alphanumeric);
        if !is_word_before && !is_word_behind {
            rest.push_str(&text[end..at]);
            rest.push_str("name");
            end = at + name.len();
        }
    }
    rest + &text[end..]
}
