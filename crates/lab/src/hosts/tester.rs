//! The tester on its hosts, as a run sees it: processes of fwdlab's own there, one for each port that sends and one
//! for the sink, which may be that of the first.

use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, Hosts, ReceiverHost, Resolved, Tester, TesterHost};

use super::load::{in_time, part_of, time_s};
use super::process::AgentProcess;
use super::protocol::{Answer, Ask, Counted, Expected, Load, Sent, SinkState, Station};
use super::ssh::Connection;
use crate::LabError;

/// A load whose run is silent for so long ends by itself.
const DEAD_MAN_S: u64 = 30;
/// How often the load is looked at in a slice.
const SAMPLE_MS: u32 = 100;
/// Frames a second of a probe: few, so that none is lost for want of time.
const PROBE_PPS: u64 = 20_000;
/// How long a sink on another host has to have counted nothing until nothing is under way.
const QUIET: Duration = Duration::from_millis(200);
/// How long that may take.
const QUIET_TIME_MAX: Duration = Duration::from_secs(5);

/// What sends to a DUT and counts what it forwards, on hosts of its own.
pub(super) trait HostTester {
    /// The CPU that sends on the first generator's host.
    fn cpu(&self) -> u32;

    /// What sends and counts.
    fn sender(&self) -> Tester;

    /// What would have sent better, and why it does not; known once frames were sent.
    fn refused(&self) -> &[(Tester, String)] {
        &[]
    }

    /// Whether the sink tells flows apart.
    fn sees_flows(&self) -> bool;

    /// What its hosts are, by their parts.
    fn described(&self) -> Vec<(String, String)>;

    /// The port that the first generator sends from, and the one that the sink counts at.
    ///
    /// # Errors
    /// Where a port is not there, or the host itself needs it.
    fn stations(&mut self) -> Result<[Station; 2], LabError>;

    /// Counts what the DUT forwards, from now on, and checks it where it can.
    fn expect(&mut self, to: Crossing<'_>, every_frame: bool) -> Result<(), LabError>;

    /// Sends a frame of every flow and size at least, from each port in turn, and tells what came of it.
    fn probe(&mut self, to: Crossing<'_>) -> Result<(Sent, SinkState), LabError>;

    /// Begins to send the load, each port its part.
    fn send(&mut self, to: Crossing<'_>, pps: Option<u64>) -> Result<(), LabError>;

    /// Counts for a while under the load, all ports at the same time: samples of the sink, at least two, and what
    /// was offered from the first to the last.
    fn measure(&mut self, settle_ms: u32, slice_ms: u32) -> Result<(Vec<Counted>, u64), LabError>;

    /// Stops the load and waits until nothing is under way.
    fn stop(&mut self) -> Result<Sent, LabError>;

    /// What the sink has counted.
    fn count(&mut self) -> Result<SinkState, LabError>;

    /// Lets go of the sink's interface.
    fn release(&mut self) -> Result<(), LabError>;
}

/// A tester of fwdlab's own, for one direction.
pub(super) struct OwnTester {
    /// The first has the port that the DUT's neighbour is.
    generators: Vec<Generator>,
    /// Where the sink is another host's; else it is the first generator's.
    receiver: Option<AgentProcess>,
    interface_in: String,
    /// Whether it sends to the DUT's sending port, the flows that answer.
    is_reversed: bool,
    sender: Option<Tester>,
    refused: Vec<(Tester, String)>,
}

struct Generator {
    process: AgentProcess,
    interface: String,
    cpu: u32,
}

/// Frames of a family that are sent through the DUT, and the MAC addresses of its ports.
#[derive(Clone, Copy)]
pub(super) struct Crossing<'a> {
    pub(super) resolved: &'a Resolved,
    pub(super) family: AddressFamily,
    /// Of the port that faces the generator.
    pub(super) mac_in: &'a str,
    /// Of the one that faces the sink.
    pub(super) mac_out: &'a str,
}

impl OwnTester {
    /// Starts a process for every port; `connect` logs in on a host.
    ///
    /// # Errors
    /// `Host` where the program does not run there, and those of the connections.
    pub(super) fn start(
        hosts: &Hosts,
        connect: &mut dyn FnMut(&str) -> Result<Rc<Connection>, LabError>,
    ) -> Result<Self, LabError> {
        Self::start_beside(None, hosts, connect)
    }

    /// Starts one for the opposite direction of another: it sends from the port that the other counts at, and counts at
    /// the one that the other sends from.
    ///
    /// # Errors
    /// As of [`start`](Self::start).
    pub(super) fn start_reversed(
        there: &Self,
        hosts: &Hosts,
        connect: &mut dyn FnMut(&str) -> Result<Rc<Connection>, LabError>,
    ) -> Result<Self, LabError> {
        let of = &hosts.tester;
        let receiver = of.receiver.as_ref();
        let tester = TesterHost {
            host: receiver.map_or(&of.host, |of| &of.host).clone(),
            interface_out: of.interface_in.clone(),
            interface_in: of.interface_out.clone(),
            cpu: None,
            program: receiver.map_or(&of.program, |of| &of.program).clone(),
            receiver: receiver.map(|_| ReceiverHost {
                host: of.host.clone(),
                program: of.program.clone(),
            }),
            uses: of.uses,
        };
        let hosts = Hosts {
            tester,
            generators: Vec::new(),
            ..hosts.clone()
        };
        let taken = receiver.is_none().then(|| there.cpu());
        let started = Self::start_beside(taken, &hosts, connect)?;
        Ok(Self {
            is_reversed: true,
            ..started
        })
    }

    /// Starts a process for every port, on another CPU than the one that is taken on the first host.
    fn start_beside(
        taken: Option<u32>,
        hosts: &Hosts,
        connect: &mut dyn FnMut(&str) -> Result<Rc<Connection>, LabError>,
    ) -> Result<Self, LabError> {
        let of = &hosts.tester;
        let first = (&of.host, &of.interface_out, of.cpu, &of.program);
        let others = hosts.generators.iter();
        let others = others.map(|of| (&of.host, &of.interface_out, of.cpu, &of.program));
        let mut generators = Vec::new();
        for (host, interface, cpu, program) in std::iter::once(first).chain(others) {
            let process = AgentProcess::start(&connect(host)?, program.as_deref())?;
            // Device interrupts are often at the first.
            let mut last = process.hello.cpus.iter().rev().copied();
            let last = last.find(|cpu| Some(*cpu) != taken).or(taken);
            generators.push(Generator {
                interface: interface.clone(),
                cpu: cpu.or(last).unwrap_or(0),
                process,
            });
        }
        let receiver = match &of.receiver {
            None => None,
            Some(receiver) => {
                let connection = connect(&receiver.host)?;
                let program = receiver.program.as_deref();
                Some(AgentProcess::start(&connection, program)?)
            }
        };
        Ok(Self {
            generators,
            receiver,
            interface_in: of.interface_in.clone(),
            is_reversed: false,
            sender: None,
            refused: Vec::new(),
        })
    }

    fn sink(&mut self) -> &mut AgentProcess {
        match &mut self.receiver {
            Some(process) => process,
            None => &mut self.generators[0].process,
        }
    }

    fn send_from(
        &mut self,
        number: usize,
        to: Crossing<'_>,
        pps: Option<u64>,
        burst_frames: u32,
    ) -> Result<(), LabError> {
        let generator = &mut self.generators[number];
        let destination = if self.is_reversed {
            to.mac_out
        } else {
            to.mac_in
        };
        let ask = Ask::Send(Load {
            interface: generator.interface.clone(),
            destination: destination.to_owned(),
            family: to.family,
            traffic: to.resolved.traffic.clone(),
            is_reversed: self.is_reversed,
            cpu: generator.cpu,
            pps,
            burst_frames,
            sender: self.sender,
            dead_man_s: DEAD_MAN_S,
        });
        match generator.process.ask("sending", &ask)? {
            Answer::Sending { sender, refused } => {
                // The same for all variants and ports, whatever else would work the next time.
                if self.sender.replace(sender).is_none() {
                    self.refused = refused;
                }
                Ok(())
            }
            other => Err(generator.process.unexpected("sending", &other)),
        }
    }

    fn processes(&mut self) -> impl Iterator<Item = &mut AgentProcess> {
        let generators = self.generators.iter_mut().map(|of| &mut of.process);
        generators.chain(&mut self.receiver)
    }

    /// Has all ports count for a while.
    pub(super) fn begin_measuring(
        &mut self,
        settle_ms: u32,
        slice_ms: u32,
    ) -> Result<(), LabError> {
        let ask = Ask::Measure {
            settle_ms,
            slice_ms,
            sample_ms: SAMPLE_MS.min(slice_ms.max(2) / 2),
        };
        let mut processes = self.processes();
        processes.try_for_each(|process| process.put(MEASURING, &ask))
    }

    /// What all ports have counted then, as of [`measure`](HostTester::measure).
    pub(super) fn end_measuring(
        &mut self,
        settle_ms: u32,
        slice_ms: u32,
    ) -> Result<(Vec<Counted>, u64), LabError> {
        let length = Duration::from_millis(u64::from(settle_ms) + u64::from(slice_ms));
        let sink = match self.receiver {
            Some(_) => self.generators.len(),
            None => 0,
        };
        let mut measured = Vec::new();
        for process in self.processes() {
            match process.answer(MEASURING, length)? {
                Answer::Measured {
                    samples,
                    offered_frames,
                } if samples.len() >= 2
                    && samples.is_sorted_by_key(|sample| sample.forwarded_frames) =>
                {
                    measured.push((samples, offered_frames));
                }
                other => return Err(process.unexpected(MEASURING, &other)),
            }
        }
        let time_of_sink_s = time_s(&measured[sink].0);
        let offered = measured.iter().map(|(samples, frames)| {
            // Each by a clock of its own, and for a moment more or less.
            in_time(*frames, time_s(samples), time_of_sink_s)
        });
        let offered = offered.sum();
        Ok((measured.swap_remove(sink).0, offered))
    }

    /// Where generators cannot see what the sink counts, waits until it counts nothing any more.
    fn await_quiet(&mut self) -> Result<(), LabError> {
        if self.receiver.is_none() && self.generators.len() == 1 {
            return Ok(());
        }
        let start = Instant::now();
        let mut before = self.count()?.forwarded_frames;
        while start.elapsed() < QUIET_TIME_MAX {
            sleep(QUIET);
            let now = self.count()?.forwarded_frames;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(())
    }
}

impl HostTester for OwnTester {
    fn cpu(&self) -> u32 {
        self.generators[0].cpu
    }

    fn sender(&self) -> Tester {
        self.sender.unwrap_or_default()
    }

    fn refused(&self) -> &[(Tester, String)] {
        &self.refused
    }

    fn sees_flows(&self) -> bool {
        true
    }

    fn described(&self) -> Vec<(String, String)> {
        let described = |process: &AgentProcess| {
            let hello = &process.hello;
            format!(
                "{}, {} CPUs, Linux {}",
                hello.cpu_model,
                hello.cpus.len(),
                hello.kernel.split(' ').next().unwrap_or_default()
            )
        };
        let mut all = Vec::new();
        for (number, generator) in (1..).zip(&self.generators) {
            all.push((part(number), described(&generator.process)));
        }
        let receiver = self.receiver.iter();
        all.extend(receiver.map(|process| ("receiver's host".to_owned(), described(process))));
        all
    }

    fn stations(&mut self) -> Result<[Station; 2], LabError> {
        let mut stations = Vec::new();
        for generator in &mut self.generators {
            stations.push(station(&mut generator.process, &generator.interface)?);
        }
        let interface = self.interface_in.clone();
        Ok([stations.swap_remove(0), station(self.sink(), &interface)?])
    }

    fn expect(&mut self, to: Crossing<'_>, every_frame: bool) -> Result<(), LabError> {
        let source = if self.is_reversed {
            to.mac_in
        } else {
            to.mac_out
        };
        let ask = Ask::Expect {
            expected: Expected {
                interface: self.interface_in.clone(),
                source: source.to_owned(),
                family: to.family,
                traffic: to.resolved.traffic.clone(),
                is_reversed: self.is_reversed,
            },
            every_frame,
        };
        self.sink().done("counting", &ask)
    }

    fn probe(&mut self, to: Crossing<'_>) -> Result<(Sent, SinkState), LabError> {
        let mut all = Sent::default();
        for number in 0..self.generators.len() {
            self.send_from(number, to, Some(PROBE_PPS), 1)?;
            let process = &mut self.generators[number].process;
            process.done("sending probe frames", &Ask::SendProbe)?;
            process.put(STOPPING, &Ask::Stop)?;
            all.add(stopped(process)?);
        }
        self.await_quiet()?;
        Ok((all, self.count()?))
    }

    fn send(&mut self, to: Crossing<'_>, pps: Option<u64>) -> Result<(), LabError> {
        let ports = self.generators.len();
        for number in 0..ports {
            let pps = part_of(pps, number, ports);
            self.send_from(number, to, pps, to.resolved.traffic.burst_frames)?;
        }
        Ok(())
    }

    fn measure(&mut self, settle_ms: u32, slice_ms: u32) -> Result<(Vec<Counted>, u64), LabError> {
        self.begin_measuring(settle_ms, slice_ms)?;
        self.end_measuring(settle_ms, slice_ms)
    }

    fn stop(&mut self) -> Result<Sent, LabError> {
        for generator in &mut self.generators {
            generator.process.put(STOPPING, &Ask::Stop)?;
        }
        let mut all = Sent::default();
        for generator in &mut self.generators {
            all.add(stopped(&mut generator.process)?);
        }
        self.await_quiet()?;
        Ok(all)
    }

    fn count(&mut self) -> Result<SinkState, LabError> {
        let sink = self.sink();
        match sink.ask("counting", &Ask::Count)? {
            Answer::Counted(state) => Ok(state),
            other => Err(sink.unexpected("counting", &other)),
        }
    }

    fn release(&mut self) -> Result<(), LabError> {
        self.sink().done("letting go of its ports", &Ask::Release)
    }
}

const MEASURING: &str = "measuring";
const STOPPING: &str = "stopping";

fn stopped(process: &mut AgentProcess) -> Result<Sent, LabError> {
    match process.answer(STOPPING, Duration::ZERO)? {
        Answer::Stopped(sent) => Ok(sent),
        other => Err(process.unexpected(STOPPING, &other)),
    }
}

/// What the host of a generator is in a lab; `number` counts from 1.
pub(super) fn part(number: usize) -> String {
    match number {
        1 => "tester's host".to_owned(),
        number => format!("generator {number}'s host"),
    }
}

fn station(process: &mut AgentProcess, interface: &str) -> Result<Station, LabError> {
    const WHAT: &str = "looking at its ports";
    let interface = interface.to_owned();
    match process.ask(WHAT, &Ask::Station { interface })? {
        Answer::Station(station) => Ok(station),
        other => Err(process.unexpected(WHAT, &other)),
    }
}
