//! Probe frames: a frame of every flow and every size, before a variant is measured.

use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::Traffic;
use fwdlab_traffic::SinkCounts;

use super::measurement::Prepared;
use crate::LabError;
use crate::clock::settled;

/// Probe frames under way at once: what a veth ring holds even where another CPU empties it.
const PROBE_BATCH: u32 = 128;
/// How long late frames are waited for.
pub(super) const LATE_MAX: Duration = Duration::from_secs(2);
/// Once none has come for so long, no more are expected.
const STILL: Duration = Duration::from_millis(300);

/// What became of a variant's probe frames.
pub(super) struct ProbeOutcome {
    pub(super) counts: SinkCounts,
    /// What never came, where as many frames came as were sent.
    pub(super) missing: Option<String>,
    /// Whether all came, of every flow and size, and as they should.
    pub(super) is_right: bool,
}

/// Sends a frame of every flow and every size, and waits for them; for late ones as long as is said.
pub(super) fn send_probe(
    prepared: &mut Prepared,
    traffic: &Traffic,
    late_max: Duration,
) -> Result<ProbeOutcome, LabError> {
    let sent = prepared.probe_frames;
    prepared.sink.reset_to_check_all()?;
    let mut sent_so_far = 0;
    let mut is_lossless = true;
    while sent_so_far < sent {
        sent_so_far += send_batch(prepared, sent_so_far)?;
        // Once a frame is lost, waiting for the others would only take its time each time.
        if is_lossless {
            let arrived = settled(
                || Ok(prepared.sink.counts()?.forwarded_frames),
                |&arrived| arrived >= u64::from(sent_so_far),
            )?;
            is_lossless = arrived >= u64::from(sent_so_far);
        }
    }
    let mut counts = settled(
        || Ok(prepared.sink.counts()?),
        |counts| counts.forwarded_frames >= u64::from(sent),
    )?;
    if counts.forwarded_frames < u64::from(sent) {
        counts = await_late_frames(prepared, late_max)?;
    }
    let flows = traffic.flows_in_all_directions();
    let flows_seen = prepared.sink.flows_seen()?;
    let are_complete = counts.forwarded_frames == u64::from(sent);
    let missing = if !are_complete {
        None
    } else if flows_seen != flows {
        Some(format!("of {flows} flows it saw {flows_seen}"))
    } else if !has_wrong_length(&counts) && !prepared.sink.all_sizes_seen()? {
        Some("not every size of frame came".to_owned())
    } else {
        None
    };
    Ok(ProbeOutcome {
        is_right: are_complete && counts.wrong_frames() == 0 && missing.is_none(),
        missing,
        counts,
    })
}

/// Waits until no more frames come, and tells what has come.
pub(super) fn await_late_frames(
    prepared: &Prepared,
    late_max: Duration,
) -> Result<SinkCounts, LabError> {
    const STEP: Duration = Duration::from_millis(5);
    let (start, mut last_change) = (Instant::now(), Instant::now());
    let mut counts = prepared.sink.counts()?;
    while start.elapsed() < late_max && last_change.elapsed() < STILL {
        sleep(STEP);
        let now = prepared.sink.counts()?;
        if now != counts {
            (counts, last_change) = (now, Instant::now());
        }
    }
    Ok(counts)
}

/// Whether frames came with a length that none of them should have; the sizes that are missing are then those.
fn has_wrong_length(counts: &SinkCounts) -> bool {
    counts
        .wrong_frames_by_kind()
        .any(|(kind, _)| kind == "length")
}

/// What to do where no frame with a VLAN tag came.
pub(super) fn tagged_frames_advice(traffic: &Traffic, counts: &SinkCounts) -> Option<String> {
    let are_all_lost = counts.forwarded_frames == 0;
    (traffic.vlan.is_some() && are_all_lost).then(|| {
        "; the DUT has no VLAN interfaces in this lab, so that its kernel drops frames with a tag: bind an XDP program, a \
         tc program or a forwarder in user space that forwards them"
            .to_owned()
    })
}

/// Sends a frame of every flow and every size again, until a look at what came of them finds something.
pub(super) fn show_probe(
    prepared: &mut Prepared,
    mut look: impl FnMut() -> Option<String>,
) -> Result<Option<String>, LabError> {
    let mut sent_so_far = 0;
    while sent_so_far < prepared.probe_frames {
        sent_so_far += send_batch(prepared, sent_so_far)?;
        let found = settled(|| Ok(look()), Option::is_some)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Sends the next frames of a probe, and tells how many.
fn send_batch(prepared: &mut Prepared, sent_so_far: u32) -> Result<u32, LabError> {
    let batch = PROBE_BATCH.min(prepared.probe_frames - sent_so_far);
    if sent_so_far == 0 {
        prepared.generator.send(batch)?;
    } else {
        prepared.generator.send_more(batch)?;
    }
    Ok(batch)
}
