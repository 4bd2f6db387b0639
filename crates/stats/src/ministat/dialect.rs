//! The texts that releases of FreeBSD print for the same numbers.

/// Whose `ministat` to print like.
///
/// These figures differ, and with them what is drawn and decided; every other byte is the same:
///
/// | dialect | median of an even count | variance | half-width in percent |
/// |---|---|---|---|
/// | [`FreeBsd10`](Self::FreeBsd10) | the upper one in the middle | one-pass | e * 100 / average |
/// | [`FreeBsd11`](Self::FreeBsd11) | mean of the two | one-pass | e * 100 / average |
/// | [`FreeBsd12`](Self::FreeBsd12) | mean of the two | one-pass, at least 0 | from both variances |
/// | [`FreeBsd13`](Self::FreeBsd13) | mean of the two | two-pass | from both variances |
///
/// - The median moves the `M` of the plot, too.
/// - One-pass is (Σy² - (Σy)²/n) / (n - 1) in doubles, both sums in the order of measurement. Its last digits
///   are those of rounding where the variance is small beside the average: they show in the standard
///   deviation and in all that follows from it, the plot's axis and bars, the half-widths, the
///   pooled deviation and, at the margin, whether a difference is proven. Below 0 its root is not a
///   number: `nan` is printed, no bar is drawn, and nothing is proven.
/// - The half-width in percent stands in the second line below `Difference`. e is the half-width in
///   the first, average the reference's; the newer one is [`Comparison::half_width_percent`]'s.
///
/// Options, the datasets' names, complaints and exit codes are today's in every dialect.
///
/// # Source
/// `usr.bin/ministat/ministat.c` in the releases 8.3, 9.3, 10.4, 11.0 and 12.1, in the development
/// branch of 13, and today.
///
/// [`Comparison::half_width_percent`]: super::Comparison::half_width_percent
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// Releases to 10.4; the development branch to November 2015.
    FreeBsd10,
    /// Release 11.0; the development branch from November 2015 to November 2016.
    FreeBsd11,
    /// Releases 12.0 and 12.1; the development branch from November 2016 to 2018 at least.
    FreeBsd12,
    /// Releases from 13.0 on: today's.
    #[default]
    FreeBsd13,
}

impl Dialect {
    /// Every dialect, from the oldest.
    pub const ALL: [Self; 4] = [
        Self::FreeBsd10,
        Self::FreeBsd11,
        Self::FreeBsd12,
        Self::FreeBsd13,
    ];

    /// The word by which a user chooses it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FreeBsd10 => "freebsd-10",
            Self::FreeBsd11 => "freebsd-11",
            Self::FreeBsd12 => "freebsd-12",
            Self::FreeBsd13 => "freebsd-13",
        }
    }

    /// The median of ascending `points`.
    pub(super) fn median(self, points: &[f64]) -> f64 {
        let middle = points.len() / 2;
        if self > Self::FreeBsd10 && points.len().is_multiple_of(2) {
            (points[middle] + points[middle - 1]) / 2.0
        } else {
            points[middle]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ministat::{Comparison, Confidence, Dataset};

    fn dataset(dialect: Dialect, values: &[f64]) -> Dataset {
        let dataset = Dataset::new("set", values.to_vec()).unwrap();
        dataset.in_dialect(dialect)
    }

    #[test]
    fn the_upper_of_two_middle_points_was_once_the_median() {
        let medians = |values: &[f64]| {
            Dialect::ALL.map(|dialect| dataset(dialect, values).median().to_string())
        };
        assert_eq!(medians(&[1.0, 4.0, 2.0, 8.0]), ["4", "3", "3", "3"]);
        assert_eq!(medians(&[4.0, 1.0, 2.0]), ["2"; 4]);
    }

    #[test]
    fn one_pass_loses_digits_and_may_fall_below_zero() {
        // The squares of these need 27 digits: of the variance nothing is left.
        let variances =
            |values: &[f64]| Dialect::ALL.map(|dialect| dataset(dialect, values).variance());
        let [old, middle, floored, exact] = variances(&[1e8 + 1.0, 1e8 + 2.0, 1e8 + 3.0]);
        assert_eq!(exact.to_bits(), 1.0_f64.to_bits());
        assert!(old.to_bits() == middle.to_bits() && old.to_bits() != exact.to_bits());
        assert_eq!(floored.to_bits(), old.max(0.0).to_bits());

        let below = [0.1, 0.1, 0.1];
        let [old, middle, floored, exact] = variances(&below);
        assert!(old < 0.0 && middle < 0.0, "{old} {middle}");
        assert_eq!(floored.to_bits(), 0.0_f64.to_bits());
        assert!(exact >= 0.0);
        assert!(
            dataset(Dialect::FreeBsd11, &below)
                .standard_deviation()
                .is_nan()
        );
    }

    #[test]
    fn one_pass_follows_the_order_of_measurement() {
        let forward = dataset(Dialect::FreeBsd12, &[1.0, 1.0, 1.0, 1e8]).variance();
        let backward = dataset(Dialect::FreeBsd12, &[1e8, 1.0, 1.0, 1.0]).variance();
        assert_ne!(forward.to_bits(), backward.to_bits());
    }

    #[test]
    fn the_half_width_in_percent_was_once_the_absolute_one_divided() {
        let half_widths = Dialect::ALL.map(|dialect| {
            let reference = dataset(dialect, &[1.0, 2.0, 3.0]);
            let other = dataset(dialect, &[11.0, 12.0, 13.0]);
            let comparison = Comparison::new(&other, &reference, Confidence::Percent95);
            (
                comparison.half_width_percent,
                comparison.difference_half_width,
            )
        });
        for (percent, absolute) in &half_widths[..2] {
            assert_eq!(percent.to_bits(), (absolute * 100.0 / 2.0).to_bits());
        }
        for (percent, absolute) in &half_widths[2..] {
            assert!(percent / (absolute * 50.0) > 4.0);
        }
    }
}
