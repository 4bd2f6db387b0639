//! Which frames are the harness's and not the kernel's that it measures.

use crate::Folded;

/// What the harness is called where its frames are folded into one.
const HARNESS: &str = "fwdlab";

/// How the names of functions begin by which Linux is entered, on x86 and ARM: system calls, interrupts, faults.
const KERNEL_ENTRIES: &[&str] = &["entry_SYSCALL", "asm_", "el0", "el1"];

/// What a thread calls of the C library between Rust and the kernel, where an entry is missing on the stack.
const LIBRARY: &[&str] = &["clone", "clone3", "start_thread", "syscall"];

impl Folded<'_> {
    /// The same with the harness's own frames in one, `fwdlab`, at the root: its thread, and all that the thread
    /// calls up to where the kernel is entered. Stacks without a function of the harness stay as they are.
    ///
    /// For a kernel that is measured. Where the harness itself forwards, as the reference router does, it is what
    /// is looked at.
    #[must_use]
    pub fn with_harness_in_one(&self) -> Folded<'static> {
        let mut folded = Folded::new();
        for stack in self.stacks() {
            let frames: Vec<&str> = stack.frames().collect();
            let beyond = harness_depth(&frames);
            let harness = (beyond > 0).then_some(HARNESS);
            let kept = harness.into_iter().chain(frames[beyond..].iter().copied());
            folded.push(kept.map(str::to_owned), stack.samples);
        }
        folded.merged()
    }
}

/// How many frames at the root are the harness's; 0 where none is.
fn harness_depth(frames: &[&str]) -> usize {
    let is_entry = |frame: &&str| KERNEL_ENTRIES.iter().any(|entry| frame.starts_with(entry));
    // The first frame is the thread, whose name may be anything.
    let functions = frames.get(1..).unwrap_or_default();
    let entry = functions.iter().position(is_entry);
    let before = &functions[..entry.unwrap_or(functions.len())];
    let Some(last) = before.iter().rposition(|frame| is_harness(frame)) else {
        return 0;
    };
    // Behind the last function of Rust may be some of the C library; without an entry they look like the kernel's.
    1 + entry.unwrap_or(last + 1)
}

/// Whether a function is one of the harness: of Rust, with its path or without a name, or of the library below it.
fn is_harness(function: &str) -> bool {
    function.contains("::") || function == "[fwdlab]" || LIBRARY.contains(&function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let stacks = Folded::parse(text.as_bytes()).expect("folded stacks");
        stacks.with_harness_in_one().to_string()
    }

    #[test]
    fn what_enters_the_kernel_is_one_frame() {
        let thread = "fwdlab;[fwdlab];<std::sys::thread::unix::Thread>::new::thread_start;start_thread;\
                      <aya::programs::xdp::Xdp as aya::programs::TestRun>::test_run;syscall";
        let kernel = "do_syscall_64;__x64_sys_bpf;bpf_test_run_xdp_live;ip_forward";
        assert_eq!(
            folded(&format!(
                "{thread};entry_SYSCALL_64_after_hwframe;{kernel} 7\n"
            )),
            format!("fwdlab;entry_SYSCALL_64_after_hwframe;{kernel} 7\n")
        );
        // The unwinder may miss the entry, or the sample be of the harness itself.
        assert_eq!(
            folded(&format!(
                "{thread};bpf_prog_a9ad_generate 2\n{thread} 1\ntester;fwdlab_traffic::send 3\n"
            )),
            "fwdlab 4\nfwdlab;bpf_prog_a9ad_generate 2\n"
        );
        // An interrupt comes on top of the harness, and the library's calls go before the entry.
        assert_eq!(
            folded("tx;fwdlab_traffic::send;asm_sysvec_call_function;net_rx_action 1\n"),
            "fwdlab;asm_sysvec_call_function;net_rx_action 1\n"
        );
        assert_eq!(
            folded("tx;fwdlab_traffic::send;__sendmmsg;entry_SYSCALL_64;veth_xmit 1\n"),
            "fwdlab;entry_SYSCALL_64;veth_xmit 1\n"
        );
    }

    #[test]
    fn what_is_not_the_harness_stays_and_no_sample_is_lost() {
        for stack in [
            "ksoftirqd/0;ret_from_fork_asm;run_ksoftirqd;veth_poll 5\n",
            "iperf3;[user];entry_SYSCALL_64_after_hwframe;veth_xmit 5\n",
            "fwdlab;ip_forward;fib_lookup 5\n",
            "fwdlab 5\n",
        ] {
            assert_eq!(folded(stack), stack);
        }
    }
}
