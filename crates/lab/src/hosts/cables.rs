//! Whether the cables between hosts lead where the lab file says.

use fwdlab_model::{Direction, Resolved, Stratum};

use super::Link;
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
    let after = count()?;
    let came = ports.map(|port| {
        let frames = after.get(port).zip(before.get(port));
        frames.map_or(0, |(after, before)| after.saturating_sub(*before))
    });
    Ok(crossed(ports, came, sent.offered_frames))
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
    fn frames_at_the_other_port_tell_crossed_cables() {
        let told = |came| crossed(["eth1", "eth2"], came, 100);
        assert!(
            told([3, 104])
                .unwrap()
                .contains("came in at eth2, the `out` of [dut]")
        );
        for came in [[100, 0], [0, 0], [0, 20], [100, 100]] {
            assert_eq!(told(came), None, "{came:?}");
        }
        assert_eq!(crossed(["eth1", "eth2"], [0, 0], 0), None);
    }
}
