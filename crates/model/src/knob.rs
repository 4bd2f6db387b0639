//! The knobs of the reference router, under the names that FreeBSD has for them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words::Level;

/// Something about the reference router that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// Descriptors of a receive ring.
    OverrideNrxds,
    /// Descriptors of a transmit ring.
    OverrideNtxds,
    /// Whether whoever puts packets into a transmit ring leaves draining it to the queue's own task.
    TxAbdicate,
    /// Whether packets go to the descriptors directly, under a lock, instead of through a ring of many
    /// producers.
    SimpleTx,
    /// How many completed descriptors must be outstanding before sent buffers are taken back.
    TxReclaimThresh,
    /// Whether headers and lookups of packets ahead are prefetched.
    Prefetch,
    /// Whether a next hop carries its ready Ethernet header, instead of a neighbour lookup a packet.
    L2Prepend,
    /// Which events entropy is harvested from.
    HarvestMask,
    /// Whether senders of IPv4 packets that leave where they came in are sent a redirect to the better next hop.
    Ipv4Redirect,
    /// The same for IPv6.
    Ipv6Redirect,
    /// Whether the CPUs that share a core with another are used at all.
    HyperthreadingAllowed,
    /// Whether they are used for interrupts: for receiving.
    HyperthreadingIntrAllowed,
    /// Whether transmit work is put on the other CPU of the receiving CPU's core.
    UseLogicalCores,
}

/// What a knob can be set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobLevels {
    /// 0 or 1.
    Switch,
    /// A power of two.
    RingSize {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// Any whole number in a range.
    Count {
        /// The largest; 0 is the smallest.
        max: i64,
    },
}

impl Knob {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 13] = [
        Self::OverrideNrxds,
        Self::OverrideNtxds,
        Self::TxAbdicate,
        Self::SimpleTx,
        Self::TxReclaimThresh,
        Self::Prefetch,
        Self::L2Prepend,
        Self::HarvestMask,
        Self::Ipv4Redirect,
        Self::Ipv6Redirect,
        Self::HyperthreadingAllowed,
        Self::HyperthreadingIntrAllowed,
        Self::UseLogicalCores,
    ];

    /// Its name, what it can be set to, and the level where nothing else is said.
    const fn described(self) -> (&'static str, KnobLevels, i64) {
        use KnobLevels::Switch;

        const RING: KnobLevels = KnobLevels::RingSize {
            min: 64,
            max: 16_384,
        };
        const DESCRIPTORS: KnobLevels = KnobLevels::Count { max: 16_384 };
        // 32 bits: one for each source of entropy.
        const SOURCES: KnobLevels = KnobLevels::Count { max: 0xffff_ffff };
        match self {
            Self::OverrideNrxds => ("iflib.override_nrxds", RING, 1024),
            Self::OverrideNtxds => ("iflib.override_ntxds", RING, 1024),
            Self::TxAbdicate => ("iflib.tx_abdicate", Switch, 0),
            Self::SimpleTx => ("iflib.simple_tx", Switch, 0),
            Self::TxReclaimThresh => ("iflib.tx_reclaim_thresh", DESCRIPTORS, 0),
            Self::Prefetch => ("iflib.prefetch", Switch, 1),
            Self::L2Prepend => ("l2_prepend", Switch, 1),
            // CACHED, ATTACH, KEYBOARD, MOUSE, NET_TUN, NET_NG, INTERRUPT, SWI, RANDOMDEV, PURE_RDRAND:
            // what FreeBSD 15 has.
            Self::HarvestMask => ("kern.random.harvest.mask", SOURCES, 135_647),
            Self::Ipv4Redirect => ("net.inet.ip.redirect", Switch, 1),
            Self::Ipv6Redirect => ("net.inet6.ip6.redirect", Switch, 1),
            Self::HyperthreadingAllowed => ("machdep.hyperthreading_allowed", Switch, 1),
            Self::HyperthreadingIntrAllowed => ("machdep.hyperthreading_intr_allowed", Switch, 0),
            Self::UseLogicalCores => ("iflib.use_logical_cores", Switch, 0),
        }
    }

    /// FreeBSD's name, without the part that names a device.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.described().0
    }

    /// The knob of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|knob| knob.name() == name)
    }

    /// The level where nothing else is said.
    #[must_use]
    pub const fn default_level(self) -> i64 {
        self.described().2
    }

    /// What it can be set to.
    #[must_use]
    pub const fn levels(self) -> KnobLevels {
        self.described().1
    }

    /// The number that a level of an experiment stands for; none where the knob has no such level.
    ///
    /// A truth value is 1 or 0.
    #[must_use]
    pub fn number(self, level: &Level) -> Option<i64> {
        let number = match level {
            Level::Boolean(value) => i64::from(*value),
            Level::Integer(number) => *number,
            Level::Text(_) => return None,
        };
        let is_level = match self.levels() {
            KnobLevels::Switch => matches!(number, 0 | 1),
            KnobLevels::RingSize { min, max } => {
                (min..=max).contains(&number) && number.count_ones() == 1
            }
            KnobLevels::Count { max } => (0..=max).contains(&number),
        };
        is_level.then_some(number)
    }
}

impl Serialize for Knob {
    /// By its name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Knob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            serde::de::Error::custom(format!("the reference router has no knob {name:?}"))
        })
    }
}

impl fmt::Display for KnobLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("0 or 1"),
            Self::RingSize { min, max } => write!(f, "a power of two from {min} to {max}"),
            Self::Count { max } => write!(f, "a whole number from 0 to {max}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_is_found_by_its_name_and_has_its_default() {
        for knob in Knob::ALL {
            assert_eq!(Knob::named(knob.name()), Some(knob));
            let default = knob.default_level();
            assert_eq!(knob.number(&Level::Integer(default)), Some(default));
        }
        assert_eq!(Knob::named("iflib.simple"), None);
    }

    #[test]
    fn the_guide_has_every_knob_with_its_levels_and_its_default() {
        let guide = include_str!("../../../docs/experiment-file.md");
        for knob in Knob::ALL {
            let (name, levels) = (knob.name(), knob.levels());
            let row = format!("| `{name}` | {levels} | {} |", knob.default_level());
            assert!(guide.contains(&row), "{row}");
        }
    }

    #[test]
    fn records_know_a_knob_by_its_name() {
        for knob in Knob::ALL {
            let json = serde_json::to_string(&knob).unwrap();
            assert_eq!(json, format!("{:?}", knob.name()));
            assert_eq!(serde_json::from_str::<Knob>(&json).unwrap(), knob);
        }
        let error = serde_json::from_str::<Knob>("\"iflib.simple\"").unwrap_err();
        assert!(error.to_string().contains("no knob \"iflib.simple\""));
    }

    #[test]
    fn levels_that_a_knob_cannot_have_are_refused() {
        let number = |knob: Knob, number| knob.number(&Level::Integer(number));
        assert_eq!(Knob::SimpleTx.number(&Level::Boolean(true)), Some(1));
        assert_eq!(number(Knob::SimpleTx, 2), None);
        assert_eq!(number(Knob::OverrideNrxds, 1000), None);
        assert_eq!(number(Knob::OverrideNrxds, 32), None);
        assert_eq!(number(Knob::TxReclaimThresh, 300), Some(300));
        assert_eq!(number(Knob::HarvestMask, -1), None);
        assert_eq!(Knob::Prefetch.number(&Level::Text("on".into())), None);
    }
}
