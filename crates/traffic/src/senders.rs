//! The CPUs that send from one port: each its share of the flows and of the pace, all at the same time.

use fwdlab_model::Tester;
use fwdlab_sys::Interface;

use crate::running::Alarm;
use crate::{Frames, Pace, RunningSender, Sender, SenderPort, TrafficError};

/// A sender for each CPU. They end together: where one fails, when they are stopped, or when the value goes.
pub(crate) struct Senders {
    /// Those that have not begun, the first last.
    waiting: Vec<Waiting>,
    running: Vec<OnCpu>,
    /// Whether there is more than one CPU.
    are_several: bool,
    alarm: Alarm,
}

struct Waiting {
    cpu: u32,
    pace: Pace,
    probe_frames: u64,
    sender: Sender,
}

struct OnCpu {
    cpu: u32,
    probe_frames: u64,
    running: RunningSender,
}

impl Senders {
    /// Prepares to send frames from each of some CPUs, on a thread in the interface's namespace.
    ///
    /// # Errors
    /// `TooManyCpus`, `TooSlowForCpus`, `TooFewQueues`, and those of [`SenderPort::open`] and [`Sender::load`].
    pub(crate) fn load(
        tester: Tester,
        interface: &Interface,
        frames: &Frames,
        cpus: &[u32],
        pace: Pace,
    ) -> Result<Self, TrafficError> {
        let shares = frames.shared_out(cpus.len())?;
        let paces = pace.shared_out(&shares)?;
        if tester == Tester::AfXdp && cpus.len() > 1 {
            // The kernel looks at the larger of the numbers of both kinds of queues when it binds a socket, and at none
            // when it sends: `xsk_reg_pool_at_qid` in `net/xdp/xsk.c`, `__dev_direct_xmit` in `net/core/dev.c`.
            let queues = fwdlab_sys::transmit_queues(&interface.name)?;
            if (queues as usize) < cpus.len() {
                return Err(TrafficError::TooFewQueues {
                    interface: interface.name.clone(),
                    queues,
                    cpus: cpus.len(),
                });
            }
        }
        let mut waiting = Vec::new();
        let each = cpus.iter().zip(&shares).zip(paces);
        for (queue, ((&cpu, share), pace)) in (0..).zip(each) {
            let port = SenderPort::open_queue(tester, interface.index, queue)?;
            waiting.push(Waiting {
                cpu,
                pace,
                probe_frames: share.probe_frames().into(),
                sender: Sender::load(&port, share)?,
            });
        }
        waiting.reverse();
        Ok(Self {
            waiting,
            running: Vec::new(),
            are_several: cpus.len() > 1,
            alarm: Alarm::default(),
        })
    }

    /// Has the next CPU begin to send; what it sends by, or none where all do.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn start_next(&mut self) -> Result<Option<&RunningSender>, TrafficError> {
        let Some(next) = self.waiting.pop() else {
            return Ok(None);
        };
        let started = next
            .sender
            .start_beside(next.cpu, next.pace, self.alarm.clone());
        let running = started.map_err(|error| self.on(next.cpu, error))?;
        self.running.push(OnCpu {
            cpu: next.cpu,
            probe_frames: next.probe_frames,
            running,
        });
        Ok(self.running.last().map(|of| &of.running))
    }

    /// Has those that send make no more frames until [`release`](Self::release), where they can.
    ///
    /// # Errors
    /// `NotHeld`.
    pub(crate) fn hold(&self) -> Result<(), TrafficError> {
        self.running.iter().try_for_each(|of| of.running.hold())
    }

    /// Has all that were held go on.
    pub(crate) fn release(&self) {
        for of in &self.running {
            of.running.release();
        }
    }

    /// An error as that of the CPU that began last.
    pub(crate) fn on_last(&self, error: TrafficError) -> TrafficError {
        match self.running.last() {
            Some(of) => self.on(of.cpu, error),
            None => error,
        }
    }

    fn on(&self, cpu: u32, error: TrafficError) -> TrafficError {
        if !self.are_several {
            return error;
        }
        TrafficError::OnCpu {
            cpu,
            source: Box::new(error),
        }
    }

    /// Frames handed to the interface by all CPUs, and none of others on the same interface.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub(crate) fn own_frames(&self) -> Result<u64, TrafficError> {
        self.running.iter().map(|of| of.running.own_frames()).sum()
    }

    /// Whether each CPU has sent every flow and every size of its share at least once, where flows are sent in turn.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub(crate) fn have_probed(&self) -> Result<bool, TrafficError> {
        for of in &self.running {
            if of.running.own_frames()? < of.probe_frames {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all still send.
    pub(crate) fn are_running(&self) -> bool {
        self.running.iter().all(|of| of.running.is_running())
    }

    /// Stops all, and tells what they have sent.
    ///
    /// # Errors
    /// Why one of them had stopped before.
    pub(crate) fn stop(mut self) -> Result<u64, TrafficError> {
        self.ask_to_end();
        let mut frames = 0;
        let mut failed = None;
        for OnCpu { cpu, running, .. } in std::mem::take(&mut self.running) {
            let (sender, outcome) = running.finish();
            match outcome.and_then(|()| sender.own_frames()) {
                Ok(of_cpu) => frames += of_cpu,
                Err(error) => failed = failed.or_else(|| Some(self.on(cpu, error))),
            }
        }
        failed.map_or(Ok(frames), Err)
    }

    fn ask_to_end(&self) {
        for of in &self.running {
            of.running.ask_to_end();
        }
    }
}

impl Drop for Senders {
    fn drop(&mut self) {
        // Each then waits for its own thread, while the others end.
        self.ask_to_end();
    }
}

impl Pace {
    /// The parts of a pace for shares of its frames, so that every flow comes as often as any other.
    ///
    /// A burst is as long as it was, and comes from one CPU: those of two may meet.
    ///
    /// # Errors
    /// `TooSlowForCpus` where a part would be nothing.
    fn shared_out(self, shares: &[Frames]) -> Result<Vec<Self>, TrafficError> {
        let Self::Paced { pps, burst_frames } = self else {
            return Ok(vec![self; shares.len()]);
        };
        let flows: Vec<u32> = shares.iter().map(|share| share.flows_in_share()).collect();
        let parts = parts(pps, &flows);
        if shares.len() > 1 && parts.contains(&0) {
            let cpus = shares.len();
            return Err(TrafficError::TooSlowForCpus { pps, cpus });
        }
        let paced = |pps| Self::Paced { pps, burst_frames };
        Ok(parts.into_iter().map(paced).collect())
    }
}

/// Parts of a number in proportion to weights: they add up to it exactly, and none is off by one or more.
fn parts(whole: u64, weights: &[u32]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let up_to = |weight: u128| {
        let part = u128::from(whole) * weight / all.max(1);
        u64::try_from(part).expect("it is at most the whole")
    };
    let mut before = 0;
    let each = weights.iter().map(|&weight| {
        let after = before + u128::from(weight);
        let part = up_to(after) - up_to(before);
        before = after;
        part
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use fwdlab_model::{AddressFamily, FrameSize, Traffic};
    use fwdlab_packet::{MacAddress, parse};
    use proptest::prelude::*;

    use super::*;
    use crate::Link;

    fn frames(sources: u32, destinations: u32, shares: &[u16]) -> Frames {
        let sizes = [64, 128, 594, 1518].into_iter().zip(shares);
        let traffic = Traffic {
            sources,
            destinations,
            frame_sizes: sizes
                .map(|(bytes, &share)| FrameSize { bytes, share })
                .collect(),
            ..Traffic::default()
        };
        frames_of(&traffic)
    }

    fn frames_of(traffic: &Traffic) -> Frames {
        let link = Link {
            source: MacAddress([2, 0, 0, 0, 1, 1]),
            destination: MacAddress([2, 0, 0, 0, 1, 2]),
        };
        Frames::unrouted(AddressFamily::Inet, traffic, link).unwrap()
    }

    fn pps(pace: Pace) -> u64 {
        match pace {
            Pace::Paced { pps, .. } => pps,
            Pace::SelfClocked => panic!("it is paced"),
        }
    }

    #[test]
    fn each_cpu_has_the_pace_of_its_flows_and_whole_bursts() {
        let shares = frames(1, 5, &[1]).shared_out(2).unwrap();
        let pace = Pace::Paced {
            pps: 1_000_001,
            burst_frames: 32,
        };
        let paced = |pps| Pace::Paced {
            pps,
            burst_frames: 32,
        };
        let shared = pace.shared_out(&shares).unwrap();
        assert_eq!(shared, [paced(600_000), paced(400_001)]);
        let all = Pace::SelfClocked.shared_out(&shares).unwrap();
        assert_eq!(all, [Pace::SelfClocked; 2]);
        let error = Pace::even(1).shared_out(&shares).unwrap_err();
        assert!(matches!(
            error,
            TrafficError::TooSlowForCpus { pps: 1, cpus: 2 }
        ));
    }

    #[test]
    fn more_cpus_than_flows_are_refused() {
        assert_eq!(frames(1, 3, &[1]).shared_out(3).unwrap().len(), 3);
        let error = frames(1, 3, &[1]).shared_out(4).unwrap_err();
        assert!(matches!(
            error,
            TrafficError::TooManyCpus { cpus: 4, flows: 3 }
        ));
        assert!(error.is_users());
    }

    #[test]
    fn where_flows_are_heavy_every_cpu_has_all_of_them_and_as_much_of_the_pace() {
        let all = frames_of(&Traffic {
            zipf: Some("1.1".parse().unwrap()),
            ..Traffic::default()
        });
        let shares = all.shared_out(2).unwrap();
        let shared = Pace::even(1_000_000).shared_out(&shares).unwrap();
        assert_eq!(shared, [Pace::even(500_000); 2]);
        let half = u64::from(fwdlab_model::SCHEDULE_FRAMES / 2);
        for number in 0..5000 {
            assert_eq!(shares[0].sent(number), all.sent(number));
            assert_eq!(shares[1].sent(number), all.sent(half + number));
        }
        assert_eq!(shares[1].sent_heads().count(), 2000);
        let in_turn = all.in_turn();
        assert_eq!(in_turn.probe_frames(), 2000);
        let probed: HashSet<_> = (0..2000).map(|number| in_turn.sent(number)).collect();
        assert_eq!(probed.len(), 2000);
    }

    proptest! {
        #[test]
        fn every_flow_is_one_cpus_and_each_cpu_has_the_mix(
            sources in 1_u32..8, destinations in 1_u32..20, cpus in 1_usize..9,
            shares in prop::collection::vec(1_u16..5, 1..=4),
        ) {
            let all = frames(sources, destinations, &shares);
            let flows = sources * destinations;
            prop_assume!(cpus <= flows as usize);
            let parts = all.shared_out(cpus).unwrap();
            let slots = u64::from(all.sequence().slots());
            let mut owner = HashMap::new();
            for (cpu, part) in parts.iter().enumerate() {
                let of_cpu = u64::from(part.flows_in_share());
                prop_assert!(of_cpu.abs_diff(u64::from(flows) / cpus as u64) <= 1);
                prop_assert_eq!(u64::from(part.probe_frames()), of_cpu.max(slots));
                // A turn of its flows has each of them once, wherever it begins.
                for turn in 0..2 {
                    for number in of_cpu * turn..of_cpu * (turn + 1) {
                        let flow = parse(&part.sent(number)).unwrap().flow;
                        let before = owner.insert(flow, (cpu, turn));
                        prop_assert_eq!(before, turn.checked_sub(1).map(|turn| (cpu, turn)));
                    }
                }
                // A turn of the sizes has each as often as that of the whole.
                let lengths = |of: &Frames| {
                    let mut lengths: Vec<_> = (0..slots).map(|n| of.sent(n).len()).collect();
                    lengths.sort_unstable();
                    lengths
                };
                prop_assert_eq!(lengths(part), lengths(&all));
                // The heads that a program is given are those of the flows in the order in which they are sent.
                prop_assert_eq!(part.sent_heads().count() as u64, of_cpu);
                let first = part.each_flow_in_each_size().next().unwrap();
                prop_assert_eq!(parse(&first).unwrap().flow, parse(&part.sent(0)).unwrap().flow);
            }
            prop_assert_eq!(owner.len(), flows as usize);
        }

        #[test]
        fn parts_add_up_and_are_in_proportion(
            whole in 0_u64..=100_000_000, weights in prop::collection::vec(1_u32..=65_536, 1..64),
        ) {
            let parts = parts(whole, &weights);
            prop_assert_eq!(parts.iter().sum::<u64>(), whole);
            let all: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
            for (part, weight) in parts.into_iter().zip(weights) {
                let exact = u128::from(whole) * u128::from(weight);
                let off = exact.abs_diff(u128::from(part) * u128::from(all));
                prop_assert!(off < u128::from(all), "{part} of {whole} for {weight} of {all}");
            }
        }

        #[test]
        fn a_pace_is_shared_out_whole_or_refused(
            pace in 1_u64..=100_000_000, flows in 1_u32..200, cpus in 1_usize..32,
        ) {
            prop_assume!(cpus <= flows as usize);
            let shares = frames(1, flows, &[1]).shared_out(cpus).unwrap();
            match Pace::even(pace).shared_out(&shares) {
                Ok(shared) => prop_assert_eq!(shared.into_iter().map(pps).sum::<u64>(), pace),
                Err(_) => prop_assert!(pace < 2 * cpus as u64),
            }
        }
    }
}
