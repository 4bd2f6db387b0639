//! Whether a call graph is all there.

use super::CallGraph;
use crate::ConversionStatistics;

/// What is missing of a call graph.
///
/// pmcstat writes through a buffer, so that a file that was fetched before it had ended is cut at a
/// multiple of the buffer's size, in the middle of a line. Which functions are missing is no accident
/// then: those with the fewest samples in the section that is cut, and all of the sections behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// The samples that should be there: what the sections say, and what they do not account for.
    pub samples: u64,
    /// Samples missing in sections whose first line is there.
    pub missing_samples: u64,
    /// Samples of sections that are missing whole. Only pmcstat's own count tells.
    pub missing_section_samples: u64,
    /// The sections in which samples are missing.
    pub sections: Vec<SectionShortfall>,
    /// How the text ends.
    pub last_line: LastLine,
}

impl Truncation {
    /// The part of the samples that is missing, from 0 to 1.
    #[must_use]
    pub fn missing_share(&self) -> f64 {
        let missing = self.missing_samples + self.missing_section_samples;
        if missing == 0 {
            return 0.0;
        }
        missing as f64 / self.samples as f64
    }
}

/// A section in which samples are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionShortfall {
    /// Which of the sections, from 0.
    pub section: usize,
    /// Its first line, from 1.
    pub line: usize,
    /// The samples that its first line promises.
    pub samples: u32,
    /// How many of them no tree holds.
    pub missing_samples: u32,
}

/// How the text of a call graph ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLine {
    /// With the empty line behind a tree.
    Whole,
    /// With a frame: whether callers are missing behind it is not known. The samples are there.
    TreeOpen,
    /// In the middle of a line.
    Torn,
}

impl CallGraph<'_> {
    /// What is missing; `None` where nothing is known to be missing.
    ///
    /// The samples of a section's trees add up to what its first line says, unless some are missing.
    /// That holds for the roots alone: callers may have fewer samples than what they called. Where the
    /// text ends between two sections, only pmcstat's statistics of the same conversion tell.
    #[must_use]
    pub fn truncation(&self, statistics: Option<&ConversionStatistics>) -> Option<Truncation> {
        let sections: Vec<SectionShortfall> = self
            .sections
            .iter()
            .enumerate()
            .map(|(index, section)| SectionShortfall {
                section: index,
                line: section.line,
                samples: section.samples,
                missing_samples: section.samples - section.read_samples,
            })
            .filter(|section| section.missing_samples > 0)
            .collect();
        let printed = self.samples();
        let counted = statistics.map_or(0, ConversionStatistics::graphed_samples);
        let missing_section_samples = counted.saturating_sub(printed);
        let is_whole =
            sections.is_empty() && missing_section_samples == 0 && self.last_line != LastLine::Torn;
        (!is_whole).then(|| Truncation {
            samples: printed + missing_section_samples,
            missing_samples: printed - self.read_samples(),
            missing_section_samples,
            sections,
            last_line: self.last_line,
        })
    }
}
