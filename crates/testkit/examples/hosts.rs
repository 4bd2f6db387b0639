//! A lab of hosts to try things in by hand: a DUT and a tester in namespaces, until Enter is pressed.
//!
//! ```console
//! # cargo run -p testkit --example hosts
//! ```
#![allow(clippy::print_stdout, reason = "what it is for")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use testkit::{Host, SshLab};

fn main() -> io::Result<()> {
    let lab = Arc::new(SshLab::start()?);
    let _reboots = lab.serve_reboots(Some(Duration::from_secs(2)));
    println!(
        "hosts {} and {}, reached with\n  ip netns exec {} ssh -F {} {}\nports eth1 and eth2 of each are cabled; \
         they reboot when asked to. Enter ends it.",
        Host::Dut.ssh_name(),
        Host::Tester.ssh_name(),
        lab.controller_namespace(),
        lab.ssh_config().display(),
        Host::Dut.ssh_name(),
    );
    io::stdin().read_line(&mut String::new())?;
    Ok(())
}
