//! What `equilibrium` finds: the load at which a gateway forwards as much as it is offered, searched for
//! by halving steps; its logs, and the files of values that are made of them.
//!
//! All rates are in Mb/s, as it prints them.

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The line in the log, from 1.
    pub line: usize,
    /// The rate in equilibrium: what `.equilibrium` files hold.
    pub equilibrium_mbps: u64,
    /// The highest rate that was seen: what `.equilibrium.max` files hold.
    pub maximum_mbps: u64,
}

/// Why a text is no file of values of `equilibrium`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EquilibriumError {
    /// There is nothing in it.
    #[error("no line at all; give values of equilibrium")]
    Empty,
    /// A line is no rate.
    #[error("line {line}: not a rate in Mb/s ({text:?}); give one number a line")]
    NotARate {
        /// The line, from 1.
        line: usize,
        /// How it begins.
        text: String,
    },
}

impl Estimate {
    /// What the log of a search ends with; none where it ends before.
    ///
    /// Shape: the bytes of the file; line ends of either kind.
    ///
    /// # Source
    /// The method is Tisovsky's and Baronak's; the lines are those of the program in FreeBSD's BSD Router
    /// Project.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::Estimate;
    /// let estimate = Estimate::of_log(
    ///     b"Iteration 1\n  - Offering load = 500 Mb/s\n\
    ///       Estimated Equilibrium Ethernet throughput= 55 Mb/s (maximum value seen: 56 Mb/s)\n",
    /// );
    /// assert_eq!(estimate.map(|estimate| estimate.maximum_mbps), Some(56));
    /// ```
    #[must_use]
    pub fn of_log(text: &[u8]) -> Option<Self> {
        let lines = (1..).zip(text.split(|&byte| byte == b'\n'));
        lines
            .filter_map(|(line, text)| Self::of_line(line, String::from_utf8_lossy(text).trim()))
            .last()
    }

    fn of_line(line: usize, text: &str) -> Option<Self> {
        let found = text.strip_prefix("Estimated Equilibrium Ethernet throughput=")?;
        let (equilibrium, maximum) = found.split_once("(maximum value seen:")?;
        Some(Self {
            line,
            equilibrium_mbps: mbps(equilibrium)?,
            maximum_mbps: mbps(maximum.strip_suffix(')')?)?,
        })
    }
}

/// `55 Mb/s`, `957Mb/s`.
fn mbps(text: &str) -> Option<u64> {
    text.trim().strip_suffix("Mb/s")?.trim_end().parse().ok()
}

/// The values of a `.equilibrium` or `.equilibrium.max` file: one a run, in their order.
///
/// Shape: one number a line; blank lines are passed over. Units: Mb/s.
///
/// # Errors
/// [`EquilibriumError`].
pub fn parse_rates_mbps(text: &[u8]) -> Result<Vec<f64>, EquilibriumError> {
    let mut rates = Vec::new();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let rate = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        let is_rate = |rate: &f64| rate.is_finite() && *rate >= 0.0;
        rates.push(
            rate.filter(is_rate)
                .ok_or_else(|| EquilibriumError::NotARate {
                    line: index + 1,
                    text: String::from_utf8_lossy(text).chars().take(40).collect(),
                })?,
        );
    }
    if rates.is_empty() {
        return Err(EquilibriumError::Empty);
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOG: &str = "\
CMD on 192.168.1.8: sudo equilibrium-noref -4 -d 00:07:43:2f:fe:b0 -t vcxl0 -l 10000
Benchmark tool using equilibrium throughput method
- Benchmark mode: Bandwitdh (bps) for VPN gateway
- UDP load = 500B, IPv4 packet size=528B, Ethernet frame size=542B
- Link rate = 10000 Mb/s
- Tolerance = 0.01
Iteration 1
  - Offering load = 5000 Mb/s
  - Step = 2500 Mb/s
  - Warning: Generated only 4958Mb/s in place of 5000Mb/s
  - Measured forwarding rate = 46 Mb/s
  - Forwared rate too low, forcing OLOAD=FWRATE and STEP=FWRATE/2
Iteration 2
  - Offering load = 54 Mb/s
  - Step = 2 Mb/s
  - Trend = decreasing
  - Measured forwarding rate = 55 Mb/s
  - forwarding rate greater than offering load! (forcing FWRATE=OLOAD)
  - Too big initial value, need to reduce STEP
  - Trend = none
Estimated Equilibrium Ethernet throughput= 54 Mb/s (maximum value seen: 55 Mb/s)
";

    #[test]
    fn a_log_ends_with_what_was_found() {
        let estimate = Estimate {
            line: 21,
            equilibrium_mbps: 54,
            maximum_mbps: 55,
        };
        assert_eq!(Estimate::of_log(LOG.as_bytes()), Some(estimate));
        let cut = &LOG[..LOG.find("Estimated").unwrap()];
        assert_eq!(Estimate::of_log(cut.as_bytes()), None);
    }

    #[test]
    fn values_are_rates_and_nothing_else() {
        assert_eq!(
            parse_rates_mbps(b"189\n\n189.5\r\n"),
            Ok(vec![189.0, 189.5])
        );
        for (text, message) in [
            (
                "189\n#index",
                "line 2: not a rate in Mb/s (\"#index\"); give one number a line",
            ),
            (
                "-1",
                "line 1: not a rate in Mb/s (\"-1\"); give one number a line",
            ),
            (
                "nan",
                "line 1: not a rate in Mb/s (\"nan\"); give one number a line",
            ),
            ("\n", "no line at all; give values of equilibrium"),
        ] {
            assert_eq!(
                parse_rates_mbps(text.as_bytes()).unwrap_err().to_string(),
                message
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, after in 0_usize..LOG.len()) {
            let _ = parse_rates_mbps(&bytes);
            let torn = [&LOG.as_bytes()[..after], &bytes].concat();
            let lines = torn.split(|&byte| byte == b'\n').count();
            let estimate = Estimate::of_log(&torn);
            prop_assert!(estimate.is_none_or(|estimate| (1..=lines).contains(&estimate.line)));
        }

        #[test]
        fn written_values_are_read_back(rates in prop::collection::vec(0.0..1e6_f64, 1..20), equilibrium: u64, maximum: u64) {
            let text: String = rates.iter().map(|rate| format!("{rate}\n")).collect();
            prop_assert_eq!(parse_rates_mbps(text.as_bytes()).unwrap(), rates);
            let text = format!("Estimated Equilibrium Ethernet throughput= {equilibrium} Mb/s (maximum value seen: {maximum} Mb/s)");
            let estimate = Estimate { line: 1, equilibrium_mbps: equilibrium, maximum_mbps: maximum };
            prop_assert_eq!(Estimate::of_log(text.as_bytes()), Some(estimate));
        }
    }
}
