//! How much noise a lab has where nothing differs, and how long it takes to switch and to settle.

use std::collections::BTreeMap;
use std::time::Duration;

use fwdlab_model::{
    AddressFamily, Binding, Comparison, Design, Factor, HostTesterKind, Lab, LabKind, LabNoise,
    Level, Load, Resolved, SCHEMA_VERSION, Traffic, Variant, VariantName,
};
use fwdlab_stats::{StatsError, block_effect, median};

use crate::BlockOutcome;
use crate::interference::counted;

/// The factor of the control experiment.
const FACTOR: &str = "packet filter";
const NONE: &str = "none";
const RULES: &str = "ten rules";

/// Rules that never match the traffic: TCP, while the tester sends UDP.
fn ten_rules() -> String {
    let rules: String = (1..=10)
        .map(|port| format!("\t\ttcp dport {port} drop\n"))
        .collect();
    format!(
        "table inet filter {{\n\tchain forward {{\n\t\ttype filter hook forward priority filter; \
         policy accept;\n{rules}\t}}\n}}\n"
    )
}

/// An A/A comparison: a baseline, its copy, and, where there is an `nft` to switch with, a ruleset
/// between them, so that both come after a real switch.
///
/// A router is put together anew for every slice, so that there is nothing to switch between. Its
/// experiments are of both address families, and so is this.
#[must_use]
pub fn control_experiment(lab: &Lab, load: Load, blocks: u32, with_ruleset: bool) -> Resolved {
    let levels = |level: &str| {
        let level = Level::Text(level.to_owned());
        let set = with_ruleset.then(|| (FACTOR.to_owned(), level));
        set.into_iter().collect()
    };
    let variant = |label: &str, level: &str, control_of: Option<&str>| Variant {
        name: VariantName::from_label(label),
        label: label.to_owned(),
        levels: levels(level),
        control_of: control_of.map(VariantName::from_label),
        unavailable: None,
    };
    let mut variants = vec![variant(NONE, NONE, None)];
    let mut rulesets = BTreeMap::new();
    if with_ruleset {
        variants.push(variant(RULES, RULES, None));
        rulesets.insert(NONE.to_owned(), String::new());
        rulesets.insert(RULES.to_owned(), ten_rules());
    }
    variants.push(variant("none again", NONE, Some(NONE)));
    let bindings = if with_ruleset {
        BTreeMap::from([(FACTOR.to_owned(), Binding::Nft(rulesets))])
    } else {
        BTreeMap::new()
    };
    let words = [NONE, RULES].map(|level| Level::Text(level.to_owned()));
    let factor = with_ruleset.then(|| Factor {
        name: FACTOR.to_owned(),
        description: None,
        default: words[0].clone(),
        levels: words.to_vec(),
    });
    let families = match lab.kind {
        LabKind::Router => vec![AddressFamily::Inet, AddressFamily::Inet6],
        LabKind::Netns | LabKind::Ssh(_) => vec![AddressFamily::Inet],
    };
    // pkt-gen reports once a second, and is started anew for every slice.
    let uses = lab.hosts.as_ref().map(|hosts| hosts.tester.uses);
    let (rounds, slice_ms) = match uses {
        Some(HostTesterKind::PktGen) => (1, 5000),
        _ => (10, 100),
    };
    Resolved {
        name: "doctor".to_owned(),
        question: "What this lab finds where there is nothing".to_owned(),
        background: None,
        factors: factor.into_iter().collect(),
        comparisons: vec![Comparison {
            title: None,
            baseline: VariantName::from_label(NONE),
            variants: Vec::new(),
        }],
        variants,
        traffics: vec![Traffic {
            families,
            load,
            ..Traffic::default()
        }],
        design: Design {
            blocks,
            rounds,
            slice_ms,
            seed: 1,
            ..Design::default()
        },
        lab: Lab {
            bindings,
            ..lab.clone()
        },
        references: Vec::new(),
        profiling: None,
    }
}

/// What the blocks of a control experiment say of the lab; none of no whole block.
///
/// # Errors
/// Those of the block effects.
pub fn lab_noise(
    resolved: &Resolved,
    outcomes: &[BlockOutcome],
    kernel: &str,
    cpu_model: &str,
    measured: &str,
) -> Result<Option<LabNoise>, StatsError> {
    let baseline = &resolved.variants[0].name;
    let Some(control) = resolved
        .variants
        .iter()
        .find(|variant| variant.control_of.is_some())
    else {
        return Ok(None);
    };
    let stratum = resolved.strata().next().expect("there is a family");
    let mut block_effects = Vec::new();
    for outcome in outcomes {
        let basis = outcome.block.rate_basis[&stratum];
        let slices = |name| counted(&outcome.slices, stratum, name, basis);
        let effect = block_effect(
            &slices(&control.name),
            &slices(baseline),
            resolved.design.shortest_counted_s(),
        )?;
        block_effects.push(effect.log_ratio);
    }
    let (mut measured_s, mut undisturbed_s) = (0.0, 0.0);
    for slice in outcomes.iter().flat_map(|outcome| &outcome.slices) {
        measured_s += slice.time_s;
        undisturbed_s += slice.undisturbed_s;
    }
    let of_blocks = |value: &dyn Fn(&BlockOutcome) -> f64| {
        median(&outcomes.iter().map(value).collect::<Vec<_>>())
    };
    let switches_s = outcomes.iter().flat_map(|outcome| &outcome.slices);
    let costs_ns = outcomes
        .iter()
        .filter_map(|outcome| outcome.block.generator_cost_ns.get(&stratum).copied());
    let generator_cost_ns = median(&costs_ns.collect::<Vec<_>>());
    let (Some(switch_s), Some(set_up_s)) = (
        of_blocks(&|outcome| outcome.block.switch_s),
        of_blocks(&|outcome| outcome.block.set_up_s),
    ) else {
        return Ok(None);
    };
    Ok(Some(LabNoise {
        schema: SCHEMA_VERSION,
        lab: resolved.lab.name.clone(),
        measured: measured.to_owned(),
        kernel: kernel.to_owned(),
        cpu_model: cpu_model.to_owned(),
        rounds: resolved.design.rounds,
        slice_ms: resolved.design.slice_ms,
        block_effects,
        disturbed_ratio: (1.0 - undisturbed_s / measured_s).max(0.0),
        set_up_s,
        switch_s,
        switch_s_max: switches_s.map(|slice| slice.switch_s).fold(0.0, f64::max),
        settle_ms: None,
        generator_cost_ns,
        generator_ceiling_pps: generator_cost_ns.map(|cost_ns| 1e9 / cost_ns),
    }))
}

/// After how many milliseconds from a switch the forwarding rate is what it stays; none where it
/// still moves at the end of what was looked at.
///
/// Of each switch, the rates are compared with the median of their second half; of all switches,
/// the median of that counts, so that what disturbs single switches does not.
///
/// Shape: one entry a switch, with the rate in each interval of `step` after it.
#[must_use]
pub fn settle_ms(settlings: &[Vec<f64>], step: Duration) -> Option<u32> {
    const SETTLED_RATIO: f64 = 0.02;
    let steps = settlings.iter().map(Vec::len).min()?;
    let relative: Vec<Vec<f64>> = settlings
        .iter()
        .filter_map(|rates_pps| {
            let late = median(&rates_pps[steps / 2..])?;
            (late > 0.0).then(|| rates_pps.iter().map(|rate| rate / late).collect())
        })
        .collect();
    let moves = |step: usize| {
        let at_step: Vec<f64> = relative.iter().map(|rates| rates[step]).collect();
        median(&at_step).is_some_and(|ratio| (ratio - 1.0).abs() > SETTLED_RATIO)
    };
    let settled = (0..steps).rev().take_while(|&step| !moves(step)).last()?;
    let step_ms = u32::try_from(step.as_millis()).ok()?;
    // Where only the second half is settled, that says nothing: it was compared with itself.
    (settled < steps / 2).then(|| u32::try_from(settled).unwrap_or(u32::MAX) * step_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settling_ends_where_the_rate_stays() {
        let rates = |early: &[f64]| {
            let mut rates = early.to_vec();
            rates.resize(20, 100.0);
            rates
        };
        let settled_ms = |settlings: &[Vec<f64>]| settle_ms(settlings, Duration::from_millis(10));
        assert_eq!(settled_ms(&[rates(&[])]), Some(0));
        assert_eq!(settled_ms(&[rates(&[50.0, 90.0])]), Some(20));
        // One switch of three was disturbed.
        let disturbed = rates(&[100.0, 100.0, 100.0, 100.0, 20.0]);
        let usual = rates(&[80.0]);
        assert_eq!(settled_ms(&[usual.clone(), disturbed, usual]), Some(10));
        let moving: Vec<f64> = (0..20).map(|step| 100.0 - f64::from(step) * 4.0).collect();
        assert_eq!(settled_ms(&[moving]), None);
        assert_eq!(settled_ms(&[]), None);
    }

    #[test]
    fn the_control_experiment_needs_no_nft_where_there_is_none() {
        let lab = Lab::netns("here");
        let resolved = control_experiment(&lab, Load::SelfClocked, 4, false);
        assert_eq!(resolved.variants.len(), 2);
        assert!(resolved.factors.is_empty());
        assert!(resolved.lab.bindings.is_empty());
        let resolved = control_experiment(&lab, Load::SelfClocked, 4, true);
        assert_eq!(resolved.variants.len(), 3);
    }

    #[test]
    fn a_routers_control_is_under_its_labs_load_and_of_both_families() {
        let lab = Lab {
            kind: LabKind::Router,
            router: Some(fwdlab_model::RouterLab::default()),
            ..Lab::netns("router")
        };
        let resolved = control_experiment(&lab, Load::Overload, 4, false);
        assert_eq!(resolved.traffics[0].load, Load::Overload);
        assert_eq!(
            resolved.families(),
            [AddressFamily::Inet, AddressFamily::Inet6]
        );
    }
}
