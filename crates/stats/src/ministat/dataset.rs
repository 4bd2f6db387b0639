//! A named sample and its summary.

use std::ffi::{OsStr, OsString};

use super::ascending::ascending;
use super::{Dialect, Error, general};

/// A named sample with the figures of its summary row, today's unless a
/// [`Report`](super::Report) shows it in an older [`Dialect`].
///
/// Shape: at least three points. The average's sum is taken in the order the
/// values come in, the variance's in ascending order: both decide last digits.
#[derive(Clone, Debug)]
pub struct Dataset {
    name: OsString,
    points: Vec<f64>,
    sum: f64,
    sum_of_squares: f64,
    dialect: Dialect,
    variance: f64,
}

impl Dataset {
    /// A dataset of `values`, in the order they were measured.
    ///
    /// # Errors
    /// [`Error::TooFewPoints`] below three values.
    pub fn new(name: impl Into<OsString>, values: Vec<f64>) -> Result<Self, Error> {
        let name = name.into();
        if values.len() < 3 {
            return Err(Error::TooFewPoints {
                name: name.display().to_string(),
            });
        }
        let mut points = values;
        // Both sums need the order of measurement, which sorting ends.
        let (sum, sum_of_squares) = points.iter().fold((0.0, 0.0), |(sum, squares), point| {
            (sum + point, squares + point * point)
        });
        // The total order puts a NaN with a minus sign first.
        for point in points.iter_mut().filter(|point| point.is_nan()) {
            *point = f64::NAN;
        }
        let mut dataset = Self {
            name,
            points: ascending(points),
            sum,
            sum_of_squares,
            dialect: Dialect::default(),
            variance: 0.0,
        };
        dataset.variance = dataset.two_pass_variance();
        Ok(dataset)
    }

    /// The same sample with the figures of another dialect.
    pub(super) fn in_dialect(mut self, dialect: Dialect) -> Self {
        if dialect != self.dialect {
            self.variance = match dialect {
                Dialect::FreeBsd13 => self.two_pass_variance(),
                one_pass => self.one_pass_variance(one_pass),
            };
            self.dialect = dialect;
        }
        self
    }

    fn two_pass_variance(&self) -> f64 {
        let average = self.average();
        let squares = self.points.iter().fold(0.0, |sum, point| {
            sum + (point - average) * (point - average)
        });
        squares / (self.points.len() as f64 - 1.0)
    }

    fn one_pass_variance(&self, dialect: Dialect) -> f64 {
        let count = self.points.len() as f64;
        let square_of_sum = self.sum * self.sum / count;
        if dialect == Dialect::FreeBsd12 && self.sum_of_squares <= square_of_sum {
            return 0.0;
        }
        (self.sum_of_squares - square_of_sum) / (count - 1.0)
    }

    /// Whose figures these are.
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Minimum, maximum, median, average and standard deviation, as a row shows them.
    pub(super) fn figures(&self) -> [String; 5] {
        [
            self.minimum(),
            self.maximum(),
            self.median(),
            self.average(),
            self.standard_deviation(),
        ]
        .map(|figure| general(figure, 8).to_string())
    }

    /// The name it is listed under.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// The points in ascending order, not-a-number last.
    pub fn points(&self) -> &[f64] {
        &self.points
    }

    /// How many points there are; at least three.
    #[expect(clippy::len_without_is_empty, reason = "a dataset is never empty")]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// The smallest point.
    pub fn minimum(&self) -> f64 {
        self.points[0]
    }

    /// The largest point.
    pub fn maximum(&self) -> f64 {
        self.points[self.points.len() - 1]
    }

    /// The middle point, or the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        self.dialect.median(&self.points)
    }

    /// The arithmetic mean.
    pub fn average(&self) -> f64 {
        self.sum / self.points.len() as f64
    }

    /// The unbiased estimate of the variance; two-pass, unless a dialect has another.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// The square root of the variance.
    pub fn standard_deviation(&self) -> f64 {
        self.variance.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_three_points_are_refused_by_name() {
        let error = Dataset::new("two.pps", vec![1.0, 2.0]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Dataset two.pps must contain at least 3 data points"
        );
        assert!(Dataset::new("three.pps", vec![1.0, 2.0, 3.0]).is_ok());
    }

    #[test]
    fn an_even_count_has_its_median_between_two_points() {
        let even = Dataset::new("even", vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(even.median().to_bits(), 2.5_f64.to_bits());
        let odd = Dataset::new("odd", vec![4.0, 1.0, 3.0]).unwrap();
        assert_eq!(odd.median().to_bits(), 3.0_f64.to_bits());
    }

    #[test]
    fn the_average_follows_the_order_of_measurement() {
        let lost = Dataset::new("lost", vec![1.0, 1e17, -1e17]).unwrap();
        let kept = Dataset::new("kept", vec![1e17, -1e17, 1.0]).unwrap();
        assert_eq!(lost.average().to_bits(), 0.0_f64.to_bits());
        assert_eq!(kept.average().to_bits(), (1.0_f64 / 3.0).to_bits());
    }

    #[test]
    fn not_a_number_is_sorted_last() {
        let dataset = Dataset::new("nan", vec![-f64::NAN, 2.0, 1.0]).unwrap();
        assert!(dataset.maximum().is_nan() && dataset.average().is_nan());
        assert_eq!(dataset.minimum().to_bits(), 1.0_f64.to_bits());
    }
}
