//! How values are spread, in seven figures.

use fwdlab_stats::quantiles;
use serde::Serialize;

/// Quantiles of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many values there are.
    pub count: usize,
    /// A tenth is below.
    pub p10: f64,
    /// A quarter is below.
    pub p25: f64,
    /// The median.
    pub p50: f64,
    /// A quarter is above.
    pub p75: f64,
    /// A tenth is above.
    pub p90: f64,
    /// A twentieth is above.
    pub p95: f64,
    /// A hundredth is above.
    pub p99: f64,
}

impl Quantiles {
    /// Those of finite values; none without any.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let levels = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
        let [p10, p25, p50, p75, p90, p95, p99] = quantiles(values, levels)?;
        Some(Self {
            count: values.len(),
            p10,
            p25,
            p50,
            p75,
            p90,
            p95,
            p99,
        })
    }
}
