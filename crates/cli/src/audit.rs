//! `fwdlab audit`: published results, judged again.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use fwdlab_netbenches::ArchiveTree;
use fwdlab_netbenches::audit::{PublishedResults, write_audit};
use fwdlab_report::audit::AuditReport;
use fwdlab_report::render;

use crate::exit::{Code, WrongArguments};
use crate::import::refuse_inside;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// The archive, or any folder of it
    directory: PathBuf,
    /// Also write README.md, audit.json and plots to a new folder, or in place of an earlier audit
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Print what audit.json holds instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn audit(arguments: &AuditArguments) -> anyhow::Result<Code> {
    let root = &arguments.directory;
    if let Some(to) = &arguments.to {
        refuse_inside(root, to, "--to")?;
    }
    let tree = ArchiveTree::read(root)
        .with_context(|| format!("{}: cannot be listed; give a folder", root.display()))
        .map_err(|error| anyhow::Error::new(WrongArguments(format!("{error:#}"))))?;
    let published = PublishedResults::of(&tree);
    if published.datasets.is_empty() {
        return Err(WrongArguments(format!(
            "{}: there are no published datasets below it; give an archive in the form of netbenches, or a folder of it",
            root.display()
        ))
        .into());
    }
    let report = AuditReport::build(&source(root), &published);
    let json = render::json(&report)?;
    if let Some(to) = &arguments.to {
        write_audit(to, &report.readme(), &json, &report.plots())?;
    }
    if arguments.json {
        return output::print(&json);
    }
    let columns = output::terminal_columns();
    let mut text = report.terminal(columns, output::stdout_takes_colour());
    if let Some(to) = &arguments.to {
        text += &format!("\nReport: {}\n", to.join("README.md").display());
    }
    output::print(&text)
}

/// What a folder is called, whoever audits it and wherever it lies.
fn source(root: &Path) -> String {
    let name = root.canonicalize().ok();
    let name = name.as_deref().and_then(Path::file_name);
    name.unwrap_or(root.as_os_str())
        .to_string_lossy()
        .into_owned()
}
