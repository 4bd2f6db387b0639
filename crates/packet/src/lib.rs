#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod checksum;
pub mod ethernet;
pub mod fragment;
pub mod icmp4;
pub mod icmp6;
pub mod ipv4;
pub mod ipv6;
pub mod toeplitz;
pub mod udp;

mod address;
mod error;
mod field;
mod flow;
mod frame;
mod no_answer;

pub use address::MacAddress;
pub use error::PacketError;
pub use flow::{AddressPair, Flow, Flows};
pub use fragment::{Fragment, Fragments};
pub use frame::{UdpFrame, forwarded, parse};
pub use icmp4::Icmp4Error;
pub use icmp6::Icmp6Error;
pub use no_answer::NoAnswer;
pub use toeplitz::{RssHash, Toeplitz};
