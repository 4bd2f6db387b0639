//! What `equilibrium` finds: the load at which a gateway forwards as much as it is offered, searched for
//! by halving steps; its logs, and the files of values that are made of them.
//!
//! All rates are in Mb/s, as it prints them.

/// The log of `equilibrium`.
///
/// # Source
/// The method is Tisovsky's and Baronak's; the lines are those of the program in FreeBSD's BSD Router
/// Project.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EquilibriumLog {
    /// Whether the log holds the command.
    pub has_command: bool,
    /// Bytes of a frame, without its frame check sequence.
    pub frame_size_bytes: Option<u64>,
    /// What the links carry at most.
    pub link_rate_mbps: Option<u64>,
    /// How near to each other two steps have to be, as a part of the link's rate.
    pub tolerance: Option<f64>,
    /// The loads that were tried, in order.
    pub iterations: Vec<Iteration>,
    /// What was found; `None` where the log ends before.
    pub estimate: Option<Estimate>,
    /// Lines of no known kind, from 1.
    pub unknown_lines: Vec<usize>,
}

/// A load that was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Iteration {
    /// The line in the log, from 1.
    pub line: usize,
    /// Which it is, from 1.
    pub number: u64,
    /// The load that was intended.
    pub intended_load_mbps: Option<u64>,
    /// By how much the next one may differ.
    pub step_mbps: Option<u64>,
    /// Where the search went.
    pub trend: Option<Trend>,
    /// What arrived behind the gateway.
    pub forwarding_rate_mbps: Option<u64>,
    /// What went wrong.
    pub warnings: Vec<SearchWarning>,
}

/// Where a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// To more load.
    Increasing,
    /// To less load.
    Decreasing,
}

/// What `equilibrium` complains of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchWarning {
    /// `Generated only … in place of …`: the generator sent less than it was to.
    Shortfall {
        /// What it really sent.
        offered_load_mbps: u64,
        /// What it was to send.
        intended_load_mbps: u64,
    },
    /// `forwarding rate greater than offering load!`: taken for the load.
    MoreThanOffered,
    /// `Forwared rate too low`: the search begins again at that rate.
    TooLow,
    /// `Too big initial value`: the step is made smaller.
    TooBigStep,
}

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

/// Why a text is no log of `equilibrium`, or no file of its values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EquilibriumError {
    /// There is nothing in it.
    #[error("no line at all; give a log or values of equilibrium")]
    Empty,
    /// Nothing in it is of `equilibrium`.
    #[error("line {line}: no log of equilibrium; give one")]
    NotEquilibrium {
        /// The first line that is not empty, from 1.
        line: usize,
    },
    /// A line is no rate.
    #[error("line {line}: not a rate in Mb/s ({text:?}); give one number a line")]
    NotARate {
        /// The line, from 1.
        line: usize,
        /// How it begins.
        text: String,
    },
}

impl EquilibriumLog {
    /// Reads a log.
    ///
    /// Shape: the bytes of the file; line ends of either kind.
    ///
    /// # Errors
    /// [`EquilibriumError`] where it is no log of `equilibrium` at all. Whatever else is odd is in
    /// [`EquilibriumLog::unknown_lines`].
    ///
    /// # Examples
    /// ```
    /// use fwdlab_archive::netbenches::EquilibriumLog;
    /// let log = EquilibriumLog::parse(
    ///     b"CMD: equilibrium -u -4 -t igb2 -r igb3\n\
    ///       Iteration 1\n  - Offering load = 500 Mb/s\n  - Measured forwarding rate = 46 Mb/s\n\
    ///       Estimated Equilibrium Ethernet throughput= 55 Mb/s (maximum value seen: 56 Mb/s)\n",
    /// )?;
    /// assert_eq!(log.iterations[0].forwarding_rate_mbps, Some(46));
    /// assert_eq!(log.estimate.map(|estimate| estimate.maximum_mbps), Some(56));
    /// # Ok::<(), fwdlab_archive::netbenches::EquilibriumError>(())
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, EquilibriumError> {
        let mut log = Self::default();
        let (mut first_line, mut is_equilibrium) = (None, false);
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let text = String::from_utf8_lossy(line);
            let (line, text) = (index + 1, text.trim());
            if text.is_empty() {
                continue;
            }
            first_line.get_or_insert(line);
            match log.read(line, text) {
                Some(()) => is_equilibrium = true,
                None => log.unknown_lines.push(line),
            }
        }
        let line = first_line.ok_or(EquilibriumError::Empty)?;
        let log = Some(log).filter(|_| is_equilibrium);
        log.ok_or(EquilibriumError::NotEquilibrium { line })
    }

    /// Takes in a line; `None` where it is of no known kind.
    fn read(&mut self, line: usize, text: &str) -> Option<()> {
        if text.starts_with("CMD") && !self.has_command {
            self.has_command = is_command(text);
            return self.has_command.then_some(());
        }
        if let Some(number) = text.strip_prefix("Iteration ") {
            self.iterations.push(Iteration {
                line,
                number: number.parse().ok()?,
                ..Iteration::default()
            });
            return Some(());
        }
        if let Some(estimate) = text.strip_prefix("Estimated Equilibrium Ethernet throughput=") {
            let (equilibrium, maximum) = estimate.split_once("(maximum value seen:")?;
            self.estimate = Some(Estimate {
                line,
                equilibrium_mbps: mbps(equilibrium)?,
                maximum_mbps: mbps(maximum.strip_suffix(')')?)?,
            });
            return Some(());
        }
        if text == "Benchmark tool using equilibrium throughput method" {
            return Some(());
        }
        let entry = text.strip_prefix("- ")?;
        match self.iterations.last_mut() {
            Some(iteration) => iteration.read(entry),
            None => self.read_setting(entry),
        }
    }

    fn read_setting(&mut self, entry: &str) -> Option<()> {
        if let Some((name, value)) = entry.split_once(" = ") {
            match name {
                "Link rate" => self.link_rate_mbps = Some(mbps(value)?),
                "Tolerance" => self.tolerance = Some(value.parse().ok()?),
                _ => {
                    let (_, size) = entry.rsplit_once("Ethernet frame size=")?;
                    self.frame_size_bytes = Some(size.strip_suffix('B')?.parse().ok()?);
                }
            }
            return Some(());
        }
        entry.starts_with("Benchmark mode:").then_some(())
    }
}

impl Iteration {
    fn read(&mut self, entry: &str) -> Option<()> {
        if let Some((name, value)) = entry.split_once(" = ") {
            match name {
                "Offering load" => self.intended_load_mbps = Some(mbps(value)?),
                "Step" => self.step_mbps = Some(mbps(value)?),
                "Measured forwarding rate" => self.forwarding_rate_mbps = Some(mbps(value)?),
                "Trend" => {
                    self.trend = Some(match value {
                        "increasing" => Trend::Increasing,
                        "decreasing" => Trend::Decreasing,
                        _ => return None,
                    });
                }
                _ => return None,
            }
            return Some(());
        }
        self.warnings.push(SearchWarning::parse(entry)?);
        Some(())
    }
}

impl SearchWarning {
    fn parse(entry: &str) -> Option<Self> {
        if let Some(rest) = entry.strip_prefix("Warning: Generated only ") {
            let (offered, intended) = rest.split_once(" in place of ")?;
            return Some(Self::Shortfall {
                offered_load_mbps: mbps(offered)?,
                intended_load_mbps: mbps(intended)?,
            });
        }
        [
            (
                "forwarding rate greater than offering load!",
                Self::MoreThanOffered,
            ),
            ("Forwared rate too low", Self::TooLow),
            ("Too big initial value", Self::TooBigStep),
        ]
        .into_iter()
        .find_map(|(words, warning)| entry.starts_with(words).then_some(warning))
    }
}

/// Whether a line starts `equilibrium` or a variant of it such as `equilibrium-noref`, by itself or by another command.
fn is_command(line: &str) -> bool {
    let command = line
        .strip_prefix("CMD")
        .and_then(|rest| rest.split_once(": "));
    command.is_some_and(|(_, command)| {
        let mut words = command.split_ascii_whitespace();
        words.any(|word| {
            word.rsplit('/')
                .next()
                .unwrap_or_default()
                .starts_with("equilibrium")
        })
    })
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
    fn a_log_tells_of_the_search_and_its_end() {
        let log = EquilibriumLog::parse(LOG.as_bytes()).unwrap();
        assert!(log.has_command);
        assert_eq!(
            (log.frame_size_bytes, log.link_rate_mbps, log.tolerance),
            (Some(542), Some(10_000), Some(0.01))
        );
        assert_eq!(
            log.iterations,
            [
                Iteration {
                    line: 7,
                    number: 1,
                    intended_load_mbps: Some(5000),
                    step_mbps: Some(2500),
                    trend: None,
                    forwarding_rate_mbps: Some(46),
                    warnings: vec![
                        SearchWarning::Shortfall {
                            offered_load_mbps: 4958,
                            intended_load_mbps: 5000
                        },
                        SearchWarning::TooLow,
                    ],
                },
                Iteration {
                    line: 13,
                    number: 2,
                    intended_load_mbps: Some(54),
                    step_mbps: Some(2),
                    trend: Some(Trend::Decreasing),
                    forwarding_rate_mbps: Some(55),
                    warnings: vec![SearchWarning::MoreThanOffered, SearchWarning::TooBigStep],
                },
            ]
        );
        assert_eq!(
            log.estimate,
            Some(Estimate {
                line: 21,
                equilibrium_mbps: 54,
                maximum_mbps: 55
            })
        );
        assert_eq!(log.unknown_lines, [20]);
    }

    #[test]
    fn a_log_that_ends_early_has_no_estimate_and_another_one_is_refused() {
        let log =
            EquilibriumLog::parse(&LOG.as_bytes()[..LOG.find("Iteration 2").unwrap()]).unwrap();
        assert_eq!((log.iterations.len(), log.estimate), (1, None));
        let refusal = |text: &str| {
            EquilibriumLog::parse(text.as_bytes())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refusal("\nCMD: pkt-gen -f tx\n- x\n"),
            "line 2: no log of equilibrium; give one"
        );
        assert_eq!(
            refusal("\n\r\n"),
            "no line at all; give a log or values of equilibrium"
        );
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
            ("\n", "no line at all; give a log or values of equilibrium"),
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
            let _ = EquilibriumLog::parse(&bytes);
            let torn = [&LOG.as_bytes()[..after], &bytes].concat();
            let lines = torn.split(|&byte| byte == b'\n').count();
            if let Ok(log) = EquilibriumLog::parse(&torn) {
                prop_assert!(log.unknown_lines.iter().all(|line| (1..=lines).contains(line)));
            }
        }

        #[test]
        fn written_values_are_read_back(rates in prop::collection::vec(0.0..1e6_f64, 1..20), equilibrium: u64, maximum: u64) {
            let text: String = rates.iter().map(|rate| format!("{rate}\n")).collect();
            prop_assert_eq!(parse_rates_mbps(text.as_bytes()).unwrap(), rates);
            let text = format!("Estimated Equilibrium Ethernet throughput= {equilibrium} Mb/s (maximum value seen: {maximum} Mb/s)");
            let estimate = EquilibriumLog::parse(text.as_bytes()).unwrap().estimate;
            prop_assert_eq!(estimate, Some(Estimate { line: 1, equilibrium_mbps: equilibrium, maximum_mbps: maximum }));
        }
    }
}
