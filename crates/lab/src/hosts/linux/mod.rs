//! A Linux DUT: what is so on it, how it is set, and how it is booted by GRUB.

mod attachments;
mod boot;
mod dut;
mod facts;
mod grub;
mod look;
mod losses;
mod ports;
mod reached;
mod set_up;
mod stacks;
mod watch;

pub(super) use self::attachments::Attachments;
pub(super) use self::boot::{Grub, find_grub};
pub(super) use self::dut::{BALANCER, open_dut};
pub(super) use self::look::{NAMES, linked, ports};
pub(super) use self::reached::network;
pub use self::stacks::{StackWatch, serve_stacks};
