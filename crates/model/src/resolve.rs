//! Experiment and lab become one: defaults filled in, variants made, every name looked up.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;

use crate::binding::Binding;
use crate::bindings::bindings;
use crate::diagnostic::{Diagnostics, Source};
use crate::document::Reading;
use crate::experiment::ExperimentFile;
use crate::factor::FactorEntry;
use crate::files::{Read, beside, open, short_name};
use crate::forwarder_check;
use crate::kind::LabKind;
use crate::lab_file::LabFile;
use crate::load::Load;
use crate::references::references;
use crate::resolved::{Design, Factor, Lab, Resolved};
use crate::traffic::settle;
use crate::variants::{check_factors, comparisons, control, variants};
use crate::vlan_check;

/// More than are measured in a day; a plan holds the order of all.
const SLICES_MAX: u64 = 2_000_000;

/// An experiment that can be run.
#[derive(Debug)]
pub struct Loaded {
    /// The experiment with its lab, every default filled in.
    pub resolved: Resolved,
    /// The experiment file as it was read.
    pub experiment_source: String,
    /// What its author may not have meant.
    pub warnings: Diagnostics,
}

/// Reads an experiment, its lab, what that brings to the DUT and the experiment's earlier data.
///
/// The lab is `lab_path`, or else the file that the experiment names, relative to the experiment.
/// `drawn_seed` orders the run where the experiment gives no seed.
///
/// # Errors
/// Everything that is wrong in the files, at once; of a file with broken syntax the syntax alone.
pub fn load(
    experiment_path: &Path,
    lab_path: Option<&Path>,
    read: Read<'_>,
    drawn_seed: u64,
) -> Result<Loaded, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let source = open(experiment_path, read, None, &mut diagnostics);
    let experiment = source
        .as_ref()
        .and_then(|source| ExperimentFile::parse(source, &mut diagnostics));
    let lab_source = match (lab_path, &experiment) {
        (Some(path), _) => open(path, read, None, &mut diagnostics),
        (None, Some(experiment)) => open_named_lab(experiment, read, &mut diagnostics),
        (None, None) => None,
    };
    let lab = lab_source
        .as_ref()
        .and_then(|source| LabFile::parse(source, &mut diagnostics));
    let resolved =
        experiment.and_then(|file| resolve(file, lab, read, drawn_seed, &mut diagnostics));
    let files = [&source, &lab_source].map(|source| {
        source
            .as_ref()
            .map_or(Path::new(""), |source| source.path.as_path())
    });
    diagnostics.keep_the_worst();
    diagnostics.sort(&files);
    match (source, resolved) {
        (Some(source), Some(resolved)) if diagnostics.errors() == 0 => Ok(Loaded {
            resolved,
            experiment_source: source.text.clone(),
            warnings: diagnostics,
        }),
        _ => Err(diagnostics),
    }
}

/// The file of a level's ruleset, as [`load`] has read it; none where the lab does not bind the level to one.
#[must_use]
pub fn ruleset_source(
    experiment_path: &Path,
    lab_path: Option<&Path>,
    read: Read<'_>,
    factor: &str,
    level: &str,
) -> Option<Arc<Source>> {
    let said_before = &mut Diagnostics::default();
    let lab_source = match lab_path {
        Some(path) => open(path, read, None, said_before)?,
        None => {
            let source = open(experiment_path, read, None, said_before)?;
            let experiment = ExperimentFile::parse(&source, said_before)?;
            open_named_lab(&experiment, read, said_before)?
        }
    };
    let lab = LabFile::parse(&lab_source, said_before)?;
    let place = Some((&lab_source, 0..0));
    let file = lab.mechanisms.get(factor)?.as_ref()?.ruleset(level)?;
    open(
        &beside(&lab_source.path, file.get_ref()),
        read,
        place,
        said_before,
    )
}

/// Reads a lab file alone, without any experiment: its bindings are checked, and left out but for tunables.
///
/// The load regime is that of experiments which ask for none.
///
/// # Errors
/// Everything that is wrong in the file, at once.
pub fn load_lab(path: &Path, read: Read<'_>) -> Result<(Lab, Load), Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let file = open(path, read, None, &mut diagnostics)
        .and_then(|source| LabFile::parse(&source, &mut diagnostics));
    match file {
        Some(mut file) if diagnostics.errors() == 0 => {
            let mechanisms = file.mechanisms.into_iter();
            let bindings = mechanisms.filter_map(|(name, it)| Some((name, it?.bind_any_level()?)));
            file.lab.bindings.extend(bindings);
            Ok((file.lab, file.load))
        }
        _ => Err(diagnostics),
    }
}

fn open_named_lab(
    experiment: &ExperimentFile,
    read: Read<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<Source>> {
    let source = &experiment.source;
    if let Some(lab) = &experiment.lab {
        let path = beside(&source.path, lab.get_ref());
        open(&path, read, Some((source, lab.span())), diagnostics)
    } else {
        diagnostics
            .error(Some((source, 0..0)), "no lab is given")
            .with_help("name its file with `--lab FILE`")
            .with_help("or in the experiment: lab = \"../labs/netns.toml\"");
        None
    }
}

/// None without a lab, or where names are wrong so that nothing whole can be made.
fn resolve(
    file: ExperimentFile,
    lab: Option<LabFile>,
    read: Read<'_>,
    drawn_seed: u64,
    diagnostics: &mut Diagnostics,
) -> Option<Resolved> {
    let source = Arc::clone(&file.source);
    let reading = &mut Reading {
        source: &source,
        diagnostics,
    };
    check_factors(reading, &file);
    let made = variants(reading, &file);
    let comparisons = comparisons(reading, &file, made.as_deref());
    let bindings = lab.as_ref().map(|lab| bindings(reading, &file, lab, read));
    let references = references(reading, &file, made.as_deref().unwrap_or_default(), read);
    if let Some(bindings) = &bindings {
        forwarder_check::check(
            reading,
            &file,
            made.as_deref().unwrap_or_default(),
            bindings,
        );
        if lab
            .as_ref()
            .is_some_and(|lab| lab.lab.kind == LabKind::Netns)
        {
            let variants = made.as_deref().unwrap_or_default();
            vlan_check::check(reading, &file.traffics, variants, bindings);
        }
    }
    let has_forwarder =
        |bindings: &BTreeMap<String, Binding>| bindings.values().any(Binding::has_forwarder);
    let takes_turns = !bindings.as_ref().is_some_and(has_forwarder);
    let traffics = lab.as_ref().map(|lab| {
        settle(
            reading,
            file.traffics,
            lab,
            takes_turns,
            file.design.slice_ms,
        )
    });

    let mut variants = made?;
    if variants.len() == 1 && !file.control {
        reading
            .error(0..0, "there is one variant, and nothing to compare it with")
            .with_help("add a variant, or measure it twice with control = true in [design]");
    }
    if file.control {
        let baseline = comparisons.first()?.baseline.clone();
        let control = control(reading, &file.variants, &variants, &baseline)?;
        variants.push(control);
    }
    let lab = lab?.lab;
    let factors = file.factors.into_iter().chain(file.settings);
    let mut resolved = Resolved {
        name: short_name(&source.path, "experiment"),
        question: file.question,
        background: file.background,
        factors: factors.map(factor).collect(),
        variants,
        comparisons,
        traffics: traffics?,
        design: Design {
            seed: if file.design.seed_was_drawn {
                drawn_seed
            } else {
                file.design.seed
            },
            ..file.design
        },
        profiling: file.profiling,
        lab: Lab {
            bindings: bindings?,
            ..lab
        },
        references,
    };
    if resolved.takes_whole_measurements() {
        // Slices that each wait for a boot would be all boots: each variant is measured once, whole.
        resolved.design.rounds = 1;
    }
    let slices = [
        u64::from(resolved.design.blocks),
        u64::from(resolved.design.rounds),
        resolved.variants.len() as u64,
        resolved.strata().count() as u64,
    ];
    let slices: u64 = slices.iter().product();
    if slices > SLICES_MAX {
        let message = format!("the plan has {slices} slices, more than {SLICES_MAX}");
        reading.error(0..0, message).with_help(
            "they are blocks times rounds times variants times families of all traffics; choose fewer of one of them",
        );
    }
    Some(resolved)
}

fn factor(entry: FactorEntry) -> Factor {
    Factor {
        name: entry.name.into_inner(),
        description: entry.description,
        levels: entry.levels.into_iter().map(Spanned::into_inner).collect(),
        default: entry.default,
    }
}
