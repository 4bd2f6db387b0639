//! `perf script` of one event and plain names is folded to the stacks and counts that inferno folds it to.
#![no_main]

use std::fmt::Write as _;

use fwdlab_profile::{FrameNames, PerfScript};
use inferno::collapse::Collapse as _;
use inferno::collapse::perf::Folder;
use libfuzzer_sys::fuzz_target;

const PROCESSES: [&str; 4] = ["nc", "Web Content", "ksoftirqd/0", "swapper"];
const FUNCTIONS: [&str; 7] = [
    "main",
    "ip_rcv",
    "ip_forward",
    "a.b",
    "__x64_sys",
    "memset",
    "poll",
];

fuzz_target!(|bytes: &[u8]| {
    let mut text = String::new();
    // A zero ends a sample: its first byte is of the process, the others are functions with their offsets.
    for sample in bytes
        .split(|&byte| byte == 0)
        .filter(|sample| sample.len() > 1)
    {
        let process = PROCESSES[usize::from(sample[0] % 4)];
        let _ = writeln!(
            text,
            "{process} {} [{:03}] 12.000007: 1 cycles: ",
            sample[0],
            sample[0] % 8
        );
        for byte in &sample[1..] {
            let function = FUNCTIONS[usize::from(byte % 7)];
            let offset = format!("+{:#x}", byte / 8);
            let _ = writeln!(text, "\t{byte:>16x} {function}{offset} ([kernel.kallsyms])");
        }
        text.push('\n');
    }
    if text.is_empty() {
        return;
    }
    let mut theirs = Vec::new();
    Folder::default()
        .collapse(text.as_bytes(), &mut theirs)
        .expect("folded stacks");
    let ours = PerfScript::read(text.as_bytes(), FrameNames::Symbols, None).expect("perf script");
    // inferno puts underscores into names of processes.
    let ours = ours
        .folded
        .to_string()
        .replace("Web Content", "Web_Content");
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(
        lines(&ours),
        lines(std::str::from_utf8(&theirs).expect("text"))
    );
});
