//! Logs and descriptions of runs of which something was published.

use std::path::Path;

use testkit::Random;

use crate::part::{Defect, Part};
use crate::published::name;

/// A receiver's log, and the dataset that is made of it.
fn a_receiver<'a>(part: &'a Part, random: &mut Random) -> Option<(&'a Path, &'a Path)> {
    let logged = random.pick(part.logged())?;
    let receiver = random.pick(&logged.receivers)?;
    Some((receiver, &logged.dataset.path))
}

pub(super) fn cut(part: &Part, random: &mut Random) -> Option<Defect> {
    let (path, dataset) = a_receiver(part, random)?;
    let bytes = part.bytes(path);
    let end = bytes.len() * (30 + random.below(41)) / 100;
    let what = format!("cut behind {end} of {} bytes", bytes.len());
    let change = (path.to_owned(), bytes[..end].to_vec());
    Some(Defect::new(vec![change], &what).also_at(dataset))
}

pub(super) fn zeros(part: &Part, random: &mut Random) -> Option<Defect> {
    let (path, dataset) = a_receiver(part, random)?;
    let text = part.text(path)?;
    let lines = text.split_inclusive('\n').map(|line| {
        let of_sample = line.split_once("] ").zip(line.split_once(" pkts "));
        match of_sample {
            Some(((before, _), (_, behind))) if line.contains("main_thread") => {
                format!("{before}] 0 pps (0 pkts {behind}")
            }
            _ => line.to_owned(),
        }
    });
    let zeros: String = lines.collect();
    let is_other = zeros != text;
    let change = (path.to_owned(), zeros.into_bytes());
    is_other.then(|| Defect::new(vec![change], "all samples zero").also_at(dataset))
}

pub(super) fn duplicated(part: &Part, random: &mut Random) -> Option<Defect> {
    let logged = random.pick(part.logged())?;
    let from = random.pick(&logged.receivers)?;
    let to = random.pick(&logged.receivers)?;
    let what = format!("what {} holds", name(from));
    let change = (to.clone(), part.bytes(from));
    (from != to).then(|| Defect::new(vec![change], &what).also_at(&logged.dataset.path))
}

/// That no log is there would be no right word for it: a finding has to point to the log.
pub(super) fn of_sender(part: &Part, random: &mut Random) -> Option<Defect> {
    let (path, _) = a_receiver(part, random)?;
    let sender = path.with_extension("sender");
    let what = format!("what {} holds", name(&sender));
    let is_there = part.has(&sender);
    is_there.then(|| Defect::new(vec![(path.to_owned(), part.bytes(&sender))], &what))
}

pub(super) fn info_exchanged(part: &Part, random: &mut Random) -> Option<Defect> {
    let infos = part.ending(".info");
    let one = *random.pick(&infos)?;
    let others: Vec<&Path> = (infos.iter().copied())
        .filter(|other| other.parent() == one.parent())
        .filter(|other| part.bytes(other) != part.bytes(one))
        .collect();
    let other = random.pick(&others)?;
    Some(Defect::exchanged(part, one, other))
}

/// Every sender of a variant with another size of frames.
pub(super) fn frame_size(part: &Part, random: &mut Random) -> Option<Defect> {
    let size = *random.pick(&["124", "252", "508", "1514"])?;
    asked_otherwise(part, random, "-l", |_| Some(size.to_owned()))
}

/// Every sender of a variant with sources that end at the first one.
pub(super) fn flows(part: &Part, random: &mut Random) -> Option<Defect> {
    let first = |was: &str| Some(was.split_once('-')?.0.to_owned());
    asked_otherwise(part, random, "-s", first)
}

/// Every sender of a variant with another value of an option.
fn asked_otherwise(
    part: &Part,
    random: &mut Random,
    option: &str,
    other: impl Fn(&str) -> Option<String>,
) -> Option<Defect> {
    let logged = random.pick(part.logged())?;
    let mut changes = Vec::new();
    let mut says = String::new();
    for receiver in &logged.receivers {
        let sender = receiver.with_extension("sender");
        if !part.has(&sender) {
            return None;
        }
        let text = part.text(&sender)?;
        let (before, behind) = text.split_once(&format!(" {option} "))?;
        let was = behind.split_whitespace().next()?;
        let is = other(was).filter(|is| is != was)?;
        says = format!("{option} {is}");
        let changed = format!("{before} {says}{}", &behind[was.len()..]);
        changes.push((sender, changed.into_bytes()));
    }
    Some(Defect::new(changes, &says))
}
