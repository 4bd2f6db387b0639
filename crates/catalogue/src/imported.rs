//! What the catalogue takes of results that others published.

use std::collections::BTreeSet;

use fwdlab_model::imported::{ImportedResults, ImportedRun, ImportedVariant};
use fwdlab_model::{Stratum, VariantName};
use fwdlab_netbenches::{Uname, imported_observations, imported_start};
use jiff::Timestamp;

use crate::entry::{Entry, EntryObservation, EntryVariant};

impl Entry {
    /// What the catalogue takes of a folder of imported results: an entry for each system that was
    /// measured there, in the order of its first variant.
    ///
    /// Observations are those that count ([`imported_observations`]); a folder without any has an entry too, so that it
    /// is listed.
    pub(crate) fn of_imported(results: &ImportedResults, runs: &[ImportedRun]) -> Vec<Self> {
        let mut systems: Vec<(System<'_>, Vec<&ImportedVariant>)> = Vec::new();
        for variant in &results.variants {
            let system = System::of(variant);
            match systems.iter_mut().find(|(known, _)| *known == system) {
                Some((_, variants)) => variants.push(variant),
                None => systems.push((system, vec![variant])),
            }
        }
        let entry = |(System { uname, image }, variants): (System<'_>, Vec<&ImportedVariant>)| {
            let starts = variants
                .iter()
                .filter_map(|variant| imported_start(variant));
            // The kernel was built before it was measured; that is near enough where nothing is nearer.
            let date = starts.min().or_else(|| uname.and_then(built));
            let image = told_apart_without(image, &variants);
            let variants: Vec<EntryVariant> = variants
                .iter()
                .map(|variant| entry_variant(variant, image, runs))
                .collect();
            let most = variants
                .iter()
                .map(|variant| variant.observations.len())
                .max()
                .unwrap_or(0);
            Self {
                kind: "imported",
                topic: results
                    .topic
                    .clone()
                    .unwrap_or_else(|| results.source.clone()),
                label: results
                    .label
                    .clone()
                    .unwrap_or_else(|| results.source.clone()),
                question: results.title.clone(),
                platform: results.platform.clone(),
                machine: None,
                nic: results.nic.clone(),
                os: uname.and_then(revision),
                date,
                lab: None,
                lab_kind: None,
                regime: None,
                blocks: u32::try_from(most).unwrap_or(u32::MAX),
                is_finished: true,
                verdict: (most == 0).then(|| "no observations that count".to_owned()),
                variants,
            }
        };
        if systems.is_empty() {
            systems.push((System::default(), Vec::new()));
        }
        systems.into_iter().map(entry).collect()
    }
}

/// What was measured: a kernel that was patched may be called as before, but is of another image.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct System<'a> {
    uname: Option<&'a str>,
    image: Option<&'a str>,
}

impl<'a> System<'a> {
    fn of(variant: &'a ImportedVariant) -> Self {
        let description = variant.description.as_ref();
        Self {
            uname: description.and_then(|description| description.uname.as_deref()),
            image: description.and_then(|description| description.image.as_deref()),
        }
    }
}

/// The release and the state of its source: `FreeBSD 11.1-RELEASE-p1 r322489M`.
fn revision(uname: &str) -> Option<String> {
    let uname = Uname::parse(uname)?;
    let system = format!("{} {}", uname.operating_system, uname.release);
    Some(match uname.revision {
        Some(revision) => format!("{system} {}", revision.text),
        None => system,
    })
}

/// The day on which the kernel was built, as `uname -a` has it: `Fri Sep  8 00:32:53 CEST 2017`.
fn built(uname: &str) -> Option<String> {
    let second = Uname::parse(uname)?.built_s()?;
    let time = Timestamp::from_second(second).ok()?.to_string();
    Some(time.split('T').next().unwrap_or_default().to_owned())
}

fn entry_variant(
    variant: &ImportedVariant,
    image: Option<&str>,
    runs: &[ImportedRun],
) -> EntryVariant {
    let observations = imported_observations(variant, runs);
    let levels = variant.settings.values().flatten();
    EntryVariant {
        name: short_name(variant, image).to_owned(),
        label: without_image(&variant.key, image).to_owned(),
        is_control: false,
        levels: levels
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        observations: (1_u32..)
            .zip(observations)
            .map(|(position, one)| EntryObservation {
                stratum: variant.family.map(Stratum::from),
                position,
                session: None,
                forwarding_rate_pps: one.pps,
                offered_load_pps: one.offered_pps,
            })
            .collect(),
    }
}

/// The name of a variant among those of its image: `forwarding` for `311848.forwarding`, so that it is the same in
/// all of them.
fn without_image<'a>(name: &'a str, image: Option<&str>) -> &'a str {
    let rest = image
        .filter(|image| !image.is_empty())
        .and_then(|image| name.strip_prefix(image)?.strip_prefix(['.', '-']));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// The same of its name in files, whose characters are fewer.
fn short_name<'a>(variant: &'a ImportedVariant, image: Option<&str>) -> &'a str {
    let image = image.map(VariantName::from_label);
    without_image(
        variant.name.as_str(),
        image.as_ref().map(VariantName::as_str),
    )
}

/// The image, where the names of its variants are told apart without it.
fn told_apart_without<'a>(
    image: Option<&'a str>,
    variants: &[&ImportedVariant],
) -> Option<&'a str> {
    let names: BTreeSet<&str> = variants
        .iter()
        .map(|variant| short_name(variant, image))
        .collect();
    image.filter(|_| names.len() == variants.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNAME: &str = "FreeBSD router.example.net 11.1-RELEASE-p1 FreeBSD 11.1-RELEASE-p1 #2 r322489M: \
                         Fri Sep  8 00:32:53 CEST 2017     root@build:/usr/obj/GENERIC  amd64";

    #[test]
    fn a_system_is_named_and_dated_by_its_kernel() {
        assert_eq!(revision(UNAME).unwrap(), "FreeBSD 11.1-RELEASE-p1 r322489M");
        assert_eq!(built(UNAME).unwrap(), "2017-09-07");
        assert_eq!((revision("no system"), built("no system")), (None, None));
    }

    #[test]
    fn a_folder_has_an_entry_for_each_system() {
        let results: ImportedResults = serde_json::from_str(&format!(
            r#"{{"schema":1,"source":"p/n/t/results/l","platform":"p","nic":"n","topic":"t","label":"l",
            "title":null,"lab":[],"files":[],"variants":[
            {{"name":"a","key":"A","family":"inet","description":{{"uname":"{UNAME}",
              "start":"Thu Sep 14 10:00:00 UTC 2017"}},"dataset":null,"flows":null,"frame_size_bytes":null,
              "settings":{{"sysctl.conf":{{"net.x":"1"}}}}}},
            {{"name":"b","key":"b","family":null,"description":null,"dataset":{{"path":"b.pps",
              "origin":"no-logs","published_pps":[3.5,4.5]}},"flows":null,"frame_size_bytes":null,
              "settings":{{}}}}]}}"#
        ))
        .unwrap();
        let run = |iteration: u32, archive_pps: Option<f64>, is_profiled| ImportedRun {
            schema: 1,
            variant: VariantName::from_label("a"),
            iteration: Some(iteration),
            receiver: None,
            senders: vec![],
            archive_pps,
            forwarded_pps: None,
            forwarded_median_pps: None,
            offered_pps: Some(9.0),
            published_pps: None,
            ending: None,
            stalls: 0,
            is_profiled,
        };
        let runs = [
            run(1, Some(1.0), false),
            run(2, Some(7.0), true),
            run(3, None, false),
            run(4, Some(2.0), false),
        ];
        let entries = Entry::of_imported(&results, &runs);
        let [first, second] = &entries[..] else {
            panic!("{entries:?}");
        };
        assert_eq!(first.date.as_deref(), Some("2017-09-14T10:00:00Z"));
        assert_eq!(
            first.os.as_deref(),
            Some("FreeBSD 11.1-RELEASE-p1 r322489M")
        );
        assert_eq!(first.variants[0].levels["net.x"], "1");
        let rates = |entry: &Entry| -> Vec<(u32, f64, Option<f64>)> {
            let observations = entry.variants[0].observations.iter();
            observations
                .map(|one| (one.position, one.forwarding_rate_pps, one.offered_load_pps))
                .collect()
        };
        assert_eq!(rates(first), [(1, 1.0, Some(9.0)), (2, 2.0, Some(9.0))]);
        assert_eq!(rates(second), [(1, 3.5, None), (2, 4.5, None)]);
        assert_eq!((second.date.as_ref(), second.blocks), (None, 2));
    }

    #[test]
    fn a_folder_without_observations_has_an_entry_that_says_so() {
        let results: ImportedResults = serde_json::from_str(
            r#"{"schema":1,"source":"s","platform":"p","nic":"n","topic":"t","label":"l","title":null,"lab":[],
            "files":[],"variants":[]}"#,
        )
        .unwrap();
        let entries = Entry::of_imported(&results, &[]);
        let [entry] = &entries[..] else {
            panic!("{entries:?}");
        };
        assert_eq!((entry.topic.as_str(), entry.label.as_str()), ("t", "l"));
        assert_eq!(entry.blocks, 0);
        assert_eq!(entry.verdict.as_deref(), Some("no observations that count"));
    }

    #[test]
    fn a_variant_has_one_name_in_all_images() {
        let variant = |name: &str, key: &str, image: &str| {
            format!(
                r#"{{"name":"{name}","key":"{key}","family":null,"description":{{"image":"{image}",
                "uname":"{UNAME}"}},"dataset":null,"flows":null,"frame_size_bytes":null,"settings":{{}}}}"#
            )
        };
        let entries_of = |variants: &[String]| {
            let results: ImportedResults = serde_json::from_str(&format!(
                r#"{{"schema":1,"source":"s","platform":"p","nic":"n","topic":"t","label":"l","title":null,
                "lab":[],"files":[],"variants":[{}]}}"#,
                variants.join(",")
            ))
            .unwrap();
            let entries = Entry::of_imported(&results, &[]);
            let names = entries.iter().map(|entry| {
                let variants = entry.variants.iter();
                variants
                    .map(|variant| format!("{} {}", variant.name, variant.label))
                    .collect::<Vec<_>>()
            });
            names.collect::<Vec<_>>()
        };
        let names = entries_of(&[
            variant("main_n1.pf.inet4", "MAIN_n1.pf.inet4", "MAIN_n1"),
            variant("main_n1.forwarding", "MAIN_n1.forwarding", "MAIN_n1"),
            variant("main_n2.pf.inet4", "MAIN_n2.pf.inet4", "MAIN_n2"),
            variant("pf", "pf", ""),
        ]);
        assert_eq!(
            names,
            [
                vec!["pf.inet4 pf.inet4", "forwarding forwarding"],
                vec!["pf.inet4 pf.inet4"],
                vec!["pf pf"],
            ]
        );
        // What would have the same name keeps its own.
        let names = entries_of(&[variant("x.pf", "x.pf", "x"), variant("pf", "pf", "x")]);
        assert_eq!(names, [vec!["x.pf x.pf", "pf pf"]]);
    }
}
