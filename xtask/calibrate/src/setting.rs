//! The kinds of noise that the methods are calibrated on.

/// What the default method has to hold in a setting. Shape: each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// Nothing: the setting shows where the method ends.
    Nothing,
    /// That what does not differ is rarely called different.
    Direction,
    /// That intervals hold the true effect.
    Coverage,
    /// That effects are rarely called larger or smaller than the threshold when they are not.
    Size,
}

/// The noise of a session, as far as one setting has it.
///
/// Units: natural logarithms of rates; 0.01 is about 1 %.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// As one asks for it.
    pub(crate) name: &'static str,
    /// What is special about it, for the page.
    pub(crate) words: &'static str,
    /// Scale of what one set-up is to one variant: t with 3 degrees of freedom.
    pub(crate) run_scale: f64,
    /// Standard deviation of what a set-up is to all variants.
    pub(crate) set_up_deviation: f64,
    /// Standard deviation between sessions.
    pub(crate) session_deviation: f64,
    /// The share of runs that are 5 to 60 % slower.
    pub(crate) outlier_share: f64,
    /// The correlation of a slice with the one before it.
    pub(crate) autocorrelation: f64,
    /// What the machine gets faster by, evenly from the first slice of a session to the last, in
    /// standard deviations of a run.
    pub(crate) drift_deviations: f64,
    /// What a slice right after a variant, the baseline excepted, loses.
    pub(crate) carry_over: f64,
    /// Standard deviation of a run's offered load; the rate falls by a fifth of what it is more.
    pub(crate) load_deviation: f64,
    /// The line rate, as what it is above the baseline's rate.
    pub(crate) ceiling: Option<f64>,
    pub(crate) asked: Asked,
}

/// Standard deviation of the noise of single slices.
pub(crate) const SLICE_DEVIATION: f64 = 0.003;
/// What the rate changes by for each part that the offered load does.
const LOAD_COUPLING: f64 = -0.2;
/// The part of a variant's effect by which less load is offered to it: pause frames hold the sender back.
const PAUSED: f64 = 0.5;

const TYPICAL: Setting = Setting {
    name: "typical",
    words: "run noise 0.8 %",
    run_scale: 0.008,
    set_up_deviation: 0.0,
    session_deviation: 0.0,
    outlier_share: 0.0,
    autocorrelation: 0.2,
    drift_deviations: 0.0,
    carry_over: 0.0,
    load_deviation: 0.0,
    ceiling: None,
    asked: Asked::Size,
};

const EVERYTHING: Setting = Setting {
    name: "everything",
    words: "set-ups, sessions, 5 % outliers, autocorrelation 0.6, drift of 3 SD, carry-over, load coupling at once",
    set_up_deviation: 0.01,
    session_deviation: 0.01,
    outlier_share: 0.05,
    autocorrelation: 0.6,
    drift_deviations: 3.0,
    carry_over: 0.005,
    load_deviation: 0.022,
    asked: Asked::Coverage,
    ..TYPICAL
};

/// Every setting, in the order of the page.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        name: "quiet",
        words: "run noise 0.3 %",
        run_scale: 0.003,
        ..TYPICAL
    },
    TYPICAL,
    Setting {
        name: "loud",
        words: "run noise 1.5 %",
        run_scale: 0.015,
        ..TYPICAL
    },
    Setting {
        name: "set-ups",
        words: "what a set-up does to all variants, SD 1 %",
        set_up_deviation: 0.01,
        ..TYPICAL
    },
    Setting {
        name: "sessions",
        words: "sessions differ, SD 1 %: two for the blocks; one an arm",
        session_deviation: 0.01,
        ..TYPICAL
    },
    Setting {
        name: "outliers-2",
        words: "2 % of the runs are 5 to 60 % slower",
        outlier_share: 0.02,
        ..TYPICAL
    },
    Setting {
        name: "outliers-5",
        words: "5 % of the runs are 5 to 60 % slower",
        outlier_share: 0.05,
        ..TYPICAL
    },
    Setting {
        name: "autocorrelation",
        words: "correlation from slice to slice 0.6 in place of 0.2",
        autocorrelation: 0.6,
        ..TYPICAL
    },
    Setting {
        name: "drift-1",
        words: "drift of 1 SD of a run over the session",
        drift_deviations: 1.0,
        ..TYPICAL
    },
    Setting {
        name: "drift-2",
        words: "drift of 2 SD",
        drift_deviations: 2.0,
        ..TYPICAL
    },
    Setting {
        name: "drift-3",
        words: "drift of 3 SD",
        drift_deviations: 3.0,
        ..TYPICAL
    },
    Setting {
        name: "carry-over",
        words: "a slice after a variant loses 0.5 %",
        carry_over: 0.005,
        // What is carried over is part of what is measured, so that a size is that of another effect.
        asked: Asked::Coverage,
        ..TYPICAL
    },
    Setting {
        name: "carry-over-quiet",
        words: "the same with run noise 0.3 %",
        run_scale: 0.003,
        carry_over: 0.005,
        asked: Asked::Coverage,
        ..TYPICAL
    },
    Setting {
        name: "carry-over-strong",
        words: "a slice after a variant loses 1 %, with run noise 0.3 %",
        run_scale: 0.003,
        carry_over: 0.01,
        asked: Asked::Nothing,
        ..TYPICAL
    },
    Setting {
        name: "load-coupling",
        words: "offered load moves, SD 2.2 %, and the rate by -0.2 of it",
        load_deviation: 0.022,
        ..TYPICAL
    },
    EVERYTHING,
    Setting {
        name: "ceiling",
        words: "the line rate is the baseline's median rate",
        ceiling: Some(0.0),
        asked: Asked::Direction,
        ..TYPICAL
    },
    Setting {
        name: "ceiling-below",
        words: "the line rate is 2 % below the baseline's median rate",
        ceiling: Some(-0.02),
        asked: Asked::Direction,
        ..TYPICAL
    },
    Setting {
        name: "everything-ceiling",
        words: "everything, and the line rate is the baseline's median rate",
        ceiling: Some(0.0),
        asked: Asked::Direction,
        ..EVERYTHING
    },
];

impl Setting {
    /// Standard deviation of a run's noise.
    pub(crate) fn run_deviation(&self) -> f64 {
        self.run_scale * 3.0_f64.sqrt()
    }

    /// What is in the way of a rate: the offered load of this moment, then the line rate.
    ///
    /// `level` is the variant's effect with all noise, `effect` without any, `load` the noise of the
    /// offered load.
    pub(crate) fn forwarded(&self, level: f64, effect: f64, load: f64) -> f64 {
        let paused = if self.load_deviation > 0.0 {
            PAUSED * effect
        } else {
            0.0
        };
        let coupled = level + LOAD_COUPLING * (load + paused);
        self.ceiling.map_or(coupled, |ceiling| coupled.min(ceiling))
    }

    /// The true effect of a variant: that of the rates with all noise taken away, but after the
    /// coupling and the ceiling.
    pub(crate) fn true_effect(&self, effect: f64) -> f64 {
        self.forwarded(effect, effect, 0.0) - self.forwarded(0.0, 0.0, 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static Setting {
        SETTINGS
            .iter()
            .find(|setting| setting.name == name)
            .unwrap()
    }

    #[test]
    fn names_are_distinct() {
        for setting in SETTINGS {
            let same = SETTINGS.iter().filter(|other| other.name == setting.name);
            assert_eq!(same.count(), 1, "{}", setting.name);
        }
    }

    #[test]
    fn the_true_effect_is_that_after_coupling_and_ceiling() {
        let close = |name: &str, effect: f64, expected: f64| {
            let found = named(name).true_effect(effect);
            assert!((found - expected).abs() < 1e-15, "{name}: {found}");
        };
        close("drift-3", -0.05, -0.05);
        close("load-coupling", -0.05, -0.045);
        close("ceiling", -0.05, -0.05);
        close("ceiling", 0.05, 0.0);
        close("ceiling-below", -0.05, -0.03);
        close("ceiling-below", -0.01, 0.0);
    }
}
