//! How often the comparison is wrong, and how often it finds what is there.

use fwdlab_profile::CostDifference;

use crate::simulation::{Simulation, Spread};

/// 5 % of the cost of a packet.
const PLANTED_NS: f64 = 25.0;
/// The largest function, one of 5 %, one of 2 % and a small one.
const LEAVES: [usize; 4] = [0, 5, 15, 60];

/// The share of comparisons of a variant with itself in which any frame is called different.
fn false_share(simulation: &mut Simulation, comparisons: usize) -> f64 {
    let wrong = (0..comparisons)
        .filter(|_| simulation.compare(&[]).significant().next().is_some())
        .count();
    wrong as f64 / comparisons as f64
}

/// What is found where a function costs more by `ns`: how often its own cost is shown to differ, and
/// how often all intervals hold their truths.
struct Found {
    power: f64,
    covered: f64,
}

fn find(simulation: &mut Simulation, leaf: usize, ns: f64, comparisons: usize) -> Found {
    let name = format!("leaf_{leaf}");
    let part = format!("part_{}", leaf % 30);
    let group = format!("group_{}", leaf % 7);
    let (mut shown, mut covered) = (0, 0);
    for _ in 0..comparisons {
        let comparison = simulation.compare(&[(leaf, ns)]);
        let itself = |cost: &CostDifference| cost.is_significant && cost.difference_ns > 0.0;
        shown += usize::from(
            comparison
                .frame(&name)
                .is_some_and(|frame| itself(&frame.itself)),
        );
        let holds = |cost: &CostDifference, truth: f64| {
            cost.interval.is_none_or(|interval| {
                interval.lower_ns <= truth + 1e-6 && truth - 1e-6 <= interval.upper_ns
            })
        };
        let all = comparison.frames.iter().all(|frame| {
            let of_itself = if frame.frame == name { ns } else { 0.0 };
            let is_caller = ["loop", "rx", &part, &group].contains(&frame.frame.as_str());
            let with_callees = if is_caller { ns } else { of_itself };
            holds(&frame.itself, of_itself) && holds(&frame.with_callees, with_callees)
        });
        covered += usize::from(all);
    }
    let share = |count: usize| count as f64 / comparisons as f64;
    Found {
        power: share(shown),
        covered: share(covered),
    }
}

/// 4 standard errors of a share of 5 % in so many.
fn tolerance(comparisons: usize) -> f64 {
    4.0 * (0.05 * 0.95 / comparisons as f64).sqrt()
}

#[test]
fn a_variant_compared_with_itself_rarely_differs_anywhere() {
    let share = false_share(&mut Simulation::new(1), 1000);
    assert!(share <= 0.05 + tolerance(1000), "{share}");
}

#[test]
fn a_function_that_costs_5_percent_more_is_found() {
    for leaf in LEAVES {
        let mut simulation = Simulation::new(2);
        let found = find(&mut simulation, leaf, PLANTED_NS, 100);
        assert!(found.power >= 0.8, "leaf {leaf}: {}", found.power);
    }
}

/// The figures of docs/flame.md, where `FWDLAB_SOAK` is set; ordinarily of a few comparisons, to see that they can
/// be had.
#[test]
fn error_power_and_coverage_over_many_settings() {
    let is_soak = std::env::var_os("FWDLAB_SOAK").is_some();
    let (alike, planted) = if is_soak { (1000, 300) } else { (30, 5) };
    for blocks in [6, 8, 12] {
        for (samples, spread) in [
            (
                200,
                Spread {
                    blocks: 0.1,
                    profiles: 0.05,
                },
            ),
            (
                500,
                Spread {
                    blocks: 0.0,
                    profiles: 0.0,
                },
            ),
            (
                500,
                Spread {
                    blocks: 0.1,
                    profiles: 0.05,
                },
            ),
            (
                500,
                Spread {
                    blocks: 0.1,
                    profiles: 0.2,
                },
            ),
            (
                5000,
                Spread {
                    blocks: 0.1,
                    profiles: 0.05,
                },
            ),
        ] {
            let simulation = |seed| {
                let mut simulation = Simulation::new(seed);
                (simulation.blocks, simulation.samples) = (blocks, samples);
                simulation.spread = spread;
                simulation
            };
            let wrong = false_share(&mut simulation(3), alike);
            eprint!(
                "{blocks} blocks of {samples}, spread {}: A/A {wrong:.3}",
                spread.profiles
            );
            assert!(wrong <= 0.05 + tolerance(alike), "{wrong}");
            for leaf in LEAVES {
                let share = simulation(0).cost(leaf) / 5.0;
                let found = find(&mut simulation(4), leaf, PLANTED_NS, planted);
                eprint!(
                    "; {share:.1} % + 5 %: {:.2} ({:.3})",
                    found.power, found.covered
                );
            }
            eprintln!();
        }
    }
}
