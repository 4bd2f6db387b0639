//! The names of the kernel's functions.

use std::ops::Range;
use std::str;

/// Behind it is no function of the kernel's own that runs after the boot.
const END: &str = "_etext";

/// What eBPF programs have in the place of a module.
const PROGRAMS: &str = "[bpf]";

/// The functions of a running Linux kernel, its modules and the programs loaded into it, by their addresses.
///
/// # Source
/// Linux: `kernel/kallsyms.c`, which prints `/proc/kallsyms`; `kernel/module/procfs.c`, which prints `/proc/modules`.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols {
    /// By address, each address once.
    functions: Vec<Function>,
    /// Where modules are; none where that is not known.
    modules: Vec<Range<u64>>,
    /// Whether programs are among the functions.
    lists_programs: bool,
}

#[derive(Clone, Debug)]
struct Function {
    address: u64,
    name: Box<str>,
    of: Of,
}

/// What a function is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Kernel,
    /// The kernel, which threw it away when it had booted.
    Boot,
    Module,
    Program,
}

/// A function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFunction<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it is a module's or a loaded program's: its place may be another's later.
    pub comes_and_goes: bool,
}

/// Why a list of symbols is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelSymbolsError {
    /// A line is no symbol.
    #[error("line {line}: expected an address, a type and a name")]
    Line {
        /// The line, from 1.
        line: usize,
    },
    /// The kernel hides where its functions are.
    #[error(
        "the kernel hides the addresses of its functions; be root, or set kernel.kptr_restrict to 0"
    )]
    Hidden,
}

impl KernelSymbols {
    /// Reads what `/proc/kallsyms` holds, and what `/proc/modules` does, or nothing in its place.
    ///
    /// # Errors
    /// [`KernelSymbolsError`].
    pub fn parse(text: &[u8], modules: &[u8]) -> Result<Self, KernelSymbolsError> {
        let mut functions = Vec::new();
        let mut end = u64::MAX;
        for (line, text) in (1..).zip(text.split(|&byte| byte == b'\n')) {
            if text.is_empty() {
                continue;
            }
            let symbol = Symbol::of(text).ok_or(KernelSymbolsError::Line { line })?;
            if symbol.name == END && symbol.of == Of::Kernel {
                end = symbol.address;
            }
            if let Some(function) = symbol.function() {
                functions.push(function);
            }
        }
        if functions
            .iter()
            .all(|function: &Function| function.address == 0)
        {
            return Err(KernelSymbolsError::Hidden);
        }
        // Of several names of one address the first stands.
        functions.sort_by_key(|function| function.address);
        functions.dedup_by_key(|function| function.address);
        for function in &mut functions {
            if function.of == Of::Kernel && function.address >= end {
                function.of = Of::Boot;
            }
        }
        let modules = modules.split(|&byte| byte == b'\n');
        Ok(Self {
            lists_programs: functions.iter().any(|function| function.of == Of::Program),
            functions,
            modules: modules.filter_map(place_of_module).collect(),
        })
    }

    /// Whether programs are listed. The kernel lists none where `net.core.bpf_jit_harden` is set, or
    /// `net.core.bpf_jit_kallsyms` is not.
    #[must_use]
    pub const fn lists_programs(&self) -> bool {
        self.lists_programs
    }

    /// Where a function of the kernel itself begins; none where there is none of that name.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        let mut functions = self.functions.iter();
        let function =
            functions.find(|function| &*function.name == name && function.of == Of::Kernel);
        function.map(|function| function.address)
    }

    /// The function that an address is in: the last one that begins before it; none where that one has no code there.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<KernelFunction<'_>> {
        let after = self
            .functions
            .partition_point(|function| function.address <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        let is_there = match function.of {
            Of::Kernel | Of::Program => true,
            Of::Boot => false,
            Of::Module => {
                let mut modules = self.modules.iter();
                self.modules.is_empty() || modules.any(|place| place.contains(&address))
            }
        };
        is_there.then_some(KernelFunction {
            name: &function.name,
            comes_and_goes: function.of != Of::Kernel,
        })
    }
}

/// Where a module is, by its line in `/proc/modules`: `veth 45056 0 - Live 0xffffffffc0a00000`. None where the kernel hides it.
fn place_of_module(line: &[u8]) -> Option<Range<u64>> {
    let mut words = str::from_utf8(line).ok()?.split_ascii_whitespace();
    let size: u64 = words.nth(1)?.parse().ok()?;
    let start = words.nth(3)?.strip_prefix("0x")?;
    let start = u64::from_str_radix(start, 16).ok().filter(|&it| it > 0)?;
    Some(start..start.checked_add(size)?)
}

/// A line, taken apart.
struct Symbol<'t> {
    address: u64,
    kind: u8,
    name: &'t str,
    of: Of,
}

impl<'t> Symbol<'t> {
    fn of(line: &'t [u8]) -> Option<Self> {
        let mut words = str::from_utf8(line).ok()?.split_ascii_whitespace();
        Some(Self {
            address: u64::from_str_radix(words.next()?, 16).ok()?,
            kind: *words.next()?.as_bytes().first()?,
            name: words.next()?,
            of: match words.next() {
                None => Of::Kernel,
                Some(PROGRAMS) => Of::Program,
                Some(_) => Of::Module,
            },
        })
    }

    /// None of data, and of the space in front of functions that is never run.
    fn function(&self) -> Option<Function> {
        let is_code =
            matches!(self.kind, b't' | b'T' | b'w' | b'W') && !self.name.starts_with("__pfx_");
        is_code.then(|| Function {
            address: self.address,
            name: self.name.into(),
            of: self.of,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &[u8] = b"ffffffff81000000 T _stext\n\
        ffffffff81000010 t ip_forward_finish\n\
        ffffffff81000030 T __pfx_ip_forward\n\
        ffffffff81000040 T ip_forward\n\
        ffffffff81000040 t ip_forward_alias\n\
        ffffffff82000000 D jiffies\n\
        ffffffffc0000000 t nft_do_chain\t[nf_tables]\n\
        ffffffffc0001000 t bpf_prog_6deef7357e7b4530_forward\t[bpf]\n";

    #[test]
    fn an_address_is_of_the_last_function_that_begins_before_it() {
        let symbols = KernelSymbols::parse(TEXT, b"").unwrap();
        assert!(symbols.lists_programs());
        for (address, name, comes_and_goes) in [
            (0xffff_ffff_8100_0000, "_stext", false),
            (0xffff_ffff_8100_0035, "ip_forward_finish", false),
            (0xffff_ffff_8100_0041, "ip_forward", false),
            (0xffff_ffff_c000_0fff, "nft_do_chain", true),
            (u64::MAX, "bpf_prog_6deef7357e7b4530_forward", true),
        ] {
            let function = symbols.function(address).unwrap();
            assert_eq!(
                (function.name, function.comes_and_goes),
                (name, comes_and_goes)
            );
        }
        assert_eq!(symbols.function(7), None);
    }

    #[test]
    fn what_is_not_listed_has_not_the_name_of_what_is_before_it() {
        let text = b"ffffffff81000000 T ip_forward\nffffffff82000000 T _etext\nffffffff83000000 t start_kernel\n\
            ffffffffc0000000 t nft_do_chain\t[nf_tables]\n";
        let modules = b"nf_tables 4096 1 - Live 0xffffffffc0000000\nhidden 4096 0 - Live 0x0000000000000000\n";
        let symbols = KernelSymbols::parse(text, modules).unwrap();
        assert!(!symbols.lists_programs());
        let name = |address| symbols.function(address).map(|function| function.name);
        assert_eq!(name(0xffff_ffff_8100_0001), Some("ip_forward"));
        assert_eq!(name(0xffff_ffff_8300_0001), None);
        assert_eq!(name(0xffff_ffff_c000_0fff), Some("nft_do_chain"));
        assert_eq!(name(0xffff_ffff_c000_1000), None);
    }

    #[test]
    fn hidden_addresses_are_told_from_a_list_that_is_none() {
        let hidden = b"0000000000000000 T _stext\n0000000000000000 t ip_forward\n";
        assert_eq!(
            KernelSymbols::parse(hidden, b"").unwrap_err(),
            KernelSymbolsError::Hidden
        );
        assert_eq!(
            KernelSymbols::parse(b"", b"").unwrap_err(),
            KernelSymbolsError::Hidden
        );
        let error = KernelSymbols::parse(b"ff T a\nprose\n", b"").unwrap_err();
        assert_eq!(error, KernelSymbolsError::Line { line: 2 });
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, modules: Vec<u8>, address: u64) {
            if let Ok(symbols) = KernelSymbols::parse(&bytes, &modules) {
                let _ = symbols.function(address);
            }
        }
    }
}
