use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::mp_ring::{Drainer, Finished, MultiProducerRing};
use crate::{ANY, Seen, explore};

/// Just before the numbers of slots wrap.
const START: u16 = u16::MAX;

/// A ring and what lies behind it, which only a drainer may touch: loom fails where two do.
struct Queue {
    ring: MultiProducerRing<Box<u32>>,
    sent: UnsafeCell<Vec<u32>>,
    /// How many items there is room for in all.
    room: usize,
}

impl Queue {
    fn new(capacity: usize, room: usize) -> Arc<Self> {
        Arc::new(Self {
            ring: MultiProducerRing::starting_at(capacity, START),
            sent: UnsafeCell::new(Vec::new()),
            room,
        })
    }

    /// Drains until it may stop, one item at a time.
    fn drain(&self, drainer: Option<Drainer<'_, Box<u32>>>, outcomes: &Outcomes) {
        let mut drainer = drainer;
        while let Some(mut draining) = drainer.take() {
            self.send(&mut draining, usize::MAX);
            match draining.finish() {
                Finished::Idle => outcomes.idle.once_more(),
                Finished::Stalled => outcomes.stalled.once_more(),
                Finished::More(draining) => {
                    outcomes.more.once_more();
                    drainer = Some(draining);
                }
            }
        }
    }

    /// Sends what there is room for, and at most `max`.
    fn send(&self, draining: &mut Drainer<'_, Box<u32>>, max: usize) {
        self.sent.with_mut(|sent| {
            // SAFETY: the caller is the drainer, of which there is one; loom checks it.
            let sent = unsafe { &mut *sent };
            for _ in 0..max.min(self.room - sent.len()) {
                if draining.take(1, |item| sent.push(*item)) == 0 {
                    break;
                }
            }
        });
    }

    /// Tries twice to enqueue a producer's items, and tells how many went in. Without an end, loom
    /// would have none either.
    fn enqueue(&self, producer: u32, count: u32, abdicate: bool, outcomes: &Outcomes) -> Share {
        let mut items: Vec<_> = (0..count)
            .map(|number| Box::new(10 * producer + number))
            .collect();
        for _ in 0..2 {
            let enqueued = self.ring.enqueue(&mut items, abdicate);
            self.drain(enqueued.drainer, outcomes);
            if items.is_empty() {
                break;
            }
            outcomes.refused.once_more();
        }
        Share {
            producer,
            accepted: count - u32::try_from(items.len()).unwrap(),
        }
    }

    /// What was sent, once all threads have ended.
    fn sent(&self) -> Vec<u32> {
        // SAFETY: nobody else is there; loom checks it.
        self.sent.with(|sent| unsafe { (*sent).clone() })
    }
}

struct Outcomes {
    idle: Seen,
    stalled: Seen,
    more: Seen,
    refused: Seen,
}

impl Outcomes {
    const fn none() -> Self {
        Self {
            idle: Seen::never(),
            stalled: Seen::never(),
            more: Seen::never(),
            refused: Seen::never(),
        }
    }
}

/// What a producer got into the ring. Its items are numbered, and its own number counts tens.
struct Share {
    producer: u32,
    accepted: u32,
}

/// Each item once, and each producer's in its order.
fn assert_sent(sent: &[u32], shares: &[Share]) {
    for &Share { producer, accepted } in shares {
        let of_producer = sent.iter().copied().filter(|item| item / 10 == producer);
        let expected = (0..accepted).map(|number| 10 * producer + number);
        assert!(of_producer.eq(expected), "producer {producer}: {sent:?}");
    }
    let all: u32 = shares.iter().map(|share| share.accepted).sum();
    assert_eq!(sent.len(), all as usize, "{sent:?}");
}

/// All was sent, nothing waits, and nobody drains: the next producer is made the drainer.
fn assert_sent_and_idle(queue: &Queue, shares: &[Share]) {
    assert_sent(&queue.sent(), shares);
    assert!(queue.ring.is_empty());
    assert!(queue.ring.try_drain().is_none());
    let mut one_more = vec![Box::new(0)];
    assert!(queue.ring.enqueue(&mut one_more, false).drainer.is_some());
}

/// A producer in a thread of its own.
fn spawn(
    queue: &Arc<Queue>,
    (producer, count): (u32, u32),
    abdicate: bool,
    outcomes: &'static Outcomes,
) -> thread::JoinHandle<Share> {
    let queue = Arc::clone(queue);
    thread::spawn(move || queue.enqueue(producer, count, abdicate, outcomes))
}

#[test]
fn two_producers_drain_in_turns() {
    static OUTCOMES: Outcomes = Outcomes::none();
    explore([Some(3), Some(5)], || {
        // Batches of two and three through two slots: full, and round the ring.
        let queue = Queue::new(2, usize::MAX);
        let other = spawn(&queue, (1, 2), false, &OUTCOMES);
        let share = queue.enqueue(2, 3, false, &OUTCOMES);
        assert_sent_and_idle(&queue, &[share, other.join().unwrap()]);
    });
    assert!(OUTCOMES.idle.at_all());
    assert!(OUTCOMES.more.at_all());
    assert!(OUTCOMES.refused.at_all());
    assert!(!OUTCOMES.stalled.at_all(), "there was always room");
}

#[test]
fn three_producers_publish_in_order() {
    static OUTCOMES: Outcomes = Outcomes::none();
    explore([Some(2), Some(3)], || {
        let queue = Queue::new(2, usize::MAX);
        let others = [1, 2].map(|producer| spawn(&queue, (producer, 1), false, &OUTCOMES));
        let share = queue.enqueue(3, 1, false, &OUTCOMES);
        let [one, two] = others.map(|other| other.join().unwrap());
        assert_sent_and_idle(&queue, &[one, two, share]);
    });
    assert!(OUTCOMES.more.at_all() && OUTCOMES.refused.at_all());
}

#[test]
fn a_task_drains_for_producers_that_abdicate() {
    static OUTCOMES: Outcomes = Outcomes::none();
    explore([Some(3), Some(4)], || {
        let queue = Queue::new(2, usize::MAX);
        let producers = [1, 2].map(|producer| spawn(&queue, (producer, 2), true, &OUTCOMES));
        // The task, woken by some of what is enqueued.
        queue.drain(queue.ring.try_drain(), &OUTCOMES);
        let shares = producers.map(|producer| producer.join().unwrap());
        // And by the last of it.
        queue.drain(queue.ring.try_drain(), &OUTCOMES);
        assert_sent_and_idle(&queue, &shares);
    });
    assert!(OUTCOMES.idle.at_all());
    assert!(OUTCOMES.more.at_all());
    assert!(OUTCOMES.refused.at_all());
}

#[test]
fn a_producer_and_a_task_hand_over_to_each_other() {
    static OUTCOMES: Outcomes = Outcomes::none();
    explore([Some(3), Some(4)], || {
        let queue = Queue::new(2, usize::MAX);
        let abdicating = spawn(&queue, (1, 2), true, &OUTCOMES);
        let draining = spawn(&queue, (2, 1), false, &OUTCOMES);
        queue.drain(queue.ring.try_drain(), &OUTCOMES);
        let shares = [abdicating, draining].map(|producer| producer.join().unwrap());
        queue.drain(queue.ring.try_drain(), &OUTCOMES);
        assert_sent_and_idle(&queue, &shares);
    });
    assert!(OUTCOMES.idle.at_all() && OUTCOMES.more.at_all());
}

#[test]
fn what_a_stalled_drainer_left_is_drained_by_the_next() {
    static OUTCOMES: Outcomes = Outcomes::none();
    explore([ANY, ANY], || {
        let mut queue = Queue::new(4, 1);
        let other = spawn(&queue, (1, 1), false, &OUTCOMES);
        let shares = [queue.enqueue(2, 2, false, &OUTCOMES), other.join().unwrap()];
        assert_eq!(queue.sent().len(), 1);
        assert_eq!(queue.ring.len(), 2);
        // Room again: whoever looks next has to be let in.
        Arc::get_mut(&mut queue).unwrap().room = usize::MAX;
        let drainer = queue.ring.try_drain();
        assert!(drainer.is_some());
        queue.drain(drainer, &OUTCOMES);
        assert_sent_and_idle(&queue, &shares);
    });
    assert!(OUTCOMES.idle.at_all() && OUTCOMES.more.at_all() && OUTCOMES.stalled.at_all());
}

#[test]
fn a_dropped_drainer_leaves_the_rest_to_others() {
    static OUTCOMES: Outcomes = Outcomes::none();
    explore([ANY, ANY], || {
        let queue = Queue::new(2, usize::MAX);
        let other = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let mut batch = vec![Box::new(10), Box::new(11)];
                let enqueued = queue.ring.enqueue(&mut batch, false);
                if let Some(mut draining) = enqueued.drainer {
                    queue.send(&mut draining, 1);
                }
                Share {
                    producer: 1,
                    accepted: u32::try_from(enqueued.accepted).unwrap(),
                }
            }
        });
        let share = queue.enqueue(2, 2, false, &OUTCOMES);
        let shares = [share, other.join().unwrap()];
        queue.drain(queue.ring.try_drain(), &OUTCOMES);
        assert_sent_and_idle(&queue, &shares);
    });
    assert!(OUTCOMES.more.at_all() && OUTCOMES.refused.at_all());
}

#[test]
fn a_ring_that_goes_drops_what_producers_left_in_it() {
    explore([ANY, ANY], || {
        let item = std::sync::Arc::new(());
        let ring = Arc::new(MultiProducerRing::starting_at(2, START));
        let other = thread::spawn({
            let ring = Arc::clone(&ring);
            let mut batch = vec![std::sync::Arc::clone(&item)];
            move || drop(ring.enqueue(&mut batch, true))
        });
        let mut batch = vec![std::sync::Arc::clone(&item)];
        if let Some(mut draining) = ring.enqueue(&mut batch, false).drainer {
            draining.take(1, drop);
            // It never gives its role back; what it took must not be dropped again.
            std::mem::forget(draining);
        }
        other.join().unwrap();
        drop((ring, batch));
        assert_eq!(std::sync::Arc::strong_count(&item), 1);
    });
}
