//! Numbers that a seed chooses.

/// SplitMix64: numbers that are the same wherever the tests run.
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    ///
    /// # Panics
    /// The bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("it is below a usize")
    }

    /// A number from 0 to 8.
    pub(crate) fn digit(&mut self) -> u8 {
        u8::try_from(self.next() % 9).expect("it is one digit")
    }

    /// One of some, if there is any.
    pub fn pick<'a, T>(&mut self, some: &'a [T]) -> Option<&'a T> {
        (!some.is_empty()).then(|| &some[self.below(some.len())])
    }

    /// All of some, in another order.
    pub fn shuffled<'a, T>(&mut self, some: &'a [T]) -> Vec<&'a T> {
        let mut left: Vec<&T> = some.iter().collect();
        let mut shuffled = Vec::with_capacity(left.len());
        while !left.is_empty() {
            shuffled.push(left.swap_remove(self.below(left.len())));
        }
        shuffled
    }
}
