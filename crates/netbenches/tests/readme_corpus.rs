//! The reader of published READMEs against the part of the public archive that lies in the shared
//! data, and against the seeds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fwdlab_netbenches::readme::facts::{
    label_contradictions, link_contradictions, mask_contradictions, title_contradiction,
    unsupported_claims,
};
use fwdlab_netbenches::readme::{Candidate, DatasetIndex, Printing, PublishedReadme, RowBacking};
use fwdlab_stats::ministat::parse_points;

struct Dataset {
    place: String,
    name: String,
    values: Vec<f64>,
}

struct Corpus {
    datasets: Vec<Dataset>,
    /// Path from the root, and bytes.
    readmes: Vec<(String, Vec<u8>)>,
}

/// Datasets are called `.pps`, `.data`, `.equilibrium` or nothing at all, so it is whatever holds one
/// number in every line.
fn corpus(root: &Path) -> Corpus {
    let paths = testkit::files_below(root);
    let mut corpus = Corpus {
        datasets: Vec::new(),
        readmes: Vec::new(),
    };
    for path in paths {
        let shown = path.strip_prefix(root).ok().and_then(Path::to_str);
        let shown = shown.expect("names are text");
        let (place, name) = shown.rsplit_once('/').unwrap_or(("", shown));
        if name.ends_with(".md") {
            corpus
                .readmes
                .push((shown.to_owned(), fs::read(&path).expect("it can be read")));
        } else if !name.starts_with("bench.") && !name.ends_with(".svg") {
            let bytes = fs::read(&path).expect("the file can be read");
            let is_column = bytes.len() < 4096 && !bytes.contains(&b' ') && !bytes.contains(&b'\t');
            if is_column && let Ok(values) = parse_points(&bytes, 1, b" \t") {
                corpus.datasets.push(Dataset {
                    place: place.to_owned(),
                    name: name.to_owned(),
                    values,
                });
            }
        }
    }
    corpus
}

impl Corpus {
    fn index(&self) -> DatasetIndex<'_> {
        DatasetIndex::new(self.datasets.iter().map(|dataset| Candidate {
            place: &dataset.place,
            name: &dataset.name,
            values: &dataset.values,
        }))
    }
}

fn datasets_of<'a>(corpus: &'a Corpus, place: &str) -> impl Iterator<Item = &'a str> {
    let datasets = corpus.datasets.iter();
    datasets
        .filter(move |dataset| dataset.place == place)
        .map(|dataset| dataset.name.as_str())
}

fn place_of(readme: &str) -> &str {
    readme.rsplit_once('/').map_or("", |(place, _)| place)
}

/// What was counted, a line each.
fn lines(counts: &BTreeMap<String, usize>) -> String {
    let lines = counts
        .iter()
        .map(|(what, count)| format!("{count} {what}\n"));
    lines.collect()
}

fn count(counts: &mut BTreeMap<String, usize>, what: impl Into<String>) {
    *counts.entry(what.into()).or_default() += 1;
}

#[test]
fn blocks_are_backed_and_printed_again() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let corpus = corpus(&archive);
    let index = corpus.index();
    let (mut backed, mut printings) = (BTreeMap::new(), BTreeMap::new());
    let mut exceptions = String::new();
    let mut parts = BTreeMap::new();
    for (path, bytes) in &corpus.readmes {
        let readme = PublishedReadme::parse(bytes);
        for (what, number) in [
            ("titles", usize::from(readme.title.is_some())),
            ("lines of a laboratory", readme.lab.len()),
            ("sections", readme.sections.len()),
            ("links", readme.links.len()),
            ("claims", readme.claims.len()),
            ("tables", readme.tables.len()),
            ("lines of code", readme.code.len()),
            ("blocks", readme.blocks.len()),
            (
                "READMEs with blocks",
                usize::from(!readme.blocks.is_empty()),
            ),
            ("READMEs", 1),
        ] {
            *parts.entry(what.to_owned()).or_default() += number;
        }
        for block in &readme.blocks {
            let block = &block.block;
            let backing = index.back(block, place_of(path));
            let kinds = backing.rows.iter().map(|row| match row {
                RowBacking::SameFolder(_) => "here",
                RowBacking::Elsewhere(_) => "elsewhere",
                RowBacking::Ambiguous(_) => "ambiguous",
                RowBacking::None => "none",
            });
            let mut kinds: Vec<&str> = kinds.collect();
            kinds.sort_unstable();
            kinds.dedup();
            count(&mut backed, kinds.join(" and "));
            match index.printing(block, &backing) {
                None => {
                    exceptions += &format!("{path}:{}: {}\n", block.line, kinds.join(" and "));
                    count(&mut printings, "not backed");
                }
                Some(Printing::Exact(_)) => count(&mut printings, "exact"),
                Some(Printing::Departs(departures)) => {
                    count(&mut printings, "departs");
                    for departure in departures {
                        exceptions +=
                            &format!("{path}:{}: {}\n", departure.line, departure.kind.as_str());
                    }
                }
            }
        }
    }
    assert_eq!(
        lines(&parts),
        "\
349 READMEs
248 READMEs with blocks
377 blocks
237 claims
1453 lines of a laboratory
104 lines of code
771 links
366 sections
2 tables
239 titles
"
    );
    // Two datasets of the same values are all that is ambiguous.
    assert_eq!(
        lines(&backed),
        "\
2 ambiguous and here
37 elsewhere and here
1 elsewhere and none
336 here
1 here and none
"
    );
    assert_eq!(lines(&printings), "1 departs\n374 exact\n2 not backed\n");
    assert_eq!(
        exceptions,
        "\
Atom_C2558_4Cores/Intel_i350/hw.igb.num_queues/results/fbsd11-routing.r287531/README.md:12: here and none
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd11.1-Yandex.inkernel/README.md:2: elsewhere and none
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd-c255761-mlxperf/README.md:53: something was glued behind a line
"
    );
}

/// What the facts of a README are, a line each: `path:line: what`.
fn facts(path: &str, bytes: &[u8], corpus: &Corpus, index: &DatasetIndex) -> Vec<String> {
    let readme = PublishedReadme::parse(bytes);
    let place = place_of(path);
    let mut facts = Vec::new();
    let mut names: Vec<&str> = datasets_of(corpus, place).collect();
    for block in &readme.blocks {
        let backing = index.back(&block.block, place);
        names.extend(
            backing
                .rows
                .iter()
                .filter_map(RowBacking::only)
                .map(|row| index.candidate(row).expect("it backs").name),
        );
        for found in label_contradictions(block, &backing, index, place) {
            let name = index.candidate(found.dataset).expect("it backs").name;
            let kind = found.contradiction.kind;
            facts.push(format!(
                "{path}:{}: {:?} {kind:?} {name}",
                found.line, found.label
            ));
        }
    }
    let names_here: Vec<&str> = datasets_of(corpus, place).collect();
    for found in link_contradictions(&readme, &names_here) {
        let (link, kind) = (found.link, found.contradiction.kind);
        facts.push(format!(
            "{path}:{}: {:?} {kind:?} {}",
            link.line, link.text, link.target
        ));
    }
    for found in mask_contradictions(&readme) {
        let (problem, other) = (found.problem, found.other_line);
        facts.push(format!("{path}:{}: {problem:?} {other}", found.line));
    }
    if let Some(found) = title_contradiction(&readme, place, &names) {
        let (factors, varied) = (found.factors.join(", "), found.varied.join(", "));
        facts.push(format!(
            "{path}:{}: {factors} is not {varied}",
            found.title.line
        ));
    }
    for found in unsupported_claims(&readme) {
        let claim = found.claim;
        facts.push(format!(
            "{path}:{}: {} is not {:.2}",
            claim.line, claim.text, found.nearest
        ));
    }
    facts
}

#[test]
fn what_contradicts_is_found_and_little_else() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let corpus = corpus(&archive);
    let index = corpus.index();
    let found: Vec<String> = corpus
        .readmes
        .iter()
        .flat_map(|(path, bytes)| facts(path, bytes, &corpus, &index))
        .collect();
    // Each was looked at, but for those of Atom_C2758_8Cores/Chelsio_T540-CR/firewalls: all are so.
    assert_eq!(found, CONTRADICTIONS.lines().collect::<Vec<_>>());
}

const CONTRADICTIONS: &str = "\
AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/results/fbsd15-n302145/README.md:25: Bits 24
AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/results/fbsd15-n302145/README.md:25: SameBits 32
AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/results/fbsd15-n302145/README.md:25: Labels 44
Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368287.D27401v4/README.md:53: \"r368287: inet4\" Revision bench.r368606.inet4.pmc.svg
Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368287.D27401v4/README.md:54: \"r368287: inet6\" Revision bench.r368606.inet6.pmc.svg
Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368287.D27401v4/README.md:55: \"r368287 with D27401: inet4\" Revision bench.r368606D27401v4.inet4.pmc.svg
Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368287.D27401v4/README.md:56: \"r368287 with D27401: inet6\" Revision bench.r368606D27401v4.inet6.pmc.svg
Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:25: \"pf-stateless: inet\" Word bench.pf-stateful.inet4.svg
Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:26: \"pf-stateful: inet\" Word bench.pf-stateless.inet4.svg
Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:37: \"ipf-stateless: inet6\" Word bench.ipf-stateful.inet6.svg
Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:38: \"ipf-stateful: inet6\" Word bench.ipf-stateless.inet6.svg
Atom_C2758_8Cores/Intel_82599/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:27: \"pf-stateless: inet\" Word bench.pf-stateful.inet4.svg
Atom_C2758_8Cores/Intel_82599/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:28: \"pf-stateful: inet\" Word bench.pf-stateless.inet4.svg
Atom_C2758_8Cores/Intel_82599/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:39: \"ipf-stateless: inet6\" Word bench.ipf-stateful.inet6.svg
Atom_C2758_8Cores/Intel_82599/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:40: \"ipf-stateful: inet6\" Word bench.ipf-stateless.inet6.svg
Atom_C2758_8Cores/Intel_82599/firewalls/results/fbsd15-n302145/README.md:39: \"ipf-stateless: inet6\" Word bench.ipf-stateful.inet6.svg
Atom_C2758_8Cores/Intel_82599/firewalls/results/fbsd15-n302145/README.md:40: \"ipf-stateful: inet6\" Word bench.ipf-stateless.inet6.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-c255412/README.md:16: \"pf-stateless: inet\" Word bench.pf-stateful.inet4.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-c255412/README.md:17: \"pf-stateful: inet\" Word bench.pf-stateless.inet4.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-c255412/README.md:25: \"ipf-stateless: inet6\" Word bench.ipf-stateful.inet6.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-c255412/README.md:26: \"ipf-stateful: inet6\" Word bench.ipf-stateless.inet6.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368606.D27401v3/README.md:47: \"r368287: inet4\" Revision bench.r368606.inet4.pmc.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368606.D27401v3/README.md:48: \"r368287: inet6\" Revision bench.r368606.inet6.pmc.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368606.D27401v3/README.md:49: \"r368287 with D27401: inet4\" Revision bench.r368606D27401v3.inet4.pmc.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368606.D27401v3/README.md:50: \"r368287 with D27401: inet6\" Revision bench.r368606D27401v3.inet6.pmc.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368606.D27401v4/README.md:44: \"r368287: inet4\" Revision bench.r368606.inet4.pmc.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368606.D27401v4/README.md:45: \"r368287: inet6\" Revision bench.r368606.inet6.pmc.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368606.D27401v4/README.md:46: \"r368287 with D27401: inet4\" Revision bench.r368606D27401v4.inet4.pmc.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd13-r368606.D27401v4/README.md:47: \"r368287 with D27401: inet6\" Revision bench.r368606D27401v4.inet6.pmc.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:24: \"pf-stateless: inet\" Word bench.pf-stateful.inet4.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:25: \"pf-stateful: inet\" Word bench.pf-stateless.inet4.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:36: \"ipf-stateless: inet6\" Word bench.ipf-stateful.inet6.svg
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:37: \"ipf-stateful: inet6\" Word bench.ipf-stateless.inet6.svg
Xeon_E5-2650v4_2x12Cores/Chelsio_T520-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:19: \"pf-stateless: inet\" Word bench.pf-stateful.inet4.svg
Xeon_E5-2650v4_2x12Cores/Chelsio_T520-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:20: \"pf-stateful: inet\" Word bench.pf-stateless.inet4.svg
Xeon_E5-2650v4_2x12Cores/Chelsio_T520-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:31: \"ipf-stateless: inet6\" Word bench.ipf-stateful.inet6.svg
Xeon_E5-2650v4_2x12Cores/Chelsio_T520-CR/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:32: \"ipf-stateful: inet6\" Word bench.ipf-stateless.inet6.svg
Xeon_E5-2650v4_2x12Cores/Intel_82599ES/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:19: \"pf-stateless: inet\" Word bench.pf-stateful.inet4.svg
Xeon_E5-2650v4_2x12Cores/Intel_82599ES/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:20: \"pf-stateful: inet\" Word bench.pf-stateless.inet4.svg
Xeon_E5-2650v4_2x12Cores/Intel_82599ES/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:31: \"ipf-stateless: inet6\" Word bench.ipf-stateful.inet6.svg
Xeon_E5-2650v4_2x12Cores/Intel_82599ES/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:32: \"ipf-stateful: inet6\" Word bench.ipf-stateless.inet6.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd13-r368606.D27401v3/README.md:51: \"r368287: inet4\" Revision bench.r368606.inet4.pmc.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd13-r368606.D27401v3/README.md:52: \"r368287: inet6\" Revision bench.r368606.inet6.pmc.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd13-r368606.D27401v3/README.md:53: \"r368287 with D27401: inet4\" Revision bench.r368606D27401v3.inet4.pmc.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd13-r368606.D27401v3/README.md:54: \"r368287 with D27401: inet6\" Revision bench.r368606D27401v3.inet6.pmc.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd13-r368606.D27401v4/README.md:52: \"r368287: inet4\" Revision bench.r368606.inet4.pmc.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd13-r368606.D27401v4/README.md:53: \"r368287: inet6\" Revision bench.r368606.inet6.pmc.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd13-r368606.D27401v4/README.md:54: \"r368287 with D27401: inet4\" Revision bench.r368606D27401v4.inet4.pmc.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd13-r368606.D27401v4/README.md:55: \"r368287 with D27401: inet6\" Revision bench.r368606D27401v4.inet6.pmc.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:28: \"pf-stateless: inet\" Word bench.pf-stateful.inet4.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:29: \"pf-stateful: inet\" Word bench.pf-stateless.inet4.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:40: \"ipf-stateless: inet6\" Word bench.ipf-stateful.inet6.svg
Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:41: \"ipf-stateful: inet6\" Word bench.ipf-stateless.inet6.svg
Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:23: \"pf-stateless: inet\" Word bench.pf-stateful.inet4.svg
Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:24: \"pf-stateful: inet\" Word bench.pf-stateless.inet4.svg
Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:35: \"ipf-stateless: inet6\" Word bench.ipf-stateful.inet6.svg
Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/firewalls/results/fbsd14-c276570-BSDRP1.991/README.md:36: \"ipf-stateful: inet6\" Word bench.ipf-stateless.inet6.svg
Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/firewalls/results/fbsd14-n277989/README.md:25: \"pf-stateless: inet\" Word bench.pf-stateful.inet4.svg
Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/firewalls/results/fbsd14-n277989/README.md:26: \"pf-stateful: inet\" Word bench.pf-stateless.inet4.svg
Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/firewalls/results/stable-vs-main/README.md:40: \"STABLE 13 n265892 fpf-stateless\" Word bench.STABLE13_n265892.pf-stateful.inet4.svg
Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/firewalls/results/stable-vs-main/README.md:41: \"STABLE 13 n265892 pf-stateful\" Word bench.STABLE13_n265892.pf-stateless.inet4.svg
Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/firewalls/results/stable-vs-main/README.md:68: \"STABLE 13 n265892 fpf-stateless\" Word bench.STABLE13_n265892.pf-stateful.inet6.svg
Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/firewalls/results/stable-vs-main/README.md:69: \"STABLE 13 n265892 pf-stateful\" Word bench.STABLE13_n265892.pf-stateless.inet6.svg
";

/// Where the archive has the seeds, in their order.
const SEEDS: [&str; 5] = [
    "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/hyperthreading/results/fbsd15-n302145",
    "Atom_C2758_8Cores/Intel_82599/iflib.tx_reclaim_thresh/results/fbsd15-n302145simplecache",
    "Atom_C2758_8Cores/Intel_82599/iflib.simple_tx/results/fbsd15-n302145simplecache",
    "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/results/fbsd15-n302145",
    "Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-n277567-D33658",
];

#[test]
fn the_seeds_are_exact_and_hold_what_was_known_to_be_wrong() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let seeds = testkit::files_below(&testkit::require_shared!("seeds"));
    let corpus = corpus(&archive);
    let index = corpus.index();
    assert_eq!(seeds.len(), SEEDS.len());
    let (mut elsewhere, mut found) = (Vec::new(), Vec::new());
    for (number, (seed, place)) in seeds.iter().zip(SEEDS).enumerate() {
        let published = archive.join(place).join("README.md");
        for bytes in [fs::read(seed).unwrap(), fs::read(published).unwrap()] {
            let readme = PublishedReadme::parse(&bytes);
            assert!(readme.title.is_some() && readme.lab.len() > 6, "{number}");
            for block in &readme.blocks {
                let backing = index.back(&block.block, place);
                let printing = index.printing(&block.block, &backing).unwrap();
                assert!(
                    matches!(printing, Printing::Exact(_)),
                    "{number} {printing:?}"
                );
                elsewhere.extend(
                    backing
                        .rows
                        .iter()
                        .enumerate()
                        .filter_map(|(row, backing)| {
                            let is_elsewhere = matches!(backing, RowBacking::Elsewhere(_));
                            is_elsewhere.then_some((number, block.block.rows[row].line))
                        }),
                );
            }
        }
        let path = format!("{place}/README.md");
        found.extend(
            facts(&path, &fs::read(seed).unwrap(), &corpus, &index)
                .iter()
                .map(|fact| format!("{number} {}", &fact[path.len() + 1..])),
        );
    }
    // The first two rows of 001 are 002's.
    assert_eq!(elsewhere, [(1, 42), (1, 43), (1, 43), (1, 44)]);
    assert_eq!(
        found,
        [
            "0 1: thriflib.tx_abdicate is not hyperthreading_allowed, hyperthreading_intr_allowed",
            "3 25: Bits 24",
            "3 25: SameBits 32",
            "3 25: Labels 44",
        ]
    );
}

/// A figure with another digit in one place.
fn other_digit(figure: &str, seed: usize) -> String {
    let mut characters: Vec<char> = figure.chars().collect();
    let is_digit = |at: &usize| characters[*at].is_ascii_digit();
    let digits: Vec<usize> = (0..characters.len()).filter(is_digit).collect();
    let at = digits[seed % digits.len()];
    let others = ('0'..='9').filter(|digit| *digit != characters[at]);
    if let Some(other) = others.cycle().nth(seed) {
        characters[at] = other;
    }
    characters.into_iter().collect()
}

/// How many of the mistakes that one could make in a README would be seen.
#[test]
fn mistakes_put_into_readmes_are_found() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let corpus = corpus(&archive);
    let index = corpus.index();
    let mut counts = BTreeMap::new();
    for (path, bytes) in &corpus.readmes {
        let place = place_of(path);
        let mut readme = PublishedReadme::parse(bytes);
        let names: Vec<&str> = datasets_of(&corpus, place).collect();
        for block in &mut readme.blocks {
            let backing = index.back(&block.block, place);
            if let [one, other] = block.block.rows.as_mut_slice() {
                std::mem::swap(&mut one.label, &mut other.label);
                let found = label_contradictions(block, &backing, &index, place);
                let is_found = if found.is_empty() {
                    "not found"
                } else {
                    "found"
                };
                count(&mut counts, format!("exchanged labels {is_found}"));
                let [one, other] = block.block.rows.as_mut_slice() else {
                    continue;
                };
                std::mem::swap(&mut one.label, &mut other.label);
            }
            for (row, backing) in block.block.rows.iter().zip(&backing.rows) {
                let Some(position) = backing.chosen() else {
                    continue;
                };
                for (figure, seed) in (0..row.figures.len()).zip(row.line..) {
                    let mut row = row.clone();
                    row.figures[figure] = other_digit(&row.figures[figure], seed);
                    let near = index.near(&row, place);
                    let values = |position: usize| index.candidate(position).unwrap().values;
                    let is_found =
                        near.is_some_and(|near| values(near.position) == values(position));
                    let is_found = if is_found { "found" } else { "not found" };
                    count(&mut counts, format!("wrong digit {is_found}"));
                }
            }
        }
        if let Some(title) = &mut readme.title {
            title.text = "Impact of thriflib.tx_abdicate".to_owned();
            let found = title_contradiction(&readme, place, &names);
            let is_found = if found.is_none() {
                "not found"
            } else {
                "found"
            };
            count(&mut counts, format!("wrong title {is_found}"));
        }
        let claims = readme.claims.clone();
        for (number, claim) in claims.iter().enumerate() {
            readme.claims[number].low = claim.low * 1.5;
            readme.claims[number].high = claim.high * 1.5;
            let is_found = unsupported_claims(&readme)
                .iter()
                .any(|found| found.claim == readme.claims[number]);
            let in_lab = readme.lab.iter().any(|line| line.line == claim.line);
            if !in_lab {
                let is_found = if is_found { "found" } else { "not found" };
                count(&mut counts, format!("wrong claim {is_found}"));
            }
            readme.claims[number] = claim.clone();
        }
    }
    // What is not found: labels that say nothing of what their dataset is called after, numbers that
    // are not beside a block, titles of folders that are not called like a variable.
    assert_eq!(
        lines(&counts),
        "\
236 exchanged labels found
45 exchanged labels not found
34 wrong claim found
51 wrong claim not found
4515 wrong digit found
105 wrong digit not found
35 wrong title found
204 wrong title not found
"
    );
}
