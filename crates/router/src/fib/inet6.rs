use super::inet::zeros;
use super::{FibError, Ipv6Prefix, NextHopId, prefetch, sorted};

/// Bits of the destination that index the root.
const ROOT_BITS: u32 = 16;

/// Bits of the destination that ranges are told apart by at one level.
const LEVEL_BITS: u32 = 48;

/// Bits of a range that say what holds in it; where it begins stands above them.
const VALUE_BITS: u32 = 16;

/// Marks the value of a range in which a level of its own goes on; the other bits number that level
/// within a chunk.
const DEEPER: u16 = 0x8000;

/// Ranges of which the deeper levels are numbered together: fewer than a value with the mark can tell
/// apart, so that none is as large as [`BEHIND`].
const CHUNK: usize = 1 << 14;

/// The largest value of a range.
const VALUE_MAX: u64 = DEEPER as u64 | (CHUNK as u64 - 1);

/// Stands behind the last range of a level and is never reached.
const BEHIND: u64 = u64::MAX;

/// How many ranges are compared with a destination, beside the one that holds before them: together as
/// many as a cache line has room for.
const RUN: usize = 7;

/// How many lookups of a vector are under way at once.
const VECTOR: usize = 64;

/// The forwarding table of IPv6: the ranges of addresses that the prefixes cut the address space into.
///
/// The first 16 bits index the root. The ranges below one of its cells stand in ascending order: 48
/// bits where a range begins and 16 what holds in it share one word. A node leads to the right place
/// among them: it cuts what lies between the first and the last of them, however near to each other
/// these are, into about as many cells of equal width as there are ranges. From there [`RUN`] ranges
/// are compared without a branch; a cell with more of them has a node of its own. Where prefixes are
/// longer than the 64 bits of root and range, a range leads to a level that goes on with the next 48.
///
/// So a table of few routes costs two memory accesses, and one of a million four, of which two miss the
/// caches: whether its prefixes are spread over 2000::/3 or fill a single /32. Nothing is expanded; a
/// prefix adds at most two ranges to each of at most three levels. Memory: 256 KiB, and for a million
/// prefixes of up to 64 bits about 25 bytes each, of 128 bits about 230.
#[derive(Clone, Debug)]
pub struct Inet6Fib {
    root: Box<[Entry; 1 << ROOT_BITS]>,
    nodes: Vec<Node>,
    cells: Vec<Entry>,
    ranges: Vec<u64>,
    deeper: Vec<Entry>,
    /// The first of `deeper` for every [`CHUNK`] of ranges.
    chunks: Vec<u32>,
}

/// What a lookup goes on with, in 2 bits, and the number of that, in 30.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry(u32);

impl Entry {
    const NUMBER: u32 = (1 << 30) - 1;
    /// A next hop: nothing to go on with.
    const NEXT_HOP: u32 = 0;
    /// The range that holds before those to be compared.
    const RUN: u32 = 1 << 30;
    const NODE: u32 = 2 << 30;
    /// The cell that says what to go on with; no table has such entries, only lookups under way.
    const CELL: u32 = 3 << 30;

    fn new(kind: u32, number: usize) -> Self {
        let number = u32::try_from(number).expect("routes are limited");
        debug_assert!(number <= Self::NUMBER);
        Self(kind | number)
    }

    #[inline]
    const fn kind(self) -> u32 {
        self.0 & !Self::NUMBER
    }

    #[inline]
    const fn number(self) -> usize {
        (self.0 & Self::NUMBER) as usize
    }

    /// Shape: the entry is one.
    #[inline]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "an entry of this kind is made of 16 bits"
    )]
    const fn next_hop(self) -> NextHopId {
        NextHopId(self.0 as u16)
    }
}

impl From<NextHopId> for Entry {
    fn from(next_hop: NextHopId) -> Self {
        Self::new(Self::NEXT_HOP, next_hop.index())
    }
}

/// Cells of equal width; the first and the last also stand for what is before and behind them.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Where the first cell begins.
    base: u64,
    /// The number of the first cell.
    first: u32,
    /// Cells behind the first.
    last: u32,
    /// The width, as a power of two.
    shift: u32,
}

impl Node {
    #[inline]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "no larger than the number of the last cell, of 32 bits"
    )]
    fn cell(&self, probe: u64) -> usize {
        let offset = probe.saturating_sub(self.base) >> self.shift;
        self.first as usize + offset.min(self.last.into()) as usize
    }
}

/// The bits of one level, with which a range begins, above the largest value of a range.
///
/// Shape: the bits before the level are shifted out of `rest`.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "the bits of a level are what is meant"
)]
const fn probe(rest: u128) -> u64 {
    ((rest >> (128 - LEVEL_BITS)) as u64) << VALUE_BITS | VALUE_MAX
}

impl Inet6Fib {
    /// The table of these routes, in any order.
    ///
    /// # Errors
    /// `DuplicatePrefix`, `NoNextHop`, `TooManyRoutes`.
    pub fn build(routes: &[(Ipv6Prefix, NextHopId)]) -> Result<Self, FibError> {
        let starts = starts(&sorted(routes)?);
        let mut fib = Self {
            root: zeros(),
            nodes: Vec::new(),
            cells: Vec::new(),
            ranges: Vec::new(),
            deeper: Vec::new(),
            chunks: Vec::new(),
        };
        let (mut before, mut rest) = (NextHopId::NONE, &starts[..]);
        for cell in 0..fib.root.len() {
            let is_inside = |start: u128| (start >> (128 - ROOT_BITS)) as usize == cell;
            let inside = rest
                .iter()
                .take_while(|(start, _)| is_inside(*start))
                .count();
            let (inside, behind) = rest.split_at(inside);
            fib.root[cell] = fib.level(before, inside, ROOT_BITS);
            (before, rest) = (inside.last().map_or(before, |start| start.1), behind);
        }
        Ok(fib)
    }

    /// What tells apart the ranges that begin at `starts`, where `before` holds before them.
    ///
    /// Shape: all share their first `bits`.
    fn level(&mut self, before: NextHopId, starts: &[(u128, NextHopId)], bits: u32) -> Entry {
        let (before, starts) = match starts.split_first() {
            None => return before.into(),
            // Where the level begins itself.
            Some(((start, next_hop), rest)) if start << bits == 0 => (*next_hop, rest),
            Some(_) => (before, starts),
        };
        if starts.is_empty() {
            return before.into();
        }
        let begin = |start: u128| probe(start << bits) & !VALUE_MAX;
        let below = |start: u128| (start << bits) << LEVEL_BITS;
        let value = |next_hop: NextHopId| next_hop.index() as u64;
        let mut ranges = vec![(value(before), None)];
        let mut before = before;
        for group in starts.chunk_by(|a, b| begin(a.0) == begin(b.0)) {
            let (start, last) = (begin(group[0].0), group[group.len() - 1].1);
            // What was put behind the group before, where nothing was between.
            ranges.pop_if(|(range, _)| *range >> VALUE_BITS == start >> VALUE_BITS);
            if let [(address, next_hop)] = group
                && below(*address) == 0
            {
                ranges.push((start | value(*next_hop), None));
            } else {
                let entry = self.level(before, group, bits + LEVEL_BITS);
                ranges.push((start, Some(entry)));
                let behind = start.checked_add(1 << VALUE_BITS);
                ranges.extend(behind.map(|behind| (behind | value(last), None)));
            }
            before = last;
        }
        let first = self.ranges.len();
        for (range, deeper) in &ranges {
            let value = deeper.map_or(0, |entry| self.deeper(entry));
            self.ranges.push(range | value);
        }
        self.ranges.extend([BEHIND; RUN]);
        self.entry(first, first + ranges.len())
    }

    /// The value of the next range, where a level of its own goes on.
    fn deeper(&mut self, entry: Entry) -> u64 {
        let deeper = self.deeper.len();
        while self.chunks.len() <= self.ranges.len() / CHUNK {
            self.chunks
                .push(u32::try_from(deeper).expect("routes are limited"));
        }
        self.deeper.push(entry);
        u64::from(DEEPER) | (deeper as u64 - u64::from(self.chunks[self.ranges.len() / CHUNK]))
    }

    /// What leads to the ranges from the one numbered `before`, which holds before the others.
    fn entry(&mut self, before: usize, end: usize) -> Entry {
        if end - before - 1 <= RUN {
            return Entry::new(Entry::RUN, before);
        }
        let begin = |range: u64| range >> VALUE_BITS << VALUE_BITS;
        let (first, last) = (begin(self.ranges[before + 1]), begin(self.ranges[end - 1]));
        let span_bits = u64::BITS - (last - first).leading_zeros();
        let shift = span_bits.saturating_sub(cell_bits(end - before - 1));
        // Where the first range begins with a cell, that is not the first cell, which is for what is
        // before it, too.
        let base = first.saturating_sub(1) >> shift << shift;
        let last_cell = u32::try_from((last - base) >> shift).expect("routes are limited");
        let first_cell = self.cells.len();
        self.cells
            .resize(first_cell + last_cell as usize + 1, Entry::default());
        let mut before = before;
        for cell in 0..=last_cell {
            let start = base + (u64::from(cell) << shift);
            let until = |cell_end: u64, from: usize| {
                let ranges = &self.ranges[from + 1..end];
                from + ranges
                    .iter()
                    .take_while(|&&range| begin(range) <= cell_end)
                    .count()
            };
            let at_start = until(start, before);
            let at_end = until(start + ((1 << shift) - 1), at_start);
            self.cells[first_cell + cell as usize] = self.entry(at_start, at_end + 1);
            before = at_end;
        }
        self.nodes.push(Node {
            base,
            first: u32::try_from(first_cell).expect("routes are limited"),
            last: last_cell,
            shift,
        });
        Entry::new(Entry::NODE, self.nodes.len() - 1)
    }

    /// The next hop of the longest prefix that holds the address; [`NextHopId::NONE`] without one.
    ///
    /// The number is made fastest by [`u128::from_be_bytes`]: two loads that swap bytes.
    #[inline]
    #[must_use]
    pub fn lookup(&self, destination: u128) -> NextHopId {
        self.lookup_from(self.root_entry(destination), destination << ROOT_BITS)
    }

    /// Asks for what [`Self::lookup`] will read first.
    ///
    /// The steps from there on are [`Self::lookup_vector_prefetching`]'s.
    #[inline]
    pub fn prefetch(&self, destination: u128) {
        prefetch(&self.root[(destination >> (128 - ROOT_BITS)) as usize]);
    }

    /// The next hops of many addresses.
    ///
    /// All lookups take one step before any takes the next, so that they wait for memory together.
    ///
    /// # Panics
    /// If `into` is shorter than `destinations`.
    #[inline]
    pub fn lookup_vector(&self, destinations: &[u128], into: &mut [NextHopId]) {
        self.lookup_in_steps::<false>(destinations, into);
    }

    /// The same, asking in every step for what the next one will read.
    ///
    /// # Panics
    /// If `into` is shorter than `destinations`.
    #[inline]
    pub fn lookup_vector_prefetching(&self, destinations: &[u128], into: &mut [NextHopId]) {
        self.lookup_in_steps::<true>(destinations, into);
    }

    #[inline]
    fn lookup_in_steps<const PREFETCH: bool>(&self, destinations: &[u128], into: &mut [NextHopId]) {
        let into = &mut into[..destinations.len()];
        let mut entries = [Entry::default(); VECTOR];
        for (destinations, into) in destinations.chunks(VECTOR).zip(into.chunks_mut(VECTOR)) {
            let entries = &mut entries[..destinations.len()];
            let mut kinds = 0;
            for (entry, &destination) in entries.iter_mut().zip(destinations) {
                *entry = self.root_entry(destination);
                kinds |= entry.kind();
            }
            while kinds & Entry::NODE != 0 {
                for (entry, &destination) in entries.iter_mut().zip(destinations) {
                    if entry.kind() == Entry::NODE {
                        let node = &self.nodes[entry.number()];
                        let cell = node.cell(probe(destination << ROOT_BITS));
                        if PREFETCH {
                            prefetch(&self.cells[cell]);
                        }
                        *entry = Entry::new(Entry::CELL, cell);
                    }
                }
                kinds = 0;
                for entry in entries
                    .iter_mut()
                    .filter(|entry| entry.kind() == Entry::CELL)
                {
                    *entry = self.cells[entry.number()];
                    kinds |= entry.kind();
                    if PREFETCH && entry.kind() == Entry::RUN {
                        let run = &self.ranges[entry.number()..][..=RUN];
                        prefetch(&run[0]);
                        prefetch(&run[RUN]);
                    }
                }
            }
            let found = into.iter_mut().zip(entries);
            for ((next_hop, entry), destination) in found.zip(destinations) {
                *next_hop = match entry.kind() {
                    Entry::NEXT_HOP => entry.next_hop(),
                    _ => self.compare(entry.number(), destination << ROOT_BITS),
                };
            }
        }
    }

    /// Bytes of all tables.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of_val(&*self.root)
            + size_of_val(&*self.nodes)
            + size_of_val(&*self.cells)
            + size_of_val(&*self.ranges)
            + size_of_val(&*self.deeper)
            + size_of_val(&*self.chunks)
    }

    #[inline]
    fn root_entry(&self, destination: u128) -> Entry {
        self.root[(destination >> (128 - ROOT_BITS)) as usize]
    }

    /// One step through a node.
    #[inline]
    fn next(&self, node: Entry, probe: u64) -> Entry {
        self.cells[self.nodes[node.number()].cell(probe)]
    }

    /// The next hop that an entry leads to, for an address without the bits before its level.
    #[inline]
    fn lookup_from(&self, mut entry: Entry, rest: u128) -> NextHopId {
        while entry.kind() == Entry::NODE {
            entry = self.next(entry, probe(rest));
        }
        match entry.kind() {
            Entry::NEXT_HOP => entry.next_hop(),
            _ => self.compare(entry.number(), rest),
        }
    }

    /// The next hop that holds for an address, in the range numbered `before` or one of the next.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "a value is what is meant")]
    fn compare(&self, before: usize, rest: u128) -> NextHopId {
        let probe = probe(rest);
        let run: &[u64; RUN + 1] = self.ranges[before..]
            .first_chunk()
            .expect("none is cut short");
        let reached: usize = run[1..]
            .iter()
            .map(|&range| usize::from(range <= probe))
            .sum();
        let value = run[reached] as u16;
        if value & DEEPER == 0 {
            return NextHopId(value);
        }
        self.lookup_deeper(before + reached, value, rest << LEVEL_BITS)
    }

    /// The next hop that holds for an address in a range with a level of its own.
    // Not inline: few prefixes are this long, and the others should not pay for it.
    #[cold]
    fn lookup_deeper(&self, range: usize, value: u16, rest: u128) -> NextHopId {
        let first = self.chunks[range / CHUNK] as usize;
        let number = usize::from(value & !DEEPER);
        self.lookup_from(self.deeper[first + number], rest)
    }
}

/// How many bits of cells there are for that many ranges: about one for each.
fn cell_bits(ranges: usize) -> u32 {
    ranges.next_power_of_two().ilog2() + 1
}

/// Where the next hop changes, in ascending order, if there is none before the first.
///
/// Shape: the routes are sorted.
fn starts(routes: &[(Ipv6Prefix, NextHopId)]) -> Vec<(u128, NextHopId)> {
    let mut starts = Starts::default();
    // The prefixes that hold the one at hand: their last addresses.
    let mut open: Vec<(u128, NextHopId)> = Vec::new();
    for &(prefix, next_hop) in routes {
        while let Some((last, _)) = open.pop_if(|(last, _)| *last < prefix.first()) {
            starts.begin(
                last + 1,
                open.last().map_or(NextHopId::NONE, |outer| outer.1),
            );
        }
        open.push((prefix.last(), next_hop));
        starts.begin(prefix.first(), next_hop);
    }
    while let Some((last, _)) = open.pop() {
        // Behind the last address there is nothing.
        let Some(behind) = last.checked_add(1) else {
            break;
        };
        starts.begin(behind, open.last().map_or(NextHopId::NONE, |outer| outer.1));
    }
    starts.0
}

/// Where ranges with different next hops begin.
#[derive(Default)]
struct Starts(Vec<(u128, NextHopId)>);

impl Starts {
    /// From `start` on, which is no less than any before, the next hop is this.
    fn begin(&mut self, start: u128, next_hop: NextHopId) {
        self.0.pop_if(|before| before.0 == start);
        if self.0.last().map_or(NextHopId::NONE, |before| before.1) != next_hop {
            self.0.push((start, next_hop));
        }
    }
}
