//! The reader of pkt-gen logs against the part of the public archive that lies in the shared data.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_pkt_gen::{
    LogReader, PktGenError, PktGenLog, PublishedMedian, Role, Sample, published_observation,
    steady_state,
};

/// What a log's file name says: `bench.<key>.<iteration>.<role>`, without the iteration under `PMC`.
struct Name {
    key: String,
    is_receiver: bool,
}

fn name(path: &Path) -> Option<Name> {
    let name = path.file_name()?.to_str()?.strip_prefix("bench.")?;
    let (name, role) = name.rsplit_once('.')?;
    let is_receiver = role == "receiver";
    if !is_receiver && !role.starts_with("sender") {
        return None;
    }
    let key = match name.rsplit_once('.') {
        Some((key, iteration)) if iteration.parse::<u32>().is_ok() => key,
        _ => name,
    };
    Some(Name {
        key: key.to_owned(),
        is_receiver,
    })
}

fn logs(archive: &Path) -> Vec<(PathBuf, Name)> {
    let found = testkit::files_below(archive);
    let named = found.into_iter().map(|path| (name(&path), path));
    named
        .filter_map(|(name, path)| Some((path, name?)))
        .collect()
}

/// What was counted, a line each.
fn lines(counts: &BTreeMap<String, usize>) -> String {
    let lines = counts
        .iter()
        .map(|(what, count)| format!("{count} {what}\n"));
    lines.collect()
}

fn count(counts: &mut BTreeMap<String, usize>, what: impl Into<String>) {
    *counts.entry(what.into()).or_default() += 1;
}

#[test]
fn every_log_is_read_and_every_line_is_known() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let (mut kinds, mut noise) = (BTreeMap::new(), BTreeMap::new());
    let mut without_steady_state = BTreeMap::new();
    let mut unknown = Vec::new();
    let (mut samples, mut rates) = (0, Vec::new());
    for (path, name) in logs(&archive) {
        let text = fs::read(&path).unwrap();
        let shown = path.strip_prefix(&archive).unwrap().display().to_string();
        let log = match PktGenLog::parse(&text) {
            Ok(log) => log,
            Err(PktGenError::Equilibrium { .. }) => {
                count(&mut kinds, "equilibrium");
                continue;
            }
            Err(error) => panic!("{shown}: {error}"),
        };
        assert_eq!(log.role == Role::Receiver, name.is_receiver, "{shown}");
        let family = if log.samples.iter().all(|sample| sample.details.is_some()) {
            "with details"
        } else {
            "without"
        };
        count(
            &mut kinds,
            format!("{:?} {family} {:?}", log.role, log.ending),
        );
        for (kind, lines) in &log.noise {
            *noise.entry(format!("{kind:?}")).or_default() += lines;
        }
        unknown.extend(log.unknown.iter().map(|line| (shown.clone(), line.clone())));

        // No sample is missed, and what is read is what is printed.
        let printed = String::from_utf8_lossy(&text).matches(" pkts ").count();
        assert_eq!(log.samples.len(), printed, "{shown}");
        samples += printed;
        let mut before: Option<&Sample> = None;
        for sample in &log.samples {
            let place = format!("{shown}:{}", sample.line);
            let rounding = sample.rate_pps() - sample.printed_pps as f64;
            assert!(rounding.abs() <= 0.5, "{place}");
            // The clock that is shown and the interval agree.
            let step_us = before.map(|before| sample.end_us - before.end_us);
            let apart_us = step_us.map_or(0, |step_us| step_us.abs_diff(sample.interval_us));
            assert!(apart_us < 500_000, "{place}: {apart_us}");
            before = Some(sample);
        }
        match steady_state(&log) {
            None => {
                let is_empty = log.samples.iter().all(|sample| sample.packets == 0);
                let why = if is_empty { "no packet" } else { "short" };
                count(
                    &mut without_steady_state,
                    format!("{why}, {:?}", log.ending),
                );
            }
            Some(steady) => {
                let published = published_observation(&text, PublishedMedian::Averaged);
                if let Some(published) = published.filter(|_| name.is_receiver) {
                    let published: f64 = published.parse().unwrap();
                    rates.push((
                        steady.median_pps / published,
                        steady.mean_pps() / steady.median_pps,
                    ));
                }
            }
        }
    }
    assert_eq!(unknown, []);
    assert_eq!(samples, 244_882);
    assert_eq!(
        lines(&kinds),
        "\
50 Receiver with details Cut
7 Receiver with details Failed
219 Receiver with details Finished
1509 Receiver with details Terminated
55 Receiver without Terminated
1 Sender with details Cut
1659 Sender with details Finished
175 Sender with details Terminated
49 Sender without Finished
6 Sender without Terminated
310 equilibrium
"
    );
    assert_eq!(
        lines(&noise),
        "\
170 InterruptHandler
21 Ping
7 PollError
4 PollTimeout
30 ShellTrace
7 ThreadFailed
404 TruncatedPacket
1360 WaitingForPackets
"
    );
    assert_eq!(
        lines(&without_steady_state),
        "10 no packet, Terminated\n7 short, Failed\n1 short, Finished\n"
    );

    // How far the core is from the published number, and, where a device went from one mode to
    // another in the middle, its mean from its median.
    let apart = |ratios: &[f64], by: f64| {
        ratios
            .iter()
            .filter(|ratio| (*ratio - 1.0).abs() > by)
            .count()
    };
    let (to_published, to_median): (Vec<f64>, Vec<f64>) = rates.into_iter().unzip();
    assert_eq!(
        [0.0024, 0.01].map(|by| apart(&to_published, by)),
        [26, 7],
        "of {}",
        to_published.len()
    );
    assert_eq!([0.01, 0.05].map(|by| apart(&to_median, by)), [24, 7]);
}

#[test]
fn a_log_read_while_it_is_written_is_the_same_log() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let (mut logs_read, mut samples) = (0, 0);
    for (path, _) in logs(&archive) {
        let text = fs::read(&path).unwrap();
        let Ok(whole) = PktGenLog::parse(&text) else {
            continue;
        };
        let shown = path.display().to_string();
        let mut reader = LogReader::default();
        let (mut packets, mut time_us) = (0, 0);
        for line in String::from_utf8_lossy(&text).lines() {
            let before = reader.samples().len();
            reader.read(line).unwrap();
            for sample in &reader.samples()[before..] {
                assert!(reader.has_begun(), "{shown}");
                packets += sample.packets;
                time_us += sample.interval_us;
            }
        }
        let of_whole = |of: fn(&Sample) -> u64| whole.samples.iter().map(of).sum::<u64>();
        assert_eq!(packets, of_whole(|sample| sample.packets), "{shown}");
        assert_eq!(time_us, of_whole(|sample| sample.interval_us), "{shown}");
        // The reports go on without a gap, so that their sum is the time of the log's own clock.
        if let [first, .., last] = &whole.samples[..] {
            let by_clock_us = last.end_us + first.interval_us;
            let apart_us = time_us.abs_diff(by_clock_us);
            assert!(
                apart_us < 2_000 * whole.samples.len() as u64,
                "{shown}: {apart_us}"
            );
        }
        // What is sent is more than the reports say, by what was under way when it ended.
        if whole.role == Role::Sender
            && let Some(summary) = reader.summary()
        {
            assert!(summary.packets >= packets, "{shown}");
        }
        samples += reader.samples().len();
        assert_eq!(reader.finish().unwrap(), whole, "{shown}");
        logs_read += 1;
    }
    assert_eq!((logs_read, samples), (3730, 244_882));
}

/// The datasets of a results folder, by name.
fn datasets(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path());
    let named = entries.filter_map(|path| {
        let name = path.file_name()?.to_str()?.to_owned();
        let is_dataset = path.is_file() && !name.starts_with("bench.");
        Some((name, is_dataset.then(|| fs::read_to_string(&path).ok())??))
    });
    named.collect()
}

#[test]
fn published_numbers_are_made_again_digit_for_digit() {
    let archive = testkit::require_shared!("corpus/netbenches");
    // By folder and key; within them in the order of `ls`.
    let mut groups: BTreeMap<(PathBuf, String), Vec<PathBuf>> = BTreeMap::new();
    for (path, name) in logs(&archive) {
        // What was profiled was not published.
        let folder = path.parent().unwrap().to_owned();
        if name.is_receiver && !folder.ends_with("PMC") {
            groups.entry((folder, name.key)).or_default().push(path);
        }
    }
    let mut tally = BTreeMap::new();
    let mut altered = BTreeMap::new();
    for ((folder, key), receivers) in groups {
        let results = if folder.ends_with("RAW") {
            folder.parent().unwrap()
        } else {
            &folder
        };
        let shown = results.strip_prefix(&archive).unwrap().join(&key);
        let datasets = datasets(results);
        let names = [format!("{key}.pps"), key.clone(), format!("pps.{key}")];
        let published = names.iter().find_map(|name| datasets.get(name));
        let made = |median| {
            let observations = receivers
                .iter()
                .filter_map(|path| published_observation(&fs::read(path).unwrap(), median));
            observations.collect::<Vec<_>>()
        };
        let text = |lines: &[String]| {
            lines
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        };
        let made_now = made(PublishedMedian::Averaged);
        let kind = match published {
            Some(published) if text(&made_now) == *published => "exact",
            Some(published) if text(&made(PublishedMedian::Upper)) == *published => {
                "exact with the upper median"
            }
            Some(published) => {
                let published: Vec<String> = published.lines().map(str::to_owned).collect();
                let same = made_now
                    .iter()
                    .filter(|line| published.contains(line))
                    .count();
                let kind = format!(
                    "{same} of {} runs, {} published",
                    made_now.len(),
                    published.len()
                );
                altered.insert(shown.display().to_string(), kind);
                "altered by hand"
            }
            // Renamed after it was made.
            None if datasets.values().any(|dataset| *dataset == text(&made_now)) => {
                "exact under another name"
            }
            None => "without a dataset",
        };
        count(&mut tally, kind);
    }
    assert_eq!(
        lines(&tally),
        "\
16 altered by hand
335 exact
8 exact under another name
5 exact with the upper median
"
    );
    // In `fbsd12-head.iflib` a profiled run took the place of the first run's log. Of the others four
    // had an outlier deleted and two a value replaced, after the tables beside them were made.
    let altered: String = altered
        .iter()
        .map(|(path, kind)| format!("{path}: {kind}\n"))
        .collect();
    assert_eq!(
        altered,
        "\
AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib/311848: 4 of 5 runs, 5 published
AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib/311849: 4 of 5 runs, 5 published
AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib/312904: 4 of 5 runs, 5 published
AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib/312905: 4 of 5 runs, 5 published
AMD_GX-412TC_4Cores/Intel_i210AT/firewalls/results/fbsd12-head.iflib/313448: 4 of 5 runs, 5 published
Atom_C2558_4Cores/Intel_i350/LROTSO/results/fbsd11.1-yandex/enabled-default: 4 of 5 runs, 4 published
Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd12-head.iflib/311848: 4 of 5 runs, 5 published
Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd12-head.iflib/311849: 4 of 5 runs, 5 published
Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd12-head.iflib/312904: 4 of 5 runs, 5 published
Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd12-head.iflib/312905: 4 of 5 runs, 5 published
Atom_C2558_4Cores/Intel_i350/firewalls/results/fbsd12-head.iflib/313448: 4 of 5 runs, 5 published
Atom_C2558_4Cores/Intel_i350/hw.intr_storm_threshold/results/fbsd11.1-yandex/9000: 4 of 5 runs, 4 published
Atom_C2558_4Cores/Intel_i350/ipf-stateless-rules/results/fbsd11.1-yandex/1: 4 of 5 runs, 5 published
Atom_C2758_8Cores/Intel_82599/firewalls/results/fbsd11.1-yandex/forwarding.inet6: 4 of 5 runs, 5 published
Xeon_E5-2650_8Cores/Chelsio_T540-CR/firewalls/results/fbsd.2017/311703: 4 of 5 runs, 4 published
Xeon_E5-2650v4_2x12Cores/Intel_82599ES/hw.ix.num_queues/results/fbsd11.1-yandex/16: 4 of 5 runs, 4 published
"
    );
}
