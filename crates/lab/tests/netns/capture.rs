//! What goes in and what comes out, seen by tcpdump and judged by tshark.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fwdlab_lab::{DUT_IN, DUT_OUT, TESTER_IN, TESTER_OUT};
use fwdlab_model::{AddressFamily, FrameSize, PortRange, Traffic};
use fwdlab_sys::NetworkNamespace;
use fwdlab_traffic::{Generator, Receiver as _};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::rig::{FAMILIES, Forwarder, Rig, imix, run, traffic, wait_until};

/// A tcpdump that writes a file.
struct Capture {
    tcpdump: Child,
    file: PathBuf,
}

impl Capture {
    fn start(namespace: &NetworkNamespace, interface: &str, folder: &Path) -> Self {
        Self::start_with(&[], namespace, interface, folder)
    }

    /// Without the frames that go out there.
    fn start_inbound(namespace: &NetworkNamespace, interface: &str, folder: &Path) -> Self {
        Self::start_with(&["-Q", "in"], namespace, interface, folder)
    }

    fn start_with(
        options: &[&str],
        namespace: &NetworkNamespace,
        interface: &str,
        folder: &Path,
    ) -> Self {
        let file = folder.join(interface);
        let spawn = || {
            Command::new("tcpdump")
                .args(["-i", interface, "--immediate-mode", "-s", "1600", "-U"])
                // In KiB: room for all frames of a test, however late tcpdump comes to run.
                .args(["-B", "131072"])
                .args(options)
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

    /// Ends tcpdump once it has written so many frames with so many bytes in all; it may have
    /// written more.
    fn file_with(mut self, frames: u64, length: u64) -> PathBuf {
        const FILE_HEADER: u64 = 24;
        const FRAME_HEADER: u64 = 16;
        let bytes = FILE_HEADER + frames * FRAME_HEADER + length;
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

/// A flow as tshark names it: addresses and ports.
type FlowSeen = [String; 4];

/// What tshark says of one frame.
#[derive(Debug)]
struct Seen {
    flow: FlowSeen,
    length: u32,
    /// Length captured, TTL, what became of the checksums, MAC addresses.
    rest: Vec<String>,
}

fn seen_by_tshark(file: &Path, family: AddressFamily) -> Vec<Seen> {
    // IPv6 has no checksum of its own.
    let (addresses, of_family): ([&str; 2], &[&str]) = match family {
        AddressFamily::Inet => (["ip.src", "ip.dst"], &["ip.ttl", "ip.checksum.status"]),
        AddressFamily::Inet6 => (["ipv6.src", "ipv6.dst"], &["ipv6.hlim"]),
    };
    let mut command = vec!["tshark", "-n", "-r", file.to_str().unwrap()];
    for option in ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE"] {
        command.extend(["-o", option]);
    }
    command.extend(["-Y", "udp.srcport >= 2000 && udp.srcport < 2010"]);
    command.extend(["-T", "fields"]);
    let fields = [
        &addresses[..],
        &["udp.srcport", "udp.dstport", "frame.len", "frame.cap_len"],
        of_family,
        &["udp.checksum.status", "eth.src", "eth.dst"],
    ];
    for field in fields.concat() {
        command.extend(["-e", field]);
    }
    run(&command)
        .lines()
        .map(|line| {
            let mut fields = line.split('\t').map(str::to_owned);
            Seen {
                flow: [(); 4].map(|()| fields.next().unwrap()),
                length: fields.next().unwrap().parse().unwrap(),
                rest: fields.collect(),
            }
        })
        .collect()
}

/// The planned flows, in the words of the experiment's documentation.
fn planned_flows(traffic: &Traffic, family: AddressFamily) -> Vec<FlowSeen> {
    let mut flows = Vec::new();
    for source in 1..=traffic.sources {
        for destination in 1..=traffic.destinations {
            let (source, destination) = match family {
                AddressFamily::Inet => (
                    format!("198.18.10.{source}"),
                    format!("198.19.10.{destination}"),
                ),
                AddressFamily::Inet6 => (
                    format!("2001:2:0:10::{source:x}"),
                    format!("2001:2:0:8010::{destination:x}"),
                ),
            };
            for source_port in traffic.source_ports.first..=traffic.source_ports.last {
                for port in traffic.destination_ports.first..=traffic.destination_ports.last {
                    flows.push([
                        source.clone(),
                        destination.clone(),
                        source_port.to_string(),
                        port.to_string(),
                    ]);
                }
            }
        }
    }
    flows
}

/// The lengths of a turn of all sizes without FCS, with how often they come.
fn planned_lengths(traffic: &Traffic, family: AddressFamily) -> BTreeMap<u32, u32> {
    let length = |size: &FrameSize| match (family, size.bytes) {
        (AddressFamily::Inet6, 64) => 62,
        (_, bytes) => u32::from(bytes) - 4,
    };
    let sizes = traffic.frame_sizes.iter();
    sizes
        .map(|size| (length(size), u32::from(size.share)))
        .collect()
}

/// How many frames hold every flow with every size, and how many bytes they have in all.
fn planned_frames(traffic: &Traffic, family: AddressFamily) -> (u32, u64) {
    let lengths = planned_lengths(traffic, family);
    let slots: u32 = lengths.values().sum();
    let turn_length: u32 = lengths.iter().map(|(length, share)| length * share).sum();
    let flows = traffic.flows();
    (flows * slots, u64::from(flows) * u64::from(turn_length))
}

/// Every flow as often with every length as planned, each turn of the sizes with its exact
/// proportions, and each frame with what is the same in all: MAC addresses, TTL, good checksums.
fn assert_as_planned(
    traffic: &Traffic,
    family: AddressFamily,
    seen: &[Seen],
    macs: [&str; 2],
    ttl: &str,
) {
    let lengths = planned_lengths(traffic, family);
    let mut planned = BTreeMap::new();
    for flow in planned_flows(traffic, family) {
        for (&length, &share) in &lengths {
            planned.insert((flow.clone(), length), share);
        }
    }
    let mut counted = BTreeMap::new();
    for frame in seen {
        *counted
            .entry((frame.flow.clone(), frame.length))
            .or_insert(0) += 1;
    }
    assert_eq!(counted.len(), planned.len());
    assert_eq!(counted, planned);
    let slots: u32 = lengths.values().sum();
    for turn in seen.chunks(slots as usize) {
        let mut counted = BTreeMap::new();
        for frame in turn {
            *counted.entry(frame.length).or_insert(0) += 1;
        }
        assert_eq!(counted, lengths);
    }
    let [source, destination] = macs;
    for frame in seen {
        let length = frame.length.to_string();
        // tshark's 1 is "good".
        let rest: &[&str] = match family {
            AddressFamily::Inet => &[&length, ttl, "1", "1", source, destination],
            AddressFamily::Inet6 => &[&length, ttl, "1", source, destination],
        };
        assert_eq!(frame.rest, rest, "{frame:?}");
    }
}

/// Sends every flow with every size, and looks at both sides of the DUT.
fn prove_forwarding(traffic: &Traffic, family: AddressFamily, forwarder: Forwarder) {
    let mut rig = Rig::with_traffic(traffic, family, forwarder);
    // An XDP sink would hide the frames from tcpdump.
    rig.sink.detach().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (frames, length) = planned_frames(traffic, family);
    // Frames that the XDP forwarder takes never reach a place where tcpdump could see them.
    let before = (forwarder == Forwarder::Kernel)
        .then(|| Capture::start(rig.topology.dut(), DUT_IN, folder.path()));
    let after = Capture::start(rig.topology.tester(), TESTER_IN, folder.path());
    rig.generator.as_mut().unwrap().send(frames).unwrap();

    let after = seen_by_tshark(&after.file_with(frames.into(), length), family);
    let dut_out_to_tester_in = ["02:00:00:00:02:01", "02:00:00:00:02:02"];
    assert_as_planned(traffic, family, &after, dut_out_to_tester_in, "63");
    if let Some(before) = before {
        let before = seen_by_tshark(&before.file_with(frames.into(), length), family);
        let tester_out_to_dut_in = ["02:00:00:00:01:01", "02:00:00:00:01:02"];
        assert_as_planned(traffic, family, &before, tester_out_to_dut_in, "64");
    }
    let redirected = rig.forwarder.frames(0).unwrap();
    let by_program = if forwarder == Forwarder::Xdp {
        frames
    } else {
        0
    };
    assert_eq!(redirected, u64::from(by_program));
}

#[test]
fn the_kernel_forwards_every_flow_once_over_inet() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    let family = AddressFamily::Inet;
    prove_forwarding(&traffic(&[family]), family, Forwarder::Kernel);
}

#[test]
fn the_kernel_forwards_every_flow_once_over_inet6() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    let family = AddressFamily::Inet6;
    prove_forwarding(&traffic(&[family]), family, Forwarder::Kernel);
}

#[test]
fn the_xdp_forwarder_forwards_every_flow_once_over_inet() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    let family = AddressFamily::Inet;
    prove_forwarding(&traffic(&[family]), family, Forwarder::Xdp);
}

#[test]
fn the_xdp_forwarder_forwards_every_flow_once_over_inet6() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    let family = AddressFamily::Inet6;
    prove_forwarding(&traffic(&[family]), family, Forwarder::Xdp);
}

/// An IMIX over flows that differ in their ports, too.
fn imix_over_ports() -> Traffic {
    let ports = |first, last| PortRange { first, last };
    Traffic {
        sources: 5,
        destinations: 20,
        source_ports: ports(2000, 2003),
        destination_ports: ports(65_531, 65_535),
        ..imix()
    }
}

#[test]
fn the_kernel_forwards_an_imix_in_its_exact_proportions() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    for family in FAMILIES {
        prove_forwarding(&imix_over_ports(), family, Forwarder::Kernel);
    }
}

#[test]
fn the_xdp_forwarder_forwards_an_imix_in_its_exact_proportions() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    for family in FAMILIES {
        prove_forwarding(&imix_over_ports(), family, Forwarder::Xdp);
    }
}

/// Sends every flow with every size in both directions, and looks at all four ends of the cables.
fn prove_both_directions(traffic: &Traffic, family: AddressFamily) {
    let mut rig = Rig::with_traffic(traffic, family, Forwarder::Kernel);
    rig.sink.detach().unwrap();
    rig.topology.carry_both_directions().unwrap();
    let back = rig.topology.frames_back(&rig.frames);
    let there = (&rig.frames, rig.topology.generator_interface());
    let back = (&back, rig.topology.generator_interface_back());
    let load = || Generator::load_bidirectional(there, back);
    let mut generator = rig.topology.tester().run(load).unwrap().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let (frames, length) = planned_frames(traffic, family);
    let (tester, dut) = (rig.topology.tester(), rig.topology.dut());
    let captures = [
        (dut, DUT_IN),
        (tester, TESTER_IN),
        (dut, DUT_OUT),
        (tester, TESTER_OUT),
    ]
    .map(|(namespace, interface)| Capture::start_inbound(namespace, interface, folder.path()));
    generator.send(2 * frames).unwrap();

    let answers = |seen: Vec<Seen>| -> Vec<Seen> {
        let turned = |[source, destination, source_port, port]: FlowSeen| {
            [destination, source, port, source_port]
        };
        seen.into_iter()
            .map(|frame| Seen {
                flow: turned(frame.flow),
                ..frame
            })
            .collect()
    };
    let [before, after, before_back, after_back] =
        captures.map(|capture| seen_by_tshark(&capture.file_with(frames.into(), length), family));
    for (seen, macs, ttl) in [
        (before, ["02:00:00:00:01:01", "02:00:00:00:01:02"], "64"),
        (after, ["02:00:00:00:02:01", "02:00:00:00:02:02"], "63"),
        (
            answers(before_back),
            ["02:00:00:00:02:22", "02:00:00:00:02:01"],
            "64",
        ),
        (
            answers(after_back),
            ["02:00:00:00:01:02", "02:00:00:00:01:01"],
            "63",
        ),
    ] {
        assert_as_planned(traffic, family, &seen, macs, ttl);
    }
}

#[test]
fn the_kernel_forwards_every_flow_and_its_answer_over_inet() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    prove_both_directions(&traffic(&[AddressFamily::Inet]), AddressFamily::Inet);
}

#[test]
fn the_kernel_forwards_an_imix_and_its_answers_over_inet6() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump", "tshark");
    let traffic = Traffic {
        sources: 2,
        destinations: 50,
        ..imix()
    };
    prove_both_directions(&traffic, AddressFamily::Inet6);
}
