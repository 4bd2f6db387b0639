//! Prefetching, where the CPU has it.

use std::ptr;

/// Asks for the cache line in which a value begins, into all levels of the cache, and does not wait.
///
/// It is a hint: nothing but time depends on it. CPUs other than x86-64 and 64-bit ARM do without.
///
/// # Examples
/// ```
/// let headers = vec![[0_u8; 64]; 32];
/// for (index, header) in headers.iter().enumerate() {
///     if let Some(ahead) = headers.get(index + 4) {
///         fwdlab_sys::prefetch_read(ahead);
///     }
///     assert_eq!(header[0], 0);
/// }
/// ```
// Always inline: called, it would cost more than the one instruction that it is.
#[inline(always)]
pub fn prefetch_read<T: ?Sized>(value: &T) {
    let address = ptr::from_ref(value).cast::<i8>();
    prefetch(address);
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch(address: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 CPU has the instruction; it faults on no address, and changes nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn prefetch(address: *const i8) {
    // SAFETY: it faults on no address, and changes nothing.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn prefetch(_address: *const i8) {}
