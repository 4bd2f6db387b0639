#![doc = include_str!("../README.md")]
// Unsafe is allowed in this crate and in no other; every block says why it is sound.

mod cpu;
mod error;
mod ethtool;
mod interface;
mod interrupt;
mod namespace;

pub use cpu::{PinnedThread, online_cpus, pin_this_thread, prefer_this_thread};
pub use error::SysError;
pub use ethtool::enable_gro;
pub use interface::{Interface, interface};
pub use interrupt::{Interrupts, WakeUp, enable_wake_ups, watch_interrupts};
pub use namespace::{NetworkNamespace, remove_leftovers};

/// Whether this process runs with root's effective user id.
#[must_use]
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// This process's effective user id.
#[must_use]
pub fn user_id() -> u32 {
    nix::unistd::geteuid().as_raw()
}
