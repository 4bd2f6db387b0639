//! A README that others wrote is read: every block is known by its lines, and what contradicts in it is
//! looked for without a panic.
//!
//! Shape: a dataset's numbers on the first line, the README on the others.
#![no_main]

use fwdlab_netbenches::readme::facts::{
    TabledDataset, cards, commits, label_contradictions, link_contradictions, mask_contradictions,
    misprinted_cells, statements, table_contradictions, title_contradiction, turned_words,
    unsupported_claims,
};
use fwdlab_netbenches::readme::{Candidate, DatasetIndex, Printing, PublishedReadme};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(0);
    let (first, text) = input.split_at(end);
    let first = String::from_utf8_lossy(first);
    let values: Vec<f64> = first
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    let place = "cpu/nic/topic/results/label";
    let index = DatasetIndex::new(["a_off.inet4.pps", "b"].map(|name| Candidate {
        place,
        name,
        values: &values,
    }));
    let readme = PublishedReadme::parse(text);
    let lines = text.split(|&byte| byte == b'\n').count();
    for block in &readme.blocks {
        let lines_of_block = &block.block.source_lines;
        assert!(lines_of_block.is_sorted() && lines_of_block.last() <= Some(&lines));
        let backing = index.back(&block.block, place);
        assert_eq!(backing.rows.len(), block.block.rows.len());
        if let Some(Printing::Departs(departures)) = index.printing(&block.block, &backing) {
            assert!(departures.iter().all(|departure| departure.line <= lines));
        }
        let _ = label_contradictions(block, &backing, &index, place);
    }
    for claim in &readme.claims {
        assert!(claim.low <= claim.high && (1..=lines).contains(&claim.line));
    }
    for line in &readme.lab {
        let _ = (statements(line), cards(&line.text), commits(&line.text));
    }
    let datasets = ["a", "b"].map(|name| TabledDataset {
        name: Some(name),
        levels: values.clone(),
        values: &values,
    });
    for cell in misprinted_cells(&readme, &datasets) {
        assert!((1..=lines).contains(&cell.line));
    }
    let _ = table_contradictions(&readme);
    let _ = turned_words(&readme);
    let _ = link_contradictions(&readme, &["a.pps"]);
    let _ = mask_contradictions(&readme);
    let _ = title_contradiction(&readme, place, &["a_off.inet4.pps"]);
    let _ = unsupported_claims(&readme);
});
