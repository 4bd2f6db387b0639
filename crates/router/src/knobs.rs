//! What the router is set to.

use fwdlab_model::Knob;

/// The level of every knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    levels: [u32; Knob::ALL.len()],
}

impl Default for Knobs {
    /// FreeBSD's defaults.
    fn default() -> Self {
        let levels = Knob::ALL.map(|knob| {
            u32::try_from(knob.default_level()).expect("no knob has a level beyond 32 bits")
        });
        Self { levels }
    }
}

impl Knobs {
    /// The level of a knob.
    #[must_use]
    pub fn level(&self, knob: Knob) -> u32 {
        self.levels[knob as usize]
    }

    /// Whether a knob is at anything but 0.
    #[must_use]
    pub fn is_on(&self, knob: Knob) -> bool {
        self.level(knob) != 0
    }

    /// The same with one knob at another level.
    ///
    /// Shape: the level is one that [`Knob::number`] gives.
    #[must_use]
    pub fn with(mut self, knob: Knob, level: u32) -> Self {
        self.levels[knob as usize] = level;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_knob_is_set_and_the_others_stay() {
        let knobs = Knobs::default().with(Knob::SimpleTx, 1);
        for knob in Knob::ALL {
            let expected = if knob == Knob::SimpleTx {
                1
            } else {
                knob.default_level()
            };
            assert_eq!(i64::from(knobs.level(knob)), expected, "{}", knob.name());
        }
        assert!(!knobs.is_on(Knob::TxAbdicate));
    }
}
