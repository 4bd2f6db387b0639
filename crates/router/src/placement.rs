//! Which CPU does the work of which queue.

use fwdlab_model::Knob;

use crate::Knobs;
use crate::topology::{Cpu, Topology};

/// The CPUs of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCpus {
    /// The CPU that receives.
    pub rx: u32,
    /// The CPU that transmits what the queue's transmit task is left with.
    pub tx: u32,
}

/// Why this machine cannot have a placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// No core has a second hardware thread.
    #[error(
        "{}={level}: no core that the router may use has a second hardware thread, so nothing would differ",
        knob.name()
    )]
    NoSecondThreads {
        /// The knob.
        knob: Knob,
        /// Its level.
        level: u32,
    },
    /// Second hardware threads are there, and another knob keeps them from being used.
    #[error(
        "{}=1: needs the second hardware threads, which {}=0 leaves out, so nothing would differ",
        knob.name(),
        Knob::HyperthreadingAllowed.name()
    )]
    SecondThreadsLeftOut {
        /// The knob.
        knob: Knob,
    },
    /// A core has no second hardware thread, although others have.
    #[error(
        "{}=1: the core of cpu {rx} has no second hardware thread to transmit on; set it aside",
        Knob::UseLogicalCores.name()
    )]
    NoSibling {
        /// The CPU that would receive.
        rx: u32,
    },
    /// A CPU that is to be set aside is not there.
    #[error("cpu {cpu}: cannot be set aside, because it is not online; choose another")]
    NotOnline {
        /// The CPU.
        cpu: u32,
    },
    /// There are fewer CPUs than queues.
    #[error("queues: {queues} need a CPU each to receive on, and {cpus} are left; ask for fewer")]
    TooManyQueues {
        /// Queues wanted.
        queues: usize,
        /// CPUs that may receive.
        cpus: usize,
    },
}

/// The CPUs of every queue.
///
/// As in FreeBSD: CPUs are taken in the order in which FreeBSD numbers them, package by package, core by
/// core, the threads of a core one after the other, whatever Linux numbers them. Without
/// `machdep.hyperthreading_allowed` there are only the first threads of the cores; without
/// `machdep.hyperthreading_intr_allowed` only these receive, and with it all do, so that few queues fill
/// both threads of few cores. A queue transmits on the CPU that it receives on, or, with
/// `iflib.use_logical_cores`, on the other thread of that core.
///
/// What differs: FreeBSD starts as many queues as there are CPUs, and wraps where it is told to have
/// more, which is refused here, because a queue is polled. There, `use_logical_cores` acts only where
/// `iflib.separate_txrx` is set too; here it stands for both. A CPU that is set aside takes its core
/// along: the other thread would share the core with whoever it is set aside for.
///
/// # Errors
/// Levels that make no difference on this machine, as well as those that it cannot have.
///
/// # Source
/// FreeBSD, `sys/x86/x86/mp_x86.c`: `assign_cpu_ids`, `set_interrupt_apic_ids`; `sys/net/iflib.c`:
/// `get_cpuid_for_queue`, `find_l2_neighbor`.
pub fn placement(
    topology: &Topology,
    knobs: &Knobs,
    queues: usize,
    set_aside: &[u32],
) -> Result<Vec<QueueCpus>, Unavailable> {
    if let Some(&cpu) = set_aside.iter().find(|&&cpu| topology.cpu(cpu).is_none()) {
        return Err(Unavailable::NotOnline { cpu });
    }
    let is_left = |cpu: &&Cpu| !cpu.siblings.iter().any(|id| set_aside.contains(id));
    let mut cpus: Vec<&Cpu> = topology.cpus().iter().filter(is_left).collect();
    cpus.sort_unstable_by_key(|cpu| (cpu.package, cpu.node, cpu.core, &cpu.siblings, cpu.id));

    let second_threads = SecondThreads::of(&cpus, knobs)?;
    let receives = |cpu: &&Cpu| second_threads == SecondThreads::Receive || is_first(cpu);
    let receiving: Vec<&Cpu> = cpus.into_iter().filter(receives).collect();
    if receiving.len() < queues {
        return Err(Unavailable::TooManyQueues {
            queues,
            cpus: receiving.len(),
        });
    }
    let beside = knobs.is_on(Knob::UseLogicalCores);
    let cpus_of = |cpu: &Cpu| {
        let other = || {
            cpu.siblings
                .iter()
                .copied()
                .find(|&sibling| sibling != cpu.id)
        };
        let tx = if beside { other() } else { Some(cpu.id) };
        let tx = tx.ok_or(Unavailable::NoSibling { rx: cpu.id })?;
        Ok(QueueCpus { rx: cpu.id, tx })
    };
    receiving.into_iter().take(queues).map(cpus_of).collect()
}

/// What the second threads of cores are there for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecondThreads {
    LeftOut,
    Wait,
    Receive,
}

impl SecondThreads {
    /// What the knobs say, if that makes a difference with these CPUs.
    fn of(cpus: &[&Cpu], knobs: &Knobs) -> Result<Self, Unavailable> {
        let allowed = knobs.is_on(Knob::HyperthreadingAllowed);
        let receive = knobs.is_on(Knob::HyperthreadingIntrAllowed);
        let wants = [Knob::HyperthreadingIntrAllowed, Knob::UseLogicalCores];
        let mut wanting = wants.into_iter().filter(|&knob| knobs.is_on(knob));
        if cpus.iter().all(|cpu| is_first(cpu)) {
            return match wanting.next() {
                Some(knob) => Err(Unavailable::NoSecondThreads { knob, level: 1 }),
                None if !allowed => Err(Unavailable::NoSecondThreads {
                    knob: Knob::HyperthreadingAllowed,
                    level: 0,
                }),
                None => Ok(Self::Wait),
            };
        }
        match wanting.next() {
            Some(knob) if !allowed => Err(Unavailable::SecondThreadsLeftOut { knob }),
            _ if receive => Ok(Self::Receive),
            _ if allowed => Ok(Self::Wait),
            _ => Ok(Self::LeftOut),
        }
    }
}

/// Whether a CPU is the first thread of its core.
fn is_first(cpu: &Cpu) -> bool {
    cpu.siblings.first() == Some(&cpu.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::machines::{
        ATOM_C2758, RYZEN_8845HS, VIRTUAL_2, files, machine, xeon_2x12,
    };
    use proptest::prelude::*;

    /// `hyperthreading_allowed`, `hyperthreading_intr_allowed`, `use_logical_cores`.
    fn knobs([allowed, intr_allowed, logical_cores]: [u32; 3]) -> Knobs {
        Knobs::default()
            .with(Knob::HyperthreadingAllowed, allowed)
            .with(Knob::HyperthreadingIntrAllowed, intr_allowed)
            .with(Knob::UseLogicalCores, logical_cores)
    }

    fn place(
        table: &str,
        levels: [u32; 3],
        queues: usize,
        set_aside: &[u32],
    ) -> Result<Vec<(u32, u32)>, String> {
        placement(&machine(table), &knobs(levels), queues, set_aside)
            .map(|queues| {
                queues
                    .into_iter()
                    .map(|queue| (queue.rx, queue.tx))
                    .collect()
            })
            .map_err(|unavailable| unavailable.to_string())
    }

    fn same(cpus: impl IntoIterator<Item = u32>) -> Result<Vec<(u32, u32)>, String> {
        Ok(cpus.into_iter().map(|cpu| (cpu, cpu)).collect())
    }

    #[test]
    fn every_combination_on_8_cores_with_2_threads() {
        let first_threads = || (0..16).step_by(2);
        let place = |levels| place(RYZEN_8845HS, levels, 8, &[]);
        assert_eq!(place([0, 0, 0]), same(first_threads()));
        assert_eq!(place([1, 0, 0]), same(first_threads()));
        assert_eq!(
            place([1, 0, 1]),
            Ok(first_threads().map(|cpu| (cpu, cpu + 1)).collect())
        );
        assert_eq!(place([1, 1, 0]), same(0..8));
        assert_eq!(
            place([1, 1, 1]),
            Ok((0..8).map(|cpu| (cpu, cpu ^ 1)).collect())
        );
        let left_out = |knob| {
            Err(format!(
                "{knob}=1: needs the second hardware threads, which \
                 machdep.hyperthreading_allowed=0 leaves out, so nothing would differ"
            ))
        };
        assert_eq!(
            place([0, 1, 0]),
            left_out("machdep.hyperthreading_intr_allowed")
        );
        assert_eq!(place([0, 0, 1]), left_out("iflib.use_logical_cores"));
        assert_eq!(
            place([0, 1, 1]),
            left_out("machdep.hyperthreading_intr_allowed")
        );
    }

    #[test]
    fn sixteen_queues_need_the_second_threads() {
        assert_eq!(place(RYZEN_8845HS, [1, 1, 0], 16, &[]), same(0..16));
        assert_eq!(
            place(RYZEN_8845HS, [1, 0, 0], 16, &[]),
            Err("queues: 16 need a CPU each to receive on, and 8 are left; ask for fewer".into())
        );
        assert_eq!(place(RYZEN_8845HS, [1, 1, 0], 0, &[]), Ok(Vec::new()));
        assert!(place(RYZEN_8845HS, [1, 1, 0], 17, &[]).is_err());
    }

    #[test]
    fn packages_come_one_after_the_other_whatever_linux_numbers_their_threads() {
        let xeon = xeon_2x12();
        assert_eq!(place(&xeon, [1, 0, 0], 24, &[]), same(0..24));
        assert_eq!(place(&xeon, [1, 1, 0], 6, &[]), same([0, 24, 1, 25, 2, 26]));
        assert_eq!(
            place(&xeon, [1, 0, 1], 3, &[]),
            Ok(vec![(0, 24), (1, 25), (2, 26)])
        );
        assert_eq!(
            place(&xeon, [1, 1, 1], 3, &[]),
            Ok(vec![(0, 24), (24, 0), (1, 25)])
        );
        let all = place(&xeon, [1, 1, 0], 48, &[]).unwrap();
        assert_eq!(all[23..26], [(35, 35), (12, 12), (36, 36)]);
    }

    #[test]
    fn without_second_threads_levels_that_need_them_are_unavailable() {
        for table in [ATOM_C2758, VIRTUAL_2] {
            let cpus = u32::try_from(machine(table).cpus().len()).unwrap();
            let place = |levels| place(table, levels, cpus as usize, &[]);
            assert_eq!(place([1, 0, 0]), same(0..cpus));
            let none = |level| {
                Err(format!(
                    "{level}: no core that the router may use has a second hardware thread, \
                     so nothing would differ"
                ))
            };
            assert_eq!(place([0, 0, 0]), none("machdep.hyperthreading_allowed=0"));
            for levels in [[1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 1, 1]] {
                assert_eq!(place(levels), none("machdep.hyperthreading_intr_allowed=1"));
            }
            for levels in [[1, 0, 1], [0, 0, 1]] {
                assert_eq!(place(levels), none("iflib.use_logical_cores=1"));
            }
        }
    }

    #[test]
    fn a_cpu_that_is_set_aside_takes_its_core_along() {
        for set_aside in [[0], [1]] {
            let place = |levels, queues| place(RYZEN_8845HS, levels, queues, &set_aside);
            assert_eq!(place([1, 0, 0], 2), same([2, 4]));
            assert_eq!(place([1, 1, 0], 3), same([2, 3, 4]));
            assert_eq!(place([1, 0, 1], 1), Ok(vec![(2, 3)]));
            assert!(place([1, 0, 0], 8).unwrap_err().contains("and 7 are left"));
            assert!(
                place([1, 1, 0], 15)
                    .unwrap_err()
                    .contains("and 14 are left")
            );
        }
        assert_eq!(place(VIRTUAL_2, [1, 0, 0], 1, &[0]), same([1]));
        assert!(
            place(VIRTUAL_2, [1, 0, 0], 1, &[0, 1])
                .unwrap_err()
                .contains("and 0 are left")
        );
        assert_eq!(
            place(VIRTUAL_2, [1, 0, 0], 1, &[2]),
            Err("cpu 2: cannot be set aside, because it is not online; choose another".into())
        );
    }

    #[test]
    fn offline_cpus_are_not_used() {
        let online = |cpus: &str| {
            let mut files = files(RYZEN_8845HS);
            files.insert("/sys/devices/system/cpu/online".into(), format!("{cpus}\n"));
            Topology::read(|path| files.get(path).cloned()).unwrap()
        };
        let rx = |topology: &Topology, levels, queues| {
            placement(topology, &knobs(levels), queues, &[])
                .map(|queues| queues.iter().map(|queue| queue.rx).collect::<Vec<_>>())
        };
        // Second threads switched off: as if there were none.
        let topology = online("0,2,4,6,8,10,12,14");
        assert_eq!(rx(&topology, [1, 0, 0], 3), Ok(vec![0, 2, 4]));
        assert!(matches!(
            rx(&topology, [1, 1, 0], 3),
            Err(Unavailable::NoSecondThreads { .. })
        ));
        // The first thread of a core is the first that is online.
        let topology = online("0-1,3-15");
        assert_eq!(rx(&topology, [1, 0, 0], 3), Ok(vec![0, 3, 4]));
        assert_eq!(
            rx(&topology, [1, 0, 1], 2),
            Err(Unavailable::NoSibling { rx: 3 })
        );
    }

    proptest! {
        #[test]
        fn no_cpu_receives_twice_or_is_taken_from_the_tester(
            levels in proptest::array::uniform3(0_u32..2),
            queues in 0_usize..60,
            set_aside in proptest::collection::vec(0_u32..48, 0..10),
        ) {
            let xeon = machine(&xeon_2x12());
            let Ok(placed) = placement(&xeon, &knobs(levels), queues, &set_aside) else {
                return Ok(());
            };
            prop_assert_eq!(placed.len(), queues);
            let mut rx: Vec<u32> = placed.iter().map(|queue| queue.rx).collect();
            rx.sort_unstable();
            prop_assert!(rx.is_sorted_by(|a, b| a < b));
            for queue in placed {
                let core = &xeon.cpu(queue.rx).unwrap().siblings;
                prop_assert!(core.contains(&queue.tx));
                prop_assert_eq!(queue.rx != queue.tx, levels[2] == 1);
                prop_assert!(core.iter().all(|cpu| !set_aside.contains(cpu)));
                prop_assert!(levels[1] == 1 || queue.rx < 24);
            }
        }
    }
}
