//! Entropy from what happens, as FreeBSD's `random_harvest_queue` gathers it.

use std::fmt;
use std::sync::Mutex;

use sha2::{Digest, Sha256};

/// Events that wait to be mixed into the pool: FreeBSD's `RANDOM_RING_MAX`.
const EVENTS_MAX: usize = 1024;

/// Where entropy comes from: a bit of `kern.random.harvest.mask` each, FreeBSD's
/// `enum random_entropy_source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The bit.
    pub bit: u32,
    /// The symbol that FreeBSD prints for it.
    pub symbol: &'static str,
}

/// All sources that FreeBSD 15 has on a PC.
pub const SOURCES: &[Source] = &[
    Source {
        bit: 0,
        symbol: "CACHED",
    },
    Source {
        bit: 1,
        symbol: "ATTACH",
    },
    Source {
        bit: 2,
        symbol: "KEYBOARD",
    },
    Source {
        bit: 3,
        symbol: "MOUSE",
    },
    Source {
        bit: 4,
        symbol: "NET_TUN",
    },
    NET_ETHER,
    Source {
        bit: 6,
        symbol: "NET_NG",
    },
    INTERRUPT,
    Source {
        bit: 8,
        symbol: "SWI",
    },
    Source {
        bit: 9,
        symbol: "FS_ATIME",
    },
    Source {
        bit: 10,
        symbol: "UMA",
    },
    Source {
        bit: 11,
        symbol: "CALLOUT",
    },
    Source {
        bit: 12,
        symbol: "RANDOMDEV",
    },
    Source {
        bit: 17,
        symbol: "PURE_RDRAND",
    },
];

/// A frame that came in.
pub const NET_ETHER: Source = Source {
    bit: 5,
    symbol: "NET_ETHER",
};
/// An interrupt.
pub const INTERRUPT: Source = Source {
    bit: 7,
    symbol: "INTERRUPT",
};

/// The value of `kern.random.harvest.mask`.
///
/// All that FreeBSD prints of it is made of the one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarvestMask(pub u32);

impl HarvestMask {
    /// Whether events of a source are harvested.
    #[must_use]
    pub const fn has(self, source: Source) -> bool {
        self.0 >> source.bit & 1 == 1
    }

    /// `kern.random.harvest.mask_symbolic`: the highest bit first, what is left out in brackets.
    #[must_use]
    pub fn symbols(self) -> String {
        let symbols: Vec<String> = SOURCES
            .iter()
            .rev()
            .map(|&source| {
                if self.has(source) {
                    source.symbol.to_owned()
                } else {
                    format!("[{}]", source.symbol)
                }
            })
            .collect();
        symbols.join(",")
    }
}

impl fmt::Display for HarvestMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.symbols())
    }
}

/// The queue of events, under the one lock that all workers share.
#[derive(Debug)]
pub struct Harvester {
    queue: Mutex<Queue>,
}

#[derive(Clone, Copy, Debug, Default)]
struct HarvestEvent {
    counter: u64,
    entropy: u32,
    source: u32,
}

#[derive(Debug)]
struct Queue {
    events: Box<[HarvestEvent; EVENTS_MAX]>,
    /// Events queued since the pool was last fed; those beyond the queue's length were mixed into
    /// older ones.
    queued: usize,
    pool: [u8; 32],
}

impl Default for Harvester {
    fn default() -> Self {
        Self {
            queue: Mutex::new(Queue {
                events: Box::new([HarvestEvent::default(); EVENTS_MAX]),
                queued: 0,
                pool: [0; 32],
            }),
        }
    }
}

impl Harvester {
    /// Mixes what is known of an event, and when it happened, into the queue.
    ///
    /// # Source
    /// FreeBSD, `sys/dev/random/random_harvestq.c`: a lock, a cycle counter, Jenkins' hash of what is
    /// longer than an event holds.
    #[inline(never)]
    pub fn harvest(&self, source: Source, entropy: &[u8]) {
        let mut queue = self.lock();
        let event = HarvestEvent {
            counter: fwdlab_sys::cycle_counter(),
            entropy: jenkins_hash(entropy, source.bit),
            source: source.bit,
        };
        let index = queue.queued % EVENTS_MAX;
        if queue.queued < EVENTS_MAX {
            queue.events[index] = event;
        } else {
            let older = &mut queue.events[index];
            older.counter ^= event.counter.rotate_left(32);
            older.entropy ^= event.entropy;
        }
        queue.queued += 1;
    }

    /// Feeds the pool with the events that wait, and returns how many there were: the work of FreeBSD's
    /// `rand_harvestq` thread, which comes by ten times a second.
    pub fn feed_pool(&self) -> usize {
        let (events, queued, pool) = {
            let mut queue = self.lock();
            (
                queue.events.clone(),
                std::mem::take(&mut queue.queued),
                queue.pool,
            )
        };
        let mut hash = Sha256::new();
        hash.update(pool);
        for event in &events[..queued.min(EVENTS_MAX)] {
            hash.update(event.counter.to_le_bytes());
            hash.update(event.entropy.to_le_bytes());
            hash.update(event.source.to_le_bytes());
        }
        self.lock().pool = hash.finalize().into();
        queued
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        // Entropy is never wrong, only more or less.
        self.queue
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Jenkins' hash of bytes.
///
/// # Source
/// Bob Jenkins, lookup3.c, `hashlittle`, May 2006; FreeBSD's `jenkins_hash`.
fn jenkins_hash(bytes: &[u8], initial: u32) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the hash takes the length modulo 2^32"
    )]
    let length = bytes.len() as u32;
    let start = 0xdead_beef_u32.wrapping_add(length).wrapping_add(initial);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = bytes;
    while rest.len() > 12 {
        a = a.wrapping_add(word(rest, 0));
        b = b.wrapping_add(word(rest, 4));
        c = c.wrapping_add(word(rest, 8));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    a = a.wrapping_add(word(&last, 0));
    b = b.wrapping_add(word(&last, 4));
    c = c.wrapping_add(word(&last, 8));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[inline]
fn word(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jenkins_hash_is_that_of_lookup3() {
        // The values that lookup3.c's driver5 prints.
        assert_eq!(jenkins_hash(b"", 0), 0xdead_beef);
        assert_eq!(jenkins_hash(b"", 0xdead_beef), 0xbd5b_7dde);
        assert_eq!(
            jenkins_hash(b"Four score and seven years ago", 0),
            0x1777_0551
        );
        assert_eq!(
            jenkins_hash(b"Four score and seven years ago", 1),
            0xcd62_8161
        );
    }

    #[test]
    fn a_mask_is_printed_from_its_number() {
        let default = HarvestMask(135_647);
        assert_eq!(
            default.symbols(),
            "PURE_RDRAND,RANDOMDEV,[CALLOUT],[UMA],[FS_ATIME],SWI,INTERRUPT,NET_NG,[NET_ETHER],NET_TUN,\
             MOUSE,KEYBOARD,ATTACH,CACHED"
        );
        let without_interrupt = HarvestMask(135_519);
        assert!(!without_interrupt.has(INTERRUPT) && default.has(INTERRUPT));
        assert!(HarvestMask(351).has(SOURCES[8]) && !HarvestMask(351).has(NET_ETHER));
    }

    #[test]
    fn every_event_reaches_the_pool() {
        let harvester = Harvester::default();
        assert_eq!(harvester.feed_pool(), 0);
        for _ in 0..EVENTS_MAX + 7 {
            harvester.harvest(NET_ETHER, b"a frame");
        }
        let before = harvester.lock().pool;
        assert_eq!(harvester.feed_pool(), EVENTS_MAX + 7);
        assert_ne!(harvester.lock().pool, before);
        assert_eq!(harvester.feed_pool(), 0);
    }

    #[test]
    fn an_event_is_queued_whole_and_one_too_many_is_mixed_into_an_older_one() {
        let harvester = Harvester::default();
        let hash = |number: usize, source: Source| jenkins_hash(&number.to_le_bytes(), source.bit);
        for number in 0..EVENTS_MAX {
            harvester.harvest(NET_ETHER, &number.to_le_bytes());
        }
        let before = harvester.lock().events.clone();
        for (number, event) in before.iter().enumerate() {
            assert_eq!(event.entropy, hash(number, NET_ETHER));
            assert_eq!(event.source, NET_ETHER.bit);
            assert_ne!(event.counter, 0);
        }
        let late = EVENTS_MAX + 1;
        harvester.harvest(INTERRUPT, &EVENTS_MAX.to_le_bytes());
        harvester.harvest(INTERRUPT, &late.to_le_bytes());
        let after = harvester.lock().events.clone();
        let mixed = hash(1, NET_ETHER) ^ hash(late, INTERRUPT);
        assert_eq!(after[1].entropy, mixed);
        assert_ne!(after[1].counter, before[1].counter);
        assert_eq!(after[2].entropy, before[2].entropy);
    }

    #[test]
    fn what_the_pool_holds_depends_on_every_event() {
        // The same but for one event that is not harvested in the second.
        let [whole, short] = [true, false].map(|is_whole| {
            let harvester = Harvester::default();
            harvester.harvest(NET_ETHER, b"a frame");
            harvester.harvest(INTERRUPT, b"an interrupt");
            {
                // Times are the same.
                let mut queue = harvester.lock();
                let events = &mut queue.events[..2];
                events[0].counter = 1;
                events[1].counter = 2;
                queue.queued = if is_whole { 2 } else { 1 };
            }
            harvester.feed_pool();
            harvester.lock().pool
        });
        assert_ne!(whole, short);
    }
}
