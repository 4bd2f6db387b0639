//! The generator's eBPF program: which one makes the frames, what it is told of them, and its state.

use aya::maps::{Array, MapData};
use fwdlab_model::AddressFamily;

use crate::frames::{Head, REST_SIZE, Size};
use crate::{Frames, Pace, TrafficError, XdpProgram, object_bytes};

/// `struct generator` of the eBPF program, in words.
pub(crate) type State = [u64; 12];

const FLOWS_IN_PIECE: usize = 512;
/// `struct piece` of the eBPF program.
type Piece = [u16; FLOWS_IN_PIECE];

/// The program that makes frames of these sizes in this order: what several sizes cost more, the smallest need not
/// pay.
pub(crate) fn program_for(frames: &Frames) -> &'static str {
    match (frames.are_smallest(), frames.schedule().is_some()) {
        (true, false) => "fwdlab_generate",
        (true, true) => "fwdlab_generate_scheduled",
        (false, false) => "fwdlab_generate_sizes",
        (false, true) => "fwdlab_generate_sizes_scheduled",
    }
}

/// Loads the program with what it needs to know of each direction's frames.
pub(crate) fn load(directions: &[&Frames], name: &'static str) -> Result<XdpProgram, TrafficError> {
    let frames = directions[0];
    let flows = directions
        .iter()
        .map(|frames| frames.flows_in_share())
        .sum();
    let slots = frames.sequence().slots();
    let pieces = pieces(frames);
    let pieces_max = u32::try_from(pieces.len().max(1)).expect("an order is bounded");
    let mut program = XdpProgram::load_with(
        object_bytes!("../bpf/generator.bpf.o"),
        name,
        &[("heads", flows), ("turn", slots), ("schedule", pieces_max)],
        &[("tag", frames.tag_word())],
    )?;
    let failed = |error| TrafficError::bpf("generator: writing the frames", error);
    let mut heads: Array<MapData, Head> = program.take_map("heads");
    let sent_heads = directions.iter().flat_map(|frames| frames.sent_heads());
    for (flow, head) in (0..).zip(sent_heads) {
        heads.set(flow, head, 0).map_err(failed)?;
    }
    let mut schedule: Array<MapData, Piece> = program.take_map("schedule");
    for (number, piece) in (0..).zip(pieces) {
        schedule.set(number, piece, 0).map_err(failed)?;
    }
    let mut turn: Array<MapData, Size> = program.take_map("turn");
    for (slot, size) in (0..).zip(frames.sizes_in_turn()) {
        turn.set(slot, size, 0).map_err(failed)?;
    }
    let mut rest: Array<MapData, [u8; REST_SIZE]> = program.take_map("rest");
    rest.set(0, frames.rest(), 0).map_err(failed)?;
    Ok(program)
}

/// The order of flows that are not sent in turn, in pieces of one length, the last filled up; none where they are.
fn pieces(frames: &Frames) -> Vec<Piece> {
    let schedule = frames.schedule().into_iter();
    let flows: Vec<u16> = schedule.flat_map(|schedule| schedule.flows()).collect();
    let piece = |flows: &[u16]| {
        let mut piece = [0; FLOWS_IN_PIECE];
        piece[..flows.len()].copy_from_slice(flows);
        piece
    };
    flows.chunks(FLOWS_IN_PIECE).map(piece).collect()
}

/// The state of a generator that is about to send its first frame, but for the pace.
pub(crate) fn at_start(frames: &Frames, is_bidirectional: bool) -> State {
    let sequence = frames.sequence();
    let is_inet6 = u32::from(frames.family() == AddressFamily::Inet6);
    let stretch = sequence.stretch();
    [
        0,
        0,
        0,
        0,
        two_words(frames.flows_in_share(), 0),
        0,
        two_words(sequence.slots(), 0),
        stretch,
        stretch,
        two_words(sequence.stretches(), 0),
        two_words(is_inet6, 0),
        two_words(is_bidirectional.into(), sequence.places()),
    ]
}

/// Sets what says when frames are due; the next one is due at once.
pub(crate) fn pace_of(state: &mut State, pace: Pace) {
    let (gap_ns, gap_fraction, burst_frames) = match pace {
        Pace::SelfClocked => (0, 0, 1),
        Pace::Paced { pps, burst_frames } => {
            let burst_frames = burst_frames.max(1);
            let (gap_ns, gap_fraction) = gap(pps, burst_frames);
            (gap_ns, gap_fraction, burst_frames)
        }
    };
    (state[1], state[2]) = (gap_ns, 0);
    state[3] = two_words(gap_fraction, 0);
    state[5] = two_words(burst_frames, 0);
}

/// The time between two bursts, in ns and 2^-32 ns.
fn gap(pps: u64, burst_frames: u32) -> (u64, u32) {
    let gap = ((u128::from(burst_frames) * 1_000_000_000) << 32) / u128::from(pps.max(1));
    let whole = u64::try_from(gap >> 32).expect("at most 2^32 seconds");
    let fraction = u32::try_from(gap & 0xffff_ffff).expect("32 bits are left");
    // A gap of 0 would mean "as fast as it goes".
    (whole.max(1), fraction)
}

/// Two 32-bit fields as they lie in memory.
fn two_words(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use aya::maps::DevMap;
    use aya::programs::{TestRun, TestRunOptions};
    use fwdlab_model::{FrameSize, PortRange, SCHEDULE_FRAMES, Traffic, Zipf};
    use fwdlab_packet::MacAddress;

    use super::*;
    use crate::Link;

    const XDP_DROP: u32 = 1;
    const XDP_REDIRECT: u32 = 4;

    #[test]
    fn gaps_are_exact_to_a_part_in_a_billion() {
        for pps in [1, 3, 100_000, 999_983, 1_000_000, 3_000_000, 14_880_952] {
            for burst_frames in [1, 2, 3, 64, 1000, u32::MAX] {
                let (gap_ns, fraction) = gap(pps, burst_frames);
                #[expect(clippy::cast_precision_loss, reason = "a test of nine digits")]
                let sum =
                    (gap_ns as f64 + f64::from(fraction) / 4_294_967_296.0) * pps as f64 / 1e9;
                let off = sum / f64::from(burst_frames) - 1.0;
                assert!(off.abs() < 1e-9, "{pps}, {burst_frames}: {off}");
            }
        }
    }

    fn frames(family: AddressFamily, sizes: &[(u16, u16)]) -> Frames {
        frames_in_order(family, sizes, None)
    }

    fn frames_in_order(family: AddressFamily, sizes: &[(u16, u16)], zipf: Option<Zipf>) -> Frames {
        frames_of(family, sizes, zipf, None)
    }

    fn frames_of(
        family: AddressFamily,
        sizes: &[(u16, u16)],
        zipf: Option<Zipf>,
        vlan: Option<u16>,
    ) -> Frames {
        let traffic = Traffic {
            zipf,
            vlan,
            sources: 3,
            destinations: 2,
            source_ports: PortRange {
                first: 65_534,
                last: 65_535,
            },
            frame_sizes: sizes
                .iter()
                .map(|&(bytes, share)| FrameSize { bytes, share })
                .collect(),
            ..Traffic::default()
        };
        Frames::new(family, &traffic, link(1), link(2)).unwrap()
    }

    fn link(last: u8) -> Link {
        Link {
            source: MacAddress([2, 0, 0, 0, last, 1]),
            destination: MacAddress([2, 0, 0, 0, last, 2]),
        }
    }

    /// What the program makes of a frame that somebody else has left.
    fn made_by(program: &XdpProgram, left: &[u8]) -> Vec<u8> {
        let mut made = vec![0; left.len()];
        let outcome = program.program().test_run(TestRunOptions {
            data_in: Some(left),
            data_out: Some(&mut made),
            ..TestRunOptions::default()
        });
        let outcome = outcome.unwrap();
        assert_eq!(outcome.return_value, XDP_REDIRECT);
        made.truncate(outcome.data_size_out as usize);
        made
    }

    /// A program that is about to make its first frame, and its state.
    fn ready(
        directions: &[&Frames],
        name: &'static str,
        pace: Pace,
    ) -> (XdpProgram, Array<MapData, State>) {
        let mut program = load(directions, name).unwrap();
        let mut map: Array<MapData, State> = program.take_map("generator");
        // The run is a dry one, but the map has to name interfaces: the loopback is always there.
        let mut interfaces: DevMap<MapData> = program.take_map("interfaces");
        for direction in [0, 1] {
            interfaces.set(direction, 1, None, 0).unwrap();
        }
        let frames = directions[0];
        let mut state = at_start(frames, directions.len() > 1);
        pace_of(&mut state, pace);
        map.set(0, state, 0).unwrap();
        (program, map)
    }

    /// Every frame of more than a period is, byte for byte, the one that was planned.
    fn assert_makes_what_is_planned(frames: &Frames, name: &'static str) {
        let (program, _map) = ready(&[frames], name, Pace::SelfClocked);
        let left = vec![0xaa; frames.largest().len()];
        for number in 0..frames.sequence().period() * 2 + 5 {
            let made = made_by(&program, &left);
            assert_eq!(made, frames.sent(number), "frame {number}");
        }
        let back = frames.reversed(link(3), link(4));
        let (program, _map) = ready(&[frames, &back], name, Pace::SelfClocked);
        for number in 0..frames.sequence().period() * 2 + 5 {
            assert_eq!(made_by(&program, &left), frames.sent(number), "{number}");
            assert_eq!(made_by(&program, &left), back.sent(number), "{number} back");
        }
    }

    /// Frames at the beginning, and where the order of flows begins again, are byte for byte those that were planned.
    fn assert_makes_the_scheduled(frames: &Frames, name: &'static str) {
        let back = frames.reversed(link(3), link(4));
        let sequence = frames.sequence();
        let left = vec![0xaa; frames.largest().len()];
        for directions in [&[frames][..], &[frames, &back]] {
            let (program, mut map) = ready(directions, name, Pace::SelfClocked);
            for first in [0, SCHEDULE_FRAMES - 700] {
                let (place, slot) = sequence.at(first.into());
                let mut state = map.get(&0, 0).unwrap();
                state[4] = two_words(frames.flows_in_share(), place);
                state[6] = two_words(sequence.slots(), slot);
                state[8] = sequence.stretch() - u64::from(first);
                map.set(0, state, 0).unwrap();
                for number in (u64::from(first)..).take(1400) {
                    for direction in directions {
                        assert_eq!(made_by(&program, &left), direction.sent(number), "{number}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_program_makes_every_frame_of_heavy_flows_as_planned() {
        testkit::require_root!();
        let zipf = Some("1.1".parse().unwrap());
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let smallest = frames_in_order(family, &[(64, 1)], zipf);
            assert_makes_the_scheduled(&smallest, "fwdlab_generate_scheduled");
            let sizes = [(64, 7), (594, 4), (1518, 1)];
            let imix = frames_in_order(family, &sizes, zipf);
            for share in imix.shared_out(2).unwrap() {
                assert_makes_the_scheduled(&share, "fwdlab_generate_sizes_scheduled");
            }
        }
    }

    #[test]
    fn the_program_tags_every_frame() {
        testkit::require_root!();
        let zipf = Some("1.1".parse().unwrap());
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            for vlan in [1, 100, 4094].map(Some) {
                let smallest = frames_of(family, &[(64, 1)], None, vlan);
                assert_makes_what_is_planned(&smallest, "fwdlab_generate");
            }
            let sizes = [(64, 3), (66, 1), (69, 1), (1517, 1), (1518, 1)];
            let mix = frames_of(family, &sizes, None, Some(300));
            assert_makes_what_is_planned(&mix, "fwdlab_generate_sizes");
            let heavy = frames_of(family, &[(64, 1)], zipf, Some(300));
            assert_makes_the_scheduled(&heavy, "fwdlab_generate_scheduled");
        }
    }

    #[test]
    fn a_burst_is_sent_at_once_and_the_next_one_later() {
        testkit::require_root!();
        let frames = frames(AddressFamily::Inet, &[(64, 1)]);
        // The second burst is due hours later.
        for burst_frames in [10_001, 100_000] {
            let pace = Pace::Paced {
                pps: 1,
                burst_frames,
            };
            let (program, map) = ready(&[&frames], "fwdlab_generate", pace);
            let offered = || map.get(&0, 0).unwrap()[0];
            assert_eq!(last_outcome(&program, burst_frames), XDP_REDIRECT);
            assert_eq!(offered(), u64::from(burst_frames));
            assert_eq!(last_outcome(&program, 100), XDP_DROP);
            assert_eq!(offered(), u64::from(burst_frames));
        }
    }

    /// Runs the program so many times, and says what it wants with the last frame.
    fn last_outcome(program: &XdpProgram, times: u32) -> u32 {
        let frame = [0; 60];
        let outcome = program.program().test_run(TestRunOptions {
            data_in: Some(&frame),
            repeat: times,
            ..TestRunOptions::default()
        });
        outcome.unwrap().return_value
    }

    #[test]
    fn the_program_makes_every_frame_as_planned() {
        testkit::require_root!();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            assert_makes_what_is_planned(&frames(family, &[(64, 1)]), "fwdlab_generate");
            for sizes in [
                &[(64, 7), (594, 4), (1518, 1)][..],
                &[(1518, 1)],
                &[
                    (64, 1),
                    (66, 1),
                    (68, 1),
                    (69, 1),
                    (70, 1),
                    (71, 1),
                    (1517, 1),
                ],
            ] {
                assert_makes_what_is_planned(&frames(family, sizes), "fwdlab_generate_sizes");
            }
        }
        let odd = frames(AddressFamily::Inet, &[(65, 1), (67, 2)]);
        assert_makes_what_is_planned(&odd, "fwdlab_generate_sizes");
        for share in odd.shared_out(5).unwrap() {
            assert_makes_what_is_planned(&share, "fwdlab_generate_sizes");
        }
    }
}
