//! The names of the kernel's functions.

use std::str;

/// The functions of a running Linux kernel, its modules and the programs loaded into it, by their addresses.
///
/// # Source
/// Linux: `kernel/kallsyms.c`, which prints `/proc/kallsyms`.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols {
    /// By address, each address once.
    functions: Vec<Function>,
}

#[derive(Clone, Debug)]
struct Function {
    address: u64,
    name: Box<str>,
    comes_and_goes: bool,
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
    /// Reads what `/proc/kallsyms` holds.
    ///
    /// # Errors
    /// [`KernelSymbolsError`].
    pub fn parse(text: &[u8]) -> Result<Self, KernelSymbolsError> {
        let mut functions = Vec::new();
        for (line, text) in (1..).zip(text.split(|&byte| byte == b'\n')) {
            if text.is_empty() {
                continue;
            }
            let symbol = Symbol::of(text).ok_or(KernelSymbolsError::Line { line })?;
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
        Ok(Self { functions })
    }

    /// Where a function of the kernel itself begins; none where there is none of that name.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        let mut functions = self.functions.iter();
        let function =
            functions.find(|function| &*function.name == name && !function.comes_and_goes);
        function.map(|function| function.address)
    }

    /// The function that an address is in: the last one that begins before it.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<KernelFunction<'_>> {
        let after = self
            .functions
            .partition_point(|function| function.address <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        Some(KernelFunction {
            name: &function.name,
            comes_and_goes: function.comes_and_goes,
        })
    }
}

/// A line, taken apart.
struct Symbol<'t> {
    address: u64,
    kind: u8,
    name: &'t str,
    is_of_module: bool,
}

impl<'t> Symbol<'t> {
    fn of(line: &'t [u8]) -> Option<Self> {
        let mut words = str::from_utf8(line).ok()?.split_ascii_whitespace();
        Some(Self {
            address: u64::from_str_radix(words.next()?, 16).ok()?,
            kind: *words.next()?.as_bytes().first()?,
            name: words.next()?,
            is_of_module: words.next().is_some(),
        })
    }

    /// None of data, and of the space in front of functions that is never run.
    fn function(&self) -> Option<Function> {
        let is_code =
            matches!(self.kind, b't' | b'T' | b'w' | b'W') && !self.name.starts_with("__pfx_");
        is_code.then(|| Function {
            address: self.address,
            name: self.name.into(),
            comes_and_goes: self.is_of_module,
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
        let symbols = KernelSymbols::parse(TEXT).unwrap();
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
    fn hidden_addresses_are_told_from_a_list_that_is_none() {
        let hidden = b"0000000000000000 T _stext\n0000000000000000 t ip_forward\n";
        assert_eq!(
            KernelSymbols::parse(hidden).unwrap_err(),
            KernelSymbolsError::Hidden
        );
        assert_eq!(
            KernelSymbols::parse(b"").unwrap_err(),
            KernelSymbolsError::Hidden
        );
        let error = KernelSymbols::parse(b"ff T a\nprose\n").unwrap_err();
        assert_eq!(error, KernelSymbolsError::Line { line: 2 });
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, address: u64) {
            if let Ok(symbols) = KernelSymbols::parse(&bytes) {
                let _ = symbols.function(address);
            }
        }
    }
}
