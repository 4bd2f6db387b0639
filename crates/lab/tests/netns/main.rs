//! The netns lab, proved on this machine's kernel: captures by independent tools, routes that change
//! under load, frames that are lost on purpose, settings that others move, and what is left behind.
//!
//! One program, because its tests take turns: each owns the load CPU while it runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod capture;
mod cleanup;
mod conservation;
mod forwarders;
mod liveness;
mod measure;
mod mechanisms;
mod own_tc;
mod own_xdp;
mod profiles;
mod regimes;
mod rig;
mod settings;
mod sockets;
mod verification;
mod vlan;
