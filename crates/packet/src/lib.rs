#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod checksum;
pub mod ethernet;
pub mod ipv4;
pub mod ipv6;
pub mod udp;

mod address;
mod error;
mod field;
mod flow;
mod frame;

pub use address::MacAddress;
pub use error::PacketError;
pub use flow::{AddressPair, AddressRange, Flow, Flows};
pub use frame::{UdpFrame, forwarded, parse};
