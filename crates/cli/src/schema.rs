//! `fwdlab schema`.

use clap::ValueEnum;
use fwdlab_model::schema;

use crate::exit::Code;
use crate::output;

/// A kind of file that has a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FileKind {
    /// What is varied and how it is measured
    Experiment,
    /// Where is measured, and how each factor is set there
    Lab,
}

pub(crate) fn schema(kind: FileKind) -> anyhow::Result<Code> {
    let schema = match kind {
        FileKind::Experiment => schema::experiment(),
        FileKind::Lab => schema::lab(),
    };
    output::print(&schema::text_of(&schema))
}
