//! Which CPUs share what.

/// CPU numbers that are believed: Linux is built for 8192 at most.
const CPUS_MAX: u32 = 8192;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// A CPU that is online: a hardware thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: u32,
    /// The number of its core, in which there may be gaps; the same number may occur in every package.
    pub core: u32,
    /// The number of its package.
    pub package: u32,
    /// The memory that is near to it; 0 where memory is near to all.
    pub node: u32,
    /// The numbers of the CPUs that share its core, itself among them, in ascending order.
    pub siblings: Vec<u32>,
}

/// The CPUs of a machine that are online, by ascending number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<Cpu>,
}

/// Why a topology cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// A file is not there.
    #[error("{path}: is not there; give a machine whose kernel tells which CPUs share a core")]
    Missing {
        /// The file.
        path: String,
    },
    /// A file does not hold what it should.
    #[error("{path}: is not {expected} ({text:?} seen); report it with the file")]
    Malformed {
        /// The file.
        path: String,
        /// `a number` or `a list of CPUs`.
        expected: &'static str,
        /// What it holds.
        text: String,
    },
    /// There is no CPU.
    #[error("{path}: names no CPU; report it with the file")]
    NoCpus {
        /// The file.
        path: String,
    },
    /// CPUs disagree about who shares their core.
    #[error(
        "cpu {cpu}: shares a core with cpu {sibling}, which does not share one with it; report it with the files"
    )]
    Siblings {
        /// The CPU that names the other.
        cpu: u32,
        /// The CPU that does not.
        sibling: u32,
    },
}

impl Topology {
    /// What the files of Linux below `/sys/devices/system` say.
    ///
    /// Shape: `read` gives the text of a file, by its whole path, and nothing where there is none.
    ///
    /// # Errors
    /// All of [`TopologyError`].
    ///
    /// # Source
    /// Documentation/admin-guide/cputopology.rst and Documentation/ABI/stable/sysfs-devices-node of Linux.
    pub fn read(read: impl Fn(&str) -> Option<String>) -> Result<Self, TopologyError> {
        let online = format!("{CPUS}/online");
        let ids = cpus(&read, &online)?;
        if ids.is_empty() {
            return Err(TopologyError::NoCpus { path: online });
        }
        let nodes = nodes(&read)?;
        let mut machine = Vec::with_capacity(ids.len());
        for &id in &ids {
            let path = |file: &str| format!("{CPUS}/cpu{id}/topology/{file}");
            // Of CPUs that went offline meanwhile there is nothing to be said.
            let mut siblings = match cpus(&read, &path("thread_siblings_list")) {
                // The newer name, for the day when the older is gone.
                Err(TopologyError::Missing { .. }) => cpus(&read, &path("core_cpus_list"))?,
                siblings => siblings?,
            };
            siblings.retain(|sibling| ids.binary_search(sibling).is_ok());
            let near = |(_, cpus): &&(u32, Vec<u32>)| cpus.binary_search(&id).is_ok();
            machine.push(Cpu {
                id,
                core: number(&read, &path("core_id"))?.unwrap_or(id),
                package: number(&read, &path("physical_package_id"))?.unwrap_or(0),
                node: nodes.iter().find(near).map_or(0, |(node, _)| *node),
                siblings,
            });
        }
        Self::new(machine)
    }

    /// A machine of these CPUs.
    ///
    /// # Errors
    /// `Siblings`.
    fn new(cpus: Vec<Cpu>) -> Result<Self, TopologyError> {
        let topology = Self { cpus };
        for cpu in &topology.cpus {
            for &sibling in cpu.siblings.iter().chain([&cpu.id]) {
                let other = topology.cpu(sibling).map(|other| &other.siblings);
                if other != Some(&cpu.siblings) {
                    return Err(TopologyError::Siblings {
                        cpu: cpu.id,
                        sibling,
                    });
                }
            }
            if !cpu.siblings.contains(&cpu.id) {
                return Err(TopologyError::Siblings {
                    cpu: cpu.id,
                    sibling: cpu.id,
                });
            }
        }
        Ok(topology)
    }

    /// The CPUs.
    #[must_use]
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The CPU of that number, if it is online.
    #[must_use]
    pub fn cpu(&self, id: u32) -> Option<&Cpu> {
        let place = self.cpus.binary_search_by_key(&id, |cpu| cpu.id).ok()?;
        Some(&self.cpus[place])
    }
}

/// The CPUs that are near to each memory; none where the kernel knows of one memory only.
fn nodes(read: &impl Fn(&str) -> Option<String>) -> Result<Vec<(u32, Vec<u32>)>, TopologyError> {
    match cpus(read, &format!("{NODES}/online")) {
        Err(TopologyError::Missing { .. }) => Ok(Vec::new()),
        nodes => nodes?
            .into_iter()
            .map(|node| Ok((node, cpus(read, &format!("{NODES}/node{node}/cpulist"))?)))
            .collect(),
    }
}

fn text(read: &impl Fn(&str) -> Option<String>, path: &str) -> Result<String, TopologyError> {
    read(path).ok_or_else(|| TopologyError::Missing { path: path.into() })
}

/// A number; none where the kernel says -1, because the machine does not tell.
fn number(
    read: &impl Fn(&str) -> Option<String>,
    path: &str,
) -> Result<Option<u32>, TopologyError> {
    let text = text(read, path)?;
    match text.trim_end() {
        "-1" => Ok(None),
        digits if is_number(digits) => Ok(digits.parse().ok()),
        _ => Err(TopologyError::Malformed {
            path: path.into(),
            expected: "a number",
            text,
        }),
    }
}

/// A list of CPUs or nodes, ascending.
fn cpus(read: &impl Fn(&str) -> Option<String>, path: &str) -> Result<Vec<u32>, TopologyError> {
    let text = text(read, path)?;
    parse_cpu_list(&text).ok_or_else(|| TopologyError::Malformed {
        path: path.into(),
        expected: "a list of CPUs",
        text,
    })
}

/// The numbers of a list as `0-3,8`, ascending, each below [`CPUS_MAX`].
fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let text = text.trim_end();
    let mut cpus: Vec<u32> = Vec::new();
    if text.is_empty() {
        return Some(cpus);
    }
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if !is_number(first) || !is_number(last) {
            return None;
        }
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        let is_ascending = cpus.last().is_none_or(|&previous| previous < first);
        if first > last || last >= CPUS_MAX || !is_ascending {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Whether the text is a number that fits.
// `parse` alone would take a sign.
fn is_number(text: &str) -> bool {
    text.bytes().all(|digit| digit.is_ascii_digit()) && text.parse::<u32>().is_ok()
}

/// Topologies in place of recordings: written from what is known of these machines, in the numbering
/// that Linux gives their CPUs, not taken from the machines themselves.
#[cfg(test)]
pub(crate) mod machines {
    use super::*;
    use std::collections::BTreeMap;

    /// 8 cores with 2 threads, which are numbered one after the other.
    pub(crate) const RYZEN_8845HS: &str = "\
        cpu core package node siblings
        0   0    0       0    0-1
        1   0    0       0    0-1
        2   1    0       0    2-3
        3   1    0       0    2-3
        4   2    0       0    4-5
        5   2    0       0    4-5
        6   3    0       0    6-7
        7   3    0       0    6-7
        8   4    0       0    8-9
        9   4    0       0    8-9
        10  5    0       0    10-11
        11  5    0       0    10-11
        12  6    0       0    12-13
        13  6    0       0    12-13
        14  7    0       0    14-15
        15  7    0       0    14-15";

    /// 8 cores with 1 thread.
    pub(crate) const ATOM_C2758: &str = "\
        cpu core package node siblings
        0   0    0       0    0
        1   1    0       0    1
        2   2    0       0    2
        3   3    0       0    3
        4   4    0       0    4
        5   5    0       0    5
        6   6    0       0    6
        7   7    0       0    7";

    /// A virtual machine with 2 CPUs and nothing known of what they share.
    pub(crate) const VIRTUAL_2: &str = "\
        cpu core package node siblings
        0   0    0       0    0
        1   1    0       0    1";

    /// 2 packages of 12 cores with 2 threads: all first threads are numbered before all second ones, and
    /// the numbers of cores have a gap.
    pub(crate) fn xeon_2x12() -> String {
        let mut table = String::from("cpu core package node siblings");
        for cpu in 0..48 {
            let core = [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13][cpu % 12];
            let (package, first) = (cpu % 24 / 12, cpu % 24);
            table += &format!("\n{cpu} {core} {package} {package} {first},{}", first + 24);
        }
        table
    }

    /// The files that such a table stands for.
    pub(crate) fn files(table: &str) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut nodes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in table.lines().skip(1) {
            let line: Vec<&str> = line.split_whitespace().collect();
            let &[cpu, core, package, node, siblings] = line.as_slice() else {
                panic!("five columns");
            };
            let mut file = |name: &str, text: &str| {
                files.insert(
                    format!("{CPUS}/cpu{cpu}/topology/{name}"),
                    format!("{text}\n"),
                )
            };
            file("core_id", core);
            file("physical_package_id", package);
            file("thread_siblings_list", siblings);
            nodes.entry(node).or_default().push(cpu);
        }
        let cpus: Vec<&str> = nodes.values().flatten().copied().collect();
        let list = |cpus: &[&str]| {
            let mut cpus: Vec<u32> = cpus.iter().map(|cpu| cpu.parse().unwrap()).collect();
            cpus.sort_unstable();
            cpus.iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(",")
                + "\n"
        };
        files.insert(format!("{CPUS}/online"), list(&cpus));
        let ids: Vec<&str> = nodes.keys().copied().collect();
        files.insert(format!("{NODES}/online"), list(&ids));
        for (node, cpus) in &nodes {
            files.insert(format!("{NODES}/node{node}/cpulist"), list(cpus));
        }
        files
    }

    pub(crate) fn machine(table: &str) -> Topology {
        let files = files(table);
        Topology::read(|path| files.get(path).cloned()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::machines::{ATOM_C2758, RYZEN_8845HS, VIRTUAL_2, files, machine, xeon_2x12};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn read(files: &BTreeMap<String, String>) -> Result<Topology, TopologyError> {
        Topology::read(|path| files.get(path).cloned())
    }

    #[test]
    fn machines_are_read() {
        let siblings = |table: &str, id| machine(table).cpu(id).unwrap().siblings.clone();
        assert_eq!(machine(RYZEN_8845HS).cpus().len(), 16);
        assert_eq!(siblings(RYZEN_8845HS, 5), [4, 5]);
        assert_eq!(machine(ATOM_C2758).cpus().len(), 8);
        assert_eq!(siblings(ATOM_C2758, 7), [7]);
        assert_eq!(machine(VIRTUAL_2).cpus().len(), 2);
        let xeon = machine(&xeon_2x12());
        assert_eq!(xeon.cpus().len(), 48);
        assert_eq!(
            xeon.cpu(42),
            Some(&Cpu {
                id: 42,
                core: 8,
                package: 1,
                node: 1,
                siblings: vec![18, 42]
            })
        );
        assert_eq!(xeon.cpu(48), None);
    }

    #[test]
    fn cpus_that_are_offline_are_nobodys_siblings() {
        let mut files = files(RYZEN_8845HS);
        files.insert(format!("{CPUS}/online"), "0-2,4-15\n".into());
        files.retain(|path, _| !path.contains("/cpu3/"));
        let machine = read(&files).unwrap();
        assert_eq!(machine.cpus().len(), 15);
        assert_eq!(machine.cpu(2).unwrap().siblings, [2]);
        assert_eq!(machine.cpu(3), None);
    }

    #[test]
    fn what_a_kernel_does_not_tell_is_made_up() {
        let mut files = files(RYZEN_8845HS);
        files.retain(|path, _| !path.starts_with(NODES));
        for (path, text) in &mut files {
            if path.ends_with("_id") {
                *text = "-1\n".into();
            }
        }
        let siblings: Vec<String> = files
            .keys()
            .filter(|path| path.ends_with("thread_siblings_list"))
            .cloned()
            .collect();
        for path in siblings {
            let text = files.remove(&path).unwrap();
            files.insert(path.replace("thread_siblings_list", "core_cpus_list"), text);
        }
        let cpu = read(&files).unwrap().cpu(5).unwrap().clone();
        assert_eq!((cpu.core, cpu.package, cpu.node), (5, 0, 0));
        assert_eq!(cpu.siblings, [4, 5]);
    }

    #[test]
    fn every_file_that_is_missing_is_named() {
        let whole = files(RYZEN_8845HS);
        for path in whole
            .keys()
            .filter(|path| *path != &format!("{NODES}/online"))
        {
            let mut files = whole.clone();
            files.remove(path);
            let missing = match read(&files) {
                Err(TopologyError::Missing { path }) => {
                    path.replace("core_cpus_list", "thread_siblings_list")
                }
                other => panic!("{path}: {other:?}"),
            };
            assert_eq!(&missing, path);
        }
    }

    #[test]
    fn every_file_that_is_malformed_is_named_with_its_text() {
        let whole = files(RYZEN_8845HS);
        for path in whole.keys() {
            for text in [
                "x\n",
                "0-\n",
                "-2\n",
                "+1\n",
                "1,0\n",
                "99999999999\n",
                "0-9999999\n",
            ] {
                let mut files = whole.clone();
                files.insert(path.clone(), text.into());
                let error = read(&files).unwrap_err();
                assert!(error.to_string().starts_with(path.as_str()), "{error}");
                assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
            }
        }
        let mut files = whole;
        files.insert(format!("{CPUS}/online"), "\n".into());
        assert_eq!(
            read(&files).unwrap_err().to_string(),
            "/sys/devices/system/cpu/online: names no CPU; report it with the file"
        );
    }

    #[test]
    fn cpus_that_disagree_about_their_core_are_refused() {
        for text in ["0-2\n", "0\n", "1\n", "\n"] {
            let mut files = files(RYZEN_8845HS);
            files.insert(
                format!("{CPUS}/cpu0/topology/thread_siblings_list"),
                text.into(),
            );
            let error = read(&files).unwrap_err();
            assert!(
                matches!(error, TopologyError::Siblings { .. }),
                "{text:?}: {error}"
            );
        }
    }

    proptest! {
        #[test]
        fn lists_read_back(cpus in proptest::collection::btree_set(0..CPUS_MAX, 0..50)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            let ranges = cpus.chunk_by(|a, b| a + 1 == *b);
            let text: Vec<String> = ranges
                .map(|range| match range {
                    [one] => one.to_string(),
                    _ => format!("{}-{}", range[0], range[range.len() - 1]),
                })
                .collect();
            prop_assert_eq!(parse_cpu_list(&(text.join(",") + "\n")), Some(cpus));
        }

        #[test]
        fn any_text_is_a_list_or_refused(text in "[-0-9, \n]{0,20}|.*") {
            if let Some(cpus) = parse_cpu_list(&text) {
                prop_assert!(cpus.is_sorted_by(|a, b| a < b) && cpus.iter().all(|&c| c < CPUS_MAX));
            }
        }

        #[test]
        fn any_files_are_read_or_refused(texts in proptest::collection::vec("[-0-9,]{0,6}\n?", 8)) {
            let _ = Topology::read(|path| {
                let place = path.bytes().map(usize::from).sum::<usize>();
                Some(texts[place % texts.len()].clone())
            });
        }
    }
}
