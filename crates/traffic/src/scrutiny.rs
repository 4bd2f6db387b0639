//! What is wrong with a frame, byte by byte: for a proof that has failed, at a cost that no load could bear.

use fwdlab_sys::ReceiveRing;

use crate::expected::Expected;
use crate::{Frames, TrafficError};

/// Frames that may wait to be looked at.
const WAITING_FRAMES: usize = 1024;

/// An eye on the interfaces where a DUT's frames come out, which no sink may hold meanwhile.
pub struct Scrutiny(Vec<(Expected, ReceiveRing)>);

impl Scrutiny {
    /// Looks at every frame that comes in at each direction's interface of the calling thread's namespace, from now on.
    ///
    /// # Errors
    /// Without the privilege in that namespace, or when there is no such interface.
    pub fn open<'a>(
        directions: impl IntoIterator<Item = (&'a Frames, &'a str)>,
    ) -> Result<Self, TrafficError> {
        let open = |(frames, interface)| {
            let expected = Expected::new(frames);
            let interface = fwdlab_sys::interface_index(interface)?;
            // Frames that are too long are to be seen too.
            let length_max = expected.length_max() + 64;
            let ring = ReceiveRing::open(interface, WAITING_FRAMES, length_max, 1)?;
            Ok((expected, ring))
        };
        let directions = directions.into_iter().map(open);
        Ok(Self(directions.collect::<Result<_, TrafficError>>()?))
    }

    /// In what a frame that has come in since differs from what was expected: what stands where in both.
    pub fn difference(&mut self) -> Option<String> {
        let mut found = None;
        for (expected, ring) in &mut self.0 {
            ring.read(|frame| found = found.take().or_else(|| expected.difference(frame)));
        }
        found
    }
}
