//! Profiles and pairs of them, as tests write them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use fwdlab_profile::{Folded, ProfilePair, Profiled};

pub(crate) fn folded(text: &str) -> Folded<'static> {
    Folded::parse(text.as_bytes()).unwrap().into_owned()
}

/// Shape: what a packet costs in the baseline and in the variant.
pub(crate) fn pair<'a>(
    baseline: &'a Folded<'a>,
    variant: &'a Folded<'a>,
    ns: [f64; 2],
) -> ProfilePair<'a> {
    let profiled = |stacks, ns_per_packet| Profiled {
        stacks,
        ns_per_packet,
    };
    ProfilePair {
        baseline: profiled(baseline, ns[0]),
        variant: profiled(variant, ns[1]),
    }
}
