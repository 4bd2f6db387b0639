//! The kinds of defects, and where in a part each can be planted.

mod figures;
mod logs;
mod profiles;
mod texts;
mod values;

use fwdlab_archive::lint::Severity;
use testkit::Random;

use crate::part::{Defect, Part};

/// What lint should make of a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    AtLeast(Severity),
    /// What is planted is none.
    Nothing,
}

pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Chooses a place in a part, and what is planted there; none where the part has no place for it.
    pub(crate) plan: fn(&Part, &mut Random) -> Option<Defect>,
    /// How the codes begin of which a finding counts, where it points to a file that was changed.
    pub(crate) rules: &'static [&'static str],
    pub(crate) wanted: Wanted,
    /// In so many of 100 trials lint says what is wanted.
    pub(crate) floor_percent: usize,
}

const ERROR: Wanted = Wanted::AtLeast(Severity::Error);
const WARNING: Wanted = Wanted::AtLeast(Severity::Warning);

type Plan = fn(&Part, &mut Random) -> Option<Defect>;

/// A wrong digit, visible as printed, in a figure whose data is in the tree.
const fn figure(name: &'static str, plan: Plan, floor_percent: usize) -> Kind {
    Kind {
        name,
        plan,
        rules: &["L1", "L2", "L3", "L6"],
        wanted: ERROR,
        floor_percent,
    }
}

const fn other(
    name: &'static str,
    plan: Plan,
    rules: &'static [&'static str],
    wanted: Wanted,
    floor_percent: usize,
) -> Kind {
    Kind {
        name,
        plan,
        rules,
        wanted,
        floor_percent,
    }
}

const NUMBERS: &[&str] = &["L1", "L2"];
const TEXTS: &[&str] = &["L1", "L2", "L3", "L6"];
const LOGS: &[&str] = &["L1", "L2", "L4", "L9"];
const PROFILES: &[&str] = &["L2", "L5", "L9"];

pub(crate) const KINDS: [Kind; 34] = [
    figure("a digit of any figure of a text", figures::any_of_texts, 95),
    figure("a digit of any row of ministat", figures::any_row, 95),
    figure(
        "a digit of a row under a file's name",
        figures::named_row,
        95,
    ),
    figure(
        "a digit of a row under other words",
        figures::labelled_row,
        95,
    ),
    figure(
        "a digit of what ministat says of two rows",
        figures::comparison,
        95,
    ),
    figure(
        "a digit of a dataset that has its logs",
        figures::dataset,
        95,
    ),
    figure("a digit of a plot's table", figures::plot_table, 95),
    figure("a digit of a figure in prose", figures::prose, 45),
    figure("a digit of a Markdown table", figures::markdown_table, 85),
    other("a value removed", values::removed, NUMBERS, ERROR, 95),
    other("a value added", values::added, NUMBERS, ERROR, 95),
    other(
        "two values of a dataset exchanged",
        values::reordered,
        NUMBERS,
        ERROR,
        95,
    ),
    other(
        "a value of another run",
        values::of_another_run,
        NUMBERS,
        ERROR,
        95,
    ),
    other(
        "two datasets exchanged",
        values::exchanged,
        NUMBERS,
        ERROR,
        95,
    ),
    other(
        "two labels exchanged",
        texts::labels_exchanged,
        TEXTS,
        ERROR,
        95,
    ),
    other(
        "two links exchanged",
        texts::links_exchanged,
        TEXTS,
        WARNING,
        95,
    ),
    other("a broken link", texts::broken_link, TEXTS, WARNING, 95),
    other(
        "a verdict of ministat turned round",
        texts::verdict,
        TEXTS,
        WARNING,
        90,
    ),
    other(
        "a word of a verdict turned round",
        texts::verdict_word,
        TEXTS,
        WARNING,
        20,
    ),
    other(
        "the title of another topic",
        texts::title,
        TEXTS,
        WARNING,
        45,
    ),
    other(
        "another harvest mask in the text",
        texts::harvest_mask,
        TEXTS,
        WARNING,
        80,
    ),
    other("another card in the text", texts::card, TEXTS, WARNING, 75),
    other(
        "another revision in the text",
        texts::revision,
        TEXTS,
        WARNING,
        80,
    ),
    other(
        "a receiver's log cut in its middle",
        logs::cut,
        LOGS,
        WARNING,
        90,
    ),
    other("a receiver's log of zeros", logs::zeros, LOGS, WARNING, 90),
    other(
        "a run's log in place of another's",
        logs::duplicated,
        LOGS,
        WARNING,
        95,
    ),
    other(
        "a sender's log in place of the receiver's",
        logs::of_sender,
        LOGS,
        WARNING,
        95,
    ),
    other(
        "two .info files exchanged",
        logs::info_exchanged,
        LOGS,
        WARNING,
        95,
    ),
    other(
        "another frame size in one variant",
        logs::frame_size,
        LOGS,
        WARNING,
        95,
    ),
    other("other flows in one variant", logs::flows, LOGS, WARNING, 95),
    other(
        "a call graph cut at its end",
        profiles::cut,
        PROFILES,
        WARNING,
        95,
    ),
    other(
        "a call graph without one of its sections",
        profiles::without_section,
        PROFILES,
        WARNING,
        75,
    ),
    other(
        "folded stacks of another call graph",
        profiles::folded_of_another,
        PROFILES,
        WARNING,
        95,
    ),
    other(
        "pictures named like runs",
        texts::pictures,
        &[],
        Wanted::Nothing,
        95,
    ),
];

/// Another digit at a place of a number that a seed chooses, so that it is another number as printed.
fn other_digit(number: &str, random: &mut Random) -> Option<String> {
    let was: f64 = number.parse().ok()?;
    let digits: Vec<usize> = number
        .bytes()
        .enumerate()
        .filter(|(_, byte)| byte.is_ascii_digit())
        .map(|(at, _)| at)
        .collect();
    for _ in 0..20 {
        let at = *random.pick(&digits)?;
        let digit = random.below(10).to_string();
        let changed = format!("{}{digit}{}", &number[..at], &number[at + 1..]);
        let leads_with_zero = at == digits[0] && digit == "0" && digits.len() > 1;
        if !leads_with_zero && changed.parse() != Ok(was) {
            return Some(changed);
        }
    }
    None
}
