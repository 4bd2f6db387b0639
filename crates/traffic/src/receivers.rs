//! The sinks of all interfaces where a DUT's frames come out, as one.

use fwdlab_model::{Tester, Verification};

use crate::{CounterSink, Frames, Receiver, Sink, SinkCounts, TrafficError};

/// One sink a direction; what they count is added up.
pub struct Receivers(Vec<Box<dyn Receiver>>);

impl Receivers {
    /// Sinks that are to expect the frames of each direction.
    ///
    /// # Errors
    /// Without the privilege that this tester needs.
    pub fn load<'a>(
        tester: Tester,
        directions: impl IntoIterator<Item = &'a Frames>,
    ) -> Result<Self, TrafficError> {
        let mut receivers: Vec<Box<dyn Receiver>> = Vec::new();
        for frames in directions {
            receivers.push(match tester {
                Tester::Ebpf => Box::new(Sink::load(frames)?),
                _ => Box::new(CounterSink::new(frames)),
            });
        }
        Ok(Self(receivers))
    }

    /// Counts what comes in at each direction's interface of the calling thread's namespace, from now
    /// on.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn attach(&mut self, interfaces: &[&str]) -> Result<(), TrafficError> {
        for (receiver, interface) in self.0.iter_mut().zip(interfaces) {
            receiver.attach(interface)?;
        }
        Ok(())
    }

    /// Takes the sinks off their interfaces.
    ///
    /// # Errors
    /// When the kernel does not say what was counted last.
    pub fn detach(&mut self) -> Result<(), TrafficError> {
        self.0.iter_mut().try_for_each(|receiver| receiver.detach())
    }

    /// Counts from 0 again and checks one of so many frames; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn reset(&mut self) -> Result<(), TrafficError> {
        self.0.iter_mut().try_for_each(|receiver| receiver.reset())
    }

    /// Counts from 0 again and checks every frame; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn reset_to_check_all(&mut self) -> Result<(), TrafficError> {
        self.0
            .iter_mut()
            .try_for_each(|receiver| receiver.reset_to_check_all())
    }

    /// Expects the frames of each direction as another DUT makes of them; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn expect<'a>(
        &mut self,
        directions: impl IntoIterator<Item = &'a Frames>,
    ) -> Result<(), TrafficError> {
        let mut receivers = self.0.iter_mut().zip(directions);
        receivers.try_for_each(|(receiver, frames)| receiver.expect(frames))
    }

    /// Frames of the tester so far, at the least cost for the load.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn forwarded_frames(&self) -> Result<u64, TrafficError> {
        self.0
            .iter()
            .map(|receiver| receiver.forwarded_frames())
            .sum()
    }

    /// What was counted so far; frames that wait to be checked are checked now, so it is to be called
    /// some times a second.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn counts(&self) -> Result<SinkCounts, TrafficError> {
        self.0.iter().map(|receiver| receiver.counts()).sum()
    }

    /// Distinct flows among the checked frames; a flow and the one that answers it are two.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn flows_seen(&self) -> Result<u32, TrafficError> {
        self.0.iter().map(|receiver| receiver.flows_seen()).sum()
    }

    /// Whether every planned size was among the checked frames of every direction.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn all_sizes_seen(&self) -> Result<bool, TrafficError> {
        let mut all_seen = true;
        for receiver in &self.0 {
            all_seen &= receiver.all_sizes_seen()?;
        }
        Ok(all_seen)
    }

    /// The outcome of the check, for the records.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn verification(&self) -> Result<Verification, TrafficError> {
        let mut all = Verification::default();
        for receiver in &self.0 {
            let verification = receiver.verification()?;
            all.checked_frames += verification.checked_frames;
            all.flows_seen += verification.flows_seen;
            for (what, frames) in verification.wrong_frames {
                *all.wrong_frames.entry(what).or_default() += frames;
            }
        }
        Ok(all)
    }
}
