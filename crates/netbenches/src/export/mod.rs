//! Results laid out as the public archive of netmap benches lays out its own, so that its tools and its
//! readers find them.
//!
//! [`Export::of_run`] says which files that makes of a run, [`Export::write`] writes them. What a run does
//! not have is not made up: there are no logs of pkt-gen, and the slices stand beside in fwdlab's own
//! form.

mod configs;
mod names;
mod pktgen;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fwdlab_archive::{
    ArchiveError, Loaded, format_observation, format_observations, format_slices,
};
use fwdlab_model::{Stratum, TrafficFault, VariantName};
use fwdlab_stats::median;
use fwdlab_sys::durable::FileError;

use names::{safe_component, shell_text, unique};

/// What keeps an export from being written; nothing of it stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Something is there already.
    #[error("{}: exists already, and nothing is overwritten; export to another folder", path.display())]
    Exists {
        /// The file or folder.
        path: PathBuf,
    },
    /// A link would lead what is written elsewhere.
    #[error(
        "{}: is no folder of its own, and what is written there may end up elsewhere; export to another \
         folder", path.display()
    )]
    NoFolder {
        /// The link or file.
        path: PathBuf,
    },
    /// There is nothing to export.
    #[error("{}: no block was measured that counts; run the experiment first", dir.display())]
    NothingMeasured {
        /// The results directory.
        dir: PathBuf,
    },
    /// The record names addresses that no traffic had.
    #[error("{}: its traffic cannot be: {fault}", dir.display())]
    Traffic {
        /// The results directory.
        dir: PathBuf,
        /// What is wrong with it.
        fault: TrafficFault,
    },
    /// The system refuses.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl From<FileError> for ExportError {
    fn from(error: FileError) -> Self {
        Self::Archive(error.into())
    }
}

/// The files of a run in the archive's form.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// Where the results go: `<platform>/<nic>/<topic>/results/<label>`.
    pub results: PathBuf,
    /// What was measured, in the experiment's order, one stratum after the other.
    pub datasets: Vec<Dataset>,
    /// Every file by its path below the folder that is exported to.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

/// What one variant forwarded in one stratum.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// Its name in files: `<key>.pps`.
    pub key: String,
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    pub stratum: Stratum,
    /// The observations in block order, in frames per second, as the file has them.
    pub observations_pps: Vec<f64>,
}

impl Dataset {
    /// The name of its file in the results folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.pps", self.key)
    }
}

impl Export {
    /// What a run becomes; its README.md is still to be added.
    ///
    /// # Errors
    /// [`ExportError::NothingMeasured`], [`ExportError::Traffic`].
    pub fn of_run(run: &Loaded) -> Result<Self, ExportError> {
        let resolved = &run.resolved;
        let accepted = run.accepted();
        if accepted.is_empty() {
            return Err(ExportError::NothingMeasured {
                dir: run.dir.clone(),
            });
        }
        let environment = run.sessions.last().map(|session| &session.environment);
        let platform = environment.map_or("", |environment| environment.cpu_model.as_str());
        let folder = run.dir.canonicalize().unwrap_or_else(|_| run.dir.clone());
        let label = folder.file_name().unwrap_or_default().to_string_lossy();
        let topic = Path::new(&safe_component(platform))
            .join(names::nic(resolved.lab.kind))
            .join(safe_component(&resolved.name));
        let results = topic.join("results").join(safe_component(&label));
        let mut files = BTreeMap::new();

        let mut taken = BTreeSet::new();
        let mut datasets = Vec::new();
        let has_several = resolved.has_several_strata();
        for stratum in resolved.strata() {
            let pktgen = names::pktgen_set(stratum);
            for variant in &resolved.variants {
                let observations_pps: Vec<f64> = accepted
                    .iter()
                    .flat_map(|attempt| &attempt.trials)
                    .filter(|trial| trial.variant == variant.name && trial.stratum == stratum)
                    .filter_map(|trial| format_observation(trial.observation_pps).parse().ok())
                    .collect();
                if observations_pps.is_empty() {
                    continue;
                }
                let name = variant.name.as_str();
                let (key, pktgen) = if has_several {
                    (format!("{name}.{pktgen}"), pktgen.as_str())
                } else {
                    (name.to_owned(), "")
                };
                let key = unique(&key, &mut taken);
                let uname = environment.map_or("", |environment| environment.kernel.as_str());
                let info = format!(
                    "IMAGE=\"\"\nCFG=\"{}\"\nPKTGEN=\"{}\"\nUNAME=\"{}\"",
                    shell_text(name),
                    shell_text(pktgen),
                    shell_text(uname)
                );
                files.insert(results.join(format!("bench.{key}.info")), info.into_bytes());
                let dataset = Dataset {
                    key,
                    variant: variant.name.clone(),
                    stratum,
                    observations_pps,
                };
                let text = format_observations(dataset.observations_pps.iter().copied());
                files.insert(results.join(dataset.file_name()), text.into_bytes());
                datasets.push(dataset);
            }
            let set = Path::new("pktgen.configs").join(safe_component(&resolved.name));
            let config = pktgen::config(resolved.traffic(stratum), stratum.family);
            let config = config.map_err(|fault| ExportError::Traffic {
                dir: run.dir.clone(),
                fault,
            })?;
            files.insert(set.join(&pktgen), config);
        }
        files.insert(results.join("gnuplot.data"), gnuplot(&datasets));
        for attempt in accepted {
            let name = format!("block.{}.slices.csv", attempt.record.block);
            let table = format_slices(&attempt.slices);
            files.insert(results.join("RAW").join(name), table.into_bytes());
        }
        for (path, text) in configs::files(resolved) {
            files.insert(topic.join("configs").join(path), text.into_bytes());
        }
        Ok(Self {
            results,
            datasets,
            files,
        })
    }

    /// Adds the text for readers.
    pub fn add_readme(&mut self, text: String) {
        self.files
            .insert(self.results.join("README.md"), text.into_bytes());
    }

    /// Writes all of it below a folder, or nothing: no file is replaced, and no link followed.
    ///
    /// Files that are there and the same are left alone outside of the results folder, where several
    /// runs share them; the results folder has to be new.
    ///
    /// # Errors
    /// [`ExportError::Exists`], [`ExportError::NoFolder`]; what writing can run into.
    pub fn write(&self, to: &Path) -> Result<(), ExportError> {
        tree::write(to, &self.results, &self.files)
    }
}

fn gnuplot(datasets: &[Dataset]) -> Vec<u8> {
    let mut text = "#index median minimum maximum\n".to_owned();
    for dataset in datasets {
        let values = &dataset.observations_pps;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let Some(median) = median(values) else {
            continue;
        };
        let [median, low, high] = [median, low, high].map(format_observation);
        let _ = writeln!(text, "{} {median} {low} {high}", dataset.key);
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests;
