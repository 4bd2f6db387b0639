//! The comparison of profiles: how often it is wrong, how often it finds what is there, and what it
//! makes of odd profiles.

mod lone;
mod odd;
mod simulated;
mod simulation;

#[path = "../shared/mod.rs"]
mod shared;
