//! `fwdlab flame`: profiles, whoever took them.

mod diff;
mod fold;
mod input;
mod pprof;
mod svg;

use clap::Subcommand;

use crate::exit::Code;

#[derive(Debug, Subcommand)]
pub(crate) enum FlameCommand {
    /// Print profiles as folded stacks, one a line, see docs/flame.md
    Fold(fold::FoldArguments),
    /// Draw profiles as one flame graph
    Svg(svg::SvgArguments),
    /// Compare two profiles, frame by frame, and draw where they differ
    Diff(diff::DiffArguments),
    /// Write profiles as one file for go tool pprof
    Pprof(pprof::PprofArguments),
}

pub(crate) fn flame(command: &FlameCommand) -> anyhow::Result<Code> {
    match command {
        FlameCommand::Fold(arguments) => fold::fold(arguments),
        FlameCommand::Svg(arguments) => svg::svg(arguments),
        FlameCommand::Diff(arguments) => diff::diff(arguments),
        FlameCommand::Pprof(arguments) => pprof::pprof(arguments),
    }
}
