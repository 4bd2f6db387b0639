//! What cannot be made a router of.

use std::net::IpAddr;

use thiserror::Error;

use crate::fib::{FibError, NextHopId};
use crate::neighbours::NeighbourError;

/// Why a router cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RouterError {
    /// A neighbour of a port that the router does not have.
    #[error("the router has no port {port}")]
    NoSuchPort {
        /// The port's number.
        port: u16,
    },
    /// A gateway that is on no port's link.
    #[error("the gateway {gateway} is on no port's link; give a port an address of its network")]
    UnreachableGateway {
        /// The gateway.
        gateway: IpAddr,
    },
    /// A link that does not take what every link has to.
    #[error(
        "port {port}: its link takes packets of {mtu} bytes, and {minimum} is the least; raise the MTU"
    )]
    Mtu {
        /// The port's number.
        port: u16,
        /// The longest packet that its link takes, in bytes.
        mtu: u16,
        /// The longest packet that it has to take for the families that the port has addresses of.
        minimum: u16,
    },
    /// More next hops than a table can tell apart.
    #[error("there are more than {} next hops", NextHopId::MAX.index())]
    TooManyNextHops,
    /// What the forwarding tables refuse.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// What the neighbour table refuses.
    #[error(transparent)]
    Neighbour(#[from] NeighbourError),
    /// Queues or workers that do not fit together.
    #[error("{what}")]
    Layout {
        /// What is wrong, and what to do.
        what: String,
    },
}
