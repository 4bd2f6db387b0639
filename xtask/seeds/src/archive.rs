//! What is read of the public archive.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use fwdlab_archive::{Column, Separators, parse_observations};
use fwdlab_netbenches::ConfigSet;
use fwdlab_pkt_gen::{
    Command, PktGenLog, PublishedMedian, Sample, published_observation, steady_state,
};

/// A copy of the archive.
pub(crate) struct Archive {
    folder: PathBuf,
}

/// One side of a comparison: what was measured at one setting.
#[derive(Clone, Copy)]
pub(crate) struct Arm {
    /// What readers call it.
    pub(crate) label: &'static str,
    /// The results folder, from the archive's root.
    pub(crate) results: &'static str,
    /// What its files are named by.
    pub(crate) key: &'static str,
    /// The folder of its configuration, from the archive's root.
    pub(crate) configuration: Option<&'static str>,
}

/// An arm and its numbers.
pub(crate) struct Measured {
    pub(crate) arm: Arm,
    /// The published numbers, in the order of the runs.
    pub(crate) observations_pps: Vec<f64>,
    /// The rate of the sender over the core of its blast, for each run.
    pub(crate) offered_pps: Vec<f64>,
    /// What the senders were asked for.
    pub(crate) sender: Command,
}

impl Archive {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        let path = self.folder.join(path);
        fs::read(&path).with_context(|| {
            format!(
                "{}: cannot be read; give a copy of ocochard/netbenches with --archive",
                path.display()
            )
        })
    }

    pub(crate) fn text(&self, path: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(path)?).into_owned())
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.folder.join(path).exists()
    }

    /// The numbers of an arm: the published ones, which have to be those that its receivers' logs give.
    pub(crate) fn measured(&self, arm: Arm) -> Result<Measured> {
        let Arm { results, key, .. } = arm;
        let path = format!("{results}/{key}.pps");
        let text = self.bytes(&path)?;
        let observations = parse_observations(&text, &Column::Number(1), &Separators::Blanks)
            .with_context(|| path.clone())?;
        let observations_pps: Vec<f64> = observations.iter().map(|one| one.value).collect();
        let (mut offered_pps, mut made, mut sender) = (Vec::new(), String::new(), None);
        for run in 1..=observations_pps.len() {
            let log = format!("{results}/RAW/bench.{key}.{run}");
            let receiver = self.bytes(&format!("{log}.receiver"))?;
            let observation = published_observation(&receiver, PublishedMedian::Averaged);
            made += &format!("{}\n", observation.unwrap_or_default());
            let path = format!("{log}.sender");
            let log = PktGenLog::parse(&self.bytes(&path)?).with_context(|| path.clone())?;
            let steady = steady_state(&log).with_context(|| format!("{path}: no steady state"))?;
            offered_pps.push(steady.mean_pps());
            sender = log.command;
        }
        ensure!(
            made.as_bytes() == text,
            "{path}: not what its raw logs give"
        );
        Ok(Measured {
            arm,
            observations_pps,
            offered_pps,
            sender: sender.with_context(|| format!("{path}: no command in the senders' logs"))?,
        })
    }

    /// The rate in equal parts of the steady part of a run's log, in packets per second.
    ///
    /// Shape: `role` is how the log's name ends. A sample belongs to the part that its middle is in.
    pub(crate) fn course(
        &self,
        arm: Arm,
        run: usize,
        role: &str,
        parts: usize,
    ) -> Result<Vec<f64>> {
        let Arm { results, key, .. } = arm;
        let path = format!("{results}/RAW/bench.{key}.{run}.{role}");
        let log = PktGenLog::parse(&self.bytes(&path)?).with_context(|| path.clone())?;
        let steady = steady_state(&log).with_context(|| format!("{path}: no steady state"))?;
        let middle_us = |sample: &Sample| sample.end_us as f64 - sample.interval_us as f64 / 2.0;
        let part_us = steady.duration_us as f64 / parts as f64;
        let rates = (0..parts).map(|part| {
            let from_us = steady.start_us as f64 + part as f64 * part_us;
            let within =
                |sample: &&Sample| (from_us..from_us + part_us).contains(&middle_us(sample));
            let samples = log.samples.iter().filter(within);
            let (packets, time_us) = samples.fold((0, 0), |(packets, time_us), sample| {
                (packets + sample.packets, time_us + sample.interval_us)
            });
            packets as f64 * 1e6 / time_us as f64
        });
        Ok(rates.collect())
    }

    /// What the files of a configuration set: names and values, the last one of a name counts.
    pub(crate) fn settings(&self, configuration: &str) -> Result<BTreeMap<String, String>> {
        let mut set = ConfigSet::default();
        for file in ["boot/loader.conf.local", "etc/rc.conf", "etc/sysctl.conf"] {
            set.read(file, &self.bytes(&format!("{configuration}/{file}"))?);
        }
        let settings = set.settings().into_iter();
        let settings =
            settings.map(|(key, setting)| (key.name.to_owned(), setting.value.to_string()));
        Ok(settings.collect())
    }
}
