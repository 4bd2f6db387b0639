//! A cable for tests: a veth pair in a namespace of its own, and the frames over it.

use std::fs::File;
use std::process::Command;

use fwdlab_model::{AddressFamily, Traffic};
use fwdlab_packet::MacAddress;
use fwdlab_sys::NetworkNamespace;
use fwdlab_traffic::{Frames, Link};

pub(crate) const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];
pub(crate) const FLOWS: u32 = 2000;

/// Where the generator sends.
pub(crate) const NEAR_END: &str = "near";
/// Where the sink counts. Its MAC address is nobody's in the frames.
pub(crate) const FAR_END: &str = "far";

/// A veth pair in a namespace of its own.
pub(crate) struct Cable {
    pub(crate) namespace: NetworkNamespace,
    pub(crate) near_index: u32,
    _machine: Option<File>,
}

impl Cable {
    /// A new one, both of whose ends have so many queues; the machine stays the test's as long as the cable, where it has it.
    pub(crate) fn lay(machine: Option<File>, queues: usize) -> Self {
        let namespace = NetworkNamespace::create("cable").unwrap();
        let near_index = namespace
            .run(|| {
                let queues = queues.to_string();
                let queues = ["numtxqueues", &queues, "numrxqueues", &queues];
                let pair = ["type", "veth", "peer", "name", FAR_END];
                ip(&[&["link", "add", NEAR_END], &queues[..], &pair, &queues].concat());
                for end in [NEAR_END, FAR_END] {
                    // No address, so that the ends send nothing of their own.
                    ip(&["link", "set", end, "addrgenmode", "none", "up"]);
                }
                fwdlab_sys::interface_index(NEAR_END).unwrap()
            })
            .unwrap();
        Self {
            namespace,
            near_index,
            _machine: machine,
        }
    }
}

pub(crate) fn ip(arguments: &[&str]) -> String {
    let output = testkit::succeed(Command::new("ip").args(arguments));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) const fn link(last: u8) -> Link {
    Link {
        source: MacAddress([2, 0, 0, 0, last, 1]),
        destination: MacAddress([2, 0, 0, 0, last, 2]),
    }
}

/// The frames over the cable; the sink expects them to have come over another link.
pub(crate) fn frames(family: AddressFamily, expected: Link) -> Frames {
    Frames::new(family, &Traffic::default(), link(1), expected).unwrap()
}
