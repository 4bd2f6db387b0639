//! Mutants of the reference router: code in which a knob, or what it switches, does nothing. A test has to
//! fail for each.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use crate::command::{self, cargo, command, output, repository};

/// Longer than the tests of any mutant take. Whether one hangs or the machine is slow cannot be told, so
/// that neither counts as a failed test.
const TEST_MAX_S: &str = "300";

/// Cargo's exit code where tests failed or fell over; `timeout` has others.
const TESTS_FAILED: i32 = 101;

/// A change to the code that some test has to notice.
#[derive(Clone, Debug)]
struct Mutant {
    /// What no longer happens.
    name: String,
    /// Below `crates`.
    file: &'static str,
    /// Stands in the file exactly once.
    from: &'static str,
    to: String,
    tests: Tests,
}

/// The tests that are run: arguments of `cargo test`, and which of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tests {
    target: &'static [&'static str],
    filter: &'static str,
}

const fn tests(target: &'static [&'static str], filter: &'static str) -> Tests {
    Tests { target, filter }
}

const KNOBS: Tests = tests(&["--package", "fwdlab-router", "--test", "knobs"], "");
const DROPS: Tests = tests(&["--package", "fwdlab-router", "--test", "drops"], "");
const PREFETCH: Tests = tests(&["--package", "fwdlab-router", "--test", "prefetch"], "");
const PLACEMENT: Tests = tests(&["--package", "fwdlab-router", "--lib"], "placement::");
const LAB: Tests = tests(&["--package", "fwdlab-lab", "--lib"], "router::");
const HARVEST: Tests = tests(&["--package", "fwdlab-router", "--lib"], "harvest::");

/// The knobs, as the code names them, with the tests of their levels.
const LEVELS: [(&str, Tests); 13] = [
    ("OverrideNrxds", KNOBS),
    ("OverrideNtxds", KNOBS),
    ("TxAbdicate", KNOBS),
    ("SimpleTx", KNOBS),
    ("TxReclaimThresh", KNOBS),
    ("Prefetch", KNOBS),
    ("L2Prepend", KNOBS),
    ("HarvestMask", KNOBS),
    ("Ipv4Redirect", KNOBS),
    ("Ipv6Redirect", KNOBS),
    ("HyperthreadingAllowed", PLACEMENT),
    ("HyperthreadingIntrAllowed", PLACEMENT),
    ("UseLogicalCores", PLACEMENT),
];

const LEVEL: &str = "pub fn level(&self, knob: Knob) -> u32 {";

const WORKER: &str = "router/src/worker.rs";
const TRANSMIT: &str = "router/src/transmit.rs";
const RECEIVE: &str = "router/src/receive.rs";
const INPUT: &str = "router/src/nodes/input.rs";
const INET: &str = "router/src/nodes/inet.rs";
const INET6: &str = "router/src/nodes/inet6.rs";
const SLOW_PATH: &str = "router/src/slow_path.rs";

/// What a knob switches: a name, the file, what stands there, what stands there instead, and the tests.
type PathMutant = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Tests,
);

#[rustfmt::skip]
const PATHS: &[PathMutant] = &[
    ("override_nrxds: the receive ring has its default size", "router/src/router.rs",
     "take(nrxds)", "take(1024)", KNOBS),
    ("override_ntxds: the transmit ring has its default size", "router/src/router.rs",
     "(0..ntxds)", "(0..1024)", KNOBS),

    ("tx_abdicate: producers always drain", TRANSMIT,
     "ring.enqueue(packets, abdicate)", "ring.enqueue(packets, abdicate && false)", KNOBS),
    ("tx_abdicate: producers never drain", TRANSMIT,
     "ring.enqueue(packets, abdicate)", "ring.enqueue(packets, abdicate || true)", KNOBS),
    ("tx_abdicate: not where a vector leaves through several ports", WORKER,
     "let queue = &self.shared.transmit[port][queue];
                    let own_packets = packets.iter().filter(|packet| packet.is_own).count();
                    let accepted = transmit(queue, packets, self.paths.abdicate, &mut own);",
     "let queue = &self.shared.transmit[port][queue];
                    let own_packets = packets.iter().filter(|packet| packet.is_own).count();
                    let accepted = transmit(queue, packets, false, &mut own);", KNOBS),
    ("tx_abdicate: the task drains nothing", TRANSMIT,
     "own.counters.add(Event::TaskDrains, 1);
            drain(drainer, descriptors, own);",
     "own.counters.add(Event::TaskDrains, 1);
            let _ = (drainer, descriptors);", KNOBS),

    ("simple_tx: always the ring of many producers", TRANSMIT,
     "path: if is_simple {", "path: if is_simple && false {", KNOBS),
    ("simple_tx: always the lock", TRANSMIT,
     "path: if is_simple {", "path: if is_simple || true {", KNOBS),
    ("simple_tx: the lock's path takes nothing back", TRANSMIT,
     "descriptors.reclaim(own);
    let count", "let count", KNOBS),

    ("tx_reclaim_thresh: whatever is completed is taken back", TRANSMIT,
     "&& self.ring.completed() > self.reclaim_threshold", "&& self.ring.completed() > 0", KNOBS),
    ("tx_reclaim_thresh: one descriptor too early", TRANSMIT,
     "self.ring.outstanding() > self.reclaim_threshold
            && self.ring.completed() > self.reclaim_threshold",
     "self.ring.outstanding() >= self.reclaim_threshold
            && self.ring.completed() >= self.reclaim_threshold", KNOBS),
    ("tx_reclaim_thresh: nothing is taken back before the ring is full", TRANSMIT,
     "if self.ring.outstanding() > self.reclaim_threshold",
     "if false && self.ring.outstanding() > self.reclaim_threshold", KNOBS),
    ("tx_reclaim_thresh: a full ring is not taken back", TRANSMIT,
     "if free(&self.ring) < wanted &&", "if false && free(&self.ring) < wanted &&", KNOBS),
    ("tx_reclaim_thresh: a reclaim takes nothing back", TRANSMIT,
     "let done = self.ring.done(usize::MAX);", "let done = self.ring.done(0);", KNOBS),
    ("doorbells: the device is not told", TRANSMIT,
     "self.ring.doorbell();", "", KNOBS),

    ("prefetch: headers always", RECEIVE,
     "if prefetch {
        receive_prefetching", "if prefetch || true {
        receive_prefetching", KNOBS),
    ("prefetch: headers never", RECEIVE,
     "if prefetch {
        receive_prefetching", "if prefetch && false {
        receive_prefetching", KNOBS),
    ("prefetch: headers counted, not fetched", RECEIVE,
     "prefetch_read(full.head());", "let _ = (full.head(), prefetch_read::<u8>);", PREFETCH),
    ("prefetch: lookups always", INPUT,
     "(false, false) => input_plain", "(false, false) => input_prefetching", KNOBS),
    ("prefetch: lookups always, with harvesting", INPUT,
     "(false, true) => input_harvesting", "(false, true) => input_prefetching_and_harvesting", KNOBS),
    ("prefetch: lookups never", INPUT,
     "(true, false) => input_prefetching", "(true, false) => input_plain", KNOBS),
    ("prefetch: lookups never, with harvesting", INPUT,
     "(true, true) => input_prefetching_and_harvesting", "(true, true) => input_harvesting", KNOBS),
    ("prefetch: IPv4 lookups counted, not fetched", INPUT,
     "network.inet.prefetch(destination);", "let _ = destination;", PREFETCH),
    ("prefetch: IPv6 lookups counted, not fetched", INPUT,
     "network.inet6.prefetch(destination);", "let _ = destination;", PREFETCH),
    ("prefetch: the IPv4 table fetches nothing", "router/src/fib/inet.rs",
     "prefetch(&self.first[(destination >> 8) as usize]);",
     "let _ = (destination, prefetch::<u8>);", PREFETCH),
    ("prefetch: the IPv6 table fetches nothing", "router/src/fib/inet6.rs",
     "prefetch(&self.root[(destination >> (128 - ROOT_BITS)) as usize]);",
     "let _ = destination;", PREFETCH),
    ("prefetch: IPv6 lookups never fetch their next steps", INET6,
     "if prefetch {
        inet6_lookup_prefetching", "if prefetch && false {
        inet6_lookup_prefetching", KNOBS),
    ("prefetch: IPv6 lookups always fetch their next steps", INET6,
     "if prefetch {
        inet6_lookup_prefetching", "if prefetch || true {
        inet6_lookup_prefetching", KNOBS),
    ("prefetch: the steps of IPv6 lookups are counted, not fetched", INET6,
     "fib.lookup_vector_prefetching(destinations, next_hops);",
     "fib.lookup_vector(destinations, next_hops);", PREFETCH),
    ("prefetch: a cell of the IPv6 table is not fetched", "router/src/fib/inet6.rs",
     "prefetch(&self.cells[cell]);", "", PREFETCH),
    ("prefetch: a run of the IPv6 table is not fetched", "router/src/fib/inet6.rs",
     "prefetch(&run[0]);
                        prefetch(&run[RUN]);", "let _ = run;", PREFETCH),

    ("l2_prepend: always the ready header", "router/src/link.rs",
     "if L2_PREPEND && let", "if let", KNOBS),
    ("l2_prepend: looked up anyway", "router/src/link.rs",
     "if L2_PREPEND && let", "if L2_PREPEND && false && let", KNOBS),
    ("l2_prepend: IPv4 has the ready header at 0", WORKER,
     "(false, true) => inet_rewrite::<false, true>", "(false, true) => inet_rewrite::<true, true>", KNOBS),
    ("l2_prepend: IPv4 has the ready header at 0, without redirects", WORKER,
     "(false, false) => inet_rewrite::<false, false>", "(false, false) => inet_rewrite::<true, false>", KNOBS),
    ("l2_prepend: IPv6 has the ready header at 0", WORKER,
     "(false, true) => inet6_rewrite::<false, true>", "(false, true) => inet6_rewrite::<true, true>", KNOBS),
    ("l2_prepend: IPv6 has the ready header at 0, without redirects", WORKER,
     "(false, false) => inet6_rewrite::<false, false>", "(false, false) => inet6_rewrite::<true, false>", KNOBS),
    ("l2_prepend: not in the slow path of IPv4", SLOW_PATH,
     "inet::rewrite::<false, false>", "inet::rewrite::<true, false>", KNOBS),
    ("l2_prepend: not in the slow path of IPv6", SLOW_PATH,
     "inet6::rewrite::<false, false>", "inet6::rewrite::<true, false>", KNOBS),
    ("l2_prepend: not for what the router sends itself", SLOW_PATH,
     "write_link_header::<false, _>", "write_link_header::<true, _>", KNOBS),

    ("harvest mask: every bit is set", "router/src/harvest.rs",
     "self.0 >> source.bit & 1 == 1", "self.0 | 1 << source.bit != 0", KNOBS),
    ("harvest mask: interrupts whatever it says", WORKER,
     "harvest_interrupt: mask.has(INTERRUPT)", "harvest_interrupt: mask.has(INTERRUPT) || true", KNOBS),
    ("harvest mask: frames whatever it says", WORKER,
     "harvest_ether: mask.has(NET_ETHER)", "harvest_ether: mask.has(NET_ETHER) || true", KNOBS),
    ("harvest: frames counted, not harvested", INPUT,
     "harvester.harvest(NET_ETHER, head);", "let _ = (harvester, NET_ETHER);", KNOBS),
    ("harvest: interrupts counted, not harvested", WORKER,
     "self.shared.harvester.harvest(INTERRUPT, &entropy);", "let _ = (INTERRUPT, &entropy);", KNOBS),
    ("harvest: an event leaves nothing in the queue", "router/src/harvest.rs",
     "queue.events[index] = event;", "let _ = event;", HARVEST),
    ("harvest: what happens while the queue is full is lost", "router/src/harvest.rs",
     "older.counter ^= event.counter.rotate_left(32);
            older.entropy ^= event.entropy;", "let _ = older;", HARVEST),
    ("harvest: the pool is not fed", "router/src/harvest.rs",
     "self.lock().pool = hash.finalize().into();", "let _ = hash;", HARVEST),

    ("redirect: IPv4 is always tested", WORKER,
     "(true, false) => inet_rewrite::<true, false>", "(true, false) => inet_rewrite::<true, true>", KNOBS),
    ("redirect: IPv4 is never tested", WORKER,
     "(true, true) => inet_rewrite::<true, true>", "(true, true) => inet_rewrite::<true, false>", KNOBS),
    ("redirect: IPv6 is always tested", WORKER,
     "(true, false) => inet6_rewrite::<true, false>", "(true, false) => inet6_rewrite::<true, true>", KNOBS),
    ("redirect: IPv6 is never tested", WORKER,
     "(true, true) => inet6_rewrite::<true, true>", "(true, true) => inet6_rewrite::<true, false>", KNOBS),
    ("redirect: IPv4 tests are counted, not done", INET,
     "|| REDIRECT && hop.egress == ingress", "|| REDIRECT && false && hop.egress == ingress", DROPS),
    ("redirect: IPv4 packets are told of whatever the level", INET,
     "|| REDIRECT && hop.egress == ingress", "|| hop.egress == ingress", DROPS),
    ("redirect: IPv6 tests are counted, not done", INET6,
     "|| REDIRECT && hop.egress == ingress", "|| REDIRECT && false && hop.egress == ingress", DROPS),
    ("redirect: IPv6 packets are told of whatever the level", INET6,
     "|| REDIRECT && hop.egress == ingress", "|| hop.egress == ingress", DROPS),
    ("redirect: nobody is told by IPv4", SLOW_PATH,
     "self.redirect_inet(&packet, site);", "", DROPS),
    ("redirect: nobody is told by IPv6", SLOW_PATH,
     "self.redirect_inet6(&packet, site);", "", DROPS),

    ("hyperthreading_intr_allowed: every thread receives", "router/src/placement.rs",
     "second_threads == SecondThreads::Receive || is_first(cpu)",
     "second_threads == SecondThreads::Receive || is_first(cpu) || true", PLACEMENT),
    ("hyperthreading_intr_allowed: only first threads receive", "router/src/placement.rs",
     "second_threads == SecondThreads::Receive || is_first(cpu)",
     "second_threads == SecondThreads::Receive && is_first(cpu) || is_first(cpu)", PLACEMENT),
    ("hyperthreading_allowed: what it leaves out is used", "router/src/placement.rs",
     "Some(knob) if !allowed =>", "Some(knob) if !allowed && false =>", PLACEMENT),
    ("hyperthreading_allowed: of no use without second threads, and not said", "router/src/placement.rs",
     "None if !allowed =>", "None if !allowed && false =>", PLACEMENT),
    ("use_logical_cores: transmits on the receiving CPU", "router/src/placement.rs",
     "if beside { other() }", "if beside && false { other() }", PLACEMENT),
    ("use_logical_cores: always transmits on the other CPU", "router/src/placement.rs",
     "if beside { other() }", "if beside || true { other() }", PLACEMENT),

    ("the lab: no level reaches the router", "lab/src/router/setting.rs",
     "setting.knobs = setting.knobs.with(*knob, number);", "let _ = (knob, number);", LAB),
    ("the lab: every queue transmits where it receives", "lab/src/router/arrangement.rs",
     "let transmits = worker_on(queue.tx, &mut workers);",
     "let transmits = worker_on(queue.rx, &mut workers);", LAB),
];

/// All mutants: of the level of every knob, then of what they switch.
fn mutants() -> Vec<Mutant> {
    let levels = LEVELS.iter().map(|&(knob, tests)| Mutant {
        name: format!("{knob}: every level is the default"),
        file: "router/src/knobs.rs",
        from: LEVEL,
        to: format!(
            "{LEVEL}
        if knob == Knob::{knob} {{
            return u32::try_from(knob.default_level()).unwrap_or_default();
        }}"
        ),
        tests,
    });
    let paths = PATHS.iter().map(|&(name, file, from, to, tests)| Mutant {
        name: name.to_owned(),
        file,
        from,
        to: to.to_owned(),
        tests,
    });
    levels.chain(paths).collect()
}

impl Mutant {
    fn path(&self) -> PathBuf {
        Path::new("crates").join(self.file)
    }

    /// The file as it is, and as it is in the mutant.
    ///
    /// # Errors
    /// What is to be replaced is not there exactly once.
    fn apply(&self, tree: &Path) -> Result<(String, String)> {
        let path = self.path();
        let text = fs::read_to_string(tree.join(&path))
            .with_context(|| format!("{}: cannot be read", path.display()))?;
        let found = text.matches(self.from).count();
        if found != 1 {
            bail!(
                "{}: {}: what is to be replaced stands there {found} times, not once: {:?}",
                self.name,
                path.display(),
                self.from
            );
        }
        let mutated = text.replacen(self.from, &self.to, 1);
        Ok((text, mutated))
    }
}

/// What became of a mutant.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Tests failed: these.
    Killed(Vec<String>),
    /// The tests' program fell over.
    Crashed,
    Survived,
    /// The tests did not come to an end.
    Unended,
    /// It is no program; so nothing is said of the tests.
    NotBuilt(String),
}

impl Outcome {
    fn is_killed(&self) -> bool {
        matches!(self, Self::Killed(_) | Self::Crashed)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed(tests) => {
                write!(f, "killed by {}", tests[0])?;
                if tests.len() > 1 {
                    write!(f, " and {} more", tests.len() - 1)?;
                }
                Ok(())
            }
            Self::Crashed => f.write_str("killed: its tests' program crashed"),
            Self::Survived => f.write_str("SURVIVED"),
            Self::Unended => write!(f, "NOT ENDED after {TEST_MAX_S} s"),
            Self::NotBuilt(error) => write!(f, "NOT BUILT: {error}"),
        }
    }
}

/// The workspace copied, to be changed, and removed in any case.
struct Tree {
    folder: PathBuf,
    target: PathBuf,
}

impl Tree {
    /// Copies what git knows of, as it is now.
    ///
    /// Always to the same place, and built in the same target directory, so that cargo builds again only
    /// what changed.
    fn copy() -> Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        let target = repository().join(target).join("mutants");
        let tree = Self {
            folder: target.join("tree"),
            target: target.join("target"),
        };
        tree.remove()?;
        let files = output(&mut command("git", ["ls-files", "-z"]))?;
        for file in files.split_terminator('\0') {
            let (from, to) = (repository().join(file), tree.folder.join(file));
            // What is deleted and not yet committed is not there.
            if from.is_file() {
                fs::create_dir_all(to.parent().unwrap_or(&tree.folder))?;
                fs::copy(&from, &to).with_context(|| format!("{file}: cannot be copied"))?;
            }
        }
        Ok(tree)
    }

    fn remove(&self) -> Result<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)
                .with_context(|| format!("{}: cannot be removed", self.folder.display()))?;
        }
        Ok(())
    }

    /// A command for cargo in the copy, bounded in time.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let cargo = cargo([]);
        let mut bounded = command("timeout", ["--kill-after=10", TEST_MAX_S]);
        bounded
            .arg(cargo.get_program())
            .args(arguments)
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target);
        bounded
    }

    /// What the tests say of the tree as it is.
    fn judge(&self, tests: Tests) -> Result<Outcome> {
        let arguments = |more: &[&'static str]| [&["test"], tests.target, more].concat();
        let build = run(&mut self.cargo(&arguments(&["--no-run"])))?;
        if !build.status.success() {
            let text = String::from_utf8_lossy(&build.stderr).into_owned();
            let error = text.lines().find(|line| line.starts_with("error"));
            return Ok(Outcome::NotBuilt(
                error.unwrap_or("cargo says nothing").into(),
            ));
        }
        let test = run(&mut self.cargo(&arguments(&["--", tests.filter])))?;
        let failed = failed_tests(&String::from_utf8_lossy(&test.stdout));
        Ok(if test.status.success() {
            Outcome::Survived
        } else if test.status.code() != Some(TESTS_FAILED) {
            Outcome::Unended
        } else if failed.is_empty() {
            Outcome::Crashed
        } else {
            Outcome::Killed(failed)
        })
    }

    fn judge_mutant(&self, mutant: &Mutant) -> Result<Outcome> {
        let (text, mutated) = mutant.apply(&self.folder)?;
        let path = self.folder.join(mutant.path());
        fs::write(&path, mutated)?;
        let outcome = self.judge(mutant.tests);
        fs::write(&path, text)?;
        outcome
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("{error:#}");
        }
    }
}

fn run(command: &mut Command) -> Result<Output> {
    let line = command::line(command);
    command
        .output()
        .with_context(|| format!("{line}: cannot be started"))
}

/// The tests that `cargo test` says failed.
fn failed_tests(printed: &str) -> Vec<String> {
    let names = printed.lines().filter_map(|line| {
        let line = line.strip_prefix("test ")?;
        Some(line.strip_suffix(" ... FAILED")?.to_owned())
    });
    names.collect()
}

/// Demands of the tests that they fail for each mutant of which the name holds a text; for all with an empty
/// one.
///
/// # Errors
/// A mutant survives, or cannot be made or built; or the tests fail without any.
pub(crate) fn judge_mutants(of: &str) -> Result<()> {
    let mut mutants = mutants();
    mutants.retain(|mutant| mutant.name.contains(of));
    if mutants.is_empty() {
        bail!("soak: --mutations {of}: no mutation's name holds that");
    }
    if !command::is_installed("objdump") {
        bail!("soak: --mutations: the test of the prefetches needs objdump; run cargo xtask setup");
    }
    let tree = Tree::copy()?;
    let mut targets: Vec<Tests> = Vec::new();
    for mutant in &mutants {
        mutant.apply(&tree.folder)?;
        if !targets.contains(&mutant.tests) {
            targets.push(mutant.tests);
        }
    }
    for tests in targets {
        let outcome = tree.judge(tests)?;
        if outcome != Outcome::Survived {
            bail!(
                "without any mutation, {}: {outcome}",
                tests.target.join(" ")
            );
        }
    }
    println!("| mutation | file | |\n|---|---|---|");
    let mut survivors = 0;
    for mutant in &mutants {
        let outcome = tree.judge_mutant(mutant)?;
        survivors += usize::from(!outcome.is_killed());
        println!("| {} | {} | {outcome} |", mutant.name, mutant.file);
    }
    println!(
        "\n{} killed of {}",
        mutants.len() - survivors,
        mutants.len()
    );
    if survivors > 0 {
        bail!("soak: {survivors} mutants are not killed; what they change is not tested");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mutated_stands_in_the_code_exactly_once() {
        for mutant in mutants() {
            let (text, mutated) = mutant.apply(repository()).unwrap();
            assert_ne!(text, mutated, "{}", mutant.name);
        }
    }

    #[test]
    fn every_knob_has_a_mutant() {
        let knobs = fs::read_to_string(repository().join("crates/model/src/knob.rs")).unwrap();
        let (_, all) = knobs.split_once("pub const ALL").unwrap();
        let (all, _) = all.split_once("];").unwrap();
        let names: Vec<&str> = all
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Self::")?.strip_suffix(','))
            .collect();
        assert_eq!(names, LEVELS.map(|(name, _)| name));
    }

    #[test]
    fn a_mutants_name_is_its_own() {
        let mut names: Vec<_> = mutants().into_iter().map(|mutant| mutant.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_text_that_is_gone_or_ambiguous_is_an_error() {
        let mutant = |from| Mutant {
            name: "nothing".into(),
            file: "router/src/knobs.rs",
            from,
            to: String::new(),
            tests: KNOBS,
        };
        let error = |from| mutant(from).apply(repository()).unwrap_err().to_string();
        assert!(error("no such text").contains("stands there 0 times"));
        assert!(error("self.levels[knob as usize]").contains("stands there 2 times"));
    }

    #[test]
    fn what_failed_is_read_from_what_cargo_prints() {
        let printed = "test one ... ok\ntest two ... FAILED\ntest three ... FAILED\n\nfailures:\n";
        let failed = failed_tests(printed);
        assert_eq!(failed, ["two", "three"]);
        assert_eq!(
            Outcome::Killed(failed).to_string(),
            "killed by two and 1 more"
        );
    }
}
