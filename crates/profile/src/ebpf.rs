//! What eBPF programs are called on stacks.

use std::borrow::Cow;

use crate::Folded;

/// How Linux begins the name of a program's machine code.
const PROGRAM: &str = "bpf_prog_";

/// The digits of the tag that follows.
const TAG_DIGITS: usize = 16;

/// What Linux calls a function below a program's whose object names no functions.
const NAMELESS: &str = "F";

/// The kernel's own interpreter of programs.
const INTERPRETER: &str = "___bpf_prog_run";

/// What fwdlab's sampler calls the machine code of programs where the kernel hides their names.
const HIDDEN: &str = "[bpf]";

impl<'a> Folded<'a> {
    /// The same with eBPF programs under the names of their functions, so that versions of a program can be compared:
    /// `bpf_prog_6deef7357e7b4530_forward` becomes `bpf_prog_forward`. The tag is a hash of the instructions.
    ///
    /// # Source
    /// Linux: `bpf_get_prog_name` in `kernel/bpf/core.c`; `jit_subprogs` in `kernel/bpf/verifier.c` for `F`.
    #[must_use]
    pub fn with_programs_by_name(&self) -> Folded<'static> {
        let mut folded = Folded::new();
        for stack in self.stacks() {
            let frames = stack.frames().map(|frame| without_tags(frame).into_owned());
            folded.push(frames, stack.samples);
        }
        folded.merged()
    }

    /// Whether the kernel interpreted eBPF programs, so that their functions are on no stack.
    #[must_use]
    pub fn has_interpreted_programs(&self) -> bool {
        self.samples_through(|frame| frame == INTERPRETER) > 0
    }

    /// Whether the kernel hid the names of eBPF programs.
    #[must_use]
    pub fn has_hidden_programs(&self) -> bool {
        self.samples_through(|frame| frame == HIDDEN) > 0
    }
}

/// A frame without the tags of programs in it; an object in front of a backquote may be named after a program as well.
fn without_tags(frame: &str) -> Cow<'_, str> {
    let mut plain = Cow::Borrowed(frame);
    let mut at = 0;
    while let Some(found) = plain[at..].find(PROGRAM) {
        at += found + PROGRAM.len();
        if let Some(length) = tag_length(&plain[at..]) {
            plain.to_mut().replace_range(at..at + length, "");
        }
    }
    plain
}

/// How long a tag is, with the line behind it, where a name follows.
fn tag_length(text: &str) -> Option<usize> {
    let (tag, behind) = text.split_at_checked(TAG_DIGITS)?;
    let name = behind.strip_prefix('_')?.split('`').next()?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_tag = tag.bytes().all(is_hex) && !name.is_empty() && name != NAMELESS;
    is_tag.then_some(TAG_DIGITS + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_of_a_program_have_one_name() {
        for (frame, plain) in [
            ("bpf_prog_6deef7357e7b4530_forward", "bpf_prog_forward"),
            (
                "bpf_prog_6deef7357e7b4530_a`bpf_prog_6deef7357e7b4530_a",
                "bpf_prog_a`bpf_prog_a",
            ),
            // Those of one program without names would become one.
            ("bpf_prog_6deef7357e7b4530_F", "bpf_prog_6deef7357e7b4530_F"),
            ("bpf_prog_6deef7357e7b4530", "bpf_prog_6deef7357e7b4530"),
            ("bpf_prog_6deef7357e7b4530_", "bpf_prog_6deef7357e7b4530_"),
            // The kernel's own.
            ("bpf_prog_test_run_xdp", "bpf_prog_test_run_xdp"),
        ] {
            assert_eq!(without_tags(frame), plain);
        }
        let stacks =
            "rx;bpf_prog_6deef7357e7b4530_forward 2\nrx;bpf_prog_0123456789abcdef_forward 3\n";
        let stacks = Folded::parse(stacks.as_bytes()).unwrap();
        let together = stacks.with_programs_by_name();
        assert_eq!(together.to_string(), "rx;bpf_prog_forward 5\n");
    }

    proptest! {
        #[test]
        fn any_name_stays_one(frame in "(bpf_prog_|[0-9a-f]{16}|_|`|\\PC){0,8}") {
            prop_assert!(without_tags(&frame).len() <= frame.len());
        }
    }
}
