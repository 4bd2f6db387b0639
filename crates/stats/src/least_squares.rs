//! Least squares by Householder reflections.

/// The least-squares fit of a response to the columns of a design.
#[derive(Debug, Clone)]
pub(crate) struct LeastSquares {
    /// Column j holds its j + 1 numbers of the upper triangle.
    triangle: Vec<Vec<f64>>,
    /// The response in the basis of the columns, one number each: the squares of the last k sum
    /// up to what the last k columns explain beyond the others.
    pub(crate) effects: Vec<f64>,
    /// The sum of squares that no column explains.
    pub(crate) residual_squares: f64,
}

/// The part of a column that must be left when those before it are taken out, so that it counts
/// as independent of them.
const INDEPENDENT_PART: f64 = 1e-9;

impl LeastSquares {
    /// Fits `response` to `columns`; `Err` holds the first column that depends on those before
    /// it.
    ///
    /// # Source
    /// Golub & Van Loan, "Matrix Computations", 5.2 and 5.3.
    pub(crate) fn new(mut columns: Vec<Vec<f64>>, mut response: Vec<f64>) -> Result<Self, usize> {
        let mut triangle = Vec::with_capacity(columns.len());
        for place in 0..columns.len() {
            let (before, from_here) = columns.split_at_mut(place);
            debug_assert_eq!(before.len(), place);
            let (column, later) = from_here.split_first_mut().ok_or(place)?;
            let whole = norm(column);
            let Some(below) = column.get_mut(place..).filter(|below| !below.is_empty()) else {
                return Err(place);
            };
            let length = norm(below);
            if length <= INDEPENDENT_PART * whole {
                return Err(place);
            }
            // The sign that adds instead of cancelling.
            let diagonal = if below[0] > 0.0 { -length } else { length };
            below[0] -= diagonal;
            let scale = 2.0 / dot(below, below);
            for other in later.iter_mut().chain([&mut response]) {
                let part = &mut other[place..];
                let factor = scale * dot(below, part);
                for (value, direction) in part.iter_mut().zip(below.iter()) {
                    *value -= factor * direction;
                }
            }
            let mut upper = column[..place].to_vec();
            upper.push(diagonal);
            triangle.push(upper);
        }
        let residuals = response.split_off(triangle.len());
        Ok(Self {
            triangle,
            effects: response,
            residual_squares: dot(&residuals, &residuals),
        })
    }

    /// The coefficient of each column.
    pub(crate) fn coefficients(&self) -> Vec<f64> {
        let mut coefficients = self.effects.clone();
        for (place, column) in self.triangle.iter().enumerate().rev() {
            coefficients[place] /= column[place];
            let coefficient = coefficients[place];
            for (value, entry) in coefficients[..place].iter_mut().zip(column) {
                *value -= coefficient * entry;
            }
        }
        coefficients
    }

    /// The variance of the sum of coefficients times `weights`, in units of the residual variance.
    pub(crate) fn variance(&self, weights: &[f64]) -> f64 {
        let mut solved: Vec<f64> = Vec::with_capacity(weights.len());
        for (column, weight) in self.triangle.iter().zip(weights) {
            let known = dot(&solved, column);
            solved.push((weight - known) / column[solved.len()]);
        }
        dot(&solved, &solved)
    }
}

/// The sum of products, up to the end of the shorter one.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(values: &[f64]) -> f64 {
    dot(values, values).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_four_points() {
        // y = 1 + 2 x but for deviations of 0.1 that sum to zero and are orthogonal to x.
        let fit = LeastSquares::new(
            vec![vec![1.0; 4], vec![0.0, 1.0, 2.0, 3.0]],
            vec![1.1, 2.9, 4.9, 7.1],
        )
        .unwrap();
        let coefficients = fit.coefficients();
        assert!((coefficients[0] - 1.0).abs() < 1e-14 && (coefficients[1] - 2.0).abs() < 1e-14);
        assert!((fit.residual_squares - 0.04).abs() < 1e-14);
        // Var(slope) = 1 / sum (x - mean)^2; its effect squared is what x explains.
        assert!((fit.variance(&[0.0, 1.0]) - 0.2).abs() < 1e-14);
        assert!((fit.effects[1].powi(2) - 20.0).abs() < 1e-12);
    }

    #[test]
    fn dependent_columns_are_named() {
        let fit = |columns| LeastSquares::new(columns, vec![1.0, 2.0]).map(|_| ());
        assert_eq!(fit(vec![vec![1.0, 1.0], vec![2.0, 2.0]]), Err(1));
        assert_eq!(fit(vec![vec![0.0, 0.0]]), Err(0));
        assert_eq!(
            fit(vec![vec![1.0, 0.0], vec![0.0, 1.0], vec![1.0, 1.0]]),
            Err(2)
        );
    }
}
