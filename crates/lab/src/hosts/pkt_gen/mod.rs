//! netmap's pkt-gen as the tester of a lab of hosts, on FreeBSD or Linux.
//!
//! pkt-gen is asked nothing while it runs: it says once a second what it has sent or received, and in the end what
//! that was in all. Opening a port takes its link down for seconds, so that nothing here relies on how long after its
//! start something is: frames count from when they are seen.

mod curve;
mod port;
mod process;
mod words;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use fwdlab_model::{Hosts, Resolved, Tester};
use fwdlab_stats::whole;

use self::port::System;
use self::process::PktGenProcess;
use self::words::{Sending, packet_bytes_max, receiving, refusal, sending};
use super::load::part_of;
use super::protocol::{Counted, Sent, SinkState, Station};
use super::ssh::Connection;
use super::tester::{Crossing, HostTester, listed, part, part_that_sends};
use crate::LabError;
use crate::addresses::frames;

/// Frames a second of a probe: few, so that none is lost for want of time.
const PROBE_PPS: u64 = 20_000;
/// How often a probe is sent at most whose frames do not all come in, while the link of a receiver that has seen none
/// yet may still be coming up.
const PROBE_TRIES: u32 = 4;
/// How long a pkt-gen may take until its port is open and its link up.
const OPEN_TIME_MAX: Duration = Duration::from_secs(60);
/// How long it may take until what is sent comes in.
const FIRST_FRAMES_TIME_MAX: Duration = Duration::from_secs(15);
/// How long a report may be late.
const REPORT_TIME_MAX: Duration = Duration::from_secs(15);
/// A sender ends so long after it should have been stopped, whatever becomes of the run.
const SENDER_TIME_MAX: Duration = Duration::from_secs(300);
/// A receiver does no harm: for as long as a run may take.
const RECEIVER_TIME_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// A tester that is netmap's pkt-gen at both ends.
pub(super) struct PktGenTester {
    /// The first has the port that the DUT's neighbour is.
    generators: Vec<Generator>,
    sink: Sink,
    described: Vec<(String, String)>,
}

struct Generator {
    port: Port,
    /// One: the lab file names no more.
    cpus: Vec<u32>,
    mac: String,
    /// While it sends.
    process: Option<PktGenProcess>,
}

struct Sink {
    port: Port,
    /// While it counts.
    process: Option<PktGenProcess>,
    /// What it had counted when it was told to begin.
    before: u64,
    /// What was sent since then.
    sent: u64,
}

/// A port of a host.
struct Port {
    connection: Rc<Connection>,
    system: System,
    interface: String,
}

impl Port {
    /// Refuses a port whose MTU is below what pkt-gen is to send: it compares the size with the header of Ethernet
    /// (netmap, apps/pkt-gen/pkt-gen.c, `main`: "pkt_size (%d) must be <= mtu (%d)"), so that frames of 1518 bytes, which
    /// every port of MTU 1500 takes, are too large for it.
    ///
    /// # Errors
    /// `Host` where it is, and those of the connection.
    fn refuse_small_mtu(&self, packet_bytes: u16) -> Result<(), LabError> {
        let (system, interface) = (self.system, &self.interface);
        match system.mtu(&self.connection, interface)? {
            Some(mtu) if mtu < u32::from(packet_bytes) => Err(self.connection.wrong(format!(
                "{interface} has an MTU of {mtu}, and pkt-gen, which counts the header of Ethernet too, is to send \
                 {packet_bytes} bytes; give it more there (`{}`), or ask for smaller frames",
                system.set_mtu(interface, packet_bytes)
            ))),
            _ => Ok(()),
        }
    }

    fn station(&self) -> Result<Station, LabError> {
        self.system.station(&self.connection, &self.interface)
    }
}

/// Refuses what pkt-gen cannot offer.
///
/// # Errors
/// `Host`, with what to do.
pub(super) fn refuse(hosts: &Hosts, resolved: &Resolved) -> Result<(), LabError> {
    let host = hosts.tester.host.clone();
    refusal(resolved).map_or(Ok(()), |why| Err(LabError::Host { host, why }))
}

impl PktGenTester {
    /// Logs in on every host of the tester, and looks at what it is; `connect` logs in on one.
    ///
    /// # Errors
    /// `Host` where pkt-gen is not there, or cannot send what the experiment asks for, and those of the connections.
    pub(super) fn start(
        hosts: &Hosts,
        resolved: &Resolved,
        connect: &mut dyn FnMut(&str) -> Result<Rc<Connection>, LabError>,
    ) -> Result<Self, LabError> {
        let tester = &hosts.tester;
        let mut known: BTreeMap<String, (Rc<Connection>, System, String, u32)> = BTreeMap::new();
        let mut described = Vec::new();
        let mut open =
            |host: &str, interface: &str, part: String| -> Result<(Port, u32), LabError> {
                if !known.contains_key(host) {
                    let connection = connect(host)?;
                    let system = System::of(&connection)?;
                    let (text, cpus) = system.described(&connection)?;
                    known.insert(host.to_owned(), (connection, system, text, cpus));
                }
                let (connection, system, text, cpus) = &known[host];
                described.push((part, text.clone()));
                let port = Port {
                    connection: Rc::clone(connection),
                    system: *system,
                    interface: interface.to_owned(),
                };
                Ok((port, *cpus))
            };
        let first = (&tester.host, &tester.interface_out, &tester.cpus);
        let others = hosts.generators.iter();
        let others = others.map(|of| (&of.host, &of.interface_out, &of.cpus));
        let mut generators = Vec::new();
        for (number, (host, interface, named)) in (1..).zip(std::iter::once(first).chain(others)) {
            let (port, cpus) = open(host, interface, part(number))?;
            port.refuse_small_mtu(packet_bytes_max(resolved))?;
            generators.push(Generator {
                port,
                // Device interrupts are often at the first.
                cpus: match named.as_slice() {
                    [] => vec![cpus.saturating_sub(1)],
                    named => named.to_vec(),
                },
                mac: String::new(),
                process: None,
            });
        }
        let receiver = tester.receiver.as_ref();
        let host = receiver.map_or(&tester.host, |receiver| &receiver.host);
        let (port, _) = open(host, &tester.interface_in, "receiver's host".to_owned())?;
        if receiver.is_none() {
            described.pop();
        }
        let numbered = (1..).zip(&generators);
        described.extend(numbered.map(|(number, of)| (part_that_sends(number), listed(&of.cpus))));
        Ok(Self {
            generators,
            sink: Sink {
                port,
                process: None,
                before: 0,
                sent: 0,
            },
            described,
        })
    }

    /// Starts a pkt-gen that sends.
    fn send_from(
        &mut self,
        number: usize,
        to: Crossing<'_>,
        pace: Option<(u64, u32)>,
        probe_frames: Option<u64>,
    ) -> Result<(), LabError> {
        let generator = &mut self.generators[number];
        let traffic = to.traffic();
        let flows = frames(to.stratum.family, traffic)?.flows();
        let command = sending(&Sending {
            interface: &generator.port.interface,
            family: to.stratum.family,
            traffic,
            flows: &flows,
            source: &generator.mac,
            destination: to.mac_in,
            cpu: generator.cpus[0],
            pace,
            frames: probe_frames,
        });
        let design = &to.resolved.design;
        let slice_ms = [design.settle_ms, design.warm_up_ms, design.slice_ms];
        let slice_ms: u64 = slice_ms.into_iter().map(u64::from).sum();
        let length_max = Duration::from_millis(slice_ms) + SENDER_TIME_MAX;
        // The one before lets go of the port first.
        generator.process = None;
        generator.process = Some(PktGenProcess::start(
            &generator.port.connection,
            &command,
            length_max,
        )?);
        Ok(())
    }

    /// Sends a frame of every flow from each port in turn.
    fn send_probe(&mut self, to: Crossing<'_>) -> Result<Sent, LabError> {
        const WHAT: &str = "sending probe frames";
        let frames = u64::from(to.traffic().flows());
        let length = Duration::from_secs(frames / PROBE_PPS + 1);
        let mut all = Sent::default();
        for number in 0..self.generators.len() {
            self.send_from(number, to, Some((PROBE_PPS, 1)), Some(frames))?;
            let process = self.generators[number].process.take();
            let mut process = process.expect("it was just started");
            process.wait_for_its_end(WHAT, OPEN_TIME_MAX + length)?;
            all.add(total(&mut process, WHAT, true)?);
        }
        self.sink.sent += all.offered_frames;
        self.sink.await_quiet()?;
        Ok(all)
    }
}

impl Sink {
    fn running(&mut self) -> Result<&mut PktGenProcess, LabError> {
        let Self { port, process, .. } = self;
        process.as_mut().ok_or_else(|| LabError::RemoteProcess {
            host: port.connection.host().to_owned(),
            what: "counting".to_owned(),
            why: "it expects nothing".to_owned(),
        })
    }

    /// Counts from now on.
    fn begin_anew(&mut self) -> Result<(), LabError> {
        self.before = self.running()?.curve.total();
        self.sent = 0;
        Ok(())
    }

    /// Waits until nothing is under way any more, and what came in is reported.
    fn await_quiet(&mut self) -> Result<(), LabError> {
        let process = self.running()?;
        process.take_what_is_there();
        let reports = process.curve.reports();
        process.wait(
            "waiting for reports of a port at rest",
            REPORT_TIME_MAX,
            |process| process.curve.is_quiet_since(reports),
        )
    }

    fn state(&mut self) -> Result<SinkState, LabError> {
        let (before, sent) = (self.before, self.sent);
        let received = self.running()?.curve.total() - before;
        // Whose the others are cannot be told.
        let foreign_frames = received.saturating_sub(sent);
        Ok(SinkState {
            forwarded_frames: received - foreign_frames,
            foreign_frames,
            ..SinkState::default()
        })
    }
}

/// What a sender that has ended has sent in all; it was asked to end, or did so by itself.
///
/// # Errors
/// `RemoteProcess` where it was stopped and did not say so.
fn total(process: &mut PktGenProcess, what: &str, is_as_asked: bool) -> Result<Sent, LabError> {
    let has_failed = process.has_failed();
    let (frames, failed) = match process.summary() {
        Some(summary) if !has_failed && is_as_asked => (summary.packets, None),
        // Meaningless where a thread failed, but for the packets.
        Some(summary) => (summary.packets, Some(process.last_words())),
        None if is_as_asked => {
            return Err(process.failed(what, "pkt-gen did not say what it has sent in all"));
        }
        None => (process.curve.total(), Some(process.last_words())),
    };
    Ok(Sent {
        offered_frames: frames,
        transmitted_frames: frames,
        failed,
    })
}

impl HostTester for PktGenTester {
    fn cpus(&self) -> &[u32] {
        &self.generators[0].cpus
    }

    fn sender(&self) -> Tester {
        Tester::PktGen
    }

    fn keeps_links(&self) -> bool {
        // Opening a port for netmap takes its link down.
        false
    }

    fn sees_flows(&self) -> bool {
        false
    }

    fn described(&self) -> Vec<(String, String)> {
        self.described.clone()
    }

    fn stations(&mut self) -> Result<[Station; 2], LabError> {
        let mut stations = Vec::new();
        for generator in &mut self.generators {
            let station = generator.port.station()?;
            generator.mac.clone_from(&station.mac);
            stations.push(station);
        }
        Ok([stations.swap_remove(0), self.sink.port.station()?])
    }

    fn expect(&mut self, _: Crossing<'_>, _: bool) -> Result<(), LabError> {
        const WHAT: &str = "getting ready to receive";
        let Port {
            connection,
            interface,
            ..
        } = &self.sink.port;
        // One that runs stays: opening the port anew would take its link down.
        let process = match &mut self.sink.process {
            Some(process) => process,
            none => none.insert(PktGenProcess::start(
                connection,
                &receiving(interface),
                RECEIVER_TIME_MAX,
            )?),
        };
        process.wait(WHAT, OPEN_TIME_MAX, PktGenProcess::has_begun)?;
        self.sink.begin_anew()
    }

    fn probe(&mut self, to: Crossing<'_>) -> Result<(Sent, SinkState), LabError> {
        let has_seen_any = self.sink.running()?.curve.total() > 0;
        let mut tries = 1;
        loop {
            let sent = self.send_probe(to)?;
            let seen = self.sink.state()?;
            let is_complete = seen.forwarded_frames == sent.offered_frames;
            if is_complete || has_seen_any || tries == PROBE_TRIES {
                return Ok((sent, seen));
            }
            tries += 1;
            self.sink.begin_anew()?;
        }
    }

    fn send(&mut self, to: Crossing<'_>, pps: Option<u64>) -> Result<(), LabError> {
        let sink = self.sink.running()?;
        sink.take_what_is_there();
        let received = sink.curve.total();
        let ports = self.generators.len();
        let burst_frames = to.traffic().burst_frames;
        for number in 0..ports {
            let pace = part_of(pps, number, ports).map(|pps| (pps, burst_frames));
            self.send_from(number, to, pace, None)?;
        }
        for generator in &mut self.generators {
            let process = generator.process.as_mut().expect("it was just started");
            process.wait("beginning to send", OPEN_TIME_MAX, |process| {
                process.curve.total() > 0
            })?;
        }
        let what = "waiting for the first frames of a load";
        self.sink
            .running()?
            .wait(what, FIRST_FRAMES_TIME_MAX, |process| {
                process.curve.total() > received
            })
    }

    fn measure(&mut self, settle_ms: u32, slice_ms: u32) -> Result<(Vec<Counted>, u64), LabError> {
        const WHAT: &str = "measuring";
        let settle = Duration::from_millis(settle_ms.into());
        let length = Duration::from_millis(slice_ms.into());
        let settled = Instant::now() + settle;
        let patience = settle + length + REPORT_TIME_MAX;
        let sink = self.sink.running()?;
        sink.wait(WHAT, patience, |process| {
            process.curve.window(settled, length).is_some()
        })?;
        let window = sink.curve.window(settled, length);
        let window = window.expect("it was waited for");
        let mut offered: f64 = 0.0;
        for generator in &mut self.generators {
            let process = generator.process.as_mut().expect("it was started");
            process.wait(WHAT, REPORT_TIME_MAX, |process| {
                process.curve.end().is_some_and(|end| end >= window.end)
            })?;
            let frames = process.curve.packets_between(window.begin, window.end);
            offered += frames.unwrap_or_default();
        }
        Ok((window.counted, whole(offered.round()) as u64))
    }

    fn stop(&mut self) -> Result<Sent, LabError> {
        const WHAT: &str = "stopping";
        let mut processes = Vec::new();
        for generator in &mut self.generators {
            let mut process = generator.process.take().expect("it was started");
            process.take_what_is_there();
            let has_ended = process.is_over();
            process.interrupt();
            processes.push((process, has_ended));
        }
        let mut all = Sent::default();
        for (process, has_ended) in &mut processes {
            process.wait_for_its_end(WHAT, Duration::ZERO)?;
            all.add(total(process, WHAT, !*has_ended)?);
        }
        self.sink.sent += all.offered_frames;
        self.sink.await_quiet()?;
        Ok(all)
    }

    fn count(&mut self) -> Result<SinkState, LabError> {
        self.sink.running()?.take_what_is_there();
        self.sink.state()
    }

    fn release(&mut self) -> Result<(), LabError> {
        let Some(mut process) = self.sink.process.take() else {
            return Ok(());
        };
        process.interrupt();
        process.wait_for_its_end("letting go of its ports", Duration::ZERO)
    }
}
