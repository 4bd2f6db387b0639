//! A process of fwdlab's own on a host: makes, counts and checks frames on a tester's, and forwards them by XDP on a
//! DUT's, as a run elsewhere asks over standard input and output.
//!
//! It ends, and with it what it sends and forwards, when its input ends or nobody asks for a while: a load must not
//! outlive whoever asked for it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_packet::MacAddress;
use fwdlab_sys::BootTime;
use fwdlab_traffic::{
    InterfaceExpectation, InterfaceGenerator, InterfaceLoad, InterfaceSink, Pace, TrafficError,
    Way, XdpProgram, is_card, master_of, refuse_needed,
};

use super::protocol::{
    Answer, Ask, Counted, Expected, HELD_MAX, Hello, Load, PROTOCOL, Sent, SinkState, Station,
    UNHEARD_MAX, lines,
};
use super::reached::taken_by;
use crate::LabError;
use crate::mechanism::program::{Hook, Program, Programs};

/// How long the frames of a probe may take to be sent.
const PROBE_TIME_MAX: Duration = Duration::from_secs(60);
/// How long frames may be under way, and counters behind, once nothing is sent any more.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// How long a link may take to come back when a program was attached to its port.
const CARRIER_TIME_MAX: Duration = Duration::from_secs(30);
/// No frame came for so long: none is under way.
const QUIET: Duration = Duration::from_millis(60);

/// Serves one run: reads requests and answers them until the input ends.
///
/// # Errors
/// Where nobody reads the answers, where nobody has asked for longer than a load may go on by itself, and where nothing was
/// heard of the run for `UNHEARD_MAX`.
pub fn serve_agent(
    input: impl BufRead + Send + 'static,
    output: &mut impl Write,
) -> io::Result<()> {
    let environment = crate::environment();
    let hello = Hello {
        protocol: PROTOCOL,
        fwdlab: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: environment.kernel,
        cpu_model: environment.cpu_model,
        cpus: fwdlab_sys::online_cpus().unwrap_or_default(),
    };
    say(output, &hello)?;
    let (sender, requests) = channel();
    let heard = Arc::new(Mutex::new(Instant::now()));
    fwdlab_sys::start_thread({
        let heard = Arc::clone(&heard);
        move || {
            for line in lines(input) {
                let Ok(line) = line else { break };
                *locked(&heard) = Instant::now();
                // One that says nothing is a sign of life.
                if !line.is_empty() && sender.send(line).is_err() {
                    break;
                }
            }
        }
    })
    .map_err(io::Error::other)?;
    let mut agent = Agent::default();
    let mut asked = Instant::now();
    loop {
        // A load has to be asked after, not only whether its run lives.
        let (since, patience) = match &agent.sending {
            Some(sending) => (asked, sending.dead_man),
            None => (*locked(&heard), UNHEARD_MAX),
        };
        let left = patience.saturating_sub(since.elapsed());
        let line = match requests.recv_timeout(left) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => continue,
            Err(RecvTimeoutError::Timeout) => {
                let seconds = patience.as_secs();
                return Err(io::Error::other(format!(
                    "nothing was heard for {seconds} s; what was sent and held is let go of"
                )));
            }
        };
        let answer = match serde_json::from_str(&line) {
            Ok(ask) => agent.answer(ask, &requests),
            Err(error) => Err(format!("not a request: {error}")),
        };
        say(output, &answer.unwrap_or_else(|why| failed(why, None)))?;
        asked = Instant::now();
    }
}

fn say(output: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

/// What goes on in the process.
#[derive(Default)]
struct Agent {
    sink: Option<(Expected, InterfaceSink)>,
    sending: Option<Sending>,
    programs: Programs,
    /// Ports that were seen to send with what sends from them, and the program that they needed for it.
    proved: BTreeMap<String, Option<XdpProgram>>,
}

struct Sending {
    generator: InterfaceGenerator,
    dead_man: Duration,
    /// What was on the sink's side when it began.
    forwarded_before: u64,
}

impl Agent {
    fn answer(&mut self, ask: Ask, lines: &Receiver<String>) -> Result<Answer, String> {
        match ask {
            Ask::Station { interface } => station(&interface),
            Ask::Expect {
                expected,
                every_frame,
            } => self.expect(expected, every_frame),
            Ask::Send(load) => self.send(&load),
            Ask::SendProbe => self.send_probe(),
            Ask::Measure {
                settle_ms,
                slice_ms,
                sample_ms,
            } => {
                pause(Duration::from_millis(settle_ms.into()), lines)?;
                let length = Duration::from_millis(slice_ms.into());
                self.measure(length, Duration::from_millis(sample_ms.into()), lines)
            }
            Ask::Stop => self.stop(),
            Ask::Count => Ok(Answer::Counted(self.count()?)),
            Ask::Release => {
                self.sink = None;
                Ok(Answer::Done)
            }
            Ask::Attach {
                program,
                interfaces,
            } => self.attach(&program, &interfaces),
            Ask::Detach { hook } => self.detach(hook),
            Ask::Attached { hook } => self.attached(hook),
        }
    }

    /// Counts from 0 what comes in. A sink that expects the same stays where it is: attaching a program takes the
    /// link of many a card down for seconds.
    fn expect(&mut self, expected: Expected, every_frame: bool) -> Result<Answer, String> {
        if self.sink.as_ref().is_none_or(|(of, _)| *of != expected) {
            // The one that was there has to go first: an interface takes one program.
            self.sink = None;
            let expectation = InterfaceExpectation {
                source: MacAddress::of_station(&expected.source).map_err(text)?,
                family: expected.family,
                traffic: &expected.traffic,
                way: if expected.is_reversed {
                    Way::RouterReversed
                } else {
                    Way::Router
                },
            };
            let attach = || InterfaceSink::attach(&expected.interface, &expectation);
            let sink = once_free(attach).map_err(text)?;
            await_carrier(&expected.interface)?;
            self.sink = Some((expected, sink));
        }
        let (_, sink) = self.sink.as_mut().ok_or("it expects nothing")?;
        let counts_anew = if every_frame {
            sink.reset_to_check_all()
        } else {
            sink.reset()
        };
        counts_anew.map_err(text)?;
        Ok(Answer::Done)
    }

    fn attach(&mut self, program: &Program, interfaces: &[String]) -> Result<Answer, String> {
        let loaded = match self.programs.load(program) {
            Err(LabError::Traffic(error @ TrafficError::Verifier { .. })) => {
                let why = error.to_string();
                return Ok(failed(why, error.into_verifier_log()));
            }
            loaded => loaded.map_err(text)?,
        };
        for interface in interfaces {
            let attached =
                refuse_needed(interface).and_then(|()| once_free(|| loaded.attach(interface)));
            if let Err(error) = attached {
                // What failed first says more.
                let _ = loaded.detach();
                return Err(text(error));
            }
        }
        for interface in interfaces {
            await_carrier(interface)?;
        }
        Ok(Answer::Done)
    }

    fn detach(&mut self, hook: Hook) -> Result<Answer, String> {
        if let Some(loaded) = self.programs.of(hook) {
            loaded.detach().map_err(text)?;
        }
        Ok(Answer::Done)
    }

    fn attached(&mut self, hook: Hook) -> Result<Answer, String> {
        let loaded = self.programs.of(hook).ok_or("nothing is loaded")?;
        Ok(Answer::Attached {
            program: loaded.number().map_err(text)?,
            drops: loaded.drops().map_err(text)?,
        })
    }

    fn send(&mut self, load: &Load) -> Result<Answer, String> {
        let destination = MacAddress::of_station(&load.destination).map_err(text)?;
        if self.sending.is_some() {
            return Err("it sends already".to_owned());
        }
        let forwarded_before = self.forwarded()?;
        let of_interface = InterfaceLoad {
            destination,
            family: load.family,
            traffic: &load.traffic,
            is_reversed: load.is_reversed,
            cpus: &load.cpus,
            pace: match load.pps {
                Some(pps) => Pace::Paced {
                    pps,
                    burst_frames: load.burst_frames,
                },
                None => Pace::SelfClocked,
            },
        };
        let name = &load.interface;
        let is_proved = self.proved.contains_key(name);
        let generator = match load.sender {
            Some(sender) if is_proved => {
                InterfaceGenerator::start_with(name, &of_interface, sender)
            }
            Some(sender) => InterfaceGenerator::start_among(name, &of_interface, &[sender]),
            None => InterfaceGenerator::start(name, &of_interface),
        };
        let mut generator = generator.map_err(text)?;
        if !is_proved {
            self.proved.insert(name.clone(), generator.take_program());
        }
        let refused = generator.refused().iter();
        let refused = refused
            .map(|(tester, why)| (*tester, why.to_string()))
            .collect();
        let sender = generator.sender();
        self.sending = Some(Sending {
            generator,
            dead_man: Duration::from_secs(load.dead_man_s),
            forwarded_before,
        });
        Ok(Answer::Sending { sender, refused })
    }

    fn send_probe(&self) -> Result<Answer, String> {
        let sending = self.sending.as_ref().ok_or("it sends nothing")?;
        let start = Instant::now();
        while !sending.generator.has_probed().map_err(text)? {
            if start.elapsed() > PROBE_TIME_MAX || !sending.generator.is_running() {
                break;
            }
            sleep(Duration::from_millis(1));
        }
        Ok(Answer::Done)
    }

    fn measure(
        &self,
        length: Duration,
        every: Duration,
        lines: &Receiver<String>,
    ) -> Result<Answer, String> {
        let offered = || -> Result<u64, String> {
            Ok(match &self.sending {
                Some(sending) => sending.generator.sent().map_err(text)?.offered,
                None => 0,
            })
        };
        // The clock is read on both sides of the counter, so that a pause in between moves the sample by half of it
        // only.
        let count = || -> Result<(BootTime, u64), String> {
            let before = BootTime::now();
            let forwarded_frames = self.forwarded()?;
            Ok((before + before.elapsed() / 2, forwarded_frames))
        };
        // The time begins with the first sample: what passed in front of it is no part of it.
        let (start, forwarded_frames) = count()?;
        let offered_before = offered()?;
        let mut samples = vec![Counted {
            at_s: 0.0,
            forwarded_frames,
        }];
        let mut elapsed = Duration::ZERO;
        while elapsed < length {
            let next = every * u32::try_from(samples.len()).unwrap_or(u32::MAX);
            pause(next.min(length).saturating_sub(start.elapsed()), lines)?;
            let (at, forwarded_frames) = count()?;
            elapsed = at - start;
            samples.push(Counted {
                at_s: elapsed.as_secs_f64(),
                forwarded_frames,
            });
        }
        let offered_frames = offered()? - offered_before;
        Ok(Answer::Measured {
            samples,
            offered_frames,
        })
    }

    fn stop(&mut self) -> Result<Answer, String> {
        let sending = self.sending.take().ok_or("it sends nothing")?;
        let before = sending.generator.sent().map_err(text)?;
        let (sent, failed) = match sending.generator.stop() {
            Ok(sent) => (sent, None),
            Err(error) => (before, Some(error.to_string())),
        };
        // Until nothing came for a while.
        let start = Instant::now();
        let mut seen = (self.forwarded()?, Instant::now());
        while seen.1.elapsed() < QUIET && start.elapsed() < DRAIN_MAX {
            sleep(Duration::from_millis(5));
            let forwarded = self.forwarded()?;
            if forwarded != seen.0 {
                seen = (forwarded, Instant::now());
            } else if forwarded - sending.forwarded_before.min(forwarded) >= sent.offered {
                break;
            }
        }
        Ok(Answer::Stopped(Sent {
            offered_frames: sent.offered,
            transmitted_frames: sent.transmitted.min(sent.offered),
            failed,
        }))
    }

    fn forwarded(&self) -> Result<u64, String> {
        Ok(match &self.sink {
            Some((_, sink)) => sink.counts().map_err(text)?.forwarded_frames,
            None => 0,
        })
    }

    fn count(&self) -> Result<SinkState, String> {
        let (_, sink) = self.sink.as_ref().ok_or("it expects nothing")?;
        let counts = sink.counts().map_err(text)?;
        let wrong = counts.wrong_frames_by_kind();
        let wrong_frames: BTreeMap<String, u64> = wrong
            .map(|(kind, frames)| (kind.to_owned(), frames))
            .collect();
        Ok(SinkState {
            forwarded_frames: counts.forwarded_frames,
            foreign_frames: counts.foreign_frames,
            checked_frames: counts.checked_frames,
            wrong_frames,
            flows_seen: sink.flows_seen().map_err(text)?,
        })
    }
}

/// Attaches something to an interface, once a process before this one has let go of it: the run of that may have lost
/// its connection and be this one's.
fn once_free<T>(mut attach: impl FnMut() -> Result<T, TrafficError>) -> Result<T, TrafficError> {
    let start = Instant::now();
    loop {
        match attach() {
            Err(error) if error.is_of_another_program() && start.elapsed() < HELD_MAX => {
                sleep(Duration::from_millis(200));
            }
            attached => return attached,
        }
    }
}

/// The moment that is shared.
fn locked(heard: &Mutex<Instant>) -> MutexGuard<'_, Instant> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until an interface has a link again; one that is down has none.
fn await_carrier(interface: &str) -> Result<(), String> {
    let start = Instant::now();
    let is_ready = || -> Result<bool, String> {
        let now = fwdlab_sys::interface(interface).map_err(text)?;
        Ok(now.has_carrier || !now.is_up)
    };
    while !is_ready()? {
        if start.elapsed() > CARRIER_TIME_MAX {
            let seconds = CARRIER_TIME_MAX.as_secs();
            return Err(format!(
                "{interface} has had no link for {seconds} s; check its cable and the DUT's port"
            ));
        }
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn station(interface: &str) -> Result<Answer, String> {
    refuse_needed(interface).map_err(|error| match error {
        TrafficError::NoSuchInterface { .. } => {
            let there = fwdlab_sys::interface_names().unwrap_or_default();
            format!("{error}; it has {}", there.join(", "))
        }
        error => text(error),
    })?;
    if let Some(master) = master_of(interface).map_err(text)? {
        return Err(taken_by(interface, &master));
    }
    let found = fwdlab_sys::interface(interface).map_err(text)?;
    if !found.is_up {
        return Err(format!(
            "{interface} is down; bring it up (`ip link set {interface} up`). If a killed `fwdlab lab new` has left it so, \
             `fwdlab restore` on its controller puts it back"
        ));
    }
    Ok(Answer::Station(Station {
        mac: MacAddress(found.mac).to_string(),
        is_virtual: !is_card(interface),
    }))
}

/// Waits, and gives up where the input has ended meanwhile.
fn pause(length: Duration, lines: &Receiver<String>) -> Result<(), String> {
    const STEP: Duration = Duration::from_millis(20);
    let end = Instant::now() + length;
    loop {
        match lines.try_recv() {
            Err(TryRecvError::Disconnected) => return Err("whoever asked is gone".to_owned()),
            Ok(_) => return Err("it was asked for something else meanwhile".to_owned()),
            Err(TryRecvError::Empty) => {}
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        sleep(left.min(STEP));
    }
}

const fn failed(why: String, verifier_log: Option<String>) -> Answer {
    Answer::Failed { why, verifier_log }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn answers(requests: &str) -> Vec<String> {
        let mut output = Vec::new();
        serve_agent(Cursor::new(requests.to_owned()), &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_no_request_is_answered_and_ends_nothing() {
        let answers = answers("{\n{\"ask\":\"stop\"}\n");
        assert_eq!(answers.len(), 3);
        assert!(answers[0].starts_with("{\"protocol\":7"), "{}", answers[0]);
        assert!(answers[1].contains("not a request"), "{}", answers[1]);
        assert!(answers[2].contains("it sends nothing"), "{}", answers[2]);
    }

    #[test]
    fn a_sign_of_life_has_no_answer() {
        let answers = answers("\n\n{\"ask\":\"stop\"}\n\n");
        assert_eq!(answers.len(), 2);
        assert!(answers[1].contains("it sends nothing"), "{}", answers[1]);
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let answers = answers("{\"ask\":\"station\",\"interface\":\"no-such-port\"}\n");
        assert!(answers[1].contains("\"failed\""), "{}", answers[1]);
    }

    #[test]
    fn a_time_has_two_edges_however_late_its_first_sample_is() {
        let (_asks, lines) = channel();
        let moment = Duration::from_nanos(1);
        let answer = Agent::default().measure(moment, moment, &lines).unwrap();
        let Answer::Measured { samples, .. } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(samples.len(), 2);
    }

    proptest! {
        #[test]
        fn any_line_is_answered_with_a_line(line in "[^\n\r]{1,60}") {
            prop_assert_eq!(answers(&format!("{line}\n")).len(), 2);
        }
    }
}
