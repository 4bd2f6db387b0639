//! `fwdlab run`: from the experiment file to the report.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fwdlab_archive::{Choice, Results};
use fwdlab_lab::{Asks, Lab, LabError, MachineClaim, Message, TesterChoice};
use fwdlab_model::{InvalidReason, LabKind, Notify, Resolved, Tester};
use fwdlab_plan::{ATTEMPTS_MAX, Estimate, PlanRun};
use fwdlab_report::format::counted;
use fwdlab_sys::Interrupts;

use crate::args::{MeasurementArguments, RunArguments};
use crate::disk::Disk;
use crate::exit::{Code, DONE, GOAL_MISSED, INTERRUPTED, in_words};
use crate::experiment::{self, placed};
use crate::gate;
use crate::output::tell;
use crate::plan::estimate_here;
use crate::progress::Progress;
use crate::report;
use crate::restore::tell_put_back;
use crate::session::{Session, Subject, reason_to_end_early, tell_preparation};

/// As wide as messages are read in a mail or a chat.
const MESSAGE_COLUMNS: usize = 100;

/// How a run has ended.
pub(crate) struct Ended {
    pub(crate) outcome: anyhow::Result<Code>,
    /// Whether anything was measured; a run that was refused has measured nothing.
    pub(crate) has_results: bool,
}

pub(crate) fn run(arguments: &RunArguments) -> Ended {
    let read = experiment::read(
        &arguments.files.experiment,
        arguments.files.lab.as_deref(),
        arguments.measurement.seed,
    );
    let (resolved, experiment_source) = match read {
        Ok(read) => read,
        Err(error) => {
            return Ended {
                outcome: Err(error),
                has_results: false,
            };
        }
    };
    let told = resolved.lab.notify.clone();
    let question = resolved.question.clone();
    let mut published = None;
    let outcome = measure(arguments, resolved, &experiment_source, &mut published);
    let has_results = published.is_some();
    tell_others(&told, question, &outcome, published);
    Ended {
        outcome,
        has_results,
    }
}

/// What is told of a run that has ended, beside how it has.
struct Published {
    directory: PathBuf,
    /// The report as a terminal shows it; empty where there is none.
    text: String,
}

/// Measures and publishes.
fn measure(
    arguments: &RunArguments,
    mut resolved: Resolved,
    experiment_source: &str,
    told: &mut Option<Published>,
) -> anyhow::Result<Code> {
    Lab::prepare_process(&resolved.lab)?;
    let interrupts = fwdlab_sys::watch_interrupts()?;
    let how = &arguments.measurement;
    // A host is looked at only while no other run changes it. What a lab on this machine lacks is said without waiting.
    let claimed = match resolved.lab.kind {
        LabKind::Ssh(_) => Some(claim(&resolved, how, interrupts)?),
        LabKind::Netns | LabKind::Router => None,
    };
    let state_directory = fwdlab_lab::state_directory()?;
    let mut lab = Lab::open(&resolved, &state_directory, interrupts, &mut tell_put_back)?;
    let unavailable = lab.unavailable(Asks::Run).map_err(|error| {
        let error = error.into();
        let lab = arguments.files.lab.as_deref();
        let placed = placed(&error, &arguments.files.experiment, lab, &Disk);
        placed.map_or(error, Into::into)
    })?;
    for (variant, reason) in resolved.variants.iter_mut().zip(unavailable) {
        variant.unavailable = reason;
    }
    let plan = fwdlab_plan::build(&resolved)?;

    let claim = match claimed {
        Some(claim) => claim,
        None => claim(&resolved, how, interrupts)?,
    };
    if !how.quiet {
        tell_limits(&lab, &resolved);
    }
    let choice = Choice {
        label: how.label.as_deref(),
        new: how.new,
    };
    let subject = Subject {
        resolved: &resolved,
        plan: &plan,
        experiment_source,
        experiment_path: arguments.files.experiment.display().to_string(),
        lab_path: arguments.files.lab.as_deref(),
        environment: lab.environment(),
    };
    // An estimate is no reason to refuse a run.
    let estimate =
        estimate_here(&how.results, &resolved).unwrap_or_else(|_| Estimate::first(&resolved));
    let mut session = Session::begin(&how.results, &choice, subject, &lab, claim)?;
    if !how.quiet {
        tell(&resolved.question);
    }
    if let Err(error) = session.settle(&mut lab, how.quiet) {
        session.results.remove_if_empty()?;
        return Err(error);
    }

    let loaded = session.results.loaded();
    let mut plan_run = PlanRun::resume(loaded.plan.clone(), &loaded.records);
    let mut progress = Progress::new(how.quiet, estimate, loaded, &plan_run);
    if !how.quiet {
        introduce(&session.results, &plan_run, &progress.left(&plan_run));
    }
    let measured = session.measure(&mut lab, &mut plan_run, &mut progress, interrupts);
    progress.finish();
    let closed = match &mut lab {
        Lab::Hosts(lab) => lab.close(&mut |event| tell_preparation(&event, how.quiet)),
        Lab::Netns(_) | Lab::Router(_) => Ok(()),
    };
    if !matches!(measured, Ok(true)) && session.results.remove_if_empty()? {
        measured?;
        closed.context("restoring the DUT (`fwdlab restore` tries again)")?;
        tell("stopped before a block was measured; no results were kept");
        return Ok(INTERRUPTED);
    }

    let directory = session.results.dir().to_owned();
    let told = told.insert(Published {
        directory: directory.clone(),
        text: String::new(),
    });
    let finished = match measured {
        Ok(true) => session
            .finish()
            .map(drop)
            .context("marking the run as finished"),
        _ => Ok(()),
    };
    // What was measured is published even where something went wrong after it; the report of a
    // finished run can be made again at any time.
    let published = Results::load(&directory)
        .map_err(anyhow::Error::from)
        .and_then(|loaded| Ok((report::publish(&loaded)?, loaded)))
        .context("writing the report");
    let is_whole = measured?;
    closed.context("restoring the DUT (`fwdlab restore` tries again)")?;
    finished?;
    let (report, mut loaded) = published?;
    told.text = fwdlab_report::render::terminal(&report, None, MESSAGE_COLUMNS, false);
    let results = gate::hold(&how.gates.fail_on, &mut loaded, &report)?;
    report::print(&report, Some(&directory), how.form, &results)?;
    let judged = gate::conclude(&results);
    let resolved = &loaded.resolved;
    let kind = resolved.lab.kind;
    if let Some(reason) = reason_to_end_early(&plan_run, kind) {
        tell(&format!(
            "ended after the first {ATTEMPTS_MAX} attempts: all were invalid for one reason: {reason}{}",
            instead(reason, kind, resolved.has_forwarder())
        ));
        return Ok(GOAL_MISSED);
    }
    match conclude(&plan_run, is_whole, &arguments.files.experiment) {
        DONE => Ok(judged),
        missed => Ok(missed),
    }
}

/// The machine, for which another run is waited for where that is asked.
fn claim(
    resolved: &Resolved,
    how: &MeasurementArguments,
    interrupts: Interrupts,
) -> anyhow::Result<MachineClaim> {
    if !how.wait {
        return MachineClaim::acquire(&resolved.lab).map_err(or_wait);
    }
    let claim = MachineClaim::wait(&resolved.lab, interrupts, &mut |pid| {
        if !how.quiet {
            let process = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
            tell(&format!(
                "waiting for another fwdlab{process} that is measuring on this machine; Ctrl-C stops waiting"
            ));
        }
    })?;
    Ok(claim)
}

/// With the option that helps where another run has the machine.
fn or_wait(error: LabError) -> anyhow::Error {
    if !matches!(error, LabError::MachineTaken { .. }) {
        return error.into();
    }
    let text = format!("{error}, or wait for it with --wait");
    anyhow::Error::from(error).context(text)
}

/// Says what this lab cannot do, or not in the best way.
fn tell_limits(lab: &Lab, resolved: &Resolved) {
    tell_losses(&lab.choices().tester);
    if let Some(why) = &lab.choices().profiles_unavailable {
        tell(&format!(
            "no profiles, so that nothing will say why a rate changed: {why}"
        ));
    }
    for variant in &resolved.variants {
        if let Some(reason) = &variant.unavailable {
            tell(&format!(
                "not available here, and not run: {}: {reason}",
                variant.label
            ));
        }
    }
}

/// Tells those whom the lab file names. That they could not be told is no fault of the run.
fn tell_others(
    notify: &Notify,
    question: String,
    ended: &anyhow::Result<Code>,
    published: Option<Published>,
) {
    if *notify == Notify::default() {
        return;
    }
    let (outcome, how) = match ended {
        Ok(DONE) => ("finished", "finished".to_owned()),
        Ok(INTERRUPTED) => ("stopped", "stopped by its user".to_owned()),
        Ok(_) => (
            "incomplete",
            "measured, but not as planned or not as hoped".to_owned(),
        ),
        Err(error) => ("failed", format!("failed: {}", in_words(error))),
    };
    let mut text = format!("fwdlab run: {question}\n{how}\n");
    let directory = published.map(|published| {
        let directory = published.directory.display().to_string();
        text += &format!("results: {directory}\n\n{}", published.text);
        directory
    });
    let message = Message {
        text,
        question,
        outcome,
        directory,
    };
    for error in fwdlab_lab::notify(notify, &message) {
        tell(&format!(
            "warning: nobody was told that the run has ended: {error}"
        ));
    }
}

/// Says what measures where it is not the best that there is, why, and what is lost.
fn tell_losses(choice: &TesterChoice) {
    let TesterChoice { tester, refused } = choice;
    if tester.losses().is_empty() {
        return;
    }
    match tester {
        Tester::PktGen => tell("measuring with netmap's pkt-gen"),
        _ => tell(&format!("without eBPF programs, measuring with {tester}:")),
    }
    for (better, why) in refused {
        tell(&format!("  not {}: {why}", better.sender()));
    }
    tell("what is lost by that:");
    for loss in tester.losses() {
        tell(&format!("  {loss}"));
    }
}

fn introduce(results: &Results, plan_run: &PlanRun, left: &str) {
    let loaded = results.loaded();
    let blocks = plan_run.plan().blocks.len();
    let open = plan_run.open_blocks().count();
    let where_to = loaded.dir.display();
    if results.is_continued() {
        tell(&format!(
            "going on in {where_to}: {} of {blocks} blocks are done (--new starts afresh)",
            blocks - open
        ));
    } else {
        tell(&format!("measuring into {where_to}"));
    }
    let variants = loaded.resolved.variants.iter();
    let measured = variants.filter(|variant| variant.unavailable.is_none());
    tell(&format!(
        "{}, {} ms slices, seed {}; {left}",
        size(measured.count(), blocks, loaded.resolved.design.rounds),
        loaded.resolved.design.slice_ms,
        loaded.plan.seed,
    ));
}

/// How much is measured.
fn size(variants: usize, blocks: usize, rounds: u32) -> String {
    format!(
        "{}, {} of {}",
        counted(variants as u64, "variant"),
        counted(blocks as u64, "block"),
        counted(rounds.into(), "round")
    )
}

/// What works on a machine where every attempt fails for this reason.
fn instead(reason: &InvalidReason, kind: LabKind, has_forwarder: bool) -> &'static str {
    match (reason, kind) {
        (InvalidReason::LoadShort { .. } | InvalidReason::GeneratorLimited, LabKind::Router) => {
            "; the generator has a CPU of its own there, and other work takes it: stop that work, or let the router's \
             thread generate the load (tester = \"inline\" in the lab file; docs/router.md)"
        }
        (InvalidReason::LoadShort { .. } | InvalidReason::GeneratorLimited, _) if has_forwarder => {
            "; the generator does not get the CPU time that the load needs: stop other work on its CPU, or ask for fewer \
             frames (load = { pps = N } in [traffic])"
        }
        (InvalidReason::LoadShort { .. } | InvalidReason::GeneratorLimited, _) => {
            "; the generator does not get the CPU time that the load needs: stop other work on its CPU, ask for fewer \
             frames (load = { pps = N } in [traffic]), or let generator and DUT take turns (load = \"self-clocked\"; \
             docs/netns-lab.md)"
        }
        _ => "",
    }
}

fn conclude(plan_run: &PlanRun, is_whole: bool, experiment: &Path) -> Code {
    let summary = plan_run.summary();
    if !is_whole {
        let experiment = experiment.to_string_lossy();
        tell(&format!(
            "stopped with {} of {} blocks measured; `fwdlab run {}` goes on from there, with the same options",
            summary.accepted.len(),
            summary.accepted.len() + summary.open.len() + summary.given_up.len(),
            shlex::try_quote(&experiment).unwrap_or(Cow::Borrowed(&*experiment)),
        ));
        return INTERRUPTED;
    }
    if summary.given_up.is_empty() {
        return DONE;
    }
    tell(&format!(
        "blocks given up: {}; every attempt was invalid, for reasons that the report gives; a block is tried {ATTEMPTS_MAX} \
         times at most, and this run could repeat {} times",
        summary.given_up.len(),
        plan_run.repeats_max()
    ));
    GOAL_MISSED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_one_is_said_to_be_one() {
        assert_eq!(size(2, 8, 10), "2 variants, 8 blocks of 10 rounds");
        assert_eq!(size(2, 1, 1), "2 variants, 1 block of 1 round");
    }

    #[test]
    fn a_load_that_is_refused_is_not_advised() {
        let reason = InvalidReason::GeneratorLimited;
        let advice = |has_forwarder| instead(&reason, LabKind::Netns, has_forwarder);
        assert!(advice(false).contains("self-clocked"));
        assert!(!advice(true).contains("self-clocked"));
        assert!(advice(true).contains("load = { pps = N }"));
    }

    #[test]
    fn who_may_wait_is_said_to() {
        let error = or_wait(LabError::MachineTaken { pid: Some(7) });
        assert!(
            error
                .to_string()
                .ends_with("run again when it has ended, or wait for it with --wait")
        );
        assert!(error.downcast_ref::<LabError>().is_some());
        let other = or_wait(LabError::Interrupted).to_string();
        assert!(!other.contains("--wait"), "{other}");
    }
}
