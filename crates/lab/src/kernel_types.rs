//! The running kernel's own types, which programs at its tracepoints rest on.

use std::sync::OnceLock;

use aya::Btf;

/// The kernel's types; none where it does not tell them. They take a moment to read, and stay what they are.
pub(crate) fn kernel_types() -> Option<&'static Btf> {
    static TYPES: OnceLock<Option<Btf>> = OnceLock::new();
    TYPES.get_or_init(|| Btf::from_sys_fs().ok()).as_ref()
}
