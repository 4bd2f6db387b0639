#![doc = include_str!("../README.md")]
// Unsafe is allowed in this crate and in no other; every block says why it is sound.

mod af_xdp;
mod cpu;
mod error;
mod ethtool;
mod interrupt;
mod mapping;
mod namespace;
mod packet_ring;
mod packet_socket;
mod peer;
mod user_namespace;

pub use af_xdp::XdpSocket;
pub use cpu::{PinnedThread, online_cpus, pin_this_thread, prefer_this_thread};
pub use error::SysError;
pub use ethtool::enable_gro;
pub use interrupt::{Interrupts, WakeUp, enable_wake_ups, watch_interrupts};
pub use namespace::{NetworkNamespace, remove_leftovers};
pub use packet_ring::{ReceiveRing, TransmitRing};
pub use packet_socket::{PacketSocket, interface_index};
pub use peer::peer_process;
pub use user_namespace::{NoUserNamespace, enter_user_namespace, is_in_user_namespace};

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
