//! Who works on which CPU, variant by variant, from the machine's real topology.

use fwdlab_model::{Knob, Placement, QueuePlacement, Resolved, Tester, Variant};
use fwdlab_router::{Knobs, Layout, QueueCpus, Roles, Topology, placement as queue_placement};

use super::engine::{Arrangement, Arrangements, tester_kind};
use super::load::SettledLoad;
use super::network::OWN_ROUTES;
use super::setting::setting;
use super::threads::Place;
use crate::{LabError, TesterChoice};

/// The knobs whose levels are places.
const PLACEMENT_KNOBS: [Knob; 3] = [
    Knob::HyperthreadingAllowed,
    Knob::HyperthreadingIntrAllowed,
    Knob::UseLogicalCores,
];

/// What of this machine a router's threads may use.
pub(super) struct Machine {
    cpus: Vec<u32>,
    chosen: Placement,
    /// None where the machine does not say which CPUs share a core.
    topology: Option<Topology>,
    queues: usize,
}

impl Machine {
    /// Looks at this machine.
    ///
    /// # Errors
    /// `Cpu` where the lab file names one that this process may not use.
    pub(super) fn look(resolved: &Resolved) -> Result<Self, LabError> {
        let cpus = fwdlab_sys::online_cpus()?;
        Ok(Self {
            chosen: crate::placement::placement(resolved, &cpus)?,
            cpus,
            topology: Topology::read(|path| std::fs::read_to_string(path).ok()).ok(),
            queues: resolved.lab.router.unwrap_or_default().queues as usize,
        })
    }

    /// How many CPUs this process may use.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// The CPU on which router and tester take turns.
    pub(super) fn in_turns_cpu(&self) -> u32 {
        self.chosen.load_cpu
    }

    /// Why this machine cannot have a variant, for each variant.
    pub(super) fn unavailable(&self, resolved: &Resolved) -> Result<Vec<Option<String>>, LabError> {
        let places_are_varied = resolved.factors.iter().any(|factor| {
            let knob = Knob::named(&factor.name);
            factor.is_varied() && knob.is_some_and(|knob| PLACEMENT_KNOBS.contains(&knob))
        });
        let of_variant = |variant: &Variant| {
            let setting = setting(resolved, variant)?;
            if setting.routes < OWN_ROUTES {
                return Ok(Some(format!("the lab itself needs {OWN_ROUTES} routes")));
            }
            let defaults = Knobs::default();
            let is_default = |knob| setting.knobs.level(knob) == defaults.level(knob);
            if !places_are_varied && PLACEMENT_KNOBS.into_iter().all(is_default) {
                return Ok(None);
            }
            let Some(topology) = &self.topology else {
                let reason = "this machine does not say which CPUs share a core \
                              (/sys/devices/system/cpu)";
                return Ok(Some(reason.to_owned()));
            };
            let placed = queue_placement(topology, &setting.knobs, self.queues, &self.set_aside());
            Ok(placed.err().map(|reason| reason.to_string()))
        };
        resolved.variants.iter().map(of_variant).collect()
    }

    /// Everything on one CPU, in turns.
    pub(super) fn in_turns(&self, resolved: &Resolved) -> Arrangements {
        let arrangement = Arrangement {
            place: Place::Inline {
                cpu: self.chosen.load_cpu,
            },
            layout: Layout::even(self.queues),
        };
        available(resolved)
            .map(|variant| (variant.name.clone(), arrangement.clone()))
            .collect()
    }

    /// Tester and workers each on CPUs of their own; none where there are too few.
    pub(super) fn beside(&self, resolved: &Resolved) -> Result<Option<Arrangements>, LabError> {
        let mut arrangements = Arrangements::new();
        for variant in available(resolved) {
            let knobs = setting(resolved, variant)?.knobs;
            let Some(queues) = self.queue_cpus(&knobs) else {
                return Ok(None);
            };
            let (layout, workers) = shared_out(&queues);
            let place = Place::Beside {
                tester: self.chosen.load_cpu,
                workers,
            };
            arrangements.insert(variant.name.clone(), Arrangement { place, layout });
        }
        Ok(Some(arrangements))
    }

    /// The CPUs of each queue.
    fn queue_cpus(&self, knobs: &Knobs) -> Option<Vec<QueueCpus>> {
        if let Some(topology) = &self.topology {
            let placed = queue_placement(topology, knobs, self.queues, &self.set_aside()).ok()?;
            let may_use =
                |queue: &QueueCpus| self.cpus.contains(&queue.rx) && self.cpus.contains(&queue.tx);
            return placed.iter().all(may_use).then_some(placed);
        }
        let mut free = self.cpus.clone();
        free.retain(|&cpu| cpu != self.chosen.load_cpu);
        let queues: Vec<_> = free
            .into_iter()
            .take(self.queues)
            .map(|cpu| QueueCpus { rx: cpu, tx: cpu })
            .collect();
        (queues.len() == self.queues).then_some(queues)
    }

    /// The tester's CPU, and the harness's where there are enough for it to have one.
    fn set_aside(&self) -> Vec<u32> {
        let mut aside = vec![self.chosen.load_cpu];
        let is_taken = Some(self.chosen.control_cpu) == self.chosen.dut_cpu;
        if self.cpus.len() > self.queues + 2 && !is_taken {
            aside.push(self.chosen.control_cpu);
        }
        aside
    }

    /// Who runs where under a load, and how frames are sent and counted.
    pub(super) fn settled(&self, load: &SettledLoad) -> (Placement, TesterChoice) {
        let arrangements = &load.arrangements;
        let mut places = arrangements.values().map(|arranged| &arranged.place);
        let choice = TesterChoice {
            tester: places.next().map_or(Tester::MemoryInline, tester_kind),
            refused: Vec::new(),
        };
        (placed(arrangements, self.control_cpu(arrangements)), choice)
    }

    /// The harness's CPU: one that has nothing else to do, or the tester's, which has time to spare.
    fn control_cpu(&self, arrangements: &Arrangements) -> u32 {
        let is_busy = |cpu: u32| {
            arrangements.values().any(|arranged| match &arranged.place {
                Place::Inline { cpu: busy } => *busy == cpu,
                Place::Beside { tester, workers } => *tester == cpu || workers.contains(&cpu),
            })
        };
        let mut wanted = vec![self.chosen.control_cpu];
        wanted.extend(self.cpus.iter().rev());
        let mut idle = wanted.into_iter().filter(|&cpu| !is_busy(cpu));
        idle.next().unwrap_or(self.chosen.load_cpu)
    }
}

fn available(resolved: &Resolved) -> impl Iterator<Item = &Variant> {
    resolved
        .variants
        .iter()
        .filter(|variant| variant.unavailable.is_none())
}

/// A worker for each CPU, with what it does of which queue.
fn shared_out(queues: &[QueueCpus]) -> (Layout, Vec<u32>) {
    let mut cpus: Vec<u32> = Vec::new();
    let mut workers: Vec<Roles> = Vec::new();
    let mut worker_on = |cpu: u32, workers: &mut Vec<Roles>| {
        let known = cpus.iter().position(|&known| known == cpu);
        known.unwrap_or_else(|| {
            cpus.push(cpu);
            workers.push(Roles::default());
            cpus.len() - 1
        })
    };
    for (number, queue) in queues.iter().enumerate() {
        let receives = worker_on(queue.rx, &mut workers);
        workers[receives].receive.push(number);
        let transmits = worker_on(queue.tx, &mut workers);
        workers[transmits].transmit.push(number);
    }
    let layout = Layout {
        receive_queues: queues.len(),
        transmit_queues: queues.len(),
        workers,
    };
    (layout, cpus)
}

/// The placement as it is recorded.
fn placed(arrangements: &Arrangements, control_cpu: u32) -> Placement {
    let mut placement = Placement {
        load_cpu: control_cpu,
        dut_cpu: None,
        control_cpu,
        queues: std::collections::BTreeMap::new(),
    };
    for (name, Arrangement { place, layout }) in arrangements {
        placement.load_cpu = place.tester_cpu();
        let cpu_of = |has: &dyn Fn(&Roles) -> bool| {
            let worker = layout.workers.iter().position(has).unwrap_or_default();
            match place {
                Place::Inline { cpu } => *cpu,
                Place::Beside { workers, .. } => workers[worker],
            }
        };
        let queues: Vec<_> = (0..layout.receive_queues)
            .map(|queue| QueuePlacement {
                rx_cpu: cpu_of(&|roles| roles.receive.contains(&queue)),
                tx_cpu: cpu_of(&|roles| roles.transmit.contains(&queue)),
            })
            .collect();
        if let (Place::Beside { .. }, Some(first)) = (place, queues.first()) {
            placement.dut_cpu = Some(first.rx_cpu);
        }
        placement.queues.insert(name.clone(), queues);
    }
    placement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_whose_transmit_task_is_elsewhere_has_two_workers() {
        let queue = |rx, tx| QueueCpus { rx, tx };
        let (layout, cpus) = shared_out(&[queue(2, 10), queue(3, 11)]);
        assert_eq!(cpus, [2, 10, 3, 11]);
        assert_eq!(layout.receive_queues, 2);
        let roles: Vec<_> = layout
            .workers
            .iter()
            .map(|roles| (roles.receive.clone(), roles.transmit.clone()))
            .collect();
        assert_eq!(
            roles,
            [
                (vec![0], vec![]),
                (vec![], vec![0]),
                (vec![1], vec![]),
                (vec![], vec![1])
            ]
        );
        let (layout, cpus) = shared_out(&[queue(1, 1)]);
        assert_eq!((layout, cpus), (Layout::single(), vec![1]));
    }
}
