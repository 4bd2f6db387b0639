//! The kernel's own reasons for the frames that it drops in the DUT (`skb:kfree_skb`).
//!
//! Listening slows every frame, those of the sink too. So it is done where nothing is measured: when a
//! probe has failed, and after the slices where frames were lost in them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use aya::maps::{MapData, PerCpuArray};
use aya::programs::BtfTracePoint;
use aya::{Ebpf, EbpfLoader};
use fwdlab_sys::NetworkNamespace;
use fwdlab_traffic::object_bytes;

use crate::kernel_types::kernel_types;

/// The kernel's reasons, until the value goes.
pub(crate) struct DropReasons {
    reasons: PerCpuArray<MapData, u64>,
    // The program counts as long as this lives.
    _program: Ebpf,
}

impl DropReasons {
    /// Listens from now on to what is dropped in a namespace; none where this kernel gives no reasons,
    /// or not to this process.
    pub(crate) fn listen(namespace: &NetworkNamespace) -> Option<Self> {
        let number = u32::try_from(namespace.number().ok()?).ok()?;
        let btf = kernel_types()?;
        let mut program = EbpfLoader::new()
            .btf(Some(btf))
            .override_global("NAMESPACE", &number, true)
            .load(object_bytes!("../bpf/drop_reasons.bpf.o"))
            .ok()?;
        let reasons = PerCpuArray::try_from(program.take_map("reasons")?).ok()?;
        let counter: &mut BtfTracePoint = program.program_mut("count_drop")?.try_into().ok()?;
        counter.load("kfree_skb", btf).ok()?;
        counter.attach().ok()?;
        Some(Self {
            reasons,
            _program: program,
        })
    }

    /// Frames dropped so far, by the kernel's name of the reason.
    pub(crate) fn frames(&self) -> BTreeMap<String, u64> {
        let names = names();
        let mut frames = BTreeMap::new();
        for reason in 0..self.reasons.len() {
            let counted = self.reasons.get(&reason, 0);
            let counted: u64 = counted.map_or(0, |cpus| cpus.iter().sum());
            if counted > 0 {
                let name = names.get(&reason);
                let name = name.map_or_else(|| format!("reason {reason}"), Clone::clone);
                frames.insert(name, counted);
            }
        }
        frames
    }
}

/// The names of all reasons; none where the kernel does not tell them.
fn names() -> &'static BTreeMap<u32, String> {
    static NAMES: OnceLock<BTreeMap<u32, String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let format = fwdlab_sys::tracepoint_format("skb", "kfree_skb");
        format.map_or_else(|_| BTreeMap::new(), |format| parse_names(&format))
    })
}

/// The names of a tracepoint's values: pairs such as `{ 12, "NETFILTER_DROP" }`.
fn parse_names(format: &str) -> BTreeMap<u32, String> {
    format
        .split('{')
        .skip(1)
        .filter_map(|rest| {
            let (value, name) = rest.split_once('}')?.0.split_once(',')?;
            let name = name.trim().strip_prefix('"')?.strip_suffix('"')?;
            Some((value.trim().parse().ok()?, name.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_found_in_the_format_of_the_tracepoint() {
        let format = "print fmt: \"skbaddr=%p reason: %s\", REC->skbaddr, \
                      __print_symbolic(REC->reason, { 2, \"NOT_SPECIFIED\" }, \
                      { 12, \"NETFILTER_DROP\" })";
        let names: Vec<_> = parse_names(format).into_iter().collect();
        let named = |value, name: &str| (value, name.to_owned());
        assert_eq!(
            names,
            [named(2, "NOT_SPECIFIED"), named(12, "NETFILTER_DROP")]
        );
    }

    proptest! {
        #[test]
        fn any_format_has_some_names_or_none(format: String) {
            parse_names(&format);
        }
    }
}
