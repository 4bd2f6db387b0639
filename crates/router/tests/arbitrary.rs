//! Whatever comes in, the router neither panics nor lets anything out that is wrong.
//!
//! The fuzz target `router` runs the same.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod rig;

use proptest::prelude::*;

use rig::scenario::Scenario;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_comes_out_is_right_whatever_comes_in(
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        Scenario::of(&bytes).run();
    }

    #[test]
    fn frames_of_right_shape_at_every_combination_of_levels(
        switches in 0_u16..0x100,
        sizes in prop::array::uniform5(any::<u8>()),
        frames in prop::collection::vec(
            (2_u8..8, any::<bool>(), prop::collection::vec(any::<u8>(), 24)),
            0..120,
        ),
    ) {
        let mut bytes = switches.to_be_bytes().to_vec();
        bytes.extend(sizes);
        for (kind, port, rest) in frames {
            bytes.push(kind | 0x10 | u8::from(port) << 7);
            bytes.extend(rest);
        }
        Scenario::of(&bytes).run();
    }
}
