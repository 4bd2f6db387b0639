//! A FreeBSD DUT: what is so on it, how it is set, and how it is booted by its loader.
//!
//! Written from FreeBSD's manual pages and sources, and tested with stand-ins for its programs: what nobody has
//! tried on a FreeBSD host yet stands in docs/labs.md.

mod boot;
mod dut;
mod facts;
mod files;
mod look;
mod ports;
mod reached;
mod slices;
mod text;
mod watch;

pub(super) use self::boot::Loader;
pub(super) use self::dut::{doubtful_tunables, open_dut};
pub(super) use self::look::{NAMES, linked, ports, received};
pub(super) use self::ports::comes_with;
pub(super) use self::reached::network;
pub(super) use self::slices::{image_writer, is_on_slice};
