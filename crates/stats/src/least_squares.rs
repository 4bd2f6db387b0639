//! Least squares by Householder reflections.

/// The columns of a design, made triangular once for any number of responses.
#[derive(Debug, Clone)]
pub(crate) struct Factored {
    /// What each reflection goes through, from its own place on, and two over the square of its length.
    reflections: Vec<(Vec<f64>, f64)>,
    /// Column j holds its j + 1 numbers of the upper triangle.
    triangle: Vec<Vec<f64>>,
}

/// The least-squares fit of a response to the columns of a design.
#[derive(Debug, Clone)]
pub(crate) struct LeastSquares {
    factored: Factored,
    /// The response in the basis of the columns, one number each: the squares of the last k sum
    /// up to what the last k columns explain beyond the others.
    pub(crate) effects: Vec<f64>,
    /// The sum of squares that no column explains.
    pub(crate) residual_squares: f64,
}

/// The part of a column that must be left when those before it are taken out, so that it counts
/// as independent of them.
const INDEPENDENT_PART: f64 = 1e-9;

impl Factored {
    /// Factors `columns`; `Err` holds the first one that depends on those before it.
    ///
    /// # Source
    /// Golub & Van Loan, "Matrix Computations", 5.2 and 5.3.
    pub(crate) fn new(mut columns: Vec<Vec<f64>>) -> Result<Self, usize> {
        let mut triangle = Vec::with_capacity(columns.len());
        let mut reflections = Vec::with_capacity(columns.len());
        for place in 0..columns.len() {
            let (column, later) = columns[place..].split_first_mut().ok_or(place)?;
            let whole = norm(column);
            if column.len() <= place {
                return Err(place);
            }
            let mut below = column.split_off(place);
            let length = norm(&below);
            if length <= INDEPENDENT_PART * whole {
                return Err(place);
            }
            // The sign that adds instead of cancelling.
            let diagonal = if below[0] > 0.0 { -length } else { length };
            below[0] -= diagonal;
            let scale = 2.0 / dot(&below, &below);
            for other in later {
                reflect(&mut other[place..], &below, scale);
            }
            let mut upper = std::mem::take(column);
            upper.push(diagonal);
            triangle.push(upper);
            reflections.push((below, scale));
        }
        Ok(Self {
            reflections,
            triangle,
        })
    }

    /// What the columns explain of a response, in their basis, and behind it what they do not.
    fn reflected(&self, mut response: Vec<f64>) -> Vec<f64> {
        for (place, (below, scale)) in self.reflections.iter().enumerate() {
            reflect(&mut response[place..], below, *scale);
        }
        response
    }

    /// The coefficient of each column for a response.
    pub(crate) fn coefficients(&self, response: Vec<f64>) -> Vec<f64> {
        let mut effects = self.reflected(response);
        effects.truncate(self.triangle.len());
        self.solved(effects)
    }

    fn solved(&self, effects: Vec<f64>) -> Vec<f64> {
        let mut coefficients = effects;
        for (place, column) in self.triangle.iter().enumerate().rev() {
            coefficients[place] /= column[place];
            let coefficient = coefficients[place];
            for (value, entry) in coefficients[..place].iter_mut().zip(column) {
                *value -= coefficient * entry;
            }
        }
        coefficients
    }
}

/// Reflects `part` at what is orthogonal to `direction`, given two over the square of its length.
fn reflect(part: &mut [f64], direction: &[f64], scale: f64) {
    let factor = scale * dot(direction, part);
    for (value, direction) in part.iter_mut().zip(direction) {
        *value -= factor * direction;
    }
}

impl LeastSquares {
    /// Fits `response` to `columns`; `Err` holds the first column that depends on those before
    /// it.
    pub(crate) fn new(columns: Vec<Vec<f64>>, response: Vec<f64>) -> Result<Self, usize> {
        let factored = Factored::new(columns)?;
        let mut effects = factored.reflected(response);
        let residuals = effects.split_off(factored.triangle.len());
        Ok(Self {
            factored,
            effects,
            residual_squares: dot(&residuals, &residuals),
        })
    }

    /// The coefficient of each column.
    pub(crate) fn coefficients(&self) -> Vec<f64> {
        self.factored.solved(self.effects.clone())
    }

    /// The variance of the sum of coefficients times `weights`, in units of the residual variance.
    pub(crate) fn variance(&self, weights: &[f64]) -> f64 {
        let mut solved: Vec<f64> = Vec::with_capacity(weights.len());
        for (column, weight) in self.factored.triangle.iter().zip(weights) {
            let known = dot(&solved, column);
            solved.push((weight - known) / column[solved.len()]);
        }
        dot(&solved, &solved)
    }
}

/// The sum of products, up to the end of the shorter one.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
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
