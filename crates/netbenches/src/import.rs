//! A folder of the archive as records of ours.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fwdlab_archive::format_observations;
use fwdlab_archive::input::input;
use fwdlab_archive::name::first_free;
use fwdlab_model::imported::{
    FileOutcome, IMPORT_SCHEMA_VERSION, ImportedDataset, ImportedDescription, ImportedFile,
    ImportedResults, ImportedRun, ImportedText, ImportedVariant,
};
use fwdlab_model::{AddressFamily, VariantName};
use fwdlab_pkt_gen::{Ending, PublishedMedian};
use fwdlab_sys::parallel::{FEW, parallel};

use crate::counted::{Measured, counted, places};
use crate::datasets::{TreeDataset, place};
use crate::file::{ArchiveFile, Outcome, Problem};
use crate::folder::{PublishedDataset, ResultsFolder, Run, RunGroup};
use crate::info::BenchInfo;
use crate::log::LogFacts;
use crate::published_text::{Sources, made_again};
use crate::readme::DatasetIndex;
use crate::tree::ArchiveTree;

/// What pkt-gen's sizes leave out of a frame.
const FRAME_CHECK_SEQUENCE_BYTES: u64 = 4;

/// Names and values, by file.
pub(super) type Settings = BTreeMap<String, BTreeMap<String, String>>;

/// A folder of results, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// `imported.json`.
    pub results: ImportedResults,
    /// `runs.jsonl`.
    pub runs: Vec<ImportedRun>,
    /// `<variant>.pps`: the published file as it is where the logs give it, else the observations that count, as text;
    /// of each variant whose logs give any.
    pub observations: Vec<(VariantName, String)>,
}

impl Imported {
    /// Takes in every folder of a tree. Nothing of it is judged.
    #[must_use]
    pub fn all(tree: &ArchiveTree) -> Vec<Self> {
        Self::each(tree, |_, imported| imported)
    }

    /// Takes in every folder of a tree, and hands each over by its number as soon as it is taken in, on all
    /// processors.
    pub(crate) fn each<R: Send>(
        tree: &ArchiveTree,
        take: impl Fn(usize, Self) -> R + Sync,
    ) -> Vec<R> {
        let datasets = TreeDataset::all(tree);
        let index = DatasetIndex::new(datasets.iter().map(TreeDataset::candidate));
        let sources = Sources {
            files: &tree.files,
            datasets: &datasets,
            index: &index,
        };
        let numbers: Vec<usize> = (0..tree.folders.len()).collect();
        parallel(&numbers, FEW, |&number| {
            take(number, Self::of(tree, &tree.folders[number], sources))
        })
    }

    fn of(tree: &ArchiveTree, folder: &ResultsFolder, sources: Sources<'_>) -> Self {
        let files = &tree.files;
        let mut names = Names::default();
        let readme = folder.readme(files);
        let mut imported = Self {
            results: ImportedResults {
                schema: IMPORT_SCHEMA_VERSION,
                source: text(&folder.path),
                platform: folder.place.platform.clone(),
                nic: folder.place.nic.clone(),
                topic: folder.place.topic.clone(),
                label: folder.place.label.clone(),
                title: readme.and_then(|readme| Some(readme.title.as_ref()?.text.clone())),
                lab: readme.map_or_else(Vec::new, |readme| {
                    readme.lab.iter().map(|line| line.text.clone()).collect()
                }),
                text: text_of(tree, folder, sources),
                variants: Vec::new(),
                files: folder
                    .members
                    .iter()
                    .map(|&index| imported_file(&files[index]))
                    .collect(),
            },
            runs: Vec::new(),
            observations: Vec::new(),
        };
        let mut with_logs = BTreeSet::new();
        for (index, group) in folder.groups.iter().enumerate() {
            if !group.has_logs() {
                continue;
            }
            let published = folder.dataset_of(index);
            with_logs.extend(published.map(|dataset| dataset.file));
            let settings = tree.settings(folder, group);
            imported.add_group(files, group, published, settings, &mut names);
        }
        for dataset in &folder.datasets {
            if !with_logs.contains(&dataset.file) && !dataset.is_of_profiles {
                let described = folder.described(&dataset.name);
                let settings = described.map(|group| tree.settings(folder, group));
                imported.add_dataset(files, dataset, described, settings, &mut names);
            }
        }
        imported
    }

    fn add_group(
        &mut self,
        files: &[ArchiveFile],
        group: &RunGroup,
        published: Option<&PublishedDataset>,
        settings: Settings,
        names: &mut Names,
    ) {
        let sender = group.runs.iter().flat_map(|run| run.sent(files)).next();
        let command = sender.and_then(|log| log.command.as_ref());
        let family = family_of_key(&group.key).or_else(|| {
            let destination = command?.destination.as_ref()?;
            Some(if destination.first.is_ipv4() {
                AddressFamily::Inet
            } else {
                AddressFamily::Inet6
            })
        });
        // The same key may have been measured in several ways: `RAW.1rx`, `RAW.8rx`.
        let is_usual = group.folder.as_os_str().is_empty()
            || group.folder.to_string_lossy().eq_ignore_ascii_case("RAW");
        let label = if is_usual {
            group.key.clone()
        } else {
            format!("{}-{}", group.key, group.folder.display())
        };
        let name = names.of(&label);
        let median = published.map_or(PublishedMedian::Averaged, |dataset| dataset.median);
        let dataset = published.and_then(|dataset| imported_dataset(files, dataset));
        let measured = group.measured(files, median);
        let published_pps = dataset.as_ref().map_or(&[][..], |of| &of.published_pps);
        let given = published.filter(|dataset| dataset.origin.is_given_by_logs());
        if let Some(content) = given.and_then(|dataset| dataset.content(files)) {
            self.observations.push((name.clone(), content.text.clone()));
        } else {
            let counted = counted(published_pps, &measured);
            if counted.iter().any(|one| one.run.is_some()) {
                let text = format_observations(counted.iter().map(|one| one.pps));
                self.observations.push((name.clone(), text));
            }
        }
        let places = places(published_pps, &measured);
        for ((run, measured), place) in group.runs.iter().zip(measured).zip(places) {
            let published_pps = place.map(|place| published_pps[place]);
            self.runs
                .push(imported_run(files, &name, run, measured, published_pps));
        }
        self.results.variants.push(ImportedVariant {
            name,
            key: group.key.clone(),
            family,
            description: group.description(files).map(description),
            dataset,
            flows: command
                .and_then(fwdlab_pkt_gen::Command::flows)
                .and_then(|flows| u64::try_from(flows).ok()),
            frame_size_bytes: command
                .and_then(|command| command.packet_size_bytes)
                .and_then(|bytes| bytes.checked_add(FRAME_CHECK_SEQUENCE_BYTES)),
            settings,
        });
    }

    fn add_dataset(
        &mut self,
        files: &[ArchiveFile],
        dataset: &PublishedDataset,
        described: Option<&RunGroup>,
        settings: Option<Settings>,
        names: &mut Names,
    ) {
        let name = names.of(&dataset.name);
        self.results.variants.push(ImportedVariant {
            name,
            key: dataset.name.clone(),
            family: family_of_key(&dataset.name),
            description: described
                .and_then(|group| group.description(files))
                .map(description),
            dataset: imported_dataset(files, dataset),
            flows: None,
            frame_size_bytes: None,
            settings: settings.unwrap_or_default(),
        });
    }
}

/// The text that lies in a folder, read once more: what was read of it has no text.
fn text_of(
    tree: &ArchiveTree,
    folder: &ResultsFolder,
    sources: Sources<'_>,
) -> Option<ImportedText> {
    let (file, readme) = folder.readme_file(&tree.files)?;
    let bytes = input(&tree.root, &tree.root.join(&file.path))
        .bytes()
        .ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(made_again(
        &file.path,
        &place(&folder.path),
        &text,
        readme,
        sources,
    ))
}

/// Names that are each given once.
#[derive(Default)]
struct Names(BTreeSet<VariantName>);

impl Names {
    fn of(&mut self, label: &str) -> VariantName {
        let first = VariantName::from_label(label);
        let numbered = |number| first.numbered(number);
        first_free(first.clone(), numbered, |name| self.0.insert(name.clone()))
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

pub(crate) fn imported_file(file: &ArchiveFile) -> ImportedFile {
    let of_problem = |problem: &Problem| (Some(problem.whole()), problem.line);
    let (outcome, (reason, line)) = match &file.outcome {
        Outcome::Read(_) => match file.left_out() {
            None => (FileOutcome::Read, (None, None)),
            Some(problem) => (FileOutcome::ReadInPart, of_problem(&problem)),
        },
        Outcome::Skipped(skip) => (FileOutcome::Skipped, (Some(skip.to_string()), None)),
        Outcome::Failed(problem) => (FileOutcome::Failed, of_problem(problem)),
    };
    ImportedFile {
        path: text(&file.path),
        kind: file.kind.as_str().to_owned(),
        outcome,
        reason,
        line,
    }
}

/// The family that a key names in one of its parts.
fn family_of_key(key: &str) -> Option<AddressFamily> {
    key.split('.').rev().find_map(|part| match part {
        "inet" | "inet4" => Some(AddressFamily::Inet),
        "inet6" => Some(AddressFamily::Inet6),
        _ => None,
    })
}

fn description(info: &BenchInfo) -> ImportedDescription {
    ImportedDescription {
        image: info.image.clone(),
        configuration: info.configuration_name().map(str::to_owned),
        pktgen: info.pktgen.clone(),
        uname: info.uname.as_ref().map(|uname| uname.text.clone()),
        start: info.start.as_ref().map(|start| start.text.clone()),
        end: info.end.as_ref().map(|end| end.text.clone()),
    }
}

fn imported_dataset(files: &[ArchiveFile], dataset: &PublishedDataset) -> Option<ImportedDataset> {
    Some(ImportedDataset {
        path: text(&files[dataset.file].path),
        origin: dataset.origin,
        published_pps: dataset.content(files)?.values.clone(),
    })
}

fn imported_run(
    files: &[ArchiveFile],
    variant: &VariantName,
    run: &Run,
    measured: Measured,
    published_pps: Option<f64>,
) -> ImportedRun {
    let received = run.received(files);
    let path = |index: &usize| text(&files[*index].path);
    ImportedRun {
        schema: IMPORT_SCHEMA_VERSION,
        variant: variant.clone(),
        iteration: run.iteration,
        receiver: run.receiver.as_ref().map(path),
        senders: run.senders.iter().map(path).collect(),
        archive_pps: measured.pps,
        forwarded_pps: received.and_then(LogFacts::steady_pps),
        forwarded_median_pps: received
            .and_then(|log| log.steady.as_ref())
            .map(|steady| steady.median_pps),
        offered_pps: measured.offered_pps,
        published_pps,
        ending: received.map(|log| ending(log.ending).to_owned()),
        stalls: received.map_or(0, |log| log.samples.empty_inside),
        is_profiled: measured.is_profiled,
    }
}

const fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Finished => "finished",
        Ending::Failed => "failed",
        Ending::Terminated => "terminated",
        Ending::Cut => "cut",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use fwdlab_model::imported::DatasetOrigin;

    use super::*;
    use crate::imported_observations;

    /// A folder of files; folders above them are made.
    fn archive(files: &[(&str, String)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// Of the only folder of results in it.
    fn imported(files: &[(&str, String)]) -> Imported {
        let root = archive(files);
        let tree = ArchiveTree::read(root.path()).unwrap();
        let mut imported = Imported::all(&tree);
        assert_eq!(imported.len(), 1, "{:?}", tree.folders);
        imported.remove(0)
    }

    /// A log of forty seconds at one rate.
    fn receiver(rate_pps: u64) -> String {
        let lines = (0..40).map(|second| {
            format!(
                "{second:03}.000000 main_thread [1441] {rate_pps} pps ({rate_pps} pkts in 1000000 usec)\n"
            )
        });
        "CMD: pkt-gen -f rx -i ix1\n".to_owned() + &lines.collect::<String>()
    }

    fn runs(rates_pps: &[u64]) -> Vec<(String, String)> {
        let runs = (1..).zip(rates_pps);
        runs.map(|(run, rate)| (format!("bench.x.{run}.receiver"), receiver(*rate)))
            .collect()
    }

    fn published(rates_pps: &[u64], dataset: &str) -> (DatasetOrigin, Vec<Option<f64>>) {
        let mut files = runs(rates_pps);
        files.push(("x.pps".to_owned(), dataset.to_owned()));
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.clone()))
            .collect();
        let imported = imported(&files);
        let dataset = imported.results.variants[0].dataset.as_ref().unwrap();
        let of_runs = imported.runs.iter().map(|run| run.published_pps);
        (dataset.origin, of_runs.collect())
    }

    #[test]
    fn each_run_has_the_number_that_was_published_of_it() {
        let rates = [100, 200, 300];
        let exact = published(&rates, "100\n200\n300\n");
        let all = vec![Some(100.0), Some(200.0), Some(300.0)];
        assert_eq!(exact, (DatasetOrigin::Logs, all));
        for (dataset, of_runs) in [
            ("100\n300\n", [Some(100.0), None, Some(300.0)]),
            ("100\n999\n300\n", [Some(100.0), None, Some(300.0)]),
            ("999\n200\n300\n", [None, Some(200.0), Some(300.0)]),
            ("999\n", [None, None, None]),
            ("", [None, None, None]),
        ] {
            let expected = (DatasetOrigin::Altered, of_runs.to_vec());
            assert_eq!(published(&rates, dataset), expected, "{dataset:?}");
        }
        // No number counts twice.
        let twice = published(&[100, 100], "100\n").1;
        assert_eq!(twice, [Some(100.0), None]);
    }

    #[test]
    fn runs_are_in_the_order_of_the_dataset_which_is_that_of_their_names() {
        let rates: Vec<u64> = (1..=10).map(|run| run * 100).collect();
        let (origin, of_runs) = published(
            &rates,
            "100\n1000\n200\n300\n400\n500\n600\n700\n800\n900\n",
        );
        assert_eq!(origin, DatasetOrigin::Logs);
        assert_eq!(of_runs[1], Some(1000.0));
        assert!(of_runs.iter().all(Option::is_some));
    }

    #[test]
    fn logs_give_both_observations() {
        let imported = imported(&[
            ("bench.x.1.receiver", receiver(700)),
            ("bench.x.1.sender", receiver(900).replace("-f rx", "-f tx")),
            ("bench.x.2.receiver", "CMD: pkt-gen -f rx -i ix1\n".into()),
        ]);
        let [whole, empty] = &imported.runs[..] else {
            panic!("{:?}", imported.runs);
        };
        assert_eq!(whole.archive_pps, Some(700.0));
        assert_eq!(whole.forwarded_pps, Some(700.0));
        assert_eq!(whole.forwarded_median_pps, Some(700.0));
        assert_eq!(whole.offered_pps, Some(900.0));
        assert_eq!((whole.published_pps, whole.stalls), (None, 0));
        assert_eq!((empty.archive_pps, empty.forwarded_pps), (None, None));
        assert_eq!(empty.senders, [""; 0]);
        let name = imported.results.variants[0].name.clone();
        assert_eq!(imported.observations, [(name, "700\n".to_owned())]);
    }

    #[test]
    fn profiles_are_no_runs_and_datasets_without_logs_are_variants() {
        let imported = imported(&[
            ("P/N/T/results/L/PMC/bench.x.receiver", receiver(700)),
            ("P/N/T/results/L/RAW/bench.x.1.receiver", receiver(800)),
            ("P/N/T/results/L/RAW.8rx/bench.x.1.receiver", receiver(900)),
            ("P/N/T/results/L/y.inet6.pps", "5\n".into()),
        ]);
        let variants = &imported.results.variants;
        let names: Vec<_> = variants
            .iter()
            .map(|variant| variant.name.as_str())
            .collect();
        assert_eq!(names, ["x", "x-raw.8rx", "y.inet6"]);
        assert_eq!(variants[2].family, Some(AddressFamily::Inet6));
        let dataset = variants[2].dataset.as_ref().unwrap();
        assert_eq!(dataset.origin, DatasetOrigin::NoLogs);
        assert_eq!(dataset.published_pps, [5.0]);
        let rates: Vec<_> = imported.runs.iter().map(|run| run.archive_pps).collect();
        assert_eq!(rates, [Some(800.0), Some(900.0)]);
        assert_eq!(imported.results.label.as_deref(), Some("L"));
    }

    #[test]
    fn what_lies_in_pmc_is_no_observation_in_whatever_folder_of_it() {
        let imported = imported(&[
            ("T/results/L/bench.on.1.receiver", receiver(800)),
            ("T/results/L/PMC/on/bench.on.1.receiver", receiver(500)),
            ("T/results/L/PMC/off/bench.off.receiver", receiver(500)),
            ("T/results/L/PMC/off/off.pps", "500\n".into()),
            ("T/results/L/PMC.8rx/off.pps", "500\n".into()),
        ]);
        let of_runs: Vec<_> = imported.runs.iter().map(|run| run.archive_pps).collect();
        assert_eq!(of_runs, [Some(800.0)]);
        assert_eq!(imported.results.variants.len(), 1);
        // The same where no folder is called `results`.
        let root = archive(&[
            ("x/bench.on.1.receiver", receiver(800)),
            ("x/PMC/on/bench.on.1.receiver", receiver(500)),
        ]);
        let tree = ArchiveTree::read(root.path()).unwrap();
        assert_eq!(tree.folders.len(), 1);
        assert_eq!(Imported::all(&tree)[0].runs.len(), 1);
    }

    const GRAPH: &str =
        "@ cycles [12 samples]\n\n100.0%  [12]       ip_input @ /boot/kernel/kernel\n\n";

    #[test]
    fn a_profiled_run_counts_nowhere_and_what_was_published_in_its_place_does() {
        // Another value was published, the run itself, and nothing at all.
        for (dataset, text, counting) in [
            (
                "1001000\n1004000\n1003000\n",
                "1001000\n1004000\n1003000\n",
                &[1_001_000.0, 1_004_000.0, 1_003_000.0][..],
            ),
            (
                "600000\n1004000\n1003000\n",
                "600000\n1004000\n1003000\n",
                &[1_004_000.0, 1_003_000.0],
            ),
            (
                "1004000\n1003000\n",
                "1004000\n1003000\n",
                &[1_004_000.0, 1_003_000.0],
            ),
        ] {
            let imported = imported(&[
                ("T/results/L/bench.x.1.receiver", receiver(600_000)),
                ("T/results/L/bench.x.1.pmc.graph", GRAPH.into()),
                ("T/results/L/bench.x.2.receiver", receiver(1_004_000)),
                ("T/results/L/bench.x.3.receiver", receiver(1_003_000)),
                ("T/results/L/x.pps", dataset.into()),
            ]);
            let profiled: Vec<bool> = imported.runs.iter().map(|run| run.is_profiled).collect();
            assert_eq!(profiled, [true, false, false]);
            let variant = &imported.results.variants[0];
            let counted = imported_observations(variant, &imported.runs);
            let counted: Vec<f64> = counted.iter().map(|one| one.pps).collect();
            assert_eq!(counted, counting, "{dataset}");
            assert_eq!(imported.observations, [(variant.name.clone(), text.into())]);
        }
    }

    #[test]
    fn what_logs_give_is_written_as_it_was_published_byte_for_byte() {
        let x = receiver(700);
        let cut = receiver(700)[..200].to_owned();
        for (log, published) in [
            (&x, "700\n"),
            (&x, "700"),
            (&x, "\n700\n \n"),
            (&x, "700\r\n"),
            (&cut, ""),
            (&cut, "\n"),
        ] {
            let imported = imported(&[
                ("bench.x.1.receiver", log.clone()),
                ("x.pps", published.into()),
            ]);
            let dataset = imported.results.variants[0].dataset.as_ref().unwrap();
            assert_eq!(dataset.origin, DatasetOrigin::Logs, "{published:?}");
            assert_eq!(imported.observations[0].1, published);
        }
    }

    #[test]
    fn settings_are_taken_and_secrets_are_not() {
        const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let imported = imported(&[
            (
                "T/results/L/bench.x.info",
                "IMAGE=\"\"\nCFG=\"x\"\nPKTGEN=\"\"\nUNAME=\"\"".into(),
            ),
            ("T/results/L/bench.x.1.receiver", receiver(700)),
            (
                "T/configs/x/etc/sysctl.conf",
                "net.inet.ip.forwarding=1\n".into(),
            ),
            (
                "T/configs/x/etc/rc.conf",
                format!("gateway_enable=YES\nwireguard_keys=\"{KEY}\"\n"),
            ),
            ("T/configs/x/etc/local/openvpn/dut.key", "hidden".into()),
        ]);
        let settings = &imported.results.variants[0].settings;
        assert_eq!(settings["etc/sysctl.conf"]["net.inet.ip.forwarding"], "1");
        let text = format!("{imported:?}");
        assert!(!text.contains(KEY) && !text.contains("hidden"), "{text}");
    }

    #[test]
    fn names_are_given_once() {
        let mut names = Names::default();
        let given = ["a", "A", "a-2", "a", "", "."].map(|label| names.of(label));
        let given = given.each_ref().map(VariantName::as_str);
        assert_eq!(given, ["a", "a-2", "a-2-2", "a-3", "variant", "variant-2"]);
    }

    #[test]
    fn a_key_names_its_family_in_a_part_of_it() {
        for (key, family) in [
            ("x.inet", Some(AddressFamily::Inet)),
            ("x.inet4", Some(AddressFamily::Inet)),
            ("x.inet6", Some(AddressFamily::Inet6)),
            ("inet6.x", Some(AddressFamily::Inet6)),
            ("inet.inet6", Some(AddressFamily::Inet6)),
            ("xinet6", None),
            ("x-inet6", None),
            ("inet64", None),
            ("", None),
        ] {
            assert_eq!(family_of_key(key), family, "{key}");
        }
    }
}
