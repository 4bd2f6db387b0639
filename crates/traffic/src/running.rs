//! A generator that sends on a thread of its own, whatever it sends with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::TrafficError;

/// What a sending thread returns: why it ended by itself, where it did.
pub(crate) type Outcome = Result<(), TrafficError>;

/// What threads that send together share: whether one of them has failed, so that the others are to end.
#[derive(Clone, Default)]
pub(crate) struct Alarm(Arc<AtomicBool>);

impl Alarm {
    /// Does what a thread is to do, and has the others end where it fails.
    pub(crate) fn raised_by(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        let outcome = work();
        if outcome.is_err() {
            self.0.store(true, Ordering::Relaxed);
        }
        outcome
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a generator needs to be one that runs.
pub trait Generates {
    /// What its thread is asked while it sends.
    type Requests;

    /// Frames offered since the last start.
    ///
    /// # Errors
    /// When the kernel does not say.
    fn offered_frames(&self) -> Result<u64, TrafficError>;

    /// Asks the thread to end, and does not wait.
    fn ask_to_end(requests: &Self::Requests);

    /// Waits until a thread that was asked to end has ended.
    ///
    /// # Errors
    /// The panic of the thread.
    fn join(&self, thread: JoinHandle<Outcome>) -> thread::Result<Outcome>;
}

/// A generator that sends until it is stopped or its value goes.
pub struct Running<G: Generates> {
    /// There until `end` takes it.
    sending: Option<(G, JoinHandle<Outcome>)>,
    pub(crate) requests: Arc<G::Requests>,
}

impl<G: Generates> Running<G> {
    pub(crate) fn new(
        generator: G,
        thread: JoinHandle<Outcome>,
        requests: Arc<G::Requests>,
    ) -> Self {
        Self {
            sending: Some((generator, thread)),
            requests,
        }
    }

    pub(crate) fn generator(&self) -> &G {
        let (generator, _) = self
            .sending
            .as_ref()
            .expect("only `finish` takes it, and the value with it");
        generator
    }

    pub(crate) fn generator_mut(&mut self) -> &mut G {
        let (generator, _) = self
            .sending
            .as_mut()
            .expect("only `finish` takes it, and the value with it");
        generator
    }

    /// Frames offered since the start.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn offered_frames(&self) -> Result<u64, TrafficError> {
        self.generator().offered_frames()
    }

    /// Whether it still sends; it ends by itself only on an error, which [`stop`](Self::stop) tells.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let sending = self.sending.as_ref();
        sending.is_some_and(|(_, thread)| !thread.is_finished())
    }

    /// Asks it to stop sending, and does not wait until it has.
    pub(crate) fn ask_to_end(&self) {
        G::ask_to_end(&self.requests);
    }

    /// Stops sending.
    ///
    /// # Errors
    /// Why it had stopped before.
    pub fn stop(self) -> Result<G, TrafficError> {
        let (generator, outcome) = self.finish();
        outcome.map(|()| generator)
    }

    /// Stops sending; beside the generator, why it had stopped before where it had.
    ///
    /// # Panics
    /// Where the thread did.
    pub fn finish(mut self) -> (G, Outcome) {
        match self.end() {
            Some((generator, Ok(outcome))) => {
                (generator, outcome.map_err(TrafficError::stopped_by_itself))
            }
            Some((_, Err(panic))) => std::panic::resume_unwind(panic),
            None => unreachable!("only this ends it, and the value with it"),
        }
    }

    /// Ends the thread, once.
    fn end(&mut self) -> Option<(G, thread::Result<Outcome>)> {
        let (generator, thread) = self.sending.take()?;
        G::ask_to_end(&self.requests);
        let outcome = generator.join(thread);
        Some((generator, outcome))
    }
}

impl<G: Generates> Drop for Running<G> {
    fn drop(&mut self) {
        // Whoever gives up in the middle of a block must not leave the load running.
        self.end();
    }
}
