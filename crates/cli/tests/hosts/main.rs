//! Labs of hosts in network namespaces, each with an OpenSSH server. One program, so that tests which mostly wait wait
//! together.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[macro_use]
mod rig;
#[path = "../shared/mod.rs"]
mod shared;

mod boots;
mod busybox;
mod cables;
mod faults;
mod freebsd;
mod generators;
mod linux;
mod paths;
mod seeds;
