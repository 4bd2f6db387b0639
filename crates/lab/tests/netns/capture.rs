//! What goes in and what comes out, seen by tcpdump and judged by tshark.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fwdlab_lab::{DUT_IN, TESTER_IN};
use fwdlab_model::AddressFamily;
use fwdlab_sys::NetworkNamespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::rig::{FLOWS, Forwarder, Rig, run, wait_until};

/// A tcpdump that writes a file.
struct Capture {
    tcpdump: Child,
    file: PathBuf,
}

impl Capture {
    fn start(namespace: &NetworkNamespace, interface: &str, folder: &Path) -> Self {
        let file = folder.join(interface);
        let spawn = || {
            Command::new("tcpdump")
                .args(["-i", interface, "--immediate-mode", "-s", "128", "-U"])
                .args(["-Z", "root", "-w"])
                .arg(&file)
                .stderr(Stdio::piped())
                .spawn()
        };
        let mut tcpdump = namespace.run(spawn).unwrap().unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(tcpdump.stderr.as_mut().unwrap());
        while !line.contains("listening on") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "tcpdump ended");
        }
        Self { tcpdump, file }
    }

    /// Ends tcpdump once it has written so many frames of a length; it may have written more.
    fn file_with(mut self, frames: u64, length: u64) -> PathBuf {
        const FILE_HEADER: u64 = 24;
        const FRAME_HEADER: u64 = 16;
        let bytes = FILE_HEADER + frames * (FRAME_HEADER + length);
        wait_until("the capture's file grows", || {
            self.file.metadata().is_ok_and(|file| file.len() >= bytes)
        });
        // One frame too many would come now.
        std::thread::sleep(Duration::from_millis(50));
        let pid = Pid::from_raw(self.tcpdump.id().cast_signed());
        kill(pid, Signal::SIGINT).unwrap();
        assert!(self.tcpdump.wait().unwrap().success());
        self.file.clone()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // A test that fails ends it here.
        let _ = self.tcpdump.kill();
        let _ = self.tcpdump.wait();
    }
}

/// What tshark says of one frame.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    source: String,
    destination: String,
    /// MAC addresses, length, TTL, and what became of the checksums.
    rest: Vec<String>,
}

fn seen_by_tshark(file: &Path, family: AddressFamily) -> Vec<Seen> {
    // IPv6 has no checksum of its own.
    let of_family: &[&str] = match family {
        AddressFamily::Inet => &["ip.src", "ip.dst", "ip.ttl", "ip.checksum.status"],
        AddressFamily::Inet6 => &["ipv6.src", "ipv6.dst", "ipv6.hlim"],
    };
    let mut command = vec!["tshark", "-n", "-r", file.to_str().unwrap()];
    command.extend([
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
    ]);
    command.extend(["-Y", "udp.port == 2000", "-T", "fields"]);
    for field in of_family {
        command.extend(["-e", field]);
    }
    for field in [
        "udp.checksum.status",
        "eth.src",
        "eth.dst",
        "frame.len",
        "frame.cap_len",
    ] {
        command.extend(["-e", field]);
    }
    run(&command)
        .lines()
        .map(|line| {
            let mut fields = line.split('\t').map(str::to_owned);
            Seen {
                source: fields.next().unwrap(),
                destination: fields.next().unwrap(),
                rest: fields.collect(),
            }
        })
        .collect()
}

/// Every flow once, and each frame with what is the same in all: MAC addresses, TTL, length, and
/// good checksums.
fn assert_every_flow_once(rig: &Rig, seen: &[Seen], macs: [&str; 2], ttl: &str) {
    let family = rig.frames.family();
    let flows: BTreeSet<_> = seen.iter().map(|s| (&s.source, &s.destination)).collect();
    assert_eq!((seen.len(), flows.len()), (FLOWS as usize, FLOWS as usize));
    // The planned addresses, in the words of the experiment's documentation.
    for source in 1..=20 {
        for destination in 1..=100 {
            let flow = match family {
                AddressFamily::Inet => (
                    format!("198.18.10.{source}"),
                    format!("198.19.10.{destination}"),
                ),
                AddressFamily::Inet6 => (
                    format!("2001:2:0:10::{source:x}"),
                    format!("2001:2:0:8010::{destination:x}"),
                ),
            };
            assert!(flows.contains(&(&flow.0, &flow.1)), "{flow:?}");
        }
    }
    let [source, destination] = macs;
    // tshark's 1 is "good".
    let rest: &[&str] = match family {
        AddressFamily::Inet => &[ttl, "1", "1", source, destination, "60", "60"],
        AddressFamily::Inet6 => &[ttl, "1", source, destination, "62", "62"],
    };
    for frame in seen {
        assert_eq!(frame.rest, rest, "{frame:?}");
    }
}

fn prove_forwarding(family: AddressFamily, forwarder: Forwarder) {
    let mut rig = Rig::new(family, forwarder);
    // An XDP sink would hide the frames from tcpdump.
    rig.sink.detach();
    let folder = tempfile::tempdir().unwrap();
    let length = rig.frames.length() as u64;
    // Frames that the XDP forwarder takes never reach a place where tcpdump could see them.
    let before = (forwarder == Forwarder::Kernel)
        .then(|| Capture::start(rig.topology.dut(), DUT_IN, folder.path()));
    let after = Capture::start(rig.topology.tester(), TESTER_IN, folder.path());
    rig.generator.as_mut().unwrap().send(FLOWS).unwrap();

    let after = seen_by_tshark(&after.file_with(FLOWS.into(), length), family);
    let dut_out_to_tester_in = ["02:00:00:00:02:01", "02:00:00:00:02:02"];
    assert_every_flow_once(&rig, &after, dut_out_to_tester_in, "63");
    if let Some(before) = before {
        let before = seen_by_tshark(&before.file_with(FLOWS.into(), length), family);
        let tester_out_to_dut_in = ["02:00:00:00:01:01", "02:00:00:00:01:02"];
        assert_every_flow_once(&rig, &before, tester_out_to_dut_in, "64");
    }
    let redirected = rig.forwarder.frames(0).unwrap();
    let by_program = if forwarder == Forwarder::Xdp {
        FLOWS
    } else {
        0
    };
    assert_eq!(redirected, u64::from(by_program));
}

#[test]
fn the_kernel_forwards_every_flow_once_over_inet() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    prove_forwarding(AddressFamily::Inet, Forwarder::Kernel);
}

#[test]
fn the_kernel_forwards_every_flow_once_over_inet6() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    prove_forwarding(AddressFamily::Inet6, Forwarder::Kernel);
}

#[test]
fn the_xdp_forwarder_forwards_every_flow_once_over_inet() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    prove_forwarding(AddressFamily::Inet, Forwarder::Xdp);
}

#[test]
fn the_xdp_forwarder_forwards_every_flow_once_over_inet6() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    prove_forwarding(AddressFamily::Inet6, Forwarder::Xdp);
}
