//! `pktgen.configs/<set>/<name>`: what traffic a bench is to make, as variables of a shell.

use fwdlab_pkt_gen::AddressRange;

use crate::assignments::{Assignment, AssignmentError, Assignments, Dialect};

/// The traffic of a bench, as far as a configuration says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PktGenConfig {
    /// `PKT_SIZE`: bytes of a packet without its frame check sequence, so that 60 is the 64-byte frame.
    pub packet_size_bytes: Option<u64>,
    /// `AF`: 4 or 6.
    pub address_family: Option<u8>,
    /// `PKT_TO_SEND`: packets to send.
    pub packet_count: Option<u64>,
    /// `SENDER_LAB_NET`: what the source addresses run through.
    pub source: Option<AddressRange>,
    /// `RECEIVER_LAB_NET`: what the destination addresses run through.
    pub destination: Option<AddressRange>,
    /// All variables, in order.
    pub variables: Vec<Assignment>,
}

/// Why a text is no configuration of traffic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PktGenConfigError {
    /// A line is no plain assignment.
    #[error(transparent)]
    Assignment(#[from] AssignmentError),
    /// A variable has a value that it cannot have.
    #[error("line {line}: {name} cannot be {value:?}; {allowed}")]
    Value {
        /// The line, from 1.
        line: usize,
        /// The variable.
        name: String,
        /// How its value begins.
        value: String,
        /// What it can be.
        allowed: &'static str,
    },
}

impl PktGenConfig {
    /// Reads a configuration, and never runs it.
    ///
    /// Shape: assignments and comments only. A value that names another variable is left to
    /// [`PktGenConfig::variables`].
    ///
    /// # Errors
    /// [`PktGenConfigError`], with a line.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::PktGenConfig;
    /// let config = PktGenConfig::parse(
    ///     b"SENDER_LAB_NET=\"198.18.10.1:2001-198.18.10.71\"\n\
    ///       RECEIVER_LAB_NET=\"198.19.10.1:2001-198.19.10.70\"\nPKT_SIZE=\"60\"\n",
    /// )?;
    /// assert_eq!((config.packet_size_bytes, config.flows()), (Some(60), Some(71 * 70)));
    /// # Ok::<(), fwdlab_netbenches::PktGenConfigError>(())
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, PktGenConfigError> {
        let mut config = Self {
            variables: Assignments::plain(text, Dialect::Shell)?,
            ..Self::default()
        };
        for variable in &config.variables {
            if variable.expansion.is_some() || variable.value.is_empty() {
                continue;
            }
            // IPv6 addresses have quotes of their own, because a second shell reads them.
            let value = variable.value.trim_matches('"');
            let allowed = match variable.name.as_str() {
                "PKT_SIZE" => set(
                    &mut config.packet_size_bytes,
                    value.parse().ok(),
                    "give bytes",
                ),
                "PKT_TO_SEND" => set(&mut config.packet_count, value.parse().ok(), "give packets"),
                "AF" => {
                    let family = value.parse().ok().filter(|family| matches!(family, 4 | 6));
                    set(&mut config.address_family, family, "give 4 or 6")
                }
                "SENDER_LAB_NET" => set(&mut config.source, AddressRange::parse(value), RANGE),
                "RECEIVER_LAB_NET" => {
                    set(&mut config.destination, AddressRange::parse(value), RANGE)
                }
                _ => Ok(()),
            };
            allowed.map_err(|allowed| PktGenConfigError::Value {
                line: variable.line,
                name: variable.name.clone(),
                value: value.chars().take(80).collect(),
                allowed,
            })?;
        }
        Ok(config)
    }

    /// How many flows the ranges ask for: every source with every destination.
    #[must_use]
    pub fn flows(&self) -> Option<u128> {
        let source = self.source.as_ref()?.endpoints();
        source.checked_mul(self.destination.as_ref()?.endpoints())
    }
}

const RANGE: &str = "give addresses from the first to the last one";

/// Sets what could be read; otherwise what could have been.
fn set<T>(
    field: &mut Option<T>,
    value: Option<T>,
    allowed: &'static str,
) -> Result<(), &'static str> {
    *field = Some(value.ok_or(allowed)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(text: &str) -> String {
        PktGenConfig::parse(text.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn ranges_of_either_family_are_read() {
        let config = PktGenConfig::parse(
            b"# Generate 2K IPv6 UDP flows\nAF=\"6\"\nPKT_SIZE=\"62\"\nPKT_TO_SEND=100\nX=1\n\
              SENDER_LAB_NET=\"\\\"[2001:2:0:10::1]-[2001:2:0:10::14]\\\"\"\n\
              RECEIVER_LAB_NET='\"[2001:2:0:8010::1]-[2001:2:0:8010::64]\"'\n",
        )
        .unwrap();
        assert_eq!(
            (config.address_family, config.packet_size_bytes),
            (Some(6), Some(62))
        );
        assert_eq!(
            (config.packet_count, config.flows()),
            (Some(100), Some(20 * 100))
        );
        assert_eq!(config.variables.len(), 6);
        let later = PktGenConfig::parse(b"PKT_SIZE=$SIZE\nAF=\"\"").unwrap();
        assert_eq!(
            (later.packet_size_bytes, later.address_family, later.flows()),
            (None, None, None)
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        for (text, message) in [
            (
                "\nPKT_SIZE=60B",
                "line 2: PKT_SIZE cannot be \"60B\"; give bytes",
            ),
            ("AF=5", "line 1: AF cannot be \"5\"; give 4 or 6"),
            (
                "SENDER_LAB_NET=198.18.10",
                "line 1: SENDER_LAB_NET cannot be \"198.18.10\"; give addresses from the first to the last one",
            ),
            (
                "PKT_SIZE=`id`",
                "line 1: a command stands in the value, and nothing here is run; give plain text",
            ),
            (
                "PKT_SIZE=60; id",
                "line 1: no plain assignment; give one like NAME=\"value\"",
            ),
        ] {
            assert_eq!(refusal(text), message);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, value in "[0-9.:x$\\[\\]\"-]{0,20}") {
            let _ = PktGenConfig::parse(&bytes);
            let _ = PktGenConfig::parse(format!("SENDER_LAB_NET={value}\nAF={value}").as_bytes());
        }

        #[test]
        fn written_values_are_read_back(size: u64, first: std::net::Ipv4Addr, port: u16) {
            let text = format!("PKT_SIZE={size}\nSENDER_LAB_NET=\"{first}:{port}-{first}\"\n");
            let config = PktGenConfig::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(config.packet_size_bytes, Some(size));
            let range = config.source.unwrap();
            prop_assert_eq!((range.first, range.first_port), (first.into(), Some(port)));
        }
    }
}
