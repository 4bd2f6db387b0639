//! From a resolved experiment to its plan.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fwdlab_model::{
    Order, Plan, PlannedBlock, Resolved, Stratum, StratumOrder, Variant, VariantName,
};
use fwdlab_stats::{CONTROL_CONFIDENCE, Generator, StatsError};

use crate::orders::{in_sequence, rounds};

/// Why an experiment cannot be planned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// No comparison has both its baseline and another variant.
    #[error(
        "experiment {experiment}: no comparison is left; change the levels or the lab{}",
        unavailable_text(.unavailable)
    )]
    NoComparison {
        /// The experiment's name.
        experiment: String,
        /// Labels of the variants that the lab cannot have, each with the reason.
        unavailable: Vec<(String, String)>,
    },
    /// A comparison or a control names a variant that the experiment does not have.
    #[error("experiment {experiment}: no variant is named {variant}; name one of its variants")]
    UnknownVariant {
        /// The experiment's name.
        experiment: String,
        /// The name that is not there.
        variant: VariantName,
    },
    /// However clear an effect, so few blocks could not show it.
    #[error(
        "design.blocks: too few ({blocks}) to show an effect at {confidence_percent} % confidence \
         with {compared} {} compared with one baseline; set at least {minimum}",
        if *.compared == 1 { "variant" } else { "variants" }
    )]
    TooFewBlocks {
        /// The blocks asked for.
        blocks: u32,
        /// The fewest that would do.
        minimum: usize,
        /// The most variants that are compared with one baseline.
        compared: usize,
        /// The confidence asked for.
        confidence_percent: f64,
    },
    /// A count that has to be 1 or more is 0.
    #[error("{what}: there are none (0 seen); give at least one")]
    Nothing {
        /// The key in the experiment file.
        what: &'static str,
    },
    /// The confidence cannot be worked with.
    #[error("design.{0}")]
    Confidence(#[source] StatsError),
}

/// Each reason on a line, with the variants that it holds for below.
fn unavailable_text(unavailable: &[(String, String)]) -> String {
    if unavailable.is_empty() {
        return "\n  none is asked for".to_owned();
    }
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (label, reason) in unavailable {
        match by_reason.iter_mut().find(|(known, _)| known == reason) {
            Some((_, labels)) => labels.push(label),
            None => by_reason.push((reason, vec![label])),
        }
    }
    let mut text = String::new();
    for (reason, labels) in by_reason {
        let _ = write!(text, "\n  {reason}");
        for label in labels {
            let _ = write!(text, "\n    {label:?}");
        }
    }
    text
}

/// The variants that are run, in the experiment's order: those that the lab can have, without the
/// A/A control of a baseline that it cannot.
#[must_use]
pub fn variants_run(resolved: &Resolved) -> Vec<&Variant> {
    let is_available = |name: &VariantName| {
        resolved
            .variant(name)
            .is_some_and(|variant| variant.unavailable.is_none())
    };
    resolved
        .variants
        .iter()
        .filter(|variant| {
            variant.unavailable.is_none() && variant.control_of.as_ref().is_none_or(is_available)
        })
        .collect()
}

/// The fewest blocks that can show an effect of every compared variant.
///
/// Comparisons with one baseline share their correction for multiplicity; address families and
/// baselines do not.
///
/// # Errors
/// [`PlanError::NoComparison`], [`PlanError::UnknownVariant`], [`PlanError::Confidence`].
pub fn minimum_blocks(resolved: &Resolved) -> Result<usize, PlanError> {
    let (compared, confidence) = most_compared(resolved)?;
    fwdlab_stats::minimum_blocks(compared, confidence).map_err(PlanError::Confidence)
}

/// The most variants that are compared with one baseline, and the confidence asked of them; an
/// experiment that only compares a baseline with itself has its A/A control.
fn most_compared(resolved: &Resolved) -> Result<(usize, f64), PlanError> {
    let asks_for_none = resolved
        .comparisons
        .iter()
        .all(|comparison| comparison.variants.is_empty());
    let has_control = variants_run(resolved)
        .iter()
        .any(|variant| variant.control_of.is_some());
    if asks_for_none && has_control {
        return Ok((1, CONTROL_CONFIDENCE));
    }
    Ok((
        most_variants(resolved)?,
        resolved.design.confidence_percent / 100.0,
    ))
}

fn most_variants(resolved: &Resolved) -> Result<usize, PlanError> {
    let run = |name: &VariantName| match resolved.variant(name) {
        Some(variant) => Ok(variant.unavailable.is_none()),
        None => Err(PlanError::UnknownVariant {
            experiment: resolved.name.clone(),
            variant: name.clone(),
        }),
    };
    let mut compared: BTreeMap<&VariantName, usize> = BTreeMap::new();
    for comparison in &resolved.comparisons {
        let baseline_is_run = run(&comparison.baseline)?;
        for variant in &comparison.variants {
            if run(variant)? && baseline_is_run {
                *compared.entry(&comparison.baseline).or_default() += 1;
            }
        }
    }
    compared
        .into_values()
        .max()
        .ok_or_else(|| PlanError::NoComparison {
            experiment: resolved.name.clone(),
            unavailable: resolved
                .variants
                .iter()
                // It is the baseline once more.
                .filter(|variant| variant.control_of.is_none())
                .filter_map(|variant| Some((variant.label.clone(), variant.unavailable.clone()?)))
                .collect(),
        })
}

/// The plan of an experiment: every block, with the order of its strata and slices.
///
/// It follows from the experiment and its seed alone, and a plan of more blocks begins with the
/// same blocks.
///
/// # Errors
/// [`PlanError`] where the experiment could not answer anything.
pub fn build(resolved: &Resolved) -> Result<Plan, PlanError> {
    let design = &resolved.design;
    for (what, count) in [
        ("traffic.families", resolved.strata().count()),
        ("design.rounds", design.rounds as usize),
    ] {
        if count == 0 {
            return Err(PlanError::Nothing { what });
        }
    }
    for control_of in resolved
        .variants
        .iter()
        .filter_map(|v| v.control_of.as_ref())
    {
        if resolved.variant(control_of).is_none() {
            return Err(PlanError::UnknownVariant {
                experiment: resolved.name.clone(),
                variant: control_of.clone(),
            });
        }
    }
    let minimum = minimum_blocks(resolved)?;
    if (design.blocks as usize) < minimum {
        let (compared, confidence) = most_compared(resolved)?;
        return Err(PlanError::TooFewBlocks {
            blocks: design.blocks,
            minimum,
            compared,
            confidence_percent: confidence * 100.0,
        });
    }

    let variants = variants_run(resolved);
    let mut generator = Generator::new(design.seed);
    let mut strata: Vec<Stratum> = resolved.strata().collect();
    let blocks = (1..=design.blocks)
        .map(|number| {
            match design.order {
                Order::InSequence => {}
                Order::Random if number % 2 == 1 => generator.shuffle(&mut strata),
                Order::Random => strata.reverse(),
            }
            let mut orders = || match design.order {
                Order::InSequence => in_sequence(variants.len(), design.rounds as usize),
                Order::Random => rounds(variants.len(), design.rounds as usize, &mut generator),
            };
            let strata = strata
                .iter()
                .map(|&stratum| StratumOrder {
                    stratum,
                    rounds: orders()
                        .into_iter()
                        .map(|row| {
                            row.into_iter()
                                .map(|v| variants[v].name.clone().into())
                                .collect()
                        })
                        .collect(),
                })
                .collect();
            PlannedBlock { number, strata }
        })
        .collect();
    Ok(Plan {
        seed: design.seed,
        blocks,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use fwdlab_model::{AddressFamily, Comparison, Design, Lab, Order, PlannedSlice, Traffic};
    use proptest::prelude::*;

    use super::*;

    fn name(index: usize) -> VariantName {
        VariantName::from_label(&format!("v{index}"))
    }

    /// An experiment whose first variant is the baseline of all others.
    pub(crate) fn experiment(variants: usize, blocks: u32, rounds: u32) -> Resolved {
        Resolved {
            name: "test".into(),
            question: "Impact of a test".into(),
            background: None,
            factors: vec![],
            variants: (0..variants)
                .map(|index| Variant {
                    name: name(index),
                    label: format!("V{index}"),
                    levels: BTreeMap::new(),
                    control_of: None,
                    unavailable: None,
                })
                .collect(),
            comparisons: vec![Comparison {
                title: None,
                baseline: name(0),
                variants: (1..variants).map(name).collect(),
            }],
            traffics: vec![Traffic::default()],
            design: Design {
                blocks,
                rounds,
                warm_up_ms: 1000,
                seed: 42,
                ..Design::default()
            },
            lab: Lab::netns("here"),
            references: vec![],
            profiling: None,
        }
    }

    fn text(plan: &Plan) -> String {
        let mut lines = vec![format!("seed {}", plan.seed)];
        for block in &plan.blocks {
            for order in &block.strata {
                let rounds: Vec<String> = order
                    .rounds
                    .iter()
                    .map(|row| {
                        let names: Vec<&str> =
                            row.iter().map(|slice| slice.variant.as_str()).collect();
                        names.join(" ")
                    })
                    .collect();
                lines.push(format!(
                    "block {} {}: {}",
                    block.number,
                    order.stratum,
                    rounds.join(" | ")
                ));
            }
        }
        lines.join("\n")
    }

    #[test]
    fn a_baseline_alone_is_compared_with_itself_by_its_control() {
        let mut resolved = experiment(2, 8, 10);
        resolved.comparisons[0].variants.clear();
        assert!(matches!(
            build(&resolved),
            Err(PlanError::NoComparison { .. })
        ));
        resolved.variants[1].control_of = Some(name(0));
        assert_eq!(build(&resolved).unwrap().blocks.len(), 8);
        resolved.design.blocks = 7;
        let error = build(&resolved).unwrap_err();
        assert!(
            matches!(error, PlanError::TooFewBlocks { minimum: 8, .. }),
            "{error}"
        );
    }

    #[test]
    fn at_95_percent_one_variant_takes_six_blocks() {
        let error = build(&experiment(2, 2, 10)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "design.blocks: too few (2) to show an effect at 95 % confidence with 1 variant compared \
             with one baseline; set at least 6"
        );
        assert!(build(&experiment(2, 6, 10)).is_ok());
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_for_ever() {
        let mut resolved = experiment(3, 7, 4);
        resolved.traffics[0].families.push(AddressFamily::Inet6);
        insta::assert_snapshot!(text(&build(&resolved).unwrap()));
    }

    #[test]
    fn in_sequence_every_round_is_as_the_experiment_lists_it() {
        let mut resolved = experiment(3, 7, 4);
        resolved.traffics[0].families.push(AddressFamily::Inet6);
        resolved.design.order = Order::InSequence;
        let plan = build(&resolved).unwrap();
        let listed: Vec<PlannedSlice> = (0..3).map(|number| name(number).into()).collect();
        for block in &plan.blocks {
            let families: Vec<AddressFamily> =
                block.strata.iter().map(|f| f.stratum.family).collect();
            assert_eq!(families, resolved.traffics[0].families);
            for order in &block.strata {
                assert_eq!(order.rounds, vec![listed.clone(); 4]);
            }
        }
        resolved.design.seed += 1;
        assert_eq!(build(&resolved).unwrap().blocks, plan.blocks);
    }

    #[test]
    fn families_take_turns_in_going_first() {
        let mut resolved = experiment(2, 20, 1);
        resolved.traffics[0].families.push(AddressFamily::Inet6);
        let plan = build(&resolved).unwrap();
        let first: Vec<AddressFamily> = plan
            .blocks
            .iter()
            .map(|b| b.strata[0].stratum.family)
            .collect();
        assert!(first.chunks(2).all(|pair| pair[0] != pair[1]));
        let odd: Vec<_> = first.iter().step_by(2).collect();
        assert!(odd.iter().any(|family| *family != odd[0]), "{odd:?}");
    }

    #[test]
    fn blocks_differ_and_more_blocks_begin_alike() {
        let plan = build(&experiment(5, 8, 10)).unwrap();
        let longer = build(&experiment(5, 12, 10)).unwrap();
        assert_eq!(plan.blocks, longer.blocks[..8]);
        for (index, block) in plan.blocks.iter().enumerate() {
            for other in &plan.blocks[..index] {
                assert_ne!(block.strata, other.strata);
            }
        }
    }

    #[test]
    fn the_fewest_blocks_follow_from_the_comparisons_of_one_baseline() {
        for (compared, minimum) in [(1, 6), (2, 7), (3, 7), (4, 8), (6, 8), (7, 9), (12, 9)] {
            let resolved = experiment(compared + 1, 5, 1);
            assert_eq!(minimum_blocks(&resolved), Ok(minimum), "{compared}");
            assert!(matches!(
                build(&resolved),
                Err(PlanError::TooFewBlocks { minimum: seen, .. }) if seen == minimum
            ));
        }

        // Two baselines do not share a correction; two comparisons with one baseline do.
        let mut resolved = experiment(8, 9, 1);
        resolved.comparisons = vec![
            Comparison {
                title: Some("a".into()),
                baseline: name(0),
                variants: (1..4).map(name).collect(),
            },
            Comparison {
                title: Some("b".into()),
                baseline: name(4),
                variants: (5..8).map(name).collect(),
            },
        ];
        assert_eq!(minimum_blocks(&resolved), Ok(7));
        resolved.comparisons[1].baseline = name(0);
        assert_eq!(minimum_blocks(&resolved), Ok(8));
        // What is not run is not corrected for.
        resolved.variants[5].unavailable = Some("no".into());
        resolved.variants[6].unavailable = Some("no".into());
        resolved.variants[7].unavailable = Some("no".into());
        assert_eq!(minimum_blocks(&resolved), Ok(7));
    }

    #[test]
    fn what_the_lab_cannot_have_is_not_run() {
        let mut resolved = experiment(4, 8, 3);
        resolved.variants[1].unavailable = Some("no XDP".into());
        let plan = build(&resolved).unwrap();
        let row = &plan.blocks[0].strata[0].rounds[0];
        assert_eq!(row.len(), 3);
        assert!(!row.contains(&name(1).into()));
    }

    #[test]
    fn a_control_goes_with_its_baseline() {
        let mut resolved = experiment(4, 8, 3);
        resolved.variants[3].control_of = Some(name(0));
        assert_eq!(variants_run(&resolved).len(), 4);
        resolved.variants[0].unavailable = Some("no".into());
        assert_eq!(variants_run(&resolved).len(), 2);
    }

    #[test]
    fn an_experiment_that_cannot_answer_is_refused_in_words() {
        let mut no_baseline = experiment(3, 8, 3);
        no_baseline.variants[0].unavailable = Some("needs nf_tables".into());
        let mut stranger = experiment(3, 8, 3);
        stranger.comparisons[0].variants.push(name(9));
        let mut no_families = experiment(3, 8, 3);
        no_families.traffics[0].families.clear();
        let mut certain = experiment(3, 8, 3);
        certain.design.confidence_percent = 100.0;
        let messages: Vec<String> = [
            no_baseline,
            experiment(1, 8, 3),
            stranger,
            experiment(5, 7, 3),
            experiment(3, 8, 0),
            no_families,
            certain,
        ]
        .iter()
        .map(|resolved| build(resolved).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(messages.join("\n"));
    }

    proptest! {
        #[test]
        fn every_round_of_every_plan_has_every_variant_once(
            variants in 2..8_usize,
            blocks in 9..14_u32,
            rounds in 1..12_u32,
            seed: u64,
            both_families: bool,
        ) {
            let mut resolved = experiment(variants, blocks, rounds);
            resolved.design.seed = seed;
            if both_families {
                resolved.traffics[0].families.push(AddressFamily::Inet6);
            }
            let plan = build(&resolved).unwrap();
            prop_assert_eq!(&plan, &build(&resolved).unwrap());
            prop_assert_eq!(plan.seed, seed);
            prop_assert!(plan.blocks.iter().map(|block| block.number).eq(1..=blocks));
            for block in &plan.blocks {
                let mut families: Vec<_> = block.strata.iter().map(|o| o.stratum.family).collect();
                families.sort_unstable();
                prop_assert_eq!(&families, &resolved.traffics[0].families);
                for order in &block.strata {
                    prop_assert_eq!(order.rounds.len(), rounds as usize);
                    for row in &order.rounds {
                        let mut row = row.clone();
                        row.sort_unstable();
                        prop_assert!(row.into_iter().eq((0..variants).map(|number| name(number).into())));
                    }
                }
            }
        }
    }
}
