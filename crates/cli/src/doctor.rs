//! `fwdlab doctor`: what would spoil a measurement, and how much noise the lab has.

use std::fmt::Write as _;

use fwdlab_archive::{Choice, Results, write_derived};
use fwdlab_lab::doctor::{Finding, State, control_experiment, lab_noise, settle_ms};
use fwdlab_lab::{BlockOutcome, Lab, MachineClaim, SETTLING_STEP};
use fwdlab_model::{Environment, LabKind, LabNoise, Load};
use fwdlab_plan::{Estimate, PlanRun};
use fwdlab_report::format::counted;
use fwdlab_sys::Interrupts;
use serde_json::json;

use crate::args::DoctorArguments;
use crate::disk::Disk;
use crate::exit::{Code, DONE, GOAL_MISSED};
use crate::output::{self, tell};
use crate::progress::Progress;
use crate::restore::tell_put_back;
use crate::session::{Session, Subject};

/// Switches after which the rate is watched settling.
const SWITCHES: u32 = 20;

pub(crate) fn doctor(arguments: &DoctorArguments) -> anyhow::Result<Code> {
    let (lab, load) = match &arguments.lab {
        Some(path) => fwdlab_model::load_lab(path, &Disk)?,
        None => (fwdlab_model::Lab::netns("netns"), Load::SelfClocked),
    };
    if lab.kind.is_remote() {
        // A lab that names no hosts is an answer, not a finding.
        Lab::prepare_process(&lab)?;
    }
    let prepared = Lab::prepare_process(&lab);
    let interrupts = fwdlab_sys::watch_interrupts()?;
    let environment = fwdlab_lab::environment();
    tell(if lab.kind.is_remote() {
        "looking at the hosts (some seconds)"
    } else {
        "looking at the machine (some seconds)"
    });
    let findings = fwdlab_lab::examine(&lab, load, &environment, &prepared, interrupts)?;
    let worst = findings.iter().map(|finding| finding.state).max();
    let noise = if arguments.quick || worst == Some(State::Fatal) {
        None
    } else {
        measure(&lab, load, &environment, arguments, interrupts)?
    };
    if arguments.json {
        let document = json!({ "lab": lab.name, "findings": findings, "noise": noise });
        output::print(&format!("{document:#}\n"))?;
    } else {
        let is_switched = has_switch(&lab, &environment);
        output::print(&written(&findings, noise.as_ref(), is_switched))?;
    }
    Ok(if worst == Some(State::Fatal) {
        GOAL_MISSED
    } else {
        DONE
    })
}

/// Measures the baseline against itself, into a results directory as any run does, so that plans
/// find it; then how the rate settles.
fn measure(
    lab: &fwdlab_model::Lab,
    load: Load,
    environment: &Environment,
    arguments: &DoctorArguments,
    interrupts: Interrupts,
) -> anyhow::Result<Option<LabNoise>> {
    let with_ruleset = has_switch(lab, environment);
    let resolved = control_experiment(lab, load, arguments.blocks, with_ruleset);
    let claim = MachineClaim::acquire(&resolved.lab)?;
    let state_directory = fwdlab_lab::state_directory()?;
    let mut open_lab = Lab::open(&resolved, &state_directory, interrupts, &mut tell_put_back)?;
    let plan = fwdlab_plan::build(&resolved)?;
    let choice = Choice {
        label: None,
        new: true,
    };
    let subject = Subject {
        resolved: &resolved,
        plan: &plan,
        experiment_source: &format!("# fwdlab doctor: {}\n", resolved.question),
        experiment_path: "fwdlab doctor".to_owned(),
        lab_path: arguments.lab.as_deref(),
        environment: environment.clone(),
    };
    let mut session = Session::begin(&arguments.results, &choice, subject, &open_lab, claim)?;
    session.settle(&mut open_lab, false)?;
    let mut plan_run = PlanRun::resume(plan, &[]);
    let estimate = Estimate::first(&resolved);
    let mut progress = Progress::new(false, estimate, session.results.loaded(), &plan_run);
    let left = progress.left(&plan_run);
    tell(&format!("measuring the lab against itself ({left})"));
    let measured = session.measure(&mut open_lab, &mut plan_run, &mut progress, interrupts);
    progress.finish();
    let directory = session.results.dir().to_owned();
    if !measured? {
        return Ok(None);
    }
    let _claim = session.finish()?;
    let loaded = Results::load(&directory)?;
    let outcomes: Vec<BlockOutcome> = loaded
        .accepted()
        .into_iter()
        .map(|attempt| BlockOutcome {
            trials: attempt.trials.clone(),
            block: attempt.record.clone(),
            slices: attempt.slices.clone(),
            profiles: Vec::new(),
        })
        .collect();
    let mut noise = lab_noise(
        &resolved,
        &outcomes,
        // The DUT's, whichever machine that is.
        &loaded.sessions[0].environment.kernel,
        &loaded.sessions[0].environment.cpu_model,
        &loaded.sessions[0].start,
    )?;
    if let Some(noise) = noise.as_mut().filter(|_| with_ruleset)
        && let Lab::Netns(lab) = &mut open_lab
    {
        tell("watching the rate settle after switches (some seconds)");
        noise.settle_ms = settle_ms(&lab.settling(SWITCHES)?, SETTLING_STEP);
    }
    if noise.is_none() {
        tell(
            "every block stayed invalid, so that nothing is known of the noise, for the reasons above",
        );
    }
    if let Some(noise) = &noise {
        let text = format!("{}\n", serde_json::to_string_pretty(noise)?);
        write_derived(&directory, "noise.json", text.as_bytes())?;
    }
    Ok(noise)
}

fn written(findings: &[Finding], noise: Option<&LabNoise>, is_switched: bool) -> String {
    let colour = output::stdout_takes_colour();
    let mark = |state| {
        let (mark, code) = match state {
            State::Fine => ("ok", "32"),
            State::Warning => ("warn", "33"),
            State::Fatal => ("FAIL", "31"),
        };
        if colour {
            format!("\x1b[{code}m{mark:<4}\x1b[0m")
        } else {
            format!("{mark:<4}")
        }
    };
    let mut text = String::new();
    for finding in findings {
        let _ = writeln!(
            text,
            "{} {}: {}",
            mark(finding.state),
            finding.check,
            finding.seen
        );
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "     -> {remedy}");
        }
    }
    if let Some(noise) = noise {
        text.push('\n');
        text.push_str(&noise_written(noise, is_switched));
    }
    text
}

/// Whether a ruleset is switched, after which the rate may settle: a router is put together anew for every slice.
fn has_switch(lab: &fwdlab_model::Lab, environment: &Environment) -> bool {
    lab.kind == LabKind::Netns && environment.facts.contains_key("nft")
}

fn noise_written(noise: &LabNoise, is_switched: bool) -> String {
    let spread = fwdlab_stats::Spread::new(&noise.block_effects)
        .ok()
        .flatten();
    let percent = |ratio: f64| format!("{:.2} %", ratio * 100.0);
    let spread = spread.map_or_else(
        || "unknown".to_owned(),
        |spread| percent(spread.standard_deviation),
    );
    let settle = match noise.settle_ms {
        Some(ms) => format!("; settled after {ms} ms"),
        None if !is_switched => String::new(),
        None => "\n\x20 100 ms after a switch the rate still moved by more than 2 %: use a quieter machine, or give \
                 experiments a settle_ms above 100"
            .to_owned(),
    };
    let generator = match (noise.generator_cost_ns, noise.generator_ceiling_pps) {
        (Some(cost_ns), Some(ceiling_pps)) => format!(
            "\x20 generator: {cost_ns:.1} ns/packet of its own, ceiling {:.2} Mpps\n",
            ceiling_pps / 1e6
        ),
        _ => String::new(),
    };
    format!(
        "Noise of lab {}, {} of {}, {} ms slices:\n\
         \x20 A/A effects of single blocks spread by {spread} (standard deviation)\n\
         \x20 disturbed and left out: {} of the slices\n\
         \x20 set-up {:.2} s; switch {:.0} ms, longest {:.0} ms{settle}\n{generator}",
        noise.lab,
        counted(noise.block_effects.len() as u64, "block"),
        counted(noise.rounds.into(), "round"),
        noise.slice_ms,
        percent(noise.disturbed_ratio),
        noise.set_up_s,
        noise.switch_s * 1e3,
        noise.switch_s_max * 1e3,
    )
}
