//! Forwarders in user space under a block's load: what they lose, and when they may end.

use std::time::{Duration, Instant};

use fwdlab_traffic::Receivers;

use super::Measurement;
use crate::LabError;
use crate::netns::forwarder::{Ran, is_starved};
use crate::netns::losses::Look;
use crate::netns::quiet::RunningLoad;

impl Measurement<'_> {
    /// From now on, what goes in and does not come out is lost in the forwarder, where one has started.
    pub(super) fn begin_losses(&mut self, sink: &Receivers) -> Result<(), LabError> {
        if self.dut.forwarder().is_some() {
            let look = self.look(sink)?;
            self.losses.begin(look);
        }
        Ok(())
    }

    /// Looks how many frames were lost in the forwarder, when none is under way.
    pub(super) fn look_for_losses(&mut self, sink: &Receivers) -> Result<(), LabError> {
        let look = self.look(sink)?;
        self.losses.look(look);
        Ok(())
    }

    /// Gives a forwarder that lacks frames more time where it is kept from its CPU, or sends: ended now, it would lose
    /// what it has not yet read.
    pub(super) fn await_starved_forwarder(
        &mut self,
        load: &RunningLoad,
        sink: &Receivers,
    ) -> Result<(), LabError> {
        const STARVED_MAX: Duration = Duration::from_secs(1);
        let deadline = Instant::now() + STARVED_MAX;
        while self.losses.of_running() > 0 && Instant::now() < deadline {
            let (lost, before) = (self.losses.of_running(), self.runnable_threads());
            load.hold(&mut self.topology, sink)?;
            self.look_for_losses(sink)?;
            let sends = self.losses.of_running() < lost;
            if !sends && !is_starved(&before, &self.runnable_threads()) {
                break;
            }
        }
        Ok(())
    }

    fn runnable_threads(&mut self) -> Vec<Ran> {
        let forwarder = self.dut.forwarder();
        forwarder.map_or_else(Vec::new, |forwarder| forwarder.runnable())
    }

    /// Ends the forwarder of a load, where one runs, and looks for the last time how many frames it lost: it may have sent
    /// some since the last look, or send at its end what it still has.
    pub(super) fn end_forwarder(
        &mut self,
        load: &RunningLoad,
        sink: &Receivers,
    ) -> Result<(), LabError> {
        (self.dut).end_forwarder(&mut self.topology, self.changes.0)?;
        if self.losses.are_looked_for() {
            load.hold(&mut self.topology, sink)?;
            self.look_for_losses(sink)?;
            if let Some(late) = self.losses.end() {
                let evidence = self.log.evidence_of(late.stratum, &late.variant);
                evidence.late_frames += late.frames;
            }
        }
        Ok(())
    }

    /// Reads what a look needs, again where the DUT's kernel sent a frame meanwhile.
    fn look(&mut self, sink: &Receivers) -> Result<Look, LabError> {
        const ATTEMPTS: u32 = 10;
        let direction = self.resolved.direction();
        let mut look = Look {
            inside: 0,
            foreign_frames: sink.counts()?.foreign_frames,
        };
        for _ in 0..ATTEMPTS {
            look.inside = self.topology.frames_inside(direction)?;
            let before = look.foreign_frames;
            look.foreign_frames = sink.counts()?.foreign_frames;
            if look.foreign_frames == before {
                break;
            }
        }
        Ok(look)
    }
}
