//! Datasets that their logs give, changed by hand.

use testkit::Random;

use crate::part::{Defect, Part};
use crate::published::Logged;

/// A dataset with its lines changed in some way, where that changes them.
fn changed(
    part: &Part,
    random: &mut Random,
    change: impl Fn(&mut Vec<String>, &Logged, &mut Random) -> Option<String>,
) -> Option<Defect> {
    let logged = random.pick(part.logged())?;
    let text = part.text(&logged.dataset.path)?;
    let was: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut lines = was.clone();
    let what = change(&mut lines, logged, random)?;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let numbers = |lines: &[String]| -> Vec<Option<f64>> {
        lines.iter().map(|line| line.trim().parse().ok()).collect()
    };
    let is_changed = numbers(&lines) != numbers(&was);
    is_changed.then(|| {
        Defect::new(
            vec![(logged.dataset.path.clone(), text.into_bytes())],
            &what,
        )
    })
}

pub(super) fn removed(part: &Part, random: &mut Random) -> Option<Defect> {
    changed(part, random, |lines, _, random| {
        let value = lines.remove(random.below(lines.len()));
        Some(format!("{value} removed"))
    })
}

pub(super) fn added(part: &Part, random: &mut Random) -> Option<Defect> {
    changed(part, random, |lines, logged, random| {
        let values = &logged.dataset.values;
        let value = values.iter().sum::<f64>() / values.len() as f64;
        lines.insert(random.below(lines.len() + 1), format!("{value:.0}"));
        Some(format!("{value:.0} added"))
    })
}

pub(super) fn reordered(part: &Part, random: &mut Random) -> Option<Defect> {
    changed(part, random, |lines, _, random| {
        let (one, other) = (random.below(lines.len()), random.below(lines.len()));
        lines.swap(one, other);
        Some(format!("lines {} and {} exchanged", one + 1, other + 1))
    })
}

pub(super) fn of_another_run(part: &Part, random: &mut Random) -> Option<Defect> {
    changed(part, random, |lines, _, random| {
        let (to, from) = (random.below(lines.len()), random.below(lines.len()));
        lines[to] = lines[from].clone();
        Some(format!("the value of line {} in line {}", from + 1, to + 1))
    })
}

pub(super) fn exchanged(part: &Part, random: &mut Random) -> Option<Defect> {
    let one = random.pick(part.logged())?;
    let others: Vec<&Logged> = (part.logged().iter())
        .filter(|other| other.dataset.path.parent() == one.dataset.path.parent())
        .filter(|other| other.dataset.values != one.dataset.values)
        .collect();
    let other = random.pick(&others)?;
    let (one, other) = (&one.dataset.path, &other.dataset.path);
    Some(Defect::exchanged(part, one, other))
}
