//! One session of measurements, slice by slice, as fwdlab measures and as ministat's users do.

use fwdlab_plan::orders::rounds;
use fwdlab_stats::{Generator, Slice};

use crate::noise::Noise;
use crate::setting::{SLICE_DEVIATION, Setting};

/// The default design: blocks of fresh set-ups.
pub(crate) const BLOCKS: usize = 8;
/// Rounds in a block.
pub(crate) const ROUNDS: usize = 10;
/// Runs of an arm where one is measured after the other.
pub(crate) const RUNS: usize = 5;
/// Frames that the baseline forwards in a slice.
const FRAMES: f64 = 100_000.0;
/// How long a slice lasts.
const SLICE_S: f64 = 0.1;

/// The slices of one run: one variant in one set-up.
pub(crate) type Run = Vec<Slice>;

/// What one block measured.
pub(crate) struct Block {
    /// For each arm, one slice a round.
    pub(crate) runs: Vec<Run>,
    /// For each round, its arms in the order of time.
    pub(crate) orders: Vec<Vec<usize>>,
}

/// What holds for all slices of one variant in one set-up.
#[derive(Clone, Copy)]
struct RunNoise {
    rate: f64,
    load: f64,
}

/// The noise of slices, each correlated with the one before.
struct SliceNoise {
    autocorrelation: f64,
    innovation: f64,
    last: f64,
}

impl SliceNoise {
    fn new(setting: &Setting, noise: &mut Noise) -> Self {
        let autocorrelation = setting.autocorrelation;
        Self {
            autocorrelation,
            innovation: SLICE_DEVIATION * (1.0 - autocorrelation * autocorrelation).sqrt(),
            last: SLICE_DEVIATION * noise.normal(),
        }
    }

    fn next(&mut self, noise: &mut Noise) -> f64 {
        self.last = self.autocorrelation * self.last + self.innovation * noise.normal();
        self.last
    }
}

fn run_noise(setting: &Setting, noise: &mut Noise) -> RunNoise {
    let mut rate = setting.run_scale * noise.t3();
    if setting.outlier_share > 0.0 && noise.uniform() <= setting.outlier_share {
        rate += (-0.05 - 0.55 * noise.uniform()).ln_1p();
    }
    let load = if setting.load_deviation > 0.0 {
        setting.load_deviation * noise.normal()
    } else {
        0.0
    };
    RunNoise { rate, load }
}

/// A slice, counted in whole frames: where the first one falls is chance.
fn slice(round: usize, log_rate: f64, noise: &mut Noise) -> Slice {
    let frames = FRAMES * log_rate.exp() + noise.uniform();
    #[allow(clippy::cast_possible_truncation, reason = "frames and rounds are few")]
    let (round, forwarded_frames) = (round as u32, frames as u64);
    Slice {
        round,
        forwarded_frames,
        duration_s: SLICE_S,
    }
}

/// What the machine has drifted by at that slice of `slices`: nothing in the middle of the session.
fn drift(setting: &Setting, position: usize, slices: usize) -> f64 {
    let progress = position as f64 / (slices - 1) as f64 - 0.5;
    setting.drift_deviations * setting.run_deviation() * progress
}

/// A session as fwdlab measures: blocks of fresh set-ups, in each the slices of all arms in rounds
/// whose order `crates/plan` draws. In half of the blocks the machine is in another session's state.
///
/// Shape: `effects` of all arms, the baseline's 0 first.
pub(crate) fn in_blocks(setting: &Setting, effects: &[f64], noise: &mut Noise) -> Vec<Block> {
    let arms = effects.len();
    let slices = BLOCKS * ROUNDS * arms;
    let mut orders = Generator::new(noise.seed());
    let mut position = 0;
    let mut session = 0.0;
    (0..BLOCKS)
        .map(|block| {
            if block % (BLOCKS / 2) == 0 {
                session = setting.session_deviation * noise.normal();
            }
            let set_up = session + setting.set_up_deviation * noise.normal();
            let runs: Vec<RunNoise> = effects.iter().map(|_| run_noise(setting, noise)).collect();
            let mut slice_noise = SliceNoise::new(setting, noise);
            let mut measured = vec![Vec::with_capacity(ROUNDS); arms];
            let mut predecessor = 0;
            let orders = rounds(arms, ROUNDS, &mut orders);
            for (round, order) in orders.iter().enumerate() {
                for &arm in order {
                    let mut level = effects[arm] + set_up + runs[arm].rate;
                    level += drift(setting, position, slices) + slice_noise.next(noise);
                    if predecessor != 0 {
                        level -= setting.carry_over;
                    }
                    let log_rate = setting.forwarded(level, effects[arm], runs[arm].load);
                    measured[arm].push(slice(round, log_rate, noise));
                    predecessor = arm;
                    position += 1;
                }
            }
            Block {
                runs: measured,
                orders,
            }
        })
        .collect()
}

/// A session as ministat's users measure, with as many slices: all runs of an arm one after the other,
/// each a boot, then the next arm. Where sessions differ each arm has one of its own. Nothing precedes
/// a run, so nothing is carried over.
///
/// Shape: for each arm its runs.
pub(crate) fn in_sequence(setting: &Setting, effects: &[f64], noise: &mut Noise) -> Vec<Vec<Run>> {
    let slices_a_run = BLOCKS * ROUNDS / RUNS;
    let slices = effects.len() * RUNS * slices_a_run;
    let mut position = 0;
    effects
        .iter()
        .map(|&effect| {
            let session = setting.session_deviation * noise.normal();
            (0..RUNS)
                .map(|_| {
                    let set_up = session + setting.set_up_deviation * noise.normal();
                    let run = run_noise(setting, noise);
                    let mut slice_noise = SliceNoise::new(setting, noise);
                    (0..slices_a_run)
                        .map(|round| {
                            let mut level = effect + set_up + run.rate;
                            level += drift(setting, position, slices) + slice_noise.next(noise);
                            position += 1;
                            let log_rate = setting.forwarded(level, effect, run.load);
                            slice(round, log_rate, noise)
                        })
                        .collect()
                })
                .collect()
        })
        .collect()
}
