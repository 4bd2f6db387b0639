//! `fwdlab plan`: what a run would do, without doing it.

use std::path::Path;

use fwdlab_archive::{Loaded, Results};
use fwdlab_lab::{Asks, Lab, LabError, by_tool, tools_needed};
use fwdlab_model::{Environment, LabKind, Read, Resolved};
use fwdlab_plan::Estimate;
use fwdlab_report::{DutProgram, Preview, render};

use crate::args::PlanArguments;
use crate::disk::Disk;
use crate::exit::Code;
use crate::experiment::{self, unless_a_file_is_wrong};
use crate::output;
use crate::progress::learnt;
use crate::restore::tell_put_back;

/// More earlier runs say little more about how much a lab scatters now.
const EARLIER_RUNS_MAX: usize = 20;

pub(crate) fn plan(arguments: &PlanArguments) -> anyhow::Result<Code> {
    let (mut resolved, _) = experiment::read(
        &arguments.files.experiment,
        arguments.files.lab.as_deref(),
        arguments.seed,
    )?;
    // A run would refuse it as well.
    let asked = unless_a_file_is_wrong(
        ask_lab(&mut resolved),
        &arguments.files.experiment,
        arguments.files.lab.as_deref(),
        &Disk,
    )?;
    let asked = unless_refused(asked, resolved.lab.kind)?;
    let plan = fwdlab_plan::build(&resolved)?;
    let environment = asked.as_ref().ok().map(|asked| &asked.environment);
    let earlier = earlier_runs(&arguments.results, &resolved, environment)?;
    let profiles_unavailable = asked
        .as_ref()
        .ok()
        .and_then(|asked| asked.profiles_unavailable.clone());
    let known = estimate(&earlier, &resolved).known();
    let duration_s = known.map(|overheads| overheads.blocks_s(&plan.blocks, &resolved));
    let mut preview = Preview::build(
        &resolved,
        &plan,
        &earlier,
        asked.err().map(|error| why(&error)),
        duration_s,
        arguments.methods,
    )?;
    preview.dut_programs = dut_programs(&resolved);
    preview.profiles_unavailable = profiles_unavailable;
    if arguments.json {
        return output::print(&render::json(&preview)?);
    }
    output::print(&render::preview(&preview, output::terminal_columns()))
}

/// The programs that the experiment needs on its DUT, whether or not it was asked.
fn dut_programs(resolved: &Resolved) -> Vec<DutProgram> {
    let needs = tools_needed(resolved);
    let by_tool = by_tool(&needs).into_iter();
    let programs = by_tool.map(|(tool, purposes)| DutProgram {
        program: tool.name().to_owned(),
        purposes: purposes.into_iter().map(str::to_owned).collect(),
    });
    programs.collect()
}

/// What a lab answered.
struct Asked {
    environment: Environment,
    profiles_unavailable: Option<String>,
}

/// Asks the lab which variants it can have, as a run does, whether it can take the profiles, and what it is.
fn ask_lab(resolved: &mut Resolved) -> anyhow::Result<Asked> {
    Lab::prepare_process(&resolved.lab)?;
    let state_directory = fwdlab_lab::state_directory()?;
    let interrupts = fwdlab_sys::watch_interrupts()?;
    let mut lab = Lab::open(resolved, &state_directory, interrupts, &mut tell_put_back)?;
    for (variant, reason) in resolved
        .variants
        .iter_mut()
        .zip(lab.unavailable(Asks::Plan)?)
    {
        variant.unavailable = reason;
    }
    let profiles_unavailable = lab.choices().profiles_unavailable.clone();
    if profiles_unavailable.is_some() {
        resolved.profiling = None;
    }
    Ok(Asked {
        environment: lab.environment(),
        profiles_unavailable,
    })
}

/// Refuses rulesets that nft does not understand, and objects without a tc program, as far as this machine can tell: hosts are
/// not asked.
pub(crate) fn check_files(
    mut resolved: Resolved,
    experiment: &Path,
    read: Read<'_>,
) -> anyhow::Result<()> {
    if resolved.lab.kind.is_remote() {
        return Ok(());
    }
    unless_a_file_is_wrong(ask_lab(&mut resolved), experiment, None, read).map(|_| ())
}

/// What a lab was asked, unless its hosts answered that nothing can be measured there: a run would end so, too.
fn unless_refused<T>(asked: anyhow::Result<T>, kind: LabKind) -> anyhow::Result<anyhow::Result<T>> {
    match asked {
        Err(error)
            if kind.is_remote()
                && (error.downcast_ref()).is_some_and(LabError::is_an_answer_of_hosts) =>
        {
            Err(error)
        }
        asked => Ok(asked),
    }
}

/// Why the lab was not asked.
fn why(error: &anyhow::Error) -> String {
    match error.downcast_ref() {
        // Its own words advise to plan.
        Some(LabError::NoHosts { .. }) => "its file names no hosts".to_owned(),
        _ => format!("{error:#}"),
    }
}

/// The newest runs in this lab, on this machine or its DUT, and under this load. A DUT that was not asked is taken for
/// the one that it was.
fn earlier_runs(
    results: &Path,
    resolved: &Resolved,
    asked: Option<&Environment>,
) -> anyhow::Result<Vec<Loaded>> {
    let is_alike = |other: &Resolved| {
        (&other.lab.name, other.lab.kind) == (&resolved.lab.name, resolved.lab.kind)
            && other.regime() == resolved.regime()
    };
    let mut runs = Results::earlier(results, is_alike, EARLIER_RUNS_MAX)?;
    let here = match asked {
        Some(environment) => environment.clone(),
        None if resolved.lab.kind.is_remote() => return Ok(runs),
        None => fwdlab_lab::environment(),
    };
    runs.retain(|run| {
        run.sessions.iter().all(|session| {
            let there = &session.environment;
            (&there.cpu_model, there.cpus) == (&here.cpu_model, here.cpus)
        })
    });
    Ok(runs)
}

/// What blocks take here besides their slices, by earlier runs under the same load.
pub(crate) fn estimate_here(results: &Path, resolved: &Resolved) -> anyhow::Result<Estimate> {
    Ok(estimate(&earlier_runs(results, resolved, None)?, resolved))
}

/// What blocks take besides their slices, by the newest run that has one.
fn estimate(earlier: &[Loaded], resolved: &Resolved) -> Estimate {
    let first = Estimate::first(resolved);
    newest_alike(earlier, resolved).map_or(first, |run| learnt(first, run))
}

/// The newest run that has a block. A boot takes longer than anything else, and profiles take long, so that runs with
/// the same of both come first.
fn newest_alike<'l>(earlier: &'l [Loaded], resolved: &Resolved) -> Option<&'l Loaded> {
    let is_alike = |run: &&Loaded| {
        run.resolved.takes_whole_measurements() == resolved.takes_whole_measurements()
            && !run.attempts.is_empty()
    };
    let is_profiled = |run: &&Loaded| {
        run.resolved.profiling.is_some() == resolved.profiling.is_some() && is_alike(run)
    };
    let newest = earlier.iter().find(is_profiled);
    newest.or_else(|| earlier.iter().find(is_alike))
}
