//! What `fwdlab gen` and `fwdlab sink` have in common: the traffic, its seconds and their rates.

use std::ops::ControlFlow;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, FirstAddresses, FlowEnd, FrameSizes, Traffic, TrafficFault};
use fwdlab_report::heavy_flows;
use fwdlab_sys::Interrupts;

use crate::args::TrafficArguments;
use crate::exit::WrongArguments;
use crate::output;

/// How soon a wish to stop is heard.
const STEP: Duration = Duration::from_millis(20);

impl TrafficArguments {
    /// The traffic that is asked for, of one family.
    pub(crate) fn traffic(&self) -> Result<Traffic, WrongArguments> {
        let first = FirstAddresses {
            source: self.source_address,
            destination: self.destination_address,
        };
        let traffic = Traffic {
            families: vec![self.family],
            frame_sizes: self.frame_size.0.clone(),
            sources: self.sources,
            destinations: self.destinations,
            source_ports: self.source_ports,
            destination_ports: self.destination_ports,
            zipf: self.zipf,
            vlan: self.vlan,
            first_addresses: [(self.family, first)].into(),
            ..Traffic::default()
        };
        let checked = traffic.check(self.family);
        checked.map_err(|fault| {
            let options = options(&fault);
            WrongArguments(format!("{options}: {fault}; {}", fault.advice()))
        })?;
        Ok(traffic)
    }
}

/// The options that a fault is in.
fn options(fault: &TrafficFault) -> &'static str {
    match fault {
        TrafficFault::Flows { .. } => {
            "--sources, --destinations, --source-ports, --destination-ports"
        }
        TrafficFault::FrameSize { .. } => "--frame-size",
        TrafficFault::Vlan { .. } => "--vlan",
        TrafficFault::Overlap { .. } => "--source-address, --destination-address",
        TrafficFault::Family { end, .. }
        | TrafficFault::Range { end, .. }
        | TrafficFault::NeverForwarded { end, .. } => match end {
            FlowEnd::Sources => "--source-address",
            FlowEnd::Destinations => "--destination-address",
        },
    }
}

/// Flows and sizes in words.
pub(crate) fn described(traffic: &Traffic, family: AddressFamily) -> String {
    let heavy = heavy_flows(traffic).map(|shares| format!(" ({shares})"));
    let tag = traffic
        .vlan
        .map(|vlan| format!(" and a tag of VLAN {vlan}"));
    format!(
        "{} {} flows{}, frames of {} bytes{}",
        traffic.flows(),
        family.protocol(),
        heavy.unwrap_or_default(),
        FrameSizes(traffic.frame_sizes.clone()),
        tag.unwrap_or_default()
    )
}

/// The seconds of a load, as they go by.
pub(crate) struct Seconds {
    start: Instant,
    time: Option<Duration>,
    interrupts: Interrupts,
    done: u64,
}

/// Why there are no more seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The time that was asked for is up.
    TimeIsUp,
    /// The user has had enough.
    Stopped,
    /// What was watched has ended.
    Gone,
    /// Nobody reads the output any more.
    NobodyReads,
}

impl Seconds {
    pub(crate) fn new(start: Instant, time: Option<Duration>, interrupts: Interrupts) -> Self {
        Self {
            start,
            time,
            interrupts,
            done: 0,
        }
    }

    /// Waits for the next second to be over, or for the end.
    fn next(&mut self, goes_on: impl Fn() -> bool) -> ControlFlow<End, u64> {
        loop {
            let elapsed = self.start.elapsed();
            if elapsed.as_secs() > self.done {
                self.done = elapsed.as_secs();
                return ControlFlow::Continue(self.done);
            }
            if self.time.is_some_and(|time| elapsed >= time) {
                return ControlFlow::Break(End::TimeIsUp);
            }
            if self.interrupts.requests() > 0 {
                return ControlFlow::Break(End::Stopped);
            }
            if !goes_on() {
                return ControlFlow::Break(End::Gone);
            }
            let due = Duration::from_secs(self.done + 1);
            let until = self.time.map_or(due, |time| time.min(due));
            sleep(until.saturating_sub(elapsed).min(STEP));
        }
    }

    /// Prints a line for every second until the end, unless it is to be quiet; `line` measures the second and says it.
    ///
    /// # Errors
    /// Those of `line` and of the output.
    pub(crate) fn tell(
        &mut self,
        is_quiet: bool,
        goes_on: impl Fn() -> bool,
        mut line: impl FnMut(u64) -> anyhow::Result<String>,
    ) -> anyhow::Result<End> {
        loop {
            let second = match self.next(&goes_on) {
                ControlFlow::Continue(second) => second,
                ControlFlow::Break(end) => return Ok(end),
            };
            let line = line(second)?;
            if !is_quiet && !output::line(&line)? {
                return Ok(End::NobodyReads);
            }
        }
    }
}

/// Rates of whole seconds: their mean, and the smallest and largest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    seconds: u32,
    sum: f64,
    min: f64,
    max: f64,
}

impl Rates {
    pub(crate) fn add(&mut self, pps: f64) {
        let is_first = self.seconds == 0;
        self.seconds += 1;
        self.sum += pps;
        self.min = if is_first { pps } else { self.min.min(pps) };
        self.max = self.max.max(pps);
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (self.seconds > 0).then(|| self.sum / f64::from(self.seconds))
    }

    pub(crate) fn min(&self) -> Option<f64> {
        (self.seconds > 0).then_some(self.min)
    }

    pub(crate) fn max(&self) -> Option<f64> {
        (self.seconds > 0).then_some(self.max)
    }
}

/// Rates of the whole seconds in which a load came in from beginning to end: those in which it began
/// and ended are left out, and those before and after; pauses in between are not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct InnerRates {
    rates: Rates,
    has_begun: bool,
    held: Option<f64>,
    pauses: u32,
}

impl InnerRates {
    pub(crate) fn add(&mut self, pps: f64) {
        if pps <= 0.0 {
            self.pauses += u32::from(self.has_begun);
            return;
        }
        if self.has_begun {
            if let Some(held) = self.held {
                self.rates.add(held);
            }
            for _ in 0..std::mem::take(&mut self.pauses) {
                self.rates.add(0.0);
            }
            // Perhaps the last one, which is cut.
            self.held = Some(pps);
        }
        self.has_begun = true;
    }

    pub(crate) fn rates(&self) -> Rates {
        self.rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(seconds: &[f64]) -> Rates {
        let mut rates = InnerRates::default();
        for &pps in seconds {
            rates.add(pps);
        }
        rates.rates()
    }

    #[test]
    fn seconds_that_are_cut_do_not_count() {
        for too_few in [&[][..], &[0.0, 0.0], &[5.0], &[0.0, 5.0, 5.0, 0.0]] {
            assert_eq!(inner(too_few).mean(), None, "{too_few:?}");
        }
        let rates = inner(&[0.0, 3.0, 10.0, 20.0, 7.0, 0.0, 0.0]);
        let figures = [rates.min(), rates.mean(), rates.max()];
        assert_eq!(figures, [Some(10.0), Some(15.0), Some(20.0)]);
    }

    #[test]
    fn a_pause_in_the_middle_counts() {
        let rates = inner(&[3.0, 10.0, 0.0, 5.0, 4.0]);
        let figures = [rates.min(), rates.mean(), rates.max()];
        assert_eq!(figures, [Some(0.0), Some(5.0), Some(10.0)]);
    }
}
