//! `fwdlab query`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use fwdlab_catalogue::{Catalogue, Filter, Over, Series, Table, series};
use fwdlab_report::render;

use crate::catalogue::{self, FilterArguments, PlaceArguments, VariantArguments};
use crate::exit::{Code, WrongArguments};
use crate::output::{self, tell};

#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// Put the rates of the same configuration one after the other
    #[arg(long, value_name = "ORDER")]
    over: Option<OverArgument>,
    /// Ask something else: a SELECT, see docs/catalogue.md for the tables
    #[arg(
        long,
        value_name = "SELECT",
        conflicts_with_all = ["over", "svg", "platform", "nic", "os", "topic", "factor", "since",
            "until", "variant", "family"]
    )]
    sql: Option<String>,
    /// The longest that --sql may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "sql",
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    time_limit: u64,
    /// Print a table as CSV instead of text
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print an array of objects as JSON instead of text
    #[arg(long)]
    json: bool,
    /// Draw the rates, by date where --over does not say otherwise
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    filters: FilterArguments,
    #[command(flatten)]
    variants: VariantArguments,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverArgument {
    /// By date
    Time,
    /// By release of the kernel or revision of the operating system
    Os,
}

impl From<OverArgument> for Over {
    fn from(over: OverArgument) -> Self {
        match over {
            OverArgument::Time => Self::Time,
            OverArgument::Os => Self::Os,
        }
    }
}

pub(crate) fn query(arguments: &QueryArguments) -> anyhow::Result<Code> {
    let (mut catalogue, problems) = catalogue::open(&arguments.place)?;
    for problem in &problems {
        tell(&render::passed_over(problem));
    }
    let width = catalogue::line_columns();
    let (table, text) = match &arguments.sql {
        Some(sql) => {
            let table = catalogue.select(sql, Duration::from_secs(arguments.time_limit))?;
            let text = render::selected(&table, width);
            (table, text)
        }
        None => rates(&catalogue, arguments, width)?,
    };
    if table.rows.is_empty() && arguments.sql.is_none() {
        tell("no rates; other folders or filters may have some");
    }
    if arguments.csv {
        output::data(&catalogue::csv(&table)?)?;
    } else if arguments.json {
        output::data(&catalogue::json(&table)?)?;
    } else {
        output::print(&text)?;
    }
    catalogue::code(&catalogue, &problems)
}

/// The rates as they were asked for, as rows and as text.
fn rates(
    catalogue: &Catalogue,
    arguments: &QueryArguments,
    width: Option<usize>,
) -> anyhow::Result<(Table, String)> {
    let filter: Filter = arguments.filters.filter(Some(&arguments.variants));
    let rates = catalogue.rates(&filter)?;
    catalogue::tell_undated(catalogue.undated(&filter, true)?);
    let over = arguments.over.map(Over::from);
    if let Some(path) = &arguments.svg {
        let over = over.unwrap_or(Over::Time);
        let all = series(rates.clone(), over);
        refuse_too_many(&all)?;
        catalogue::write("--svg", path, render::series_svg(&all, over).as_bytes())?;
    }
    Ok(match over {
        Some(over) => {
            let all = series(rates, over);
            let in_order = all.iter().flat_map(|series| &series.rates);
            (Table::of_rates(in_order), render::series(&all, width))
        }
        None if rates.is_empty() => (Table::of_rates(&rates), String::new()),
        None => (Table::of_rates(&rates), render::rates(&rates, width)),
    })
}

fn refuse_too_many(all: &[Series]) -> Result<(), WrongArguments> {
    let most = render::SERIES_MAX;
    let count = |family: &str| all.iter().filter(|series| series.family == family).count();
    match all.iter().map(|series| count(&series.family)).max() {
        Some(count) if count > most => Err(WrongArguments(format!(
            "--svg: {count} configurations are more than a plot can tell apart ({most}); choose some \
             with --platform, --topic or --variant"
        ))),
        _ => Ok(()),
    }
}
