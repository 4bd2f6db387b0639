//! What the tests share: a cabled DUT with generator and sink, and experiments for the whole lab.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use fwdlab_lab::{
    BlockOutcome, BlockRun, DUT_IN, LabError, LabEvent, NetnsLab, TESTER_IN, Topology,
    fib_forwarder,
};
use fwdlab_model::{
    AddressFamily, Binding, Design, EbpfProgram, FrameSize, InvalidReason, Lab, Level,
    PlannedBlock, Resolved, SliceSource, StratumOrder, Tester, Traffic, TrialRecord, Upload,
    Values, Variant, VariantName,
};
use fwdlab_sys::NetworkNamespace;
use fwdlab_traffic::{
    CountingProgram, Frames, Generator, Pace, Receiver as _, RunningGenerator, Sink,
};
pub(crate) use testkit::{own_the_machine, wait_until};

pub(crate) const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];

/// Frames of one pass over all flows.
pub(crate) const FLOWS: u32 = 2000;

/// What forwards in the DUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forwarder {
    Kernel,
    Xdp,
}

pub(crate) const FORWARDERS: [Forwarder; 2] = [Forwarder::Kernel, Forwarder::Xdp];

/// Tester, DUT, generator and sink, as the lab puts them together.
pub(crate) struct Rig {
    pub(crate) generator: Option<Generator>,
    pub(crate) sink: Sink,
    pub(crate) frames: Frames,
    pub(crate) forwarder: CountingProgram,
    pub(crate) topology: Topology,
    _machine: File,
}

impl Rig {
    /// With the quickstart's traffic.
    pub(crate) fn new(family: AddressFamily, forwarder: Forwarder) -> Self {
        Self::with_traffic(&traffic(&[family]), family, forwarder)
    }

    pub(crate) fn with_traffic(
        traffic: &Traffic,
        family: AddressFamily,
        forwarder: Forwarder,
    ) -> Self {
        let machine = own_the_machine();
        let topology = Topology::build().unwrap();
        let frames = topology.frames(family, traffic).unwrap();
        let interface = topology.generator_interface();
        let generator = topology
            .tester()
            .run(|| Generator::load(&frames, interface))
            .unwrap()
            .unwrap();
        let mut sink = Sink::load(&frames).unwrap();
        topology
            .tester()
            .run(|| sink.attach(TESTER_IN))
            .unwrap()
            .unwrap();
        let mut program = fib_forwarder().unwrap();
        if forwarder == Forwarder::Xdp {
            topology
                .dut()
                .run(|| program.xdp.attach(DUT_IN))
                .unwrap()
                .unwrap();
        }
        Self {
            generator: Some(generator),
            sink,
            frames,
            forwarder: program,
            topology,
            _machine: machine,
        }
    }

    /// Sends one frame a flow; every one is checked by the sink.
    pub(crate) fn send_every_flow(&mut self) {
        self.sink.reset_to_check_all().unwrap();
        self.generator.as_mut().unwrap().send(FLOWS).unwrap();
    }

    /// Starts the generator on the first CPU, with a sink that counts from 0.
    pub(crate) fn start(&mut self, pace: Pace) -> RunningGenerator {
        self.sink.reset().unwrap();
        let load_cpu = fwdlab_sys::online_cpus().unwrap()[0];
        self.generator
            .take()
            .unwrap()
            .start(load_cpu, pace)
            .unwrap()
    }

    pub(crate) fn forwarded_frames(&self) -> u64 {
        self.sink.counts().unwrap().forwarded_frames
    }

    /// What the sink found wrong since it last counted from 0.
    pub(crate) fn wrong_frames(&self) -> Vec<(&'static str, u64)> {
        self.sink.counts().unwrap().wrong_frames_by_kind().collect()
    }

    /// Frames that the DUT's kernel dropped because it had no route for them.
    pub(crate) fn frames_without_route(&self) -> u64 {
        let (file, counter) = match self.frames.family() {
            AddressFamily::Inet => ("netstat", "IpExt InNoRoutes"),
            AddressFamily::Inet6 => ("snmp6", "Ip6InNoRoutes"),
        };
        let text = self
            .topology
            .dut()
            .run(|| fs::read_to_string(format!("/proc/thread-self/net/{file}")))
            .unwrap()
            .unwrap();
        counter_value(&text, counter)
    }

    pub(crate) fn load_ruleset(&self, ruleset: &str) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), format!("flush ruleset\n{ruleset}")).unwrap();
        let path = file.path().to_str().unwrap();
        run_in(self.topology.dut(), &["nft", "-f", path]);
    }
}

/// A counter of a line `name value`, or of a pair of lines where it is `section name`.
fn counter_value(text: &str, counter: &str) -> u64 {
    let value = match counter.split_once(' ') {
        None => text
            .lines()
            .find_map(|line| line.strip_prefix(counter))
            .map(str::trim),
        Some((section, name)) => {
            let mut lines = text
                .lines()
                .filter(|line| line.starts_with(&format!("{section}:")));
            let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
            names
                .split(' ')
                .zip(values.split(' '))
                .find_map(|(found, value)| (found == name).then_some(value))
        }
    };
    value.unwrap().parse().unwrap()
}

/// Runs a command in a namespace and returns what it printed.
pub(crate) fn run_in(namespace: &NetworkNamespace, command: &[&str]) -> String {
    namespace.run(|| run(command)).unwrap()
}

/// Runs a command that has to succeed and returns what it printed.
pub(crate) fn run(command: &[&str]) -> String {
    let output = Command::new(command[0])
        .args(&command[1..])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The name under which `ip netns` knows the DUT of this process's block.
pub(crate) fn dut_namespace() -> String {
    own_namespaces(std::process::id())
        .into_iter()
        .find(|name| name.ends_with("-dut"))
        .unwrap()
}

/// Names of the namespaces of one process.
pub(crate) fn own_namespaces(pid: u32) -> Vec<String> {
    let prefix = format!("fwdlab-{pid}-");
    let Ok(entries) = fs::read_dir("/run/netns") else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(&prefix))
        .collect();
    names.sort();
    names
}

/// The quickstart's traffic.
pub(crate) fn traffic(families: &[AddressFamily]) -> Traffic {
    Traffic {
        families: families.to_vec(),
        ..Traffic::default()
    }
}

/// Frames of three sizes, the largest among them, in an order that no flow falls in step with.
pub(crate) fn imix() -> Traffic {
    let size = |bytes, share| FrameSize { bytes, share };
    Traffic {
        frame_sizes: vec![size(64, 7), size(594, 4), size(1518, 1)],
        ..Traffic::default()
    }
}

/// An experiment with one factor, whose levels are the variants.
pub(crate) fn experiment(
    families: &[AddressFamily],
    binding: Binding,
    levels: &[&str],
) -> Resolved {
    let variants = levels
        .iter()
        .map(|&label| Variant {
            name: VariantName::from_label(label),
            label: label.into(),
            levels: BTreeMap::from([("factor".into(), Level::Text(label.into()))]),
            control_of: None,
            unavailable: None,
        })
        .collect();
    Resolved {
        name: "test".into(),
        question: "Impact of a test".into(),
        background: None,
        factors: Vec::new(),
        variants,
        comparisons: Vec::new(),
        traffics: vec![traffic(families)],
        design: Design {
            blocks: 1,
            rounds: 2,
            warm_up_ms: 50,
            ..Design::default()
        },
        lab: Lab {
            bindings: BTreeMap::from([("factor".into(), binding)]),
            ..Lab::netns("netns")
        },
        references: vec![],
        profiling: None,
    }
}

/// A factor that is a sysctl, whose levels are its values.
pub(crate) fn sysctl(key: &str) -> Binding {
    Binding::Sysctl {
        key: key.to_owned(),
        values: Values::default(),
        reads_back: BTreeMap::new(),
    }
}

/// A file that a level names.
pub(crate) fn upload(found: PathBuf) -> Upload {
    Upload {
        path: found.display().to_string(),
        sha256: fwdlab_model::sha256(&fs::read(&found).unwrap()),
        found,
    }
}

/// A program of an object, in which nothing is set.
pub(crate) fn ebpf_program(object: PathBuf, program: Option<&str>) -> EbpfProgram {
    EbpfProgram {
        object: upload(object),
        program: program.map(str::to_owned),
        globals: BTreeMap::new(),
        max_entries: BTreeMap::new(),
        maps: BTreeMap::new(),
        tail_calls: BTreeMap::new(),
    }
}

/// Where an object is that only tests have.
pub(crate) fn test_object(name: &str) -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    crates.join("testkit/bpf").join(name)
}

/// A binding of levels to rulesets.
pub(crate) fn rulesets(levels: &[(&str, &str)]) -> Binding {
    Binding::Nft(
        levels
            .iter()
            .map(|&(level, ruleset)| (level.to_owned(), ruleset.to_owned()))
            .collect(),
    )
}

/// A ruleset of one chain in the forward hook.
pub(crate) fn forward_chain(rules: &str) -> String {
    format!(
        "table inet fwdlab {{
            chain forward {{
                type filter hook forward priority filter; policy accept;
                {rules}
            }}
        }}"
    )
}

/// The block of an experiment: the second round, where measurements are not whole, turns the order of the first around.
pub(crate) fn block(resolved: &Resolved) -> PlannedBlock {
    let order: Vec<_> = resolved
        .variants
        .iter()
        .map(|variant| variant.name.clone().into())
        .collect();
    let reversed: Vec<_> = order.iter().rev().cloned().collect();
    let mut rounds = vec![order, reversed];
    if resolved.takes_whole_measurements() {
        rounds.truncate(1);
    }
    let strata = resolved.strata();
    PlannedBlock {
        number: 3,
        strata: strata
            .map(|stratum| StratumOrder {
                stratum,
                rounds: rounds.clone(),
            })
            .collect(),
    }
}

/// Opens the lab, measures the experiment's block as attempt 2 of session 7, and closes the lab.
pub(crate) fn measure(
    resolved: &Resolved,
    on_event: &mut dyn FnMut(LabEvent<'_>),
) -> Result<BlockOutcome, LabError> {
    measure_with(None, resolved, on_event)
}

/// Does the same, with another tester than the best where one is given.
pub(crate) fn measure_with(
    tester: impl Into<Option<Tester>>,
    resolved: &Resolved,
    on_event: &mut dyn FnMut(LabEvent<'_>),
) -> Result<BlockOutcome, LabError> {
    measure_slices(tester, resolved, &mut block(resolved), on_event)
}

/// Does the same, with other slices than the block's own.
pub(crate) fn measure_slices(
    tester: impl Into<Option<Tester>>,
    resolved: &Resolved,
    slices: &mut dyn SliceSource,
    on_event: &mut dyn FnMut(LabEvent<'_>),
) -> Result<BlockOutcome, LabError> {
    let _machine = own_the_machine();
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let state = tempfile::tempdir().unwrap();
    let mut lab = NetnsLab::open(resolved, state.path(), interrupts)?;
    if let Some(tester) = tester.into() {
        lab.choices.tester.tester = tester;
    }
    lab.measure(&mut BlockRun {
        planned: &block(resolved),
        slices,
        session: 7,
        attempt: 2,
        on_event,
    })
}

/// What speaks against a trial, without what only says that this machine is busy.
pub(crate) fn evidence_against(trial: &TrialRecord) -> Vec<&InvalidReason> {
    trial
        .invalid
        .iter()
        .filter(|reason| {
            !matches!(
                reason,
                InvalidReason::Stolen { .. }
                    | InvalidReason::Calibration { .. }
                    | InvalidReason::LoadShort { .. }
                    | InvalidReason::EarlierFrames { .. }
                    | InvalidReason::Competition { .. }
            )
        })
        .collect()
}
