//! A device that does nothing to frames: what a tester can send and count at most.

use fwdlab_sys::{DriverRing, descriptor_ring};

use crate::buffer::{Buffer, Descriptor};
use crate::router::PortDevice;

/// Frames that are taken at once.
const BATCH: usize = 64;

/// Two ports and nothing between them.
#[derive(Debug)]
pub struct Wire {
    /// By pairs: what comes in through one leaves through the other, as far as it leaves.
    lanes: Vec<Lane>,
}

#[derive(Debug)]
struct Lane {
    receive: DriverRing<Descriptor>,
    transmit: DriverRing<Descriptor>,
}

impl Wire {
    /// A wire with so many queues at each of its two ports, of so many descriptors each.
    ///
    /// Shape: a power of two.
    #[must_use]
    pub fn new(queues: usize, descriptors: usize) -> (Self, [PortDevice; 2]) {
        let device = || PortDevice {
            receive: Vec::new(),
            transmit: Vec::new(),
        };
        let mut ports = [device(), device()];
        let mut lanes = Vec::new();
        for (from, to) in [(0, 1), (1, 0)] {
            for _ in 0..queues {
                let slot = |_| Descriptor {
                    buffer: Some(Buffer::new()),
                    ..Descriptor::default()
                };
                let (mut receive, nic) = descriptor_ring((0..descriptors).map(slot).collect());
                post(&mut receive, descriptors - 1);
                ports[from].receive.push(nic);
                let (transmit, nic) = descriptor_ring((0..descriptors).map(slot).collect());
                ports[to].transmit.push(nic);
                lanes.push(Lane { receive, transmit });
            }
        }
        (Self { lanes }, ports)
    }

    /// Drops what came in; returns how many frames.
    pub fn drop_all(&mut self) -> usize {
        self.lanes.iter_mut().map(Lane::drop_all).sum()
    }

    /// Passes frames from port to port as they are, as far as the other one has room; returns how many.
    pub fn pass(&mut self) -> usize {
        self.lanes.iter_mut().map(Lane::pass).sum()
    }
}

impl Lane {
    fn drop_all(&mut self) -> usize {
        let count = self.receive.completed().min(BATCH);
        give_back(&mut self.receive, count);
        count
    }

    fn pass(&mut self) -> usize {
        let sent = self.transmit.completed();
        self.transmit.reclaim(sent);
        let room = self.transmit.size() - self.transmit.outstanding();
        let count = self.receive.completed().min(room).min(BATCH);
        let mut left = count;
        while left > 0 {
            let full = self.receive.done(left);
            let free = self.transmit.free(full.len());
            let run = free.len();
            for (full, free) in full.iter_mut().zip(free) {
                std::mem::swap(full, free);
            }
            self.transmit.post(run);
            give_back(&mut self.receive, run);
            left -= run;
        }
        if count > 0 {
            self.transmit.doorbell();
        }
        count
    }
}

/// Takes so many frames out of a receive ring, and posts their buffers again.
fn give_back(receive: &mut DriverRing<Descriptor>, count: usize) {
    receive.reclaim(count);
    post(receive, count);
}

fn post(receive: &mut DriverRing<Descriptor>, count: usize) {
    let mut left = count;
    while left > 0 {
        let run = receive.free(left).len();
        receive.post(run);
        left -= run;
    }
    receive.doorbell();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills one descriptor of a port with a frame of that length.
    fn receive(port: &mut PortDevice, length: u16) {
        let ring = &mut port.receive[0];
        assert!(ring.available() > 0);
        ring.run(1)[0].length = length;
        ring.complete(1);
        ring.write_back();
    }

    #[test]
    fn what_comes_in_through_one_port_leaves_through_the_other() {
        let (mut wire, [mut here, mut there]) = Wire::new(1, 64);
        for round in 0..200 {
            receive(&mut here, 60 + round);
            assert_eq!(wire.pass(), 1);
            let ring = &mut there.transmit[0];
            assert_eq!(ring.available(), 1);
            assert_eq!(ring.run(1)[0].length, 60 + round);
            ring.complete(1);
            ring.write_back();
        }
        assert_eq!(here.transmit[0].available(), 0);
        assert_eq!(wire.pass(), 0);
    }

    #[test]
    fn a_full_port_holds_frames_back_and_loses_none() {
        let (mut wire, [mut here, mut there]) = Wire::new(1, 64);
        for _ in 0..2 {
            for _ in 0..60 {
                receive(&mut here, 60);
            }
            wire.pass();
        }
        assert_eq!(there.transmit[0].available(), 64);
        assert_eq!(wire.pass(), 0);
        let run = there.transmit[0].run(64).len();
        there.transmit[0].complete(run);
        there.transmit[0].write_back();
        assert_eq!(wire.pass(), 56);
    }

    #[test]
    fn what_is_dropped_makes_room() {
        let (mut wire, [mut here, _]) = Wire::new(1, 64);
        for _ in 0..500 {
            receive(&mut here, 60);
            assert_eq!(wire.drop_all(), 1);
        }
    }
}
