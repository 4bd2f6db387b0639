//! What the functions on a sample's stack are called.

use std::collections::HashMap;
use std::fs;

use blazesym::Pid;
use blazesym::symbolize::source::{Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use fwdlab_profile::{KernelSymbols, KernelSymbolsError, is_forwarding};
use fwdlab_sys::StackSample;

/// What a function of the kernel is called where no name is known.
const KERNEL: &str = "[kernel]";
/// What an eBPF program is called where the kernel hides the names of all.
const PROGRAM: &str = "[bpf]";
/// What the code of another process is called: all of it.
const OTHER_PROCESS: &str = "[user]";
/// What a function of this process is called where no name is known.
const UNNAMED: &str = "[fwdlab]";

/// Names of addresses and threads, looked up once.
pub(crate) struct Symbols {
    kernel: Result<KernelSymbols, KernelSymbolsError>,
    /// Whether the kernel's list was read since the slice began.
    is_fresh: bool,
    symbolizer: Symbolizer,
    of_process: HashMap<u64, String>,
    threads: HashMap<u32, Thread>,
}

/// Whose thread it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The kernel's own, idle ones among them.
    Kernel,
    /// This process's.
    This,
    /// Another program's.
    Other,
}

#[derive(Clone)]
struct Thread {
    name: String,
    owner: Owner,
}

/// A sample with names.
pub(super) struct Named {
    /// Its thread, and its functions from the outermost to the innermost.
    pub(super) frames: Vec<String>,
    /// Whether another program ran, and forwarded nothing: an interrupt may find any program running.
    pub(super) is_foreign: bool,
}

impl Symbols {
    pub(crate) fn new() -> Self {
        Self {
            kernel: Err(KernelSymbolsError::Hidden),
            is_fresh: false,
            symbolizer: Symbolizer::new(),
            of_process: HashMap::new(),
            threads: HashMap::new(),
        }
    }

    /// Tells that samples of another slice come: programs and threads may have come and gone.
    pub(super) fn begin_slice(&mut self) {
        self.is_fresh = false;
        self.threads.clear();
    }

    /// A sample with the names of its functions.
    pub(super) fn name(&mut self, sample: &StackSample) -> Named {
        let Thread { name, owner } = self.thread(sample.thread);
        let mut frames = vec![name];
        if owner == Owner::This {
            for (depth, &address) in sample.user.iter().enumerate().rev() {
                frames.push(self.of_process(called_from(address, depth)));
            }
        } else if !sample.user.is_empty() {
            frames.push(OTHER_PROCESS.to_owned());
        }
        for (depth, &address) in sample.kernel.iter().enumerate().rev() {
            frames.push(self.of_kernel(called_from(address, depth)));
        }
        let is_foreign = owner == Owner::Other && !frames.iter().any(|frame| is_forwarding(frame));
        Named { frames, is_foreign }
    }

    fn of_kernel(&mut self, address: u64) -> String {
        let function = self
            .kernel
            .as_ref()
            .ok()
            .and_then(|it| it.function(address));
        // It may be the end of what was there, and something else be there now.
        if function.is_none_or(|function| function.comes_and_goes) && !self.is_fresh {
            self.read_kernel();
        }
        kernel_name(&self.kernel, address).to_owned()
    }

    fn read_kernel(&mut self) {
        self.is_fresh = true;
        let [symbols, modules] =
            ["/proc/kallsyms", "/proc/modules"].map(|file| fs::read(file).unwrap_or_default());
        self.kernel = KernelSymbols::parse(&symbols, &modules);
    }

    fn of_process(&mut self, address: u64) -> String {
        let symbolizer = &self.symbolizer;
        self.of_process
            .entry(address)
            .or_insert_with(|| name(symbolizer, address))
            .clone()
    }

    fn thread(&mut self, thread: u32) -> Thread {
        self.threads
            .entry(thread)
            .or_insert_with(|| look_up(thread))
            .clone()
    }
}

/// The function of the kernel at an address. What is neither the kernel's own nor a module's is an eBPF program; where one is
/// listed, all are.
fn kernel_name(kernel: &Result<KernelSymbols, KernelSymbolsError>, address: u64) -> &str {
    let Ok(symbols) = kernel else {
        return KERNEL;
    };
    match symbols.function(address) {
        Some(function) => function.name,
        None if symbols.lists_programs() => KERNEL,
        None => PROGRAM,
    }
}

/// Who a thread is, as long as it is there.
fn look_up(thread: u32) -> Thread {
    if thread == 0 {
        return Thread {
            name: "swapper".to_owned(),
            owner: Owner::Kernel,
        };
    }
    let read = |folder: &str| fs::read_to_string(format!("{folder}/{thread}/comm"));
    if let Ok(name) = read("/proc/self/task") {
        return Thread {
            name: name.trim_end().to_owned(),
            owner: Owner::This,
        };
    }
    // Only threads of the kernel have no memory of their own, and so no file that is mapped there.
    let maps = fs::read(format!("/proc/{thread}/maps"));
    let owner = match maps {
        Ok(maps) if maps.is_empty() => Owner::Kernel,
        _ => Owner::Other,
    };
    let name = read("/proc").unwrap_or_else(|_| "[ended]".to_owned());
    Thread {
        name: of_any(name.trim_end()).to_owned(),
        owner,
    }
}

/// The function of this process at an address: its symbol, with its whole path.
///
/// What is inlined counts to what it is inlined into: line tables have its name without its path, and a helper of
/// the standard library says nothing of where the time goes.
fn name(symbolizer: &Symbolizer, address: u64) -> String {
    let mut process = Process::new(Pid::Slf);
    process.debug_syms = false;
    // The links of map_files are for root; the program's own file is where it was started.
    process.map_files = false;
    let source = Source::Process(process);
    match symbolizer.symbolize_single(&source, Input::AbsAddr(address)) {
        Ok(Symbolized::Sym(symbol)) => without_levels(&symbol.name),
        _ => UNNAMED.to_owned(),
    }
}

/// A function's name without what its generic parameters are: the router has a function for each level of its
/// knobs, and they are to be compared as one.
fn without_levels(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut depth = 0_usize;
    let mut before = ' ';
    for char in name.chars() {
        match char {
            // `<T as Trait>::f` begins with what it is of; `f<T>` ends with what it is made for.
            '<' if depth > 0 || before.is_alphanumeric() || before == '_' || before == ':' => {
                depth += 1;
            }
            '>' if depth > 0 && before != '-' => depth -= 1,
            _ if depth > 0 => {}
            char => plain.push(char),
        }
        before = char;
    }
    plain.trim_end_matches("::").to_owned()
}

/// What a caller's address is looked up by: it is where the call returns to, which may be another function.
fn called_from(address: u64, depth: usize) -> u64 {
    if depth == 0 { address } else { address - 1 }
}

/// A kernel worker is as good as any other.
fn of_any(name: &str) -> &str {
    if name.starts_with("kworker/") {
        return "kworker";
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_called_the_same_whatever_it_is_made_for() {
        for (name, plain) in [
            (
                "fwdlab_router::nodes::lookup::<true, 4>",
                "fwdlab_router::nodes::lookup",
            ),
            (
                "fwdlab_router::nodes::lookup<true, 4>",
                "fwdlab_router::nodes::lookup",
            ),
            (
                "<fwdlab_router::Worker as Poll>::poll",
                "<fwdlab_router::Worker as Poll>::poll",
            ),
            ("<Vec<T> as X<fn() -> u8>>::y::<u8>", "<Vec as X>::y"),
            ("main", "main"),
        ] {
            assert_eq!(without_levels(name), plain);
        }
    }

    #[test]
    fn programs_whose_names_the_kernel_hides_are_called_so() {
        let kernel = "ffffffff81000000 T ip_forward\nffffffff82000000 T _etext\n";
        let program = "ffffffffc0000000 t bpf_prog_6deef7357e7b4530_plain\t[bpf]\n";
        let symbols = |text: &str| KernelSymbols::parse(text.as_bytes(), b"");
        let named = |symbols, address| kernel_name(&symbols, address).to_owned();
        let [hidden, listed] = [symbols(kernel), symbols(&[kernel, program].concat())];
        assert_eq!(named(hidden.clone(), 0xffff_ffff_8100_0001), "ip_forward");
        assert_eq!(named(hidden, 0xffff_ffff_c000_0001), "[bpf]");
        let name = "bpf_prog_6deef7357e7b4530_plain";
        assert_eq!(named(listed.clone(), 0xffff_ffff_c000_0001), name);
        assert_eq!(named(listed, 0xffff_ffff_b000_0001), "[kernel]");
        let none = Err(KernelSymbolsError::Hidden);
        assert_eq!(named(none, 0xffff_ffff_c000_0001), "[kernel]");
    }

    #[test]
    fn this_functions_name_is_found() {
        let mut symbols = Symbols::new();
        let sample = StackSample {
            at_ns: 0,
            thread: fwdlab_sys::this_thread(),
            kernel: Vec::new(),
            user: vec![this_functions_name_is_found as fn() as usize as u64 + 1],
        };
        let frames = symbols.name(&sample).frames;
        assert!(
            frames[1].contains("this_functions_name_is_found"),
            "{frames:?}"
        );
    }
}
