//! A log of pkt-gen is read or refused: nothing in it is lost, time does not go back.
#![no_main]

use fwdlab_pkt_gen::{Noise, PktGenLog, PublishedMedian, published_observation, steady_state};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    for median in [PublishedMedian::Averaged, PublishedMedian::Upper] {
        let _ = published_observation(text, median);
    }
    let Ok(log) = PktGenLog::parse(text) else {
        return;
    };
    // The command is a line, a summary one or two.
    let noise = log
        .noise
        .iter()
        .filter(|(kind, _)| **kind != Noise::ScreenTitle);
    let summary = log
        .summary
        .map_or(0, |summary| 1 + usize::from(summary.speed.is_some()));
    let known = log.samples.len()
        + log.setup_lines
        + summary
        + noise.map(|(_, lines)| lines).sum::<usize>();
    let others = log.lines - known - log.unknown_lines;
    assert!(others <= usize::from(log.command.is_some()));
    assert!(
        log.samples
            .is_sorted_by_key(|sample| (sample.line, sample.end_us))
    );
    assert!(log.samples.is_sorted_by_key(|sample| sample.end_us));
    if let Some(steady) = steady_state(&log) {
        assert!(steady.samples > 0 && steady.samples <= log.samples.len());
        assert!(steady.median_pps.is_finite() && steady.mean_pps().is_finite());
    }
});
