//! A dataset against the reference dataset.

use std::io::{self, Write};

use super::{Confidence, Dataset, Dialect, general};

/// Student's t-test of a dataset against a reference, variances pooled.
///
/// Units: the data's, or percent of the reference's average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The level the half-widths are for.
    pub confidence: Confidence,
    /// The dataset's average minus the reference's.
    pub difference: f64,
    /// Half-width of the difference's interval.
    pub difference_half_width: f64,
    /// The difference relative to the reference's average.
    pub difference_percent: f64,
    /// Half-width of the relative difference's interval. The reference's own
    /// uncertainty enters it, so it is not the absolute one divided; in dialects
    /// before FreeBSD 12 it is.
    pub half_width_percent: f64,
    /// The standard deviation both datasets are taken to share.
    pub pooled_standard_deviation: f64,
}

impl Comparison {
    /// Compares `dataset` with `reference`, in the reference's dialect.
    pub fn new(dataset: &Dataset, reference: &Dataset, confidence: Confidence) -> Self {
        let degrees_of_freedom = dataset.len() + reference.len() - 2;
        let t = confidence.student_t(degrees_of_freedom);
        let (n, m) = (dataset.len() as f64, reference.len() as f64);
        let dataset_squares = (n - 1.0) * dataset.variance();
        let reference_squares = (m - 1.0) * reference.variance();

        // The order of these operations decides the last digit printed.
        let pooled_variance = (dataset_squares + reference_squares) / degrees_of_freedom as f64;
        let pooled_standard_deviation = pooled_variance.sqrt();
        let standard_error = pooled_standard_deviation * (1.0 / n + 1.0 / m).sqrt();
        let difference = dataset.average() - reference.average();
        let difference_half_width = t * standard_error;

        let relative_squares = dataset_squares
            + reference_squares * (dataset.average() * dataset.average())
                / (reference.average() * reference.average());
        let relative_variance = relative_squares * ((n + m) / (n * m * (n + m - 2.0)));
        let relative_half_width = match reference.dialect() {
            Dialect::FreeBsd10 | Dialect::FreeBsd11 => difference_half_width,
            Dialect::FreeBsd12 | Dialect::FreeBsd13 => t * relative_variance.sqrt(),
        };

        Self {
            confidence,
            difference,
            difference_half_width,
            difference_percent: difference * 100.0 / reference.average(),
            half_width_percent: relative_half_width * 100.0 / reference.average(),
            pooled_standard_deviation,
        }
    }

    /// Whether the difference exceeds its interval's half-width.
    pub fn is_proven(&self) -> bool {
        self.difference.abs() > self.difference_half_width
    }

    pub(super) fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        let confidence_percent = self.confidence.percent();
        if !self.is_proven() {
            return writeln!(
                output,
                "No difference proven at {confidence_percent:.1}% confidence"
            );
        }
        let printed = |number| general(number, 6);
        writeln!(output, "Difference at {confidence_percent:.1}% confidence")?;
        writeln!(
            output,
            "\t{} +/- {}",
            printed(self.difference),
            printed(self.difference_half_width)
        )?;
        writeln!(
            output,
            "\t{}% +/- {}%",
            printed(self.difference_percent),
            printed(self.half_width_percent)
        )?;
        writeln!(
            output,
            "\t(Student's t, pooled s = {})",
            printed(self.pooled_standard_deviation)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(values: [f64; 3], reference: [f64; 3]) -> String {
        let dataset = Dataset::new("dataset", values.to_vec()).unwrap();
        let reference = Dataset::new("reference", reference.to_vec()).unwrap();
        let mut output = Vec::new();
        Comparison::new(&dataset, &reference, Confidence::Percent95)
            .write_to(&mut output)
            .unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn a_proven_difference_has_three_lines_more() {
        assert_eq!(
            text([11.0, 12.0, 13.0], [1.0, 2.0, 3.0]),
            "Difference at 95.0% confidence\n\
             \t10 +/- 2.26659\n\
             \t500% +/- 487.45%\n\
             \t(Student's t, pooled s = 1)\n"
        );
    }

    #[test]
    fn a_difference_as_large_as_its_interval_is_not_proven() {
        assert_eq!(
            text([1.0; 3], [1.0; 3]),
            "No difference proven at 95.0% confidence\n"
        );
    }

    #[test]
    fn an_average_of_zero_makes_percentages_endless() {
        assert_eq!(
            text([5.0; 3], [0.0; 3]),
            "Difference at 95.0% confidence\n\t5 +/- 0\n\tinf% +/- nan%\n\t(Student's t, pooled s = 0)\n"
        );
    }

    #[test]
    fn not_a_number_proves_nothing() {
        assert_eq!(
            text([f64::NAN, 1.0, 2.0], [1.0, 2.0, 3.0]),
            "No difference proven at 95.0% confidence\n"
        );
    }
}
