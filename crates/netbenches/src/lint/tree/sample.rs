//! A published tree for the tests that is sound: its numbers are made of its logs, as the archive's scripts make
//! them, and its texts of its numbers.

use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_archive::lint::Finding;
use fwdlab_pkt_gen::{PublishedMedian, published_observation};
use fwdlab_stats::ministat::{Dataset, Layout, Report, general};
use tempfile::TempDir;

use crate::ArchiveTree;
use crate::lint::lint_tree;

/// The folder of results.
pub(super) const FOLDER: &str = "Atom/Intel/hw.igb.num_queues/results/fbsd15";
/// What is offered, in packets per second.
pub(super) const OFFERED_PPS: u64 = 3_000_000;
/// What the runs of the two variants give, in packets per second.
pub(super) const OFF: [u64; 5] = [1_001_000, 1_004_000, 1_003_000, 1_005_000, 1_002_000];
pub(super) const ON: [u64; 5] = [1_101_000, 1_104_000, 1_103_000, 1_105_000, 1_102_000];

const RECEIVER: &str = "pkt-gen -N -f rx -i ix1 -w 2";
const SENDER: &str = "pkt-gen -N -f tx -i ix0 -n 90000000 -4 \
    -d 198.19.10.1:2001-198.19.10.20 -D 90:e2:ba:84:20:38 \
    -s 198.18.10.1:2001-198.18.10.100 -S 00:25:90:91:14:0a -w 2 -l 60";
/// What a log holds in front of its samples.
const HEAD_LINES: usize = 9;

/// A tree in a folder of its own.
pub(super) struct Sample {
    root: TempDir,
}

impl Sample {
    /// Two variants, `off` and `on`, five runs each, and everything that is published of them.
    pub(super) fn sound() -> Self {
        let sample = Self {
            root: tempfile::tempdir().unwrap(),
        };
        sample.measure("off", &OFF);
        sample.measure("on", &ON);
        sample.publish(&[("off", &OFF), ("on", &ON)]);
        sample
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    /// A file of the folder, or with `../` of another.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        let mut folder = self.root.path().join(FOLDER);
        let mut name = name;
        while let Some(rest) = name.strip_prefix("../") {
            folder.pop();
            name = rest;
        }
        folder.join(name)
    }

    /// Writes a file; a log with times of its own, as no two logs have the same.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let own = name.bytes().fold(0_u32, |sum, byte| {
            (sum.wrapping_mul(31).wrapping_add(byte.into())) % 1_000_000
        });
        match str::from_utf8(content.as_ref()) {
            Ok(log) if log.starts_with("CMD on bigone") => {
                fs::write(path, log.replace(".000000 ", &format!(".{own:06} "))).unwrap();
            }
            _ => fs::write(path, content).unwrap(),
        }
    }

    /// A file under the name of another.
    pub(super) fn copy(&self, from: &str, to: &str) {
        fs::copy(self.path(from), self.path(to)).unwrap();
    }

    pub(super) fn edit(&self, name: &str, edit: impl Fn(String) -> String) {
        let before = fs::read_to_string(self.path(name)).unwrap();
        let after = edit(before.clone());
        assert_ne!(before, after, "{name}: nothing was changed");
        self.write(name, after);
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// The logs of a variant's runs, at constant rates.
    pub(super) fn measure(&self, key: &str, rates: &[u64]) {
        self.write(
            &format!("RAW/bench.{key}.info"),
            format!("IMAGE=\"302145\" CFG=\"{key}\" PKTGEN=\"\" UNAME=\"\"\n"),
        );
        for (run, &rate) in rates.iter().enumerate() {
            let name = format!("RAW/bench.{key}.{}", run + 1);
            let log = receiver(&[rate; 30]);
            let published = published_observation(log.as_bytes(), PublishedMedian::Averaged);
            assert_eq!(published, Some(rate.to_string()));
            self.write(&format!("{name}.receiver"), log);
            self.write(&format!("{name}.sender"), sender(OFFERED_PPS));
        }
    }

    /// The datasets, the plot's table and the text, all of the same values.
    pub(super) fn publish(&self, datasets: &[(&str, &[u64])]) {
        let mut table = "#index median minimum maximum\n".to_owned();
        for (name, values) in datasets {
            let lines: String = values.iter().map(|value| format!("{value}\n")).collect();
            self.write(&format!("{name}.pps"), lines);
            let shown = dataset(name, values);
            let figures = [shown.median(), shown.minimum(), shown.maximum()];
            table += name;
            for figure in figures {
                table += &format!(" {}", general(figure, 8));
            }
            table += "\n";
        }
        self.write("gnuplot.data", table);
        self.text("", datasets);
    }

    /// A text with a block as ministat prints it, and what stands above it in line 3.
    pub(super) fn text(&self, above: &str, rows: &[(&str, &[u64])]) {
        let rows = rows.iter().map(|(name, values)| dataset(name, values));
        let block = Report::new(rows.collect(), Layout::default()).unwrap();
        let text = format!(
            "# Impact of hw.igb.num_queues on forwarding performance\n\n{above}\n```\n{block}```\n"
        );
        self.write("README.md", text);
    }

    pub(super) fn lint(&self) -> Vec<Finding> {
        lint_tree(&ArchiveTree::read(self.root.path()).unwrap())
    }

    /// What is found: the code, and a line for each piece of evidence.
    pub(super) fn found(&self) -> Vec<String> {
        let of = |finding: &Finding| self.shown(finding);
        self.lint().iter().map(of).collect()
    }

    pub(super) fn shown(&self, finding: &Finding) -> String {
        let mut text = finding.rule.code.to_owned();
        for evidence in &finding.evidence {
            let results = self.path("");
            let path = evidence.path.strip_prefix(&results);
            let path = path.unwrap_or_else(|_| evidence.path.strip_prefix(self.root()).unwrap());
            let line = evidence
                .line
                .map_or(String::new(), |line| format!(":{line}"));
            let side = evidence.side.as_str();
            text += &format!("\n{side} {}{line}: {}", path.display(), evidence.says);
        }
        text
    }
}

fn dataset(name: &str, values: &[u64]) -> Dataset {
    let values = values.iter().map(|&value| value as f64).collect();
    Dataset::new(name, values).unwrap()
}

/// A receiver's log with a sample of a second for each rate.
pub(super) fn receiver(rates_pps: &[u64]) -> String {
    log(RECEIVER, rates_pps, "Received")
}

/// A sender's log of 30 s.
pub(super) fn sender(rate_pps: u64) -> String {
    let command = SENDER.replace("90000000", &(30 * rate_pps).to_string());
    log(&command, &[rate_pps; 30], "Sent")
}

fn log(command: &str, rates_pps: &[u64], done: &str) -> String {
    let mut text = format!("CMD on bigone: sudo {command}\n");
    for line in [
        "main [3036] interface is ix1",
        "main [3159] using default burst size: 512",
        "main [3167] running on 1 cpus (have 64)",
        "extract_ip_range [477] range is 10.0.0.1:1234 to 10.0.0.1:1234",
        "extract_ip_range [477] range is 10.1.0.1:1234 to 10.1.0.1:1234",
        "start_threads [2695] Wait 2 secs for phy reset",
        "start_threads [2697] Ready...",
        "main_thread [2786] 0 pps (0 pkts 0 bps in 1000000 usec) 0.00 avg_batch 0 min_space",
    ] {
        text += &format!("100.000000 {line}\n");
    }
    assert_eq!(text.lines().count(), HEAD_LINES);
    for (second, rate) in rates_pps.iter().enumerate() {
        text += &format!(
            "{}.000000 main_thread [2786] {rate} pps ({rate} pkts {} bps in 1000000 usec) 2.95 avg_batch 2040 min_space\n",
            second + 101,
            480 * rate
        );
    }
    let packets: u64 = rates_pps.iter().sum();
    text + &format!(
        "{done} {packets} packets {} bytes {packets} events 60 bytes each in {}.00 seconds.\n\
         Speed: {} pps Bandwidth: 1000 bps (raw 1000 bps). Average batch: 2.96 pkts\n",
        60 * packets,
        rates_pps.len(),
        packets / rates_pps.len() as u64
    )
}
