//! Call graphs and stacks.

use testkit::Random;

use crate::part::{Defect, Part};

pub(super) fn cut(part: &Part, random: &mut Random) -> Option<Defect> {
    let graphs = part.ending(".graph");
    let path = *random.pick(&graphs)?;
    let bytes = part.bytes(path);
    let end = bytes.len() * (20 + random.below(76)) / 100;
    let what = format!("cut behind {end} of {} bytes", bytes.len());
    Some(Defect::new(
        vec![(path.to_owned(), bytes[..end].to_vec())],
        &what,
    ))
}

pub(super) fn without_section(part: &Part, random: &mut Random) -> Option<Defect> {
    let graphs = part.ending(".graph");
    let path = *random.pick(&graphs)?;
    let text = part.text(path)?;
    let heads: Vec<usize> = (text.match_indices("@ "))
        .map(|(at, _)| at)
        .filter(|&at| at == 0 || text[..at].ends_with('\n'))
        .collect();
    if heads.len() < 2 {
        return None;
    }
    let section = random.below(heads.len());
    let end = heads.get(section + 1).copied().unwrap_or(text.len());
    let left = format!("{}{}", &text[..heads[section]], &text[end..]);
    let what = format!("without section {} of {}", section + 1, heads.len());
    Some(Defect::new(
        vec![(path.to_owned(), left.into_bytes())],
        &what,
    ))
}

pub(super) fn folded_of_another(part: &Part, random: &mut Random) -> Option<Defect> {
    let folded = [part.ending(".stack"), part.ending(".folded")].concat();
    let to = *random.pick(&folded)?;
    let from = *random.pick(&folded)?;
    // Held against its graph, which has to be there.
    let has_graph = part.has(&to.with_extension("graph"));
    let is_other = part.bytes(from) != part.bytes(to);
    let what = format!("what {} holds", from.display());
    (has_graph && is_other).then(|| Defect::new(vec![(to.to_owned(), part.bytes(from))], &what))
}
