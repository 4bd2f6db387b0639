//! Whatever the routes, every table finds what a scan of all of them finds.
#![allow(
    clippy::cast_possible_truncation,
    reason = "random bits are cut to size"
)]
use std::collections::HashMap;
use std::fmt::Debug;
use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

type Routes<A> = Vec<(Prefix<A>, NextHopId)>;

fn next_hop(number: u16) -> NextHopId {
    NextHopId::new(number).unwrap()
}

fn prefix<A: Address>(number: u128, length: u8) -> Prefix<A> {
    let number = number & (u128::MAX >> (128 - A::BITS));
    let behind = u32::from(A::BITS - length);
    let network = number
        .checked_shr(behind)
        .unwrap_or(0)
        .checked_shl(behind)
        .unwrap_or(0);
    Prefix::new(A::numbered(network), length).unwrap()
}

/// What is to be shown: every route is looked at, and the longest that fits is taken.
fn linear_scan<A: Address>(routes: &Routes<A>, destination: u128) -> NextHopId {
    routes
        .iter()
        .filter(|(prefix, _)| (prefix.first()..=prefix.last()).contains(&destination))
        .max_by_key(|(prefix, _)| prefix.length())
        .map_or(NextHopId::NONE, |(_, next_hop)| *next_hop)
}

/// Another way to do it, for more routes than can be scanned: one exact lookup for each length.
struct ByLength<A>(HashMap<Prefix<A>, NextHopId>);

impl<A: Address + std::hash::Hash> ByLength<A> {
    fn new(routes: &Routes<A>) -> Self {
        Self(routes.iter().copied().collect())
    }

    fn lookup(&self, destination: u128) -> NextHopId {
        (0..=A::BITS)
            .rev()
            .find_map(|length| self.0.get(&prefix(destination, length)))
            .copied()
            .unwrap_or(NextHopId::NONE)
    }
}

/// The addresses at and beside both ends of every prefix, and those of the address space.
fn boundaries<A: Address>(routes: &Routes<A>) -> Vec<u128> {
    let top = u128::MAX >> (128 - A::BITS);
    let ends = routes
        .iter()
        .flat_map(|(prefix, _)| [prefix.first(), prefix.last()]);
    ends.chain([0, top])
        .flat_map(|end| [end.saturating_sub(1), end, end.saturating_add(1).min(top)])
        .collect()
}

/// What every table says of these addresses, one by one and as vectors.
trait Table<A>: Sized {
    fn of(routes: &Routes<A>) -> Result<Self, FibError>;
    fn one(&self, destination: u128) -> NextHopId;
    fn vector(&self, destinations: &[u128]) -> Vec<NextHopId>;
}

impl Table<Ipv4Addr> for InetFib {
    fn of(routes: &Routes<Ipv4Addr>) -> Result<Self, FibError> {
        Self::build(routes)
    }

    fn one(&self, destination: u128) -> NextHopId {
        let destination = destination.try_into().unwrap();
        self.prefetch(destination);
        self.lookup(destination)
    }

    fn vector(&self, destinations: &[u128]) -> Vec<NextHopId> {
        let destinations: Vec<u32> = destinations
            .iter()
            .map(|&d| d.try_into().unwrap())
            .collect();
        let mut into = vec![NextHopId::MAX; destinations.len()];
        self.lookup_vector(&destinations, &mut into);
        into
    }
}

impl Table<Ipv6Addr> for Inet6Fib {
    fn of(routes: &Routes<Ipv6Addr>) -> Result<Self, FibError> {
        Self::build(routes)
    }

    fn one(&self, destination: u128) -> NextHopId {
        self.prefetch(destination);
        self.lookup(destination)
    }

    fn vector(&self, destinations: &[u128]) -> Vec<NextHopId> {
        let mut into = vec![NextHopId::MAX; destinations.len()];
        self.lookup_vector(destinations, &mut into);
        let mut prefetched = vec![NextHopId::MAX; destinations.len()];
        self.lookup_vector_prefetching(destinations, &mut prefetched);
        assert_eq!(prefetched, into);
        into
    }
}

fn assert_answers<A: Address + Debug, T: Table<A>>(
    routes: &Routes<A>,
    destinations: &[u128],
    expected: impl Fn(u128) -> NextHopId,
) {
    let table = T::of(routes).unwrap();
    let vector = table.vector(destinations);
    for (&destination, from_vector) in destinations.iter().zip(vector) {
        let address = A::numbered(destination);
        let expected = expected(destination);
        assert_eq!(table.one(destination), expected, "{address} in {routes:?}");
        assert_eq!(
            from_vector, expected,
            "{address} in a vector, in {routes:?}"
        );
    }
}

/// Routes near each other, so that they nest and touch: few distinct bits, at any place, all lengths.
fn routes<A: Address + Debug + std::hash::Hash>() -> impl Strategy<Value = Routes<A>> {
    let number = prop_oneof![
        any::<u128>(),
        (any::<u8>(), 0..A::BITS).prop_map(|(bits, place)| u128::from(bits) << place),
        (any::<u8>(), 0..A::BITS).prop_map(|(bits, place)| !(u128::from(bits) << place)),
    ];
    let length = prop_oneof![4 => 0..=A::BITS, 1 => Just(0), 1 => Just(A::BITS)];
    let route = (number, length, 1_u16..6).prop_map(|(number, length, number_of_next_hop)| {
        (prefix(number, length), next_hop(number_of_next_hop))
    });
    proptest::collection::hash_map(route.clone().prop_map(|route| route.0), 1_u16..6, 0..40)
        .prop_map(|routes| {
            let routes = routes.into_iter();
            routes
                .map(|(prefix, number)| (prefix, next_hop(number)))
                .collect()
        })
}

/// Numbers that look random, the same in every run: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    fn routes<A: Address + std::hash::Hash>(
        &mut self,
        count: usize,
        mut draw: impl FnMut(&mut Self) -> (u128, u8),
    ) -> Routes<A> {
        let mut routes = HashMap::new();
        while routes.len() < count {
            let (number, length) = draw(self);
            let number_of_next_hop = u16::try_from(1 + self.below(0x7fff)).unwrap();
            routes.insert(prefix(number, length), next_hop(number_of_next_hop));
        }
        routes.into_iter().collect()
    }
}

/// Boundaries of every third route, and as many addresses from `draw`.
fn assert_like_lookups_by_length<A: Address + Debug + std::hash::Hash, T: Table<A>>(
    routes: &Routes<A>,
    mut draw: impl FnMut() -> u128,
) {
    let mut destinations = boundaries(&routes.iter().step_by(3).copied().collect());
    destinations.extend((0..destinations.len()).map(|_| draw()));
    let by_length = ByLength::new(routes);
    let table = T::of(routes).unwrap();
    let vector = table.vector(&destinations);
    for (&destination, from_vector) in destinations.iter().zip(vector) {
        let expected = by_length.lookup(destination);
        assert_eq!(
            table.one(destination),
            expected,
            "{}",
            A::numbered(destination)
        );
        assert_eq!(from_vector, expected, "{}", A::numbered(destination));
    }
}

proptest! {
    #[test]
    fn ipv6_is_what_a_linear_scan_finds(
        routes in routes::<Ipv6Addr>(),
        others in proptest::collection::vec(any::<u128>(), 0..20),
    ) {
        let destinations = [boundaries(&routes), others].concat();
        assert_answers::<_, Inet6Fib>(&routes, &destinations, |d| linear_scan(&routes, d));
    }
}

proptest! {
    // A table takes milliseconds where a short prefix fills it.
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn ipv4_is_what_a_linear_scan_finds(
        routes in routes::<Ipv4Addr>(),
        others in proptest::collection::vec(any::<u32>(), 0..20),
    ) {
        let others = others.into_iter().map(u128::from).collect();
        let destinations = [boundaries(&routes), others].concat();
        assert_answers::<_, InetFib>(&routes, &destinations, |d| linear_scan(&routes, d));
    }
}

/// A route for every length along one address: as deep as routes can nest.
fn nested<A: Address>(along: u128) -> Routes<A> {
    (0..=A::BITS)
        .map(|length| (prefix(along, length), next_hop(u16::from(length) + 1)))
        .collect()
}

#[test]
fn every_length_nested_in_the_one_before_is_found() {
    for along in [
        0,
        u128::MAX,
        0x2001_0db8_5a5a_3c3c_f0f0_0ff0_a5a5_5a5a,
        1 << 127,
        1,
    ] {
        let routes = nested::<Ipv6Addr>(along);
        assert_answers::<_, Inet6Fib>(&routes, &boundaries(&routes), |d| linear_scan(&routes, d));
        let routes = nested::<Ipv4Addr>(along);
        assert_answers::<_, InetFib>(&routes, &boundaries(&routes), |d| linear_scan(&routes, d));
    }
}

#[test]
fn prefixes_that_touch_keep_their_own_next_hops() {
    for length in [7, 16, 17, 24, 25, 31, 32] {
        let routes: Routes<Ipv4Addr> = (0..2_u128.pow(7))
            .map(|place| {
                (
                    prefix(place << (32 - length), length),
                    next_hop(1 + place as u16 % 3),
                )
            })
            .collect();
        assert_answers::<_, InetFib>(&routes, &boundaries(&routes), |d| linear_scan(&routes, d));
    }
    for length in [16, 17, 48, 63, 64, 65, 127, 128] {
        let routes: Routes<Ipv6Addr> = (0..500)
            .map(|place| {
                (
                    prefix(place << (128 - length), length),
                    next_hop(1 + place as u16 % 3),
                )
            })
            .collect();
        assert_answers::<_, Inet6Fib>(&routes, &boundaries(&routes), |d| linear_scan(&routes, d));
    }
}

#[test]
fn without_routes_nothing_has_a_next_hop() {
    assert!(InetFib::build(&[]).unwrap().lookup(7).is_none());
    assert!(Inet6Fib::build(&[]).unwrap().lookup(7).is_none());
    InetFib::build(&[]).unwrap().lookup_vector(&[], &mut []);
    Inet6Fib::build(&[]).unwrap().lookup_vector(&[], &mut []);
}

#[test]
fn what_is_longer_than_the_vector_stays_as_it_is() {
    let route = ("::/0".parse().unwrap(), next_hop(3));
    let mut into = [NextHopId::MAX; 100];
    Inet6Fib::build(&[route])
        .unwrap()
        .lookup_vector(&[0; 99], &mut into);
    assert_eq!((into[98], into[99]), (next_hop(3), NextHopId::MAX));
}

#[test]
fn routes_that_contradict_each_other_are_named() {
    let route = |text: &str| (text.parse::<Ipv6Prefix>().unwrap(), next_hop(1));
    let routes = [
        route("2001:db8::/32"),
        route("::/0"),
        route("2001:db8::/32"),
    ];
    assert_eq!(
        Inet6Fib::build(&routes).unwrap_err().to_string(),
        "route 2001:db8::/32: given more than once; keep one"
    );
    let nowhere = (
        "198.18.0.0/15".parse::<Ipv4Prefix>().unwrap(),
        NextHopId::NONE,
    );
    assert_eq!(
        InetFib::build(&[nowhere]).unwrap_err().to_string(),
        "route 198.18.0.0/15: has no next hop; give one from 1 to 32767, or leave it out"
    );
}

#[test]
fn next_hops_are_numbered_from_one() {
    assert_eq!(NextHopId::new(0), None);
    assert_eq!(NextHopId::new(0x8000), None);
    assert_eq!(NextHopId::new(0x7fff), Some(NextHopId::MAX));
    assert_eq!(NextHopId::default(), NextHopId::NONE);
    assert_eq!(next_hop(7).index(), 7);
}

#[test]
fn many_ipv4_routes_agree_with_lookups_by_length() {
    let mut numbers = Numbers(1);
    // Lengths as in the Internet's table: most of 24 bits.
    let routes = numbers.routes::<Ipv4Addr>(120_000, |numbers| {
        let length = match numbers.below(10) {
            0..6 => 24,
            6..9 => 16 + numbers.below(8),
            _ => numbers.below(33),
        };
        (numbers.wide(), length as u8)
    });
    assert_like_lookups_by_length::<_, InetFib>(&routes, || numbers.below(1 << 32).into());
    // More /24 with longer prefixes in one /9 than fit before it, and a full one.
    let routes = numbers.routes::<Ipv4Addr>(100_000, |numbers| {
        (numbers.below(3 << 23).into(), 25 + numbers.below(8) as u8)
    });
    assert_like_lookups_by_length::<_, InetFib>(&routes, || numbers.below(1 << 25).into());
}

#[test]
fn a_nine_full_of_groups_can_number_them_all() {
    let mut routes: Routes<Ipv4Addr> = (0..1_u128 << 15)
        .map(|place| {
            let number = u16::try_from(place % 0x7fff).unwrap() + 1;
            (prefix(0x0a80_0001 + (place << 8), 32), next_hop(number))
        })
        .collect();
    for outside in [0x0a00_0003, 0x0b00_0003, 0x0b80_0003] {
        routes.push((prefix(outside, 31), next_hop(7)));
    }
    assert_like_lookups_by_length::<_, InetFib>(&routes, || 0x0aff_ff01);
}

#[test]
fn many_ipv6_routes_agree_with_lookups_by_length() {
    let mut numbers = Numbers(2);
    let global = |number: u128| (1 << 125) | (number >> 3);
    let within = |number: u128, length: u32| 0x2001_0db8 << 96 | (number >> length);
    let spread = numbers.routes::<Ipv6Addr>(100_000, |numbers| {
        (global(numbers.wide()), 16 + numbers.below(49) as u8)
    });
    assert_like_lookups_by_length::<_, Inet6Fib>(&spread, || global(numbers.wide()));
    let in_one_32 = numbers.routes::<Ipv6Addr>(100_000, |numbers| {
        (within(numbers.wide(), 32), 33 + numbers.below(96) as u8)
    });
    assert_like_lookups_by_length::<_, Inet6Fib>(&in_one_32, || within(numbers.wide(), 31));
    let in_one_64 = numbers.routes::<Ipv6Addr>(100_000, |numbers| {
        (within(numbers.wide(), 64), 65 + numbers.below(64) as u8)
    });
    assert_like_lookups_by_length::<_, Inet6Fib>(&in_one_64, || within(numbers.wide(), 63));
    // Each nearer to the one before by any number of bits: as uneven as it gets.
    let uneven = numbers.routes::<Ipv6Addr>(50_000, |numbers| {
        let bits = numbers.below(128);
        (numbers.wide() >> bits, numbers.below(129) as u8)
    });
    assert_like_lookups_by_length::<_, Inet6Fib>(&uneven, || numbers.wide() >> numbers.below(128));
}

#[test]
fn memory_grows_with_the_routes_and_not_with_their_lengths() {
    let mut numbers = Numbers(3);
    for spread in [3, 32, 64, 100] {
        let routes = numbers.routes::<Ipv6Addr>(20_000, |numbers| (numbers.wide() >> spread, 128));
        let fib = Inet6Fib::build(&routes).unwrap();
        let root = Inet6Fib::build(&[]).unwrap().size_bytes();
        assert!(
            fib.size_bytes() - root < 240 * routes.len(),
            "{} bytes",
            fib.size_bytes()
        );
    }
}
