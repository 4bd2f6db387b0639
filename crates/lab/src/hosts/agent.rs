//! A tester's process on its host: makes, counts and checks frames as a run elsewhere asks over standard input
//! and output.
//!
//! It ends, and stops what it sends, when its input ends or nobody asks for a while: a load must not outlive
//! whoever asked for it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, Tester, Traffic};
use fwdlab_packet::MacAddress;
use fwdlab_traffic::{
    Frames, InterfaceExpectation, InterfaceGenerator, InterfaceLoad, InterfaceSink, Link, Pace,
};

use super::protocol::{Answer, Ask, Counted, Hello, PROTOCOL, SinkState};

/// How long a process that sends nothing waits to be asked.
const IDLE_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long one waits that holds an interface: nobody else can count there meanwhile.
const HOLDING_MAX: Duration = Duration::from_secs(600);
/// How long the frames of a probe may take to be sent.
const PROBE_TIME_MAX: Duration = Duration::from_secs(60);
/// How long frames may be under way, and counters behind, once nothing is sent any more.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// No frame came for so long: none is under way.
const QUIET: Duration = Duration::from_millis(60);

/// Serves one run: reads requests and answers them until the input ends.
///
/// # Errors
/// Where nobody reads the answers, and where nobody has asked for longer than a load may go on by itself.
pub fn serve_tester(
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
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in input.lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let mut agent = Agent::default();
    loop {
        let patience = agent.patience();
        let line = match lines.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = patience.as_secs();
                return Err(io::Error::other(format!(
                    "nothing was asked for {seconds} s; what was sent and held is let go of"
                )));
            }
        };
        let answer = match serde_json::from_str(&line) {
            Ok(ask) => agent.answer(ask, &lines),
            Err(error) => Err(format!("not a request: {error}")),
        };
        say(output, &answer.unwrap_or_else(|why| Answer::Failed { why }))?;
    }
}

fn say(output: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

/// What goes on in a tester's process.
#[derive(Default)]
struct Agent {
    sink: Option<InterfaceSink>,
    sending: Option<Sending>,
}

struct Sending {
    generator: InterfaceGenerator,
    dead_man: Duration,
    probe_frames: u64,
    /// What was on the sink's side when it began.
    forwarded_before: u64,
}

impl Agent {
    /// How long nobody may ask for anything until it ends.
    fn patience(&self) -> Duration {
        match (&self.sending, &self.sink) {
            (Some(own), _) => own.dead_man,
            (None, Some(_)) => HOLDING_MAX,
            (None, None) => IDLE_MAX,
        }
    }

    fn answer(&mut self, ask: Ask, lines: &Receiver<String>) -> Result<Answer, String> {
        match ask {
            Ask::Station { interface } => station(&interface),
            Ask::Expect {
                interface,
                source,
                family,
                traffic,
                every_frame,
            } => {
                // The one that was there has to go first: an interface takes one program.
                self.sink = None;
                let expectation = InterfaceExpectation {
                    source: mac(&source)?,
                    family,
                    traffic: &traffic,
                    is_routed: true,
                };
                let mut sink = InterfaceSink::attach(&interface, &expectation).map_err(text)?;
                if every_frame {
                    sink.reset_to_check_all().map_err(text)?;
                }
                self.sink = Some(sink);
                Ok(Answer::Done)
            }
            Ask::Send {
                interface,
                destination,
                family,
                traffic,
                cpu,
                pps,
                burst_frames,
                sender,
                dead_man_s,
            } => {
                let load = Load {
                    interface,
                    destination: mac(&destination)?,
                    family,
                    traffic,
                    cpu,
                    pace: pps.map_or(Pace::SelfClocked, |pps| Pace::Paced { pps, burst_frames }),
                    sender,
                };
                self.send(&load, Duration::from_secs(dead_man_s))
            }
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
        }
    }

    fn send(&mut self, load: &Load, dead_man: Duration) -> Result<Answer, String> {
        if self.sending.is_some() {
            return Err("it sends already".to_owned());
        }
        let own = MacAddress(fwdlab_sys::interface(&load.interface).map_err(text)?.mac);
        let link = Link {
            source: own,
            destination: load.destination,
        };
        let frames = Frames::unrouted(load.family, &load.traffic, link).map_err(text)?;
        let forwarded_before = self.forwarded()?;
        let of_interface = InterfaceLoad {
            destination: load.destination,
            family: load.family,
            traffic: &load.traffic,
            cpu: load.cpu,
            pace: load.pace,
        };
        let generator = match load.sender {
            Some(sender) => InterfaceGenerator::start_with(&load.interface, &of_interface, sender),
            None => InterfaceGenerator::start(&load.interface, &of_interface),
        };
        let generator = generator.map_err(text)?;
        let refused = generator.refused().iter();
        let refused = refused
            .map(|(tester, why)| (*tester, why.to_string()))
            .collect();
        let sender = generator.sender();
        self.sending = Some(Sending {
            generator,
            dead_man,
            probe_frames: frames.probe_frames().into(),
            forwarded_before,
        });
        Ok(Answer::Sending { sender, refused })
    }

    fn send_probe(&self) -> Result<Answer, String> {
        let sending = self.sending.as_ref().ok_or("it sends nothing")?;
        let start = Instant::now();
        while sending.generator.sent().map_err(text)?.offered < sending.probe_frames {
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
        let count = || -> Result<(Instant, u64), String> {
            let before = Instant::now();
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
        Ok(Answer::Stopped {
            offered_frames: sent.offered,
            transmitted_frames: sent.transmitted.min(sent.offered),
            failed,
        })
    }

    fn forwarded(&self) -> Result<u64, String> {
        Ok(match &self.sink {
            Some(sink) => sink.counts().map_err(text)?.forwarded_frames,
            None => 0,
        })
    }

    fn count(&self) -> Result<SinkState, String> {
        let sink = self.sink.as_ref().ok_or("it expects nothing")?;
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

/// What is to be sent.
struct Load {
    interface: String,
    destination: MacAddress,
    family: AddressFamily,
    traffic: Traffic,
    cpu: u32,
    pace: Pace,
    sender: Option<Tester>,
}

fn station(interface: &str) -> Result<Answer, String> {
    fwdlab_traffic::refuse_default_route(interface).map_err(text)?;
    let found = fwdlab_sys::interface(interface).map_err(text)?;
    let hardware = Path::new("/sys/class/net").join(interface).join("device");
    Ok(Answer::Station {
        mac: MacAddress(found.mac).to_string(),
        is_virtual: !hardware.exists(),
    })
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

fn mac(text: &str) -> Result<MacAddress, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no MAC address"))
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
        serve_tester(Cursor::new(requests.to_owned()), &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_no_request_is_answered_and_ends_nothing() {
        let answers = answers("{\n{\"ask\":\"stop\"}\n");
        assert_eq!(answers.len(), 3);
        assert!(answers[0].starts_with("{\"protocol\":1"), "{}", answers[0]);
        assert!(answers[1].contains("not a request"), "{}", answers[1]);
        assert!(answers[2].contains("it sends nothing"), "{}", answers[2]);
    }

    #[test]
    fn an_interface_that_is_not_there_is_told() {
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
        fn any_line_is_answered_with_a_line(line in "[^\n\r]{0,60}") {
            prop_assert_eq!(answers(&format!("{line}\n")).len(), 2);
        }
    }
}
