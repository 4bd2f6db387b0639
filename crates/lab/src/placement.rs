//! Who runs on which CPU.

use std::collections::BTreeMap;

use fwdlab_model::{LoadRegime, Placement, Resolved};

use crate::LabError;

/// Chooses a CPU for everybody, where the lab file leaves the choice.
///
/// The load is on the first CPU and the harness on the last. Where the DUT forwards on a CPU of its
/// own, that is the last one, and the harness has one between them; with two CPUs it shares the
/// generator's, which has time to spare, and leaves the DUT's alone.
///
/// Shape: the CPUs that this process may use, ascending.
pub(crate) fn placement(resolved: &Resolved, cpus: &[u32]) -> Result<Placement, LabError> {
    let lab = &resolved.lab;
    let first = *cpus.first().unwrap_or(&0);
    let last = *cpus.last().unwrap_or(&first);
    let load_cpu = lab.load_cpu.unwrap_or(first);
    let dut_cpu = match resolved.regime() {
        LoadRegime::SelfClocked => None,
        LoadRegime::Paced if !resolved.has_forwarder() => lab.dut_cpu,
        LoadRegime::Paced | LoadRegime::Overload => {
            let mut others = cpus.iter().rev().filter(|&&cpu| cpu != load_cpu);
            lab.dut_cpu.or_else(|| others.next().copied())
        }
    };
    let control_cpu = lab.control_cpu.unwrap_or_else(|| match dut_cpu {
        None => last,
        Some(dut_cpu) => {
            let is_free = |cpu: &&u32| **cpu != load_cpu && **cpu != dut_cpu;
            cpus.iter().rev().find(is_free).copied().unwrap_or(load_cpu)
        }
    });
    for cpu in [Some(load_cpu), dut_cpu, Some(control_cpu)]
        .into_iter()
        .flatten()
    {
        if !cpus.contains(&cpu) {
            let cpus = cpus
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            return Err(LabError::Cpu { cpu, cpus });
        }
    }
    Ok(Placement {
        load_cpu,
        dut_cpu,
        control_cpu,
        queues: BTreeMap::new(),
    })
}

/// Why no variant can be measured under the experiment's load; none where they can.
pub(crate) fn load_unavailable(resolved: &Resolved, placement: &Placement) -> Option<String> {
    let regime = resolved.regime();
    let has_forwarder = resolved.has_forwarder();
    let wants_own_cpu =
        regime == LoadRegime::Overload || has_forwarder || placement.dut_cpu.is_some();
    let has_own_cpu = placement
        .dut_cpu
        .is_some_and(|dut_cpu| dut_cpu != placement.load_cpu);
    (wants_own_cpu && !has_own_cpu).then(|| {
        if has_forwarder {
            return format!(
                "a forwarder in user space needs another CPU than the generator's (CPU {}); give the DUT one (dut_cpu in \
                 the lab file), or measure on a machine with two CPUs or more",
                placement.load_cpu
            );
        }
        format!(
            "in the load regime {regime} the DUT needs another CPU than the generator's (CPU {}); \
             give it one (dut_cpu in the lab file), or ask for self-clocked",
            placement.load_cpu
        )
    })
}

#[cfg(test)]
mod tests {
    use fwdlab_model::{Design, Lab, Load, Traffic};

    use super::*;

    fn resolved(load: Load) -> Resolved {
        Resolved {
            name: "test".into(),
            question: "Impact of a test".into(),
            background: None,
            factors: Vec::new(),
            variants: Vec::new(),
            comparisons: Vec::new(),
            traffics: vec![Traffic {
                load,
                ..Traffic::default()
            }],
            design: Design {
                blocks: 1,
                rounds: 1,
                slice_ms: 1,
                settle_ms: 1,
                warm_up_ms: 1,
                ..Design::default()
            },
            lab: Lab::netns("netns"),
            references: Vec::new(),
            profiling: None,
        }
    }

    fn cpus(placement: &Placement) -> (u32, Option<u32>, u32) {
        (placement.load_cpu, placement.dut_cpu, placement.control_cpu)
    }

    #[test]
    fn the_dut_has_a_cpu_of_its_own_under_overload() {
        let place = |load, machine: &[u32]| cpus(&placement(&resolved(load), machine).unwrap());
        assert_eq!(place(Load::SelfClocked, &[0, 1, 2]), (0, None, 2));
        assert_eq!(place(Load::Paced { pps: 100_000 }, &[0, 1]), (0, None, 1));
        assert_eq!(place(Load::Overload, &[0, 1, 2]), (0, Some(2), 1));
        assert_eq!(place(Load::Overload, &[0, 1]), (0, Some(1), 0));
        assert_eq!(place(Load::Overload, &[3]), (3, None, 3));
    }

    #[test]
    fn the_lab_file_has_the_first_word() {
        let mut resolved = resolved(Load::Paced { pps: 100_000 });
        resolved.lab.load_cpu = Some(2);
        resolved.lab.dut_cpu = Some(0);
        let placement = placement(&resolved, &[0, 1, 2]).unwrap();
        assert_eq!(cpus(&placement), (2, Some(0), 1));
        assert_eq!(placement.forwarding_cpu(), 0);
        resolved.lab.dut_cpu = Some(9);
        let error = super::placement(&resolved, &[0, 1, 2]).unwrap_err();
        assert!(matches!(error, LabError::Cpu { cpu: 9, .. }), "{error}");
    }

    #[test]
    fn one_cpu_is_not_enough_for_overload() {
        let mut resolved = resolved(Load::Overload);
        let reason = |resolved: &Resolved, machine: &[u32]| {
            load_unavailable(resolved, &placement(resolved, machine).unwrap())
        };
        assert_eq!(reason(&resolved, &[0, 1]), None);
        let text = reason(&resolved, &[0]).unwrap();
        assert!(
            text.contains("overload") && text.contains("CPU 0"),
            "{text}"
        );
        resolved.lab.dut_cpu = Some(0);
        assert!(reason(&resolved, &[0, 1]).is_some());
        resolved.traffics[0].load = Load::SelfClocked;
        assert_eq!(reason(&resolved, &[0]), None);
    }
}
