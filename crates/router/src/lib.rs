#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![allow(
    clippy::vec_box,
    reason = "a buffer changes hands by its box, and never moves"
)]

mod buffer;
mod counters;
mod error;
mod error_rate_limit;
mod fib;
pub mod harvest;
mod knobs;
mod link;
mod neighbours;
mod network;
mod nodes;
mod placement;
mod receive;
mod router;
mod slow_path;
mod stages;
mod topology;
mod transmit;
mod wire;
mod worker;

pub use buffer::{BUFFER_BYTES, Buffer, Descriptor};
pub use counters::{Counters, Drop, Event, PublishedCounters};
pub use error::RouterError;
pub use error_rate_limit::{ErrorRateLimit, ICMP_ERRORS_PER_S, ICMP6_ERRORS_PER_S};
pub use fib::{
    Address, FibError, Inet6Fib, InetFib, Ipv4Prefix, Ipv6Prefix, NextHopId, Prefix, ROUTES_MAX,
};
pub use knobs::Knobs;
pub use neighbours::{Neighbour, NeighbourError, NeighbourState, Neighbours};
pub use network::{NeighbourConfig, Network, NetworkConfig, PortConfig, RouteConfig};
pub use placement::{QueueCpus, Unavailable, placement};
pub use router::{Layout, PortDevice, Roles, Router};
pub use stages::{Stage, StageTicks};
pub use topology::{Cpu, Topology, TopologyError};
pub use transmit::queue_of;
pub use wire::Wire;
pub use worker::Worker;
