//! READMEs of published results: what they say, and what it was made of.
//!
//! [`PublishedReadme::parse`] takes one apart: title, laboratory, sections, links, tables, blocks of
//! ministat, and what its prose claims in numbers. [`DatasetIndex::back`] finds the dataset behind
//! every row of a block, and whether ministat prints the block from them again. The functions in
//! [`facts`] compare the parts with each other and with the datasets; they report what contradicts
//! and judge nothing.

mod backing;
mod claims;
pub mod facts;
mod links;
mod markdown;
mod printing;

pub(crate) use backing::medians;
pub use backing::{BlockBacking, Candidate, DatasetIndex, NearRow, RowBacking};
pub use claims::{Claim, Quantity};
use fwdlab_stats::ministat::PublishedBlock;
pub use links::Link;
pub use markdown::plain_spaces;
pub(super) use printing::printed;
pub use printing::{Departure, DepartureKind, Printing};

/// A README taken apart.
///
/// Lines count from 1; a text stands without its markers (`#`, `-`), and with plain spaces, see
/// [`plain_spaces`]. Only the blocks keep every byte, because ministat has to print them again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedReadme {
    /// What it is about: the first heading, or the line of text that it begins with.
    pub title: Option<TextLine>,
    /// What stands in the list of the laboratory: below `Lab:`, or else right below the title.
    pub lab: Vec<TextLine>,
    /// The text by heading, in order. What stands before the first heading is a section without one.
    pub sections: Vec<Section>,
    /// Links and images, in order.
    pub links: Vec<Link>,
    /// Blocks of ministat, in order.
    pub blocks: Vec<ReadmeBlock>,
    /// Rates and percentages in the text, in order; those in the tables and blocks are not among them.
    pub claims: Vec<Claim>,
    /// Tables, in order.
    pub tables: Vec<Table>,
    /// What stands between fences and is of no block, in order.
    pub code: Vec<TextLine>,
}

/// A line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextLine {
    /// Where it stands.
    pub line: usize,
    /// What it says.
    pub text: String,
}

/// A heading and the text below it, down to the next heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// None before the first heading.
    pub heading: Option<Heading>,
    /// Lines of paragraphs and lists; neither tables, code nor blocks.
    pub prose: Vec<TextLine>,
}

/// A heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heading {
    /// 1 for the title's, up to 6.
    pub level: usize,
    /// Where it stands.
    pub line: usize,
    /// What it says.
    pub text: String,
}

/// A block of ministat and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadmeBlock {
    /// The block as ministat printed it.
    pub block: PublishedBlock,
    /// The headings it stands under, from the outermost.
    pub headings: Vec<Heading>,
    /// The line of text right above it, where no heading and no other block is between.
    pub caption: Option<TextLine>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The row above the rule, then those below it.
    pub rows: Vec<TableRow>,
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableRow {
    /// Where it stands.
    pub line: usize,
    /// Its cells, from the left.
    pub cells: Vec<String>,
}

impl PublishedReadme {
    /// Reads a README, whatever is in it.
    ///
    /// Shape: the bytes of the file, line ends of either kind; what is no UTF-8 is replaced.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::readme::PublishedReadme;
    /// let readme = PublishedReadme::parse(
    ///     b"# Impact of x\n\nLab:\n  - Intel X710\n\n## inet6\n\n```\n\
    ///       x off\n+ on\n\
    ///       x 3 1 3 2 2 1\n\
    ///       + 3 5 7 6 6 1\n```\n\n=> about 200% better\n",
    /// );
    /// assert_eq!(readme.title.unwrap().text, "Impact of x");
    /// assert_eq!(readme.lab[0].text, "Intel X710");
    /// assert_eq!(readme.blocks[0].headings[1].text, "inet6");
    /// assert_eq!((readme.claims[0].line, readme.claims[0].high), (15, 200.0));
    /// ```
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut readme = markdown::read(&text);
        for section in &readme.sections {
            for line in &section.prose {
                claims::read(line, &mut readme.claims);
            }
        }
        readme
    }

    /// Whether it is nothing but tables.
    #[must_use]
    pub fn is_of_tables(&self) -> bool {
        let mut sections = self.sections.iter();
        !self.tables.is_empty()
            && self.title.is_none()
            && self.blocks.is_empty()
            && sections.all(|section| section.heading.is_none() && section.prose.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_stats::ministat::{Dataset, Dialect, Layout, Report};
    use proptest::prelude::*;

    /// Lines of every kind, to be put together at random.
    const LINES: &[&str] = &[
        "# Impact of a.b",
        "Lab:",
        "- item at 14.8 Mpps [a](b)",
        "===",
        "---",
        "```",
        "````sh",
        "~~~",
        "| a | b |",
        "|---|--:|",
        "x off",
        "x 3 1 3 2 2 1",
        "+ 3 5 7 6 6 1",
        "Difference at 95.0% confidence",
        "+--+",
        "kern.random.harvest.mask: 511",
        "[![a](b)](c) <https://d> [e][f]",
        "[f]: g",
        "from 6.1Mpps to 5.9 Mpps, -12\u{202f}% \u{e2}\u{20ac}\u{af}",
        "",
    ];

    fn check(text: &str) -> Result<(), TestCaseError> {
        let readme = PublishedReadme::parse(text.as_bytes());
        let line_count = text.lines().count();
        let sections = readme.sections.iter();
        let prose = sections.flat_map(|section| &section.prose);
        let lines = prose.chain(&readme.code).map(|line| line.line);
        let rows = readme.tables.iter().flat_map(|table| &table.rows);
        let owned = readme
            .blocks
            .iter()
            .flat_map(|block| &block.block.source_lines);
        let headings = readme
            .sections
            .iter()
            .filter_map(|section| section.heading.as_ref());
        let mut all: Vec<usize> = lines
            .chain(rows.map(|row| row.line))
            .chain(owned.copied())
            .chain(headings.map(|heading| heading.line))
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        prop_assert_eq!(all.len(), count, "no line is read twice");
        prop_assert!(all.iter().all(|line| (1..=line_count).contains(line)));
        prop_assert!(readme.links.is_sorted_by_key(|link| link.line));
        prop_assert!(readme.claims.is_sorted_by_key(|claim| claim.line));
        for claim in &readme.claims {
            prop_assert!(claim.low <= claim.high && claim.high.is_finite());
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            check(&String::from_utf8_lossy(&bytes))?;
            let _ = PublishedReadme::parse(&bytes);
        }

        #[test]
        fn any_lines_are_read(picks in prop::collection::vec((0..LINES.len(), 0_usize..40, any::<bool>()), 0..40)) {
            let mut text = String::new();
            for (line, cut, is_cut) in picks {
                let line = LINES[line];
                text += if is_cut { line.get(cut..).unwrap_or(line) } else { line };
                text += if cut % 7 == 0 { "\r\n" } else { "\n" };
            }
            check(&text)?;
        }

        #[test]
        fn a_block_within_any_text_is_found_and_made_again(
            before in prop::collection::vec(0..LINES.len(), 0..12),
            sets in prop::collection::vec(prop::collection::vec(1_u32..20_000_000, 3..11), 1..8),
            dialect in prop::sample::select(Dialect::ALL.to_vec()),
            separate_bars: bool,
        ) {
            let sets: Vec<(String, Vec<f64>)> = sets
                .into_iter()
                .enumerate()
                .map(|(index, set)| (format!("set {index}"), set.into_iter().map(f64::from).collect()))
                .collect();
            let datasets = sets.iter().map(|(name, set)| Dataset::new(name, set.clone()).unwrap());
            let layout = Layout { separate_bars, dialect, ..Layout::default() };
            let printed = Report::new(datasets.collect(), layout).unwrap().to_string();
            let mut text = String::new();
            // What stands above must not look like a part of the block.
            for line in before.into_iter().map(|line| LINES[line]) {
                text += &format!("{line}\n");
            }
            text += &format!("\n.\n{printed}```\n");
            let readme = PublishedReadme::parse(text.as_bytes());
            let block = &readme.blocks.last().unwrap().block;
            prop_assert_eq!(&block.text, &printed);
            let index = DatasetIndex::new(sets.iter().map(|(name, values)| Candidate {
                place: "results/label",
                name,
                values,
            }));
            let backing = index.back(block, "results/label");
            for (row, backing) in backing.rows.iter().enumerate() {
                // Sets with the same row are told apart by their names.
                prop_assert_eq!(backing, &RowBacking::SameFolder(row));
            }
            prop_assert!(backing.dialects.contains(&dialect));
            let printing = index.printing(block, &backing);
            let Some(Printing::Exact(dialects)) = printing else {
                return Err(TestCaseError::fail(format!("{printing:?}")));
            };
            prop_assert!(dialects.contains(&dialect));
        }
    }
}
