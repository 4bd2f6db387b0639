//! The tester of a block: what it sends and counts, and what it can do where no router stands in its way.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{Knob, Stratum};
use fwdlab_router::{Knobs, PortDevice, Wire};
use fwdlab_stats::as_f64;
use fwdlab_traffic::{Frames, GeneratorCounts, MemoryGenerator, MemorySink, MemorySinkCounts};

use super::threads::{Poll, Tester};
use crate::LabError;

/// How long caches and rings take to fill, generously.
const WARM_UP: Duration = Duration::from_millis(100);

/// The tester of one stratum, ready to be plugged in.
pub(super) struct Prepared {
    pub(super) stratum: Stratum,
    pub(super) there: Frames,
    pub(super) back: Option<Frames>,
}

impl Prepared {
    /// The frames of each direction.
    pub(super) fn frames(&self) -> impl Iterator<Item = &Frames> {
        std::iter::once(&self.there).chain(&self.back)
    }

    /// The same with every flow in its turn, to prove each of them.
    pub(super) fn in_turn(&self) -> Self {
        Self {
            stratum: self.stratum,
            there: self.there.in_turn(),
            back: self.back.as_ref().map(Frames::in_turn),
        }
    }

    /// A generator for each direction, and a sink on each port; the first port's sees none of the
    /// tester's frames where they go one way only.
    pub(super) fn tester(&self, queues: usize, check_every: u32) -> Result<Tester, LabError> {
        let generators = self
            .frames()
            .map(|frames| MemoryGenerator::unplugged(frames, queues))
            .collect::<Result<_, _>>()?;
        let back = match &self.back {
            Some(back) => MemorySink::new(back, Vec::new(), check_every),
            None => MemorySink::of_foreign_frames(Vec::new()),
        };
        let there = MemorySink::new(&self.there, Vec::new(), check_every);
        Ok(Tester {
            generators,
            sinks: vec![back, there],
        })
    }
}

pub(super) fn wire(queues: usize) -> (Wire, Vec<PortDevice>) {
    let size = Knobs::default().level(Knob::OverrideNrxds);
    let (wire, ports) = Wire::new(queues, size as usize);
    (wire, ports.into())
}

/// A wire that drops what comes in.
pub(super) struct Dropping(pub(super) Wire);

impl Poll for Dropping {
    fn poll(&mut self, _now_ns: u64) -> usize {
        self.0.drop_all()
    }
}

/// A wire that passes what comes in.
pub(super) struct Passing(pub(super) Wire);

impl Poll for Passing {
    fn poll(&mut self, _now_ns: u64) -> usize {
        self.0.pass()
    }
}

/// What generators and sinks count, whichever router they are plugged into.
pub(super) struct TesterCounts {
    pub(super) generators: Vec<Arc<GeneratorCounts>>,
    pub(super) sinks: Vec<Arc<MemorySinkCounts>>,
}

impl TesterCounts {
    pub(super) fn of(tester: &Tester) -> Self {
        Self {
            generators: tester
                .generators
                .iter()
                .map(MemoryGenerator::counts)
                .collect(),
            sinks: tester.sinks.iter().map(MemorySink::counts).collect(),
        }
    }

    pub(super) fn offered_frames(&self) -> u64 {
        let counts = self.generators.iter();
        counts.map(|counts| counts.offered_frames()).sum()
    }

    pub(super) fn missed_frames(&self) -> u64 {
        let counts = self.generators.iter();
        counts.map(|counts| counts.missed_frames()).sum()
    }

    pub(super) fn forwarded_frames(&self) -> u64 {
        let counts = self.sinks.iter();
        counts.map(|counts| counts.forwarded_frames()).sum()
    }
}

/// The forwarding rate in each window, as far as nobody asks to stop.
pub(super) fn rates_pps(
    counts: &TesterCounts,
    windows: &[Duration],
    stop_if_asked: impl Fn() -> Result<(), LabError>,
) -> Result<Vec<f64>, LabError> {
    sleep(WARM_UP);
    let rate_pps = |&window: &Duration| {
        stop_if_asked()?;
        let (start, before) = (Instant::now(), counts.forwarded_frames());
        sleep(window);
        let frames = counts.forwarded_frames() - before;
        Ok(as_f64(frames) / start.elapsed().as_secs_f64())
    };
    windows.iter().map(rate_pps).collect()
}
