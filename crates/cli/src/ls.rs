//! `fwdlab ls`.

use clap::Args;
use fwdlab_catalogue::Table;
use fwdlab_report::format::counted;
use fwdlab_report::render;

use crate::catalogue::{self, FilterArguments, PlaceArguments};
use crate::exit::Code;
use crate::output::{self, tell};

#[derive(Debug, Args)]
pub(crate) struct LsArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// Print a table as CSV instead of text
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print an array of objects as JSON instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filters: FilterArguments,
}

pub(crate) fn ls(arguments: &LsArguments) -> anyhow::Result<Code> {
    let (catalogue, problems) = catalogue::open(&arguments.place)?;
    let filter = arguments.filters.filter(None);
    let results = catalogue.results(&filter)?;
    catalogue::tell_undated(catalogue.undated(&filter, false)?);
    if !problems.is_empty() {
        let unreadable = counted(problems.len() as u64, "results directory");
        let unreadable = unreadable.replace("directorys", "directories");
        tell(&format!(
            "warning: {unreadable} cannot be read, see the list"
        ));
    } else if results.is_empty() {
        tell("no results; other folders or filters may have some");
    }
    if arguments.csv {
        output::data(&catalogue::csv(&Table::of_results(&results, &problems))?)?;
    } else if arguments.json {
        output::data(&catalogue::json(&Table::of_results(&results, &problems))?)?;
    } else {
        output::print(&render::listing(
            &results,
            &problems,
            catalogue::line_columns(),
        ))?;
    }
    catalogue::code(&catalogue, &problems)
}
