//! The sink that needs no eBPF: the interface counts all frames, a packet socket shows some of them.
//!
//! The frames are addressed to a station that is not there, so the kernel drops them where it first
//! looks at them and counts them apart (`rx_otherhost_dropped`): exactly the tester's.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fwdlab_sys::ReceiveRing;

use crate::expected::Expected;
use crate::interface_counters::{InterfaceCounters, InterfaceCounts};
use crate::sink::SinkCounts;
use crate::{Frames, Receiver, TrafficError};

/// Frames that may wait to be checked: those of a fifth of a second, or more.
const WAITING_FRAMES: usize = 8192;

/// A sink, counting since it was loaded or reset.
pub struct CounterSink {
    expected: Expected,
    check_every: u32,
    // The watch asks from another thread than the one that resets.
    state: Mutex<State>,
}

struct State {
    every: u32,
    attached: Option<Attached>,
    /// What is neither in the interface's counters nor checked any more, because it was detached.
    counts: SinkCounts,
    flows_seen: Vec<bool>,
    lengths_seen: BTreeSet<usize>,
}

struct Attached {
    counters: InterfaceCounters,
    before: InterfaceCounts,
    ring: ReceiveRing,
}

impl CounterSink {
    /// A sink that is to expect these frames.
    #[must_use]
    pub fn new(frames: &Frames) -> Self {
        let flows = frames.flows().count() as usize;
        Self {
            expected: Expected::new(frames),
            check_every: frames.check_every(),
            state: Mutex::new(State {
                every: frames.check_every(),
                attached: None,
                counts: SinkCounts::default(),
                flows_seen: vec![false; flows],
                lengths_seen: BTreeSet::new(),
            }),
        }
    }

    fn restart(&mut self, every: u32) -> Result<(), TrafficError> {
        let mut state = self.state();
        state.every = every;
        state.counts = SinkCounts::default();
        state.flows_seen.fill(false);
        state.lengths_seen.clear();
        if let Some(attached) = &mut state.attached {
            attached.ring.read(|_| {});
            attached.ring.sample(every)?;
            attached.before = attached.counters.read()?;
        }
        Ok(())
    }

    fn counts_of(&self, state: &mut State) -> Result<SinkCounts, TrafficError> {
        let State {
            attached,
            counts,
            flows_seen,
            lengths_seen,
            ..
        } = state;
        let Some(attached) = attached else {
            return Ok(counts.clone());
        };
        attached.ring.read(|frame| {
            counts.checked_frames += 1;
            let (flow, wrong) = self.expected.check(frame);
            if let Some(flow) = flow {
                flows_seen[flow] = true;
                lengths_seen.insert(frame.len());
            }
            if let Some(wrong) = wrong {
                counts.wrong_frames[wrong as usize] += 1;
            }
        });
        let (forwarded_frames, foreign_frames) = attached.frames()?;
        let mut counts = counts.clone();
        counts.forwarded_frames += forwarded_frames;
        counts.foreign_frames += foreign_frames;
        Ok(counts)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked meanwhile left counts behind that are right up to there.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver for CounterSink {
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        let interface_index = fwdlab_sys::interface_index(interface)?;
        let length_max = self.expected.length_max();
        let mut state = self.state();
        let counters = InterfaceCounters::open(interface_index)?;
        state.attached = Some(Attached {
            before: counters.read()?,
            counters,
            ring: ReceiveRing::open(interface_index, WAITING_FRAMES, length_max, state.every)?,
        });
        Ok(())
    }

    fn detach(&mut self) -> Result<(), TrafficError> {
        let mut state = self.state();
        state.counts = self.counts_of(&mut state)?;
        state.attached = None;
        Ok(())
    }

    fn expect(&mut self, frames: &Frames) -> Result<(), TrafficError> {
        self.expected = Expected::new(frames);
        Ok(())
    }

    fn reset(&mut self) -> Result<(), TrafficError> {
        self.restart(self.check_every)
    }

    fn reset_to_check_all(&mut self) -> Result<(), TrafficError> {
        self.restart(1)
    }

    fn forwarded_frames(&self) -> Result<u64, TrafficError> {
        let state = self.state();
        let forwarded_frames = state.counts.forwarded_frames;
        Ok(match &state.attached {
            Some(attached) => forwarded_frames + attached.frames()?.0,
            None => forwarded_frames,
        })
    }

    fn counts(&self) -> Result<SinkCounts, TrafficError> {
        self.counts_of(&mut self.state())
    }

    fn flows_seen(&self) -> Result<u32, TrafficError> {
        let mut state = self.state();
        self.counts_of(&mut state)?;
        let seen = state.flows_seen.iter().filter(|&&seen| seen).count();
        Ok(u32::try_from(seen).expect("flows are counted in 32 bits"))
    }

    fn all_sizes_seen(&self) -> Result<bool, TrafficError> {
        let mut state = self.state();
        self.counts_of(&mut state)?;
        Ok(self
            .expected
            .lengths()
            .all(|length| state.lengths_seen.contains(&length)))
    }
}

impl Attached {
    /// Frames of the tester, and all others.
    fn frames(&self) -> Result<(u64, u64), TrafficError> {
        let now = self.counters.read()?;
        let forwarded_frames = now.other_station_frames - self.before.other_station_frames;
        let received_frames = now.received_frames - self.before.received_frames;
        // A frame is counted as received before it is dropped.
        Ok((
            forwarded_frames,
            received_frames.saturating_sub(forwarded_frames),
        ))
    }
}
