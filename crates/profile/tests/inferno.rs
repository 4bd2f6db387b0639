//! `perf script` folded beside inferno: the same stacks with the same counts.

use std::collections::BTreeMap;

use fwdlab_profile::{FrameNames, PerfScript};
use inferno::collapse::Collapse as _;
use inferno::collapse::perf::Folder;
use proptest::prelude::*;

/// The samples by their stacks.
fn counts(folded: &str) -> BTreeMap<&str, u64> {
    let lines = folded.lines().map(|line| {
        let (stack, samples) = line.rsplit_once(' ').expect("a stack and its samples");
        (stack, samples.parse().expect("a count"))
    });
    lines.collect()
}

proptest! {
    /// Of one event, with plain names, and a period of 1, because inferno adds up periods.
    #[test]
    fn stacks_are_folded_as_inferno_folds_them(
        samples in prop::collection::vec(
            (
                "[b-h][a-z]{0,3}",
                prop::option::of(0_u32..64),
                prop::collection::vec(("[a-z_]{1,3}", prop::option::of(0_u32..4096)), 1..6),
            ),
            1..40,
        ),
        event in "cycles|cpu-clock|cycles:ppp|cpu_core/cycles/|sched:sched_switch",
    ) {
        let mut text = String::new();
        for (index, (process, cpu, functions)) in samples.iter().enumerate() {
            let cpu = cpu.map_or(String::new(), |cpu| format!("[{cpu:03}] "));
            text += &format!("{process} {index:>5} {cpu}{index:>5}.000007:          1 {event}: \n");
            for (function, offset) in functions {
                let offset = offset.map_or(String::new(), |offset| format!("+{offset:#x}"));
                text += &format!("\t{:>16x} {function}{offset} ([kernel.kallsyms])\n", index + 16);
            }
            text.push('\n');
        }
        let mut theirs = Vec::new();
        Folder::default().collapse(text.as_bytes(), &mut theirs).expect("folded stacks");
        let ours = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None).expect("perf script");
        prop_assert!(ours.left_out.is_empty());
        let (ours, theirs) = (ours.folded.to_string(), String::from_utf8(theirs).expect("text"));
        // inferno cuts an event at its second colon, and so takes all of one that has two.
        prop_assert_eq!(counts(&ours), counts(&theirs));
    }
}
