//! `fwdlab plan`: what a run would do, without doing it.

use std::path::Path;

use fwdlab_archive::{Loaded, Results};
use fwdlab_lab::{Asks, Lab, LabError};
use fwdlab_model::Resolved;
use fwdlab_plan::Overheads;
use fwdlab_report::{Preview, render};

use crate::args::PlanArguments;
use crate::exit::Code;
use crate::progress::FIRST_GUESS;
use crate::{experiment, output};

/// More earlier runs say little more about how much a lab scatters now.
const EARLIER_RUNS_MAX: usize = 20;

pub(crate) fn plan(arguments: &PlanArguments) -> anyhow::Result<Code> {
    let (mut resolved, _) = experiment::read(
        &arguments.experiment,
        arguments.lab.as_deref(),
        arguments.seed,
    )?;
    let not_asked = ask_lab(&mut resolved).err().map(|error| why(&error));
    let plan = fwdlab_plan::build(&resolved)?;
    let earlier = earlier_runs(&arguments.results, &resolved)?;
    // How long set-ups and switches take over ssh, with or without a reboot, is not known here.
    let duration_s = (!resolved.lab.kind.is_remote())
        .then(|| overheads(&earlier).blocks_s(&plan.blocks, &resolved));
    let preview = Preview::build(
        &resolved,
        &plan,
        &earlier,
        not_asked,
        duration_s,
        arguments.methods,
    )?;
    if arguments.json {
        return output::print(&render::preview_json(&preview)?);
    }
    output::print(&render::preview(&preview, output::terminal_columns()))
}

/// Asks the lab which variants it can have, as a run does.
fn ask_lab(resolved: &mut Resolved) -> anyhow::Result<()> {
    Lab::prepare_process(&resolved.lab)?;
    let state_directory = fwdlab_lab::state_directory()?;
    let mut lab = Lab::open(resolved, &state_directory, fwdlab_sys::watch_interrupts()?)?;
    for (variant, reason) in resolved
        .variants
        .iter_mut()
        .zip(lab.unavailable(Asks::Plan)?)
    {
        variant.unavailable = reason;
    }
    Ok(())
}

/// Why the lab could not be asked.
fn why(error: &anyhow::Error) -> String {
    match error.downcast_ref() {
        // Its own words advise to plan.
        Some(LabError::NoHosts { .. }) => "its file names no hosts".to_owned(),
        _ => format!("{error:#}"),
    }
}

/// The newest runs in this lab, on this machine and under this load.
fn earlier_runs(results: &Path, resolved: &Resolved) -> anyhow::Result<Vec<Loaded>> {
    let is_alike = |other: &Resolved| {
        (&other.lab.name, other.lab.kind) == (&resolved.lab.name, resolved.lab.kind)
            && other.traffic.regime == resolved.traffic.regime
    };
    let mut runs = Results::earlier(results, is_alike, EARLIER_RUNS_MAX)?;
    let here = fwdlab_lab::environment();
    runs.retain(|run| {
        run.sessions.iter().all(|session| {
            let there = &session.environment;
            (&there.cpu_model, there.cpus) == (&here.cpu_model, here.cpus)
        })
    });
    Ok(runs)
}

/// What set-up and switches took in the newest run that has a block.
fn overheads(earlier: &[Loaded]) -> Overheads {
    let accepted = earlier.iter().map(Loaded::accepted);
    let newest = accepted.into_iter().find(|attempts| !attempts.is_empty());
    let attempts = newest.unwrap_or_default();
    let median = |values: Vec<f64>| fwdlab_stats::median(&values);
    let of = |pick: fn(&fwdlab_model::BlockRecord) -> f64| {
        median(
            attempts
                .iter()
                .map(|attempt| pick(&attempt.record))
                .collect(),
        )
    };
    Overheads {
        set_up_s: of(|block| block.set_up_s).unwrap_or(FIRST_GUESS.set_up_s),
        switch_s: of(|block| block.switch_s).unwrap_or(FIRST_GUESS.switch_s),
        ..FIRST_GUESS
    }
}
