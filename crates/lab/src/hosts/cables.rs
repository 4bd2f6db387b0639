//! Whether the cables between hosts lead where the lab file says.

use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{Direction, Resolved, Stratum};

use super::Link;
use super::load::{BETWEEN_LOOKS, COUNTERS_LATE_MAX};
use super::surveyed::received;
use crate::LabError;

/// What to do where frames of which none was forwarded come in at the port that they were to leave by; they are sent once
/// more for it.
///
/// # Errors
/// Those of the connections.
pub(super) fn crossed_cables(
    link: &mut Link,
    resolved: &Resolved,
    stratum: Stratum,
) -> Result<Option<String>, LabError> {
    // Both ports get frames.
    if resolved.direction() == Direction::Both {
        return Ok(None);
    }
    let Link {
        dut_connection,
        system,
        dut,
        tester,
        ..
    } = link;
    let ports = dut.host.ports();
    let count = || received(dut_connection, *system, &ports);
    let before = count()?;
    let (sent, _) = tester.probe(dut.crossed_by(resolved, stratum))?;
    let sent = sent.offered_frames;
    let came = counted(sent, COUNTERS_LATE_MAX, || {
        let after = count()?;
        Ok(ports.map(|port| {
            let frames = after.get(port).zip(before.get(port));
            frames.map_or(0, |(after, before)| after.saturating_sub(*before))
        }))
    })?;
    Ok(crossed(ports, came, sent))
}

/// How many frames came in at two ports, once one of them has counted all that were sent, or has had the time for it.
fn counted(
    sent: u64,
    late_max: Duration,
    mut came: impl FnMut() -> Result<[u64; 2], LabError>,
) -> Result<[u64; 2], LabError> {
    let start = Instant::now();
    loop {
        let came = came()?;
        if came.iter().any(|frames| *frames >= sent) || start.elapsed() >= late_max {
            return Ok(came);
        }
        sleep(BETWEEN_LOOKS);
    }
}

fn crossed([port_in, port_out]: [&str; 2], came: [u64; 2], sent: u64) -> Option<String> {
    let [came_in, came_out] = came;
    (sent > 0 && came_out >= sent && came_in < sent).then(|| {
        format!(
            "; the cables seem crossed: the tester's frames came in at {port_out}, the `out` of [dut], and not at \
             {port_in}, its `in`; swap the cables, or `in` and `out` in [dut] of the lab file"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_at_the_other_port_mean_crossed_cables() {
        let advice = |came| crossed(["eth1", "eth2"], came, 100);
        assert!(
            advice([3, 104])
                .unwrap()
                .contains("came in at eth2, the `out` of [dut]")
        );
        for came in [[100, 0], [0, 0], [0, 20], [100, 100]] {
            assert_eq!(advice(came), None, "{came:?}");
        }
        assert_eq!(crossed(["eth1", "eth2"], [0, 0], 0), None);
    }

    #[test]
    fn counters_that_are_behind_are_read_again_for_some_time() {
        let mut looks = [[0, 0], [0, 40], [1, 100], [1, 200]].into_iter();
        let came = counted(100, COUNTERS_LATE_MAX, || Ok(looks.next().unwrap()));
        assert_eq!(came.unwrap(), [1, 100]);
        assert_eq!(counted(100, Duration::ZERO, || Ok([2, 3])).unwrap(), [2, 3]);
    }
}
