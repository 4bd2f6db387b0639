//! The tester on its hosts, as a run sees it: processes of fwdlab's own there, one for each port that sends and one
//! for the sink, which may be that of the first.

use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{Hosts, ReceiverHost, Resolved, Stratum, Tester, TesterHost, Traffic};

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
    /// The CPUs that send from the first generator's port, at least one.
    fn cpus(&self) -> &[u32];

    /// What sends and counts.
    fn sender(&self) -> Tester;

    /// What would have sent better, and why it does not; known once frames were sent.
    fn refused(&self) -> &[(Tester, String)] {
        &[]
    }

    /// Whether the sink tells flows apart.
    fn sees_flows(&self) -> bool;

    /// Whether links stay while it begins and stops to send.
    fn keeps_links(&self) -> bool {
        true
    }

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
    cpus: Vec<u32>,
}

/// Frames of a stratum that are sent through the DUT, and the MAC addresses of its ports.
#[derive(Clone, Copy)]
pub(super) struct Crossing<'a> {
    pub(super) resolved: &'a Resolved,
    pub(super) stratum: Stratum,
    /// Of the port that faces the generator.
    pub(super) mac_in: &'a str,
    /// Of the one that faces the sink.
    pub(super) mac_out: &'a str,
}

impl<'a> Crossing<'a> {
    pub(super) fn traffic(&self) -> &'a Traffic {
        self.resolved.traffic(self.stratum)
    }
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
        Self::start_beside(&[], 1, hosts, connect)
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
            cpus: Vec::new(),
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
        let taken: &[u32] = match receiver {
            Some(_) => &[],
            None => there.cpus(),
        };
        let started = Self::start_beside(taken, there.cpus().len(), &hosts, connect)?;
        Ok(Self {
            is_reversed: true,
            ..started
        })
    }

    /// Starts a process for every port. Where no CPUs are named that send, they are as many as asked for, others than
    /// those that are taken on the first host.
    fn start_beside(
        taken: &[u32],
        number: usize,
        hosts: &Hosts,
        connect: &mut dyn FnMut(&str) -> Result<Rc<Connection>, LabError>,
    ) -> Result<Self, LabError> {
        let of = &hosts.tester;
        let first = (&of.host, &of.interface_out, &of.cpus, &of.program);
        let others = hosts.generators.iter();
        let others = others.map(|of| (&of.host, &of.interface_out, &of.cpus, &of.program));
        let mut generators = Vec::new();
        for (host, interface, named, program) in std::iter::once(first).chain(others) {
            let process = AgentProcess::start(&connect(host)?, program.as_deref())?;
            let cpus = sending_cpus(named, number, taken, &process.hello.cpus);
            generators.push(Generator {
                interface: interface.clone(),
                cpus: cpus.map_err(|why| LabError::Host {
                    host: host.clone(),
                    why,
                })?,
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
        traffic: Traffic,
        pps: Option<u64>,
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
            family: to.stratum.family,
            burst_frames: traffic.burst_frames,
            traffic,
            is_reversed: self.is_reversed,
            cpus: generator.cpus.clone(),
            pps,
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
    fn cpus(&self) -> &[u32] {
        &self.generators[0].cpus
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
            all.push((part_that_sends(number), listed(&generator.cpus)));
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
                family: to.stratum.family,
                traffic: to.traffic().clone(),
                is_reversed: self.is_reversed,
            },
            every_frame,
        };
        self.sink().done("counting", &ask)
    }

    fn probe(&mut self, to: Crossing<'_>) -> Result<(Sent, SinkState), LabError> {
        let mut all = Sent::default();
        for number in 0..self.generators.len() {
            // Evenly spaced, and every flow in its turn, so that all are proved.
            let traffic = Traffic {
                burst_frames: 1,
                zipf: None,
                ..to.traffic().clone()
            };
            self.send_from(number, to, traffic, Some(PROBE_PPS))?;
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
            self.send_from(number, to, to.traffic().clone(), pps)?;
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

/// The CPUs that send from a port: those that are named, or so many of the last that are not taken.
fn sending_cpus(
    named: &[u32],
    number: usize,
    taken: &[u32],
    online: &[u32],
) -> Result<Vec<u32>, String> {
    if let Some(cpu) = named.iter().find(|cpu| !online.contains(cpu)) {
        return Err(format!(
            "it has no CPU {cpu} that fwdlab may use; name some of {} in the lab file",
            listed(online)
        ));
    }
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    // Device interrupts are often at the first.
    let free = online.iter().rev().filter(|cpu| !taken.contains(cpu));
    let mut cpus: Vec<u32> = free.copied().take(number).collect();
    if cpus.len() < number {
        // Where there is a single CPU, both directions send from it.
        let (1, Some(&cpu)) = (number, taken.first()) else {
            return Err(format!(
                "{number} more CPUs have to send back, and not so many of {} are free; name fewer `cpus` in [tester]",
                listed(online)
            ));
        };
        cpus.push(cpu);
    }
    Ok(cpus)
}

/// What the host of a generator is in a lab; `number` counts from 1.
pub(super) fn part(number: usize) -> String {
    match number {
        1 => "tester's host".to_owned(),
        number => format!("generator {number}'s host"),
    }
}

/// The same of the CPUs that send there.
pub(super) fn part_that_sends(number: usize) -> String {
    match number {
        1 => "tester's CPUs that send".to_owned(),
        number => format!("generator {number}'s CPUs that send"),
    }
}

/// CPUs as they are named in texts.
pub(super) fn listed(cpus: &[u32]) -> String {
    let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
    cpus.join(", ")
}

fn station(process: &mut AgentProcess, interface: &str) -> Result<Station, LabError> {
    const WHAT: &str = "looking at its ports";
    let interface = interface.to_owned();
    match process.ask(WHAT, &Ask::Station { interface })? {
        Answer::Station(station) => Ok(station),
        other => Err(process.unexpected(WHAT, &other)),
    }
}

#[cfg(test)]
mod tests {
    use super::sending_cpus;

    #[test]
    fn the_cpus_that_send_are_those_that_are_named_or_the_last_that_are_free() {
        let online = [0, 1, 2, 3];
        let of = |named: &[u32], number, taken: &[u32]| sending_cpus(named, number, taken, &online);
        assert_eq!(of(&[2, 1], 1, &[]).unwrap(), [2, 1]);
        assert_eq!(of(&[], 1, &[]).unwrap(), [3]);
        assert_eq!(of(&[], 1, &[3]).unwrap(), [2]);
        assert_eq!(of(&[], 2, &[3, 1]).unwrap(), [2, 0]);
        assert_eq!(sending_cpus(&[], 1, &[0], &[0]).unwrap(), [0]);
    }

    #[test]
    fn cpus_that_are_not_there_or_too_few_are_refused() {
        let missing = sending_cpus(&[1, 4], 1, &[], &[0, 1]).unwrap_err();
        assert!(missing.contains("no CPU 4"), "{missing}");
        assert!(missing.contains("0, 1"), "{missing}");
        let few = sending_cpus(&[], 2, &[2, 1], &[0, 1, 2]).unwrap_err();
        assert!(few.contains("2 more CPUs have to send back"), "{few}");
    }
}
