//! From the links that drop when a port is set down, and the ports that frames of another reach, to cables.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::facts::{End, Side};

/// By what a cable is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// One end's link dropped when the other end was set down.
    Link,
    /// Frames that one end sent were counted at the other: something may be in between.
    Frames,
}

/// A cable between the tester and the DUT.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cable {
    /// The DUT's port.
    pub dut: String,
    /// The tester's port.
    pub tester: String,
    /// By what it is known.
    pub by: Proof,
}

/// What follows from all that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cabling {
    /// Between the two hosts.
    pub cables: Vec<Cable>,
    /// Ports of one host that are cabled to each other.
    pub loops: Vec<[End; 2]>,
    /// Ports that belong together, but not in pairs.
    pub ambiguous: Vec<Vec<End>>,
    /// Ports with a link whose other end was not found.
    pub alone: Vec<End>,
}

/// A search for cables: says which port is to be set down next, and is told which links dropped then.
#[derive(Clone, Debug)]
pub struct Search {
    linked: BTreeSet<End>,
    /// Those of them that may be set down, in the order in which they are.
    may_set: Vec<End>,
    /// What each port that was asked showed.
    seen: BTreeMap<End, (Proof, BTreeSet<End>)>,
}

impl Search {
    /// Of ports with a link, some of which may be set down.
    #[must_use]
    pub fn new(linked: BTreeSet<End>, may_set: &BTreeSet<End>) -> Self {
        let mut may_set: Vec<End> = may_set.intersection(&linked).cloned().collect();
        // One end of a cable is enough. The tester's first: a DUT is more often somebody's.
        may_set.sort_by_key(|end| end.side == Side::Dut);
        Self {
            linked,
            may_set,
            seen: BTreeMap::new(),
        }
    }

    /// The port to set down next; none where no port can tell more.
    #[must_use]
    pub fn poll_port(&self) -> Option<End> {
        let settled: BTreeSet<End> = self.pairs().into_keys().flatten().collect();
        let mut left = self.may_set.iter();
        let next = left.find(|end| !self.seen.contains_key(*end) && !settled.contains(*end));
        next.cloned()
    }

    /// A port was set down, and these links dropped.
    pub fn note_dropped(&mut self, of: End, mut dropped: BTreeSet<End>) {
        dropped.retain(|end| *end != of && self.linked.contains(end));
        self.seen.insert(of, (Proof::Link, dropped));
    }

    /// The ports of a side with a link that no drop has told of: those that frames are to be sent from or to.
    #[must_use]
    pub fn unknown(&self, side: Side) -> Vec<End> {
        let known: BTreeSet<&End> = self.seen.values().flat_map(|(_, ends)| ends).collect();
        let is_unknown = |end: &&End| {
            let showed = self
                .seen
                .get(*end)
                .is_some_and(|(_, ends)| !ends.is_empty());
            end.side == side && !showed && !known.contains(end)
        };
        self.linked.iter().filter(is_unknown).cloned().collect()
    }

    /// Frames of a port of which nothing is known were counted at these.
    pub fn note_reached(&mut self, of: End, reached: BTreeSet<End>) {
        self.seen.insert(of, (Proof::Frames, reached));
    }

    /// Pairs of ends of which each has no other, and by what that is known.
    fn pairs(&self) -> BTreeMap<[End; 2], Proof> {
        let mut seen = self.seen.clone();
        let mut pairs: BTreeMap<[End; 2], Proof> = BTreeMap::new();
        loop {
            // What showed one port alone says most: of what showed several, others can be the cause.
            let single = seen.iter().filter_map(|(of, (by, ends))| {
                let other = ends.first().filter(|_| ends.len() == 1)?;
                Some((pair(of, other), *by))
            });
            let claims: BTreeMap<[End; 2], Proof> = single.collect();
            let times = |end: &End| claims.keys().filter(|pair| pair.contains(end)).count();
            let is_held = |pair: &[End; 2]| {
                pair.iter().all(|end| times(end) == 1) && !is_contradicted(&seen, pair)
            };
            let held = claims.iter().filter(|(pair, _)| is_held(pair));
            let held: BTreeMap<[End; 2], Proof> =
                held.map(|(pair, by)| (pair.clone(), *by)).collect();
            if held.is_empty() {
                return pairs;
            }
            let known: BTreeSet<&End> = held.keys().flatten().collect();
            seen.retain(|of, _| !known.contains(of));
            for (_, ends) in seen.values_mut() {
                ends.retain(|end| !known.contains(end));
            }
            pairs.extend(held);
        }
    }

    /// What follows from what was seen so far.
    #[must_use]
    pub fn cabling(&self) -> Cabling {
        let pairs = self.pairs();
        let known: BTreeSet<&End> = pairs.keys().flatten().collect();
        let mut cabling = Cabling::default();
        for ([one, other], by) in &pairs {
            match (one.side, other.side) {
                (Side::Dut, Side::Tester) => cabling.cables.push(Cable {
                    dut: one.port.clone(),
                    tester: other.port.clone(),
                    by: *by,
                }),
                _ => cabling.loops.push([one.clone(), other.clone()]),
            }
        }
        let mut groups: Vec<BTreeSet<End>> = Vec::new();
        for (of, (_, ends)) in &self.seen {
            let mut group: BTreeSet<End> = ends.iter().chain([of]).cloned().collect();
            group.retain(|end| !known.contains(end));
            if group.len() < 2 {
                continue;
            }
            let is_joined = |other: &BTreeSet<End>| !group.is_disjoint(other);
            let (joined, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_joined);
            groups = apart;
            group.extend(joined.into_iter().flatten());
            groups.push(group);
        }
        let unclear: BTreeSet<End> = groups.iter().flatten().cloned().collect();
        let left = self.linked.iter();
        let left = left.filter(|end| !known.contains(end) && !unclear.contains(*end));
        cabling.alone = left.cloned().collect();
        let groups = groups.into_iter();
        cabling.ambiguous = groups.map(|group| group.into_iter().collect()).collect();
        cabling.ambiguous.sort();
        cabling
    }
}

fn pair(one: &End, other: &End) -> [End; 2] {
    let mut pair = [one.clone(), other.clone()];
    pair.sort();
    pair
}

/// Whether an end of a pair showed something, and not the other end.
fn is_contradicted(seen: &BTreeMap<End, (Proof, BTreeSet<End>)>, [one, other]: &[End; 2]) -> bool {
    let lacks = |of: &End, end: &End| {
        let showed = seen.get(of).map(|(_, ends)| ends);
        showed.is_some_and(|ends| !ends.is_empty() && !ends.contains(end))
    };
    lacks(one, other) || lacks(other, one)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn end(side: Side, number: usize) -> End {
        let port = format!("eth{number}");
        End { side, port }
    }

    fn dut(number: usize) -> End {
        end(Side::Dut, number)
    }

    fn tester(number: usize) -> End {
        end(Side::Tester, number)
    }

    /// Searches where each port that is set down takes others along.
    fn search(
        linked: &BTreeSet<End>,
        may_set: &BTreeSet<End>,
        drops: impl Fn(&End) -> BTreeSet<End>,
    ) -> (Cabling, usize) {
        let mut search = Search::new(linked.clone(), may_set);
        let mut asked = 0;
        while let Some(end) = search.poll_port() {
            assert!(may_set.contains(&end) && linked.contains(&end), "{end}");
            asked += 1;
            assert!(asked <= linked.len());
            let dropped = drops(&end);
            search.note_dropped(end, dropped);
        }
        (search.cabling(), asked)
    }

    fn ends<const N: usize>(ends: [End; N]) -> BTreeSet<End> {
        ends.into()
    }

    #[test]
    fn two_cables_are_found_by_setting_down_two_ports() {
        let all = ends([dut(1), dut(2), tester(1), tester(2)]);
        let (cabling, asked) = search(&all, &all, |end| match end.side {
            Side::Tester => ends([End {
                side: Side::Dut,
                ..end.clone()
            }]),
            Side::Dut => panic!("the tester's ports tell all"),
        });
        assert_eq!(asked, 2);
        let found: Vec<(&str, &str)> = cabling
            .cables
            .iter()
            .map(|cable| (&*cable.dut, &*cable.tester))
            .collect();
        assert_eq!(found, [("eth1", "eth1"), ("eth2", "eth2")]);
        assert!(cabling.ambiguous.is_empty() && cabling.alone.is_empty());
    }

    #[test]
    fn ports_of_one_host_are_a_loop_and_no_cable() {
        let all = ends([dut(1), tester(1), tester(2), tester(3)]);
        let (cabling, _) = search(&all, &all, |end| match &*end.port {
            "eth2" => ends([tester(3)]),
            "eth3" => ends([tester(2)]),
            _ => BTreeSet::new(),
        });
        assert_eq!(cabling.loops, [[tester(2), tester(3)]]);
        assert_eq!(cabling.cables, []);
        assert_eq!(cabling.alone, [dut(1), tester(1)]);
    }

    #[test]
    fn a_card_that_takes_its_other_port_along_is_found_by_the_other_host() {
        let all = ends([dut(1), dut(2), tester(1), tester(2)]);
        let (cabling, _) = search(&all, &all, |end| match end.side {
            Side::Tester => all.clone(),
            Side::Dut => ends([End {
                side: Side::Tester,
                ..end.clone()
            }]),
        });
        assert_eq!(cabling.cables.len(), 2, "{cabling:?}");
        assert!(cabling.cables.iter().all(|cable| cable.dut == cable.tester));
        // Where the other host's ports may not be set down, nothing tells them apart.
        let testers = ends([tester(1), tester(2)]);
        let (cabling, _) = search(&all, &testers, |_| all.clone());
        assert_eq!(cabling.cables, []);
        assert_eq!(cabling.ambiguous, [Vec::from_iter(all)]);
    }

    #[test]
    fn two_ports_that_say_the_same_of_a_third_are_said_to_be_unclear() {
        let all = ends([dut(1), tester(1), tester(2)]);
        let (cabling, _) = search(&all, &all, |end| match end.side {
            Side::Tester => ends([dut(1)]),
            Side::Dut => ends([tester(1), tester(2)]),
        });
        assert_eq!(cabling.cables, []);
        assert_eq!(cabling.ambiguous, [Vec::from_iter(all)]);
    }

    #[test]
    fn frames_decide_where_no_link_drops() {
        let all = ends([dut(1), dut(2), tester(1), tester(2)]);
        let mut search = Search::new(all.clone(), &all);
        while let Some(end) = search.poll_port() {
            search.note_dropped(end, BTreeSet::new());
        }
        assert_eq!(search.unknown(Side::Tester), [tester(1), tester(2)]);
        assert_eq!(search.unknown(Side::Dut), [dut(1), dut(2)]);
        search.note_reached(tester(1), ends([dut(2)]));
        search.note_reached(tester(2), ends([dut(1), dut(2)]));
        let cabling = search.cabling();
        assert_eq!(cabling.cables.len(), 2, "{cabling:?}");
        assert_eq!(cabling.cables[1].tester, "eth1");
        assert_eq!(cabling.cables[1].by, Proof::Frames);
    }

    /// Ports of both hosts in a random order, the first of them in pairs, and for each whether it may be set down and
    /// whether its own end goes dark when it is.
    fn cabled() -> impl Strategy<Value = (Vec<End>, usize, Vec<(bool, bool)>)> {
        (0_usize..6, 0_usize..6).prop_flat_map(|(duts, testers)| {
            let all: Vec<End> = (0..duts).map(dut).chain((0..testers).map(tester)).collect();
            let count = all.len();
            (
                Just(all).prop_shuffle(),
                0..=count / 2,
                prop::collection::vec(any::<(bool, bool)>(), count),
            )
        })
    }

    proptest! {
        #[test]
        fn any_cabling_is_found_or_said_to_be_unknown((all, pairs, kinds) in cabled()) {
            let other = |end: &End| {
                let place = all.iter().position(|known| known == end).unwrap();
                (place < 2 * pairs).then(|| all[place ^ 1].clone())
            };
            let kind = |end: &End| kinds[all.iter().position(|known| known == end).unwrap()];
            let linked = BTreeSet::from_iter(all.iter().cloned());
            let may_set = BTreeSet::from_iter(all.iter().filter(|end| kind(end).0).cloned());
            // A port that stays lit when it is set down shows nothing.
            let drops = |end: &End| other(end).filter(|_| kind(end).1).into_iter().collect::<BTreeSet<End>>();
            let (cabling, _) = search(&linked, &may_set, drops);
            let mut found = BTreeSet::new();
            for cable in &cabling.cables {
                found.insert([
                    End { side: Side::Dut, port: cable.dut.clone() },
                    End { side: Side::Tester, port: cable.tester.clone() },
                ]);
            }
            found.extend(cabling.loops.iter().cloned());
            let tells = |end: &End| kind(end) == (true, true);
            let expected: BTreeSet<[End; 2]> = all[..2 * pairs]
                .chunks(2)
                .filter(|ends| ends.iter().any(tells))
                .map(|ends| pair(&ends[0], &ends[1]))
                .collect();
            prop_assert_eq!(&found, &expected);
            prop_assert!(cabling.ambiguous.is_empty());
            let alone: BTreeSet<&End> = cabling.alone.iter().collect();
            prop_assert!(all.iter().all(|end| alone.contains(end) != found.iter().flatten().any(|of| of == end)));
        }

        #[test]
        fn whatever_drops_no_port_is_in_two_cables(
            all in prop::collection::btree_set((any::<bool>(), 0_usize..4), 0..8),
            drops in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 8),
        ) {
            let all: Vec<End> = all.iter().map(|(is_dut, number)| if *is_dut { dut(*number) } else { tester(*number) }).collect();
            let linked = BTreeSet::from_iter(all.iter().cloned());
            let of = |end: &End| {
                let place = all.iter().position(|known| known == end).unwrap();
                drops[place].iter().map(|index| index.get(&all).clone()).collect::<BTreeSet<End>>()
            };
            let (cabling, _) = search(&linked, &linked, of);
            let cables = cabling.cables.iter().flat_map(|cable| {
                [(Side::Dut, &cable.dut), (Side::Tester, &cable.tester)]
            });
            let mut named: Vec<End> = cables.map(|(side, port)| End { side, port: port.clone() }).collect();
            named.extend(cabling.loops.into_iter().flatten());
            named.extend(cabling.ambiguous.into_iter().flatten());
            named.extend(cabling.alone);
            named.sort();
            // Each port with a link is somewhere, and once.
            prop_assert_eq!(named, Vec::from_iter(linked));
        }
    }
}
