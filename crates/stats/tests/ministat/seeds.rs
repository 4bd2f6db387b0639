//! The nine blocks of five published results, from the figures behind them.

use std::fs;

use fwdlab_stats::ministat::{Dataset, Layout, Report, parse_points};

/// A dataset: the path of its `.pps` file below the archive's results folder of
/// its seed, and the figures in it, in the order they were measured.
type Figures = (&'static str, &'static str, [f64; 5]);

/// A published block: seed file, which block of it, what `ministat` printed,
/// and what it was given.
struct Block {
    seed: &'static str,
    block: usize,
    text: &'static str,
    datasets: &'static [Figures],
}

const HYPERTHREADING: &str =
    "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/hyperthreading/results/fbsd15-n302145";
const RECLAIM: &str =
    "Atom_C2758_8Cores/Intel_82599/iflib.tx_reclaim_thresh/results/fbsd15-n302145simplecache";
const SIMPLE_TX: &str =
    "Atom_C2758_8Cores/Intel_82599/iflib.simple_tx/results/fbsd15-n302145simplecache";
const HARVEST: &str = "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/results/fbsd15-n302145";
const PREPEND: &str = "Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-n277567-D33658";

const HT_OFF: Figures = (
    HYPERTHREADING,
    "ht_off",
    [11926596., 11902661., 11894919., 11944768., 11887346.],
);
const HT_INTR_OFF: Figures = (
    HYPERTHREADING,
    "ht_on_intr_off_default",
    [11944406., 11958406., 11962549., 12083247., 12120019.],
);
const HT_INTR_OFF_LOGICAL: Figures = (
    HYPERTHREADING,
    "ht_on_intr_off_iflib_use_logical_cores",
    [12083477., 11973052., 11965747., 11950922., 12232698.],
);
const HT_INTR_ON: Figures = (
    HYPERTHREADING,
    "ht_on_intr_on",
    [10565994., 10632284., 10563306., 10570505., 10476784.],
);
const HT_INTR_ON_LOGICAL: Figures = (
    HYPERTHREADING,
    "ht_on_intr_on_iflib_use_logical_cores",
    [10574361., 10595174., 10545253., 10562220., 10479587.],
);
const SIMPLE_OFF_PREFETCH_OFF: Figures = (
    SIMPLE_TX,
    "simple_tx_off_prefetch_off",
    [4563996., 4692959.5, 4689691., 4671268., 4567925.],
);
const SIMPLE_OFF_PREFETCH_ON: Figures = (
    SIMPLE_TX,
    "simple_tx_off_prefetch_on",
    [4617466.5, 4684615., 4656329., 4661076., 4669612.],
);
const SIMPLE_ON_PREFETCH_OFF: Figures = (
    SIMPLE_TX,
    "simple_tx_on_prefetch_off",
    [4563828., 4628340., 4567046., 4531761., 4557347.],
);
const SIMPLE_ON_PREFETCH_ON: Figures = (
    SIMPLE_TX,
    "simple_tx_on_prefetch_on",
    [4624801., 4624697., 4712606., 4528525., 4538066.],
);
const SIMPLE_OFF_RECLAIM_25: Figures = (
    RECLAIM,
    "simple_tx_off_tx_reclaim_thresh_25p",
    [5019428.5, 5104737., 5049506., 5031686., 5106089.],
);
const SIMPLE_ON_RECLAIM_25: Figures = (
    RECLAIM,
    "simple_tx_on_tx_reclaim_thresh_25p",
    [4998494., 4919794.5, 4989614., 4990545., 4971070.],
);
const SIMPLE_OFF_RECLAIM_50: Figures = (
    RECLAIM,
    "simple_tx_off_tx_reclaim_thresh_50p",
    [4675886., 4610862., 4700492., 4672520., 4708805.],
);
const SIMPLE_ON_RECLAIM_50: Figures = (
    RECLAIM,
    "simple_tx_on_tx_reclaim_thresh_50p",
    [4630843., 4573818., 4705296., 4717201., 4701017.],
);
const HARVEST_DEFAULT_INET4: Figures = (
    HARVEST,
    "4607_default.inet4",
    [11910761., 11896556., 11963479., 11950128., 11966731.],
);
const HARVEST_INET4: Figures = (
    HARVEST,
    "4479.inet4",
    [11947549., 11937143., 12401105., 11881892., 11960693.],
);
const HARVEST_DEFAULT_INET6: Figures = (
    HARVEST,
    "4607_default.inet6",
    [11814942., 11784726., 11785149., 11794461., 11808000.],
);
const HARVEST_INET6: Figures = (
    HARVEST,
    "4479.inet6",
    [11781192., 11774701., 11822799., 11780536., 11774447.],
);
const PREPEND_BASE_INET4: Figures = (
    PREPEND,
    "n277567.inet4",
    [5436053., 5489556.5, 5523675., 5412642., 5620939.],
);
const PREPEND_INET4: Figures = (
    PREPEND,
    "n277567D33658.inet4",
    [6130165., 6136242., 6132932., 6256993.5, 6215498.],
);
const PREPEND_BASE_INET6: Figures = (
    PREPEND,
    "n277567.inet6",
    [4831899.5, 4962476., 5095989.5, 4973447., 4955844.],
);
const PREPEND_INET6: Figures = (
    PREPEND,
    "n277567D33658.inet6",
    [4813940., 5019418., 4891574.5, 4851304., 4906006.],
);

const BLOCKS: [Block; 9] = [
    Block {
        seed: "000_297dd430498922be.txt",
        block: 0,
        text: include_str!("seeds/000-1.txt"),
        datasets: &[
            HT_OFF,
            HT_INTR_OFF,
            HT_INTR_OFF_LOGICAL,
            HT_INTR_ON,
            HT_INTR_ON_LOGICAL,
        ],
    },
    Block {
        seed: "000_297dd430498922be.txt",
        block: 1,
        text: include_str!("seeds/000-2.txt"),
        datasets: &[HT_INTR_OFF, HT_INTR_ON],
    },
    Block {
        seed: "000_297dd430498922be.txt",
        block: 2,
        text: include_str!("seeds/000-3.txt"),
        datasets: &[HT_INTR_OFF, HT_INTR_OFF_LOGICAL],
    },
    Block {
        seed: "001_8aea2a2802586785.txt",
        block: 0,
        text: include_str!("seeds/001-1.txt"),
        datasets: &[
            SIMPLE_OFF_PREFETCH_ON,
            SIMPLE_ON_PREFETCH_ON,
            SIMPLE_OFF_RECLAIM_25,
            SIMPLE_ON_RECLAIM_25,
            SIMPLE_OFF_RECLAIM_50,
            SIMPLE_ON_RECLAIM_50,
        ],
    },
    Block {
        seed: "002_690a9c839f12fb7c.txt",
        block: 0,
        text: include_str!("seeds/002-1.txt"),
        datasets: &[
            SIMPLE_OFF_PREFETCH_OFF,
            SIMPLE_OFF_PREFETCH_ON,
            SIMPLE_ON_PREFETCH_OFF,
            SIMPLE_ON_PREFETCH_ON,
        ],
    },
    Block {
        seed: "003_a36b1c5539047656.txt",
        block: 0,
        text: include_str!("seeds/003-1.txt"),
        datasets: &[HARVEST_DEFAULT_INET4, HARVEST_INET4],
    },
    Block {
        seed: "003_a36b1c5539047656.txt",
        block: 1,
        text: include_str!("seeds/003-2.txt"),
        datasets: &[HARVEST_DEFAULT_INET6, HARVEST_INET6],
    },
    Block {
        seed: "004_cf10ad28e44f1682.txt",
        block: 0,
        text: include_str!("seeds/004-1.txt"),
        datasets: &[PREPEND_BASE_INET4, PREPEND_INET4],
    },
    Block {
        seed: "004_cf10ad28e44f1682.txt",
        block: 1,
        text: include_str!("seeds/004-2.txt"),
        datasets: &[PREPEND_BASE_INET6, PREPEND_INET6],
    },
];

impl Block {
    /// The text of `ministat -s`, under the labels that the publisher wrote in
    /// place of the file names.
    fn rendered(&self) -> String {
        let labels = self.text.lines().map(|line| &line[2..]);
        let datasets = self
            .datasets
            .iter()
            .zip(labels)
            .map(|((_, _, figures), label)| Dataset::new(label, figures.to_vec()).unwrap())
            .collect();
        let layout = Layout {
            separate_bars: true,
            ..Layout::default()
        };
        Report::new(datasets, layout).unwrap().to_string()
    }
}

/// The fenced `ministat` blocks of a published result, as `ministat` wrote them.
///
/// Two accidents of publishing are undone: tabs pasted as eight spaces (004),
/// and a narrow no-break space whose UTF-8 was taken for Windows-1252 (002).
fn published_blocks(seed: &str) -> Vec<String> {
    let seed = seed.replace("\u{e2}\u{20ac}\u{af}", "\u{202f}");
    seed.split("```\n")
        .filter(|part| part.starts_with("x "))
        .map(|block| block.replace("\n        ", "\n\t"))
        .collect()
}

#[test]
fn figures_give_the_published_blocks() {
    for block in &BLOCKS {
        assert_eq!(
            block.rendered(),
            block.text,
            "{} block {}",
            block.seed,
            block.block
        );
    }
}

#[test]
fn the_published_blocks_are_those_expected_here() {
    let folder = testkit::require_shared!("seeds");
    let mut count = 0;
    for block in &BLOCKS {
        let seed = fs::read_to_string(folder.join(block.seed)).unwrap();
        let published = published_blocks(&seed);
        assert_eq!(
            published[block.block], block.text,
            "{} block {}",
            block.seed, block.block
        );
        count = if block.block == 0 {
            count + published.len()
        } else {
            count
        };
    }
    assert_eq!(
        count,
        BLOCKS.len(),
        "every published block is expected here"
    );
}

#[test]
fn the_archive_holds_these_figures() {
    let folder = testkit::require_shared!("corpus/netbenches");
    for (results, name, figures) in BLOCKS.iter().flat_map(|block| block.datasets) {
        let text = fs::read(folder.join(results).join(format!("{name}.pps"))).unwrap();
        assert_eq!(parse_points(&text, 1, b" \t").unwrap(), figures, "{name}");
    }
}
