//! How many ICMP errors the router sends.

/// `net.inet.icmp.icmplim` of FreeBSD.
pub const ICMP_ERRORS_PER_S: u32 = 200;
/// `net.inet6.icmp6.errppslimit` of FreeBSD.
pub const ICMP6_ERRORS_PER_S: u32 = 100;

const NS_PER_S: u64 = 1_000_000_000;

/// A token bucket that a second's worth of ICMP errors fits into, full at
/// first.
///
/// FreeBSD counts errors in windows of a second and sends none after the limit
/// until the next window begins. The bucket allows the same number in a steady
/// second and after a quiet one, but has no windows that a burst could straddle:
/// in any `t` seconds it allows at most `1 + t` times the limit. FreeBSD has a
/// limit for each kind of message, a little chance in it since CVE-2020-25705,
/// and its `icmplim` counts echoes and refused ports but not what the forwarding
/// path reports, which its `errppslimit` does. Here both do.
///
/// # Source
/// RFC 1812, section 4.3.2.8; RFC 4443, section 2.4(f); `badport_bandlim` in
/// `sys/netinet/ip_icmp.c` and `icmp6_ratelimit` in `sys/netinet6/icmp6.c` of
/// FreeBSD.
///
/// # Examples
/// ```
/// use fwdlab_router::ErrorRateLimit;
///
/// let mut limit = ErrorRateLimit::new(2);
/// assert_eq!([0, 0, 0].map(|now_ns| limit.allows(now_ns)), [true, true, false]);
/// assert!(limit.allows(500_000_000));
/// ```
#[derive(Clone, Debug)]
pub struct ErrorRateLimit {
    errors_per_s: u32,
    /// Units: billionths of an error, so that every ns adds `errors_per_s`.
    credit: u64,
    last_ns: u64,
}

impl ErrorRateLimit {
    /// A limit of `errors_per_s`; 0 means that there is none, as for `icmplim`.
    #[must_use]
    pub fn new(errors_per_s: u32) -> Self {
        Self {
            errors_per_s,
            credit: u64::from(errors_per_s) * NS_PER_S,
            last_ns: 0,
        }
    }

    /// Whether one more error may be sent at `now_ns`; if so, it is counted.
    ///
    /// Units: `now_ns` of any clock that only goes forward; a step back is no
    /// time at all.
    pub fn allows(&mut self, now_ns: u64) -> bool {
        if self.errors_per_s == 0 {
            return true;
        }
        // More than a second fills the bucket, whatever was in it.
        let elapsed_ns = now_ns.saturating_sub(self.last_ns).min(NS_PER_S);
        let full = u64::from(self.errors_per_s) * NS_PER_S;
        let earned = u64::from(self.errors_per_s) * elapsed_ns;
        self.credit = (self.credit + earned).min(full);
        self.last_ns = self.last_ns.max(now_ns);
        let is_allowed = self.credit >= NS_PER_S;
        if is_allowed {
            self.credit -= NS_PER_S;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_burst_is_a_second_long_and_comes_back_after_one() {
        for (errors_per_s, expected) in [(ICMP_ERRORS_PER_S, 200), (ICMP6_ERRORS_PER_S, 100)] {
            let mut limit = ErrorRateLimit::new(errors_per_s);
            for now_ns in [5, NS_PER_S + 5, 100 * NS_PER_S] {
                let allowed = (0..1000).filter(|_| limit.allows(now_ns)).count();
                assert_eq!(allowed, expected);
            }
        }
    }

    #[test]
    fn a_steady_stream_gets_the_limit() {
        let mut limit = ErrorRateLimit::new(200);
        while limit.allows(0) {}
        // One every 0.1 ms for ten seconds.
        let allowed = (1..=100_000)
            .filter(|ms| limit.allows(ms * 100_000))
            .count();
        assert_eq!(allowed, 2000);
    }

    #[test]
    fn no_limit_allows_everything() {
        let mut limit = ErrorRateLimit::new(0);
        assert!((0..10_000).all(|_| limit.allows(0)));
    }

    #[test]
    fn the_extremes_do_not_overflow() {
        let mut limit = ErrorRateLimit::new(u32::MAX);
        assert!(
            [0, u64::MAX, 0, u64::MAX]
                .iter()
                .all(|&now_ns| limit.allows(now_ns))
        );
    }

    proptest! {
        #[test]
        fn no_interval_has_more_than_its_share(
            errors_per_s in 1..50_u32,
            steps_ns in prop::collection::vec(0..NS_PER_S / 4, 1..200),
        ) {
            let mut limit = ErrorRateLimit::new(errors_per_s);
            let mut now_ns = 0;
            let mut allowed_at_ns = Vec::new();
            for step_ns in steps_ns {
                now_ns += step_ns;
                if limit.allows(now_ns) {
                    allowed_at_ns.push(now_ns);
                }
            }
            for (index, first_ns) in allowed_at_ns.iter().enumerate() {
                for (count, last_ns) in (1_u64..).zip(&allowed_at_ns[index..]) {
                    let most = u64::from(errors_per_s) * (NS_PER_S + last_ns - first_ns);
                    prop_assert!(count * NS_PER_S <= most);
                }
            }
        }

        #[test]
        fn whoever_waits_long_enough_is_allowed(
            errors_per_s in 1..1000_u32, start_ns in 0..u64::MAX / 2,
        ) {
            let mut limit = ErrorRateLimit::new(errors_per_s);
            while limit.allows(start_ns) {}
            let wait_ns = NS_PER_S.div_ceil(errors_per_s.into());
            prop_assert!(limit.allows(start_ns + wait_ns));
        }
    }
}
